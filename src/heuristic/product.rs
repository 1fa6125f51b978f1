//! C X for a tall, thin X, with a stored symmetric C or with a dense A of few rows, C = s·AᵀA: the products of the
//! full-gradient methods, by panels of rows of C or Aᵀ, between which the caller is asked whether to go on. Single
//! precision halves both the arithmetic and the traffic.

use faer::linalg::matmul::matmul;
use faer::traits::ComplexField;
use faer::{Accum, MatMut, MatRef, Par};
use ndarray::{Array2, ArrayView2};

use crate::objective::GoOn;

/// Rows of C or Aᵀ per panel.
const PANEL: usize = 512;

/// X of fewer nonzero rows than this part of all is multiplied by these alone.
const FEW: usize = 4;

/// C X for C (n×n) by rows, computed with numbers that `of` makes; None if `go_on` says no on the way.
pub(super) fn symmetric_product<T: ComplexField + Copy + Into<f64>>(
    c: &[T],
    x: ArrayView2<'_, f64>,
    of: impl Fn(f64) -> T,
    go_on: GoOn<'_>,
) -> Option<Array2<f64>> {
    let (n, r) = x.dim();
    let x: Vec<T> = x.iter().map(|&v| of(v)).collect();
    let x = MatRef::from_row_major_slice(&x, n, r);
    let mut y = vec![of(0.0); n * r];
    for (c, y) in c.chunks(PANEL * n).zip(y.chunks_mut(PANEL * r)) {
        if !go_on() {
            return None;
        }
        let rows = c.len() / n;
        let c = MatRef::from_row_major_slice(c, rows, n);
        let y = MatMut::from_row_major_slice_mut(y, rows, r);
        matmul(y, Accum::Replace, c, x, of(1.0), Par::Seq);
    }
    Array2::from_shape_vec((n, r), y.into_iter().map(Into::into).collect()).ok()
}

/// AᵀA X for Aᵀ (n×m) by rows, computed with numbers that `of` makes; None if `go_on` says no on the way.
pub(super) fn factored_product<T: ComplexField + Copy + Into<f64>>(
    at: &[T],
    x: ArrayView2<'_, f64>,
    of: impl Fn(f64) -> T,
    go_on: GoOn<'_>,
) -> Option<Array2<f64>> {
    let (n, r) = x.dim();
    let m = at.len() / n;
    let mut y: Vec<T> = x.iter().map(|&v| of(v)).collect();
    let mut w = vec![of(0.0); m * r];
    let mut add = |at: &[T], x: &[T]| {
        let rows = x.len() / r;
        let at = MatRef::from_row_major_slice(at, rows, m);
        let x = MatRef::from_row_major_slice(x, rows, r);
        let w = MatMut::from_row_major_slice_mut(&mut w, m, r);
        matmul(w, Accum::Add, at.transpose(), x, of(1.0), Par::Seq);
    };
    let nonzero = |&i: &usize| x.row(i).iter().any(|&v| v != 0.0);
    let rows: Vec<usize> = (0..n).filter(nonzero).collect();
    if FEW * rows.len() < n {
        for rows in rows.chunks(PANEL) {
            if !go_on() {
                return None;
            }
            let at: Vec<T> = (rows.iter())
                .flat_map(|&i| &at[i * m..(i + 1) * m])
                .copied()
                .collect();
            let x: Vec<T> = (rows.iter())
                .flat_map(|&i| &y[i * r..(i + 1) * r])
                .copied()
                .collect();
            add(&at, &x);
        }
    } else {
        for (at, x) in at.chunks(PANEL * m).zip(y.chunks(PANEL * r)) {
            if !go_on() {
                return None;
            }
            add(at, x);
        }
    }
    let w = MatRef::from_row_major_slice(&w, m, r);
    for (at, y) in at.chunks(PANEL * m).zip(y.chunks_mut(PANEL * r)) {
        if !go_on() {
            return None;
        }
        let rows = at.len() / m;
        let at = MatRef::from_row_major_slice(at, rows, m);
        let y = MatMut::from_row_major_slice_mut(y, rows, r);
        matmul(y, Accum::Replace, at, w, of(1.0), Par::Seq);
    }
    Array2::from_shape_vec((n, r), y.into_iter().map(Into::into).collect()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start;

    #[test]
    fn agrees_with_the_general_product() {
        for (n, r) in [(2, 1), (7, 3), (33, 8), (61, 20), (205, 50), (1100, 3)] {
            let q = start::random(n, n, 1);
            let c = &q + &q.t();
            let x = start::random(n, r, 2);
            let exact = c.dot(&x);
            let c = c.as_standard_layout();
            let fast = symmetric_product(c.as_slice().unwrap(), x.view(), |v| v, &|| true).unwrap();
            assert!((&fast - &exact).iter().all(|v| v.abs() < 1e-13), "{n} {r}");
            let single: Vec<f32> = c.iter().map(|&v| v as f32).collect();
            let rough = symmetric_product(&single, x.view(), |v| v as f32, &|| true).unwrap();
            let error = (&rough - &exact).iter().fold(0f64, |m, v| m.max(v.abs()));
            assert!(error > 1e-13 && error < 1e-5, "{n} {r} {error:e}");
            assert!(symmetric_product(&single, x.view(), |v| v as f32, &|| false).is_none());
        }
    }

    #[test]
    fn a_factor_gives_the_product_of_its_matrix() {
        for (n, m, r) in [(1, 1, 1), (7, 3, 3), (205, 61, 50), (1100, 5, 3)] {
            let at = Array2::from_shape_fn((n, m), |(i, j)| ((3 * i + 7 * j) as f64).sin());
            let mut x = start::random(n, r.min(n), 2);
            for zeros in [false, true] {
                if zeros {
                    // Few rows are left.
                    let others = (0..n).filter(|i| i % 9 > 0);
                    others.for_each(|i| x.row_mut(i).fill(0.0));
                }
                let exact = at.dot(&at.t().dot(&x));
                let size = exact.iter().fold(1.0f64, |m, v| m.max(v.abs()));
                let error =
                    |y: &Array2<f64>| (y - &exact).iter().fold(0f64, |m, v| m.max(v.abs())) / size;
                let slice = at.as_slice().unwrap();
                let fast = factored_product(slice, x.view(), |v| v, &|| true).unwrap();
                assert!(error(&fast) < 1e-13, "{n} {m} {r}");
                let single: Vec<f32> = at.iter().map(|&v| v as f32).collect();
                let rough = factored_product(&single, x.view(), |v| v as f32, &|| true).unwrap();
                assert!(error(&rough) < 1e-4, "{n} {m} {r}");
                assert!(factored_product(&single, x.view(), |v| v as f32, &|| false).is_none());
            }
        }
    }
}
