//! Methods that make a point, each in a file of its own: what a [search](crate::search) is made of.
//!
//! | heuristic | good for |
//! |---|---|
//! | `splitting` | annealed ADMM from the varimax-rotated spectral solution; small λ |
//! | `smoothed` | gradient descent on a smoothed penalty; dense ℓ1, small λ |
//! | `reheated` | the same over a short range of the smoothing, again and again; dense ℓ1 |
//! | `supports` | annealed disjoint supports; large λ for ℓ0, X ≥ 0 |
//! | `forward` | forward selection of components with disjoint supports; large λ for ℓ0 |
//! | `path`, `sparse` | decreasing λ from the closed-form optimum, or from random rows; heavy-tailed data |
//! | `partition` | columns and owners of a partition in turn, perturbed; X ≥ 0 |
//! | `spectral`, `varimax`, `dense` | eigenvectors, as they are and rotated, and random points |
//! | `exchange` | single entries of the best point; ℓ0 where the others cannot change a support one by one |
//! | `renewed` | new columns in the best point; an f that is not quadratic |
//! | `cycles` | even permutations of the rows of the best point; det X = 1 |
//! | `random`, `kick` | mixed signatures: random J-orthogonal factors, and pairs that move |
//!
//! A start and a perturbation are the same heuristic: a [`Task`] says whether it begins from scratch or
//! [from](Task::from) the best point, and with which [heat](Task::heat). What a heuristic returns need
//! neither be polished nor quite feasible. It knows no other heuristic and nothing of the search; a new
//! one is an implementation of [`Heuristic`] and a line in [`registry`].

mod covariance;
mod cycles;
mod exchange;
mod forward;
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

use crate::budget::Pace;
use crate::problem::Problem;

pub(crate) use known::{Basis, Known, Prepared, profile};
pub(crate) use oracle::{Oracle, Watch};
pub(crate) use partition::settled as settled_partition;
pub use profile::{Kind, Profile};
pub(crate) use sharpen::TANGENT_STEPS;

/// How promising a heuristic is before it has run, and what it has to be given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prior {
    /// From 0 to 1: who comes first.
    pub hope: f64,
    /// Steps as long as a product C X and what goes with it, below which it is not worth while.
    pub least: f64,
}

impl Prior {
    /// A hope and a least number of steps.
    pub fn new(hope: f64, least: f64) -> Self {
        Self { hope, least }
    }
}

/// What one run of a heuristic is to do.
pub struct Task<'a> {
    pub(crate) oracle: &'a Oracle<'a>,
    pub(crate) known: &'a Known<'a>,
    pub(crate) profile: &'a Profile,
    /// The best point, if the run begins there; None: from scratch.
    pub from: Option<&'a Array2<f64>>,
    /// How far from the best point to look, from 0 to 1.
    pub heat: f64,
    /// How often the heuristic has begun from scratch before.
    pub run: usize,
    /// Seed of whatever is random.
    pub seed: u64,
    /// Sweeps over all pairs of rows that may be made, where they are limited.
    pub sweeps: Option<u64>,
    pub(crate) pace: Pace<'a>,
}

impl Task<'_> {
    /// What is minimised.
    pub fn problem(&self) -> &Problem<'_> {
        self.oracle.problem
    }

    /// f less a constant, and ∇f, each n×r; not a number if the time is up.
    pub fn value_and_gradient(&self, x: &Array2<f64>) -> (f64, Array2<f64>) {
        self.oracle.value_and_gradient(x)
    }

    /// The proximal map of `step · h`.
    pub fn proximal(&self, x: Array2<f64>, step: f64) -> Array2<f64> {
        self.oracle.proximal(x, step)
    }

    /// The nearest matrix with orthonormal columns.
    pub fn polar(&self, x: &Array2<f64>) -> Array2<f64> {
        self.oracle.polar(x)
    }

    /// An upper bound on the magnitudes of the eigenvalues of the Hessian of f.
    pub fn lipschitz(&self) -> f64 {
        self.oracle.lipschitz
    }

    /// The eigenvectors of the r smallest eigenvalues of C, rotated by varimax.
    pub fn rotated(&self) -> ArrayView2<'_, f64> {
        self.known.basis.rotated.view()
    }

    /// What share of the run is over, from 0 to 1.
    pub fn progress(&self) -> f64 {
        self.pace.progress()
    }
}

/// A method that makes a point.
pub trait Heuristic: Sync {
    /// Its name in plans and reports.
    fn name(&self) -> &'static str;

    /// What is to be hoped for from scratch (`improve` false) or from the best point; None if it cannot.
    fn fits(&self, profile: &Profile, improve: bool) -> Option<Prior>;

    /// A point, n×r; None if there is none.
    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>>;
}

/// The built-in heuristics.
pub fn registry() -> Vec<Box<dyn Heuristic>> {
    vec![
        Box::new(splitting::Splitting),
        Box::new(smoothed::Smoothed),
        Box::new(smoothed::Reheated),
        Box::new(supports::Supports::default()),
        Box::new(forward::Forward),
        Box::new(path::Path { random: false }),
        Box::new(path::Path { random: true }),
        Box::new(partition::Partition),
        Box::new(spectral::Spectral),
        Box::new(spectral::Varimax),
        Box::new(spectral::Dense),
        Box::new(exchange::Exchanged),
        Box::new(renewed::Renewed),
        Box::new(cycles::Cycles),
        Box::new(mixed::Random::default()),
        Box::new(mixed::Kick::default()),
    ]
}
