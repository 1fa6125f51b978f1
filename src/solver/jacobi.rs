//! The Jacobi update: all pairs of a random perfect matching move at once, from one gradient.
//!
//! With L an upper bound on the Hessian's eigenvalues, `f(X⁺) ≤ f(X) + ⟨∇f(X), ΔX⟩ + L/2 ‖ΔX‖²`, and the
//! right-hand side separates into pairs: curvature M = L·I, S = Z Zᵀ (or the scalar ς = L‖Z‖²).
//! The bound of the papers, taken from one pair, ignores the terms between pairs and can ascend
//! (SPEC erratum 10). F is evaluated after the round all the same: should rounding or an estimated
//! L let it rise, the round is taken back and L doubled.

use ndarray::{Array2, ArrayView2};
use rand::seq::SliceRandom;

use super::State;
use crate::block::{Block, Outcome, PairOptions, Pairs, Sweep};
use crate::pair::Scratch;
use crate::penalty::Penalty;

/// Pairs per parallel piece.
const CHUNK_PAIRS: usize = 32;

/// State of the Jacobi update.
pub(super) struct Jacobi {
    bound: f64,
    order: Vec<usize>,
    workers: Vec<Worker>,
}

struct Worker {
    block: Block,
    scratch: Scratch,
    moved: Vec<(usize, Vec<f64>)>,
    outcome: Outcome,
}

impl Jacobi {
    pub(super) fn new(n: usize, r: usize, upper: f64) -> Self {
        Self {
            bound: upper,
            order: (0..n).collect(),
            workers: (0..(n / 2).div_ceil(CHUNK_PAIRS))
                .map(|_| Worker {
                    block: Block::new(r),
                    scratch: Scratch::new(r),
                    moved: Vec::new(),
                    outcome: Outcome::default(),
                })
                .collect(),
        }
    }
}

impl<P: Penalty> State<'_, P> {
    /// One round. An odd row rests.
    pub(super) fn jacobi_round(&mut self, jacobi: &mut Jacobi) {
        jacobi.order.shuffle(&mut self.rng);
        let gradient = self.tracker.gradient(self.threads);
        let options = PairOptions {
            curvature: self.options.curvature,
            alpha: self.options.alpha,
            metric: None,
        };
        let pairs: Vec<[usize; 2]> = jacobi
            .order
            .chunks_exact(2)
            .map(|p| [p[0].min(p[1]), p[0].max(p[1])])
            .collect();
        let (x, penalty, arch, bound) =
            (self.x.view(), self.problem.penalty, self.arch, jacobi.bound);
        let work = pairs.len() * x.ncols() * 64;
        self.threads
            .for_chunks(&mut jacobi.workers, 1, work, |piece, worker| {
                let worker = &mut worker[0];
                worker.moved.clear();
                worker.outcome = Outcome::default();
                let from = piece * CHUNK_PAIRS;
                let to = (from + CHUNK_PAIRS).min(pairs.len());
                for &[i, j] in &pairs[from..to] {
                    worker.visit(x, gradient.view(), [i, j], bound, penalty, options, arch);
                }
            });
        let mut delta = Array2::<f64>::zeros(self.x.dim());
        let mut penalty_change = 0.0;
        let mut outcome = Outcome::default();
        for worker in &jacobi.workers {
            outcome.visited += worker.outcome.visited;
            outcome.updates += worker.outcome.updates;
            for (row, new) in &worker.moved {
                let old = self.x.row(*row);
                for ((d, &new), &old) in delta.row_mut(*row).iter_mut().zip(new).zip(old) {
                    *d = new - old;
                }
                penalty_change += penalty.row_value(*row, new)
                    - old
                        .as_slice()
                        .map_or(0.0, |old| penalty.row_value(*row, old));
            }
        }
        self.counts.visited += outcome.visited;
        if outcome.updates == 0 {
            return;
        }
        let smooth_before = self.tracker.value(self.x.view());
        let before = std::mem::replace(&mut self.x, Array2::zeros((0, 0)));
        let mut after = before.clone();
        for worker in &jacobi.workers {
            for (row, new) in &worker.moved {
                after
                    .row_mut(*row)
                    .iter_mut()
                    .zip(new)
                    .for_each(|(x, &new)| *x = new);
            }
        }
        self.tracker.commit_all(delta.view(), self.threads);
        let change = self.tracker.value(after.view()) - smooth_before + penalty_change;
        if change < 0.0 {
            self.x = after;
            self.objective += change;
            self.counts.updates += outcome.updates;
        } else {
            self.x = before;
            self.tracker.refresh(self.x.view(), self.threads);
            let floor = f64::EPSILON * self.magnitude.max(f64::MIN_POSITIVE);
            jacobi.bound = (2.0 * jacobi.bound).max(floor);
        }
    }
}

impl Worker {
    #[allow(clippy::too_many_arguments)]
    fn visit<P: Penalty>(
        &mut self,
        x: ArrayView2<'_, f64>,
        gradient: ArrayView2<'_, f64>,
        pair: [usize; 2],
        bound: f64,
        penalty: &P,
        options: PairOptions<'_>,
        arch: pulp::Arch,
    ) {
        self.block.load(x, &pair[..1], &pair[1..]);
        self.block
            .curvature_mut()
            .copy_from_slice(&[bound, 0.0, 0.0, bound]);
        for (k, &row) in pair.iter().enumerate() {
            self.block
                .gradient_row_mut(k)
                .iter_mut()
                .zip(gradient.row(row))
                .for_each(|(t, &g)| *t = g);
        }
        let outcome = arch.dispatch(Sweep {
            block: &mut self.block,
            pairs: Pairs::Cross,
            penalty,
            options,
            scratch: &mut self.scratch,
        });
        if outcome.updates > 0 {
            for (k, &row) in pair.iter().enumerate() {
                self.moved.push((row, self.block.row(k).to_vec()));
            }
        }
        self.outcome.absorb(outcome);
    }
}
