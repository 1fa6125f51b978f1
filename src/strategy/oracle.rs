//! A problem as the full-gradient methods see it.

use ndarray::{Array2, Zip};

use super::geometry::{Manifold, inner};
use super::product::symmetric_product;
use crate::penalty::{Form, Penalty, Weights};
use crate::smooth::{self, Smooth};
use crate::solver::Problem;
use crate::threads::Threads;

/// Value, gradient and proximal map of a problem, evaluated on one thread.
pub(super) struct Oracle<'a, P: Penalty> {
    pub(super) problem: &'a Problem<'a, P>,
    /// Where X lives.
    pub(super) manifold: Manifold<'a>,
    /// Largest magnitude of the Hessian's eigenvalues.
    pub(super) lipschitz: f64,
    /// Largest eigenvalue of the Hessian, at least 0: the inertia that majorises f.
    pub(super) convexity: f64,
    pub(super) serial: Threads,
    /// C/`lipschitz` in single precision, if f is a plain quadratic with a stored C.
    single: Option<Vec<f32>>,
}

impl<'a, P: Penalty> Oracle<'a, P> {
    /// `bounds`: (about) the extreme eigenvalues of the Hessian; K: the value of XᵀJX.
    pub(super) fn new(
        problem: &'a Problem<'a, P>,
        k: Array2<f64>,
        (low, high): (f64, f64),
    ) -> Self {
        let linear = problem
            .smooth
            .linear()
            .map_or(0.0, |l| l.iter().map(|v| v * v).sum::<f64>().sqrt());
        let mut lipschitz = high.max(-low);
        if !(lipschitz > 0.0) {
            lipschitz = linear.max(1.0);
        }
        let single =
            plain(problem.smooth).map(|c| c.iter().map(|&v| (v / lipschitz) as f32).collect());
        Self {
            single,
            problem,
            manifold: Manifold::new(problem.signature, k),
            lipschitz,
            // Bounds have slack: a little above zero is zero (concave, as in PCA).
            convexity: if high > 0.1 * lipschitz { high } else { 0.0 },
            serial: Threads::serial(),
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.problem.smooth.rows()
    }

    pub(super) fn columns(&self) -> usize {
        self.problem.components
    }

    /// f and ∇f.
    pub(super) fn value_and_gradient(&self, x: &Array2<f64>) -> (f64, Array2<f64>) {
        match plain(self.problem.smooth) {
            Some(c) => with_value(symmetric_product(c, x.view()), x),
            None => smooth::value_and_gradient(self.problem.smooth, x.view(), &self.serial),
        }
    }

    /// f and ∇f to about 1e-6 relative where that is faster: enough while a method only looks for
    /// the region of a good point.
    pub(super) fn rough_value_and_gradient(&self, x: &Array2<f64>) -> (f64, Array2<f64>) {
        match &self.single {
            Some(c) => with_value(symmetric_product(c, x.view()) * self.lipschitz, x),
            None => self.value_and_gradient(x),
        }
    }

    /// F.
    pub(super) fn objective(&self, x: &Array2<f64>) -> f64 {
        self.value_and_gradient(x).0 + self.problem.penalty.value(x.view())
    }

    /// Whether f = ½⟨X, C X⟩, so that columns of disjoint support are independent.
    pub(super) fn is_plain_quadratic(&self) -> bool {
        self.problem.smooth.linear().is_none() && self.problem.smooth.metric().is_none()
    }

    /// The proximal map of `step · h`, entry by entry.
    pub(super) fn proximal(&self, mut x: Array2<f64>, step: f64) -> Array2<f64> {
        match self.problem.penalty.form() {
            Form::Count(lambda) => {
                let threshold = 2.0 * lambda * step;
                x.mapv_inplace(|v| if v * v <= threshold { 0.0 } else { v });
            }
            Form::Absolute(Weights::Scalar(lambda)) => {
                let threshold = lambda * step;
                x.mapv_inplace(|v| soft(v, threshold));
            }
            Form::Absolute(Weights::Entrywise(weights)) => {
                Zip::from(&mut x)
                    .and(weights)
                    .for_each(|v, &w| *v = soft(*v, w * step));
            }
            Form::NonNegative => x.mapv_inplace(|v| if v > 0.0 { v } else { 0.0 }),
            Form::Zero | Form::Other => {}
        }
        x
    }
}

/// Soft thresholding.
pub(super) fn soft(value: f64, threshold: f64) -> f64 {
    if value > threshold {
        value - threshold
    } else if value < -threshold {
        value + threshold
    } else {
        0.0
    }
}

/// C by rows, if f = ½⟨X, C X⟩ with a stored C.
fn plain(smooth: &dyn Smooth) -> Option<&[f64]> {
    match (smooth.dense(), smooth.linear(), smooth.metric()) {
        (Some(c), None, None) => c.to_slice(),
        _ => None,
    }
}

fn with_value(gradient: Array2<f64>, x: &Array2<f64>) -> (f64, Array2<f64>) {
    (0.5 * inner(&gradient, x), gradient)
}
