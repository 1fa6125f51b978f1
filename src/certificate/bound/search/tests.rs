//! Tests of the search: bounds against optima that enumeration gives, and limits on work.

use ndarray::{Array1, Axis, array};

use super::*;
use crate::certificate::bound::lower_bound;
use crate::linalg::symmetric_eigenvalues;
use crate::objective::Quadratic;
use crate::solver::Unwatched;
use crate::start;

fn matrix(n: usize, seed: u64) -> Array2<f64> {
    let a = start::random(n, n, seed) * &Array1::linspace(0.5, 3.0, n);
    &a + &a.t()
}

fn limits<'a>(clock: &'a Clock, threads: &'a Threads, work: f64) -> SearchLimits<'a> {
    SearchLimits { clock, threads, work, limited: work.is_finite() }
}

fn sum_on(c: &Array2<f64>, r: usize, rows: &[usize]) -> f64 {
    let block = c.select(Axis(0), rows).select(Axis(1), rows);
    let values = symmetric_eigenvalues(block.view());
    values.iter().rev().take(r).sum()
}

fn members(set: usize) -> Vec<usize> {
    (0..usize::BITS as usize).filter(|i| set >> i & 1 == 1).collect()
}

/// Returns max Σ u_tᵀCu_t over orthonormal columns with at most k_t nonzeros, k_t = 1 or 2 but for one column.
///
/// Two columns of two nonzeros are orthogonal only if their rows are the same or disjoint, or one has a single
/// nonzero. Two columns of the same two rows have the sum of two single ones. So disjoint supports are enough.
fn disjoint(c: &Array2<f64>, counts: &[usize], used: usize) -> f64 {
    let Some((&count, rest)) = counts.split_first() else {
        return 0.0;
    };
    (1..1usize << c.nrows())
        .filter(|s| s & used == 0 && s.count_ones() as usize <= count)
        .map(|s| sum_on(c, 1, &members(s)) + disjoint(c, rest, used | s))
        .fold(f64::NEG_INFINITY, f64::max)
}

/// Returns the bound for a known optimum.
fn bound(c: &Array2<f64>, r: usize, restriction: &Restriction, objective: f64, gap_tol: f64) -> Bound {
    let smooth = Quadratic::new(-c, None, None).unwrap();
    let options = BoundOptions { gap_tol, ..BoundOptions::new(objective, objective.abs()) };
    let threads = Threads::serial();
    lower_bound(&smooth, r, restriction, &options, &threads, &mut Unwatched).unwrap()
}

#[test]
fn limits_on_nonzeros_have_the_bound_of_enumeration() {
    for seed in 0..3 {
        let n = 5;
        let c = matrix(n, seed);
        for counts in [&[1usize, 1][..], &[2, 1], &[2, 2], &[3, 1], &[1, 1, 1], &[2, 2, 1]] {
            let r = counts.len();
            let exact = -0.5 * disjoint(&c, counts, 0);
            for restriction in [
                Restriction::Cardinality(Cardinality::Columns(counts.to_vec())),
                Restriction::Cardinality(Cardinality::Columns(counts.iter().rev().copied().collect())),
            ] {
                let found = bound(&c, r, &restriction, exact, 1e-6);
                assert!(found.value <= exact + 1e-12 * exact.abs(), "{seed} {counts:?}");
                assert!(found.gap <= 1e-6 && found.gap >= -1e-12, "{seed} {counts:?} {}", found.gap);
                let gap = (exact - found.value) / exact.abs();
                assert!((found.gap - gap).abs() < 1e-12);
            }
        }
        for (total, shares) in [(2, &[&[1usize, 1][..]][..]), (3, &[&[2, 1]]), (4, &[&[2, 2], &[3, 1]])] {
            let best = shares.iter().map(|counts| disjoint(&c, counts, 0));
            let exact = -0.5 * best.fold(f64::NEG_INFINITY, f64::max);
            let restriction = Restriction::Cardinality(Cardinality::Total(total));
            let found = bound(&c, 2, &restriction, exact, 1e-6);
            assert!(found.value <= exact + 1e-12 * exact.abs() && found.gap <= 1e-6);
        }
    }
}

/// Where the known point is worse than the optimum, the bound still ends at the optimum.
#[test]
fn a_worse_point_has_the_same_bound() {
    for seed in 0..4 {
        let c = matrix(4, seed);
        let exact = -0.5 * disjoint(&c, &[2, 1], 0);
        for count in [Cardinality::Columns(vec![1, 2]), Cardinality::Total(3)] {
            let worse = exact + 0.05 * exact.abs();
            let found = bound(&c, 2, &Restriction::Cardinality(count.clone()), worse, 0.0);
            assert!(found.value <= exact + 1e-12 * exact.abs(), "{seed} {count:?}");
            assert!(found.value >= exact - 1e-6 * exact.abs(), "{seed} {count:?}");
        }
    }
}

/// With X ≥ 0 columns have disjoint rows; two rows have the Perron vector of their positive part.
#[test]
fn nonnegative_limits_have_the_bound_of_enumeration() {
    for seed in 0..6 {
        let c = matrix(5, seed);
        let mut above = c.mapv(|v| v.max(0.0));
        above.diag_mut().assign(&c.diag());
        for counts in [&[1usize, 1][..], &[2, 1], &[2, 2]] {
            let exact = -0.5 * disjoint(&above, counts, 0);
            let count = Cardinality::Columns(counts.to_vec());
            let found = bound(&c, 2, &Restriction::NonnegativeCardinality(count), exact, 1e-6);
            assert!(found.value <= exact + 1e-12 * exact.abs(), "{seed} {counts:?}");
            assert!(found.gap <= 1e-6, "{seed} {counts:?} {}", found.gap);
        }
    }
}

/// A limit on the nonzero rows and a penalty for each: the best block of rows.
#[test]
fn limits_on_rows_have_the_bound_of_enumeration() {
    let n = 6;
    for seed in 0..6 {
        let c = matrix(n, seed);
        for r in 1..=2 {
            let sets = || (1..1usize << n).filter(|s| s.count_ones() as usize >= r);
            for count in r..=n + 1 {
                let of = sets().filter(|s| s.count_ones() as usize <= count);
                let best = of.map(|s| sum_on(&c, r, &members(s)));
                let exact = -0.5 * best.fold(f64::NEG_INFINITY, f64::max);
                let found = bound(&c, r, &Restriction::Rows(count), exact, 1e-9);
                assert!(found.value <= exact + 1e-12 && found.value >= exact - 1e-8 * exact.abs());
                // A better objective than any point's, and a worse one.
                for other in [exact - 0.5, exact + 0.5] {
                    let found = bound(&c, r, &Restriction::Rows(count), other, 1e-9);
                    assert!(found.value <= exact + 1e-12);
                    assert!(found.value >= exact.min(other) - 1e-8 * exact.abs());
                }
            }
            for lambda in [0.05, 0.4, 1.5] {
                let value = |s: usize| lambda * f64::from(s.count_ones()) - 0.5 * sum_on(&c, r, &members(s));
                let exact = sets().map(value).fold(f64::INFINITY, f64::min);
                for objective in [exact, exact + 0.3] {
                    let found = bound(&c, r, &Restriction::RowPenalty(lambda), objective, 1e-9);
                    assert!(found.value <= exact + 1e-12, "{seed} {r} {lambda}");
                    assert!(found.value >= exact - 1e-8 * exact.abs(), "{seed} {r} {lambda}");
                }
            }
        }
    }
}

/// Scaling C and h scales the bound; permuted rows and changed signs leave it.
#[test]
fn bounds_follow_scale_order_and_signs() {
    let (n, r) = (5, 2);
    for seed in 0..3 {
        let c = matrix(n, seed);
        let base = |lambda: f64| {
            [
                Restriction::Free,
                Restriction::Count(lambda),
                Restriction::Absolute(lambda),
                Restriction::Rows(3),
                Restriction::RowPenalty(lambda),
            ]
        };
        let all = |c: &Array2<f64>, scale: f64| -> Vec<f64> {
            // No point is known: an objective that is not reached.
            let one = |restriction: &Restriction| {
                let smooth = Quadratic::new(-c, None, None).unwrap();
                let options = BoundOptions::new(0.0, 100.0 * scale);
                let options = BoundOptions { gap_tol: 0.0, objective: 3.0 * scale, ..options };
                let threads = Threads::serial();
                lower_bound(&smooth, r, restriction, &options, &threads, &mut Unwatched).unwrap().value
            };
            base(0.3 * scale).iter().map(one).collect()
        };
        let first = all(&c, 1.0);
        let scaled = all(&(&c * 1024.0), 1024.0);
        let order = [3, 0, 4, 1, 2];
        let permuted = all(&c.select(Axis(0), &order).select(Axis(1), &order), 1.0);
        let signs = array![1.0, -1.0, -1.0, 1.0, -1.0];
        let turned = all(&Array2::from_shape_fn((n, n), |(i, j)| c[[i, j]] * signs[i] * signs[j]), 1.0);
        for k in 0..first.len() {
            let size = first[k].abs();
            assert!((scaled[k] / 1024.0 - first[k]).abs() < 1e-4 * size, "{k}");
            assert!((permuted[k] - first[k]).abs() < 1e-4 * size, "{k}");
            assert!((turned[k] - first[k]).abs() < 1e-4 * size, "{k}");
        }
    }
}

/// A bound never falls when more work is allowed, is resumed where it ended, and keeps its limits.
#[test]
fn more_work_gives_no_worse_bound() {
    let threads = Threads::serial();
    let clock = Clock::new(Instant::now(), None);
    let n = 5;
    let c = matrix(n, 2);
    let smooth = Quadratic::new(-&c, None, None).unwrap();
    let decomposition = EIGEN * (n as f64).powi(3);
    let exact = |counts: &[usize]| -0.5 * disjoint(&c, counts, 0);
    for (restriction, objective) in [
        (Restriction::Count(0.3), 1e3),
        (Restriction::Nonnegative, 1e3),
        (Restriction::Cardinality(Cardinality::Columns(vec![2, 2])), exact(&[2, 2])),
        (Restriction::Cardinality(Cardinality::Total(3)), exact(&[2, 1])),
        (Restriction::Rows(3), 1e3),
        (Restriction::RowPenalty(0.3), 1e3),
    ] {
        let options = BoundOptions { gap_tol: 1e-4, ..BoundOptions::new(objective, objective.abs()) };
        let run = |work: f64| {
            let mut search = Search::new(&smooth, 2, &restriction).unwrap();
            search.advance(&options, &limits(&clock, &threads, work));
            search
        };
        let whole = run(f64::INFINITY);
        let ended = |search: &Search<'_>| search.over || search.best.value >= search.goal;
        assert!(ended(&whole) && whole.work > 0.0, "{restriction:?}");
        let mut before = f64::NEG_INFINITY;
        for part in [0.0, 0.1, 0.3, 0.6, 0.9] {
            let search = run(part * whole.work);
            assert!(search.best.value >= before - 1e-12, "{restriction:?}");
            before = search.best.value;
            // The work exceeds its limit by a few steps, rounds of nodes or sparse maxima.
            let most = (part + 0.25) * whole.work + 100.0 * decomposition;
            assert!(search.work > 0.0 && search.work <= most, "{restriction:?} {part}");
            let history = &search.best.history;
            assert!(history.windows(2).all(|w| w[0].1 < w[1].1 && w[0].0 <= w[1].0));
            assert_eq!(history[history.len() - 1].1, search.best.value);
        }
        let mut search = Search::new(&smooth, 2, &restriction).unwrap();
        for round in 1..60 {
            let to = search.work + 0.05 * f64::from(round) * whole.work;
            search.advance(&options, &limits(&clock, &threads, to));
        }
        assert!(ended(&search), "{restriction:?}");
        assert!((search.best.value - whole.best.value).abs() < 1e-3 * whole.best.value.abs());
        // A search that has ended does nothing more.
        let work = search.work;
        let all = limits(&clock, &threads, f64::INFINITY);
        search.advance(&options, &all);
        assert_eq!(search.work, work, "{restriction:?}");
    }
}

/// A clock that has expired leaves the bound of the eigenvalues.
#[test]
fn no_time_leaves_the_eigenvalues() {
    let c = matrix(5, 3);
    let smooth = Quadratic::new(-&c, None, None).unwrap();
    let threads = Threads::serial();
    let values = symmetric_eigenvalues(c.view());
    for restriction in [Restriction::Free, Restriction::Absolute(0.5), Restriction::Rows(2)] {
        for max_time in [Some(0.0), None] {
            let options = BoundOptions { max_time, ..BoundOptions::new(1e3, 1e3) };
            let found = lower_bound(&smooth, 2, &restriction, &options, &threads, &mut Unwatched).unwrap();
            let constant = restriction.relaxed(5, 2).1;
            let first = 0.5 * (constant - 2.0 * values[4]);
            assert!((found.history[0].1 - first).abs() < 1e-9 * first.abs());
            assert_eq!(found.method == Method::Eigenvalues, max_time.is_some());
            assert_eq!(found.history.len() == 1, max_time.is_some());
            assert_eq!(found.multiplier.is_none(), max_time.is_some());
            if restriction == Restriction::Free && max_time.is_none() {
                assert!((found.value + 0.5 * (values[4] + values[3])).abs() < 1e-11);
            }
        }
    }
}

/// The goal is the bound with a gap of `gap_tol`, relative to the magnitude or to 1e-6 of ½r‖C‖.
#[test]
fn goals_and_gaps_are_relative_to_a_resolved_magnitude() {
    let smooth = Quadratic::new(Array2::from_diag(&array![-8.0, 2.0, 1.0]), None, None).unwrap();
    let search = |r: usize| Search::new(&smooth, r, &Restriction::Free).unwrap();
    for r in 1..=2 {
        let resolved = 1e-6 * 4.0 * r as f64;
        for (magnitude, size) in [(5.0, 5.0), (0.0, resolved)] {
            let options = BoundOptions { gap_tol: 0.25, ..BoundOptions::new(3.0, magnitude) };
            let goal = search(r).goal(&options);
            assert!((goal - (3.0 - 0.25 * size)).abs() < 1e-12 * (1.0 + size));
            // The margin of 4 ulp is on the safe side.
            assert!(goal >= 3.0 - 0.25 * size);
            let gap = search(r).finish(&options).gap;
            assert!((gap * size - (3.0 + 4.0 * r as f64)).abs() < 1e-9 * gap * size);
        }
        let exact = BoundOptions { gap_tol: 0.0, ..BoundOptions::new(-4.0 * r as f64, 0.0) };
        assert_eq!(search(r).goal(&exact), -4.0 * r as f64);
        assert!(search(r).finish(&exact).gap.abs() < 1e-6);
    }
    let zero = Quadratic::new(Array2::zeros((3, 3)), None, None).unwrap();
    let none = Search::new(&zero, 1, &Restriction::Free).unwrap();
    assert_eq!(none.finish(&BoundOptions::new(0.0, 0.0)).gap, 0.0);
}

#[test]
fn numbers_of_nodes_depend_on_limits() {
    let (threads, clock) = (Threads::serial(), Clock::new(Instant::now(), None));
    for (work, limited) in [(f64::INFINITY, false), (1e9, true)] {
        let limits = limits(&clock, &threads, work);
        for (n, unlimited) in [(5, 20_000), (20, 1250), (400, 8)] {
            let found = nodes(NODES, n, &limits);
            assert_eq!(found, if limited { 20_000 } else { unlimited });
        }
    }
}

#[test]
fn searches_refuse_other_forms_and_numbers() {
    let c = matrix(4, 1);
    let smooth = Quadratic::new(c.clone(), None, None).unwrap();
    for (r, fine) in [(0, false), (1, true), (4, true), (5, false)] {
        assert_eq!(Search::new(&smooth, r, &Restriction::Free).is_ok(), fine);
    }
    let linear = Quadratic::new(c.clone(), Some(start::random(4, 2, 1)), None).unwrap();
    let metric = Quadratic::new(c, None, Some(array![[1.0, 0.0], [0.0, 2.0]])).unwrap();
    for smooth in [&linear, &metric] {
        assert!(Search::new(smooth, 2, &Restriction::Free).is_err());
    }
}

/// A decomposition at first, then eight n³ multiply-adds a step, until the limit is reached.
#[test]
fn steps_of_the_relaxation_are_counted() {
    let threads = Threads::serial();
    let clock = Clock::new(Instant::now(), None);
    let smooth = Quadratic::new(matrix(5, 4), None, None).unwrap();
    let options = BoundOptions::new(1e3, 1e3);
    let (first, step) = (EIGEN * 125.0, STEP * 125.0);
    for steps in 0..=9 {
        for part in [0.5, 1.0] {
            let restriction = Restriction::Count(0.3);
            let mut search = Search::new(&smooth, 2, &restriction).unwrap();
            let work = first + (f64::from(steps) - 1.0 + part) * step;
            search.advance(&options, &limits(&clock, &threads, work));
            assert_eq!(search.work, first + f64::from(steps) * step, "{steps} {part}");
        }
    }
    // The tenth step has a bound, which is evaluated again if it is better.
    let restriction = Restriction::Count(0.3);
    let mut search = Search::new(&smooth, 2, &restriction).unwrap();
    let work = first + 9.5 * step;
    search.advance(&options, &limits(&clock, &threads, work));
    let better = f64::from(u8::from(search.best.history.len() > 2));
    assert_eq!(search.work, first + 10.0 * step + (1.0 + better) * first);
}

/// Rows that a tree excludes are in no point as good as the known one.
#[test]
fn excluded_rows_are_in_no_optimum() {
    let mut excluded = 0;
    for seed in 0..8 {
        let n = 5;
        let c = matrix(n, seed) + Array2::from_diag(&matrix(n, seed + 9).diag());
        let counts = [2, 1];
        let best = disjoint(&c, &counts, 0);
        let restriction = Restriction::Cardinality(Cardinality::Columns(counts.to_vec()));
        let found = bound(&c, 2, &restriction, -0.5 * best, 0.0);
        for row in found.excluded {
            excluded += 1;
            // Without the others, the row is used: the best sum that contains it.
            let with = (1..1usize << n)
                .filter(|s| s.count_ones() <= 2 && s >> row & 1 == 1)
                .map(|s| sum_on(&c, 1, &members(s)) + disjoint(&c, &[1], s));
            let alone = (1..1usize << n)
                .filter(|s| s.count_ones() <= 2 && s >> row & 1 == 0)
                .map(|s| sum_on(&c, 1, &members(s)) + c[[row, row]]);
            let most = with.chain(alone).fold(f64::NEG_INFINITY, f64::max);
            assert!(most < best, "{seed} {row}");
        }
    }
    assert!(excluded > 4, "{excluded}");
}

mod limits;
