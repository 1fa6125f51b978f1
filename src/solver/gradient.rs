//! Riemannian gradient steps for a smooth f alone.
//!
//! The step is along −(G − JXΛ), the tangent part of G = ∇f(X), of Barzilai–Borwein length in turn of both kinds,
//! with the nonmonotone line search of Zhang and Hager (SIAM J. Optim. 14, 2004), and back by the polar factor, or
//! Newton's method for XᵀJX = diag(±1) (Wen and Yin, Math. Program. 142, 2013, have the method with another
//! retraction). A step costs one value and gradient and O(nr²). F may rise on the way; the point has the best X met.

use ndarray::Array2;

use super::ledger::Ledger;
use super::measure::{
    RESOLVED, Secants, critical, evaluation_work, manifold, rounding, tangent_part,
};
use super::mover::Step;
use super::point::Point;
use crate::linalg::{inner, square};
use crate::manifold::{polar, signs_of};

/// Weight of earlier values in the reference of the line search, the decrease it asks for, and within which
/// shares a failed length is shortened.
const MEMORY: f64 = 0.85;
const ARMIJO: f64 = 1e-4;
const SHORTER: (f64, f64) = (0.05, 0.5);

/// The first length moves X by this share of itself, any other by [`LONGEST`] times itself at most.
const FIRST: f64 = 0.02;
pub(super) const LONGEST: f64 = 2.0;

/// So many steps in a row whose decrease could be rounding, the gradient growing no smaller, are a stall, and so is
/// a length that was shortened until its decrease could be.
const BLIND: u32 = 100;

/// Value and gradient contradict each other after so many stalls in a row, or one whose length was shortened by
/// [`CONTRADICTION`], at gradients that promise a decrease of more than [`RESOLVED`] times the rounding.
const STALLS: u32 = 3;
const CONTRADICTION: f64 = 1e-6;

/// The steps and their memory.
pub(super) struct Gradient {
    pub(super) x: Array2<f64>,
    pub(super) value: f64,
    /// f at the point, the best met.
    best: f64,
    pub(super) gradient: Array2<f64>,
    /// G − JXΛ, and its square.
    pub(super) direction: Array2<f64>,
    pub(super) norm2: f64,
    length: f64,
    reference: f64,
    mass: f64,
    odd: bool,
    /// The first length of this direction, and how often in a row no length was short enough.
    first: f64,
    stalls: u32,
    /// Steps whose decrease could be rounding since ‖G − JXΛ‖² was `least`.
    blind: u32,
    least: f64,
    /// The largest ‖G‖ met.
    pub(super) steepest: f64,
    pub(super) secants: Secants,
    /// Whether nothing is left to do here.
    pub(super) rests: bool,
}

/// The feasible point of a step to `trial`, and f and ∇f there.
pub(super) fn evaluated(
    point: &Point<'_>,
    trial: &Array2<f64>,
) -> Option<(Array2<f64>, f64, Array2<f64>)> {
    let x = if point.problem.signature.is_definite() {
        polar(trial)
    } else {
        manifold(point).restore_dense(trial)?
    };
    let (value, gradient) = point.try_evaluate(&x)?;
    Some((x, value, gradient))
}

impl Gradient {
    /// At the current X; none where there is no retraction: XᵀJX has to be diag(±1).
    pub(super) fn new(point: &Point<'_>) -> Option<Self> {
        signs_of(point.domain.k.view())?;
        let (value, gradient) = point.evaluated();
        let direction = tangent_part(point, &point.x, &gradient);
        let norm2 = square(&direction);
        let length = FIRST * (square(&point.x) / norm2).sqrt();
        Some(Self {
            x: point.x.clone(),
            value,
            best: value,
            steepest: square(&gradient).sqrt(),
            gradient,
            length,
            first: length,
            direction,
            norm2,
            reference: value,
            mass: 1.0,
            odd: true,
            stalls: 0,
            blind: 0,
            least: norm2,
            secants: Secants::default(),
            rests: false,
        })
    }

    /// Goes on from the point, where it is now.
    pub(super) fn restart(&mut self, point: &Point<'_>) {
        if let Some(fresh) = Self::new(point) {
            let length = match self.secants.largest > 0.0 {
                true => fresh.length.min(1.0 / self.secants.largest),
                false => fresh.length,
            };
            *self = Self {
                steepest: self.steepest.max(fresh.steepest),
                secants: self.secants,
                stalls: self.stalls,
                length,
                first: length,
                ..fresh
            };
        }
    }

    /// ‖G − JXΛ‖.
    pub(super) fn norm(&self) -> f64 {
        self.norm2.sqrt()
    }

    /// ‖G − JXΛ‖ that counts as none.
    pub(super) fn goal(&self, ledger: &Ledger) -> f64 {
        critical(ledger, &self.gradient, self.steepest)
    }

    /// One trial. All pairs move in it: it counts as a sweep.
    pub(super) fn step(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        if !(self.norm() > self.goal(ledger)) {
            self.rest(point, ledger);
            return Step::Pass;
        }
        let (n, r) = self.x.dim();
        let work = evaluation_work(point) + 10.0 * (n * r * r) as f64;
        ledger.visit(ledger.sweep, work);
        let mut trial = self.x.clone();
        trial.scaled_add(-self.length, &self.direction);
        let noise = rounding(point, ledger);
        match evaluated(point, &trial) {
            Some(trial) => self.judge(point, ledger, trial, noise),
            None => self.shorten(point, ledger, f64::INFINITY, noise),
        }
    }

    /// Goes to a trial, or shortens the length.
    fn judge(
        &mut self,
        point: &mut Point<'_>,
        ledger: &mut Ledger,
        (x, value, gradient): (Array2<f64>, f64, Array2<f64>),
        noise: f64,
    ) -> Step {
        let (moved, gradients) = (&x - &self.x, (&self.gradient, &gradient));
        let change = value - self.value;
        if self.secants.contradict(&moved, change, gradients, noise) {
            return Step::Contradiction;
        }
        let predicted = self.length * self.norm2;
        let allowance = if predicted <= noise { noise } else { 0.0 };
        if !(value <= self.reference - ARMIJO * predicted + allowance) {
            return self.shorten(point, ledger, change, noise);
        }
        self.accept(point, ledger, x, value, gradient);
        if predicted > noise {
            self.stalls = 0;
        }
        if self.norm2 < self.least || predicted > noise {
            (self.blind, self.least) = (0, self.norm2);
        } else {
            self.blind += 1;
        }
        if self.blind > BLIND {
            return self.stall(point, ledger);
        }
        Step::Pass
    }

    /// After a trial that changed F by `change`: the minimiser of the parabola through F, its slope and that.
    fn shorten(
        &mut self,
        point: &mut Point<'_>,
        ledger: &mut Ledger,
        change: f64,
        noise: f64,
    ) -> Step {
        let predicted = self.length * self.norm2;
        let share = 0.5 * predicted / (change + predicted);
        self.length *= share.clamp(SHORTER.0, SHORTER.1);
        if self.length * self.norm2 <= noise {
            return self.stall(point, ledger);
        }
        Step::Pass
    }

    /// Goes to X.
    pub(super) fn accept(
        &mut self,
        point: &mut Point<'_>,
        ledger: &mut Ledger,
        x: Array2<f64>,
        value: f64,
        gradient: Array2<f64>,
    ) {
        let direction = tangent_part(point, &x, &gradient);
        let moved = &x - &self.x;
        let (turned, step2) = (&direction - &self.direction, square(&moved));
        let product = inner(&moved, &turned).abs();
        let proposal = if self.odd {
            step2 / product
        } else {
            product / square(&turned)
        };
        self.odd = !self.odd;
        let mass = MEMORY * self.mass + 1.0;
        self.reference = (MEMORY * self.mass * self.reference + value) / mass;
        self.norm2 = square(&direction);
        let longest = LONGEST * (square(&x) / self.norm2).sqrt();
        if proposal.is_finite() {
            self.length = proposal.min(longest);
        }
        self.steepest = self.steepest.max(square(&gradient).sqrt());
        (self.mass, self.first) = (mass, self.length);
        (self.x, self.value) = (x, value);
        (self.gradient, self.direction) = (gradient, direction);
        if value < self.best {
            self.adopt(point, ledger);
        }
    }

    /// No step of this direction lowers F by more than its rounding.
    fn stall(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        self.stalls += 1;
        let promised = self.norm2 / self.secants.largest;
        if promised > RESOLVED * rounding(point, ledger)
            && (self.stalls > STALLS || self.length < CONTRADICTION * self.first)
        {
            return Step::Contradiction;
        }
        self.rest(point, ledger);
        Step::Pass
    }

    fn adopt(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) {
        ledger.lower(self.value - self.best, 1);
        self.best = self.value;
        point.adopt(self.x.clone(), (self.value, self.gradient.clone()));
    }

    /// Ends here, unless the best X is better by more than rounding: then the steps go on from there.
    pub(super) fn rest(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) {
        if self.value <= self.best + rounding(point, ledger) {
            if self.value != self.best {
                self.adopt(point, ledger);
            }
            self.rests = true;
        } else {
            self.restart(point);
        }
    }
}
