//! Row moves: the working set chooses a block, its pairs are solved exactly, and the block is committed.

use ndarray::{Array2, ArrayView1, ArrayView2};

use super::ledger::Ledger;
use super::mover::{Mover, Step};
use super::options::{Options, Update};
use super::point::Point;
use crate::block::{Block, Curvature, Outcome, PairOptions, Pairs};
use crate::objective::Tracker;
use crate::pair::{Recession, Scratch};
use crate::penalty::Penalty;
use crate::working_set::{Pass, Schedule, Scores, TileOrder, Visit, WorkingSet};

/// Work of the solution of a pair with ℓ1, constant and per column; and of a visit that solves nothing.
const PAIR_WORK: (f64, f64) = (3000.0, 250.0);
pub(super) const VISIT_WORK: f64 = 2.0;

/// Pairs of rows of opposite sign that are probed before anything moves: a problem that is unbounded below
/// mostly is so along any of them.
const PROBED_PAIRS: usize = 50;

/// Most inner sweeps over the pairs of a block of k > 2 rows.
const INNER_SWEEPS: usize = 50;

/// Single pairs per step: a check of the clock costs as much as a small pair.
const PAIRS_PER_STEP: usize = 8;

/// Between two full sweeps of a sparse iterate, its nonzero rows are swept alone until such a sweep lowers F
/// by less than this part of the decrease of the full sweep, or [`SUPPORT_SWEEPS`] times.
const SUPPORT_SHARE: f64 = 0.01;

/// Most sweeps over the nonzero rows between two full sweeps.
const SUPPORT_SWEEPS: usize = 100;

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
    gained: f64,
}

/// The mover of rows by a working set.
pub(super) struct RowMover {
    schedule: Schedule,
    visit: Visit,
    block: Block,
    /// The version of the point that the block holds.
    loaded: Option<u64>,
    scratch: Scratch,
    tiled: bool,
    small_block: bool,
    pairs_per_step: usize,
    curvature: Curvature,
    proximal: f64,
    lipschitz: f64,
    /// Whether pairs are solved without moving.
    frozen: bool,
    pair_work: f64,
    support: Support,
}

impl RowMover {
    /// The mover for the rule of the options; `proximal` is the proximal weight, `lipschitz` the majoriser of
    /// WSS-OR.
    pub(super) fn new(point: &Point<'_>, options: &Options, proximal: f64, lipschitz: f64) -> Self {
        let rule = options.working_set;
        let single = options.block_size == 2;
        let chosen_freely = matches!(rule, WorkingSet::Random | WorkingSet::Cyclic);
        Self {
            curvature: options.curvature,
            proximal,
            lipschitz,
            small_block: rule != WorkingSet::Tiled && !single,
            pairs_per_step: if single && chosen_freely {
                PAIRS_PER_STEP
            } else {
                1
            },
            ..Self::with_rule(point, options, rule)
        }
    }

    /// Passes that move pairs, with the exact curvature and no proximal term, after a verification found one:
    /// by the rule of the options if it solves single pairs of rows, otherwise tile by tile.
    pub(super) fn clearing(point: &Point<'_>, options: &Options, lipschitz: f64) -> Self {
        let rule = options.working_set;
        let single = options.update == Update::GaussSeidel && options.block_size == 2;
        if !single || rule == WorkingSet::Tiled {
            return Self::all_pairs(point, options, false);
        }
        let exact = options.clone().with_curvature(Curvature::Exact);
        Self::new(point, &exact, 0.0, lipschitz)
    }

    /// A pass over all pairs, tile by tile, with the exact curvature and no proximal term; if `frozen`,
    /// nothing moves.
    pub(super) fn all_pairs(point: &Point<'_>, options: &Options, frozen: bool) -> Self {
        let mut rows = Self::with_rule(point, options, WorkingSet::Tiled);
        rows.frozen = frozen;
        rows.block.freeze(frozen);
        rows
    }

    fn with_rule(point: &Point<'_>, options: &Options, rule: WorkingSet) -> Self {
        let (n, r) = point.x.dim();
        let order = if point.tracker.keeps_lead() {
            TileOrder::ByLead
        } else {
            TileOrder::RoundRobin
        };
        let mut block = Block::new(r);
        block.set_signature(point.problem.signature, options.rapidity_bound);
        block.rotate_only(point.problem.rotations);
        Self {
            schedule: Schedule::new(rule, n, options.block_size, options.tile, order)
                .scoring(options.scored_pairs),
            visit: Visit::default(),
            block,
            loaded: None,
            scratch: Scratch::new(r),
            tiled: rule == WorkingSet::Tiled,
            small_block: false,
            pairs_per_step: 1,
            curvature: Curvature::Exact,
            proximal: 0.0,
            lipschitz: 0.0,
            frozen: false,
            pair_work: pair_work(point),
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
            self.block.load(point.x.view(), &[i], &[j]);
            point.tracker.fill(self.block.model());
            self.sweep(Pairs::Cross, point);
            self.block.recession().map(|found| (found, k as u64 + 1))
        })
    }

    fn choose(&mut self, point: &mut Point<'_>) {
        let mut scores = PointScores::new(point.x.view(), &*point.tracker, point.problem.penalty);
        self.schedule.next(
            &mut self.visit,
            point.x.view(),
            &mut point.rng,
            &mut scores,
            self.lipschitz,
            self.proximal,
        );
    }

    /// Visits one block.
    fn visit(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        self.choose(point);
        let mut visited = self.visit.skipped;
        if let Some(pairs) = self.visit.pairs {
            let (lead, rest) = (&self.visit.lead, &self.visit.rest);
            let are_zero =
                |rows: &[usize]| (rows.iter()).all(|&i| point.x.row(i).iter().all(|&v| v == 0.0));
            if pairs == Pairs::Cross && lead.len() == 1 && are_zero(lead) && are_zero(rest) {
                visited += rest.len() as u64;
            } else {
                let outcome = self.solve(pairs, point, ledger);
                // A set of the cycle counts once, however often its pairs are swept.
                let rows = self.block.len() as u64;
                visited += if self.schedule.is_cyclic() {
                    rows * (rows - 1) / 2
                } else {
                    outcome.visited
                };
                if let Some(recession) = self.block.recession() {
                    ledger.visit(visited, 0.0);
                    return Step::Unbounded(recession);
                }
                if self.block.has_left() {
                    ledger.visit(visited, 0.0);
                    return Step::Diverged;
                }
                if self.frozen && outcome.largest > ledger.threshold() {
                    ledger.visit(visited, 0.0);
                    return Step::Found;
                }
            }
        }
        ledger.visit(visited, VISIT_WORK * visited as f64);
        self.end_of_pass(ledger)
    }

    /// Solves the pairs of the chosen rows and commits the rows that moved.
    fn solve(&mut self, pairs: Pairs, point: &mut Point<'_>, ledger: &mut Ledger) -> Outcome {
        if self.visit.again && self.loaded == Some(point.version) {
            self.block.rebase();
        } else {
            let (lead, rest) = (&self.visit.lead, &self.visit.rest);
            self.block.load(point.x.view(), lead, rest);
            point.tracker.fill(self.block.model());
            self.loaded = Some(point.version);
        }
        self.block.set_growth_limit(point.growth_limit);
        let outcome = self.sweep(pairs, point);
        point.growth_limit = self.block.growth_limit();
        // Pairs of zero rows are not solved.
        let rows = self.block.len();
        let zero = (0..rows).filter(|&k| self.block.row(k).iter().all(|&v| v == 0.0));
        let moving = 1.0 - (zero.count() as f64 / rows as f64).powi(2);
        ledger.visit(0, moving * outcome.visited as f64 * self.pair_work);
        self.visit.moved |= -outcome.change > ledger.threshold();
        if !self.frozen && outcome.updates > 0 {
            point.commit(&mut self.block);
            ledger.lower(outcome.change, outcome.updates);
            self.support.gained -= outcome.change;
        }
        outcome
    }

    fn sweep(&mut self, pairs: Pairs, point: &Point<'_>) -> Outcome {
        let problem = point.problem;
        let options = PairOptions {
            curvature: self.curvature,
            shift: point.shift_of_signs(),
            proximal: self.proximal,
            metric: point.form.and_then(|form| form.metric()),
        };
        let mut outcome = Outcome::default();
        // A rotation of all rows is orthogonal, so the rows must have the same sign.
        let (signs, rows) = (problem.signature, &self.block.rows);
        let orthogonal =
            signs.is_definite() || rows.iter().all(|&i| signs.sign(i) == signs.sign(rows[0]));
        let small_block = self.small_block && rows.len() > 2;
        if small_block && problem.penalty.is_none() && orthogonal {
            outcome = self.block.turn_all(options);
            if options.curvature == Curvature::Scalar {
                return outcome;
            }
        }
        for _ in 0..if small_block { INNER_SWEEPS } else { 1 } {
            let scratch = &mut self.scratch;
            let swept = self.block.sweep(pairs, problem.penalty, options, scratch);
            outcome.absorb(swept);
            if swept.updates == 0 {
                break;
            }
        }
        outcome
    }

    /// Returns whether the last visit ended a pass.
    fn end_of_pass(&mut self, ledger: &Ledger) -> Step {
        if !self.tiled {
            return if ledger.has_swept() {
                Step::Pass
            } else {
                Step::Done
            };
        }
        match self.schedule.ended() {
            None => Step::Done,
            Some(Pass::Full) => Step::Pass,
            Some(Pass::Support) => {
                let support = &mut self.support;
                support.sweeps += 1;
                let gained = std::mem::take(&mut support.gained);
                if gained > support.goal && support.sweeps < SUPPORT_SWEEPS {
                    self.schedule.restrict_to_support();
                }
                Step::Done
            }
        }
    }
}

impl Mover for RowMover {
    fn step(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        point.refresh_if_stale();
        for _ in 1..self.pairs_per_step {
            let step = self.visit(point, ledger);
            if step != Step::Done {
                return step;
            }
        }
        self.visit(point, ledger)
    }

    fn begin(&mut self) {
        self.loaded = None;
        self.visit.moved = true;
    }

    fn again(&mut self, decrease: f64, threshold: f64) {
        if self.tiled && 2 * self.schedule.support() < self.schedule.rows() {
            self.support = Support {
                goal: (SUPPORT_SHARE * decrease).max(threshold),
                ..Support::default()
            };
            self.schedule.restrict_to_support();
        }
    }

    fn drop_proximal(&mut self) -> bool {
        std::mem::take(&mut self.proximal) > 0.0
    }

    fn is_exhaustive(&self) -> bool {
        let all = self.tiled || self.schedule.is_cyclic();
        all && self.curvature == Curvature::Exact
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
    pub(super) fn new(
        x: ArrayView2<'a, f64>,
        tracker: &'a dyn Tracker,
        penalty: &'a Penalty,
    ) -> Self {
        Self {
            x,
            tracker,
            penalty,
            rows: [Vec::new(), Vec::new()],
            all: None,
        }
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
        let dot = |g: &[f64], x: ArrayView1<'_, f64>| -> f64 {
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
