//! Checkpoints that Python opens and solves write.

use std::path::PathBuf;
use std::sync::Mutex;

use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning};
use pyo3::prelude::*;

use super::guard::released;
use super::raised::Outcome;
use orthobcd::bindings::locked;
use orthobcd::{Checkpoint, Problem, Threads};

/// An open checkpoint, between the solves that write to it.
#[pyclass(name = "Checkpoint", frozen)]
pub(super) struct PyCheckpoint(Mutex<Option<Checkpoint>>);

#[pymethods]
impl PyCheckpoint {
    #[new]
    fn new(path: PathBuf, every: f64) -> Outcome<Self> {
        Ok(Self(Mutex::new(Some(Checkpoint::open(path, every)?))))
    }
}

impl PyCheckpoint {
    fn exchange(&self, file: Option<Checkpoint>) -> Option<Checkpoint> {
        std::mem::replace(&mut locked(&self.0), file)
    }
}

/// Checkpoint during a solve; its owner gets it back at the end.
pub(super) struct Lent {
    owner: Py<PyCheckpoint>,
    file: Option<Checkpoint>,
}

impl Lent {
    /// Takes the checkpoint of a solve, if there is one, and begins it with the problem.
    ///
    /// # Errors
    /// If the file is of another solve, or another solve is writing to it.
    pub(super) fn begun(
        py: Python<'_>,
        problem: &Problem<'_>,
        (owner, settings): (Option<&Py<PyCheckpoint>>, &[(String, String)]),
        threads: &Threads,
    ) -> Outcome<Option<Self>> {
        let Some(owner) = owner else {
            return Ok(None);
        };
        let Some(file) = owner.get().exchange(None) else {
            return Err(PyRuntimeError::new_err("checkpoint is used by another solve at the same time").into());
        };
        let mut lent = Self { owner: owner.clone_ref(py), file: Some(file) };
        let file = lent.file.as_mut();
        released(py, || file.map_or(Ok(()), |file| file.begin(problem, settings, threads)))?;
        Ok(Some(lent))
    }

    pub(super) fn file(&mut self) -> Option<&mut Checkpoint> {
        self.file.as_mut()
    }

    /// Warns if the file could not be written.
    ///
    /// # Errors
    /// If warnings are errors.
    pub(super) fn warn(&mut self) -> PyResult<()> {
        let Some(failure) = self.file().and_then(Checkpoint::failure) else {
            return Ok(());
        };
        let message = std::ffi::CString::new(failure)?;
        Python::attach(|py| PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &message, 2))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.owner.get().exchange(self.file.take());
    }
}
