//! Continuous penalties of |x|, the same for every entry: capped ℓ1, MCP, SCAD and the like.
//!
//! As for ℓ1 with one weight the period is π/2 and both branches share the breakpoints, see
//! [`arcs`](super::arcs). A column of length ρ and direction ω has a breakpoint at ω, where an entry
//! vanishes, and two for every knot t < ρ: an entry falls to t at ω + δ and rises to t at ω − δ, cos δ = t/ρ,
//! modulo π/2. Between breakpoints h = A cosθ + B sinθ + P cos2θ + Q sin2θ + K. O(lr log lr) for l knots.

use pulp::Simd;

use super::arcs::search;
use super::crossings::{crossings_of_zero, first_quadrant};
use super::derived::at;
use crate::numerics;
use crate::pair::{Arc, Best, Breakpoints, CirclePair, Piece, Scratch};

/// A continuous penalty of |x|, minus its value at 0.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Even {
    /// The slope just right of 0.
    slope: f64,
    /// Positive breakpoints, ascending, and the change of the piece at each.
    knots: Vec<(f64, Piece)>,
    /// Whether the penalty is concave and does not fall for x ≥ 0. The penalty of a column is then lowest where one
    /// entry is zero.
    rises: bool,
}

impl Even {
    /// Creates the penalty from breakpoints, pieces and values, if it is finite, even and continuous.
    pub(super) fn new(breakpoints: &[f64], pieces: &[Piece], values: &[f64]) -> Option<Self> {
        let count = breakpoints.len();
        let finite = pieces.iter().all(|piece| piece[0].is_finite());
        let mirrored = |k: usize| breakpoints[k] == -breakpoints[count - 1 - k];
        let same = |k: usize| {
            let [a, b, c] = pieces[k];
            pieces[count - k] == [a, -b, c]
        };
        let joins = |k: usize| {
            let level = breakpoints[k];
            let size = |[a, b, c]: Piece| a.abs() + (b * level).abs() + (c * level * level).abs();
            let rounding = numerics::TIE * (size(pieces[k]) + size(pieces[k + 1]));
            let near = |side: usize| (values[k] - at(pieces[side], level)).abs() <= rounding;
            near(k) && near(k + 1)
        };
        if !(finite && (0..count).all(mirrored) && (0..=count).all(same) && (0..count).all(joins)) {
            return None;
        }
        let first = breakpoints.partition_point(|&level| level <= 0.0);
        let knots = (first..count).map(|k| {
            let change = [0, 1, 2].map(|l| pieces[k + 1][l] - pieces[k][l]);
            (breakpoints[k], change)
        });
        let knots: Vec<(f64, Piece)> = knots.collect();
        // Slopes fall at the knots, up to rounding, and do not fall below 0.
        let falls = |&(level, [_, b, c]): &(f64, Piece)| b + c * level <= numerics::TIE * (b.abs() + (c * level).abs());
        let [_, last_slope, last_bend] = pieces[count];
        let rises = pieces[first..].iter().all(|piece| piece[2] <= 0.0)
            && knots.iter().all(falls)
            && last_slope >= 0.0
            && last_bend == 0.0;
        Some(Self { slope: pieces[first][1], knots, rises })
    }

    /// Returns the work of a pair, measured at r = 20 where entries cross every knot.
    pub(super) fn pair_work(&self) -> f64 {
        1.0 + self.knots.len() as f64
    }

    /// Returns the global minimum on the circle with all entries between −`bound` and `bound`.
    #[inline(always)]
    pub(super) fn circle<S: Simd>(&self, simd: S, pair: &CirclePair<'_>, bound: f64, scratch: &mut Scratch) -> Best {
        scratch.clear();
        let stride = pair.x.len();
        let points = &mut scratch.breakpoints;
        let is_bounded = bound < f64::INFINITY;
        let free = stride * (1 + 2 * self.knots.len());
        points.resize(free + if is_bounded { 2 * stride } else { 0 });
        let mut start = crossings_of_zero(simd, self.slope, pair, points);
        for jumps in points.slots(0, stride).bend {
            jumps.fill(0.0);
        }
        for (l, &knot) in self.knots.iter().enumerate() {
            crossings(simd, knot, pair, (points, stride * (1 + 2 * l)), &mut start);
        }
        if is_bounded {
            let (mut outside, count) = (Arc::default(), [1.0, 0.0, 0.0]);
            let wide = bound * (1.0 + numerics::ULPS);
            crossings(simd, (wide, count), pair, (points, free), &mut outside);
            points.bound(free, outside.k);
        }
        if !self.rises {
            start.lowest = f64::NEG_INFINITY;
        }
        let best = search::<S, true, true, false>(simd, pair, scratch, start, None);
        if let Some(m) = best.breakpoint
            && scratch.breakpoints.is_breakpoint(m)
        {
            let v = best.turn.matrix();
            for slot in scratch.breakpoints.at_same_angle(m, numerics::TIE) {
                let (group, column) = (slot as usize / stride, slot as usize % stride);
                if group == 0 {
                    scratch.vanishing.push(column as u32);
                    continue;
                }
                let knot = self.knots.get((group - 1) / 2);
                let knot = knot.map_or(bound, |knot| knot.0);
                let [first, second] = v.map(|row| row[0] * pair.x[column] + row[1] * pair.y[column]);
                let is_second = (second.abs() - knot).abs() < (first.abs() - knot).abs();
                let value = knot.copysign(if is_second { second } else { first });
                scratch.pinned.push((column, is_second, value));
            }
        }
        best
    }
}

/// Returns (cos θ, sin θ) where α cosθ + β sinθ, (α, β) = (u, w), falls through a level and where it rises; of use where
/// it `crosses` the level.
#[inline(always)]
fn ends<S: Simd>(
    simd: S,
    (u, w): (S::f64s, S::f64s),
    length: S::f64s,
    (level, crosses): (S::f64s, S::m64s),
) -> [(S::f64s, S::f64s); 2] {
    let (zero, one) = (simd.splat_f64s(0.0), simd.splat_f64s(1.0));
    let inverse = simd.div_f64s(one, simd.select_f64s(crosses, length, one));
    let (cosine, sine) = (simd.mul_f64s(u, inverse), simd.mul_f64s(w, inverse));
    // cos δ and sin δ.
    let near = simd.mul_f64s(level, inverse);
    let gap = simd.mul_f64s(simd.sub_f64s(length, level), simd.add_f64s(length, level));
    let far = simd.mul_f64s(simd.sqrt_f64s(simd.max_f64s(gap, zero)), inverse);
    let (cosine_near, sine_far) = (simd.mul_f64s(cosine, near), simd.mul_f64s(sine, far));
    let (sine_near, cosine_far) = (simd.mul_f64s(sine, near), simd.mul_f64s(cosine, far));
    [
        (simd.sub_f64s(cosine_near, sine_far), simd.add_f64s(sine_near, cosine_far)),
        (simd.add_f64s(cosine_near, sine_far), simd.sub_f64s(sine_near, cosine_far)),
    ]
}

/// Sets the breakpoints where entries cross ±knot, in the slots of `points` from the given one on: first all
/// falling, then all rising crossings. Adds the pieces of the entries beyond the knot at θ = 0 to `start`.
/// One function: both crossings of a column share its quantities.
#[inline(always)]
fn crossings<S: Simd>(
    simd: S,
    (knot, [da, db, dc]): (f64, Piece),
    pair: &CirclePair<'_>,
    (points, first): (&mut Breakpoints, usize),
    start: &mut Arc,
) {
    let stride = pair.x.len();
    let slots = points.slots(first, 2 * stride);
    let (xs, _) = S::as_simd_f64s(pair.x);
    let (ys, _) = S::as_simd_f64s(pair.y);
    let [keys, cs, ss, jump_c, jump_s, bend_p, bend_q, bend_k] = slots.vectors::<S>();
    let (zero, one) = (simd.splat_f64s(0.0), simd.splat_f64s(1.0));
    let (inert, level) = (simd.splat_f64s(Breakpoints::INERT), simd.splat_f64s(knot));
    let (da, db) = (simd.splat_f64s(da), simd.splat_f64s(db));
    let (quarter, half) = (simd.splat_f64s(0.25 * dc), simd.splat_f64s(0.5 * dc));
    let mut sums = [zero; 6];
    for (m, (&x, &y)) in xs.iter().zip(ys).enumerate() {
        let (u, w) = first_quadrant(simd, x, y);
        let square = simd.mul_add_e_f64s(u, u, simd.mul_f64s(w, w));
        let length = simd.sqrt_f64s(square);
        let crosses = simd.less_than_f64s(level, length);
        let [(down_c, down_s), (up_c, up_s)] = ends(simd, (u, w), length, (level, crosses));
        // Beyond the period they are a quarter turn back, or on: it is the other entry that crosses there.
        let late = simd.less_than_f64s(down_c, zero);
        let early = simd.less_than_f64s(up_s, zero);
        let down = (simd.select_f64s(late, down_s, down_c), simd.select_f64s(late, simd.neg_f64s(down_c), down_s));
        let up = (simd.select_f64s(early, simd.neg_f64s(up_s), up_c), simd.select_f64s(early, up_c, up_s));
        // P, Q and K of an entry α cosθ + β sinθ with (α, β) = (u, w); a quarter turn on P and Q change sign.
        let p = simd.mul_f64s(quarter, simd.mul_f64s(simd.sub_f64s(u, w), simd.add_f64s(u, w)));
        let q = simd.mul_f64s(half, simd.mul_f64s(u, w));
        let k = simd.mul_add_e_f64s(quarter, square, da);
        let bend = simd.mul_add_e_f64s(half, length, db);
        let farthest = simd.mul_add_e_f64s(bend, length, da);
        let (a, b) = (simd.mul_f64s(db, u), simd.mul_f64s(db, w));
        let (minus_a, minus_b) = (simd.neg_f64s(a), simd.neg_f64s(b));
        let (minus_p, minus_q) = (simd.neg_f64s(p), simd.neg_f64s(q));
        let n = m + xs.len();
        for (slot, point) in [(m, down), (n, up)] {
            let sum = simd.add_f64s(point.0, point.1);
            keys[slot] = simd.select_f64s(crosses, simd.div_f64s(point.1, sum), inert);
            (cs[slot], ss[slot]) = point;
        }
        // A falling crossing removes the piece beyond the knot: from (u, w), or (w, −u) a quarter turn back.
        jump_c[m] = simd.select_f64s(late, minus_b, minus_a);
        jump_s[m] = simd.select_f64s(late, a, minus_b);
        bend_p[m] = simd.select_f64s(late, p, minus_p);
        bend_q[m] = simd.select_f64s(late, q, minus_q);
        bend_k[m] = simd.neg_f64s(k);
        // A rising crossing adds this piece: of (u, w), or of (−w, u) a quarter turn later.
        jump_c[n] = simd.select_f64s(early, minus_b, a);
        jump_s[n] = simd.select_f64s(early, a, b);
        bend_p[n] = simd.select_f64s(early, minus_p, p);
        bend_q[n] = simd.select_f64s(early, minus_q, q);
        bend_k[n] = k;
        // At θ = 0 the first entry is beyond the knot if it rose before, the second if it falls later.
        let crossing = simd.select_f64s(crosses, one, zero);
        let early = simd.select_f64s(early, crossing, zero);
        let late = simd.select_f64s(late, crossing, zero);
        let (both, difference) = (simd.add_f64s(early, late), simd.sub_f64s(early, late));
        let terms = [
            simd.mul_add_e_f64s(a, early, simd.mul_f64s(b, late)),
            simd.sub_f64s(simd.mul_f64s(b, early), simd.mul_f64s(a, late)),
            simd.mul_f64s(p, difference),
            simd.mul_f64s(q, difference),
            simd.mul_f64s(k, both),
            // The piece at the largest value of the entry.
            simd.select_f64s(crosses, farthest, zero),
        ];
        for (sum, term) in sums.iter_mut().zip(terms) {
            *sum = simd.add_f64s(*sum, term);
        }
    }
    start.a += simd.reduce_sum_f64s(sums[0]);
    start.b += simd.reduce_sum_f64s(sums[1]);
    start.p += simd.reduce_sum_f64s(sums[2]);
    start.q += simd.reduce_sum_f64s(sums[3]);
    start.k += simd.reduce_sum_f64s(sums[4]);
    start.lowest += simd.reduce_sum_f64s(sums[5]);
}
