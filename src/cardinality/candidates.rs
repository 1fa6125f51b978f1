//! Moves of entries between zero and nonzero, by what they are estimated to bring.
//!
//! For a column v that shares no rows, `λ = vᵀBv`: without row a it has the value
//! `λ' = (λ − 2v_a(Bv)_a + B_aa v_a²)/(1 − v_a²)`, and a row j that joins lowers it to at most the smaller eigenvalue of
//! `[[λ', ρ], [ρ, B_jj]]`, `ρ = ((Bv)_j − B_ja v_a)/√(1 − v_a²)`. For columns that share rows the gradient is that on the
//! manifold and the estimate is one. A move is an exchange within a column; a row that changes its column, with
//! what each of the two gets for it; two rows of a column that join another, as a single one brings nothing: one of the
//! two entries would have to vanish; or, where the budget is one for all, an entry less here for one more there.

use std::collections::HashMap;

use super::model::{Model, Point, SCALAR};
use super::rules::Cardinality;
use crate::budget::Meter;
use crate::objective::Column as CovarianceColumn;
use crate::support;

/// Rows per column that may come in, and entries per column that may go out for a row of another.
const ADDITIONS: usize = 16;
const CHEAPEST: usize = 3;

/// Rows of a column of which two may join another.
const PULLED: usize = 8;

/// Entries that may go out here for one more there.
pub(super) const TRANSFERS: usize = 6;

/// Moves that are kept, the most hopeful ones.
const KEPT: usize = 400;

/// Smallest and largest first value of an entry.
const LEAST_FIRST: f64 = 1e-6;
const FIRST: f64 = 0.3;

/// Entries (row, column) that leave the support, and that join it, with a first value where that is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Move {
    pub(super) drops: Vec<(usize, usize)>,
    pub(super) adds: Vec<(usize, usize, Option<f64>)>,
}

/// A move of one or two entries, and by how much it is estimated to lower f.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Candidate {
    pub(super) estimate: f64,
    drops: [Option<(usize, usize)>; 2],
    adds: [Option<(usize, usize)>; 2],
    firsts: [Option<f64>; 2],
}

impl Candidate {
    fn new(estimate: f64, drop: (usize, usize), add: (usize, usize)) -> Self {
        Self {
            estimate,
            drops: [Some(drop), None],
            adds: [Some(add), None],
            firsts: [None; 2],
        }
    }

    /// Adds it to a move, unless they have rows in common.
    pub(super) fn join(&self, to: &mut Move) -> bool {
        let drops = || self.drops.iter().flatten();
        let adds = || self.adds.iter().flatten();
        let dropped = |row: usize| to.drops.iter().any(|entry| entry.0 == row);
        let known = |row: usize| dropped(row) || to.adds.iter().any(|entry| entry.0 == row);
        if drops().chain(adds()).any(|entry| known(entry.0)) {
            return false;
        }
        to.drops.extend(drops());
        let firsts = self.adds.iter().zip(self.firsts);
        to.adds
            .extend(firsts.filter_map(|(add, first)| add.map(|(i, t)| (i, t, first))));
        true
    }
}

/// A row that may go out, and its row of C.
type Row<'a> = (usize, CovarianceColumn<'a>);

/// A point with the gradients of its columns.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) point: Point,
    gradients: Vec<Vec<f64>>,
}

/// What is known of a column when moves are made up.
pub(super) struct Column {
    lambda: f64,
    /// The Riemannian gradient and λv: Bv for a column that shares no rows.
    image: Vec<f64>,
    /// Loss and row, the smallest loss first.
    pub(super) drops: Vec<(f64, usize)>,
    /// Gain and row, the largest gain first.
    pub(super) adds: Vec<(f64, usize)>,
    /// For every row that may go out, the best that may come in for it, and the decrease.
    exchanges: HashMap<usize, (f64, usize)>,
}

/// By how much f falls when a row joins.
fn joined(lambda: f64, rho: f64, entry: f64, nonnegative: bool) -> f64 {
    if nonnegative && rho >= 0.0 {
        return 0.0;
    }
    support::gain(lambda, rho, entry)
}

/// Moves of a model's points, paid by a meter.
pub(super) struct Mover<'a> {
    pub(super) model: &'a Model<'a>,
    pub(super) meter: &'a Meter<'a>,
}

impl Mover<'_> {
    pub(super) fn state(&self, point: Point) -> State {
        State {
            gradients: self.model.gradients(&point, self.meter),
            point,
        }
    }

    /// Whether nothing more can be done.
    pub(super) fn is_late(&self) -> bool {
        self.meter.expired()
    }

    /// The rows where the gradient of column t is largest, a few more than it has.
    pub(super) fn near(&self, state: &State, t: usize) -> Vec<usize> {
        let gradient = &state.gradients[t];
        let most = (2 * state.point.parts[t].rows.len() + 10).min(gradient.len());
        let mut rows: Vec<usize> = (0..gradient.len()).collect();
        self.meter.spend(SCALAR * (4 * rows.len()) as f64);
        rows.select_nth_unstable_by(most - 1, |&a, &b| {
            gradient[b]
                .abs()
                .total_cmp(&gradient[a].abs())
                .then(a.cmp(&b))
        });
        rows.truncate(most);
        rows.sort_unstable();
        rows
    }

    pub(super) fn replace(&self, state: &mut State, point: Point) {
        for (t, part) in point.parts.iter().enumerate() {
            let old = &state.point.parts[t];
            if part.rows != old.rows || part.values != old.values {
                state.gradients[t] = self.model.gradient(part, t, self.meter);
            }
        }
        state.point = point;
    }

    /// By how much f falls when row j takes the place of row a in column t, given C_aj.
    fn exchange(
        &self,
        state: &State,
        columns: &[Column],
        t: usize,
        (a, j, shared): (usize, usize, f64),
    ) -> f64 {
        let column = &columns[t];
        let Some(v) = state.point.parts[t].entry(a) else {
            return f64::NEG_INFINITY;
        };
        let weight = self.model.weights[t];
        let left = (1.0 - v * v).max(f64::EPSILON);
        let own = weight * self.model.diagonal[a];
        let lambda = (column.lambda - 2.0 * v * column.image[a] + own * v * v) / left;
        let rho = (column.image[j] - weight * shared * v) / left.sqrt();
        let entry = weight * self.model.diagonal[j];
        let gain = joined(lambda, rho, entry, self.model.rules.nonnegative);
        if state.point.parts[t].rows.len() == 1 {
            return 0.5 * (column.lambda - entry);
        }
        gain - 0.5 * (lambda - column.lambda)
    }

    pub(super) fn columns(&self, state: &State) -> Vec<Column> {
        let (model, point) = (self.model, &state.point);
        let r = point.parts.len();
        let along = |s: usize, t: usize| -> f64 {
            let part = &point.parts[s];
            let entries = part.rows.iter().zip(&part.values);
            entries.map(|(&i, v)| v * state.gradients[t][i]).sum()
        };
        (0..r)
            .map(|t| {
                let meets: Vec<bool> = (0..r).map(|s| s == t || point.meet(s, t)).collect();
                let mut image = state.gradients[t].clone();
                for s in (0..r).filter(|&s| s != t && meets[s]) {
                    let multiplier = 0.5 * (along(s, t) + along(t, s));
                    let part = &point.parts[s];
                    for (&i, v) in part.rows.iter().zip(&part.values) {
                        image[i] -= multiplier * v;
                    }
                }
                let lambda = along(t, t);
                // Rows of this column, and of others that it may not share rows with.
                let mut taken = vec![false; model.order()];
                for (s, part) in point.parts.iter().enumerate() {
                    if model.rules.nonnegative || s == t || !meets[s] {
                        part.rows.iter().for_each(|&i| taken[i] = true);
                    }
                }
                let free = |j: usize| !taken[j] && model.rules.admits(j, t);
                self.column(point, t, lambda, image, free)
            })
            .collect()
    }

    fn column(
        &self,
        point: &Point,
        t: usize,
        lambda: f64,
        image: Vec<f64>,
        free: impl Fn(usize) -> bool,
    ) -> Column {
        let (model, part) = (self.model, &point.parts[t]);
        let n = model.order();
        self.meter.spend(SCALAR * (6 * n) as f64);
        let weight = model.weights[t];
        let mut adds: Vec<(f64, usize)> = (0..n)
            .map(|j| {
                let entry = weight * model.diagonal[j];
                (joined(lambda, image[j], entry, model.rules.nonnegative), j)
            })
            .filter(|&(gain, j)| gain > 0.0 && free(j))
            .collect();
        let order = |a: &(f64, usize), b: &(f64, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if adds.len() > ADDITIONS {
            adds.select_nth_unstable_by(ADDITIONS, order);
            adds.truncate(ADDITIONS);
        }
        adds.sort_by(order);
        let single = part.rows.len() == 1;
        let mut drops: Vec<(f64, usize)> = (part.rows.iter().zip(&part.values))
            .filter(|&(&i, _)| !single && !model.rules.holds(i, t))
            .map(|(&i, v)| {
                let left = (1.0 - v * v).max(f64::EPSILON);
                let own = weight * model.diagonal[i];
                let without = (lambda - 2.0 * v * image[i] + own * v * v) / left;
                (0.5 * (without - lambda), i)
            })
            .collect();
        drops.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        Column {
            lambda,
            image,
            drops,
            adds,
            exchanges: HashMap::new(),
        }
    }

    /// The first value of an entry that joins.
    pub(super) fn first(&self, columns: &[Column], (j, t): (usize, usize)) -> f64 {
        let (column, entry) = (&columns[t], self.model.weights[t] * self.model.diagonal[j]);
        let (rho, gap) = (column.image[j], 0.5 * (entry - column.lambda));
        let angle = 0.5 * rho.abs().atan2(gap);
        -angle.sin().clamp(LEAST_FIRST, FIRST).copysign(rho)
    }

    /// Exchanges within the columns.
    fn exchanges(&self, state: &State, columns: &mut [Column], moves: &mut Vec<Candidate>) {
        for t in 0..columns.len() {
            let part = &state.point.parts[t];
            self.meter
                .spend(SCALAR * (10 * part.rows.len() * columns[t].adds.len()) as f64);
            for &a in part.rows.iter().filter(|&&a| !self.model.rules.holds(a, t)) {
                let mut best = None;
                let row = self.model.column(a);
                for &(_, j) in &columns[t].adds {
                    let estimate = self.exchange(state, columns, t, (a, j, row[j]));
                    if best.is_none_or(|(other, _)| estimate > other) {
                        best = Some((estimate, j));
                    }
                    moves.push(Candidate::new(estimate, (a, t), (j, t)));
                }
                if let Some(best) = best {
                    columns[t].exchanges.insert(a, best);
                }
            }
        }
    }

    /// Rows that change from column s to a column t that shares none with it, where both keep their counts.
    fn passes(&self, state: &State, columns: &[Column], moves: &mut Vec<Candidate>) {
        let (parts, rules) = (&state.point.parts, &self.model.rules);
        for t in 0..parts.len() {
            for s in (0..parts.len()).filter(|&s| s != t && !state.point.meet(s, t)) {
                self.meter
                    .spend(SCALAR * (20 * CHEAPEST * parts[s].rows.len()) as f64);
                for &j in &parts[s].rows {
                    if rules.holds(j, s) || !rules.admits(j, t) {
                        continue;
                    }
                    let single = [(0.0, parts[t].rows[0])];
                    let out = match parts[t].rows.len() {
                        1 if !rules.holds(single[0].1, t) => &single[..],
                        _ => &columns[t].drops,
                    };
                    let row = self.model.column(j);
                    for &(_, a) in out.iter().take(CHEAPEST) {
                        let here = self.exchange(state, columns, t, (a, j, row[a]));
                        let swap = rules
                            .admits(a, s)
                            .then(|| (self.exchange(state, columns, s, (j, a, row[a])), a));
                        let there = [columns[s].exchanges.get(&j).copied(), swap];
                        moves.extend(there.into_iter().flatten().map(|(gain, b)| Candidate {
                            estimate: here + gain,
                            drops: [Some((a, t)), Some((j, s))],
                            adds: [Some((j, t)), Some((b, s))],
                            firsts: [None; 2],
                        }));
                    }
                }
            }
        }
    }

    /// Two rows of a column s that join a column t which shares none with it, in the combination d of the two that is
    /// orthogonal to x_s: one direction more for x_t, with ρ = dᵀBx_t and the diagonal entry dᵀBd.
    fn pulls(&self, state: &State, columns: &[Column], moves: &mut Vec<Candidate>) {
        let (parts, model) = (&state.point.parts, self.model);
        if model.rules.nonnegative {
            return;
        }
        let counts = state.point.counts();
        for (t, column) in columns.iter().enumerate() {
            let room = model.rules.room(&counts, t).min(2);
            let few: Vec<Row<'_>> = (column.drops.iter().take(CHEAPEST))
                .map(|&(_, a)| (a, model.column(a)))
                .collect();
            let few = few.as_slice();
            let mut outs: Vec<[Option<&Row<'_>>; 2]> = Vec::new();
            match 2 - room {
                0 => outs.push([None; 2]),
                1 => outs.extend(few.iter().map(|a| [Some(a), None])),
                _ => outs.extend(
                    (0..few.len())
                        .flat_map(|b| (0..b).map(move |a| [Some(&few[a]), Some(&few[b])])),
                ),
            }
            for s in (0..parts.len()).filter(|&s| s != t && !state.point.meet(s, t)) {
                let mut rows: Vec<(f64, usize)> = (parts[s].rows.iter())
                    .filter(|&&j| model.rules.admits(j, t))
                    .map(|&j| (column.image[j].abs(), j))
                    .collect();
                rows.sort_by(|a, b| b.0.total_cmp(&a.0));
                rows.truncate(PULLED);
                self.meter
                    .spend(SCALAR * (30 * outs.len() * rows.len() * rows.len()) as f64);
                for (k, &(_, j)) in rows.iter().enumerate() {
                    let row = model.column(j);
                    for &(_, i) in &rows[..k] {
                        for out in &outs {
                            let pair = (i, j, row[i]);
                            moves.extend(self.pull(state, column, (s, t), pair, *out));
                        }
                    }
                }
            }
        }
    }

    fn pull(
        &self,
        state: &State,
        column: &Column,
        (s, t): (usize, usize),
        (i, j, shared): (usize, usize, f64),
        out: [Option<&Row<'_>>; 2],
    ) -> Option<Candidate> {
        let (model, parts) = (self.model, &state.point.parts);
        let weight = model.weights[t];
        let (p, q) = (parts[s].entry(j)?, -parts[s].entry(i)?);
        let norm = p.hypot(q);
        let (p, q) = (p / norm, q / norm);
        let square = |i: usize| model.diagonal[i];
        let own = weight * (p * p * square(i) + 2.0 * p * q * shared + q * q * square(j));
        let (mut lambda, mut rho, mut left) = (
            column.lambda,
            p * column.image[i] + q * column.image[j],
            1.0,
        );
        for (k, (a, row)) in out.iter().enumerate().filter_map(|(k, a)| Some((k, (*a)?))) {
            let v = parts[t].entry(*a)?;
            lambda += weight * square(*a) * v * v - 2.0 * v * column.image[*a];
            if let (1, Some((b, _))) = (k, out[0]) {
                lambda += 2.0 * weight * row[*b] * v * parts[t].entry(*b)?;
            }
            rho -= v * weight * (p * row[i] + q * row[j]);
            left -= v * v;
        }
        let (estimate, first) =
            if left > f64::EPSILON && parts[t].rows.len() > out.iter().flatten().count() {
                (lambda, rho) = (lambda / left, rho / left.sqrt());
                let angle = 0.5 * rho.abs().atan2(0.5 * (own - lambda));
                let first = -angle.sin().max(LEAST_FIRST).copysign(rho);
                (
                    joined(lambda, rho, own, false) - 0.5 * (lambda - column.lambda),
                    first,
                )
            } else {
                (0.5 * (column.lambda - own), 1.0)
            };
        Some(Candidate {
            estimate,
            drops: out.map(|a| a.map(|&(a, _)| (a, t))),
            adds: [Some((i, t)), Some((j, t))],
            firsts: [Some(first * p), Some(first * q)],
        })
    }

    /// An entry less here for one more there.
    fn transfers(&self, state: &State, columns: &[Column], moves: &mut Vec<Candidate>) {
        for (s, from) in columns.iter().enumerate() {
            for (t, to) in columns.iter().enumerate().filter(|&(t, _)| t != s) {
                for &(loss, a) in from.drops.iter().take(TRANSFERS) {
                    let adds = to.adds.iter().take(TRANSFERS);
                    moves
                        .extend(adds.map(|&(gain, j)| Candidate::new(gain - loss, (a, s), (j, t))));
                }
                if state.point.meet(s, t) {
                    continue;
                }
                for &(loss, a) in from
                    .drops
                    .iter()
                    .filter(|&&(_, a)| self.model.rules.admits(a, t))
                {
                    let entry = self.model.weights[t] * self.model.diagonal[a];
                    let nonnegative = self.model.rules.nonnegative;
                    let gain = joined(to.lambda, to.image[a], entry, nonnegative);
                    moves.push(Candidate::new(gain - loss, (a, s), (a, t)));
                }
            }
        }
    }

    /// All moves, the most hopeful first.
    pub(super) fn moves(&self, columns: &mut [Column], state: &State) -> Vec<Candidate> {
        let mut moves = Vec::new();
        self.exchanges(state, columns, &mut moves);
        self.passes(state, columns, &mut moves);
        self.pulls(state, columns, &mut moves);
        if matches!(self.model.rules.cardinality, Cardinality::Total(_)) {
            self.transfers(state, columns, &mut moves);
        }
        let mut order: Vec<(f64, usize)> = moves
            .iter()
            .enumerate()
            .map(|(k, one)| (one.estimate, k))
            .collect();
        let best = |a: &(f64, usize), b: &(f64, usize)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if order.len() > KEPT {
            order.select_nth_unstable_by(KEPT, best);
            order.truncate(KEPT);
        }
        order.sort_unstable_by(best);
        order.into_iter().map(|(_, k)| moves[k]).collect()
    }
}
