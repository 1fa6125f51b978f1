//! Tangent-proximal steps (see [`tangent`](super::tangent)) of Barzilai–Borwein length, for a penalty that is continuous at
//! 0 and draws entries there.
//!
//! They converge to critical points, where pairs alone are slow or stop at kinks. An f that has a value and a gradient, no
//! more, is lowered by them before pairs are solved; a quadratic form once passes over all pairs gain little.

use ndarray::Array2;

use super::ledger::Ledger;
use super::measure::{Secants, evaluation_work, manifold, rounding};
use super::mover::{Mover, Step};
use super::point::Point;
use super::tangent::{Tangent, tangent_work};
use crate::linalg::{inner, product, square};
use crate::manifold::{Manifold, normals, polar, signs_of};
use crate::penalty::Penalty;

/// The first step moves X by about this share of itself.
const FIRST: f64 = 0.02;

/// Shortest and longest t, in units of the inverse of the largest secant, and the t from which on a direction whose steps all
/// fail is given up.
const SHORTEST: f64 = 1e-3;
const LONGEST: f64 = 1e3;
const SHORT: f64 = 0.1;

/// A step is taken if it lowers F by this share of ‖D‖²/t, and is shortened by the second factor, at most so many times.
const ARMIJO: f64 = 1e-4;
const SHORTER: f64 = 0.4;
const TRIALS: u32 = 12;

/// The steps end where ‖D‖²/t is at most this share of the tolerance, or after so many in a row whose decrease is.
const SMALL: f64 = 1e-3;
const IDLE: u32 = 4;

/// What a product with C costs of the tangent steps on average: a third of their limit of Newton steps.
const USUAL_WORK: f64 = 0.1;

/// Relative residual of the Newton systems for Λ: rough solutions take fewer products in all than exact ones.
const RESIDUAL: f64 = 0.05;

/// A direction under trial.
struct Trial {
    direction: Array2<f64>,
    /// ‖D‖²/t.
    slope: f64,
    length: f64,
    count: u32,
}

/// Where the steps are.
struct Place {
    value: f64,
    price: f64,
    gradient: Array2<f64>,
    lambda: Array2<f64>,
}

fn tangent<'a>(penalty: &'a Penalty, manifold: &'a Manifold<'a>) -> Tangent<'a> {
    Tangent {
        penalty,
        manifold,
        residual: RESIDUAL,
        is_over: &|| false,
    }
}

/// The steps and their memory.
#[derive(Default)]
pub(super) struct Proximal {
    place: Option<Place>,
    trial: Option<Trial>,
    t: f64,
    odd: bool,
    idle: u32,
    secants: Secants,
    rests: bool,
}

impl Proximal {
    /// Steps from the current X; None for other penalties, or where X is not on the Stiefel manifold.
    pub(super) fn new(point: &Point<'_>) -> Option<Self> {
        let penalty = point.problem.penalty;
        let (low, high) = penalty.subdifferential(0, 0, 0.0);
        let continuous = low.is_finite() && high.is_finite();
        let stiefel =
            point.problem.signature.is_definite() && signs_of(point.domain.k.view()).is_some();
        (penalty.sparsifies() && continuous && stiefel).then(Self::default)
    }

    /// Whether no step lowers F by more than the tolerance.
    pub(super) fn rests(&self) -> bool {
        self.rests
    }

    /// The largest secant of ∇f met.
    pub(super) fn secant(&self) -> f64 {
        self.secants.largest
    }

    /// Goes on after something else has moved X.
    pub(super) fn restart(&mut self) {
        (self.place, self.trial) = (None, None);
        (self.rests, self.idle) = (false, 0);
    }

    fn place(&mut self, point: &Point<'_>) -> Place {
        let (value, gradient) = point.evaluated();
        let lambda = manifold(point).multiplier(&point.x, &gradient);
        let price = point.problem.penalty.value(point.x());
        if self.t == 0.0 {
            let tangent = &gradient
                - &product(
                    normals(&point.x, point.problem.signature).view(),
                    lambda.view(),
                );
            // ⟨∂h, X⟩ is about h: at a critical point of f alone it is h that moves X.
            let size = square(&point.x).sqrt();
            self.t = FIRST * size / (square(&tangent).sqrt() + price / size);
        }
        Place {
            value,
            price,
            gradient,
            lambda,
        }
    }

    /// The trial under way, or a new one; None if the direction promises nothing.
    fn trial(
        &mut self,
        place: &mut Place,
        point: &Point<'_>,
        ledger: &mut Ledger,
    ) -> Option<Trial> {
        if let Some(trial) = self.trial.take() {
            return Some(trial);
        }
        let (n, r) = point.x.dim();
        ledger.visit(0, USUAL_WORK * tangent_work(n, r));
        let manifold = manifold(point);
        let tangent = tangent(point.problem.penalty, &manifold);
        let direction = tangent.step(&point.x, &place.gradient, self.t, &mut place.lambda);
        let slope = square(&direction) / self.t;
        let least = (SMALL * ledger.threshold()).max(rounding(point, ledger));
        (slope > least).then_some(Trial {
            direction,
            slope,
            length: 1.0,
            count: 0,
        })
    }

    /// After a trial that does not lower F enough: a shorter step, a shorter t, or the end.
    fn refuse(&mut self, mut trial: Trial, least: f64) {
        trial.count += 1;
        trial.length *= SHORTER;
        if trial.count < TRIALS && trial.length * trial.slope > least {
            self.trial = Some(trial);
            return;
        }
        let unit = 1.0 / self.secants.largest;
        if self.t > SHORT * unit {
            self.t = (0.1 * self.t).max(SHORTEST * unit);
        } else {
            self.rests = true;
        }
    }

    /// Takes the trial over; learns t from it.
    fn accept(
        &mut self,
        before: &Place,
        (x, after): (Array2<f64>, Place),
        point: &mut Point<'_>,
        ledger: &mut Ledger,
    ) {
        let moved = &x - &point.x;
        let turned = {
            let normal = |x| {
                let normals = normals(x, point.problem.signature);
                product(normals.view(), before.lambda.view())
            };
            (&after.gradient - &normal(&x)) - (&before.gradient - &normal(&point.x))
        };
        let along = inner(&moved, &turned).abs();
        let proposal = match self.odd {
            true => along / square(&turned),
            false => square(&moved) / along,
        };
        self.odd = !self.odd;
        let unit = 1.0 / self.secants.largest;
        if proposal.is_finite() && unit.is_finite() {
            self.t = proposal.clamp(SHORTEST * unit, LONGEST * unit);
        }
        let change = (after.value - before.value) + (after.price - before.price);
        let small = SMALL * ledger.threshold();
        self.idle = if -change > small { 0 } else { self.idle + 1 };
        self.rests = self.idle >= IDLE;
        ledger.lower(change, 1);
        point.adopt(x, (after.value, after.gradient.clone()));
        self.place = Some(after);
    }

    /// A trial. All rows move in it: it counts as a sweep.
    pub(super) fn advance(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        let mut place = match self.place.take() {
            Some(place) => place,
            None => self.place(point),
        };
        let Some(trial) = self.trial(&mut place, point, ledger) else {
            self.rests = true;
            return Step::Pass;
        };
        ledger.visit(ledger.sweep, evaluation_work(point));
        let manifold = manifold(point);
        let tangent = tangent(point.problem.penalty, &manifold);
        // A pattern on which no orthonormal matrix is nearby gives way to the polar factor.
        let dense = || {
            let mut moved = point.x.clone();
            moved.scaled_add(trial.length, &trial.direction);
            polar(&moved)
        };
        let x = (tangent.retract(&point.x, &trial.direction, trial.length)).unwrap_or_else(dense);
        let noise = rounding(point, ledger);
        let Some((value, gradient)) = point.try_evaluate(&x) else {
            self.refuse(trial, noise);
            self.place = Some(place);
            return Step::Pass;
        };
        let (moved, rise) = (&x - &point.x, value - place.value);
        let gradients = (&place.gradient, &gradient);
        if (self.secants).contradict(&moved, rise, gradients, noise) && point.form.is_none() {
            return Step::Contradiction;
        }
        let price = point.problem.penalty.value(x.view());
        let change = rise + (price - place.price);
        // A step onto a vertex may lead out of the rotations.
        let lower = change <= -ARMIJO * trial.slope * trial.length;
        if lower && point.problem.holds(x.view()) {
            let lambda = place.lambda.clone();
            let after = Place {
                value,
                price,
                gradient,
                lambda,
            };
            self.accept(&place, (x, after), point, ledger);
        } else {
            self.refuse(trial, noise);
            self.place = Some(place);
        }
        Step::Pass
    }
}

impl Mover for Proximal {
    fn step(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        let step = self.advance(point, ledger);
        if self.rests {
            point.follow();
        }
        step
    }
}
