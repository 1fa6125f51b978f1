//! Descent by proximal-gradient steps on the tangent space (see [`Tangent`]) with Barzilai–Borwein step
//! lengths.
//!
//! The direction D and the multiplier Λ come from [`Tangent::step`] with step length t. A trial is the
//! feasible point near X + sD with the pattern of X + D, s = 1, 0.4, 0.16, …; the first one that lowers F by
//! a share of s‖D‖²/t is accepted. The next t comes from [`Lengths`] for G − JXΛ (Chen, Ma, So and Zhang,
//! SIAM J. Optim. 30, 2020). Every accepted point is feasible and lowers F.

use ndarray::Array2;

use super::Tangent;
use super::gradient::{ARMIJO, Lengths};
use crate::linalg::{product, square};
use crate::manifold::normals;

/// Shortest t, in units of [`Bounds::unit`].
const SHORTEST: f64 = 1e-3;

/// Longest t, in units of [`Bounds::unit`].
const LONGEST: f64 = 1e3;

/// If all trials of a direction fail, a t above this many units is shortened, and a smaller one ends the
/// descent. With mixed signs only [`SHORTEST`] ends it.
const SHORT: f64 = 0.1;

/// Factor by which s is reduced if a trial does not lower F enough.
const SHORTER: f64 = 0.4;

/// Most trials of a direction.
const TRIALS: u32 = 12;

/// Number of successive idle steps after which the descent has converged.
const IDLE: u32 = 4;

/// A direction under trial.
struct DirectionTrial {
    direction: Array2<f64>,
    /// ‖D‖²/t.
    slope: f64,
    length: f64,
    count: u32,
}

/// Bounds on step lengths and decreases.
pub(crate) struct Bounds {
    /// 1/L for an approximate Lipschitz constant L of ∇f.
    pub(crate) unit: f64,
    /// A trial whose s‖D‖²/t is at most this is skipped.
    pub(crate) noise: f64,
    /// A step that lowers F by at most this is idle.
    pub(crate) idle: f64,
}

/// A feasible point, and f and ∇f there.
pub(crate) type EvaluatedPoint = (Array2<f64>, (f64, Array2<f64>));

/// The result of a trial.
pub(crate) enum TrialOutcome {
    /// F changed by this.
    Accepted(f64),
    Refused,
    /// No step lowers F by more than its bounds.
    Converged,
}

/// A feasible point with f, h and ∇f there, and the state of the descent.
pub(crate) struct ProximalDescent {
    pub(crate) x: Array2<f64>,
    pub(crate) value: f64,
    pub(crate) penalty: f64,
    pub(crate) gradient: Array2<f64>,
    pub(crate) lambda: Array2<f64>,
    pub(crate) t: f64,
    trial: Option<DirectionTrial>,
    lengths: Lengths,
    idle: u32,
}

impl ProximalDescent {
    /// Creates a descent from x with f and ∇f there; t is the first step length.
    pub(crate) fn new(tangent: &Tangent<'_>, x: Array2<f64>, (value, gradient): (f64, Array2<f64>), t: f64) -> Self {
        Self {
            value,
            penalty: tangent.penalty.value(x.view()),
            lambda: tangent.manifold.multiplier(&x, &gradient),
            gradient,
            x,
            t,
            trial: None,
            lengths: Lengths::default(),
            idle: 0,
        }
    }

    /// Returns whether the next trial needs a new direction.
    pub(crate) fn needs_direction(&self) -> bool {
        self.trial.is_none()
    }

    /// Returns whether the last [`IDLE`] steps were idle, so that the descent has converged.
    pub(crate) fn is_idle(&self) -> bool {
        self.idle >= IDLE
    }

    /// Computes a direction if none is under trial; returns whether ‖D‖²/t exceeds `least`.
    pub(crate) fn aim(&mut self, tangent: &Tangent<'_>, least: f64) -> bool {
        if self.trial.is_none() {
            let direction = tangent.step(&self.x, &self.gradient, self.t, &mut self.lambda);
            let slope = square(&direction) / self.t;
            self.trial = (slope > least).then_some(DirectionTrial { direction, slope, length: 1.0, count: 0 });
        }
        self.trial.is_some()
    }

    /// Returns the feasible point of the trial; None if there is none nearby.
    pub(crate) fn candidate(&self, tangent: &Tangent<'_>) -> Option<Array2<f64>> {
        let trial = self.trial.as_ref()?;
        tangent.retract(&self.x, &trial.direction, trial.length)
    }

    /// Accepts the point of the trial, with f and ∇f there, if F falls enough; otherwise shortens the trial,
    /// or t.
    pub(crate) fn judge(
        &mut self,
        tangent: &Tangent<'_>,
        next: Option<EvaluatedPoint>,
        bounds: &Bounds,
    ) -> TrialOutcome {
        let Some(mut trial) = self.trial.take() else {
            return TrialOutcome::Refused;
        };
        if let Some((x, (value, gradient))) = next {
            let penalty = tangent.penalty.value(x.view());
            let change = (value - self.value) + (penalty - self.penalty);
            if change <= -ARMIJO * trial.slope * trial.length {
                self.learn(tangent, (&x, &gradient), bounds.unit);
                (self.x, self.value, self.penalty, self.gradient) = (x, value, penalty, gradient);
                let idle = -change <= bounds.idle;
                self.idle = if idle { self.idle + 1 } else { 0 };
                return TrialOutcome::Accepted(change);
            }
        }
        trial.count += 1;
        trial.length *= SHORTER;
        let short = match tangent.manifold.signature.is_definite() {
            true => SHORT * bounds.unit,
            false => SHORTEST * bounds.unit,
        };
        if trial.count < TRIALS && trial.length * trial.slope > bounds.noise {
            self.trial = Some(trial);
        } else if self.t > short {
            self.t = (0.1 * self.t).max(SHORTEST * bounds.unit);
        } else {
            return TrialOutcome::Converged;
        }
        TrialOutcome::Refused
    }

    /// Updates t after a step to x.
    fn learn(&mut self, tangent: &Tangent<'_>, (x, gradient): (&Array2<f64>, &Array2<f64>), unit: f64) {
        let normal = |x: &Array2<f64>| {
            let normals = normals(x, tangent.manifold.signature);
            product(normals.view(), self.lambda.view())
        };
        let moved = x - &self.x;
        let turned = (gradient - &normal(x)) - (&self.gradient - &normal(&self.x));
        if let Some(t) = self.lengths.next(&moved, &turned)
            && unit.is_finite()
        {
            self.t = t.clamp(SHORTEST * unit, LONGEST * unit);
        }
    }
}
