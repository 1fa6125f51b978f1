//! The hyperbolic structural probe: distances on the pseudo-hyperboloid that approximate given ones.
//!
//! ```text
//! f(X) = (1/m²) Σ_{i≠j} (d(Q_i, Q_j) − T_ij)²,      Q = φ(DX)
//! ```
//!
//! for data D (m×n), targets T (m×m, symmetric) and a J-orthogonal X (n×n); φ and d are those of
//! [`Pseudohyperboloid`]. (The JOBCD paper has Q = φ(D)X; since X is an isometry, its f is constant.) With
//! `e = d − T`, d′ the slope of d and `H = 2e∘d′/m²` (zero diagonal) the gradient is
//! `Dᵀ·φ′(DX)ᵀ(2HQJ)`.
//!
//! Nothing of size m×m is formed but stored targets: rows are cut into blocks of 128, and every pair of
//! blocks is one piece of work. The pairs are visited in the rounds of a tournament, within which no block
//! appears twice. So the pieces of a round run in parallel, and each adds to its own two blocks of the
//! gradient. The result is the same bit for bit for every number of threads. One gradient costs about m²n
//! multiply-adds and m²/2 logarithms.

use std::sync::Arc;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};

use super::geometry::{Pseudohyperboloid, Radii, unit_distance};
use crate::finite_sum::FiniteSum;
use crate::internal::{CHUNK_ROWS, PANEL, Rows, rows_of, slice_of, tournament};
use crate::objective::{Objective, check_data};
use crate::{Error, Result, Threads};

/// Largest number of entries of stored Euclidean targets; more are computed again each time.
const STORED_TARGETS: usize = 1 << 24;

/// Target distances T.
#[derive(Debug, Clone)]
pub enum Targets {
    /// A symmetric m×m matrix.
    Matrix(Array2<f64>),
    /// Euclidean distances of the rows of D.
    Euclidean,
}

#[derive(Debug)]
struct Data {
    d: Array2<f64>,
    space: Pseudohyperboloid,
    targets: Targets,
}

/// The probe's objective as a sum over rows, `f_i = (1/m) Σ_{j≠i} (d(Q_i, Q_j) − T_ij)²`.
#[derive(Debug, Clone)]
pub struct StructuralProbe {
    data: Arc<Data>,
    scale: f64,
    threads: Threads,
}

/// Y = DX, Q and QJ, with the norms for the derivative of φ.
struct Points {
    y: Rows,
    q: Rows,
    qj: Array2<f64>,
    radii: Vec<Radii>,
}

/// Pair of blocks with its loss and its part of the gradient.
struct Piece {
    blocks: (usize, usize),
    first: Array2<f64>,
    second: Array2<f64>,
    loss: f64,
}

impl StructuralProbe {
    /// Creates the probe for D (m×n) and `scale`·T.
    ///
    /// # Errors
    /// If the largest magnitude of D or T is neither 0 nor in 1e-50 … 1e50, D has fewer than two rows or a
    /// zero row, or T is not finite, symmetric and m×m.
    pub fn new(
        d: Array2<f64>,
        targets: Targets,
        space: Pseudohyperboloid,
        scale: f64,
        threads: Threads,
    ) -> Result<Self> {
        let (m, n) = d.dim();
        if m < 2 || n != space.dim() {
            return Err(Error::invalid(
                "D",
                format!("must have at least 2 rows and {} columns, got shape {:?}", space.dim(), d.dim()),
            ));
        }
        check_data("D", &d)?;
        if let Some(i) = d.outer_iter().position(|row| row.iter().all(|&v| v == 0.0)) {
            return Err(Error::invalid("D", format!("must have no zero row; row {i} is zero")));
        }
        if !(scale.is_finite() && scale > 0.0) {
            return Err(Error::invalid("T_scale", format!("must be positive, got {scale}")));
        }
        if let Targets::Matrix(t) = &targets {
            if t.dim() != (m, m) {
                return Err(Error::invalid("T", format!("must have shape ({m}, {m}), got {:?}", t.dim())));
            }
            check_targets(t)?;
        }
        let d = d.as_standard_layout().into_owned();
        let targets = match targets {
            Targets::Euclidean if m * m <= STORED_TARGETS => {
                let mut t = Array2::zeros((m, m));
                for from in (0..m).step_by(PANEL) {
                    let to = (from + PANEL).min(m);
                    let mut panel = t.slice_mut(s![from..to, ..]);
                    euclidean(d.slice(s![from..to, ..]), d.view(), &mut panel);
                }
                Targets::Matrix(t)
            }
            given => given,
        };
        Ok(Self { data: Arc::new(Data { d, space, targets }), scale, threads })
    }

    /// Returns the same objective computed by other threads; the data are shared.
    pub fn with_threads(&self, threads: Threads) -> Self {
        Self { threads, ..self.clone() }
    }

    /// Returns the same objective for `scale`·T; the data are shared.
    pub fn with_scale(&self, scale: f64) -> Self {
        Self { scale, ..self.clone() }
    }

    /// Returns the factor of T.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    fn samples(&self) -> usize {
        self.data.d.nrows()
    }

    fn fits(&self, x: ArrayView2<'_, f64>) -> bool {
        let n = self.data.space.dim();
        x.dim() == (n, n)
    }

    /// Returns (mean of d(Q_i, Q_j), mean of T_ij) over all pairs at X: their ratio matches the scale of T.
    /// NaN for X of another shape than n×n.
    pub fn mean_distances(&self, x: ArrayView2<'_, f64>) -> (f64, f64) {
        if !self.fits(x) {
            return (f64::NAN, f64::NAN);
        }
        let points = self.points(x);
        let m = self.samples();
        let blocks = m.div_ceil(PANEL);
        let sums = self.threads.map(blocks, |i| {
            let rows = block(i, m);
            let inner = points.q.slice(s![rows.clone(), ..]).dot(&points.qj.slice(s![.., ..]).t());
            let mut target = Array2::zeros(inner.dim());
            self.targets(rows.clone(), 0..m, &mut target);
            let radius = self.data.space.radius();
            let mut sums = (0.0, 0.0);
            for ((i, j), &g) in inner.indexed_iter() {
                if rows.start + i != j {
                    sums.0 += radius * unit_distance(g / (radius * radius)).0;
                    sums.1 += target[[i, j]];
                }
            }
            sums
        });
        let (d, t) = sums.iter().fold((0.0, 0.0), |sum, s| (sum.0 + s.0, sum.1 + s.1));
        let pairs = (m * m) as f64;
        (d / pairs, t / pairs)
    }

    /// Computes Y = DX, Q = φ(Y) and QJ.
    fn points(&self, x: ArrayView2<'_, f64>) -> Points {
        let (m, n) = self.data.d.dim();
        let mut y = Rows::zeros((m, n));
        let d = &self.data.d;
        self.threads.for_chunks(y.entries_mut(), CHUNK_ROWS * n, m * n * n, |piece, target| {
            let from = piece * CHUNK_ROWS;
            let mut target = rows_of(target, n);
            let d = d.slice(s![from..from + target.nrows(), ..]);
            general_mat_mul(1.0, &d, &x, 0.0, &mut target);
        });
        let mut q = Rows::zeros((m, n));
        let radii = (0..m).map(|i| self.data.space.project(y.row_slice(i), q.row_slice_mut(i))).collect();
        let qj = &*q * &self.data.space.signs();
        Points { y, q, qj, radii }
    }

    /// Returns `Dᵀ φ′(Y)ᵀ (factor·cotangent)`.
    fn chain(&self, points: &Points, cotangent: Array2<f64>, factor: f64) -> Array2<f64> {
        let mut cotangent = Rows::from(cotangent * factor);
        for (i, &radii) in points.radii.iter().enumerate() {
            let (y, q) = (points.y.row_slice(i), points.q.row_slice(i));
            let gradient = cotangent.row_slice_mut(i);
            self.data.space.pull_back(y, q, radii, gradient);
        }
        let (m, n) = self.data.d.dim();
        let parts = self.threads.map(m.div_ceil(CHUNK_ROWS), |piece| {
            let rows = piece * CHUNK_ROWS..((piece + 1) * CHUNK_ROWS).min(m);
            self.data.d.slice(s![rows.clone(), ..]).t().dot(&cotangent.slice(s![rows, ..]))
        });
        parts.iter().fold(Array2::zeros((n, n)), |sum, part| sum + part)
    }

    /// Writes the scaled targets of a pair of row ranges to `out`.
    fn targets(&self, rows: std::ops::Range<usize>, columns: std::ops::Range<usize>, out: &mut Array2<f64>) {
        match &self.data.targets {
            Targets::Matrix(t) => out.assign(&t.slice(s![rows, columns])),
            Targets::Euclidean => {
                let d = &self.data.d;
                euclidean(d.slice(s![rows, ..]), d.slice(s![columns, ..]), &mut out.view_mut());
            }
        }
        if self.scale != 1.0 {
            out.mapv_inplace(|v| v * self.scale);
        }
    }

    /// Returns Σ_{i≠j} e², and Σ_j e d′ J Q_j of every row i.
    fn all_pairs(&self, points: &Points, gradient: bool) -> (f64, Array2<f64>) {
        let (m, n) = points.q.dim();
        let blocks = m.div_ceil(PANEL);
        let mut parts: Vec<Array2<f64>> =
            (0..blocks).map(|i| Array2::zeros((if gradient { block(i, m).len() } else { 0 }, n))).collect();
        let mut loss = 0.0;
        // First every block with itself, then a tournament.
        for round in 0..=tournament::rounds(blocks) {
            let pairs: Vec<(usize, usize)> = match round.checked_sub(1) {
                None => (0..blocks).map(|i| (i, i)).collect(),
                Some(round) => tournament::meetings(blocks, round).filter(|&(_, j)| j < blocks).collect(),
            };
            let mut pieces: Vec<Piece> = pairs
                .into_iter()
                .map(|(i, j)| Piece {
                    blocks: (i, j),
                    first: std::mem::take(&mut parts[i]),
                    second: if i == j { Array2::zeros((0, 0)) } else { std::mem::take(&mut parts[j]) },
                    loss: 0.0,
                })
                .collect();
            self.threads.for_chunks(&mut pieces, 1, pieces_work(m, n), |_, piece| {
                self.visit(points, &mut piece[0], gradient);
            });
            for piece in pieces {
                let (i, j) = piece.blocks;
                loss += piece.loss;
                parts[i] = piece.first;
                if i != j {
                    parts[j] = piece.second;
                }
            }
        }
        let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
        let cotangent = ndarray::concatenate(Axis(0), &views).unwrap_or_else(|_| Array2::zeros((0, n)));
        (loss, cotangent)
    }

    fn visit(&self, points: &Points, piece: &mut Piece, gradient: bool) {
        let m = points.q.nrows();
        let (i, j) = piece.blocks;
        let (rows, columns) = (block(i, m), block(j, m));
        let (qi, qji) = (points.q.slice(s![rows.clone(), ..]), points.qj.slice(s![rows.clone(), ..]));
        let qjj = points.qj.slice(s![columns.clone(), ..]);
        let mut weights = qi.dot(&qjj.t());
        let mut target = Array2::zeros(weights.dim());
        self.targets(rows, columns, &mut target);
        let radius = self.data.space.radius();
        let loss = weigh(&mut weights, &target, radius, |k, l| i == j && k == l);
        piece.loss = if i == j { loss } else { 2.0 * loss };
        if gradient {
            general_mat_mul(1.0, &weights, &qjj, 1.0, &mut piece.first);
            if i != j {
                general_mat_mul(1.0, &weights.t(), &qji, 1.0, &mut piece.second);
            }
        }
    }

    /// Returns half the cotangent of `Σ_{i∈batch} Σ_{j≠i} e²`.
    fn sampled_pairs(&self, points: &Points, batch: &[usize]) -> Array2<f64> {
        let (m, n) = points.q.dim();
        let (q, qj) = (points.q.select(Axis(0), batch), points.qj.select(Axis(0), batch));
        let radius = self.data.space.radius();
        let parts = self.threads.map(m.div_ceil(PANEL), |i| {
            let rows = block(i, m);
            let others = points.qj.slice(s![rows.clone(), ..]);
            // Blocks of the batch one after the other.
            let mut own = Array2::zeros((rows.len(), n));
            let mut sampled = Array2::zeros((batch.len(), n));
            for from in (0..batch.len()).step_by(PANEL) {
                let to = (from + PANEL).min(batch.len());
                let mut weights = q.slice(s![from..to, ..]).dot(&others.t());
                let mut target = Array2::zeros(weights.dim());
                for (k, &row) in batch[from..to].iter().enumerate() {
                    let mut line = Array2::zeros((1, rows.len()));
                    self.targets(row..row + 1, rows.clone(), &mut line);
                    target.row_mut(k).assign(&line.row(0));
                }
                weigh(&mut weights, &target, radius, |k, l| batch[from + k] == rows.start + l);
                general_mat_mul(1.0, &weights.t(), &qj.slice(s![from..to, ..]), 1.0, &mut own);
                general_mat_mul(1.0, &weights, &others, 1.0, &mut sampled.slice_mut(s![from..to, ..]));
            }
            (own, sampled)
        });
        let mut cotangent = Array2::zeros((m, n));
        for (i, (own, sampled)) in parts.iter().enumerate() {
            cotangent.slice_mut(s![block(i, m), ..]).scaled_add(1.0, own);
            for (&row, line) in batch.iter().zip(sampled.outer_iter()) {
                cotangent.row_mut(row).scaled_add(1.0, &line);
            }
        }
        cotangent
    }
}

fn block(i: usize, m: usize) -> std::ops::Range<usize> {
    i * PANEL..((i + 1) * PANEL).min(m)
}

/// Returns the approximate multiply-adds of a round.
fn pieces_work(m: usize, n: usize) -> usize {
    m * PANEL * (n + 16)
}

/// Replaces the inner products by e d′ and returns Σ e², leaving out the pairs `skip`.
fn weigh(weights: &mut Array2<f64>, target: &Array2<f64>, radius: f64, skip: impl Fn(usize, usize) -> bool) -> f64 {
    let mut loss = 0.0;
    let unit = 1.0 / (radius * radius);
    for (k, (mut row, target)) in weights.outer_iter_mut().zip(target.outer_iter()).enumerate() {
        for (l, (w, &t)) in row.iter_mut().zip(target).enumerate() {
            if skip(k, l) {
                *w = 0.0;
                continue;
            }
            let (d, slope) = unit_distance(*w * unit);
            let error = radius * d - t;
            loss += error * error;
            *w = error * slope / radius;
        }
    }
    loss
}

/// Computes Euclidean distances between rows, as sums of squared differences (no cancellation).
fn euclidean(rows: ArrayView2<'_, f64>, columns: ArrayView2<'_, f64>, out: &mut ArrayViewMut2<'_, f64>) {
    for (a, mut out) in rows.outer_iter().zip(out.outer_iter_mut()) {
        let a = slice_of(a);
        for (b, out) in columns.outer_iter().zip(out.iter_mut()) {
            let square: f64 = a.iter().zip(slice_of(b).iter()).map(|(a, b)| (a - b) * (a - b)).sum();
            *out = square.sqrt();
        }
    }
}

fn check_targets(t: &Array2<f64>) -> Result<()> {
    let size = check_data("T", t)?;
    let m = t.nrows();
    for i in 0..m {
        for j in 0..i {
            if (t[[i, j]] - t[[j, i]]).abs() > SYMMETRY * size {
                return Err(Error::invalid(
                    "T",
                    format!("must be symmetric; entries ({i}, {j}) and ({j}, {i}) differ"),
                ));
            }
        }
    }
    Ok(())
}

/// Difference of T_ij and T_ji, relative to the largest entry, up to which T counts as symmetric.
const SYMMETRY: f64 = 1e-10;

/// Without a Lipschitz constant: d has infinite slope at z = 1.
impl Objective for StructuralProbe {
    fn rows(&self) -> usize {
        self.data.space.dim()
    }

    fn columns(&self) -> Option<usize> {
        Some(self.data.space.dim())
    }

    /// NaN for X of another shape than n×n.
    fn value_and_gradient(&self, x: ArrayView2<'_, f64>, mut target: ArrayViewMut2<'_, f64>, _: &Threads) -> f64 {
        if !self.fits(x) {
            target.fill(f64::NAN);
            return f64::NAN;
        }
        let points = self.points(x);
        let (loss, cotangent) = self.all_pairs(&points, true);
        let m = self.samples() as f64;
        target.assign(&self.chain(&points, cotangent, 4.0 / (m * m)));
        loss / (m * m)
    }

    fn value(&self, x: ArrayView2<'_, f64>, _: &Threads) -> f64 {
        let m = self.samples() as f64;
        self.all_pairs(&self.points(x), false).0 / (m * m)
    }
}

impl FiniteSum for StructuralProbe {
    fn components(&self) -> usize {
        self.samples()
    }

    fn batch_gradient(&self, x: ArrayView2<'_, f64>, batch: &[usize]) -> Array2<f64> {
        if batch.len() == self.samples() {
            return self.gradient(x, &self.threads);
        }
        let points = self.points(x);
        let cotangent = self.sampled_pairs(&points, batch);
        let factor = 2.0 / (self.samples() as f64 * batch.len() as f64);
        self.chain(&points, cotangent, factor)
    }
}
