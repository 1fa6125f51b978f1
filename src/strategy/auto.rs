//! The default solver: several starts, the best polished, perturbed while there is time.

use std::time::Instant;

use ndarray::{Array2, Axis, s};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::oracle::Oracle;
use super::path::{Stages, follow_path, strength, top_diagonal};
use super::spectral::spectral;
use super::{escape, forward, mixed, partition, smoothed, splitting, supports, workers};
use crate::budget::{Clock, Pace, Task};
use crate::certificate::known_optimum;
use crate::error::{Error, Result};
use crate::linalg;
use crate::manifold::{drift, project_onto_pattern, start_constraint};
use crate::manifold::{kicked, project_near_support, square, varimax_while};
use crate::objective::{require_quadratic, value_while};
use crate::pair::Recession;
use crate::penalty::{Form, Penalty};
use crate::problem::Problem;
use crate::solver::{Control, Monitor, Options, Record, Solution, Status, minimize_counting};
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

/// Work without a time limit, see [`Task`]: with few rows, per row of more, and at most.
const WORK: f64 = 2e10;
const WORK_ROWS: f64 = 1000.0;
const MOST_WORK: f64 = 6e10;

/// Shares of it for the starts, for the polish of the best ones, and for the perturbations.
const STARTS_WORK: f64 = 0.5;
const POLISH_WORK: f64 = 0.25;
const PERTURB_WORK: f64 = 0.25;

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

/// Relative decrease that counts as an improvement. All of these are relative to the
/// [magnitude](Problem::magnitude) of F.
pub(super) const GAIN: f64 = 1e-12;

/// Largest ‖XᵀJX − K‖_F of a point that is accepted, and at which it is corrected first; with mixed
/// signs relative to ‖X‖².
const ACCEPTED: f64 = 1e-12;
const CORRECTED: f64 = 1e-13;

/// Up to this n the spectrum is computed to know the optimum of a smooth problem.
const KNOWN_ROWS: usize = 512;

/// Seconds between records of the best point, beside what recording takes.
const RECORD_SECONDS: f64 = 0.1;

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

/// A feasible point and how it was found. Every one has been checked: its entries are finite, it
/// is feasible to rounding, and F was evaluated afresh and to the end.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) x: Array2<f64>,
    pub(super) objective: f64,
    smooth: f64,
    price: f64,
    feasibility: f64,
    name: String,
    seconds: f64,
    iterations: u64,
    updates: u64,
    /// Whether exact pairs and tangent steps have both come to rest.
    pub(super) settled: bool,
}

impl Candidate {
    /// The point of a method; None if it is not one, or the time ran out before that was known.
    pub(super) fn new<P: Penalty>(
        oracle: &Oracle<'_, P>,
        x: Array2<f64>,
        name: String,
    ) -> Option<Self> {
        let problem = oracle.problem;
        let (x, feasibility) = feasible(oracle, x)?;
        let go_on = || !oracle.task.expired();
        let smooth = value_while(problem.smooth, x.view(), &oracle.serial, &go_on)?;
        let price = problem.penalty.value(x.view());
        let objective = smooth + price;
        objective.is_finite().then(|| Self {
            objective,
            smooth,
            price,
            feasibility,
            x,
            name,
            seconds: oracle.task.clock.seconds(),
            iterations: 0,
            updates: 0,
            settled: false,
        })
    }

    /// The point of a descent, if it is no worse, and its counts.
    pub(super) fn take(&mut self, solution: &Solution) {
        self.iterations += solution.iterations;
        self.updates += solution.updates;
        if solution.objective <= self.objective {
            self.x.clone_from(&solution.x);
            self.objective = solution.objective;
            self.smooth = solution.smooth_value;
            self.price = solution.penalty_value;
            self.feasibility = solution.feasibility;
        }
    }

    /// The point of another candidate, if it is lower.
    fn take_lower(&mut self, other: Self) {
        if other.objective < self.objective {
            *self = Self {
                name: std::mem::take(&mut self.name),
                iterations: self.iterations,
                updates: self.updates,
                ..other
            };
        }
    }
}

/// A point that keeps the constraint to rounding, corrected once if need be, and how well it does.
fn feasible<P: Penalty>(oracle: &Oracle<'_, P>, x: Array2<f64>) -> Option<(Array2<f64>, f64)> {
    let (problem, manifold) = (oracle.problem, &oracle.manifold);
    let finite = |x: &Array2<f64>| x.iter().all(|v| v.is_finite());
    let nonnegative = matches!(problem.penalty.form(), Form::NonNegative);
    let negative = |x: &Array2<f64>| nonnegative && x.iter().any(|&v| v < 0.0);
    // Nonnegative orthonormal columns share no row; what full-gradient steps leave there is rounding.
    let shared = |x: &Array2<f64>| {
        let crowded =
            |row: ndarray::ArrayView1<'_, f64>| row.iter().filter(|v| **v != 0.0).count() > 1;
        nonnegative && x.outer_iter().any(crowded)
    };
    if !finite(&x) || manifold.refuses(&x, 2) {
        return None;
    }
    let definite = problem.signature.is_definite();
    let x = if definite && (negative(&x) || shared(&x)) {
        start::round_to_partition(x.view())
    } else {
        x
    };
    let gap = |x: &Array2<f64>| drift(x.view(), manifold.signature, manifold.k.view());
    let scale = if definite { 1.0 } else { square(&x).max(1.0) };
    let (x, drifted) = match gap(&x) {
        drifted if drifted <= CORRECTED * scale => (x, drifted),
        drifted => {
            let corrected = manifold
                .restore(&x)
                .unwrap_or_else(|| project_onto_pattern(&x, manifold.signature, manifold.k.view()));
            let after = gap(&corrected);
            if after < drifted && finite(&corrected) && !negative(&corrected) {
                (corrected, after)
            } else {
                (x, drifted)
            }
        }
    };
    let feasibility = drifted + problem.penalty.infeasibility(x.view());
    (feasibility <= ACCEPTED * scale).then_some((x, feasibility))
}

/// Seeds whose neighbours, in either argument, have nothing to do with each other.
pub(super) fn decorrelated(seed: u64, index: u64) -> u64 {
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(index.wrapping_mul(0xd1b5_4a32_d192_ed03))
}

/// What is found out once, before the starts.
struct Setup {
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
    optimum: Option<f64>,
}

/// A problem and what is known of it, for one task.
struct Shared<'a, P: Penalty> {
    problem: &'a Problem<'a, P>,
    oracle: Oracle<'a, P>,
    auto: &'a Auto,
    clock: &'a Clock,
    setup: &'a Setup,
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
/// If the problem, the options or the shape of `x0` are not valid, f is not quadratic, the signature is all −1, or
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
    require_quadratic(problem.smooth)?;
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
    /// The same for another task.
    fn during<'t>(&'t self, task: &'t Task<'t>) -> Shared<'t, P> {
        Shared {
            problem: self.problem,
            oracle: self.oracle.during(task),
            auto: self.auto,
            clock: self.clock,
            setup: self.setup,
        }
    }

    fn seed(&self, index: u64) -> u64 {
        decorrelated(self.auto.options.seed, index)
    }

    /// The strategies that fit the problem, best first.
    fn plan(&self) -> Vec<Strategy> {
        use Strategy::*;
        let dense = self.setup.dense;
        let mut plan = match self.problem.penalty.form() {
            Form::Zero => vec![Spectral, Smoothed, Dense, Dense],
            Form::Count(_) if dense && self.setup.flat => {
                vec![Smoothed, Splitting, Supports, Smoothed]
            }
            Form::Count(_) if dense => vec![Splitting, Smoothed, Supports, Smoothed],
            Form::Count(_) if self.setup.flat => vec![
                Supports, Forward, Splitting, Path, Smoothed, Sparse, Supports, Sparse, Varimax,
            ],
            Form::Count(_) => vec![
                Supports, Splitting, Splitting, Path, Forward, Smoothed, Sparse, Supports, Sparse,
                Varimax,
            ],
            Form::Absolute(_) if dense && self.setup.flat => {
                vec![Smoothed, Reheated, Smoothed, Splitting, Path]
            }
            Form::Absolute(_) if dense => vec![Smoothed, Reheated, Splitting, Path],
            Form::Absolute(_) => vec![Smoothed, Splitting, Path, Sparse, Smoothed, Varimax, Sparse],
            Form::NonNegative => vec![Supports, Partition, Splitting, Supports],
            Form::Other => vec![Spectral, Varimax, Dense, Dense],
        };
        if self.setup.covariance.is_none() {
            plan.retain(|s| !matches!(s, Supports | Forward));
        }
        plan
    }

    /// A feasible point from a dense orthonormal X and a copy Y that says which entries are zero.
    fn settle(&self, x: &Array2<f64>, y: &Array2<f64>) -> Option<Array2<f64>> {
        match self.problem.penalty.form() {
            Form::NonNegative => Some(start::round_to_partition(y.view())),
            Form::Zero | Form::Other => Some(x.clone()),
            _ => project_near_support(&self.oracle.manifold, x, y),
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
            if self.oracle.task.expired() {
                break;
            }
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
        self.tangent(x, self.oracle.pace(until, TANGENT_STEPS))
    }

    /// Annealed splitting from x, made feasible and descended from.
    fn split(
        &self,
        x: Array2<f64>,
        beta: (f64, f64),
        seed: u64,
        pace: Pace<'_>,
    ) -> Option<Array2<f64>> {
        if let (Form::NonNegative, Some(p)) = (self.problem.penalty.form(), &self.setup.covariance)
        {
            // The splitting finds the groups, alternation and single rows find their places.
            let (x, _) = splitting::anneal(&self.oracle, x, beta, pace.first(0.5));
            let grouped = start::round_to_partition(x.view());
            let settled = partition::improve(
                &self.oracle,
                self.setup.covariance.as_ref(),
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
                self.setup.spectral.dot(&rotation)
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
            max_time: until
                .or(self.clock.limit())
                .map(|until| (until - self.clock.seconds()).max(0.0)),
            max_sweeps: sweeps,
            max_work: self.oracle.work_left(),
            tol: self.auto.options.tol.max(1e-7),
            verify: false,
            target: None,
            ..self.auto.options.clone()
        };
        follow_path(
            self.problem,
            x0,
            &Stages {
                lams: stages,
                ratio: RATIO,
                ..Stages::default()
            },
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
    ) -> Option<Candidate> {
        let (n, r) = (self.oracle.rows(), self.oracle.columns());
        let until = seconds.map(|s| self.clock.seconds() + s);
        let seed = self.seed(index as u64 + 1);
        let name = strategy.to_string();
        let nonnegative = matches!(self.problem.penalty.form(), Form::NonNegative);
        let mut rotated = self.setup.rotated.clone();
        if repeated && !nonnegative {
            rotated = kicked(&rotated, 0.1, seed);
        }
        let mut counts = (0, 0);
        let x = match strategy {
            Strategy::Given => self.setup.given.clone(),
            Strategy::Splitting => {
                let pace = self.oracle.pace(until, SPLITTING_STEPS);
                let beta = splitting::range(&self.oracle, &self.setup.rotated);
                self.split(rotated, beta, seed, pace)
            }
            Strategy::Smoothed => {
                let pace = self.oracle.pace(until, SMOOTHED_STEPS);
                let schedule = self.schedule(&rotated, pace);
                // A slow descent forgets its start, unless varimax has locked it.
                let near = !repeated && schedule.stages < smoothed::ABSOLUTE.stages;
                let ended = self.race(schedule, near.then_some(&rotated), seed, pace.first(0.85));
                Some(self.sharpened(ended, until))
            }
            Strategy::Reheated => {
                let pace = self.oracle.pace(until, SMOOTHED_STEPS);
                let ended = smoothed::reheat(&self.oracle, rotated, seed, pace.first(0.85));
                Some(self.sharpened(ended, until))
            }
            Strategy::Supports => self.setup.covariance.as_ref().map(|p| {
                let x = match index {
                    _ if !nonnegative && !repeated => top_diagonal(self.problem.smooth, r),
                    _ => rotated,
                };
                let pace = self.oracle.pace(until, SUPPORT_STEPS);
                supports::anneal(&self.oracle, p, &x, supports::TEMPERATURE, seed, pace)
            }),
            Strategy::Forward => match (self.problem.penalty.form(), &self.setup.covariance) {
                (Form::Count(lambda), Some(p)) => {
                    let pace = self.oracle.pace(until, SUPPORT_STEPS);
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
                None => Some(self.setup.spectral.clone()),
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
                let pace = self.oracle.pace(until, PARTITION_STEPS);
                Some(partition::improve(
                    &self.oracle,
                    self.setup.covariance.as_ref(),
                    &x,
                    seed,
                    pace,
                ))
            }
        };
        let mut candidate = Candidate::new(&self.oracle, x?, name)?;
        (candidate.iterations, candidate.updates) = counts;
        Some(candidate)
    }

    fn polish(&self, from: Candidate, until: Option<f64>, sweeps: Option<u64>) -> Candidate {
        let options = &self.auto.options;
        polish(&self.oracle, options, from, until, sweeps)
    }

    /// Ways to perturb that fit the problem.
    fn perturbations(&self) -> Vec<Strategy> {
        use Strategy::*;
        let mut ways = match self.problem.penalty.form() {
            Form::Count(_) if self.setup.dense => vec![Splitting, Splitting, Smoothed],
            Form::Count(_) => vec![Supports, Forward, Splitting, Path, Smoothed],
            Form::Absolute(_) if self.setup.dense => vec![Reheated, Smoothed, Splitting, Path],
            Form::Absolute(_) => vec![Smoothed, Path, Splitting, Reheated],
            Form::NonNegative => vec![Partition, Supports, Splitting],
            Form::Zero | Form::Other => vec![Dense],
        };
        if self.setup.covariance.is_none() {
            ways.retain(|s| !matches!(s, Supports | Forward));
        }
        ways
    }

    /// A new point from the best one.
    fn perturb(
        &self,
        base: &Array2<f64>,
        way: Strategy,
        index: u64,
        seconds: f64,
    ) -> Option<Candidate> {
        let until = self.clock.limit().map(|_| self.clock.seconds() + seconds);
        let seed = self.seed(1_000_000 + index);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let draw: f64 = rng.random();
        let name = format!("{way} again");
        let mut counts = (0, 0);
        let x = match (way, &self.setup.covariance) {
            (Strategy::Supports, Some(p)) => {
                let heat = supports::TEMPERATURE.0 * 0.6 * (0.25f64).powf(draw);
                let pace = self.oracle.pace(until, SUPPORT_STEPS);
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
                let pace = self.oracle.pace(until, SUPPORT_STEPS);
                match self.problem.penalty.form() {
                    Form::Count(lambda) => {
                        forward::improve(&self.oracle, p, Some(base), lambda, seed, pace)
                    }
                    _ => base.clone(),
                }
            }
            (Strategy::Partition, _) => {
                let pace = self.oracle.pace(until, PARTITION_STEPS);
                partition::improve(
                    &self.oracle,
                    self.setup.covariance.as_ref(),
                    base,
                    seed,
                    pace,
                )
            }
            (Strategy::Splitting, _) => {
                let (first, last) = splitting::range(&self.oracle, &self.setup.rotated);
                let first = first * 6f64.powf(draw);
                let pace = self.oracle.pace(until, SPLITTING_STEPS);
                let from = kicked(base, 0.05 * draw, seed);
                self.split(from, (first, last), seed, pace)
                    .unwrap_or_else(|| base.clone())
            }
            (Strategy::Smoothed, _) => {
                let pace = self.oracle.pace(until, SMOOTHED_STEPS);
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
                let pace = self.oracle.pace(until, SMOOTHED_STEPS);
                let from = kicked(base, 0.04 * draw, seed);
                let ended = smoothed::reheat(&self.oracle, from, seed, pace.first(0.8));
                self.sharpened(ended, until)
            }
            (Strategy::Path, _) => {
                let lambda = strength(self.problem.penalty).unwrap_or(1.0);
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
                self.tangent(x, self.oracle.pace(until, TANGENT_STEPS))
            }
        };
        let mut candidate = Candidate::new(&self.oracle, x, name)?;
        (candidate.iterations, candidate.updates) = counts;
        Some(candidate)
    }
}

/// The spectral solution and what follows from it; None if the time is up, or a number is not finite.
fn prepare<'a, P: Penalty>(
    problem: &'a Problem<'a, P>,
    given: Option<Array2<f64>>,
    threads: &Threads,
    task: &'a Task<'a>,
) -> Option<(Oracle<'a, P>, Setup)> {
    let smooth = problem.smooth;
    let r = problem.components;
    let go_on = || !task.expired();
    let (spectral, spectrum) = spectral(smooth, r, threads, task)?;
    let oracle = Oracle::new(problem, Array2::eye(r), spectrum, task);
    if !(oracle.lipschitz.is_finite() && spectral.iter().all(|v| v.is_finite())) {
        return None;
    }
    let mut rotated = varimax_while(spectral.view(), &go_on);
    if matches!(problem.penalty.form(), Form::NonNegative) {
        turn_positive(&mut rotated);
    }
    let covariance = match problem.penalty.form() {
        Form::Count(_) | Form::NonNegative => supports::covariance(&oracle),
        _ => None,
    };
    let (value, _) = oracle.value_and_gradient(&rotated);
    let curvature = oracle.diagonal().iter().sum::<f64>().abs();
    let optimum = known_optimum(problem, threads, KNOWN_ROWS, &go_on);
    // The pair sweeps need it as well, and cannot give it up.
    smooth.spectrum_while(&go_on)?;
    let setup = Setup {
        dense: problem.penalty.value(rotated.view()) < value.abs(),
        flat: curvature > FLAT * oracle.lipschitz * oracle.rows() as f64,
        rotated,
        spectral,
        covariance,
        given,
        optimum,
    };
    (value.is_finite() && go_on()).then_some((oracle, setup))
}

/// Exact pairs and tangent steps in turn, until neither lowers F.
pub(super) fn polish<P: Penalty>(
    oracle: &Oracle<'_, P>,
    options: &Options,
    from: Candidate,
    until: Option<f64>,
    sweeps: Option<u64>,
) -> Candidate {
    const ROUNDS: usize = 12;
    let (problem, clock) = (oracle.problem, oracle.task.clock);
    let until = until.or(clock.limit());
    let mut best = from;
    let mut done = 0;
    // Pairs that are looked at and not moved cost as much as a sweep: only once nothing else moves.
    let mut verify = false;
    for _ in 0..ROUNDS {
        let before = best.objective;
        let descent = escape::descend(
            oracle,
            best.x.clone(),
            TANGENT_STEPS,
            oracle.pace(until, TANGENT_STEPS),
        );
        let rest = descent.stalled;
        if descent.objective < best.objective
            && let Some(lower) = Candidate::new(oracle, descent.x, String::new())
        {
            best.take_lower(lower);
        }
        let options = Options {
            max_time: until.map(|until| (until - clock.seconds()).max(0.0)),
            max_sweeps: sweeps.map(|limit| limit.saturating_sub(done)),
            max_work: oracle.work_left(),
            verify,
            ..options.clone()
        };
        let serial = Threads::serial();
        let watch = &mut Watch(clock);
        let Ok((solution, work)) =
            minimize_counting(problem, best.x.clone(), &options, &serial, watch)
        else {
            break;
        };
        done += solution.sweeps;
        oracle.task.spend(work);
        best.take(&solution);
        if !matches!(solution.status, Status::Converged | Status::Target) {
            break;
        }
        let size = oracle.magnitude(best.smooth, best.price);
        if before - best.objective <= options.tol * size {
            if verify {
                best.settled = rest;
                break;
            }
            verify = true;
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
    /// What f is all over the constraint.
    constant: f64,
    /// Whether the best point is not in the history yet.
    unrecorded: bool,
    history: Vec<Record>,
    starts: Vec<StartReport>,
    iterations: u64,
    updates: u64,
    /// When the last record was made, and how long that took.
    recorded: (f64, f64),
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
        let k = start_constraint(first.view(), problem.signature);
        let smooth = problem.smooth.value(first.view(), &Threads::serial());
        let price = problem.penalty.value(first.view());
        let objective = smooth + price;
        let feasibility = drift(first.view(), problem.signature, k.view())
            + problem.penalty.infeasibility(first.view());
        let mut board = Self {
            constant: problem.constant(k.view()),
            k,
            recession: None,
            problem,
            auto,
            clock,
            monitor,
            best: Candidate {
                x: first,
                objective,
                smooth,
                price,
                feasibility,
                name: "first point".to_owned(),
                seconds: clock.seconds(),
                iterations: 0,
                updates: 0,
                settled: false,
            },
            unrecorded: false,
            history: Vec::new(),
            starts: Vec::new(),
            iterations: 0,
            updates: 0,
            recorded: (0.0, 0.0),
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
        self.unrecorded = false;
        let begun = self.clock.seconds();
        let record = Record {
            seconds: begun,
            objective: self.best.objective,
            feasibility: self.best.feasibility,
            iterations: self.iterations,
        };
        self.history.push(record);
        let control = self.monitor.record(&record, self.best.x.view());
        let ended = self.clock.seconds();
        self.recorded = (ended, ended - begun);
        control
    }

    /// What XᵀJX is to be.
    pub(super) fn constraint(&self) -> &Array2<f64> {
        &self.k
    }

    /// The magnitude of F at the best point.
    pub(super) fn size(&self) -> f64 {
        self.problem
            .magnitude(self.best.smooth, self.best.price, self.constant)
    }

    /// Takes note of a new point, and of the monitor's wishes.
    pub(super) fn watch(&mut self, candidate: Option<&Candidate>) -> Control {
        let mut control = self.monitor.poll();
        if let Some(candidate) = candidate {
            self.iterations += candidate.iterations;
            self.updates += candidate.updates;
            if candidate.objective < self.best.objective {
                self.best = candidate.clone();
                self.unrecorded = true;
            }
        }
        // A slow monitor is asked less often, and not at all when the time is up.
        let (recorded, cost) = self.recorded;
        let pause = if self.unrecorded { 0.0 } else { RECORD_SECONDS } + 2.0 * cost;
        let due = self.clock.seconds() - recorded >= pause;
        // Whoever has stopped the solve is not asked again.
        if self.status.is_none() && due && !self.clock.expired() && self.record() == Control::Stop {
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
        let preparation = Task::new(clock, f64::INFINITY);
        let prepared = workers::run(
            1,
            1,
            clock,
            |_| prepare(problem, x0.clone(), threads, &preparation),
            |_| self.watch(None),
        );
        let Some((oracle, setup)) = prepared.into_iter().flatten().flatten().next() else {
            if self.status.is_none() && !clock.expired() {
                // Nothing can be compared: products overflow.
                self.status = Some(Status::MaxSweeps);
            }
            return;
        };
        let shared = Shared {
            problem,
            oracle,
            auto,
            clock,
            setup: &setup,
        };
        let workers = threads.count();
        let constant = self.constant;
        let is_optimal = |candidate: &Candidate| {
            let size = problem.magnitude(candidate.smooth, candidate.price, constant);
            let optimum = setup.optimum;
            optimum.is_some_and(|optimum| candidate.objective - optimum <= OPTIMAL * size)
        };
        let n = problem.smooth.rows() as f64;
        let work = (WORK * (n / WORK_ROWS).max(1.0)).min(MOST_WORK);
        let work = auto.options.max_work.map_or(work, |limit| limit as f64);

        // The starts.
        let mut plan = auto.strategies.clone().unwrap_or_else(|| shared.plan());
        if plan.is_empty() {
            plan = shared.plan();
        }
        // One round for a dense solution: for ℓ1 one slow descent is better than several quick ones, for
        // ℓ0 what comes out is best improved by splitting again.
        let once = matches!(problem.penalty.form(), Form::Absolute(_) | Form::Count(_))
            && setup.dense
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
        if setup.given.is_some() {
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
                let task = Task::new(clock, STARTS_WORK * work / tasks.len() as f64);
                shared.during(&task).start(
                    tasks[k],
                    k,
                    tasks[..k].contains(&tasks[k]),
                    seconds.map(|seconds| seconds * portions[k]),
                    allotted.map(|a| a.max(1)),
                )
            },
            |candidate| self.watch(candidate.and_then(Option::as_ref)),
        );
        let found: Vec<Option<Candidate>> = found.into_iter().map(Option::flatten).collect();
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
                let task = Task::new(clock, POLISH_WORK * work / found.len() as f64);
                shared.during(&task).polish(candidate, until, remaining)
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
        self.perturb(&shared, workers, work);
    }

    /// Rounds of perturbation without a time limit: as many as a small problem can afford.
    fn free_rounds(&self) -> usize {
        let (n, r) = self.best.x.dim();
        (FREE_WORK / (n * n * r)).min(FREE_ROUNDS)
    }

    /// Perturb and descend while there is time.
    fn perturb(&mut self, shared: &Shared<'_, P>, workers: usize, work: f64) {
        let clock = self.clock;
        let limit = clock.limit();
        let width = if limit.is_some() { workers } else { FREE_WIDTH };
        let mut rounds = if limit.is_some() {
            usize::MAX
        } else {
            self.free_rounds()
        };
        let work = PERTURB_WORK * work / (rounds.min(FREE_ROUNDS) * width + 1) as f64;
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
                let promising = local || !(near.is_finite() && near > NEAR * self.size());
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
            let (before, size) = (self.best.objective, self.size());
            let first = index;
            index += width as u64;
            let best = self.best.clone();
            let found = workers::run(
                width,
                workers,
                clock,
                |w| {
                    let stop = limit.map(|_| clock.seconds() + seconds);
                    let task = Task::new(clock, work);
                    let shared = shared.during(&task);
                    let way = ways[chosen[w]];
                    let candidate = shared.perturb(&base, way, first + w as u64, 0.7 * seconds)?;
                    // A fresh point has nothing to show before its descent.
                    let fresh = way == Strategy::Dense;
                    Some(
                        if fresh || candidate.objective < before + PROMISING * size {
                            shared.polish(candidate, stop, None)
                        } else {
                            candidate
                        },
                    )
                },
                |candidate| self.watch(candidate.and_then(Option::as_ref)),
            );
            let found: Vec<Option<Candidate>> = found.into_iter().map(Option::flatten).collect();
            self.settle_best(best, &found);
            self.report(&found);
            for (w, candidate) in found.iter().enumerate() {
                let gained = candidate
                    .as_ref()
                    .is_some_and(|c| c.objective < before - GAIN * size);
                let way = &mut record[chosen[w]];
                way.0 = 0.7 * way.0 + if gained { 1.0 } else { 0.0 };
                way.1 = 0.7 * way.1 + 1.0;
            }
            idle = if self.best.objective < before - GAIN * size {
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
                    let task = Task::new(clock, work);
                    shared.during(&task).polish(candidate, clock.limit(), None)
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
        let objective = self.best.objective;
        let last = Record {
            seconds: self.clock.seconds(),
            objective,
            feasibility: self.best.feasibility,
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
                x: self.best.x,
                objective,
                smooth_value: self.best.smooth,
                penalty_value: self.best.price,
                feasibility: self.best.feasibility,
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
