//! The other components of {XᵀJX = J} for square X.
//!
//! O(n) has two components, of det X = ±1, and O(p, q) has four. Descents along curves stay in one of them, and pairs
//! of rows cross only where a reflection of two rows lowers F. So a descent that has converged is repeated from a
//! reflection of its end in every other component, and the lower end is returned.
//!
//! The reflection is HX, H = I − 2uuᵀ with u on the rows of one sign. To first order f changes by −2uᵀ∇f(X)Xᵀu,
//! which is least for the eigenvector u of the largest eigenvalue of the symmetric part of these rows of ∇f(X)Xᵀ. For
//! a linear f and an X that is optimal in its component HX is optimal in the other one. With a penalty that would
//! lose zeros, and [`Problem::mirrored`] moves one column or two rows.

use ndarray::{Array1, Array2, ArrayView2, Axis};

use super::monitor::Monitor;
use super::options::Options;
use super::outcome::{Record, Solution, Status};
use crate::error::Result;
use crate::limits::Control;
use crate::linalg::{symmetric, symmetric_eigen};
use crate::problem::Problem;
use crate::threads::Threads;

/// A monitor that only interrupts.
pub(crate) struct Silent<'m>(pub(crate) &'m mut dyn Monitor);

impl Monitor for Silent<'_> {
    fn poll(&mut self) -> Control {
        self.0.poll()
    }
}

/// Returns the lowest end: of the descent that `descend` has finished, or of descents in the other components. The
/// other descents share the remaining time, work and sweeps. The status is that of the last descent.
pub(super) fn lowest(
    problem: &Problem<'_>,
    mut found: Solution,
    options: &Options,
    threads: &Threads,
    monitor: &mut dyn Monitor,
    descend: impl Fn(Array2<f64>, &Options, &mut dyn Monitor) -> Result<Solution>,
) -> Result<Solution> {
    for x in others(problem, &found, threads) {
        if !has_ended(&found) {
            break;
        }
        let left = options.left(found.seconds, found.sweeps, found.work as u64);
        let other = descend(x, &left, &mut Silent(monitor))?;
        join(&mut found, other, monitor);
    }
    Ok(found)
}

/// Returns whether a descent ended by itself, at a stationary point or in the noise of f.
fn has_ended(found: &Solution) -> bool {
    matches!(found.status, Status::Converged | Status::Noise)
}

/// Returns whether a descent can end in the wrong component. The pairs of a quadratic form on O(n) are exact: where they
/// end, no reflection of two rows lowers F. A quadratic form without linear term has equal minima in all components.
fn separates(problem: &Problem<'_>) -> bool {
    let form = problem.smooth.quadratic();
    let mixed = !problem.signature.is_definite();
    let directed = form.is_none_or(|form| mixed && form.linear().is_some());
    let square = problem.components == problem.smooth.rows();
    let movable = problem.penalty.is_none() || problem.signature.is_definite();
    square && directed && movable && !problem.rotations
}

/// Returns a start in every other component, near the point where a descent has converged; none if it has not, or if
/// the other components have the same minima.
pub(crate) fn others(problem: &Problem<'_>, found: &Solution, threads: &Threads) -> Vec<Array2<f64>> {
    if !has_ended(found) || !separates(problem) {
        return Vec::new();
    }
    let x = &found.x;
    if !problem.penalty.is_none() {
        return vec![problem.mirrored(x.clone(), threads)];
    }
    let slopes = symmetric(&problem.smooth.gradient(x.view(), threads).dot(&x.t()));
    let sides = [1.0, -1.0].map(|sign| {
        let rows = 0..x.nrows();
        rows.filter(|&i| problem.signature.sign(i) == sign).collect::<Vec<usize>>()
    });
    let mut points = vec![x.clone()];
    for rows in sides.iter().filter(|rows| !rows.is_empty()) {
        let normal = steepest(slopes.view(), rows);
        let mirrored: Vec<Array2<f64>> = points.iter().map(|x| reflected(x, &normal)).collect();
        points.extend(mirrored);
    }
    points.split_off(1)
}

/// Returns the unit vector u on `rows` that maximises uᵀSu.
fn steepest(slopes: ArrayView2<'_, f64>, rows: &[usize]) -> Array1<f64> {
    let part = slopes.select(Axis(0), rows).select(Axis(1), rows);
    let (_, vectors) = symmetric_eigen(part.view());
    let mut u = Array1::zeros(slopes.nrows());
    let top = vectors.column(rows.len() - 1);
    for (&row, &value) in rows.iter().zip(top) {
        u[row] = value;
    }
    u
}

/// Returns (I − 2uuᵀ)X.
fn reflected(x: &Array2<f64>, u: &Array1<f64>) -> Array2<f64> {
    let shares = u.dot(x) * 2.0;
    let mut image = x.clone();
    for (mut row, &u) in image.outer_iter_mut().zip(u) {
        if u != 0.0 {
            row.scaled_add(-u, &shares);
        }
    }
    image
}

/// Adds the counts of another descent, and takes its status, and its end if that is lower; returns whether it is.
pub(crate) fn join(found: &mut Solution, other: Solution, monitor: &mut dyn Monitor) -> bool {
    found.seconds += other.seconds;
    found.work += other.work;
    found.iterations += other.iterations;
    found.sweeps += other.sweeps;
    found.updates += other.updates;
    found.status = other.status;
    if !(other.objective < found.objective) {
        return false;
    }
    found.x = other.x;
    found.objective = other.objective;
    found.smooth_value = other.smooth_value;
    found.penalty_value = other.penalty_value;
    found.feasibility = other.feasibility;
    found.recession = other.recession;
    let record = Record {
        seconds: found.seconds,
        objective: found.objective,
        feasibility: found.feasibility,
        iterations: found.iterations,
    };
    found.history.push(record);
    if monitor.record(&record, found.x.view()) == Control::Stop {
        found.status = Status::Interrupted;
    }
    true
}
