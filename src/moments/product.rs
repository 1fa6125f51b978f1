//! Products `AᵀB` of matrices whose columns are stored in panels, for a strip of rows of the product.
//!
//! A panel has [`PANEL`] columns, row by row, so that both factors are read sequentially and are packed once.
//! Sums of a few rows and columns stay in registers over [`DEPTH`] rows (Goto and van de Geijn 2008). Every
//! sum is formed by one thread in one order. Strips cost m·n²/2 multiply-adds for m rows and n columns.
//!
//! Exact products keep two sums of each entry. The first sum begins at a large number, so that every product
//! is rounded to a fixed grid when it is added, which makes the sum exact (Rump, Ogita and Oishi 2008). The
//! second sum contains the rounding errors, each from one fused multiply-add. This takes four instructions
//! instead of one; two are additions, which many processors do in parallel with multiply-adds.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::pair::SPLITTER;
use crate::internal::simd;
use crate::threads::Threads;

/// Columns of a panel.
pub(super) const PANEL: usize = 8;

/// Rows of the factors that are multiplied before sums are stored; the fastest of 128, 192, 256 and 512.
pub(super) const DEPTH: usize = 512;

/// Initial value of exact sums, which stay in 2¹⁰ … 2¹¹ over [`DEPTH`] products below 1: a grid of 2⁻⁴².
pub(super) const ANCHOR: f64 = 1536.0;

/// Panels whose sums fit the registers of AVX-512: 24 of 32.
const TILE: usize = 3;

/// The columns of a matrix in panels; the last panel is padded with zeros.
#[derive(Debug, Clone, Default)]
pub(super) struct Panels {
    rows: usize,
    entries: Vec<f64>,
}

impl Panels {
    pub(super) fn zeros(rows: usize, columns: usize) -> Self {
        Self { rows, entries: vec![0.0; rows * columns.next_multiple_of(PANEL)] }
    }

    /// Calls `body` with the number of every panel and its rows.
    pub(super) fn fill(&mut self, threads: &Threads, body: impl Fn(usize, &mut [[f64; PANEL]]) + Sync) {
        let (size, work) = (self.rows * PANEL, self.entries.len());
        threads.for_chunks(&mut self.entries, size, work, |panel, entries| {
            body(panel, entries.as_chunks_mut().0);
        });
    }

    /// Returns the rows of a panel.
    pub(super) fn panel(&self, panel: usize) -> &[[f64; PANEL]] {
        let size = self.rows * PANEL;
        self.entries[panel * size..(panel + 1) * size].as_chunks().0
    }
}

/// Returns the panels that hold these columns.
pub(super) fn panels(columns: &Range<usize>) -> Range<usize> {
    columns.start / PANEL..columns.end.div_ceil(PANEL)
}

/// A panel of a factor; None if it is zero.
pub(super) type Factor<'a> = Option<&'a [[f64; PANEL]]>;

/// Adds `AᵀB` to `sums`, stored row by row with rows of length `width`. Tiles below the diagonal may be left
/// out; `diagonal` is the number of panels between the first panels of A and B.
///
/// With `low`, for at most [`DEPTH`] rows of numbers below 1, the terms added to `sums` are exact multiples
/// of 2⁻⁴², and `low` receives the remainders, with rounding errors of relative size 2⁻⁵³.
pub(super) fn add_product(
    (sums, low): (&mut [f64], Option<&mut [f64]>),
    width: usize,
    left: &[Factor<'_>],
    right: &[Factor<'_>],
    diagonal: usize,
) {
    simd::arch().dispatch(Product { sums, low, width, left, right, diagonal });
}

struct Product<'a> {
    sums: &'a mut [f64],
    /// Low parts of the sums, for exact products.
    low: Option<&'a mut [f64]>,
    width: usize,
    left: &'a [Factor<'a>],
    right: &'a [Factor<'a>],
    diagonal: usize,
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        // Vectors of a row of a panel, panels of a tile, and its rows for plain and for exact products.
        match S::F64_LANES {
            8 => self.run::<S, 1, TILE, 8, 4>(simd),
            4 => self.run::<S, 2, 1, 4, 2>(simd),
            2 => self.run::<S, 4, 1, 4, 2>(simd),
            _ => self.run::<S, 8, 1, 1, 1>(simd),
        }
    }
}

impl Product<'_> {
    #[inline(always)]
    fn run<S: Simd, const V: usize, const P: usize, const R: usize, const E: usize>(&mut self, simd: S) {
        let all = self.left.iter().chain(self.right);
        let depth = all.flatten().map(|panel| panel.len()).next().unwrap_or(0);
        for start in (0..depth).step_by(DEPTH) {
            let rows = start..depth.min(start + DEPTH);
            for first in (0..self.right.len()).step_by(P) {
                let end = self.right.len().min(first + P);
                for (row, left) in self.left.iter().enumerate() {
                    let Some(left) = left.filter(|_| row < self.diagonal + end) else {
                        continue;
                    };
                    let (left, right) = (&left[rows.clone()], &self.right[first..end]);
                    let at = row * PANEL * self.width + first * PANEL;
                    let whole: Option<[_; P]> = right.try_into().ok();
                    if let Some(right) = whole.filter(|right| right.iter().all(Option::is_some)) {
                        let right = right.map(|right| &right.unwrap_or_default()[rows.clone()]);
                        self.tile::<S, V, P, R, E>(simd, at, left, right);
                        continue;
                    }
                    for (p, right) in right.iter().enumerate() {
                        if let Some(right) = right {
                            let right = [&right[rows.clone()]];
                            self.tile::<S, V, 1, R, E>(simd, at + p * PANEL, left, right);
                        }
                    }
                }
            }
        }
    }

    /// Adds the product of a panel and P others to the sums from `at` on.
    #[inline(always)]
    fn tile<S: Simd, const V: usize, const P: usize, const R: usize, const E: usize>(
        &mut self,
        simd: S,
        at: usize,
        left: &[[f64; PANEL]],
        right: [&[[f64; PANEL]]; P],
    ) {
        let right = right.map(|panel| {
            let vectors: &[[S::f64s; V]] = S::as_simd_f64s(panel.as_flattened()).0.as_chunks().0;
            &vectors[..left.len()]
        });
        let (sums, width) = (&mut self.sums[at..], self.width);
        match &mut self.low {
            None => plain::<S, V, P, R>(simd, sums, width, left, right),
            Some(low) => exact::<S, V, P, E>(simd, (sums, &mut low[at..]), width, left, right),
        }
    }
}

/// Computes R rows of a tile at once, with one sum per entry.
#[inline(always)]
fn plain<S: Simd, const V: usize, const P: usize, const R: usize>(
    simd: S,
    sums: &mut [f64],
    width: usize,
    left: &[[f64; PANEL]],
    right: [&[[S::f64s; V]]; P],
) {
    for first in (0..PANEL).step_by(R) {
        let mut own = [[[simd.splat_f64s(0.0); V]; P]; R];
        for (k, left) in left.iter().enumerate() {
            let right: [[S::f64s; V]; P] = std::array::from_fn(|p| right[p][k]);
            for (own, left) in own.iter_mut().zip(&left[first..first + R]) {
                let left = simd.splat_f64s(*left);
                for (own, right) in own.iter_mut().zip(&right) {
                    for (own, right) in own.iter_mut().zip(right) {
                        *own = simd.mul_add_e_f64s(left, *right, *own);
                    }
                }
            }
        }
        store(simd, sums, width, first, own);
    }
}

/// Computes R rows of a tile at once, with two sums per entry.
#[inline(always)]
fn exact<S: Simd, const V: usize, const P: usize, const R: usize>(
    simd: S,
    (sums, low): (&mut [f64], &mut [f64]),
    width: usize,
    left: &[[f64; PANEL]],
    right: [&[[S::f64s; V]]; P],
) {
    let anchor = simd.splat_f64s(ANCHOR);
    for first in (0..PANEL).step_by(R) {
        let mut own = [[[anchor; V]; P]; R];
        let mut rest = [[[simd.splat_f64s(0.0); V]; P]; R];
        for (k, left) in left.iter().enumerate() {
            let right: [[S::f64s; V]; P] = std::array::from_fn(|p| right[p][k]);
            for ((own, rest), left) in own.iter_mut().zip(&mut rest).zip(&left[first..]) {
                let left = simd.splat_f64s(*left);
                for ((own, rest), right) in own.iter_mut().zip(rest).zip(&right) {
                    for ((own, rest), right) in own.iter_mut().zip(rest).zip(right) {
                        let left_over;
                        (*own, left_over) = anchored(simd, *own, left, *right);
                        *rest = simd.add_f64s(*rest, left_over);
                    }
                }
            }
        }
        let own = own.map(|own| own.map(|own| own.map(|own| simd.sub_f64s(own, anchor))));
        store(simd, sums, width, first, own);
        store(simd, low, width, first, rest);
    }
}

/// Returns `sum + a·b` in double precision, and the part of `a·b` lost by rounding.
#[inline(always)]
fn anchored<S: Simd>(simd: S, sum: S::f64s, a: S::f64s, b: S::f64s) -> (S::f64s, S::f64s) {
    if S::F64_LANES > 1 {
        let next = simd.mul_add_f64s(a, b, sum);
        return (next, simd.mul_add_f64s(a, b, simd.sub_f64s(sum, next)));
    }
    // Without vectors a fused multiply-add may be slow software. Dekker's product takes its place.
    let halves = |x| {
        let scaled = simd.mul_f64s(simd.splat_f64s(SPLITTER), x);
        let high = simd.sub_f64s(scaled, simd.sub_f64s(scaled, x));
        (high, simd.sub_f64s(x, high))
    };
    let product = simd.mul_f64s(a, b);
    let ((a1, a2), (b1, b2)) = (halves(a), halves(b));
    let error = simd.sub_f64s(simd.mul_f64s(a1, b1), product);
    let error = simd.add_f64s(error, simd.mul_f64s(a1, b2));
    let error = simd.add_f64s(error, simd.mul_f64s(a2, b1));
    let error = simd.add_f64s(error, simd.mul_f64s(a2, b2));
    let next = simd.add_f64s(sum, product);
    let left_over = simd.add_f64s(product, simd.sub_f64s(sum, next));
    (next, simd.add_f64s(left_over, error))
}

/// Adds R rows of a tile, from row `first` of its panel on.
#[inline(always)]
fn store<S: Simd, const V: usize, const P: usize, const R: usize>(
    simd: S,
    sums: &mut [f64],
    width: usize,
    first: usize,
    own: [[[S::f64s; V]; P]; R],
) {
    // Only indices that are known to the compiler keep the sums in registers.
    #[allow(clippy::needless_range_loop)]
    for r in 0..R {
        let row = &mut sums[(first + r) * width..][..P * PANEL];
        let row: &mut [[S::f64s; V]] = S::as_mut_simd_f64s(row).0.as_chunks_mut().0;
        for p in 0..P {
            for v in 0..V {
                row[p][v] = simd.add_f64s(row[p][v], own[r][p][v]);
            }
        }
    }
}
