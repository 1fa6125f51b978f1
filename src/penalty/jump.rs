//! Σ μ_ij [X_ij ≠ 0] + λ_ij |X_ij|: penalties that jump at 0 and are linear on either side.
//!
//! Between angles at which an entry vanishes the arcs are those of ℓ1 with entrywise weights, see
//! [`arcs`](super::arcs). Where an entry vanishes h is lower by its μ_ij. O(r log r).

use pulp::Simd;

use super::arcs::{half_period, search};
use crate::pair::{Arc, Best, Breakpoints, CirclePair, SAME_BREAKPOINT, Scratch};

/// Angles closer than this are equal, as in the solver for any pieces.
const SAME_ANGLE: f64 = 4.0 * SAME_BREAKPOINT;

/// Returns the global minimum on the circle; `weights` maps (row, column) to (μ, λ), both ≥ 0.
#[inline(always)]
pub(super) fn circle<S: Simd>(
    weights: impl Fn(usize, usize) -> (f64, f64),
    simd: S,
    pair: &CirclePair<'_>,
    scratch: &mut Scratch,
) -> Best {
    scratch.clear();
    let columns = pair.x.len();
    let points = &mut scratch.breakpoints;
    points.resize(2 * columns + 1);
    let mut start = Arc::default();
    for (column, (&x, &y)) in pair.x.iter().zip(pair.y).enumerate() {
        let zero = x == 0.0 && y == 0.0;
        if !zero {
            // A column is lowest where one of its entries is zero.
            let [first, second] = [pair.rows.0, pair.rows.1].map(|row| weights(row, column));
            let length = (x * x + y * y).sqrt();
            start.lowest += (second.1 * length - first.0).min(first.1 * length - second.0);
        }
        for (slot, row, alpha, beta) in [
            (2 * column, pair.rows.0, x, y),
            (2 * column + 1, pair.rows.1, y, -x),
        ] {
            if zero {
                points.set(slot, Breakpoints::INERT, (-1.0, 0.0), (0.0, 0.0));
                points.set_drop(slot, 0.0);
                continue;
            }
            let (jump, slope) = weights(row, column);
            half_period(slope, alpha, beta, slot, points, &mut start);
            points.set_drop(slot, jump);
            if alpha == 0.0 {
                start.k += jump;
            }
        }
    }
    // A breakpoint without a jump keeps every arc within a quadrant.
    points.set(2 * columns, 1.0, (0.0, 1.0), (0.0, 0.0));
    points.set_drop(2 * columns, 0.0);
    let best = search::<S, false, false, true>(simd, pair, scratch, start);
    if let Some(m) = best.breakpoint {
        let slots = scratch.breakpoints.dropping_at(m, SAME_ANGLE);
        let columns = slots.map(|slot| slot / 2);
        scratch.vanishing.extend(columns);
    }
    best
}
