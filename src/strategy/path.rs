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
use crate::objective::QuadraticForm;
use crate::penalty::Penalty;
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct PathSolution {
    /// The point for the problem's own λ.
    pub solution: Solution,
    /// Stages in the order in which they were solved.
    pub path: Vec<PathPoint>,
}

/// The r rows with the largest −C_ii as signed unit vectors: optimal for large λ. Columns beyond the
/// n-th are zero.
pub fn top_diagonal(form: &dyn QuadraticForm, r: usize) -> Array2<f64> {
    let mut x = Array2::zeros((form.order(), r));
    for (k, i) in top_rows(&form.diagonal(), r).into_iter().enumerate() {
        let downhill = form
            .linear()
            .is_some_and(|l| l.get([i, k]).is_some_and(|&l| l > 0.0));
        x[[i, k]] = if downhill { -1.0 } else { 1.0 };
    }
    x
}

/// The default stages: from the largest λ at which anything can change, by `ratio`, to the
/// problem's own. `high` is (a bound on) the largest eigenvalue of C.
fn default_stages<P: Penalty>(penalty: &P, diagonal: &[f64], ratio: f64, high: f64) -> Vec<f64> {
    let Some(lambda) = penalty.strength() else {
        return Vec::new();
    };
    let mut sizes: Vec<f64> = diagonal.iter().map(|&v| (high - v).max(0.0)).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    // Two rows gain at most ½√(P₁₁P₂₂) from sharing a column, P = high·I − C.
    let gain = 0.5 * (sizes[0] * sizes[1]).sqrt();
    let top = penalty.largest_strength(gain);
    let mut stages = vec![lambda];
    if lambda > 0.0 {
        while stages[stages.len() - 1] < top && stages.len() < 200 {
            stages.push(stages[stages.len() - 1] / ratio);
        }
    }
    stages.reverse();
    stages
}

/// Passes on what a stage reports, with the time and pairs of the stages before.
struct Stage<'a> {
    monitor: &'a mut dyn Monitor,
    stopped: bool,
}

impl Monitor for Stage<'_> {
    fn poll(&mut self) -> Control {
        let control = self.monitor.poll();
        self.stopped |= control == Control::Stop;
        control
    }
}

/// Passes on the records of the last stage.
struct Last<'a> {
    monitor: &'a mut dyn Monitor,
    seconds: f64,
    iterations: u64,
}

impl Monitor for Last<'_> {
    fn poll(&mut self) -> Control {
        self.monitor.poll()
    }

    fn record(&mut self, record: &Record, x: ArrayView2<'_, f64>) -> Control {
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
    let started = Instant::now();
    let form = problem.quadratic()?;
    options.check(form.order())?;
    if !(ratio > 0.0 && ratio < 1.0) {
        return Err(Error::invalid(
            "ratio",
            format!("must be between 0 and 1, got {ratio}"),
        ));
    }
    let Some(lambda) = problem.penalty.strength() else {
        return Err(Error::invalid("solver", "Path needs an L0 or L1 penalty"));
    };
    let clock = Clock::new(started, options.max_time);
    let rising = stages.is_some_and(|given| {
        let end = match given.contains(&lambda) {
            true => given.last().copied(),
            false => Some(lambda),
        };
        given.first().copied() < end
    });
    let go_on = || !clock.expired();
    // What takes long before the first stage, while the monitor is asked.
    let mut stopped = false;
    let prepared = workers::run(
        1,
        1,
        &clock,
        |_| {
            let high = match stages {
                None => form.spectrum(&go_on)?.1,
                Some(_) => 0.0,
            };
            let spectral = match &x0 {
                None if rising => Some(start::spectral_while(
                    form,
                    problem.components,
                    threads,
                    &go_on,
                )?),
                _ => None,
            };
            Some((high, spectral))
        },
        |_| {
            let control = monitor.poll();
            stopped |= control == Control::Stop;
            control
        },
    );
    let prepared = prepared.into_iter().flatten().flatten().next();
    let (high, spectral) = prepared.clone().unwrap_or((0.0, None));
    let diagonal = form.diagonal();
    let mut stages = match stages {
        None => default_stages(problem.penalty, &diagonal, ratio, high),
        Some([]) => return Err(Error::invalid("lams", "must not be empty")),
        Some(stages) => stages.to_vec(),
    };
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
    if !stages.contains(&lambda) {
        stages.push(lambda);
    }
    let mut x = match x0 {
        Some(x0) => x0,
        None => match spectral {
            Some(x) => x,
            None => top_diagonal(form, problem.components),
        },
    };
    let trace: f64 = 0.5 * diagonal.iter().sum::<f64>();
    let mut path: Vec<PathPoint> = Vec::with_capacity(stages.len());
    let mut answer: Option<Solution> = None;
    let (mut iterations, mut updates, mut sweeps, mut spent) = (0, 0, 0, 0);
    let mut ended = match (&prepared, stopped) {
        (Some(_), _) => None,
        (None, true) => Some(Status::Interrupted),
        (None, false) => Some(Status::MaxTime),
    };
    for (index, &stage) in stages.iter().enumerate() {
        if ended.is_some() {
            break;
        }
        let own = stage == lambda;
        let penalty = match own {
            true => problem.penalty.clone(),
            false => {
                let Some(penalty) = problem.penalty.scaled(stage / lambda) else {
                    return Err(Error::invalid("solver", "Path needs an L0 or L1 penalty"));
                };
                penalty
            }
        };
        let scaled = Problem {
            smooth: problem.smooth,
            penalty: &penalty,
            signature: problem.signature,
            components: problem.components,
        };
        let elapsed = started.elapsed().as_secs_f64();
        let stage_options = Options {
            tol: if index + 1 == stages.len() {
                options.tol
            } else {
                options.tol.max(STAGE_TOLERANCE)
            },
            target: options.target.filter(|_| own),
            verify: options.verify && index + 1 == stages.len(),
            max_time: options.max_time.map(|limit| (limit - elapsed).max(0.0)),
            max_sweeps: options.max_sweeps.map(|limit| limit.saturating_sub(sweeps)),
            max_work: options.max_work.map(|limit| limit.saturating_sub(spent)),
            ..options.clone()
        };
        let (solution, work) = if own {
            let mut last = Last {
                monitor: &mut *monitor,
                seconds: elapsed,
                iterations,
            };
            minimize_counting(&scaled, x, &stage_options, threads, &mut last)?
        } else {
            let mut quiet = Stage {
                monitor: &mut *monitor,
                stopped: false,
            };
            minimize_counting(&scaled, x, &stage_options, threads, &mut quiet)?
        };
        x = solution.x.clone();
        iterations += solution.iterations;
        updates += solution.updates;
        sweeps += solution.sweeps.max(1);
        spent += work as u64;
        path.push(PathPoint {
            lambda: stage,
            objective: solution.objective,
            nonzeros: x.iter().filter(|&&v| v != 0.0).count(),
            explained_variance: solution.smooth_value / trace,
            x: x.clone(),
            status: solution.status,
        });
        let status = solution.status;
        if own {
            answer = Some(solution);
        }
        if matches!(
            status,
            Status::MaxTime | Status::MaxSweeps | Status::Interrupted | Status::Target
        ) {
            ended = Some(status);
        }
    }
    let n = form.order() as u64;
    let pairs = n * (n - 1) / 2;
    let mut solution = match answer {
        Some(solution) => solution,
        None => {
            // Ended before the problem's own λ was reached: value the point with it. Without a
            // proximal weight that needs no bound of the spectrum.
            let options = Options {
                max_sweeps: Some(0),
                proximal: 0.0,
                ..options.clone()
            };
            minimize(problem, x, &options, threads, &mut crate::Unwatched)?
        }
    };
    let before = iterations - solution.iterations.min(iterations);
    let seconds = started.elapsed().as_secs_f64();
    let offset = (seconds - solution.seconds).max(0.0);
    for record in &mut solution.history {
        record.seconds += offset;
        record.iterations += before;
    }
    solution.iterations = iterations;
    solution.updates = updates;
    solution.sweeps = iterations / pairs;
    solution.seconds = seconds;
    if let Some(status) = ended {
        solution.status = status;
    }
    Ok(PathSolution { solution, path })
}
