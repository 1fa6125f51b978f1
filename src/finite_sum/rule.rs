//! The curvature of the pair models of a Jacobi round.

use ndarray::{Array2, ArrayView2};

use super::{CurvatureRule, FiniteSum, FiniteSumOptions, Page};
use crate::block::Outcome;
use crate::error::{Error, Result};
use crate::internal::{
    RAPIDITY_BOUND, SlopePairs,
    tournament::{matching, rounds},
};
use crate::signature::Signature;
use crate::solver::Side;
use crate::threads::Threads;

/// Decays of the mean slopes and of the mean squared slopes of [`CurvatureRule::Accumulated`].
const MOMENTS: [f64; 2] = [0.9, 0.99];

/// State of the moves of rows by [`CurvatureRule::Accumulated`].
struct AccumulatedMoves {
    /// M_ij and S_ij, i < j, before they are made unbiased.
    moments: [Array2<f64>; 2],
    /// Weights 1 − MOMENTS^t of the moments after t observations.
    weights: [f64; 2],
    signature: Signature,
    pairs: SlopePairs,
}

impl AccumulatedMoves {
    fn new(signature: &Signature, rapidity_bound: f64) -> Self {
        let n = signature.len();
        Self {
            moments: [Array2::zeros((n, n)), Array2::zeros((n, n))],
            weights: [0.0; 2],
            signature: signature.clone(),
            pairs: SlopePairs::new(signature, rapidity_bound),
        }
    }

    /// Resets the mean slopes, but not the mean squares.
    fn stop(&mut self) {
        self.moments[0].fill(0.0);
        self.weights[0] = 0.0;
    }

    /// Adds the slopes K = GXᵀ − J(GXᵀ)ᵀJ at `x` to the means.
    fn observe(&mut self, x: ArrayView2<'_, f64>, gradient: ArrayView2<'_, f64>) {
        let image = gradient.dot(&x.t());
        let n = image.nrows();
        let largest = image.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        for (weight, past) in self.weights.iter_mut().zip(MOMENTS) {
            *weight = past * *weight + (1.0 - past);
        }
        for i in 0..n {
            for j in i + 1..n {
                let sign = self.signature.sign(i) * self.signature.sign(j);
                let slope = image[[i, j]] - sign * image[[j, i]];
                let slope = if slope.abs() > FLAT * largest { slope } else { 0.0 };
                let powers = [slope, slope * slope];
                for ((moment, past), power) in self.moments.iter_mut().zip(MOMENTS).zip(powers) {
                    moment[[i, j]] = past * moment[[i, j]] + (1.0 - past) * power;
                }
            }
        }
    }

    /// Moves the rows of `x` by the first `most` matchings of the tournament among `order`, only pairs of
    /// equal sign if `rotations`. A pair costs O(n).
    fn turn(
        &mut self,
        x: &mut Array2<f64>,
        (order, most): (&[usize], usize),
        (step, theta): (f64, f64),
        rotations: bool,
    ) -> Outcome {
        let mut total = Outcome::default();
        let n = order.len();
        let rounds = most.min(rounds(n));
        let angle = step / (rounds as f64).sqrt();
        for round in 0..rounds {
            for [i, j] in matching(order, round) {
                let sign = self.signature.sign(i) * self.signature.sign(j);
                if rotations && sign < 0.0 {
                    continue;
                }
                total.visited += 1;
                let slope = self.moments[0][[i, j]] / self.weights[0];
                let size = (self.moments[1][[i, j]] / self.weights[1]).sqrt();
                if slope == 0.0 || size == 0.0 {
                    continue;
                }
                let weight = size * (theta + 1.0 / (2.0 * angle));
                let moved = self.pairs.turn(x, [i, j], slope, weight);
                total.updates += u64::from(moved);
            }
        }
        total
    }
}

/// A slope counts as rounding up to this share of the largest entry of GXᵀ.
const FLAT: f64 = 1e-11;

/// The moves of both sides by [`CurvatureRule::Accumulated`].
pub(super) struct Accumulated {
    /// The moves of rows, and those of columns.
    sides: [AccumulatedMoves; 2],
    step: f64,
}

impl Accumulated {
    pub(super) fn new(signature: &Signature, rapidity_bound: Option<f64>, step: f64) -> Self {
        let bound = rapidity_bound.unwrap_or(RAPIDITY_BOUND);
        let side = || AccumulatedMoves::new(signature, bound);
        Self { sides: [side(), side()], step }
    }

    /// Halves the step and resets the momentum.
    pub(super) fn slow_down(&mut self) {
        self.step *= 0.5;
        self.sides.iter_mut().for_each(AccumulatedMoves::stop);
    }

    /// Returns VXW and the counts of pairs. V moves the rows of X and Wᵀ those of I, one thread each, with
    /// the given `share` of the step.
    pub(super) fn turn(
        &mut self,
        x: ArrayView2<'_, f64>,
        gradient: ArrayView2<'_, f64>,
        (side, matchings): (Side, usize),
        order: &[usize],
        (share, theta): (f64, f64),
        threads: &Threads,
    ) -> (Array2<f64>, Outcome) {
        let n = x.nrows();
        let [rows, columns] = &mut self.sides;
        let mut jobs = Vec::with_capacity(2);
        if side != Side::Columns {
            rows.observe(x, gradient);
            jobs.push((rows, x.to_owned(), Outcome::default()));
        }
        if side != Side::Rows {
            columns.observe(x.t(), gradient.t());
            jobs.push((columns, Array2::eye(n), Outcome::default()));
        }
        let length = (self.step * share, theta);
        let work = n * n * matchings.min(n);
        threads.for_chunks(&mut jobs, 1, work, |k, job| {
            let (moves, target, outcome) = &mut job[0];
            *outcome = moves.turn(target, (order, matchings), length, side == Side::Both && k == 0);
        });
        let (mut moved, mut total) = (x.to_owned(), Outcome::default());
        for (k, (_, target, outcome)) in jobs.into_iter().enumerate() {
            total.absorb(outcome);
            moved = match k == 0 && side != Side::Columns {
                true => target,
                false => moved.dot(&target.t()),
            };
        }
        (moved, total)
    }
}

/// The source of the curvature of the pair models of an iteration.
pub(super) enum Model {
    /// The majoriser with L = `bound`; if L adapts, `trial` is the last step.
    Majorised { bound: f64, adaptive: bool, trial: Option<Trial> },
    /// Slopes averaged over the iterations.
    Accumulated(Box<Accumulated>),
}

/// The last step of the adaptive rule: the point before it, and the change that the model predicted.
pub(super) struct Trial {
    pub(super) start: Array2<f64>,
    pub(super) value: f64,
    pub(super) gradient: Array2<f64>,
    pub(super) predicted: f64,
}

impl Model {
    /// Creates the model for a sum whose gradient is estimated by `page`.
    pub(super) fn new(
        sum: &dyn FiniteSum,
        page: &Page,
        signature: &Signature,
        options: &FiniteSumOptions,
        smooth: bool,
    ) -> Result<Self> {
        let bound = options.curvature.unwrap_or_else(|| {
            let noise = (1.0 - page.probability()) / (page.probability() * page.small_batch as f64);
            let noise = if noise > 0.0 { noise.sqrt() * sum.mean_square_curvature() } else { 0.0 };
            let curvature = match signature.is_definite() {
                true => sum.curvature(),
                false => sum.lipschitz().unwrap_or(f64::INFINITY),
            };
            curvature + noise
        });
        let invalid = |message: &str| Err(Error::invalid("step_rule", message.to_owned()));
        match options.rule {
            CurvatureRule::Bound if !bound.is_finite() => {
                invalid("must not be \"bound\": the gradient of this objective has no Lipschitz constant")
            }
            CurvatureRule::Adaptive if !page.is_exact() || options.check_every.is_some_and(|every| every != 1) => {
                invalid("must not be \"adaptive\" for a sampled gradient")
            }
            CurvatureRule::Accumulated { step } if !(step.is_finite() && step > 0.0) => {
                Err(Error::invalid("step", "must be positive"))
            }
            CurvatureRule::Accumulated { .. } if !smooth => invalid("must not be \"accumulated\" with a penalty"),
            CurvatureRule::Accumulated { step } => {
                Ok(Self::Accumulated(Box::new(Accumulated::new(signature, options.rapidity_bound, step))))
            }
            CurvatureRule::Bound | CurvatureRule::Adaptive => {
                Ok(Self::Majorised { bound, adaptive: options.rule == CurvatureRule::Adaptive, trial: None })
            }
        }
    }
}
