//! Limits on the number of nonzeros: min f(X) over {XᵀX = I, X with few nonzero entries}.
//!
//! The ℓ0 *penalty* reaches only the numbers of nonzeros on the lower convex hull of f against ‖X‖₀. The
//! *constraint* also has solutions between them, and applications often ask for a number per component. A
//! point is given by its [support](crate::support) and the best values on it. A search ([`search`]) changes
//! supports by moves, from many [`starts`].

mod entries;
mod incumbent;
mod material;
mod powered;
mod rows;
mod search;
mod starts;
mod stationary;

pub use entries::minimize_at_cardinality;
pub use rows::{RowSparsity, minimize_row_sparse};
