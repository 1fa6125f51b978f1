//! Search for better optima than one descent from one start.
//!
//! The pair solver is globally optimal, but its fixed points need not be. [`minimize_auto`] runs different
//! [heuristics](crate::heuristic) by a [`Plan`]:
//!
//! 1. points that need no iterations, then short restarts of all heuristics that fit the
//!    [`Profile`](crate::heuristic::Profile) of the problem;
//! 2. longer restarts of the best heuristics;
//! 3. improvements of the incumbent, in rounds, by the heuristics with the highest gain per work.
//!
//! Every point ends feasible (projection onto {XᵀX = I} with its sparsity pattern). The best points are
//! polished by exact pair sweeps and by tangent steps, which move more than two rows at once. Points are
//! accepted by the incumbent only.
//!
//! With thousands of rows of which only some can matter, heuristics and polish work on the screened rows, and
//! their results are completed on all rows; see `compact.rs`.
//!
//! Work is counted in multiply-adds. The result depends on the seed alone, not on the number of threads or the load
//! of the machine, unless a time limit ends the search. The work of a search follows the size of the problem: some
//! seconds for hundreds of rows, about ten for many thousands, at the rate of a common core;
//! [`effort`](crate::Options::effort) scales it. Limits on time and work end the search earlier. The clock guides the
//! search, so that every phase gets a share of the time, in two cases: the time limit is too short for the search
//! on any core, or the effort is infinite and the search without the clock has ended.

mod answer;
mod arms;
mod auto;
mod candidate;
mod changes;
mod compact;
mod first;
mod incumbent;
mod options;
mod phases;
mod plan;
mod rounds;
mod scratch;
mod select;

pub use crate::continuation::{
    PathPoint, PathSolution, Stages, follow_path, largest_lambda, top_diagonal,
};
pub use crate::manifold::varimax;
pub use crate::objective::default_work;
pub use crate::report::{AutoSolution, Run};
pub use auto::{minimize_auto, minimize_with};
#[cfg(feature = "python")]
pub(crate) use compact::MOST as MOST_CHOSEN;
pub use options::Auto;
pub use plan::{Entries, From, Phase, Plan, Polish};
