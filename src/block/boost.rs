//! Pairs of opposite sign inside a block: they move on a hyperbola.

use pulp::Simd;

use super::{Block, Proposal, Sweep, dot, right_multiply, weighted};
use crate::block::Curvature;
use crate::pair::{Boost, HyperbolaPair, LightModel, PairModel, Recession, Sym2};
use crate::penalty::solve_on_hyperbola;
use crate::signature::Signature;

/// State of a block under a mixed signature.
#[derive(Debug, Clone)]
pub(super) struct Mixed {
    /// Signs of all rows of X; empty when all signs are equal.
    signs: Vec<i8>,
    /// Largest |μ| of one move.
    pub(super) rapidity_bound: Option<f64>,
    /// x + y and x − y of the pair, then D times both.
    pub(super) light: Vec<f64>,
    /// The pair and direction along which the objective was found to be unbounded.
    pub(super) recession: Option<Recession>,
    /// Bound on the growth of ‖X‖² by boosts, and true if a boost would have exceeded it.
    pub(super) growth_limit: f64,
    pub(super) left: bool,
}

impl Default for Mixed {
    fn default() -> Self {
        Self {
            signs: Vec::new(),
            rapidity_bound: None,
            light: Vec::new(),
            recession: None,
            growth_limit: f64::INFINITY,
            left: false,
        }
    }
}

impl Mixed {
    /// Returns whether a sweep ends here.
    #[inline(always)]
    pub(super) fn ends(&self) -> bool {
        self.recession.is_some() || self.left
    }

    /// Sign of global row i, +1 where all signs are equal.
    #[inline(always)]
    pub(super) fn sign(&self, i: usize) -> f64 {
        self.signs.get(i).map_or(1.0, |&sign| sign.into())
    }

    /// Returns whether global rows i and j move on a hyperbola.
    #[inline(always)]
    pub(super) fn opposite(&self, i: usize, j: usize) -> bool {
        !self.signs.is_empty() && self.signs[i] != self.signs[j]
    }
}

impl Block {
    /// Makes rows of opposite sign move on the hyperbola, with |μ| of one move at most
    /// `rapidity_bound` if there is one. Rows of a definite signature move on the circle, as
    /// without this call.
    pub fn set_signature(&mut self, signature: &Signature, rapidity_bound: Option<f64>) {
        self.mixed.signs.clear();
        if !signature.is_definite() {
            self.mixed.signs.extend_from_slice(signature.signs());
        }
        self.mixed.rapidity_bound = rapidity_bound;
    }

    /// Ends as the sweep of a part of the block has ended: at a bound, or with an unbounded pair.
    pub(crate) fn end_like(&mut self, part: &Self) {
        (self.mixed.recession, self.mixed.left) = (part.mixed.recession, part.mixed.left);
    }

    /// Lets boosts add at most `growth_limit` to ‖X‖²: a sweep ends before the first one that would add more,
    /// and the block then [has left](Self::has_left) its bounds.
    pub(crate) fn set_growth_limit(&mut self, growth_limit: f64) {
        (self.mixed.growth_limit, self.mixed.left) = (growth_limit, false);
    }

    /// Returns the growth of ‖X‖² that is left to boosts.
    pub(crate) fn growth_limit(&self) -> f64 {
        self.mixed.growth_limit
    }

    /// Returns whether the last sweep ended before a boost that would exceed the bound on ‖X‖².
    pub(crate) fn has_left(&self) -> bool {
        self.mixed.left
    }

    /// Charges the growth of ‖X‖² by a boost of rows i and j to the new rows of `step`; returns whether the
    /// bound allows the boost.
    #[inline(always)]
    pub(super) fn may_grow<S: Simd>(&mut self, simd: S, i: usize, j: usize) -> bool {
        if self.frozen || self.mixed.growth_limit == f64::INFINITY {
            return true;
        }
        let stride = self.stride;
        let old = [i, j].map(|k| &self.x[k * stride..(k + 1) * stride]);
        let (new_x, new_y) = self.step.split_at(stride);
        let square = |row: &[f64]| dot(simd, row, row);
        let growth = square(new_x) + square(&new_y[..stride]) - square(old[0]) - square(old[1]);
        self.mixed.left = !(growth <= self.mixed.growth_limit);
        if !self.mixed.left {
            self.mixed.growth_limit -= growth;
        }
        !self.mixed.left
    }

    /// Distance between the rows of the block's storage: r, padded to whole vectors.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// The pair of rows along which the last sweep found the objective to be unbounded below; the
    /// sweep stopped there.
    pub fn recession(&self) -> Option<Recession> {
        self.mixed.recession
    }
}

impl Sweep<'_, '_> {
    /// Solves the pair (i, j) of the block, of opposite signs; returns the change of the objective
    /// if it moves.
    #[inline(always)]
    pub(super) fn visit_boost<S: Simd>(&mut self, simd: S, i: usize, j: usize) -> Option<f64> {
        let (model, light) = self.boost_models(simd, i, j);
        let searched = match self.options.curvature {
            Curvature::Exact => light,
            Curvature::Scalar => {
                let shift = self.options.shift * self.block.mixed.sign(self.block.rows[i]);
                light.scalar(model.s, shift)
            }
        };
        let block = &mut *self.block;
        let (r, stride) = (block.r, block.stride);
        let pair = (block.rows[i], block.rows[j]);
        let x = &block.x[i * stride..(i + 1) * stride];
        let y = &block.x[j * stride..(j + 1) * stride];
        let best = solve_on_hyperbola(
            self.penalty,
            &HyperbolaPair::new(pair, &x[..r], &y[..r], &searched, block.mixed.rapidity_bound),
            self.scratch,
        );
        if let Some((signs, upwards)) = best.unbounded {
            block.mixed.recession = Some(Recession { pair, columns: false, signs, upwards });
            return None;
        }
        if !(best.value < 0.0) {
            return None;
        }
        let boost = best.boost;
        let (new_x, new_y) = block.step.split_at_mut(stride);
        boost.apply(x, y, new_x, new_y);
        let e = boost.minus_identity();
        let proposal = Proposal {
            rows: pair,
            old: [&x[..r], &y[..r]],
            new: [new_x, new_y],
            e,
            smooth: smooth_change(&model, &light, boost, e),
        };
        let change = proposal.settle(self.penalty, self.scratch, self.options.proximal)?;
        if !self.block.may_grow(simd, i, j) {
            return None;
        }
        self.commit_pair(simd, i, j);
        Some(change)
    }

    /// The smooth part of the pair (i, j), in V − I and in light-cone coordinates.
    #[inline(always)]
    fn boost_models<S: Simd>(&mut self, simd: S, i: usize, j: usize) -> (PairModel, LightModel) {
        let block = &mut *self.block;
        let (b, r, stride) = (block.rows.len(), block.r, block.stride);
        block.mixed.light.resize(4 * stride, 0.0);
        let (plus, rest) = block.mixed.light.split_at_mut(stride);
        let (minus, metric_rows) = rest.split_at_mut(stride);
        let x = &block.x[i * stride..(i + 1) * stride];
        let y = &block.x[j * stride..(j + 1) * stride];
        for (((p, m), &x), &y) in plus.iter_mut().zip(minus.iter_mut()).zip(x).zip(y) {
            *p = x + y;
            *m = x - y;
        }
        let gx = &block.gradient[i * stride..(i + 1) * stride];
        let gy = &block.gradient[j * stride..(j + 1) * stride];
        // D z±, which is z± itself for D = I.
        let (d_plus, d_minus): (&[f64], &[f64]) = match self.options.metric {
            None => (plus, minus),
            Some(metric) => {
                metric_rows[..stride].copy_from_slice(plus);
                metric_rows[stride..].copy_from_slice(minus);
                let (first, second) = metric_rows.split_at_mut(stride);
                right_multiply(&mut first[..r], metric, &mut block.delta);
                right_multiply(&mut second[..r], metric, &mut block.delta);
                (first, second)
            }
        };
        let model = PairModel {
            gz: [[dot(simd, gx, x), dot(simd, gx, y)], [dot(simd, gy, x), dot(simd, gy, y)]],
            m: Sym2 { d0: block.curvature[i * b + i], d1: block.curvature[j * b + j], o: block.curvature[i * b + j] },
            s: match self.options.metric {
                None => Sym2 { d0: dot(simd, x, x), d1: dot(simd, y, y), o: dot(simd, x, y) },
                Some(metric) => weighted(metric, &x[..r], &y[..r]),
            },
            proximal: self.options.proximal,
        };
        let light = LightModel {
            gz: [[dot(simd, gx, plus), dot(simd, gx, minus)], [dot(simd, gy, plus), dot(simd, gy, minus)]],
            m: model.m,
            t: [[dot(simd, x, d_plus), dot(simd, x, d_minus)], [dot(simd, y, d_plus), dot(simd, y, d_minus)]],
            s: [dot(simd, plus, d_plus), dot(simd, minus, d_minus)],
            s_size: [0.0; 2],
            proximal: self.options.proximal,
        };
        (model, light)
    }
}

/// The change of the smooth part from V − I or from light-cone coordinates, whichever adds up
/// smaller terms and so rounds less: the first near the identity, the second for large rapidities.
#[inline(always)]
pub(super) fn smooth_change(model: &PairModel, light: &LightModel, boost: Boost, e: [[f64; 2]; 2]) -> (f64, f64) {
    let direct = model.change(e);
    let cone = light.change(boost);
    if direct.1 <= cone.1 { direct } else { cone }
}
