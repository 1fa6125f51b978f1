//! Tolerances of double precision, named by what they mean. Those of one method alone stand beside it.

/// Relative difference of numbers that are a few operations apart.
pub(crate) const ULPS: f64 = 4.0 * f64::EPSILON;

/// Relative size of a change, and of a difference of values or places, up to which it counts as rounding.
///
/// A move is taken only if its decrease exceeds this times the sum of the magnitudes of the terms of the change, so V = I
/// wins ties and the objective cannot rise. Two breakpoints (in radians) closer than this are equal: both entries vanish
/// there, up to their own rounding.
pub(crate) const TIE: f64 = 8.0 * f64::EPSILON;

/// Rounding of a value of a function, relative to the magnitudes of its terms, in units of the relative error of one
/// evaluation (ε for a quadratic form, the [precision](crate::Objective::precision) of others).
pub(crate) const VALUE: f64 = 64.0;

/// Rounding of a sum of products, relative to the size of its terms.
pub(crate) const ROUNDING: f64 = 1e-14;

/// Drift ‖XᵀJX − K‖ above which X is corrected, and up to which a correction counts as done.
pub(crate) const DRIFT: f64 = 1e-13;

/// Relative error that an iteration of matrix products leaves.
pub(crate) const CONVERGED: f64 = 1e-13;

/// Largest drift ‖XᵀJX − K‖ of a point that a search accepts, for mixed signatures relative to ‖X‖².
pub(crate) const FEASIBLE: f64 = 1e-12;

/// Relative error whose square is rounding, where an iteration converges quadratically or eigenvalues have the square of
/// the error of their vectors.
pub(crate) const HALF: f64 = 1e-9;

/// Most steps of an iteration that converges in far fewer, where rounding may not let it end.
pub(crate) const STEPS: usize = 200;

/// Least decrease that counts, relative to the size of F; values that differ by less are equal.
pub(crate) const GAIN: f64 = 1e-12;
