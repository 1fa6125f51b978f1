//! Moves of entries between zero and nonzero, ranked by their estimated decrease of f.
//!
//! For a column v that shares no rows with others, `λ = vᵀBv`. Without row a the value is `λ' = (λ −
//! 2v_a(Bv)_a + B_aa v_a²)/(1 − v_a²)`. Adding row j lowers it to at most the smaller eigenvalue of `[[λ',
//! ρ], [ρ, B_jj]]`, `ρ = ((Bv)_j − B_ja v_a)/√(1 − v_a²)`. For columns that share rows, the gradient is that
//! on the manifold, and the decrease is only an estimate.
//!
//! Moves are: swaps within a column; transfers of a row to another column, with a replacement in both
//! columns; and, for a limit on the total number of nonzeros, transfers of an entry from one column to another.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::model::{ColumnModel, SparsePoint};
use super::pattern::{self, SCALAR};
use crate::limits::TaskWork;
use crate::problem::Cardinality;

/// Most rows added per column.
const ADDITIONS: usize = 16;

/// Most drops and adds per column in transfers.
pub(crate) const TRANSFERS: usize = 6;

/// Most moves kept, those with the largest estimate.
const KEPT: usize = 400;

/// Smallest initial magnitude of an added entry.
const LEAST_FIRST: f64 = 1e-6;

/// Entries (row, column) dropped from the support and added to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Move {
    pub(crate) drops: Vec<(usize, usize)>,
    pub(crate) adds: Vec<(usize, usize)>,
}

/// A move of one or two entries, with the estimated decrease of f.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CandidateMove {
    pub(crate) estimate: f64,
    drops: [Option<(usize, usize)>; 2],
    adds: [Option<(usize, usize)>; 2],
}

impl CandidateMove {
    fn new(estimate: f64, drop: (usize, usize), add: (usize, usize)) -> Self {
        Self { estimate, drops: [Some(drop), None], adds: [Some(add), None] }
    }

    /// Appends the candidate to a move, unless they have rows in common; returns whether it was appended.
    pub(crate) fn append_to(&self, to: &mut Move) -> bool {
        let drops = || self.drops.iter().flatten();
        let adds = || self.adds.iter().flatten();
        let dropped = |row: usize| to.drops.iter().any(|entry| entry.0 == row);
        let known = |row: usize| dropped(row) || to.adds.iter().any(|entry| entry.0 == row);
        if drops().chain(adds()).any(|entry| known(entry.0)) {
            return false;
        }
        to.drops.extend(drops());
        to.adds.extend(adds());
        true
    }
}

/// A point with the gradients of its columns.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) point: SparsePoint,
    gradients: Vec<Vec<f64>>,
}

/// The estimates for the moves of a column.
pub(crate) struct ColumnEstimates {
    lambda: f64,
    /// The Riemannian gradient plus λv; for a column that shares no rows this is Bv.
    image: Vec<f64>,
    /// Loss and row, the smallest loss first.
    pub(crate) drops: Vec<(f64, usize)>,
    /// Gain and row, the largest gain first.
    pub(crate) adds: Vec<(f64, usize)>,
    /// For each row that may be dropped: the estimated decrease with the best replacement, and that row.
    swaps: HashMap<usize, (f64, usize)>,
}

/// Returns the estimated decrease of f from adding a row.
fn add_gain(lambda: f64, rho: f64, entry: f64, nonnegative: bool) -> f64 {
    if nonnegative && rho >= 0.0 {
        return 0.0;
    }
    pattern::gain(lambda, rho, entry)
}

/// Moves of the points of a model; the work is charged to the task.
pub(crate) struct SupportMover<'a> {
    pub(crate) model: &'a ColumnModel<'a>,
    pub(crate) work: &'a TaskWork<'a>,
}

impl SupportMover<'_> {
    pub(crate) fn state(&self, point: SparsePoint) -> State {
        State { gradients: self.model.gradients(&point, self.work), point }
    }

    /// Returns whether the work or the time is used up.
    pub(crate) fn is_late(&self) -> bool {
        self.work.expired()
    }

    /// Returns the rows with the largest gradient entries of column t: twice its nonzeros and ten more.
    pub(crate) fn near(&self, state: &State, t: usize) -> Vec<usize> {
        let gradient = &state.gradients[t];
        let most = (2 * state.point.parts[t].rows.len() + 10).min(gradient.len());
        let mut rows: Vec<usize> = (0..gradient.len()).collect();
        self.work.spend(SCALAR * (4 * rows.len()) as f64);
        rows.select_nth_unstable_by(most - 1, |&a, &b| gradient[b].abs().total_cmp(&gradient[a].abs()).then(a.cmp(&b)));
        rows.truncate(most);
        rows.sort_unstable();
        rows
    }

    pub(crate) fn replace(&self, state: &mut State, point: SparsePoint) {
        for (t, part) in point.parts.iter().enumerate() {
            let old = &state.point.parts[t];
            if part.rows != old.rows || part.values != old.values {
                state.gradients[t] = self.model.gradient(part, t, self.work);
            }
        }
        state.point = point;
    }

    /// Returns the decrease of f if row j replaces row a in column t, given C_aj.
    fn swap_decrease(
        &self,
        state: &State,
        columns: &[ColumnEstimates],
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
        let lambda = pattern::without(column.lambda, v, column.image[a], own);
        let rho = (column.image[j] - weight * shared * v) / left.sqrt();
        let entry = weight * self.model.diagonal[j];
        let gain = add_gain(lambda, rho, entry, self.model.rules.nonnegative);
        if state.point.parts[t].rows.len() == 1 {
            return 0.5 * (column.lambda - entry);
        }
        gain - 0.5 * (lambda - column.lambda)
    }

    pub(crate) fn columns(&self, state: &State) -> Vec<ColumnEstimates> {
        let (model, point) = (self.model, &state.point);
        let r = point.parts.len();
        let along = |s: usize, t: usize| point.parts[s].along(&state.gradients[t]);
        (0..r)
            .map(|t| {
                let meets: Vec<bool> = (0..r).map(|s| s == t || point.meet(s, t)).collect();
                let mut image = state.gradients[t].clone();
                for s in (0..r).filter(|&s| s != t && meets[s]) {
                    let multiplier = 0.5 * (along(s, t) + along(t, s));
                    let entries = point.parts[s].entries();
                    entries.for_each(|(i, v)| image[i] -= multiplier * v);
                }
                let lambda = along(t, t);
                let mut open = model.rules.open(&point.parts, t);
                // Neither a row of this column, nor a first one in common with another.
                for (_, part) in point.parts.iter().enumerate().filter(|&(s, _)| s == t || !meets[s]) {
                    part.rows.iter().for_each(|&i| open[i] = false);
                }
                self.column(point, t, lambda, image, |j| open[j])
            })
            .collect()
    }

    fn column(
        &self,
        point: &SparsePoint,
        t: usize,
        lambda: f64,
        image: Vec<f64>,
        free: impl Fn(usize) -> bool,
    ) -> ColumnEstimates {
        let (model, part) = (self.model, &point.parts[t]);
        let n = model.order();
        self.work.spend(SCALAR * (6 * n) as f64);
        let weight = model.weights[t];
        let adds = pattern::largest(n, ADDITIONS, |j, least| {
            let (rho, own) = (image[j], weight * model.diagonal[j]);
            // The gain is at most ½|ρ|, if the diagonal entry is not below λ.
            if own >= lambda && 0.5 * rho.abs() <= least || !free(j) {
                return 0.0;
            }
            add_gain(lambda, rho, own, model.rules.nonnegative)
        });
        let single = part.rows.len() == 1;
        let mut drops: Vec<(f64, usize)> = (part.entries())
            .filter(|&(i, _)| !single && !model.rules.holds(i, t))
            .map(|(i, v)| {
                let without = pattern::without(lambda, v, image[i], weight * model.diagonal[i]);
                (0.5 * (without - lambda), i)
            })
            .collect();
        drops.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        ColumnEstimates { lambda, image, drops, adds, swaps: HashMap::new() }
    }

    /// Returns the initial value of an added entry.
    pub(crate) fn first(&self, columns: &[ColumnEstimates], (j, t): (usize, usize)) -> f64 {
        let (column, entry) = (&columns[t], self.model.weights[t] * self.model.diagonal[j]);
        let (rho, gap) = (column.image[j], 0.5 * (entry - column.lambda));
        let angle = 0.5 * rho.abs().atan2(gap);
        -angle.sin().max(LEAST_FIRST).copysign(rho)
    }

    /// Appends the swaps within the columns.
    fn swaps(&self, state: &State, columns: &mut [ColumnEstimates], moves: &mut Vec<CandidateMove>) {
        for t in 0..columns.len() {
            let part = &state.point.parts[t];
            let swaps = part.rows.len() * columns[t].adds.len();
            self.work.spend(SCALAR * (10 * swaps) as f64 + self.model.entries_work(swaps));
            for &a in part.rows.iter().filter(|&&a| !self.model.rules.holds(a, t)) {
                let mut best = None;
                for &(_, j) in &columns[t].adds {
                    let shared = self.model.entry(a, j);
                    let estimate = self.swap_decrease(state, columns, t, (a, j, shared));
                    if best.is_none_or(|(other, _)| estimate > other) {
                        best = Some((estimate, j));
                    }
                    moves.push(CandidateMove::new(estimate, (a, t), (j, t)));
                }
                if let Some(best) = best {
                    columns[t].swaps.insert(a, best);
                }
            }
        }
    }

    /// Appends the transfers of a row from column s to a column t that shares no rows with s, where it replaces
    /// the entry whose loss costs least; both keep their number of nonzeros.
    fn row_transfers(&self, state: &State, columns: &[ColumnEstimates], moves: &mut Vec<CandidateMove>) {
        let (parts, rules) = (&state.point.parts, &self.model.rules);
        for t in 0..parts.len() {
            let replaced = match parts[t].rows[..] {
                [only] if !rules.holds(only, t) => Some(only),
                _ => columns[t].drops.first().map(|&(_, a)| a),
            };
            let Some(a) = replaced else {
                continue;
            };
            for s in (0..parts.len()).filter(|&s| s != t && !state.point.meet(s, t)) {
                let pairs = parts[s].rows.len();
                self.work.spend(SCALAR * (20 * pairs) as f64 + self.model.entries_work(pairs));
                for &j in parts[s].rows.iter().filter(|&&j| !rules.holds(j, s) && rules.admits(j, t)) {
                    let shared = self.model.entry(j, a);
                    let here = self.swap_decrease(state, columns, t, (a, j, shared));
                    let swap = rules.admits(a, s).then(|| (self.swap_decrease(state, columns, s, (j, a, shared)), a));
                    let there = [columns[s].swaps.get(&j).copied(), swap];
                    moves.extend(there.into_iter().flatten().map(|(gain, b)| CandidateMove {
                        estimate: here + gain,
                        drops: [Some((a, t)), Some((j, s))],
                        adds: [Some((j, t)), Some((b, s))],
                    }));
                }
            }
        }
    }

    /// Appends the transfers that take an entry from one column and add one to another.
    fn transfers(&self, state: &State, columns: &[ColumnEstimates], moves: &mut Vec<CandidateMove>) {
        for (s, from) in columns.iter().enumerate() {
            for (t, to) in columns.iter().enumerate().filter(|&(t, _)| t != s) {
                for &(loss, a) in from.drops.iter().take(TRANSFERS) {
                    let adds = to.adds.iter().take(TRANSFERS);
                    moves.extend(adds.map(|&(gain, j)| CandidateMove::new(gain - loss, (a, s), (j, t))));
                }
                if state.point.meet(s, t) {
                    continue;
                }
                for &(loss, a) in from.drops.iter().filter(|&&(_, a)| self.model.rules.admits(a, t)) {
                    let entry = self.model.weights[t] * self.model.diagonal[a];
                    let nonnegative = self.model.rules.nonnegative;
                    let gain = add_gain(to.lambda, to.image[a], entry, nonnegative);
                    moves.push(CandidateMove::new(gain - loss, (a, s), (a, t)));
                }
            }
        }
    }

    /// Returns all moves, the largest estimate first.
    pub(crate) fn moves(&self, columns: &mut [ColumnEstimates], state: &State) -> Vec<CandidateMove> {
        let mut moves = Vec::new();
        self.swaps(state, columns, &mut moves);
        self.row_transfers(state, columns, &mut moves);
        if matches!(self.model.rules.cardinality, Cardinality::Total(_)) {
            self.transfers(state, columns, &mut moves);
        }
        let mut order: Vec<(f64, usize)> = moves.iter().enumerate().map(|(k, one)| (one.estimate, k)).collect();
        pattern::keep_best(&mut order, KEPT);
        order.into_iter().map(|(_, k)| moves[k]).collect()
    }
}
