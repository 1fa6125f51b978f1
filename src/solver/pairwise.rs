//! The papers' algorithm for an f with value and gradient only: a pair from the working set, the gradient at
//! the current point, and the step that minimises `⟨G_B, (V − I)Z⟩ + ½‖V − I‖²_{Q+αI} + h(VZ)` over the pair.
//!
//! If f has a [curvature matrix](crate::Objective::curvature_matrix) C, then H = I ⊗ C, so Q = ZZᵀ ⊗ C_BB, or
//! ‖Z‖²‖C_BB‖·I for the scalar curvature. Otherwise H = L·I, so Q = L·ZZᵀ ⊗ I, or L‖Z‖²·I. With a Lipschitz
//! constant and the scalar curvature, L is that constant throughout; otherwise it is
//! [adapted](super::majorised). Every pair that moves costs one value and gradient. Matchings cost a fraction of that, and verify convergence.

use super::ledger::Ledger;
use super::majorised::{Majorised, Verdict};
use super::mover::Step;
use super::options::{Options, Update};
use super::point::Point;
use super::rows::{PointScores, VISIT_WORK, pair_work};
use crate::block::{Curvature, Majoriser, PairOptions};
use crate::working_set::{Schedule, Visit, WorkingSet};

/// One pair per step.
pub(super) struct Pairwise {
    schedule: Schedule,
    visit: Visit,
    curvature: Curvature,
    /// Relative to L.
    proximal: f64,
    /// The decrease of F in the current sweep.
    gained: f64,
    /// True if the current sweep met a decrease that could be rounding.
    unresolved: bool,
    /// True if a sweep found no decrease.
    pub(super) converged: bool,
}

impl Pairwise {
    /// Returns the mover if the options ask for single pairs: rules other than tiles, without the Jacobi
    /// update.
    pub(super) fn new(point: &Point<'_>, options: &Options) -> Option<Self> {
        let (rule, n) = (options.working_set.clone(), point.x.nrows());
        let single = rule != WorkingSet::Tiled && options.update == Update::GaussSeidel;
        single.then(|| Self {
            schedule: Schedule::new(rule, n, 2, options.tile).scoring(options.scored_pairs),
            visit: Visit::default(),
            curvature: options.curvature,
            proximal: options.proximal,
            gained: 0.0,
            unresolved: false,
            converged: false,
        })
    }

    /// Chooses the next pair; None if the rule has none.
    fn choose(&mut self, bound: f64, point: &mut Point<'_>) -> Option<[usize; 2]> {
        let x = point.x.view();
        let mut scores = PointScores::new(x, &*point.tracker, point.problem.penalty);
        let (visit, rng, proximal) = (&mut self.visit, &mut point.rng, self.proximal * bound);
        let found = self.schedule.next(visit, x, rng, &mut scores, bound, proximal);
        found.then(|| [visit.lead[0], visit.rest[0]])
    }

    /// Visits a pair.
    pub(super) fn step(&mut self, model: &mut Majorised, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        let matrix = point.problem.smooth.curvature_matrix();
        if model.safe.is_finite() && (matrix.is_some() || self.curvature == Curvature::Scalar) {
            model.bound = model.safe;
        }
        let gradient = point.gradient();
        let Some(pair) = self.choose(model.bound, point) else {
            return Step::Ended;
        };
        let majoriser = Majoriser { matrix, ..Majoriser::new(point.x.view(), gradient.view(), model.bound) };
        let options =
            PairOptions { curvature: self.curvature, shift: 0.0, proximal: self.proximal * model.bound, metric: None };
        let (x, penalty) = (point.x.view(), point.problem.penalty);
        let outcome = (model.matchings).solve(x, &[pair], &majoriser, penalty, options, point.threads);
        ledger.visit(1, pair_work(point) + VISIT_WORK);
        if model.matchings.recession().is_some() {
            model.raise_at(point);
        } else if outcome.updates > 0 {
            let mut moving = point.x.clone();
            model.matchings.write(&mut moving);
            let before = ledger.objective();
            match model.attempt(moving, &gradient, outcome, point, ledger) {
                Verdict::Taken => {
                    let decrease = before - ledger.objective();
                    self.visit.moved |= decrease > ledger.threshold();
                    self.gained += decrease;
                }
                Verdict::Contradiction => return Step::Contradiction,
                Verdict::Unresolved => self.unresolved = true,
                // A wrong model says nothing about the remaining decrease.
                Verdict::Refused => self.gained = f64::INFINITY,
            }
        }
        if !ledger.has_swept() {
            return Step::Done;
        }
        let blind = std::mem::take(&mut self.unresolved);
        self.converged = std::mem::take(&mut self.gained) <= ledger.threshold();
        if self.converged {
            model.verify(point, ledger, blind);
        }
        Step::Pass
    }
}
