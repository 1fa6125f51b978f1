//! The sum of two penalties.

use ndarray::ArrayView2;

use super::{Exact, Penalty, PiecewiseQuadratic, exact};
use crate::pair::Piece;

/// h₁(X) + h₂(X): pieces add up between the levels of both.
#[derive(Debug, Clone, PartialEq)]
pub struct Sum<A, B> {
    first: A,
    second: B,
    levels: Vec<f64>,
}

impl<A: Penalty, B: Penalty> Sum<A, B> {
    /// The sum of `first` and `second`.
    pub fn new(first: A, second: B) -> Self {
        let mut levels = [first.levels(), second.levels()].concat();
        levels.sort_by(f64::total_cmp);
        levels.dedup();
        Self {
            first,
            second,
            levels,
        }
    }
}

impl<A: Penalty, B: Penalty> Penalty for Sum<A, B> {
    type Kernel = Exact;

    const SMOOTH: bool = A::SMOOTH && B::SMOOTH;

    fn piece(&self, row: usize, column: usize, value: f64) -> Piece {
        let first = self.first.piece(row, column, value);
        let second = self.second.piece(row, column, value);
        [0, 1, 2].map(|k| first[k] + second[k])
    }

    fn levels(&self) -> &[f64] {
        &self.levels
    }

    fn entry(&self, row: usize, column: usize, value: f64) -> f64 {
        self.first.entry(row, column, value) + self.second.entry(row, column, value)
    }

    fn on_rows(&self, rows: &[usize]) -> Option<Self> {
        Some(Self::new(
            self.first.on_rows(rows)?,
            self.second.on_rows(rows)?,
        ))
    }

    fn transposed(&self) -> Option<Self> {
        Some(Self::new(
            self.first.transposed()?,
            self.second.transposed()?,
        ))
    }

    fn tidy(&self, row: &mut [f64]) {
        self.first.tidy(row);
        self.second.tidy(row);
    }

    fn infeasibility(&self, x: ArrayView2<'_, f64>) -> f64 {
        self.first
            .infeasibility(x)
            .hypot(self.second.infeasibility(x))
    }

    fn squared_distance(&self) -> Option<PiecewiseQuadratic> {
        match (
            self.first.squared_distance(),
            self.second.squared_distance(),
        ) {
            (Some(first), Some(second)) => first.plus(&second).ok(),
            (first, second) => first.or(second),
        }
    }

    fn pair_work(&self) -> f64 {
        exact::pair_work(&self.levels)
    }

    fn check(&self, n: usize, r: usize) -> crate::error::Result<()> {
        self.first.check(n, r)?;
        self.second.check(n, r)
    }

    /// A path runs through multiples of h.
    fn strength(&self) -> Option<f64> {
        (self.first.strength().is_some() && self.second.strength().is_some()).then_some(1.0)
    }

    fn scaled(&self, factor: f64) -> Option<Self> {
        Some(Self::new(
            self.first.scaled(factor)?,
            self.second.scaled(factor)?,
        ))
    }
}
