//! Tests of the parts of the bound against enumeration and against their invariants.

use ndarray::Array2;

use super::master::{Known, Master, quadratic};
use super::maximum::{Allowed, Effort, sparse_maximum};
use super::relaxation::{Admm, EIGEN, Entries, ky_fan, ky_fan_above, largest_above};
use super::tree::shares;
use super::{BoundOptions, Method, Restriction, lower_bound};
use crate::linalg::symmetric_eigen;
use crate::objective::Quadratic;
use crate::solver::Unwatched;
use crate::start;
use crate::support::Cardinality;
use crate::threads::Threads;

fn indefinite(n: usize, seed: u64) -> Array2<f64> {
    let a = start::random(n, n, seed) * 3.0;
    &a + &a.t()
}

fn largest_on(b: &Array2<f64>, r: usize, rows: &[usize]) -> f64 {
    let block = Array2::from_shape_fn((rows.len(), rows.len()), |(i, j)| b[[rows[i], rows[j]]]);
    ky_fan(&block, r)
}

/// Returns the maximum over all allowed supports.
fn enumerated(b: &Array2<f64>, r: usize, allowed: &Allowed) -> f64 {
    let others = 0..1usize << allowed.free.len();
    others
        .map(|mask| {
            let chosen = (allowed.free.iter().enumerate()).filter(|(bit, _)| mask >> bit & 1 == 1);
            let mut rows = allowed.required.clone();
            rows.extend(chosen.map(|(_, &row)| row));
            rows
        })
        .filter(|rows| (r..=allowed.size).contains(&rows.len()))
        .map(|rows| largest_on(b, r, &rows))
        .fold(f64::NEG_INFINITY, f64::max)
}

#[test]
fn sparse_maxima_are_those_of_enumeration() {
    for seed in 0..90 {
        let n = 4 + (seed % 7) as usize;
        let r = 1 + (seed / 30) as usize;
        let b = indefinite(n, seed);
        let required: Vec<usize> = (0..n).filter(|i| (seed >> i) % 5 == 4).collect();
        let free = (0..n).filter(|i| !required.contains(i) && (seed + *i as u64) % 6 != 5);
        let allowed = Allowed {
            size: required.len().max(r - 1) + 1 + (seed % 3) as usize,
            free: free.collect(),
            required,
        };
        let exact = enumerated(&b, r, &allowed);
        if exact.is_infinite() {
            continue;
        }
        let slack = 1e-12 * exact.abs().max(1.0);
        for (nodes, tolerance) in [(1, 0.0), (3, 0.0), (100_000, 0.0), (100_000, 0.1)] {
            let effort = Effort {
                tolerance,
                enough: f64::NEG_INFINITY,
                nodes,
                work: f64::INFINITY,
                go_on: &|| true,
            };
            let found = sparse_maximum((&b, r), &allowed, &[], &effort);
            assert!(
                found.above >= exact - slack,
                "{seed}: {} {exact}",
                found.above
            );
            if nodes > 3 {
                assert!(found.above <= exact + tolerance + slack, "{seed}");
            }
            for u in &found.found {
                assert!(allowed.fits(&u.rows));
                assert!((largest_on(&b, r, &u.rows) - u.value).abs() <= slack * 10.0);
                let leading = largest_on(&b, 1, &u.rows);
                assert!((quadratic(&b, &u.rows, &u.entries) - leading).abs() <= slack * 10.0);
            }
        }
    }
}

#[test]
fn the_relaxation_is_above_every_projection() {
    let (n, r) = (8, 2);
    let c = indefinite(n, 5);
    let x = start::random(n, r, 6);
    let p = x.dot(&x.t());
    let gain = (&c * &p).sum();
    let size: f64 = p.iter().map(|v| v.abs()).sum();
    for (entries, own) in [
        (Entries::Within(size), gain),
        (Entries::Within(2.0 * size), gain),
        (Entries::Penalized(0.7), gain - 0.7 * size),
        (Entries::Free, gain),
    ] {
        let mut admm = Admm::new(&c, r, entries);
        let mut bounds = Vec::new();
        for _ in 0..400 {
            assert!(admm.bound(&c) >= own - 1e-10);
            bounds.push(admm.bound(&c));
            admm.step(&c);
        }
        // At convergence the bound and the value of the relaxation agree.
        let y = admm.solution();
        let inside: f64 = y.iter().map(|v| v.abs()).sum();
        let penalty = if let Entries::Penalized(penalty) = entries {
            penalty * inside
        } else {
            0.0
        };
        let last = bounds[bounds.len() - 1];
        assert!(
            (last - ((&c * y).sum() - penalty)).abs() < 1e-3 * last.abs(),
            "{entries:?}"
        );
    }
    let (low, high) = (ky_fan(&c, 3), ky_fan_above(&c, 3));
    assert!(low <= high && high - low < 1e-11 * high.abs());
}

#[test]
fn largest_eigenvalues_are_bounded_closely() {
    for seed in 0..40 {
        let n = 1 + (seed % 9) as usize;
        let mut a = indefinite(n, seed);
        if seed % 3 == 0 {
            // A multiple eigenvalue.
            a = Array2::eye(n) * (seed as f64 - 20.0);
        }
        for r in 1..=n.min(3) {
            let exact = ky_fan(&a, r);
            let size = crate::linalg::square(&a).sqrt();
            let above = largest_above(&a, r, exact);
            assert!(
                above >= exact && above <= exact + 1e-12 * size,
                "{seed} {r}"
            );
            // The bound holds for any computed value, also one that is too small.
            assert!(largest_above(&a, r, exact - size) >= exact - 1e-14 * size);
        }
    }
}

#[test]
fn a_maximum_out_of_time_or_work_ends_at_once() {
    let n = 40;
    let b = indefinite(n, 3);
    let allowed = Allowed {
        size: 6,
        required: Vec::new(),
        free: (0..n).collect(),
    };
    let best = |work: f64, go_on: &(dyn Fn() -> bool + Sync)| {
        let effort = Effort {
            tolerance: 0.0,
            enough: f64::NEG_INFINITY,
            nodes: 1000,
            work,
            go_on,
        };
        sparse_maximum((&b, 1), &allowed, &[], &effort)
    };
    let whole = best(f64::INFINITY, &|| true);
    for short in [best(f64::INFINITY, &|| false), best(0.0, &|| true)] {
        assert!(short.work <= 3.0 * EIGEN * (n as f64).powi(3));
        assert!(short.work < 0.1 * whole.work);
        assert!(short.above >= whole.above);
    }
}

/// Rows that are left out are in no support as good as the known one.
#[test]
fn rows_left_out_are_useless() {
    let mut left_out = 0;
    for seed in 0..24 {
        let (n, k) = (8, 2 + (seed % 3) as usize);
        let c = indefinite(n, 100 + seed);
        let with = |required: Vec<usize>| {
            let free = (0..n).filter(|i| !required.contains(i)).collect();
            let allowed = Allowed {
                size: k,
                required,
                free,
            };
            enumerated(&c, 1, &allowed)
        };
        let best = with(Vec::new());
        // A worse known point leaves fewer rows out.
        for worse in [0.0, 0.02] {
            let value = best - worse * best.abs();
            let smooth = Quadratic::new(-&c, None, None).unwrap();
            let count = Restriction::Cardinality(Cardinality::Total(k));
            let options = BoundOptions {
                gap_tol: 0.0,
                ..BoundOptions::new(-0.5 * value, 0.5 * value.abs())
            };
            let threads = Threads::serial();
            let bound = lower_bound(&smooth, 1, &count, &options, &threads, &mut Unwatched);
            for row in bound.unwrap().excluded {
                left_out += 1;
                assert!(with(vec![row]) < value, "{seed} {row}");
            }
        }
    }
    assert!(left_out > 20, "{left_out}");
}

#[test]
fn the_multipliers_bound_all_known_vectors() {
    let (n, c) = (6, indefinite(6, 9) + Array2::<f64>::eye(6) * 20.0);
    let unit = |class: usize, row: usize| Known {
        class,
        rows: vec![row],
        entries: vec![1.0],
        value: c[[row, row]],
        weight: 0.05,
    };
    let known = (0..2).flat_map(|class| (0..n).map(move |row| (class, row)));
    let known = known.map(|(class, row)| unit(class, row)).collect();
    let mut master = Master::new(n, vec![1.0, 2.0], known);
    let centre = master.centre(1e-3, &|| true).unwrap();
    assert!(symmetric_eigen(centre.lambda.view()).0[0] > 0.0);
    for u in &master.known {
        let own = u.value - quadratic(&centre.lambda, &u.rows, &u.entries);
        assert!(own <= centre.multipliers[u.class] + 1e-6);
    }
    for (class, columns) in [(0, 1.0), (1, 2.0)] {
        let used: f64 = master
            .known
            .iter()
            .filter(|u| u.class == class)
            .map(|u| u.weight)
            .sum();
        assert!(used > 0.9 * columns && used < columns);
    }
}

#[test]
fn shares_are_all_partitions() {
    assert_eq!(shares(10, 2, 13, 64).unwrap().len(), 5);
    assert_eq!(shares(9, 3, 13, 64).unwrap().len(), 7);
    assert_eq!(shares(6, 3, 2, 64).unwrap(), [[2, 2, 2]]);
    assert!(shares(60, 4, 60, 64).is_none());
}

#[test]
fn doors_are_closed_to_what_does_not_fit() {
    let smooth = Quadratic::new(indefinite(5, 1), None, None).unwrap();
    let options = BoundOptions::new(0.0, 1.0);
    let bound = |r: usize, restriction: Restriction, options: &BoundOptions| {
        let threads = Threads::serial();
        lower_bound(&smooth, r, &restriction, options, &threads, &mut Unwatched)
    };
    let few = |counts: &[usize]| Restriction::Cardinality(Cardinality::Columns(counts.to_vec()));
    assert!(bound(0, Restriction::Free, &options).is_err());
    assert!(bound(6, Restriction::Free, &options).is_err());
    assert!(bound(2, few(&[1]), &options).is_err());
    assert!(bound(2, few(&[0, 1]), &options).is_err());
    assert!(bound(2, Restriction::Cardinality(Cardinality::Total(1)), &options).is_err());
    assert!(bound(2, Restriction::Rows(1), &options).is_err());
    let mut wrong = options;
    wrong.gap_tol = f64::NAN;
    assert!(bound(2, Restriction::Free, &wrong).is_err());
    assert!(bound(2, Restriction::Free, &BoundOptions::new(f64::NAN, 1.0)).is_err());
    assert!(bound(2, Restriction::Free, &BoundOptions::new(0.0, f64::NAN)).is_err());
    let found = bound(2, few(&[2, 1]), &options).unwrap();
    assert_ne!(found.method, Method::Eigenvalues);
}
