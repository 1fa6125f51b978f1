//! The data matrix A of a [`GramQuadratic`](super::GramQuadratic), m samples by n features: dense or sparse.

use std::borrow::Cow;
use std::fmt::Debug;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};

use super::{GoOn, check_data, largest};
use crate::error::{Error, Result};
use crate::rows::{Rows, rows_of};
use crate::threads::CHUNK_ROWS;

/// Access to A (m samples by n features), of which only products and columns are asked for.
///
/// W is m×r, given by rows; r is the length of a row of what is computed from it.
pub trait Data: Debug + Send + Sync {
    /// Number of samples m.
    fn samples(&self) -> usize;

    /// Number of features n.
    fn features(&self) -> usize;

    /// Number of stored entries: multiply-adds of A x.
    fn stored(&self) -> usize;

    /// The largest magnitude of an entry.
    fn largest(&self) -> f64;

    /// Aᵀ, n×m by rows, if all of it is stored.
    fn dense(&self) -> Option<ArrayView2<'_, f64>> {
        None
    }

    /// Subtracts column means where that costs no memory to speak of; returns those that are left to be subtracted from
    /// products (0 where the column has been centred), if any are.
    fn center(&mut self, mean: Array1<f64>) -> Option<Array1<f64>>;

    /// ‖A_k − mean_k‖² of every column, with the means that [`center`](Self::center) has left.
    fn squares(&self, mean: Option<&Array1<f64>>) -> Vec<f64>;

    /// A X, m×r; unfinished if `go_on` says no on the way.
    fn times(&self, x: ArrayView2<'_, f64>, go_on: GoOn<'_>) -> Array2<f64>;

    /// Adds `scale · A_kᵀ W` to `target` (r entries).
    fn add_transposed_row(&self, k: usize, scale: f64, w: &[f64], target: &mut [f64]);

    /// Adds rows of `scale · AᵀW`, the first of them `from`, to `target`, r entries each.
    fn add_transposed(&self, from: usize, r: usize, scale: f64, w: &[f64], target: &mut [f64]) {
        for (k, row) in target.chunks_exact_mut(r).enumerate() {
            self.add_transposed_row(from + k, scale, w, row);
        }
    }

    /// Adds `A_k stepᵀ` to W.
    fn add_outer(&self, k: usize, step: &[f64], w: &mut [f64]);

    /// A_Kᵀ A_K for the columns K; None if `go_on` says no on the way.
    fn inner(&self, columns: &[usize], go_on: GoOn<'_>) -> Option<Array2<f64>> {
        let mut out = Inner::default();
        self.products().compute(columns, false, &[], &mut out);
        let m = columns.len();
        go_on().then(|| Array2::from_shape_vec((m, m), out.lead).ok())?
    }

    /// Work space for inner products of columns.
    fn products(&self) -> Box<dyn Products + '_>;
}

/// Inner products of columns of A.
pub trait Products: Send {
    /// A_Lᵀ A_L into `out.lead`, A_Rᵀ A_L into `out.cross` and A_Rᵀ A_R into `out.rest`, each by rows, for columns
    /// L = `lead` and R = `rest`. If `same`, the lead is that of the last call, and `out.lead` stays.
    fn compute(&mut self, lead: &[usize], same: bool, rest: &[usize], out: &mut Inner);
}

/// What [`Products::compute`] computes.
#[derive(Debug, Clone, Default)]
pub struct Inner {
    /// A_Lᵀ A_L.
    pub lead: Vec<f64>,
    /// A_Rᵀ A_L.
    pub cross: Vec<f64>,
    /// A_Rᵀ A_R.
    pub rest: Vec<f64>,
}

/// A dense A, stored by columns.
#[derive(Debug, Clone)]
pub struct DenseColumns<'a> {
    entries: Cow<'a, [f64]>,
    samples: usize,
    largest: f64,
}

impl<'a> DenseColumns<'a> {
    /// From A, m×n: borrowed if its columns follow each other without gaps, else copied.
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

    /// From Aᵀ, n×m.
    ///
    /// # Errors
    /// Those of [`DenseColumns::new`].
    pub fn from_transposed(at: Array2<f64>) -> Result<Self> {
        let samples = at.ncols();
        Self::of(Rows::from(at).into_entries().into(), samples)
    }

    fn of(entries: Cow<'a, [f64]>, samples: usize) -> Result<Self> {
        if entries.is_empty() {
            return Err(Error::invalid("A", "must not be empty"));
        }
        let largest = check_data("A", &*entries)?;
        Ok(Self {
            entries,
            samples,
            largest,
        })
    }

    /// Aᵀ.
    fn at(&self) -> ArrayView2<'_, f64> {
        ArrayView2::from_shape((self.features(), self.samples), &self.entries)
            .expect("m entries for every feature")
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
        // Several columns at once: each sum waits for its last addition.
        const LANES: usize = 8;
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
        // A point of few rows needs only those features.
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

    fn products(&self) -> Box<dyn Products + '_> {
        Box::new(DenseProducts {
            at: self.at(),
            lead: Array2::zeros((0, self.samples())),
        })
    }
}

/// Keeps the columns of the lead beside each other.
struct DenseProducts<'a> {
    at: ArrayView2<'a, f64>,
    lead: Array2<f64>,
}

impl Products for DenseProducts<'_> {
    fn compute(&mut self, lead: &[usize], same: bool, rest: &[usize], out: &mut Inner) {
        let into = |out: &mut Vec<f64>, a: &Array2<f64>, b: &Array2<f64>| {
            out.clear();
            out.extend(&a.dot(&b.t()));
        };
        if !same {
            self.lead = self.at.select(Axis(0), lead);
            into(&mut out.lead, &self.lead, &self.lead);
        }
        let rest = self.at.select(Axis(0), rest);
        into(&mut out.cross, &rest, &self.lead);
        into(&mut out.rest, &rest, &rest);
    }
}

/// A sparse m×n matrix by columns (CSC).
#[derive(Debug, Clone)]
pub struct SparseColumns {
    samples: usize,
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
}

impl SparseColumns {
    /// From the arrays of a CSC matrix with `samples` rows.
    ///
    /// # Errors
    /// If the arrays are inconsistent, the row indices of a column are not strictly increasing (no
    /// duplicates) and below `samples`, `samples` is not below `u32::MAX`, or the values are not
    /// what [`DenseColumns::new`] accepts.
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
        if samples == 0 || samples >= NO_SLOT as usize {
            return Err(Error::invalid(
                "A",
                format!(
                    "must have between 1 and {} rows, got {samples}",
                    NO_SLOT - 1
                ),
            ));
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
        })
    }

    fn columns(&self) -> usize {
        self.starts.len() - 1
    }

    /// (sample, value) pairs of column `k`.
    #[inline(always)]
    fn column(&self, k: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.starts[k]..self.starts[k + 1];
        self.indices[range.clone()]
            .iter()
            .map(|&i| i as usize)
            .zip(self.values[range].iter().copied())
    }

    /// Stores the columns that are more than half full whole, less their means, which become 0.
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

    /// Sample by sample, at the square of what each has of these columns.
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

/// `target += factor · x`.
#[inline(always)]
fn add(target: &mut [f64], factor: f64, x: &[f64]) {
    target
        .iter_mut()
        .zip(x)
        .for_each(|(t, &x)| *t += factor * x);
}

fn is_nonzero(row: &ArrayView1<'_, f64>) -> bool {
    row.iter().any(|&v| v != 0.0)
}

/// Marks a sample that the panel does not hold.
const NO_SLOT: u32 = u32::MAX;

/// Keeps the columns of the lead over the samples that they touch.
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

/// Some columns of A over the samples that they touch: `values[slot·width + k]`.
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
