//! The upper triangle of a symmetric matrix in strips of rows, rectangles from the first diagonal entry on.

use std::ops::Range;
use std::sync::Arc;

use ndarray::Array2;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::are_finite;
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
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Strip {
    pub(super) rows: Range<usize>,
    #[serde(serialize_with = "write_entries", deserialize_with = "read_entries")]
    pub(super) entries: Arc<Vec<f64>>,
}

fn write_entries<S: Serializer>(entries: &Arc<Vec<f64>>, to: S) -> Result<S::Ok, S::Error> {
    entries.as_slice().serialize(to)
}

fn read_entries<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<Vec<f64>>, D::Error> {
    Vec::deserialize(from).map(Arc::new)
}

impl Strip {
    /// Returns the length of a row, for a matrix of this order.
    pub(super) fn width(&self, order: usize) -> usize {
        order.next_multiple_of(PANEL) - self.rows.start
    }

    /// Returns the number of entries.
    fn size(&self, order: usize) -> usize {
        self.rows.len().next_multiple_of(PANEL) * self.width(order)
    }

    /// Writes `−S/(d dᵀ)` for the rows of a symmetric S that the strip holds, and for its columns.
    pub(super) fn write_negative(&self, out: &mut Array2<f64>, deviation: Option<&[f64]>) {
        let (n, start, width) = (out.ncols(), self.rows.start, self.width(out.ncols()));
        let value = |i: usize, j: usize| {
            let sum = self.entries[(i - start) * width + (j - start)];
            match deviation {
                Some(d) => -sum / (d[i] * d[j]),
                None => -sum,
            }
        };
        for i in self.rows.clone() {
            for j in i..n {
                out[[i, j]] = value(i, j);
            }
        }
        for j in start..n {
            for i in start..self.rows.end.min(j) {
                out[[j, i]] = value(i, j);
            }
        }
    }
}

/// Returns the rows of every strip of a triangle of this order.
pub(super) fn ranges(order: usize) -> impl Iterator<Item = Range<usize>> {
    let height = order.div_ceil(STRIPS).next_multiple_of(PANEL);
    let height = height.clamp(LEAST_HEIGHT, HEIGHT);
    (0..order).step_by(height).map(move |start| start..order.min(start + height))
}

pub(super) fn zero(rows: Range<usize>, order: usize) -> Strip {
    let mut strip = Strip { rows, entries: Arc::default() };
    strip.entries = Arc::new(vec![0.0; strip.size(order)]);
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

/// Returns whether these are no strips or all of the triangle of this order, with finite entries.
pub(super) fn are_strips(strips: &[Strip], order: usize) -> bool {
    strips.is_empty()
        || strips.iter().map(|strip| strip.rows.clone()).eq(ranges(order))
            && strips.iter().all(|strip| strip.entries.len() == strip.size(order) && are_finite(&strip.entries))
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
