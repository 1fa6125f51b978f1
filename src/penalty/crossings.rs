//! Angles at which entries vanish, with the jumps of Σ λ_ij |X_ij| there, in the slots of the breakpoints.

use pulp::Simd;

use crate::pair::{Arc, Breakpoints, CirclePair};

/// Returns (u, w) = (|x|, |y|) for equal signs, else (|y|, |x|).
#[inline(always)]
pub(super) fn first_quadrant<S: Simd>(simd: S, x: S::f64s, y: S::f64s) -> (S::f64s, S::f64s) {
    let zero = simd.splat_f64s(0.0);
    let (ax, ay) = (simd.abs_f64s(x), simd.abs_f64s(y));
    let (px, py) = (simd.less_than_f64s(zero, x), simd.less_than_f64s(zero, y));
    let u = simd.select_f64s(px, simd.select_f64s(py, ax, ay), simd.select_f64s(py, ay, ax));
    let w = simd.select_f64s(px, simd.select_f64s(py, ay, ax), simd.select_f64s(py, ax, ay));
    (u, w)
}

/// Sets the breakpoint of every column in the first quadrant, for one weight, and returns (A, B) just after
/// θ = 0. A column with a zero entry breaks at the axis, which is a candidate anyway.
#[inline(always)]
pub(super) fn quarter_period<S: Simd>(simd: S, lambda: f64, pair: &CirclePair<'_>, points: &mut Breakpoints) -> Arc {
    points.resize(pair.x.len());
    crossings_of_zero(simd, lambda, pair, points)
}

/// Sets the breakpoints of [`quarter_period`] in the first slots of `points`, one for each entry of a row.
#[inline(always)]
pub(super) fn crossings_of_zero<S: Simd>(simd: S, lambda: f64, pair: &CirclePair<'_>, points: &mut Breakpoints) -> Arc {
    let slots = points.slots(0, pair.x.len());
    let (xs, _) = S::as_simd_f64s(pair.x);
    let (ys, _) = S::as_simd_f64s(pair.y);
    let [keys, cs, ss, jcs, jss, ..] = slots.vectors::<S>();
    let zero = simd.splat_f64s(0.0);
    let one = simd.splat_f64s(1.0);
    let inert = simd.splat_f64s(Breakpoints::INERT);
    let twice = simd.splat_f64s(2.0 * lambda);
    let (mut a, mut b, mut lengths) = (zero, zero, zero);
    for ((((((&x, &y), key), c), s), jc), js) in xs.iter().zip(ys).zip(keys).zip(cs).zip(ss).zip(jcs).zip(jss) {
        let (ax, ay) = (simd.abs_f64s(x), simd.abs_f64s(y));
        let (u, w) = first_quadrant(simd, x, y);
        let sum = simd.add_f64s(ax, ay);
        let full = simd.less_than_f64s(zero, simd.min_f64s(ax, ay));
        // Scaled by the sum nothing over- or underflows.
        let nonzero = simd.less_than_f64s(zero, sum);
        let divisor = simd.select_f64s(nonzero, sum, one);
        let (cu, su) = (simd.div_f64s(u, divisor), simd.div_f64s(w, divisor));
        let square = simd.mul_add_e_f64s(cu, cu, simd.mul_f64s(su, su));
        let root = simd.sqrt_f64s(simd.select_f64s(nonzero, square, one));
        let inverse = simd.div_f64s(one, root);
        lengths = simd.mul_add_e_f64s(sum, root, lengths);
        *key = simd.select_f64s(full, su, inert);
        *c = simd.mul_f64s(cu, inverse);
        *s = simd.mul_f64s(su, inverse);
        *jc = simd.neg_f64s(simd.mul_f64s(twice, w));
        *js = simd.mul_f64s(twice, u);
        a = simd.add_f64s(a, sum);
        b = simd.add_f64s(b, simd.select_f64s(full, simd.sub_f64s(w, u), sum));
    }
    Arc {
        a: lambda * simd.reduce_sum_f64s(a),
        b: lambda * simd.reduce_sum_f64s(b),
        lowest: lambda * simd.reduce_sum_f64s(lengths),
        ..Arc::default()
    }
}

/// Sets the breakpoints in (0, π) of weighted entries, for the weights of both rows by column: first those of the first
/// row, then those of the second. Returns (A, B) at θ = 0.
#[inline(always)]
pub(super) fn half_period<S: Simd>(
    simd: S,
    weights: impl Fn(usize) -> (f64, f64),
    pair: &CirclePair<'_>,
    points: &mut Breakpoints,
) -> Arc {
    let stride = pair.x.len();
    points.resize(2 * stride + 1);
    // A breakpoint without a jump keeps every arc within a quadrant.
    points.set(2 * stride, 1.0, (0.0, 1.0), (0.0, 0.0));
    let slots = points.slots(0, 2 * stride);
    for (k, (&x, &y)) in pair.x.iter().zip(pair.y).enumerate() {
        let moves = x != 0.0 || y != 0.0;
        (slots.jump_c[k], slots.jump_c[stride + k]) = if moves { weights(k) } else { (0.0, 0.0) };
    }
    let (xs, _) = S::as_simd_f64s(pair.x);
    let (ys, _) = S::as_simd_f64s(pair.y);
    let [keys, cs, ss, jcs, jss, ..] = slots.vectors::<S>();
    let (zero, one) = (simd.splat_f64s(0.0), simd.splat_f64s(1.0));
    let (inert, minus_two) = (simd.splat_f64s(Breakpoints::INERT), simd.splat_f64s(-2.0));
    let (mut a, mut b, mut lowest) = (zero, zero, zero);
    for (m, (&x, &y)) in xs.iter().zip(ys).enumerate() {
        let n = m + xs.len();
        let (ax, ay) = (simd.abs_f64s(x), simd.abs_f64s(y));
        let sum = simd.add_f64s(ax, ay);
        let nonzero = simd.less_than_f64s(zero, sum);
        let divisor = simd.select_f64s(nonzero, sum, one);
        let part = simd.div_f64s(one, divisor);
        let (cx, cy) = (simd.div_f64s(ax, divisor), simd.div_f64s(ay, divisor));
        let square = simd.mul_add_e_f64s(cx, cx, simd.mul_f64s(cy, cy));
        let root = simd.sqrt_f64s(simd.select_f64s(nonzero, square, one));
        let inverse = simd.div_f64s(one, root);
        // A column is lowest where one of its entries is zero.
        let least = simd.min_f64s(jcs[m], jcs[n]);
        lowest = simd.mul_add_e_f64s(least, simd.mul_f64s(sum, root), lowest);
        // α cosθ + β sinθ with α ≥ 0: up to sign (x, y) for the first row and (y, −x) for the second.
        let turned = |sign: S::f64s, value: S::f64s| {
            let positive = simd.less_than_f64s(zero, sign);
            let negative = simd.less_than_f64s(sign, zero);
            let other = simd.select_f64s(negative, simd.neg_f64s(value), simd.abs_f64s(value));
            simd.select_f64s(positive, value, other)
        };
        for (slot, alpha, beta) in [(m, ax, turned(x, y)), (n, ay, turned(y, simd.neg_f64s(x)))] {
            let weight = jcs[slot];
            a = simd.mul_add_e_f64s(weight, alpha, a);
            b = simd.mul_add_e_f64s(weight, beta, b);
            let crosses = simd.less_than_f64s(zero, alpha);
            // (c, s) ∝ (−β, α), s > 0; the key is the ℓ1 angle in [0, 2].
            let c = simd.neg_f64s(simd.mul_f64s(beta, part));
            let s = simd.mul_f64s(alpha, part);
            let key = simd.select_f64s(simd.less_than_f64s(c, zero), simd.sub_f64s(one, c), s);
            keys[slot] = simd.select_f64s(crosses, key, inert);
            (cs[slot], ss[slot]) = (simd.mul_f64s(c, inverse), simd.mul_f64s(s, inverse));
            let twice = simd.select_f64s(crosses, simd.mul_f64s(minus_two, weight), zero);
            (jcs[slot], jss[slot]) = (simd.mul_f64s(twice, alpha), simd.mul_f64s(twice, beta));
        }
    }
    Arc {
        a: simd.reduce_sum_f64s(a),
        b: simd.reduce_sum_f64s(b),
        lowest: simd.reduce_sum_f64s(lowest),
        ..Arc::default()
    }
}
