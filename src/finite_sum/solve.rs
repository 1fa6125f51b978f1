//! The variance-reduced Jacobi iteration: look at F now and then, estimate the gradient, move.

use std::time::{Duration, Instant};

use ndarray::{Array2, ArrayView2};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::rule::{FAIR_SHARE, GOOD_SHARE, LOWER, Model, RAISE, Trial};
use super::{FiniteSum, FiniteSumOptions, FiniteSumSolution, PASSES_AT_REST, Page};
use crate::block::{Majoriser, Matchings, Outcome, PairOptions};
use crate::error::{Error, Result};
use crate::manifold::{drift, project_dense, start_constraint};
use crate::pair::Recession;
use crate::penalty::Penalty;
use crate::signature::Signature;
use crate::solver::{Control, DIVERGENCE, Monitor, Record, Side, Status};
use crate::threads::Threads;
use crate::tournament;

/// Iterations between repairs of the drift of XᵀJX.
const REPAIR_EVERY: u64 = 200;

/// Time between looks at the monitor.
const POLL: Duration = Duration::from_millis(40);

/// Minimises f + h from a feasible start by variance-reduced Jacobi rounds.
///
/// Every pair minimises `⟨E, G̃_B Zᵀ⟩ + L/2‖E Z‖² + θ/2‖E‖² + h`, which majorises f for the whole matching at
/// once when G̃ = ∇f. With an estimate F need not fall in every iteration; the best point looked
/// at is returned.
///
/// # Errors
/// If the problem, the options or the start are not valid.
pub fn minimize_finite_sum<P: Penalty>(
    sum: &dyn FiniteSum,
    penalty: &P,
    signature: &Signature,
    x0: Array2<f64>,
    options: &FiniteSumOptions,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<FiniteSumSolution> {
    check_start(sum, penalty, signature, &x0)?;
    options.check()?;
    crate::simd::instructions()?;
    let mut run = Run::new(sum, penalty, signature, x0, options, threads)?;
    let status = run.descend(monitor);
    Ok(run.finish(status))
}

fn check_start<P: Penalty>(
    sum: &dyn FiniteSum,
    penalty: &P,
    signature: &Signature,
    x0: &Array2<f64>,
) -> Result<()> {
    let (n, r) = x0.dim();
    if n != sum.rows() || r == 0 || sum.columns().is_some_and(|columns| columns != r) {
        return Err(Error::invalid(
            "x0",
            format!(
                "must have {} rows and as many columns as the data, got shape {:?}",
                sum.rows(),
                x0.dim()
            ),
        ));
    }
    if x0.iter().any(|v| !v.is_finite()) {
        return Err(Error::invalid("x0", "must be finite"));
    }
    if signature.len() != n {
        return Err(Error::invalid(
            "signature",
            format!("must have {n} entries, got {}", signature.len()),
        ));
    }
    penalty.check(n, r)?;
    if penalty.infeasibility(x0.view()) > 0.0 {
        return Err(Error::invalid("x0", "must be feasible for the penalty"));
    }
    Ok(())
}

/// The pass under way: where it began and the best F then.
#[derive(Default)]
struct Pass {
    evaluations: u64,
    iterations: u64,
    value: f64,
    at_rest: u32,
}

impl Pass {
    /// Whether N component gradients and n − 1 iterations have gone by.
    fn ended(&self, evaluations: u64, components: u64, iterations: u64, n: usize) -> bool {
        let matchings = (n as u64 - 1).max(1);
        evaluations >= self.evaluations + components && iterations >= self.iterations + matchings
    }

    fn begin(&mut self, evaluations: u64, iterations: u64, value: f64) {
        (self.evaluations, self.iterations, self.value) = (evaluations, iterations, value);
    }
}

/// A solve under way.
struct Run<'a, P: Penalty> {
    sum: &'a dyn FiniteSum,
    penalty: &'a P,
    signature: &'a Signature,
    options: &'a FiniteSumOptions,
    threads: &'a Threads,
    k0: Array2<f64>,
    x: Array2<f64>,
    /// The point before, to which the estimate belongs.
    previous: Option<Array2<f64>>,
    page: Page,
    /// Whether the estimate is that of X already.
    ready: bool,
    /// L, if f has one.
    safe: f64,
    model: Model,
    matchings: Matchings,
    pairs: Outcome,
    order: Vec<usize>,
    rng: Xoshiro256PlusPlus,
    /// The best point looked at and its F; F at the start and at the last look.
    best: (Array2<f64>, f64),
    first: f64,
    latest: f64,
    iterations: u64,
    next_look: u64,
    pass: Pass,
    recession: Option<Recession>,
    /// ‖X‖²/n beyond which the iterates diverge.
    limit: f64,
    started: Instant,
    polled: Instant,
    history: Vec<(Record, u64)>,
}

fn transposed(a: &Array2<f64>) -> Array2<f64> {
    a.t().as_standard_layout().into_owned()
}

/// X for moves of its rows, Xᵀ for those of its columns.
fn side_of(a: &Array2<f64>, columns: bool) -> Array2<f64> {
    if columns { transposed(a) } else { a.clone() }
}

fn mean_square(x: &Array2<f64>) -> f64 {
    x.iter().map(|v| v * v).sum::<f64>() / x.nrows() as f64
}

impl<'a, P: Penalty> Run<'a, P> {
    fn new(
        sum: &'a dyn FiniteSum,
        penalty: &'a P,
        signature: &'a Signature,
        x0: Array2<f64>,
        options: &'a FiniteSumOptions,
        threads: &'a Threads,
    ) -> Result<Self> {
        let started = Instant::now();
        let page = Page::new(
            sum.components(),
            options.batch,
            options.small_batch,
            options.probability,
        )?;
        let safe = sum.curvature();
        let model = Model::new(sum, (safe, &page), signature, options, P::SMOOTH)?;
        let k0 = start_constraint(x0.view(), signature);
        if options.side != Side::Rows && !(P::SMOOTH && k0 == signature.matrix()) {
            return Err(Error::invalid(
                "side",
                "must be rows where X is not J-orthogonal or has a penalty",
            ));
        }
        let x = x0.as_standard_layout().into_owned();
        Ok(Self {
            sum,
            penalty,
            signature,
            options,
            threads,
            k0,
            previous: None,
            page,
            ready: false,
            safe,
            model,
            matchings: Matchings::new(x.dim(), signature, options.rapidity_bound),
            pairs: Outcome::default(),
            order: (0..x.nrows()).collect(),
            rng: Xoshiro256PlusPlus::seed_from_u64(options.seed),
            best: (x.clone(), f64::INFINITY),
            first: f64::INFINITY,
            latest: f64::INFINITY,
            iterations: 0,
            next_look: 0,
            pass: Pass::default(),
            recession: None,
            limit: DIVERGENCE * mean_square(&x).max(1.0),
            started,
            polled: started,
            history: Vec::new(),
            x,
        })
    }

    fn descend(&mut self, monitor: &mut dyn Monitor) -> Status {
        loop {
            let due = match self.options.look {
                Some(look) => self.iterations.is_multiple_of(look as u64),
                None => self.page.evaluations >= self.next_look,
            };
            if due && let Some(status) = self.look(monitor) {
                return status;
            }
            if let Some(status) = self.limit_reached(monitor) {
                return status;
            }
            self.estimate();
            self.order.shuffle(&mut self.rng);
            self.step();
            if self.recession.is_some() {
                return Status::Unbounded;
            }
            self.iterations += 1;
            if self.iterations.is_multiple_of(REPAIR_EVERY) && P::SMOOTH {
                // The estimate stays an estimate at the point before: a repair is a step of rounding size.
                self.x = project_dense(&self.x, self.signature, self.k0.view());
            }
        }
    }

    /// Evaluates F, judges the last step by it, and takes note of the point.
    fn look(&mut self, monitor: &mut dyn Monitor) -> Option<Status> {
        let components = self.sum.components() as u64;
        self.next_look = self.page.evaluations + components;
        let mut value = self.penalty.value(self.x.view());
        if self.page.is_exact() {
            let (smooth, gradient) = self.sum.value_and_gradient(self.x.view());
            self.page.gradient = gradient;
            self.ready = true;
            value += smooth;
        } else {
            value += self.sum.value(self.x.view());
        }
        value = self.judge(value);
        if self.iterations == 0 {
            self.first = value;
        }
        self.latest = value;
        if !(mean_square(&self.x) <= self.limit) {
            return Some(Status::Diverged);
        }
        if value < self.best.1 {
            self.best = (self.x.clone(), value);
        }
        let record = self.record();
        self.history.push((record, self.page.evaluations));
        self.polled = Instant::now();
        if monitor.record(&record, self.best.0.view()) == Control::Stop
            || monitor.poll() == Control::Stop
        {
            return Some(Status::Interrupted);
        }
        if self.options.target.is_some_and(|t| self.best.1 <= t) {
            return Some(Status::Target);
        }
        if self.iterations == 0 {
            self.pass.value = self.best.1;
        }
        self.end_of_pass()
    }

    /// What the model learns from F at X; X and its F, which are those of an earlier point if the step is
    /// taken back.
    fn judge(&mut self, value: f64) -> f64 {
        match &mut self.model {
            Model::Majorised { bound, trial, .. } => {
                let Some(trial) = trial.take() else {
                    return value;
                };
                if value - trial.value <= GOOD_SHARE * trial.predicted {
                    *bound *= LOWER;
                } else if !(value - trial.value <= FAIR_SHARE * trial.predicted) {
                    *bound *= RAISE;
                    (self.x, self.page.gradient) = (trial.start, trial.gradient);
                    return trial.value;
                }
                value
            }
            // Worse than the start: the step was too long.
            Model::Accumulated(moves) if !(value <= self.first) => {
                moves.slow_down();
                self.x = self.best.0.clone();
                if self.page.is_exact() {
                    self.page.gradient = self.sum.value_and_gradient(self.x.view()).1;
                }
                self.previous = None;
                self.best.1
            }
            Model::Accumulated(_) => value,
        }
    }

    /// At the end of a pass: whether the solve has come to rest, and no pair is left there.
    fn end_of_pass(&mut self) -> Option<Status> {
        let components = self.sum.components() as u64;
        let (evaluations, iterations) = (self.page.evaluations, self.iterations);
        let n = self.x.nrows();
        if !self.pass.ended(evaluations, components, iterations, n) {
            return None;
        }
        let threshold = self.options.tol * self.best.1.abs();
        let rests = self.pass.value - self.best.1 <= threshold;
        self.pass.at_rest = if rests { self.pass.at_rest + 1 } else { 0 };
        self.pass.begin(evaluations, iterations, self.best.1);
        if !(self.options.tol > 0.0 && self.pass.at_rest >= PASSES_AT_REST) {
            return None;
        }
        let Model::Majorised { bound, .. } = self.model else {
            return Some(Status::Converged);
        };
        let (_, gradient) = self.sum.value_and_gradient(self.best.0.view());
        let curvature = if self.safe.is_finite() {
            self.safe
        } else {
            bound
        };
        if self.largest_decrease(&gradient, curvature) <= threshold {
            self.page.evaluations += components;
            return Some(Status::Converged);
        }
        self.pass.at_rest = 0;
        self.page.make_exact();
        self.page.gradient = gradient;
        (self.x, self.latest, self.ready) = (self.best.0.clone(), self.best.1, true);
        None
    }

    /// The largest decrease of the model at the best point that one pair of a side that moves can make.
    fn largest_decrease(&self, gradient: &Array2<f64>, curvature: f64) -> f64 {
        [Side::Rows, Side::Columns]
            .into_iter()
            .filter(|&side| self.options.side == side || self.options.side == Side::Both)
            .map(|side| {
                let columns = side == Side::Columns;
                let (x, gradient) = (side_of(&self.best.0, columns), side_of(gradient, columns));
                let model = Majoriser {
                    anchor: x.view(),
                    gradient: gradient.view(),
                    curvature,
                };
                self.matchings
                    .largest_decrease(x.view(), &model, self.penalty)
            })
            .fold(0.0, f64::max)
    }

    fn limit_reached(&mut self, monitor: &mut dyn Monitor) -> Option<Status> {
        let options = self.options;
        if options.max_time.is_some_and(|t| self.seconds() >= t) {
            return Some(Status::MaxTime);
        }
        if options
            .max_evaluations
            .is_some_and(|m| self.page.evaluations >= m)
            || options.max_visits.is_some_and(|m| self.counts().0 >= m)
        {
            return Some(Status::MaxSweeps);
        }
        if self.polled.elapsed() >= POLL {
            self.polled = Instant::now();
            if monitor.poll() == Control::Stop {
                return Some(Status::Interrupted);
            }
        }
        None
    }

    /// The gradient at X, or an estimate of it.
    fn estimate(&mut self) {
        if std::mem::take(&mut self.ready) {
            self.page.evaluations += self.sum.components() as u64;
        } else {
            let previous = self.previous.as_ref().map(|p| p.view());
            self.page
                .update(self.sum, self.x.view(), previous, &mut self.rng);
        }
        if let Model::Majorised {
            bound,
            adaptive: true,
            ..
        } = &mut self.model
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
        let spent = options.spent(self.seconds(), self.page.evaluations, self.counts().0);
        let moved = match &mut self.model {
            Model::Accumulated(moves) => moves.turn(
                self.x.view(),
                self.page.gradient.view(),
                (options.side, options.matchings),
                &self.order,
                (1.0 - spent, options.proximal),
                self.threads,
            ),
            Model::Majorised { bound, .. } => {
                let bound = *bound;
                self.solve_matchings(bound)
            }
        };
        self.previous = Some(std::mem::replace(&mut self.x, moved));
    }

    /// X after the matchings of one iteration, a tournament at most.
    fn solve_matchings(&mut self, bound: f64) -> Array2<f64> {
        let options = self.options;
        // A move of columns is one of the rows of Xᵀ.
        let columns = match options.side {
            Side::Rows => false,
            Side::Columns => true,
            Side::Both => self.iterations % 2 == 1,
        };
        let anchor = side_of(&self.x, columns);
        let gradient = side_of(&self.page.gradient, columns);
        let model = Majoriser {
            anchor: anchor.view(),
            gradient: gradient.view(),
            curvature: bound,
        };
        let pair = PairOptions {
            alpha: options.proximal * bound,
            ..PairOptions::default()
        };
        let mut moving = anchor.clone();
        let mut predicted = 0.0;
        for round in 0..options.matchings.min(tournament::rounds(anchor.nrows())) {
            let pairs = tournament::matching(&self.order, round);
            let outcome = self.matchings.solve(
                moving.view(),
                &pairs,
                &model,
                self.penalty,
                pair,
                self.threads,
            );
            predicted += outcome.change;
            self.pairs.absorb(outcome);
            self.recession = self.matchings.recession();
            if self.recession.is_some() {
                break;
            }
            for (row, new) in self.matchings.moved() {
                let target = moving.row_mut(row);
                target.into_iter().zip(new).for_each(|(x, &new)| *x = new);
            }
        }
        if let Model::Majorised {
            adaptive: true,
            trial,
            ..
        } = &mut self.model
        {
            *trial = Some(Trial {
                start: self.x.clone(),
                value: self.latest,
                gradient: self.page.gradient.clone(),
                predicted,
            });
        }
        side_of(&moving, columns)
    }

    fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    fn feasibility(&self, x: ArrayView2<'_, f64>) -> f64 {
        drift(x, self.signature, self.k0.view()) + self.penalty.infeasibility(x)
    }

    /// (pairs visited, pairs moved)
    fn counts(&self) -> (u64, u64) {
        match &self.model {
            Model::Accumulated(moves) => moves.counts(),
            Model::Majorised { .. } => (self.pairs.visited, self.pairs.updates),
        }
    }

    /// The best point so far.
    fn record(&self) -> Record {
        Record {
            seconds: self.seconds(),
            objective: self.best.1,
            feasibility: self.feasibility(self.best.0.view()),
            iterations: self.counts().0,
        }
    }

    fn finish(mut self, status: Status) -> FiniteSumSolution {
        // The last point may be better than the best one looked at.
        if mean_square(&self.x) <= self.limit {
            let value = self.sum.value(self.x.view()) + self.penalty.value(self.x.view());
            if value < self.best.1 {
                self.best = (std::mem::take(&mut self.x), value);
            }
        }
        let smooth_value = self.sum.value(self.best.0.view());
        let penalty_value = self.penalty.value(self.best.0.view());
        self.best.1 = smooth_value + penalty_value;
        let last = self.record();
        self.history.push((last, self.page.evaluations));
        let (visited, updates) = self.counts();
        FiniteSumSolution {
            feasibility: last.feasibility,
            objective: last.objective,
            smooth_value,
            penalty_value,
            x: self.best.0,
            status,
            iterations: self.iterations,
            evaluations: self.page.evaluations,
            visited,
            updates,
            seconds: last.seconds,
            history: self.history,
            recession: self.recession,
        }
    }
}
