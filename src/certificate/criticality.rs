//! Distance dist(0, ∂_M F(X)) of X from the first-order condition.
//!
//! With the Euclidean metric `∂_M F(X) = P_T(∂F(X))`, P_T the projection onto the tangent space of
//! {XᵀX = I}, and the distance is the steepest rate of descent. The normal space is {XΛ : Λ = Λᵀ}
//! ({JXΛ} where XᵀJX is fixed), so
//!
//! ```text
//! dist² = min over symmetric Λ and Ξ ∈ ∂h(X) of ‖∇f(X) + Ξ − XΛ‖²,
//! ```
//!
//! where ∂h is entrywise an interval: a point where h is smooth; [−λ, λ] at a zero for ℓ1; the whole
//! line at a zero for ℓ0; (−∞, 0] at a zero for X ≥ 0. At a kink it is the interval between the slopes
//! of both sides, Clarke's subdifferential, also at a concave one (capped ℓ1 at its threshold). There the
//! regular subdifferential is empty, and F may fall to first order though 0 lies in ∂_M F(X). For given Λ
//! the best Ξ is a clip, which leaves a convex, piecewise quadratic function of Λ; a semismooth Newton
//! method with conjugate gradients minimises it to rounding.

use ndarray::{Array2, ArrayView2, Zip};

use crate::linalg::{conjugate_gradients, square, symmetric};
use crate::manifold::signed;
use crate::numerics;
use crate::objective::GoOn;
use crate::penalty::Penalty;
use crate::riemann::damped_newton;
use crate::signature::Signature;

/// Largest number of halvings of a Newton step.
const HALVINGS: usize = 40;

/// Returns dist(0, ∂_M F(X)) for feasible X and `gradient` = ∇f(X); NaN for a gradient of another shape.
pub fn criticality(
    penalty: &Penalty,
    x: ArrayView2<'_, f64>,
    gradient: ArrayView2<'_, f64>,
    signature: &Signature,
) -> f64 {
    criticality_while(penalty, x, gradient, signature, &|| true)
}

/// Returns `criticality`, or NaN if `go_on` ends the computation.
pub(super) fn criticality_while(
    penalty: &Penalty,
    x: ArrayView2<'_, f64>,
    gradient: ArrayView2<'_, f64>,
    signature: &Signature,
    go_on: GoOn<'_>,
) -> f64 {
    let (n, r) = x.dim();
    if gradient.dim() != (n, r) {
        return f64::NAN;
    }
    let mut low = Array2::zeros((n, r));
    let mut high = Array2::zeros((n, r));
    Zip::indexed(&mut low).and(&mut high).and(&x).for_each(|(i, k), low, high, &value| {
        let (left, right) = penalty.subdifferential(i, k, value);
        (*low, *high) = (left.min(right), left.max(right));
    });
    if signature.is_definite() {
        nearest_residual(x, gradient, low.view(), high.view(), go_on)
    } else {
        let normals = signed(x, signature);
        nearest_residual(normals.view(), gradient, low.view(), high.view(), go_on)
    }
}

/// Returns min over symmetric Λ and low ≤ Ξ ≤ high of ‖G + Ξ − XΛ‖, for X or, with mixed signs, JX.
///
/// All arguments but X are scaled to unit size by a power of two: squares neither overflow nor vanish.
fn nearest_residual(
    x: ArrayView2<'_, f64>,
    gradient: ArrayView2<'_, f64>,
    low: ArrayView2<'_, f64>,
    high: ArrayView2<'_, f64>,
    go_on: GoOn<'_>,
) -> f64 {
    let size =
        [gradient, low, high].into_iter().flatten().map(|v| v.abs()).filter(|v| v.is_finite()).fold(0.0, f64::max);
    if size == 0.0 {
        return 0.0;
    }
    let unit = size.log2().floor().clamp(-1000.0, 1000.0).exp2();
    let [gradient, low, high] = [gradient, low, high].map(|a| a.mapv(|v| v / unit));
    unit * nearest_scaled_residual(x, gradient.view(), low.view(), high.view(), go_on)
}

fn nearest_scaled_residual(
    x: ArrayView2<'_, f64>,
    gradient: ArrayView2<'_, f64>,
    low: ArrayView2<'_, f64>,
    high: ArrayView2<'_, f64>,
    go_on: GoOn<'_>,
) -> f64 {
    let r = x.ncols();
    let evaluate = |lambda: &Array2<f64>| {
        let mut rest = &gradient - &x.dot(lambda);
        Zip::from(&mut rest).and(&low).and(&high).for_each(|t, &low, &high| *t += (-*t).clamp(low, high));
        let square = square(&rest);
        (rest, square)
    };
    let scale = square(&gradient.to_owned()).sqrt().max(f64::MIN_POSITIVE);
    let interrupted = std::cell::Cell::new(false);
    let direction = |rest: &Array2<f64>, _: f64| {
        // Descent direction of ½‖residual‖² in Λ.
        let descent = symmetric(&x.t().dot(rest));
        if square(&descent).sqrt() <= numerics::CONVERGED * scale {
            return None;
        }
        let mut weight = Array2::<f64>::zeros(x.dim());
        Zip::from(&mut weight).and(rest).and(&low).and(&high).for_each(|w, &t, &low, &high| {
            *w = f64::from(u8::from(low == high || t != 0.0));
        });
        // Zero curvature ends the conjugate gradients.
        let curvature = |d: &Array2<f64>| match go_on() {
            true => symmetric(&x.t().dot(&(&weight * &x.dot(d)))),
            false => Array2::zeros(d.dim()),
        };
        let step = conjugate_gradients(curvature, &descent, 4 * r * r + 20, 1e-12);
        interrupted.set(!go_on());
        (!interrupted.get()).then_some(step)
    };
    // This Λ is exact if h is smooth everywhere and X is orthonormal.
    let mut lambda = symmetric(&x.t().dot(&gradient));
    let limits = (numerics::STEPS, HALVINGS);
    let (_, value) = damped_newton(&mut lambda, limits, evaluate, direction, || false);
    if interrupted.get() {
        return f64::NAN;
    }
    value.sqrt()
}
