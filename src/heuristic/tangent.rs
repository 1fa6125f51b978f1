//! Proximal-gradient steps on the tangent space: what pairs cannot do.
//!
//! A point that no pair can improve need not be critical when h is not smooth (SPEC section 7, item
//! 7): a descent direction may need three rows at once. The step (ManPG: Chen, Ma, So and Zhang,
//! SIAM J. Optim. 30, 2020) minimises
//!
//! ```text
//! ⟨∇f(X), D⟩ + ‖D‖²/(2t) + h(X + D)   over tangent D,   D = prox_{th}(X − t(∇f(X) − XΛ)) − X,
//! ```
//!
//! with the symmetric Λ that makes D tangent found by a semismooth Newton method. D ≠ 0 exactly when
//! X is not critical. The retraction keeps the zeros of X + D: Newton's method on
//! {XᵀX = I, that pattern}. For ℓ0 the pattern of X is kept (its normal cone is the whole line).
//! Every accepted point is feasible and lowers F.
//!
//! With mixed signs JXΛ takes the place of XΛ (the normal space of {XᵀJX = K}). For square X the system
//! for Λ has more unknowns than X + D has nonzeros as long as the step is long, so it is damped in
//! proportion to its residual; and a pattern on which there is no feasible point nearby gives
//! way to a retraction without one.

use ndarray::{Array2, Axis, Zip};

use super::oracle::Oracle;
use crate::budget::Pace;
use crate::linalg::{conjugate_gradients, inner, product, square, symmetric};
use crate::manifold::{PatternProducts, normals};
use crate::penalty::Penalty;

/// Decrease, relative to |f| + |h| (f less its constant), at which the descent ends.
pub(crate) const STALL: f64 = 1e-12;

/// Entries below this are zero when X ≥ 0.
const NEGLIGIBLE: f64 = 1e-14;

/// Semismooth Newton steps for Λ, with one sign and with mixed signs.
const NEWTON_STEPS: usize = 12;
const MIXED_NEWTON_STEPS: usize = 30;

/// Residual to which the Newton system is solved with mixed signs.
const INEXACT: f64 = 1e-2;

/// Damping of the Newton system: the least, and with mixed signs the share of ‖error‖/‖D‖, at most
/// itself.
const LEAST_DAMPING: f64 = 1e-12;
const DAMPING: f64 = 0.01;

/// What a step costs at most, unless its line search is long: see [`tangent_step`].
pub(crate) fn step_work(n: usize, r: usize) -> f64 {
    let newton = (NEWTON_STEPS * (r + 10)) as f64;
    2.0 * newton * (2 * n * r * (r + 2)) as f64
}

/// What a descent reached.
pub(crate) struct Descent {
    pub(crate) x: Array2<f64>,
    pub(crate) objective: f64,
    /// Whether it ended because no step lowers F by more than the tolerance.
    pub(crate) stalled: bool,
}

/// The step D and the multiplier Λ (kept from one call to the next as a warm start). One function: a Newton method
/// whose line search needs all that a step does.
fn tangent_step<P: Penalty>(
    oracle: &Oracle<'_, P>,
    x: &Array2<f64>,
    gradient: &Array2<f64>,
    t: f64,
    lambda: &mut Array2<f64>,
) -> Array2<f64> {
    let r = x.ncols();
    let mixed = !oracle.manifold.signature.is_definite();
    let normals = normals(x, oracle.manifold.signature);
    let (newton_steps, gradients, tolerance) = if mixed {
        (MIXED_NEWTON_STEPS, 4 * r + 20, INEXACT)
    } else {
        (NEWTON_STEPS, r + 10, 1e-12)
    };
    let mut weight = Array2::ones(x.dim());
    let evaluate = |lambda: &Array2<f64>, weight: &mut Array2<f64>| {
        // X − t(G − JXΛ)
        let mut target = product(normals.view(), lambda.view());
        Zip::from(&mut target)
            .and(gradient)
            .and(x)
            .for_each(|v, &g, &x| *v = x + t * (*v - g));
        let penalty = oracle.problem.penalty;
        Zip::indexed(&mut target)
            .and(&mut *weight)
            .and(x)
            .for_each(|(i, k), v, w, &x| (*v, *w) = penalty.proximal_near(i, k, x, *v, t));
        target -= x;
        let mut error = symmetric(&product(normals.t(), target.view()));
        error.mapv_inplace(|v| -v);
        (target, error)
    };
    let (mut step, mut error) = evaluate(lambda, &mut weight);
    for _ in 0..newton_steps {
        if oracle.manifold.refuses(x, 2) || oracle.is_over() {
            break;
        }
        let size = square(&error);
        let tangent = if mixed { 1e-10 } else { 1e-18 };
        if size <= tangent * square(&step) || size <= 1e-30 {
            break;
        }
        let damping = if mixed {
            DAMPING * (size / square(&step)).sqrt().min(1.0)
        } else {
            0.0
        };
        // Rows that the proximal map makes zero take no part.
        let moving = |i: &usize| weight.row(*i).iter().any(|&w| w != 0.0);
        let rows: Vec<usize> = (0..weight.nrows()).filter(moving).collect();
        let few = (2 * rows.len() < weight.nrows()).then(|| {
            (
                normals.select(Axis(0), &rows),
                weight.select(Axis(0), &rows),
            )
        });
        let (normals, weights) = match &few {
            Some((normals, weights)) => (normals, weights),
            None => (&*normals, &weight),
        };
        let products = PatternProducts::new(normals, weights);
        // For tΛ, which has no unit.
        let operator = |d: &Array2<f64>| {
            if oracle.manifold.late(products.work()) {
                return Array2::zeros(d.dim());
            }
            let mut image = symmetric(&products.apply(d));
            image.scaled_add(damping.max(LEAST_DAMPING), d);
            image
        };
        let newton = conjugate_gradients(operator, &error, gradients, tolerance) / t;
        let mut length = 1.0;
        let mut improved = false;
        for _ in 0..8 {
            if oracle.manifold.refuses(x, 2) {
                break;
            }
            let trial = &*lambda + &(&newton * length);
            let mut trial_weight = weight.clone();
            let (trial_step, trial_error) = evaluate(&trial, &mut trial_weight);
            if square(&trial_error) < size {
                *lambda = trial;
                (step, error, weight) = (trial_step, trial_error, trial_weight);
                improved = true;
                break;
            }
            length *= 0.5;
        }
        if !improved {
            break;
        }
    }
    step
}

/// The feasible point with the pattern of `x + length·step`, if there is one nearby.
fn retract<P: Penalty>(
    oracle: &Oracle<'_, P>,
    x: &Array2<f64>,
    step: &Array2<f64>,
    length: f64,
) -> Option<Array2<f64>> {
    let mut moved = x.clone();
    moved.scaled_add(length, step);
    let nonnegative = oracle.problem.penalty.nonnegative();
    for _ in 0..3 {
        if nonnegative {
            moved.mapv_inplace(|v| if v > NEGLIGIBLE { v } else { 0.0 });
        }
        moved = match oracle.manifold.restore(&moved) {
            Some(restored) => restored,
            None => oracle.manifold.restore_dense(&moved)?,
        };
        if !nonnegative || moved.iter().all(|&v| v >= 0.0) {
            return Some(moved);
        }
    }
    None
}

/// The first of ever shorter steps that lowers F, `objective` at x, by `slope` times its length: the
/// point, f and h there, and ∇f.
fn line_search<P: Penalty>(
    oracle: &Oracle<'_, P>,
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
        if let Some(next) = retract(oracle, x, direction, length) {
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
pub(crate) fn descend<P: Penalty>(
    oracle: &Oracle<'_, P>,
    x: Array2<f64>,
    limit: usize,
    pace: Pace<'_>,
) -> Descent {
    let penalty = oracle.problem.penalty;
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
        let direction = tangent_step(oracle, &x, &gradient, t, &mut lambda);
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
        let accepted = line_search(oracle, &x, &direction, objective, slope);
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
