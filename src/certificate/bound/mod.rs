//! Lower bounds on F over all orthonormal X: how far a point can be from optimal.
//!
//! With f = ½⟨X, MX⟩ and C = −M, F is −½ times `Σ_t u_tᵀCu_t` less twice the penalty, u_t the columns of X. For any symmetric Λ
//!
//! ```text
//! Σ_t u_tᵀ C u_t = ⟨Λ, XXᵀ⟩ + Σ_t u_tᵀ(C − Λ)u_t ≤ Σ_top-r λ(Λ) + Σ_t max { uᵀ(C − Λ)u : ‖u‖ = 1, ‖u‖₀ ≤ k_t }
//! ```
//!
//! (Ky Fan), so every Λ, together with any upper bound on the sparse maxima, is a bound that holds; for Λ ⪰ 0 it
//! is the Lagrangian of Σ u_tu_tᵀ ⪯ I, whose multiplier Λ then is. Three methods, one after the other:
//!
//! * [`relaxation`]: an upper bound on the second sum in closed form, for every penalty and n up to a few thousand;
//! * for a number of nonzeros the sparse maxima themselves by branch and bound ([`maximum`]), and Λ by the [`master`];
//! * the same at the nodes of a [`tree`] on which row may be nonzero in which column, which ends with a proof where n is small.
//!
//! Where X ≥ 0 besides a number of nonzeros, uᵀCu is at most uᵀC⁺u, C⁺ being C with zeros in place of its negative entries off
//! the diagonal: the tree is that of C⁺.
//!
//! Of a number of nonzero rows, or a penalty for each, F is least on the leading eigenvectors of a block of C: after the
//! relaxation [`maximum`] looks for the block.
//!
//! What is returned is rounded outwards: sums of eigenvalues by the residuals of their decomposition, single ones also by a
//! factorization of what lies above them ([`relaxation::largest_above`]), sums and differences of matrices by an ulp of their norms. It
//! holds for C as the objective forms it.
//!
//! Features that no point as good as the known one uses are left out of the tree and reported, see [`tree`].

mod master;
mod maximum;
mod node;
mod relaxation;
mod search;
mod tree;

use std::borrow::Cow;
use std::time::Instant;

use ndarray::Array2;

use crate::budget::Clock;
use crate::error::{Error, Result};
use crate::objective::QuadraticForm;
use crate::penalty::{Penalty, Weights};
use crate::solver::Monitor;
use crate::support::Cardinality;
use crate::threads::Threads;
use relaxation::Entries;
#[cfg(feature = "python")]
pub(crate) use search::FORMED_ROWS;
pub(super) use search::{Search, SearchLimits};

/// What h asks of the entries of X.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Restriction {
    /// Nothing: h = 0, or is only known to be nonnegative.
    Free,
    /// h = λ‖X‖₀.
    Count(f64),
    /// h ≥ λ‖X‖₁.
    Absolute(f64),
    /// X ≥ 0.
    Nonnegative,
    /// A number of nonzeros, at most.
    Cardinality(Cardinality),
    /// The same and X ≥ 0.
    NonnegativeCardinality(Cardinality),
    /// A number of nonzero rows, at most.
    Rows(usize),
    /// h is this times the number of nonzero rows.
    RowPenalty(f64),
}

impl Restriction {
    /// That of a penalty; None where it is not one of h = 0, ℓ0, ℓ1 and X ≥ 0. Of ℓ1 the least weight counts.
    pub fn of(penalty: &Penalty) -> Option<Self> {
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
                Weights::Entrywise(weights) => {
                    weights.iter().copied().fold(f64::INFINITY, f64::min)
                }
            })
        })
    }

    /// Checks it against an n×r matrix.
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
                Some(Cardinality::Columns(counts))
                    if counts.iter().any(|k| !(1..=n).contains(k)) =>
                {
                    bad(format!("must be between 1 and n = {n} in every column"))
                }
                _ => Ok(()),
            },
        }
    }

    /// The number of nonzeros, where there is a limit.
    fn cardinality(&self) -> Option<&Cardinality> {
        match self {
            Self::Cardinality(count) | Self::NonnegativeCardinality(count) => Some(count),
            _ => None,
        }
    }

    /// A matrix with ⟨u, Cu⟩ no larger for every column u that X may have, and that knows of X ≥ 0.
    fn bounding<'c>(&self, c: &'c Array2<f64>) -> Cow<'c, Array2<f64>> {
        if !matches!(self, Self::NonnegativeCardinality(_)) {
            return Cow::Borrowed(c);
        }
        let mut above = c.mapv(|v| v.max(0.0));
        above.diag_mut().assign(&c.diag());
        Cow::Owned(above)
    }

    /// What the relaxation makes of it, and a constant to add to twice the bound on F.
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
            Self::NonnegativeCardinality(count) => {
                (Entries::NonnegativeWithin(nonzeros(count, n * r)), 0.0)
            }
            // ‖P‖₁ ≤ k‖P‖_F = k√r on k rows.
            Self::Rows(count) => {
                let radius = (*count).min(n) as f64 * (r as f64).sqrt();
                (Entries::Within(radius), 0.0)
            }
            Self::RowPenalty(lambda) => (Entries::Penalized(2.0 * lambda / (r as f64).sqrt()), 0.0),
        }
    }
}

/// The number of nonzeros in all, at most `all`.
fn nonzeros(count: &Cardinality, all: usize) -> f64 {
    let total = match count {
        Cardinality::Total(count) => *count,
        Cardinality::Columns(counts) => counts.iter().sum(),
    };
    total.min(all) as f64
}

/// How a bound was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// The r largest eigenvalues of C alone.
    Eigenvalues,
    /// The relaxation to 0 ⪯ P ⪯ I, tr P = r.
    Fantope,
    /// The sparse maxima at one Λ, bounded by branch and bound.
    Lagrangian,
    /// Branch and bound on which row may be nonzero in which column.
    BranchAndBound,
}

impl Method {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eigenvalues => "eigenvalues",
            Self::Fantope => "fantope",
            Self::Lagrangian => "lagrangian",
            Self::BranchAndBound => "branch-and-bound",
        }
    }
}

/// A lower bound on F over all X with XᵀX = I.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Bound {
    /// No feasible X has a smaller F.
    pub value: f64,
    /// F of the point less `value`, over the [magnitude](BoundOptions::magnitude) of F there.
    pub gap: f64,
    /// How it was found.
    pub method: Method,
    /// Λ, n×n, of the best bound in closed form; none where C was not formed.
    pub multiplier: Option<Array2<f64>>,
    /// Nodes of the branch and bound.
    pub nodes: usize,
    /// Rows that are zero in every feasible X whose F is no larger than the objective that was given; ascending. Those that are
    /// proved so: none where no branch and bound over a number of nonzeros was needed, or none came that far.
    pub excluded: Vec<usize>,
    /// Seconds and bound, whenever it rose.
    pub history: Vec<(f64, f64)>,
}

/// When to stop looking for a better bound.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct BoundOptions {
    /// F at the point whose gap is wanted: the bound cannot pass it by more than rounding, so the search ends near it.
    pub objective: f64,
    /// The size of F there that gaps are relative to, see [`Problem::magnitude`](crate::Problem::magnitude). At least 1e-6 of
    /// ½r‖C‖ counts: of less, a gap of 1e-6 would be rounding.
    pub magnitude: f64,
    /// The search ends when `objective − bound ≤ gap_tol · magnitude`.
    pub gap_tol: f64,
    /// Seconds; without them the work is counted, and the result the same every time.
    pub max_time: Option<f64>,
}

impl BoundOptions {
    /// A gap of 1e-6, no time limit.
    pub fn new(objective: f64, magnitude: f64) -> Self {
        Self {
            objective,
            magnitude,
            gap_tol: 1e-6,
            max_time: None,
        }
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

/// A lower bound on `form` + h over the n×r matrices with XᵀX = I.
///
/// The monitor is polled every few hundredths of a second; when it stops the search, or the time is up, the best bound so
/// far is returned, in the worst case that of the eigenvalues.
///
/// # Errors
/// If the form has a linear term or a column metric, r is not in 1..=n, or the restriction or an option does not fit.
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
    let limits = SearchLimits {
        clock: &clock,
        threads,
        work: f64::INFINITY,
    };
    search.advance_watched(options, &limits, monitor);
    Ok(search.finish(options))
}

/// The bound that needs no matrix: all r eigenvalues at most the largest, by Lanczos' method.
fn of_eigenvalues(form: &dyn QuadraticForm, r: usize, restriction: &Restriction) -> Bound {
    let constant = restriction.relaxed(form.order(), r).1;
    Bound {
        value: 0.5 * (r as f64 * form.bounds().0 + constant),
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
