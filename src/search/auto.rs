//! The default solver: checks the arguments, prepares the problem, and runs the search.

use std::time::Instant;

use ndarray::{Array2, ArrayView2, s};

use super::answer::{self, take_first_point};
use super::cardinality::{minimize_limited, start_names};
use super::epochs::Epochs;
use super::incumbent::{Incumbent, Watched};
use super::options::Auto;
use super::reduced::Reduced;
use super::rounds::{COLUMNS, Rounds};
use super::sequence::Sequence;
use super::tasks::run_one;
use crate::certificate::Prover;
use crate::continuation::top_diagonal;
use crate::error::{Error, Result};
use crate::heuristic::{Heuristic, Known, Prepared, Profile, registry};
use crate::limits::{Clock, TaskWork};
use crate::manifold::polar;
use crate::objective::default_work;
use crate::pool;
use crate::problem::Problem;
use crate::report::AutoSolution;
use crate::solver::{Monitor, Status, start_within};
use crate::start;
use crate::support::Axes;
use crate::threads::Threads;

/// Minimises F = f + h by a search and returns the incumbent.
///
/// With a mixed signature, `x0` (default: the first r columns of the identity) defines the constraint matrix
/// XᵀJX.
///
/// # Errors
/// If the problem, the options or the shape of `x0` are invalid, a gradient does not match its f, the
/// signature is all −1, or makers are unknown names.
pub fn minimize_auto(
    problem: &Problem<'_>,
    x0: Option<Array2<f64>>,
    auto: &Auto,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<AutoSolution> {
    minimize_with(problem, x0, &registry(), auto, threads, monitor)
}

/// Like [`minimize_auto`], until the point is proved, with [`Status::Proved`]. Search and bound take the same work, until one
/// of them ends; the limits are those of both together.
///
/// # Errors
/// As [`minimize_auto`].
///
/// ```
/// use ndarray::array;
/// use orthobcd::certificate::{Prover, Restriction};
/// use orthobcd::penalty::Penalty;
/// use orthobcd::search::minimize_proved;
/// use orthobcd::{Auto, Cardinality, Limit, Problem, Quadratic, Signature, Sparsity, Status, Threads, Unwatched};
///
/// let smooth = Quadratic::new(array![[-3.0, 0.5, 0.1], [0.5, -2.0, 0.0], [0.1, 0.0, -1.0]], None, None)?;
/// let (signature, threads) = (Signature::stiefel(3), Threads::serial());
/// let limit = Limit::Entries(Sparsity::new(Cardinality::Total(2)));
/// let problem = Problem::new(&smooth, &Penalty::NONE, &signature, 1)?.with_limit(&limit)?;
/// let restriction = Restriction::of(&problem).expect("a limit");
/// let prover = Prover::new(&problem, &restriction, 1e-3, &threads)?;
/// let found = minimize_proved(&problem, None, prover, &Auto::default(), &threads, &mut Unwatched)?;
/// assert_eq!(found.solution.status, Status::Proved);
/// assert!(found.bound.is_some_and(|bound| bound.gap <= 1e-3 && found.solution.objective >= bound.value));
/// # Ok::<(), orthobcd::Error>(())
/// ```
pub fn minimize_proved(
    problem: &Problem<'_>,
    x0: Option<Array2<f64>>,
    prover: Prover<'_>,
    auto: &Auto,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<AutoSolution> {
    searched(problem, x0, &registry(), auto, threads, (Some(prover), monitor))
}

/// Like [`minimize_auto`], with the caller's heuristics added to the [built-in ones](registry) or in place of
/// them.
///
/// # Errors
/// As [`minimize_auto`].
pub fn minimize_with(
    problem: &Problem<'_>,
    x0: Option<Array2<f64>>,
    heuristics: &[Box<dyn Heuristic>],
    auto: &Auto,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<AutoSolution> {
    searched(problem, x0, heuristics, auto, threads, (None, monitor))
}

/// Searches, and raises the bound of the prover if there is one.
fn searched(
    problem: &Problem<'_>,
    x0: Option<Array2<f64>>,
    heuristics: &[Box<dyn Heuristic>],
    auto: &Auto,
    threads: &Threads,
    (prover, monitor): Watched<'_>,
) -> Result<AutoSolution> {
    let clock = Clock::new(Instant::now(), auto.options.max_time);
    let form = problem.smooth.quadratic();
    check(problem, heuristics, auto)?;
    if let Some(limit) = problem.limit {
        return minimize_limited((problem, limit), x0, (auto, &clock), threads, (prover, monitor));
    }
    let first = match &x0 {
        Some(x0) => x0.clone(),
        None => {
            let point = start_point(problem, auto, threads);
            start_within(problem, point, auto.options.seed, threads, monitor)
        }
    };
    let first = problem.given_start(first)?;
    problem.check_start(first.view())?;
    let mut incumbent = Incumbent::new(problem, auto, &clock, first.clone(), prover, monitor);
    if incumbent.status.is_some() || auto.options.max_sweeps == Some(0) {
        return incumbent.finish();
    }
    let unit = default_work(problem.smooth, problem.components);
    let axes = match form {
        Some(form) if answer::answer(&mut incumbent, form, unit, threads) => {
            return incumbent.finish();
        }
        Some(form) => take_first_point(&mut incumbent, form, unit, threads),
        None => {
            answer::begin(&mut incumbent, unit, threads);
            None
        }
    };
    if incumbent.status.is_some() {
        return incumbent.finish();
    }
    let best = incumbent.best.x.clone();
    let reduced = form.and_then(|form| run_one(&mut incumbent, 1.0, |work| Reduced::new((problem, form), &best, work)));
    if incumbent.is_over() {
        return incumbent.finish();
    }
    let small = reduced.as_ref().map(|reduced| reduced.problem(problem.components));
    let searched = small.as_ref().unwrap_or(problem);
    let on_rows = |x: &Array2<f64>| reduced.as_ref().map_or_else(|| x.clone(), |reduced| reduced.restrict(x));
    let first = on_rows(&first);
    let given = x0.as_ref().map(|x0| if reduced.is_some() { polar(&on_rows(x0)) } else { x0.clone() });
    let axes = axes.as_ref().filter(|_| reduced.is_none());
    let work = TaskWork::ending(&clock, f64::INFINITY, incumbent.end());
    let known = prepared(searched, (&first, given, axes), threads, &work, &mut incumbent);
    let charged = !clock.expired() && incumbent.charge(work.spent());
    match known {
        Some((oracle, known, profile)) if charged => {
            let chosen = reduced.as_ref().map(|reduced| reduced.rows.len());
            incumbent.profile = Some(Profile { rows: problem.smooth.rows(), chosen, ..profile.clone() });
            let problems = (problem, searched, reduced.as_ref());
            let rounds = Rounds::new(problems, heuristics, auto, (&clock, threads), (oracle, known, profile));
            Epochs::begun(rounds, &mut incumbent, unit).run();
        }
        // Preparation fails without a stop if products overflow: no points can be compared.
        None if charged => incumbent.status = incumbent.status.or(Some(Status::MaxWork)),
        _ => {}
    }
    incumbent.finish()
}

/// Returns the first point of a search without `x0`: unit vectors at the largest −C_ii (for X ≥ 0 a partition
/// unless they are better), a random point if f has no C, or columns of the identity for mixed signs.
fn start_point(problem: &Problem<'_>, auto: &Auto, threads: &Threads) -> Array2<f64> {
    let (n, r) = (problem.smooth.rows(), problem.components);
    let form = problem.smooth.quadratic();
    if !problem.signature.is_definite() {
        return Array2::eye(n).slice_move(s![.., ..r]);
    }
    let top = form.map(|form| top_diagonal(form, r));
    if !problem.penalty.nonnegative() {
        return top.unwrap_or_else(|| start::random(n, r, auto.options.seed));
    }
    let allowed = |x: ArrayView2<'_, f64>| problem.penalty.infeasibility(x) == 0.0;
    let spread = start::partition_within((n, r), auto.options.seed, allowed);
    let value = |x: &Array2<f64>| problem.smooth.value(x.view(), threads) + problem.penalty.value(x.view());
    top.filter(|x| allowed(x.view()) && value(x) < value(&spread)).unwrap_or(spread)
}

/// Returns the data shared by all heuristics; None if the preparation was stopped or its products overflow.
fn prepared<'a>(
    problem: &'a Problem<'a>,
    (first, given, axes): (&Array2<f64>, Option<Array2<f64>>, Option<&Axes<'_>>),
    threads: &Threads,
    work: &'a TaskWork<'a>,
    incumbent: &mut Incumbent<'_>,
) -> Option<Prepared<'a>> {
    let form = problem.smooth.quadratic();
    let mixed = !problem.signature.is_definite();
    let k = incumbent.k.clone();
    let found = pool::run(
        1,
        1,
        work.clock,
        |_| match (form, mixed) {
            (Some(form), true) => Known::mixed((problem, form), first.clone(), k.clone(), work),
            (Some(form), false) => Known::definite((problem, form), (given.clone(), axes), COLUMNS, threads, work),
            (None, _) => Known::evaluated(problem, (first, given.clone()), k.clone(), work),
        },
        |_| incumbent.poll(),
    );
    found.into_iter().flatten().flatten().next()
}

/// Returns the names of all makers: the heuristics, the starts under a limit, and the start of the caller.
pub fn makers(heuristics: &[Box<dyn Heuristic>]) -> Vec<&'static str> {
    heuristics.iter().map(|heuristic| heuristic.name()).chain(start_names()).chain(["given"]).collect()
}

fn check(problem: &Problem<'_>, heuristics: &[Box<dyn Heuristic>], auto: &Auto) -> Result<()> {
    auto.options.check_search(problem.smooth.rows())?;
    let mixed = !problem.signature.is_definite();
    if !mixed && problem.signature.sign(0) < 0.0 {
        return Err(Error::invalid("signature", "must not be all -1 for Auto"));
    }
    let names = makers(heuristics);
    let unknown = auto.makers.iter().flatten().find(|maker| !names.contains(&maker.as_str()));
    if let Some(unknown) = unknown {
        return Err(Error::invalid("makers", format!("must be among {}; got {unknown:?}", names.join(", "))));
    }
    Ok(())
}
