//! Finite sums f = (1/N)Σ f_i and the variance-reduced Jacobi method (VR-J-JOBCD).
//!
//! A [`FiniteSum`] gives the gradient of any mini-batch of components and a curvature L with
//! `f(X⁺) ≤ f(X) + ⟨∇f(X), ΔX⟩ + L/2‖ΔX‖²`. [`minimize_finite_sum`] moves all pairs of a random perfect
//! matching at once, from the estimate
//!
//! ```text
//! G̃ᵗ = (1/b) Σ_{i∈S} ∇f_i(Xᵗ)                                    with probability p = b′/(b + b′),
//! G̃ᵗ = G̃ᵗ⁻¹ + (1/b′) Σ_{i∈S′} [∇f_i(Xᵗ) − ∇f_i(Xᵗ⁻¹)]            otherwise
//! ```
//!
//! (PAGE; JOBCD paper, eq. 9). S and S′ are b and b′ components sampled without replacement: b = N gives the
//! exact gradient, and corrections have an exact conditional mean. With b = N, b′ = ⌈√N⌉ an iteration costs
//! about 3√N component gradients instead of N; p = 1 is J-JOBCD.
//!
//! The curvature must cover the error of the estimate: with L alone (as in the paper) the method stalls above
//! the optimum. The pair models use `L + L̄√((1 − p)/(p b′))` (Li et al., ICML 2021), with L̄ the mean-square
//! smoothness of the components. [`CurvatureRule`] has two rules for an f without Lipschitz constant.
//!
//! One matching uses n/2 of the n(n−1)/2 directions that a gradient gives. If the gradient dominates the
//! work, [`FiniteSumOptions::matchings`] solves more matchings on the same model, one after the other; n − 1
//! matchings visit every pair once.

mod eigenvalue;
mod logistic;
mod options;
mod page;
mod rule;
mod solve;

use ndarray::{Array1, Array2, ArrayView2, Axis};

use crate::internal::{LANCZOS_STEPS, lanczos_bounds};
use crate::objective::Objective;

pub use eigenvalue::SampledGram;
pub use logistic::Logistic;
pub use options::{CONVERGED_PASSES, CurvatureRule, FiniteSumOptions, FiniteSumSolution};
pub use page::Page;
pub use solve::minimize_finite_sum;

/// f = (1/N)Σ f_i of an n×r matrix.
pub trait FiniteSum: Objective {
    /// N.
    fn components(&self) -> usize;

    /// Returns the mean of ∇f_i(X) over the components `batch`.
    fn batch_gradient(&self, x: ArrayView2<'_, f64>, batch: &[usize]) -> Array2<f64>;

    /// Returns L, an upper bound of the eigenvalues of the Hessian everywhere: at most the
    /// [Lipschitz constant](Objective::lipschitz) of ∇f, which a mixed signature needs, where the model of a concave f has a
    /// minimum only if the curvature is positive. Infinite if there is no bound, which rules out [`CurvatureRule::Bound`].
    fn curvature(&self) -> f64 {
        self.lipschitz().unwrap_or(f64::INFINITY)
    }

    /// Returns A and the scale if f is ½·scale·‖AX‖².
    fn gram(&self) -> Option<(ArrayView2<'_, f64>, f64)> {
        None
    }

    /// Returns L̄ with `(1/N)Σ‖∇f_i(X) − ∇f_i(Y)‖² ≤ L̄²‖X − Y‖²`, which bounds the variance of a correction.
    fn mean_square_curvature(&self) -> f64 {
        f64::INFINITY
    }
}

/// Returns an upper bound of the eigenvalues of AᵀWA, W = diag(`weights`) ⪰ 0; NaN if products overflow.
fn largest_eigenvalue(a: &Array2<f64>, weights: Option<&Array1<f64>>) -> f64 {
    let bounds = lanczos_bounds(a.ncols(), LANCZOS_STEPS, |v| {
        let mut image = a.dot(&v);
        if let Some(weights) = weights {
            image *= &weights.view().insert_axis(Axis(1));
        }
        Some(a.t().dot(&image))
    });
    let top = bounds.map_or(f64::NAN, |(_, top)| top);
    // Unlike max, this keeps a NaN from overflow.
    if top < 0.0 { 0.0 } else { top }
}
