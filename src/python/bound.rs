//! Lower bounds, and solves that end when their point is proved.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::arguments::Core;
use super::guard::released;
use super::input::{AnyProblem, Run};
use super::instance::Instance;
use super::memory::{DENSE_ARRAYS, reserve_numbers};
use super::raised::Outcome;
use super::watch::Watch;
use orthobcd::bindings::FORMED_ROWS;
use orthobcd::certificate::{Bound, BoundOptions, Restriction, lower_bound};
use orthobcd::{Error, Objective, QuadraticForm, Result};

/// A proof that a solve shall reach: the restriction of the entries of X, and the gap.
pub(super) type Proof = (Restriction, f64);

/// Returns f as a quadratic form.
fn quadratic(smooth: &dyn Objective) -> Result<&dyn QuadraticForm> {
    let none = || Error::invalid("problem", "must have a quadratic objective to be bounded");
    smooth.quadratic().ok_or_else(none)
}

/// Returns the proof for the gap `gap_tol`.
///
/// # Errors
/// If f is not quadratic, there is no bound for its restriction, or too little memory for its matrices.
pub(super) fn proof(instance: &Instance<'_>, gap_tol: f64) -> Outcome<Proof> {
    let form = quadratic(&*instance.smooth)?;
    let n = form.order();
    if form.dense().is_some() || n <= FORMED_ROWS {
        let numbers = DENSE_ARRAYS * (n * n) as f64;
        reserve_numbers(numbers, || format!("matrices of shape ({n}, {n}) of a lower bound"))?;
    }
    let none = || PyTypeError::new_err("bound must be False for this penalty");
    Ok((Restriction::of(&instance.problem()?).ok_or_else(none)?, gap_tol))
}

/// Returns a lower bound on the objective, whether a signal ended the search, and the exception that a signal
/// handler raised, except for Ctrl-C.
///
/// The gap is that of a point whose F and magnitude are `at`.
#[pyfunction]
#[pyo3(name = "lower_bound")]
pub(super) fn certified_bound(
    py: Python<'_>,
    problem: AnyProblem<'_>,
    at: (f64, f64),
    gap_tol: f64,
    run: Run,
) -> Outcome<(Core<Bound>, bool, Option<PyErr>)> {
    let instance = Instance::new(&problem, run.n_threads, false)?;
    let (restriction, gap_tol) = proof(&instance, gap_tol)?;
    let mut options = BoundOptions::new(at.0, at.1);
    (options.gap_tol, options.max_time) = (gap_tol, run.time());
    let mut watch = Watch::new(None, run.door());
    let (form, r, threads) = (quadratic(&*instance.smooth)?, instance.components, &instance.threads);
    let found = released(py, || lower_bound(form, r, &restriction, &options, threads, &mut watch))?;
    Ok((Core(found), watch.is_pressed(), watch.into_error()))
}
