//! The mover of a nonquadratic f. If h = 0 it makes gradient and Newton steps, if h has kinks tangent steps;
//! then pairs on a majoriser, which also verify convergence. If the options ask for the papers' single pairs,
//! these replace the first steps.

use super::descent::Descent;
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
pub(super) struct Descents {
    single: Option<Pairwise>,
    first: Option<Box<dyn Descent>>,
    pairs: Majorised,
}

/// Returns the steps of all rows at once that apply to the problem.
fn first(point: &Point<'_>) -> Option<Box<dyn Descent>> {
    if let Some(smooth) = Smooth::new(point) {
        return Some(Box::new(smooth));
    }
    Some(Box::new(Proximal::new(point)?))
}

impl Descents {
    pub(super) fn new(point: &Point<'_>, options: &Options) -> Self {
        let single = Pairwise::new(point, options);
        let first = if single.is_none() { first(point) } else { None };
        Self { single, first, pairs: Majorised::new(point, options) }
    }
}

impl Mover for Descents {
    fn step(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        if let Some(single) = self.single.as_mut().filter(|single| !single.converged) {
            return single.step(&mut self.pairs, point, ledger);
        }
        if let Some(first) = self.first.as_mut().filter(|first| !first.has_converged()) {
            let step = first.advance(point, ledger);
            if first.has_converged() {
                first.teach(&mut self.pairs, point, ledger);
            }
            return step;
        }
        let before = ledger.updates;
        let step = self.pairs.step(point, ledger);
        if step == Step::Pass && ledger.updates > before && !self.pairs.verified {
            self.single.iter_mut().for_each(|single| single.converged = false);
            self.first.iter_mut().for_each(|first| first.restart(point));
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
