//! Annealed splitting: linearised ADMM whose penalty parameter grows while it runs.
//!
//! ```text
//! X <- polar(β Y + ζ X − ∇f(X) − W)      ζ: inertia, 0 for concave f
//! Y <- prox_{h/β}(X + W/β)
//! W <- W + β (X − Y)
//! ```
//!
//! β starts where the sparse copy Y is free to change its support, far below the curvature that the
//! last component sees, and ends where X and Y agree.

use ndarray::{Array2, Zip};

use super::oracle::Oracle;
use super::profile::{Kind, Profile};
use super::sharpen::{self, TANGENT_STEPS};
use super::{Heuristic, Prior, Task, settled_partition, tangent};
use crate::budget::Pace;
use crate::linalg::{symmetric, symmetric_eigen};
use crate::manifold::kicked;

/// Annealed splitting, made feasible and descended from.
pub(super) struct Splitting {
    /// First β in units of the curvature that the last component sees, last β in units of the Lipschitz
    /// constant: twice and half of both were worse on most rows of the training list.
    beta: (f64, f64),
    /// The same for X ≥ 0, where X only has to show who owns a row.
    nonnegative: (f64, f64),
    /// From the best point the first β is raised by up to this factor: on noise, ℓ0, splitting again from the best
    /// point is the best use of the time after the starts.
    raise: f64,
    /// Size of the random rotation of a start that is repeated, and of the best point.
    kicks: (f64, f64),
}

impl Default for Splitting {
    fn default() -> Self {
        Self {
            beta: (0.06, 1.2),
            nonnegative: (0.2, 0.6),
            raise: 6.0,
            kicks: (0.1, 0.05),
        }
    }
}

/// The last β is at least this many prices of an entry of one: below, single entries do not survive the proximal map.
const SURVIVAL: f64 = 16.0;

/// Relative distance of X and Y at which they agree.
const AGREE: f64 = 1e-9;

impl Splitting {
    /// First and last β for a start: the smallest eigenvalue of −Xᵀ∇f(X) can be far below the Lipschitz
    /// constant.
    fn range(&self, oracle: &Oracle<'_>, x: &Array2<f64>) -> (f64, f64) {
        let (_, gradient) = oracle.value_and_gradient(x);
        let (seen, _) = symmetric_eigen(symmetric(&x.t().dot(&gradient)).mapv(|v| -v).view());
        let lipschitz = oracle.lipschitz;
        let level = seen[0].max(1e-4 * lipschitz).min(lipschitz);
        let penalty = oracle.problem.penalty;
        if penalty.nonnegative() {
            return (self.nonnegative.0 * level, self.nonnegative.1 * lipschitz);
        }
        // What an entry of one costs at most.
        let dearest = ndarray::indices(x.dim())
            .into_iter()
            .map(|(i, k)| penalty.entry(i, k, 1.0))
            .filter(|price| price.is_finite())
            .fold(0.0, f64::max);
        let last = (self.beta.1 * lipschitz).max(SURVIVAL * dearest);
        (self.beta.0 * level, last)
    }
}

impl Heuristic for Splitting {
    fn name(&self) -> &'static str {
        "splitting"
    }

    fn fits(&self, profile: &Profile, _: bool) -> Option<Prior> {
        let fits = profile.is_sparse() || profile.kind == Kind::Nonnegative;
        let hope = match (profile.kind, profile.is_dense()) {
            (Kind::Count, true) => 1.0,
            (Kind::Count, false) => 0.9,
            // Dictionaries of −‖AX‖₄⁴, ℓ1: 1 to 3 % higher than by smoothing alone.
            (Kind::Sparse, true) if !profile.quadratic => 0.4,
            _ => 0.6,
        };
        (!profile.mixed && fits).then(|| Prior::new(hope, 60.0))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let (oracle, pace, rotated) = (task.oracle, task.pace, &task.known.basis.rotated);
        let (first, last) = self.range(oracle, rotated);
        let nonnegative = task.profile.kind == Kind::Nonnegative;
        let (x, first) = match task.from {
            Some(best) => (
                kicked(best, self.kicks.1 * task.heat, task.seed),
                first * self.raise.powf(task.heat),
            ),
            None if task.run > 0 && !nonnegative => {
                (kicked(rotated, self.kicks.0, task.seed), first)
            }
            None => (rotated.clone(), first),
        };
        let (x, y) = anneal(oracle, x, (first, last), pace.first(0.85));
        let y = if nonnegative { x.clone() } else { y };
        let settled = sharpen::settle(oracle, &x, &y)?;
        if nonnegative {
            // Who owns a row is all that the splitting knows.
            return Some(settled_partition(
                oracle,
                task.known.covariance.as_ref(),
                &settled,
                pace.rest(),
            ));
        }
        Some(tangent::descend(oracle, settled, TANGENT_STEPS, pace.rest()).x)
    }
}

/// Runs the splitting; returns (X, Y), X orthonormal, Y in the penalty's pattern.
fn anneal(
    oracle: &Oracle<'_>,
    x: Array2<f64>,
    beta: (f64, f64),
    pace: Pace<'_>,
) -> (Array2<f64>, Array2<f64>) {
    let (inertia, penalty) = (oracle.convexity, oracle.problem.penalty);
    let (first, last) = beta;
    let mut x = x;
    let mut y = x.clone();
    let mut multiplier = Array2::<f64>::zeros(x.dim());
    loop {
        let ratio = pace.progress();
        let beta = first * (last / first).powf(ratio);
        let (_, mut target) = oracle.rough_value_and_gradient(&x);
        Zip::from(&mut target)
            .and(&multiplier)
            .and(&y)
            .and(&x)
            .for_each(|v, w, y, x| *v = beta * y + inertia * x - *v - w);
        x = oracle.polar(&target);
        let (step, mut gap) = (1.0 / beta, 0.0);
        Zip::indexed(&mut y)
            .and(&mut multiplier)
            .and(&x)
            .for_each(|(i, k), y, w, &x| {
                *y = penalty.proximal(i, k, x + step * *w, step);
                *w += beta * (x - *y);
                gap += (x - *y) * (x - *y);
            });
        // Not a number ends it too.
        if ratio >= 1.0 || !(gap > AGREE * AGREE * x.ncols() as f64) {
            return (x, y);
        }
    }
}
