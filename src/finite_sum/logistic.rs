//! `f_i(X) = log(1 + exp(−y_i a_iᵀX b_i))`: a bilinear logistic loss, not quadratic.

use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, Axis};

use super::{FiniteSum, largest_eigenvalue};
use crate::error::{Error, Result};
use crate::objective::{Objective, check_data};
use crate::threads::Threads;

/// `f_i(X) = log(1 + exp(−y_i a_iᵀX b_i))` with labels y_i = ±1.
///
/// The Hessian is `(1/N)Σ σ(1 − σ)(b_i ⊗ a_i)(b_i ⊗ a_i)ᵀ ⪯ ¼(1/N)Σ‖b_i‖² a_i a_iᵀ ⊗ I`. The curvature is the
/// largest eigenvalue of this bound.
#[derive(Debug, Clone)]
pub struct Logistic {
    a: Array2<f64>,
    b: Array2<f64>,
    labels: Array1<f64>,
    curvature: f64,
    mean_square: f64,
}

impl Logistic {
    /// Creates the objective for A (N×n), B (N×r) and labels (N) of ±1.
    ///
    /// # Errors
    /// If the shapes do not fit, the largest magnitude of A or B is neither 0 nor in 1e-50 … 1e50, the
    /// curvature overflows, or a label is not ±1.
    pub fn new(a: Array2<f64>, b: Array2<f64>, labels: Array1<f64>) -> Result<Self> {
        let samples = a.nrows();
        if a.is_empty() {
            return Err(Error::invalid("A", "must not be empty"));
        }
        if b.nrows() != samples || b.is_empty() {
            return Err(Error::invalid("B", format!("must have {samples} rows, got shape {:?}", b.dim())));
        }
        check_data("A", &a)?;
        check_data("B", &b)?;
        if labels.len() != samples || labels.iter().any(|v| v.abs() != 1.0) {
            return Err(Error::invalid("labels", format!("must hold {samples} values of +1 and -1")));
        }
        let weights: Array1<f64> = b.outer_iter().map(|row| row.dot(&row)).collect();
        let top = largest_eigenvalue(&a, Some(&weights));
        // ‖∇f_i(X) − ∇f_i(Y)‖² ≤ (1/16)‖a_i‖²‖b_i‖⁴‖a_iᵀ(X − Y)‖².
        let squares: Array1<f64> = a.outer_iter().zip(&weights).map(|(row, w)| row.dot(&row) * w * w).collect();
        let mean_square = 0.25 * (largest_eigenvalue(&a, Some(&squares)) / samples as f64).sqrt();
        if !(top.is_finite() && mean_square.is_finite()) {
            return Err(Error::invalid("A", "must be smaller: its products with B overflow"));
        }
        Ok(Self { curvature: 0.25 * top / samples as f64, mean_square, a, b, labels })
    }

    /// Returns y_i a_iᵀX b_i for the rows of `a` and `b`.
    fn margins(a: &Array2<f64>, b: &Array2<f64>, labels: &Array1<f64>, x: ArrayView2<'_, f64>) -> Array1<f64> {
        (a.dot(&x) * b).sum_axis(Axis(1)) * labels
    }

    fn gradient(a: &Array2<f64>, b: &Array2<f64>, labels: &Array1<f64>, x: ArrayView2<'_, f64>) -> Array2<f64> {
        let margins = Self::margins(a, b, labels, x);
        let mut weighted = b.clone();
        for ((mut row, &t), &y) in weighted.outer_iter_mut().zip(&margins).zip(labels) {
            // −y σ(−t), without overflow.
            let sigma = if t >= 0.0 {
                let e = (-t).exp();
                e / (1.0 + e)
            } else {
                1.0 / (1.0 + t.exp())
            };
            row *= -y * sigma;
        }
        a.t().dot(&weighted) / a.nrows() as f64
    }
}

impl Objective for Logistic {
    fn rows(&self) -> usize {
        self.a.ncols()
    }

    fn columns(&self) -> Option<usize> {
        Some(self.b.ncols())
    }

    fn value_and_gradient(
        &self,
        x: ArrayView2<'_, f64>,
        mut gradient: ArrayViewMut2<'_, f64>,
        threads: &Threads,
    ) -> f64 {
        gradient.assign(&Self::gradient(&self.a, &self.b, &self.labels, x));
        self.value(x, threads)
    }

    fn value(&self, x: ArrayView2<'_, f64>, _: &Threads) -> f64 {
        let margins = Self::margins(&self.a, &self.b, &self.labels, x);
        // log(1 + e^{−t}) without overflow.
        let loss = |t: f64| (-t).max(0.0) + (-t.abs()).exp().ln_1p();
        margins.iter().map(|&t| loss(t)).sum::<f64>() / self.a.nrows() as f64
    }

    fn lipschitz(&self) -> Option<f64> {
        Some(self.curvature)
    }
}

impl FiniteSum for Logistic {
    fn components(&self) -> usize {
        self.a.nrows()
    }

    fn batch_gradient(&self, x: ArrayView2<'_, f64>, batch: &[usize]) -> Array2<f64> {
        if batch.len() == self.components() {
            return Self::gradient(&self.a, &self.b, &self.labels, x);
        }
        Self::gradient(
            &self.a.select(Axis(0), batch),
            &self.b.select(Axis(0), batch),
            &self.labels.select(Axis(0), batch),
            x,
        )
    }

    fn mean_square_curvature(&self) -> f64 {
        self.mean_square
    }
}
