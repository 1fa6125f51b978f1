//! Sparse data of a [`GramQuadratic`](super::GramQuadratic), by columns and, for columns of AᵀA, by samples.

use std::sync::{Arc, OnceLock};

use ndarray::{Array1, Array2, ArrayView2};

use super::data::{Centred, SparseVector, add, is_nonzero};
use super::{Data, GoOn, check_data, largest};
use crate::error::{Error, Result};
use crate::rows::Rows;
use crate::threads::{CHUNK_ROWS, Threads};

/// Entries of columns are sorted by counting if there is at least one for this number of samples.
const COUNTED: usize = 16;

/// A sparse m×n matrix by columns (CSC).
#[derive(Debug, Clone)]
pub struct SparseColumns {
    samples: usize,
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
    /// The matrix by samples (CSR), built for the first column of AᵀA, which reads few samples.
    by_samples: OnceLock<Compressed>,
}

/// Sparse vectors in sequence: start of each vector, indices and values of its entries.
#[derive(Debug, Clone)]
struct Compressed {
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
}

impl SparseColumns {
    /// Creates the matrix from the arrays of a CSC matrix with `samples` rows.
    ///
    /// # Errors
    /// If the arrays are inconsistent, the row indices of a column are not strictly increasing (no
    /// duplicates) and below `samples`, a size is not below `u32::MAX`, or
    /// [`DenseColumns::new`](super::DenseColumns::new) would reject the values.
    pub fn new(samples: usize, starts: Vec<usize>, indices: Vec<u32>, values: Vec<f64>) -> Result<Self> {
        let consistent = starts.len() >= 2
            && starts[0] == 0
            && starts.windows(2).all(|w| w[0] <= w[1])
            && starts[starts.len() - 1] == indices.len()
            && indices.len() == values.len();
        if !consistent {
            return Err(Error::invalid(
                "A",
                "must have column starts that rise from 0 to the number of its indices and values",
            ));
        }
        for (size, what) in [(samples, "rows"), (starts.len() - 1, "columns")] {
            if size == 0 || size >= u32::MAX as usize {
                let most = u32::MAX - 1;
                return Err(Error::invalid("A", format!("must have between 1 and {most} {what}, got {size}")));
            }
        }
        for w in starts.windows(2) {
            let rows = &indices[w[0]..w[1]];
            if rows.windows(2).any(|pair| pair[0] >= pair[1])
                || rows.last().is_some_and(|&last| last as usize >= samples)
            {
                return Err(Error::invalid(
                    "A",
                    format!("must have strictly increasing row indices below {samples} in every column"),
                ));
            }
        }
        check_data("A", &values)?;
        Ok(Self { samples, starts, indices, values, by_samples: OnceLock::new() })
    }

    /// Returns the matrix by samples, built at the first call.
    fn by_samples(&self) -> &Compressed {
        self.by_samples.get_or_init(|| {
            let mut starts = vec![0; self.samples + 1];
            self.indices.iter().for_each(|&i| starts[i as usize + 1] += 1);
            for i in 0..self.samples {
                starts[i + 1] += starts[i];
            }
            let mut next = starts.clone();
            let mut indices = vec![0; self.indices.len()];
            let mut values = vec![0.0; self.values.len()];
            for k in 0..self.columns() {
                for (i, value) in self.column(k) {
                    indices[next[i]] = k as u32;
                    values[next[i]] = value;
                    next[i] += 1;
                }
            }
            Compressed { starts, indices, values }
        })
    }

    fn columns(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the (sample, value) pairs of column `k`.
    #[inline(always)]
    fn column(&self, k: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.starts[k]..self.starts[k + 1];
        self.indices[range.clone()].iter().map(|&i| i as usize).zip(self.values[range].iter().copied())
    }

    /// Returns the entries (sample, place in `columns`, value) of some columns, by samples and then by places.
    fn entries_by_sample(&self, columns: &[usize]) -> Vec<(usize, usize, f64)> {
        let all = || {
            let columns = columns.iter().enumerate();
            columns.flat_map(|(slot, &k)| self.column(k).map(move |(i, value)| (i, slot, value)))
        };
        let count = self.stored_in(columns);
        if self.samples > COUNTED * count {
            let mut entries: Vec<_> = all().collect();
            entries.sort_unstable_by_key(|&(i, slot, _)| (i, slot));
            return entries;
        }
        let mut next = vec![0; self.samples + 1];
        all().for_each(|(i, ..)| next[i + 1] += 1);
        for i in 0..self.samples {
            next[i + 1] += next[i];
        }
        let mut entries = vec![(0, 0, 0.0); count];
        all().for_each(|entry| {
            entries[next[entry.0]] = entry;
            next[entry.0] += 1;
        });
        entries
    }

    /// Stores columns that are more than half full as dense columns minus their means, which become 0.
    fn center_full_columns(&mut self, mean: &mut Array1<f64>) {
        let m = self.samples;
        let full = |k: usize| 2 * (self.starts[k + 1] - self.starts[k]) > m;
        if !(0..self.columns()).any(full) {
            return;
        }
        let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for (k, mean) in mean.iter_mut().enumerate() {
            if full(k) {
                let from = values.len();
                indices.extend(0..m as u32);
                values.resize(from + m, -*mean);
                for (i, value) in self.column(k) {
                    values[from + i] = value - *mean;
                }
                *mean = 0.0;
            } else {
                let range = self.starts[k]..self.starts[k + 1];
                indices.extend_from_slice(&self.indices[range.clone()]);
                values.extend_from_slice(&self.values[range]);
            }
            starts.push(values.len());
        }
        (self.starts, self.indices, self.values) = (starts, indices, values);
        self.by_samples = OnceLock::new();
    }
}

impl SparseColumns {
    /// Adds the columns `range` of [`Data::add_outer_gram`].
    fn outer_of(
        &self,
        range: std::ops::Range<usize>,
        (scale, mean): (f64, Option<&Array1<f64>>),
        w: &[f64],
        part: &mut [f64],
        (centred, image): (&mut Centred, &mut [f64]),
    ) {
        let r = part.len();
        crate::simd::arch().dispatch(
            #[inline(always)]
            || {
                for k in range {
                    part.fill(0.0);
                    match r {
                        4 => self.gather::<4>(k, scale, w, part),
                        8 => self.gather::<8>(k, scale, w, part),
                        12 => self.gather::<12>(k, scale, w, part),
                        _ => (self.column(k)).for_each(|(i, v)| add(part, scale * v, &w[i * r..][..r])),
                    }
                    centred.visit(scale, mean.map_or(0.0, |mean| mean[k]), part);
                    match r {
                        4 => self.scatter::<4>(k, part, image),
                        8 => self.scatter::<8>(k, part, image),
                        12 => self.scatter::<12>(k, part, image),
                        _ => (self.column(k)).for_each(|(i, v)| add(&mut image[i * r..][..r], v, part)),
                    }
                }
            },
        );
    }

    /// Adds `scale · A_kᵀW` to `part` for W of R columns.
    #[inline(always)]
    fn gather<const R: usize>(&self, k: usize, scale: f64, w: &[f64], part: &mut [f64]) {
        let mut sum = [0.0; R];
        let (rows, _) = w.as_chunks::<R>();
        for (i, value) in self.column(k) {
            let row = &rows[i];
            for lane in 0..R {
                sum[lane] += value * row[lane];
            }
        }
        part.iter_mut().zip(sum).for_each(|(p, s)| *p += scale * s);
    }

    /// Adds `A_k partᵀ` to an image of R columns.
    #[inline(always)]
    fn scatter<const R: usize>(&self, k: usize, part: &[f64], image: &mut [f64]) {
        let Some(part) = part.first_chunk::<R>() else {
            return;
        };
        let (rows, _) = image.as_chunks_mut::<R>();
        for (i, value) in self.column(k) {
            let row = &mut rows[i];
            for lane in 0..R {
                row[lane] += value * part[lane];
            }
        }
    }
}

impl Data for SparseColumns {
    fn samples(&self) -> usize {
        self.samples
    }

    fn features(&self) -> usize {
        self.columns()
    }

    fn stored(&self) -> usize {
        self.values.len()
    }

    fn largest(&self) -> f64 {
        largest(&self.values)
    }

    fn center(&mut self, mut mean: Array1<f64>) -> Option<Array1<f64>> {
        self.center_full_columns(&mut mean);
        Some(mean)
    }

    fn squares(&self, mean: Option<&Array1<f64>>) -> Vec<f64> {
        let square = |k| {
            let mean = mean.map_or(0.0, |mean| mean[k]);
            let stored: f64 = self.column(k).map(|(_, v)| (v - mean).powi(2)).sum();
            let absent = self.samples - (self.starts[k + 1] - self.starts[k]);
            stored + absent as f64 * mean * mean
        };
        (0..self.columns()).map(square).collect()
    }

    fn times(&self, x: ArrayView2<'_, f64>, go_on: GoOn<'_>) -> Array2<f64> {
        let mut w = Rows::zeros((self.samples, x.ncols()));
        let mut entries = vec![0.0; x.ncols()];
        for (k, row) in x.outer_iter().enumerate() {
            if k % CHUNK_ROWS == 0 && !go_on() {
                break;
            }
            if is_nonzero(&row) {
                entries.iter_mut().zip(row).for_each(|(e, &v)| *e = v);
                self.add_outer(k, &entries, w.entries_mut());
            }
        }
        w.into_array()
    }

    fn add_transposed_row(&self, k: usize, scale: f64, w: &[f64], target: &mut [f64]) {
        let r = target.len();
        for (i, value) in self.column(k) {
            add(target, scale * value, &w[i * r..][..r]);
        }
    }

    fn add_outer(&self, k: usize, step: &[f64], w: &mut [f64]) {
        let r = step.len();
        // Plain slices: views of rows cost more than the products for small r.
        for (i, value) in self.column(k) {
            add(&mut w[i * r..][..r], value, step);
        }
    }

    /// Adds the columns one after the other, for pieces of the vectors of W.
    fn add_outer_gram(
        &self,
        (scale, mean): (f64, Option<&Array1<f64>>),
        (w, r): (&[f64], usize),
        image: &mut [f64],
        go_on: GoOn<'_>,
    ) -> bool {
        let mut centred = Centred::new(w, r);
        let mut part = vec![0.0; r];
        for from in (0..self.columns()).step_by(CHUNK_ROWS) {
            if !go_on() {
                return false;
            }
            let range = from..self.columns().min(from + CHUNK_ROWS);
            self.outer_of(range, (scale, mean), w, &mut part, (&mut centred, image));
        }
        centred.finish(image);
        true
    }

    /// Reads only the samples in which A v is not zero.
    fn add_gram(&self, vectors: &[SparseVector<'_>], scale: f64, targets: &mut [&mut [f64]]) {
        let by_samples = self.by_samples();
        let mut image = vec![0.0; self.samples];
        for ((rows, values), target) in vectors.iter().zip(targets) {
            let mut samples = Vec::new();
            for (&k, &v) in rows.iter().zip(*values) {
                for (i, value) in self.column(k) {
                    image[i] += value * v;
                    samples.push(i);
                }
            }
            for i in samples {
                // A sample that is listed twice is zero the second time.
                let value = std::mem::take(&mut image[i]);
                if value != 0.0 {
                    let range = by_samples.starts[i]..by_samples.starts[i + 1];
                    let entries = by_samples.indices[range.clone()].iter();
                    for (&j, &other) in entries.zip(&by_samples.values[range]) {
                        target[j as usize] += scale * other * value;
                    }
                }
            }
        }
    }

    fn inner(&self, k: usize, l: usize) -> f64 {
        let mut others = self.column(l).peekable();
        let product = |(i, value): (usize, f64)| {
            while others.next_if(|other| other.0 < i).is_some() {}
            others.next_if(|other| other.0 == i).map_or(0.0, |other| value * other.1)
        };
        self.column(k).map(product).sum()
    }

    fn gram_column_work(&self) -> f64 {
        let starts = &self.by_samples().starts;
        let squares: f64 = starts.windows(2).map(|w| ((w[1] - w[0]) as f64).powi(2)).sum();
        squares / self.columns() as f64
    }

    fn stored_in(&self, columns: &[usize]) -> usize {
        columns.iter().map(|&k| self.starts[k + 1] - self.starts[k]).sum()
    }

    fn select(&self, columns: &[usize]) -> Arc<dyn Data> {
        let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for &k in columns {
            let range = self.starts[k]..self.starts[k + 1];
            indices.extend_from_slice(&self.indices[range.clone()]);
            values.extend_from_slice(&self.values[range]);
            starts.push(values.len());
        }
        Arc::new(Self { samples: self.samples, starts, indices, values, by_samples: OnceLock::new() })
    }

    /// Sums over the samples; the work of a sample is the square of its nonzeros in `columns`.
    fn add_inner(&self, columns: &[usize], target: &mut [f64], _threads: &Threads, go_on: GoOn<'_>) -> bool {
        let count = columns.len();
        let entries = self.entries_by_sample(columns);
        for (done, sample) in entries.chunk_by(|a, b| a.0 == b.0).enumerate() {
            if done % CHUNK_ROWS == 0 && !go_on() {
                return false;
            }
            for (k, &(_, a, u)) in sample.iter().enumerate() {
                let row = &mut target[a * count..][..count];
                sample[k..].iter().for_each(|&(_, b, v)| row[b] += u * v);
            }
        }
        true
    }
}
