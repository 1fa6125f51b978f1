//! What a solve returns.

use ndarray::Array2;

use crate::pair::Recession;

/// Why a solve ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Status {
    /// No pair is left that lowers F by more than the tolerance, `tol` times the
    /// [magnitude](crate::Problem::magnitude) of F: a pass over all pairs of what moves (rows, columns, or
    /// both, see [`Side`](crate::Side)), each solved globally with the exact curvature and without proximal term,
    /// found none at the point that is returned. Where columns alone suffice ([`Side::Both`](crate::Side::Both)) it is
    /// a pass over them.
    ///
    /// Of an f that is not quadratic: no pair of rows lowers its [majoriser](crate::Objective) at the point by more, with a
    /// curvature no larger than what the last steps needed; and where h = 0, dist(0, ∂_M F) is at most √tol/10
    /// times ‖∇f‖ (or a thousandth of the largest ‖∇f‖ met), unless F does not resolve what is left.
    Converged,
    /// The time limit.
    MaxTime,
    /// The sweep limit.
    MaxSweeps,
    /// The limit on counted work: the one given, or without any limit that of a default solve.
    MaxWork,
    /// The monitor said stop.
    Interrupted,
    /// The target objective is reached.
    Target,
    /// F is within the tolerance asked for of a lower bound, see [`minimize_proved`](crate::certificate::minimize_proved).
    Proved,
    /// The objective is unbounded below along one pair from the point on, see [`Solution::recession`].
    Unbounded,
    /// The next move would leave every bound, see [`DIVERGENCE`](super::DIVERGENCE): the infimum is not attained.
    Diverged,
}

/// A row of the history.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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

/// What a solve returns: always the best feasible point.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Solution {
    /// X.
    pub x: Array2<f64>,
    /// F(X), fresh.
    pub objective: f64,
    /// f(X), fresh.
    pub smooth_value: f64,
    /// h(X), fresh.
    pub penalty_value: f64,
    /// ‖XᵀJX − X₀ᵀJX₀‖_F plus the distance from the penalty's domain.
    pub feasibility: f64,
    /// Why it ended.
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
    /// Row 0 is the start, the last row the returned point; the objective never rises.
    pub history: Vec<Record>,
    /// The pair and direction along which the objective is unbounded, with [`Status::Unbounded`].
    pub recession: Option<Recession>,
}
