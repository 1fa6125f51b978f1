//! The default solver: what is asked for is checked and prepared, then searched.

use std::time::Instant;

use ndarray::{Array2, ArrayView2, s};

use super::answer;
use super::incumbent::Incumbent;
use super::options::{Auto, AutoSolution};
use super::phases::Search;
use super::plan::Entries;
use super::rounds::{COLUMNS, Rounds};
use crate::budget::{Clock, Meter};
use crate::continuation::top_diagonal;
use crate::error::{Error, Result};
use crate::heuristic::{Heuristic, Known, registry};
use crate::pool;
use crate::problem::Problem;
use crate::solver::{Monitor, Status, start_within};
use crate::start;
use crate::threads::Threads;

/// Minimises by a search; the best point is returned.
///
/// With a mixed signature `x0` (by default the first r columns of the identity) says what XᵀJX is,
/// and no strategies can be chosen.
///
/// # Errors
/// If the problem, the options or the shape of `x0` are not valid, a gradient is not that of its f, the signature is all −1, or strategies
/// are given for a mixed one or are no names of heuristics.
pub fn minimize_auto(
    problem: &Problem<'_>,
    x0: Option<Array2<f64>>,
    auto: &Auto,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<AutoSolution> {
    minimize_with(problem, x0, &registry(), auto, threads, monitor)
}

/// [`minimize_auto`] with heuristics of one's own, beside the [built-in ones](registry) or in place of them.
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
    let mixed = !problem.signature.is_definite();
    check(problem, heuristics, auto)?;
    let clock = Clock::limited(started, auto.options.max_time, auto.options.max_work);
    let (n, r) = (problem.smooth.rows(), problem.components);
    let first = x0.clone().unwrap_or_else(|| match mixed {
        true => Array2::eye(n).slice_move(s![.., ..r]),
        false if problem.penalty.nonnegative() => {
            let allowed = |x: ArrayView2<'_, f64>| problem.penalty.infeasibility(x) == 0.0;
            let spread = start::partition_within((n, r), auto.options.seed, allowed);
            let single = form.map(|form| top_diagonal(form, r));
            let value = |x: &Array2<f64>| {
                problem.smooth.value(x.view(), threads) + problem.penalty.value(x.view())
            };
            (single.filter(|x| allowed(x.view()) && value(x) < value(&spread))).unwrap_or(spread)
        }
        false => match form {
            Some(form) => top_diagonal(form, r),
            None => start::random(n, r, auto.options.seed),
        },
    });
    let first = match x0 {
        Some(_) => first,
        None => start_within(problem, first, auto.options.seed, threads, monitor),
    };
    problem.check_start(first.view())?;
    let mut board = Incumbent::new(problem, auto, &clock, first.clone(), monitor);
    if board.status.is_some() || auto.options.max_sweeps == Some(0) {
        return board.finish();
    }
    if let Some(form) = form
        && answer::answer(&mut board, form, &clock, threads)
    {
        return board.finish();
    }
    let units = match form {
        Some(_) => f64::INFINITY,
        None => {
            answer::begin(&mut board, threads);
            answer::PREPARATION * answer::work_left(&board) / clock.rate()
        }
    };
    if board.status.is_some() {
        return board.finish();
    }
    let meter = Meter::new(&clock, units);
    let (given, k) = (x0.clone(), board.k.clone());
    let prepared = pool::run(
        1,
        1,
        &clock,
        |_| match (form, mixed) {
            (Some(form), true) => Known::mixed((problem, form), first.clone(), k.clone(), &meter),
            (Some(form), false) => {
                Known::definite((problem, form), given.clone(), COLUMNS, threads, &meter)
            }
            (None, _) => Known::evaluated(problem, (&first, given.clone()), k.clone(), &meter),
        },
        |_| board.watch(None),
    );
    board.prepared = meter.spent();
    match prepared.into_iter().flatten().flatten().next() {
        Some(prepared) => {
            let rounds = Rounds::new(
                problem,
                heuristics,
                &auto.options,
                (&clock, threads),
                prepared,
            );
            Search::new(rounds, &mut board, auto).run();
        }
        // Nothing can be compared: products overflow.
        None if board.status.is_none() && !clock.expired() => {
            board.status = Some(Status::MaxWork);
        }
        None => {}
    }
    board.finish()
}

fn check(problem: &Problem<'_>, heuristics: &[Box<dyn Heuristic>], auto: &Auto) -> Result<()> {
    auto.options.check(problem.smooth.rows())?;
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
