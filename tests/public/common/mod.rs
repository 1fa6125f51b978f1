//! What the integration tests share; none uses all of it.

#![allow(dead_code)]

pub(crate) mod observed;

use std::sync::OnceLock;

use orthobcd::pair::{LightModel, Sym2};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A normal number.
pub(crate) fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
    given(StandardNormal.sample(rng))
}

/// A number of a test's data: with `ORTHOBCD_TEST_ULP` in the environment the next larger or smaller one. No
/// test may hang on the last bits of its data (`make test-portable`).
pub(crate) fn given(value: f64) -> f64 {
    static MOVED: OnceLock<bool> = OnceLock::new();
    if !MOVED.get_or_init(|| std::env::var_os("ORTHOBCD_TEST_ULP").is_some()) {
        value
    } else if value.to_bits().is_multiple_of(2) {
        value.next_up()
    } else {
        value.next_down()
    }
}

/// Number of random instances of a test, and of how many one is compared with the grid: `usual` instances and each of
/// them, or as many as `ORTHOBCD_INSTANCES` says and about `usual` of them (`make -f tools/maintain.mk test-pairs`).
pub(crate) fn instances(usual: usize) -> (usize, usize) {
    let asked = std::env::var("ORTHOBCD_INSTANCES").map(|text| text.parse().expect("a number"));
    let count = asked.unwrap_or(usual);
    (count, count.div_ceil(usual))
}

/// aᵀb.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The model of a pair of rows in light-cone coordinates, from the rows, their gradients and M.
pub(crate) fn light(rows: [&[f64]; 2], g: &[Vec<f64>; 2], m: Sym2, proximal: f64) -> LightModel {
    let [x, y] = rows;
    let (plus, minus): (Vec<f64>, Vec<f64>) = x.iter().zip(y).map(|(x, y)| (x + y, x - y)).unzip();
    let products = |a: &[f64]| [dot(a, &plus), dot(a, &minus)];
    LightModel {
        gz: [products(&g[0]), products(&g[1])],
        m,
        t: [products(x), products(y)],
        s: [dot(&plus, &plus), dot(&minus, &minus)],
        s_size: [0.0; 2],
        proximal,
    }
}
