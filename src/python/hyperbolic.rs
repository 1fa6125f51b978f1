//! Mixed signatures: problems, starts and the CS decomposition.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::guard::{guarded, released};
use super::input::{self, AnyProblem, Run};
use super::watch::Watch;
use super::{Instance, Returned, solution_dict};
use crate::pair::Recession;
use crate::solver::Update;
use crate::{Options, Result, Side, Signature, minimize, start};

/// `orthobcd.JOBCD`.
#[derive(FromPyObject)]
pub(super) struct JSolverOptions {
    update: String,
    side: String,
    curvature: String,
    proximal: f64,
    rapidity_bound: Option<f64>,
    working_set: String,
    tile_size: usize,
    adaptive: bool,
}

impl JSolverOptions {
    fn options(&self, run: &Run) -> Result<Options> {
        let update = input::update(&self.update)?;
        Ok(Options {
            working_set: self.working_set.parse()?,
            tile: self.tile_size,
            update,
            curvature: input::curvature(&self.curvature)?,
            proximal: self.proximal,
            side: match input::side(&self.side)? {
                Side::Both if update == Update::Jacobi => Side::Rows,
                side => side,
            },
            rapidity_bound: self.rapidity_bound,
            adaptive: self.adaptive,
            ..run.options()
        })
    }
}

pub(super) fn signature_of(signs: &PyReadonlyArray1<'_, i8>) -> Result<Signature> {
    Signature::new(&signs.as_array().to_vec())
}

/// The signature, or that of the Stiefel manifold for n rows.
pub(super) fn signature_or_stiefel(
    signs: Option<&PyReadonlyArray1<'_, i8>>,
    n: usize,
) -> Result<Signature> {
    signs.map_or_else(|| Ok(Signature::stiefel(n)), signature_of)
}

/// Tells along which pair the objective is unbounded, if it is.
pub(super) fn set_recession(out: &Bound<'_, PyDict>, recession: Option<Recession>) -> PyResult<()> {
    let Some(recession) = recession else {
        return Ok(());
    };
    let dict = PyDict::new(out.py());
    dict.set_item("pair", recession.pair)?;
    dict.set_item("kind", if recession.columns { "columns" } else { "rows" })?;
    dict.set_item("signs", (recession.signs[0], recession.signs[1]))?;
    dict.set_item("direction", if recession.upwards { 1 } else { -1 })?;
    out.set_item("recession", dict)
}

/// Block coordinate descent with XᵀJX fixed.
#[pyfunction]
#[pyo3(signature = (problem, x0, solver, run, callback))]
pub(super) fn solve_j_orthogonal<'py>(
    py: Python<'py>,
    problem: AnyProblem<'py>,
    x0: PyReadonlyArray2<'py, f64>,
    solver: JSolverOptions,
    run: Run,
    callback: Option<Py<PyAny>>,
) -> PyResult<Returned<'py>> {
    let instance = Instance::new(&problem, &run)?;
    let x0 = x0.as_array().to_owned();
    let options = solver.options(&run)?;
    let mut watch = Watch::new(callback, run.door());
    let solution = instance.solved(py, |problem, threads| {
        minimize(problem, x0, &options, threads, &mut watch)
    })?;
    Ok((
        solution_dict(py, solution, run.door())?,
        instance.raised(watch),
    ))
}

/// A random J-orthogonal matrix with rapidities scale·N(0, 1).
#[pyfunction]
pub(super) fn random_j_orthogonal<'py>(
    py: Python<'py>,
    signature: PyReadonlyArray1<'py, i8>,
    scale: f64,
    seed: u64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let signature = signature_of(&signature)?;
    let x = released(py, || start::random_j_orthogonal(&signature, scale, seed))??;
    Ok(x.into_pyarray(py))
}

type CsFactors<'py> = (
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
);

/// The hyperbolic CS decomposition of a J-orthogonal matrix.
#[pyfunction]
pub(super) fn hyperbolic_cs<'py>(
    py: Python<'py>,
    x: PyReadonlyArray2<'py, f64>,
    signature: PyReadonlyArray1<'py, i8>,
) -> PyResult<CsFactors<'py>> {
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
