//! Signals and callbacks during a solve, and a flag that ends the solves of other threads.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ndarray::ArrayView2;
use numpy::ToPyArray;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use super::checkpoint::Lent;
use super::guard::guarded;
use orthobcd::bindings::watched;
use orthobcd::objective::GoOn;
use orthobcd::{Checkpoint, Control, Monitor, Record};

thread_local! {
    /// Flag that ends the solves of this thread.
    static STOP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Flag that ends the computations of other threads as Ctrl-C does, which reaches Python's main thread alone.
#[pyclass(frozen)]
pub(super) struct Stop(Arc<AtomicBool>);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self(Arc::new(AtomicBool::new(false)))
    }

    /// Makes this thread obey the flag.
    fn obey(&self) {
        STOP.with(|stop| stop.replace(Some(self.0.clone())));
    }

    /// Ends the present and later computations of the threads that obey the flag.
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the exception of Python's signal handlers, or a `KeyboardInterrupt` if [`Stop`] is set.
pub(super) fn signals() -> PyResult<()> {
    let asked = |stop: &Arc<AtomicBool>| stop.load(Ordering::Relaxed);
    if STOP.with(|stop| stop.borrow().as_ref().is_some_and(asked)) {
        return Err(PyKeyboardInterrupt::new_err(()));
    }
    Python::attach(|py| py.check_signals())
}

/// Returns the result of `body`, whose argument returns false after Ctrl-C.
///
/// # Errors
/// The exception of Python's signal handlers.
pub(super) fn interruptible<T: Send>(py: Python<'_>, body: impl Fn(GoOn<'_>) -> T + Sync) -> PyResult<T> {
    let mut watch = Watch::new(None, 0.0);
    let made = guarded(|| Ok::<_, PyErr>(watch.during(py, body)))?;
    watch.raise()?;
    made.ok_or_else(|| PyKeyboardInterrupt::new_err(()))
}

/// Monitor that polls Python's signal handlers and calls the callback. Ctrl-C stops the solve and is a
/// status. Any other exception, of a handler or a callback, stops the solve too and is returned beside
/// the result.
pub(super) struct Watch {
    callback: Option<Py<PyAny>>,
    door: f64,
    error: Option<PyErr>,
    /// True once a signal has stopped the solve; later polls stop too.
    pressed: bool,
    file: Option<Lent>,
    /// True once anything has stopped the solve.
    stopped: bool,
}

impl Watch {
    /// Creates a watch; `door` seconds have passed since the call.
    pub(super) fn new(callback: Option<Py<PyAny>>, door: f64) -> Self {
        Self { callback, door, error: None, pressed: false, file: None, stopped: false }
    }

    /// Returns the watch with a checkpoint.
    pub(super) fn writing(self, file: Option<Lent>) -> Self {
        Self { file, ..self }
    }

    /// Returns the watch for a solve that begins `door` seconds after the call.
    pub(super) fn after(self, door: f64) -> Self {
        Self { door, ..self }
    }

    /// Runs `body` on a thread of its own while this thread polls, which may end it. Returns None if it was
    /// ended before it began.
    pub(super) fn during<T: Send>(&mut self, py: Python<'_>, body: impl Fn(GoOn<'_>) -> T + Sync) -> Option<T> {
        py.detach(|| watched(&body, || self.poll()))
    }

    /// Writes the checkpoint and returns the exception that ended the solve, if one did.
    pub(super) fn into_error(mut self) -> Option<PyErr> {
        let stopped = self.stopped;
        match self.checkpoint() {
            Some(file) if stopped => file.interrupt(),
            Some(file) => file.save(),
            None => {}
        }
        self.warn();
        self.error
    }

    /// Warns if the checkpoint could not be written.
    fn warn(&mut self) {
        if let Some(Err(error)) = self.file.as_mut().map(Lent::warn) {
            self.keep(Err::<(), _>(error));
        }
    }

    /// Returns whether a signal has stopped the solve.
    pub(super) fn is_pressed(&self) -> bool {
        self.pressed
    }

    /// Returns the value of a call to Python; keeps its exception, or notes its Ctrl-C.
    fn keep<T>(&mut self, returned: PyResult<T>) -> Option<T> {
        match returned {
            Ok(value) => return Some(value),
            Err(error) if is_own_interrupt(&error) => self.pressed = true,
            Err(error) => _ = self.error.get_or_insert(error),
        }
        None
    }

    /// Calls a method of the callback, if there is one.
    fn tell(&mut self, call: impl Fn(Python<'_>, &Py<PyAny>) -> PyResult<Py<PyAny>>) {
        let told = self.callback.as_ref().map(|callback| Python::attach(|py| call(py, callback)));
        _ = told.and_then(|told| self.keep(told));
    }

    /// Raises the exception or the Ctrl-C that stopped the computation, if there was one.
    pub(super) fn raise(self) -> PyResult<()> {
        match (self.pressed, self.error) {
            (false, None) => Ok(()),
            (_, error) => Err(error.unwrap_or_else(|| PyKeyboardInterrupt::new_err(()))),
        }
    }

    /// Returns whether Python's signal handlers and the warnings let the solve continue.
    fn asked(&mut self) -> Control {
        if self.pressed {
            return Control::Stop;
        }
        self.warn();
        if self.error.is_some() {
            return Control::Stop;
        }
        let Err(error) = signals() else {
            return Control::Continue;
        };
        self.pressed = true;
        if !Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py)) {
            self.error = Some(error);
        }
        Control::Stop
    }

    /// Returns whether the callback lets the solve continue.
    fn told(&mut self, record: &Record, x: ArrayView2<'_, f64>) -> Control {
        // Polls first: a pending Ctrl-C would be raised within the callback.
        if self.pressed || self.callback.is_some() && self.poll() == Control::Stop {
            return Control::Stop;
        }
        let Some(callback) = &self.callback else {
            return Control::Continue;
        };
        let answer = Python::attach(|py| {
            let told =
                (record.seconds + self.door, record.objective, record.feasibility, record.iterations, x.to_pyarray(py));
            callback.call1(py, told)?.is_truthy(py)
        });
        match self.keep(answer) {
            Some(false) => Control::Continue,
            Some(true) | None => Control::Stop,
        }
    }
}

impl Monitor for Watch {
    fn poll(&mut self) -> Control {
        let control = self.asked();
        self.stopped |= control == Control::Stop;
        control
    }

    fn stage(&mut self, done: usize, total: Option<usize>) {
        self.tell(|py, callback| callback.call_method1(py, "stage", (done, total)));
    }

    fn working(&mut self, heuristics: &str) {
        self.tell(|py, callback| callback.call_method1(py, "working", (heuristics,)));
    }

    fn checkpoint(&mut self) -> Option<&mut Checkpoint> {
        self.file.as_mut()?.file()
    }

    fn record(&mut self, record: &Record, x: ArrayView2<'_, f64>) -> Control {
        let control = self.told(record, x);
        self.stopped |= control == Control::Stop;
        control
    }
}

/// Returns whether an exception is a Ctrl-C in the outermost frame of the callback, the package's own.
fn is_own_interrupt(error: &PyErr) -> bool {
    Python::attach(|py| {
        error.is_instance_of::<PyKeyboardInterrupt>(py)
            && error.traceback(py).is_none_or(|trace| trace.getattr("tb_next").is_ok_and(|next| next.is_none()))
    })
}
