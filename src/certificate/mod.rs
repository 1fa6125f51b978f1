//! What can be proved about a point: block-2 stationarity over all pairs, criticality, optimality.
//!
//! * **block-2 gap**: the largest decrease that any single pair of rows can make, each pair solved
//!   globally with exact curvature and no proximal term. Two zero rows cannot move (V·0 = 0), so
//!   those pairs are proved and not visited.
//! * **ε-BS₂ measure** (OBCD paper, Definition 4.1): the mean of `dist(I, argmin)²` over all pairs.
//! * **criticality**: `dist(0, ∂_M F(X))`, see [`criticality`](fn@criticality). A point that no pair
//!   can improve need not be critical when h is not smooth, so both are reported.
//! * **optimum**: for ℓ0 and ℓ1 with a large enough weight the optimal value is known in closed
//!   form, see [`large_lambda_optimum`].
//!
//! Cost: one pair solve per visited pair, in parallel; the same result for every number of threads.

mod criticality;
mod optimum;

use ndarray::{Array1, Array2, ArrayView2};
use pulp::{Simd, WithSimd};

use crate::block::Block;
use crate::error::{Error, Result};
use crate::hyperbolic;
use crate::manifold::{drift, start_constraint};
use crate::objective::{Tracker, require_quadratic};
use crate::pair::{CirclePair, PairModel, Scratch, Sym2, TIE};
use crate::penalty::{Kernel, Penalty};
use crate::problem::Problem;
use crate::threads::Threads;

pub use criticality::criticality;
pub(crate) use criticality::{conjugate_gradients, inexact_conjugate_gradients};
pub use optimum::large_lambda_optimum;
pub(crate) use optimum::{known_optimum, top_rows};

/// Rows per group; pairs are visited group against group.
const GROUP: usize = 32;

/// Rows that pair solvers see are multiples of this long.
const PADDING: usize = crate::pair::LANES;

/// What has been proved about a point.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Certificate {
    /// F(X).
    pub objective: f64,
    /// f(X).
    pub smooth_value: f64,
    /// h(X).
    pub penalty_value: f64,
    /// The size of F that tolerances are relative to, see [`Problem::magnitude`].
    pub magnitude: f64,
    /// ‖XᵀX − I‖_F plus the distance from the penalty's domain. With mixed signs ‖XᵀJX − K‖_F, K = J
    /// for square X, else the nearest diagonal of ±1 if XᵀJX is one up to 1e-8, else 0.
    pub feasibility: f64,
    /// Largest decrease that any single pair can make; 0 when every pair rests. With mixed signs
    /// pairs of columns count too (where they can move), and the gap is infinite along a pair
    /// that is unbounded below.
    pub block2_gap: f64,
    /// The pair that makes it, none when the gap is 0.
    pub block2_pair: Option<(usize, usize)>,
    /// Whether that is a pair of columns.
    pub block2_columns: bool,
    /// Mean of dist(I, argmin)² over all pairs (Definition 4.1); not a number with mixed signs.
    pub block2_measure: f64,
    /// dist(0, ∂_M F(X)).
    pub criticality: f64,
    /// ‖G − JXGᵀXK‖_F, the first-order condition of the smooth part f alone, see
    /// [`stationarity`](hyperbolic::stationarity); none for mixed signs with r < n.
    pub stationarity: Option<f64>,
    /// All pairs: n(n−1)/2, and those of columns that were looked at.
    pub pairs: u64,
    /// Pairs of zero rows among them: proved at rest without a visit.
    pub proved_pairs: u64,
    /// The optimal value, where a closed form applies: ℓ0 and ℓ1 with a large enough λ, and smooth
    /// problems that a spectral or singular value decomposition solves.
    pub optimum: Option<f64>,
}

impl Certificate {
    /// Whether the point is proved optimal: its value is the known optimum up to `tolerance`
    /// relative to the [magnitude](Certificate::magnitude) of F.
    pub fn is_optimal(&self, tolerance: f64) -> bool {
        self.optimum
            .is_some_and(|optimum| self.objective - optimum <= tolerance * self.magnitude)
    }
}

/// Certifies a point: one with orthonormal columns, or for a mixed signature any that keeps XᵀJX.
///
/// # Errors
/// If the problem is not valid or its f not quadratic, its signature is all −1, or `x` has another shape or an entry
/// that is not finite.
///
/// ```
/// use ndarray::{Array2, array};
/// use orthobcd::{Problem, Quadratic, Signature, Threads, certify, penalty::L0};
///
/// let smooth = Quadratic::new(array![[-3.0, 0.5], [0.5, -1.0]], None, None)?;
/// let signature = Signature::stiefel(2);
/// let penalty = L0 { lambda: 10.0 };
/// let problem = Problem::new(&smooth, &penalty, &signature, 1)?;
/// let certificate = certify(&problem, array![[1.0], [0.0]].view(), &Threads::serial())?;
/// assert_eq!(certificate.optimum, Some(8.5));
/// assert!(certificate.is_optimal(1e-12) && certificate.block2_gap == 0.0);
/// # Ok::<(), orthobcd::Error>(())
/// ```
pub fn certify<P: Penalty>(
    problem: &Problem<'_, P>,
    x: ArrayView2<'_, f64>,
    threads: &Threads,
) -> Result<Certificate> {
    require_quadratic(problem.smooth)?;
    let (n, r) = (problem.smooth.rows(), problem.components);
    if x.dim() != (n, r) {
        return Err(Error::invalid(
            "x",
            format!("must have shape ({n}, {r}), got {:?}", x.dim()),
        ));
    }
    if x.iter().any(|v| !v.is_finite()) {
        return Err(Error::invalid("x", "must be finite"));
    }
    let signature = problem.signature;
    if signature.is_definite() && signature.sign(0) < 0.0 {
        return Err(Error::invalid("signature", "must not be all -1"));
    }
    let x = x.as_standard_layout();
    let smooth_value = problem.smooth.value(x.view(), threads);
    let penalty_value = problem.penalty.value(x.view());
    let gradient = problem.smooth.gradient(x.view(), threads);
    let k = if signature.is_definite() {
        Array2::eye(r)
    } else if n == r {
        Array2::from_diag(&Array1::from_shape_fn(n, |i| signature.sign(i)))
    } else {
        start_constraint(x.view(), signature)
    };
    let constant = problem.constant(k.view());
    let mut certificate = Certificate {
        objective: smooth_value + penalty_value,
        smooth_value,
        penalty_value,
        magnitude: problem.magnitude(smooth_value, penalty_value, constant),
        feasibility: drift(x.view(), signature, k.view()) + problem.penalty.infeasibility(x.view()),
        block2_gap: 0.0,
        block2_pair: None,
        block2_columns: false,
        block2_measure: f64::NAN,
        criticality: criticality(problem.penalty, x.view(), gradient.view(), signature),
        stationarity: (signature.is_definite() || n == r)
            .then(|| hyperbolic::stationarity(x.view(), gradient.view(), signature)),
        pairs: 0,
        proved_pairs: 0,
        optimum: None,
    };
    if signature.is_definite() {
        let (active, zero): (Vec<usize>, Vec<usize>) =
            (0..n).partition(|&i| x.row(i).iter().any(|&v| v != 0.0));
        let found = survey(problem, x.view(), &active, &zero, threads);
        let count = |k: usize| (k * k.saturating_sub(1) / 2) as u64;
        certificate.pairs = count(n);
        certificate.block2_gap = found.gap;
        certificate.block2_pair = found.pair;
        certificate.block2_measure = found.distance / certificate.pairs as f64;
        certificate.proved_pairs = count(zero.len());
        certificate.optimum = known_optimum(problem, threads, optimum::EXACT_SPECTRUM, &|| true);
    } else {
        let rows = hyperbolic::row_gap(problem, x.view(), threads);
        let columns = hyperbolic::column_gap(problem, &x.to_owned(), threads).unwrap_or_default();
        certificate.block2_columns = columns.decrease > rows.decrease;
        let best = if certificate.block2_columns {
            columns
        } else {
            rows
        };
        (certificate.block2_gap, certificate.block2_pair) = (best.decrease, best.pair);
        certificate.pairs = rows.pairs + columns.pairs;
    }
    Ok(certificate)
}

/// What the pairs could do.
#[derive(Debug, Clone, Copy, Default)]
struct Survey {
    gap: f64,
    pair: Option<(usize, usize)>,
    distance: f64,
}

impl Survey {
    fn absorb(&mut self, other: Self) {
        if other.gap > self.gap {
            self.gap = other.gap;
            self.pair = other.pair;
        }
        self.distance += other.distance;
    }
}

/// Visits all pairs with at least one nonzero row.
fn survey<P: Penalty>(
    problem: &Problem<'_, P>,
    x: ArrayView2<'_, f64>,
    active: &[usize],
    zero: &[usize],
    threads: &Threads,
) -> Survey {
    let groups: Vec<&[usize]> = active.chunks(GROUP).chain(zero.chunks(GROUP)).collect();
    let leads = active.len().div_ceil(GROUP);
    let serial = Threads::serial();
    let parts = threads.map(leads, |first| {
        let mut tracker = problem.smooth.tracker(x, &serial);
        let mut block = Block::new(x.ncols());
        let mut scratch = Scratch::new(x.ncols());
        let mut found = Survey::default();
        for second in first..groups.len() {
            let rest = if first == second {
                &[][..]
            } else {
                groups[second]
            };
            found.absorb(survey_groups(
                problem,
                x,
                groups[first],
                rest,
                &mut *tracker,
                &mut block,
                &mut scratch,
            ));
        }
        found
    });
    let mut found = Survey::default();
    parts.into_iter().for_each(|part| found.absorb(part));
    found
}

fn survey_groups<P: Penalty>(
    problem: &Problem<'_, P>,
    x: ArrayView2<'_, f64>,
    lead: &[usize],
    rest: &[usize],
    tracker: &mut dyn Tracker,
    block: &mut Block,
    scratch: &mut Scratch,
) -> Survey {
    block.load(x, lead, rest);
    tracker.fill(block);
    crate::simd::arch().dispatch(Visit {
        block,
        inside: rest.is_empty(),
        penalty: problem.penalty,
        metric: problem.smooth.metric(),
        scratch,
    })
}

/// The pairs of a block that are solved, not moved.
struct Visit<'a, 'b, P: Penalty> {
    block: &'a Block,
    inside: bool,
    penalty: &'a P,
    metric: Option<ArrayView2<'b, f64>>,
    scratch: &'a mut Scratch,
}

impl<P: Penalty> WithSimd for Visit<'_, '_, P> {
    type Output = Survey;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Survey {
        let lead = self.block.lead;
        let mut found = Survey::default();
        let (mut new_x, mut new_y) = (Vec::new(), Vec::new());
        // Pair solvers take whole vectors: rows followed by zeros.
        let stride = self.block.columns().div_ceil(PADDING) * PADDING;
        let mut rows = vec![0.0; stride * self.block.len()];
        for (k, row) in rows.chunks_exact_mut(stride).enumerate() {
            row[..self.block.columns()].copy_from_slice(self.block.row(k));
        }
        for i in 0..lead {
            let others = if self.inside {
                i + 1..lead
            } else {
                lead..self.block.len()
            };
            for j in others {
                let Some((decrease, distance)) = solve_pair(
                    simd,
                    self.block,
                    (i, j),
                    (
                        &rows[i * stride..(i + 1) * stride],
                        &rows[j * stride..(j + 1) * stride],
                    ),
                    self.penalty,
                    self.metric,
                    self.scratch,
                    &mut new_x,
                    &mut new_y,
                ) else {
                    continue;
                };
                let (a, b) = (self.block.rows[i], self.block.rows[j]);
                found.absorb(Survey {
                    gap: decrease,
                    pair: Some((a.min(b), a.max(b))),
                    distance,
                });
            }
        }
        found
    }
}

#[inline(always)]
fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// (decrease, ‖V − I‖²) of the best move of a pair, none if it is the identity.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn solve_pair<S: Simd, P: Penalty>(
    simd: S,
    block: &Block,
    (i, j): (usize, usize),
    (padded_x, padded_y): (&[f64], &[f64]),
    penalty: &P,
    metric: Option<ArrayView2<'_, f64>>,
    scratch: &mut Scratch,
    new_x: &mut Vec<f64>,
    new_y: &mut Vec<f64>,
) -> Option<(f64, f64)> {
    let (x, y) = (block.row(i), block.row(j));
    let (gx, gy) = (block.gradient_row(i), block.gradient_row(j));
    let s = match metric {
        None => Sym2 {
            d0: dot(x, x),
            d1: dot(y, y),
            o: dot(x, y),
        },
        Some(metric) => {
            let bilinear = |u: &[f64], v: &[f64]| -> f64 {
                metric
                    .outer_iter()
                    .zip(u)
                    .map(|(d, u)| u * d.iter().zip(v).map(|(d, v)| d * v).sum::<f64>())
                    .sum()
            };
            Sym2 {
                d0: bilinear(x, x),
                d1: bilinear(y, y),
                o: bilinear(x, y),
            }
        }
    };
    let model = PairModel {
        gz: [[dot(gx, x), dot(gx, y)], [dot(gy, x), dot(gy, y)]],
        m: Sym2 {
            d0: block.curvature(i, i),
            d1: block.curvature(j, j),
            o: block.curvature(i, j),
        },
        s,
        alpha: 0.0,
    };
    let (rotation, reflection) = model.branches();
    let rows = (block.rows[i], block.rows[j]);
    let best = P::Kernel::circle(
        penalty,
        simd,
        &CirclePair {
            rows,
            x: padded_x,
            y: padded_y,
            rotation,
            reflection,
        },
        scratch,
    );
    if !(best.value < 0.0) {
        return None;
    }
    let v = best.turn.matrix();
    let e = best.turn.minus_identity();
    new_x.clear();
    new_y.clear();
    for (&x, &y) in x.iter().zip(y) {
        new_x.push(v[0][0] * x + v[0][1] * y);
        new_y.push(v[1][0] * x + v[1][1] * y);
    }
    scratch.settle(new_x, new_y);
    penalty.tidy(new_x);
    penalty.tidy(new_y);
    let (smooth, smooth_size) = model.change(e);
    let (hx, hx_size) = penalty.change(rows.0, x, new_x);
    let (hy, hy_size) = penalty.change(rows.1, y, new_y);
    let change = smooth + (hx + hy);
    // A decrease that could be rounding is none.
    if !(change < -TIE * (smooth_size + hx_size + hy_size)) {
        return None;
    }
    let squares = |e: [[f64; 2]; 2]| e.iter().flatten().map(|v| v * v).sum::<f64>();
    let mut distance = squares(e);
    if let Some(h) = mirror(dot(x, x), dot(y, y), dot(x, y), x.len()) {
        let other = |i: usize, j: usize| {
            v[i][0] * h[0][j] + v[i][1] * h[1][j] - if i == j { 1.0 } else { 0.0 }
        };
        let same = squares([[other(0, 0), other(0, 1)], [other(1, 0), other(1, 1)]]);
        distance = distance.min(same);
    }
    Some((-change, distance))
}

/// The reflection that leaves two parallel rows where they are: with V also VH is a best move.
#[inline(always)]
fn mirror(xx: f64, yy: f64, xy: f64, columns: usize) -> Option<[[f64; 2]; 2]> {
    let rounding = (columns + PADDING) as f64 * f64::EPSILON;
    if xx * yy - xy * xy > rounding * (xx * yy) {
        return None;
    }
    let (a, b) = (xx.sqrt(), yy.sqrt().copysign(xy));
    let size = a.hypot(b);
    let (c, s) = (a / size, b / size);
    // 2uuᵀ − I for the direction u = (c, s) of the rows.
    let (cosine, sine) = ((c - s) * (c + s), 2.0 * c * s);
    Some([[cosine, sine], [sine, -cosine]])
}

#[cfg(test)]
mod tests;
