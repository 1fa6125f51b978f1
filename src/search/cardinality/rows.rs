//! Limits on nonzero rows: min ½ tr(XᵀCX) over {XᵀX = I, few nonzero rows}, or with a penalty λ for each
//! nonzero row.
//!
//! On given rows S, any orthonormal basis of the leading eigenvectors of −C_SS is optimal, and f* is ½ times
//! the sum of the r smallest eigenvalues of C_SS: a search over sets of rows. Let V be these eigenvectors.
//! Adding row j lowers f by at least the decrease that its coupling w = C_jS V gives in one direction of
//! their span (an eigenvalue of a 2×2 matrix). Dropping row i removes one entry from the direction V_i of the
//! span. Swaps are thus estimated by products alone, and the best ones are tried by eigenvalues.

use ndarray::{Array2, Axis, s};
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::limited::{Limited, searched};
use super::powered::on_rows;
use crate::continuation::top_diagonal;
use crate::error::Result;
use crate::limits::TaskWork;
use crate::numerics;
use crate::objective::{Columns, Quadratic, QuadraticForm, SparseVector, gradient_work};
use crate::problem::RowSparsity;
use crate::report::AutoSolution;
use crate::search::chains::SearchSpace;
use crate::search::incumbent::Watched;
use crate::start::is_spectrum_exact;
use crate::support::{self, AT_ONCE, Axes, BYTES, SCALAR, TRIALS, largest_rows, opening::axes};
use crate::threads::Threads;

/// Number of rows of smallest loss and of largest gain that swaps combine.
const CANDIDATES: usize = 12;

/// The kind of perturbation by truncated power iterations.
const POWERED: usize = 1;

/// Range of the share of the rows that a perturbation by truncated power iterations keeps.
const KEPT: (f64, f64) = (0.2, 0.9);

/// Blocks of axes from which truncated power iterations start.
const BLOCKS: usize = 6;

/// Most steps of truncated power iterations from each block.
const STEPS: usize = 30;

/// Minimises f under a limit on nonzero rows, or with a penalty for each, from the rows of `x0`. X is exactly optimal
/// for its rows, up to a rotation of its columns, which are eigenvectors of C on these rows.
pub(super) fn minimized(
    limited: &Limited<'_>,
    sparsity: RowSparsity,
    x0: Option<Array2<f64>>,
    watched: Watched<'_>,
) -> Result<AutoSolution> {
    let (form, threads) = (limited.form, limited.threads);
    let (n, r) = (form.order(), limited.problem.components);
    let lambda = match sparsity {
        RowSparsity::Count(_) => 0.0,
        RowSparsity::Penalty(lambda) => lambda,
    };
    let given = x0.as_ref().map(|x0| support::nonzero_rows(x0.view()));
    let within = |rows: &Vec<usize>| !matches!(sparsity, RowSparsity::Count(count) if rows.len() > count);
    let first = std::iter::once(top_diagonal(form, r)).chain(x0.filter(|_| given.as_ref().is_some_and(within)));
    let about = sparsity.about(r).min(n);
    let truncated = |y: &Array2<f64>| Some(on_rows(about, y));
    let prepared = |work: &TaskWork<'_>| {
        let go_on = || !work.expired();
        let axes = Axes::leading(form, (r, false), threads, work)?;
        let (basis, (low, high)) = (axes.vectors, axes.spectrum);
        Some(RowSets {
            scale: (0.5 * (high - low)).max(f64::MIN_POSITIVE),
            shift: high.max(0.0),
            columns: Columns::cheapest(form, BYTES, &go_on)?,
            form,
            diagonal: form.diagonal(),
            basis: basis.slice(s![.., ..r]).to_owned(),
            axes: basis,
            given: given.clone(),
            sparsity,
            lambda,
            opening: Vec::new(),
        })
    };
    searched(limited, first.collect(), truncated, prepared, watched)
}

impl RowSparsity {
    /// Returns the approximate number of nonzero rows, for r columns.
    fn about(self, r: usize) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Penalty(_) => 2 * r,
        }
    }
}

/// A set of rows, the eigenvectors on these rows, and the value.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct RowSet {
    rows: Vec<usize>,
    vectors: Array2<f64>,
    eigenvalues: Vec<f64>,
    value: f64,
}

/// The losses of the rows of a set and the gains of others, best first.
#[derive(Default)]
struct Table {
    drops: Vec<(f64, usize)>,
    adds: Vec<(f64, usize)>,
}

/// The search space of sets of rows.
struct RowSets<'a> {
    form: &'a dyn QuadraticForm,
    columns: Columns<'a>,
    diagonal: Vec<f64>,
    /// r leading axes, and all that are known.
    basis: Array2<f64>,
    axes: Array2<f64>,
    /// Makes C negative semidefinite.
    shift: f64,
    given: Option<Vec<usize>>,
    sparsity: RowSparsity,
    lambda: f64,
    scale: f64,
    /// Points from which the first chains start.
    opening: Vec<RowSet>,
}

impl RowSets<'_> {
    fn components(&self) -> usize {
        self.basis.ncols()
    }

    /// Returns the roots of the diagonal of −C, less its smallest entry, n×1.
    fn variances(&self) -> Array2<f64> {
        let highest = self.diagonal.iter().fold(f64::NEG_INFINITY, |m, v| m.max(*v));
        Array2::from_shape_fn((self.diagonal.len(), 1), |(i, _)| (highest - self.diagonal[i]).sqrt())
    }

    /// Returns the best point on at least r rows; None if the time ran out or there are fewer rows.
    fn solved(&self, mut rows: Vec<usize>, work: &TaskWork<'_>) -> Option<RowSet> {
        rows.sort_unstable();
        rows.dedup();
        let (k, r) = (rows.len(), self.components());
        if work.expired() || k < r {
            return None;
        }
        let own = match self.columns.is_whole() {
            true => None,
            false => self.form.restricted(&rows),
        };
        let (eigenvalues, vectors) = match own {
            Some(own) => axes(&*own, r, work)?,
            None => {
                let c = self.columns.principal(&rows, k, &|| !work.expired())?;
                work.spend((k * k) as f64 * (SCALAR + self.columns.entry_work()));
                axes(&Quadratic::new(c, None, None).ok()?, r, work)?
            }
        };
        let smooth = 0.5 * eigenvalues.iter().sum::<f64>();
        // A row where all vectors vanish does not count.
        let live = vectors.outer_iter().filter(|row| row.iter().any(|&v| v != 0.0)).count();
        Some(RowSet { value: smooth + self.lambda * live as f64, rows, vectors, eigenvalues })
            .filter(|rows| rows.value.is_finite())
    }

    /// Returns VᵀC for the vectors V of a set of rows, r×n; None if the time ran out.
    fn image(&self, state: &RowSet, work: &TaskWork<'_>) -> Option<Array2<f64>> {
        let (n, r, k) = (self.diagonal.len(), self.components(), state.rows.len());
        let single = r as f64 * self.columns.product_work(k);
        let product = gradient_work(self.form, r);
        work.spend(single.min(product));
        if product < single {
            let go_on = || !work.expired();
            let x = self.dense(state);
            let image = (self.form).apply_while(x.view(), &Threads::serial(), &go_on)?;
            return Some(image.reversed_axes().as_standard_layout().into_owned());
        }
        let by_columns = state.vectors.t().as_standard_layout().into_owned();
        let mut image: Array2<f64> = Array2::zeros((r, n));
        let values = by_columns.as_slice()?.chunks(k);
        let vectors: Vec<SparseVector<'_>> = values.map(|v| (&state.rows[..], v)).collect();
        let mut targets: Vec<&mut [f64]> = image.as_slice_mut()?.chunks_mut(n).collect();
        self.columns.add_products(&vectors, &mut targets);
        Some(image)
    }

    /// Returns the principal axes, on all rows.
    fn principal_axes(&self, work: &TaskWork<'_>) -> Option<RowSet> {
        work.spend(gradient_work(self.form, self.components()));
        let (serial, go_on) = (Threads::serial(), || !work.expired());
        let image = (self.form).apply_while(self.basis.view(), &serial, &go_on)?;
        let columns = self.basis.columns().into_iter().zip(image.columns());
        let eigenvalues: Vec<f64> = columns.map(|(v, y)| v.dot(&y)).collect();
        let rows = support::nonzero_rows(self.basis.view());
        Some(RowSet {
            value: 0.5 * eigenvalues.iter().sum::<f64>() + self.lambda * rows.len() as f64,
            vectors: self.basis.select(Axis(0), &rows),
            rows,
            eigenvalues,
        })
    }

    /// Returns the best set of rows of truncated block power iterations from X: each step takes the rows of largest
    /// norm of σX − CX, σ making C negative semidefinite.
    fn powered(&self, x: &Array2<f64>, work: &TaskWork<'_>) -> Option<RowSet> {
        let count = self.sparsity.about(self.components()).min(self.diagonal.len());
        let mut best = self.solved(largest_rows(x, count), work)?;
        for _ in 0..STEPS {
            let Some(image) = self.image(&best, work) else {
                break;
            };
            let mut y = image.reversed_axes() * -1.0;
            for (&i, v) in best.rows.iter().zip(best.vectors.outer_iter()) {
                y.row_mut(i).scaled_add(self.shift, &v);
            }
            let next = self.solved(largest_rows(&y, count), work);
            match next.filter(|next| next.value < best.value - numerics::GAIN * self.scale) {
                Some(next) => best = next,
                None => break,
            }
        }
        Some(best)
    }

    fn table(&self, state: &RowSet, work: &TaskWork<'_>) -> Table {
        let (n, r) = (self.diagonal.len(), self.components());
        work.spend(SCALAR * (4 * n * r) as f64);
        let Some(image) = self.image(state, work) else {
            return Table::default();
        };
        // Eigenvalue of the direction u of the span.
        let along = |u: &[f64]| -> f64 { u.iter().zip(&state.eigenvalues).map(|(u, l)| u * u * l).sum() };
        let mut inside = vec![false; n];
        state.rows.iter().for_each(|&i| inside[i] = true);
        let mut adds = Vec::new();
        let mut u = vec![0.0; r];
        for j in (0..n).filter(|&j| !inside[j]) {
            let norm = (0..r).map(|t| image[[t, j]].powi(2)).sum::<f64>().sqrt();
            let worst = state.eigenvalues[r - 1];
            let mut gain = 0.5 * (worst - self.diagonal[j]).max(0.0);
            if norm > 0.0 {
                (0..r).for_each(|t| u[t] = image[[t, j]] / norm);
                gain = gain.max(support::gain(along(&u), norm, self.diagonal[j]));
            }
            adds.push((gain, j));
        }
        let mut drops: Vec<(f64, usize)> = (state.rows.iter().zip(state.vectors.outer_iter()))
            .map(|(&i, v)| {
                let square = v.dot(&v).min(1.0);
                if square <= 0.0 {
                    return (0.0, i);
                }
                (0..r).for_each(|t| u[t] = v[t] / square.sqrt());
                let lambda = along(&u);
                let coupling: f64 = (0..r).map(|t| u[t] * image[[t, i]]).sum();
                let left = (1.0 - square).max(f64::EPSILON);
                let without = (lambda - 2.0 * square.sqrt() * coupling + self.diagonal[i] * square) / left;
                (0.5 * (without - lambda), i)
            })
            .collect();
        adds.sort_by(|a: &(f64, usize), b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        drops.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        Table { drops, adds }
    }

    /// Returns the set after dropping and adding rows.
    fn changed(&self, state: &RowSet, drops: &[usize], adds: &[usize], work: &TaskWork<'_>) -> Option<RowSet> {
        let kept = state.rows.iter().copied().filter(|i| !drops.contains(i));
        self.solved(kept.chain(adds.iter().copied()).collect(), work)
    }

    /// Returns the number of rows above the limit; negative if there are fewer.
    fn surplus(&self, state: &RowSet) -> isize {
        match self.sparsity {
            RowSparsity::Count(count) => state.rows.len() as isize - count.min(self.diagonal.len()) as isize,
            RowSparsity::Penalty(_) => 0,
        }
    }

    /// Drops or adds rows until their number is the limit.
    fn fitted(&self, mut state: RowSet, work: &TaskWork<'_>) -> Option<RowSet> {
        loop {
            let surplus = self.surplus(&state);
            if surplus == 0 {
                return Some(state);
            }
            if work.expired() {
                return None;
            }
            let table = self.table(&state, work);
            let many = surplus.unsigned_abs().div_ceil(AT_ONCE);
            let chosen = |from: &[(f64, usize)]| from.iter().take(many).map(|row| row.1).collect::<Vec<_>>();
            state = match surplus > 0 {
                true => self.changed(&state, &chosen(&table.drops), &[], work)?,
                false => self.changed(&state, &[], &chosen(&table.adds), work)?,
            };
        }
    }

    /// Returns the swaps and, with a penalty, the single adds and drops, the largest estimate first.
    fn candidates(&self, table: &Table) -> Vec<(f64, Option<usize>, Option<usize>)> {
        let mut all = Vec::new();
        let adds = &table.adds[..table.adds.len().min(CANDIDATES)];
        for &(loss, i) in table.drops.iter().take(CANDIDATES) {
            all.extend(adds.iter().map(|&(gain, j)| (gain - loss, Some(i), Some(j))));
            if matches!(self.sparsity, RowSparsity::Penalty(_)) {
                all.push((self.lambda - loss, Some(i), None));
            }
        }
        if matches!(self.sparsity, RowSparsity::Penalty(_)) {
            all.extend(adds.iter().map(|&(gain, j)| (gain - self.lambda, None, Some(j))));
        }
        all.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        all
    }
}

impl SearchSpace for RowSets<'_> {
    type State = RowSet;
    type Point = RowSet;

    const POINTS: usize = 3 + BLOCKS;

    /// Returns the best points on the rows of largest leverage, and of largest variance, the principal axes if a penalty
    /// allows all rows, and the points of truncated block power iterations from blocks of successive axes.
    fn point(&self, number: usize, work: &TaskWork<'_>) -> Option<RowSet> {
        let Some(number) = number.checked_sub(1) else {
            let is_allowed = matches!(self.sparsity, RowSparsity::Penalty(_));
            return is_allowed.then(|| self.principal_axes(work)).flatten();
        };
        if let Some(block) = number.checked_sub(2) {
            let (r, from) = (self.components(), block * self.components());
            let to = from + r;
            let x = (to <= self.axes.ncols()).then(|| self.axes.slice(s![.., from..to]))?;
            // C V has the axes scaled by their curvatures; by the roots of these, they are scaled as in the data.
            work.spend(gradient_work(self.form, r));
            let serial = Threads::serial();
            let mut image = (self.form).apply_while(x, &serial, &|| !work.expired())?;
            for mut axis in image.columns_mut() {
                let root = axis.dot(&axis).powf(0.25).max(f64::MIN_POSITIVE);
                axis /= root;
            }
            return self.powered(&image, work);
        }
        let weights = match number {
            0 => self.basis.clone(),
            _ => self.variances(),
        };
        let (n, r) = self.basis.dim();
        self.solved(largest_rows(&weights, self.sparsity.about(r).min(n)), work)
    }

    fn matrix(&self, point: &RowSet) -> Array2<f64> {
        self.dense(point)
    }

    fn begin_from(&mut self, points: Vec<RowSet>) {
        self.opening = points;
    }

    fn bound(&self, value: f64) -> f64 {
        let (n, r) = self.basis.dim();
        let spectral = match self.sparsity {
            RowSparsity::Count(count) if count == n => value,
            _ if is_spectrum_exact(n) => self.form.value(self.basis.view(), &Threads::serial()),
            _ => f64::NEG_INFINITY,
        };
        spectral + self.lambda * r as f64
    }

    fn choice(&self) -> (usize, usize) {
        let (n, r) = self.basis.dim();
        (self.sparsity.about(r), n)
    }

    fn product_work(&self) -> f64 {
        let r = self.components();
        r as f64 * self.columns.product_work(self.sparsity.about(r))
    }

    fn start(&self, number: usize, seed: u64, work: &TaskWork<'_>) -> Option<RowSet> {
        let (n, r) = self.basis.dim();
        let number = match (&self.given, number) {
            (Some(given), 0) => return self.fitted(self.solved(given.clone(), work)?, work),
            (Some(_), number) => number - 1,
            (None, number) => number,
        };
        if let Some(first_point) = self.opening.get(number) {
            return self.fitted(first_point.clone(), work);
        }
        let number = number - self.opening.len();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let count = match self.sparsity {
            RowSparsity::Count(count) => count,
            RowSparsity::Penalty(_) if number < 2 => r,
            RowSparsity::Penalty(_) => random.random_range(r..=(8 * r).min(n)),
        };
        let rows = match number {
            // Forward selection from the largest variances; backward selection from surplus rows.
            0 => largest_rows(&self.variances(), r),
            1 => largest_rows(&self.basis, (2 * count).min(n)),
            _ if number.is_multiple_of(2) => {
                let mut chosen: Vec<usize> = (0..self.axes.ncols()).collect();
                chosen.shuffle(&mut random);
                chosen.truncate(r);
                let powered = self.powered(&self.axes.select(Axis(1), &chosen), work)?;
                return self.fitted(powered, work);
            }
            _ => {
                let mut rows = largest_rows(&self.basis, (4 * count).min(n));
                rows.shuffle(&mut random);
                rows.truncate(r);
                rows
            }
        };
        self.fitted(self.solved(rows, work)?, work)
    }

    /// Random rows in place of some, or truncated power iterations.
    fn perturbations(&self) -> Vec<(f64, f64)> {
        vec![(0.5, 0.0), (0.5, 0.0)]
    }

    fn perturbed(&self, state: &RowSet, (kind, seed): (usize, u64), work: &TaskWork<'_>) -> Option<RowSet> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let k = state.rows.len();
        if kind == POWERED {
            // Truncated power iterations from the vectors on a part of the rows.
            let share = random.random_range(KEPT.0..KEPT.1);
            let mut x = self.dense(state);
            for &i in &state.rows {
                if !random.random_bool(share) {
                    x.row_mut(i).fill(0.0);
                }
            }
            let image = self.form.apply_while(x.view(), &Threads::serial(), &|| !work.expired())?;
            work.spend(gradient_work(self.form, self.components()));
            return self.fitted(self.powered(&image, work)?, work);
        }
        let most = (k / 3).clamp(2, 12);
        let times = random.random_range(2..=most).min(k.saturating_sub(1)).max(1);
        let near = largest_rows(&self.basis, (4 * k).min(self.diagonal.len()));
        let mut rows = state.rows.clone();
        rows.shuffle(&mut random);
        rows.truncate(k - times);
        for _ in 0..times {
            let row = match random.random_bool(0.7) {
                true => *near.choose(&mut random)?,
                false => random.random_range(0..self.diagonal.len()),
            };
            rows.push(row);
        }
        let solved = self.solved(rows, work)?;
        self.fitted(solved, work)
    }

    fn support(&self, state: &RowSet) -> Vec<usize> {
        state.rows.clone()
    }

    fn step(&self, state: &mut RowSet, goal: f64, _: &mut usize, work: &TaskWork<'_>) -> bool {
        let candidates = self.candidates(&self.table(state, work)).into_iter();
        let mut in_time = candidates.take(TRIALS).take_while(|_| !work.expired());
        let lower = |(_, drop, add): (f64, Option<usize>, Option<usize>)| {
            let next = self.changed(state, drop.as_slice(), add.as_slice(), work);
            next.filter(|next| next.value < goal)
        };
        let found = in_time.find_map(lower);
        found.map(|next| *state = next).is_some()
    }

    fn name(&self, number: usize) -> &'static str {
        match number.checked_sub(usize::from(self.given.is_some())) {
            None => "given",
            Some(number) if number < self.opening.len() => "opening",
            Some(_) => "rows",
        }
    }

    fn value(&self, state: &RowSet) -> f64 {
        state.value
    }

    fn dense(&self, state: &RowSet) -> Array2<f64> {
        support::on_rows(self.basis.nrows(), &state.rows, state.vectors.view())
    }

    fn scale(&self) -> f64 {
        self.scale
    }
}
