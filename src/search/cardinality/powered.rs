//! A first point from a few products with C, by a truncated power method.

use ndarray::{Array2, Axis};

use crate::limits::TaskWork;
use crate::linalg::orthonormal_factor;
use crate::objective::gradient_work;
use crate::problem::Problem;
use crate::support::{self, Part, Rules, largest_rows, opening::own_part};
use crate::threads::Threads;

/// Power steps.
const STEPS: usize = 3;

/// Returns the best point of a truncated power method (Yuan and Zhang 2013, Algorithm 1). In each step
/// `truncated` makes a feasible point from the negative gradient.
pub(super) fn powered(
    problem: &Problem<'_>,
    first: Array2<f64>,
    threads: &Threads,
    work: &TaskWork<'_>,
    truncated: impl Fn(&Array2<f64>) -> Option<Array2<f64>>,
) -> Array2<f64> {
    work.spend((1 + STEPS) as f64 * gradient_work(problem.smooth, first.ncols()));
    let mut negative = Array2::zeros(first.dim());
    let mut value = (problem.smooth).value_and_gradient(first.view(), negative.view_mut(), threads);
    let mut best = first;
    for _ in 0..STEPS {
        negative.mapv_inplace(|v: f64| -v);
        let Some(x) = truncated(&negative) else {
            break;
        };
        let own = (problem.smooth).value_and_gradient(x.view(), negative.view_mut(), threads);
        if own < value {
            (best, value) = (x, own);
        }
    }
    best
}

/// Truncates Y to disjoint supports: each column reserves its largest free row, then the columns take the
/// largest entries of the remaining rows, one column after the other.
pub(super) fn on_own_rows(rules: &Rules, y: &Array2<f64>) -> Option<Array2<f64>> {
    let mut parts = vec![Part::default(); y.ncols()];
    for (t, y) in y.columns().into_iter().enumerate() {
        let free = rules.unshared(&parts, t);
        let rows = (0..y.len()).filter(|&i| free[i]);
        parts[t] = rows.max_by(|&a, &b| y[a].abs().total_cmp(&y[b].abs())).map_or(Part::default(), Part::unit);
    }
    for (t, y) in y.columns().into_iter().enumerate() {
        let free = rules.unshared(&parts, t);
        if !rules.included[t].iter().all(|&i| free[i]) {
            return None;
        }
        parts[t] = own_part(rules, t, &y.to_vec(), &free)?;
    }
    let x = support::dense(y.nrows(), &parts);
    rules.keep(&x).then_some(x)
}

/// Returns an orthonormal basis on the `count` rows of largest norm.
pub(super) fn on_rows(count: usize, y: &Array2<f64>) -> Array2<f64> {
    let rows = largest_rows(y, count);
    let basis = orthonormal_factor(y.select(Axis(0), &rows).view());
    support::on_rows(y.nrows(), &rows, basis.view())
}
