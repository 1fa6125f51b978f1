//! The Jacobi update: all pairs of a random perfect matching move at once, from one gradient; with blocks of
//! k > 2 rows and h = 0 all blocks of a random partition, each by a singular value decomposition.
//!
//! With L an upper bound on the Hessian's eigenvalues, `f(X⁺) ≤ f(X) + ⟨∇f(X), ΔX⟩ + L/2 ‖ΔX‖²`, and the
//! right-hand side separates into pairs: curvature M = L·I, S = Z Zᵀ (or the scalar ς = L‖Z‖²). The bound of
//! the papers, taken from one pair, ignores the terms between pairs and can ascend (SPEC erratum 10). F is
//! still evaluated after each round: if it rises, by rounding or an estimated L, the round is undone and L
//! doubled.

use rand::seq::SliceRandom;

use super::ledger::Ledger;
use super::mover::{Mover, Step};
use super::options::Options;
use super::point::Point;
use super::rows::{VISIT_WORK, pair_work};
use crate::block::{Curvature, Majoriser, Matchings, Outcome, PairOptions, RAISE, adapted};
use crate::rows::slice_of;

/// Least curvature, as a share of the safe bound.
const LEAST_SHARE: f64 = 1e-4;

/// The mover of rows by matchings.
pub(super) struct Jacobi {
    /// The curvature in use.
    bound: f64,
    /// A curvature that majorises f.
    safe: f64,
    adaptive: bool,
    curvature: Curvature,
    proximal: f64,
    order: Vec<usize>,
    block_size: usize,
    matchings: Matchings,
    pair_work: f64,
}

impl Jacobi {
    /// With the proximal weight `proximal` and a bound `upper` on the Hessian's eigenvalues.
    pub(super) fn new(point: &Point<'_>, options: &Options, proximal: f64, upper: f64) -> Self {
        let (dim, signature) = (point.x.dim(), point.problem.signature);
        Self {
            bound: upper,
            safe: upper,
            adaptive: options.adaptive,
            curvature: options.curvature,
            proximal,
            order: (0..dim.0).collect(),
            block_size: options.block_size,
            matchings: Matchings::new(dim, signature, options.rapidity_bound)
                .rotate_only(point.problem.rotations),
            pair_work: pair_work(point),
        }
    }

    /// Accepts a round if F falls enough and X is within bounds; adapts the curvature.
    fn judge(&mut self, outcome: Outcome, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        let penalty = point.problem.penalty;
        let mut after = point.x.clone();
        let mut penalty_change = 0.0;
        for (row, new) in self.matchings.moved() {
            let mut target = after.row_mut(row);
            penalty_change +=
                penalty.row_value(row, new) - penalty.row_value(row, &slice_of(target.view()));
            target.iter_mut().zip(new).for_each(|(x, &new)| *x = new);
        }
        let delta = &after - &point.x;
        let smooth_before = point.tracker.value(point.x.view());
        point.tracker.commit_all(delta.view(), point.threads);
        let change = point.tracker.value(after.view()) - smooth_before + penalty_change;
        // Under the safe bound F falls at least by the model's decrease.
        let next = match self.adaptive {
            true => adapted(self.bound, change, outcome.change),
            false => Some(self.bound),
        };
        let bounded = point.domain.is_bounded(&after);
        if change < 0.0
            && bounded
            && let Some(next) = next
        {
            point.replace_tracked(after);
            ledger.lower(change, outcome.updates);
            if next < self.bound {
                self.bound = next.max(LEAST_SHARE * self.safe);
            }
            return Step::Done;
        }
        point.refresh();
        if self.adaptive && self.bound < self.safe {
            self.bound = (RAISE * self.bound).min(self.safe);
        } else if !bounded {
            return Step::Diverged;
        } else {
            let floor = f64::EPSILON * ledger.magnitude.max(f64::MIN_POSITIVE);
            self.bound += self.bound.abs().max(self.proximal).max(floor);
            self.safe = self.safe.max(self.bound);
        }
        Step::Done
    }
}

impl Mover for Jacobi {
    /// Makes one round. A single row that is left over does not move.
    fn step(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        self.order.shuffle(&mut point.rng);
        let gradient = point.gradient();
        let options = PairOptions {
            curvature: self.curvature,
            proximal: self.proximal,
            ..PairOptions::default()
        };
        let model = Majoriser::new(point.x.view(), gradient.view(), self.bound);
        let blocks = self.order.chunks(self.block_size);
        let blocks: Vec<&[usize]> = blocks.filter(|block| block.len() > 1).collect();
        let (x, penalty) = (point.x.view(), point.problem.penalty);
        let outcome = self
            .matchings
            .solve(x, &blocks, &model, penalty, options, point.threads);
        let work = self.pair_work + VISIT_WORK;
        ledger.visit(outcome.visited, outcome.visited as f64 * work);
        if let Some(recession) = self.matchings.recession() {
            return Step::Unbounded(recession);
        }
        if outcome.updates > 0 && self.judge(outcome, point, ledger) == Step::Diverged {
            return Step::Diverged;
        }
        if ledger.has_swept() {
            Step::Pass
        } else {
            Step::Done
        }
    }

    fn drop_proximal(&mut self) -> bool {
        std::mem::take(&mut self.proximal) > 0.0
    }
}
