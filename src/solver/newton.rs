//! Newton's method within a trust region for a smooth f alone that gives products with its Hessian: superlinear where
//! gradient steps are slow.
//!
//! With Λ the multiplier of G = ∇f(X), the Hessian on {XᵀJX = K} is `V ↦ P(∇²f(X)[V] − JVΛ)`, P the projection onto
//! the tangent space (Absil, Mahony and Trumpf, Geometric Science of Information, 2013). Its quadratic model is lowered
//! within ‖η‖ ≤ Δ by truncated conjugate gradients (Absil, Baker and Gallivan, Found. Comput. Math. 7, 2007), a
//! product with the Hessian per step, and the point follows where F falls as the model says.

use ndarray::Array2;

use super::gradient::{Gradient, LONGEST, evaluated};
use super::ledger::Ledger;
use super::measure::{evaluation_work, manifold, rounding, tangent_part};
use super::mover::Step;
use super::point::Point;
use crate::linalg::{inner, square};
use crate::manifold::normals;

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

/// A step is taken if F falls by this share of what the model says; Δ shrinks to this share of the step below the
/// second, and doubles above the third.
const ACCEPTED: f64 = 0.1;
const POOR: f64 = 0.25;
const GOOD: f64 = 0.75;

/// Steps in a row that are not taken, after which the Hessian is not trusted any more.
const REJECTIONS: u32 = 10;

/// The trust region, and the model under way.
#[derive(Default)]
pub(super) struct Newton {
    course: Course,
    active: bool,
    radius: f64,
    rejections: u32,
    model: Option<Model>,
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

/// Conjugate gradients for the model at X: η, H\[η\], the residual and the next direction.
struct Model {
    lambda: Array2<f64>,
    step: Array2<f64>,
    image: Array2<f64>,
    residual: Array2<f64>,
    direction: Array2<f64>,
    goal: f64,
    steps: usize,
}

impl Newton {
    /// Whether gradient steps have become slow; asked before each of them.
    pub(super) fn takes_over(&mut self, at: &Gradient) -> bool {
        if !self.active && self.course.is_slow(at.norm2) {
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
            None => Model::new(at, point, ledger),
        };
        if self.radius == 0.0 {
            self.radius = RADIUS * square(&at.x).sqrt();
        }
        let (n, r) = at.x.dim();
        ledger.visit(0, evaluation_work(point) + 10.0 * (n * r * r) as f64);
        let product = model.product(at, point)?;
        let curvature = inner(&model.direction, &product);
        if !curvature.is_finite() {
            return None;
        }
        let before = square(&model.residual);
        let length = before / curvature;
        let [own, cross, ahead] = [
            square(&model.step),
            inner(&model.step, &model.direction),
            square(&model.direction),
        ];
        let reach = own + length * (2.0 * cross + length * ahead);
        let bounded = !(curvature > 0.0) || !(reach < self.radius * self.radius);
        let length = if bounded {
            let room = (self.radius * self.radius - own).max(0.0);
            room / (cross + (cross * cross + ahead * room).sqrt())
        } else {
            length
        };
        model.step.scaled_add(length, &model.direction);
        model.image.scaled_add(length, &product);
        model.residual.scaled_add(length, &product);
        model.steps += 1;
        let rest = square(&model.residual);
        if bounded || rest.sqrt() <= model.goal || model.steps >= n * r {
            return self.judge(model, bounded, at, point, ledger);
        }
        model.direction *= rest / before;
        model.direction -= &model.residual;
        self.model = Some(model);
        Some(Step::Within)
    }

    /// Goes to the end of the model if F falls enough there.
    fn judge(
        &mut self,
        model: Model,
        bounded: bool,
        at: &mut Gradient,
        point: &mut Point<'_>,
        ledger: &mut Ledger,
    ) -> Option<Step> {
        ledger.visit(ledger.sweep, evaluation_work(point));
        let noise = rounding(point, ledger);
        let predicted = -inner(&at.direction, &model.step) - 0.5 * inner(&model.step, &model.image);
        let mut ratio = f64::NEG_INFINITY;
        let mut accepted = None;
        if let Some((x, value, gradient)) = evaluated(point, &(&at.x + &model.step)) {
            let (moved, change) = (&x - &at.x, value - at.value);
            let gradients = (&at.gradient, &gradient);
            if at.secants.contradict(&moved, change, gradients, noise) {
                return Some(Step::Contradiction);
            }
            // Where rounding hides the decrease the gradient has to shrink.
            ratio = (noise - change) / (noise + predicted);
            let shrinks = || square(&tangent_part(point, &x, &gradient)) < at.norm2;
            if ratio > ACCEPTED && (change <= 0.0 || change <= noise && shrinks()) {
                accepted = Some((x, value, gradient));
            }
        }
        if !(ratio >= POOR) {
            self.radius = POOR * square(&model.step).sqrt();
        } else if ratio > GOOD && bounded {
            self.radius = (2.0 * self.radius).min(LONGEST * square(&at.x).sqrt());
        }
        if let Some((x, value, gradient)) = accepted {
            self.rejections = 0;
            at.accept(point, ledger, x, value, gradient);
        } else {
            self.rejections += 1;
        }
        let trusted = self.rejections < REJECTIONS && !self.course.is_slow(at.norm2);
        trusted.then_some(Step::Pass)
    }
}

impl Model {
    fn new(at: &Gradient, point: &Point<'_>, ledger: &Ledger) -> Self {
        let norm = at.norm();
        let relative = norm / square(&at.gradient).sqrt();
        Self {
            lambda: manifold(point).multiplier(&at.x, &at.gradient),
            step: Array2::zeros(at.x.dim()),
            image: Array2::zeros(at.x.dim()),
            residual: at.direction.clone(),
            direction: -&at.direction,
            goal: (norm * relative.min(FORCING)).max(ENOUGH * at.goal(ledger)),
            steps: 0,
        }
    }

    /// The product of the Hessian with the direction.
    fn product(&self, at: &Gradient, point: &Point<'_>) -> Option<Array2<f64>> {
        let product = point.hessian_product(&at.x, &self.direction)?;
        let bent = normals(&self.direction, point.problem.signature).dot(&self.lambda);
        Some(tangent_part(point, &at.x, &(product - bent)))
    }
}
