//! The manifold {X : XᵀJX = K} for full-gradient methods: multipliers and nearby points, with charged work.

use ndarray::{Array2, Axis};

use super::constraint::{drift, normals};
use super::repair::{STEPS, gap, newton, pattern_step, project_dense};
use crate::limits::TaskWork;
use crate::linalg::{conjugate_gradients, product, square, symmetric};
use crate::numerics;
use crate::signature::Signature;

/// Drift for mixed signs up to which a projected point counts as feasible, relative to ‖X‖²/r.
const MIXED_FEASIBLE: f64 = 2.0 * numerics::ROUNDING;

/// Work of a multiply-add in a product of an n×r with an r×r matrix, relative to one in C X.
const TALL: f64 = 1.5;

/// The matrices with XᵀJX = K, for full-gradient methods.
#[derive(Debug, Clone)]
pub(crate) struct Manifold<'a> {
    pub(crate) signature: &'a Signature,
    pub(crate) k: Array2<f64>,
    /// Work of the task that uses the manifold; None without a limit.
    work: Option<&'a TaskWork<'a>>,
}

impl<'a> Manifold<'a> {
    /// Creates the manifold {XᵀJX = K}.
    pub(crate) fn new(signature: &'a Signature, k: Array2<f64>, work: Option<&'a TaskWork<'a>>) -> Self {
        Self { signature, k, work }
    }

    /// Returns the result of `find` on the nonzero rows of `pattern`, if these are fewer than half and J = I.
    /// `find` gets the manifold and the matrices `of`, restricted to these rows.
    pub(super) fn on_few_rows<const N: usize>(
        &self,
        pattern: &Array2<f64>,
        of: [&Array2<f64>; N],
        find: impl FnOnce(&Manifold<'_>, [Array2<f64>; N]) -> Option<Array2<f64>>,
    ) -> Option<Option<Array2<f64>>> {
        let nonzero = |i: &usize| pattern.row(*i).iter().any(|&v| v != 0.0);
        let rows: Vec<usize> = (0..pattern.nrows()).filter(nonzero).collect();
        let few = 2 * rows.len() < pattern.nrows();
        if !few || !self.signature.is_definite() || self.signature.sign(0) < 0.0 {
            return None;
        }
        let signature = Signature::stiefel(rows.len());
        let small = Manifold::new(&signature, self.k.clone(), self.work);
        let found = find(&small, of.map(|x| x.select(Axis(0), &rows)));
        Some(found.map(|y| {
            let mut x = Array2::zeros(pattern.dim());
            for (&i, row) in rows.iter().zip(y.outer_iter()) {
                x.row_mut(i).assign(&row);
            }
            x
        }))
    }

    /// Charges `products` products of n×r with r×r matrices, and returns whether the task has expired.
    pub(crate) fn refuses(&self, x: &Array2<f64>, products: usize) -> bool {
        self.late(products * x.len() * (x.ncols() + 2))
    }

    /// Charges multiply-adds of n×r with r×r matrices, and returns whether the task has expired.
    pub(crate) fn late(&self, operations: usize) -> bool {
        let Some(work) = self.work else {
            return false;
        };
        work.spend(TALL * operations as f64);
        work.expired()
    }

    /// Returns whether the task is overdue.
    pub(super) fn overdue(&self) -> bool {
        self.work.is_some_and(TaskWork::overdue)
    }

    /// Returns the symmetric Λ for which G − JXΛ is tangent (with orthonormal columns), or shortest.
    pub(crate) fn multiplier(&self, x: &Array2<f64>, gradient: &Array2<f64>) -> Array2<f64> {
        let lambda = symmetric(&product(normals(x, self.signature).t(), gradient.view()));
        if self.signature.is_definite() {
            return lambda;
        }
        // XᵀXΛ + ΛXᵀX = XᵀJG + GᵀJX.
        let gram = x.t().dot(x);
        let lyapunov = |d: &Array2<f64>| {
            let product = gram.dot(d);
            &product + &product.t()
        };
        conjugate_gradients(lyapunov, &(lambda * 2.0), 4 * x.ncols() + 20, 1e-12)
    }

    /// Returns a nearby point with XᵀJX = K for K = diag(±1) and mixed signs, with other zeros. None if
    /// Newton's method does not reach such a point, or if J has one sign, where [`restore`](Self::restore)
    /// rarely fails.
    pub(crate) fn restore_dense(&self, x: &Array2<f64>) -> Option<Array2<f64>> {
        if self.signature.is_definite() {
            return None;
        }
        let restored = project_dense(x, self.signature, self.k.view());
        let gap = drift(restored.view(), self.signature, self.k.view());
        (gap <= MIXED_FEASIBLE * square(&restored).max(1.0)).then_some(restored)
    }

    /// Returns the nearby point with XᵀJX = K and the zeros of x, by a few Newton steps with few conjugate
    /// gradients each; None if they do not reach such a point. On a degenerate pattern
    /// [`project_onto_pattern`](super::project_onto_pattern) may take much longer.
    pub(crate) fn restore(&self, x: &Array2<f64>) -> Option<Array2<f64>> {
        self.restore_unless(x, &|| false)
    }

    /// Like [`restore`](Self::restore); also None once `refused` returns true.
    pub(super) fn restore_unless(&self, x: &Array2<f64>, refused: &dyn Fn() -> bool) -> Option<Array2<f64>> {
        /// Most conjugate gradients of a Newton step.
        const GRADIENTS: usize = 40;
        /// Largest drift from which a step is taken.
        const FAR: f64 = 0.7;
        if self.refuses(x, 2) {
            return None;
        }
        if let Some(found) = self.on_few_rows(x, [x], |small, [x]| small.restore_unless(&x, refused)) {
            return found;
        }
        let r = x.ncols() as f64;
        // Rounding of XᵀJX is relative to ‖X‖²; orthonormal columns have ‖X‖² = r.
        let (scale, feasible) = if self.signature.is_definite() {
            (1.0, 0.5 * numerics::FEASIBLE)
        } else {
            ((square(x) / r).max(1.0), MIXED_FEASIBLE)
        };
        let late = |work| self.late(work) || refused();
        let corrected = |x: &Array2<f64>, gap: &Array2<f64>, drift: f64| {
            let normals = normals(x, self.signature);
            (drift <= FAR && !self.refuses(x, 2) && !refused())
                .then(|| x + &pattern_step(x, &normals, (gap, 0.0), GRADIENTS, late))
        };
        let rest = 2e-16 * r * scale;
        let gap_of = |x: &Array2<f64>| gap(x, self.signature, self.k.view());
        let (x, gap) = newton(x.clone(), STEPS, rest, gap_of, corrected);
        (gap <= feasible * scale).then_some(x)
    }
}
