//! Repair of points that violate bounds on entries.

use ndarray::{Array2, ArrayView2};

use super::minimize::minimize;
use super::monitor::{Monitor, Quiet};
use super::options::Options;
use super::outcome::Solution;
use crate::error::Result;
use crate::numerics;
use crate::objective::{DenseColumns, GramQuadratic};
use crate::penalty::Penalty;
use crate::problem::Problem;
use crate::threads::Threads;

/// Moves X into the domain of h along the constraint: pairs of rows lower the squared distance to zero but
/// for rounding. Returns X unchanged if h allows it, or if the distance converges to a positive value; and
/// the work. Of `options` the limits and the seed apply.
pub(crate) fn into_domain(
    problem: &Problem<'_>,
    mut x: Array2<f64>,
    options: &Options,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> (Array2<f64>, f64) {
    let mut work = 0.0;
    if problem.penalty.infeasibility(x.view()) > numerics::ROUNDING
        && let Some(distance) = problem.penalty.squared_distance()
        && let Ok(end) = nearest(problem, &distance, x.view(), options, threads, monitor)
    {
        work = end.work;
        if problem.penalty.infeasibility(end.x.view()) <= numerics::ROUNDING {
            x = end.x;
        }
    }
    // Entries this near to the domain are moved without correcting XᵀJX.
    if problem.penalty.infeasibility(x.view()) <= numerics::ROUNDING {
        for mut row in x.outer_iter_mut() {
            problem.penalty.tidy(row.as_slice_mut().expect("rows have no gaps"));
        }
    }
    (x, work)
}

/// Moves a default start into the domain of h, with the required determinant.
pub fn start_within(
    problem: &Problem<'_>,
    x: Array2<f64>,
    seed: u64,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Array2<f64> {
    let options = Options::default().with_seed(seed);
    let (inside, _) = into_domain(problem, x, &options, threads, monitor);
    problem.oriented(inside, threads)
}

/// Minimises the squared distance.
fn nearest(
    problem: &Problem<'_>,
    distance: &Penalty,
    x: ArrayView2<'_, f64>,
    options: &Options,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<Solution> {
    let nothing = Array2::zeros((1, x.nrows()));
    let nothing = GramQuadratic::new(DenseColumns::new(nothing.view())?, 1.0, None)?;
    let problem = Problem::new(&nothing, distance, problem.signature, problem.components)?;
    let options = Options {
        max_time: options.max_time,
        max_work: options.max_work,
        seed: options.seed,
        target: Some(f64::EPSILON * f64::EPSILON),
        max_sweeps: Some(numerics::STEPS as u64),
        ..Options::default()
    };
    minimize(&problem, x.to_owned(), &options, threads, &mut Quiet(monitor))
}
