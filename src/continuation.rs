//! The decreasing-λ path: warm starts from the closed-form optimum of a large λ.
//!
//! At a large λ the optimum of an ℓ0 or ℓ1 problem is known (pick the r rows with the largest −C_ii).
//! λ falls geometrically to the problem's own. Every stage starts from the point of the one before, and
//! ends when a sweep lowers F little. The stages form the regularisation path. An increasing path makes a
//! dense start sparser instead.

use std::time::Instant;

use ndarray::{Array2, ArrayView2};

use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};
use crate::limits::Clock;
use crate::objective::{GoOn, QuadraticForm};
use crate::penalty::Penalty;
use crate::pool;
use crate::problem::Problem;
use crate::solver::{Control, Monitor, Options, Record, Solution, Status, evaluate, minimize, start_within};
use crate::start;
use crate::support;
use crate::threads::Threads;

/// Values of λ of a path, and when the path ends.
///
/// | field | default | meaning |
/// |---|---|---|
/// | `lams` | none | λ (multiples of entrywise weights) in order; by default falling to the problem's own |
/// | `ratio` | 0.6 | factor between default values, inside (0, 1) |
/// | `tol` | 1e-5 | relative decrease of a sweep at which a stage other than the last has converged |
/// | `nonzeros` | none | end at the first point with at least this number of nonzeros |
#[derive(Debug, Clone)]
pub struct Stages<'a> {
    /// Given values of λ.
    pub lams: Option<&'a [f64]>,
    /// Factor between default values.
    pub ratio: f64,
    /// Tolerance of a stage other than the last.
    pub tol: f64,
    /// Number of nonzeros at which the path ends.
    pub nonzeros: Option<usize>,
}

impl Default for Stages<'_> {
    fn default() -> Self {
        Self { lams: None, ratio: 0.6, tol: 1e-5, nonzeros: None }
    }
}

/// One stage of a path.
#[derive(Debug, Clone)]
pub struct PathPoint {
    /// λ of the stage; for entrywise weights, the multiple of them.
    pub lambda: f64,
    /// f + λ-penalty of the stage at its point.
    pub objective: f64,
    /// Number of nonzero entries.
    pub nonzeros: usize,
    /// f(X) relative to ½ tr(C): for PCA the share of the total variance that X explains
    /// (NaN if the trace is 0).
    pub explained_variance: f64,
    /// ‖XᵀX − I‖_F.
    pub feasibility: f64,
    /// The point.
    pub x: Array2<f64>,
    /// Reason why the stage ended.
    pub status: Status,
}

/// Final point and the path to it.
#[derive(Debug, Clone)]
pub struct PathSolution {
    /// Solution for the problem's own λ.
    pub solution: Solution,
    /// Stages in the order in which they were solved.
    pub path: Vec<PathPoint>,
}

/// Returns the r rows with the largest −C_ii as signed unit vectors: optimal for large λ. Columns beyond the
/// n-th are zero.
pub fn top_diagonal(form: &dyn QuadraticForm, r: usize) -> Array2<f64> {
    let mut x = Array2::zeros((form.order(), r));
    for (k, i) in start::top_rows(&form.diagonal(), r).into_iter().enumerate() {
        let downhill = form.linear().is_some_and(|l| l.get([i, k]).is_some_and(|&l| l > 0.0));
        x[[i, k]] = if downhill { -1.0 } else { 1.0 };
    }
    x
}

/// Returns the λ from which on no pair of rows improves the selection of the r rows with the largest −C_ii.
/// For ℓ0 it is the smallest such λ: half the gain of the larger eigenvalue of [[P_ii, P_ij], [P_ij, P_jj]]
/// over P_ii, P = −C. For ℓ1 it is at most 1.21 times the smallest, as ½(vᵀPv − P_ii) ≤ |P_ij| cos θ sin θ
/// while the norm grows by cos θ + sin θ − 1. Costs the r columns of C.
///
/// None if λ is not known (a linear term, a column metric, entrywise weights) or f is not quadratic.
pub fn largest_lambda(problem: &Problem<'_>, threads: &Threads) -> Option<f64> {
    largest_lambda_while(problem, threads, &|| true)
}

/// Returns [`largest_lambda`], or None if `go_on` ends the computation.
pub fn largest_lambda_while(problem: &Problem<'_>, threads: &Threads, go_on: GoOn<'_>) -> Option<f64> {
    let form = problem.smooth.quadratic().filter(|f| f.is_trace_form())?;
    let count = problem.penalty.count().is_some();
    if !count && problem.penalty.absolute().is_none() {
        return None;
    }
    let diagonal = form.diagonal();
    let chosen = start::top_rows(&diagonal, problem.components);
    let mut selection = Array2::zeros((form.order(), chosen.len()));
    for (k, &i) in chosen.iter().enumerate() {
        selection[[i, k]] = 1.0;
    }
    let columns = form.apply_while(selection.view(), threads, go_on)?;
    let mut largest = 0.0f64;
    for (&i, column) in chosen.iter().zip(columns.columns()) {
        for (j, &cross) in column.indexed_iter() {
            if chosen.contains(&j) {
                continue;
            }
            largest = largest.max(match count {
                true => support::gain(diagonal[i], cross, diagonal[j]),
                false => 0.5 * (1.0 + std::f64::consts::SQRT_2) * cross.abs(),
            });
        }
    }
    Some(largest)
}

/// Returns a bound on the λ at which a point other than the selection can change: two rows gain at most
/// ½√(P₁₁P₂₂) from sharing a column, P = high·I − C for `high` at least the largest eigenvalue of C.
fn bound_on_lambda(penalty: &Penalty, form: &dyn QuadraticForm, high: f64) -> f64 {
    let diagonal = form.diagonal();
    let mut sizes: Vec<f64> = diagonal.iter().map(|&v| (high - v).max(0.0)).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    penalty.largest_strength(0.5 * (sizes[0] * sizes[1]).sqrt())
}

/// Returns the default stages: from the first that is at least `top`, by `ratio`, to the problem's own λ.
fn default_stages(lambda: f64, ratio: f64, top: f64) -> Vec<f64> {
    let mut stages = vec![lambda];
    if lambda > 0.0 {
        while stages[stages.len() - 1] < top && stages.len() < 200 {
            stages.push(stages[stages.len() - 1] / ratio);
        }
    }
    stages.reverse();
    stages
}

/// The caller's monitor during a part of a solve.
pub(crate) struct Relay<'m> {
    pub(crate) monitor: &'m mut dyn Monitor,
    /// Seconds at which the part began, and pairs visited before it.
    pub(crate) seconds: f64,
    pub(crate) iterations: u64,
    /// Records with a larger objective are not passed on.
    pub(crate) most: f64,
    /// True once the monitor has stopped the solve.
    pub(crate) stopped: bool,
}

impl Relay<'_> {
    fn heard(&mut self, control: Control) -> Control {
        self.stopped |= control == Control::Stop;
        control
    }
}

impl Monitor for Relay<'_> {
    fn poll(&mut self) -> Control {
        let control = self.monitor.poll();
        self.heard(control)
    }

    fn record(&mut self, record: &Record, x: ArrayView2<'_, f64>) -> Control {
        if !(record.objective <= self.most) {
            return self.poll();
        }
        let record = Record {
            seconds: record.seconds + self.seconds,
            iterations: record.iterations + self.iterations,
            ..*record
        };
        let control = self.monitor.record(&record, x);
        self.heard(control)
    }

    fn stage(&mut self, done: usize, total: Option<usize>) {
        self.monitor.stage(done, total);
    }

    fn working(&mut self, heuristics: &str) {
        self.monitor.working(heuristics);
    }

    fn checkpoint(&mut self) -> Option<&mut Checkpoint> {
        self.monitor.checkpoint()
    }
}

/// Follows a path of an ℓ0 or ℓ1 problem from `x0` (the closed-form optimum of large λ by default).
///
/// Default stages begin at [`largest_lambda`], or at a bound if that is not known or `x0` is given.
/// The problem's λ is solved last if it is not among given ones. Time, work and sweep limits of
/// `options` hold for the whole path. If they (or [`Stages::nonzeros`]) end the path early, the last point
/// reached is returned, valued with the problem's λ.
///
/// # Errors
/// If the penalty is not ℓ0 or ℓ1, `ratio` is not inside (0, 1), a λ is negative or not finite, or
/// anything that [`minimize`] rejects.
pub fn follow_path(
    problem: &Problem<'_>,
    x0: Option<Array2<f64>>,
    stages: &Stages<'_>,
    options: &Options,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<PathSolution> {
    let started = Instant::now();
    let form = problem.smooth.quadratic();
    options.check(problem.smooth.rows())?;
    let lambda = check_stages(problem, stages)?;
    let clock = Clock::new(started, options.max_time);
    let mut ended = None;
    let given = x0.clone();
    let mut prepared = match form {
        Some(form) => prepare((problem, form), x0, stages, threads, &clock, monitor, &mut ended),
        None => unprepared(problem, x0, options.seed, threads),
    };
    if given.is_none() {
        prepared.start = start_within(problem, prepared.start, options.seed, threads, monitor);
    }
    let lams = match stages.lams {
        None => default_stages(lambda, stages.ratio, prepared.top),
        Some(lams) if lams.contains(&lambda) => lams.to_vec(),
        Some(lams) => lams.iter().copied().chain([lambda]).collect(),
    };
    let mut walk = Walk {
        problem,
        form,
        stages,
        options,
        threads,
        started,
        lambda,
        x: prepared.start,
        given,
        total: lams.len(),
        path: Vec::with_capacity(lams.len()),
        answer: None,
        iterations: 0,
        updates: 0,
        sweeps: 0,
        spent: 0,
    };
    for &lam in &lams {
        if ended.is_some() || walk.has_enough() {
            break;
        }
        ended = walk.stage(lam, monitor)?;
    }
    walk.finish(ended)
}

/// Returns λ of the problem, or an error if the stages cannot be followed to it.
fn check_stages(problem: &Problem<'_>, stages: &Stages<'_>) -> Result<f64> {
    let ratio = stages.ratio;
    if !(ratio > 0.0 && ratio < 1.0) {
        return Err(Error::invalid("ratio", format!("must be between 0 and 1, got {ratio}")));
    }
    let Some(lambda) = problem.penalty.strength() else {
        return Err(Error::invalid("solver", "Continuation needs a penalty that draws entries to zero"));
    };
    let own = [lambda];
    let lams = stages.lams.unwrap_or(&own);
    if lams.is_empty() {
        return Err(Error::invalid("lams", "must not be empty"));
    }
    if let Some(bad) = lams.iter().find(|v| !(v.is_finite() && **v >= 0.0)) {
        return Err(Error::invalid("lams", format!("must be finite and nonnegative, got {bad}")));
    }
    if lambda == 0.0 && lams.iter().any(|&v| v > 0.0) {
        return Err(Error::invalid("lams", "must be 0 for a problem whose own lam is 0: there is nothing to rescale"));
    }
    Ok(lambda)
}

/// Start and largest λ of a path.
struct Prepared {
    start: Array2<f64>,
    top: f64,
}

/// Computes the start and the largest λ, and polls the monitor meanwhile; sets `ended` if the computation
/// was not completed.
fn prepare(
    (problem, form): (&Problem<'_>, &dyn QuadraticForm),
    x0: Option<Array2<f64>>,
    stages: &Stages<'_>,
    threads: &Threads,
    clock: &Clock,
    monitor: &mut dyn Monitor,
    ended: &mut Option<Status>,
) -> Prepared {
    let lambda = problem.penalty.strength().unwrap_or(0.0);
    let rising = stages.lams.is_some_and(|lams| {
        let end = match lams.contains(&lambda) {
            true => lams.last().copied(),
            false => Some(lambda),
        };
        lams.first().copied() < end
    });
    let given = x0.is_some();
    let selected = || top_diagonal(form, problem.components);
    if stages.lams.is_some() && (given || !rising) {
        return Prepared { start: x0.unwrap_or_else(selected), top: 0.0 };
    }
    let go_on = || !clock.expired();
    let mut relay = Relay { monitor, seconds: 0.0, iterations: 0, most: f64::INFINITY, stopped: false };
    let made = pool::run(
        1,
        1,
        clock,
        |_| {
            let spectral = match rising && !given {
                true => Some(start::spectral_while(form, problem.components, threads, &go_on)?),
                false => None,
            };
            let known = match stages.lams.is_none() && !given {
                true => largest_lambda_while(problem, threads, &go_on),
                false => None,
            };
            let top = match (stages.lams, known) {
                (Some(_), _) => 0.0,
                (None, Some(top)) => top,
                (None, None) => bound_on_lambda(problem.penalty, form, form.spectrum(&go_on)?.1),
            };
            Some((spectral, top))
        },
        |_| relay.poll(),
    );
    let (spectral, top) = match made.into_iter().flatten().flatten().next() {
        Some(made) => made,
        None => {
            *ended = Some(match relay.stopped {
                true => Status::Interrupted,
                false => Status::MaxTime,
            });
            (None, 0.0)
        }
    };
    Prepared { start: x0.or(spectral).unwrap_or_else(selected), top }
}

/// Returns the start, random by default, and the largest λ for an f that is not quadratic: the λ that
/// outweighs the steepest row, or half of the gain of two rows from sharing a column.
fn unprepared(problem: &Problem<'_>, x0: Option<Array2<f64>>, seed: u64, threads: &Threads) -> Prepared {
    let n = problem.smooth.rows();
    let start = x0.unwrap_or_else(|| start::random(n, problem.components, seed));
    let gradient = problem.smooth.gradient(start.view(), threads);
    let steepest = (gradient.outer_iter()).map(|row| row.dot(&row).sqrt()).fold(0.0, f64::max);
    Prepared { start, top: problem.penalty.largest_strength(steepest) }
}

/// State of a path that is being followed.
struct Walk<'a> {
    problem: &'a Problem<'a>,
    form: Option<&'a dyn QuadraticForm>,
    stages: &'a Stages<'a>,
    options: &'a Options,
    threads: &'a Threads,
    started: Instant,
    lambda: f64,
    x: Array2<f64>,
    /// Given start, if there is one: the result is never worse.
    given: Option<Array2<f64>>,
    total: usize,
    path: Vec<PathPoint>,
    answer: Option<Solution>,
    iterations: u64,
    updates: u64,
    sweeps: u64,
    spent: u64,
}

impl Walk<'_> {
    fn has_enough(&self) -> bool {
        let last = self.path.last().map_or(0, |point| point.nonzeros);
        self.stages.nonzeros.is_some_and(|enough| last >= enough)
    }

    /// Solves the stage at `lam`; returns the reason why the path ends there, if it does.
    fn stage(&mut self, lam: f64, monitor: &mut dyn Monitor) -> Result<Option<Status>> {
        monitor.stage(self.path.len(), self.stages.nonzeros.map_or(Some(self.total), |_| None));
        let own = lam == self.lambda;
        let penalty = match own {
            true => self.problem.penalty.clone(),
            false => {
                let scaled = self.problem.penalty.scaled(lam / self.lambda);
                scaled.ok_or_else(|| {
                    Error::invalid("solver", "Continuation needs a penalty that draws entries to zero")
                })?
            }
        };
        let scaled = Problem { penalty: &penalty, ..*self.problem };
        let elapsed = self.started.elapsed().as_secs_f64();
        let options = self.stage_options(own, elapsed);
        let x = std::mem::take(&mut self.x);
        let mut relay = Relay {
            monitor,
            seconds: elapsed,
            iterations: self.iterations,
            most: if own { f64::INFINITY } else { f64::NEG_INFINITY },
            stopped: false,
        };
        let solution = minimize(&scaled, x, &options, self.threads, &mut relay)?;
        self.x = solution.x.clone();
        self.iterations += solution.iterations;
        self.updates += solution.updates;
        self.sweeps += solution.sweeps.max(1);
        self.spent += solution.work as u64;
        let trace = self.form.map_or(f64::NAN, |form| 0.5 * form.diagonal().iter().sum::<f64>());
        self.path.push(PathPoint {
            lambda: lam,
            objective: solution.objective,
            nonzeros: self.x.iter().filter(|&&v| v != 0.0).count(),
            explained_variance: solution.smooth_value / trace,
            feasibility: solution.feasibility,
            x: self.x.clone(),
            status: solution.status,
        });
        let status = solution.status;
        if own || self.problem.smooth.has_failed() {
            // An f that has failed is not evaluated again: its point counts with the problem's own λ.
            let penalty_value = self.problem.penalty.value(self.x.view());
            self.answer =
                Some(Solution { penalty_value, objective: solution.smooth_value + penalty_value, ..solution });
        }
        let ends = matches!(
            status,
            Status::MaxTime
                | Status::MaxSweeps
                | Status::MaxWork
                | Status::Interrupted
                | Status::Target
                | Status::Contradiction
        );
        Ok(ends.then_some(status))
    }

    fn stage_options(&self, own: bool, elapsed: f64) -> Options {
        let options = self.options;
        let last = self.path.len() + 1 == self.total || self.stages.tol <= options.tol;
        Options {
            tol: match last {
                true => options.tol,
                false => self.stages.tol,
            },
            target: options.target.filter(|_| own),
            verify: options.verify && last,
            ..options.left(elapsed, self.sweeps, self.spent)
        }
    }

    fn finish(mut self, ended: Option<Status>) -> Result<PathSolution> {
        let mut solution = match self.answer.take() {
            Some(solution) => solution,
            // The path ended before the problem's own λ.
            None => evaluate(self.problem, self.x.clone(), self.threads)?,
        };
        if let Some(x0) = &self.given
            && self.problem.objective(x0.view(), self.threads) < solution.objective
        {
            solution = evaluate(self.problem, x0.clone(), self.threads)?;
        }
        let before = self.iterations - solution.iterations.min(self.iterations);
        let seconds = self.started.elapsed().as_secs_f64();
        let offset = (seconds - solution.seconds).max(0.0);
        for record in &mut solution.history {
            record.seconds += offset;
            record.iterations += before;
        }
        solution.iterations = self.iterations;
        solution.updates = self.updates;
        solution.sweeps = self.iterations / self.options.pairs_of_sweep(self.problem.smooth);
        solution.seconds = seconds;
        solution.work = self.spent as f64;
        if let Some(status) = ended {
            solution.status = status;
        }
        Ok(PathSolution { solution, path: self.path })
    }
}
