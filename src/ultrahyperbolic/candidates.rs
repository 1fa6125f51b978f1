//! Loss and derivatives of one place of a batch of triples, against all candidates for the place.
//!
//! A triple with one place open is a *query*: a vector q, so that a candidate e has the score
//! `x = −d(⟨q, E_e⟩)² + bias of e + bias of the given entity + δ`. The queries of a batch share their
//! candidates, so all inner products are one matrix product. With `F = ∂L/∂⟨q, E⟩` the derivatives are also
//! one: `F E` with respect to the queries, `Fᵀq` with respect to the candidates.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, Axis, s};

use super::distances::{Measure, Query};
use crate::Threads;
use crate::internal::{PANEL, PIECE, Rows, rows_of, simd};

/// Queries of a batch with the same place open, and the candidates.
pub(super) struct Queries<'a> {
    /// q, a row each.
    pub(super) vectors: &'a Rows,
    /// True candidate of each query, and its given entity.
    pub(super) targets: &'a [usize],
    pub(super) given: &'a [usize],
    /// Bias of the given entity plus δ.
    pub(super) offsets: Vec<f64>,
    /// Points of the candidates, a row each.
    pub(super) points: ArrayView2<'a, f64>,
    /// Biases of the candidates.
    pub(super) biases: Vec<f64>,
    /// Number of entities that each candidate stands for.
    pub(super) weights: &'a [f64],
    pub(super) radius: f64,
    pub(super) measure: Measure,
    /// Factor of the loss.
    pub(super) weight: f64,
}

/// Derivatives of the loss of all queries.
pub(super) struct Derivatives {
    pub(super) loss: f64,
    /// With respect to q.
    pub(super) queries: Rows,
    /// With respect to the bias of the given entity.
    pub(super) offsets: Vec<f64>,
    /// With respect to E of the candidates.
    pub(super) candidates: Rows,
    /// With respect to the biases of the candidates.
    pub(super) biases: Vec<f64>,
}

/// Derivatives of some queries; `factors` is F.
struct Piece {
    factors: Rows,
    queries: Array2<f64>,
    offsets: Vec<f64>,
    biases: Vec<f64>,
    loss: f64,
}

impl Queries<'_> {
    fn piece(&self, from: usize) -> Piece {
        let to = (from + PIECE).min(self.targets.len());
        let count = self.points.nrows();
        let vectors = self.vectors.slice(s![from..to, ..]);
        let mut scores = Rows::from(vectors.dot(&self.points.t()));
        let mut factors = Rows::zeros((to - from, count));
        let (mut biases, mut offsets) = (vec![0.0; count], Vec::with_capacity(to - from));
        let mut loss = 0.0;
        for i in 0..to - from {
            let (value, offset) = simd::arch().dispatch(Query {
                scores: scores.row_slice_mut(i),
                factors: factors.row_slice_mut(i),
                biases: &self.biases,
                weights: self.weights,
                offset: self.offsets[from + i],
                target: self.targets[from + i],
                given: self.given[from + i],
                radius: self.radius,
                measure: self.measure,
                weight: self.weight,
            });
            loss += value;
            offsets.push(offset);
            for (sum, &d) in biases.iter_mut().zip(scores.row_slice(i)) {
                *sum += d;
            }
        }
        let queries = factors.dot(&self.points);
        Piece { factors, queries, offsets, biases, loss }
    }

    /// Computes loss and derivatives.
    pub(super) fn derivatives(&self, threads: &Threads) -> Derivatives {
        let (count, n) = self.vectors.dim();
        let candidates = self.points.nrows();
        let pieces = threads.map(count.div_ceil(PIECE), |k| self.piece(k * PIECE));
        let mut out = Derivatives {
            loss: pieces.iter().map(|piece| piece.loss).sum(),
            queries: Rows::zeros((count, n)),
            offsets: Vec::with_capacity(count),
            candidates: Rows::zeros((candidates, n)),
            biases: vec![0.0; candidates],
        };
        let mut queries = out.queries.view_mut();
        for (piece, mut rows) in pieces.iter().zip(queries.axis_chunks_iter_mut(Axis(0), PIECE)) {
            rows.assign(&piece.queries);
            out.offsets.extend(&piece.offsets);
            for (sum, &d) in out.biases.iter_mut().zip(&piece.biases) {
                *sum += d;
            }
        }
        let work = count * candidates * n;
        let entries = out.candidates.entries_mut();
        threads.for_chunks(entries, PANEL * n, work, |k, rows| {
            let mut sum = rows_of(rows, n);
            let columns = s![.., k * PANEL..k * PANEL + sum.nrows()];
            let vectors = self.vectors.axis_chunks_iter(Axis(0), PIECE);
            for (piece, vectors) in pieces.iter().zip(vectors) {
                general_mat_mul(1.0, &piece.factors.slice(columns).t(), &vectors, 1.0, &mut sum);
            }
        });
        out
    }
}
