//! Limits of a method, in seconds or in counted work.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Multiply-adds of a matrix product that one core does in about a second.
pub(crate) const RATE: f64 = 1e10;

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

/// The clock of one solve, shared by all its workers.
///
/// Limits are in units: seconds or, if work is counted, multiply-adds of a matrix product. Other operations
/// count as the multiply-adds that take as long. With counted work, results depend neither on the machine's
/// load nor on the number of threads.
#[derive(Debug)]
pub(crate) struct Clock {
    started: Instant,
    limit: Option<f64>,
    counted: AtomicBool,
    stop: AtomicBool,
    /// Seconds used by an earlier process that this one continues, as bits.
    ahead: AtomicU64,
}

impl Clock {
    /// Creates a clock that counts work if there is no time limit.
    pub(crate) fn new(started: Instant, limit: Option<f64>) -> Self {
        Self::with_unit(started, limit, limit.is_none())
    }

    /// Creates a clock that counts work, or seconds if not `counted`.
    pub(crate) fn with_unit(started: Instant, limit: Option<f64>, counted: bool) -> Self {
        Self {
            started,
            limit,
            counted: AtomicBool::new(counted),
            stop: AtomicBool::new(false),
            ahead: AtomicU64::new(0f64.to_bits()),
        }
    }

    /// Returns whether the unit is counted work.
    pub(crate) fn counts(&self) -> bool {
        self.counted.load(Ordering::Relaxed)
    }

    /// Sets whether the unit is counted work; allowed between tasks alone.
    pub(crate) fn set_counts(&self, counts: bool) {
        self.counted.store(counts, Ordering::Relaxed);
    }

    /// Returns the multiply-adds of a unit.
    pub(crate) fn rate(&self) -> f64 {
        if self.counts() { 1.0 } else { RATE }
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

    pub(crate) fn limit(&self) -> Option<f64> {
        self.limit
    }

    /// Returns the units of `work` multiply-adds.
    pub(crate) fn units(&self, work: f64) -> f64 {
        work / self.rate()
    }

    /// Returns the seconds left, if there is a limit.
    pub(crate) fn left(&self) -> Option<f64> {
        self.limit.map(|limit| (limit - self.seconds()).max(0.0))
    }

    /// Asks every worker to end with its present result.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns whether the time limit is reached or the solve was stopped.
    pub(crate) fn expired(&self) -> bool {
        self.stopped() || self.limit.is_some_and(|limit| self.seconds() >= limit)
    }
}

/// Work of one task of a solve, and the share of the time or work limit for this task.
///
/// Every primitive reports its work. Once the clock has expired, primitives return at once with an unfinished
/// result: points are checked before they are accepted.
#[derive(Debug)]
pub(crate) struct TaskWork<'a> {
    pub(crate) clock: &'a Clock,
    spent: AtomicU64,
    until: f64,
    overdue: f64,
    /// True if the task expires at the end of its share, not only with the clock.
    strict: bool,
    /// Units that count as used for every second after `late`, even if less work was done.
    pace: f64,
    late: f64,
}

impl<'a> TaskWork<'a> {
    /// Creates the work of a task that may take `units` units of the clock from now on.
    pub(crate) fn new(clock: &'a Clock, units: f64) -> Self {
        let now = if clock.counts() { 0.0 } else { clock.seconds() };
        Self {
            clock,
            spent: AtomicU64::new(0),
            until: now + units,
            overdue: now + OVERDUE * units,
            strict: false,
            pace: 0.0,
            late: 0.0,
        }
    }

    /// If work is counted, the share of the task also ends after this many seconds, so that a slow processor
    /// does not lose its result to the time limit. Time counts from half of them on: a task that is fast
    /// enough depends on its work alone.
    pub(crate) fn within(self, seconds: f64) -> Self {
        let half = 0.5 * seconds;
        if !self.clock.counts() || !self.until.is_finite() || !half.is_finite() {
            return self;
        }
        Self {
            pace: self.until / half.max(f64::MIN_POSITIVE),
            late: self.clock.seconds() + half,
            ..self
        }
    }

    /// Creates the work of a task that expires at the end of its share.
    pub(crate) fn strict(clock: &'a Clock, units: f64) -> Self {
        let work = Self::new(clock, units);
        Self {
            overdue: work.until,
            strict: true,
            ..work
        }
    }

    /// Runs a part of the task, which expires after `units` units, and charges its work.
    pub(crate) fn part<T>(&self, units: f64, part: impl FnOnce(&TaskWork<'_>) -> T) -> T {
        let work = TaskWork::strict(self.clock, units);
        let result = part(&work);
        self.spend(work.spent());
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

    /// Returns the units that are left.
    pub(crate) fn left(&self) -> f64 {
        (self.until - self.now()).max(0.0)
    }

    /// Returns the units of `work` multiply-adds, at most those that are left.
    pub(crate) fn units(&self, work: f64) -> f64 {
        self.left().min(self.clock.units(work))
    }

    /// Returns the multiply-adds that are left, at the [`RATE`] of a common core if the unit is the second.
    pub(crate) fn left_work(&self) -> f64 {
        self.left() * self.clock.rate()
    }

    /// Returns whether the solve has ended, or a [strict](Self::strict) task has used its share.
    pub(crate) fn expired(&self) -> bool {
        self.clock.expired() || (self.strict && self.now() >= self.until)
    }

    /// Returns whether the task has exceeded its share so much that it must end in the cheapest way.
    pub(crate) fn overdue(&self) -> bool {
        self.expired() || self.now() >= self.overdue
    }

    /// Returns the limit of a method that may use `share` of the units left.
    pub(crate) fn limit(&self, share: f64) -> MethodLimit<'_> {
        let from = self.now();
        MethodLimit {
            work: self,
            from,
            until: from + share * (self.until - from).max(0.0),
        }
    }

    fn now(&self) -> f64 {
        let seconds = self.clock.seconds();
        match self.clock.counts() {
            true => self.spent().max(self.pace * (seconds - self.late)),
            false => seconds,
        }
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
        ((self.work.now() - self.from) / whole).min(1.0)
    }

    /// Returns the part of this limit up to progress `share`.
    pub(crate) fn first(&self, share: f64) -> MethodLimit<'a> {
        MethodLimit {
            until: self.from + share * (self.until - self.from),
            ..*self
        }
    }

    /// Returns the limit from now to progress `to`.
    pub(crate) fn up_to(&self, to: f64) -> MethodLimit<'a> {
        self.first(to).rest()
    }

    /// Returns the limit from now to its end.
    pub(crate) fn rest(&self) -> MethodLimit<'a> {
        MethodLimit {
            from: self.work.now(),
            ..*self
        }
    }
}

#[cfg(test)]
mod tests;
