//! Which heuristics a phase runs, on all rows or on some.

use super::options::Auto;
use super::plan::Entries;
use super::rounds::Rounds;
use crate::heuristic::Prior;

/// For mixed signatures the runs of a first phase, and the n²r that they are worth.
pub(super) const MIXED_STARTS: usize = 4;
pub(super) const MIXED_WORK: usize = 64_000;

/// Hope below which a heuristic only runs when it is asked for.
pub(super) const HOPELESS: f64 = 0.05;

/// How much longer than planned a phase may be so that more heuristics have the least that they need.
pub(super) const STRETCH: f64 = 2.5;

/// Steps on all rows for which a longer run has room before it leaves the chosen rows, if these are not all that matter: which
/// ones they should be is what such a run finds out.
const WHOLE_STEPS: f64 = 200.0;

/// A heuristic on all rows or on some.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Arm {
    pub(super) heuristic: usize,
    pub(super) restricted: bool,
    pub(super) prior: Prior,
}

/// The heuristics that fit, the most hopeful first.
pub(super) fn fitting(rounds: &Rounds<'_>, improve: bool, least_hope: f64) -> Vec<Arm> {
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
                && prior.hope >= least_hope
            {
                arms.push(Arm {
                    heuristic,
                    restricted,
                    prior,
                });
            }
        }
    }
    // Of the same on all rows and on some, what is cheaper comes first.
    let step = |restricted| rounds.profile(restricted).step.max(f64::MIN_POSITIVE);
    let rank = |arm: &Arm| arm.prior.hope * (step(spaces[0]) / step(arm.restricted)).sqrt();
    arms.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
    arms
}

/// Units of the clock that so many steps take, on all rows or on some.
pub(super) fn units(rounds: &Rounds<'_>, steps: f64, restricted: bool) -> f64 {
    steps * rounds.profile(restricted).step / rounds.clock.rate()
}

/// The least units of the clock that an arm is worth.
pub(super) fn need(rounds: &Rounds<'_>, arm: &Arm) -> f64 {
    units(rounds, arm.prior.least, arm.restricted)
}

/// The arms of a phase from scratch, given those of the phase before, best first: as many as have the least work that
/// they need where each of so many may take `slice`.
pub(super) fn from_scratch(
    rounds: &Rounds<'_>,
    auto: &Auto,
    (entries, ranked): (&Entries, &[Arm]),
    slice: impl Fn(usize) -> f64,
) -> Vec<Arm> {
    match entries {
        Entries::Best(count) => {
            let roomy = !rounds.is_complete()
                && units(rounds, WHOLE_STEPS, false) <= slice((*count).min(ranked.len()));
            let mut arms: Vec<Arm> = Vec::new();
            for &arm in ranked.iter().take(*count) {
                let whole = Arm {
                    restricted: false,
                    ..arm
                };
                let outgrown = roomy && ranked.contains(&whole);
                let arm = if outgrown { whole } else { arm };
                if !arms.contains(&arm) {
                    arms.push(arm);
                }
            }
            arms
        }
        Entries::Hopeful(count) => {
            let mut arms = fitting(rounds, false, HOPELESS);
            arms.truncate(auto.starts.unwrap_or(*count));
            arms
        }
        Entries::Named(named) => {
            let arms = fitting(rounds, false, 0.0);
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
            let mut arms = fitting(rounds, false, HOPELESS);
            let profile = &rounds.whole.profile;
            if profile.mixed {
                let affordable = MIXED_WORK / (profile.rows * profile.rows * profile.components);
                let starts = auto.starts.unwrap_or(match rounds.clock.limit() {
                    Some(_) => MIXED_STARTS,
                    None => affordable.clamp(1, MIXED_STARTS),
                });
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
