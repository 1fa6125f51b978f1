//! What the bindings of the Python package use beside the public names. Nothing here is promised to others.

use ndarray::{Array2, ArrayView2};

use crate::certificate::{self, Certificate};
use crate::error::Result;
use crate::limits::{Clock, Control, GoOn};
use crate::objective::QuadraticForm;
use crate::penalty::Penalty;
use crate::problem::Problem;
use crate::threads::Threads;
use crate::{moments, pool, search, start};

pub use crate::continuation::largest_lambda_while;
pub use crate::manifold::j_orthogonal;
pub use crate::solver::start_within;
pub use crate::threads::locked;

/// Largest order at which a lower bound forms C.
pub const FORMED_ROWS: usize = certificate::FORMED_ROWS;

/// Largest number of rows that a search chooses.
pub const MOST_LEFT: usize = search::MOST_LEFT;

/// Part of the square of its mean up to which the variance of a feature is that of a constant.
pub const CONSTANT: f64 = moments::CONSTANT;

/// Returns whether h = 0, including ℓ0 and ℓ1 of weight 0.
pub fn is_zero(penalty: &Penalty) -> bool {
    penalty.is_none() || penalty.count() == Some(0.0) || penalty.absolute() == Some(0.0)
}

/// Runs `body`, whose argument returns false after a stop, on a thread of its own, while this thread polls; None if it was
/// stopped before it began.
pub fn watched<T: Send>(body: impl Fn(GoOn<'_>) -> T + Sync, mut poll: impl FnMut() -> Control) -> Option<T> {
    let clock = Clock::new(std::time::Instant::now(), None);
    let go_on = || !clock.expired();
    pool::run(1, 1, &clock, |_| body(&go_on), |_| poll()).into_iter().flatten().next()
}

/// Returns the certificate of a point; None if `go_on` ends the computation.
///
/// # Errors
/// As [`certify`](crate::certify).
pub fn certify_while(
    problem: &Problem<'_>,
    x: ArrayView2<'_, f64>,
    threads: &Threads,
    go_on: GoOn<'_>,
) -> Result<Certificate> {
    certificate::certify_while(problem, x, threads, go_on)
}

/// Returns [`partition`](start::partition), or groups of nearly equal size if that is not `allowed`.
pub fn partition_within(
    shape: (usize, usize),
    seed: u64,
    allowed: impl Fn(ArrayView2<'_, f64>) -> bool,
) -> Array2<f64> {
    start::partition_within(shape, seed, allowed)
}

/// Returns [`spectral`](start::spectral), or the best X so far if `go_on` ends the computation; None without any.
pub fn spectral_while(form: &dyn QuadraticForm, r: usize, threads: &Threads, go_on: GoOn<'_>) -> Option<Array2<f64>> {
    start::spectral_while(form, r, threads, go_on)
}
