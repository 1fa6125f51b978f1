//! Better optima than one descent from one start: paths, strong starts, escape, perturbation.
//!
//! The pair solver is globally optimal but its fixed points are not. [`minimize_auto`] runs a list
//! of starts, one per core, of very different nature:
//!
//! | start | good for |
//! |---|---|
//! | [`Strategy::Splitting`] | annealed ADMM from the varimax-rotated spectral solution; small λ |
//! | [`Strategy::Smoothed`] | gradient descent on a smoothed penalty; dense ℓ1, small λ |
//! | [`Strategy::Reheated`] | the same over a short range of the smoothing, again and again; dense ℓ1 |
//! | [`Strategy::Supports`] | annealed disjoint supports; large λ for ℓ0, X ≥ 0 |
//! | [`Strategy::Forward`] | forward selection of components with disjoint supports; large λ for ℓ0 |
//! | [`Strategy::Path`] | decreasing λ from the closed-form optimum; heavy-tailed data |
//! | [`Strategy::Sparse`] | the same from random rows |
//! | [`Strategy::Partition`] | columns and owners of a partition in turn, perturbed; X ≥ 0 |
//! | [`Strategy::Spectral`], [`Strategy::Varimax`], [`Strategy::Dense`] | everything else |
//!
//! Every start ends feasible (projection onto {XᵀX = I, its support}); the best are polished by exact
//! pair sweeps and by the tangent steps that pairs cannot make. With time left, the best point is
//! perturbed and descended from again, and what improves is kept.
//!
//! With a mixed signature the starts are random J-orthogonal ones, each descended from by pairs of rows
//! and columns and by tangent steps in turn, and the best point is kicked.
//!
//! Without a time limit everything is counted, in steps and in multiply-adds, so the result depends on
//! the seed alone, not on the number of threads or the machine's load. The count is bounded: some
//! seconds for hundreds of rows, about ten for many thousands, at the rate of a common core.

mod auto;
mod board;
mod candidate;
mod cardinality;
mod covariance;
mod definite;
mod escape;
mod forward;
mod mixed;
mod options;
mod oracle;
mod partition;
mod path;
mod product;
mod smoothed;
mod splitting;
mod starts;
mod supports;
mod workers;

pub use crate::manifold::varimax;
pub use auto::minimize_auto;
pub use cardinality::minimize_at_count;
pub use options::{Auto, AutoSolution, StartReport, Strategy};
pub use path::{PathPoint, PathSolution, Stages, follow_path, largest_lambda, top_diagonal};
