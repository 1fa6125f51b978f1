//! {X : XᵀJX = K} as the full-gradient methods see it: multipliers, and points nearby, paid for.

use ndarray::{Array2, Axis};

use super::constraint::{drift, normals};
use super::repair::{gap, newton, pattern_step, project_dense};
use crate::budget::Meter;
use crate::linalg::{conjugate_gradients, product, square, symmetric};
use crate::signature::Signature;

/// Drift up to which a projected point counts as feasible.
const FEASIBLE: f64 = 5e-13;

/// The same for mixed signs, relative to ‖X‖²/r.
const MIXED_FEASIBLE: f64 = 2e-14;

/// What a multiply-add of a product of an n×r with an r×r matrix costs, relative to one of C X.
const TALL: f64 = 1.5;

/// The matrices with XᵀJX = K, as the full-gradient methods see them.
#[derive(Debug, Clone)]
pub(crate) struct Manifold<'a> {
    pub(crate) signature: &'a Signature,
    pub(crate) k: Array2<f64>,
    /// Who pays, and says when it is too late.
    meter: Option<&'a Meter<'a>>,
}

impl<'a> Manifold<'a> {
    /// {XᵀX = I}, or whatever `signature` and K say.
    pub(crate) fn new(
        signature: &'a Signature,
        k: Array2<f64>,
        meter: Option<&'a Meter<'a>>,
    ) -> Self {
        Self {
            signature,
            k,
            meter,
        }
    }

    /// What `find` finds on the rows of `pattern` that are not zero, if these are fewer than half and J = I; what it is
    /// given are the manifold and matrices of these rows.
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
        let small = Manifold::new(&signature, self.k.clone(), self.meter);
        let found = find(&small, of.map(|x| x.select(Axis(0), &rows)));
        Some(found.map(|y| {
            let mut x = Array2::zeros(pattern.dim());
            for (&i, row) in rows.iter().zip(y.outer_iter()) {
                x.row_mut(i).assign(&row);
            }
            x
        }))
    }

    /// Whether it is too late for what `products` products of n×r with r×r matrices would give; if
    /// not, they are paid for.
    pub(crate) fn refuses(&self, x: &Array2<f64>, products: usize) -> bool {
        self.late(products * x.len() * (x.ncols() + 2))
    }

    /// The same for so many multiply-adds of such products.
    pub(crate) fn late(&self, work: usize) -> bool {
        let Some(meter) = self.meter else {
            return false;
        };
        meter.spend(TALL * work as f64);
        meter.expired()
    }

    /// Whether whoever pays has taken far too much already.
    pub(super) fn overdue(&self) -> bool {
        self.meter.is_some_and(Meter::overdue)
    }

    /// The symmetric Λ for which G − JXΛ is tangent (with orthonormal columns), or shortest.
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

    /// A nearby point with XᵀJX = K for K = diag(±1), whatever happens to the zeros; none if Newton's
    /// method does not reach it, or for one sign, where patterns do not fail for long.
    pub(crate) fn restore_dense(&self, x: &Array2<f64>) -> Option<Array2<f64>> {
        if self.signature.is_definite() {
            return None;
        }
        let restored = project_dense(x, self.signature, self.k.view());
        let gap = drift(restored.view(), self.signature, self.k.view());
        (gap <= MIXED_FEASIBLE * square(&restored).max(1.0)).then_some(restored)
    }

    /// The nearby point with XᵀJX = K and the zeros of x, by at most a few Newton steps with few
    /// conjugate gradients each (unlike [`project_onto_pattern`](super::project_onto_pattern), which may take long on a
    /// degenerate pattern); none if that does not reach it.
    pub(crate) fn restore(&self, x: &Array2<f64>) -> Option<Array2<f64>> {
        self.restore_unless(x, &|| false)
    }

    /// The same; none if that is `refused` on the way.
    pub(super) fn restore_unless(
        &self,
        x: &Array2<f64>,
        refused: &dyn Fn() -> bool,
    ) -> Option<Array2<f64>> {
        const NEWTON: usize = 7;
        const GRADIENTS: usize = 40;
        const FAR: f64 = 0.7;
        if self.refuses(x, 2) {
            return None;
        }
        if let Some(found) =
            self.on_few_rows(x, [x], |small, [x]| small.restore_unless(&x, refused))
        {
            return found;
        }
        let r = x.ncols() as f64;
        // Rounding of XᵀJX is relative to ‖X‖²; orthonormal columns have ‖X‖² = r.
        let (scale, feasible) = if self.signature.is_definite() {
            (1.0, FEASIBLE)
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
        let (x, gap) = newton(x.clone(), NEWTON, rest, gap_of, corrected);
        (gap <= feasible * scale).then_some(x)
    }
}
