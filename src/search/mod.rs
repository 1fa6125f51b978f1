//! Search for better optima than one descent from one start.
//!
//! The pair solver is globally optimal, but its fixed points need not be. [`minimize_auto`] runs a fixed
//! sequence (`sequence.rs`) of rounds of jobs: new starts by the [heuristics](crate::heuristic) that fit the
//! [`Profile`](crate::heuristic::Profile) of the problem, improvements of the incumbent, and polishing by exact pair
//! sweeps and by tangent steps, which move more than two rows at once. Every point ends feasible (projection onto
//! {XᵀX = I} with its sparsity pattern), and points are accepted by the incumbent only.
//!
//! The sequence depends on the problem and the seed alone, not on the number of threads, the load of the machine or a
//! limit. Limits on time and work cut it after a job: with more of them F is never higher. Work is counted in
//! multiply-adds.
//!
//! Under a limit on nonzeros or rows, chains of descents and perturbations (`cardinality`) take the place of the sequence;
//! the incumbent is the same.
//!
//! With thousands of rows of which only some can matter, the search sees these alone; see `reduced.rs`.

mod answer;
mod arms;
mod auto;
mod candidate;
mod cardinality;
mod first;
mod incumbent;
mod options;
mod policy;
mod proof;
mod reduced;
mod rounds;
mod select;
mod sequence;
mod tasks;

pub use crate::continuation::{PathPoint, PathSolution, Stages, follow_path, largest_lambda, top_diagonal};
pub use crate::manifold::varimax;
pub use crate::objective::default_work;
pub use crate::report::{AutoSolution, Run};
pub use auto::{makers, minimize_auto, minimize_proved, minimize_with};
pub use options::Auto;
#[cfg(feature = "python")]
pub(crate) use reduced::MOST as MOST_LEFT;
