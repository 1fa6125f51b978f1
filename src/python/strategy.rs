//! Paths, the default solver, certificates and the basis factorization.

use ndarray::{Array2, Array3};
use numpy::{IntoPyArray, PyArray2, PyArray3, PyReadonlyArray2};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::bound::{auto_and_bound, quadratic, reserve_bound, restriction, set_bound};
use super::guard::guarded;
use super::input::{AnyProblem, Run as Limits, SolverOptions};
use super::watch::{interruptible, status_name};
use super::{Instance, Returned, StartPoint, solution_dict};
use crate::certificate::certify_while;
use crate::continuation::largest_lambda_while;
use crate::heuristic::Profile;
use crate::search::{Auto, AutoSolution, Run, Stages, follow_path};
use crate::{Options, Side};

/// `orthobcd.Auto`.
#[derive(FromPyObject)]
pub(super) struct AutoOptions {
    makers: Option<Vec<String>>,
}

/// Runs the default solver: several starts, the best polished and perturbed.
#[pyfunction]
#[pyo3(signature = (problem, x0, project_x0, solver, run, callback))]
pub(super) fn solve_auto<'py>(
    py: Python<'py>,
    problem: AnyProblem<'py>,
    x0: Option<StartPoint<'py>>,
    project_x0: bool,
    solver: AutoOptions,
    run: Limits,
    callback: Option<Py<PyAny>>,
) -> PyResult<Returned<'py>> {
    let instance = Instance::new(&problem, &run)?.without_zero_penalty();
    let mut watch = instance.watch(py, callback, &run)?;
    let x0 = x0.map(|x0| instance.start(py, &x0, project_x0, &run, &mut watch)).transpose()?;
    let auto = Auto {
        makers: solver.makers,
        options: Options { side: if instance.mixed { Side::Both } else { Side::Rows }, ..run.options() },
    };
    let mut watch = watch.after(run.door());
    let proof = match run.gap_tol {
        Some(gap_tol) => {
            reserve_bound(quadratic(&*instance.smooth)?)?;
            Some((restriction(&instance.problem()?)?, gap_tol))
        }
        None => None,
    };
    let (answer, bound) =
        instance.solved(py, |problem, threads| auto_and_bound(problem, proof, x0, &auto, threads, &mut watch))?;
    let out = auto_dict(py, answer, &run)?;
    set_bound(&out, bound)?;
    Ok((out, instance.raised(watch)))
}

/// Returns the result of a search as a dict.
pub(super) fn auto_dict<'py>(py: Python<'py>, answer: AutoSolution, run: &Limits) -> PyResult<Bound<'py, PyDict>> {
    let out = solution_dict(py, answer.solution, run.door())?;
    out.set_item("strategy", answer.strategy)?;
    out.set_item("search", search_dict(py, &answer.runs, run.door(), answer.profile.as_ref())?)?;
    Ok(out)
}

/// Returns the fields of an `orthobcd.Search`.
fn search_dict<'py>(
    py: Python<'py>,
    runs: &[Run],
    door: f64,
    profile: Option<&Profile>,
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let rows = runs.iter().map(|run| {
        let work = run.work / crate::WORK_UNIT;
        let heuristic = run.heuristic.as_str();
        (heuristic, run.improve, run.restricted, run.seconds + door, work, run.objective, run.gain)
    });
    out.set_item("runs", PyList::new(py, rows)?)?;
    let described = PyDict::new(py);
    if let Some(profile) = profile {
        described.set_item("n_rows", profile.rows)?;
        described.set_item("n_components", profile.components)?;
        described.set_item("mixed", profile.mixed)?;
        described.set_item("quadratic", profile.quadratic)?;
        described.set_item("penalty", format!("{:?}", profile.kind).to_lowercase())?;
        described.set_item("dense", profile.is_dense())?;
        described.set_item("penalty_share", profile.penalty_share)?;
        described.set_item("flatness", profile.flatness)?;
        described.set_item("whole_matrix", profile.whole)?;
        described.set_item("n_rows_chosen", profile.chosen)?;
        described.set_item("step_work", profile.step / crate::WORK_UNIT)?;
        described.set_item("optimum", profile.optimum)?;
    }
    out.set_item("profile", described)?;
    Ok(out)
}

/// `orthobcd.Continuation`, or the stages of a regularisation path.
#[derive(FromPyObject)]
pub(super) struct ContinuationOptions {
    lams: Option<Vec<f64>>,
    ratio: f64,
    solver: SolverOptions,
    stage_tol: f64,
    n_nonzero: Option<usize>,
}

/// Runs the continuation in λ.
#[pyfunction]
#[pyo3(signature = (problem, x0, project_x0, solver, run, callback))]
pub(super) fn solve_continuation<'py>(
    py: Python<'py>,
    problem: AnyProblem<'py>,
    x0: Option<StartPoint<'py>>,
    project_x0: bool,
    solver: ContinuationOptions,
    run: Limits,
    callback: Option<Py<PyAny>>,
) -> PyResult<Returned<'py>> {
    let instance = Instance::new(&problem, &run)?;
    let mut watch = instance.watch(py, callback, &run)?;
    let x0 = x0.map(|x0| instance.start(py, &x0, project_x0, &run, &mut watch)).transpose()?;
    let options = solver.solver.options(&run, false, &instance.trouble)?;
    let stages =
        Stages { lams: solver.lams.as_deref(), ratio: solver.ratio, tol: solver.stage_tol, nonzeros: solver.n_nonzero };
    let mut watch = watch.after(run.door());
    let answer =
        instance.solved(py, |problem, threads| follow_path(problem, x0, &stages, &options, threads, &mut watch))?;
    let out = solution_dict(py, answer.solution, run.door())?;
    let path = PyList::empty(py);
    for point in answer.path {
        let item = PyDict::new(py);
        item.set_item("lam", point.lambda)?;
        item.set_item("objective", point.objective)?;
        item.set_item("n_nonzero", point.nonzeros)?;
        item.set_item("explained_variance", point.explained_variance)?;
        item.set_item("feasibility", point.feasibility)?;
        item.set_item("x", point.x.into_pyarray(py))?;
        item.set_item("status", status_name(point.status))?;
        path.append(item)?;
    }
    out.set_item("path", path)?;
    Ok((out, instance.raised(watch)))
}

/// Returns the λ from which on no pair improves the rows of largest variance; None if it is not known.
#[pyfunction]
pub(super) fn largest_lam(py: Python<'_>, problem: AnyProblem<'_>, n_threads: Option<usize>) -> PyResult<Option<f64>> {
    let instance = Instance::with_threads(&problem, n_threads)?;
    let problem = instance.problem()?;
    interruptible(py, |go_on| largest_lambda_while(&problem, &instance.threads, go_on))
}

/// Returns the names of the heuristics of a search.
#[pyfunction]
pub(super) fn heuristics() -> Vec<&'static str> {
    let all = crate::heuristic::registry();
    all.iter().map(|heuristic| heuristic.name()).collect()
}

/// Returns the work of a search without any limit, as `max_work` counts it.
#[pyfunction]
pub(super) fn default_work(problem: AnyProblem<'_>) -> PyResult<f64> {
    let instance = Instance::with_threads(&problem, Some(1))?;
    let work = crate::search::default_work(&*instance.smooth, instance.components);
    Ok(work / crate::WORK_UNIT)
}

/// Certifies a point within the time limit.
#[pyfunction]
pub(super) fn certify<'py>(
    py: Python<'py>,
    problem: AnyProblem<'py>,
    x: PyReadonlyArray2<'py, f64>,
    run: Limits,
) -> PyResult<Bound<'py, PyDict>> {
    let instance = Instance::new(&problem, &run)?.without_zero_penalty();
    let x = x.as_array().to_owned();
    let threads = &instance.threads;
    let problem = instance.problem()?;
    let found = interruptible(py, |go_on| certify_while(&problem, x.view(), threads, &|| go_on() && !run.is_late()))?;
    let certificate = instance.answer(found)?;
    if instance.smooth.has_failed() {
        let error = instance.trouble.take();
        return Err(error.unwrap_or_else(|| PyKeyboardInterrupt::new_err(())));
    }
    let out = PyDict::new(py);
    out.set_item("objective", certificate.objective)?;
    out.set_item("smooth_value", certificate.smooth_value)?;
    out.set_item("penalty_value", certificate.penalty_value)?;
    out.set_item("magnitude", certificate.magnitude)?;
    out.set_item("feasibility", certificate.feasibility)?;
    out.set_item("block2_gap", certificate.block2_gap)?;
    out.set_item("block2_pair", certificate.block2_pair)?;
    let kind = if certificate.block2_columns { "columns" } else { "rows" };
    out.set_item("block2_kind", certificate.block2_pair.map(|_| kind))?;
    out.set_item("block2_measure", certificate.block2_measure)?;
    out.set_item("stationarity", certificate.stationarity)?;
    out.set_item("criticality", certificate.criticality)?;
    out.set_item("n_pairs", certificate.pairs)?;
    out.set_item("n_pairs_proved", certificate.proved_pairs)?;
    out.set_item("optimum", certificate.optimum)?;
    Ok(out)
}

/// Returns (pairs, matrices) of the factors W₁, W₂, … with D = W_m ⋯ W₁.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub(super) fn basis_factorization<'py>(
    py: Python<'py>,
    d: PyReadonlyArray2<'py, f64>,
) -> PyResult<(Bound<'py, PyArray2<i64>>, Bound<'py, PyArray3<f64>>)> {
    let factors = guarded(|| crate::basis_factorization(d.as_array()))?;
    let pairs =
        Array2::from_shape_fn((factors.len(), 2), |(t, k)| (if k == 0 { factors[t].i } else { factors[t].j }) as i64);
    let matrices = Array3::from_shape_fn((factors.len(), 2, 2), |(t, k, l)| factors[t].v[k][l]);
    Ok((pairs.into_pyarray(py), matrices.into_pyarray(py)))
}
