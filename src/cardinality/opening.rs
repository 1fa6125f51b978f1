//! Points that need no search: every search begins with them, so that none ends above one, however little it may do.
//!
//! - The principal axes on a set of rows, those of largest leverage or of largest variance. On q rows they have q·r nonzeros;
//!   where any orthonormal basis of their span has the same f, a rotation makes r(r−1)/2 of them zero (an LQ decomposition
//!   of r of the rows).
//! - The principal axes, as they are and rotated by varimax, cut to their largest entries and made orthonormal on these.
//! - Where supports must overlap, what a short annealed splitting comes to.
//! - Disjoint supports: for one column after the other, the largest entries of a leading axis of the rows that are left.
//! - Blocks of rows: the same for groups of columns, the principal axes on rows of their own. One column in a group is the
//!   former point, all columns in one are the first.

use ndarray::{Array2, Axis, s};

use super::cut::{Cut, LEAST_STEPS};
use super::model::{Model, Part, SCALAR};
use super::rules::{Cardinality, Rules};
use crate::budget::Meter;
use crate::linalg::{orthonormal_factor, symmetric, symmetric_eigen};
use crate::manifold::polar;
use crate::objective::{Quadratic, QuadraticForm, eigen_work, gradient_work};
use crate::start;
use crate::threads::Threads;

/// Number of points; the last ones are those of blocks.
pub(super) const POINTS: usize = 11;
const BLOCKS: usize = 8;

/// Most rows on which C is formed.
const FORMED: usize = 4096;

/// Products of an n×r with an r×r matrix that a projection onto a support may take.
const PRODUCTS: f64 = 500.0;

/// Work of a splitting.
const SPLITTING: f64 = 2e9;

/// Share of the time that is left for a projection or a splitting.
const PATIENCE: f64 = 0.2;

/// Order up to which all eigenvectors are computed, and the products with C that fewer of a larger one count for.
const DENSE: usize = 400;
const KRYLOV: f64 = 60.0;

/// The r smallest eigenvalues of C and their eigenvectors, n×r, to rounding; None if the task expired.
pub(super) fn axes(
    form: &dyn QuadraticForm,
    r: usize,
    meter: &Meter<'_>,
) -> Option<(Vec<f64>, Array2<f64>)> {
    let (n, serial, go_on) = (form.order(), Threads::serial(), || !meter.expired());
    if let (true, Some(c)) = (n <= DENSE, form.dense()) {
        meter.spend(eigen_work(n));
        let (values, vectors) = symmetric_eigen(c);
        let vectors = vectors.slice(s![.., ..r]).to_owned();
        return Some((values.iter().take(r).copied().collect(), vectors));
    }
    meter.spend(KRYLOV * gradient_work(form, r));
    let x = start::spectral_while(form, r, &serial, &go_on)?;
    let image = form.apply_while(x.view(), &serial, &go_on)?;
    let (values, turned) = symmetric_eigen(symmetric(&x.t().dot(&image)).view());
    Some((values.to_vec(), x.dot(&turned)))
}

/// The same on some rows, |rows|×r; None on more than [`FORMED`] of them, too.
fn axes_on(
    form: &dyn QuadraticForm,
    rows: &[usize],
    r: usize,
    meter: &Meter<'_>,
) -> Option<Array2<f64>> {
    if rows.len() == form.order() {
        let (_, x) = axes(form, r, meter)?;
        return Some(x.select(Axis(0), rows));
    }
    if rows.len() > FORMED {
        return None;
    }
    meter.spend(SCALAR * (rows.len() * rows.len()) as f64);
    let c = form.principal(rows, &|| !meter.expired())?;
    Some(axes(&Quadratic::new(c, None, None).ok()?, r, meter)?.1)
}

/// Whether the cardinality admits the principal axes themselves: then they are optimal.
pub(super) fn admits_all_rows(form: &dyn QuadraticForm, rules: &Rules, r: usize) -> bool {
    let plain = rules.excluded.is_none() && !rules.binds() && form.is_trace_form();
    let order = columns_by_count(rules, r);
    plain && rows_within(rules, &order, true) >= form.order()
}

/// V Λ^½ of a basis V: C is about V Λ Vᵀ on its span, so on some rows S the leading axes are V_S Λ^½ u for the
/// leading eigenvectors u of Λ^½ V_Sᵀ V_S Λ^½. None if the task expired.
pub(super) fn scaled(
    model: &Model<'_>,
    basis: &Array2<f64>,
    meter: &Meter<'_>,
) -> Option<Array2<f64>> {
    let image = model.image(basis, meter)?;
    let curvatures = basis.columns().into_iter().zip(image.columns());
    let curvatures: Vec<f64> = curvatures.map(|(v, y)| -v.dot(&y)).collect();
    let least = curvatures.iter().copied().fold(0.0, f64::min);
    let mut scaled = basis.clone();
    for (mut column, curvature) in scaled.columns_mut().into_iter().zip(curvatures) {
        column *= (curvature - least).sqrt();
    }
    Some(scaled)
}

/// What the points are made of.
pub(super) struct Opening<'a> {
    pub(super) model: &'a Model<'a>,
    /// About the principal axes, n×r, and their varimax rotation.
    pub(super) basis: &'a Array2<f64>,
    pub(super) rotated: &'a Array2<f64>,
    /// What [`scaled`] makes of the basis.
    pub(super) scaled: &'a Array2<f64>,
    pub(super) meter: &'a Meter<'a>,
}

impl Opening<'_> {
    /// The point of a number below [`POINTS`], without negligible entries; None if there is none, or the task expired.
    pub(super) fn point(&self, number: usize) -> Option<Array2<f64>> {
        let mut x = self.raw(number)?;
        while let Some(parts) = self.without_negligible(&x) {
            x = self.near(parts)?;
        }
        Some(x)
    }

    /// The columns of X without their negligible entries; None if there are no such entries.
    fn without_negligible(&self, x: &Array2<f64>) -> Option<Vec<Part>> {
        let mut dropped = false;
        let parts = (0..x.ncols()).map(|t| {
            let mut part = Part::of(x.column(t));
            dropped |= self.model.cleaned(&mut part, t);
            part
        });
        let parts: Vec<Part> = parts.collect();
        dropped.then_some(parts)
    }

    /// The point of a number, as it is made.
    fn raw(&self, number: usize) -> Option<Array2<f64>> {
        let rows = |weights: &[f64]| {
            let (rows, order) = self.rows(weights)?;
            let axes = axes_on(self.model.form, &rows, self.basis.ncols(), self.meter)?;
            self.placed(&rows, &order, axes)
        };
        match number {
            0 => {
                let (rows, order) = self.rows(&self.leverages())?;
                self.placed(&rows, &order, polar(&self.basis.select(Axis(0), &rows)))
            }
            1 => self.disjoint(),
            2 => rows(&self.leverages()),
            3 => rows(&self.model.diagonal.iter().map(|c| -c).collect::<Vec<_>>()),
            4 => self.near(self.cut().largest(self.rotated)),
            5 => self.near(self.cut().largest(self.basis)),
            6 => self.near(self.shared(self.basis)),
            BLOCKS.. => {
                let (n, r) = self.basis.dim();
                let least = self.model.rules.cardinality.total().div_ceil(n);
                let each = [least, least + 1, least + least.div_ceil(2)][number - BLOCKS];
                (2..r).contains(&each).then(|| self.blocks(each)).flatten()
            }
            _ if !self.model.is_dense() => None,
            _ => {
                let meter = self.bounded(2.0 * SPLITTING);
                let cut = Cut {
                    model: self.model,
                    meter: &meter,
                };
                let from = || self.rotated.clone();
                let parts = cut.annealed(from, 0.0, (LEAST_STEPS, SPLITTING));
                self.meter.spend(meter.spent());
                self.near(parts?)
            }
        }
    }

    /// A task of bounded work, or of a share of the time that is left.
    fn bounded(&self, work: f64) -> Meter<'_> {
        let clock = self.meter.clock;
        let units = match clock.counts() {
            true => work,
            false => PATIENCE * clock.left().unwrap_or(f64::INFINITY),
        };
        Meter::strict(clock, units)
    }

    fn cut(&self) -> Cut<'_> {
        Cut {
            model: self.model,
            meter: self.meter,
        }
    }

    fn leverages(&self) -> Vec<f64> {
        row_squares(self.basis)
    }

    /// The rows of largest weight, as many as the cardinality admits, and the columns by their limits.
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
        keep_largest(&mut rows, weights, most);
        Some((rows, order))
    }

    /// X with the given nonzero rows, turned where that is needed to keep the cardinality.
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

    /// Orthonormal columns on supports; their work is bounded.
    fn near(&self, parts: Vec<Part>) -> Option<Array2<f64>> {
        let (n, r) = self.basis.dim();
        let meter = self.bounded(PRODUCTS * (n * r * (r + 2)) as f64);
        let x = self.cut().near(parts, &meter);
        self.meter.spend(meter.spent());
        x.filter(|x| self.model.rules.keep(x))
    }

    /// The largest entries of every column, an equal share of the cardinality in each.
    fn shared(&self, x: &Array2<f64>) -> Vec<Part> {
        let (n, r) = x.dim();
        self.meter.spend(SCALAR * (n * r) as f64);
        let mut owned = vec![false; n];
        (0..r)
            .map(|t| {
                let part = largest_of(&self.model.rules, t, &x.column(t).to_vec(), &owned);
                if self.model.rules.nonnegative {
                    part.rows.iter().for_each(|&i| owned[i] = true);
                }
                part
            })
            .collect()
    }

    /// The principal axes of groups of `each` columns: one group after the other takes the rows of largest leverage among
    /// those that are left.
    fn blocks(&self, each: usize) -> Option<Array2<f64>> {
        let (n, r) = self.basis.dim();
        let rules = &self.model.rules;
        if rules.binds() || !self.model.form.is_trace_form() {
            return None;
        }
        let scaled = self.scaled;
        let order = columns_by_count(rules, r);
        let mut left = scaled.clone();
        let mut taken = vec![false; n];
        let mut total = rules.cardinality.total();
        let mut x = Array2::zeros((n, r));
        for start in (0..r).step_by(each) {
            let group = &order[start..(start + each).min(r)];
            let (width, others) = (group.len(), r - start - group.len());
            self.meter
                .spend((n * r * (r + width)) as f64 + eigen_work(r));
            let (values, vectors) = symmetric_eigen(left.t().dot(&left).view());
            let axes = scaled.dot(&vectors.slice(s![.., r - width..]));
            let weight = |i: usize| -> f64 {
                let terms = axes.row(i).into_iter().zip(values.iter().skip(r - width));
                terms
                    .map(|(v, value)| v * v / value.max(f64::MIN_POSITIVE))
                    .sum()
            };
            let weights: Vec<f64> = (0..n).map(weight).collect();
            let mut rows: Vec<usize> = (0..n)
                .filter(|&i| !taken[i] && group.iter().all(|&t| rules.admits(i, t)))
                .collect();
            let turned = width * (width - 1) / 2;
            let most = match &rules.cardinality {
                Cardinality::Total(_) => (total * width / (width + others) + turned) / width,
                Cardinality::Columns(_) => rows_within(rules, group, true),
            };
            let most = most.min(rows.len().saturating_sub(others));
            if most < width {
                return None;
            }
            keep_largest(&mut rows, &weights, most);
            let axes = triangular(&axes_on(self.model.form, &rows, width, self.meter)?);
            for (&i, row) in rows.iter().zip(axes.outer_iter()) {
                taken[i] = true;
                left.row_mut(i).fill(0.0);
                for (&t, &v) in group.iter().zip(row) {
                    x[[i, t]] = v;
                    total -= usize::from(v != 0.0);
                }
            }
        }
        rules.keep(&x).then_some(x)
    }

    /// Columns on disjoint supports, each a leading axis on its own.
    fn disjoint(&self) -> Option<Array2<f64>> {
        let (n, r) = self.basis.dim();
        let model = self.model;
        let scaled = self.scaled;
        let mut taken = model.rules.included_rows(n)?;
        let mut left = scaled.clone();
        let mut x = Array2::zeros((n, r));
        for t in 0..r {
            self.meter.spend((n * r * r) as f64 + eigen_work(r));
            let (_, vectors) = symmetric_eigen(left.t().dot(&left).view());
            let axis = scaled.dot(&vectors.column(r - 1)).to_vec();
            let mut part = own_part(&model.rules, t, &axis, &taken)?;
            let mut solved = part.clone();
            let costly = part.rows.len() > DENSE;
            if !costly && model.solo(&mut solved, t, self.meter).is_some() {
                part = solved;
            }
            for (&i, &v) in part.rows.iter().zip(&part.values) {
                x[[i, t]] = v;
                taken[i] = true;
                left.row_mut(i).fill(0.0);
            }
        }
        model.rules.keep(&x).then_some(x)
    }
}

/// The largest entries of one column among the rows that are free, with what is included.
fn largest_of(rules: &Rules, t: usize, x: &[f64], taken: &[bool]) -> Part {
    let sum: f64 = x.iter().map(|v| v * v.abs()).sum();
    let value = |i: usize| match rules.nonnegative {
        true => (x[i] * sum.signum()).max(0.0),
        false => x[i],
    };
    let mut rows: Vec<usize> = (0..x.len())
        .filter(|&i| !taken[i] && value(i) != 0.0)
        .filter(|&i| rules.admits(i, t) && !rules.holds(i, t))
        .collect();
    let included = &rules.included[t];
    let most = share(rules, t).saturating_sub(included.len());
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

/// A unit vector on the largest entries of one column among the rows that are free, or on the first of these.
pub(super) fn own_part(rules: &Rules, t: usize, x: &[f64], taken: &[bool]) -> Option<Part> {
    let mut part = largest_of(rules, t, x, taken);
    let norm = part.values.iter().map(|v| v * v).sum::<f64>().sqrt();
    if norm > 0.0 {
        part.values.iter_mut().for_each(|v| *v /= norm);
    } else {
        let own = (0..x.len()).find(|&i| !taken[i] && rules.admits(i, t));
        let own = part.rows.first().copied().or(own)?;
        part.remove(own);
        part.insert(own, 1.0);
    }
    Some(part)
}

/// Squared norms of the rows.
fn row_squares(x: &Array2<f64>) -> Vec<f64> {
    x.outer_iter().map(|row| row.dot(&row)).collect()
}

/// The `count` rows of largest norm, largest first.
pub(super) fn largest_rows(x: &Array2<f64>, count: usize) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..x.nrows()).collect();
    keep_largest(&mut rows, &row_squares(x), count);
    rows
}

/// Keeps the rows of largest weight, largest first.
fn keep_largest(rows: &mut Vec<usize>, weights: &[f64], most: usize) {
    let larger = |&a: &usize, &b: &usize| weights[b].total_cmp(&weights[a]).then(a.cmp(&b));
    if most < rows.len() {
        rows.select_nth_unstable_by(most, larger);
        rows.truncate(most);
    }
    rows.sort_unstable_by(larger);
}

/// The columns in the order of their limits, the largest first.
fn columns_by_count(rules: &Rules, r: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..r).collect();
    if let Cardinality::Columns(counts) = &rules.cardinality {
        order.sort_by(|&s, &t| counts[t].cmp(&counts[s]).then(s.cmp(&t)));
    }
    order
}

/// How many nonzeros column t may have where all have about the same number.
fn share(rules: &Rules, t: usize) -> usize {
    match &rules.cardinality {
        Cardinality::Columns(counts) => counts[t],
        Cardinality::Total(total) => {
            let r = rules.included.len();
            total / r + usize::from(t < total % r)
        }
    }
}

/// Whether X may have q dense rows.
fn fits(rules: &Rules, order: &[usize], q: usize) -> bool {
    q <= rows_within(rules, order, false)
}

/// The most rows that X may have, if a rotation is `free`.
fn rows_within(rules: &Rules, order: &[usize], free: bool) -> usize {
    let r = order.len();
    let zeros = usize::from(free);
    match &rules.cardinality {
        Cardinality::Total(total) => (total + zeros * (r * (r - 1) / 2)) / r,
        Cardinality::Columns(counts) => (order.iter().enumerate())
            .map(|(place, &t)| counts[t] + zeros * place)
            .min()
            .unwrap_or(0),
    }
}

/// The same span in a basis whose column t has t zeros.
fn triangular(axes: &Array2<f64>) -> Array2<f64> {
    let r = axes.ncols();
    let top = axes.slice(s![..r, ..]);
    // The rows of the top are LQᵀ: with Q the orthonormal factor of its transpose.
    let mut turned = axes.dot(&orthonormal_factor(top.t()));
    for t in 0..r {
        for i in 0..t {
            turned[[i, t]] = 0.0;
        }
    }
    turned
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
