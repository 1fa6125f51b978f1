//! The matrices with XᵀJX = K: the constraint and its repair, polar factors, tangent directions.

mod repair;
mod stiefel;

pub use repair::{REPAIR_THRESHOLD, constraint, drift, project_onto_pattern};
pub(crate) use repair::{
    START_TOLERANCE, project_dense, repair_dense, signed, signs_of, start_constraint,
};
pub use stiefel::varimax;
pub(crate) use stiefel::{
    Manifold, inner, kicked, polar, project_near_support, project_on_support, square, symmetric,
    tangent, varimax_while,
};
