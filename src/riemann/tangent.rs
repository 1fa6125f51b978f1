//! Proximal-gradient steps on the tangent space, which move more than two rows at once.
//!
//! A point that no pair improves need not be critical if h is not smooth (`docs/theory.md`): a descent
//! direction may need three rows. The step (ManPG: Chen, Ma, So and Zhang, SIAM J. Optim. 30, 2020) minimises
//!
//! ```text
//! ⟨∇f(X), D⟩ + ‖D‖²/(2t) + h(X + D)   over tangent D,   D = prox_{th}(X − t(∇f(X) − XΛ)) − X,
//! ```
//!
//! where a semismooth Newton method finds the symmetric Λ that makes D tangent. D ≠ 0 if and only if X is not
//! critical. The retraction keeps the zeros of X + D, by Newton's method on {XᵀX = I, that pattern}. For ℓ0
//! the pattern of X is kept (its normal cone is the whole line). Every accepted point is feasible and lowers
//! F.
//!
//! With mixed signs JXΛ takes the place of XΛ (the normal space of {XᵀJX = K}). For square X and a long step
//! the system for Λ has more unknowns than X + D has nonzeros, so it is damped in proportion to its residual.
//! If no feasible point with the pattern is nearby, the retraction ignores the pattern.

use ndarray::{Array2, Axis, Zip};

use super::newton::damped_newton;
use crate::linalg::{conjugate_gradients, product, square, symmetric};
use crate::manifold::{Manifold, PatternProducts, normals, polar};
use crate::numerics;
use crate::penalty::Penalty;

/// Most semismooth Newton steps for Λ with one sign.
const NEWTON_STEPS: usize = 12;

/// Most semismooth Newton steps for Λ with mixed signs.
const MIXED_NEWTON_STEPS: usize = 30;

/// Most halvings of a Newton step.
const HALVINGS: usize = 8;

/// Residual to which the Newton system is solved with mixed signs.
const INEXACT: f64 = 1e-2;

/// Least damping of the Newton system.
const LEAST_DAMPING: f64 = 1e-12;

/// Damping of the Newton system for mixed signs, relative to min(‖error‖/‖D‖, 1).
const DAMPING: f64 = 0.01;

/// Returns the largest work of a step, unless its line search is long: see [`Tangent::step`].
pub(crate) fn tangent_work(n: usize, r: usize) -> f64 {
    let newton = (NEWTON_STEPS * (r + 10)) as f64;
    2.0 * newton * (2 * n * r * (r + 2)) as f64
}

/// The tangent-proximal steps of a penalty on a manifold.
pub(crate) struct Tangent<'a> {
    pub(crate) penalty: &'a Penalty,
    pub(crate) manifold: &'a Manifold<'a>,
    /// Largest relative residual of the Newton systems for Λ with one sign. If ‖XᵀD + DᵀX‖/(2‖D‖) is smaller,
    /// that is the residual, so that convergence is superlinear (Eisenstat and Walker, SIAM J. Sci. Comput.
    /// 17, 1996).
    pub(crate) residual: f64,
    /// True if the polar factor is the retraction where no feasible point with the pattern is nearby; only
    /// for penalties that are finite there.
    pub(crate) dense: bool,
    /// Polled within a step; an interrupted step is not a minimiser.
    pub(crate) is_over: &'a dyn Fn() -> bool,
}

impl Tangent<'_> {
    /// Returns the step D and updates the multiplier Λ, which also is the start of the next call.
    pub(crate) fn step(
        &self,
        x: &Array2<f64>,
        gradient: &Array2<f64>,
        t: f64,
        lambda: &mut Array2<f64>,
    ) -> Array2<f64> {
        let r = x.ncols();
        let mixed = !self.manifold.signature.is_definite();
        let normals = normals(x, self.manifold.signature);
        let (newton_steps, gradients) = if mixed { (MIXED_NEWTON_STEPS, 4 * r + 20) } else { (NEWTON_STEPS, r + 10) };
        let evaluate = |lambda: &Array2<f64>| {
            // X − t(G − JXΛ)
            let mut target = product(normals.view(), lambda.view());
            Zip::from(&mut target).and(gradient).and(x).for_each(|v, &g, &x| *v = x + t * (*v - g));
            let penalty = self.penalty;
            let mut weight = Array2::zeros(x.dim());
            Zip::indexed(&mut target)
                .and(&mut weight)
                .and(x)
                .for_each(|(i, k), v, w, &x| (*v, *w) = penalty.proximal_near((i, k), x, *v, t));
            target -= x;
            let mut error = symmetric(&product(normals.t(), target.view()));
            error.mapv_inplace(|v| -v);
            let size = square(&error);
            ((target, error, weight), size)
        };
        type Evaluation = (Array2<f64>, Array2<f64>, Array2<f64>);
        let direction = |(step, error, weight): &Evaluation, size: f64| {
            if self.manifold.refuses(x, 2) || (self.is_over)() {
                return None;
            }
            let tangent = if mixed { 1e-10 } else { 1e-18 };
            if size <= tangent * square(step) || size <= 1e-30 {
                return None;
            }
            let damping = if mixed { DAMPING * (size / square(step)).sqrt().min(1.0) } else { 0.0 };
            // Rows that the proximal map sets to zero do not contribute.
            let moving = |i: &usize| weight.row(*i).iter().any(|&w| w != 0.0);
            let rows: Vec<usize> = (0..weight.nrows()).filter(moving).collect();
            let few = (2 * rows.len() < weight.nrows())
                .then(|| (normals.select(Axis(0), &rows), weight.select(Axis(0), &rows)));
            let (normals, weights) = match &few {
                Some((normals, weights)) => (normals, weights),
                None => (&*normals, weight),
            };
            let products = PatternProducts::new(normals, weights);
            // For tΛ, which has no unit.
            let operator = |d: &Array2<f64>| {
                if self.manifold.late(products.work()) {
                    return Array2::zeros(d.dim());
                }
                let mut image = symmetric(&products.apply(d));
                image.scaled_add(damping.max(LEAST_DAMPING), d);
                image
            };
            let tolerance = match mixed {
                true => INEXACT,
                false => self.residual.min((size / square(step)).sqrt()),
            };
            Some(conjugate_gradients(operator, error, gradients, tolerance) / t)
        };
        let limits = (newton_steps, HALVINGS);
        let is_over = || self.manifold.refuses(x, 2);
        let ((step, ..), _) = damped_newton(lambda, limits, evaluate, direction, is_over);
        step
    }

    /// Returns the feasible point with the pattern of `x + length·step`, if there is one nearby.
    pub(crate) fn retract(&self, x: &Array2<f64>, step: &Array2<f64>, length: f64) -> Option<Array2<f64>> {
        let mut moved = x.clone();
        moved.scaled_add(length, step);
        let nonnegative = self.penalty.nonnegative();
        for _ in 0..3 {
            if nonnegative {
                moved.mapv_inplace(|v| if v > numerics::ROUNDING { v } else { 0.0 });
            }
            moved = match self.manifold.restore(&moved) {
                Some(restored) => restored,
                None if self.dense => polar(&moved),
                None => self.manifold.restore_dense(&moved)?,
            };
            if !nonnegative || moved.iter().all(|&v| v >= 0.0) {
                return Some(moved);
            }
        }
        None
    }
}
