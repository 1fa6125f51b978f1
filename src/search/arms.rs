//! Heuristics that a phase runs, on all rows or on the screened rows.

use super::options::Auto;
use super::plan::Entries;
use super::rounds::Rounds;
use crate::heuristic::{Prior, Profile};

/// Mixed signatures: number of restarts in the first phase, and, for an effort of 1, the largest product of
/// that number and n²r.
const MIXED_STARTS: f64 = 4.0;
const MIXED_WORK: f64 = 64e3;

/// Factor by which a phase may exceed its share so that every heuristic gets the least work it needs.
pub(super) const STRETCH: f64 = 2.5;

/// Multiple of the least work of a heuristic from which more work does not make its success more likely.
const AMPLE: f64 = 4.0;

/// A longer run moves from the screened rows to all rows if it allows this number of iterations there.
const WHOLE_STEPS: f64 = 200.0;

/// A heuristic, on all rows or on the screened rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Arm {
    pub(super) heuristic: usize,
    pub(super) restricted: bool,
    pub(super) prior: Prior,
}

/// Returns the heuristics that fit, highest prior first; with `all` also those of prior success 0.
pub(super) fn fitting(rounds: &Rounds<'_>, improve: bool, all: bool) -> Vec<Arm> {
    let compact = rounds.compact.as_ref();
    let spaces: &[bool] = match compact.map(|compact| compact.complete) {
        None => &[false],
        Some(true) => &[true],
        Some(false) => &[true, false],
    };
    let mut arms: Vec<Arm> = Vec::new();
    for &restricted in spaces {
        let profile = rounds.profile(restricted);
        for (heuristic, h) in rounds.heuristics.iter().enumerate() {
            if let Some(prior) = h.fits(profile, improve)
                && (all || prior.success > 0.0)
            {
                arms.push(Arm {
                    heuristic,
                    restricted,
                    prior,
                });
            }
        }
    }
    // A cheaper iteration raises the rank of an arm.
    let step = |restricted| rounds.profile(restricted).step.max(f64::MIN_POSITIVE);
    let rank = |arm: &Arm| arm.prior.success * (step(spaces[0]) / step(arm.restricted)).sqrt();
    arms.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
    arms
}

/// Returns the units of the clock that `steps` iterations take, on all rows or on the screened rows.
pub(super) fn units(rounds: &Rounds<'_>, steps: f64, restricted: bool) -> f64 {
    steps * rounds.profile(restricted).step / rounds.clock.rate()
}

/// Returns the number of restarts of a search with a mixed signature.
pub(super) fn mixed_starts(profile: &Profile, effort: f64) -> f64 {
    let size = (profile.rows * profile.rows * profile.components) as f64;
    (effort * MIXED_WORK / size)
        .floor()
        .clamp(1.0, MIXED_STARTS)
}

/// Returns the least units of the clock that an arm needs.
pub(super) fn need(rounds: &Rounds<'_>, arm: &Arm) -> f64 {
    units(rounds, arm.prior.least, arm.restricted)
}

/// Returns the arms of a restart phase. `ranked` are the arms of the previous phase, best first. The number
/// is limited so that each arm gets the least work it needs if each of k arms may take `slice(k)`.
pub(super) fn from_scratch(
    rounds: &Rounds<'_>,
    auto: &Auto,
    (entries, ranked): (&Entries, &[Arm]),
    slice: impl Fn(usize) -> f64,
) -> Vec<Arm> {
    match entries {
        Entries::Best(count) => {
            let is_affordable = !rounds.is_complete()
                && units(rounds, WHOLE_STEPS, false) <= slice((*count).min(ranked.len()));
            let mut arms: Vec<Arm> = Vec::new();
            for &arm in ranked.iter().take(*count) {
                let whole = Arm {
                    restricted: false,
                    ..arm
                };
                let outgrown = is_affordable && ranked.contains(&whole);
                let arm = if outgrown { whole } else { arm };
                if !arms.contains(&arm) {
                    arms.push(arm);
                }
            }
            arms
        }
        Entries::HighestPriors(count) => {
            let count = auto.starts.unwrap_or(*count);
            // With few iterations success is less likely.
            let ample = |arm: &Arm| (slice(count) / (AMPLE * need(rounds, arm))).min(1.0);
            let rank = |arm: &Arm| arm.prior.success * ample(arm);
            let mut arms = fitting(rounds, false, false);
            arms.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
            arms.truncate(count);
            arms
        }
        Entries::Named(named) => {
            let arms = fitting(rounds, false, true);
            let names = named
                .iter()
                .flat_map(|(name, runs)| std::iter::repeat_n(name, *runs));
            let named = names.filter_map(|name| {
                arms.iter()
                    .find(|arm| rounds.heuristics[arm.heuristic].name() == *name)
            });
            named.copied().collect()
        }
        Entries::Fitting => {
            let mut arms = fitting(rounds, false, false);
            let profile = &rounds.whole.profile;
            if profile.mixed {
                let affordable = mixed_starts(profile, auto.options.effort);
                let starts = auto.starts.unwrap_or(affordable as usize);
                return arms
                    .first()
                    .map_or(Vec::new(), |arm| vec![*arm; starts - 1]);
            }
            if let Some(starts) = auto.starts {
                return (0..starts)
                    .filter_map(|k| arms.get(k % arms.len().max(1)))
                    .copied()
                    .collect();
            }
            let fits = |arms: &[Arm]| {
                let slice = STRETCH * slice(arms.len());
                arms.iter().all(|arm| need(rounds, arm) <= slice)
            };
            while arms.len() > 1 && !fits(&arms) {
                arms.pop();
            }
            arms
        }
    }
}
