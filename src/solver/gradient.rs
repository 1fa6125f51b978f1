//! Riemannian gradient steps for a smooth f with h = 0.
//!
//! [Steps with Barzilai–Borwein lengths](crate::riemann::gradient) along −(G − JXΛ), the tangent part of G =
//! ∇f(X). The retraction is the polar factor, or Newton's method for XᵀJX = diag(±1). A step costs one value
//! and gradient and O(nr²). F may rise between steps; the point keeps the best X.

use ndarray::Array2;

use super::ledger::Ledger;
use super::measure::{FIRST, RESOLVED, Secants, critical, evaluation_work, manifold, rounding, tangent_part};
use super::mover::Step;
use super::point::Point;
use crate::linalg::square;
use crate::manifold::{polar, signs_of};
use crate::riemann::gradient::GradientDescent;

/// Shares by which a failed step length is reduced.
const SHORTER: (f64, f64) = (0.05, 0.5);

/// After this number of successive steps whose decrease could be rounding, without a smaller gradient, the
/// descent stalls; it also stalls if a step length is reduced until its decrease could be rounding.
const BLIND: u32 = 100;

/// Value and gradient contradict each other after this number of successive stalls, if the gradient predicts a decrease
/// of more than [`RESOLVED`] times the rounding.
const STALLS: u32 = 3;

/// Value and gradient contradict each other, too, after one stall whose step length was reduced by this factor.
const CONTRADICTION: f64 = 1e-6;

/// The steps and their state.
pub(super) struct GradientSteps {
    pub(super) steps: GradientDescent,
    /// f at the point, the lowest so far.
    best: f64,
    pub(super) gradient: Array2<f64>,
    /// The first step length of this direction, and the number of successive stalls.
    first: f64,
    stalls: u32,
    /// Steps whose decrease could be rounding since ‖G − JXΛ‖² was `least`.
    blind: u32,
    least: f64,
    /// The largest ‖G‖ met.
    pub(super) steepest: f64,
    pub(super) secants: Secants,
    /// True if the steps have converged or stalled.
    pub(super) converged: bool,
}

/// Returns the feasible point of a step to `trial`, and f and ∇f there.
pub(super) fn evaluated(point: &Point<'_>, trial: &Array2<f64>) -> Option<(Array2<f64>, f64, Array2<f64>)> {
    let x = if point.problem.signature.is_definite() { polar(trial) } else { manifold(point).restore_dense(trial)? };
    let (value, gradient) = point.try_evaluate(&x)?;
    Some((x, value, gradient))
}

impl GradientSteps {
    /// Steps from the current X; None without a retraction: XᵀJX has to be diag(±1).
    pub(super) fn new(point: &Point<'_>) -> Option<Self> {
        signs_of(point.domain.k.view())?;
        let (value, gradient) = point.evaluated();
        let direction = tangent_part(point, &point.x, &gradient);
        let length = FIRST * (square(&point.x) / square(&direction)).sqrt();
        let steps = GradientDescent::new(point.x.clone(), value, direction, length);
        Some(Self {
            best: value,
            steepest: square(&gradient).sqrt(),
            gradient,
            first: length,
            least: steps.norm2,
            steps,
            stalls: 0,
            blind: 0,
            secants: Secants::default(),
            converged: false,
        })
    }

    /// Continues from the present point.
    pub(super) fn restart(&mut self, point: &Point<'_>) {
        if let Some(mut fresh) = Self::new(point) {
            if self.secants.largest > 0.0 {
                fresh.steps.length = fresh.steps.length.min(1.0 / self.secants.largest);
            }
            *self = Self {
                steepest: self.steepest.max(fresh.steepest),
                secants: self.secants,
                stalls: self.stalls,
                first: fresh.steps.length,
                ..fresh
            };
        }
    }

    /// Returns ‖G − JXΛ‖.
    pub(super) fn norm(&self) -> f64 {
        self.steps.norm2.sqrt()
    }

    /// Returns the ‖G − JXΛ‖ at which X counts as critical.
    pub(super) fn goal(&self, ledger: &Ledger) -> f64 {
        critical(ledger, &self.gradient, self.steepest)
    }

    /// Makes one trial. All pairs move, so it counts as a sweep.
    pub(super) fn step(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        if !(self.norm() > self.goal(ledger)) {
            self.finish(point, ledger);
            return Step::Pass;
        }
        let (n, r) = self.steps.x.dim();
        let work = evaluation_work(point) + 10.0 * (n * r * r) as f64;
        ledger.visit(ledger.sweep, work);
        let noise = rounding(point, ledger);
        match evaluated(point, &self.steps.trial()) {
            Some(trial) => self.judge(point, ledger, trial, noise),
            None => self.shorten(point, ledger, f64::INFINITY, noise),
        }
    }

    /// Accepts a trial, or reduces the step length.
    fn judge(
        &mut self,
        point: &mut Point<'_>,
        ledger: &mut Ledger,
        (x, value, gradient): (Array2<f64>, f64, Array2<f64>),
        noise: f64,
    ) -> Step {
        let (moved, gradients) = (&x - &self.steps.x, (&self.gradient, &gradient));
        let change = value - self.steps.value;
        if self.secants.contradict(&moved, change, gradients, noise) {
            return Step::Contradiction;
        }
        let predicted = self.steps.length * self.steps.norm2;
        let allowance = if predicted <= noise { noise } else { 0.0 };
        if !self.steps.accepts(value - allowance) {
            return self.shorten(point, ledger, change, noise);
        }
        self.accept(point, ledger, x, value, gradient);
        if predicted > noise {
            self.stalls = 0;
        }
        if self.steps.norm2 < self.least || predicted > noise {
            (self.blind, self.least) = (0, self.steps.norm2);
        } else {
            self.blind += 1;
        }
        if self.blind > BLIND {
            return self.stall(point, ledger);
        }
        Step::Pass
    }

    /// Reduces the step length after a trial that changed F by `change`, to the minimiser of the parabola
    /// through F, its slope and `change`.
    fn shorten(&mut self, point: &mut Point<'_>, ledger: &mut Ledger, change: f64, noise: f64) -> Step {
        let predicted = self.steps.length * self.steps.norm2;
        let share = 0.5 * predicted / (change + predicted);
        self.steps.length *= share.clamp(SHORTER.0, SHORTER.1);
        if self.steps.length * self.steps.norm2 <= noise {
            return self.stall(point, ledger);
        }
        Step::Pass
    }

    /// Moves to X.
    pub(super) fn accept(
        &mut self,
        point: &mut Point<'_>,
        ledger: &mut Ledger,
        x: Array2<f64>,
        value: f64,
        gradient: Array2<f64>,
    ) {
        let direction = tangent_part(point, &x, &gradient);
        self.steps.accept(x, value, direction);
        self.first = self.steps.length;
        self.steepest = self.steepest.max(square(&gradient).sqrt());
        self.gradient = gradient;
        if value < self.best {
            self.adopt(point, ledger);
        }
    }

    /// Handles a direction in which no step lowers F by more than its rounding.
    fn stall(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        self.stalls += 1;
        let promised = self.steps.norm2 / self.secants.largest;
        if promised > RESOLVED * rounding(point, ledger)
            && (self.stalls > STALLS || self.steps.length < CONTRADICTION * self.first)
        {
            return Step::Contradiction;
        }
        self.finish(point, ledger);
        Step::Pass
    }

    fn adopt(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) {
        let steps = &self.steps;
        ledger.lower(steps.value - self.best, 1);
        self.best = steps.value;
        point.adopt(steps.x.clone(), (steps.value, self.gradient.clone()));
    }

    /// Ends the steps, unless the best X is better by more than rounding: then they restart there.
    pub(super) fn finish(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) {
        if self.steps.value <= self.best + rounding(point, ledger) {
            if self.steps.value != self.best {
                self.adopt(point, ledger);
            }
            self.converged = true;
        } else {
            self.restart(point);
        }
    }
}
