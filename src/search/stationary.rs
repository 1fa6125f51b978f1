//! The supports at which the descents of a chain became stationary.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// Supports, as index lists of their nonzeros, at which descents became stationary, with the value. A descent
/// that reaches such a support again ends.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct StationarySupports(HashMap<Vec<usize>, f64>);

impl StationarySupports {
    /// Returns whether a point with this support and at most this value is stationary.
    pub(super) fn contains(&self, places: &[usize], value: f64) -> bool {
        self.0.get(places).is_some_and(|&known| known <= value)
    }

    pub(super) fn insert(&mut self, places: Vec<usize>, value: f64) {
        self.0.insert(places, value);
    }
}
