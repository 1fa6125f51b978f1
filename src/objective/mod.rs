//! Objectives f and the operations that they provide.
//!
//! Every [`Objective`] has a value and a gradient. A [`QuadraticForm`] `½⟨X, C X D⟩ + ⟨linear, X⟩` is solved
//! exactly pair by pair: its [`Tracker`] updates its data as rows of X change (C X, A X), fills a
//! [`BlockModel`] with gradient rows and curvature, and follows the rows that [moved](Moved). [`Columns`]
//! gives columns of C for any n.

mod columns;
mod data;
mod evaluated;
mod gram;
mod quadratic;
mod sparse;
mod spectrum;
mod tracker;
mod work;

use ndarray::{Array2, ArrayView2, ArrayViewMut2, CowArray, Ix2};

use crate::error::{Error, Result};
use crate::linalg::product;
use crate::threads::Threads;

pub use crate::error::{LARGEST, SMALLEST};
pub use crate::limits::GoOn;
pub use columns::{Column, Columns};
pub use data::{Data, DenseColumns, SparseVector};
pub(crate) use evaluated::Evaluated;
pub use gram::GramQuadratic;
pub use quadratic::Quadratic;
pub use sparse::SparseColumns;
pub use spectrum::Spectrum;
pub(crate) use spectrum::{LANCZOS_STEPS, bounds_work, lanczos_bounds, metric_bounds};
use tracker::ImageTracker;
pub use tracker::{BlockModel, Moved, Tracker};
pub use work::default_work;
pub(crate) use work::{
    DECOMPOSITION, column_work, eigen_work, gradient_work, pass_work, passes_work, sparse_product_work, step_work,
};

/// Bounds of nonzero data, whose products are summed: 1e-50 … 1e50.
pub const DATA: (f64, f64) = (1e-50, 1e50);

/// Returns the largest magnitude; NaN if a value is not finite.
pub(crate) fn largest<'a>(values: impl IntoIterator<Item = &'a f64>) -> f64 {
    // The bits of magnitudes are ordered like the magnitudes, with infinity and NaN last.
    let bits = crate::simd::arch().dispatch(
        #[inline(always)]
        || (values.into_iter()).fold(0, |most: u64, v| most.max(v.abs().to_bits())),
    );
    let size = f64::from_bits(bits);
    if size.is_finite() { size } else { f64::NAN }
}

pub(crate) fn check_size(name: &'static str, size: f64, (low, high): (f64, f64)) -> Result<()> {
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

/// Checks means of data: finite, and within the upper bound of data.
pub(crate) fn check_means<'a>(name: &'static str, values: impl IntoIterator<Item = &'a f64>) -> Result<()> {
    check_size(name, largest(values), (0.0, DATA.1))
}

/// Returns the largest magnitude of data, if it is finite and zero or within [`DATA`].
pub fn check_data<'a>(name: &'static str, values: impl IntoIterator<Item = &'a f64>) -> Result<f64> {
    let size = largest(values);
    check_size(name, size, DATA)?;
    Ok(size)
}

/// Checks the largest magnitude of an objective's coefficients.
pub(crate) fn check_coefficients(name: &'static str, size: f64) -> Result<()> {
    check_size(name, size, (SMALLEST, LARGEST))
}

/// A smooth function f of an n×r matrix.
pub trait Objective: Send + Sync {
    /// Returns the number of rows n.
    fn rows(&self) -> usize;

    /// Returns the number of columns r that the data fixes, if it does.
    fn columns(&self) -> Option<usize> {
        None
    }

    /// Returns f(x), and writes ∇f(x) to `gradient` (n×r).
    fn value_and_gradient(&self, x: ArrayView2<'_, f64>, gradient: ArrayViewMut2<'_, f64>, threads: &Threads) -> f64;

    /// f(x).
    fn value(&self, x: ArrayView2<'_, f64>, threads: &Threads) -> f64 {
        self.value_and_gradient(x, Array2::zeros(x.dim()).view_mut(), threads)
    }

    /// ∇f(x), n×r.
    fn gradient(&self, x: ArrayView2<'_, f64>, threads: &Threads) -> Array2<f64> {
        let mut gradient = Array2::zeros(x.dim());
        self.value_and_gradient(x, gradient.view_mut(), threads);
        gradient
    }

    /// Returns a Lipschitz constant of ∇f in the Frobenius norm, if one is known.
    fn lipschitz(&self) -> Option<f64> {
        None
    }

    /// Returns a symmetric matrix C (n×n) with `f(X⁺) ≤ f(X) + ⟨∇f(X), ΔX⟩ + ½⟨ΔX, C ΔX⟩` whenever X and X⁺
    /// differ in two rows, if one is known: eq. 8 of the OBCD paper with H = I ⊗ C. Single pairs use it in
    /// place of the Lipschitz constant, which must then be known too.
    fn curvature_matrix(&self) -> Option<ArrayView2<'_, f64>> {
        None
    }

    /// Relative rounding of value and gradient: 2⁻⁵² unless f works in less than double precision. Changes of F within
    /// this rounding are ignored, and smaller tolerances are raised to this number.
    fn precision(&self) -> f64 {
        f64::EPSILON
    }

    /// Returns the multiply-adds that one evaluation counts for in addition to n²r: the overhead of a call, which is most
    /// of the time of a function of another language in small problems. Not used if f is a quadratic form.
    fn call_work(&self) -> f64 {
        0.0
    }

    /// Returns whether only one call can run at a time. A search then runs its jobs one after another, so that those that
    /// time allows end early.
    fn is_serial(&self) -> bool {
        false
    }

    /// Returns whether f can no longer be evaluated. The solve then ends at its incumbent.
    fn has_failed(&self) -> bool {
        false
    }

    /// Returns the product ∇²f(x)\[v\] of the Hessian with a direction, n×r, if f provides it. Newton's
    /// method can then follow slow gradient steps.
    fn hessian_product(
        &self,
        _x: ArrayView2<'_, f64>,
        _v: ArrayView2<'_, f64>,
        _threads: &Threads,
    ) -> Option<Array2<f64>> {
        None
    }

    /// Returns f as a quadratic form if f is one; any other f is majorised.
    fn quadratic(&self) -> Option<&dyn QuadraticForm> {
        None
    }
}

/// f(X) = `½⟨X, C X D⟩ + ⟨linear, X⟩` with symmetric C (n×n) and D (r×r, by default the identity).
///
/// If only the rows B move, by E Z, f changes by `⟨E, G_B Zᵀ⟩ + ½ tr(M E S Eᵀ)`, M = C_BB, S = Z D Zᵀ. An
/// implementation provides the order n, a product, the diagonal and a cache for the spectrum. Value and
/// gradient follow from these, so that the type is an [`Objective`].
pub trait QuadraticForm: Objective {
    /// Returns the order n of C.
    fn order(&self) -> usize;

    /// Returns C X; None if `go_on` returns false. `go_on` is called every few hundredths of a second.
    fn apply_while(&self, x: ArrayView2<'_, f64>, threads: &Threads, go_on: GoOn<'_>) -> Option<Array2<f64>>;

    /// Returns the diagonal of C.
    fn diagonal(&self) -> Vec<f64>;

    /// Returns the largest magnitude of a diagonal entry of C, to which the rounding of products with C is
    /// relative.
    fn diagonal_size(&self) -> f64 {
        self.diagonal().iter().fold(0.0, |m, v| v.abs().max(m))
    }

    /// Returns the cache for the spectrum of C.
    fn cache(&self) -> &Spectrum;

    /// Returns the column metric D, if it is not the identity.
    fn metric(&self) -> Option<ArrayView2<'_, f64>> {
        None
    }

    /// Returns the linear term, if there is one.
    fn linear(&self) -> Option<ArrayView2<'_, f64>> {
        None
    }

    /// Returns the number of columns r that a linear term or a metric fixes, if there is one.
    fn fixed_columns(&self) -> Option<usize> {
        self.linear().or(self.metric()).map(|fixed| fixed.ncols())
    }

    /// C itself, if it is stored.
    fn dense(&self) -> Option<ArrayView2<'_, f64>> {
        None
    }

    /// Returns (s, Aᵀ) with C = s·AᵀA for a dense A of few rows, Aᵀ n×m by rows, if this is the fastest way
    /// to compute C X.
    fn factor(&self) -> Option<(f64, ArrayView2<'_, f64>)> {
        None
    }

    /// Adds C v to the target (n entries) of each sparse vector v.
    fn add_products(&self, vectors: &[SparseVector<'_>], targets: &mut [&mut [f64]]) {
        let mut x = Array2::zeros((self.order(), vectors.len()));
        for ((rows, values), mut column) in vectors.iter().zip(x.columns_mut()) {
            rows.iter().zip(*values).for_each(|(&i, &v)| column[i] = v);
        }
        let products = self.apply(x.view(), &Threads::serial());
        for (product, target) in products.columns().into_iter().zip(targets) {
            target.iter_mut().zip(product).for_each(|(t, v)| *t += v);
        }
    }

    /// Writes column `j` of C to `target`, n entries.
    fn column(&self, j: usize, target: &mut [f64]) {
        target.fill(0.0);
        self.add_products(&[(&[j], &[1.0])], &mut [target]);
    }

    /// Returns C_ij.
    fn entry(&self, i: usize, j: usize) -> f64 {
        let mut column = vec![0.0; self.order()];
        self.column(j, &mut column);
        column[i]
    }

    /// Returns the entries of C in these rows and columns; None if `go_on` returns false.
    fn principal(&self, rows: &[usize], go_on: GoOn<'_>) -> Option<Array2<f64>> {
        let mut column = vec![0.0; self.order()];
        let mut c = Array2::zeros((rows.len(), rows.len()));
        for (&j, mut row) in rows.iter().zip(c.rows_mut()) {
            if !go_on() {
                return None;
            }
            self.column(j, &mut column);
            row.iter_mut().zip(rows).for_each(|(v, &i)| *v = column[i]);
        }
        Some(c)
    }

    /// Returns C, formed if it is not stored; None if `go_on` returns false.
    fn whole(&self, go_on: GoOn<'_>) -> Option<CowArray<'_, f64, Ix2>> {
        let all = || (0..self.order()).collect::<Vec<usize>>();
        match self.dense() {
            Some(c) => Some(c.into()),
            None => self.principal(&all(), go_on).map(Into::into),
        }
    }

    /// Returns ½ tr(XᵀC_RR X) for R = `rows`, if its products are faster than products with a stored C_RR.
    fn restricted(&self, _rows: &[usize]) -> Option<Box<dyn QuadraticForm>> {
        None
    }

    /// Returns the multiply-adds of C x for one column x.
    fn product_work(&self) -> f64 {
        (self.order() as f64).powi(2)
    }

    /// Returns the length of A x if C x is computed from A x; otherwise 0.
    fn samples(&self) -> usize {
        0
    }

    /// Returns (s, m) for C = s·AᵀA, if A of m rows is known.
    fn data(&self) -> Option<(f64, usize)> {
        self.factor().map(|(scale, at)| (scale, at.ncols()))
    }

    /// Returns s·AAᵀW for C = s·AᵀA with known [`data`](Self::data); None too if `go_on` returns false.
    fn outer_while(&self, w: ArrayView2<'_, f64>, go_on: GoOn<'_>) -> Option<Array2<f64>> {
        let (scale, at) = self.factor()?;
        let image = product(at.t(), product(at, w).view()) * scale;
        go_on().then_some(image)
    }

    /// Returns AᵀW for C = s·AᵀA with known [`data`](Self::data).
    fn lifted(&self, w: ArrayView2<'_, f64>) -> Option<Array2<f64>> {
        self.factor().map(|(_, at)| product(at, w))
    }

    /// Returns the multiply-adds of a column of C that is not stored.
    fn column_work(&self) -> f64 {
        self.product_work()
    }

    /// Returns the tracker at `x`; by default it keeps Y = C X, which costs a column of C for each row of a
    /// block.
    fn tracker<'a>(&'a self, x: ArrayView2<'_, f64>, threads: &Threads) -> Box<dyn Tracker + 'a> {
        Box::new(ImageTracker::new(self, x, threads))
    }

    /// Returns C X.
    fn apply(&self, x: ArrayView2<'_, f64>, threads: &Threads) -> Array2<f64> {
        let product = self.apply_while(x, threads, &|| true);
        product.unwrap_or_else(|| Array2::from_elem(x.dim(), f64::NAN))
    }

    /// Returns bounds on the smallest and largest eigenvalue of C, of any sign; None if `go_on` returns
    /// false.
    fn spectrum(&self, go_on: GoOn<'_>) -> Option<(f64, f64)> {
        let serial = Threads::serial();
        let steps = self.quadratic().map_or(self.order(), spectrum::bounds_steps);
        self.cache().bounds((self.order(), steps), |v| self.apply_while(v, &serial, go_on))
    }

    /// Like [`spectrum`](Self::spectrum), without interruption.
    fn bounds(&self) -> (f64, f64) {
        self.spectrum(&|| true).unwrap_or((f64::NAN, f64::NAN))
    }

    /// Returns bounds (lower ≤ 0, upper ≥ 0) on the eigenvalues of the Hessian D ⊗ C. The larger magnitude is
    /// L_f; the upper bound majorises f.
    fn hessian_bounds(&self) -> (f64, f64) {
        let (low, high) = self.bounds();
        metric_bounds(low, high, self.metric())
    }

    /// Returns the curvature κ to which proximal weights are relative: half the spread of C's eigenvalues,
    /// times ‖D‖. It scales with f, is the same for C + cI, and is 0 for a linear f.
    fn spread(&self) -> f64 {
        let serial = Threads::serial();
        let apply = |v: ArrayView2<'_, f64>| self.apply(v, &serial);
        self.cache().spread(self.order(), apply, self.metric())
    }

    /// Returns the diagonal of D if f = ½ tr(D XᵀCX) for a diagonal D ⪰ 0 and r columns.
    fn trace_weights(&self, r: usize) -> Option<Vec<f64>> {
        match (self.linear(), self.metric()) {
            (Some(_), _) => None,
            (None, None) => Some(vec![1.0; r]),
            (None, Some(metric)) => metric
                .indexed_iter()
                .all(|((i, j), &v)| if i == j { v >= 0.0 } else { v == 0.0 })
                .then(|| metric.diag().to_vec()),
        }
    }

    /// Returns whether f = ½ tr(XᵀCX), so that all columns of X count equally and only through C.
    fn is_trace_form(&self) -> bool {
        self.linear().is_none() && self.metric().is_none()
    }
}

impl<Q: QuadraticForm> Objective for Q {
    fn rows(&self) -> usize {
        self.order()
    }

    fn columns(&self) -> Option<usize> {
        self.fixed_columns()
    }

    fn value(&self, x: ArrayView2<'_, f64>, threads: &Threads) -> f64 {
        self.tracker(x, threads).value(x)
    }

    fn value_and_gradient(
        &self,
        x: ArrayView2<'_, f64>,
        mut gradient: ArrayViewMut2<'_, f64>,
        threads: &Threads,
    ) -> f64 {
        let tracker = self.tracker(x, threads);
        gradient.assign(&tracker.gradient(threads));
        tracker.value(x)
    }

    fn lipschitz(&self) -> Option<f64> {
        let (low, high) = self.hessian_bounds();
        Some(high.max(-low))
    }

    /// C V D.
    fn hessian_product(
        &self,
        _x: ArrayView2<'_, f64>,
        v: ArrayView2<'_, f64>,
        threads: &Threads,
    ) -> Option<Array2<f64>> {
        let image = self.apply(v, threads);
        Some(match self.metric() {
            Some(metric) => image.dot(&metric),
            None => image,
        })
    }

    fn quadratic(&self) -> Option<&dyn QuadraticForm> {
        Some(self)
    }
}

/// Returns f(X) of a quadratic form from one product; None if `go_on` returns false.
pub(crate) fn value_while(
    form: &dyn QuadraticForm,
    x: ArrayView2<'_, f64>,
    threads: &Threads,
    go_on: GoOn<'_>,
) -> Option<f64> {
    let mut image = form.apply_while(x, threads, go_on)?;
    if let Some(metric) = form.metric() {
        image = image.dot(&metric);
    }
    let dot = |a: ArrayView2<'_, f64>| a.iter().zip(x).map(|(a, x)| a * x).sum::<f64>();
    Some(0.5 * dot(image.view()) + form.linear().map_or(0.0, dot))
}
