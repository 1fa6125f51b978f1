//! Starts and decompositions of J-orthogonal matrices.

use ndarray::{Array2, Array3};
use numpy::{IntoPyArray, PyArray2, PyArray3};
use pyo3::prelude::*;

use super::arguments::{Matrix, MatrixOut, Signs, VectorOut, signature_of};
use super::guard::{guarded, released};
use super::raised::Outcome;
use orthobcd::bindings::j_orthogonal;
use orthobcd::start;

/// Returns a random J-orthogonal matrix with rapidities scale·N(0, 1).
#[pyfunction]
pub(super) fn random_j_orthogonal<'py>(
    py: Python<'py>,
    signature: Signs<'py>,
    scale: f64,
    seed: u64,
) -> Outcome<MatrixOut<'py>> {
    let signature = signature_of(&signature)?;
    let x = released(py, || start::random_j_orthogonal(&signature, scale, seed))?;
    Ok(x.into_pyarray(py))
}

/// Returns a square start with its distance from XᵀJX = J repaired; refuses a start that is too far from it.
#[pyfunction]
pub(super) fn j_orthogonal_start<'py>(x0: Matrix<'py>, signature: Signs<'py>) -> Outcome<MatrixOut<'py>> {
    let (py, signature) = (x0.py(), signature_of(&signature)?);
    let x0 = x0.as_array().to_owned();
    let x = released(py, || j_orthogonal("x0", x0, &signature))?;
    Ok(x.into_pyarray(py))
}

type CsFactors<'py> = (MatrixOut<'py>, MatrixOut<'py>, VectorOut<'py>, VectorOut<'py>, MatrixOut<'py>, MatrixOut<'py>);

/// Returns the hyperbolic CS decomposition of a J-orthogonal matrix.
#[pyfunction]
pub(super) fn hyperbolic_cs<'py>(py: Python<'py>, x: Matrix<'py>, signature: Signs<'py>) -> Outcome<CsFactors<'py>> {
    let signature = signature_of(&signature)?;
    let cs = guarded(|| start::hyperbolic_cs(x.as_array(), &signature))?;
    Ok((
        cs.u1.into_pyarray(py),
        cs.u2.into_pyarray(py),
        cs.c.into_pyarray(py),
        cs.s.into_pyarray(py),
        cs.v1.into_pyarray(py),
        cs.v2.into_pyarray(py),
    ))
}

/// Returns (pairs, matrices) of the factors W₁, W₂, … with D = W_m ⋯ W₁.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub(super) fn basis_factorization<'py>(
    py: Python<'py>,
    d: Matrix<'py>,
) -> Outcome<(Bound<'py, PyArray2<i64>>, Bound<'py, PyArray3<f64>>)> {
    let factors = guarded(|| orthobcd::basis_factorization(d.as_array()))?;
    let pairs =
        Array2::from_shape_fn((factors.len(), 2), |(t, k)| (if k == 0 { factors[t].i } else { factors[t].j }) as i64);
    let matrices = Array3::from_shape_fn((factors.len(), 2, 2), |(t, k, l)| factors[t].v[k][l]);
    Ok((pairs.into_pyarray(py), matrices.into_pyarray(py)))
}
