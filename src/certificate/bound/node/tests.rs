//! Tests of the work on a node against enumeration and against the formulas of its bounds.

use ndarray::Array1;

use super::super::relaxation::ky_fan;
use super::*;
use crate::linalg::symmetric_eigenvalues;
use crate::start;

const N: usize = 6;

fn indefinite(seed: u64) -> Array2<f64> {
    let a = start::random(N, N, seed) * &Array1::linspace(0.5, 3.0, N);
    &a + &a.t()
}

fn allowed(size: usize, required: &[usize]) -> Allowed {
    Allowed { size, required: required.to_vec(), free: (0..N).filter(|i| !required.contains(i)).collect() }
}

/// Returns the largest eigenvalue over the supports of at most `size` rows that contain `required`.
fn maximum(b: &Array2<f64>, size: usize, required: &[usize]) -> f64 {
    let sets = (1..1usize << N).filter(|s| s.count_ones() as usize <= size);
    sets.filter(|s| required.iter().all(|i| s >> i & 1 == 1))
        .map(|s| {
            let rows: Vec<usize> = (0..N).filter(|i| s >> i & 1 == 1).collect();
            let block = b.select(ndarray::Axis(0), &rows).select(ndarray::Axis(1), &rows);
            let values = symmetric_eigenvalues(block.view());
            values[values.len() - 1]
        })
        .fold(f64::NEG_INFINITY, f64::max)
}

fn reach<'a>(threads: &'a Threads, value: f64, closed: f64) -> Reach<'a> {
    Reach { value, closed, nodes: 1000, work: f64::INFINITY, threads, go_on: &|| true }
}

fn node(classes: Vec<Class>) -> Node {
    Node { bound: 1e3, classes, known: Vec::new(), root: true, left: None }
}

fn class(columns: usize, allowed: Allowed) -> Class {
    Class { columns, allowed }
}

#[test]
fn efforts_share_the_gap_and_the_work() {
    let threads = Threads::serial();
    for (n, nodes) in [(6, 20_000), (100, 2000), (400, 50)] {
        for r in 1..=2 {
            let shifted = Shifted::new(Array2::eye(n), r);
            let limits = Reach { work: 1000.0, ..reach(&threads, 0.0, 0.0) };
            let effort = shifted.effort(8.0, &limits, 300.0);
            assert_eq!(effort.tolerance, 2.0 / r as f64);
            assert_eq!((effort.nodes, effort.work), (nodes, 700.0));
            assert_eq!(effort.enough, f64::NEG_INFINITY);
        }
    }
}

#[test]
fn rounding_of_sums_is_eight_ulp_of_the_norm() {
    let a = Array2::from_elem((2, 2), 3.0);
    for r in 1..=3 {
        assert_eq!(sum_rounding(&a, r), 48.0 * r as f64 * f64::EPSILON);
    }
}

/// A node begins with a unit vector for every allowed row and its inherited vectors, inside the constraints.
#[test]
fn nodes_begin_inside_their_constraints() {
    let c = indefinite(1) + Array2::<f64>::eye(N) * 9.0;
    let shifted = Shifted::new(c.clone(), 3);
    for (first, second) in [
        (allowed(2, &[]), allowed(3, &[])),
        (allowed(1, &[]), allowed(2, &[1])),
        (allowed(2, &[0, 4]), allowed(2, &[3])),
    ] {
        for own in [false, true] {
            let mut at = node(vec![class(2, first.clone()), class(1, second.clone())]);
            if own {
                at.known = vec![Known { class: 1, rows: vec![1], entries: vec![1.0], value: c[[1, 1]], weight: 0.07 }];
            }
            let begun = shifted.begin(&at);
            for (k, alike) in at.classes.iter().enumerate() {
                let rows: Vec<usize> = (0..N).filter(|&i| alike.allowed.fits(&[i])).collect();
                let share = 0.25 * f64::min(alike.columns as f64 / rows.len() as f64, 0.5);
                let of: Vec<&Known> = begun.iter().filter(|u| u.class == k).collect();
                let mut found: Vec<usize> = of.iter().map(|u| u.rows[0]).collect();
                found.sort_unstable();
                assert_eq!(found, rows, "each row once");
                for u in of {
                    let inherited = own && k == 1 && u.rows == [1];
                    let weight = if inherited { 0.07 } else { share };
                    assert!((u.weight - weight).abs() < 1e-15);
                    assert_eq!((u.value, &u.entries[..]), (c[[u.rows[0]; 2]], &[1.0][..]));
                }
            }
            let mut master = Master::new(N, vec![2.0, 1.0], begun);
            assert!(master.centre(0.1, &|| true).is_some());
        }
    }
}

/// The effort of a maximum that is searched to its end.
fn exact_effort() -> Effort<'static> {
    Effort { tolerance: 0.0, enough: f64::NEG_INFINITY, nodes: 1000, work: f64::INFINITY, go_on: &|| true }
}

/// The bound at Λ is the sum of the r largest eigenvalues of Λ and of the sparse maxima of C − Λ.
#[test]
fn bounds_at_a_multiplier_are_sums_of_maxima() {
    let mut closable = 0;
    for seed in 0..6 {
        let c = indefinite(seed) + Array2::<f64>::eye(N) * 9.0;
        let shifted = Shifted::new(c.clone(), 3);
        let at = node(vec![class(2, allowed(2, &[])), class(1, allowed(3, &[1]))]);
        let mut master = Master::new(N, vec![2.0, 1.0], shifted.begin(&at));
        let centre = master.centre(0.2, &|| true).unwrap();
        let b = &c - &centre.lambda;
        let exact = [maximum(&b, 2, &[]), maximum(&b, 3, &[1])];
        let sum = ky_fan(&centre.lambda, 3) + 2.0 * exact[0] + exact[1];
        let effort = exact_effort();
        let found = shifted.maxima(&at, &master, &centre, (effort, f64::NEG_INFINITY));
        let rounding = sum_rounding(&c, 3) + sum_rounding(&centre.lambda, 3);
        assert!(found.above >= sum + 0.9 * rounding && found.above <= sum + 1e-10, "{seed}");
        let parts = ky_fan_above(&centre.lambda, 3) + 2.0 * found.maxima[0] + found.maxima[1];
        assert!((found.above - parts - rounding).abs() < 0.2 * rounding, "{seed}");
        for (k, exact) in exact.iter().enumerate() {
            assert!((found.maxima[k] - exact).abs() < 1e-11);
            for new in &found.found[k] {
                assert!(at.classes[k].allowed.fits(&new.rows));
            }
        }
        let parts =
            [(0, allowed(2, &[])), (1, allowed(3, &[1]))].map(|(_, a)| sparse_maximum((&b, 1), &a, &[], &effort).work);
        assert!(found.work > 0.0 && found.work <= 3.0 * (parts[0] + parts[1]));
        // A node that can be closed is closed by less work.
        for more in [1e-6, 0.1, 10.0] {
            let closed = sum + more;
            let close = shifted.maxima(&at, &master, &centre, (effort, closed));
            let excess: f64 = (centre.multipliers.iter().zip([2.0, 1.0])).map(|(phi, columns)| phi * columns).sum();
            let spare = closed - ky_fan(&centre.lambda, 3) - excess;
            assert!(close.above >= sum - 1e-11, "{seed}");
            let room = |k: usize| centre.multipliers[k] + spare / 3.0 - exact[k] > 1e-9;
            if spare > 1e-9 && room(0) && room(1) {
                closable += 1;
                assert!(close.above <= closed, "{seed} {more}");
            }
        }
    }
    assert!(closable > 3, "{closable}");
}

/// A row is left out if the larger eigenvalue of ((B_ii, b), (b, φ)) is below the maximum less the gap.
#[test]
fn rows_that_no_good_support_has_are_left_out() {
    let (mut kept, mut left) = (0, 0);
    for seed in 0..10 {
        let spread = Array2::from_diag(&indefinite(seed + 40).diag()) * 3.0;
        let c = indefinite(seed) + spread;
        let shifted = Shifted::new(c.clone(), 2);
        let lambda = indefinite(seed + 20) * 0.1;
        let b = &c - &lambda;
        for size in 1..=3 {
            let above = maximum(&b, size, &[]);
            let fewer = if size > 1 { maximum(&b, size - 1, &[]) } else { f64::NEG_INFINITY };
            for gap in [0.01, 0.5, 3.0] {
                let dual = Dual { lambda: lambda.clone(), maxima: vec![above] };
                let mut classes = vec![class(2, allowed(size, &[]))];
                let effort = exact_effort();
                let work = shifted.screen(&mut classes, &dual, gap, &effort);
                assert_eq!(work > 0.0, size > 1);
                let least = above - gap;
                for i in 0..N {
                    let mut squares: Vec<f64> = (0..N).filter(|&j| j != i).map(|j| b[[i, j]] * b[[i, j]]).collect();
                    squares.sort_by(|a, b| b.total_cmp(a));
                    let around: f64 = squares.iter().take(size - 1).sum();
                    let (p, q) = (b[[i, i]], fewer);
                    let larger = match size {
                        1 => p,
                        _ => 0.5 * (p + q + (p - q).hypot(2.0 * around.sqrt())),
                    };
                    let stays = classes[0].allowed.free.contains(&i);
                    assert_eq!(stays, larger >= least, "{seed} {size} {i}");
                    assert!(stays || maximum(&b, size, &[i]) < least);
                    kept += usize::from(stays);
                    left += usize::from(!stays);
                }
            }
        }
    }
    assert!(kept > 100 && left > 100, "{kept} {left}");
}

/// A row stays within a margin of the threshold: for k = 2, 24 ulp of the maximum, of the value
/// that counts, of B_ii and of b².
#[test]
fn rows_near_the_threshold_stay() {
    for own in [0.0, -10.0] {
        let ulp = 24.0 * f64::EPSILON;
        // (1 − B_ii)(1 − φ) = b² for φ = 0: the others have no diagonal entry.
        let square = 1.0 - own;
        let margin = ulp * ((2.0 - own) * (2.0 - own) / square + 1.0);
        for (part, stays) in [(0.0, true), (0.9, true), (1.1, false)] {
            let entry = f64::sqrt(square * (1.0 - part * margin));
            let mut c = Array2::zeros((N, N));
            c[[0, 0]] = own;
            (c[[0, 1]], c[[1, 0]]) = (entry, entry);
            let shifted = Shifted::new(c.clone(), 1);
            let dual = Dual { lambda: Array2::zeros((N, N)), maxima: vec![1.0] };
            let mut classes = vec![class(1, allowed(2, &[]))];
            shifted.screen(&mut classes, &dual, 0.0, &exact_effort());
            let free = &classes[0].allowed.free;
            assert_eq!(free.contains(&0), stays, "{own} {part}");
        }
    }
}

/// One column: the node's bound is the sparse maximum of C itself, and its work grows with the effort.
#[test]
fn one_column_is_solved_at_its_root() {
    let threads = Threads::serial();
    for seed in 0..6 {
        let c = indefinite(seed) + Array2::<f64>::eye(N) * 12.0;
        let shifted = Shifted::new(c.clone(), 1);
        let exact = maximum(&c, 2, &[]);
        for closed in [exact * (1.0 - 1e-7), exact + 0.5] {
            let mut at = node(vec![class(1, allowed(2, &[]))]);
            at.bound = ky_fan(&c, 1) + 0.1;
            let mut told: Vec<f64> = Vec::new();
            let limits = reach(&threads, exact, closed);
            let solved = shifted.solve(&at, &limits, &mut |bound, lambda| {
                // Every bound that is told is that of its Λ.
                let sum = ky_fan(lambda, 1) + maximum(&(&c - lambda), 2, &[]);
                assert!(bound >= sum - 1e-9 && bound >= exact - 1e-9);
                told.push(bound);
            });
            assert!(told.windows(2).all(|w| w[1] < w[0]), "{told:?}");
            // A node whose bound is low enough has nothing to tell.
            let last = told.last().copied().unwrap_or(at.bound);
            assert_eq!((last, told.is_empty()), (solved.bound, at.bound <= closed));
            assert_eq!(solved.dual.is_some(), !told.is_empty());
            assert!(solved.cut.is_none());
            assert!(solved.bound >= exact - 1e-9 && solved.work > 0.0);
            // The relaxation of one column is tight: the bound is exact, or low enough to close the node.
            let most = if closed > exact { closed } else { exact * (1.0 + 1e-6) };
            assert!(solved.bound <= most || told.len() > 1, "{seed} {} {exact}", solved.bound);
        }
    }
}

/// A node that a work limit interrupts keeps its barrier parameter. Resumed, it ends at a bound that is no worse.
#[test]
fn cut_nodes_continue() {
    let threads = Threads::serial();
    let c = indefinite(3) + Array2::<f64>::eye(N) * 12.0;
    let shifted = Shifted::new(c.clone(), 2);
    let mut at = node(vec![class(2, allowed(2, &[]))]);
    at.bound = ky_fan(&c, 2);
    at.root = false;
    let limits = reach(&threads, 0.0, 0.0);
    let whole = shifted.solve(&at, &limits, &mut |_, _| {});
    assert!(whole.cut.is_none());
    for part in [0.0, 0.1, 0.5, 0.9] {
        let few = Reach { work: part * whole.work, ..limits };
        let cut = shifted.solve(&at, &few, &mut |_, _| {});
        let Some(barrier) = cut.cut else {
            assert!(part > 0.1 && cut.bound >= whole.bound * (1.0 - 1e-9));
            continue;
        };
        assert!(cut.bound >= whole.bound * (1.0 - 1e-9) && cut.work <= whole.work);
        let rest = Node {
            known: cut.master.known,
            bound: cut.bound,
            left: Some(Left { barrier, dual: cut.dual }),
            ..at.clone()
        };
        let end = shifted.solve(&rest, &limits, &mut |_, _| {});
        assert!(end.cut.is_none() && end.bound <= cut.bound);
    }
    let never = Reach { go_on: &|| false, ..limits };
    let cut = shifted.solve(&at, &never, &mut |_, _| {});
    assert!(cut.cut.is_some() && cut.bound == at.bound && cut.dual.is_none());
}

mod rounds;
