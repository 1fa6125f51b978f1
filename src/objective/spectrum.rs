//! Bounds on the spectrum of a symmetric matrix from its products.

use std::sync::OnceLock;

use ndarray::{Array2, ArrayView2};

use super::{QuadraticForm, gradient_work};
use crate::linalg::krylov::Krylov;
use crate::linalg::symmetric_eigen;

/// Most Lanczos steps for bounds on a spectrum.
pub(crate) const LANCZOS_STEPS: usize = 40;

/// Largest work of the Lanczos steps beyond those for the spread, in multiply-adds.
const WORK: f64 = 1e9;

/// Largest n at which the spectrum of a matrix of any sign is computed exactly.
const EXACT: usize = 256;

/// Lanczos steps for the spread: a proximal weight needs few digits, and setup must be fast.
const SPREAD_STEPS: usize = 12;

/// Returns the work of bounds on the spectrum of a C given by its products.
pub(crate) fn bounds_work(form: &dyn QuadraticForm) -> f64 {
    bounds_steps(form) as f64 * gradient_work(form, 1)
}

/// Returns the number of Lanczos steps for bounds on the spectrum of C.
pub(super) fn bounds_steps(form: &dyn QuadraticForm) -> usize {
    ((WORK / gradient_work(form, 1)) as usize).clamp(SPREAD_STEPS, LANCZOS_STEPS)
}

/// Cache of the spectrum of the C of a [`QuadraticForm`](super::QuadraticForm), computed on first use.
#[derive(Debug, Clone)]
pub struct Spectrum {
    exact: usize,
    range: (f64, f64),
    bounds: OnceLock<(f64, f64)>,
    spread: OnceLock<f64>,
}

/// The cache for a matrix of any sign.
impl Default for Spectrum {
    fn default() -> Self {
        Self {
            exact: EXACT,
            range: (f64::NEG_INFINITY, f64::INFINITY),
            bounds: OnceLock::new(),
            spread: OnceLock::new(),
        }
    }
}

impl Spectrum {
    /// Creates the cache for `scale` times a positive semidefinite matrix.
    pub(super) fn semidefinite(scale: f64) -> Self {
        let range = if scale < 0.0 { (f64::NEG_INFINITY, 0.0) } else { (0.0, f64::INFINITY) };
        Self { exact: 0, range, ..Self::default() }
    }

    /// Returns bounds on the smallest and largest eigenvalue of an n×n matrix, by `steps` Lanczos steps
    /// unless n is small; None if its product `apply` returns None.
    pub(super) fn bounds(
        &self,
        (n, steps): (usize, usize),
        apply: impl Fn(ArrayView2<'_, f64>) -> Option<Array2<f64>>,
    ) -> Option<(f64, f64)> {
        if let Some(known) = self.bounds.get() {
            return Some(*known);
        }
        let steps = if n <= self.exact { n } else { steps };
        let (low, high) = lanczos_bounds(n, steps, apply)?;
        let inside = |v: f64| v.max(self.range.0).min(self.range.1);
        Some(*self.bounds.get_or_init(|| (inside(low), inside(high))))
    }

    /// Returns ½(λ_max − λ_min)‖D‖ from a few Lanczos steps.
    pub(super) fn spread(
        &self,
        n: usize,
        apply: impl Fn(ArrayView2<'_, f64>) -> Array2<f64>,
        metric: Option<ArrayView2<'_, f64>>,
    ) -> f64 {
        *self.spread.get_or_init(|| {
            let bounds = lanczos_bounds(n, SPREAD_STEPS, |v| Some(apply(v)));
            let (low, high) = bounds.unwrap_or((f64::NAN, f64::NAN));
            let metric = metric.map_or(1.0, |metric| {
                let (values, _) = symmetric_eigen(metric);
                values.iter().fold(0.0f64, |m, v| m.max(v.abs()))
            });
            0.5 * (high - low) * metric
        })
    }
}

/// Returns bounds (lower ≤ 0, upper ≥ 0) on the spectrum of D ⊗ C from those of C.
pub(crate) fn metric_bounds(low: f64, high: f64, metric: Option<ArrayView2<'_, f64>>) -> (f64, f64) {
    let (d_low, d_high) = match metric {
        None => (1.0, 1.0),
        Some(metric) => {
            let (values, _) = symmetric_eigen(metric);
            (values[0], values[values.len() - 1])
        }
    };
    let products = [low * d_low, low * d_high, high * d_low, high * d_high];
    (products.iter().fold(0.0f64, |m, &v| m.min(v)), products.iter().fold(0.0f64, |m, &v| m.max(v)))
}

/// Returns bounds on the extreme eigenvalues of a symmetric operator by `steps` Lanczos iterations with full
/// reorthogonalisation: the extreme Ritz values, moved outwards by the norm of the residual (Zhou and Li,
/// Linear Algebra Appl. 435, 2011). Exact if `steps` reaches n; None if `apply` returns None.
pub(crate) fn lanczos_bounds(
    n: usize,
    steps: usize,
    apply: impl Fn(ArrayView2<'_, f64>) -> Option<Array2<f64>>,
) -> Option<(f64, f64)> {
    let steps = steps.min(n);
    let mut space = Krylov::new(n, 1, steps);
    for _ in 0..steps {
        if !space.grow(&apply, &|| true)? {
            return Some((f64::NAN, f64::NAN));
        }
        if space.residual() == 0.0 {
            break;
        }
    }
    let (values, _) = space.ritz();
    Some((values[0] - space.residual(), values[values.len() - 1] + space.residual()))
}
