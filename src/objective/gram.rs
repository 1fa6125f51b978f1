//! `½·scale·‖A X‖²` from the data alone; keeps W = A X, never forms AᵀA.
//!
//! A gradient row is `scale·A_kᵀ W` and the curvature of a block `scale·A_Bᵀ A_B`, both at the cost
//! of the nonzeros of A's columns, whatever n is. Memory: A, W (m×r) and the columns of a block; a sparse A is
//! stored a second time, by samples, once a column of C is requested.
//!
//! Centring is implicit: with column means μ, `A` stands for `A − 1μᵀ` and sparse data stays
//! sparse. Only columns that are more than half full are stored whole, as v − μ: for the others
//! `‖v‖² ≤ 2‖v − μ‖²`, so that nothing cancels however large the means are.

use std::sync::{Arc, OnceLock};

use ndarray::{Array1, Array2, ArrayView2, Axis};

use super::{
    BlockModel, Data, GoOn, LARGEST, Moved, QuadraticForm, SMALLEST, SparseVector, Spectrum, Tracker, check_means,
};
use crate::error::{Error, Result};
use crate::rows::Rows;
use crate::threads::{CHUNK_ROWS, Threads};

/// `½·scale·‖(A − 1 meanᵀ) X‖²`.
#[derive(Debug, Clone)]
pub struct GramQuadratic<'a> {
    data: Arc<dyn Data + 'a>,
    scale: f64,
    /// Column means that products still have to subtract.
    mean: Option<Array1<f64>>,
    /// Column sums of the stored data; empty without a mean.
    sums: Array1<f64>,
    diagonal: OnceLock<Vec<f64>>,
    spectrum: Spectrum,
}

impl<'a> GramQuadratic<'a> {
    /// Creates the objective for data A, a scale (−1 maximises variance) and optional column means to
    /// subtract. Means of zero are dropped.
    ///
    /// # Errors
    /// If `mean` has the wrong length or a magnitude above 1e50, `scale` times the squared largest magnitude
    /// of A is neither 0 nor in [`SMALLEST`] … [`LARGEST`], or a number is not finite.
    pub fn new(mut data: impl Data + 'a, scale: f64, mean: Option<Array1<f64>>) -> Result<Self> {
        let size = data.largest();
        let product = scale.abs() * size * size;
        if !scale.is_finite() || (product != 0.0 && !(SMALLEST..=LARGEST).contains(&product)) {
            return Err(Error::invalid(
                "scale",
                format!("must be finite and scale·AᵀA between {SMALLEST:e} and {LARGEST:e}, got {scale:e}"),
            ));
        }
        if let Some(mean) = &mean {
            if mean.len() != data.features() {
                return Err(Error::invalid(
                    "mean",
                    format!("must hold {} values, got {}", data.features(), mean.len()),
                ));
            }
            check_means("mean", mean)?;
        }
        let mean = mean.filter(|mean| mean.iter().any(|&v| v != 0.0));
        let mean = mean.and_then(|mean| data.center(mean));
        let sums = match &mean {
            None => Array1::zeros(0),
            Some(_) => {
                let ones = vec![1.0; data.samples()];
                let mut sums = vec![0.0; data.features()];
                data.add_transposed(0, 1, 1.0, &ones, &mut sums);
                sums.into()
            }
        };
        Ok(Self {
            data: Arc::new(data),
            scale,
            mean,
            sums,
            diagonal: OnceLock::new(),
            spectrum: Spectrum::semidefinite(scale),
        })
    }

    /// Returns (μᵀX, σᵀX) for the means μ and the column sums σ, if there are means.
    fn moments(&self, x: ArrayView2<'_, f64>) -> Moments {
        self.mean.as_ref().map(|mean| {
            let mut moments = (Array1::zeros(x.ncols()), Array1::zeros(x.ncols()));
            // Row by row: a product of a vector with X would read it column by column.
            for ((row, &mean), &sum) in x.outer_iter().zip(mean).zip(&self.sums) {
                moments.0.scaled_add(mean, &row);
                moments.1.scaled_add(sum, &row);
            }
            moments
        })
    }

    /// Adds the centring term of gradient row `k`.
    #[inline(always)]
    fn center_row(&self, k: usize, moments: &Moments, target: &mut [f64]) {
        if let (Some(mean), Some((by_mean, by_sum))) = (&self.mean, moments) {
            let m = self.samples() as f64;
            let (mu, sigma) = (mean[k], self.sums[k]);
            for ((t, &u), &v) in target.iter_mut().zip(by_mean).zip(by_sum) {
                *t += self.scale * ((m * mu - sigma) * u - mu * v);
            }
        }
    }

    /// Returns the centring term of entry (k, l) of C.
    #[inline(always)]
    fn center_entry(&self, k: usize, l: usize) -> f64 {
        match &self.mean {
            None => 0.0,
            Some(mean) => {
                let m = self.samples() as f64;
                self.scale * (m * mean[k] * mean[l] - self.sums[k] * mean[l] - mean[k] * self.sums[l])
            }
        }
    }

    /// Writes row `k` of the gradient to `target`.
    fn gradient_row(&self, k: usize, w: &Rows, moments: &Moments, target: &mut [f64]) {
        target.fill(0.0);
        self.data.add_transposed_row(k, self.scale, w.entries(), target);
        self.center_row(k, moments, target);
    }

    /// Writes C_BB for some rows B to `target`, which is zero, by rows; returns false if `go_on` ended the computation.
    fn entries(&self, rows: &[usize], target: &mut [f64], threads: &Threads, go_on: GoOn<'_>) -> bool {
        if !self.data.add_inner(rows, target, threads, go_on) {
            return false;
        }
        let count = rows.len();
        for from in (0..count).step_by(MIRRORED) {
            for column in from..count {
                for row in from..count.min(from + MIRRORED).min(column + 1) {
                    let at = row * count + column;
                    let mut value = self.scale * target[at];
                    if self.mean.is_some() {
                        value += self.center_entry(rows[row], rows[column]);
                    }
                    target[at] = value;
                    target[column * count + row] = value;
                }
            }
        }
        true
    }

    fn times(&self, x: ArrayView2<'_, f64>, go_on: GoOn<'_>) -> Rows {
        Rows::from(self.data.times(x, go_on))
    }

    fn transposed_times(&self, w: &Rows, moments: &Moments, threads: &Threads, go_on: GoOn<'_>) -> Array2<f64> {
        let r = w.ncols();
        let mut y = Rows::zeros((self.data.features(), r));
        let work = self.data.stored() * r;
        threads.for_chunks(y.entries_mut(), CHUNK_ROWS * r, work, |piece, target| {
            if !go_on() {
                return;
            }
            let from = piece * CHUNK_ROWS;
            self.data.add_transposed(from, r, self.scale, w.entries(), target);
            for (k, row) in target.chunks_exact_mut(r).enumerate() {
                self.center_row(from + k, moments, row);
            }
        });
        y.into_array()
    }
}

/// (μᵀX, σᵀX), when there is a mean.
type Moments = Option<(Array1<f64>, Array1<f64>)>;

impl QuadraticForm for GramQuadratic<'_> {
    fn order(&self) -> usize {
        self.data.features()
    }

    fn apply_while(&self, x: ArrayView2<'_, f64>, threads: &Threads, go_on: GoOn<'_>) -> Option<Array2<f64>> {
        let w = self.times(x, go_on);
        let y = self.transposed_times(&w, &self.moments(x), threads, go_on);
        go_on().then_some(y)
    }

    fn diagonal(&self) -> Vec<f64> {
        let diagonal = self.diagonal.get_or_init(|| {
            let squares = self.data.squares(self.mean.as_ref());
            squares.into_iter().map(|v| self.scale * v).collect()
        });
        diagonal.clone()
    }

    fn add_products(&self, vectors: &[SparseVector<'_>], targets: &mut [&mut [f64]]) {
        self.data.add_gram(vectors, self.scale, targets);
        let (Some(mean), samples) = (&self.mean, self.samples() as f64) else {
            return;
        };
        for ((rows, values), target) in vectors.iter().zip(targets) {
            let along = |u: &Array1<f64>| -> f64 { rows.iter().zip(*values).map(|(&k, &v)| u[k] * v).sum() };
            let (by_mean, by_sum) = (self.scale * along(mean), self.scale * along(&self.sums));
            for ((t, &mean), &sum) in target.iter_mut().zip(mean).zip(&self.sums) {
                *t += (samples * mean - sum) * by_mean - mean * by_sum;
            }
        }
    }

    fn entry(&self, i: usize, j: usize) -> f64 {
        self.scale * self.data.inner(i, j) + self.center_entry(i, j)
    }

    fn samples(&self) -> usize {
        self.data.samples()
    }

    fn column_work(&self) -> f64 {
        self.data.gram_column_work()
    }

    fn principal(&self, rows: &[usize], go_on: GoOn<'_>) -> Option<Array2<f64>> {
        let mut c = Rows::zeros((rows.len(), rows.len()));
        let whole = self.entries(rows, c.entries_mut(), &Threads::serial(), go_on);
        whole.then(|| c.into_array())
    }

    fn restricted(&self, rows: &[usize]) -> Option<Box<dyn QuadraticForm>> {
        if 2 * self.data.stored_in(rows) >= rows.len() * rows.len() {
            return None;
        }
        let selected = |v: &Array1<f64>| v.select(Axis(0), rows);
        let mean = self.mean.as_ref().map(selected);
        let sums = mean.as_ref().map(|_| selected(&self.sums));
        Some(Box::new(GramQuadratic {
            data: self.data.select(rows),
            scale: self.scale,
            mean,
            sums: sums.unwrap_or_default(),
            diagonal: OnceLock::new(),
            spectrum: Spectrum::semidefinite(self.scale),
        }))
    }

    fn data(&self) -> Option<(f64, usize)> {
        Some((self.scale, self.samples()))
    }

    fn outer_while(&self, w: ArrayView2<'_, f64>, go_on: GoOn<'_>) -> Option<Array2<f64>> {
        let (w, r) = (Rows::from(w.to_owned()), w.ncols());
        let mut image = Rows::zeros(w.dim());
        let factors = (self.scale, self.mean.as_ref());
        let done = (self.data).add_outer_gram(factors, (w.entries(), r), image.entries_mut(), go_on);
        done.then(|| image.into_array())
    }

    fn lifted(&self, w: ArrayView2<'_, f64>) -> Option<Array2<f64>> {
        let entries = Rows::from(w.to_owned());
        let mut image = Rows::zeros((self.data.features(), w.ncols()));
        if w.ncols() == 0 {
            return Some(image.into_array());
        }
        let sums = w.sum_axis(Axis(0));
        for k in 0..self.data.features() {
            let target = image.row_slice_mut(k);
            (self.data).add_transposed_row(k, 1.0, entries.entries(), target);
            if let Some(mean) = &self.mean {
                (target.iter_mut().zip(&sums)).for_each(|(t, sum)| *t -= mean[k] * sum);
            }
        }
        Some(image.into_array())
    }

    fn cache(&self) -> &Spectrum {
        &self.spectrum
    }

    fn factor(&self) -> Option<(f64, ArrayView2<'_, f64>)> {
        let dense = self.data.dense().filter(|_| self.mean.is_none());
        dense.map(|at| (self.scale, at))
    }

    fn product_work(&self) -> f64 {
        2.0 * self.data.stored() as f64
    }

    fn tracker<'a>(&'a self, x: ArrayView2<'_, f64>, threads: &Threads) -> Box<dyn Tracker + 'a> {
        Box::new(GramTracker {
            objective: self,
            threads: threads.clone(),
            w: self.times(x, &|| true),
            moments: self.moments(x),
        })
    }
}

/// Rows of C_BB that are completed together, so that entries read by columns stay in the cache.
const MIRRORED: usize = 8;

/// Rows of a block's gradient per parallel piece.
const GRADIENT_ROWS: usize = 16;

struct GramTracker<'a> {
    objective: &'a GramQuadratic<'a>,
    threads: Threads,
    w: Rows,
    moments: Moments,
}

impl Tracker for GramTracker<'_> {
    fn value(&self, _x: ArrayView2<'_, f64>) -> f64 {
        let square: f64 = match &self.moments {
            None => self.w.iter().map(|v| v * v).sum(),
            Some((by_mean, _)) => {
                self.w.outer_iter().map(|w| w.iter().zip(by_mean).map(|(w, u)| (w - u).powi(2)).sum::<f64>()).sum()
            }
        };
        0.5 * self.objective.scale * square
    }

    fn fill(&mut self, model: BlockModel<'_>) {
        let (objective, rows, r) = (self.objective, model.rows, model.columns());
        model.curvature.fill(0.0);
        objective.entries(rows, model.curvature, &self.threads, &|| true);
        let (stride, moments, w) = (model.stride, &self.moments, &self.w);
        let work = rows.len() * r * objective.data.stored() / objective.data.features();
        (self.threads).for_chunks(model.gradient, GRADIENT_ROWS * stride, work, |piece, targets| {
            let rows = &rows[piece * GRADIENT_ROWS..];
            for (&row, target) in rows.iter().zip(targets.chunks_exact_mut(stride)) {
                objective.gradient_row(row, w, moments, &mut target[..r]);
            }
        });
    }

    fn commit(&mut self, moved: Moved<'_>, threads: &Threads) {
        let (delta, objective) = (moved.delta(), self.objective);
        let rows: Vec<usize> = (0..moved.len()).map(|k| moved.row(k)).collect();
        (objective.data).add_outers(&rows, delta, self.w.entries_mut(), threads);
        if let (Some(mean), Some((by_mean, by_sum))) = (&objective.mean, &mut self.moments) {
            for (&row, step) in rows.iter().zip(delta.outer_iter()) {
                by_mean.scaled_add(mean[row], &step);
                by_sum.scaled_add(objective.sums[row], &step);
            }
        }
    }

    fn gradient_row(&self, row: usize, target: &mut [f64]) {
        self.objective.gradient_row(row, &self.w, &self.moments, target);
    }

    fn gradient(&self, threads: &Threads) -> Array2<f64> {
        self.objective.transposed_times(&self.w, &self.moments, threads, &|| true)
    }

    fn refresh(&mut self, x: ArrayView2<'_, f64>, _threads: &Threads) {
        self.w = self.objective.times(x, &|| true);
        self.moments = self.objective.moments(x);
    }
}
