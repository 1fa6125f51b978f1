//! Parts of a block: some of its rows are copied into another block, and the moves of such blocks are followed.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, s};

use super::Block;
use crate::linalg::add_product;
use crate::rows::rows_of;
use crate::threads::Threads;

/// Rows of the gradient that one thread updates at a time.
const CHUNK_ROWS: usize = 64;

/// Share of the rows above which the product takes all columns of C, of which none is copied.
const WHOLE_SHARE: f64 = 0.75;

impl Block {
    /// Takes rows of another block as they are now, by their positions in it, with their gradient and curvature.
    pub(crate) fn load_part(&mut self, whole: &Self, lead: Range<usize>, rest: Range<usize>) {
        let ranges = [lead.clone(), rest];
        let positions = || ranges.iter().cloned().flatten();
        self.resize(positions().map(|k| whole.rows[k]), lead.len());
        let (stride, b) = (self.stride, whole.len());
        for (k, of) in positions().enumerate() {
            let (to, from) = (k * stride..(k + 1) * stride, of * stride..(of + 1) * stride);
            self.x[to.clone()].copy_from_slice(&whole.x[from.clone()]);
            self.gradient[to].copy_from_slice(&whole.gradient[from]);
            self.zero[k] = whole.zero[of];
        }
        self.old.copy_from_slice(&self.x);
        let mut entries = self.curvature.as_mut_slice();
        for of in positions() {
            for range in &ranges {
                let (to, others) = entries.split_at_mut(range.len());
                to.copy_from_slice(&whole.curvature[of * b..][range.clone()]);
                entries = others;
            }
        }
    }

    /// Moves rows, given by their positions, to new values of r entries each; the gradient follows by
    /// `G += C_B ΔX D` with the column metric D.
    pub(crate) fn move_rows(
        &mut self,
        rows: &[(usize, &[f64])],
        metric: Option<ArrayView2<'_, f64>>,
        threads: &Threads,
    ) {
        let (b, r, stride) = (self.len(), self.r, self.stride);
        let whole = rows.len() as f64 > WHOLE_SHARE * b as f64;
        let mut delta = Array2::zeros((if whole { b } else { rows.len() }, stride));
        for (index, &(k, new)) in rows.iter().enumerate() {
            let x = &mut self.x[k * stride..][..r];
            let mut delta = delta.row_mut(if whole { k } else { index });
            for ((delta, x), &new) in delta.iter_mut().zip(&mut *x).zip(new) {
                *delta = new - *x;
                *x = new;
            }
            self.zero[k] = new.iter().all(|&v| v == 0.0);
            self.moved[k] = true;
        }
        if let Some(metric) = metric {
            let product = delta.slice(s![.., ..r]).dot(&metric);
            delta.slice_mut(s![.., ..r]).assign(&product);
        }
        let (curvature, chunk) = (&self.curvature, CHUNK_ROWS * stride);
        let work = b * delta.len();
        threads.for_chunks(&mut self.gradient, chunk, work, |piece, target| {
            let (from, count) = (piece * CHUNK_ROWS, target.len() / stride);
            if whole {
                let lines = ArrayView2::from_shape((count, b), &curvature[from * b..][..count * b]);
                return add_product(lines.expect("count rows of C"), delta.view(), target);
            }
            let mut panel = Vec::with_capacity(rows.len() * count);
            for &(k, _) in rows {
                panel.extend_from_slice(&curvature[k * b + from..][..count]);
            }
            let panel = rows_of(&mut panel, count);
            add_product(panel.t(), delta.view(), target);
        });
    }
}
