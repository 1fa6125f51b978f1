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
use crate::penalty::{Kernel, Penalty};

/// A pass over pairs of columns.
pub(crate) struct ColumnSweep<'a, P: Penalty> {
    /// Xᵀ, and (CX)ᵀ as the gradient rows.
    pub(crate) block: &'a mut Block,
    /// Rows of linearᵀ, padded to the block's stride; empty without a linear term.
    pub(crate) linear: &'a [f64],
    /// The penalty of Xᵀ.
    pub(crate) penalty: &'a P,
    /// Size of C: its largest diagonal entry.
    pub(crate) scale: f64,
    /// Proximal weight.
    pub(crate) alpha: f64,
    /// Which pairs.
    pub(crate) pairs: &'a [(usize, usize)],
    /// Work space.
    pub(crate) scratch: &'a mut Scratch,
}

impl<P: Penalty> WithSimd for ColumnSweep<'_, P> {
    type Output = Outcome;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) -> Outcome {
        let mut outcome = Outcome::default();
        for &(i, j) in self.pairs {
            outcome.visited += 1;
            if let Some(change) = self.visit(simd, i, j) {
                outcome.add(change, (i, j));
            }
            if self.block.mixed.recession.is_some() {
                break;
            }
        }
        outcome
    }
}

impl<P: Penalty> ColumnSweep<'_, P> {
    #[inline(always)]
    fn visit<S: Simd>(&mut self, simd: S, i: usize, j: usize) -> Option<f64> {
        let block = &mut *self.block;
        let (r, stride) = (block.r, block.stride);
        let pair = (block.rows[i], block.rows[j]);
        let x = &block.x[i * stride..(i + 1) * stride];
        let y = &block.x[j * stride..(j + 1) * stride];
        let gz = |a: &[f64], b: &[f64]| {
            if self.linear.is_empty() {
                return [[0.0; 2]; 2];
            }
            let li = &self.linear[i * stride..(i + 1) * stride];
            let lj = &self.linear[j * stride..(j + 1) * stride];
            [
                [dot(simd, li, a), dot(simd, li, b)],
                [dot(simd, lj, a), dot(simd, lj, b)],
            ]
        };
        let linear = gz(x, y);
        let (new_x, new_y) = block.step.split_at_mut(stride);
        // New columns into `step`, V, and the change of the smooth part.
        let (matrix, e, smooth);
        if block.mixed.opposite(pair.0, pair.1) {
            let cx = &block.gradient[i * stride..(i + 1) * stride];
            let cy = &block.gradient[j * stride..(j + 1) * stride];
            block.mixed.light.resize(4 * stride, 0.0);
            let (plus, rest) = block.mixed.light.split_at_mut(stride);
            let (minus, rest) = rest.split_at_mut(stride);
            let (c_plus, c_minus) = rest.split_at_mut(stride);
            for k in 0..stride {
                (plus[k], minus[k]) = (x[k] + y[k], x[k] - y[k]);
                (c_plus[k], c_minus[k]) = (cx[k] + cy[k], cx[k] - cy[k]);
            }
            let s = Sym2 {
                d0: dot(simd, x, cx),
                d1: dot(simd, y, cy),
                o: dot(simd, x, cy),
            };
            let model = PairModel {
                gz: [
                    [s.d0 + linear[0][0], s.o + linear[0][1]],
                    [s.o + linear[1][0], s.d1 + linear[1][1]],
                ],
                m: Sym2::scalar(1.0),
                s,
                alpha: self.alpha,
            };
            let t = [
                [dot(simd, x, c_plus), dot(simd, x, c_minus)],
                [dot(simd, y, c_plus), dot(simd, y, c_minus)],
            ];
            let along = gz(plus, minus);
            // Rounding of CX: ε‖C‖ times the length of the columns.
            let length = self.scale * (dot(simd, x, x).sqrt() + dot(simd, y, y).sqrt());
            let light = LightModel {
                gz: [
                    [t[0][0] + along[0][0], t[0][1] + along[0][1]],
                    [t[1][0] + along[1][0], t[1][1] + along[1][1]],
                ],
                m: model.m,
                t,
                s: [dot(simd, plus, c_plus), dot(simd, minus, c_minus)],
                s_size: [
                    length * dot(simd, plus, plus).sqrt(),
                    length * dot(simd, minus, minus).sqrt(),
                ],
                alpha: self.alpha,
            };
            let best = P::Kernel::hyperbola(
                self.penalty,
                &HyperbolaPair::new(pair, &x[..r], &y[..r], &light, block.mixed.rapidity_bound),
                self.scratch,
            );
            if let Some((signs, upwards)) = best.unbounded {
                block.mixed.recession = Some(Recession {
                    pair,
                    columns: true,
                    signs,
                    upwards,
                });
                return None;
            }
            if !(best.value < 0.0) {
                return None;
            }
            e = best.boost.minus_identity();
            matrix = best.boost.matrix();
            smooth = smooth_change(&model, &light, best.boost, e);
            best.boost.apply(x, y, new_x, new_y);
        } else {
            // Rotations leave ½⟨X, CX⟩ alone.
            let model = PairModel {
                gz: linear,
                alpha: self.alpha,
                ..PairModel::default()
            };
            let (rotation, reflection) = model.branches();
            let best = P::Kernel::circle(
                self.penalty,
                simd,
                &CirclePair {
                    rows: pair,
                    x,
                    y,
                    rotation,
                    reflection,
                },
                self.scratch,
            );
            if !(best.value < 0.0) {
                return None;
            }
            matrix = best.turn.matrix();
            e = best.turn.minus_identity();
            smooth = model.change(e);
            combine(simd, new_x, matrix[0][0], x, matrix[0][1], y);
            combine(simd, new_y, matrix[1][0], x, matrix[1][1], y);
        }
        let proposal = Proposal {
            rows: pair,
            old: [&x[..r], &y[..r]],
            new: [&mut *new_x, &mut *new_y],
            e,
            smooth,
        };
        let change = proposal.settle(self.penalty, self.scratch, self.alpha)?;
        if !block.frozen {
            block.x[i * stride..(i + 1) * stride].copy_from_slice(new_x);
            block.x[j * stride..(j + 1) * stride].copy_from_slice(new_y);
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
}
