use std::sync::atomic::{AtomicUsize, Ordering};

use ndarray::{Array2, array};
use proptest::prelude::*;

use super::gaps::trace_gap;
use super::*;
use crate::objective::{Objective, Quadratic};
use crate::penalty::Penalty;
use crate::signature::Signature;
use crate::start;

fn quadratic(n: usize, r: usize, seed: u64, linear: bool) -> Quadratic<'static> {
    let a = start::random(n, n, seed);
    let c = &a + &a.t();
    let linear = linear.then(|| start::random(n, r, seed + 1) * 2.0);
    Quadratic::new(c, linear, None).unwrap()
}

/// Returns a point with exact zeros: a few columns share rows, some rows are zero.
fn sparse_point(n: usize, r: usize) -> Array2<f64> {
    let mut x = Array2::zeros((n, r));
    for k in 0..r {
        x[[2 * k, k]] = 0.6;
        x[[2 * k + 1, k]] = 0.8;
    }
    x
}

/// Returns the largest decrease of F over a fine grid of both branches, with 0 for entries that are tiny
/// at the angles where they vanish.
fn brute_force(problem: &Problem<'_>, x: &Array2<f64>) -> f64 {
    let threads = Threads::serial();
    let base = problem.objective(x.view(), &threads);
    let n = x.nrows();
    let mut gap = 0.0f64;
    for i in 0..n {
        for j in i + 1..n {
            let mut angles: Vec<f64> = (0..720).map(|k| f64::from(k).to_radians() * 0.5).collect();
            for k in 0..x.ncols() {
                let angle = x[[j, k]].atan2(x[[i, k]]);
                angles.extend((0..4).map(|q| angle + f64::from(q) * std::f64::consts::FRAC_PI_2));
            }
            for angle in angles {
                let (s, c) = angle.sin_cos();
                for sign in [1.0, -1.0] {
                    let mut y = x.clone();
                    for k in 0..x.ncols() {
                        let (a, b) = (x[[i, k]], x[[j, k]]);
                        y[[i, k]] = c * a + s * b;
                        y[[j, k]] = sign * (c * b - s * a);
                    }
                    y.mapv_inplace(|v| if v.abs() < 1e-13 { 0.0 } else { v });
                    if problem.penalty.infeasibility(y.view()) > 1e-12 {
                        continue;
                    }
                    let value = problem.objective(y.view(), &threads);
                    gap = gap.max(base - value);
                }
            }
        }
    }
    gap
}

fn compare(penalty: &Penalty, x: &Array2<f64>, smooth: &Quadratic) {
    let signature = Signature::stiefel(x.nrows());
    let problem = Problem::new(smooth, penalty, &signature, x.ncols()).unwrap();
    let exact = certify(&problem, x.view(), &Threads::serial()).unwrap();
    let grid = brute_force(&problem, x);
    // The grid misses the minimum by its curvature times (half a step)².
    assert!(exact.block2_gap >= grid - 1e-11, "{} < {grid}", exact.block2_gap);
    assert!(exact.block2_gap <= grid + 1e-3, "{} > {grid}", exact.block2_gap);
    assert_eq!(exact.block2_pair.is_some(), exact.block2_gap > 0.0);
    let parallel = certify(&problem, x.view(), &Threads::new(Some(3)).unwrap()).unwrap();
    assert_eq!(exact, parallel);
}

#[test]
fn gap_agrees_with_a_grid() {
    for seed in 0..3 {
        let (n, r) = (12, 3);
        let smooth = quadratic(n, r, seed, seed % 2 == 0);
        compare(&Penalty::NONE, &start::random(n, r, seed), &smooth);
        compare(&Penalty::l1(0.3), &start::random(n, r, seed), &smooth);
        compare(&Penalty::l1(0.3), &sparse_point(n, r), &smooth);
        compare(&Penalty::l0(0.1), &start::random(n, r, seed), &smooth);
        compare(&Penalty::l0(0.1), &sparse_point(n, r), &smooth);
        compare(&Penalty::NONNEGATIVE, &sparse_point(n, r), &smooth);
        compare(&Penalty::NONNEGATIVE, &start::partition(n, r, seed), &smooth);
    }
}

/// Bounds on both sides around slopes that are not those of a weight.
#[test]
fn gaps_with_bounds_and_two_slopes_agree_with_a_grid() {
    let outside = [f64::INFINITY, 0.0, 0.0];
    let (n, r) = (6, 2);
    let smooth = quadratic(n, r, 4, true);
    for (left, right) in [(-2.0, 2.0), (0.5, 0.5), (-0.1, 0.8), (0.5, -0.5), (-0.6, -0.2)] {
        let pieces = vec![outside, [0.0, left, 0.0], [0.0, right, 0.0], outside];
        let penalty = Penalty::pieces(vec![-2.0, 0.0, 2.0], pieces).unwrap();
        for seed in 0..4 {
            compare(&penalty, &start::random(n, r, seed), &smooth);
        }
    }
}

/// The decrease of ½ Σ w_k b_kk by rotations and boosts of two columns, B ← VᵀBV, on a grid that is refined.
#[test]
fn trace_gaps_agree_with_a_grid() {
    for seed in 0..60 {
        let a = start::random(2, 2, seed) * 2.0;
        let skewed = array![[1.0, 0.3], [0.0, 0.5 + 0.01 * seed as f64]];
        let b = a.t().dot(&skewed.t().dot(&skewed)).dot(&a);
        let weights = [1.0 + (seed % 5) as f64, 1.0 + (seed % 3) as f64];
        for signs in [[1.0, 1.0], [1.0, -1.0]] {
            let gap = trace_gap(b.view(), &signs, &weights, &[0.0; 2]);
            let change = |t: f64| {
                let (c, s) = if signs[1] > 0.0 { (t.cos(), t.sin()) } else { (t.cosh(), t.sinh()) };
                let v = array![[c, s], [-signs[1] * s, c]];
                let turned = v.t().dot(&b).dot(&v);
                0.5 * (weights[0] * (turned[[0, 0]] - b[[0, 0]]) + weights[1] * (turned[[1, 1]] - b[[1, 1]]))
            };
            let (mut centre, mut width) = (0.0, 4.0);
            for _ in 0..12 {
                let at = |k: i32| centre + width * f64::from(k) / 200.0;
                let best = (-200..=200).map(at).min_by(|&s, &t| change(s).total_cmp(&change(t)));
                (centre, width) = (best.unwrap(), 0.02 * width);
            }
            assert!((gap.decrease + change(centre)).abs() < 1e-9, "{seed} {signs:?}");
            assert_eq!((gap.pairs, gap.pair.is_some()), (1, gap.decrease > 0.0));
        }
    }
    // An indefinite B is unbounded below along a boost, and constant where all weights are equal.
    let b = array![[1.0, 2.0], [2.0, 1.0]];
    let unbounded = trace_gap(b.view(), &[1.0, -1.0], &[1.0, 1.0], &[1.0; 2]);
    assert_eq!(unbounded.decrease, f64::INFINITY);
    let flat = trace_gap(b.view(), &[1.0, 1.0], &[2.0, 2.0], &[1.0; 2]);
    assert_eq!((flat.decrease, flat.pair), (0.0, None));
    // Three columns: all pairs are visited.
    let three = Array2::from_diag(&array![1.0, 2.0, 3.0]);
    let sorted = trace_gap(three.view(), &[1.0; 3], &[1.0, 2.0, 3.0], &[1.0; 3]);
    assert_eq!((sorted.pair, sorted.pairs), (Some((0, 2)), 3));
    assert!((sorted.decrease - 2.0).abs() < 1e-14);
}

/// The parts of a certificate against f, h, the distances and the gaps of rows and of columns.
#[test]
fn a_certificate_adds_up_its_parts() {
    let threads = Threads::serial();
    let (n, r) = (6, 3);
    let smooth = quadratic(n, r, 3, true);
    let penalty = Penalty::l1(0.3);
    let definite = Signature::stiefel(n);
    let problem = Problem::new(&smooth, &penalty, &definite, r).unwrap();
    let x = start::random(n, r, 8);
    let found = certify(&problem, x.view(), &threads).unwrap();
    let size: f64 = x.iter().map(|v| v.abs()).sum();
    assert!((found.penalty_value - 0.3 * size).abs() < 1e-12);
    assert_eq!(found.objective, found.smooth_value + found.penalty_value);
    assert!((found.objective - problem.objective(x.view(), &threads)).abs() < 1e-11);
    assert_eq!(found.pairs, (n * (n - 1) / 2) as u64);
    // dist(I, argmin)² is at most ‖V − I‖² ≤ 8 for orthogonal V of two rows.
    assert!((0.0..=8.0).contains(&found.block2_measure) && found.block2_measure > 0.0);
    assert!(found.stationarity.is_some() && !found.is_optimal(1.0));
    // At twice a point the columns are off by ‖4I − I‖, which is added to the distance from the domain.
    let outside = Problem::new(&smooth, &Penalty::NONNEGATIVE, &definite, r).unwrap();
    let twice = &x * 2.0;
    let apart = outside.penalty.infeasibility(twice.view());
    let far = certify_values(&outside, twice.view(), &threads).unwrap();
    assert!(apart > 0.1 && (far.feasibility - apart - 27f64.sqrt()).abs() < 1e-10);

    let signs = [1, 1, -1, 1, -1, -1];
    let mixed = Signature::new(&signs).unwrap();
    let a = start::random(n, n, 4);
    let positive = a.t().dot(&Array2::from_diag(&array![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).dot(&a);
    let smooth = Quadratic::new(0.5 * (&positive + &positive.t()), None, None).unwrap();
    for seed in 1..4 {
        let x = start::random_j_orthogonal(&mixed, 1.0, seed).unwrap();
        let problem = Problem::new(&smooth, &Penalty::NONE, &mixed, n).unwrap();
        let found = certify(&problem, x.view(), &threads).unwrap();
        let (rows, other) = (row_gap(&problem, x.view(), &threads), column_gap(&problem, &x, &threads).unwrap());
        assert_eq!(found.pairs, rows.pairs + other.pairs);
        assert_eq!(found.block2_gap, rows.decrease.max(other.decrease));
        assert_eq!(found.block2_columns, other.decrease > rows.decrease);
        let pair = if found.block2_columns { other.pair } else { rows.pair };
        assert_eq!(found.block2_pair, pair);
        assert!(found.stationarity.is_some() && found.feasibility < 1e-10);
    }
}

#[test]
fn a_point_is_optimal_up_to_a_tolerance_relative_to_f() {
    let smooth = quadratic(4, 2, 1, false);
    let signature = Signature::stiefel(4);
    let problem = Problem::new(&smooth, &Penalty::NONE, &signature, 2).unwrap();
    let x = start::random(4, 2, 1);
    let mut found = certify_values(&problem, x.view(), &Threads::serial()).unwrap();
    assert!(!found.is_optimal(1e9));
    (found.magnitude, found.objective, found.optimum) = (8.0, 3.0, Some(1.0));
    for (tolerance, optimal) in [(0.2, false), (0.25, true), (0.3, true)] {
        assert_eq!(found.is_optimal(tolerance), optimal);
    }
}

#[test]
fn criticality_of_smooth_problems_is_the_gradient_norm() {
    let (n, r) = (15, 4);
    let smooth = quadratic(n, r, 5, true);
    let x = start::random(n, r, 9);
    let gradient = smooth.gradient(x.view(), &Threads::serial());
    let product = x.t().dot(&gradient);
    let residual = &gradient - &x.dot(&((&product + &product.t()) * 0.5));
    let norm = residual.iter().map(|v| v * v).sum::<f64>().sqrt();
    let found = criticality(&Penalty::NONE, x.view(), gradient.view(), &Signature::stiefel(x.nrows()));
    assert!((found - norm).abs() < 1e-12 * norm);
}

/// Returns min over Ξ with `low` ≤ Ξ ≤ `high` of ‖P_T(∇f + Ξ)‖, by many projected gradient steps.
fn least_projection(x: &Array2<f64>, gradient: &Array2<f64>, (low, high): (&Array2<f64>, &Array2<f64>)) -> f64 {
    let mut xi = (low + high) * 0.5;
    let mut norm = 0.0;
    for _ in 0..200_000 {
        let g = gradient + &xi;
        let p = x.t().dot(&g);
        let rest = &g - &x.dot(&((&p + &p.t()) * 0.5));
        norm = rest.iter().map(|v| v * v).sum::<f64>().sqrt();
        ndarray::Zip::from(&mut xi)
            .and(&rest)
            .and(low)
            .and(high)
            .for_each(|xi, &t, &low, &high| *xi = (*xi - 0.9 * t).clamp(low, high));
    }
    norm
}

fn compare_criticality(penalty: &Penalty, seed: u64, slopes: impl Fn(f64) -> (f64, f64)) {
    let (n, r) = (10, 3);
    let smooth = quadratic(n, r, seed, true);
    let x = sparse_point(n, r);
    let gradient = smooth.gradient(x.view(), &Threads::serial());
    let (low, high) = (x.mapv(|v| slopes(v).0), x.mapv(|v| slopes(v).1));
    let norm = least_projection(&x, &gradient, (&low, &high));
    let signature = Signature::stiefel(n);
    let found = criticality(penalty, x.view(), gradient.view(), &signature);
    assert!((found - norm).abs() < 1e-7 * (1.0 + norm), "{found} {norm}");
}

/// Returns the slopes of λ|x|, at zero from −λ to λ.
fn absolute(lambda: f64, x: f64) -> (f64, f64) {
    match x {
        0.0 => (-lambda, lambda),
        _ => (lambda * x.signum(), lambda * x.signum()),
    }
}

#[test]
fn criticality_at_kinks_agrees_with_projected_gradient() {
    for (seed, lambda) in [(1, 0.2), (2, 1.0), (3, 5.0)] {
        compare_criticality(&Penalty::l1(lambda), seed, |x| absolute(lambda, x));
    }
}

#[test]
fn criticality_at_concave_kinks_agrees_with_projected_gradient() {
    for (seed, lambda) in [(1, 0.2), (2, 1.0), (3, 5.0)] {
        for threshold in [0.6, 0.8] {
            // The entries of the point are 0, 0.6 and 0.8.
            let capped = Penalty::capped_l1(lambda, threshold).unwrap();
            compare_criticality(&capped, seed, |x| match x {
                _ if x == threshold => (0.0, lambda),
                _ if x > threshold => (0.0, 0.0),
                _ => absolute(lambda, x),
            });
            // Smooth at its knot, where the slopes of both sides differ by rounding of either sign.
            let mcp = Penalty::mcp(lambda, threshold / lambda).unwrap();
            compare_criticality(&mcp, seed, |x| match x {
                0.0 => (-lambda, lambda),
                _ => [(lambda * (1.0 - x / threshold)).max(0.0); 2].into(),
            });
        }
    }
}

/// Newton's method takes few steps, of few conjugate gradients for the r(r + 1)/2 entries of Λ.
#[test]
fn criticality_takes_few_products() {
    let (n, r) = (10, 3);
    let signature = Signature::stiefel(n);
    for seed in 0..6 {
        let smooth = quadratic(n, r, seed, true);
        for x in [sparse_point(n, r), start::partition(n, r, seed)] {
            let gradient = smooth.gradient(x.view(), &Threads::serial());
            for lambda in [0.2, 1.0, 5.0] {
                let asked = AtomicUsize::new(0);
                let go_on = || asked.fetch_add(1, Ordering::Relaxed) < 10_000;
                let penalty = Penalty::l1(lambda);
                let (x, gradient) = (x.view(), gradient.view());
                let found = criticality_while(&penalty, x, gradient, &signature, &go_on);
                assert_eq!(found, criticality(&penalty, x, gradient, &signature));
                let products = asked.into_inner();
                assert!(products < 300, "{seed} {lambda} {products}");
            }
        }
    }
}

#[test]
fn subdifferentials_are_the_textbook_ones() {
    fn at(penalty: &Penalty, row: usize, column: usize, value: f64) -> (f64, f64) {
        penalty.subdifferential(row, column, value)
    }
    let all = (f64::NEG_INFINITY, f64::INFINITY);
    assert_eq!(at(&Penalty::l1(2.0), 0, 0, 0.0), (-2.0, 2.0));
    assert_eq!(at(&Penalty::l1(2.0), 0, 0, -0.3), (-2.0, -2.0));
    assert_eq!(at(&Penalty::l0(2.0), 0, 0, 0.0), all);
    assert_eq!(at(&Penalty::l0(2.0), 0, 0, 0.1), (0.0, 0.0));
    assert_eq!(at(&Penalty::l0(0.0), 0, 0, 0.0), (0.0, 0.0));
    assert_eq!(at(&Penalty::NONNEGATIVE, 0, 0, 0.0), (f64::NEG_INFINITY, 0.0));
    assert_eq!(at(&Penalty::NONNEGATIVE, 0, 0, 0.5), (0.0, 0.0));
    assert_eq!(at(&Penalty::NONE, 0, 0, 0.0), (0.0, 0.0));
}

#[test]
fn large_lambda_is_proved_only_when_true() {
    let (n, r) = (6, 2);
    let threads = Threads::serial();
    for seed in 0..20 {
        let a = start::random(n, n, seed);
        let smooth = Quadratic::new(-a.t().dot(&(&a * &array![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])), None, None);
        let Ok(smooth) = smooth else { continue };
        let signature = Signature::stiefel(n);
        for lambda in [0.2, 0.5, 1.0, 2.0, 4.0] {
            let l0 = Penalty::l0(lambda);
            let problem = Problem::new(&smooth, &l0, &signature, r).unwrap();
            if let Some((optimum, _)) = known_optimum(&problem, f64::INFINITY, &threads, &|| true) {
                for start in 0..30 {
                    let solution = crate::minimize(
                        &problem,
                        start::random(n, r, start),
                        &crate::Options::default(),
                        &threads,
                        &mut crate::Unwatched,
                    )
                    .unwrap();
                    assert!(solution.objective >= optimum - 1e-9);
                }
            }
        }
    }
    // Diagonal P: any λ > 0 will do.
    let smooth = Quadratic::new(Array2::from_diag(&array![-3.0, -5.0, -1.0]), None, None).unwrap();
    let signature = Signature::stiefel(3);
    let l0 = Penalty::l0(0.1);
    let problem = Problem::new(&smooth, &l0, &signature, 2).unwrap();
    let (optimum, _) = known_optimum(&problem, f64::INFINITY, &threads, &|| true).unwrap();
    assert!((optimum - (0.2 - 4.0)).abs() < 1e-12);
}

/// A certificate that ends early has the fields of the whole one, as far as they are finished.
#[test]
fn what_is_not_finished_is_left_out() {
    fn check(smooth: &dyn Objective, penalty: &Penalty, signs: &[i8], x: &Array2<f64>) {
        let (signature, threads) = (Signature::new(signs).unwrap(), Threads::serial());
        let problem = Problem::new(smooth, penalty, &signature, x.ncols()).unwrap();
        let whole = certify(&problem, x.view(), &threads).unwrap();
        let same = |found: f64, whole: f64| found.is_nan() || found == whole;
        let mut finished = 0;
        for questions in 0..4000 {
            let asked = AtomicUsize::new(0);
            let go_on = || asked.fetch_add(1, Ordering::Relaxed) < questions;
            let found = certify_while(&problem, x.view(), &threads, &go_on).unwrap();
            let values = |c: &Certificate| [c.objective, c.smooth_value, c.magnitude, c.feasibility];
            assert_eq!(values(&found), values(&whole));
            assert!(same(found.block2_gap, whole.block2_gap));
            assert!(same(found.block2_measure, whole.block2_measure));
            assert!(same(found.criticality, whole.criticality));
            assert!(found.optimum.is_none() || found.optimum == whole.optimum);
            assert!(found.block2_pair.is_none() || found.block2_pair == whole.block2_pair);
            assert!(!found.block2_gap.is_nan() || found.block2_pair.is_none());
            finished += usize::from(found == whole);
            if asked.into_inner() <= questions {
                break;
            }
            assert!(questions > 0 || found.block2_gap.is_nan() || whole.block2_gap.is_nan());
        }
        assert!(finished > 0 || whole.block2_gap.is_nan() || whole.block2_measure.is_nan());
    }
    let (n, r) = (70, 3);
    let smooth = quadratic(n, r, 1, false);
    let x = start::random(n, r, 2);
    for lambda in [0.01, 10.0] {
        check(&smooth, &Penalty::l0(lambda), &[1; 70], &x);
        check(&smooth, &Penalty::l1(lambda), &[1; 70], &x);
    }
    check(&smooth, &Penalty::NONNEGATIVE, &[1; 70], &start::partition(n, r, 3));
    check(&smooth, &Penalty::NONE, &[1; 70], &x);
    let signs: Vec<i8> = (0..20).map(|i| if i < 12 { 1 } else { -1 }).collect();
    let signature = Signature::new(&signs).unwrap();
    let mixed = start::random_j_orthogonal(&signature, 0.3, 4).unwrap();
    check(&quadratic(20, 20, 5, false), &Penalty::l1(0.1), &signs, &mixed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn zero_rows_are_proved(seed in 0u64..1000, zero in 0usize..6) {
        let (n, r) = (8 + zero, 2);
        let mut x = Array2::zeros((n, r));
        let core = start::random(8, r, seed);
        x.slice_mut(ndarray::s![..8, ..]).assign(&core);
        let smooth = quadratic(n, r, seed, false);
        let signature = Signature::stiefel(n);
        let problem = Problem::new(&smooth, &Penalty::NONE, &signature, r).unwrap();
        let certificate = certify(&problem, x.view(), &Threads::serial()).unwrap();
        prop_assert_eq!(certificate.proved_pairs, (zero * zero.saturating_sub(1) / 2) as u64);
        prop_assert_eq!(certificate.pairs, (n * (n - 1) / 2) as u64);
        prop_assert!(certificate.feasibility < 1e-14);
    }
}
