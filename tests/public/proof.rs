//! A search with a proof: it ends at the gap, within its limits, the same on any number of threads.

use ndarray::{Array1, Array2, ArrayView2, s};
use orthobcd::certificate::{Bound, Prover, Restriction};
use orthobcd::penalty::Penalty;
use orthobcd::search::minimize_proved;
use orthobcd::{
    Auto, Cardinality, Control, Limit, Monitor, Options, Problem, Quadratic, Record, RowSparsity, Signature, Solution,
    Sparsity, Status, Threads, Unwatched, start,
};

/// C of `n` features, of which all but the first four are small.
fn covariance(n: usize, small: f64, seed: u64) -> Quadratic<'static> {
    let sizes = Array1::from_shape_fn(n, |i| if i < 4 { 1.0 } else { small });
    let data = start::random(4 * n, 4 * n, seed) * (4.0 * n as f64).sqrt();
    Quadratic::from_data((&data.slice(s![..2 * n, ..n]) * &sizes).view()).unwrap()
}

fn columns(counts: &[usize]) -> Option<Limit> {
    Some(Limit::Entries(Sparsity::new(Cardinality::Columns(counts.to_vec()))))
}

/// Limits, and none.
fn kinds() -> [Option<Limit>; 6] {
    [
        columns(&[2, 2]),
        Some(Limit::Entries(Sparsity::new(Cardinality::Total(5)))),
        Some(Limit::Entries(Sparsity::new(Cardinality::Columns(vec![2, 3])).with_nonnegative(true))),
        Some(Limit::Rows(RowSparsity::Count(4))),
        Some(Limit::Rows(RowSparsity::Penalty(0.1))),
        None,
    ]
}

fn proved_with(
    (smooth, kind): (&Quadratic<'_>, &Option<Limit>),
    (gap_tol, options, threads): (f64, Options, usize),
    monitor: &mut dyn Monitor,
) -> (Solution, Bound) {
    use orthobcd::Objective;
    let signature = Signature::stiefel(smooth.rows());
    let mut problem = Problem::new(smooth, &Penalty::NONE, &signature, 2).unwrap();
    if let Some(limit) = kind {
        problem = problem.with_limit(limit).unwrap();
    }
    let restriction = Restriction::of(&problem).unwrap();
    let threads = Threads::new(Some(threads)).unwrap();
    let prover = Prover::new(&problem, &restriction, gap_tol, &threads).unwrap();
    let found =
        minimize_proved(&problem, None, prover, &Auto::default().with_options(options), &threads, monitor).unwrap();
    let (solution, bound) = (found.solution, found.bound.unwrap());
    let size =
        problem.magnitude(solution.smooth_value, solution.penalty_value, problem.constant(Array2::eye(2).view()));
    assert!(solution.objective >= bound.value - 1e-12 * size, "{kind:?}");
    assert!(solution.history.windows(2).all(|w| w[1].objective <= w[0].objective && w[1].seconds >= w[0].seconds));
    for &i in &bound.excluded {
        assert!(solution.x.row(i).iter().all(|&v| v == 0.0), "{kind:?} {i}");
    }
    (solution, bound)
}

fn proved(smooth: &Quadratic<'_>, kind: &Option<Limit>, gap_tol: f64, options: Options) -> (Solution, Bound) {
    proved_with((smooth, kind), (gap_tol, options, 1), &mut Unwatched)
}

#[test]
fn a_search_ends_at_the_gap_with_and_without_limits() {
    for (n, ratio) in [(6, 0.9), (9, 0.5)] {
        let smooth = covariance(n, ratio, n as u64);
        for kind in kinds() {
            // The relaxation alone bounds a penalty of rows; branching bounds limits to rounding.
            let gap_tol = 1e-3;
            for options in [Options::default(), Options::default().with_max_work(20_000_000_000)] {
                let (solution, bound) = proved(&smooth, &kind, gap_tol, options);
                assert!(bound.gap <= gap_tol, "{kind:?} {}", bound.gap);
                assert_eq!(solution.status, Status::Proved, "{kind:?}");
            }
        }
    }
}

/// More work never gives a higher F, nor a bound that is lower by more than the order of branches explains.
#[test]
fn what_is_not_proved_names_the_limit_that_ended_it() {
    let smooth = covariance(24, 0.8, 3);
    for kind in kinds().into_iter().filter(Option::is_some) {
        let mut before: Option<(Solution, Bound)> = None;
        for work in [1u64, 3_000_000, 30_000_000, 300_000_000] {
            let (solution, bound) = proved(&smooth, &kind, 0.0, Options::default().with_max_work(work));
            match solution.status {
                Status::Proved => assert_eq!(bound.gap, 0.0),
                // All branches are closed, and the bounds of some leave a gap.
                Status::Converged => assert!(bound.gap > 0.0),
                status => assert!(status == Status::MaxWork && bound.gap > 0.0, "{kind:?} {work} {status:?}"),
            }
            if let Some((least, highest)) = &before {
                assert!(solution.objective <= least.objective, "{kind:?} {work}");
                assert!(bound.value >= highest.value - 1e-5 * highest.value.abs(), "{kind:?} {work}");
            }
            before = Some((solution, bound));
        }
        let (solution, _) = proved(&smooth, &kind, 0.0, Options::default().with_max_time(0.0));
        assert!(matches!(solution.status, Status::MaxTime | Status::Proved), "{:?}", solution.status);
        let aimed = Options::default().with_max_work(3_000_000_000).with_target(solution.objective);
        let (solution, _) = proved(&smooth, &kind, 0.0, aimed);
        assert!(matches!(solution.status, Status::Target | Status::Proved), "{:?}", solution.status);
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let mut excluded = 0;
    for (n, ratio, work) in [(8, 0.1, 300_000_000), (12, 0.1, 300_000_000), (24, 0.8, 100_000_000)] {
        let smooth = covariance(n, ratio, 5);
        for kind in kinds() {
            let run = |threads| {
                let options = Options::default().with_max_work(work);
                proved_with((&smooth, &kind), (0.0, options, threads), &mut Unwatched)
            };
            let (one, three) = (run(1), run(3));
            assert_eq!(one.0.x, three.0.x, "{kind:?}");
            assert_eq!((one.0.status, one.0.work), (three.0.status, three.0.work), "{kind:?}");
            assert_eq!((one.1.value, &one.1.excluded), (three.1.value, &three.1.excluded), "{kind:?}");
            excluded += one.1.excluded.len();
        }
    }
    assert!(excluded > 0);
}

/// A monitor that stops at its n-th call.
struct Stopping(usize);

impl Monitor for Stopping {
    fn poll(&mut self) -> Control {
        self.0 = self.0.saturating_sub(1);
        match self.0 {
            0 => Control::Stop,
            _ => Control::Continue,
        }
    }

    fn record(&mut self, _: &Record, _: ArrayView2<'_, f64>) -> Control {
        self.poll()
    }
}

#[test]
fn a_monitor_ends_both() {
    let smooth = covariance(24, 0.8, 3);
    for kind in kinds().into_iter().filter(Option::is_some) {
        for calls in [1, 2, 5, 12] {
            let options = (0.0, Options::default().with_max_work(u64::MAX / 2), 1);
            let (solution, bound) = proved_with((&smooth, &kind), options, &mut Stopping(calls));
            assert!(matches!(solution.status, Status::Interrupted | Status::Proved), "{:?}", solution.status);
            let feasible: Array2<f64> = solution.x.t().dot(&solution.x) - Array2::<f64>::eye(2);
            assert!(feasible.iter().all(|v| v.abs() < 1e-12) && bound.value.is_finite());
        }
    }
}
