//! Column moves for `f = ½⟨X, C X W⟩`, W = diag(w) ⪰ 0: the J-Jacobi method in tiles.
//!
//! X(:,{i,k}) ← X(:,{i,k})V keeps K = XᵀJX = diag(κ) if V keeps diag(κ_i, κ_k). Only B = XᵀCX has to be
//! updated. Opposite signs (Veselić, Numer. Math. 64, 1993):
//!
//! ```text
//! tanh 2μ = −2b_ik/(b_ii + b_kk),    b_ii + b_kk ← √((b_ii + b_kk)² − 4b_ik²)
//! ```
//!
//! Equal signs: the rotation that makes b_ik zero. It does not change the trace, but without it the method
//! would converge linearly instead of quadratically. If w_i ≠ w_k, the column of larger weight takes the
//! smaller eigenvalue. No pair raises f. At the end B is diagonal, and κ_i b_ii are the eigenvalues of JC for
//! square X.
//!
//! Pairs are visited tile by tile, all pairs of two tiles at a time in a small matrix. Disjoint tile pairs of
//! a tournament round work in parallel, and their moves are applied as matrix products: 12r³ + 4nr² flops a
//! sweep, almost all of them in products. The result does not depend on the number of threads.

use ndarray::{Array2, ArrayView2, s};

use crate::pair::{MAX_RAPIDITY, RECESSION_TOLERANCE, Recession};
use crate::rows::Rows;
use crate::threads::Threads;
use crate::tournament;

/// Columns per tile.
const TILE: usize = 32;

/// Largest |tanh 2μ| of one move if b_ii + b_kk ± 2b_ik is zero up to rounding, so that the minimum of the
/// pair is at infinity.
const STEEPEST: f64 = 1.0 - 1e-8;

/// The result of a round.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct JacobiRound {
    /// Change of f, at most zero up to rounding.
    pub(crate) change: f64,
    /// Pairs visited.
    pub(crate) visited: u64,
    /// Pairs that moved.
    pub(crate) updates: u64,
    /// Largest |b_ik|/√|b_ii b_kk| met.
    pub(crate) off: f64,
    /// A pair of columns along which f is unbounded below; nothing moved after it.
    pub(crate) recession: Option<Recession>,
    /// True if this was the last round of a sweep.
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
    /// Largest diagonal entry of C in magnitude.
    scale: f64,
    round: usize,
}

/// The moves of one pair of tiles.
struct Moves {
    rows: Vec<usize>,
    v: Rows,
    outcome: JacobiRound,
}

impl ColumnJacobi {
    /// A sweep from X, with B = XᵀCX, κ = diag(XᵀJX) (±1; columns with 0 do not move) and the weights w;
    /// `scale` is the size of C, such as its largest diagonal entry.
    pub(crate) fn new(
        x: ArrayView2<'_, f64>,
        b: Array2<f64>,
        signs: Vec<f64>,
        weights: Vec<f64>,
        rapidity_bound: Option<f64>,
        scale: f64,
    ) -> Self {
        Self { scale, xt: x.t().as_standard_layout().into_owned(), b, signs, weights, rapidity_bound, round: 0 }
    }

    /// Returns X.
    pub(crate) fn x(&self) -> Array2<f64> {
        self.xt.t().as_standard_layout().into_owned()
    }

    /// Returns the pairs of tiles of a round, and the number of rounds; a tile without a partner is alone.
    fn pairs_of_round(&self) -> (Vec<(usize, Option<usize>)>, usize) {
        let tiles = self.b.nrows().div_ceil(TILE);
        if tiles == 1 {
            return (vec![(0, None)], 1);
        }
        let pairs = tournament::meetings(tiles, self.round).map(|(a, b)| (a, (b < tiles).then_some(b))).collect();
        (pairs, tournament::rounds(tiles))
    }

    /// Runs one round of disjoint tile pairs.
    pub(crate) fn step(&mut self, threads: &Threads) -> JacobiRound {
        let (pairs, rounds) = self.pairs_of_round();
        let within = self.round == 0;
        let moves: Vec<Moves> = threads.map(pairs.len(), |k| self.tile_pair(pairs[k], within));
        let mut total = JacobiRound::default();
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
            // Copy one triangle, so that rounding cannot accumulate between the two.
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

    /// Visits the pairs of columns of two tiles; also those within a tile if `within`.
    fn tile_pair(&self, (first, second): (usize, Option<usize>), within: bool) -> Moves {
        let r = self.b.nrows();
        let span = |t: usize| t * TILE..((t + 1) * TILE).min(r);
        let mut rows: Vec<usize> = span(first).collect();
        let lead = rows.len();
        rows.extend(second.into_iter().flat_map(span));
        let w = rows.len();
        let mut local = TilePair {
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
        let mut outcome = JacobiRound::default();
        'sweep: for i in 0..w {
            let from = if within || i >= lead { i + 1 } else { lead };
            let to = if within || i < lead { w } else { i + 1 };
            for k in from..to {
                outcome.visited += 1;
                let (p, q) = (rows[i], rows[k]);
                let signs = (self.signs[p], self.signs[q]);
                let weights = (self.weights[p], self.weights[q]);
                if signs.0 == 0.0 || signs.1 == 0.0 {
                    continue;
                }
                let (bi, bk, o) = local.entries(i, k);
                if !local.is_rounding(i, k) {
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
                        outcome.recession = Some(Recession { pair: (p, q), columns: true, signs: [1.0, 1.0], upwards });
                        break 'sweep;
                    }
                }
            }
        }
        Moves { rows, v: local.v, outcome }
    }
}

/// Computes rows `rows` of `a` ← V · rows, for all moves.
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

/// The small matrix of two tiles, and the accumulated moves.
struct TilePair {
    b: Rows,
    v: Rows,
    /// √(‖C‖)·‖x_k‖: ε times the product of two of them is the rounding of their entry of b.
    noise: Vec<f64>,
}

/// Computes rows i, k of a ← [[a00, a01], [a10, a11]] · rows.
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

impl TilePair {
    /// Computes B ← T B Tᵀ, V ← T V for T acting on rows i < k.
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

    /// Returns whether b_ik is rounding, so that its pair does not move: |b_ik| is at most ε times √|b_ii b_kk|, or times
    /// ‖C‖·‖x_i‖‖x_k‖ (the rounding of XᵀCX, and all there is on the kernel of C).
    #[inline(always)]
    fn is_rounding(&self, i: usize, k: usize) -> bool {
        let (bi, bk, o) = self.entries(i, k);
        o.abs() <= f64::EPSILON * (bi * bk).abs().sqrt().max(self.noise[i] * self.noise[k])
    }

    #[inline(always)]
    fn entries(&self, i: usize, k: usize) -> (f64, f64, f64) {
        (self.b[[i, i]], self.b[[k, k]], self.b[[i, k]])
    }

    /// Equal signs: makes b_ik zero. Returns the change of f if the pair moves.
    #[inline(always)]
    fn rotate(&mut self, i: usize, k: usize, weights: (f64, f64)) -> Option<f64> {
        let (bi, bk, o) = self.entries(i, k);
        let is_rounding = self.is_rounding(i, k);
        // The column of larger weight gets the smaller eigenvalue.
        let swapped =
            (weights.0 - weights.1) * (bi - bk) > 0.0 && (bi - bk).abs() > f64::EPSILON * (bi.abs() + bk.abs());
        if is_rounding {
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
        let (matrix, new_i) = if swapped { ([[s, c], [-c, s]], bk + shift) } else { ([[c, -s], [s, c]], bi - shift) };
        self.turn(i, k, matrix);
        let new_k = bi + bk - new_i;
        (self.b[[i, i]], self.b[[k, k]]) = (new_i, new_k);
        (self.b[[i, k]], self.b[[k, i]]) = (0.0, 0.0);
        Some(0.5 * (weights.0 - weights.1) * (new_i - bi))
    }

    /// Opposite signs. Returns the change of f if the pair moves; the error is the direction along which f is
    /// unbounded.
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
        if self.is_rounding(i, k) && (d >= 0.0 || rapidity_bound.is_none()) {
            return Ok(None);
        }
        let limit = rapidity_bound.unwrap_or(MAX_RAPIDITY);
        let attained = d > 0.0 && h.abs() < STEEPEST * d;
        let (mut cosh, mut sinh) = if attained {
            let root = ((d - h) * (d + h)).sqrt();
            let cosh = ((d + root) / (2.0 * root)).sqrt();
            (cosh, -h / (d + root) * cosh)
        } else if rapidity_bound.is_some() {
            // Move to the bound, in the direction of decreasing f.
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
