//! Objective that Python evaluates.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use numpy::{PyArray1, PyReadonlyArray2, ToPyArray};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use orthobcd::finite_sum::FiniteSum;
use orthobcd::{Objective, Threads};

/// Multiply-adds that a call from Python counts for, in addition to its n²r: 0.1 ms.
const CALL: f64 = 1e6;

/// `orthobcd.SmoothFunction`, called with the GIL, which nothing else of a solve holds; keeps its exception.
pub(super) struct Function {
    /// X ↦ (value, gradient, precision), checked.
    pub(super) evaluate: Py<PyAny>,
    /// (X, V) ↦ ∇²f(X)[V], checked, or None.
    pub(super) product: Option<Py<PyAny>>,
    pub(super) rows: usize,
    pub(super) columns: Option<usize>,
    /// Number of terms of a sum.
    pub(super) terms: Option<usize>,
    pub(super) lipschitz: Option<f64>,
    /// C of H = I ⊗ C.
    pub(super) curvature: Option<Array2<f64>>,
    pub(super) trouble: Arc<Trouble>,
    /// Lock of a call: a callable need not be thread-safe.
    pub(super) turn: Mutex<()>,
}

/// Exception of a [`Function`], and the precision of its values.
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
    /// Returns the first exception, unless that was a Ctrl-C.
    pub(super) fn take(&self) -> Option<PyErr> {
        self.error.lock().ok()?.take()
    }

    /// Keeps an exception, after which the function is not called again.
    pub(super) fn keep(&self, py: Python<'_>, error: PyErr) {
        self.failed.store(true, Ordering::Relaxed);
        if let Ok(mut kept) = self.error.lock()
            && !error.is_instance_of::<PyKeyboardInterrupt>(py)
        {
            *kept = Some(error);
        }
    }
}

impl Function {
    /// Returns f and ∇f at X, or their means over some terms; None after an exception.
    fn call(&self, x: ArrayView2<'_, f64>, terms: Option<&[usize]>) -> Option<(f64, Array2<f64>)> {
        if self.has_failed() {
            return None;
        }
        // Locked before the GIL, which the call may release.
        let _turn = self.turn.lock();
        Python::attach(|py| {
            let answer = match terms {
                None => self.evaluate.call1(py, (x.to_pyarray(py),)),
                Some(terms) => {
                    let indices = PyArray1::from_iter(py, terms.iter().map(|&i| i as i64));
                    self.evaluate.call1(py, (x.to_pyarray(py), indices))
                }
            };
            let read = answer.and_then(|answer| {
                let (value, slope, precision): (f64, PyReadonlyArray2<'_, f64>, f64) = answer.extract(py)?;
                // Bits of positive numbers are ordered like the numbers.
                let bits = precision.to_bits();
                self.trouble.precision.fetch_max(bits, Ordering::Relaxed);
                Ok((value, slope.as_array().to_owned()))
            });
            read.map_err(|error| self.trouble.keep(py, error)).ok()
        })
    }
}

/// `orthobcd.FiniteSum`, which can also be evaluated at some of its terms.
impl FiniteSum for Function {
    fn components(&self) -> usize {
        self.terms.unwrap_or(1)
    }

    fn batch_gradient(&self, x: ArrayView2<'_, f64>, batch: &[usize]) -> Array2<f64> {
        let both = self.call(x, Some(batch));
        both.map_or_else(|| Array2::zeros(x.dim()), |both| both.1)
    }

    /// Returns the Lipschitz constant of every term, which also bounds the mean of their squares.
    fn mean_square_curvature(&self) -> f64 {
        self.curvature()
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
        match self.call(x, None) {
            Some((value, slope)) => {
                gradient.assign(&slope);
                value
            }
            None => f64::NAN,
        }
    }

    fn lipschitz(&self) -> Option<f64> {
        self.lipschitz
    }

    fn call_work(&self) -> f64 {
        CALL
    }

    fn is_serial(&self) -> bool {
        true
    }

    fn curvature_matrix(&self) -> Option<ArrayView2<'_, f64>> {
        self.curvature.as_ref().map(|c| c.view())
    }

    fn hessian_product(
        &self,
        x: ArrayView2<'_, f64>,
        v: ArrayView2<'_, f64>,
        _threads: &Threads,
    ) -> Option<Array2<f64>> {
        let product = self.product.as_ref().filter(|_| !self.has_failed())?;
        let _turn = self.turn.lock();
        Python::attach(|py| {
            let answer = product.call1(py, (x.to_pyarray(py), v.to_pyarray(py)));
            let read = answer.and_then(|answer| {
                let image: Option<PyReadonlyArray2<'_, f64>> = answer.extract(py)?;
                Ok(image.map(|image| image.as_array().to_owned()))
            });
            read.unwrap_or_else(|error| {
                self.trouble.keep(py, error);
                None
            })
        })
    }

    fn precision(&self) -> f64 {
        f64::from_bits(self.trouble.precision.load(Ordering::Relaxed))
    }

    fn has_failed(&self) -> bool {
        self.trouble.failed.load(Ordering::Relaxed)
    }
}
