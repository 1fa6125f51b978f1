//! Conversion of the dense result of a full-gradient method to a feasible point with zeros.

use ndarray::Array2;

use super::Task;
use super::oracle::Oracle;
use super::profile::Kind;
use super::tangent;
use crate::manifold::project_near_support;
use crate::start;

/// Most tangent steps after thresholding.
pub(crate) const TANGENT_STEPS: usize = 300;

/// Thresholds tried for a penalty that counts nonzeros, in units of the smoothing width.
const COUNT_LEVELS: [f64; 6] = [0.0, 1.0, 2.0, 3.0, 4.5, 6.0];

/// Thresholds tried for other sparse penalties, in units of the smoothing width.
const SPARSE_LEVELS: [f64; 5] = [0.0, 1.0, 3.0, 10.0, 30.0];

/// Returns a feasible point near a dense orthonormal X with the zeros of Y.
pub(super) fn feasible_near(oracle: &Oracle<'_>, x: &Array2<f64>, y: &Array2<f64>) -> Option<Array2<f64>> {
    if oracle.problem.penalty.nonnegative() {
        Some(start::round_to_partition(y.view()))
    } else if oracle.problem.penalty.sparsifies() {
        project_near_support(&oracle.manifold, x, y)
    } else {
        Some(x.clone())
    }
}

/// Returns the best feasible point from a dense X over several thresholds.
fn threshold(oracle: &Oracle<'_>, kind: Kind, x: &Array2<f64>, width: f64) -> Array2<f64> {
    let mut best = (f64::INFINITY, x.clone());
    let levels: &[f64] = match kind {
        Kind::Count => &COUNT_LEVELS,
        Kind::Sparse => &SPARSE_LEVELS,
        _ => &[0.0],
    };
    for factor in levels {
        if oracle.work.expired() || (oracle.is_over() && best.0.is_finite()) {
            break;
        }
        let level = factor * width;
        let y = x.mapv(|v| if v.abs() <= level { 0.0 } else { v });
        if let Some(point) = feasible_near(oracle, x, &y) {
            let value = oracle.objective(&point);
            if value < best.0 {
                best = (value, point);
            }
        }
    }
    best.1
}

/// Thresholds the result (X, ε) of a smoothed method and descends by tangent steps.
pub(super) fn sharpened(task: &Task<'_>, (x, width): (Array2<f64>, f64)) -> Array2<f64> {
    let x = threshold(task.oracle, task.profile.kind, &x, width);
    tangent::descend(task.oracle, x, TANGENT_STEPS, task.limit.rest()).x
}
