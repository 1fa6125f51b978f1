//! Python dataclasses as Rust values.

use ndarray::Array1;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::{L0, L1, NoPenalty, NonNegative};
use crate::block::Curvature;
use crate::objective::{DenseColumns, GramQuadratic, Quadratic, QuadraticForm, SparseColumns};
use crate::penalty::Weights;
use crate::solver::{Options, Side, Update};
use crate::{Error, Result};

/// `orthobcd.Quadratic` or `orthobcd.GramQuadratic`.
#[derive(FromPyObject)]
pub(super) enum AnySmooth<'py> {
    Quadratic {
        #[pyo3(attribute("C"))]
        c: PyReadonlyArray2<'py, f64>,
        #[pyo3(attribute("linear"))]
        linear: Option<PyReadonlyArray2<'py, f64>>,
        #[pyo3(attribute("D"))]
        metric: Option<PyReadonlyArray2<'py, f64>>,
    },
    Gram {
        #[pyo3(attribute("A"))]
        data: AnyData<'py>,
        #[pyo3(attribute("scale"))]
        scale: f64,
        #[pyo3(attribute("mean"))]
        mean: Option<PyReadonlyArray1<'py, f64>>,
    },
}

/// A dense array or a scipy CSC matrix.
#[derive(FromPyObject)]
pub(super) enum AnyData<'py> {
    Dense(PyReadonlyArray2<'py, f64>),
    Sparse {
        #[pyo3(attribute("indptr"))]
        starts: Index<'py>,
        #[pyo3(attribute("indices"))]
        indices: Index<'py>,
        #[pyo3(attribute("data"))]
        values: PyReadonlyArray1<'py, f64>,
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
    fn collect<T: TryFrom<i64>>(&self) -> Result<Vec<T>> {
        let bad = |_| Error::invalid("A", "has an index that is out of range");
        match self {
            Self::Narrow(a) => a
                .as_array()
                .iter()
                .map(|&i| T::try_from(i64::from(i)).map_err(|_| bad(())))
                .collect(),
            Self::Wide(a) => a
                .as_array()
                .iter()
                .map(|&i| T::try_from(i).map_err(|_| bad(())))
                .collect(),
        }
    }
}

impl AnySmooth<'_> {
    pub(super) fn build(&self) -> Result<Box<dyn QuadraticForm>> {
        Ok(match self {
            Self::Quadratic { c, linear, metric } => Box::new(Quadratic::new(
                c.as_array().to_owned(),
                linear.as_ref().map(|a| a.as_array().to_owned()),
                metric.as_ref().map(|a| a.as_array().to_owned()),
            )?),
            Self::Gram { data, scale, mean } => {
                let mean: Option<Array1<f64>> = mean.as_ref().map(|m| m.as_array().to_owned());
                Box::new(match data {
                    AnyData::Dense(a) => {
                        GramQuadratic::new(DenseColumns::new(a.as_array())?, *scale, mean)?
                    }
                    AnyData::Sparse {
                        starts,
                        indices,
                        values,
                        shape,
                    } => {
                        let (starts, indices) = (starts.collect()?, indices.collect()?);
                        let values = values.as_array().to_vec();
                        let data = SparseColumns::new(shape.0, starts, indices, values)?;
                        GramQuadratic::new(data, *scale, mean)?
                    }
                })
            }
        })
    }
}

/// One of the penalties.
pub(super) enum AnyPenalty {
    None(NoPenalty),
    L0(L0),
    L1(L1),
    NonNegative(NonNegative),
}

impl<'a, 'py> FromPyObject<'a, 'py> for AnyPenalty {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let name = object.get_type().name()?.to_string();
        Ok(match name.as_str() {
            "NoPenalty" => Self::None(NoPenalty),
            "NonNegative" => Self::NonNegative(NonNegative),
            "L0" => Self::L0(L0 {
                lambda: object.getattr("lam")?.extract()?,
            }),
            "L1" => {
                let lam = object.getattr("lam")?;
                let weights = match lam.extract::<PyReadonlyArray2<'_, f64>>() {
                    Ok(array) => Weights::Entrywise(array.as_array().to_owned()),
                    Err(_) => Weights::Scalar(lam.extract()?),
                };
                Self::L1(L1 { weights })
            }
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "penalty must be L0, L1, NonNegative or NoPenalty, got {name}"
                )));
            }
        })
    }
}

/// `orthobcd.OBCD`.
#[derive(FromPyObject)]
pub(super) struct SolverOptions {
    working_set: String,
    block_size: usize,
    tile_size: usize,
    update: String,
    curvature: String,
    alpha: f64,
    side: String,
    scored_pairs: Option<usize>,
}

/// When to stop: (max_time, max_sweeps, tol, target).
#[derive(FromPyObject)]
pub(super) struct Limits(
    pub(super) Option<f64>,
    pub(super) Option<u64>,
    pub(super) Option<f64>,
    pub(super) Option<f64>,
    pub(super) Option<u64>,
);

impl Limits {
    /// Default options with these limits.
    pub(super) fn options(&self, seed: u64) -> Options {
        let default = Options::default();
        Options {
            max_time: self.0,
            max_sweeps: self.1,
            tol: self.2.unwrap_or(default.tol),
            target: self.3,
            max_work: self.4,
            seed,
            ..default
        }
    }
}

impl SolverOptions {
    pub(super) fn options(&self, limits: &Limits, seed: u64) -> Result<Options> {
        let default = Options::default();
        Ok(Options {
            working_set: self.working_set.parse()?,
            block_size: self.block_size,
            tile: self.tile_size,
            update: match self.update.as_str() {
                "gauss-seidel" => Update::GaussSeidel,
                "jacobi" => Update::Jacobi,
                other => {
                    return Err(Error::invalid(
                        "update",
                        format!("must be one of gauss-seidel, jacobi; got {other:?}"),
                    ));
                }
            },
            curvature: match self.curvature.as_str() {
                "exact" => Curvature::Exact,
                "scalar" => Curvature::Scalar,
                other => {
                    return Err(Error::invalid(
                        "curvature",
                        format!("must be one of exact, scalar; got {other:?}"),
                    ));
                }
            },
            proximal: self.alpha,
            scored_pairs: self.scored_pairs,
            side: side(&self.side)?,
            max_time: limits.0,
            max_sweeps: limits.1,
            tol: limits.2.unwrap_or(default.tol),
            target: limits.3,
            max_work: limits.4,
            seed,
            ..default
        })
    }
}

/// The side named by `name`.
pub(super) fn side(name: &str) -> Result<Side> {
    match name {
        "rows" => Ok(Side::Rows),
        "columns" => Ok(Side::Columns),
        "both" => Ok(Side::Both),
        other => Err(Error::invalid(
            "side",
            format!("must be one of rows, columns, both; got {other:?}"),
        )),
    }
}
