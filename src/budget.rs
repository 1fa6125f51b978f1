//! How long a method may run: by the clock when there is a time limit, by counted work otherwise.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Asked on the way, from any thread, whether to go on.
pub type GoOn<'a> = &'a (dyn Fn() -> bool + Sync);

/// The clock of one solve, shared by all its workers.
#[derive(Debug)]
pub(crate) struct Clock {
    started: Instant,
    limit: Option<f64>,
    stop: AtomicBool,
}

impl Clock {
    pub(crate) fn new(started: Instant, limit: Option<f64>) -> Self {
        Self {
            started,
            limit,
            stop: AtomicBool::new(false),
        }
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    pub(crate) fn limit(&self) -> Option<f64> {
        self.limit
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

/// One task of a solve: its share of the time limit, or of the work where there is none.
///
/// Work is counted in multiply-adds of a matrix product, other operations in what takes as long; so
/// what a task returns depends neither on the machine's load nor on the number of threads. Every
/// primitive says what it has cost. When the clock has expired, primitives return at once, with
/// whatever they have: points are checked before they are accepted.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    pub(crate) clock: &'a Clock,
    spent: AtomicU64,
    budget: u64,
}

impl<'a> Task<'a> {
    pub(crate) fn new(clock: &'a Clock, budget: f64) -> Self {
        Self {
            clock,
            spent: AtomicU64::new(0),
            budget: budget as u64,
        }
    }

    /// Takes note of work that was done.
    pub(crate) fn spend(&self, work: f64) {
        self.spent.fetch_add(work as u64, Ordering::Relaxed);
    }

    fn spent(&self) -> f64 {
        self.spent.load(Ordering::Relaxed) as f64
    }

    /// Work that is left.
    pub(crate) fn left(&self) -> f64 {
        (self.budget as f64 - self.spent()).max(0.0)
    }

    /// Whether nothing that is still to come can be used.
    pub(crate) fn expired(&self) -> bool {
        self.clock.expired()
    }

    /// A pace from now until `until` (seconds of the clock), or without a time limit over `steps`, or
    /// until the task's work is done.
    pub(crate) fn pace(&self, until: Option<f64>, steps: usize) -> Pace<'_> {
        Pace {
            task: self,
            until: match self.clock.limit() {
                Some(limit) => until.unwrap_or(limit),
                None => self.budget as f64,
            },
            from: self.now(),
            steps,
        }
    }

    /// Seconds of the clock, or the work done where there is no time limit.
    fn now(&self) -> f64 {
        match self.clock.limit() {
            Some(_) => self.clock.seconds(),
            None => self.spent(),
        }
    }
}

/// Progress of one method from 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace<'a> {
    pub(crate) task: &'a Task<'a>,
    from: f64,
    until: f64,
    steps: usize,
}

impl<'a> Pace<'a> {
    /// Progress after `step` steps; 1 when the time is up or the work is done.
    pub(crate) fn progress(&self, step: usize) -> f64 {
        if self.task.expired() {
            return 1.0;
        }
        let ratio = (self.task.now() - self.from) / (self.until - self.from).max(1e-6);
        let counted = match self.task.clock.limit() {
            Some(_) => 0.0,
            None => step as f64 / self.steps.max(1) as f64,
        };
        ratio.max(counted).min(1.0)
    }

    /// The part of this pace up to `share`.
    pub(crate) fn first(&self, share: f64) -> Pace<'a> {
        Pace {
            until: self.from + share * (self.until - self.from),
            steps: (self.steps as f64 * share).ceil() as usize,
            ..*self
        }
    }

    /// From now, which is progress `from`, to progress `to`.
    pub(crate) fn part(&self, from: f64, to: f64) -> Pace<'a> {
        Pace {
            from: self.task.now(),
            until: self.from + to * (self.until - self.from),
            steps: (self.steps as f64 * (to - from)).ceil() as usize,
            ..*self
        }
    }

    /// From now to the end, `share` of the steps.
    pub(crate) fn rest(&self, share: f64) -> Pace<'a> {
        Pace {
            from: self.task.now(),
            steps: (self.steps as f64 * share).ceil() as usize,
            ..*self
        }
    }
}
