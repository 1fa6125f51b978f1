//! Which curvature the pair models of a Jacobi round take.

use ndarray::{Array2, ArrayView2};

use crate::signature::Signature;

/// The curvature of the pair models of [`minimize_finite_sum`](super::minimize_finite_sum).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum CurvatureRule {
    /// A bound that holds everywhere: [`FiniteSumOptions::curvature`](super::FiniteSumOptions), by default
    /// that of the objective plus what pays for the estimate's error.
    #[default]
    Bound,
    /// For exact gradients: start from the gradient's size, halve less than that where F falls as
    /// the model says, double and go back where it does not. F never rises.
    Adaptive,
    /// The proximal weight of the pair (i, j) is `√(S_ij + S̄)·√((n−1)/2) / step`, `S_ij = Σ_t K_ij²` with the slope K_ij of
    /// the model along the pair's rotation or boost in iteration t, S̄ its mean over all pairs (Adagrad
    /// of Duchi, Hazan and Singer, JMLR 2011, in the coordinates of the Lie algebra). Needs no Lipschitz
    /// constant. F may rise; where it rises above F at the start, the best point is taken up
    /// again with half the step.
    Accumulated {
        /// Length of the first iteration's move if all pairs move, relative to ‖I‖_F = √n.
        step: f64,
    },
}

/// Σ_t K_ij² of all pairs.
#[derive(Debug, Clone)]
pub(crate) struct PairSlopes {
    sums: Array2<f64>,
    mean: f64,
    spread: f64,
}

impl PairSlopes {
    pub(crate) fn new(n: usize) -> Self {
        Self {
            sums: Array2::zeros((n, n)),
            mean: 0.0,
            spread: 0.5 * (n - 1) as f64,
        }
    }

    /// Adds the slopes of a gradient at `x`: K = GXᵀ − J(GXᵀ)ᵀJ.
    pub(crate) fn observe(
        &mut self,
        x: ArrayView2<'_, f64>,
        gradient: ArrayView2<'_, f64>,
        signature: &Signature,
    ) {
        let k = gradient.dot(&x.t());
        let n = k.nrows();
        let mut total = 0.0;
        for i in 0..n {
            for j in 0..i {
                let slope = k[[i, j]] - signature.sign(i) * signature.sign(j) * k[[j, i]];
                let sum = self.sums[[i, j]] + slope * slope;
                self.sums[[i, j]] = sum;
                self.sums[[j, i]] = sum;
                total += sum;
            }
        }
        self.mean = 2.0 * total / (n * (n - 1)) as f64;
    }

    /// The proximal weight of a pair; none if it never had a slope beyond rounding.
    pub(crate) fn weight(&self, i: usize, j: usize, step: f64) -> Option<f64> {
        let sum = self.sums[[i, j]];
        (sum > FLAT * self.mean).then(|| ((sum + self.mean) * self.spread).sqrt() / step)
    }
}

/// Sum of squared slopes, relative to the mean, up to which a pair's slopes are rounding.
const FLAT: f64 = 1e-24;

/// The pairs of round `round` of a tournament among `order` (circle method): round 0 pairs neighbours, n − 1
/// rounds (n for odd n) hold every pair once.
pub(crate) fn matching(order: &[usize], round: usize) -> Vec<[usize; 2]> {
    let n = order.len();
    let players = n + n % 2;
    let seat = |k: usize| {
        let k = if k == 0 {
            0
        } else {
            1 + (k - 1 + round) % (players - 1)
        };
        // Seats 0, 1, … of the upper row and n − 1, n − 2, … of the lower row hold neighbours.
        let index = if k < players / 2 {
            2 * k
        } else {
            2 * (players - 1 - k) + 1
        };
        order.get(index).copied()
    };
    (0..players / 2)
        .filter_map(|k| {
            let (i, j) = (seat(k)?, seat(players - 1 - k)?);
            Some([i.min(j), i.max(j)])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tournament_holds_every_pair_once() {
        for n in [2usize, 3, 4, 7, 8] {
            let order: Vec<usize> = (0..n).rev().collect();
            let mut seen = vec![0; n * n];
            for round in 0..n + n % 2 - 1 {
                let mut busy = vec![false; n];
                for [i, j] in matching(&order, round) {
                    assert!(i < j && !busy[i] && !busy[j]);
                    (busy[i], busy[j]) = (true, true);
                    seen[i * n + j] += 1;
                }
            }
            for i in 0..n {
                for j in i + 1..n {
                    assert_eq!(seen[i * n + j], 1, "n = {n}: pair ({i}, {j})");
                }
            }
            let first: Vec<[usize; 2]> = order
                .chunks_exact(2)
                .map(|p| [p[0].min(p[1]), p[0].max(p[1])])
                .collect();
            assert_eq!(matching(&order, 0), first);
        }
    }
}
