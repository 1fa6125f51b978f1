//! Options and result of the variance-reduced method.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::internal::{Limits, options};
use crate::solver::{Side, Solution};

/// The curvature of the pair models of [`minimize_finite_sum`](super::minimize_finite_sum).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub enum CurvatureRule {
    /// A bound that holds everywhere: [`FiniteSumOptions::curvature`](super::FiniteSumOptions), by default
    /// the curvature of the objective plus a term for the error of the estimate.
    #[default]
    Bound,
    /// Curvature adapted by exact gradients: begins at ‖∇f‖/‖X‖, falls by a fifth if F falls as the model
    /// predicts, and otherwise doubles, with the step reverted. F never rises.
    Adaptive,
    /// Every pair (i, j) has a linear model: its slope K_ij along its rotation or boost, averaged over the
    /// iterations, `M_ij ← 0.9 M_ij + 0.1 K_ij`. With k matchings and `S_ij ← 0.99 S_ij + 0.01 K_ij²` the
    /// proximal weight is `√(k S_ij) / (2·step)`. Both means are made unbiased: Adam (Kingma and Ba, ICLR
    /// 2015) in the coordinates of the Lie algebra, with steps by globally optimal pair solves. All slopes of
    /// an iteration are taken at its first point. With `max_time` or `max_evaluations` the step falls
    /// linearly to 0 at the limit. With [`Side::Both`](crate::solver::Side) the rows of equal sign and all
    /// columns move in one iteration. The rule needs no Lipschitz constant and excludes a penalty. F may
    /// rise; if F exceeds its value at the start, the solve returns to the best point with half the step.
    Accumulated {
        /// Approximately ‖ΔX‖/‖X‖ of the first iteration: with k matchings the first angle or rapidity of a
        /// pair is step/√k.
        step: f64,
    },
}

options! {
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
        batch: [Option<usize>] = None, with_batch;
        /// Components of a correction.
        small_batch: [Option<usize>] = None, with_small_batch;
        /// Probability of a full estimate.
        probability: [Option<f64>] = None, with_probability;
        /// Proximal weight, relative to the curvature of the pair models.
        proximal: [f64] = 1e-5, with_proximal;
        /// Curvature of the pair models.
        curvature: [Option<f64>] = None, with_curvature;
        /// The source of the curvature.
        rule: [CurvatureRule] = CurvatureRule::Bound, with_rule;
        /// Matchings per gradient estimate, at most one tournament (every pair once).
        matchings: [usize] = 1, with_matchings;
        /// The sides that move.
        side: [Side] = Side::Rows, with_side;
        /// Largest |μ| of one move.
        rapidity_bound: [Option<f64>] = None, with_rapidity_bound;
        /// Limit on component gradients.
        max_evaluations: [Option<u64>] = None, with_max_evaluations;
        /// Limit on pairs visited.
        max_visits: [Option<u64>] = None, with_max_visits;
        /// Time limit in seconds.
        max_time: [Option<f64>] = None, with_max_time;
        /// Objective at which the solve stops.
        target: [Option<f64>] = None, with_target;
        /// Iterations between evaluations of F; by default F is evaluated once a pass over the data.
        check_every: [Option<usize>] = None, with_check_every;
        /// Relative decrease of F over [`CONVERGED_PASSES`] passes at which the solve has converged.
        tol: [f64] = 0.0, with_tol;
        /// Seed of all random choices.
        seed: [u64] = 0, with_seed;
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
