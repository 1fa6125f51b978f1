//! An objective that Python evaluates.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ndarray::{ArrayView2, ArrayViewMut2};
use numpy::{PyReadonlyArray2, ToPyArray};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::{Objective, Threads};

/// `orthobcd.SmoothFunction`: calls it with the GIL, which nothing else of a solve holds, and keeps what it raises.
pub(super) struct Function {
    /// X ↦ (value, gradient, precision), checked.
    pub(super) evaluate: Py<PyAny>,
    pub(super) rows: usize,
    pub(super) columns: Option<usize>,
    pub(super) lipschitz: Option<f64>,
    pub(super) trouble: Arc<Trouble>,
    /// Held while it is called: a callable need not be made for threads.
    pub(super) turn: Mutex<()>,
}

/// What has gone wrong in a [`Function`], and how precise it is.
pub(super) struct Trouble {
    error: Mutex<Option<PyErr>>,
    failed: AtomicBool,
    /// Bits of the largest precision met.
    precision: AtomicU64,
}

impl Default for Trouble {
    fn default() -> Self {
        Self {
            error: Mutex::new(None),
            failed: AtomicBool::new(false),
            precision: AtomicU64::new(f64::EPSILON.to_bits()),
        }
    }
}

impl Trouble {
    /// The first exception, unless that was a Ctrl-C.
    pub(super) fn take(&self) -> Option<PyErr> {
        self.error.lock().ok()?.take()
    }

    fn keep(&self, py: Python<'_>, error: PyErr) {
        self.failed.store(true, Ordering::Relaxed);
        if let Ok(mut kept) = self.error.lock()
            && !error.is_instance_of::<PyKeyboardInterrupt>(py)
        {
            *kept = Some(error);
        }
    }
}

impl Objective for Function {
    fn rows(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> Option<usize> {
        self.columns
    }

    fn value_and_gradient(
        &self,
        x: ArrayView2<'_, f64>,
        mut gradient: ArrayViewMut2<'_, f64>,
        _threads: &Threads,
    ) -> f64 {
        if self.has_failed() {
            return f64::NAN;
        }
        // Before the GIL, which the call may let go.
        let _turn = self.turn.lock();
        Python::attach(|py| {
            let answer = self.evaluate.call1(py, (x.to_pyarray(py),));
            let read = answer.and_then(|answer| {
                let (value, slope, precision): (f64, PyReadonlyArray2<'_, f64>, f64) =
                    answer.extract(py)?;
                gradient.assign(&slope.as_array());
                // Bits of positive numbers are ordered like the numbers.
                let bits = precision.to_bits();
                self.trouble.precision.fetch_max(bits, Ordering::Relaxed);
                Ok(value)
            });
            read.unwrap_or_else(|error| {
                self.trouble.keep(py, error);
                f64::NAN
            })
        })
    }

    fn lipschitz(&self) -> Option<f64> {
        self.lipschitz
    }

    fn precision(&self) -> f64 {
        f64::from_bits(self.trouble.precision.load(Ordering::Relaxed))
    }

    fn has_failed(&self) -> bool {
        self.trouble.failed.load(Ordering::Relaxed)
    }
}
