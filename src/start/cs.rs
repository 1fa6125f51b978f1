//! The hyperbolic CS decomposition (JOBCD paper, section on the start).
//!
//! With the p rows and columns of positive sign first, then the q negative ones, every J-orthogonal X is
//!
//! ```text
//! X = diag(U₁, U₂) · S · diag(V₁, V₂)ᵀ,    S = [ diag(c) 0 diag(s) ; 0 I 0 ; diag(s) 0 diag(c) ],   c² − s²
//! = 1,
//! ```
//!
//! for p ≥ q; for q > p the identity is in the lower block. All four outer factors are orthogonal.

use ndarray::{Array1, Array2, ArrayView2, s};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::error::{Error, Result};
use crate::linalg;
use crate::manifold;
use crate::signature::Signature;

/// The factors of a hyperbolic CS decomposition.
#[derive(Debug, Clone, PartialEq)]
pub struct HyperbolicCs {
    /// p×p orthogonal.
    pub u1: Array2<f64>,
    /// q×q orthogonal.
    pub u2: Array2<f64>,
    /// Hyperbolic cosines, min(p, q) of them, descending.
    pub c: Array1<f64>,
    /// Hyperbolic sines, nonnegative.
    pub s: Array1<f64>,
    /// p×p orthogonal.
    pub v1: Array2<f64>,
    /// q×q orthogonal.
    pub v2: Array2<f64>,
}

impl HyperbolicCs {
    /// Returns the matrix X, its rows and columns in the order of `signature`.
    ///
    /// # Errors
    /// If `signature` does not have p positive and q negative signs, or the factors do not fit.
    pub fn compose(&self, signature: &Signature) -> Result<Array2<f64>> {
        let (p, q) = (self.u1.nrows(), self.u2.nrows());
        let order = signature.order();
        if order.len() != p + q || signature.counts().0 != p {
            return Err(Error::invalid("signature", format!("must have {p} positive and {q} negative signs")));
        }
        let square = [(&self.u1, p), (&self.v1, p), (&self.u2, q), (&self.v2, q)];
        if square.iter().any(|(a, n)| a.dim() != (*n, *n)) || self.c.len() != p.min(q) || self.s.len() != p.min(q) {
            return Err(Error::invalid(
                "factors",
                format!("must be {p}×{p} and {q}×{q}, with {} of c and s", p.min(q)),
            ));
        }
        // diag(U₁, U₂)·S block by block: only the first k columns of each side change.
        let k = self.c.len();
        let scaled = |u: &Array2<f64>, d: &Array1<f64>| &u.slice(s![.., ..k]) * d;
        let head = |u: &Array2<f64>, v: &Array2<f64>| {
            let mut inner = u.clone();
            inner.slice_mut(s![.., ..k]).assign(&scaled(u, &self.c));
            inner.dot(&v.t())
        };
        let blocks = [
            [head(&self.u1, &self.v1), scaled(&self.u1, &self.s).dot(&self.v2.slice(s![.., ..k]).t())],
            [scaled(&self.u2, &self.s).dot(&self.v1.slice(s![.., ..k]).t()), head(&self.u2, &self.v2)],
        ];
        let mut x = Array2::zeros((p + q, p + q));
        for (i, &row) in order.iter().enumerate() {
            for (j, &column) in order.iter().enumerate() {
                let (bi, bj) = (usize::from(i >= p), usize::from(j >= p));
                x[[row, column]] = blocks[bi][bj][[i - bi * p, j - bj * p]];
            }
        }
        Ok(x)
    }
}

/// Decomposes a J-orthogonal matrix. With r = rank of the off-diagonal block the factors are
/// unique up to signs and rotations of equal sines; the product is exact to a few ε‖X‖_F.
///
/// # Errors
/// If X is not square of the signature's size, not finite or not J-orthogonal.
pub fn hyperbolic_cs(x: ArrayView2<'_, f64>, signature: &Signature) -> Result<HyperbolicCs> {
    let n = signature.len();
    if x.dim() != (n, n) {
        return Err(Error::invalid("X", format!("must have shape ({n}, {n}), got {:?}", x.dim())));
    }
    if x.iter().any(|v| !v.is_finite()) {
        return Err(Error::invalid("X", "must be finite"));
    }
    let x = manifold::j_orthogonal("X", x.to_owned(), signature)?;
    let order = signature.order();
    let (p, q) = signature.counts();
    let block = |rows: std::ops::Range<usize>, columns: std::ops::Range<usize>| {
        Array2::from_shape_fn((rows.len(), columns.len()), |(i, j)| {
            x[[order[rows.start + i], order[columns.start + j]]]
        })
    };
    if p >= q {
        return Ok(decompose(&block(0..p, 0..p), &block(p..n, 0..p), &block(p..n, p..n)));
    }
    let swapped = decompose(&block(p..n, p..n), &block(0..p, p..n), &block(0..p, 0..p));
    Ok(HyperbolicCs { u1: swapped.u2, u2: swapped.u1, v1: swapped.v2, v2: swapped.v1, ..swapped })
}

/// Decomposes the blocks X₁₁ (p×p), X₂₁ (q×p), X₂₂ (q×q), p ≥ q.
fn decompose(x11: &Array2<f64>, x21: &Array2<f64>, x22: &Array2<f64>) -> HyperbolicCs {
    let (q, p) = x21.dim();
    if q == 0 {
        // X is orthogonal: U₁ = X, V₁ = I.
        return HyperbolicCs {
            u1: x11.clone(),
            u2: Array2::zeros((0, 0)),
            c: Array1::zeros(0),
            s: Array1::zeros(0),
            v1: Array2::eye(p),
            v2: Array2::zeros((0, 0)),
        };
    }
    // X₂₁ = U₂ [diag(s) 0] V₁ᵀ gives the sines; X₁₁V₁ = U₁ diag(c, 1) and X₂₂ᵀU₂ = V₂ diag(c) have
    // orthogonal columns of descending length, which their QR factors make exactly orthonormal.
    let (u2, sines, v1_thin) = linalg::svd(x21.view());
    let v1 = linalg::complete_basis(v1_thin.view());
    let u1 = linalg::orthonormal_factor(x11.dot(&v1).view());
    let v2 = linalg::orthonormal_factor(x22.t().dot(&u2).view());
    let c = sines.mapv(|s| s.hypot(1.0));
    HyperbolicCs { u1, u2, c, s: sines, v1, v2 }
}

/// Largest rapidity of a random J-orthogonal matrix. At 12 the entries reach 8e4, and XᵀJX = J holds to 1e-5.
const LARGEST_RAPIDITY: f64 = 12.0;

/// Returns a random J-orthogonal matrix, with uniformly random orthogonal factors and rapidities `scale`·N(0,
/// 1), c = cosh, s = sinh. The factors absorb the signs of the sines.
///
/// # Errors
/// If `scale` is not finite and nonnegative, or a rapidity exceeds 12.
pub fn random_j_orthogonal(signature: &Signature, scale: f64, seed: u64) -> Result<Array2<f64>> {
    if !(scale.is_finite() && scale >= 0.0) {
        return Err(Error::invalid("scale", format!("must be finite and nonnegative, got {scale}")));
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (p, q) = signature.counts();
    let mut orthogonal = |n: usize| {
        let gauss = Array2::from_shape_fn((n, n), |_| StandardNormal.sample(&mut rng));
        linalg::orthonormal_factor(gauss.view())
    };
    let (u1, u2, v1, v2) = (orthogonal(p), orthogonal(q), orthogonal(p), orthogonal(q));
    let t: Array1<f64> = Array1::from_shape_fn(p.min(q), |_| {
        let normal: f64 = StandardNormal.sample(&mut rng);
        scale * normal
    });
    let largest = t.iter().fold(0.0f64, |most, t| most.max(t.abs()));
    if !(largest <= LARGEST_RAPIDITY) {
        return Err(Error::invalid(
            "scale",
            format!(
                "must keep all rapidities scale·N(0, 1) within {LARGEST_RAPIDITY}, where XᵀJX = J holds to 1e-5; \
                 got {scale:e}, and the largest rapidity is {largest:.3e}"
            ),
        ));
    }
    HyperbolicCs { u1, u2, c: t.mapv(f64::cosh), s: t.mapv(f64::sinh), v1, v2 }.compose(signature)
}
