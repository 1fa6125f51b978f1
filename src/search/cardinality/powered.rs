//! A first point from a few products with C, by a truncated power method.

use ndarray::{Array2, Axis};

use crate::limits::TaskWork;
use crate::linalg::orthonormal_factor;
use crate::objective::gradient_work;
use crate::problem::Problem;
use crate::support::{self, Rules, largest_rows, opening::own_part};
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
    let mut taken = rules.included_rows(y.nrows())?;
    let columns: Vec<Vec<f64>> = y.columns().into_iter().map(|y| y.to_vec()).collect();
    let mut first = vec![None; columns.len()];
    for (t, y) in columns.iter().enumerate() {
        let free = (0..y.len()).filter(|&i| !taken[i] && rules.admits(i, t));
        first[t] = free.max_by(|&a, &b| y[a].abs().total_cmp(&y[b].abs()));
        first[t].iter().for_each(|&i| taken[i] = true);
    }
    let mut parts = Vec::with_capacity(columns.len());
    for (t, y) in columns.iter().enumerate() {
        first[t].iter().for_each(|&i| taken[i] = false);
        let part = own_part(rules, t, y, &taken)?;
        part.rows.iter().for_each(|&i| taken[i] = true);
        parts.push(part);
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
