//! The plan of a search, as data.

use crate::heuristic::{Kind, Profile};

/// The heuristics that a phase runs.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Entries {
    /// All heuristics that fit the problem and have a sufficient prior, as far as the limits allow.
    Fitting,
    /// This number of fitting heuristics, with the highest priors.
    HighestPriors(usize),
    /// This number of the best heuristics of the previous phase.
    Best(usize),
    /// The named heuristics, each with its number of runs.
    Named(Vec<(String, usize)>),
}

/// The start of the heuristics of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum From {
    /// A new start, once for each heuristic.
    Scratch,
    /// The incumbent, in rounds; heuristics are selected by their gain per work.
    Incumbent,
}

/// The results that are polished by alternating exact pairs and tangent steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Polish {
    /// No results.
    Never,
    /// This number of best results, at the end of the phase.
    Best(usize),
    /// Each result whose objective is near that of the incumbent.
    Each,
}

/// A phase of a search.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Phase {
    /// The heuristics.
    pub entries: Entries,
    /// The start of the heuristics.
    pub from: From,
    /// Share of the time or work left when the phase begins.
    pub share: f64,
    /// Most rounds.
    pub rounds: usize,
    /// The results that are polished.
    pub polish: Polish,
}

/// The phases of a search, in order.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Plan {
    /// The phases, in order.
    pub phases: Vec<Phase>,
}

/// Share for the first, short restarts of all heuristics: enough to rank them.
const RACE: f64 = 0.2;

/// Share of the remaining work for longer restarts of the best heuristics.
const LONG: f64 = 0.4;

/// Share of the restarts if solutions are likely to be dense and h is not ℓ0. Optima are then close together,
/// so one long run each of smoothing and ADMM is better than several short runs.
const SLOW: f64 = 0.55;

/// If iterations are [costly](Profile::is_costly): share of the remaining work for one long run with its
/// polish, and share of both for the run.
pub(super) const ALONE: f64 = 0.9;

/// Share of the remaining work for improvements; the rest is for the last polish.
const IMPROVE: f64 = 0.9;

impl Plan {
    /// Short restarts of all heuristics, longer restarts of the best, then improvements.
    pub fn new(profile: &Profile) -> Self {
        let phase = |entries, from, share, polish| Phase {
            entries,
            from,
            share,
            rounds: usize::MAX,
            polish,
        };
        let improve = phase(Entries::Fitting, From::Incumbent, IMPROVE, Polish::Each);
        if profile.mixed {
            let starts = phase(Entries::Fitting, From::Scratch, 0.5, Polish::Each);
            return Self {
                phases: vec![starts, improve],
            };
        }
        let race = |share| phase(Entries::Fitting, From::Scratch, share, Polish::Best(2));
        let phases = match profile.kind {
            Kind::Smooth | Kind::Other => vec![race(0.5), improve],
            Kind::Sparse if profile.is_dense() => {
                let (count, share) = match profile.is_costly() {
                    true => (1, ALONE),
                    false => (2, SLOW),
                };
                let slow = Entries::HighestPriors(count);
                let slow = phase(slow, From::Scratch, share, Polish::Best(count));
                vec![slow, improve]
            }
            _ => vec![
                race(RACE),
                phase(Entries::Best(2), From::Scratch, LONG, Polish::Best(2)),
                improve,
            ],
        };
        Self { phases }
    }

    /// `runs` restarts of the named heuristics, cyclically in order, then improvements.
    pub fn named(names: &[String], runs: usize) -> Self {
        let named = (0..runs).map(|k| (names[k % names.len()].clone(), 1));
        Self {
            phases: vec![
                Phase {
                    entries: Entries::Named(named.collect()),
                    from: From::Scratch,
                    share: 0.55,
                    rounds: 1,
                    polish: Polish::Best(2),
                },
                Phase {
                    entries: Entries::Fitting,
                    from: From::Incumbent,
                    share: IMPROVE,
                    rounds: usize::MAX,
                    polish: Polish::Each,
                },
            ],
        }
    }
}
