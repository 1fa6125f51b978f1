//! Σ μ_ij [X_ij ≠ 0] + λ_ij |X_ij|: penalties that jump at 0 and are linear on either side.
//!
//! Between angles at which an entry vanishes the arcs are those of ℓ1 with entrywise weights, see
//! [`arcs`](super::arcs). Where an entry vanishes h is lower by its μ_ij. O(r log r).

use pulp::Simd;

use super::arcs::search;
use super::crossings::half_period;
use crate::pair::{Best, CirclePair, SAME_ANGLE, Scratch, Sizes};

/// Returns the global minimum on the circle; `weights` maps (row, column) to (μ, λ), both ≥ 0.
#[inline(always)]
pub(super) fn circle<S: Simd>(
    weights: impl Fn(usize, usize) -> (f64, f64),
    simd: S,
    pair: &CirclePair<'_>,
    scratch: &mut Scratch,
) -> Best {
    scratch.clear();
    let stride = pair.x.len();
    let points = &mut scratch.breakpoints;
    let of = |column| [pair.rows.0, pair.rows.1].map(|row| weights(row, column));
    let slopes = |column| {
        let [first, second] = of(column);
        (first.1, second.1)
    };
    let mut start = half_period(simd, slopes, pair, points);
    start.lowest = 0.0;
    for (column, (&x, &y)) in pair.x.iter().zip(pair.y).enumerate() {
        let mut jumps = [0.0; 2];
        if x != 0.0 || y != 0.0 {
            // A column is lowest where one of its entries is zero.
            let [first, second] = of(column);
            let length = (x * x + y * y).sqrt();
            start.lowest += (second.1 * length - first.0).min(first.1 * length - second.0);
            jumps = [first.0, second.0];
        }
        for (slot, alpha, jump) in [(column, x, jumps[0]), (stride + column, y, jumps[1])] {
            points.set_drop(slot, jump);
            if alpha == 0.0 {
                start.k += jump;
            }
        }
    }
    points.set_drop(2 * stride, 0.0);
    let sizes = Sizes::new(simd, pair.x, pair.y);
    let best = search::<S, false, false, true>(simd, pair, scratch, start, Some(&sizes));
    if let Some(m) = best.breakpoint {
        let slots =
            scratch.breakpoints.dropping_at(m, 2.0, |slot, distance| sizes.reaches(slot, distance / SAME_ANGLE));
        let columns = slots.map(|slot| slot % stride as u32);
        scratch.vanishing.extend(columns);
    }
    best
}
