//! Options of a solve.

use serde::{Deserialize, Serialize};

use crate::block::Curvature;
use crate::error::{Error, Result};
use crate::limits::TaskWork;
use crate::objective::Objective;
use crate::options::options;
use crate::working_set::{self, MAX_CYCLE, WorkingSet};

/// Default number of rows of a tile; see `docs/performance.md` for the measurement.
pub const DEFAULT_TILE: usize = 64;

/// Update rule of the pairs of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Update {
    /// One block after the other, each with the current gradient.
    #[default]
    GaussSeidel,
    /// Tiles in rounds: all blocks of a round move at once, from one gradient; with two rows per block a round is a
    /// perfect matching of the rows of the tile. If F falls by less than half of the decrease that the models of the
    /// blocks predict, the blocks move again, half as many at once.
    Jacobi,
}

/// The sides that move: rows (X ← VX), columns (X ← XV), or both in turn.
///
/// Columns move if XᵀJX = diag(±1) and the objective allows it: `½⟨X, CX⟩ + ⟨linear, X⟩` with any penalty, or
/// `½⟨X, C X diag(w)⟩` without one (the J-Jacobi method).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Side {
    /// Rows, as in the papers.
    #[default]
    Rows,
    /// Columns alone.
    Columns,
    /// Rows and columns, the side that gains little less often; rows alone if columns cannot move. For square
    /// X and the objective of the J-Jacobi method a critical point of the columns is one of the rows, so
    /// columns alone move.
    Both,
}

options! {
    /// Options of a solve: [`Options::default`], changed by the `with_*` methods.
    ///
    /// ```
    /// use orthobcd::{Options, Side};
    ///
    /// let options = Options::default().with_side(Side::Both).with_max_time(1.0);
    /// assert_eq!((options.side, options.max_time), (Side::Both, Some(1.0)));
    /// ```
    ///
    /// | field | default | meaning |
    /// |---|---|---|
    /// | `working_set` | tiled | rule that chooses rows; a sweep is n(n−1)/2 visits to pairs, or for cyclic sets of k > 2 rows a cycle |
    /// | `block_size` | 2 | rows per block, k ≥ 2, for the rules other than tiled; and for the Jacobi update, k + 1 if k is odd |
    /// | `tile` | [`DEFAULT_TILE`] | rows per tile, one more if that is odd |
    /// | `update` | Gauss–Seidel | or Jacobi, without a rule |
    /// | `curvature` | exact | or the scalar bound |
    /// | `proximal` | 1e-5 | proximal weight α ≥ 0, relative to the [curvature](crate::QuadraticForm::spread) of f, until a sweep has converged |
    /// | `side` | rows | sides that move |
    /// | `rapidity_bound` | none | largest |μ| of one move of opposite signs |
    /// | `verify` | true | verify all pairs before the solve has converged |
    /// | `max_time` | none | seconds |
    /// | `max_sweeps` | none | sweeps of n(n−1)/2 pairs |
    /// | `max_work` | none | counted work, the same on every machine |
    /// | `effort` | 1 | patience of a search |
    /// | `scored_pairs` | min(n − 1, 20) | partners of a random row that a greedy rule scores; n(n−1)/2 or more: all pairs |
    /// | `tol` | 1e-10 | decrease, relative to the [magnitude](crate::Problem::magnitude) of F, that counts as zero, see [`Status::Converged`](super::Status::Converged) |
    /// | `target` | none | stop when F reaches it |
    /// | `seed` | 0 | seed of all random choices |
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[non_exhaustive]
    pub struct Options {
        /// The rule that chooses rows.
        working_set: [WorkingSet] = WorkingSet::default(), with_working_set;
        /// Rows per block.
        block_size: [usize] = 2, with_block_size;
        /// Rows per tile.
        tile: [usize] = DEFAULT_TILE, with_tile;
        /// Gauss–Seidel or Jacobi.
        update: [Update] = Update::default(), with_update;
        /// Exact or scalar curvature.
        curvature: [Curvature] = Curvature::default(), with_curvature;
        /// Proximal weight α, relative to [`spread`](crate::QuadraticForm::spread): every accepted move lowers F
        /// by at least `α κ/2 ‖V − I‖²` (OBCD paper, Theorem 4.2), until a sweep has converged and the term is
        /// dropped.
        proximal: [f64] = 1e-5, with_proximal;
        /// Partners of a random row that a greedy rule scores; all pairs from n(n−1)/2 on.
        scored_pairs: [Option<usize>] = None, with_scored_pairs;
        /// The sides that move.
        side: [Side] = Side::Rows, with_side;
        /// Largest |μ| of one move of two rows or columns of opposite sign. With such a bound an objective that is
        /// unbounded below is lowered until ‖X‖ leaves its [bounds](super::DIVERGENCE).
        rapidity_bound: [Option<f64>] = None, with_rapidity_bound;
        /// True if all pairs are verified before a solve counts as converged. Without verification,
        /// [`Status::Converged`](super::Status::Converged) means that a sweep lowered F by at most the tolerance:
        /// enough for an intermediate point.
        verify: [bool] = true, with_verify;
        /// Time limit in seconds.
        max_time: [Option<f64>] = None, with_max_time;
        /// Limit on sweeps.
        max_sweeps: [Option<u64>] = None, with_max_sweeps;
        /// Limit on work, counted in multiply-adds of a matrix product ([`WORK_UNIT`](crate::WORK_UNIT) is about a
        /// second). Unlike a time limit it gives the same bits everywhere, and unlike a sweep limit it can end within a
        /// sweep.
        max_work: [Option<u64>] = None, with_max_work;
        /// Patience of a search: multiple of the work after which a search without limits ends by itself. Limits end
        /// the same search earlier. With ∞, which needs a limit on time or work, the search goes on until a limit or
        /// a known optimum ends it. A single descent has no patience.
        effort: [f64] = 1.0, with_effort;
        /// Decrease that counts as zero, relative to the [magnitude](crate::Problem::magnitude) of F.
        tol: [f64] = 1e-10, with_tol;
        /// Objective at which the solve stops.
        target: [Option<f64>] = None, with_target;
        /// Seed of all random choices.
        seed: [u64] = 0, with_seed;
    }
}

impl Options {
    /// Limits the work and the time to those that a task has left.
    pub(crate) fn within(self, work: &TaskWork<'_>) -> Self {
        Self { max_time: work.clock.left(), max_work: Some(work.left() as u64), ..self }
    }

    /// Returns the options with the limits that are left after these seconds, sweeps and work.
    pub(crate) fn left(&self, seconds: f64, sweeps: u64, work: u64) -> Self {
        Self {
            max_time: self.max_time.map(|limit| (limit - seconds).max(0.0)),
            max_sweeps: self.max_sweeps.map(|limit| limit.saturating_sub(sweeps)),
            max_work: self.max_work.map(|limit| limit.saturating_sub(work)),
            ..self.clone()
        }
    }

    /// Returns whether the cyclic rule uses sets of more than two rows.
    fn cycles(&self) -> bool {
        let cyclic = self.update == Update::GaussSeidel && self.working_set == WorkingSet::Cyclic;
        cyclic && self.block_size > 2
    }

    /// Returns the number of pairs of a sweep: all pairs of rows, or, if f is quadratic and the cyclic rule
    /// uses sets of k > 2 rows, the pairs of all sets.
    pub(crate) fn pairs_of_sweep(&self, smooth: &dyn Objective) -> u64 {
        let pairs = |k: usize| (k * (k - 1) / 2) as u64;
        let n = smooth.rows();
        let blocks =
            if self.cycles() && smooth.quadratic().is_some() { working_set::blocks(n, self.block_size) } else { None };
        blocks.map_or(pairs(n), |blocks| blocks * pairs(self.block_size))
    }

    /// Returns whether a search ends by itself.
    pub(crate) fn ends_by_itself(&self) -> bool {
        self.effort.is_finite()
    }

    /// Checks the options of a search with n rows.
    ///
    /// # Errors
    /// As [`check`](Self::check), and if nothing ends the search.
    pub(crate) fn check_search(&self, n: usize) -> Result<()> {
        self.check(n)?;
        if self.ends_by_itself() || self.max_time.is_some() || self.max_work.is_some() {
            return Ok(());
        }
        Err(Error::invalid("effort", "must be finite without max_time and max_work, as nothing would end the search"))
    }

    /// Checks the values against a problem with n rows.
    ///
    /// # Errors
    /// If a value is out of range.
    pub fn check(&self, n: usize) -> Result<()> {
        let nonnegative = |name: &'static str, value: f64| {
            if value.is_finite() && value >= 0.0 {
                Ok(())
            } else {
                Err(Error::invalid(name, format!("must be finite and nonnegative, got {value}")))
            }
        };
        nonnegative("proximal", self.proximal)?;
        nonnegative("tol", self.tol)?;
        if let Some(seconds) = self.max_time {
            nonnegative("max_time", seconds)?;
        }
        if !(self.effort > 0.0) {
            let message = format!("must be positive, got {}", self.effort);
            return Err(Error::invalid("effort", message));
        }
        if let Some(bound) = self.rapidity_bound
            && !(bound.is_finite() && bound > 0.0)
        {
            return Err(Error::invalid("rapidity_bound", format!("must be finite and positive, got {bound}")));
        }
        if self.scored_pairs == Some(0) {
            return Err(Error::invalid("scored_pairs", "must be at least 1, got 0"));
        }
        if self.block_size < 2 || self.block_size > n {
            return Err(Error::invalid(
                "block_size",
                format!("must be between 2 and n = {n}, got {}", self.block_size),
            ));
        }
        if self.cycles() && working_set::blocks(n, self.block_size).is_none() {
            return Err(Error::invalid(
                "block_size",
                format!(
                    "must have at most {MAX_CYCLE} sets of rows for the cyclic working set, n = {n} rows have more of \
                     {}; use the random one",
                    self.block_size
                ),
            ));
        }
        if self.tile < 2 {
            return Err(Error::invalid("tile", format!("must be at least 2, got {}", self.tile)));
        }
        Ok(())
    }
}
