//! Python dataclasses as Rust values.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use ndarray::Array1;
use numpy::{PyReadonlyArray1, PyUntypedArrayMethods, ToPyArray};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::arguments::{Core, Matrix, Signs, Vector, choice, side};
use super::checkpoint::PyCheckpoint;
use super::memory::Stored;
use super::raised::{Outcome, Raised};
use super::smooth::{Function, Trouble};
use super::ultrahyperbolic::PyStructuralProbe;
use orthobcd::block::Curvature;
use orthobcd::finite_sum::{FiniteSum, Logistic, SampledGram};
use orthobcd::objective::{DenseColumns, GramQuadratic, Objective, Quadratic, SparseColumns};
use orthobcd::penalty::{Penalty, Weights};
use orthobcd::working_set::{Rule, View, WorkingSet};
use orthobcd::{
    Cardinality, Error, Limit as Restriction, Options, Result, RowSparsity, Side, Sparsity, Threads, Update,
};

/// f of a problem: `orthobcd.Quadratic`, `GramQuadratic`, `SmoothFunction`, `FiniteSum`, `LogisticLoss`, or a
/// structural probe.
#[derive(FromPyObject)]
pub(super) enum AnySmooth<'py> {
    Quadratic {
        #[pyo3(attribute("C"))]
        c: Matrix<'py>,
        #[pyo3(attribute("linear"))]
        linear: Option<Matrix<'py>>,
        #[pyo3(attribute("D"))]
        metric: Option<Matrix<'py>>,
    },
    Gram {
        #[pyo3(attribute("A"))]
        data: AnyData<'py>,
        #[pyo3(attribute("scale"))]
        scale: f64,
        #[pyo3(attribute("mean"))]
        mean: Option<Vector<'py>>,
    },
    Function {
        #[pyo3(attribute("_evaluate"))]
        evaluate: Py<PyAny>,
        #[pyo3(attribute("_product"))]
        product: Option<Py<PyAny>>,
        #[pyo3(attribute("n_rows"))]
        rows: usize,
        #[pyo3(attribute("n_columns"))]
        columns: Option<usize>,
        #[pyo3(attribute("lipschitz"))]
        lipschitz: Option<f64>,
        #[pyo3(attribute("curvature"))]
        curvature: Option<Matrix<'py>>,
        /// Number of terms of an `orthobcd.FiniteSum`.
        #[pyo3(attribute("n_terms"), default)]
        terms: Option<usize>,
    },
    Logistic {
        #[pyo3(attribute("A"))]
        a: Matrix<'py>,
        #[pyo3(attribute("B"))]
        b: Matrix<'py>,
        #[pyo3(attribute("labels"))]
        labels: Vector<'py>,
    },
    Probe {
        #[pyo3(attribute("core"))]
        probe: PyRef<'py, PyStructuralProbe>,
    },
}

/// A dense array or a scipy CSC matrix.
#[derive(FromPyObject)]
pub(super) enum AnyData<'py> {
    Dense(Matrix<'py>),
    Sparse {
        #[pyo3(attribute("indptr"))]
        starts: Index<'py>,
        #[pyo3(attribute("indices"))]
        indices: Index<'py>,
        #[pyo3(attribute("data"))]
        values: Vector<'py>,
        #[pyo3(attribute("shape"))]
        shape: (usize, usize),
    },
}

/// An index array of either width.
#[derive(FromPyObject)]
pub(super) enum Index<'py> {
    Narrow(PyReadonlyArray1<'py, i32>),
    Wide(PyReadonlyArray1<'py, i64>),
}

impl Index<'_> {
    /// Returns the indices; an error for one that is negative or too large.
    fn collect<T: TryFrom<i64>>(&self) -> Result<Vec<T>> {
        let bad = |_| Error::invalid("A", "has an index that is out of range");
        let index = |index: i64| T::try_from(index).map_err(bad);
        match self {
            Self::Narrow(a) => a.as_array().iter().map(|&i| index(i.into())).collect(),
            Self::Wide(a) => a.as_array().iter().map(|&i| index(i)).collect(),
        }
    }
}

impl AnySmooth<'_> {
    /// Returns the memory that the objective will keep.
    pub(super) fn stored(&self) -> Stored {
        let (numbers, name, rows) = match self {
            Self::Quadratic { c, .. } => {
                let n = c.shape()[0];
                let name = format!("a copy of C of shape ({n}, {n}); GramQuadratic(A) needs none");
                (c.len() as f64, name, 0.0)
            }
            Self::Gram { data: AnyData::Dense(a), .. } => {
                let (m, n) = (a.shape()[0], a.shape()[1]);
                let name = format!("copies of A of shape ({m}, {n})");
                (2.0 * a.len() as f64, name, m as f64)
            }
            Self::Gram { data: AnyData::Sparse { values, shape, .. }, .. } => {
                let name = format!("copies of the {} stored entries of A", values.len());
                (4.0 * values.len() as f64, name, shape.0 as f64)
            }
            Self::Logistic { a, b, .. } => ((a.len() + b.len()) as f64, "copies of the data".to_owned(), 0.0),
            Self::Function { .. } | Self::Probe { .. } => (0.0, "f".to_owned(), 0.0),
        };
        Stored { numbers, name, rows }
    }

    /// Returns the function of Python, which leaves its exceptions in `trouble`; None for other objectives.
    fn function(&self, trouble: &Arc<Trouble>) -> Option<Function> {
        let Self::Function { evaluate, product, rows, columns, lipschitz, curvature, terms } = self else {
            return None;
        };
        Some(Function {
            evaluate: Python::attach(|py| evaluate.clone_ref(py)),
            product: Python::attach(|py| product.as_ref().map(|f| f.clone_ref(py))),
            rows: *rows,
            columns: *columns,
            terms: *terms,
            lipschitz: *lipschitz,
            curvature: curvature.as_ref().map(|c| c.as_array().to_owned()),
            trouble: trouble.clone(),
            turn: Mutex::new(()),
        })
    }

    /// Builds the objective as a sum, of which terms can be sampled.
    pub(super) fn sum(&self, trouble: &Arc<Trouble>, threads: &Threads) -> Result<Arc<dyn FiniteSum>> {
        Ok(match self {
            Self::Logistic { a, b, labels } => {
                let (a, b, labels) = (a.as_array(), b.as_array(), labels.as_array());
                Arc::new(Logistic::new(a.to_owned(), b.to_owned(), labels.to_owned())?)
            }
            Self::Gram { data: AnyData::Dense(a), scale, mean: None } => {
                Arc::new(SampledGram::new(a.as_array().to_owned(), *scale)?)
            }
            Self::Probe { probe } => Arc::new(probe.0.with_threads(threads.clone())),
            Self::Function { .. } => match self.function(trouble).filter(|function| function.terms.is_some()) {
                Some(function) => Arc::new(function),
                None => return Err(Error::invalid("solver", "must not be a VRJOBCD for a function without terms")),
            },
            _ => return Err(Error::invalid("solver", "must not be a VRJOBCD for this objective")),
        })
    }

    /// Builds the objective, which leaves exceptions of Python in `trouble`.
    pub(super) fn build(&self, trouble: &Arc<Trouble>) -> Result<Arc<dyn Objective + '_>> {
        if let Some(function) = self.function(trouble) {
            return Ok(Arc::new(function));
        }
        Ok(match self {
            Self::Quadratic { c, linear, metric } => Arc::new(Quadratic::new(
                c.as_array(),
                linear.as_ref().map(|a| a.as_array().to_owned()),
                metric.as_ref().map(|a| a.as_array().to_owned()),
            )?),
            Self::Gram { data, scale, mean } => {
                let mean: Option<Array1<f64>> = mean.as_ref().map(|m| m.as_array().to_owned());
                Arc::new(match data {
                    AnyData::Dense(a) => GramQuadratic::new(DenseColumns::new(a.as_array())?, *scale, mean)?,
                    AnyData::Sparse { starts, indices, values, shape } => {
                        let (starts, indices) = (starts.collect()?, indices.collect()?);
                        let values = values.as_array().to_vec();
                        let data = SparseColumns::new(shape.0, starts, indices, values)?;
                        GramQuadratic::new(data, *scale, mean)?
                    }
                })
            }
            _ => return Err(Error::invalid("solver", "must be a VRJOBCD for this objective")),
        })
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Core<Penalty> {
    type Error = Raised;

    /// Reads a penalty by its `_kind`, which subclasses inherit, and by the fields of this kind.
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> Outcome<Self> {
        let field = |field: &str| object.getattr(field);
        let number = |name: &str| field(name)?.extract::<f64>();
        let weights = || {
            let lam = field("lam")?;
            PyResult::Ok(match lam.extract::<Matrix<'_>>() {
                Ok(array) => Weights::from(array.as_array().to_owned()),
                Err(_) => Weights::from(lam.extract::<f64>()?),
            })
        };
        let kind = object.getattr("_kind").and_then(|kind| kind.extract::<String>());
        Ok(Self(match kind.as_deref() {
            Ok("none") => Penalty::NONE,
            Ok("nonnegative") => Penalty::NONNEGATIVE,
            Ok("l0") => Penalty::l0(weights()?),
            Ok("l1") => Penalty::l1(weights()?),
            Ok("capped_l1") => Penalty::capped_l1(number("lam")?, number("threshold")?)?,
            Ok("mcp") => Penalty::mcp(number("lam")?, number("gamma")?)?,
            Ok("scad") => Penalty::scad(number("lam")?, number("a")?)?,
            Ok("interval") => Penalty::interval(number("lower")?, number("upper")?)?,
            Ok("pieces") => {
                let pieces = (field("breakpoints"), field("pieces"));
                let (Ok(breakpoints), Ok(pieces)) = pieces else {
                    return Err(PyTypeError::new_err(format!(
                        "penalty {} must have breakpoints and pieces, as PiecewiseQuadratic has",
                        object.get_type().name()?
                    ))
                    .into());
                };
                Penalty::pieces(breakpoints.extract()?, pieces.extract()?)?
            }
            Ok("sum") => {
                let terms: Vec<Self> = field("terms")?.extract()?;
                let mut terms = terms.iter();
                terms.try_fold(Penalty::NONE, |sum, term| sum.plus(&term.0))?
            }
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "penalty must be a separable penalty such as L0 or L1, got {}",
                    object.get_type().name()?
                ))
                .into());
            }
        }))
    }
}

/// Checks a penalty; returns whether it implies X ≥ 0.
#[pyfunction]
pub(super) fn implies_nonnegative(penalty: Core<Penalty>) -> bool {
    penalty.0.nonnegative()
}

/// Returns h(X); infinite where X violates a constraint.
#[pyfunction]
pub(super) fn penalty_value(penalty: Core<Penalty>, x: Matrix<'_>) -> f64 {
    penalty.0.value(x.as_array())
}

/// The `count` of `orthobcd.Cardinality`.
#[derive(Clone, FromPyObject)]
enum Count {
    Total(usize),
    Columns(Vec<usize>),
}

impl From<Count> for Cardinality {
    fn from(count: Count) -> Self {
        match count {
            Count::Total(count) => Self::Total(count),
            Count::Columns(counts) => Self::Columns(counts),
        }
    }
}

/// `orthobcd.RowSparse`.
#[derive(FromPyObject)]
pub(super) struct RowSparse {
    lam: Option<f64>,
    count: Option<usize>,
}

/// Rows for all columns alike, or for each column.
#[derive(FromPyObject)]
enum Chosen {
    All(Vec<usize>),
    Each(Vec<Vec<usize>>),
}

impl Chosen {
    /// Returns the (row, column) pairs of `include` or `exclude` of a `Cardinality`, for X with r columns.
    fn entries(&self, r: usize) -> Vec<(usize, usize)> {
        let rows = |t: usize| match self {
            Self::All(rows) => rows,
            Self::Each(each) => &each[t],
        };
        let columns = match self {
            Self::All(_) => r,
            Self::Each(each) => each.len(),
        };
        (0..columns).flat_map(|t| rows(t).iter().map(move |&i| (i, t))).collect()
    }
}

/// `orthobcd.Cardinality`.
#[derive(FromPyObject)]
pub(super) struct AnyCardinality {
    count: Count,
    nonnegative: bool,
    include: Chosen,
    exclude: Chosen,
}

/// The penalty of a problem, or its limit.
pub(super) enum Restrained {
    Penalty(Core<Penalty>),
    Entries(AnyCardinality),
    Rows(RowSparse),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Restrained {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if object.hasattr("_kind")? || !object.hasattr("count")? {
            return Ok(Self::Penalty(object.extract()?));
        }
        match object.hasattr("include")? {
            true => object.extract().map(Self::Entries),
            false => object.extract().map(Self::Rows),
        }
    }
}

impl Restrained {
    /// Returns the penalty; [`Penalty::NONE`] under a limit.
    pub(super) fn penalty(&self) -> &Penalty {
        match self {
            Self::Penalty(penalty) => &penalty.0,
            _ => &Penalty::NONE,
        }
    }

    /// Returns the limit on matrices with r columns, if there is one.
    ///
    /// # Errors
    /// If neither or both of a number of rows and their penalty are given.
    fn limit(&self, r: usize) -> Result<Option<Restriction>> {
        Ok(Some(match self {
            Self::Penalty(_) => return Ok(None),
            Self::Entries(entries) => Restriction::Entries(
                Sparsity::new(entries.count.clone().into())
                    .with_nonnegative(entries.nonnegative)
                    .with_include(entries.include.entries(r))
                    .with_exclude(entries.exclude.entries(r)),
            ),
            Self::Rows(rows) => Restriction::Rows(match (rows.count, rows.lam) {
                (Some(count), None) => RowSparsity::Count(count),
                (None, Some(lam)) => RowSparsity::Penalty(lam),
                _ => return Err(Error::invalid("lam", "must be given, or count, not both")),
            }),
        }))
    }
}

/// Problem as Python describes it: smooth, penalty, signature (None on the Stiefel manifold), shape.
#[derive(FromPyObject)]
pub(super) struct AnyProblem<'py> {
    pub(super) smooth: AnySmooth<'py>,
    penalty: Restrained,
    pub(super) signature: Option<Signs<'py>>,
    pub(super) shape: (usize, usize),
    /// Required det X, if there is one.
    #[pyo3(default)]
    determinant: Option<i8>,
}

impl AnyProblem<'_> {
    pub(super) fn rotations(&self) -> bool {
        self.determinant.is_some()
    }

    /// Returns the penalty, [`Penalty::NONE`] under a limit, and the limit.
    ///
    /// # Errors
    /// If the limit is not valid.
    pub(super) fn restrained(&self) -> Result<(&Penalty, Option<Restriction>)> {
        Ok((self.penalty.penalty(), self.penalty.limit(self.shape.1)?))
    }
}

/// A rule for rows: its name, or a function of X and a subgradient that returns rows.
#[derive(FromPyObject)]
enum Rows {
    Named(String),
    Own(Py<PyAny>),
}

impl Rows {
    /// Returns the rule for sets of `k` rows, which leaves exceptions in `trouble`.
    fn rule(&self, k: usize, trouble: &Arc<Trouble>) -> Result<WorkingSet> {
        let choose = match self {
            Self::Named(name) => return name.parse(),
            Self::Own(choose) => Python::attach(|py| choose.clone_ref(py)),
        };
        let trouble = trouble.clone();
        let rule = move |view: &mut View<'_>| {
            let n = view.x().nrows();
            Python::attach(|py| {
                let x = view.x().to_pyarray(py);
                let chosen = choose.call1(py, (x, view.subgradient().to_pyarray(py)));
                let rows = chosen.and_then(|rows| checked_rows(rows.bind(py), n, k));
                rows.map_err(|error| trouble.keep(py, error)).ok()
            })
        };
        Ok(WorkingSet::Own(Rule::new(rule)))
    }
}

/// Returns `k` different rows below `n`.
fn checked_rows(rows: &Bound<'_, PyAny>, n: usize, k: usize) -> PyResult<Vec<usize>> {
    let wrong = || {
        let got = rows.repr().map(|text| text.to_string()).unwrap_or_default();
        PyValueError::new_err(format!("working_set must return {k} different rows from 0 to {}, got {got}", n - 1))
    };
    let found: Vec<usize> = rows.extract().map_err(|_| wrong())?;
    let distinct: HashSet<usize> = found.iter().copied().filter(|&row| row < n).collect();
    match found.len() == k && distinct.len() == k {
        true => Ok(found),
        false => Err(wrong()),
    }
}

/// `orthobcd.OBCD` or `orthobcd.JOBCD`; an option that only one of them has is at its default in the other.
#[derive(FromPyObject)]
pub(super) struct SolverOptions {
    working_set: Rows,
    #[pyo3(default = 2)]
    block_size: usize,
    tile_size: usize,
    update: String,
    curvature: String,
    proximal: f64,
    side: String,
    #[pyo3(default)]
    scored_pairs: Option<usize>,
    #[pyo3(default)]
    rapidity_bound: Option<f64>,
}

/// Time limit, and the time of the call from Python: reading the arguments counts.
pub(super) struct Limit {
    seconds: Option<f64>,
    called: Instant,
    door: OnceLock<f64>,
}

impl<'py> FromPyObject<'_, 'py> for Limit {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self { seconds: object.extract()?, called: Instant::now(), door: OnceLock::new() })
    }
}

/// Options of all solvers: limits, tolerances, the seed and the number of threads.
#[derive(FromPyObject)]
pub(super) struct Run {
    pub(super) max_time: Limit,
    pub(super) max_sweeps: Option<u64>,
    pub(super) tol: Option<f64>,
    pub(super) target: Option<f64>,
    /// Gap to a lower bound at which a solve ends; none without a bound.
    pub(super) gap_tol: Option<f64>,
    pub(super) max_work: Option<u64>,
    effort: f64,
    pub(super) seed: u64,
    pub(super) n_threads: Option<usize>,
    checkpoint: Option<Py<PyCheckpoint>>,
    settings: Vec<(String, String)>,
}

impl Run {
    /// Returns the seconds from the call to the first use of this method, when all arguments have been read.
    pub(super) fn door(&self) -> f64 {
        let Limit { called, door, .. } = &self.max_time;
        *door.get_or_init(|| called.elapsed().as_secs_f64())
    }

    /// Returns the checkpoint, and the names and values by which it recognises the solve.
    pub(super) fn saved(&self) -> (Option<&Py<PyCheckpoint>>, &[(String, String)]) {
        (self.checkpoint.as_ref(), &self.settings)
    }

    /// Returns whether the time limit has passed.
    pub(super) fn is_late(&self) -> bool {
        let Limit { seconds, called, .. } = &self.max_time;
        seconds.is_some_and(|limit| called.elapsed().as_secs_f64() >= limit)
    }

    /// Returns the seconds of the time limit that are left after reading the arguments.
    pub(super) fn time(&self) -> Option<f64> {
        (self.max_time.seconds).map(|limit| (limit - self.door()).max(0.0))
    }

    /// Returns default options with these limits.
    pub(super) fn options(&self) -> Options {
        let default = Options::default();
        let tol = self.tol.unwrap_or(default.tol);
        (default.with_max_time(self.time()).with_max_sweeps(self.max_sweeps).with_max_work(self.max_work))
            .with_tol(tol)
            .with_target(self.target)
            .with_effort(self.effort)
            .with_seed(self.seed)
    }
}

impl SolverOptions {
    /// Returns the options of a solve, with a mixed signature or without; a rule for rows leaves exceptions in
    /// `trouble`. The Jacobi update of a mixed signature moves columns only if `side` is columns alone.
    pub(super) fn options(&self, run: &Run, mixed: bool, trouble: &Arc<Trouble>) -> Result<Options> {
        let updates = [("gauss-seidel", Update::GaussSeidel), ("jacobi", Update::Jacobi)];
        let update = choice("update", &self.update, &updates)?;
        let curvatures = [("exact", Curvature::Exact), ("scalar", Curvature::Scalar)];
        let side = match side(&self.side)? {
            Side::Both if mixed && update == Update::Jacobi => Side::Rows,
            side => side,
        };
        Ok((run.options().with_working_set(self.working_set.rule(self.block_size, trouble)?))
            .with_block_size(self.block_size)
            .with_tile(self.tile_size)
            .with_update(update)
            .with_curvature(choice("curvature", &self.curvature, &curvatures)?)
            .with_proximal(self.proximal)
            .with_scored_pairs(self.scored_pairs)
            .with_side(side)
            .with_rapidity_bound(self.rapidity_bound))
    }
}
