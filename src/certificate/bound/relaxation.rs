//! Relaxation to the Fantope: a bound for every n whose matrix can be formed.
//!
//! With P = XXᵀ, `max ⟨C, P⟩ − g(P)` over `{0 ⪯ P ⪯ I, tr P = r}` is convex; g follows from a restriction or
//! penalty of X (d'Aspremont, El Ghaoui, Jordan, Lanckriet 2007 for r = 1; Vu, Cho, Lei, Rohe 2013):
//!
//! | of X | of P |
//! |---|---|
//! | ‖X‖₀ ≤ K | ‖P‖₁ ≤ Σ_t ‖u_t‖₁² ≤ Σ_t ‖u_t‖₀ ≤ K |
//! | −2λ‖X‖₀ | −2λ‖P‖₁ |
//! | −2λ‖X‖₁ | −2λ(r√n + ‖P‖₁)/(√n + 1): the chord of t over t² on 1 ≤ t = ‖u_t‖₁ ≤ √n |
//! | X ≥ 0 | P ≥ 0 |
//! | X ≥ 0 and ‖X‖₀ ≤ K | P ≥ 0 and ‖P‖₁ ≤ K |
//! | k nonzero rows | ‖P‖₁ ≤ k‖P‖_F = k√r |
//! | −2λ per nonzero row | −2λ‖P‖₁/√r |
//!
//! Every symmetric U gives the upper bound `Σ_top-r λ(C − U) + g*(U)`. ADMM makes a U with finite g*(U) in
//! every step. A step is two projections, one of them an eigenvalue decomposition, O(n³).

use ndarray::{Array1, Array2, Axis, Zip};

use crate::internal::{Cholesky, numerics, symmetric_eigenvalues};
use crate::linalg::symmetric_eigen;

/// Multiply-adds of an eigenvalue decomposition, in units of n³.
pub(super) const EIGEN: f64 = 4.0;

/// Multiply-adds of an ADMM step, in units of n³.
pub(super) const STEP: f64 = 8.0;

/// Function g of the relaxation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Entries {
    /// g = 0.
    Free,
    /// g = 0 if ‖P‖₁ is at most this radius, else ∞.
    Within(f64),
    /// g is this penalty times ‖P‖₁.
    Penalized(f64),
    /// g = 0 if P ≥ 0, else ∞.
    Nonnegative,
    /// g = 0 if P ≥ 0 and ‖P‖₁ is at most this radius, else ∞.
    NonnegativeWithin(f64),
}

impl Entries {
    /// Returns g*(U) for a U of [`Admm`].
    fn conjugate(self, u: &Array2<f64>) -> f64 {
        match self {
            Self::Within(radius) => radius * largest(u),
            Self::NonnegativeWithin(radius) => radius * highest(u),
            _ => 0.0,
        }
    }

    /// Returns an upper bound on max ⟨U, P⟩ − g(P) over ‖P‖₁ ≤ nr if U is off by at most `ulp` per entry.
    pub(super) fn conjugate_above(self, u: &Array2<f64>, r: usize, ulp: f64) -> f64 {
        let all = u.nrows() as f64 * r as f64;
        match self {
            Self::Free => largest(u) * all,
            Self::Within(radius) => radius * (largest(u) + ulp),
            Self::Penalized(penalty) => ((largest(u) - penalty).max(0.0) + ulp) * all,
            Self::Nonnegative => (highest(u) + ulp) * all,
            Self::NonnegativeWithin(radius) => radius * (highest(u) + ulp),
        }
    }

    /// Returns argmin g(Y) + σ/2‖Y − V‖².
    fn proximal(self, v: &Array2<f64>, sigma: f64) -> Array2<f64> {
        let shrink = |by: f64| v.mapv(|v| v.signum() * (v.abs() - by).max(0.0));
        match self {
            Self::Free => v.clone(),
            Self::Within(radius) => shrink(threshold(v, radius)),
            Self::Penalized(penalty) => shrink(penalty / sigma),
            Self::Nonnegative => v.mapv(|v| v.max(0.0)),
            Self::NonnegativeWithin(radius) => {
                let above = v.mapv(|v| v.max(0.0));
                let by = threshold(&above, radius);
                above.mapv(|v| (v - by).max(0.0))
            }
        }
    }
}

/// Returns the largest entry, or 0 if none is positive.
fn highest(a: &Array2<f64>) -> f64 {
    a.iter().fold(0.0, |m: f64, &v| m.max(v))
}

fn largest(a: &Array2<f64>) -> f64 {
    a.iter().fold(0.0, |m, v| m.max(v.abs()))
}

fn norm(a: &Array2<f64>) -> f64 {
    crate::internal::square(a).sqrt()
}

/// Returns t with Σ (|v| − t)₊ = radius, or 0 if the sum of magnitudes is at most `radius`.
fn threshold(v: &Array2<f64>, radius: f64) -> f64 {
    let mut sizes: Vec<f64> = v.iter().map(|v| v.abs()).collect();
    // The set of magnitudes above t shrinks to a fixed point (Michelot 1986), in linear time a pass.
    loop {
        let before = sizes.len();
        let t = (sizes.iter().sum::<f64>() - radius).max(0.0) / before as f64;
        sizes.retain(|&v| v > t);
        if sizes.len() == before || sizes.is_empty() {
            return t;
        }
    }
}

/// Returns the sum of the `count` largest values, which are reordered.
pub(super) fn largest_sum(values: &mut [f64], count: usize) -> f64 {
    if count == 0 {
        return 0.0;
    }
    if count < values.len() {
        values.select_nth_unstable_by(count - 1, |a, b| b.total_cmp(a));
    }
    values.iter().take(count).sum()
}

/// Returns the sum of the r largest eigenvalues.
pub(super) fn ky_fan(a: &Array2<f64>, r: usize) -> f64 {
    let values = symmetric_eigenvalues(a.view());
    values.iter().rev().take(r).sum()
}

/// Returns an upper bound on the sum of the r largest eigenvalues, by the residuals of the decomposition.
pub(super) fn ky_fan_above(a: &Array2<f64>, r: usize) -> f64 {
    let (values, vectors) = symmetric_eigen(a.view());
    let off = eigen_error(a, &values, &vectors);
    values.iter().rev().take(r).sum::<f64>() + r as f64 * off
}

/// Returns a bound on the excess of an eigenvalue of A over that of its computed decomposition.
///
/// With A = V E Vᵀ + R the eigenvalues of A exceed those of V E Vᵀ by at most ‖R‖, and these exceed E by
/// at most ‖VᵀV − I‖·max|E| (Weyl, Ostrowski). The products that make R are off by a few n ulp of ‖V‖_F‖E‖_F.
pub(super) fn eigen_error(a: &Array2<f64>, values: &Array1<f64>, vectors: &Array2<f64>) -> f64 {
    let n = a.nrows();
    let residual = a - &(vectors * values).dot(&vectors.t());
    let defect = vectors.t().dot(vectors) - Array2::<f64>::eye(n);
    let size = values.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    let rounding = n as f64 * numerics::ULPS;
    norm(&residual) + norm(&defect) * size + rounding * (n as f64).sqrt() * (norm(a) + size)
}

/// Returns an upper bound on the sum of the r largest eigenvalues of a difference A, near the `computed` sum.
///
/// For r = 1 by a factorization. If θI − A has a Cholesky factor, λ(A) ≤ θ + γ tr(θI − A)/(1 − γ) with γ
/// equal to n + 2 units of roundoff (Rump 2006, Verification of positive definiteness).
pub(super) fn largest_above(a: &Array2<f64>, r: usize, computed: f64) -> f64 {
    let n = a.nrows() as f64;
    let difference = f64::EPSILON * norm(a);
    if r > 1 {
        return ky_fan_above(a, r) + r as f64 * difference;
    }
    let gamma = (n + 2.0) * f64::EPSILON;
    let most = n * (computed.abs() + norm(a));
    for widened in [1.0, 4.0, 16.0] {
        let theta = computed + widened * gamma * most;
        let mut shifted = a.mapv(|v| -v);
        shifted.diag_mut().mapv_inplace(|v| theta + v);
        if Cholesky::new(shifted.view()).is_some() {
            let trace: f64 = shifted.diag().iter().map(|v| v.abs()).sum();
            return theta + 2.0 * gamma * trace + difference;
        }
    }
    ky_fan_above(a, r) + difference
}

/// Returns the nearest matrix with 0 ⪯ P ⪯ I and tr P = r.
fn onto_fantope(a: &Array2<f64>, r: usize) -> Array2<f64> {
    let (values, vectors) = symmetric_eigen(a.view());
    let shifted = |theta: f64| values.mapv(|v| (v - theta).clamp(0.0, 1.0));
    let (mut low, mut high) = (values[0] - 1.0, values[values.len() - 1]);
    while high - low > f64::EPSILON * low.abs().max(high.abs()) {
        let middle = 0.5 * (low + high);
        match shifted(middle).sum() > r as f64 {
            true => low = middle,
            false => high = middle,
        }
    }
    let weights: Array1<f64> = shifted(low);
    let first = weights.iter().position(|&w| w > 0.0).unwrap_or(0);
    let kept = vectors.slice(ndarray::s![.., first..]);
    (&kept * &weights.slice(ndarray::s![first..])).dot(&kept.t())
}

/// Steps between two balance checks of the residuals.
const BALANCED: usize = 10;

/// Largest ratio of the residuals that needs no balancing.
const IMBALANCE: f64 = 3.0;

/// Factor by which σ is multiplied or divided if the residuals are not balanced.
const STRONGER: f64 = 1.5;

/// State of ADMM on P in the Fantope, Y with g, and P = Y.
#[derive(Debug, Clone)]
pub(super) struct Admm {
    r: usize,
    entries: Entries,
    sigma: f64,
    y: Array2<f64>,
    u: Array2<f64>,
    steps: usize,
    /// ‖P − Y‖ and σ‖ΔY‖ of the last step.
    residuals: (f64, f64),
}

impl Admm {
    pub(super) fn new(c: &Array2<f64>, r: usize, entries: Entries) -> Self {
        let n = c.nrows();
        let spread = norm(c) / (n as f64).sqrt();
        let y = Array2::eye(n) * (r as f64 / n as f64);
        Self {
            r,
            entries,
            sigma: if spread > 0.0 { spread } else { 1.0 },
            y,
            u: Array2::zeros((n, n)),
            steps: 0,
            residuals: (f64::INFINITY, f64::INFINITY),
        }
    }

    /// Returns U, for which g*(U) is finite.
    pub(super) fn multiplier(&self) -> &Array2<f64> {
        &self.u
    }

    /// Returns Y, for which g(Y) is finite.
    pub(super) fn solution(&self) -> &Array2<f64> {
        &self.y
    }

    /// Returns the number of steps.
    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    /// Returns g*(U).
    pub(super) fn conjugate(&self) -> f64 {
        self.entries.conjugate(&self.u)
    }

    /// Returns the root of the largest sum of squares of U over k rows, k entries each, `fixed` among both.
    pub(super) fn framed(&self, k: usize, fixed: &[bool]) -> f64 {
        let others = k - fixed.iter().filter(|&&f| f).count();
        let mut squares = Vec::with_capacity(fixed.len());
        let (mut sum, mut rows) = (0.0, Vec::with_capacity(fixed.len()));
        for (i, row) in self.u.rows().into_iter().enumerate() {
            squares.clear();
            let mut own = 0.0;
            for (j, u) in row.iter().enumerate() {
                match fixed[j] || i == j {
                    true => own += u * u,
                    false => squares.push(u * u),
                }
            }
            match fixed[i] {
                true => sum += own + largest_sum(&mut squares, others),
                // The diagonal entry of a free row is one of its k entries.
                false => rows.push(own + largest_sum(&mut squares, others.saturating_sub(1))),
            }
        }
        (sum + largest_sum(&mut rows, others)).sqrt()
    }

    /// Returns the state on some of the rows.
    pub(super) fn restricted(&self, kept: &[usize]) -> Self {
        let part = |a: &Array2<f64>| a.select(Axis(0), kept).select(Axis(1), kept);
        Self { y: part(&self.y), u: part(&self.u), ..*self }
    }

    /// Returns the bound that U gives.
    pub(super) fn bound(&self, c: &Array2<f64>) -> f64 {
        ky_fan(&(c - &self.u), self.r) + self.entries.conjugate(&self.u)
    }

    /// Does one step of ADMM.
    pub(super) fn step(&mut self, c: &Array2<f64>) {
        // The weight of the over-relaxation: Boyd et al., Found. Trends Mach. Learn. 3, 2011, section 3.4.3.
        let (sigma, weight) = (self.sigma, 1.6);
        let mut point = c - &self.u;
        Zip::from(&mut point).and(&self.y).for_each(|p, &y| *p = *p / sigma + y);
        let p = onto_fantope(&point, self.r);
        let mut v = p.clone();
        Zip::from(&mut v)
            .and(&self.y)
            .and(&self.u)
            .for_each(|v, &y, &u| *v = weight * *v + (1.0 - weight) * y + u / sigma);
        let v = crate::internal::symmetric(&v);
        let y = self.entries.proximal(&v, sigma);
        self.u = &v - &y;
        self.u.mapv_inplace(|u| sigma * u);
        if let Entries::Penalized(penalty) = self.entries {
            self.u.mapv_inplace(|u| u.clamp(-penalty, penalty));
        }
        self.residuals = (norm(&(&p - &y)), sigma * norm(&(&y - &self.y)));
        self.y = y;
        self.steps += 1;
        if self.steps.is_multiple_of(BALANCED) {
            self.balance(c);
        }
    }

    /// Returns both residuals, the first relative to Y and the second to C.
    fn relative(&self, c: &Array2<f64>) -> (f64, f64) {
        let of = |value: f64, size: f64| value / size.max(f64::MIN_POSITIVE);
        (of(self.residuals.0, norm(&self.y)), of(self.residuals.1, norm(c)))
    }

    /// Returns whether both relative residuals are at most `tolerance`.
    pub(super) fn has_converged(&self, c: &Array2<f64>, tolerance: f64) -> bool {
        let (primal, dual) = self.relative(c);
        primal.max(dual) <= tolerance
    }

    /// Adapts σ so that neither residual falls more slowly than the other (Boyd et al. 2011, section 3.4.1).
    fn balance(&mut self, c: &Array2<f64>) {
        let (primal, dual) = self.relative(c);
        if primal > IMBALANCE * dual {
            self.sigma *= STRONGER;
        } else if dual > IMBALANCE * primal {
            self.sigma /= STRONGER;
        }
    }
}

#[cfg(test)]
mod tests;
