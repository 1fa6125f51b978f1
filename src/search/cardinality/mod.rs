//! Limits on the number of nonzeros: min f(X) over {XᵀX = I, X with few nonzero entries}.
//!
//! The ℓ0 *penalty* reaches only the numbers of nonzeros on the lower convex hull of f against ‖X‖₀. The
//! *constraint* also has solutions between them, and applications often ask for a number per component. A
//! point is given by its [support](crate::support) and the best values on it. [Chains](super::chains) change
//! supports by moves, from many [`starts`].

mod entries;
mod limited;
mod powered;
mod rows;
mod starts;

use ndarray::Array2;

use super::incumbent::Watched;
use super::options::Auto;
use crate::error::Result;
use crate::limits::Clock;
use crate::problem::{Limit, Problem};
use crate::report::AutoSolution;
use crate::start;
use crate::threads::Threads;
use limited::Limited;

/// Returns the names of the starts of chains that are not those of [heuristics](crate::heuristic) too.
pub(super) fn start_names() -> impl Iterator<Item = &'static str> {
    starts::NAMES.into_iter().chain([rows::NAME])
}

/// Minimises f under the [limit](Problem::with_limit) of a problem.
///
/// Within any limits on time and work the result is feasible, and no worse than an `x0` that satisfies the limit; another
/// `x0` is truncated to it. The search ends with [`Status::Converged`](crate::Status::Converged) in four cases: a round
/// of perturbations brought no improvement and four chains have the best value, each from a start of its own;
/// many perturbations in a row, or as much work again, brought no improvement; or f reached a lower bound. It ends with
/// [`Status::MaxWork`](crate::Status::MaxWork) after the work of a default search. [`Options::effort`](crate::Options::effort) scales that work,
/// the number of these chains and that of perturbations. Limits on time and work end the same search earlier. The
/// result depends only on the arguments and on the work at which the clock ended it; more work and more effort never give a worse result.
///
/// # Errors
/// If `x0` is invalid, D is not diagonal, or no matrix with orthonormal columns satisfies the limit.
pub(super) fn minimize_limited(
    (problem, limit): (&Problem<'_>, &Limit),
    x0: Option<Array2<f64>>,
    (auto, clock): (&Auto, &Clock),
    threads: &Threads,
    watched: Watched<'_>,
) -> Result<AutoSolution> {
    let form = problem.quadratic()?;
    if let Some(x0) = &x0 {
        problem.check_start(x0.view())?;
    }
    let x0 = x0.map(|x0| start::given(&x0, false, false)).transpose()?;
    let limited = Limited { clock, problem, form, auto, threads };
    match limit {
        Limit::Entries(sparsity) => entries::minimized(&limited, sparsity, x0, watched),
        Limit::Rows(rows) => rows::minimized(&limited, *rows, x0, watched),
    }
}
