//! Separable penalties h(X) = Σ h_ij(X_ij) and their exact pair solvers.
//!
//! A new penalty says what one entry costs, where its formula changes ([`Penalty::levels`]) and
//! the slope in between; the default [`Penalty::circle`] then solves the pair problem globally, by
//! visiting every arc between breakpoints. The built-in penalties override it with faster kernels
//! (and are tested against it).

mod boost;
mod l0;
mod l1;
mod none;
mod nonnegative;
mod piecewise;

use ndarray::ArrayView2;

use pulp::{Simd, WithSimd};

use crate::pair::{Best, BestBoost, CirclePair, HyperbolaPair, ROW_MULTIPLE, Scratch};

pub use l0::L0;
pub use l1::{L1, Weights};
pub use none::NoPenalty;
pub use nonnegative::NonNegative;

/// What a penalty is, for the methods that use more than pairs (starts, paths, closed forms).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Form<'a> {
    /// h = 0.
    Zero,
    /// h = λ‖X‖₀.
    Count(f64),
    /// h = Σ weight_ij |X_ij|.
    Absolute(&'a Weights),
    /// X ≥ 0.
    NonNegative,
    /// Anything else: only pairs are used.
    Other,
}

/// Checks one weight of a penalty.
fn check_weight(weight: f64) -> crate::Result<()> {
    if (0.0..=crate::error::LARGEST).contains(&weight) {
        return Ok(());
    }
    Err(crate::Error::invalid(
        "lam",
        format!(
            "must be nonnegative and at most {:e}, got {weight}",
            crate::error::LARGEST
        ),
    ))
}

/// A separable penalty, linear between finitely many levels of an entry.
///
/// h must be lower semicontinuous; it may be discontinuous at level 0 only, and infinite (a
/// constraint) on whole pieces.
pub trait Penalty: Clone + Send + Sync {
    /// Whether h is identically zero.
    const SMOOTH: bool = false;

    /// Price of one entry.
    fn entry(&self, row: usize, column: usize, value: f64) -> f64;

    /// Slope of the price just right of `value`.
    fn slope(&self, row: usize, column: usize, value: f64) -> f64;

    /// The values of an entry at which the formula changes, ascending.
    fn levels(&self) -> &[f64];

    /// Price of one row.
    #[inline(always)]
    fn row_value(&self, row: usize, x: &[f64]) -> f64 {
        x.iter()
            .enumerate()
            .map(|(column, &value)| self.entry(row, column, value))
            .sum()
    }

    /// `(Δ, magnitude)`: the change of the price of a row, and the sum of the magnitudes of its
    /// terms.
    #[inline(always)]
    fn change(&self, row: usize, old: &[f64], new: &[f64]) -> (f64, f64) {
        let (mut delta, mut magnitude) = (0.0, 0.0);
        for (column, (&o, &n)) in old.iter().zip(new).enumerate() {
            let d = self.entry(row, column, n) - self.entry(row, column, o);
            delta += d;
            magnitude += d.abs();
        }
        (delta, magnitude)
    }

    /// The global minimum of smooth part plus penalty over rotations and reflections, relative to
    /// the identity; the columns with a vanishing entry are left in `scratch.vanishing`.
    #[inline(always)]
    fn circle<S: Simd>(&self, _simd: S, pair: &CirclePair<'_>, scratch: &mut Scratch) -> Best {
        piecewise::circle(self, pair, scratch)
    }

    /// The same over the four components of the hyperbola, for rows of opposite sign; or a direction
    /// along which the pair is unbounded below.
    #[inline(always)]
    fn hyperbola(&self, pair: &HyperbolaPair<'_>, scratch: &mut Scratch) -> BestBoost {
        boost::piecewise(self, pair, scratch)
    }

    /// The penalty of Xᵀ, which column moves need; `None` (the default) if there is none.
    fn transposed(&self) -> Option<Self> {
        None
    }

    /// Makes rows exactly feasible after a move that is feasible up to rounding.
    #[inline(always)]
    fn tidy(&self, _row: &mut [f64]) {}

    /// Distance of X from the penalty's domain (zero for a finite penalty).
    fn infeasibility(&self, _x: ArrayView2<'_, f64>) -> f64 {
        0.0
    }

    /// What the penalty is, if it is one that the starts and closed forms know.
    fn form(&self) -> Form<'_> {
        Form::Other
    }

    /// The penalty `factor · h`, for a path over its strength; none where that makes no sense.
    fn scaled(&self, _factor: f64) -> Option<Self> {
        None
    }

    /// Checks that the penalty fits an n×r matrix.
    ///
    /// # Errors
    /// If entrywise data has another shape.
    fn check(&self, _n: usize, _r: usize) -> crate::Result<()> {
        Ok(())
    }

    /// The value of h at X.
    fn value(&self, x: ArrayView2<'_, f64>) -> f64 {
        x.outer_iter()
            .enumerate()
            .map(|(i, row)| {
                row.iter()
                    .enumerate()
                    .map(|(k, &v)| self.entry(i, k, v))
                    .sum::<f64>()
            })
            .sum()
    }
}

/// Solves one pair problem with rows of any length: the rows are padded, and the solver runs with the
/// vector instructions of this machine. (Inside a block both are done once for all pairs.)
pub fn solve_on_circle<P: Penalty>(
    penalty: &P,
    pair: &CirclePair<'_>,
    scratch: &mut Scratch,
) -> Best {
    struct Solve<'a, P> {
        penalty: &'a P,
        pair: CirclePair<'a>,
        scratch: &'a mut Scratch,
    }

    impl<P: Penalty> WithSimd for Solve<'_, P> {
        type Output = Best;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> Best {
            self.penalty.circle(simd, &self.pair, self.scratch)
        }
    }

    let padded = |row: &[f64]| {
        let mut row = row.to_vec();
        row.resize(row.len().div_ceil(ROW_MULTIPLE) * ROW_MULTIPLE, 0.0);
        row
    };
    let (x, y) = (padded(pair.x), padded(pair.y));
    crate::simd::arch().dispatch(Solve {
        penalty,
        pair: CirclePair {
            x: &x,
            y: &y,
            ..*pair
        },
        scratch,
    })
}
