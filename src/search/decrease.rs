//! What a descent can be expected to bring.

use serde::{Deserialize, Serialize};

/// Factor by which the expected decrease fades with every descent that brings less.
pub(super) const FADING: f64 = 0.9;

/// A fading maximum of the decreases that descents brought; infinite before the first one.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Decrease(f64);

impl Decrease {
    /// Nothing is known yet.
    pub(super) const UNKNOWN: Self = Self(f64::INFINITY);

    /// Returns whether a descent from `value` may end below `goal`.
    pub(super) fn reaches(self, value: f64, goal: f64) -> bool {
        !(value - self.0 > goal)
    }

    /// Returns how many such descents would bring `distance`.
    pub(super) fn times(self, distance: f64) -> f64 {
        if distance > 0.0 { distance / self.0 } else { 0.0 }
    }

    /// Records the decrease of a descent; earlier ones fade by the factor `fading`.
    pub(super) fn note(&mut self, decrease: f64, fading: f64) {
        self.0 = match self.0.is_finite() {
            true => decrease.max(fading * self.0),
            false => decrease / fading,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descent_is_expected_to_bring_what_earlier_ones_brought() {
        let mut decrease = Decrease::UNKNOWN;
        assert!(decrease.reaches(1e300, -1e300));
        decrease.note(9.0, FADING);
        assert!(decrease.reaches(10.0, 0.0) && !decrease.reaches(10.1, 0.0));
        // Descents that bring nothing let it fade, and a larger decrease counts at once.
        (0..10).for_each(|_| decrease.note(0.0, FADING));
        let faded = 10.0 * FADING.powi(10);
        assert!(decrease.reaches(0.999 * faded, 0.0) && !decrease.reaches(1.001 * faded, 0.0));
        decrease.note(7.0, FADING);
        assert_eq!((decrease.times(21.0), decrease.times(0.0)), (3.0, 0.0));
        assert!(decrease.reaches(7.0, 0.0) && !decrease.reaches(7.1, 0.0));
    }
}
