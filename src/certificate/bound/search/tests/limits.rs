//! Tests of where a search ends: sizes, goals, the clock and work; and of what it records.

use super::*;
use crate::objective::{DenseColumns, GramQuadratic};

/// Returns −½‖A X‖² for an A of one row of ones.
fn ones(n: usize) -> GramQuadratic<'static> {
    let columns = DenseColumns::from_transposed(Array2::ones((n, 1))).unwrap();
    GramQuadratic::new(columns, -1.0, None).unwrap()
}

fn unlimited() -> Clock {
    Clock::new(Instant::now(), None)
}

fn stopped() -> Clock {
    let clock = unlimited();
    clock.stop();
    clock
}

/// C is formed up to 2048 rows, and branched on up to 512.
#[test]
fn sizes_end_a_search() {
    for (n, over) in [(FORMED_ROWS, false), (FORMED_ROWS + 1, true)] {
        let search = |form| Search::new(form, 1, &Restriction::Free).unwrap().over;
        assert_eq!(search(&ones(n)), over, "{n}");
    }
    let (clock, threads) = (unlimited(), Threads::serial());
    for (n, over) in [(BRANCHED_ROWS, false), (BRANCHED_ROWS + 1, true)] {
        let form = ones(n);
        let mut search = Search::new(&form, 1, &Restriction::Rows(1)).unwrap();
        search.branch(&Array2::eye(n), &limits(&clock, &threads, 0.0));
        assert_eq!(search.over, over, "{n}");
    }
}

/// A goal, a clock or a limit on work ends a search, each alone.
#[test]
fn each_limit_ends_a_search() {
    let (form, threads) = (ones(3), Threads::serial());
    for reached in [false, true] {
        for clock in [unlimited(), stopped()] {
            for work in [9.0, 10.0, 11.0] {
                let mut search = Search::new(&form, 1, &Restriction::Free).unwrap();
                (search.goal, search.work) = (1.0, work);
                search.best.value = if reached { 1.0 } else { 0.5 };
                let ended = search.ended(&limits(&clock, &threads, 10.0));
                assert_eq!(ended, reached || clock.expired() || work >= 10.0);
            }
        }
    }
}

/// No block of rows is searched once the goal is reached.
#[test]
fn nothing_is_searched_beyond_the_goal() {
    let (form, clock, threads) = (ones(5), unlimited(), Threads::serial());
    for (goal, searched) in [(f64::NEG_INFINITY, false), (f64::INFINITY, true)] {
        let mut search = Search::new(&form, 1, &Restriction::Rows(2)).unwrap();
        search.relaxed = true;
        let options = BoundOptions { gap_tol: 0.0, ..BoundOptions::new(goal, 1.0) };
        search.advance(&options, &limits(&clock, &threads, f64::INFINITY));
        assert_eq!((search.over, search.work > 0.0), (searched, searched));
    }
}

/// A bound is recorded if it is better, and keeps the last Λ if it has none.
#[test]
fn better_bounds_alone_are_recorded() {
    let form = ones(3);
    let mut search = Search::new(&form, 1, &Restriction::Free).unwrap();
    let first = search.best.value;
    let lambda = Array2::eye(3);
    for (more, multiplier, rows, best) in [
        (0.0, None, 1, (first, Method::Eigenvalues)),
        (-1.0, None, 1, (first, Method::Eigenvalues)),
        (0.5, Some(&lambda), 2, (first + 0.5, Method::Fantope)),
        (0.5, None, 2, (first + 0.5, Method::Fantope)),
        (0.75, None, 3, (first + 0.75, Method::Fantope)),
    ] {
        search.improve(first + more, Method::Fantope, multiplier.cloned());
        let found = &search.best;
        assert_eq!((found.value, found.method), best);
        assert_eq!((found.history.len(), found.history[rows - 1].1), (rows, best.0));
        assert_eq!(found.multiplier.as_ref(), (rows > 1).then_some(&lambda));
    }
}

/// No step of the relaxation begins that would take more than the time left: 8n³ at 10¹⁰
/// multiply-adds a second before the first step, later the seconds of the last step.
#[test]
fn steps_begin_if_there_is_time() {
    let threads = Threads::serial();
    let n = 1000;
    let (form, restriction) = (ones(n), Restriction::Count(0.3));
    let seconds = STEP * (n as f64).powi(3) / WORK_UNIT;
    let clock = Clock::new(Instant::now(), Some(0.5 * seconds));
    let mut search = Search::new(&form, 1, &restriction).unwrap();
    search.relax(&Array2::eye(n), &limits(&clock, &threads, f64::INFINITY));
    assert!(search.relaxation.is_none() && !search.relaxed && search.work == 0.0);

    let c = matrix(5, 2);
    let smooth = Quadratic::new(-&c, None, None).unwrap();
    let clock = Clock::new(Instant::now(), Some(1e3));
    let mut search = Search::new(&smooth, 2, &restriction).unwrap();
    let few = 20.0 * STEP * 125.0;
    search.relax(&c, &limits(&clock, &threads, few));
    let steps = |search: &Search<'_>| search.relaxation.as_ref().unwrap().steps();
    let before = steps(&search);
    assert!(before > 10 && search.step_seconds.is_some_and(|last| last < 100.0));
    search.step_seconds = Some(1e6);
    search.relax(&c, &limits(&clock, &threads, f64::INFINITY));
    assert_eq!((steps(&search), search.relaxed), (before, false));
}

/// A relaxation ends at the first step that converges, and after 1000 steps.
#[test]
fn relaxations_end_when_they_converge() {
    let threads = Threads::serial();
    let clock = unlimited();
    for seed in 0..6 {
        let c = matrix(5, seed);
        let smooth = Quadratic::new(-&c, None, None).unwrap();
        let restriction = Restriction::Count(0.3);
        let mut search = Search::new(&smooth, 2, &restriction).unwrap();
        search.relax(&c, &limits(&clock, &threads, f64::INFINITY));
        let admm = search.relaxation.as_ref().unwrap();
        assert!(search.relaxed && admm.has_converged(&c, GAP));
        assert!(admm.steps() < STEPS, "{seed}");
        // The bound of the last step, or a better one before, is the bound of the search.
        let last = -0.5 * admm.bound(&c);
        assert!(search.best.value >= last - 1e-12 * last.abs());
        assert_eq!(search.best.method, Method::Fantope);
    }
    let (form, restriction) = (ones(2), Restriction::Count(0.3));
    let mut search = Search::new(&form, 1, &restriction).unwrap();
    let never = Array2::from_elem((2, 2), f64::NAN);
    search.relax(&never, &limits(&clock, &threads, f64::INFINITY));
    assert_eq!(search.relaxation.unwrap().steps(), STEPS);
}

/// The columns of AᵀA are products: the bound is that of the formed matrix.
#[test]
fn data_have_the_bound_of_their_matrix() {
    let a = start::random(4, 4, 3) * &array![1.0, 2.0, 3.0, 4.0];
    let a = ndarray::concatenate![Axis(1), a, array![[1.0], [0.0], [-1.0], [0.5]]];
    let c = a.t().dot(&a);
    let columns = DenseColumns::new(a.view()).unwrap();
    let data = GramQuadratic::new(columns, -1.0, None).unwrap();
    let dense = Quadratic::new(-&c, None, None).unwrap();
    let (clock, threads) = (unlimited(), Threads::serial());
    for restriction in
        [Restriction::Count(0.3), Restriction::Rows(2), Restriction::Cardinality(Cardinality::Columns(vec![2, 1]))]
    {
        let of = |form: &dyn QuadraticForm, clock: &Clock| {
            let mut search = Search::new(form, 2, &restriction).unwrap();
            let options = BoundOptions::new(10.0, 10.0);
            let all = limits(clock, &threads, f64::INFINITY);
            search.advance(&options, &all);
            (search.best.value, search.best.method)
        };
        let (found, method) = of(&data, &clock);
        let (same, other) = of(&dense, &clock);
        assert!((found - same).abs() < 1e-5 * same.abs(), "{restriction:?} {found} {same}");
        assert!(method == other && method != Method::Eigenvalues);
        assert_eq!(of(&data, &stopped()).1, Method::Eigenvalues);
    }
}

/// The search for a block of rows does nothing if its goal is reached, its clock has stopped or no
/// work is left. The work that was spent before has no effect.
#[test]
fn searches_for_rows_keep_each_limit() {
    let (n, r, penalty) = (7, 2, 0.6);
    let threads = Threads::serial();
    let c = matrix(n, 5);
    let smooth = Quadratic::new(-&c, None, None).unwrap();
    let restriction = Restriction::RowPenalty(0.5 * penalty);
    let most = ky_fan_above(&c, r);
    let run = |goal: f64, clock: &Clock, spent: f64, work: f64| {
        let mut search = Search::new(&smooth, r, &restriction).unwrap();
        (search.goal, search.work) = (goal, spent);
        search.branch_rows(&c, r..=n, penalty, &limits(clock, &threads, spent + work));
        let best = &search.best;
        (best.nodes, search.work - spent, search.over, best.value)
    };
    let (clock, all) = (unlimited(), f64::INFINITY);
    let whole = run(all, &clock, 0.0, all);
    assert!(whole.0 > 0 && whole.0 < 10_000 && whole.1 > 0.0 && whole.2);
    // The gain of all rows, less the penalty of the fewest.
    let reached = -0.5 * (most - penalty * r as f64);
    let found = run(reached, &clock, 0.0, all);
    assert_eq!(found, (0, 0.0, true, reached));
    let found = run(all, &stopped(), 0.0, all);
    assert_eq!(found, (0, 0.0, false, reached));
    let found = run(all, &clock, 64.0, 0.0);
    assert_eq!(found, (0, 0.0, false, reached));
    let spent = (2.0 * whole.1).ceil();
    for part in [0.1, 0.3, 0.6, 1.5] {
        let some = (part * whole.1).ceil();
        let found = run(all, &clock, 0.0, some);
        assert_eq!(found, run(all, &clock, spent, some), "{part}");
        assert_eq!(found.2, part > 1.0);
        assert!(found.3 <= whole.3 && found.1 <= whole.1);
    }
}

/// The search for a block ends early if a bound above the best block is low enough.
#[test]
fn a_bound_that_is_enough_ends_the_search_for_a_block() {
    let (clock, threads, penalty) = (unlimited(), Threads::serial(), 0.6);
    let (mut early, mut whole) = (0.0, 0.0);
    for seed in 0..6 {
        let c = matrix(9, seed);
        let smooth = Quadratic::new(-&c, None, None).unwrap();
        let restriction = Restriction::RowPenalty(0.5 * penalty);
        let run = |goal: f64| {
            let mut search = Search::new(&smooth, 2, &restriction).unwrap();
            search.goal = goal;
            let all = limits(&clock, &threads, f64::INFINITY);
            search.branch_rows(&c, 4..=4, penalty, &all);
            (search.work, search.best.value)
        };
        let (work, value) = run(f64::INFINITY);
        let (less, lower) = run(value - 0.2);
        assert!(lower > value - 0.2 - 1e-12 && lower <= value);
        (early, whole) = (early + less, whole + work);
    }
    assert!(early < 0.9 * whole, "{early} {whole}");
}

/// The same of the tree: a tree without work left is not over.
#[test]
fn trees_keep_each_limit() {
    let threads = Threads::serial();
    let c = matrix(4, 1);
    let smooth = Quadratic::new(-&c, None, None).unwrap();
    let restriction = Restriction::Cardinality(Cardinality::Columns(vec![1, 2]));
    let run = |goal: f64, clock: &Clock, spent: f64, work: f64| {
        let mut search = Search::new(&smooth, 2, &restriction).unwrap();
        (search.goal, search.objective, search.work) = (goal, goal, spent);
        search.branch_columns(&c, &limits(clock, &threads, spent + work));
        let best = &search.best;
        (search.work - spent, (best.nodes, search.over, best.value))
    };
    let clock = unlimited();
    let first = Search::new(&smooth, 2, &restriction).unwrap().best.value;
    // A goal above the optimum is never reached: the tree ends when no node is open.
    let goal = -0.475 * disjoint(&c, &[2, 1], 0);
    let whole = run(goal, &clock, 0.0, 1e12);
    assert!(whole.0 > 0.0 && whole.1.0 > 1 && whole.1.1, "{whole:?}");
    let none = (0.0, (0, false, first));
    assert_eq!(run(goal, &clock, 64.0, 0.0), none);
    assert_eq!(run(goal, &stopped(), 64.0, 1e12), none);
    let spent = (2.0 * whole.0).ceil();
    for part in [0.05, 0.2, 0.5] {
        let some = (part * whole.0).ceil();
        let found = run(goal, &clock, 0.0, some);
        let same = run(goal, &clock, spent, some);
        assert!(found.1 == same.1 && (found.0 - same.0).abs() < 1e-6, "{part}");
        assert!(found.0 > 0.0 && !found.1.1 && found.1.2 <= whole.1.2);
    }
}

/// A power of two scales C, λ and the bound, with all margins for rounding.
#[test]
fn powers_of_two_scale_a_relaxation() {
    let (clock, threads) = (unlimited(), Threads::serial());
    for seed in 0..4 {
        let value = |scale: f64| {
            let c = matrix(5, seed) * scale;
            let smooth = Quadratic::new(-&c, None, None).unwrap();
            let restriction = Restriction::Count(0.3 * scale);
            let mut search = Search::new(&smooth, 2, &restriction).unwrap();
            let some = limits(&clock, &threads, 60.0 * STEP * 125.0);
            search.relax(&c, &some);
            assert_eq!(search.best.method, Method::Fantope);
            search.best.value
        };
        assert_eq!(value(1024.0), 1024.0 * value(1.0), "{seed}");
    }
}
