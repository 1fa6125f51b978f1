//! The Jacobi update: all pairs of a random perfect matching move at once, from one gradient.
//!
//! With L an upper bound on the Hessian's eigenvalues, `f(X⁺) ≤ f(X) + ⟨∇f(X), ΔX⟩ + L/2 ‖ΔX‖²`, and the
//! right-hand side separates into pairs: curvature M = L·I, S = Z Zᵀ (or the scalar ς = L‖Z‖²).
//! The bound of the papers, taken from one pair, ignores the terms between pairs and can ascend
//! (SPEC erratum 10). F is evaluated after the round all the same: should rounding or an estimated
//! L let it rise, the round is taken back and L doubled.

use ndarray::{Array2, ArrayView2};
use rand::seq::SliceRandom;

use super::{Options, Problem, State};
use crate::block::{Block, Outcome, PairOptions, Pairs, Sweep};
use crate::pair::Scratch;
use crate::penalty::Penalty;

/// Pairs per parallel piece.
const CHUNK_PAIRS: usize = 32;

/// Adaptive curvature: a round counts if F falls by this share of what the model predicts,
const FAIR_SHARE: f64 = 0.1;
/// and lowers the curvature if it falls by this share,
const GOOD_SHARE: f64 = 0.5;
/// by this factor;
const LOWER: f64 = 0.8;
/// one that does not count raises it by this factor,
const RAISE: f64 = 2.0;
/// within these shares of the safe bound.
const LEAST_SHARE: f64 = 1e-4;

/// State of the Jacobi update.
pub(super) struct Jacobi {
    /// The curvature in use.
    bound: f64,
    /// A curvature that majorises f for certain.
    safe: f64,
    adaptive: bool,
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
    pub(super) fn new<P: Penalty>(
        n: usize,
        r: usize,
        upper: f64,
        problem: &Problem<'_, P>,
        options: &Options,
    ) -> Self {
        let mut block = Block::new(r);
        block.set_signature(problem.signature, options.rapidity_bound);
        Self {
            bound: upper,
            safe: upper,
            adaptive: options.adaptive,
            order: (0..n).collect(),
            workers: (0..(n / 2).div_ceil(CHUNK_PAIRS))
                .map(|_| Worker {
                    block: block.clone(),
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
            alpha: self.alpha,
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
        let mut predicted = 0.0;
        let mut outcome = Outcome::default();
        for worker in &jacobi.workers {
            self.recession = self.recession.or(worker.block.recession());
            predicted += worker.outcome.change;
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
        // Under the safe bound F falls at least by what the model says; under a smaller one a fair
        // share of that is enough, and a good one lowers it further.
        let fair = !jacobi.adaptive || change <= FAIR_SHARE * predicted;
        if change < 0.0 && fair {
            self.x = after;
            self.lower(change);
            self.counts.updates += outcome.updates;
            if jacobi.adaptive && change <= GOOD_SHARE * predicted {
                jacobi.bound = (LOWER * jacobi.bound).max(LEAST_SHARE * jacobi.safe);
            }
        } else if jacobi.adaptive && jacobi.bound < jacobi.safe {
            self.x = before;
            self.tracker.refresh(self.x.view(), self.threads);
            jacobi.bound = (RAISE * jacobi.bound).min(jacobi.safe);
        } else {
            self.x = before;
            self.tracker.refresh(self.x.view(), self.threads);
            let floor = f64::EPSILON * self.magnitude.max(f64::MIN_POSITIVE);
            jacobi.bound += jacobi.bound.abs().max(self.alpha).max(floor);
            jacobi.safe = jacobi.safe.max(jacobi.bound);
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
