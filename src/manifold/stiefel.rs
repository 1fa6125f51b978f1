//! Operations on the Stiefel manifold: polar factors, tangent directions, rotations of the columns.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView2, Axis};

use crate::limits::GoOn;
use crate::linalg::{self, product, square, symmetric};
use crate::numerics;
use crate::threads::CHUNK_ROWS;

/// Smallest ratio of eigenvalues of XᵀX at which the polar factor is taken from them.
const WELL_CONDITIONED: f64 = 1e-7;

/// Largest ‖XᵀX − I‖_F of a point near the manifold: the polar factor is iterated from there, and no projections precede
/// the Levenberg–Marquardt method.
pub(super) const NEAR: f64 = 0.3;

/// Returns the polar factor XM. Near {XᵀX = I} M = (XᵀX)^(−1/2) comes from the coupled Newton–Schulz
/// iteration (Higham, Functions of Matrices, 2008, eq. 6.35), with two products of n×r matrices. Elsewhere M
/// comes from the eigenvalues of XᵀX, with one Newton–Schulz step for the rounding.
pub(crate) fn polar(x: &Array2<f64>) -> Array2<f64> {
    let gram = product(x.t(), x.view());
    if let Some(root) = inverse_root_near(&gram) {
        return product(x.view(), root.view());
    }
    let (values, vectors) = linalg::symmetric_eigen(gram.view());
    let last = values.len() - 1;
    if !(values[0] > WELL_CONDITIONED * values[last]) {
        return linalg::polar_factor(x.view());
    }
    let scaled = &vectors / &values.mapv(f64::sqrt);
    let q = product(x.view(), scaled.dot(&vectors.t()).view());
    let mut correction = product(q.t(), q.view()) * -0.5;
    correction.diag_mut().mapv_inplace(|v| v + 1.5);
    product(q.view(), correction.view())
}

/// Returns Y^(−1/2) for a Y near I.
fn inverse_root_near(gram: &Array2<f64>) -> Option<Array2<f64>> {
    let mut y = gram.clone();
    let mut z = Array2::eye(y.nrows());
    if !(square(&(&y - &z)) <= NEAR * NEAR) {
        return None;
    }
    // Five steps reach rounding.
    for _ in 0..numerics::STEPS {
        // ½(3I − ZY), whose distance from I squares itself.
        let mut turn = z.dot(&y) * -0.5;
        turn.diag_mut().mapv_inplace(|v| v + 0.5);
        let gap = square(&turn);
        turn.diag_mut().mapv_inplace(|v| v + 1.0);
        z = turn.dot(&z);
        if gap <= f64::EPSILON {
            break;
        }
        y = y.dot(&turn);
    }
    Some(z)
}

/// Projects a direction onto the tangent space at x.
pub(crate) fn tangent(x: &Array2<f64>, direction: &Array2<f64>) -> Array2<f64> {
    let lambda = symmetric(&product(x.t(), direction.view()));
    direction - &product(x.view(), lambda.view())
}

/// Returns `loadings` with columns rotated to simple structure: a fixed point of the varimax criterion, where
/// the rotation is the polar factor of the gradient of the criterion (Kaiser 1958).
pub fn varimax(loadings: ArrayView2<'_, f64>) -> Array2<f64> {
    varimax_while(loadings, &|| true)
}

/// Like [`varimax`], but ends when `go_on` returns false; with many entries it makes only a few passes.
pub(crate) fn varimax_while(loadings: ArrayView2<'_, f64>, go_on: GoOn<'_>) -> Array2<f64> {
    let loadings = loadings.as_standard_layout();
    loadings.dot(&varimax_rotation(loadings.view(), go_on))
}

/// Returns the rotation of [`varimax_while`].
pub(crate) fn varimax_rotation(loadings: ArrayView2<'_, f64>, go_on: GoOn<'_>) -> Array2<f64> {
    /// Relative increase of the criterion below which a step is the last.
    const TOLERANCE: f64 = 1e-5;
    let (n, r) = loadings.dim();
    let loadings = loadings.as_standard_layout();
    let gram = loadings.t().dot(&loadings);
    let mut rotation = Array2::<f64>::eye(r);
    let mut previous = 0.0;
    for _ in 0..varimax_steps(n, r) {
        if !go_on() {
            break;
        }
        let (cubes, squares) = moments(loadings.view(), &rotation);
        let target = cubes - gram.dot(&rotation) * (squares / n as f64);
        let (u, singular, v) = linalg::svd(target.view());
        rotation = u.dot(&v.t());
        let criterion = singular.sum();
        if !(criterion > previous * (1.0 + TOLERANCE)) {
            break;
        }
        previous = criterion;
    }
    rotation
}

/// Returns the multiply-adds of a step.
fn varimax_step(n: usize, r: usize) -> f64 {
    (2 * n * r * (r + 4)) as f64
}

fn varimax_steps(n: usize, r: usize) -> usize {
    /// Least and largest number of steps.
    const STEPS: (usize, usize) = (5, 60);
    /// Work of the steps, in multiply-adds, that limits their number.
    const WORK: f64 = 2e9;
    ((WORK / varimax_step(n, r)) as usize).clamp(STEPS.0, STEPS.1)
}

/// Returns the largest work of [`varimax_while`].
pub(crate) fn varimax_work(n: usize, r: usize) -> f64 {
    varimax_steps(n, r) as f64 * varimax_step(n, r)
}

/// Returns XᵀY³ and the column sums of Y², with entrywise powers, for Y = X R, in one pass over X.
fn moments(x: ArrayView2<'_, f64>, rotation: &Array2<f64>) -> (Array2<f64>, Array1<f64>) {
    let r = x.ncols();
    let (mut cubes, mut squares) = (Array2::zeros((r, r)), Array1::<f64>::zeros(r));
    for piece in x.axis_chunks_iter(Axis(0), CHUNK_ROWS) {
        let mut y = piece.dot(rotation);
        for row in y.outer_iter() {
            squares.iter_mut().zip(row).for_each(|(s, v)| *s += v * v);
        }
        y.mapv_inplace(|v| v * v * v);
        general_mat_mul(1.0, &piece.t(), &y, 1.0, &mut cubes);
    }
    (cubes, squares)
}

/// Returns x times a random rotation by angles of about `size`.
pub(crate) fn perturbed(x: &Array2<f64>, size: f64, seed: u64) -> Array2<f64> {
    let r = x.ncols();
    let gauss = linalg::normal((r, r), seed) * size;
    let mut rotation = (&gauss - &gauss.t()) * 0.5;
    rotation.diag_mut().mapv_inplace(|v| v + 1.0);
    x.dot(&polar(&rotation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start;

    /// Tests points at the manifold, near it within the reach of the iteration, and beyond.
    #[test]
    fn the_iterated_polar_factor_is_the_polar_factor() {
        for (n, r) in [(40, 7), (12, 12), (6, 1)] {
            let q = start::random(n, r, 1);
            let away = start::random(n, r, 2);
            let gap_of = |x: &Array2<f64>| square(&(x.t().dot(x) - Array2::<f64>::eye(r))).sqrt();
            for size in [0.0, 1e-9, 1e-4, 0.02, 0.05, 0.1, 2.0] {
                let x = &q + &(&away * size);
                let found = polar(&x);
                let expected = linalg::polar_factor(x.view());
                assert!(gap_of(&found) < 1e-14 * r as f64, "{n} {r} {size}");
                let off = square(&(&found - &expected)).sqrt();
                assert!(off < 1e-13, "{n} {r} {size} {off:e}");
            }
            let edges = [0.02, 2.0].map(|size| gap_of(&(&q + &(&away * size))) <= NEAR);
            assert_eq!(edges, [true, false], "{n} {r}");
        }
    }
}
