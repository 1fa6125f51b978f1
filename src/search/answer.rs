//! Work before a search: problems with a [known minimiser](known_minimiser) and smooth ones are solved
//! directly, with mixed signs those of a definite pencil, and a nonquadratic f is minimised once from the first point.
//!
//! A problem without penalty is solved by eigenvectors or the polar factor: in closed form if one
//! decomposition is affordable. Otherwise a Krylov space gives a start for the gradient and Newton steps of
//! the solver.
//!
//! On the Stiefel manifold a quadratic form without linear term has no local minimum that is not global.

use std::sync::OnceLock;

use ndarray::Array2;

use super::candidate::Candidate;
use super::first::{POINTS, first_point};
use super::incumbent::Incumbent;
use super::options::Auto;
use crate::certificate::known_minimiser;
use crate::heuristic::{Profile, profile};
use crate::limits::{Clock, RATE, TaskWork};
use crate::linalg::square;
use crate::manifold::{CONSTRAINT_ROUNDING, drift};
use crate::objective::{QuadraticForm, default_work, step_work};
use crate::pool;
use crate::report::Run;
use crate::solver::{Options, Quiet, Side, Status, eigenvalues_of, minimize, solution_work};
use crate::start;
use crate::threads::Threads;

/// Names that reports give to direct solutions: the heuristic `spectral` computes the same point
/// approximately.
const SPECTRAL: &str = "spectral";
const PENCIL: &str = "pencil";
const ASSIGNMENT: &str = "assignment";

/// Number of products of C with a block of vectors charged for a Krylov space.
const KRYLOV_STEPS: f64 = 20.0;

/// A descent verifies all pairs before it converges if the verification takes at most this share of the
/// remaining work.
const VERIFIED: f64 = 0.5;

/// For an f with value and gradient only: share of the remaining work for a descent from the first point, and
/// share of what then remains for the preparation of the search. Every step of the descent yields a feasible
/// point; preparation yields none before its end.
const DESCENT: f64 = 0.25;
pub(super) const PREPARATION: f64 = 0.25;

/// Share of the remaining time after which this descent and the preparation end even if less work was done, as
/// evaluations of f can take longer than their work says.
pub(super) const TIME: f64 = 0.5;

/// Solves a problem without penalty on the Stiefel manifold or of a definite pencil, or with a known minimiser; returns
/// whether the solve is over.
pub(super) fn answer(
    incumbent: &mut Incumbent<'_>,
    form: &dyn QuadraticForm,
    clock: &Clock,
    threads: &Threads,
) -> bool {
    let problem = incumbent.problem;
    if is_chosen(incumbent.auto) {
        return false;
    }
    if !problem.signature.is_definite() {
        return answer_pencil(incumbent, form, clock, threads);
    }
    let work = decomposition_work(incumbent, clock);
    let go_on = || !clock.expired();
    let known = |_: usize| known_minimiser(problem, work, &go_on);
    let found = pool::run(1, 1, clock, known, |_| incumbent.watch(None));
    if let Some((x, work)) = found.into_iter().flatten().flatten().next() {
        let name = match problem.penalty.is_none() {
            true => SPECTRAL,
            false => ASSIGNMENT,
        };
        take(incumbent, x, (name, work), true);
        incumbent.profile = Some(Profile {
            optimum: Some(incumbent.best.objective),
            penalty_share: incumbent.best.penalty,
            ..profile(problem)
        });
        incumbent.status = incumbent.status.or(Some(Status::Converged));
        return true;
    }
    if incumbent.status.is_some() || form.linear().is_some() || !problem.penalty.is_none() {
        return incumbent.status.is_some();
    }
    let rough = |_: usize| start::rough_spectral(form, problem.components, threads, &go_on);
    let found = pool::run(1, 1, clock, rough, |_| incumbent.watch(None));
    let Some((x, _)) = found.into_iter().flatten().flatten().next() else {
        return incumbent.status.is_some();
    };
    let x = problem.oriented(start::matched(&x, form.metric()), threads);
    let spent = KRYLOV_STEPS * step_work(problem.smooth, problem.components);
    take(incumbent, x.clone(), (SPECTRAL, spent), false);
    incumbent.profile = Some(profile(problem));
    if incumbent.status.is_none() {
        let limits = ((work - spent).max(1.0), 1.0);
        let status = descend(incumbent, x, limits, true, threads);
        incumbent.status = incumbent.status.or(status);
    }
    true
}

/// Returns the work left for a decomposition: one that the time limit interrupts yields no point.
fn decomposition_work(incumbent: &Incumbent<'_>, clock: &Clock) -> f64 {
    let timed = clock.left().map_or(f64::INFINITY, |left| left * RATE);
    work_left(incumbent).min(timed)
}

/// Solves ½ tr(XᵀCXW) with mixed signs and C ≻ 0 by its eigenvectors. Where these are not exact to rounding, the
/// J-Jacobi method continues from them.
fn answer_pencil(
    incumbent: &mut Incumbent<'_>,
    form: &dyn QuadraticForm,
    clock: &Clock,
    threads: &Threads,
) -> bool {
    let problem = incumbent.problem;
    if !problem.penalty.is_none() {
        return false;
    }
    let (work, k) = (decomposition_work(incumbent, clock), incumbent.k.clone());
    let go_on = || !clock.expired();
    let known = |_: usize| {
        let (x, drift, spent) =
            start::pencil_minimiser(form, problem.signature, k.view(), work, &go_on)?;
        let (values, diagonal) = eigenvalues_of((problem, form), &x, k.view(), threads);
        let weights = form.trace_weights(problem.components)?;
        let value = 0.5 * values.iter().zip(weights).map(|(v, w)| v * w).sum::<f64>();
        let exact = diagonal && drift <= CONSTRAINT_ROUNDING * square(&x);
        Some((x, spent, (value, drift, exact)))
    };
    let found = pool::run(1, 1, clock, known, |_| incumbent.watch(None));
    let Some((x, spent, (value, drift, exact))) = found.into_iter().flatten().flatten().next()
    else {
        return incumbent.status.is_some();
    };
    let values = (value, 0.0, drift);
    let mut candidate = Candidate::valued(x.clone(), values, PENCIL.to_owned());
    candidate.stationary = exact;
    report(incumbent, &candidate, (PENCIL, spent));
    incumbent.profile = Some(profile(problem));
    if incumbent.status.is_none() {
        let limits = ((work - spent).max(1.0), 1.0);
        let status = match exact {
            true => Some(Status::Converged),
            false => descend(incumbent, x, limits, true, threads),
        };
        incumbent.status = incumbent.status.or(status);
    }
    true
}

/// Takes the [first points](first_point) of a quadratic form, unless the caller chose the heuristics.
pub(super) fn first(incumbent: &mut Incumbent<'_>, form: &dyn QuadraticForm, threads: &Threads) {
    let (problem, clock) = (incumbent.problem, incumbent.clock);
    if is_chosen(incumbent.auto) {
        return;
    }
    let (own, axes) = (profile(problem), OnceLock::new());
    for number in 0..POINTS {
        if incumbent.status.is_some() || clock.expired() {
            return;
        }
        let work = TaskWork::new(clock, f64::INFINITY);
        let best = incumbent.best.x.clone();
        let made = |_: usize| {
            first_point(
                problem,
                (form, &own, &axes),
                (number, &best),
                threads,
                &work,
            )
        };
        let found = pool::run(1, 1, clock, made, |_| incumbent.watch(None));
        if let Some((name, x)) = found.into_iter().flatten().flatten().next() {
            take(incumbent, x, (name, work.spent()), false);
        }
    }
}

/// Minimises a nonquadratic f from the first point.
pub(super) fn begin(incumbent: &mut Incumbent<'_>, threads: &Threads) {
    if is_chosen(incumbent.auto) || incumbent.auto.options.max_sweeps.is_some() {
        return;
    }
    let (x, work) = (incumbent.best.x.clone(), DESCENT * work_left(incumbent));
    let status = descend(incumbent, x, (work, TIME), false, threads);
    let ended = |status: &Status| {
        matches!(
            status,
            Status::Interrupted | Status::Target | Status::Contradiction
        )
    };
    incumbent.status = incumbent.status.or(status.filter(ended));
}

/// Returns whether the caller chose the heuristics, the plan or the number of starts.
fn is_chosen(auto: &Auto) -> bool {
    auto.strategies.is_some() || auto.plan.is_some() || auto.starts.is_some()
}

/// Returns the multiply-adds left until a limit on work is reached, or until the search ends by itself; if the clock
/// guides the search, those that the time left allows.
pub(super) fn work_left(incumbent: &Incumbent<'_>) -> f64 {
    let problem = incumbent.problem;
    let options = &incumbent.auto.options;
    let own = options.patience() * default_work(problem.smooth, problem.components);
    let most = match options.max_work {
        Some(limit) if options.ends_by_itself() => own.min(limit as f64),
        Some(limit) => limit as f64,
        None => own,
    };
    match incumbent.clock.left() {
        Some(left) if !incumbent.clock.counts() => left * RATE,
        _ => most,
    }
}

/// Reports a feasible point and its work; `exact`: the point is optimal.
fn take(incumbent: &mut Incumbent<'_>, x: Array2<f64>, (name, work): (&str, f64), exact: bool) {
    let problem = incumbent.problem;
    let smooth = problem.smooth.value(x.view(), &Threads::serial());
    let penalty = problem.penalty.value(x.view());
    let feasibility = drift(x.view(), problem.signature, incumbent.k.view());
    let mut candidate = Candidate::valued(x, (smooth, penalty, feasibility), name.to_owned());
    candidate.stationary = exact;
    report(incumbent, &candidate, (name, work));
}

fn report(incumbent: &mut Incumbent<'_>, candidate: &Candidate, (name, work): (&str, f64)) {
    let before = incumbent.best.clone();
    incumbent.runs.push(Run {
        heuristic: name.to_owned(),
        improve: false,
        restricted: false,
        seconds: incumbent.clock.seconds(),
        work,
        objective: candidate.objective,
        gain: (before.objective - candidate.objective).max(0.0),
    });
    incumbent.watch(Some(candidate));
    incumbent.accept_round(before, std::iter::once(candidate));
}

/// Descends from X within `work` multiply-adds and a share of the time, and returns the status. With `verify`,
/// all pairs are solved before convergence is reported, if the work suffices.
fn descend(
    incumbent: &mut Incumbent<'_>,
    x: Array2<f64>,
    (work, time): (f64, f64),
    verify: bool,
    threads: &Threads,
) -> Option<Status> {
    let (problem, own) = (incumbent.problem, &incumbent.auto.options);
    let (n, r) = x.dim();
    let pairs = (n * (n - 1) / 2) as f64 * solution_work(problem.penalty, r);
    let options = Options {
        max_time: match incumbent.clock.counts() {
            true => incumbent.clock.left().map(|left| time * left),
            false => Some(work / RATE),
        },
        max_work: incumbent.clock.counts().then_some(work as u64),
        verify: verify && pairs <= VERIFIED * work,
        side: match problem.signature.is_definite() {
            true => own.side,
            false => Side::Both,
        },
        ..own.clone()
    };
    match minimize(problem, x, &options, threads, &mut Quiet(incumbent.monitor)) {
        Ok(solution) => {
            let mut candidate = incumbent.best.clone();
            candidate.take(&solution);
            candidate.noisy = solution.status == Status::Noise;
            candidate.stationary = candidate.noisy || solution.status == Status::Converged;
            report(incumbent, &candidate, ("polish", solution.work));
            Some(solution.status)
        }
        Err(error) => {
            incumbent.status = Some(Status::Interrupted);
            incumbent.error = Some(error);
            None
        }
    }
}
