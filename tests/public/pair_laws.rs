//! Laws of pair problems that need no reference: units, mirror images, and what bounds promise.
//!
//! A unit that is a power of two changes no digit. Every threshold of a pair solver is therefore
//! relative.

use ndarray::Array2;
use orthobcd::pair::{
    Best, BestBoost, Boost, CirclePair, Hyp, HyperbolaPair, LightModel, Piece, Scratch, Sym2, Trig, full_range,
};
use orthobcd::penalty::{Penalty, solve_on_circle, solve_on_hyperbola};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::common::{dot, light, normal};

/// Two rows and the smooth part of their pair problem, on either curve.
#[derive(Clone)]
struct Case {
    x: Vec<f64>,
    y: Vec<f64>,
    g: [Vec<f64>; 2],
    m: Sym2,
    proximal: f64,
}

/// Rows of up to 12 entries with zeros, equal slopes and lightlike columns; M is positive definite.
fn case(rng: &mut Xoshiro256PlusPlus, nonnegative: bool) -> Case {
    let r = [1, 2, 3, 5, 8, 12][rng.random_range(0..6)];
    let mut row = |share: f64| -> Vec<f64> {
        (0..r).map(|_| if rng.random_bool(share) { 0.0 } else { normal(rng).tanh() }).collect()
    };
    let (mut x, mut y) = (row(0.2), row(0.2));
    let g = [row(0.0), row(0.0)].map(|row| row.iter().map(|v| 3.0 * v).collect());
    if r > 2 {
        (x[1], y[1]) = (0.5 * x[0], 0.5 * y[0]);
        (x[2], y[2]) = (-0.5 * y[0], 0.5 * x[0]);
    }
    if r > 5 {
        // Lightlike columns, of which no boost makes an entry zero.
        (x[3], y[4]) = (y[3], -x[4]);
    }
    if nonnegative {
        x.iter_mut().chain(&mut y).for_each(|v| *v = v.abs());
    }
    let (d0, d1) = (0.1 + rng.random::<f64>(), 0.1 + rng.random::<f64>());
    let o = (d0 * d1).sqrt() * rng.random_range(-0.9..0.9);
    Case { x, y, g, m: Sym2 { d0, d1, o }, proximal: if rng.random() { 0.0 } else { 0.25 } }
}

impl Case {
    /// The case in other units: X times 2^`length`, f times 2^`value`.
    fn in_units(&self, length: i32, value: i32) -> Self {
        let times = |row: &[f64], power: i32| -> Vec<f64> { row.iter().map(|v| v * 2f64.powi(power)).collect() };
        let m = 2f64.powi(value - 2 * length);
        Self {
            x: times(&self.x, length),
            y: times(&self.y, length),
            g: self.g.each_ref().map(|row| times(row, value - length)),
            m: Sym2 { d0: m * self.m.d0, d1: m * self.m.d1, o: m * self.m.o },
            proximal: self.proximal * 2f64.powi(value),
        }
    }

    /// The smooth part on both branches of the circle.
    fn branches(&self) -> (Trig, Trig) {
        let model = orthobcd::pair::PairModel {
            gz: [
                [dot(&self.g[0], &self.x), dot(&self.g[0], &self.y)],
                [dot(&self.g[1], &self.x), dot(&self.g[1], &self.y)],
            ],
            m: self.m,
            s: Sym2 { d0: dot(&self.x, &self.x), d1: dot(&self.y, &self.y), o: dot(&self.x, &self.y) },
            proximal: self.proximal,
        };
        model.branches()
    }

    fn on_circle(&self, penalty: &Penalty, scratch: &mut Scratch) -> Best {
        let (rotation, reflection) = self.branches();
        let pair = CirclePair { rows: (0, 1), x: &self.x, y: &self.y, rotation, reflection: Some(reflection) };
        solve_on_circle(penalty, &pair, scratch)
    }

    fn light(&self) -> LightModel {
        light([&self.x, &self.y], &self.g, self.m, self.proximal)
    }

    fn on_hyperbola(&self, penalty: &Penalty, bound: Option<f64>, scratch: &mut Scratch) -> BestBoost {
        let pair = HyperbolaPair::new((0, 1), &self.x, &self.y, &self.light(), bound);
        solve_on_hyperbola(penalty, &pair, scratch)
    }

    /// F of the moved rows less F, and the sum of the magnitudes of its terms, from the matrix of
    /// the boost.
    fn change(&self, penalty: &Penalty, boost: Boost, zeros: &[u32]) -> (f64, f64) {
        let (v, e) = (boost.matrix(), boost.minus_identity());
        let (mut value, mut size) = (0.0, 0.0);
        for k in 0..self.x.len() {
            let old = [self.x[k], self.y[k]];
            let mut new = v.map(|row| row[0] * old[0] + row[1] * old[1]);
            let reach = boost.u.max(1.0 / boost.u) * (old[0].abs() + old[1].abs());
            for entry in &mut new {
                if entry.abs() <= 1e-13 * reach && (zeros.contains(&(k as u32)) || *entry < 0.0) {
                    *entry = 0.0;
                }
            }
            let d = [0, 1].map(|i: usize| e[i][0] * old[0] + e[i][1] * old[1]);
            value += self.g[0][k] * d[0] + self.g[1][k] * d[1];
            value += 0.5 * (self.m.d0 * d[0] * d[0] + self.m.d1 * d[1] * d[1]);
            value += self.m.o * d[0] * d[1];
            size += reach * (self.g[0][k].abs() + self.g[1][k].abs() + 10.0 * reach);
            for row in [0, 1] {
                value += penalty.entry(row, k, new[row]) - penalty.entry(row, k, old[row]);
                let penalized = penalty.entry(row, k, reach).abs() + penalty.entry(row, k, 1.0);
                size += penalized;
            }
        }
        let square: f64 = e.iter().flatten().map(|v| v * v).sum();
        (value + 0.5 * self.proximal * square, size + self.proximal * square)
    }
}

/// Penalties of every kind for two rows of 12 entries, in units of 2^`length` for X and 2^`value`
/// for h; true for those that need X ≥ 0.
fn kinds(length: i32, value: i32) -> Vec<(Penalty, bool)> {
    let (count, slope) = (2f64.powi(value), 2f64.powi(value - length));
    let unit = 2f64.powi(length);
    let weights = |size: f64| Array2::from_shape_fn((2, 12), |(i, k)| size * [0.0, 0.25, 1.0][(i + 2 * k) % 3]);
    let piece = |[a, b, c]: Piece| [count * a, slope * b, slope / unit * c];
    let huber = Penalty::pieces(
        vec![-0.5 * unit, 0.25 * unit],
        [[-0.125, -1.0, 0.0], [0.0, 0.0, 3.0], [-0.15625, 1.0, 0.0]].map(piece).to_vec(),
    );
    let (l0, l1) = (Penalty::l0(0.7 * count), Penalty::l1(0.3 * slope));
    let tilt = Penalty::pieces(Vec::new(), vec![[0.0, 0.4 * slope, 0.0]]);
    let plus = |first: &Penalty, second: &Penalty| first.plus(second).unwrap();
    let within = |bound: f64| Penalty::interval(-bound * unit, bound * unit).unwrap();
    let free = [
        Penalty::NONE,
        l0.clone(),
        l1.clone(),
        Penalty::l0(weights(count)),
        Penalty::l1(weights(slope)),
        plus(&l0, &l1),
        plus(&l0, &tilt.unwrap()),
        Penalty::capped_l1(slope, 0.75 * unit).unwrap(),
        Penalty::mcp(slope, unit / slope).unwrap(),
        huber.unwrap(),
        within(1.0625),
        plus(&l0, &within(1.0625)),
        plus(&l1, &within(1.0625)),
    ];
    let above = [Penalty::NONNEGATIVE, plus(&l0, &Penalty::NONNEGATIVE), plus(&l1, &Penalty::NONNEGATIVE)];
    let free = free.into_iter().map(|penalty| (penalty, false));
    free.chain(above.into_iter().map(|penalty| (penalty, true))).collect()
}

/// Units of X and of f, powers of two.
const UNITS: [(i32, i32); 4] = [(40, -60), (-31, 14), (0, 100), (90, 0)];

#[test]
fn a_unit_changes_no_digit() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let (mut scratch, mut other) = (Scratch::new(12), Scratch::new(12));
    for trial in 0..40 {
        let (length, value) = UNITS[trial % 4];
        let (free, above) = (case(&mut rng, false), case(&mut rng, true));
        for ((plain, sign), (scaled, _)) in kinds(0, 0).into_iter().zip(kinds(length, value)) {
            let case = if sign { &above } else { &free };
            let same = case.in_units(length, value);
            let fast = case.on_circle(&plain, &mut scratch).value;
            let general = case.on_circle(&plain.general(), &mut scratch).value;
            assert!((fast - general).abs() < 1e-11, "{trial}: {plain:?}");
            for (plain, scaled) in [(plain.clone(), scaled.clone()), (plain.general(), scaled.general())] {
                let first = case.on_circle(&plain, &mut scratch);
                let second = same.on_circle(&scaled, &mut other);
                assert_eq!(first.turn, second.turn, "{trial}: {plain:?}");
                assert_eq!(first.value * 2f64.powi(value), second.value);
                assert_eq!(scratch.vanishing, other.vanishing);
                for bound in [None, Some(0.5)] {
                    let first = case.on_hyperbola(&plain, bound, &mut scratch);
                    let second = same.on_hyperbola(&scaled, bound, &mut other);
                    assert_eq!(first.boost, second.boost, "{trial}: {plain:?}");
                    assert_eq!(first.value * 2f64.powi(value), second.value);
                    assert_eq!(scratch.vanishing, other.vanishing);
                    assert_eq!(first.unbounded, second.unbounded);
                }
            }
        }
    }
}

/// A boost keeps its bound, does what it claims, and no other one within the bound is better.
#[test]
fn boosts_within_a_bound_are_the_best_ones() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    let mut scratch = Scratch::new(12);
    for trial in 0..40 {
        let (free, above) = (case(&mut rng, false), case(&mut rng, true));
        let bound = [0.02, 0.3, 2.0][trial % 3];
        for (penalty, sign) in kinds(0, 0) {
            let case = if sign { &above } else { &free };
            let best = case.on_hyperbola(&penalty, Some(bound), &mut scratch);
            assert!(best.unbounded.is_none());
            assert!(best.boost.rapidity().abs() <= bound * (1.0 + 1e-14));
            let (value, size) = case.change(&penalty, best.boost, &scratch.vanishing);
            assert!(value - best.value <= 1e-11 * size, "{trial}: {penalty:?}");
            let general = case.on_hyperbola(&penalty.general(), Some(bound), &mut scratch);
            assert!((best.value - general.value).abs() <= 1e-11 * size, "{trial}: {best:?} {general:?} {penalty:?}");
            for signs in orthobcd::pair::SIGNS {
                for step in -60..=60 {
                    let u = (bound * f64::from(step) / 60.0).exp();
                    let other = case.change(&penalty, Boost { u, signs }, &[]).0;
                    assert!(best.value <= other + 1e-11 * size, "{trial}: {penalty:?} {u}");
                }
            }
        }
    }
}

/// Coefficients from the smallest numbers to nearly the largest ones have the same minima.
#[test]
fn minima_do_not_depend_on_the_size_of_the_coefficients() {
    let numbers = [-3.0, -1.0, 0.0, 0.5, 2.0];
    let (from, to) = full_range();
    for index in 0..numbers.len().pow(4) {
        let [a, b, p, q] = [1, 5, 25, 125].map(|k| numbers[index / k % 5]);
        let circle = |unit: f64| {
            let [a, b, p, q] = [a, b, p, q].map(|v| unit * v);
            let f = Trig { a, b, p, q };
            (f.minima(), f.global_minimum())
        };
        let hyperbola = |unit: f64| {
            let [a_plus, a_minus, p_plus, p_minus] = [a, b, p, q].map(|v| unit * v);
            let f = Hyp { a_plus, a_minus, p_plus, p_minus };
            f.minima(from, to)
        };
        for power in [-1070, -1040, -1022, -600, 2, 600, 1020] {
            // In two steps, as 2^-1070 is not a normal number.
            let unit = 2f64.powi(power / 2) * 2f64.powi(power / 2);
            assert_eq!(circle(unit), circle(1.0), "{power}: {a} {b} {p} {q}");
            assert_eq!(hyperbola(unit), hyperbola(1.0), "{power}: {a} {b} {p} {q}");
        }
    }
}

/// Where the curvatures of f and of a concave tail cancel to rounding, the slope of the tail
/// decides.
#[test]
fn curvatures_that_cancel_leave_the_decision_to_the_slope() {
    let mut scratch = Scratch::new(1);
    let case = Case { x: vec![1.0], y: vec![0.0], g: [vec![0.0], vec![0.0]], m: Sym2::scalar(1.0), proximal: 0.0 };
    // f is ½‖ΔX‖², whose linear part has the slope 1 at most.
    for (excess, slope, unbounded) in [
        (1e-13, 4.0, false),
        (-1e-13, 4.0, false),
        (1e-13, -4.0, true),
        (-1e-13, -4.0, true),
        (1e-11, 4.0, true),
        (-1e-11, -4.0, false),
    ] {
        let tail = |sign: f64| [0.5 * (1.0 + excess) - slope, sign * slope, -1.0 - excess];
        let pieces = vec![tail(-1.0), [0.0; 3], tail(1.0)];
        let penalty = Penalty::pieces(vec![-1.0, 1.0], pieces).unwrap();
        let best = case.on_hyperbola(&penalty, None, &mut scratch);
        assert_eq!(best.unbounded.is_some(), unbounded, "{excess:e} {slope}");
    }
}

/// The pair problem of one column on the circle, with a smooth part that matters little.
fn one_column(penalty: &Penalty, (x, y): (f64, f64), smooth: Trig, scratch: &mut Scratch) -> Best {
    let pair = CirclePair {
        rows: (0, 1),
        x: &[x],
        y: &[y],
        rotation: smooth,
        reflection: Some(Trig { a: smooth.b, b: -smooth.a, ..smooth }),
    };
    solve_on_circle(penalty, &pair, scratch)
}

/// An entry moves to the row in which it costs less, at any size.
#[test]
fn entries_move_to_the_row_of_smaller_weights() {
    let mut scratch = Scratch::new(1);
    for size in [1e-3, 0.1, 1.0, 10.0, 1e3] {
        for jump in [0.0, 0.25 * size] {
            for (first, second, column) in [(1.0, 10.0, (0.0, size)), (10.0, 1.0, (size, 0.0))] {
                let weights = |factor: f64| Array2::from_shape_fn((2, 1), |(row, _)| factor * [first, second][row]);
                let mut penalty = Penalty::l1(weights(1.0));
                if jump > 0.0 {
                    penalty = penalty.plus(&Penalty::l0(weights(jump))).unwrap();
                }
                let gain = 9.0 * (size + jump);
                for smooth in [-1e-4, 0.0, 1e-4].map(|share| share * size) {
                    let smooth = Trig { a: smooth, b: 2.0 * smooth, ..Trig::default() };
                    let best = one_column(&penalty, column, smooth, &mut scratch);
                    assert!((best.value + gain).abs() < 1e-3 * gain, "{size} {jump} {best:?}");
                }
            }
        }
    }
}

/// Two entries change rows if the larger one gains more than the smaller one loses.
#[test]
fn the_larger_entry_takes_the_row_of_smaller_weights() {
    let mut scratch = Scratch::new(2);
    for size in [1e-3, 0.1, 1.0, 10.0, 1e3] {
        let weights = Array2::from_shape_fn((2, 2), |(row, _)| [1.0, 10.0][row]);
        let counted = Penalty::l0(&weights * (0.01 * size));
        let smooth = Trig { a: -1e-4 * size, b: 1e-4 * size, ..Trig::default() };
        for penalty in [Penalty::l1(weights.clone()), Penalty::l1(weights).plus(&counted).unwrap()] {
            let pair = CirclePair {
                rows: (0, 1),
                x: &[0.5 * size, 0.0],
                y: &[0.0, size],
                rotation: smooth,
                reflection: Some(smooth),
            };
            let best = solve_on_circle(&penalty, &pair, &mut scratch);
            assert!((best.value + 4.5 * size).abs() < 1e-3 * size, "{best:?}");
        }
    }
}

/// A penalty of |x| with a kink up is lower for two equal entries than for one, which no concave
/// one is.
#[test]
fn convex_penalties_spread_columns_over_both_rows() {
    let mut scratch = Scratch::new(3);
    for unit in [1.0, 2f64.powi(-100), 2f64.powi(100)] {
        // 3·|x| beyond ½.
        let far = [-1.5, 3.0, 0.0];
        let pieces = [[far[0], -3.0, 0.0], [0.0; 3], far].map(|piece| piece.map(|v| unit * v));
        let penalty = Penalty::pieces(vec![-0.5, 0.5], pieces.to_vec()).unwrap();
        for index in 0..81 {
            // One column is spread, and two are not.
            let [a, b, p, q] = [1, 3, 9, 27].map(|k| 0.1 * unit * f64::from(index / k % 3 - 1));
            let smooth = Trig { a, b, p, q };
            let pair = CirclePair {
                rows: (0, 1),
                x: &[0.5, 0.75, 0.75],
                y: &[0.5, 0.0, 0.0],
                rotation: smooth,
                reflection: Some(smooth.quadrant(1)),
            };
            let fast = solve_on_circle(&penalty, &pair, &mut scratch);
            let general = solve_on_circle(&penalty.general(), &pair, &mut scratch);
            let gap = (fast.value - general.value).abs();
            assert!(gap < 1e-13 * unit && fast.value < -0.2 * unit, "{smooth:?}");
        }
    }
}

/// Every form sees where F has no minimum, for curvatures of any sign.
#[test]
fn forms_agree_on_what_is_unbounded() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut scratch = Scratch::new(12);
    let mut counts = [[0; 2]; 2];
    for trial in 0..100 {
        let (mut free, mut above) = (case(&mut rng, false), case(&mut rng, true));
        let m = Sym2 { d0: 0.5 + normal(&mut rng), d1: 0.5 + normal(&mut rng), o: normal(&mut rng) };
        (free.m, above.m) = (m, m);
        if trial % 2 == 0 {
            // One row above the other, so that with X ≥ 0 a second component is allowed.
            above.x.iter_mut().zip(&above.y).for_each(|(x, y)| *x += 0.1 + y);
        }
        for (penalty, sign) in kinds(0, 0) {
            let case = if sign { &above } else { &free };
            let best = case.on_hyperbola(&penalty, None, &mut scratch);
            let general = case.on_hyperbola(&penalty.general(), None, &mut scratch);
            let found = best.unbounded.is_some();
            assert_eq!(found, general.unbounded.is_some(), "{trial}: {penalty:?}");
            counts[usize::from(sign)][usize::from(found)] += 1;
        }
    }
    assert!(counts.as_flattened().iter().all(|&count| count > 20), "{counts:?}");
}
