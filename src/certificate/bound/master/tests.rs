//! Tests of the barrier, its Newton step and its centre against finite differences and their conditions.

use super::*;
use crate::linalg::symmetric_eigenvalues;
use crate::start;

const MU: f64 = 0.3;

/// Returns a symmetric C, and a problem of two classes whose known vectors have one to three nonzeros.
fn problem(seed: u64) -> (Array2<f64>, Master) {
    let n = 5;
    let a = start::random(n, n, seed) * &ndarray::Array1::linspace(0.5, 1.5, n);
    let c = &a + &a.t() + Array2::<f64>::eye(n) * 4.0;
    let mut known = Vec::new();
    for class in 0..2 {
        for first in 0..n {
            let count = 1 + (first + class) % 3;
            let rows: Vec<usize> = (first..n.min(first + count)).collect();
            let size = (1..=rows.len()).map(|t| (t * t) as f64).sum::<f64>();
            let entries: Vec<f64> = (1..=rows.len()).map(|t| t as f64 / size.sqrt()).collect();
            known.push(Known {
                class,
                value: quadratic(&c, &rows, &entries),
                weight: 0.05 + 0.01 * ((first * 3 + class) % 5) as f64,
                rows,
                entries,
            });
        }
    }
    (c, Master::new(n, vec![1.0, 2.0], known))
}

/// Returns u as a vector with n entries.
fn full(u: &Known, n: usize) -> Vec<f64> {
    let mut x = vec![0.0; n];
    for (&i, &v) in u.rows.iter().zip(&u.entries) {
        x[i] = v;
    }
    x
}

/// Returns Σ w value + μ (Σ ln w + Σ ln s + ln det S), S and the slacks s, all from their definitions.
fn defined(master: &Master, w: &[f64]) -> (f64, Array2<f64>, Vec<f64>) {
    let n = master.n;
    let mut s = Array2::eye(n);
    for (u, w) in master.known.iter().zip(w) {
        let x = full(u, n);
        s -= &Array2::from_shape_fn((n, n), |(i, j)| w * x[i] * x[j]);
    }
    let total = |class: usize| -> f64 {
        let of = master.known.iter().zip(w).filter(|(u, _)| u.class == class);
        of.map(|(_, w)| w).sum()
    };
    let slacks: Vec<f64> = (0..2).map(|c| master.classes[c] - total(c)).collect();
    let gain: f64 = master.known.iter().zip(w).map(|(u, w)| w * u.value).sum();
    let logs = |values: &[f64]| values.iter().map(|v| v.ln()).sum::<f64>();
    let determinant = symmetric_eigenvalues(s.view()).to_vec();
    let barrier = logs(w) + logs(&slacks) + logs(&determinant);
    (gain + MU * barrier, s, slacks)
}

#[test]
fn the_barrier_is_that_of_its_definition() {
    for seed in 0..5 {
        let (_, master) = problem(seed);
        let w = master.weights();
        let found = master.barrier(&w, MU).unwrap();
        let (value, s, slacks) = defined(&master, &w);
        assert!((found.value - value).abs() < 1e-10 * value.abs());
        let off = found.inverse.dot(&s) - Array2::<f64>::eye(5);
        assert!(off.iter().all(|v| v.abs() < 1e-10));
        for (a, b) in found.slacks.iter().zip(&slacks) {
            assert!((a - b).abs() < 1e-14);
        }
        let gain: f64 = master.known.iter().map(|u| u.weight * u.value).sum();
        assert!((master.value() - gain).abs() < 1e-12 * gain.abs());
    }
}

#[test]
fn weights_on_or_beyond_a_constraint_have_no_barrier() {
    let (_, mut master) = problem(1);
    let w = master.weights();
    for bad in [0.0, -0.1] {
        let mut w = w.clone();
        w[3] = bad;
        assert!(master.barrier(&w, MU).is_none());
    }
    // One unit vector per class, of weight 1 or 2: the slack of its class, or S, would be 0.
    master.known.truncate(1);
    master.known[0].rows = vec![0];
    master.known[0].entries = vec![1.0];
    for (columns, weight, inside) in
        [(0.5, 0.25, true), (0.5, 0.5, false), (0.5, 0.75, false), (2.0, 0.75, true), (2.0, 1.25, false)]
    {
        master.classes[0] = columns;
        let found = master.barrier(&[weight], MU);
        assert_eq!(found.is_some(), inside, "{columns} {weight}");
    }
}

/// The step d relative to w solves H d = g: along it the first derivative of the barrier is μ times the squared
/// decrement, and the second one −μ times it. In any other direction e, ⟨e, H d⟩ = ⟨e, g⟩.
#[test]
fn a_newton_step_solves_the_quadratic_model() {
    for seed in 0..5 {
        let (_, master) = problem(seed);
        let w = master.weights();
        let at = master.barrier(&w, MU).unwrap();
        let (step, decrement) = master.newton(&w, &at, MU).unwrap();
        let along = |directions: &[(&[f64], f64)]| {
            let moved = |k: usize| -> f64 {
                let sum: f64 = directions.iter().map(|(d, t)| d[k] * t).sum();
                w[k] * (1.0 + sum)
            };
            let w: Vec<f64> = (0..w.len()).map(moved).collect();
            defined(&master, &w).0
        };
        let size = step.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        let h = 1e-3 / size;
        let slope = (along(&[(&step, h)]) - along(&[(&step, -h)])) / (2.0 * h);
        assert!((slope - MU * decrement).abs() < 1e-4 * MU * decrement);
        for k in 0..w.len() {
            let mut unit = vec![0.0; w.len()];
            unit[k] = 1.0;
            let e = 1e-3;
            let first = (along(&[(&unit, e)]) - along(&[(&unit, -e)])) / (2.0 * e);
            let both = |s: f64, t: f64| along(&[(&step, s * h), (&unit, t * e)]);
            let second = (both(1.0, 1.0) - both(1.0, -1.0) - both(-1.0, 1.0) + both(-1.0, -1.0)) / (4.0 * e * h);
            assert!((first + second).abs() < 1e-3 * (1.0 + first.abs()), "{k}");
        }
    }
}

/// At the centre w (uᵀCu − uᵀΛu − φ) = −μ for every known vector, and no weight beats it.
#[test]
fn a_centre_meets_its_condition() {
    for seed in 0..8 {
        for mu in [1.0, 0.1, 0.01] {
            let (c, mut master) = problem(seed);
            let begin = master.barrier(&master.weights(), mu).unwrap().value;
            let centre = master.centre(mu, &|| true).unwrap();
            let end = master.barrier(&master.weights(), mu).unwrap();
            assert!(end.value > begin);
            let (_, decrement) = master.newton(&master.weights(), &end, mu).unwrap();
            assert!(decrement < CENTRED, "{seed} {mu} {decrement}");
            for u in &master.known {
                let own = quadratic(&c, &u.rows, &u.entries)
                    - quadratic(&centre.lambda, &u.rows, &u.entries)
                    - centre.multipliers[u.class];
                assert!((u.weight * own / mu + 1.0).abs() < 1.0, "{seed} {mu}");
            }
            // Λ and φ are those of the final weights.
            let off = &centre.lambda - &(&end.inverse * mu);
            assert!(off.iter().all(|v| v.abs() < 1e-9));
            for (phi, slack) in centre.multipliers.iter().zip(&end.slacks) {
                assert!((phi * slack - mu).abs() < 1e-12);
            }
            // A few Newton steps, of 2n³ + nJ² + J³/3 multiply-adds each.
            let each = 2.0 * 125.0 + 5.0 * 100.0 + 1000.0 / 3.0;
            let steps = master.work / each;
            assert!((steps - steps.round()).abs() < 1e-9);
            assert!((1.0..=30.0).contains(&steps.round()), "{steps}");
        }
    }
}

/// A step goes 95 % of the way to the first weight of 0, but no further than Newton's. It is halved
/// until the barrier rises by 1e-4 of its slope along the step.
#[test]
fn steps_to_a_centre_rise_enough() {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    let (mut whole, mut bounded, mut halved) = (0, 0, 0);
    for seed in 0..20 {
        for (mu, scale, less) in
            [(1.0, 1.0, 0.0), (0.1, 0.01, 0.0), (0.01, 1.0, 6.0), (0.01, 1.5, 0.0), (1e-3, 1e-3, 0.0)]
        {
            let (_, mut master) = problem(seed);
            for u in &mut master.known {
                u.weight *= scale;
                u.value -= less;
            }
            let w = master.weights();
            let Some(at) = master.barrier(&w, mu) else {
                continue;
            };
            let (step, decrement) = master.newton(&w, &at, mu).unwrap();
            // Time for one step: the first number of questions after which the weights have moved.
            let moved = (1..100).find_map(|most| {
                let asked = AtomicUsize::new(0);
                let mut part = master.clone();
                part.centre(mu, &|| asked.fetch_add(1, Relaxed) < most)?;
                (part.weights() != w).then(|| part.weights())
            });
            let moved = moved.unwrap();
            let least = step.iter().fold(0.0, |m: f64, v| m.min(*v));
            let most = if least < 0.0 { (-0.95 / least).min(1.0) } else { 1.0 };
            let along = |t: f64| -> Vec<f64> {
                let next = w.iter().zip(&step).map(|(w, d)| w * (1.0 + t * d));
                next.collect()
            };
            let rises = |t: f64| {
                let enough = at.value + 1e-4 * t * mu * decrement;
                let next = master.barrier(&along(t), mu);
                next.is_some_and(|next| next.value >= enough)
            };
            let largest = (0..w.len()).max_by(|&i, &j| step[i].abs().total_cmp(&step[j].abs()));
            let k = largest.unwrap();
            let halvings = (most * step[k] / (moved[k] / w[k] - 1.0)).log2().round();
            let length = most * 0.5f64.powf(halvings);
            assert_eq!(moved, along(length), "{seed} {mu}");
            assert!(rises(length) && (halvings == 0.0 || !rises(2.0 * length)));
            whole += usize::from(length == 1.0);
            bounded += usize::from(length == most && most < 1.0);
            halved += usize::from(length < most);
        }
    }
    assert!(whole > 3 && bounded > 3 && halved > 3, "{whole} {bounded} {halved}");
}

#[test]
fn a_centre_out_of_time_is_the_point_where_it_began() {
    let (_, mut master) = problem(2);
    let w = master.weights();
    let inverse = master.barrier(&w, MU).unwrap().inverse;
    let centre = master.centre(MU, &|| false).unwrap();
    assert_eq!((master.weights(), master.work), (w, 0.0));
    assert!((&centre.lambda - &(inverse * MU)).iter().all(|v| *v == 0.0));
    master.known[0].weight = 2.0;
    assert!(master.centre(MU, &|| true).is_none());
}

#[test]
fn a_new_vector_is_added_well_inside_the_constraints() {
    let (c, mut master) = problem(3);
    let centre = master.centre(MU, &|| true).unwrap();
    let new =
        |rows: &[usize], entries: &[f64]| Candidate { rows: rows.to_vec(), entries: entries.to_vec(), value: f64::NAN };
    let mut add = |class: usize, rows: &[usize], entries: &[f64]| {
        let before = master.known.len();
        master.add(&c, class, &new(rows, entries), &centre, MU);
        assert!(master.barrier(&master.weights(), MU).is_some());
        let added = master.known.len() > before;
        if added {
            let last = &master.known[before];
            assert_eq!((last.class, &last.rows[..]), (class, rows));
            assert!((last.value - quadratic(&c, rows, entries)).abs() < 1e-14);
            // A fifth of μ over uᵀΛu + φ, but no more than a fifth of the columns of the class.
            let level = quadratic(&centre.lambda, rows, entries) + centre.multipliers[class];
            let weight = 0.2 * (MU / level).min(master.classes[class]);
            assert!((last.weight - weight).abs() < 1e-14);
        }
        added
    };
    assert!(add(0, &[0, 4], &[0.6, 0.8]));
    // The same vector, the other sign, and an angle of 1e-5; other entries, rows and classes are new.
    assert!(!add(0, &[0, 4], &[0.6, 0.8]));
    assert!(!add(0, &[0, 4], &[-0.6, -0.8]));
    let turned = |angle: f64| [0.6 * angle.cos() + 0.8 * angle.sin(), 0.8 * angle.cos() - 0.6 * angle.sin()];
    assert!(!add(0, &[0, 4], &turned(1e-5)));
    assert!(add(0, &[0, 4], &[0.6, -0.8]));
    assert!(add(0, &[0, 4], &turned(1e-3)));
    assert!(add(0, &[0, 3], &[0.6, 0.8]));
    assert!(add(1, &[0, 4], &[0.6, 0.8]));
    // Nothing is known beyond a constraint: a vector outside the space of the others.
    master.known[0].weight = 2.0;
    let before = master.known.len();
    master.add(&c, 0, &new(&[1, 3], &[0.6, 0.8]), &centre, MU);
    assert_eq!(master.known.len(), before);
}

#[test]
fn the_least_weights_are_forgotten_above_a_number() {
    for (count, left) in [(KNOWN, KNOWN), (KNOWN + 1, 241), (2 * KNOWN, 241)] {
        let (_, mut master) = problem(4);
        let one = master.known[0].clone();
        // All different, in no order.
        let weight = |k: usize| 1e-4 * (1 + (k * 7919) % count) as f64;
        master.known = (0..count).map(|k| Known { weight: weight(k), ..one.clone() }).collect();
        master.forget();
        assert_eq!(master.known.len(), left);
        let least = 1e-4 * (count - left) as f64;
        assert!(master.known.iter().all(|u| u.weight > least));
    }
}

#[test]
fn quadratic_forms_are_those_of_the_full_vector() {
    let (c, master) = problem(5);
    for u in &master.known {
        let x = full(u, 5);
        let dense: f64 = c.indexed_iter().map(|((i, j), v)| v * x[i] * x[j]).sum();
        assert!((quadratic(&c, &u.rows, &u.entries) - dense).abs() < 1e-13);
    }
}
