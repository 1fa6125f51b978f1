//! Columns of C at every n.
//!
//! A stored C is read in place; one that fits into the memory is formed by products with unit vectors; of a larger one
//! the columns used last are kept.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use ndarray::{Array2, s};

use super::{GoOn, QuadraticForm};
use crate::rows::Rows;
use crate::threads::Threads;

/// Columns formed by one product.
const PANEL: usize = 64;

/// Access to the columns of C, from any thread.
pub struct Columns<'a> {
    form: &'a dyn QuadraticForm,
    source: Source<'a>,
}

enum Source<'a> {
    /// C by rows.
    Stored(&'a [f64]),
    /// The same, formed.
    Formed(Rows),
    Recent(Mutex<Recent>),
}

/// The columns used last, each with the time of its last use.
struct Recent {
    columns: HashMap<usize, (u64, Arc<[f64]>)>,
    capacity: usize,
    now: u64,
}

/// A column of C.
#[derive(Debug, Clone)]
pub enum Column<'a> {
    /// Where C is at hand.
    Whole(&'a [f64]),
    /// One of the columns that are kept.
    Kept(Arc<[f64]>),
}

impl Deref for Column<'_> {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        match self {
            Self::Whole(column) => column,
            Self::Kept(column) => column,
        }
    }
}

impl<'a> Columns<'a> {
    /// Columns of C in at most `bytes` of memory (but one column at least); None if `go_on` says no on the way.
    pub fn new(form: &'a dyn QuadraticForm, bytes: usize, go_on: GoOn<'_>) -> Option<Self> {
        let n = form.order();
        let capacity = bytes / (n * size_of::<f64>()).max(1);
        let source = match form.dense().and_then(|c| c.to_slice()) {
            Some(c) => Source::Stored(c),
            None if capacity >= n => Source::Formed(formed(form, go_on)?),
            None => Source::Recent(Mutex::new(Recent {
                columns: HashMap::new(),
                capacity: capacity.max(1),
                now: 0,
            })),
        };
        Some(Self { form, source })
    }

    /// Whether all of C is at hand, so that a column costs no more than reading it.
    pub fn is_whole(&self) -> bool {
        !matches!(self.source, Source::Recent(_))
    }

    /// Column `j`.
    #[inline]
    pub fn column(&self, j: usize) -> Column<'_> {
        let n = self.form.order();
        match &self.source {
            Source::Stored(c) => Column::Whole(&c[j * n..(j + 1) * n]),
            Source::Formed(c) => Column::Whole(c.row_slice(j)),
            Source::Recent(recent) => Column::Kept(self.kept(recent, j)),
        }
    }

    /// Diagonal of C.
    pub fn diagonal(&self) -> Vec<f64> {
        if self.is_whole() {
            (0..self.form.order()).map(|j| self.column(j)[j]).collect()
        } else {
            self.form.diagonal()
        }
    }

    fn kept(&self, recent: &Mutex<Recent>, j: usize) -> Arc<[f64]> {
        let locked = || recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(column) = locked().get(j) {
            return column;
        }
        let mut column = vec![0.0; self.form.order()];
        self.form.column(j, &mut column);
        locked().keep(j, column.into())
    }
}

impl Recent {
    fn get(&mut self, j: usize) -> Option<Arc<[f64]>> {
        self.now += 1;
        let (used, column) = self.columns.get_mut(&j)?;
        *used = self.now;
        Some(Arc::clone(column))
    }

    fn keep(&mut self, j: usize, column: Arc<[f64]>) -> Arc<[f64]> {
        if self.columns.len() >= self.capacity {
            let oldest = self.columns.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(&k, _)| k) {
                self.columns.remove(&oldest);
            }
        }
        self.columns.insert(j, (self.now, Arc::clone(&column)));
        column
    }
}

/// C, some columns at a time.
fn formed(form: &dyn QuadraticForm, go_on: GoOn<'_>) -> Option<Rows> {
    let n = form.order();
    let serial = Threads::serial();
    let mut c = Array2::zeros((n, n));
    for from in (0..n).step_by(PANEL) {
        let width = PANEL.min(n - from);
        let units = Array2::from_shape_fn((n, width), |(i, k)| f64::from(u8::from(i == from + k)));
        let columns = form.apply_while(units.view(), &serial, go_on)?;
        c.slice_mut(s![.., from..from + width]).assign(&columns);
    }
    Some(Rows::from(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::{DenseColumns, GramQuadratic, Quadratic, SparseColumns};
    use crate::start;

    /// Half of the entries of a 20×30 matrix, and the same by columns.
    fn data() -> (Array2<f64>, SparseColumns) {
        let mut a = start::random(30, 20, 1).reversed_axes();
        let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for (k, mut column) in a.columns_mut().into_iter().enumerate() {
            for (i, v) in column.iter_mut().enumerate() {
                if (i + k) % 2 == 0 {
                    indices.push(i as u32);
                    values.push(*v);
                } else {
                    *v = 0.0;
                }
            }
            starts.push(values.len());
        }
        (a, SparseColumns::new(20, starts, indices, values).unwrap())
    }

    #[test]
    fn every_source_has_the_same_columns() {
        let (a, sparse) = data();
        let n = a.ncols();
        let bytes = |columns: usize| columns * n * size_of::<f64>();
        let quadratic = Quadratic::from_data(a.view()).unwrap();
        let dense = DenseColumns::new(a.view()).unwrap();
        let forms: [&dyn QuadraticForm; 3] = [
            &quadratic,
            &GramQuadratic::new(dense, -1.0, None).unwrap(),
            &GramQuadratic::new(sparse, -1.0, None).unwrap(),
        ];
        for form in forms {
            let whole = Columns::new(form, bytes(n), &|| true).unwrap();
            let few = Columns::new(form, bytes(3), &|| true).unwrap();
            assert!(whole.is_whole());
            assert_eq!(few.is_whole(), form.dense().is_some());
            for j in (0..n).chain([n - 1, 0, n - 2, n - 1]) {
                let exact = quadratic.matrix().column(j).to_owned();
                assert_eq!(*whole.column(j), *few.column(j));
                let close = |(c, e): (&f64, &f64)| (c - e).abs() < 1e-14;
                assert!(few.column(j).iter().zip(&exact).all(close));
            }
            if let Source::Recent(recent) = &few.source {
                let recent = recent.lock().unwrap();
                let mut kept: Vec<usize> = recent.columns.keys().copied().collect();
                kept.sort_unstable();
                assert_eq!(kept, [0, n - 2, n - 1], "those used last");
            }
        }
    }

    #[test]
    fn a_stored_matrix_is_read_in_place() {
        let quadratic = Quadratic::from_data(data().0.view()).unwrap();
        let columns = Columns::new(&quadratic, 0, &|| true).unwrap();
        let stored = quadratic.matrix();
        assert!(std::ptr::eq(
            columns.column(3).as_ptr(),
            stored.row(3).as_ptr()
        ));
    }
}
