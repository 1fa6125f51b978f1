//! The decreasing-λ path: warm starts from the closed-form optimum of a large λ.
//!
//! At a large λ the optimum of an ℓ0 or ℓ1 problem is known (pick the r rows with the largest −C_ii).
//! λ falls geometrically to the problem's own, every stage starting from the last one's point; a
//! stage ends when a sweep brings little. Far better points than the papers' start, and the whole
//! regularisation path with them. An increasing path thins a dense start out instead.

use std::time::Instant;

use ndarray::{Array2, ArrayView2};

use super::workers;
use crate::budget::Clock;
use crate::certificate::top_rows;
use crate::error::{Error, Result};
use crate::objective::{Smooth, require_quadratic};
use crate::penalty::{Form, Penalty, Weights};
use crate::problem::Problem;
use crate::solver::{
    Control, Monitor, Options, Record, Solution, Status, minimize, minimize_counting,
};
use crate::start;
use crate::threads::Threads;

/// Relative decrease of a sweep at which a stage other than the last has converged.
const STAGE_TOLERANCE: f64 = 1e-5;

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
    /// (NaN where that trace is 0).
    pub explained_variance: f64,
    /// The point.
    pub x: Array2<f64>,
    /// Why the stage ended.
    pub status: Status,
}

/// The final point and the path to it.
#[derive(Debug, Clone)]
pub struct PathSolution {
    /// The point for the problem's own λ.
    pub solution: Solution,
    /// Stages in the order in which they were solved.
    pub path: Vec<PathPoint>,
}

/// The r rows with the largest −C_ii as signed unit vectors: optimal for large λ. Columns beyond the
/// n-th are zero.
pub fn top_diagonal(smooth: &dyn Smooth, r: usize) -> Array2<f64> {
    let mut x = Array2::zeros((smooth.rows(), r));
    for (k, i) in top_rows(&smooth.diagonal(), r).into_iter().enumerate() {
        let downhill = smooth
            .linear()
            .is_some_and(|l| l.get([i, k]).is_some_and(|&l| l > 0.0));
        x[[i, k]] = if downhill { -1.0 } else { 1.0 };
    }
    x
}

/// λ of a problem: its weight, or 1 for entrywise weights (a stage's λ multiplies them).
pub(super) fn strength<P: Penalty>(penalty: &P) -> Option<f64> {
    match penalty.form() {
        Form::Count(lambda) => Some(lambda),
        Form::Absolute(Weights::Scalar(lambda)) => Some(*lambda),
        Form::Absolute(Weights::Entrywise(_)) => Some(1.0),
        _ => None,
    }
}

/// The default stages: from the largest λ at which anything can change, by `ratio`, to the
/// problem's own. `high` is (a bound on) the largest eigenvalue of C.
fn default_stages<P: Penalty>(problem: &Problem<'_, P>, ratio: f64, high: f64) -> Vec<f64> {
    let Some(lambda) = strength(problem.penalty) else {
        return Vec::new();
    };
    let mean_weight = match problem.penalty.form() {
        Form::Absolute(Weights::Entrywise(w)) => w.mean().unwrap_or(1.0).max(f64::MIN_POSITIVE),
        _ => 1.0,
    };
    let diagonal = problem.smooth.diagonal();
    let mut sizes: Vec<f64> = diagonal.iter().map(|&v| (high - v).max(0.0)).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    // Two rows gain at most ½√(P₁₁P₂₂) from sharing a column, P = high·I − C.
    let top = 0.5 * (sizes[0] * sizes[1]).sqrt() / mean_weight;
    let mut stages = vec![lambda];
    if lambda > 0.0 {
        while stages[stages.len() - 1] < top && stages.len() < 200 {
            stages.push(stages[stages.len() - 1] / ratio);
        }
    }
    stages.reverse();
    stages
}

/// Passes on the records of the stage of the problem's own λ, with the time and pairs of those before.
struct Last<'a> {
    monitor: &'a mut dyn Monitor,
    seconds: f64,
    iterations: u64,
    own: bool,
}

impl Monitor for Last<'_> {
    fn poll(&mut self) -> Control {
        self.monitor.poll()
    }

    fn record(&mut self, record: &Record, x: ArrayView2<'_, f64>) -> Control {
        if !self.own {
            return Control::Continue;
        }
        let record = Record {
            seconds: record.seconds + self.seconds,
            iterations: record.iterations + self.iterations,
            ..*record
        };
        self.monitor.record(&record, x)
    }
}

/// Follows a path of an ℓ0 or ℓ1 problem from `x0` (the closed-form optimum of large λ by default).
///
/// `stages` are the values of λ in the order in which they are solved (multiples of the weights when
/// they are entrywise); the default falls to the problem's own λ by the factor `ratio`. The
/// problem's λ is solved last if it is not among them. Time and sweep limits of `options` hold
/// for the whole path; should they end it early, the last point reached is returned, valued
/// with the problem's λ.
///
/// # Errors
/// If f is not quadratic, the penalty is not ℓ0 or ℓ1, `ratio` is not inside (0, 1), a λ is negative or not finite, or
/// anything that [`minimize`] rejects.
pub fn follow_path<P: Penalty>(
    problem: &Problem<'_, P>,
    x0: Option<Array2<f64>>,
    stages: Option<&[f64]>,
    ratio: f64,
    options: &Options,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<PathSolution> {
    let clock = Clock::new(Instant::now(), options.max_time);
    problem.check()?;
    require_quadratic(problem.smooth)?;
    options.check(problem.smooth.rows())?;
    if !(ratio > 0.0 && ratio < 1.0) {
        return Err(Error::invalid(
            "ratio",
            format!("must be between 0 and 1, got {ratio}"),
        ));
    }
    let lambda = strength(problem.penalty).ok_or_else(unfit)?;
    let rising = stages.is_some_and(|given| {
        let end = match given.contains(&lambda) {
            true => given.last().copied(),
            false => Some(lambda),
        };
        given.first().copied() < end
    });
    let wanted = (stages.is_none(), rising && x0.is_none());
    let prepared = prepare(problem, wanted, threads, &clock, monitor);
    let ended = prepared.as_ref().err().copied();
    let (high, spectral) = prepared.unwrap_or((0.0, None));
    let stages = match stages {
        None => default_stages(problem, ratio, high),
        Some(stages) => given_stages(stages, lambda)?,
    };
    let x = x0
        .or(spectral)
        .unwrap_or_else(|| top_diagonal(problem.smooth, problem.components));
    let mut walk = Walk {
        problem,
        options,
        threads,
        clock: &clock,
        trace: 0.5 * problem.smooth.diagonal().iter().sum::<f64>(),
        x,
        path: Vec::with_capacity(stages.len()),
        answer: None,
        ended,
        iterations: 0,
        updates: 0,
        sweeps: 0,
        spent: 0,
    };
    for (index, &stage) in stages.iter().enumerate() {
        if walk.ended.is_some() {
            break;
        }
        walk.stage(stage, stage / lambda, index + 1 == stages.len(), monitor)?;
    }
    walk.finish()
}

/// What takes long before the first stage, as far as it is wanted: the largest eigenvalue of C (or 0)
/// and the spectral start. Meanwhile the monitor is asked; else, why there is neither.
fn prepare<P: Penalty>(
    problem: &Problem<'_, P>,
    (eigenvalue, spectral): (bool, bool),
    threads: &Threads,
    clock: &Clock,
    monitor: &mut dyn Monitor,
) -> std::result::Result<(f64, Option<Array2<f64>>), Status> {
    let (smooth, r) = (problem.smooth, problem.components);
    let go_on = || !clock.expired();
    let mut stopped = false;
    let prepared = workers::run(
        1,
        1,
        clock,
        |_| {
            let high = match eigenvalue {
                true => smooth.spectrum_while(&go_on)?.1,
                false => 0.0,
            };
            let start = match spectral {
                true => Some(start::spectral_while(smooth, r, threads, &go_on)?),
                false => None,
            };
            Some((high, start))
        },
        |_| {
            let control = monitor.poll();
            stopped |= control == Control::Stop;
            control
        },
    );
    prepared
        .into_iter()
        .flatten()
        .flatten()
        .next()
        .ok_or(match stopped {
            true => Status::Interrupted,
            false => Status::MaxTime,
        })
}

fn unfit() -> Error {
    Error::invalid("solver", "Path needs an L0 or L1 penalty")
}

/// The stages that were asked for, and the problem's own λ.
fn given_stages(stages: &[f64], lambda: f64) -> Result<Vec<f64>> {
    if stages.is_empty() {
        return Err(Error::invalid("lams", "must not be empty"));
    }
    if let Some(bad) = stages.iter().find(|v| !(v.is_finite() && **v >= 0.0)) {
        return Err(Error::invalid(
            "lams",
            format!("must be finite and nonnegative, got {bad}"),
        ));
    }
    if lambda == 0.0 && stages.iter().any(|&v| v > 0.0) {
        return Err(Error::invalid(
            "lams",
            "must be 0 for a problem whose own lam is 0: there is nothing to rescale",
        ));
    }
    let mut stages = stages.to_vec();
    if !stages.contains(&lambda) {
        stages.push(lambda);
    }
    Ok(stages)
}

/// A path on the way: the last point, and what the stages before have counted.
struct Walk<'a, P: Penalty> {
    problem: &'a Problem<'a, P>,
    options: &'a Options,
    threads: &'a Threads,
    clock: &'a Clock,
    /// ½ tr(C).
    trace: f64,
    x: Array2<f64>,
    path: Vec<PathPoint>,
    answer: Option<Solution>,
    ended: Option<Status>,
    iterations: u64,
    updates: u64,
    sweeps: u64,
    spent: u64,
}

impl<P: Penalty> Walk<'_, P> {
    /// Solves the stage of λ = `stage`, the penalty multiplied by `factor`.
    fn stage(
        &mut self,
        stage: f64,
        factor: f64,
        is_last: bool,
        monitor: &mut dyn Monitor,
    ) -> Result<()> {
        let own = strength(self.problem.penalty) == Some(stage);
        let penalty = match own {
            true => self.problem.penalty.clone(),
            false => self.problem.penalty.scaled(factor).ok_or_else(unfit)?,
        };
        let scaled = Problem {
            smooth: self.problem.smooth,
            penalty: &penalty,
            signature: self.problem.signature,
            components: self.problem.components,
        };
        let options = self.options;
        let elapsed = self.clock.seconds();
        let stage_options = Options {
            tol: if is_last {
                options.tol
            } else {
                options.tol.max(STAGE_TOLERANCE)
            },
            target: options.target.filter(|_| own),
            verify: options.verify && is_last,
            max_time: options.max_time.map(|limit| (limit - elapsed).max(0.0)),
            max_sweeps: options.max_sweeps.map(|v| v.saturating_sub(self.sweeps)),
            max_work: options.max_work.map(|v| v.saturating_sub(self.spent)),
            ..options.clone()
        };
        let mut last = Last {
            monitor: &mut *monitor,
            seconds: elapsed,
            iterations: self.iterations,
            own,
        };
        let x = std::mem::take(&mut self.x);
        let (solution, work) =
            minimize_counting(&scaled, x, &stage_options, self.threads, &mut last)?;
        self.x.clone_from(&solution.x);
        self.iterations += solution.iterations;
        self.updates += solution.updates;
        self.sweeps += solution.sweeps.max(1);
        self.spent += work as u64;
        self.path.push(PathPoint {
            lambda: stage,
            objective: solution.objective,
            nonzeros: self.x.iter().filter(|&&v| v != 0.0).count(),
            explained_variance: solution.smooth_value / self.trace,
            x: self.x.clone(),
            status: solution.status,
        });
        let limits = [
            Status::MaxTime,
            Status::MaxSweeps,
            Status::Interrupted,
            Status::Target,
        ];
        self.ended = Some(solution.status).filter(|status| limits.contains(status));
        if own {
            self.answer = Some(solution);
        }
        Ok(())
    }

    /// The point for the problem's own λ, with the counts of the whole path.
    fn finish(self) -> Result<PathSolution> {
        let mut solution = match self.answer {
            Some(solution) => solution,
            None => {
                // Ended before the problem's own λ was reached: value the point with it. Without a
                // proximal weight that needs no bound of the spectrum.
                let options = Options {
                    max_sweeps: Some(0),
                    alpha: 0.0,
                    ..self.options.clone()
                };
                let unwatched = &mut crate::solver::Unwatched;
                minimize(self.problem, self.x, &options, self.threads, unwatched)?
            }
        };
        let n = self.problem.smooth.rows() as u64;
        let before = self.iterations - solution.iterations.min(self.iterations);
        let seconds = self.clock.seconds();
        let offset = (seconds - solution.seconds).max(0.0);
        for record in &mut solution.history {
            record.seconds += offset;
            record.iterations += before;
        }
        solution.iterations = self.iterations;
        solution.updates = self.updates;
        solution.sweeps = self.iterations / (n * (n - 1) / 2);
        solution.seconds = seconds;
        solution.status = self.ended.unwrap_or(solution.status);
        Ok(PathSolution {
            solution,
            path: self.path,
        })
    }
}
