//! The loop of every search: rounds until a limit cuts the sequence, or the search ends by itself.
//!
//! What a round does depends on the problem, the options, the seed and the rounds before it alone. So a limit on time or work, or
//! Ctrl-C, only cuts the sequence after a task, and with more time or work F is never higher.

use super::incumbent::Incumbent;
use crate::solver::Status;

/// A fixed sequence of rounds.
pub(super) trait Sequence<'a> {
    fn incumbent(&mut self) -> &mut Incumbent<'a>;

    /// Runs the next round; false if no more work would change anything.
    fn advance(&mut self) -> bool;

    /// Returns F at or below which the incumbent is known to be optimal; −∞ if nothing is known.
    fn optimum(&self) -> f64;

    /// Returns whether the limit on sweeps is reached.
    fn is_swept(&self) -> bool;

    /// Returns the least work without a decrease of F after which a search with an effort of 1 ends, if as much work again
    /// has brought nothing.
    fn idle_work(&self) -> f64;

    /// Returns whether enough independent starts led to the incumbent and improvements have found nothing since, or
    /// nothing is left to try.
    fn is_done(&self) -> bool;

    /// Polishes the incumbent a last time, and sets the status unless a limit has done so.
    fn finish(&mut self);

    /// Returns whether a limit was reached or the incumbent is a known optimum, and sets the status.
    fn is_over(&mut self) -> bool {
        let (optimum, swept) = (self.optimum(), self.is_swept());
        let incumbent = self.incumbent();
        if !incumbent.is_over() && swept {
            incumbent.status = Some(Status::MaxSweeps);
        }
        if incumbent.best.objective <= optimum {
            incumbent.best.stationary = true;
            // A limit did not end it.
            let limited = matches!(incumbent.status, Some(Status::MaxTime | Status::MaxWork));
            incumbent.status = incumbent.status.filter(|_| !limited).or(Some(Status::Converged));
        }
        incumbent.status.is_some()
    }

    /// Returns whether the search ends here, by a limit or by itself.
    fn has_ended(&mut self) -> bool {
        if self.is_over() {
            return true;
        }
        let idle_work = self.idle_work();
        let incumbent = self.incumbent();
        let options = &incumbent.auto.options;
        options.ends_by_itself() && (incumbent.is_idle(options.effort, idle_work) || self.is_done())
    }

    /// Runs the sequence until the search ends.
    fn run(mut self)
    where
        Self: Sized,
    {
        while !self.has_ended() && self.advance() {}
        self.finish();
    }
}
