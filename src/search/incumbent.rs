//! The incumbent, its history, and the monitor. Points are accepted here only.

use ndarray::Array2;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::candidate::{Candidate, Ran};
use super::options::Auto;
use crate::certificate::Prover;
use crate::error::{Error, Result};
use crate::heuristic::Profile;
use crate::limits::Clock;
use crate::manifold::{REPAIR_THRESHOLD, drift, project_onto_pattern, start_constraint};
use crate::numerics;
use crate::pair::Recession;
use crate::problem::Problem;
use crate::report::{AutoSolution, Run};
use crate::solver::{Control, Monitor, Record, Solution, Status};
use crate::threads::Threads;

/// Least seconds between records of an unchanged incumbent, beside the time that recording takes.
const RECORD_SECONDS: f64 = 0.1;

/// Name of the state of a search in a checkpoint.
const STATE: &str = "chains";

/// A proof that a search shall reach, if any, and its monitor.
pub(super) type Watched<'a> = (Option<Prover<'a>>, &'a mut dyn Monitor);

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
    /// Work of the search that counts, and at the last decrease of F that is more than rounding.
    pub(super) spent: f64,
    pub(super) gained: f64,
    /// The limit on the work of the search and of the proof, and that of the search alone.
    limit: f64,
    pub(super) own: f64,
    pub(super) prover: Option<Prover<'a>>,
    pub(super) profile: Option<Profile>,
    pub(super) iterations: u64,
    pub(super) updates: u64,
    /// Rounds of a search under a limit on nonzeros or rows.
    pub(super) rounds: u64,
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
        prover: Option<Prover<'a>>,
        monitor: &'a mut dyn Monitor,
    ) -> Self {
        let k = start_constraint(first.view(), problem.signature);
        let smooth = problem.smooth.value(first.view(), &Threads::serial());
        let penalty = problem.penalty_value(first.view());
        let objective = smooth + penalty;
        let feasibility =
            drift(first.view(), problem.signature, k.view()) + problem.penalty.infeasibility(first.view());
        let mut incumbent = Self {
            constant: problem.constant(k.view()),
            k,
            recession: None,
            error: None,
            problem,
            auto,
            clock,
            monitor,
            best: Candidate::valued(first, (smooth, penalty, feasibility), "first point".to_owned()),
            unrecorded: false,
            history: Vec::new(),
            runs: Vec::new(),
            spent: 0.0,
            gained: 0.0,
            limit: auto.options.max_work.map_or(f64::INFINITY, |limit| limit as f64),
            own: f64::INFINITY,
            prover,
            profile: None,
            iterations: 0,
            updates: 0,
            rounds: 0,
            recorded: (0.0, 0.0),
            status: None,
        };
        if incumbent.record() == Control::Stop {
            incumbent.status = Some(Status::Interrupted);
        } else if auto.options.target.is_some_and(|target| objective <= target) {
            incumbent.status = Some(Status::Target);
        }
        incumbent
    }

    /// Limits the work of the search itself.
    pub(super) fn ending_at(self, own: f64) -> Self {
        Self { own, ..self }
    }

    /// Returns the work that the limits leave.
    pub(super) fn left(&self) -> f64 {
        (self.limit - self.work()).min(self.own - self.spent)
    }

    /// Returns the work of the search and of the proof.
    fn work(&self) -> f64 {
        self.spent + self.prover.as_ref().map_or(0.0, Prover::work)
    }

    /// Returns whether as much work again as up to the last decrease of F, and at least `least`, has brought nothing.
    pub(super) fn is_idle(&self, effort: f64, least: f64) -> bool {
        self.spent - self.gained >= effort * self.gained.max(least)
    }

    /// Begins a round; returns the results of its jobs that a checkpoint holds.
    pub(super) fn recorded(&mut self, jobs: &str, count: usize) -> Vec<Option<Ran>> {
        let mut ran: Vec<Option<Ran>> = (0..count).map(|_| None).collect();
        let file = self.monitor.checkpoint();
        for (seconds, index, run) in file.map_or(Vec::new(), |file| file.group::<(f64, usize, Ran)>(jobs)) {
            if index < count {
                self.clock.advance_to(seconds);
                ran[index] = Some(run);
            }
        }
        ran
    }

    /// Writes the result of job `index` of a round to the checkpoint.
    pub(super) fn keep_result(&mut self, index: usize, ran: &Ran) {
        let sound = ran.0.as_ref().is_none_or(|found| found.candidate.is_sound());
        if let Some(file) = self.monitor.checkpoint().filter(|_| sound) {
            file.add(&(self.clock.seconds(), index, ran));
        }
    }

    /// Charges the work of a part of the search; false, and the end of the search, if the limit does not allow it.
    pub(super) fn charge(&mut self, work: f64) -> bool {
        if work > self.left() + 1.0 {
            self.status = self.status.or(Some(Status::MaxWork));
            return false;
        }
        self.spent += work;
        true
    }

    /// Returns the work of a job that [exceeds](Self::charge) the limit.
    pub(super) fn end(&self) -> f64 {
        self.left() + 2.0
    }

    /// Returns whether the limit on work is reached.
    pub(super) fn is_spent(&self) -> bool {
        self.left() < 1.0
    }

    /// Returns whether a limit on time or work has ended the search, or anything else.
    pub(super) fn is_over(&mut self) -> bool {
        let limit = match () {
            () if self.clock.expired() => Some(Status::MaxTime),
            () => self.is_spent().then_some(Status::MaxWork),
        };
        self.status = self.status.or(limit);
        self.status.is_some()
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
        self.problem.magnitude(self.best.smooth, self.best.penalty, self.constant)
    }

    /// Polls the monitor, and records the incumbent from time to time.
    pub(super) fn poll(&mut self) -> Control {
        let stop = self.monitor.poll() == Control::Stop || self.problem.smooth.has_failed();
        // A slow monitor is called less often, and not at all after the time limit.
        let (recorded, cost) = self.recorded;
        let pause = if self.unrecorded { 0.0 } else { RECORD_SECONDS } + 2.0 * cost;
        let due = self.clock.seconds() - recorded >= pause && !self.clock.expired();
        // A monitor that has stopped the solve is not called again.
        if self.status.is_none() && (stop || due && self.record() == Control::Stop) {
            self.status = Some(Status::Interrupted);
        }
        self.save(false);
        match self.status {
            Some(_) => Control::Stop,
            None => Control::Continue,
        }
    }

    /// Compares a point with the incumbent, and reports the run that made it.
    pub(super) fn accept(&mut self, candidate: &Candidate, run: Run) -> Control {
        self.iterations += candidate.iterations;
        self.updates += candidate.updates;
        self.runs.push(run);
        if let Some((status, recession)) = candidate.failed {
            self.status = self.status.or(Some(status));
            self.recession = self.recession.or(recession);
        }
        if let Some(error) = &candidate.error {
            self.status = self.status.or(Some(Status::Interrupted));
            self.error = self.error.take().or(Some(error.clone()));
        }
        self.take(candidate);
        self.poll()
    }

    /// Accepts a point that was optimised, if it is feasible and lower by more than `least`; returns whether it was
    /// accepted.
    pub(super) fn accept_lower(&mut self, mut x: Array2<f64>, least: f64, name: &str) -> bool {
        let signature = self.problem.signature;
        if drift(x.view(), signature, self.k.view()) > REPAIR_THRESHOLD {
            x = project_onto_pattern(&x, signature, self.k.view());
        }
        let feasibility = drift(x.view(), signature, self.k.view());
        let smooth = self.problem.smooth.value(x.view(), &Threads::serial());
        let values = (smooth, self.problem.penalty_value(x.view()), feasibility);
        let point = Candidate::valued(x, values, name.to_owned());
        let lower = point.objective < self.best.objective - least;
        let accepted = lower && feasibility <= numerics::FEASIBLE;
        if accepted {
            self.updates += 1;
            self.take(&point);
            self.poll();
        }
        accepted
    }

    /// Takes a point that is lower, or as low and stationary.
    fn take(&mut self, candidate: &Candidate) {
        let as_good = candidate.objective == self.best.objective && candidate.stationary;
        let lower = candidate.objective < self.best.objective;
        if lower || as_good && !self.best.stationary {
            if self.best.objective - candidate.objective > numerics::GAIN * self.size() {
                self.gained = self.spent;
            }
            self.best = candidate.clone();
            self.unrecorded |= lower;
        }
        let target = self.auto.options.target;
        self.is_proved();
        if self.status.is_none() && target.is_some_and(|target| self.best.objective <= target) {
            self.status = Some(Status::Target);
        }
    }

    /// Returns the state of a search in a checkpoint, if there is one, and restores its incumbent.
    pub(super) fn resumed<T: DeserializeOwned>(&mut self) -> Option<T> {
        let (seconds, counts, own, (status, spent, gained, raises), state) =
            self.monitor.checkpoint()?.group(STATE).pop()?;
        self.clock.advance_to(seconds);
        (self.spent, self.gained) = (spent, gained);
        self.raise_again(raises);
        (self.rounds, self.iterations, self.updates) = counts;
        (self.best, self.history, self.runs) = own;
        self.status = self.status.or(status);
        Some(state)
    }

    /// Writes the state of a search to the checkpoint, if there is one that is due or `always` is set, unless the clock or
    /// the monitor has cut a round.
    pub(super) fn keep(&mut self, state: &impl Serialize, always: bool) {
        if self.clock.expired() && self.status != Some(Status::MaxWork) {
            return;
        }
        let seconds = self.clock.seconds();
        let Some(file) = self.monitor.checkpoint() else {
            return;
        };
        if !always && !file.is_due() {
            return;
        }
        // The round is whole although a callback stopped the search after it.
        let status = self.status.filter(|&status| status != Status::Interrupted);
        let raises = self.prover.as_ref().map_or(&[][..], Prover::raises);
        let counts = (self.rounds, self.iterations, self.updates);
        let own = (&self.best, &self.history, &self.runs);
        file.replace(&(seconds, counts, own, (status, self.spent, self.gained, raises), state));
        self.save(true);
    }

    /// Ends a search; `ended` is the status unless there is one already.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub(super) fn end_with(mut self, ended: Status) -> Result<AutoSolution> {
        self.status = self.status.or(Some(ended));
        self.finish()
    }

    /// # Errors
    /// If a descent found an error in the objective.
    pub(super) fn finish(mut self) -> Result<AutoSolution> {
        self.prove_to_the_end();
        let natural = !self.clock.expired() && self.status.is_some_and(|s| s != Status::Interrupted);
        let saved = self.monitor.checkpoint();
        if !natural && let Some(saved) = saved.and_then(|file| file.best::<Candidate>(self.best.objective)) {
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
        let (n, work, size) = (self.problem.smooth.rows() as u64, self.work(), self.size());
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
                sweeps: match self.problem.limit {
                    Some(_) => self.rounds,
                    None => self.iterations / (n * (n - 1) / 2),
                },
                updates: self.updates,
                seconds: last.seconds,
                work,
                history: self.history,
                recession: self.recession,
            },
            strategy: self.best.name,
            runs: self.runs,
            profile: self.profile,
            bound: self.prover.map(|prover| prover.finish(objective, size)),
        })
    }
}
