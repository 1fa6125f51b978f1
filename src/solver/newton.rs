//! Newton's method within a trust region, for h = 0 and a smooth f with products with its Hessian; it
//! converges superlinearly if gradient steps are slow.
//!
//! With Λ the multiplier of G = ∇f(X), the Hessian on {XᵀJX = K} is `V ↦ P(∇²f(X)[V] − JVΛ)`, P the
//! projection onto the tangent space (Absil, Mahony and Trumpf, Geometric Science of Information, 2013). Its
//! quadratic model is lowered within a [trust region](crate::riemann::trust), and the step is accepted if F
//! falls as the model predicts.

use ndarray::Array2;

use super::gradient::GradientSteps;
use super::ledger::Ledger;
use super::measure::{evaluation_work, manifold, rounding, tangent_part};
use super::mover::Step;
use super::point::Point;
use crate::block::FAIR_SHARE;
use crate::linalg::square;
use crate::manifold::normals;
use crate::riemann::gradient::LONGEST;
use crate::riemann::trust;

/// Number of steps of the window in which slow steps are recognised.
const WINDOW: u32 = 50;

/// Steps are slow if the least ‖grad f‖² of a window exceeds this share of its earlier value. Newton's method follows
/// slow gradient steps; if it is slow too, gradient steps follow for good.
const SLOW: f64 = 1e-2;

/// The first Δ, relative to ‖X‖.
const RADIUS: f64 = 0.1;

/// The model is solved to this share of ‖grad f‖, or to the share ‖grad f‖/‖∇f‖ if smaller.
const FORCING: f64 = 0.1;

/// Least accuracy of the model, as a share of the norm at which X counts as critical.
const ENOUGH: f64 = 0.3;

/// Number of successive rejected steps after which the Hessian is no longer used.
const REJECTIONS: u32 = 10;

/// The trust region and its current model.
#[derive(Default)]
pub(super) struct Newton {
    window: SlowWindow,
    active: bool,
    radius: f64,
    rejections: u32,
    model: Option<Hessian>,
}

/// Steps in this window, the least ‖grad f‖² in it, and the least before it.
#[derive(Default)]
struct SlowWindow {
    steps: u32,
    least: f64,
    before: Option<f64>,
}

impl SlowWindow {
    /// Returns whether the window that ends here was slow.
    fn is_slow(&mut self, norm2: f64) -> bool {
        let before = *self.before.get_or_insert(norm2);
        self.least = if self.steps == 0 { norm2 } else { self.least.min(norm2) };
        self.steps += 1;
        if self.steps < WINDOW {
            return false;
        }
        (self.steps, self.before) = (0, Some(self.least));
        self.least > SLOW * before
    }
}

/// The current model at X.
struct Hessian {
    lambda: Array2<f64>,
    truncated: trust::Truncated,
}

impl Newton {
    /// Returns whether gradient steps have become slow; called before each of them.
    pub(super) fn takes_over(&mut self, at: &GradientSteps) -> bool {
        if !self.active && self.window.is_slow(at.steps.norm2) {
            (self.active, self.window) = (true, SlowWindow::default());
        }
        self.active
    }

    /// Computes a product with the Hessian, or makes the step after the last product. None if f provides no
    /// finite product, or if the method has become slow or rejected too many steps.
    pub(super) fn step(&mut self, at: &mut GradientSteps, point: &mut Point<'_>, ledger: &mut Ledger) -> Option<Step> {
        let mut model = match self.model.take() {
            Some(model) => model,
            None if !(at.norm() > at.goal(ledger)) => {
                at.finish(point, ledger);
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

    /// Accepts the step of the model if F falls enough.
    fn judge(
        &mut self,
        model: &trust::Truncated,
        at: &mut GradientSteps,
        point: &mut Point<'_>,
        ledger: &mut Ledger,
    ) -> Option<Step> {
        ledger.visit(ledger.sweep, evaluation_work(point));
        let noise = rounding(point, ledger);
        let predicted = model.decrease(&at.steps.direction);
        let trial = at.evaluated(point, &(&at.steps.x + &model.step), noise);
        let change = trial.as_ref().map_or(f64::INFINITY, |(_, there)| there.0 - at.steps.value);
        let ratio = (noise - change) / (noise + predicted);
        // If rounding hides the decrease, the gradient has to shrink.
        let shrinks =
            |x: &Array2<f64>, gradient: &Array2<f64>| square(&tangent_part(point, x, gradient)) < at.steps.norm2;
        let accepted = trial.filter(|(x, (_, gradient))| {
            ratio > FAIR_SHARE && (change <= 0.0 || change <= noise && shrinks(x, gradient))
        });
        let most = LONGEST * square(&at.steps.x).sqrt();
        self.radius = model.radius(self.radius, ratio, most);
        if let Some(accepted) = accepted {
            self.rejections = 0;
            at.accept(point, ledger, accepted);
        } else {
            self.rejections += 1;
        }
        let trusted = self.rejections < REJECTIONS && !self.window.is_slow(at.steps.norm2);
        trusted.then_some(Step::Pass)
    }
}

impl Hessian {
    fn new(at: &GradientSteps, point: &Point<'_>, ledger: &Ledger) -> Self {
        let norm = at.norm();
        let relative = norm / square(&at.gradient).sqrt();
        let goal = (norm * relative.min(FORCING)).max(ENOUGH * at.goal(ledger));
        Self {
            lambda: manifold(point).multiplier(&at.steps.x, &at.gradient),
            truncated: trust::Truncated::new(&at.steps.direction, goal),
        }
    }

    /// Returns the product of the Hessian with the direction.
    fn product(&self, at: &GradientSteps, point: &Point<'_>) -> Option<Array2<f64>> {
        let product = point.hessian_product(&at.steps.x, &self.truncated.direction)?;
        let bent = normals(&self.truncated.direction, point.problem.signature).dot(&self.lambda);
        Some(tangent_part(point, &at.steps.x, &(product - bent)))
    }
}
