//! Rotations only: det X = 1 along whole runs of every solver, values against brute force and the closed form of
//! Procrustes' problem, and what is refused.

use crate::common::normal;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, array};
use orthobcd::penalty::Penalty;
use orthobcd::{
    Auto, Control, Monitor, Objective, Options, Problem, Quadratic, Record, Side, Signature, Sparsity, Stages, Status,
    Threads, Unwatched, Update, WorkingSet, certify, follow_path, linalg, minimize, minimize_auto, start,
};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

fn gauss(n: usize, seed: u64) -> Array2<f64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    Array2::from_shape_simple_fn((n, n), || normal(&mut rng))
}

/// The determinant, by elimination.
fn determinant(x: ArrayView2<'_, f64>) -> f64 {
    let mut a = x.to_owned();
    let mut det = 1.0;
    for k in 0..a.nrows() {
        let by_size = |&i: &usize, &j: &usize| a[[i, k]].abs().total_cmp(&a[[j, k]].abs());
        let pivot = (k..a.nrows()).max_by(by_size).unwrap();
        if pivot != k {
            det = -det;
            for j in 0..a.ncols() {
                a.swap([pivot, j], [k, j]);
            }
        }
        det *= a[[k, k]];
        for i in k + 1..a.nrows() {
            let factor = a[[i, k]] / a[[k, k]];
            for j in k..a.ncols() {
                a[[i, j]] -= factor * a[[k, j]];
            }
        }
    }
    det
}

/// A rotation; a permutation for X ≥ 0.
fn first(n: usize, seed: u64, nonnegative: bool) -> Array2<f64> {
    let mut x = match nonnegative {
        true => start::partition(n, n, seed),
        false => start::random(n, n, seed),
    };
    if determinant(x.view()) < 0.0 {
        for k in 0..n {
            x.swap([0, k], [1, k]);
        }
    }
    x
}

/// ½⟨X, CX⟩ + ⟨L, X⟩.
fn quadratic(n: usize, seed: u64) -> Quadratic<'static> {
    let c = gauss(n, seed);
    Quadratic::new(&c + &c.t(), Some(gauss(n, seed + 100)), None).unwrap()
}

/// The same without saying so, and a quartic term.
struct Quartic(Quadratic<'static>, usize);

impl Objective for Quartic {
    fn rows(&self) -> usize {
        self.1
    }

    fn value_and_gradient(
        &self,
        x: ArrayView2<'_, f64>,
        mut gradient: ArrayViewMut2<'_, f64>,
        threads: &Threads,
    ) -> f64 {
        let value = self.0.value_and_gradient(x, gradient.view_mut(), threads);
        gradient.scaled_add(0.4, &x.mapv(|v| v * v * v));
        value + 0.1 * x.mapv(|v| v.powi(4)).sum()
    }
}

/// Every point is a rotation, and F never rises.
struct Watch(f64);

impl Monitor for Watch {
    fn record(&mut self, record: &Record, x: ArrayView2<'_, f64>) -> Control {
        assert!((determinant(x) - 1.0).abs() < 1e-9, "{}", determinant(x));
        assert!(record.objective <= self.0);
        self.0 = record.objective;
        Control::Continue
    }
}

fn ways() -> Vec<Options> {
    let sets = [
        (WorkingSet::Random, 2),
        (WorkingSet::Random, 3),
        (WorkingSet::Cyclic, 2),
        (WorkingSet::Cyclic, 4),
        (WorkingSet::WssSv, 2),
        (WorkingSet::WssOr, 2),
        (WorkingSet::Tiled, 2),
    ];
    let mut ways = Vec::new();
    for (working_set, block_size) in sets {
        let mut options = Options::default();
        (options.working_set, options.block_size) = (working_set, block_size);
        ways.push(options);
    }
    for (update, side) in
        [(Update::Jacobi, Side::Rows), (Update::GaussSeidel, Side::Columns), (Update::GaussSeidel, Side::Both)]
    {
        let mut options = Options::default();
        (options.update, options.side) = (update, side);
        ways.push(options);
    }
    ways
}

fn every_solver(penalty: &Penalty) {
    let (n, threads) = (7, Threads::serial());
    let signature = Signature::stiefel(n);
    let form = quadratic(n, 1);
    let quartic = Quartic(quadratic(n, 1), n);
    let nonnegative = penalty.nonnegative();
    for smooth in [&form as &dyn Objective, &quartic] {
        let problem = Problem::new(smooth, penalty, &signature, n).unwrap();
        let problem = problem.rotations_only().unwrap();
        let x0 = first(n, 4, nonnegative);
        for mut options in ways() {
            let moves = smooth.quadratic().is_some();
            if (options.side == Side::Columns || options.block_size > 2) && !moves {
                continue;
            }
            options.max_sweeps = Some(300);
            let mut watch = Watch(f64::INFINITY);
            let solution = minimize(&problem, x0.clone(), &options, &threads, &mut watch).unwrap();
            assert!(solution.feasibility < 1e-12);
            let rests = solution.status == Status::Converged && options.side != Side::Columns;
            if rests && smooth.quadratic().is_some() {
                let certificate = certify(&problem, solution.x.view(), &threads).unwrap();
                assert!(certificate.block2_gap <= 1e-9 * certificate.magnitude);
            }
        }
        let mut watch = Watch(f64::INFINITY);
        let auto = Auto::default().with_options(Options::default().with_max_work(20_000_000));
        let start = Some(x0).filter(|_| penalty.infeasibility(Array2::eye(n).view()) > 0.0);
        let found = minimize_auto(&problem, start, &auto, &threads, &mut watch).unwrap();
        assert!((determinant(found.solution.x.view()) - 1.0).abs() < 1e-9);
        if penalty.strength().is_some() {
            let mut watch = Watch(f64::INFINITY);
            let options = Options::default().with_max_sweeps(300);
            let stages = Stages::default();
            let path = follow_path(&problem, None, &stages, &options, &threads, &mut watch).unwrap();
            for point in &path.path {
                assert!((determinant(point.x.view()) - 1.0).abs() < 1e-9);
            }
        }
    }
}

#[test]
fn every_solver_stays_with_rotations() {
    every_solver(&Penalty::NONE);
    every_solver(&Penalty::l0(0.3));
    every_solver(&Penalty::l1(0.3));
    every_solver(&Penalty::l1(0.2).general());
    every_solver(&Penalty::NONNEGATIVE);
    every_solver(&Penalty::mcp(0.4, 2.0).unwrap());
    every_solver(&Penalty::interval(-0.95, 0.95).unwrap());
}

/// −Σσ with the sign of the smallest one changed where UVᵀ is a reflection.
fn procrustes(b: &Array2<f64>) -> f64 {
    let (u, s, v) = linalg::svd(b.view());
    let sign = determinant(u.dot(&v.t()).view()).signum();
    let last = s.len() - 1;
    -(s.sum() - s[last] + sign * s[last])
}

#[test]
fn procrustes_is_solved_where_the_optimum_is_a_reflection() {
    let (n, threads, mut reflections) = (6, Threads::serial(), 0);
    let signature = Signature::stiefel(n);
    for seed in 0..12 {
        let b = gauss(n, seed);
        let best = procrustes(&b);
        reflections += usize::from(best > -linalg::svd(b.view()).1.sum() + 1e-12);
        let form = Quadratic::new(Array2::zeros((n, n)), Some(-&b), None).unwrap();
        let bare = Quadratic::new(Array2::zeros((n, n)), Some(-&b), None).unwrap();
        let slow = Unsaid(bare);
        for smooth in [&form as &dyn Objective, &slow] {
            let problem = Problem::new(smooth, &Penalty::NONE, &signature, n).unwrap();
            let problem = problem.rotations_only().unwrap();
            let x0 = first(n, seed + 50, false);
            let quadratic = smooth.quadratic().is_some();
            let fits = |o: &&Options| o.side == Side::Rows && o.block_size == 2;
            for options in ways().iter().filter(|o| quadratic || fits(o)) {
                let found = minimize(&problem, x0.clone(), options, &threads, &mut Unwatched);
                let found = found.unwrap();
                let off = (found.objective - best).abs();
                assert!(off <= 1e-7 * best.abs(), "{seed} {options:?} {off:e}");
            }
            let auto = Auto::default().with_options(Options::default().with_max_work(100_000_000));
            let found = minimize_auto(&problem, None, &auto, &threads, &mut Unwatched).unwrap();
            let off = (found.solution.objective - best).abs();
            assert!(off <= 1e-7 * best.abs(), "{seed} {off:e}");
            if quadratic {
                let x = found.solution.x.view();
                let optimum = certify(&problem, x, &threads).unwrap().optimum.unwrap();
                assert!((optimum - best).abs() <= 1e-12 * best.abs());
            }
        }
    }
    assert!((3..=9).contains(&reflections), "{reflections}");
}

/// A quadratic form that does not say that it is one.
struct Unsaid(Quadratic<'static>);

impl Objective for Unsaid {
    fn rows(&self) -> usize {
        self.0.rows()
    }

    fn value_and_gradient(&self, x: ArrayView2<'_, f64>, gradient: ArrayViewMut2<'_, f64>, threads: &Threads) -> f64 {
        self.0.value_and_gradient(x, gradient, threads)
    }
}

/// The least F over a grid of the rotations of the plane, or over all rotations by angles of a grid about three axes.
fn grid(problem: &Problem<'_>, n: usize, cells: usize) -> f64 {
    let threads = Threads::serial();
    let turn = |(i, j): (usize, usize), k: usize, cells: usize| {
        // Quarters of the circle exactly.
        let (s, c) = (std::f64::consts::TAU * k as f64 / cells as f64).sin_cos();
        let [s, c] = [s, c].map(|v| if v.abs() < 1e-12 { 0.0 } else { v });
        let mut x = Array2::eye(n);
        (x[[i, i]], x[[j, j]], x[[i, j]], x[[j, i]]) = (c, c, s, -s);
        x
    };
    let mut least = f64::INFINITY;
    let mut look = |x: Array2<f64>| {
        if problem.penalty().infeasibility(x.view()) == 0.0 {
            least = least.min(problem.objective(x.view(), &threads));
        }
    };
    for a in 0..cells {
        let first = turn((0, 1), a, cells);
        if n == 2 {
            look(first);
            continue;
        }
        for b in 0..=cells / 2 {
            let second = first.dot(&turn((1, 2), b, cells));
            for c in 0..cells {
                look(second.dot(&turn((0, 1), c, cells)));
            }
        }
    }
    least
}

fn against_the_grid(penalty: &Penalty, n: usize, cells: usize, slack: f64) {
    let threads = Threads::serial();
    let signature = Signature::stiefel(n);
    let name = format!("{penalty:?}");
    for seed in 0..6 {
        let smooth = quadratic(n, seed);
        let problem = Problem::new(&smooth, penalty, &signature, n).unwrap();
        let problem = problem.rotations_only().unwrap();
        let least = grid(&problem, n, cells);
        let auto = Auto::default().with_options(Options::default().with_max_work(100_000_000));
        let x0 = array![[0.8, 0.6], [-0.6, 0.8]];
        let start = Some(x0).filter(|_| penalty.infeasibility(Array2::eye(n).view()) > 0.0);
        let found = minimize_auto(&problem, start, &auto, &threads, &mut Unwatched).unwrap();
        let value = found.solution.objective;
        assert!(value <= least + 1e-12 * least.abs(), "{name} {n} {seed}: {value} {least}, {:?}", found.runs);
        assert!(value >= least - slack, "{name} {n} {seed}: {value} {least}");
        let certificate = certify(&problem, found.solution.x.view(), &threads).unwrap();
        assert!(certificate.block2_gap <= 1e-8 * certificate.magnitude);
    }
}

#[test]
fn the_plane_and_space_are_searched() {
    let turns = 4000;
    against_the_grid(&Penalty::NONE, 2, turns, 1e-4);
    against_the_grid(&Penalty::l1(0.7), 2, turns, 2e-2);
    against_the_grid(&Penalty::l0(0.7), 2, turns, 1e-4);
    against_the_grid(&Penalty::NONNEGATIVE, 2, turns, 1e-12);
    against_the_grid(&Penalty::interval(-0.9, 0.9).unwrap(), 2, turns, 2e-2);
    against_the_grid(&Penalty::scad(0.3, 3.0).unwrap(), 2, turns, 2e-2);
    against_the_grid(&Penalty::NONE, 3, 36, 0.5);
    against_the_grid(&Penalty::l1(0.5), 3, 36, 1.0);
}

#[test]
fn a_gap_is_that_of_rotations() {
    let (n, threads) = (5, Threads::serial());
    let signature = Signature::stiefel(n);
    let smooth = quadratic(n, 8);
    let problem = Problem::new(&smooth, &Penalty::NONE, &signature, n).unwrap();
    let rotations = problem.rotations_only().unwrap();
    let x = first(n, 3, false);
    let gap = certify(&rotations, x.view(), &threads).unwrap().block2_gap;
    let here = problem.objective(x.view(), &threads);
    let (mut turned, mut all) = (0.0f64, 0.0f64);
    for i in 0..n {
        for j in i + 1..n {
            for k in 0..2000 {
                let (s, c) = (std::f64::consts::TAU * f64::from(k) / 2000.0).sin_cos();
                for sign in [1.0, -1.0] {
                    let mut y = x.clone();
                    for l in 0..n {
                        let (a, b) = (x[[i, l]], x[[j, l]]);
                        (y[[i, l]], y[[j, l]]) = (c * a + s * b, sign * (c * b - s * a));
                    }
                    let gain = here - problem.objective(y.view(), &threads);
                    all = all.max(gain);
                    if sign > 0.0 {
                        turned = turned.max(gain);
                    }
                }
            }
        }
    }
    assert!(gap >= turned - 1e-12 && gap <= turned * (1.0 + 1e-4), "{gap} {turned}");
    let gap = certify(&problem, x.view(), &threads).unwrap().block2_gap;
    assert!(gap >= all - 1e-12 && all > 1.001 * turned);
}

#[test]
fn what_does_not_fit_is_refused() {
    let threads = Threads::serial();
    let smooth = quadratic(3, 1);
    let (signature, mixed) = (Signature::stiefel(3), Signature::new(&[1, 1, -1]).unwrap());
    let tall = Quadratic::new(Array2::eye(3), None, None).unwrap();
    let narrow = Problem::new(&tall, &Penalty::NONE, &signature, 2).unwrap();
    let hyperbolic = Problem::new(&smooth, &Penalty::NONE, &mixed, 3).unwrap();
    for problem in [narrow, hyperbolic] {
        let error = problem.rotations_only().err().unwrap().to_string();
        assert!(error.contains("determinant"), "{error}");
    }
    let problem = Problem::new(&smooth, &Penalty::NONE, &signature, 3).unwrap();
    let problem = problem.rotations_only().unwrap();
    assert!(problem.is_of_rotations());
    let reflection = array![[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]];
    let options = Options::default();
    let refused = [
        minimize(&problem, reflection.clone(), &options, &threads, &mut Unwatched).err(),
        minimize_auto(&problem, Some(reflection.clone()), &Auto::default(), &threads, &mut Unwatched).err(),
        certify(&problem, reflection.view(), &threads).err(),
    ];
    for error in refused {
        let error = error.unwrap().to_string();
        assert!(error.contains('x') && error.contains("determinant +1"), "{error}");
    }
    let bare = Quadratic::new(-Array2::eye(3), None, None).unwrap();
    let problem = Problem::new(&bare, &Penalty::NONE, &signature, 3).unwrap();
    let problem = problem.rotations_only().unwrap();
    let count = orthobcd::Limit::Entries(Sparsity::new(orthobcd::Cardinality::Total(5)));
    assert!(problem.with_limit(&count).err().unwrap().to_string().contains("determinant"));
}
