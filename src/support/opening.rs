//! Points that need no search. Every search starts with them, so that it never ends above one, however small
//! its work limit.
//!
//! - The principal axes, if the cardinality allows all rows. They have n·r nonzeros, or r(r−1)/2 less after a rotation
//!   (an LQ decomposition of r of the rows).
//! - The principal axes rotated by varimax, truncated to their largest entries and made orthonormal on these.
//! - If supports must overlap: the axes themselves, each truncated to its share of the entries.
//! - If supports must overlap, and have enough entries to be orthogonal: the result of a short annealed ADMM.
//! - If supports must overlap: blocks, merged from disjoint supports by [truncated powers](Powers).

use ndarray::{Array2, ArrayView1, s};

use super::blocks::{columns_by_count, merged, rows_within, triangular};
use super::cut::{Cut, LEAST_STEPS};
use super::model::ColumnModel;
use super::pattern::Part;
use super::power::{Directions, Powers, STAGES, share};
use super::rules::Rules;
use crate::limits::TaskWork;
use crate::linalg::{symmetric, symmetric_eigen};
use crate::objective::{QuadraticForm, eigen_work, gradient_work};
use crate::start::{self, DENSE};
use crate::threads::Threads;

/// Index of the point of the principal axes.
pub(crate) const PRINCIPAL: usize = 0;

/// Index of the point of the largest entries of the rotated axes.
pub(crate) const LARGEST: usize = 1;

/// Index of the point of the largest entries of each axis.
pub(crate) const TRUNCATED: usize = 2;

/// Index of the end of ADMM.
pub(crate) const ADMM: usize = 3;

/// Index of the point of merged blocks.
pub(crate) const MERGED: usize = 4;

/// Largest work of a projection onto a support, in products of n×r with r×r matrices. A projection takes up to
/// 2000 products if XᵀX = I has almost as many equations as X has nonzeros.
const PRODUCTS: f64 = 500.0;

/// Largest work of a projection onto the support of the end of ADMM, in the same products.
const ADMM_PRODUCTS: f64 = 8000.0;

/// Largest work of ADMM, in multiply-adds.
const ADMM_WORK: f64 = 2e9;

/// Largest work of merging blocks, in multiply-adds.
const MERGE_WORK: f64 = 1e9;

/// Largest cost of a few exact eigenvectors of a matrix of more than [`DENSE`] rows, in products with C.
const KRYLOV: f64 = 60.0;

/// Returns the r smallest eigenvalues of C and their eigenvectors, n×r, to rounding; None if the task
/// expired.
pub(crate) fn axes(form: &dyn QuadraticForm, r: usize, work: &TaskWork<'_>) -> Option<(Vec<f64>, Array2<f64>)> {
    let (n, serial, go_on) = (form.order(), Threads::serial(), || !work.expired());
    if let (true, Some(c)) = (n <= DENSE, form.dense()) {
        work.spend(eigen_work(n));
        let (values, vectors) = symmetric_eigen(c);
        let vectors = vectors.slice(s![.., ..r]).to_owned();
        return Some((values.iter().take(r).copied().collect(), vectors));
    }
    let most = KRYLOV * gradient_work(form, r);
    let (x, spent) = match start::closed_form(form, r, false, most, &go_on) {
        Some(exact) => exact,
        // The products that did not suffice, and those of the approximation.
        None => (start::spectral_while(form, r, &serial, &go_on)?, 2.0 * most),
    };
    work.spend(spent);
    let image = form.apply_while(x.view(), &serial, &go_on)?;
    let (values, turned) = symmetric_eigen(symmetric(&x.t().dot(&image)).view());
    Some((values.to_vec(), x.dot(&turned)))
}

/// Returns whether the cardinality allows the principal axes themselves, which are then optimal.
pub(crate) fn admits_all_rows(form: &dyn QuadraticForm, rules: &Rules, r: usize) -> bool {
    let plain = rules.excluded.is_none() && !rules.binds() && form.is_trace_form();
    let order = columns_by_count(rules, r);
    plain && rows_within(rules, &order, true) >= form.order()
}

/// The data from which the points are made.
pub(crate) struct Opening<'a> {
    pub(crate) model: &'a ColumnModel<'a>,
    /// Approximate principal axes, n×r.
    pub(crate) basis: &'a Array2<f64>,
    /// The axes rotated by varimax.
    pub(crate) rotated: &'a Array2<f64>,
    pub(crate) directions: &'a Directions<'a>,
    pub(crate) work: &'a TaskWork<'a>,
}

impl Opening<'_> {
    /// Returns point `number`, without negligible entries; None if there is none, or the
    /// task expired.
    pub(crate) fn point(&self, number: usize) -> Option<Array2<f64>> {
        let mut x = self.raw(number)?;
        while let Some(parts) = self.without_negligible(&x) {
            x = self.near(parts, PRODUCTS)?;
        }
        Some(x)
    }

    /// Returns the columns of X without their negligible entries; None if there are no such entries.
    fn without_negligible(&self, x: &Array2<f64>) -> Option<Vec<Part>> {
        let mut dropped = false;
        let parts = (0..x.ncols()).map(|t| {
            let mut part = Part::of(x.column(t));
            dropped |= self.model.drop_negligible(&mut part, t);
            part
        });
        let parts: Vec<Part> = parts.collect();
        dropped.then_some(parts)
    }

    /// Returns point `number`, negligible entries included.
    fn raw(&self, number: usize) -> Option<Array2<f64>> {
        let model = self.model;
        match number {
            PRINCIPAL => self.principal(),
            LARGEST => self.near(self.cut().largest(self.rotated), PRODUCTS),
            _ if !model.is_dense() => None,
            TRUNCATED => self.near(self.truncated(), PRODUCTS),
            MERGED => {
                let powers = Powers { model: &model.disjoint()?, work: self.work, price: 0.0 };
                let point = powers.point(self.directions, STAGES[0])?;
                self.work.part(MERGE_WORK, |work| merged(model, &point, work))
            }
            _ if !model.outnumbers_equations() => None,
            _ => {
                let parts = self.work.part(2.0 * ADMM_WORK, |work| {
                    let cut = Cut { model, work };
                    cut.annealed(|| self.rotated.clone(), 0.0, (LEAST_STEPS, ADMM_WORK))
                });
                self.near(parts?, ADMM_PRODUCTS)
            }
        }
    }

    /// Returns the principal axes, rotated if the cardinality requires it; None unless it allows all rows.
    fn principal(&self) -> Option<Array2<f64>> {
        let (model, (n, r)) = (self.model, self.rotated.dim());
        let rules = &model.rules;
        if !admits_all_rows(model.form, rules, r) {
            return None;
        }
        let order = columns_by_count(rules, r);
        let mut axes = axes(model.form, r, self.work)?.1;
        if n > rows_within(rules, &order, false) {
            axes = triangular(&axes);
        }
        let mut x = Array2::zeros((n, r));
        for (axis, &t) in axes.columns().into_iter().zip(&order) {
            x.column_mut(t).assign(&axis);
        }
        rules.keep(&x).then_some(x)
    }

    /// Returns the largest entries of each axis, as many in each; of different rows if X ≥ 0.
    fn truncated(&self) -> Vec<Part> {
        let rules = &self.model.rules;
        let mut parts = vec![Part::default(); self.basis.ncols()];
        for (t, axis) in self.basis.columns().into_iter().enumerate() {
            parts[t] = own_largest(rules, t, &axis.to_vec(), &rules.open(&parts, t));
        }
        parts
    }

    fn cut(&self) -> Cut<'_> {
        Cut { model: self.model, work: self.work }
    }

    /// Returns orthonormal columns on supports, with bounded work.
    fn near(&self, parts: Vec<Part>, products: f64) -> Option<Array2<f64>> {
        let (n, r) = self.rotated.dim();
        let work = products * (n * r * (r + 2)) as f64;
        let x = self.work.part(work, |work| self.cut().near(parts, work));
        x.filter(|x| self.model.rules.keep(x))
    }
}

/// Selects the `count` largest entries of one column among the free rows, the included ones among them.
pub(crate) fn largest_of(
    rules: &Rules,
    t: usize,
    count: usize,
    value: impl Fn(usize) -> f64,
    is_free: impl Fn(usize) -> bool,
) -> Part {
    let mut rows: Vec<usize> =
        (0..rules.rows).filter(|&i| is_free(i) && value(i) != 0.0).filter(|&i| !rules.holds(i, t)).collect();
    let included = &rules.included[t];
    let most = count.saturating_sub(included.len());
    if most < rows.len() {
        let larger = |&a: &usize, &b: &usize| value(b).abs().total_cmp(&value(a).abs()).then(a.cmp(&b));
        rows.select_nth_unstable_by(most, larger);
        rows.truncate(most);
    }
    let mut part = Part::default();
    rows.iter().chain(included).for_each(|&i| part.insert(i, value(i)));
    part
}

/// Selects the largest entries of one column among the free rows, with an equal share of the cardinality.
fn own_largest(rules: &Rules, t: usize, x: &[f64], free: &[bool]) -> Part {
    let kept = rules.kept(ArrayView1::from(x));
    largest_of(rules, t, share(rules, t), |i| kept(x[i]), |i| free[i])
}

/// Returns a unit vector on the largest entries of one column among the free rows, or on the first free row
/// if all are zero.
pub(crate) fn own_part(rules: &Rules, t: usize, x: &[f64], free: &[bool]) -> Option<Part> {
    let mut part = own_largest(rules, t, x, free);
    if !part.normalise() {
        let own = (0..x.len()).find(|&i| free[i]);
        let own = part.rows.first().copied().or(own)?;
        part.remove(own);
        part.insert(own, 1.0);
    }
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_triangular_basis_has_the_same_span_and_fewer_nonzeros() {
        for (n, r, seed) in [(5, 1, 0), (4, 4, 1), (30, 7, 2)] {
            let axes = start::random(n, r, seed);
            let turned = triangular(&axes);
            let count = turned.iter().filter(|v| **v != 0.0).count();
            assert!(count <= n * r - r * (r - 1) / 2);
            assert!((turned.t().dot(&turned) - Array2::<f64>::eye(r)).iter().all(|v| v.abs() < 1e-13));
            let difference = turned.dot(&turned.t()) - axes.dot(&axes.t());
            assert!(difference.iter().all(|v| v.abs() < 1e-13));
        }
    }
}
