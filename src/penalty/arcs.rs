//! Σ λ_ij |X_ij|: piecewise sinusoidal on the circle.
//!
//! With one weight for both rows, `|cx + sy| + |cy − sx|` has period π/2: every column is reduced to the
//! first quadrant, where it has a single breakpoint, and four quadrants and both branches share
//! the same r breakpoints and running sums (A, B), h = A cosθ + B sinθ on an arc. With unequal
//! weights the period is π and there are 2r breakpoints. One sort, O(r log r).
//!
//! F is negative only where the smooth part is below −h, and h has a lower bound on the circle: the sum over
//! the columns of their lowest values. This often excludes the reflections, and all rotations but those by small angles;
//! the breakpoints of the gap in between are then not sorted.
//!
//! First the best value at a breakpoint is computed. A lower value requires an arc whose chord, lowered by
//! the largest curvature times width²/8, is below it. The derivatives at both ends exclude most of these
//! arcs; the minima inside the few others are computed.

use pulp::Simd;

use crate::numerics;
use crate::pair::{Arc, Arcs, Best, CirclePair, SAME_ANGLE, Scratch, Sizes, Trig};

/// Largest ratio (angle/chord)²/8 over arcs within a quadrant: (π/2)²/2/8.
const CHORD: f64 = 0.154_212_6;

/// Returns the global minimum over the arcs of one period (a quarter turn, or half a turn), in the four or
/// two copies of the period that make up the circle, on both branches.
///
/// The caller marks the entries that vanish there, see [`mark_vanishing`]. With `JUMPS` (half turns only) the
/// penalty is lower by the drop of its slot where an entry vanishes, which `sizes` decides, and by `start.k` at θ = 0.
#[inline(always)]
pub(super) fn search<S: Simd, const QUARTER: bool, const BENT: bool, const JUMPS: bool>(
    simd: S,
    pair: &CirclePair<'_>,
    scratch: &mut Scratch,
    start: Arc,
    sizes: Option<&Sizes<'_>>,
) -> Best {
    // Everything relative to the identity: smooth part a + p, penalty A (+ P + K) at θ = 0.
    let mut base = pair.rotation.a + pair.rotation.p + start.a;
    if BENT {
        base += start.p + start.k;
    }
    if JUMPS {
        base -= start.k;
    }
    // On a branch, F is negative only where the cosine of the angle to the minimum of the first harmonic is above
    // this number.
    let cosine = |f: &Trig| {
        let second = (f.p * f.p + f.q * f.q).sqrt();
        let least = start.lowest - second - base;
        (least - numerics::VALUE * f64::EPSILON * (f.magnitude() + base.abs())) / (f.a * f.a + f.b * f.b).sqrt()
    };
    let reflection = pair.reflection.filter(|f| !(cosine(f) >= 1.0));
    let near = cosine(&pair.rotation);
    // The cosine of half a period, π/4 or π/2, rounded up: at larger cosines there is a gap between periods.
    let enough = if QUARTER { 0.708 } else { 0.001 };
    if reflection.is_none() && near > enough {
        let gap = gap::<QUARTER>(&pair.rotation, near.min(1.0));
        scratch.breakpoints.narrow::<S, BENT>(simd, gap);
    }
    let end = if QUARTER { (0.0, 1.0) } else { (-1.0, 0.0) };
    scratch.breakpoints.lay_arcs::<S, BENT>(simd, start, end);
    scratch.breakpoints.exclude_arcs();
    if JUMPS && let Some(sizes) = sizes {
        scratch.breakpoints.lay_drops(2.0, |slot, distance| sizes.reaches(slot, distance / SAME_ANGLE), start.k);
    }
    let mut arcs = scratch.breakpoints.arcs();
    let mut best = Best::IDENTITY;
    for (f, reflect) in [(Some(pair.rotation), false), (reflection, true)] {
        let Some(f) = f else { continue };
        offer_points::<S, QUARTER, BENT, JUMPS>(simd, (&f, reflect), base, &mut arcs, &mut best);
    }

    for (f, reflect) in [(Some(pair.rotation), false), (reflection, true)] {
        let Some(f) = f else { continue };
        let least = bound_arcs::<S, BENT>(simd, &f, reflect, &mut arcs);
        if least >= best.value {
            continue;
        }
        offer_minima::<QUARTER, BENT>((&f, reflect), base, least, &arcs, &mut best);
    }
    best
}

/// Writes a lower bound of a branch on every arc, over all copies of the period, and returns the least one: the lower
/// end less the largest curvature.
///
/// The first harmonic is at least h less the smooth amplitude; a sinusoid that is positive at both ends of an arc is
/// positive, hence concave, in between.
#[inline(always)]
fn bound_arcs<S: Simd, const BENT: bool>(simd: S, f: &Trig, reflect: bool, arcs: &mut Arcs<'_>) -> f64 {
    let padded = arcs.a.len();
    let values = if reflect { &*arcs.reflection } else { &*arcs.rotation };
    let view = |array| S::as_simd_f64s(array).0;
    let (c0, c1) = (view(&arcs.c[..padded]), view(&arcs.c[1..=padded]));
    let (s0, s1) = (view(&arcs.s[..padded]), view(&arcs.s[1..=padded]));
    let (v0, v1) = (view(&values[..padded]), view(&values[1..=padded]));
    let (a, b) = (view(arcs.a), view(arcs.b));
    let [bp, bq, _] = arcs.bent.map(view);
    let (out, _) = S::as_mut_simd_f64s(arcs.bound);
    let (zero, four) = (simd.splat_f64s(0.0), simd.splat_f64s(4.0));
    let factor = simd.splat_f64s(CHORD);
    let reach = simd.splat_f64s((f.a * f.a + f.b * f.b).sqrt());
    let second = simd.splat_f64s(4.0 * (f.p * f.p + f.q * f.q).sqrt());
    for (m, out) in out.iter_mut().enumerate() {
        let (dc, ds) = (simd.sub_f64s(c1[m], c0[m]), simd.sub_f64s(s1[m], s0[m]));
        let chord = simd.mul_add_e_f64s(dc, dc, simd.mul_f64s(ds, ds));
        let (a, b) = (a[m], b[m]);
        let h0 = simd.mul_add_e_f64s(a, c0[m], simd.mul_f64s(b, s0[m]));
        let h1 = simd.mul_add_e_f64s(a, c1[m], simd.mul_f64s(b, s1[m]));
        let lowest = simd.sub_f64s(simd.min_f64s(h0, h1), reach);
        let amplitude = simd.add_f64s(simd.add_f64s(simd.abs_f64s(a), simd.abs_f64s(b)), reach);
        let first = simd.select_f64s(simd.less_than_f64s(lowest, zero), amplitude, simd.neg_f64s(lowest));
        let mut curvature = simd.add_f64s(first, second);
        if BENT {
            // −4 times the least value on the arc, from those at its ends.
            let square = simd.mul_add_e_f64s(bp[m], bp[m], simd.mul_f64s(bq[m], bq[m]));
            let below = simd.mul_f64s(simd.mul_f64s(four, factor), chord);
            let ends = (
                second_harmonic(simd, (bp[m], bq[m]), (c0[m], s0[m])),
                second_harmonic(simd, (bp[m], bq[m]), (c1[m], s1[m])),
            );
            let lowest = simd.sub_f64s(simd.min_f64s(ends.0, ends.1), simd.mul_f64s(below, simd.sqrt_f64s(square)));
            curvature = simd.sub_f64s(curvature, simd.mul_f64s(four, lowest));
        }
        let curvature = simd.max_f64s(zero, curvature);
        let below = simd.mul_f64s(simd.mul_f64s(factor, chord), curvature);
        *out = simd.sub_f64s(simd.min_f64s(v0[m], v1[m]), below);
    }
    for &m in arcs.excluded {
        arcs.bound[m] = f64::INFINITY;
    }
    let mut least = simd.splat_f64s(f64::INFINITY);
    for &bound in S::as_simd_f64s(&*arcs.bound).0 {
        least = simd.min_f64s(least, bound);
    }
    simd.reduce_min_f64s(least)
}

/// Offers the minima of a branch inside the arcs whose bounds, of which `least` is the least, are below the best value.
#[inline(always)]
fn offer_minima<const QUARTER: bool, const BENT: bool>(
    (f, reflect): (&Trig, bool),
    base: f64,
    least: f64,
    arcs: &Arcs<'_>,
    best: &mut Best,
) {
    let last = arcs.count - 1;
    let values = if reflect { &*arcs.reflection } else { &*arcs.rotation };
    let second = 4.0 * (f.p * f.p + f.q * f.q).sqrt();
    // The arc of the lowest bound first: its minimum excludes most of the others.
    let first = arcs.bound[..last].iter().position(|&v| v == least).unwrap_or(0);
    for m in std::iter::once(first).chain(0..last) {
        if arcs.bound[m] >= best.value {
            continue;
        }
        let ends = [(arcs.c[m], arcs.s[m]), (arcs.c[m + 1], arcs.s[m + 1])];
        // Bound on the depth of the arc below its ends in any copy; each copy is then tested with it.
        let dip = values[m].min(values[m + 1]) - arcs.bound[m];
        let [p, q, k] = match BENT {
            true => arcs.bent.map(|array| array[m]),
            false => [0.0; 3],
        };
        let h = Trig { a: arcs.a[m], b: arcs.b[m], p, q };
        let rest = k - base;
        let left = quadrants::<BENT>(f, &h, rest, ends[0]);
        let right = quadrants::<BENT>(f, &h, rest, ends[1]);
        for quadrant in (0..4).step_by(if QUARTER { 1 } else { 2 }) {
            if left[quadrant].min(right[quadrant]) - dip >= best.value {
                continue;
            }
            let f = f.quadrant(quadrant);
            let mut arc = Trig { a: f.a + h.a, b: f.b + h.b, ..f };
            let mut second = second;
            if BENT {
                (arc.p, arc.q) = (arc.p + h.p, arc.q + h.q);
                second = 4.0 * (arc.p * arc.p + arc.q * arc.q).sqrt();
            }
            if let Some((cv, sv)) = inside(&arc, ends, second, best.value - rest) {
                let (cq, sq) = turned(cv, sv, quadrant);
                best.offer(arc.value(cv, sv) + rest, cq, sq, reflect, None);
            }
        }
    }
}

/// Offers the point with the lowest value on a branch, over all copies of the period, and keeps the values of all points.
#[inline(always)]
pub(super) fn offer_points<S: Simd, const QUARTER: bool, const BENT: bool, const JUMPS: bool>(
    simd: S,
    (f, reflect): (&Trig, bool),
    base: f64,
    arcs: &mut Arcs<'_>,
    best: &mut Best,
) {
    let (last, padded) = (arcs.count - 1, arcs.a.len());
    let values = match reflect {
        true => &mut *arcs.reflection,
        false => &mut *arcs.rotation,
    };
    let (out, _) = S::as_mut_simd_f64s(values);
    let (c, _) = S::as_simd_f64s(&arcs.c[..padded]);
    let (s, _) = S::as_simd_f64s(&arcs.s[..padded]);
    let (a, _) = S::as_simd_f64s(arcs.a);
    let (b, _) = S::as_simd_f64s(arcs.b);
    let [bp, bq, bk] = arcs.bent.map(|array| S::as_simd_f64s(array).0);
    let (fa, fb) = (simd.splat_f64s(f.a), simd.splat_f64s(f.b));
    let (fp, fq) = (simd.splat_f64s(f.p), simd.splat_f64s(2.0 * f.q));
    let less = simd.splat_f64s(base);
    let mut least = simd.splat_f64s(f64::INFINITY);
    for (m, ((((&c, &s), &a), &b), out)) in c.iter().zip(s).zip(a).zip(b).zip(out).enumerate() {
        let first = simd.mul_add_e_f64s(fa, c, simd.mul_f64s(fb, s));
        let difference = simd.mul_f64s(simd.sub_f64s(c, s), simd.add_f64s(c, s));
        let second = simd.mul_add_e_f64s(fp, difference, simd.mul_f64s(fq, simd.mul_f64s(c, s)));
        let mut h = simd.mul_add_e_f64s(a, c, simd.mul_add_e_f64s(b, s, simd.neg_f64s(less)));
        if BENT {
            let bent = second_harmonic(simd, (bp[m], bq[m]), (c, s));
            h = simd.add_f64s(simd.add_f64s(h, bk[m]), bent);
        }
        let even = simd.sub_f64s(second, simd.abs_f64s(first));
        let lowest = if QUARTER {
            let quarter = simd.sub_f64s(simd.mul_f64s(fb, c), simd.mul_f64s(fa, s));
            let odd = simd.neg_f64s(simd.add_f64s(second, simd.abs_f64s(quarter)));
            simd.min_f64s(even, odd)
        } else {
            even
        };
        *out = simd.add_f64s(h, lowest);
        let at = match JUMPS {
            true => simd.sub_f64s(*out, bp[m]),
            false => *out,
        };
        least = simd.min_f64s(least, at);
    }
    let least = simd.reduce_min_f64s(least);
    let fill = values[last];
    values[padded..].fill(fill);
    if least < best.value {
        let drops = arcs.bent[0];
        let mut places = values[..=last].iter().enumerate();
        let m = places.position(|(m, &v)| if JUMPS { v - drops[m] } else { v } == least).unwrap_or(last);
        let (c, s) = (arcs.c[m], arcs.s[m]);
        let (first, quarter, second) = harmonics(f, c, s);
        let (cm, sm) = if !QUARTER || second - first.abs() <= -second - quarter.abs() {
            let sign = if first > 0.0 { -1.0 } else { 1.0 };
            (sign * c, sign * s)
        } else {
            let sign = if quarter > 0.0 { -1.0 } else { 1.0 };
            (-sign * s, sign * c)
        };
        best.offer(least, cm, sm, reflect, Some(m));
    }
}

/// Returns the ends of the gap: the angles farther from the minimum of the first harmonic than a `cosine` allows. The
/// angles between are less than a period, and the identity is among them.
#[inline(always)]
fn gap<const QUARTER: bool>(f: &Trig, cosine: f64) -> [(f64, f64); 2] {
    let length = (f.a * f.a + f.b * f.b).sqrt();
    let (c, s) = (-f.a / length, -f.b / length);
    let sine = ((1.0 - cosine) * (1.0 + cosine)).sqrt();
    let after = (c * cosine - s * sine, (s * cosine + c * sine).max(0.0));
    let before = (c * cosine + s * sine, (s * cosine - c * sine).min(0.0));
    let turned = match QUARTER {
        true => (-before.1, before.0),
        false => (-before.0, -before.1),
    };
    [after, turned]
}

/// Marks the columns with an entry that vanishes at the best point; slots repeat after `stride` columns.
#[inline(always)]
pub(super) fn mark_vanishing(best: &Best, scratch: &mut Scratch, stride: usize) {
    let stride = stride as u32;
    if let Some(m) = best.breakpoint
        && scratch.breakpoints.is_breakpoint(m)
    {
        for k in scratch.breakpoints.at_same_angle(m, numerics::TIE) {
            scratch.vanishing.push(k.checked_sub(stride).unwrap_or(k));
        }
    }
}

/// P cos2θ + Q sin2θ at (cosθ, sinθ).
#[inline(always)]
fn second_harmonic<S: Simd>(simd: S, (p, q): (S::f64s, S::f64s), (c, s): (S::f64s, S::f64s)) -> S::f64s {
    let difference = simd.mul_f64s(simd.sub_f64s(c, s), simd.add_f64s(c, s));
    let sine = simd.mul_f64s(simd.add_f64s(c, c), s);
    simd.mul_add_e_f64s(p, difference, simd.mul_f64s(q, sine))
}

/// Returns the first harmonic at θ and at θ + π/2, and the second harmonic at θ.
#[inline(always)]
fn harmonics(f: &Trig, c: f64, s: f64) -> (f64, f64, f64) {
    (f.a * c + f.b * s, f.b * c - f.a * s, f.p * (c - s) * (c + s) + 2.0 * f.q * c * s)
}

/// Returns f(θ + kπ/2) + h(θ) + `rest` for k = 0, …, 3.
#[inline(always)]
fn quadrants<const BENT: bool>(f: &Trig, h: &Trig, mut rest: f64, (c, s): (f64, f64)) -> [f64; 4] {
    let (first, quarter, second) = harmonics(f, c, s);
    rest += h.a * c + h.b * s;
    if BENT {
        rest += h.p * (c - s) * (c + s) + 2.0 * h.q * c * s;
    }
    [rest + second + first, rest - second + quarter, rest + second - first, rest - second - quarter]
}

/// Returns the best local minimum strictly inside an arc (at most a quadrant long), if one may be below
/// `ceiling`. `second` is the amplitude of the second derivative of the second harmonic.
#[inline(always)]
fn inside(arc: &Trig, ends: [(f64, f64); 2], second: f64, ceiling: f64) -> Option<(f64, f64)> {
    let [(c0, s0), (c1, s1)] = ends;
    let (dc, ds) = (c1 - c0, s1 - s0);
    let chord = dc * dc + ds * ds;
    let first = [arc.a * c0 + arc.b * s0, arc.a * c1 + arc.b * s1];
    let positive = first[0] >= 0.0 && first[1] >= 0.0;
    let amplitude = arc.a.abs() + arc.b.abs();
    let upper = second + if positive { -first[0].min(first[1]) } else { amplitude };
    let values = [arc.value(c0, s0), arc.value(c1, s1)];
    if upper <= 0.0 || values[0].min(values[1]) - CHORD * chord * upper >= ceiling {
        return None;
    }
    // f(t) ≥ f(end) + |slope|·d − ½·lower·d² with f'' ≥ −lower: an end that rises steeply enough
    // into the arc is below everything inside.
    let lower = amplitude + second;
    // Within a quadrant angle/chord is at most (π/2)/√2 (rounded up).
    let needed = 0.5 * lower * 1.110_720_8 * chord.sqrt();
    let slopes = (arc.slope(c0, s0), arc.slope(c1, s1));
    if slopes.0 >= needed || -slopes.1 >= needed {
        return None;
    }
    // f'' is at least minus the largest values of the two harmonics (the second counts four times);
    // on an arc a harmonic exceeds its ends by at most its second derivative times width²/8.
    let overshoot = CHORD * chord * (amplitude + 4.0 * second);
    let harmonic = |value: f64, first: f64| 4.0 * (value - first);
    let convex =
        first[0].max(first[1]) + harmonic(values[0], first[0]).max(harmonic(values[1], first[1])) + overshoot < 0.0;
    if convex {
        // One minimum, where the slope changes sign, if it does.
        return (slopes.0 < 0.0 && slopes.1 > 0.0).then(|| newton(arc, ends, slopes));
    }
    let mut found: Option<(f64, f64)> = None;
    let mut lowest = ceiling;
    for &(c, s) in arc.minima().points() {
        if c0 * s - s0 * c > 0.0 && c * s1 - s * c1 > 0.0 {
            let value = arc.value(c, s);
            if value < lowest {
                lowest = value;
                found = Some((c, s));
            }
        }
    }
    found
}

/// Returns the zero of the slope on an arc where the function is convex and the slope changes sign, by
/// Newton's method from the secant point, with bisection wherever a step would leave the bracket.
#[inline(always)]
fn newton(arc: &Trig, ends: [(f64, f64); 2], slopes: (f64, f64)) -> (f64, f64) {
    let unit = |c: f64, s: f64| {
        let inverse = 1.0 / (c * c + s * s).sqrt();
        (c * inverse, s * inverse)
    };
    let [mut low, mut high] = ends;
    let (u, w) = (slopes.1, -slopes.0);
    let sum = u + w;
    let (u, w) = (u / sum, w / sum);
    let mut point = unit(u * low.0 + w * high.0, u * low.1 + w * high.1);
    for _ in 0..numerics::STEPS {
        let (c, s) = point;
        let slope = arc.slope(c, s);
        if slope < 0.0 {
            low = point;
        } else {
            high = point;
        }
        let curvature = -(arc.a * c + arc.b * s) - 4.0 * (arc.p * (c - s) * (c + s) + 2.0 * arc.q * c * s);
        let step = -slope / curvature;
        if !(step.abs() > 2.0 * f64::EPSILON) {
            break;
        }
        let next = unit(c - s * step, s + c * step);
        let inside =
            low.0 * next.1 - low.1 * next.0 >= 0.0 && next.0 * high.1 - next.1 * high.0 >= 0.0 && step.abs() < 1.0;
        point = if inside { next } else { unit(low.0 + high.0, low.1 + high.1) };
        // Quadratic convergence: the next step would be below rounding.
        if inside && step.abs() < 1e-9 {
            break;
        }
    }
    point
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

#[cfg(test)]
mod tests {
    use std::f64::consts::{FRAC_PI_2, PI};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        /// Each minimum inside an arc below both ends and the ceiling is found, and each result is a minimum.
        #[test]
        fn minima_inside_an_arc(
            (a, b) in (-1.0..1.0f64, -1.0..1.0f64),
            (p, q) in (-1.0..1.0f64, -1.0..1.0f64),
            bend in prop_oneof![Just(0.0), Just(0.05), Just(1.0)],
            (from, width) in (-3.0..3.0f64, 0.01..FRAC_PI_2),
            drop in prop_oneof![Just(f64::INFINITY), -0.5..0.5f64],
        ) {
            let arc = Trig { a, b, p: bend * p, q: bend * q };
            let at = |t: f64| (t.cos(), t.sin());
            let value = |(c, s): (f64, f64)| arc.value(c, s);
            let ends = [at(from), at(from + width)];
            let lower_end = value(ends[0]).min(value(ends[1]));
            let ceiling = lower_end + drop;
            let second = 4.0 * arc.p.hypot(arc.q);
            let found = inside(&arc, ends, second, ceiling);
            let within = (1..400).map(|k| value(at(from + width * f64::from(k) / 400.0)));
            let least = within.fold(f64::INFINITY, f64::min);
            if least < lower_end.min(ceiling) - 1e-6 {
                let (c, s) = found.expect("a minimum inside");
                prop_assert!(value((c, s)) <= least + 1e-12);
            }
            if let Some((c, s)) = found {
                prop_assert!((c.hypot(s) - 1.0).abs() < 1e-14);
                let [(c0, s0), (c1, s1)] = ends;
                prop_assert!(c0 * s - s0 * c >= -1e-14 && c * s1 - s * c1 >= -1e-14);
                prop_assert!(arc.slope(c, s).abs() <= 1e-11 * arc.magnitude());
            }
        }
    }

    /// Where the curvature nearly vanishes inside an arc, Newton steps leave the arc and bisection
    /// takes over.
    #[test]
    fn a_flat_minimum_is_bracketed() {
        for (flat, drift) in [(0.0, 1e-9), (1e-6, -1e-7), (0.0, -1e-3), (1e-3, 1e-12)] {
            for turn in [0.0, 1.0, 2.5f64] {
                // cos φ + ¼(1 − flat) cos 2φ, φ = θ − turn, is convex around π, with the curvature
                // `flat` there.
                let (p, q) = (0.25 * (1.0 - flat), 2.0 * turn);
                let arc = Trig {
                    a: turn.cos() - drift * turn.sin(),
                    b: turn.sin() + drift * turn.cos(),
                    p: p * q.cos(),
                    q: p * q.sin(),
                };
                for (before, after) in [(0.7, 0.7), (0.2, 1.3), (1.3, 0.2), (0.3, 0.3)] {
                    let at = |t: f64| (t.cos(), t.sin());
                    let ends = [at(turn + PI - before), at(turn + PI + after)];
                    let slopes = ends.map(|(c, s)| arc.slope(c, s));
                    assert!(slopes[0] < 0.0 && slopes[1] > 0.0);
                    let (c, s) = newton(&arc, ends, slopes.into());
                    assert!(arc.slope(c, s).abs() < 1e-14, "{flat} {drift} {before}");
                    let [(c0, s0), (c1, s1)] = ends;
                    assert!(c0 * s - s0 * c > 0.0 && c * s1 - s * c1 > 0.0);
                }
            }
        }
    }
}
