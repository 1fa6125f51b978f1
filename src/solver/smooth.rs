//! Gradient steps and, if they are slow, Newton's method for h = 0: the mover of a quadratic form, and the
//! first part of the descent of any other f.

use super::gradient::GradientSteps;
use super::ledger::Ledger;
use super::mover::{Mover, Step};
use super::newton::Newton;
use super::options::{Options, Update};
use super::point::Point;
use crate::block::Curvature;
use crate::working_set::WorkingSet;

/// Steps of all rows at once.
pub(super) struct Smooth {
    pub(super) gradient: GradientSteps,
    /// None once f has provided no product with its Hessian, or Newton's method has failed.
    newton: Option<Newton>,
    /// True if something else has moved X.
    moved: bool,
}

impl Smooth {
    /// Steps from the current X; None with a penalty, or if XᵀJX is not diag(±1).
    pub(super) fn new(point: &Point<'_>) -> Option<Self> {
        let gradient = point.problem.penalty.is_none().then(|| GradientSteps::new(point)).flatten()?;
        Some(Self { gradient, newton: Some(Newton::default()), moved: false })
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

    /// Makes a gradient step, or a part of a Newton step.
    pub(super) fn advance(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
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
}

impl Mover for Smooth {
    fn step(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        if std::mem::take(&mut self.moved) {
            self.gradient.restart(point);
        }
        if self.gradient.converged {
            return Step::Pass;
        }
        let step = match self.advance(point, ledger) {
            // Value and gradient of a quadratic form are consistent, so F is lost in rounding.
            Step::Contradiction => {
                self.gradient.converged = true;
                Step::Pass
            }
            step => step,
        };
        if self.gradient.converged {
            point.follow();
        }
        step
    }

    fn begin(&mut self) {
        self.moved = true;
    }

    fn polishes(&mut self) -> bool {
        !self.gradient.converged
    }
}
