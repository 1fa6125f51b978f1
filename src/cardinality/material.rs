//! The data from which starts are made, and the order of the kinds of starts.

use ndarray::Array2;

use crate::manifold::varimax_while;
use crate::objective::GoOn;
use crate::support;

/// The kind of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartKind {
    Given,
    /// ADMM from the axes rotated by varimax, for few iterations if it is the first one.
    Splitting {
        first: bool,
    },
    /// A point of [`Material::points`].
    Opening(usize),
    Grown,
}

impl StartKind {
    /// Returns the name of the kind in a report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Splitting { .. } => "splitting",
            Self::Opening(_) => "opening",
            Self::Grown => "grown",
        }
    }
}

/// The first starts: points that need no search, best first, among starts of other kinds.
const FIRST: [StartKind; 8] = [
    StartKind::Opening(0),
    StartKind::Grown,
    StartKind::Opening(1),
    StartKind::Splitting { first: true },
    StartKind::Grown,
    StartKind::Opening(2),
    StartKind::Opening(3),
    StartKind::Opening(4),
];

/// One of this number of further starts is by ADMM, the others are grown.
const SPLITTINGS: usize = 3;

/// The data from which starts are made.
pub(super) struct Material {
    /// Rows, one for each column, that make a feasible point.
    pub(super) selection: Vec<usize>,
    /// Eigenvectors of C for its smallest eigenvalues, n×r.
    pub(super) basis: Array2<f64>,
    /// The basis, rotated by varimax.
    pub(super) rotated: Array2<f64>,
    /// Feasible points from which the first chains start.
    pub(super) points: Vec<Array2<f64>>,
    /// The start passed by the caller.
    pub(super) given: Option<Array2<f64>>,
    /// Rows with large entries in the eigenvectors.
    pub(super) pool: Vec<usize>,
    /// True if supports must overlap.
    dense: bool,
}

impl Material {
    pub(super) fn new(
        selection: Vec<usize>,
        basis: Array2<f64>,
        given: Option<Array2<f64>>,
        (most, dense): (usize, bool),
        go_on: GoOn<'_>,
    ) -> Self {
        Self {
            selection,
            pool: support::largest_rows(&basis, most),
            rotated: varimax_while(basis.view(), go_on),
            points: Vec::new(),
            basis,
            given,
            dense,
        }
    }

    /// Returns the kind of start `number`: a given start, the best kinds, then grown ones and ADMM in turn.
    pub(super) fn kind(&self, number: usize) -> StartKind {
        let Some(index) = number.checked_sub(usize::from(self.given.is_some())) else {
            return StartKind::Given;
        };
        let mut first = FIRST.iter().copied().filter(|kind| match kind {
            StartKind::Opening(point) => *point < self.points.len(),
            _ => true,
        });
        let strong = first.clone().count();
        // ADMM is the best start where supports must overlap.
        let index = match index {
            1 if self.dense => 3.min(strong - 1),
            3 if self.dense => 1,
            _ => index,
        };
        first
            .nth(index)
            .unwrap_or(match (index - index.min(strong)) % SPLITTINGS {
                1 => StartKind::Splitting { first: false },
                _ => StartKind::Grown,
            })
    }
}
