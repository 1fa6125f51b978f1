//! Tracker of an objective with value and gradient only: evaluates both anew after every move.

use ndarray::{Array2, ArrayView2};

use super::{BlockModel, Moved, Objective, Tracker};
use crate::threads::Threads;

/// Tracker that stores f(X) and ∇f(X).
pub(crate) struct Evaluated<'a> {
    smooth: &'a dyn Objective,
    x: Array2<f64>,
    value: f64,
    gradient: Array2<f64>,
}

impl<'a> Evaluated<'a> {
    pub(crate) fn new(smooth: &'a dyn Objective, x: ArrayView2<'_, f64>, threads: &Threads) -> Self {
        let mut gradient = Array2::zeros(x.dim());
        let value = smooth.value_and_gradient(x, gradient.view_mut(), threads);
        Self::of(smooth, x.to_owned(), (value, gradient))
    }

    /// Creates a tracker from a known value and gradient at `x`.
    pub(crate) fn of(smooth: &'a dyn Objective, x: Array2<f64>, (value, gradient): (f64, Array2<f64>)) -> Self {
        Self { smooth, x, value, gradient }
    }

    fn evaluate(&mut self, threads: &Threads) {
        let gradient = self.gradient.view_mut();
        self.value = self.smooth.value_and_gradient(self.x.view(), gradient, threads);
    }
}

impl Tracker for Evaluated<'_> {
    fn value(&self, _x: ArrayView2<'_, f64>) -> f64 {
        self.value
    }

    /// The curvature is the Lipschitz constant, or NaN if it is unknown.
    fn fill(&mut self, mut model: BlockModel<'_>) {
        let (rows, b) = (model.rows, model.rows.len());
        let bound = self.smooth.lipschitz().unwrap_or(f64::NAN);
        model.curvature.fill(0.0);
        for (k, &row) in rows.iter().enumerate() {
            model.curvature[k * b + k] = bound;
            self.gradient_row(row, model.gradient_row(k));
        }
    }

    fn commit(&mut self, moved: Moved<'_>, threads: &Threads) {
        for (k, step) in moved.delta().outer_iter().enumerate() {
            let mut row = self.x.row_mut(moved.row(k));
            row += &step;
        }
        self.evaluate(threads);
    }

    fn gradient_row(&self, row: usize, target: &mut [f64]) {
        let gradient = self.gradient.row(row);
        target.iter_mut().zip(gradient).for_each(|(t, &g)| *t = g);
    }

    fn gradient(&self, _threads: &Threads) -> Array2<f64> {
        self.gradient.clone()
    }

    fn refresh(&mut self, x: ArrayView2<'_, f64>, threads: &Threads) {
        self.x.assign(&x);
        self.evaluate(threads);
    }
}
