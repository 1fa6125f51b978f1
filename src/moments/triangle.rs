//! The upper triangle of a symmetric matrix in strips of rows, rectangles from the first diagonal entry on.

use std::ops::Range;
use std::sync::Arc;

use ndarray::Array2;

use super::product::PANEL;
use crate::threads::Threads;

/// Largest number of rows of a strip, the work unit of a thread.
pub(super) const HEIGHT: usize = 256;

/// Least number of strips, so that few entries below the diagonal are summed.
const STRIPS: usize = 4;

/// Least height of a strip.
const LEAST_HEIGHT: usize = 32;

/// Rows of a strip and their entries from the first diagonal entry on, row by row. Rows and columns are
/// padded with zeros to whole panels.
#[derive(Debug, Clone)]
pub(super) struct Strip {
    pub(super) rows: Range<usize>,
    pub(super) entries: Arc<Vec<f64>>,
}

impl Strip {
    /// Returns the length of a row, for a matrix of this order.
    pub(super) fn width(&self, order: usize) -> usize {
        order.next_multiple_of(PANEL) - self.rows.start
    }
}

/// Returns the rows of every strip of a triangle of this order.
pub(super) fn ranges(order: usize) -> impl Iterator<Item = Range<usize>> {
    let height = order.div_ceil(STRIPS).next_multiple_of(PANEL);
    let height = height.clamp(LEAST_HEIGHT, HEIGHT);
    (0..order).step_by(height).map(move |start| start..order.min(start + height))
}

/// Returns the rows of all given strips.
pub(super) fn covered(strips: &[Strip]) -> Range<usize> {
    let end = strips.last().map_or(0, |strip| strip.rows.end);
    strips.first().map_or(0, |strip| strip.rows.start)..end
}

/// Returns the strips that begin in a range of rows, as shared references to their entries.
pub(super) fn within(strips: &[Strip], rows: &Range<usize>) -> Vec<Strip> {
    let own = |strip: &&Strip| rows.contains(&strip.rows.start);
    strips.iter().filter(own).cloned().collect()
}

fn zero(rows: Range<usize>, order: usize) -> Strip {
    let mut strip = Strip { rows, entries: Arc::default() };
    let size = strip.rows.len().next_multiple_of(PANEL) * strip.width(order);
    strip.entries = Arc::new(vec![0.0; size]);
    strip
}

/// Returns a triangle of zeros.
pub(super) fn zeros(order: usize) -> Vec<Strip> {
    ranges(order).map(|rows| zero(rows, order)).collect()
}

/// Returns the diagonal.
pub(super) fn diagonal(strips: &[Strip], order: usize) -> Vec<f64> {
    let own = |strip: &Strip| {
        let width = strip.width(order);
        let entries = strip.entries.clone();
        (0..strip.rows.len()).map(move |i| entries[i * (width + 1)])
    };
    strips.iter().flat_map(own).collect()
}

/// Returns the triangle row by row, without the entries below the diagonal.
pub(super) fn packed(strips: &[Strip], order: usize) -> Vec<f64> {
    let mut out = Vec::with_capacity(order * (order + 1) / 2);
    for strip in strips {
        let length = order - strip.rows.start;
        let rows = strip.entries.chunks(strip.width(order));
        for (i, row) in rows.take(strip.rows.len()).enumerate() {
            out.extend_from_slice(&row[i..length]);
        }
    }
    out
}

/// Returns the strips of [`packed`] rows; None if these have another length or begin or end within a strip.
pub(super) fn unpacked(order: usize, rows: &Range<usize>, mut packed: &[f64]) -> Option<Vec<Strip>> {
    let count = |i: usize| i * (i + 1) / 2;
    let there = rows.start < rows.end && rows.end <= order;
    if !there || packed.len() != count(order - rows.start) - count(order - rows.end) {
        return None;
    }
    let own = |strip: &Range<usize>| rows.start <= strip.start && strip.end <= rows.end;
    let mut strips: Vec<Strip> = ranges(order).filter(own).map(|strip| zero(strip, order)).collect();
    if covered(&strips) != *rows {
        return None;
    }
    for strip in &mut strips {
        let (width, length) = (strip.width(order), order - strip.rows.start);
        let rows = Arc::make_mut(&mut strip.entries).chunks_mut(width);
        for (i, row) in rows.take(strip.rows.len()).enumerate() {
            let (own, rest) = packed.split_at(length - i);
            row[i..length].copy_from_slice(own);
            packed = rest;
        }
    }
    Some(strips)
}

/// Calls `body` for every strip, on all threads if `work` multiply-adds justify this.
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

/// Writes `−S/(d dᵀ)` for a symmetric S; `block` holds its `rows` from the diagonal block on, `width` apart.
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
