//! The values of a point, as a solution without a solve.

use std::time::Instant;

use ndarray::Array2;

use super::outcome::{Record, Solution, Status};
use crate::error::Result;
use crate::manifold::{drift, start_constraint};
use crate::problem::Problem;
use crate::threads::Threads;

/// Returns X with its values, as a solution of no sweeps. X need not be feasible: the feasibility says how far it is
/// (for a mixed J from the XᵀJX that a solve from X would keep), and h is infinite where X violates a limit.
///
/// # Errors
/// If X is not n×r or not finite.
///
/// ```
/// use ndarray::{Array2, array};
/// use orthobcd::{Problem, Quadratic, Signature, Threads, evaluate, penalty::Penalty};
///
/// let smooth = Quadratic::new(array![[-3.0, 0.5], [0.5, -1.0]], None, None)?;
/// let (penalty, signature) = (Penalty::l0(0.25), Signature::stiefel(2));
/// let problem = Problem::new(&smooth, &penalty, &signature, 1)?;
/// let at = evaluate(&problem, array![[1.0], [0.0]], &Threads::serial())?;
/// assert_eq!((at.smooth_value, at.penalty_value, at.feasibility), (-1.5, 0.25, 0.0));
/// # Ok::<(), orthobcd::Error>(())
/// ```
pub fn evaluate(problem: &Problem<'_>, x: Array2<f64>, threads: &Threads) -> Result<Solution> {
    let started = Instant::now();
    problem.check_matrix("x", x.view())?;
    let k = match problem.signature.is_definite() {
        true => Array2::eye(problem.components),
        false => start_constraint(x.view(), problem.signature),
    };
    let smooth_value = problem.smooth.value(x.view(), threads);
    let penalty_value = problem.penalty_value(x.view());
    let off = drift(x.view(), problem.signature, k.view()) + problem.infeasibility(x.view());
    let record = Record { seconds: 0.0, objective: smooth_value + penalty_value, feasibility: off, iterations: 0 };
    let seconds = started.elapsed().as_secs_f64();
    Ok(Solution {
        x,
        objective: record.objective,
        smooth_value,
        penalty_value,
        feasibility: off,
        status: Status::MaxSweeps,
        iterations: 0,
        sweeps: 0,
        updates: 0,
        seconds,
        work: 0.0,
        history: vec![record, Record { seconds, ..record }],
        recession: None,
    })
}
