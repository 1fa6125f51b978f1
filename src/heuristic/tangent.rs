//! [Descents by tangent-proximal steps](crate::riemann::proximal), with charged work and a limit, which end at
//! critical points, unlike pairs alone.

use ndarray::Array2;

use super::oracle::Oracle;
use crate::limits::MethodLimit;
use crate::numerics;
use crate::riemann::Tangent;
use crate::riemann::proximal::{Bounds, ProximalDescent, TrialOutcome};

pub(crate) use crate::riemann::tangent_work as step_work;

/// Relative residual of the Newton systems for Λ.
const RESIDUAL: f64 = 1e-12;

/// The result of a descent.
pub(crate) struct Reached {
    pub(crate) x: Array2<f64>,
    pub(crate) objective: f64,
    /// True if no step lowers F by more than the tolerance.
    pub(crate) stalled: bool,
}

/// ‖D‖²/t, relative to |f| + |h|, up to which a point counts as critical.
const CRITICAL: f64 = 1e-16;

/// Descends from a feasible point by at most `most` directions.
pub(crate) fn descend(oracle: &Oracle<'_>, x: Array2<f64>, most: usize, limit: MethodLimit<'_>) -> Reached {
    let penalty = oracle.problem.penalty;
    let is_over = || oracle.is_over();
    let tangent = Tangent { penalty, manifold: &oracle.manifold, residual: RESIDUAL, dense: false, is_over: &is_over };
    let unit = 1.0 / oracle.lipschitz;
    let evaluated = oracle.value_and_gradient(&x);
    let mut descent = ProximalDescent::new(&tangent, x, evaluated, unit);
    if !(descent.value + descent.penalty).is_finite() {
        // The time ran out, or F is not finite.
        return Reached { x: descent.x, objective: f64::INFINITY, stalled: false };
    }
    let (mut directions, mut stalled) = (0, false);
    while !stalled && limit.progress() < 1.0 {
        let size = oracle.magnitude(oracle.full(descent.value), descent.penalty);
        let new = usize::from(descent.needs_direction());
        directions += new;
        if directions > most {
            break;
        }
        let promises = descent.aim(&tangent, CRITICAL * size);
        stalled = !promises;
        if stalled || limit.work.expired() {
            break;
        }
        let candidate = descent.candidate(&tangent);
        let next = candidate.map(|x| {
            let evaluated = oracle.value_and_gradient(&x);
            (x, evaluated)
        });
        let bounds = Bounds { unit, noise: 0.0, idle: numerics::GAIN * size };
        let outcome = descent.judge(&tangent, next, &bounds);
        stalled = match outcome {
            TrialOutcome::Accepted(_) => descent.is_idle(),
            TrialOutcome::Refused if oracle.is_over() => break,
            TrialOutcome::Refused => false,
            TrialOutcome::Converged => !oracle.is_over(),
        };
    }
    Reached { objective: oracle.full(descent.value + descent.penalty), x: descent.x, stalled }
}
