//! The default solver: several starts, the best polished, perturbed while there is time.

use std::time::Instant;

use ndarray::{Array2, ArrayView2, Axis, s};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::clock::{Clock, Pace};
use super::geometry::{kicked, polar, project_near_support, varimax};
use super::oracle::Oracle;
use super::path::{default_stages, follow_path, top_diagonal};
use super::{escape, forward, mixed, partition, smoothed, splitting, supports, workers};
use crate::certificate::known_optimum;
use crate::error::{Error, Result};
use crate::linalg;
use crate::pair::Recession;
use crate::penalty::{Form, Penalty};
use crate::smooth::Smooth;
use crate::solver::{
    Control, Monitor, Options, Problem, Record, Solution, Status, drift, minimize, start_constraint,
};
use crate::start;
use crate::threads::Threads;

/// Ratio of the λ-path inside [`minimize_auto`].
const RATIO: f64 = 0.5;

/// Share of the time limit for the starts of several rounds and of a single one, for those of ℓ0 that
/// perturbations improve soon, and until the end of the perturbations.
const STARTS_SHARE: f64 = 0.55;
const SINGLE_SHARE: f64 = 0.8;
const FIRST_SHARE: f64 = 0.22;
const PERTURB_SHARE: f64 = 0.93;

/// Least seconds that a start is worth.
const START_SECONDS: f64 = 2.5;

/// Steps of the methods when no clock limits them.
const SPLITTING_STEPS: usize = 400;
const SMOOTHED_STEPS: usize = 800;
const SUPPORT_STEPS: usize = 400;
const TANGENT_STEPS: usize = 300;
const PARTITION_STEPS: usize = 40;

/// Without a time limit: most rounds of perturbation, their width, and the n²r that they are worth.
const FREE_ROUNDS: usize = 8;
const FREE_WIDTH: usize = 4;
const FREE_WORK: usize = 4_000_000;

/// Rounds of perturbation without improvement after which the solve counts as converged.
const IDLE_ROUNDS: usize = 40;

/// Mean curvature over the largest, from which a spectrum is flat: 0.17 for noise (1000 columns of 500
/// normal numbers), 0.003 for handwritten digits.
const FLAT: f64 = 0.05;

/// Relative distance from the best start within which a method is worth repeating.
const NEAR: f64 = 0.02;

/// Relative distance from the best point within which a perturbed one is polished.
const PROMISING: f64 = 1e-2;

/// How often a smoothed descent starts afresh instead of from the best point.
const AFRESH: f64 = 0.7;

/// Relative distance from a known optimum at which a point is optimal.
const OPTIMAL: f64 = 1e-12;

/// How a start comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strategy {
    /// The start that was given.
    Given,
    /// Annealed splitting from the varimax-rotated spectral solution.
    Splitting,
    /// Smoothed penalty with continuation, from the varimax-rotated spectral solution.
    Smoothed,
    /// The same over a short range of the smoothing, raised again and again; for ℓ1.
    Reheated,
    /// Annealed disjoint supports.
    Supports,
    /// Forward selection on disjoint supports, columns emptied and grown anew.
    Forward,
    /// Decreasing λ from the closed-form optimum of large λ.
    Path,
    /// Decreasing λ from random rows.
    Sparse,
    /// Eigenvectors of the quadratic part, or the polar factor of −linear.
    Spectral,
    /// Eigenvectors rotated by varimax.
    Varimax,
    /// A random orthonormal matrix.
    Dense,
    /// Columns and owners of a partition of the rows in turn, perturbed; a random one if not X ≥ 0.
    Partition,
}

const NAMES: [(Strategy, &str); 12] = [
    (Strategy::Given, "given"),
    (Strategy::Splitting, "splitting"),
    (Strategy::Smoothed, "smoothed"),
    (Strategy::Reheated, "reheated"),
    (Strategy::Supports, "supports"),
    (Strategy::Forward, "forward"),
    (Strategy::Path, "path"),
    (Strategy::Sparse, "sparse"),
    (Strategy::Spectral, "spectral"),
    (Strategy::Varimax, "varimax"),
    (Strategy::Dense, "dense"),
    (Strategy::Partition, "partition"),
];

impl std::fmt::Display for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = NAMES.iter().find(|(s, _)| s == self).map_or("", |(_, n)| n);
        f.write_str(name)
    }
}

impl std::str::FromStr for Strategy {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        NAMES
            .iter()
            .find(|(_, n)| *n == name)
            .map(|(s, _)| *s)
            .ok_or_else(|| {
                let names: Vec<&str> = NAMES[1..].iter().map(|(_, n)| *n).collect();
                Error::invalid(
                    "strategies",
                    format!("must be among {}; got {name:?}", names.join(", ")),
                )
            })
    }
}

/// Options of [`minimize_auto`].
///
/// `options` are those of the pair sweeps; its time limit, sweep limit (for all descents together),
/// target and seed hold for the whole solve.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Auto {
    /// Number of starts; by default every strategy that fits the problem, as often as the time
    /// limit has room for.
    pub starts: Option<usize>,
    /// Strategies to use, in this order, instead of those chosen for the problem.
    pub strategies: Option<Vec<Strategy>>,
    /// Options of the descents, and limits of the whole.
    pub options: Options,
}

/// One start and what it reached.
#[derive(Debug, Clone, PartialEq)]
pub struct StartReport {
    /// How it came about; perturbations have a name of their own.
    pub strategy: String,
    /// F of its point.
    pub objective: f64,
    /// When it was finished, in seconds since the start of the solve.
    pub seconds: f64,
}

/// What [`minimize_auto`] returns.
#[derive(Debug, Clone)]
pub struct AutoSolution {
    /// The best point.
    pub solution: Solution,
    /// What found it.
    pub strategy: String,
    /// Every start and perturbation, in order.
    pub starts: Vec<StartReport>,
}

/// A feasible point and how it was found.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) x: Array2<f64>,
    pub(super) objective: f64,
    name: String,
    seconds: f64,
    iterations: u64,
    updates: u64,
    /// Whether exact pairs and tangent steps have both come to rest.
    pub(super) settled: bool,
}

impl Candidate {
    pub(super) fn new<P: Penalty>(
        oracle: &Oracle<'_, P>,
        x: Array2<f64>,
        name: String,
        clock: &Clock,
    ) -> Self {
        Self {
            objective: oracle.objective(&x),
            x,
            name,
            seconds: clock.seconds(),
            iterations: 0,
            updates: 0,
            settled: false,
        }
    }

    /// The point of a descent, if it is no worse, and its counts.
    pub(super) fn take(&mut self, solution: &Solution) {
        self.iterations += solution.iterations;
        self.updates += solution.updates;
        if solution.objective <= self.objective {
            self.x.clone_from(&solution.x);
            self.objective = solution.objective;
        }
    }
}

/// Seeds whose neighbours, in either argument, have nothing to do with each other.
pub(super) fn decorrelated(seed: u64, index: u64) -> u64 {
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(index.wrapping_mul(0xd1b5_4a32_d192_ed03))
}

/// What all tasks of a solve share.
struct Shared<'a, P: Penalty> {
    problem: &'a Problem<'a, P>,
    oracle: Oracle<'a, P>,
    auto: &'a Auto,
    clock: &'a Clock,
    /// Rotated spectral solution.
    rotated: Array2<f64>,
    /// Whether the penalty is small beside f at the rotated spectral solution: a solution is then
    /// likely to be dense, and methods that move all rows at once come first.
    dense: bool,
    /// Whether no direction has much more curvature than the others, as in noise: smoothed descents
    /// are then better than splitting, else the reverse.
    flat: bool,
    spectral: Array2<f64>,
    covariance: Option<Array2<f64>>,
    given: Option<Array2<f64>>,
}

/// Stops a descent when the clock does.
pub(super) struct Watch<'a>(pub(super) &'a Clock);

impl Monitor for Watch<'_> {
    fn poll(&mut self) -> Control {
        if self.0.stopped() {
            Control::Stop
        } else {
            Control::Continue
        }
    }
}

/// Minimises with several starts on all threads; the best point is returned.
///
/// With a mixed signature `x0` (by default the first r columns of the identity) says what XᵀJX is,
/// and no strategies can be chosen: see the notes in [`strategy`](crate::strategy).
///
/// # Errors
/// If the problem, the options or the shape of `x0` are not valid, the signature is all −1, or
/// strategies are given for a mixed one.
pub fn minimize_auto<P: Penalty>(
    problem: &Problem<'_, P>,
    x0: Option<Array2<f64>>,
    auto: &Auto,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<AutoSolution> {
    let started = Instant::now();
    problem.check()?;
    auto.options.check(problem.smooth.rows())?;
    let mixed = !problem.signature.is_definite();
    if !mixed && problem.signature.sign(0) < 0.0 {
        return Err(Error::invalid("signature", "must not be all -1 for Auto"));
    }
    if mixed && auto.strategies.is_some() {
        return Err(Error::invalid(
            "strategies",
            "must not be given for a mixed signature",
        ));
    }
    let (n, r) = (problem.smooth.rows(), problem.components);
    if let Some(x0) = &x0 {
        problem.check_start(x0.view())?;
    }
    if auto.starts == Some(0) {
        return Err(Error::invalid("n_starts", "must be at least 1, got 0"));
    }
    let clock = Clock::new(started, auto.options.max_time);
    let first = x0.clone().unwrap_or_else(|| {
        if mixed {
            Array2::eye(n).slice_move(s![.., ..r])
        } else {
            first_point(problem, auto.options.seed)
        }
    });
    let mut board = Board::new(problem, auto, &clock, first.clone(), monitor);
    if board.status.is_none() && auto.options.max_sweeps != Some(0) {
        if mixed {
            mixed::search(&mut board, problem, auto, &clock, &first, threads);
        } else {
            board.solve(x0, threads);
        }
    }
    Ok(board.finish())
}

/// A cheap feasible point: row 0 of the history.
fn first_point<P: Penalty>(problem: &Problem<'_, P>, seed: u64) -> Array2<f64> {
    let (n, r) = (problem.smooth.rows(), problem.components);
    match problem.penalty.form() {
        Form::NonNegative => start::partition(n, r, seed),
        _ => top_diagonal(problem.smooth, r),
    }
}

/// An approximate spectral solution and the extreme eigenvalues of the Hessian, by a block Krylov
/// space: good enough to start from.
fn krylov_spectral(smooth: &dyn Smooth, r: usize, threads: &Threads) -> (Array2<f64>, (f64, f64)) {
    const BLOCKS: usize = 10;
    const DENSE: usize = 400;
    let n = smooth.rows();
    let width = (r + 8).min(n);
    if n <= DENSE || width * BLOCKS > n || smooth.metric().is_some() {
        return (start::spectral(smooth, r, threads), smooth.hessian_bounds());
    }
    let mut basis = Array2::<f64>::zeros((n, width * BLOCKS));
    let mut block = start::random(n, width, 0x6b72_796c);
    for k in 0..BLOCKS {
        basis
            .slice_mut(s![.., k * width..(k + 1) * width])
            .assign(&block);
        if k + 1 < BLOCKS {
            block = linalg::orthonormal_factor(smooth.apply(block.view(), threads).view());
        }
    }
    let basis = linalg::orthonormal_factor(basis.view());
    let image = smooth.apply(basis.view(), threads);
    let small = basis.t().dot(&image);
    let (values, vectors) = linalg::symmetric_eigen(((&small + &small.t()) * 0.5).view());
    let bounds = (values[0].min(0.0), values[values.len() - 1].max(0.0));
    (polar(&basis.dot(&vectors.slice(s![.., ..r]))), bounds)
}

/// Turns the columns so that their third moments are positive.
fn turn_positive(x: &mut Array2<f64>) {
    for mut column in x.axis_iter_mut(Axis(1)) {
        if column.iter().map(|v| v * v * v).sum::<f64>() < 0.0 {
            column.mapv_inplace(|v| -v);
        }
    }
}

/// Distinct random rows as unit vectors.
fn random_rows(n: usize, r: usize, seed: u64) -> Array2<f64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut rows: Vec<usize> = (0..n).collect();
    let mut x = Array2::zeros((n, r));
    for k in 0..r {
        let other = rng.random_range(k..n);
        rows.swap(k, other);
        x[[rows[k], k]] = 1.0;
    }
    x
}

impl<P: Penalty> Shared<'_, P> {
    fn seed(&self, index: u64) -> u64 {
        decorrelated(self.auto.options.seed, index)
    }

    /// The strategies that fit the problem, best first.
    fn plan(&self) -> Vec<Strategy> {
        use Strategy::*;
        let dense = self.dense;
        let mut plan = match self.problem.penalty.form() {
            Form::Zero => vec![Spectral, Smoothed, Dense, Dense],
            Form::Count(_) if dense && self.flat => vec![Smoothed, Splitting, Supports, Smoothed],
            Form::Count(_) if dense => vec![Splitting, Smoothed, Supports, Smoothed],
            Form::Count(_) if self.flat => vec![
                Supports, Forward, Splitting, Path, Smoothed, Sparse, Supports, Sparse, Varimax,
            ],
            Form::Count(_) => vec![
                Supports, Splitting, Splitting, Path, Forward, Smoothed, Sparse, Supports, Sparse,
                Varimax,
            ],
            Form::Absolute(_) if dense && self.flat => {
                vec![Smoothed, Reheated, Smoothed, Splitting, Path]
            }
            Form::Absolute(_) if dense => vec![Smoothed, Reheated, Splitting, Path],
            Form::Absolute(_) => vec![Smoothed, Splitting, Path, Sparse, Smoothed, Varimax, Sparse],
            Form::NonNegative => vec![Supports, Partition, Splitting, Supports],
            Form::Other => vec![Spectral, Varimax, Dense, Dense],
        };
        if self.covariance.is_none() {
            plan.retain(|s| !matches!(s, Supports | Forward));
        }
        plan
    }

    fn candidate(&self, x: Array2<f64>, name: String) -> Candidate {
        Candidate::new(&self.oracle, x, name, self.clock)
    }

    /// A feasible point from a dense orthonormal X and a copy Y that says which entries are zero.
    fn settle(&self, x: &Array2<f64>, y: &Array2<f64>) -> Option<Array2<f64>> {
        match self.problem.penalty.form() {
            Form::NonNegative => Some(start::round_to_partition(y.view())),
            Form::Zero | Form::Other => Some(x.clone()),
            _ => project_near_support(x, y),
        }
    }

    /// The best feasible point from a dense X, over several thresholds.
    fn threshold(&self, x: &Array2<f64>, epsilon: f64) -> Array2<f64> {
        let mut best = (f64::INFINITY, x.clone());
        let factors: &[f64] = match self.problem.penalty.form() {
            Form::Count(_) => &[0.0, 1.0, 2.0, 3.0, 4.5, 6.0],
            Form::Absolute(_) => &[0.0, 1.0, 3.0, 10.0, 30.0],
            _ => &[0.0],
        };
        for factor in factors {
            let level = factor * epsilon;
            let y = x.mapv(|v| if v.abs() <= level { 0.0 } else { v });
            if let Some(point) = self.settle(x, &y) {
                let value = self.oracle.objective(&point);
                if value < best.0 {
                    best = (value, point);
                }
            }
        }
        best.1
    }

    /// The point of a full-gradient method, feasible and descended from by tangent steps.
    fn tangent(&self, x: Array2<f64>, pace: Pace<'_>) -> Array2<f64> {
        escape::descend(&self.oracle, x, TANGENT_STEPS, pace).x
    }

    /// The end (X, ε) of a smoothed method, thresholded and descended from.
    fn sharpened(&self, (x, epsilon): (Array2<f64>, f64), until: Option<f64>) -> Array2<f64> {
        let x = self.threshold(&x, epsilon);
        self.tangent(x, self.clock.pace(until, TANGENT_STEPS))
    }

    /// Annealed splitting from x, made feasible and descended from.
    fn split(
        &self,
        x: Array2<f64>,
        beta: (f64, f64),
        seed: u64,
        pace: Pace<'_>,
    ) -> Option<Array2<f64>> {
        if let (Form::NonNegative, Some(p)) = (self.problem.penalty.form(), &self.covariance) {
            // The splitting finds the groups, alternation and single rows find their places.
            let (x, _) = splitting::anneal(&self.oracle, x, beta, pace.first(0.5));
            let grouped = start::round_to_partition(x.view());
            let settled = partition::improve(
                &self.oracle,
                self.covariance.as_ref(),
                &grouped,
                seed,
                pace.rest(1.0).first(0.5),
            );
            let annealed = supports::anneal(
                &self.oracle,
                p,
                &settled,
                supports::COOL,
                seed,
                pace.rest(0.25),
            );
            let better = self.oracle.objective(&annealed) < self.oracle.objective(&settled);
            return Some(if better { annealed } else { settled });
        }
        let (x, y) = splitting::anneal(&self.oracle, x, beta, pace.first(0.85));
        let nonnegative = matches!(self.problem.penalty.form(), Form::NonNegative);
        let y = if nonnegative { x.clone() } else { y };
        self.settle(&x, &y).map(|x| self.tangent(x, pace.rest(0.2)))
    }

    /// How the smoothing of a fresh descent from x falls.
    fn schedule(&self, x: &Array2<f64>, pace: Pace<'_>) -> smoothed::Schedule {
        match self.problem.penalty.form() {
            Form::Count(_) => smoothed::COUNT,
            Form::Absolute(_) => smoothed::absolute(&self.oracle, x, pace),
            // Smooth already.
            _ => smoothed::Schedule {
                stages: 1,
                early: 0,
                ..smoothed::BRIEF
            },
        }
    }

    /// Smoothed descents from `first`, if there is one, and from random rotations of the spectral
    /// solution.
    fn race(
        &self,
        schedule: smoothed::Schedule,
        first: Option<&Array2<f64>>,
        seed: u64,
        pace: Pace<'_>,
    ) -> (Array2<f64>, f64) {
        let r = self.oracle.columns();
        let start = |k: usize| match first {
            Some(first) if k == 0 => first.clone(),
            _ => {
                let rotation = start::random(r, r, seed.wrapping_add(k as u64));
                self.spectral.dot(&rotation)
            }
        };
        smoothed::race(&self.oracle, start, schedule, pace)
    }

    fn path_from(
        &self,
        x0: Option<Array2<f64>>,
        stages: Option<&[f64]>,
        until: Option<f64>,
        sweeps: Option<u64>,
    ) -> Option<Solution> {
        let options = Options {
            max_time: until.map(|until| (until - self.clock.seconds()).max(0.0)),
            max_sweeps: sweeps,
            tol: self.auto.options.tol.max(1e-7),
            target: None,
            ..self.auto.options.clone()
        };
        follow_path(
            self.problem,
            x0,
            stages,
            RATIO,
            &options,
            &Threads::serial(),
            &mut Watch(self.clock),
        )
        .ok()
        .map(|path| path.solution)
    }

    /// One start, until `until`; `sweeps` limits the pair sweeps of those that make any.
    fn start(
        &self,
        strategy: Strategy,
        index: usize,
        repeated: bool,
        seconds: Option<f64>,
        sweeps: Option<u64>,
    ) -> Candidate {
        let (n, r) = (self.oracle.rows(), self.oracle.columns());
        let until = seconds.map(|s| self.clock.seconds() + s);
        let seed = self.seed(index as u64 + 1);
        let name = strategy.to_string();
        let nonnegative = matches!(self.problem.penalty.form(), Form::NonNegative);
        let mut rotated = self.rotated.clone();
        if repeated && !nonnegative {
            rotated = kicked(&rotated, 0.1, seed);
        }
        let mut counts = (0, 0);
        let x = match strategy {
            Strategy::Given => self.given.clone(),
            Strategy::Splitting => {
                let pace = self.clock.pace(until, SPLITTING_STEPS);
                let beta = splitting::range(&self.oracle, &self.rotated);
                self.split(rotated, beta, seed, pace)
            }
            Strategy::Smoothed => {
                let pace = self.clock.pace(until, SMOOTHED_STEPS);
                let schedule = self.schedule(&rotated, pace);
                // A slow descent forgets its start, unless varimax has locked it.
                let near = !repeated && schedule.stages < smoothed::ABSOLUTE.stages;
                let ended = self.race(schedule, near.then_some(&rotated), seed, pace.first(0.85));
                Some(self.sharpened(ended, until))
            }
            Strategy::Reheated => {
                let pace = self.clock.pace(until, SMOOTHED_STEPS);
                let ended = smoothed::reheat(&self.oracle, rotated, seed, pace.first(0.85));
                Some(self.sharpened(ended, until))
            }
            Strategy::Supports => self.covariance.as_ref().map(|p| {
                let x = match index {
                    _ if !nonnegative && !repeated => top_diagonal(self.problem.smooth, r),
                    _ => rotated,
                };
                let pace = self.clock.pace(until, SUPPORT_STEPS);
                supports::anneal(&self.oracle, p, &x, supports::TEMPERATURE, seed, pace)
            }),
            Strategy::Forward => match (self.problem.penalty.form(), &self.covariance) {
                (Form::Count(lambda), Some(p)) => {
                    let pace = self.clock.pace(until, SUPPORT_STEPS);
                    Some(forward::improve(&self.oracle, p, None, lambda, seed, pace))
                }
                _ => None,
            },
            Strategy::Path | Strategy::Sparse => {
                let x0 = (strategy == Strategy::Sparse).then(|| random_rows(n, r, seed));
                self.path_from(x0, None, until, sweeps).map(|solution| {
                    counts = (solution.iterations, solution.updates);
                    solution.x
                })
            }
            Strategy::Spectral => match self.problem.smooth.linear() {
                // Exact when the quadratic part is constant on the manifold (Procrustes).
                Some(linear) => Some(linalg::polar_factor((-&linear).view())),
                None => Some(self.spectral.clone()),
            },
            Strategy::Varimax => Some(rotated),
            Strategy::Dense => Some(start::random(n, r, seed)),
            Strategy::Partition if !nonnegative => Some(start::partition(n, r, seed)),
            Strategy::Partition => {
                let x = if repeated {
                    start::partition(n, r, seed)
                } else {
                    start::round_to_partition(rotated.view())
                };
                let pace = self.clock.pace(until, PARTITION_STEPS);
                Some(partition::improve(
                    &self.oracle,
                    self.covariance.as_ref(),
                    &x,
                    seed,
                    pace,
                ))
            }
        };
        let x = x.filter(|x| x.iter().all(|v| v.is_finite()));
        let x = match x {
            Some(x) if nonnegative && x.iter().any(|&v| v < 0.0) => {
                start::round_to_partition(x.view())
            }
            Some(x) => x,
            None => first_point(self.problem, seed),
        };
        let mut candidate = self.candidate(x, name);
        (candidate.iterations, candidate.updates) = counts;
        candidate
    }

    fn polish(&self, from: Candidate, until: Option<f64>, sweeps: Option<u64>) -> Candidate {
        let options = &self.auto.options;
        polish(
            self.problem,
            &self.oracle,
            options,
            self.clock,
            from,
            until,
            sweeps,
        )
    }

    /// Ways to perturb that fit the problem.
    fn perturbations(&self) -> Vec<Strategy> {
        use Strategy::*;
        let mut ways = match self.problem.penalty.form() {
            Form::Count(_) if self.dense => vec![Splitting, Splitting, Smoothed],
            Form::Count(_) => vec![Supports, Forward, Splitting, Path, Smoothed],
            Form::Absolute(_) if self.dense => vec![Reheated, Smoothed, Splitting, Path],
            Form::Absolute(_) => vec![Smoothed, Path, Splitting, Reheated],
            Form::NonNegative => vec![Partition, Supports, Splitting],
            Form::Zero | Form::Other => vec![Dense],
        };
        if self.covariance.is_none() {
            ways.retain(|s| !matches!(s, Supports | Forward));
        }
        ways
    }

    /// A new point from the best one.
    fn perturb(&self, base: &Array2<f64>, way: Strategy, index: u64, seconds: f64) -> Candidate {
        let until = self.clock.limit().map(|_| self.clock.seconds() + seconds);
        let seed = self.seed(1_000_000 + index);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let draw: f64 = rng.random();
        let name = format!("{way} again");
        let mut counts = (0, 0);
        let x = match (way, &self.covariance) {
            (Strategy::Supports, Some(p)) => {
                let heat = supports::TEMPERATURE.0 * 0.6 * (0.25f64).powf(draw);
                let pace = self.clock.pace(until, SUPPORT_STEPS);
                supports::anneal(
                    &self.oracle,
                    p,
                    base,
                    (heat, supports::TEMPERATURE.1),
                    seed,
                    pace,
                )
            }
            (Strategy::Forward, Some(p)) => {
                let pace = self.clock.pace(until, SUPPORT_STEPS);
                match self.problem.penalty.form() {
                    Form::Count(lambda) => {
                        forward::improve(&self.oracle, p, Some(base), lambda, seed, pace)
                    }
                    _ => base.clone(),
                }
            }
            (Strategy::Partition, _) => {
                let pace = self.clock.pace(until, PARTITION_STEPS);
                partition::improve(&self.oracle, self.covariance.as_ref(), base, seed, pace)
            }
            (Strategy::Splitting, _) => {
                let (first, last) = splitting::range(&self.oracle, &self.rotated);
                let first = first * 6f64.powf(draw);
                let pace = self.clock.pace(until, SPLITTING_STEPS);
                let from = kicked(base, 0.05 * draw, seed);
                self.split(from, (first, last), seed, pace)
                    .unwrap_or_else(|| base.clone())
            }
            (Strategy::Smoothed, _) => {
                let pace = self.clock.pace(until, SMOOTHED_STEPS);
                let ended = if draw < AFRESH {
                    let schedule = self.schedule(base, pace);
                    self.race(schedule, None, seed, pace.first(0.8))
                } else {
                    let from = kicked(base, 0.04 * draw, seed);
                    let near = match self.problem.penalty.form() {
                        Form::Count(_) => smoothed::COUNT,
                        _ => smoothed::BRIEF,
                    };
                    let schedule = smoothed::Schedule {
                        first: near.first * draw,
                        ..near
                    };
                    smoothed::descend(&self.oracle, from, schedule, pace.first(0.8))
                };
                self.sharpened(ended, until)
            }
            (Strategy::Reheated, _) => {
                let pace = self.clock.pace(until, SMOOTHED_STEPS);
                let from = kicked(base, 0.04 * draw, seed);
                let ended = smoothed::reheat(&self.oracle, from, seed, pace.first(0.8));
                self.sharpened(ended, until)
            }
            (Strategy::Path, _) => {
                let own = default_stages(self.problem, RATIO);
                let lambda = own.last().copied().unwrap_or(1.0);
                let raise = 1.5 * 3f64.powf(draw);
                let stages = [lambda * raise, lambda * raise.sqrt(), lambda];
                match self.path_from(Some(base.clone()), Some(&stages), until, None) {
                    Some(solution) => {
                        counts = (solution.iterations, solution.updates);
                        solution.x
                    }
                    None => base.clone(),
                }
            }
            _ => {
                let x = start::random(self.oracle.rows(), self.oracle.columns(), seed);
                self.tangent(x, self.clock.pace(until, TANGENT_STEPS))
            }
        };
        let mut candidate = self.candidate(x, name);
        (candidate.iterations, candidate.updates) = counts;
        candidate
    }
}

/// Exact pairs and tangent steps in turn, until neither lowers F.
pub(super) fn polish<P: Penalty>(
    problem: &Problem<'_, P>,
    oracle: &Oracle<'_, P>,
    options: &Options,
    clock: &Clock,
    from: Candidate,
    until: Option<f64>,
    sweeps: Option<u64>,
) -> Candidate {
    const ROUNDS: usize = 12;
    let mut best = from;
    let mut done = 0;
    for _ in 0..ROUNDS {
        let before = best.objective;
        let descent = escape::descend(
            oracle,
            best.x.clone(),
            TANGENT_STEPS,
            clock.pace(until, TANGENT_STEPS),
        );
        let rest = descent.stalled;
        if descent.objective < best.objective {
            best.x = descent.x;
            best.objective = descent.objective;
        }
        let options = Options {
            max_time: until
                .or(clock.limit())
                .map(|until| (until - clock.seconds()).max(0.0)),
            max_sweeps: sweeps.map(|limit| limit.saturating_sub(done)),
            ..options.clone()
        };
        let serial = Threads::serial();
        let watch = &mut Watch(clock);
        let Ok(solution) = minimize(problem, best.x.clone(), &options, &serial, watch) else {
            break;
        };
        done += solution.sweeps;
        best.take(&solution);
        if !matches!(solution.status, Status::Converged | Status::Target) {
            break;
        }
        let size = solution.smooth_value.abs() + solution.penalty_value.abs();
        if before - best.objective <= options.tol * size {
            best.settled = rest;
            break;
        }
    }
    best.seconds = clock.seconds();
    best
}

/// The best point so far, the history, and the monitor.
pub(super) struct Board<'a, P: Penalty> {
    problem: &'a Problem<'a, P>,
    auto: &'a Auto,
    clock: &'a Clock,
    monitor: &'a mut dyn Monitor,
    /// What XᵀJX is to be.
    k: Array2<f64>,
    pub(super) best: Candidate,
    /// F of the best point as [`Board::finish`] evaluates it: methods round differently.
    shown: f64,
    history: Vec<Record>,
    starts: Vec<StartReport>,
    iterations: u64,
    updates: u64,
    recorded: Instant,
    pub(super) status: Option<Status>,
    pub(super) recession: Option<Recession>,
}

impl<'a, P: Penalty> Board<'a, P> {
    fn new(
        problem: &'a Problem<'a, P>,
        auto: &'a Auto,
        clock: &'a Clock,
        first: Array2<f64>,
        monitor: &'a mut dyn Monitor,
    ) -> Self {
        let objective = problem.objective(first.view(), &Threads::serial());
        let mut board = Self {
            k: start_constraint(first.view(), problem.signature),
            recession: None,
            problem,
            auto,
            clock,
            monitor,
            best: Candidate {
                x: first,
                objective,
                name: "first point".to_owned(),
                seconds: clock.seconds(),
                iterations: 0,
                updates: 0,
                settled: false,
            },
            shown: objective,
            history: Vec::new(),
            starts: Vec::new(),
            iterations: 0,
            updates: 0,
            recorded: Instant::now(),
            status: None,
        };
        if board.record() == Control::Stop {
            board.status = Some(Status::Interrupted);
        } else if auto
            .options
            .target
            .is_some_and(|target| objective <= target)
        {
            board.status = Some(Status::Target);
        }
        board
    }

    fn record(&mut self) -> Control {
        self.recorded = Instant::now();
        let record = Record {
            seconds: self.clock.seconds(),
            objective: self.shown,
            feasibility: self.feasibility(self.best.x.view()),
            iterations: self.iterations,
        };
        self.history.push(record);
        self.monitor.record(&record, self.best.x.view())
    }

    /// What XᵀJX is to be.
    pub(super) fn constraint(&self) -> &Array2<f64> {
        &self.k
    }

    fn feasibility(&self, x: ArrayView2<'_, f64>) -> f64 {
        drift(x, self.problem.signature, self.k.view()) + self.problem.penalty.infeasibility(x)
    }

    /// Takes note of a new point, and of the monitor's wishes.
    pub(super) fn watch(&mut self, candidate: Option<&Candidate>) -> Control {
        let mut control = self.monitor.poll();
        let mut better = false;
        if let Some(candidate) = candidate {
            self.iterations += candidate.iterations;
            self.updates += candidate.updates;
            better = candidate.objective < self.best.objective;
            if better {
                self.best = candidate.clone();
                let shown = self
                    .problem
                    .objective(self.best.x.view(), &Threads::serial());
                self.shown = shown.min(self.shown);
            }
        }
        // Whoever has stopped the solve is not asked again.
        if self.status.is_none()
            && (better || self.recorded.elapsed().as_secs_f64() > 0.1)
            && self.record() == Control::Stop
        {
            control = Control::Stop;
        }
        if control == Control::Stop && self.status.is_none() {
            self.status = Some(Status::Interrupted);
        }
        let target = self.auto.options.target;
        if self.status.is_none() && target.is_some_and(|target| self.best.objective <= target) {
            self.status = Some(Status::Target);
        }
        if self.status.is_some() {
            Control::Stop
        } else {
            Control::Continue
        }
    }

    /// The best of what there was and what tasks returned, by index: the order in which they came in
    /// must not decide between equal values.
    pub(super) fn settle_best(&mut self, before: Candidate, found: &[Option<Candidate>]) {
        self.best = found.iter().flatten().fold(before, |best, candidate| {
            if candidate.objective < best.objective {
                candidate.clone()
            } else {
                best
            }
        });
    }

    pub(super) fn report(&mut self, found: &[Option<Candidate>]) {
        self.starts
            .extend(found.iter().flatten().map(|candidate| StartReport {
                strategy: candidate.name.clone(),
                objective: candidate.objective,
                seconds: candidate.seconds,
            }));
    }

    fn solve(&mut self, x0: Option<Array2<f64>>, threads: &Threads) {
        let (problem, auto, clock) = (self.problem, self.auto, self.clock);
        let r = problem.components;
        let (spectral, bounds) = krylov_spectral(problem.smooth, r, threads);
        let oracle = Oracle::new(problem, Array2::eye(r), bounds);
        let mut rotated = varimax(spectral.view());
        if matches!(problem.penalty.form(), Form::NonNegative) {
            turn_positive(&mut rotated);
        }
        let covariance = match problem.penalty.form() {
            Form::Count(_) | Form::NonNegative => supports::covariance(&oracle),
            _ => None,
        };
        let (value, _) = oracle.value_and_gradient(&rotated);
        let curvature = problem.smooth.diagonal().iter().sum::<f64>().abs();
        let shared = Shared {
            problem,
            dense: problem.penalty.value(rotated.view()) < value.abs(),
            flat: curvature > FLAT * oracle.lipschitz * oracle.rows() as f64,
            oracle,
            auto,
            clock,
            rotated,
            spectral,
            covariance,
            given: x0,
        };
        let workers = threads.count();
        let optimum = known_optimum(problem, threads);
        let is_optimal = |candidate: &Candidate| {
            let size = problem.penalty.value(candidate.x.view()).abs() + candidate.objective.abs();
            optimum.is_some_and(|optimum| candidate.objective - optimum <= OPTIMAL * size)
        };

        // The starts.
        let mut plan = auto.strategies.clone().unwrap_or_else(|| shared.plan());
        if plan.is_empty() {
            plan = shared.plan();
        }
        // One round for a dense solution: for ℓ1 one slow descent is better than several quick ones, for
        // ℓ0 what comes out is best improved by splitting again.
        let once = matches!(problem.penalty.form(), Form::Absolute(_) | Form::Count(_))
            && shared.dense
            && auto.starts.is_none()
            && clock.limit().is_some();
        let room = clock.left().map(|left| {
            let each = STARTS_SHARE * left / START_SECONDS;
            // One core tries two kinds of start as well, but where half the time is too short; more
            // cores always try three for ℓ1.
            let least = match problem.penalty.form() {
                Form::Absolute(_) if workers == 1 => 1,
                Form::Absolute(_) if once => 3,
                Form::Count(_) if once => 1,
                _ => 2,
            };
            let fitting = workers * if once { 1 } else { each as usize };
            fitting.max(workers).max(least)
        });
        let count = auto.starts.unwrap_or_else(|| match room {
            Some(room) => room.clamp(workers, plan.len().max(workers)),
            None => plan.len(),
        });
        let mut tasks: Vec<Strategy> = (0..count).map(|k| plan[k % plan.len()]).collect();
        let rounds = if once { 1 } else { count.div_ceil(workers) };
        // In a single round the last worker divides its time among the tasks that are left.
        let crowd = if once {
            (count + 1).saturating_sub(workers).max(1)
        } else {
            1
        };
        let mut portions: Vec<f64> = (0..count)
            .map(|k| {
                if k + crowd < count {
                    1.0
                } else {
                    1.0 / crowd as f64
                }
            })
            .collect();
        if shared.given.is_some() {
            tasks.insert(0, Strategy::Given);
            portions.insert(0, 1.0);
        }
        let share = if rounds == 1 {
            SINGLE_SHARE
        } else {
            STARTS_SHARE
        };
        let seconds = clock.left().map(|left| {
            let each = share * left / rounds as f64;
            match problem.penalty.form() {
                Form::Count(_) if rounds == 1 => each.min(START_SECONDS.max(FIRST_SHARE * left)),
                _ => each,
            }
        });
        let sweeps = auto.options.max_sweeps;
        let allotted = sweeps.map(|limit| limit / (tasks.len() as u64 + 2));
        if is_optimal(&self.best) {
            self.best.settled = true;
            self.status = Some(Status::Converged);
            return;
        }
        let before = self.best.clone();
        let found = workers::run(
            tasks.len(),
            workers,
            clock,
            |k| {
                shared.start(
                    tasks[k],
                    k,
                    tasks[..k].contains(&tasks[k]),
                    seconds.map(|seconds| seconds * portions[k]),
                    allotted.map(|a| a.max(1)),
                )
            },
            |candidate| self.watch(candidate),
        );
        self.settle_best(before, &found);
        self.report(&found);
        let mut found: Vec<Candidate> = found.into_iter().flatten().collect();
        found.sort_by(|a, b| a.objective.total_cmp(&b.objective));
        if self.status.is_some() {
            return;
        }

        // The best are polished, as many as there are workers.
        let pairs = (problem.smooth.rows() * (problem.smooth.rows() - 1) / 2) as u64;
        let spent: u64 = self.iterations.div_ceil(pairs);
        let polished = match (sweeps, clock.limit()) {
            (Some(_), _) => 1,
            (None, Some(_)) => workers.max(2),
            (None, None) => 2,
        };
        found.truncate(polished);
        let until = clock.limit().map(|limit| {
            let left = limit - clock.seconds();
            if left < START_SECONDS {
                limit
            } else {
                clock.seconds() + 0.4 * left
            }
        });
        let remaining = sweeps.map(|limit| limit.saturating_sub(spent));
        let before = self.best.clone();
        let results = workers::run(
            found.len(),
            workers,
            clock,
            |k| {
                let mut candidate = found[k].clone();
                (candidate.iterations, candidate.updates) = (0, 0);
                shared.polish(candidate, until, remaining)
            },
            |candidate| self.watch(candidate),
        );
        self.settle_best(before, &results);
        if self.status.is_some() {
            return;
        }
        let settled = results
            .iter()
            .flatten()
            .any(|c| c.settled && c.objective <= self.best.objective);
        self.best.settled = settled;
        if is_optimal(&self.best) {
            self.status = Some(Status::Converged);
            return;
        }
        if sweeps.is_some() {
            self.status = Some(if settled {
                Status::Converged
            } else {
                Status::MaxSweeps
            });
            return;
        }
        self.perturb(&shared, workers);
    }

    /// Rounds of perturbation without a time limit: as many as a small problem can afford.
    fn free_rounds(&self) -> usize {
        let (n, r) = self.best.x.dim();
        (FREE_WORK / (n * n * r)).min(FREE_ROUNDS)
    }

    /// Perturb and descend while there is time.
    fn perturb(&mut self, shared: &Shared<'_, P>, workers: usize) {
        let clock = self.clock;
        let limit = clock.limit();
        let width = if limit.is_some() { workers } else { FREE_WIDTH };
        let mut rounds = if limit.is_some() {
            usize::MAX
        } else {
            self.free_rounds()
        };
        let ways = shared.perturbations();
        // (improvements, attempts) of every way; that of the best start comes first, and one whose start
        // came out far from the best is not expected to do better from there, unless it only changes
        // the best point.
        let mut record: Vec<(f64, f64)> = ways
            .iter()
            .map(|way| {
                let name = way.to_string();
                let near = self
                    .starts
                    .iter()
                    .filter(|s| s.strategy == name)
                    .map(|s| s.objective - self.best.objective)
                    .fold(f64::INFINITY, f64::min);
                let local = matches!(
                    way,
                    Strategy::Supports | Strategy::Forward | Strategy::Partition
                );
                let promising =
                    local || !(near.is_finite() && near > NEAR * self.best.objective.abs());
                let hope = if self.best.name == name {
                    2.0
                } else if promising {
                    1.0
                } else {
                    0.05
                };
                (hope, 1.0)
            })
            .collect();
        let mut idle = 0;
        let mut index = 0u64;
        let slice = (0.2 * limit.unwrap_or(0.0)).clamp(0.2, 10.0);
        while self.status.is_none() && idle < IDLE_ROUNDS {
            if rounds == 0 {
                break;
            }
            rounds -= 1;
            let left = limit.map_or(f64::INFINITY, |limit| {
                PERTURB_SHARE * limit - clock.seconds()
            });
            if left < 0.25 * slice {
                break;
            }
            let seconds = slice.min(left);
            let mut order: Vec<usize> = (0..ways.len()).collect();
            order.sort_by(|&a, &b| {
                (record[b].0 / record[b].1)
                    .total_cmp(&(record[a].0 / record[a].1))
                    .then(a.cmp(&b))
            });
            let promising = order
                .iter()
                .filter(|&&k| record[k].0 / record[k].1 > 0.15)
                .count()
                .max(1);
            let chosen: Vec<usize> = (0..width).map(|w| order[w % promising]).collect();
            let base = self.best.x.clone();
            let before = self.best.objective;
            let first = index;
            index += width as u64;
            let best = self.best.clone();
            let found = workers::run(
                width,
                workers,
                clock,
                |w| {
                    let stop = limit.map(|_| clock.seconds() + seconds);
                    let candidate =
                        shared.perturb(&base, ways[chosen[w]], first + w as u64, 0.7 * seconds);
                    // A fresh point has nothing to show before its descent.
                    let fresh = ways[chosen[w]] == Strategy::Dense;
                    if fresh || candidate.objective < before + PROMISING * before.abs() {
                        shared.polish(candidate, stop, None)
                    } else {
                        candidate
                    }
                },
                |candidate| self.watch(candidate),
            );
            self.settle_best(best, &found);
            self.report(&found);
            for (w, candidate) in found.iter().enumerate() {
                let gained = candidate
                    .as_ref()
                    .is_some_and(|c| c.objective < before - 1e-12 * before.abs());
                let way = &mut record[chosen[w]];
                way.0 = 0.7 * way.0 + if gained { 1.0 } else { 0.0 };
                way.1 = 0.7 * way.1 + 1.0;
            }
            idle = if self.best.objective < before - 1e-12 * before.abs() {
                0
            } else {
                idle + 1
            };
        }
        if self.status.is_none() && !self.best.settled {
            let best = self.best.clone();
            let results = workers::run(
                1,
                1,
                clock,
                |_| {
                    let mut candidate = best.clone();
                    (candidate.iterations, candidate.updates) = (0, 0);
                    shared.polish(candidate, clock.limit(), None)
                },
                |candidate| self.watch(candidate),
            );
            self.settle_best(best.clone(), &results);
            if results.iter().flatten().any(|c| c.settled) {
                self.best.settled = true;
            }
        }
        if self.status.is_none() {
            let done = (limit.is_none() || idle >= IDLE_ROUNDS) && self.best.settled;
            self.status = Some(match (done, limit) {
                (true, _) => Status::Converged,
                (false, Some(_)) => Status::MaxTime,
                // Tangent steps and pairs took turns as long as they may.
                (false, None) => Status::MaxSweeps,
            });
        }
    }

    fn finish(mut self) -> AutoSolution {
        let x = std::mem::take(&mut self.best.x);
        let serial = Threads::serial();
        let smooth_value = self.problem.smooth.value(x.view(), &serial);
        let penalty_value = self.problem.penalty.value(x.view());
        let objective = smooth_value + penalty_value;
        let feasibility = self.feasibility(x.view());
        let last = Record {
            seconds: self.clock.seconds(),
            objective,
            feasibility,
            iterations: self.iterations,
        };
        for record in &mut self.history {
            record.objective = record.objective.max(objective);
        }
        self.history.push(last);
        let n = self.problem.smooth.rows() as u64;
        let status = self.status.unwrap_or(match self.auto.options.max_sweeps {
            Some(0) => Status::MaxSweeps,
            _ => Status::MaxTime,
        });
        AutoSolution {
            solution: Solution {
                x,
                objective,
                smooth_value,
                penalty_value,
                feasibility,
                status,
                iterations: self.iterations,
                sweeps: self.iterations / (n * (n - 1) / 2),
                updates: self.updates,
                seconds: last.seconds,
                history: self.history,
                recession: self.recession,
            },
            strategy: self.best.name,
            starts: self.starts,
        }
    }
}
