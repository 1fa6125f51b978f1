//! C X for a stored symmetric C and a tall, thin X: the one product of the full-gradient methods.
//!
//! A general matrix product is not made for r ≈ 20 columns. Here X is packed into groups of at most
//! three vectors per row, and blocks of rows of C are multiplied with a whole group held in
//! registers: one load of X per block of rows and column, C read once, in order. Single precision
//! halves both the arithmetic and the traffic.

use ndarray::{Array2, ArrayView2};
use pulp::{Simd, WithSimd};

use crate::objective::GoOn;

/// Columns of C per pass: the packed part of X stays in the first-level cache.
const DEPTH: usize = 192;

/// Vectors per group.
const GROUP: usize = 3;

/// A number that `pulp` has vectors of.
pub(super) trait Element: Copy + Default + 'static {
    type Vector<S: Simd>: Copy;

    fn of(value: f64) -> Self;
    fn to(self) -> f64;
    fn lanes<S: Simd>() -> usize;
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;
    /// a·b + c, rounded once or twice.
    fn mul_add<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;
    fn add<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn vectors<S: Simd>(slice: &[Self]) -> &[Self::Vector<S>];
    fn vectors_mut<S: Simd>(slice: &mut [Self]) -> &mut [Self::Vector<S>];
}

macro_rules! element {
    ($t:ty, $vector:ident, $lanes:ident, $splat:ident, $mul_add:ident, $add:ident, $view:ident, $view_mut:ident) => {
        impl Element for $t {
            type Vector<S: Simd> = S::$vector;

            #[inline(always)]
            fn of(value: f64) -> Self {
                value as $t
            }
            #[inline(always)]
            fn to(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn lanes<S: Simd>() -> usize {
                S::$lanes
            }
            #[inline(always)]
            fn splat<S: Simd>(simd: S, value: Self) -> S::$vector {
                simd.$splat(value)
            }
            #[inline(always)]
            fn mul_add<S: Simd>(
                simd: S,
                a: S::$vector,
                b: S::$vector,
                c: S::$vector,
            ) -> S::$vector {
                simd.$mul_add(a, b, c)
            }
            #[inline(always)]
            fn add<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$add(a, b)
            }
            #[inline(always)]
            fn vectors<S: Simd>(slice: &[Self]) -> &[S::$vector] {
                S::$view(slice).0
            }
            #[inline(always)]
            fn vectors_mut<S: Simd>(slice: &mut [Self]) -> &mut [S::$vector] {
                S::$view_mut(slice).0
            }
        }
    };
}

element!(
    f64,
    f64s,
    F64_LANES,
    splat_f64s,
    mul_add_e_f64s,
    add_f64s,
    as_simd_f64s,
    as_mut_simd_f64s
);
element!(
    f32,
    f32s,
    F32_LANES,
    splat_f32s,
    mul_add_e_f32s,
    add_f32s,
    as_simd_f32s,
    as_mut_simd_f32s
);

struct Product<'a, E> {
    go_on: GoOn<'a>,
    c: &'a [E],
    x: ArrayView2<'a, f64>,
    y: &'a mut Array2<f64>,
}

impl<E: Element> WithSimd for Product<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (n, r) = self.x.dim();
        let lanes = E::lanes::<S>();
        let mut from = 0;
        while from < r {
            let vectors = (r - from).div_ceil(lanes).min(GROUP);
            let columns = (vectors * lanes).min(r - from);
            match vectors {
                1 => group::<S, E, 1>(simd, self.go_on, self.c, self.x, self.y, n, from, columns),
                2 => group::<S, E, 2>(simd, self.go_on, self.c, self.x, self.y, n, from, columns),
                _ => group::<S, E, 3>(simd, self.go_on, self.c, self.x, self.y, n, from, columns),
            }
            from += columns;
        }
    }
}

/// Columns `from..from + columns` of C X.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn group<S: Simd, E: Element, const V: usize>(
    simd: S,
    go_on: GoOn<'_>,
    c: &[E],
    x: ArrayView2<'_, f64>,
    y: &mut Array2<f64>,
    n: usize,
    from: usize,
    columns: usize,
) {
    let lanes = E::lanes::<S>();
    let width = V * lanes;
    let mut packed = vec![E::default(); n * width];
    for (target, row) in packed.chunks_exact_mut(width).zip(x.outer_iter()) {
        for (t, &v) in target.iter_mut().zip(row.iter().skip(from).take(columns)) {
            *t = E::of(v);
        }
    }
    let mut result = vec![E::default(); n * width];
    for start in (0..n).step_by(DEPTH) {
        if !go_on() {
            return;
        }
        let depth = DEPTH.min(n - start);
        let part = &packed[start * width..(start + depth) * width];
        let mut i = 0;
        while i < n {
            if i + 8 <= n && S::REGISTER_COUNT >= 32 {
                rows::<S, E, V, 8>(
                    simd,
                    &c[i * n + start..],
                    n,
                    part,
                    &mut result[i * width..(i + 8) * width],
                );
                i += 8;
            } else if i + 4 <= n {
                rows::<S, E, V, 4>(
                    simd,
                    &c[i * n + start..],
                    n,
                    part,
                    &mut result[i * width..(i + 4) * width],
                );
                i += 4;
            } else {
                rows::<S, E, V, 1>(
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
            *t = v.to();
        }
    }
}

/// Adds R rows of C times the packed part of X.
#[inline(always)]
fn rows<S: Simd, E: Element, const V: usize, const R: usize>(
    simd: S,
    c: &[E],
    stride: usize,
    part: &[E],
    result: &mut [E],
) {
    let width = V * E::lanes::<S>();
    let depth = part.len() / width;
    let lines: [&[E]; R] = std::array::from_fn(|k| &c[k * stride..k * stride + depth]);
    let mut sums = [[E::splat(simd, E::default()); V]; R];
    let x = E::vectors::<S>(part);
    for (j, x) in x.chunks_exact(V).enumerate() {
        for k in 0..R {
            let factor = E::splat(simd, lines[k][j]);
            for v in 0..V {
                sums[k][v] = E::mul_add(simd, factor, x[v], sums[k][v]);
            }
        }
    }
    let result = E::vectors_mut::<S>(result);
    for k in 0..R {
        for v in 0..V {
            result[k * V + v] = E::add(simd, result[k * V + v], sums[k][v]);
        }
    }
}

/// C X for C (n×n) by rows; unfinished if `go_on` says no on the way.
pub(super) fn symmetric_product<E: Element>(
    c: &[E],
    x: ArrayView2<'_, f64>,
    go_on: GoOn<'_>,
) -> Array2<f64> {
    let mut y = Array2::zeros(x.dim());
    crate::simd::arch().dispatch(Product {
        go_on,
        c,
        x,
        y: &mut y,
    });
    y
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
            let exact = c.dot(&x);
            let fast = symmetric_product(c.as_slice().unwrap(), x.view(), &|| true);
            assert!((&fast - &exact).iter().all(|v| v.abs() < 1e-13), "{n} {r}");
            let single = c.mapv(|v| v as f32);
            let rough = symmetric_product(single.as_slice().unwrap(), x.view(), &|| true);
            let error = (&rough - &exact).iter().fold(0f64, |m, v| m.max(v.abs()));
            assert!(error > 1e-13 && error < 1e-5, "{n} {r} {error:e}");
        }
    }
}
