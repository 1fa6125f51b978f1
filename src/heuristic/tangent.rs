//! Descents by the tangent-proximal steps of the [solver](crate::solver), paid for and paced: what pairs cannot do.

use ndarray::Array2;

use super::oracle::Oracle;
use crate::budget::Pace;
use crate::linalg::{inner, product, square};
use crate::manifold::normals;
use crate::solver::Tangent;

pub(crate) use crate::solver::tangent_work as step_work;

/// Decrease, relative to |f| + |h| (f less its constant), at which the descent ends.
pub(crate) const STALL: f64 = 1e-12;

/// Relative residual of the Newton systems for Λ.
const RESIDUAL: f64 = 1e-12;

/// What a descent reached.
pub(crate) struct Descent {
    pub(crate) x: Array2<f64>,
    pub(crate) objective: f64,
    /// Whether it ended because no step lowers F by more than the tolerance.
    pub(crate) stalled: bool,
}

/// The first of ever shorter steps that lowers F, `objective` at x, by `slope` times its length: the
/// point, f and h there, and ∇f.
fn line_search(
    (oracle, tangent): (&Oracle<'_>, &Tangent<'_>),
    x: &Array2<f64>,
    direction: &Array2<f64>,
    objective: f64,
    slope: f64,
) -> Option<(Array2<f64>, f64, f64, Array2<f64>)> {
    let mut length = 1.0;
    for _ in 0..12 {
        if oracle.is_over() {
            return None;
        }
        if let Some(next) = tangent.retract(x, direction, length) {
            let (value, gradient) = oracle.value_and_gradient(&next);
            let price = oracle.problem.penalty.value(next.view());
            if value + price <= objective - slope * length {
                return Some((next, value, price, gradient));
            }
        }
        length *= 0.4;
    }
    None
}

/// Proximal-gradient steps of Barzilai–Borwein length from a feasible point, at most `limit`.
pub(crate) fn descend(
    oracle: &Oracle<'_>,
    x: Array2<f64>,
    limit: usize,
    pace: Pace<'_>,
) -> Descent {
    let penalty = oracle.problem.penalty;
    let is_over = || oracle.is_over();
    let tangent = Tangent {
        penalty,
        manifold: &oracle.manifold,
        residual: RESIDUAL,
        is_over: &is_over,
    };
    let mut x = x;
    let (mut smooth, mut gradient) = oracle.value_and_gradient(&x);
    let mut price = penalty.value(x.view());
    let mut objective = smooth + price;
    if !objective.is_finite() {
        // The time ran out, or there is nothing to compare.
        return Descent {
            x,
            objective: f64::INFINITY,
            stalled: false,
        };
    }
    let mut lambda = oracle.manifold.multiplier(&x, &gradient);
    let mut t = 1.0 / oracle.lipschitz;
    let (shortest, longest) = (1e-3 / oracle.lipschitz, 1e3 / oracle.lipschitz);
    let short = match oracle.manifold.signature.is_definite() {
        true => 0.1 / oracle.lipschitz,
        false => shortest,
    };
    let mut steps = 0;
    let mut idle = 0;
    let mut stalled = false;
    while !stalled && steps < limit && pace.progress() < 1.0 {
        let direction = tangent.step(&x, &gradient, t, &mut lambda);
        let norm2 = square(&direction);
        let size = oracle.magnitude(oracle.full(smooth), price);
        if pace.meter.expired() {
            break;
        }
        if !(norm2 / t > 1e-16 * size) {
            stalled = true;
            break;
        }
        let slope = 1e-4 * norm2 / t;
        let accepted = line_search((oracle, &tangent), &x, &direction, objective, slope);
        let Some((next, value, next_price, next_gradient)) = accepted else {
            // A shorter proximal step has a better model; give up when it is short already.
            if t > short && !oracle.is_over() {
                t = (0.1 * t).max(shortest);
                steps += 1;
                continue;
            }
            stalled = !oracle.is_over();
            break;
        };
        let moved = &next - &x;
        let turned = {
            let of = |x| normals(x, oracle.manifold.signature);
            let (here, there) = (of(&x), of(&next));
            let normal = |normals: &Array2<f64>| product(normals.view(), lambda.view());
            (&next_gradient - &normal(&there)) - (&gradient - &normal(&here))
        };
        let product = inner(&moved, &turned).abs();
        let proposal = if steps % 2 == 0 {
            square(&moved) / product
        } else {
            product / square(&turned)
        };
        if proposal.is_finite() {
            t = proposal.max(shortest).min(longest);
        }
        let gained = objective - (value + next_price);
        (x, smooth, price, gradient) = (next, value, next_price, next_gradient);
        objective = smooth + price;
        steps += 1;
        idle = if gained > STALL * size { 0 } else { idle + 1 };
        stalled = idle >= 4;
    }
    Descent {
        x,
        objective: oracle.full(objective),
        stalled,
    }
}
