//! Work before a search: problems with a [known minimiser](known_minimiser) and smooth ones are solved
//! directly, with mixed signs those of a definite pencil, and a nonquadratic f is minimised once from the first point.
//!
//! A problem without penalty is solved by eigenvectors or the polar factor: in closed form if one
//! decomposition is affordable. Otherwise a Krylov space gives a start for the gradient and Newton steps of
//! the solver.
//!
//! On the Stiefel manifold a quadratic form without linear term has no local minimum that is not global.

use ndarray::Array2;

use super::candidate::Candidate;
use super::first::{first_point, fits};
use super::incumbent::Incumbent;
use super::options::Auto;
use super::tasks::{Tasks, run_one};
use crate::certificate::known_minimiser;
use crate::heuristic::{Kind, Profile, profile};
use crate::limits::TaskWork;
use crate::linalg::square;
use crate::manifold::drift;
use crate::numerics;
use crate::objective::{QuadraticForm, step_work};
use crate::report::Run;
use crate::solver::{Control, Options, Quiet, Side, Status, eigenvalues_of, minimize, solution_work};
use crate::start;
use crate::support::{Axes, ENOUGH};
use crate::threads::Threads;

/// Name that reports give to eigenvectors; the heuristic `spectral` computes the same point approximately.
const SPECTRAL: &str = "spectral";

/// Name that reports give to the eigenvectors of a pencil.
const PENCIL: &str = "pencil";

/// Name that reports give to an assignment.
const ASSIGNMENT: &str = "assignment";

/// Number of products of C with a block of vectors charged for a Krylov space.
const KRYLOV_STEPS: f64 = 20.0;

/// A descent verifies all pairs before it converges if the verification takes at most this share of the
/// remaining work.
const VERIFIED: f64 = 0.5;

/// Order up to which a decomposition comes at once; beyond it a rough point is made first.
const AT_ONCE: usize = 300;

/// First slice of a descent as a part of the work of a default search.
const SLICE: f64 = 1.0 / 128.0;

/// Largest part of the work of a default search for the first point.
const FIRST_POINT: f64 = 1.0 / 8.0;

/// Largest part of the work of a default search for the descent of a nonquadratic f from the first point.
const DESCENT: f64 = 0.05;

/// Solves a problem without penalty on the Stiefel manifold or of a definite pencil, or with a known minimiser; returns
/// whether the solve is over.
pub(super) fn answer(incumbent: &mut Incumbent<'_>, form: &dyn QuadraticForm, unit: f64, threads: &Threads) -> bool {
    let (problem, clock) = (incumbent.problem, incumbent.clock);
    if is_chosen(incumbent.auto) {
        return false;
    }
    if !problem.signature.is_definite() {
        return answer_pencil(incumbent, form, unit, threads);
    }
    let smooth = problem.penalty.is_none();
    let krylov = smooth && form.linear().is_none();
    let rough = |incumbent: &mut Incumbent<'_>| {
        let made = |work: &TaskWork<'_>| {
            work.spend(KRYLOV_STEPS * step_work(problem.smooth, problem.components));
            let (x, _) = start::rough_spectral(form, problem.components, threads, &|| !work.expired())?;
            Some((SPECTRAL, problem.oriented(start::matched(&x, form.metric()), threads)))
        };
        take_one(incumbent, made, false);
    };
    let large = krylov && form.order() > AT_ONCE;
    if large {
        rough(incumbent);
    }
    if incumbent.status.is_some() || clock.expired() {
        return true;
    }
    let known = |work: &TaskWork<'_>| {
        let (x, spent) = known_minimiser(problem, unit, &|| !work.expired())?;
        work.spend(spent);
        Some((if smooth { SPECTRAL } else { ASSIGNMENT }, x))
    };
    let found = take_one(incumbent, known, true).is_some();
    if incumbent.status.is_some() {
        return true;
    }
    if found {
        incumbent.profile = Some(Profile {
            optimum: Some(incumbent.best.objective),
            penalty_share: incumbent.best.penalty,
            ..profile(problem)
        });
        incumbent.status = Some(Status::Converged);
        return true;
    }
    if !krylov {
        return incumbent.status.is_some();
    }
    if !large {
        rough(incumbent);
    }
    incumbent.profile = Some(profile(problem));
    descend(incumbent, unit, unit, true, threads);
    true
}

/// Solves ½ tr(XᵀCXW) with mixed signs and C ≻ 0 by its eigenvectors. Where these are not exact to rounding, the
/// J-Jacobi method continues from them.
fn answer_pencil(incumbent: &mut Incumbent<'_>, form: &dyn QuadraticForm, unit: f64, threads: &Threads) -> bool {
    let problem = incumbent.problem;
    if !problem.penalty.is_none() {
        return false;
    }
    let k = incumbent.k.clone();
    let mut answered = None;
    let known = |_: usize, work: &TaskWork<'_>| {
        let (x, drift, spent) = start::pencil_minimiser(form, problem.signature, k.view(), unit, &|| !work.expired())?;
        work.spend(spent);
        let (values, diagonal) = eigenvalues_of((problem, form), &x, k.view(), threads);
        let weights = form.trace_weights(problem.components)?;
        let value = 0.5 * values.iter().zip(weights).map(|(v, w)| v * w).sum::<f64>();
        let exact = diagonal && drift <= numerics::ROUNDING * square(&x);
        let mut candidate = Candidate::valued(x, (value, 0.0, drift), PENCIL.to_owned());
        candidate.stationary = exact;
        Some(candidate)
    };
    Tasks::new(1, 1).run(incumbent, known, |incumbent, _, (found, work)| {
        let Some(candidate) = found else {
            return Control::Continue;
        };
        answered = Some(candidate.stationary);
        incumbent.profile = Some(profile(problem));
        report(incumbent, candidate, (PENCIL, *work))
    });
    match answered {
        _ if incumbent.status.is_some() => {}
        None => return false,
        Some(true) => incumbent.status = Some(Status::Converged),
        Some(false) => descend(incumbent, unit, unit, true, threads),
    }
    true
}

/// Takes the [first point](first_point) of a quadratic form, unless the caller chose the makers, and returns the axes that it
/// was made from.
pub(super) fn take_first_point<'a>(
    incumbent: &mut Incumbent<'_>,
    form: &'a dyn QuadraticForm,
    unit: f64,
    threads: &Threads,
) -> Option<Axes<'a>> {
    let (problem, clock) = (incumbent.problem, incumbent.clock);
    let own = profile(problem);
    if is_chosen(incumbent.auto) || !fits(problem, form, &own) {
        return None;
    }
    let rough = own.kind == Kind::Nonnegative;
    // A search needs axes in any case, so that only the points have a limit of their own.
    let leading = |work: &TaskWork<'_>| Axes::leading(form, (problem.components, rough), threads, work);
    let axes = run_one(incumbent, 1.0, leading)?;
    let end = incumbent.spent + FIRST_POINT * unit;
    for turned in [false, true] {
        if incumbent.status.is_some() || clock.expired() {
            break;
        }
        let (mut from, mut before) = (None, f64::INFINITY);
        // Rays go on from the point that they led to.
        while from.is_none() || rough {
            let left = end - incumbent.spent;
            let made = |work: &TaskWork<'_>| {
                work.part(left, |work| first_point(problem, (form, &axes), (turned, from.as_ref()), work))
            };
            let Some((x, value)) = take_one(incumbent, made, false) else {
                break;
            };
            if incumbent.status.is_some() || clock.expired() || !(before - value > ENOUGH * value.abs()) {
                break;
            }
            (from, before) = (Some(x), value);
        }
    }
    Some(axes)
}

/// Makes a feasible point on a worker thread and reports it, unless a limit cuts it; `exact`: the point is optimal. Returns
/// the point and F.
fn take_one(
    incumbent: &mut Incumbent<'_>,
    made: impl Fn(&TaskWork<'_>) -> Option<(&'static str, Array2<f64>)> + Sync,
    exact: bool,
) -> Option<(Array2<f64>, f64)> {
    let mut value = f64::NAN;
    let found = Tasks::new(1, 1).run(
        incumbent,
        |_, work| made(work),
        |incumbent, _, (found, work)| match found {
            Some((name, x)) => {
                let candidate = valued(incumbent, x.clone(), name, exact);
                value = candidate.objective;
                report(incumbent, &candidate, (name, *work))
            }
            None => Control::Continue,
        },
    );
    found.into_iter().flatten().next().map(|(_, x)| (x, value))
}

/// Minimises a nonquadratic f from the first point.
pub(super) fn begin(incumbent: &mut Incumbent<'_>, unit: f64, threads: &Threads) {
    if !is_chosen(incumbent.auto) && incumbent.auto.options.max_sweeps.is_none() {
        descend(incumbent, unit, DESCENT * unit, false, threads);
        let ended = |status: &Status| !matches!(status, Status::Converged | Status::Noise);
        incumbent.status = incumbent.status.filter(ended);
    }
}

/// Returns whether the caller chose the makers.
fn is_chosen(auto: &Auto) -> bool {
    auto.makers.is_some()
}

/// Returns a feasible point with its values; `exact`: the point is optimal.
fn valued(incumbent: &Incumbent<'_>, x: Array2<f64>, name: &str, exact: bool) -> Candidate {
    let problem = incumbent.problem;
    let smooth = problem.smooth.value(x.view(), &Threads::serial());
    let penalty = problem.penalty.value(x.view());
    let feasibility = drift(x.view(), problem.signature, incumbent.k.view());
    Candidate { stationary: exact, ..Candidate::valued(x, (smooth, penalty, feasibility), name.to_owned()) }
}

/// Reports a point.
fn report(incumbent: &mut Incumbent<'_>, candidate: &Candidate, (name, work): (&str, f64)) -> Control {
    let run = Run {
        heuristic: name.to_owned(),
        improve: false,
        seconds: incumbent.clock.seconds(),
        work,
        objective: candidate.objective,
        gain: (incumbent.best.objective - candidate.objective).max(0.0),
    };
    incumbent.accept(candidate, run)
}

/// Descends from the incumbent in slices of doubling work, until it rests or `most` work is done. With `verify`, all pairs
/// are solved before convergence is reported, if the work suffices. Sets the status at the end of the search.
pub(super) fn descend(incumbent: &mut Incumbent<'_>, unit: f64, most: f64, verify: bool, threads: &Threads) {
    let problem = incumbent.problem;
    let (n, r) = incumbent.best.x.dim();
    let sweep = (n * (n - 1) / 2).max(1);
    let pairs = sweep as f64 * solution_work(problem.penalty, r);
    let (mut slice, mut spent) = (SLICE * unit, 0.0);
    while incumbent.status.is_none() && !incumbent.clock.expired() && spent < most {
        let own = &incumbent.auto.options;
        let options = Options {
            max_time: incumbent.clock.left(),
            max_work: Some(slice.min(most - spent).min(incumbent.end()) as u64),
            max_sweeps: own.max_sweeps.map(|most| most.saturating_sub(incumbent.iterations / sweep as u64)),
            verify: verify && pairs <= VERIFIED * most,
            side: match problem.signature.is_definite() {
                true => own.side,
                false => Side::Both,
            },
            ..own.clone()
        };
        let from = incumbent.best.x.clone();
        let found = minimize(problem, from, &options, threads, &mut Quiet(incumbent.monitor));
        let solution = match found {
            Ok(solution) => solution,
            Err(error) => {
                incumbent.status = Some(Status::Interrupted);
                incumbent.error = Some(error);
                return;
            }
        };
        let mut candidate = incumbent.best.clone();
        (candidate.iterations, candidate.updates) = (0, 0);
        candidate.take(&solution);
        candidate.noisy = solution.status == Status::Noise;
        candidate.stationary = candidate.noisy || solution.status == Status::Converged;
        let cut = matches!(solution.status, Status::MaxTime | Status::Interrupted);
        // The point before an error of f is kept: no search repeats this one.
        if (cut || incumbent.clock.expired()) && !problem.smooth.has_failed() {
            incumbent.clock.stop();
            incumbent.poll();
            break;
        }
        if !incumbent.charge(solution.work) || report(incumbent, &candidate, ("polish", solution.work)) == Control::Stop
        {
            break;
        }
        spent += solution.work;
        slice *= 2.0;
        if solution.status != Status::MaxWork {
            incumbent.status = incumbent.status.or(Some(solution.status));
        }
    }
    if incumbent.clock.expired() {
        incumbent.status = incumbent.status.or(Some(Status::MaxTime));
    } else if spent >= most && verify {
        incumbent.status = incumbent.status.or(Some(Status::MaxWork));
    }
}
