//! Monitors of a solve, and the times of their calls.

use std::time::{Duration, Instant};

use ndarray::ArrayView2;

use super::domain::Domain;
use super::ledger::Ledger;
use super::outcome::Record;
use super::point::Point;
use crate::checkpoint::Checkpoint;
use crate::limits::{Control, PAUSE_SHARE, POLL};

/// Time between records within a pass, and of passes after the first [`MANY_RECORDS`].
const PAUSE: Duration = Duration::from_millis(100);

/// Up to this number of records every pass makes one.
const MANY_RECORDS: usize = 1000;

/// Observes a solve.
pub trait Monitor {
    /// Called every few hundredths of a second on the calling thread.
    fn poll(&mut self) -> Control {
        Control::Continue
    }

    /// Called for every row of the history, with the current point.
    fn record(&mut self, _record: &Record, _x: ArrayView2<'_, f64>) -> Control {
        Control::Continue
    }

    /// Called before every stage of a path, with the number of stages done and, if known, the total.
    fn stage(&mut self, _done: usize, _total: Option<usize>) {}

    /// Called before every round of a [search](crate::search), with the names of the running heuristics.
    fn working(&mut self, _heuristics: &str) {}

    /// Returns the file from which the solve continues and to which it writes its results, if there is one.
    fn checkpoint(&mut self) -> Option<&mut Checkpoint> {
        None
    }
}

/// A monitor that observes nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Monitor for Unwatched {}

/// Forwards polls, but no records.
pub(crate) struct Quiet<'m>(pub(crate) &'m mut dyn Monitor);

impl Monitor for Quiet<'_> {
    fn poll(&mut self) -> Control {
        self.0.poll()
    }

    fn checkpoint(&mut self) -> Option<&mut Checkpoint> {
        self.0.checkpoint()
    }
}

/// The monitor of a solve and the times of its calls.
pub(crate) struct PacedMonitor<'m> {
    monitor: &'m mut dyn Monitor,
    polled: Instant,
    recorded: Instant,
    /// Duration of the last record.
    cost: Duration,
}

impl<'m> PacedMonitor<'m> {
    pub(crate) fn new(monitor: &'m mut dyn Monitor) -> Self {
        let now = Instant::now();
        Self { monitor, polled: now, recorded: now, cost: Duration::ZERO }
    }

    /// Polls and records if it is time.
    pub(super) fn check(&mut self, point: &Point<'_>, ledger: &mut Ledger) -> Control {
        match self.poll() {
            Control::Stop => Control::Stop,
            Control::Continue => self.record_after(PAUSE, point, ledger),
        }
    }

    /// Polls the monitor if it is time.
    pub(crate) fn poll(&mut self) -> Control {
        if self.polled.elapsed() < POLL {
            return Control::Continue;
        }
        self.polled = Instant::now();
        self.monitor.poll()
    }

    /// Records the end of a pass, unless passes end too often.
    pub(super) fn pass(&mut self, point: &Point<'_>, ledger: &mut Ledger) -> Control {
        let pause = match ledger.history.len() {
            0..MANY_RECORDS => Duration::ZERO,
            _ => PAUSE,
        };
        self.record_after(pause, point, ledger)
    }

    fn record_after(&mut self, pause: Duration, point: &Point<'_>, ledger: &mut Ledger) -> Control {
        // The caller's part of a record counts: a callback that sleeps is called less often.
        if self.recorded.elapsed() < pause.max(PAUSE_SHARE * self.cost) {
            return Control::Continue;
        }
        self.record(&point.domain, point.x(), ledger)
    }

    /// Appends a row to the history.
    pub(crate) fn record(&mut self, domain: &Domain<'_>, x: ArrayView2<'_, f64>, ledger: &mut Ledger) -> Control {
        self.recorded = Instant::now();
        // Fresh evaluations may differ from tracked values in the last digits; the history never rises.
        let ceiling = ledger.history.last().map_or(f64::INFINITY, |r| r.objective);
        let record = Record {
            seconds: ledger.seconds(),
            objective: ledger.objective.min(ceiling),
            feasibility: domain.distance(x),
            iterations: ledger.visited,
        };
        ledger.history.push(record);
        let control = self.monitor.record(&record, x);
        self.cost = self.recorded.elapsed();
        control
    }
}

#[cfg(test)]
mod tests;
