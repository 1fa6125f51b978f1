//! Second moments of samples that arrive in blocks of rows.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::arguments::{Matrix, MatrixOut, Vector, VectorOut, choice};
use super::guard::{guarded, released};
use super::memory::reserve_numbers;
use super::raised::Outcome;
use super::watch::signals;
use orthobcd::moments::{BLOCK_ROWS, Moments, Precision};
use orthobcd::{Error, Threads};

/// Second moments of samples that arrive in blocks of rows.
#[pyclass(name = "Moments", module = "orthobcd._core")]
pub(super) struct PyMoments(Moments);

/// Names of the precisions in Python.
const PRECISIONS: [(&str, Precision); 2] = [("fast", Precision::Fast), ("exact", Precision::Exact)];

#[pymethods]
impl PyMoments {
    #[new]
    fn new(n_features: usize, precision: &str) -> Outcome<Self> {
        let precision = choice("precision", precision, &PRECISIONS)?;
        if n_features == 0 {
            return Err(Error::invalid("n_features", "must be at least 1, got 0").into());
        }
        reserve_of(n_features, precision)?;
        Ok(Self(Moments::new(n_features, precision)))
    }

    /// Number of features.
    #[getter]
    fn n_features(&self) -> usize {
        self.0.features()
    }

    /// Number of samples, whatever their weights.
    #[getter]
    fn n_rows(&self) -> u64 {
        self.0.rows()
    }

    /// Number of samples, or the sum of their weights.
    #[getter]
    fn weight(&self) -> f64 {
        self.0.weight()
    }

    /// Bytes of the rows of the triangle in this object.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.bytes()
    }

    /// Precision: "fast" or "exact".
    #[getter]
    fn precision(&self) -> &'static str {
        match self.0.precision() {
            Precision::Fast => "fast",
            Precision::Exact => "exact",
        }
    }

    /// Returns the same samples, to which others can be added; arrays are shared until one object changes.
    fn copy(&self) -> Self {
        Self(self.0.clone())
    }

    /// Adds the rows of a matrix, each as often as `weights` say.
    #[pyo3(signature = (rows, weights=None, n_threads=Some(1)))]
    fn add(
        &mut self,
        py: Python<'_>,
        rows: Matrix<'_>,
        weights: Option<Vector<'_>>,
        n_threads: Option<usize>,
    ) -> Outcome<()> {
        let (m, rows) = (rows.shape()[0], rows.as_array());
        let weights = weights.map(|weights| weights.as_array().to_vec());
        if let Some(weights) = &weights
            && !(weights.len() == m && weights.iter().all(|w| w.is_finite() && *w >= 0.0))
        {
            let message = format!("must be {m} nonnegative numbers, one for each row");
            return Err(Error::invalid("weights", message).into());
        }
        let threads = if m < self.0.free_rows() {
            Threads::serial()
        } else {
            reserve_sums(&self.0)?;
            Threads::new(n_threads)?
        };
        let moments = &mut self.0;
        released(py, || moments.add(rows, weights.as_deref(), &threads))?;
        Ok(signals()?)
    }

    /// Adds the samples of `other`; the sums are fast unless both are exact.
    #[pyo3(signature = (other, n_threads=Some(1)))]
    fn merge(slf: &Bound<'_, Self>, other: &Bound<'_, Self>, n_threads: Option<usize>) -> Outcome<()> {
        let more = other.borrow().0.clone();
        let mut own = slf.borrow_mut();
        reserve_sums(&own.0)?;
        let (moments, threads) = (&mut own.0, Threads::new(n_threads)?);
        guarded(|| slf.py().detach(|| moments.merge(&more, &threads)))
    }

    /// Continues in double precision.
    fn make_fast(&mut self, py: Python<'_>) -> Outcome<()> {
        let moments = &mut self.0;
        released(py, || {
            moments.make_fast();
            Ok::<_, Error>(())
        })
    }

    /// Returns the samples and their weights; None if some are no longer buffered.
    fn buffered<'py>(&self, py: Python<'py>) -> Outcome<Option<Buffered<'py>>> {
        let n = self.0.features();
        reserve_numbers((n * BLOCK_ROWS.min(self.0.rows() as usize)) as f64, || matrix_of(n))?;
        let buffered = released(py, || Ok::<_, Error>(self.0.buffered()))?;
        Ok(buffered.map(|(rows, weights)| {
            let weights = weights.map(|weights| weights.into_pyarray(py));
            (rows.into_pyarray(py), weights)
        }))
    }

    /// Returns means, minus second moments (of samples centred if `center`, divided by deviations if
    /// `scale`), and deviations if `scale`. `keep=False` drops the samples and holds about one n × n matrix.
    #[pyo3(signature = (center, scale, keep=true, n_threads=Some(1)))]
    fn read<'py>(
        &mut self,
        py: Python<'py>,
        center: bool,
        scale: bool,
        keep: bool,
        n_threads: Option<usize>,
    ) -> Outcome<Moved<'py>> {
        let n = self.0.features();
        reserve_numbers((n as f64).powi(2), || matrix_of(n))?;
        let (moments, threads) = (&mut self.0, Threads::new(n_threads)?);
        let read = guarded(|| py.detach(|| moments.read(center, scale, keep, &threads)))?;
        Ok((
            read.mean.into_pyarray(py),
            read.negative.into_pyarray(py),
            read.deviation.map(|deviation| deviation.into_pyarray(py)),
        ))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Outcome<Reduced<'py>> {
        let own = slf.borrow();
        let (n, precision) = (own.n_features(), own.precision());
        reserve_numbers(2.0 * Moments::numbers(n, own.0.precision()), || matrix_of(n))?;
        Ok((slf.get_type().into_any(), (n, precision), own.0.to_bytes().into_pyarray(slf.py())))
    }

    fn __setstate__(&mut self, state: &Bound<'_, PyAny>) -> Outcome<()> {
        let bad = |_| PyValueError::new_err("state must be that of a Moments");
        let state: PyReadonlyArray1<'_, u8> = state.extract().map_err(bad)?;
        let bytes = state.as_array();
        Ok(self.0.restore(bytes.as_standard_layout().as_slice().unwrap_or_default())?)
    }
}

type Buffered<'py> = (MatrixOut<'py>, Option<VectorOut<'py>>);

type Moved<'py> = (VectorOut<'py>, MatrixOut<'py>, Option<VectorOut<'py>>);

type Reduced<'py> = (Bound<'py, PyAny>, (usize, &'static str), Bound<'py, PyArray1<u8>>);

fn matrix_of(n: usize) -> String {
    format!("second moments of {n} features, from blocks of {BLOCK_ROWS} rows")
}

/// Checks that the triangle can be allocated, or copied if it is shared.
fn reserve_sums(moments: &Moments) -> PyResult<()> {
    reserve_of(moments.features(), moments.precision())
}

fn reserve_of(n: usize, precision: Precision) -> PyResult<()> {
    reserve_numbers(Moments::numbers(n, precision), || matrix_of(n))
}
