//! A given number of nonzeros: min f(X) over {XᵀX = I, X within a budget of nonzero entries}.
//!
//! The ℓ0 *penalty* meets only the counts on the lower convex hull of f against ‖X‖₀; between them the *constraint* has
//! points that no λ reaches, and what is asked for is often a number per component. A point here is its supports with
//! the best values on them ([`model`], [`joint`]); a search ([`search`]) changes supports by [`moves`], from many
//! [`starts`].

mod candidates;
mod cut;
mod entries;
mod joint;
mod model;
mod moves;
mod opening;
mod powered;
mod rows;
mod rules;
mod search;
mod starts;

pub use entries::minimize_at_cardinality;
pub use model::NEGLIGIBLE;
pub use rows::{RowSparsity, minimize_row_sparse};
pub use rules::{Cardinality, Sparsity};
