//! What the steps for an f that is not quadratic measure by: its rounding, its tangent gradient, and what two points
//! and the values and gradients there say of its curvature, and whether they fit together.

use ndarray::Array2;

use super::ledger::Ledger;
use super::point::Point;
use crate::linalg::{inner, square};
use crate::manifold::{Manifold, normals};
use crate::objective;

/// The steps rest where ‖G − JXΛ‖ is this times √tol, relative to ‖G‖ or, where that is more, a thousandth of the
/// largest ‖G‖ met: with the default tolerance 1e-6.
const CRITICAL: f64 = 0.1;
const SHARE: f64 = 1e-3;

/// Rounding of F, in units of the precision of f: of the magnitude of F, and of the constant of a quadratic form, which
/// is subtracted after a product with C.
const ROUNDING: f64 = 64.0;
const CANCELLED: f64 = 4.0;

/// Decreases of more than this times the rounding are resolved for certain.
pub(super) const RESOLVED: f64 = 1e4;

/// For a gradient of Lipschitz constant M, `|f(Y) − f(X) − ½⟨∇f(X) + ∇f(Y), Y − X⟩| ≤ ½M‖Y − X‖²`. So many trials in a
/// row beyond this multiple of it, M being the largest secant met, and of the rounding of f, are a contradiction.
const STRIKES: u32 = 5;
const EXCESS: f64 = 100.0;

/// What one value and gradient counts for.
pub(super) fn evaluation_work(point: &Point<'_>) -> f64 {
    objective::gradient_work(point.problem.smooth, point.x.ncols())
}

/// What a difference of two values of F may be without meaning anything.
pub(super) fn rounding(point: &Point<'_>, ledger: &Ledger) -> f64 {
    let size = ROUNDING * ledger.magnitude + CANCELLED * point.constant.abs();
    point.problem.smooth.precision() * size
}

/// Where X is.
pub(super) fn manifold<'a>(point: &Point<'a>) -> Manifold<'a> {
    Manifold::new(point.problem.signature, point.domain.k.clone(), None)
}

/// The tangent part of a gradient.
pub(super) fn tangent_part(
    point: &Point<'_>,
    x: &Array2<f64>,
    gradient: &Array2<f64>,
) -> Array2<f64> {
    let lambda = manifold(point).multiplier(x, gradient);
    gradient - &normals(x, point.problem.signature).dot(&lambda)
}

/// ‖G − JXΛ‖ that counts as none for G = `gradient`, with norms up to `steepest` met.
pub(super) fn critical(ledger: &Ledger, gradient: &Array2<f64>, steepest: f64) -> f64 {
    CRITICAL * ledger.tol().sqrt() * square(gradient).sqrt().max(SHARE * steepest)
}

/// The secants of a solve.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Secants {
    /// The largest ‖ΔG‖/‖ΔX‖ met, a lower bound of the Lipschitz constant.
    pub(super) largest: f64,
    /// The latest.
    pub(super) latest: f64,
    strikes: u32,
}

impl Secants {
    /// Takes over a move by which f changed by `change` and its gradient from `before` to `after`; returns whether
    /// values and gradients contradict each other.
    pub(super) fn contradict(
        &mut self,
        moved: &Array2<f64>,
        change: f64,
        (before, after): (&Array2<f64>, &Array2<f64>),
        noise: f64,
    ) -> bool {
        let step2 = square(moved);
        let secant = (square(&(after - before)) / step2).sqrt();
        if secant.is_finite() {
            (self.largest, self.latest) = (self.largest.max(secant), secant);
        }
        let off = (change - 0.5 * (inner(before, moved) + inner(after, moved))).abs();
        if off > EXCESS * (self.largest * step2).max(noise) {
            self.strikes += 1;
        } else {
            self.strikes = 0;
        }
        self.strikes >= STRIKES
    }
}
