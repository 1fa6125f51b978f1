//! Tests of the step for all rows with column Gram matrices of any inertia.

use ndarray::{Array2, array};

use super::super::tests::{N, R, dense, held, nuclear, rows_of, symmetric};
use super::*;
use crate::block::Pairs;
use crate::pair::Scratch;
use crate::penalty::Penalty;

/// With C = αI the step of the exact curvature is the minimum for rows of any size and rank.
#[test]
fn a_multiple_of_the_identity_is_solved_for_dependent_rows() {
    let rows: Vec<usize> = (0..N).collect();
    for seed in 0..12 {
        let size = [1e-4, 1.0, 1e4][seed as usize % 3];
        let unit = [1e-30, 1.0, 1e30][seed as usize / 3 % 3];
        let (c, linear) = (Array2::eye(N) * (3.0 * unit), dense(N, R, seed) * unit);
        let mut x = dense(N, R, seed + 3) * size;
        if seed % 2 == 0 {
            let column = x.column(0).to_owned();
            x.column_mut(1).assign(&(-2.0 * &column));
        }
        let mut block = rows_of(&rows, &x, &c, &linear, &[1; N]);
        let outcome = block.turn_all(PairOptions::default());
        let product = linear.dot(&x.t());
        let decrease = nuclear(&product) + product.diag().sum();
        assert!((outcome.change + decrease).abs() < 1e-6 * decrease, "{seed}");
    }
}

/// A column metric with negative eigenvalues: f falls by every step, too.
#[test]
fn an_indefinite_metric_is_bounded_from_above() {
    let rows: Vec<usize> = (0..N).collect();
    let metric = Array2::from_diag(&array![2.0, -3.0, 0.5]);
    for seed in 0..24 {
        let (c, linear) = (symmetric(seed, 6.0), dense(N, R, seed));
        let x = dense(N, R, seed + 3);
        let at = |x: &Array2<f64>| 0.5 * (x * &c.dot(x).dot(&metric)).sum() + (&linear * x).sum();
        let mut block = rows_of(&rows, &x, &c, &linear, &[1; N]);
        let gradient = c.dot(&x).dot(&metric) + &linear;
        for (k, row) in gradient.outer_iter().enumerate() {
            block.gradient_row_mut(k).copy_from_slice(row.to_slice().unwrap());
        }
        let options = PairOptions { metric: Some(metric.view()), ..PairOptions::default() };
        let outcome = block.turn_all(options);
        assert_eq!(outcome.updates, 1, "{seed}");
        let fall = at(&held(&block)) - at(&x);
        assert!(fall < 0.0 && (fall - outcome.change).abs() < 1e-10, "{seed}");
        // The pairs of the new rows move as well.
        let scratch = &mut Scratch::new(R);
        let swept = block.sweep(Pairs::All, &Penalty::NONE, options, scratch);
        assert!(swept.updates > 0, "{seed}");
    }
}
