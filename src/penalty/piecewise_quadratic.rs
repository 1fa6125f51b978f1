//! Any price of one entry made of quadratic pieces, the same for all entries.

use ndarray::ArrayView2;

use super::{Exact, Penalty};
use crate::error::{Error, Result};
use crate::objective::LARGEST;
use crate::pair::Piece;

/// h(X) = Σ φ(X_ij), φ(x) = a + b x + ½ c x² with its own (a, b, c) between every two breakpoints.
///
/// Where two pieces disagree at their breakpoint the lower value counts. A piece of infinite price is a
/// constraint.
#[derive(Debug, Clone, PartialEq)]
pub struct PiecewiseQuadratic {
    breakpoints: Vec<f64>,
    pieces: Vec<Piece>,
}

impl PiecewiseQuadratic {
    /// Breakpoints in ascending order, and (a, b, c) of the piece before the first, of those between, and of
    /// the one after the last; (∞, 0, 0) where x is not allowed.
    ///
    /// # Errors
    /// If the breakpoints do not ascend, there is not one piece more than there are breakpoints, a number is
    /// too large or not one, or every piece is infinite.
    pub fn new(breakpoints: Vec<f64>, pieces: Vec<Piece>) -> Result<Self> {
        let fits = |v: f64| v.abs() <= LARGEST;
        if !breakpoints.iter().all(|&v| fits(v)) || !breakpoints.is_sorted_by(|a, b| a < b) {
            return Err(Error::invalid(
                "breakpoints",
                format!("must be finite and ascend, got {breakpoints:?}"),
            ));
        }
        if pieces.len() != breakpoints.len() + 1 {
            return Err(Error::invalid(
                "pieces",
                format!(
                    "must be {}, one more than breakpoints, got {}",
                    breakpoints.len() + 1,
                    pieces.len()
                ),
            ));
        }
        let infinite = |piece: &Piece| *piece == [f64::INFINITY, 0.0, 0.0];
        for piece in &pieces {
            if !infinite(piece) && !piece.iter().all(|&v| fits(v)) {
                return Err(Error::invalid(
                    "pieces",
                    format!("must be of numbers up to {LARGEST:e}, or (inf, 0, 0); got {piece:?}"),
                ));
            }
        }
        if pieces.iter().all(infinite) {
            return Err(Error::invalid("pieces", "must not all be infinite"));
        }
        Ok(Self {
            breakpoints,
            pieces,
        })
    }

    /// Symmetric prices: from 0 to `knots`[0], between the knots, and beyond the last one.
    fn symmetric(knots: &[f64], right: &[Piece]) -> Result<Self> {
        let mirrored = |&[a, b, c]: &Piece| [a, -b, c];
        let left = knots.iter().rev().map(|v| -v);
        Self::new(
            left.chain([0.0]).chain(knots.iter().copied()).collect(),
            (right.iter().rev().map(mirrored))
                .chain(right.iter().copied())
                .collect(),
        )
    }

    /// Capped ℓ1, φ(x) = λ min(|x|, τ), τ = `threshold` > 0 (T. Zhang, JMLR 11, 2010).
    ///
    /// # Errors
    /// If λ is negative, the threshold is not positive, or either is too large.
    pub fn capped_l1(lambda: f64, threshold: f64) -> Result<Self> {
        super::check_weight(lambda)?;
        above("threshold", threshold, 0.0)?;
        let cap = [lambda * threshold, 0.0, 0.0];
        Self::symmetric(&[threshold], &[[0.0, lambda, 0.0], cap])
    }

    /// The minimax concave penalty, φ(x) = λ|x| − x²/(2γ) for |x| ≤ γλ and ½γλ² beyond, γ = `gamma` > 0
    /// (C.-H. Zhang, Ann. Statist. 38, 2010, eq. 2.1).
    ///
    /// # Errors
    /// If λ is not positive or γ is not, or either is too large.
    pub fn mcp(lambda: f64, gamma: f64) -> Result<Self> {
        above("lam", lambda, 0.0)?;
        above("gamma", gamma, 0.0)?;
        let cap = [0.5 * gamma * lambda * lambda, 0.0, 0.0];
        Self::symmetric(&[gamma * lambda], &[[0.0, lambda, -1.0 / gamma], cap])
    }

    /// Smoothly clipped absolute deviation: φ(x) = λ|x| for |x| ≤ λ, (2aλ|x| − x² − λ²)/(2(a − 1)) for
    /// λ < |x| ≤ aλ, and ½(a + 1)λ² beyond, a > 2 (Fan and Li, J. Amer. Statist. Assoc. 96, 2001, eq. 2.7).
    ///
    /// # Errors
    /// If λ is not positive, a is not above 2, or either is too large.
    pub fn scad(lambda: f64, a: f64) -> Result<Self> {
        above("lam", lambda, 0.0)?;
        above("a", a, 2.0)?;
        let bend = [
            -0.5 * lambda * lambda / (a - 1.0),
            a * lambda / (a - 1.0),
            -1.0 / (a - 1.0),
        ];
        let cap = [0.5 * (a + 1.0) * lambda * lambda, 0.0, 0.0];
        Self::symmetric(&[lambda, a * lambda], &[[0.0, lambda, 0.0], bend, cap])
    }

    /// The constraint `lower` ≤ x ≤ `upper`: φ = 0 there, +∞ elsewhere. Starts are refused outside.
    ///
    /// # Errors
    /// If lower is not below upper, or one is too large.
    pub fn interval(lower: f64, upper: f64) -> Result<Self> {
        if !(lower < upper) {
            return Err(Error::invalid(
                "lower",
                format!("must be below upper = {upper}, got {lower}"),
            ));
        }
        let outside = [f64::INFINITY, 0.0, 0.0];
        Self::new(vec![lower, upper], vec![outside, [0.0; 3], outside])
    }

    /// The allowed value nearest to `value`.
    fn nearest(&self, value: f64) -> f64 {
        if self.entry(0, 0, value) < f64::INFINITY {
            return value;
        }
        let allowed = |level: &&f64| self.entry(0, 0, **level) < f64::INFINITY;
        let levels = self.breakpoints.iter().filter(allowed);
        let nearer = |a: &&f64, b: &&f64| (**a - value).abs().total_cmp(&(**b - value).abs());
        levels.min_by(nearer).map_or(value, |&level| level)
    }

    /// Whether h is a constraint somewhere.
    fn constrains(&self) -> bool {
        self.pieces.iter().any(|piece| piece[0] == f64::INFINITY)
    }
}

/// Checks a parameter that has to be above a bound.
fn above(name: &'static str, value: f64, bound: f64) -> Result<()> {
    if value > bound && value <= LARGEST {
        return Ok(());
    }
    Err(Error::invalid(
        name,
        format!("must be above {bound} and at most {LARGEST:e}, got {value}"),
    ))
}

impl Penalty for PiecewiseQuadratic {
    type Kernel = Exact;

    fn piece(&self, _row: usize, _column: usize, value: f64) -> Piece {
        self.pieces[self.breakpoints.partition_point(|&level| level <= value)]
    }

    fn levels(&self) -> &[f64] {
        &self.breakpoints
    }

    fn transposed(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn tidy(&self, row: &mut [f64]) {
        if self.constrains() {
            for value in row {
                *value = self.nearest(*value);
            }
        }
    }

    fn infeasibility(&self, x: ArrayView2<'_, f64>) -> f64 {
        let squares = x.iter().map(|&v| (v - self.nearest(v)).powi(2));
        squares.sum::<f64>().sqrt()
    }

    /// A path runs through multiples of h.
    fn strength(&self) -> Option<f64> {
        self.sparsifies().then_some(1.0)
    }

    fn scaled(&self, factor: f64) -> Option<Self> {
        let times = |piece: &Piece| match piece[0] == f64::INFINITY {
            true => *piece,
            false => piece.map(|v| factor * v),
        };
        self.sparsifies().then(|| Self {
            breakpoints: self.breakpoints.clone(),
            pieces: self.pieces.iter().map(times).collect(),
        })
    }

    fn largest_strength(&self, gain: f64) -> f64 {
        let price = self.entry(0, 0, 1.0) - self.entry(0, 0, 0.0);
        if price > 0.0 && price.is_finite() {
            gain / price
        } else {
            gain
        }
    }
}
