//! A few eigenvectors of a symmetric operator that is given by its products: block Lanczos with thick restarts.
//!
//! A basis V of a Krylov space is kept orthonormal, T = VᵀCV is recorded as it grows, and CV = VT + QB for the next
//! block Q. When V is full, it is replaced by its best Ritz vectors (Wu and Simon, SIAM J. Matrix Anal. Appl. 22,
//! 2000). The residual of a Ritz vector Vy is ‖By′‖ for the last entries y′ of y. Blocks are wider than the number of
//! eigenvectors, so that all vectors of an eigenvalue are found, and random directions replace those that vanish.

use ndarray::{Array1, Array2, ArrayView2, s};

use super::random;
use crate::linalg::{add_product, product, symmetric_eigen};
use crate::numerics;
use crate::objective::GoOn;
use crate::rows::Rows;

/// Least number of columns of a block beyond the wanted number.
const MORE: usize = 2;

/// The number of columns of a block is a multiple of this number.
const LANES: usize = 4;

/// Number of blocks in the basis.
const BLOCKS: usize = 12;

/// Largest number of entries of the basis.
const ENTRIES: usize = 40_000_000;

/// Blocks between tests of convergence.
const PERIOD: usize = 3;

/// Residual of the eigenvectors, relative to the spread of the eigenvalues, at which they have converged. The error of
/// the eigenvalues is its square.
const RESIDUAL: f64 = 1e-9;

/// Returns the columns of a block for `count` eigenvectors.
pub(super) fn width(count: usize) -> usize {
    (count + MORE).next_multiple_of(LANES)
}

/// Returns whether a basis for `count` eigenvectors of an operator of order n fits.
pub(super) fn fits(n: usize, count: usize) -> bool {
    let block = width(count);
    2 * BLOCKS * block <= n && BLOCKS * block * n <= ENTRIES
}

/// Returns the `count` smallest eigenvalues, ascending, and their vectors as columns; None if `most` products with
/// blocks do not suffice, if a product fails or is not finite, or if `go_on` returns false.
pub(super) fn smallest(
    n: usize,
    count: usize,
    most: usize,
    apply: &dyn Fn(ArrayView2<'_, f64>) -> Option<Array2<f64>>,
    go_on: GoOn<'_>,
) -> Option<(Array1<f64>, Array2<f64>)> {
    let block = width(count);
    let full = BLOCKS * block;
    // Vectors are rows.
    let mut basis = Array2::<f64>::zeros((full, n));
    let mut t = Array2::<f64>::zeros((full, full));
    let mut next = random(n, block, 0x6c61_6e63).reversed_axes();
    let mut held = 0;
    for step in 1..=most {
        let to = held + block;
        basis.slice_mut(s![held..to, ..]).assign(&next);
        let space = basis.slice(s![..to, ..]);
        let mut rest = apply(next.t())?;
        let mut overlaps = remove(space, &mut rest);
        overlaps += &remove(space, &mut rest);
        t.slice_mut(s![..to, held..to]).assign(&overlaps);
        t.slice_mut(s![held..to, ..to]).assign(&overlaps.t());
        held = to;
        let size = t.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        if !size.is_finite() || !go_on() {
            return None;
        }
        let (following, coupling) = continued(space, rest, size, step as u64);
        next = following;
        let is_full = held + block > full;
        if !is_full && step % PERIOD != 0 {
            continue;
        }
        let part = t.slice(s![..held, ..held]);
        let (values, vectors) = symmetric_eigen(part);
        let last = vectors.slice(s![held - block.., ..]);
        let residual = coupling.dot(&last.slice(s![.., ..count]));
        let spread = values[held - 1] - values[0];
        let left = residual.iter().map(|v| v * v).sum::<f64>().sqrt();
        if left <= (RESIDUAL * spread).max(numerics::CONVERGED * size) && held > 2 * block {
            let chosen = vectors.slice(s![.., ..count]);
            let x = product(space.t(), chosen);
            return Some((values.slice(s![..count]).to_owned(), x));
        }
        if is_full {
            held = count + (full - block - count) / 2;
            let kept = product(vectors.slice(s![.., ..held]).t(), space);
            basis.slice_mut(s![..held, ..]).assign(&kept);
            t.fill(0.0);
            t.diag_mut().slice_mut(s![..held]).assign(&values.slice(s![..held]));
        }
    }
    None
}

/// Subtracts from the columns of `rest` their parts in the space, and returns the overlaps.
fn remove(space: ArrayView2<'_, f64>, rest: &mut Array2<f64>) -> Array2<f64> {
    let overlaps = product(space, rest.view());
    let mut rows = Rows::from(std::mem::take(rest));
    add_product(space.t(), (-&overlaps).view(), rows.entries_mut());
    *rest = rows.into_array();
    overlaps
}

/// Returns an orthonormal block Q of rows, orthogonal to the space, and B with rest = QᵀB; B is zero for directions
/// that vanish, which random ones replace.
fn continued(space: ArrayView2<'_, f64>, rest: Array2<f64>, size: f64, seed: u64) -> (Array2<f64>, Array2<f64>) {
    let (n, block) = rest.dim();
    let gram = product(rest.t(), rest.view());
    let (squares, vectors) = symmetric_eigen(gram.view());
    let least = (numerics::CONVERGED * size).powi(2);
    // Directions far shorter than the longest one lose digits in the Gram matrix.
    let longest = squares[block - 1];
    let is_kept = |square: f64| square > least && square > f64::EPSILON * longest;
    let mut coupling = Array2::zeros((block, block));
    let mut scaled = Array2::zeros((block, block));
    for (k, &square) in squares.iter().enumerate() {
        if is_kept(square) {
            let length = square.sqrt();
            scaled.column_mut(k).assign(&(&vectors.column(k) / length));
            coupling.row_mut(k).assign(&(&vectors.column(k) * length));
        }
    }
    let mut q = product(scaled.t(), rest.t());
    let fresh = random(n, block, seed);
    for (k, &square) in squares.iter().enumerate() {
        if !is_kept(square) {
            q.row_mut(k).assign(&fresh.column(k));
        }
    }
    // Twice, as the first pass can leave little of a short direction.
    for _ in 0..2 {
        let mut columns = q.t().as_standard_layout().into_owned();
        remove(space, &mut columns);
        q = orthonormal(columns).reversed_axes();
    }
    (q, coupling)
}

/// Returns the columns made orthonormal one after the other, which leaves orthonormal ones as they are.
fn orthonormal(mut columns: Array2<f64>) -> Array2<f64> {
    let block = columns.ncols();
    let gram = product(columns.t(), columns.view());
    let near = gram.indexed_iter().all(|((i, k), &v)| {
        let wanted = if i == k { 1.0 } else { 0.0 };
        (v - wanted).abs() <= 1e-8
    });
    if near {
        // X(3I − XᵀX)/2 is orthonormal up to the square of the distance.
        let mut turn = gram * -0.5;
        turn.diag_mut().mapv_inplace(|v| v + 1.5);
        return product(columns.view(), turn.view());
    }
    for k in 0..block {
        let (done, mut left) = columns.view_mut().split_at(ndarray::Axis(1), k);
        let mut column = left.column_mut(0);
        for other in done.columns() {
            let overlap = other.dot(&column);
            column.scaled_add(-overlap, &other);
        }
        let length = column.dot(&column).sqrt();
        column /= length;
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Products of diagonal matrices: gaps, clusters, multiplicities up to the number of wanted vectors, zeros.
    #[test]
    fn eigenvectors_of_all_spectra_are_found() {
        let n = 700;
        let spectra: [&dyn Fn(usize) -> f64; 6] = [
            &|k| k as f64,
            &|k| -1e60 * 0.97f64.powi(k as i32),
            &|k| if k < 6 { -3.0 } else { (k as f64 * 0.37).sin() },
            &|k| if k < 300 { -1.0 } else { 1.0 },
            &|k| if k < 2 { -1.0 } else { 0.0 },
            &|_| 0.0,
        ];
        for (case, spectrum) in spectra.into_iter().enumerate() {
            let diagonal = Array1::from_shape_fn(n, |k| spectrum((k * 271) % n));
            let mut sorted = diagonal.to_vec();
            sorted.sort_by(f64::total_cmp);
            let size = sorted[0].abs().max(sorted[n - 1].abs());
            let apply = |x: ArrayView2<'_, f64>| Some(&x * &diagonal.view().insert_axis(ndarray::Axis(1)));
            for count in [1, 3, 6] {
                let (values, x) = smallest(n, count, 400, &apply, &|| true).unwrap();
                for (found, wanted) in values.iter().zip(&sorted) {
                    assert!((found - wanted).abs() <= 1e-13 * size, "{case} {count} {found}");
                }
                let residual = apply(x.view()).unwrap() - &x * &values;
                assert!(residual.iter().all(|v| v.abs() <= 1e-8 * size), "{case} {count}");
                let gram = x.t().dot(&x) - Array2::<f64>::eye(count);
                assert!(gram.iter().all(|v| v.abs() <= 1e-12), "{case} {count}");
            }
            assert!(smallest(n, 3, 400, &apply, &|| false).is_none());
        }
    }
}
