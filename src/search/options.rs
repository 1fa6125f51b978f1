//! Options and results of the default solver.

use super::plan::Plan;
use crate::options::setters;
use crate::solver::Options;

/// Options of [`minimize_auto`](super::minimize_auto).
///
/// `options` are those of the pair sweeps. Their limits on time, work and sweeps (of all descents together),
/// the target and the seed hold for the whole solve.
#[derive(Debug, Clone, PartialEq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Auto {
    /// Number of starts; default: one for every heuristic that fits the problem, as far as the limits allow.
    pub starts: Option<usize>,
    /// Names of the heuristics that start, in this order, instead of those chosen for the problem; "given" is
    /// the start passed by the caller.
    pub strategies: Option<Vec<String>>,
    /// The phases of the search, in place of the default ones and of those of `strategies`.
    pub plan: Option<Plan>,
    /// Options of the descents, and limits of the whole solve.
    pub options: Options,
}

setters!(Auto {
    with_starts(starts: impl Into<Option<usize>>);
    with_strategies(strategies: impl Into<Option<Vec<String>>>);
    with_plan(plan: impl Into<Option<Plan>>);
    with_options(options: Options);
});
