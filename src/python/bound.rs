//! Lower bounds, and solves that end when their point is proved.

use ndarray::Array2;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::guard::released;
use super::input::{AnyProblem, Run};
use super::instance::Instance;
use super::memory::reserve_numbers;
use super::watch::Watch;
use crate::certificate::{Bound, BoundOptions, FORMED_ROWS, Restriction, lower_bound, minimize_proved};
use crate::search::{Auto, AutoSolution, minimize_auto};
use crate::{Error, Monitor, Objective, Problem, QuadraticForm, Result, Threads};

/// Number of matrices of the size of C in a lower bound.
const BOUND_ARRAYS: f64 = 4.0;

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
pub(super) fn proof(instance: &Instance<'_>, gap_tol: f64) -> PyResult<Proof> {
    let form = quadratic(&*instance.smooth)?;
    let n = form.order();
    if form.dense().is_some() || n <= FORMED_ROWS {
        let numbers = BOUND_ARRAYS * (n * n) as f64;
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
) -> PyResult<(Bound, bool, Option<PyErr>)> {
    let instance = Instance::new(&problem, run.n_threads, false)?;
    let (restriction, gap_tol) = proof(&instance, gap_tol)?;
    let mut options = BoundOptions::new(at.0, at.1);
    (options.gap_tol, options.max_time) = (gap_tol, run.time());
    let mut watch = Watch::new(None, run.door());
    let (form, r, threads) = (quadratic(&*instance.smooth)?, instance.components, &instance.threads);
    let found = released(py, || lower_bound(form, r, &restriction, &options, threads, &mut watch))?;
    Ok((found, watch.is_pressed(), watch.into_error()))
}

/// Returns the result of [`Auto`] and, with a tolerance for the gap, the bound that proves it.
pub(super) fn auto_and_bound(
    problem: &Problem<'_>,
    proof: Option<Proof>,
    x0: Option<Array2<f64>>,
    auto: &Auto,
    threads: &Threads,
    watch: &mut dyn Monitor,
) -> Result<(AutoSolution, Option<Bound>)> {
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
