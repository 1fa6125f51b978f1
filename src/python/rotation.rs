//! Sparse rotation of loadings.

use std::time::Instant;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;

use super::watch::Watch;
use crate::{Criterion, Error, Result, Threads, rotate_loadings as rotate};

type Rotated<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<f64>>);

fn criterion_of(name: &str) -> Result<Criterion> {
    match name {
        "l1" => Ok(Criterion::L1),
        "l0" => Ok(Criterion::L0),
        _ => Err(Error::invalid("criterion", format!("must be l1 or l0, got {name:?}"))),
    }
}

/// Returns the loadings VR, R, and the values at the ends of all starts.
#[pyfunction]
pub(super) fn rotate_loadings<'py>(
    py: Python<'py>,
    v: PyReadonlyArray2<'py, f64>,
    criterion: &str,
    n_starts: usize,
    seed: u64,
    n_threads: Option<usize>,
    max_time: Option<f64>,
) -> PyResult<Rotated<'py>> {
    let called = Instant::now();
    let (v, criterion) = (v.as_array().to_owned(), criterion_of(criterion)?);
    let threads = Threads::new(n_threads)?;
    let mut watch = Watch::new(None, 0.0);
    let found = watch.during(py, |go_on| {
        let late = || max_time.is_some_and(|limit| called.elapsed().as_secs_f64() >= limit);
        let go_on = || go_on() && !late();
        rotate(v.view(), criterion, n_starts, seed, &threads, &go_on)
    });
    watch.raise()?;
    let Some(found) = found else {
        return Err(pyo3::exceptions::PyKeyboardInterrupt::new_err(()));
    };
    let found = found?;
    Ok((found.loadings.into_pyarray(py), found.rotation.into_pyarray(py), PyArray1::from_vec(py, found.ends)))
}
