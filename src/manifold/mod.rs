//! The matrices with XᵀJX = K: the constraint and its repair, polar factors, tangent directions,
//! projection onto a support, and orthogonal matrices as products of 2×2 ones.

mod constraint;
mod factorization;
mod geometry;
mod pattern;
mod repair;
mod stiefel;
mod support;

pub use constraint::{REPAIR_THRESHOLD, START_TOLERANCE, constraint, drift};
pub(crate) use constraint::{normals, signed, signs_of, start_constraint};
pub use factorization::{Factor, basis_factorization, connecting_factorization};
pub(crate) use geometry::Manifold;
pub(crate) use pattern::PatternProducts;
pub use repair::j_orthogonal;
pub(crate) use repair::newton;
pub use repair::{project_dense, project_onto_pattern};
pub use stiefel::varimax;
pub(crate) use stiefel::{perturbed, polar, tangent, varimax_rotation, varimax_while, varimax_work};
pub(crate) use support::{project_near_support, project_on_support};
