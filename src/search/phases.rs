//! Runs a plan, phase by phase.

use ndarray::{Array2, ArrayView2};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::arms::{self, Arm};
use super::candidate::{Candidate, JobResult};
use super::incumbent::Incumbent;
use super::options::Auto;
use super::plan::{From, Plan};
use super::rounds::{Job, Rounds};
use crate::heuristic::Profile;
use crate::objective::default_work;
use crate::pool::decorrelated;
use crate::solver::{Status, WORK_UNIT, solution_work};
use crate::start;
use crate::support::GAIN;

/// Number of concurrent runs if work is counted.
pub(super) const LANES: usize = 4;

/// With an effort of 1: most improvement rounds, the n²r at which one round is affordable, and, if no round is,
/// the share of the remaining work for longer restarts.
const FREE_ROUNDS: f64 = 8.0;
const FREE_WORK: f64 = 4e6;
const FREE_SHARE: f64 = 0.9;

/// Share of its work that a search which ends by itself needs at least: a limit on less work is shared by the phases.
const USUAL: f64 = 0.8;

/// Least work of the last polish without limits, as a fraction of the work of the search or of a work unit,
/// whichever is smaller.
const FINAL_POLISH: f64 = 0.5;

/// Without limits, a descent by exact pairs alone is added if this number of sweeps takes at most this share
/// of the work or this fraction of a work unit.
const DESCENT_SWEEPS: f64 = 20.0;
const DESCENT_SHARE: f64 = 0.5;
const DESCENT_UNITS: f64 = 0.1;

/// The longest restart, and its gain over a shorter run of the same arm.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deepest {
    pub(super) arm: Arm,
    pub(super) objective: f64,
    pub(super) slice: f64,
    pub(super) gain: f64,
}

pub(super) struct Search<'s, 'a> {
    pub(super) rounds: Rounds<'s>,
    pub(super) incumbent: &'s mut Incumbent<'a>,
    pub(super) auto: &'s Auto,
    /// The point from which the search began.
    pub(super) first: Array2<f64>,
    /// True for a search that ends by itself, unless a limit ends it earlier. `work`: the multiply-adds that its phases
    /// share, and `limit`: those of the limit on work.
    pub(super) free: bool,
    pub(super) work: f64,
    limit: f64,
    pub(super) lanes: usize,
    /// The arms of the previous phase, best first, and the work of each run.
    pub(super) ranked: Vec<Arm>,
    pub(super) before: f64,
    /// The lowest objective of the restarts of every arm.
    pub(super) reached: Vec<(Arm, f64)>,
    /// The best arm, if it was repeated with more work.
    pub(super) deepest: Option<Deepest>,
    /// Number of restarts of every heuristic.
    pub(super) made: Vec<usize>,
    /// Number of runs so far.
    index: u64,
    pub(super) rng: Xoshiro256PlusPlus,
}

impl<'s, 'a> Search<'s, 'a> {
    pub(super) fn new(
        rounds: Rounds<'s>,
        incumbent: &'s mut Incumbent<'a>,
        auto: &'s Auto,
    ) -> Self {
        let options = &auto.options;
        let mixed = rounds.whole.profile.mixed;
        let default = default_work(rounds.problem.smooth, rounds.whole.profile.components);
        let own = match mixed {
            true => f64::INFINITY,
            false => options.patience() * default,
        };
        let limit = options.max_work.map_or(f64::INFINITY, |limit| limit as f64);
        let suffices = mixed || limit >= USUAL * own;
        let ends = limit.is_infinite() || options.ends_by_itself() && suffices;
        Self {
            free: rounds.clock.counts() && ends,
            work: if ends && !mixed { own } else { limit },
            limit,
            lanes: match rounds.clock.counts() {
                true => LANES,
                false => rounds.threads.count(),
            },
            ranked: Vec::new(),
            before: 0.0,
            reached: Vec::new(),
            deepest: None,
            first: incumbent.best.x.clone(),
            made: vec![0; rounds.heuristics.len()],
            index: 0,
            rng: Xoshiro256PlusPlus::seed_from_u64(auto.options.seed),
            rounds,
            incumbent,
            auto,
        }
    }

    /// Runs the plan. Without an end of its own, a search that the time limit suffices for comes first, so that
    /// no time limit gives a worse result; the remaining time is for the plan of a time limit.
    pub(super) fn run(mut self) {
        self.run_plan();
        if self.auto.options.ends_by_itself() {
            return;
        }
        let finished = matches!(
            self.incumbent.status,
            Some(Status::Converged | Status::MaxWork)
        );
        let clock = self.rounds.clock;
        if !self.free || clock.limit().is_none() || !finished || self.is_optimal() {
            return;
        }
        self.incumbent.status = None;
        clock.set_counts(false);
        (self.free, self.lanes) = (false, self.rounds.threads.count());
        (self.before, self.deepest) = (0.0, None);
        self.reached.clear();
        self.run_plan();
    }

    fn run_plan(&mut self) {
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
            self.rounds.choose(&rotated, f64::MAX, self.incumbent);
        }
        self.incumbent.profile = Some(self.rounds.whole.profile.clone());
        let affordable = self.affordable(&profile);
        let mut phases = plan.phases;
        if self.free && affordable == 0 && self.auto.plan.is_none() {
            let longer = phases.iter_mut().rfind(|phase| phase.from == From::Scratch);
            longer
                .into_iter()
                .for_each(|phase| phase.share = FREE_SHARE);
        }
        for mut phase in phases {
            self.conclude();
            if self.incumbent.status.is_some() {
                return;
            }
            if self.free && affordable > 0 {
                phase.rounds = phase.rounds.min(affordable);
            }
            match phase.from {
                From::Scratch => self.start(&phase),
                From::Incumbent if self.free && profile.mixed && affordable == 0 => {}
                From::Incumbent if self.auto.options.max_sweeps.is_none() => self.improve(&phase),
                From::Incumbent => {}
            }
        }
        let chosen = self.auto.strategies.is_some() || self.auto.plan.is_some();
        let limited = self.auto.options.max_sweeps.is_some() || self.auto.starts.is_some();
        if self.free && !chosen && !limited {
            self.compare();
        }
        self.finish();
    }

    /// Returns the number of improvement rounds of a search that ends by itself. With an effort of 1, a search with a mixed
    /// signature has restarts alone.
    fn affordable(&self, profile: &Profile) -> usize {
        let patience = self.auto.options.patience();
        let rounds = match profile.mixed {
            true => (patience - 1.0) * arms::mixed_starts(profile, patience) / LANES as f64,
            false => {
                let size = (profile.rows * profile.rows * profile.components) as f64;
                (patience * FREE_WORK / size).min((patience * FREE_ROUNDS).max(FREE_ROUNDS))
            }
        };
        rounds as usize
    }

    /// Makes the points that need no iterations, so that a point exists however short the time limit is.
    fn begin(&mut self) {
        let arms = arms::fitting(&self.rounds, false, true);
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
        self.rounds.run(self.incumbent, &jobs, &froms, slice);
    }

    /// Descends by exact pairs alone, so that no search without limits ends above such a descent. For a
    /// quadratic form the start is a partition if X ≥ 0 and the identity otherwise; the first point of the
    /// search replaces a start that h forbids.
    fn compare(&mut self) {
        self.conclude();
        let problem = self.rounds.problem;
        let (n, r) = self.first.dim();
        let sweep = (n * (n - 1) / 2) as f64 * solution_work(problem.penalty, r);
        let units = (DESCENT_SHARE * self.work).max(DESCENT_UNITS * WORK_UNIT);
        let mixed = self.rounds.whole.profile.mixed;
        if mixed || self.incumbent.status.is_some() || !(DESCENT_SWEEPS * sweep <= units) {
            return;
        }
        let allowed = |x: ArrayView2<'_, f64>| problem.check_point(x).is_ok();
        let own = self.rounds.whole.known.given.is_none() && problem.smooth.quadratic().is_some();
        let start = match problem.penalty.nonnegative() {
            true => start::partition_within((n, r), self.auto.options.seed, allowed),
            false => start::identity(n, r),
        };
        let from = match own && allowed(start.view()) {
            true => start,
            false => self.first.clone(),
        };
        let job = Job {
            plain: true,
            ..Job::taken("descent", true, false)
        };
        self.run_jobs(&[job], &[&from], units);
    }

    /// Returns whether the incumbent is a known optimum.
    fn is_optimal(&self) -> bool {
        let gap = |optimum| self.incumbent.best.objective - optimum;
        let optimum = self.rounds.whole.profile.optimum;
        optimum.is_some_and(|optimum| gap(optimum) <= GAIN * self.incumbent.size())
    }

    /// Ends the search if the incumbent is a known optimum.
    fn conclude(&mut self) {
        if self.is_optimal() {
            self.incumbent.best.stationary = true;
            self.incumbent.status = self.incumbent.status.or(Some(Status::Converged));
        }
    }

    /// Returns the units of the clock left to all lanes together.
    pub(super) fn left(&self) -> f64 {
        match self.rounds.clock.counts() {
            true => (self.work - self.rounds.spent).max(0.0),
            false => self.lanes as f64 * self.rounds.clock.left().unwrap_or(f64::INFINITY),
        }
    }

    /// Returns the units that each of `jobs` jobs may take of `units`.
    pub(super) fn slice(&self, units: f64, jobs: usize) -> f64 {
        let jobs = match self.rounds.clock.counts() {
            true => jobs,
            // Some lanes may be idle in the last round.
            false => self.lanes * jobs.div_ceil(self.lanes),
        };
        units / jobs.max(1) as f64
    }

    pub(super) fn job(&mut self, arm: Arm, improve: bool, polished: bool) -> Job {
        self.index += 1;
        let run = self.made[arm.heuristic];
        if !improve {
            self.made[arm.heuristic] += 1;
        }
        Job {
            heuristic: Some(arm.heuristic),
            restricted: arm.restricted,
            improve,
            run,
            heat: self.rng.random(),
            seed: decorrelated(self.auto.options.seed, self.index),
            ..Job::taken(
                self.rounds.heuristics[arm.heuristic].name(),
                polished,
                false,
            )
        }
    }

    /// Polishes points; with `enough`, on the screened rows if no other row can matter.
    pub(super) fn polish(&mut self, points: &[Candidate], units: f64, enough: bool) {
        let complete = enough && self.rounds.is_complete();
        let sweeps = self.sweeps_left();
        let jobs: Vec<Job> = points
            .iter()
            .map(|point| Job {
                restricted: complete,
                sweeps,
                ..Job::taken(&point.name, true, true)
            })
            .collect();
        let froms: Vec<&Array2<f64>> = points.iter().map(|point| &point.x).collect();
        let slice = self.slice(units, jobs.len());
        self.run_jobs(&jobs, &froms, slice);
    }

    /// Runs jobs, each for `slice` units of the clock, but not beyond the limit on work.
    pub(super) fn run_jobs(
        &mut self,
        jobs: &[Job],
        from: &[&Array2<f64>],
        slice: f64,
    ) -> Vec<Option<JobResult>> {
        let slice = slice.min(self.limit_left() / jobs.len().max(1) as f64);
        self.rounds.run(self.incumbent, jobs, from, slice)
    }

    /// Returns the units left until the limit on work ends a search that ends by itself.
    pub(super) fn limit_left(&self) -> f64 {
        match self.free {
            true => (self.limit - self.rounds.spent).max(0.0),
            false => f64::INFINITY,
        }
    }

    /// Returns the sweeps left until their limit is reached.
    pub(super) fn sweeps_left(&self) -> Option<u64> {
        let n = self.incumbent.best.x.nrows() as u64;
        let made = self.incumbent.iterations.div_ceil(n * (n - 1) / 2);
        let limit = self.auto.options.max_sweeps;
        limit.map(|limit| limit.saturating_sub(made))
    }

    /// Polishes the incumbent a last time and sets the status.
    fn finish(&mut self) {
        self.conclude();
        let limited = self.auto.options.max_sweeps.is_some();
        if self.incumbent.status.is_none() && !self.incumbent.best.stationary && !limited {
            let best = [self.incumbent.best.clone()];
            // Without limits a small problem is polished until it is stationary.
            let least = match self.free {
                true => FINAL_POLISH * self.work.min(WORK_UNIT),
                false => 0.0,
            };
            self.polish(&best, self.left().max(least), false);
        }
        if self.incumbent.status.is_none() {
            let stationary = self.incumbent.best.stationary;
            self.incumbent.status = Some(match self.rounds.clock.counts() {
                _ if stationary && (self.free || limited) => match self.incumbent.best.noisy {
                    true => Status::Noise,
                    false => Status::Converged,
                },
                false => Status::MaxTime,
                true if self.rounds.clock.expired() => Status::MaxTime,
                true if limited && (self.limit.is_infinite() || self.sweeps_left() == Some(0)) => {
                    Status::MaxSweeps
                }
                // The polish ran out of work or of rounds.
                true => Status::MaxWork,
            });
        }
    }
}
