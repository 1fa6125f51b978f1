//! Options and result of the variance-reduced method.

use serde::{Deserialize, Serialize};

use super::rule::CurvatureRule;
use crate::error::{Error, Result};
use crate::internal::{Limits, setters};
use crate::solver::{Side, Solution};

/// Options of [`minimize_finite_sum`](super::minimize_finite_sum).
///
/// | field | default | meaning |
/// |---|---|---|
/// | `batch` | N | components b of a full estimate |
/// | `small_batch` | ⌈√N⌉ | components b′ of a correction |
/// | `probability` | b′/(b + b′) | probability of a full estimate; 1 is J-JOBCD |
/// | `proximal` | 1e-5 | proximal weight θ ≥ 0, relative to the curvature of the pair models |
/// | `curvature` | L + L̄√((1 − p)/(p b′)) | curvature of the pair models; below L there is no guarantee |
/// | `rule` | `Bound` | source of the curvature |
/// | `matchings` | 1 | disjoint matchings solved per gradient estimate, one after the other |
/// | `side` | `Rows` | sides that move: rows, columns (where XᵀJX = J, without penalty), or both in turn |
/// | `rapidity_bound` | none; 1 for `Accumulated` | largest \|μ\| of one move |
/// | `max_evaluations` | none | component gradients |
/// | `max_visits` | none | pairs visited |
/// | `max_time` | none | seconds |
/// | `target` | none | F at which the solve stops, checked every `check_every` iterations |
/// | `check_every` | one pass over the data | iterations between evaluations of F, which are not counted |
/// | `tol` | 0 | relative decrease of F over [`CONVERGED_PASSES`] passes at which the solve has converged |
/// | `seed` | 0 | all random choices |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FiniteSumOptions {
    /// Components of a full estimate.
    pub batch: Option<usize>,
    /// Components of a correction.
    pub small_batch: Option<usize>,
    /// Probability of a full estimate.
    pub probability: Option<f64>,
    /// Proximal weight, relative to the curvature of the pair models.
    pub proximal: f64,
    /// Curvature of the pair models.
    pub curvature: Option<f64>,
    /// The source of the curvature.
    pub rule: CurvatureRule,
    /// Matchings per gradient estimate, at most one tournament (every pair once).
    pub matchings: usize,
    /// The sides that move.
    pub side: Side,
    /// Largest |μ| of one move.
    pub rapidity_bound: Option<f64>,
    /// Limit on component gradients.
    pub max_evaluations: Option<u64>,
    /// Limit on pairs visited.
    pub max_visits: Option<u64>,
    /// Time limit in seconds.
    pub max_time: Option<f64>,
    /// Objective at which the solve stops.
    pub target: Option<f64>,
    /// Iterations between evaluations of F; by default F is evaluated once a pass over the data.
    pub check_every: Option<usize>,
    /// Relative decrease of F over [`CONVERGED_PASSES`] passes at which the solve has converged.
    pub tol: f64,
    /// Seed of all random choices.
    pub seed: u64,
}

impl Default for FiniteSumOptions {
    fn default() -> Self {
        Self {
            batch: None,
            small_batch: None,
            probability: None,
            proximal: 1e-5,
            curvature: None,
            rule: CurvatureRule::Bound,
            matchings: 1,
            side: Side::Rows,
            rapidity_bound: None,
            max_evaluations: None,
            max_visits: None,
            max_time: None,
            target: None,
            check_every: None,
            tol: 0.0,
            seed: 0,
        }
    }
}

/// Number of passes with a decrease of the best F up to `tol` after which convergence is checked.
///
/// A pass is N component gradients or n − 1 iterations, whichever takes longer; F is noisy, so one pass
/// without a decrease is not enough. With [`CurvatureRule::Accumulated`], which has no model of F, the solve
/// has then converged. Otherwise all pairs are solved at the best point with the exact gradient, the
/// curvature L (if known) and no proximal term. If no pair lowers its model by more than `tol`·|F|, the solve
/// has [converged](crate::Status::Converged). Otherwise the solve continues from the best point with exact
/// gradients.
pub const CONVERGED_PASSES: u32 = 3;

/// The result of a variance-reduced solve.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FiniteSumSolution {
    /// The best evaluated point and the status. The work is the number of component gradients.
    pub solution: Solution,
    /// Number of iterations: gradient estimates, each with its matchings.
    pub iterations: u64,
    /// Number of component gradients at each row of the history.
    pub evaluations: Vec<u64>,
}

setters!(FiniteSumOptions {
    with_batch(batch: impl Into<Option<usize>>);
    with_small_batch(small_batch: impl Into<Option<usize>>);
    with_probability(probability: impl Into<Option<f64>>);
    with_proximal(proximal: f64);
    with_curvature(curvature: impl Into<Option<f64>>);
    with_rule(rule: CurvatureRule);
    with_matchings(matchings: usize);
    with_side(side: Side);
    with_rapidity_bound(rapidity_bound: impl Into<Option<f64>>);
    with_max_evaluations(max_evaluations: impl Into<Option<u64>>);
    with_max_time(max_time: impl Into<Option<f64>>);
    with_target(target: impl Into<Option<f64>>);
    with_check_every(check_every: impl Into<Option<usize>>);
    with_tol(tol: f64);
    with_seed(seed: u64);
});

impl FiniteSumOptions {
    /// Checks the options that do not depend on the problem.
    pub(super) fn check(&self) -> Result<()> {
        if !(self.proximal.is_finite() && self.proximal >= 0.0) {
            return Err(Error::invalid("proximal", "must be finite and nonnegative"));
        }
        if self.check_every == Some(0) {
            return Err(Error::invalid("check_every", "must be at least 1"));
        }
        if self.matchings == 0 {
            return Err(Error::invalid("matchings", "must be at least 1"));
        }
        Ok(())
    }

    /// Returns the limits; work is counted in component gradients.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            target: self.target,
            time: self.max_time,
            evaluations: self.max_evaluations,
            visits: self.max_visits,
            ..Limits::default()
        }
    }
}
