//! The variance-reduced Jacobi iteration: estimates the gradient, moves, and evaluates F from time to time.

use ndarray::Array2;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::rule::{Model, Trial};
use super::{CONVERGED_PASSES, FiniteSum, FiniteSumOptions, FiniteSumSolution, Page};
use crate::block::{Outcome, PairOptions};
use crate::error::{Error, Result};
use crate::internal::{
    Domain, Limits, Majoriser, Matchings, PacedMonitor, RAISE, adapted, components, recession_at, tournament,
};
use crate::objective::{DenseColumns, GramQuadratic};
use crate::pair::Recession;
use crate::penalty::Penalty;
use crate::problem::Problem;
use crate::signature::Signature;
use crate::solver::{Control, Ledger, Monitor, Options, Side, Status};
use crate::threads::Threads;

/// Iterations between repairs of the drift of XᵀJX.
const REPAIR_EVERY: u64 = 200;

/// Minimises f + h from a feasible start by variance-reduced Jacobi rounds.
///
/// Every pair minimises `⟨E, G̃_B Zᵀ⟩ + L/2‖E Z‖² + θ/2‖E‖² + h`, which majorises f for the whole matching at
/// once when G̃ = ∇f. With an estimate of ∇f, F may rise in an iteration. The result is the best point at
/// which F was evaluated.
///
/// # Errors
/// If the problem, the options or the start are invalid, if values and gradients contradict each other at the
/// start, or if their products overflow or vanish.
pub fn minimize_finite_sum(
    sum: &dyn FiniteSum,
    penalty: &Penalty,
    signature: &Signature,
    x0: Array2<f64>,
    options: &FiniteSumOptions,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<FiniteSumSolution> {
    let problem = Problem::new(sum, penalty, signature, x0.ncols())?;
    let x0 = problem.given_start(x0)?;
    options.check()?;
    let descend = |x, options: &FiniteSumOptions, monitor: &mut dyn Monitor| {
        let mut run = Run::new(sum, &problem, x, options, threads)?;
        let status = run.descend(&mut PacedMonitor::new(monitor))?;
        Ok::<_, Error>(run.finish(status))
    };
    let mut found = descend(x0, options, monitor)?;
    // Passes over the data are many with mixed signs, whose four components would each take as many again.
    if !signature.is_definite() {
        return Ok(found);
    }
    for x in components::others(&problem, &found.solution, threads) {
        if found.solution.status != Status::Converged {
            break;
        }
        let spent = &found.solution;
        let left = FiniteSumOptions {
            max_time: options.max_time.map(|most| (most - spent.seconds).max(0.0)),
            max_evaluations: (options.max_evaluations).map(|most| most.saturating_sub(spent.work as u64)),
            max_visits: (options.max_visits).map(|most| most.saturating_sub(spent.iterations)),
            ..options.clone()
        };
        let other = descend(x, &left, &mut components::Silent(monitor))?;
        found.iterations += other.iterations;
        if components::join(&mut found.solution, other.solution, monitor) {
            found.evaluations.push(found.solution.work as u64);
        }
    }
    Ok(found)
}

/// The counts and the best F at the beginning of the current pass.
#[derive(Default)]
struct Pass {
    evaluations: u64,
    iterations: u64,
    value: f64,
    converged: u32,
}

/// The state of a solve.
struct Run<'a> {
    sum: &'a dyn FiniteSum,
    problem: &'a Problem<'a>,
    options: &'a FiniteSumOptions,
    threads: &'a Threads,
    limits: Limits,
    domain: Domain<'a>,
    ledger: Ledger,
    /// Number of component gradients at each row of the history.
    evaluations: Vec<u64>,
    x: Array2<f64>,
    /// The previous point, to which the estimate of ∇f belongs.
    previous: Option<Array2<f64>>,
    page: Page,
    model: Model,
    matchings: Matchings,
    order: Vec<usize>,
    rng: Xoshiro256PlusPlus,
    /// The best point at which F was evaluated; the ledger has its F. `latest` is F at the latest such point.
    best: Array2<f64>,
    latest: f64,
    iterations: u64,
    next_check: u64,
    pass: Pass,
}

/// Returns a copy of `a` whose rows move: its transpose if columns move.
fn side_of(a: &Array2<f64>, columns: bool) -> Array2<f64> {
    if columns { a.t().as_standard_layout().into_owned() } else { a.clone() }
}

impl<'a> Run<'a> {
    fn new(
        sum: &'a dyn FiniteSum,
        problem: &'a Problem<'a>,
        x0: Array2<f64>,
        options: &'a FiniteSumOptions,
        threads: &'a Threads,
    ) -> Result<Self> {
        let ledger = Ledger::new(Options::default().pairs_of_sweep(problem.smooth), options.tol);
        let page = Page::new(sum.components(), options.batch, options.small_batch, options.probability)?;
        let signature = problem.signature;
        let model = Model::new(sum, &page, signature, options, problem.penalty.is_none())?;
        let x = x0.as_standard_layout().into_owned();
        let domain = Domain::new(problem, &x);
        if options.side != Side::Rows && !(problem.penalty.is_none() && domain.k == signature.matrix()) {
            return Err(Error::invalid("side", "must be rows where X is not J-orthogonal or has a penalty"));
        }
        Ok(Self {
            sum,
            problem,
            options,
            threads,
            limits: options.limits(),
            domain,
            ledger,
            evaluations: Vec::new(),
            previous: None,
            page,
            model,
            matchings: Matchings::new(x.dim(), signature, options.rapidity_bound),
            order: (0..x.nrows()).collect(),
            rng: Xoshiro256PlusPlus::seed_from_u64(options.seed),
            best: x.clone(),
            latest: f64::INFINITY,
            iterations: 0,
            next_check: 0,
            pass: Pass::default(),
            x,
        })
    }

    /// Returns f and ∇f at X.
    fn evaluated(&self, x: &Array2<f64>) -> (f64, Array2<f64>) {
        let mut gradient = Array2::zeros(x.dim());
        let value = self.sum.value_and_gradient(x.view(), gradient.view_mut(), self.threads);
        (value, gradient)
    }

    fn descend(&mut self, watch: &mut PacedMonitor<'_>) -> Result<Status> {
        loop {
            if self.is_due() {
                let bounded = self.evaluate();
                if self.sum.has_failed() {
                    return Ok(Status::Interrupted);
                }
                if !bounded {
                    return Ok(self.leave());
                }
                self.evaluations.push(self.page.evaluations);
                let control = watch.record(&self.domain, self.best.view(), &mut self.ledger);
                if control == Control::Stop {
                    return Ok(Status::Interrupted);
                }
                if self.has_converged() {
                    return Ok(Status::Converged);
                }
            } else if !self.domain.is_bounded(&self.x) {
                return Ok(self.leave());
            }
            if let Some(status) = self.limits.reached(&self.ledger) {
                return Ok(status);
            }
            if watch.poll() == Control::Stop {
                return Ok(Status::Interrupted);
            }
            self.estimate();
            if self.sum.has_failed() {
                return Ok(Status::Interrupted);
            }
            if self.iterations == 0 {
                self.check()?;
            }
            self.order.shuffle(&mut self.rng);
            self.step();
            if self.ledger.recession.is_some() {
                return Ok(Status::Unbounded);
            }
            self.iterations += 1;
            if self.iterations.is_multiple_of(REPAIR_EVERY) {
                // The estimate of ∇f remains valid, as a repair moves X by rounding only.
                self.x = self.domain.repaired(&self.x);
            }
        }
    }

    /// Returns to the last point within bounds; the result is the status, unbounded or diverged.
    fn leave(&mut self) -> Status {
        if let Some(last) = self.previous.take() {
            self.x = last;
        }
        self.ledger.recession = self.recession();
        match self.ledger.recession {
            Some(_) => Status::Unbounded,
            None => Status::Diverged,
        }
    }

    /// Returns a pair of rows along which F is unbounded below at X, if f is ½·scale·‖AX‖².
    fn recession(&self) -> Option<Recession> {
        let (a, scale) = self.sum.gram()?;
        let smooth = GramQuadratic::new(DenseColumns::new(a).ok()?, scale, None).ok()?;
        let (penalty, signature) = (self.problem.penalty, self.problem.signature);
        let problem = Problem::new(&smooth, penalty, signature, self.x.ncols()).ok()?;
        recession_at(&problem, &self.x, self.threads)
    }

    /// Checks f at the start. The gradient may be that of a batch.
    fn check(&self) -> Result<()> {
        let smooth = self.latest - self.problem.penalty.value(self.x.view());
        let start = (smooth, &self.page.gradient);
        self.problem.check_function(&self.x, start, self.threads)
    }

    fn is_due(&self) -> bool {
        match self.options.check_every {
            Some(every) => self.iterations.is_multiple_of(every as u64),
            None => self.page.evaluations >= self.next_check,
        }
    }

    /// Evaluates F, accepts or reverts the last step, records the point; returns whether X is within bounds.
    fn evaluate(&mut self) -> bool {
        self.next_check = self.page.evaluations + self.sum.components() as u64;
        let mut value = self.problem.penalty.value(self.x.view());
        if self.page.is_exact() {
            let (smooth, gradient) = self.evaluated(&self.x);
            (self.page.gradient, self.page.known) = (gradient, true);
            value += smooth;
        } else {
            value += self.sum.value(self.x.view(), self.threads);
        }
        self.latest = self.judge(value);
        if !self.domain.is_bounded(&self.x) {
            return false;
        }
        if self.latest < self.ledger.objective {
            (self.best, self.ledger.objective) = (self.x.clone(), self.latest);
        }
        if self.iterations == 0 {
            self.pass.value = self.ledger.objective;
        }
        true
    }

    /// Adapts the model to F = `value` at X, and returns F at the kept point, an earlier one if the step is
    /// reverted.
    fn judge(&mut self, value: f64) -> f64 {
        match &mut self.model {
            Model::Majorised { bound, trial, .. } => {
                let Some(trial) = trial.take() else {
                    return value;
                };
                let next = adapted(*bound, value - trial.value, trial.predicted);
                *bound = next.unwrap_or(RAISE * *bound);
                if next.is_none() {
                    (self.x, self.page.gradient) = (trial.start, trial.gradient);
                    return trial.value;
                }
                value
            }
            // F is above its value at the start, so the step was too long.
            Model::Accumulated(moves)
                if (self.ledger.history.first()).is_some_and(|start| !(value <= start.objective)) =>
            {
                moves.slow_down();
                self.x = self.best.clone();
                if self.page.is_exact() {
                    self.page.gradient = self.evaluated(&self.x).1;
                }
                self.previous = None;
                self.ledger.objective
            }
            Model::Accumulated(_) => value,
        }
    }

    /// Returns whether the solve has converged, checked at the end of a pass: N component gradients and n − 1
    /// iterations.
    fn has_converged(&mut self) -> bool {
        let components = self.sum.components() as u64;
        let (evaluations, iterations) = (self.page.evaluations, self.iterations);
        if evaluations < self.pass.evaluations + components
            || iterations < self.pass.iterations + self.x.nrows() as u64 - 1
        {
            return false;
        }
        let value = self.ledger.objective;
        let threshold = self.options.tol.max(self.sum.precision()) * value.abs();
        let stationary = self.pass.value - value <= threshold;
        self.pass =
            Pass { evaluations, iterations, value, converged: if stationary { self.pass.converged + 1 } else { 0 } };
        if !(self.options.tol > 0.0 && self.pass.converged >= CONVERGED_PASSES) {
            return false;
        }
        let Model::Majorised { bound, .. } = self.model else {
            return true;
        };
        let (_, gradient) = self.evaluated(&self.best);
        let safe = self.sum.curvature();
        let curvature = if safe.is_finite() { safe } else { bound };
        if self.largest_decrease(&gradient, curvature) <= threshold {
            self.page.evaluations += components;
            return true;
        }
        self.pass.converged = 0;
        self.page.make_exact();
        (self.page.gradient, self.page.known) = (gradient, true);
        (self.x, self.latest) = (self.best.clone(), value);
        false
    }

    /// Returns the sides that move in turn; true for columns.
    fn sides(&self) -> &'static [bool] {
        match self.options.side {
            Side::Rows => &[false],
            Side::Columns => &[true],
            Side::Both => &[false, true],
        }
    }

    /// Returns the largest decrease of the model at the best point by one pair of a side that moves.
    fn largest_decrease(&self, gradient: &Array2<f64>, curvature: f64) -> f64 {
        self.sides()
            .iter()
            .map(|&columns| {
                let (x, gradient) = (side_of(&self.best, columns), side_of(gradient, columns));
                let model = Majoriser::new(x.view(), gradient.view(), curvature);
                self.matchings.largest_decrease(x.view(), &model, self.problem.penalty).largest
            })
            .fold(0.0, f64::max)
    }

    /// Updates the estimate of the gradient at X.
    fn estimate(&mut self) {
        let previous = self.previous.as_ref().map(|p| p.view());
        self.page.update(self.sum, self.x.view(), previous, &mut self.rng);
        self.ledger.work = self.page.evaluations as f64;
        if let Model::Majorised { bound, adaptive: true, .. } = &mut self.model
            && self.iterations == 0
            && self.options.curvature.is_none()
        {
            let norm = |a: &Array2<f64>| a.iter().map(|v| v * v).sum::<f64>().sqrt();
            *bound = norm(&self.page.gradient) / norm(&self.x).max(f64::MIN_POSITIVE);
        }
    }

    /// Moves X.
    fn step(&mut self) {
        let options = self.options;
        // The last iteration may begin beyond the limit.
        let share = (1.0 - self.limits.spent(&self.ledger)).max(0.0);
        let (moved, outcome) = match &mut self.model {
            Model::Accumulated(moves) => moves.turn(
                self.x.view(),
                self.page.gradient.view(),
                (options.side, options.matchings),
                &self.order,
                (share, options.proximal),
                self.threads,
            ),
            Model::Majorised { bound, .. } => {
                let bound = *bound;
                self.solve_matchings(bound)
            }
        };
        self.ledger.visit(outcome.visited, 0.0);
        self.ledger.updates += outcome.updates;
        self.previous = Some(std::mem::replace(&mut self.x, moved));
    }

    /// Solves the matchings of one iteration, at most a tournament; returns the new X.
    fn solve_matchings(&mut self, bound: f64) -> (Array2<f64>, Outcome) {
        let options = self.options;
        let sides = self.sides();
        let columns = sides[self.iterations as usize % sides.len()];
        let anchor = side_of(&self.x, columns);
        let gradient = side_of(&self.page.gradient, columns);
        let model = Majoriser::new(anchor.view(), gradient.view(), bound);
        let pair = PairOptions { proximal: options.proximal * bound, ..PairOptions::default() };
        let mut moving = anchor.clone();
        let mut total = Outcome::default();
        for round in 0..options.matchings.min(tournament::rounds(anchor.nrows())) {
            let pairs = tournament::matching(&self.order, round);
            let penalty = self.problem.penalty;
            total.absorb(self.matchings.solve(moving.view(), &pairs, &model, penalty, pair, self.threads));
            self.ledger.recession = self.matchings.recession();
            if self.ledger.recession.is_some() {
                break;
            }
            self.matchings.write(&mut moving);
        }
        if let Model::Majorised { adaptive: true, trial, .. } = &mut self.model {
            *trial = Some(Trial {
                start: self.x.clone(),
                value: self.latest,
                gradient: self.page.gradient.clone(),
                predicted: total.change,
            });
        }
        (side_of(&moving, columns), total)
    }

    fn finish(mut self, status: Status) -> FiniteSumSolution {
        // The last point may be better than every point at which F was evaluated.
        let last = self.x.view();
        if self.domain.is_bounded(&self.x) && self.problem.objective(last, self.threads) < self.ledger.objective {
            self.best = self.x;
        }
        let x = self.best.view();
        let penalty = self.problem.penalty.value(x);
        let smooth = match self.sum.has_failed() {
            true => self.ledger.objective - penalty,
            false => self.sum.value(x, self.threads),
        };
        let values = (smooth, penalty);
        let feasibility = self.domain.distance(x);
        self.ledger.work = self.page.evaluations as f64;
        let solution = self.ledger.close(status, self.best, values, feasibility);
        self.evaluations.truncate(solution.history.len() - 1);
        self.evaluations.push(self.page.evaluations);
        FiniteSumSolution { solution, iterations: self.iterations, evaluations: self.evaluations }
    }
}
