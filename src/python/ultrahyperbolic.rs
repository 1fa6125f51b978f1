//! The pseudo-hyperboloid, the structural probe and UltraE.

use ndarray::{Array1, Array2, Array3, Axis};
use numpy::{IntoPyArray, PyArray3, PyReadonlyArray2, PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::prelude::*;

use super::arguments::{Matrix, MatrixOut, Signs, VectorOut, choice, signature_of};
use super::guard::{guarded, released};
use super::memory::reserve_numbers;
use super::raised::Outcome;
use super::watch::{Watch, interruptible};
use orthobcd::ultrahyperbolic::{
    Embedding, KnownTriples, Loss, Pseudohyperboloid, Relation, RelationUpdate, StructuralProbe, Targets, TrainOptions,
    Triple, UltraE,
};
use orthobcd::{Error, Objective, Result, Signature, Threads};

/// Pseudo-hyperboloid of a signature and a radius; rows of matrices are its points, or any vectors.
#[pyclass(frozen, name = "Pseudohyperboloid", module = "orthobcd._core")]
pub(super) struct PyPseudohyperboloid(Pseudohyperboloid);

#[pymethods]
impl PyPseudohyperboloid {
    #[new]
    fn new(signature: Signs<'_>, radius: f64) -> Outcome<Self> {
        Ok(Self(Pseudohyperboloid::new(&signature_of(&signature)?, radius)?))
    }

    /// Returns ⟨x_i, y_i⟩ of rows.
    fn inner<'py>(&self, x: Matrix<'py>, y: Matrix<'py>) -> Outcome<VectorOut<'py>> {
        Ok(guarded(|| self.0.inner_rows(x.as_array(), y.as_array()))?.into_pyarray(x.py()))
    }

    /// Returns ⟨x_i, y_j⟩ of all pairs of rows.
    fn inner_pairs<'py>(&self, x: Matrix<'py>, y: Matrix<'py>) -> Outcome<MatrixOut<'py>> {
        Ok(guarded(|| self.0.inner_pairs(x.as_array(), y.as_array()))?.into_pyarray(x.py()))
    }

    /// Returns φ of rows.
    fn double_projection<'py>(&self, x: Matrix<'py>) -> Outcome<MatrixOut<'py>> {
        Ok(guarded(|| self.0.double_projection(x.as_array()))?.into_pyarray(x.py()))
    }

    /// Returns the gradient of a function of φ(X).
    fn double_projection_gradient<'py>(&self, x: Matrix<'py>, cotangent: Matrix<'py>) -> Outcome<MatrixOut<'py>> {
        Ok(guarded(|| self.0.double_projection_gradient(x.as_array(), cotangent.as_array()))?.into_pyarray(x.py()))
    }

    /// Returns the inverse of φ on ‖t‖ = 1.
    fn inverse_double_projection<'py>(&self, y: Matrix<'py>) -> Outcome<MatrixOut<'py>> {
        Ok(guarded(|| self.0.inverse_double_projection(y.as_array()))?.into_pyarray(y.py()))
    }

    /// Returns d(x_i, y_i) of rows, and its gradients in x and in y.
    fn distance_gradient<'py>(
        &self,
        x: Matrix<'py>,
        y: Matrix<'py>,
    ) -> Outcome<(VectorOut<'py>, MatrixOut<'py>, MatrixOut<'py>)> {
        let (d, gx, gy) = guarded(|| self.0.distance_gradient(x.as_array(), y.as_array()))?;
        Ok((d.into_pyarray(x.py()), gx.into_pyarray(x.py()), gy.into_pyarray(x.py())))
    }

    /// Returns d(x_i, y_j) of all pairs of rows.
    fn distance_pairs<'py>(&self, x: Matrix<'py>, y: Matrix<'py>) -> Outcome<MatrixOut<'py>> {
        let (rows, columns) = (x.shape()[0], y.shape()[0]);
        reserve_numbers(rows as f64 * columns as f64, || format!("distances of shape ({rows}, {columns})"))?;
        Ok(guarded(|| self.0.distances(x.as_array(), y.as_array()))?.into_pyarray(x.py()))
    }
}

/// The objective of the hyperbolic structural probe.
#[pyclass(frozen, name = "StructuralProbe", module = "orthobcd._core")]
pub(super) struct PyStructuralProbe(pub(super) StructuralProbe);

#[pymethods]
impl PyStructuralProbe {
    /// Creates the probe; `targets=None` means Euclidean distances of the rows of D.
    #[new]
    #[pyo3(signature = (d, targets, signature, radius, scale, n_threads=None))]
    fn new(
        d: Matrix<'_>,
        targets: Option<Matrix<'_>>,
        signature: Signs<'_>,
        radius: f64,
        scale: f64,
        n_threads: Option<usize>,
    ) -> Outcome<Self> {
        let py = d.py();
        let space = Pseudohyperboloid::new(&signature_of(&signature)?, radius)?;
        let numbers = 2 * d.len() + targets.as_ref().map_or(0, |targets| targets.len());
        reserve_numbers(numbers as f64, || "copies of the data".to_owned())?;
        let threads = Threads::new(n_threads)?;
        let d = d.as_array().to_owned();
        let targets = targets.map_or(Targets::Euclidean, |t| Targets::Matrix(t.as_array().to_owned()));
        let probe = released(py, || StructuralProbe::new(d, targets, space, scale, threads))?;
        Ok(Self(probe))
    }

    /// Returns f(X) and ∇f(X).
    fn value_and_gradient<'py>(&self, py: Python<'py>, x: Matrix<'py>) -> Outcome<(f64, MatrixOut<'py>)> {
        let x = x.as_array();
        let (value, gradient) = released(py, || {
            let mut gradient = Array2::zeros(x.dim());
            let value = self.0.value_and_gradient(x, gradient.view_mut(), &Threads::serial());
            Ok::<_, Error>((value, gradient))
        })?;
        Ok((value, gradient.into_pyarray(py)))
    }

    /// Returns (mean of d, mean of T) at X, the factor of T included.
    fn mean_distances(&self, py: Python<'_>, x: Matrix<'_>) -> Outcome<(f64, f64)> {
        let x = x.as_array();
        released(py, || Ok::<_, Error>(self.0.mean_distances(x)))
    }

    /// Returns the same objective with another factor of T; the data are shared.
    fn with_scale(&self, scale: f64) -> Self {
        Self(self.0.with_scale(scale))
    }
}

/// Options of an `orthobcd.UltraE` that the core reads.
#[derive(FromPyObject)]
pub(super) struct ModelOptions {
    margin: f64,
    batch_size: usize,
    n_negatives: usize,
    loss: String,
    learning_rate: f64,
    rate_decay: f64,
    moment_decay: f64,
    weight_decay: f64,
    relations: String,
    relation_curvature: Option<f64>,
    relation_matchings: usize,
    relation_step: f64,
    radius: f64,
    seed: u64,
}

/// Default κ of J-JOBCD with the softmax loss, chosen on three cores: "The weight κ" of `docs/results/ultra-e.md`.
const SOFTMAX_CURVATURE: f64 = 0.3;

/// Default κ of J-JOBCD with the logistic loss, from the same runs as [`SOFTMAX_CURVATURE`].
const LOGISTIC_CURVATURE: f64 = 0.14;

impl ModelOptions {
    fn update(&self) -> Result<RelationUpdate> {
        let curvature = self.relation_curvature.unwrap_or(match self.loss.as_str() {
            "logistic" => LOGISTIC_CURVATURE,
            _ => SOFTMAX_CURVATURE,
        });
        let jobcd = RelationUpdate::Jobcd { curvature, matchings: self.relation_matchings };
        let pairs = RelationUpdate::PairJobcd { step: self.relation_step, matchings: self.relation_matchings };
        let page = RelationUpdate::PageJobcd { curvature, matchings: self.relation_matchings };
        let choices =
            [("frozen", RelationUpdate::Frozen), ("jobcd", jobcd), ("jobcd-pairs", pairs), ("page-jobcd", page)];
        choice("relations", &self.relations, &choices)
    }

    fn model(&self, signature: &Signature) -> Result<UltraE> {
        let losses = [("logistic", Loss::Logistic), ("softmax", Loss::Softmax)];
        let options = TrainOptions {
            margin: self.margin,
            batch_size: self.batch_size,
            negatives: self.n_negatives,
            loss: choice("loss", &self.loss, &losses)?,
            learning_rate: self.learning_rate,
            rate_decay: self.rate_decay,
            moment_decay: self.moment_decay,
            weight_decay: self.weight_decay,
            update: self.update()?,
            seed: self.seed,
        };
        UltraE::new(signature, self.radius, options)
    }
}

/// (entities, relation matrices, relation memories).
type StateIn<'py> = (Matrix<'py>, PyReadonlyArray3<'py, f64>, Matrix<'py>);
type StateOut<'py> = (MatrixOut<'py>, Bound<'py, PyArray3<f64>>, MatrixOut<'py>);

fn read_state((entities, matrices, memories): &StateIn<'_>) -> Embedding {
    Embedding {
        entities: entities.as_array().as_standard_layout().into_owned(),
        relations: matrices
            .as_array()
            .outer_iter()
            .zip(memories.as_array().outer_iter())
            .map(|(matrix, memory)| Relation { matrix: matrix.to_owned(), memory: memory.to_owned() })
            .collect(),
    }
}

/// Checks that a state can be copied twice: when it is read, and when it is written.
fn reserve_state(n: usize, (entities, relations): (usize, usize), memory: usize) -> PyResult<()> {
    let [n, entities, relations, memory] = [n, entities, relations, memory].map(|length| length as f64);
    reserve_numbers(2.0 * (entities * (n + 1.0) + relations * (n * n + memory)), || {
        format!("copies of {entities} entities and {relations} relations in {n} dimensions")
    })
}

fn write_state<'py>(py: Python<'py>, state: Embedding, n: usize) -> StateOut<'py> {
    let count = state.relations.len();
    let memory = state.relations.first().map_or(0, |r| r.memory.len());
    let mut matrices = Array3::zeros((count, n, n));
    let mut memories = Array2::zeros((count, memory));
    for (k, relation) in state.relations.iter().enumerate() {
        matrices.index_axis_mut(Axis(0), k).assign(&relation.matrix);
        memories.row_mut(k).assign(&relation.memory);
    }
    (state.entities.into_pyarray(py), matrices.into_pyarray(py), memories.into_pyarray(py))
}

fn read_triples(triples: &PyReadonlyArray2<'_, i64>) -> Result<Vec<Triple>> {
    let bad = || Error::invalid("triples", "must hold nonnegative indices in 3 columns");
    triples
        .as_array()
        .outer_iter()
        .map(|row| {
            let entry = |k: usize| row.get(k).and_then(|&v| usize::try_from(v).ok()).ok_or_else(bad);
            Ok([entry(0)?, entry(1)?, entry(2)?])
        })
        .collect()
}

/// Returns a random state.
#[pyfunction]
pub(super) fn ultra_e_init<'py>(
    py: Python<'py>,
    n_entities: usize,
    n_relations: usize,
    signature: Signs<'py>,
    options: ModelOptions,
    scale: f64,
    angle: f64,
) -> Outcome<StateOut<'py>> {
    let signature = signature_of(&signature)?;
    options.model(&signature)?;
    let memory = Relation::memory_length(&signature, options.update()?);
    reserve_state(signature.len(), (n_entities, n_relations), memory)?;
    let state = Embedding::random(n_entities, n_relations, &signature, scale, (angle, options.update()?), options.seed);
    Ok(write_state(py, state, signature.len()))
}

/// (state, mean loss) after one epoch and the error of a signal handler; no loss if interrupted.
type Epoch<'py> = (StateOut<'py>, Option<f64>, Option<PyErr>);

/// Trains for one epoch.
#[pyfunction]
#[pyo3(signature = (state, triples, signature, options, epoch, n_threads))]
pub(super) fn ultra_e_epoch<'py>(
    py: Python<'py>,
    state: StateIn<'py>,
    triples: PyReadonlyArray2<'py, i64>,
    signature: Signs<'py>,
    options: ModelOptions,
    epoch: u64,
    n_threads: Option<usize>,
) -> Outcome<Epoch<'py>> {
    let signature = signature_of(&signature)?;
    let model = options.model(&signature)?;
    let counts = (state.0.shape()[0], state.1.shape()[0]);
    reserve_state(signature.len(), counts, state.2.shape()[1])?;
    let triples = read_triples(&triples)?;
    let mut state = read_state(&state);
    let threads = Threads::new(n_threads)?;
    let mut watch = Watch::new(None, 0.0);
    let loss = released(py, || model.epoch(&mut state, &triples, epoch, &threads, &mut watch))?;
    Ok((write_state(py, state, signature.len()), loss, watch.into_error()))
}

/// Returns the scores of triples.
#[pyfunction]
#[pyo3(signature = (state, triples, signature, options, n_threads))]
pub(super) fn ultra_e_scores<'py>(
    py: Python<'py>,
    state: StateIn<'py>,
    triples: PyReadonlyArray2<'py, i64>,
    signature: Signs<'py>,
    options: ModelOptions,
    n_threads: Option<usize>,
) -> Outcome<VectorOut<'py>> {
    let model = options.model(&signature_of(&signature)?)?;
    let triples = read_triples(&triples)?;
    let state = read_state(&state);
    let threads = Threads::new(n_threads)?;
    let scores = interruptible(py, |go_on| model.scores(&state, &triples, &threads, go_on))??;
    Ok(scores.unwrap_or_default().into_pyarray(py))
}

/// Returns the filtered ranks of heads and tails.
#[pyfunction]
#[pyo3(signature = (state, triples, known, signature, options, n_threads))]
pub(super) fn ultra_e_ranks<'py>(
    py: Python<'py>,
    state: StateIn<'py>,
    triples: PyReadonlyArray2<'py, i64>,
    known: PyReadonlyArray2<'py, i64>,
    signature: Signs<'py>,
    options: ModelOptions,
    n_threads: Option<usize>,
) -> Outcome<MatrixOut<'py>> {
    let model = options.model(&signature_of(&signature)?)?;
    let (triples, known) = (read_triples(&triples)?, read_triples(&known)?);
    let state = read_state(&state);
    model.check(&state, &known)?;
    let threads = Threads::new(n_threads)?;
    let ranks = interruptible(py, |go_on| {
        let known = KnownTriples::new(&known);
        model.ranks(&state, &triples, &known, &threads, go_on)
    })??;
    let ranks = ranks.unwrap_or_default();
    let mut out = Array2::zeros((ranks.len(), 2));
    for (mut row, rank) in out.outer_iter_mut().zip(&ranks) {
        row.assign(&Array1::from(rank.to_vec()));
    }
    Ok(out.into_pyarray(py))
}
