//! The methods that make a point on the Stiefel manifold, from scratch or from the best one.

use ndarray::{Array2, Axis};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::candidate::{self, Candidate, TANGENT_STEPS, Watch};
use super::covariance::Covariance;
use super::options::{Auto, Strategy};
use super::oracle::Oracle;
use super::path::{Stages, follow_path, top_diagonal};
use super::workers::decorrelated;
use super::{escape, forward, partition, smoothed, splitting, supports};
use crate::budget::{Clock, Pace, Task};
use crate::certificate::known_optimum;
use crate::linalg;
use crate::manifold::{kicked, project_near_support, varimax_while};
use crate::objective::QuadraticForm;
use crate::penalty::Penalty;
use crate::problem::Problem;
use crate::solver::{Options, Solution};
use crate::start;
use crate::threads::Threads;

/// Ratio of the λ-path inside [`minimize_auto`].
const RATIO: f64 = 0.5;

/// Steps of the methods when no clock limits them.
const SPLITTING_STEPS: usize = 400;
const SMOOTHED_STEPS: usize = 800;
const SUPPORT_STEPS: usize = 400;
const PARTITION_STEPS: usize = 40;

/// Mean curvature over the largest, from which a spectrum is flat: 0.17 for noise (1000 columns of 500
/// normal numbers), 0.003 for handwritten digits.
const FLAT: f64 = 0.05;

/// How often a smoothed descent starts afresh instead of from the best point.
const AFRESH: f64 = 0.7;

/// Up to this n the spectrum is computed to know the optimum of a smooth problem.
const KNOWN_ROWS: usize = 512;

/// What is found out once, before the starts.
pub(super) struct Setup<'a> {
    /// Rotated spectral solution.
    pub(super) rotated: Array2<f64>,
    /// Whether the penalty is small beside f at the rotated spectral solution: a solution is then
    /// likely to be dense, and methods that move all rows at once come first.
    pub(super) dense: bool,
    /// Whether no direction has much more curvature than the others, as in noise: smoothed descents
    /// are then better than splitting, else the reverse.
    pub(super) flat: bool,
    pub(super) spectral: Array2<f64>,
    pub(super) covariance: Option<Covariance<'a>>,
    pub(super) given: Option<Array2<f64>>,
    pub(super) optimum: Option<f64>,
}

/// A problem and what is known of it, for one task.
pub(super) struct Shared<'a, P: Penalty> {
    pub(super) problem: &'a Problem<'a, P>,
    pub(super) oracle: Oracle<'a, P>,
    pub(super) auto: &'a Auto,
    pub(super) clock: &'a Clock,
    pub(super) setup: &'a Setup<'a>,
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
    pub(super) fn during<'t>(&'t self, task: &'t Task<'t>) -> Shared<'t, P> {
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

    /// P, if all its columns are at hand.
    fn whole(&self) -> Option<&Covariance<'_>> {
        self.setup.covariance.as_ref().filter(|p| p.is_whole())
    }

    /// Whether a strategy has the columns of C that it needs.
    fn can(&self, strategy: Strategy) -> bool {
        match strategy {
            Strategy::Supports => self.whole().is_some(),
            Strategy::Forward => self.setup.covariance.is_some(),
            _ => true,
        }
    }

    /// The strategies that fit the problem, best first.
    pub(super) fn plan(&self) -> Vec<Strategy> {
        use Strategy::*;
        let (dense, flat) = (self.setup.dense, self.setup.flat);
        let penalty = self.problem.penalty;
        let mut plan = if penalty.count().is_some() {
            match (dense, flat) {
                (true, true) => vec![Smoothed, Splitting, Supports, Smoothed],
                (true, false) => vec![Splitting, Smoothed, Supports, Smoothed],
                (false, true) => vec![
                    Supports, Forward, Splitting, Path, Smoothed, Sparse, Supports, Sparse, Varimax,
                ],
                (false, false) => vec![
                    Supports, Splitting, Splitting, Path, Forward, Smoothed, Sparse, Supports,
                    Sparse, Varimax,
                ],
            }
        } else if penalty.nonnegative() {
            vec![Supports, Partition, Splitting, Supports]
        } else if P::SMOOTH {
            vec![Spectral, Smoothed, Dense, Dense]
        } else if !penalty.sparsifies() {
            vec![Spectral, Varimax, Dense, Dense]
        } else {
            match (dense, flat) {
                (true, true) => vec![Smoothed, Reheated, Smoothed, Splitting, Path],
                (true, false) => vec![Smoothed, Reheated, Splitting, Path],
                _ => vec![Smoothed, Splitting, Path, Sparse, Smoothed, Varimax, Sparse],
            }
        };
        if penalty.strength().is_none() {
            plan.retain(|s| !matches!(s, Path | Sparse));
        }
        plan.retain(|&s| self.can(s));
        plan
    }

    /// A feasible point from a dense orthonormal X and a copy Y that says which entries are zero.
    fn settle(&self, x: &Array2<f64>, y: &Array2<f64>) -> Option<Array2<f64>> {
        if self.problem.penalty.nonnegative() {
            Some(start::round_to_partition(y.view()))
        } else if self.problem.penalty.sparsifies() {
            project_near_support(&self.oracle.manifold, x, y)
        } else {
            Some(x.clone())
        }
    }

    /// The best feasible point from a dense X, over several thresholds.
    fn threshold(&self, x: &Array2<f64>, epsilon: f64) -> Array2<f64> {
        let mut best = (f64::INFINITY, x.clone());
        let penalty = self.problem.penalty;
        let factors: &[f64] = if penalty.count().is_some() {
            &[0.0, 1.0, 2.0, 3.0, 4.5, 6.0]
        } else if penalty.sparsifies() {
            &[0.0, 1.0, 3.0, 10.0, 30.0]
        } else {
            &[0.0]
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
        if let (true, Some(p)) = (self.problem.penalty.nonnegative(), self.whole()) {
            // The splitting finds the groups, alternation and single rows find their places.
            let (x, _) = splitting::anneal(&self.oracle, x, beta, pace.first(0.5));
            let grouped = start::round_to_partition(x.view());
            let settled = self.regroup(&grouped, seed, pace.rest(1.0).first(0.5));
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
        let nonnegative = self.problem.penalty.nonnegative();
        let y = if nonnegative { x.clone() } else { y };
        self.settle(&x, &y).map(|x| self.tangent(x, pace.rest(0.2)))
    }

    /// Forward selection on disjoint supports, from a point that has some; for ℓ0.
    fn forward(&self, x: Option<&Array2<f64>>, seed: u64, pace: Pace<'_>) -> Option<Array2<f64>> {
        let lambda = self.problem.penalty.count()?;
        let covariance = self.setup.covariance.as_ref()?;
        let oracle = &self.oracle;
        Some(forward::improve(oracle, covariance, x, lambda, seed, pace))
    }

    /// Columns and owners of a partition in turn, perturbed.
    fn regroup(&self, x: &Array2<f64>, seed: u64, pace: Pace<'_>) -> Array2<f64> {
        partition::improve(&self.oracle, self.setup.covariance.as_ref(), x, seed, pace)
    }

    /// How the smoothing of a fresh descent from x falls.
    fn schedule(&self, x: &Array2<f64>, pace: Pace<'_>) -> smoothed::Schedule {
        let penalty = self.problem.penalty;
        if penalty.count().is_some() {
            smoothed::COUNT
        } else if penalty.sparsifies() {
            smoothed::absolute(&self.oracle, x, pace)
        } else {
            // Smooth already.
            smoothed::Schedule {
                stages: 1,
                early: 0,
                ..smoothed::BRIEF
            }
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
    pub(super) fn start(
        &self,
        strategy: Strategy,
        index: usize,
        repeated: bool,
        seconds: Option<f64>,
        sweeps: Option<u64>,
    ) -> Option<Candidate> {
        let (n, r) = (self.oracle.rows(), self.oracle.columns());
        let until = seconds.map(|s| self.clock.seconds() + s);
        let pace = |steps| self.oracle.pace(until, steps);
        let seed = self.seed(index as u64 + 1);
        let name = strategy.to_string();
        let nonnegative = self.problem.penalty.nonnegative();
        let mut rotated = self.setup.rotated.clone();
        if repeated && !nonnegative {
            rotated = kicked(&rotated, 0.1, seed);
        }
        let mut counts = (0, 0);
        let x = match strategy {
            Strategy::Given => self.setup.given.clone(),
            Strategy::Splitting => {
                let beta = splitting::range(&self.oracle, &self.setup.rotated);
                self.split(rotated, beta, seed, pace(SPLITTING_STEPS))
            }
            Strategy::Smoothed => {
                let pace = pace(SMOOTHED_STEPS);
                let schedule = self.schedule(&rotated, pace);
                // A slow descent forgets its start, unless varimax has locked it.
                let near = !repeated && schedule.stages < smoothed::ABSOLUTE.stages;
                let ended = self.race(schedule, near.then_some(&rotated), seed, pace.first(0.85));
                Some(self.sharpened(ended, until))
            }
            Strategy::Reheated => {
                let pace = pace(SMOOTHED_STEPS);
                let ended = smoothed::reheat(&self.oracle, rotated, seed, pace.first(0.85));
                Some(self.sharpened(ended, until))
            }
            Strategy::Supports => self.whole().map(|p| {
                let x = match index {
                    _ if !nonnegative && !repeated => top_diagonal(self.oracle.form, r),
                    _ => rotated,
                };
                let pace = pace(SUPPORT_STEPS);
                supports::anneal(&self.oracle, p, &x, supports::TEMPERATURE, seed, pace)
            }),
            Strategy::Forward => self.forward(None, seed, pace(SUPPORT_STEPS)),
            Strategy::Path | Strategy::Sparse => {
                let x0 = (strategy == Strategy::Sparse).then(|| random_rows(n, r, seed));
                self.path_from(x0, None, until, sweeps).map(|solution| {
                    counts = (solution.iterations, solution.updates);
                    solution.x
                })
            }
            Strategy::Spectral => match self.oracle.form.linear() {
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
                Some(self.regroup(&x, seed, pace(PARTITION_STEPS)))
            }
        };
        let mut candidate = Candidate::new(&self.oracle, x?, name)?;
        (candidate.iterations, candidate.updates) = counts;
        Some(candidate)
    }

    pub(super) fn polish(
        &self,
        from: Candidate,
        until: Option<f64>,
        sweeps: Option<u64>,
    ) -> Candidate {
        let options = &self.auto.options;
        candidate::polish(&self.oracle, options, from, until, sweeps)
    }

    /// Ways to perturb that fit the problem.
    pub(super) fn perturbations(&self) -> Vec<Strategy> {
        use Strategy::*;
        let penalty = self.problem.penalty;
        let mut ways = if penalty.nonnegative() {
            vec![Partition, Supports, Splitting]
        } else if !penalty.sparsifies() {
            vec![Dense]
        } else {
            match (penalty.count().is_some(), self.setup.dense) {
                (true, true) => vec![Splitting, Splitting, Smoothed],
                (true, false) => vec![Supports, Forward, Splitting, Path, Smoothed],
                (false, true) => vec![Reheated, Smoothed, Splitting, Path],
                (false, false) => vec![Smoothed, Path, Splitting, Reheated],
            }
        };
        if penalty.strength().is_none() {
            ways.retain(|s| *s != Path);
        }
        ways.retain(|&s| self.can(s));
        ways
    }

    /// A new point from the best one.
    pub(super) fn perturb(
        &self,
        base: &Array2<f64>,
        way: Strategy,
        index: u64,
        seconds: f64,
    ) -> Option<Candidate> {
        let until = self.clock.limit().map(|_| self.clock.seconds() + seconds);
        let pace = |steps| self.oracle.pace(until, steps);
        let seed = self.seed(1_000_000 + index);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let draw: f64 = rng.random();
        let name = format!("{way} again");
        let mut counts = (0, 0);
        let x = match (way, &self.setup.covariance) {
            (Strategy::Supports, Some(p)) => {
                let heat = supports::TEMPERATURE.0 * 0.6 * (0.25f64).powf(draw);
                let heat = (heat, supports::TEMPERATURE.1);
                supports::anneal(&self.oracle, p, base, heat, seed, pace(SUPPORT_STEPS))
            }
            (Strategy::Forward, Some(_)) => self
                .forward(Some(base), seed, pace(SUPPORT_STEPS))
                .unwrap_or_else(|| base.clone()),
            (Strategy::Partition, _) => self.regroup(base, seed, pace(PARTITION_STEPS)),
            (Strategy::Splitting, _) => {
                let (first, last) = splitting::range(&self.oracle, &self.setup.rotated);
                let first = first * 6f64.powf(draw);
                let from = kicked(base, 0.05 * draw, seed);
                self.split(from, (first, last), seed, pace(SPLITTING_STEPS))
                    .unwrap_or_else(|| base.clone())
            }
            (Strategy::Smoothed, _) => {
                let pace = pace(SMOOTHED_STEPS);
                let ended = if draw < AFRESH {
                    let schedule = self.schedule(base, pace);
                    self.race(schedule, None, seed, pace.first(0.8))
                } else {
                    let from = kicked(base, 0.04 * draw, seed);
                    let near = match self.problem.penalty.count() {
                        Some(_) => smoothed::COUNT,
                        None => smoothed::BRIEF,
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
                let pace = pace(SMOOTHED_STEPS);
                let from = kicked(base, 0.04 * draw, seed);
                let ended = smoothed::reheat(&self.oracle, from, seed, pace.first(0.8));
                self.sharpened(ended, until)
            }
            (Strategy::Path, _) => {
                let lambda = self.problem.penalty.strength().unwrap_or(1.0);
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
pub(super) fn prepare<'a, P: Penalty>(
    (problem, form): (&'a Problem<'a, P>, &'a dyn QuadraticForm),
    given: Option<Array2<f64>>,
    threads: &Threads,
    task: &'a Task<'a>,
) -> Option<(Oracle<'a, P>, Setup<'a>)> {
    let r = problem.components;
    let go_on = || !task.expired();
    let (spectral, spectrum) = start::rough_spectral(form, r, threads, &go_on)?;
    let oracle = Oracle::new((problem, form), Array2::eye(r), spectrum, task);
    if !(oracle.lipschitz.is_finite() && spectral.iter().all(|v| v.is_finite())) {
        return None;
    }
    let mut rotated = varimax_while(spectral.view(), &go_on);
    if problem.penalty.nonnegative() {
        turn_positive(&mut rotated);
    }
    let disjoint = problem.penalty.count().is_some() || problem.penalty.nonnegative();
    let covariance = if disjoint {
        Covariance::new(&oracle)
    } else {
        None
    };
    let (value, _) = oracle.value_and_gradient(&rotated);
    let curvature = oracle.diagonal().iter().sum::<f64>().abs();
    let optimum = known_optimum(problem, threads, KNOWN_ROWS, &go_on);
    // The pair sweeps need it as well, and cannot give it up.
    form.spectrum(&go_on)?;
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
