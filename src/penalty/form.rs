//! What a form of a penalty provides.

use ndarray::{ArrayView2, ArrayViewMut2};
use pulp::{NullaryFnOnce, Simd};

use crate::pair::{Best, BestBoost, CirclePair, HyperbolaPair, Piece, Scratch};

/// A form of a [`Penalty`](super::Penalty): pair solvers, and values for loops over entries or pairs.
pub(crate) trait Form {
    /// Returns the global minimum of the smooth part plus h over rotations and reflections, relative to the
    /// identity. Writes the exactly known entries of the new rows to `scratch`.
    fn circle<S: Simd>(&self, simd: S, pair: &CirclePair<'_>, scratch: &mut Scratch) -> Best;

    /// Returns the global minimum over the four components of the hyperbola, for rows of opposite sign, or a
    /// direction along which the pair is unbounded below.
    fn hyperbola(&self, pair: &HyperbolaPair<'_>, scratch: &mut Scratch) -> BestBoost;

    /// φ_ij(`value`).
    fn entry(&self, row: usize, column: usize, value: f64) -> f64;

    /// (a, b, c) of the piece just right of `value`.
    fn piece(&self, row: usize, column: usize, value: f64) -> Piece;

    /// Returns the breakpoints, ascending.
    fn breakpoints(&self) -> &[f64];

    /// Returns the proximal map.
    fn proximal(&self, row: usize, column: usize, value: f64, step: f64) -> f64;

    /// Returns the proximal map near the entry `x`, and its derivative.
    fn proximal_near(&self, at: (usize, usize), x: f64, value: f64, step: f64) -> (f64, f64);

    /// Adds the gradient of h smoothed over the width `epsilon` to `gradient`, and returns the value.
    fn smoothed(&self, x: ArrayView2<'_, f64>, epsilon: f64, gradient: ArrayViewMut2<'_, f64>) -> f64;

    /// `(Δ, magnitude)`: the change of h when a row changes, and the sum of the magnitudes of its terms.
    #[inline(always)]
    fn change(&self, row: usize, old: &[f64], new: &[f64]) -> (f64, f64) {
        let (mut delta, mut magnitude) = (0.0, 0.0);
        for (column, (&o, &n)) in old.iter().zip(new).enumerate() {
            let d = self.entry(row, column, n) - self.entry(row, column, o);
            delta += d;
            magnitude += d.abs();
        }
        (delta, magnitude)
    }

    /// h(X).
    fn value(&self, x: ArrayView2<'_, f64>) -> f64 {
        let row_value = |(i, row): (usize, ndarray::ArrayView1<'_, f64>)| {
            let entries = row.iter().enumerate();
            entries.map(|(k, &v)| self.entry(i, k, v)).sum::<f64>()
        };
        x.outer_iter().enumerate().map(row_value).sum()
    }

    /// Makes a row that is feasible up to rounding exactly feasible.
    #[inline(always)]
    fn tidy(&self, _row: &mut [f64]) {}
}

/// Returns [`Form::circle`] by one function for each form and kind of vector instructions, which its callers
/// share: inlined into each of them, the solvers would be a third of the machine code.
#[inline(always)]
pub(super) fn solve_form<S: Simd, F: Form>(simd: S, form: &F, pair: &CirclePair<'_>, scratch: &mut Scratch) -> Best {
    simd.vectorize(Circle { simd, form, pair, scratch })
}

/// A pair problem on the circle, with the vector instructions that solve it.
struct Circle<'a, S, F> {
    simd: S,
    form: &'a F,
    pair: &'a CirclePair<'a>,
    scratch: &'a mut Scratch,
}

impl<S: Simd, F: Form> NullaryFnOnce for Circle<'_, S, F> {
    type Output = Best;

    #[inline(always)]
    fn call(self) -> Best {
        self.form.circle(self.simd, self.pair, self.scratch)
    }
}
