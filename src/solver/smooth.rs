//! Gradient steps and, if they are slow, Newton's method for h = 0.

use super::descent::Descent;
use super::gradient::GradientSteps;
use super::ledger::Ledger;
use super::majorised::Majorised;
use super::mover::Step;
use super::newton::Newton;
use super::options::{Options, Update};
use super::point::Point;
use crate::block::Curvature;
use crate::working_set::WorkingSet;

/// Steps of all rows at once.
pub(super) struct Smooth {
    gradient: GradientSteps,
    /// None once f has provided no product with its Hessian, or Newton's method has failed.
    newton: Option<Newton>,
}

impl Smooth {
    /// Steps from the current X; None with a penalty, or if XᵀJX is not diag(±1).
    pub(super) fn new(point: &Point<'_>) -> Option<Self> {
        let gradient = point.problem.penalty.is_none().then(|| GradientSteps::new(point)).flatten()?;
        Some(Self { gradient, newton: Some(Newton::default()) })
    }

    /// The mover of a quadratic form without penalty on the Stiefel manifold, unless the options ask for
    /// single pairs or blocks, matchings or the scalar curvature.
    pub(super) fn of_form(point: &Point<'_>, options: &Options) -> Option<Self> {
        let free = options.update == Update::GaussSeidel
            && options.working_set == WorkingSet::Tiled
            && options.curvature == Curvature::Exact;
        let stiefel = point.form.is_some() && point.problem.signature.is_definite();
        (free && stiefel).then(|| Self::new(point)).flatten()
    }
}

impl Descent for Smooth {
    /// Makes a gradient step, or a part of a Newton step.
    fn advance(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        let gradient = &mut self.gradient;
        let newton = self.newton.as_mut();
        let newton = newton.and_then(|newton| newton.takes_over(gradient).then_some(newton));
        match newton.map(|newton| newton.step(gradient, point, ledger)) {
            Some(Some(step)) => step,
            Some(None) => {
                self.newton = None;
                Step::Done
            }
            None => gradient.step(point, ledger),
        }
    }

    fn has_converged(&self) -> bool {
        self.gradient.converged
    }

    fn restart(&mut self, point: &Point<'_>) {
        self.gradient.restart(point);
    }

    fn teach(&self, pairs: &mut Majorised, point: &mut Point<'_>, ledger: &Ledger) {
        pairs.learn(self.gradient.secants.largest, self.gradient.steepest);
        pairs.verify(point, ledger, self.gradient.norm() > self.gradient.goal(ledger));
    }
}
