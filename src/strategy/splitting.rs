//! Annealed splitting: linearised ADMM whose penalty parameter grows while it runs.
//!
//! ```text
//! X <- polar(β Y + ζ X − ∇f(X) − W)      ζ: inertia, 0 for concave f
//! Y <- prox_{h/β}(X + W/β)
//! W <- W + β (X − Y)
//! ```
//!
//! β starts where the sparse copy Y is free to change its support and ends where X and Y agree.

use ndarray::Array2;

use super::clock::Pace;
use super::geometry::polar;
use super::oracle::Oracle;
use crate::penalty::Penalty;

/// First and last β in units of the Lipschitz constant.
pub(super) const BETA: (f64, f64) = (0.05, 3.0);

/// Runs the splitting; returns (X, Y), X orthonormal, Y in the penalty's pattern.
pub(super) fn anneal<P: Penalty>(
    oracle: &Oracle<'_, P>,
    x: Array2<f64>,
    beta: (f64, f64),
    pace: Pace<'_>,
) -> (Array2<f64>, Array2<f64>) {
    let lipschitz = oracle.lipschitz;
    let inertia = oracle.convexity;
    let (first, last) = (beta.0 * lipschitz, beta.1 * lipschitz);
    let mut x = x;
    let mut y = x.clone();
    let mut multiplier = Array2::<f64>::zeros(x.dim());
    let mut step = 0;
    loop {
        let ratio = pace.progress(step);
        let beta = first * (last / first).powf(ratio);
        let (_, mut target) = oracle.value_and_gradient(&x);
        target += &multiplier;
        target.mapv_inplace(|v| -v);
        target.scaled_add(beta, &y);
        if inertia > 0.0 {
            target.scaled_add(inertia, &x);
        }
        x = polar(&target);
        let mut shifted = x.clone();
        shifted.scaled_add(1.0 / beta, &multiplier);
        y = oracle.proximal(shifted, 1.0 / beta);
        multiplier.scaled_add(beta, &x);
        multiplier.scaled_add(-beta, &y);
        step += 1;
        if ratio >= 1.0 {
            return (x, y);
        }
    }
}
