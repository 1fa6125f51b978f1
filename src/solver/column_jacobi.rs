//! Column moves for `f = ½⟨X, C X W⟩`, W = diag(w) ⪰ 0: the J-Jacobi method in tiles.
//!
//! X(:,{i,k}) ← X(:,{i,k})V keeps K = XᵀJX = diag(κ) when V keeps diag(κ_i, κ_k), and only B = XᵀCX has to
//! be followed. Opposite signs (Veselić, Numer. Math. 64, 1993):
//!
//! ```text
//! tanh 2μ = −2b_ik/(b_ii + b_kk),    b_ii + b_kk ← √((b_ii + b_kk)² − 4b_ik²)
//! ```
//!
//! Equal signs: the rotation that makes b_ik vanish; it leaves the trace alone, but without it the
//! method would converge linearly instead of quadratically. Where w_i ≠ w_k the heavier column
//! takes the smaller eigenvalue. Every pair lowers f or leaves it; at the end B is diagonal and
//! κ_i b_ii are the eigenvalues of JC for square X.
//!
//! Pairs are visited tile by tile, all pairs of two tiles at a time in a small matrix; disjoint
//! tile pairs of a tournament round work in parallel, and their moves are applied as matrix
//! products: 12r³ + 4nr² flops a sweep, almost all of them in products. The result does not depend on
//! the number of threads.

use ndarray::{Array2, ArrayView2, s};

use crate::pair::{MAX_RAPIDITY, RECESSION_TOLERANCE, Recession};
use crate::rows::Rows;
use crate::threads::Threads;
use crate::tournament;

/// Columns per tile.
const TILE: usize = 32;

/// An entry b_ik is rounding, and its pair rests, if it is at most this times √|b_ii b_kk|, or times
/// ‖C‖·‖x_i‖‖x_k‖ (what rounding of XᵀCX amounts to; on the kernel of C it is all there is).
pub(crate) const SKIP: f64 = f64::EPSILON;

/// Largest |tanh 2μ| of one move where b_ii + b_kk ± 2b_ik is zero up to rounding, so that the pair's
/// minimum is at infinity.
const STEEPEST: f64 = 1.0 - 1e-8;

/// What a round did.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Round {
    /// Change of f, at most zero up to rounding.
    pub(crate) change: f64,
    /// Pairs visited.
    pub(crate) visited: u64,
    /// Pairs that moved.
    pub(crate) updates: u64,
    /// Largest |b_ik|/√|b_ii b_kk| that was met.
    pub(crate) off: f64,
    /// A pair of columns along which f is unbounded below; nothing moved after it.
    pub(crate) recession: Option<Recession>,
    /// Whether this was the last round of a sweep.
    pub(crate) last: bool,
}

/// The state of a J-Jacobi sweep.
#[derive(Debug, Clone)]
pub(crate) struct ColumnJacobi {
    /// Xᵀ.
    xt: Array2<f64>,
    /// XᵀCX.
    b: Array2<f64>,
    signs: Vec<f64>,
    weights: Vec<f64>,
    rapidity_bound: Option<f64>,
    /// Size of C: its largest diagonal entry.
    scale: f64,
    round: usize,
}

/// The moves of one pair of tiles.
struct Moves {
    rows: Vec<usize>,
    v: Rows,
    outcome: Round,
}

impl ColumnJacobi {
    /// A sweep from X, with B = XᵀCX, κ = diag(XᵀJX) (±1, or 0 for nothing: such columns rest) and the
    /// weights w; `scale` is the size of C, say its largest diagonal entry.
    pub(crate) fn new(
        x: ArrayView2<'_, f64>,
        b: Array2<f64>,
        signs: Vec<f64>,
        weights: Vec<f64>,
        rapidity_bound: Option<f64>,
        scale: f64,
    ) -> Self {
        Self {
            scale,
            xt: x.t().as_standard_layout().into_owned(),
            b,
            signs,
            weights,
            rapidity_bound,
            round: 0,
        }
    }

    /// The round that is next.
    pub(crate) fn round(&self) -> usize {
        self.round
    }

    /// The same with another round next.
    pub(crate) fn at_round(self, round: usize) -> Self {
        Self { round, ..self }
    }

    /// The longest beginning of this round whose X is `bounded`, as that X; `whole`: the round with all its pairs.
    pub(crate) fn beginning(
        &self,
        whole: &Round,
        bounded: impl Fn(&Array2<f64>) -> bool,
        threads: &Threads,
    ) -> Array2<f64> {
        let (mut found, mut low, mut high) = (self.x(), 0, whole.visited);
        while high - low > 1 {
            let middle = low.midpoint(high);
            let mut part = self.clone();
            part.step(middle, threads);
            let x = part.x();
            if bounded(&x) {
                (found, low) = (x, middle);
            } else {
                high = middle;
            }
        }
        found
    }

    /// X.
    pub(crate) fn x(&self) -> Array2<f64> {
        self.xt.t().as_standard_layout().into_owned()
    }

    /// Pairs of tiles that meet in a round, and the number of rounds; a tile without a partner stands alone.
    fn pairs_of_round(&self) -> (Vec<(usize, Option<usize>)>, usize) {
        let tiles = self.b.nrows().div_ceil(TILE);
        if tiles == 1 {
            return (vec![(0, None)], 1);
        }
        let pairs = tournament::meetings(tiles, self.round)
            .map(|(a, b)| (a, (b < tiles).then_some(b)))
            .collect();
        (pairs, tournament::rounds(tiles))
    }

    /// One round of disjoint tile pairs, in each of them up to `most` pairs of columns.
    pub(crate) fn step(&mut self, most: u64, threads: &Threads) -> Round {
        let (pairs, rounds) = self.pairs_of_round();
        let part = (self.round == 0, most);
        let moves: Vec<Moves> = threads.map(pairs.len(), |k| self.tile_pair(pairs[k], part));
        let mut total = Round::default();
        for m in &moves {
            total.change += m.outcome.change;
            total.visited += m.outcome.visited;
            total.updates += m.outcome.updates;
            total.off = total.off.max(m.outcome.off);
            total.recession = total.recession.or(m.outcome.recession);
        }
        if total.updates > 0 {
            apply(&mut self.xt, &moves, threads);
            apply(&mut self.b, &moves, threads);
            self.b = self.b.t().as_standard_layout().into_owned();
            apply(&mut self.b, &moves, threads);
            // Exactly symmetric, so that rounding cannot build up between the triangles.
            let n = self.b.nrows();
            for i in 0..n {
                for k in 0..i {
                    self.b[[i, k]] = self.b[[k, i]];
                }
            }
        }
        self.round += 1;
        total.last = self.round == rounds;
        if total.last {
            self.round = 0;
        }
        total
    }

    /// Pairs of columns of two tiles, up to `most`; also those of one tile if `within`.
    fn tile_pair(
        &self,
        (first, second): (usize, Option<usize>),
        (within, most): (bool, u64),
    ) -> Moves {
        let r = self.b.nrows();
        let span = |t: usize| t * TILE..((t + 1) * TILE).min(r);
        let mut rows: Vec<usize> = span(first).collect();
        let lead = rows.len();
        rows.extend(second.into_iter().flat_map(span));
        let w = rows.len();
        let mut local = Local {
            b: Array2::from_shape_fn((w, w), |(i, k)| self.b[[rows[i], rows[k]]]).into(),
            v: Array2::eye(w).into(),
            noise: rows
                .iter()
                .map(|&k| {
                    let row = self.xt.row(k);
                    (self.scale * row.dot(&row)).sqrt()
                })
                .collect(),
        };
        let mut outcome = Round::default();
        'sweep: for i in 0..w {
            let from = if within || i >= lead { i + 1 } else { lead };
            let to = if within || i < lead { w } else { i + 1 };
            for k in from..to {
                if outcome.visited == most {
                    break 'sweep;
                }
                outcome.visited += 1;
                let (p, q) = (rows[i], rows[k]);
                let signs = (self.signs[p], self.signs[q]);
                let weights = (self.weights[p], self.weights[q]);
                if signs.0 == 0.0 || signs.1 == 0.0 {
                    continue;
                }
                let (bi, bk, o) = local.entries(i, k);
                if !local.rests(i, k) {
                    outcome.off = outcome.off.max(o.abs() / (bi * bk).abs().sqrt());
                }
                let moved = if signs.0 == signs.1 {
                    Ok(local.rotate(i, k, weights))
                } else {
                    local.boost(i, k, weights, self.rapidity_bound)
                };
                match moved {
                    Ok(None) => {}
                    Ok(Some(change)) => {
                        outcome.change += change;
                        outcome.updates += 1;
                    }
                    Err(upwards) => {
                        outcome.recession = Some(Recession {
                            pair: (p, q),
                            columns: true,
                            signs: [1.0, 1.0],
                            upwards,
                        });
                        break 'sweep;
                    }
                }
            }
        }
        Moves {
            rows,
            v: local.v,
            outcome,
        }
    }
}

/// Rows `rows` of `a` ← V · rows, for all moves.
fn apply(a: &mut Array2<f64>, moves: &[Moves], threads: &Threads) {
    let source = a.view();
    let products = threads.map(moves.len(), |k| {
        let m = &moves[k];
        if m.outcome.updates == 0 {
            return None;
        }
        let mut panel = Array2::<f64>::zeros((m.rows.len(), source.ncols()));
        for (mut target, &row) in panel.outer_iter_mut().zip(&m.rows) {
            target.assign(&source.row(row));
        }
        Some(m.v.dot(&panel))
    });
    for (m, product) in moves.iter().zip(products) {
        if let Some(product) = product {
            for (k, &row) in m.rows.iter().enumerate() {
                a.row_mut(row).assign(&product.slice(s![k, ..]));
            }
        }
    }
}

/// The small matrix of two tiles, and the moves so far.
struct Local {
    b: Rows,
    v: Rows,
    /// √(‖C‖)·‖x_k‖: ε times the product of two of them is rounding of their entry of b.
    noise: Vec<f64>,
}

/// Rows i, k of a ← [[a00, a01], [a10, a11]] · rows.
#[inline(always)]
fn turn_rows(a: &mut Rows, i: usize, k: usize, t: [[f64; 2]; 2]) {
    let w = a.ncols();
    let (head, tail) = a.entries_mut().split_at_mut(k * w);
    let (x, y) = (&mut head[i * w..(i + 1) * w], &mut tail[..w]);
    for (x, y) in x.iter_mut().zip(y) {
        let (p, q) = (*x, *y);
        *x = t[0][0] * p + t[0][1] * q;
        *y = t[1][0] * p + t[1][1] * q;
    }
}

impl Local {
    /// B ← T B Tᵀ, V ← T V for T acting on rows i < k.
    #[inline(always)]
    fn turn(&mut self, i: usize, k: usize, t: [[f64; 2]; 2]) {
        turn_rows(&mut self.b, i, k, t);
        let w = self.b.ncols();
        for row in self.b.entries_mut().chunks_exact_mut(w) {
            let (p, q) = (row[i], row[k]);
            row[i] = t[0][0] * p + t[0][1] * q;
            row[k] = t[1][0] * p + t[1][1] * q;
        }
        turn_rows(&mut self.v, i, k, t);
        let (p, q) = (self.noise[i], self.noise[k]);
        self.noise[i] = t[0][0].abs() * p + t[0][1].abs() * q;
        self.noise[k] = t[1][0].abs() * p + t[1][1].abs() * q;
    }

    /// Whether b_ik is rounding.
    #[inline(always)]
    fn rests(&self, i: usize, k: usize) -> bool {
        let (bi, bk, o) = self.entries(i, k);
        o.abs() <= SKIP * (bi * bk).abs().sqrt().max(self.noise[i] * self.noise[k])
    }

    #[inline(always)]
    fn entries(&self, i: usize, k: usize) -> (f64, f64, f64) {
        (self.b[[i, i]], self.b[[k, k]], self.b[[i, k]])
    }

    /// Equal signs: b_ik vanishes. Returns the change of f if the pair moves.
    #[inline(always)]
    fn rotate(&mut self, i: usize, k: usize, weights: (f64, f64)) -> Option<f64> {
        let (bi, bk, o) = self.entries(i, k);
        let rests = self.rests(i, k);
        // The heavier column is to have the smaller eigenvalue.
        let swapped = (weights.0 - weights.1) * (bi - bk) > 0.0
            && (bi - bk).abs() > f64::EPSILON * (bi.abs() + bk.abs());
        if rests {
            if !swapped {
                return None;
            }
            self.turn(i, k, [[0.0, 1.0], [-1.0, 0.0]]);
            return Some(0.5 * (weights.0 - weights.1) * (bk - bi));
        }
        let tau = (bk - bi) / (2.0 * o);
        let mut t = 1.0 / (tau.abs() + tau.hypot(1.0));
        if tau < 0.0 {
            t = -t;
        }
        let shift = t * o;
        let c = 1.0 / t.hypot(1.0);
        let s = t * c;
        let (matrix, new_i) = if swapped {
            ([[s, c], [-c, s]], bk + shift)
        } else {
            ([[c, -s], [s, c]], bi - shift)
        };
        self.turn(i, k, matrix);
        let new_k = bi + bk - new_i;
        (self.b[[i, i]], self.b[[k, k]]) = (new_i, new_k);
        (self.b[[i, k]], self.b[[k, i]]) = (0.0, 0.0);
        Some(0.5 * (weights.0 - weights.1) * (new_i - bi))
    }

    /// Opposite signs. Returns the change of f if the pair moves, and the direction if f is
    /// unbounded along it.
    #[inline(always)]
    fn boost(
        &mut self,
        i: usize,
        k: usize,
        weights: (f64, f64),
        rapidity_bound: Option<f64>,
    ) -> Result<Option<f64>, bool> {
        let (bi, bk, o) = self.entries(i, k);
        let weight = weights.0 + weights.1;
        let (d, h) = (bi + bk, 2.0 * o);
        let noise = self.noise[i] * self.noise[i] + self.noise[k] * self.noise[k];
        let size = (bi.abs() + bk.abs() + h.abs()).max(noise);
        if rapidity_bound.is_none() && weight > 0.0 {
            if d + h < -RECESSION_TOLERANCE * size {
                return Err(true);
            }
            if d - h < -RECESSION_TOLERANCE * size {
                return Err(false);
            }
        }
        if self.rests(i, k) && (d >= 0.0 || rapidity_bound.is_none()) {
            return Ok(None);
        }
        let limit = rapidity_bound.unwrap_or(MAX_RAPIDITY);
        let attained = d > 0.0 && h.abs() < STEEPEST * d;
        let (mut cosh, mut sinh) = if attained {
            let root = ((d - h) * (d + h)).sqrt();
            let cosh = ((d + root) / (2.0 * root)).sqrt();
            (cosh, -h / (d + root) * cosh)
        } else if rapidity_bound.is_some() {
            // Down to the bound, on the side where f falls.
            let side = if h > 0.0 { -1.0 } else { 1.0 };
            (limit.cosh(), side * limit.sinh())
        } else if d > 0.0 {
            let mu = -0.5 * (STEEPEST * h.signum()).atanh();
            (mu.cosh(), mu.sinh())
        } else {
            return Ok(None);
        };
        if sinh.abs() > limit.sinh() {
            (cosh, sinh) = (limit.cosh(), limit.sinh() * sinh.signum());
        }
        // ½[(d cosh2μ + h sinh2μ) − d]
        let grown = if attained && sinh.abs() < limit.sinh() {
            -h * h / (d + ((d - h) * (d + h)).sqrt())
        } else {
            2.0 * sinh * (d * sinh + h * cosh)
        };
        if weight == 0.0 && !attained || grown >= 0.0 {
            return Ok(None);
        }
        let (new_i, new_k) = (bi + 0.5 * grown, bk + 0.5 * grown);
        self.turn(i, k, [[cosh, sinh], [sinh, cosh]]);
        (self.b[[i, i]], self.b[[k, k]]) = (new_i, new_k);
        if attained && sinh.abs() < limit.sinh() {
            (self.b[[i, k]], self.b[[k, i]]) = (0.0, 0.0);
        }
        Ok(Some(0.25 * weight * grown))
    }
}
