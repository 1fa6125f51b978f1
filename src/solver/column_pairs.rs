//! Pairs of columns: `X ← XV` for `½⟨X, CX⟩ + ⟨linear, X⟩` with any penalty.

use ndarray::Array2;

use super::ledger::Ledger;
use super::mover::{Mover, Step};
use super::point::Point;
use super::rows::pair_work;
use crate::block::{Block, ColumnSweep, Outcome};
use crate::objective::QuadraticForm;
use crate::pair::{Recession, Scratch};
use crate::penalty::Penalty;
use crate::signature::Signature;
use crate::threads::Threads;

/// The mover of columns by pairs.
pub(super) struct ColumnPairs {
    penalty: Penalty,
    signs: Vec<f64>,
    rapidity_bound: Option<f64>,
    /// The proximal weight.
    pub(super) proximal: f64,
    /// True if pairs are solved without moving.
    pub(super) frozen: bool,
    sweep: Option<PairSweep>,
}

impl ColumnPairs {
    pub(super) fn new(penalty: Penalty, signs: Vec<f64>, rapidity_bound: Option<f64>) -> Self {
        Self { penalty, signs, rapidity_bound, proximal: 0.0, frozen: false, sweep: None }
    }
}

/// A sweep over pairs of columns in progress.
pub(crate) struct PairSweep {
    /// Xᵀ.
    block: Block,
    linear: Vec<f64>,
    /// Size of C.
    scale: f64,
    pairs: Vec<(usize, usize)>,
    /// Number of pairs done.
    done: usize,
}

impl PairSweep {
    /// A sweep from X, whose XᵀJX is diag(`signs`).
    pub(crate) fn new(
        form: &dyn QuadraticForm,
        x: &Array2<f64>,
        rapidity_bound: Option<f64>,
        signs: &[f64],
        threads: &Threads,
    ) -> Self {
        let r = x.ncols();
        let (block, linear) = column_block(form, x, rapidity_bound, signs, threads);
        Self {
            block,
            linear,
            scale: form.diagonal_size(),
            pairs: (0..r).flat_map(|i| (i + 1..r).map(move |j| (i, j))).collect(),
            done: 0,
        }
    }

    /// Returns the sweep; if `rotations`, pairs of equal sign are only rotated.
    pub(crate) fn rotate_only(mut self, rotations: bool) -> Self {
        self.block.rotate_only(rotations);
        self
    }

    /// Solves some more pairs under the penalty of Xᵀ; if `frozen`, they do not move.
    pub(crate) fn advance(&mut self, penalty: &Penalty, proximal: f64, frozen: bool) -> Outcome {
        let from = self.done;
        let count = (ColumnSweep::ENTRIES / self.block.columns()).max(1);
        self.done = (from + count).min(self.pairs.len());
        self.block.freeze(frozen);
        ColumnSweep {
            scratch: &mut Scratch::new(self.block.columns()),
            block: &mut self.block,
            linear: &self.linear,
            penalty,
            scale: self.scale,
            proximal,
            pairs: &self.pairs[from..self.done],
        }
        .run()
    }

    /// Returns a pair of columns along which F is unbounded below; the sweep stopped there.
    pub(crate) fn recession(&self) -> Option<Recession> {
        self.block.recession()
    }

    fn is_done(&self) -> bool {
        self.done == self.pairs.len()
    }

    /// Returns X.
    fn x(&self) -> Array2<f64> {
        let dim = (self.block.columns(), self.block.len());
        Array2::from_shape_fn(dim, |(i, k)| self.block.row(k)[i])
    }
}

/// Returns Xᵀ together with (CX)ᵀ, and linearᵀ padded alike.
fn column_block(
    form: &dyn QuadraticForm,
    x: &Array2<f64>,
    rapidity_bound: Option<f64>,
    signs: &[f64],
    threads: &Threads,
) -> (Block, Vec<f64>) {
    let (n, r) = x.dim();
    let signs: Vec<i8> = signs.iter().map(|&s| if s > 0.0 { 1 } else { -1 }).collect();
    let mut block = Block::new(n);
    if let Ok(signature) = Signature::new(&signs) {
        block.set_signature(&signature, rapidity_bound);
    }
    let all: Vec<usize> = (0..r).collect();
    block.load(x.t(), &all, &[]);
    if signs.iter().any(|&s| s != signs[0]) {
        let y = form.apply(x.view(), threads);
        for k in 0..r {
            block.gradient_row_mut(k).iter_mut().zip(y.column(k)).for_each(|(t, &v)| *t = v);
        }
    }
    let stride = block.stride();
    let linear = form.linear().map_or_else(Vec::new, |linear| {
        let mut padded = vec![0.0; r * stride];
        for (target, column) in padded.chunks_exact_mut(stride).zip(linear.columns()) {
            target.iter_mut().zip(column).for_each(|(t, &v)| *t = v);
        }
        padded
    });
    (block, linear)
}

impl Mover for ColumnPairs {
    fn step(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        let Some(form) = point.form else {
            return Step::Pass;
        };
        let mut sweep = self.sweep.take().unwrap_or_else(|| {
            let bound = self.rapidity_bound;
            let sweep = PairSweep::new(form, &point.x, bound, &self.signs, point.threads);
            let mut sweep = sweep.rotate_only(point.problem.rotations);
            sweep.block.set_growth_limit(point.domain.growth_limit(&point.x));
            sweep
        });
        let outcome = sweep.advance(&self.penalty, self.proximal, self.frozen);
        let work = outcome.visited as f64 * pair_work(point);
        ledger.visit(outcome.visited, work);
        if !self.frozen && outcome.updates > 0 {
            point.replace(sweep.x());
            ledger.lower(outcome.change, outcome.updates);
        }
        if let Some(recession) = sweep.recession() {
            return Step::Unbounded(recession);
        }
        if self.frozen && outcome.largest > ledger.threshold() {
            return Step::Found;
        }
        if sweep.block.has_left() || point.diverges() {
            return Step::Diverged;
        }
        if sweep.is_done() {
            ledger.credit_sweep(sweep.pairs.len() as u64);
            return Step::Pass;
        }
        self.sweep = Some(sweep);
        Step::Within
    }

    fn begin(&mut self) {
        self.sweep = None;
    }

    fn drop_proximal(&mut self) -> bool {
        std::mem::take(&mut self.proximal) > 0.0
    }
}
