//! Krylov spaces of a symmetric operator C that is given by its products: block Lanczos with thick restarts.
//!
//! An orthonormal basis V is grown by blocks of any width, T = VᵀCV is recorded as it grows, and CV = VT + QB for the
//! next block Q. When V is full, it is replaced by its best Ritz vectors (Wu and Simon, SIAM J. Matrix Anal. Appl. 22,
//! 2000). The residual of a Ritz vector Vy is ‖By′‖ for the last entries y′ of y. Random directions replace those that
//! vanish. With blocks wider than the number of wanted eigenvectors all vectors of an eigenvalue are found.

use ndarray::{Array1, Array2, ArrayView2, s};

use super::{add_product, normal, product, square, symmetric_eigen};
use crate::limits::GoOn;
use crate::numerics;
use crate::rows::Rows;

/// Seed of the first block.
const FIRST: u64 = 0x6c61_6e63;

/// Blocks between tests of convergence.
const PERIOD: usize = 3;

/// Square of a direction, relative to those of C and the longest direction, up to which it has lost digits.
const SHORT: f64 = 1e-4;

/// Most rounds that make columns orthonormal: each squares the distance, but the first ones of nearly dependent columns.
const ROUNDS: usize = 8;

/// A product with the operator; None if it ends the computation.
pub(crate) type Apply<'a> = &'a dyn Fn(ArrayView2<'_, f64>) -> Option<Array2<f64>>;

/// A Krylov space.
pub(crate) struct Krylov {
    /// Vectors are rows, of which the first `held` are in use.
    basis: Array2<f64>,
    t: Array2<f64>,
    held: usize,
    next: Array2<f64>,
    coupling: Array2<f64>,
    products: u64,
}

impl Krylov {
    /// Creates an empty space of vectors of length n, for `blocks` blocks of `width` vectors.
    pub(crate) fn new(n: usize, width: usize, blocks: usize) -> Self {
        let full = blocks * width;
        Self {
            basis: Array2::zeros((full, n)),
            t: Array2::zeros((full, full)),
            held: 0,
            next: orthonormal(normal((n, width), FIRST)).reversed_axes(),
            coupling: Array2::zeros((width, width)),
            products: 0,
        }
    }

    /// Adds the next block to the space, by one product. Returns whether the image is finite; None if the product fails or
    /// `go_on` returns false.
    pub(crate) fn grow(&mut self, apply: Apply<'_>, go_on: GoOn<'_>) -> Option<bool> {
        let (width, n) = self.next.dim();
        let (from, to) = (self.held, self.held + width);
        self.basis.slice_mut(s![from..to, ..]).assign(&self.next);
        let space = self.basis.slice(s![..to, ..]);
        let mut rest = apply(self.next.t())?;
        let mut overlaps = remove(space, &mut rest, go_on)?;
        overlaps += &remove(space, &mut rest, go_on)?;
        self.t.slice_mut(s![..to, from..to]).assign(&overlaps);
        self.t.slice_mut(s![from..to, ..to]).assign(&overlaps.t());
        self.held = to;
        self.products += 1;
        let size = self.t.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        if !(size.is_finite() && overlaps.iter().all(|v| v.is_finite())) {
            return Some(false);
        }
        (self.next, self.coupling) = match to < n {
            true => continued(space, rest, size, self.products, go_on)?,
            false => (rest.reversed_axes(), Array2::zeros((width, width))),
        };
        Some(true)
    }

    /// Returns the Ritz values, ascending, and the coordinates of the Ritz vectors.
    pub(crate) fn ritz(&self) -> (Array1<f64>, Array2<f64>) {
        symmetric_eigen(self.t.slice(s![..self.held, ..self.held]))
    }

    /// Returns ‖B‖, which bounds the residual of every Ritz vector; 0 if C maps the space into itself.
    pub(crate) fn residual(&self) -> f64 {
        square(&self.coupling).sqrt()
    }

    /// Replaces the space by the span of its first `kept` Ritz vectors.
    fn restart(&mut self, values: &Array1<f64>, vectors: &Array2<f64>, kept: usize) {
        let space = self.basis.slice(s![..self.held, ..]);
        let best = product(vectors.slice(s![.., ..kept]).t(), space);
        self.basis.slice_mut(s![..kept, ..]).assign(&best);
        self.t.fill(0.0);
        self.t.diag_mut().slice_mut(s![..kept]).assign(&values.slice(s![..kept]));
        self.held = kept;
    }
}

/// Sizes and ends of a computation of eigenvectors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// Number of eigenvectors.
    pub(crate) count: usize,
    /// Columns of a block.
    pub(crate) width: usize,
    /// Blocks between restarts.
    pub(crate) blocks: usize,
    /// Largest number of products with a block.
    pub(crate) most: usize,
    /// Residual, relative to the spread of the eigenvalues, at which eigenvectors have converged. The error of
    /// eigenvalues is its square.
    pub(crate) residual: f64,
}

/// Ritz vectors for the smallest eigenvalues.
pub(crate) struct Smallest {
    /// Ascending.
    pub(crate) values: Array1<f64>,
    pub(crate) vectors: Array2<f64>,
    /// The smallest and the largest Ritz value met; NaN if a product is not finite.
    pub(crate) range: (f64, f64),
    pub(crate) products: usize,
    pub(crate) converged: bool,
}

/// Returns the best vectors found for the smallest eigenvalues of an operator of order n. n is at least the number of
/// columns of the space and of one more block. None if a product fails or `go_on` returns false before two products.
pub(crate) fn smallest(n: usize, wanted: &Wanted, apply: Apply<'_>, go_on: GoOn<'_>) -> Option<Smallest> {
    let &Wanted { count, width, blocks, most, residual } = wanted;
    let mut space = Krylov::new(n, width, blocks);
    let full = blocks * width;
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    let mut best: Option<Smallest> = None;
    for products in 1.. {
        match space.grow(apply, go_on) {
            None => break,
            Some(false) => {
                let (values, vectors) = (Array1::from_elem(count, f64::NAN), Array2::zeros((n, count)));
                return Some(Smallest { values, vectors, range: (f64::NAN, f64::NAN), products, converged: false });
            }
            Some(true) => {}
        }
        let (is_full, ends) = (space.held + width > full, products >= most);
        // Two blocks give a point early.
        if !(is_full || ends || products == 2 || products % PERIOD == 0) {
            continue;
        }
        let (values, vectors) = space.ritz();
        let held = space.held;
        (low, high) = (low.min(values[0]), high.max(values[held - 1]));
        let chosen = vectors.slice(s![.., ..count]);
        let left = square(&space.coupling.dot(&chosen.slice(s![held - width.., ..]))).sqrt();
        let size = low.abs().max(high.abs());
        let converged = left <= (residual * (high - low)).max(numerics::CONVERGED * size) && held > 2 * width;
        if is_full || ends || converged || products == 2 {
            let vectors = product(space.basis.slice(s![..held, ..]).t(), chosen);
            let values = values.slice(s![..count]).to_owned();
            best = Some(Smallest { values, vectors, range: (low, high), products, converged });
        }
        if ends || converged {
            break;
        }
        if is_full {
            space.restart(&values, &vectors, count + (full - width - count) / 2);
        }
    }
    best
}

/// Subtracts from the columns of `rest` their parts in the space, and returns the overlaps.
fn remove(space: ArrayView2<'_, f64>, rest: &mut Array2<f64>, go_on: GoOn<'_>) -> Option<Array2<f64>> {
    if !go_on() {
        return None;
    }
    let overlaps = product(space, rest.view());
    let mut rows = Rows::from(std::mem::take(rest));
    add_product(space.t(), (-&overlaps).view(), rows.entries_mut());
    *rest = rows.into_array();
    Some(overlaps)
}

/// Returns an orthonormal block Q of rows, orthogonal to the space, and B with rest = QᵀB; B is zero for directions
/// that vanish, which random ones replace.
fn continued(
    space: ArrayView2<'_, f64>,
    rest: Array2<f64>,
    size: f64,
    seed: u64,
    go_on: GoOn<'_>,
) -> Option<(Array2<f64>, Array2<f64>)> {
    let (n, width) = rest.dim();
    let gram = product(rest.t(), rest.view());
    let (squares, vectors) = symmetric_eigen(gram.view());
    let least = (numerics::CONVERGED * size).powi(2);
    // Directions far shorter than the longest one lose digits in the Gram matrix.
    let longest = squares[width - 1];
    let is_kept = |square: f64| square > least && square > f64::EPSILON * longest;
    let mut coupling = Array2::zeros((width, width));
    let mut scaled = Array2::zeros((width, width));
    for (k, &square) in squares.iter().enumerate().filter(|(_, square)| is_kept(**square)) {
        scaled.row_mut(k).assign(&(&vectors.column(k) / square.sqrt()));
        coupling.row_mut(k).assign(&(&vectors.column(k) * square.sqrt()));
    }
    let mut q = product(scaled.view(), rest.t());
    let fresh = normal((n, width), seed);
    for (k, _) in squares.iter().enumerate().filter(|(_, square)| !is_kept(**square)) {
        q.row_mut(k).assign(&fresh.column(k));
    }
    let mut columns = q.reversed_axes().as_standard_layout().into_owned();
    // Long directions are orthogonal to the space already. Twice, as the first pass can leave little of a short one.
    let long = SHORT * longest.max(size * size);
    for _ in 0..if squares[0] > long { 0 } else { 2 } {
        remove(space, &mut columns, go_on)?;
        columns = orthonormal(columns);
    }
    Some((orthonormal(columns).reversed_axes(), coupling))
}

/// Returns orthonormal columns of the same span, the nearest ones; orthonormal columns stay as they are.
fn orthonormal(mut columns: Array2<f64>) -> Array2<f64> {
    for _ in 0..ROUNDS {
        let gram = product(columns.t(), columns.view());
        let near = gram.indexed_iter().all(|((i, k), &v)| {
            let wanted = if i == k { 1.0 } else { 0.0 };
            (v - wanted).abs() <= 1e-8
        });
        let turn = match near {
            // X(3I − XᵀX)/2 is orthonormal up to the square of the distance.
            true => Array2::from_diag_elem(gram.nrows(), 1.5) - gram * 0.5,
            false => {
                let (squares, vectors) = symmetric_eigen(gram.view());
                let least = f64::EPSILON * squares[squares.len() - 1];
                let scaled = &vectors / &squares.mapv(|square| square.max(least).sqrt());
                scaled.dot(&vectors.t())
            }
        };
        columns = product(columns.view(), turn.view());
        if near {
            break;
        }
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
        let wanted = |count: usize| Wanted {
            count,
            width: (count + 2).next_multiple_of(4),
            blocks: 12,
            most: 400,
            residual: 1e-9,
        };
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
                let found = smallest(n, &wanted(count), &apply, &|| true).unwrap();
                let (values, x) = (found.values, found.vectors);
                assert!(found.converged);
                for (found, wanted) in values.iter().zip(&sorted) {
                    assert!((found - wanted).abs() <= 1e-13 * size, "{case} {count} {found}");
                }
                let residual = apply(x.view()).unwrap() - &x * &values;
                assert!(residual.iter().all(|v| v.abs() <= 1e-8 * size), "{case} {count}");
                let gram = x.t().dot(&x) - Array2::<f64>::eye(count);
                assert!(gram.iter().all(|v| v.abs() <= 1e-12), "{case} {count}");
            }
            assert!(smallest(n, &wanted(3), &apply, &|| false).is_none());
        }
    }

    /// Columns from well apart to dependent up to rounding, of all sizes, one of them longer than the others.
    #[test]
    fn columns_become_orthonormal_and_orthonormal_ones_stay() {
        let (n, width) = (90, 7);
        for (case, apart) in [1.0, 1e-3, 1e-6, 1e-9, 1e-12].into_iter().enumerate() {
            for size in [1e-60, 1.0, 1e60] {
                let common = normal((n, 1), case as u64);
                let mut columns = normal((n, width), 100 + case as u64) * apart + common;
                columns.column_mut(2).mapv_inplace(|v| 1e3 * v);
                let q = orthonormal(columns * size);
                let gram = q.t().dot(&q) - Array2::<f64>::eye(width);
                assert!(gram.iter().all(|v| v.abs() <= 1e-13), "{apart} {size} {gram}");
                let again = orthonormal(q.clone());
                assert!((&again - &q).iter().all(|v| v.abs() <= 1e-13), "{apart} {size}");
            }
        }
        let columns = normal((n, width), 7);
        let q = orthonormal(columns.clone());
        // The span is the same.
        let rest = &columns - &q.dot(&q.t().dot(&columns));
        assert!(rest.iter().all(|v| v.abs() <= 1e-12));
    }
}
