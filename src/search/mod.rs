//! Search for better optima than one descent from one start.
//!
//! The pair solver is globally optimal, but its fixed points need not be. [`minimize_auto`] runs a fixed
//! sequence (`sequence.rs`) of rounds, whose tasks make points; points are accepted by the incumbent only. The sequence
//! depends on the problem, the options and the seed, not on the number of threads, the load of the machine or a limit on time
//! or work. These cut it after a task: with more of them F is never higher. Work is counted in multiply-adds.
//!
//! There are two sequences. Epochs (`epochs.rs`) run the [heuristics](crate::heuristic) that fit the
//! [`Profile`](crate::heuristic::Profile) of the problem, improvements of the incumbent, and polishing by exact pair
//! sweeps and by tangent steps, which move more than two rows at once. Under a limit on nonzeros or rows, chains of
//! descents and perturbations (`chains.rs`) change supports (`cardinality`).
//!
//! Every point ends feasible (projection onto {XᵀX = I} with its sparsity pattern). With thousands of rows of which only
//! some can matter, the search sees these alone; see `reduced.rs`.

mod answer;
mod arms;
mod auto;
mod candidate;
mod cardinality;
mod chains;
mod decrease;
mod epochs;
mod first;
mod incumbent;
mod options;
mod policy;
mod proof;
mod reduced;
mod rounds;
mod select;
mod sequence;
mod stationary;
mod tasks;

pub use crate::continuation::{PathPoint, PathSolution, Stages, follow_path, largest_lambda, top_diagonal};
pub use crate::manifold::varimax;
pub use crate::objective::default_work;
pub use crate::report::{AutoSolution, Run};
pub use auto::{makers, minimize_auto, minimize_proved, minimize_with};
pub use options::Auto;
pub(crate) use reduced::MOST as MOST_LEFT;
