//! Stationarity under XᵀJX = K: first-order residual, and largest decrease that a single pair can make.
//!
//! For square J-orthogonal X and smooth f the condition is G = JXGᵀXJ, equivalently XGᵀJ symmetric
//! (JOBCD paper, Lemma 3.1). `dist(0, ∂f°) ≤ ½‖G − JXGᵀXJ‖`.

use ndarray::{Array2, ArrayView2};

use crate::block::{Block, Majoriser, Matchings, Outcome, PairOptions, Pairs};
use crate::manifold::{signed, start_constraint};
use crate::objective::{GoOn, QuadraticForm};
use crate::pair::{RECESSION_TOLERANCE, Scratch};
use crate::problem::Problem;
use crate::signature::Signature;
use crate::solver::{ColumnMethod, PairSweep, column_method, trace_matrix};
use crate::threads::Threads;

/// Largest decrease of the objective by a single pair.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Gap {
    /// The decrease, at least zero; infinite if a pair is unbounded below, NaN if X does not fit the
    /// problem or f is not quadratic.
    pub decrease: f64,
    /// Pair of rows, or of columns.
    pub pair: Option<(usize, usize)>,
    /// Number of pairs that were looked at.
    pub pairs: u64,
}

/// Gap of a computation that ended without a result.
const GIVEN_UP: Gap = Gap { decrease: f64::NAN, pair: None, pairs: 0 };

/// Returns ‖G − J X Gᵀ X K‖_F, G = ∇f(X) and K = XᵀJX: zero exactly at the critical points of a smooth f.
///
/// X is square and K = J (JOBCD paper, Lemma 3.1), or the signature is all +1 and K = I (OBCD
/// paper, `G = XGᵀX`). NaN for a gradient of another shape than X.
pub fn stationarity(x: ArrayView2<'_, f64>, gradient: ArrayView2<'_, f64>, signature: &Signature) -> f64 {
    if gradient.dim() != x.dim() {
        return f64::NAN;
    }
    let product = signed(x, signature).dot(&gradient.t().dot(&x));
    product
        .indexed_iter()
        .map(|((i, k), &value)| (gradient[[i, k]] - value * signature.sign(k)).powi(2))
        .sum::<f64>()
        .sqrt()
}

/// Returns the largest decrease that any single pair of rows can make, every pair solved to global
/// optimality without proximal term. O(n²(r + pair solve)), in parallel.
pub fn row_gap(problem: &Problem<'_>, x: ArrayView2<'_, f64>, threads: &Threads) -> Gap {
    let form = match problem.smooth.quadratic() {
        Some(form) if fits(problem, x) => form,
        _ => return GIVEN_UP,
    };
    let Some(survey) = survey((problem, form), x, threads, &|| true) else {
        return GIVEN_UP;
    };
    Gap { decrease: survey.gap, pair: survey.pair, pairs: survey.pairs }
}

/// Returns the largest decrease that any single pair of columns can make; `None` if columns do not move
/// (a column metric other than the identity, or XᵀJX not diag(±1)) or X does not fit the problem.
pub fn column_gap(problem: &Problem<'_>, x: &Array2<f64>, threads: &Threads) -> Option<Gap> {
    column_gap_while(problem, x, threads, &|| true)
}

/// Returns [`column_gap`], with a decrease of NaN if `go_on` ends the computation.
pub(super) fn column_gap_while(
    problem: &Problem<'_>,
    x: &Array2<f64>,
    threads: &Threads,
    go_on: GoOn<'_>,
) -> Option<Gap> {
    let form = problem.smooth.quadratic().filter(|_| fits(problem, x.view()))?;
    let k = start_constraint(x.view(), problem.signature);
    let (how, signs) = column_method((problem, form), k.view()).ok()?;
    let penalty = match how {
        ColumnMethod::Pairs(penalty) => penalty,
        ColumnMethod::Trace(weights) => {
            let b = trace_matrix(form, x, threads);
            let size = form.diagonal_size();
            let noise: Vec<f64> = x.columns().into_iter().map(|c| size * c.dot(&c)).collect();
            return Some(trace_gap(b.view(), &signs, &weights, &noise));
        }
    };
    let mut sweep = PairSweep::new(form, x, None, &signs, threads).rotate_only(problem.rotations);
    let mut outcome = Outcome::default();
    loop {
        let part = sweep.advance(&penalty, 0.0, true);
        outcome.absorb(part);
        if part.visited == 0 || sweep.recession().is_some() {
            break;
        }
        if !go_on() {
            return Some(GIVEN_UP);
        }
    }
    let recession = sweep.recession();
    Some(Gap {
        decrease: recession.map_or(outcome.largest, |_| f64::INFINITY),
        pair: recession.map_or(outcome.best, |found| Some(found.pair)),
        pairs: outcome.visited,
    })
}

/// Returns the largest decrease of `⟨G, X − A⟩ + L/2‖X − A‖² + h` at A = `x` by a single pair of rows. L is
/// the Lipschitz constant of f; the decrease is NaN without one, or if `go_on` ends the computation.
pub(super) fn majorised_gap(
    problem: &Problem<'_>,
    x: ArrayView2<'_, f64>,
    gradient: ArrayView2<'_, f64>,
    go_on: GoOn<'_>,
) -> Gap {
    let Some(curvature) = problem.smooth.lipschitz() else {
        return GIVEN_UP;
    };
    let model = Majoriser::new(x, gradient, curvature);
    let matchings = Matchings::new(x.dim(), problem.signature, None).rotate_only(problem.rotations);
    let Some(found) = matchings.largest_decrease_while(x, &model, problem.penalty, go_on) else {
        return GIVEN_UP;
    };
    Gap { decrease: found.largest, pair: found.best.map(|(i, j)| (i.min(j), i.max(j))), pairs: found.visited }
}

fn fits(problem: &Problem<'_>, x: ArrayView2<'_, f64>) -> bool {
    x.dim() == (problem.smooth.rows(), problem.components)
}

/// Returns the largest decrease of `½ Σ w_k b_kk` by one pair of columns, B = XᵀCX; infinite if f is
/// unbounded below along a pair. `noise` holds, per column, the size of b_kk to which rounding is relative.
pub(super) fn trace_gap(b: ArrayView2<'_, f64>, signs: &[f64], weights: &[f64], noise: &[f64]) -> Gap {
    let mut gap = Gap::default();
    for i in 0..b.nrows() {
        for k in i + 1..b.nrows() {
            gap.pairs += 1;
            let (bi, bk, mut o) = (b[[i, i]], b[[k, k]], b[[i, k]]);
            if o.abs() <= f64::EPSILON * (bi * bk).abs().max(noise[i] * noise[k]).sqrt() {
                o = 0.0;
            }
            let decrease = if signs[i] == signs[k] {
                // Heavier columns take smaller eigenvalues: ½(|Δw|√(δ² + o²) + Δw·δ), δ = ½(b_ii − b_kk).
                let (heavier, delta) = (weights[i] - weights[k], 0.5 * (bi - bk));
                let (turn, root) = (heavier * delta, delta.hypot(o));
                if turn >= 0.0 {
                    0.5 * (heavier.abs() * root + turn)
                } else {
                    0.5 * heavier.abs() * o * o / (root + delta.abs())
                }
            } else {
                let (d, h) = (bi + bk, 2.0 * o);
                let weight = weights[i] + weights[k];
                let size = (bi.abs() + bk.abs() + h.abs()).max(noise[i] + noise[k]);
                if weight == 0.0 || o == 0.0 {
                    0.0
                } else if d - h.abs() < -RECESSION_TOLERANCE * size {
                    f64::INFINITY
                } else {
                    let root = ((d - h.abs()) * (d + h.abs())).max(0.0).sqrt();
                    0.25 * weight * h * h / (d + root)
                }
            };
            if decrease > gap.decrease {
                (gap.decrease, gap.pair) = (decrease, Some((i, k)));
            }
        }
    }
    gap
}

/// Rows per group; pairs are visited group against group.
const GROUP: usize = 32;

/// Largest number of tasks that share the groups, as each begins with a product with C. Fixed, so that the
/// result does not depend on the number of threads.
const TASKS: usize = 64;

/// Result of solving all pairs of rows and moving none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Survey {
    /// Largest decrease and its pair.
    pub(super) gap: f64,
    pub(super) pair: Option<(usize, usize)>,
    /// Sum of dist(I, argmin)².
    pub(super) distance: f64,
    /// Number of all pairs, and of the unvisited pairs of zero rows among them.
    pub(super) pairs: u64,
    pub(super) unvisited: u64,
}

/// Solves all pairs of rows and moves none: a sweep over groups without commit. None if `go_on` ends it.
pub(super) fn survey(
    (problem, form): (&Problem<'_>, &dyn QuadraticForm),
    x: ArrayView2<'_, f64>,
    threads: &Threads,
    go_on: GoOn<'_>,
) -> Option<Survey> {
    let (n, r) = x.dim();
    let (active, zero): (Vec<usize>, Vec<usize>) = (0..n).partition(|&i| x.row(i).iter().any(|&v| v != 0.0));
    let groups: Vec<&[usize]> = active.chunks(GROUP).chain(zero.chunks(GROUP)).collect();
    let options = PairOptions { metric: form.metric(), ..PairOptions::default() };
    let serial = Threads::serial();
    let firsts = active.len().div_ceil(GROUP);
    let parts = threads.map(firsts.min(TASKS), |task| {
        if !go_on() {
            return None;
        }
        let mut tracker = form.tracker(x, &serial);
        let mut scratch = Scratch::new(r);
        let mut block = Block::new(r);
        block.set_signature(problem.signature, None);
        block.rotate_only(problem.rotations);
        block.freeze(true);
        let mut found = Outcome::default();
        let seconds = |first: usize| (first..groups.len()).map(move |second| (first, second));
        for (first, second) in (task..firsts).step_by(TASKS).flat_map(seconds) {
            if !go_on() {
                return None;
            }
            let (rest, pairs) = if first == second { (&[][..], Pairs::All) } else { (groups[second], Pairs::Cross) };
            block.load(x, groups[first], rest);
            tracker.fill(block.model());
            found.absorb(block.sweep(pairs, problem.penalty, options, &mut scratch));
            if let Some(recession) = block.recession() {
                (found.largest, found.best) = (f64::INFINITY, Some(recession.pair));
                break;
            }
        }
        Some(found)
    });
    let mut found = Outcome::default();
    for part in parts {
        found.absorb(part?);
    }
    let count = |k: usize| (k * k.saturating_sub(1) / 2) as u64;
    Some(Survey {
        gap: found.largest,
        pair: found.best.map(|(i, j)| (i.min(j), i.max(j))),
        distance: found.distance,
        pairs: count(n),
        unvisited: count(zero.len()),
    })
}

#[cfg(test)]
mod tests;
