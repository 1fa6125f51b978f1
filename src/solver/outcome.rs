//! Results of a solve.

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::pair::Recession;

/// Reason why a solve ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Status {
    /// No pair can lower F by more than the tolerance, `tol` times the [magnitude](crate::Problem::magnitude)
    /// of F: a pass over all pairs of the side that moves (rows, columns, or both, see
    /// [`Side`](crate::Side)), each solved globally with the exact curvature and without proximal term, found
    /// none at the returned point. If columns alone suffice ([`Side::Both`](crate::Side::Both)), the pass
    /// covers columns only.
    ///
    /// For a nonquadratic f: no pair of rows lowers its [majoriser](crate::Objective) at the point by more,
    /// with a curvature no larger than the last steps needed. If h = 0, dist(0, ∂_M F) is also at most
    /// √tol/10 times ‖∇f‖ (or a thousandth of the largest ‖∇f‖ met), unless F does not resolve the remainder.
    Converged,
    /// The time limit was reached.
    MaxTime,
    /// The sweep limit was reached.
    MaxSweeps,
    /// The work limit was reached: the given one, or, without any limit, that of a default solve.
    MaxWork,
    /// The monitor stopped the solve.
    Interrupted,
    /// The target objective was reached.
    Target,
    /// F is within the requested tolerance of a lower bound, see
    /// [`minimize_proved`](crate::search::minimize_proved).
    Proved,
    /// The objective is unbounded below along a pair, see [`Solution::recession`]: found before anything moved,
    /// by a pair solve, or where the next move would leave the [bounds](super::DIVERGENCE).
    Unbounded,
    /// The next move would leave the bounds, see [`DIVERGENCE`](super::DIVERGENCE), and no pair is known along
    /// which the objective is unbounded below: the infimum is not attained.
    Diverged,
    /// The values of a nonquadratic f carry noise, which hides the decrease of F that the gradient predicts. The result
    /// is the lowest value met. A tolerance above the noise ends such a descent with [`Converged`](Self::Converged).
    Noise,
    /// The gradient of a nonquadratic f is not that of its values: differences of the values at the returned point
    /// disagree with the gradient for every step length.
    Contradiction,
}

impl Status {
    /// Returns the name of the status, such as `max_time`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::MaxTime => "max_time",
            Self::MaxSweeps => "max_sweeps",
            Self::MaxWork => "max_work",
            Self::Interrupted => "interrupted",
            Self::Target => "target",
            Self::Proved => "proved",
            Self::Unbounded => "unbounded",
            Self::Diverged => "diverged",
            Self::Noise => "noise",
            Self::Contradiction => "contradiction",
        }
    }
}

/// A row of the history.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Seconds since the start.
    pub seconds: f64,
    /// F.
    pub objective: f64,
    /// ‖XᵀJX − X₀ᵀJX₀‖_F plus the distance from the penalty's domain.
    pub feasibility: f64,
    /// Pairs visited.
    pub iterations: u64,
}

/// The result of a solve: always the best feasible point.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Solution {
    /// X.
    pub x: Array2<f64>,
    /// F(X), evaluated anew.
    pub objective: f64,
    /// f(X), evaluated anew.
    pub smooth_value: f64,
    /// h(X), evaluated anew.
    pub penalty_value: f64,
    /// ‖XᵀJX − X₀ᵀJX₀‖_F plus the distance from the penalty's domain.
    pub feasibility: f64,
    /// Reason why the solve ended.
    pub status: Status,
    /// Pairs visited.
    pub iterations: u64,
    /// `iterations` in units of n(n−1)/2.
    pub sweeps: u64,
    /// Pairs that moved.
    pub updates: u64,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Work done, in multiply-adds of a matrix product, see [`Options::max_work`](super::Options::max_work).
    pub work: f64,
    /// The first row is the start, the last one the returned point; the objective never rises.
    pub history: Vec<Record>,
    /// The pair and direction along which the objective is unbounded, with [`Status::Unbounded`].
    pub recession: Option<Recession>,
}
