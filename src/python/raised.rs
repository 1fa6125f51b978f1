//! Errors of the core and of Python as one type, whose conversion raises them in Python.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// What a function of the bindings returns.
pub(super) type Outcome<T> = Result<T, Raised>;

/// An exception; an error of the core is a `ValueError`.
#[derive(Debug)]
pub(super) struct Raised(PyErr);

impl From<orthobcd::Error> for Raised {
    fn from(error: orthobcd::Error) -> Self {
        Self(PyValueError::new_err(error.to_string()))
    }
}

impl From<PyErr> for Raised {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

impl From<Raised> for PyErr {
    fn from(error: Raised) -> Self {
        error.0
    }
}
