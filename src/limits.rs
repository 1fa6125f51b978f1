//! Limits of a solve and of its tasks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The work that one core does in about a second, in multiply-adds of a matrix product; other operations
/// count by the time they take.
pub const WORK_UNIT: f64 = 1e10;

/// Time between polls of the monitor.
pub(crate) const POLL: Duration = Duration::from_millis(20);

/// The pause after a record, or after writing a file, is at least this multiple of its duration.
pub(crate) const PAUSE_SHARE: u32 = 20;

/// Multiple of its share at which a task is overdue.
const OVERDUE: f64 = 2.0;

/// Callback for any thread: whether a computation may continue.
pub type GoOn<'a> = &'a (dyn Fn() -> bool + Sync);

/// Decision of a monitor: continue or stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Go on.
    Continue,
    /// Stop, with the status [`Status::Interrupted`](crate::Status::Interrupted).
    Stop,
}

/// The clock of one solve, shared by all its workers. A time limit ends a computation and decides nothing else.
#[derive(Debug)]
pub(crate) struct Clock {
    started: Instant,
    limit: Option<f64>,
    stop: AtomicBool,
    /// Seconds used by an earlier process that this one continues, as bits.
    ahead: AtomicU64,
}

impl Clock {
    pub(crate) fn new(started: Instant, limit: Option<f64>) -> Self {
        Self { started, limit, stop: AtomicBool::new(false), ahead: AtomicU64::new(0f64.to_bits()) }
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64() + f64::from_bits(self.ahead.load(Ordering::Relaxed))
    }

    /// Advances the clock to at least the given seconds, which an earlier process has used.
    pub(crate) fn advance_to(&self, seconds: f64) {
        let late = (seconds - self.seconds()).max(0.0);
        let ahead = f64::from_bits(self.ahead.load(Ordering::Relaxed)) + late;
        self.ahead.store(ahead.to_bits(), Ordering::Relaxed);
    }

    /// Returns the seconds left, if there is a limit.
    pub(crate) fn left(&self) -> Option<f64> {
        self.limit.map(|limit| (limit - self.seconds()).max(0.0))
    }

    /// Asks every worker to end with its present result.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Lets workers begin again, after a stop.
    pub(crate) fn restart(&self) {
        self.stop.store(false, Ordering::Relaxed);
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns whether the time limit is reached or the solve was stopped.
    pub(crate) fn expired(&self) -> bool {
        self.stopped() || self.limit.is_some_and(|limit| self.seconds() >= limit)
    }
}

/// Work of one task of a solve, in multiply-adds of a matrix product, and its slice. Other operations count as the
/// multiply-adds that take as long.
///
/// Every primitive reports its work. A task ends by itself when its slice is used. Once the task has expired, primitives
/// return at once with an unfinished result, which is dropped.
#[derive(Debug)]
pub(crate) struct TaskWork<'a> {
    pub(crate) clock: &'a Clock,
    spent: AtomicU64,
    slice: f64,
    /// Work beyond which the task expires; what is done with exactly this work counts.
    end: f64,
}

impl<'a> TaskWork<'a> {
    /// Creates the work of a task that expires with the clock alone.
    pub(crate) fn new(clock: &'a Clock, slice: f64) -> Self {
        Self::ending(clock, slice, f64::INFINITY)
    }

    /// Creates the work of a task that expires at `end`.
    pub(crate) fn ending(clock: &'a Clock, slice: f64, end: f64) -> Self {
        Self { clock, spent: AtomicU64::new(0), slice, end }
    }

    /// Runs a part of the task, which expires after `work` or at the end of the task, and charges its work.
    pub(crate) fn part<T>(&self, work: f64, part: impl FnOnce(&TaskWork<'_>) -> T) -> T {
        let own = TaskWork::ending(self.clock, work, work.min(self.end - self.spent()));
        let result = part(&own);
        self.spend(own.spent());
        result
    }

    /// Adds work that was done.
    pub(crate) fn spend(&self, work: f64) {
        self.spent.fetch_add(work as u64, Ordering::Relaxed);
    }

    /// Returns the work done.
    pub(crate) fn spent(&self) -> f64 {
        self.spent.load(Ordering::Relaxed) as f64
    }

    /// Returns the multiply-adds left of the slice.
    pub(crate) fn left(&self) -> f64 {
        (self.slice - self.spent()).max(0.0)
    }

    /// Returns whether the solve has ended, or the task is past its end.
    pub(crate) fn expired(&self) -> bool {
        self.clock.expired() || self.spent() > self.end
    }

    /// Returns whether the task has exceeded its slice so much that it must end in the cheapest way.
    pub(crate) fn overdue(&self) -> bool {
        self.expired() || self.spent() >= OVERDUE * self.slice
    }

    /// Returns the limit of a method that may use `share` of the work left.
    pub(crate) fn limit(&self, share: f64) -> MethodLimit<'_> {
        let from = self.spent();
        MethodLimit { work: self, from, until: from + share * self.left() }
    }
}

/// The part of the limit of a task that one method may use; its progress is from 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MethodLimit<'a> {
    pub(crate) work: &'a TaskWork<'a>,
    from: f64,
    until: f64,
}

impl<'a> MethodLimit<'a> {
    /// Returns the progress; 1 if the limit is reached.
    pub(crate) fn progress(&self) -> f64 {
        if self.work.expired() {
            return 1.0;
        }
        let whole = (self.until - self.from).max(1e-6);
        ((self.work.spent() - self.from) / whole).min(1.0)
    }

    /// Returns the part of this limit up to progress `share`.
    pub(crate) fn first(&self, share: f64) -> MethodLimit<'a> {
        MethodLimit { until: self.from + share * (self.until - self.from), ..*self }
    }

    /// Returns the limit from now to progress `to`.
    pub(crate) fn up_to(&self, to: f64) -> MethodLimit<'a> {
        self.first(to).rest()
    }

    /// Returns the limit from now to its end.
    pub(crate) fn rest(&self) -> MethodLimit<'a> {
        MethodLimit { from: self.work.spent(), ..*self }
    }
}

#[cfg(test)]
mod tests;
