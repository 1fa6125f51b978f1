//! What a problem can do and looks like.

/// What h is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Kind {
    /// Nothing.
    Smooth,
    /// λ times the number of nonzeros.
    Count,
    /// X ≥ 0.
    Nonnegative,
    /// Something that draws entries to zero.
    Sparse,
    /// Something else.
    Other,
}

/// What a problem can do and looks like: what heuristics are chosen by.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Profile {
    /// Number of rows n.
    pub rows: usize,
    /// Number of columns r.
    pub components: usize,
    /// Whether J has both signs.
    pub mixed: bool,
    /// What h is.
    pub kind: Kind,
    /// Whether a penalty has a strength that a path can run through.
    pub has_strength: bool,
    /// Whether det X = 1 is asked for.
    pub rotations: bool,
    /// Whether f is a quadratic form.
    pub quadratic: bool,
    /// Whether f = ½ tr(XᵀCX).
    pub trace_form: bool,
    /// Whether columns of C can be asked for.
    pub columns: bool,
    /// Whether all of C is at hand.
    pub whole: bool,
    /// h over |f| (less its constant) at the rotated spectral solution: below 1 a solution is likely to
    /// be dense.
    pub price: f64,
    /// The smallest over the largest of the r leading curvatures: near 1 in noise, where no direction is
    /// better than the others.
    pub flatness: f64,
    /// Multiply-adds of a step: a product C X and what goes with it.
    pub step: f64,
    /// The rows that the search is restricted to at first, if there are too many.
    pub chosen: Option<usize>,
    /// The optimum, where it is known.
    pub optimum: Option<f64>,
}

impl Profile {
    /// Whether a solution is likely to be dense, so that methods that move all rows at once come first.
    pub fn is_dense(&self) -> bool {
        self.price < 1.0
    }

    /// Whether the columns of a solution have, at least nearly, disjoint supports.
    pub fn is_disjoint(&self) -> bool {
        self.trace_form && matches!(self.kind, Kind::Count | Kind::Nonnegative)
    }

    /// Whether h draws entries to zero.
    pub fn is_sparse(&self) -> bool {
        matches!(self.kind, Kind::Count | Kind::Sparse)
    }
}
