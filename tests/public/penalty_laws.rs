//! Laws of penalties that hold for every form, through the public interface.

use ndarray::{Array2, array};
use orthobcd::penalty::Penalty;

const SIZE: (usize, usize) = (2, 3);

/// Weighted terms whose kinks lie outside the domain, domains of several parts, and all forms with
/// a name.
fn kinds() -> Vec<Penalty> {
    let weights = array![[0.5, 0.0, 2.0], [1.0, 4.0, 0.25]];
    let outside = [f64::INFINITY, 0.0, 0.0];
    let plus = |first: &Penalty, second: &Penalty| first.plus(second).unwrap();
    let parts =
        Penalty::pieces(vec![-1.0, -0.5, 0.75, 1.0], vec![[0.0; 3], outside, [1.0, 0.5, 2.0], outside, [0.0; 3]]);
    let parts = parts.unwrap();
    let far = Penalty::interval(0.75, 1.25).unwrap();
    let kinds = vec![
        Penalty::NONE,
        Penalty::NONNEGATIVE,
        Penalty::l0(0.75),
        Penalty::l1(1.5),
        Penalty::l0(weights.clone()),
        Penalty::l1(weights.clone()),
        plus(&Penalty::l1(weights.clone()), &far),
        plus(&Penalty::l0(weights.clone()), &far),
        plus(&Penalty::l1(weights), &parts),
        plus(&Penalty::capped_l1(2.0, 0.5).unwrap(), &far),
        plus(&Penalty::l0(0.5), &Penalty::interval(-0.5, 1.0).unwrap()),
        plus(&Penalty::l1(0.5), &Penalty::NONNEGATIVE),
        Penalty::mcp(1.0, 0.5).unwrap(),
        Penalty::scad(0.25, 3.0).unwrap(),
        parts,
        far,
    ];
    let general: Vec<_> = kinds.iter().map(Penalty::general).collect();
    kinds.into_iter().chain(general).collect()
}

fn values() -> impl Iterator<Item = f64> + Clone {
    (-64..=64).map(|k| f64::from(k) / 32.0)
}

fn entries() -> impl Iterator<Item = (usize, usize)> {
    (0..SIZE.0).flat_map(|row| (0..SIZE.1).map(move |column| (row, column)))
}

/// The nearest allowed value by a search of the grid, which contains all ends of all domains.
#[test]
fn a_value_outside_the_domain_moves_to_the_nearest_one_inside() {
    for penalty in kinds() {
        let allowed = |v: &f64| penalty.entry(0, 0, *v).is_finite();
        for v in values() {
            let distances = values().filter(allowed).map(|u| (u - v).abs());
            let least = distances.fold(f64::INFINITY, f64::min);
            let x = Array2::from_elem((1, 1), v);
            assert_eq!(penalty.infeasibility(x.view()), least, "{penalty:?} {v}");
            let mut row = [v];
            penalty.tidy(&mut row);
            assert!(allowed(&row[0]), "{penalty:?} {v}");
            assert_eq!((row[0] - v).abs(), least, "{penalty:?} {v}");
            let Some(squared) = penalty.squared_distance() else {
                assert!(least == 0.0 || penalty.nonnegative());
                continue;
            };
            let square = squared.entry(0, 0, v);
            assert!((square - least * least).abs() < 1e-14, "{penalty:?} {v}");
        }
    }
}

/// The proximal map is constant where its value is a breakpoint, and moves with its argument
/// elsewhere.
#[test]
fn the_proximal_map_stands_still_at_breakpoints() {
    for penalty in kinds().iter().filter(|penalty| **penalty != Penalty::l0(0.75)) {
        for ((row, column), v) in entries().flat_map(|at| values().map(move |v| (at, v))) {
            for step in [0.25, 1.0] {
                let (u, derivative) = penalty.proximal_near((row, column), 7.0, v, step);
                assert_eq!(u, penalty.proximal(row, column, v, step));
                let stands = penalty.breakpoints().contains(&u);
                assert_eq!(derivative == 0.0, stands, "{penalty:?} {v} {step}: {u}");
                assert!(derivative >= 0.0);
            }
        }
    }
}

/// The proximal map in a unit that is a power of two has the same digits.
#[test]
fn the_proximal_map_has_no_unit() {
    let unit = 2f64.powi(-30);
    for (plain, scaled) in [
        (Penalty::l0(0.75), Penalty::l0(0.75 * unit * unit)),
        (Penalty::l1(1.5), Penalty::l1(1.5 * unit)),
        (Penalty::capped_l1(2.0, 0.5).unwrap(), Penalty::capped_l1(2.0 * unit, 0.5 * unit).unwrap()),
    ] {
        for (plain, scaled) in [(plain.clone(), scaled.clone()), (plain.general(), scaled.general())] {
            for (v, step) in values().flat_map(|v| [0.25, 1.0].map(|step| (v, step))) {
                let u = plain.proximal(0, 0, v, step);
                assert_eq!(unit * u, scaled.proximal(0, 0, unit * v, step));
                // No value of the grid is better.
                let total = |u: f64| plain.entry(0, 0, u) + 0.5 * (u - v) * (u - v) / step;
                assert!(values().all(|other| total(u) <= total(other) + 1e-14));
            }
        }
    }
}

/// Value and gradient of h smoothed over the width 1/16.
fn smoothed(penalty: &Penalty, x: &Array2<f64>) -> (f64, Array2<f64>) {
    let mut gradient = Array2::zeros(x.dim());
    let value = penalty.smoothed(x.view(), 0.0625, gradient.view_mut());
    (value, gradient)
}

/// Matrices with entries of the grid.
fn points() -> impl Iterator<Item = Array2<f64>> {
    let entry = |seed: usize, i: usize, k: usize| ((37 * seed + 11 * i + 5 * k) % 129) as f64;
    (0..40).map(move |seed| Array2::from_shape_fn(SIZE, |(i, k)| (entry(seed, i, k) - 64.0) / 32.0))
}

#[test]
fn smoothing_raises_no_value() {
    for penalty in kinds() {
        for x in points().chain([Array2::zeros(SIZE)]) {
            let value = penalty.value(x.view());
            assert!(smoothed(&penalty, &x).0 <= value + 1e-12, "{penalty:?}");
        }
    }
}

/// Smoothing commutes with x ↦ −x and with adding a constant, here for a penalty that charges
/// negative entries more.
#[test]
fn smoothing_follows_mirror_images_and_constants() {
    let of = |constant: f64, sign: f64| {
        let (down, up) = ([constant, -sign * 3.0, 0.5], [constant, sign, 0.5]);
        let pieces = if sign > 0.0 { [down, up] } else { [up, down] };
        Penalty::pieces(vec![0.0], pieces.to_vec()).unwrap()
    };
    for x in points() {
        let (value, gradient) = smoothed(&of(0.0, 1.0), &x);
        let (mirrored, slope) = smoothed(&of(0.0, -1.0), &(-&x));
        assert_eq!((mirrored, slope), (value, -&gradient));
        let (shifted, slope) = smoothed(&of(2.0, 1.0), &x);
        assert!((shifted - value - 2.0 * x.len() as f64).abs() < 1e-12);
        assert!((&slope - &gradient).iter().all(|v| v.abs() < 1e-12));
    }
}

#[test]
fn equal_weights_are_one_weight() {
    let weights = |last: f64| Array2::from_shape_fn(SIZE, |at| if at == (1, 2) { last } else { 0.5 });
    assert_eq!(Penalty::l1(weights(0.5)), Penalty::l1(0.5));
    assert_eq!(Penalty::l0(weights(0.5)), Penalty::l0(0.5));
    for mixed in [Penalty::l1(weights(0.25)), Penalty::l0(weights(0.25))] {
        assert!(mixed != Penalty::l1(0.5) && mixed != Penalty::l0(0.5));
        assert_eq!(mixed.entry(1, 2, 1.0), 0.25);
    }
}

#[test]
fn weights_of_weights_are_their_products() {
    let of = |seed: usize| Array2::from_shape_fn(SIZE, |(i, k)| ((2 * i + k + seed) % 5) as f64);
    let capped = Penalty::capped_l1(2.0, 0.5).unwrap();
    for h in [Penalty::l0(1.0), Penalty::l1(1.0), capped] {
        let twice = h.weighted(&of(1)).unwrap().weighted(&of(2)).unwrap();
        for ((i, k), v) in entries().flat_map(|at| values().map(move |v| (at, v))) {
            let expected = of(1)[[i, k]] * of(2)[[i, k]] * h.entry(i, k, v);
            assert!((twice.entry(i, k, v) - expected).abs() < 1e-13);
        }
        assert!(twice.weighted(&Array2::ones((3, 3))).is_err());
    }
}

/// A sum of counts is a count, unless one of the terms jumps on one side alone.
#[test]
fn counts_add_up() {
    let sum = Penalty::l0(0.5).plus(&Penalty::l0(0.25)).unwrap();
    assert_eq!(sum, Penalty::l0(0.75));
    for (left, right) in [(0.25, 0.5), (0.5, 0.25)] {
        let jump = Penalty::pieces(vec![0.0], vec![[left, 0.0, 0.0], [right, 0.0, 0.0]]).unwrap();
        let less = Penalty::pieces(Vec::new(), vec![[-0.25, 0.0, 0.0]]).unwrap();
        let sum = Penalty::l0(0.5).plus(&jump).unwrap().plus(&less).unwrap();
        let values = [-1.0, 0.0, 1.0].map(|v| sum.entry(0, 0, v));
        assert_eq!(values, [left + 0.25, 0.0, right + 0.25]);
    }
}
