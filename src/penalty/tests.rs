//! Properties of a penalty agree with its values, in every form.

use ndarray::{Array2, array};

use super::{LARGEST, Penalty, SMALLEST, Weights};

const SIZE: (usize, usize) = (3, 2);

fn weights() -> Array2<f64> {
    array![[0.5, 0.0], [2.0, 1.0], [0.25, 4.0]]
}

/// Returns penalties of every kind, for X of [`SIZE`].
fn kinds() -> Vec<Penalty> {
    let capped = Penalty::capped_l1(2.0, 0.5).unwrap();
    let huber = Penalty::pieces(vec![-0.25, 0.25], vec![[-0.125, -1.0, 0.0], [0.0, 0.0, 4.0], [-0.125, 1.0, 0.0]]);
    let kinds = vec![
        Penalty::NONE,
        Penalty::NONNEGATIVE,
        Penalty::l0(0.75),
        Penalty::l0(weights()),
        Penalty::l1(1.5),
        Penalty::l1(weights()),
        Penalty::mcp(1.0, 0.5).unwrap(),
        Penalty::scad(0.25, 3.0).unwrap(),
        Penalty::interval(-0.5, 0.25).unwrap(),
        Penalty::interval(0.0, 1.0).unwrap(),
        Penalty::NONNEGATIVE.plus(&Penalty::l1(0.5)).unwrap(),
        Penalty::l0(0.5).plus(&Penalty::l1(0.25)).unwrap(),
        capped.weighted(&weights()).unwrap(),
        capped,
        huber.unwrap(),
    ];
    let general: Vec<_> = kinds.iter().map(Penalty::general).collect();
    kinds.into_iter().chain(general).collect()
}

/// Entries on a fine grid, the breakpoints among them.
fn values() -> impl Iterator<Item = f64> + Clone {
    (-64..=64).map(|k| f64::from(k) / 32.0)
}

fn entries() -> impl Iterator<Item = (usize, usize)> {
    (0..SIZE.0).flat_map(|row| (0..SIZE.1).map(move |column| (row, column)))
}

/// Points with entries between −0.75 and 1.25, of which constraints do not allow all.
fn points() -> Vec<Array2<f64>> {
    let entry = |(i, k): (usize, usize), seed: usize| ((7 * seed + 5 * i + 11 * k) % 9) as f64;
    let points = (0..9).map(|seed| Array2::from_shape_fn(SIZE, |at| 0.25 * entry(at, seed) - 0.75));
    points.collect()
}

fn near(a: f64, b: f64) -> bool {
    a == b || (a.is_finite() && (a - b).abs() <= 1e-12 * (1.0 + a.abs().max(b.abs())))
}

#[test]
fn rows_and_changes_are_sums_of_entries() {
    for penalty in kinds() {
        for x in points() {
            let mut whole = 0.0;
            for (i, row) in x.outer_iter().enumerate() {
                let row = row.to_vec();
                let sum: f64 = (0..SIZE.1).map(|k| penalty.entry(i, k, row[k])).sum();
                assert!(near(penalty.row_value(i, &row), sum));
                whole += sum;
                let other: Vec<f64> = row.iter().map(|v| (0.5 - v).abs()).collect();
                let change = penalty.row_value(i, &other) - sum;
                if change.is_finite() {
                    assert!(near(penalty.change(i, &row, &other), change), "{penalty:?}");
                }
            }
            assert!(near(penalty.value(x.view()), whole), "{penalty:?}");
            let turned = penalty.transposed();
            assert!(near(turned.value(x.t()), whole));
            let rows = [2, 0];
            let few = penalty.on_rows(&rows).value(x.select(ndarray::Axis(0), &rows).view());
            assert!(near(few, whole - penalty.row_value(1, &x.row(1).to_vec())) || whole == f64::INFINITY);
        }
    }
}

#[test]
fn pieces_and_slopes_are_those_of_the_entries() {
    for penalty in kinds() {
        assert!(penalty.breakpoints().is_sorted_by(|a, b| a < b));
        for ((row, column), v) in entries().flat_map(|at| values().map(move |v| (at, v))) {
            let right = v + 1e-7;
            let [a, b, c] = penalty.piece(row, column, v);
            let entry = penalty.entry(row, column, right);
            let penalized = a + b * right + 0.5 * c * right * right;
            assert!(near(entry, penalized) || (entry == f64::INFINITY && a == entry));
            assert_eq!(penalty.slope(row, column, v), b + c * v);
            let (low, high) = penalty.subdifferential(row, column, v);
            if entry.is_finite() && penalty.entry(row, column, v).is_finite() {
                // Slopes on both sides, infinite where φ jumps up.
                let here = penalty.entry(row, column, v);
                let rise = (entry - here) / 1e-7;
                assert!(near_slope(high, rise), "{penalty:?} at {v}: {high} and {rise}");
                let fall = (here - penalty.entry(row, column, v - 1e-7)) / 1e-7;
                assert!(near_slope(low, fall), "{penalty:?} at {v}: {low} and {fall}");
            }
        }
    }
}

/// Returns whether a slope is near a difference quotient, or infinite where the quotient is large.
fn near_slope(slope: f64, quotient: f64) -> bool {
    (slope - quotient).abs() < 1e-5 || (slope.is_infinite() && slope * quotient > 1e5)
}

#[test]
fn proximal_maps_are_global_minima() {
    for penalty in kinds() {
        for (row, column) in entries() {
            for (v, step) in values().flat_map(|v| [0.1, 0.3, 2.0].map(|step| (v, step))) {
                let total = |u: f64| penalty.entry(row, column, u) + 0.5 * (u - v).powi(2) / step;
                let u = penalty.proximal(row, column, v, step);
                let best = values().map(total).fold(f64::INFINITY, f64::min);
                assert!(total(u) <= best + 1e-12, "{penalty:?}: {u} for {v}");
                // An entry from which h jumps up on both sides stays; elsewhere the proximal map applies.
                for x in [0.0, 0.3] {
                    let (u_near, derivative) = penalty.proximal_near((row, column), x, v, step);
                    let held = penalty.breakpoints().contains(&x)
                        && penalty.subdifferential(row, column, x) == (f64::NEG_INFINITY, f64::INFINITY);
                    if held || penalty.count().is_some() {
                        let expected = if held { (x, 0.0) } else { (v, 1.0) };
                        assert_eq!((u_near, derivative), expected);
                        continue;
                    }
                    let at = |v: f64| penalty.proximal_near((row, column), x, v, step).0;
                    assert!(near(total(u_near), total(u)), "{penalty:?} near {x}");
                    let (after, before) = (at(v + 1e-6), at(v - 1e-6));
                    if !penalty.breakpoints().contains(&u_near)
                        && (after - before).abs() < 1e-3
                        && near(after - u_near, u_near - before)
                    {
                        let quotient = (after - before) / 2e-6;
                        assert!((derivative - quotient).abs() < 1e-5, "{penalty:?} for {v}");
                    }
                }
            }
        }
    }
}

#[test]
fn smoothing_is_close_and_has_its_gradient() {
    for penalty in kinds() {
        for x in points() {
            let smoothed = |x: &Array2<f64>, epsilon: f64| {
                let mut gradient = Array2::zeros(SIZE);
                let value = penalty.smoothed(x.view(), epsilon, gradient.view_mut());
                (value, gradient)
            };
            let exact = penalty.value(x.view());
            if exact.is_finite() && penalty.sparsifies() {
                assert!((smoothed(&x, 1e-6).0 - exact).abs() < 1e-4, "{penalty:?}");
            }
            let (value, gradient) = smoothed(&x, 0.05);
            for at in entries() {
                let mut moved = x.clone();
                moved[at] += 1e-7;
                let rise = (smoothed(&moved, 0.05).0 - value) / 1e-7;
                assert!((gradient[at] - rise).abs() < 1e-3 * (1.0 + rise.abs()), "{penalty:?}");
            }
        }
    }
}

#[test]
fn tidy_rows_are_allowed() {
    for penalty in kinds() {
        for x in points() {
            let distance = penalty.infeasibility(x.view());
            let mut tidy = x.clone();
            for mut row in tidy.outer_iter_mut() {
                penalty.tidy(row.as_slice_mut().unwrap());
            }
            assert_eq!(penalty.infeasibility(tidy.view()), 0.0);
            assert!(penalty.value(tidy.view()).is_finite());
            assert!(near((&tidy - &x).mapv(|v| v * v).sum().sqrt(), distance));
            assert_eq!(distance > 0.0, penalty.value(x.view()) == f64::INFINITY);
            if let Some(squared) = penalty.squared_distance() {
                assert!(near(squared.value(x.view()), distance * distance));
            }
        }
    }
}

#[test]
fn multiples_have_multiples_of_the_values() {
    for penalty in kinds() {
        let scaled = penalty.scaled(2.5);
        assert_eq!(scaled.is_some(), penalty.sparsifies());
        assert_eq!(penalty.strength().is_some(), penalty.sparsifies());
        for x in points() {
            let value = penalty.value(x.view());
            if let Some(scaled) = &scaled {
                assert!(near(scaled.value(x.view()), 2.5 * value), "{penalty:?}");
            }
            let sum = penalty.plus(&penalty).unwrap().value(x.view());
            assert!(near(sum, 2.0 * value), "{penalty:?}");
            if let Ok(weighted) = penalty.weighted(&weights()) {
                let entry = |(i, k)| weights()[[i, k]] * penalty.entry(i, k, x[[i, k]]);
                let sum: f64 = entries().map(entry).sum();
                assert!(near(weighted.value(x.view()), sum), "{penalty:?}");
            }
        }
    }
}

#[test]
fn kinds_are_told_apart() {
    let (none, nonnegative) = (Penalty::NONE, Penalty::NONNEGATIVE);
    let (count, absolute) = (Penalty::l0(0.75), Penalty::l1(1.5));
    assert_eq!((count.count(), count.absolute()), (Some(0.75), None));
    assert_eq!((absolute.count(), absolute.absolute()), (None, Some(1.5)));
    assert_eq!((none.count(), none.absolute()), (None, None));
    assert!(none.is_none() && !count.is_none() && !nonnegative.is_none());
    for penalty in kinds() {
        let allowed = |v: f64| entries().all(|(i, k)| penalty.entry(i, k, v).is_finite());
        assert_eq!(penalty.nonnegative(), allowed(0.0) && allowed(0.125) && !allowed(-0.125));
        // Zero minimises h and a small linear function where the mean entry says so.
        let mean = |v: f64| entries().map(|(i, k)| penalty.entry(i, k, v)).sum::<f64>();
        let drawn = (1..4).all(|k| {
            let v = 1e-3 * f64::from(k);
            mean(v).min(mean(-v)) > mean(0.0) + 0.03 * v
        });
        let bounded = mean(1.0) == f64::INFINITY || mean(-1.0) == f64::INFINITY;
        assert!(penalty.sparsifies() == drawn || bounded, "{penalty:?}");
        assert!(penalty.pair_work() > 0.0);
    }
    let zero = [Penalty::l0(0.0), Penalty::l1(0.0)];
    assert!(zero.iter().all(|h| h.value(points()[0].view()) == 0.0));
    assert!(matches!(Penalty::l1(weights()).l1_weights(), Some(Weights::Entrywise(_))));
    assert!(Penalty::l1(weights()).absolute().is_none());
}

#[test]
fn strengths_at_which_sharing_does_not_pay() {
    // Where h has one number λ, the largest strength is a value of λ. Elsewhere it is a factor of h, and this
    // factor times the mean increase of h from an entry 0 to an entry 1 is the gain.
    let constant = Penalty::pieces(Vec::new(), vec![[2.0, 0.0, 0.0]]).unwrap();
    let raised = constant.plus(&Penalty::capped_l1(2.0, 0.5).unwrap());
    for penalty in kinds().into_iter().chain(raised) {
        let mean = |v: f64| entries().map(|(i, k)| penalty.entry(i, k, v)).sum::<f64>() / 6.0;
        let cost = mean(1.0) - mean(0.0);
        let has_lambda = penalty.count().or(penalty.absolute()).is_some();
        let unit = match has_lambda || !(cost > 0.0 && cost.is_finite()) {
            true => 1.0,
            false => cost,
        };
        let strength = penalty.largest_strength(3.0);
        assert!(near(strength * unit, 3.0), "{penalty:?}: {strength} of {unit}");
    }
}

#[test]
fn arguments_are_checked_from_both_sides() {
    for bad in [f64::NAN, -1.0, f64::INFINITY, LARGEST.next_up(), SMALLEST.next_down()] {
        assert!(Penalty::l1(bad).check(3, 2).is_err());
        assert!(Penalty::l0(bad).check(3, 2).is_err());
        let mut entrywise = weights();
        entrywise[[2, 1]] = bad;
        assert!(Penalty::l1(entrywise.clone()).check(3, 2).is_err());
        assert!(Penalty::l0(entrywise).check(3, 2).is_err());
        assert!(Penalty::capped_l1(bad, 1.0).is_err());
    }
    for good in [0.0, SMALLEST, LARGEST] {
        assert!(Penalty::l1(good).check(3, 2).is_ok());
        assert!(Penalty::l0(good).check(3, 2).is_ok());
        assert!(Penalty::l1(Array2::from_elem(SIZE, good)).check(3, 2).is_ok());
    }
    for (n, r) in [(2, 2), (3, 3), (2, 3)] {
        assert!(Penalty::l1(weights()).check(n, r).is_err());
        assert!(Penalty::l0(weights()).check(n, r).is_err());
        assert!(Penalty::l1(1.0).check(n, r).is_ok());
    }
    for bad in [f64::NAN, 0.0, -1.0, LARGEST.next_up()] {
        assert!(Penalty::capped_l1(1.0, bad).is_err());
        assert!(Penalty::mcp(bad, 1.0).is_err() && Penalty::mcp(1.0, bad).is_err());
        assert!(Penalty::scad(bad, 3.0).is_err());
    }
    assert!(Penalty::scad(1.0, 2.0).is_err() && Penalty::scad(1.0, 2.0f64.next_up()).is_ok());
    for (lower, upper) in [(1.0, 1.0), (1.0, 0.0), (f64::NAN, 1.0), (0.0, LARGEST.next_up())] {
        assert!(Penalty::interval(lower, upper).is_err());
    }
    for (lower, upper, name) in [
        (f64::NAN, 1.0, "lower"),
        (-LARGEST.next_up(), 1.0, "lower"),
        (0.0, f64::NAN, "upper"),
        (0.0, LARGEST.next_up(), "upper"),
    ] {
        let refused = Penalty::interval(lower, upper).unwrap_err().to_string();
        assert!(refused.contains(name) && refused.contains("infinite"), "{refused}");
    }
    for (lower, upper) in [(f64::NEG_INFINITY, f64::INFINITY), (-LARGEST, LARGEST), (0.0, 1.0)] {
        assert!(Penalty::interval(lower, upper).is_ok());
    }
    let piece = [0.0; 3];
    let outside = [f64::INFINITY, 0.0, 0.0];
    let refused = [
        (vec![0.0], vec![piece]),
        (vec![0.0], vec![piece; 3]),
        (vec![1.0, 1.0], vec![piece; 3]),
        (vec![1.0, 0.0], vec![piece; 3]),
        (vec![f64::NAN], vec![piece; 2]),
        (vec![LARGEST.next_up()], vec![piece; 2]),
        (vec![0.0], vec![outside; 2]),
        (vec![0.0], vec![piece, [f64::INFINITY, 1.0, 0.0]]),
        (vec![0.0], vec![piece, [0.0, LARGEST.next_up(), 0.0]]),
    ];
    for (breakpoints, pieces) in refused {
        assert!(Penalty::pieces(breakpoints, pieces).is_err());
    }
    let all = vec![piece, [LARGEST, -LARGEST, LARGEST], outside];
    assert!(Penalty::pieces(vec![-LARGEST, LARGEST], all).is_ok());
    let apart = Penalty::interval(1.0, 2.0).unwrap();
    assert!(Penalty::interval(-1.0, 0.0).unwrap().plus(&apart).is_err());
    assert!(apart.weighted(&weights()).is_err());
}

#[test]
fn scad_and_mcp_have_their_textbook_values() {
    let lambda = 0.7;
    for a in [2.5f64, 3.7] {
        let (scad, mcp) = (Penalty::scad(lambda, a).unwrap(), Penalty::mcp(lambda, a).unwrap());
        for x in values().map(|x| 2.0 * x) {
            let t = x.abs();
            let at = |penalty: &Penalty| penalty.value(array![[x]].view());
            let expected = if t <= lambda {
                lambda * t
            } else if t <= a * lambda {
                (2.0 * a * lambda * t - t * t - lambda * lambda) / (2.0 * (a - 1.0))
            } else {
                0.5 * lambda * lambda * (a + 1.0)
            };
            assert!((at(&scad) - expected).abs() <= 1e-12 * (1.0 + expected), "{a} {x}");
            let expected = match t <= a * lambda {
                true => lambda * t - t * t / (2.0 * a),
                false => 0.5 * a * lambda * lambda,
            };
            assert!((at(&mcp) - expected).abs() <= 1e-12 * (1.0 + expected), "{a} {x}");
        }
    }
}

/// At a jump the subdifferential is unbounded on its side; a steep kink and rounding are no jumps.
#[test]
fn jumps_are_told_from_kinks() {
    let (infinity, at) = (f64::INFINITY, 1.0);
    let hinge = |level: f64, slope: f64, jump: f64| {
        let right = [level - slope + jump, slope, 0.0];
        let h = Penalty::pieces(vec![at], vec![[level, 0.0, 0.0], right]).unwrap();
        h.subdifferential(0, 0, at)
    };
    for level in [0.0, 4.0, 1048576.0] {
        for slope in [0.25, 1024.0, 1048576.0] {
            assert_eq!(hinge(level, slope, 0.0), (0.0, slope), "{level} {slope}");
            // Up to the right: the lower value is that of the left side.
            assert_eq!(hinge(level, slope, 1.0), (0.0, infinity), "{level} {slope}");
            // Down to the right, the lower value is that of the right side.
            let down = hinge(level, slope, -1.0);
            assert_eq!(down, (f64::NEG_INFINITY, slope), "{level} {slope}");
        }
    }
}

/// Zero draws entries where both one-sided slopes at zero point away from it.
#[test]
fn only_kinks_with_two_slopes_sparsify() {
    for (left, right, drawn) in [
        (-1.0, 1.0, true),
        (-2.0, 0.5, true),
        (0.0, 1.0, false),
        (-1.0, 0.0, false),
        (1.0, 2.0, false),
        (1.0, -1.0, false),
    ] {
        // With a breakpoint at 1, so that the function is none of the forms with a name.
        let pieces = vec![[0.0, left, 0.0], [0.0, right, 0.0], [right - 3.0, 3.0, 0.0]];
        let h = Penalty::pieces(vec![0.0, 1.0], pieces).unwrap();
        assert_eq!(h.sparsifies(), drawn, "{left} {right}");
    }
}

#[test]
fn pieces_of_absolute_values_are_recognised() {
    let of = |a: f64, b: f64| Penalty::pieces(vec![0.0], vec![[0.0, a, 0.0], [0.0, b, 0.0]]).unwrap();
    assert_eq!(of(-2.0, 2.0), Penalty::l1(2.0));
    for (a, b) in [(2.0, -2.0), (-1.0, 2.0), (2.0, 2.0), (-2.0, 0.5), (0.0, 1.0)] {
        let h = of(a, b);
        assert_eq!(h.absolute(), None, "{a} {b}");
        for x in [-0.5, 0.0, 0.75] {
            let value = if x < 0.0 { a * x } else { b * x };
            assert!(near(h.value(array![[x]].view()), value));
        }
    }
}

/// Functions of |x| need breakpoints on both sides.
#[test]
fn even_functions_have_mirrored_breakpoints() {
    use super::even::Even;
    let (down, up) = ([0.0, -1.0, 0.0], [0.0, 1.0, 0.0]);
    let pieces = [down, down, up, up];
    for (breakpoints, values, even) in [
        ([-2.0, 0.0, 2.0], [2.0, 0.0, 2.0], true),
        ([-1.0, 0.0, 2.0], [1.0, 0.0, 2.0], false),
        ([-2.0, 0.0, 1.0], [2.0, 0.0, 1.0], false),
    ] {
        let found = Even::new(&breakpoints, &pieces, &values);
        assert_eq!(found.is_some(), even, "{breakpoints:?}");
    }
}

/// Work in units of ℓ1: less without a kink, more for a form without a fast solver.
#[test]
fn pairs_have_the_work_of_their_form() {
    assert_eq!(Penalty::l1(0.5).pair_work(), 1.0);
    for simple in [Penalty::NONE, Penalty::l0(0.5), Penalty::NONNEGATIVE] {
        let work = simple.pair_work();
        assert!(work > 0.0 && work < 1.0, "{work}");
    }
    let capped = Penalty::capped_l1(2.0, 0.5).unwrap().pair_work();
    assert!(capped > 1.0 && Penalty::scad(0.25, 3.0).unwrap().pair_work() > capped);
    let uneven = vec![[0.0, -1.0, 0.0], [0.0, 0.5, 0.0], [-1.0, 1.5, 0.0]];
    assert!(Penalty::pieces(vec![0.0, 1.0], uneven).unwrap().pair_work() > 1.0);
}

/// The change of λ‖x‖₁ by a new row, and the sum of the magnitudes of its terms.
#[test]
fn changes_of_rows_are_weighted() {
    use super::form::Form;
    let (old, new) = ([0.5, -1.0], [-0.25, 1.5]);
    for lambda in [0.25, 4.0] {
        let form = super::l1::L1 { weights: Weights::Scalar(lambda) };
        assert_eq!(form.change(1, &old, &new), (0.25 * lambda, 0.75 * lambda));
    }
    let form = super::l1::L1 { weights: Weights::Entrywise(array![[0.0, 0.0], [2.0, 8.0]]) };
    assert_eq!(form.change(1, &old, &new), (3.5, 4.5));
}
