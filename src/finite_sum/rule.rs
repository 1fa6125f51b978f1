//! Which curvature the pair models of a Jacobi round take.

use ndarray::{Array2, ArrayView2, Zip, s};

use crate::Curvature;
use crate::block::{Block, PairOptions, Pairs, Sweep};
use crate::pair::Scratch;
use crate::penalty::NoPenalty;
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
    /// Every pair (i, j) has the linear model of its slope along its rotation or boost alone, K_ij, averaged over
    /// the iterations (`M_ij ← 0.9 M_ij + 0.1 K_ij`), and the proximal weight `√(k S_ij) / (2·step)`,
    /// `S_ij ← 0.99 S_ij + 0.01 K_ij²` (both unbiased: Adam of Kingma and Ba, ICLR 2015, in the
    /// coordinates of the Lie algebra, its step taken by globally optimal pair solves). All slopes of an
    /// iteration are those where it began. With `max_time` or `max_evaluations` the step falls linearly, to
    /// 0 where the budget ends. With [`Side::Both`](crate::solver::Side) the rows of equal sign and all
    /// columns move in one iteration. Needs no Lipschitz constant; not with a penalty. F may rise; where
    /// it rises above F at the start, the best point is taken up again with half the step.
    Accumulated {
        /// ‖ΔX‖/‖X‖ of the first iteration, roughly: with k matchings the first angle or rapidity of a pair is
        /// step/√k.
        step: f64,
    },
}

/// Weights of the past in the mean slopes and squared slopes of [`CurvatureRule::Accumulated`].
const MOMENTS: [f64; 2] = [0.9, 0.99];

/// Moves of rows by [`CurvatureRule::Accumulated`].
pub(crate) struct AccumulatedMoves {
    /// M_ij and S_ij, i < j, before they are made unbiased.
    moments: [Array2<f64>; 2],
    /// Their weights 1 − MOMENTS^t after t observations.
    weights: [f64; 2],
    signature: Signature,
    /// Rows e₁ and e₂ of the pair at hand: ⟨EX, G⟩ = ⟨E, GXᵀ⟩ is a problem with two columns.
    unit: Array2<f64>,
    block: Block,
    scratch: Scratch,
    /// Pairs visited, and moved.
    pub(crate) visited: u64,
    pub(crate) updates: u64,
}

impl AccumulatedMoves {
    pub(crate) fn new(signature: &Signature, rapidity_bound: f64) -> Self {
        let n = signature.len();
        let mut block = Block::new(2);
        block.set_signature(signature, Some(rapidity_bound));
        Self {
            moments: [Array2::zeros((n, n)), Array2::zeros((n, n))],
            weights: [0.0; 2],
            signature: signature.clone(),
            unit: Array2::zeros((n, 2)),
            block,
            scratch: Scratch::new(2),
            visited: 0,
            updates: 0,
        }
    }

    /// Forgets the mean slopes, not the mean squares.
    pub(crate) fn stop(&mut self) {
        self.moments[0].fill(0.0);
        self.weights[0] = 0.0;
    }

    /// Takes in the slopes K = GXᵀ − J(GXᵀ)ᵀJ at `x`.
    pub(crate) fn observe(&mut self, x: ArrayView2<'_, f64>, gradient: ArrayView2<'_, f64>) {
        let image = gradient.dot(&x.t());
        let n = image.nrows();
        let largest = image.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        for (weight, past) in self.weights.iter_mut().zip(MOMENTS) {
            *weight = past * *weight + (1.0 - past);
        }
        for i in 0..n {
            for j in i + 1..n {
                let sign = self.signature.sign(i) * self.signature.sign(j);
                let slope = image[[i, j]] - sign * image[[j, i]];
                let slope = if slope.abs() > FLAT * largest {
                    slope
                } else {
                    0.0
                };
                let powers = [slope, slope * slope];
                for ((moment, past), power) in self.moments.iter_mut().zip(MOMENTS).zip(powers) {
                    moment[[i, j]] = past * moment[[i, j]] + (1.0 - past) * power;
                }
            }
        }
    }

    /// Moves the rows of `x` by the first `rounds` matchings of the tournament among `order`, only pairs of
    /// equal sign if `rotations`. A pair costs O(n).
    pub(crate) fn turn(
        &mut self,
        x: &mut Array2<f64>,
        (order, rounds): (&[usize], usize),
        (step, theta): (f64, f64),
        rotations: bool,
    ) {
        let n = order.len();
        let rounds = rounds.min(n + n % 2 - 1);
        let angle = step / (rounds as f64).sqrt();
        let arch = pulp::Arch::new();
        for round in 0..rounds {
            for [i, j] in matching(order, round) {
                let sign = self.signature.sign(i) * self.signature.sign(j);
                if rotations && sign < 0.0 {
                    continue;
                }
                self.visited += 1;
                let slope = self.moments[0][[i, j]] / self.weights[0];
                let size = (self.moments[1][[i, j]] / self.weights[1]).sqrt();
                if slope == 0.0 || size == 0.0 {
                    continue;
                }
                self.unit[[i, 0]] = 1.0;
                self.unit[[j, 1]] = 1.0;
                self.block.load(self.unit.view(), &[i], &[j]);
                self.unit[[i, 0]] = 0.0;
                self.unit[[j, 1]] = 0.0;
                self.block.curvature_mut().fill(0.0);
                self.block.gradient_row_mut(0)[..2].copy_from_slice(&[0.0, 0.5 * slope]);
                self.block.gradient_row_mut(1)[..2].copy_from_slice(&[-0.5 * sign * slope, 0.0]);
                let outcome = arch.dispatch(Sweep {
                    block: &mut self.block,
                    pairs: Pairs::Cross,
                    penalty: &NoPenalty,
                    options: PairOptions {
                        curvature: Curvature::Exact,
                        alpha: size * (theta + 1.0 / (2.0 * angle)),
                        metric: None,
                    },
                    scratch: &mut self.scratch,
                });
                if outcome.updates == 0 {
                    continue;
                }
                self.updates += outcome.updates;
                let v = [self.block.row(0), self.block.row(1)];
                turn_rows(x, i, j, [[v[0][0], v[0][1]], [v[1][0], v[1][1]]]);
            }
        }
    }
}

/// Rows i and j of `a` become V times them.
fn turn_rows(a: &mut Array2<f64>, i: usize, j: usize, v: [[f64; 2]; 2]) {
    let (mut upper, mut lower) = a.multi_slice_mut((s![i, ..], s![j, ..]));
    Zip::from(&mut upper).and(&mut lower).for_each(|x, y| {
        let (old_x, old_y) = (*x, *y);
        *x = v[0][0] * old_x + v[0][1] * old_y;
        *y = v[1][0] * old_x + v[1][1] * old_y;
    });
}

/// Size, relative to the largest entry of GXᵀ, up to which a slope is rounding.
const FLAT: f64 = 1e-11;

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
