//! Separable penalties h(X) = Σ φ_ij(X_ij): values, proximal maps, subdifferentials and exact pair solvers.
//!
//! A [`Penalty`] is data: a quadratic `a + b x + ½ c x²` of an entry between every two breakpoints,
//! optionally with a weight per entry. Its form is recognised from the data, so that equal penalties are
//! solved alike. Every form has a global pair solver, which `each_form!` calls for every pair; no other code is
//! generic over the form.

mod arcs;
mod boost;
mod bounded;
mod crossings;
mod derived;
mod entry_penalty;
mod even;
mod exact;
mod form;
mod jump;
mod l0;
mod l1;
mod none;
mod nonnegative;
mod piecewise_quadratic;

use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis};
use pulp::{Simd, WithSimd};

use crate::error::{Error, LARGEST, Result, SMALLEST};
use crate::pair::{Best, BestBoost, CirclePair, HyperbolaPair, Piece, ROW_MULTIPLE, Scratch};

pub(crate) use form::Form;
use form::solve_form;
use l0::L0;
use l1::L1;
pub use l1::Weights;
use none::NoPenalty;
use nonnegative::NonNegative;
use piecewise_quadratic::PiecewiseQuadratic;

/// A penalty in one of its forms.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AnyForm {
    /// h = 0.
    None(NoPenalty),
    /// λ‖X‖₀.
    L0(L0),
    /// Σ w_ij |X_ij|.
    L1(L1),
    /// X ≥ 0.
    NonNegative(NonNegative),
    /// All others.
    Pieces(PiecewiseQuadratic),
}

/// Evaluates `$body`, which is compiled for every form, with `$form` bound to the form of `$penalty`.
macro_rules! each_form {
    ($penalty:expr, $form:ident => $body:expr) => {
        match &$penalty.0 {
            $crate::penalty::AnyForm::None($form) => $body,
            $crate::penalty::AnyForm::L0($form) => $body,
            $crate::penalty::AnyForm::L1($form) => $body,
            $crate::penalty::AnyForm::NonNegative($form) => $body,
            $crate::penalty::AnyForm::Pieces($form) => $body,
        }
    };
}
pub(crate) use each_form;

/// Work of a pair without penalty, with ℓ0 of one weight or with X ≥ 0, in units of the work with ℓ1.
const SIMPLE_WORK: f64 = 0.5;

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
            format!("must be a number or have shape ({n}, {r}), got {:?}", weights.dim()),
        ));
    }
    weights.iter().try_for_each(|&weight| check_weight(weight))
}

/// A separable penalty, quadratic between finitely many breakpoints of an entry.
///
/// h may jump at a breakpoint, where the lower value counts, and be infinite (a constraint) on pieces.
///
/// ```
/// use orthobcd::penalty::Penalty;
///
/// // Capped ℓ1 and a penalty of 1 for every nonzero entry.
/// let penalty = Penalty::capped_l1(2.0, 0.5)?.plus(&Penalty::l0(1.0))?;
/// assert_eq!(penalty.entry(0, 0, 0.0), 0.0);
/// assert_eq!(penalty.entry(0, 0, -3.0), 2.0);
/// # Ok::<(), orthobcd::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Penalty(pub(crate) AnyForm);

/// Penalties by name.
impl Penalty {
    /// h = 0.
    pub const NONE: Self = Self(AnyForm::None(NoPenalty));

    /// The constraint X ≥ 0.
    pub const NONNEGATIVE: Self = Self(AnyForm::NonNegative(NonNegative));

    /// h(X) = Σ w_ij \[X_ij ≠ 0\] for one weight w ≥ 0, or for n×r of them.
    pub fn l0(weights: impl Into<Weights>) -> Self {
        Self(match weights.into() {
            Weights::Scalar(lambda) => AnyForm::L0(L0 { lambda }),
            Weights::Entrywise(weights) => AnyForm::Pieces(PiecewiseQuadratic::count(1.0, Some(weights))),
        })
    }

    /// h(X) = Σ w_ij |X_ij| for one weight w ≥ 0, or for n×r of them.
    pub fn l1(weights: impl Into<Weights>) -> Self {
        let weights = weights.into();
        Self(AnyForm::L1(L1 { weights }))
    }

    /// Creates the penalty from ascending breakpoints and (a, b, c) of the pieces `a + b x + ½ c x²` before
    /// the first, between every two, and after the last breakpoint; (∞, 0, 0) where x is not allowed.
    ///
    /// # Errors
    /// If the breakpoints do not ascend, the number of pieces is not that of breakpoints plus one, a number
    /// is too large or NaN, or every piece is infinite.
    pub fn pieces(breakpoints: Vec<f64>, pieces: Vec<Piece>) -> Result<Self> {
        PiecewiseQuadratic::new(breakpoints, pieces).map(Self::recognised)
    }

    /// Capped ℓ1, φ(x) = λ min(|x|, τ), τ = `threshold` > 0 (T. Zhang, JMLR 11, 2010).
    ///
    /// # Errors
    /// If λ is negative, the threshold is not positive, or a number of the penalty is too large.
    pub fn capped_l1(lambda: f64, threshold: f64) -> Result<Self> {
        check_weight(lambda)?;
        above("threshold", threshold, 0.0)?;
        let cap = [lambda * threshold, 0.0, 0.0];
        Self::symmetric(&[threshold], &[[0.0, lambda, 0.0], cap], ("threshold", threshold))
    }

    /// Creates the minimax concave penalty, φ(x) = λ|x| − x²/(2γ) for |x| ≤ γλ and ½γλ² beyond, γ = `gamma` >
    /// 0 (C.-H. Zhang, Ann. Statist. 38, 2010, eq. 2.1).
    ///
    /// # Errors
    /// If λ is not positive or γ is not, or a number of the penalty is too large.
    pub fn mcp(lambda: f64, gamma: f64) -> Result<Self> {
        above("lam", lambda, 0.0)?;
        above("gamma", gamma, 0.0)?;
        let cap = [0.5 * gamma * lambda * lambda, 0.0, 0.0];
        Self::symmetric(&[gamma * lambda], &[[0.0, lambda, -1.0 / gamma], cap], ("gamma", gamma))
    }

    /// Smoothly clipped absolute deviation: φ(x) = λ|x| for |x| ≤ λ, (2aλ|x| − x² − λ²)/(2(a − 1)) for
    /// λ < |x| ≤ aλ, and ½(a + 1)λ² beyond, a > 2 (Fan and Li, J. Amer. Statist. Assoc. 96, 2001, eq. 2.7).
    ///
    /// # Errors
    /// If λ is not positive, a is not above 2, or a number of the penalty is too large.
    pub fn scad(lambda: f64, a: f64) -> Result<Self> {
        above("lam", lambda, 0.0)?;
        above("a", a, 2.0)?;
        let bend = [-0.5 * lambda * lambda / (a - 1.0), a * lambda / (a - 1.0), -1.0 / (a - 1.0)];
        let cap = [0.5 * (a + 1.0) * lambda * lambda, 0.0, 0.0];
        Self::symmetric(&[lambda, a * lambda], &[[0.0, lambda, 0.0], bend, cap], ("a", a))
    }

    /// Creates the constraint `lower` ≤ x ≤ `upper`, φ = 0 there, +∞ elsewhere; either bound may be infinite.
    ///
    /// # Errors
    /// If `lower` is not below `upper`, or a finite bound is too large.
    pub fn interval(lower: f64, upper: f64) -> Result<Self> {
        PiecewiseQuadratic::interval(lower, upper).map(Self::recognised)
    }

    /// Creates a symmetric penalty from its pieces for x > 0: before, between and after the knots. They come from a weight
    /// and a parameter.
    fn symmetric(knots: &[f64], right: &[Piece], (name, value): (&str, f64)) -> Result<Self> {
        let numbers = knots.iter().chain(right.iter().flatten());
        if numbers.fold(0.0f64, |most, v| most.max(v.abs())) > LARGEST {
            let rule = format!("must give a penalty with numbers up to {LARGEST:e}, also with {name} = {value:e}");
            return Err(Error::invalid("lam", rule));
        }
        let mirrored = |&[a, b, c]: &Piece| [a, -b, c];
        let left = knots.iter().rev().map(|v| -v);
        Self::pieces(
            left.chain([0.0]).chain(knots.iter().copied()).collect(),
            (right.iter().rev().map(mirrored)).chain(right.iter().copied()).collect(),
        )
    }

    /// h₁ + h₂: pieces add up between the breakpoints of both.
    ///
    /// # Errors
    /// If no interval is allowed by both.
    pub fn plus(&self, other: &Self) -> Result<Self> {
        self.data().plus(&other.data()).map(Self::recognised)
    }

    /// Σ w_ij φ_ij(X_ij) for n×r weights w ≥ 0.
    ///
    /// # Errors
    /// If h is a constraint somewhere.
    pub fn weighted(&self, weights: &Array2<f64>) -> Result<Self> {
        let weighted = self.data().weighted(weights)?;
        Ok(Self(AnyForm::Pieces(weighted)))
    }

    /// Creates the penalty in the form recognised from its breakpoints and pieces.
    fn recognised(data: PiecewiseQuadratic) -> Self {
        Self(data.recognised())
    }

    /// Returns the breakpoints and pieces of h.
    fn data(&self) -> PiecewiseQuadratic {
        match &self.0 {
            AnyForm::None(_) => PiecewiseQuadratic::nothing(),
            AnyForm::L0(form) => PiecewiseQuadratic::count(form.lambda, None),
            AnyForm::L1(form) => match &form.weights {
                Weights::Scalar(lambda) => PiecewiseQuadratic::absolute(*lambda, None),
                Weights::Entrywise(weights) => PiecewiseQuadratic::absolute(1.0, Some(weights.clone())),
            },
            AnyForm::NonNegative(_) => PiecewiseQuadratic::nonnegative(),
            AnyForm::Pieces(form) => form.clone(),
        }
    }

    /// Returns the penalty with the general pair solver, to which the tests compare every form.
    #[doc(hidden)]
    pub fn general(&self) -> Self {
        Self(AnyForm::Pieces(self.data().general()))
    }
}

/// Checks that a parameter is above a bound and not too large.
fn above(name: &'static str, value: f64, bound: f64) -> Result<()> {
    if value > bound && value <= LARGEST {
        return Ok(());
    }
    Err(Error::invalid(name, format!("must be above {bound} and at most {LARGEST:e}, got {value}")))
}

/// Values of h.
impl Penalty {
    /// φ_ij(`value`), i = `row` and j = `column` of X.
    #[inline]
    pub fn entry(&self, row: usize, column: usize, value: f64) -> f64 {
        each_form!(self, form => form.entry(row, column, value))
    }

    /// (a, b, c) of the piece `a + b x + ½ c x²` of φ_ij just right of `value`, which may be −∞; a is +∞ and
    /// b and c are 0 where x is not allowed.
    #[inline]
    pub fn piece(&self, row: usize, column: usize, value: f64) -> Piece {
        each_form!(self, form => form.piece(row, column, value))
    }

    /// Returns the breakpoints, ascending.
    pub fn breakpoints(&self) -> &[f64] {
        each_form!(self, form => form.breakpoints())
    }

    /// Returns the slope of φ_ij just right of `value`.
    #[inline]
    pub(crate) fn slope(&self, row: usize, column: usize, value: f64) -> f64 {
        let [_, b, c] = self.piece(row, column, value);
        b + c * value
    }

    /// Returns the sum of φ_ij over a row of X.
    pub(crate) fn row_value(&self, row: usize, x: &[f64]) -> f64 {
        let entries = x.iter().enumerate();
        entries.map(|(k, &value)| self.entry(row, k, value)).sum()
    }

    /// Returns the change of h when a row of X changes from `old` to `new`.
    pub(crate) fn change(&self, row: usize, old: &[f64], new: &[f64]) -> f64 {
        each_form!(self, form => form.change(row, old, new)).0
    }

    /// h(X).
    pub fn value(&self, x: ArrayView2<'_, f64>) -> f64 {
        each_form!(self, form => form.value(x))
    }

    /// Makes a row that is feasible up to rounding exactly feasible.
    pub fn tidy(&self, row: &mut [f64]) {
        each_form!(self, form => form.tidy(row));
    }

    /// Returns the distance of X from the domain of h.
    pub fn infeasibility(&self, x: ArrayView2<'_, f64>) -> f64 {
        match &self.0 {
            AnyForm::NonNegative(_) => x.iter().map(|v| v.min(0.0).powi(2)).sum::<f64>().sqrt(),
            AnyForm::Pieces(form) => form.infeasibility(x),
            _ => 0.0,
        }
    }

    /// Returns the squared distance from the domain of h as a penalty, if a start may have to be moved there.
    pub fn squared_distance(&self) -> Option<Self> {
        match &self.0 {
            AnyForm::Pieces(form) => form.squared_distance().map(Self::recognised),
            _ => None,
        }
    }

    /// Checks that h fits an n×r matrix.
    pub(crate) fn check(&self, n: usize, r: usize) -> Result<()> {
        match &self.0 {
            AnyForm::L0(form) => check_weight(form.lambda),
            AnyForm::L1(form) => match &form.weights {
                Weights::Scalar(lambda) => check_weight(*lambda),
                Weights::Entrywise(weights) => check_weights(weights, n, r),
            },
            AnyForm::Pieces(form) => form.check(n, r),
            AnyForm::None(_) | AnyForm::NonNegative(_) => Ok(()),
        }
    }

    /// Returns the regular subdifferential of φ_ij: the interval from the left to the right slope at `value`,
    /// infinite where φ_ij jumps up, and empty (first number larger) at a concave kink.
    pub fn subdifferential(&self, row: usize, column: usize, value: f64) -> (f64, f64) {
        each_form!(self, form => derived::subdifferential(form, row, column, value))
    }

    /// Returns the proximal map: a global minimum u of `φ_ij(u) + (u − value)²/(2·step)`.
    #[inline]
    pub fn proximal(&self, row: usize, column: usize, value: f64, step: f64) -> f64 {
        each_form!(self, form => form.proximal(row, column, value, step))
    }

    /// Returns the proximal map of h near the entry `x`, and its derivative. If h jumps up on both sides of
    /// x, x stays.
    #[inline]
    pub fn proximal_near(&self, (row, column): (usize, usize), x: f64, value: f64, step: f64) -> (f64, f64) {
        each_form!(self, form => form.proximal_near((row, column), x, value, step))
    }

    /// Adds the gradient of h smoothed over the width `epsilon` to `gradient`, and returns the smoothed
    /// value. X ≥ 0 contributes nothing; the caller restores this constraint.
    pub fn smoothed(&self, x: ArrayView2<'_, f64>, epsilon: f64, gradient: ArrayViewMut2<'_, f64>) -> f64 {
        each_form!(self, form => form.smoothed(x, epsilon, gradient))
    }
}

/// Properties of h, and penalties derived from h.
impl Penalty {
    /// Returns whether h is [`NONE`](Self::NONE).
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        matches!(self.0, AnyForm::None(_))
    }

    /// Returns the work of solving a pair of rows, in units of the work with ℓ1.
    pub(crate) fn pair_work(&self) -> f64 {
        match &self.0 {
            AnyForm::Pieces(form) => form.pair_work(),
            AnyForm::L1(_) => 1.0,
            AnyForm::None(_) | AnyForm::L0(_) | AnyForm::NonNegative(_) => SIMPLE_WORK,
        }
    }

    /// Returns whether h draws entries to zero: 0 minimises the mean φ plus any small linear function near 0.
    /// ℓ0 and ℓ1 of weight 0 count as well.
    pub(crate) fn sparsifies(&self) -> bool {
        match &self.0 {
            AnyForm::L0(_) | AnyForm::L1(_) => true,
            AnyForm::None(_) | AnyForm::NonNegative(_) => false,
            AnyForm::Pieces(form) => form.sparsifies(),
        }
    }

    /// Returns λ if h = λ‖X‖₀.
    #[inline]
    pub(crate) fn count(&self) -> Option<f64> {
        match &self.0 {
            AnyForm::L0(form) => Some(form.lambda),
            _ => None,
        }
    }

    /// Returns the weights if h is ℓ1.
    pub(crate) fn l1_weights(&self) -> Option<&Weights> {
        match &self.0 {
            AnyForm::L1(form) => Some(&form.weights),
            _ => None,
        }
    }

    /// Returns λ if h = λ‖X‖₁.
    pub(crate) fn absolute(&self) -> Option<f64> {
        match self.l1_weights() {
            Some(Weights::Scalar(lambda)) => Some(*lambda),
            _ => None,
        }
    }

    /// Returns whether 0 is allowed and no value below 0 is.
    pub fn nonnegative(&self) -> bool {
        match &self.0 {
            AnyForm::NonNegative(_) => true,
            AnyForm::Pieces(form) => form.is_nonnegative(),
            _ => false,
        }
    }

    /// Returns the strength of h, the number that a path varies: λ of λ‖X‖₀ and λ‖X‖₁, 1 (as a factor of h)
    /// for other penalties, `None` if h does not draw entries to zero.
    pub fn strength(&self) -> Option<f64> {
        let lambda = self.count().or(self.absolute()).unwrap_or(1.0);
        self.sparsifies().then_some(lambda)
    }

    /// Returns the strength above which two rows do not share a column, if this lowers f by at most `gain`.
    pub(crate) fn largest_strength(&self, gain: f64) -> f64 {
        match &self.0 {
            AnyForm::L1(form) => match &form.weights {
                Weights::Scalar(_) => gain,
                Weights::Entrywise(w) => gain / w.mean().unwrap_or(1.0).max(f64::MIN_POSITIVE),
            },
            AnyForm::Pieces(form) => form.largest_strength(gain),
            _ => gain,
        }
    }

    /// Creates the penalty `factor · h`, if it has a [`strength`](Self::strength).
    pub(crate) fn scaled(&self, factor: f64) -> Option<Self> {
        let form = match &self.0 {
            AnyForm::L0(form) => AnyForm::L0(L0 { lambda: factor * form.lambda }),
            AnyForm::L1(form) => AnyForm::L1(L1 {
                weights: match &form.weights {
                    Weights::Scalar(lambda) => Weights::Scalar(factor * lambda),
                    Weights::Entrywise(weights) => Weights::Entrywise(weights * factor),
                },
            }),
            AnyForm::Pieces(form) if form.sparsifies() => AnyForm::Pieces(form.scaled(factor)),
            _ => return None,
        };
        Some(Self(form))
    }

    /// Returns the penalty of Xᵀ.
    pub(crate) fn transposed(&self) -> Self {
        self.rearranged(|weights| weights.t().as_standard_layout().into_owned())
    }

    /// Returns the penalty restricted to these rows of X.
    pub(crate) fn on_rows(&self, rows: &[usize]) -> Self {
        self.rearranged(|weights| weights.select(Axis(0), rows))
    }

    /// Returns the penalty with its entrywise weights, if any, mapped by `change`.
    fn rearranged(&self, change: impl Fn(&Array2<f64>) -> Array2<f64>) -> Self {
        Self(match &self.0 {
            AnyForm::L1(L1 { weights: Weights::Entrywise(weights) }) => {
                AnyForm::L1(L1 { weights: Weights::Entrywise(change(weights)) })
            }
            AnyForm::Pieces(form) => AnyForm::Pieces(form.reweighted(change)),
            form => form.clone(),
        })
    }
}

/// Returns the global minimum of a pair over rotations and reflections, relative to the identity.
#[inline(always)]
pub(crate) fn solve_circle<S: Simd>(simd: S, penalty: &Penalty, pair: &CirclePair<'_>, scratch: &mut Scratch) -> Best {
    each_form!(penalty, form => solve_form(simd, form, pair, scratch))
}

/// Pair problems on the circle, solved with the vector instructions of this machine.
struct OnCircle<'a, I, T> {
    penalty: &'a Penalty,
    pairs: I,
    scratch: &'a mut Scratch,
    take: T,
}

impl<'p, I: Iterator<Item = CirclePair<'p>>, T: FnMut(Best)> WithSimd for OnCircle<'_, I, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for pair in self.pairs {
            (self.take)(solve_circle(simd, self.penalty, &pair, self.scratch));
        }
    }
}

/// Solves pair problems in one loop of vector code, as a block does, and hands each solution to `take`.
#[doc(hidden)]
pub fn solve_each_on_circle<'p>(
    penalty: &Penalty,
    pairs: impl Iterator<Item = CirclePair<'p>>,
    scratch: &mut Scratch,
    take: impl FnMut(Best),
) {
    crate::simd::arch().dispatch(OnCircle { penalty, pairs, scratch, take });
}

/// Solves one pair problem with rows of any length: the rows are padded, and the solver runs with the
/// vector instructions of this machine. (Inside a block both are done once for all pairs.)
pub fn solve_on_circle(penalty: &Penalty, pair: &CirclePair<'_>, scratch: &mut Scratch) -> Best {
    let padded = |row: &[f64]| {
        let mut row = row.to_vec();
        row.resize(row.len().div_ceil(ROW_MULTIPLE) * ROW_MULTIPLE, 0.0);
        row
    };
    let (x, y) = (padded(pair.x), padded(pair.y));
    let pair = CirclePair { x: &x, y: &y, ..*pair };
    let mut best = Best::IDENTITY;
    solve_each_on_circle(penalty, std::iter::once(pair), scratch, |found| best = found);
    best
}

/// Solves one pair problem of two rows of opposite sign.
pub fn solve_on_hyperbola(penalty: &Penalty, pair: &HyperbolaPair<'_>, scratch: &mut Scratch) -> BestBoost {
    each_form!(penalty, form => form.hyperbola(pair, scratch))
}

#[cfg(test)]
mod tests;
