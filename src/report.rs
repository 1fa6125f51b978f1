//! The result of a search, with its runs.

use serde::{Deserialize, Serialize};

use crate::certificate::Bound;
use crate::heuristic::Profile;
use crate::solver::Solution;

/// One run of a heuristic and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Run {
    /// Name of the heuristic.
    pub heuristic: String,
    /// True if the run began at the incumbent.
    pub improve: bool,
    /// Time at the end of the run, in seconds since the start of the solve.
    pub seconds: f64,
    /// Multiply-adds of the run and its polish.
    pub work: f64,
    /// F at the point of the run.
    pub objective: f64,
    /// Decrease of the lowest F by the run.
    pub gain: f64,
}

impl Run {
    /// Returns the name of the heuristic, with "again" for an improvement.
    pub fn strategy(&self) -> String {
        match self.improve {
            true => format!("{} again", self.heuristic),
            false => self.heuristic.clone(),
        }
    }
}

/// The result of a search.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AutoSolution {
    /// The incumbent.
    pub solution: Solution,
    /// Name of the run that found the incumbent.
    pub strategy: String,
    /// Every run, in order.
    pub runs: Vec<Run>,
    /// The profile of the problem; None if the search ended before it was known.
    pub profile: Option<Profile>,
    /// The lower bound on F, if the search was asked for a proof.
    pub bound: Option<Bound>,
}
