//! The pair problem for any piecewise quadratic penalty, straight from its definition.
//!
//! Breakpoints are the points of the curve at which an entry crosses a level; between two of them the smooth
//! part plus h is a [`Trig`](crate::pair::Trig) or [`Hyp`](crate::pair::Hyp), whose minima are known. The
//! pieces are summed once, and from one arc to the next only those of the entries that cross change.
//! Candidates: every minimum inside an arc, and every breakpoint with the entries that cross there exactly on
//! their levels, where h may jump. O(lr log lr) per pair for l levels.

use std::ops::Range;

use super::Form;
use crate::numerics;
use crate::pair::{
    Best, BestBoost, CirclePair, Crossing, Crossings, Curve, HyperbolaPair, Moving, ON_CIRCLE, OnCircle, OnHyperbola,
    Piece, Scratch, Sizes,
};

/// [`Penalty::pair_work`](super::Penalty::pair_work) per level, measured at r = 20.
const LEVEL_WORK: f64 = 5.0;

/// [`Penalty::pair_work`](super::Penalty::pair_work) of these solvers.
pub(super) fn pair_work(breakpoints: &[f64]) -> f64 {
    LEVEL_WORK * breakpoints.len().max(1) as f64
}

/// Returns the nonzero columns of two rows, with their entries. A column of two zeros keeps its entries and
/// penalty. (Padding is left out as well.)
fn columns<'a>(x: &'a [f64], y: &'a [f64]) -> impl Iterator<Item = (usize, (f64, f64))> {
    let entries = x.iter().copied().zip(y.iter().copied());
    entries.enumerate().filter(|(_, entries)| *entries != (0.0, 0.0))
}

/// Returns the current penalty of the nonzero columns.
fn cost(penalty: &impl Form, (i, j): (usize, usize), x: &[f64], y: &[f64]) -> f64 {
    columns(x, y).map(|(k, (x, y))| penalty.entry(i, k, x) + penalty.entry(j, k, y)).sum()
}

/// Returns the current piece of an entry.
fn piece(penalty: &impl Form, entry: &Moving) -> Piece {
    let left = match entry.above {
        0 => f64::NEG_INFINITY,
        above => penalty.breakpoints()[above - 1],
    };
    penalty.piece(entry.row, entry.column, left)
}

/// Returns the entries that are on levels at a breakpoint, each with its best level and the penalty there.
fn meetings<'a>(
    penalty: &'a impl Form,
    entries: &'a [Moving],
    met: &'a [Crossing],
) -> impl Iterator<Item = (&'a Moving, f64, f64)> {
    let first = |&k: &usize| met[..k].iter().all(|c| c.entry != met[k].entry);
    (0..met.len()).filter(first).filter_map(move |k| {
        let entry = &entries[met[k].entry];
        let own = met[k..].iter().filter(|c| c.entry == met[k].entry);
        own.map(|c| (entry, c.level, penalty.entry(entry.row, entry.column, c.level)))
            .min_by(|l, r| l.2.total_cmp(&r.2))
    })
}

/// Returns `value` with the entries that meet levels on these, infinite if any of the `blocked` entries in infinite pieces
/// does not.
fn on_levels(penalty: &impl Form, entries: &[Moving], met: &[Crossing], (mut value, mut blocked): (f64, usize)) -> f64 {
    for (entry, level, at) in meetings(penalty, entries, met) {
        let [a, b, c] = piece(penalty, entry);
        if a.is_finite() {
            value -= a + level * (b + 0.5 * c * level);
        } else {
            blocked -= 1;
        }
        value += at;
    }
    if blocked == 0 { value } else { f64::INFINITY }
}

/// Collects the crossings of a `group` at one breakpoint, and those of the small columns around it: these reach further
/// than the breakpoints that count as equal, up to `widest`, and around the circle.
fn gather<C: Curve>(points: &[Crossing], group: Range<usize>, widest: f64, met: &mut Vec<Crossing>) {
    let Range { start, end } = group;
    let at = points[start].at;
    let within = |c: &&Crossing| C::distance(at, c.at) <= widest;
    let after = points[end..].iter().chain(&points[..start]).take_while(within);
    let before = points[..start].iter().rev().chain(points[end..].iter().rev()).take_while(within);
    met.clear();
    met.extend(&points[group]);
    met.extend(after.chain(before).filter(|c| C::distance(at, c.at) <= c.reach));
}

/// Returns the least value below `best` on the curve within `range`, and its point. With `ends`, both ends
/// are candidates. Reads the sorted crossings of `scratch`.
fn sweep<C: Curve>(
    penalty: &impl Form,
    mut curve: C,
    scratch: &mut Scratch,
    range: (f64, f64),
    ends: bool,
    mut best: f64,
) -> Option<(f64, C::Point)> {
    let Scratch { crossings, vanishing, pinned, .. } = scratch;
    let Crossings { entries, points, met, widest } = crossings;
    let (points, widest) = (&points[..], *widest);
    // Number of entries in infinite pieces.
    let mut outside = 0usize;
    let mut take = |curve: &mut C, entry: &Moving, sign: f64| {
        let piece = piece(penalty, entry);
        if piece[0].is_finite() {
            curve.add(sign, piece, entry);
        } else {
            outside = outside.wrapping_add_signed(sign as isize);
        }
        outside
    };
    let mut blocked = 0;
    for entry in &mut *entries {
        blocked = take(&mut curve, entry, 1.0);
    }
    let mut found = None;
    let mut next = 0;
    let mut from = range.0;
    loop {
        // Crossings before the range only update the pieces.
        let to = points.get(next).map_or(range.1, |p| p.at.min(range.1));
        if blocked == 0 && to > from {
            let inside = if curve.lower_bound(from, to) < best { curve.minima(from, to) } else { [None; 2] };
            let first = (ends && from == range.0).then(|| C::point(from));
            let last = (ends && to == range.1).then(|| C::point(to));
            for point in inside.into_iter().chain([first, last]).flatten() {
                let value = curve.value(point);
                if value < best {
                    best = value;
                    found = Some((value, point));
                    vanishing.clear();
                    pinned.clear();
                }
            }
        }
        if next == points.len() || points[next].at > range.1 {
            return found;
        }
        let start = next;
        let at = points[start].at;
        while next < points.len() && C::distance(at, points[next].at) <= numerics::TIE {
            next += 1;
        }
        let group = &points[start..next];
        if at >= range.0 {
            gather::<C>(points, start..next, widest, met);
            let point = C::point(at);
            let value = on_levels(penalty, entries, met, (curve.value(point), blocked));
            if value < best {
                best = value;
                found = Some((value, point));
                pinned.clear();
                pinned.extend(
                    meetings(penalty, entries, met).map(|(entry, level, _)| (entry.column, entry.second, level)),
                );
                vanishing.clear();
                vanishing.extend(pinned.iter().filter(|(.., level)| *level == 0.0).map(|(column, ..)| *column as u32));
            }
        }
        for crossing in group.iter().filter(|crossing| crossing.step != 0) {
            let entry = &mut entries[crossing.entry];
            take(&mut curve, entry, -1.0);
            entry.above = entry.above.wrapping_add_signed(crossing.step.into());
            blocked = take(&mut curve, entry, 1.0);
        }
        from = group[group.len() - 1].at.max(range.0);
    }
}

/// Returns the global minimum on the circle.
pub(super) fn circle(penalty: &impl Form, pair: &CirclePair<'_>, scratch: &mut Scratch) -> Best {
    scratch.clear();
    let (i, j) = pair.rows;
    let sizes = Sizes::new(pulp::Scalar::new(), pair.x, pair.y);
    let identity = pair.rotation.a + pair.rotation.p + cost(penalty, pair.rows, pair.x, pair.y);
    let mut best = Best::IDENTITY;
    for (f, reflect) in [(Some(pair.rotation), false), (pair.reflection, true)] {
        let Some(f) = f else { continue };
        scratch.crossings.clear();
        for (column, (x, y)) in columns(pair.x, pair.y) {
            let reach = sizes.reach(column);
            // First entry c·x + s·y, second ±(c·y − s·x).
            let (alpha, beta) = if reflect { (-y, x) } else { (y, -x) };
            for (row, second, alpha, beta) in [(i, false, x, y), (j, true, alpha, beta)] {
                let moving = Moving { alpha, beta, row, column, second, above: 0 };
                scratch.crossings.push::<OnCircle>(moving, penalty.breakpoints(), reach);
            }
        }
        scratch.crossings.sort();
        let curve = OnCircle { f, constant: -identity };
        if let Some((value, (c, s))) = sweep(penalty, curve, scratch, ON_CIRCLE, false, best.value) {
            best.offer(value, c, s, reflect, None);
        }
    }
    best
}

/// Returns the global minimum over the four components of the hyperbola, or an unbounded direction.
pub(super) fn hyperbola(penalty: &impl Form, pair: &HyperbolaPair<'_>, scratch: &mut Scratch) -> BestBoost {
    scratch.clear();
    let (i, j) = pair.rows;
    let base = pair.branches[0].f.value(1.0) + cost(penalty, pair.rows, pair.x, pair.y);
    let mut best = BestBoost::IDENTITY;
    for branch in &pair.branches {
        scratch.crossings.clear();
        for (column, (x, y)) in columns(pair.x, pair.y) {
            // Entries are σ·(u·α + β/u): (α, β) = ½(z₊, z₋) and ½(z₊, −z₋).
            let (plus, minus) = (0.5 * (x + y), 0.5 * (x - y));
            for (row, second, sign, minus) in [(i, false, branch.signs[0], minus), (j, true, branch.signs[1], -minus)] {
                let moving = Moving { alpha: sign * plus, beta: sign * minus, row, column, second, above: 0 };
                scratch.crossings.push::<OnHyperbola>(moving, penalty.breakpoints(), numerics::TIE);
            }
        }
        scratch.crossings.sort();
        let curve = OnHyperbola { f: branch.f, constant: -base };
        // h grows like slope·u + curvature·u² for u → ∞, and so in 1/u for u → 0.
        let falls = |scratch: &Scratch, k: usize| {
            let (mut slope, mut curvature) = (0.0, 0.0);
            for entry in &scratch.crossings.entries {
                let [a, b, c] = piece(penalty, entry);
                let factor = if k == 0 { entry.alpha } else { entry.beta };
                if !a.is_finite() {
                    return false;
                }
                slope += b * factor;
                curvature += 0.5 * c * factor * factor;
            }
            !pair.bounded && branch.tails[k].falls(slope, curvature)
        };
        if falls(scratch, 1) {
            return BestBoost::unbounded(branch.signs, false);
        }
        let found = sweep(penalty, curve, scratch, pair.range, pair.bounded, best.value);
        // The sweep has left the entries in their pieces at the upper end of the range.
        if falls(scratch, 0) {
            return BestBoost::unbounded(branch.signs, true);
        }
        if let Some((value, u)) = found {
            best.offer(value, u, branch.signs, None);
        }
    }
    best
}
