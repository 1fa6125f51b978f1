//! [Descent by tangent-proximal steps](crate::riemann::proximal), for a penalty that is continuous at 0 and draws entries
//! there.
//!
//! It converges to critical points, where pairs alone are slow or stop at kinks. An f that has a value and a gradient, no
//! more, is lowered by it before pairs are solved; a quadratic form once passes over all pairs gain little.

use super::ledger::Ledger;
use super::measure::{Secants, evaluation_work, manifold, rounding};
use super::mover::{Mover, Step};
use super::point::Point;
use crate::linalg::{product, square};
use crate::manifold::{normals, signs_of};
use crate::riemann::proximal::{Bounds, Outcome, ProximalDescent};
use crate::riemann::{Tangent, tangent_work};

/// The first step moves X by about this share of itself.
const FIRST: f64 = 0.02;

/// The descent has converged where ‖D‖²/t, or the decrease of some steps in a row, is at most this share of the tolerance.
const SMALL: f64 = 1e-3;

/// What a product with C costs of the tangent steps on average: a third of their limit of Newton steps.
const USUAL_WORK: f64 = 0.1;

/// Relative residual of the Newton systems for Λ: rough solutions take fewer products in all than exact ones.
const RESIDUAL: f64 = 0.05;

/// The steps and their memory.
#[derive(Default)]
pub(super) struct Proximal {
    descent: Option<ProximalDescent>,
    /// Whether something else has moved X.
    moved: bool,
    secants: Secants,
    rests: bool,
}

impl Proximal {
    /// Steps from the current X; None for other penalties, or where X is not on the Stiefel manifold.
    pub(super) fn new(point: &Point<'_>) -> Option<Self> {
        let penalty = point.problem.penalty;
        let (low, high) = penalty.subdifferential(0, 0, 0.0);
        let continuous = low.is_finite() && high.is_finite();
        let stiefel =
            point.problem.signature.is_definite() && signs_of(point.domain.k.view()).is_some();
        (penalty.sparsifies() && continuous && stiefel).then(Self::default)
    }

    /// Whether no step lowers F by more than the tolerance.
    pub(super) fn rests(&self) -> bool {
        self.rests
    }

    /// The largest secant of ∇f met.
    pub(super) fn secant(&self) -> f64 {
        self.secants.largest
    }

    /// Goes on after something else has moved X.
    pub(super) fn restart(&mut self) {
        (self.moved, self.rests) = (true, false);
    }

    /// A trial. All rows move in it: it counts as a sweep.
    pub(super) fn advance(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
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
            self.rests = true;
            self.descent = Some(descent);
            return Step::Pass;
        }
        ledger.visit(ledger.sweep, evaluation_work(point));
        let candidate = descent.candidate(&tangent);
        let mut next = candidate.and_then(|x| point.try_evaluate(&x).map(|at| (x, at)));
        if let Some((x, (value, gradient))) = &next {
            let (moved, rise) = (x - &descent.x, value - descent.value);
            let gradients = (&descent.gradient, gradient);
            if (self.secants).contradict(&moved, rise, gradients, noise) && point.form.is_none() {
                return Step::Contradiction;
            }
        }
        // A step onto a vertex may lead out of the rotations.
        next = next.filter(|(x, _)| point.problem.holds(x.view()));
        let bounds = Bounds {
            unit: 1.0 / self.secants.largest,
            noise,
            idle: small,
        };
        match descent.judge(&tangent, next, &bounds) {
            Outcome::Accepted(change) => {
                self.rests = descent.is_idle();
                ledger.lower(change, 1);
                point.adopt(descent.x.clone(), (descent.value, descent.gradient.clone()));
            }
            Outcome::Refused => {}
            Outcome::Converged => self.rests = true,
        }
        self.descent = Some(descent);
        Step::Pass
    }
}

/// The first t.
fn first(descent: &ProximalDescent, point: &Point<'_>) -> f64 {
    let normals = normals(&descent.x, point.problem.signature);
    let tangent = &descent.gradient - &product(normals.view(), descent.lambda.view());
    // ⟨∂h, X⟩ is about h: at a critical point of f alone it is h that moves X.
    let size = square(&descent.x).sqrt();
    FIRST * size / (square(&tangent).sqrt() + descent.penalty / size)
}

impl Mover for Proximal {
    fn step(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        let step = self.advance(point, ledger);
        if self.rests {
            point.follow();
        }
        step
    }
}
