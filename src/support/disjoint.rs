//! Columns on disjoint rows: gains of single rows in O(1), annealing and growth.
//!
//! With disjoint supports the columns are orthogonal, so every column is a unit vector on its own rows.
//! (Nonnegative PCA always has this form, sparse PCA nearly so if λ is large.) The state is an owner for
//! every row, an unnormalised vector u_k for every column, and its image P u_k, P = cI − C. Dropping a row from
//! column k or adding one to column l changes the value `½ u_kᵀP u_k/‖u_k‖²` by a formula in five numbers
//! (the 2×2 Rayleigh quotient on span{u, e_i}). A gain therefore costs O(1), and an accepted move two updates of
//! length n.
//!
//! - A greedy descent moves each row to its best column; [annealing](Disjoint::anneal) accepts random moves by the
//!   Metropolis rule while the temperature falls geometrically.
//! - Growth (like PathSPCA: d'Aspremont, Bach and El Ghaoui, JMLR 9, 2008) adds the free row with the largest gain while
//!   that exceeds the price λ of a nonzero; rows whose loss is below λ are dropped. One to three columns are emptied
//!   together and [grown again](Disjoint::regrow) from random rows: a search in large neighbourhoods, best if columns
//!   have few rows.

use ndarray::Array2;
use rand::RngExt;
use rand::seq::{IndexedRandom, SliceRandom};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::covariance::Covariance;
use super::pattern;
use crate::limits::MethodLimit;
use crate::linalg::dot;
use crate::numerics;

/// Proposals between updates of the progress.
const BATCH: usize = 256;

/// Accepted moves, per row, between exact evaluations of the images.
const REFRESH: usize = 64;

/// Relative decrease of F after which greedy passes end.
const LAST: f64 = 1e-9;

/// Square of a vector without a row, relative to that with it, up to which the row cannot be dropped.
const ALONE: f64 = 1e-9;

/// Largest entry of an added row, relative to the norm of the others.
const LARGEST: f64 = 1e6;

/// Work of a proposal per column, in multiply-adds.
const PER_COLUMN: usize = 10;

/// Work of a proposal beside that of its columns, in multiply-adds.
const PER_PROPOSAL: usize = 280;

/// Work of a row in a scan for the best one, in multiply-adds.
const SCAN: usize = 40;

/// Work of a row in an accepted move, in multiply-adds.
const ACCEPTED: usize = 8;

/// Work of an entry of a column of C that is added or gathered, in multiply-adds.
const ENTRY: usize = 2;

/// First and last temperature, in units of the mean net gain of a row.
pub(crate) const TEMPERATURE: (f64, f64) = (0.4, 0.025);

/// Power iterations after the growth of a column, and after drops.
const REFINEMENTS: usize = 3;

/// Power iterations for a complete column.
const FINAL_REFINEMENTS: usize = 40;

/// Square of the change of a unit vector at which power iterations end.
const CONVERGED: f64 = 1e-20;

/// The image of u_k, its square and its quotient uᵀPu, and the number of rows.
#[derive(Clone)]
struct Column {
    image: Vec<f64>,
    norm2: f64,
    quotient: f64,
    size: usize,
}

impl Column {
    /// Adds `delta` to entry i of u; `squares` is the change of ‖u‖².
    fn shift(&mut self, p: &Covariance<'_>, i: usize, delta: f64, squares: f64) {
        self.quotient += 2.0 * delta * self.image[i] + delta * delta * p.diagonal()[i];
        self.norm2 += squares;
        if delta != 0.0 {
            p.add(i, delta, &mut self.image);
        }
    }
}

/// A column with the entries of its rows, to go back to.
struct Kept {
    column: Column,
    entries: Vec<(usize, f64)>,
}

/// Owners, vectors and images. The owner of a free row is r, that of a row reserved for a later column r + 1.
pub(crate) struct Disjoint<'a> {
    p: &'a Covariance<'a>,
    /// Makes P + shift·I positive semidefinite.
    shift: f64,
    /// The price λ of a nonzero.
    price: f64,
    nonnegative: bool,
    limit: MethodLimit<'a>,
    owner: Vec<usize>,
    u: Vec<f64>,
    columns: Vec<Column>,
    moves: usize,
    /// Work not yet charged.
    work: usize,
}

/// A proposed move of one row.
#[derive(Clone, Copy)]
struct RowMove {
    row: usize,
    from: usize,
    to: usize,
    entry: f64,
    change: f64,
}

impl<'a> Disjoint<'a> {
    /// Begins with columns without rows.
    pub(crate) fn empty(
        p: &'a Covariance<'a>,
        r: usize,
        (price, nonnegative): (f64, bool),
        shift: f64,
        limit: MethodLimit<'a>,
    ) -> Self {
        let n = p.order();
        let column = Column { image: vec![0.0; n], norm2: 0.0, quotient: 0.0, size: 0 };
        Self {
            p,
            shift,
            price,
            nonnegative,
            limit,
            owner: vec![r; n],
            u: vec![0.0; n],
            columns: vec![column; r],
            moves: 0,
            work: 0,
        }
    }

    /// Gives each nonzero row of X to the column of its largest entry. A column without rows takes the row of largest
    /// diagonal among the free rows and those of columns with other rows.
    pub(crate) fn set(&mut self, x: &Array2<f64>) {
        let (n, r) = (self.order(), self.columns.len());
        for (i, row) in x.outer_iter().enumerate() {
            let (mut best, mut largest) = (r, 0.0);
            for (k, &v) in row.iter().enumerate() {
                let v = if self.nonnegative { v } else { v.abs() };
                if v > largest {
                    (best, largest) = (k, v);
                }
            }
            if best < r {
                self.owner[i] = best;
                self.u[i] = row[best];
                self.columns[best].size += 1;
            }
        }
        for k in 0..r {
            if self.columns[k].size == 0 {
                let spare = |i: usize| self.owner[i] == r || self.columns[self.owner[i]].size > 1;
                let candidate =
                    (0..n).filter(|&i| spare(i)).max_by(|&a, &b| self.p.diagonal()[a].total_cmp(&self.p.diagonal()[b]));
                if let Some(i) = candidate {
                    if self.owner[i] < r {
                        self.columns[self.owner[i]].size -= 1;
                    }
                    self.owner[i] = k;
                    self.u[i] = 1.0;
                    self.columns[k].size = 1;
                }
            }
        }
        self.refresh();
    }

    fn order(&self) -> usize {
        self.owner.len()
    }

    fn is_late(&self) -> bool {
        self.limit.progress() >= 1.0
    }

    fn charge(&mut self) {
        let work = std::mem::take(&mut self.work) as f64;
        self.limit.work.spend(work);
    }

    /// Charges the work of columns of C.
    fn charge_columns(&mut self, count: usize) {
        self.work += ENTRY * self.order() * count;
        self.limit.work.spend(count as f64 * self.p.first_use());
        self.charge();
    }

    /// Returns the rows of a column with their entries.
    fn entries(&self, k: usize) -> Vec<(usize, f64)> {
        let own = (0..self.order()).filter(|&i| self.owner[i] == k);
        own.map(|i| (i, self.u[i])).collect()
    }

    /// Normalises the vectors and recomputes their images.
    fn refresh(&mut self) {
        self.work += ENTRY * self.order() * self.order();
        for k in 0..self.columns.len() {
            let mut entries = self.entries(k);
            let norm = entries.iter().map(|entry| entry.1 * entry.1).sum::<f64>().sqrt();
            entries.iter_mut().for_each(|entry| entry.1 /= norm);
            self.imaged(k, &entries);
        }
        self.moves = 0;
    }

    /// Gives a column the entries of a unit vector on its rows.
    fn imaged(&mut self, k: usize, entries: &[(usize, f64)]) {
        let column = &mut self.columns[k];
        column.image.fill(0.0);
        for &(i, v) in entries {
            self.u[i] = v;
            if v != 0.0 {
                self.p.add(i, v, &mut column.image);
            }
        }
        column.norm2 = 1.0;
        column.quotient = entries.iter().map(|&(i, v)| v * column.image[i]).sum();
    }

    /// Returns F of a column.
    fn cost(&self, k: usize) -> f64 {
        let Column { quotient, norm2, size, .. } = self.columns[k];
        self.price * size as f64 - 0.5 * quotient / norm2
    }

    /// Returns F.
    pub(crate) fn value(&self) -> f64 {
        (0..self.columns.len()).map(|k| self.cost(k)).sum()
    }

    /// Returns the move of row `i` to column `to` (r: to none), with the change of F; None if the move is
    /// impossible.
    #[inline]
    fn propose(&self, i: usize, to: usize) -> Option<RowMove> {
        let r = self.columns.len();
        let from = self.owner[i];
        let d = self.p.diagonal()[i];
        let mut change = 0.0;
        // Column `from` without the row: vᵀPv, ‖v‖², and (P v)_i of the rest.
        let (mut quotient, mut norm2, mut cross) = (0.0, 1.0, 0.0);
        if from < r {
            let column = &self.columns[from];
            if column.size <= 1 {
                return None;
            }
            let u = self.u[i];
            let image = column.image[i];
            norm2 = column.norm2 - u * u;
            if !(norm2 > ALONE * column.norm2) {
                return None;
            }
            quotient = column.quotient - 2.0 * u * image + u * u * d;
            cross = image - u * d;
            change += 0.5 * (column.quotient / column.norm2 - quotient / norm2) - self.price;
        }
        let mut entry = 0.0;
        if to < r {
            if to != from {
                let column = &self.columns[to];
                (quotient, norm2, cross) = (column.quotient, column.norm2, column.image[i]);
            }
            // Largest eigenvalue of [[mu, b], [b, d]].
            let mu = quotient / norm2;
            let b = cross / norm2.sqrt();
            change += self.price;
            if b > 0.0 || (b != 0.0 && !self.nonnegative) {
                let relative = pattern::entry(-mu, -b, -d);
                if !(relative.abs() < LARGEST) {
                    return None;
                }
                entry = relative * norm2.sqrt();
                change -= pattern::gain(-mu, -b, -d);
            }
        }
        Some(RowMove { row: i, from, to, entry, change })
    }

    fn accept(&mut self, step: &RowMove) {
        let (r, i, old) = (self.columns.len(), step.row, self.u[step.row]);
        self.work += ACCEPTED * self.order();
        if step.from < r && step.from == step.to {
            // One update for the difference.
            let squares = step.entry * step.entry - old * old;
            self.columns[step.to].shift(self.p, i, step.entry - old, squares);
        } else {
            if step.from < r {
                self.columns[step.from].shift(self.p, i, -old, -old * old);
                self.columns[step.from].size -= 1;
            }
            if step.to < r {
                let squares = step.entry * step.entry;
                self.columns[step.to].shift(self.p, i, step.entry, squares);
                self.columns[step.to].size += 1;
            }
        }
        self.owner[i] = step.to;
        self.u[i] = step.entry;
        self.moves += 1;
        if self.moves >= REFRESH * self.order() {
            self.refresh();
        }
    }

    /// Returns the column, other than the owner, that row `i` is most strongly coupled to.
    fn best_column(&self, i: usize) -> usize {
        let (mut best, mut largest) = (self.columns.len(), f64::NEG_INFINITY);
        for (k, column) in self.columns.iter().enumerate() {
            if k == self.owner[i] {
                continue;
            }
            let b = column.image[i];
            let b = if self.nonnegative { b } else { b.abs() };
            if b * b.abs() > largest * column.norm2 {
                (best, largest) = (k, b * b.abs() / column.norm2);
            }
        }
        best
    }

    /// Makes improving moves only, all rows against all columns, until none is left.
    fn greedy(&mut self) {
        let (n, r) = (self.order(), self.columns.len());
        let largest = |m: f64, v: &f64| m.max(v.abs());
        let least = numerics::ROUNDING * self.p.diagonal().iter().fold(0.0, largest);
        let last = if self.price > 0.0 { r } else { r - 1 };
        loop {
            let before = self.value();
            for i in 0..n {
                if i % BATCH == 0 {
                    self.work += BATCH * (r + 1) * PER_PROPOSAL;
                    self.charge();
                    if self.limit.work.expired() {
                        return;
                    }
                }
                let mut best: Option<RowMove> = None;
                for to in 0..=last {
                    if let Some(step) = self.propose(i, to)
                        && step.change < best.map_or(-least, |b| b.change)
                    {
                        best = Some(step);
                    }
                }
                if let Some(step) = best {
                    self.accept(&step);
                }
            }
            self.refresh();
            let after = self.value();
            if !(before - after > LAST * after.abs()) || self.is_late() {
                break;
            }
        }
    }

    /// Proposes another owner for a random row, and accepts by the Metropolis rule at temperature `heat`.
    fn metropolis(&mut self, heat: f64, rng: &mut Xoshiro256PlusPlus) {
        let (n, r) = (self.order(), self.columns.len());
        let i = rng.random_range(0..n);
        let from = self.owner[i];
        let draw: f64 = rng.random();
        let to = if from < r && draw < 0.15 {
            from
        } else if from < r && self.price > 0.0 && draw < 0.4 {
            r
        } else if draw < 0.7 {
            self.best_column(i)
        } else {
            rng.random_range(0..r)
        };
        if from == r && to == r {
            return;
        }
        let Some(trial) = self.propose(i, to) else {
            return;
        };
        let accepted = if to == from {
            trial.change < -1e-3 * heat
        } else {
            trial.change < 0.0 || rng.random::<f64>() < (-trial.change / heat).exp()
        };
        if accepted {
            self.accept(&trial);
        }
    }

    /// Anneals between two [temperatures](TEMPERATURE) until the limit, with greedy descents before and after.
    pub(crate) fn anneal(&mut self, temperature: (f64, f64), rng: &mut Xoshiro256PlusPlus) {
        self.greedy();
        let (r, price) = (self.columns.len(), self.price);
        let sizes = self.columns.iter().map(|column| column.size);
        let members = sizes.sum::<usize>().max(1) as f64;
        let total = self.value() - price * members;
        // Mean net gain of a row.
        let unit = (total.abs() / members - price).max(0.2 * price);
        let unit = if price > 0.0 { unit.min(price) } else { unit };
        loop {
            let ratio = self.limit.progress();
            if ratio >= 1.0 || self.limit.work.expired() {
                break;
            }
            let heat = unit * temperature.0 * (temperature.1 / temperature.0).powf(ratio);
            self.work += BATCH * (PER_PROPOSAL + PER_COLUMN * r);
            self.charge();
            (0..BATCH).for_each(|_| self.metropolis(heat, rng));
        }
        self.refresh();
        self.greedy();
    }

    /// Runs power iterations on the rows of a column, then recomputes its image.
    fn refine(&mut self, k: usize, iterations: usize) {
        if self.limit.work.expired() {
            return;
        }
        let mut entries = self.entries(k);
        let s = entries.len();
        self.work += ENTRY * s * s * (iterations + 2);
        self.charge_columns(s);
        let rows: Vec<usize> = entries.iter().map(|entry| entry.0).collect();
        let mut local = Vec::with_capacity(s * s);
        rows.iter().for_each(|&i| self.p.gather(i, &rows, &mut local));
        let norm = self.columns[k].norm2.sqrt();
        let mut vector: Vec<f64> = entries.iter().map(|entry| entry.1 / norm).collect();
        for _ in 0..iterations {
            let products = local.chunks(s).map(|row| dot(row, &vector));
            let steps = products.zip(&vector).map(|(y, v)| y + self.shift * v);
            let mut next: Vec<f64> = match self.nonnegative {
                true => steps.map(|v| v.max(0.0)).collect(),
                false => steps.collect(),
            };
            let norm = dot(&next, &next).sqrt();
            if !(norm > 0.0) {
                break;
            }
            next.iter_mut().for_each(|v| *v /= norm);
            let moves = next.iter().zip(&vector).map(|(a, b)| (a - b) * (a - b));
            let moved: f64 = moves.sum();
            vector = next;
            if moved < CONVERGED {
                break;
            }
        }
        for (entry, v) in entries.iter_mut().zip(vector) {
            entry.1 = v;
        }
        self.imaged(k, &entries);
    }

    /// Empties a column.
    fn clear(&mut self, k: usize) {
        let r = self.columns.len();
        for owner in &mut self.owner {
            if *owner == k {
                *owner = r;
            }
        }
        let column = &mut self.columns[k];
        (column.norm2, column.quotient, column.size) = (0.0, 0.0, 0);
        column.image.fill(0.0);
    }

    /// Grows an empty column from a free row.
    fn grow_from(&mut self, k: usize, row: usize) {
        self.charge_columns(1);
        self.owner[row] = k;
        self.columns[k].size = 1;
        self.imaged(k, &[(row, 1.0)]);
        self.complete(k);
    }

    fn kept(&self, k: usize) -> Kept {
        Kept { column: self.columns[k].clone(), entries: self.entries(k) }
    }

    fn restore(&mut self, k: usize, kept: Kept) {
        self.clear(k);
        for (i, v) in kept.entries {
            (self.owner[i], self.u[i]) = (k, v);
        }
        self.columns[k] = kept.column;
    }

    /// Returns the addition of a free row that lowers F most, if any does.
    fn best_add(&mut self, k: usize) -> Option<RowMove> {
        self.work += SCAN * self.order();
        self.charge();
        let (r, column) = (self.columns.len(), &self.columns[k]);
        let (mu, scale) = (column.quotient / column.norm2, 1.0 / column.norm2.sqrt());
        let (mut best, mut largest) = (None, self.price);
        let rows = column.image.iter().zip(self.p.diagonal()).zip(&self.owner);
        for (j, ((&cross, &d), &owner)) in rows.enumerate() {
            let b = scale * cross;
            if owner == r && (b > 0.0 || !self.nonnegative) {
                let gain = pattern::gain(-mu, -b, -d);
                if gain > largest {
                    (best, largest) = (Some(j), gain);
                }
            }
        }
        self.propose(best?, k)
    }

    /// Adds rows while they lower F and time is left.
    fn grow(&mut self, k: usize) {
        while let Some(step) = self.best_add(k) {
            if self.is_late() {
                break;
            }
            self.limit.work.spend(self.p.first_use());
            self.accept(&step);
        }
        self.refine(k, REFINEMENTS);
    }

    /// Drops the rows whose loss is below the price, the smallest loss first.
    fn prune(&mut self, k: usize) -> bool {
        let (r, mut changed) = (self.columns.len(), false);
        while !self.limit.work.expired() {
            let own = (0..self.order()).filter(|&i| self.owner[i] == k);
            let drops = own.filter_map(|i| self.propose(i, r));
            let best = drops.min_by(|a, b| a.change.total_cmp(&b.change));
            let Some(step) = best.filter(|step| step.change < 0.0) else {
                break;
            };
            self.work += SCAN * self.columns[k].size;
            self.accept(&step);
            changed = true;
        }
        if changed {
            self.refine(k, REFINEMENTS);
        }
        changed
    }

    /// Adds and drops rows until neither lowers F.
    fn complete(&mut self, k: usize) {
        self.grow(k);
        while !self.is_late() {
            self.refine(k, FINAL_REFINEMENTS);
            if !self.prune(k) {
                break;
            }
        }
    }

    /// Completes all columns in order.
    pub(crate) fn complete_all(&mut self) {
        (0..self.columns.len()).for_each(|k| self.complete(k));
    }

    /// Grows empty columns one after the other, each on the rows left by the others.
    pub(crate) fn grow_all(&mut self) {
        let (r, diagonal) = (self.columns.len(), self.p.diagonal());
        let mut order: Vec<usize> = (0..self.order()).collect();
        order.sort_by(|&a, &b| diagonal[b].total_cmp(&diagonal[a]));
        for k in 0..r {
            let free: Vec<usize> = order.iter().copied().filter(|&i| self.owner[i] == r).collect();
            // Each later column needs a row.
            let (rows, reserved) = free.split_at(free.len().saturating_sub(r - 1 - k));
            reserved.iter().for_each(|&i| self.owner[i] = r + 1);
            if let Some(&row) = rows.first() {
                self.grow_from(k, row);
            }
            reserved.iter().for_each(|&i| self.owner[i] = r);
        }
    }

    /// Empties one to three columns and grows them again from random rows; goes back if F is not lower.
    pub(crate) fn regrow(&mut self, rng: &mut Xoshiro256PlusPlus) {
        let r = self.columns.len();
        // A round costs work even if no row is free.
        self.limit.work.spend(self.order() as f64);
        let group = [1, 1, 2, 2, 2, 3][rng.random_range(0..6)].min(r);
        let mut order: Vec<usize> = (0..r).collect();
        let (emptied, _) = order.partial_shuffle(rng, group);
        let before: f64 = emptied.iter().map(|&k| self.cost(k)).sum();
        let kept: Vec<Kept> = emptied.iter().map(|&k| self.kept(k)).collect();
        emptied.iter().for_each(|&k| self.clear(k));
        let grown = emptied.iter().all(|&k| {
            let free: Vec<usize> = (0..self.order()).filter(|&i| self.owner[i] == r).collect();
            self.work += free.len();
            let Some(&row) = free.choose(rng) else {
                return false;
            };
            self.grow_from(k, row);
            true
        });
        let after: f64 = emptied.iter().map(|&k| self.cost(k)).sum();
        if !(grown && after < before - numerics::GAIN * before.abs()) {
            emptied.iter().for_each(|&k| self.clear(k));
            let columns = emptied.iter().zip(kept);
            columns.for_each(|(&k, kept)| self.restore(k, kept));
        }
    }

    /// Returns X with unit columns, refined if `refined`.
    pub(crate) fn matrix(&mut self, refined: bool) -> Array2<f64> {
        let mut x = Array2::zeros((self.order(), self.columns.len()));
        for k in 0..self.columns.len() {
            if refined {
                self.refine(k, 10 * FINAL_REFINEMENTS);
            }
            let norm = self.columns[k].norm2.sqrt();
            for (i, v) in self.entries(k) {
                x[[i, k]] = v / norm;
            }
        }
        x
    }

    /// Returns whether time is left.
    pub(crate) fn goes_on(&self) -> bool {
        !self.is_late()
    }
}
