//! A problem as the full-gradient methods see it.
//!
//! On {XᵀX = I} C − cI instead of C changes f by a constant. The methods see f with the c that is the
//! largest eigenvalue of C: concave (for D ⪰ 0), the same for every multiple of the identity that
//! was added to C, and f itself for PCA with fewer samples than features. So no threshold that is
//! relative to |f| depends on such a multiple.

use std::sync::Arc;

use ndarray::Array2;

use super::product::symmetric_product;
use crate::budget::{Pace, Task};
use crate::linalg::inner;
use crate::manifold::{Manifold, polar};
use crate::objective::{self, QuadraticForm};
use crate::penalty::Penalty;
use crate::problem::Problem;
use crate::threads::Threads;

/// What a multiply-add costs in single precision, with a sparse matrix or one of tall factors, and
/// in passes over n×r matrices, relative to one of the product with a stored C.
const SINGLE: f64 = 0.5;
const SCATTERED: f64 = 4.0;
const PASS: f64 = 8.0;

/// Passes over n×r matrices in a step of a full-gradient method, and the cost of an r×r
/// decomposition in units of r³.
const STEP_PASSES: f64 = 12.0;
const DECOMPOSITION: f64 = 60.0;

/// Value, gradient and proximal map of a problem, evaluated on one thread for one task.
pub(super) struct Oracle<'a, P: Penalty> {
    pub(super) problem: &'a Problem<'a, P>,
    /// f.
    pub(super) form: &'a dyn QuadraticForm,
    /// Where X lives.
    pub(super) manifold: Manifold<'a>,
    pub(super) task: &'a Task<'a>,
    /// Largest magnitude of the Hessian's eigenvalues.
    pub(super) lipschitz: f64,
    /// Largest eigenvalue of the Hessian, at least 0: the inertia that majorises f.
    pub(super) convexity: f64,
    pub(super) serial: Threads,
    /// c, by which C is shifted.
    shift: f64,
    /// What that takes from f: ½c⟨K, D⟩.
    constant: f64,
    /// The same for the mean of the diagonal: see [`Problem::constant`].
    mean: f64,
    /// (C − cI)/`lipschitz` in single precision, if f is a plain quadratic with a stored C.
    single: Option<Arc<Vec<f32>>>,
}

impl<'a, P: Penalty> Oracle<'a, P> {
    /// `spectrum`: (about) the extreme eigenvalues of C; K: the value of XᵀJX.
    pub(super) fn new(
        (problem, form): (&'a Problem<'a, P>, &'a dyn QuadraticForm),
        k: Array2<f64>,
        (low, high): (f64, f64),
        task: &'a Task<'a>,
    ) -> Self {
        let linear = form
            .linear()
            .map_or(0.0, |l| l.iter().map(|v| v * v).sum::<f64>().sqrt());
        let shift = if problem.signature.is_definite() {
            high
        } else {
            0.0
        };
        let (low, high) = objective::metric_bounds(low - shift, high - shift, form.metric());
        let mut lipschitz = high.max(-low);
        if !(lipschitz > 0.0) {
            lipschitz = if linear > 0.0 { linear } else { 1.0 };
        }
        let weight = match form.metric() {
            None => k.diag().sum(),
            Some(metric) => (&metric * &k).sum(),
        };
        let n = form.order();
        let single = plain(form).map(|c| {
            let mut single: Vec<f32> = c.iter().map(|&v| (v / lipschitz) as f32).collect();
            for (i, v) in single.iter_mut().step_by(n + 1).enumerate() {
                *v = ((c[i * (n + 1)] - shift) / lipschitz) as f32;
            }
            Arc::new(single)
        });
        Self {
            single,
            mean: problem.constant(k.view()),
            problem,
            form,
            manifold: Manifold::new(problem.signature, k, Some(task)),
            task,
            lipschitz,
            // Bounds have slack: a little above zero is zero (concave, as in PCA).
            convexity: if high > 0.1 * lipschitz { high } else { 0.0 },
            serial: Threads::serial(),
            shift,
            constant: 0.5 * shift * weight,
        }
    }

    /// The same for another task.
    pub(super) fn during<'t>(&self, task: &'t Task<'t>) -> Oracle<'t, P>
    where
        'a: 't,
    {
        Oracle {
            problem: self.problem,
            form: self.form,
            manifold: Manifold::new(self.manifold.signature, self.manifold.k.clone(), Some(task)),
            task,
            lipschitz: self.lipschitz,
            convexity: self.convexity,
            serial: Threads::serial(),
            shift: self.shift,
            constant: self.constant,
            mean: self.mean,
            single: self.single.clone(),
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.form.order()
    }

    pub(super) fn columns(&self) -> usize {
        self.problem.components
    }

    /// A pace of this oracle's task.
    pub(super) fn pace(&self, until: Option<f64>, steps: usize) -> Pace<'a> {
        self.task.pace(until, steps)
    }

    /// What a product C X costs.
    pub(super) fn product_work(&self) -> f64 {
        let each = self.form.product_work() * self.columns() as f64;
        match self.form.dense() {
            Some(_) => each,
            None => SCATTERED * each,
        }
    }

    /// What the rest of a step costs: passes over X, and a decomposition.
    fn step_work(&self) -> f64 {
        let (n, r) = (self.rows() as f64, self.columns() as f64);
        n * r * (STEP_PASSES + r) * PASS + DECOMPOSITION * r * r * r
    }

    /// The polar factor.
    pub(super) fn polar(&self, x: &Array2<f64>) -> Array2<f64> {
        if self.task.expired() {
            return x.clone();
        }
        self.task.spend(self.step_work());
        polar(x)
    }

    /// f less its constant, and ∇f; not a number if the time ran out on the way.
    pub(super) fn value_and_gradient(&self, x: &Array2<f64>) -> (f64, Array2<f64>) {
        self.task.spend(self.product_work() + self.step_work());
        let go_on = || !self.task.expired();
        let form = self.form;
        let image = match plain(form) {
            Some(c) => symmetric_product(c, x.view(), |v| v, &go_on),
            None => form.apply_while(x.view(), &self.serial, &go_on),
        };
        let Some(mut gradient) = image.filter(|_| go_on()) else {
            return (f64::NAN, Array2::zeros(x.dim()));
        };
        gradient.scaled_add(-self.shift, x);
        if let Some(metric) = form.metric() {
            gradient = gradient.dot(&metric);
        }
        let value = 0.5 * inner(&gradient, x);
        match form.linear() {
            None => (value, gradient),
            Some(linear) => {
                gradient += &linear;
                let slope: f64 = linear.iter().zip(x).map(|(l, x)| l * x).sum();
                (value + slope, gradient)
            }
        }
    }

    /// f and ∇f to about 1e-6 relative where that is faster: enough while a method only looks for
    /// the region of a good point.
    pub(super) fn rough_value_and_gradient(&self, x: &Array2<f64>) -> (f64, Array2<f64>) {
        let Some(c) = &self.single else {
            return self.value_and_gradient(x);
        };
        self.task
            .spend(SINGLE * self.product_work() + self.step_work());
        let go_on = || !self.task.expired();
        let image = symmetric_product(c, x.view(), |v| v as f32, &go_on);
        let Some(mut gradient) = image.filter(|_| go_on()) else {
            return (f64::NAN, Array2::zeros(x.dim()));
        };
        gradient *= self.lipschitz;
        (0.5 * inner(&gradient, x), gradient)
    }

    /// F, with the constant.
    pub(super) fn objective(&self, x: &Array2<f64>) -> f64 {
        let price = self.problem.penalty.value(x.view());
        self.full(self.value_and_gradient(x).0 + price)
    }

    /// F from F less its constant.
    pub(super) fn full(&self, value: f64) -> f64 {
        value + self.constant
    }

    /// The [magnitude](Problem::magnitude) of F for values of f and h.
    pub(super) fn magnitude(&self, smooth: f64, price: f64) -> f64 {
        self.problem.magnitude(smooth, price, self.mean)
    }

    /// What pair sweeps may still do, where no clock limits them.
    pub(super) fn work_left(&self) -> Option<u64> {
        match self.task.clock.limit() {
            Some(_) => None,
            None => Some(self.task.left() as u64),
        }
    }

    /// Diagonal of C − cI.
    pub(super) fn diagonal(&self) -> Vec<f64> {
        let diagonal = self.form.diagonal();
        diagonal.into_iter().map(|v| v - self.shift).collect()
    }

    /// c, by which C is shifted.
    pub(super) fn shift(&self) -> f64 {
        self.shift
    }

    /// The proximal map of `step · h`, entry by entry.
    pub(super) fn proximal(&self, mut x: Array2<f64>, step: f64) -> Array2<f64> {
        for (i, mut row) in x.outer_iter_mut().enumerate() {
            for (k, v) in row.iter_mut().enumerate() {
                *v = self.problem.penalty.proximal(i, k, *v, step);
            }
        }
        x
    }
}

/// C by rows, if f = ½⟨X, C X⟩ with a stored C.
fn plain(form: &dyn QuadraticForm) -> Option<&[f64]> {
    form.dense()
        .filter(|_| form.is_trace_form())
        .and_then(|c| c.to_slice())
}
