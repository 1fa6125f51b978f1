//! The Jacobi update: all pairs of a random perfect matching move at once, from one gradient.
//!
//! With L an upper bound on the Hessian's eigenvalues, `f(X⁺) ≤ f(X) + ⟨∇f(X), ΔX⟩ + L/2 ‖ΔX‖²`, and the
//! right-hand side separates into pairs: curvature M = L·I, S = Z Zᵀ (or the scalar ς = L‖Z‖²).
//! The bound of the papers, taken from one pair, ignores the terms between pairs and can ascend
//! (SPEC erratum 10). F is evaluated after the round all the same: should rounding or an estimated
//! L let it rise, the round is taken back and L doubled.

use ndarray::Array2;
use rand::seq::SliceRandom;

use super::{Options, State};
use crate::block::{Majoriser, Matchings, PairOptions};
use crate::penalty::Penalty;
use crate::problem::Problem;
use crate::rows::slice_of;
use crate::tournament;

/// Adaptive curvature: a round counts if F falls by this share of what the model predicts,
const FAIR_SHARE: f64 = 0.1;
/// and lowers the curvature if it falls by this share,
const GOOD_SHARE: f64 = 0.5;
/// by this factor;
const LOWER: f64 = 0.8;
/// one that does not count raises it by this factor,
const RAISE: f64 = 2.0;
/// within these shares of the safe bound.
const LEAST_SHARE: f64 = 1e-4;

/// State of the Jacobi update.
pub(super) struct Jacobi {
    /// The curvature in use.
    bound: f64,
    /// A curvature that majorises f for certain.
    safe: f64,
    adaptive: bool,
    order: Vec<usize>,
    matchings: Matchings,
}

impl Jacobi {
    pub(super) fn new<P: Penalty>(
        n: usize,
        r: usize,
        upper: f64,
        problem: &Problem<'_, P>,
        options: &Options,
    ) -> Self {
        Self {
            bound: upper,
            safe: upper,
            adaptive: options.adaptive,
            order: (0..n).collect(),
            matchings: Matchings::new((n, r), problem.signature, options.rapidity_bound),
        }
    }
}

impl<P: Penalty> State<'_, P> {
    /// One round. An odd row rests.
    pub(super) fn jacobi_round(&mut self, jacobi: &mut Jacobi) {
        jacobi.order.shuffle(&mut self.rng);
        let gradient = self.tracker.gradient(self.threads);
        let options = PairOptions {
            curvature: self.options.curvature,
            alpha: self.alpha,
            floor: self.floor(),
            ..PairOptions::default()
        };
        let penalty = self.problem.penalty;
        let model = Majoriser {
            anchor: self.x.view(),
            gradient: gradient.view(),
            curvature: jacobi.bound,
        };
        let pairs = tournament::matching(&jacobi.order, 0);
        let matchings = &mut jacobi.matchings;
        let outcome = matchings.solve(
            self.x.view(),
            &pairs,
            &model,
            penalty,
            options,
            self.threads,
        );
        self.recession = self.recession.or(matchings.recession());
        self.counts.visited += outcome.visited;
        if outcome.updates == 0 {
            return;
        }
        let predicted = outcome.change;
        let mut after = self.x.clone();
        let mut penalty_change = 0.0;
        for (row, new) in matchings.moved() {
            let mut target = after.row_mut(row);
            penalty_change +=
                penalty.row_value(row, new) - penalty.row_value(row, &slice_of(target.view()));
            target.iter_mut().zip(new).for_each(|(x, &new)| *x = new);
        }
        let delta = &after - &self.x;
        let smooth_before = self.tracker.value(self.x.view());
        let before = std::mem::replace(&mut self.x, Array2::zeros((0, 0)));
        self.tracker.commit_all(delta.view(), self.threads);
        let change = self.tracker.value(after.view()) - smooth_before + penalty_change;
        // Under the safe bound F falls at least by what the model says; under a smaller one a fair
        // share of that is enough, and a good one lowers it further.
        let fair = !jacobi.adaptive || change <= FAIR_SHARE * predicted;
        if change < 0.0 && fair {
            self.x = after;
            self.lower(change);
            self.counts.updates += outcome.updates;
            if jacobi.adaptive && change <= GOOD_SHARE * predicted {
                jacobi.bound = (LOWER * jacobi.bound).max(LEAST_SHARE * jacobi.safe);
            }
        } else if jacobi.adaptive && jacobi.bound < jacobi.safe {
            self.x = before;
            self.tracker.refresh(self.x.view(), self.threads);
            jacobi.bound = (RAISE * jacobi.bound).min(jacobi.safe);
        } else {
            self.x = before;
            self.tracker.refresh(self.x.view(), self.threads);
            let floor = f64::EPSILON * self.magnitude.max(f64::MIN_POSITIVE);
            jacobi.bound += jacobi.bound.abs().max(self.alpha).max(floor);
            jacobi.safe = jacobi.safe.max(jacobi.bound);
        }
    }
}
