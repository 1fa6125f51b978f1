//! The incumbent, its history, and the monitor. Points are accepted here only.

use ndarray::Array2;

use super::candidate::{Candidate, Ran};
use super::options::Auto;
use crate::error::{Error, Result};
use crate::heuristic::Profile;
use crate::limits::Clock;
use crate::manifold::{drift, start_constraint};
use crate::pair::Recession;
use crate::pool::Arrival;
use crate::problem::Problem;
use crate::report::{AutoSolution, Run};
use crate::solver::{Control, Monitor, Record, Solution, Status};
use crate::stored::Stored;
use crate::threads::Threads;

/// Least seconds between records of an unchanged incumbent, beside the time that recording takes.
const RECORD_SECONDS: f64 = 0.1;

/// The best feasible point so far, the history, and the monitor.
pub(super) struct Incumbent<'a> {
    pub(super) problem: &'a Problem<'a>,
    pub(super) auto: &'a Auto,
    pub(super) clock: &'a Clock,
    pub(super) monitor: &'a mut dyn Monitor,
    /// The constraint matrix XᵀJX.
    pub(super) k: Array2<f64>,
    pub(super) best: Candidate,
    /// Constant part of f on the constraint, see [`Problem::constant`].
    pub(super) constant: f64,
    /// True if the incumbent is not in the history yet.
    pub(super) unrecorded: bool,
    pub(super) history: Vec<Record>,
    pub(super) runs: Vec<Run>,
    /// Work of preparations, in multiply-adds.
    pub(super) prepared: f64,
    pub(super) profile: Option<Profile>,
    pub(super) iterations: u64,
    pub(super) updates: u64,
    /// Time of the last record and the seconds that recording took.
    pub(super) recorded: (f64, f64),
    pub(super) status: Option<Status>,
    pub(super) recession: Option<Recession>,
    pub(super) error: Option<Error>,
}

impl<'a> Incumbent<'a> {
    pub(super) fn new(
        problem: &'a Problem<'a>,
        auto: &'a Auto,
        clock: &'a Clock,
        first: Array2<f64>,
        monitor: &'a mut dyn Monitor,
    ) -> Self {
        let k = start_constraint(first.view(), problem.signature);
        let smooth = problem.smooth.value(first.view(), &Threads::serial());
        let penalty = problem.penalty.value(first.view());
        let objective = smooth + penalty;
        let feasibility = drift(first.view(), problem.signature, k.view())
            + problem.penalty.infeasibility(first.view());
        let mut incumbent = Self {
            constant: problem.constant(k.view()),
            k,
            recession: None,
            error: None,
            problem,
            auto,
            clock,
            monitor,
            best: Candidate::valued(
                first,
                (smooth, penalty, feasibility),
                "first point".to_owned(),
            ),
            unrecorded: false,
            history: Vec::new(),
            runs: Vec::new(),
            prepared: 0.0,
            profile: None,
            iterations: 0,
            updates: 0,
            recorded: (0.0, 0.0),
            status: None,
        };
        if incumbent.record() == Control::Stop {
            incumbent.status = Some(Status::Interrupted);
        } else if auto
            .options
            .target
            .is_some_and(|target| objective <= target)
        {
            incumbent.status = Some(Status::Target);
        }
        incumbent
    }

    /// With a time limit, takes the incumbent of a checkpoint if its F is lower, as the search may differ
    /// from the one in the file. With counted work it takes nothing, so that the result is reproducible.
    pub(super) fn take_saved(&mut self) {
        if self.clock.counts() {
            return;
        }
        let saved = self
            .monitor
            .checkpoint()
            .and_then(|file| file.best(self.best.objective));
        if let Some(saved) = saved {
            self.best = saved;
        }
    }

    /// Begins a round; returns the results of its jobs that a checkpoint holds.
    pub(super) fn recorded(&mut self, jobs: &str, count: usize) -> Vec<Option<Ran>> {
        let mut ran: Vec<Option<Ran>> = (0..count).map(|_| None).collect();
        let file = self.monitor.checkpoint();
        for payload in file.map_or(Vec::new(), |file| file.group(jobs)) {
            if let Some((seconds, index, run)) = <(f64, usize, Ran)>::load(&mut payload.as_slice())
                && index < count
            {
                self.clock.advance_to(seconds);
                ran[index] = Some(run);
            }
        }
        for (found, _) in ran.iter().flatten() {
            self.watch(found.as_ref().map(|found| &found.candidate));
        }
        ran
    }

    /// Compares a result with the incumbent, and writes it to the checkpoint.
    pub(super) fn arrive(&mut self, arrival: Option<Arrival<'_, Ran>>) -> Control {
        let found = arrival.as_ref().and_then(|run| run.value.0.as_ref());
        let control = self.watch(found.map(|found| &found.candidate));
        if let Some(Arrival {
            index,
            value,
            whole,
        }) = arrival
            && whole
            && control == Control::Continue
            && found.is_none_or(|found| found.candidate.is_sound())
            && let Some(file) = self.monitor.checkpoint()
        {
            let mut payload = (self.clock.seconds(), index).bytes();
            value.store(&mut payload);
            file.add(payload);
        }
        self.save(false);
        control
    }

    /// Writes the checkpoint if it is due or `always` is set.
    fn save(&mut self, always: bool) {
        if let Some(file) = self.monitor.checkpoint()
            && (always || file.is_due())
        {
            file.save_best(self.best.objective, &self.best);
        }
    }

    fn record(&mut self) -> Control {
        self.unrecorded = false;
        let begun = self.clock.seconds();
        let record = Record {
            seconds: begun,
            objective: self.best.objective,
            feasibility: self.best.feasibility,
            iterations: self.iterations,
        };
        self.history.push(record);
        let control = self.monitor.record(&record, self.best.x.view());
        let ended = self.clock.seconds();
        self.recorded = (ended, ended - begun);
        control
    }

    /// Returns the magnitude of F at the incumbent.
    pub(super) fn size(&self) -> f64 {
        self.problem
            .magnitude(self.best.smooth, self.best.penalty, self.constant)
    }

    /// Compares a new point with the incumbent, and polls the monitor.
    pub(super) fn watch(&mut self, candidate: Option<&Candidate>) -> Control {
        let mut control = self.monitor.poll();
        if self.problem.smooth.has_failed() {
            control = Control::Stop;
        }
        if let Some(candidate) = candidate {
            self.iterations += candidate.iterations;
            self.updates += candidate.updates;
            if candidate.objective < self.best.objective {
                self.best = candidate.clone();
                self.unrecorded = true;
            }
        }
        // A slow monitor is called less often, and not at all after the time limit.
        let (recorded, cost) = self.recorded;
        let pause = if self.unrecorded { 0.0 } else { RECORD_SECONDS } + 2.0 * cost;
        let due = self.clock.seconds() - recorded >= pause;
        // A monitor that has stopped the solve is not called again.
        if self.status.is_none() && due && !self.clock.expired() && self.record() == Control::Stop {
            control = Control::Stop;
        }
        if control == Control::Stop && self.status.is_none() {
            self.status = Some(Status::Interrupted);
        }
        // With counted work, the target is checked after a round: the order of arrival must not matter.
        if !self.clock.counts() {
            self.aim();
        }
        if self.status.is_some() {
            Control::Stop
        } else {
            Control::Continue
        }
    }

    /// Stops the search if the target is reached.
    fn aim(&mut self) {
        let target = self.auto.options.target;
        if self.status.is_none() && target.is_some_and(|target| self.best.objective <= target) {
            self.status = Some(Status::Target);
        }
    }

    /// Sets the incumbent to the best of `before` and the points of a round. Ties and failures are decided by
    /// index, not by the order of arrival.
    pub(super) fn accept_round<'c>(
        &mut self,
        before: Candidate,
        found: impl Iterator<Item = &'c Candidate> + Clone,
    ) {
        if let Some((status, recession)) = found.clone().find_map(|found| found.failed) {
            self.status = self.status.or(Some(status));
            self.recession = self.recession.or(recession);
        }
        if let Some(error) = found.clone().find_map(|found| found.error.clone()) {
            self.status = self.status.or(Some(Status::Interrupted));
            self.error = self.error.take().or(Some(error));
        }
        self.best = found.fold(before, |best, candidate| {
            let as_good = candidate.objective == best.objective && candidate.stationary;
            match candidate.objective < best.objective || (as_good && !best.stationary) {
                true => candidate.clone(),
                false => best,
            }
        });
        self.aim();
    }

    /// # Errors
    /// If a descent found an error in the objective.
    pub(super) fn finish(mut self) -> Result<AutoSolution> {
        let natural = self.clock.counts()
            && !self.clock.expired()
            && self.status.is_some_and(|s| s != Status::Interrupted);
        let saved = self.monitor.checkpoint();
        if !natural
            && let Some(saved) = saved.and_then(|file| file.best::<Candidate>(self.best.objective))
        {
            self.best = saved;
        }
        self.save(true);
        if let Some(error) = self.error {
            return Err(error);
        }
        let objective = self.best.objective;
        let last = Record {
            seconds: self.clock.seconds(),
            objective,
            feasibility: self.best.feasibility,
            iterations: self.iterations,
        };
        for record in &mut self.history {
            record.objective = record.objective.max(objective);
        }
        self.history.push(last);
        let n = self.problem.smooth.rows() as u64;
        let status = self.status.unwrap_or(match self.auto.options.max_sweeps {
            Some(0) => Status::MaxSweeps,
            _ => Status::MaxTime,
        });
        Ok(AutoSolution {
            solution: Solution {
                x: self.best.x,
                objective,
                smooth_value: self.best.smooth,
                penalty_value: self.best.penalty,
                feasibility: self.best.feasibility,
                status,
                iterations: self.iterations,
                sweeps: self.iterations / (n * (n - 1) / 2),
                updates: self.updates,
                seconds: last.seconds,
                work: self.prepared + self.runs.iter().map(|run| run.work).sum::<f64>(),
                history: self.history,
                recession: self.recession,
            },
            strategy: self.best.name,
            runs: self.runs,
            profile: self.profile,
        })
    }
}
