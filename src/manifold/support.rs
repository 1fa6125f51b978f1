//! Projection onto {XᵀJX = K, X zero outside a support}, from far away.

use ndarray::{Array2, Axis};

use super::constraint::drift;
use super::geometry::Manifold;
use super::repair::masked;
use super::stiefel::polar;
use crate::linalg::product;

fn has_empty_column(x: &Array2<f64>) -> bool {
    x.axis_iter(Axis(1))
        .any(|column| column.iter().all(|&v| v == 0.0))
}

/// A point of {XᵀX = I, X zero where `support` is zero} near x: alternating projections first, then
/// Newton's method on the pattern; none if that does not get there.
pub(crate) fn project_on_support(
    manifold: &Manifold<'_>,
    x: &Array2<f64>,
    support: &Array2<f64>,
) -> Option<Array2<f64>> {
    let few =
        |small: &Manifold<'_>, [x, support]: [Array2<f64>; 2]| alternate(small, &x, &support).ok();
    manifold
        .on_few_rows(support, [x, support], few)
        .unwrap_or_else(|| alternate(manifold, x, support).ok())
}

/// The same; what the projections have come to if that does not get there.
fn alternate(
    manifold: &Manifold<'_>,
    x: &Array2<f64>,
    support: &Array2<f64>,
) -> Result<Array2<f64>, Array2<f64>> {
    /// Steps after which Newton's method is tried from within [`NEAR`], and from anywhere closer
    /// than [`CLOSE`].
    const TRIES: [usize; 6] = [3, 5, 8, 13, 21, 40];
    const NEAR: f64 = 0.3;
    const CLOSE: f64 = 1e-3;
    /// Where it failed it is tried again from a gap that is smaller by this factor: projections that come no closer are
    /// at a pattern on which there may be no feasible point, and Newton's method is then at its dearest.
    const CLOSER: f64 = 0.5;
    let mut failed = f64::INFINITY;
    let mut current = masked(x.clone(), support);
    for step in 0..=TRIES[5] {
        if has_empty_column(&current) || manifold.refuses(x, 6) || manifold.overdue() {
            break;
        }
        let gap = drift(current.view(), manifold.signature, manifold.k.view());
        if !gap.is_finite() {
            break;
        }
        let tried = gap <= NEAR && TRIES.contains(&step) || gap <= CLOSE;
        if tried && gap <= CLOSER * failed {
            if let Some(projected) = manifold.restore_unless(&current, &|| manifold.overdue()) {
                return Ok(projected);
            }
            failed = gap;
        }
        current = masked(polar(&current), support);
    }
    Err(current)
}

/// Like [`project_on_support`], but entries of the support are given up where that has to be: of
/// two columns that do not become orthogonal on their common rows, the smaller entry in each of
/// these, and in the end, or where the task is overdue, all but the largest entry of every row. None if a column
/// has no entries, or loses them.
pub(crate) fn project_near_support(
    manifold: &Manifold<'_>,
    x: &Array2<f64>,
    support: &Array2<f64>,
) -> Option<Array2<f64>> {
    const ROUNDS: usize = 3;
    /// Product of two columns, relative to the largest one, above which they conflict.
    const CONFLICT: f64 = 0.3;
    let few = |small: &Manifold<'_>, [x, support]: [Array2<f64>; 2]| {
        project_near_support(small, &x, &support)
    };
    if let Some(found) = manifold.on_few_rows(support, [x, support], few) {
        return found;
    }
    let mut support = support.clone();
    for round in 1..=ROUNDS {
        let current = match alternate(manifold, x, &support) {
            Ok(projected) => return Some(projected),
            Err(current) => current,
        };
        if has_empty_column(&current) || current.iter().any(|v| !v.is_finite()) {
            return None;
        }
        if round == ROUNDS || manifold.overdue() {
            break;
        }
        let gram = product(current.t(), current.view());
        let pairs = || (0..gram.ncols()).flat_map(|a| (0..a).map(move |b| (a, b)));
        let worst = pairs().fold(0.0f64, |m, pair| m.max(gram[pair].abs()));
        let conflict = |&pair: &(usize, usize)| gram[pair].abs() > CONFLICT * worst;
        let conflicts: Vec<(usize, usize)> = pairs().filter(conflict).collect();
        for (mut kept, x) in support.outer_iter_mut().zip(x.outer_iter()) {
            for &(a, b) in &conflicts {
                if kept[a] != 0.0 && kept[b] != 0.0 {
                    let smaller = if x[a].abs() < x[b].abs() { a } else { b };
                    kept[smaller] = 0.0;
                }
            }
        }
    }
    disjoint(masked(x.clone(), &support))
}

/// The largest entry of every row alone, columns scaled to length one; none if a column is empty.
fn disjoint(mut x: Array2<f64>) -> Option<Array2<f64>> {
    for mut row in x.outer_iter_mut() {
        let largest = row.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        let owner = row.iter().position(|v| v.abs() == largest);
        let zeros = row.iter_mut().enumerate();
        zeros
            .filter(|&(k, _)| Some(k) != owner)
            .for_each(|(_, v)| *v = 0.0);
    }
    for mut column in x.columns_mut() {
        let length = column.dot(&column).sqrt();
        if !(length > 0.0) {
            return None;
        }
        column /= length;
    }
    Some(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Clock, Meter};
    use crate::signature::Signature;
    use crate::start;
    use ndarray::array;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use std::time::Instant;

    fn orthonormality(x: &Array2<f64>) -> f64 {
        let signature = Signature::stiefel(x.nrows());
        drift(x.view(), &signature, Array2::eye(x.ncols()).view())
    }

    #[test]
    fn a_support_that_holds_no_point_nearby_loses_entries() {
        let signature = Signature::stiefel(30);
        let manifold = Manifold::new(&signature, Array2::eye(10), None);
        let mut lost = 0;
        for seed in 0..20 {
            let q = start::random(30, 10, seed);
            let y = q.mapv(|v| if v.abs() < 0.25 { 0.0 } else { v });
            if has_empty_column(&y) {
                continue;
            }
            lost += usize::from(project_on_support(&manifold, &q, &y).is_none());
            let x = project_near_support(&manifold, &q, &y).unwrap();
            assert!(orthonormality(&x) < 1e-11, "{seed}");
            assert_eq!(x, masked(x.clone(), &y), "{seed}");
        }
        assert!(lost > 5, "{lost}");
    }

    #[test]
    fn a_support_that_holds_a_point_is_kept() {
        let signature = Signature::stiefel(30);
        let manifold = Manifold::new(&signature, Array2::eye(4), None);
        let q = start::random(30, 4, 3);
        let y = q.mapv(|v| if v.abs() < 0.1 { 0.0 } else { v });
        let x = project_near_support(&manifold, &q, &y).unwrap();
        assert!(orthonormality(&x) < 1e-12);
        assert!(x.iter().zip(&y).all(|(x, y)| (*x == 0.0) == (*y == 0.0)));
        assert_eq!(project_on_support(&manifold, &q, &y), Some(x));
    }

    #[test]
    fn most_supports_of_columns_that_share_few_rows_are_kept() {
        let (n, r) = (120, 20);
        let signature = Signature::stiefel(n);
        let manifold = Manifold::new(&signature, Array2::eye(r), None);
        let mut kept = 0;
        for seed in 0..10 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            // Rotations of pairs of rows let supports grow and keep the columns orthonormal.
            let mut q = Array2::eye(n).slice(ndarray::s![.., ..r]).to_owned();
            for _ in 0..110 {
                let (i, j) = (rng.random_range(0..n), rng.random_range(0..n));
                let (sin, cos) = rng.random_range(0.1..1.4f64).sin_cos();
                if i != j {
                    let (a, b) = (q.row(i).to_owned(), q.row(j).to_owned());
                    q.row_mut(i).assign(&(&a * cos + &b * sin));
                    q.row_mut(j).assign(&(&b * cos - &a * sin));
                }
            }
            let noisy = q.mapv(|v| v * (1.0 + rng.random_range(-0.02..0.02)));
            let x = project_near_support(&manifold, &noisy, &q).unwrap();
            assert!(orthonormality(&x) < 1e-12, "{seed}");
            assert_eq!(x, masked(x.clone(), &q), "{seed}");
            kept += usize::from(x.iter().zip(&q).all(|(x, q)| (*x == 0.0) == (*q == 0.0)));
        }
        assert!(kept >= 5, "{kept}");
    }

    /// One row in common: on it an entry has to go, and projections come no closer than that slowly.
    #[test]
    fn a_pattern_without_points_is_given_up_soon() {
        let (n, r) = (90, 6);
        let signature = Signature::stiefel(n);
        let clock = Clock::new(Instant::now(), None);
        let meter = Meter::new(&clock, f64::INFINITY);
        let manifold = Manifold::new(&signature, Array2::eye(r), Some(&meter));
        // Column k has the rows 15k to 15k + 15, the last of which the next one has, too.
        let y = Array2::from_shape_fn((n, r), |(i, k)| {
            let place = i as f64 - 15.0 * k as f64;
            f64::from(u8::from((0.0..=15.0).contains(&place))) * 0.25
        });
        assert!(project_on_support(&manifold, &y, &y).is_none());
        // With a try at every step where the gap is small: 1074 products with an r×r matrix.
        let products = meter.spent() / (n * r * r) as f64;
        assert!(products < 900.0, "{products}");
    }

    #[test]
    fn a_task_that_is_overdue_ends_with_disjoint_columns() {
        let signature = Signature::stiefel(40);
        let clock = Clock::new(Instant::now(), None);
        let q = start::random(40, 8, 3);
        let nonzeros = |x: &Array2<f64>| x.iter().filter(|v| **v != 0.0).count();
        for (units, late) in [(1e-3, true), (1e9, false)] {
            let meter = Meter::new(&clock, units);
            meter.spend(1.0);
            let manifold = Manifold::new(&signature, Array2::eye(8), Some(&meter));
            let x = project_near_support(&manifold, &q, &q).unwrap();
            assert!(orthonormality(&x) < 1e-14);
            assert_eq!(nonzeros(&x), if late { 40 } else { 320 });
        }
    }

    #[test]
    fn an_empty_column_has_no_point() {
        let y = array![[1.0, 0.0], [0.0, 0.0]];
        let signature = Signature::stiefel(2);
        let manifold = Manifold::new(&signature, Array2::eye(2), None);
        assert_eq!(project_near_support(&manifold, &y, &y), None);
    }
}
