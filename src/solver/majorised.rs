//! Pairs on a majoriser of f, for an f with value and gradient only.
//!
//! With G = ∇f(A) at the current X = A, matchings lower `⟨G, X − A⟩ + L/2‖X − A‖² + h(X)`, up to a whole
//! tournament, which visits every pair once. F is then evaluated. If it does not fall by a fair share of the
//! model's decrease, X stays and L rises; if it falls by a good share, L falls. L never exceeds a Lipschitz
//! constant that f provides.

use ndarray::{Array2, s};
use rand::seq::SliceRandom;

use super::ledger::Ledger;
use super::measure::{RESOLVED, Secants, critical, evaluation_work, rounding, tangent_part};
use super::mover::Step;
use super::options::Options;
use super::point::Point;
use super::rows::{VISIT_WORK, pair_work};
use crate::block::{Majoriser, Matchings, Outcome, PairOptions, RAISE, adapted};
use crate::linalg::square;
use crate::rows::PANEL;
use crate::tournament;

/// The first L, relative to ‖∇f(X)‖/‖X‖; the first trials correct a small value.
const FIRST: f64 = 0.1;

/// No further matching is solved on a gradient if the last one lowered the model by less than this share of
/// the mean decrease per unit of work of all of them, the gradient included.
const WORTH: f64 = 0.5;

/// Successive failed curvatures after which value and gradient contradict each other if the last decrease could be
/// rounding.
const CONTRADICTION: u32 = 12;

/// Successive failed curvatures after which value and gradient contradict each other in any case.
const MOST_RAISES: u32 = 60;

/// A tournament in progress.
struct TournamentTrial {
    gradient: Array2<f64>,
    moving: Array2<f64>,
    total: Outcome,
    rounds: usize,
}

/// The result of a trial.
pub(super) enum Verdict {
    /// X moved to the trial.
    Taken,
    /// The decrease is within rounding.
    Unresolved,
    /// X stays, and L is larger.
    Refused,
    /// Values and gradients of f contradict each other.
    Contradiction,
}

/// Matchings on a majoriser, one matching at a time.
pub(super) struct Majorised {
    /// L.
    pub(super) bound: f64,
    /// The Lipschitz constant that f provides.
    pub(super) safe: f64,
    raises: u32,
    secants: Secants,
    order: Vec<usize>,
    pub(super) matchings: Matchings,
    trial: Option<TournamentTrial>,
    /// The largest ‖∇f‖ met.
    steepest: f64,
    /// True if no pair can lower the model at X by more than the tolerance.
    pub(super) verified: bool,
}

impl Majorised {
    pub(super) fn new(point: &Point<'_>, options: &Options) -> Self {
        let (dim, signature) = (point.x.dim(), point.problem.signature);
        let steepest = square(&point.tracker.gradient(point.threads)).sqrt();
        let safe = point.problem.smooth.lipschitz().unwrap_or(f64::INFINITY);
        Self {
            bound: (FIRST * steepest / square(&point.x).sqrt()).min(safe),
            safe,
            raises: 0,
            secants: Secants::default(),
            order: (0..dim.0).collect(),
            matchings: Matchings::new(dim, signature, options.rapidity_bound).rotate_only(point.problem.rotations),
            trial: None,
            steepest,
            verified: false,
        }
    }

    /// Takes over a lower bound on the Lipschitz constant and the largest ‖∇f‖ met.
    pub(super) fn learn(&mut self, secant: f64, steepest: f64) {
        self.steepest = self.steepest.max(steepest);
        if secant > 0.0 {
            self.bound = secant.min(self.safe);
        }
    }

    /// Solves one matching; the point is evaluated at the end of a tournament.
    pub(super) fn step(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        self.verified = false;
        let mut trial = self.trial.take().unwrap_or_else(|| {
            self.order.shuffle(&mut point.rng);
            TournamentTrial {
                gradient: point.gradient(),
                moving: point.x.clone(),
                total: Outcome::default(),
                rounds: 0,
            }
        });
        let model = Majoriser::new(point.x.view(), trial.gradient.view(), self.bound);
        let pairs = tournament::matching(&self.order, trial.rounds);
        let (penalty, exact) = (point.problem.penalty, PairOptions::default());
        let x = trial.moving.view();
        let outcome = self.matchings.solve(x, &pairs, &model, penalty, exact, point.threads);
        let work = outcome.visited as f64 * (pair_work(point) + VISIT_WORK);
        ledger.visit(outcome.visited, work);
        if self.matchings.recession().is_some() {
            // Only a model with too little curvature is unbounded.
            self.raise_at(point);
            return Step::Done;
        }
        self.matchings.write(&mut trial.moving);
        trial.total.absorb(outcome);
        trial.rounds += 1;
        let cost = trial.rounds as f64 + evaluation_work(point) / work.max(1.0);
        let worth = outcome.change * cost <= WORTH * trial.total.change || -trial.total.change <= ledger.threshold();
        if worth && trial.rounds < tournament::rounds(self.order.len()) {
            self.trial = Some(trial);
            return Step::Within;
        }
        self.judge(trial, point, ledger)
    }

    /// Moves to the end of a tournament if F falls enough there.
    fn judge(&mut self, trial: TournamentTrial, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        let small = -trial.total.change <= rounding(point, ledger).max(ledger.threshold());
        let verdict = match trial.total.updates {
            0 => Verdict::Taken,
            _ => self.attempt(trial.moving, &trial.gradient, trial.total, point, ledger),
        };
        match verdict {
            Verdict::Contradiction => return Step::Contradiction,
            Verdict::Unresolved => self.verify(point, ledger, true),
            Verdict::Taken if small => self.verify(point, ledger, false),
            Verdict::Taken | Verdict::Refused => {}
        }
        Step::Pass
    }

    /// Moves from A, where f has this gradient, to `moving` if F falls by a fair share of the model's
    /// decrease; adapts L.
    pub(super) fn attempt(
        &mut self,
        moving: Array2<f64>,
        gradient: &Array2<f64>,
        model: Outcome,
        point: &mut Point<'_>,
        ledger: &mut Ledger,
    ) -> Verdict {
        ledger.work += evaluation_work(point);
        let penalty = point.problem.penalty;
        let (smooth, before_penalty) = point.values();
        let noise = rounding(point, ledger);
        let evaluated = self.secants.evaluate(point, (&point.x, smooth, gradient), Some(moving), noise);
        if self.secants.contradict() {
            return Verdict::Contradiction;
        }
        let change = evaluated
            .as_ref()
            .map_or(f64::INFINITY, |(x, (value, _))| (value - smooth) + (penalty.value(x.view()) - before_penalty));
        let next = adapted(self.bound, change, model.change);
        match (evaluated, next) {
            (Some((x, there)), Some(next)) if change < 0.0 => {
                self.steepest = self.steepest.max(square(&there.1).sqrt());
                point.adopt(x, there);
                ledger.lower(change, model.updates);
                (self.raises, self.bound) = (0, next);
                Verdict::Taken
            }
            _ if -model.change <= noise => {
                if self.raises > CONTRADICTION {
                    return Verdict::Contradiction;
                }
                Verdict::Unresolved
            }
            _ if self.bound >= self.safe || self.raises > MOST_RAISES => Verdict::Contradiction,
            _ => {
                self.raise(self.secants.latest);
                Verdict::Refused
            }
        }
    }

    /// Raises the curvature after an unbounded model at X.
    pub(super) fn raise_at(&mut self, point: &Point<'_>) {
        let least = self.steepest / square(&point.x).sqrt();
        self.raise(least.max(f64::MIN_POSITIVE));
    }

    /// Raises the curvature, to at least `least`.
    fn raise(&mut self, least: f64) {
        self.raises += 1;
        self.bound = (RAISE * self.bound).max(least).min(self.safe);
    }

    /// Checks whether any pair can lower the model at X by more than the tolerance, or, if h = 0, X is not
    /// critical. After gradient steps without visible decrease (`blind`), criticality is checked as far as F
    /// resolves it.
    pub(super) fn verify(&mut self, point: &mut Point<'_>, ledger: &Ledger, blind: bool) {
        let gradient = point.gradient();
        let noise = rounding(point, ledger);
        let mut threshold = ledger.threshold().max(noise);
        if point.problem.penalty.is_none() {
            let critical = critical(ledger, &gradient, self.steepest);
            let tangent = square(&tangent_part(point, &point.x, &gradient)).sqrt();
            let resolved = tangent * tangent > RESOLVED * noise * self.bound;
            if tangent > critical && (resolved || !blind) {
                self.verified = false;
                return;
            }
            // Decrease that remains at a critical point of a small F.
            threshold = threshold.max(critical * critical / self.bound);
        }
        let gap = if point.problem.penalty.is_none() && point.problem.signature.is_definite() {
            largest_turn(point, &gradient, self.bound, threshold)
        } else {
            let model = Majoriser::new(point.x.view(), gradient.view(), self.bound);
            let penalty = point.problem.penalty;
            let found = self.matchings.largest_decrease(point.x.view(), &model, penalty);
            found.largest
        };
        self.verified = gap <= threshold;
    }
}

/// Returns the largest decrease of `⟨G, X − A⟩ + L/2‖X − A‖²` at X = A by an orthogonal move of two rows of
/// A, or any decrease above `enough`.
///
/// On rows Z the decrease is linear, `−⟨M, V − I⟩` with M = (LZ − G_B)Zᵀ. Its maximum over the orthogonal V
/// is the nuclear
/// norm `√(‖M‖² + 2|det M|)`, and over the rotations `√(‖M‖² + 2 det M)`. O(n²r).
fn largest_turn(point: &Point<'_>, gradient: &Array2<f64>, curvature: f64, enough: f64) -> f64 {
    let (x, rotations) = (&point.x, point.problem.rotations);
    let n = x.nrows();
    let pull = x * curvature - gradient;
    let own: Vec<f64> = (0..n).map(|i| pull.row(i).dot(&x.row(i))).collect();
    let mut largest = 0.0f64;
    for from in (0..n).step_by(PANEL) {
        let to = (from + PANEL).min(n);
        let ahead = pull.slice(s![from..to, ..]).dot(&x.slice(s![from.., ..]).t());
        let back = x.slice(s![from..to, ..]).dot(&pull.slice(s![from.., ..]).t());
        for i in from..to {
            for j in i + 1..n {
                let at = (i - from, j - from);
                let (a, b, c, d) = (own[i], ahead[at], back[at], own[j]);
                let squares = a * a + b * b + c * c + d * d;
                let det = a * d - b * c;
                let reach = if rotations { det } else { det.abs() };
                let nuclear = (squares + 2.0 * reach).max(0.0).sqrt();
                // ‖M‖_* − tr M without cancellation where tr M > 0.
                let trace = a + d;
                let gap = if trace > 0.0 {
                    let over = (b - c).powi(2) + 2.0 * (reach - det);
                    over / (nuclear + trace)
                } else {
                    nuclear - trace
                };
                largest = largest.max(gap);
            }
        }
        if largest > enough {
            break;
        }
    }
    largest
}
