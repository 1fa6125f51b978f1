//! Several starts for mixed signatures, where h makes many optima.
//!
//! With ℓ1 exact pairs of rows and columns lock at kinks, at points that are not critical (SPEC section
//! 7, item 7): from random starts at n = 20 they end up to 1e-3 above the optimum, each somewhere
//! else. Pairs and [tangent steps](super::escape) in turn end at points that are critical and that
//! no pair improves; mostly the same one from every start, but not always. So:
//!
//! 1. the given start X₀, and R X₀ for random J-orthogonal R, which has the same XᵀJX; for X ≥ 0
//!    and half of the time for ℓ0 a permutation of rows of equal sign instead, which keeps zeros;
//! 2. rounds of [`WIDTH`] kicks: one to three random pairs of rows or columns of the best point move,
//!    and the descent begins anew.
//!
//! Without a time limit all of it is counted, so the result depends on the seed alone.

use ndarray::{Array2, Axis};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::board::Board;
use super::candidate::{Candidate, GAIN, Watch, polish};
use super::options::Auto;
use super::oracle::Oracle;
use super::workers::{self, decorrelated};
use crate::budget::{Clock, Task};
use crate::objective::QuadraticForm;
use crate::pair::Recession;
use crate::penalty::Penalty;
use crate::problem::Problem;
use crate::signature::Signature;
use crate::solver::{Options, Status, minimize};
use crate::start::random_j_orthogonal;
use crate::threads::Threads;

/// Starts and rounds of kicks without a time limit, for small problems; in the proportion of n²r to
/// [`FREE_WORK`] fewer for large ones.
const STARTS: usize = 4;
const ROUNDS: usize = 16;
const FREE_WORK: usize = 64_000;

/// Kicks in a round.
const WIDTH: usize = 4;

/// Rounds without improvement after which the solve has converged.
const IDLE_ROUNDS: usize = 4;

/// With a time limit: the share of it for the starts, and as many starts as fit into it.
const STARTS_SHARE: f64 = 0.5;

/// Standard deviation of the rapidities of random starts and of kicks.
const RAPIDITY: f64 = 0.5;
const KICK_RAPIDITY: f64 = 0.3;

/// A point, or the pair along which the problem is unbounded and the status.
struct Found {
    candidate: Candidate,
    failed: Option<(Status, Option<Recession>)>,
}

struct Search<'a, P: Penalty> {
    problem: &'a Problem<'a, P>,
    oracle: Oracle<'a, P>,
    auto: &'a Auto,
    clock: &'a Clock,
    x0: &'a Array2<f64>,
    /// The signs of K if XᵀJX is diag(±1), so that columns can be kicked.
    columns: Option<Signature>,
}

/// Minimises over all starts; `board` holds the given one.
pub(super) fn search<P: Penalty>(
    board: &mut Board<'_, P>,
    (problem, form): (&Problem<'_, P>, &dyn QuadraticForm),
    auto: &Auto,
    clock: &Clock,
    x0: &Array2<f64>,
    threads: &Threads,
) {
    let k = board.constraint().clone();
    let signs: Vec<i8> = k.diag().iter().map(|&v| v as i8).collect();
    let is_diagonal = k == Array2::from_diag(&k.diag()) && k.diag().iter().all(|v| v.abs() == 1.0);
    let preparation = Task::new(clock, f64::INFINITY);
    let go_on = || !clock.expired();
    let spectrum = workers::run(
        1,
        1,
        clock,
        |_| form.spectrum(&go_on),
        |_| board.watch(None),
    );
    let Some(spectrum) = spectrum.into_iter().flatten().flatten().next() else {
        return;
    };
    let search = Search {
        problem,
        oracle: Oracle::new((problem, form), k, spectrum, &preparation),
        auto,
        clock,
        x0,
        columns: is_diagonal.then(|| Signature::new(&signs).ok()).flatten(),
    };
    search.run(board, threads.count());
}

impl<P: Penalty> Search<'_, P> {
    fn run(&self, board: &mut Board<'_, P>, workers: usize) {
        let limit = self.clock.limit();
        let (n, r) = self.x0.dim();
        let affordable = |most: usize| (FREE_WORK * most / (STARTS * n * n * r)).clamp(1, most);
        let starts = self.auto.starts.unwrap_or_else(|| {
            if limit.is_some() {
                STARTS
            } else {
                affordable(STARTS)
            }
        });
        let sweeps = self.auto.options.max_sweeps;
        let allotted = sweeps.map(|limit| (limit / (starts as u64 + 1)).max(1));
        let until = limit.map(|limit| STARTS_SHARE * limit);
        self.round(board, starts, workers, |k| {
            // The first start always runs; the others while there is time for them.
            let until = if k == 0 { limit } else { until };
            let expired = until.is_some_and(|until| self.clock.seconds() >= until);
            (!expired || k == 0)
                .then(|| self.descend(self.start(k as u64), name(k), until, allotted))
                .flatten()
        });
        if sweeps.is_some() && board.status.is_none() {
            board.status = Some(if board.best.settled {
                Status::Converged
            } else {
                Status::MaxSweeps
            });
        }
        let mut rounds = if limit.is_some() {
            usize::MAX
        } else {
            affordable(ROUNDS)
        };
        let (mut idle, mut index) = (0, 0);
        while board.status.is_none() && rounds > 0 && idle < IDLE_ROUNDS && !self.clock.expired() {
            rounds -= 1;
            let base = board.best.x.clone();
            let (before, size) = (board.best.objective, board.size());
            let first = index;
            index += WIDTH as u64;
            self.round(board, WIDTH, workers, |k| {
                let x = self.kicked(&base, self.seed(1_000_000 + first + k as u64));
                self.descend(x, "kick".to_owned(), limit, None)
            });
            let gained = board.best.objective < before - GAIN * size;
            idle = if gained { 0 } else { idle + 1 };
        }
        if board.status.is_none() {
            board.status = Some(if self.clock.expired() {
                Status::MaxTime
            } else {
                Status::Converged
            });
        }
    }

    /// Runs `count` descents and keeps the best.
    fn round(
        &self,
        board: &mut Board<'_, P>,
        count: usize,
        workers: usize,
        body: impl Fn(usize) -> Option<Found> + Sync,
    ) {
        let before = board.best.clone();
        let found = workers::run(count, workers, self.clock, body, |found| {
            let found = found.and_then(|found: &Option<Found>| found.as_ref());
            board.watch(found.map(|found| &found.candidate))
        });
        let found: Vec<Option<Found>> = found.into_iter().map(Option::flatten).collect();
        // The order in which they came in must not decide which failure counts.
        if let Some((status, recession)) = found.iter().flatten().find_map(|found| found.failed) {
            board.status = board.status.or(Some(status));
            board.recession = board.recession.or(recession);
        }
        let found: Vec<Option<Candidate>> = found
            .into_iter()
            .map(|found| found.map(|found| found.candidate))
            .collect();
        board.settle_best(before, &found);
        board.report(&found);
    }

    fn seed(&self, index: u64) -> u64 {
        decorrelated(self.auto.options.seed, index)
    }

    fn start(&self, index: u64) -> Array2<f64> {
        let seed = self.seed(index);
        let penalty = self.problem.penalty;
        let permuted = penalty.nonnegative() || (penalty.count().is_some() && index % 2 == 1);
        if index == 0 {
            return self.x0.clone();
        }
        if permuted {
            return self.permuted(seed);
        }
        random_j_orthogonal(self.problem.signature, RAPIDITY, seed)
            .map_or_else(|_| self.x0.clone(), |r| r.dot(self.x0))
    }

    /// X₀ with its rows of equal sign in random order.
    fn permuted(&self, seed: u64) -> Array2<f64> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let n = self.x0.nrows();
        let mut order: Vec<usize> = (0..n).collect();
        for sign in [1, -1] {
            let rows: Vec<usize> = (0..n)
                .filter(|&i| self.problem.signature.signs()[i] == sign)
                .collect();
            let mut shuffled = rows.clone();
            shuffled.shuffle(&mut rng);
            for (&to, from) in rows.iter().zip(shuffled) {
                order[to] = from;
            }
        }
        self.x0.select(Axis(0), &order)
    }

    /// A few random pairs of rows or columns moved; for X ≥ 0, exchanged.
    fn kicked(&self, x: &Array2<f64>, seed: u64) -> Array2<f64> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut x = x.clone();
        let exchange = self.problem.penalty.nonnegative();
        for _ in 0..rng.random_range(1..=3) {
            let side = if rng.random::<bool>() {
                self.columns.as_ref()
            } else {
                None
            };
            let signature = side.unwrap_or(self.problem.signature);
            let n = signature.len();
            if n < 2 {
                continue;
            }
            let i = rng.random_range(0..n);
            let j = (i + rng.random_range(1..n)) % n;
            let normal: f64 = StandardNormal.sample(&mut rng);
            let equal = signature.sign(i) == signature.sign(j);
            let v = match (equal, exchange) {
                (true, true) => [[0.0, 1.0], [1.0, 0.0]],
                (false, true) => continue,
                (true, false) => [[normal.cos(), normal.sin()], [-normal.sin(), normal.cos()]],
                (false, false) => {
                    let mu = KICK_RAPIDITY * normal;
                    [[mu.cosh(), mu.sinh()], [mu.sinh(), mu.cosh()]]
                }
            };
            let axis = Axis(usize::from(side.is_some()));
            let (a, b) = (
                x.index_axis(axis, i).to_owned(),
                x.index_axis(axis, j).to_owned(),
            );
            x.index_axis_mut(axis, i)
                .assign(&(&a * v[0][0] + &b * v[0][1]));
            x.index_axis_mut(axis, j)
                .assign(&(&a * v[1][0] + &b * v[1][1]));
        }
        x
    }

    /// Pairs first, then pairs and tangent steps in turn.
    fn descend(
        &self,
        x: Array2<f64>,
        name: String,
        until: Option<f64>,
        sweeps: Option<u64>,
    ) -> Option<Found> {
        let task = Task::new(self.clock, f64::INFINITY);
        let oracle = self.oracle.during(&task);
        let options = Options {
            max_time: until.map(|until| (until - self.clock.seconds()).max(0.0)),
            max_sweeps: sweeps,
            ..self.auto.options.clone()
        };
        let mut candidate = Candidate::new(&oracle, x, name)?;
        let serial = Threads::serial();
        let watch = &mut Watch(self.clock);
        let Ok(solution) = minimize(self.problem, candidate.x.clone(), &options, &serial, watch)
        else {
            return Some(Found {
                candidate,
                failed: None,
            });
        };
        candidate.take(&solution);
        let failed = matches!(solution.status, Status::Unbounded | Status::Diverged)
            .then_some((solution.status, solution.recession));
        let left = sweeps.map(|limit| limit.saturating_sub(solution.sweeps));
        if failed.is_none() && solution.status != Status::Target && left != Some(0) {
            candidate = polish(&oracle, &self.auto.options, candidate, until, left);
        }
        Some(Found { candidate, failed })
    }
}

fn name(index: usize) -> String {
    if index == 0 { "given" } else { "random" }.to_owned()
}
