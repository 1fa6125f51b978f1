//! The proof of the incumbent: a lower bound that is raised between two tasks, by as much work as the search has done.

use std::sync::Mutex;

use super::incumbent::Incumbent;
use crate::certificate::{Prover, Raise};
use crate::pool;
use crate::solver::Status;
use crate::threads::locked;

impl Incumbent<'_> {
    /// Returns whether the lower bound proves the incumbent, and sets the status.
    pub(super) fn is_proved(&mut self) -> bool {
        let (objective, size) = (self.best.objective, self.size());
        let proved = self.prover.as_ref().is_some_and(|prover| prover.proves(objective, size));
        if proved {
            self.status = self.status.or(Some(Status::Proved));
        }
        proved
    }

    /// Returns whether time or work is limited. Otherwise the search ends first: it takes seconds, a bound may take hours.
    fn is_limited(&self) -> bool {
        let options = &self.auto.options;
        options.max_time.is_some() || options.max_work.is_some()
    }

    /// Raises the lower bound by as much work as the search has done, each time that its work has doubled.
    pub(super) fn prove(&mut self) {
        let to = self.spent.max(1.0).log2().floor().exp2();
        if self.status.is_none() && self.is_limited() && self.prover.as_ref().is_some_and(|prover| prover.work() < to) {
            self.raise_bound(to);
        }
    }

    /// Raises the lower bound to the end, after a search that has ended by itself, or was ended in an earlier process.
    pub(super) fn prove_to_the_end(&mut self) {
        let ended = self.status;
        let natural = !matches!(ended, None | Some(Status::Interrupted | Status::Target));
        if !natural || self.prover.is_none() {
            return;
        }
        self.status = None;
        // The search itself has no more work, but the limits may leave some.
        self.own = f64::INFINITY;
        if ended != Some(Status::MaxTime) {
            self.clock.restart();
            self.raise_bound(f64::INFINITY);
        }
        let limit = match () {
            () if self.is_proved() => None,
            () if self.clock.expired() => Some(Status::MaxTime),
            () => (self.left() < 1.0).then_some(Status::MaxWork),
        };
        self.status = self.status.or(limit).or(ended);
    }

    /// Raises the lower bound until its work reaches `work` or the limit.
    fn raise_bound(&mut self, work: f64) {
        let spent = self.prover.as_ref().map_or(0.0, Prover::work);
        let to = work.min(spent + self.left());
        if to > spent && !self.is_proved() {
            self.raise((to, self.best.objective, self.size()));
            self.is_proved();
        }
    }

    /// Raises the lower bound as in an earlier process.
    pub(super) fn raise_again(&mut self, raises: Vec<Raise>) {
        raises.into_iter().for_each(|raise| self.raise(raise));
    }

    fn raise(&mut self, raise: Raise) {
        let Some(mut prover) = self.prover.take() else {
            return;
        };
        let (limited, clock, held) = (self.is_limited(), self.clock, Mutex::new(&mut prover));
        pool::run(1, 1, clock, |_| locked(&held).advance(raise, limited, clock), |_| self.poll());
        self.prover = Some(prover);
    }
}
