//! `f_i(X) = ½·scale·N‖a_iᵀX‖²`: the eigenvalue objective ½·scale·‖AX‖² sampled over data rows.

use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis};

use super::{FiniteSum, largest_eigenvalue};
use crate::error::{Error, Result};
use crate::objective::{Objective, check_data};
use crate::threads::Threads;

/// `f_i(X) = ½·scale·N‖a_iᵀX‖²`, so that f = ½·scale·‖AX‖² (scale = 2: tr(XᵀAᵀAX)).
#[derive(Debug, Clone)]
pub struct SampledGram {
    a: Array2<f64>,
    scale: f64,
    lipschitz: f64,
    mean_square: f64,
}

impl SampledGram {
    /// Creates the objective for data A (N×n).
    ///
    /// # Errors
    /// If A is empty, or the largest magnitude of A or `scale` is neither 0 nor in 1e-50 … 1e50.
    pub fn new(a: Array2<f64>, scale: f64) -> Result<Self> {
        if a.is_empty() {
            return Err(Error::invalid("A", "must not be empty"));
        }
        check_data("A", &a)?;
        check_data("scale", [&scale])?;
        let top = largest_eigenvalue(&a, None);
        // H_i = scale·N a_i a_iᵀ, so mean H_i² = scale²·N Σ‖a_i‖² a_i a_iᵀ.
        let squares = a.outer_iter().map(|row| row.dot(&row)).collect();
        let mean_square = largest_eigenvalue(&a, Some(&squares));
        let mean_square = scale.abs() * (a.nrows() as f64 * mean_square).sqrt();
        Ok(Self { mean_square, a, scale, lipschitz: scale.abs() * top })
    }
}

impl Objective for SampledGram {
    fn rows(&self) -> usize {
        self.a.ncols()
    }

    fn value_and_gradient(&self, x: ArrayView2<'_, f64>, mut gradient: ArrayViewMut2<'_, f64>, _: &Threads) -> f64 {
        let image = self.a.dot(&x);
        gradient.assign(&(self.a.t().dot(&image) * self.scale));
        0.5 * self.scale * image.iter().map(|v| v * v).sum::<f64>()
    }

    fn value(&self, x: ArrayView2<'_, f64>, _: &Threads) -> f64 {
        0.5 * self.scale * self.a.dot(&x).iter().map(|v| v * v).sum::<f64>()
    }

    fn lipschitz(&self) -> Option<f64> {
        Some(self.lipschitz)
    }
}

impl FiniteSum for SampledGram {
    fn components(&self) -> usize {
        self.a.nrows()
    }

    fn batch_gradient(&self, x: ArrayView2<'_, f64>, batch: &[usize]) -> Array2<f64> {
        let factor = self.scale * self.components() as f64 / batch.len() as f64;
        if batch.len() == self.components() {
            // All rows, in any order.
            return self.a.t().dot(&self.a.dot(&x)) * factor;
        }
        let rows = self.a.select(Axis(0), batch);
        rows.t().dot(&rows.dot(&x)) * factor
    }

    fn curvature(&self) -> f64 {
        if self.scale > 0.0 { self.lipschitz } else { 0.0 }
    }

    fn gram(&self) -> Option<(ArrayView2<'_, f64>, f64)> {
        Some((self.a.view(), self.scale))
    }

    fn mean_square_curvature(&self) -> f64 {
        self.mean_square
    }
}
