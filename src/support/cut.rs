//! Truncation of a dense X to a limit on nonzeros: directly, or by [annealed ADMM](crate::riemann::admm).
//! ADMM minimises f, shifted to be concave, plus the indicator of the limit, whose proximal map keeps the
//! largest entries.

use std::cell::RefCell;

use ndarray::{Array2, Axis};

use super::model::{ColumnModel, SparsePoint};
use super::pattern::{self, Part};
use crate::limits::TaskWork;
use crate::manifold::{Manifold, polar, project_near_support};
use crate::objective::{DECOMPOSITION, gradient_work};
use crate::riemann::admm::{self, Terms};
use crate::signature::Signature;
use crate::start::assignment;
use crate::threads::Threads;

/// First β, in units of the [curvature](admm::curvatures) of a component, and last β, in units of the Lipschitz constant of ∇f.
const BETA: (f64, f64) = (0.06, 1.2);

/// Largest number of ADMM iterations.
pub(crate) const STEPS: f64 = 300.0;

/// Least number of ADMM iterations: with fewer the result is worse than any other start.
pub(crate) const LEAST_STEPS: f64 = 100.0;

/// Largest work of the ADMM iterations, in multiply-adds.
const WORK: f64 = 4e8;

/// The largest work for a [dense](ColumnModel::is_dense) problem.
const DENSE_WORK: f64 = 6e9;

/// Multiply-adds of a selection of the largest entries, or of all other passes over X in an iteration, per entry.
const PASSES: f64 = 200.0;

/// Truncations for a model; the work is charged to the task.
pub(crate) struct Cut<'a> {
    pub(crate) model: &'a ColumnModel<'a>,
    pub(crate) work: &'a TaskWork<'a>,
}

impl Cut<'_> {
    /// Returns the column of X for each limit, if columns can be exchanged: the assignment that keeps the largest sum of squares,
    /// each times the curvature of its column.
    fn matched(&self, x: &Array2<f64>, curvatures: &[f64]) -> Option<Vec<usize>> {
        let model = self.model;
        let limits = model.exchangeable()?;
        self.work.spend(PASSES * x.len() as f64);
        let mut costs = Array2::zeros((limits.len(), limits.len()));
        for ((column, mut costs), curvature) in x.columns().into_iter().zip(costs.columns_mut()).zip(curvatures) {
            let kept = model.rules.kept(column);
            let mut squares: Vec<f64> = column.iter().map(|&v| kept(v).powi(2)).collect();
            squares.sort_unstable_by(|a, b| b.total_cmp(a));
            costs.iter_mut().zip(limits).for_each(|(cost, &k)| *cost = -curvature * squares[..k].iter().sum::<f64>());
        }
        assignment(costs.view(), &|| true)
    }

    /// Selects the largest entries of a matrix within the cardinality and the rules.
    pub(crate) fn largest(&self, x: &Array2<f64>) -> Vec<Part> {
        let (rules, (n, r)) = (&self.model.rules, x.dim());
        self.work.spend(PASSES * (n * r) as f64);
        let kept: Vec<_> = x.columns().into_iter().map(|column| rules.kept(column)).collect();
        let value = |i: usize, t: usize| kept[t](x[[i, t]]);
        let size = |i: usize, t: usize| value(i, t).abs();
        let mut columns = vec![0; n];
        let mut parts = vec![Part::default(); r];
        let mut counts = vec![0; r];
        let mut take = |i: usize, t: usize, value: f64, counts: &mut Vec<usize>| {
            if parts[t].entry(i).is_none() && rules.joins(columns[i]) {
                parts[t].insert(i, value);
                columns[i] += 1;
                counts[t] += 1;
            }
        };
        for t in 0..r {
            rules.included[t].iter().for_each(|&i| take(i, t, value(i, t), &mut counts));
        }
        for t in 0..r {
            // Each column gets its largest entry before the rest is shared.
            let mine = (0..n).filter(|&i| rules.admits(i, t) && size(i, t) > 0.0);
            if let Some(i) = mine.max_by(|&a, &b| size(a, t).total_cmp(&size(b, t)))
                && rules.remaining(&counts, t) > 0
            {
                take(i, t, value(i, t), &mut counts);
            }
        }
        let mut order: Vec<(usize, usize)> = (0..n)
            .flat_map(|i| (0..r).map(move |t| (i, t)))
            .filter(|&(i, t)| size(i, t) > 0.0 && rules.admits(i, t))
            .collect();
        let larger = |a: &(usize, usize), b: &(usize, usize)| size(b.0, b.1).total_cmp(&size(a.0, a.1)).then(a.cmp(b));
        // Few entries are taken, so the largest ones are sorted first, and more only if needed.
        let (mut rest, mut some) = (order.as_mut_slice(), rules.cardinality.total());
        while !rest.is_empty() && (0..r).any(|t| rules.remaining(&counts, t) > 0) {
            some = some.min(rest.len());
            if some < rest.len() {
                rest.select_nth_unstable_by(some, larger);
            }
            let (largest, others) = rest.split_at_mut(some);
            largest.sort_unstable_by(larger);
            for &mut (i, t) in largest {
                if rules.remaining(&counts, t) > 0 {
                    take(i, t, value(i, t), &mut counts);
                }
            }
            (rest, some) = (others, 2 * some);
        }
        parts
    }

    /// Returns a feasible point near some entries, optimal on its supports. The supports lose entries if the
    /// projection requires it.
    pub(crate) fn feasible(&self, parts: Vec<Part>) -> Option<SparsePoint> {
        let point = (self.model).point_of(&self.near(parts, self.work)?, self.work)?;
        Some(self.optimised(point))
    }

    /// Returns the optimum on the supports of a feasible point, or the point itself if that takes too long.
    pub(crate) fn optimised(&self, point: SparsePoint) -> SparsePoint {
        let all: Vec<usize> = (0..point.parts.len()).collect();
        let optimised = self.model.optimised(point.clone(), &all, None, self.work);
        optimised.filter(|optimised| optimised.value() < point.value()).unwrap_or(point)
    }

    /// Returns orthonormal columns near some entries; `work` bounds the work of the projections.
    pub(crate) fn near(&self, parts: Vec<Part>, work: &TaskWork<'_>) -> Option<Array2<f64>> {
        let r = parts.len();
        let empty = |part: &Part| part.values.iter().all(|&v| v == 0.0);
        if parts.iter().any(empty) {
            return None;
        }
        let mut rows: Vec<usize> = parts.iter().flat_map(|part| part.rows.iter().copied()).collect();
        rows.sort_unstable();
        rows.dedup();
        let place = |i: usize| rows.partition_point(|&j| j < i);
        let mut x = Array2::zeros((rows.len(), r));
        for (t, mut part) in parts.into_iter().enumerate() {
            part.normalise();
            part.entries().for_each(|(i, v)| x[[place(i), t]] = v);
        }
        let signature = Signature::stiefel(rows.len());
        let manifold = Manifold::new(&signature, Array2::eye(r), Some(work));
        let small = project_near_support(&manifold, &x, &x)?;
        Some(pattern::on_rows(self.model.order(), &rows, small.view()))
    }

    /// Returns a feasible point from [annealed ADMM](Self::annealed).
    pub(crate) fn by_admm(&self, from: impl FnOnce() -> Array2<f64>, raise: f64, most: f64) -> Option<SparsePoint> {
        let work = if self.model.is_dense() { DENSE_WORK } else { WORK };
        self.feasible(self.annealed(from, raise, (most, work))?)
    }

    /// Returns the entries of Y at the end of annealed ADMM from the orthonormal n×r matrix `from()`.
    /// `raise`, from 0 to 1, raises the first β; `most` and `work` bound iterations and work. None if an
    /// iteration costs too much or the time is up.
    pub(crate) fn annealed(
        &self,
        from: impl FnOnce() -> Array2<f64>,
        raise: f64,
        (most, work): (f64, f64),
    ) -> Option<Vec<Part>> {
        let model = self.model;
        let (n, r) = (model.order(), model.weights.len());
        // The polar factor takes two products with r×r matrices.
        let polar_work = 2.0 * (n * r * r) as f64 + DECOMPOSITION * (r * r * r) as f64;
        let each = gradient_work(model.form, r) + PASSES * (n * r) as f64 + polar_work;
        let steps = (work / (each + PASSES * (n * r) as f64)).min(most);
        if !(steps >= LEAST_STEPS) {
            return None;
        }
        let steps = steps.floor();
        let go_on = || !self.work.expired();
        let curvatures = RefCell::new(vec![1.0; r]);
        let mut gradient = |x: &Array2<f64>| {
            self.work.spend(each);
            let mut gradient = (model.form).apply_while(x.view(), &Threads::serial(), &go_on)?;
            for ((i, t), g) in gradient.indexed_iter_mut() {
                *g = model.weights[t] * *g - model.shift(t) * x[[i, t]] + model.slope(i, t);
            }
            for (t, curvature) in curvatures.borrow_mut().iter_mut().enumerate() {
                *curvature = -x.column(t).dot(&gradient.column(t));
            }
            (go_on() && gradient.iter().all(|v| v.is_finite())).then_some(gradient)
        };
        let (x, lipschitz) = (from(), 2.0 * model.scale);
        // The last component may have zero curvature; the supports of the others would move too long.
        let level = admm::curvatures(&x, &gradient(&x)?, lipschitz)[(r - 1) / 2];
        let beta = BETA.0 * level * admm::RAISE.powf(raise);
        let mut parts = Vec::new();
        let mut done = -1.0;
        let terms = Terms {
            gradient: &mut gradient,
            polar: &polar,
            proximal: &mut |x, _| {
                let order = self.matched(&x, &curvatures.borrow()).unwrap_or_else(|| (0..r).collect());
                parts = self.largest(&x.select(Axis(1), &order));
                let mut y = Array2::zeros(x.dim());
                for (part, &t) in parts.iter().zip(&order) {
                    part.entries().for_each(|(i, v)| y[[i, t]] = v);
                }
                y
            },
            inertia: 0.0,
        };
        let progress = || {
            done += 1.0;
            done / (steps - 1.0)
        };
        admm::anneal(terms, x, (beta, BETA.1 * lipschitz), progress)?;
        Some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Clock;
    use crate::objective::Quadratic;
    use crate::problem::{Cardinality, Sparsity};
    use crate::start;
    use crate::support::rules::Rules;
    use std::time::Instant;

    #[test]
    fn the_largest_entries_are_those_of_a_whole_sort() {
        let (n, counts) = (300, [1, 2, 20]);
        let smooth = Quadratic::new(Array2::eye(n), None, None).unwrap();
        let clock = Clock::new(Instant::now(), None);
        let work = TaskWork::new(&clock, f64::INFINITY);
        let sparsity = Sparsity::new(Cardinality::Columns(counts.to_vec()));
        let (rules, _) = Rules::checked(&sparsity, &Array2::ones((3, n))).unwrap();
        let model = ColumnModel::new(&smooth, rules, vec![1.0; 3], (1.0, 1.0), &work).unwrap();
        let cut = Cut { model: &model, work: &work };
        // The entries of the last column are smaller than all others.
        let mut x = start::random(n, 3, 0);
        x.column_mut(2).mapv_inplace(|v| 1e-6 * v);
        let parts = cut.largest(&x);
        for (t, count) in counts.into_iter().enumerate() {
            let mut rows: Vec<usize> = (0..n).collect();
            rows.sort_by(|&i, &j| x[[j, t]].abs().total_cmp(&x[[i, t]].abs()));
            rows.truncate(count);
            rows.sort_unstable();
            assert_eq!(parts[t].rows, rows, "column {t}");
        }
    }
}
