//! Restart phases: heuristics run concurrently, and the best of them again for longer.

use super::arms::{self, Arm, STRETCH};
use super::candidate::Candidate;
use super::candidate::JobResult;
use super::phases::{Deepest, Search};
use super::plan::{ALONE, Entries, Phase, Polish};
use super::rounds::Job;
use crate::heuristic::Kind;

/// Share of a phase for the heuristics if the best points are polished afterwards.
const BEFORE_POLISH: f64 = 0.75;

/// Restarts are repeated only if the work per run grows by at least this factor.
pub(super) const LONGER: f64 = 1.3;

impl Search<'_, '_> {
    /// Runs a restart phase. For a nonquadratic f the given start is polished too, as no heuristic may find a
    /// better one.
    pub(super) fn start(&mut self, phase: &Phase) {
        let again = matches!(phase.entries, Entries::Best(_));
        let alone = again && self.ranked.first().is_some_and(|&arm| self.is_costly(arm));
        let share = if alone {
            phase.share.max(ALONE)
        } else {
            phase.share
        };
        let units = share * self.left();
        let single = alone || phase.entries == Entries::HighestPriors(1);
        let before = match phase.polish {
            Polish::Best(_) if single => ALONE,
            Polish::Best(_) => BEFORE_POLISH,
            _ => 1.0,
        };
        let slice = |jobs| self.slice(before * units, jobs);
        let mut arms = arms::from_scratch(
            &self.rounds,
            self.auto,
            (&phase.entries, &self.ranked),
            slice,
        );
        if alone {
            arms.truncate(1);
        }
        let given = self.rounds.whole.known.given.clone();
        let asked = |name| matches!(&phase.entries, Entries::Named(named) if named.iter().any(|n| n.0 == name));
        let other = !self.rounds.whole.profile.quadratic;
        let taken =
            given.is_some() && (self.reached.is_empty() || again && other || asked("given"));
        let offset = usize::from(taken);
        let count = offset + arms.len();
        let least = match phase.entries {
            Entries::Fitting => arms
                .iter()
                .map(|arm| arms::need(&self.rounds, arm))
                .fold(0.0, f64::max),
            _ => 0.0,
        };
        let slice = self.slice(before * units, count);
        let slice = slice.max(least.min(STRETCH * slice));
        if count == 0 || again && slice < LONGER * self.before {
            return;
        }
        // Repeated heuristics get the same start and more work.
        if again {
            arms.iter().for_each(|arm| self.made[arm.heuristic] = 0);
        }
        let each = phase.polish == Polish::Each;
        let taken = taken.then(|| Job::taken("given", each || other, false));
        let mut jobs: Vec<Job> = taken.into_iter().collect();
        jobs.extend(arms.iter().map(|&arm| self.job(arm, false, each)));
        let sweeps = self.sweeps_left();
        for (k, job) in (0..).zip(&mut jobs) {
            // If fewer sweeps than jobs are left, the first jobs have one each.
            job.sweeps = sweeps.map(|left| (left / (count as u64 + 2)).max(u64::from(k < left)));
        }
        let from = given.unwrap_or_else(|| self.incumbent.best.x.clone());
        let froms = vec![&from; jobs.len()];
        let found = self.run_jobs(&jobs, &froms, slice);
        self.before = slice;
        let mut order: Vec<usize> = (0..jobs.len()).filter(|&k| found[k].is_some()).collect();
        let objective = |found: &JobResult| found.candidate.objective;
        let value = |k: &usize| found[*k].as_ref().map_or(f64::INFINITY, objective);
        order.sort_by(|a, b| value(a).total_cmp(&value(b)));
        self.ranked.clear();
        for &k in order.iter().filter(|&&k| k >= offset) {
            self.reach(arms[k - offset], value(&k), slice);
        }
        if let Polish::Best(count) = phase.polish
            && self.incumbent.status.is_none()
        {
            let count = if sweeps.is_some() { 1 } else { count };
            let best: Vec<Candidate> = order
                .iter()
                .take(count)
                .filter_map(|&k| found[k].as_ref().map(|f| f.candidate.clone()))
                .collect();
            self.polish(&best, (1.0 - before) * units, true);
        }
    }

    /// Returns whether an iteration is so expensive that more iterations gain more than improvements.
    pub(super) fn is_costly(&self, arm: Arm) -> bool {
        let profile = self.rounds.profile(arm.restricted);
        profile.kind == Kind::Count && profile.is_costly()
    }

    /// Records the objective of an arm; called for the best arm first.
    fn reach(&mut self, arm: Arm, objective: f64, slice: f64) {
        let before = self.reached.iter_mut().find(|(a, _)| *a == arm);
        if self.ranked.is_empty() {
            self.deepest = before.as_ref().map(|(_, before)| Deepest {
                arm,
                objective,
                slice,
                gain: *before - objective,
            });
        }
        if !self.ranked.contains(&arm) {
            self.ranked.push(arm);
        }
        match before {
            Some((_, before)) => *before = before.min(objective),
            None => self.reached.push((arm, objective)),
        }
    }
}
