//! Σ λ_ij |X_ij|: piecewise sinusoidal on the circle.
//!
//! With one weight for both rows, `|cx + sy| + |cy − sx|` has period π/2: every column is reduced to the
//! first quadrant, where it has a single breakpoint, and four quadrants and both branches share
//! the same r breakpoints and running sums (A, B), h = A cosθ + B sinθ on an arc. With unequal
//! weights the period is π and there are 2r breakpoints. One sort, O(r log r).
//!
//! The value is known at every breakpoint. An arc can hold something better only if its chord,
//! lowered by the largest curvature times width²/8, comes below the best value so far; only
//! those few arcs are solved (for all their local minima).

use ndarray::{Array2, ArrayView2};

use super::Penalty;
use super::l0::quadrant_direction;
use crate::error::{Error, Result};
use crate::pair::{Best, BestBoost, CirclePair, HyperbolaPair, SAME_BREAKPOINT, Scratch, Trig};

/// Weights of the ℓ1 norm.
#[derive(Debug, Clone, PartialEq)]
pub enum Weights {
    /// One weight for all entries.
    Scalar(f64),
    /// One weight each, n×r.
    Entrywise(Array2<f64>),
}

/// h(X) = Σ weight_ij |X_ij|.
#[derive(Debug, Clone, PartialEq)]
pub struct L1 {
    /// The weights, ≥ 0.
    pub weights: Weights,
}

impl L1 {
    /// One weight for all entries.
    pub fn new(lambda: f64) -> Self {
        Self {
            weights: Weights::Scalar(lambda),
        }
    }

    #[inline(always)]
    fn weight(&self, row: usize, column: usize) -> f64 {
        match &self.weights {
            Weights::Scalar(lambda) => *lambda,
            Weights::Entrywise(weights) => weights[[row, column]],
        }
    }
}

impl Penalty for L1 {
    #[inline(always)]
    fn entry(&self, row: usize, column: usize, value: f64) -> f64 {
        self.weight(row, column) * value.abs()
    }

    #[inline(always)]
    fn slope(&self, row: usize, column: usize, value: f64) -> f64 {
        let weight = self.weight(row, column);
        if value < 0.0 { -weight } else { weight }
    }

    fn levels(&self) -> &[f64] {
        &[0.0]
    }

    #[inline(always)]
    fn change(&self, row: usize, old: &[f64], new: &[f64]) -> (f64, f64) {
        let (mut delta, mut magnitude) = (0.0, 0.0);
        match &self.weights {
            Weights::Scalar(lambda) => {
                for (&o, &n) in old.iter().zip(new) {
                    let d = n.abs() - o.abs();
                    delta += d;
                    magnitude += d.abs();
                }
                (lambda * delta, lambda * magnitude)
            }
            Weights::Entrywise(weights) => {
                for ((&o, &n), &w) in old.iter().zip(new).zip(weights.row(row)) {
                    let d = w * (n.abs() - o.abs());
                    delta += d;
                    magnitude += d.abs();
                }
                (delta, magnitude)
            }
        }
    }

    fn check(&self, n: usize, r: usize) -> Result<()> {
        match &self.weights {
            Weights::Scalar(lambda) if !(lambda.is_finite() && *lambda >= 0.0) => Err(
                Error::invalid("lam", format!("must be finite and nonnegative, got {lambda}")),
            ),
            Weights::Entrywise(w) if w.dim() != (n, r) => Err(Error::invalid(
                "lam",
                format!("must be a number or have shape ({n}, {r}), got {:?}", w.dim()),
            )),
            Weights::Entrywise(w) if w.iter().any(|v| !(v.is_finite() && *v >= 0.0)) => {
                Err(Error::invalid("lam", "must be finite and nonnegative"))
            }
            _ => Ok(()),
        }
    }

    fn value(&self, x: ArrayView2<'_, f64>) -> f64 {
        match &self.weights {
            Weights::Scalar(lambda) => lambda * x.iter().map(|v| v.abs()).sum::<f64>(),
            Weights::Entrywise(w) => x.iter().zip(w).map(|(v, w)| w * v.abs()).sum(),
        }
    }

    #[inline(always)]
    fn hyperbola(&self, pair: &HyperbolaPair<'_>, scratch: &mut Scratch) -> BestBoost {
        match &self.weights {
            Weights::Scalar(lambda) => {
                super::boost::l1(|_| (*lambda, *lambda), pair, scratch)
            }
            Weights::Entrywise(weights) => {
                let (i, j) = pair.rows;
                super::boost::l1(|k| (weights[[i, k]], weights[[j, k]]), pair, scratch)
            }
        }
    }

    fn transposed(&self) -> Option<Self> {
        Some(match &self.weights {
            Weights::Scalar(lambda) => Self::new(*lambda),
            Weights::Entrywise(weights) => Self {
                weights: Weights::Entrywise(weights.t().as_standard_layout().into_owned()),
            },
        })
    }

    #[inline(always)]
    fn circle(&self, pair: &CirclePair<'_>, scratch: &mut Scratch) -> Best {
        scratch.jumps.clear();
        scratch.order.clear();
        scratch.vanishing.clear();
        match &self.weights {
            Weights::Scalar(lambda) => {
                let start = quarter_period(*lambda, pair, scratch);
                search(pair, scratch, start, &[0, 1, 2, 3], 1)
            }
            Weights::Entrywise(weights) => {
                let (i, j) = pair.rows;
                let mut start = (0.0, 0.0);
                for (k, (&x, &y)) in pair.x.iter().zip(pair.y).enumerate() {
                    half_period(weights[[i, k]], x, y, 2 * k, scratch, &mut start);
                    half_period(weights[[j, k]], y, -x, 2 * k + 1, scratch, &mut start);
                }
                // A breakpoint without a jump keeps every arc within a quadrant.
                scratch.order.push((1.0, scratch.jumps.len() as u32));
                scratch.jumps.push([0.0, 1.0, 0.0, 0.0]);
                search(pair, scratch, start, &[0, 2], 2)
            }
        }
    }
}

/// One weight: breakpoints of the first quadrant; returns (A, B) right after θ = 0. The entry of
/// `order` at position k refers to `jumps[k]`, and its column is kept in `arc_c` for a moment.
#[inline(always)]
fn quarter_period(lambda: f64, pair: &CirclePair<'_>, scratch: &mut Scratch) -> (f64, f64) {
    let (mut a, mut b) = (0.0, 0.0);
    for (k, (&x, &y)) in pair.x.iter().zip(pair.y).enumerate() {
        if x != 0.0 && y != 0.0 {
            let (u, w) = quadrant_direction(x, y);
            a += u + w;
            b += w - u;
            let sum = u + w;
            // Lengths are irrelevant to the direction; scaled by the sum nothing over- or underflows.
            let (c, s) = (u / sum, w / sum);
            let length = (c * c + s * s).sqrt();
            scratch.order.push((s, k as u32));
            scratch
                .jumps
                .push([c / length, s / length, -2.0 * lambda * w, 2.0 * lambda * u]);
        } else {
            let size = x.abs() + y.abs();
            a += size;
            b += size;
            // Placeholder: jumps are indexed by column.
            scratch.jumps.push([0.0; 4]);
        }
    }
    (lambda * a, lambda * b)
}

/// Entrywise weights: the breakpoint in (0, π) of `weight·|cα + sβ|`.
#[inline(always)]
fn half_period(
    weight: f64,
    alpha: f64,
    beta: f64,
    index: usize,
    scratch: &mut Scratch,
    start: &mut (f64, f64),
) {
    let positive = alpha > 0.0 || (alpha == 0.0 && beta > 0.0);
    let (alpha, beta) = if positive { (alpha, beta) } else { (-alpha, -beta) };
    start.0 += weight * alpha;
    start.1 += weight * beta;
    debug_assert_eq!(index, scratch.jumps.len());
    if alpha == 0.0 {
        scratch.jumps.push([0.0; 4]);
        return;
    }
    // (c, s) ∝ (−β, α), s > 0; the key is the ℓ1 angle in [0, 2].
    let sum = alpha + beta.abs();
    let (c, s) = (-beta / sum, alpha / sum);
    let length = (c * c + s * s).sqrt();
    let key = if c >= 0.0 { s } else { 1.0 - c };
    scratch.order.push((key, index as u32));
    scratch.jumps.push([
        c / length,
        s / length,
        -2.0 * weight * alpha,
        -2.0 * weight * beta,
    ]);
}

/// Largest ratio (angle/chord)²/8 over arcs within a quadrant: (π/2)²/2/8.
const CHORD: f64 = 0.154_212_6;

/// Sweeps the arcs of one period, for the given quadrants and both branches.
///
/// `order` holds (key, index into `jumps`); `per_column` jumps belong to one column.
#[inline(always)]
fn search(
    pair: &CirclePair<'_>,
    scratch: &mut Scratch,
    start: (f64, f64),
    quadrants: &[usize],
    per_column: u32,
) -> Best {
    let Scratch {
        vanishing,
        order,
        c,
        s,
        arc_c,
        arc_s,
        jumps,
        values,
    } = scratch;
    if order.len() > 1 {
        order.sort_unstable_by(|l, r| l.0.total_cmp(&r.0));
    }
    // Points 0..=m: θ = 0, the breakpoints, the end of the period.
    let points = order.len() + 2;
    c.clear();
    s.clear();
    arc_c.clear();
    arc_s.clear();
    c.push(1.0);
    s.push(0.0);
    arc_c.push(start.0);
    arc_s.push(start.1);
    let (mut a, mut b) = start;
    for &(_, k) in order.iter() {
        let jump = jumps[k as usize];
        a += jump[2];
        b += jump[3];
        c.push(jump[0]);
        s.push(jump[1]);
        arc_c.push(a);
        arc_s.push(b);
    }
    let (end_c, end_s) = if quadrants.len() == 4 {
        (0.0, 1.0)
    } else {
        (-1.0, 0.0)
    };
    c.push(end_c);
    s.push(end_s);
    arc_c.push(a);
    arc_s.push(b);
    let (c, s, arc_c, arc_s) = (
        &c[..points],
        &s[..points],
        &arc_c[..points],
        &arc_s[..points],
    );

    // Everything relative to the identity: smooth part a + p, penalty A at θ = 0.
    let base = pair.rotation.a + pair.rotation.p + start.0;
    let combos = 2 * quadrants.len();
    values.clear();
    values.resize(combos * points, 0.0);
    let mut best = Best::IDENTITY;
    let mut bests = [0.0f64; 8];
    for (branch, f) in [pair.rotation, pair.reflection].into_iter().enumerate() {
        for (slot, &quadrant) in quadrants.iter().enumerate() {
            let combo = branch * quadrants.len() + slot;
            let f = f.quadrant(quadrant);
            let row = &mut values[combo * points..(combo + 1) * points];
            let mut least = f64::INFINITY;
            for m in 0..points {
                let (cm, sm) = (c[m], s[m]);
                let value = (f.a + arc_c[m]) * cm
                    + (f.b + arc_s[m]) * sm
                    + f.p * (cm - sm) * (cm + sm)
                    + 2.0 * f.q * cm * sm
                    - base;
                row[m] = value;
                least = if value < least { value } else { least };
            }
            bests[combo] = least;
        }
    }
    for combo in 0..combos {
        if bests[combo] < best.value {
            let row = &values[combo * points..(combo + 1) * points];
            let m = row.iter().position(|&v| v == bests[combo]).unwrap_or(0);
            let quadrant = quadrants[combo % quadrants.len()];
            let (cm, sm) = turned(c[m], s[m], quadrant);
            best.offer(row[m], cm, sm, combo >= quadrants.len(), Some(m));
        }
    }
    for (branch, f) in [pair.rotation, pair.reflection].into_iter().enumerate() {
        let second = 4.0 * (f.p * f.p + f.q * f.q).sqrt();
        for (slot, &quadrant) in quadrants.iter().enumerate() {
            let combo = branch * quadrants.len() + slot;
            let f = f.quadrant(quadrant);
            let row = &values[combo * points..(combo + 1) * points];
            for m in 0..points - 1 {
                let (dc, ds) = (c[m + 1] - c[m], s[m + 1] - s[m]);
                let chord = dc * dc + ds * ds;
                let (a, b) = (f.a + arc_c[m], f.b + arc_s[m]);
                let least = if row[m] < row[m + 1] { row[m] } else { row[m + 1] };
                // A sinusoid that is positive at both ends of an arc is concave on it.
                let ends = (a * c[m] + b * s[m]).min(a * c[m + 1] + b * s[m + 1]);
                let first = if ends >= 0.0 { -ends } else { a.abs() + b.abs() };
                let curvature = first + second;
                if curvature > 0.0 && least - CHORD * chord * curvature < best.value {
                    let arc = Trig { a, b, ..f };
                    for &(cv, sv) in arc.minima().points() {
                        let inside = c[m] * sv - s[m] * cv > 0.0 && cv * s[m + 1] - sv * c[m + 1] > 0.0;
                        if inside {
                            let value = arc.value(cv, sv) - base;
                            let (cq, sq) = turned(cv, sv, quadrant);
                            best.offer(value, cq, sq, branch == 1, None);
                        }
                    }
                }
            }
        }
    }
    if let Some(m) = best.breakpoint {
        if m > 0 && m < points - 1 {
            let key = order[m - 1].0;
            for &(other, k) in order.iter() {
                if (other - key).abs() <= SAME_BREAKPOINT && jumps[k as usize][2..] != [0.0; 2] {
                    vanishing.push(k / per_column);
                }
            }
        }
    }
    best
}

/// (cos, sin) of θ + quadrant·π/2.
#[inline(always)]
fn turned(c: f64, s: f64, quadrant: usize) -> (f64, f64) {
    match quadrant {
        0 => (c, s),
        1 => (-s, c),
        2 => (-c, -s),
        _ => (s, -c),
    }
}
