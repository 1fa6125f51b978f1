//! A block of rows and the exact pair sweeps inside it, which can be undone: the heart of the method.
//!
//! The block keeps its own copy of the rows X_B, of the gradient rows G_B and of the curvature
//! C_BB. When a pair (i, j) moves by ΔX, the gradient of the block follows from
//! `G_B += C_B,{i,j} ΔX D`, so every pair solved sees the exact gradient (Gauss–Seidel), at
//! 4·|B|·r flops per accepted pair instead of 4·n·r. What the rest of the problem has to know is
//! committed once, as one matrix product. With |B| = 2 this is the papers' algorithm to the letter.

mod boost;
mod columns;
mod matching;
mod parts;
mod proposal;
mod slope;
mod whole;

use ndarray::ArrayView2;
use pulp::{Simd, WithSimd};
use serde::{Deserialize, Serialize};

use crate::objective::{BlockModel, Moved};
use crate::pair::{CirclePair, PairModel, ROW_MULTIPLE, Scratch, Sym2};
use crate::penalty::{Penalty, solve_circle};

pub use crate::tournament::Pairs;
pub(crate) use columns::ColumnSweep;
pub(crate) use matching::{FAIR_SHARE, GOOD_SHARE, Majoriser, Matchings, RAISE, adapted};
use proposal::{Proposal, distance};
pub(crate) use slope::{RAPIDITY_BOUND, SlopePairs};

/// Which curvature the pair solver sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Curvature {
    /// `½ tr(C_BB E (Z D Zᵀ) Eᵀ)`, exact (OBCD paper, eq. 8).
    #[default]
    Exact,
    /// The scalar bound `ς/2 ‖E‖²`, ς = ‖Z D Zᵀ‖·‖C_BB − cJ_B‖, eq. 9 with C − cJ for C, see
    /// [`PairOptions::shift`].
    Scalar,
}

/// A block of rows with everything needed to sweep its pairs.
#[derive(Debug, Clone)]
pub struct Block {
    /// Global row indices.
    pub rows: Vec<usize>,
    /// Number of rows that form the lead (see [`Pairs::Cross`]).
    pub lead: usize,
    r: usize,
    stride: usize,
    x: Vec<f64>,
    old: Vec<f64>,
    gradient: Vec<f64>,
    curvature: Vec<f64>,
    zero: Vec<bool>,
    moved: Vec<bool>,
    step: Vec<f64>,
    /// Whether pairs are solved and not moved.
    frozen: bool,
    /// Whether pairs of equal sign are only rotated.
    rotations: bool,
    mixed: boost::Mixed,
    delta: Vec<f64>,
    delta_rows: Vec<usize>,
}

impl Block {
    /// An empty block for matrices with `r` columns.
    pub fn new(r: usize) -> Self {
        Self {
            rows: Vec::new(),
            lead: 0,
            r,
            stride: r.div_ceil(ROW_MULTIPLE) * ROW_MULTIPLE,
            x: Vec::new(),
            old: Vec::new(),
            gradient: Vec::new(),
            curvature: Vec::new(),
            zero: Vec::new(),
            moved: Vec::new(),
            step: Vec::new(),
            frozen: false,
            rotations: false,
            mixed: boost::Mixed::default(),
            delta: Vec::new(),
            delta_rows: Vec::new(),
        }
    }

    /// Takes the rows `lead` then `rest` of X; gradient and curvature are for the objective to fill.
    pub fn load(&mut self, x: ArrayView2<'_, f64>, lead: &[usize], rest: &[usize]) {
        self.resize(lead.iter().chain(rest).copied(), lead.len());
        for (k, &row) in self.rows.iter().enumerate() {
            let target = &mut self.x[k * self.stride..][..self.r];
            for (t, &v) in target.iter_mut().zip(x.row(row)) {
                *t = v;
            }
            self.zero[k] = target.iter().all(|&v| v == 0.0);
        }
        self.old.copy_from_slice(&self.x);
    }

    /// Sets the rows and clears everything that belongs to them.
    fn resize(&mut self, rows: impl Iterator<Item = usize>, lead: usize) {
        (self.mixed.recession, self.mixed.left) = (None, false);
        self.rows.clear();
        self.rows.extend(rows);
        self.lead = lead;
        let (b, stride) = (self.rows.len(), self.stride);
        for entries in [&mut self.x, &mut self.old, &mut self.gradient] {
            entries.clear();
            entries.resize(b * stride, 0.0);
        }
        self.curvature.clear();
        self.curvature.resize(b * b, 0.0);
        for marks in [&mut self.zero, &mut self.moved] {
            marks.clear();
            marks.resize(b, false);
        }
        self.step.resize(2 * stride, 0.0);
    }

    /// Freezes the block: sweeps solve its pairs and move none, so that the outcome has the decrease of each pair
    /// alone.
    pub(crate) fn freeze(&mut self, frozen: bool) {
        self.frozen = frozen;
    }

    /// Lets pairs of equal sign be rotated and not reflected, which keeps det X; or both, which is the default.
    pub fn rotate_only(&mut self, rotations: bool) {
        self.rotations = rotations;
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the block has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Number of columns r.
    pub fn columns(&self) -> usize {
        self.r
    }

    /// Row `k` of the block as it is now.
    #[inline(always)]
    pub fn row(&self, k: usize) -> &[f64] {
        &self.x[k * self.stride..k * self.stride + self.r]
    }

    /// Row `k` of the block as it was loaded.
    pub(crate) fn old_row(&self, k: usize) -> &[f64] {
        &self.old[k * self.stride..k * self.stride + self.r]
    }

    /// Whether row `k` has moved since it was loaded.
    pub fn has_moved(&self, k: usize) -> bool {
        self.moved[k]
    }

    /// The gradient row `k`, exact for the block as it is now.
    pub fn gradient_row(&self, k: usize) -> &[f64] {
        &self.gradient[k * self.stride..k * self.stride + self.r]
    }

    /// The gradient row `k`, to be filled by the objective.
    pub fn gradient_row_mut(&mut self, k: usize) -> &mut [f64] {
        &mut self.gradient[k * self.stride..k * self.stride + self.r]
    }

    /// Entry (k, l) of the curvature C_BB.
    #[inline(always)]
    pub fn curvature(&self, k: usize, l: usize) -> f64 {
        self.curvature[k * self.rows.len() + l]
    }

    /// The curvature C_BB, row-major, to be filled by the objective.
    pub fn curvature_mut(&mut self) -> &mut [f64] {
        &mut self.curvature
    }

    /// Returns the gradient rows and the curvature of the loaded rows, for the objective to fill.
    pub fn model(&mut self) -> BlockModel<'_> {
        BlockModel {
            rows: &self.rows,
            columns: self.r,
            stride: self.stride,
            gradient: &mut self.gradient,
            curvature: &mut self.curvature,
        }
    }

    /// Returns the rows that moved since they were loaded, for the objective to follow.
    pub fn moved(&mut self) -> Moved<'_> {
        self.delta_rows.clear();
        self.delta.clear();
        let stride = self.stride;
        for k in (0..self.rows.len()).filter(|&k| self.moved[k]) {
            self.delta_rows.push(k);
            let range = k * stride..k * stride + self.r;
            let (new, old) = (&self.x[range.clone()], &self.old[range]);
            self.delta.extend(new.iter().zip(old).map(|(n, o)| n - o));
        }
        Moved {
            rows: &self.rows,
            columns: self.r,
            stride: self.stride,
            x: &self.x,
            positions: &self.delta_rows,
            delta: &self.delta,
        }
    }

    /// Returns the rows to their old values, so that the moves are reversed. The gradient stays that of the other rows.
    pub(crate) fn undo(&mut self) {
        std::mem::swap(&mut self.x, &mut self.old);
    }

    /// Makes the rows as they are now those from which moves are counted.
    pub fn rebase(&mut self) {
        self.old.copy_from_slice(&self.x);
        self.moved.fill(false);
    }
}

/// The result of a sweep over a block.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Outcome {
    /// Change of f plus h: negative or zero.
    pub change: f64,
    /// The largest decrease of one pair.
    pub largest: f64,
    /// The global rows of that pair.
    pub best: Option<(usize, usize)>,
    /// Sum of dist(I, argmin)² over the pairs of equal sign of a frozen block.
    pub distance: f64,
    /// Pairs visited, solved or skipped.
    pub visited: u64,
    /// Pairs that moved.
    pub updates: u64,
    /// Pairs whose moves were undone, because F did not fall with the moves of other pairs, and which were solved
    /// again.
    pub undone: u64,
}

impl Outcome {
    /// Adds another outcome.
    pub fn absorb(&mut self, other: Self) {
        self.change += other.change;
        if other.largest > self.largest {
            (self.largest, self.best) = (other.largest, other.best);
        }
        self.distance += other.distance;
        self.visited += other.visited;
        self.updates += other.updates;
        self.undone += other.undone;
    }

    /// Adds the change of F by the move of one pair.
    #[inline(always)]
    fn add(&mut self, change: f64, pair: (usize, usize)) {
        self.change += change;
        self.updates += 1;
        if -change > self.largest {
            (self.largest, self.best) = (-change, Some(pair));
        }
    }
}

/// The options of a pair solve inside a block.
#[derive(Debug, Clone, Copy, Default)]
pub struct PairOptions<'a> {
    /// Exact or scalar curvature.
    pub curvature: Curvature,
    /// c of C − cJ, which changes f by a constant, for the scalar curvature: with the mean of J_ii C_ii steps do not depend
    /// on a multiple of J in C. J is the identity for a block whose rows have one sign.
    pub shift: f64,
    /// Proximal weight α.
    pub proximal: f64,
    /// The column metric D, if it is not the identity.
    pub metric: Option<ArrayView2<'a, f64>>,
}

impl Block {
    /// One sweep over pairs of the block.
    pub fn sweep(
        &mut self,
        pairs: Pairs,
        penalty: &Penalty,
        options: PairOptions<'_>,
        scratch: &mut Scratch,
    ) -> Outcome {
        crate::simd::arch().dispatch(Sweep { block: self, pairs, penalty, options, scratch })
    }
}

/// One sweep over pairs of a block.
struct Sweep<'a, 'b> {
    block: &'a mut Block,
    pairs: Pairs,
    penalty: &'a Penalty,
    options: PairOptions<'b>,
    scratch: &'a mut Scratch,
}

impl WithSimd for Sweep<'_, '_> {
    type Output = Outcome;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> Outcome {
        let mut outcome = Outcome::default();
        let b = self.block.len();
        let lead = self.block.lead;
        let (firsts, all) = match self.pairs {
            Pairs::All => (b, true),
            Pairs::Cross => (lead, false),
        };
        for i in 0..firsts {
            let seconds = if all { i + 1..b } else { lead..b };
            outcome.visited += seconds.len() as u64;
            for j in seconds {
                if self.block.zero[i] && self.block.zero[j] {
                    continue;
                }
                let pair = (self.block.rows[i], self.block.rows[j]);
                let moved = if self.block.mixed.opposite(pair.0, pair.1) {
                    let moved = self.visit_boost(simd, i, j);
                    if self.block.mixed.ends() {
                        return outcome;
                    }
                    moved
                } else {
                    self.visit(simd, i, j, &mut outcome.distance)
                };
                if let Some(change) = moved {
                    outcome.add(change, pair);
                }
            }
        }
        outcome
    }
}

/// The inner products (gx·x, gx·y, gy·x, gy·y) and (x·x, y·y, x·y) of rows of whole vectors.
#[inline(always)]
fn products<S: Simd>(simd: S, x: &[f64], y: &[f64], gx: &[f64], gy: &[f64]) -> ([f64; 4], Sym2) {
    let (x, _) = S::as_simd_f64s(x);
    let (y, _) = S::as_simd_f64s(y);
    let (gx, _) = S::as_simd_f64s(gx);
    let (gy, _) = S::as_simd_f64s(gy);
    let mut sums = [simd.splat_f64s(0.0); 7];
    for (((&x, &y), &gx), &gy) in x.iter().zip(y).zip(gx).zip(gy) {
        sums[0] = simd.mul_add_e_f64s(gx, x, sums[0]);
        sums[1] = simd.mul_add_e_f64s(gx, y, sums[1]);
        sums[2] = simd.mul_add_e_f64s(gy, x, sums[2]);
        sums[3] = simd.mul_add_e_f64s(gy, y, sums[3]);
        sums[4] = simd.mul_add_e_f64s(x, x, sums[4]);
        sums[5] = simd.mul_add_e_f64s(y, y, sums[5]);
        sums[6] = simd.mul_add_e_f64s(x, y, sums[6]);
    }
    // Written out: a closure would be compiled without this function's vector instructions.
    (
        [
            simd.reduce_sum_f64s(sums[0]),
            simd.reduce_sum_f64s(sums[1]),
            simd.reduce_sum_f64s(sums[2]),
            simd.reduce_sum_f64s(sums[3]),
        ],
        Sym2 { d0: simd.reduce_sum_f64s(sums[4]), d1: simd.reduce_sum_f64s(sums[5]), o: simd.reduce_sum_f64s(sums[6]) },
    )
}

/// `new = u·x + v·y`, with +0.0 for −0.0.
#[inline(always)]
fn combine<S: Simd>(simd: S, new: &mut [f64], u: f64, x: &[f64], v: f64, y: &[f64]) {
    let (new, _) = S::as_mut_simd_f64s(new);
    let (x, _) = S::as_simd_f64s(x);
    let (y, _) = S::as_simd_f64s(y);
    let (u, v, zero) = (simd.splat_f64s(u), simd.splat_f64s(v), simd.splat_f64s(0.0));
    for ((new, &x), &y) in new.iter_mut().zip(x).zip(y) {
        // Two products and a sum, not a fused one: an exact cancellation must stay exact.
        let sum = simd.add_f64s(simd.mul_f64s(u, x), simd.mul_f64s(v, y));
        *new = simd.add_f64s(sum, zero);
    }
}

/// Swaps the new row in and leaves the difference behind; returns whether the new row is zero.
#[inline(always)]
fn exchange<S: Simd>(simd: S, current: &mut [f64], new: &mut [f64]) -> bool {
    let (current, _) = S::as_mut_simd_f64s(current);
    let (new, _) = S::as_mut_simd_f64s(new);
    let mut largest = simd.splat_f64s(0.0);
    for (current, new) in current.iter_mut().zip(new) {
        let difference = simd.sub_f64s(*new, *current);
        *current = *new;
        largest = simd.max_f64s(largest, simd.abs_f64s(*new));
        *new = difference;
    }
    simd.reduce_max_f64s(largest) == 0.0
}

/// Inner product of two rows of whole vectors.
#[inline(always)]
fn dot<S: Simd>(simd: S, x: &[f64], y: &[f64]) -> f64 {
    let (x, _) = S::as_simd_f64s(x);
    let (y, _) = S::as_simd_f64s(y);
    let mut sum = simd.splat_f64s(0.0);
    for (&a, &b) in x.iter().zip(y) {
        sum = simd.mul_add_e_f64s(a, b, sum);
    }
    simd.reduce_sum_f64s(sum)
}

/// `target += u·x + v·y` over rows of whole vectors.
#[inline(always)]
fn add_two<S: Simd>(simd: S, target: &mut [f64], u: f64, x: &[f64], v: f64, y: &[f64]) {
    let (target, _) = S::as_mut_simd_f64s(target);
    let (x, _) = S::as_simd_f64s(x);
    let (y, _) = S::as_simd_f64s(y);
    let (u, v) = (simd.splat_f64s(u), simd.splat_f64s(v));
    for ((t, &a), &b) in target.iter_mut().zip(x).zip(y) {
        *t = simd.mul_add_e_f64s(u, a, simd.mul_add_e_f64s(v, b, *t));
    }
}

impl Sweep<'_, '_> {
    /// Solves the pair (i, j) of the block; returns the change of the objective if it moves. If the block is frozen,
    /// adds the distance of the best move from the identity to `distances`.
    #[inline(always)]
    fn visit<S: Simd>(&mut self, simd: S, i: usize, j: usize, distances: &mut f64) -> Option<f64> {
        let block = &mut *self.block;
        let (b, r, stride) = (block.rows.len(), block.r, block.stride);
        let pair = (block.rows[i], block.rows[j]);
        let model = {
            let x = &block.x[i * stride..(i + 1) * stride];
            let y = &block.x[j * stride..(j + 1) * stride];
            let gx = &block.gradient[i * stride..(i + 1) * stride];
            let gy = &block.gradient[j * stride..(j + 1) * stride];
            let (g, gram) = products(simd, x, y, gx, gy);
            PairModel {
                gz: [[g[0], g[1]], [g[2], g[3]]],
                m: Sym2 {
                    d0: block.curvature[i * b + i],
                    d1: block.curvature[j * b + j],
                    o: block.curvature[i * b + j],
                },
                s: self.options.metric.map_or(gram, |metric| weighted(metric, &x[..r], &y[..r])),
                proximal: self.options.proximal,
            }
        };
        let searched = match self.options.curvature {
            Curvature::Exact => model,
            Curvature::Scalar => model.scalar(self.options.shift * block.mixed.sign(pair.0)),
        };
        let (rotation, reflection) = searched.branches();
        let best = solve_circle(
            simd,
            self.penalty,
            &CirclePair {
                rows: pair,
                x: &block.x[i * stride..(i + 1) * stride],
                y: &block.x[j * stride..(j + 1) * stride],
                rotation,
                reflection: (!block.rotations).then_some(reflection),
            },
            self.scratch,
        );
        if !(best.value < 0.0) {
            return None;
        }
        // The new rows, into `step`; then the true change.
        let v = best.turn.matrix();
        let e = best.turn.minus_identity();
        let (new_x, new_y) = block.step.split_at_mut(stride);
        let x = &block.x[i * stride..(i + 1) * stride];
        let y = &block.x[j * stride..(j + 1) * stride];
        combine(simd, new_x, v[0][0], x, v[0][1], y);
        combine(simd, new_y, v[1][0], x, v[1][1], y);
        let proposal =
            Proposal { rows: pair, old: [&x[..r], &y[..r]], new: [new_x, new_y], e, smooth: model.change(e) };
        let change = proposal.settle(self.penalty, self.scratch, self.options.proximal)?;
        if block.frozen {
            *distances += distance(simd, e, x, y);
        }
        self.commit_pair(simd, i, j);
        Some(change)
    }

    /// Takes the new rows of `step` over into the block, and their difference into its gradient.
    #[inline(always)]
    fn commit_pair<S: Simd>(&mut self, simd: S, i: usize, j: usize) {
        let block = &mut *self.block;
        if block.frozen {
            return;
        }
        let (b, r, stride) = (block.rows.len(), block.r, block.stride);
        let (new_x, new_y) = block.step.split_at_mut(stride);
        for (row, new) in [(i, &mut *new_x), (j, &mut *new_y)] {
            let current = &mut block.x[row * stride..(row + 1) * stride];
            block.zero[row] = exchange(simd, current, new);
            block.moved[row] = true;
        }
        if let Some(metric) = self.options.metric {
            for row in [&mut *new_x, &mut *new_y] {
                right_multiply(&mut row[..r], metric, &mut block.delta);
            }
        }
        let (ci, cj) = (&block.curvature[i * b..(i + 1) * b], &block.curvature[j * b..(j + 1) * b]);
        for (gradient, (&u, &v)) in block.gradient.chunks_exact_mut(stride).zip(ci.iter().zip(cj)) {
            add_two(simd, gradient, u, new_x, v, new_y);
        }
    }
}

/// Z D Zᵀ for the two rows of Z.
fn weighted(metric: ArrayView2<'_, f64>, x: &[f64], y: &[f64]) -> Sym2 {
    let mut out = Sym2::default();
    for (k, d) in metric.outer_iter().enumerate() {
        let (mut dx, mut dy) = (0.0, 0.0);
        for ((&d, &x), &y) in d.iter().zip(x).zip(y) {
            dx += d * x;
            dy += d * y;
        }
        out.d0 += x[k] * dx;
        out.d1 += y[k] * dy;
        out.o += x[k] * dy;
    }
    out
}

/// `row ← row · D` for a symmetric D.
fn right_multiply(row: &mut [f64], metric: ArrayView2<'_, f64>, product: &mut Vec<f64>) {
    product.clear();
    product.extend(metric.outer_iter().map(|d| d.iter().zip(row.iter()).map(|(d, x)| d * x).sum::<f64>()));
    row.copy_from_slice(product);
}

#[cfg(test)]
mod tests;
