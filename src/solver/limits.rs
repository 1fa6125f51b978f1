//! When a solve has to end.

use super::ledger::Ledger;
use super::options::Options;
use super::outcome::Status;

/// The limits of a solve.
pub(super) struct Limits<'a>(pub(super) &'a Options);

impl Limits<'_> {
    /// The limits that end a solve before anything is prepared.
    pub(super) fn reached_at_once(&self, ledger: &Ledger) -> Option<Status> {
        if self.0.max_sweeps == Some(0) {
            return Some(Status::MaxSweeps);
        }
        self.out_of_time(ledger).then_some(Status::MaxTime)
    }

    /// The limits that can be reached at any step.
    pub(super) fn reached(&self, ledger: &Ledger) -> Option<Status> {
        let options = self.0;
        if options.target.is_some_and(|t| ledger.objective <= t) {
            return Some(Status::Target);
        }
        if options.max_work.is_some_and(|w| ledger.work >= w as f64) {
            return Some(Status::MaxSweeps);
        }
        self.out_of_time(ledger).then_some(Status::MaxTime)
    }

    fn out_of_time(&self, ledger: &Ledger) -> bool {
        self.0.max_time.is_some_and(|t| ledger.seconds() >= t)
    }

    /// The limit that is looked at after a pass.
    pub(super) fn sweeps_reached(&self, ledger: &Ledger) -> bool {
        self.0.max_sweeps.is_some_and(|m| ledger.sweeps() >= m)
    }
}
