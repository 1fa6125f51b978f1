//! Nonnegative columns from a few products: rows belong to rays.
//!
//! For X ≥ 0 the supports are disjoint, so each row has one column. With y_t = −∇f of column t, divided by the
//! norm of A x_t, a row belongs to the column with the largest y_it > 0, and x_t becomes these y_it, normalised.
//! The image A x_t / ‖A x_t‖ is a ray in sample space; rows with a large inner product with it move it on.

use ndarray::{Array2, Axis};

use crate::limits::TaskWork;
use crate::objective::{QuadraticForm, gradient_work};
use crate::threads::Threads;

/// Largest number of products.
const PRODUCTS: usize = 100;

/// Relative decrease of f at which the products end.
const ENOUGH: f64 = 1e-4;

/// Returns the best X ≥ 0 with orthonormal columns of some products from Y (n×r), for f = ½ tr(XᵀCX) with C
/// negative semidefinite; None if there is none.
pub(crate) fn rays(form: &dyn QuadraticForm, mut y: Array2<f64>, work: &TaskWork<'_>) -> Option<Array2<f64>> {
    let (serial, go_on) = (Threads::serial(), || !work.expired());
    let mut best: Option<(f64, Array2<f64>)> = None;
    let mut before = 0.0;
    for product in 0..PRODUCTS {
        let Some(x) = owned(&y) else {
            break;
        };
        work.spend(gradient_work(form, y.ncols()));
        let Some(image) = form.apply_while(x.view(), &serial, &go_on) else {
            break;
        };
        let squares: Vec<f64> = (x.columns().into_iter().zip(image.columns())).map(|(x, y)| -x.dot(&y)).collect();
        let value = -0.5 * squares.iter().sum::<f64>();
        if best.as_ref().is_none_or(|best| value < best.0) {
            best = Some((value, x));
        }
        if product % 2 == 1 {
            if !(before - value > ENOUGH * value.abs()) {
                break;
            }
            before = value;
        }
        y = image;
        for (mut y, square) in y.columns_mut().into_iter().zip(squares) {
            y *= -1.0 / square.sqrt().max(f64::MIN_POSITIVE);
        }
    }
    best.map(|best| best.1)
}

/// Returns X in which each row belongs to the column of its largest positive y; None if a column has no row.
fn owned(y: &Array2<f64>) -> Option<Array2<f64>> {
    let mut x = Array2::zeros(y.dim());
    for (row, mut target) in y.outer_iter().zip(x.outer_iter_mut()) {
        let (owner, largest) =
            (row.iter().enumerate()).fold((0, 0.0), |best, (t, &v)| if v > best.1 { (t, v) } else { best });
        target[owner] = largest;
    }
    for mut column in x.axis_iter_mut(Axis(1)) {
        let norm = column.dot(&column).sqrt();
        if !(norm > 0.0) {
            return None;
        }
        column /= norm;
    }
    Some(x)
}
