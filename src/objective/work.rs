//! Work of evaluations, iterations and searches, in multiply-adds of a product with a stored C.

use super::{Objective, QuadraticForm};
use crate::limits::WORK_UNIT;

/// Work of a multiply-add in a product with a stored C.
const STORED: f64 = 0.4;

/// Work of a multiply-add in a product with a dense A of few rows.
const FACTORED: f64 = 0.6;

/// Work of a multiply-add in a product with a sparse matrix.
const SCATTERED: f64 = 5.0;

/// Number of columns whose work is added to the r columns of X: the overhead of a product.
const COLUMNS: f64 = 8.0;

/// Array size, in numbers, from which memory slows random access.
const NEAR: f64 = 131_072.0;

/// Array size, in numbers, from which memory slows sequential access.
const NEAR_IN_ORDER: f64 = 2_097_152.0;

/// Largest slowdown by memory.
const FARTHEST: f64 = 6.0;

/// Work per entry of writing a column of C to newly allocated memory.
const FILLED: f64 = 15.0;

/// Overhead of a step, which dominates in small problems.
const SMALL_STEP: f64 = 1e4;

/// Work of a step of a full-gradient method per entry of X, besides one multiply-add per entry and column.
const PASSES: f64 = 40.0;

/// Work of the r×r decomposition of a step, in units of r³.
pub(crate) const DECOMPOSITION: f64 = 60.0;

/// Work of all eigenvectors of a matrix of order k, in units of k, k² and k³: measured beside products for
/// orders 20 to 800, accurate to a factor of 1.5.
const EIGEN: [f64; 3] = [1e4, 500.0, 1.0];

/// Largest number of steps of a search with an effort of 1.
const STEPS: f64 = 30_000.0;

/// Least work of a search with an effort of 1, about a tenth of a second.
const LEAST_WORK: f64 = 0.125 * WORK_UNIT;

/// Largest number of calls of an f that is not quadratic, of a search with an effort of 1.
const CALLS: f64 = 5000.0;

/// Work per `WORK_ROWS` rows of a search with an effort of 1, in units of `WORK_UNIT`: 1 to 2 seconds of a 2 GHz core with
/// shared memory, see `benchmarks/scripts/work.py`.
const WORK: f64 = 2.0 * WORK_UNIT;

/// Number of rows that have the work `WORK`; fewer rows have the same work.
const WORK_ROWS: f64 = 1000.0;

/// Largest work of a search with an effort of 1.
const MOST_WORK: f64 = 5.0 * WORK_UNIT;

/// Returns the work of a value and gradient of a general f: a product with a dense n×n matrix.
pub(crate) fn evaluation_work(n: usize, r: usize) -> f64 {
    (n * n * r) as f64
}

/// Returns the work of a product C X with r columns.
fn product_work(form: &dyn QuadraticForm, r: usize) -> f64 {
    let each = match (form.factor(), form.dense()) {
        (Some((_, at)), _) => FACTORED * 2.0 * at.len() as f64,
        (None, Some(c)) => STORED * c.len() as f64,
        (None, None) => SCATTERED * distance(form.samples() * r) * form.product_work(),
    };
    each * (r as f64 + COLUMNS)
}

/// Returns the factor by which memory slows down random access to an array of this size.
fn distance(numbers: usize) -> f64 {
    (numbers as f64 / NEAR).clamp(1.0, FARTHEST)
}

/// Returns the work of a sequential pass over an array of this size.
pub(crate) fn pass_work(numbers: usize) -> f64 {
    let numbers = numbers as f64;
    numbers * (numbers / NEAR_IN_ORDER).clamp(1.0, FARTHEST)
}

/// Returns the work of a gradient: a product C X, or a value and gradient of a general f.
pub(crate) fn gradient_work(smooth: &dyn Objective, r: usize) -> f64 {
    match smooth.quadratic() {
        Some(form) => product_work(form, r),
        None => evaluation_work(smooth.rows(), r) + smooth.call_work(),
    }
}

/// Returns the work of computing a column of C.
pub(crate) fn column_work(form: &dyn QuadraticForm) -> f64 {
    let each = match form.factor() {
        Some(_) => FACTORED * (1.0 + COLUMNS),
        None => SCATTERED,
    };
    each * form.column_work() + FILLED * pass_work(form.order())
}

/// Returns the work of C v for a sparse v, if C is not stored.
pub(crate) fn sparse_product_work(form: &dyn QuadraticForm, nonzeros: usize) -> f64 {
    let each = match form.factor() {
        Some(_) => form.column_work(),
        // Each nonzero of v reads its samples; all of the data are read at most.
        None => SCATTERED * (nonzeros as f64 * form.column_work()).min(form.product_work()),
    };
    each + FILLED * pass_work(form.order())
}

/// Returns the work of a step besides its gradient: passes over X and a decomposition.
pub(crate) fn passes_work(n: usize, r: usize) -> f64 {
    let columns = r as f64;
    let passes = pass_work(n * r) * (PASSES + columns);
    SMALL_STEP + passes + DECOMPOSITION * columns.powi(3)
}

/// Returns the work of all eigenvectors of a symmetric matrix of order k.
pub(crate) fn eigen_work(k: usize) -> f64 {
    let k = k as f64;
    k * (EIGEN[0] + k * (EIGEN[1] + k * EIGEN[2]))
}

/// Returns the work of a step: a gradient, passes over X and a decomposition.
pub(crate) fn step_work(smooth: &dyn Objective, r: usize) -> f64 {
    gradient_work(smooth, r) + passes_work(smooth.rows(), r)
}

/// Returns the work limit, in multiply-adds, of a search for r columns without a limit from the caller.
pub fn default_work(smooth: &dyn Objective, r: usize) -> f64 {
    let most = (WORK * (smooth.rows() as f64 / WORK_ROWS).max(1.0)).min(MOST_WORK);
    let step = step_work(smooth, r);
    match smooth.quadratic() {
        Some(_) => (STEPS * step).clamp(LEAST_WORK, most),
        None => (CALLS * step).min(most),
    }
}
