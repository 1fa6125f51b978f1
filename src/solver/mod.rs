//! The one loop: choose rows, solve their pairs exactly, commit, repeat.
//!
//! ```text
//! repeat:  B     <- working set
//!          block <- rows X_B, gradient ∇f(X)_B, curvature C_BB
//!          V     <- exact pair sweeps inside the block
//!          X_B   <- V X_B;  the objective takes over ΔX_B
//! ```
//!
//! Every step keeps XᵀJX and lowers F = f + h by what it says; nothing is accepted whose decrease
//! could be rounding ([`TIE`](crate::pair::TIE)). At every checkpoint (a sweep, or
//! [`CHECKPOINT_UPDATES`] moves) the incremental quantities are evaluated afresh, and the drift of
//! XᵀJX is measured and repaired.

mod columns;
mod jacobi;
mod monitor;
mod options;
mod outcome;
mod verify;

use std::time::{Duration, Instant};

use ndarray::{Array2, ArrayView2};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::block::{Block, Curvature, Outcome, PairOptions, Pairs, Sweep};
use crate::error::{Error, Result};
use crate::manifold::{self, REPAIR_THRESHOLD, project_onto_pattern};
use crate::objective::Tracker;
use crate::pair::{Recession, Scratch};
use crate::penalty::Penalty;
use crate::problem::Problem;
use crate::rows::change;
use crate::threads::Threads;
use crate::working_set::{Pass, Schedule, Scores, TileOrder, Visit, WorkingSet};

pub(crate) use columns::column_pairs_gap;
pub use monitor::{Control, Monitor, Unwatched};
pub use options::{DEFAULT_TILE, Options, Side, Update};
pub use outcome::{Record, Solution, Status};

/// ‖X‖_F²/n, relative to max(1, its value at the start), beyond which iterates of a mixed signature
/// count as diverging: the infimum is not attained, or not finite.
pub const DIVERGENCE: f64 = 1e8;

/// Moves after which everything incremental is evaluated afresh, if no sweep ended before.
pub const CHECKPOINT_UPDATES: u64 = 100_000;

/// Drift of XᵀJX, relative to ‖X‖_F², at which a mixed signature is corrected: rounding of one
/// evaluation is a few ε times it.
pub const MIXED_REPAIR_THRESHOLD: f64 = 1e-14;

/// Part of the time that may go into the history and what the caller does with it.
const RECORD_SHARE: u32 = 20;

/// Pairs of rows of opposite sign that are looked at before anything moves: a problem that is
/// unbounded below mostly is so along any of them.
const PROBED_PAIRS: usize = 50;

/// Work of the solution of a pair: at least, and for every column; and of a visit that solves nothing.
const PAIR_WORK: (f64, f64) = (1500.0, 400.0);
const VISIT_WORK: f64 = 2.0;

/// Inner sweeps over the pairs of a block of k > 2 rows, at most.
const INNER_SWEEPS: usize = 50;

/// Between two full sweeps of a sparse iterate, its nonzero rows are swept alone until such a sweep
/// lowers F by less than this part of what the full one did, or [`SUPPORT_SWEEPS`] times.
const SUPPORT_SHARE: f64 = 0.01;

/// Sweeps over the nonzero rows between two full sweeps, at most.
const SUPPORT_SWEEPS: usize = 100;

/// Seconds between looks at the monitor.
const POLL: Duration = Duration::from_millis(40);

/// Minimises from a feasible start.
///
/// `k0` is the value XᵀJX is to keep: the identity on the Stiefel manifold.
///
/// # Errors
/// If the problem, the options or the shape of the start are not valid. Whatever happens during
/// the solve is a [`Status`].
///
/// ```
/// use ndarray::{Array2, array};
/// use orthobcd::{Options, Problem, Quadratic, Signature, Threads, Unwatched, minimize, penalty::L1};
///
/// let a = array![[3.0, 1.0, 0.1], [1.0, 2.0, 0.2], [0.1, 0.3, 1.0], [0.5, 0.1, 0.2]];
/// let smooth = Quadratic::from_data(a.view())?;
/// let penalty = L1::new(0.5);
/// let signature = Signature::stiefel(3);
/// let problem = Problem { smooth: &smooth, penalty: &penalty, signature: &signature, components: 2 };
/// let solution = minimize(
///     &problem, Array2::eye(3).slice_move(ndarray::s![.., ..2]),
///     &Options::default(), &Threads::serial(), &mut Unwatched,
/// )?;
/// assert!(solution.feasibility < 1e-14);
/// assert!(solution.objective < solution.history[0].objective);
/// # Ok::<(), orthobcd::Error>(())
/// ```
pub fn minimize<P: Penalty>(
    problem: &Problem<'_, P>,
    x0: Array2<f64>,
    options: &Options,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<Solution> {
    minimize_counting(problem, x0, options, threads, monitor).map(|(solution, _)| solution)
}

/// [`minimize`], and the work that it did, as [`Options::max_work`] counts it.
pub(crate) fn minimize_counting<P: Penalty>(
    problem: &Problem<'_, P>,
    x0: Array2<f64>,
    options: &Options,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<(Solution, f64)> {
    options.check(problem.smooth.rows())?;
    problem.check_start(x0.view())?;
    if !problem.signature.is_definite()
        && matches!(options.working_set, WorkingSet::WssSv | WorkingSet::WssOr)
    {
        return Err(Error::invalid(
            "working_set",
            "must be random, cyclic or tiled for a mixed signature",
        ));
    }
    let mut state = State::new(problem, x0, options, threads)?;
    let solution = state.run(monitor);
    Ok((solution, state.work))
}

/// Everything that changes during a solve.
struct State<'a, P: Penalty> {
    problem: &'a Problem<'a, P>,
    options: &'a Options,
    threads: &'a Threads,
    x: Array2<f64>,
    k0: Array2<f64>,
    tracker: Box<dyn Tracker + 'a>,
    /// `counts.updates` when the tracker was evaluated last.
    fresh: u64,
    objective: f64,
    /// What f is all over the constraint, see [`Problem::constant`].
    constant: f64,
    magnitude: f64,
    /// Sum of the changes of F since the last full sweep ended, and since the last pass did.
    gained: [f64; 2],
    counts: Outcome,
    /// Work done, see [`Options::max_work`].
    work: f64,
    schedule: Schedule,
    visit: Visit,
    rng: Xoshiro256PlusPlus,
    block: Block,
    /// Whether the block still holds the rows of X it was loaded with.
    block_current: bool,
    scratch: Scratch,
    /// The proximal weight at the moment.
    alpha: f64,
    lipschitz: f64,
    jacobi: Option<jacobi::Jacobi>,
    verification: verify::Verification,
    columns: Option<columns::Columns<P>>,
    turn: columns::Turn,
    /// Whether X has moved without the tracker.
    stale: bool,
    /// Pair visits by which sweeps of columns count for more than their pairs.
    credit: u64,
    recession: Option<Recession>,
    /// The last point of a mixed signature that was not diverging.
    good: Option<Array2<f64>>,
    divergence: f64,
    arch: pulp::Arch,
    started: Instant,
    history: Vec<Record>,
}

impl<'a, P: Penalty> State<'a, P> {
    fn new(
        problem: &'a Problem<'a, P>,
        x0: Array2<f64>,
        options: &'a Options,
        threads: &'a Threads,
    ) -> Result<Self> {
        let (n, r) = x0.dim();
        let started = Instant::now();
        let x = x0.as_standard_layout().into_owned();
        let k0 = manifold::start_constraint(x.view(), problem.signature);
        let tracker = problem.smooth.tracker(x.view(), threads);
        let columns = columns::Columns::new(problem, k0.view(), options.side)?;
        let turn = columns::Turn::new(options.side, columns.as_ref(), n);
        let mut block = Block::new(r);
        block.set_signature(problem.signature, options.rapidity_bound);
        let size = x.iter().map(|v| v * v).sum::<f64>() / n as f64;
        let tile_order = if tracker.keeps_lead() {
            TileOrder::ByLead
        } else {
            TileOrder::RoundRobin
        };
        let mut state = Self {
            problem,
            options,
            threads,
            tracker,
            fresh: 0,
            objective: 0.0,
            constant: problem.constant(k0.view()),
            magnitude: 0.0,
            gained: [0.0; 2],
            k0,
            counts: Outcome::default(),
            work: 0.0,
            schedule: Schedule::new(
                options.working_set,
                n,
                options.block_size,
                options.tile,
                tile_order,
            )
            .scoring(options.scored_pairs),
            visit: Visit::default(),
            rng: Xoshiro256PlusPlus::seed_from_u64(options.seed),
            block,
            block_current: false,
            scratch: Scratch::new(r),
            alpha: 0.0,
            lipschitz: 0.0,
            jacobi: None,
            verification: verify::Verification::new(n, options, tile_order),
            columns,
            turn,
            stale: false,
            credit: 0,
            recession: None,
            good: (!problem.signature.is_definite()).then(|| x.clone()),
            divergence: DIVERGENCE * size.max(1.0),
            arch: crate::simd::arch(),
            started,
            history: Vec::new(),
            x,
        };
        state.evaluate();
        Ok(state)
    }

    /// F and its magnitude from the tracker and the current X.
    fn evaluate(&mut self) {
        let smooth = self.tracker.value(self.x.view());
        let penalty = self.problem.penalty.value(self.x.view());
        self.objective = smooth + penalty;
        self.magnitude = self.problem.magnitude(smooth, penalty, self.constant);
    }

    /// Takes over the change of F by accepted moves. What a sweep gained is the sum of these: the
    /// difference of two evaluations is lost in the rounding of a large constant.
    fn lower(&mut self, change: f64) {
        self.objective += change;
        self.gained.iter_mut().for_each(|gained| *gained += change);
    }

    /// What the spectrum of the Hessian says: left until there is time for a step.
    fn prepare(&mut self) {
        let smooth = self.problem.smooth;
        if self.options.proximal > 0.0 {
            self.alpha = self.options.proximal * smooth.spread();
        }
        if self.options.working_set == WorkingSet::WssOr {
            self.lipschitz = self.majoriser();
        }
        if self.options.update == Update::Jacobi {
            let upper = if self.options.adaptive {
                smooth.hessian_bounds().1
            } else {
                self.majoriser()
            };
            let (n, r) = self.x.dim();
            let jacobi = jacobi::Jacobi::new(n, r, upper, self.problem, self.options);
            self.jacobi = Some(jacobi);
        }
    }

    /// The smallest L that is known to majorise f by L/2 ‖ΔX‖², negative where f is concave enough,
    /// so that C + cI changes no step. (The papers take the spectral norm, which is that or more.)
    fn majoriser(&self) -> f64 {
        let smooth = self.problem.smooth;
        if self.problem.signature.is_definite() && smooth.metric().is_none() {
            smooth.spectrum().1
        } else {
            smooth.hessian_bounds().1
        }
    }

    /// Decreases of this size in all pairs would be lost in the rounding of F: moves that only shift rounding
    /// about, between rows that are all but zero, say.
    fn floor(&self) -> f64 {
        let n = self.x.nrows() as f64;
        f64::EPSILON * self.magnitude / (0.5 * n * (n - 1.0))
    }

    /// The decrease that counts as none: what is below the rounding of F never is one.
    fn threshold(&self) -> f64 {
        self.options.tol.max(f64::EPSILON) * self.magnitude
    }

    fn out_of_time(&self) -> bool {
        let limit = self.options.max_time;
        limit.is_some_and(|limit| self.started.elapsed().as_secs_f64() >= limit)
    }

    fn run(&mut self, monitor: &mut dyn Monitor) -> Solution {
        let status = self.descend(monitor);
        self.finish(status)
    }

    fn descend(&mut self, monitor: &mut dyn Monitor) -> Status {
        let n = self.x.nrows() as u64;
        let sweep = n * (n - 1) / 2;
        let mut next_sweep = sweep;
        let (mut support_goal, mut support_sweeps) = (0.0, 0);
        let (mut checked_updates, mut swept_updates) = (0, 0);
        let (mut polled, mut recorded) = (Instant::now(), Instant::now());
        let mut record_cost = Duration::ZERO;
        let mut ticks = 0u32;
        if self.record(monitor, &mut record_cost) == Control::Stop {
            return Status::Interrupted;
        }
        if self.options.max_sweeps == Some(0) {
            return Status::MaxSweeps;
        }
        if self.out_of_time() {
            return Status::MaxTime;
        }
        self.prepare();
        self.probe();
        if self.recession.is_some() {
            return Status::Unbounded;
        }
        loop {
            if self.options.target.is_some_and(|t| self.objective <= t) {
                return Status::Target;
            }
            if self
                .options
                .max_work
                .is_some_and(|limit| self.work >= limit as f64)
            {
                return Status::MaxSweeps;
            }
            // A look at the clock costs as much as a small pair: every eighth is enough.
            let look = ticks.is_multiple_of(8) || !self.steps_by_pairs();
            ticks = ticks.wrapping_add(1);
            if look {
                if self.out_of_time() {
                    return Status::MaxTime;
                }
                let now = Instant::now();
                if now.duration_since(polled) >= POLL {
                    polled = now;
                    if monitor.poll() == Control::Stop {
                        return Status::Interrupted;
                    }
                }
                let pause = Duration::from_millis(100).max(RECORD_SHARE * record_cost);
                if now.duration_since(recorded) >= pause {
                    recorded = now;
                    if self.record(monitor, &mut record_cost) == Control::Stop {
                        return Status::Interrupted;
                    }
                }
            }

            let visited = self.counts.visited;
            if self.turn.columns {
                self.column_step();
                self.work += (self.counts.visited - visited) as f64 * self.pair_work();
                // Every round of columns can grow X by orders of magnitude.
                if self.recession.is_none() && self.diverges() {
                    return Status::Diverged;
                }
            } else {
                self.refresh_if_stale();
                self.step();
                self.work += VISIT_WORK * (self.counts.visited - visited) as f64;
            }
            if self.recession.is_some() {
                return Status::Unbounded;
            }

            let progress = self.counts.visited + self.credit;
            let ended = if self.tiled() && !self.turn.columns {
                self.schedule().ended()
            } else {
                (progress >= next_sweep).then_some(Pass::Full)
            };
            let within = self.turn.columns && ended.is_none();
            if ended == Some(Pass::Full)
                || (!within && self.counts.updates >= checked_updates + CHECKPOINT_UPDATES)
            {
                checked_updates = self.counts.updates;
                self.checkpoint();
                if self.diverges() {
                    return Status::Diverged;
                }
            }
            match ended {
                None => {}
                Some(Pass::Support) => {
                    let [_, change] = self.gained;
                    let decrease = -change;
                    self.gained[1] = 0.0;
                    support_sweeps += 1;
                    if decrease > support_goal && support_sweeps < SUPPORT_SWEEPS {
                        self.schedule.restrict_to_support();
                    }
                }
                Some(Pass::Full) => {
                    next_sweep = progress + sweep;
                    let [change, _] = self.gained;
                    let decrease = -change;
                    self.gained = [0.0; 2];
                    let pause = if self.history.len() < 1000 { 0 } else { 10 };
                    if recorded.elapsed()
                        >= Duration::from_millis(pause).max(RECORD_SHARE * record_cost)
                    {
                        recorded = Instant::now();
                        if self.record(monitor, &mut record_cost) == Control::Stop {
                            return Status::Interrupted;
                        }
                    }
                    let threshold = self.threshold();
                    let moved = self.counts.updates > swept_updates;
                    swept_updates = self.counts.updates;
                    if self.conclude(decrease, moved, threshold) {
                        return Status::Converged;
                    }
                    if self
                        .options
                        .max_sweeps
                        .is_some_and(|limit| progress / sweep >= limit)
                    {
                        return Status::MaxSweeps;
                    }
                    let sparse = 2 * self.schedule.support() < self.x.nrows();
                    let own = self.verification.stage == verify::Stage::Own;
                    if own && self.tiled() && sparse && !self.turn.columns {
                        support_goal = (SUPPORT_SHARE * decrease).max(threshold);
                        support_sweeps = 0;
                        self.schedule.restrict_to_support();
                    }
                }
            }
        }
    }

    /// Work of a pair: its solution, and its share of a block's curvature.
    fn pair_work(&self) -> f64 {
        let smooth = self.problem.smooth;
        let curvature = match smooth.dense() {
            Some(_) => 1.0,
            None => 0.5 * smooth.product_work() / smooth.rows() as f64,
        };
        PAIR_WORK.0 + PAIR_WORK.1 * self.problem.components as f64 + curvature
    }

    /// Looks for a pair of rows along which F is unbounded below, moving nothing: [`PROBED_PAIRS`]
    /// pairs of opposite sign. They count as visited if one is found.
    fn probe(&mut self) {
        if self.problem.signature.is_definite() || self.options.rapidity_bound.is_some() {
            return;
        }
        let (positive, negative): (Vec<usize>, Vec<usize>) =
            (0..self.x.nrows()).partition(|&i| self.problem.signature.sign(i) > 0.0);
        let (p, q) = (positive.len(), negative.len());
        for k in 0..PROBED_PAIRS.min(p * q) {
            let (a, b) = (k % p, (k % p + k / p) % q);
            let (i, j) = (positive[a].min(negative[b]), positive[a].max(negative[b]));
            self.block.load(self.x.view(), &[i], &[j]);
            self.tracker.fill(&mut self.block);
            self.sweep_block(Pairs::Cross);
            if let Some(recession) = self.block.recession() {
                self.recession = Some(recession);
                self.counts.visited += k as u64 + 1;
                return;
            }
        }
    }

    /// Whether a step is one pair, chosen without scores.
    fn steps_by_pairs(&self) -> bool {
        let rule = self.options.working_set;
        matches!(rule, WorkingSet::Random | WorkingSet::Cyclic)
            && self.options.block_size == 2
            && !self.tiled()
            && self.jacobi.is_none()
            && !self.turn.columns
    }

    /// The rule at work.
    fn schedule(&self) -> &Schedule {
        if self.verification.stage == verify::Stage::Own {
            &self.schedule
        } else {
            &self.verification.schedule
        }
    }

    /// Visits one block, or one matching.
    fn step(&mut self) {
        let own = self.verification.stage == verify::Stage::Own;
        if own && let Some(mut jacobi) = self.jacobi.take() {
            let visited = self.counts.visited;
            self.jacobi_round(&mut jacobi);
            self.jacobi = Some(jacobi);
            self.work += (self.counts.visited - visited) as f64 * self.pair_work();
            return;
        }
        {
            let mut scores = PointScores {
                x: self.x.view(),
                tracker: &*self.tracker,
                penalty: self.problem.penalty,
                rows: [Vec::new(), Vec::new()],
                all: None,
            };
            let schedule = if own {
                &mut self.schedule
            } else {
                &mut self.verification.schedule
            };
            schedule.next(
                &mut self.visit,
                self.x.view(),
                &mut self.rng,
                &mut scores,
                self.lipschitz,
                self.alpha,
            );
        }
        self.counts.visited += self.visit.skipped;
        let Some(pairs) = self.visit.pairs else {
            return;
        };
        let (lead, rest) = (&self.visit.lead, &self.visit.rest);
        let resting = |rows: &[usize]| {
            rows.iter()
                .all(|&i| self.x.row(i).iter().all(|&v| v == 0.0))
        };
        if pairs == Pairs::Cross && lead.len() == 1 && resting(lead) && resting(rest) {
            self.counts.visited += rest.len() as u64;
            return;
        }
        if self.visit.again && self.block_current {
            self.block.rebase();
        } else {
            self.block.load(self.x.view(), lead, rest);
            self.tracker.fill(&mut self.block);
            self.block_current = true;
        }
        let outcome = self.sweep_block(pairs);
        // Pairs of zero rows are not solved.
        let rows = self.block.len();
        let zero = (0..rows).filter(|&k| self.block.row(k).iter().all(|&v| v == 0.0));
        let moving = 1.0 - (zero.count() as f64 / rows as f64).powi(2);
        self.work += moving * outcome.visited as f64 * self.pair_work();
        self.recession = self.recession.or(self.block.recession());
        if self.verification.stage == verify::Stage::Look {
            self.counts.visited += outcome.visited;
            if outcome.largest > self.threshold() {
                self.enter(verify::Stage::Clear);
            }
            return;
        }
        if outcome.updates > 0 {
            for (k, &row) in self.block.rows.iter().enumerate() {
                if self.block.has_moved(k) {
                    self.x
                        .row_mut(row)
                        .iter_mut()
                        .zip(self.block.row(k))
                        .for_each(|(x, &new)| *x = new);
                }
            }
            self.block.collect_delta();
            self.tracker.commit(&self.block, self.threads);
            self.lower(outcome.change);
        }
        self.counts.absorb(outcome);
    }

    fn sweep_block(&mut self, pairs: Pairs) -> Outcome {
        let options = PairOptions {
            curvature: self.curvature(),
            alpha: self.alpha,
            metric: self.problem.smooth.metric(),
            floor: self.floor(),
        };
        let small_block = !self.tiled() && self.block.len() > 2;
        let mut outcome = Outcome::default();
        // A turn of all rows is orthogonal, so the rows have to be of one sign.
        let signs = self.problem.signature;
        let rows = &self.block.rows;
        let orthogonal =
            signs.is_definite() || rows.iter().all(|&i| signs.sign(i) == signs.sign(rows[0]));
        if small_block && P::SMOOTH && orthogonal {
            outcome = self.block.turn_all(options);
            if options.curvature == Curvature::Scalar {
                return outcome;
            }
        }
        for _ in 0..if small_block { INNER_SWEEPS } else { 1 } {
            let swept = self.arch.dispatch(Sweep {
                block: &mut self.block,
                pairs,
                penalty: self.problem.penalty,
                options,
                scratch: &mut self.scratch,
            });
            outcome.absorb(swept);
            if swept.updates == 0 {
                break;
            }
        }
        outcome
    }

    /// Evaluates everything afresh and repairs the drift of the constraint, if that does not raise
    /// what has been reported.
    fn checkpoint(&mut self) {
        if self.stale || self.fresh < self.counts.updates {
            self.tracker.refresh(self.x.view(), self.threads);
            self.stale = false;
            self.fresh = self.counts.updates;
        }
        self.evaluate();
        let norm = |a: &Array2<f64>| a.iter().map(|v| v * v).sum::<f64>();
        let definite = self.problem.signature.is_definite();
        // Rounding of XᵀJX is relative to ‖X‖², which on the Stiefel manifold is ‖K‖²-like itself.
        let size = if definite {
            norm(&self.k0).sqrt()
        } else {
            norm(&self.x)
        };
        let drift = manifold::drift(self.x.view(), self.problem.signature, self.k0.view());
        let threshold = if definite {
            REPAIR_THRESHOLD
        } else {
            MIXED_REPAIR_THRESHOLD
        };
        if drift > threshold * size.max(1.0) {
            let ceiling = self.history.last().map_or(self.objective, |r| r.objective);
            let dense = !definite && P::SMOOTH && manifold::signs_of(self.k0.view()).is_some();
            let project = if dense {
                manifold::project_dense
            } else {
                project_onto_pattern
            };
            let mut repaired = project(&self.x, self.problem.signature, self.k0.view());
            for row in repaired.outer_iter_mut() {
                change(row, |row| self.problem.penalty.tidy(row));
            }
            let mut tracker = self.problem.smooth.tracker(repaired.view(), self.threads);
            let value =
                tracker.value(repaired.view()) + self.problem.penalty.value(repaired.view());
            if value <= ceiling {
                std::mem::swap(&mut self.tracker, &mut tracker);
                self.x = repaired;
                self.block_current = false;
                self.evaluate();
            }
        }
    }

    /// Whether ‖X‖² has left every bound; X is the last good point then. Otherwise X is that point.
    fn diverges(&mut self) -> bool {
        let Some(good) = &mut self.good else {
            return false;
        };
        let size = self.x.iter().map(|v| v * v).sum::<f64>() / self.x.nrows() as f64;
        if size <= self.divergence {
            good.assign(&self.x);
            return false;
        }
        self.x.assign(good);
        true
    }

    fn feasibility(&self) -> f64 {
        manifold::drift(self.x.view(), self.problem.signature, self.k0.view())
            + self.problem.penalty.infeasibility(self.x.view())
    }

    fn record(&mut self, monitor: &mut dyn Monitor, cost: &mut Duration) -> Control {
        let begun = Instant::now();
        // Fresh evaluations may differ from tracked values in the last digits; a report never rises.
        let ceiling = self.history.last().map_or(f64::INFINITY, |r| r.objective);
        let record = Record {
            seconds: self.started.elapsed().as_secs_f64(),
            objective: self.objective.min(ceiling),
            feasibility: self.feasibility(),
            iterations: self.counts.visited,
        };
        self.history.push(record);
        let control = monitor.record(&record, self.x.view());
        // What the caller does with it counts: a callback that sleeps is called less often.
        *cost = begun.elapsed();
        control
    }

    fn finish(&mut self, status: Status) -> Solution {
        self.checkpoint();
        let smooth_value = self.tracker.value(self.x.view());
        let penalty_value = self.problem.penalty.value(self.x.view());
        let objective = smooth_value + penalty_value;
        let n = self.x.nrows() as u64;
        let last = Record {
            seconds: self.started.elapsed().as_secs_f64(),
            objective,
            feasibility: self.feasibility(),
            iterations: self.counts.visited,
        };
        let mut history = std::mem::take(&mut self.history);
        if history.len() > 1
            && history
                .last()
                .is_some_and(|r| r.iterations == self.counts.visited)
        {
            history.pop();
        }
        // Tracked values agree with fresh ones to rounding; those a rounding error below the final
        // value are lifted to it, so that the history is what it says: nonincreasing, ending here.
        for record in &mut history {
            record.objective = record.objective.max(objective);
        }
        history.push(last);
        Solution {
            x: std::mem::take(&mut self.x),
            objective,
            smooth_value,
            penalty_value,
            feasibility: last.feasibility,
            status,
            iterations: self.counts.visited,
            sweeps: (self.counts.visited + self.credit) / (n * (n - 1) / 2),
            updates: self.counts.updates,
            seconds: last.seconds,
            history,
            recession: self.recession,
        }
    }
}

/// Scores of pairs at the current point, for the greedy rules.
struct PointScores<'a, P: Penalty> {
    x: ArrayView2<'a, f64>,
    tracker: &'a dyn Tracker,
    penalty: &'a P,
    rows: [Vec<f64>; 2],
    /// All rows of Γ, where all pairs are scored.
    all: Option<Array2<f64>>,
}

impl<P: Penalty> PointScores<'_, P> {
    /// Row `row` of Γ.
    fn subgradient(&self, row: usize, target: &mut [f64]) {
        self.tracker.gradient_row(row, target);
        for (k, (t, &v)) in target.iter_mut().zip(self.x.row(row)).enumerate() {
            *t += self.penalty.slope(row, k, v);
        }
    }
}

impl<P: Penalty> Scores for PointScores<'_, P> {
    fn expect_all(&mut self) {
        let mut all = Array2::zeros(self.x.dim());
        for (row, mut target) in all.outer_iter_mut().enumerate() {
            if let Some(target) = target.as_slice_mut() {
                self.subgradient(row, target);
            }
        }
        self.all = Some(all);
    }

    fn products(&mut self, i: usize, j: usize) -> ([f64; 4], [f64; 3]) {
        let mut rows = std::mem::take(&mut self.rows);
        for (target, row) in rows.iter_mut().zip([i, j]) {
            target.resize(self.x.ncols(), 0.0);
            match &self.all {
                Some(all) => target
                    .iter_mut()
                    .zip(all.row(row))
                    .for_each(|(t, &g)| *t = g),
                None => self.subgradient(row, target),
            }
        }
        self.rows = rows;
        let (xi, xj) = (self.x.row(i), self.x.row(j));
        let dot = |g: &[f64], x: ndarray::ArrayView1<'_, f64>| -> f64 {
            g.iter().zip(x).map(|(g, x)| g * x).sum()
        };
        (
            [
                dot(&self.rows[0], xi),
                dot(&self.rows[0], xj),
                dot(&self.rows[1], xi),
                dot(&self.rows[1], xj),
            ],
            [xi.dot(&xi), xi.dot(&xj), xj.dot(&xj)],
        )
    }
}
