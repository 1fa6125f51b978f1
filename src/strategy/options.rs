//! What the default solver is asked, and what it answers.

use crate::error::{Error, Result};
use crate::options::setters;
use crate::solver::{Options, Solution};

/// How a start comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Strategy {
    /// The start that was given.
    Given,
    /// Annealed splitting from the varimax-rotated spectral solution.
    Splitting,
    /// Smoothed penalty with continuation, from the varimax-rotated spectral solution.
    Smoothed,
    /// The same over a short range of the smoothing, raised again and again; for ℓ1.
    Reheated,
    /// Annealed disjoint supports.
    Supports,
    /// Forward selection on disjoint supports, columns emptied and grown anew.
    Forward,
    /// Decreasing λ from the closed-form optimum of large λ.
    Path,
    /// Decreasing λ from random rows.
    Sparse,
    /// Eigenvectors of the quadratic part, or the polar factor of −linear.
    Spectral,
    /// Eigenvectors rotated by varimax.
    Varimax,
    /// A random orthonormal matrix.
    Dense,
    /// Columns and owners of a partition of the rows in turn, perturbed; a random one if not X ≥ 0.
    Partition,
}

const NAMES: [(Strategy, &str); 12] = [
    (Strategy::Given, "given"),
    (Strategy::Splitting, "splitting"),
    (Strategy::Smoothed, "smoothed"),
    (Strategy::Reheated, "reheated"),
    (Strategy::Supports, "supports"),
    (Strategy::Forward, "forward"),
    (Strategy::Path, "path"),
    (Strategy::Sparse, "sparse"),
    (Strategy::Spectral, "spectral"),
    (Strategy::Varimax, "varimax"),
    (Strategy::Dense, "dense"),
    (Strategy::Partition, "partition"),
];

impl std::fmt::Display for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = NAMES.iter().find(|(s, _)| s == self).map_or("", |(_, n)| n);
        f.write_str(name)
    }
}

impl std::str::FromStr for Strategy {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        NAMES
            .iter()
            .find(|(_, n)| *n == name)
            .map(|(s, _)| *s)
            .ok_or_else(|| {
                let names: Vec<&str> = NAMES[1..].iter().map(|(_, n)| *n).collect();
                Error::invalid(
                    "strategies",
                    format!("must be among {}; got {name:?}", names.join(", ")),
                )
            })
    }
}

/// Options of [`minimize_auto`](super::minimize_auto).
///
/// `options` are those of the pair sweeps; its time limit, sweep limit (for all descents together),
/// target and seed hold for the whole solve.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Auto {
    /// Number of starts; by default every strategy that fits the problem, as often as the time
    /// limit has room for.
    pub starts: Option<usize>,
    /// Strategies to use, in this order, instead of those chosen for the problem.
    pub strategies: Option<Vec<Strategy>>,
    /// Options of the descents, and limits of the whole.
    pub options: Options,
}

setters!(Auto {
    with_starts(starts: impl Into<Option<usize>>);
    with_strategies(strategies: impl Into<Option<Vec<Strategy>>>);
    with_options(options: Options);
});

/// One start and what it reached.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct StartReport {
    /// How it came about; perturbations have a name of their own.
    pub strategy: String,
    /// F of its point.
    pub objective: f64,
    /// When it was finished, in seconds since the start of the solve.
    pub seconds: f64,
}

/// What [`minimize_auto`](super::minimize_auto) returns.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct AutoSolution {
    /// The best point.
    pub solution: Solution,
    /// What found it.
    pub strategy: String,
    /// Every start and perturbation, in order.
    pub starts: Vec<StartReport>,
}
