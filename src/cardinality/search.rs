//! Chains of descents and perturbations, side by side.
//!
//! A chain begins at a start, descends, and perturbs its best point again and again. There are always [`CHAINS`] chains,
//! whatever the number of threads; they work in rounds of counted work, after which the worst begin anew, at a new start
//! or at the incumbent. What chains do does not depend on the work limit, which only ends the search.
//! Without limits a search ends when [`CONFIRMED`] rounds have brought nothing and [`AGREEING`] chains, each from a start of its own,
//! have the best value, or after many perturbations without gain.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ndarray::{Array2, ArrayView2};

use super::powered::powered;
use crate::budget::{Clock, Meter};
use crate::error::{Error, Result};
use crate::manifold::{REPAIR_THRESHOLD, drift, project_onto_pattern};
use crate::objective::{QuadraticForm, default_work};
use crate::pool;
use crate::problem::Problem;
use crate::search::{AutoSolution, Run};
use crate::signature::Signature;
use crate::solver::{Control, Monitor, Options, Record, Solution, Status};
use crate::start;
use crate::threads::Threads;

/// Chains side by side.
const CHAINS: usize = 16;

/// Chains from scratch with the best value of all that end a search without limits: half of them, at the end of so many
/// rounds in a row that brought nothing. They know nothing of each other, so a better point is one that each has missed so far.
const AGREEING: usize = CHAINS / 2;
const CONFIRMED: usize = 2;

/// Work of a chain in the first round, growing by a factor up to the most.
const FIRST_ROUND: f64 = 2e7;
const LONGEST_ROUND: f64 = 2e8;
const GROWTH: f64 = 2.0;

/// The least work without a limit, and the most: on thousands of features a unit takes longer here than other searches do for it.
const WORK: (f64, f64) = (1.5e10, 5e10);

/// What a start or a perturbation that came to nothing counts for.
const NOTHING: f64 = 1e4;

/// Difference of two values that is none, relative to the scale of f.
const SAME: f64 = 1e-12;

/// Largest ‖XᵀX − I‖ of a point.
const FEASIBLE: f64 = 1e-11;

/// What a search walks over.
pub(super) trait Walk: Sync {
    /// A point, with whatever goes with it.
    type State: Clone + Send;

    /// The start of a number; the first ones are the strong ones.
    fn start(&self, number: usize, seed: u64, meter: &Meter<'_>) -> Option<Self::State>;

    /// A perturbed point; none if this one came to nothing.
    fn perturbed(&self, state: &Self::State, seed: u64, meter: &Meter<'_>) -> Option<Self::State>;

    /// Moves while that lowers the value, at most until `spent` of the meter; whether the point has come to rest, where
    /// others did before it or anew.
    fn descend(
        &self,
        state: &mut Self::State,
        rested: &mut Rested,
        spent: f64,
        meter: &Meter<'_>,
    ) -> bool;

    /// Name of the start of a number.
    fn name(&self, number: usize) -> &'static str;

    /// What is minimised.
    fn value(&self, state: &Self::State) -> f64;

    /// X.
    fn dense(&self, state: &Self::State) -> Array2<f64>;

    /// What differences of values are relative to.
    fn scale(&self) -> f64;
}

/// Points where descents came to rest, by the places of their nonzeros: one that comes there again has nothing to try.
#[derive(Default)]
pub(super) struct Rested(HashMap<Vec<usize>, f64>);

impl Rested {
    /// Whether one rested at these places, at this value or below.
    pub(super) fn holds(&self, places: &[usize], value: f64) -> bool {
        self.0.get(places).is_some_and(|&known| known <= value)
    }

    pub(super) fn note(&mut self, places: Vec<usize>, value: f64) {
        self.0.insert(places, value);
    }
}

/// f as a quadratic form with every sign +1 and no penalty, for options that are valid.
pub(super) fn checked_form<'a>(
    problem: &Problem<'a>,
    options: &Options,
) -> Result<&'a dyn QuadraticForm> {
    let form = problem.quadratic()?;
    options.check(form.order())?;
    if !problem.signature.is_definite() || problem.signature.sign(0) < 0.0 {
        return Err(Error::invalid("signature", "must be all +1"));
    }
    if !problem.penalty.is_none() {
        let message = "must be none where nonzeros or rows are counted";
        return Err(Error::invalid("penalty", message));
    }
    if problem.rotations {
        let message = "must be none where nonzeros or rows are counted";
        return Err(Error::invalid("determinant", message));
    }
    Ok(form)
}

/// A given start: orthonormal, to rounding.
pub(super) fn checked_start(problem: &Problem<'_>, x0: &Array2<f64>) -> Result<Array2<f64>> {
    problem.check_start(x0.view())?;
    start::given(x0, false, false)
}

/// One chain.
struct Chain<S> {
    /// The number of its start, and whether it begins at the best point of all instead.
    number: usize,
    from: Option<S>,
    /// Whether it began at a start of its own, and F of the incumbent then.
    independent: bool,
    reference: f64,
    best: Option<S>,
    /// Where a descent was when the round ended.
    current: Option<S>,
    rested: Rested,
    /// How many seeds it has used.
    seeds: u64,
    fruitless: usize,
    /// What it has spent in this round and before, and its better points of this round with the work up to them.
    spent: f64,
    total: f64,
    found: Vec<(f64, S)>,
    /// Descents.
    descents: u64,
}

impl<S> Chain<S> {
    fn new(number: usize, from: Option<S>, reference: f64) -> Self {
        Self {
            number,
            independent: from.is_none(),
            reference,
            from,
            best: None,
            current: None,
            rested: Rested::default(),
            seeds: 0,
            fruitless: 0,
            spent: 0.0,
            total: 0.0,
            found: Vec::new(),
            descents: 0,
        }
    }
}

/// A search: what it walks over, and until when.
pub(super) struct Search<'a, W: Walk> {
    pub(super) walk: W,
    pub(super) options: &'a Options,
    pub(super) threads: &'a Threads,
    pub(super) clock: &'a Clock,
    /// The work that may be done.
    pub(super) limit: f64,
    /// A lower bound of the value.
    pub(super) bound: f64,
    /// Perturbations without gain, one after the other, that end a search without limits.
    pub(super) patience: usize,
}

/// The work limit: the one given, or without any limit that of any search, within [`WORK`].
pub(super) fn limit(clock: &Clock, options: &Options, form: &dyn QuadraticForm, r: usize) -> f64 {
    match (clock.counts(), options.max_work) {
        (true, None) => default_work(form, r).clamp(WORK.0, WORK.1),
        (true, Some(limit)) => limit as f64,
        (false, _) => f64::INFINITY,
    }
}

impl<W: Walk> Search<'_, W> {
    /// Searches until a limit, or until nothing comes of it; why it ended, and the work done.
    ///
    /// With a work limit, the chains of a round count in their order, each point with the work up to it: a larger limit
    /// takes all points that a smaller one takes, so it never ends higher.
    pub(super) fn run(&self, board: &mut Board<'_>, mut spent: f64) -> (Status, f64) {
        let chains: Vec<Mutex<Chain<W::State>>> = (0..CHAINS)
            .map(|number| Mutex::new(Chain::new(number, None, board.value())))
            .collect();
        let locked = |k: usize| chains[k].lock().unwrap_or_else(PoisonError::into_inner);
        let (mut length, mut begun, mut fruitless, mut rounds) = (FIRST_ROUND, CHAINS, 0, 0);
        let same = self.same();
        let limited = self.options.max_time.is_some() || self.options.max_work.is_some();
        loop {
            let proved = board.value() <= self.bound + same;
            let settled = !limited && (rounds >= CONFIRMED || fruitless >= self.patience);
            let left = self.limit - spent;
            let ended = if proved || settled {
                Some(Status::Converged)
            } else if board.status.is_some() || self.clock.expired() || !(left >= 1.0) {
                Some(Status::MaxWork)
            } else if self
                .options
                .max_sweeps
                .is_some_and(|most| board.rounds >= most)
            {
                Some(Status::MaxSweeps)
            } else {
                None
            };
            if let Some(status) = ended {
                (0..CHAINS).for_each(|k| self.report(&locked(k), board));
                return (status, spent);
            }
            board.rounds += 1;
            self.round(&locked, (length, left), board);
            let mut best: Option<W::State> = None;
            for k in 0..CHAINS {
                let mut chain = locked(k);
                for (at, state) in std::mem::take(&mut chain.found) {
                    let lower = best
                        .as_ref()
                        .is_none_or(|best| self.walk.value(&state) < self.walk.value(best));
                    if lower && spent + at <= self.limit {
                        best = Some(state);
                    }
                }
                spent += chain.spent;
                chain.total += std::mem::take(&mut chain.spent);
                fruitless += std::mem::take(&mut chain.fruitless);
                if spent >= self.limit {
                    break;
                }
            }
            let gained = best.is_some_and(|x| board.accept(self.walk.dense(&x), same));
            fruitless = if gained { 0 } else { fruitless };
            let mut order: Vec<usize> = (0..CHAINS).collect();
            let values: Vec<f64> = order.iter().map(|&k| self.value(&locked(k))).collect();
            order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
            let lowest = values[order[0]] + same;
            let agreeing = (0..CHAINS).filter(|&k| values[k] <= lowest && locked(k).independent);
            rounds = match lowest.is_finite() && !gained && agreeing.count() >= AGREEING {
                true => rounds + 1,
                false => 0,
            };
            let leader = locked(order[0]).best.clone();
            for (place, &k) in order[CHAINS / 2..].iter().enumerate() {
                let from = if place % 2 == 0 { leader.clone() } else { None };
                let mut chain = locked(k);
                self.report(&chain, board);
                *chain = Chain::new(begun, from, board.value());
                begun += 1;
            }
            length = (length * GROWTH).min(LONGEST_ROUND);
        }
    }

    /// Continues every chain for about `length` of work, at most for all that is `left`. A chain is left out if those before it
    /// have used up the limit: none of its points would count.
    fn round<'c>(
        &self,
        locked: &(impl Fn(usize) -> MutexGuard<'c, Chain<W::State>> + Sync),
        (length, left): (f64, f64),
        board: &mut Board<'_>,
    ) where
        W::State: 'c,
    {
        let done: Vec<AtomicU64> = (0..CHAINS).map(|_| AtomicU64::new(0)).collect();
        let before = |k: usize| {
            let works = done[..k]
                .iter()
                .map(|work| work.load(Ordering::Relaxed) as f64);
            works.sum::<f64>()
        };
        pool::run(
            CHAINS,
            self.threads.count(),
            self.clock,
            |k| {
                if before(k) < left {
                    let mut chain = locked(k);
                    self.advance(&mut chain, length, left);
                    done[k].store(chain.spent as u64, Ordering::Relaxed);
                }
            },
            |_| board.poll(),
        );
    }

    /// The difference of two values that is none.
    fn same(&self) -> f64 {
        self.options.tol.max(SAME) * self.walk.scale()
    }

    /// Takes note of what a chain has done.
    fn report(&self, chain: &Chain<W::State>, board: &mut Board<'_>) {
        board.descents += chain.descents;
        if let Some(best) = &chain.best {
            let objective = self.walk.value(best);
            board.runs.push(Run {
                heuristic: self.walk.name(chain.number).to_owned(),
                improve: !chain.independent,
                restricted: false,
                seconds: self.clock.seconds(),
                work: chain.total,
                objective,
                gain: (chain.reference - objective).max(0.0),
            });
        }
    }

    fn value(&self, chain: &Chain<W::State>) -> f64 {
        (chain.best.as_ref()).map_or(f64::INFINITY, |state| self.walk.value(state))
    }

    /// Continues a chain for about `length` of work, and in no case for more than is `left`.
    fn advance(&self, chain: &mut Chain<W::State>, length: f64, left: f64) {
        let units = match self.clock.counts() {
            true => left,
            false => self.clock.left().unwrap_or(f64::INFINITY),
        };
        let meter = Meter::strict(self.clock, units);
        while !meter.expired() && meter.spent() < length {
            let stream = pool::decorrelated(self.options.seed, chain.number as u64);
            let seed = pool::decorrelated(stream, chain.seeds);
            chain.seeds += 1;
            let state = match (chain.current.take(), &chain.best, chain.from.take()) {
                (Some(current), _, _) => Some(current),
                (None, Some(best), _) => self.walk.perturbed(best, seed, &meter),
                (None, None, Some(from)) => {
                    chain.best = Some(from);
                    continue;
                }
                (None, None, None) => self.walk.start(chain.number, seed, &meter),
            };
            let Some(mut state) = state else {
                meter.spend(NOTHING);
                continue;
            };
            let rests = self
                .walk
                .descend(&mut state, &mut chain.rested, length, &meter);
            chain.descents += 1;
            let better = self.walk.value(&state) < self.value(chain) - self.same();
            if rests {
                chain.fruitless += usize::from(!better);
            } else {
                chain.current = Some(state.clone());
            }
            if better {
                chain.found.push((meter.spent(), state.clone()));
                chain.best = Some(state);
            }
        }
        chain.spent = meter.spent();
    }
}

/// The best point, and who is told.
pub(super) struct Board<'a> {
    problem: &'a Problem<'a>,
    /// The price of a row that is not zero.
    price: f64,
    clock: &'a Clock,
    options: &'a Options,
    monitor: &'a mut dyn Monitor,
    x: Array2<f64>,
    history: Vec<Record>,
    pub(super) status: Option<Status>,
    runs: Vec<Run>,
    rounds: u64,
    descents: u64,
}

impl<'a> Board<'a> {
    pub(super) fn new(
        (problem, price): (&'a Problem<'a>, f64),
        clock: &'a Clock,
        options: &'a Options,
        monitor: &'a mut dyn Monitor,
    ) -> Self {
        Self {
            problem,
            price,
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

    /// Goes to the best point of a [truncated power method](powered) from `first`, whatever the time limit, unless no work
    /// may be done. Returns why the solve ends there, if it does.
    pub(super) fn begun(
        &mut self,
        first: Array2<f64>,
        limit: f64,
        (threads, meter): (&Threads, &Meter<'_>),
        truncated: impl Fn(&Array2<f64>) -> Option<Array2<f64>>,
    ) -> Option<Status> {
        let (status, none) = match self.options.max_sweeps {
            Some(0) => (Status::MaxSweeps, true),
            _ => (Status::MaxWork, limit == 0.0),
        };
        if !none && self.status.is_none() {
            let best = powered(self.problem, first, threads, meter, truncated);
            self.accept(best, 0.0);
        }
        (none || self.status.is_some() || self.clock.expired()).then_some(status)
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

    fn penalty(&self, x: &Array2<f64>) -> f64 {
        let rows = x.outer_iter().filter(|row| row.iter().any(|&v| v != 0.0));
        if self.price > 0.0 {
            self.price * rows.count() as f64
        } else {
            0.0
        }
    }

    /// Takes a point over if it is feasible and better by more than `least`; whether it was.
    pub(super) fn accept(&mut self, mut x: Array2<f64>, least: f64) -> bool {
        let signature = Signature::stiefel(x.nrows());
        let eye = Array2::eye(x.ncols());
        if drift(x.view(), &signature, eye.view()) > REPAIR_THRESHOLD {
            x = project_onto_pattern(&x, &signature, eye.view());
        }
        let value = self.problem.smooth.value(x.view(), &Threads::serial()) + self.penalty(&x);
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

    /// The best point; `ended` says why, if neither the monitor nor the clock does.
    pub(super) fn finish(mut self, ended: Status, work: f64) -> AutoSolution {
        let late = self.options.max_time.is_some() && self.clock.expired();
        let status = match self.status {
            Some(status) => status,
            None if late => Status::MaxTime,
            None => ended,
        };
        let seconds = self.clock.seconds();
        let penalty_value = self.penalty(&self.x);
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
