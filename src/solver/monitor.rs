//! Who watches a solve.

use ndarray::ArrayView2;

use super::outcome::Record;

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    Continue,
    /// Stop, with the status [`Status::Interrupted`].
    Stop,
}

/// Watches a solve.
pub trait Monitor {
    /// Called every few hundredths of a second on the calling thread.
    fn poll(&mut self) -> Control {
        Control::Continue
    }

    /// Called for every row of the history, with the current point.
    fn record(&mut self, _record: &Record, _x: ArrayView2<'_, f64>) -> Control {
        Control::Continue
    }

    /// Called before every stage of a path: how many are done, and how many there will be where that is known.
    fn stage(&mut self, _done: usize, _total: Option<usize>) {}
}

/// The monitor that lets a solve run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Monitor for Unwatched {}
