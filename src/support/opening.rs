//! Points that need no search. Every search starts with them, so that it never ends above one, however small
//! its work limit.
//!
//! - The principal axes on a set of rows, those of largest leverage or of largest variance. On q rows they
//!   have q·r nonzeros; if f is the same for any orthonormal basis of their span, a rotation makes r(r−1)/2
//!   of them zero (an LQ decomposition of r of the rows).
//! - The principal axes, unrotated and rotated by varimax, truncated to their largest entries and made
//!   orthonormal on these.
//! - If supports must overlap, and have enough entries to be orthogonal: the result of a short annealed ADMM.
//! - Disjoint supports: for one column after the other, the largest entries of a leading axis on the
//!   remaining rows.
//! - If supports must overlap: blocks, merged from the disjoint supports.

use ndarray::{Array2, Axis, s};

use super::blocks::{columns_by_count, merged, rows_within, triangular};
use super::cut::{Cut, LEAST_STEPS};
use super::model::ColumnModel;
use super::pattern::{self, Part, SCALAR};
use super::power::share;
use super::rules::Rules;
use crate::limits::TaskWork;
use crate::linalg::{square, symmetric, symmetric_eigen};
use crate::manifold::polar;
use crate::objective::{Quadratic, QuadraticForm, eigen_work, gradient_work};
use crate::start::{self, DENSE};
use crate::threads::Threads;

/// Number of points, and the indices of some: disjoint supports, the largest entries of the rotated axes, the
/// largest entries of each axis, the end of ADMM, and merged blocks.
pub(crate) const POINTS: usize = 9;
pub(crate) const DISJOINT: usize = 1;
pub(crate) const LARGEST: usize = 4;
pub(crate) const SHARED: usize = 6;
pub(crate) const ADMM: usize = 7;
pub(crate) const MERGED: usize = 8;

/// Most rows on which C is formed.
const FORMED: usize = 4096;

/// Largest work of a projection onto a support, and onto that of ADMM, in products of n×r with r×r matrices.
/// A projection takes up to 2000 products if XᵀX = I has almost as many equations as X has nonzeros.
const PRODUCTS: f64 = 500.0;
const ADMM_PRODUCTS: f64 = 8000.0;

/// Largest work of ADMM, in multiply-adds.
const ADMM_WORK: f64 = 2e9;

/// Largest work of merging blocks, in multiply-adds.
const MERGE_WORK: f64 = 1e9;

/// Largest work of products for refined leading axes of disjoint supports, in multiply-adds.
pub(crate) const LEADING: f64 = 1e8;

/// Most products of the Lanczos method for a leading axis, and relative norm of directions that are rounding.
const LANCZOS: usize = 30;
const INVARIANT: f64 = 1e-12;

/// Share of the remaining time for a projection or for ADMM.
const PATIENCE: f64 = 0.2;

/// Cost of a few eigenvectors of a matrix of more than [`DENSE`] rows, in products with C.
const KRYLOV: f64 = 60.0;

/// Returns the r smallest eigenvalues of C and their eigenvectors, n×r, to rounding; None if the task
/// expired.
pub(crate) fn axes(
    form: &dyn QuadraticForm,
    r: usize,
    work: &TaskWork<'_>,
) -> Option<(Vec<f64>, Array2<f64>)> {
    let (n, serial, go_on) = (form.order(), Threads::serial(), || !work.expired());
    if let (true, Some(c)) = (n <= DENSE, form.dense()) {
        work.spend(eigen_work(n));
        let (values, vectors) = symmetric_eigen(c);
        let vectors = vectors.slice(s![.., ..r]).to_owned();
        return Some((values.iter().take(r).copied().collect(), vectors));
    }
    work.spend(KRYLOV * gradient_work(form, r));
    let x = start::spectral_while(form, r, &serial, &go_on)?;
    let image = form.apply_while(x.view(), &serial, &go_on)?;
    let (values, turned) = symmetric_eigen(symmetric(&x.t().dot(&image)).view());
    Some((values.to_vec(), x.dot(&turned)))
}

/// Returns the axes on some rows, |rows|×r; None if the task expired or C would exceed [`FORMED`] rows.
fn axes_on(
    form: &dyn QuadraticForm,
    rows: &[usize],
    r: usize,
    work: &TaskWork<'_>,
) -> Option<Array2<f64>> {
    if rows.len() == form.order() {
        let (_, x) = axes(form, r, work)?;
        return Some(x.select(Axis(0), rows));
    }
    if let Some(own) = form.restricted(rows) {
        return Some(axes(&*own, r, work)?.1);
    }
    if rows.len() > FORMED {
        return None;
    }
    work.spend(SCALAR * (rows.len() * rows.len()) as f64);
    let c = form.principal(rows, &|| !work.expired())?;
    Some(axes(&Quadratic::new(c, None, None).ok()?, r, work)?.1)
}

/// Returns whether the cardinality allows the principal axes themselves, which are then optimal.
pub(crate) fn admits_all_rows(form: &dyn QuadraticForm, rules: &Rules, r: usize) -> bool {
    let plain = rules.excluded.is_none() && !rules.binds() && form.is_trace_form();
    let order = columns_by_count(rules, r);
    plain && rows_within(rules, &order, true) >= form.order()
}

/// Returns V Λ^½ for a basis V. C is about V Λ Vᵀ on the span of V, so on rows S the leading axes are V_S Λ^½
/// u for the leading eigenvectors u of Λ^½ V_Sᵀ V_S Λ^½. None if the task expired.
pub(crate) fn scaled(
    model: &ColumnModel<'_>,
    basis: &Array2<f64>,
    work: &TaskWork<'_>,
) -> Option<Array2<f64>> {
    let image = model.image(basis, work)?;
    let curvatures = basis.columns().into_iter().zip(image.columns());
    let curvatures: Vec<f64> = curvatures.map(|(v, y)| -v.dot(&y)).collect();
    let least = curvatures.iter().copied().fold(0.0, f64::min);
    let mut scaled = basis.clone();
    for (mut column, curvature) in scaled.columns_mut().into_iter().zip(curvatures) {
        column *= (curvature - least).sqrt();
    }
    Some(scaled)
}

/// The data from which the points are made.
pub(crate) struct Opening<'a> {
    pub(crate) model: &'a ColumnModel<'a>,
    /// Approximate principal axes, n×r, and their varimax rotation.
    pub(crate) basis: &'a Array2<f64>,
    pub(crate) rotated: &'a Array2<f64>,
    /// The basis scaled by [`scaled`].
    pub(crate) scaled: &'a Array2<f64>,
    /// Largest work of products for the leading axes of disjoint supports, in multiply-adds.
    pub(crate) leading: f64,
    pub(crate) work: &'a TaskWork<'a>,
}

impl Opening<'_> {
    /// Returns point `number` below [`POINTS`], without negligible entries; None if there is none, or the
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
        let rows = |weights: &[f64]| {
            let (rows, order) = self.rows(weights)?;
            let axes = axes_on(self.model.form, &rows, self.basis.ncols(), self.work)?;
            self.placed(&rows, &order, axes)
        };
        match number {
            0 => {
                let (rows, order) = self.rows(&self.leverages())?;
                self.placed(&rows, &order, polar(&self.basis.select(Axis(0), &rows)))
            }
            DISJOINT => self.disjoint(),
            2 => rows(&self.leverages()),
            3 => rows(&self.model.diagonal.iter().map(|c| -c).collect::<Vec<_>>()),
            LARGEST => self.near(self.cut().largest(self.rotated), PRODUCTS),
            5 => self.near(self.cut().largest(self.basis), PRODUCTS),
            SHARED => self.near(self.shared(self.basis), PRODUCTS),
            MERGED if !self.model.is_dense() => None,
            MERGED => {
                let on_own_rows = Opening {
                    model: &self.model.disjoint()?,
                    ..*self
                };
                let x = on_own_rows.disjoint()?;
                self.within(MERGE_WORK, |work| {
                    merged(self.model, &self.model.point_of(&x, work)?, work)
                })
            }
            _ if !(self.model.is_dense() && self.model.outnumbers_equations()) => None,
            _ => {
                let parts = self.within(2.0 * ADMM_WORK, |work| {
                    let cut = Cut {
                        model: self.model,
                        work,
                    };
                    cut.annealed(|| self.rotated.clone(), 0.0, (LEAST_STEPS, ADMM_WORK))
                });
                self.near(parts?, ADMM_PRODUCTS)
            }
        }
    }

    /// Runs a task within bounded work, or within a share of the remaining time, and charges its work.
    fn within<T>(&self, work: f64, task: impl FnOnce(&TaskWork<'_>) -> T) -> T {
        let clock = self.work.clock;
        let units = match clock.counts() {
            true => work,
            false => PATIENCE * clock.left().unwrap_or(f64::INFINITY),
        };
        self.work.part(units, task)
    }

    fn cut(&self) -> Cut<'_> {
        Cut {
            model: self.model,
            work: self.work,
        }
    }

    fn leverages(&self) -> Vec<f64> {
        pattern::row_squares(self.basis)
    }

    /// Returns the rows of largest weight, as many as the cardinality allows, and the columns by descending
    /// limit.
    fn rows(&self, weights: &[f64]) -> Option<(Vec<usize>, Vec<usize>)> {
        let (model, (n, r)) = (self.model, self.basis.dim());
        let rules = &model.rules;
        if rules.binds() {
            return None;
        }
        let mut rows: Vec<usize> = (0..n)
            .filter(|&i| (0..r).all(|t| rules.admits(i, t)))
            .collect();
        let order = columns_by_count(rules, r);
        let most = rows_within(rules, &order, model.form.is_trace_form()).min(rows.len());
        if most < r {
            return None;
        }
        pattern::keep_largest(&mut rows, weights, most);
        Some((rows, order))
    }

    /// Returns X with the given nonzero rows, rotated if the cardinality requires it.
    fn placed(
        &self,
        rows: &[usize],
        order: &[usize],
        mut axes: Array2<f64>,
    ) -> Option<Array2<f64>> {
        let rules = &self.model.rules;
        if self.model.form.is_trace_form() && !fits(rules, order, rows.len()) {
            axes = triangular(&axes);
        }
        let mut x = Array2::zeros(self.basis.dim());
        for (&i, row) in rows.iter().zip(axes.outer_iter()) {
            for (&t, &v) in order.iter().zip(row) {
                x[[i, t]] = v;
            }
        }
        rules.keep(&x).then_some(x)
    }

    /// Returns orthonormal columns on supports, with bounded work.
    fn near(&self, parts: Vec<Part>, products: f64) -> Option<Array2<f64>> {
        let (n, r) = self.basis.dim();
        let work = products * (n * r * (r + 2)) as f64;
        let x = self.within(work, |work| self.cut().near(parts, work));
        x.filter(|x| self.model.rules.keep(x))
    }

    /// Selects the largest entries of every column, with an equal share of the cardinality for each.
    fn shared(&self, x: &Array2<f64>) -> Vec<Part> {
        let (n, r) = x.dim();
        self.work.spend(SCALAR * (n * r) as f64);
        let mut owned = vec![false; n];
        (0..r)
            .map(|t| {
                let part = own_largest(&self.model.rules, t, &x.column(t).to_vec(), &owned);
                if self.model.rules.nonnegative {
                    part.rows.iter().for_each(|&i| owned[i] = true);
                }
                part
            })
            .collect()
    }

    /// Returns approximately the leading axis on the free rows, zero elsewhere: the leading left singular
    /// vector of `scaled` on these rows, improved by the Lanczos method.
    fn leading(&self, taken: &[bool]) -> Option<Vec<f64>> {
        let (n, r) = self.basis.dim();
        let free: Vec<usize> = (0..n).filter(|&i| !taken[i]).collect();
        self.work.spend((n * r * r) as f64 + eigen_work(r));
        let left = self.scaled.select(Axis(0), &free);
        let (_, vectors) = symmetric_eigen(left.t().dot(&left).view());
        let own = left.dot(&vectors.column(r - 1));
        let steps = self.leading / (r as f64 * gradient_work(self.model.form, 1));
        let steps = (steps as usize).min(LANCZOS).min(free.len());
        let mut axis = Array2::zeros((n, 1));
        for (&i, &v) in free.iter().zip(&own) {
            axis[[i, 0]] = v;
        }
        if steps < 2 || square(&axis) == 0.0 {
            return Some(axis.into_raw_vec_and_offset().0);
        }
        let (mut basis, mut images) = (Array2::zeros((n, 0)), Array2::zeros((n, 0)));
        while basis.ncols() < steps {
            let before = square(&axis).sqrt();
            for _ in 0..2 {
                axis = &axis - &basis.dot(&basis.t().dot(&axis));
            }
            self.work.spend((4 * n * basis.ncols()) as f64);
            let norm = square(&axis).sqrt();
            if !(norm > INVARIANT * before) {
                break;
            }
            axis /= norm;
            let mut image = self.model.image(&axis, self.work)?;
            (0..n)
                .filter(|&i| taken[i])
                .for_each(|i| image[[i, 0]] = 0.0);
            basis.append(Axis(1), axis.view()).ok()?;
            images.append(Axis(1), image.view()).ok()?;
            axis = image;
        }
        self.work
            .spend((n * steps * steps) as f64 + eigen_work(steps));
        let (_, vectors) = symmetric_eigen(symmetric(&basis.t().dot(&images)).view());
        Some(basis.dot(&vectors.column(0)).to_vec())
    }

    /// Returns columns on disjoint supports, each a leading axis on its rows.
    fn disjoint(&self) -> Option<Array2<f64>> {
        let (n, r) = self.basis.dim();
        let model = self.model;
        let mut taken = model.rules.included_rows(n)?;
        let mut parts = Vec::with_capacity(r);
        for t in 0..r {
            let axis = self.leading(&taken)?;
            let mut part = own_part(&model.rules, t, &axis, &taken)?;
            let mut solved = part.clone();
            let costly = part.rows.len() > DENSE;
            if !costly && model.solo(&mut solved, t, self.work).is_some() {
                part = solved;
            }
            part.rows.iter().for_each(|&i| taken[i] = true);
            parts.push(part);
        }
        let x = pattern::dense(n, &parts);
        model.rules.keep(&x).then_some(x)
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
    let mut rows: Vec<usize> = (0..rules.rows)
        .filter(|&i| is_free(i) && value(i) != 0.0)
        .filter(|&i| rules.admits(i, t) && !rules.holds(i, t))
        .collect();
    let included = &rules.included[t];
    let most = count.saturating_sub(included.len());
    if most < rows.len() {
        let larger =
            |&a: &usize, &b: &usize| value(b).abs().total_cmp(&value(a).abs()).then(a.cmp(&b));
        rows.select_nth_unstable_by(most, larger);
        rows.truncate(most);
    }
    let mut part = Part::default();
    rows.iter()
        .chain(included)
        .for_each(|&i| part.insert(i, value(i)));
    part
}

/// Selects the largest entries of one column among the free rows, with an equal share of the cardinality.
fn own_largest(rules: &Rules, t: usize, x: &[f64], taken: &[bool]) -> Part {
    let sum: f64 = x.iter().map(|v| v * v.abs()).sum();
    let value = |i: usize| match rules.nonnegative {
        true => (x[i] * sum.signum()).max(0.0),
        false => x[i],
    };
    largest_of(rules, t, share(rules, t), value, |i| !taken[i])
}

/// Returns a unit vector on the largest entries of one column among the free rows, or on the first free row
/// if all are zero.
pub(crate) fn own_part(rules: &Rules, t: usize, x: &[f64], taken: &[bool]) -> Option<Part> {
    let mut part = own_largest(rules, t, x, taken);
    if !part.normalise() {
        let own = (0..x.len()).find(|&i| !taken[i] && rules.admits(i, t));
        let own = part.rows.first().copied().or(own)?;
        part.remove(own);
        part.insert(own, 1.0);
    }
    Some(part)
}

/// Returns whether X may have q dense rows.
fn fits(rules: &Rules, order: &[usize], q: usize) -> bool {
    q <= rows_within(rules, order, false)
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
            assert!(
                (turned.t().dot(&turned) - Array2::<f64>::eye(r))
                    .iter()
                    .all(|v| v.abs() < 1e-13)
            );
            let difference = turned.dot(&turned.t()) - axes.dot(&axes.t());
            assert!(difference.iter().all(|v| v.abs() < 1e-13));
        }
    }
}
