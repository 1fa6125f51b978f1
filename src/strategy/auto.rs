//! The default solver: several starts, the best polished, perturbed while there is time.

use std::time::Instant;

use ndarray::{Array2, s};

use super::board::Board;
use super::options::{Auto, AutoSolution};
use super::path::top_diagonal;
use super::{definite, mixed};
use crate::budget::Clock;
use crate::error::{Error, Result};
use crate::objective::QuadraticForm;
use crate::penalty::Penalty;
use crate::problem::Problem;
use crate::solver::Monitor;
use crate::start;
use crate::threads::Threads;

/// Minimises with several starts on all threads; the best point is returned.
///
/// With a mixed signature `x0` (by default the first r columns of the identity) says what XᵀJX is,
/// and no strategies can be chosen: see the notes in [`strategy`](crate::strategy).
///
/// # Errors
/// If the problem, the options or the shape of `x0` are not valid, f is not quadratic, the signature is all −1, or
/// strategies are given for a mixed one.
pub fn minimize_auto<P: Penalty>(
    problem: &Problem<'_, P>,
    x0: Option<Array2<f64>>,
    auto: &Auto,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<AutoSolution> {
    let started = Instant::now();
    let form = problem.quadratic()?;
    auto.options.check(form.order())?;
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
    let (n, r) = (problem.smooth.rows(), problem.components);
    if auto.starts == Some(0) {
        return Err(Error::invalid("n_starts", "must be at least 1, got 0"));
    }
    let clock = Clock::new(started, auto.options.max_time);
    let first = x0.clone().unwrap_or_else(|| {
        if mixed {
            Array2::eye(n).slice_move(s![.., ..r])
        } else {
            first_point((problem, form), auto.options.seed)
        }
    });
    problem.check_start(first.view())?;
    let mut board = Board::new(problem, auto, &clock, first.clone(), monitor);
    if board.status.is_none() && auto.options.max_sweeps != Some(0) {
        if mixed {
            mixed::search(&mut board, (problem, form), auto, &clock, &first, threads);
        } else {
            definite::search(&mut board, form, x0.as_ref(), threads);
        }
    }
    Ok(board.finish())
}

/// A cheap feasible point: row 0 of the history.
fn first_point<P: Penalty>(
    (problem, form): (&Problem<'_, P>, &dyn QuadraticForm),
    seed: u64,
) -> Array2<f64> {
    let (n, r) = (problem.smooth.rows(), problem.components);
    if problem.penalty.nonnegative() {
        start::partition(n, r, seed)
    } else {
        top_diagonal(form, r)
    }
}
