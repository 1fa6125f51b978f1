//! Lower bounds on F over all orthonormal X.
//!
//! With f = ½⟨X, MX⟩, C = −M and the columns u_t of X, F = −½(Σ_t u_tᵀCu_t − 2h(X)). For any symmetric Λ
//!
//! ```text
//! Σ_t u_tᵀ C u_t = ⟨Λ, XXᵀ⟩ + Σ_t u_tᵀ(C − Λ)u_t ≤ Σ_top-r λ(Λ) + Σ_t max { uᵀ(C − Λ)u : ‖u‖ = 1, ‖u‖₀ ≤ k_t }
//! ```
//!
//! (Ky Fan), so every Λ with an upper bound on the sparse maxima gives a valid bound. For Λ ⪰ 0 this is the
//! Lagrangian of Σ u_tu_tᵀ ⪯ I with the multiplier Λ. Three methods, one after the other:
//!
//! * [`relaxation`]: an upper bound on the second sum in closed form, for every penalty if C is formed;
//! * for a limit on the nonzeros, the sparse maxima by branch and bound ([`maximum`]), Λ by the [`master`];
//! * both at the nodes of a [`tree`] that decides which row is nonzero in which column, a proof for small n.
//!
//! With X ≥ 0 and a limit on the nonzeros, uᵀCu ≤ uᵀC⁺u and the tree is that of C⁺: C with zeros in place of
//! its negative off-diagonal entries.
//!
//! With a limit on the nonzero rows, or a penalty for each, the leading eigenvectors of a block of C minimise
//! F. After the relaxation, [`maximum`] searches for the block.
//!
//! Results are rounded outwards: sums of eigenvalues by the residuals of their decomposition, sums and
//! differences of matrices by an ulp of their norms. Single eigenvalues are also bounded by a factorization
//! ([`relaxation::largest_above`]). The bounds hold for C as the objective forms it.
//!
//! The [`tree`] leaves out and reports the features that no point as good as the known one uses.

mod master;
mod maximum;
mod node;
mod open;
mod relaxation;
mod search;
mod tree;

use std::borrow::Cow;
use std::sync::Mutex;
use std::time::Instant;

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::internal::{Clock, locked, numerics, pool};
use crate::objective::QuadraticForm;
use crate::penalty::{Penalty, Weights};
use crate::problem::{Cardinality, Limit, Problem, RowSparsity};
use crate::solver::Monitor;
use crate::threads::Threads;
use relaxation::Entries;
pub(crate) use search::FORMED_ROWS;
pub(super) use search::{Search, SearchLimits};

/// Restriction or penalty h of the entries of X.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Restriction {
    /// h = 0, or an unknown h ≥ 0.
    Free,
    /// h = λ‖X‖₀.
    Count(f64),
    /// h ≥ λ‖X‖₁.
    Absolute(f64),
    /// X ≥ 0.
    Nonnegative,
    /// Limit on the number of nonzeros.
    Cardinality(Cardinality),
    /// X ≥ 0 and a limit on the number of nonzeros.
    NonnegativeCardinality(Cardinality),
    /// Limit on the number of nonzero rows.
    Rows(usize),
    /// h = λ times the number of nonzero rows.
    RowPenalty(f64),
}

impl Restriction {
    /// Returns the restriction of a problem by its limit or its penalty, for ℓ1 by its least weight; None unless h is 0, ℓ0,
    /// ℓ1 or X ≥ 0.
    pub fn of(problem: &Problem<'_>) -> Option<Self> {
        match problem.limit() {
            Some(Limit::Entries(sparsity)) => {
                let count = sparsity.cardinality.clone();
                return Some(match sparsity.nonnegative {
                    true => Self::NonnegativeCardinality(count),
                    false => Self::Cardinality(count),
                });
            }
            Some(&Limit::Rows(RowSparsity::Count(count))) => return Some(Self::Rows(count)),
            Some(&Limit::Rows(RowSparsity::Penalty(lambda))) => {
                return Some(Self::RowPenalty(lambda));
            }
            None => {}
        }
        let penalty = problem.penalty();
        if penalty.is_none() {
            return Some(Self::Free);
        }
        if *penalty == Penalty::NONNEGATIVE {
            return Some(Self::Nonnegative);
        }
        if let Some(lambda) = penalty.count() {
            return Some(Self::Count(lambda));
        }
        penalty.l1_weights().map(|weights| {
            Self::Absolute(match weights {
                Weights::Scalar(lambda) => *lambda,
                Weights::Entrywise(weights) => weights.iter().copied().fold(f64::INFINITY, f64::min),
            })
        })
    }

    /// Checks the restriction against an n×r matrix.
    fn check(&self, n: usize, r: usize) -> Result<()> {
        let bad = |message: String| Err(Error::invalid("count", message));
        let few = |count: usize| bad(format!("must be at least r = {r}, got {count}"));
        match self {
            Self::Rows(count) if *count < r => few(*count),
            _ => match self.cardinality() {
                Some(Cardinality::Total(count)) if *count < r => few(*count),
                Some(Cardinality::Columns(counts)) if counts.len() != r => {
                    bad(format!("must have {r} entries, got {}", counts.len()))
                }
                Some(Cardinality::Columns(counts)) if counts.iter().any(|k| !(1..=n).contains(k)) => {
                    bad(format!("must be between 1 and n = {n} in every column"))
                }
                _ => Ok(()),
            },
        }
    }

    /// Returns the limit on the number of nonzeros, if there is one.
    fn cardinality(&self) -> Option<&Cardinality> {
        match self {
            Self::Cardinality(count) | Self::NonnegativeCardinality(count) => Some(count),
            _ => None,
        }
    }

    /// Returns a B with uᵀCu ≤ uᵀBu for every column u of a feasible X: C⁺ for X ≥ 0 with a limit, else C.
    fn bounding<'c>(&self, c: &'c Array2<f64>) -> Cow<'c, Array2<f64>> {
        if !matches!(self, Self::NonnegativeCardinality(_)) {
            return Cow::Borrowed(c);
        }
        let mut above = c.mapv(|v| v.max(0.0));
        above.diag_mut().assign(&c.diag());
        Cow::Owned(above)
    }

    /// Returns g of the relaxation, and the constant to add to twice the bound on F.
    fn relaxed(&self, n: usize, r: usize) -> (Entries, f64) {
        match self {
            Self::Free => (Entries::Free, 0.0),
            Self::Count(lambda) => (Entries::Penalized(2.0 * lambda), 0.0),
            Self::Absolute(lambda) => {
                let root = (n as f64).sqrt();
                let penalty = 2.0 * lambda / (root + 1.0);
                (Entries::Penalized(penalty), penalty * root * r as f64)
            }
            Self::Nonnegative => (Entries::Nonnegative, 0.0),
            Self::Cardinality(count) => (Entries::Within(nonzeros(count, n * r)), 0.0),
            Self::NonnegativeCardinality(count) => (Entries::NonnegativeWithin(nonzeros(count, n * r)), 0.0),
            // ‖P‖₁ ≤ k‖P‖_F = k√r on k rows.
            Self::Rows(count) => {
                let radius = (*count).min(n) as f64 * (r as f64).sqrt();
                (Entries::Within(radius), 0.0)
            }
            Self::RowPenalty(lambda) => (Entries::Penalized(2.0 * lambda / (r as f64).sqrt()), 0.0),
        }
    }
}

/// Returns the largest number of nonzeros in total, at most `all`.
fn nonzeros(count: &Cardinality, all: usize) -> f64 {
    let total = match count {
        Cardinality::Total(count) => *count,
        Cardinality::Columns(counts) => counts.iter().sum(),
    };
    total.min(all) as f64
}

/// Method that gave a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Method {
    /// The r largest eigenvalues of C alone.
    Eigenvalues,
    /// The relaxation to 0 ⪯ P ⪯ I, tr P = r.
    Fantope,
    /// The sparse maxima at one Λ, bounded by branch and bound.
    Lagrangian,
    /// Branch and bound on the support of X.
    BranchAndBound,
}

impl Method {
    /// Returns the name of the method.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eigenvalues => "eigenvalues",
            Self::Fantope => "fantope",
            Self::Lagrangian => "lagrangian",
            Self::BranchAndBound => "branch-and-bound",
        }
    }
}

/// Lower bound on F over all X with XᵀX = I.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Bound {
    /// Value that is at most F at every feasible X.
    pub value: f64,
    /// F of the point less `value`, over the [magnitude](BoundOptions::magnitude) of F at the point.
    pub gap: f64,
    /// Method that gave `value`.
    pub method: Method,
    /// Λ, n×n, of the best bound that a single Λ gave; none if C was not formed.
    pub multiplier: Option<Array2<f64>>,
    /// Number of nodes of the branch and bound.
    pub nodes: usize,
    /// Rows proved zero in every feasible X whose F is at most the given objective; ascending. Empty unless
    /// branch and bound over a number of nonzeros solved all its roots.
    pub excluded: Vec<usize>,
    /// Seconds and value of the first bound and of every better one.
    pub history: Vec<(f64, f64)>,
}

/// Default relative gap, and largest relative residual of a relaxation that has converged.
const GAP: f64 = 1e-6;

/// Options that end the search for a lower bound.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct BoundOptions {
    /// F at the point whose gap is wanted. The search ends near this value, as no bound exceeds the least F.
    pub objective: f64,
    /// Magnitude of F to which gaps are relative, see [`Problem::magnitude`](crate::Problem::magnitude).
    /// It is raised to 1e-6 of ½r‖C‖, below which a gap of 1e-6 would be rounding.
    pub magnitude: f64,
    /// The search ends when `objective − bound ≤ gap_tol · magnitude`.
    pub gap_tol: f64,
    /// Limit in seconds; without it the work is counted, and the result the same every time.
    pub max_time: Option<f64>,
}

impl BoundOptions {
    /// Returns options with a gap of 1e-6 and no time limit.
    pub fn new(objective: f64, magnitude: f64) -> Self {
        Self { objective, magnitude, gap_tol: GAP, max_time: None }
    }

    pub(super) fn check(&self) -> Result<()> {
        if !self.objective.is_finite() {
            return Err(Error::invalid("objective", "must be finite"));
        }
        if !(self.magnitude >= 0.0 && self.magnitude.is_finite()) {
            return Err(Error::invalid("magnitude", "must be finite and at least 0"));
        }
        if !(self.gap_tol >= 0.0) {
            return Err(Error::invalid("gap_tol", "must be at least 0"));
        }
        if self.max_time.is_some_and(|limit| !(limit >= 0.0)) {
            return Err(Error::invalid("max_time", "must be at least 0"));
        }
        Ok(())
    }
}

/// Computes a lower bound on `form` + h over the n×r matrices with XᵀX = I.
///
/// The monitor is polled every few hundredths of a second. If it stops the search, or the time limit is
/// reached, the result is the best bound so far, in the worst case that of the eigenvalues.
///
/// # Errors
/// If the form has a linear term or a column metric, r is not in 1..=n, or a restriction or option is wrong.
///
/// ```
/// use ndarray::array;
/// use orthobcd::certificate::{BoundOptions, Restriction, lower_bound};
/// use orthobcd::{Quadratic, Threads, Unwatched};
///
/// let smooth = Quadratic::new(array![[-3.0, 0.5], [0.5, -1.0]], None, None)?;
/// let (penalty, options) = (Restriction::Count(0.2), BoundOptions::new(-1.3, 0.7));
/// let bound = lower_bound(&smooth, 1, &penalty, &options, &Threads::serial(), &mut Unwatched)?;
/// assert!(bound.value <= -1.3 && bound.value > -1.31 && bound.gap < 0.01 / 0.7);
/// # Ok::<(), orthobcd::Error>(())
/// ```
pub fn lower_bound(
    form: &dyn QuadraticForm,
    r: usize,
    restriction: &Restriction,
    options: &BoundOptions,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<Bound> {
    let mut search = Search::new(form, r, restriction)?;
    options.check()?;
    let clock = Clock::new(Instant::now(), options.max_time);
    let limits = SearchLimits { clock: &clock, threads, work: f64::INFINITY, limited: options.max_time.is_some() };
    let held = Mutex::new(&mut search);
    pool::run(1, 1, &clock, |_| locked(&held).advance(options, &limits), |_| monitor.poll());
    Ok(search.finish(options))
}

/// Largest residual of Lanczos' method, relative to ‖M‖, that may be missing in its bounds.
const RESIDUAL: f64 = 2e-14;

/// Returns the bound that needs no matrix: r times the least eigenvalue of M, by Lanczos' method, less
/// [`RESIDUAL`] and 4n ulp of ‖M‖ for rounding.
fn of_eigenvalues(form: &dyn QuadraticForm, r: usize, restriction: &Restriction) -> Bound {
    let n = form.order();
    let constant = restriction.relaxed(n, r).1;
    let (low, high) = form.bounds();
    let rounding = (RESIDUAL + n as f64 * numerics::ULPS) * low.abs().max(high.abs());
    Bound {
        value: 0.5 * (r as f64 * (low - rounding) + constant),
        gap: f64::NAN,
        method: Method::Eigenvalues,
        multiplier: None,
        nodes: 0,
        excluded: Vec::new(),
        history: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
