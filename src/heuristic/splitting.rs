//! [Annealed ADMM](crate::riemann::admm) from the spectral solution rotated by varimax, or from the
//! incumbent. The result is made feasible and descends by tangent steps.

use ndarray::Array2;

use super::oracle::Oracle;
use super::profile::{Kind, Profile};
use super::sharpen::{self, TANGENT_STEPS};
use super::{Heuristic, LEAST, LIKELY, POSSIBLE, Prior, Task, UNLIKELY, alternated_partition, tangent};
use crate::manifold::perturbed;
use crate::riemann::admm::{self, RAISE, Terms};

/// Annealed ADMM, followed by a projection to a feasible point and a descent.
pub(super) struct Splitting;

/// First and last β of most penalties, in units of the least curvature of a component and of the Lipschitz constant of ∇f.
const RANGE: (f64, f64) = (0.2, 1.2);

/// The same for X ≥ 0: ADMM only determines the column of each row.
const NONNEGATIVE: (f64, f64) = (0.2, 0.6);

/// The same for ℓ1: the descent ends what ADMM begins.
const ABSOLUTE: (f64, f64) = (0.6, 0.12);

/// Largest ratio of the first β to the last.
const NARROWEST: f64 = 0.5;

/// Sizes of the random rotations of repeated starts and of the incumbent.
const ROTATIONS: (f64, f64) = (0.1, 0.05);

/// The last β is at least this multiple of the penalty of an entry 1: below, single entries do not survive
/// the proximal map.
const SURVIVAL: f64 = 32.0;

/// Share of the work for ADMM; the rest is for the descent.
const SHARE: f64 = 0.85;

/// Returns the first and last β for a start.
fn range(oracle: &Oracle<'_>, x: &Array2<f64>) -> (f64, f64) {
    let lipschitz = oracle.lipschitz;
    let (_, gradient) = oracle.value_and_gradient(x);
    let level = admm::curvatures(x, &gradient, lipschitz)[0];
    let penalty = oracle.problem.penalty;
    if penalty.nonnegative() {
        return (NONNEGATIVE.0 * level, NONNEGATIVE.1 * lipschitz);
    }
    let (first, last) = match penalty.l1_weights() {
        Some(_) => ABSOLUTE,
        None => RANGE,
    };
    // The largest penalty of an entry 1.
    let largest = ndarray::indices(x.dim())
        .into_iter()
        .map(|(i, k)| penalty.entry(i, k, 1.0))
        .filter(|value| value.is_finite())
        .fold(0.0, f64::max);
    (first * level, (last * lipschitz).max(SURVIVAL * largest))
}

impl Heuristic for Splitting {
    fn name(&self) -> &'static str {
        "splitting"
    }

    fn fits(&self, profile: &Profile, _: bool) -> Option<Prior> {
        let fits = profile.is_sparse() || profile.kind == Kind::Nonnegative;
        let success = match (profile.kind, profile.is_dense()) {
            (Kind::Count, _) => LIKELY,
            // For dictionaries (−‖AX‖₄⁴ with ℓ1) ADMM ends above smoothing.
            (Kind::Sparse, true) if !profile.quadratic => UNLIKELY,
            _ => POSSIBLE,
        };
        (!profile.mixed && fits).then(|| Prior::new(success, LEAST))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let (oracle, limit, rotated) = (task.oracle, task.limit, &task.known.basis.rotated);
        let (first, last) = range(oracle, rotated);
        let nonnegative = task.profile.kind == Kind::Nonnegative;
        let (x, first) = match task.from {
            Some(best) => (perturbed(best, ROTATIONS.1 * task.heat, task.seed), first * RAISE.powf(task.heat)),
            None if task.run > 0 && !nonnegative => (perturbed(rotated, ROTATIONS.0, task.seed), first),
            None => (rotated.clone(), first),
        };
        let terms = Terms {
            gradient: &mut |x| Some(oracle.rough_value_and_gradient(x).1),
            polar: &|x| oracle.polar(x),
            proximal: &mut |x, step| oracle.proximal(x, step),
            inertia: oracle.convexity,
        };
        let part = limit.first(SHARE);
        let first = first.min(NARROWEST * last);
        let (x, y) = admm::anneal(terms, x, (first, last), || part.progress())?;
        let y = if nonnegative { x.clone() } else { y };
        let feasible = sharpen::feasible_near(oracle, &x, &y)?;
        if nonnegative {
            // ADMM only determines the column of each row.
            return Some(alternated_partition(oracle, task.known.covariance.as_ref(), &feasible, limit.rest()));
        }
        Some(tangent::descend(oracle, feasible, TANGENT_STEPS, limit.rest()).x)
    }
}
