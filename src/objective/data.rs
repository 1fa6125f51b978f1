//! The data matrix A of a [`GramQuadratic`](super::GramQuadratic): m samples by n features, dense or sparse.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};

use super::{GoOn, check_data, largest};
use crate::error::{Error, Result};
use crate::linalg::{add_product, dot};
use crate::rows::{PIECE, Rows, rows_of, slice_of};
use crate::simd::{LANES, arch};
use crate::threads::{CHUNK_ROWS, Threads};

/// Samples that are copied for a product of some columns.
const SAMPLES: usize = 4096;

/// A sparse vector: the rows of its nonzeros, and their values.
pub type SparseVector<'a> = (&'a [usize], &'a [f64]);

/// The data matrix A (m samples by n features), accessed only by products and columns.
///
/// W is m×r, by rows; r is the row length of the result.
pub trait Data: Debug + Send + Sync {
    /// Returns the number of samples m.
    fn samples(&self) -> usize;

    /// Returns the number of features n.
    fn features(&self) -> usize;

    /// Returns the number of stored entries: multiply-adds of A x.
    fn stored(&self) -> usize;

    /// Returns the largest magnitude of an entry.
    fn largest(&self) -> f64;

    /// Returns Aᵀ (n×m by rows) if A is dense.
    fn dense(&self) -> Option<ArrayView2<'_, f64>> {
        None
    }

    /// Subtracts column means where this takes little memory. Returns the means that products still have to
    /// subtract, 0 for a centred column; None means that all columns are centred.
    fn center(&mut self, mean: Array1<f64>) -> Option<Array1<f64>>;

    /// Returns ‖A_k − mean_k‖² of every column, for the means returned by [`center`](Self::center).
    fn squares(&self, mean: Option<&Array1<f64>>) -> Vec<f64>;

    /// Returns A X (m×r), incomplete if `go_on` returned false.
    fn times(&self, x: ArrayView2<'_, f64>, go_on: GoOn<'_>) -> Array2<f64>;

    /// Adds `scale · A_kᵀ W` to `target` (r entries).
    fn add_transposed_row(&self, k: usize, scale: f64, w: &[f64], target: &mut [f64]);

    /// Adds the rows of `scale · AᵀW` from row `from` on, r entries each, to `target`.
    fn add_transposed(&self, from: usize, r: usize, scale: f64, w: &[f64], target: &mut [f64]) {
        for (k, row) in target.chunks_exact_mut(r).enumerate() {
            self.add_transposed_row(from + k, scale, w, row);
        }
    }

    /// Adds `A_k stepᵀ` to W.
    fn add_outer(&self, k: usize, step: &[f64], w: &mut [f64]);

    /// Adds `A_K ΔX` to W for K = `columns` and ΔX by rows.
    fn add_outers(&self, columns: &[usize], delta: ArrayView2<'_, f64>, w: &mut [f64], _threads: &Threads) {
        for (&k, step) in columns.iter().zip(delta.outer_iter()) {
            self.add_outer(k, &slice_of(step), w);
        }
    }

    /// Adds `scale · BBᵀW` to `image`, both m×r by rows, for B = A − 1 meanᵀ; returns false if `go_on` ended the
    /// computation. A is read once, and nothing of n rows is stored.
    fn add_outer_gram(
        &self,
        (scale, mean): (f64, Option<&Array1<f64>>),
        (w, r): (&[f64], usize),
        image: &mut [f64],
        go_on: GoOn<'_>,
    ) -> bool {
        let mut centred = Centred::new(w, r);
        let mut part = vec![0.0; r];
        for k in 0..self.features() {
            if k % CHUNK_ROWS == 0 && !go_on() {
                return false;
            }
            part.fill(0.0);
            self.add_transposed_row(k, scale, w, &mut part);
            centred.visit(scale, mean.map_or(0.0, |mean| mean[k]), &mut part);
            self.add_outer(k, &part, image);
        }
        centred.finish(image);
        true
    }

    /// Adds `scale · AᵀA v` to the target (n entries) of each sparse vector v.
    fn add_gram(&self, vectors: &[SparseVector<'_>], scale: f64, targets: &mut [&mut [f64]]);

    /// Returns A_kᵀA_l.
    fn inner(&self, k: usize, l: usize) -> f64;

    /// Returns the mean multiply-adds of [`add_gram`](Self::add_gram) for a vector with one nonzero.
    fn gram_column_work(&self) -> f64 {
        self.stored() as f64
    }

    /// Adds the upper triangle of `A_Kᵀ A_K` for K = `columns` to `target`, by rows; returns false if `go_on` ended
    /// the computation.
    fn add_inner(&self, columns: &[usize], target: &mut [f64], threads: &Threads, go_on: GoOn<'_>) -> bool;

    /// Returns the number of stored entries of `columns`.
    fn stored_in(&self, columns: &[usize]) -> usize;

    /// Returns the matrix of the given columns.
    fn select(&self, columns: &[usize]) -> Arc<dyn Data>;
}

/// The terms of column means in a product with AAᵀ.
pub(super) struct Centred {
    /// 1ᵀW.
    sums: Vec<f64>,
    /// The amount that the means subtract from every row.
    shift: Vec<f64>,
}

impl Centred {
    pub(super) fn new(w: &[f64], r: usize) -> Self {
        let mut sums = vec![0.0; r];
        w.chunks_exact(r.max(1)).for_each(|row| add(&mut sums, 1.0, row));
        Self { sums, shift: vec![0.0; r] }
    }

    /// Centres the product `part` of one column.
    #[inline(always)]
    pub(super) fn visit(&mut self, scale: f64, mean: f64, part: &mut [f64]) {
        if mean != 0.0 {
            add(part, -scale * mean, &self.sums);
            add(&mut self.shift, mean, part);
        }
    }

    pub(super) fn finish(&self, image: &mut [f64]) {
        if self.shift.iter().any(|&v| v != 0.0) {
            let rows = image.chunks_exact_mut(self.shift.len());
            rows.for_each(|row| add(row, -1.0, &self.shift));
        }
    }
}

/// A dense A, stored by columns.
#[derive(Debug, Clone)]
pub struct DenseColumns<'a> {
    entries: Cow<'a, [f64]>,
    samples: usize,
    largest: f64,
}

impl<'a> DenseColumns<'a> {
    /// Creates the data from A (m×n), which is borrowed if its columns are contiguous, else copied.
    ///
    /// # Errors
    /// If it is empty, not finite, or its largest magnitude is neither 0 nor in 1e-50 … 1e50.
    pub fn new(a: ArrayView2<'a, f64>) -> Result<Self> {
        let samples = a.nrows();
        match a.reversed_axes().to_slice() {
            Some(entries) => Self::of(entries.into(), samples),
            None => Self::from_transposed(Rows::copied(a.t()).into_array()),
        }
    }

    /// Creates the data from Aᵀ (n×m).
    ///
    /// # Errors
    /// Same as [`DenseColumns::new`].
    pub fn from_transposed(at: Array2<f64>) -> Result<Self> {
        let samples = at.ncols();
        Self::of(Rows::from(at).into_entries().into(), samples)
    }

    fn of(entries: Cow<'a, [f64]>, samples: usize) -> Result<Self> {
        if entries.is_empty() {
            return Err(Error::invalid("A", "must not be empty"));
        }
        let largest = check_data("A", &*entries)?;
        Ok(Self { entries, samples, largest })
    }

    /// Aᵀ.
    fn at(&self) -> ArrayView2<'_, f64> {
        ArrayView2::from_shape((self.features(), self.samples), &self.entries).expect("m entries for every feature")
    }

    /// A_k.
    #[inline(always)]
    fn column(&self, k: usize) -> &[f64] {
        &self.entries[k * self.samples..][..self.samples]
    }
}

impl Data for DenseColumns<'_> {
    fn samples(&self) -> usize {
        self.samples
    }

    fn features(&self) -> usize {
        self.entries.len() / self.samples
    }

    fn stored(&self) -> usize {
        self.entries.len()
    }

    fn largest(&self) -> f64 {
        self.largest
    }

    fn dense(&self) -> Option<ArrayView2<'_, f64>> {
        Some(self.at())
    }

    fn center(&mut self, mean: Array1<f64>) -> Option<Array1<f64>> {
        let columns = self.entries.to_mut().chunks_exact_mut(self.samples);
        for (column, mean) in columns.zip(mean) {
            column.iter_mut().for_each(|v| *v -= mean);
        }
        self.largest = largest(&*self.entries);
        None
    }

    fn squares(&self, _mean: Option<&Array1<f64>>) -> Vec<f64> {
        // In a single sum every addition waits for the previous one.
        let mut squares = vec![0.0; self.features()];
        for (block, sums) in squares.chunks_mut(LANES).enumerate() {
            let column = |lane| self.column(block * LANES + usize::min(lane, sums.len() - 1));
            let columns: [&[f64]; LANES] = std::array::from_fn(column);
            let mut lanes = [0.0; LANES];
            for i in 0..self.samples {
                for (sum, column) in lanes.iter_mut().zip(columns) {
                    *sum += column[i] * column[i];
                }
            }
            sums.copy_from_slice(&lanes[..sums.len()]);
        }
        squares
    }

    fn times(&self, x: ArrayView2<'_, f64>, go_on: GoOn<'_>) -> Array2<f64> {
        let mut w = Array2::zeros((self.samples(), x.ncols()));
        // For an X with few nonzero rows only their features are read.
        if 4 * x.outer_iter().filter(|row| is_nonzero(row)).count() < x.nrows() {
            let rows: Vec<usize> = (0..x.nrows()).filter(|&k| is_nonzero(&x.row(k))).collect();
            let (at, x) = (self.at().select(Axis(0), &rows), x.select(Axis(0), &rows));
            general_mat_mul(1.0, &at.t(), &x, 0.0, &mut w);
            return w;
        }
        let pieces = w.axis_chunks_iter_mut(Axis(0), CHUNK_ROWS);
        for (mut w, at) in pieces.zip(self.at().axis_chunks_iter(Axis(1), CHUNK_ROWS)) {
            if !go_on() {
                break;
            }
            general_mat_mul(1.0, &at.t(), &x, 0.0, &mut w);
        }
        w
    }

    fn add_transposed_row(&self, k: usize, scale: f64, w: &[f64], target: &mut [f64]) {
        for (&value, w) in self.column(k).iter().zip(w.chunks_exact(target.len())) {
            add(target, scale * value, w);
        }
    }

    fn add_transposed(&self, from: usize, r: usize, scale: f64, w: &[f64], target: &mut [f64]) {
        let mut target = rows_of(target, r);
        let at = self.at();
        let at = at.slice(s![from..from + target.nrows(), ..]);
        let w = ArrayView2::from_shape((self.samples(), r), w).expect("W by rows");
        general_mat_mul(scale, &at, &w, 1.0, &mut target);
    }

    fn add_outer(&self, k: usize, step: &[f64], w: &mut [f64]) {
        for (w, &value) in w.chunks_exact_mut(step.len()).zip(self.column(k)) {
            add(w, value, step);
        }
    }

    fn add_outers(&self, columns: &[usize], delta: ArrayView2<'_, f64>, w: &mut [f64], threads: &Threads) {
        let (r, work) = (delta.ncols(), delta.len() * self.samples);
        threads.for_chunks(w, CHUNK_ROWS * r, work, |piece, target| {
            let from = piece * CHUNK_ROWS;
            let samples = self.at().slice_move(s![.., from..from + target.len() / r]);
            add_product(samples.select(Axis(0), columns).t(), delta, target);
        });
    }

    /// Reads A once for all vectors.
    fn add_gram(&self, vectors: &[SparseVector<'_>], scale: f64, targets: &mut [&mut [f64]]) {
        let image = |(rows, values): &SparseVector<'_>| {
            let mut image = vec![0.0; self.samples];
            for (&k, &v) in rows.iter().zip(*values) {
                add(&mut image, scale * v, self.column(k));
            }
            image
        };
        let images: Vec<Vec<f64>> = vectors.iter().map(image).collect();
        arch().dispatch(
            #[inline(always)]
            || {
                for (k, column) in self.entries.chunks_exact(self.samples).enumerate() {
                    for (targets, images) in targets.chunks_mut(VECTORS).zip(images.chunks(VECTORS)) {
                        let products = inner_products(column, images);
                        for (target, product) in targets.iter_mut().zip(products) {
                            target[k] += product;
                        }
                    }
                }
            },
        );
    }

    fn inner(&self, k: usize, l: usize) -> f64 {
        dot(self.column(k), self.column(l))
    }

    fn stored_in(&self, columns: &[usize]) -> usize {
        columns.len() * self.samples
    }

    fn select(&self, columns: &[usize]) -> Arc<dyn Data> {
        let entries: Vec<f64> = columns.iter().flat_map(|&k| self.column(k)).copied().collect();
        Arc::new(DenseColumns { entries: entries.into(), ..*self })
    }

    /// Computes `PIECE` rows, for some samples, between two calls of `go_on`.
    fn add_inner(&self, columns: &[usize], target: &mut [f64], threads: &Threads, go_on: GoOn<'_>) -> bool {
        let (count, stopped) = (columns.len(), AtomicBool::new(false));
        for samples in self.at().axis_chunks_iter(Axis(1), SAMPLES) {
            let chosen = samples.select(Axis(0), columns);
            let work = count * chosen.len();
            threads.for_chunks(target, PIECE * count, work, |piece, panel| {
                if !go_on() {
                    stopped.store(true, Ordering::Relaxed);
                    return;
                }
                let from = piece * PIECE;
                let rows = chosen.slice(s![from..from + panel.len() / count, ..]);
                add_product(rows, chosen.slice(s![from.., ..]).t(), panel);
            });
        }
        !stopped.into_inner()
    }
}

/// Vectors whose products with a column are computed together.
const VECTORS: usize = 4;

/// Returns the inner products of a column with at most [`VECTORS`] vectors.
#[inline(always)]
fn inner_products(column: &[f64], vectors: &[Vec<f64>]) -> [f64; VECTORS] {
    let mut products = [0.0; VECTORS];
    match vectors {
        [vector] => products[0] = together(column, [vector])[0],
        [a, b, c, d] => products = together(column, [a, b, c, d]),
        _ => {
            for (product, vector) in products.iter_mut().zip(vectors) {
                *product = together(column, [vector])[0];
            }
        }
    }
    products
}

/// Returns the inner products of a column with N vectors.
#[inline(always)]
fn together<const N: usize>(column: &[f64], vectors: [&[f64]; N]) -> [f64; N] {
    let mut sums = [[0.0; LANES]; N];
    let whole = column.len() / LANES * LANES;
    for from in (0..whole).step_by(LANES) {
        let a = &column[from..from + LANES];
        for (sums, vector) in sums.iter_mut().zip(vectors) {
            let b = &vector[from..from + LANES];
            for k in 0..LANES {
                sums[k] += a[k] * b[k];
            }
        }
    }
    std::array::from_fn(|n| {
        let rest = column[whole..].iter().zip(&vectors[n][whole..]);
        rest.map(|(a, b)| a * b).sum::<f64>() + sums[n].iter().sum::<f64>()
    })
}

/// `target += factor · x`.
#[inline(always)]
pub(super) fn add(target: &mut [f64], factor: f64, x: &[f64]) {
    target.iter_mut().zip(x).for_each(|(t, &x)| *t += factor * x);
}

pub(super) fn is_nonzero(row: &ArrayView1<'_, f64>) -> bool {
    row.iter().any(|&v| v != 0.0)
}
