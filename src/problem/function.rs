//! Checks of a caller's f at a start: its size, and whether its gradient is that of its values.

use ndarray::{Array2, ArrayView2};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Problem;
use crate::error::{Error, Result};
use crate::linalg::{inner, square};
use crate::manifold::{Manifold, normals, start_constraint};
use crate::numerics;
use crate::objective::{LARGEST, SMALLEST, largest};
use crate::rows::slice_of;
use crate::threads::Threads;

/// A solve may end at once where the tangent part of ∇f is at most this part of it.
const CRITICAL: f64 = 1e-6;

/// A gradient agrees with the values where `f(Y) − f(X)` and `½⟨∇f(X) + ∇f(Y), Y − X⟩` differ by at most this part of
/// the larger of them. They differ by O(‖Y − X‖³) and by the noise of the values, so that a right gradient agrees for
/// some angle if the noise is a few per cent of the changes of f.
const AGREES: f64 = 0.05;

/// Directions along which a gradient is checked.
const DIRECTIONS: u64 = 6;

/// Angles by which rows turn: from those that noise hides least to those that curvature disturbs least.
const ANGLES: [f64; 6] = [1e-2, 1e-1, 3e-1, 1e-3, 1e-5, 1e-7];

impl Problem<'_> {
    /// Checks an f that is not quadratic by its value and gradient at a start.
    ///
    /// Where the gradient has no tangent part, so that a solve would end at once, differences of values have to agree.
    ///
    /// # Errors
    /// If value or gradient are not finite or of a size whose products overflow or vanish, or contradict each other.
    pub(crate) fn check_function(
        &self,
        x: &Array2<f64>,
        (value, gradient): (f64, &Array2<f64>),
        threads: &Threads,
    ) -> Result<()> {
        if self.smooth.quadratic().is_some() || self.smooth.has_failed() {
            return Ok(());
        }
        let size = largest(gradient.iter().chain([&value]));
        if size.is_nan() {
            let message = "must have a finite value and gradient at the start";
            return Err(Error::invalid("smooth", message));
        }
        if size != 0.0 && !(SMALLEST..=LARGEST).contains(&size) {
            return Err(Error::invalid(
                "smooth",
                format!(
                    "must have a value and gradient of which the largest magnitude at the start is zero or between \
                     {SMALLEST:e} and {LARGEST:e}, where products neither overflow nor vanish; it is {size:e}: \
                     multiply f by a number"
                ),
            ));
        }
        let manifold = Manifold::new(self.signature, start_constraint(x.view(), self.signature), None);
        let multiplier = manifold.multiplier(x, gradient);
        let tangent = gradient - &normals(x, self.signature).dot(&multiplier);
        if square(&tangent).sqrt() > CRITICAL * square(gradient).sqrt() {
            return Ok(());
        }
        match self.has_gradient_at(x, (value, gradient), threads) {
            true => Ok(()),
            false => Err(Error::invalid(
                "smooth",
                "must return the gradient of its value: the gradient at the start has no part along the constraint, but \
                 the value changes near the start",
            )),
        }
    }

    /// Returns whether the gradient of f at X is that of its values, as far as the noise of the values and the curvature of
    /// f allow to tell: along each of [`DIRECTIONS`] random directions a difference of values agrees for one step length.
    pub(crate) fn has_gradient_at(
        &self,
        x: &Array2<f64>,
        (value, gradient): (f64, &Array2<f64>),
        threads: &Threads,
    ) -> bool {
        let agrees = |seed: u64, angle: f64| {
            let Some(y) = self.neighbour(x.view(), angle, seed) else {
                return true;
            };
            let mut there = Array2::zeros(y.dim());
            let moved = (self.smooth).value_and_gradient(y.view(), there.view_mut(), threads);
            let step = &y - x;
            let (change, said) = (moved - value, 0.5 * (inner(gradient, &step) + inner(&there, &step)));
            let rounding = numerics::VALUE * self.smooth.precision() * value.abs().max(moved.abs());
            let off = (change - said).abs();
            self.smooth.has_failed() || off <= rounding || off <= AGREES * change.abs().max(said.abs())
        };
        (0..DIRECTIONS).all(|seed| ANGLES.iter().any(|&angle| agrees(seed, angle)))
    }

    /// A point near X that keeps XᵀJX and the domain of h: rows move in pairs by about `angle`, in the direction of `seed`;
    /// None if none can.
    fn neighbour(&self, x: ArrayView2<'_, f64>, angle: f64, seed: u64) -> Option<Array2<f64>> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut order: Vec<usize> = (0..x.nrows()).collect();
        order.shuffle(&mut rng);
        let mut y = x.to_owned();
        for pair in order.chunks_exact(2) {
            let (i, j) = (pair[0], pair[1]);
            let drawn: f64 = StandardNormal.sample(&mut rng);
            for t in [angle * drawn, -angle * drawn] {
                let (c, s, back) = match self.signature.sign(i) == self.signature.sign(j) {
                    true => (t.cos(), t.sin(), -t.sin()),
                    false => (t.cosh(), t.sinh(), t.sinh()),
                };
                let [first, second] = [(c, s), (back, c)].map(|(a, b)| &x.row(i) * a + &x.row(j) * b);
                let allowed = |row, new| self.penalty.row_value(row, &slice_of(new)).is_finite();
                if allowed(i, first.view()) && allowed(j, second.view()) {
                    y.row_mut(i).assign(&first);
                    y.row_mut(j).assign(&second);
                    break;
                }
            }
        }
        (y != x).then_some(y)
    }
}
