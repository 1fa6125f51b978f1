//! f = ¼ Σ (X_ij − a_ij)⁴: a function with a value and a gradient, no more.

use ndarray::{Array2, ArrayView2, ArrayViewMut2};
use orthobcd::{Objective, Threads, start};

struct Quartic(Array2<f64>);

impl Objective for Quartic {
    fn rows(&self) -> usize {
        self.0.nrows()
    }

    fn value_and_gradient(&self, x: ArrayView2<f64>, mut gradient: ArrayViewMut2<f64>, _: &Threads) -> f64 {
        let away = &x - &self.0;
        gradient.assign(&away.mapv(|v| v.powi(3)));
        0.25 * away.mapv(|v| v.powi(4)).sum()
    }
}

#[test]
fn value_and_gradient_agree() {
    let (smooth, threads) = (Quartic(start::random(6, 2, 1) * 2.0), Threads::serial());
    assert!(smooth.quadratic().is_none());
    let x = start::random(6, 2, 2);
    let gradient = smooth.gradient(x.view(), &threads);
    for (at, &slope) in gradient.indexed_iter() {
        let value = |step: f64| {
            let mut moved = x.clone();
            moved[at] += step;
            smooth.value(moved.view(), &threads)
        };
        assert!((0.5e5 * (value(1e-5) - value(-1e-5)) - slope).abs() < 1e-8);
    }
}
