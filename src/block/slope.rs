//! One pair of rows along its rotation or boost, known by its slope alone.

use ndarray::{Array2, Zip, s};

use super::{Block, Curvature, Outcome, PairOptions, Pairs, Sweep};
use crate::pair::Scratch;
use crate::penalty::NoPenalty;
use crate::signature::Signature;

/// Pairs whose model is `½ K (E₁₂ ∓ E₂₁) + w/2 ‖E‖²`, E = V − I, − for rotations and + for boosts: K is the
/// slope along the rotation or boost at V = I, and no move is as good as about K/(2w).
pub(crate) struct SlopePairs {
    signature: Signature,
    /// Rows e₁ and e₂ of the pair at hand: ⟨EX, G⟩ = ⟨E, GXᵀ⟩ is a problem with two columns.
    unit: Array2<f64>,
    block: Block,
    scratch: Scratch,
}

impl SlopePairs {
    /// Of rows of these signs, with |μ| of a move at most `rapidity_bound`.
    pub(crate) fn new(signature: &Signature, rapidity_bound: f64) -> Self {
        let mut block = Block::new(2);
        block.set_signature(signature, Some(rapidity_bound));
        Self {
            signature: signature.clone(),
            unit: Array2::zeros((signature.len(), 2)),
            block,
            scratch: Scratch::new(2),
        }
    }

    /// Moves rows i and j of `x` to the global minimum for slope K and weight w. It costs O(n).
    pub(crate) fn turn(
        &mut self,
        x: &mut Array2<f64>,
        [i, j]: [usize; 2],
        slope: f64,
        weight: f64,
    ) -> Outcome {
        let sign = self.signature.sign(i) * self.signature.sign(j);
        self.unit[[i, 0]] = 1.0;
        self.unit[[j, 1]] = 1.0;
        self.block.load(self.unit.view(), &[i], &[j]);
        self.unit[[i, 0]] = 0.0;
        self.unit[[j, 1]] = 0.0;
        self.block.curvature_mut().fill(0.0);
        self.block.gradient_row_mut(0)[..2].copy_from_slice(&[0.0, 0.5 * slope]);
        self.block.gradient_row_mut(1)[..2].copy_from_slice(&[-0.5 * sign * slope, 0.0]);
        let outcome = crate::simd::arch().dispatch(Sweep {
            block: &mut self.block,
            pairs: Pairs::Cross,
            penalty: &NoPenalty,
            options: PairOptions {
                curvature: Curvature::Exact,
                proximal: weight,
                metric: None,
            },
            scratch: &mut self.scratch,
        });
        if outcome.updates > 0 {
            let v = [self.block.row(0), self.block.row(1)];
            turn_rows(x, i, j, [[v[0][0], v[0][1]], [v[1][0], v[1][1]]]);
        }
        outcome
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
