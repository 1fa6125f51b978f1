//! Σ λ_ij |X_ij|: piecewise sinusoidal on the circle, see [`arcs`](super::arcs).

use ndarray::{Array2, ArrayView2, ArrayViewMut2, Zip};
use pulp::Simd;

use super::Form;
use super::arcs::{mark_vanishing, search};
use super::crossings::{half_period, quarter_period};
use crate::pair::{Best, BestBoost, CirclePair, HyperbolaPair, Piece, Scratch};

/// Weights of entries: a number or an array.
#[derive(Debug, Clone, PartialEq)]
pub enum Weights {
    /// One weight for all entries.
    Scalar(f64),
    /// One weight per entry, n×r.
    Entrywise(Array2<f64>),
}

impl From<f64> for Weights {
    fn from(weight: f64) -> Self {
        Self::Scalar(weight)
    }
}

/// Equal weights become one scalar weight.
impl From<Array2<f64>> for Weights {
    fn from(weights: Array2<f64>) -> Self {
        match weights.first() {
            Some(&first) if weights.iter().all(|&weight| weight == first) => Self::Scalar(first),
            _ => Self::Entrywise(weights),
        }
    }
}

/// h(X) = Σ weight_ij |X_ij|.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct L1 {
    /// The weights, ≥ 0.
    pub(super) weights: Weights,
}

impl L1 {
    #[inline(always)]
    fn weight(&self, row: usize, column: usize) -> f64 {
        match &self.weights {
            Weights::Scalar(lambda) => *lambda,
            Weights::Entrywise(weights) => weights[[row, column]],
        }
    }
}

impl Form for L1 {
    #[inline(always)]
    fn entry(&self, row: usize, column: usize, value: f64) -> f64 {
        self.weight(row, column) * value.abs()
    }

    #[inline(always)]
    fn piece(&self, row: usize, column: usize, value: f64) -> Piece {
        let weight = self.weight(row, column);
        [0.0, if value < 0.0 { -weight } else { weight }, 0.0]
    }

    fn breakpoints(&self) -> &[f64] {
        &[0.0]
    }

    #[inline(always)]
    fn change(&self, row: usize, old: &[f64], new: &[f64]) -> (f64, f64) {
        let (mut delta, mut magnitude) = (0.0, 0.0);
        match &self.weights {
            Weights::Scalar(lambda) => {
                for (&o, &n) in old.iter().zip(new) {
                    let d = n.abs() - o.abs();
                    delta += d;
                    magnitude += d.abs();
                }
                (lambda * delta, lambda * magnitude)
            }
            Weights::Entrywise(weights) => {
                for ((&o, &n), &w) in old.iter().zip(new).zip(weights.row(row)) {
                    let d = w * (n.abs() - o.abs());
                    delta += d;
                    magnitude += d.abs();
                }
                (delta, magnitude)
            }
        }
    }

    fn value(&self, x: ArrayView2<'_, f64>) -> f64 {
        match &self.weights {
            Weights::Scalar(lambda) => lambda * x.iter().map(|v| v.abs()).sum::<f64>(),
            Weights::Entrywise(w) => x.iter().zip(w).map(|(v, w)| w * v.abs()).sum(),
        }
    }

    #[inline(always)]
    fn proximal(&self, row: usize, column: usize, value: f64, step: f64) -> f64 {
        let threshold = self.weight(row, column) * step;
        if value > threshold {
            value - threshold
        } else if value < -threshold {
            value + threshold
        } else {
            0.0
        }
    }

    #[inline(always)]
    fn proximal_near(&self, (row, column): (usize, usize), _: f64, value: f64, step: f64) -> (f64, f64) {
        let u = self.proximal(row, column, value, step);
        (u, if u == 0.0 { 0.0 } else { 1.0 })
    }

    /// `√(x² + ε²) − ε` in place of |x|.
    fn smoothed(&self, x: ArrayView2<'_, f64>, epsilon: f64, mut gradient: ArrayViewMut2<'_, f64>) -> f64 {
        let squared = epsilon * epsilon;
        let mut sum = 0.0;
        match &self.weights {
            Weights::Scalar(lambda) => {
                Zip::from(&mut gradient).and(x).for_each(|g, &x| {
                    let root = (x * x + squared).sqrt();
                    sum += root - epsilon;
                    *g += lambda * x / root;
                });
                lambda * sum
            }
            Weights::Entrywise(weights) => {
                let gradient = Zip::from(&mut gradient).and(x).and(weights);
                gradient.for_each(|g, &x, &w| {
                    let root = (x * x + squared).sqrt();
                    sum += w * (root - epsilon);
                    *g += w * x / root;
                });
                sum
            }
        }
    }

    #[inline(always)]
    fn hyperbola(&self, pair: &HyperbolaPair<'_>, scratch: &mut Scratch) -> BestBoost {
        match &self.weights {
            Weights::Scalar(lambda) => super::boost::l1(|_| (*lambda, *lambda), pair, scratch),
            Weights::Entrywise(weights) => {
                let (i, j) = pair.rows;
                super::boost::l1(|k| (weights[[i, k]], weights[[j, k]]), pair, scratch)
            }
        }
    }

    #[inline(always)]
    fn circle<S: Simd>(&self, simd: S, pair: &CirclePair<'_>, scratch: &mut Scratch) -> Best {
        scratch.clear();
        match &self.weights {
            Weights::Scalar(lambda) => {
                let start = quarter_period(simd, *lambda, pair, &mut scratch.breakpoints);
                let best = search::<S, true, false, false>(simd, pair, scratch, start, None);
                mark_vanishing(&best, scratch, pair.x.len());
                best
            }
            Weights::Entrywise(weights) => {
                let (first, second) = (weights.row(pair.rows.0), weights.row(pair.rows.1));
                let weights = |k: usize| (first[k], second[k]);
                let start = half_period(simd, weights, pair, &mut scratch.breakpoints);
                let best = search::<S, false, false, false>(simd, pair, scratch, start, None);
                mark_vanishing(&best, scratch, pair.x.len());
                best
            }
        }
    }
}
