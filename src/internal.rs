//! Private names of the crate that the modules beside the method may use, in addition to its public names.
//!
//! These modules are [`moments`](crate::moments), the bounds of [`certificate`](crate::certificate),
//! [`finite_sum`](crate::finite_sum), [`ultrahyperbolic`](crate::ultrahyperbolic) and `rotation`. The method imports none
//! of them, so that each can become a crate of its own; `tests/public/borders.rs` checks both.

pub(crate) use crate::block::{ColumnSweep, Majoriser, Matchings, RAISE, RAPIDITY_BOUND, SlopePairs, adapted};
pub(crate) use crate::limits::{Clock, WORK_UNIT};
pub(crate) use crate::linalg::{Cholesky, Lu, cayley, product, square, symmetric, symmetric_eigenvalues};
pub(crate) use crate::manifold::{START_TOLERANCE, polar, tangent, varimax_rotation};
pub(crate) use crate::objective::{LANCZOS_STEPS, check_size, lanczos_bounds, largest};
pub(crate) use crate::options::options;
pub(crate) use crate::riemann::gradient::GradientDescent;
pub(crate) use crate::rows::{PANEL, PIECE, Rows, rows_of, slice_of};
pub(crate) use crate::solver::{Domain, Limits, PacedMonitor, components, recession_at};
pub(crate) use crate::threads::{CHUNK_ROWS, locked};
pub(crate) use crate::{numerics, pool, simd, tournament};
