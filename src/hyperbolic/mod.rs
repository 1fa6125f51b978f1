//! Mixed signatures: J-orthogonal matrices, their decomposition, and column moves.

mod certificate;
mod column_jacobi;
mod cs;

pub use certificate::{Gap, column_gap, criticality, row_gap};
pub use column_jacobi::{ColumnJacobi, Round, SKIP};
pub(crate) use cs::{j_matrix, sorted};
pub use cs::{HyperbolicCs, hyperbolic_cs, random_j_orthogonal};
