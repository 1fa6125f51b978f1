//! C X for a tall, thin X, with a stored symmetric C or with a dense A of few rows, C = s·AᵀA.
//!
//! The full-gradient methods use these products. They run by panels of rows of C or Aᵀ and ask between panels
//! whether to go on. Single precision halves arithmetic and memory traffic.

use faer::linalg::matmul::matmul;
use faer::traits::ComplexField;
use faer::{Accum, MatMut, MatRef, Par};
use ndarray::{Array2, ArrayView2};

use crate::objective::GoOn;
use crate::threads::Threads;

/// Rows of C or Aᵀ per panel.
const PANEL: usize = 512;

/// If less than one in `FEW` rows of X is nonzero, only these rows are multiplied.
const FEW: usize = 4;

/// Number of partial sums of A X, independent of the number of threads.
const PARTS: usize = 8;

/// Type of the entries: f64, or f32 for half the memory traffic.
pub(super) trait Scalar: ComplexField + Copy + Into<f64> + Send + Sync {}

impl<T: ComplexField + Copy + Into<f64> + Send + Sync> Scalar for T {}

/// Computes Y = A X for A (n×m) by rows and X m×r; panels after a negative `go_on` are skipped.
fn rows_times<T: Scalar>(a: &[T], x: MatRef<'_, T>, y: &mut [T], one: T, threads: &Threads, go_on: GoOn<'_>) {
    let (m, r) = x.shape();
    threads.for_chunks(y, PANEL * r, a.len() * r, |panel, y| {
        if go_on() {
            let rows = y.len() / r;
            let a = &a[panel * PANEL * m..][..rows * m];
            let a = MatRef::from_row_major_slice(a, rows, m);
            let y = MatMut::from_row_major_slice_mut(y, rows, r);
            matmul(y, Accum::Replace, a, x, one, Par::Seq);
        }
    });
}

/// Returns C X for C (n×n) by rows, in the number type of `of`; None if `go_on` returns false.
pub(super) fn symmetric_product<T: Scalar>(
    c: &[T],
    x: ArrayView2<'_, f64>,
    of: impl Fn(f64) -> T,
    threads: &Threads,
    go_on: GoOn<'_>,
) -> Option<Array2<f64>> {
    let (n, r) = x.dim();
    let x: Vec<T> = x.iter().map(|&v| of(v)).collect();
    let x = MatRef::from_row_major_slice(&x, n, r);
    let mut y = vec![of(0.0); n * r];
    rows_times(c, x, &mut y, of(1.0), threads, go_on);
    let y = y.into_iter().map(Into::into).collect();
    Array2::from_shape_vec((n, r), y).ok().filter(|_| go_on())
}

/// Returns AᵀA X for Aᵀ (n×m) by rows, in the number type of `of`; None if `go_on` returns false.
pub(super) fn factored_product<T: Scalar>(
    at: &[T],
    x: ArrayView2<'_, f64>,
    of: impl Fn(f64) -> T,
    threads: &Threads,
    go_on: GoOn<'_>,
) -> Option<Array2<f64>> {
    let ((n, r), one) = (x.dim(), of(1.0));
    let m = at.len() / n;
    let nonzero = |&i: &usize| x.row(i).iter().any(|&v| v != 0.0);
    let rows: Vec<usize> = (0..n).filter(nonzero).collect();
    let few = FEW * rows.len() < n;
    let mut y: Vec<T> = x.iter().map(|&v| of(v)).collect();
    // A X, panel by panel.
    let count = if few { rows.len() } else { n };
    let panels = count.div_ceil(PANEL);
    let each = panels.div_ceil(PARTS).max(1);
    let mut w = vec![of(0.0); panels.div_ceil(each).max(1) * m * r];
    let add = |at: &[T], x: &[T], w: &mut [T]| {
        let rows = x.len() / r;
        let at = MatRef::from_row_major_slice(at, rows, m);
        let x = MatRef::from_row_major_slice(x, rows, r);
        let w = MatMut::from_row_major_slice_mut(w, m, r);
        matmul(w, Accum::Add, at.transpose(), x, one, Par::Seq);
    };
    let gathered = |a: &[T], width: usize, rows: &[usize]| -> Vec<T> {
        let entries = rows.iter().flat_map(|&i| &a[i * width..][..width]);
        entries.copied().collect()
    };
    threads.for_chunks(&mut w, m * r, count * m * r, |part, w| {
        for panel in (part * each..panels.min((part + 1) * each)).take_while(|_| go_on()) {
            let range = panel * PANEL..((panel + 1) * PANEL).min(count);
            if few {
                let rows = &rows[range];
                add(&gathered(at, m, rows), &gathered(&y, r, rows), w);
            } else {
                let (start, end) = (range.start, range.end);
                add(&at[start * m..end * m], &y[start * r..end * r], w);
            }
        }
    });
    let (whole, parts) = w.split_at_mut(m * r);
    for part in parts.chunks(m * r) {
        (whole.iter_mut().zip(part)).for_each(|(w, part)| *w += *part);
    }
    let w = MatRef::from_row_major_slice(whole, m, r);
    rows_times(at, w, &mut y, one, threads, go_on);
    let y = y.into_iter().map(Into::into).collect();
    Array2::from_shape_vec((n, r), y).ok().filter(|_| go_on())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start;

    #[test]
    fn agrees_with_the_general_product() {
        let one = Threads::serial();
        for (n, r) in [(2, 1), (7, 3), (33, 8), (61, 20), (205, 50), (1100, 3)] {
            let q = start::random(n, n, 1);
            let c = &q + &q.t();
            let x = start::random(n, r, 2);
            let exact = c.dot(&x);
            let c = c.as_standard_layout();
            let fast = symmetric_product(c.as_slice().unwrap(), x.view(), |v| v, &one, &|| true).unwrap();
            assert!((&fast - &exact).iter().all(|v| v.abs() < 1e-13), "{n} {r}");
            let single: Vec<f32> = c.iter().map(|&v| v as f32).collect();
            let rough = symmetric_product(&single, x.view(), |v| v as f32, &one, &|| true).unwrap();
            let error = (&rough - &exact).iter().fold(0f64, |m, v| m.max(v.abs()));
            assert!(error > 1e-13 && error < 1e-5, "{n} {r} {error:e}");
            assert!(symmetric_product(&single, x.view(), |v| v as f32, &one, &|| false).is_none());
        }
    }

    #[test]
    fn a_factor_gives_the_product_of_its_matrix() {
        let one = Threads::serial();
        for (n, m, r) in [(1, 1, 1), (7, 3, 3), (205, 61, 50), (1100, 5, 3)] {
            let at = Array2::from_shape_fn((n, m), |(i, j)| ((3 * i + 7 * j) as f64).sin());
            let mut x = start::random(n, r.min(n), 2);
            for zeros in [false, true] {
                if zeros {
                    // Few rows remain.
                    let others = (0..n).filter(|i| i % 9 > 0);
                    others.for_each(|i| x.row_mut(i).fill(0.0));
                }
                let exact = at.dot(&at.t().dot(&x));
                let size = exact.iter().fold(1.0f64, |m, v| m.max(v.abs()));
                let error = |y: &Array2<f64>| (y - &exact).iter().fold(0f64, |m, v| m.max(v.abs())) / size;
                let slice = at.as_slice().unwrap();
                let fast = factored_product(slice, x.view(), |v| v, &one, &|| true).unwrap();
                assert!(error(&fast) < 1e-13, "{n} {m} {r}");
                let single: Vec<f32> = at.iter().map(|&v| v as f32).collect();
                let rough = factored_product(&single, x.view(), |v| v as f32, &one, &|| true).unwrap();
                assert!(error(&rough) < 1e-4, "{n} {m} {r}");
                assert!(factored_product(&single, x.view(), |v| v as f32, &one, &|| false).is_none());
            }
        }
    }

    #[test]
    fn products_are_the_same_on_any_number_of_threads() {
        let (n, m, r) = (5000, 60, 8);
        let (one, three) = (Threads::serial(), Threads::new(Some(3)).unwrap());
        let at: Vec<f64> = (0..n * m).map(|i| (i as f64).sin()).collect();
        let mut x = start::random(n, r, 1);
        for zeros in [false, true] {
            if zeros {
                (0..n).filter(|i| i % 5 > 0).for_each(|i| x.row_mut(i).fill(0.0));
            }
            let product = |threads| factored_product(&at, x.view(), |v| v, threads, &|| true);
            assert!(product(&one).is_some());
            assert_eq!(product(&one), product(&three), "{zeros}");
        }
        let n = 1100;
        let x = start::random(n, r, 1);
        let c: Vec<f32> = (0..n * n).map(|i| (i as f32).cos()).collect();
        let product = |threads| symmetric_product(&c, x.view(), |v| v as f32, threads, &|| true);
        assert!(product(&one).is_some());
        assert_eq!(product(&one), product(&three));
    }
}
