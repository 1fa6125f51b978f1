//! Descents by trials of all rows at once, and the mover of a quadratic form by one of them.

use super::ledger::Ledger;
use super::majorised::Majorised;
use super::mover::{Mover, Step};
use super::point::Point;

/// A method that moves all rows at once.
pub(super) trait Descent {
    /// Makes a trial.
    fn advance(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step;

    /// Returns whether no step lowers F by more than the tolerance.
    fn has_converged(&self) -> bool;

    /// Continues after something else has moved X.
    fn restart(&mut self, point: &Point<'_>);

    /// Lets pairs begin with what the trials have told about f.
    fn teach(&self, pairs: &mut Majorised, point: &mut Point<'_>, ledger: &Ledger);
}

/// The mover of a quadratic form by a descent alone.
pub(super) struct Alone {
    steps: Box<dyn Descent>,
    /// True if something else has moved X.
    moved: bool,
    pub(super) converged: bool,
}

impl Alone {
    pub(super) fn new(steps: impl Descent + 'static) -> Self {
        Self { steps: Box::new(steps), moved: false, converged: false }
    }
}

impl Mover for Alone {
    fn step(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        if std::mem::take(&mut self.moved) {
            self.steps.restart(point);
            self.converged = false;
        }
        if self.converged {
            return Step::Pass;
        }
        let step = self.steps.advance(point, ledger);
        // Value and gradient of a quadratic form are consistent, so F is lost in rounding.
        let lost = step == Step::Contradiction;
        self.converged = lost || self.steps.has_converged();
        if self.converged {
            point.follow();
        }
        if lost { Step::Pass } else { step }
    }

    fn begin(&mut self) {
        self.moved = true;
    }

    fn polishes(&mut self) -> bool {
        !self.converged
    }
}
