//! Numbers in two doubles, and powers of two.

use serde::{Deserialize, Serialize};

/// Factor that splits a double into two of 26 bits (Dekker).
pub(super) const SPLITTER: f64 = (1u64 << 27) as f64 + 1.0;

/// The sum of two numbers, the second of the size of the rounding of the first.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Pair {
    pub(super) high: f64,
    pub(super) low: f64,
}

impl Pair {
    #[inline(always)]
    pub(super) fn plus(self, other: f64) -> Self {
        let total = two_sum(self.high, other);
        two_sum(total.high, total.low + self.low)
    }
}

impl std::ops::Add for Pair {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.plus(other.high).plus(other.low)
    }
}

impl std::ops::Mul<f64> for Pair {
    type Output = Self;

    #[inline(always)]
    fn mul(self, factor: f64) -> Self {
        let high = two_product(self.high, factor);
        two_sum(high.high, high.low + self.low * factor)
    }
}

/// Returns a + b and its rounding error (Knuth).
#[inline(always)]
pub(super) fn two_sum(a: f64, b: f64) -> Pair {
    let high = a + b;
    let shown = high - a;
    Pair { high, low: (a - (high - shown)) + (b - shown) }
}

/// Returns a · b and its rounding error (Dekker).
#[inline(always)]
pub(super) fn two_product(a: f64, b: f64) -> Pair {
    let halves = |x: f64| {
        let high = SPLITTER * x - (SPLITTER * x - x);
        (high, x - high)
    };
    let high = a * b;
    let ((a1, a2), (b1, b2)) = (halves(a), halves(b));
    Pair { high, low: ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2 }
}

/// Returns the least e with |x| < 2ᵉ for a normal x, −1021 for a subnormal x, and 0 for 0.
#[inline(always)]
pub(super) fn exponent(x: f64) -> i32 {
    if x == 0.0 {
        return 0;
    }
    let biased = (x.to_bits() >> 52) & 0x7ff;
    biased.max(1) as i32 - 1022
}

/// Returns 2ᵉ, but at least the smallest normal number.
#[inline(always)]
pub(super) fn power(e: i32) -> f64 {
    f64::from_bits(((e + 1023).clamp(1, 2046) as u64) << 52)
}
