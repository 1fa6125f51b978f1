//! P = cI − C of a quadratic form ½ tr(XᵀCX), by columns.

use crate::limits::TaskWork;
use crate::objective::{Columns, QuadraticForm};

/// P = cI − C.
pub(crate) struct Covariance<'a> {
    columns: Columns<'a>,
    diagonal: Vec<f64>,
}

impl<'a> Covariance<'a> {
    /// Creates P with `bytes` bytes for cached columns of a C that is not stored; None if f is not ½
    /// tr(XᵀCX), or the task expired.
    pub(crate) fn within(form: &'a dyn QuadraticForm, shift: f64, bytes: usize, work: &TaskWork<'_>) -> Option<Self> {
        if !form.is_trace_form() {
            return None;
        }
        let columns = Columns::new(form, bytes, &|| !work.expired())?;
        work.spend(columns.forming_work());
        let diagonal = columns.diagonal();
        Some(Self { diagonal: diagonal.iter().map(|v| -v + shift).collect(), columns })
    }

    pub(crate) fn order(&self) -> usize {
        self.diagonal.len()
    }

    pub(crate) fn diagonal(&self) -> &[f64] {
        &self.diagonal
    }

    /// Returns whether all columns are stored, so that any of them can be used at no extra cost.
    pub(crate) fn is_whole(&self) -> bool {
        self.columns.is_whole()
    }

    /// Returns the work of the first use of a column, beside the operations on it.
    pub(crate) fn first_use(&self) -> f64 {
        self.columns.first_use()
    }

    /// Appends P_ij for the j in `rows` to `target`.
    pub(crate) fn gather(&self, i: usize, rows: &[usize], target: &mut Vec<f64>) {
        let column = self.columns.column(i);
        let entry = |&j: &usize| if i == j { self.diagonal[j] } else { -column[j] };
        target.extend(rows.iter().map(entry));
    }

    /// Computes `target += factor · P_j`.
    pub(crate) fn add(&self, j: usize, factor: f64, target: &mut [f64]) {
        let own = target[j];
        let column = self.columns.column(j);
        target.iter_mut().zip(&*column).for_each(|(t, &c)| *t -= factor * c);
        target[j] = own + factor * self.diagonal[j];
    }
}

#[cfg(test)]
mod tests {
    use super::super::disjoint::Disjoint;
    use super::*;
    use crate::limits::Clock;
    use crate::objective::{DenseColumns, GoOn, GramQuadratic, Quadratic, Spectrum};
    use crate::start;
    use crate::threads::Threads;
    use ndarray::{Array2, ArrayView2};
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use std::time::Instant;

    /// A form that gives only products with C and the diagonal.
    struct Products(Quadratic<'static>);

    impl QuadraticForm for Products {
        fn order(&self) -> usize {
            self.0.order()
        }

        fn apply_while(&self, x: ArrayView2<'_, f64>, threads: &Threads, go_on: GoOn<'_>) -> Option<Array2<f64>> {
            self.0.apply_while(x, threads, go_on)
        }

        fn diagonal(&self) -> Vec<f64> {
            self.0.diagonal()
        }

        fn cache(&self) -> &Spectrum {
            self.0.cache()
        }
    }

    /// Returns the columns grown with `bytes` bytes for columns, and whether all columns were stored.
    fn selected(form: &dyn QuadraticForm, bytes: usize) -> (Array2<f64>, bool) {
        let clock = Clock::new(Instant::now(), None);
        let work = TaskWork::new(&clock, 1e9);
        let covariance = Covariance::within(form, 0.0, bytes, &work).unwrap();
        let mut state = Disjoint::empty(&covariance, 2, (0.01, false), 0.0, work.limit(1.0));
        state.grow_all();
        while state.goes_on() {
            state.regrow(&mut Xoshiro256PlusPlus::seed_from_u64(0));
        }
        (state.matrix(true), covariance.is_whole())
    }

    #[test]
    fn columns_that_are_computed_select_what_a_stored_matrix_does() {
        let a = start::random(60, 25, 1).reversed_axes() * 1.2;
        let stored = Quadratic::from_data(a.view()).unwrap();
        let (expected, whole) = selected(&stored, 0);
        assert!(whole && expected.iter().filter(|&&v| v != 0.0).count() > 4);
        for (bytes, all) in [(0, false), (5 * 60 * 8, false), (60 * 60 * 8, true)] {
            let (x, whole) = selected(&Products(stored.clone()), bytes);
            assert_eq!(whole, all);
            assert_eq!(x, expected, "{bytes}");
        }
    }

    #[test]
    fn forward_selection_needs_no_stored_matrix() {
        let n = 5000;
        let mut a = start::random(n, 12, 1).reversed_axes();
        // Six correlated features.
        for i in 0..12 {
            for k in 0..6 {
                a[[i, 700 * k]] += if i % 2 == 0 { 0.2 } else { -0.2 };
            }
        }
        let data = DenseColumns::new(a.view()).unwrap();
        let gram = GramQuadratic::new(data, -1.0, None).unwrap();
        let (x, whole) = selected(&gram, 8 * 4096 * 4096);
        assert!(!whole);
        assert!((0..6).all(|k| x.row(700 * k).iter().any(|&v| v != 0.0)));
    }
}
