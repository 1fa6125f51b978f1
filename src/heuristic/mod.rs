//! Heuristics: methods that make a point for a [search](crate::search), each in a file of its own.
//!
//! | heuristic | good for |
//! |---|---|
//! | `splitting` | annealed ADMM from the varimax-rotated spectral solution; small λ |
//! | `smoothed` | gradient descent on a smoothed penalty; dense ℓ1, small λ |
//! | `supports` | simulated annealing on disjoint supports; large λ for ℓ0, X ≥ 0 |
//! | `forward` | forward selection of components with disjoint supports; large λ for ℓ0 |
//! | `path` | decreasing λ from the closed-form optimum; heavy-tailed data |
//! | `partition` | alternation of columns and row owners, with perturbations; X ≥ 0 |
//! | `spectral`, `varimax`, `dense` | eigenvectors, rotated eigenvectors, and random points |
//! | `exchange` | swaps of single entries of the incumbent; ℓ0 with an f that is not ½ tr(XᵀCX) |
//! | `renewed` | random columns in the incumbent; nonquadratic f |
//! | `cycles` | even permutations of the rows of the incumbent; det X = 1 |
//! | `random`, `perturbation` | mixed signatures: random J-orthogonal factors, and perturbations of pairs |
//!
//! A heuristic serves as a restart and as an improvement: a [`Task`] says whether a run starts anew or
//! [from](Task::from) the incumbent, and how far the run may leave the incumbent ([heat](Task::heat)). The
//! point need be neither polished nor exactly feasible: the search polishes it. A new heuristic (a maker, in Python) is a file with an
//! implementation of [`Heuristic`], its `mod` and a line at the end of [`registry`], as its index seeds its random numbers. Makers do not
//! run under a limit on nonzeros or rows.

mod cycles;
mod exchange;
mod known;
mod mixed;
mod oracle;
mod partition;
mod path;
mod product;
mod profile;
mod renewed;
mod sharpen;
mod smoothed;
mod spectral;
mod splitting;
mod supports;
pub(crate) mod tangent;

use ndarray::{Array2, ArrayView2};

use crate::limits::MethodLimit;
use crate::problem::Problem;

pub(crate) use known::{Known, Prepared, profile};
pub(crate) use oracle::{ClockMonitor, Oracle};
pub(crate) use partition::alternated as alternated_partition;
pub use profile::{Kind, Profile};
pub(crate) use sharpen::TANGENT_STEPS;

/// The prior of a heuristic, and the least work it needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prior {
    /// Expected success from 0 to 1. New starts of the first epoch run in descending order of it; improvements count it as the gain of a
    /// first run. With 0, a heuristic runs only if the caller names it, or at the beginning if it needs no iterations.
    pub success: f64,
    /// Least number of iterations, each as long as a product C X and the operations on it.
    pub least: f64,
}

/// [`Prior::success`] of a likely heuristic. With equal priors the order of [`registry`] decides.
const LIKELY: f64 = 0.9;

/// [`Prior::success`] of a possible heuristic.
const POSSIBLE: f64 = 0.5;

/// [`Prior::success`] of an unlikely heuristic.
const UNLIKELY: f64 = 0.2;

/// Least number of iterations of a heuristic.
const LEAST: f64 = 50.0;

/// Least number of iterations of a descent through the stages of a smoothing.
const LEAST_STAGED: f64 = 150.0;

impl Prior {
    /// Creates a prior with its success and least number of iterations.
    pub fn new(success: f64, least: f64) -> Self {
        Self { success, least }
    }
}

/// The input of one run of a heuristic.
pub struct Task<'a> {
    pub(crate) oracle: &'a Oracle<'a>,
    pub(crate) known: &'a Known<'a>,
    pub(crate) profile: &'a Profile,
    /// The incumbent, if the run starts there; None: a new start.
    pub from: Option<&'a Array2<f64>>,
    /// Size of the perturbation of the incumbent, from 0 to 1, at random.
    pub heat: f64,
    /// Number of the new start of the heuristic; 0 for improvements.
    pub run: usize,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Most sweeps over all pairs of rows, if these are limited.
    pub sweeps: Option<u64>,
    /// The work and the time of the run; makers descend within [its rest](MethodLimit::rest).
    pub(crate) limit: MethodLimit<'a>,
}

impl Task<'_> {
    /// Returns the problem to minimise.
    pub fn problem(&self) -> &Problem<'_> {
        self.oracle.problem
    }

    /// Returns f less a constant, and ∇f (n×r); the value is NaN if the time is up.
    pub fn value_and_gradient(&self, x: &Array2<f64>) -> (f64, Array2<f64>) {
        self.oracle.value_and_gradient(x)
    }

    /// Applies the proximal map of `step · h`.
    pub fn proximal(&self, x: Array2<f64>, step: f64) -> Array2<f64> {
        self.oracle.proximal(x, step)
    }

    /// Returns the nearest matrix with orthonormal columns.
    pub fn polar(&self, x: &Array2<f64>) -> Array2<f64> {
        self.oracle.polar(x)
    }

    /// Returns an upper bound on the magnitudes of the eigenvalues of the Hessian of f.
    pub fn lipschitz(&self) -> f64 {
        self.oracle.lipschitz
    }

    /// Returns the eigenvectors of the r smallest eigenvalues of C, rotated by varimax.
    pub fn rotated(&self) -> ArrayView2<'_, f64> {
        self.known.basis.rotated.view()
    }

    /// Returns the elapsed share of the run, from 0 to 1.
    pub fn progress(&self) -> f64 {
        self.limit.progress()
    }
}

/// A method that makes a point.
pub trait Heuristic: Sync {
    /// Returns the name in reports.
    fn name(&self) -> &'static str;

    /// Returns the prior for a restart (`improve` false) or an improvement; None if the heuristic does not
    /// apply.
    fn fits(&self, profile: &Profile, improve: bool) -> Option<Prior>;

    /// Returns a point, n×r; None if the run found none.
    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>>;
}

/// Returns the built-in heuristics.
pub fn registry() -> Vec<Box<dyn Heuristic>> {
    vec![
        Box::new(supports::Supports),
        Box::new(splitting::Splitting),
        Box::new(smoothed::Smoothed),
        Box::new(supports::Forward),
        Box::new(path::Path),
        Box::new(partition::Partition),
        Box::new(spectral::Spectral),
        Box::new(spectral::Varimax),
        Box::new(spectral::Dense),
        Box::new(exchange::Exchanged),
        Box::new(renewed::Renewed),
        Box::new(cycles::Cycles),
        Box::new(mixed::Random),
        Box::new(mixed::Perturb),
    ]
}
