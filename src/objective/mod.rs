//! Smooth objectives f and how they follow the rows that move.
//!
//! A [`Smooth`] objective is data; its [`Tracker`] is what must stay up to date as rows of X change (C X, A X):
//! it fills a [`Block`] with gradient rows and curvature, and is told what moved.

mod gram;
mod quadratic;

use ndarray::{Array1, Array2, ArrayView2, Axis, s};

use crate::block::Block;
use crate::error::{Error, Result};
use crate::threads::Threads;

pub use crate::budget::GoOn;
pub use crate::error::{LARGEST, SMALLEST};
pub use gram::{Data, GramQuadratic, SparseColumns};
pub use quadratic::Quadratic;
pub(crate) use quadratic::metric_bounds;

/// The same bounds for the entries of data, whose products are summed: 1e-50 … 1e50.
pub const DATA: (f64, f64) = (1e-50, 1e50);

/// The largest magnitude; NaN if a value is not finite.
pub(crate) fn largest<'a>(values: impl IntoIterator<Item = &'a f64>) -> f64 {
    values.into_iter().fold(0.0, |m: f64, v| {
        // max would lose a NaN.
        if m.is_nan() || !v.is_finite() {
            f64::NAN
        } else {
            m.max(v.abs())
        }
    })
}

fn check_size(name: &'static str, size: f64, (low, high): (f64, f64)) -> Result<()> {
    if size.is_nan() {
        return Err(Error::invalid(name, "must be finite"));
    }
    if size == 0.0 || (low..=high).contains(&size) {
        return Ok(());
    }
    Err(Error::invalid(
        name,
        format!(
            "must be zero or have its largest magnitude between {low:e} and {high:e}, where products \
             neither overflow nor vanish; it is {size:e}"
        ),
    ))
}

/// Checks means of data: finite, and no larger than data may be.
pub(crate) fn check_means<'a>(
    name: &'static str,
    values: impl IntoIterator<Item = &'a f64>,
) -> Result<()> {
    check_size(name, largest(values), (0.0, DATA.1))
}

/// The largest magnitude of data, if it is finite and of a size whose products can be summed.
pub fn check_data<'a>(
    name: &'static str,
    values: impl IntoIterator<Item = &'a f64>,
) -> Result<f64> {
    let size = largest(values);
    check_size(name, size, DATA)?;
    Ok(size)
}

/// Checks the largest magnitude of an objective's coefficients.
pub(crate) fn check_coefficients(name: &'static str, size: f64) -> Result<()> {
    check_size(name, size, (SMALLEST, LARGEST))
}

/// A smooth function f of an n×r matrix whose change, when only the rows B move by E Z, is at most
/// (for quadratics: exactly) `⟨E, G_B Zᵀ⟩ + ½ tr(M E S Eᵀ)`, M = C_BB, S = Z D Zᵀ.
pub trait Smooth: Send + Sync {
    /// Number of rows n.
    fn rows(&self) -> usize;

    /// Number of columns r that the data fixes, if it does.
    fn columns(&self) -> Option<usize> {
        None
    }

    /// The column metric D, if it is not the identity.
    fn metric(&self) -> Option<ArrayView2<'_, f64>> {
        None
    }

    /// Bounds (lower ≤ 0, upper ≥ 0) on the eigenvalues of the Hessian D ⊗ C. The largest of their
    /// magnitudes is L_f; the upper one majorises f.
    fn hessian_bounds(&self) -> (f64, f64);

    /// Bounds on the smallest and largest eigenvalue of the row curvature C, of whatever sign. By
    /// default [`hessian_bounds`](Smooth::hessian_bounds), which are that for D = I.
    fn spectrum(&self) -> (f64, f64) {
        self.hessian_bounds()
    }

    /// The curvature κ that proximal weights are relative to: half the spread of C's eigenvalues,
    /// times ‖D‖. It scales with f, does not change with C + cI, and is 0 for a linear f.
    fn spread(&self) -> f64 {
        half_spread(self.spectrum(), self.metric())
    }

    /// Diagonal of the row curvature C.
    fn diagonal(&self) -> Vec<f64>;

    /// C itself, if it is stored.
    fn dense(&self) -> Option<ArrayView2<'_, f64>> {
        None
    }

    /// The row operator: C X.
    fn apply(&self, x: ArrayView2<'_, f64>, threads: &Threads) -> Array2<f64>;

    /// Whether f(X) = `½⟨X, C X D⟩ + ⟨linear, X⟩` with C, D and linear as the methods here give them. Only
    /// an objective that says so is searched, certified or followed along a path: these take f to be
    /// this formula, not only majorised by it.
    fn is_quadratic(&self) -> bool {
        false
    }

    /// C X, given up (None) if `go_on` says no on the way: looked at often enough that this takes a few
    /// hundredths of a second.
    fn apply_while(
        &self,
        x: ArrayView2<'_, f64>,
        threads: &Threads,
        go_on: GoOn<'_>,
    ) -> Option<Array2<f64>> {
        go_on().then(|| self.apply(x, threads))
    }

    /// [`spectrum`](Smooth::spectrum), given up (None) if `go_on` says no on the way.
    fn spectrum_while(&self, go_on: GoOn<'_>) -> Option<(f64, f64)> {
        go_on().then(|| self.spectrum())
    }

    /// Multiply-adds of C x for one column x.
    fn product_work(&self) -> f64 {
        (self.rows() as f64).powi(2)
    }

    /// The linear term, if there is one.
    fn linear(&self) -> Option<ArrayView2<'_, f64>> {
        None
    }

    /// What must stay up to date, evaluated at `x`.
    fn tracker<'a>(&'a self, x: ArrayView2<'_, f64>, threads: &Threads) -> Box<dyn Tracker + 'a>;

    /// f(x).
    fn value(&self, x: ArrayView2<'_, f64>, threads: &Threads) -> f64 {
        self.tracker(x, threads).value(x)
    }

    /// ∇f(x), n×r.
    fn gradient(&self, x: ArrayView2<'_, f64>, threads: &Threads) -> Array2<f64> {
        let mut gradient = self.apply(x, threads);
        if let Some(metric) = self.metric() {
            gradient = gradient.dot(&metric);
        }
        if let Some(linear) = self.linear() {
            gradient += &linear;
        }
        gradient
    }
}

/// f(X) of a quadratic from one product, None if that was given up.
pub(crate) fn value_while(
    smooth: &dyn Smooth,
    x: ArrayView2<'_, f64>,
    threads: &Threads,
    go_on: GoOn<'_>,
) -> Option<f64> {
    let mut image = smooth.apply_while(x, threads, go_on)?;
    if let Some(metric) = smooth.metric() {
        image = image.dot(&metric);
    }
    let dot = |a: ArrayView2<'_, f64>| a.iter().zip(x).map(|(a, x)| a * x).sum::<f64>();
    Some(0.5 * dot(image.view()) + smooth.linear().map_or(0.0, dot))
}

/// Refuses an objective that does not say that it is quadratic.
pub(crate) fn require_quadratic(smooth: &dyn Smooth) -> Result<()> {
    if smooth.is_quadratic() {
        return Ok(());
    }
    Err(Error::invalid(
        "smooth",
        "must be quadratic, and say so by Smooth::is_quadratic; minimize takes others",
    ))
}

/// ½(high − low)‖D‖.
fn half_spread((low, high): (f64, f64), metric: Option<ArrayView2<'_, f64>>) -> f64 {
    let metric = metric.map_or(1.0, |metric| {
        let (values, _) = crate::linalg::symmetric_eigen(metric);
        values.iter().fold(0.0f64, |m, v| m.max(v.abs()))
    });
    0.5 * (high - low) * metric
}

/// Lanczos steps for [`Smooth::spread`]: a weight needs few digits, and the set-up of a solve little time.
const SPREAD_STEPS: usize = 12;

/// The incremental side of a [`Smooth`] objective during one solve.
pub trait Tracker: Send {
    /// Whether consecutive blocks with the same lead rows are cheaper to fill.
    fn keeps_lead(&self) -> bool {
        false
    }

    /// f at the current X.
    fn value(&self, x: ArrayView2<'_, f64>) -> f64;

    /// Fills gradient rows and curvature of a loaded block.
    fn fill(&mut self, block: &mut Block);

    /// Takes over the rows of the block that moved.
    fn commit(&mut self, block: &Block, threads: &Threads);

    /// Takes over a change of all rows.
    fn commit_all(&mut self, delta: ArrayView2<'_, f64>, threads: &Threads);

    /// One row of ∇f at the current X.
    fn gradient_row(&self, row: usize, target: &mut [f64]);

    /// ∇f at the current X.
    fn gradient(&self, threads: &Threads) -> Array2<f64>;

    /// Evaluates everything afresh at `x`, which removes the rounding of the updates.
    fn refresh(&mut self, x: ArrayView2<'_, f64>, threads: &Threads);
}

/// Bounds on the extreme eigenvalues of a symmetric operator by `steps` Lanczos iterations with
/// full reorthogonalisation: the extreme Ritz values, moved outwards by the norm of the residual
/// (Zhou and Li, Linear Algebra Appl. 435, 2011). Exact when `steps` reaches n.
pub(crate) fn lanczos_bounds(
    n: usize,
    steps: usize,
    apply: impl Fn(ArrayView2<'_, f64>) -> Array2<f64>,
) -> (f64, f64) {
    lanczos_bounds_while(n, steps, |v| Some(apply(v))).unwrap_or((f64::NAN, f64::NAN))
}

/// [`lanczos_bounds`], None if `apply` gives up.
pub(crate) fn lanczos_bounds_while(
    n: usize,
    steps: usize,
    apply: impl Fn(ArrayView2<'_, f64>) -> Option<Array2<f64>>,
) -> Option<(f64, f64)> {
    use rand::SeedableRng;
    use rand_distr::{Distribution, StandardNormal};
    let steps = steps.min(n);
    let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(0x6c61_6e63);
    // One vector a row, so that orthogonalising is a product with a matrix.
    let mut basis = Array2::<f64>::zeros((steps, n));
    let mut v: Array1<f64> = Array1::from_shape_fn(n, |_| StandardNormal.sample(&mut rng));
    v /= v.dot(&v).sqrt();
    let (mut alphas, mut betas): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    let mut residual = 0.0;
    for step in 0..steps {
        basis.row_mut(step).assign(&v);
        let image = apply(v.view().insert_axis(Axis(1)))?;
        let mut w = image.column(0).to_owned();
        alphas.push(w.dot(&v));
        let found = basis.slice(s![..=step, ..]);
        for _ in 0..2 {
            let overlaps = found.dot(&w);
            for (u, overlap) in found.outer_iter().zip(overlaps) {
                w.scaled_add(-overlap, &u);
            }
        }
        residual = w.dot(&w).sqrt();
        let size = alphas.iter().fold(0.0f64, |m, a| m.max(a.abs()));
        if residual <= 1e-14 * size || alphas.len() == n {
            residual = 0.0;
            break;
        }
        betas.push(residual);
        v = w / residual;
    }
    let k = alphas.len();
    let mut t = Array2::zeros((k, k));
    for i in 0..k {
        t[[i, i]] = alphas[i];
        if i + 1 < k {
            t[[i, i + 1]] = betas[i];
            t[[i + 1, i]] = betas[i];
        }
    }
    let (values, _) = crate::linalg::symmetric_eigen(t.view());
    Some((values[0] - residual, values[k - 1] + residual))
}
