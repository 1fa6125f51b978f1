//! Panics do not leave the package: a panic becomes a `RuntimeError` in Python.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyRuntimeError;
use pyo3::marker::Ungil;
use pyo3::prelude::*;

use super::raised::{Outcome, Raised};

/// Returns the answer of `work`, or a `RuntimeError` if `work` panics.
pub(super) fn guarded<T, E>(work: impl FnOnce() -> Result<T, E>) -> Outcome<T>
where
    Raised: From<E>,
{
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(answer) => answer.map_err(Raised::from),
        Err(panic) => Err(of_panic(&*panic).into()),
    }
}

/// Returns the answer of `work` without the GIL, or a `RuntimeError` if `work` panics.
pub(super) fn released<T, E>(py: Python<'_>, work: impl FnOnce() -> Result<T, E> + Ungil) -> Outcome<T>
where
    Result<T, E>: Ungil,
    Raised: From<E>,
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
