//! The incremental side of an objective: what follows the rows that move.

use ndarray::{Array2, ArrayView2};

use crate::threads::Threads;

/// What must stay up to date of an objective f during one solve (C X, A X).
pub trait Tracker: Send {
    /// Whether consecutive blocks with the same lead rows are cheaper to fill.
    fn keeps_lead(&self) -> bool {
        false
    }

    /// f at the current X.
    fn value(&self, x: ArrayView2<'_, f64>) -> f64;

    /// Fills gradient rows and curvature of some rows.
    fn fill(&mut self, model: BlockModel<'_>);

    /// Takes over the rows that moved, all among those filled last.
    fn commit(&mut self, moved: Moved<'_>, threads: &Threads);

    /// Takes over a change of all rows.
    fn commit_all(&mut self, delta: ArrayView2<'_, f64>, threads: &Threads);

    /// One row of ∇f at the current X.
    fn gradient_row(&self, row: usize, target: &mut [f64]);

    /// ∇f at the current X.
    fn gradient(&self, threads: &Threads) -> Array2<f64>;

    /// Evaluates everything afresh at `x`, which removes the rounding of the updates.
    fn refresh(&mut self, x: ArrayView2<'_, f64>, threads: &Threads);
}

/// What f looks like while only some rows B move, for a [`Tracker`] to fill.
#[derive(Debug)]
pub struct BlockModel<'a> {
    /// B: rows of X, those of the lead first.
    pub rows: &'a [usize],
    /// Number of rows of the lead.
    pub lead: usize,
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
    pub(crate) lead: usize,
    pub(crate) columns: usize,
    pub(crate) stride: usize,
    pub(crate) x: &'a [f64],
    /// ∇f(X)_B where the rows are now.
    pub(crate) gradient: &'a [f64],
    /// Positions in B of the rows that moved.
    pub(crate) positions: &'a [usize],
    pub(crate) delta: &'a [f64],
}

impl<'a> Moved<'a> {
    /// How many rows moved.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether no row moved.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// The `k`-th of the rows of X that moved.
    #[inline(always)]
    pub fn row(&self, k: usize) -> usize {
        self.rows[self.positions[k]]
    }

    /// What that row is now, r entries.
    pub fn x(&self, k: usize) -> &'a [f64] {
        &self.x[self.positions[k] * self.stride..][..self.columns]
    }

    /// ΔX of the rows that moved, in their order.
    pub fn delta(&self) -> ArrayView2<'a, f64> {
        ArrayView2::from_shape((self.len(), self.columns), self.delta)
            .expect("r entries for every row that moved")
    }
}
