//! Annealed splitting: linearised ADMM whose penalty parameter grows while it runs.
//!
//! ```text
//! X <- polar(β Y + ζ X − ∇f(X) − W)      ζ: inertia, 0 for concave f
//! Y <- prox_{h/β}(X + W/β)
//! W <- W + β (X − Y)
//! ```
//!
//! β starts where the sparse copy Y is free to change its support, far below the curvature that the
//! last component sees, and ends where X and Y agree.

use ndarray::Array2;

use super::oracle::Oracle;
use crate::budget::Pace;
use crate::linalg::symmetric_eigen;
use crate::linalg::{square, symmetric};
use crate::penalty::Penalty;

/// First β in units of the curvature that the last component sees, last β in units of the Lipschitz
/// constant.
const BETA: (f64, f64) = (0.06, 1.2);

/// The same for X ≥ 0, where X only has to show who owns a row.
const BETA_NONNEGATIVE: (f64, f64) = (0.2, 0.6);

/// The last β is at least this many prices of an entry of one: below, single entries do not survive the proximal map.
const SURVIVAL: f64 = 16.0;

/// Relative distance of X and Y at which they agree.
const AGREE: f64 = 1e-9;

/// First and last β for a start: the smallest eigenvalue of −Xᵀ∇f(X) can be far below the Lipschitz
/// constant.
pub(super) fn range<P: Penalty>(oracle: &Oracle<'_, P>, x: &Array2<f64>) -> (f64, f64) {
    let (_, gradient) = oracle.value_and_gradient(x);
    let (seen, _) = symmetric_eigen(symmetric(&x.t().dot(&gradient)).mapv(|v| -v).view());
    let lipschitz = oracle.lipschitz;
    let level = seen[0].max(1e-4 * lipschitz).min(lipschitz);
    let penalty = oracle.problem.penalty;
    if penalty.nonnegative() {
        return (BETA_NONNEGATIVE.0 * level, BETA_NONNEGATIVE.1 * lipschitz);
    }
    // What an entry of one costs at most.
    let dearest = ndarray::indices(x.dim())
        .into_iter()
        .map(|(i, k)| penalty.entry(i, k, 1.0))
        .filter(|price| price.is_finite())
        .fold(0.0, f64::max);
    (BETA.0 * level, (BETA.1 * lipschitz).max(SURVIVAL * dearest))
}

/// Runs the splitting; returns (X, Y), X orthonormal, Y in the penalty's pattern.
pub(super) fn anneal<P: Penalty>(
    oracle: &Oracle<'_, P>,
    x: Array2<f64>,
    beta: (f64, f64),
    pace: Pace<'_>,
) -> (Array2<f64>, Array2<f64>) {
    let inertia = oracle.convexity;
    let (first, last) = beta;
    let mut x = x;
    let mut y = x.clone();
    let mut multiplier = Array2::<f64>::zeros(x.dim());
    let mut step = 0;
    loop {
        let ratio = pace.progress(step);
        let beta = first * (last / first).powf(ratio);
        let (_, mut target) = oracle.rough_value_and_gradient(&x);
        target += &multiplier;
        target.mapv_inplace(|v| -v);
        target.scaled_add(beta, &y);
        if inertia > 0.0 {
            target.scaled_add(inertia, &x);
        }
        x = oracle.polar(&target);
        let mut shifted = x.clone();
        shifted.scaled_add(1.0 / beta, &multiplier);
        y = oracle.proximal(shifted, 1.0 / beta);
        let gap = &x - &y;
        multiplier.scaled_add(beta, &gap);
        step += 1;
        // Not a number ends it too.
        if ratio >= 1.0 || !(square(&gap) > AGREE * AGREE * x.ncols() as f64) {
            return (x, y);
        }
    }
}
