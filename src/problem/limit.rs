//! Limits on the support of X.

use ndarray::{ArrayView1, ArrayView2};

/// ‖X‖₀ ≤ K in all, or ‖x_t‖₀ ≤ k_t for every column x_t.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cardinality {
    /// K.
    Total(usize),
    /// k_1, …, k_r.
    Columns(Vec<usize>),
}

impl Cardinality {
    /// Returns the total number of nonzeros allowed.
    pub(crate) fn total(&self) -> usize {
        match self {
            Self::Total(total) => *total,
            Self::Columns(counts) => counts.iter().sum(),
        }
    }
}

/// A [`Cardinality`], with entries fixed to zero, entries fixed to the support, and a sign.
///
/// ```
/// use orthobcd::{Cardinality, Sparsity};
///
/// let sparsity = Sparsity::new(Cardinality::Columns(vec![5, 5, 3]));
/// assert!(!sparsity.nonnegative);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sparsity {
    /// Limit on the number of nonzeros.
    pub cardinality: Cardinality,
    /// True if X ≥ 0.
    pub nonnegative: bool,
    /// Entries (i, t) that are zero.
    pub exclude: Vec<(usize, usize)>,
    /// Entries (i, t) of the support. Each counts towards the cardinality, whatever its best value, which can
    /// be zero.
    pub include: Vec<(usize, usize)>,
}

impl Sparsity {
    /// Creates a sparsity with a cardinality only.
    pub fn new(cardinality: Cardinality) -> Self {
        Self { cardinality, nonnegative: false, exclude: Vec::new(), include: Vec::new() }
    }

    /// Sets whether X ≥ 0.
    #[must_use]
    pub fn with_nonnegative(mut self, nonnegative: bool) -> Self {
        self.nonnegative = nonnegative;
        self
    }

    /// Sets the entries (i, t) that are zero.
    #[must_use]
    pub fn with_exclude(mut self, exclude: Vec<(usize, usize)>) -> Self {
        self.exclude = exclude;
        self
    }

    /// Sets the entries (i, t) of the support.
    #[must_use]
    pub fn with_include(mut self, include: Vec<(usize, usize)>) -> Self {
        self.include = include;
        self
    }
}

/// Limit on the nonzero rows of X, or penalty for them.
///
/// ```
/// let sparsity = orthobcd::RowSparsity::Count(10);
/// assert_ne!(sparsity, orthobcd::RowSparsity::Penalty(1.0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RowSparsity {
    /// At most this number of rows, at least r.
    Count(usize),
    /// Any number of rows, with h(X) = λ times the number of nonzero rows; the value is λ.
    Penalty(f64),
}

/// A limit on the support of X, or a penalty for its rows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Limit {
    /// On the nonzero entries.
    Entries(Sparsity),
    /// On the nonzero rows.
    Rows(RowSparsity),
}

impl Limit {
    /// Returns whether X ≥ 0.
    pub fn nonnegative(&self) -> bool {
        matches!(self, Self::Entries(sparsity) if sparsity.nonnegative)
    }

    /// Returns the penalty for nonzero rows; infinite if X has more nonzeros or rows than the limit allows.
    pub(crate) fn penalty(&self, x: ArrayView2<'_, f64>) -> f64 {
        let nonzeros = |values: ArrayView1<'_, f64>| values.iter().filter(|v| **v != 0.0).count();
        let rows = || x.outer_iter().filter(|row| nonzeros(*row) > 0).count();
        let within = match self {
            Self::Entries(sparsity) => {
                let counts = x.columns().into_iter().map(nonzeros);
                match &sparsity.cardinality {
                    Cardinality::Total(total) => counts.sum::<usize>() <= *total,
                    Cardinality::Columns(most) => counts.zip(most).all(|(count, &most)| count <= most),
                }
            }
            Self::Rows(RowSparsity::Count(count)) => rows() <= *count,
            Self::Rows(RowSparsity::Penalty(lambda)) => return lambda * rows() as f64,
        };
        if within { 0.0 } else { f64::INFINITY }
    }
}
