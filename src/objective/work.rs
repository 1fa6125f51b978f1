//! What evaluations, steps and searches count for, in multiply-adds of a product with a stored C.

use super::{Objective, QuadraticForm};
use crate::budget::RATE;

/// What a multiply-add of a product costs with a stored C, with a dense A of few rows, and with a sparse matrix; a
/// product with r columns takes as long as r of them and these more.
const STORED: f64 = 0.4;
const FACTORED: f64 = 0.6;
const SCATTERED: f64 = 5.0;
const COLUMNS: f64 = 8.0;

/// Sizes of arrays, in numbers, from which memory slows down access in random order and in sequence, and the largest
/// factor by which it does.
const NEAR: f64 = 131_072.0;
const NEAR_IN_ORDER: f64 = 2_097_152.0;
const FARTHEST: f64 = 6.0;

/// Cost per entry of writing a column of C into newly allocated memory.
const FILLED: f64 = 15.0;

/// Overhead of a step, which is all that a step of a small problem costs.
const SMALL_STEP: f64 = 1e4;

/// What the passes over an entry of X, and over one for each of its columns, cost in a step of a full-gradient
/// method; and an r×r decomposition in units of r³.
const PASSES: f64 = 40.0;
const PASS: f64 = 1.0;
const DECOMPOSITION: f64 = 60.0;

/// What all eigenvectors of order k cost, in units of k, k² and k³: measured on orders of 20 to 800, within a factor of
/// 1.5, beside products.
const EIGEN: [f64; 3] = [1e4, 500.0, 1.0];

/// Work of a search without any limit: steps, and at most so much with few rows, per thousand rows of more, and in all.
/// A unit takes one to two seconds of a core at 2 GHz whose memory others use too, see `benchmarks/scripts/work.py`.
const STEPS: f64 = 30_000.0;
const WORK: f64 = 2.0 * RATE;
const WORK_ROWS: f64 = 1000.0;
const MOST_WORK: f64 = 5.0 * RATE;

/// What one value and gradient counts for, where nothing is known of f: a product with a dense n×n matrix.
pub(crate) fn evaluation_work(n: usize, r: usize) -> f64 {
    (n * n * r) as f64
}

/// What a product C X costs, X with r columns.
fn product_work(form: &dyn QuadraticForm, r: usize) -> f64 {
    let each = match (form.factor(), form.dense()) {
        (Some((_, at)), _) => FACTORED * 2.0 * at.len() as f64,
        (None, Some(c)) => STORED * c.len() as f64,
        (None, None) => SCATTERED * distance(form.samples() * r) * form.product_work(),
    };
    each * (r as f64 + COLUMNS)
}

/// The factor by which memory slows down access in random order to an array of this size.
fn distance(numbers: usize) -> f64 {
    (numbers as f64 / NEAR).clamp(1.0, FARTHEST)
}

/// The cost of one sequential pass over an array of this size.
pub(crate) fn pass_work(numbers: usize) -> f64 {
    let numbers = numbers as f64;
    numbers * (numbers / NEAR_IN_ORDER).clamp(1.0, FARTHEST)
}

/// What a gradient costs: a product C X, or a value and gradient.
pub(crate) fn gradient_work(smooth: &dyn Objective, r: usize) -> f64 {
    match smooth.quadratic() {
        Some(form) => product_work(form, r),
        None => evaluation_work(smooth.rows(), r),
    }
}

/// The cost of computing a column of C.
pub(crate) fn column_work(form: &dyn QuadraticForm) -> f64 {
    let each = match form.factor() {
        Some(_) => FACTORED * (1.0 + COLUMNS),
        None => SCATTERED,
    };
    each * form.column_work() + FILLED * pass_work(form.order())
}

/// What goes with it in a step: passes over X, and a decomposition.
pub(crate) fn passes_work(n: usize, r: usize) -> f64 {
    let columns = r as f64;
    let passes = pass_work(n * r) * (PASSES + PASS * columns);
    SMALL_STEP + passes + DECOMPOSITION * columns.powi(3)
}

/// What all eigenvectors of a symmetric matrix of order k cost.
pub(crate) fn eigen_work(k: usize) -> f64 {
    let k = k as f64;
    k * (EIGEN[0] + k * (EIGEN[1] + k * EIGEN[2]))
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
