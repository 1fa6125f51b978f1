//! Mixed signatures: J-orthogonal matrices and their decomposition.

mod cs;

pub use cs::{HyperbolicCs, hyperbolic_cs, random_j_orthogonal};
pub(crate) use cs::{j_matrix, sorted};
