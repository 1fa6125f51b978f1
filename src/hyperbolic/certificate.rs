//! Stationarity under XᵀJX = K: the residual of the first-order condition, and what the best
//! single pair can still gain.
//!
//! For square J-orthogonal X and smooth f the condition is G = JXGᵀXJ, equivalently XGᵀJ symmetric
//! (JOBCD paper, Lemma 3.1). `dist(0, ∂f°) ≤ ½‖G − JXGᵀXJ‖` (SPEC erratum 19).

use ndarray::{Array2, ArrayView2};

use crate::block::{Block, PairOptions};
use crate::manifold::signed;
use crate::pair::Scratch;
use crate::penalty::Penalty;
use crate::problem::Problem;
use crate::signature::Signature;
use crate::solver::column_pairs_gap;
use crate::threads::Threads;

/// The most one pair can lower the objective.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Gap {
    /// The decrease, at least zero; infinite if a pair is unbounded below, NaN if X does not fit the
    /// problem.
    pub decrease: f64,
    /// The pair of rows, or of columns.
    pub pair: Option<(usize, usize)>,
    /// Pairs looked at.
    pub pairs: u64,
}

/// ‖G − J X Gᵀ X K‖_F for G = ∇f(X) and K = XᵀJX: zero exactly at the critical points of a smooth f.
///
/// X is square and K = J (JOBCD paper, Lemma 3.1), or the signature is all +1 and K = I (OBCD
/// paper, `G = XGᵀX`). NaN for a gradient of another shape than X.
pub fn stationarity(
    x: ArrayView2<'_, f64>,
    gradient: ArrayView2<'_, f64>,
    signature: &Signature,
) -> f64 {
    if gradient.dim() != x.dim() {
        return f64::NAN;
    }
    let product = signed(x, signature).dot(&gradient.t()).dot(&x);
    let sign = |k: usize| {
        if signature.is_definite() {
            signature.sign(0)
        } else {
            signature.sign(k)
        }
    };
    product
        .indexed_iter()
        .map(|((i, k), &value)| (gradient[[i, k]] - value * sign(k)).powi(2))
        .sum::<f64>()
        .sqrt()
}

/// The largest decrease that any single pair of rows can make, every pair solved to global
/// optimality without proximal term. O(n²(r + pair solve)).
pub fn row_gap<P: Penalty>(
    problem: &Problem<'_, P>,
    x: ArrayView2<'_, f64>,
    threads: &Threads,
) -> Gap {
    if x.dim() != (problem.smooth.rows(), problem.components) {
        return Gap {
            decrease: f64::NAN,
            ..Gap::default()
        };
    }
    let n = x.nrows();
    let options = PairOptions {
        curvature: crate::Curvature::Exact,
        alpha: 0.0,
        metric: problem.smooth.metric(),
        floor: 0.0,
    };
    let mut tracker = problem.smooth.tracker(x, threads);
    let mut gap = Gap::default();
    let mut scratch = Scratch::new(x.ncols());
    let mut block = Block::new(x.ncols());
    block.set_signature(problem.signature, None);
    let arch = crate::simd::arch();
    for i in 0..n {
        for j in i + 1..n {
            block.load(x, &[i], &[j]);
            tracker.fill(&mut block);
            let outcome = arch.dispatch(crate::block::Sweep {
                block: &mut block,
                pairs: crate::block::Pairs::Cross,
                penalty: problem.penalty,
                options,
                scratch: &mut scratch,
            });
            let decrease = if block.recession().is_some() {
                f64::INFINITY
            } else {
                -outcome.change
            };
            gap.pairs += 1;
            if decrease > gap.decrease {
                gap.decrease = decrease;
                gap.pair = Some((i, j));
            }
        }
    }
    gap
}

/// The largest decrease that any single pair of columns can make; `None` where columns do not move
/// (a column metric other than the identity, or XᵀJX not diag(±1)) or X does not fit the problem.
pub fn column_gap<P: Penalty>(
    problem: &Problem<'_, P>,
    x: &Array2<f64>,
    threads: &Threads,
) -> Option<Gap> {
    if x.dim() != (problem.smooth.rows(), problem.components) {
        return None;
    }
    column_pairs_gap(problem, x, threads)
}
