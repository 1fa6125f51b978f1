//! λ‖X‖₀: the count is constant on the circle but where an entry vanishes.
//!
//! Both entries of a column vanish in turn at its slope and the three angles π/2 further on, so
//! everything has period π/2 and both branches share the breakpoints. Candidates: the axis (all
//! columns with one zero entry keep it, and an entry that is zero up to rounding becomes zero), every distinct
//! slope, and the unpenalised minimum. O(r) plus a sort that finds columns of equal slope.

use ndarray::{ArrayView2, ArrayViewMut2, Zip};
use pulp::Simd;

use super::Form;
use super::arcs::offer_points;
use super::crossings::quarter_period;
use crate::numerics;
use crate::pair::{Arc, Arcs, Best, BestBoost, CirclePair, HyperbolaPair, Piece, Scratch, Sizes, Trig};

/// h(X) = λ · (number of nonzero entries).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct L0 {
    /// λ ≥ 0, the penalty of a nonzero entry.
    pub(super) lambda: f64,
}

impl Form for L0 {
    #[inline(always)]
    fn entry(&self, _row: usize, _column: usize, value: f64) -> f64 {
        if value == 0.0 { 0.0 } else { self.lambda }
    }

    #[inline(always)]
    fn piece(&self, _row: usize, _column: usize, _value: f64) -> Piece {
        [self.lambda, 0.0, 0.0]
    }

    fn breakpoints(&self) -> &[f64] {
        &[0.0]
    }

    #[inline(always)]
    fn change(&self, _row: usize, old: &[f64], new: &[f64]) -> (f64, f64) {
        // Counted in whole numbers, so that an unchanged pattern changes nothing.
        let before = old.iter().filter(|&&v| v != 0.0).count() as f64;
        let after = new.iter().filter(|&&v| v != 0.0).count() as f64;
        let delta = self.lambda * (after - before);
        (delta, delta.abs())
    }

    #[inline(always)]
    fn proximal(&self, _row: usize, _column: usize, value: f64, step: f64) -> f64 {
        let threshold = 2.0 * self.lambda * step;
        if value * value <= threshold { 0.0 } else { value }
    }

    /// Keeps the pattern: an entry that is not zero may become any other.
    #[inline(always)]
    fn proximal_near(&self, _: (usize, usize), x: f64, value: f64, _: f64) -> (f64, f64) {
        if x == 0.0 { (0.0, 0.0) } else { (value, 1.0) }
    }

    /// `x²/(x² + ε²)` in place of the count.
    fn smoothed(&self, x: ArrayView2<'_, f64>, epsilon: f64, mut gradient: ArrayViewMut2<'_, f64>) -> f64 {
        let squared = epsilon * epsilon;
        let mut sum = 0.0;
        Zip::from(&mut gradient).and(x).for_each(|g, &x| {
            let inverse = 1.0 / (x * x + squared);
            let rest = squared * inverse;
            sum += 1.0 - rest;
            *g += 2.0 * self.lambda * x * rest * inverse;
        });
        self.lambda * sum
    }

    #[inline(always)]
    fn hyperbola(&self, pair: &HyperbolaPair<'_>, scratch: &mut Scratch) -> BestBoost {
        super::boost::l0(self.lambda, pair, scratch)
    }

    #[inline(always)]
    fn circle<S: Simd>(&self, simd: S, pair: &CirclePair<'_>, scratch: &mut Scratch) -> Best {
        scratch.clear();
        let sizes = Sizes::new(simd, pair.x, pair.y);
        let (mut full, mut single, mut near, mut small) = (0usize, 0usize, 0usize, 0u32);
        for (&x, &y) in pair.x.iter().zip(pair.y) {
            near += usize::from(sizes.is_rounding(x)) + usize::from(sizes.is_rounding(y));
            let below = sizes.is_below((x, y), SMALL);
            let (x, y) = (x != 0.0, y != 0.0);
            small += u32::from(x & y & below);
            full += usize::from(x & y);
            single += usize::from(x ^ y);
        }
        let base = pair.rotation.a + pair.rotation.p;
        let branches = [(Some(pair.rotation), false), (pair.reflection, true)];
        let mut best = Best::IDENTITY;

        // Axis: the count of the identity, less the entries that are zero up to rounding.
        let penalty = -self.lambda * near as f64;
        for (f, reflect) in branches {
            let Some(f) = f else { continue };
            offer_axes(&mut best, &f, base, penalty, reflect);
        }

        // Slopes: `single` more nonzeros than the identity, less one for every column that vanishes. The
        // breakpoints are not sorted if the smooth part cannot fall enough even with a zero in every column.
        let lowest = branches.iter().filter_map(|(f, _)| f.as_ref());
        let lowest = lowest.map(Trig::lower_bound).fold(f64::INFINITY, f64::min) - base;
        if full > 0 && lowest + self.lambda * (single as f64 - full as f64) < best.value {
            quarter_period(simd, 0.0, pair, &mut scratch.breakpoints);
            let breakpoints = &mut scratch.breakpoints;
            let base = base - self.lambda * single as f64;
            // A bound at the slopes, before they are sorted.
            let mut bound = best;
            let mut arcs = breakpoints.unsorted(self.lambda * (1.0 + numerics::VALUE * f64::EPSILON), small);
            offer_slopes(simd, &branches, base, &mut arcs, &mut bound);
            if bound.value < best.value {
                breakpoints.fill_drops(self.lambda);
                breakpoints.lay_arcs::<S, false>(simd, Arc::default(), (0.0, 1.0));
                // No drop at the axis, which is a candidate already.
                breakpoints.lay_drops(1.0, |slot, distance| sizes.reaches(slot, distance), 0.0);
                offer_slopes(simd, &branches, base, &mut breakpoints.arcs(), &mut best);
            }
        }

        // Everywhere else: `single` more nonzeros.
        let penalty = self.lambda * single as f64;
        for (f, reflect) in branches {
            let Some(f) = f else { continue };
            if f.lower_bound() - base + penalty < best.value {
                let (c, s) = f.global_minimum();
                let value = if reflect { f.value(c, s) - base } else { f.change(c, s) };
                best.offer(value + penalty, c, s, reflect, None);
            }
        }

        if best.breakpoint == Some(AXIS) {
            let swaps = best.turn.c == 0.0;
            for (k, (&x, &y)) in pair.x.iter().zip(pair.y).enumerate() {
                let entries = [(x, swaps), (y, !swaps)].into_iter().filter(|entry| sizes.is_rounding(entry.0));
                scratch.pinned.extend(entries.map(|(_, second)| (k, second, 0.0)));
            }
        } else if let Some(m) = best.breakpoint {
            scratch
                .vanishing
                .extend(scratch.breakpoints.dropping_at(m, 1.0, |slot, distance| sizes.reaches(slot, distance)));
        }
        best
    }
}

/// The point θ = 0, before all breakpoints.
const AXIS: usize = 0;

/// Columns below this part of the largest one can vanish together with columns whose angles differ.
const SMALL: f64 = 1e-5;

/// Offers the points of `arcs` on all branches.
#[inline(always)]
fn offer_slopes<S: Simd>(simd: S, branches: &[(Option<Trig>, bool)], base: f64, arcs: &mut Arcs<'_>, best: &mut Best) {
    for (f, reflect) in branches {
        let Some(f) = f else { continue };
        offer_points::<S, true, false, true>(simd, (f, *reflect), base, arcs, best);
    }
}

/// Offers the four angles kπ/2 with one penalty.
#[inline(always)]
fn offer_axes(best: &mut Best, f: &Trig, base: f64, penalty: f64, reflect: bool) {
    let rest = penalty - base;
    let (even, odd) = (f.p - f.a.abs() + rest, -f.p - f.b.abs() + rest);
    if even < best.value {
        let sign = if f.a > 0.0 { -1.0 } else { 1.0 };
        best.offer(even, sign, 0.0, reflect, Some(AXIS));
    }
    if odd < best.value {
        let sign = if f.b > 0.0 { -1.0 } else { 1.0 };
        best.offer(odd, 0.0, sign, reflect, Some(AXIS));
    }
}
