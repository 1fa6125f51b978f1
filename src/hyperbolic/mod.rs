//! Mixed signatures: J-orthogonal matrices, their decomposition, and column moves.

mod certificate;
mod column_jacobi;
mod cs;

pub use certificate::{Gap, column_gap, row_gap, stationarity};
pub(crate) use column_jacobi::{ColumnJacobi, trace_gap};
pub use cs::{HyperbolicCs, hyperbolic_cs, random_j_orthogonal};
pub(crate) use cs::{j_matrix, sorted};
