//! Matrices whose rows are slices, and vectors of any layout as slices. Code that works on slices gets them from this
//! module, so that arrays of every layout work.

use std::borrow::Cow;
use std::ops::{Deref, Index, IndexMut};

use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis};

/// Rows and columns of a piece of a matrix that fits into the cache, and rows of a parallel piece of few rows.
pub(crate) const PIECE: usize = 64;

/// Rows or columns of a product that is formed in parts.
pub(crate) const PANEL: usize = 128;

/// The guarantee of the type, for the message of a panic.
const STANDARD: &str = "a matrix in standard layout";

/// A matrix stored row by row without gaps: the whole is a slice, and so is every row.
#[derive(Debug, Clone)]
pub(crate) struct Rows(Array2<f64>);

impl Rows {
    /// All zero.
    pub(crate) fn zeros(dim: (usize, usize)) -> Self {
        Self(Array2::zeros(dim))
    }

    /// A copy of a matrix stored in any way.
    pub(crate) fn copied(a: ArrayView2<'_, f64>) -> Self {
        Self(Array2::from_shape_vec(a.dim(), entries_of(a)).expect(STANDARD))
    }

    /// All entries, row by row.
    #[inline(always)]
    pub(crate) fn entries_mut(&mut self) -> &mut [f64] {
        self.0.as_slice_mut().expect(STANDARD)
    }

    /// All entries, row by row.
    #[inline(always)]
    pub(crate) fn entries(&self) -> &[f64] {
        self.0.as_slice().expect(STANDARD)
    }

    /// Row `i`.
    #[inline(always)]
    pub(crate) fn row_slice(&self, i: usize) -> &[f64] {
        let columns = self.0.ncols();
        &self.entries()[i * columns..(i + 1) * columns]
    }

    /// Row `i`.
    #[inline(always)]
    pub(crate) fn row_slice_mut(&mut self, i: usize) -> &mut [f64] {
        let columns = self.0.ncols();
        &mut self.entries_mut()[i * columns..(i + 1) * columns]
    }

    /// Returns a view to write entries, which cannot change the layout.
    pub(crate) fn view_mut(&mut self) -> ArrayViewMut2<'_, f64> {
        self.0.view_mut()
    }

    /// All entries, row by row.
    pub(crate) fn into_entries(self) -> Vec<f64> {
        let count = self.0.len();
        let (mut entries, from) = self.0.into_raw_vec_and_offset();
        // Of an array that was cut from a larger one.
        entries.drain(..from.unwrap_or(0));
        entries.truncate(count);
        entries
    }

    /// The same entries as an array in standard layout.
    pub(crate) fn into_array(self) -> Array2<f64> {
        self.0
    }
}

/// Copies the entries if the array is stored in another way.
impl From<Array2<f64>> for Rows {
    fn from(a: Array2<f64>) -> Self {
        if a.is_standard_layout() { Self(a) } else { Self::copied(a.view()) }
    }
}

/// Gives the array to read only, because a shared array cannot change its layout.
impl Deref for Rows {
    type Target = Array2<f64>;

    fn deref(&self) -> &Array2<f64> {
        &self.0
    }
}

impl Index<[usize; 2]> for Rows {
    type Output = f64;

    #[inline(always)]
    fn index(&self, at: [usize; 2]) -> &f64 {
        &self.0[at]
    }
}

impl IndexMut<[usize; 2]> for Rows {
    #[inline(always)]
    fn index_mut(&mut self, at: [usize; 2]) -> &mut f64 {
        &mut self.0[at]
    }
}

/// Returns the entries of a matrix stored in any way, row by row; it is read in square pieces that fit into the cache.
fn entries_of(a: ArrayView2<'_, f64>) -> Vec<f64> {
    let (m, n) = a.dim();
    if n == 1 || a.strides()[1] == 1 {
        let mut out = Vec::with_capacity(m * n);
        a.outer_iter().for_each(|row| out.extend(row));
        return out;
    }
    let mut out = vec![0.0; m * n];
    for (a, out) in a.axis_chunks_iter(Axis(0), PIECE).zip(out.chunks_mut((PIECE * n).max(1))) {
        for first in (0..n).step_by(PIECE) {
            let columns = first..n.min(first + PIECE);
            for (row, out) in a.outer_iter().zip(out.chunks_mut(n)) {
                columns.clone().for_each(|j| out[j] = row[j]);
            }
        }
    }
    out
}

/// Rows of `columns` entries each, one after the other, as a matrix.
pub(crate) fn rows_of(entries: &mut [f64], columns: usize) -> ArrayViewMut2<'_, f64> {
    let rows = entries.len().checked_div(columns).unwrap_or(0);
    ArrayViewMut2::from_shape((rows, columns), entries).expect(STANDARD)
}

/// A vector as a slice: itself, or a copy if it is stored with gaps.
pub(crate) fn slice_of(x: ArrayView1<'_, f64>) -> Cow<'_, [f64]> {
    x.to_slice().map_or_else(|| x.to_vec().into(), Into::into)
}

/// Changes a vector as a slice: in place, or through a copy if it is stored with gaps.
pub(crate) fn change<T>(mut x: ArrayViewMut1<'_, f64>, change: impl FnOnce(&mut [f64]) -> T) -> T {
    if let Some(slice) = x.as_slice_mut() {
        return change(slice);
    }
    let mut copy = x.to_vec();
    let out = change(&mut copy);
    x.assign(&ArrayView1::from(&copy));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::s;

    #[test]
    fn every_layout_gives_the_same_rows() {
        let standard = Array2::from_shape_fn((3, 4), |(i, j)| (10 * i + j) as f64);
        let fortran = standard.t().as_standard_layout().into_owned().reversed_axes();
        assert!(!fortran.is_standard_layout());
        let mut backwards = standard.clone();
        backwards.invert_axis(ndarray::Axis(1));
        for (a, expected) in [(fortran.clone(), [10.0, 11.0, 12.0, 13.0]), (backwards, [13.0, 12.0, 11.0, 10.0])] {
            let mut rows = Rows::from(a);
            assert_eq!(rows.row_slice(1), expected);
            rows.row_slice_mut(1)[2] = 7.0;
            assert_eq!(rows[[1, 2]], 7.0);
        }
        let cut = standard.clone().slice_move(s![1..2, ..]);
        assert_eq!(Rows::from(cut).into_entries(), [10.0, 11.0, 12.0, 13.0]);
        assert_eq!(*slice_of(fortran.row(2)), [20.0, 21.0, 22.0, 23.0]);
        let mut changed = fortran;
        change(changed.slice_mut(s![2, ..;2]), |x| x[1] = 5.0);
        assert_eq!(changed.row(2).to_vec(), [20.0, 21.0, 5.0, 23.0]);
    }
}
