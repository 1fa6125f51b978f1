//! Nonnegative columns from a few products: rows belong to rays.
//!
//! For X ≥ 0 the supports are disjoint, so each row has one column. With P = cI − C = AᵀA, a column x_t has the ray
//! A x_t / ‖A x_t‖ in sample space, and y_t = P x_t / ‖A x_t‖ are the inner products of the rows with it. A row belongs to
//! the column with the largest y_it > 0, and x_t becomes these y_it, normalised.

use ndarray::{Array1, Array2, ArrayView2, Axis, Zip};

use crate::limits::TaskWork;
use crate::objective::{QuadraticForm, gradient_work};
use crate::start;
use crate::threads::Threads;

/// Largest number of products; more begin from the point that these led to.
const PRODUCTS: usize = 12;

/// Relative decrease of f in two products at which they end.
pub(crate) const ENOUGH: f64 = 1e-6;

/// Returns the best X ≥ 0 with orthonormal columns of some products from V (n×r), for f = ½ tr(XᵀCX); `shift` is a c with
/// P positive semidefinite. None if the task expired before the first one.
pub(crate) fn rays(
    form: &dyn QuadraticForm,
    v: ArrayView2<'_, f64>,
    shift: f64,
    work: &TaskWork<'_>,
) -> Option<Array2<f64>> {
    let (serial, go_on) = (Threads::serial(), || !work.expired());
    let mut x = outward(v);
    let mut best: Option<(f64, Array2<f64>)> = None;
    let mut before = 0.0;
    for product in 0..=PRODUCTS {
        work.spend(gradient_work(form, x.ncols()));
        let Some(mut y) = form.apply_while(x.view(), &serial, &go_on) else {
            break;
        };
        // By rows, as columns are not contiguous.
        y.zip_mut_with(&x, |y, x| *y = shift * x - *y);
        let mut squares = Array1::<f64>::zeros(x.ncols());
        for (x, y) in x.outer_iter().zip(y.outer_iter()) {
            Zip::from(&mut squares).and(x).and(y).for_each(|sum, x, y| *sum += x * y);
        }
        let scales = squares.mapv(|square| if square > 0.0 { 1.0 / square.sqrt() } else { 0.0 });
        y.outer_iter_mut().for_each(|mut y| y *= &scales);
        if product == 0 {
            x = power_step(&y, &owners(&y));
            continue;
        }
        let value = -0.5 * squares.iter().sum::<f64>();
        let found = std::mem::replace(&mut x, power_step(&y, &owners(&y)));
        if best.as_ref().is_none_or(|best| value < best.0) {
            best = Some((value, found));
        }
        if product % 2 == 0 {
            if !(before - value > ENOUGH * value.abs()) {
                break;
            }
            before = value;
        }
    }
    best.map(|best| best.1)
}

/// Returns columns with the signs of their heavier parts.
fn outward(v: ArrayView2<'_, f64>) -> Array2<f64> {
    let mut x = v.to_owned();
    for mut column in x.axis_iter_mut(Axis(1)) {
        let heavier: f64 = column.iter().map(|v| v * v.abs()).sum();
        column *= heavier.signum();
    }
    x
}

/// Returns the index of the largest value, the first of equal ones.
pub(crate) fn argmax(values: impl Iterator<Item = f64>) -> usize {
    values.enumerate().fold((0, f64::NEG_INFINITY), |best, (k, v)| if v > best.1 { (k, v) } else { best }).0
}

/// Returns the column of each row's largest entry.
pub(crate) fn owners(x: &Array2<f64>) -> Vec<usize> {
    x.outer_iter().map(|row| argmax(row.iter().copied())).collect()
}

/// Makes one projected power step of every column on the rows assigned by `owner`. An empty column takes the
/// row of its largest `pull`, from a column that keeps other rows.
pub(crate) fn power_step(pull: &Array2<f64>, owner: &[usize]) -> Array2<f64> {
    let mut x = Array2::<f64>::zeros(pull.dim());
    for (i, &k) in owner.iter().enumerate() {
        x[[i, k]] = pull[[i, k]].max(0.0);
    }
    start::complete_partition(&mut x, |i, k| pull[[i, k]]);
    x
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::limits::Clock;
    use crate::objective::{Objective, Quadratic};

    /// Whatever the form and the start are, also with as many columns as rows: the point is feasible, and one from it is no
    /// higher.
    #[test]
    fn points_are_feasible_and_begin_where_others_ended() {
        let clock = Clock::new(Instant::now(), None);
        let work = TaskWork::new(&clock, f64::INFINITY);
        for (seed, (m, n, r)) in (0..).zip([(3, 1, 1), (4, 5, 5), (2, 9, 7), (30, 40, 3), (8, 60, 20), (6, 200, 12)]) {
            let a = start::random(n.max(m), m.min(n), seed).reversed_axes();
            let a = a.slice(ndarray::s![.., ..n]).to_owned();
            for shift in [0.0, 0.3] {
                let c = -a.t().dot(&a) + Array2::<f64>::eye(n) * shift;
                let form = Quadratic::new((&c + &c.t()) * 0.5, None, None).unwrap();
                let value = |x: &Array2<f64>| form.value(x.view(), &Threads::serial());
                let from = start::random(n, r, seed + 50);
                let x = rays(&form, from.view(), shift, &work).unwrap();
                assert!(x.iter().all(|&v| v >= 0.0));
                let gram = x.t().dot(&x) - Array2::<f64>::eye(r);
                assert!(gram.iter().all(|v| v.abs() < 1e-12), "{m} {n} {r}");
                let next = rays(&form, x.view(), shift, &work).unwrap();
                assert!(value(&next) <= value(&x) + 1e-9 * value(&x).abs().max(1.0), "{m} {n} {r} {shift}");
            }
        }
    }
}
