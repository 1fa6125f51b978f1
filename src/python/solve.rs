//! The door of all solves, and functions about a problem or a point without a solve.

use numpy::IntoPyArray;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};

use super::answer::{More, Search};
use super::arguments::{Core, Matrix, MatrixOut};
use super::bound::proof;
use super::finite_sum::SumOptions;
use super::input::{AnyProblem, Run, SolverOptions};
use super::instance::{Instance, StartPoint};
use super::raised::{Outcome, Raised};
use super::watch::{Watch, interruptible};
use orthobcd::bindings::{certify_while, largest_lambda_while};
use orthobcd::certificate::Prover;
use orthobcd::search::{Auto, Stages, follow_path, minimize_auto, minimize_proved};
use orthobcd::{Certificate, Side, Solution, WORK_UNIT, evaluate, minimize};

/// `orthobcd.Auto`.
#[derive(FromPyObject)]
pub(super) struct AutoOptions {
    makers: Option<Vec<String>>,
}

/// `orthobcd.solvers.Stages`: a continuation or a regularisation path.
#[derive(FromPyObject)]
pub(super) struct PathOptions {
    lams: Option<Vec<f64>>,
    ratio: f64,
    solver: SolverOptions,
    stage_tol: f64,
    n_nonzero: Option<usize>,
}

/// A solver, recognised by the options that no other has.
#[derive(FromPyObject)]
pub(super) enum How {
    Search(AutoOptions),
    Path(PathOptions),
    Sum(SumOptions),
    Pairs(SolverOptions),
}

/// Returns the result of a solver as a dict, and the exception that stopped the solver, if one did.
#[pyfunction]
#[pyo3(signature = (problem, x0, project_x0, how, run, callback))]
pub(super) fn solve<'py>(
    py: Python<'py>,
    problem: AnyProblem<'py>,
    x0: Option<StartPoint<'py>>,
    project_x0: bool,
    how: How,
    run: Run,
    callback: Option<Py<PyAny>>,
) -> Outcome<(Bound<'py, PyDict>, Option<PyErr>)> {
    let mut instance = Instance::new(&problem, run.n_threads, matches!(how, How::Sum(_)))?;
    if !matches!(how, How::Path(_)) {
        instance = instance.without_zero_penalty();
    }
    let mut watch = instance.watch(py, callback, &run)?;
    let x0 = x0.map(|x0| instance.start(py, &x0, project_x0, &run, &mut watch)).transpose()?;
    let door = run.door();
    let mut watch = watch.after(door);
    let (mut solution, more) = match how {
        How::Search(solver) => {
            let side = if instance.mixed { Side::Both } else { Side::Rows };
            let auto = Auto::default().with_makers(solver.makers).with_options(run.options().with_side(side));
            let proof = run.gap_tol.map(|gap_tol| proof(&instance, gap_tol)).transpose()?;
            let mut found = instance.solved(py, |problem, threads| match &proof {
                None => minimize_auto(problem, x0, &auto, threads, &mut watch),
                Some((restriction, gap_tol)) => {
                    let prover = Prover::new(problem, restriction, *gap_tol, threads)?;
                    minimize_proved(problem, x0, prover, &auto, threads, &mut watch)
                }
            })?;
            found.runs.iter_mut().for_each(|run| run.seconds += door);
            let runs = found.runs.into_iter().map(Core).collect();
            let search = Search { runs, profile: found.profile.map(Core) };
            (found.solution, More::Search { strategy: found.strategy, search, bound: found.bound.map(Core) })
        }
        How::Path(solver) => {
            let options = solver.solver.options(&run, false, &instance.trouble)?;
            let (lams, tol) = (solver.lams.as_deref(), solver.stage_tol);
            let stages = Stages { lams, ratio: solver.ratio, tol, nonzeros: solver.n_nonzero };
            let found = instance
                .solved(py, |problem, threads| follow_path(problem, x0, &stages, &options, threads, &mut watch))?;
            (found.solution, More::Path { path: found.path.into_iter().map(Core).collect() })
        }
        How::Sum(solver) => solver.solved(py, &instance, x0.unwrap_or_default(), &run, &mut watch)?,
        How::Pairs(solver) => {
            let options = solver.options(&run, instance.mixed, &instance.trouble)?;
            let x0 = x0.unwrap_or_default();
            let found = instance.solved(py, |problem, threads| minimize(problem, x0, &options, threads, &mut watch))?;
            (found, More::Path { path: Vec::new() })
        }
    };
    solution.seconds += door;
    solution.history.iter_mut().for_each(|record| record.seconds += door);
    let out = Core(solution).into_pyobject(py)?;
    out.update(more.into_pyobject(py)?.cast::<PyMapping>().map_err(PyErr::from)?)?;
    Ok((out, instance.raised(watch)))
}

/// Returns the values of a point, as a solution without a solve.
#[pyfunction]
pub(super) fn value(
    py: Python<'_>,
    problem: AnyProblem<'_>,
    x: Matrix<'_>,
    n_threads: Option<usize>,
) -> Outcome<Core<Solution>> {
    let instance = Instance::new(&problem, n_threads, false)?;
    let x = x.as_array().to_owned();
    let found = instance.solved(py, |problem, threads| evaluate(problem, x, threads))?;
    instance.trouble.take().map_or(Ok(Core(found)), |error| Err(error.into()))
}

/// Returns a starting point by name, or a checked user start.
#[pyfunction]
pub(super) fn start_point<'py>(
    py: Python<'py>,
    problem: AnyProblem<'py>,
    x0: StartPoint<'py>,
    project_x0: bool,
    run: Run,
) -> Outcome<MatrixOut<'py>> {
    let instance = Instance::new(&problem, run.n_threads, false)?;
    let mut watch = Watch::new(None, 0.0);
    let x0 = instance.start(py, &x0, project_x0, &run, &mut watch)?;
    watch.raise()?;
    Ok(x0.into_pyarray(py))
}

/// Certifies a point within the time limit.
#[pyfunction]
pub(super) fn certify(py: Python<'_>, problem: AnyProblem<'_>, x: Matrix<'_>, run: Run) -> Outcome<Core<Certificate>> {
    let instance = Instance::new(&problem, run.n_threads, false)?.without_zero_penalty();
    let x = x.as_array().to_owned();
    let threads = &instance.threads;
    let problem = instance.problem()?;
    let found = interruptible(py, |go_on| certify_while(&problem, x.view(), threads, &|| go_on() && !run.is_late()))?;
    let certificate = instance.answer(found.map_err(Raised::from))?;
    match instance.smooth.has_failed() {
        true => Err(instance.trouble.take().unwrap_or_else(|| PyKeyboardInterrupt::new_err(())).into()),
        false => Ok(Core(certificate)),
    }
}

/// Returns the λ from which on no pair improves the rows of largest variance; None if it is not known.
#[pyfunction]
pub(super) fn largest_lam(py: Python<'_>, problem: AnyProblem<'_>, n_threads: Option<usize>) -> Outcome<Option<f64>> {
    let instance = Instance::new(&problem, n_threads, false)?;
    let problem = instance.problem()?;
    Ok(interruptible(py, |go_on| largest_lambda_while(&problem, &instance.threads, go_on))?)
}

/// Returns the names of the makers of a search.
#[pyfunction]
pub(super) fn makers() -> Vec<&'static str> {
    orthobcd::search::makers(&orthobcd::heuristic::registry())
}

/// Returns to Python the work of a search without any limit, in the unit of `max_work`.
#[pyfunction]
pub(super) fn default_work(problem: AnyProblem<'_>) -> Outcome<f64> {
    let instance = Instance::new(&problem, Some(1), false)?;
    Ok(orthobcd::search::default_work(&*instance.smooth, instance.components) / WORK_UNIT)
}
