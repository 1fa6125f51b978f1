//! What moves X, a step at a time.

use super::ledger::Ledger;
use super::point::Point;
use crate::pair::Recession;

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// Something is done, and more is to come in this pass.
    Done,
    /// The same in the middle of what holds a copy of X: nothing else may move X before the next step.
    Within,
    /// The last step of a pass over everything that moves.
    Pass,
    /// Nothing moves in this pass, and a pair was found that could lower F by more than the tolerance.
    Found,
    /// F is unbounded below along this pair.
    Unbounded(Recession),
    /// The values of f do not change as its gradient says.
    Contradiction,
    /// X has left every bound, see [`DIVERGENCE`](super::DIVERGENCE).
    Diverged,
}

/// A way of moving X that keeps XᵀJX and never raises F. The loop gives it the steps, and takes care of limits,
/// reports, drift and convergence; see [`minimize_by`](super::minimize_by) for one of your own.
pub trait Mover {
    /// Some moves, of a few hundredths of a second at most.
    fn step(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step;

    /// Told before a pass if something else moved X since the last one.
    fn begin(&mut self) {}

    /// Told before a pass like the last one, which lowered F by `decrease`.
    fn again(&mut self, _decrease: f64, _threshold: f64) {}

    /// Lets the next moves do without a proximal term; returns whether there was one.
    fn drop_proximal(&mut self) -> bool {
        false
    }

    /// Whether a pass that moves nothing has solved every pair of rows exactly.
    fn is_exhaustive(&self) -> bool {
        false
    }

    /// Whether another pass is worth while although F no longer falls.
    fn polishes(&mut self) -> bool {
        false
    }
}
