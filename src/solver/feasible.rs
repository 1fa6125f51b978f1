//! Starts for a constraint on entries that the usual ones do not keep.

use ndarray::{Array2, ArrayView2};

use super::{Options, Unwatched, minimize};
use crate::objective::{DenseColumns, GramQuadratic};
use crate::penalty::{Penalty, PiecewiseQuadratic};
use crate::problem::Problem;
use crate::threads::Threads;

/// Passes over all pairs that a start is worth.
const SWEEPS: u64 = 200;

/// X moved into the domain of h, along the constraint: pairs of rows lower the squared distance from it, to zero but for
/// rounding. X itself where h allows it, or where the distance comes to rest above zero.
pub(crate) fn into_domain<P: Penalty>(
    problem: &Problem<'_, P>,
    x: Array2<f64>,
    threads: &Threads,
) -> Array2<f64> {
    if problem.penalty.infeasibility(x.view()) == 0.0 {
        return x;
    }
    let inside = (problem.penalty.squared_distance())
        .and_then(|distance| nearest(problem, &distance, x.view(), threads));
    inside.unwrap_or(x)
}

fn nearest<P: Penalty>(
    problem: &Problem<'_, P>,
    distance: &PiecewiseQuadratic,
    x: ArrayView2<'_, f64>,
    threads: &Threads,
) -> Option<Array2<f64>> {
    let nothing = Array2::zeros((1, x.nrows()));
    let nothing = GramQuadratic::new(DenseColumns::new(nothing.view()).ok()?, 1.0, None).ok()?;
    let problem_of_distance =
        Problem::new(&nothing, distance, problem.signature, problem.components).ok()?;
    let rounding = f64::EPSILON * f64::EPSILON;
    let options = Options::default()
        .with_target(rounding)
        .with_max_sweeps(SWEEPS);
    let start = x.to_owned();
    let end = minimize(
        &problem_of_distance,
        start,
        &options,
        threads,
        &mut Unwatched,
    )
    .ok()?;
    let mut x = end.x;
    for mut row in x.outer_iter_mut() {
        problem.penalty.tidy(row.as_slice_mut()?);
    }
    (end.objective <= rounding).then_some(x)
}
