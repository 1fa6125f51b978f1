//! `½·scale·‖A X‖²` from the data alone; keeps W = A X, never forms AᵀA.
//!
//! A gradient row is `scale·A_kᵀ W` and the curvature of a block `scale·A_Bᵀ A_B`, both at the cost
//! of the nonzeros of A's columns, whatever n is. Memory: A, W (m×r) and one panel of the block's
//! columns over the samples they touch.
//!
//! Consecutive blocks that share their lead rows (a tiled sweep holds one tile against all others)
//! reuse the lead's panel, its curvature, and its gradient, which the block itself kept exact.
//!
//! Centring is implicit: with column means μ, `A` stands for `A − 1μᵀ` and sparse data stays
//! sparse. Only columns that are more than half full are stored whole, as v − μ: for the others
//! `‖v‖² ≤ 2‖v − μ‖²`, so that nothing cancels however large the means are.

use std::sync::OnceLock;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};

use super::{
    BlockModel, GoOn, LARGEST, Moved, SMALLEST, SPREAD_STEPS, Smooth, Tracker, check_data,
    check_means, half_spread, lanczos_bounds, lanczos_bounds_while, largest,
};
use crate::error::{Error, Result};
use crate::rows::{Rows, rows_of};
use crate::threads::{CHUNK_ROWS, Threads};

/// Lanczos steps for the bounds of the spectrum.
const LANCZOS_STEPS: usize = 40;

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
    /// what [`GramQuadratic::new`] accepts.
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
    fn center_full_columns(self, mean: &mut Array1<f64>) -> Self {
        let m = self.samples;
        let full = |k: usize| 2 * (self.starts[k + 1] - self.starts[k]) > m;
        if !(0..self.columns()).any(full) {
            return self;
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
        Self {
            samples: m,
            starts,
            indices,
            values,
        }
    }
}

fn is_nonzero(row: &ArrayView1<'_, f64>) -> bool {
    row.iter().any(|&v| v != 0.0)
}

/// The data matrix A, m samples by n features.
#[derive(Debug, Clone)]
pub enum Data {
    /// Dense, stored transposed (n×m) so that features are contiguous.
    Dense(Array2<f64>),
    /// Sparse, by columns.
    Sparse(SparseColumns),
}

impl Data {
    /// Dense data, m×n.
    ///
    /// # Errors
    /// If it is empty, or its entries are not what [`GramQuadratic::new`] accepts.
    pub fn dense(a: ArrayView2<'_, f64>) -> Result<Self> {
        if a.is_empty() {
            return Err(Error::invalid("A", "must not be empty"));
        }
        check_data("A", a.iter())?;
        Ok(Self::Dense(a.t().as_standard_layout().into_owned()))
    }

    fn samples(&self) -> usize {
        match self {
            Self::Dense(at) => at.ncols(),
            Self::Sparse(a) => a.samples,
        }
    }

    fn features(&self) -> usize {
        match self {
            Self::Dense(at) => at.nrows(),
            Self::Sparse(a) => a.columns(),
        }
    }

    /// A X.
    fn times(&self, x: ArrayView2<'_, f64>) -> Rows {
        self.times_while(x, &|| true)
    }

    /// A X, unfinished if `go_on` says no on the way.
    fn times_while(&self, x: ArrayView2<'_, f64>, go_on: GoOn<'_>) -> Rows {
        let mut w = Rows::zeros((self.samples(), x.ncols()));
        match self {
            // A point of few rows needs only those features.
            Self::Dense(at)
                if 4 * x.outer_iter().filter(|row| is_nonzero(row)).count() < x.nrows() =>
            {
                let rows: Vec<usize> = (0..x.nrows()).filter(|&k| is_nonzero(&x.row(k))).collect();
                let (at, x) = (at.select(Axis(0), &rows), x.select(Axis(0), &rows));
                general_mat_mul(1.0, &at.t(), &x, 0.0, &mut w.view_mut());
                w
            }
            Self::Dense(at) => {
                let mut all = w.view_mut();
                let pieces = all.axis_chunks_iter_mut(Axis(0), CHUNK_ROWS);
                for (mut w, at) in pieces.zip(at.axis_chunks_iter(Axis(1), CHUNK_ROWS)) {
                    if !go_on() {
                        break;
                    }
                    general_mat_mul(1.0, &at.t(), &x, 0.0, &mut w);
                }
                w
            }
            Self::Sparse(a) => {
                let mut entries = vec![0.0; x.ncols()];
                for (k, row) in x.outer_iter().enumerate() {
                    if k % CHUNK_ROWS == 0 && !go_on() {
                        break;
                    }
                    if is_nonzero(&row) {
                        entries.iter_mut().zip(row).for_each(|(e, &v)| *e = v);
                        // Plain slices: views of rows cost more than the products for small r.
                        for (i, value) in a.column(k) {
                            let target = w.row_slice_mut(i);
                            target
                                .iter_mut()
                                .zip(&entries)
                                .for_each(|(t, &e)| *t += value * e);
                        }
                    }
                }
                w
            }
        }
    }

    /// Adds `scale · A_kᵀ W` to `target`.
    #[inline(always)]
    fn add_transposed_row(&self, k: usize, w: &Rows, scale: f64, target: &mut [f64]) {
        match self {
            Self::Dense(at) => {
                for (&value, w) in at.row(k).iter().zip(w.outer_iter()) {
                    let factor = scale * value;
                    target
                        .iter_mut()
                        .zip(w)
                        .for_each(|(t, &w)| *t += factor * w);
                }
            }
            Self::Sparse(a) => {
                for (i, value) in a.column(k) {
                    let factor = scale * value;
                    target
                        .iter_mut()
                        .zip(w.row_slice(i))
                        .for_each(|(t, &w)| *t += factor * w);
                }
            }
        }
    }
}

/// `½·scale·‖(A − 1 meanᵀ) X‖²`.
#[derive(Debug, Clone)]
pub struct GramQuadratic {
    data: Data,
    scale: f64,
    /// Of sparse data; dense data is centred as it is stored.
    mean: Option<Array1<f64>>,
    /// Column sums of what is stored, needed when there is a mean.
    sums: Array1<f64>,
    spectrum: OnceLock<(f64, f64)>,
    spread: OnceLock<f64>,
}

impl GramQuadratic {
    /// The objective for data A, a scale (−1 maximises variance) and optional column means to
    /// subtract.
    ///
    /// # Errors
    /// If the largest magnitude of A is neither 0 nor in 1e-50 … 1e50, that of `mean` above 1e50, or
    /// that of `scale`·AᵀA outside [`SMALLEST`] … [`LARGEST`]; if something is not finite, A is
    /// empty or `mean` has the wrong length.
    pub fn new(data: Data, scale: f64, mean: Option<Array1<f64>>) -> Result<Self> {
        let size = match &data {
            Data::Dense(at) if at.is_empty() => {
                return Err(Error::invalid("A", "must not be empty"));
            }
            Data::Dense(at) => check_data("A", at)?,
            Data::Sparse(a) => largest(&a.values),
        };
        let product = scale.abs() * size * size;
        if !scale.is_finite() || (product != 0.0 && !(SMALLEST..=LARGEST).contains(&product)) {
            return Err(Error::invalid(
                "scale",
                format!(
                    "must be finite and scale·AᵀA between {SMALLEST:e} and {LARGEST:e}, got {scale:e}"
                ),
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
        let (data, mean) = match (data, mean) {
            (Data::Dense(at), mean) => {
                // However it was stored: features are contiguous.
                let mut at = Rows::from(at).into_array();
                if let Some(mean) = mean {
                    at -= &mean.insert_axis(ndarray::Axis(1));
                }
                (Data::Dense(at), None)
            }
            (Data::Sparse(a), Some(mut mean)) => {
                (Data::Sparse(a.center_full_columns(&mut mean)), Some(mean))
            }
            (sparse, None) => (sparse, None),
        };
        let sums = match (&mean, &data) {
            (Some(_), Data::Sparse(a)) => (0..a.columns())
                .map(|k| a.column(k).map(|(_, v)| v).sum())
                .collect(),
            _ => Array1::zeros(0),
        };
        Ok(Self {
            data,
            scale,
            mean,
            sums,
            spectrum: OnceLock::new(),
            spread: OnceLock::new(),
        })
    }

    /// Sums over the rows of X with the means and with the column sums: (μᵀX, σᵀX).
    fn moments(&self, x: ArrayView2<'_, f64>) -> Moments {
        self.mean
            .as_ref()
            .map(|mean| (mean.dot(&x), self.sums.dot(&x)))
    }

    /// Adds what centring contributes to gradient row `k`.
    #[inline(always)]
    fn center_row(&self, k: usize, moments: &Moments, target: &mut [f64]) {
        if let (Some(mean), Some((by_mean, by_sum))) = (&self.mean, moments) {
            let m = self.data.samples() as f64;
            let (mu, sigma) = (mean[k], self.sums[k]);
            for ((t, &u), &v) in target.iter_mut().zip(by_mean).zip(by_sum) {
                *t += self.scale * ((m * mu - sigma) * u - mu * v);
            }
        }
    }

    /// What centring contributes to entry (k, l) of C.
    #[inline(always)]
    fn center_entry(&self, k: usize, l: usize) -> f64 {
        match &self.mean {
            None => 0.0,
            Some(mean) => {
                let m = self.data.samples() as f64;
                self.scale
                    * (m * mean[k] * mean[l] - self.sums[k] * mean[l] - mean[k] * self.sums[l])
            }
        }
    }

    fn transposed_times(
        &self,
        w: &Rows,
        moments: &Moments,
        threads: &Threads,
        go_on: GoOn<'_>,
    ) -> Array2<f64> {
        let r = w.ncols();
        let mut y = Rows::zeros((self.data.features(), r));
        let work = match &self.data {
            Data::Dense(at) => at.len() * r,
            Data::Sparse(a) => a.values.len() * r,
        };
        threads.for_chunks(y.entries_mut(), CHUNK_ROWS * r, work, |piece, target| {
            if !go_on() {
                return;
            }
            let from = piece * CHUNK_ROWS;
            if let Data::Dense(at) = &self.data {
                let mut target = rows_of(target, r);
                let at = at.slice(s![from..from + target.nrows(), ..]);
                general_mat_mul(self.scale, &at, &**w, 0.0, &mut target);
            }
            for (k, row) in target.chunks_exact_mut(r).enumerate() {
                if let Data::Sparse(_) = &self.data {
                    self.data.add_transposed_row(from + k, w, self.scale, row);
                }
                self.center_row(from + k, moments, row);
            }
        });
        y.into_array()
    }
}

/// (μᵀX, σᵀX), when there is a mean.
type Moments = Option<(Array1<f64>, Array1<f64>)>;

impl Smooth for GramQuadratic {
    fn rows(&self) -> usize {
        self.data.features()
    }

    fn hessian_bounds(&self) -> (f64, f64) {
        let (low, high) = self.spectrum();
        (low.min(0.0), high.max(0.0))
    }

    fn spectrum(&self) -> (f64, f64) {
        self.spectrum_while(&|| true)
            .unwrap_or((f64::NAN, f64::NAN))
    }

    fn spectrum_while(&self, go_on: GoOn<'_>) -> Option<(f64, f64)> {
        if let Some(known) = self.spectrum.get() {
            return Some(*known);
        }
        let threads = Threads::serial();
        let (low, high) = lanczos_bounds_while(self.rows(), LANCZOS_STEPS, |v| {
            self.apply_while(v, &threads, go_on)
        })?;
        let found = if self.scale < 0.0 {
            (low.min(0.0), high.min(0.0))
        } else {
            (low.max(0.0), high.max(0.0))
        };
        Some(*self.spectrum.get_or_init(|| found))
    }

    fn spread(&self) -> f64 {
        *self.spread.get_or_init(|| {
            let threads = Threads::serial();
            let apply = |v: ArrayView2<'_, f64>| self.apply(v, &threads);
            half_spread(lanczos_bounds(self.rows(), SPREAD_STEPS, apply), None)
        })
    }

    fn diagonal(&self) -> Vec<f64> {
        (0..self.rows())
            .map(|k| {
                let square: f64 = match &self.data {
                    Data::Dense(at) => at.row(k).iter().map(|v| v * v).sum(),
                    Data::Sparse(a) => {
                        let mean = self.mean.as_ref().map_or(0.0, |mean| mean[k]);
                        let stored: f64 = a.column(k).map(|(_, v)| (v - mean).powi(2)).sum();
                        let absent = a.samples - (a.starts[k + 1] - a.starts[k]);
                        stored + absent as f64 * mean * mean
                    }
                };
                self.scale * square
            })
            .collect()
    }

    fn apply(&self, x: ArrayView2<'_, f64>, threads: &Threads) -> Array2<f64> {
        let w = self.data.times(x);
        self.transposed_times(&w, &self.moments(x), threads, &|| true)
    }

    fn apply_while(
        &self,
        x: ArrayView2<'_, f64>,
        threads: &Threads,
        go_on: GoOn<'_>,
    ) -> Option<Array2<f64>> {
        let w = self.data.times_while(x, go_on);
        let y = self.transposed_times(&w, &self.moments(x), threads, go_on);
        go_on().then_some(y)
    }

    fn is_quadratic(&self) -> bool {
        true
    }

    fn product_work(&self) -> f64 {
        2.0 * match &self.data {
            Data::Dense(at) => at.len(),
            Data::Sparse(a) => a.values.len(),
        } as f64
    }

    fn tracker<'a>(&'a self, x: ArrayView2<'_, f64>, _threads: &Threads) -> Box<dyn Tracker + 'a> {
        Box::new(GramTracker {
            objective: self,
            w: self.data.times(x),
            moments: self.moments(x),
            slots: match &self.data {
                Data::Dense(_) => Vec::new(),
                Data::Sparse(a) => vec![NO_SLOT; a.samples],
            },
            lead: Lead::default(),
        })
    }
}

/// Marks a sample that the panel does not hold.
const NO_SLOT: u32 = u32::MAX;

/// What is kept of the lead rows of the last block.
#[derive(Debug, Default)]
struct Lead {
    rows: Vec<usize>,
    gradient: Vec<f64>,
    curvature: Vec<f64>,
    panel: Panel,
    /// Whether `gradient` belongs to the current X.
    fresh: bool,
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

    /// Inner products of all columns of the panel with column `column`, added to `target`.
    #[inline(always)]
    fn products(&self, a: &SparseColumns, column: usize, slots: &[u32], target: &mut [f64]) {
        for (i, value) in a.column(column) {
            let slot = slots[i];
            if slot != NO_SLOT {
                let row = &self.values[slot as usize * self.width..][..self.width];
                target
                    .iter_mut()
                    .zip(row)
                    .for_each(|(t, &v)| *t += value * v);
            }
        }
    }
}

struct GramTracker<'a> {
    objective: &'a GramQuadratic,
    w: Rows,
    moments: Moments,
    slots: Vec<u32>,
    lead: Lead,
}

impl GramTracker<'_> {
    /// `out[k, l] = A_rows[k] · A_columns[l]` for the panel's rows, sparse data.
    fn sparse_products(
        a: &SparseColumns,
        panel: &Panel,
        columns: &[usize],
        slots: &[u32],
    ) -> Vec<f64> {
        let mut out = vec![0.0; columns.len() * panel.width];
        for (target, &column) in out.chunks_exact_mut(panel.width.max(1)).zip(columns) {
            panel.products(a, column, slots, target);
        }
        out
    }
}

impl Tracker for GramTracker<'_> {
    fn keeps_lead(&self) -> bool {
        true
    }

    fn value(&self, _x: ArrayView2<'_, f64>) -> f64 {
        let square: f64 = match &self.moments {
            None => self.w.iter().map(|v| v * v).sum(),
            Some((by_mean, _)) => self
                .w
                .outer_iter()
                .map(|w| {
                    w.iter()
                        .zip(by_mean)
                        .map(|(w, u)| (w - u).powi(2))
                        .sum::<f64>()
                })
                .sum(),
        };
        0.5 * self.objective.scale * square
    }

    fn fill(&mut self, mut model: BlockModel<'_>) {
        let objective = self.objective;
        let scale = objective.scale;
        let (rows, lead, r) = (model.rows, model.lead, model.columns());
        let b = rows.len();
        let (lead_rows, rest) = rows.split_at(lead);
        let same = self.lead.rows == lead_rows;

        // Curvature: lead × lead (kept), lead × rest, rest × rest.
        let (cross, inner) = match &objective.data {
            Data::Sparse(a) => {
                if same {
                    self.lead.panel.mark(&mut self.slots, true);
                } else {
                    self.lead.panel.build(a, lead_rows, &mut self.slots);
                    self.lead.curvature =
                        Self::sparse_products(a, &self.lead.panel, lead_rows, &self.slots);
                }
                let cross = Self::sparse_products(a, &self.lead.panel, rest, &self.slots);
                self.lead.panel.mark(&mut self.slots, false);
                let mut panel = Panel::default();
                panel.build(a, rest, &mut self.slots);
                let inner = Self::sparse_products(a, &panel, rest, &self.slots);
                panel.mark(&mut self.slots, false);
                (cross, inner)
            }
            Data::Dense(at) => {
                let gather = |rows: &[usize]| at.select(Axis(0), rows);
                let lead_panel = gather(lead_rows);
                if !same {
                    self.lead.curvature = lead_panel.dot(&lead_panel.t()).into_iter().collect();
                }
                let panel = gather(rest);
                (
                    panel.dot(&lead_panel.t()).into_iter().collect(),
                    panel.dot(&panel.t()).into_iter().collect(),
                )
            }
        };
        for k in 0..b {
            for l in 0..b {
                let product = match (k < lead, l < lead) {
                    (true, true) => self.lead.curvature[k * lead + l],
                    (true, false) => cross[(l - lead) * lead + k],
                    (false, true) => cross[(k - lead) * lead + l],
                    (false, false) => inner[(k - lead) * (b - lead) + (l - lead)],
                };
                model.curvature[k * b + l] =
                    scale * product + objective.center_entry(rows[k], rows[l]);
            }
        }

        // Gradient.
        let keep = same && self.lead.fresh;
        for (k, &row) in rows.iter().enumerate() {
            let target = model.gradient_row(k);
            if k < lead && keep {
                target.copy_from_slice(&self.lead.gradient[k * r..(k + 1) * r]);
            } else {
                self.gradient_row(row, target);
            }
        }
        if !same {
            self.lead.rows.clear();
            self.lead.rows.extend_from_slice(lead_rows);
        }
        self.keep_lead_gradient((lead, r), model.gradient, model.stride);
    }

    fn commit(&mut self, moved: Moved<'_>, _threads: &Threads) {
        for (k, step) in moved.delta().outer_iter().enumerate() {
            let row = moved.row(k);
            match &self.objective.data {
                Data::Dense(at) => {
                    for (mut w, &value) in self.w.view_mut().outer_iter_mut().zip(at.row(row)) {
                        w.scaled_add(value, &step);
                    }
                }
                Data::Sparse(a) => {
                    for (i, value) in a.column(row) {
                        self.w.view_mut().row_mut(i).scaled_add(value, &step);
                    }
                }
            }
            if let (Some(mean), Some((by_mean, by_sum))) = (&self.objective.mean, &mut self.moments)
            {
                by_mean.scaled_add(mean[row], &step);
                by_sum.scaled_add(self.objective.sums[row], &step);
            }
        }
        // The block kept the gradient of its own rows exact.
        self.keep_lead_gradient((moved.lead, moved.columns), moved.gradient, moved.stride);
    }

    fn commit_all(&mut self, delta: ArrayView2<'_, f64>, _threads: &Threads) {
        let mut w = self.w.view_mut();
        w += &*self.objective.data.times(delta);
        if let (Some((by_mean, by_sum)), Some((d_mean, d_sum))) =
            (&mut self.moments, self.objective.moments(delta))
        {
            *by_mean += &d_mean;
            *by_sum += &d_sum;
        }
        self.lead.fresh = false;
    }

    fn gradient_row(&self, row: usize, target: &mut [f64]) {
        let objective = self.objective;
        target.fill(0.0);
        objective
            .data
            .add_transposed_row(row, &self.w, objective.scale, target);
        objective.center_row(row, &self.moments, target);
    }

    fn gradient(&self, threads: &Threads) -> Array2<f64> {
        self.objective
            .transposed_times(&self.w, &self.moments, threads, &|| true)
    }

    fn refresh(&mut self, x: ArrayView2<'_, f64>, _threads: &Threads) {
        self.w = self.objective.data.times(x);
        self.moments = self.objective.moments(x);
        self.lead.fresh = false;
    }
}

impl GramTracker<'_> {
    fn keep_lead_gradient(&mut self, (lead, r): (usize, usize), rows: &[f64], stride: usize) {
        self.lead.gradient.clear();
        for row in rows.chunks_exact(stride).take(lead) {
            self.lead.gradient.extend_from_slice(&row[..r]);
        }
        self.lead.fresh = true;
    }
}
