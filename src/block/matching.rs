//! All pairs of a matching at once, on one majoriser of f: disjoint pairs do not see each other there.
//!
//! `f(A) + ⟨G, X − A⟩ + L/2‖X − A‖²` separates into pairs with the curvature M = L·I, S = Z Zᵀ. Rows may have moved
//! away from A before, so that several matchings can be solved on one gradient.

use ndarray::ArrayView2;

use super::{Block, Outcome, PairOptions, Pairs};
use crate::budget::GoOn;
use crate::pair::{Recession, Scratch};
use crate::penalty::Penalty;
use crate::signature::Signature;
use crate::threads::Threads;

/// Pairs per parallel piece.
const CHUNK_PAIRS: usize = 32;

/// `⟨G, X − A⟩ + L/2‖X − A‖²`, f up to a constant.
#[derive(Debug, Clone, Copy)]
pub struct Majoriser<'a> {
    /// A.
    pub anchor: ArrayView2<'a, f64>,
    /// G, the gradient (or an estimate of it) at A.
    pub gradient: ArrayView2<'a, f64>,
    /// L.
    pub curvature: f64,
}

impl Majoriser<'_> {
    /// Fills a block that was loaded with rows of `x`.
    fn fill(&self, block: &mut Block, x: ArrayView2<'_, f64>) {
        let b = block.len();
        block.curvature_mut().fill(0.0);
        for k in 0..b {
            block.curvature_mut()[k * b + k] = self.curvature;
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

/// Work space for matchings of n rows.
#[derive(Debug, Clone)]
pub struct Matchings {
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
        pair: [usize; 2],
        model: &Majoriser<'_>,
        penalty: &Penalty,
        options: PairOptions<'_>,
    ) {
        self.block.load(x, &pair[..1], &pair[1..]);
        model.fill(&mut self.block, x);
        let outcome = self.sweep(penalty, options);
        if outcome.updates > 0 {
            for (k, &row) in pair.iter().enumerate() {
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
    pub fn new((n, r): (usize, usize), signature: &Signature, rapidity_bound: Option<f64>) -> Self {
        let mut block = Block::new(r);
        block.set_signature(signature, rapidity_bound);
        let worker = Worker {
            block,
            scratch: Scratch::new(r),
            moved: Vec::new(),
            outcome: Outcome::default(),
        };
        Self {
            workers: vec![worker; (n / 2).div_ceil(CHUNK_PAIRS)],
        }
    }

    /// The same with pairs of equal sign that are only rotated, if `rotations`.
    #[must_use]
    pub fn rotate_only(mut self, rotations: bool) -> Self {
        for worker in &mut self.workers {
            worker.block.rotate_only(rotations);
        }
        self
    }

    /// Solves the pairs of a matching; [`Matchings::moved`] has the new rows. The change is that of the model
    /// and h. Where the model turns out to be unbounded, it ends early.
    pub fn solve(
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

    /// A direction along which the model of the last matching is unbounded.
    pub(crate) fn recession(&self) -> Option<Recession> {
        self.workers
            .iter()
            .find_map(|worker| worker.block.recession())
    }

    /// The rows that moved in the last matching, as they are now.
    pub fn moved(&self) -> impl Iterator<Item = (usize, &[f64])> {
        self.workers
            .iter()
            .flat_map(|worker| worker.moved.iter().map(|(row, new)| (*row, &new[..])))
    }

    /// What one pair of rows of `x` can lower the model and h by at most, infinite where the model is unbounded;
    /// nothing moves.
    pub(crate) fn largest_decrease(
        &self,
        x: ArrayView2<'_, f64>,
        model: &Majoriser<'_>,
        penalty: &Penalty,
    ) -> Outcome {
        let found = self.largest_decrease_while(x, model, penalty, &|| true);
        found.unwrap_or_default()
    }

    /// The same, given up (None) if `go_on` says no on the way.
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
