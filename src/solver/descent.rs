//! The mover of an f that is not quadratic: gradient steps where h = 0, pairs on a majoriser elsewhere and to verify.

use super::gradient::Gradient;
use super::ledger::Ledger;
use super::majorised::Majorised;
use super::mover::{Mover, Step};
use super::options::Options;
use super::point::Point;
use crate::penalty::Penalty;

/// Gradient steps, if there are any, until they rest; then pairs, as long as they find something.
pub(super) struct Descent {
    gradient: Option<Gradient>,
    pairs: Majorised,
}

impl Descent {
    pub(super) fn new<P: Penalty>(point: &Point<'_, P>, options: &Options) -> Self {
        Self {
            gradient: if P::SMOOTH {
                Gradient::new(point)
            } else {
                None
            },
            pairs: Majorised::new(point, options),
        }
    }
}

impl<P: Penalty> Mover<P> for Descent {
    fn step(&mut self, point: &mut Point<'_, P>, ledger: &mut Ledger) -> Step {
        let Some(gradient) = &mut self.gradient else {
            return self.pairs.step(point, ledger);
        };
        if !gradient.rests {
            let step = gradient.step(point, ledger);
            if gradient.rests {
                self.pairs
                    .learn(gradient.secants.largest, gradient.steepest);
                let blind = gradient.norm() > gradient.goal(ledger);
                self.pairs.verify(point, ledger, blind);
            }
            return step;
        }
        let before = ledger.updates;
        let step = self.pairs.step(point, ledger);
        if step == Step::Pass && ledger.updates > before && !self.pairs.verified {
            gradient.restart(point);
        }
        step
    }

    fn begin(&mut self) {
        self.pairs.verified = false;
    }

    /// It has verified by itself that no pair is left.
    fn is_exhaustive(&self) -> bool {
        self.pairs.verified
    }

    fn polishes(&mut self) -> bool {
        !self.pairs.verified
    }
}
