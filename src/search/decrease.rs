//! What a descent can be expected to bring.

use serde::{Deserialize, Serialize};

/// Factor by which the expected decrease fades with every descent that brings less.
const FADING: f64 = 0.9;

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

    /// Records the decrease of a descent.
    pub(super) fn note(&mut self, decrease: f64) {
        self.0 = match self.0.is_finite() {
            true => decrease.max(FADING * self.0),
            false => decrease / FADING,
        };
    }
}
