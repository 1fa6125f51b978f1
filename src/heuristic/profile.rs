//! Properties of a problem that decide which heuristics run.

use serde::{Deserialize, Serialize};

/// Multiply-adds from which an iteration is costly.
const COSTLY: f64 = 2e7;

/// The kind of penalty h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Kind {
    /// h = 0.
    Smooth,
    /// λ times the number of nonzeros.
    Count,
    /// X ≥ 0.
    Nonnegative,
    /// Any other penalty that favours zeros.
    Sparse,
    /// Any other penalty.
    Other,
}

/// Properties of a problem that decide which heuristics run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Profile {
    /// Number of rows n.
    pub rows: usize,
    /// Number of columns r.
    pub components: usize,
    /// True if J has both signs.
    pub mixed: bool,
    /// The kind of penalty h.
    pub kind: Kind,
    /// True if h has a strength λ that a path can vary.
    pub has_strength: bool,
    /// True if det X = 1 is required.
    pub rotations: bool,
    /// True if f is a quadratic form.
    pub quadratic: bool,
    /// True if f = ½ tr(XᵀCX).
    pub trace_form: bool,
    /// True if columns of C are available.
    pub columns: bool,
    /// True if all of C is stored.
    pub whole: bool,
    /// h over |f| (less its constant) at the rotated spectral solution; below 1 (1.5 for ℓ0), solutions are likely to be
    /// dense.
    pub penalty_share: f64,
    /// The smallest over the largest of the r leading curvatures; near 1 in noise, where no direction is
    /// better than the others.
    pub flatness: f64,
    /// Multiply-adds of an iteration: a product C X and the operations on it.
    pub step: f64,
    /// Number of rows that the search sees, if it leaves out others that cannot matter.
    pub chosen: Option<usize>,
    /// The optimum, if it is known.
    pub optimum: Option<f64>,
}

impl Profile {
    /// Returns whether solutions are likely to be dense, so that methods that move all rows at once come
    /// first.
    pub fn is_dense(&self) -> bool {
        // ℓ0 also counts small entries, which a solution drops.
        self.penalty_share < if self.kind == Kind::Count { 1.5 } else { 1.0 }
    }

    /// Returns whether an iteration is so expensive that one long run with all threads beats two runs followed
    /// by improvements.
    pub(crate) fn is_costly(&self) -> bool {
        self.step >= COSTLY
    }

    /// Returns whether the columns of a solution have (nearly) disjoint supports.
    pub fn is_disjoint(&self) -> bool {
        self.trace_form && matches!(self.kind, Kind::Count | Kind::Nonnegative)
    }

    /// Returns whether h favours zeros.
    pub fn is_sparse(&self) -> bool {
        matches!(self.kind, Kind::Count | Kind::Sparse)
    }
}
