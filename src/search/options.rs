//! What the default solver is asked, and what it answers.

use super::plan::Plan;
use crate::heuristic::Profile;
use crate::options::setters;
use crate::solver::{Options, Solution};

/// Options of [`minimize_auto`](super::minimize_auto).
///
/// `options` are those of the pair sweeps; its limits on time and work, its sweep limit (for all descents
/// together), target and seed hold for the whole solve.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Auto {
    /// Number of starts; by default every heuristic that fits the problem, as far as there is room.
    pub starts: Option<usize>,
    /// Names of the heuristics that start, in this order, instead of those chosen for the problem; "given" is the
    /// start that was given.
    pub strategies: Option<Vec<String>>,
    /// The phases of the search, instead of all that.
    pub plan: Option<Plan>,
    /// Options of the descents, and limits of the whole.
    pub options: Options,
}

setters!(Auto {
    with_starts(starts: impl Into<Option<usize>>);
    with_strategies(strategies: impl Into<Option<Vec<String>>>);
    with_plan(plan: impl Into<Option<Plan>>);
    with_options(options: Options);
});

/// One run of a heuristic and what it reached.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Run {
    /// Its name.
    pub heuristic: String,
    /// Whether it began at the best point.
    pub improve: bool,
    /// Whether it worked on some rows only, see [`Profile::chosen`].
    pub restricted: bool,
    /// When it was finished, in seconds since the start of the solve.
    pub seconds: f64,
    /// Multiply-adds that it took, with its polish.
    pub work: f64,
    /// F of its point.
    pub objective: f64,
    /// By how much it lowered the best F.
    pub gain: f64,
}

impl Run {
    /// The name of what it did.
    pub fn strategy(&self) -> String {
        match self.improve {
            true => format!("{} again", self.heuristic),
            false => self.heuristic.clone(),
        }
    }
}

/// What a search returns.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct AutoSolution {
    /// The best point.
    pub solution: Solution,
    /// What found it.
    pub strategy: String,
    /// Every run of a heuristic, in order.
    pub runs: Vec<Run>,
    /// How the problem looked; None if the search ended before that was known.
    pub profile: Option<Profile>,
}

impl AutoSolution {
    /// A point, the name of what found it, and the runs of the search.
    pub(crate) fn new(solution: Solution, strategy: String, runs: Vec<Run>) -> Self {
        Self {
            solution,
            strategy,
            runs,
            profile: None,
        }
    }
}
