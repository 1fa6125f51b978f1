//! Optima that are known: of smooth problems, of square X ≥ 0, and for large λ.
//!
//! A square X ≥ 0 with orthonormal columns is a permutation. Its f = ½ tr(XᵀCXD) + ⟨L, X⟩ with a diagonal D,
//! and every separable h, are sums over the entries 1: `½ D_kk C_ii + L_ik + h_ik(1) − h_ik(0)`. The optimum
//! is a linear assignment.
//!
//! For f = −½⟨X, P X⟩ and h = λ‖X‖₀ or λ‖X‖₁ a signed selection of the r rows with the largest P_ii has
//! the value `λr − ½ Σ_top-r P_ii`. It is optimal if λ exceeds the largest gain by the off-diagonal part.
//! With μ = max |P_ij|, i ≠ j, and a column x of s nonzeros and t = ‖x‖₁
//!
//! ```text
//! ½ xᵀPx ≤ ½ Σ x_i² P_ii + ½ μ (t² − 1),   t² ≤ s,
//! ```
//!
//! and summed over orthonormal columns `Σ_k Σ_i X_ik² P_ii ≤ Σ_top-r P_ii`. So for ℓ0 the value is optimal
//! if `λ ≥ μ/2`. For ℓ1, λt − ½μ(t² − 1) is concave in t and at least λ for 1 ≤ t ≤ T if `λ ≥ ½ μ (T + 1)`.
//! Let T := 1 + (λ_max(P) − P_(r))/(2λ), P_(r) the r-th largest diagonal entry. Columns with t > T cost more
//! than `λ − ½P_(r)` by the spectral bound. T is at most √n.

use ndarray::Array2;

use crate::objective::{GoOn, QuadraticForm, eigen_work};
use crate::problem::Problem;
use crate::rows::PANEL;
use crate::start::{assignment, closed_form, top_rows};
use crate::threads::Threads;

/// Largest n at which all off-diagonal entries are searched.
const SEARCHED_ROWS: usize = 4096;

/// Returns the optimal value of an ℓ0 or ℓ1 problem without linear term and column metric, if λ is large
/// enough for the proof above.
fn large_lambda_optimum(problem: &Problem<'_>, threads: &Threads, go_on: GoOn<'_>) -> Option<f64> {
    let form = problem.smooth.quadratic()?;
    if !form.is_trace_form() {
        return None;
    }
    let count = problem.penalty.count();
    let counts = count.is_some();
    let lambda = count.or(problem.penalty.absolute())?;
    if !(lambda > 0.0) {
        return None;
    }
    let (n, r) = (form.order(), problem.components);
    let diagonal = form.diagonal();
    let top = top_rows(&diagonal, r);
    let value = lambda * r as f64 + 0.5 * top.iter().map(|&i| diagonal[i]).sum::<f64>();
    // The columns of the chosen rows disprove most cases at low cost: no proof allows an entry above
    // 2λ (ℓ0) or λ (ℓ1).
    let most = if counts { 2.0 * lambda } else { lambda };
    if largest_off_diagonal(form, &top, threads, go_on)? > most {
        return None;
    }
    let (low, high) = form.spectrum(go_on)?;
    let limit = if counts {
        most
    } else {
        let spread = (diagonal[top[r - 1]] - low).max(0.0);
        let reach = (1.0 + spread / (2.0 * lambda)).min((n as f64).sqrt());
        2.0 * lambda / (reach + 1.0)
    };
    // C − low·I and high·I − C are semidefinite: |C_ij| ≤ √(D_ii D_jj) for the diagonal D of either.
    let largest_two = |size: &dyn Fn(f64) -> f64| {
        let mut sizes: Vec<f64> = diagonal.iter().map(|&v| size(v)).collect();
        sizes.sort_by(|a, b| b.total_cmp(a));
        (sizes[0].max(0.0) * sizes[1].max(0.0)).sqrt()
    };
    if largest_two(&|v| v - low).min(largest_two(&|v| high - v)) <= limit {
        return Some(value);
    }
    if n > SEARCHED_ROWS {
        return None;
    }
    let rows: Vec<usize> = (0..n).collect();
    rows.chunks(PANEL)
        .all(|rows| largest_off_diagonal(form, rows, threads, go_on).is_some_and(|found| found <= limit))
        .then_some(value)
}

/// Largest order of a matrix that is decomposed for a known optimum.
const DECOMPOSED_ROWS: usize = 1000;

/// Returns a minimiser for J = I, if one is known, and its work in multiply-adds: of a smooth problem by
/// [`closed_form`], and of a square X ≥ 0 by [`assignment`]. None too if the work exceeds `work`, if `go_on`
/// ends the computation, or if f is not quadratic.
pub(crate) fn known_minimiser(problem: &Problem<'_>, work: f64, go_on: GoOn<'_>) -> Option<(Array2<f64>, f64)> {
    let form = problem.smooth.quadratic()?;
    let r = problem.components;
    if problem.penalty.is_none() {
        return closed_form(form, r, problem.rotations, work, go_on);
    }
    let n = form.order();
    let cost = (n as f64).powi(3);
    let permutes = problem.penalty.nonnegative() && r == n && !problem.rotations;
    if !permutes || cost > work {
        return None;
    }
    let weights = match form.metric() {
        Some(metric) if Array2::from_diag(&metric.diag()) != metric => return None,
        Some(metric) => metric.diag().to_vec(),
        None => vec![1.0; r],
    };
    let diagonal = form.diagonal();
    let linear = form.linear();
    let costs = Array2::from_shape_fn((n, r), |(i, k)| {
        let change = problem.penalty.entry(i, k, 1.0) - problem.penalty.entry(i, k, 0.0);
        let linear = linear.map_or(0.0, |linear| linear[[i, k]]);
        0.5 * weights[k] * diagonal[i] + linear + change
    });
    let mut x = Array2::zeros((n, r));
    for (i, k) in assignment(costs.view(), go_on)?.into_iter().enumerate() {
        x[[i, k]] = 1.0;
    }
    Some((x, cost))
}

/// Returns the optimal value if it is known, that of [`known_minimiser`] or [`large_lambda_optimum`] for ℓ0 and
/// ℓ1, and the multiply-adds that the minimiser took, which `work` limits.
///
/// None too if `go_on` ends the computation. A decomposition cannot be interrupted, so none of the work of one of more
/// than [`DECOMPOSED_ROWS`] rows begins.
pub(crate) fn known_optimum(
    problem: &Problem<'_>,
    work: f64,
    threads: &Threads,
    go_on: GoOn<'_>,
) -> Option<(f64, f64)> {
    let Some((x, spent)) = known_minimiser(problem, work.min(eigen_work(DECOMPOSED_ROWS)), go_on) else {
        return large_lambda_optimum(problem, threads, go_on).map(|optimum| (optimum, 0.0));
    };
    Some((problem.objective(x.view(), threads), spent))
}

/// Returns max |C_ij| over i in `rows` and j ≠ i; None if `go_on` ends the computation.
fn largest_off_diagonal(form: &dyn QuadraticForm, rows: &[usize], threads: &Threads, go_on: GoOn<'_>) -> Option<f64> {
    if let Some(c) = form.dense() {
        let largest = |i: usize| {
            let row = c.row(i);
            let others = row.iter().enumerate().filter(|&(j, _)| j != i);
            others.fold(0.0f64, |m, (_, v)| m.max(v.abs()))
        };
        let found = rows.iter().fold(0.0f64, |m, &i| m.max(largest(i)));
        return go_on().then_some(found);
    }
    let mut units = Array2::zeros((form.order(), rows.len()));
    for (k, &row) in rows.iter().enumerate() {
        units[[row, k]] = 1.0;
    }
    let mut columns = form.apply_while(units.view(), threads, go_on)?;
    for (k, &row) in rows.iter().enumerate() {
        columns[[row, k]] = 0.0;
    }
    Some(columns.iter().fold(0.0f64, |m, v| m.max(v.abs())))
}

#[cfg(test)]
mod tests;
