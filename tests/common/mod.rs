//! What the integration tests share; none uses all of it.

#![allow(dead_code)]

pub(crate) mod observed;

use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A normal number.
pub(crate) fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
    given(StandardNormal.sample(rng))
}

/// A number of a test's data: with `ORTHOBCD_TEST_ULP` in the environment the next larger or smaller one. No
/// test may hang on the last bits of its data (`make test-portable`).
pub(crate) fn given(value: f64) -> f64 {
    if std::env::var_os("ORTHOBCD_TEST_ULP").is_none() {
        value
    } else if value.to_bits().is_multiple_of(2) {
        value.next_up()
    } else {
        value.next_down()
    }
}
