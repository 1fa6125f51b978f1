//! What comes before a search: a smooth problem is answered, and an f that is not quadratic is lowered once.
//!
//! Smooth problems that need no search are answered by eigenvectors, or the polar factor, in closed form where one decomposition is
//! affordable, else from a Krylov space and the gradient and Newton steps of the solver.
//!
//! A quadratic form without linear term has no local minimum but the global one on the Stiefel manifold.

use ndarray::Array2;

use super::candidate::Candidate;
use super::incumbent::Incumbent;
use super::options::{Auto, Run};
use crate::budget::{Clock, RATE};
use crate::heuristic::{Profile, profile};
use crate::manifold::drift;
use crate::objective::{QuadraticForm, default_work, step_work};
use crate::pool;
use crate::solver::{Options, Quiet, Status, minimize, solution_work};
use crate::start;
use crate::threads::Threads;

/// Name of the heuristic whose exact version this is.
const NAME: &str = "spectral";

/// Products with a block of vectors that a Krylov space takes, in steps.
const KRYLOV_STEPS: f64 = 20.0;

/// All pairs are solved before the answer counts as converged if that takes at most this share of the work that is left.
const VERIFIED: f64 = 0.5;

/// Share of the work that is left for a descent from the first point, and of what is left then for the preparation of
/// a search, where f has a value and a gradient, no more: every step of either is a feasible point at once, or none at all.
const DESCENT: f64 = 0.25;
pub(super) const PREPARATION: f64 = 0.25;

/// Answers a problem without penalty on the Stiefel manifold; returns whether it has.
pub(super) fn answer(
    board: &mut Incumbent<'_>,
    form: &dyn QuadraticForm,
    clock: &Clock,
    threads: &Threads,
) -> bool {
    if !board.problem.penalty.is_none()
        || is_chosen(board.auto)
        || !board.problem.signature.is_definite()
    {
        return false;
    }
    let (problem, r) = (board.problem, board.problem.components);
    let work = work_left(board);
    let go_on = || !clock.expired();
    let known = |_: usize| start::closed_form(form, r, problem.rotations, work, &go_on);
    let found = pool::run(1, 1, clock, known, |_| board.watch(None));
    if let Some((x, work)) = found.into_iter().flatten().flatten().next() {
        take(board, x, (work, true));
        board.profile = Some(Profile {
            optimum: Some(board.best.objective),
            price: board.best.price,
            ..profile(problem)
        });
        board.status = board.status.or(Some(Status::Converged));
        return true;
    }
    if board.status.is_some() || form.linear().is_some() {
        return board.status.is_some();
    }
    let rough = |_: usize| start::rough_spectral(form, r, threads, &go_on);
    let found = pool::run(1, 1, clock, rough, |_| board.watch(None));
    let Some((x, _)) = found.into_iter().flatten().flatten().next() else {
        return board.status.is_some();
    };
    let x = problem.oriented(start::matched(&x, form.metric()), threads);
    let spent = KRYLOV_STEPS * step_work(problem.smooth, r);
    take(board, x.clone(), (spent, false));
    board.profile = Some(profile(problem));
    if board.status.is_none() {
        let status = descend(board, x, (work - spent).max(1.0), true, threads);
        board.status = board.status.or(status);
    }
    true
}

/// Lowers an f that is not quadratic from the first point.
pub(super) fn begin(board: &mut Incumbent<'_>, threads: &Threads) {
    if is_chosen(board.auto) || board.auto.options.max_sweeps.is_some() {
        return;
    }
    let (x, work) = (board.best.x.clone(), DESCENT * work_left(board));
    let status = descend(board, x, work, false, threads);
    let ended = |status: &Status| matches!(status, Status::Interrupted | Status::Target);
    board.status = board.status.or(status.filter(ended));
}

/// Whether the caller says what is to run.
fn is_chosen(auto: &Auto) -> bool {
    auto.strategies.is_some() || auto.plan.is_some() || auto.starts.is_some()
}

/// Work until the limits are reached, or the search without a limit ends.
pub(super) fn work_left(board: &Incumbent<'_>) -> f64 {
    let problem = board.problem;
    let most = match board.auto.options.max_work {
        Some(most) => most as f64,
        None => default_work(problem.smooth, problem.components),
    };
    let timed = board.clock.left().map(|left| left * RATE);
    match timed {
        Some(timed) if board.clock.counts() => most.min(timed),
        Some(timed) => timed,
        None => most,
    }
}

/// Takes note of an orthonormal point, exact or not, that cost so much work.
fn take(board: &mut Incumbent<'_>, x: Array2<f64>, (work, exact): (f64, bool)) {
    let smooth = board.problem.smooth.value(x.view(), &Threads::serial());
    let candidate = Candidate {
        objective: smooth,
        smooth,
        price: 0.0,
        feasibility: drift(x.view(), board.problem.signature, board.k.view()),
        x,
        name: NAME.to_owned(),
        iterations: 0,
        updates: 0,
        settled: exact,
        failed: None,
        error: None,
    };
    report(board, &candidate, (NAME, work));
}

fn report(board: &mut Incumbent<'_>, candidate: &Candidate, (name, work): (&str, f64)) {
    let before = board.best.clone();
    board.runs.push(Run {
        heuristic: name.to_owned(),
        improve: false,
        restricted: false,
        seconds: board.clock.seconds(),
        work,
        objective: candidate.objective,
        gain: (before.objective - candidate.objective).max(0.0),
    });
    board.watch(Some(candidate));
    board.settle(before, std::iter::once(candidate));
}

/// Descends from X by so much work, all pairs being solved before it has converged if there is enough and `verify`;
/// returns why it ended.
fn descend(
    board: &mut Incumbent<'_>,
    x: Array2<f64>,
    work: f64,
    verify: bool,
    threads: &Threads,
) -> Option<Status> {
    let (problem, own) = (board.problem, &board.auto.options);
    let (n, r) = x.dim();
    let pairs = (n * (n - 1) / 2) as f64 * solution_work(problem.penalty, r);
    let options = Options {
        max_time: match board.clock.counts() {
            true => board.clock.left(),
            false => Some(work / RATE),
        },
        max_work: board.clock.counts().then_some(work as u64),
        verify: verify && pairs <= VERIFIED * work,
        ..own.clone()
    };
    match minimize(problem, x, &options, threads, &mut Quiet(board.monitor)) {
        Ok(solution) => {
            let mut candidate = board.best.clone();
            candidate.take(&solution);
            candidate.settled = solution.status == Status::Converged;
            report(board, &candidate, ("polish", solution.work));
            Some(solution.status)
        }
        Err(error) => {
            board.status = Some(Status::Interrupted);
            board.error = Some(error);
            None
        }
    }
}
