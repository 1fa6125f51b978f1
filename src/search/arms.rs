//! Heuristics that a round may run.

use super::rounds::Rounds;
use crate::heuristic::Prior;

/// Factor by which the least work of a heuristic may exceed its slice.
pub(super) const STRETCH: f64 = 2.5;

/// A heuristic that fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Arm {
    pub(super) heuristic: usize,
    pub(super) prior: Prior,
}

impl Arm {
    /// Returns the least work that the arm needs.
    pub(super) fn need(&self, rounds: &Rounds<'_>) -> f64 {
        self.prior.least * rounds.profile.step
    }
}

/// Returns the heuristics that fit, highest prior first: those that the caller chose, or all with a prior above 0.
fn fitting(rounds: &Rounds<'_>, improve: bool) -> Vec<Arm> {
    let chosen = |name: &str| match &rounds.makers {
        Some(makers) => makers.iter().any(|maker| maker == name),
        None => false,
    };
    let mut arms = Vec::new();
    for (heuristic, h) in rounds.heuristics.iter().enumerate() {
        if let Some(prior) = h.fits(&rounds.profile, improve)
            && (chosen(h.name()) || rounds.makers.is_none() && prior.success > 0.0)
        {
            arms.push(Arm { heuristic, prior });
        }
    }
    arms.sort_by(|a, b| b.prior.success.total_cmp(&a.prior.success));
    arms
}

/// Returns the arms of new starts, highest prior first.
pub(super) fn starting(rounds: &Rounds<'_>) -> Vec<Arm> {
    fitting(rounds, false)
}

/// Returns the arms of improvements that `slice` of work suffices for, or all if there are none; highest prior first.
pub(super) fn improving(rounds: &Rounds<'_>, slice: f64) -> Vec<Arm> {
    let mut arms = fitting(rounds, true);
    let suffices = |arm: &Arm| arm.need(rounds) <= STRETCH * slice;
    if arms.iter().any(suffices) {
        arms.retain(suffices);
    }
    arms
}

/// Returns the indices of the heuristics that need no iterations.
pub(super) fn free(rounds: &Rounds<'_>) -> Vec<usize> {
    let free = |k: &usize| {
        let prior = rounds.heuristics[*k].fits(&rounds.profile, false);
        prior.is_some_and(|prior| prior.least == 0.0)
    };
    (0..rounds.heuristics.len()).filter(free).collect()
}
