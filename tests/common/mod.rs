//! The pair solver as the block sweep calls it: compiled for this machine's vectors.

use orthobcd::pair::{Best, CirclePair, Scratch};
use orthobcd::penalty::Penalty;
use pulp::{Arch, Simd, WithSimd};

struct Solve<'a, 'b, P> {
    penalty: &'a P,
    pair: &'a CirclePair<'b>,
    scratch: &'a mut Scratch,
}

impl<P: Penalty> WithSimd for Solve<'_, '_, P> {
    type Output = Best;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Best {
        self.penalty.circle(simd, self.pair, self.scratch)
    }
}

/// Rows of a block end in zeros up to whole vectors.
fn padded(row: &[f64]) -> Vec<f64> {
    let mut out = row.to_vec();
    out.resize(row.len().next_multiple_of(8), 0.0);
    out
}

/// The pair solver on the given instruction set.
pub(crate) fn circle_on<P: Penalty>(
    arch: Arch,
    penalty: &P,
    pair: &CirclePair<'_>,
    scratch: &mut Scratch,
) -> Best {
    let (x, y) = (padded(pair.x), padded(pair.y));
    let pair = CirclePair {
        x: &x,
        y: &y,
        ..*pair
    };
    arch.dispatch(Solve {
        penalty,
        pair: &pair,
        scratch,
    })
}

/// The pair solver on the best instruction set there is.
pub(crate) fn circle<P: Penalty>(penalty: &P, pair: &CirclePair<'_>, scratch: &mut Scratch) -> Best {
    circle_on(Arch::new(), penalty, pair, scratch)
}
