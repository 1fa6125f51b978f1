//! The orchestrator: a plan is carried out, phase by phase.

use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::arms::{self, Arm, HOPELESS, MIXED_STARTS, MIXED_WORK, STRETCH};
use super::candidate::{Candidate, GAIN};
use super::incumbent::Incumbent;
use super::options::Auto;
use super::plan::{Entries, From, Phase, Plan, Polish};
use super::rounds::{Found, Job, Rounds};
use super::select::Select;
use crate::heuristic::Kind;
use crate::objective::default_work;
use crate::penalty::Penalty;
use crate::pool::decorrelated;
use crate::solver::{Status, WORK_UNIT, solution_work};
use crate::start;

/// Runs side by side where work is counted.
const LANES: usize = 4;

/// Without any limit: rounds of changes at most, and the n²r that they are worth.
const FREE_ROUNDS: usize = 8;
const FREE_WORK: usize = 4_000_000;
const MIXED_ROUNDS: usize = 16;

/// The work of the last polish, in units of that, if it is needed.
const FINAL_POLISH: f64 = 0.5;

/// Rounds without improvement after which the search has converged.
const IDLE_ROUNDS: usize = 40;
const MIXED_IDLE_ROUNDS: usize = 4;

/// Share of a phase for the heuristics where the best points are polished afterwards.
const BEFORE_POLISH: f64 = 0.75;

/// Share of a phase of changes for the first round, and by how much rounds grow that bring nothing.
const FIRST_SLICE: f64 = 0.2;
const GROWTH: f64 = 1.5;

/// By how much the longest run of the best heuristic is exceeded if it begins again, at least and at most (a phase that
/// repeats heuristics is left out below the first), and the part of what its last prolongation gained that the next one
/// is expected to gain.
const DEEPER: (f64, f64) = (1.3, 2.0);
const DIMINISHED: f64 = 0.5;

/// Multiply-adds of a step, for counts, from which one long run with all threads is better than two runs and changes of what
/// they find; the share of what is left that it and its polish get, and its own share of that. Noise around 30 and 60
/// factors, 200 × 8000 and 120 × 9000, r = 10, ρ = 1e-3, 1e-2, 5e-2, 10 s, two threads: lower than with two runs by 3e-6,
/// 2e-6, 3e-5, −3e-5, 9e-5 and 4e-3.
const COSTLY: f64 = 2e7;
const ALONE: f64 = 0.9;

/// Without any limit a descent by exact pairs alone is compared, if so many sweeps are at most this share of the work, or of
/// a unit.
const DESCENT_SWEEPS: f64 = 20.0;
const DESCENT_SHARE: f64 = 0.5;
const DESCENT_UNITS: f64 = 0.1;

/// Relative distance from a known optimum at which a point is optimal.
const OPTIMAL: f64 = 1e-12;

/// The longest run from scratch, and what it gained over a shorter one.
#[derive(Debug, Clone, Copy)]
struct Deepest {
    arm: Arm,
    objective: f64,
    slice: f64,
    gain: f64,
}

pub(super) struct Search<'s, 'a, P: Penalty> {
    rounds: Rounds<'s, P>,
    board: &'s mut Incumbent<'a, P>,
    auto: &'s Auto,
    /// Where the search began.
    first: Array2<f64>,
    /// Work of the whole, if it is counted.
    work: f64,
    lanes: usize,
    /// The arms of the phase before, best first, and the slice that each had.
    ranked: Vec<Arm>,
    before: f64,
    /// The lowest objective of every arm from scratch.
    reached: Vec<(Arm, f64)>,
    /// The best arm from scratch, if it was prolonged.
    deepest: Option<Deepest>,
    /// Runs from scratch of every heuristic.
    made: Vec<usize>,
    /// All runs.
    index: u64,
    rng: Xoshiro256PlusPlus,
}

impl<'s, 'a, P: Penalty> Search<'s, 'a, P> {
    pub(super) fn new(
        rounds: Rounds<'s, P>,
        board: &'s mut Incumbent<'a, P>,
        auto: &'s Auto,
    ) -> Self {
        let free = match rounds.whole.profile.mixed {
            true => f64::INFINITY,
            false => default_work(rounds.problem.smooth, rounds.whole.profile.components),
        };
        Self {
            work: auto.options.max_work.map_or(free, |limit| limit as f64),
            lanes: match rounds.clock.counts() {
                true => LANES,
                false => rounds.threads.count(),
            },
            ranked: Vec::new(),
            before: 0.0,
            reached: Vec::new(),
            deepest: None,
            first: board.best.x.clone(),
            made: vec![0; rounds.heuristics.len()],
            index: 0,
            rng: Xoshiro256PlusPlus::seed_from_u64(auto.options.seed),
            rounds,
            board,
            auto,
        }
    }

    pub(super) fn run(mut self) {
        let (n, r) = self.board.best.x.dim();
        let profile = self.rounds.whole.profile.clone();
        let plan = match (&self.auto.plan, &self.auto.strategies) {
            (Some(plan), _) => plan.clone(),
            (None, Some(names)) if !names.is_empty() => {
                Plan::named(names, self.auto.starts.unwrap_or(names.len()))
            }
            _ => Plan::new(&profile),
        };
        if self.auto.plan.is_none() && self.auto.strategies.is_none() {
            self.begin();
        }
        if profile.optimum.is_none() && !profile.mixed {
            let rotated = self.rounds.whole.known.basis.rotated.clone();
            self.rounds.choose(&rotated, f64::MAX, self.board);
        }
        self.board.profile = Some(self.rounds.whole.profile.clone());
        let free = self.rounds.clock.limit().is_none() && self.auto.options.max_work.is_none();
        let affordable = match profile.mixed {
            true => (MIXED_WORK * MIXED_ROUNDS / (MIXED_STARTS * n * n * r)).clamp(1, MIXED_ROUNDS),
            false => (FREE_WORK / (n * n * r)).min(FREE_ROUNDS),
        };
        for mut phase in plan.phases {
            self.conclude();
            if self.board.status.is_some() {
                return;
            }
            if free {
                phase.rounds = phase.rounds.min(affordable);
            }
            match phase.from {
                From::Scratch => self.start(&phase),
                From::Incumbent if self.auto.options.max_sweeps.is_none() => self.improve(&phase),
                From::Incumbent => {}
            }
        }
        let chosen = self.auto.strategies.is_some() || self.auto.plan.is_some();
        let limited = self.auto.options.max_sweeps.is_some() || self.auto.starts.is_some();
        if free && !chosen && !limited {
            self.compare();
        }
        self.finish(free);
    }

    /// Points that need no steps come first: then there is one however short the time is.
    fn begin(&mut self) {
        let arms = arms::fitting(&self.rounds, false, 0.0);
        let free = arms.iter().filter(|arm| arm.prior.least == 0.0);
        let jobs: Vec<Job> = free
            .map(|arm| Job {
                heuristic: Some(arm.heuristic),
                ..Job::taken(self.rounds.heuristics[arm.heuristic].name(), false, false)
            })
            .collect();
        if jobs.is_empty() {
            return;
        }
        let from = self.first.clone();
        let froms = vec![&from; jobs.len()];
        let slice = arms::units(&self.rounds, 1.0, false);
        self.rounds.run(self.board, &jobs, &froms, slice);
    }

    /// Descends by exact pairs alone, so that no search without limits ends above such a descent: from the identity for a
    /// quadratic form where h allows it, else from the first point.
    fn compare(&mut self) {
        self.conclude();
        let problem = self.rounds.problem;
        let (n, r) = self.first.dim();
        let sweep = (n * (n - 1) / 2) as f64 * solution_work(problem.penalty, r);
        let units = (DESCENT_SHARE * self.work).max(DESCENT_UNITS * WORK_UNIT);
        let mixed = self.rounds.whole.profile.mixed;
        if mixed || self.board.status.is_some() || !(DESCENT_SWEEPS * sweep <= units) {
            return;
        }
        let identity = start::identity(n, r);
        let own = self.rounds.whole.known.given.is_none() && problem.smooth.quadratic().is_some();
        let allowed =
            !problem.penalty.nonnegative() && problem.penalty.infeasibility(identity.view()) == 0.0;
        let from = if own && allowed {
            identity
        } else {
            self.first.clone()
        };
        let job = Job {
            plain: true,
            ..Job::taken("descent", true, false)
        };
        self.rounds.sweeps = None;
        self.rounds.run(self.board, &[job], &[&from], units);
    }

    /// Whether the best point is a known optimum.
    fn conclude(&mut self) {
        let gap = |optimum| self.board.best.objective - optimum;
        let optimum = self.rounds.whole.profile.optimum;
        if optimum.is_some_and(|optimum| gap(optimum) <= OPTIMAL * self.board.size()) {
            self.board.best.settled = true;
            self.board.status = self.board.status.or(Some(Status::Converged));
        }
    }

    /// Units of the clock that are left to all lanes together.
    fn left(&self) -> f64 {
        match self.rounds.clock.counts() {
            true => (self.work - self.rounds.spent).max(0.0),
            false => self.lanes as f64 * self.rounds.clock.left().unwrap_or(f64::INFINITY),
        }
    }

    /// What each of so many jobs may take of `units`.
    fn slice(&self, units: f64, jobs: usize) -> f64 {
        let jobs = match self.rounds.clock.counts() {
            true => jobs,
            // The last round of the lanes may be half empty.
            false => self.lanes * jobs.div_ceil(self.lanes),
        };
        units / jobs.max(1) as f64
    }

    fn job(&mut self, arm: Arm, improve: bool, polished: bool) -> Job {
        self.index += 1;
        let run = self.made[arm.heuristic];
        if !improve {
            self.made[arm.heuristic] += 1;
        }
        Job {
            name: self.rounds.heuristics[arm.heuristic].name().to_owned(),
            polishes: false,
            plain: false,
            heuristic: Some(arm.heuristic),
            restricted: arm.restricted,
            improve,
            polished,
            run,
            heat: self.rng.random(),
            seed: decorrelated(self.auto.options.seed, self.index),
        }
    }

    /// A phase from scratch; where f is not quadratic no start may be better than the given one, which is polished.
    fn start(&mut self, phase: &Phase) {
        let again = matches!(phase.entries, Entries::Best(_));
        let alone = again && self.ranked.first().is_some_and(|&arm| self.is_costly(arm));
        let share = if alone {
            phase.share.max(ALONE)
        } else {
            phase.share
        };
        let units = share * self.left();
        let before = match phase.polish {
            Polish::Best(_) if alone => ALONE,
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
        if count == 0 || again && slice < DEEPER.0 * self.before {
            return;
        }
        // A phase that repeats heuristics gives them the same start and more time.
        if again {
            arms.iter().for_each(|arm| self.made[arm.heuristic] = 0);
        }
        let each = phase.polish == Polish::Each;
        let taken = taken.then(|| Job::taken("given", each || other, false));
        let mut jobs: Vec<Job> = taken.into_iter().collect();
        jobs.extend(arms.iter().map(|&arm| self.job(arm, false, each)));
        let sweeps = self.auto.options.max_sweeps;
        self.rounds.sweeps = sweeps.map(|limit| (limit / (count as u64 + 2)).max(1));
        let from = given.unwrap_or_else(|| self.board.best.x.clone());
        let froms = vec![&from; jobs.len()];
        let found = self.rounds.run(self.board, &jobs, &froms, slice);
        self.before = slice;
        let mut order: Vec<usize> = (0..jobs.len()).filter(|&k| found[k].is_some()).collect();
        let objective = |found: &Found| found.candidate.objective;
        let value = |k: &usize| found[*k].as_ref().map_or(f64::INFINITY, objective);
        order.sort_by(|a, b| value(a).total_cmp(&value(b)));
        self.ranked.clear();
        for &k in order.iter().filter(|&&k| k >= offset) {
            self.reach(arms[k - offset], value(&k), slice);
        }
        if let Polish::Best(count) = phase.polish
            && self.board.status.is_none()
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

    /// Whether an arm has so few steps that changes of what it finds bring less than more of them.
    fn is_costly(&self, arm: Arm) -> bool {
        let profile = self.rounds.profile(arm.restricted);
        profile.kind == Kind::Count && profile.step >= COSTLY
    }

    /// Takes note of what an arm has reached from scratch; best arms first.
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
        let slice = (DEEPER.1 * deepest.slice).min(left / taken);
        let work = slice * taken;
        let promise = DIMINISHED * deepest.gain;
        if !(slice >= DEEPER.0 * deepest.slice && promise * spent > gained * work) {
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

    /// Polishes points, on some rows if these are all that can matter and that is enough.
    fn polish(&mut self, points: &[Candidate], units: f64, enough: bool) {
        let complete = enough && self.rounds.is_complete();
        let jobs: Vec<Job> = points
            .iter()
            .map(|point| Job {
                restricted: complete,
                ..Job::taken(&point.name, true, true)
            })
            .collect();
        let limit = self.auto.options.max_sweeps;
        let n = self.board.best.x.nrows() as u64;
        let made = self.board.iterations.div_ceil(n * (n - 1) / 2);
        self.rounds.sweeps = limit.map(|limit| limit.saturating_sub(made));
        let froms: Vec<&Array2<f64>> = points.iter().map(|point| &point.x).collect();
        let slice = self.slice(units, jobs.len());
        self.rounds.run(self.board, &jobs, &froms, slice);
    }

    /// A phase of changes of the best point.
    fn improve(&mut self, phase: &Phase) {
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

    /// The last polish, and why the search ended.
    fn finish(&mut self, free: bool) {
        self.conclude();
        let limited = self.auto.options.max_sweeps.is_some();
        if self.board.status.is_none() && !self.board.best.settled && !limited {
            let best = [self.board.best.clone()];
            // Without any limit a small problem is brought to rest.
            let least = match free {
                true => FINAL_POLISH * self.work.min(WORK_UNIT),
                false => 0.0,
            };
            self.polish(&best, self.left().max(least), false);
        }
        if self.board.status.is_none() {
            let settled = self.board.best.settled;
            self.board.status = Some(
                match (settled && (free || limited), self.rounds.clock.counts()) {
                    (true, _) => Status::Converged,
                    (false, false) => Status::MaxTime,
                    // Tangent steps and pairs took turns as long as they may.
                    (false, true) => Status::MaxSweeps,
                },
            );
        }
    }
}
