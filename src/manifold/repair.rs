//! The constraint XᵀJX = K: drift, and the correction that keeps zeros where they are.
//!
//! Rounding lets XᵀJX drift like ε·√(number of moves). The correction solves, to first order,
//! XᵀJΔ + ΔᵀJX = K − XᵀJX for the Δ of the form P_Ω(J X Λ), Λ symmetric, where P_Ω keeps the
//! pattern of nonzeros of X: exact zeros survive, and columns of disjoint support need no
//! correction. The r×r system is solved by conjugate gradients; Newton's iteration converges
//! quadratically, so two or three passes reach rounding.

use ndarray::{Array2, ArrayView2};

use crate::signature::Signature;

/// Drift ‖XᵀJX − K‖_F, relative to max(1, ‖K‖_F), at which a correction is attempted.
pub const REPAIR_THRESHOLD: f64 = 1e-13;

/// XᵀJX. Rows beyond the signature count as of sign +1.
pub fn constraint(x: ArrayView2<'_, f64>, signature: &Signature) -> Array2<f64> {
    if signature.is_definite() {
        let k = x.t().dot(&x);
        return if signature.sign(0) > 0.0 { k } else { -k };
    }
    x.t().dot(&signed(x, signature))
}

/// The value to keep: the identity (or −I) if the start is orthonormal up to rounding, else the
/// start's own XᵀJX.
pub(crate) fn start_constraint(x: ArrayView2<'_, f64>, signature: &Signature) -> Array2<f64> {
    let k = constraint(x, signature);
    // A start whose XᵀJX is a diagonal of ±1 up to rounding means exactly that.
    let rounded = k.mapv(f64::round);
    let gap = (&k - &rounded).iter().map(|v| v * v).sum::<f64>().sqrt();
    let size = k.iter().map(|v| v * v).sum::<f64>().sqrt();
    if gap <= START_TOLERANCE * size.max(1.0) {
        rounded
    } else {
        k
    }
}

/// Distance ‖X₀ᵀJX₀ − K‖_F, relative to max(1, ‖K‖_F), up to which a start counts as feasible for an
/// integer K; the difference is then repaired.
pub(crate) const START_TOLERANCE: f64 = 1e-8;

/// ‖XᵀJX − K‖_F; infinite for a K of another shape than r×r.
pub fn drift(x: ArrayView2<'_, f64>, signature: &Signature, k: ArrayView2<'_, f64>) -> f64 {
    if k.dim() != (x.ncols(), x.ncols()) {
        return f64::INFINITY;
    }
    (constraint(x, signature) - k)
        .iter()
        .map(|v| v * v)
        .sum::<f64>()
        .sqrt()
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

/// `X ← ½X(3I − K XᵀJX)` until the drift stops falling: Newton's method for diagonal K = diag(±1),
/// quadratically convergent, for X without zeros to keep. X itself where it does not converge.
pub(crate) fn project_dense(
    x: &Array2<f64>,
    signature: &Signature,
    k: ArrayView2<'_, f64>,
) -> Array2<f64> {
    let mut x = x.clone();
    let mut before = drift(x.view(), signature, k);
    for _ in 0..8 {
        // ½(3I − K XᵀJX) = I − ½K(XᵀJX − K), as K² = I.
        let mut gap = constraint(x.view(), signature) - k;
        for (mut row, sign) in gap.outer_iter_mut().zip(k.diag()) {
            row.mapv_inplace(|v| -0.5 * sign * v);
        }
        let next = &x + &x.dot(&gap);
        let after = drift(next.view(), signature, k);
        if !(after < before) {
            break;
        }
        x = next;
        before = after;
    }
    x
}

/// [`project_dense`] where K = diag(±1), X itself elsewhere.
pub(crate) fn repair_dense(
    x: &Array2<f64>,
    signature: &Signature,
    k: ArrayView2<'_, f64>,
) -> Array2<f64> {
    if signs_of(k).is_some() {
        project_dense(x, signature, k)
    } else {
        x.clone()
    }
}

/// The signs of K if it is diag(±1).
pub(crate) fn signs_of(k: ArrayView2<'_, f64>) -> Option<Vec<f64>> {
    let diagonal = k
        .indexed_iter()
        .all(|((i, j), &v)| if i == j { v.abs() == 1.0 } else { v == 0.0 });
    diagonal.then(|| k.diag().to_vec())
}

/// The nearby point with XᵀJX = K and the same zeros, by Newton's method; X itself where that does
/// not converge, or K is not r×r.
pub fn project_onto_pattern(
    x: &Array2<f64>,
    signature: &Signature,
    k: ArrayView2<'_, f64>,
) -> Array2<f64> {
    let mut x = x.clone();
    let mut before = drift(x.view(), signature, k);
    if before == f64::INFINITY {
        return x;
    }
    for _ in 0..8 {
        let step = newton_step(&x, signature, k);
        let next = &x + &step;
        let after = drift(next.view(), signature, k);
        if !(after < before) {
            break;
        }
        x = next;
        // Quadratic convergence: one more pass would only stir rounding.
        if after <= f64::EPSILON * (x.ncols() as f64).sqrt() {
            break;
        }
        before = after;
    }
    x
}

fn newton_step(x: &Array2<f64>, signature: &Signature, k: ArrayView2<'_, f64>) -> Array2<f64> {
    let r = x.ncols();
    let jx = signed(x.view(), signature);
    // Δ(Λ) = P_Ω(J X Λ) and the operator Λ -> XᵀJΔ + (XᵀJΔ)ᵀ, symmetric positive semidefinite.
    let lift = |lambda: &Array2<f64>| {
        let mut delta = jx.dot(lambda);
        delta.zip_mut_with(x, |d, &v| {
            if v == 0.0 {
                *d = 0.0;
            }
        });
        delta
    };
    let apply = |lambda: &Array2<f64>| {
        let product = jx.t().dot(&lift(lambda));
        &product + &product.t()
    };
    let target = &k - &constraint(x.view(), signature);
    let norm2 = |a: &Array2<f64>| a.iter().map(|v| v * v).sum::<f64>();
    let goal = norm2(&target) * 1e-24;
    let mut lambda = Array2::<f64>::zeros((r, r));
    let mut residual = target;
    let mut direction = residual.clone();
    let mut rho = norm2(&residual);
    for _ in 0..2 * r * r + 10 {
        if rho <= goal || rho == 0.0 {
            break;
        }
        let image = apply(&direction);
        let curvature = (&direction * &image).sum();
        if !(curvature > 0.0) {
            break;
        }
        let step = rho / curvature;
        lambda.scaled_add(step, &direction);
        residual.scaled_add(-step, &image);
        let next = norm2(&residual);
        direction = &residual + &(direction * (next / rho));
        rho = next;
    }
    lift(&lambda)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn correction_keeps_zeros_and_restores_the_constraint() {
        let c = 0.6f64;
        let s = 0.8f64;
        let exact = array![
            [c, 0.0, 0.0],
            [s, 0.0, 0.0],
            [0.0, c, s],
            [0.0, s, -c],
            [0.0, 0.0, 0.0]
        ];
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
