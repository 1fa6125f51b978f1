//! Sparse rotation of loadings.

use std::time::Instant;

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use super::arguments::{Matrix, MatrixOut, VectorOut, choice};
use super::raised::Outcome;
use super::watch::interruptible;
use orthobcd::{Criterion, Threads, rotate_loadings as rotate};

/// Returns the loadings VR, R, and the values at the ends of all starts.
#[pyfunction]
pub(super) fn rotate_loadings<'py>(
    py: Python<'py>,
    v: Matrix<'py>,
    criterion: &str,
    n_starts: usize,
    seed: u64,
    n_threads: Option<usize>,
    max_time: Option<f64>,
) -> Outcome<(MatrixOut<'py>, MatrixOut<'py>, VectorOut<'py>)> {
    let called = Instant::now();
    let v = v.as_array().to_owned();
    let criterion = choice("criterion", criterion, &[("l1", Criterion::L1), ("l0", Criterion::L0)])?;
    let threads = Threads::new(n_threads)?;
    let found = interruptible(py, |go_on| {
        let late = || max_time.is_some_and(|limit| called.elapsed().as_secs_f64() >= limit);
        rotate(v.view(), criterion, n_starts, seed, &threads, &|| go_on() && !late())
    })??;
    Ok((found.loadings.into_pyarray(py), found.rotation.into_pyarray(py), PyArray1::from_vec(py, found.ends)))
}
