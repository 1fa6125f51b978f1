//! How long a method may run: by the clock, or by counted work.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Multiply-adds of a matrix product that one core does in about a second.
pub(crate) const RATE: f64 = 1e10;

/// A task that has taken so many times its part is overdue.
const OVERDUE: f64 = 2.0;

/// Asked on the way, from any thread, whether to go on.
pub type GoOn<'a> = &'a (dyn Fn() -> bool + Sync);

/// The clock of one solve, shared by all its workers.
///
/// What methods pace themselves by has a unit: seconds where a time limit decides, work where that is counted. Work
/// is counted in multiply-adds of a matrix product, other operations in what takes as long; so what a
/// method returns depends neither on the machine's load nor on the number of threads.
#[derive(Debug)]
pub(crate) struct Clock {
    started: Instant,
    limit: Option<f64>,
    counted: AtomicBool,
    stop: AtomicBool,
    /// Seconds of an earlier process that this one continues, as bits.
    ahead: AtomicU64,
}

impl Clock {
    /// Work is counted where there is no time limit.
    pub(crate) fn new(started: Instant, limit: Option<f64>) -> Self {
        Self::paced(started, limit, limit.is_none())
    }

    /// Work is counted, or else the time is.
    pub(crate) fn paced(started: Instant, limit: Option<f64>, counted: bool) -> Self {
        Self {
            started,
            limit,
            counted: AtomicBool::new(counted),
            stop: AtomicBool::new(false),
            ahead: AtomicU64::new(0f64.to_bits()),
        }
    }

    /// Whether methods are paced by their work.
    pub(crate) fn counts(&self) -> bool {
        self.counted.load(Ordering::Relaxed)
    }

    /// Lets methods be paced by their work, or by the time; between tasks alone.
    pub(crate) fn set_counts(&self, counts: bool) {
        self.counted.store(counts, Ordering::Relaxed);
    }

    /// Multiply-adds in a unit.
    pub(crate) fn rate(&self) -> f64 {
        if self.counts() { 1.0 } else { RATE }
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64() + f64::from_bits(self.ahead.load(Ordering::Relaxed))
    }

    /// Advances the clock to the given seconds if it shows less, as an earlier process had come so far.
    pub(crate) fn advance_to(&self, seconds: f64) {
        let late = (seconds - self.seconds()).max(0.0);
        let ahead = f64::from_bits(self.ahead.load(Ordering::Relaxed)) + late;
        self.ahead.store(ahead.to_bits(), Ordering::Relaxed);
    }

    pub(crate) fn limit(&self) -> Option<f64> {
        self.limit
    }

    /// The units that `work` multiply-adds take.
    pub(crate) fn units(&self, work: f64) -> f64 {
        work / self.rate()
    }

    /// Seconds left, if there is a limit.
    pub(crate) fn left(&self) -> Option<f64> {
        self.limit.map(|limit| (limit - self.seconds()).max(0.0))
    }

    /// Asks every worker to return what it has.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether the time is up or the solve was stopped.
    pub(crate) fn expired(&self) -> bool {
        self.stopped() || self.limit.is_some_and(|limit| self.seconds() >= limit)
    }
}

/// The work of one task of a solve, and the part of the time or of the work that it may take.
///
/// Every primitive says what it has cost. When the clock has expired, primitives return at once, with
/// whatever they have: points are checked before they are accepted.
#[derive(Debug)]
pub(crate) struct Meter<'a> {
    pub(crate) clock: &'a Clock,
    spent: AtomicU64,
    until: f64,
    overdue: f64,
    /// Whether the task expires at the end of its part, not only with the clock.
    strict: bool,
}

impl<'a> Meter<'a> {
    /// From now for so many units of the clock.
    pub(crate) fn new(clock: &'a Clock, units: f64) -> Self {
        let now = if clock.counts() { 0.0 } else { clock.seconds() };
        Self {
            clock,
            spent: AtomicU64::new(0),
            until: now + units,
            overdue: now + OVERDUE * units,
            strict: false,
        }
    }

    /// The same for a task that expires when it has taken its part.
    pub(crate) fn strict(clock: &'a Clock, units: f64) -> Self {
        let meter = Self::new(clock, units);
        Self {
            overdue: meter.until,
            strict: true,
            ..meter
        }
    }

    /// Takes note of work that was done.
    pub(crate) fn spend(&self, work: f64) {
        self.spent.fetch_add(work as u64, Ordering::Relaxed);
    }

    /// The work done.
    pub(crate) fn spent(&self) -> f64 {
        self.spent.load(Ordering::Relaxed) as f64
    }

    /// Units that are left.
    pub(crate) fn left(&self) -> f64 {
        (self.until - self.now()).max(0.0)
    }

    /// The units of the clock that `work` multiply-adds take, or those that are left if these are fewer.
    pub(crate) fn units(&self, work: f64) -> f64 {
        self.left().min(self.clock.units(work))
    }

    /// What is left in multiply-adds, at the rate of a common core where the clock decides.
    pub(crate) fn left_work(&self) -> f64 {
        self.left() * self.clock.rate()
    }

    /// Whether the solve has ended, or a [strict](Self::strict) task has taken its part.
    pub(crate) fn expired(&self) -> bool {
        self.clock.expired() || (self.strict && self.now() >= self.until)
    }

    /// Whether the task has taken so much more than its part that it is to come to an end in the cheapest way.
    pub(crate) fn overdue(&self) -> bool {
        self.expired() || self.now() >= self.overdue
    }

    /// From now until `share` of what is left.
    pub(crate) fn pace(&self, share: f64) -> Pace<'_> {
        let from = self.now();
        Pace {
            meter: self,
            from,
            until: from + share * (self.until - from).max(0.0),
        }
    }

    fn now(&self) -> f64 {
        match self.clock.counts() {
            true => self.spent(),
            false => self.clock.seconds(),
        }
    }
}

/// Progress of one method from 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace<'a> {
    pub(crate) meter: &'a Meter<'a>,
    from: f64,
    until: f64,
}

impl<'a> Pace<'a> {
    /// 1 when the time is up or the work is done.
    pub(crate) fn progress(&self) -> f64 {
        if self.meter.expired() {
            return 1.0;
        }
        let whole = (self.until - self.from).max(1e-6);
        ((self.meter.now() - self.from) / whole).min(1.0)
    }

    /// The part of this pace up to `share`.
    pub(crate) fn first(&self, share: f64) -> Pace<'a> {
        Pace {
            until: self.from + share * (self.until - self.from),
            ..*self
        }
    }

    /// From now to progress `to`.
    pub(crate) fn part(&self, to: f64) -> Pace<'a> {
        self.first(to).rest()
    }

    /// From now to the end.
    pub(crate) fn rest(&self) -> Pace<'a> {
        Pace {
            from: self.meter.now(),
            ..*self
        }
    }
}
