//! The loop of every solve: a mover makes a step, limits and monitor are checked, and convergence is
//! verified. [`Limits`], [`Ledger`], [`PacedMonitor`] and [`Domain`] (conditions on iterates, and the repair
//! of their drift) do not depend on f; [finite sums](crate::finite_sum) use them too.
//!
//! ```text
//! rows:  B     <- working set
//!        block <- rows X_B, gradient ∇f(X)_B, curvature C_BB
//!        V     <- exact pair sweeps inside the block
//!        X_B   <- V X_B;  the objective takes over ΔX_B
//! ```
//!
//! Every step keeps XᵀJX and lowers F = f + h by the reported amount; no decrease that could be rounding
//! (`numerics::TIE`) is accepted. At every checkpoint (a pass, or [`CHECKPOINT_UPDATES`] moves) the
//! incremental quantities are evaluated anew, and the drift of XᵀJX is measured and repaired.

mod block_visit;
mod column_jacobi;
mod column_pairs;
mod columns;
pub(crate) mod components;
mod descent;
mod descents;
mod domain;
mod evaluate;
mod feasible;
mod gradient;
mod inner_tiles;
mod ledger;
mod limits;
mod majorised;
mod measure;
mod minimize;
mod monitor;
mod mover;
mod newton;
mod options;
mod outcome;
mod pairwise;
mod point;
mod proximal;
mod rows;
mod smooth;
mod stages;

pub use crate::limits::{Control, WORK_UNIT};
pub(crate) use column_pairs::PairSweep;
pub(crate) use columns::{ColumnMethod, column_method, eigenvalues_of, trace_matrix};
pub(crate) use domain::Domain;
pub use domain::{DIVERGENCE, MIXED_REPAIR_THRESHOLD};
pub use evaluate::evaluate;
pub(crate) use feasible::into_domain;
pub use feasible::start_within;
pub use ledger::Ledger;
pub(crate) use limits::Limits;
pub(crate) use minimize::recession_at;
pub use minimize::{CHECKPOINT_UPDATES, minimize, minimize_by};
pub use monitor::{Monitor, Unwatched};
pub(crate) use monitor::{PacedMonitor, Quiet};
pub use mover::{Mover, Step};
pub use options::{DEFAULT_TILE, Options, Side, Update};
pub use outcome::{Record, Solution, Status};
pub use point::Point;
pub(crate) use rows::solution_work;
