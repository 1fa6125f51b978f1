//! Columns on common rows: min ½ tr(XᵀCX) over {XᵀX = I, few nonzero rows}, or with a penalty λ for each nonzero
//! row.
//!
//! On given rows S, any orthonormal basis V of the leading eigenvectors of −C_SS is optimal, and f* is ½ times the
//! sum of the r smallest eigenvalues of C_SS. Adding row j lowers f by at least the decrease that its coupling
//! w = C_jS V gives in one direction of their span (an eigenvalue of a 2×2 matrix). Dropping row i removes one entry
//! from the direction V_i of the span. Swaps are thus estimated by products alone, and the best ones are tried by
//! eigenvalues.

use ndarray::{Array2, ArrayView2, Axis};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use super::model::{ColumnModel, SparsePoint};
use super::moves::{AT_ONCE, TRIALS};
use super::opening::axes;
use super::pattern::{self, Part, SCALAR, largest_rows};
use super::power::{Directions, Powers, STEPS};
use super::rules::Rules;
use crate::limits::TaskWork;
use crate::numerics;
use crate::objective::{Quadratic, QuadraticForm};
use crate::problem::{Cardinality, RowSparsity, Sparsity};
use crate::start;
use crate::threads::Threads;

/// Number of rows of smallest loss and of largest gain that swaps combine.
const CANDIDATES: usize = 12;

/// Work after which no larger number of rows is tried.
const DOUBLED: f64 = 3e8;

/// A set of rows, r leading eigenvectors on them, and the value.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RowSet {
    pub(crate) rows: Vec<usize>,
    vectors: Array2<f64>,
    eigenvalues: Vec<f64>,
    pub(crate) value: f64,
}

/// The losses of the rows of a set, the smallest first, and the gains of others, the largest first.
struct Table {
    drops: Vec<(f64, usize)>,
    adds: Vec<(f64, usize)>,
}

/// f by sets of rows, and the limit on their number or the penalty for each.
pub(crate) struct RowModel<'a> {
    model: ColumnModel<'a>,
    sparsity: RowSparsity,
}

impl<'a> RowModel<'a> {
    /// `spectrum`: approximate extreme eigenvalues of C. None if the time ran out.
    pub(crate) fn new(
        form: &'a dyn QuadraticForm,
        r: usize,
        sparsity: RowSparsity,
        spectrum: (f64, f64),
        work: &TaskWork<'_>,
    ) -> Option<Self> {
        let n = form.order();
        let most = match sparsity {
            RowSparsity::Count(count) => count.min(n),
            RowSparsity::Penalty(_) => n,
        };
        let rules = Rules::new(&Sparsity::new(Cardinality::Total(most)), n, r).ok()?;
        Some(Self { model: ColumnModel::new(form, rules, vec![1.0; r], spectrum, work)?, sparsity })
    }

    /// Returns (n, r).
    pub(crate) fn dim(&self) -> (usize, usize) {
        (self.model.order(), self.model.weights.len())
    }

    /// Returns the penalty for each row.
    pub(crate) fn price(&self) -> f64 {
        match self.sparsity {
            RowSparsity::Count(_) => 0.0,
            RowSparsity::Penalty(lambda) => lambda,
        }
    }

    /// Returns the limit on rows, if there is one.
    pub(crate) fn limit(&self) -> Option<usize> {
        match self.sparsity {
            RowSparsity::Count(count) => Some(count.min(self.model.order())),
            RowSparsity::Penalty(_) => None,
        }
    }

    /// Returns the approximate number of nonzero rows.
    pub(crate) fn about(&self) -> usize {
        let (n, r) = self.dim();
        self.sparsity.about(r).min(n)
    }

    /// Returns the scale of differences of values.
    pub(crate) fn scale(&self) -> f64 {
        self.model.scale
    }

    /// Returns the work of a product of C with a column on about as many rows as there are.
    pub(crate) fn product_work(&self) -> f64 {
        self.dim().1 as f64 * self.model.product_work(self.about())
    }

    /// Returns the roots of the diagonal of −C, less its smallest entry, n×1.
    pub(crate) fn variances(&self) -> Array2<f64> {
        let diagonal = &self.model.diagonal;
        let highest = diagonal.iter().fold(f64::NEG_INFINITY, |m, v| m.max(*v));
        Array2::from_shape_fn((diagonal.len(), 1), |(i, _)| (highest - diagonal[i]).sqrt())
    }

    /// Returns X of a set of rows.
    pub(crate) fn dense(&self, state: &RowSet) -> Array2<f64> {
        pattern::on_rows(self.model.order(), &state.rows, state.vectors.view())
    }

    /// Returns f at X.
    pub(crate) fn smooth_value(&self, x: &Array2<f64>) -> f64 {
        self.model.form.value(x.view(), &Threads::serial())
    }

    /// Returns the best point on at least r rows; None if the time ran out or there are fewer rows.
    pub(crate) fn solved(&self, mut rows: Vec<usize>, work: &TaskWork<'_>) -> Option<RowSet> {
        rows.sort_unstable();
        rows.dedup();
        let r = self.dim().1;
        if work.expired() || rows.len() < r {
            return None;
        }
        let own = match self.model.is_whole() {
            true => None,
            false => self.model.form.restricted(&rows),
        };
        let (eigenvalues, vectors) = match own {
            Some(own) => axes(&*own, r, work)?,
            None => axes(&Quadratic::new(self.model.principal(&rows, work)?, None, None).ok()?, r, work)?,
        };
        Some(self.valued(rows, vectors, eigenvalues)).filter(|set| set.value.is_finite())
    }

    /// Returns the point of orthonormal eigenvectors of C, on all of their nonzero rows; None if the task expired.
    pub(crate) fn point_of(&self, x: ArrayView2<'_, f64>, work: &TaskWork<'_>) -> Option<RowSet> {
        let image = self.model.image(&x.to_owned(), work)?;
        let eigenvalues = x.columns().into_iter().zip(image.columns()).map(|(v, y)| v.dot(&y)).collect();
        let rows = pattern::nonzero_rows(x);
        let vectors = x.select(Axis(0), &rows);
        Some(self.valued(rows, vectors, eigenvalues))
    }

    fn valued(&self, rows: Vec<usize>, vectors: Array2<f64>, eigenvalues: Vec<f64>) -> RowSet {
        let smooth = 0.5 * eigenvalues.iter().sum::<f64>();
        // A row where all vectors vanish does not count.
        let live = pattern::nonzero_rows(vectors.view()).len();
        RowSet { value: smooth + self.price() * live as f64, rows, vectors, eigenvalues }
    }

    /// Returns C V for the vectors V of a set of rows, by columns.
    fn pulls(&self, state: &RowSet, work: &TaskWork<'_>) -> Vec<Vec<f64>> {
        let columns = state.vectors.columns().into_iter();
        let part = |v: ndarray::ArrayView1<'_, f64>| Part { rows: state.rows.clone(), values: v.to_vec(), value: 0.0 };
        self.model.gradients(&SparsePoint { parts: columns.map(part).collect() }, work)
    }

    /// Returns the best set that `made` gives for the limit on rows, from the best one before; with a penalty for doubling
    /// numbers of rows, until two of them in turn bring nothing, or [`DOUBLED`] work is done.
    pub(crate) fn best_count(
        &self,
        work: &TaskWork<'_>,
        made: impl Fn(usize, Option<&RowSet>) -> Option<RowSet>,
    ) -> Option<RowSet> {
        let (mut count, mut vain, begun) = (self.about(), 0, work.spent());
        let mut best = made(count, None)?;
        while self.limit().is_none() && count < self.dim().0 && vain < 2 && work.spent() - begun < DOUBLED {
            count = (2 * count).min(self.dim().0);
            match made(count, Some(&best)).filter(|next| next.value < best.value) {
                Some(next) => (best, vain) = (next, 0),
                None => vain += 1,
            }
        }
        Some(best)
    }

    /// Returns the best point on the rows of columns with disjoint supports, by truncated power iterations; None with a penalty.
    pub(crate) fn of_columns(
        &self,
        directions: &Directions<'_>,
        stage: (usize, usize),
        work: &TaskWork<'_>,
    ) -> Option<RowSet> {
        self.limit()?;
        let point = Powers { model: &self.model, work, price: 0.0 }.point(directions, stage)?;
        self.solved(point.parts.into_iter().flat_map(|part| part.rows).collect(), work)
    }

    /// Returns the best set of truncated block power iterations from X, with a [number of rows](Self::best_count).
    pub(crate) fn powered(&self, x: &Array2<f64>, work: &TaskWork<'_>) -> Option<RowSet> {
        self.best_count(work, |count, from| match from {
            Some(from) => self.powered_on(count, &self.ascent(from, work), work),
            None => self.powered_on(count, x, work),
        })
    }

    /// Returns the best set of `count` rows: each step takes the rows of largest norm of the [ascent](Self::ascent).
    fn powered_on(&self, count: usize, x: &Array2<f64>, work: &TaskWork<'_>) -> Option<RowSet> {
        let mut best = self.solved(largest_rows(x, count), work)?;
        for _ in 0..STEPS {
            let next = self.solved(largest_rows(&self.ascent(&best, work), count), work);
            match next.filter(|next| next.value < best.value - numerics::GAIN * self.scale()) {
                Some(next) => best = next,
                None => break,
            }
        }
        Some(best)
    }

    /// Returns σX − CX, σ making C negative semidefinite.
    fn ascent(&self, state: &RowSet, work: &TaskWork<'_>) -> Array2<f64> {
        let pulls = self.pulls(state, work);
        let mut y = self.dense(state) * self.model.shift(0);
        y.indexed_iter_mut().for_each(|((i, t), y)| *y -= pulls[t][i]);
        y
    }

    /// Returns the losses, and the `most` largest gains.
    fn table(&self, state: &RowSet, most: usize, work: &TaskWork<'_>) -> Table {
        let ((n, r), diagonal) = (self.dim(), &self.model.diagonal);
        work.spend(SCALAR * (4 * n * r) as f64);
        let pulls = self.pulls(state, work);
        // Eigenvalue of the direction u of the span, and the product of u with row i of C V.
        let along = |u: &[f64]| -> f64 { u.iter().zip(&state.eigenvalues).map(|(u, l)| u * u * l).sum() };
        let mut u = vec![0.0; r];
        let worst = state.eigenvalues[r - 1];
        let mut adds = Vec::new();
        for j in (0..n).filter(|j| state.rows.binary_search(j).is_err()) {
            let norm = pulls.iter().map(|pull| pull[j].powi(2)).sum::<f64>().sqrt();
            let mut gain = 0.5 * (worst - diagonal[j]).max(0.0);
            if norm > 0.0 {
                u.iter_mut().zip(&pulls).for_each(|(u, pull)| *u = pull[j] / norm);
                gain = gain.max(pattern::gain(along(&u), norm, diagonal[j]));
            }
            adds.push((gain, j));
        }
        pattern::keep_best(&mut adds, most);
        let mut drops: Vec<(f64, usize)> = (state.rows.iter().zip(state.vectors.outer_iter()))
            .map(|(&i, v)| {
                let norm = v.dot(&v).min(1.0).sqrt();
                if norm == 0.0 {
                    return (0.0, i);
                }
                u.iter_mut().zip(v).for_each(|(u, v)| *u = v / norm);
                let lambda = along(&u);
                let coupling: f64 = u.iter().zip(&pulls).map(|(u, pull)| u * pull[i]).sum();
                (0.5 * (pattern::without(lambda, norm, coupling, diagonal[i]) - lambda), i)
            })
            .collect();
        drops.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        Table { drops, adds }
    }

    /// Returns the set after dropping and adding rows.
    fn changed(
        &self,
        state: &RowSet,
        drops: impl IntoIterator<Item = usize>,
        adds: impl IntoIterator<Item = usize>,
        work: &TaskWork<'_>,
    ) -> Option<RowSet> {
        let mut drops: Vec<usize> = drops.into_iter().collect();
        drops.sort_unstable();
        let mut rows = state.rows.clone();
        rows.retain(|row| drops.binary_search(row).is_err());
        rows.extend(adds);
        self.solved(rows, work)
    }

    /// Drops or adds rows until their number is the limit.
    pub(crate) fn fitted(&self, mut state: RowSet, work: &TaskWork<'_>) -> Option<RowSet> {
        let Some(limit) = self.limit() else {
            return Some(state);
        };
        while state.rows.len() != limit {
            if work.expired() {
                return None;
            }
            let many = state.rows.len().abs_diff(limit).div_ceil(AT_ONCE);
            let table = self.table(&state, many, work);
            let chosen = |from: Vec<(f64, usize)>| from.into_iter().take(many).map(|row| row.1);
            state = match state.rows.len() > limit {
                true => self.changed(&state, chosen(table.drops), None, work)?,
                false => self.changed(&state, None, chosen(table.adds), work)?,
            };
        }
        Some(state)
    }

    /// Makes the first of the best swaps and, with a penalty, single adds and drops, whose value is below `goal`. Before
    /// these, with a penalty, all drops and adds that pay for themselves are made together, or fewer of the best.
    pub(crate) fn step(&self, state: &mut RowSet, goal: f64, work: &TaskWork<'_>) -> bool {
        let most = if self.limit().is_some() { CANDIDATES } else { self.dim().0 };
        let table = self.table(state, most, work);
        if self.limit().is_none() && self.step_together(state, &table, goal, work) {
            return true;
        }
        // With a penalty, a swap with no row is an add or a drop.
        let none = self.limit().is_none().then(|| (self.price(), None));
        let some = |list: &[(f64, usize)]| -> Vec<(f64, Option<usize>)> {
            list.iter().take(CANDIDATES).map(|&(value, row)| (value, Some(row))).chain(none).collect()
        };
        let (drops, adds) = (some(&table.drops), some(&table.adds));
        let swaps = drops.iter().flat_map(|&(loss, i)| adds.iter().map(move |&(gain, j)| (gain - loss, (i, j))));
        let mut swaps: Vec<_> = swaps.filter(|swap| swap.1 != (None, None)).collect();
        pattern::keep_best(&mut swaps, TRIALS);
        let mut in_time = swaps.into_iter().take_while(|_| !work.expired());
        let lower = |(_, (drop, add))| self.changed(state, drop, add, work).filter(|next| next.value < goal);
        let found = in_time.find_map(lower);
        found.map(|next| *state = next).is_some()
    }

    /// Makes many drops whose loss is below the penalty, and adds whose gain is above it; returns whether the value is below
    /// `goal`.
    fn step_together(&self, state: &mut RowSet, table: &Table, goal: f64, work: &TaskWork<'_>) -> bool {
        let drops = table.drops.partition_point(|drop| drop.0 < self.price());
        let adds = table.adds.partition_point(|add| add.0 > self.price());
        let mut share = 1;
        while drops.max(adds) / share > 1 && !work.expired() {
            let rows = |from: &[(f64, usize)], count: usize| -> Vec<usize> {
                from[..count / share].iter().map(|row| row.1).collect()
            };
            let next = self.changed(state, rows(&table.drops, drops), rows(&table.adds, adds), work);
            if let Some(next) = next.filter(|next| next.value < goal) {
                *state = next;
                return true;
            }
            share *= AT_ONCE;
        }
        false
    }

    /// Replaces some rows at random, by rows among the given `near` ones or any.
    pub(crate) fn swapped(
        &self,
        state: &RowSet,
        near: &[usize],
        random: &mut impl Rng,
        work: &TaskWork<'_>,
    ) -> Option<RowSet> {
        let k = state.rows.len();
        let times = pattern::swaps(random, k).min(k.saturating_sub(1)).max(1);
        let mut rows = state.rows.clone();
        rows.shuffle(random);
        rows.truncate(k - times);
        rows.extend((0..times).map(|_| pattern::random_row(random, near, self.model.order())));
        self.fitted(self.solved(rows, work)?, work)
    }

    /// Returns the point of truncated block power iterations with other `columns` in place of random vectors of the span.
    pub(crate) fn renewed(
        &self,
        state: &RowSet,
        columns: &Array2<f64>,
        random: &mut impl Rng,
        work: &TaskWork<'_>,
    ) -> Option<RowSet> {
        let (n, r) = self.dim();
        work.spend((n * r * r) as f64);
        let mut y = self.ascent(state, work).dot(&start::random(r, r, random.random()));
        for (mut old, new) in y.columns_mut().into_iter().zip(columns.columns()) {
            let scale = (old.dot(&old) / new.dot(&new)).sqrt();
            old.assign(&(scale * &new));
        }
        self.fitted(self.powered_on(state.rows.len(), &y, work)?, work)
    }
}

impl RowSparsity {
    /// Returns the approximate number of nonzero rows, for r columns.
    pub(crate) fn about(self, r: usize) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Penalty(_) => 2 * r,
        }
    }
}
