//! The mover of an f that is not quadratic: gradient and Newton steps where h = 0, pairs on a majoriser elsewhere and to
//! verify; or the papers' single pairs where they are asked for.

use super::gradient::Gradient;
use super::ledger::Ledger;
use super::majorised::Majorised;
use super::mover::{Mover, Step};
use super::newton::Newton;
use super::options::Options;
use super::pairwise::Pairwise;
use super::point::Point;
use crate::penalty::Penalty;

/// Single pairs or gradient steps, if there are any, until they rest; then pairs, as long as they find something.
pub(super) struct Descent {
    single: Option<Pairwise>,
    gradient: Option<Gradient>,
    /// None once f has given no product with its Hessian, or a wrong one.
    newton: Option<Newton>,
    pairs: Majorised,
}

impl Descent {
    pub(super) fn new<P: Penalty>(point: &Point<'_, P>, options: &Options) -> Self {
        let single = Pairwise::new(point, options);
        Self {
            gradient: if P::SMOOTH && single.is_none() {
                Gradient::new(point)
            } else {
                None
            },
            newton: Some(Newton::default()),
            pairs: Majorised::new(point, options),
            single,
        }
    }
}

impl<P: Penalty> Mover<P> for Descent {
    fn step(&mut self, point: &mut Point<'_, P>, ledger: &mut Ledger) -> Step {
        if let Some(single) = self.single.as_mut().filter(|single| !single.rests) {
            return single.step(&mut self.pairs, point, ledger);
        }
        if let Some(gradient) = self.gradient.as_mut().filter(|gradient| !gradient.rests) {
            let newton = self.newton.as_mut();
            let newton = newton.and_then(|newton| newton.takes_over(gradient).then_some(newton));
            let step = match newton.map(|newton| newton.step(gradient, point, ledger)) {
                Some(Some(step)) => step,
                Some(None) => {
                    self.newton = None;
                    Step::Done
                }
                None => gradient.step(point, ledger),
            };
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
            if let Some(single) = &mut self.single {
                single.rests = false;
            }
            if let Some(gradient) = &mut self.gradient {
                gradient.restart(point);
            }
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
