//! The default solver and the λ-path through the public interface.

use crate::common;
use ndarray::{Array1, Array2, array};
use orthobcd::penalty::Penalty;
use orthobcd::{
    Auto, Cardinality, Control, Limit, Monitor, Options, Problem, Quadratic, Record, RowSparsity, Signature, Sparsity,
    Stages, Status, Threads, Unwatched, certify, follow_path, linalg, minimize, minimize_auto, start,
};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// m samples of n correlated features of different weight.
fn data(m: usize, n: usize, seed: u64) -> Array2<f64> {
    let tall = start::random(m.max(n), n, seed) * 6.0;
    let weights = Array1::from_shape_fn(n, |k| 1.0 + (k % 7) as f64);
    let mixed = (&tall * &weights).dot(&start::random(n, n, seed + 1));
    mixed.slice(ndarray::s![..m, ..]).mapv(common::given)
}

fn solve(problem: &Problem<'_>, options: Options, threads: usize) -> orthobcd::AutoSolution {
    let auto = Auto::default().with_options(options);
    minimize_auto(problem, None, &auto, &Threads::new(Some(threads)).unwrap(), &mut Unwatched).unwrap()
}

fn check(penalty: &Penalty) {
    let (n, r) = (40, 4);
    let smooth = Quadratic::from_data(data(30, n, 3).view()).unwrap();
    let signature = Signature::stiefel(n);
    let problem = Problem::new(&smooth, penalty, &signature, r).unwrap();
    let one = solve(&problem, Options::default(), 1);
    let two = solve(&problem, Options::default(), 2);
    // The same bits, whatever the number of threads.
    assert_eq!(one.solution.x, two.solution.x);
    assert_eq!(one.solution.objective, two.solution.objective);
    let solution = &one.solution;
    assert!(solution.feasibility < 1e-12);
    assert_eq!(solution.status, Status::Converged);
    assert!(solution.history.windows(2).all(|w| w[1].objective <= w[0].objective));
    assert_eq!(solution.history.last().unwrap().objective, solution.objective);
    assert!(!one.runs.is_empty() && !one.strategy.is_empty());
    // One plain descent may be as good, and by luck a little better.
    let plain = match penalty.infeasibility(start::identity(n, r).view()) {
        _ if penalty.entry(0, 0, -1.0).is_infinite() => start::partition(n, r, 0),
        _ => start::identity(n, r),
    };
    let plain = minimize(&problem, plain, &Options::default(), &Threads::serial(), &mut Unwatched).unwrap();
    assert!(solution.objective <= plain.objective + 1e-3 * plain.objective.abs());
    let certificate = certify(&problem, solution.x.view(), &Threads::serial()).unwrap();
    assert!(certificate.block2_gap <= 1e-6 * solution.objective.abs());
    // Limited sweeps: kept, and reproducible.
    let limited = Options::default().with_max_sweeps(20).with_seed(5);
    let (a, b) = (solve(&problem, limited.clone(), 2), solve(&problem, limited, 1));
    assert_eq!(a.solution.x, b.solution.x);
    assert!(a.solution.sweeps <= 20, "{}", a.solution.sweeps);
}

#[test]
fn every_penalty_is_reproducible_and_good() {
    check(&Penalty::l0(3.0));
    check(&Penalty::l1(2.0));
    check(&Penalty::NONNEGATIVE);
    check(&Penalty::NONE);
}

#[test]
fn procrustes_reaches_the_singular_value_optimum() {
    for n in [4, 8, 16] {
        for seed in 0..200 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let a: Array2<f64> = Array2::from_shape_fn((n, n), |_| StandardNormal.sample(&mut rng));
            let smooth = Quadratic::new(Array2::zeros((n, n)), Some(&a * -2.0), None).unwrap();
            let signature = Signature::stiefel(n);
            let problem = Problem::new(&smooth, &Penalty::NONE, &signature, n).unwrap();
            let (_, singular, _) = linalg::svd(a.view());
            let answer = solve(&problem, Options::default().with_seed(seed), 1);
            assert!(answer.solution.objective <= -2.0 * singular.sum() * (1.0 - 1e-12));
            assert_eq!(answer.solution.status, Status::Converged);
        }
    }
}

/// Block-2 stationary, yet not critical: Theorem 3.6(a) of the OBCD paper is false with a nonsmooth h.
#[test]
fn the_solver_leaves_a_point_where_every_pair_rests() {
    let c = 0.5f64.sqrt();
    let x = array![[0.0, 1.0], [c, 0.0], [c, 0.0]];
    let w = 0.95 * (1.0 + c);
    let linear = array![[0.0, 0.0], [0.0, -w], [0.0, w]] - &(&x * 5.0);
    let smooth = Quadratic::new(Array2::zeros((3, 3)), Some(linear), None).unwrap();
    let signature = Signature::stiefel(3);
    let penalty = Penalty::l1(1.0);
    let problem = Problem::new(&smooth, &penalty, &signature, 2).unwrap();
    let certificate = certify(&problem, x.view(), &Threads::serial()).unwrap();
    assert_eq!(certificate.block2_gap, 0.0);
    assert_eq!(certificate.block2_pair, None);
    assert!((certificate.criticality - 0.88).abs() < 0.01, "{}", certificate.criticality);
    let options = Options::default();
    let stays = minimize(&problem, x.clone(), &options, &Threads::serial(), &mut Unwatched).unwrap();
    assert_eq!(stays.x, x);
    let auto = Auto::default().with_makers(vec!["given".to_owned()]).with_options(options);
    let moves = minimize_auto(&problem, Some(x.clone()), &auto, &Threads::serial(), &mut Unwatched).unwrap();
    assert!(moves.solution.objective < stays.objective - 1e-3);
    assert!(moves.solution.feasibility < 1e-14);
    let certificate = certify(&problem, moves.solution.x.view(), &Threads::serial()).unwrap();
    assert!(certificate.criticality < 1e-5, "{}", certificate.criticality);
}

#[test]
fn large_lambda_is_proved_at_once() {
    let smooth = Quadratic::from_data(data(30, 25, 1).view()).unwrap();
    let signature = Signature::stiefel(25);
    let penalty = Penalty::l0(1e4);
    let problem = Problem::new(&smooth, &penalty, &signature, 3).unwrap();
    let answer = solve(&problem, Options::default(), 2);
    assert_eq!(answer.solution.status, Status::Converged);
    let certificate = certify(&problem, answer.solution.x.view(), &Threads::serial()).unwrap();
    assert!(certificate.is_optimal(1e-12));
}

struct StopAtOnce;

impl Monitor for StopAtOnce {
    fn record(&mut self, _record: &Record, _x: ndarray::ArrayView2<'_, f64>) -> Control {
        Control::Stop
    }
}

#[test]
fn limits_and_stops_return_a_feasible_point() {
    let n = 30;
    let smooth = Quadratic::from_data(data(30, n, 1).view()).unwrap();
    let signature = Signature::stiefel(n);
    let penalty = Penalty::l0(1.0);
    let problem = Problem::new(&smooth, &penalty, &signature, 3).unwrap();
    for (options, status) in [
        (Options::default().with_max_sweeps(0), Status::MaxSweeps),
        (Options::default().with_max_time(0.0), Status::MaxTime),
        (Options::default().with_target(f64::MAX), Status::Target),
    ] {
        let answer = solve(&problem, options, 2).solution;
        assert_eq!(answer.status, status);
        assert!(answer.feasibility < 1e-12);
    }
    let auto = Auto::default();
    let answer = minimize_auto(&problem, None, &auto, &Threads::serial(), &mut StopAtOnce).unwrap();
    assert_eq!(answer.solution.status, Status::Interrupted);
}

#[test]
fn path_falls_to_the_problems_own_lambda() {
    let n = 30;
    let smooth = Quadratic::from_data(data(40, n, 2).view()).unwrap();
    let signature = Signature::stiefel(n);
    let penalty = Penalty::l0(0.5);
    let problem = Problem::new(&smooth, &penalty, &signature, 3).unwrap();
    let options = Options::default();
    let threads = Threads::serial();
    let answer = follow_path(&problem, None, &Stages::default(), &options, &threads, &mut Unwatched).unwrap();
    assert!(answer.path.windows(2).all(|w| w[0].lambda > w[1].lambda));
    assert_eq!(answer.path[0].nonzeros, 3);
    let last = answer.path.last().unwrap();
    assert_eq!((last.lambda, last.objective), (0.5, answer.solution.objective));
    assert_eq!(last.x, answer.solution.x);
    let up = follow_path(
        &problem,
        None,
        &Stages { lams: Some(&[0.01, 0.1, 0.5]), ..Stages::default() },
        &options,
        &threads,
        &mut Unwatched,
    )
    .unwrap();
    assert!(up.path[0].nonzeros >= up.path[2].nonzeros);
    // A path that goes through a large λ, and ends there for lack of sweeps, is no worse than its start.
    let again = follow_path(
        &problem,
        Some(answer.solution.x.clone()),
        &Stages { lams: Some(&[50.0, 5.0]), ..Stages::default() },
        &options.clone().with_max_sweeps(1),
        &threads,
        &mut Unwatched,
    )
    .unwrap();
    assert!(again.path[0].nonzeros < answer.path.last().unwrap().nonzeros);
    assert!(again.solution.objective <= answer.solution.objective);
    for (lams, ratio) in [(Some(&[][..]), 0.6), (Some(&[-1.0][..]), 0.6), (None, 1.0)] {
        assert!(
            follow_path(
                &problem,
                None,
                &Stages { lams, ratio, ..Stages::default() },
                &options,
                &threads,
                &mut Unwatched
            )
            .is_err()
        );
    }
    let smooth_problem = Problem::new(&smooth, &Penalty::NONE, &signature, 3).unwrap();
    assert!(follow_path(&smooth_problem, None, &Stages::default(), &options, &threads, &mut Unwatched).is_err());
}

/// C·2^k, and C + cI.
fn moved(c: &Array2<f64>, factor: f64, shift: f64) -> Quadratic<'static> {
    let mut c = c * factor;
    c.diag_mut().mapv_inplace(|v| v + shift);
    Quadratic::new(c, None, None).unwrap()
}

fn found(smooth: &Quadratic, penalty: &Penalty) -> orthobcd::Solution {
    let signature = Signature::stiefel(24);
    let problem = Problem::new(smooth, penalty, &signature, 3).unwrap();
    // Patient enough to end at the optimum, whatever the rounding.
    solve(&problem, Options::default().with_effort(4.0), 1).solution
}

/// The same bits for F·2^k, about the same point for any factor and for C + cI.
fn check_equivariance(penalty: impl Fn(f64) -> Penalty) {
    let c = Quadratic::from_data(data(20, 24, 7).view()).unwrap();
    let c = c.matrix().to_owned();
    let norm = c.iter().map(|v| v * v).sum::<f64>().sqrt();
    let plain = found(&moved(&c, 1.0, 0.0), &penalty(1.0));
    for factor in [2f64.powi(40), 2f64.powi(-40)] {
        let scaled = found(&moved(&c, factor, 0.0), &penalty(factor));
        assert_eq!(scaled.x, plain.x, "{factor:e}");
        assert_eq!(scaled.objective, factor * plain.objective);
    }
    let support = |x: &Array2<f64>| x.mapv(|v| v != 0.0);
    // Optima are found, not only descended to: rounding must not matter for these.
    for factor in [1e-8, 1e8] {
        let scaled = found(&moved(&c, factor, 0.0), &penalty(factor));
        let gap = (scaled.objective / factor - plain.objective).abs();
        assert!(support(&scaled.x) == support(&plain.x) || gap <= 1e-9 * plain.objective.abs(), "{factor:e} {gap:e}");
    }
    let shift = 1e6 * norm / 24.0;
    let shifted = found(&moved(&c, 1.0, shift), &penalty(1.0));
    let signature = Signature::stiefel(24);
    let penalty = penalty(1.0);
    let smooth = moved(&c, 1.0, 0.0);
    let problem = Problem::new(&smooth, &penalty, &signature, 3).unwrap();
    let value = problem.objective(shifted.x.view(), &Threads::serial());
    let gap = (value - plain.objective).abs();
    assert!(support(&shifted.x) == support(&plain.x) || gap <= 1e-9 * plain.objective.abs(), "{gap:e}");
}

#[test]
fn scale_and_shift_do_not_matter() {
    check_equivariance(|factor| Penalty::l0(3.0 * factor));
    check_equivariance(|factor| Penalty::l1(2.0 * factor));
    check_equivariance(|_| Penalty::NONNEGATIVE);
    check_equivariance(|_| Penalty::NONE);
}

/// f = ¼ Σ (X_ij − a_ij)⁴.
struct Quartic {
    target: Array2<f64>,
}

impl orthobcd::Objective for Quartic {
    fn rows(&self) -> usize {
        self.target.nrows()
    }

    fn value_and_gradient(
        &self,
        x: ndarray::ArrayView2<'_, f64>,
        mut gradient: ndarray::ArrayViewMut2<'_, f64>,
        _: &Threads,
    ) -> f64 {
        let away = &x - &self.target;
        gradient.assign(&away.mapv(|v| v.powi(3)));
        0.25 * away.mapv(|v| v.powi(4)).sum()
    }
}

#[test]
fn what_is_not_quadratic_is_searched_but_not_counted() {
    let smooth = Quartic { target: start::random(6, 2, 1) * 2.0 };
    let signature = Signature::stiefel(6);
    let penalty = Penalty::l1(1e6);
    let problem = Problem::new(&smooth, &penalty, &signature, 2).unwrap();
    let serial = Threads::serial();
    let options = Options::default().with_max_sweeps(50);
    let x0 = start::identity(6, 2);
    let counted = Problem::new(&smooth, &Penalty::NONE, &signature, 2).unwrap();
    for limit in [Limit::Entries(Sparsity::new(Cardinality::Total(4))), Limit::Rows(RowSparsity::Count(4))] {
        let message = counted.with_limit(&limit).err().expect("refused").to_string();
        assert!(message.contains("quadratic"), "{message}");
    }
    let limited = Options::default().with_max_work(20_000_000);
    let auto = Auto::default().with_options(limited);
    let found = minimize_auto(&problem, None, &auto, &serial, &mut Unwatched).unwrap();
    let stages = Stages::default();
    let path = follow_path(&problem, Some(x0), &stages, &options, &serial, &mut Unwatched);
    for solution in [found.solution, path.unwrap().solution] {
        assert!(solution.feasibility < 1e-12);
        // One entry per column is as sparse as orthonormal columns can be.
        assert_eq!(solution.x.iter().filter(|&&v| v != 0.0).count(), 2);
        assert!(solution.objective.is_finite());
    }
    // λ is so large that the value of a quadratic would be known.
    let certificate = certify(&problem, start::identity(6, 2).view(), &serial).unwrap();
    assert_eq!(certificate.optimum, None);
}

/// Nothing to find: every method that waits for an improvement has to end without one.
#[test]
fn a_constant_objective_ends() {
    for lambda in [0.0, 0.1] {
        let smooth = Quadratic::new(Array2::zeros((24, 24)), None, None).unwrap();
        let solution = found(&smooth, &Penalty::l0(lambda));
        assert!(solution.feasibility <= 1e-12);
        assert!(solution.objective <= 3.0 * lambda + 1e-12);
    }
}

/// The largest and smallest numbers that are accepted: no panic, no endless loop, nothing that is not finite.
#[test]
fn sizes_at_their_limits_end() {
    let c = Quadratic::from_data(data(20, 24, 3).view()).unwrap();
    let c = c.matrix().to_owned();
    let c = &c / c.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    for scale in [1e-120, 1e-119, 1e119, 1e120] {
        let smooth = Quadratic::new(&c * scale, None, None).unwrap();
        let solution = found(&smooth, &Penalty::NONNEGATIVE);
        assert!(solution.x.iter().all(|v| v.is_finite() && *v >= 0.0));
        assert!(solution.objective.is_finite() && solution.feasibility <= 1e-12);
    }
    for scale in [1e-121, 1e121] {
        assert!(Quadratic::new(&c * scale, None, None).is_err());
    }
}

/// Work is counted, so limits on it give the same bits for any number of threads.
#[test]
fn work_is_limited_and_counted() {
    let n = 40;
    let smooth = Quadratic::from_data(data(30, n, 3).view()).unwrap();
    let signature = Signature::stiefel(n);
    let penalty = Penalty::l1(0.1);
    let problem = Problem::new(&smooth, &penalty, &signature, 4).unwrap();
    let limited = |work: u64| Options::default().with_max_work(work).with_tol(0.0);
    let x0 = start::random(n, 4, 1);
    let serial = Threads::serial();
    let mut last = f64::INFINITY;
    for work in [1, 5_000_000, 20_000_000] {
        let end = minimize(&problem, x0.clone(), &limited(work), &serial, &mut Unwatched).unwrap();
        assert_eq!(end.status, Status::MaxWork);
        assert!(end.objective < last, "more work, a lower end");
        last = end.objective;
    }
    let (one, two) =
        (solve(&problem, limited(30_000_000), 1).solution, solve(&problem, limited(30_000_000), 2).solution);
    assert_eq!(one.x, two.x);
    assert!(one.feasibility <= 1e-12);
}
