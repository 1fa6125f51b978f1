//! Whole rows of X: min ½ tr(XᵀCX) over {XᵀX = I, few rows that are not zero}, or with a price for each.
//!
//! On given rows S any orthonormal basis of the leading eigenvectors of −C_SS is optimal, f* = ½ Σ of the r smallest eigenvalues of
//! C_SS: a search over sets of rows. With V these eigenvectors, a row j that joins lowers f at least as much as its coupling
//! w = C_jS V allows one direction of their span to (an eigenvalue of a 2×2 matrix); without row i the direction V_i of
//! the span loses that entry. So every exchange is estimated by products alone, and the best are tried by eigenvalues.

use std::time::Instant;

use ndarray::{Array2, s};
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::model::SCALAR;
use super::opening::{axes, largest_rows};
use super::powered::on_rows;
use super::search::{Board, Rested, Search, Walk, checked_form, checked_start, limit};
use crate::budget::{Clock, Meter};
use crate::error::{Error, Result};
use crate::manifold::polar;
use crate::objective::{Columns, Quadratic, QuadraticForm};
use crate::pool;
use crate::problem::Problem;
use crate::search::AutoSolution;
use crate::solver::{Monitor, Options, Status};
use crate::start::{self, is_spectrum_exact};
use crate::support;
use crate::threads::Threads;

/// Exchanges tried one by one before a set is at rest, among the rows that cost least and those that gain most.
const TRIALS: usize = 24;
const CANDIDATES: usize = 12;

/// A set grows or shrinks by one over this of what is wanting at once.
const AT_ONCE: usize = 6;

/// Least decrease that counts, relative to the scale of f.
const LEAST: f64 = 1e-12;

/// Perturbations without gain, per row and at least, that end a search without limits.
const PATIENCE: usize = 40;
const LEAST_PATIENCE: usize = 600;

/// Bytes for columns of a C that is not stored.
const BYTES: usize = 256 << 20;

/// How many rows of X may be nonzero.
///
/// ```
/// let sparsity = orthobcd::RowSparsity::Count(10);
/// assert_ne!(sparsity, orthobcd::RowSparsity::Price(1.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RowSparsity {
    /// At most so many, at least r.
    Count(usize),
    /// Any number, at this price each: h(X) = λ times the number of rows that are not zero.
    Price(f64),
}

/// Minimises f over {XᵀX = I}, with few rows of X or a price for each.
///
/// f must be `½ tr(XᵀCX)`, and every sign +1. Limits, statuses and what the result depends on are those of
/// [`minimize_at_cardinality`](crate::minimize_at_cardinality). X is exactly optimal for its rows, up to a rotation of its columns: they
/// are eigenvectors of C on these rows.
///
/// # Errors
/// If the problem, the options or `x0` are not valid, f is not such a quadratic, the signature is not all +1, h ≠ 0, the number
/// of rows is not between r and n, or the price is negative or not finite.
pub fn minimize_row_sparse(
    problem: &Problem<'_>,
    sparsity: RowSparsity,
    x0: Option<Array2<f64>>,
    options: &Options,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<AutoSolution> {
    let started = Instant::now();
    let form = checked_form(problem, options)?;
    let (n, r) = (form.order(), problem.components);
    if !form.is_trace_form() {
        return Err(Error::invalid(
            "smooth",
            "must be ½ tr(XᵀCX) where rows are counted",
        ));
    }
    let price = match sparsity {
        RowSparsity::Count(count) if !(r..=n).contains(&count) => {
            let message = format!("must be between r = {r} and n = {n}, got {count}");
            return Err(Error::invalid("count", message));
        }
        RowSparsity::Price(price) if !(price.is_finite() && price >= 0.0) => {
            return Err(Error::invalid(
                "lam",
                format!("must be finite and nonnegative, got {price}"),
            ));
        }
        RowSparsity::Count(_) => 0.0,
        RowSparsity::Price(price) => price,
    };
    let x0 = x0.map(|x0| checked_start(problem, &x0)).transpose()?;
    let clock = Clock::limited(started, options.max_time, options.max_work);
    let mut board = Board::new((problem, price), &clock, options, monitor);
    let diagonal = form.diagonal();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| diagonal[a].total_cmp(&diagonal[b]));
    let mut first = Array2::zeros((n, r));
    order
        .iter()
        .take(r)
        .enumerate()
        .for_each(|(t, &i)| first[[i, t]] = 1.0);
    board.accept(first.clone(), f64::NEG_INFINITY);
    let given = x0.as_ref().map(|x0| (rows_of(x0), x0));
    if let Some((rows, x0)) = &given
        && !matches!(sparsity, RowSparsity::Count(count) if rows.len() > count)
    {
        board.accept((*x0).clone(), 0.0);
    }
    let work = limit(&clock, options, form, r);
    // A work limit ends the search, not its first points.
    let meter = Meter::new(&clock, f64::INFINITY);
    let about = match sparsity {
        RowSparsity::Count(count) => count,
        RowSparsity::Price(_) => 2 * r,
    };
    let truncated = |y: &Array2<f64>| Some(on_rows(about.min(n), y));
    if let Some(ended) = board.begun(first, work, (threads, &meter), truncated) {
        return Ok(board.finish(ended, meter.spent()));
    }
    let whole = matches!(sparsity, RowSparsity::Count(count) if count == n);
    let prepared = pool::run(
        1,
        1,
        &clock,
        |_| {
            let go_on = || !meter.expired();
            let (basis, spectrum) = start::rough_spectral(form, r, threads, &go_on)?;
            meter.spend(start::rough_work(form, r));
            let basis = basis.slice(s![.., ..r]).to_owned();
            Some((basis, spectrum, Columns::new(form, BYTES, &go_on)?))
        },
        |_| board.poll(),
    );
    let Some((basis, (low, high), columns)) = prepared.into_iter().flatten().flatten().next()
    else {
        return Ok(board.finish(Status::MaxWork, meter.spent()));
    };
    let mut walk = RowSets {
        scale: (0.5 * (high - low)).max(f64::MIN_POSITIVE),
        form,
        columns,
        diagonal,
        basis,
        given: given.map(|(rows, _)| rows),
        sparsity,
        price,
        opening: Vec::new(),
    };
    let points = pool::run(
        2,
        threads.count(),
        &clock,
        |k| walk.opened(k, about.min(n), &meter),
        |_| board.poll(),
    );
    walk.opening = points.into_iter().flatten().flatten().collect();
    for point in &walk.opening {
        board.accept(walk.dense(point), 0.0);
    }
    let exact = whole || is_spectrum_exact(n);
    let spectral = if whole {
        board.value()
    } else {
        form.value(walk.basis.view(), &Threads::serial())
    };
    let search = Search {
        bound: if exact {
            spectral + price * r as f64
        } else {
            f64::NEG_INFINITY
        },
        patience: LEAST_PATIENCE.max(PATIENCE * about),
        walk,
        options,
        threads,
        clock: &clock,
        limit: work,
    };
    let (status, spent) = search.run(&mut board, meter.spent());
    Ok(board.finish(status, spent))
}

/// The rows that are not zero.
fn rows_of(x: &Array2<f64>) -> Vec<usize> {
    let rows = x.outer_iter().enumerate();
    rows.filter(|(_, row)| row.iter().any(|&v| v != 0.0))
        .map(|(i, _)| i)
        .collect()
}

/// A set of rows, the eigenvectors on it, and the value.
#[derive(Debug, Clone)]
struct Rows {
    rows: Vec<usize>,
    vectors: Array2<f64>,
    eigenvalues: Vec<f64>,
    value: f64,
}

/// The losses of the rows of a set and the gains of others, best first.
struct Table {
    drops: Vec<(f64, usize)>,
    adds: Vec<(f64, usize)>,
}

/// Sets of rows.
struct RowSets<'a> {
    form: &'a dyn QuadraticForm,
    columns: Columns<'a>,
    diagonal: Vec<f64>,
    basis: Array2<f64>,
    given: Option<Vec<usize>>,
    sparsity: RowSparsity,
    price: f64,
    scale: f64,
    /// Points that the first chains begin at.
    opening: Vec<Rows>,
}

impl RowSets<'_> {
    fn components(&self) -> usize {
        self.basis.ncols()
    }

    /// The points that the search begins with: on the rows of largest leverage, and of largest variance.
    fn opened(&self, number: usize, count: usize, meter: &Meter<'_>) -> Option<Rows> {
        let weights = match number {
            0 => self.basis.clone(),
            _ => self.variances(),
        };
        self.solved(largest_rows(&weights, count), meter)
    }

    /// Roots of the diagonal of −C, less its smallest entry, n×1.
    fn variances(&self) -> Array2<f64> {
        let highest = self
            .diagonal
            .iter()
            .fold(f64::NEG_INFINITY, |m, v| m.max(*v));
        Array2::from_shape_fn((self.diagonal.len(), 1), |(i, _)| {
            (highest - self.diagonal[i]).sqrt()
        })
    }

    /// The best point on rows, at least r of them; None if the time ran out.
    fn solved(&self, mut rows: Vec<usize>, meter: &Meter<'_>) -> Option<Rows> {
        rows.sort_unstable();
        rows.dedup();
        let (k, r) = (rows.len(), self.components());
        if meter.expired() || k < r {
            return None;
        }
        let mut c = Array2::zeros((k, k));
        for (&i, mut row) in rows.iter().zip(c.rows_mut()) {
            let column = self.columns.column(i);
            row.iter_mut().zip(&rows).for_each(|(v, &j)| *v = column[j]);
        }
        meter.spend(SCALAR * (k * k) as f64);
        let (eigenvalues, vectors) = axes(&Quadratic::new(c, None, None).ok()?, r, meter)?;
        let smooth = 0.5 * eigenvalues.iter().sum::<f64>();
        // A row where all vectors vanish is none.
        let live = vectors
            .outer_iter()
            .filter(|row| row.iter().any(|&v| v != 0.0))
            .count();
        Some(Rows {
            value: smooth + self.price * live as f64,
            rows,
            vectors,
            eigenvalues,
        })
        .filter(|rows| rows.value.is_finite())
    }

    fn table(&self, state: &Rows, meter: &Meter<'_>) -> Table {
        let (n, r, k) = (self.diagonal.len(), self.components(), state.rows.len());
        let first_use = if self.columns.is_whole() {
            0.0
        } else {
            self.form.product_work()
        };
        meter.spend(k as f64 * first_use + 2.0 * (n * k * r) as f64 + SCALAR * (4 * n * r) as f64);
        let mut image: Array2<f64> = Array2::zeros((r, n));
        for (&i, v) in state.rows.iter().zip(state.vectors.outer_iter()) {
            let column = self.columns.column(i);
            for (mut y, &v) in image.outer_iter_mut().zip(v) {
                y.iter_mut().zip(&*column).for_each(|(y, &c)| *y += v * c);
            }
        }
        // The direction u of the span: its eigenvalue and its coupling.
        let along = |u: &[f64]| -> f64 {
            u.iter()
                .zip(&state.eigenvalues)
                .map(|(u, l)| u * u * l)
                .sum()
        };
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
                let without =
                    (lambda - 2.0 * square.sqrt() * coupling + self.diagonal[i] * square) / left;
                (0.5 * (without - lambda), i)
            })
            .collect();
        adds.sort_by(|a: &(f64, usize), b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        drops.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        Table { drops, adds }
    }

    /// The set with some rows less and some more.
    fn changed(
        &self,
        state: &Rows,
        drops: &[usize],
        adds: &[usize],
        meter: &Meter<'_>,
    ) -> Option<Rows> {
        let kept = state.rows.iter().copied().filter(|i| !drops.contains(i));
        self.solved(kept.chain(adds.iter().copied()).collect(), meter)
    }

    /// By how much the number of rows misses what is wanted: too many are positive.
    fn surplus(&self, state: &Rows) -> isize {
        match self.sparsity {
            RowSparsity::Count(count) => {
                state.rows.len() as isize - count.min(self.diagonal.len()) as isize
            }
            RowSparsity::Price(_) => 0,
        }
    }

    /// Rows are dropped or added until there are as many as wanted.
    fn fitted(&self, mut state: Rows, meter: &Meter<'_>) -> Option<Rows> {
        loop {
            let surplus = self.surplus(&state);
            if surplus == 0 {
                return Some(state);
            }
            if meter.expired() {
                return None;
            }
            let table = self.table(&state, meter);
            let many = surplus.unsigned_abs().div_ceil(AT_ONCE);
            let chosen =
                |from: &[(f64, usize)]| from.iter().take(many).map(|row| row.1).collect::<Vec<_>>();
            state = match surplus > 0 {
                true => self.changed(&state, &chosen(&table.drops), &[], meter)?,
                false => self.changed(&state, &[], &chosen(&table.adds), meter)?,
            };
        }
    }

    /// The exchanges, and with a price the single changes, the most hopeful first.
    fn candidates(&self, table: &Table) -> Vec<(f64, Option<usize>, Option<usize>)> {
        let mut all = Vec::new();
        let adds = &table.adds[..table.adds.len().min(CANDIDATES)];
        for &(loss, i) in table.drops.iter().take(CANDIDATES) {
            all.extend(
                adds.iter()
                    .map(|&(gain, j)| (gain - loss, Some(i), Some(j))),
            );
            if matches!(self.sparsity, RowSparsity::Price(_)) {
                all.push((self.price - loss, Some(i), None));
            }
        }
        if matches!(self.sparsity, RowSparsity::Price(_)) {
            all.extend(
                adds.iter()
                    .map(|&(gain, j)| (gain - self.price, None, Some(j))),
            );
        }
        all.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        all
    }
}

impl Walk for RowSets<'_> {
    type State = Rows;

    fn start(&self, number: usize, seed: u64, meter: &Meter<'_>) -> Option<Rows> {
        let (n, r) = self.basis.dim();
        let number = match (&self.given, number) {
            (Some(given), 0) => return self.fitted(self.solved(given.clone(), meter)?, meter),
            (Some(_), number) => number - 1,
            (None, number) => number,
        };
        if let Some(opened) = self.opening.get(number) {
            return self.fitted(opened.clone(), meter);
        }
        let number = number - self.opening.len();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let count = match self.sparsity {
            RowSparsity::Count(count) => count,
            RowSparsity::Price(_) if number < 2 => r,
            RowSparsity::Price(_) => random.random_range(r..=(8 * r).min(n)),
        };
        let rows = match number {
            // Forward from the largest variances, backward from more rows than wanted.
            0 => largest_rows(&self.variances(), r),
            1 => largest_rows(&self.basis, (2 * count).min(n)),
            _ if number.is_multiple_of(2) => {
                let mixing: Array2<f64> =
                    Array2::from_shape_fn((r, r), |_| StandardNormal.sample(&mut random));
                let columns = random.random_range(1..=r);
                largest_rows(
                    &self.basis.dot(&polar(&mixing).slice(s![.., ..columns])),
                    count,
                )
            }
            _ => {
                let mut rows = largest_rows(&self.basis, (4 * count).min(n));
                rows.shuffle(&mut random);
                rows.truncate(r);
                rows
            }
        };
        self.fitted(self.solved(rows, meter)?, meter)
    }

    fn perturbed(&self, state: &Rows, seed: u64, meter: &Meter<'_>) -> Option<Rows> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let k = state.rows.len();
        let most = (k / 3).clamp(2, 12);
        let times = random
            .random_range(2..=most)
            .min(k.saturating_sub(1))
            .max(1);
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
        let solved = self.solved(rows, meter)?;
        self.fitted(solved, meter)
    }

    fn descend(
        &self,
        state: &mut Rows,
        rested: &mut Rested,
        spent: f64,
        meter: &Meter<'_>,
    ) -> bool {
        let late = || meter.expired();
        loop {
            if late() || meter.spent() >= spent {
                return false;
            }
            if rested.holds(&state.rows, state.value + LEAST * self.scale) {
                return true;
            }
            let table = self.table(state, meter);
            let goal = state.value - LEAST * self.scale;
            let mut found = None;
            for (_, out, joins) in self.candidates(&table).into_iter().take(TRIALS) {
                if late() {
                    break;
                }
                let next = self.changed(state, out.as_slice(), joins.as_slice(), meter);
                found = next.filter(|next| next.value < goal);
                if found.is_some() {
                    break;
                }
            }
            match found {
                Some(next) => *state = next,
                None if late() => return false,
                None => {
                    rested.note(state.rows.clone(), state.value);
                    return true;
                }
            }
        }
    }

    fn name(&self, number: usize) -> &'static str {
        match number.checked_sub(usize::from(self.given.is_some())) {
            None => "given",
            Some(number) if number < self.opening.len() => "opening",
            Some(_) => "rows",
        }
    }

    fn value(&self, state: &Rows) -> f64 {
        state.value
    }

    fn dense(&self, state: &Rows) -> Array2<f64> {
        let mut x = Array2::zeros(self.basis.dim());
        for (&i, row) in state.rows.iter().zip(state.vectors.outer_iter()) {
            x.row_mut(i).assign(&row);
        }
        x
    }

    fn scale(&self) -> f64 {
        self.scale
    }
}
