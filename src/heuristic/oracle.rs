//! A problem as the full-gradient methods use it.
//!
//! On {XᵀX = I}, replacing C by C − cI changes f by a constant. The oracle chooses c as the largest
//! eigenvalue of C. The shifted f is concave (for D ⪰ 0), the same for every multiple of the identity added
//! to C, and equal to f for PCA with fewer samples than features. Thresholds relative to |f| therefore do not
//! depend on such a multiple.

use std::sync::Arc;

use ndarray::Array2;

use super::product::{factored_product, symmetric_product};
use crate::limits::{Clock, MethodLimit, TaskWork};
use crate::linalg::inner;
use crate::manifold::{Manifold, polar};
use crate::objective::{self, QuadraticForm, value_while};
use crate::problem::Problem;
use crate::solver::{Control, Monitor, Options, Status};
use crate::threads::Threads;

/// Cost of a product in single precision, relative to double precision.
const SINGLE: f64 = 0.5;

/// Most entries that are stored in single precision too.
const SINGLES: usize = 4096 * 4096;

/// (C − cI)/L in single precision.
#[derive(Clone)]
enum Single {
    /// C − cI over L, by rows.
    Stored(Vec<f32>),
    /// Aᵀ/√(|s|L) by rows for C = s·AᵀA, the sign of s, and c/L.
    Factor(Vec<f32>, f64, f64),
}

/// Value, gradient and proximal map of a problem.
pub(crate) struct Oracle<'a> {
    pub(crate) problem: &'a Problem<'a>,
    /// f, if it is quadratic.
    pub(crate) form: Option<&'a dyn QuadraticForm>,
    /// The constraint manifold of X.
    pub(crate) manifold: Manifold<'a>,
    pub(crate) work: &'a TaskWork<'a>,
    /// Largest magnitude of the Hessian's eigenvalues.
    pub(crate) lipschitz: f64,
    /// Largest eigenvalue of the Hessian, at least 0: added as inertia, it majorises f.
    pub(crate) convexity: f64,
    pub(crate) serial: Threads,
    /// Threads for products.
    threads: Threads,
    /// The shift c of C.
    shift: f64,
    /// The change of f by the shift: ½c⟨K, D⟩.
    constant: f64,
    /// Constant part of f by the mean of the diagonal of C, see [`Problem::constant`].
    mean: f64,
    /// Single-precision copy, if f is ½ tr(XᵀCX) with a stored C, or with a dense A of at most [`SINGLES`]
    /// entries; L = `lipschitz`.
    single: Option<Arc<Single>>,
}

impl<'a> Oracle<'a> {
    /// `spectrum`: approximate extreme eigenvalues of C; `k`: the constraint matrix K = XᵀJX.
    pub(crate) fn new(
        (problem, form): (&'a Problem<'a>, &'a dyn QuadraticForm),
        k: Array2<f64>,
        (low, high): (f64, f64),
        work: &'a TaskWork<'a>,
    ) -> Self {
        let linear = form.linear().map_or(0.0, |l| l.iter().map(|v| v * v).sum::<f64>().sqrt());
        let shift = if problem.signature.is_definite() { high } else { 0.0 };
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
        let single = plain(form).and_then(|plain| {
            Some(Arc::new(match plain {
                Plain::Stored(c) => {
                    let mut single: Vec<f32> = c.iter().map(|&v| (v / lipschitz) as f32).collect();
                    for (i, v) in single.iter_mut().step_by(n + 1).enumerate() {
                        *v = ((c[i * (n + 1)] - shift) / lipschitz) as f32;
                    }
                    Single::Stored(single)
                }
                Plain::Factor(scale, at) if at.len() <= SINGLES => {
                    let size = (scale.abs() / lipschitz).sqrt();
                    let single = at.iter().map(|&v| (v * size) as f32).collect();
                    Single::Factor(single, scale.signum(), shift / lipschitz)
                }
                Plain::Factor(..) => return None,
            }))
        });
        Self {
            single,
            mean: problem.constant(k.view()),
            problem,
            form: Some(form),
            manifold: Manifold::new(problem.signature, k, Some(work)),
            work,
            lipschitz,
            // The bounds have slack: a value slightly above zero counts as zero (concave, as in PCA).
            convexity: if high > 0.1 * lipschitz { high } else { 0.0 },
            serial: Threads::serial(),
            threads: Threads::serial(),
            shift,
            constant: 0.5 * shift * weight,
        }
    }

    /// Oracle of a nonquadratic f; `lipschitz`: approximate Lipschitz constant of ∇f.
    pub(crate) fn evaluated(problem: &'a Problem<'a>, k: Array2<f64>, lipschitz: f64, work: &'a TaskWork<'a>) -> Self {
        Self {
            problem,
            form: None,
            manifold: Manifold::new(problem.signature, k, Some(work)),
            work,
            lipschitz,
            convexity: lipschitz,
            serial: Threads::serial(),
            threads: Threads::serial(),
            shift: 0.0,
            constant: 0.0,
            mean: 0.0,
            single: None,
        }
    }

    /// Returns a copy for the work of another task and with `threads` for products.
    pub(crate) fn during<'t>(&self, work: &'t TaskWork<'t>, threads: &Threads) -> Oracle<'t>
    where
        'a: 't,
    {
        Oracle {
            problem: self.problem,
            form: self.form,
            manifold: Manifold::new(self.manifold.signature, self.manifold.k.clone(), Some(work)),
            work,
            lipschitz: self.lipschitz,
            convexity: self.convexity,
            serial: Threads::serial(),
            threads: threads.clone(),
            shift: self.shift,
            constant: self.constant,
            mean: self.mean,
            single: self.single.clone(),
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.problem.smooth.rows()
    }

    pub(crate) fn columns(&self) -> usize {
        self.problem.components
    }

    /// Returns whether the task has used its share.
    pub(crate) fn is_over(&self) -> bool {
        self.work.expired() || self.work.left() <= 0.0
    }

    /// Returns the limit of a method that may use `share` of the remaining work of the task.
    pub(crate) fn limit(&self, share: f64) -> MethodLimit<'a> {
        self.work.limit(share)
    }

    /// Returns the work of a product C X, or of a value and gradient.
    pub(crate) fn product_work(&self) -> f64 {
        objective::gradient_work(self.problem.smooth, self.columns())
    }

    /// Returns the work of a step besides its product.
    fn step_work(&self) -> f64 {
        objective::passes_work(self.rows(), self.columns())
    }

    /// Returns the polar factor, or X if the time is up.
    pub(crate) fn polar(&self, x: &Array2<f64>) -> Array2<f64> {
        if self.work.expired() {
            return x.clone();
        }
        self.work.spend(self.step_work());
        polar(x)
    }

    /// Returns f less its constant, and ∇f; the value is NaN if the time ran out.
    pub(crate) fn value_and_gradient(&self, x: &Array2<f64>) -> (f64, Array2<f64>) {
        self.work.spend(self.product_work() + self.step_work());
        let go_on = || !self.work.expired();
        let Some(form) = self.form else {
            return self.evaluate(x);
        };
        let image = match plain(form) {
            Some(Plain::Stored(c)) => symmetric_product(c, x.view(), |v| v, &self.threads, &go_on),
            Some(Plain::Factor(scale, at)) => {
                let image = factored_product(at, x.view(), |v| v, &self.threads, &go_on);
                image.map(|image| image * scale)
            }
            None => form.apply_while(x.view(), &self.threads, &go_on),
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

    fn evaluate(&self, x: &Array2<f64>) -> (f64, Array2<f64>) {
        let (mut value, mut gradient) = (f64::NAN, Array2::zeros(x.dim()));
        if !self.work.expired() {
            let smooth = self.problem.smooth;
            value = smooth.value_and_gradient(x.view(), gradient.view_mut(), &self.serial);
        }
        (value, gradient)
    }

    /// Evaluates f anew; None if the time ran out.
    pub(crate) fn smooth_value(&self, x: &Array2<f64>) -> Option<f64> {
        self.work.spend(self.product_work());
        let go_on = || !self.work.expired();
        match self.form {
            Some(form) => value_while(form, x.view(), &self.threads, &go_on),
            None => Some(self.evaluate(x).0).filter(|_| go_on()),
        }
    }

    /// Returns f and ∇f to about 1e-6 relative accuracy if that is faster: enough to find the region of a
    /// good point.
    pub(crate) fn rough_value_and_gradient(&self, x: &Array2<f64>) -> (f64, Array2<f64>) {
        let Some(single) = &self.single else {
            return self.value_and_gradient(x);
        };
        self.work.spend(SINGLE * self.product_work() + self.step_work());
        let go_on = || !self.work.expired();
        let (image, sign, shift) = match &**single {
            Single::Stored(c) => {
                let image = symmetric_product(c, x.view(), |v| v as f32, &self.threads, &go_on);
                (image, 1.0, 0.0)
            }
            Single::Factor(at, sign, shift) => {
                let image = factored_product(at, x.view(), |v| v as f32, &self.threads, &go_on);
                (image, *sign, *shift)
            }
        };
        let Some(mut gradient) = image.filter(|_| go_on()) else {
            return (f64::NAN, Array2::zeros(x.dim()));
        };
        let lipschitz = self.lipschitz;
        gradient.zip_mut_with(x, |g, &x| *g = lipschitz * (sign * *g - shift * x));
        (0.5 * inner(&gradient, x), gradient)
    }

    /// Returns F, constant included.
    pub(crate) fn objective(&self, x: &Array2<f64>) -> f64 {
        let penalty = self.problem.penalty.value(x.view());
        self.full(self.value_and_gradient(x).0 + penalty)
    }

    /// Returns F from F less its constant.
    pub(crate) fn full(&self, value: f64) -> f64 {
        value + self.constant
    }

    /// Returns the [magnitude](Problem::magnitude) of F for values of f and h.
    pub(crate) fn magnitude(&self, smooth: f64, penalty: f64) -> f64 {
        self.problem.magnitude(smooth, penalty, self.mean)
    }

    /// Stops the solve if a part of the task was cut by the time limit or the monitor.
    pub(crate) fn end_if_cut(&self, status: Status) {
        if matches!(status, Status::MaxTime | Status::Interrupted) {
            self.work.clock.stop();
        }
    }

    /// Limits `options` of pair sweeps to the remaining work and time of the task.
    pub(crate) fn limited(&self, options: &Options) -> Options {
        options.clone().within(self.work)
    }

    /// Returns the diagonal of C − cI; zeros if f has no C.
    pub(crate) fn diagonal(&self) -> Vec<f64> {
        let Some(form) = self.form else {
            return vec![0.0; self.rows()];
        };
        let diagonal = form.diagonal();
        diagonal.into_iter().map(|v| v - self.shift).collect()
    }

    /// Returns the shift c of C.
    pub(crate) fn shift(&self) -> f64 {
        self.shift
    }

    /// Applies the proximal map of `step · h`, entry by entry.
    pub(crate) fn proximal(&self, mut x: Array2<f64>, step: f64) -> Array2<f64> {
        for (i, mut row) in x.outer_iter_mut().enumerate() {
            for (k, v) in row.iter_mut().enumerate() {
                *v = self.problem.penalty.proximal(i, k, *v, step);
            }
        }
        x
    }
}

/// Monitor that stops a descent with the clock.
pub(crate) struct ClockMonitor<'a>(pub(crate) &'a Clock);

impl Monitor for ClockMonitor<'_> {
    fn poll(&mut self) -> Control {
        if self.0.stopped() { Control::Stop } else { Control::Continue }
    }
}

/// Representation of C in products, for f = ½⟨X, C X⟩.
enum Plain<'a> {
    /// C by rows.
    Stored(&'a [f64]),
    /// (s, Aᵀ by rows) with C = s·AᵀA.
    Factor(f64, &'a [f64]),
}

fn plain(form: &dyn QuadraticForm) -> Option<Plain<'_>> {
    if !form.is_trace_form() {
        return None;
    }
    match form.factor() {
        Some((scale, at)) => Some(Plain::Factor(scale, at.to_slice()?)),
        None => Some(Plain::Stored(form.dense()?.to_slice()?)),
    }
}
