//! Methods that move X, one step at a time.

use super::ledger::Ledger;
use super::point::Point;
use crate::pair::Recession;

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// The step is done, and the pass goes on.
    Done,
    /// The same, while the mover holds a copy of X: nothing else may move X before its next step.
    Within,
    /// The last step of a pass over everything that moves.
    Pass,
    /// In a pass that moves nothing: a pair was found that could lower F by more than the tolerance.
    Found,
    /// F is unbounded below along this pair.
    Unbounded(Recession),
    /// The [rule](crate::working_set::Rule) that chooses rows ended the solve.
    Ended,
    /// The values of f contradict its gradient.
    Contradiction,
    /// X has left the bounds, see [`DIVERGENCE`](super::DIVERGENCE).
    Diverged,
}

/// A method that moves X, keeps XᵀJX and never raises F. The loop calls its steps and handles limits,
/// reports, drift and convergence; see [`minimize_by`](super::minimize_by) for a mover of your own.
pub trait Mover {
    /// Makes some moves, for a few hundredths of a second at most.
    fn step(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step;

    /// Called before a pass if something else has moved X since the last pass.
    fn begin(&mut self) {}

    /// Called before a pass that repeats the last one, which lowered F by `decrease`.
    fn again(&mut self, _decrease: f64, _threshold: f64) {}

    /// Drops the proximal term of later moves; returns whether there was one.
    fn drop_proximal(&mut self) -> bool {
        false
    }

    /// Returns whether a pass that moves nothing has solved every pair of rows exactly.
    fn is_exhaustive(&self) -> bool {
        false
    }

    /// Returns whether another pass is useful although F no longer falls.
    fn polishes(&mut self) -> bool {
        false
    }
}
