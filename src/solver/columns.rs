//! The column side of the loop: which method applies, and its sweeps.

use ndarray::{Array2, ArrayView2};

use super::verify::Stage;
use super::{Side, State};
use crate::block::{Block, ColumnSweep, Outcome};
use crate::error::{Error, Result};
use crate::hyperbolic::{ColumnJacobi, Gap, trace_gap};
use crate::manifold;
use crate::objective::QuadraticForm;
use crate::pair::Scratch;
use crate::penalty::Penalty;
use crate::problem::Problem;
use crate::signature::Signature;
use crate::threads::Threads;

/// A side is visited every time unless its last sweep gained less than this share of the other's;
const SMALL_SHARE: f64 = 0.1;

/// then only every so many sweeps.
const SELDOM: u32 = 8;

/// B counts as diagonal after a sweep that met no |b_ik|/√|b_ii b_kk| above this: convergence is quadratic,
/// so what is left is rounding.
const DIAGONAL: f64 = 1e-9;

/// Sweeps, at most, that go on for a diagonal B after the objective has converged (on the kernel
/// of a singular matrix the quotients are rounding noise that never gets small).
const POLISH: u32 = 5;

/// Entries of pairs of columns that are solved between two looks at the clock.
const COLUMN_ENTRIES: usize = 1 << 19;

/// How columns move.
#[derive(Debug, Clone)]
pub(super) enum Method<P> {
    /// J-Jacobi with weights w.
    Trace(Vec<f64>),
    /// Pair solves on Xᵀ under the penalty of Xᵀ.
    Pairs(P),
}

/// The column side of a solve.
pub(super) struct Columns<P> {
    method: Method<P>,
    signs: Vec<f64>,
    sweep: Option<ColumnJacobi>,
    pairs: Option<PairSweep>,
    /// Largest quotient met in this sweep.
    off: f64,
    polished: u32,
    /// Whether the next round starts a sweep.
    fresh: bool,
}

/// A sweep over pairs of columns that is under way.
struct PairSweep {
    /// Xᵀ.
    block: Block,
    linear: Vec<f64>,
    pairs: Vec<(usize, usize)>,
    /// Pairs that are done.
    done: usize,
}

/// All pairs of r columns.
fn all_pairs(r: usize) -> Vec<(usize, usize)> {
    (0..r)
        .flat_map(|i| (i + 1..r).map(move |j| (i, j)))
        .collect()
}

/// How columns move for a problem whose XᵀJX is to stay `k`, or why they cannot.
fn method<P: Penalty>(
    (problem, form): (&Problem<'_, P>, &dyn QuadraticForm),
    k: ArrayView2<'_, f64>,
) -> std::result::Result<(Method<P>, Vec<f64>), &'static str> {
    let Some(signs) = manifold::signs_of(k) else {
        return Err("moves only rows here: columns move only where XᵀJX is diag(±1)");
    };
    if P::SMOOTH
        && let Some(weights) = form.trace_weights(problem.components)
    {
        return Ok((Method::Trace(weights), signs));
    }
    if form.metric().is_some() {
        return Err(
            "moves only rows here: columns move with D = I, or without a penalty and linear term \
             for a diagonal D ≥ 0",
        );
    }
    match problem.penalty.transposed() {
        Some(penalty) => Ok((Method::Pairs(penalty), signs)),
        None => Err("moves only rows here: this penalty does not say what it is for Xᵀ"),
    }
}

impl<P: Penalty> Columns<P> {
    /// The column side if `side` asks for it and the problem allows it.
    pub(super) fn new(
        problem: (&Problem<'_, P>, &dyn QuadraticForm),
        k: ArrayView2<'_, f64>,
        side: Side,
    ) -> Result<Option<Self>> {
        if side == Side::Rows {
            return Ok(None);
        }
        match method(problem, k) {
            Ok((method, signs)) => {
                let idle = matches!(&method, Method::Trace(w) if w.windows(2).all(|p| p[0] == p[1]))
                    && signs.windows(2).all(|p| p[0] == p[1]);
                if idle && side == Side::Both {
                    // Rotations leave the objective alone.
                    return Ok(None);
                }
                Ok(Some(Self {
                    method,
                    signs,
                    sweep: None,
                    pairs: None,
                    off: 0.0,
                    polished: 0,
                    fresh: true,
                }))
            }
            Err(_) if side == Side::Both => Ok(None),
            Err(reason) => Err(Error::invalid("side", reason)),
        }
    }

    /// Whether a critical point of the columns is one of the rows, so that rows need not move.
    pub(super) fn suffice(&self, rows: usize) -> bool {
        matches!(self.method, Method::Trace(_)) && self.signs.len() == rows
    }
}

/// Which side moves next, and what each gained.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// Whether columns are moving.
    pub(super) columns: bool,
    alternate: bool,
    gain: [f64; 2],
    waited: u32,
}

impl Turn {
    pub(super) fn new<P: Penalty>(side: Side, columns: Option<&Columns<P>>, rows: usize) -> Self {
        let alone = columns.is_none_or(|c| side == Side::Columns || c.suffice(rows));
        Self {
            columns: columns.is_some_and(|c| alone || matches!(c.method, Method::Trace(_))),
            alternate: !alone,
            gain: [f64::INFINITY; 2],
            waited: 0,
        }
    }

    /// Whether rows never move.
    pub(super) fn columns_alone(&self) -> bool {
        self.columns && !self.alternate
    }

    /// Lets no side count as settled.
    pub(super) fn begin(&mut self) {
        self.gain = [f64::INFINITY; 2];
        self.waited = 0;
    }

    /// Takes the gain of the sweep that ended; returns whether no side gains any more.
    pub(super) fn end_of_sweep(&mut self, decrease: f64, threshold: f64) -> bool {
        let here = usize::from(self.columns);
        self.gain[here] = decrease;
        if !self.alternate {
            return decrease <= threshold;
        }
        let there = 1 - here;
        if decrease <= threshold {
            if self.gain[there] <= threshold {
                return true;
            }
        } else {
            // What this side changed may have opened something on the other.
            let small = self.gain[there] < SMALL_SHARE * decrease;
            if small && self.waited < SELDOM {
                self.waited += 1;
                if self.gain[there] <= threshold {
                    self.gain[there] = 2.0 * threshold.max(f64::MIN_POSITIVE);
                }
                return false;
            }
        }
        self.waited = 0;
        self.columns = !self.columns;
        false
    }
}

impl<P: Penalty> State<'_, P> {
    /// One step of the column side: a round of a J-Jacobi sweep, or some pairs of a sweep.
    pub(super) fn column_step(&mut self) {
        let Some(mut columns) = self.columns.take() else {
            return;
        };
        let r = self.x.ncols() as u64;
        let n = self.x.nrows() as u64;
        // A sweep of columns counts as one, however few pairs it has.
        let sweep = n * (n - 1) / 2;
        match &columns.method {
            Method::Trace(weights) => {
                let mut jacobi = columns.sweep.take().unwrap_or_else(|| {
                    ColumnJacobi::new(
                        self.x.view(),
                        trace_matrix(self.form, &self.x, self.threads),
                        columns.signs.clone(),
                        weights.clone(),
                        self.options.rapidity_bound,
                        size_of(self.form),
                    )
                });
                let round = jacobi.step(self.threads);
                self.recession = self.recession.or(round.recession);
                self.counts.visited += round.visited;
                if round.updates > 0 {
                    self.x = jacobi.x();
                    self.lower(round.change);
                    self.counts.updates += round.updates;
                    self.stale = true;
                }
                if round.last {
                    self.credit += sweep.saturating_sub(r * (r - 1) / 2);
                } else {
                    columns.sweep = Some(jacobi);
                }
                if columns.fresh {
                    columns.off = round.off;
                } else {
                    columns.off = columns.off.max(round.off);
                }
                columns.fresh = round.last;
            }
            Method::Pairs(penalty) => {
                let mut under_way = columns.pairs.take().unwrap_or_else(|| {
                    let bound = self.options.rapidity_bound;
                    let (block, linear) =
                        column_block(self.form, &self.x, bound, &columns.signs, self.threads);
                    let pairs = all_pairs(self.x.ncols());
                    PairSweep {
                        block,
                        linear,
                        pairs,
                        done: 0,
                    }
                });
                let looks = self.verification.stage == Stage::Look;
                let from = under_way.done;
                let to = from + (COLUMN_ENTRIES / self.x.nrows()).max(1);
                under_way.done = to.min(under_way.pairs.len());
                let mut scratch = Scratch::new(self.x.nrows());
                let (outcome, _) = self.arch.dispatch(ColumnSweep {
                    block: &mut under_way.block,
                    linear: &under_way.linear,
                    penalty,
                    scale: size_of(self.form),
                    alpha: self.alpha,
                    pairs: &under_way.pairs[from..under_way.done],
                    scratch: &mut scratch,
                    best: None,
                    commit: !looks,
                });
                self.recession = self.recession.or(under_way.block.recession());
                self.counts.visited += outcome.visited;
                if looks {
                    if outcome.largest > self.threshold() {
                        self.enter(Stage::Own);
                        self.turn.columns = true;
                        self.columns = Some(columns);
                        return;
                    }
                } else if outcome.updates > 0 {
                    for k in 0..self.x.ncols() {
                        self.x
                            .column_mut(k)
                            .iter_mut()
                            .zip(under_way.block.row(k))
                            .for_each(|(x, &v)| *x = v);
                    }
                    self.lower(outcome.change);
                    self.counts.updates += outcome.updates;
                    self.stale = true;
                }
                if under_way.done == under_way.pairs.len() {
                    self.credit += sweep.saturating_sub(r * (r - 1) / 2);
                } else {
                    columns.pairs = Some(under_way);
                }
            }
        }
        self.columns = Some(columns);
    }

    /// Whether a converged sweep of columns should be followed by another, for the eigenvalues' sake.
    pub(super) fn polishes(&mut self) -> bool {
        let Some(columns) = &mut self.columns else {
            return false;
        };
        if !self.turn.columns || columns.off <= DIAGONAL || columns.polished >= POLISH {
            return false;
        }
        columns.polished += 1;
        true
    }

    /// Forgets a sweep over pairs that is under way: X may move without it.
    pub(super) fn end_column_pairs(&mut self) {
        if let Some(columns) = &mut self.columns {
            columns.pairs = None;
        }
    }

    /// Whether columns move pair by pair. (The J-Jacobi method needs no look: it ends with the
    /// eigenvalues to rounding.)
    pub(super) fn moves_column_pairs(&self) -> bool {
        self.columns
            .as_ref()
            .is_some_and(|c| matches!(c.method, Method::Pairs(_)))
    }

    /// Lets the objective follow what the columns did.
    pub(super) fn refresh_if_stale(&mut self) {
        if self.stale {
            self.tracker.refresh(self.x.view(), self.threads);
            self.stale = false;
            self.block_current = false;
        }
    }
}

/// XᵀCX.
fn trace_matrix(form: &dyn QuadraticForm, x: &Array2<f64>, threads: &Threads) -> Array2<f64> {
    let b = x.t().dot(&form.apply(x.view(), threads));
    (&b + &b.t()) * 0.5
}

/// The largest diagonal entry of C in magnitude.
fn size_of(form: &dyn QuadraticForm) -> f64 {
    form.diagonal().iter().fold(0.0, |m, v| v.abs().max(m))
}

/// Xᵀ with (CX)ᵀ beside it, and linearᵀ padded alike.
fn column_block(
    form: &dyn QuadraticForm,
    x: &Array2<f64>,
    rapidity_bound: Option<f64>,
    signs: &[f64],
    threads: &Threads,
) -> (Block, Vec<f64>) {
    let (n, r) = x.dim();
    let signs: Vec<i8> = signs
        .iter()
        .map(|&s| if s > 0.0 { 1 } else { -1 })
        .collect();
    let mut block = Block::new(n);
    if let Ok(signature) = Signature::new(&signs) {
        block.set_signature(&signature, rapidity_bound);
    }
    let all: Vec<usize> = (0..r).collect();
    block.load(x.t(), &all, &[]);
    if signs.iter().any(|&s| s != signs[0]) {
        let y = form.apply(x.view(), threads);
        for k in 0..r {
            block
                .gradient_row_mut(k)
                .iter_mut()
                .zip(y.column(k))
                .for_each(|(t, &v)| *t = v);
        }
    }
    let stride = block.stride();
    let linear = form.linear().map_or_else(Vec::new, |linear| {
        let mut padded = vec![0.0; r * stride];
        for (target, column) in padded.chunks_exact_mut(stride).zip(linear.columns()) {
            target.iter_mut().zip(column).for_each(|(t, &v)| *t = v);
        }
        padded
    });
    (block, linear)
}

/// The largest decrease that a pair of columns can make; see
/// [`hyperbolic::column_gap`](crate::hyperbolic::column_gap).
pub(crate) fn column_pairs_gap<P: Penalty>(
    (problem, form): (&Problem<'_, P>, &dyn QuadraticForm),
    x: &Array2<f64>,
    threads: &Threads,
) -> Option<Gap> {
    let k = manifold::start_constraint(x.view(), problem.signature);
    let (how, signs) = method((problem, form), k.view()).ok()?;
    let penalty = match how {
        Method::Pairs(penalty) => penalty,
        Method::Trace(weights) => {
            let b = trace_matrix(form, x, threads);
            let size = size_of(form);
            let noise: Vec<f64> = x.columns().into_iter().map(|c| size * c.dot(&c)).collect();
            return Some(trace_gap(b.view(), &signs, &weights, &noise));
        }
    };
    let (mut block, linear) = column_block(form, x, None, &signs, threads);
    let mut scratch = Scratch::new(x.nrows());
    let (outcome, best): (Outcome, _) = crate::simd::arch().dispatch(ColumnSweep {
        block: &mut block,
        linear: &linear,
        penalty: &penalty,
        scale: size_of(form),
        alpha: 0.0,
        pairs: &all_pairs(x.ncols()),
        scratch: &mut scratch,
        best: None,
        commit: false,
    });
    let mut gap = Gap {
        pairs: outcome.visited,
        ..Gap::default()
    };
    if let Some((change, pair)) = best {
        gap.decrease = -change;
        gap.pair = Some(pair);
    }
    if let Some(recession) = block.recession() {
        gap.decrease = f64::INFINITY;
        gap.pair = Some(recession.pair);
    }
    Some(gap)
}
