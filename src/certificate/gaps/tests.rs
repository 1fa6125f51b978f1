//! Tests of the thresholds of gaps, and of gaps at points where they are known.

use ndarray::array;

use super::*;
use crate::certificate::certify;
use crate::objective::Quadratic;
use crate::penalty::Penalty;
use crate::start;

/// Returns the largest decrease by two columns of B with these diagonal entries and the coupling o.
fn decrease((bi, bk, o): (f64, f64, f64), signs: [f64; 2], weights: [f64; 2], noise: [f64; 2]) -> f64 {
    let b = array![[bi, o], [o, bk]];
    trace_gap(b.view(), &signs, &weights, &noise).decrease
}

/// A coupling counts as rounding up to an ulp of √(b_ii b_kk), or of the root of both noises.
#[test]
fn couplings_of_rounding_are_left_out() {
    let ulp = f64::EPSILON;
    for (diagonal, noise) in [
        ((4.0, 16.0), [0.25, 0.25]),
        ((-4.0, 16.0), [0.25, 0.25]),
        ((0.25, 0.25), [4.0, 16.0]),
        ((0.0, 0.0), [2.0, 32.0]),
    ] {
        for (size, rounding) in [(8.0, true), (4.5, true), (8.5, false), (16.0, false)] {
            for sign in [1.0, -1.0] {
                let b = (diagonal.0, diagonal.1, sign * size * ulp);
                // The heavier column has the smaller entry: only the coupling can lower the sum.
                let turned = decrease(b, [1.0, 1.0], [2.0, 1.0], noise);
                assert_eq!(turned > 0.0, !rounding, "{diagonal:?} {size}");
                let boosted = decrease(b, [1.0, -1.0], [1.0, 1.0], noise);
                assert!(diagonal.0 <= 0.25 || (boosted > 0.0) != rounding);
            }
        }
    }
}

/// Of equal diagonal entries a coupling counts even if its square underflows.
#[test]
fn small_couplings_count() {
    let found = decrease((0.0, 0.0, 1e-200), [1.0, 1.0], [2.0, 1.0], [0.0; 2]);
    assert_eq!(found, 0.5e-200);
}

/// Along a boost f is unbounded below if b_ii + b_kk < 2|b_ik| by more than rounding, and bounded otherwise.
#[test]
fn boosts_are_unbounded_beyond_a_tolerance() {
    let tolerance = RECESSION_TOLERANCE;
    for ((bi, bk), noise, size) in [
        ((1.0, 1.0), [0.0, 0.0], 4.0),
        ((-1.0, 3.0), [0.0, 0.0], 6.0),
        ((3.0, -1.0), [0.0, 0.0], 6.0),
        ((1.0, 1.0), [10.0, 30.0], 40.0),
        ((1.0, 1.0), [30.0, 10.0], 40.0),
    ] {
        for sign in [1.0, -1.0] {
            for (part, unbounded) in [(0.0, false), (0.9, false), (1.1, true)] {
                let o = sign * 0.5 * (bi + bk + part * tolerance * size);
                let found = decrease((bi, bk, o), [1.0, -1.0], [1.0, 2.0], noise);
                assert_eq!(found == f64::INFINITY, unbounded, "{bi} {bk} {noise:?} {part}");
                // At the limit the decrease is ¼ w h²/d with h = d.
                assert!(unbounded || (found - 0.75 * (bi + bk)).abs() < 1e-3);
            }
        }
    }
    // Exactly at the tolerance f counts as bounded.
    let o = tolerance * 32.0;
    for sign in [1.0, -1.0] {
        let found = decrease((o, 0.0, sign * o), [1.0, -1.0], [1.0, 2.0], [16.0; 2]);
        assert!(found > 0.0 && found.is_finite());
    }
    // Weights that cancel leave f constant along the boost.
    assert_eq!(decrease((1.0, 1.0, 3.0), [1.0, -1.0], [1.0, -1.0], [1.0; 2]), 0.0);
    // Without a coupling no boost lowers f.
    assert_eq!(decrease((1.0, -3.0, 0.0), [1.0, -1.0], [1.0, 1.0], [1.0; 2]), 0.0);
}

/// All pairs of columns are solved, in more than one part.
#[test]
fn every_pair_of_columns_is_visited() {
    let n = 13;
    let signs: Vec<i8> = (0..n).map(|i| if i < 7 { 1 } else { -1 }).collect();
    let signature = Signature::new(&signs).unwrap();
    let a = start::random(n, n, 2);
    let c = &a.dot(&a.t()) + &Array2::<f64>::eye(n);
    let smooth = Quadratic::new(0.5 * (&c + &c.t()), None, None).unwrap();
    let x = start::random_j_orthogonal(&signature, 0.3, 1).unwrap();
    for penalty in [Penalty::NONE, Penalty::l1(0.1)] {
        let problem = Problem::new(&smooth, &penalty, &signature, n).unwrap();
        let gap = column_gap(&problem, &x, &Threads::serial()).unwrap();
        assert_eq!(gap.pairs, (n * (n - 1) / 2) as u64);
        assert!(gap.decrease > 0.0 && gap.pair.is_some());
        let rows = row_gap(&problem, x.view(), &Threads::serial());
        assert_eq!(rows.pairs, (n * (n - 1) / 2) as u64);
        // A point of another shape has no gap.
        let wrong = x.slice(ndarray::s![.., ..4]).to_owned();
        assert!(row_gap(&problem, wrong.view(), &Threads::serial()).decrease.is_nan());
        assert!(column_gap(&problem, &wrong, &Threads::serial()).is_none());
    }
}

/// At the identity no pair lowers ½⟨X, CX⟩ for a diagonal C > 0 whose entries ascend with J.
#[test]
fn a_point_without_gap_names_no_pair() {
    let signature = Signature::new(&[1, 1, -1, -1]).unwrap();
    let smooth = Quadratic::new(Array2::from_diag(&array![1.0, 2.0, 3.0, 4.0]), None, None).unwrap();
    let problem = Problem::new(&smooth, &Penalty::NONE, &signature, 4).unwrap();
    let found = certify(&problem, Array2::eye(4).view(), &Threads::serial()).unwrap();
    assert_eq!((found.block2_gap, found.block2_pair, found.block2_columns), (0.0, None, false));
    assert_eq!((found.feasibility, found.stationarity), (0.0, Some(0.0)));
}

/// Square X is compared with XᵀJX = J; fewer columns with the nearest diagonal of signs.
#[test]
fn feasibility_is_the_distance_from_the_constraint() {
    let signature = Signature::new(&[1, 1, -1]).unwrap();
    let smooth = Quadratic::new(Array2::eye(3), None, None).unwrap();
    let feasibility = |x: &Array2<f64>| {
        let problem = Problem::new(&smooth, &Penalty::NONE, &signature, x.ncols()).unwrap();
        let found = certify(&problem, x.view(), &Threads::serial()).unwrap();
        (found.feasibility, found.stationarity.is_some())
    };
    let swapped = array![[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]];
    assert_eq!(feasibility(&Array2::eye(3)), (0.0, true));
    assert!((feasibility(&swapped).0 - 8f64.sqrt()).abs() < 1e-15);
    let two = swapped.slice(ndarray::s![.., ..2]).to_owned();
    assert_eq!(feasibility(&two), (0.0, false));
}

/// The residual is ‖G − J X Gᵀ X K‖ with K = XᵀJX.
#[test]
fn stationarity_is_the_residual_of_its_condition() {
    for signs in [[1, 1, -1, -1], [1, -1, 1, 1], [1; 4], [-1; 4]] {
        let signature = Signature::new(&signs).unwrap();
        let columns = if signature.is_definite() { 2..=4 } else { 4..=4 };
        for r in columns {
            let x = if signature.is_definite() {
                start::random(4, r, 3)
            } else {
                start::random_j_orthogonal(&signature, 0.5, 3).unwrap()
            };
            let (g, j) = (start::random(4, r, 7), signature.matrix());
            let k = x.t().dot(&j).dot(&x);
            let rest = &g - &j.dot(&x).dot(&g.t()).dot(&x).dot(&k);
            let norm = crate::linalg::square(&rest).sqrt();
            let found = stationarity(x.view(), g.view(), &signature);
            assert!(norm > 0.1 && (found - norm).abs() < 1e-12 * norm, "{signs:?} {r}");
        }
    }
}
