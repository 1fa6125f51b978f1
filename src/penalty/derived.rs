//! What follows from the pieces of an entry.

use ndarray::{ArrayView2, ArrayViewMut2, Zip};

use super::Penalty;
use crate::pair::Piece;

/// The price of `value` on a piece.
pub(super) fn at([a, b, c]: Piece, value: f64) -> f64 {
    // A piece without a price has infinite a, and its product with an infinite value is no number.
    if a.is_finite() {
        a + value * (b + 0.5 * c * value)
    } else {
        a
    }
}

pub(super) fn entry<P: Penalty>(penalty: &P, row: usize, column: usize, value: f64) -> f64 {
    let right = at(penalty.piece(row, column, value), value);
    if penalty.levels().contains(&value) {
        let left = at(penalty.piece(row, column, value.next_down()), value);
        return left.min(right);
    }
    right
}

/// Known from the price and its slope on both sides.
pub(super) fn subdifferential<P: Penalty>(
    penalty: &P,
    row: usize,
    column: usize,
    value: f64,
) -> (f64, f64) {
    let right = penalty.slope(row, column, value);
    if !penalty.levels().contains(&value) {
        return (right, right);
    }
    let here = penalty.entry(row, column, value);
    let jumps = |neighbour: f64, slope: f64| {
        let rise = penalty.entry(row, column, neighbour) - here;
        let rounding = 4.0 * f64::EPSILON * here.abs() + f64::MIN_POSITIVE;
        !(rise <= 2.0 * slope.abs() * (neighbour - value).abs() + rounding)
    };
    let (below, above) = (value.next_down(), value.next_up());
    let left = penalty.slope(row, column, below);
    let low = if jumps(below, left) {
        f64::NEG_INFINITY
    } else {
        left
    };
    let high = if jumps(above, right) {
        f64::INFINITY
    } else {
        right
    };
    (low, high)
}

/// The best of the levels and of the stationary points inside the pieces.
pub(super) fn proximal<P: Penalty>(
    penalty: &P,
    row: usize,
    column: usize,
    value: f64,
    step: f64,
) -> f64 {
    let levels = penalty.levels();
    let mut best = (f64::INFINITY, value);
    let mut offer = |price: f64, u: f64| {
        let total = price + 0.5 * (u - value) * (u - value) / step;
        if total < best.0 {
            best = (total, u);
        }
    };
    for &level in levels {
        offer(penalty.entry(row, column, level), level);
    }
    let mut from = f64::NEG_INFINITY;
    for &to in levels.iter().chain([&f64::INFINITY]) {
        let piece = penalty.piece(row, column, from);
        let [a, b, c] = piece;
        let u = (value - step * b) / (1.0 + step * c);
        if a.is_finite() && 1.0 + step * c > 0.0 && u > from && u < to {
            offer(at(piece, u), u);
        }
        from = to;
    }
    best.1
}

pub(super) fn proximal_near<P: Penalty>(
    penalty: &P,
    row: usize,
    column: usize,
    x: f64,
    value: f64,
    step: f64,
) -> (f64, f64) {
    let whole = (f64::NEG_INFINITY, f64::INFINITY);
    if penalty.levels().contains(&x) && penalty.subdifferential(row, column, x) == whole {
        return (x, 0.0);
    }
    let u = penalty.proximal(row, column, value, step);
    if penalty.levels().contains(&u) {
        return (u, 0.0);
    }
    let [_, _, c] = penalty.piece(row, column, u);
    (u, 1.0 / (1.0 + step * c))
}

/// The Moreau envelope with the step at which the proximal map takes entries of size `epsilon` to zero, or
/// half of the way: ε²/(2 (h(ε) − h(0))).
pub(super) fn smoothed<P: Penalty>(
    penalty: &P,
    x: ArrayView2<'_, f64>,
    epsilon: f64,
    mut gradient: ArrayViewMut2<'_, f64>,
) -> f64 {
    let mut sum = 0.0;
    Zip::indexed(&mut gradient)
        .and(x)
        .for_each(|(i, k), g, &x| {
            let rise = [-epsilon, epsilon]
                .map(|v| penalty.entry(i, k, v) - penalty.entry(i, k, 0.0))
                .into_iter()
                .filter(|v| v.is_finite())
                .fold(0.0, f64::max);
            let step = 0.5 * epsilon * epsilon / rise;
            // A price that is flat at zero is smooth enough there for a step of its own.
            let step = if step.is_finite() { step } else { epsilon };
            let u = penalty.proximal(i, k, x, step);
            *g += (x - u) / step;
            sum += penalty.entry(i, k, u) + 0.5 * (x - u) * (x - u) / step;
        });
    sum
}
