//! A problem of Python in the core's terms, and its starting point.

use std::sync::Arc;

use ndarray::{Array2, ArrayView2};
use pyo3::prelude::*;

use super::arguments::{Matrix, signature_of};
use super::checkpoint::Lent;
use super::guard::{guarded, released};
use super::input::{AnyProblem, Run};
use super::memory::reserve;
use super::raised::{Outcome, Raised};
use super::smooth::Trouble;
use super::watch::Watch;
use orthobcd::bindings::{is_zero, partition_within, spectral_while, start_within};
use orthobcd::finite_sum::FiniteSum;
use orthobcd::objective::GoOn;
use orthobcd::penalty::Penalty;
use orthobcd::search::top_diagonal;
use orthobcd::{Error, Limit, Objective, Problem, Signature, Threads, start};

/// Problem in the core's terms, with the threads that work on it.
pub(super) struct Instance<'a> {
    pub(super) smooth: Arc<dyn Objective + 'a>,
    /// f as a sum, of which terms can be sampled.
    pub(super) sum: Option<Arc<dyn FiniteSum>>,
    pub(super) trouble: Arc<Trouble>,
    pub(super) penalty: &'a Penalty,
    limit: Option<Limit>,
    pub(super) components: usize,
    rotations: bool,
    /// True if Python gave a signature: XᵀJX of a given start is then kept, whatever its value.
    pub(super) mixed: bool,
    pub(super) signature: Signature,
    pub(super) threads: Threads,
}

impl<'a> Instance<'a> {
    /// Builds f of a problem, as a sum if `sampled`.
    ///
    /// # Errors
    /// If the problem or the number of threads is not valid, or there is too little memory.
    pub(super) fn new(problem: &'a AnyProblem<'_>, n_threads: Option<usize>, sampled: bool) -> Outcome<Self> {
        reserve(&problem.smooth.stored(), problem.shape, n_threads)?;
        let threads = Threads::new(n_threads)?;
        let trouble = Arc::new(Trouble::default());
        let sum = sampled.then(|| guarded(|| problem.smooth.sum(&trouble, &threads))).transpose()?;
        let smooth = match &sum {
            Some(sum) => sum.clone(),
            None => guarded(|| problem.smooth.build(&trouble))?,
        };
        let (penalty, limit) = problem.restrained()?;
        let signature = match &problem.signature {
            Some(signs) => signature_of(signs)?,
            None => Signature::stiefel(smooth.rows()),
        };
        Ok(Self {
            signature,
            smooth,
            sum,
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
    pub(super) fn without_zero_penalty(self) -> Self {
        let penalty = match is_zero(self.penalty) {
            true => &Penalty::NONE,
            false => self.penalty,
        };
        Self { penalty, ..self }
    }

    /// Runs `body` on the problem without the GIL; an exception of the objective replaces its error.
    pub(super) fn solved<T: Send>(
        &self,
        py: Python<'_>,
        body: impl FnOnce(&Problem<'_>, &Threads) -> Result<T, Error> + Send,
    ) -> Outcome<T> {
        let (problem, threads) = (self.problem()?, &self.threads);
        self.answer(released(py, || body(&problem, threads)))
    }

    /// Returns the answer of the core; an exception of the objective replaces its error.
    pub(super) fn answer<T>(&self, answer: Outcome<T>) -> Outcome<T> {
        answer.map_err(|error| self.trouble.take().map_or(error, Raised::from))
    }

    /// Returns the watch of a solve, with its checkpoint.
    pub(super) fn watch(&self, py: Python<'_>, callback: Option<Py<PyAny>>, run: &Run) -> Outcome<Watch> {
        let file = Lent::begun(py, &self.problem()?, run.saved(), &self.threads)?;
        Ok(Watch::new(callback, 0.0).writing(file))
    }

    /// Returns the exception that the objective or a callback raised.
    pub(super) fn raised(&self, watch: Watch) -> Option<PyErr> {
        self.trouble.take().or_else(|| watch.into_error())
    }

    /// Returns the point to start from. Long computations end at the time limit or when `watch` is stopped.
    pub(super) fn start(
        &self,
        py: Python<'_>,
        x0: &StartPoint<'_>,
        project: bool,
        run: &Run,
        watch: &mut Watch,
    ) -> Outcome<Array2<f64>> {
        guarded(|| {
            if let (true, StartPoint::Given(x0)) = (self.mixed, x0) {
                return Ok::<_, Raised>(x0.as_array().to_owned());
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
                    partition_within((self.smooth.rows(), self.components), run.seed, allowed)
                }
                _ => point,
            };
            let problem = self.problem()?;
            Ok(py.detach(|| start_within(&problem, point, run.seed, &self.threads, watch)))
        })
    }

    pub(super) fn problem(&self) -> Result<Problem<'_>, Error> {
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
pub(super) enum StartPoint<'py> {
    Named(String),
    Given(Matrix<'py>),
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
    ) -> Outcome<Array2<f64>> {
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
            Some(form) => match spectral_while(form, r, threads, go_on) {
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
