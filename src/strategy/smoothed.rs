//! Riemannian gradient descent on a smoothed penalty, with continuation in the smoothing.
//!
//! `|x|₀` becomes `x²/(x² + ε²)` and `|x|` becomes `√(x² + ε²) − ε`. The smooth problem is minimised on
//! {XᵀX = I} by gradient steps of Barzilai–Borwein length with a polar retraction (Wen and Yin, Math.
//! Program. 142, 2013) and the nonmonotone line search of Zhang and Hager (SIAM J. Optim. 14,
//! 2004), while ε falls geometrically. All rows move at once: the best way to dense optima.
//! One product C X and one r×r eigenvalue problem per step.

use ndarray::{Array2, Zip};

use super::clock::Pace;
use super::columns;
use super::geometry::{inner, polar, square, tangent};
use super::oracle::Oracle;
use crate::penalty::{Form, Penalty, Weights};

/// A schedule of ε in units of the problem's own (see [`natural_epsilon`]).
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    pub(super) first: f64,
    pub(super) last: f64,
    pub(super) stages: usize,
    /// Share of the steps for the first ε; the others share the rest.
    pub(super) front: f64,
}

/// For ℓ0; the unit is √(2λ/L), the largest entry that a proximal step drops.
pub(super) const COUNT: Schedule = Schedule {
    first: 2.0,
    last: 0.15,
    stages: 30,
    front: 0.04,
};

/// For ℓ1; the unit is 1/√n, the size of an entry of a dense unit vector.
pub(super) const ABSOLUTE: Schedule = Schedule {
    first: 0.3,
    last: 0.03,
    stages: 4,
    front: 0.6,
};

/// Relative norm of the gradient at which a stage ends.
const STAGE_TOLERANCE: f64 = 1e-6;

/// The unit of ε.
pub(super) fn natural_epsilon<P: Penalty>(oracle: &Oracle<'_, P>) -> f64 {
    match oracle.problem.penalty.form() {
        Form::Count(lambda) => (2.0 * lambda / oracle.lipschitz).sqrt(),
        _ => 1.0 / (oracle.rows() as f64).sqrt(),
    }
}

/// f plus the smoothed penalty, and its gradient.
fn smoothed<P: Penalty>(
    oracle: &Oracle<'_, P>,
    x: &Array2<f64>,
    epsilon: f64,
) -> (f64, Array2<f64>) {
    let (mut value, mut gradient) = oracle.value_and_gradient(x);
    let squared = epsilon * epsilon;
    match oracle.problem.penalty.form() {
        Form::Count(lambda) => {
            let mut sum = 0.0;
            Zip::from(&mut gradient).and(x).for_each(|g, &x| {
                let inverse = 1.0 / (x * x + squared);
                let rest = squared * inverse;
                sum += 1.0 - rest;
                *g += 2.0 * lambda * x * rest * inverse;
            });
            value += lambda * sum;
        }
        Form::Absolute(Weights::Scalar(lambda)) => {
            let mut sum = 0.0;
            Zip::from(&mut gradient).and(x).for_each(|g, &x| {
                let root = (x * x + squared).sqrt();
                sum += root - epsilon;
                *g += lambda * x / root;
            });
            value += lambda * sum;
        }
        Form::Absolute(Weights::Entrywise(weights)) => {
            let mut sum = 0.0;
            Zip::from(&mut gradient)
                .and(x)
                .and(weights)
                .for_each(|g, &x, &w| {
                    let root = (x * x + squared).sqrt();
                    sum += w * (root - epsilon);
                    *g += w * x / root;
                });
            value += sum;
        }
        _ => {}
    }
    (value, gradient)
}

/// Gradient descent that keeps its state from one ε to the next.
struct Descent<'a, 'b, P: Penalty> {
    oracle: &'a Oracle<'b, P>,
    epsilon: f64,
    x: Array2<f64>,
    value: f64,
    direction: Array2<f64>,
    norm2: f64,
    length: f64,
    reference: f64,
    mass: f64,
    odd: bool,
}

impl<'a, 'b, P: Penalty> Descent<'a, 'b, P> {
    const MEMORY: f64 = 0.85;
    const ARMIJO: f64 = 1e-4;

    fn new(oracle: &'a Oracle<'b, P>, x: Array2<f64>, epsilon: f64) -> Self {
        let direction = Array2::zeros((0, 0));
        let mut descent = Self {
            oracle,
            epsilon,
            x,
            value: 0.0,
            direction,
            norm2: 0.0,
            length: 1.0 / oracle.lipschitz,
            reference: 0.0,
            mass: 1.0,
            odd: true,
        };
        descent.restart(epsilon);
        descent
    }

    fn restart(&mut self, epsilon: f64) {
        self.epsilon = epsilon;
        let (value, gradient) = smoothed(self.oracle, &self.x, epsilon);
        self.value = value;
        self.direction = tangent(&self.x, &gradient);
        self.norm2 = square(&self.direction);
        self.reference = value;
        self.mass = 1.0;
        self.odd = true;
    }

    /// One accepted step; false when the line search cannot move.
    fn step(&mut self) -> bool {
        if self.norm2 == 0.0 {
            return false;
        }
        let mut length = self.length;
        for _ in 0..25 {
            let mut trial = self.x.clone();
            trial.scaled_add(-length, &self.direction);
            let trial = polar(&trial);
            let (value, gradient) = smoothed(self.oracle, &trial, self.epsilon);
            if value <= self.reference - Self::ARMIJO * length * self.norm2 {
                let direction = tangent(&trial, &gradient);
                let moved = &trial - &self.x;
                let turned = &direction - &self.direction;
                let product = inner(&moved, &turned).abs();
                if product > 0.0 {
                    self.length = if self.odd {
                        square(&moved) / product
                    } else {
                        product / square(&turned)
                    };
                    self.odd = !self.odd;
                }
                let mass = Self::MEMORY * self.mass + 1.0;
                self.reference = (Self::MEMORY * self.mass * self.reference + value) / mass;
                self.mass = mass;
                self.x = trial;
                self.value = value;
                self.norm2 = square(&direction);
                self.direction = direction;
                return true;
            }
            length *= 0.3;
        }
        false
    }
}

/// Descends over the schedule; returns a dense orthonormal X and the ε it ended at.
pub(super) fn descend<P: Penalty>(
    oracle: &Oracle<'_, P>,
    x: Array2<f64>,
    schedule: Schedule,
    pace: Pace<'_>,
) -> (Array2<f64>, f64) {
    let unit = natural_epsilon(oracle);
    let at = |stage: usize| {
        let ratio = stage as f64 / schedule.stages.saturating_sub(1).max(1) as f64;
        unit * schedule.first * (schedule.last / schedule.first).powf(ratio)
    };
    let mut descent = Descent::new(oracle, x, at(0));
    let mut steps = 0;
    for stage in 0..schedule.stages {
        if stage > 0 {
            descent.restart(at(stage));
        }
        let others = schedule.stages.saturating_sub(1).max(1) as f64;
        let share = schedule.front + (1.0 - schedule.front) * stage as f64 / others;
        let floor = STAGE_TOLERANCE * oracle.lipschitz;
        while pace.progress(steps) < share {
            if descent.norm2 <= floor * floor || !descent.step() {
                break;
            }
            steps += 1;
        }
        let turns =
            matches!(oracle.problem.penalty.form(), Form::Absolute(_)) && columns::applies(oracle);
        if turns && stage + 1 < schedule.stages {
            columns::sweep(oracle, &mut descent.x, 1);
        }
    }
    (descent.x, descent.epsilon)
}
