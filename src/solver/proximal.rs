//! [Descent by tangent-proximal steps](crate::riemann::proximal), for a penalty that is continuous at 0 and
//! favours zeros.
//!
//! The descent converges to critical points, where pairs alone are slow or stop at kinks. For an f with value
//! and gradient only it runs before pairs are solved; for a quadratic form after passes over all pairs that
//! gain little.

use super::descent::Descent;
use super::ledger::Ledger;
use super::majorised::Majorised;
use super::measure::{FIRST, Secants, evaluation_work, manifold, rounding};
use super::mover::Step;
use super::point::Point;
use crate::linalg::{product, square};
use crate::manifold::{normals, signs_of};
use crate::riemann::proximal::{Bounds, ProximalDescent, TrialOutcome};
use crate::riemann::{Tangent, tangent_work};

/// The descent has converged if ‖D‖²/t, or the decrease of successive steps, is at most this share of the
/// tolerance.
const SMALL: f64 = 1e-3;

/// Mean work of a step's Newton systems, as a share of the largest work of a step.
const USUAL_WORK: f64 = 0.1;

/// Relative residual of the Newton systems for Λ: rough solutions take fewer products in total than exact
/// ones.
const RESIDUAL: f64 = 0.05;

/// The steps and their state.
#[derive(Default)]
pub(super) struct Proximal {
    descent: Option<ProximalDescent>,
    /// True if something else has moved X.
    moved: bool,
    secants: Secants,
    converged: bool,
}

impl Proximal {
    /// Steps from the current X; None for other penalties, or if X is not on the Stiefel manifold.
    pub(super) fn new(point: &Point<'_>) -> Option<Self> {
        let penalty = point.problem.penalty;
        let (low, high) = penalty.subdifferential(0, 0, 0.0);
        let continuous = low.is_finite() && high.is_finite();
        let stiefel = point.problem.signature.is_definite() && signs_of(point.domain.k.view()).is_some();
        (penalty.sparsifies() && continuous && stiefel).then(Self::default)
    }
}

impl Descent for Proximal {
    /// Makes a trial. All rows move, so it counts as a sweep.
    fn advance(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        let manifold = manifold(point);
        let tangent = Tangent {
            penalty: point.problem.penalty,
            manifold: &manifold,
            residual: RESIDUAL,
            dense: true,
            is_over: &|| false,
        };
        let fresh = |t| ProximalDescent::new(&tangent, point.x.clone(), point.evaluated(), t);
        let mut descent = match self.descent.take() {
            Some(descent) if self.moved => fresh(descent.t),
            Some(descent) => descent,
            None => {
                let mut descent = fresh(0.0);
                descent.t = first(&descent, point);
                descent
            }
        };
        self.moved = false;
        let (noise, small) = (rounding(point, ledger), SMALL * ledger.threshold());
        if descent.needs_direction() {
            let (n, r) = point.x.dim();
            ledger.visit(0, USUAL_WORK * tangent_work(n, r));
        }
        if !descent.aim(&tangent, small.max(noise)) {
            self.converged = true;
            self.descent = Some(descent);
            return Step::Pass;
        }
        ledger.visit(ledger.sweep, evaluation_work(point));
        let candidate = descent.candidate(&tangent);
        let next = self.secants.evaluate(point, (&descent.x, descent.value, &descent.gradient), candidate, noise);
        if self.secants.contradict() && point.form.is_none() {
            return Step::Contradiction;
        }
        // A step onto a vertex may leave the rotations.
        let next = next.filter(|(x, _)| point.problem.holds(x.view()));
        let bounds = Bounds { unit: 1.0 / self.secants.largest, noise, idle: small };
        match descent.judge(&tangent, next, &bounds) {
            TrialOutcome::Accepted(change) => {
                self.converged = descent.is_idle();
                ledger.lower(change, 1);
                point.adopt(descent.x.clone(), (descent.value, descent.gradient.clone()));
            }
            TrialOutcome::Refused => {}
            TrialOutcome::Converged => self.converged = true,
        }
        self.descent = Some(descent);
        Step::Pass
    }

    fn has_converged(&self) -> bool {
        self.converged
    }

    fn restart(&mut self, _: &Point<'_>) {
        (self.moved, self.converged) = (true, false);
    }

    fn teach(&self, pairs: &mut Majorised, _: &mut Point<'_>, _: &Ledger) {
        pairs.learn(self.secants.largest, 0.0);
    }
}

/// Returns the first t.
fn first(descent: &ProximalDescent, point: &Point<'_>) -> f64 {
    let normals = normals(&descent.x, point.problem.signature);
    let tangent = &descent.gradient - &product(normals.view(), descent.lambda.view());
    // ⟨∂h, X⟩ is about h: at a critical point of f alone only h moves X.
    let size = square(&descent.x).sqrt();
    FIRST * size / (square(&tangent).sqrt() + descent.penalty / size)
}
