//! Separable penalties h(X) = Σ h_ij(X_ij) and their exact pair solvers.
//!
//! A new penalty says which [quadratic](Penalty::piece) one entry costs and at which
//! [levels](Penalty::levels) that changes; the pair solver [`Exact`] then is global, and everything else
//! that the methods ask a penalty for is derived from the pieces. The built-in penalties have faster
//! kernels (and are tested against it) and closed forms.

mod arcs;
mod boost;
mod derived;
mod even;
mod exact;
mod jump;
mod l0;
mod l1;
mod none;
mod nonnegative;
mod piecewise_quadratic;
mod prices;
mod sum;

use ndarray::{Array2, ArrayView2, ArrayViewMut2};

use pulp::{Simd, WithSimd};

use crate::error::{Error, LARGEST, Result, SMALLEST};
use crate::pair::{Best, BestBoost, CirclePair, HyperbolaPair, Piece, ROW_MULTIPLE, Scratch};

pub use exact::Exact;
/// For the benchmarks, which time the kernels inside one loop of vector code.
#[doc(hidden)]
pub use exact::Kernel;
pub use l0::L0;
pub use l1::{L1, Weights};
pub use none::NoPenalty;
pub use nonnegative::NonNegative;
#[cfg(feature = "python")]
pub(crate) use piecewise_quadratic::BuiltIn;
pub use piecewise_quadratic::PiecewiseQuadratic;
pub use sum::Sum;

/// Checks one weight of a penalty.
fn check_weight(weight: f64) -> Result<()> {
    if weight == 0.0 || (SMALLEST..=LARGEST).contains(&weight) {
        return Ok(());
    }
    Err(Error::invalid(
        "lam",
        format!(
            "must be zero or between {SMALLEST:e} and {LARGEST:e}, where products neither overflow nor \
             vanish; got {weight}"
        ),
    ))
}

/// Checks weights of the entries of an n×r matrix.
fn check_weights(weights: &Array2<f64>, n: usize, r: usize) -> Result<()> {
    if weights.dim() != (n, r) {
        return Err(Error::invalid(
            "lam",
            format!(
                "must be a number or have shape ({n}, {r}), got {:?}",
                weights.dim()
            ),
        ));
    }
    weights.iter().try_for_each(|&weight| check_weight(weight))
}

/// A separable penalty, quadratic between finitely many levels of an entry.
///
/// h must be lower semicontinuous; it may jump at every level, and be infinite (a constraint) on whole
/// pieces: then [`tidy`](Self::tidy) and [`infeasibility`](Self::infeasibility) are to be written as well.
/// Rows and columns are indices into X.
pub trait Penalty: Clone + Send + Sync {
    /// The pair solver: [`Exact`] for every penalty of one's own.
    type Kernel: Kernel<Self>;

    /// Whether h is identically zero.
    const SMOOTH: bool = false;

    /// (a, b, c) of the price `a + b x + ½ c x²` just right of `value`, which may be −∞; a is +∞ and b and c
    /// are 0 where the price is infinite.
    fn piece(&self, row: usize, column: usize, value: f64) -> Piece;

    /// The values of an entry at which the piece changes, ascending.
    fn levels(&self) -> &[f64];

    /// Price of one entry. By default that of its piece, at a level the lower one of its two pieces.
    fn entry(&self, row: usize, column: usize, value: f64) -> f64 {
        derived::entry(self, row, column, value)
    }

    /// Slope of the price just right of `value`.
    #[inline(always)]
    fn slope(&self, row: usize, column: usize, value: f64) -> f64 {
        let [_, b, c] = self.piece(row, column, value);
        b + c * value
    }

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

    /// The penalty of Xᵀ, which column moves need; `None` (the default) if there is none.
    fn transposed(&self) -> Option<Self> {
        None
    }

    /// Makes a row exactly feasible after a move that is feasible up to rounding.
    #[inline(always)]
    fn tidy(&self, _row: &mut [f64]) {}

    /// Distance of X from the penalty's domain (zero for a finite penalty).
    fn infeasibility(&self, _x: ArrayView2<'_, f64>) -> f64 {
        0.0
    }

    /// The squared distance from the penalty's domain, as a penalty, by which a start is moved into it; `None` (the
    /// default) where that is never needed.
    fn squared_distance(&self) -> Option<PiecewiseQuadratic> {
        None
    }

    /// Checks that the penalty fits an n×r matrix.
    ///
    /// # Errors
    /// If entrywise data has another shape.
    fn check(&self, _n: usize, _r: usize) -> Result<()> {
        Ok(())
    }

    /// The regular subdifferential of the price of an entry: the interval from the slope on its left to that on its
    /// right, infinite where the price jumps up. Empty at a concave kink, where the first number exceeds the second.
    fn subdifferential(&self, row: usize, column: usize, value: f64) -> (f64, f64) {
        derived::subdifferential(self, row, column, value)
    }

    /// The proximal map: a global minimum u of `h(u) + (u − value)²/(2·step)`.
    fn proximal(&self, row: usize, column: usize, value: f64, step: f64) -> f64 {
        derived::proximal(self, row, column, value, step)
    }

    /// The proximal map of h near the entry `x`, and its derivative: where h jumps up on both sides of x,
    /// x stays.
    fn proximal_near(
        &self,
        row: usize,
        column: usize,
        x: f64,
        value: f64,
        step: f64,
    ) -> (f64, f64) {
        derived::proximal_near(self, row, column, x, value, step)
    }

    /// Adds the gradient of h smoothed over the width `epsilon` to `gradient`, and returns the value. By
    /// default the Moreau envelope of every entry.
    fn smoothed(
        &self,
        x: ArrayView2<'_, f64>,
        epsilon: f64,
        gradient: ArrayViewMut2<'_, f64>,
    ) -> f64 {
        derived::smoothed(self, x, epsilon, gradient)
    }

    /// What solving a pair of rows costs, in units of what it costs with ℓ1: work is counted with it.
    fn pair_work(&self) -> f64 {
        1.0
    }

    /// Whether h draws entries to zero: zero minimises it plus any linear function that is small enough.
    fn sparsifies(&self) -> bool {
        let (low, high) = self.subdifferential(0, 0, 0.0);
        low < 0.0 && high > 0.0
    }

    /// λ if h = λ‖X‖₀.
    #[inline(always)]
    fn count(&self) -> Option<f64> {
        None
    }

    /// λ if h = λ‖X‖₁.
    fn absolute(&self) -> Option<f64> {
        None
    }

    /// Whether h is the constraint X ≥ 0.
    #[inline(always)]
    fn nonnegative(&self) -> bool {
        false
    }

    /// The factor λ of h that a path over its strength runs through; `None` where there is no path.
    fn strength(&self) -> Option<f64> {
        None
    }

    /// The penalty `factor · h`, if it has a [`strength`](Self::strength).
    fn scaled(&self, _factor: f64) -> Option<Self> {
        None
    }

    /// The penalty of these rows of X alone; `None` (the default) where that is not offered.
    fn on_rows(&self, _rows: &[usize]) -> Option<Self> {
        None
    }

    /// The strength above which sharing a column does not pay, if that gains two rows at most `gain`.
    fn largest_strength(&self, gain: f64) -> f64 {
        gain
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
            P::Kernel::circle(self.penalty, simd, &self.pair, self.scratch)
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

/// Solves one pair problem of two rows of opposite sign.
pub fn solve_on_hyperbola<P: Penalty>(
    penalty: &P,
    pair: &HyperbolaPair<'_>,
    scratch: &mut Scratch,
) -> BestBoost {
    P::Kernel::hyperbola(penalty, pair, scratch)
}
