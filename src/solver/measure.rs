//! Measurements for steps of a nonquadratic f: its rounding, its tangent gradient, its curvature from
//! secants, and the consistency of values and gradients.

use ndarray::Array2;

use super::ledger::Ledger;
use super::point::Point;
use crate::linalg::{inner, square};
use crate::manifold::{Manifold, normals};
use crate::numerics;
use crate::objective;
use crate::riemann::proximal::EvaluatedPoint;

/// A first step moves X by about this share of its norm.
pub(super) const FIRST: f64 = 0.02;

/// X counts as critical if ‖G − JXΛ‖ is at most this times √tol, relative to ‖G‖: 1e-6 with the default tolerance.
const CRITICAL: f64 = 0.1;

/// Part of the largest ‖G‖ met that takes the place of ‖G‖ if it is larger.
const SHARE: f64 = 1e-3;

/// Rounding of F relative to the constant of a quadratic form, in the same units: the constant is subtracted
/// after a product with C.
const CANCELLED: f64 = 4.0;

/// Decreases of more than this multiple of the rounding are resolved.
pub(super) const RESOLVED: f64 = 1e4;

/// Number of successive trials above `EXCESS` after which values and gradients of f contradict each other.
const EXCESSES: u32 = 5;

/// Factor on the bound ½M‖Y − X‖² of `|f(Y) − f(X) − ½⟨∇f(X) + ∇f(Y), Y − X⟩|`, plus the rounding of f; M is the
/// largest secant of the gradient so far.
const EXCESS: f64 = 100.0;

/// Returns the work of one value and gradient.
pub(super) fn evaluation_work(point: &Point<'_>) -> f64 {
    objective::gradient_work(point.problem.smooth, point.x.ncols())
}

/// Returns the difference of two values of F that counts as rounding.
pub(super) fn rounding(point: &Point<'_>, ledger: &Ledger) -> f64 {
    let size = numerics::VALUE * ledger.magnitude + CANCELLED * point.constant.abs();
    point.problem.smooth.precision() * size
}

/// Returns the constraint manifold of X.
pub(super) fn manifold<'a>(point: &Point<'a>) -> Manifold<'a> {
    Manifold::new(point.problem.signature, point.domain.k.clone(), None)
}

/// Returns the tangent part of a gradient.
pub(super) fn tangent_part(point: &Point<'_>, x: &Array2<f64>, gradient: &Array2<f64>) -> Array2<f64> {
    let lambda = manifold(point).multiplier(x, gradient);
    gradient - &normals(x, point.problem.signature).dot(&lambda)
}

/// Returns the ‖G − JXΛ‖ at which X counts as critical, for G = `gradient` and norms up to `steepest` met.
pub(super) fn critical(ledger: &Ledger, gradient: &Array2<f64>, steepest: f64) -> f64 {
    CRITICAL * ledger.tol().sqrt() * square(gradient).sqrt().max(SHARE * steepest)
}

/// The secants of a solve.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Secants {
    /// The largest ‖ΔG‖/‖ΔX‖ met, a lower bound on the Lipschitz constant.
    pub(super) largest: f64,
    /// The latest.
    pub(super) latest: f64,
    excesses: u32,
}

impl Secants {
    /// Evaluates f at X = `to`, and records the secant from X = `from` with this value and gradient; None if there is no
    /// such point, or f is not finite there. `noise` is the rounding of f.
    pub(super) fn evaluate(
        &mut self,
        point: &Point<'_>,
        (from, value, gradient): (&Array2<f64>, f64, &Array2<f64>),
        to: Option<Array2<f64>>,
        noise: f64,
    ) -> Option<EvaluatedPoint> {
        let to = to?;
        let there = point.try_evaluate(&to)?;
        let moved = &to - from;
        let step2 = square(&moved);
        let secant = (square(&(&there.1 - gradient)) / step2).sqrt();
        if secant.is_finite() {
            (self.largest, self.latest) = (self.largest.max(secant), secant);
        }
        let off = (there.0 - value) - 0.5 * (inner(gradient, &moved) + inner(&there.1, &moved));
        let exceeds = off.abs() > EXCESS * (self.largest * step2).max(noise);
        self.excesses = if exceeds { self.excesses + 1 } else { 0 };
        Some((to, there))
    }

    /// Returns whether values and gradients contradict each other.
    pub(super) fn contradict(&self) -> bool {
        self.excesses >= EXCESSES
    }
}
