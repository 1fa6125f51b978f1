//! The incumbent of a search under a limit, with its history, the monitor and the checkpoint.

use ndarray::{Array2, ArrayView2};

use super::powered::powered;
use crate::limits::{Clock, TaskWork};
use crate::manifold::{REPAIR_THRESHOLD, drift, project_onto_pattern};
use crate::problem::Problem;
use crate::report::{AutoSolution, Run};
use crate::signature::Signature;
use crate::solver::{Control, Monitor, Options, Record, Solution, Status};
use crate::stored::{Stored, stored};
use crate::threads::Threads;

/// Largest ‖XᵀX − I‖ of a point.
const FEASIBLE: f64 = 1e-11;

/// The incumbent in a checkpoint.
struct Best {
    x: Array2<f64>,
    last: Record,
}

stored!(Best { x, last });

/// The incumbent, its history, and the monitor.
pub(super) struct SparseIncumbent<'a> {
    problem: &'a Problem<'a>,
    clock: &'a Clock,
    options: &'a Options,
    monitor: &'a mut dyn Monitor,
    x: Array2<f64>,
    history: Vec<Record>,
    pub(super) status: Option<Status>,
    pub(super) runs: Vec<Run>,
    pub(super) rounds: u64,
    pub(super) descents: u64,
}

impl<'a> SparseIncumbent<'a> {
    pub(super) fn new(
        problem: &'a Problem<'a>,
        clock: &'a Clock,
        options: &'a Options,
        monitor: &'a mut dyn Monitor,
    ) -> Self {
        Self {
            problem,
            clock,
            options,
            monitor,
            x: Array2::zeros((0, 0)),
            history: Vec::new(),
            status: None,
            runs: Vec::new(),
            rounds: 0,
            descents: 0,
        }
    }

    /// Accepts the best point of a [truncated power method](powered) from `first`, whatever the time limit,
    /// unless the limits allow no work. Returns the status if the solve ends there.
    pub(super) fn accept_powered(
        &mut self,
        first: Array2<f64>,
        limit: f64,
        (threads, work): (&Threads, &TaskWork<'_>),
        truncated: impl Fn(&Array2<f64>) -> Option<Array2<f64>>,
    ) -> Option<Status> {
        let none = match self.options.max_sweeps {
            Some(0) => Some(Status::MaxSweeps),
            _ => (limit == 0.0).then_some(Status::MaxWork),
        };
        if none.is_none() && self.status.is_none() {
            let best = powered(self.problem, first, threads, work, truncated);
            self.accept(best, 0.0);
        }
        let over = self.status.is_some() || self.clock.expired();
        none.or(over.then_some(Status::MaxTime))
    }

    /// Returns the progress of the chains in a checkpoint, if there is one, and restores its incumbent.
    pub(super) fn resumed<T: Stored>(&mut self) -> Option<T> {
        let known = self.monitor.checkpoint()?.group("chains");
        let rest = &mut known.first()?.as_slice();
        let (seconds, counts, own, status) = Stored::load(rest)?;
        let progress = T::load(rest)?;
        self.clock.advance_to(seconds);
        (self.rounds, self.descents) = counts;
        (self.x, self.history, self.runs) = own;
        self.status = status;
        Some(progress)
    }

    /// Writes a checkpoint, if there is one.
    pub(super) fn keep(&mut self, progress: &impl Stored) {
        let Some(file) = self.monitor.checkpoint() else {
            return;
        };
        let mut payload = (self.clock.seconds(), (self.rounds, self.descents)).bytes();
        self.x.store(&mut payload);
        self.history.store(&mut payload);
        self.runs.store(&mut payload);
        // The round is whole although a callback stopped the search after it.
        let status = self.status.filter(|&status| status != Status::Interrupted);
        status.store(&mut payload);
        progress.store(&mut payload);
        file.replace(payload);
        self.save();
    }

    /// Writes the incumbent to the checkpoint, if there is one.
    fn save(&mut self) {
        if let (Some(file), Some(&last)) = (self.monitor.checkpoint(), self.history.last()) {
            file.save_best(
                last.objective,
                &Best {
                    x: self.x.clone(),
                    last,
                },
            );
        }
    }

    pub(super) fn is_due(&mut self) -> bool {
        (self.monitor.checkpoint()).is_some_and(|file| file.is_due())
    }

    pub(super) fn value(&self) -> f64 {
        self.history
            .last()
            .map_or(f64::INFINITY, |row| row.objective)
    }

    pub(super) fn poll(&mut self) -> Control {
        let control = self.monitor.poll();
        if control == Control::Stop {
            self.status = Some(Status::Interrupted);
        }
        control
    }

    /// Accepts a point if it is feasible and lower by more than `least`; returns whether it was accepted.
    pub(super) fn accept(&mut self, mut x: Array2<f64>, least: f64) -> bool {
        let signature = Signature::stiefel(x.nrows());
        let eye = Array2::eye(x.ncols());
        if drift(x.view(), &signature, eye.view()) > REPAIR_THRESHOLD {
            x = project_onto_pattern(&x, &signature, eye.view());
        }
        let value = self.problem.objective(x.view(), &Threads::serial());
        let feasibility = drift(x.view(), &signature, eye.view());
        if !(value < self.value() - least.max(0.0)) || !(feasibility <= FEASIBLE) {
            return false;
        }
        let record = Record {
            seconds: self.clock.seconds(),
            objective: value,
            feasibility,
            iterations: 0,
        };
        self.history.push(record);
        self.x = x;
        if self.options.target.is_some_and(|target| value <= target) {
            self.status = Some(Status::Target);
        }
        if self.monitor.record(&record, ArrayView2::from(&self.x)) == Control::Stop {
            self.status = Some(Status::Interrupted);
        }
        true
    }

    /// Returns the incumbent; `ended` is the status unless the monitor ended the search.
    pub(super) fn finish(mut self, ended: Status, work: f64) -> AutoSolution {
        let status = self.status.unwrap_or(ended);
        let seconds = self.clock.seconds();
        let value = self.value();
        if matches!(status, Status::Interrupted | Status::MaxTime)
            && let Some(Best { x, last }) =
                self.monitor.checkpoint().and_then(|file| file.best(value))
        {
            self.x = x;
            self.history.push(last);
        }
        self.save();
        let penalty_value = self.problem.penalty_value(self.x.view());
        let updates = self.history.len() - 1;
        let last = self.history[updates];
        self.history.push(Record { seconds, ..last });
        let found = |run: &&Run| run.objective <= last.objective;
        let strategy = self
            .runs
            .iter()
            .find(found)
            .map_or("opening", |run| &run.heuristic);
        let strategy = strategy.to_owned();
        let solution = Solution {
            objective: last.objective,
            smooth_value: last.objective - penalty_value,
            penalty_value,
            feasibility: last.feasibility,
            x: self.x,
            status,
            iterations: self.descents,
            sweeps: self.rounds,
            updates: updates as u64,
            seconds,
            work,
            history: self.history,
            recession: None,
        };
        AutoSolution::new(solution, strategy, self.runs)
    }
}
