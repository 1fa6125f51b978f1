//! Parts of a block: some of its rows are copied into another block, and the moves of such blocks are followed.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, s};

use super::Block;
use crate::linalg::add_product;
use crate::rows::{PIECE, rows_of};
use crate::threads::Threads;

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
        let (curvature, chunk) = (&self.curvature, PIECE * stride);
        let work = b * delta.len();
        threads.for_chunks(&mut self.gradient, chunk, work, |piece, target| {
            let (from, count) = (piece * PIECE, target.len() / stride);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::Signature;

    /// G + C ΔX D for one row, some rows and all rows of a block of several pieces.
    #[test]
    fn the_gradient_follows_rows_that_are_moved() {
        let (b, r) = (2 * PIECE + 3, 3);
        let entry = |i: usize, k: usize| ((7 * i + 11 * k) % 23) as f64 / 11.0 - 1.0;
        let of = |rows, columns, at: usize| Array2::from_shape_fn((rows, columns), |(i, k)| entry(i + at, k));
        let (x, g, new, c) = (of(b, r, 0), of(b, r, 1), of(b, r, 2), of(b, b, 3));
        let c = &c + &c.t();
        let metric = of(r, r, 4);
        let metric = &metric + &metric.t();
        let all: Vec<usize> = (0..b).collect();
        for case in 0..8 {
            let (moved, weighted) = ([1, b / 2, b - 10, b][case / 2], case % 2 == 1);
            let mut block = Block::new(r);
            block.set_signature(&Signature::stiefel(b), None);
            block.load(x.view(), &[], &all);
            block.curvature_mut().copy_from_slice(c.as_slice().unwrap());
            for (k, row) in g.outer_iter().enumerate() {
                block.gradient_row_mut(k).copy_from_slice(row.as_slice().unwrap());
            }
            // The last rows first, so that their order is not that of the block.
            let rows: Vec<usize> = (b - moved..b).rev().collect();
            let changes: Vec<_> = (rows.iter()).map(|&k| (k, new.slice(s![k, ..]).to_slice().unwrap())).collect();
            block.move_rows(&changes, weighted.then_some(metric.view()), &Threads::serial());
            let mut to = x.clone();
            for &k in &rows {
                to.row_mut(k).assign(&new.row(k));
            }
            let step = &to - &x;
            let step = if weighted { step.dot(&metric) } else { step };
            let expected = &g + &c.dot(&step);
            for k in 0..b {
                assert_eq!(block.row(k), to.row(k).to_slice().unwrap());
                assert_eq!(block.has_moved(k), rows.contains(&k));
                let kept = block.gradient_row(k).iter().zip(expected.row(k));
                assert!(kept.into_iter().all(|(a, b)| (a - b).abs() < 1e-11), "{moved} {k}");
            }
        }
    }
}
