//! Mixed signatures: gaps of rows and columns, and column moves.

mod certificate;
mod column_jacobi;

pub use certificate::{Gap, column_gap, row_gap, stationarity};
pub(crate) use column_jacobi::{ColumnJacobi, trace_gap};
