//! C X for a stored symmetric C and a tall, thin X: the one product of the full-gradient methods, by
//! panels of rows of C, between which the caller is asked whether to go on. Single precision halves
//! both the arithmetic and the traffic.

use faer::linalg::matmul::matmul;
use faer::traits::ComplexField;
use faer::{Accum, MatMut, MatRef, Par};
use ndarray::{Array2, ArrayView2};

use crate::objective::GoOn;

/// Rows of C per panel.
const PANEL: usize = 512;

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
}
