//! Tests of the alternation of both searches, with searches that return what the test says.

use ndarray::{Array2, ArrayView2, array};

use super::*;
use crate::objective::Quadratic;
use crate::solver::{Control, Unwatched};

const EIGEN_WORK: f64 = 4.0;

fn diagonal(values: &[f64]) -> Quadratic<'static> {
    let diagonal = ndarray::Array1::from(values.to_vec());
    Quadratic::new(Array2::from_diag(&diagonal), None, None).unwrap()
}

/// Returns a solution with f and h, as a search would return it.
fn solution(smooth: f64, penalty: f64, status: Status, work: f64) -> Solution {
    let record = Record { seconds: 0.25, objective: smooth + penalty, feasibility: 0.0, iterations: 3 };
    Solution {
        x: array![[1.0], [0.0], [0.0]],
        objective: smooth + penalty,
        smooth_value: smooth,
        penalty_value: penalty,
        feasibility: 0.0,
        status,
        iterations: 3,
        sweeps: 2,
        updates: 1,
        seconds: 0.25,
        work,
        history: vec![record],
        recession: None,
    }
}

/// Limits and target that a search was given, and the work before it.
type Given = (Option<f64>, Option<u64>, f64, u64);

/// Runs both searches; the search returns `solutions` in turn, the last one again and again.
fn run(
    smooth: &Quadratic<'_>,
    restriction: &Restriction,
    (gap_tol, options): (f64, &Options),
    solutions: &[Solution],
    monitor: &mut dyn Monitor,
) -> (Solution, Bound, Vec<Given>) {
    let mut given = Vec::new();
    let search = |from: Option<Array2<f64>>, zero: &[usize], options: &Options, _: &mut dyn Monitor| {
        assert_eq!((from.is_some(), zero.len()), (!given.is_empty(), 0));
        let next = solutions[given.len().min(solutions.len() - 1)].clone();
        given.push((options.max_time, options.max_work, options.target.unwrap(), options.seed));
        Ok(next)
    };
    let threads = Threads::serial();
    let (found, bound) =
        minimize_proved((smooth, 1), restriction, gap_tol, options, &threads, monitor, search).unwrap();
    (found, bound, given)
}

/// Runs both searches without a restriction and a tolerance; the search always returns `only`.
fn search_alone(smooth: &Quadratic<'_>, options: &Options, only: Solution) -> (Solution, Bound, Vec<Given>) {
    let goal = (0.0, options);
    run(smooth, &Restriction::Free, goal, &[only], &mut Unwatched)
}

/// With r = 1 and h = 0 the bound is half the least eigenvalue from the start.
#[test]
fn an_optimum_is_proved_by_the_first_search() {
    let smooth = diagonal(&[-4.0, -2.0, 3.0]);
    let constant = 0.5 * (-4.0 - 2.0 + 3.0) / 3.0;
    for (gap_tol, value, proved) in
        [(1e-12, -2.0, true), (1e-12, -1.999, false), (1e-3, -1.9987, true), (1e-3, -1.9983, false)]
    {
        for work in [None, Some(1_000_000)] {
            let options = Options { max_work: work, ..Options::default() };
            let only = solution(value, 0.0, Status::Converged, 7.0);
            let (found, bound, given) = run(&smooth, &Restriction::Free, (gap_tol, &options), &[only], &mut Unwatched);
            let status = if proved { Status::Proved } else { Status::Converged };
            assert_eq!((found.status, given.len()), (status, 1), "{gap_tol} {value}");
            assert!(bound.value <= -2.0 && bound.value > -2.0 - 1e-13);
            let gap = (value + 2.0) / (value - constant).abs();
            assert!((bound.gap - gap).abs() < 1e-12);
            // A bound of the eigenvalues alone has no work; else one decomposition of 3 rows.
            let own = if proved { 0.0 } else { EIGEN_WORK * 27.0 };
            assert_eq!(found.work, 7.0 + own);
            assert_eq!(found.history.len(), 2);
        }
    }
}

/// The target is the largest F whose gap is the tolerance, where h = 0 or has the magnitude of F alone.
#[test]
fn the_target_is_the_largest_f_that_is_proved() {
    let n = 3f64;
    for (values, lambda, gap_tol) in [
        ([-4.0, -2.0, 3.0], 0.0, 0.25),
        ([-4.0, -2.0, 3.0], 0.5, 0.25),
        ([-4.0, -2.0, 3.0], 8.0, 0.25),
        ([-4.0, -2.0, 3.0], 8.0, 0.5),
        ([1.0, 2.0, 9.0], 0.0, 2.0),
    ] {
        let smooth = diagonal(&values);
        let constant = values.iter().sum::<f64>() / 6.0;
        // The first bound is ½(λ_min + 2λ√n/(√n + 1)).
        let bound = 0.5 * (values[0] + 2.0 * lambda * n.sqrt() / (n.sqrt() + 1.0));
        let restriction = Restriction::Absolute(lambda);
        for own in [None, Some(-100.0), Some(1e3)] {
            let options = Options { target: own, ..Options::default() };
            let only = solution(500.0, 0.0, Status::Interrupted, 0.0);
            let given = run(&smooth, &restriction, (gap_tol, &options), &[only], &mut Unwatched).2;
            let target = given[0].2;
            let proved = if own == Some(1e3) { continue } else { target };
            assert!(
                ((proved - bound) - gap_tol * (proved - constant).abs()).abs() < 1e-12,
                "{values:?} {lambda} {proved}"
            );
            assert!(proved > bound);
        }
        let options = Options { target: Some(1e3), ..Options::default() };
        let only = solution(500.0, 0.0, Status::MaxWork, 0.0);
        let (found, _, given) = run(&smooth, &restriction, (gap_tol, &options), &[only], &mut Unwatched);
        assert_eq!((given[0].2, given.len(), found.status), (1e3, 1, Status::Target));
    }
    // Above the constant, or at it, every F is proved with a tolerance of 1.
    for (values, lambda) in [([-4.0, -2.0, 3.0], 8.0), ([0.0; 3], 0.0)] {
        let only = solution(500.0, 0.0, Status::Interrupted, 0.0);
        let options = Options::default();
        let restriction = Restriction::Absolute(lambda);
        let smooth = diagonal(&values);
        let given = run(&smooth, &restriction, (1.0, &options), &[only], &mut Unwatched).2;
        assert_eq!(given[0].2, f64::INFINITY);
    }
}

#[test]
fn a_target_is_reached_at_its_value() {
    let smooth = diagonal(&[-4.0, -2.0, 3.0]);
    for (target, status) in [(-1.01, Status::MaxWork), (-1.0, Status::Target)] {
        let options = Options { target: Some(target), max_work: Some(1_000_000), ..Options::default() };
        let only = solution(-1.0, 0.0, Status::MaxWork, 0.0);
        let (found, _, given) = search_alone(&smooth, &options, only);
        let calls = if status == Status::Target { 1 } else { 6 };
        assert_eq!((found.status, given.len()), (status, calls));
    }
}

/// A round gives its share of the limit to the search, at most half of the rest.
#[test]
fn rounds_share_the_limits() {
    let smooth = diagonal(&[-4.0, -2.0, 3.0]);
    let limit = 64_000_000u64;
    for each in [0.0, 1_000_000.0, 20_000_000.0] {
        let options = Options { max_work: Some(limit), seed: 5, ..Options::default() };
        let only = solution(-1.0, 0.0, Status::MaxWork, each);
        let (found, _, given) = search_alone(&smooth, &options, only);
        let own = EIGEN_WORK * 27.0;
        assert_eq!((given.len(), found.status), (6, Status::MaxWork));
        assert_eq!(found.work, 6.0 * each + own);
        for (k, (time, work, _, seed)) in given.iter().enumerate() {
            let spent = k as f64 * each + if k > 0 { own } else { 0.0 };
            let share = 2f64.powi(k as i32 - 5) * limit as f64;
            let most = (0.5 * (limit as f64 - spent)).max(0.0);
            assert_eq!(*time, None);
            assert_eq!(work.unwrap(), share.min(most) as u64, "{k} {each}");
            assert!(given[..k].iter().all(|other| other.3 != *seed));
            let round = pool::decorrelated(5, k as u64);
            assert_eq!(*seed, if k == 0 { 5 } else { round });
        }
        assert_eq!((found.iterations, found.sweeps, found.updates), (18, 12, 6));
    }
    let options = Options { max_time: Some(1e6), ..Options::default() };
    let only = solution(-1.0, 0.0, Status::Target, 0.0);
    let (found, _, given) = search_alone(&smooth, &options, only);
    assert_eq!((given.len(), found.status), (6, Status::MaxTime));
    for (k, (time, work, ..)) in given.iter().enumerate() {
        let share = 2f64.powi(k as i32 - 5) * 1e6;
        let time = time.unwrap();
        assert!(time <= share && time >= 0.999 * share.min(0.5e6));
        assert!(k >= 4 || time == share);
        assert_eq!(*work, None);
    }
}

/// Without a limit there is one round; a converged search that cannot be proved ends too.
#[test]
fn rounds_end_when_no_further_one_can_help() {
    let smooth = diagonal(&[-4.0, -2.0, 3.0]);
    let work = Options { max_work: Some(64_000_000), ..Options::default() };
    let sweeps = Options { max_sweeps: Some(9), ..Options::default() };
    let both = Options { max_time: Some(1e6), ..sweeps.clone() };
    let over = Options { max_time: Some(0.0), ..Options::default() };
    let all = Options { max_work: Some(64_000_000), ..both.clone() };
    for (options, status, calls, end) in [
        (&work, Status::Converged, 1, Status::Converged),
        (&work, Status::Interrupted, 1, Status::Interrupted),
        (&work, Status::Unbounded, 1, Status::Unbounded),
        (&work, Status::Diverged, 6, Status::Diverged),
        (&work, Status::MaxSweeps, 6, Status::MaxWork),
        (&sweeps, Status::MaxSweeps, 1, Status::MaxSweeps),
        (&both, Status::MaxSweeps, 6, Status::MaxSweeps),
        (&all, Status::MaxSweeps, 6, Status::MaxWork),
        (&over, Status::Converged, 6, Status::MaxTime),
        (&over, Status::MaxWork, 6, Status::MaxTime),
        (&Options::default(), Status::MaxWork, 1, Status::MaxWork),
        (&Options::default(), Status::Converged, 1, Status::Converged),
    ] {
        let only = solution(-1.0, 0.0, status, 0.0);
        let (found, bound, given) = search_alone(&smooth, options, only);
        assert_eq!((found.status, given.len()), (end, calls), "{options:?} {status:?}");
        assert!(bound.gap > 0.0);
    }
}

/// Two columns: the sum of the two least eigenvalues needs a round of the bound. The bound of the first
/// round decides, also where the search has converged.
#[test]
fn a_bound_is_searched_before_the_end() {
    let smooth = diagonal(&[-4.0, -2.0, 3.0]);
    let found = |value: f64, status: Status, options: &Options| {
        let only = solution(value, 0.0, status, 0.0);
        let (mut calls, threads) = (0, Threads::serial());
        let (found, bound) =
            minimize_proved((&smooth, 2), &Restriction::Free, 1e-9, options, &threads, &mut Unwatched, |_, _, _, _| {
                calls += 1;
                Ok(only.clone())
            })
            .unwrap();
        // The constant of two columns is twice that of one.
        assert!((bound.gap * (value + 1.0).abs() - (value - bound.value)).abs() < 1e-12);
        (found.status, bound.value, calls)
    };
    let (end, _, calls) = found(-2.5, Status::Converged, &Options::default());
    assert_eq!((end, calls), (Status::Converged, 1));
    for status in [Status::Converged, Status::MaxWork] {
        for options in [Options::default(), Options::default().with_max_work(1_000_000)] {
            let (end, value, calls) = found(-3.0, status, &options);
            assert_eq!((end, calls), (Status::Proved, 1));
            assert!((value + 3.0).abs() < 1e-12 && value <= -3.0);
        }
    }
}

/// An F equal to the bound is proved without a tolerance, and without a search for a better bound.
#[test]
fn a_bound_is_met_at_its_value() {
    let smooth = diagonal(&[-4.0, -2.0, 3.0]);
    let options = Options::default();
    let ended = solution(-1.0, 0.0, Status::Interrupted, 7.0);
    let goal = (0.0, &options);
    let first = run(&smooth, &Restriction::Free, goal, &[ended], &mut Unwatched).1;
    let only = solution(first.value, 0.0, Status::Converged, 7.0);
    let (found, bound, _) = run(&smooth, &Restriction::Free, goal, &[only], &mut Unwatched);
    assert_eq!((found.status, found.work), (Status::Proved, 7.0));
    assert_eq!((bound.gap, bound.value), (0.0, first.value));
}

/// The bound uses the work that the searches leave.
#[test]
fn the_bound_uses_the_work_that_is_left() {
    let a = crate::start::random(10, 10, 3) * 4.0;
    let smooth = Quadratic::new(&a + &a.t(), None, None).unwrap();
    let step = 8.0 * 1000.0;
    for steps in [32.0, 64.0] {
        let limit = steps * step;
        let options = Options::default().with_max_work(limit as u64);
        let only = solution(1000.0, 0.0, Status::MaxWork, 0.0);
        let restriction = Restriction::Count(1.0);
        let (found, bound, given) = run(&smooth, &restriction, (0.0, &options), &[only], &mut Unwatched);
        assert_eq!(given.len(), 6);
        // A step and a bound begin while work is left, one more in each round.
        assert!(found.work >= limit - 1.0 && found.work <= limit + 6.0 * 3.0 * step, "{}", found.work);
        assert!(bound.history.len() > 1);
        for (k, (_, work, ..)) in given.iter().enumerate() {
            let share = 2f64.powi(k as i32 - 5) * limit;
            assert!(work.unwrap() as f64 <= share);
        }
    }
}

/// The magnitude of a gap is |f − constant| + |h|, the constant that of a matrix with equal diagonal.
#[test]
fn gaps_are_relative_to_both_parts_of_f() {
    let smooth = diagonal(&[-4.0, -2.0, 3.0]);
    let options = Options::default();
    for (f, h) in [(-1.5, 0.75), (2.0, 0.0), (-0.5, 3.0)] {
        let only = solution(f, h, Status::Converged, 0.0);
        let bound = search_alone(&smooth, &options, only).1;
        let magnitude = (f + 0.5f64).abs() + h;
        assert!((bound.gap * magnitude - (f + h + 2.0)).abs() < 1e-12);
    }
}

/// A monitor that stops at its n-th call, and the records that it has seen.
struct Stopping {
    calls: usize,
    stop: usize,
    seen: Vec<Record>,
}

impl Monitor for Stopping {
    fn poll(&mut self) -> Control {
        self.calls += 1;
        match self.calls >= self.stop {
            true => Control::Stop,
            false => Control::Continue,
        }
    }

    fn record(&mut self, record: &Record, _: ArrayView2<'_, f64>) -> Control {
        self.seen.push(*record);
        self.poll()
    }
}

#[test]
fn a_monitor_ends_the_search_for_a_bound() {
    let smooth = diagonal(&[-4.0, -2.0, 3.0]);
    let options = Options::default().with_max_work(64_000_000);
    let only = solution(-1.0, 0.0, Status::MaxWork, 0.0);
    let mut monitor = Stopping { calls: 0, stop: 1, seen: Vec::new() };
    let free = Restriction::Free;
    let (found, _, given) = run(&smooth, &free, (0.0, &options), &[only], &mut monitor);
    assert_eq!((found.status, given.len()), (Status::Interrupted, 1));
}

/// A monitor sees the records of all rounds as those of one solve; the objective never rises.
#[test]
fn records_of_later_rounds_continue_the_first() {
    let smooth = diagonal(&[-4.0, -2.0, 3.0]);
    let options = Options::default().with_max_work(64_000_000);
    let values = [-1.0, -1.5, -1.25, -1.75, -1.75, -1.6];
    let mut monitor = Stopping { calls: 0, stop: usize::MAX, seen: Vec::new() };
    let (mut calls, threads) = (0, Threads::serial());
    let (found, _) =
        minimize_proved((&smooth, 1), &Restriction::Free, 0.0, &options, &threads, &mut monitor, |_, _, _, relay| {
            let mut next = solution(values[calls], 0.0, Status::MaxWork, 0.0);
            next.seconds = 0.0;
            next.history[0].seconds = 0.0;
            relay.record(&next.history[0], next.x.view());
            calls += 1;
            Ok(next)
        })
        .unwrap();
    assert_eq!((found.objective, calls), (-1.75, 6));
    let seen: Vec<(f64, u64)> = monitor.seen.iter().map(|r| (r.objective, r.iterations)).collect();
    assert_eq!(seen, [(-1.0, 3), (-1.5, 6), (-1.75, 12), (-1.75, 15)]);
    let rows: Vec<(f64, u64)> = found.history.iter().map(|r| (r.objective, r.iterations)).collect();
    assert_eq!(rows, [(-1.0, 3), (-1.5, 6), (-1.75, 12), (-1.75, 12)]);
    assert!(found.history.windows(2).all(|w| w[0].seconds <= w[1].seconds));
}

#[test]
fn two_solutions_are_joined() {
    let best = solution(-1.0, 0.25, Status::MaxWork, 5.0);
    for (value, better) in [(-2.0, true), (-1.0, false), (-0.5, false)] {
        let mut found = solution(value, 0.25, Status::Converged, 2.0);
        found.x = array![[0.0], [1.0], [0.0]];
        let equal = Record { objective: -0.75, ..found.history[0] };
        found.history.insert(0, equal);
        let both = joined(best.clone(), found.clone(), 10.0);
        assert_eq!(both.x, if better { found.x } else { best.x.clone() });
        assert_eq!(both.objective, if better { value + 0.25 } else { -0.75 });
        assert_eq!(both.status, Status::Converged);
        assert_eq!((both.iterations, both.sweeps, both.updates, both.work), (6, 4, 2, 7.0));
        let rows: Vec<(f64, f64, u64)> =
            (both.history.iter()).map(|r| (r.seconds, r.objective, r.iterations)).collect();
        let mut expected = vec![(0.25, -0.75, 3)];
        if better {
            expected.push((10.25, value + 0.25, 6));
        }
        assert_eq!(rows, expected);
    }
}
