//! Options of the default solver.

use serde::{Deserialize, Serialize};

use crate::options::setters;
use crate::solver::Options;

/// Options of [`minimize_auto`](super::minimize_auto).
///
/// `options` are those of the pair sweeps. Their limits on time, work and sweeps (of all descents together),
/// the target and the seed hold for the whole solve.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Auto {
    /// Names of the makers that run, instead of those chosen for the problem; "given" is the start passed by the caller.
    pub makers: Option<Vec<String>>,
    /// Options of the descents, and limits of the whole solve.
    pub options: Options,
}

setters!(Auto {
    with_makers(makers: impl Into<Option<Vec<String>>>);
    with_options(options: Options);
});
