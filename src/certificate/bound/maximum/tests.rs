//! Tests of the sparse maximum's parts against enumeration and against their formulas.

use ndarray::Array1;

use super::*;
use crate::linalg::symmetric_eigenvalues;
use crate::start;

fn indefinite(n: usize, seed: u64) -> Array2<f64> {
    let a = start::random(n, n, seed) * &Array1::linspace(1.0, 4.0, n);
    &a + &a.t()
}

/// Returns a symmetric matrix of small integers, whose sums are exact.
fn integers(n: usize, seed: u64) -> Array2<f64> {
    indefinite(n, seed).mapv(|v| (2.0 * v).round())
}

fn members(set: usize) -> Vec<usize> {
    (0..usize::BITS as usize).filter(|i| set >> i & 1 == 1).collect()
}

fn all_of(rows: &[usize]) -> usize {
    rows.iter().map(|i| 1 << i).sum()
}

/// Returns the supports that are allowed, as sets of bits.
fn supports(n: usize, allowed: &Allowed) -> Vec<usize> {
    let (required, free) = (all_of(&allowed.required), all_of(&allowed.free));
    (0..1usize << n)
        .filter(|s| s & required == required && s & !(required | free) == 0)
        .filter(|s| s.count_ones() as usize <= allowed.size)
        .collect()
}

/// Returns the sum of the r largest eigenvalues on a set of rows.
fn value(b: &Array2<f64>, r: usize, set: usize) -> f64 {
    let rows = members(set);
    let block = Array2::from_shape_fn((rows.len(), rows.len()), |(i, j)| b[[rows[i], rows[j]]]);
    let values = symmetric_eigenvalues(block.view());
    values.iter().rev().take(r).sum()
}

fn best(b: &Array2<f64>, r: usize, sets: impl Iterator<Item = usize>) -> f64 {
    sets.filter(|s| s.count_ones() as usize >= r).map(|s| value(b, r, s)).fold(f64::NEG_INFINITY, f64::max)
}

const WHOLE: Effort<'static> =
    Effort { tolerance: 0.0, enough: f64::NEG_INFINITY, nodes: 1000, work: f64::INFINITY, go_on: &|| true };

fn branching<'a>(b: &'a Array2<f64>, r: usize, size: usize, effort: &'a Effort<'a>) -> Branching<'a> {
    Branching { b, r, size, effort, found: Vec::new(), nodes: 0, work: 0.0 }
}

/// Returns all ways to leave out, allow and require the rows, with at most `size` required ones.
fn ways(n: usize, size: usize) -> Vec<Allowed> {
    let mut all = Vec::new();
    for code in 0..3usize.pow(n as u32) {
        let state = |i: usize| code / 3usize.pow(i as u32) % 3;
        let of = |k: usize| (0..n).filter(|&i| state(i) == k).collect::<Vec<_>>();
        if of(2).len() <= size {
            all.push(Allowed { size, required: of(2), free: of(1) });
        }
    }
    all
}

#[test]
fn supports_fit_as_their_definition_says() {
    let n = 4;
    for size in 1..=n {
        for allowed in ways(n, size) {
            let sets = supports(n, &allowed);
            for rows in 0..1usize << n {
                let fits = sets.iter().any(|s| s & rows == rows);
                assert_eq!(allowed.fits(&members(rows)), fits, "{allowed:?} {rows:b}");
            }
            let union = sets.iter().fold(0, |all, s| all | s);
            assert_eq!(allowed.is_single(), sets.contains(&union), "{allowed:?}");
        }
    }
}

/// The bound of rows is the sum of the r largest B_ii + Σ_j |B_ij|, with (k + r + 2) ulp for rounding.
#[test]
fn bounds_of_rows_are_those_of_their_formula() {
    let n = 5;
    for seed in 0..4 {
        let b = integers(n, seed);
        for size in 2..=4 {
            for r in 1..=2 {
                let search = branching(&b, r, size, &WHOLE);
                for allowed in ways(n, size - 1) {
                    let (required, free) = (&allowed.required, &allowed.free);
                    let (s, q) = (required.len(), size - required.len());
                    if free.len() <= q {
                        continue;
                    }
                    let end = |i: usize| {
                        let sizes = |rows: &[usize]| -> Vec<f64> {
                            let others = rows.iter().filter(|&&j| j != i);
                            let mut sizes: Vec<f64> = others.map(|&j| b[[i, j]].abs()).collect();
                            sizes.sort_by(|a, b| b.total_cmp(a));
                            sizes
                        };
                        let own = usize::from(!required.contains(&i));
                        let fixed: f64 = sizes(required).iter().sum();
                        fixed + sizes(free).iter().take(q - own).sum::<f64>()
                    };
                    let rows = [&required[..], free].concat();
                    let mut ends: Vec<(f64, f64)> =
                        (rows.iter()).map(|&i| (b[[i, i]] + end(i), b[[i, i]].abs() + end(i))).collect();
                    ends.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)));
                    let exact: f64 = ends.iter().take(r).map(|e| e.0).sum();
                    let sizes: f64 = ends.iter().take(r).map(|e| e.1).sum();
                    let found = search.by_rows(required, free);
                    let ulp = f64::EPSILON * (size + r + 2) as f64 * sizes;
                    assert!((found - exact - ulp).abs() <= 0.45 * ulp + 1e-300, "{seed} {allowed:?}");
                    let least = Allowed { size, ..allowed.clone() };
                    assert!(found >= best(&b, r, supports(n, &least).into_iter()) - 1e-12);
                    assert!(s < size);
                }
            }
        }
    }
}

/// Σ λ_l a_l is above every support, and exact for a diagonal B; below its floor it is rounded up.
#[test]
fn bounds_of_eigenvalues_are_above_every_support() {
    let n = 5;
    for seed in 0..6 {
        for (b, exact) in [(indefinite(n, seed), false), (Array2::from_diag(&indefinite(n, seed).diag()), true)] {
            for size in 2..=4 {
                for r in 1..=2 {
                    for allowed in ways(n, size - 1) {
                        let (required, free) = (&allowed.required, &allowed.free);
                        if free.len() <= size - required.len() || free.len() < n - 2 {
                            continue;
                        }
                        let mut search = branching(&b, r, size, &WHOLE);
                        let found = search.by_eigen(required, free, f64::NEG_INFINITY);
                        let rows = [&required[..], free].concat();
                        let cube = (rows.len() as f64).powi(3);
                        assert_eq!(search.work, EIGEN * cube);
                        let least = Allowed { size, ..allowed.clone() };
                        let most = best(&b, r, supports(n, &least).into_iter());
                        assert!(found >= most - 1e-12, "{seed} {allowed:?}");
                        let all = value(&b, r, all_of(&rows));
                        assert!(found <= all + 1e-12);
                        assert!(
                            !exact || size < required.len() + r || (found - most).abs() < 1e-12,
                            "{seed} {allowed:?}"
                        );
                        let block = search.block(&rows);
                        let (values, vectors) = symmetric_eigen(block.view());
                        let error = 2.0 * r as f64 * eigen_error(&block, &values, &vectors);
                        let above = search.by_eigen(required, free, found) - found;
                        assert!((above - error).abs() < 0.1 * error);
                    }
                }
            }
        }
    }
}

/// Where B = 11ᵀ, every eigenvector entry counts 1/n, and the bound for k rows is k.
#[test]
fn bounds_of_eigenvalues_use_the_largest_entries() {
    for n in 3..=6 {
        let b = Array2::from_elem((n, n), 1.0);
        for size in 2..n {
            let mut search = branching(&b, 1, size, &WHOLE);
            for required in 0..size {
                let (required, free): (Vec<usize>, Vec<usize>) = (0..n).partition(|&i| i < required);
                let found = search.by_eigen(&required, &free, f64::NEG_INFINITY);
                assert!((found - size as f64).abs() < 1e-12, "{n} {size}");
            }
        }
    }
}

/// Returns a node of the relaxation on all rows.
fn relaxed(search: &mut Branching<'_>, required: &[usize], steps: usize) -> Node {
    let n = search.b.nrows();
    let rows: Vec<usize> = (0..n).collect();
    let block = search.block(&rows);
    let radius = search.size as f64 * (search.r as f64).sqrt();
    let admm = Admm::new(&block, search.r, Entries::Within(radius));
    let floor = f64::NEG_INFINITY;
    search.relax(required.to_vec(), rows, block, admm, (steps, floor)).unwrap()
}

#[test]
fn relaxed_bounds_are_above_every_support() {
    let n = 6;
    let mut better = 0;
    for seed in 0..10 {
        let b = indefinite(n, seed);
        for (r, required) in [(1, vec![]), (1, vec![2]), (2, vec![]), (2, vec![1, 4])] {
            let size = 3;
            let mut search = branching(&b, r, size, &WHOLE);
            let free: Vec<usize> = (0..n).filter(|i| !required.contains(i)).collect();
            let allowed = Allowed { size, required: required.clone(), free: free.clone() };
            let exact = best(&b, r, supports(n, &allowed).into_iter());
            let mut before = f64::INFINITY;
            for steps in [0, 10, 200] {
                search.work = 0.0;
                let node = relaxed(&mut search, &required, steps);
                assert!(node.bound >= exact - 1e-11, "{seed} {r} {steps}");
                // Two looks at the bound of 0 and 10 steps, and one at each tenth step.
                let looks = (steps / 10 + 1) as f64;
                let cube = (n as f64).powi(3);
                let known = if steps == 0 { 2.0 * EIGEN * 27.0 } else { search.work };
                let least = (STEP * steps as f64 + EIGEN * looks) * cube;
                assert!(search.work == least || search.work == least + 2.0 * EIGEN * 27.0);
                assert!(steps > 0 || search.work == least + known);
                let mut sorted = node.free.clone();
                sorted.sort_unstable();
                assert_eq!((sorted, &node.required), (free.clone(), &required));
                let y = node.relaxed.admm.solution();
                assert!(node.free.windows(2).all(|w| y[[w[0], w[0]]] >= y[[w[1], w[1]]]));
                match steps {
                    0 => before = node.bound,
                    _ => better += usize::from(node.bound < before),
                }
                // U = 0 leaves the eigenvalues of B.
                let all = value(&b, r, (1 << n) - 1);
                assert!(steps > 0 || (node.bound - all).abs() < 1e-12 * all.abs());
            }
            assert_eq!((search.nodes, before < f64::INFINITY), (3, true));
            // A floor above the bound closes the node at the first look.
            let rows: Vec<usize> = (0..n).collect();
            let admm = Admm::new(&b, r, Entries::Within(3.0 * (r as f64).sqrt()));
            let (spent, all) = (search.work, (50, f64::INFINITY));
            assert!(search.relax(required, rows, b.clone(), admm, all).is_none());
            assert!(search.work - spent <= 2.0 * EIGEN * 216.0);
        }
    }
    assert!(better > 40, "{better} of 80");
}

/// A row is of use if the larger eigenvalue of ((B_ii, b), (b, φ)) is above the floor.
#[test]
fn useful_rows_are_those_of_the_two_by_two_matrix() {
    let (n, size) = (7, 3);
    let (mut kept, mut left) = (0, 0);
    for seed in 0..20 {
        // Three rows with a large sum, which no other three rows reach.
        let planted = |i: usize| [0, 2, 5].contains(&i);
        let b = Array2::from_shape_fn((n, n), |(i, j)| if planted(i) && planted(j) { 10.0 } else { 0.0 })
            + indefinite(n, seed) * 0.4;
        let mut search = branching(&b, 1, size, &WHOLE);
        let node = relaxed(&mut search, &[], 100);
        let whole = best(&b, 1, (1..1usize << n).filter(|s| s.count_ones() <= 3));
        let fewer = node.relaxed.largest + node.relaxed.admm.conjugate() * 2.0 / 3.0;
        let pairs = best(&b, 1, (1..1usize << n).filter(|s| s.count_ones() <= 2));
        assert!(fewer >= pairs - 1e-11);
        for part in [0.0, 0.1, 0.25] {
            let floor = whole - part * whole.abs();
            let found = search.useful(&node, floor);
            for i in 0..n {
                let mut squares: Vec<f64> = (0..n).filter(|&j| j != i).map(|j| b[[i, j]] * b[[i, j]]).collect();
                squares.sort_by(|a, b| b.total_cmp(a));
                let around = squares[0] + squares[1];
                let (p, q) = (b[[i, i]], fewer);
                let larger = 0.5 * (p + q + (p - q).hypot(2.0 * around.sqrt()));
                assert_eq!(found.contains(&i), larger > floor, "{seed} {i}");
                let with = (1..1usize << n).filter(|s| s.count_ones() <= 3 && s >> i & 1 == 1);
                assert!(found.contains(&i) || best(&b, 1, with) <= floor);
                kept += usize::from(found.contains(&i));
                left += usize::from(!found.contains(&i));
            }
        }
    }
    assert!(kept > 50 && left > 50, "{kept} {left}");
}

#[test]
fn the_best_supports_are_kept_in_order() {
    let n = 6;
    for r in 1..=2 {
        let b = indefinite(n, 7);
        let mut search = branching(&b, r, 3, &WHOLE);
        let mut work = 0.0;
        let sets: Vec<usize> = (1..1usize << n).filter(|s| s.count_ones() <= 3).collect();
        // Twice, in two orders: a support is evaluated again only after it has been dropped.
        for &set in &sets {
            let mut rows = members(set);
            rows.reverse();
            search.offer(&rows);
            if rows.len() >= r {
                work += 2.0 * EIGEN * (rows.len() as f64).powi(3);
            }
        }
        assert_eq!(search.work, work);
        let mut values: Vec<f64> =
            (sets.iter()).filter(|s| s.count_ones() as usize >= r).map(|&s| value(&b, r, s)).collect();
        values.sort_by(|a, b| b.total_cmp(a));
        assert_eq!(search.found.len(), RETURNED);
        for (found, value) in search.found.iter().zip(&values) {
            assert!(found.value >= *value - 1e-13 && found.value <= value + 1e-12);
        }
        for known in search.found.clone() {
            search.offer(&known.rows);
            let block = search.block(&known.rows);
            let u = Array1::from(known.entries);
            let rest = block.dot(&u) - &u * value(&b, 1, all_of(&known.rows));
            assert!(rest.iter().all(|v| v.abs() < 1e-12));
        }
        assert_eq!((search.work, search.found.len()), (work, RETURNED));
        assert_eq!(search.floor(), search.found[0].value);
    }
}

#[test]
fn the_first_of_equal_supports_stays_first() {
    let b = Array2::eye(4);
    let mut search = branching(&b, 1, 2, &WHOLE);
    for row in [2, 0, 3] {
        search.offer(&[row]);
    }
    let rows: Vec<usize> = search.found.iter().map(|c| c.rows[0]).collect();
    assert_eq!(rows, [2, 0, 3]);
}

#[test]
fn floors_and_limits_are_those_of_the_effort() {
    let b = indefinite(4, 1);
    for (tolerance, enough) in [(0.5, f64::NEG_INFINITY), (0.0, 1e3), (0.25, -1e3)] {
        let effort = Effort { tolerance, enough, ..WHOLE };
        let mut search = branching(&b, 1, 2, &effort);
        assert_eq!(search.floor(), enough);
        search.offer(&[0, 1]);
        let best = search.found[0].value;
        assert_eq!(search.floor(), (best + tolerance).max(enough));
    }
    for (work, limit, time, ended) in
        [(1.0, 2.0, true, false), (2.0, 2.0, true, true), (3.0, 2.0, true, true), (1.0, 2.0, false, true)]
    {
        let effort = Effort { work: limit, go_on: &|| time, ..WHOLE };
        let mut search = branching(&b, 1, 2, &effort);
        search.work = work;
        assert_eq!(search.ended(), ended);
    }
}

/// From the two smallest entries of a rank-one B, power steps reach the two largest ones.
#[test]
fn power_steps_reach_the_largest_entries() {
    let v = ndarray::array![1.0, 2.0, 4.0, 8.0, -16.0];
    let b = Array2::from_shape_fn((5, 5), |(i, j)| v[i] * v[j]);
    for (required, rows) in [(vec![], [3, 4]), (vec![1], [1, 4])] {
        let free: Vec<usize> = (0..5).filter(|i| !required.contains(i)).collect();
        let allowed = Allowed { size: 2, required, free };
        let mut search = branching(&b, 1, 2, &WHOLE);
        search.polish(vec![0, 1], &allowed);
        assert_eq!(search.found[0].rows, rows);
        let exact = rows.iter().map(|&i| v[i] * v[i]).sum::<f64>();
        assert!((search.found[0].value - exact).abs() < 1e-11);
    }
}

/// The children of a node share its supports: with the first free row, or without.
#[test]
fn children_split_a_node() {
    let n = 6;
    for seed in 0..8 {
        for (r, size) in [(1, 2), (1, 3), (2, 3)] {
            let b = indefinite(n, seed);
            let mut search = branching(&b, r, size, &WHOLE);
            let node = relaxed(&mut search, &[], 20);
            let row = node.free[0];
            let nodes = search.nodes;
            let with = search.with(&node, f64::NEG_INFINITY).unwrap();
            assert_eq!(search.nodes, nodes + 1);
            assert_eq!((&with.required, &with.free[..]), (&vec![row], &node.free[1..]));
            let without = search.without(&node, f64::NEG_INFINITY).unwrap();
            let mut rest = without.free.clone();
            rest.sort_unstable();
            let others: Vec<usize> = (0..n).filter(|&i| i != row).collect();
            assert_eq!((without.required.len(), rest), (0, others));
            for (child, bit) in [(&with, 1), (&without, 0)] {
                let sets = (1..1usize << n).filter(|s| s.count_ones() as usize <= size && s >> row & 1 == bit);
                assert!(child.bound >= best(&b, r, sets) - 1e-11 && child.bound <= node.bound);
                // A child at or below the floor is closed.
                let mut again = branching(&b, r, size, &WHOLE);
                let closed = match bit {
                    1 => again.with(&node, child.bound),
                    _ => again.without(&node, child.bound + 1e-9),
                };
                assert!(closed.is_none());
            }
            // The last row that may be required makes a support, which is kept.
            let last = Node {
                required: node.free[1..size].to_vec(),
                free: [&node.free[..1], &node.free[size..]].concat(),
                ..node
            };
            let mut search = branching(&b, r, size, &WHOLE);
            assert!(search.with(&last, f64::NEG_INFINITY).is_none());
            let mut rows = [&last.required[..], &[row]].concat();
            rows.sort_unstable();
            assert_eq!(search.found[0].rows, rows);
        }
    }
}

/// With one node, a sum that is enough, or starts, the search ends sooner, and its bound stays valid.
#[test]
fn a_search_with_less_to_do_does_less() {
    let n = 9;
    for seed in 0..6 {
        for (r, size) in [(1, 4), (2, 4)] {
            let b = indefinite(n, seed);
            let allowed = Allowed { size, required: Vec::new(), free: (0..n).collect() };
            let exact = best(&b, r, supports(n, &allowed).into_iter());
            let whole = sparse_maximum((&b, r), &allowed, &[], &WHOLE);
            assert!((whole.above - exact).abs() < 1e-11 * exact.abs());
            assert!((whole.found[0].value - exact).abs() < 1e-11 * exact.abs());
            let least = Effort { nodes: 1, ..WHOLE };
            let one = sparse_maximum((&b, r), &allowed, &[], &least);
            assert!(one.nodes == 1 && one.above >= exact - 1e-11 && one.work <= whole.work);
            let enough = Effort { enough: exact + 1e3, ..WHOLE };
            let found = sparse_maximum((&b, r), &allowed, &[], &enough);
            assert!(found.nodes <= 2 && found.above <= exact + 1e3 + 1e-9);
            let warm = vec![whole.found[0].rows.clone()];
            let found = sparse_maximum((&b, r), &allowed, &warm, &least);
            assert_eq!(found.found[0].rows, whole.found[0].rows);
        }
    }
    // One support alone, whose value is the bound.
    let b = indefinite(4, 3);
    for allowed in [
        Allowed { size: 2, required: vec![1, 3], free: vec![0] },
        Allowed { size: 3, required: vec![1], free: vec![3] },
    ] {
        let found = sparse_maximum((&b, 1), &allowed, &[], &WHOLE);
        assert!((found.above - value(&b, 1, 0b1010)).abs() < 1e-12);
        assert_eq!((found.nodes, found.found.len()), (0, 1));
    }
}

mod rounding;
