//! The numbers that decide how a search goes on.

/// The numbers of a search; work is in multiply-adds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Policy {
    /// Jobs of a round of improvements, and least number of chains, whatever the number of threads.
    pub(super) lanes: usize,
    /// The first epoch takes at least this part of the work of a default search.
    pub(super) first: f64,
    /// Share of a later epoch for new starts, if improvements are affordable: if f is not quadratic, with X ≥ 0, and otherwise.
    pub(super) starts: [f64; 3],
    /// Share of the work of new starts before their best points are polished.
    pub(super) raw: f64,
    /// Number of these best points.
    pub(super) polished: usize,
    /// Rounds of improvements in an epoch.
    pub(super) rounds: usize,
    /// Relative decrease of F by a round of improvements after which another one follows.
    pub(super) gain: f64,
    /// Least work of one improvement, in units of n²r.
    pub(super) improvement: f64,
    /// Share of an epoch for polishing the incumbent.
    pub(super) polish: f64,
    /// Number of different starts that lead to the incumbent before a search ends. They exchange no points, so that all of
    /// them would have missed a better one.
    pub(super) agreement: usize,
    /// A search ends if as much work again has brought nothing, and at least this part of the work of a default search.
    pub(super) idle: f64,
    /// Work of the last polish, as a part of that of a default search.
    pub(super) last: f64,
}

/// The policy of every search.
pub(super) const POLICY: Policy = Policy {
    lanes: 4,
    first: 1.0 / 64.0,
    starts: [0.25, 0.5, 0.75],
    raw: 0.75,
    polished: 2,
    rounds: 4,
    gain: 1e-6,
    improvement: 20.0,
    polish: 0.1,
    agreement: 4,
    idle: 0.75,
    last: 0.5,
};
