//! Riemannian gradient descent on a smoothed penalty, with continuation in the smoothing.
//!
//! The penalty is [smoothed](Penalty::smoothed) over a width ε. The smooth problem is minimised on {XᵀX = I}
//! by [gradient descent](crate::riemann::gradient) with a polar retraction, while ε falls geometrically. All
//! rows move at once, which suits dense optima. A step costs one product C X and one r×r eigenvalue problem.

use std::ops::Range;

use ndarray::Array2;

use super::oracle::Oracle;
use super::profile::{Kind, Profile};
use super::sharpen::sharpened;
use super::{Heuristic, LEAST_STAGED, LIKELY, POSSIBLE, Prior, Task, UNLIKELY};
use crate::limits::MethodLimit;
use crate::manifold::{perturbed, tangent};
use crate::riemann::gradient::GradientDescent;
use crate::start;

/// A schedule of ε, in units of [`natural_epsilon`].
#[derive(Debug, Clone, Copy)]
struct EpsilonSchedule {
    first: f64,
    last: f64,
    stages: usize,
    /// Number of stages after which a race compares the descents; their ranks are then close to the final ones.
    early: usize,
    /// Most steps of these stages.
    early_steps: usize,
    /// Cost of the later stages of a race, relative to the cost of the stages before the comparison.
    late: f64,
}

/// Schedule for ℓ0; the unit is √(2λ/L), the largest entry that a proximal step sets to zero.
const COUNT: EpsilonSchedule =
    EpsilonSchedule { first: 2.0, last: 0.15, stages: 20, early: 6, early_steps: 450, late: 2.3 };

/// Schedule for ℓ1; the unit is 1/√n, the size of an entry of a dense unit vector. The range is wide and the
/// descent slow: with some hundred steps per stage, most starts end at the same value.
const ABSOLUTE: EpsilonSchedule =
    EpsilonSchedule { first: 3.0, last: 0.01, stages: 24, early: 9, early_steps: 3600, late: 1.0 };

/// Schedule for ℓ1 with less than [`SLOW`] steps, or if the result should stay near the start.
const BRIEF: EpsilonSchedule =
    EpsilonSchedule { first: 1.0, last: 0.03, stages: 12, early: 4, early_steps: 450, late: 2.0 };

/// Number of steps from which [`ABSOLUTE`] is better than [`BRIEF`].
const SLOW: usize = 2500;

/// Steps that measure how many steps the limit allows.
const PROBE: usize = 3;

/// Returns the schedule for ℓ1 from x that fits the limit.
fn absolute(oracle: &Oracle<'_>, x: &Array2<f64>, limit: MethodLimit<'_>) -> EpsilonSchedule {
    let mut descent = SmoothedDescent::new(oracle, x.clone());
    descent.epsilon = natural_epsilon(oracle);
    descent.restart();
    for _ in 0..PROBE {
        if limit.progress() >= 1.0 || !descent.step() {
            break;
        }
    }
    if limit.progress() * SLOW as f64 > PROBE as f64 { BRIEF } else { ABSOLUTE }
}

impl EpsilonSchedule {
    /// Returns ε of a stage, in units of [`natural_epsilon`].
    fn at(self, stage: usize) -> f64 {
        let ratio = stage as f64 / self.stages.saturating_sub(1).max(1) as f64;
        self.first * (self.last / self.first).powf(ratio)
    }

    /// Returns the number of descents of a race if the early stages of one take the share `cost` of the limit.
    fn entries(self, cost: f64) -> usize {
        (2..=ENTRIES)
            .take_while(|&k| {
                let places = (k / PLACES).max(1) as f64;
                (k as f64 + places * self.late) * cost <= 1.0
            })
            .last()
            .unwrap_or(1)
    }
}

/// Gradient norm, relative to the Lipschitz constant, at which a stage ends.
const STAGE_TOLERANCE: f64 = 1e-6;

/// Largest share of the limit of a race for one descent before the comparison.
const EARLY: f64 = 0.3;

/// Number of descents of a race for each descent that continues after the comparison.
const PLACES: usize = 5;

/// Most descents of a race.
const ENTRIES: usize = 64;

/// Returns the unit of ε.
fn natural_epsilon(oracle: &Oracle<'_>) -> f64 {
    match oracle.problem.penalty.count() {
        Some(lambda) => (2.0 * lambda / oracle.lipschitz).sqrt(),
        None => 1.0 / (oracle.rows() as f64).sqrt(),
    }
}

/// Returns f plus the smoothed penalty, and the gradient.
fn smoothed(oracle: &Oracle<'_>, x: &Array2<f64>, epsilon: f64) -> (f64, Array2<f64>) {
    // For ℓ1 the optima lie within 1e-5 of each other, and single precision finds worse ones.
    let penalty = oracle.problem.penalty;
    let (value, mut gradient) = match penalty.count() {
        Some(_) => oracle.rough_value_and_gradient(x),
        None => oracle.value_and_gradient(x),
    };
    let smoothed_penalty = penalty.smoothed(x.view(), epsilon, gradient.view_mut());
    (value + smoothed_penalty, gradient)
}

/// Most step lengths that are tried.
const TRIALS: usize = 25;

/// Ratio of a step length to the one tried before.
const SHORTER: f64 = 0.3;

/// Gradient descent that keeps its step length from one ε to the next.
struct SmoothedDescent<'a, 'b> {
    oracle: &'a Oracle<'b>,
    epsilon: f64,
    steps: GradientDescent,
}

impl<'a, 'b> SmoothedDescent<'a, 'b> {
    fn new(oracle: &'a Oracle<'b>, x: Array2<f64>) -> Self {
        let direction = Array2::zeros((0, 0));
        Self { oracle, epsilon: 0.0, steps: GradientDescent::new(x, f64::INFINITY, direction, 1.0 / oracle.lipschitz) }
    }

    fn restart(&mut self) {
        let x = std::mem::take(&mut self.steps.x);
        let (value, gradient) = smoothed(self.oracle, &x, self.epsilon);
        let direction = tangent(&x, &gradient);
        self.steps = GradientDescent::new(x, value, direction, self.steps.length);
    }

    /// Makes one accepted step; returns false if the line search fails.
    fn step(&mut self) -> bool {
        let length = self.steps.length;
        let steps = &mut self.steps;
        for _ in 0..TRIALS {
            if !(steps.norm2 > 0.0) || self.oracle.work.expired() {
                break;
            }
            let trial = self.oracle.polar(&steps.trial());
            let (value, gradient) = smoothed(self.oracle, &trial, self.epsilon);
            if steps.accepts(value) {
                let direction = tangent(&trial, &gradient);
                steps.accept(trial, value, direction);
                return true;
            }
            steps.length *= SHORTER;
        }
        steps.length = length;
        false
    }

    /// Runs the stages `range` of a schedule, in equal shares of the limit and of `most` steps.
    fn run(&mut self, schedule: EpsilonSchedule, range: Range<usize>, most: usize, limit: MethodLimit<'_>) {
        let unit = natural_epsilon(self.oracle);
        let floor = STAGE_TOLERANCE * self.oracle.lipschitz;
        let mut steps = 0;
        for stage in range.clone() {
            let share = (stage + 1 - range.start) as f64 / range.len() as f64;
            self.epsilon = unit * schedule.at(stage);
            // One step may take the share of several stages.
            if !(limit.progress() < share) {
                continue;
            }
            self.restart();
            while limit.progress() < share && (steps as f64) < share * most as f64 {
                if !(self.steps.norm2 > floor * floor) || !self.step() {
                    break;
                }
                steps += 1;
            }
        }
    }
}

/// Descends over the schedule; returns a dense orthonormal X and the last ε.
fn descend(
    oracle: &Oracle<'_>,
    x: Array2<f64>,
    schedule: EpsilonSchedule,
    limit: MethodLimit<'_>,
) -> (Array2<f64>, f64) {
    let mut descent = SmoothedDescent::new(oracle, x);
    descent.run(schedule, 0..schedule.stages, usize::MAX, limit);
    (descent.steps.x, descent.epsilon)
}

/// Descends from `start(0)`, `start(1)`, … over the first stages, as often as the limit allows, and continues
/// the best descents; returns a dense orthonormal X and the last ε.
///
/// The optimum of a descent is determined while ε is large, so one step of successive halving suffices.
fn race(
    oracle: &Oracle<'_>,
    start: impl Fn(usize) -> Array2<f64>,
    schedule: EpsilonSchedule,
    limit: MethodLimit<'_>,
) -> (Array2<f64>, f64) {
    let mut entries: Vec<SmoothedDescent<'_, '_>> = Vec::new();
    let mut most = 1;
    while entries.len() < most {
        let spent = limit.progress();
        let mut descent = SmoothedDescent::new(oracle, start(entries.len()));
        let part = limit.up_to((spent + EARLY).min(1.0));
        descent.run(schedule, 0..schedule.early, schedule.early_steps, part);
        entries.push(descent);
        let cost = limit.progress() - spent;
        if entries.len() == 1 {
            most = schedule.entries(cost);
        }
        if !(limit.progress() + (1.0 + schedule.late) * cost < 1.0) {
            break;
        }
    }
    entries.sort_by(|a, b| a.steps.value.total_cmp(&b.steps.value));
    entries.truncate((entries.len() / PLACES).max(1));
    let count = entries.len();
    for (k, descent) in entries.iter_mut().enumerate() {
        let spent = limit.progress();
        let part = limit.up_to(spent + (1.0 - spent) / (count - k) as f64);
        descent.run(schedule, schedule.early..schedule.stages, usize::MAX, part);
    }
    entries
        .into_iter()
        .min_by(|a, b| a.steps.value.total_cmp(&b.steps.value))
        .map_or_else(|| (start(0), 0.0), |best| (best.steps.x, best.epsilon))
}

/// Heat from which an improvement descends from the incumbent instead of from new starts.
const AFRESH: f64 = 0.7;

/// Share of a run for the descents; the rest makes their result feasible.
const DESCENTS: f64 = 0.83;

/// Descends from `x` and returns a feasible point; ε starts at `heat` times its usual value.
pub(super) fn descended(task: &Task<'_>, x: Array2<f64>, heat: f64) -> Array2<f64> {
    let near = match task.profile.kind {
        Kind::Count => COUNT,
        _ => BRIEF,
    };
    let schedule = EpsilonSchedule { first: near.first * heat, ..near };
    let ended = descend(task.oracle, x, schedule, task.limit.first(DESCENTS));
    sharpened(task, ended)
}

/// Smoothed descents, thresholded and followed by tangent steps.
pub(super) struct Smoothed;

impl Smoothed {
    /// Returns the schedule of a new descent from x.
    fn schedule(task: &Task<'_>, x: &Array2<f64>) -> EpsilonSchedule {
        match task.profile.kind {
            Kind::Count => COUNT,
            Kind::Sparse => absolute(task.oracle, x, task.limit),
            // f + h is smooth already.
            _ => EpsilonSchedule { stages: 1, early: 0, ..BRIEF },
        }
    }

    /// Runs a race from `first`, if given, and from random rotations of the spectral solution.
    fn race(task: &Task<'_>, schedule: EpsilonSchedule, first: Option<&Array2<f64>>) -> (Array2<f64>, f64) {
        let r = task.oracle.columns();
        let start = |k: usize| match first {
            Some(first) if k == 0 => first.clone(),
            _ => {
                let rotation = start::random(r, r, task.seed.wrapping_add(k as u64));
                task.known.basis.spectral.dot(&rotation)
            }
        };
        race(task.oracle, start, schedule, task.limit.first(DESCENTS))
    }
}

impl Heuristic for Smoothed {
    fn name(&self) -> &'static str {
        "smoothed"
    }

    fn fits(&self, profile: &Profile, _: bool) -> Option<Prior> {
        let success = match (profile.kind, profile.is_dense()) {
            (Kind::Sparse, true) if profile.is_costly() => POSSIBLE,
            (Kind::Sparse, _) | (Kind::Count, true) => LIKELY,
            (Kind::Smooth, _) => POSSIBLE,
            (Kind::Count, false) => UNLIKELY,
            _ => 0.0,
        };
        (!profile.mixed).then(|| Prior::new(success, LEAST_STAGED))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let rotated = &task.known.basis.rotated;
        let ended = match task.from {
            None => {
                let schedule = Self::schedule(task, rotated);
                // Slow descents reach the same optimum from every start but the varimax rotation.
                let near = task.run == 0 && schedule.stages < ABSOLUTE.stages;
                Self::race(task, schedule, near.then_some(rotated))
            }
            Some(best) if task.heat < AFRESH => Self::race(task, Self::schedule(task, best), None),
            Some(best) => {
                let from = perturbed(best, ROTATION * task.heat, task.seed);
                return Some(descended(task, from, task.heat));
            }
        };
        Some(sharpened(task, ended))
    }
}

/// Size of the random rotation of the incumbent.
const ROTATION: f64 = 0.04;
