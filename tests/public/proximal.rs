//! Proximal maps and smoothings against their definition, on a dense grid.

use ndarray::Array2;
use orthobcd::penalty::Penalty;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::common::normal;

/// Penalties of every kind, the weights for a 1×2 matrix.
fn penalties() -> Vec<Penalty> {
    let l0 = Penalty::l0(0.3);
    let l1 = Penalty::l1(0.7);
    let nonnegative = Penalty::NONNEGATIVE;
    let each = Penalty::l1(Array2::from_shape_fn((1, 2), |(_, k)| 0.4 - 0.1 * k as f64));
    let weights = Array2::from_shape_fn((1, 2), |(_, k)| 0.2 + k as f64);
    let counted = Penalty::l0(weights);
    let mcp = Penalty::mcp(1.0, 0.5).unwrap();
    vec![
        Penalty::capped_l1(0.8, 0.6).unwrap(),
        mcp.clone(),
        Penalty::scad(0.3, 3.7).unwrap(),
        Penalty::interval(-0.4, 0.9).unwrap(),
        Penalty::interval(0.0, f64::INFINITY).unwrap(),
        l1.plus(&nonnegative).unwrap(),
        l0.plus(&nonnegative).unwrap(),
        counted.plus(&each).unwrap(),
        counted.plus(&mcp).unwrap(),
        l0,
        l1,
    ]
}

/// The least value of h(u) + (u − x)²/(2t) on a grid that has every level.
fn least(penalty: &Penalty, column: usize, x: f64, t: f64) -> f64 {
    let at = |u: f64| penalty.entry(0, column, u) + (u - x) * (u - x) / (2.0 * t);
    let grid = (0..=40_000).map(|i| -4.0 + 2e-4 * f64::from(i));
    grid.chain(penalty.breakpoints().iter().copied()).chain([x]).map(at).fold(f64::INFINITY, f64::min)
}

#[test]
fn proximal_maps_are_global() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    for penalty in penalties() {
        for _ in 0..200 {
            let (x, t) = (normal(&mut rng), (2.0 * normal(&mut rng)).exp());
            let column = rng.random_range(0..2);
            let u = penalty.proximal(0, column, x, t);
            let value = penalty.entry(0, column, u) + (u - x) * (u - x) / (2.0 * t);
            let grid = least(&penalty, column, x, t);
            assert!(value <= grid + 1e-12, "{penalty:?} {x} {t}: {u}");
            // Near x it is a point of h as well, and no worse than x.
            let (near, slope) = penalty.proximal_near((0, column), u, x, t);
            assert!(penalty.entry(0, column, near).is_finite());
            assert!(slope >= 0.0);
        }
    }
}

#[test]
fn smoothings_are_below_smooth_and_close() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    for penalty in penalties() {
        // The Moreau envelope, which pieces without a form of their own have.
        let penalty = penalty.general();
        for _ in 0..100 {
            let x = Array2::from_shape_fn((1, 2), |_| normal(&mut rng));
            let smoothed = |x: &Array2<f64>, width: f64| {
                let mut gradient = Array2::zeros((1, 2));
                let value = penalty.smoothed(x.view(), width, gradient.view_mut());
                (value, gradient)
            };
            let h = penalty.value(x.view());
            let mut before = f64::NEG_INFINITY;
            for width in [0.3, 0.03, 0.003] {
                let (value, gradient) = smoothed(&x, width);
                assert!(value <= h + 1e-12 && value >= before - 1e-12);
                before = value;
                // Differences, but where the envelope has a kink.
                let direction = Array2::from_shape_fn((1, 2), |_| normal(&mut rng));
                let step = 1e-6 * width;
                let ahead = smoothed(&(&x + &(step * &direction)), width).0;
                let back = smoothed(&(&x - &(step * &direction)), width).0;
                let slope = (&gradient * &direction).sum();
                let kink = (ahead - 2.0 * value + back).abs() / step;
                let size = 1.0 + gradient.iter().map(|v| v.abs()).sum::<f64>();
                let error = ((ahead - back) / (2.0 * step) - slope).abs();
                assert!(error <= 1e-4 * size + kink, "{error} {slope} {kink}");
            }
            if h.is_finite() {
                let (value, _) = smoothed(&x, 1e-9);
                assert!((value - h).abs() <= 1e-6 * (1.0 + h.abs()));
            }
        }
    }
}

#[test]
fn squared_distances_from_the_domain_are_the_least_ones() {
    let outside = [f64::INFINITY, 0.0, 0.0];
    let islands = Penalty::pieces(
        vec![-0.9, -0.3, 0.1, 0.2, 0.8],
        vec![outside, [0.0; 3], outside, outside, [1.0, 2.0, 0.0], outside],
    );
    let bounded = Penalty::interval(-0.4, f64::INFINITY).unwrap();
    let above = Penalty::NONNEGATIVE;
    let penalties = [
        Penalty::interval(-0.4, 0.9).unwrap(),
        bounded.plus(&Penalty::l0(0.3)).unwrap(),
        above.plus(&Penalty::l1(0.1)).unwrap(),
        islands.unwrap(),
    ];
    for penalty in &penalties {
        let distance = penalty.squared_distance().unwrap();
        for k in -200..=200 {
            let x = 0.01 * f64::from(k) + 1e-3;
            let x = Array2::from_elem((1, 1), x);
            let expected = penalty.infeasibility(x.view()).powi(2);
            let value = distance.entry(0, 0, x[[0, 0]]);
            assert!((value - expected).abs() <= 1e-14, "{x}: {value:e} {expected:e}");
        }
    }
    assert!(penalties[3].infeasibility(Array2::from_elem((1, 1), -0.05).view()) > 0.24);
    assert_eq!(Penalty::scad(0.3, 3.7).unwrap().squared_distance(), None);
}
