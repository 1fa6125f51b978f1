//! Any orthogonal matrix as a product of 2×2 rotations and reflections (OBCD paper, Theorem 3.1).
//!
//! Givens rotations on the pairs (j, i), i = j+1..n, bring Dᵀ to the identity, column by column; the
//! sign of the last diagonal entry is absorbed into the last factor (in the pivot
//! form, all n(n−1)/2 pairs appear). At most one factor is a reflection.

use ndarray::{Array2, ArrayView2};

use super::constraint::START_TOLERANCE;
use crate::error::{Error, Result};
use crate::linalg;

/// A factor: the identity except for the rows and columns `i` < `j`, which hold `v`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor {
    /// First row.
    pub i: usize,
    /// Second row.
    pub j: usize,
    /// The 2×2 orthogonal matrix.
    pub v: [[f64; 2]; 2],
}

impl Factor {
    /// Multiplies the rows (i, j) of `x` by V; does nothing if `x` does not have these rows.
    pub fn apply(&self, x: &mut Array2<f64>) {
        if self.i.max(self.j) >= x.nrows() {
            return;
        }
        for k in 0..x.ncols() {
            let (a, b) = (x[[self.i, k]], x[[self.j, k]]);
            x[[self.i, k]] = self.v[0][0] * a + self.v[0][1] * b;
            x[[self.j, k]] = self.v[1][0] * a + self.v[1][1] * b;
        }
    }
}

/// Returns factors W₁, …, W_m, m = n(n−1)/2, with `D = W_m ⋯ W₂ W₁`: in this order they turn X into D X.
///
/// # Errors
/// If D is not square, has fewer than two rows, or is not orthogonal to 1e-8.
///
/// ```
/// use ndarray::{Array2, array};
/// let d = array![[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]];
/// let mut product = Array2::eye(3);
/// for factor in orthobcd::basis_factorization(d.view())? {
///     factor.apply(&mut product);
/// }
/// assert!((&product - &d).iter().all(|v| v.abs() < 1e-15));
/// # Ok::<(), orthobcd::Error>(())
/// ```
pub fn basis_factorization(d: ArrayView2<'_, f64>) -> Result<Vec<Factor>> {
    let n = d.nrows();
    if d.ncols() != n || n < 2 {
        return Err(Error::invalid("D", format!("must be square with at least 2 rows, got shape {:?}", d.dim())));
    }
    let gap = (d.t().dot(&d) - Array2::<f64>::eye(n)).iter().map(|v| v * v).sum::<f64>().sqrt();
    if !(gap <= START_TOLERANCE * (n as f64).sqrt()) {
        return Err(Error::invalid("D", format!("must be orthogonal, ‖DᵀD − I‖_F is {gap:.3e}")));
    }
    // V_m ⋯ V₁ Dᵀ = I, so D = V_m ⋯ V₁.
    let mut rest = d.t().as_standard_layout().into_owned();
    let mut factors = Vec::with_capacity(n * (n - 1) / 2);
    for j in 0..n - 1 {
        for i in j + 1..n {
            let (a, b) = (rest[[j, j]], rest[[i, j]]);
            let length = a.hypot(b);
            let (c, s) = if length > 0.0 { (a / length, b / length) } else { (1.0, 0.0) };
            let mut factor = Factor { i: j, j: i, v: [[c, s], [-s, c]] };
            factor.apply(&mut rest);
            rest[[i, j]] = 0.0;
            if j + 2 == n && rest[[i, i]] < 0.0 {
                factor.v[1] = [s, -c];
            }
            factors.push(factor);
        }
    }
    Ok(factors)
}

/// Returns factors that turn X₀ into X, both with the same number of orthonormal columns: the factors of the
/// orthogonal D = U Vᵀ from the singular value decomposition of X X₀ᵀ (Theorem 3.1 b).
///
/// # Errors
/// If the shapes differ or D X₀ = X cannot hold because one of them is not orthonormal.
pub fn connecting_factorization(x: ArrayView2<'_, f64>, x0: ArrayView2<'_, f64>) -> Result<Vec<Factor>> {
    if x.dim() != x0.dim() {
        return Err(Error::invalid("x0", format!("must have shape {:?}, got {:?}", x.dim(), x0.dim())));
    }
    let d = linalg::polar_factor(x.dot(&x0.t()).view());
    let gap = (d.dot(&x0) - x).iter().map(|v| v * v).sum::<f64>().sqrt();
    if !(gap <= START_TOLERANCE * (x.ncols() as f64).sqrt()) {
        return Err(Error::invalid("x", "and x0 must have orthonormal columns"));
    }
    basis_factorization(d.view())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start;

    fn product(factors: &[Factor], mut x: Array2<f64>) -> Array2<f64> {
        factors.iter().for_each(|f| f.apply(&mut x));
        x
    }

    #[test]
    fn any_orthogonal_matrix_comes_back() {
        for n in 2..=12 {
            for seed in 0..6 {
                let mut d = start::random(n, n, seed);
                if seed % 2 == 0 {
                    d.row_mut(0).mapv_inplace(|v| -v);
                }
                let factors = basis_factorization(d.view()).unwrap();
                assert_eq!(factors.len(), n * (n - 1) / 2);
                let back = product(&factors, Array2::eye(n));
                assert!((&back - &d).iter().all(|v| v.abs() < 1e-13));
                let reflections =
                    factors.iter().filter(|f| f.v[0][0] * f.v[1][1] - f.v[0][1] * f.v[1][0] < 0.0).count();
                assert!(reflections <= 1);
                let (x, x0) = (start::random(n, n.div_ceil(2), seed), start::random(n, n.div_ceil(2), seed + 100));
                let factors = connecting_factorization(x.view(), x0.view()).unwrap();
                assert!((product(&factors, x0) - &x).iter().all(|v| v.abs() < 1e-13));
            }
        }
    }

    #[test]
    fn signs_and_permutations() {
        let d = Array2::from_diag(&ndarray::array![-1.0, 1.0, -1.0, -1.0]);
        let back = product(&basis_factorization(d.view()).unwrap(), Array2::eye(4));
        assert!((&back - &d).iter().all(|v| v.abs() < 1e-15));
        assert!(basis_factorization((&d * 2.0).view()).is_err());
        assert!(basis_factorization(ndarray::array![[1.0]].view()).is_err());
    }
}
