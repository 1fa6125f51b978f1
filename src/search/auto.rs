//! The default solver: checks the arguments, prepares the problem, and runs the search.

use std::sync::OnceLock;
use std::time::Instant;

use ndarray::{Array2, ArrayView2, s};

use super::answer::{self, take_first_point};
use super::cardinality::minimize_limited;
use super::incumbent::Incumbent;
use super::options::Auto;
use super::rounds::{COLUMNS, Rounds};
use super::sequence::Search;
use crate::continuation::top_diagonal;
use crate::error::{Error, Result};
use crate::heuristic::{Heuristic, Known, Prepared, registry};
use crate::limits::{Clock, TaskWork};
use crate::objective::default_work;
use crate::pool;
use crate::problem::Problem;
use crate::report::AutoSolution;
use crate::solver::{Monitor, Status, start_within};
use crate::start;
use crate::threads::Threads;

/// Minimises F = f + h by a search and returns the incumbent.
///
/// With a mixed signature, `x0` (default: the first r columns of the identity) defines the constraint matrix
/// XᵀJX.
///
/// # Errors
/// If the problem, the options or the shape of `x0` are invalid, a gradient does not match its f, the
/// signature is all −1, or makers are given under a limit, or are unknown names.
pub fn minimize_auto(
    problem: &Problem<'_>,
    x0: Option<Array2<f64>>,
    auto: &Auto,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<AutoSolution> {
    minimize_with(problem, x0, &registry(), auto, threads, monitor)
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
    let started = Instant::now();
    let form = problem.smooth.quadratic();
    check(problem, heuristics, auto)?;
    if let Some(limit) = problem.limit {
        return minimize_limited((problem, limit), x0, auto, threads, monitor);
    }
    let clock = Clock::new(started, auto.options.max_time);
    let first = match &x0 {
        Some(x0) => x0.clone(),
        None => {
            let point = start_point(problem, auto, threads);
            start_within(problem, point, auto.options.seed, threads, monitor)
        }
    };
    let first = problem.given_start(first)?;
    problem.check_start(first.view())?;
    let mut incumbent = Incumbent::new(problem, auto, &clock, first.clone(), monitor);
    if incumbent.status.is_some() || auto.options.max_sweeps == Some(0) {
        return incumbent.finish();
    }
    let axes = OnceLock::new();
    let unit = default_work(problem.smooth, problem.components);
    match form {
        Some(form) if answer::answer(&mut incumbent, form, unit, threads) => {
            return incumbent.finish();
        }
        Some(form) => take_first_point(&mut incumbent, (form, &axes), 0, threads),
        None => answer::begin(&mut incumbent, unit, threads),
    }
    if incumbent.status.is_some() {
        return incumbent.finish();
    }
    let work = TaskWork::ending(&clock, f64::INFINITY, incumbent.end());
    let known = prepared(problem, (&first, x0.as_ref()), threads, &work, &mut incumbent);
    let charged = !clock.expired() && incumbent.charge(work.spent());
    match known {
        Some(known) if charged => {
            let rounds = Rounds::new(problem, heuristics, auto, (&clock, threads), known);
            Search::new(rounds, &mut incumbent, unit).run(&axes);
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
    (first, given): (&Array2<f64>, Option<&Array2<f64>>),
    threads: &Threads,
    work: &'a TaskWork<'a>,
    incumbent: &mut Incumbent<'_>,
) -> Option<Prepared<'a>> {
    let form = problem.smooth.quadratic();
    let mixed = !problem.signature.is_definite();
    let (given, k) = (given.cloned(), incumbent.k.clone());
    let found = pool::run(
        1,
        1,
        work.clock,
        |_| match (form, mixed) {
            (Some(form), true) => Known::mixed((problem, form), first.clone(), k.clone(), work),
            (Some(form), false) => Known::definite((problem, form), given.clone(), COLUMNS, threads, work),
            (None, _) => Known::evaluated(problem, (first, given.clone()), k.clone(), work),
        },
        |_| incumbent.poll(),
    );
    found.into_iter().flatten().flatten().next()
}

fn check(problem: &Problem<'_>, heuristics: &[Box<dyn Heuristic>], auto: &Auto) -> Result<()> {
    auto.options.check_search(problem.smooth.rows())?;
    let mixed = !problem.signature.is_definite();
    if !mixed && problem.signature.sign(0) < 0.0 {
        return Err(Error::invalid("signature", "must not be all -1 for Auto"));
    }
    if problem.limit.is_some() && auto.makers.is_some() {
        return Err(Error::invalid("makers", "must not be given under a limit on nonzeros or rows"));
    }
    let known = |name: &str| name == "given" || heuristics.iter().any(|h| h.name() == name);
    let unknown = auto.makers.iter().flatten().find(|name| !known(name));
    if let Some(unknown) = unknown {
        let names: Vec<&str> = heuristics.iter().map(|h| h.name()).collect();
        return Err(Error::invalid("makers", format!("must be among {}; got {unknown:?}", names.join(", "))));
    }
    Ok(())
}
