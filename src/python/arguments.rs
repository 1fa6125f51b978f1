//! Arguments and results that several functions share: arrays of NumPy, signatures, and choices by name.

use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use orthobcd::{Error, Result, Side, Signature};

/// A value of the core, for which traits of pyo3 can be implemented here.
pub(super) struct Core<T>(pub(super) T);

pub(super) type Matrix<'py> = PyReadonlyArray2<'py, f64>;
pub(super) type Vector<'py> = PyReadonlyArray1<'py, f64>;
pub(super) type Signs<'py> = PyReadonlyArray1<'py, i8>;
pub(super) type MatrixOut<'py> = Bound<'py, PyArray2<f64>>;
pub(super) type VectorOut<'py> = Bound<'py, PyArray1<f64>>;

pub(super) fn signature_of(signs: &Signs<'_>) -> Result<Signature> {
    Signature::new(&signs.as_array().to_vec())
}

/// Returns the choice of that name.
pub(super) fn choice<T: Copy>(argument: &'static str, name: &str, choices: &[(&str, T)]) -> Result<T> {
    let found = choices.iter().find(|(known, _)| *known == name);
    found.map(|&(_, value)| value).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|&(known, _)| known).collect();
        Error::invalid(argument, format!("must be one of {}; got {name:?}", names.join(", ")))
    })
}

/// Returns the side named by `name`.
pub(super) fn side(name: &str) -> Result<Side> {
    let choices = [("rows", Side::Rows), ("columns", Side::Columns), ("both", Side::Both)];
    choice("side", name, &choices)
}
