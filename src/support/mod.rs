//! Sparsity patterns: rules, optimal values on given patterns, points that need no search, and moves.
//!
//! A point is a list of sparse columns ([`pattern`]) that keep [`rules`]. On a given support, f is minimised
//! column by column ([`model`]), or jointly if columns share rows ([`joint`]); [`candidates`] ranks moves of single
//! entries, and [`moves`] makes them. Columns on rows of their own have gains in O(1) ([`disjoint`]). [`power`] makes
//! columns by truncated powers, [`opening`] feasible points from principal axes and [`blocks`] of columns on common
//! rows, and [`cut`] truncates a dense X.

mod blocks;
mod candidates;
mod covariance;
pub(crate) mod cut;
mod disjoint;
mod joint;
mod model;
mod moves;
pub(crate) mod opening;
mod pattern;
mod power;
mod rays;
mod rows;
mod rules;

pub(crate) use candidates::{State, SupportMover};
pub(crate) use covariance::Covariance;
pub(crate) use disjoint::{Disjoint, TEMPERATURE};
pub use model::NEGLIGIBLE;
pub(crate) use model::{ColumnModel, SparsePoint, weights};
pub(crate) use pattern::{
    KEPT, Part, SCALAR, dense, gain, largest_rows, nonzero_rows, on_rows, random_row, swaps, without,
};
pub(crate) use power::{Axes, Directions, Powers, STAGES};
pub(crate) use rays::{ENOUGH, argmax, owners, power_step, rays};
pub(crate) use rows::{RowModel, RowSet};
pub(crate) use rules::Rules;
