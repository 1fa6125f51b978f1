//! Better optima than one descent from one start.
//!
//! The pair solver is globally optimal but its fixed points are not. [`minimize_auto`] runs
//! [heuristics](crate::heuristic) of very different nature by a [`Plan`]:
//!
//! 1. points that need no steps, then short runs of all that fit the [`Profile`](crate::heuristic::Profile) of the
//!    problem, from scratch;
//! 2. longer runs of those that came out best;
//! 3. changes of the best point, in rounds, by the heuristics that gain most for their work.
//!
//! Every point ends feasible (projection onto {XᵀX = I, its support}); the best are polished by exact
//! pair sweeps and by the tangent steps that pairs cannot make, and the only place where a point is
//! accepted is the incumbent.
//!
//! Where there are thousands of rows of which only some can matter, heuristics and polish work on these
//! rows alone, and what comes out is completed on all of them; see `compact.rs`.
//!
//! With [`max_work`](crate::Options::max_work), or without any limit, everything is counted in
//! multiply-adds, so the result depends on the seed alone, not on the number of threads or the
//! machine's load. Without any limit the count follows the size of the problem: some seconds for
//! hundreds of rows, about ten for many thousands, at the rate of a common core.

mod answer;
mod arms;
mod auto;
mod candidate;
mod changes;
mod compact;
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
pub use auto::{minimize_auto, minimize_with};
#[cfg(feature = "python")]
pub(crate) use compact::MOST as MOST_CHOSEN;
pub use options::{Auto, AutoSolution, Run};
pub use plan::{Entries, From, Phase, Plan, Polish};
