//! Trackers of quadratic forms: data that is updated as rows move.
//!
//! [`ImageTracker`] serves every form: it keeps Y = C X. A block costs |B|² reads of C (and |B| columns of a
//! C that is not stored), a commit one product of n×|B| with |B|×r. If few entries of ΔX are nonzero (sparse
//! iterates), only the columns of Y with such entries are updated.

use ndarray::{Array2, ArrayView2};

use super::QuadraticForm;
use crate::linalg::add_product;
use crate::rows::{Rows, rows_of};
use crate::threads::{CHUNK_ROWS, Threads};

/// Data of a [`QuadraticForm`] that is updated during one solve (C X, A X).
pub trait Tracker: Send {
    /// f at the current X.
    fn value(&self, x: ArrayView2<'_, f64>) -> f64;

    /// Fills gradient rows and curvature of some rows.
    fn fill(&mut self, model: BlockModel<'_>);

    /// Follows the rows that moved of the block filled last.
    fn commit(&mut self, moved: Moved<'_>, threads: &Threads);

    /// Writes one row of ∇f at the current X to `target`.
    fn gradient_row(&self, row: usize, target: &mut [f64]);

    /// ∇f at the current X.
    fn gradient(&self, threads: &Threads) -> Array2<f64>;

    /// Evaluates everything anew at `x`, which removes the rounding of the updates.
    fn refresh(&mut self, x: ArrayView2<'_, f64>, threads: &Threads);
}

/// The model of f while only some rows B move, filled by a [`Tracker`].
#[derive(Debug)]
pub struct BlockModel<'a> {
    /// B: rows of X.
    pub rows: &'a [usize],
    /// C_BB, |B|×|B| by rows.
    pub curvature: &'a mut [f64],
    pub(crate) columns: usize,
    pub(crate) stride: usize,
    pub(crate) gradient: &'a mut [f64],
}

impl BlockModel<'_> {
    /// Number of columns r.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Row `k` of ∇f(X)_B, r entries.
    #[inline(always)]
    pub fn gradient_row(&mut self, k: usize) -> &mut [f64] {
        &mut self.gradient[k * self.stride..][..self.columns]
    }
}

/// Rows that moved, for a [`Tracker`] to follow.
#[derive(Debug, Clone, Copy)]
pub struct Moved<'a> {
    /// B, as it was filled.
    pub(crate) rows: &'a [usize],
    pub(crate) columns: usize,
    pub(crate) stride: usize,
    pub(crate) x: &'a [f64],
    /// Positions in B of the rows that moved.
    pub(crate) positions: &'a [usize],
    pub(crate) delta: &'a [f64],
}

impl<'a> Moved<'a> {
    /// Returns the number of rows that moved.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Returns whether no row moved.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Returns the index in X of the `k`-th row that moved.
    #[inline(always)]
    pub fn row(&self, k: usize) -> usize {
        self.rows[self.positions[k]]
    }

    /// Returns the new values of that row, r entries.
    pub fn x(&self, k: usize) -> &'a [f64] {
        &self.x[self.positions[k] * self.stride..][..self.columns]
    }

    /// Returns ΔX of the rows that moved, in their order.
    pub fn delta(&self) -> ArrayView2<'a, f64> {
        ArrayView2::from_shape((self.len(), self.columns), self.delta).expect("r entries for every row that moved")
    }
}

/// Keeps Y = C X.
pub(super) struct ImageTracker<'a, Q: QuadraticForm + ?Sized> {
    form: &'a Q,
    linear: Option<ArrayView2<'a, f64>>,
    metric: Option<ArrayView2<'a, f64>>,
    lines: Lines<'a>,
    y: Rows,
    /// Columns of C, in pieces of [`CHUNK_ROWS`] rows.
    panel: Vec<f64>,
}

/// Columns of C, equal to its rows by symmetry.
enum Lines<'a> {
    /// C by rows.
    Stored(&'a [f64]),
    /// Columns of the rows of X filled last.
    Filled(Vec<usize>, Rows),
}

impl Lines<'_> {
    /// Returns column `row`, at position `k` among those filled last.
    #[inline(always)]
    fn line(&self, row: usize, k: usize, n: usize) -> &[f64] {
        match self {
            Self::Stored(c) => &c[row * n..][..n],
            Self::Filled(_, columns) => columns.row_slice(k),
        }
    }
}

impl<'a, Q: QuadraticForm + ?Sized> ImageTracker<'a, Q> {
    pub(super) fn new(form: &'a Q, x: ArrayView2<'_, f64>, threads: &Threads) -> Self {
        Self {
            form,
            linear: form.linear(),
            metric: form.metric(),
            lines: match form.dense().and_then(|c| c.to_slice()) {
                Some(c) => Lines::Stored(c),
                None => Lines::Filled(Vec::new(), Rows::zeros((0, form.order()))),
            },
            y: Rows::from(form.apply(x, threads)),
            panel: Vec::new(),
        }
    }
}

/// Share of nonzero entries of ΔX below which entries are applied one by one.
const SPARSE_STEP: f64 = 0.25;

impl<Q: QuadraticForm + ?Sized> Tracker for ImageTracker<'_, Q> {
    fn value(&self, x: ArrayView2<'_, f64>) -> f64 {
        let quadratic = match &self.metric {
            None => (&x * &*self.y).sum(),
            Some(metric) => (&x.dot(metric) * &*self.y).sum(),
        };
        let linear = self.linear.map_or(0.0, |linear| (&x * &linear).sum());
        0.5 * quadratic + linear
    }

    fn fill(&mut self, mut model: BlockModel<'_>) {
        let (rows, b, n) = (model.rows, model.rows.len(), self.y.nrows());
        if let Lines::Filled(filled, columns) = &mut self.lines
            && *filled != rows
        {
            rows.clone_into(filled);
            *columns = Rows::zeros((rows.len(), n));
            for (k, &row) in rows.iter().enumerate() {
                self.form.column(row, columns.row_slice_mut(k));
            }
        }
        for (k, &row) in rows.iter().enumerate() {
            let c = self.lines.line(row, k, n);
            // Entries of C are far apart, those of C_BB are not.
            for l in k..b {
                let entry = c[rows[l]];
                model.curvature[k * b + l] = entry;
                model.curvature[l * b + k] = entry;
            }
            self.gradient_row(row, model.gradient_row(k));
        }
    }

    fn gradient_row(&self, row: usize, target: &mut [f64]) {
        let y = self.y.row(row);
        match &self.metric {
            None => target.iter_mut().zip(y).for_each(|(t, &y)| *t = y),
            Some(metric) => target.iter_mut().zip(metric.outer_iter()).for_each(|(t, d)| *t = d.dot(&y)),
        }
        if let Some(linear) = &self.linear {
            target.iter_mut().zip(linear.row(row)).for_each(|(t, &l)| *t += l);
        }
    }

    fn commit(&mut self, moved: Moved<'_>, threads: &Threads) {
        let (n, r) = self.y.dim();
        let (m, delta) = (moved.len(), moved.delta());
        let nonzero = delta.iter().filter(|&&v| v != 0.0).count();
        let lines = &self.lines;
        let line = |k: usize| lines.line(moved.row(k), moved.positions[k], n);
        let y = self.y.entries_mut();
        if (nonzero as f64) < SPARSE_STEP * delta.len() as f64 || m <= 4 {
            let dense = m <= 4 && nonzero * 2 > delta.len();
            threads.for_chunks(y, CHUNK_ROWS * r, n * nonzero, |piece, target| {
                let from = piece * CHUNK_ROWS;
                for (k, step) in delta.outer_iter().enumerate() {
                    let row = &line(k)[from..from + target.len() / r];
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
        // Each chunk of Y gathers its part of the columns of C of rows that moved, then makes one product.
        self.panel.resize(m * n, 0.0);
        let targets = y.chunks_mut(CHUNK_ROWS * r);
        let mut pieces: Vec<_> = targets.zip(self.panel.chunks_mut(CHUNK_ROWS * m)).collect();
        threads.for_chunks(&mut pieces, 1, n * delta.len(), |piece, pair| {
            let (target, panel) = &mut pair[0];
            let (from, rows) = (piece * CHUNK_ROWS, target.len() / r);
            for (k, part) in panel.chunks_exact_mut(rows).enumerate() {
                part.copy_from_slice(&line(k)[from..from + rows]);
            }
            add_product(rows_of(panel, rows).t(), delta, target);
        });
    }

    fn gradient(&self, _threads: &Threads) -> Array2<f64> {
        let mut gradient = match &self.metric {
            None => Array2::clone(&self.y),
            Some(metric) => self.y.dot(metric),
        };
        if let Some(linear) = &self.linear {
            gradient += linear;
        }
        gradient
    }

    fn refresh(&mut self, x: ArrayView2<'_, f64>, threads: &Threads) {
        self.y = Rows::from(self.form.apply(x, threads));
    }
}
