//! The sequence of a search under a limit: rounds of concurrent chains of descents and perturbations.
//!
//! A chain begins at a start, descends, and repeatedly perturbs its best point. The number of chains does not depend on
//! the number of threads. They work in rounds of counted work. In the first round a chain does not perturb, so that
//! little work tries many starts. In a later round a chain also stops after its share of the [`patience`], which grows
//! with the length of the round. After each round the worse half restarts, alternately from the incumbent and from a new
//! start.
//!
//! A search ends by itself after a round of perturbations without improvement if enough independent chains have the best
//! value, after many perturbations without improvement, or if as much work again has brought nothing. Its
//! [effort](crate::Options::effort) scales these numbers and the work after which it ends in any case.

use std::sync::Mutex;

use ndarray::Array2;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::decrease::{Decrease, FADING};
use super::incumbent::Incumbent;
use super::policy::POLICY;
use super::sequence::Sequence;
use super::stationary::StationarySupports;
use super::tasks::Tasks;
use crate::limits::TaskWork;
use crate::numerics;
use crate::pool;
use crate::report::Run;
use crate::solver::{Control, Options, Status, WORK_UNIT};
use crate::threads::{Threads, locked};

/// Largest number of chains. The first round has as many as can make [`PRODUCTS`] products with C each in
/// [`FIRST_ROUND`], but at least [`Policy::lanes`](super::policy::Policy).
const CHAINS: usize = 16;

/// Number of chains up to which each round adds one: of costly moves, few chains make enough.
const LEAST_CHAINS: usize = 8;

/// Products with C of each chain that decide the number of chains of the first round.
const PRODUCTS: f64 = 1000.0;

/// Work of a chain in the first two rounds.
pub(super) const FIRST_ROUND: f64 = 2e7;

/// Largest work of a chain in a round.
const LONGEST_ROUND: f64 = 2e8;

/// Growth factor of the work of a chain from round to round, after the first two.
const GROWTH: f64 = 2.0;

/// Perturbations in a row without improvement, per index of the support, that end a search with an effort of 1.
const PATIENCE: usize = 40;

/// Least number of perturbations in a row without improvement that ends a search with an effort of 1.
const LEAST_PATIENCE: usize = 800;

/// Largest number of perturbations without improvement per swap of two indices: with few swaps, more perturbations
/// repeat them.
const PER_SWAP: usize = 4;

/// Least work without improvement that ends a search with an effort of 1, if as much work again has brought nothing.
pub(super) const IDLE_WORK: f64 = WORK_UNIT;

/// A descent that takes this multiple of the work of the round is interrupted, also within a step.
const OVERDUE: f64 = 2.0;

/// Work charged for a failed start or perturbation.
const FAILED_WORK: f64 = 1e4;

/// A search space: its starts, moves and perturbations.
pub(super) trait SearchSpace: Sync {
    /// A point with its cached data.
    type State: Clone + Send + Serialize + DeserializeOwned;

    /// A point that needs no search.
    type Point: Clone + Send;

    /// A kind of perturbation.
    type Kind: Copy;

    /// Number of points that need no search.
    const POINTS: usize;

    /// Returns point `number` below [`POINTS`](Self::POINTS), in the order of their cost; None if there is none.
    fn point(&self, number: usize, work: &TaskWork<'_>) -> Option<Self::Point>;

    /// Returns X of a point that needs no search.
    fn matrix(&self, point: &Self::Point) -> Array2<f64>;

    /// Returns the point with as many nonzeros as the limit allows, after a few moves; None if they cost too much.
    fn improved(&self, _: &Self::Point, _: &TaskWork<'_>) -> Option<Self::Point> {
        None
    }

    /// Takes the points from which the first chains start.
    fn begin_from(&mut self, points: Vec<Self::Point>);

    /// Returns a lower bound of the objective, or −∞; `value` is the objective of the incumbent.
    fn bound(&self, value: f64) -> f64;

    /// Returns the approximate number of indices of a support, and the number of all indices.
    fn choice(&self) -> (usize, usize);

    /// Returns the work of a product of C with a column.
    fn product_work(&self) -> f64;

    /// Returns start `number`; the best kinds of starts come first.
    fn start(&self, number: usize, seed: u64, work: &TaskWork<'_>) -> Option<Self::State>;

    /// Returns the kinds of perturbations: for each the share of a chain's work, and the work of other kinds that must
    /// come before it, in the same units of work.
    fn perturbations(&self) -> Vec<(Self::Kind, f64, f64)>;

    /// Returns a perturbed point, by the given kind of perturbation and seed; None if the perturbation failed.
    fn perturbed(&self, state: &Self::State, by: (Self::Kind, u64), work: &TaskWork<'_>) -> Option<Self::State>;

    /// Returns the indices of the support.
    fn support(&self, state: &Self::State) -> Vec<usize>;

    /// Returns the initial number of moves that are tried together; None if moves cost too much.
    fn width(&self, _: &Self::State) -> Option<usize> {
        Some(1)
    }

    /// Makes the support as large as the limit allows, until `work` reaches `spent`.
    fn fill(&self, _: &mut Self::State, _: f64, _: &TaskWork<'_>) {}

    /// Makes a move, or at most `width` of them together, with a value below `goal`; returns whether one was
    /// found. `width` is reduced where moves fail together.
    fn step(&self, state: &mut Self::State, goal: f64, width: &mut usize, work: &TaskWork<'_>) -> bool;

    /// Moves while the value falls, until `work` reaches `spent`; returns whether the point is stationary,
    /// newly or as recorded in `stationary`.
    fn descend(
        &self,
        state: &mut Self::State,
        stationary: &mut StationarySupports,
        spent: f64,
        work: &TaskWork<'_>,
    ) -> bool {
        let Some(mut width) = self.width(state) else {
            return true;
        };
        let least = numerics::GAIN * self.scale();
        loop {
            self.fill(state, spent, work);
            if work.expired() || work.spent() >= spent {
                return false;
            }
            let (support, value) = (self.support(state), self.value(state));
            if stationary.contains(&support, value + least) {
                return true;
            }
            if self.step(state, value - least, &mut width, work) {
                continue;
            }
            if work.expired() {
                return false;
            }
            stationary.insert(support, value);
            return true;
        }
    }

    /// Returns the name of the maker of start `number`.
    fn name(&self, number: usize) -> &'static str;

    /// Returns the objective.
    fn value(&self, state: &Self::State) -> f64;

    /// Returns X.
    fn dense(&self, state: &Self::State) -> Array2<f64>;

    /// Returns the scale of differences of values.
    fn scale(&self) -> f64;
}

/// A chain of descents and perturbations.
#[derive(Serialize, Deserialize)]
struct Chain<S> {
    /// Number of the chain and of its start, and the incumbent if the chain begins there instead.
    serial: usize,
    number: usize,
    from: Option<S>,
    /// True if the chain began at its own start; objective of the incumbent at that time.
    independent: bool,
    reference: f64,
    best: Option<S>,
    /// The point of an unfinished descent at the end of a round.
    current: Option<S>,
    stationary: StationarySupports,
    /// Number of seeds used.
    seeds: u64,
    unsuccessful: usize,
    /// Work of each kind of perturbation, with the descents that followed.
    spent_by: Vec<f64>,
    /// What a descent from a perturbed point can bring.
    decrease: Decrease,
    /// Work in all rounds.
    total: f64,
    /// Best value and number of descents, without those of a round that a limit cut.
    counted: f64,
    descents: u64,
}

impl<S> Chain<S> {
    fn new((serial, number): (usize, usize), from: Option<S>, reference: f64) -> Self {
        Self {
            serial,
            number,
            independent: from.is_none(),
            reference,
            from,
            best: None,
            current: None,
            stationary: StationarySupports::default(),
            seeds: 0,
            unsuccessful: 0,
            spent_by: Vec::new(),
            decrease: Decrease::UNKNOWN,
            total: 0.0,
            counted: f64::INFINITY,
            descents: 0,
        }
    }
}

/// A search between two rounds. `unsuccessful` counts perturbations; `confirmed`: enough independent
/// chains have the best value after a round of perturbations without improvement.
#[derive(Serialize, Deserialize)]
struct Progress<S> {
    chains: Vec<Mutex<Chain<S>>>,
    length: f64,
    begun: usize,
    unsuccessful: usize,
    confirmed: bool,
}

/// A search over the supports of a search space.
pub(super) struct ChainSearch<'a, W: SearchSpace> {
    pub(super) space: W,
    pub(super) options: &'a Options,
    /// Numbers of the first starts of the makers that the caller chose, if there are any; they are repeated.
    pub(super) chosen: Vec<usize>,
    pub(super) threads: &'a Threads,
    /// A lower bound of the value.
    pub(super) bound: f64,
}

/// The search with its chains.
pub(super) struct Chains<'s, 'a, W: SearchSpace> {
    search: ChainSearch<'s, W>,
    progress: Progress<W::State>,
    incumbent: &'s mut Incumbent<'a>,
}

/// Returns the perturbations in a row without improvement after which a search with an effort of 1 ends.
fn patience((chosen, all): (usize, usize)) -> usize {
    let swaps = chosen * all.saturating_sub(chosen);
    let most = PER_SWAP * swaps.max(1);
    LEAST_PATIENCE.max(PATIENCE * chosen).min(most)
}

/// Returns the kind of perturbation whose share of the work `spent` is the least used.
fn due<K>(kinds: &[(K, f64, f64)], spent: &mut Vec<f64>) -> usize {
    if spent.is_empty() {
        spent.extend(kinds.iter().map(|kind| kind.2));
    }
    let total: f64 = spent.iter().sum();
    let least = |&a: &usize, &b: &usize| {
        let left = |k: usize| kinds[k].1 * total - spent[k];
        left(a).total_cmp(&left(b)).then(b.cmp(&a))
    };
    (0..kinds.len()).max_by(least).unwrap_or(0)
}

impl<W: SearchSpace> ChainSearch<'_, W> {
    /// Begins the chains, or goes on with those of a checkpoint.
    pub(super) fn begun<'s, 'i>(self, incumbent: &'s mut Incumbent<'i>) -> Chains<'s, 'i, W>
    where
        Self: 's,
    {
        let progress = incumbent.resumed().unwrap_or_else(|| {
            let (count, reference) = (self.first_chains(), incumbent.best.objective);
            let chain = |begun: usize| Mutex::new(Chain::new(self.number(begun), None, reference));
            Progress {
                chains: (0..count).map(chain).collect(),
                length: FIRST_ROUND,
                begun: count,
                unsuccessful: 0,
                confirmed: false,
            }
        });
        Chains { search: self, progress, incumbent }
    }

    /// Returns the number of a chain before which some have `begun`, and that of its start.
    fn number(&self, begun: usize) -> (usize, usize) {
        match self.chosen.len() {
            0 => (begun, begun),
            count => (begun, self.chosen[begun % count]),
        }
    }

    /// Returns the number of chains in the first round.
    fn first_chains(&self) -> usize {
        let affordable = FIRST_ROUND / (PRODUCTS * self.space.product_work());
        (affordable as usize).clamp(POLICY.lanes, CHAINS)
    }

    /// Runs a round of all chains, and restarts the worse half.
    fn advance_all(&self, progress: &mut Progress<W::State>, incumbent: &mut Incumbent<'_>) {
        let (chains, same) = (&progress.chains, self.same());
        incumbent.rounds += 1;
        let share = patience(self.space.choice()).div_ceil(CHAINS);
        let perturbations = match incumbent.rounds {
            1 => 0,
            _ => (share as f64 * progress.length / FIRST_ROUND) as usize,
        };
        let tasks = Tasks::new(chains.len(), self.threads.count());
        let (mut gained, mut unsuccessful) = (false, 0);
        tasks.run(
            incumbent,
            |k, work| self.advance(&mut locked(&chains[k]), work, progress.length, perturbations),
            |incumbent, k, (_, work)| {
                let mut chain = locked(&chains[k]);
                chain.total += work;
                unsuccessful += std::mem::take(&mut chain.unsuccessful);
                incumbent.iterations += std::mem::take(&mut chain.descents);
                chain.counted = self.value(&chain);
                if let Some(best) = &chain.best
                    && chain.counted < incumbent.best.objective - same
                {
                    let name = self.space.name(chain.number);
                    gained |= incumbent.accept_lower(self.space.dense(best), same, name);
                }
                Control::Continue
            },
        );
        progress.unsuccessful = if gained { 0 } else { progress.unsuccessful + unsuccessful };
        if incumbent.status.is_some() {
            return;
        }
        let count = chains.len();
        let mut order: Vec<usize> = (0..count).collect();
        let values: Vec<f64> = chains.iter().map(|chain| self.value(&locked(chain))).collect();
        order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
        let lowest = values[order[0]] + same;
        let agreeing = (0..count).filter(|&k| values[k] <= lowest && locked(&chains[k]).independent);
        let perturbed = incumbent.rounds > 1;
        let enough = agreeing.count() as f64 >= self.options.effort * POLICY.agreement as f64;
        let many = progress.begun >= CHAINS;
        progress.confirmed = lowest.is_finite() && perturbed && many && !gained && enough;
        let leader = locked(&chains[order[0]]).best.clone();
        for (place, &k) in order[count / 2..].iter().enumerate() {
            let from = if place % 2 == 0 { leader.clone() } else { None };
            let mut chain = locked(&chains[k]);
            self.report(&chain, incumbent);
            *chain = Chain::new(self.number(progress.begun), from, incumbent.best.objective);
            progress.begun += 1;
        }
        if count < LEAST_CHAINS {
            let chain = Chain::new(self.number(progress.begun), None, incumbent.best.objective);
            progress.chains.push(Mutex::new(chain));
            progress.begun += 1;
        }
        if incumbent.rounds > 1 {
            progress.length = (progress.length * GROWTH).min(LONGEST_ROUND);
        }
    }

    /// Returns the difference of two values that counts as equal.
    fn same(&self) -> f64 {
        self.options.tol.max(numerics::GAIN) * self.space.scale()
    }

    /// Appends a chain to the report.
    fn report(&self, chain: &Chain<W::State>, incumbent: &mut Incumbent<'_>) {
        let objective = chain.counted;
        if objective.is_finite() {
            incumbent.runs.push(Run {
                heuristic: self.space.name(chain.number).to_owned(),
                improve: !chain.independent,
                seconds: incumbent.clock.seconds(),
                work: chain.total,
                objective,
                gain: (chain.reference - objective).max(0.0),
            });
        }
    }

    fn value(&self, chain: &Chain<W::State>) -> f64 {
        (chain.best.as_ref()).map_or(f64::INFINITY, |state| self.space.value(state))
    }

    /// Continues a chain for about `length` of work. The chain stops earlier after `perturbations` in a row without
    /// improvement; with 0 of them, at its first stationary point.
    fn advance(&self, chain: &mut Chain<W::State>, work: &TaskWork<'_>, length: f64, perturbations: usize) {
        let kinds = self.space.perturbations();
        let mut failed = 0;
        let goes_on = |chain: &Chain<W::State>, failed: usize| {
            failed < perturbations || chain.best.is_none() || chain.current.is_some()
        };
        while !work.expired() && work.spent() < length && goes_on(chain, failed) {
            let stream = pool::decorrelated(self.options.seed, chain.serial as u64);
            let seed = pool::decorrelated(stream, chain.seeds);
            chain.seeds += 1;
            let (before, mut kind) = (work.spent(), None);
            let state = match (chain.current.take(), &chain.best, chain.from.take()) {
                (Some(current), _, _) => Some(current),
                (None, Some(best), _) => {
                    let due = due(&kinds, &mut chain.spent_by);
                    kind = Some(due);
                    self.space.perturbed(best, (kinds[due].0, seed), work)
                }
                (None, None, Some(from)) => {
                    chain.best = Some(from);
                    continue;
                }
                (None, None, None) => self.space.start(chain.number, seed, work),
            };
            let charge = |chain: &mut Chain<W::State>| {
                if let Some(kind) = kind {
                    chain.spent_by[kind] += work.spent() - before;
                }
            };
            let Some(mut state) = state else {
                work.spend(FAILED_WORK);
                charge(chain);
                continue;
            };
            let start = self.space.value(&state);
            if kind.is_some() && !chain.decrease.reaches(start, self.value(chain)) {
                work.spend(FAILED_WORK);
                charge(chain);
                chain.descents += 1;
                chain.unsuccessful += 1;
                failed += 1;
                continue;
            }
            let left = (length - work.spent()).max(0.0);
            let stationary = &mut chain.stationary;
            let is_stationary =
                work.part(OVERDUE * length, |work| self.space.descend(&mut state, stationary, left, work));
            charge(chain);
            if work.expired() {
                break;
            }
            chain.descents += 1;
            if kind.is_some() {
                chain.decrease.note(start - self.space.value(&state), FADING);
            }
            let better = self.space.value(&state) < self.value(chain) - self.same();
            if is_stationary {
                chain.unsuccessful += usize::from(!better);
                failed = if better { 0 } else { failed + 1 };
            } else {
                chain.current = Some(state.clone());
            }
            if better {
                chain.best = Some(state);
            }
        }
    }
}

impl<'a, W: SearchSpace> Sequence<'a> for Chains<'_, 'a, W> {
    fn incumbent(&mut self) -> &mut Incumbent<'a> {
        self.incumbent
    }

    fn advance(&mut self) -> bool {
        self.search.advance_all(&mut self.progress, self.incumbent);
        self.incumbent.keep(&self.progress, false);
        true
    }

    fn optimum(&self) -> f64 {
        self.search.bound + self.search.same()
    }

    fn is_swept(&self) -> bool {
        self.search.options.max_sweeps.is_some_and(|most| self.incumbent.rounds >= most)
    }

    fn idle_work(&self) -> f64 {
        IDLE_WORK
    }

    fn is_done(&self) -> bool {
        let patience = self.search.options.effort * patience(self.search.space.choice()) as f64;
        self.progress.confirmed || self.progress.unsuccessful as f64 >= patience
    }

    fn finish(&mut self) {
        self.incumbent.status = self.incumbent.status.or(Some(Status::Converged));
        self.incumbent.keep(&self.progress, true);
        for chain in &self.progress.chains {
            self.search.report(&locked(chain), self.incumbent);
        }
    }
}
