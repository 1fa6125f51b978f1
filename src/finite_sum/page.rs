//! The PAGE estimator and the Jacobi iteration on it.

use std::time::Instant;

use ndarray::{Array2, ArrayView2};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::FiniteSum;
use super::rule::{AccumulatedMoves, CurvatureRule, matching};
use crate::Curvature;
use crate::block::{Block, PairOptions, Pairs, Sweep};
use crate::error::{Error, Result};
use crate::hyperbolic::j_matrix;
use crate::pair::{Recession, Scratch};
use crate::penalty::Penalty;
use crate::signature::Signature;
use crate::solver::{
    Control, DIVERGENCE, Monitor, Record, Side, Status, drift, repair_dense, start_constraint,
};
use crate::threads::Threads;

/// Options of [`minimize_finite_sum`].
///
/// | field | default | meaning |
/// |---|---|---|
/// | `batch` | N | components b of a full estimate |
/// | `small_batch` | ⌈√N⌉ | components b′ of a correction |
/// | `probability` | b′/(b + b′) | of a full estimate; 1 is J-JOBCD |
/// | `theta` | 1e-5 | proximal weight θ ≥ 0, relative to the curvature of the pair models |
/// | `curvature` | L + L̄√((1 − p)/(p b′)) | curvature of the pair models; less than L gives up the guarantee |
/// | `rule` | `Bound` | where the curvature comes from |
/// | `matchings` | 1 | disjoint matchings solved per gradient estimate, one after the other |
/// | `side` | `Rows` | what moves: rows, columns (where XᵀJX = J, without penalty), or both in turn |
/// | `rapidity_bound` | none; 1 for `Accumulated` | largest \|μ\| of one move |
/// | `max_evaluations` | none | component gradients |
/// | `max_time` | none | seconds |
/// | `target` | none | stop when F, looked at every `look` iterations, reaches it |
/// | `look` | none | iterations between evaluations of F, which are not counted; a pass over the data by default |
/// | `tol` | 0 | stop when F falls by at most this share over [`PASSES_AT_REST`] passes, and no pair lowers its model by more |
/// | `seed` | 0 | all random choices |
#[derive(Debug, Clone, PartialEq)]
pub struct FiniteSumOptions {
    /// Components of a full estimate.
    pub batch: Option<usize>,
    /// Components of a correction.
    pub small_batch: Option<usize>,
    /// Probability of a full estimate.
    pub probability: Option<f64>,
    /// Proximal weight, relative to the curvature of the pair models.
    pub theta: f64,
    /// Curvature of the pair models.
    pub curvature: Option<f64>,
    /// Where the curvature comes from.
    pub rule: CurvatureRule,
    /// Matchings per gradient estimate, at most one tournament (every pair once).
    pub matchings: usize,
    /// What moves.
    pub side: Side,
    /// Largest |μ| of one move.
    pub rapidity_bound: Option<f64>,
    /// Limit on component gradients.
    pub max_evaluations: Option<u64>,
    /// Time limit in seconds.
    pub max_time: Option<f64>,
    /// Objective to stop at.
    pub target: Option<f64>,
    /// Iterations between evaluations of F; by default F is evaluated once a pass over the data.
    pub look: Option<usize>,
    /// Relative decrease of F over [`PASSES_AT_REST`] passes at which the solve has converged.
    pub tol: f64,
    /// Seed of all random choices.
    pub seed: u64,
}

impl Default for FiniteSumOptions {
    fn default() -> Self {
        Self {
            batch: None,
            small_batch: None,
            probability: None,
            theta: 1e-5,
            curvature: None,
            rule: CurvatureRule::Bound,
            matchings: 1,
            side: Side::Rows,
            rapidity_bound: None,
            max_evaluations: None,
            max_time: None,
            target: None,
            look: None,
            tol: 0.0,
            seed: 0,
        }
    }
}

/// A pass is N component gradients and n − 1 iterations (matchings, that is n(n−1)/2 pairs, unless an
/// iteration has more), whichever takes longer. The solve is at rest
/// when the best value of F has fallen by at most `tol` over so many passes: F is noisy, and one
/// pass without a gain says little. With [`CurvatureRule::Accumulated`], which has no model of F, that is
/// what [`Status::Converged`] says. Otherwise all pairs are then solved at the best point with the exact
/// gradient, the curvature L (where f has one) and no proximal term: if none lowers its model by more than
/// `tol`·|F|, the solve has converged. Else it goes on from there with exact gradients, which have no noise
/// to rest in.
pub const PASSES_AT_REST: u32 = 3;

/// What a variance-reduced solve returns: the best point looked at.
#[derive(Debug, Clone)]
pub struct FiniteSumSolution {
    /// X.
    pub x: Array2<f64>,
    /// F(X).
    pub objective: f64,
    /// f(X).
    pub smooth_value: f64,
    /// h(X).
    pub penalty_value: f64,
    /// ‖XᵀJX − X₀ᵀJX₀‖_F plus the distance from the penalty's domain.
    pub feasibility: f64,
    /// Why it ended.
    pub status: Status,
    /// Iterations: matchings.
    pub iterations: u64,
    /// Component gradients evaluated.
    pub evaluations: u64,
    /// Pairs visited.
    pub visited: u64,
    /// Pairs that moved.
    pub updates: u64,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// (record of the best point so far, component gradients so far).
    pub history: Vec<(Record, u64)>,
    /// The pair along which the model is unbounded, with [`Status::Unbounded`].
    pub recession: Option<Recession>,
}

/// The PAGE estimate of ∇f.
#[derive(Debug, Clone)]
pub struct Page {
    batch: usize,
    small_batch: usize,
    probability: f64,
    order: Vec<usize>,
    /// The estimate.
    pub gradient: Array2<f64>,
    /// Component gradients evaluated so far.
    pub evaluations: u64,
}

impl Page {
    /// An estimator for N components; the first call of [`Page::update`] takes a full batch.
    ///
    /// # Errors
    /// If a batch size is not in 1..=N or the probability not in (0, 1].
    pub fn new(
        components: usize,
        batch: Option<usize>,
        small_batch: Option<usize>,
        probability: Option<f64>,
    ) -> Result<Self> {
        let batch = batch.unwrap_or(components);
        let root = (components as f64).sqrt().ceil() as usize;
        let small_batch = small_batch.unwrap_or(root.min(components));
        for (name, size) in [("batch_size", batch), ("small_batch_size", small_batch)] {
            if size == 0 || size > components {
                return Err(Error::invalid(
                    name,
                    format!("must be between 1 and N = {components}, got {size}"),
                ));
            }
        }
        let probability =
            probability.unwrap_or(small_batch as f64 / (batch as f64 + small_batch as f64));
        if !(probability > 0.0 && probability <= 1.0) {
            return Err(Error::invalid(
                "probability",
                format!("must be above 0 and at most 1, got {probability}"),
            ));
        }
        Ok(Self {
            batch,
            small_batch,
            probability,
            order: (0..components).collect(),
            gradient: Array2::zeros((0, 0)),
            evaluations: 0,
        })
    }

    /// p.
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// Makes every estimate the exact gradient.
    fn make_exact(&mut self) {
        self.batch = self.order.len();
        self.probability = 1.0;
    }

    /// Whether every estimate is the exact gradient.
    fn is_exact(&self) -> bool {
        self.batch == self.order.len() && self.probability == 1.0
    }

    /// A uniformly random subset of `size` components, without replacement.
    fn sample(&mut self, size: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<usize> {
        let n = self.order.len();
        if size == n {
            return (0..n).collect();
        }
        for i in 0..size {
            let j = rng.random_range(i..n);
            self.order.swap(i, j);
        }
        let mut chosen = self.order[..size].to_vec();
        chosen.sort_unstable();
        chosen
    }

    /// The estimate at `x`, given the previous point (`None` at the start).
    pub fn update(
        &mut self,
        sum: &dyn FiniteSum,
        x: ArrayView2<'_, f64>,
        previous: Option<ArrayView2<'_, f64>>,
        rng: &mut Xoshiro256PlusPlus,
    ) {
        let full = rng.random::<f64>() < self.probability;
        match previous {
            Some(previous) if !full => {
                let batch = self.sample(self.small_batch, rng);
                self.correct(sum, x, previous, &batch);
            }
            _ => {
                let batch = self.sample(self.batch, rng);
                self.evaluations += batch.len() as u64;
                self.gradient = sum.batch_gradient(x, &batch);
            }
        }
    }

    /// The correction with a given batch: `G̃ + (1/b′)Σ[∇f_i(x) − ∇f_i(previous)]`.
    pub fn correct(
        &mut self,
        sum: &dyn FiniteSum,
        x: ArrayView2<'_, f64>,
        previous: ArrayView2<'_, f64>,
        batch: &[usize],
    ) {
        self.evaluations += 2 * batch.len() as u64;
        self.gradient += &sum.batch_gradient(x, batch);
        self.gradient -= &sum.batch_gradient(previous, batch);
    }
}

/// Pairs per parallel piece.
const CHUNK_PAIRS: usize = 32;

/// Largest |μ| of one move with [`CurvatureRule::Accumulated`], unless another is asked for.
const ACCUMULATED_RAPIDITY: f64 = 1.0;

/// [`CurvatureRule::Adaptive`]: a round counts if F falls by this share of what the model predicts,
const FAIR_SHARE: f64 = 0.1;
/// and lowers the curvature if it falls by this share,
const GOOD_SHARE: f64 = 0.5;
/// by this factor;
const LOWER: f64 = 0.8;
/// one that does not count is taken back and raises it by this factor.
const RAISE: f64 = 2.0;

/// Iterations between repairs of the drift of XᵀJX.
const REPAIR_EVERY: u64 = 200;

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

struct Worker {
    block: Block,
    scratch: Scratch,
    moved: Vec<(usize, Vec<f64>)>,
    visited: u64,
    updates: u64,
    change: f64,
}

/// Pairs visited so far.
fn visited(workers: &[Worker], accumulated: &Option<([AccumulatedMoves; 2], f64)>) -> u64 {
    let moves = accumulated.iter().flat_map(|(sides, _)| sides);
    workers.iter().map(|w| w.visited).sum::<u64>() + moves.map(|side| side.visited).sum::<u64>()
}

/// Whether it is the columns' turn.
fn columns_turn(side: Side, iterations: u64) -> bool {
    match side {
        Side::Rows => false,
        Side::Columns => true,
        Side::Both => iterations % 2 == 1,
    }
}

/// The largest decrease of the model with the given gradient and curvature that one pair of rows
/// of `x` can make.
fn largest_decrease<P: Penalty>(
    penalty: &P,
    x: ArrayView2<'_, f64>,
    gradient: ArrayView2<'_, f64>,
    curvature: f64,
    worker: &Worker,
) -> f64 {
    let n = x.nrows();
    let (mut block, mut scratch) = (worker.block.clone(), Scratch::new(x.ncols()));
    block.freeze(true);
    let arch = pulp::Arch::new();
    let mut largest = 0.0f64;
    for i in 0..n {
        let rest: Vec<usize> = (i + 1..n).collect();
        for part in rest.chunks(2 * CHUNK_PAIRS) {
            block.load(x, &[i], part);
            let b = block.len();
            (0..b).for_each(|k| block.curvature_mut()[k * b + k] = curvature);
            for k in 0..b {
                let row = block.rows[k];
                block
                    .gradient_row_mut(k)
                    .iter_mut()
                    .zip(gradient.row(row))
                    .for_each(|(t, &g)| *t = g);
            }
            let outcome = arch.dispatch(Sweep {
                block: &mut block,
                pairs: Pairs::Cross,
                penalty,
                options: PairOptions {
                    curvature: Curvature::Exact,
                    alpha: 0.0,
                    metric: None,
                },
                scratch: &mut scratch,
            });
            if block.recession().is_some() {
                return f64::INFINITY;
            }
            largest = largest.max(outcome.largest);
        }
    }
    largest
}

fn transposed(a: &Array2<f64>) -> Array2<f64> {
    a.t().as_standard_layout().into_owned()
}

/// The iteration before, for the adaptive rule.
struct Trial {
    start: Array2<f64>,
    value: f64,
    gradient: Array2<f64>,
    predicted: f64,
}

/// Minimises f + h from a feasible start by variance-reduced Jacobi rounds.
///
/// Every pair minimises `⟨E, G̃_B Zᵀ⟩ + L/2‖E Z‖² + θ/2‖E‖² + h`, which majorises f for the whole matching at
/// once when G̃ = ∇f. With an estimate F need not fall in every iteration; the best point looked
/// at is returned.
///
/// # Errors
/// If the problem, the options or the start are not valid.
#[allow(clippy::too_many_lines)]
pub fn minimize_finite_sum<P: Penalty>(
    sum: &dyn FiniteSum,
    penalty: &P,
    signature: &Signature,
    x0: Array2<f64>,
    options: &FiniteSumOptions,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<FiniteSumSolution> {
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
    if !(options.theta.is_finite() && options.theta >= 0.0) {
        return Err(Error::invalid("theta", "must be finite and nonnegative"));
    }
    if options.look == Some(0) {
        return Err(Error::invalid("look", "must be at least 1"));
    }
    if options.matchings == 0 {
        return Err(Error::invalid("matchings", "must be at least 1"));
    }
    penalty.check(n, r)?;
    let mut page = Page::new(
        sum.components(),
        options.batch,
        options.small_batch,
        options.probability,
    )?;
    let started = Instant::now();
    let safe = sum.curvature();
    let mut bound = options.curvature.unwrap_or_else(|| {
        let noise = (1.0 - page.probability()) / (page.probability() * page.small_batch as f64);
        let noise = if noise > 0.0 {
            noise.sqrt() * sum.mean_square_curvature()
        } else {
            0.0
        };
        safe + noise
    });
    let adaptive = options.rule == CurvatureRule::Adaptive;
    let mut rapidity_bound = options.rapidity_bound;
    let mut accumulated = None;
    match options.rule {
        CurvatureRule::Bound if !bound.is_finite() => {
            return Err(Error::invalid(
                "curvature",
                "must not be \"bound\": the gradient of this objective has no Lipschitz constant",
            ));
        }
        CurvatureRule::Adaptive
            if !page.is_exact() || options.look.is_some_and(|look| look != 1) =>
        {
            return Err(Error::invalid(
                "curvature",
                "must not be \"adaptive\" for a sampled gradient",
            ));
        }
        CurvatureRule::Accumulated { step } => {
            if !(step.is_finite() && step > 0.0) {
                return Err(Error::invalid("step", "must be positive"));
            }
            if !P::SMOOTH {
                return Err(Error::invalid(
                    "curvature",
                    "must not be \"accumulated\" with a penalty",
                ));
            }
            let bound = *rapidity_bound.get_or_insert(ACCUMULATED_RAPIDITY);
            let side = || AccumulatedMoves::new(signature, bound);
            accumulated = Some(([side(), side()], step));
        }
        CurvatureRule::Bound | CurvatureRule::Adaptive => {}
    }
    let mut trial: Option<Trial> = None;
    let (mut latest, mut first) = (f64::INFINITY, f64::INFINITY);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(options.seed);
    let k0 = start_constraint(x0.view(), signature);
    let j = j_matrix(signature);
    if options.side != Side::Rows && !(P::SMOOTH && k0 == j) {
        return Err(Error::invalid(
            "side",
            "must be rows where X is not J-orthogonal or has a penalty",
        ));
    }
    let mut x = x0.as_standard_layout().into_owned();
    let mut previous: Option<Array2<f64>> = None;
    let mut block = Block::new(r);
    block.set_signature(signature, rapidity_bound);
    let mut workers: Vec<Worker> = (0..(n / 2).div_ceil(CHUNK_PAIRS))
        .map(|_| Worker {
            block: block.clone(),
            scratch: Scratch::new(r),
            moved: Vec::new(),
            visited: 0,
            updates: 0,
            change: 0.0,
        })
        .collect();
    let arch = pulp::Arch::new();
    let mut order: Vec<usize> = (0..n).collect();
    let limit = {
        let size = x.iter().map(|v| v * v).sum::<f64>() / n as f64;
        DIVERGENCE * size.max(1.0)
    };
    let feasibility =
        |x: &Array2<f64>| drift(x.view(), signature, k0.view()) + penalty.infeasibility(x.view());
    let mut best = (x.clone(), f64::INFINITY);
    let mut history: Vec<(Record, u64)> = Vec::new();
    let (mut iterations, mut recession) = (0u64, None);
    let components = sum.components() as u64;
    let (mut next_look, mut pass) = (0, Pass::default());
    let status = loop {
        let mut ready = false;
        let due = match options.look {
            Some(look) => iterations % look as u64 == 0,
            None => page.evaluations >= next_look,
        };
        if due {
            next_look = page.evaluations + components;
            let mut value = penalty.value(x.view());
            if page.is_exact() {
                let (smooth, gradient) = sum.value_and_gradient(x.view());
                page.gradient = gradient;
                ready = true;
                value += smooth;
            } else {
                value += sum.value(x.view());
            }
            if let Some(trial) = trial.take() {
                if value - trial.value <= GOOD_SHARE * trial.predicted {
                    bound *= LOWER;
                } else if !(value - trial.value <= FAIR_SHARE * trial.predicted) {
                    bound *= RAISE;
                    (x, value, page.gradient) = (trial.start, trial.value, trial.gradient);
                }
            }
            if let Some((sides, step)) = &mut accumulated
                && !(value <= first)
            {
                // Worse than the start: the step was too long.
                *step *= 0.5;
                sides.iter_mut().for_each(AccumulatedMoves::stop);
                x = best.0.clone();
                value = best.1;
                if page.is_exact() {
                    page.gradient = sum.value_and_gradient(x.view()).1;
                }
                previous = None;
            }
            if iterations == 0 {
                first = value;
            }
            latest = value;
            let size = x.iter().map(|v| v * v).sum::<f64>() / n as f64;
            if !(size <= limit) {
                break Status::Diverged;
            }
            if value < best.1 {
                best = (x.clone(), value);
            }
            let record = Record {
                seconds: started.elapsed().as_secs_f64(),
                objective: best.1,
                feasibility: feasibility(&best.0),
                iterations: visited(&workers, &accumulated),
            };
            history.push((record, page.evaluations));
            if monitor.record(&record, best.0.view()) == Control::Stop
                || monitor.poll() == Control::Stop
            {
                break Status::Interrupted;
            }
            if options.target.is_some_and(|t| best.1 <= t) {
                break Status::Target;
            }
            if pass.ended(page.evaluations, components, iterations, n) {
                let decrease = pass.value - best.1;
                pass.at_rest = if decrease <= options.tol * best.1.abs() {
                    pass.at_rest + 1
                } else {
                    0
                };
                pass.begin(page.evaluations, iterations, best.1);
                if options.tol > 0.0 && pass.at_rest >= PASSES_AT_REST {
                    if accumulated.is_some() {
                        break Status::Converged;
                    }
                    let (_, gradient) = sum.value_and_gradient(best.0.view());
                    let curvature = if safe.is_finite() { safe } else { bound };
                    let left = [Side::Rows, Side::Columns]
                        .into_iter()
                        .filter(|&side| options.side == side || options.side == Side::Both);
                    let left = left.fold(0.0f64, |left, side| {
                        let turn = |a: &Array2<f64>| {
                            if side == Side::Columns {
                                transposed(a)
                            } else {
                                a.clone()
                            }
                        };
                        let (x, gradient) = (turn(&best.0), turn(&gradient));
                        left.max(largest_decrease(
                            penalty,
                            x.view(),
                            gradient.view(),
                            curvature,
                            &workers[0],
                        ))
                    });
                    if left <= options.tol * best.1.abs() {
                        page.evaluations += components;
                        break Status::Converged;
                    }
                    pass.at_rest = 0;
                    page.make_exact();
                    page.gradient = gradient;
                    (x, latest, ready) = (best.0.clone(), best.1, true);
                }
            } else if iterations == 0 {
                pass.value = best.1;
            }
        }
        if options
            .max_time
            .is_some_and(|t| started.elapsed().as_secs_f64() >= t)
        {
            break Status::MaxTime;
        }
        if options
            .max_evaluations
            .is_some_and(|m| page.evaluations >= m)
        {
            break Status::MaxSweeps;
        }
        if ready {
            page.evaluations += components;
        } else {
            page.update(sum, x.view(), previous.as_ref().map(|p| p.view()), &mut rng);
        }
        if adaptive && iterations == 0 && options.curvature.is_none() {
            let norm = |a: &Array2<f64>| a.iter().map(|v| v * v).sum::<f64>().sqrt();
            bound = norm(&page.gradient) / norm(&x).max(f64::MIN_POSITIVE);
        }
        order.shuffle(&mut rng);
        if let Some((sides, step)) = &mut accumulated {
            let start = x.clone();
            let tournament = (order.as_slice(), options.matchings);
            let spent = options
                .max_time
                .map_or(0.0, |t| started.elapsed().as_secs_f64() / t)
                .max(
                    options
                        .max_evaluations
                        .map_or(0.0, |m| page.evaluations as f64 / m as f64),
                );
            let length = (*step * (1.0 - spent), options.theta);
            // VXW: V moves the rows of X and Wᵀ those of I, one core each.
            let [rows, columns] = sides;
            let mut jobs: Vec<(&mut AccumulatedMoves, Array2<f64>)> = Vec::with_capacity(2);
            if options.side != Side::Columns {
                rows.observe(start.view(), page.gradient.view());
                jobs.push((rows, x));
            }
            if options.side != Side::Rows {
                columns.observe(start.t(), page.gradient.t());
                jobs.push((columns, Array2::eye(n)));
            }
            let rotations = options.side == Side::Both;
            let work = n * n * options.matchings.min(n);
            threads.for_chunks(&mut jobs, 1, work, |k, job| {
                let (moves, target) = &mut job[0];
                moves.turn(target, tournament, length, rotations && k == 0);
            });
            let mut moved = jobs.into_iter().map(|(_, target)| target);
            x = match (moved.next(), moved.next()) {
                (Some(rows), Some(columns)) => rows.dot(&columns.t()),
                (Some(columns), None) if options.side == Side::Columns => start.dot(&columns.t()),
                (rows, _) => rows.unwrap_or_else(|| start.clone()),
            };
            previous = Some(start);
            iterations += 1;
            if iterations % REPAIR_EVERY == 0 {
                x = repair_dense(&x, signature, k0.view());
            }
            continue;
        }
        // A move of columns is one of the rows of Xᵀ.
        let columns = columns_turn(options.side, iterations);
        let turned = |a: &Array2<f64>| if columns { transposed(a) } else { a.clone() };
        let start = std::mem::take(&mut x);
        let anchor = turned(&start);
        let gradient = turned(&page.gradient);
        let mut moving = anchor.clone();
        for worker in &mut workers {
            worker.change = 0.0;
        }
        for round in 0..options.matchings.min(n + n % 2 - 1) {
            let pairs = matching(&order, round);
            let (point, anchor, gradient) = (moving.view(), anchor.view(), gradient.view());
            let work = pairs.len() * r * 64;
            threads.for_chunks(&mut workers, 1, work, |piece, worker| {
                let worker = &mut worker[0];
                worker.moved.clear();
                let from = (piece * CHUNK_PAIRS).min(pairs.len());
                let to = (from + CHUNK_PAIRS).min(pairs.len());
                for pair in &pairs[from..to] {
                    worker.visited += 1;
                    worker.block.load(point, &pair[..1], &pair[1..]);
                    worker
                        .block
                        .curvature_mut()
                        .copy_from_slice(&[bound, 0.0, 0.0, bound]);
                    for (k, &row) in pair.iter().enumerate() {
                        // Of the model around the start of the iteration, at the rows as they are now.
                        worker
                            .block
                            .gradient_row_mut(k)
                            .iter_mut()
                            .zip(gradient.row(row))
                            .zip(point.row(row).iter().zip(anchor.row(row)))
                            .for_each(|((t, &g), (&x, &a))| *t = g + bound * (x - a));
                    }
                    let outcome = arch.dispatch(Sweep {
                        block: &mut worker.block,
                        pairs: Pairs::Cross,
                        penalty,
                        options: PairOptions {
                            curvature: Curvature::Exact,
                            alpha: options.theta * bound,
                            metric: None,
                        },
                        scratch: &mut worker.scratch,
                    });
                    worker.updates += outcome.updates;
                    worker.change += outcome.change;
                    if outcome.updates > 0 {
                        for (k, &row) in pair.iter().enumerate() {
                            worker.moved.push((row, worker.block.row(k).to_vec()));
                        }
                    }
                    if worker.block.recession().is_some() {
                        break;
                    }
                }
            });
            recession = workers.iter().find_map(|w| w.block.recession());
            if recession.is_some() {
                break;
            }
            for worker in &workers {
                for (row, new) in &worker.moved {
                    moving
                        .row_mut(*row)
                        .iter_mut()
                        .zip(new)
                        .for_each(|(x, &new)| *x = new);
                }
            }
        }
        x = turned(&moving);
        if recession.is_some() {
            break Status::Unbounded;
        }
        if adaptive {
            trial = Some(Trial {
                start: start.clone(),
                value: latest,
                gradient: page.gradient.clone(),
                predicted: workers.iter().map(|w| w.change).sum(),
            });
        }
        previous = Some(start);
        iterations += 1;
        if iterations % REPAIR_EVERY == 0 && P::SMOOTH {
            // The estimate stays an estimate at the point before: a repair is a step of rounding size.
            x = repair_dense(&x, signature, k0.view());
        }
    };
    // The last point may be better than the best one looked at.
    let size = x.iter().map(|v| v * v).sum::<f64>() / n as f64;
    if size <= limit {
        let value = sum.value(x.view()) + penalty.value(x.view());
        if value < best.1 {
            best = (x, value);
        }
    }
    let smooth_value = sum.value(best.0.view());
    let penalty_value = penalty.value(best.0.view());
    let visited = visited(&workers, &accumulated);
    let last = Record {
        seconds: started.elapsed().as_secs_f64(),
        objective: smooth_value + penalty_value,
        feasibility: feasibility(&best.0),
        iterations: visited,
    };
    history.push((last, page.evaluations));
    Ok(FiniteSumSolution {
        feasibility: last.feasibility,
        objective: last.objective,
        smooth_value,
        penalty_value,
        x: best.0,
        status,
        iterations,
        evaluations: page.evaluations,
        visited,
        updates: workers.iter().map(|w| w.updates).sum::<u64>()
            + accumulated
                .iter()
                .flat_map(|(sides, _)| sides)
                .map(|side| side.updates)
                .sum::<u64>(),
        seconds: last.seconds,
        history,
        recession,
    })
}
