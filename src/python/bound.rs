//! Lower bounds, and solves that end when their point is proved.

use ndarray::Array2;
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Instance;
use super::guard::released;
use super::input::{AnyProblem, Run};
use super::memory::reserve_numbers;
use super::watch::Watch;
use crate::certificate::{BoundOptions, FORMED_ROWS, Restriction, lower_bound, minimize_proved};
use crate::search::{Auto, AutoSolution, minimize_auto};
use crate::{Error, Monitor, Objective, Problem, QuadraticForm, Result, Threads};

/// Number of matrices of the size of C in a lower bound.
const BOUND_ARRAYS: f64 = 4.0;

/// Returns the restriction of the entries of X by a penalty or a limit.
pub(super) fn restriction(problem: &Problem<'_>) -> PyResult<Restriction> {
    let message = "bound must be False for this penalty";
    Restriction::of(problem).ok_or_else(|| PyTypeError::new_err(message))
}

/// Returns f as a quadratic form, or an error if it is none.
pub(super) fn quadratic(smooth: &dyn Objective) -> Result<&dyn QuadraticForm> {
    let none = || Error::invalid("problem", "must have a quadratic objective to be bounded");
    smooth.quadratic().ok_or_else(none)
}

/// Returns a lower bound on the objective, whether a signal ended the search, and the exception that a signal
/// handler raised, except for Ctrl-C.
///
/// The gap is that of a point whose F and magnitude are `at`.
#[pyfunction]
#[pyo3(name = "lower_bound")]
pub(super) fn certified_bound<'py>(
    py: Python<'py>,
    problem: AnyProblem<'py>,
    at: (f64, f64),
    gap_tol: f64,
    run: Run,
) -> PyResult<(Bound<'py, PyDict>, bool, Option<PyErr>)> {
    let instance = Instance::new(&problem, &run)?;
    let form = quadratic(&*instance.smooth)?;
    reserve_bound(form)?;
    let restriction = restriction(&instance.problem()?)?;
    let mut options = BoundOptions::new(at.0, at.1);
    (options.gap_tol, options.max_time) = (gap_tol, run.time());
    let mut watch = Watch::new(None, run.door());
    let (r, threads) = (instance.components, &instance.threads);
    let found = released(py, || lower_bound(form, r, &restriction, &options, threads, &mut watch))??;
    Ok((bound_dict(py, found)?, watch.is_pressed(), watch.into_error()))
}

/// Checks that the matrices of a lower bound can be allocated.
///
/// # Errors
/// A `MemoryError` that states the memory needed.
pub(super) fn reserve_bound(form: &dyn QuadraticForm) -> PyResult<()> {
    let n = form.order();
    if form.dense().is_none() && n > FORMED_ROWS {
        return Ok(());
    }
    reserve_numbers(BOUND_ARRAYS * (n * n) as f64, || format!("matrices of shape ({n}, {n}) of a lower bound"))
}

/// Returns the fields of an `orthobcd.Bound`.
fn bound_dict(py: Python<'_>, found: crate::certificate::Bound) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("value", found.value)?;
    out.set_item("gap", found.gap)?;
    out.set_item("method", found.method.name())?;
    out.set_item("n_nodes", found.nodes)?;
    out.set_item("multiplier", found.multiplier.map(|m| m.into_pyarray(py)))?;
    let excluded = found.excluded.into_iter().map(|i| i as i64);
    out.set_item("features_excluded", PyArray1::from_iter(py, excluded))?;
    let history = PyDict::new(py);
    let (seconds, bounds): (Vec<f64>, Vec<f64>) = found.history.into_iter().unzip();
    history.set_item("seconds", PyArray1::from_vec(py, seconds))?;
    history.set_item("bound", PyArray1::from_vec(py, bounds))?;
    out.set_item("history", history)?;
    Ok(out)
}

/// Adds a bound, if there is one, to the result of a solve.
pub(super) fn set_bound(out: &Bound<'_, PyDict>, bound: Option<crate::certificate::Bound>) -> PyResult<()> {
    match bound {
        Some(bound) => out.set_item("bound", bound_dict(out.py(), bound)?),
        None => Ok(()),
    }
}

/// Returns the result of [`Auto`] and, with a tolerance for the gap, the bound that proves it.
pub(super) fn auto_and_bound(
    problem: &Problem<'_>,
    proof: Option<(Restriction, f64)>,
    x0: Option<Array2<f64>>,
    auto: &Auto,
    threads: &Threads,
    watch: &mut dyn Monitor,
) -> Result<(AutoSolution, Option<crate::certificate::Bound>)> {
    let Some((restriction, gap_tol)) = proof else {
        return Ok((minimize_auto(problem, x0, auto, threads, watch)?, None));
    };
    let form = (quadratic(problem.smooth)?, problem.components);
    let mut whole: Option<(f64, AutoSolution)> = None;
    let (solution, bound) =
        minimize_proved(form, &restriction, gap_tol, &auto.options, threads, watch, |from, zero, options, watch| {
            let auto = auto.clone().with_options(options.clone());
            let r = problem.components;
            let limit = problem.limit.map(|limit| limit.without_rows(zero, r));
            let limited = Problem { limit: limit.as_ref(), ..*problem };
            let from = from.or_else(|| x0.clone());
            let mut found = minimize_auto(&limited, from, &auto, threads, watch)?;
            let solution = found.solution.clone();
            if let Some((seconds, before)) = whole.take() {
                for run in &mut found.runs {
                    run.seconds += seconds;
                }
                found.runs.splice(0..0, before.runs);
                if solution.objective >= before.solution.objective {
                    (found.strategy, found.solution) = (before.strategy, before.solution);
                }
            }
            let seconds = found.runs.last().map_or(0.0, |run| run.seconds);
            whole = Some((seconds, found));
            Ok(solution)
        })?;
    let none = || Error::invalid("max_time", "must leave time for a start");
    let (_, found) = whole.ok_or_else(none)?;
    Ok((AutoSolution { solution, ..found }, Some(bound)))
}
