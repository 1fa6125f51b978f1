//! What a search does, as data.

use crate::heuristic::{Kind, Profile};

/// Which heuristics a phase runs.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Entries {
    /// All that fit the problem and promise something, as many as there is room for.
    Fitting,
    /// So many of these, the most hopeful ones.
    Hopeful(usize),
    /// So many of those that came out best in the phase before.
    Best(usize),
    /// These, so many runs of each.
    Named(Vec<(String, usize)>),
}

/// Where the heuristics of a phase begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum From {
    /// From scratch, once each.
    Scratch,
    /// From the best point, in rounds, by what they have brought.
    Incumbent,
}

/// When what a heuristic returns is polished, by exact pairs and tangent steps in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Polish {
    /// Not at all.
    Never,
    /// The best so many, when the phase is over.
    Best(usize),
    /// Each that comes out near the best point.
    Each,
}

/// A phase of a search.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Phase {
    /// Which heuristics.
    pub entries: Entries,
    /// Where they begin.
    pub from: From,
    /// Share of what is left of the time or work when the phase begins.
    pub share: f64,
    /// Rounds at most.
    pub rounds: usize,
    /// What is polished.
    pub polish: Polish,
}

/// The phases of a search, one after the other.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Plan {
    /// In order.
    pub phases: Vec<Phase>,
}

/// Share of the first, short runs of all heuristics: enough to tell the good ones from the others.
const RACE: f64 = 0.2;

/// Share of what is left for longer runs of the best of them.
const LONG: f64 = 0.4;

/// Share of the first runs where a solution is likely to be dense and h is not a count: optima then lie close together,
/// so one long run each of smoothing and splitting is better than several short runs.
const SLOW: f64 = 0.55;

/// Share of what is left for changes of the best point; its last polish has the rest.
const IMPROVE: f64 = 0.9;

impl Plan {
    /// Short runs of everything, longer runs of what came out best, then changes of the best point.
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
                let slow = Entries::Hopeful(2);
                vec![phase(slow, From::Scratch, SLOW, Polish::Best(2)), improve]
            }
            _ => vec![
                race(RACE),
                phase(Entries::Best(2), From::Scratch, LONG, Polish::Best(2)),
                improve,
            ],
        };
        Self { phases }
    }

    /// The heuristics that are asked for, in order and again from the first, and changes of what comes out.
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
