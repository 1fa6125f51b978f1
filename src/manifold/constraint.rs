//! The constraint XᵀJX = K and the distance of a point from it.

use std::borrow::Cow;

use ndarray::{Array2, ArrayView2};

use crate::linalg::{square, symmetric_product};
use crate::numerics;
use crate::signature::Signature;

/// Drift ‖XᵀJX − K‖_F, relative to max(1, ‖K‖_F), at which a correction is attempted.
pub const REPAIR_THRESHOLD: f64 = numerics::DRIFT;

/// Returns XᵀJX. Rows beyond the signature have the sign +1.
pub fn constraint(x: ArrayView2<'_, f64>, signature: &Signature) -> Array2<f64> {
    if signature.is_definite() {
        let k = symmetric_product(x, x);
        return if signature.sign(0) > 0.0 { k } else { -k };
    }
    symmetric_product(x, signed(x, signature).view())
}

/// Returns the constraint matrix K of a start: J for a square X of mixed signs, else XᵀJX. That is rounded to
/// integers if it is an integer matrix up to [`START_TOLERANCE`], or up to its own rounding.
pub(crate) fn start_constraint(x: ArrayView2<'_, f64>, signature: &Signature) -> Array2<f64> {
    if !signature.is_definite() && x.nrows() == x.ncols() {
        return signature.matrix();
    }
    let k = constraint(x, signature);
    // A start whose XᵀJX is an integer matrix up to rounding is meant to satisfy it exactly.
    let rounded = k.mapv(f64::round);
    let gap = square(&(&k - &rounded)).sqrt();
    let rounding = numerics::ROUNDING * x.iter().map(|v| v * v).sum::<f64>();
    let meant = START_TOLERANCE * square(&k).sqrt().max(1.0);
    if gap <= meant.max(rounding.min(NEWTON_BASIN)) { rounded } else { k }
}

/// Largest ‖XᵀJX − J‖_F from which Newton's method is used to reach J. It converges from every distance below 1.
pub(crate) const NEWTON_BASIN: f64 = 0.1;

/// Distance ‖X₀ᵀJX₀ − K‖_F, relative to max(1, ‖K‖_F), up to which a start counts as feasible for an
/// integer K; the difference is then repaired. A given point of another quadric counts as one up to it, too.
pub const START_TOLERANCE: f64 = 1e-8;

/// ‖XᵀJX − K‖_F; infinite for a K of another shape than r×r.
pub fn drift(x: ArrayView2<'_, f64>, signature: &Signature, k: ArrayView2<'_, f64>) -> f64 {
    if k.dim() != (x.ncols(), x.ncols()) {
        return f64::INFINITY;
    }
    square(&(constraint(x, signature) - k)).sqrt()
}

/// J X.
pub(crate) fn signed(x: ArrayView2<'_, f64>, signature: &Signature) -> Array2<f64> {
    let mut jx = x.to_owned();
    for (mut row, &sign) in jx.outer_iter_mut().zip(signature.signs()) {
        if sign < 0 {
            row.mapv_inplace(|v| -v);
        }
    }
    jx
}

/// Returns the signs of K if K is diag(±1).
pub(crate) fn signs_of(k: ArrayView2<'_, f64>) -> Option<Vec<f64>> {
    let diagonal = k.indexed_iter().all(|((i, j), &v)| if i == j { v.abs() == 1.0 } else { v == 0.0 });
    diagonal.then(|| k.diag().to_vec())
}

/// Returns JX, whose products JXΛ with symmetric Λ are the normal space at X; borrows X if J = I.
pub(crate) fn normals<'x>(x: &'x Array2<f64>, signature: &Signature) -> Cow<'x, Array2<f64>> {
    if signature.is_definite() && signature.sign(0) > 0.0 {
        Cow::Borrowed(x)
    } else {
        Cow::Owned(signed(x.view(), signature))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start::random;

    #[test]
    fn the_constraint_is_the_product_for_any_number_of_columns() {
        for r in [1, 2, 127, 128, 129, 256, 300] {
            let n = r + 3;
            let x = random(n, n, 1).slice(ndarray::s![.., ..r]).to_owned() * 2.0;
            let (plus, minus) = (vec![1; n], vec![-1; n]);
            let mixed: Vec<i8> = (0..n).map(|i| if i % 3 == 0 { -1 } else { 1 }).collect();
            for signs in [plus, minus, mixed] {
                let signature = Signature::new(&signs).unwrap();
                let found = constraint(x.view(), &signature);
                let wanted = x.t().dot(&signed(x.view(), &signature));
                assert!((&found - &wanted).iter().all(|v| v.abs() < 1e-13), "{r}");
                assert!(drift(x.view(), &signature, wanted.view()) < 1e-12);
            }
        }
    }
}
