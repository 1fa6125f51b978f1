//! The default solver: checks the arguments, prepares the problem, and runs the search.

use std::time::Instant;

use ndarray::{Array2, ArrayView2, s};

use super::answer;
use super::incumbent::Incumbent;
use super::options::Auto;
use super::phases::{LANES, Search};
use super::plan::Entries;
use super::rounds::{COLUMNS, Rounds};
use crate::cardinality::minimize_limited;
use crate::continuation::top_diagonal;
use crate::error::{Error, Result};
use crate::heuristic::{Heuristic, Known, Prepared, registry};
use crate::limits::{Clock, RATE, TaskWork};
use crate::objective::default_work;
use crate::pool;
use crate::problem::Problem;
use crate::report::AutoSolution;
use crate::solver::{Monitor, Status, start_within};
use crate::start;
use crate::threads::Threads;

/// Speed of the fastest cores, in units of the [`RATE`] of a common one.
const FASTEST: f64 = 4.0;

/// Minimises F = f + h by a search and returns the incumbent.
///
/// With a mixed signature, `x0` (default: the first r columns of the identity) defines the constraint matrix
/// XᵀJX, and strategies cannot be chosen.
///
/// # Errors
/// If the problem, the options or the shape of `x0` are invalid, a gradient does not match its f, the
/// signature is all −1, or strategies are given for a mixed signature or a limit, or are unknown names.
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
        return minimize_limited((problem, limit), x0, &auto.options, threads, monitor);
    }
    let clock = Clock::with_unit(
        started,
        auto.options.max_time,
        counts(problem, auto, threads),
    );
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
    if let Some(form) = form
        && answer::answer(&mut incumbent, form, &clock, threads)
    {
        return incumbent.finish();
    }
    if let Some(form) = form {
        answer::first(&mut incumbent, form, threads);
    }
    let units = match form {
        Some(_) => f64::INFINITY,
        None => {
            answer::begin(&mut incumbent, threads);
            answer::PREPARATION * answer::work_left(&incumbent) / clock.rate()
        }
    };
    if incumbent.status.is_some() {
        return incumbent.finish();
    }
    let seconds = answer::TIME * clock.left().unwrap_or(f64::INFINITY);
    let work = TaskWork::new(&clock, units).within(seconds);
    let known = prepared(
        problem,
        (&first, x0.as_ref()),
        threads,
        &work,
        &mut incumbent,
    );
    incumbent.prepared = work.spent();
    match known {
        Some(known) => {
            let rounds = Rounds::new(problem, heuristics, &auto.options, (&clock, threads), known);
            Search::new(rounds, &mut incumbent, auto).run();
        }
        // Preparation fails without a stop if products overflow: no points can be compared.
        None if incumbent.status.is_none() && !clock.expired() => {
            incumbent.status = Some(Status::MaxWork);
        }
        None => {}
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
    let value =
        |x: &Array2<f64>| problem.smooth.value(x.view(), threads) + problem.penalty.value(x.view());
    top.filter(|x| allowed(x.view()) && value(x) < value(&spread))
        .unwrap_or(spread)
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
            (Some(form), false) => {
                Known::definite((problem, form), given.clone(), COLUMNS, threads, work)
            }
            (None, _) => Known::evaluated(problem, (first, given.clone()), k.clone(), work),
        },
        |_| incumbent.watch(None),
    );
    found.into_iter().flatten().flatten().next()
}

/// Returns whether work is counted. The clock guides the search, so that every phase gets a share of the time, if the
/// time limit is too short for a search that ends by itself on the fastest cores; or, without such an end, on common
/// ones.
fn counts(problem: &Problem<'_>, auto: &Auto, threads: &Threads) -> bool {
    let options = &auto.options;
    let Some(limit) = options.max_time else {
        return true;
    };
    if options.max_work.is_some() || options.max_sweeps.is_some() {
        return true;
    }
    if !problem.signature.is_definite() {
        return options.ends_by_itself();
    }
    let work = options.patience() * default_work(problem.smooth, problem.components);
    let speed = match options.ends_by_itself() {
        true => FASTEST,
        false => 1.0,
    };
    limit * threads.count().min(LANES) as f64 * speed * RATE >= work
}

fn check(problem: &Problem<'_>, heuristics: &[Box<dyn Heuristic>], auto: &Auto) -> Result<()> {
    auto.options.check_search(problem.smooth.rows())?;
    let mixed = !problem.signature.is_definite();
    if !mixed && problem.signature.sign(0) < 0.0 {
        return Err(Error::invalid("signature", "must not be all -1 for Auto"));
    }
    if mixed && auto.strategies.is_some() {
        return Err(Error::invalid(
            "strategies",
            "must not be given for a mixed signature",
        ));
    }
    let chosen = auto.starts.is_some() || auto.strategies.is_some() || auto.plan.is_some();
    if problem.limit.is_some() && chosen {
        let message = "must not be given, nor a number of starts or a plan, under a limit on nonzeros or rows";
        return Err(Error::invalid("strategies", message));
    }
    if auto.starts == Some(0) {
        return Err(Error::invalid("n_starts", "must be at least 1, got 0"));
    }
    let planned = auto.plan.iter().flat_map(|plan| &plan.phases);
    let planned = planned.flat_map(|phase| match &phase.entries {
        Entries::Named(named) => named.iter().map(|(name, _)| name).collect(),
        _ => Vec::new(),
    });
    let known = |name: &str| name == "given" || heuristics.iter().any(|h| h.name() == name);
    let unknown = auto
        .strategies
        .iter()
        .flatten()
        .chain(planned)
        .find(|name| !known(name));
    if let Some(unknown) = unknown {
        let names: Vec<&str> = heuristics.iter().map(|h| h.name()).collect();
        return Err(Error::invalid(
            "strategies",
            format!("must be among {}; got {unknown:?}", names.join(", ")),
        ));
    }
    Ok(())
}
