//! The data from which starts are made, and the order of the kinds of starts.

use ndarray::Array2;

use crate::manifold::varimax_while;
use crate::objective::GoOn;
use crate::support;

/// The kind of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartKind {
    Given,
    Selection,
    /// ADMM from the axes rotated by varimax, for few iterations if it is the first one.
    Splitting {
        first: bool,
    },
    /// A point of [`Material::points`].
    Opening(usize),
    Path,
    Scattered,
    Turned,
    Grown,
}

impl StartKind {
    /// Returns the name of the kind in a report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Selection => "selection",
            Self::Splitting { .. } => "splitting",
            Self::Opening(_) => "opening",
            Self::Path => "path",
            Self::Scattered => "scattered",
            Self::Turned => "turned",
            Self::Grown => "grown",
        }
    }
}

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
}

impl Material {
    pub(super) fn new(
        selection: Vec<usize>,
        basis: Array2<f64>,
        given: Option<Array2<f64>>,
        most: usize,
        go_on: GoOn<'_>,
    ) -> Self {
        Self {
            selection,
            pool: support::largest_rows(&basis, most),
            rotated: varimax_while(basis.view(), go_on),
            points: Vec::new(),
            basis,
            given,
        }
    }

    /// Returns the kind of start `number`: a given start, the best kinds, then random kinds in turn.
    pub(super) fn kind(&self, number: usize) -> StartKind {
        let Some(index) = number.checked_sub(usize::from(self.given.is_some())) else {
            return StartKind::Given;
        };
        let strong = 2 + self.points.len();
        match index {
            0 => StartKind::Selection,
            1 => StartKind::Splitting { first: true },
            _ if index < strong => StartKind::Opening(index - 2),
            _ if index == strong => StartKind::Path,
            _ => match index % 5 {
                4 => StartKind::Splitting { first: false },
                3 => StartKind::Scattered,
                1 => StartKind::Turned,
                _ => StartKind::Grown,
            },
        }
    }
}
