//! Points given by their supports, and the optimal values on given supports.
//!
//! With f = Σ_t ½d_t x_tᵀCx_t + l_tᵀx_t, the columns of X interact only through XᵀX = I, and only if their
//! supports share rows. A column that shares none is solved alone: by an eigenvector of C on its rows, or,
//! for X ≥ 0, by a fixed point of the projected power method. Groups of connected columns are solved
//! [jointly](super::joint). The cost of a change of support is that of the columns around it, whatever n and
//! r are.

use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

use super::joint::{ColumnForm, Joint, common};
use super::pattern::{self, Part, SCALAR};
use super::rules::Rules;
use crate::error::{Error, Result};
use crate::limits::TaskWork;
use crate::linalg::{dot, symmetric_eigen};
use crate::manifold::{Manifold, project_on_support};
use crate::numerics;
use crate::objective::{Columns, QuadraticForm, SparseVector, eigen_work, gradient_work};
use crate::signature::Signature;
use crate::threads::Threads;

/// Entries below this, relative to the largest entry of their column, count as zero: their contribution to f,
/// proportional to their square, is below rounding. Such entries are dropped from the support.
pub const NEGLIGIBLE: f64 = 1e-8;

/// Columns of up to this many rows are solved by an eigendecomposition, longer ones iteratively from their
/// present values.
const DECOMPOSED: usize = 40;

/// Work of a solution on given supports besides products and decompositions, in multiply-adds; with few rows
/// this is most of the work.
const SOLUTION: f64 = 1e4;

/// Largest eigenvalue of C, relative to the smallest one, up to which C is negative semidefinite to rounding.
const SEMIDEFINITE: f64 = 1e-12;

/// Diagonal entry of C, relative to the largest one, up to which a row of a semidefinite C is zero to rounding.
const NOTHING: f64 = 1e-24;

/// Work of reading an entry of C.
const ENTRY: f64 = 4.0;

/// Multiply-adds of a Newton step on given supports above which points are not optimised: such a step takes a
/// tenth of a second.
const COSTLY: f64 = 1e8;

/// Bytes for cached columns of a C that is not stored.
const BYTES: usize = 256 << 20;

/// Largest number of steps of the projected power method.
const POWER_STEPS: usize = 2000;

/// Relative gain of a power step on the rows of a column up to which they end.
const CLIMBED: f64 = 1e-8;

/// A feasible X and f there.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct SparsePoint {
    pub(crate) parts: Vec<Part>,
}

impl SparsePoint {
    pub(crate) fn value(&self) -> f64 {
        self.parts.iter().map(|part| part.value).sum()
    }

    pub(crate) fn counts(&self) -> Vec<usize> {
        self.parts.iter().map(|part| part.rows.len()).collect()
    }

    /// Returns the indices t·n + i of the entries of the supports, column by column.
    pub(crate) fn places(&self, n: usize) -> Vec<usize> {
        let parts = self.parts.iter().enumerate();
        parts.flat_map(|(t, part)| part.rows.iter().map(move |&i| t * n + i)).collect()
    }

    pub(crate) fn dense(&self, n: usize) -> Array2<f64> {
        pattern::dense(n, &self.parts)
    }

    /// Returns whether columns s and t share rows.
    pub(crate) fn meet(&self, s: usize, t: usize) -> bool {
        common(&self.parts[s].rows, &self.parts[t].rows).next().is_some()
    }

    /// Returns the number of columns that share a row with another.
    pub(crate) fn sharing(&self) -> usize {
        let all = 0..self.parts.len();
        all.clone().filter(|&t| all.clone().any(|s| s != t && self.meet(s, t))).count()
    }

    /// Returns the columns connected to column t by shared rows, t included, ascending.
    pub(crate) fn group(&self, t: usize) -> Vec<usize> {
        let mut group = vec![t];
        let mut next = 0;
        while next < group.len() {
            for s in 0..self.parts.len() {
                if !group.contains(&s) && self.meet(group[next], s) {
                    group.push(s);
                }
            }
            next += 1;
        }
        group.sort_unstable();
        group
    }
}

/// Returns the diagonal d_1, …, d_r of D.
pub(crate) fn weights(form: &dyn QuadraticForm, r: usize) -> Result<Vec<f64>> {
    let Some(metric) = form.metric() else {
        return Ok(vec![1.0; r]);
    };
    if metric.indexed_iter().any(|((i, j), &v)| i != j && v != 0.0) {
        return Err(Error::invalid("D", "must be diagonal where nonzeros are counted"));
    }
    Ok(metric.diag().to_vec())
}

/// f by columns, and the rules for X.
pub(crate) struct ColumnModel<'a> {
    pub(crate) form: &'a dyn QuadraticForm,
    pub(crate) rules: Rules,
    columns: Arc<Columns<'a>>,
    pub(crate) diagonal: Vec<f64>,
    /// Number of rows in which C or the linear term is not zero.
    live: usize,
    /// d_1, …, d_r.
    pub(crate) weights: Vec<f64>,
    linear: Option<Array2<f64>>,
    /// Half the spread of C times the largest |d_t|, plus ‖L‖: the scale of gradients.
    pub(crate) scale: f64,
    /// Approximate extreme eigenvalues of C.
    spectrum: (f64, f64),
}

impl<'a> ColumnModel<'a> {
    /// `spectrum`: approximate extreme eigenvalues of C. None if the time ran out.
    pub(crate) fn new(
        form: &'a dyn QuadraticForm,
        rules: Rules,
        weights: Vec<f64>,
        (low, high): (f64, f64),
        work: &TaskWork<'_>,
    ) -> Option<Self> {
        let columns = Columns::cheapest(form, BYTES, &|| !work.expired())?;
        work.spend(columns.forming_work());
        let (n, linear) = (form.order(), form.linear().map(|l| l.to_owned()));
        let slope = linear.as_ref().map_or(0.0, |l| l.iter().map(|v| v * v).sum::<f64>().sqrt());
        let largest = weights.iter().fold(0.0f64, |m, d| m.max(d.abs()));
        let diagonal = columns.diagonal();
        let nothing = NOTHING * diagonal.iter().fold(0.0f64, |m, d| m.max(d.abs()));
        let is_live = |i: &usize| {
            let slopes = linear.as_ref().map(|l: &Array2<f64>| l.row(*i));
            diagonal[*i].abs() > nothing || slopes.is_some_and(|row| row.iter().any(|&l| l != 0.0))
        };
        // A C that is not semidefinite can have entries in rows with a zero on the diagonal.
        let live = match high <= SEMIDEFINITE * -low {
            true => (0..n).filter(is_live).count().max(1),
            false => n,
        };
        Some(Self {
            diagonal,
            live,
            scale: (0.5 * (high - low) * largest + slope).max(f64::MIN_POSITIVE),
            columns: Arc::new(columns),
            form,
            rules,
            weights,
            linear,
            spectrum: (low, high),
        })
    }

    /// Returns the model for other rules.
    pub(crate) fn with(&self, rules: Rules) -> Self {
        Self {
            form: self.form,
            rules,
            columns: Arc::clone(&self.columns),
            diagonal: self.diagonal.clone(),
            live: self.live,
            weights: self.weights.clone(),
            linear: self.linear.clone(),
            scale: self.scale,
            spectrum: self.spectrum,
        }
    }

    /// Returns whether supports must overlap, as there are more nonzeros than rows that matter. Columns then cannot be
    /// grown one after the other.
    pub(crate) fn is_dense(&self) -> bool {
        self.rules.cardinality.total() > self.live
    }

    /// Returns the model for as many nonzeros as rows that matter, within which supports can be disjoint; None if
    /// entries are included.
    pub(crate) fn disjoint(&self) -> Option<Self> {
        let total = self.rules.cardinality.total();
        Some(self.with(self.rules.reduced(|count| count * self.live / total)?))
    }

    /// Returns whether supports within the cardinality have more entries than XᵀX = I has equations: one for
    /// each column, and one for each two columns with common rows.
    pub(crate) fn outnumbers_equations(&self) -> bool {
        let (n, r) = (self.order() as f64, self.weights.len() as f64);
        let total = self.rules.cardinality.total() as f64;
        let common = (total / r).powi(2) / n;
        total > r + 0.5 * r * (r - 1.0) * (1.0 - (-common).exp())
    }

    /// Returns the limits of [columns that can be exchanged](Rules::exchangeable).
    pub(crate) fn exchangeable(&self) -> Option<&[usize]> {
        self.rules.exchangeable(&self.weights, self.linear.is_some())
    }

    /// Returns whether all of C is stored.
    pub(crate) fn is_whole(&self) -> bool {
        self.columns.is_whole()
    }

    pub(crate) fn order(&self) -> usize {
        self.diagonal.len()
    }

    /// Returns the shift that makes d_tC negative semidefinite.
    pub(crate) fn shift(&self, t: usize) -> f64 {
        let (low, high) = self.spectrum;
        (self.weights[t] * low).max(self.weights[t] * high)
    }

    /// Returns C_ij.
    pub(crate) fn entry(&self, i: usize, j: usize) -> f64 {
        self.columns.entry(i, j)
    }

    /// Returns the work of `count` entries of C.
    pub(crate) fn entries_work(&self, count: usize) -> f64 {
        count as f64 * (ENTRY + self.columns.entry_work())
    }

    /// Returns the work of C v for a v with `nonzeros` nonzeros.
    pub(crate) fn product_work(&self, nonzeros: usize) -> f64 {
        self.columns.product_work(nonzeros)
    }

    /// Appends C_ij for the given j to `target`.
    pub(crate) fn gathered(&self, i: usize, rows: impl Iterator<Item = usize>, target: &mut Vec<f64>) {
        let column = self.columns.column(i);
        target.extend(rows.map(|j| column[j]));
    }

    pub(crate) fn slope(&self, i: usize, t: usize) -> f64 {
        self.linear.as_ref().map_or(0.0, |l| l[[i, t]])
    }

    /// Returns the point with the entries of X and those that the rules include; None if the task expired.
    pub(crate) fn point_of(&self, x: &Array2<f64>, work: &TaskWork<'_>) -> Option<SparsePoint> {
        let image = self.image(x, work)?;
        let parts = (x.columns().into_iter().zip(image.columns()).enumerate()).map(|(t, (x, y))| {
            let linear = |i: usize| self.slope(i, t);
            let mut part = Part::of(x);
            part.value = (part.entries()).fold(0.0, |sum, (i, v)| sum + v * (0.5 * self.weights[t] * y[i] + linear(i)));
            for &i in &self.rules.included[t] {
                part.insert(i, 0.0);
            }
            part
        });
        Some(SparsePoint { parts: parts.collect() })
    }

    /// Returns C X; None if the task expired.
    pub(crate) fn image(&self, x: &Array2<f64>, work: &TaskWork<'_>) -> Option<Array2<f64>> {
        work.spend(gradient_work(self.form, x.ncols()));
        let go_on = || !work.expired();
        self.form.apply_while(x.view(), &Threads::serial(), &go_on)
    }

    /// Returns the gradients of all columns, all rows: by one product with C if the supports are large.
    pub(crate) fn gradients(&self, point: &SparsePoint, work: &TaskWork<'_>) -> Vec<Vec<f64>> {
        let n = self.order();
        let counts = point.counts();
        let single: f64 = counts.iter().map(|&count| self.product_work(count)).sum();
        let dense =
            (single > gradient_work(self.form, point.parts.len())).then(|| self.image(&point.dense(n), work)).flatten();
        match dense {
            Some(image) => (image.columns().into_iter().enumerate())
                .map(|(t, y)| {
                    let rows = y.iter().enumerate();
                    rows.map(|(i, y)| self.weights[t] * y + self.slope(i, t)).collect()
                })
                .collect(),
            None => {
                let parts: Vec<(usize, &Part)> = point.parts.iter().enumerate().collect();
                self.gradients_of(&parts, work)
            }
        }
    }

    /// Returns whether a Newton step on the supports of a group of columns takes too long for descents.
    fn is_costly_group(&self, point: &SparsePoint, group: &[usize]) -> bool {
        let squares = |t: &usize| (point.parts[*t].rows.len() as f64).powi(2);
        let meeting = |t: usize| group.iter().filter(move |s| **s < t && point.meet(**s, t));
        let pairs: usize = group.iter().map(|&t| meeting(t).count()).sum();
        let constraints = if pairs > 0 { group.len() + pairs } else { 0 };
        SCALAR * group.iter().map(squares).sum::<f64>() + (constraints as f64).powi(3) > COSTLY
    }

    /// Returns whether any group of a point is costly.
    pub(crate) fn is_costly(&self, point: &SparsePoint) -> bool {
        let mut known = vec![false; point.parts.len()];
        (0..point.parts.len()).any(|t| {
            if known[t] {
                return false;
            }
            let group = point.group(t);
            group.iter().for_each(|&s| known[s] = true);
            self.is_costly_group(point, &group)
        })
    }

    /// Returns the gradient of column t, all rows.
    pub(crate) fn gradient(&self, part: &Part, t: usize, work: &TaskWork<'_>) -> Vec<f64> {
        self.gradients_of(&[(t, part)], work).remove(0)
    }

    /// Returns the gradients of some columns, all rows.
    pub(crate) fn gradients_of(&self, parts: &[(usize, &Part)], work: &TaskWork<'_>) -> Vec<Vec<f64>> {
        let n = self.order();
        let spent = parts.iter().map(|(_, part)| self.product_work(part.rows.len()));
        work.spend(spent.sum());
        let vectors: Vec<SparseVector<'_>> =
            (parts.iter()).map(|(_, part)| (&part.rows[..], &part.values[..])).collect();
        let mut images = vec![vec![0.0; n]; parts.len()];
        let mut targets: Vec<&mut [f64]> = images.iter_mut().map(|y| &mut y[..]).collect();
        self.columns.add_products(&vectors, &mut targets);
        for (image, &(t, _)) in images.iter_mut().zip(parts) {
            if self.weights[t] != 1.0 {
                image.iter_mut().for_each(|y| *y *= self.weights[t]);
            }
            if let Some(linear) = &self.linear {
                let slopes = linear.column(t);
                image.iter_mut().zip(slopes).for_each(|(y, l)| *y += l);
            }
        }
        images
    }

    /// Returns C on some rows; None if the time ran out.
    pub(super) fn principal(&self, rows: &[usize], work: &TaskWork<'_>) -> Option<Array2<f64>> {
        work.spend(SCALAR * (rows.len() * rows.len()) as f64);
        self.columns.principal(rows, &|| !work.expired())
    }

    /// Returns the quadratic form of column t on its support; None if the time ran out.
    fn block(&self, part: &Part, t: usize, work: &TaskWork<'_>) -> Option<ColumnForm> {
        let mut matrix = self.principal(&part.rows, work)?;
        if self.weights[t] != 1.0 {
            matrix *= self.weights[t];
        }
        Some(ColumnForm {
            linear: part.rows.iter().map(|&i| self.slope(i, t)).collect(),
            rows: part.rows.clone(),
            matrix: matrix.into_raw_vec_and_offset().0,
        })
    }

    /// Minimises f on the supports of the columns connected to those `touched`, from their present values,
    /// and drops negligible entries. None if no feasible point is near, the time is up, the step is too
    /// costly, or, with a `goal` for the total f, if f is not expected to fall below it.
    pub(crate) fn optimised(
        &self,
        mut point: SparsePoint,
        touched: &[usize],
        goal: Option<f64>,
        work: &TaskWork<'_>,
    ) -> Option<SparsePoint> {
        work.spend(SOLUTION);
        let mut waiting = self.separated(&mut point, touched);
        while let Some(t) = waiting.pop() {
            if work.expired() {
                return None;
            }
            let group = point.group(t);
            if self.is_costly_group(&point, &group) {
                return None;
            }
            waiting.retain(|s| !group.contains(s));
            let goal = goal.filter(|_| waiting.is_empty()).map(|goal| {
                let others = (0..point.parts.len()).filter(|s| !group.contains(s));
                goal - others.map(|s| point.parts[s].value).sum::<f64>()
            });
            self.solve(&mut point, &group, goal, work)?;
            let mut dropped = false;
            for &s in &group {
                dropped |= self.drop_negligible(&mut point.parts[s], s);
            }
            if dropped {
                waiting.extend(self.separated(&mut point, &group));
            }
        }
        Some(point)
    }

    /// Drops negligible entries from the support; returns whether there were any.
    pub(crate) fn drop_negligible(&self, part: &mut Part, t: usize) -> bool {
        let largest = part.values.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        let gone: Vec<usize> = (part.entries())
            .filter(|&(i, v)| v.abs() <= NEGLIGIBLE * largest && !self.rules.holds(i, t))
            .map(|(i, _)| i)
            .collect();
        gone.iter().for_each(|&i| part.remove(i));
        !gone.is_empty()
    }

    /// Separates columns that share exactly one row, or, for X ≥ 0, any row: one of the two entries must
    /// vanish, so the smaller one is dropped. Returns the columns `touched` and those that lost a row.
    fn separated(&self, point: &mut SparsePoint, touched: &[usize]) -> Vec<usize> {
        let mut all = touched.to_vec();
        let mut waiting = touched.to_vec();
        while let Some(t) = waiting.pop() {
            for s in (0..point.parts.len()).filter(|&s| s != t) {
                let (a, b) = (&point.parts[s], &point.parts[t]);
                let shared: Vec<(usize, usize)> = common(&a.rows, &b.rows).collect();
                if shared.is_empty() || (shared.len() > 1 && self.rules.joins(1)) {
                    continue;
                }
                for (row, first) in (shared.iter())
                    .map(|&(i, j)| (a.rows[i], a.values[i].abs() < b.values[j].abs()))
                    .collect::<Vec<_>>()
                {
                    let (held, other) = (self.rules.holds(row, s), self.rules.holds(row, t));
                    let loser = match (held, other) {
                        (true, true) => continue,
                        (true, false) => t,
                        (false, true) => s,
                        (false, false) if first => s,
                        (false, false) => t,
                    };
                    if point.parts[loser].rows.len() > 1 {
                        point.parts[loser].remove(row);
                        waiting.push(loser);
                        all.push(loser);
                    }
                }
            }
        }
        all
    }

    /// Solves for the columns of one group.
    fn solve(&self, point: &mut SparsePoint, group: &[usize], goal: Option<f64>, work: &TaskWork<'_>) -> Option<()> {
        let blocks: Vec<ColumnForm> =
            (group.iter()).map(|&t| self.block(&point.parts[t], t, work)).collect::<Option<_>>()?;
        if let [t] = *group {
            let part = &mut point.parts[t];
            let k = part.rows.len();
            if self.rules.nonnegative {
                return self.nonnegative(&blocks[0], part, work);
            }
            if k <= DECOMPOSED && self.linear.is_none() {
                work.spend(eigen_work(k));
                return leading(&blocks[0], part);
            }
        } else if self.rules.nonnegative {
            return None;
        }
        let joint = Joint::new(&blocks, self.scale, work);
        let start = |parts: &[Part]| group.iter().flat_map(|&t| parts[t].values.clone()).collect();
        let solved = joint.minimised(start(&point.parts), goal).or_else(|| {
            let near = self.projected(&blocks, &start(&point.parts), work)?;
            joint.minimised(near, goal)
        });
        let (x, _) = solved?;
        let mut from = 0;
        for (&t, block) in group.iter().zip(&blocks) {
            let part = &mut point.parts[t];
            let to = from + part.rows.len();
            part.values.copy_from_slice(&x[from..to]);
            part.value = block.value(&part.values);
            from = to;
        }
        Some(())
    }

    /// Returns a point with these supports by alternating projections, if Newton's method fails.
    fn projected(&self, blocks: &[ColumnForm], x: &[f64], work: &TaskWork<'_>) -> Option<Vec<f64>> {
        let mut union: Vec<usize> = blocks.iter().flat_map(|b| b.rows.iter().copied()).collect();
        union.sort_unstable();
        union.dedup();
        let place = |i: usize| union.partition_point(|&j| j < i);
        let shape = (union.len(), blocks.len());
        let (mut dense, mut support) = (Array2::zeros(shape), Array2::zeros(shape));
        let mut entries = x.iter();
        for (t, block) in blocks.iter().enumerate() {
            for (&i, &v) in block.rows.iter().zip(&mut entries) {
                dense[[place(i), t]] = v;
                support[[place(i), t]] = 1.0;
            }
        }
        let signature = Signature::stiefel(shape.0);
        let manifold = Manifold::new(&signature, Array2::eye(shape.1), Some(work));
        let near = project_on_support(&manifold, &dense, &support)?;
        let parts = blocks.iter().enumerate();
        Some(parts.flat_map(|(t, b)| b.rows.iter().map(move |&i| (i, t))).map(|(i, t)| near[[place(i), t]]).collect())
    }

    /// Minimises ½vᵀBv + lᵀv over unit v ≥ 0 by v ← (σv − Bv − l)₊, normalised, which never raises the value
    /// while σ bounds B.
    fn nonnegative(&self, block: &ColumnForm, part: &mut Part, work: &TaskWork<'_>) -> Option<()> {
        let k = part.rows.len();
        let sigma = (block.matrix.chunks(k)).map(|row| row.iter().map(|v| v.abs()).sum::<f64>()).fold(0.0, f64::max);
        let mut starts = vec![part.values.clone()];
        if k <= DECOMPOSED {
            work.spend(eigen_work(k));
            let mut first = part.clone();
            leading(block, &mut first)?;
            let sign = first.values.iter().map(|v| v * v.abs()).sum::<f64>();
            starts.push(first.values.iter().map(|v| v * sign).collect());
        }
        let mut image = vec![0.0; k];
        let mut best: Option<(f64, Vec<f64>)> = None;
        for mut v in starts {
            normalise(&mut v)?;
            for step in 0..POWER_STEPS {
                block.product(&v, &mut image);
                let mut next: Vec<f64> = (0..k).map(|a| (sigma * v[a] - image[a] - block.linear[a]).max(0.0)).collect();
                work.spend(SCALAR * (k * k) as f64);
                if normalise(&mut next).is_none() {
                    break;
                }
                let moved = v.iter().zip(&next).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
                v = next;
                if moved.sqrt() <= numerics::GAIN && step > 0 {
                    break;
                }
            }
            let value = block.value(&v);
            if best.as_ref().is_none_or(|best| value < best.0) {
                best = Some((value, v));
            }
        }
        (part.value, part.values) = best?;
        Some(())
    }

    /// Makes power steps on the rows of column t alone, with X ≥ 0 where that is asked for, if Aᵀ is at hand: then they cost
    /// much less than a product with C.
    pub(crate) fn climb(&self, part: &mut Part, t: usize, work: &TaskWork<'_>) {
        let concave = self.linear.is_none() && self.shift(t) <= 0.0;
        let Some((_, at)) = self.form.factor().filter(|_| concave) else {
            return;
        };
        let own = at.select(Axis(0), &part.rows);
        work.spend(own.len() as f64);
        let mut x = Array1::from_vec(std::mem::take(&mut part.values));
        let mut reached = 0.0;
        for _ in 0..numerics::STEPS {
            work.spend(2.0 * own.len() as f64);
            let image = own.t().dot(&x);
            let square = image.dot(&image);
            if !(square > (1.0 + CLIMBED) * reached) {
                break;
            }
            reached = square;
            let mut next = own.dot(&image);
            if self.rules.nonnegative {
                next.mapv_inplace(|v| v.max(0.0));
            }
            let norm = next.dot(&next).sqrt();
            x = next / norm;
        }
        part.values = x.to_vec();
    }

    /// Solves for column t alone; sets its values and its part of f.
    pub(crate) fn solo(&self, part: &mut Part, t: usize, work: &TaskWork<'_>) -> Option<()> {
        let mut point = SparsePoint { parts: vec![Part::default(); self.weights.len()] };
        point.parts[t] = std::mem::take(part);
        let solved = self.solve(&mut point, &[t], None, work);
        *part = std::mem::take(&mut point.parts[t]);
        solved
    }
}

/// Sets negative entries to zero and normalises; None if no entry is positive.
fn normalise(v: &mut [f64]) -> Option<()> {
    v.iter_mut().for_each(|v| *v = v.max(0.0));
    let norm = dot(v, v).sqrt();
    v.iter_mut().for_each(|v| *v /= norm);
    (norm > 0.0).then_some(())
}

/// Sets the entries to the eigenvector of the smallest eigenvalue, with the sign of the present ones.
fn leading(block: &ColumnForm, part: &mut Part) -> Option<()> {
    let k = part.rows.len();
    let matrix = ArrayView2::from_shape((k, k), &block.matrix).ok()?;
    let (_, vectors) = symmetric_eigen(matrix);
    let mut vector: Vec<f64> = vectors.column(0).to_vec();
    let norm = dot(&vector, &vector).sqrt();
    let sign = if dot(&vector, &part.values) < 0.0 { -norm } else { norm };
    vector.iter_mut().for_each(|v| *v /= sign);
    part.values = vector;
    part.value = block.value(&part.values);
    part.value.is_finite().then_some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The columns that share a row with another are those whose group has more columns.
        #[test]
        fn sharing_counts_columns_in_groups(supports in prop::collection::vec(prop::collection::btree_set(0usize..30, 1..6), 1..8)) {
            let parts = supports.iter().map(|rows| {
                let mut part = Part::default();
                rows.iter().for_each(|&i| part.insert(i, 1.0));
                part
            });
            let point = SparsePoint { parts: parts.collect() };
            let grouped = (0..supports.len()).filter(|&t| point.group(t).len() > 1).count();
            prop_assert_eq!(point.sharing(), grouped);
            let twice = SparsePoint { parts: point.parts.iter().chain(&point.parts).cloned().collect() };
            prop_assert_eq!(twice.sharing(), 2 * supports.len());
        }
    }
}
