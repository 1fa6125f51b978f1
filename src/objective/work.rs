//! What evaluations, steps and searches count for, in multiply-adds of a product with a stored C.

use super::{Objective, QuadraticForm};
use crate::budget::RATE;

/// What a multiply-add costs with a sparse matrix or one of tall factors, and in passes over n×r matrices.
const SCATTERED: f64 = 4.0;
const PASS: f64 = 8.0;

/// Passes over n×r matrices in a step of a full-gradient method, and the cost of an r×r
/// decomposition in units of r³.
const STEP_PASSES: f64 = 12.0;
const DECOMPOSITION: f64 = 60.0;

/// Work of a search without any limit: steps, and at most so much with few rows, per thousand rows of more, and in all.
const STEPS: f64 = 12_000.0;
const WORK: f64 = 1.5 * RATE;
const WORK_ROWS: f64 = 1000.0;
const MOST_WORK: f64 = 6.0 * RATE;

/// What one value and gradient counts for, where nothing is known of f: a product with a dense n×n matrix.
pub(crate) fn evaluation_work(n: usize, r: usize) -> f64 {
    (n * n * r) as f64
}

/// What a product C X costs, X with r columns.
fn product_work(form: &dyn QuadraticForm, r: usize) -> f64 {
    let each = form.product_work() * r as f64;
    match form.dense() {
        Some(_) => each,
        None => SCATTERED * each,
    }
}

/// What a gradient costs: a product C X, or a value and gradient.
pub(crate) fn gradient_work(smooth: &dyn Objective, r: usize) -> f64 {
    match smooth.quadratic() {
        Some(form) => product_work(form, r),
        None => evaluation_work(smooth.rows(), r),
    }
}

/// What goes with it in a step: passes over X, and a decomposition.
pub(crate) fn passes_work(n: usize, r: usize) -> f64 {
    let (n, r) = (n as f64, r as f64);
    n * r * (STEP_PASSES + r) * PASS + DECOMPOSITION * r * r * r
}

/// What a step costs: a gradient and what goes with it.
pub(crate) fn step_work(smooth: &dyn Objective, r: usize) -> f64 {
    gradient_work(smooth, r) + passes_work(smooth.rows(), r)
}

/// Multiply-adds of a search for r columns without any limit.
pub fn default_work(smooth: &dyn Objective, r: usize) -> f64 {
    let most = (WORK * (smooth.rows() as f64 / WORK_ROWS).max(1.0)).min(MOST_WORK);
    (STEPS * step_work(smooth, r)).min(most)
}
