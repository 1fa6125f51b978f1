//! Newton's method for XᵀJX = K from nearby points.
//!
//! Rounding lets XᵀJX drift like ε·√(number of moves). The correction solves, to first order,
//! XᵀJΔ + ΔᵀJX = K − XᵀJX for the Δ of the form P_Ω(J X Λ), Λ symmetric, where P_Ω keeps the
//! pattern of nonzeros of X: exact zeros survive, and columns of disjoint support need no
//! correction. The r×r system is solved by conjugate gradients; Newton's iteration converges
//! quadratically, so two or three passes reach rounding.

use ndarray::{Array2, ArrayView2, Zip};

use super::constraint::{NEWTON_BASIN, START_TOLERANCE, drift, normals, signs_of};
use super::pattern::PatternProducts;
use crate::error::{Error, Result};
use crate::linalg::{conjugate_gradients, product, square};
use crate::numerics;
use crate::signature::Signature;

/// Least and largest relative residual of the linear systems; between the two the residual is the drift: Newton's
/// method stays quadratic (Dembo, Eisenstat and Steihaug, SIAM J. Numer. Anal. 19, 1982).
const FORCING: (f64, f64) = (1e-12, 1e-2);

/// Largest number of Newton steps of a repair.
pub(super) const STEPS: usize = 8;

/// Largest multiple of the smallest drift so far to which the drift may rise: if columns share few rows, the
/// first correction is long.
const RISE: f64 = 10.0;

/// Returns the point of smallest drift, and this drift, after at most `steps` Newton steps from `x`. `gap_of`
/// returns the gap of a point and its size, the drift. `corrected` returns the next point. The iteration ends
/// at None, at a drift up to `rest`, at a drift that hardly falls, or far above the smallest drift.
pub(crate) fn newton<X: Clone, G>(
    x: X,
    steps: usize,
    rest: f64,
    gap_of: impl Fn(&X) -> (G, f64),
    corrected: impl Fn(&X, &G, f64) -> Option<X>,
) -> (X, f64) {
    let (mut gap, mut drift) = gap_of(&x);
    let (mut best, mut x) = ((x.clone(), drift), x);
    for _ in 0..steps {
        if !(drift > rest) {
            break;
        }
        let Some(next) = corrected(&x, &gap, drift) else {
            break;
        };
        x = next;
        let after;
        (gap, after) = gap_of(&x);
        let slow = (0.9 * drift..=drift).contains(&after) || (after <= numerics::DRIFT && after > 0.2 * drift);
        let far = !(after < RISE * best.1);
        if after < best.1 {
            best = (x.clone(), after);
        }
        if slow || far {
            break;
        }
        drift = after;
    }
    best
}

/// Returns K − XᵀJX and its norm.
pub(super) fn gap(x: &Array2<f64>, signature: &Signature, k: ArrayView2<'_, f64>) -> (Array2<f64>, f64) {
    let gap = &k - &product(normals(x, signature).t(), x.view());
    let drift = square(&gap).sqrt();
    (gap, drift)
}

/// Returns x with zeros where `support` is zero.
pub(super) fn masked(mut x: Array2<f64>, support: &Array2<f64>) -> Array2<f64> {
    Zip::from(&mut x).and(support).for_each(|x, &s| {
        if s == 0.0 {
            *x = 0.0;
        }
    });
    x
}

/// Returns the Δ on the pattern of x for which XᵀJΔ + ΔᵀJX is `gap`, or with a positive `damping` a step of
/// the Levenberg–Marquardt method. Conjugate gradients end after `steps` whole products or sparse products of
/// the same work, after one step per unknown, or when `late` refuses the work of a product.
pub(super) fn pattern_step(
    x: &Array2<f64>,
    normals: &Array2<f64>,
    (gap, damping): (&Array2<f64>, f64),
    steps: usize,
    late: impl Fn(usize) -> bool,
) -> Array2<f64> {
    // Δ(Λ) = P_Ω(J X Λ) and the operator Λ -> XᵀJΔ + (XᵀJΔ)ᵀ, symmetric positive semidefinite.
    let pattern = x.mapv(|v| if v == 0.0 { 0.0 } else { 1.0 });
    let products = PatternProducts::new(normals, &pattern);
    // The diagonal of the operator is small for columns that share few rows.
    let shared = product(normals.mapv(|v| v * v).t(), pattern.view());
    let scale = (&shared + &shared.t() + damping).mapv(|v| match v > 0.0 {
        true => v.sqrt().recip(),
        false => 0.0,
    });
    let operator = |lambda: &Array2<f64>| {
        // A zero product ends the conjugate gradients.
        if late(products.work()) {
            return Array2::zeros(lambda.dim());
        }
        let lambda = lambda * &scale;
        let product = products.apply(&lambda);
        (&product + &product.t() + damping * lambda) * &scale
    };
    let unknowns = x.ncols() * (x.ncols() + 1) / 2;
    let steps = steps.max(products.affordable(steps).min(unknowns));
    let tolerance = square(gap).sqrt().clamp(FORCING.0, FORCING.1);
    let lambda = conjugate_gradients(operator, &(gap * &scale), steps, tolerance) * &scale;
    masked(product(normals.view(), lambda.view()), x)
}

/// Iterates `X ← X + ½XK(K − XᵀJX)` until the drift stops falling and returns the best point. This is
/// Newton's method, for K = diag(±1) and an X whose zeros need not survive. For another K the result is X.
pub fn project_dense(x: &Array2<f64>, signature: &Signature, k: ArrayView2<'_, f64>) -> Array2<f64> {
    let Some(signs) = signs_of(k) else {
        return x.clone();
    };
    let corrected = |x: &Array2<f64>, gap: &Array2<f64>, _| {
        let mut scaled = gap.clone();
        for (mut row, sign) in scaled.outer_iter_mut().zip(&signs) {
            row.mapv_inplace(|v| 0.5 * sign * v);
        }
        Some(x + &product(x.view(), scaled.view()))
    };
    newton(x.clone(), STEPS, 0.0, |x| gap(x, signature, k), corrected).0
}

/// Returns the nearby point with XᵀJX = K and the same zeros, by Newton's method; the best point on the way
/// if the method does not converge, and X if K is not r×r.
pub fn project_onto_pattern(x: &Array2<f64>, signature: &Signature, k: ArrayView2<'_, f64>) -> Array2<f64> {
    let r = x.ncols();
    if k.dim() != (r, r) {
        return x.clone();
    }
    let corrected = |x: &Array2<f64>, gap: &Array2<f64>, _| {
        let normals = normals(x, signature);
        Some(x + &pattern_step(x, &normals, (gap, 0.0), 2 * r * r + 10, |_| false))
    };
    let rest = f64::EPSILON * (r as f64).sqrt();
    newton(x.clone(), STEPS, rest, |x| gap(x, signature, k), corrected).0
}

/// Returns a given square X, named `name` in errors, with its distance from XᵀJX = J repaired by Newton's method;
/// zeros stay zero.
///
/// # Errors
/// If the distance is not finite, above `START_TOLERANCE` relative to max(1, ‖X‖²), or above
/// `NEWTON_BASIN`. At ‖X‖ above 1e7 rounding of the entries of X alone can exceed the latter.
pub fn j_orthogonal(name: &'static str, x: Array2<f64>, signature: &Signature) -> Result<Array2<f64>> {
    let k = signature.matrix();
    let (size, gap) = (square(&x).max(1.0), drift(x.view(), signature, k.view()));
    if !(gap <= (START_TOLERANCE * size).min(NEWTON_BASIN)) {
        return Err(Error::invalid(
            name,
            format!(
                "must satisfy XᵀJX = J for J = diag(signature), ‖XᵀJX − J‖_F is {gap:.3e} and ‖X‖_F is {:.3e}; \
                 the nearby point indefinite_polar({name}, signature)[0] satisfies it, if it exists",
                size.sqrt()
            ),
        ));
    }
    if gap <= numerics::ROUNDING * size {
        return Ok(x);
    }
    Ok(match x.iter().any(|&v| v == 0.0) {
        true => project_onto_pattern(&x, signature, k.view()),
        false => project_dense(&x, signature, k.view()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifold::drift;
    use ndarray::array;

    #[test]
    fn correction_keeps_zeros_and_restores_the_constraint() {
        let c = 0.6f64;
        let s = 0.8f64;
        let exact = array![[c, 0.0, 0.0], [s, 0.0, 0.0], [0.0, c, s], [0.0, s, -c], [0.0, 0.0, 0.0]];
        let signature = Signature::stiefel(5);
        let mut x = exact.clone();
        x[[0, 0]] += 3e-7;
        x[[2, 1]] -= 2e-7;
        x[[3, 2]] += 1e-7;
        let k = Array2::eye(3);
        assert!(drift(x.view(), &signature, k.view()) > 1e-7);
        let y = project_onto_pattern(&x, &signature, k.view());
        assert!(drift(y.view(), &signature, k.view()) < 1e-15);
        for (a, b) in y.iter().zip(&exact) {
            assert_eq!(*a == 0.0, *b == 0.0);
            assert!((a - b).abs() < 1e-6);
        }
    }

    /// Returns X whose neighbouring columns share one row with small entries, smaller from pair to pair.
    fn sharing(r: usize, least: f64) -> Array2<f64> {
        let mut x = Array2::zeros((2 * r, r));
        for t in 0..r {
            x[[2 * t, t]] = 1.0;
            if t + 1 < r {
                let shared = least.powf(t as f64 / (r - 2) as f64);
                x[[2 * t + 1, t]] = shared;
                x[[2 * t + 1, t + 1]] = -0.5 * shared;
            }
        }
        x
    }

    #[test]
    fn columns_that_share_rows_of_small_entries_need_few_conjugate_gradients() {
        let r = 24;
        let x = sharing(r, 1e-4);
        let gap = Array2::from_shape_fn((r, r), |(s, t)| match s.abs_diff(t) {
            0 => 1e-11,
            1 => 1e-11 * (1.0 + s.min(t) as f64).sin(),
            _ => 0.0,
        });
        let asked = std::cell::Cell::new(0);
        let step = pattern_step(&x, &x, (&gap, 0.0), r, |_| {
            asked.set(asked.get() + 1);
            false
        });
        let change = x.t().dot(&step);
        let left = square(&(&change + &change.t() - &gap)).sqrt() / square(&gap).sqrt();
        assert!(left < 1e-5, "{left:e}");
        assert!(asked.get() <= r, "{}", asked.get());
    }

    #[test]
    fn mixed_signs_are_corrected_too() {
        let (c, s) = (0.7f64.cosh(), 0.7f64.sinh());
        let signature = Signature::new(&[1, -1]).unwrap();
        let mut x = array![[c, s], [s, c]];
        x[[0, 0]] += 1e-6;
        let k = array![[1.0, 0.0], [0.0, -1.0]];
        let y = project_onto_pattern(&x, &signature, k.view());
        assert!(drift(y.view(), &signature, k.view()) < 1e-14);
    }
}
