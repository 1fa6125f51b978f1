//! A quadratic form under observation.

use std::sync::{Mutex, MutexGuard};

use ndarray::{Array2, ArrayView2};
use orthobcd::objective::{BlockModel, GoOn, Moved, Spectrum, Tracker};
use orthobcd::{QuadraticForm, Threads};

/// What wants to know of the blocks that a solver fills and of the rows that it moves.
pub(crate) trait Observer: Send {
    /// X is `x`: at the start, and after every change of all rows at once.
    fn placed(&mut self, _x: &Array2<f64>) {}

    /// The block of `rows` is filled at `x`.
    fn filled(&mut self, _rows: &[usize], _x: &Array2<f64>) {}

    /// Rows of `x` are about to be replaced.
    fn moved(&mut self, moved: &Moved<'_>, x: &Array2<f64>);
}

/// f = ½⟨X, CX⟩ of `inner`, which tells an observer what becomes of X.
pub(crate) struct Observed<Q, O> {
    inner: Q,
    observer: Mutex<O>,
}

impl<Q: QuadraticForm, O: Observer> Observed<Q, O> {
    pub(crate) fn new(inner: Q, observer: O) -> Self {
        Self { inner, observer: Mutex::new(observer) }
    }

    /// f and its observer.
    pub(crate) fn into_parts(self) -> (Q, O) {
        (self.inner, self.observer.into_inner().unwrap())
    }

    fn observer(&self) -> MutexGuard<'_, O> {
        self.observer.lock().unwrap()
    }
}

impl<Q: QuadraticForm, O: Observer> QuadraticForm for Observed<Q, O> {
    fn order(&self) -> usize {
        self.inner.order()
    }

    fn apply_while(&self, x: ArrayView2<'_, f64>, threads: &Threads, go_on: GoOn<'_>) -> Option<Array2<f64>> {
        self.inner.apply_while(x, threads, go_on)
    }

    fn diagonal(&self) -> Vec<f64> {
        self.inner.diagonal()
    }

    fn cache(&self) -> &Spectrum {
        self.inner.cache()
    }

    fn tracker<'a>(&'a self, x: ArrayView2<'_, f64>, threads: &Threads) -> Box<dyn Tracker + 'a> {
        let x = x.to_owned();
        self.observer().placed(&x);
        Box::new(ObservedTracker { inner: self.inner.tracker(x.view(), threads), form: self, x })
    }
}

struct ObservedTracker<'a, Q, O> {
    inner: Box<dyn Tracker + 'a>,
    form: &'a Observed<Q, O>,
    x: Array2<f64>,
}

impl<Q: QuadraticForm, O: Observer> Tracker for ObservedTracker<'_, Q, O> {
    fn value(&self, x: ArrayView2<'_, f64>) -> f64 {
        self.inner.value(x)
    }

    fn fill(&mut self, model: BlockModel<'_>) {
        self.form.observer().filled(model.rows, &self.x);
        self.inner.fill(model);
    }

    fn commit(&mut self, moved: Moved<'_>, threads: &Threads) {
        self.inner.commit(moved, threads);
        self.form.observer().moved(&moved, &self.x);
        assign(&moved, &mut self.x);
    }

    fn gradient_row(&self, row: usize, target: &mut [f64]) {
        self.inner.gradient_row(row, target);
    }

    fn gradient(&self, threads: &Threads) -> Array2<f64> {
        self.inner.gradient(threads)
    }

    fn refresh(&mut self, x: ArrayView2<'_, f64>, threads: &Threads) {
        self.inner.refresh(x, threads);
        self.x.assign(&x);
        self.form.observer().placed(&self.x);
    }
}

/// The rows that moved, in `x`.
pub(crate) fn assign(moved: &Moved<'_>, x: &mut Array2<f64>) {
    for k in 0..moved.len() {
        let mut row = x.row_mut(moved.row(k));
        row.iter_mut().zip(moved.x(k)).for_each(|(x, &v)| *x = v);
    }
}
