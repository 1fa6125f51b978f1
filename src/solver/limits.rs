//! Limits of a solve.

use super::ledger::Ledger;
use super::options::Options;
use super::outcome::Status;

/// The limits of a solve.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    pub(crate) target: Option<f64>,
    /// Seconds.
    pub(crate) time: Option<f64>,
    pub(crate) work: Option<u64>,
    /// Component gradients of a finite sum, which are its work.
    pub(crate) evaluations: Option<u64>,
    /// Pairs.
    pub(crate) visits: Option<u64>,
    /// Sweeps of pairs, also those in which a verification found a pair that lowers F.
    pub(crate) sweeps: Option<u64>,
}

impl From<&Options> for Limits {
    fn from(options: &Options) -> Self {
        Self {
            target: options.target,
            time: options.max_time,
            work: options.max_work,
            evaluations: None,
            visits: None,
            sweeps: options.max_sweeps,
        }
    }
}

impl Limits {
    /// Returns the status if a limit ends the solve before any preparation: there is no time for a step and for
    /// the evaluation of its point.
    pub(super) fn reached_at_once(&self, ledger: &Ledger) -> Option<Status> {
        if self.sweeps == Some(0) {
            return Some(Status::MaxSweeps);
        }
        self.out_of_time(ledger).then_some(Status::MaxTime)
    }

    /// Returns the status if a limit that applies to every step is reached.
    pub(crate) fn reached(&self, ledger: &Ledger) -> Option<Status> {
        if self.target.is_some_and(|t| ledger.objective <= t) {
            return Some(Status::Target);
        }
        if self.work.is_some_and(|w| ledger.work >= w as f64) {
            return Some(Status::MaxWork);
        }
        if self.evaluations.is_some_and(|e| ledger.work >= e as f64)
            || self.visits.is_some_and(|v| ledger.visited >= v)
            || self.sweeps_reached(ledger)
        {
            return Some(Status::MaxSweeps);
        }
        self.out_of_time(ledger).then_some(Status::MaxTime)
    }

    /// Returns whether there is no more time than the evaluation of the last point takes.
    fn out_of_time(&self, ledger: &Ledger) -> bool {
        !self.allows_evaluations(ledger, 1)
    }

    /// Returns whether the time left exceeds that of `count` evaluations of everything at a point. An evaluation is
    /// indivisible, so none is begun that cannot end in time.
    pub(super) fn allows_evaluations(&self, ledger: &Ledger, count: u32) -> bool {
        let needed = (count * ledger.evaluation).as_secs_f64();
        self.time.is_none_or(|t| ledger.seconds() + needed < t)
    }

    /// Returns whether the limit on sweeps is reached.
    pub(super) fn sweeps_reached(&self, ledger: &Ledger) -> bool {
        self.sweeps.is_some_and(|m| ledger.sweeps() >= m)
    }

    /// Returns the largest used share of time, work and visits.
    pub(crate) fn spent(&self, ledger: &Ledger) -> f64 {
        let share = |limit: Option<u64>, done: f64| limit.map_or(0.0, |limit| done / limit as f64);
        let time = self.time.map_or(0.0, |limit| ledger.seconds() / limit);
        time.max(share(self.work, ledger.work))
            .max(share(self.evaluations, ledger.work))
            .max(share(self.visits, ledger.visited as f64))
    }
}

#[cfg(test)]
mod tests;
