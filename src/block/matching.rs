//! Solves all pairs of a matching on one majoriser of f, under which disjoint pairs do not depend on each other.
//!
//! `f(A) + ⟨G, X − A⟩ + L/2‖X − A‖²` separates into pairs with the curvature M = L·I, S = Z Zᵀ. X may differ
//! from A, so that several matchings can be solved with one gradient.

use ndarray::{Array2, ArrayView2};

use super::{Block, Outcome, PairOptions, Pairs};
use crate::limits::GoOn;
use crate::pair::{Recession, Scratch};
use crate::penalty::Penalty;
use crate::signature::Signature;
use crate::threads::Threads;

/// Pairs per parallel piece.
const CHUNK_PAIRS: usize = 32;

/// `⟨G, X − A⟩ + L/2‖X − A‖²`, f up to a constant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Majoriser<'a> {
    /// A.
    pub(crate) anchor: ArrayView2<'a, f64>,
    /// G, the gradient (or an estimate of it) at A.
    pub(crate) gradient: ArrayView2<'a, f64>,
    /// L.
    pub(crate) curvature: f64,
    /// H of `½⟨X − A, H (X − A)⟩` in place of L·I, if f has one; X must then be A.
    pub(crate) matrix: Option<ArrayView2<'a, f64>>,
}

impl<'a> Majoriser<'a> {
    /// The majoriser with the curvature L·I.
    pub(crate) fn new(anchor: ArrayView2<'a, f64>, gradient: ArrayView2<'a, f64>, curvature: f64) -> Self {
        Self { anchor, gradient, curvature, matrix: None }
    }

    /// Entry (i, j) of L·I, or of H.
    fn entry(&self, i: usize, j: usize) -> f64 {
        match self.matrix {
            Some(matrix) => matrix[[i, j]],
            None if i == j => self.curvature,
            None => 0.0,
        }
    }

    /// Fills a block that was loaded with rows of `x`.
    fn fill(&self, block: &mut Block, x: ArrayView2<'_, f64>) {
        let b = block.len();
        for k in 0..b {
            for l in 0..b {
                block.curvature_mut()[k * b + l] = self.entry(block.rows[k], block.rows[l]);
            }
            let row = block.rows[k];
            block
                .gradient_row_mut(k)
                .iter_mut()
                .zip(self.gradient.row(row))
                .zip(x.row(row).iter().zip(self.anchor.row(row)))
                .for_each(|((t, &g), (&x, &a))| *t = g + self.curvature * (x - a));
        }
    }
}

/// A move is kept if F falls by this share of the model's decrease.
pub(crate) const FAIR_SHARE: f64 = 0.1;
/// A move lowers L if F falls by at least this share of the decrease of the model.
pub(crate) const GOOD_SHARE: f64 = 0.5;

/// Factor by which a good move lowers L.
const LOWER: f64 = 0.8;
/// Factor by which a move that is not kept raises L.
pub(crate) const RAISE: f64 = 2.0;

/// Returns the next L after a move that changed F by `change` and the model by `predicted`; None if the move
/// is not kept, and L is to be raised.
pub(crate) fn adapted(curvature: f64, change: f64, predicted: f64) -> Option<f64> {
    let factor = if change <= GOOD_SHARE * predicted { LOWER } else { 1.0 };
    (change <= FAIR_SHARE * predicted).then_some(factor * curvature)
}

/// Work space for matchings of n rows.
#[derive(Debug, Clone)]
pub(crate) struct Matchings {
    workers: Vec<Worker>,
}

#[derive(Debug, Clone)]
struct Worker {
    block: Block,
    scratch: Scratch,
    moved: Vec<(usize, Vec<f64>)>,
    outcome: Outcome,
}

impl Worker {
    fn visit(
        &mut self,
        x: ArrayView2<'_, f64>,
        rows: [usize; 2],
        model: &Majoriser<'_>,
        penalty: &Penalty,
        options: PairOptions<'_>,
    ) {
        self.block.load(x, &rows[..1], &rows[1..]);
        model.fill(&mut self.block, x);
        let outcome = self.sweep(penalty, options);
        if outcome.updates > 0 {
            for (k, row) in rows.into_iter().enumerate() {
                self.moved.push((row, self.block.row(k).to_vec()));
            }
        }
        self.outcome.absorb(outcome);
    }

    fn sweep(&mut self, penalty: &Penalty, options: PairOptions<'_>) -> Outcome {
        let scratch = &mut self.scratch;
        self.block.sweep(Pairs::Cross, penalty, options, scratch)
    }
}

impl Matchings {
    /// For matrices of `dim`, with |μ| of a move at most `rapidity_bound`.
    pub(crate) fn new((n, r): (usize, usize), signature: &Signature, rapidity_bound: Option<f64>) -> Self {
        let mut block = Block::new(r);
        block.set_signature(signature, rapidity_bound);
        let worker = Worker { block, scratch: Scratch::new(r), moved: Vec::new(), outcome: Outcome::default() };
        Self { workers: vec![worker; (n / 2).div_ceil(CHUNK_PAIRS)] }
    }

    /// Returns the work space; if `rotations`, pairs of equal sign are only rotated.
    #[must_use]
    pub(crate) fn rotate_only(mut self, rotations: bool) -> Self {
        for worker in &mut self.workers {
            worker.block.rotate_only(rotations);
        }
        self
    }

    /// Solves the pairs of a matching, and returns the change of the model and h. [`Matchings::moved`] gives the
    /// new rows. An unbounded pair ends its piece early.
    pub(crate) fn solve(
        &mut self,
        x: ArrayView2<'_, f64>,
        pairs: &[[usize; 2]],
        model: &Majoriser<'_>,
        penalty: &Penalty,
        options: PairOptions<'_>,
        threads: &Threads,
    ) -> Outcome {
        let work = pairs.len() * x.ncols() * 64;
        threads.for_chunks(&mut self.workers, 1, work, |piece, worker| {
            let worker = &mut worker[0];
            worker.moved.clear();
            worker.outcome = Outcome::default();
            let from = (piece * CHUNK_PAIRS).min(pairs.len());
            let to = (from + CHUNK_PAIRS).min(pairs.len());
            for &pair in &pairs[from..to] {
                worker.visit(x, pair, model, penalty, options);
                if worker.block.recession().is_some() {
                    break;
                }
            }
        });
        let mut total = Outcome::default();
        for worker in &self.workers {
            total.absorb(worker.outcome);
        }
        total
    }

    /// Returns a direction along which the model of the last matching is unbounded.
    pub(crate) fn recession(&self) -> Option<Recession> {
        self.workers.iter().find_map(|worker| worker.block.recession())
    }

    /// Returns the rows that moved in the last matching, with their new values.
    pub(crate) fn moved(&self) -> impl Iterator<Item = (usize, &[f64])> {
        self.workers.iter().flat_map(|worker| worker.moved.iter().map(|(row, new)| (*row, &new[..])))
    }

    /// Writes the rows that moved in the last matching to `x`.
    pub(crate) fn write(&self, x: &mut Array2<f64>) {
        for (row, new) in self.moved() {
            let target = x.row_mut(row);
            target.into_iter().zip(new).for_each(|(x, &new)| *x = new);
        }
    }

    /// Returns the largest decrease of the model and h by a single pair of rows of `x`, infinite if the model is
    /// unbounded. Nothing moves.
    pub(crate) fn largest_decrease(&self, x: ArrayView2<'_, f64>, model: &Majoriser<'_>, penalty: &Penalty) -> Outcome {
        let found = self.largest_decrease_while(x, model, penalty, &|| true);
        found.unwrap_or_default()
    }

    /// Like [`largest_decrease`](Self::largest_decrease); None if `go_on` returns false.
    pub(crate) fn largest_decrease_while(
        &self,
        x: ArrayView2<'_, f64>,
        model: &Majoriser<'_>,
        penalty: &Penalty,
        go_on: GoOn<'_>,
    ) -> Option<Outcome> {
        let mut total = Outcome::default();
        let Some(mut worker) = self.workers.first().cloned() else {
            return Some(total);
        };
        worker.block.freeze(true);
        let exact = PairOptions::default();
        for i in 0..x.nrows() {
            let rest: Vec<usize> = (i + 1..x.nrows()).collect();
            for part in rest.chunks(2 * CHUNK_PAIRS) {
                if !go_on() {
                    return None;
                }
                worker.block.load(x, &[i], part);
                model.fill(&mut worker.block, x);
                let outcome = worker.sweep(penalty, exact);
                total.absorb(outcome);
                if let Some(recession) = worker.block.recession() {
                    (total.largest, total.best) = (f64::INFINITY, Some(recession.pair));
                    return Some(total);
                }
            }
        }
        Some(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On both sides of the shares of the model's decrease at which L falls, and at which a move is kept.
    #[test]
    fn curvature_follows_the_decrease_of_f_relative_to_the_model() {
        for (size, curvature) in [(1e-30, 3.0), (1.0, 1e-9), (1e30, 1e9)] {
            let at = |share: f64| adapted(curvature, -share * size, -size);
            assert_eq!(at(1.001 * GOOD_SHARE), Some(LOWER * curvature));
            assert_eq!(at(0.999 * GOOD_SHARE), Some(curvature));
            assert_eq!(at(1.001 * FAIR_SHARE), Some(curvature));
            assert_eq!(at(0.999 * FAIR_SHARE), None);
            assert_eq!(at(GOOD_SHARE), Some(LOWER * curvature));
            assert_eq!(at(FAIR_SHARE), Some(curvature));
            assert_eq!(at(-1.0), None);
        }
    }

    /// Matchings are solved in pieces: no piece leaves out a pair, and pairs that stay are not
    /// among those that moved.
    #[test]
    fn a_matching_of_many_pairs_moves_each_as_if_it_were_alone() {
        let (half, r) = (70, 3);
        let entry = |i: usize, k: usize| ((7 * i + 11 * k) % 23) as f64 / 11.0 - 1.0;
        let x = Array2::from_shape_fn((2 * half, r), |(i, k)| entry(i, k));
        // Without a gradient no pair is better than X.
        let slope = |i: usize, k: usize| {
            if i % half < 10 { 0.0 } else { entry(i + 5, 2 * k + 1) }
        };
        let gradient = Array2::from_shape_fn(x.dim(), |(i, k)| slope(i, k));
        let model = Majoriser::new(x.view(), gradient.view(), 2.0);
        let pairs: Vec<_> = (0..half).map(|k| [k, k + half]).collect();
        let (options, threads) = (PairOptions::default(), Threads::serial());
        let mut matchings = Matchings::new(x.dim(), &Signature::stiefel(2 * half), None);
        let mut solve = |pairs: &[[usize; 2]], target: &mut Array2<f64>| {
            let outcome = matchings.solve(x.view(), pairs, &model, &Penalty::NONE, options, &threads);
            matchings.write(target);
            assert_eq!(matchings.moved().count() as u64, 2 * outcome.updates);
            outcome
        };
        let (mut together, mut apart, mut total) = (x.clone(), x.clone(), Outcome::default());
        let outcome = solve(&pairs, &mut together);
        for pair in &pairs {
            total.absorb(solve(&[*pair], &mut apart));
        }
        assert_eq!(together, apart);
        assert_eq!((outcome.visited, outcome.updates), (70, total.updates));
        assert!(outcome.updates > 40 && outcome.updates <= 60);
    }
}
