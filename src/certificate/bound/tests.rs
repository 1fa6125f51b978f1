//! Tests of the parts of the bound against enumeration and against their invariants.

use ndarray::Array2;

use super::master::{Known, Master, quadratic};
use super::maximum::{Allowed, Effort, sparse_maximum};
use super::relaxation::{Admm, EIGEN, Entries, ky_fan, ky_fan_above, largest_above};
use super::tree::shares;
use super::{BoundOptions, Method, Restriction, lower_bound};
use crate::linalg::symmetric_eigen;
use crate::objective::{Quadratic, QuadraticForm};
use crate::penalty::Penalty;
use crate::problem::{Cardinality, Limit, Problem, RowSparsity, Sparsity};
use crate::signature::Signature;
use crate::solver::Unwatched;
use crate::start;
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
        let allowed =
            Allowed { size: required.len().max(r - 1) + 1 + (seed % 3) as usize, free: free.collect(), required };
        let exact = enumerated(&b, r, &allowed);
        if exact.is_infinite() {
            continue;
        }
        let slack = 1e-12 * exact.abs().max(1.0);
        for (nodes, tolerance) in [(1, 0.0), (3, 0.0), (100_000, 0.0), (100_000, 0.1)] {
            let effort = Effort { tolerance, enough: f64::NEG_INFINITY, nodes, work: f64::INFINITY, go_on: &|| true };
            let found = sparse_maximum((&b, r), &allowed, &[], &effort);
            assert!(found.above >= exact - slack, "{seed}: {} {exact}", found.above);
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
        let penalty = if let Entries::Penalized(penalty) = entries { penalty * inside } else { 0.0 };
        let last = bounds[bounds.len() - 1];
        assert!((last - ((&c * y).sum() - penalty)).abs() < 1e-3 * last.abs(), "{entries:?}");
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
            assert!(above >= exact && above <= exact + 1e-12 * size, "{seed} {r}");
            // The bound holds for any computed value, also one that is too small.
            assert!(largest_above(&a, r, exact - size) >= exact - 1e-14 * size);
        }
    }
}

#[test]
fn a_maximum_out_of_time_or_work_ends_at_once() {
    let n = 40;
    let b = indefinite(n, 3);
    let allowed = Allowed { size: 6, required: Vec::new(), free: (0..n).collect() };
    let best = |work: f64, go_on: &(dyn Fn() -> bool + Sync)| {
        let effort = Effort { tolerance: 0.0, enough: f64::NEG_INFINITY, nodes: 1000, work, go_on };
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
            let allowed = Allowed { size: k, required, free };
            enumerated(&c, 1, &allowed)
        };
        let best = with(Vec::new());
        // A worse known point leaves fewer rows out.
        for worse in [0.0, 0.02] {
            let value = best - worse * best.abs();
            let smooth = Quadratic::new(-&c, None, None).unwrap();
            let count = Restriction::Cardinality(Cardinality::Total(k));
            let options = BoundOptions { gap_tol: 0.0, ..BoundOptions::new(-0.5 * value, 0.5 * value.abs()) };
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
        let used: f64 = master.known.iter().filter(|u| u.class == class).map(|u| u.weight).sum();
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

/// The relaxations of the module's table, for 4 rows and 2 columns.
#[test]
fn restrictions_are_relaxed_as_their_table_says() {
    let (n, r) = (4, 2);
    let root = 2f64.sqrt();
    let columns = |counts: &[usize]| Cardinality::Columns(counts.to_vec());
    for (restriction, entries, constant) in [
        (Restriction::Free, Entries::Free, 0.0),
        (Restriction::Nonnegative, Entries::Nonnegative, 0.0),
        (Restriction::Count(0.75), Entries::Penalized(1.5), 0.0),
        // 2λ(r√n + ‖P‖₁)/(√n + 1).
        (Restriction::Absolute(0.75), Entries::Penalized(0.5), 2.0),
        (Restriction::Cardinality(columns(&[3, 2])), Entries::Within(5.0), 0.0),
        (Restriction::Cardinality(Cardinality::Total(3)), Entries::Within(3.0), 0.0),
        (Restriction::Cardinality(Cardinality::Total(99)), Entries::Within(8.0), 0.0),
        (Restriction::NonnegativeCardinality(Cardinality::Total(99)), Entries::NonnegativeWithin(8.0), 0.0),
        (Restriction::Rows(3), Entries::Within(3.0 * root), 0.0),
        (Restriction::Rows(9), Entries::Within(4.0 * root), 0.0),
        (Restriction::RowPenalty(0.75), Entries::Penalized(1.5 / root), 0.0),
    ] {
        assert_eq!(restriction.relaxed(n, r), (entries, constant), "{restriction:?}");
    }
    let c = ndarray::array![[-1.0, 2.0], [2.0, 3.0]];
    let negative = ndarray::array![[-1.0, -2.0], [-2.0, 3.0]];
    let above = ndarray::array![[-1.0, 0.0], [0.0, 3.0]];
    let signed = Restriction::NonnegativeCardinality(Cardinality::Total(2));
    assert_eq!((*signed.bounding(&c)).clone(), c);
    assert_eq!((*signed.bounding(&negative)).clone(), above);
    assert_eq!((*Restriction::Nonnegative.bounding(&negative)).clone(), negative);
}

#[test]
fn penalties_have_their_restriction() {
    let smooth = Quadratic::new(indefinite(5, 1), None, None).unwrap();
    let signature = Signature::stiefel(5);
    let of = |penalty: Penalty| Restriction::of(&Problem::new(&smooth, &penalty, &signature, 2).unwrap());
    assert_eq!(of(Penalty::NONE), Some(Restriction::Free));
    assert_eq!(of(Penalty::NONNEGATIVE), Some(Restriction::Nonnegative));
    assert_eq!(of(Penalty::l0(0.5)), Some(Restriction::Count(0.5)));
    assert_eq!(of(Penalty::l1(0.5)), Some(Restriction::Absolute(0.5)));
    let weights = Array2::from_shape_fn((5, 2), |(i, t)| 0.25 + (i + t) as f64);
    assert_eq!(of(Penalty::l1(weights)), Some(Restriction::Absolute(0.25)));
    assert_eq!(of(Penalty::mcp(1.0, 1.0).unwrap()), None);
    let count = Cardinality::Columns(vec![2, 3]);
    let entries = Sparsity::new(count.clone());
    let signed = Limit::Entries(entries.clone().with_nonnegative(true));
    for (limit, restriction) in [
        (Limit::Entries(entries), Restriction::Cardinality(count.clone())),
        (signed, Restriction::NonnegativeCardinality(count)),
        (Limit::Rows(RowSparsity::Count(3)), Restriction::Rows(3)),
        (Limit::Rows(RowSparsity::Penalty(0.5)), Restriction::RowPenalty(0.5)),
    ] {
        let problem = Problem::new(&smooth, &Penalty::NONE, &signature, 2).unwrap();
        let problem = problem.with_limit(&limit).unwrap();
        assert_eq!(Restriction::of(&problem), Some(restriction));
    }
}

/// Limits are accepted up to their ends, and the first bound is below every eigenvalue.
#[test]
fn ends_of_arguments_are_accepted() {
    let smooth = Quadratic::new(indefinite(5, 1), None, None).unwrap();
    let bound = |r: usize, restriction: Restriction, options: &BoundOptions| {
        let threads = Threads::serial();
        lower_bound(&smooth, r, &restriction, options, &threads, &mut Unwatched)
    };
    let plain = BoundOptions { max_time: Some(0.0), gap_tol: 0.0, ..BoundOptions::new(0.0, 0.0) };
    let total = |count: usize| Restriction::Cardinality(Cardinality::Total(count));
    let columns = |counts: &[usize]| Restriction::Cardinality(Cardinality::Columns(counts.to_vec()));
    for restriction in [Restriction::Rows(2), total(2), columns(&[1, 5]), columns(&[1, 1])] {
        assert!(bound(2, restriction, &plain).is_ok());
    }
    for restriction in [Restriction::Rows(1), total(1), columns(&[6, 1]), columns(&[1; 3])] {
        assert!(bound(2, restriction, &plain).is_err());
    }
    let negative = |change: &dyn Fn(&mut BoundOptions)| {
        let mut options = plain;
        change(&mut options);
        bound(2, Restriction::Free, &options).is_err()
    };
    assert!(negative(&|options| options.max_time = Some(-1e-9)));
    assert!(negative(&|options| options.max_time = Some(f64::NAN)));
    assert!(negative(&|options| options.gap_tol = -1e-9));
    assert!(negative(&|options| options.magnitude = -1e-9));
    assert!(negative(&|options| options.magnitude = f64::INFINITY));
    assert!(negative(&|options| options.objective = f64::INFINITY));
    for (seed, r) in (0..40).flat_map(|seed| [(seed, 1), (seed, 3)]) {
        let n = 3 + (seed % 6) as usize;
        let c = Array2::from_diag(&indefinite(n, seed).diag());
        let least = c.diag().iter().fold(f64::INFINITY, |m: f64, &v| m.min(v));
        let smooth = Quadratic::new(c, None, None).unwrap();
        let first = super::of_eigenvalues(&smooth, r, &Restriction::Free).value;
        let exact = 0.5 * r as f64 * least;
        assert!(first < exact && first > exact - 1e-12 * (1.0 + exact.abs()), "{seed}");
        let more = super::of_eigenvalues(&smooth, r, &Restriction::Absolute(0.5)).value - first;
        let root = (n as f64).sqrt();
        assert!((more - 0.5 * r as f64 * root / (root + 1.0)).abs() < 1e-12);
    }
}

/// The first bound is below r eigenvalues by a margin of 2e-14 and 4n ulp of ‖C‖ for each.
#[test]
fn the_first_bound_has_a_margin() {
    for n in [3, 150] {
        for size in [-8.0, 2.0] {
            let diagonal = ndarray::Array1::linspace(size, 4.0, n);
            let smooth = Quadratic::new(Array2::from_diag(&diagonal), None, None).unwrap();
            let (low, high) = smooth.bounds();
            let norm = f64::max(low.abs(), high.abs());
            for r in 1..=2 {
                let first = super::of_eigenvalues(&smooth, r, &Restriction::Free).value;
                let margin = low - 2.0 * first / r as f64;
                let expected = (2e-14 + 4.0 * n as f64 * f64::EPSILON) * norm;
                assert!((margin - expected).abs() <= 4.0 * f64::EPSILON * norm, "{n} {size}");
            }
        }
    }
}
