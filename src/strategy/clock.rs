//! How long a method may run: by the clock when there is a time limit, by counted steps otherwise.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The clock of one solve, shared by all its workers.
#[derive(Debug)]
pub(super) struct Clock {
    started: Instant,
    limit: Option<f64>,
    stop: AtomicBool,
}

impl Clock {
    pub(super) fn new(started: Instant, limit: Option<f64>) -> Self {
        Self {
            started,
            limit,
            stop: AtomicBool::new(false),
        }
    }

    pub(super) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    pub(super) fn limit(&self) -> Option<f64> {
        self.limit
    }

    /// Seconds left, if there is a limit.
    pub(super) fn left(&self) -> Option<f64> {
        self.limit.map(|limit| (limit - self.seconds()).max(0.0))
    }

    /// Asks every worker to return what it has.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether the time is up or the solve was stopped.
    pub(super) fn expired(&self) -> bool {
        self.stopped() || self.limit.is_some_and(|limit| self.seconds() >= limit)
    }

    /// A pace from now until `until` (seconds of this clock), or over `steps` without a limit.
    pub(super) fn pace(&self, until: Option<f64>, steps: usize) -> Pace<'_> {
        Pace {
            clock: self,
            from: self.seconds(),
            until: until.filter(|_| self.limit.is_some()),
            steps,
        }
    }
}

/// Progress of one method from 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace<'a> {
    pub(super) clock: &'a Clock,
    from: f64,
    until: Option<f64>,
    steps: usize,
}

impl<'a> Pace<'a> {
    /// Progress after `step` steps; 1 when the time is up.
    pub(super) fn progress(&self, step: usize) -> f64 {
        if self.clock.stopped() {
            return 1.0;
        }
        let ratio = match self.until {
            Some(until) => (self.clock.seconds() - self.from) / (until - self.from).max(1e-6),
            None => step as f64 / self.steps.max(1) as f64,
        };
        ratio.min(1.0)
    }

    /// The part of this pace up to `share`, or the part after it.
    pub(super) fn first(&self, share: f64) -> Pace<'a> {
        Pace {
            until: self
                .until
                .map(|until| self.from + share * (until - self.from)),
            steps: (self.steps as f64 * share).ceil() as usize,
            ..*self
        }
    }

    /// From now, which is progress `from`, to progress `to`.
    pub(super) fn part(&self, from: f64, to: f64) -> Pace<'a> {
        Pace {
            from: self.clock.seconds(),
            until: self.until.map(|until| self.from + to * (until - self.from)),
            steps: (self.steps as f64 * (to - from)).ceil() as usize,
            ..*self
        }
    }

    /// From now to the end, `share` of the steps.
    pub(super) fn rest(&self, share: f64) -> Pace<'a> {
        Pace {
            from: self.clock.seconds(),
            steps: (self.steps as f64 * share).ceil() as usize,
            ..*self
        }
    }
}
