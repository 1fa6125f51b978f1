//! `½⟨X, C X D⟩ + ⟨linear, X⟩` with a dense symmetric C; keeps Y = C X.
//!
//! A block costs |B|² reads of C, a commit one product of n×|B| with |B|×r. When few entries of ΔX
//! are nonzero (sparse iterates), only those columns of Y are touched.

use std::sync::OnceLock;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, s};

use super::{
    BlockModel, GoOn, LARGEST, Moved, SPREAD_STEPS, Smooth, Tracker, check_coefficients,
    check_data, half_spread, lanczos_bounds, lanczos_bounds_while, largest,
};
use crate::error::{Error, Result};
use crate::rows::{Rows, rows_of};
use crate::threads::{CHUNK_ROWS, Threads};

/// Up to this n the spectrum of C is computed; beyond it, bounded by Lanczos.
const EXACT_SPECTRUM: usize = 256;

/// Lanczos steps for the bounds beyond that.
const LANCZOS_STEPS: usize = 40;

/// `½⟨X, C X D⟩ + ⟨linear, X⟩`.
#[derive(Debug, Clone)]
pub struct Quadratic {
    c: Rows,
    linear: Option<Array2<f64>>,
    metric: Option<Array2<f64>>,
    spectrum: OnceLock<(f64, f64)>,
    spread: OnceLock<f64>,
}

impl Quadratic {
    /// The objective from C (n×n, symmetric), an optional linear term (n×r) and an optional column
    /// metric D (r×r, symmetric; default identity).
    ///
    /// # Errors
    /// If a shape does not fit, an entry is not finite, C or D is not exactly symmetric, or the
    /// largest coefficient is neither 0 nor in [`SMALLEST`](super::SMALLEST) … [`LARGEST`].
    pub fn new(
        c: Array2<f64>,
        linear: Option<Array2<f64>>,
        metric: Option<Array2<f64>>,
    ) -> Result<Self> {
        check_symmetric("C", c.view())?;
        if let Some(linear) = &linear
            && (linear.nrows() != c.nrows() || linear.ncols() == 0)
        {
            return Err(Error::invalid(
                "linear",
                format!("must have {} rows, got shape {:?}", c.nrows(), linear.dim()),
            ));
        }
        if let Some(metric) = &metric {
            check_symmetric("D", metric.view())?;
            if let Some(linear) = &linear
                && linear.ncols() != metric.nrows()
            {
                return Err(Error::invalid(
                    "D",
                    format!("must have {} rows to match linear", linear.ncols()),
                ));
            }
        }
        let size = |name, a: Option<&Array2<f64>>, missing| match a {
            None => Ok(missing),
            Some(a) => match largest(a) {
                size if size.is_nan() => Err(Error::invalid(name, "must be finite")),
                size if size > LARGEST => check_coefficients(name, size).map(|()| size),
                size => Ok(size),
            },
        };
        let (d, l) = (
            size("D", metric.as_ref(), 1.0)?,
            size("linear", linear.as_ref(), 0.0)?,
        );
        let product = size("C", Some(&c), 0.0)? * d;
        check_coefficients(if l > product { "linear" } else { "C" }, product.max(l))?;
        let standard = |a: Array2<f64>| Rows::from(a).into_array();
        Ok(Self {
            c: Rows::from(c),
            linear: linear.map(standard),
            metric: metric.map(standard),
            spectrum: OnceLock::new(),
            spread: OnceLock::new(),
        })
    }

    /// PCA's objective `−½‖A X‖²` with C = −AᵀA formed.
    ///
    /// # Errors
    /// If A is empty, not finite, or its largest magnitude is neither 0 nor in 1e-50 … 1e50.
    pub fn from_data(a: ArrayView2<'_, f64>) -> Result<Self> {
        if a.is_empty() {
            return Err(Error::invalid("A", "must not be empty"));
        }
        check_data("A", &a.as_standard_layout())?;
        let mut c = -a.t().dot(&a);
        for i in 0..c.nrows() {
            for j in 0..i {
                c[[i, j]] = c[[j, i]];
            }
        }
        Self::new(c, None, None)
    }

    fn product(&self, x: ArrayView2<'_, f64>, threads: &Threads) -> Rows {
        let mut y = Rows::zeros(x.dim());
        multiply_add(self.c.view(), x, &mut y, threads, &|| true);
        y
    }

    /// C.
    pub fn matrix(&self) -> ArrayView2<'_, f64> {
        self.c.view()
    }
}

fn check_symmetric(name: &'static str, a: ArrayView2<'_, f64>) -> Result<()> {
    if a.nrows() != a.ncols() || a.is_empty() {
        return Err(Error::invalid(
            name,
            format!("must be square and not empty, got shape {:?}", a.dim()),
        ));
    }
    if a.iter().any(|v| !v.is_finite()) {
        return Err(Error::invalid(name, "must be finite"));
    }
    if a != a.t() {
        return Err(Error::invalid(name, "must be exactly symmetric"));
    }
    Ok(())
}

impl Smooth for Quadratic {
    fn rows(&self) -> usize {
        self.c.nrows()
    }

    fn columns(&self) -> Option<usize> {
        self.linear
            .as_ref()
            .or(self.metric.as_ref())
            .map(Array2::ncols)
    }

    fn metric(&self) -> Option<ArrayView2<'_, f64>> {
        self.metric.as_ref().map(|d| d.view())
    }

    fn linear(&self) -> Option<ArrayView2<'_, f64>> {
        self.linear.as_ref().map(|l| l.view())
    }

    fn hessian_bounds(&self) -> (f64, f64) {
        let (low, high) = self.spectrum();
        metric_bounds(low, high, self.metric())
    }

    fn spectrum(&self) -> (f64, f64) {
        self.spectrum_while(&|| true)
            .unwrap_or((f64::NAN, f64::NAN))
    }

    fn spectrum_while(&self, go_on: GoOn<'_>) -> Option<(f64, f64)> {
        if let Some(known) = self.spectrum.get() {
            return Some(*known);
        }
        let steps = if self.rows() <= EXACT_SPECTRUM {
            self.rows()
        } else {
            LANCZOS_STEPS
        };
        let found = lanczos_bounds_while(self.rows(), steps, |v| go_on().then(|| self.c.dot(&v)))?;
        Some(*self.spectrum.get_or_init(|| found))
    }

    fn is_quadratic(&self) -> bool {
        true
    }

    fn spread(&self) -> f64 {
        *self.spread.get_or_init(|| {
            let bounds = lanczos_bounds(self.rows(), SPREAD_STEPS, |v| self.c.dot(&v));
            half_spread(bounds, self.metric())
        })
    }

    fn diagonal(&self) -> Vec<f64> {
        self.c.diag().to_vec()
    }

    fn dense(&self) -> Option<ArrayView2<'_, f64>> {
        Some(self.c.view())
    }

    fn apply(&self, x: ArrayView2<'_, f64>, threads: &Threads) -> Array2<f64> {
        self.product(x, threads).into_array()
    }

    fn apply_while(
        &self,
        x: ArrayView2<'_, f64>,
        threads: &Threads,
        go_on: GoOn<'_>,
    ) -> Option<Array2<f64>> {
        let mut y = Rows::zeros(x.dim());
        multiply_add(self.c.view(), x, &mut y, threads, go_on);
        go_on().then(|| y.into_array())
    }

    fn tracker<'a>(&'a self, x: ArrayView2<'_, f64>, threads: &Threads) -> Box<dyn Tracker + 'a> {
        Box::new(QuadraticTracker {
            objective: self,
            y: self.product(x, threads),
            panel: Array2::zeros((0, 0)),
        })
    }
}

/// Bounds of the spectrum of D ⊗ C from those of C.
pub(crate) fn metric_bounds(
    low: f64,
    high: f64,
    metric: Option<ArrayView2<'_, f64>>,
) -> (f64, f64) {
    let (d_low, d_high) = match metric {
        None => (1.0, 1.0),
        Some(metric) => {
            let (values, _) = crate::linalg::symmetric_eigen(metric);
            (values[0], values[values.len() - 1])
        }
    };
    let products = [low * d_low, low * d_high, high * d_low, high * d_high];
    (
        products.iter().fold(0.0f64, |m, &v| m.min(v)),
        products.iter().fold(0.0f64, |m, &v| m.max(v)),
    )
}

/// `y += a · x`, in row pieces of fixed size, as long as `go_on` says so.
pub(super) fn multiply_add(
    a: ArrayView2<'_, f64>,
    x: ArrayView2<'_, f64>,
    y: &mut Rows,
    threads: &Threads,
    go_on: GoOn<'_>,
) {
    let r = y.ncols();
    let work = a.len() * r;
    threads.for_chunks(y.entries_mut(), CHUNK_ROWS * r, work, |piece, target| {
        if !go_on() {
            return;
        }
        let from = piece * CHUNK_ROWS;
        let mut target = rows_of(target, r);
        let a = a.slice(s![from..from + target.nrows(), ..]);
        general_mat_mul(1.0, &a, &x, 1.0, &mut target);
    });
}

struct QuadraticTracker<'a> {
    objective: &'a Quadratic,
    y: Rows,
    panel: Array2<f64>,
}

/// Share of nonzero entries of ΔX below which single entries are applied one by one.
const SPARSE_STEP: f64 = 0.25;

impl Tracker for QuadraticTracker<'_> {
    fn value(&self, x: ArrayView2<'_, f64>) -> f64 {
        let quadratic = match &self.objective.metric {
            None => (&x * &*self.y).sum(),
            Some(metric) => (&x.dot(metric) * &*self.y).sum(),
        };
        let linear = self
            .objective
            .linear
            .as_ref()
            .map_or(0.0, |linear| (&x * linear).sum());
        0.5 * quadratic + linear
    }

    fn fill(&mut self, mut model: BlockModel<'_>) {
        let (rows, b) = (model.rows, model.rows.len());
        for (k, &row) in rows.iter().enumerate() {
            let c = self.objective.c.row(row);
            let curvature = &mut model.curvature[k * b..(k + 1) * b];
            for (target, &column) in curvature.iter_mut().zip(rows) {
                *target = c[column];
            }
            self.gradient_row(row, model.gradient_row(k));
        }
    }

    fn gradient_row(&self, row: usize, target: &mut [f64]) {
        let y = self.y.row(row);
        match &self.objective.metric {
            None => target.iter_mut().zip(y).for_each(|(t, &y)| *t = y),
            Some(metric) => target
                .iter_mut()
                .zip(metric.outer_iter())
                .for_each(|(t, d)| *t = d.dot(&y)),
        }
        if let Some(linear) = &self.objective.linear {
            target
                .iter_mut()
                .zip(linear.row(row))
                .for_each(|(t, &l)| *t += l);
        }
    }

    fn commit(&mut self, moved: Moved<'_>, threads: &Threads) {
        let delta = moved.delta();
        let (n, r) = self.y.dim();
        let nonzero = delta.iter().filter(|&&v| v != 0.0).count();
        let c = &self.objective.c;
        let y = self.y.entries_mut();
        if (nonzero as f64) < SPARSE_STEP * delta.len() as f64 || moved.len() <= 4 {
            let dense = moved.len() <= 4 && nonzero * 2 > delta.len();
            threads.for_chunks(y, CHUNK_ROWS * r, n * nonzero, |piece, target| {
                let from = piece * CHUNK_ROWS;
                for (k, step) in delta.outer_iter().enumerate() {
                    let row = &c.row_slice(moved.row(k))[from..from + target.len() / r];
                    if dense {
                        for (y, &c) in target.chunks_exact_mut(r).zip(row) {
                            for (y, &d) in y.iter_mut().zip(step) {
                                *y += c * d;
                            }
                        }
                    } else {
                        for (column, &d) in step.iter().enumerate() {
                            if d != 0.0 {
                                for (y, &c) in target.chunks_exact_mut(r).zip(row) {
                                    y[column] += c * d;
                                }
                            }
                        }
                    }
                }
            });
            return;
        }
        // Gather the rows of C (columns, by symmetry) once, then one product per piece.
        if self.panel.dim() != (moved.len(), n) {
            self.panel = Array2::zeros((moved.len(), n));
        }
        for (k, mut target) in self.panel.outer_iter_mut().enumerate() {
            target.assign(&c.row(moved.row(k)));
        }
        let panel = self.panel.view();
        threads.for_chunks(y, CHUNK_ROWS * r, n * delta.len(), |piece, target| {
            let from = piece * CHUNK_ROWS;
            let mut target = rows_of(target, r);
            let columns = panel.slice(s![.., from..from + target.nrows()]);
            general_mat_mul(1.0, &columns.t(), &delta, 1.0, &mut target);
        });
    }

    fn commit_all(&mut self, delta: ArrayView2<'_, f64>, threads: &Threads) {
        multiply_add(
            self.objective.c.view(),
            delta,
            &mut self.y,
            threads,
            &|| true,
        );
    }

    fn gradient(&self, _threads: &Threads) -> Array2<f64> {
        let mut gradient = match &self.objective.metric {
            None => Array2::clone(&self.y),
            Some(metric) => self.y.dot(metric),
        };
        if let Some(linear) = &self.objective.linear {
            gradient += linear;
        }
        gradient
    }

    fn refresh(&mut self, x: ArrayView2<'_, f64>, threads: &Threads) {
        self.y.entries_mut().fill(0.0);
        multiply_add(self.objective.c.view(), x, &mut self.y, threads, &|| true);
    }
}
