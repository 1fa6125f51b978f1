//! Columns of C for any n.
//!
//! A stored C is read in place; a C that fits into the given memory is formed by products with unit vectors;
//! of a larger C the columns used last are cached.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use ndarray::{Array2, s};

use super::{GoOn, QuadraticForm, SparseVector, column_work, gradient_work, pass_work, sparse_product_work};
use crate::rows::{PIECE, Rows};
use crate::threads::{Threads, locked};

/// Largest order at which C is formed for sparse products.
const FORMED: usize = 1024;

/// Access to the columns of C, from any thread.
pub struct Columns<'a> {
    form: &'a dyn QuadraticForm,
    source: Source<'a>,
    /// Number of columns that fit into the given memory, and work of a column that is not stored.
    capacity: usize,
    first_use: f64,
}

enum Source<'a> {
    /// C by rows.
    Stored(&'a [f64]),
    /// C by rows, formed.
    Formed(Rows),
    Recent(Mutex<Recent>),
}

/// The columns used last, each with the time of its last use.
#[derive(Default)]
struct Recent {
    columns: HashMap<usize, (u64, Arc<Vec<f64>>)>,
    now: u64,
}

/// A column of C.
#[derive(Debug, Clone)]
pub enum Column<'a> {
    /// A view of a stored or formed C.
    Whole(&'a [f64]),
    /// A cached column.
    Kept(Arc<Vec<f64>>),
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
    /// Columns of C in at most `bytes` of memory (at least one column); None if `go_on` returns false.
    pub fn new(form: &'a dyn QuadraticForm, bytes: usize, go_on: GoOn<'_>) -> Option<Self> {
        let n = form.order();
        let capacity = (bytes / (n * size_of::<f64>()).max(1)).max(1);
        let source = match form.dense().and_then(|c| c.to_slice()) {
            Some(c) => Source::Stored(c),
            None if capacity >= n => Source::Formed(formed(form, go_on)?),
            None => Source::Recent(Mutex::default()),
        };
        Some(Self {
            first_use: match source {
                Source::Stored(_) | Source::Formed(_) => 0.0,
                Source::Recent(_) => column_work(form),
            },
            form,
            source,
            capacity,
        })
    }

    /// Access to C by sparse products and entries: a stored C, a C that is formed in at most `bytes` of memory if its
    /// columns are cheaper than the products with data that they replace, or the form itself. None if `go_on` returns
    /// false.
    pub(crate) fn cheapest(form: &'a dyn QuadraticForm, bytes: usize, go_on: GoOn<'_>) -> Option<Self> {
        let (n, samples) = (form.order(), form.samples());
        let is_formed = n <= FORMED && (samples == 0 || n <= samples);
        Self::new(form, if is_formed { bytes } else { 0 }, go_on)
    }

    /// Returns whether all of C is stored, so that a column costs no more than reading it.
    pub fn is_whole(&self) -> bool {
        !matches!(self.source, Source::Recent(_))
    }

    /// Returns the work of forming C, if it was formed.
    pub(crate) fn forming_work(&self) -> f64 {
        match self.source {
            Source::Formed(_) => self.form.order() as f64 / PIECE as f64 * gradient_work(self.form, PIECE),
            _ => 0.0,
        }
    }

    /// Returns the work of computing a column that is not cached, without reading it. Counted work must not
    /// depend on the requests of other threads, so callers do not ask whether a column is cached.
    pub(crate) fn first_use(&self) -> f64 {
        self.first_use
    }

    /// Adds C v to the target (n entries) of each sparse vector v.
    pub(crate) fn add_products(&self, vectors: &[SparseVector<'_>], targets: &mut [&mut [f64]]) {
        if !self.is_whole() {
            return self.form.add_products(vectors, targets);
        }
        for ((rows, values), target) in vectors.iter().zip(targets) {
            for (&i, &v) in rows.iter().zip(*values) {
                let column = self.column(i);
                target.iter_mut().zip(&*column).for_each(|(t, &c)| *t += v * c);
            }
        }
    }

    /// Returns the work of C v for a v with `nonzeros` nonzeros.
    pub(crate) fn product_work(&self, nonzeros: usize) -> f64 {
        match self.is_whole() {
            true => 2.0 * nonzeros as f64 * pass_work(self.form.order()),
            false => sparse_product_work(self.form, nonzeros),
        }
    }

    /// Returns the work of an entry of C, without reading it.
    pub(crate) fn entry_work(&self) -> f64 {
        match self.is_whole() {
            true => 0.0,
            false => self.form.column_work() / self.form.order() as f64,
        }
    }

    /// Returns C_ij.
    pub(crate) fn entry(&self, i: usize, j: usize) -> f64 {
        match self.is_whole() {
            true => self.column(i)[j],
            false => self.form.entry(i, j),
        }
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

    /// Returns the entries of C in these rows and columns; None if `go_on` returns false.
    pub(crate) fn principal(&self, rows: &[usize], go_on: GoOn<'_>) -> Option<Array2<f64>> {
        if !self.is_whole() {
            return self.form.principal(rows, go_on);
        }
        let mut c = Array2::zeros((rows.len(), rows.len()));
        for (&i, mut row) in rows.iter().zip(c.rows_mut()) {
            let column = self.column(i);
            row.iter_mut().zip(rows).for_each(|(v, &j)| *v = column[j]);
        }
        Some(c)
    }

    /// Returns the diagonal of C.
    pub fn diagonal(&self) -> Vec<f64> {
        if self.is_whole() { (0..self.form.order()).map(|j| self.column(j)[j]).collect() } else { self.form.diagonal() }
    }

    fn kept(&self, recent: &Mutex<Recent>, j: usize) -> Arc<Vec<f64>> {
        if let Some(column) = locked(recent).get(j) {
            return column;
        }
        let mut column = vec![0.0; self.form.order()];
        self.form.column(j, &mut column);
        locked(recent).keep(j, Arc::new(column), self.capacity)
    }
}

impl Recent {
    fn get(&mut self, j: usize) -> Option<Arc<Vec<f64>>> {
        self.now += 1;
        let (used, column) = self.columns.get_mut(&j)?;
        *used = self.now;
        Some(Arc::clone(column))
    }

    /// Caches column `j`. A cache of `most` columns first drops the least recently used one.
    fn keep(&mut self, j: usize, column: Arc<Vec<f64>>, most: usize) -> Arc<Vec<f64>> {
        if self.columns.len() >= most {
            let oldest = self.columns.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(&k, _)| k) {
                self.columns.remove(&oldest);
            }
        }
        self.columns.insert(j, (self.now, Arc::clone(&column)));
        column
    }
}

/// Forms C, `PIECE` columns per product.
fn formed(form: &dyn QuadraticForm, go_on: GoOn<'_>) -> Option<Rows> {
    let n = form.order();
    let serial = Threads::serial();
    let mut c = Array2::zeros((n, n));
    for from in (0..n).step_by(PIECE) {
        let width = PIECE.min(n - from);
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

    /// Returns a 20×30 matrix in which half of the entries are zero, dense and sparse.
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
                // The sums of a dense A are in another order than those of a product with a block.
                let close = |(c, e): (&f64, &f64)| (c - e).abs() < 1e-14;
                for columns in [&whole, &few] {
                    assert!(columns.column(j).iter().zip(&exact).all(close));
                }
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
    fn columns_of_centred_sparse_data_are_products() {
        let (a, sparse) = data();
        let n = a.ncols();
        for mean in [None, a.mean_axis(ndarray::Axis(0))] {
            let form = GramQuadratic::new(sparse.clone(), -0.7, mean).unwrap();
            let products = form.apply(Array2::eye(n).view(), &Threads::serial());
            let mut column = vec![0.0; n];
            for (j, product) in products.columns().into_iter().enumerate() {
                form.column(j, &mut column);
                let close = |(c, e): (&f64, &f64)| (c - e).abs() < 1e-13;
                assert!(column.iter().zip(product).all(close), "{j}");
            }
        }
    }

    #[test]
    fn a_stored_matrix_is_read_in_place() {
        let quadratic = Quadratic::from_data(data().0.view()).unwrap();
        let columns = Columns::new(&quadratic, 0, &|| true).unwrap();
        let stored = quadratic.matrix();
        assert!(std::ptr::eq(columns.column(3).as_ptr(), stored.row(3).as_ptr()));
    }
}
