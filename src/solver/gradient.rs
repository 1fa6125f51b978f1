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
use crate::riemann::proximal::EvaluatedPoint;

/// Shares by which a failed step length is reduced.
const SHORTER: (f64, f64) = (0.05, 0.5);

/// After this number of successive steps whose decrease could be rounding, without a smaller gradient, the
/// descent stalls; it also stalls if a step length is reduced until its decrease could be rounding.
const BLIND: u32 = 100;

/// The steps and their state.
pub(super) struct GradientSteps {
    pub(super) steps: GradientDescent,
    /// f at the point, the lowest so far.
    best: f64,
    pub(super) gradient: Array2<f64>,
    /// Steps whose decrease could be rounding since ‖G − JXΛ‖² was `least`.
    blind: u32,
    least: f64,
    /// The largest ‖G‖ met.
    pub(super) steepest: f64,
    pub(super) secants: Secants,
    /// True if the steps have converged or stalled.
    pub(super) converged: bool,
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
            least: steps.norm2,
            steps,
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
            *self = Self { steepest: self.steepest.max(fresh.steepest), secants: self.secants, ..fresh };
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
        ledger.visit(ledger.sweep, evaluation_work(point) + 10.0 * (n * r * r) as f64);
        let noise = rounding(point, ledger);
        let predicted = self.steps.length * self.steps.norm2;
        let allowance = if predicted <= noise { noise } else { 0.0 };
        let trial = self.evaluated(point, &self.steps.trial(), noise);
        if self.secants.contradict() {
            return Step::Contradiction;
        }
        let change = trial.as_ref().map_or(f64::INFINITY, |(_, at)| at.0 - self.steps.value);
        match trial {
            Some(trial) if self.steps.accepts(trial.1.0 - allowance) => {
                self.accept(point, ledger, trial);
                self.blind += 1;
                if self.steps.norm2 < self.least || predicted > noise {
                    (self.blind, self.least) = (0, self.steps.norm2);
                }
            }
            _ => {
                // The minimiser of the parabola through F, its slope and its change.
                let share = 0.5 * predicted / (change + predicted);
                self.steps.length *= share.clamp(SHORTER.0, SHORTER.1);
                if self.steps.length * self.steps.norm2 <= noise {
                    return self.stall(point, ledger, noise);
                }
            }
        }
        match self.blind > BLIND {
            true => self.stall(point, ledger, noise),
            false => Step::Pass,
        }
    }

    /// Returns the feasible point of a step to `trial`, and f and ∇f there.
    pub(super) fn evaluated(&mut self, point: &Point<'_>, trial: &Array2<f64>, noise: f64) -> Option<EvaluatedPoint> {
        let x = match point.problem.signature.is_definite() {
            true => Some(polar(trial)),
            false => manifold(point).restore_dense(trial),
        };
        self.secants.evaluate(point, (&self.steps.x, self.steps.value, &self.gradient), x, noise)
    }

    /// Moves to X.
    pub(super) fn accept(
        &mut self,
        point: &mut Point<'_>,
        ledger: &mut Ledger,
        (x, (value, gradient)): EvaluatedPoint,
    ) {
        let direction = tangent_part(point, &x, &gradient);
        self.steps.accept(x, value, direction);
        self.steepest = self.steepest.max(square(&gradient).sqrt());
        self.gradient = gradient;
        if value < self.best {
            self.adopt(point, ledger);
        }
    }

    /// Ends the steps where no step lowers F by more than its rounding. Value and gradient contradict each other if the
    /// gradient predicts a decrease of more than [`RESOLVED`] times the rounding.
    fn stall(&mut self, point: &mut Point<'_>, ledger: &mut Ledger, noise: f64) -> Step {
        if self.steps.norm2 / self.secants.largest > RESOLVED * noise {
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
