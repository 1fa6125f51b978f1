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
    /// The proximal weight of the pair (i, j) is `√(S_ij + S̄)·√((n−1)/2) / step`, `S_ij = Σ_t K_ij²` with the
    /// slope K_ij of the linear model along the pair's rotation or boost in iteration t, S̄ its mean over
    /// all pairs (Adagrad of Duchi, Hazan and Singer, JMLR 2011, in the coordinates of the Lie
    /// algebra). Needs no Lipschitz constant; not with a penalty. F may rise; where it rises above F
    /// at the start, the best point is taken up again with half the step.
    Accumulated {
        /// Length of the first iteration's move if all pairs move, relative to ‖I‖_F = √n, roughly.
        step: f64,
    },
}

/// Moves of rows along the linear model `⟨G, ·⟩` with the weights of [`CurvatureRule::Accumulated`].
pub(crate) struct AccumulatedMoves {
    /// Σ_t K_ij² of all pairs.
    sums: Array2<f64>,
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
            sums: Array2::zeros((n, n)),
            signature: signature.clone(),
            unit: Array2::zeros((n, 2)),
            block,
            scratch: Scratch::new(2),
            visited: 0,
            updates: 0,
        }
    }

    /// Adds the slopes K = GXᵀ − J(GXᵀ)ᵀJ of the entries of `image` = XGᵀ.
    fn observe(&mut self, image: &Array2<f64>) {
        let n = image.nrows();
        let largest = image.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        for i in 0..n {
            for j in 0..i {
                let sign = self.signature.sign(i) * self.signature.sign(j);
                let slope = image[[j, i]] - sign * image[[i, j]];
                if slope.abs() > FLAT * largest {
                    self.sums[[i, j]] += slope * slope;
                }
            }
        }
    }

    /// Moves the rows of `x` by the first `rounds` matchings of the tournament among `order`, each on the
    /// model as the ones before have left it. A pair costs O(n): XGᵀ turns with the rows of X.
    pub(crate) fn turn(
        &mut self,
        x: &mut Array2<f64>,
        gradient: ArrayView2<'_, f64>,
        (order, rounds): (&[usize], usize),
        (step, theta): (f64, f64),
    ) {
        let n = order.len();
        let mut image = x.dot(&gradient.t());
        self.observe(&image);
        let spread = 0.5 * (n - 1) as f64;
        let mean = self.sums.sum() / (spread * n as f64);
        let arch = pulp::Arch::new();
        for round in 0..rounds.min(n + n % 2 - 1) {
            for [i, j] in matching(order, round) {
                self.visited += 1;
                let sum = self.sums[[j, i]];
                if sum == 0.0 {
                    continue;
                }
                self.unit[[i, 0]] = 1.0;
                self.unit[[j, 1]] = 1.0;
                self.block.load(self.unit.view(), &[i], &[j]);
                self.unit[[i, 0]] = 0.0;
                self.unit[[j, 1]] = 0.0;
                self.block.curvature_mut().fill(0.0);
                for (k, row) in [i, j].into_iter().enumerate() {
                    let target = self.block.gradient_row_mut(k);
                    target[0] = image[[i, row]];
                    target[1] = image[[j, row]];
                }
                let outcome = arch.dispatch(Sweep {
                    block: &mut self.block,
                    pairs: Pairs::Cross,
                    penalty: &NoPenalty,
                    options: PairOptions {
                        curvature: Curvature::Exact,
                        alpha: theta + ((sum + mean) * spread).sqrt() / step,
                        metric: None,
                    },
                    scratch: &mut self.scratch,
                });
                if outcome.updates == 0 {
                    continue;
                }
                self.updates += outcome.updates;
                let v = [self.block.row(0), self.block.row(1)];
                let v = [[v[0][0], v[0][1]], [v[1][0], v[1][1]]];
                turn_rows(x, i, j, v);
                turn_rows(&mut image, i, j, v);
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
