//! Tolerances of double precision, named by what they mean. Those of one method alone stand beside it.

/// Relative difference of numbers that are a few operations apart.
pub(crate) const ULPS: f64 = 4.0 * f64::EPSILON;

/// Rounding of a sum of products, relative to the size of its terms.
pub(crate) const ROUNDING: f64 = 1e-14;

/// Drift ‖XᵀJX − K‖ above which X is corrected, and up to which a correction counts as done.
pub(crate) const DRIFT: f64 = 1e-13;

/// Relative error that an iteration of matrix products leaves.
pub(crate) const CONVERGED: f64 = 1e-13;

/// Largest drift ‖XᵀJX − K‖ of a point that a search accepts, for mixed signatures relative to ‖X‖².
pub(crate) const FEASIBLE: f64 = 1e-12;

/// Least decrease that counts, relative to the size of F; values that differ by less are equal.
pub(crate) const GAIN: f64 = 1e-12;
