//! The Stiefel manifold in bulk: polar factors, tangent directions, projection onto a support.

use std::borrow::Cow;

use ndarray::{Array2, ArrayView2, Axis, Zip};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::repair::{drift, repair_dense, signed};
use crate::budget::Task;
use crate::certificate::conjugate_gradients;
use crate::linalg;
use crate::objective::GoOn;
use crate::signature::Signature;

/// Smallest ratio of eigenvalues of XᵀX at which the polar factor is taken from them.
const WELL_CONDITIONED: f64 = 1e-7;

/// Drift up to which a projected point counts as feasible.
const FEASIBLE: f64 = 5e-13;

/// The same for mixed signs, relative to ‖X‖²/r.
const MIXED_FEASIBLE: f64 = 2e-14;

/// What a multiply-add of a product of an n×r with an r×r matrix costs, relative to one of C X.
const TALL: f64 = 2.5;

/// ⟨A, B⟩.
pub(crate) fn inner(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    match (a.as_slice(), b.as_slice()) {
        (Some(a), Some(b)) => {
            // Four running sums: the compiler may not reorder one.
            let mut sums = [0.0; 8];
            let (heads, tails) = (a.chunks_exact(8), b.chunks_exact(8));
            let rest: f64 = heads
                .remainder()
                .iter()
                .zip(tails.remainder())
                .map(|(a, b)| a * b)
                .sum();
            for (a, b) in heads.zip(tails) {
                for k in 0..8 {
                    sums[k] += a[k] * b[k];
                }
            }
            rest + sums.iter().sum::<f64>()
        }
        _ => a.iter().zip(b).map(|(a, b)| a * b).sum(),
    }
}

/// ‖A‖².
pub(crate) fn square(a: &Array2<f64>) -> f64 {
    inner(a, a)
}

/// (A + Aᵀ)/2.
pub(crate) fn symmetric(a: &Array2<f64>) -> Array2<f64> {
    (a + &a.t()) * 0.5
}

/// The polar factor from the eigenvalues of XᵀX, one Newton–Schulz step for the rounding; O(nr²).
pub(crate) fn polar(x: &Array2<f64>) -> Array2<f64> {
    let (values, vectors) = linalg::symmetric_eigen(x.t().dot(x).view());
    let last = values.len() - 1;
    if !(values[0] > WELL_CONDITIONED * values[last]) {
        return linalg::polar_factor(x.view());
    }
    let scaled = &vectors / &values.mapv(f64::sqrt);
    let q = x.dot(&scaled.dot(&vectors.t()));
    let correction = q.t().dot(&q) * -0.5;
    let mut correction = correction;
    correction.diag_mut().mapv_inplace(|v| v + 1.5);
    q.dot(&correction)
}

/// Projection of a direction onto the tangent space at x.
pub(crate) fn tangent(x: &Array2<f64>, direction: &Array2<f64>) -> Array2<f64> {
    direction - &x.dot(&symmetric(&x.t().dot(direction)))
}

/// The columns of `loadings` rotated towards simple structure: the fixed point of the varimax
/// criterion, the rotation being the polar factor of its gradient (Kaiser 1958).
pub fn varimax(loadings: ArrayView2<'_, f64>) -> Array2<f64> {
    varimax_while(loadings, &|| true)
}

/// [`varimax`], as far as it has come when `go_on` says no.
pub(crate) fn varimax_while(loadings: ArrayView2<'_, f64>, go_on: GoOn<'_>) -> Array2<f64> {
    const STEPS: usize = 60;
    const TOLERANCE: f64 = 1e-5;
    let n = loadings.nrows() as f64;
    let mut turned = loadings.to_owned();
    let mut previous = 0.0;
    for _ in 0..STEPS {
        if !go_on() {
            break;
        }
        let means = turned.mapv(|v| v * v).sum_axis(Axis(0)) / n;
        let target = turned.mapv(|v| v * v * v) - &turned * &means;
        let (u, singular, v) = linalg::svd(loadings.t().dot(&target).view());
        turned = loadings.dot(&u.dot(&v.t()));
        let criterion = singular.sum();
        if !(criterion > previous * (1.0 + TOLERANCE)) {
            break;
        }
        previous = criterion;
    }
    turned
}

/// The matrices with XᵀJX = K, as the full-gradient methods see them.
#[derive(Debug, Clone)]
pub(crate) struct Manifold<'a> {
    pub(crate) signature: &'a Signature,
    pub(crate) k: Array2<f64>,
    /// Who pays, and says when it is too late.
    task: Option<&'a Task<'a>>,
}

impl<'a> Manifold<'a> {
    /// {XᵀX = I}, or whatever `signature` and K say.
    pub(crate) fn new(
        signature: &'a Signature,
        k: Array2<f64>,
        task: Option<&'a Task<'a>>,
    ) -> Self {
        Self { signature, k, task }
    }

    /// Whether it is too late for what `products` products of n×r with r×r matrices would give; if
    /// not, they are paid for.
    pub(crate) fn refuses(&self, x: &Array2<f64>, products: usize) -> bool {
        let Some(task) = self.task else {
            return false;
        };
        let r = x.ncols();
        task.spend(TALL * (products * x.len() * (r + 2)) as f64);
        task.expired()
    }

    /// JX, which spans the normal space {JXΛ : Λ = Λᵀ}.
    pub(crate) fn normals<'x>(&self, x: &'x Array2<f64>) -> Cow<'x, Array2<f64>> {
        if self.signature.is_definite() {
            Cow::Borrowed(x)
        } else {
            Cow::Owned(signed(x.view(), self.signature))
        }
    }

    /// The symmetric Λ for which G − JXΛ is tangent (with orthonormal columns), or shortest.
    pub(crate) fn multiplier(&self, x: &Array2<f64>, gradient: &Array2<f64>) -> Array2<f64> {
        let lambda = symmetric(&self.normals(x).t().dot(gradient));
        if self.signature.is_definite() {
            return lambda;
        }
        // XᵀXΛ + ΛXᵀX = XᵀJG + GᵀJX.
        let gram = x.t().dot(x);
        let lyapunov = |d: &Array2<f64>| {
            let product = gram.dot(d);
            &product + &product.t()
        };
        conjugate_gradients(lyapunov, &(lambda * 2.0), 4 * x.ncols() + 20)
    }

    /// A nearby point with XᵀJX = K for K = diag(±1), whatever happens to the zeros; none if Newton's
    /// method does not reach it, or for one sign, where patterns do not fail for long.
    pub(crate) fn restore_dense(&self, x: &Array2<f64>) -> Option<Array2<f64>> {
        if self.signature.is_definite() {
            return None;
        }
        let restored = repair_dense(x, self.signature, self.k.view());
        let gap = drift(restored.view(), self.signature, self.k.view());
        (gap <= MIXED_FEASIBLE * square(&restored).max(1.0)).then_some(restored)
    }

    /// The nearby point with XᵀJX = K and the zeros of x, by at most a few Newton steps with few
    /// conjugate gradients each (unlike [`project_onto_pattern`](crate::project_onto_pattern), which
    /// may take long on a degenerate pattern); none if that does not reach it.
    pub(crate) fn restore(&self, x: &Array2<f64>) -> Option<Array2<f64>> {
        const NEWTON: usize = 7;
        const GRADIENTS: usize = 40;
        const FAR: f64 = 0.7;
        let r = x.ncols();
        // Rounding of XᵀJX is relative to ‖X‖²; orthonormal columns have ‖X‖² = r.
        let (scale, feasible) = if self.signature.is_definite() {
            (1.0, FEASIBLE)
        } else {
            ((square(x) / r as f64).max(1.0), MIXED_FEASIBLE)
        };
        let mut x = x.clone();
        let mut before = f64::INFINITY;
        for step in 0..=NEWTON {
            if self.refuses(&x, 2) {
                return None;
            }
            let normals = self.normals(&x).into_owned();
            let gap = &self.k - &normals.t().dot(&x);
            let size = square(&gap).sqrt();
            if size <= 2e-16 * (r as f64) * scale || (size <= 1e-13 * scale && size > 0.2 * before)
            {
                return Some(x);
            }
            if !(size < 0.9 * before) || size > FAR || step == NEWTON {
                return (size <= feasible * scale).then_some(x);
            }
            before = size;
            let lift = |lambda: &Array2<f64>| masked(normals.dot(lambda), &x);
            let operator = |lambda: &Array2<f64>| {
                // Too late: the zero ends the iteration.
                if self.refuses(&x, 2) {
                    return Array2::zeros(lambda.dim());
                }
                let product = normals.t().dot(&lift(lambda));
                &product + &product.t()
            };
            let lambda = conjugate_gradients(operator, &gap, GRADIENTS);
            let correction = lift(&lambda);
            x += &correction;
        }
        None
    }
}

/// x without the entries where `support` is zero.
fn masked(mut x: Array2<f64>, support: &Array2<f64>) -> Array2<f64> {
    Zip::from(&mut x).and(support).for_each(|x, &s| {
        if s == 0.0 {
            *x = 0.0;
        }
    });
    x
}

fn has_empty_column(x: &Array2<f64>) -> bool {
    x.axis_iter(Axis(1))
        .any(|column| column.iter().all(|&v| v == 0.0))
}

/// A point of {XᵀX = I, X zero where `support` is zero} near x: alternating projections first, then
/// Newton's method on the pattern; none if that does not get there.
pub(crate) fn project_on_support(
    manifold: &Manifold<'_>,
    x: &Array2<f64>,
    support: &Array2<f64>,
) -> Option<Array2<f64>> {
    alternate(manifold, x, support).ok()
}

/// The same; what the projections have come to if that does not get there.
fn alternate(
    manifold: &Manifold<'_>,
    x: &Array2<f64>,
    support: &Array2<f64>,
) -> Result<Array2<f64>, Array2<f64>> {
    /// Steps after which Newton's method is tried from within [`NEAR`], and from anywhere closer
    /// than [`CLOSE`].
    const TRIES: [usize; 6] = [3, 5, 8, 13, 21, 40];
    const NEAR: f64 = 0.3;
    const CLOSE: f64 = 1e-3;
    let mut current = masked(x.clone(), support);
    for step in 0..=TRIES[5] {
        if has_empty_column(&current) || manifold.refuses(x, 6) {
            break;
        }
        let gap = drift(current.view(), manifold.signature, manifold.k.view());
        if !gap.is_finite() {
            break;
        }
        if (gap <= NEAR && TRIES.contains(&step) || gap <= CLOSE)
            && let Some(projected) = manifold.restore(&current)
        {
            return Ok(projected);
        }
        current = masked(polar(&current), support);
    }
    Err(current)
}

/// Like [`project_on_support`], but entries of the support are given up where that has to be: of
/// two columns that do not become orthogonal on their common rows, the smaller entry in each of
/// these. None if a column has no entries, or loses them.
pub(crate) fn project_near_support(
    manifold: &Manifold<'_>,
    x: &Array2<f64>,
    support: &Array2<f64>,
) -> Option<Array2<f64>> {
    const ROUNDS: usize = 3;
    /// Product of two columns, relative to the largest one, above which they conflict.
    const CONFLICT: f64 = 0.3;
    let mut support = support.clone();
    for round in 0..=ROUNDS {
        let current = match alternate(manifold, x, &support) {
            Ok(projected) => return Some(projected),
            Err(current) => current,
        };
        if has_empty_column(&current) || current.iter().any(|v| !v.is_finite()) {
            return None;
        }
        let gram = current.t().dot(&current);
        let pairs = || (0..gram.ncols()).flat_map(|a| (0..a).map(move |b| (a, b)));
        let worst = pairs().fold(0.0f64, |m, pair| m.max(gram[pair].abs()));
        // In the end no columns overlap.
        let least = if round + 1 < ROUNDS {
            CONFLICT * worst
        } else {
            -1.0
        };
        let conflicts: Vec<(usize, usize)> =
            pairs().filter(|&pair| gram[pair].abs() > least).collect();
        for (mut kept, x) in support.outer_iter_mut().zip(x.outer_iter()) {
            for &(a, b) in &conflicts {
                if kept[a] != 0.0 && kept[b] != 0.0 {
                    let smaller = if x[a].abs() < x[b].abs() { a } else { b };
                    kept[smaller] = 0.0;
                }
            }
        }
    }
    None
}

/// x times a random rotation by angles of about `size`.
pub(crate) fn kicked(x: &Array2<f64>, size: f64, seed: u64) -> Array2<f64> {
    let r = x.ncols();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let gauss: Array2<f64> = Array2::from_shape_fn((r, r), |_| {
        let v: f64 = StandardNormal.sample(&mut rng);
        v * size
    });
    let mut rotation = (&gauss - &gauss.t()) * 0.5;
    rotation.diag_mut().mapv_inplace(|v| v + 1.0);
    x.dot(&polar(&rotation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start;
    use ndarray::array;

    fn orthonormality(x: &Array2<f64>) -> f64 {
        let signature = Signature::stiefel(x.nrows());
        drift(x.view(), &signature, Array2::eye(x.ncols()).view())
    }

    #[test]
    fn a_support_that_holds_no_point_nearby_loses_entries() {
        let signature = Signature::stiefel(30);
        let manifold = Manifold::new(&signature, Array2::eye(10), None);
        let mut lost = 0;
        for seed in 0..20 {
            let q = start::random(30, 10, seed);
            let y = q.mapv(|v| if v.abs() < 0.25 { 0.0 } else { v });
            if has_empty_column(&y) {
                continue;
            }
            lost += usize::from(project_on_support(&manifold, &q, &y).is_none());
            let x = project_near_support(&manifold, &q, &y).unwrap();
            assert!(orthonormality(&x) < 1e-11, "{seed}");
            assert_eq!(x, masked(x.clone(), &y), "{seed}");
        }
        assert!(lost > 5, "{lost}");
    }

    #[test]
    fn a_support_that_holds_a_point_is_kept() {
        let signature = Signature::stiefel(30);
        let manifold = Manifold::new(&signature, Array2::eye(4), None);
        let q = start::random(30, 4, 3);
        let y = q.mapv(|v| if v.abs() < 0.1 { 0.0 } else { v });
        let x = project_near_support(&manifold, &q, &y).unwrap();
        assert!(orthonormality(&x) < 1e-12);
        assert!(x.iter().zip(&y).all(|(x, y)| (*x == 0.0) == (*y == 0.0)));
        assert_eq!(project_on_support(&manifold, &q, &y), Some(x));
    }

    #[test]
    fn an_empty_column_has_no_point() {
        let y = array![[1.0, 0.0], [0.0, 0.0]];
        let signature = Signature::stiefel(2);
        let manifold = Manifold::new(&signature, Array2::eye(2), None);
        assert_eq!(project_near_support(&manifold, &y, &y), None);
    }
}
