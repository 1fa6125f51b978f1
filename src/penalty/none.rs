//! No penalty: the pair problem is the global minimum of the smooth part on both branches.

use ndarray::{ArrayView2, ArrayViewMut2};
use pulp::Simd;

use super::Form;
use crate::pair::{Best, BestBoost, CirclePair, HyperbolaPair, Piece, Scratch};

/// h = 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NoPenalty;

impl Form for NoPenalty {
    #[inline(always)]
    fn entry(&self, _row: usize, _column: usize, _value: f64) -> f64 {
        0.0
    }

    #[inline(always)]
    fn piece(&self, _row: usize, _column: usize, _value: f64) -> Piece {
        [0.0; 3]
    }

    fn breakpoints(&self) -> &[f64] {
        &[]
    }

    #[inline(always)]
    fn change(&self, _row: usize, _old: &[f64], _new: &[f64]) -> (f64, f64) {
        (0.0, 0.0)
    }

    #[inline(always)]
    fn proximal(&self, _row: usize, _column: usize, value: f64, _step: f64) -> f64 {
        value
    }

    #[inline(always)]
    fn proximal_near(&self, _: (usize, usize), _: f64, value: f64, _: f64) -> (f64, f64) {
        (value, 1.0)
    }

    fn smoothed(&self, _: ArrayView2<'_, f64>, _: f64, _: ArrayViewMut2<'_, f64>) -> f64 {
        0.0
    }

    #[inline(always)]
    fn hyperbola(&self, pair: &HyperbolaPair<'_>, scratch: &mut Scratch) -> BestBoost {
        super::boost::none(pair, scratch)
    }

    #[inline(always)]
    fn circle<S: Simd>(&self, _: S, pair: &CirclePair<'_>, scratch: &mut Scratch) -> Best {
        scratch.clear();
        let mut best = Best::IDENTITY;
        let (c, s) = pair.rotation.global_minimum();
        best.offer(pair.rotation.change(c, s), c, s, false, None);
        let base = pair.rotation.a + pair.rotation.p;
        if let Some(reflection) = pair.reflection
            && reflection.lower_bound() - base < best.value
        {
            let (c, s) = reflection.global_minimum();
            best.offer(reflection.value(c, s) - base, c, s, true, None);
        }
        best
    }
}
