//! Interface of Python and the core: reads arguments, releases the GIL, polls signals and maps errors.

mod bound;
mod checkpoint;
mod finite_sum;
mod guard;
mod hyperbolic;
mod input;
mod memory;
mod moments;
mod rotation;
mod smooth;
mod strategy;
mod ultrahyperbolic;
mod watch;

use std::sync::Arc;

use ndarray::{Array2, ArrayView2};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::objective::GoOn;
use crate::penalty::Penalty;
use crate::problem::{Limit, Problem};
use crate::search::top_diagonal;
use crate::solver::{Solution, start_within};
use crate::{Error, Objective, Signature, Threads, evaluate, minimize, start};

use checkpoint::Lent;
use guard::{guarded, released};
use hyperbolic::{set_recession, signature_or_stiefel};
use input::{AnyProblem, Run, SolverOptions};
use memory::reserve;
use smooth::Trouble;
use watch::Watch;

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        PyValueError::new_err(error.to_string())
    }
}

/// Problem in the core's terms, with the threads that work on it.
struct Instance<'a> {
    smooth: Box<dyn Objective + 'a>,
    trouble: Arc<Trouble>,
    penalty: &'a Penalty,
    limit: Option<Limit>,
    components: usize,
    rotations: bool,
    /// True if Python gave a signature: XᵀJX of a given start is then kept, whatever its value.
    mixed: bool,
    signature: Signature,
    threads: Threads,
}

impl<'a> Instance<'a> {
    fn new(problem: &'a AnyProblem<'_>, run: &Run) -> PyResult<Self> {
        Self::with_threads(problem, run.n_threads)
    }

    /// # Errors
    /// If the problem or the number of threads is not valid, or there is too little memory.
    fn with_threads(problem: &'a AnyProblem<'_>, n_threads: Option<usize>) -> PyResult<Self> {
        reserve(&problem.smooth.stored(), problem.shape, n_threads)?;
        let threads = Threads::new(n_threads)?;
        let trouble = Arc::new(Trouble::default());
        let smooth = guarded(|| problem.smooth.build(&trouble))?;
        let (penalty, limit) = problem.restrained()?;
        Ok(Self {
            signature: signature_or_stiefel(problem.signature.as_ref(), smooth.rows())?,
            smooth,
            trouble,
            penalty,
            limit,
            components: problem.shape.1,
            rotations: problem.rotations(),
            mixed: problem.signature.is_some(),
            threads,
        })
    }

    /// Returns the instance with no penalty in place of one of weight 0.
    fn without_zero_penalty(self) -> Self {
        let penalty = match self.penalty.is_zero() {
            true => &Penalty::NONE,
            false => self.penalty,
        };
        Self { penalty, ..self }
    }

    /// Runs `body` on the problem without the GIL; an exception of the objective replaces its error.
    fn solved<T: Send>(
        &self,
        py: Python<'_>,
        body: impl FnOnce(&Problem<'_>, &Threads) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let (problem, threads) = (self.problem()?, &self.threads);
        let answer = released(py, || body(&problem, threads))?;
        self.answer(answer)
    }

    /// Returns the answer of the core; an exception of the objective replaces its error.
    fn answer<T>(&self, answer: Result<T, Error>) -> PyResult<T> {
        answer.map_err(|error| self.trouble.take().unwrap_or_else(|| error.into()))
    }

    /// Returns the watch of a solve, with its checkpoint.
    fn watch(&self, py: Python<'_>, callback: Option<Py<PyAny>>, run: &Run) -> PyResult<Watch> {
        let file = Lent::begun(py, &self.problem()?, run.saved(), &self.threads)?;
        Ok(Watch::new(callback, 0.0).writing(file))
    }

    /// Returns the exception that the objective or a callback raised.
    fn raised(&self, watch: Watch) -> Option<PyErr> {
        self.trouble.take().or_else(|| watch.into_error())
    }

    /// Returns the point to start from. Long computations end at the time limit or when `watch` is stopped.
    fn start(
        &self,
        py: Python<'_>,
        x0: &StartPoint<'_>,
        project: bool,
        run: &Run,
        watch: &mut Watch,
    ) -> PyResult<Array2<f64>> {
        guarded(|| self.found_start(py, x0, project, run, watch))
    }

    fn found_start(
        &self,
        py: Python<'_>,
        x0: &StartPoint<'_>,
        project: bool,
        run: &Run,
        watch: &mut Watch,
    ) -> PyResult<Array2<f64>> {
        if let (true, StartPoint::Given(x0)) = (self.mixed, x0) {
            return Ok(x0.as_array().to_owned());
        }
        let limit = self.limit.as_ref();
        let nonnegative = self.penalty.nonnegative() || limit.is_some_and(Limit::nonnegative);
        let whole = (&*self.smooth, self.components, &self.threads);
        let point = x0.point(py, whole, nonnegative, project, run, watch)?;
        if limit.is_some() || !project && matches!(x0, StartPoint::Given(_)) {
            return Ok(point);
        }
        let point = match x0 {
            StartPoint::Named(name) if name == "partition" => {
                let allowed = |x: ArrayView2<'_, f64>| self.penalty.infeasibility(x) == 0.0;
                start::partition_within((self.smooth.rows(), self.components), run.seed, allowed)
            }
            _ => point,
        };
        let problem = self.problem()?;
        Ok(py.detach(|| start_within(&problem, point, run.seed, &self.threads, watch)))
    }

    fn problem(&self) -> Result<Problem<'_>, Error> {
        let (smooth, penalty) = (&*self.smooth, self.penalty);
        let problem = Problem::new(smooth, penalty, &self.signature, self.components)?;
        match (self.rotations, &self.limit) {
            (true, _) => problem.rotations_only(),
            (false, Some(limit)) => problem.with_limit(limit),
            (false, None) => Ok(problem),
        }
    }
}

/// Start: by name, or a given point.
#[derive(FromPyObject)]
enum StartPoint<'py> {
    Named(String),
    Given(PyReadonlyArray2<'py, f64>),
}

impl StartPoint<'_> {
    /// Returns the point. If a named one is not ready before the time limit or a stop of `watch`, returns the
    /// selection of the rows of largest variance.
    fn point(
        &self,
        py: Python<'_>,
        (smooth, r, threads): (&dyn Objective, usize, &Threads),
        nonnegative: bool,
        project: bool,
        run: &Run,
        watch: &mut Watch,
    ) -> PyResult<Array2<f64>> {
        let name = match self {
            Self::Given(x0) => {
                return Ok(start::given(&x0.as_array().to_owned(), nonnegative, project)?);
            }
            Self::Named(name) => name,
        };
        let made = watch.during(py, |go_on| {
            let go_on = || go_on() && !run.is_late();
            named_start(name, (smooth, r, threads), nonnegative, run.seed, &go_on)
        });
        Ok(made.transpose()?.flatten().unwrap_or_else(|| {
            let selection = match smooth.quadratic() {
                Some(form) => top_diagonal(form, r),
                None => start::identity(smooth.rows(), r),
            };
            match nonnegative {
                true => selection.mapv_into(f64::abs),
                false => selection,
            }
        }))
    }
}

/// Returns the start of a name, or None if `go_on` ends the computation.
fn named_start(
    name: &str,
    (smooth, r, threads): (&dyn Objective, usize, &Threads),
    nonnegative: bool,
    seed: u64,
    go_on: GoOn<'_>,
) -> Result<Option<Array2<f64>>, Error> {
    let n = smooth.rows();
    let x0 = match name {
        "identity" => start::identity(n, r),
        "random" if nonnegative => start::round_to_partition(start::random(n, r, seed).view()),
        "random" => start::random(n, r, seed),
        "spectral" => match smooth.quadratic() {
            Some(form) => match start::spectral_while(form, r, threads, go_on) {
                Some(x) if nonnegative => start::round_to_partition(x.view()),
                Some(x) => x,
                None => return Ok(None),
            },
            None => {
                return Err(Error::invalid("x0", "must not be spectral where the objective is not quadratic"));
            }
        },
        "partition" => start::partition(n, r, seed),
        _ => {
            return Err(Error::invalid(
                "x0",
                format!("must be an array or one of identity, random, spectral, partition; got {name:?}"),
            ));
        }
    };
    Ok(Some(x0))
}

/// Result of the core as a dict; and the exception that stopped the core, if one did.
type Returned<'py> = (Bound<'py, PyDict>, Option<PyErr>);

/// Returns a solution as a dict, with seconds since the call: `door` of them before the solve.
fn solution_dict<'py>(py: Python<'py>, solution: Solution, door: f64) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let history = PyDict::new(py);
    let column = |f: &dyn Fn(&crate::Record) -> f64| PyArray1::from_iter(py, solution.history.iter().map(f));
    history.set_item("seconds", column(&|r| r.seconds + door))?;
    history.set_item("objective", column(&|r| r.objective))?;
    history.set_item("feasibility", column(&|r| r.feasibility))?;
    history.set_item("n_iterations", PyArray1::from_iter(py, solution.history.iter().map(|r| r.iterations as i64)))?;
    out.set_item("history", history)?;
    out.set_item("objective", solution.objective)?;
    out.set_item("smooth_value", solution.smooth_value)?;
    out.set_item("penalty_value", solution.penalty_value)?;
    out.set_item("feasibility", solution.feasibility)?;
    out.set_item("status", watch::status_name(solution.status))?;
    out.set_item("n_iterations", solution.iterations)?;
    out.set_item("n_sweeps", solution.sweeps)?;
    out.set_item("n_updates", solution.updates)?;
    out.set_item("seconds", solution.seconds + door)?;
    let work = solution.work / crate::solver::WORK_UNIT;
    out.set_item("work", work.is_finite().then_some(work))?;
    set_recession(&out, solution.recession)?;
    out.set_item("x", solution.x.into_pyarray(py))?;
    Ok(out)
}

#[pymodule]
mod _core {
    use super::*;

    #[pymodule_export]
    const WORK_UNIT: f64 = crate::WORK_UNIT;

    #[pymodule_export]
    use super::bound::certified_bound;

    #[pymodule_export]
    use super::strategy::{
        basis_factorization, certify, default_work, heuristics, largest_lam, solve_auto, solve_continuation,
    };

    #[pymodule_export]
    use super::input::{implies_nonnegative, penalty_value};

    #[pymodule_export]
    use super::checkpoint::PyCheckpoint;

    #[pymodule_export]
    use super::moments::PyMoments;

    #[pymodule_export]
    use super::rotation::rotate_loadings;

    #[pymodule_export]
    use super::watch::Stop;

    #[pymodule_export]
    use super::finite_sum::solve_finite_sum;

    #[pymodule_export]
    use super::hyperbolic::{hyperbolic_cs, j_orthogonal_start, random_j_orthogonal};

    #[pymodule_export]
    use super::ultrahyperbolic::{
        PyStructuralProbe, distance_gradient, distance_pairs, double_projection, double_projection_gradient,
        inner_pairs, inner_rows, inverse_double_projection, ultra_e_epoch, ultra_e_gradient, ultra_e_init,
        ultra_e_ranks, ultra_e_scores,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("instructions", crate::instructions()?)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("COEFFICIENTS", (crate::objective::SMALLEST, crate::objective::LARGEST))?;
        module.add("DATA", crate::objective::DATA)?;
        module.add("CONSTANT", crate::moments::CONSTANT)
    }

    /// Runs block coordinate descent with XᵀJX fixed.
    #[pyfunction]
    #[pyo3(signature = (problem, x0, project_x0, solver, run, callback))]
    fn solve_pairs<'py>(
        py: Python<'py>,
        problem: AnyProblem<'py>,
        x0: StartPoint<'py>,
        project_x0: bool,
        solver: SolverOptions,
        run: Run,
        callback: Option<Py<PyAny>>,
    ) -> PyResult<Returned<'py>> {
        let instance = Instance::new(&problem, &run)?.without_zero_penalty();
        let mut watch = instance.watch(py, callback, &run)?;
        let x0 = instance.start(py, &x0, project_x0, &run, &mut watch)?;
        let options = solver.options(&run, instance.mixed, &instance.trouble)?;
        let mut watch = watch.after(run.door());
        let solution = instance.solved(py, |problem, threads| minimize(problem, x0, &options, threads, &mut watch))?;
        Ok((solution_dict(py, solution, run.door())?, instance.raised(watch)))
    }

    /// Returns the values of a point, as a solution without a solve.
    #[pyfunction]
    fn value<'py>(
        py: Python<'py>,
        problem: AnyProblem<'py>,
        x: PyReadonlyArray2<'py, f64>,
        n_threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let instance = Instance::with_threads(&problem, n_threads)?;
        let x = x.as_array().to_owned();
        let found = instance.solved(py, |problem, threads| evaluate(problem, x, threads))?;
        match instance.trouble.take() {
            Some(error) => Err(error),
            None => solution_dict(py, found, 0.0),
        }
    }

    /// Returns a starting point by name, or a checked user start.
    #[pyfunction]
    fn start_point<'py>(
        py: Python<'py>,
        problem: AnyProblem<'py>,
        x0: StartPoint<'py>,
        project_x0: bool,
        run: Run,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let instance = Instance::new(&problem, &run)?;
        let mut watch = Watch::new(None, 0.0);
        let x0 = instance.start(py, &x0, project_x0, &run, &mut watch)?;
        watch.raise()?;
        Ok(x0.into_pyarray(py))
    }
}
