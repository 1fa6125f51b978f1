//! The search on the Stiefel manifold: starts, the best of them polished, the best point perturbed.

use ndarray::Array2;

use super::board::Board;
use super::candidate::{Candidate, GAIN};
use super::options::Strategy;
use super::starts::{Shared, prepare};
use super::workers;
use crate::budget::Task;
use crate::objective::QuadraticForm;
use crate::penalty::Penalty;
use crate::solver::Status;
use crate::threads::Threads;

/// Share of the time limit for the starts of several rounds and of a single one, for those of ℓ0 that
/// perturbations improve soon, and until the end of the perturbations.
const STARTS_SHARE: f64 = 0.55;
const SINGLE_SHARE: f64 = 0.8;
const FIRST_SHARE: f64 = 0.22;
const PERTURB_SHARE: f64 = 0.93;

/// Least seconds that a start is worth.
const START_SECONDS: f64 = 2.5;

/// Without a time limit: most rounds of perturbation, their width, and the n²r that they are worth.
const FREE_ROUNDS: usize = 8;
const FREE_WIDTH: usize = 4;
const FREE_WORK: usize = 4_000_000;

/// Work without a time limit, see [`Task`]: with few rows, per row of more, and at most.
const WORK: f64 = 2e10;
const WORK_ROWS: f64 = 1000.0;
const MOST_WORK: f64 = 6e10;

/// Shares of it for the starts, for the polish of the best ones, and for the perturbations.
const STARTS_WORK: f64 = 0.5;
const POLISH_WORK: f64 = 0.25;
const PERTURB_WORK: f64 = 0.25;

/// Rounds of perturbation without improvement after which the solve counts as converged.
const IDLE_ROUNDS: usize = 40;

/// Relative distance from the best start within which a method is worth repeating.
const NEAR: f64 = 0.02;

/// Relative distance from the best point within which a perturbed one is polished.
const PROMISING: f64 = 1e-2;

/// Relative distance from a known optimum at which a point is optimal.
const OPTIMAL: f64 = 1e-12;

/// Minimises from all starts; `board` holds the first point.
pub(super) fn search<P: Penalty>(
    board: &mut Board<'_, P>,
    form: &dyn QuadraticForm,
    x0: Option<&Array2<f64>>,
    threads: &Threads,
) {
    let (problem, auto, clock) = (board.problem, board.auto, board.clock);
    let preparation = Task::new(clock, f64::INFINITY);
    let prepared = workers::run(
        1,
        1,
        clock,
        |_| prepare((problem, form), x0.cloned(), threads, &preparation),
        |_| board.watch(None),
    );
    let Some((oracle, setup)) = prepared.into_iter().flatten().flatten().next() else {
        if board.status.is_none() && !clock.expired() {
            // Nothing can be compared: products overflow.
            board.status = Some(Status::MaxSweeps);
        }
        return;
    };
    let shared = Shared {
        problem,
        oracle,
        auto,
        clock,
        setup: &setup,
    };
    let n = problem.smooth.rows() as f64;
    let work = (WORK * (n / WORK_ROWS).max(1.0)).min(MOST_WORK);
    let mut search = Search {
        board,
        shared: &shared,
        workers: threads.count(),
        work: auto.options.max_work.map_or(work, |limit| limit as f64),
    };
    let starts = search.schedule();
    if search.is_optimal() {
        search.board.best.settled = true;
        search.board.status = Some(Status::Converged);
        return;
    }
    let found = search.start(&starts);
    if search.board.status.is_none() {
        search.polish(found);
    }
    if search.board.status.is_none() {
        search.perturb();
    }
}

/// The starts that are made, in order.
struct Starts {
    tasks: Vec<Strategy>,
    /// Seconds of each, if there is a time limit.
    seconds: Vec<Option<f64>>,
    /// Sweeps of each, if they are limited.
    sweeps: Option<u64>,
}

struct Search<'s, 'a, P: Penalty> {
    board: &'s mut Board<'a, P>,
    shared: &'s Shared<'s, P>,
    workers: usize,
    work: f64,
}

/// Ways to perturb, by what they have brought.
struct Ways {
    ways: Vec<Strategy>,
    /// (improvements, attempts), old ones counting less.
    record: Vec<(f64, f64)>,
}

impl Ways {
    fn rate(&self, k: usize) -> f64 {
        self.record[k].0 / self.record[k].1
    }

    /// The ways of one round, the most promising first.
    fn chosen(&self, width: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.ways.len()).collect();
        order.sort_by(|&a, &b| self.rate(b).total_cmp(&self.rate(a)).then(a.cmp(&b)));
        let promising = order.iter().filter(|&&k| self.rate(k) > 0.15).count();
        (0..width).map(|w| order[w % promising.max(1)]).collect()
    }

    fn note(&mut self, k: usize, gained: bool) {
        let (improvements, attempts) = &mut self.record[k];
        *improvements = 0.7 * *improvements + if gained { 1.0 } else { 0.0 };
        *attempts = 0.7 * *attempts + 1.0;
    }
}

impl<P: Penalty> Search<'_, '_, P> {
    /// Whether the best point is a known optimum.
    fn is_optimal(&self) -> bool {
        let gap = |optimum| self.board.best.objective - optimum;
        let optimum = self.shared.setup.optimum;
        optimum.is_some_and(|optimum| gap(optimum) <= OPTIMAL * self.board.size())
    }

    /// Which starts are made, and what each may take.
    fn schedule(&self) -> Starts {
        let (shared, workers) = (self.shared, self.workers);
        let (auto, clock) = (shared.auto, shared.clock);
        let penalty = shared.problem.penalty;
        let counts = penalty.count().is_some();
        let sparsifies = penalty.sparsifies();
        let mut plan = auto.strategies.clone().unwrap_or_else(|| shared.plan());
        if plan.is_empty() {
            plan = shared.plan();
        }
        // One round for a dense solution: for ℓ1 one slow descent is better than several quick ones, for
        // ℓ0 what comes out is best improved by splitting again.
        let once =
            sparsifies && shared.setup.dense && auto.starts.is_none() && clock.limit().is_some();
        let room = clock.left().map(|left| {
            let each = STARTS_SHARE * left / START_SECONDS;
            // One core tries two kinds of start as well, but where half the time is too short; more
            // cores always try three for ℓ1.
            let least = match sparsifies && !counts {
                true if workers == 1 => 1,
                true if once => 3,
                false if once => 1,
                _ => 2,
            };
            let fitting = workers * if once { 1 } else { each as usize };
            fitting.max(workers).max(least)
        });
        let count = auto.starts.unwrap_or_else(|| match room {
            Some(room) => room.clamp(workers, plan.len().max(workers)),
            None => plan.len(),
        });
        let rounds = if once { 1 } else { count.div_ceil(workers) };
        let share = if rounds == 1 {
            SINGLE_SHARE
        } else {
            STARTS_SHARE
        };
        let each = clock.left().map(|left| {
            let each = share * left / rounds as f64;
            if counts && rounds == 1 {
                each.min(START_SECONDS.max(FIRST_SHARE * left))
            } else {
                each
            }
        });
        // In a single round the last worker divides its time among the tasks that are left.
        let crowd = if once {
            (count + 1).saturating_sub(workers).max(1)
        } else {
            1
        };
        let mut tasks: Vec<Strategy> = (0..count).map(|k| plan[k % plan.len()]).collect();
        let portion = |k: usize| match k + crowd < count {
            true => 1.0,
            false => 1.0 / crowd as f64,
        };
        let seconds = |portion: f64| each.map(|each| each * portion);
        let mut portions: Vec<Option<f64>> = (0..count).map(|k| seconds(portion(k))).collect();
        if shared.setup.given.is_some() {
            tasks.insert(0, Strategy::Given);
            portions.insert(0, each);
        }
        let sweeps = auto.options.max_sweeps;
        Starts {
            sweeps: sweeps.map(|limit| (limit / (tasks.len() as u64 + 2)).max(1)),
            seconds: portions,
            tasks,
        }
    }

    /// Makes the starts; what came out, best first.
    fn start(&mut self, starts: &Starts) -> Vec<Candidate> {
        let (board, shared) = (&mut *self.board, self.shared);
        let tasks = &starts.tasks;
        let work = STARTS_WORK * self.work / tasks.len() as f64;
        let before = board.best.clone();
        let found = workers::run(
            tasks.len(),
            self.workers,
            shared.clock,
            |k| {
                let task = Task::new(shared.clock, work);
                let repeated = tasks[..k].contains(&tasks[k]);
                let (seconds, sweeps) = (starts.seconds[k], starts.sweeps);
                shared
                    .during(&task)
                    .start(tasks[k], k, repeated, seconds, sweeps)
            },
            |candidate| board.watch(candidate.and_then(Option::as_ref)),
        );
        let found: Vec<Option<Candidate>> = found.into_iter().map(Option::flatten).collect();
        board.settle_best(before, &found);
        board.report(&found);
        let mut found: Vec<Candidate> = found.into_iter().flatten().collect();
        found.sort_by(|a, b| a.objective.total_cmp(&b.objective));
        found
    }

    /// The best of `found` are polished, as many as there are workers.
    fn polish(&mut self, mut found: Vec<Candidate>) {
        let clock = self.shared.clock;
        let n = self.shared.problem.smooth.rows();
        let sweeps = self.shared.auto.options.max_sweeps;
        let spent: u64 = self.board.iterations.div_ceil((n * (n - 1) / 2) as u64);
        found.truncate(match (sweeps, clock.limit()) {
            (Some(_), _) => 1,
            (None, Some(_)) => self.workers.max(2),
            (None, None) => 2,
        });
        let until = clock.limit().map(|limit| {
            let left = limit - clock.seconds();
            if left < START_SECONDS {
                limit
            } else {
                clock.seconds() + 0.4 * left
            }
        });
        let work = POLISH_WORK * self.work / found.len() as f64;
        let remaining = sweeps.map(|limit| limit.saturating_sub(spent));
        let settled = self.polish_all(&found, until, remaining, work);
        if self.board.status.is_some() {
            return;
        }
        self.board.best.settled = settled;
        if self.is_optimal() {
            self.board.status = Some(Status::Converged);
        } else if sweeps.is_some() {
            self.board.status = Some(if settled {
                Status::Converged
            } else {
                Status::MaxSweeps
            });
        }
    }

    /// Polishes; whether a point that is best then has settled.
    fn polish_all(
        &mut self,
        found: &[Candidate],
        until: Option<f64>,
        sweeps: Option<u64>,
        work: f64,
    ) -> bool {
        let (board, shared) = (&mut *self.board, self.shared);
        let before = board.best.clone();
        let results = workers::run(
            found.len(),
            self.workers,
            shared.clock,
            |k| {
                let mut candidate = found[k].clone();
                (candidate.iterations, candidate.updates) = (0, 0);
                let task = Task::new(shared.clock, work);
                shared.during(&task).polish(candidate, until, sweeps)
            },
            |candidate| board.watch(candidate),
        );
        board.settle_best(before, &results);
        let mut results = results.iter().flatten();
        results.any(|c| c.settled && c.objective <= board.best.objective)
    }

    /// The ways to perturb: that of the best start comes first, and one whose start came out far from
    /// the best is not expected to do better from there, unless it only changes the best point.
    fn ways(&self) -> Ways {
        let board = &*self.board;
        let ways = self.shared.perturbations();
        let hope = |way: &Strategy| {
            let name = way.to_string();
            let near = board
                .starts
                .iter()
                .filter(|s| s.strategy == name)
                .map(|s| s.objective - board.best.objective)
                .fold(f64::INFINITY, f64::min);
            let local = matches!(
                way,
                Strategy::Supports | Strategy::Forward | Strategy::Partition
            );
            let promising = local || !(near.is_finite() && near > NEAR * board.size());
            match promising {
                _ if board.best.name == name => 2.0,
                true => 1.0,
                false => 0.05,
            }
        };
        Ways {
            record: ways.iter().map(|way| (hope(way), 1.0)).collect(),
            ways,
        }
    }

    /// Rounds of perturbation without a time limit: as many as a small problem can afford.
    fn free_rounds(&self) -> usize {
        let (n, r) = self.board.best.x.dim();
        (FREE_WORK / (n * n * r)).min(FREE_ROUNDS)
    }

    /// Perturb and descend while there is time.
    fn perturb(&mut self) {
        let clock = self.shared.clock;
        let limit = clock.limit();
        let (width, mut rounds) = match limit {
            Some(_) => (self.workers, usize::MAX),
            None => (FREE_WIDTH, self.free_rounds()),
        };
        let work = PERTURB_WORK * self.work / (rounds.min(FREE_ROUNDS) * width + 1) as f64;
        let mut ways = self.ways();
        let (mut idle, mut index) = (0, 0);
        let slice = (0.2 * limit.unwrap_or(0.0)).clamp(0.2, 10.0);
        while self.board.status.is_none() && idle < IDLE_ROUNDS && rounds > 0 {
            rounds -= 1;
            let left = limit.map_or(f64::INFINITY, |limit| {
                PERTURB_SHARE * limit - clock.seconds()
            });
            if left < 0.25 * slice {
                break;
            }
            let gained = self.round(&mut ways, width, index, slice.min(left), work);
            index += width as u64;
            idle = if gained { 0 } else { idle + 1 };
        }
        if self.board.status.is_none() && !self.board.best.settled {
            let best = [self.board.best.clone()];
            self.board.best.settled |= self.polish_all(&best, clock.limit(), None, work);
        }
        if self.board.status.is_none() {
            let done = (limit.is_none() || idle >= IDLE_ROUNDS) && self.board.best.settled;
            self.board.status = Some(match (done, limit) {
                (true, _) => Status::Converged,
                (false, Some(_)) => Status::MaxTime,
                // Tangent steps and pairs took turns as long as they may.
                (false, None) => Status::MaxSweeps,
            });
        }
    }

    /// One round of perturbations, the first with number `first`; whether F fell.
    fn round(
        &mut self,
        ways: &mut Ways,
        width: usize,
        first: u64,
        seconds: f64,
        work: f64,
    ) -> bool {
        let (board, shared) = (&mut *self.board, self.shared);
        let clock = shared.clock;
        let chosen = ways.chosen(width);
        let best = board.best.clone();
        let size = board.size();
        let found = workers::run(
            width,
            self.workers,
            clock,
            |w| {
                let stop = clock.limit().map(|_| clock.seconds() + seconds);
                let task = Task::new(clock, work);
                let shared = shared.during(&task);
                let way = ways.ways[chosen[w]];
                let candidate = shared.perturb(&best.x, way, first + w as u64, 0.7 * seconds)?;
                // A fresh point has nothing to show before its descent.
                let fresh = way == Strategy::Dense;
                let promising = candidate.objective < best.objective + PROMISING * size;
                Some(match fresh || promising {
                    true => shared.polish(candidate, stop, None),
                    false => candidate,
                })
            },
            |candidate| board.watch(candidate.and_then(Option::as_ref)),
        );
        let found: Vec<Option<Candidate>> = found.into_iter().map(Option::flatten).collect();
        let least = best.objective - GAIN * size;
        board.settle_best(best, &found);
        board.report(&found);
        for (&k, candidate) in chosen.iter().zip(&found) {
            let gained = candidate.as_ref().is_some_and(|c| c.objective < least);
            ways.note(k, gained);
        }
        board.best.objective < least
    }
}
