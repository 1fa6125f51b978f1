//! Conditions on iterates: the constraint XᵀJX = K, the domain of h, and a bound on ‖X‖.

use ndarray::{Array2, ArrayView2};

use crate::linalg::square;
use crate::manifold::{self, REPAIR_THRESHOLD, project_dense, project_onto_pattern};
use crate::numerics;
use crate::penalty::Penalty;
use crate::problem::Problem;
use crate::rows::change;
use crate::signature::Signature;

/// ‖X‖_F²/n, relative to max(1, its value at the start), beyond which iterates of a mixed signature count as
/// diverging: the infimum is not attained, or not finite.
pub const DIVERGENCE: f64 = 1e8;

/// Drift of XᵀJX, relative to ‖X‖_F², at which a mixed signature is corrected; rounding of one evaluation is
/// a few ε times ‖X‖_F².
pub const MIXED_REPAIR_THRESHOLD: f64 = numerics::ROUNDING;

/// Conditions on every iterate of a solve.
pub(crate) struct Domain<'a> {
    penalty: &'a Penalty,
    signature: &'a Signature,
    /// K.
    pub(crate) k: Array2<f64>,
    /// ‖X‖²/n beyond which iterates diverge.
    limit: f64,
}

fn mean_square(x: &Array2<f64>) -> f64 {
    square(x) / x.nrows() as f64
}

impl<'a> Domain<'a> {
    /// The domain of a solve from `x0`.
    pub(crate) fn new(problem: &Problem<'a>, x0: &Array2<f64>) -> Self {
        Self {
            penalty: problem.penalty,
            signature: problem.signature,
            k: manifold::start_constraint(x0.view(), problem.signature),
            limit: DIVERGENCE * mean_square(x0).max(1.0),
        }
    }

    /// Returns ‖XᵀJX − K‖_F plus the distance from the domain of h.
    pub(crate) fn distance(&self, x: ArrayView2<'_, f64>) -> f64 {
        manifold::drift(x, self.signature, self.k.view()) + self.penalty.infeasibility(x)
    }

    /// Returns the amount by which ‖X‖² may grow within bounds; infinite for a definite signature.
    pub(super) fn growth_limit(&self, x: &Array2<f64>) -> f64 {
        match self.signature.is_definite() {
            true => f64::INFINITY,
            false => (self.limit - mean_square(x)) * x.nrows() as f64,
        }
    }

    /// Returns whether ‖X‖² is within bounds, see [`DIVERGENCE`].
    pub(crate) fn is_bounded(&self, x: &Array2<f64>) -> bool {
        mean_square(x) <= self.limit
    }

    /// Returns the drift ‖XᵀJX − K‖_F, for a mixed signature relative to max(1, ‖X‖²); None if it is
    /// rounding.
    pub(super) fn drift(&self, x: &Array2<f64>) -> Option<f64> {
        let drift = manifold::drift(x.view(), self.signature, self.k.view());
        // Rounding of XᵀJX is relative to ‖X‖², which on the Stiefel manifold is of the order of ‖K‖.
        let (threshold, size, unit) = if self.signature.is_definite() {
            (REPAIR_THRESHOLD, square(&self.k).sqrt(), 1.0)
        } else {
            (MIXED_REPAIR_THRESHOLD, square(x), square(x).max(1.0))
        };
        (drift > threshold * size.max(1.0)).then_some(drift / unit)
    }

    /// Returns X without its drift; zeros stay zero if there is a penalty.
    pub(crate) fn repaired(&self, x: &Array2<f64>) -> Array2<f64> {
        let k = self.k.view();
        let dense = !self.signature.is_definite() && self.penalty.is_none() && manifold::signs_of(k).is_some();
        let project = if dense { project_dense } else { project_onto_pattern };
        let mut repaired = project(x, self.signature, k);
        for row in repaired.outer_iter_mut() {
            change(row, |row| self.penalty.tidy(row));
        }
        repaired
    }
}
