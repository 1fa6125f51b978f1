//! Truncated power iterations (Yuan and Zhang, JMLR 14, 2013): one column on few free rows.
//!
//! A step takes the largest entries of y = −∇f + σx among the free rows, σ making C negative semidefinite, and
//! solves on these rows. Several runs share each product with C. They begin at leading [directions](Directions)
//! of the free rows, columns of C, or a perturbed column.
//!
//! With −C ≈ FFᵀ, F n×p, the leading directions on free rows S are F u for the leading eigenvectors u of
//! F_SᵀF_S. For data of m samples, with m at most [`SAMPLES`] and below n, F = Aᵀ is exact (dense, or a copy); otherwise F is
//! made of approximate eigenvectors.

use std::borrow::Cow;
use std::ops::Range;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, Axis, s};

use super::model::{ColumnModel, SparsePoint};
use super::pattern::{Part, SCALAR, largest};
use super::rules::Rules;
use crate::limits::TaskWork;
use crate::linalg::symmetric_eigen;
use crate::numerics;
use crate::objective::{QuadraticForm, eigen_work, gradient_work};
use crate::problem::Cardinality;
use crate::rows::Rows;
use crate::start;
use crate::threads::Threads;

/// Most samples of data whose directions are exact: their p×p matrices are decomposed once for each column.
const SAMPLES: usize = 300;

/// Most entries of a dense copy of sparse data with few samples.
const COPIED: usize = 1 << 23;

/// Most directions from which a column begins.
const DIRECTIONS: usize = 30;

/// Most passes over all columns, and directions from which a column begins, of a quick, a short and a long run.
pub(crate) const STAGES: [(usize, usize); 3] = [(1, 2), (3, 5), (3, DIRECTIONS)];

/// Cost of leading axes, in products with C.
const AXES: f64 = 10.0;

/// Largest work of axes to rounding, in multiply-adds; beyond, the axes are approximate.
const AXES_WORK: f64 = 3e8;

/// Most steps of a run.
pub(super) const STEPS: usize = 60;

/// Square of a singular value, relative to the largest one, above which its singular vector is known to rounding.
const RANK: f64 = 1e-8;

/// Most rows of a column that is solved on its rows.
pub(crate) const EXACT: usize = 100;

/// F and s with −C ≈ s·FFᵀ, and FᵀF.
#[derive(Clone)]
pub(crate) struct Directions<'a> {
    /// By rows.
    f: Cow<'a, [f64]>,
    scale: f64,
    gram: Array2<f64>,
}

impl<'a> Directions<'a> {
    /// Returns exact directions for −C = s·AᵀA with few samples; None for any other C.
    fn of_data(form: &'a dyn QuadraticForm, work: &TaskWork<'_>) -> Option<Self> {
        let (n, factor) = (form.order(), form.factor());
        let (scale, m) = form.data()?;
        if !(scale < 0.0) || m > SAMPLES || m >= n {
            return None;
        }
        let f: Cow<'a, [f64]> = match factor {
            Some((_, at)) => at.to_slice()?.into(),
            // Sparse data are not multiplied by Aᵀ, but a copy of it serves here.
            None if n * m <= COPIED => {
                work.spend(0.5 * form.product_work() * m as f64);
                let at = form.lifted(Array2::eye(m).view())?;
                Rows::from(at).into_entries().into()
            }
            None => return None,
        };
        Some(Self::new(f, m, -scale, work))
    }

    /// Returns directions from eigenvectors of C scaled by the roots of their curvatures.
    pub(crate) fn scaled(basis: Array2<f64>, work: &TaskWork<'_>) -> Self {
        let p = basis.ncols();
        Self::new(Rows::from(basis).into_entries().into(), p, 1.0, work)
    }

    fn new(f: Cow<'a, [f64]>, p: usize, scale: f64, work: &TaskWork<'_>) -> Self {
        work.spend((f.len() * p) as f64);
        let mut directions = Self { gram: Array2::zeros((p, p)), scale, f };
        let f = directions.factor();
        directions.gram = f.t().dot(&f);
        directions
    }

    /// Returns F.
    fn factor(&self) -> ArrayView2<'_, f64> {
        let p = self.gram.nrows();
        ArrayView2::from_shape((self.f.len() / p, p), &self.f).expect("p entries for each row")
    }

    /// Returns eigenvectors of C for its smallest eigenvalues, as many as are known to rounding within `count`, and the
    /// extreme eigenvalues of C; None if fewer are known.
    fn axes(&self, count: Range<usize>, work: &TaskWork<'_>) -> Option<(Array2<f64>, (f64, f64))> {
        let f = self.factor();
        let (n, p) = f.dim();
        work.spend(eigen_work(p) + (n * p * count.end) as f64);
        let (values, vectors) = symmetric_eigen(self.gram.view());
        let largest = values[p - 1];
        let known = values.iter().rev().take_while(|&&v| v > RANK * largest);
        let known = known.take(count.end).count();
        if known < count.start {
            return None;
        }
        let mut axes = f.dot(&vectors.slice(s![.., p - known..;-1]));
        for (mut axis, value) in axes.columns_mut().into_iter().zip(values.iter().rev()) {
            axis /= value.sqrt();
        }
        Some((axes, (-self.scale * largest, 0.0)))
    }

    /// Returns the `count` leading directions on the free rows; all rows of each.
    fn leading(&self, free: &[bool], count: usize, work: &TaskWork<'_>) -> Vec<Vec<f64>> {
        let f = self.factor();
        let (n, p) = f.dim();
        let count = count.min(p);
        let taken: Vec<usize> = (0..n).filter(|&i| !free[i]).collect();
        let mut gram = self.gram.clone();
        match 2 * taken.len() <= n {
            true => {
                let gone = f.select(Axis(0), &taken);
                general_mat_mul(-1.0, &gone.t(), &gone, 1.0, &mut gram);
            }
            false => {
                let rows: Vec<usize> = (0..n).filter(|&i| free[i]).collect();
                let left = f.select(Axis(0), &rows);
                general_mat_mul(1.0, &left.t(), &left, 0.0, &mut gram);
            }
        }
        let changed = taken.len().min(n - taken.len());
        work.spend((changed * p * p + n * p * count) as f64 + eigen_work(p));
        let vectors = symmetric_eigen(gram.view()).1;
        self.along(vectors.slice(s![.., p - count..;-1]))
    }

    /// Returns F u for each column u.
    fn along(&self, u: ArrayView2<'_, f64>) -> Vec<Vec<f64>> {
        let mut directions = Array2::zeros((u.ncols(), self.factor().nrows()));
        general_mat_mul(1.0, &u.t(), &self.factor().t(), 0.0, &mut directions);
        let rows = directions.outer_iter();
        rows.map(|row| row.to_vec()).collect()
    }

    /// Returns F FᵀF u, in which leading directions have the most weight.
    pub(crate) fn mixture(&self, u: &Array2<f64>, work: &TaskWork<'_>) -> Vec<f64> {
        work.spend((self.f.len() + self.gram.len()) as f64);
        self.along(self.gram.dot(u).view()).remove(0)
    }

    /// Returns p.
    pub(crate) fn len(&self) -> usize {
        self.gram.nrows()
    }
}

/// Eigenvectors of C for its smallest eigenvalues.
pub(crate) struct Axes<'a> {
    /// At least r of them, n×p.
    pub(crate) vectors: Array2<f64>,
    /// Approximate extreme eigenvalues.
    pub(crate) spectrum: (f64, f64),
    /// The exact directions, for few samples.
    pub(crate) exact: Option<Directions<'a>>,
}

impl<'a> Axes<'a> {
    /// Returns at least r axes, [`DIRECTIONS`] of them if that is cheap; if `rough`, those of the fewest products with C unless
    /// they are exact. None if the task expired.
    pub(crate) fn leading(
        form: &'a dyn QuadraticForm,
        (r, rough): (usize, bool),
        threads: &Threads,
        work: &TaskWork<'_>,
    ) -> Option<Self> {
        let n = form.order();
        let many = DIRECTIONS.clamp(r, n.max(r));
        let exact = Directions::of_data(form, work);
        if let Some((vectors, spectrum)) = (exact.as_ref()).and_then(|exact| exact.axes(r..many, work)) {
            return Some(Self { vectors, spectrum, exact });
        }
        let (count, most) = match AXES * gradient_work(form, many) <= AXES_WORK {
            _ if rough => (r, 0.0),
            true => (many, AXES_WORK),
            false => (r, AXES_WORK),
        };
        let go_on = || !work.expired();
        let (vectors, spectrum, spent) = start::spectral_within(form, count, most, threads, &go_on)?;
        work.spend(spent);
        Some(Self { vectors, spectrum, exact })
    }

    /// Returns the directions, from the scaled axes if they are not exact; None if the task expired.
    pub(crate) fn directions(&self, form: &dyn QuadraticForm, work: &TaskWork<'_>) -> Option<Directions<'a>> {
        match &self.exact {
            Some(exact) => Some(exact.clone()),
            None => Some(Directions::scaled(self.scaled(form, work)?, work)),
        }
    }

    /// Returns the axes scaled by the roots of their curvatures, as in the data; None if the task expired.
    pub(crate) fn scaled(&self, form: &dyn QuadraticForm, work: &TaskWork<'_>) -> Option<Array2<f64>> {
        let mut scaled = self.vectors.clone();
        work.spend(gradient_work(form, scaled.ncols()));
        let image = form.apply_while(scaled.view(), &Threads::serial(), &|| !work.expired())?;
        for (mut axis, image) in scaled.columns_mut().into_iter().zip(image.columns()) {
            let curvature = -axis.dot(&image);
            axis *= curvature.max(0.0).sqrt();
        }
        Some(scaled)
    }
}

/// Returns the number of nonzeros of column t if all columns have about the same number.
pub(crate) fn share(rules: &Rules, t: usize) -> usize {
    match &rules.cardinality {
        Cardinality::Columns(counts) => counts[t],
        Cardinality::Total(total) => {
            let r = rules.included.len();
            total / r + usize::from(t < total % r)
        }
    }
}

/// A run of truncated power iterations: y, and the column before it.
struct Run {
    y: Vec<f64>,
    part: Part,
    /// Its part of f and the penalty; infinite before the first step.
    cost: f64,
}

/// Truncated power iterations for the columns of a model; the work is charged to the task.
pub(crate) struct Powers<'a> {
    pub(crate) model: &'a ColumnModel<'a>,
    pub(crate) work: &'a TaskWork<'a>,
    /// Penalty λ of a nonzero. A step keeps the entries that lower f by more than λ: with y = AᵀA x, those with
    /// y² > 2λ‖A x‖² (Journée, Nesterov, Richtárik and Sepulchre, JMLR 11, 2010).
    pub(crate) price: f64,
}

impl Powers<'_> {
    /// Returns f of a column, and the penalty.
    fn cost(&self, part: &Part) -> f64 {
        part.value + self.price * part.rows.len() as f64
    }

    /// Returns the best column t with at most `count` nonzeros on free rows, from each direction y; None if
    /// there is none.
    pub(crate) fn column(&self, t: usize, count: usize, free: &[bool], directions: Vec<Vec<f64>>) -> Option<Part> {
        let (model, n) = (self.model, free.len());
        let least = numerics::GAIN * model.scale;
        let mut runs: Vec<Run> =
            directions.into_iter().map(|y| Run { y, part: Part::default(), cost: f64::INFINITY }).collect();
        let mut best: Option<Part> = None;
        for _ in 0..STEPS {
            let mut rising = Vec::new();
            for mut run in runs {
                self.work.spend(2.0 * SCALAR * n as f64);
                let Some(mut part) = self.largest(t, count, free, &run) else {
                    continue;
                };
                if self.work.expired() {
                    return best;
                }
                let is_exact = part.rows.len() <= EXACT && !model.rules.nonnegative;
                if is_exact && part.rows == run.part.rows {
                    continue;
                }
                if is_exact {
                    if model.solo(&mut part, t, self.work).is_none() {
                        continue;
                    }
                    model.drop_negligible(&mut part, t);
                } else {
                    model.climb(&mut part, t, self.work);
                }
                if !is_exact || self.cost(&part) < run.cost - least {
                    run.part = part;
                    rising.push((run, is_exact));
                }
            }
            let parts: Vec<(usize, &Part)> = rising.iter().map(|run| (t, &run.0.part)).collect();
            let gradients = model.gradients_of(&parts, self.work);
            runs = Vec::new();
            for ((mut run, is_exact), gradient) in rising.into_iter().zip(gradients) {
                if !is_exact {
                    let terms = run.part.entries();
                    let terms = terms.map(|(i, v)| v * (gradient[i] + model.slope(i, t)));
                    run.part.value = 0.5 * terms.sum::<f64>();
                }
                let cost = self.cost(&run.part);
                if best.as_ref().is_none_or(|best| cost < self.cost(best)) {
                    best = Some(run.part.clone());
                }
                if cost < run.cost - if is_exact { 0.0 } else { least } {
                    run.cost = cost;
                    run.y = self.ascent(t, &run.part, gradient);
                    runs.push(run);
                }
            }
            if runs.is_empty() || self.work.expired() {
                break;
            }
        }
        if let Some(best) = best.as_mut().filter(|_| model.rules.nonnegative) {
            model.solo(best, t, self.work);
            model.drop_negligible(best, t);
        }
        best
    }

    /// Returns −g + σx for the gradient g of a column x.
    pub(crate) fn ascent(&self, t: usize, part: &Part, mut gradient: Vec<f64>) -> Vec<f64> {
        gradient.iter_mut().for_each(|g| *g = -*g);
        let shift = self.model.shift(t);
        part.entries().for_each(|(i, v)| gradient[i] += shift * v);
        gradient
    }

    /// Returns the unit vector on the `count` largest entries of y among the free rows, included ones first. With a
    /// penalty, these are the entries that lower f by more than it, and the largest entry.
    fn largest(&self, t: usize, count: usize, free: &[bool], run: &Run) -> Option<Part> {
        let (rules, y) = (&self.model.rules, &run.y[..]);
        let included = &rules.included[t];
        let most = count.checked_sub(included.len())?;
        let size = |i: usize| match rules.nonnegative {
            true => y[i],
            false => y[i].abs(),
        };
        let open = |i: usize| free[i] && included.binary_search(&i).is_err();
        // In sample space, y is the inner product of A_i with a unit vector, times the norm of A x.
        let image = match run.part.rows.is_empty() {
            true => 1.0,
            false => -2.0 * run.part.value,
        };
        let worth = (2.0 * self.price * image).sqrt();
        let chosen = |most: usize, worth: f64| {
            largest(y.len(), most, |i, least| match size(i) {
                size if size > least.max(worth) && open(i) => size,
                _ => 0.0,
            })
        };
        let mut rows = chosen(most, worth);
        if rows.is_empty() && worth > 0.0 {
            rows = chosen(most.min(1), 0.0);
        }
        let mut rows: Vec<usize> = rows.into_iter().map(|(_, i)| i).collect();
        rows.extend(included);
        rows.sort_unstable();
        let least = match rules.nonnegative {
            true => 0.0,
            false => f64::NEG_INFINITY,
        };
        let mut part = Part { values: rows.iter().map(|&i| y[i].max(least)).collect(), rows, value: 0.0 };
        part.normalise().then_some(part)
    }

    /// Returns the best column s with one nonzero, on a row of no other column.
    fn single(&self, s: usize, parts: &[Part]) -> Option<Part> {
        let (model, free) = (self.model, self.model.rules.unshared(parts, s));
        let cost = |i: usize| 0.5 * model.weights[s] * model.diagonal[i] + model.slope(i, s);
        let rows = (0..free.len()).filter(|&i| free[i] && model.rules.included[s].is_empty());
        let best = rows.min_by(|&a, &b| cost(a).total_cmp(&cost(b)))?;
        Some(Part { value: cost(best), ..Part::unit(best) })
    }

    /// Returns a point with disjoint supports, one column after the other from leading directions; later
    /// passes begin each column also at its present values. Columns that the task has no work for get one row each.
    /// None if there are no such rows.
    pub(crate) fn point(&self, directions: &Directions<'_>, (passes, count): (usize, usize)) -> Option<SparsePoint> {
        let rules = &self.model.rules;
        let r = rules.included.len();
        let mut parts = vec![Part::default(); r];
        let total = |parts: &[Part]| parts.iter().map(|part| self.cost(part)).sum::<f64>();
        for pass in 0..passes {
            let is_new = pass == 0;
            let before = total(&parts);
            for t in 0..r {
                let free = rules.unshared(&parts, t);
                let mut from = directions.leading(&free, count, self.work);
                if rules.nonnegative {
                    // An axis has two signs.
                    let opposite = |y: &Vec<f64>| y.iter().map(|v| -v).collect();
                    from.extend(from.iter().map(opposite).collect::<Vec<_>>());
                }
                if !is_new {
                    let gradient = self.model.gradient(&parts[t], t, self.work);
                    from.push(self.ascent(t, &parts[t], gradient));
                }
                // A column leaves a row for each one that has none yet.
                let later = parts.iter().skip(t + 1).filter(|part| part.rows.is_empty()).count();
                let open = free.iter().filter(|free| **free).count().saturating_sub(later);
                let found = self.column(t, share(rules, t).min(open), &free, from);
                match found {
                    Some(part) if is_new || self.cost(&part) < self.cost(&parts[t]) => {
                        parts[t] = part;
                    }
                    None if is_new => parts[t] = self.single(t, &parts)?,
                    _ => {}
                }
                if self.work.expired() && is_new {
                    for s in t + 1..r {
                        parts[s] = self.single(s, &parts)?;
                    }
                    break;
                }
            }
            let fell = total(&parts) < before - numerics::GAIN * self.model.scale;
            if self.work.expired() || !is_new && !fell {
                break;
            }
        }
        Some(SparsePoint { parts })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::limits::Clock;
    use crate::objective::{DenseColumns, GramQuadratic, Objective, Quadratic};
    use crate::problem::Sparsity;

    /// However little work there is, every column gets rows of its own, and more work gives no higher F.
    #[test]
    fn columns_without_work_get_a_row_each() {
        let (m, n, r) = (12, 90, 7);
        let a = start::random(n, m, 2).reversed_axes();
        let form = Quadratic::from_data(a.view()).unwrap();
        let clock = Clock::new(Instant::now(), None);
        let free = TaskWork::new(&clock, f64::INFINITY);
        let axes = Axes::leading(&form, (r, false), &Threads::serial(), &free).unwrap();
        let directions = axes.directions(&form, &free).unwrap();
        for nonnegative in [false, true] {
            let sparsity = Sparsity::new(Cardinality::Total(n * r)).with_nonnegative(nonnegative);
            let rules = Rules::new(&sparsity, n, r).unwrap();
            let model = ColumnModel::new(&form, rules, vec![1.0; r], axes.spectrum, &free).unwrap();
            let mut before = f64::INFINITY;
            for end in [0.0, 1e5, 3e5, 1e6, f64::INFINITY] {
                let work = TaskWork::ending(&clock, f64::INFINITY, end);
                let powers = Powers { model: &model, work: &work, price: 0.01 };
                let point = powers.point(&directions, STAGES[0]).unwrap();
                let mut rows: Vec<usize> = point.parts.iter().flat_map(|part| part.rows.clone()).collect();
                let count = rows.len();
                rows.sort_unstable();
                rows.dedup();
                assert!(rows.len() == count && point.parts.iter().all(|part| !part.rows.is_empty()));
                let x = point.dense(n);
                let value = form.value(x.view(), &Threads::serial()) + 0.01 * count as f64;
                let known: f64 = point.parts.iter().map(|part| powers.cost(part)).sum();
                assert!((value - known).abs() <= 1e-9 * value.abs(), "{end}: {value} {known}");
                assert!(value <= before, "{end}: {value} {before}");
                before = value;
            }
        }
    }

    /// A penalty so small that the first column would take all rows leaves one for each column. Where Aᵀ is at hand, long
    /// columns are the best ones on their rows.
    #[test]
    fn long_columns_leave_rows_and_are_solved_on_theirs() {
        for (m, n, r) in [(7, 9, 5), (12, 40, 7), (20, 400, 3), (15, 900, 6)] {
            let a = start::random(n, m, 3).reversed_axes();
            let form = GramQuadratic::new(DenseColumns::new(a.view()).unwrap(), -1.0, None).unwrap();
            let clock = Clock::new(Instant::now(), None);
            let work = TaskWork::new(&clock, f64::INFINITY);
            let axes = Axes::leading(&form, (r, false), &Threads::serial(), &work).unwrap();
            let directions = axes.directions(&form, &work).unwrap();
            let rules = Rules::new(&Sparsity::new(Cardinality::Total(n * r)), n, r).unwrap();
            let model = ColumnModel::new(&form, rules, vec![1.0; r], axes.spectrum, &work).unwrap();
            for price in [1e-12, 1e-5] {
                let powers = Powers { model: &model, work: &work, price };
                let point = powers.point(&directions, STAGES[0]).unwrap();
                let x = point.dense(n);
                let gram = x.t().dot(&x) - Array2::<f64>::eye(r);
                assert!(gram.iter().all(|v| v.abs() < 1e-12), "{n} {r}");
                for (t, part) in point.parts.iter().enumerate() {
                    let mut best = part.clone();
                    model.solo(&mut best, t, &work).unwrap();
                    assert!(part.value <= best.value * (1.0 - 1e-6), "{n} {r} {t}: {} {}", part.value, best.value);
                }
            }
        }
    }
}
