//! Sparse data of a [`GramQuadratic`](super::GramQuadratic), by columns and, for columns of AᵀA, by samples.

use std::sync::{Arc, OnceLock};

use ndarray::{Array1, Array2, ArrayView2};

use super::data::{add, is_nonzero};
use super::{Data, GoOn, Inner, Products, check_data, largest};
use crate::error::{Error, Result};
use crate::rows::Rows;
use crate::threads::CHUNK_ROWS;

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
    pub fn new(
        samples: usize,
        starts: Vec<usize>,
        indices: Vec<u32>,
        values: Vec<f64>,
    ) -> Result<Self> {
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
            if size == 0 || size >= NO_SLOT as usize {
                let most = NO_SLOT - 1;
                return Err(Error::invalid(
                    "A",
                    format!("must have between 1 and {most} {what}, got {size}"),
                ));
            }
        }
        for w in starts.windows(2) {
            let rows = &indices[w[0]..w[1]];
            if rows.windows(2).any(|pair| pair[0] >= pair[1])
                || rows.last().is_some_and(|&last| last as usize >= samples)
            {
                return Err(Error::invalid(
                    "A",
                    format!(
                        "must have strictly increasing row indices below {samples} in every column"
                    ),
                ));
            }
        }
        check_data("A", &values)?;
        Ok(Self {
            samples,
            starts,
            indices,
            values,
            by_samples: OnceLock::new(),
        })
    }

    /// Returns the matrix by samples, built at the first call.
    fn by_samples(&self) -> &Compressed {
        self.by_samples.get_or_init(|| {
            let mut starts = vec![0; self.samples + 1];
            self.indices
                .iter()
                .for_each(|&i| starts[i as usize + 1] += 1);
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
            Compressed {
                starts,
                indices,
                values,
            }
        })
    }

    fn columns(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the (sample, value) pairs of column `k`.
    #[inline(always)]
    fn column(&self, k: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.starts[k]..self.starts[k + 1];
        self.indices[range.clone()]
            .iter()
            .map(|&i| i as usize)
            .zip(self.values[range].iter().copied())
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

    /// Reads the samples of column `k` only.
    fn add_gram_column(&self, k: usize, scale: f64, target: &mut [f64]) {
        let rows = self.by_samples();
        for (i, value) in self.column(k) {
            let range = rows.starts[i]..rows.starts[i + 1];
            for (&j, &other) in rows.indices[range.clone()].iter().zip(&rows.values[range]) {
                target[j as usize] += scale * other * value;
            }
        }
    }

    fn gram_column_work(&self) -> f64 {
        let starts = &self.by_samples().starts;
        let squares: f64 = starts
            .windows(2)
            .map(|w| ((w[1] - w[0]) as f64).powi(2))
            .sum();
        squares / self.columns() as f64
    }

    fn stored_in(&self, columns: &[usize]) -> usize {
        columns
            .iter()
            .map(|&k| self.starts[k + 1] - self.starts[k])
            .sum()
    }

    fn select(&self, columns: &[usize]) -> Arc<dyn Data> {
        let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for &k in columns {
            let range = self.starts[k]..self.starts[k + 1];
            indices.extend_from_slice(&self.indices[range.clone()]);
            values.extend_from_slice(&self.values[range]);
            starts.push(values.len());
        }
        Arc::new(Self {
            samples: self.samples,
            starts,
            indices,
            values,
            by_samples: OnceLock::new(),
        })
    }

    /// Sums over the samples; the work of a sample is the square of its nonzeros in `columns`.
    fn inner(&self, columns: &[usize], go_on: GoOn<'_>) -> Option<Array2<f64>> {
        let mut samples: Vec<Vec<(u32, f64)>> = vec![Vec::new(); self.samples];
        for (slot, &k) in columns.iter().enumerate() {
            for (i, value) in self.column(k) {
                samples[i].push((slot as u32, value));
            }
        }
        let m = columns.len();
        let mut product = vec![0.0; m * m];
        for (i, sample) in samples.iter().enumerate() {
            if i % CHUNK_ROWS == 0 && !go_on() {
                return None;
            }
            for &(a, u) in sample {
                let row = &mut product[a as usize * m..][..m];
                for &(b, v) in sample {
                    row[b as usize] += u * v;
                }
            }
        }
        Array2::from_shape_vec((m, m), product).ok()
    }

    fn products(&self) -> Box<dyn Products + '_> {
        Box::new(SparseProducts {
            a: self,
            lead: Panel::default(),
            rest: Panel::default(),
            slots: vec![NO_SLOT; self.samples],
        })
    }
}

/// Marks a sample that the panel does not hold.
const NO_SLOT: u32 = u32::MAX;

/// Workspace for inner products: panels of the lead columns and of the other columns.
struct SparseProducts<'a> {
    a: &'a SparseColumns,
    lead: Panel,
    rest: Panel,
    slots: Vec<u32>,
}

impl Products for SparseProducts<'_> {
    fn compute(&mut self, lead: &[usize], same: bool, rest: &[usize], out: &mut Inner) {
        let (a, slots) = (self.a, &mut self.slots);
        if same {
            self.lead.mark(slots, true);
        } else {
            self.lead.build(a, lead, slots);
            self.lead.products(a, lead, slots, &mut out.lead);
        }
        self.lead.products(a, rest, slots, &mut out.cross);
        self.lead.mark(slots, false);
        self.rest.build(a, rest, slots);
        self.rest.products(a, rest, slots, &mut out.rest);
        self.rest.mark(slots, false);
    }
}

/// Columns of A on the samples in which one of them is nonzero: `values[slot·width + k]`.
#[derive(Debug, Default)]
struct Panel {
    samples: Vec<u32>,
    width: usize,
    values: Vec<f64>,
}

impl Panel {
    fn build(&mut self, a: &SparseColumns, columns: &[usize], slots: &mut [u32]) {
        self.samples.clear();
        self.values.clear();
        self.width = columns.len();
        for (k, &column) in columns.iter().enumerate() {
            for (i, value) in a.column(column) {
                if slots[i] == NO_SLOT {
                    slots[i] = self.samples.len() as u32;
                    self.samples.push(i as u32);
                    self.values.resize(self.samples.len() * self.width, 0.0);
                }
                self.values[slots[i] as usize * self.width + k] = value;
            }
        }
    }

    /// Marks (or unmarks) the samples of the panel in `slots`.
    fn mark(&self, slots: &mut [u32], on: bool) {
        for (slot, &i) in self.samples.iter().enumerate() {
            slots[i as usize] = if on { slot as u32 } else { NO_SLOT };
        }
    }

    /// `out[l, k]` = A_columns\[l\] · the k-th column of the panel.
    fn products(&self, a: &SparseColumns, columns: &[usize], slots: &[u32], out: &mut Vec<f64>) {
        out.clear();
        out.resize(columns.len() * self.width, 0.0);
        for (target, &column) in out.chunks_exact_mut(self.width.max(1)).zip(columns) {
            for (i, value) in a.column(column) {
                let slot = slots[i];
                if slot != NO_SLOT {
                    add(
                        target,
                        value,
                        &self.values[slot as usize * self.width..][..self.width],
                    );
                }
            }
        }
    }
}
