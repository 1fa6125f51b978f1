//! No penalty: the pair problem is the global minimum of the smooth part on both branches.

use pulp::Simd;

use super::{Form, Penalty};
use crate::pair::{Best, CirclePair, Scratch};

/// h = 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NoPenalty;

impl Penalty for NoPenalty {
    const SMOOTH: bool = true;

    #[inline(always)]
    fn entry(&self, _row: usize, _column: usize, _value: f64) -> f64 {
        0.0
    }

    #[inline(always)]
    fn slope(&self, _row: usize, _column: usize, _value: f64) -> f64 {
        0.0
    }

    fn levels(&self) -> &[f64] {
        &[]
    }

    #[inline(always)]
    fn change(&self, _row: usize, _old: &[f64], _new: &[f64]) -> (f64, f64) {
        (0.0, 0.0)
    }

    fn form(&self) -> Form<'_> {
        Form::Zero
    }

    #[inline(always)]
    fn circle<S: Simd>(&self, _simd: S, pair: &CirclePair<'_>, scratch: &mut Scratch) -> Best {
        scratch.vanishing.clear();
        let mut best = Best::IDENTITY;
        let (c, s) = pair.rotation.global_minimum();
        best.offer(pair.rotation.change(c, s), c, s, false, None);
        let base = pair.rotation.a + pair.rotation.p;
        if pair.reflection.lower_bound() - base < best.value {
            let (c, s) = pair.reflection.global_minimum();
            best.offer(pair.reflection.value(c, s) - base, c, s, true, None);
        }
        best
    }
}
