//! Value and subdifferential of an entry, from its pieces.

use super::Form;
use crate::numerics;
use crate::pair::Piece;

/// φ(`value`) on a piece.
pub(super) fn at([a, b, c]: Piece, value: f64) -> f64 {
    // A piece outside the domain has infinite a, and with an infinite value the formula would give NaN.
    if a.is_finite() { a + value * (b + 0.5 * c * value) } else { a }
}

/// Returns the regular subdifferential, from φ and its slope on both sides.
pub(super) fn subdifferential<F: Form>(form: &F, row: usize, column: usize, value: f64) -> (f64, f64) {
    let slope = |at: f64| {
        let [_, b, c] = form.piece(row, column, at);
        b + c * at
    };
    let right = slope(value);
    if !form.breakpoints().contains(&value) {
        return (right, right);
    }
    let here = form.entry(row, column, value);
    let jumps = |neighbour: f64, slope: f64| {
        let rise = form.entry(row, column, neighbour) - here;
        let rounding = numerics::ULPS * here.abs() + f64::MIN_POSITIVE;
        !(rise <= 2.0 * slope.abs() * (neighbour - value).abs() + rounding)
    };
    let (below, above) = (value.next_down(), value.next_up());
    let left = slope(below);
    let low = if jumps(below, left) { f64::NEG_INFINITY } else { left };
    let high = if jumps(above, right) { f64::INFINITY } else { right };
    (low, high)
}
