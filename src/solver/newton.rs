//! Newton's method within a trust region for a smooth f alone that gives products with its Hessian: superlinear where
//! gradient steps are slow.
//!
//! With Λ the multiplier of G = ∇f(X), the Hessian on {XᵀJX = K} is `V ↦ P(∇²f(X)[V] − JVΛ)`, P the projection onto
//! the tangent space (Absil, Mahony and Trumpf, Geometric Science of Information, 2013). Its quadratic model is lowered
//! within a [trust region](crate::riemann::trust), and the point follows where F falls as the model says.

use ndarray::Array2;

use super::gradient::{Gradient, evaluated};
use super::ledger::Ledger;
use super::measure::{evaluation_work, manifold, rounding, tangent_part};
use super::mover::Step;
use super::point::Point;
use crate::linalg::square;
use crate::manifold::normals;
use crate::riemann::gradient::LONGEST;
use crate::riemann::trust;

/// Steps are slow when the least ‖grad f‖² of so many is more than this share of what it was before. Slow gradient steps
/// are followed by Newton's method, and that, where it is slow, by gradient steps for good.
const WINDOW: u32 = 50;
const SLOW: f64 = 1e-2;

/// The first Δ, relative to ‖X‖.
const RADIUS: f64 = 0.1;

/// The model is solved to this share of ‖grad f‖, or to ‖grad f‖/‖∇f‖ of it where that is less; never beyond this
/// share of what counts as no gradient.
const FORCING: f64 = 0.1;
const ENOUGH: f64 = 0.3;

/// A step is taken if F falls by this share of what the model says.
const ACCEPTED: f64 = 0.1;

/// Steps in a row that are not taken, after which the Hessian is not trusted any more.
const REJECTIONS: u32 = 10;

/// The trust region, and the model under way.
#[derive(Default)]
pub(super) struct Newton {
    course: Course,
    active: bool,
    radius: f64,
    rejections: u32,
    model: Option<Hessian>,
}

/// Steps of this window, the least ‖grad f‖² in it, and before it.
#[derive(Default)]
struct Course {
    steps: u32,
    least: f64,
    before: Option<f64>,
}

impl Course {
    /// Whether the window that ends here was slow.
    fn is_slow(&mut self, norm2: f64) -> bool {
        let before = *self.before.get_or_insert(norm2);
        self.least = if self.steps == 0 {
            norm2
        } else {
            self.least.min(norm2)
        };
        self.steps += 1;
        if self.steps < WINDOW {
            return false;
        }
        (self.steps, self.before) = (0, Some(self.least));
        self.least > SLOW * before
    }
}

/// The model at X under way.
struct Hessian {
    lambda: Array2<f64>,
    truncated: trust::Truncated,
}

impl Newton {
    /// Whether gradient steps have become slow; asked before each of them.
    pub(super) fn takes_over(&mut self, at: &Gradient) -> bool {
        if !self.active && self.course.is_slow(at.steps.norm2) {
            (self.active, self.course) = (true, Course::default());
        }
        self.active
    }

    /// A product with the Hessian, or the step at the end of these. None where f gives no product, or none that brings
    /// X on.
    pub(super) fn step(
        &mut self,
        at: &mut Gradient,
        point: &mut Point<'_>,
        ledger: &mut Ledger,
    ) -> Option<Step> {
        let mut model = match self.model.take() {
            Some(model) => model,
            None if !(at.norm() > at.goal(ledger)) => {
                at.rest(point, ledger);
                return Some(Step::Pass);
            }
            None => Hessian::new(at, point, ledger),
        };
        if self.radius == 0.0 {
            self.radius = RADIUS * square(&at.steps.x).sqrt();
        }
        let (n, r) = at.steps.x.dim();
        ledger.visit(0, evaluation_work(point) + 10.0 * (n * r * r) as f64);
        let product = model.product(at, point)?;
        if !product.iter().all(|v| v.is_finite()) {
            return None;
        }
        if model.truncated.advance(&product, self.radius) || model.truncated.iterations >= n * r {
            return self.judge(&model.truncated, at, point, ledger);
        }
        self.model = Some(model);
        Some(Step::Within)
    }

    /// Goes to the end of the model if F falls enough there.
    fn judge(
        &mut self,
        model: &trust::Truncated,
        at: &mut Gradient,
        point: &mut Point<'_>,
        ledger: &mut Ledger,
    ) -> Option<Step> {
        ledger.visit(ledger.sweep, evaluation_work(point));
        let noise = rounding(point, ledger);
        let predicted = model.decrease(&at.steps.direction);
        let mut ratio = f64::NEG_INFINITY;
        let mut accepted = None;
        if let Some((x, value, gradient)) = evaluated(point, &(&at.steps.x + &model.step)) {
            let (moved, change) = (&x - &at.steps.x, value - at.steps.value);
            let gradients = (&at.gradient, &gradient);
            if at.secants.contradict(&moved, change, gradients, noise) {
                return Some(Step::Contradiction);
            }
            // Where rounding hides the decrease the gradient has to shrink.
            ratio = (noise - change) / (noise + predicted);
            let shrinks = || square(&tangent_part(point, &x, &gradient)) < at.steps.norm2;
            if ratio > ACCEPTED && (change <= 0.0 || change <= noise && shrinks()) {
                accepted = Some((x, value, gradient));
            }
        }
        let most = LONGEST * square(&at.steps.x).sqrt();
        self.radius = model.radius(self.radius, ratio, most);
        if let Some((x, value, gradient)) = accepted {
            self.rejections = 0;
            at.accept(point, ledger, x, value, gradient);
        } else {
            self.rejections += 1;
        }
        let trusted = self.rejections < REJECTIONS && !self.course.is_slow(at.steps.norm2);
        trusted.then_some(Step::Pass)
    }
}

impl Hessian {
    fn new(at: &Gradient, point: &Point<'_>, ledger: &Ledger) -> Self {
        let norm = at.norm();
        let relative = norm / square(&at.gradient).sqrt();
        let goal = (norm * relative.min(FORCING)).max(ENOUGH * at.goal(ledger));
        Self {
            lambda: manifold(point).multiplier(&at.steps.x, &at.gradient),
            truncated: trust::Truncated::new(&at.steps.direction, goal),
        }
    }

    /// The product of the Hessian with the direction.
    fn product(&self, at: &Gradient, point: &Point<'_>) -> Option<Array2<f64>> {
        let product = point.hessian_product(&at.steps.x, &self.truncated.direction)?;
        let bent = normals(&self.truncated.direction, point.problem.signature).dot(&self.lambda);
        Some(tangent_part(point, &at.steps.x, &(product - bent)))
    }
}
