//! Second moments `Σ_i w_i z_i z_iᵀ` of samples that arrive in blocks of rows, in one pass.
//!
//! [`Moments`] keeps one triangle of the sums, in strips of rows (`triangle.rs`), and updates it in place.
//! Two kinds of sums share this layout:
//!
//! * [`Precision::Fast`] (`fast.rs`): products in double precision of samples minus a shift, combined by the
//!   update of Chan, Golub and LeVeque (1983);
//! * [`Precision::Exact`] (`exact.rs`): products added without rounding to two sums each, kept in two doubles
//!   (`product.rs`).
//!
//! Rows are buffered (O(n) each); the triangle is updated when there are [`BLOCK_ROWS`] of them. A block of m
//! rows costs m·n²/2 multiply-adds, and exact sums as many again with two additions each unless entries have
//! few bits. Clones share their arrays until one of them changes.

mod exact;
mod fast;
mod pair;
mod product;
mod triangle;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::internal::Rows;
use crate::threads::Threads;

use exact::Exact;
use fast::Fast;
use triangle::Strip;

/// Rows that are buffered before the triangle is read and written once.
pub const BLOCK_ROWS: usize = 1 << 11;

/// Largest variance of a feature, relative to its mean square, that counts as rounding of a constant feature.
pub(crate) const CONSTANT: f64 = f64::from_bits((1023 - 90) << 52);

/// Precision of sums over samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Products in double precision.
    Fast,
    /// No rounding before the last bit: neither the order nor the blocks of the samples change a bit.
    Exact,
}

/// Samples that are buffered before they are summed.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Block {
    /// Row by row.
    entries: Vec<f64>,
    /// Weight of each row; None if all weights are 1.
    weights: Option<Vec<f64>>,
    rows: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Sums {
    Fast(Fast),
    Exact(Exact),
}

/// Sums over samples of n features: their number, weight, means and second moments.
#[derive(Debug, Clone)]
pub struct Moments {
    n: usize,
    rows: u64,
    /// Buffered rows, fewer than [`BLOCK_ROWS`] in total.
    pending: Vec<Arc<Block>>,
    sums: Sums,
}

/// Result of [`Moments::read`].
#[derive(Debug, Clone)]
pub struct Read {
    /// Means of the features, divided by `deviation` if there is one.
    pub mean: Vec<f64>,
    /// `−AᵀA`, symmetric, n × n, for the samples A, centred and divided by `deviation` as requested, with
    /// rows multiplied by the roots of their weights.
    pub negative: Array2<f64>,
    /// Standard deviations, 1 for a constant feature; None unless requested.
    pub deviation: Option<Vec<f64>>,
}

impl Moments {
    /// Creates moments of no samples with `n` features.
    pub fn new(n: usize, precision: Precision) -> Self {
        let sums = match precision {
            Precision::Fast => Sums::Fast(Fast::new(n)),
            Precision::Exact => Sums::Exact(Exact::new(n)),
        };
        Self { n, rows: 0, pending: Vec::new(), sums }
    }

    /// Returns the most numbers kept by sums, plus those of a block of rows while it is summed.
    pub fn numbers(n: usize, precision: Precision) -> f64 {
        let (n, rows) = (n as f64, BLOCK_ROWS as f64);
        match precision {
            Precision::Fast => 0.5 * n * n + (triangle::HEIGHT as f64 + 2.0 * rows) * n,
            Precision::Exact => n * n + (2.0 * triangle::HEIGHT as f64 + 3.0 * rows) * n,
        }
    }

    /// Returns the number of features.
    pub fn features(&self) -> usize {
        self.n
    }

    /// Returns the number of samples, whatever their weights.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the bytes of the stored rows of the triangle.
    pub fn bytes(&self) -> usize {
        let count = self.n * (self.n + 1) / 2;
        match &self.sums {
            Sums::Fast(sums) if !sums.is_empty() => 8 * count,
            Sums::Exact(sums) if !sums.is_empty() => 16 * count,
            _ => 0,
        }
    }

    /// Returns the precision of the sums.
    pub fn precision(&self) -> Precision {
        match self.sums {
            Sums::Fast(_) => Precision::Fast,
            Sums::Exact(_) => Precision::Exact,
        }
    }

    /// Returns the number of samples, or the sum of their weights.
    pub fn weight(&self) -> f64 {
        let summed = match &self.sums {
            Sums::Fast(sums) => sums.weight,
            Sums::Exact(sums) => sums.weight(),
        };
        let waiting = |block: &Arc<Block>| match &block.weights {
            Some(weights) => weights.iter().sum(),
            None => block.rows as f64,
        };
        summed + self.pending.iter().map(waiting).sum::<f64>()
    }

    /// Returns the number of rows that can be added before the triangle is updated; at least 1.
    pub fn free_rows(&self) -> usize {
        BLOCK_ROWS - self.waiting()
    }

    fn waiting(&self) -> usize {
        self.pending.iter().map(|block| block.rows).sum()
    }

    /// Adds samples, the rows of an array of any layout, with the given `weights` (default 1).
    ///
    /// # Errors
    /// If the rows do not have n entries, or `weights` does not have one number per row. The caller must
    /// check that entries and weights are finite and weights nonnegative.
    pub fn add(&mut self, rows: ArrayView2<'_, f64>, weights: Option<&[f64]>, threads: &Threads) -> Result<()> {
        let m = rows.nrows();
        if rows.ncols() != self.n {
            let message = format!("must have {} columns, got {}", self.n, rows.ncols());
            return Err(Error::invalid("rows", message));
        }
        if weights.is_some_and(|weights| weights.len() != m) {
            let message = format!("must have a number for each of the {m} rows");
            return Err(Error::invalid("weights", message));
        }
        let mut start = 0;
        while start < m {
            let to = m.min(start + self.free_rows());
            let part = rows.slice(ndarray::s![start..to, ..]);
            let entries = Rows::copied(part).into_entries();
            self.take(entries, weights.map(|w| w[start..to].to_vec()), threads);
            start = to;
        }
        Ok(())
    }

    /// Adds at most [`free_rows`](Self::free_rows) samples whose entries are given row by row.
    pub(crate) fn take(&mut self, entries: Vec<f64>, weights: Option<Vec<f64>>, threads: &Threads) {
        let rows = entries.len() / self.n;
        self.rows += rows as u64;
        self.pending.push(Arc::new(Block { entries, weights, rows }));
        if self.waiting() >= BLOCK_ROWS {
            self.flush(threads);
        }
    }

    /// Sums the buffered rows.
    fn flush(&mut self, threads: &Threads) {
        if self.pending.is_empty() {
            return;
        }
        let block = joined(std::mem::take(&mut self.pending));
        match &mut self.sums {
            Sums::Fast(sums) => sums.add(&block, threads),
            Sums::Exact(sums) => sums.add(&block, threads),
        }
    }

    /// Converts exact sums to faster sums in double precision; fast sums are unchanged.
    pub fn make_fast(&mut self) {
        if let Sums::Exact(sums) = &self.sums {
            self.sums = Sums::Fast(if sums.is_empty() { Fast::new(self.n) } else { sums.to_fast() });
        }
    }

    /// Adds the samples of `other`. If the kinds differ, the result is [`Precision::Fast`].
    ///
    /// # Errors
    /// If `other` has a different number of features.
    pub fn merge(&mut self, other: &Self, threads: &Threads) -> Result<()> {
        if other.n != self.n {
            let message = format!("must have {} features, got {}", self.n, other.n);
            return Err(Error::invalid("other", message));
        }
        if self.precision() != other.precision() {
            self.make_fast();
        }
        match (&mut self.sums, &other.sums) {
            (Sums::Fast(sums), Sums::Fast(more)) => sums.merge(more, threads),
            (Sums::Exact(sums), Sums::Exact(more)) => sums.merge(more, threads),
            (Sums::Fast(sums), Sums::Exact(more)) if !more.is_empty() => {
                sums.merge(&more.to_fast(), threads);
            }
            _ => {}
        }
        self.rows += other.rows;
        for block in &other.pending {
            if self.waiting() + block.rows > BLOCK_ROWS {
                self.flush(threads);
            }
            self.pending.push(block.clone());
        }
        if self.waiting() >= BLOCK_ROWS {
            self.flush(threads);
        }
        Ok(())
    }

    /// Returns the samples, the rows of an array, and their weights; None if some are no longer buffered.
    pub fn buffered(&self) -> Option<(Array2<f64>, Option<Vec<f64>>)> {
        if self.rows != self.waiting() as u64 {
            return None;
        }
        let block = joined(self.pending.clone());
        let rows = Array2::from_shape_vec((block.rows, self.n), block.entries).ok()?;
        Some((rows, block.weights))
    }

    /// Returns the moments of all samples, centred and divided by standard deviations as requested. With
    /// `keep = false` the sums are freed on the way: memory stays near one n × n matrix, and no sums remain.
    ///
    /// # Errors
    /// If the weight of the samples is 0.
    pub fn read(&mut self, center: bool, scale: bool, keep: bool, threads: &Threads) -> Result<Read> {
        if !(self.weight() > 0.0) {
            return Err(Error::invalid("samples", "must have a positive weight"));
        }
        self.flush(threads);
        let read = match &mut self.sums {
            Sums::Fast(sums) => sums.read(center, scale, keep),
            Sums::Exact(sums) => sums.read(center, scale, keep),
        };
        if !keep {
            *self = Self::new(self.n, self.precision());
        }
        Ok(read)
    }

    /// Returns the sums as bytes, which [`restore`](Self::restore) reads.
    pub fn to_bytes(&self) -> Vec<u8> {
        let sums = (self.n, self.rows, joined(self.pending.clone()), &self.sums);
        postcard::to_extend(&sums, Vec::new()).expect("sums in memory can be written to memory")
    }

    /// Replaces the sums by those that [`to_bytes`](Self::to_bytes) has written, of the same features and precision.
    ///
    /// # Errors
    /// If the bytes are not those of such sums.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let whole = postcard::take_from_bytes(bytes).ok().filter(|(_, rest)| rest.is_empty());
        let read = whole.map(|((n, rows, block, sums), _): ((usize, u64, Block, Sums), _)| {
            let pending = if block.rows == 0 { Vec::new() } else { vec![Arc::new(block)] };
            Self { n, rows, pending, sums }
        });
        let same = |read: &Self| read.n == self.n && read.precision() == self.precision();
        let read = read.filter(|read| same(read) && read.is_consistent());
        *self = read.ok_or_else(|| Error::invalid("state", "must be that of a Moments"))?;
        Ok(())
    }

    /// Returns whether all arrays have their lengths, all numbers are finite and no weight is negative.
    fn is_consistent(&self) -> bool {
        let fits = |block: &Arc<Block>| {
            let weighted = |weights: &[f64]| weights.len() == block.rows && weights.iter().all(|w| *w >= 0.0);
            block.rows.checked_mul(self.n) == Some(block.entries.len())
                && block.weights.as_deref().is_none_or(|weights| weighted(weights) && are_finite(weights))
                && are_finite(&block.entries)
        };
        if !self.pending.iter().all(fits) {
            return false;
        }
        let waiting = self.waiting();
        let sums = match &self.sums {
            Sums::Fast(sums) => sums.is_consistent(self.n),
            Sums::Exact(sums) => sums.is_consistent(self.n) && sums.is_empty() == (self.rows == waiting as u64),
        };
        sums && waiting < BLOCK_ROWS && self.rows >= waiting as u64
    }
}

/// Returns the rows of all blocks; a single block is copied only if it is shared.
fn joined(mut blocks: Vec<Arc<Block>>) -> Block {
    if blocks.len() == 1
        && let Some(block) = blocks.pop()
    {
        return Arc::unwrap_or_clone(block);
    }
    let weighted = blocks.iter().any(|block| block.weights.is_some());
    let rows: usize = blocks.iter().map(|block| block.rows).sum();
    let mut entries = Vec::with_capacity(blocks.iter().map(|block| block.entries.len()).sum());
    let mut weights = Vec::with_capacity(if weighted { rows } else { 0 });
    for block in blocks {
        entries.extend_from_slice(&block.entries);
        match &block.weights {
            Some(own) => weights.extend_from_slice(own),
            None if weighted => weights.resize(weights.len() + block.rows, 1.0),
            None => {}
        }
    }
    Block { entries, weights: weighted.then_some(weights), rows }
}

/// What the moments are read from, besides the sums of products.
struct Summary {
    weight: f64,
    mean: Vec<f64>,
    /// Sums of squares of each feature about its mean.
    variances: Vec<f64>,
    /// Sums of squares about 0.
    squares: Vec<f64>,
}

impl Summary {
    /// Returns the moments, from sums of products about the means if `center`, otherwise about 0.
    fn read(mut self, center: bool, scale: bool, sums: impl Iterator<Item = Strip>) -> Read {
        let n = self.mean.len();
        let variances = self.variances.iter().zip(&self.squares);
        let varying: Vec<Option<f64>> = variances.map(|(&v, &square)| (v > CONSTANT * square).then_some(v)).collect();
        let deviation = |v: &Option<f64>| v.map_or(1.0, |v| (v / self.weight).sqrt());
        let deviation = scale.then(|| varying.iter().map(deviation).collect::<Vec<f64>>());
        let mut negative = Array2::zeros((n, n));
        sums.for_each(|strip| strip.write_negative(&mut negative, deviation.as_deref()));
        // Rows and columns of constant features hold the rounding of their sums.
        for (i, _) in varying.iter().enumerate().filter(|(_, v)| center && v.is_none()) {
            negative.row_mut(i).fill(0.0);
            negative.column_mut(i).fill(0.0);
        }
        for (mean, deviation) in self.mean.iter_mut().zip(deviation.iter().flatten()) {
            *mean /= deviation;
        }
        Read { mean: self.mean, negative, deviation }
    }
}

fn are_finite(values: &[f64]) -> bool {
    values.iter().all(|v| v.is_finite())
}
