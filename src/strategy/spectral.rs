//! Approximate eigenvectors of C for its smallest eigenvalues, from a block Krylov space that is
//! restarted: good enough to start from.
//!
//! Made of pieces of a few hundredths of a second, between which the clock is looked at: products,
//! and block Gram–Schmidt by Gram matrices in place of QR decompositions.

use ndarray::{Array2, ArrayView2, s};

use crate::budget::Task;
use crate::linalg;
use crate::manifold::polar;
use crate::objective::QuadraticForm;
use crate::start;
use crate::threads::Threads;

/// Up to this n the spectrum is computed.
const DENSE: usize = 400;

/// Products with a block; blocks in the space between restarts, at most, and their columns, and entries.
const PRODUCTS: usize = 10;
const COLUMNS: usize = 320;
const ENTRIES: usize = 12_000_000;

/// Columns beyond r.
const MORE: usize = 8;

/// Square of the relative length below which a direction lies in the space already.
const DEPENDENT: f64 = 1e-20;

/// Relative spread of the eigenvalues up to which they are equal.
const EQUAL: f64 = 1e-13;

/// X, and about the extreme eigenvalues of C; None if the time is up.
pub(super) fn spectral(
    form: &dyn QuadraticForm,
    r: usize,
    threads: &Threads,
    task: &Task<'_>,
) -> Option<(Array2<f64>, (f64, f64))> {
    let n = form.order();
    let go_on = || !task.expired();
    let width = (r + MORE).min(n);
    if n <= DENSE || 2 * width > n {
        let c = form.apply_while(Array2::eye(n).view(), threads, &go_on)?;
        let (values, vectors) = linalg::symmetric_eigen(c.view());
        let (low, high) = (values[0], values[n - 1]);
        let x = vectors.slice(s![.., ..r]).to_owned();
        return Some((settled(form, x, low, high), (low, high)));
    }
    let blocks = (COLUMNS / width)
        .min(ENTRIES / (n * width))
        .clamp(2, PRODUCTS)
        .min(n / width);
    let mut block = start::random(n, width, 0x6b72_796c);
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    let mut products = 0;
    loop {
        let mut basis = vec![block];
        let mut images: Vec<Array2<f64>> = Vec::with_capacity(blocks);
        let mut invariant = false;
        loop {
            let last = basis[basis.len() - 1].view();
            let image = form.apply_while(last, threads, &go_on)?;
            products += 1;
            images.push(image.clone());
            if basis.len() == blocks {
                break;
            }
            let next = beside(&basis, image, task)?;
            if next.ncols() == 0 {
                invariant = true;
                break;
            }
            basis.push(next);
        }
        let (values, vectors) = linalg::symmetric_eigen(compression(&basis, &images, task)?.view());
        if values.iter().any(|v| !v.is_finite()) {
            return Some((start::identity(n, r), (f64::NAN, f64::NAN)));
        }
        low = low.min(values[0]);
        high = high.max(values[values.len() - 1]);
        let kept = width.min(values.len());
        let mut x = Array2::<f64>::zeros((n, kept));
        let mut from = 0;
        for part in &basis {
            let to = from + part.ncols();
            x += &part.dot(&vectors.slice(s![from..to, ..kept]));
            from = to;
            if task.expired() {
                return None;
            }
        }
        if invariant || products >= PRODUCTS {
            let x = polar(&x.slice(s![.., ..r]).to_owned());
            return Some((settled(form, x, low, high), (low, high)));
        }
        block = polar(&x);
    }
}

/// X, or what is better where all eigenvalues are equal: the minimiser of the linear term.
fn settled(form: &dyn QuadraticForm, x: Array2<f64>, low: f64, high: f64) -> Array2<f64> {
    if high - low > EQUAL * high.abs().max(low.abs()) {
        return x;
    }
    match form.linear() {
        Some(linear) => linalg::polar_factor((-&linear).view()),
        None => start::identity(x.nrows(), x.ncols()),
    }
}

/// An orthonormal basis of what the columns of `image` have beside `basis`, perhaps fewer columns.
fn beside(basis: &[Array2<f64>], image: Array2<f64>, task: &Task<'_>) -> Option<Array2<f64>> {
    let sizes = largest_square(image.view());
    let mut rest = image;
    // Twice is enough for orthogonality to rounding.
    for _ in 0..2 {
        for part in basis {
            if task.expired() {
                return None;
            }
            let overlap = part.t().dot(&rest);
            rest -= &part.dot(&overlap);
        }
        let (values, vectors) = linalg::symmetric_eigen(rest.t().dot(&rest).view());
        let kept: Vec<usize> = (0..values.len())
            .filter(|&k| {
                values[k] > DEPENDENT * sizes && values[k] > f64::EPSILON * values[values.len() - 1]
            })
            .collect();
        let mut scaled = Array2::zeros((values.len(), kept.len()));
        for (to, &k) in kept.iter().enumerate() {
            scaled
                .column_mut(to)
                .assign(&(&vectors.column(k) / values[k].sqrt()));
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

/// QᵀCQ from the blocks of Q and C Q.
fn compression(
    basis: &[Array2<f64>],
    images: &[Array2<f64>],
    task: &Task<'_>,
) -> Option<Array2<f64>> {
    let size = basis.iter().map(Array2::ncols).sum();
    let mut small = Array2::<f64>::zeros((size, size));
    let mut row = 0;
    for part in basis {
        let mut column = 0;
        for image in images {
            if task.expired() {
                return None;
            }
            let (height, width) = (part.ncols(), image.ncols());
            small
                .slice_mut(s![row..row + height, column..column + width])
                .assign(&part.t().dot(image));
            column += width;
        }
        row += part.ncols();
    }
    Some((&small + &small.t()) * 0.5)
}
