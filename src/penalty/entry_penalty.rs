//! The penalty φ of an entry as data: quadratic pieces between breakpoints, and a value at each of these.

use super::derived;
use crate::pair::Piece;

/// Piece of an interval in which x is not allowed.
pub(super) const OUTSIDE: Piece = [f64::INFINITY, 0.0, 0.0];

/// Pieces between breakpoints, and φ at each of these.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EntryPenalty {
    pub(super) pieces: Vec<Piece>,
    pub(super) at: Vec<f64>,
}

impl EntryPenalty {
    /// Creates φ with the lower of the two values at every breakpoint.
    pub(super) fn new(breakpoints: &[f64], pieces: Vec<Piece>) -> Self {
        let lower = |(&level, sides): (&f64, &[Piece])| derived::at(sides[0], level).min(derived::at(sides[1], level));
        let at = breakpoints.iter().zip(pieces.windows(2)).map(lower);
        Self { at: at.collect(), pieces }
    }

    /// Returns whether φ is one quadratic across breakpoint `k`.
    pub(super) fn is_idle(&self, k: usize, level: f64) -> bool {
        let [left, right] = [self.pieces[k], self.pieces[k + 1]];
        left == right && self.at[k] == derived::at(left, level)
    }

    pub(super) fn remove(&mut self, k: usize) {
        self.pieces.remove(k);
        self.at.remove(k);
    }

    /// Returns whether φ, with the only breakpoint 0, has its minimum there and is linear in |x| beyond.
    pub(super) fn jump_up(&self) -> bool {
        match (&self.pieces[..], &self.at[..]) {
            ([[a, b, 0.0], [c, d, 0.0]], [at]) => a == c && *b == -*d && *d >= 0.0 && a >= at && a.is_finite(),
            _ => false,
        }
    }

    /// Returns φ(`value`); `above` is the number of breakpoints up to `value`.
    pub(super) fn entry(&self, breakpoints: &[f64], above: usize, value: f64) -> f64 {
        match above.checked_sub(1) {
            Some(level) if breakpoints[level] == value => self.at[level],
            _ => derived::at(self.pieces[above], value),
        }
    }

    /// Returns φ with the breakpoints `to`, which include its own breakpoints `from`.
    pub(super) fn refined(&self, from: &[f64], to: &[f64]) -> Self {
        let above = |value: f64| from.partition_point(|&level| level <= value);
        let left = [f64::NEG_INFINITY];
        let starts = left.iter().chain(to);
        Self {
            pieces: starts.map(|&v| self.pieces[above(v)]).collect(),
            at: to.iter().map(|&v| self.entry(from, above(v), v)).collect(),
        }
    }

    /// Adds another φ with the same breakpoints.
    pub(super) fn add(&mut self, other: &Self) {
        for (piece, more) in self.pieces.iter_mut().zip(&other.pieces) {
            *piece = match [*piece, *more].iter().any(|p| p[0] == f64::INFINITY) {
                true => OUTSIDE,
                false => [0, 1, 2].map(|k| piece[k] + more[k]),
            };
        }
        for (value, more) in self.at.iter_mut().zip(&other.at) {
            *value += more;
        }
    }

    pub(super) fn scale(&mut self, factor: f64) {
        for piece in self.pieces.iter_mut().filter(|piece| **piece != OUTSIDE) {
            *piece = piece.map(|v| factor * v);
        }
        for value in self.at.iter_mut().filter(|value| value.is_finite()) {
            *value *= factor;
        }
    }
}
