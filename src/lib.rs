//! Block coordinate descent under orthogonality constraints.
//!
//! `orthobcd` minimises `f(X) + h(X)` over matrices that keep XᵀJX fixed, J = diag(±1), by changing
//! a few rows at a time and solving every pair of rows to global optimality. With J = I the columns
//! of X stay exactly orthonormal: sparse PCA (ℓ0, ℓ1), nonnegative PCA, anything smooth plus a
//! separable penalty.
//!
//! ```
//! use ndarray::Array2;
//! use orthobcd::penalty::Penalty;
//! use orthobcd::{
//!     Options, Problem, Quadratic, Signature, Status, Threads, Unwatched, certify, minimize, start,
//! };
//!
//! // f(X) = −½‖AX‖² and h(X) = 100·‖X‖₀ over 8×3 matrices with XᵀX = I.
//! let a = Array2::from_shape_fn((50, 8), |(i, j)| ((i * (j + 3)) % 17) as f64 - 8.0);
//! let smooth = Quadratic::from_data(a.view())?;
//! let penalty = Penalty::l0(100.0);
//! let signature = Signature::stiefel(8);
//! let problem = Problem::new(&smooth, &penalty, &signature, 3)?;
//!
//! let threads = Threads::serial();
//! let options = Options::default().with_max_time(10.0);
//! let x0 = start::spectral(&smooth, 3, &threads);
//! let solution = minimize(&problem, x0, &options, &threads, &mut Unwatched)?;
//! assert_eq!(solution.status, Status::Converged);
//! assert!(solution.feasibility < 1e-12);
//!
//! // No pair of rows can improve it.
//! let certificate = certify(&problem, solution.x.view(), &threads)?;
//! assert!(certificate.block2_gap <= 1e-9 * certificate.magnitude);
//! # Ok::<(), orthobcd::Error>(())
//! ```
//!
//! The parts, each of which can be exchanged for one's own or another:
//!
//! * f: [`Quadratic`], [`GramQuadratic`], anything that is [`Objective`], or a [`finite_sum`]
//! * h: a [`Penalty`](penalty::Penalty), any [quadratic pieces](penalty::Penalty::pieces) and their
//!   [sums](penalty::Penalty::plus), with exact pair solvers
//! * J: a [`Signature`]; with mixed signs X stays J-orthogonal, see [`start::random_j_orthogonal`]
//! * how: [`minimize`] from one of the [starts](start) with [`Options`], [`follow_path`] over falling λ, or
//!   [`minimize_auto`], a [search] by several strong [heuristics](heuristic) with the best one kept
//! * a number of nonzeros, or of rows, in place of a penalty: a [`Limit`] of the problem
//! * what is known of a point: [`certificate`]
//! * a long solve that continues after its process was killed: a [`Checkpoint`]
//! * second moments of data that do not fit in memory, in one pass: [`Moments`]
//! * distances on the pseudo-hyperboloid, the structural probe, graph embeddings: [`ultrahyperbolic`]
//!
//! Parts of a solve: the 2×2 problem ([`pair`]), exact sweeps inside a [`block`](mod@block) of rows, and
//! the [`working_set`] rule that says which rows come next. Options, statuses and results can be written and
//! read with serde.
//!
//! Input is checked where a problem, a solve, a certificate or an objective begins, and answered with an
//! [`enum@Error`]. Inside ([`block`](mod@block), [`pair`], [`penalty`], [`working_set`] and the methods of the
//! traits [`Objective`], [`QuadraticForm`], [`Tracker`](objective::Tracker) and [`FiniteSum`](finite_sum::FiniteSum)) shapes and indices are the caller's to
//! get right: those parts index like slices.
//!
//! The crate needs no Python; the bindings of the Python package are a crate of their own in `src/python`.

#![deny(unsafe_code)]

#[doc(hidden)]
pub mod bindings;
pub mod block;
pub mod certificate;
mod checkpoint;
mod continuation;
mod error;
pub mod finite_sum;
pub mod heuristic;
mod internal;
mod limits;
pub mod linalg;
mod manifold;
pub mod moments;
mod numerics;
pub mod objective;
mod options;
pub mod pair;
pub mod penalty;
mod pool;
mod problem;
mod report;
mod riemann;
mod rotation;
mod rows;
pub mod search;
mod signature;
mod simd;
mod solver;
pub mod start;
mod support;
mod threads;
mod tournament;
pub mod ultrahyperbolic;
pub mod working_set;

pub use block::Curvature;
pub use certificate::{Certificate, certify, certify_values};
pub use checkpoint::Checkpoint;
pub use error::{Error, Result};
pub use manifold::{
    Factor, REPAIR_THRESHOLD, basis_factorization, connecting_factorization, constraint, drift, project_dense,
    project_onto_pattern,
};
pub use moments::{Moments, Precision};
pub use objective::{
    Data, DenseColumns, GramQuadratic, Objective, Quadratic, QuadraticForm, SparseColumns, SparseVector,
};
pub use problem::{Cardinality, Limit, Problem, RowSparsity, Sparsity};
pub use rotation::{Criterion, Rotation, rotate_loadings};
pub use search::{Auto, AutoSolution, PathPoint, PathSolution, Stages, follow_path, minimize_auto};
pub use signature::Signature;
pub use simd::instructions;
pub use solver::{
    CHECKPOINT_UPDATES, Control, DEFAULT_TILE, DIVERGENCE, Ledger, MIXED_REPAIR_THRESHOLD, Monitor, Mover, Options,
    Point, Record, Side, Solution, Status, Step, Unwatched, Update, WORK_UNIT, evaluate, minimize, minimize_by,
};
pub use support::NEGLIGIBLE;
pub use threads::Threads;
pub use working_set::WorkingSet;

/// The code of README.md and CONTRIBUTING.md runs as documentation tests.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;
    #[doc = include_str!("../CONTRIBUTING.md")]
    struct Contributing;
}
