//! Penalties on the hyperbola.
//!
//! With z± = x ± y a boost takes a column (x, y) to `½(σ₁(u z₊ + z₋/u), σ₂(u z₊ − z₋/u))`: one of the two
//! entries, the smaller one, vanishes at `u² = |z₋/z₊|`, the other never. A lightlike column (x = ±y) has no
//! such point; the axis (one entry zero already) is u = 1.
//!
//! * ℓ0: the count is constant but at those points; candidates are each of them on the four
//!   components, and the minima of the smooth part. O(r) plus a sort.
//! * ℓ1: with one weight, `|x′| + |y′| = max(u|z₊|, |z₋|/u)` on all four components: running sums (A, B)
//!   over the sorted points, h = A u + B/u on every arc, which is again a [`Hyp`].
//! * X ≥ 0: the feasible u of a component are one interval, [max u_k, ∞) or (0, min u_k].

use crate::numerics;
use crate::pair::{BestBoost, Hyp, HyperbolaPair, Scratch};

/// Returns the global minimum of the smooth part over the four components.
#[inline(always)]
pub(super) fn none(pair: &HyperbolaPair<'_>, scratch: &mut Scratch) -> BestBoost {
    scratch.clear();
    let mut best = BestBoost::IDENTITY;
    if let Some(unbounded) = unbounded(pair, [0.0; 2]) {
        return unbounded;
    }
    smooth_minima(pair, 0.0, &mut best);
    best
}

/// Returns the result if the pair is unbounded along a component under a penalty with these slopes of its tails.
#[inline(always)]
fn unbounded(pair: &HyperbolaPair<'_>, slopes: [f64; 2]) -> Option<BestBoost> {
    let mut branches = pair.branches.iter().enumerate();
    branches.find_map(|(k, branch)| {
        let upwards = pair.recession(k, slopes)?;
        Some(BestBoost::unbounded(branch.signs, upwards))
    })
}

/// Offers the minima of the smooth part of every component, and the ends of a bounded range, at
/// the given penalty.
#[inline(always)]
fn smooth_minima(pair: &HyperbolaPair<'_>, penalty: f64, best: &mut BestBoost) {
    let (lo, hi) = pair.range;
    let base = pair.branches[0].f.value(1.0);
    for (k, branch) in pair.branches.iter().enumerate() {
        if branch.f.lower_bound() - base + penalty >= best.value {
            continue;
        }
        for &u in branch.f.minima(lo, hi).points() {
            best.offer(pair.relative(k, u) + penalty, u, branch.signs, None);
        }
        if pair.bounded {
            for u in [lo, hi] {
                best.offer(pair.relative(k, u) + penalty, u, branch.signs, None);
            }
        }
    }
}

/// Returns the u at which the smaller entry of a column vanishes, if there is one.
#[inline(always)]
fn vanishing_point(x: f64, y: f64) -> Option<f64> {
    let (plus, minus) = (x + y, x - y);
    if plus == 0.0 || minus == 0.0 {
        return None;
    }
    // Where an entry is zero already, the quotient is exactly ±1.
    let u = (minus / plus).abs().sqrt();
    (u > 0.0 && u.is_finite()).then_some(u)
}

/// Writes the sorted vanishing points with their columns to `scratch.order`.
#[inline(always)]
fn sort_points(pair: &HyperbolaPair<'_>, scratch: &mut Scratch) {
    scratch.order.clear();
    for (k, (&x, &y)) in pair.x.iter().zip(pair.y).enumerate() {
        if let Some(u) = vanishing_point(x, y) {
            scratch.order.push((u, k as u32));
        }
    }
    scratch.order.sort_unstable_by(|l, r| l.0.total_cmp(&r.0));
}

/// Returns whether two vanishing points are equal up to rounding.
#[inline(always)]
fn same(u: f64, v: f64) -> bool {
    (u - v).abs() <= numerics::TIE * u
}

/// Marks the columns that vanish at the breakpoint `at` of `order`.
#[inline(always)]
fn mark_vanishing(scratch: &mut Scratch, at: usize) {
    let u = scratch.order[at].0;
    for &(v, k) in &scratch.order {
        if same(u, v) {
            scratch.vanishing.push(k);
        }
    }
}

/// Returns the global minimum for λ‖X‖₀.
#[inline(always)]
pub(super) fn l0(lambda: f64, pair: &HyperbolaPair<'_>, scratch: &mut Scratch) -> BestBoost {
    scratch.clear();
    if let Some(unbounded) = unbounded(pair, [0.0; 2]) {
        return unbounded;
    }
    sort_points(pair, scratch);
    // Nonzero entries away from all breakpoints, and at the identity.
    let (mut full, mut now) = (0usize, 0usize);
    for (&x, &y) in pair.x.iter().zip(pair.y) {
        let (a, b) = (usize::from(x != 0.0), usize::from(y != 0.0));
        now += a + b;
        full += 2 * (a | b);
    }
    let mut best = BestBoost::IDENTITY;
    let (lo, hi) = pair.range;
    let mut start = 0;
    while start < scratch.order.len() {
        let u = scratch.order[start].0;
        let mut end = start + 1;
        while end < scratch.order.len() && same(u, scratch.order[end].0) {
            end += 1;
        }
        if u >= lo && u <= hi {
            let penalty = lambda * ((full - (end - start)) as f64 - now as f64);
            for (k, branch) in pair.branches.iter().enumerate() {
                best.offer(pair.relative(k, u) + penalty, u, branch.signs, Some(start));
            }
        }
        start = end;
    }
    smooth_minima(pair, lambda * (full as f64 - now as f64), &mut best);
    if let Some(at) = best.breakpoint {
        mark_vanishing(scratch, at);
    }
    best
}

/// Returns the global minimum for Σ w|X|, given the weights of each column. (The arcs share running sums.)
#[inline(always)]
pub(super) fn l1(weights: impl Fn(usize) -> (f64, f64), pair: &HyperbolaPair<'_>, scratch: &mut Scratch) -> BestBoost {
    scratch.clear();
    scratch.jumps.clear();
    // h = A u + B/u: left of all breakpoints, and the total slopes of both tails.
    let (mut a, mut b, mut identity) = (0.0, 0.0, 0.0);
    let mut up = 0.0;
    for (k, (&x, &y)) in pair.x.iter().zip(pair.y).enumerate() {
        let (wx, wy) = weights(k);
        identity += wx * x.abs() + wy * y.abs();
        let (plus, minus) = (0.5 * (x + y).abs(), 0.5 * (x - y).abs());
        // The larger entry keeps its sign: |large| = plus·u + minus/u, |small| = |plus·u − minus/u|.
        let (large, small) = if x.abs() > y.abs() { (wx, wy) } else { (wy, wx) };
        up += (large + small) * plus;
        a += (large - small) * plus;
        b += (large + small) * minus;
        if vanishing_point(x, y).is_some() {
            scratch.jumps.push([2.0 * small * plus, -2.0 * small * minus]);
        } else {
            // Lightlike: one of plus, minus is zero, and so is one of the two terms, for all u.
            a += 2.0 * small * plus;
            scratch.jumps.push([0.0; 2]);
        }
    }
    if let Some(unbounded) = unbounded(pair, [up, b]) {
        return unbounded;
    }
    sort_points(pair, scratch);
    let mut best = BestBoost::IDENTITY;
    let (lo, hi) = pair.range;
    let base = pair.branches[0].f.value(1.0) + identity;
    let mut from = lo;
    for at in 0..=scratch.order.len() {
        let (to, end) = match scratch.order.get(at) {
            Some(&(u, _)) if u < hi => (u, false),
            _ => (hi, true),
        };
        for branch in pair.branches.iter().filter(|_| to > lo) {
            let f = Hyp { a_plus: branch.f.a_plus + a, a_minus: branch.f.a_minus + b, ..branch.f };
            if end {
                if pair.bounded {
                    best.offer(f.value(to) - base, to, branch.signs, None);
                }
            } else {
                best.offer(f.value(to) - base, to, branch.signs, Some(at));
            }
            if pair.bounded && from == lo {
                best.offer(f.value(lo) - base, lo, branch.signs, None);
            }
            if to > from && f.lower_bound() - base < best.value {
                for &u in f.minima(from, to).points() {
                    best.offer(f.value(u) - base, u, branch.signs, None);
                }
            }
        }
        if end {
            break;
        }
        let jump = scratch.jumps[scratch.order[at].1 as usize];
        a += jump[0];
        b += jump[1];
        from = to.max(lo);
    }
    if let Some(at) = best.breakpoint
        && scratch.order[at].0 == best.boost.u
    {
        mark_vanishing(scratch, at);
    }
    best
}

/// Returns the global minimum for X ≥ 0 from a feasible pair of rows.
#[inline(always)]
pub(super) fn nonnegative(pair: &HyperbolaPair<'_>, scratch: &mut Scratch) -> BestBoost {
    scratch.clear();
    sort_points(pair, scratch);
    let (range_lo, range_hi) = pair.range;
    // (+, +) requires u z₊ ≥ |z₋|/u; (+, −) requires z₋/u ≥ u z₊, and (−, +) the mirror image.
    let (mut first_above, mut second_above, mut any) = (true, true, false);
    for (&x, &y) in pair.x.iter().zip(pair.y) {
        if x != 0.0 || y != 0.0 {
            any = true;
            first_above &= x > y;
            second_above &= y > x;
        }
    }
    let mut best = BestBoost::IDENTITY;
    if !any {
        return best;
    }
    let points = scratch.order.len();
    let intervals = [
        (0, true, points.checked_sub(1), true),
        (1, first_above, (points > 0).then_some(0), false),
        (2, second_above, (points > 0).then_some(0), false),
    ];
    for (k, feasible, end, upwards) in intervals {
        if !feasible {
            continue;
        }
        let branch = &pair.branches[k];
        let tail = &branch.tails[usize::from(!upwards)];
        if !pair.bounded && tail.falls(0.0, 0.0) {
            return BestBoost::unbounded(branch.signs, upwards);
        }
        let (mut lo, mut hi) = pair.range;
        if let Some(at) = end {
            let u = scratch.order[at].0;
            if upwards {
                lo = lo.max(u);
            } else {
                hi = hi.min(u);
            }
            if lo > hi {
                continue;
            }
            if u >= range_lo && u <= range_hi {
                best.offer(pair.relative(k, u), u, branch.signs, Some(at));
            }
        }
        if pair.bounded {
            for u in [lo, hi] {
                best.offer(pair.relative(k, u), u, branch.signs, None);
            }
        }
        for &u in branch.f.minima(lo, hi).points() {
            best.offer(pair.relative(k, u), u, branch.signs, None);
        }
    }
    if let Some(at) = best.breakpoint {
        mark_vanishing(scratch, at);
    }
    best
}
