//! The mover of a nonquadratic f. If h = 0 it makes gradient and Newton steps, if h has kinks tangent steps;
//! then pairs on a majoriser, which also verify convergence. If the options ask for the papers' single pairs,
//! these replace the first steps.

use super::ledger::Ledger;
use super::majorised::Majorised;
use super::mover::{Mover, Step};
use super::options::Options;
use super::pairwise::Pairwise;
use super::point::Point;
use super::proximal::Proximal;
use super::smooth::Smooth;

/// Single pairs, or steps of all rows at once if available, until convergence; then pairs, while they lower
/// F.
pub(super) struct Descent {
    first: First,
    pairs: Majorised,
}

/// The moves before the pairs.
enum First {
    Single(Box<Pairwise>),
    Smooth(Box<Smooth>),
    Proximal(Box<Proximal>),
    None,
}

impl First {
    fn new(point: &Point<'_>, options: &Options) -> Self {
        if let Some(single) = Pairwise::new(point, options) {
            return Self::Single(Box::new(single));
        }
        if let Some(smooth) = Smooth::new(point) {
            return Self::Smooth(Box::new(smooth));
        }
        match Proximal::new(point) {
            Some(proximal) => Self::Proximal(Box::new(proximal)),
            None => Self::None,
        }
    }
}

impl Descent {
    pub(super) fn new(point: &Point<'_>, options: &Options) -> Self {
        Self { first: First::new(point, options), pairs: Majorised::new(point, options) }
    }

    /// Makes a step of the first moves; None if they have converged.
    fn before_pairs(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Option<Step> {
        match &mut self.first {
            First::Single(single) if !single.converged => Some(single.step(&mut self.pairs, point, ledger)),
            First::Smooth(smooth) if !smooth.gradient.converged => {
                let step = smooth.advance(point, ledger);
                let gradient = &smooth.gradient;
                if gradient.converged {
                    self.pairs.learn(gradient.secants.largest, gradient.steepest);
                    let blind = gradient.norm() > gradient.goal(ledger);
                    self.pairs.verify(point, ledger, blind);
                }
                Some(step)
            }
            First::Proximal(proximal) if !proximal.has_converged() => {
                let step = proximal.advance(point, ledger);
                if proximal.has_converged() {
                    self.pairs.learn(proximal.secant(), 0.0);
                }
                Some(step)
            }
            _ => None,
        }
    }
}

impl Mover for Descent {
    fn step(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        if let Some(step) = self.before_pairs(point, ledger) {
            return step;
        }
        let before = ledger.updates;
        let step = self.pairs.step(point, ledger);
        if step == Step::Pass && ledger.updates > before && !self.pairs.verified {
            match &mut self.first {
                First::Single(single) => single.converged = false,
                First::Smooth(smooth) => smooth.gradient.restart(point),
                First::Proximal(proximal) => proximal.restart(),
                First::None => {}
            }
        }
        step
    }

    fn begin(&mut self) {
        self.pairs.verified = false;
    }

    /// Returns whether a verified pass has found no pair that lowers F.
    fn is_exhaustive(&self) -> bool {
        self.pairs.verified
    }

    fn polishes(&mut self) -> bool {
        !self.pairs.verified
    }
}
