//! C X for a stored symmetric C and a tall, thin X: the one product of the full-gradient methods.
//!
//! A general matrix product is not made for r ≈ 20 columns. Here X is packed into groups of at most
//! three vectors per row, and blocks of rows of C are multiplied with a whole group held in
//! registers: one load of X per block of rows and column, C read once, in order.

use ndarray::{Array2, ArrayView2};
use pulp::{Arch, Simd, WithSimd};

/// Columns of C per pass: the packed part of X stays in the first-level cache.
const DEPTH: usize = 192;

/// Vectors per group.
const GROUP: usize = 3;

struct Product<'a> {
    c: &'a [f64],
    x: ArrayView2<'a, f64>,
    y: &'a mut Array2<f64>,
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (n, r) = self.x.dim();
        let lanes = S::F64_LANES;
        let mut from = 0;
        while from < r {
            let vectors = (r - from).div_ceil(lanes).min(GROUP);
            let columns = (vectors * lanes).min(r - from);
            match vectors {
                1 => group::<S, 1>(simd, self.c, self.x, self.y, n, from, columns),
                2 => group::<S, 2>(simd, self.c, self.x, self.y, n, from, columns),
                _ => group::<S, 3>(simd, self.c, self.x, self.y, n, from, columns),
            }
            from += columns;
        }
    }
}

/// Columns `from..from + columns` of C X.
#[inline(always)]
fn group<S: Simd, const V: usize>(
    simd: S,
    c: &[f64],
    x: ArrayView2<'_, f64>,
    y: &mut Array2<f64>,
    n: usize,
    from: usize,
    columns: usize,
) {
    let lanes = S::F64_LANES;
    let width = V * lanes;
    let mut packed = vec![0.0; n * width];
    for (target, row) in packed.chunks_exact_mut(width).zip(x.outer_iter()) {
        for (t, &v) in target.iter_mut().zip(row.iter().skip(from).take(columns)) {
            *t = v;
        }
    }
    let mut result = vec![0.0; n * width];
    for start in (0..n).step_by(DEPTH) {
        let depth = DEPTH.min(n - start);
        let part = &packed[start * width..(start + depth) * width];
        let mut i = 0;
        while i < n {
            if i + 8 <= n && S::REGISTER_COUNT >= 32 {
                rows::<S, V, 8>(
                    simd,
                    &c[i * n + start..],
                    n,
                    part,
                    &mut result[i * width..(i + 8) * width],
                );
                i += 8;
            } else if i + 4 <= n {
                rows::<S, V, 4>(
                    simd,
                    &c[i * n + start..],
                    n,
                    part,
                    &mut result[i * width..(i + 4) * width],
                );
                i += 4;
            } else {
                rows::<S, V, 1>(
                    simd,
                    &c[i * n + start..],
                    n,
                    part,
                    &mut result[i * width..(i + 1) * width],
                );
                i += 1;
            }
        }
    }
    for (source, mut row) in result.chunks_exact(width).zip(y.outer_iter_mut()) {
        for (t, &v) in row.iter_mut().skip(from).take(columns).zip(source) {
            *t = v;
        }
    }
}

/// Adds R rows of C times the packed part of X.
#[inline(always)]
fn rows<S: Simd, const V: usize, const R: usize>(
    simd: S,
    c: &[f64],
    stride: usize,
    part: &[f64],
    result: &mut [f64],
) {
    let width = V * S::F64_LANES;
    let depth = part.len() / width;
    let lines: [&[f64]; R] = std::array::from_fn(|k| &c[k * stride..k * stride + depth]);
    let mut sums = [[simd.splat_f64s(0.0); V]; R];
    let (x, _) = S::as_simd_f64s(part);
    for (j, x) in x.chunks_exact(V).enumerate() {
        for k in 0..R {
            let factor = simd.splat_f64s(lines[k][j]);
            for v in 0..V {
                sums[k][v] = simd.mul_add_e_f64s(factor, x[v], sums[k][v]);
            }
        }
    }
    let (result, _) = S::as_mut_simd_f64s(result);
    for k in 0..R {
        for v in 0..V {
            result[k * V + v] = simd.add_f64s(result[k * V + v], sums[k][v]);
        }
    }
}

/// C X; none if C is not contiguous.
pub(super) fn symmetric_product(
    c: ArrayView2<'_, f64>,
    x: ArrayView2<'_, f64>,
) -> Option<Array2<f64>> {
    let mut y = Array2::zeros(x.dim());
    let c = c.to_slice()?;
    Arch::new().dispatch(Product { c, x, y: &mut y });
    Some(y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start;

    #[test]
    fn agrees_with_the_general_product() {
        for (n, r) in [(2, 1), (7, 3), (33, 8), (61, 20), (205, 50)] {
            let q = start::random(n, n, 1);
            let c = &q + &q.t();
            let x = start::random(n, r, 2);
            let fast = symmetric_product(c.view(), x.view()).unwrap();
            assert!(
                (&fast - &c.dot(&x)).iter().all(|v| v.abs() < 1e-13),
                "{n} {r}"
            );
        }
    }
}
