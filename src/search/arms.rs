//! Heuristics on all rows or on the screened rows.

use super::rounds::Rounds;
use crate::heuristic::Prior;

/// Factor by which the least work of a heuristic may exceed its slice.
pub(super) const STRETCH: f64 = 2.5;

/// A heuristic, on all rows or on the screened rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Arm {
    pub(super) heuristic: usize,
    pub(super) restricted: bool,
    pub(super) prior: Prior,
}

impl Arm {
    /// Returns the heuristic, and whether the arm runs on the screened rows.
    pub(super) fn key(&self) -> (usize, bool) {
        (self.heuristic, self.restricted)
    }

    /// Returns the least work that the arm needs.
    pub(super) fn need(&self, rounds: &Rounds<'_>) -> f64 {
        self.prior.least * rounds.profile(self.restricted).step
    }
}

/// Returns the heuristics that fit on the given rows: those that the caller chose, or all with a prior above 0.
fn fitting(rounds: &Rounds<'_>, improve: bool, restricted: bool) -> Vec<Arm> {
    let chosen = |name: &str| match &rounds.makers {
        Some(makers) => makers.iter().any(|maker| maker == name),
        None => false,
    };
    let mut arms = Vec::new();
    for (heuristic, h) in rounds.heuristics.iter().enumerate() {
        if let Some(prior) = h.fits(rounds.profile(restricted), improve)
            && (chosen(h.name()) || rounds.makers.is_none() && prior.success > 0.0)
        {
            arms.push(Arm { heuristic, restricted, prior });
        }
    }
    arms.sort_by(|a, b| b.prior.success.total_cmp(&a.prior.success));
    arms
}

/// Returns the arms of new starts, highest prior first: on the screened rows, and on all rows unless no other row can matter.
pub(super) fn starting(rounds: &Rounds<'_>) -> Vec<Arm> {
    let mut arms = Vec::new();
    if rounds.is_screened() {
        arms = fitting(rounds, false, true);
    }
    if arms.is_empty() || !rounds.is_complete() {
        arms.extend(fitting(rounds, false, false));
    }
    arms
}

/// Returns the arms of improvements that `slice` of work suffices for, or all if there are none; highest prior first.
pub(super) fn improving(rounds: &Rounds<'_>, slice: f64) -> Vec<Arm> {
    let mut arms = Vec::new();
    if rounds.is_screened() {
        arms.extend(fitting(rounds, true, true));
    }
    if !rounds.is_complete() {
        arms.extend(fitting(rounds, true, false));
    }
    let suffices = |arm: &Arm| arm.need(rounds) <= STRETCH * slice;
    if arms.iter().any(suffices) {
        arms.retain(suffices);
    }
    // A cheaper iteration raises the rank of an arm.
    let rank = |arm: &Arm| arm.prior.success / rounds.profile(arm.restricted).step.sqrt();
    arms.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
    arms
}

/// Returns the indices of the heuristics that need no iterations.
pub(super) fn free(rounds: &Rounds<'_>) -> Vec<usize> {
    let profile = rounds.profile(false);
    let free = |k: &usize| {
        let prior = rounds.heuristics[*k].fits(profile, false);
        prior.is_some_and(|prior| prior.least == 0.0)
    };
    (0..rounds.heuristics.len()).filter(free).collect()
}
