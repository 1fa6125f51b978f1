//! Eigenvectors of C for its smallest eigenvalues, from a block Krylov space that is restarted with
//! its best vectors.
//!
//! `go_on` is called between steps of a few hundredths of a second: products, and block Gram–Schmidt by Gram
//! matrices in place of QR decompositions.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, s};

use super::{identity, random};
use crate::linalg;
use crate::manifold::polar;
use crate::numerics;
use crate::objective::{GoOn, QuadraticForm, eigen_work, gradient_work, pass_work};
use crate::threads::Threads;

/// Largest n at which C is decomposed in full.
pub(crate) const DENSE: usize = 400;

/// Largest number of products with a block for a rough basis, and of blocks between restarts.
const PRODUCTS: usize = 10;

/// Least number of products with a block for a rough basis.
const FEWEST: usize = 4;

/// Multiply-adds that decide between the largest and the least number of products.
const ROUGH: f64 = 5e9;

/// Largest number of products for eigenvectors to rounding.
const MANY_PRODUCTS: usize = 300;

/// Multiply-adds that limit the number of products further.
const WORK: f64 = 1e10;

/// Cost of a multiply-add of Gram–Schmidt, relative to one of a product, per block in the space.
const TALL: f64 = 1.0;

/// Change of the sum of the eigenvalues between restarts, relative to their distance from the largest
/// one, at which they have converged.
const TOLERANCE: f64 = 1e-10;

/// Largest number of columns of the space.
const COLUMNS: usize = 320;

/// Largest number of entries of the space.
const ENTRIES: usize = 12_000_000;

/// Columns of a block beyond r.
const MORE: usize = 8;

/// Columns of a block beyond r if the fewest products with `MORE` exceed `ROUGH`.
const FEW: usize = 2;

/// Square of the relative length below which a direction lies in the space already.
const DEPENDENT: f64 = 1e-20;

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
    let each = (r + MORE) as f64 * (form.product_work() + TALL * form.order() as f64 * COLUMNS as f64);
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
    let (x, spectrum, _) = krylov(form, r, rough(form, r), threads, go_on)?;
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
    let (width, least) = rough(form, r);
    let each = block_work(form, width);
    let products = ((work / each) as usize).clamp(least, MANY_PRODUCTS);
    let (x, spectrum, done) = krylov(form, r, (width, products), threads, go_on)?;
    let spent = if done == 0 { rough_work(form, r) } else { done as f64 * each };
    Some((x, spectrum, spent))
}

/// Returns the number of columns of a block, and of products with a block, of [`rough_spectral`].
fn rough(form: &dyn QuadraticForm, r: usize) -> (usize, usize) {
    let cheap = |more| FEWEST as f64 * block_work(form, r + more) <= ROUGH;
    let width = r + if cheap(MORE) { MORE } else { FEW };
    let products = (ROUGH / block_work(form, width)) as usize;
    (width, products.clamp(FEWEST, PRODUCTS))
}

/// Returns the multiply-adds of [`rough_spectral`].
pub(crate) fn rough_work(form: &dyn QuadraticForm, r: usize) -> f64 {
    let n = form.order();
    let (width, products) = rough(form, r);
    if n <= DENSE || 2 * width > n {
        return eigen_work(n) + gradient_work(form, n);
    }
    // The first space has two blocks.
    let blocks = blocks_between_restarts(n, width);
    let spaces = (products - 2).div_ceil(blocks);
    (2 + spaces * blocks) as f64 * block_work(form, width)
}

/// Returns the work of a product with a block, and of its Gram–Schmidt against half of the others, twice.
fn block_work(form: &dyn QuadraticForm, width: usize) -> f64 {
    let n = form.order();
    let width = width.min(n);
    let blocks = (blocks_between_restarts(n, width) + 1) as f64;
    let tall = TALL * 2.0 * blocks * width as f64 * pass_work(n * width);
    gradient_work(form, width) + tall
}

/// Returns the number of blocks in the Krylov space between restarts.
fn blocks_between_restarts(n: usize, width: usize) -> usize {
    (COLUMNS / width).min(ENTRIES / (n * width)).clamp(2, PRODUCTS).min(n / width)
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
    if n <= DENSE || 2 * width > n {
        let c = form.apply_while(Array2::eye(n).view(), threads, go_on)?;
        let (values, vectors) = linalg::symmetric_eigen(c.view());
        let (low, high) = (values[0], values[n - 1]);
        let x = vectors.slice(s![.., ..r]).to_owned();
        return Some((settled(form, x, low, high), (low, high), 0));
    }
    let blocks = blocks_between_restarts(n, width);
    let mut block = random(n, width, 0x6b72_796c);
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    let mut products = 0;
    let mut previous = f64::INFINITY;
    let mut best: Option<Array2<f64>> = None;
    loop {
        let so_far = |best: Option<Array2<f64>>| {
            let x = polar(&best?.slice(s![.., ..r]).to_owned());
            Some((settled(form, x, low, high), (low, high), products))
        };
        // A first space of two blocks gives a point early.
        let size = if best.is_some() { blocks } else { 2 };
        let Some(space) = Space::grown(form, block, size, threads, go_on) else {
            return so_far(best);
        };
        products += space.images.len();
        let small = compression(&space.basis, &space.images, go_on)?;
        let (values, vectors) = linalg::symmetric_eigen(small.view());
        if values.iter().any(|v| !v.is_finite()) {
            return Some((identity(n, r), (f64::NAN, f64::NAN), products));
        }
        low = low.min(values[0]);
        high = high.max(values[values.len() - 1]);
        let kept = width.min(values.len());
        let mut x = Array2::<f64>::zeros((n, kept));
        let mut from = 0;
        for part in &space.basis {
            let to = from + part.ncols();
            general_mat_mul(1.0, part, &vectors.slice(s![from..to, ..kept]), 1.0, &mut x);
            from = to;
            if !go_on() {
                return None;
            }
        }
        let sum: f64 = values.iter().take(r).sum();
        let found = (previous - sum).abs() <= TOLERANCE * (r as f64 * high - sum);
        if space.is_invariant || found || products >= most {
            let x = polar(&x.slice(s![.., ..r]).to_owned());
            return Some((settled(form, x, low, high), (low, high), products));
        }
        previous = sum;
        block = polar(&x);
        best = Some(x);
    }
}

/// A Krylov space: orthonormal blocks Q, and CQ.
struct Space {
    basis: Vec<Array2<f64>>,
    images: Vec<Array2<f64>>,
    /// True if C maps the space into itself.
    is_invariant: bool,
}

impl Space {
    /// Grows a space to `blocks` blocks from the first one; fewer if it is invariant before.
    fn grown(
        form: &dyn QuadraticForm,
        first: Array2<f64>,
        blocks: usize,
        threads: &Threads,
        go_on: GoOn<'_>,
    ) -> Option<Self> {
        let mut space = Self { basis: vec![first], images: Vec::with_capacity(blocks), is_invariant: false };
        loop {
            let last = space.basis[space.basis.len() - 1].view();
            let image = form.apply_while(last, threads, go_on)?;
            space.images.push(image.clone());
            if space.basis.len() == blocks {
                return Some(space);
            }
            let next = beside(&space.basis, image, go_on)?;
            if next.ncols() == 0 {
                space.is_invariant = true;
                return Some(space);
            }
            space.basis.push(next);
        }
    }
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

/// Returns an orthonormal basis of the part of `image` orthogonal to `basis`, perhaps of fewer columns.
fn beside(basis: &[Array2<f64>], image: Array2<f64>, go_on: GoOn<'_>) -> Option<Array2<f64>> {
    let sizes = largest_square(image.view());
    let mut rest = image;
    // Two passes are enough for orthogonality to rounding.
    for _ in 0..2 {
        for part in basis {
            if !go_on() {
                return None;
            }
            let overlap = part.t().dot(&rest);
            general_mat_mul(-1.0, part, &overlap, 1.0, &mut rest);
        }
        let (values, vectors) = linalg::symmetric_eigen(rest.t().dot(&rest).view());
        let kept: Vec<usize> = (0..values.len())
            .filter(|&k| values[k] > DEPENDENT * sizes && values[k] > f64::EPSILON * values[values.len() - 1])
            .collect();
        let mut scaled = Array2::zeros((values.len(), kept.len()));
        for (to, &k) in kept.iter().enumerate() {
            scaled.column_mut(to).assign(&(&vectors.column(k) / values[k].sqrt()));
        }
        rest = rest.dot(&scaled);
        if kept.is_empty() {
            break;
        }
    }
    Some(rest)
}

fn largest_square(a: ArrayView2<'_, f64>) -> f64 {
    let squares = a.columns().into_iter().map(|column| column.dot(&column));
    squares.fold(0.0, f64::max)
}

/// Returns QᵀCQ from the blocks of Q and C Q.
fn compression(basis: &[Array2<f64>], images: &[Array2<f64>], go_on: GoOn<'_>) -> Option<Array2<f64>> {
    let size = basis.iter().map(Array2::ncols).sum();
    let mut small = Array2::<f64>::zeros((size, size));
    let mut row = 0;
    for part in basis {
        let mut column = 0;
        for image in images {
            if !go_on() {
                return None;
            }
            let (height, width) = (part.ncols(), image.ncols());
            small.slice_mut(s![row..row + height, column..column + width]).assign(&part.t().dot(image));
            column += width;
        }
        row += part.ncols();
    }
    Some((&small + &small.t()) * 0.5)
}
