//! The constraint X ≥ 0: the feasible angles of each branch form one arc.
//!
//! A column (x, y) ≥ 0 has polar angle ω in [0, π/2]; the rotation by θ takes it to ω − θ and the
//! reflection to θ − ω. So θ runs over [ω_max − π/2, ω_min] and [ω_max, ω_min + π/2]. Candidates:
//! the ends, where entries vanish, and the local minima of the smooth part inside. O(r), no sort.

use ndarray::{ArrayView2, ArrayViewMut2};

use pulp::Simd;

use super::Form;
use crate::pair::{Best, BestBoost, CirclePair, HyperbolaPair, Piece, Scratch, Trig, Turn};

/// h(X) = 0 for X ≥ 0, +∞ otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NonNegative;

impl Form for NonNegative {
    #[inline(always)]
    fn entry(&self, _row: usize, _column: usize, value: f64) -> f64 {
        if value < 0.0 { f64::INFINITY } else { 0.0 }
    }

    #[inline(always)]
    fn piece(&self, row: usize, column: usize, value: f64) -> Piece {
        [self.entry(row, column, value), 0.0, 0.0]
    }

    fn breakpoints(&self) -> &[f64] {
        &[0.0]
    }

    #[inline(always)]
    fn change(&self, _row: usize, _old: &[f64], _new: &[f64]) -> (f64, f64) {
        (0.0, 0.0)
    }

    #[inline(always)]
    fn tidy(&self, row: &mut [f64]) {
        // The angle is feasible: values below zero are rounding of c·x + s·y.
        for value in row {
            *value = if *value > 0.0 { *value } else { 0.0 };
        }
    }

    #[inline(always)]
    fn proximal(&self, _row: usize, _column: usize, value: f64, _step: f64) -> f64 {
        if value > 0.0 { value } else { 0.0 }
    }

    #[inline(always)]
    fn proximal_near(&self, _: (usize, usize), _: f64, value: f64, _: f64) -> (f64, f64) {
        if value > 0.0 { (value, 1.0) } else { (0.0, 0.0) }
    }

    fn smoothed(&self, _: ArrayView2<'_, f64>, _: f64, _: ArrayViewMut2<'_, f64>) -> f64 {
        0.0
    }

    #[inline(always)]
    fn hyperbola(&self, pair: &HyperbolaPair<'_>, scratch: &mut Scratch) -> BestBoost {
        super::boost::nonnegative(pair, scratch)
    }

    #[inline(always)]
    fn circle<S: Simd>(&self, _: S, pair: &CirclePair<'_>, scratch: &mut Scratch) -> Best {
        circle(pair, (0.0, 0.0), scratch)
    }
}

/// Returns the global minimum on the circle for X ≥ 0 and a penalty `jump` + `slope`·x of x > 0, `jump` ≥ 0.
/// (A curvature adds a constant, as x² + y² is fixed.) One function: the arcs share sums over the columns.
#[inline(always)]
pub(super) fn circle(pair: &CirclePair<'_>, (slope, jump): (f64, f64), scratch: &mut Scratch) -> Best {
    scratch.clear();
    // Extreme directions; a column (x, y) is steeper than (u, v) when y·u > v·x.
    let mut low: Option<(f64, f64)> = None;
    let mut high = (0.0, 0.0);
    // Sums of the rows, and the number of zeros in nonzero columns.
    let (mut sums, mut zeros) = ((0.0, 0.0), 0usize);
    for (&x, &y) in pair.x.iter().zip(pair.y) {
        if x == 0.0 && y == 0.0 {
            continue;
        }
        sums = (sums.0 + x, sums.1 + y);
        zeros += usize::from(x == 0.0 || y == 0.0);
        match low {
            None => {
                low = Some((x, y));
                high = (x, y);
            }
            Some((u, v)) => {
                if y * u < v * x {
                    low = Some((x, y));
                }
                if y * high.0 > high.1 * x {
                    high = (x, y);
                }
            }
        }
    }
    let mut best = Best::IDENTITY;
    let Some(low) = low else {
        return best;
    };
    let unit = |(x, y): (f64, f64)| {
        let length = x.hypot(y);
        (x / length, y / length)
    };
    let (low, high) = (unit(low), unit(high));
    // The sum of the new entries is a cos θ + b sin θ, too.
    let penalized = |f: &Trig, a: f64, b: f64| Trig { a: f.a + slope * a, b: f.b + slope * b, ..*f };
    let rotation = penalized(&pair.rotation, sums.0 + sums.1, sums.1 - sums.0);
    let reflection = (pair.reflection).map(|f| penalized(&f, sums.0 - sums.1, sums.0 + sums.1));
    let base = rotation.a + rotation.p;
    // Rotations: from ω_max − π/2 to ω_min; reflections: from ω_max to ω_min + π/2.
    for (f, from, to, reflect) in
        [(Some(rotation), (high.1, -high.0), low, false), (reflection, high, (-low.1, low.0), true)]
    {
        let Some(f) = f else { continue };
        let ends = [from, to].map(|(c, s)| {
            let vanish = match jump > 0.0 {
                true => vanishing(pair, Turn { c, s, reflect }).count(),
                false => 0,
            };
            (c, s, jump * (zeros as f64 - vanish as f64))
        });
        arc(&mut best, &f, base, ends, jump * zeros as f64, reflect);
    }
    if best.breakpoint.is_some() {
        // Entries of the columns that bound the arc vanish exactly at its end.
        let columns = vanishing(pair, best.turn);
        scratch.vanishing.extend(columns.map(|k| k as u32));
    }
    best
}

/// Returns the columns with an entry that a turn makes zero, up to rounding.
#[inline(always)]
fn vanishing(pair: &CirclePair<'_>, turn: Turn) -> impl Iterator<Item = usize> {
    let v = turn.matrix();
    let columns = pair.x.iter().zip(pair.y).enumerate();
    columns.filter_map(move |(k, (&x, &y))| {
        let (u, w) = (v[0][0] * x + v[0][1] * y, v[1][0] * x + v[1][1] * y);
        let tolerance = crate::numerics::TIE * (u.abs() + w.abs());
        let vanishes = (x != 0.0 || y != 0.0) && (u.abs() <= tolerance || w.abs() <= tolerance);
        vanishes.then_some(k)
    })
}

/// Offers the ends (cosine, sine, penalty) of an arc at most π/2 long, and the minima inside, with `penalty`.
#[inline(always)]
fn arc(best: &mut Best, f: &Trig, base: f64, [from, to]: [(f64, f64, f64); 2], penalty: f64, reflect: bool) {
    let value = |c: f64, s: f64| {
        if reflect { f.value(c, s) - base } else { f.change(c, s) }
    };
    for (k, end) in [from, to].into_iter().enumerate() {
        best.offer(value(end.0, end.1) + end.2, end.0, end.1, reflect, Some(k));
    }
    if f.lower_bound() - base + penalty < best.value {
        for &(c, s) in f.minima().points() {
            // Between the two ends, and not on the opposite side of the circle.
            let ahead = c * (from.0 + to.0) + s * (from.1 + to.1) > 0.0;
            if ahead && from.0 * s - from.1 * c >= 0.0 && c * to.1 - s * to.0 >= 0.0 {
                best.offer(value(c, s) + penalty, c, s, reflect, None);
            }
        }
    }
}
