//! Block coordinate descent under orthogonality constraints.
//!
//! `orthobcd` minimises `f(X) + h(X)` over matrices that keep XᵀJX fixed, J = diag(±1), by changing
//! a few rows at a time and solving every pair of rows to global optimality. With J = I the columns
//! of X stay exactly orthonormal: sparse PCA (ℓ0, ℓ1), nonnegative PCA, anything smooth plus a
//! separable penalty.
//!
//! * [`objective`]: objectives f, and how they follow the rows that move
//! * [`penalty`]: separable penalties h and their exact pair solvers
//! * [`pair`]: the 2×2 problem
//! * [`block`](mod@block): exact pair sweeps inside a block of rows
//! * [`working_set`]: which rows come next
//! * [`finite_sum`]: sums over data rows and the variance-reduced method
//! * [`hyperbolic`]: mixed signatures: J-orthogonal matrices and column moves
//! * [`ultrahyperbolic`]: distances on the pseudo-hyperboloid, the structural probe, graph embeddings
//! * [`minimize`]: the loop
//! * [`start`]: feasible starting points
//! * [`strategy`]: paths, strong starts, escape from non-critical points, and [`minimize_auto`]
//! * [`certificate`]: what can be proved about a point
//!
//! Input is checked where a solve, a certificate or an objective begins, and answered with an
//! [`enum@Error`]. Inside ([`block`](mod@block), [`pair`], [`penalty`], [`working_set`] and the methods of the
//! traits [`Smooth`], [`Tracker`](objective::Tracker) and [`FiniteSum`](finite_sum::FiniteSum)) shapes and indices are the caller's to
//! get right: those parts index like slices.
//!
//! The crate needs no Python; the Python package is the feature `python`.

#![deny(unsafe_code)]

pub mod block;
mod budget;
pub mod certificate;
mod error;
mod factorization;
pub mod finite_sum;
pub mod hyperbolic;
pub mod linalg;
mod manifold;
pub mod objective;
pub mod pair;
pub mod penalty;
mod problem;
mod rows;
mod signature;
mod simd;
mod solver;
pub mod start;
pub mod strategy;
mod threads;
mod tournament;
pub mod ultrahyperbolic;
pub mod working_set;

pub use block::Curvature;
pub use certificate::{Certificate, certify};
pub use error::{Error, Result};
pub use factorization::{Factor, basis_factorization, connecting_factorization};
pub use manifold::{REPAIR_THRESHOLD, constraint, drift, project_onto_pattern};
pub use objective::{Data, GramQuadratic, Quadratic, Smooth, SparseColumns};
pub use problem::Problem;
pub use signature::Signature;
pub use simd::instructions;
pub use solver::{
    CHECKPOINT_UPDATES, Control, DEFAULT_TILE, DIVERGENCE, MIXED_REPAIR_THRESHOLD, Monitor,
    Options, Record, Side, Solution, Status, Unwatched, Update, minimize,
};
pub use strategy::{
    Auto, AutoSolution, PathPoint, PathSolution, Stages, follow_path, minimize_auto,
};
pub use threads::Threads;
pub use working_set::WorkingSet;

#[cfg(feature = "python")]
mod python;

/// The code of README.md and CONTRIBUTING.md runs as documentation tests.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../CONTRIBUTING.md")]
    struct Contributing;
}
