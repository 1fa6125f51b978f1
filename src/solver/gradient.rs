//! Riemannian gradient steps for a smooth f alone.
//!
//! The step is along −(G − JXΛ), the tangent part of G = ∇f(X), of Barzilai–Borwein length in turn of both kinds,
//! with the nonmonotone line search of Zhang and Hager (SIAM J. Optim. 14, 2004), and back by the polar factor, or
//! Newton's method for XᵀJX = diag(±1) (Wen and Yin, Math. Program. 142, 2013, have the method with another
//! retraction). A step costs one value and gradient and O(nr²). F may rise on the way; the point has the best X met.

use ndarray::Array2;

use super::ledger::Ledger;
use super::majorised::{evaluation_work, rounding};
use super::mover::Step;
use super::point::Point;
use crate::linalg::{inner, square};
use crate::manifold::{Manifold, normals, polar, signs_of};
use crate::penalty::Penalty;

/// The steps rest where ‖G − JXΛ‖ is this times √tol, relative to the largest ‖G‖ met: with the default tolerance
/// 1e-6.
const CRITICAL: f64 = 0.1;

/// Weight of earlier values in the reference of the line search, the decrease it asks for, and within which
/// shares a failed length is shortened.
const MEMORY: f64 = 0.85;
const ARMIJO: f64 = 1e-4;
const SHORTER: (f64, f64) = (0.05, 0.5);

/// The first length moves X by this share of itself, any other by [`LONGEST`] times itself at most.
const FIRST: f64 = 0.02;
const LONGEST: f64 = 2.0;

/// Trials of one direction that all failed, of which the last could be rounding, from which value and gradient
/// contradict each other.
const CONTRADICTION: u32 = 10;

/// The steps and their memory.
pub(super) struct Gradient {
    x: Array2<f64>,
    value: f64,
    gradient: Array2<f64>,
    /// G − JXΛ, and its square.
    direction: Array2<f64>,
    norm2: f64,
    length: f64,
    reference: f64,
    mass: f64,
    odd: bool,
    failed: u32,
    /// The largest ‖G‖ met.
    pub(super) steepest: f64,
    /// The largest ‖ΔG‖/‖ΔX‖ met, a lower bound of the Lipschitz constant.
    pub(super) secant: f64,
    /// Whether nothing is left to do here.
    pub(super) rests: bool,
}

fn manifold<'a, P: Penalty>(point: &Point<'a, P>) -> Manifold<'a> {
    Manifold::new(point.problem.signature, point.domain.k.clone(), None)
}

/// The tangent part of a gradient.
pub(super) fn tangent_part<P: Penalty>(
    point: &Point<'_, P>,
    x: &Array2<f64>,
    gradient: &Array2<f64>,
) -> Array2<f64> {
    let lambda = manifold(point).multiplier(x, gradient);
    gradient - &normals(x, point.problem.signature).dot(&lambda)
}

/// ‖G − JXΛ‖ that counts as none for gradients of norm up to `steepest`.
pub(super) fn critical(ledger: &Ledger, steepest: f64) -> f64 {
    CRITICAL * ledger.tol().sqrt() * steepest
}

impl Gradient {
    /// At the current X; none where there is no retraction: XᵀJX has to be diag(±1).
    pub(super) fn new<P: Penalty>(point: &Point<'_, P>) -> Option<Self> {
        signs_of(point.domain.k.view())?;
        let gradient = point.tracker.gradient(point.threads);
        let direction = tangent_part(point, &point.x, &gradient);
        let norm2 = square(&direction);
        let value = point.values().0;
        Some(Self {
            x: point.x.clone(),
            value,
            steepest: square(&gradient).sqrt(),
            gradient,
            length: FIRST * (square(&point.x) / norm2).sqrt(),
            direction,
            norm2,
            reference: value,
            mass: 1.0,
            odd: true,
            failed: 0,
            secant: 0.0,
            rests: false,
        })
    }

    /// Goes on from the point, where it is now.
    pub(super) fn restart<P: Penalty>(&mut self, point: &Point<'_, P>) {
        if let Some(fresh) = Self::new(point) {
            *self = Self {
                steepest: self.steepest.max(fresh.steepest),
                secant: self.secant,
                length: self.length.min(fresh.length),
                ..fresh
            };
        }
    }

    /// ‖G − JXΛ‖ that counts as none.
    pub(super) fn goal(&self, ledger: &Ledger) -> f64 {
        critical(ledger, self.steepest)
    }

    /// One trial. All pairs move in it: it counts as a sweep.
    pub(super) fn step<P: Penalty>(
        &mut self,
        point: &mut Point<'_, P>,
        ledger: &mut Ledger,
    ) -> Step {
        if !(self.norm2.sqrt() > self.goal(ledger)) {
            self.rest(point, ledger);
            return Step::Pass;
        }
        let (n, r) = self.x.dim();
        let work = evaluation_work(point) + 10.0 * (n * r * r) as f64;
        ledger.visit(ledger.sweep, work);
        let mut trial = self.x.clone();
        trial.scaled_add(-self.length, &self.direction);
        let retracted = if point.problem.signature.is_definite() {
            Some(polar(&trial))
        } else {
            manifold(point).restore_dense(&trial)
        };
        let evaluated = retracted.and_then(|x| point.try_evaluate(&x).map(|e| (x, e)));
        let predicted = self.length * self.norm2;
        let noise = rounding(point, ledger);
        match evaluated {
            Some((x, (value, gradient)))
                if value <= self.reference - ARMIJO * predicted + noise =>
            {
                self.accept(point, ledger, x, value, gradient);
            }
            failed => {
                // The minimiser of the parabola through F, its slope and F at the trial.
                let excess = failed.map_or(f64::INFINITY, |(_, (value, _))| value - self.value);
                let share = 0.5 * predicted / (excess + predicted);
                self.length *= share.clamp(SHORTER.0, SHORTER.1);
                self.failed += 1;
                if predicted <= noise {
                    if self.failed > CONTRADICTION {
                        return Step::Contradiction;
                    }
                    self.rest(point, ledger);
                }
            }
        }
        Step::Pass
    }

    fn accept<P: Penalty>(
        &mut self,
        point: &mut Point<'_, P>,
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
        let secant = (square(&(&gradient - &self.gradient)) / step2).sqrt();
        if secant.is_finite() {
            self.secant = self.secant.max(secant);
        }
        let mass = MEMORY * self.mass + 1.0;
        self.reference = (MEMORY * self.mass * self.reference + value) / mass;
        self.norm2 = square(&direction);
        let longest = LONGEST * (square(&x) / self.norm2).sqrt();
        if proposal.is_finite() {
            self.length = proposal.min(longest);
        }
        self.steepest = self.steepest.max(square(&gradient).sqrt());
        (self.mass, self.failed) = (mass, 0);
        (self.x, self.value) = (x, value);
        (self.gradient, self.direction) = (gradient, direction);
        if value < ledger.objective {
            self.adopt(point, ledger);
        }
    }

    fn adopt<P: Penalty>(&self, point: &mut Point<'_, P>, ledger: &mut Ledger) {
        ledger.lower(self.value - ledger.objective, 1);
        point.adopt(self.x.clone(), (self.value, self.gradient.clone()));
    }

    /// Ends here, unless the best X is better by more than rounding: then the steps go on from there.
    fn rest<P: Penalty>(&mut self, point: &mut Point<'_, P>, ledger: &mut Ledger) {
        if self.value <= ledger.objective + rounding(point, ledger) {
            if self.value != ledger.objective {
                self.adopt(point, ledger);
            }
            self.rests = true;
        } else {
            self.restart(point);
        }
    }
}
