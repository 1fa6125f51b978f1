//! Components with disjoint supports, by greedy forward selection.
//!
//! With the other columns fixed, a component grows from one row. The free row with the largest gain is added
//! while its gain exceeds λ (like PathSPCA: d'Aspremont, Bach and El Ghaoui, JMLR 9, 2008); rows whose loss
//! is below λ are dropped. One to three columns are emptied together and grown again from random rows, and
//! the result is kept if it lowers F. This large-neighbourhood search complements the single-row moves of
//! [`supports`](super::supports); it is best if components have few rows.
//!
//! Each added row costs one scan and one update of length n. The leading eigenvector is refined after the
//! component has grown by an eighth.

use ndarray::Array2;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::covariance::Covariance;
use super::oracle::Oracle;
use super::profile::{Kind, Profile};
use super::{Heuristic, LEAST, LIKELY, Prior, Task};
use crate::limits::MethodLimit;
use crate::support;

/// Work of a scan for the best row, per row, and of an entry of a column of C that is added or gathered, in
/// multiply-adds.
const SCAN: usize = 40;
const ENTRY: usize = 2;

/// Power iterations after an add, and for a complete column.
const REFINEMENTS: usize = 3;
const FINAL_REFINEMENTS: usize = 40;

/// A component is refined after it has grown by this part of its size; under a limit it grows by this part at once.
const GROWTH: usize = 8;

/// Most passes of drops and adds after the growth.
const SWAP_PASSES: usize = 6;

/// Number of rows from which a component is grown; the best result is kept. The rows are those of the largest
/// diagonal at first, and random ones later.
const SEEDS: usize = 3;

/// One component.
#[derive(Debug, Clone, Default)]
struct Component {
    rows: Vec<usize>,
    vector: Vec<f64>,
    /// P v.
    image: Vec<f64>,
    /// vᵀ P v.
    value: f64,
    /// Number of rows when the vector was last refined.
    refined: usize,
}

/// The data shared by all columns.
struct Grower<'a> {
    p: &'a Covariance<'a>,
    lambda: f64,
    /// Makes P + shift·I positive semidefinite.
    shift: f64,
    limit: MethodLimit<'a>,
}

impl Grower<'_> {
    fn is_late(&self) -> bool {
        self.limit.progress() >= 1.0
    }

    /// Charges the work of adding a column of C.
    fn charge_column(&self) {
        let entries = (ENTRY * self.p.order()) as f64;
        self.limit.work.spend(entries + self.p.first_use());
    }

    fn cost(&self, column: &Component) -> f64 {
        self.lambda * column.rows.len() as f64 - 0.5 * column.value
    }

    /// Runs power iterations on the rows of a column, then recomputes its image.
    fn refine(&self, column: &mut Component, iterations: usize) {
        let s = column.rows.len();
        if self.limit.work.expired() {
            return;
        }
        self.limit.work.spend(
            (ENTRY * s * (s * (iterations + 2) + self.p.order())) as f64
                + s as f64 * self.p.first_use(),
        );
        let mut local = Vec::with_capacity(s * s);
        for &i in &column.rows {
            self.p.gather(i, &column.rows, &mut local);
        }
        let mut next = vec![0.0; s];
        for _ in 0..iterations {
            let mut norm2 = 0.0;
            for (k, t) in next.iter_mut().enumerate() {
                let row = &local[k * s..(k + 1) * s];
                *t = row
                    .iter()
                    .zip(&column.vector)
                    .map(|(p, v)| p * v)
                    .sum::<f64>()
                    + self.shift * column.vector[k];
                norm2 += *t * *t;
            }
            let norm = norm2.sqrt();
            if !(norm > 0.0) {
                break;
            }
            let mut moved = 0.0;
            for (v, t) in column.vector.iter_mut().zip(&next) {
                let new = t / norm;
                moved += (new - *v) * (new - *v);
                *v = new;
            }
            if moved < 1e-20 {
                break;
            }
        }
        column.refined = s;
        column.image.clear();
        column.image.resize(self.p.order(), 0.0);
        for (&i, &v) in column.rows.iter().zip(&column.vector) {
            self.p.add(i, v, &mut column.image);
        }
        column.value = column
            .rows
            .iter()
            .zip(&column.vector)
            .map(|(&i, v)| v * column.image[i])
            .sum();
    }

    fn seeded(&self, row: usize) -> Component {
        self.charge_column();
        let mut image = vec![0.0; self.p.order()];
        self.p.add(row, 1.0, &mut image);
        Component {
            rows: vec![row],
            vector: vec![1.0],
            image,
            value: self.p.diagonal()[row],
            refined: 1,
        }
    }

    /// Returns the free row whose addition lowers the cost most, and a lower bound on the new value vᵀPv.
    fn best_add(&self, column: &Component, free: &[bool]) -> Option<(usize, f64)> {
        self.limit.work.spend((SCAN * self.p.order()) as f64);
        let mu = column.value;
        let (mut best, mut largest) = (None, mu + 2.0 * self.lambda);
        for (j, ((&b, &d), &free)) in column
            .image
            .iter()
            .zip(self.p.diagonal())
            .zip(free)
            .enumerate()
        {
            let top = mu + 2.0 * support::gain(-mu, b, -d);
            if free && top > largest {
                (best, largest) = (Some((j, top)), top);
            }
        }
        best
    }

    /// Adds row j; `top` is a lower bound on the new value.
    fn add(&mut self, column: &mut Component, j: usize, top: f64) {
        // Eigenvector of [[mu, b], [b, d]]: (top − d, b).
        let (along, b) = (top - self.p.diagonal()[j], column.image[j]);
        let length = along.hypot(b).max(f64::MIN_POSITIVE);
        let (along, across) = (along / length, b / length);
        column.vector.iter_mut().for_each(|v| *v *= along);
        column.rows.push(j);
        column.vector.push(across);
        self.charge_column();
        column.image.iter_mut().for_each(|t| *t *= along);
        self.p.add(j, across, &mut column.image);
        column.value = top;
        if column.rows.len() >= column.refined + (column.refined / GROWTH).max(1) {
            self.refine(column, REFINEMENTS);
        }
    }

    /// Adds rows while they lower the cost and time is left.
    fn grow(&mut self, column: &mut Component, free: &mut [bool]) {
        while let Some((j, top)) = self.best_add(column, free) {
            if self.is_late() {
                break;
            }
            free[j] = false;
            self.add(column, j, top);
        }
        self.refine(column, REFINEMENTS);
    }

    /// Adds each row to the column that gains most from it, so that a few strong components do not take every
    /// row.
    fn grow_together(&mut self, columns: &mut [Component], free: &mut [bool]) {
        let mut adds: Vec<Option<(usize, f64)>> = columns
            .iter()
            .map(|column| self.best_add(column, free))
            .collect();
        while !self.is_late() {
            let best = (0..columns.len())
                .filter_map(|k| adds[k].map(|(j, top)| (top - columns[k].value, k, j, top)))
                .max_by(|a, b| a.0.total_cmp(&b.0));
            let Some((_, k, j, top)) = best else { break };
            free[j] = false;
            self.add(&mut columns[k], j, top);
            for (other, add) in adds.iter_mut().enumerate() {
                if other == k || add.is_some_and(|(taken, _)| taken == j) {
                    *add = self.best_add(&columns[other], free);
                }
            }
        }
        for column in columns {
            self.refine(column, REFINEMENTS);
        }
    }

    /// Drops the rows whose loss is below λ, the smallest loss first.
    fn prune(&self, column: &mut Component, free: &mut [bool]) -> bool {
        let mut changed = false;
        while column.rows.len() > 1 && !self.limit.work.expired() {
            self.limit
                .work
                .spend((ENTRY * self.p.order() + SCAN * column.rows.len()) as f64);
            let loss = |k: usize| {
                let (i, v) = (column.rows[k], column.vector[k]);
                let rest = 1.0 - v * v;
                if rest < 1e-9 {
                    return f64::INFINITY;
                }
                let left = (column.value - 2.0 * v * column.image[i]
                    + v * v * self.p.diagonal()[i])
                    / rest;
                0.5 * (column.value - left) - self.lambda
            };
            let worst = (0..column.rows.len())
                .map(|k| (loss(k), k))
                .min_by(|a, b| a.0.total_cmp(&b.0));
            let Some((_, k)) = worst.filter(|w| w.0 < 0.0) else {
                break;
            };
            let (i, v) = (column.rows.swap_remove(k), column.vector.swap_remove(k));
            free[i] = true;
            let rest = (1.0 - v * v).sqrt();
            column.vector.iter_mut().for_each(|v| *v /= rest);
            column.value = (column.value - 2.0 * v * column.image[i]
                + v * v * self.p.diagonal()[i])
                / (1.0 - v * v);
            self.p.add(i, -v, &mut column.image);
            column.image.iter_mut().for_each(|t| *t /= rest);
            changed = true;
        }
        if changed {
            self.refine(column, REFINEMENTS);
        }
        changed
    }

    /// Adds, drops and swaps rows until none of these lowers the cost; marks the rows of the column as taken.
    fn complete(&mut self, column: &mut Component, free: &mut [bool]) {
        self.grow(column, free);
        for _ in 0..SWAP_PASSES {
            if self.is_late() {
                break;
            }
            self.refine(column, FINAL_REFINEMENTS);
            let mut better = self.prune(column, free);
            // Swap the row with the smallest entry.
            if column.rows.len() > 1 {
                let weakest = (0..column.rows.len())
                    .min_by(|&a, &b| column.vector[a].abs().total_cmp(&column.vector[b].abs()));
                if let Some(k) = weakest {
                    let mut trial = column.clone();
                    let left = trial.rows.swap_remove(k);
                    trial.vector.swap_remove(k);
                    let norm = trial.vector.iter().map(|v| v * v).sum::<f64>().sqrt();
                    trial.vector.iter_mut().for_each(|v| *v /= norm);
                    self.refine(&mut trial, REFINEMENTS);
                    let mut trial_free = free.to_vec();
                    trial_free[left] = true;
                    self.grow(&mut trial, &mut trial_free);
                    self.refine(&mut trial, FINAL_REFINEMENTS);
                    if self.cost(&trial) < self.cost(column) - support::GAIN * column.value.abs() {
                        *column = trial;
                        free.copy_from_slice(&trial_free);
                        better = true;
                    }
                }
            }
            if !better {
                break;
            }
        }
    }

    /// Grows a column from each seed; returns the one with the lowest cost, that cost, and the free rows.
    fn best_from(&mut self, seeds: &[usize], free: &[bool]) -> Option<(f64, Component, Vec<bool>)> {
        let mut best: Option<(f64, Component, Vec<bool>)> = None;
        for &row in seeds {
            let mut column = self.seeded(row);
            let mut marks = free.to_vec();
            marks[row] = false;
            self.complete(&mut column, &mut marks);
            let cost = self.cost(&column);
            if best.as_ref().is_none_or(|b| cost < b.0) {
                best = Some((cost, column, marks));
            }
        }
        best
    }
}

/// Splits x into disjoint columns: every row belongs to the column of its largest entry.
fn columns_of(grower: &Grower<'_>, x: &Array2<f64>) -> Vec<Component> {
    let mut columns = vec![Component::default(); x.ncols()];
    for (i, row) in x.outer_iter().enumerate() {
        let largest = (0..x.ncols()).max_by(|&a, &b| row[a].abs().total_cmp(&row[b].abs()));
        if let Some(k) = largest.filter(|&k| row[k] != 0.0) {
            columns[k].rows.push(i);
            columns[k].vector.push(row[k]);
        }
    }
    for column in &mut columns {
        let norm = column.vector.iter().map(|v| v * v).sum::<f64>().sqrt();
        column.vector.iter_mut().for_each(|v| *v /= norm);
        if !column.rows.is_empty() {
            grower.refine(column, FINAL_REFINEMENTS);
        }
    }
    columns
}

/// Grows all components together from the rows of the largest diagonal, then completes them.
fn together(grower: &mut Grower<'_>, r: usize) -> (Vec<Component>, Vec<bool>) {
    let mut free = vec![true; grower.p.diagonal().len()];
    let mut columns: Vec<Component> = by_diagonal(grower)
        .into_iter()
        .take(r)
        .map(|row| {
            free[row] = false;
            grower.seeded(row)
        })
        .collect();
    grower.grow_together(&mut columns, &mut free);
    completed(grower, columns)
}

/// Completes all components in order; returns them and the free rows.
fn completed(grower: &mut Grower<'_>, mut columns: Vec<Component>) -> (Vec<Component>, Vec<bool>) {
    let mut free = vec![true; grower.p.diagonal().len()];
    for column in &columns {
        column.rows.iter().for_each(|&i| free[i] = false);
    }
    for column in &mut columns {
        grower.complete(column, &mut free);
    }
    (columns, free)
}

/// Returns the rows in descending order of the diagonal.
fn by_diagonal(grower: &Grower<'_>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..grower.p.diagonal().len()).collect();
    order.sort_by(|&a, &b| grower.p.diagonal()[b].total_cmp(&grower.p.diagonal()[a]));
    order
}

/// Grows one component after the other, each on the rows left by the others.
fn one_by_one(grower: &mut Grower<'_>, r: usize) -> (Vec<Component>, Vec<bool>) {
    let n = grower.p.diagonal().len();
    let mut free = vec![true; n];
    let order = by_diagonal(grower);
    let mut columns: Vec<Component> = Vec::with_capacity(r);
    for k in 0..r {
        // Each later column needs a row.
        let reserved: Vec<usize> = order
            .iter()
            .rev()
            .filter(|&&i| free[i])
            .take(r - 1 - k)
            .copied()
            .collect();
        reserved.iter().for_each(|&i| free[i] = false);
        let seeds: Vec<usize> = order
            .iter()
            .filter(|&&i| free[i])
            .take(SEEDS)
            .copied()
            .collect();
        let Some((_, column, marks)) = grower.best_from(&seeds, &free) else {
            break;
        };
        columns.push(column);
        free = marks;
        reserved.iter().for_each(|&i| free[i] = true);
    }
    (columns, free)
}

/// Grows the columns `emptied` again from random rows; returns them and the free rows, or None if the cost is
/// not lower.
fn regrown(
    grower: &mut Grower<'_>,
    columns: &[Component],
    free: &[bool],
    emptied: &[usize],
    rng: &mut Xoshiro256PlusPlus,
) -> Option<(Vec<Component>, Vec<bool>)> {
    let mut free = free.to_vec();
    let mut before = 0.0;
    for &k in emptied {
        before += grower.cost(&columns[k]);
        columns[k].rows.iter().for_each(|&i| free[i] = true);
    }
    let mut grown = Vec::with_capacity(emptied.len());
    let mut after = 0.0;
    for _ in emptied {
        let seeds: Vec<usize> = (0..free.len()).filter(|&i| free[i]).collect();
        grower.limit.work.spend(free.len() as f64);
        let tried: Vec<usize> = (0..SEEDS.min(seeds.len()))
            .map(|_| seeds[rng.random_range(0..seeds.len())])
            .collect();
        let (cost, column, marks) = grower.best_from(&tried, &free)?;
        after += cost;
        free = marks;
        grown.push(column);
    }
    (after < before - support::GAIN * before.abs()).then_some((grown, free))
}

/// Forward selection with disjoint supports; columns are emptied and grown again.
pub(super) struct Forward;

impl Heuristic for Forward {
    fn name(&self) -> &'static str {
        "forward"
    }

    fn fits(&self, profile: &Profile, _: bool) -> Option<Prior> {
        let success = if profile.is_dense() { 0.0 } else { LIKELY };
        let fits = profile.columns && profile.kind == Kind::Count;
        fits.then(|| Prior::new(success, LEAST))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let covariance = task.known.covariance.as_ref()?;
        // With many nonzeros, the columns of C would take more than the remaining work.
        let rows = task
            .from
            .map_or(0, |x| x.iter().filter(|v| **v != 0.0).count());
        if rows as f64 * covariance.first_use() > task.oracle.work.left_work() {
            return None;
        }
        let lambda = task.problem().penalty.count()?;
        let x = improve(
            task.oracle,
            covariance,
            task.from,
            lambda,
            task.seed,
            task.limit,
        );
        Some(x)
    }
}

/// Improves a point with disjoint supports, or grows a first one; returns a feasible point no worse than `x`.
pub(super) fn improve(
    oracle: &Oracle<'_>,
    p: &Covariance<'_>,
    x: Option<&Array2<f64>>,
    lambda: f64,
    seed: u64,
    limit: MethodLimit<'_>,
) -> Array2<f64> {
    let (n, r) = (oracle.rows(), oracle.columns());
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut grower = Grower {
        p,
        lambda,
        shift: oracle.convexity,
        limit,
    };
    let given = x
        .map(|x| columns_of(&grower, x))
        .filter(|columns| columns.iter().all(|column| !column.rows.is_empty()));
    let (mut columns, mut free) = match given {
        Some(columns) => completed(&mut grower, columns),
        None => {
            let cost = |grower: &Grower<'_>, columns: &[Component]| -> f64 {
                columns.iter().map(|column| grower.cost(column)).sum()
            };
            let grown = one_by_one(&mut grower, r);
            let shared = together(&mut grower, r);
            if cost(&grower, &grown.0) <= cost(&grower, &shared.0) {
                grown
            } else {
                shared
            }
        }
    };
    let mut order: Vec<usize> = (0..r).collect();
    while !grower.is_late() {
        // A round costs work even if no row is free.
        grower.limit.work.spend(grower.p.order() as f64);
        let group = if r == 1 {
            1
        } else {
            [1, 1, 2, 2, 2, 3][rng.random_range(0..6)].min(r)
        };
        let (emptied, _) = order.partial_shuffle(&mut rng, group);
        if let Some((grown, marks)) = regrown(&mut grower, &columns, &free, emptied, &mut rng) {
            for (&k, column) in emptied.iter().zip(grown) {
                columns[k] = column;
            }
            free = marks;
            // The other columns may take rows that became free.
            for column in &mut columns {
                grower.complete(column, &mut free);
            }
        }
    }
    let mut out = Array2::zeros((n, r));
    for (k, column) in columns.iter_mut().enumerate() {
        grower.refine(column, 10 * FINAL_REFINEMENTS);
        let norm = column.vector.iter().map(|v| v * v).sum::<f64>().sqrt();
        for (&i, &v) in column.rows.iter().zip(&column.vector) {
            out[[i, k]] = v / norm;
        }
    }
    out
}
