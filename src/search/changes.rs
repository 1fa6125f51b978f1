//! Phases of changes of the best point, in rounds.

use super::arms::{self, Arm, HOPELESS};
use super::candidate::GAIN;
use super::phases::{Deepest, Search};
use super::plan::{Entries, Phase};
use super::rounds::Job;
use super::scratch::LONGER;
use super::select::Select;
use crate::solver::Status;

/// Rounds without improvement after which the search has converged; the last is that of large problems without any limit.
const IDLE_ROUNDS: usize = 40;
const MIXED_IDLE_ROUNDS: usize = 4;
const FREE_IDLE_ROUNDS: usize = 2;

/// Share of a phase of changes for the first round, and by how much rounds grow that bring nothing.
const FIRST_SLICE: f64 = 0.2;
const GROWTH: f64 = 1.5;

/// The longest run of the best heuristic is made again up to so many times as long, and expected to gain that part of what
/// its last prolongation gained.
const DEEPER: f64 = 2.0;
const DIMINISHED: f64 = 0.5;

impl Search<'_, '_> {
    /// A phase of changes of the best point.
    pub(super) fn improve(&mut self, phase: &Phase) {
        let begun = self.left();
        let end = (1.0 - phase.share) * begun;
        let named = |arm: &Arm| match &phase.entries {
            Entries::Named(named) => {
                let name = self.rounds.heuristics[arm.heuristic].name();
                named.iter().any(|n| n.0 == name)
            }
            _ => true,
        };
        let mut arms = match phase.entries {
            Entries::Named(_) => arms::fitting(&self.rounds, true, 0.0),
            _ => arms::fitting(&self.rounds, true, HOPELESS),
        };
        arms.retain(named);
        if arms.is_empty() {
            return;
        }
        let idle_rounds = match self.rounds.whole.profile.mixed {
            true => MIXED_IDLE_ROUNDS,
            false if self.free && phase.rounds == usize::MAX => FREE_IDLE_ROUNDS,
            false => IDLE_ROUNDS,
        };
        let hopes: Vec<f64> = arms.iter().map(|arm| arm.prior.hope).collect();
        let mut select = Select::new(&hopes);
        let rounds = phase.rounds;
        let mut slice = match phase.rounds {
            usize::MAX => FIRST_SLICE * (begun - end) / self.lanes as f64,
            rounds => (begun - end) / (rounds.max(1) * self.lanes) as f64,
        };
        let (mut idle, mut done) = (0, 0);
        let (mut gained, mut worked) = (0.0, 0.0);
        while done < rounds && idle < idle_rounds && self.board.status.is_none() {
            let left = self.left() - end;
            if !(left > 0.25 * slice * self.lanes as f64) {
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
        if self.board.status.is_none() && idle >= idle_rounds && self.board.best.settled {
            self.board.status = Some(Status::Converged);
        }
    }

    /// One round of changes of the best point; returns the largest gain.
    fn round(&mut self, arms: &[Arm], select: &mut Select, slice: f64) -> f64 {
        let best = self.board.best.clone();
        self.rounds.choose(&best.x, best.objective, self.board);
        let chosen = select.choose(self.lanes, &mut self.rng);
        let jobs: Vec<Job> = (chosen.iter())
            .map(|&k| self.job(arms[k], true, true))
            .collect();
        let least = GAIN * self.board.size();
        let begun = self.rounds.clock.seconds();
        let from = vec![&best.x; jobs.len()];
        let found = self.rounds.run(self.board, &jobs, &from, slice);
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

    /// Begins again with the arm whose longest run gained most over a shorter one, for longer, if that promises more
    /// for its work than changes of the best point have brought; returns whether it did.
    fn deepen(&mut self, gained: f64, spent: f64, left: f64) -> bool {
        let Some(deepest) = self.deepest else {
            return false;
        };
        // Counted work is for one run. Where the clock decides another lane makes another one, or helps with the products
        // if these are long.
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
        let from = self.board.best.x.clone();
        let found = self
            .rounds
            .run(self.board, &jobs, &vec![&from; jobs.len()], slice);
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
