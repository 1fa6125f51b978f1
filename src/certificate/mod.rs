//! Certificates of a point: block-2 stationarity over all pairs, criticality, optimality.
//!
//! * **block-2 gap**: the largest decrease that any single pair of rows can make, each pair solved
//!   globally with exact curvature and no proximal term. Two zero rows cannot move (V·0 = 0), so
//!   those pairs are proved and not visited.
//! * **ε-BS₂ measure** (OBCD paper, Definition 4.1): the mean of `dist(I, argmin)²` over all pairs.
//! * **criticality**: `dist(0, ∂_M F(X))`, see [`criticality`](fn@criticality). A point that no pair
//!   can improve need not be critical when h is not smooth, so both are reported.
//! * **lower bound**: a value at most F at every feasible point, see [`lower_bound`];
//!   [`minimize_proved`](crate::search::minimize_proved) searches until F is within a tolerance of this bound.
//! * **optimum**: for ℓ0 and ℓ1 with a large enough weight the optimal value is known in closed
//!   form, see [`Certificate::optimum`].
//!
//! Cost: one pair solve per visited pair, in parallel; the same result for every number of threads.

mod bound;
mod criticality;
mod gaps;
mod optimum;
mod proved;

use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::manifold::{drift, start_constraint};
use crate::objective::GoOn;
use crate::problem::Problem;
use crate::threads::Threads;

pub(crate) use bound::FORMED_ROWS;
pub use bound::{Bound, BoundOptions, Method, Restriction, lower_bound};
pub use criticality::criticality;
use criticality::criticality_while;
pub use gaps::{Gap, column_gap, row_gap, stationarity};
use gaps::{column_gap_while, majorised_gap, survey};
pub(crate) use optimum::{known_minimiser, known_optimum};
pub use proved::Prover;
pub(crate) use proved::Raise;

/// Certificate of a point: its values, its distance from stationarity, and the optimum if it is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Certificate {
    /// F(X).
    pub objective: f64,
    /// f(X).
    pub smooth_value: f64,
    /// h(X).
    pub penalty_value: f64,
    /// Magnitude of F to which tolerances are relative, see [`Problem::magnitude`].
    pub magnitude: f64,
    /// ‖XᵀX − I‖_F plus the distance from the penalty's domain. With mixed signs ‖XᵀJX − K‖_F, K = J
    /// for square X, else the nearest diagonal of ±1 if XᵀJX is one up to 1e-8, else 0.
    pub feasibility: f64,
    /// Largest decrease that any single pair can make; 0 if every pair is stationary. With mixed signs
    /// pairs of columns count too (if they can move), and the gap is infinite along a pair that is
    /// unbounded below.
    pub block2_gap: f64,
    /// Pair that makes the largest decrease, none if the gap is 0.
    pub block2_pair: Option<(usize, usize)>,
    /// True for a pair of columns in `block2_pair`.
    pub block2_columns: bool,
    /// Mean of dist(I, argmin)² over all pairs (Definition 4.1); not a number with mixed signs.
    pub block2_measure: f64,
    /// dist(0, ∂_M F(X)).
    pub criticality: f64,
    /// ‖G − JXGᵀXK‖_F, the first-order condition of the smooth part f alone, see
    /// [`stationarity`]; none for mixed signs with r < n.
    pub stationarity: Option<f64>,
    /// Number of pairs: n(n−1)/2 of rows, and the pairs of columns that were looked at.
    pub pairs: u64,
    /// Number of pairs of zero rows among `pairs`: proved stationary without a visit.
    pub proved_pairs: u64,
    /// Optimal value, if it is known: ℓ0 and ℓ1 with a large enough λ, smooth problems that a spectral or
    /// singular value decomposition solves, and a square X ≥ 0 (the best permutation).
    pub optimum: Option<f64>,
}

impl Certificate {
    /// Returns whether the point is proved optimal: its value is the known optimum up to `tolerance`
    /// relative to the [magnitude](Certificate::magnitude) of F.
    pub fn is_optimal(&self, tolerance: f64) -> bool {
        self.optimum.is_some_and(|optimum| self.objective - optimum <= tolerance * self.magnitude)
    }
}

/// Certifies a point with orthonormal columns, or for a mixed signature a point with any XᵀJX.
///
/// If f is not quadratic, the gap is that of its majoriser at `x` with the Lipschitz constant of f: F falls
/// at least as much along that pair. Without a constant the gap is NaN. Under a [limit](Problem::with_limit) no pair is
/// looked at, as a pair may leave it: the certificate is that of [`certify_values`].
///
/// # Errors
/// If the problem is not valid, its signature is all −1, or `x` has another shape, an entry
/// that is not finite, or determinant −1 where rotations are asked for.
///
/// ```
/// use ndarray::{Array2, array};
/// use orthobcd::{Problem, Quadratic, Signature, Threads, certify, penalty::Penalty};
///
/// let smooth = Quadratic::new(array![[-3.0, 0.5], [0.5, -1.0]], None, None)?;
/// let signature = Signature::stiefel(2);
/// let penalty = Penalty::l0(10.0);
/// let problem = Problem::new(&smooth, &penalty, &signature, 1)?;
/// let certificate = certify(&problem, array![[1.0], [0.0]].view(), &Threads::serial())?;
/// assert_eq!(certificate.optimum, Some(8.5));
/// assert!(certificate.is_optimal(1e-12) && certificate.block2_gap == 0.0);
/// # Ok::<(), orthobcd::Error>(())
/// ```
pub fn certify(problem: &Problem<'_>, x: ArrayView2<'_, f64>, threads: &Threads) -> Result<Certificate> {
    certify_while(problem, x, threads, &|| true)
}

/// Certifies a point while `go_on` allows; unfinished fields are NaN or none, as from [`certify_values`].
///
/// # Errors
/// As [`certify`].
pub(crate) fn certify_while(
    problem: &Problem<'_>,
    x: ArrayView2<'_, f64>,
    threads: &Threads,
    go_on: GoOn<'_>,
) -> Result<Certificate> {
    let (mut certificate, gradient) = evaluated(problem, x, threads, go_on)?;
    if problem.limit.is_some() {
        return Ok(certificate);
    }
    let x = x.as_standard_layout();
    let Some(form) = problem.smooth.quadratic() else {
        let found = majorised_gap(problem, x.view(), gradient.view(), go_on);
        (certificate.block2_gap, certificate.block2_pair) = (found.decrease, found.pair);
        certificate.pairs = found.pairs;
        return Ok(certificate);
    };
    if problem.signature.is_definite() {
        let known = known_optimum(problem, f64::INFINITY, threads, go_on);
        certificate.optimum = known.map(|(optimum, _)| optimum);
    }
    let Some(rows) = survey((problem, form), x.view(), threads, go_on) else {
        return Ok(certificate);
    };
    (certificate.block2_gap, certificate.block2_pair) = (rows.gap, rows.pair);
    (certificate.pairs, certificate.proved_pairs) = (rows.pairs, rows.unvisited);
    if problem.signature.is_definite() {
        certificate.block2_measure = rows.distance / rows.pairs as f64;
    } else if let Some(columns) = column_gap_while(problem, &x.to_owned(), threads, go_on) {
        certificate.pairs += columns.pairs;
        certificate.block2_columns = !(columns.decrease <= rows.gap);
        if certificate.block2_columns {
            (certificate.block2_gap, certificate.block2_pair) = (columns.decrease, columns.pair);
        }
    }
    Ok(certificate)
}

/// Returns the part of a [`Certificate`] that one value and gradient give. No pair is looked at, so the gap
/// and the measure are NaN, and the optimum is none.
///
/// # Errors
/// As [`certify`].
pub fn certify_values(problem: &Problem<'_>, x: ArrayView2<'_, f64>, threads: &Threads) -> Result<Certificate> {
    evaluated(problem, x, threads, &|| true).map(|(certificate, _)| certificate)
}

/// Returns the certificate of [`certify_values`], and ∇f(X).
fn evaluated(
    problem: &Problem<'_>,
    x: ArrayView2<'_, f64>,
    threads: &Threads,
    go_on: GoOn<'_>,
) -> Result<(Certificate, Array2<f64>)> {
    let (n, r) = (problem.smooth.rows(), problem.components);
    problem.check_matrix("x", x)?;
    if !problem.holds(x) {
        return Err(Error::invalid("x", "must have determinant +1"));
    }
    let signature = problem.signature;
    if signature.is_definite() && signature.sign(0) < 0.0 {
        return Err(Error::invalid("signature", "must not be all -1"));
    }
    let x = x.as_standard_layout();
    let tracker = problem.tracker(x.view(), threads);
    let (smooth_value, gradient) = (tracker.value(x.view()), tracker.gradient(threads));
    let penalty_value = problem.penalty_value(x.view());
    let k = if signature.is_definite() { Array2::eye(r) } else { start_constraint(x.view(), signature) };
    let constant = problem.constant(k.view());
    let certificate = Certificate {
        objective: smooth_value + penalty_value,
        smooth_value,
        penalty_value,
        magnitude: problem.magnitude(smooth_value, penalty_value, constant),
        feasibility: drift(x.view(), signature, k.view()) + problem.infeasibility(x.view()),
        block2_gap: f64::NAN,
        block2_pair: None,
        block2_columns: false,
        block2_measure: f64::NAN,
        criticality: match problem.limit {
            Some(_) => f64::NAN,
            None => criticality_while(problem.penalty, x.view(), gradient.view(), signature, go_on),
        },
        stationarity: (signature.is_definite() || n == r).then(|| stationarity(x.view(), gradient.view(), signature)),
        pairs: 0,
        proved_pairs: 0,
        optimum: None,
    };
    Ok((certificate, gradient))
}

#[cfg(test)]
mod tests;
