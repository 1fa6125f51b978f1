//! Eigenvectors of C for its smallest eigenvalues: by its decomposition, or from a [Krylov space](krylov).

use ndarray::{Array2, s};

use super::identity;
use crate::linalg::{self, krylov};
use crate::manifold::polar;
use crate::numerics;
use crate::objective::{GoOn, QuadraticForm, eigen_work, gradient_work, pass_work};
use crate::threads::Threads;

/// Largest n at which C is decomposed in full.
pub(crate) const DENSE: usize = 400;

/// Largest number of products with a block for a rough basis, and of blocks between restarts.
pub(super) const PRODUCTS: usize = 12;

/// Least number of products with a block for a rough basis.
const FEWEST: usize = 4;

/// Multiply-adds that decide between the largest and the least number of products for a basis from which a whole search begins.
const ROUGH: f64 = 5e9;

/// The same for axes of first points.
const FIRST: f64 = 1e9;

/// Largest number of products for eigenvectors to rounding.
const MANY_PRODUCTS: usize = 300;

/// Multiply-adds that limit the number of products further.
const WORK: f64 = 1e10;

/// Residual at which eigenvectors have converged, relative to the spread of the eigenvalues.
const RESIDUAL: f64 = 1e-6;

/// Largest number of columns of the space.
const COLUMNS: usize = 320;

/// Largest number of entries of the space.
const ENTRIES: usize = 12_000_000;

/// Columns of a block beyond r.
const MORE: usize = 8;

/// Columns of a block beyond r if the fewest products with `MORE` exceed the work.
const FEW: usize = 2;

/// Returns the minimiser of the quadratic part over the Stiefel manifold: eigenvectors of the r smallest
/// eigenvalues of C. If all eigenvalues are equal, returns the minimiser of the linear term: the polar
/// factor of −linear. It has min(n, r) columns.
pub fn spectral(form: &dyn QuadraticForm, r: usize, threads: &Threads) -> Array2<f64> {
    spectral_while(form, r, threads, &|| true).unwrap_or_else(|| identity(form.order(), r))
}

/// Returns [`spectral`], or the best X so far if `go_on` ends the computation; None without any.
pub(crate) fn spectral_while(
    form: &dyn QuadraticForm,
    r: usize,
    threads: &Threads,
    go_on: GoOn<'_>,
) -> Option<Array2<f64>> {
    let each = (r + MORE) as f64 * (form.product_work() + form.order() as f64 * COLUMNS as f64);
    let products = ((WORK / each) as usize).clamp(2 * PRODUCTS, MANY_PRODUCTS);
    Some(krylov(form, r, (r + MORE, products), threads, go_on)?.0)
}

/// Returns X from few products, a rough start, and approximate extreme eigenvalues of C. If `go_on` ends the
/// computation, returns the best so far, None without any.
pub(crate) fn rough_spectral(
    form: &dyn QuadraticForm,
    r: usize,
    threads: &Threads,
    go_on: GoOn<'_>,
) -> Option<(Array2<f64>, (f64, f64))> {
    let (x, spectrum, _) = krylov(form, r, rough(form, r, ROUGH), threads, go_on)?;
    Some((x, spectrum))
}

/// Returns the same as [`rough_spectral`], from more products if `work` multiply-adds allow them:
/// eigenvectors to rounding if these suffice. Also returns the approximate work.
pub(crate) fn spectral_within(
    form: &dyn QuadraticForm,
    r: usize,
    work: f64,
    threads: &Threads,
    go_on: GoOn<'_>,
) -> Option<(Array2<f64>, (f64, f64), f64)> {
    let (width, least) = rough(form, r, FIRST);
    let each = block_work(form, width);
    let products = ((work / each) as usize).clamp(least, MANY_PRODUCTS);
    let (x, spectrum, done) = krylov(form, r, (width, products), threads, go_on)?;
    let spent = if done == 0 { rough_work(form, r) } else { done as f64 * each };
    Some((x, spectrum, spent))
}

/// Returns the number of columns of a block, and of products with a block, for a rough basis by about `work`.
fn rough(form: &dyn QuadraticForm, r: usize, work: f64) -> (usize, usize) {
    let cheap = |more| FEWEST as f64 * block_work(form, r + more) <= work;
    let width = r + if cheap(MORE) { MORE } else { FEW };
    let products = (work / block_work(form, width)) as usize;
    (width, products.clamp(FEWEST, PRODUCTS))
}

/// Returns the multiply-adds of [`rough_spectral`].
pub(crate) fn rough_work(form: &dyn QuadraticForm, r: usize) -> f64 {
    let n = form.order();
    let (width, products) = rough(form, r, ROUGH);
    if is_decomposed(n, width) {
        return eigen_work(n) + gradient_work(form, n);
    }
    products as f64 * block_work(form, width)
}

/// Returns whether C is decomposed: if it is small, or too small for a space of two blocks and one beside it.
fn is_decomposed(n: usize, width: usize) -> bool {
    n <= DENSE || 3 * width > n
}

/// Returns the work of a product with a block, and of its Gram–Schmidt against half of the others, twice.
fn block_work(form: &dyn QuadraticForm, width: usize) -> f64 {
    let n = form.order();
    let width = width.min(n);
    let blocks = (blocks_between_restarts(n, width) + 1) as f64;
    let tall = 2.0 * blocks * width as f64 * pass_work(n * width);
    gradient_work(form, width) + tall
}

/// Returns the number of blocks in the Krylov space between restarts.
fn blocks_between_restarts(n: usize, width: usize) -> usize {
    (COLUMNS / width).min(ENTRIES / (n * width)).clamp(2, PRODUCTS).min((n / width).max(3) - 1)
}

/// Returns whether [`rough_spectral`] finds eigenvectors of C to rounding at this n.
pub(crate) fn is_spectrum_exact(n: usize) -> bool {
    n <= DENSE
}

/// Returns X, approximate extreme eigenvalues of C, and the number of products with blocks of `width` columns
/// (0 if C is decomposed, else about `most` at most); the best so far if `go_on` ends it, None without any.
fn krylov(
    form: &dyn QuadraticForm,
    r: usize,
    (width, most): (usize, usize),
    threads: &Threads,
    go_on: GoOn<'_>,
) -> Option<(Array2<f64>, (f64, f64), usize)> {
    let n = form.order();
    let r = r.min(n);
    let width = width.min(n);
    if is_decomposed(n, width) {
        let c = form.apply_while(Array2::eye(n).view(), threads, go_on)?;
        let (values, vectors) = linalg::symmetric_eigen(c.view());
        let (low, high) = (values[0], values[n - 1]);
        let x = vectors.slice(s![.., ..r]).to_owned();
        return Some((settled(form, x, low, high), (low, high), 0));
    }
    let blocks = blocks_between_restarts(n, width);
    let wanted = krylov::Wanted { count: r, width, blocks, most, residual: RESIDUAL };
    let found = krylov::smallest(n, &wanted, &|x| form.apply_while(x, threads, go_on), go_on)?;
    let (low, high) = found.range;
    let x = match low.is_nan() {
        true => identity(n, r),
        false => settled(form, polar(&found.vectors), low, high),
    };
    Some((x, (low, high), found.products))
}

/// Returns X, or the minimiser of the linear term if all eigenvalues are equal.
fn settled(form: &dyn QuadraticForm, x: Array2<f64>, low: f64, high: f64) -> Array2<f64> {
    if high - low > numerics::CONVERGED * high.abs().max(low.abs()) {
        return x;
    }
    match form.linear() {
        Some(linear) => linalg::polar_factor((-&linear).view()),
        None => identity(x.nrows(), x.ncols()),
    }
}
