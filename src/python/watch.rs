//! Signals and callbacks during a solve.

use ndarray::ArrayView2;
use numpy::ToPyArray;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::{Control, Monitor, Record, Status};

/// Polls Python's signal handlers and calls the callback. Ctrl-C stops the solve and is a status;
/// any other exception, and whatever a callback raises, stops it too and is handed back beside the
/// result.
pub(super) struct Watch {
    callback: Option<Py<PyAny>>,
    door: f64,
    error: Option<PyErr>,
}

impl Watch {
    /// With the seconds that were spent at the door.
    pub(super) fn new(callback: Option<Py<PyAny>>, door: f64) -> Self {
        Self {
            callback,
            door,
            error: None,
        }
    }

    pub(super) fn into_error(self) -> Option<PyErr> {
        self.error
    }
}

impl Monitor for Watch {
    fn poll(&mut self) -> Control {
        Python::attach(|py| match py.check_signals() {
            Ok(()) => Control::Continue,
            Err(error) => {
                if !error.is_instance_of::<PyKeyboardInterrupt>(py) {
                    self.error = Some(error);
                }
                Control::Stop
            }
        })
    }

    fn stage(&mut self, done: usize, total: Option<usize>) {
        let Some(callback) = &self.callback else {
            return;
        };
        let told = Python::attach(|py| callback.call_method1(py, "stage", (done, total)));
        if let Err(error) = told {
            self.error.get_or_insert(error);
        }
    }

    fn working(&mut self, heuristics: &str) {
        let Some(callback) = &self.callback else {
            return;
        };
        let told = Python::attach(|py| callback.call_method1(py, "working", (heuristics,)));
        if let Err(error) = told {
            self.error.get_or_insert(error);
        }
    }

    fn record(&mut self, record: &Record, x: ArrayView2<'_, f64>) -> Control {
        // A Ctrl-C that waits would be raised by whatever Python runs first.
        if self.callback.is_some() && self.poll() == Control::Stop {
            return Control::Stop;
        }
        Python::attach(|py| {
            let Some(callback) = &self.callback else {
                return Control::Continue;
            };
            let answer = callback
                .call1(
                    py,
                    (
                        record.seconds + self.door,
                        record.objective,
                        record.feasibility,
                        record.iterations,
                        x.to_pyarray(py),
                    ),
                )
                .and_then(|answer| answer.is_truthy(py));
            match answer {
                Ok(true) => Control::Stop,
                Ok(false) => Control::Continue,
                Err(error) => {
                    if !pressed(py, &error) {
                        self.error = Some(error);
                    }
                    Control::Stop
                }
            }
        })
    }
}

/// Whether a Ctrl-C came up in our own frame around the callback, the only one of the traceback then.
fn pressed(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyKeyboardInterrupt>(py)
        && error
            .traceback(py)
            .is_none_or(|trace| trace.getattr("tb_next").is_ok_and(|next| next.is_none()))
}

/// The name of the Python enum member's value.
pub(super) fn status_name(status: Status) -> &'static str {
    match status {
        Status::Converged => "converged",
        Status::MaxTime => "max_time",
        Status::MaxSweeps => "max_sweeps",
        Status::MaxWork => "max_work",
        Status::Interrupted => "interrupted",
        Status::Target => "target",
        Status::Proved => "proved",
        Status::Unbounded => "unbounded",
        Status::Diverged => "diverged",
    }
}
