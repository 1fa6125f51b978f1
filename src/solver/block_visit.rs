//! A block of rows on its way through a visit.

use ndarray::ArrayView2;

use super::point::Point;
use crate::block::{Block, Curvature, Outcome, PairOptions, Pairs};
use crate::pair::Scratch;
use crate::problem::Problem;
use crate::working_set::Visit;

/// Most inner sweeps over the pairs of a block of k > 2 rows. Where f is constant, rounding alone can use them all.
const INNER_SWEEPS: usize = 50;

/// A block of rows: chosen, filled, swept and committed.
#[derive(Clone)]
pub(super) struct BlockVisit {
    /// The chosen rows.
    pub(super) chosen: Visit,
    pub(super) block: Block,
    /// The version of the point that the block holds.
    pub(super) loaded: Option<u64>,
    scratch: Scratch,
    /// The result of the sweep of the block.
    pub(super) outcome: Outcome,
}

impl BlockVisit {
    pub(super) fn new(block: Block) -> Self {
        let scratch = Scratch::new(block.columns());
        Self { chosen: Visit::default(), block, loaded: None, scratch, outcome: Outcome::default() }
    }

    /// Skips a visit of single pairs of zero rows, which cannot move; they count as visited.
    pub(super) fn skip_zeros(&mut self, x: ArrayView2<'_, f64>) {
        let Visit { lead, rest, .. } = &self.chosen;
        let are_zero = |rows: &[usize]| rows.iter().all(|&i| x.row(i).iter().all(|&v| v == 0.0));
        let single = self.chosen.pairs == Some(Pairs::Cross) && lead.len() == 1;
        if single && are_zero(lead) && are_zero(rest) {
            self.chosen.skipped += rest.len() as u64;
            self.chosen.pairs = None;
        }
    }

    /// Fills the block with the chosen rows and the data of f.
    pub(super) fn fill(&mut self, point: &mut Point<'_>) {
        if self.chosen.pairs.is_none() {
            return;
        }
        if self.chosen.again && self.loaded == Some(point.version) {
            self.block.rebase();
        } else {
            let (lead, rest) = (&self.chosen.lead, &self.chosen.rest);
            self.block.load(point.x.view(), lead, rest);
            point.tracker.fill(self.block.model());
            self.loaded = Some(point.version);
        }
    }

    /// Returns whether the sweep ended early: at a bound on X, or a direction in which F is unbounded.
    pub(super) fn is_cut_short(&self) -> bool {
        self.block.has_left() || self.block.recession().is_some()
    }
}

/// How the pairs of a block are solved.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BlockSolver {
    pub(super) curvature: Curvature,
    pub(super) proximal: f64,
    pub(super) small_block: bool,
    /// Whether pairs are solved without moving.
    pub(super) frozen: bool,
}

impl BlockSolver {
    pub(super) fn options<'a>(&self, point: &Point<'a>) -> PairOptions<'a> {
        PairOptions {
            curvature: self.curvature,
            shift: point.shift_of_signs(),
            proximal: self.proximal,
            metric: point.form.and_then(|form| form.metric()),
        }
    }

    pub(super) fn sweep(&self, visit: &mut BlockVisit, problem: &Problem<'_>, options: PairOptions<'_>) {
        visit.outcome = Outcome::default();
        let Some(pairs) = visit.chosen.pairs else {
            return;
        };
        let (block, outcome) = (&mut visit.block, &mut visit.outcome);
        // A rotation of all rows is orthogonal, so the rows must have the same sign.
        let (signs, rows) = (problem.signature, &block.rows);
        let orthogonal = signs.is_definite() || rows.iter().all(|&i| signs.sign(i) == signs.sign(rows[0]));
        let small_block = self.small_block && rows.len() > 2;
        if small_block && problem.penalty.is_none() && orthogonal {
            *outcome = block.turn_all(options);
            if options.curvature == Curvature::Scalar {
                return;
            }
        }
        for _ in 0..if small_block { INNER_SWEEPS } else { 1 } {
            let swept = block.sweep(pairs, problem.penalty, options, &mut visit.scratch);
            outcome.absorb(swept);
            if swept.updates == 0 {
                break;
            }
        }
    }
}
