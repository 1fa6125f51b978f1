//! Improvement phases: rounds of heuristics that start from the incumbent.

use super::arms::{self, Arm};
use super::phases::{Deepest, Search};
use super::plan::{Entries, Phase};
use super::rounds::Job;
use super::scratch::LONGER;
use super::select::Select;
use crate::solver::Status;
use crate::support::GAIN;

/// Rounds without improvement after which the search has converged: in general, for mixed signatures, and in
/// phases without limits on work, time or rounds.
const IDLE_ROUNDS: usize = 40;
const MIXED_IDLE_ROUNDS: usize = 4;
const FREE_IDLE_ROUNDS: usize = 2;

/// Share of an improvement phase for its first round, and factor by which the work per run grows after a
/// round without improvement.
const FIRST_SLICE: f64 = 0.2;
const GROWTH: f64 = 1.5;

/// The best restart is repeated with at most this multiple of its longest run; its expected gain is this
/// fraction of the gain of its last extension.
const DEEPER: f64 = 2.0;
const DIMINISHED: f64 = 0.5;

impl Search<'_, '_> {
    /// Runs an improvement phase.
    pub(super) fn improve(&mut self, phase: &Phase) {
        let begun = self.left();
        let end = match begun.is_finite() {
            true => (1.0 - phase.share) * begun,
            false => 0.0,
        };
        let named = |arm: &Arm| match &phase.entries {
            Entries::Named(named) => {
                let name = self.rounds.heuristics[arm.heuristic].name();
                named.iter().any(|n| n.0 == name)
            }
            _ => true,
        };
        let all = matches!(phase.entries, Entries::Named(_));
        let mut arms = arms::fitting(&self.rounds, true, all);
        arms.retain(named);
        if arms.is_empty() {
            return;
        }
        let idle_rounds = match self.rounds.whole.profile.mixed {
            true => MIXED_IDLE_ROUNDS,
            false if self.free && phase.rounds == usize::MAX => FREE_IDLE_ROUNDS,
            false => IDLE_ROUNDS,
        };
        let priors: Vec<f64> = arms.iter().map(|arm| arm.prior.success).collect();
        let mut select = Select::new(&priors);
        let rounds = phase.rounds;
        let mut slice = match phase.rounds {
            usize::MAX => FIRST_SLICE * (begun - end) / self.lanes as f64,
            rounds => (begun - end) / (rounds.max(1) * self.lanes) as f64,
        };
        let (mut idle, mut done) = (0, 0);
        let (mut gained, mut worked) = (0.0, 0.0);
        while done < rounds && idle < idle_rounds && self.incumbent.status.is_none() {
            let left = (self.left() - end).min(self.limit_left());
            if left.is_finite() && !(left > 0.25 * slice * self.lanes as f64) {
                break;
            }
            if worked > 0.0 && self.deepen(gained, worked, left) {
                continue;
            }
            slice = slice.min(left / self.lanes as f64);
            worked += slice * self.lanes as f64;
            let largest = self.round(&arms, &mut select, slice);
            gained += largest;
            done += 1;
            idle = if largest > 0.0 { 0 } else { idle + 1 };
            if idle > 0 && phase.rounds == usize::MAX {
                slice *= GROWTH;
            }
        }
        if self.incumbent.status.is_none() && idle >= idle_rounds && self.incumbent.best.stationary
        {
            self.incumbent.status = Some(Status::Converged);
        }
    }

    /// Runs one improvement round; returns the largest gain.
    fn round(&mut self, arms: &[Arm], select: &mut Select, slice: f64) -> f64 {
        let best = self.incumbent.best.clone();
        self.rounds.choose(&best.x, best.objective, self.incumbent);
        let chosen = select.choose(self.lanes, &mut self.rng);
        let jobs: Vec<Job> = (chosen.iter())
            .map(|&k| self.job(arms[k], true, true))
            .collect();
        let least = GAIN * self.incumbent.size();
        let begun = self.rounds.clock.seconds();
        let from = vec![&best.x; jobs.len()];
        let found = self.run_jobs(&jobs, &from, slice);
        let mut largest = 0.0f64;
        for (&k, found) in chosen.iter().zip(&found) {
            let Some(found) = found else { continue };
            let gain = best.objective - found.candidate.objective;
            let gain = if gain > least { gain } else { 0.0 };
            let spent = match self.rounds.clock.counts() {
                true => found.work,
                false => found.seconds - begun,
            };
            let slices = match slice.is_finite() {
                true => spent / slice,
                false => 1.0,
            };
            select.note(k, gain, slices);
            largest = largest.max(gain);
        }
        select.end_round(largest);
        largest
    }

    /// Repeats the best restart for longer if its expected gain per work exceeds that of the improvements so
    /// far; returns whether it did.
    fn deepen(&mut self, gained: f64, spent: f64, left: f64) -> bool {
        let Some(deepest) = self.deepest else {
            return false;
        };
        // Counted work allows one run. With a time limit, a second thread makes another run, or shares the
        // products if these are expensive.
        let counts = self.rounds.clock.counts();
        let alone = counts || self.is_costly(deepest.arm);
        let jobs = if alone { 1 } else { self.lanes.min(2) };
        let taken = if counts { 1 } else { self.lanes } as f64;
        let slice = (DEEPER * deepest.slice).min(left / taken);
        let work = slice * taken;
        let promise = DIMINISHED * deepest.gain;
        if !(slice >= LONGER * deepest.slice && promise * spent > gained * work) {
            return false;
        }
        self.made[deepest.arm.heuristic] = 0;
        let jobs: Vec<Job> = (0..jobs)
            .map(|_| self.job(deepest.arm, false, true))
            .collect();
        let from = self.incumbent.best.x.clone();
        let found = self.run_jobs(&jobs, &vec![&from; jobs.len()], slice);
        let reached = found.iter().flatten().map(|f| f.candidate.objective);
        let objective = reached.fold(f64::INFINITY, f64::min);
        self.deepest = Some(Deepest {
            objective: objective.min(deepest.objective),
            slice,
            gain: deepest.objective - objective,
            ..deepest
        });
        true
    }
}
