//! The upper triangle of a symmetric matrix, in strips of rows: each is a rectangle from its first diagonal entry on.

use std::ops::Range;
use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::reborrow::ReborrowMut;
use faer::{Accum, MatMut, MatRef, Par};
use ndarray::Array2;

use crate::Threads;

/// Rows of a strip, at most: what a thread works on at once. A product packs all columns once for each strip.
pub(super) const HEIGHT: usize = 256;

/// Rows of the pieces of a strip below which all of the diagonal block is multiplied.
const DIAGONAL: usize = 64;

/// Strips at least, so that little is summed below the diagonal; and their least height.
const STRIPS: usize = 4;
const LEAST_HEIGHT: usize = 32;

/// Rows of a strip and their entries from the first diagonal entry on, row by row.
#[derive(Debug, Clone)]
pub(super) struct Strip {
    pub(super) rows: Range<usize>,
    pub(super) entries: Arc<Vec<f64>>,
}

impl Strip {
    /// Number of columns of a matrix of this order.
    pub(super) fn width(&self, order: usize) -> usize {
        order - self.rows.start
    }
}

/// The rows of every strip of a triangle of this order.
pub(super) fn ranges(order: usize) -> impl Iterator<Item = Range<usize>> {
    let height = (order / STRIPS).clamp(LEAST_HEIGHT, HEIGHT);
    (0..order)
        .step_by(height)
        .map(move |start| start..order.min(start + height))
}

/// A triangle of zeros.
pub(super) fn zeros(order: usize) -> Vec<Strip> {
    let strip = |rows: Range<usize>| Strip {
        entries: Arc::new(vec![0.0; rows.len() * (order - rows.start)]),
        rows,
    };
    ranges(order).map(strip).collect()
}

/// The diagonal.
pub(super) fn diagonal(strips: &[Strip], order: usize) -> Vec<f64> {
    let own = |strip: &Strip| {
        let width = strip.width(order);
        let entries = strip.entries.clone();
        (0..strip.rows.len()).map(move |i| entries[i * (width + 1)])
    };
    strips.iter().flat_map(own).collect()
}

/// The triangle row by row, without the entries below the diagonal.
pub(super) fn packed(strips: &[Strip], order: usize) -> Vec<f64> {
    let mut out = Vec::with_capacity(order * (order + 1) / 2);
    for strip in strips {
        for (i, row) in strip.entries.chunks(strip.width(order)).enumerate() {
            out.extend_from_slice(&row[i..]);
        }
    }
    out
}

/// The strips of a [`packed`] triangle; None if it has another length.
pub(super) fn unpacked(order: usize, mut packed: &[f64]) -> Option<Vec<Strip>> {
    if packed.len() != order * (order + 1) / 2 {
        return None;
    }
    let mut strips = zeros(order);
    for strip in &mut strips {
        let width = order - strip.rows.start;
        for (i, row) in Arc::make_mut(&mut strip.entries)
            .chunks_mut(width)
            .enumerate()
        {
            let (own, rest) = packed.split_at(width - i);
            row[i..].copy_from_slice(own);
            packed = rest;
        }
    }
    Some(strips)
}

/// Changes every strip, on all threads if `work` multiply-adds are worth that.
pub(super) fn change(
    strips: &mut [Strip],
    work: usize,
    threads: &Threads,
    body: impl Fn(&Range<usize>, &mut [f64]) + Sync,
) {
    threads.for_chunks(strips, 1, work, |_, strip| {
        for Strip { rows, entries } in strip {
            body(rows, Arc::make_mut(entries).as_mut_slice());
        }
    });
}

/// Adds `AᵀB` to a matrix stored row by row, for the columns `of_a` and `of_b` of matrices stored row by row.
pub(super) fn add_product(
    sum: &mut [f64],
    (a, of_a): (MatRef<'_, f64>, Range<usize>),
    (b, of_b): (MatRef<'_, f64>, Range<usize>),
) {
    let (rows, columns) = (of_a.len(), of_b.len());
    let out = MatMut::from_row_major_slice_mut(sum, rows, columns);
    let a = a.subcols(of_a.start, rows).transpose();
    matmul(
        out,
        Accum::Add,
        a,
        b.subcols(of_b.start, columns),
        1.0,
        Par::Seq,
    );
}

/// Adds the part of `AᵀA` in the strip `own` that is not below the diagonal, for a matrix stored row by row; some of what is
/// below too.
pub(super) fn add_square(sum: &mut [f64], a: MatRef<'_, f64>, own: &Range<usize>) {
    let width = a.ncols() - own.start;
    let height = own.len();
    let out = MatMut::from_row_major_slice_mut(sum, height, width);
    let (diagonal, beyond) = out.split_at_col_mut(height);
    let a = a.subcols(own.start, width);
    let (first, others) = a.split_at_col(height);
    matmul(beyond, Accum::Add, first.transpose(), others, 1.0, Par::Seq);
    add_upper(diagonal, first, height);
}

/// Adds the first rows of `AᵀA`, as many as `out` has, by halves of the diagonal block.
fn add_upper(mut out: MatMut<'_, f64>, a: MatRef<'_, f64>, height: usize) {
    let top = if height > DIAGONAL {
        height / 2
    } else {
        height
    };
    let left = a.subcols(0, top).transpose();
    matmul(
        out.rb_mut().subrows_mut(0, top),
        Accum::Add,
        left,
        a,
        1.0,
        Par::Seq,
    );
    if top < height {
        let (rows, columns) = (height - top, a.ncols() - top);
        let rest = out.submatrix_mut(top, top, rows, columns);
        add_upper(rest, a.subcols(top, columns), rows);
    }
}

/// Writes `−S/(d dᵀ)` for a symmetric S whose rows `rows` are given from the diagonal block on, `width` apart.
pub(super) fn write_negative(
    out: &mut Array2<f64>,
    rows: Range<usize>,
    (block, width): (&[f64], usize),
    deviation: Option<&[f64]>,
) {
    let (n, start) = (out.ncols(), rows.start);
    let value = |i: usize, j: usize| {
        let sum = block[(i - start) * width + (j - start)];
        match deviation {
            Some(d) => -sum / (d[i] * d[j]),
            None => -sum,
        }
    };
    for i in rows.clone() {
        for j in i..n {
            out[[i, j]] = value(i, j);
        }
    }
    for j in start..n {
        for i in start..rows.end.min(j) {
            out[[j, i]] = value(i, j);
        }
    }
}
