//! What one more entry of a column is worth.
//!
//! A unit column v with λ = vᵀCv, and a row e outside its support with d = eᵀCe and ρ = eᵀCv, span a 2×2 eigenproblem
//! [[λ, ρ], [ρ, d]]. Its smaller eigenvalue is λ − 2·gain, gain = ½(√(ρ² + g²) − g) = ½ρ²/(√(ρ² + g²) + g),
//! g = ½(d − λ), of which the one without cancellation is computed; its eigenvector is v + entry·e. Adding an entry to the support of v lowers ½vᵀCv by at least the gain.

/// By how much the minimum of ½vᵀCv falls where e is added.
pub(crate) fn gain(lambda: f64, rho: f64, d: f64) -> f64 {
    let half = 0.5 * (d - lambda);
    let square = rho * rho;
    let root = (square + half * half).sqrt();
    if half > 0.0 {
        0.5 * square / (root + half)
    } else {
        0.5 * (root - half)
    }
}

/// The entry of e, relative to v, at that minimum.
pub(crate) fn entry(lambda: f64, rho: f64, d: f64) -> f64 {
    -rho / (2.0 * gain(lambda, rho, d) + d - lambda)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::symmetric_eigen;
    use ndarray::array;

    #[test]
    fn the_gain_and_the_entry_are_those_of_the_smaller_eigenvalue() {
        for (lambda, rho, d) in [(-2.0, 0.7, 1.0), (1.0, -0.3, -2.0), (0.5, 1e-4, 0.5)] {
            let matrix = array![[lambda, rho], [rho, d]];
            let (values, vectors) = symmetric_eigen(matrix.view());
            let lowest = lambda - 2.0 * gain(lambda, rho, d);
            assert!((lowest - values[0]).abs() < 1e-14);
            let expected = vectors[[1, 0]] / vectors[[0, 0]];
            let found = entry(lambda, rho, d);
            assert!((found - expected).abs() < 1e-10 * expected.abs());
        }
    }

    /// Where d is far above λ, the gain is about ½ρ²/(d − λ).
    #[test]
    fn a_small_gain_keeps_its_digits() {
        for rho in [1e-3, 1e-6, 1e-9, 1e-12] {
            let expected = 0.5 * rho * rho / 3.0 * (1.0 - rho * rho / 9.0);
            assert!((gain(-2.0, rho, 1.0) - expected).abs() < 1e-11 * expected);
        }
        assert_eq!(gain(1.0, 0.0, 1.0), 0.0);
    }
}
