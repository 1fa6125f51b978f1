//! Panics do not leave the package: a panic becomes a `RuntimeError` in Python.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyRuntimeError;
use pyo3::marker::Ungil;
use pyo3::prelude::*;

/// Returns the answer of `work`, or a `RuntimeError` if `work` panics.
pub(super) fn guarded<T, E>(work: impl FnOnce() -> Result<T, E>) -> PyResult<T>
where
    PyErr: From<E>,
{
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(answer) => answer.map_err(PyErr::from),
        Err(panic) => Err(of_panic(&*panic)),
    }
}

/// Returns the answer of `work` without the GIL, or a `RuntimeError` if `work` panics.
pub(super) fn released<T, E>(py: Python<'_>, work: impl FnOnce() -> Result<T, E> + Ungil) -> PyResult<T>
where
    Result<T, E>: Ungil,
    PyErr: From<E>,
{
    guarded(|| py.detach(work))
}

fn of_panic(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic.downcast_ref::<&str>().copied();
    let message = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    PyRuntimeError::new_err(format!(
        "orthobcd has failed by an error of its own ({}); please report the call that led to it",
        message.unwrap_or("without a message")
    ))
}
