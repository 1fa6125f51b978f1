//! Tests of sweeps over pairs of columns.

use ndarray::{Array1, Array2, s};

use super::super::tests::{N, R, columns_of, dense, held, square, sweep_columns, symmetric, value};
use crate::linalg;

#[test]
fn columns_report_the_change_of_f_and_no_move_of_a_pair_is_better() {
    for (seed, lambda) in [(1, 0.0), (2, 0.0), (3, 0.4), (4, 0.4)] {
        let (c, linear, x) = (symmetric(seed, 6.0), dense(N, R, seed), dense(N, R, seed + 9));
        for signs in [[1, 1, 1], [1, -1, 1], [-1, 1, 1]] {
            for pair in [(0, 1), (0, 2), (1, 2)] {
                let mut block = columns_of(&x, &c, &signs);
                let outcome = sweep_columns(&mut block, &c, &linear, lambda, &[pair]);
                let new = held(&block).t().to_owned();
                let at = |x: &Array2<f64>| value(&c, &linear, lambda, x);
                let slack = 1e-11 * (1.0 + at(&x).abs() + at(&new).abs());
                assert!((at(&new) - at(&x) - outcome.change).abs() <= slack, "{seed} {signs:?}");
                assert_eq!((outcome.visited, outcome.updates), (1, 1));
                let gradient = c.dot(&new);
                for (k, column) in gradient.columns().into_iter().enumerate() {
                    let kept = Array1::from(block.gradient_row(k).to_vec());
                    assert!((&kept - &column).iter().all(|v| v.abs() < 1e-11));
                }
                // Every rotation, reflection or boost of the two columns.
                let (i, j) = pair;
                for step in -200..=200 {
                    let t = f64::from(step) * 0.015;
                    let (a, b, sign) =
                        if signs[i] == signs[j] { (t.cos(), t.sin(), -1.0) } else { (t.cosh(), t.sinh(), 1.0) };
                    for (first, second) in [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)] {
                        let mut other = x.clone();
                        let (u, v) = (x.column(i), x.column(j));
                        other.slice_mut(s![.., i]).assign(&(first * (a * &u + b * &v)));
                        other.slice_mut(s![.., j]).assign(&(second * (sign * b * &u + a * &v)));
                        assert!(at(&other) >= at(&new) - slack, "{seed} {signs:?} {pair:?} {t}");
                    }
                }
            }
        }
    }
}

#[test]
fn all_pairs_of_columns_are_counted() {
    let (c, linear, x) = (symmetric(1, 6.0), dense(N, R, 1), dense(N, R, 2));
    let mut block = columns_of(&x, &c, &[1, -1, 1]);
    let pairs = [(0, 1), (0, 2), (1, 2)];
    assert_eq!(sweep_columns(&mut block, &c, &linear, 0.1, &pairs).visited, 3);
}

/// Along the null space of a semidefinite C, where CX is rounding of either sign, f is bounded.
#[test]
fn rounding_of_a_null_space_is_not_unbounded() {
    let mut signs = [0, 0];
    for seed in 0..60 {
        let size = [1e-6, 1.0, 1e6][seed as usize % 3];
        let a = dense(N, 2, seed) * size;
        let c = a.dot(&a.t());
        // Twice, so that AᵀZ = 0 to rounding for the longest and the shortest Z.
        let q = linalg::orthonormal_factor(a.view());
        let mut null = dense(N, 1, seed + 1) * [1e-3, 1.0, 1e3][seed as usize / 3 % 3];
        for _ in 0..2 {
            null = &null - &q.dot(&q.t().dot(&null));
        }
        // x + y or x − y is that Z; the columns are as long as each other or not.
        let mut half = dense(N, 1, seed + 5);
        if seed % 2 == 0 {
            half = &half - &(&null * (linalg::inner(&null, &half) / square(&null)));
        }
        for sign in [1.0, -1.0] {
            let mut x = Array2::zeros((N, 2));
            x.column_mut(0).assign(&(0.5 * &null + &half).column(0));
            x.column_mut(1).assign(&(sign * (0.5 * &null - &half)).column(0));
            let mut block = columns_of(&x, &c, &[1, -1]);
            let product = c.dot(&null);
            signs[usize::from(linalg::inner(&null, &product) < 0.0)] += 1;
            sweep_columns(&mut block, &c, &Array2::zeros((N, 2)), 0.0, &[(0, 1)]);
            assert!(block.recession().is_none(), "{seed} {sign}");
        }
    }
    assert!(signs[0] > 10 && signs[1] > 10, "{signs:?}");
}
