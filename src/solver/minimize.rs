//! The loop of a solve: the mover of each step, checkpoints, segments, and the end.

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::columns::ColumnMover;
use super::components;
use super::ledger::{Counts, Ledger};
use super::limits::Limits;
use super::monitor::{Monitor, PacedMonitor};
use super::mover::{Mover, Step};
use super::options::Options;
use super::outcome::{Solution, Status};
use super::point::Point;
use super::rows::RowMover;
use super::stages::MoverStages;
use crate::error::{Error, Result};
use crate::limits::Control;
use crate::pair::Recession;
use crate::problem::Problem;
use crate::threads::Threads;
use crate::working_set::WorkingSet;

/// Moves after which all incremental quantities are evaluated anew, if no pass ended before.
pub const CHECKPOINT_UPDATES: u64 = 100_000;

/// Minimises from a feasible start.
///
/// A quadratic form without penalty on the Stiefel manifold is minimised by Riemannian gradient steps and, if
/// these are slow, by trust-region steps, unless the options ask for a working set other than tiles, the
/// Jacobi update, the scalar curvature or columns. For a penalty that is continuous at 0 and favours zeros,
/// proximal steps on the tangent space follow a pass of tiles that gains little. Each such step counts as a
/// sweep, and exact pairs verify convergence.
///
/// A nonquadratic f is majorised: at X_k pairs lower ⟨∇f(X_k), X − X_k⟩ + L/2‖X − X_k‖² + h(X). The step is
/// accepted if F falls, otherwise L rises. If h = 0, most steps are Riemannian gradient steps, and, if f
/// provides [products with its Hessian](crate::Objective::hessian_product) and these get slow, trust-region
/// steps. A trial evaluates one value and gradient, and such a step counts as a sweep. Working sets other
/// than tiles select the papers' algorithm: a value and gradient for every pair, with L the Lipschitz
/// constant of f for the scalar curvature. Of the other options `rapidity_bound`, `verify`, the limits and
/// the seed apply.
///
/// For square X without a quadratic f, or with a linear term and mixed signs, the descent is repeated in the other
/// components of the feasible set, from a reflection of the point where it has converged, and the lower end is returned.
///
/// # Errors
/// If the problem, the options or the start are invalid. All other outcomes are a [`Status`].
///
/// ```
/// use ndarray::{Array2, array};
/// use orthobcd::{Options, Problem, Quadratic, Signature, Threads, Unwatched, minimize, penalty::Penalty};
///
/// let a = array![[3.0, 1.0, 0.1], [1.0, 2.0, 0.2], [0.1, 0.3, 1.0], [0.5, 0.1, 0.2]];
/// let smooth = Quadratic::from_data(a.view())?;
/// let penalty = Penalty::l1(0.5);
/// let signature = Signature::stiefel(3);
/// let problem = Problem::new(&smooth, &penalty, &signature, 2)?;
/// let solution = minimize(
///     &problem, Array2::eye(3).slice_move(ndarray::s![.., ..2]),
///     &Options::default(), &Threads::serial(), &mut Unwatched,
/// )?;
/// assert!(solution.feasibility < 1e-14);
/// assert!(solution.objective < solution.history[0].objective);
/// # Ok::<(), orthobcd::Error>(())
/// ```
pub fn minimize(
    problem: &Problem<'_>,
    x0: Array2<f64>,
    options: &Options,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<Solution> {
    let descend = |x: Array2<f64>, options: &Options, monitor: &mut dyn Monitor| {
        minimize_in_component(problem, x, options, threads, monitor)
    };
    let found = descend(x0, options, monitor)?;
    components::lowest(problem, found, options, threads, monitor, descend)
}

/// Minimises from a start, and stays in its component of the feasible set unless pairs of rows leave it.
fn minimize_in_component(
    problem: &Problem<'_>,
    x0: Array2<f64>,
    options: &Options,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<Solution> {
    let (mut point, mut ledger) = prepare(problem, x0, options, threads)?;
    let known = monitor.checkpoint().and_then(|file| file.group("descent").pop());
    match known {
        Some(Saved::End(solution)) => return Ok(solution),
        Some(Saved::Segment(x, counts)) => {
            ledger.resume(counts);
            point.begin_again(x, ledger.segment);
        }
        None => {}
    }
    loop {
        let columns = ColumnMover::new(&point, options)?;
        let mut slot = None;
        let ended = descend(&mut point, &mut ledger, options, monitor, |point| {
            MoverStages::new(point, options, columns, &mut slot)
        });
        let Some(status) = ended else {
            ledger.begin_segment();
            keep(monitor, || Saved::Segment(point.x.clone(), ledger.counts()));
            point.begin_again(point.x.clone(), ledger.segment);
            continue;
        };
        let solution = finish(point, ledger, status);
        if !matches!(status, Status::Interrupted | Status::MaxTime) {
            keep(monitor, || Saved::End(solution.clone()));
        }
        return Ok(solution);
    }
}

/// A descent in a checkpoint: its result, or X and the counts at the end of a segment.
#[derive(Serialize, Deserialize)]
enum Saved {
    End(Solution),
    Segment(Array2<f64>, Counts),
}

/// Records the state of a descent, if there is a checkpoint, and writes the file if it is time.
fn keep(monitor: &mut dyn Monitor, saved: impl FnOnce() -> Saved) {
    if let Some(file) = monitor.checkpoint() {
        file.replace(&saved());
        if file.is_due() {
            file.save();
        }
    }
}

/// Like [`minimize`], with the caller's mover. The options for rows and columns apply to the passes over all
/// pairs that verify convergence.
///
/// # Errors
/// As [`minimize`].
pub fn minimize_by(
    problem: &Problem<'_>,
    x0: Array2<f64>,
    mover: &mut dyn Mover,
    options: &Options,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<Solution> {
    let (mut point, mut ledger) = prepare(problem, x0, options, threads)?;
    loop {
        let ended = descend(&mut point, &mut ledger, options, monitor, |_| MoverStages::of(mover, options));
        if let Some(status) = ended {
            return Ok(finish(point, ledger, status));
        }
        ledger.begin_segment();
    }
}

/// Checks the arguments of a solve, and returns its first point and the ledger of a solve that begins now. The tolerance is
/// at least the precision of f.
fn prepare<'a>(
    problem: &'a Problem<'a>,
    x0: Array2<f64>,
    options: &Options,
    threads: &'a Threads,
) -> Result<(Point<'a>, Ledger)> {
    options.check(problem.smooth.rows())?;
    problem.check_unlimited()?;
    let x0 = problem.given_start(x0)?;
    if !problem.signature.is_definite() && matches!(options.working_set, WorkingSet::WssSv | WorkingSet::WssOr) {
        return Err(Error::invalid("working_set", "must be random, cyclic or tiled for a mixed signature"));
    }
    if options.block_size != 2 && problem.smooth.quadratic().is_none() {
        let reason = format!("must be 2 where f is not quadratic, got {}", options.block_size);
        return Err(Error::invalid("block_size", reason));
    }
    let precision = problem.smooth.precision();
    let least = if precision > f64::EPSILON { precision } else { 0.0 };
    let sweep = options.pairs_of_sweep(problem.smooth);
    let mut ledger = Ledger::new(sweep, options.tol.max(least));
    let point = Point::new(problem, x0, options.seed, threads)?;
    ledger.evaluation = point.evaluation;
    Ok((point, ledger))
}

/// Returns the moves between checkpoints: at most the number of pairs, if a sweep is longer than that.
fn checkpoint_updates(problem: &Problem<'_>, ledger: &Ledger) -> u64 {
    let pairs = Options::default().pairs_of_sweep(problem.smooth);
    if ledger.sweep > pairs { CHECKPOINT_UPDATES.min(pairs) } else { CHECKPOINT_UPDATES }
}

/// The loop of a segment of a solve; returns the status if the solve ends there. `begin`, which may need the
/// spectrum of f, is called only when there is time for a step.
fn descend<'m>(
    point: &mut Point<'_>,
    ledger: &mut Ledger,
    options: &'m Options,
    monitor: &mut dyn Monitor,
    begin: impl FnOnce(&Point<'_>) -> MoverStages<'m>,
) -> Option<Status> {
    let limits = Limits::from(options);
    let mut watch = PacedMonitor::new(monitor);
    let (mut checked, period) = (0, checkpoint_updates(point.problem, ledger));
    point.evaluate(ledger);
    if ledger.segment == 0 && watch.record(&point.domain, point.x(), ledger) == Control::Stop {
        return Some(Status::Interrupted);
    }
    if let Some(status) = limits.reached_at_once(ledger) {
        return Some(status);
    }
    let mut stages = begin(point);
    if ledger.segment == 0
        && stages.stops_at_recession(point)
        && let Some((recession, visited)) = probe(point)
    {
        ledger.visit(visited, 0.0);
        return Some(follow(recession, point, ledger));
    }
    loop {
        if point.problem.smooth.has_failed() {
            return Some(Status::Interrupted);
        }
        if let Some(status) = limits.reached(ledger) {
            return Some(status);
        }
        if watch.check(point, ledger) == Control::Stop {
            return Some(Status::Interrupted);
        }
        let step = stages.mover().step(point, ledger);
        match step {
            Step::Within => continue,
            Step::Unbounded(recession) => return Some(follow(recession, point, ledger)),
            Step::Ended => return Some(Status::Interrupted),
            Step::Contradiction if point.problem.smooth.has_failed() => continue,
            Step::Contradiction => return Some(contradiction(point)),
            Step::Diverged => return Some(leave(point, ledger)),
            Step::Done | Step::Found | Step::Pass => {}
        }
        if step == Step::Pass || ledger.updates >= checked + period {
            // One evaluation here, and one of the last point.
            if !limits.allows_evaluations(ledger, 2) {
                return Some(Status::MaxTime);
            }
            checked = ledger.updates;
            point.checkpoint(ledger);
            if point.diverges() {
                return Some(leave(point, ledger));
            }
        }
        if step == Step::Found {
            // The visits of a verification are no part of the next pass.
            ledger.end_pass();
            stages.found(point);
        }
        if step == Step::Pass {
            if watch.pass(point, ledger) == Control::Stop {
                return Some(Status::Interrupted);
            }
            let gained = ledger.end_pass();
            if stages.has_converged(gained, ledger, point) {
                return Some(Status::Converged);
            }
            if limits.sweeps_reached(ledger) {
                return Some(Status::MaxSweeps);
            }
            if ledger.ends_segment() {
                return None;
            }
        }
    }
}

/// Moves along a direction in which F falls without bound; returns the status.
fn follow(recession: Recession, point: &mut Point<'_>, ledger: &mut Ledger) -> Status {
    ledger.recession = Some(point.follow_recession(recession, ledger));
    Status::Unbounded
}

/// Returns a pair of rows along which F is unbounded below, and the number of pairs visited; moves nothing.
fn probe(point: &mut Point<'_>) -> Option<(Recession, u64)> {
    point.form?;
    RowMover::all_pairs(point, &Options::default(), true).probe(point)
}

/// Returns a pair of rows along which F is unbounded below at `x`, if f is quadratic and a probe finds one.
pub(crate) fn recession_at(problem: &Problem<'_>, x: &Array2<f64>, threads: &Threads) -> Option<Recession> {
    let mut point = Point::new(problem, x.clone(), 0, threads).ok()?;
    probe(&mut point).map(|(recession, _)| recession)
}

/// Returns the status of iterates that left the bounds: F is unbounded below along a pair, or the infimum is not
/// attained.
fn leave(point: &Point<'_>, ledger: &mut Ledger) -> Status {
    ledger.recession = recession_at(point.problem, &point.x, point.threads);
    match ledger.recession {
        Some(_) => Status::Unbounded,
        None => Status::Diverged,
    }
}

/// Returns the status if no step lowers F although the gradient predicts a decrease: noise in the values of f, or a
/// gradient that is not that of the values.
fn contradiction(point: &Point<'_>) -> Status {
    let (value, gradient) = point.evaluated();
    let problem = point.problem;
    match problem.has_gradient_at(&point.x, (value, &gradient), point.threads) {
        true => Status::Noise,
        false => Status::Contradiction,
    }
}

/// Returns the last point as a result.
fn finish(mut point: Point<'_>, mut ledger: Ledger, status: Status) -> Solution {
    point.follow();
    point.checkpoint(&mut ledger);
    let (values, feasibility) = (point.values(), point.feasibility());
    ledger.close(status, point.into_x(), values, feasibility)
}

#[cfg(test)]
mod tests;
