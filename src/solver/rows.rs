//! Row moves: the working set chooses a block, its pairs are solved exactly, and the block is committed.

use ndarray::{Array2, ArrayView1, ArrayView2};

use super::block_visit::{BlockSolver, BlockVisit};
use super::inner_tiles::{Context, InnerSweep};
use super::ledger::Ledger;
use super::mover::{Mover, Step};
use super::options::{Options, Update};
use super::point::Point;
use crate::block::{Block, Curvature};
use crate::numerics;
use crate::objective::Tracker;
use crate::pair::Recession;
use crate::penalty::Penalty;
use crate::working_set::{Pass, Schedule, Scores, Visit, WorkingSet};

/// Work of the solution of a pair with ℓ1, constant and per column.
const PAIR_WORK: (f64, f64) = (3000.0, 250.0);

/// Work of a visit that solves nothing.
pub(super) const VISIT_WORK: f64 = 2.0;

/// Pairs of rows of opposite sign that are probed before anything moves: a problem that is unbounded below
/// mostly is so along any of them.
const PROBED_PAIRS: usize = 50;

/// Single pairs per step: a check of the clock costs as much as a small pair.
const PAIRS_PER_STEP: usize = 8;

/// Between two full sweeps of a sparse iterate, its nonzero rows are swept alone until such a sweep lowers F
/// by less than this part of the decrease of the full sweep, or `numerics::STEPS` times.
const SUPPORT_SHARE: f64 = 0.01;

/// Returns the work of the solution of a pair of rows of `r` entries.
pub(crate) fn solution_work(penalty: &Penalty, r: usize) -> f64 {
    penalty.pair_work() * (PAIR_WORK.0 + PAIR_WORK.1 * r as f64)
}

/// Returns the work of a pair: its solution, and its share of a block's curvature.
pub(super) fn pair_work(point: &Point<'_>) -> f64 {
    let curvature = match point.form {
        Some(form) if form.dense().is_none() => 0.5 * form.product_work() / form.order() as f64,
        _ => 1.0,
    };
    solution_work(point.problem.penalty, point.problem.components) + curvature
}

/// Sweeps over the nonzero rows since the last full one.
#[derive(Default)]
struct Support {
    goal: f64,
    sweeps: usize,
}

/// The work, sweeps and decrease of visits.
struct Tally {
    pair_work: f64,
    /// Whether the rule is cyclic: C(n, k) successive visits visit every set of k rows, and each set counts once, however
    /// often its pairs are swept.
    cyclic: bool,
    /// The decrease of F since the last pass over the nonzero rows.
    gained: f64,
}

impl Tally {
    /// Counts the result of the sweep of a block. Returns a step that ends the pass, if there is one.
    fn record(&mut self, visit: &mut BlockVisit, frozen: bool, ledger: &mut Ledger) -> Option<Step> {
        let (block, outcome) = (&visit.block, visit.outcome);
        let mut visited = visit.chosen.skipped;
        if visit.chosen.pairs.is_none() {
            ledger.visit(visited, VISIT_WORK * visited as f64);
            return None;
        }
        // Pairs of zero rows are not solved.
        let rows = block.len();
        let zero = (0..rows).filter(|&k| block.row(k).iter().all(|&v| v == 0.0));
        let moving = 1.0 - (zero.count() as f64 / rows as f64).powi(2);
        let solved = outcome.visited + outcome.undone;
        ledger.visit(0, moving * solved as f64 * self.pair_work);
        visit.chosen.moved |= -outcome.change > ledger.threshold();
        if !frozen && outcome.updates > 0 {
            ledger.lower(outcome.change, outcome.updates);
            self.gained -= outcome.change;
        }
        visited += match self.cyclic {
            true => (rows * (rows - 1) / 2) as u64,
            false => outcome.visited,
        };
        let step = if let Some(recession) = block.recession() {
            Some(Step::Unbounded(recession))
        } else if block.has_left() {
            Some(Step::Diverged)
        } else {
            let found = frozen && outcome.largest > ledger.threshold();
            found.then_some(Step::Found)
        };
        let work = if step.is_some() { 0.0 } else { VISIT_WORK };
        ledger.visit(visited, work * visited as f64);
        step
    }
}

/// The mover of rows by a working set.
pub(super) struct RowMover {
    schedule: Schedule,
    visit: BlockVisit,
    inner: InnerSweep,
    /// The rows of a block of the Jacobi update.
    jacobi: Option<usize>,
    tiled: bool,
    pairs_per_step: usize,
    solver: BlockSolver,
    lipschitz: f64,
    tally: Tally,
    support: Support,
}

impl RowMover {
    /// The mover for the rule of the options; `proximal` is the proximal weight, `lipschitz` the majoriser of
    /// WSS-OR.
    pub(super) fn new(point: &Point<'_>, options: &Options, proximal: f64, lipschitz: f64) -> Self {
        let jacobi = options.update == Update::Jacobi;
        let rule = match jacobi {
            true => WorkingSet::Tiled,
            false => options.working_set.clone(),
        };
        let single = options.block_size == 2;
        let chosen_freely = matches!(rule, WorkingSet::Random | WorkingSet::Cyclic);
        let solver = BlockSolver {
            curvature: options.curvature,
            proximal,
            small_block: (jacobi || rule != WorkingSet::Tiled) && !single,
            frozen: false,
        };
        Self {
            solver,
            lipschitz,
            pairs_per_step: if single && chosen_freely { PAIRS_PER_STEP } else { 1 },
            jacobi: jacobi.then_some(options.block_size),
            ..Self::with_rule(point, options, rule, false)
        }
    }

    /// Passes that move pairs, with the exact curvature and no proximal term, after a verification found one: by the
    /// rule of the options if it chooses single pairs and visits every pair some time, otherwise tile by tile.
    pub(super) fn clearing(point: &Point<'_>, options: &Options, lipschitz: f64) -> Self {
        let single = options.update == Update::GaussSeidel && options.block_size == 2;
        if !single || matches!(options.working_set, WorkingSet::Tiled | WorkingSet::Own(_)) {
            return Self::all_pairs(point, options, false);
        }
        let exact = options.clone().with_curvature(Curvature::Exact);
        Self::new(point, &exact, 0.0, lipschitz)
    }

    /// A pass over all pairs, tile by tile, with the exact curvature and no proximal term; if `frozen`,
    /// nothing moves.
    pub(super) fn all_pairs(point: &Point<'_>, options: &Options, frozen: bool) -> Self {
        Self::with_rule(point, options, WorkingSet::Tiled, frozen)
    }

    fn with_rule(point: &Point<'_>, options: &Options, rule: WorkingSet, frozen: bool) -> Self {
        let (n, r) = point.x.dim();
        // A tile holds whole blocks of the Jacobi update.
        let tile = match options.update {
            Update::GaussSeidel => options.tile,
            Update::Jacobi => options.tile.max(options.block_size),
        };
        let mut block = Block::new(r);
        block.set_signature(point.problem.signature, options.rapidity_bound);
        block.rotate_only(point.problem.rotations);
        block.freeze(frozen);
        Self {
            tiled: rule == WorkingSet::Tiled,
            tally: Tally { pair_work: pair_work(point), cyclic: rule == WorkingSet::Cyclic, gained: 0.0 },
            schedule: Schedule::new(rule, n, options.block_size, tile).scoring(options.scored_pairs),
            visit: BlockVisit::new(block.clone()),
            inner: InnerSweep::new(block),
            jacobi: None,
            pairs_per_step: 1,
            solver: BlockSolver { frozen, ..BlockSolver::default() },
            lipschitz: 0.0,
            support: Support::default(),
        }
    }

    /// Searches for a pair of rows along which F is unbounded below, among [`PROBED_PAIRS`] pairs of opposite
    /// sign; moves nothing. Returns the pair, and the number of pairs visited.
    pub(super) fn probe(&mut self, point: &mut Point<'_>) -> Option<(Recession, u64)> {
        let (positive, negative): (Vec<usize>, Vec<usize>) =
            (0..point.x.nrows()).partition(|&i| point.problem.signature.sign(i) > 0.0);
        let (p, q) = (positive.len(), negative.len());
        (0..PROBED_PAIRS.min(p * q)).find_map(|k| {
            let (a, b) = (k % p, (k % p + k / p) % q);
            let (i, j) = (positive[a].min(negative[b]), positive[a].max(negative[b]));
            let visit = &mut self.visit;
            visit.chosen = Visit::of_pair(i, j);
            visit.fill(point);
            self.solver.sweep(visit, point.problem, self.solver.options(point));
            visit.block.recession().map(|found| (found, k as u64 + 1))
        })
    }

    /// Chooses the block that is visited next; returns false if the rule has none.
    fn choose(&mut self, point: &mut Point<'_>) -> bool {
        let mut scores = PointScores::new(point.x.view(), &*point.tracker, point.problem.penalty);
        self.schedule.next(
            &mut self.visit.chosen,
            point.x.view(),
            &mut point.rng,
            &mut scores,
            self.lipschitz,
            self.solver.proximal,
        )
    }

    /// Visits a block, or the next inner tiles of one.
    fn visit(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        if self.inner.is_done() {
            point.refresh_if_stale();
            if !self.choose(point) {
                return Step::Ended;
            }
            let chosen = &self.visit.chosen;
            let tiles = chosen.inner.or(self.jacobi.map(|_| self.schedule.one_tile()));
            if let Some(tiles) = tiles.filter(|_| chosen.pairs.is_some()) {
                self.visit.fill(point);
                let block = &mut self.visit.block;
                block.set_growth_limit(point.growth_limit);
                self.inner.begin(block.lead, block.len() - block.lead, tiles);
            }
        }
        let step = if self.inner.is_done() {
            self.sweep(point);
            self.tally.record(&mut self.visit, self.solver.frozen, ledger)
        } else {
            self.sweep_inner_tiles(point, ledger)
        };
        step.unwrap_or_else(|| self.end_of_pass(ledger))
    }

    /// Sweeps the block and commits its moves.
    fn sweep(&mut self, point: &mut Point<'_>) {
        let visit = &mut self.visit;
        visit.skip_zeros(point.x.view());
        visit.fill(point);
        visit.block.set_growth_limit(point.growth_limit);
        self.solver.sweep(visit, point.problem, self.solver.options(point));
        point.growth_limit = visit.block.growth_limit();
        if !self.solver.frozen && visit.outcome.updates > 0 {
            point.commit(visit.block.moved());
        }
    }

    /// Sweeps the next inner tiles; after the last ones, commits the moves of the block.
    fn sweep_inner_tiles(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Option<Step> {
        let (frozen, mut step) = (self.solver.frozen, None);
        let context = Context {
            solver: self.solver,
            jacobi: self.jacobi,
            problem: point.problem,
            options: self.solver.options(point),
            threads: point.threads,
        };
        let (tiles, undone) = self.inner.step(&mut self.visit.block, context);
        point.growth_limit = self.visit.block.growth_limit();
        if undone {
            let outcomes = tiles.iter().map(|tile| tile.visit.outcome);
            let solved: u64 = outcomes.map(|o| o.visited + o.undone).sum();
            ledger.visit(0, solved as f64 * self.tally.pair_work);
            return Some(Step::Within);
        }
        for tile in tiles {
            let moved = tile.visit.block.moved();
            if !frozen && !moved.is_empty() {
                point.place(&moved);
            }
            step = step.or(self.tally.record(&mut tile.visit, frozen, ledger));
        }
        if step.is_some() {
            self.inner.end();
            return step;
        }
        if !self.inner.is_done() {
            return Some(Step::Within);
        }
        let moved = self.visit.block.moved();
        if !moved.is_empty() {
            point.commit(moved);
        }
        let skipped = self.visit.chosen.skipped;
        ledger.visit(skipped, VISIT_WORK * skipped as f64);
        None
    }

    /// Returns whether the last visit ended a pass.
    fn end_of_pass(&mut self, ledger: &Ledger) -> Step {
        if !self.tiled {
            return if ledger.has_swept() { Step::Pass } else { Step::Done };
        }
        match self.schedule.ended() {
            None => Step::Done,
            Some(Pass::Full) => Step::Pass,
            Some(Pass::Support) => {
                let support = &mut self.support;
                support.sweeps += 1;
                let gained = std::mem::take(&mut self.tally.gained);
                if gained > support.goal && support.sweeps < numerics::STEPS {
                    self.schedule.restrict_to_support();
                }
                Step::Done
            }
        }
    }
}

impl Mover for RowMover {
    fn step(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        for _ in 1..self.pairs_per_step {
            let step = self.visit(point, ledger);
            if step != Step::Done {
                return step;
            }
        }
        self.visit(point, ledger)
    }

    fn begin(&mut self) {
        self.visit.loaded = None;
        self.visit.chosen.moved = true;
    }

    fn again(&mut self, decrease: f64, threshold: f64) {
        if self.tiled && 2 * self.schedule.support() < self.schedule.rows() {
            self.support = Support { goal: (SUPPORT_SHARE * decrease).max(threshold), ..Support::default() };
            self.tally.gained = 0.0;
            self.schedule.restrict_to_support();
        }
    }

    fn drop_proximal(&mut self) -> bool {
        std::mem::take(&mut self.solver.proximal) > 0.0
    }

    fn is_exhaustive(&self) -> bool {
        let all = self.tiled || self.tally.cyclic;
        all && self.solver.curvature == Curvature::Exact
    }
}

/// Scores of pairs at the current point, for the greedy rules.
pub(super) struct PointScores<'a> {
    x: ArrayView2<'a, f64>,
    tracker: &'a dyn Tracker,
    penalty: &'a Penalty,
    rows: [Vec<f64>; 2],
    /// All rows of Γ, if all pairs are scored.
    all: Option<Array2<f64>>,
}

impl<'a> PointScores<'a> {
    pub(super) fn new(x: ArrayView2<'a, f64>, tracker: &'a dyn Tracker, penalty: &'a Penalty) -> Self {
        Self { x, tracker, penalty, rows: [Vec::new(), Vec::new()], all: None }
    }

    /// Computes row `row` of Γ.
    fn subgradient(&self, row: usize, target: &mut [f64]) {
        self.tracker.gradient_row(row, target);
        for (k, (t, &v)) in target.iter_mut().zip(self.x.row(row)).enumerate() {
            *t += self.penalty.slope(row, k, v);
        }
    }
}

impl Scores for PointScores<'_> {
    fn subgradients(&mut self) -> ArrayView2<'_, f64> {
        let all = self.all.take().unwrap_or_else(|| {
            let mut all = Array2::zeros(self.x.dim());
            for (row, mut target) in all.outer_iter_mut().enumerate() {
                if let Some(target) = target.as_slice_mut() {
                    self.subgradient(row, target);
                }
            }
            all
        });
        self.all.insert(all).view()
    }

    fn products(&mut self, i: usize, j: usize) -> ([f64; 4], [f64; 3]) {
        let mut rows = std::mem::take(&mut self.rows);
        for (target, row) in rows.iter_mut().zip([i, j]) {
            target.resize(self.x.ncols(), 0.0);
            match &self.all {
                Some(all) => target.iter_mut().zip(all.row(row)).for_each(|(t, &g)| *t = g),
                None => self.subgradient(row, target),
            }
        }
        self.rows = rows;
        let (xi, xj) = (self.x.row(i), self.x.row(j));
        let dot = |g: &[f64], x: ArrayView1<'_, f64>| -> f64 { g.iter().zip(x).map(|(g, x)| g * x).sum() };
        (
            [dot(&self.rows[0], xi), dot(&self.rows[0], xj), dot(&self.rows[1], xi), dot(&self.rows[1], xj)],
            [xi.dot(&xi), xi.dot(&xj), xj.dot(&xj)],
        )
    }
}
