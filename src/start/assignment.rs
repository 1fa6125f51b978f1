//! The linear assignment problem.

use ndarray::ArrayView2;

use crate::objective::GoOn;

/// Returns the column of every row of an r×n matrix, r ≤ n, so that no column is taken twice and the sum of the
/// chosen entries is least: shortest augmenting paths, at most r²n operations (Jonker and Volgenant 1987).
/// None if an entry is not finite or `go_on` returns false.
pub(crate) fn assignment(costs: ArrayView2<'_, f64>, go_on: GoOn<'_>) -> Option<Vec<usize>> {
    let (r, n) = costs.dim();
    if !costs.iter().all(|cost| cost.is_finite()) {
        return None;
    }
    let costs = costs.as_standard_layout();
    let costs = costs.as_slice().unwrap_or_default();
    // Dual variables: cost − of_row − of_column is never negative, and 0 where a row has its column.
    let (mut of_row, mut of_column) = (vec![0.0; r], vec![0.0; n]);
    let mut owner: Vec<Option<usize>> = vec![None; n];
    let mut chosen = vec![0; r];
    let (mut distance, mut before) = (vec![0.0; n], vec![0; n]);
    let (mut open, mut reached) = (Vec::with_capacity(n), Vec::new());
    for first in 0..r {
        if !go_on() {
            return None;
        }
        // Shortest paths from the row to all columns, until one is free.
        distance.fill(f64::INFINITY);
        before.fill(first);
        open.clear();
        open.extend(0..n);
        reached.clear();
        let (mut row, mut length) = (first, 0.0);
        let free = loop {
            let mut nearest = 0;
            let mut least = f64::INFINITY;
            let line = &costs[row * n..][..n];
            for (place, &j) in open.iter().enumerate() {
                let through = length + (line[j] - of_row[row] - of_column[j]);
                if through < distance[j] {
                    (distance[j], before[j]) = (through, row);
                }
                if distance[j] < least {
                    (least, nearest) = (distance[j], place);
                }
            }
            let column = open.swap_remove(nearest);
            length = distance[column];
            match owner[column] {
                Some(next) => {
                    reached.push((column, next));
                    row = next;
                }
                None => break column,
            }
        };
        of_row[first] += length;
        for &(column, row) in &reached {
            of_row[row] += length - distance[column];
            of_column[column] -= length - distance[column];
        }
        // Every row of the path takes the next column.
        let mut column = free;
        loop {
            let row = before[column];
            owner[column] = Some(row);
            let previous = std::mem::replace(&mut chosen[row], column);
            if row == first {
                break;
            }
            column = previous;
        }
    }
    Some(chosen)
}

/// Returns all permutations of 0 to n − 1.
#[cfg(test)]
pub(crate) fn permutations(n: usize) -> Vec<Vec<usize>> {
    (0..n).fold(vec![vec![]], |shorter, next| {
        let inserted = |p: &Vec<usize>, at: usize| [&p[..at], &[next], &p[at..]].concat();
        let longer = |p: &Vec<usize>| (0..=next).map(|at| inserted(p, at)).collect::<Vec<_>>();
        shorter.iter().flat_map(longer).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, s};
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn random(n: usize, seed: u64, draw: impl Fn(&mut Xoshiro256PlusPlus) -> f64) -> Array2<f64> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Array2::from_shape_simple_fn((n, n), || draw(&mut rng))
    }

    fn total(costs: &Array2<f64>, chosen: &[usize]) -> f64 {
        chosen.iter().enumerate().map(|(i, &j)| costs[[i, j]]).sum()
    }

    #[test]
    fn it_is_the_least_of_all_permutations() {
        for n in 1..=6 {
            for seed in 0..20 {
                for scale in [1e-150, 1.0, 1e150] {
                    let real = random(n, seed, |rng| scale * (rng.random::<f64>() - 0.5));
                    let ties = random(n, seed, |rng| scale * f64::from(rng.random_range(-1..=1)));
                    for (costs, r) in [(&real, n), (&ties, n), (&real, n.div_ceil(2)), (&ties, n.div_ceil(3))] {
                        let chosen = assignment(costs.slice(s![..r, ..]), &|| true).unwrap();
                        let mut sorted = chosen.clone();
                        sorted.sort_unstable();
                        sorted.dedup();
                        assert!(sorted.len() == r && sorted[r - 1] < n);
                        let totals = permutations(n).into_iter().map(|p| total(costs, &p[..r]));
                        let expected = totals.fold(f64::INFINITY, f64::min);
                        assert!((total(costs, &chosen) - expected).abs() <= 1e-14 * n as f64 * scale);
                    }
                }
            }
        }
    }

    #[test]
    fn no_exchange_of_two_or_three_columns_lowers_a_large_one() {
        let n = 60;
        let costs = random(n, 7, |rng| rng.random::<f64>().powi(3));
        let chosen = assignment(costs.view(), &|| true).unwrap();
        let cost = |i: usize, j: usize| costs[[i, chosen[j]]];
        for i in 0..n {
            for j in 0..n {
                for k in 0..n {
                    let now = cost(i, i) + cost(j, j) + cost(k, k);
                    let cycle = cost(i, j) + cost(j, k) + cost(k, i);
                    assert!((i == j || j == k || i == k) || cycle >= now - 1e-12);
                }
            }
        }
    }

    #[test]
    fn entries_must_be_finite_and_the_computation_may_end() {
        let costs = random(3, 1, |rng| rng.random());
        assert!(assignment(costs.view(), &|| false).is_none());
        for bad in [f64::INFINITY, f64::NAN] {
            let mut costs = costs.clone();
            costs[[1, 2]] = bad;
            assert!(assignment(costs.view(), &|| true).is_none());
        }
    }
}
