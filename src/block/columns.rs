//! Column moves for `f = ½⟨X, CX⟩ + ⟨linear, X⟩` with any penalty: the same pair problem on Xᵀ.
//!
//! The block holds columns of X as its rows, and columns of CX where row moves have the gradient.
//! X(:,B) ← X(:,B)Vᵀ takes CX along by the same V, and the curvature is M = I, S = X_BᵀCX_B. For two
//! columns of equal sign the quadratic part is constant: what moves is h (and the linear term), a
//! sparsifying rotation.

use pulp::{Simd, WithSimd};

use super::boost::smooth_change;
use super::{Block, Outcome, Proposal, combine, dot};
use crate::pair::{CirclePair, HyperbolaPair, LightModel, PairModel, Recession, Scratch, Sym2};
use crate::penalty::{Penalty, solve_circle, solve_on_hyperbola};

/// A pass over pairs of columns.
pub(crate) struct ColumnSweep<'a> {
    /// Xᵀ, and (CX)ᵀ as the gradient rows.
    pub(crate) block: &'a mut Block,
    /// Rows of linearᵀ, padded to the block's stride; empty without a linear term.
    pub(crate) linear: &'a [f64],
    /// The penalty of Xᵀ.
    pub(crate) penalty: &'a Penalty,
    /// Size of C: its largest diagonal entry.
    pub(crate) scale: f64,
    /// Proximal weight.
    pub(crate) proximal: f64,
    /// Pairs of columns to visit.
    pub(crate) pairs: &'a [(usize, usize)],
    /// Work space.
    pub(crate) scratch: &'a mut Scratch,
}

impl ColumnSweep<'_> {
    /// Entries of pairs of columns that are solved between two checks of the clock.
    pub(crate) const ENTRIES: usize = 1 << 19;

    /// Makes the pass.
    pub(crate) fn run(self) -> Outcome {
        crate::simd::arch().dispatch(self)
    }
}

impl WithSimd for ColumnSweep<'_> {
    type Output = Outcome;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> Outcome {
        let mut outcome = Outcome::default();
        for &(i, j) in self.pairs {
            outcome.visited += 1;
            if let Some(change) = self.visit(simd, i, j) {
                outcome.add(change, (i, j));
            }
            if self.block.mixed.ends() {
                break;
            }
        }
        outcome
    }
}

/// A move of two columns, which `step` holds: V, V − I, and the change of the smooth part.
type Found = ([[f64; 2]; 2], [[f64; 2]; 2], (f64, f64));

impl ColumnSweep<'_> {
    #[inline(always)]
    fn visit<S: Simd>(&mut self, simd: S, i: usize, j: usize) -> Option<f64> {
        let pair = (self.block.rows[i], self.block.rows[j]);
        let opposite = self.block.mixed.opposite(pair.0, pair.1);
        let (matrix, e, smooth) = if opposite { self.boost(simd, i, j)? } else { self.turn(simd, i, j)? };
        let block = &mut *self.block;
        let (r, stride) = (block.r, block.stride);
        let (new_x, new_y) = block.step.split_at_mut(stride);
        let proposal = Proposal {
            rows: pair,
            old: [&block.x[i * stride..i * stride + r], &block.x[j * stride..j * stride + r]],
            new: [&mut *new_x, &mut *new_y],
            e,
            smooth,
        };
        let change = proposal.settle(self.penalty, self.scratch, self.proximal)?;
        if opposite && !block.may_grow(simd, i, j) {
            return None;
        }
        let (new_x, new_y) = block.step.split_at(stride);
        if !block.frozen {
            block.x[i * stride..(i + 1) * stride].copy_from_slice(new_x);
            block.x[j * stride..(j + 1) * stride].copy_from_slice(&new_y[..stride]);
            let (head, tail) = block.gradient.split_at_mut(j * stride);
            let (cx, cy) = (&mut head[i * stride..(i + 1) * stride], &mut tail[..stride]);
            for (cx, cy) in cx.iter_mut().zip(cy) {
                let (p, q) = (*cx, *cy);
                *cx = matrix[0][0] * p + matrix[0][1] * q;
                *cy = matrix[1][0] * p + matrix[1][1] * q;
            }
        }
        Some(change)
    }

    /// The linear term's columns times those of two vectors.
    #[inline(always)]
    fn linear_products<S: Simd>(&self, simd: S, (i, j): (usize, usize), a: &[f64], b: &[f64]) -> [[f64; 2]; 2] {
        if self.linear.is_empty() {
            return [[0.0; 2]; 2];
        }
        let stride = self.block.stride;
        let li = &self.linear[i * stride..(i + 1) * stride];
        let lj = &self.linear[j * stride..(j + 1) * stride];
        [[dot(simd, li, a), dot(simd, li, b)], [dot(simd, lj, a), dot(simd, lj, b)]]
    }

    /// The best move of two columns of opposite sign.
    #[inline(always)]
    fn boost<S: Simd>(&mut self, simd: S, i: usize, j: usize) -> Option<Found> {
        let (r, stride) = (self.block.r, self.block.stride);
        let pair = (self.block.rows[i], self.block.rows[j]);
        let mut sums = std::mem::take(&mut self.block.mixed.light);
        sums.resize(4 * stride, 0.0);
        let (model, light) = self.models(simd, (i, j), &mut sums);
        self.block.mixed.light = sums;
        let block = &mut *self.block;
        let x = &block.x[i * stride..(i + 1) * stride];
        let y = &block.x[j * stride..(j + 1) * stride];
        let bound = block.mixed.rapidity_bound;
        let best =
            solve_on_hyperbola(self.penalty, &HyperbolaPair::new(pair, &x[..r], &y[..r], &light, bound), self.scratch);
        if let Some((signs, upwards)) = best.unbounded {
            block.mixed.recession = Some(Recession { pair, columns: true, signs, upwards });
            return None;
        }
        if !(best.value < 0.0) {
            return None;
        }
        let (new_x, new_y) = block.step.split_at_mut(stride);
        best.boost.apply(x, y, new_x, new_y);
        let e = best.boost.minus_identity();
        let smooth = smooth_change(&model, &light, best.boost, e);
        Some((best.boost.matrix(), e, smooth))
    }

    /// The smooth part of a pair of opposite sign, in V − I and in light-cone coordinates; `sums` is work space
    /// for x ± y and Cx ± Cy.
    #[inline(always)]
    fn models<S: Simd>(&self, simd: S, (i, j): (usize, usize), sums: &mut [f64]) -> (PairModel, LightModel) {
        let (block, stride) = (&*self.block, self.block.stride);
        let (x, y) = (&block.x[i * stride..(i + 1) * stride], &block.x[j * stride..(j + 1) * stride]);
        let (cx, cy) = (&block.gradient[i * stride..(i + 1) * stride], &block.gradient[j * stride..(j + 1) * stride]);
        let (plus, rest) = sums.split_at_mut(stride);
        let (minus, rest) = rest.split_at_mut(stride);
        let (c_plus, c_minus) = rest.split_at_mut(stride);
        for k in 0..stride {
            (plus[k], minus[k]) = (x[k] + y[k], x[k] - y[k]);
            (c_plus[k], c_minus[k]) = (cx[k] + cy[k], cx[k] - cy[k]);
        }
        let linear = self.linear_products(simd, (i, j), x, y);
        let s = Sym2 { d0: dot(simd, x, cx), d1: dot(simd, y, cy), o: dot(simd, x, cy) };
        let model = PairModel {
            gz: [[s.d0 + linear[0][0], s.o + linear[0][1]], [s.o + linear[1][0], s.d1 + linear[1][1]]],
            m: Sym2::scalar(1.0),
            s,
            proximal: self.proximal,
        };
        let t = [[dot(simd, x, c_plus), dot(simd, x, c_minus)], [dot(simd, y, c_plus), dot(simd, y, c_minus)]];
        let along = self.linear_products(simd, (i, j), plus, minus);
        // Rounding of CX: ε‖C‖ times the length of the columns.
        let length = self.scale * (dot(simd, x, x).sqrt() + dot(simd, y, y).sqrt());
        let light = LightModel {
            gz: [[t[0][0] + along[0][0], t[0][1] + along[0][1]], [t[1][0] + along[1][0], t[1][1] + along[1][1]]],
            m: model.m,
            t,
            s: [dot(simd, plus, c_plus), dot(simd, minus, c_minus)],
            s_size: [length * dot(simd, plus, plus).sqrt(), length * dot(simd, minus, minus).sqrt()],
            proximal: self.proximal,
        };
        (model, light)
    }

    /// The best move of two columns of equal sign: rotations leave ½⟨X, CX⟩ alone.
    #[inline(always)]
    fn turn<S: Simd>(&mut self, simd: S, i: usize, j: usize) -> Option<Found> {
        let stride = self.block.stride;
        let rows = (self.block.rows[i], self.block.rows[j]);
        let (x, y) = (&self.block.x[i * stride..(i + 1) * stride], &self.block.x[j * stride..(j + 1) * stride]);
        let model =
            PairModel { gz: self.linear_products(simd, (i, j), x, y), proximal: self.proximal, ..PairModel::default() };
        let (rotation, reflection) = model.branches();
        let pair = CirclePair { rows, x, y, rotation, reflection: (!self.block.rotations).then_some(reflection) };
        let best = solve_circle(simd, self.penalty, &pair, self.scratch);
        if !(best.value < 0.0) {
            return None;
        }
        let v = best.turn.matrix();
        let e = best.turn.minus_identity();
        let (new_x, new_y) = self.block.step.split_at_mut(stride);
        let x = &self.block.x[i * stride..(i + 1) * stride];
        let y = &self.block.x[j * stride..(j + 1) * stride];
        combine(simd, new_x, v[0][0], x, v[0][1], y);
        combine(simd, new_y, v[1][0], x, v[1][1], y);
        Some((v, e, model.change(e)))
    }
}

#[cfg(test)]
mod tests;
