//! Penalties with bounds, `lower` ≤ x ≤ `upper` with `lower` < 0 < `upper`.
//!
//! An entry is at most as long as its column, so that short columns need no bounds. With bounds −t and t the arcs
//! beyond are excluded, see [`arcs`](super::arcs). Other bounds are relaxed to such bounds, or left out, first: a
//! global minimum that satisfies the bounds is also one with them, otherwise the general solver follows.

use pulp::Simd;

use super::entry_penalty::{EntryPenalty, OUTSIDE};
use super::even::Even;
use super::{L0, L1, NoPenalty, Weights, solve_form};
use crate::pair::{Best, CirclePair, Scratch};

/// A penalty with bounds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bounded {
    inside: Inside,
    /// h without its bounds, if it is continuous.
    even: Option<Even>,
    bounds: (f64, f64),
}

/// h without its bounds.
#[derive(Debug, Clone, PartialEq)]
enum Inside {
    Nothing,
    Count(L0),
    Absolute(L1),
    Even,
}

impl Bounded {
    /// Creates the solver of φ; None unless φ has bounds on either side of 0 and a fast form between them.
    pub(super) fn new(breakpoints: &[f64], phi: &EntryPenalty) -> Option<Self> {
        let pieces = &phi.pieces;
        let from = usize::from(*pieces.first()? == OUTSIDE);
        let to = pieces.len() - usize::from(*pieces.last()? == OUTSIDE);
        let levels = breakpoints.get(from..to.checked_sub(1)?)?;
        let (inner, at) = (pieces.get(from..to)?, phi.at.get(from..to - 1)?);
        let bounds = (
            if from == 0 { f64::NEG_INFINITY } else { breakpoints[0] },
            if to == pieces.len() { f64::INFINITY } else { breakpoints[to - 1] },
        );
        let is_bounded = inner.len() < pieces.len() && bounds.0 < 0.0 && bounds.1 > 0.0;
        if !is_bounded || inner.contains(&OUTSIDE) {
            return None;
        }
        let even = Even::new(levels, inner, at);
        let inside = match (levels, inner, at) {
            ([], [[0.0, 0.0, 0.0]], _) => Inside::Nothing,
            ([0.0], [[a, 0.0, 0.0], [b, 0.0, 0.0]], [0.0]) if a == b && *a > 0.0 => Inside::Count(L0 { lambda: *a }),
            ([0.0], [[0.0, a, 0.0], [0.0, b, 0.0]], [0.0]) if *a == -*b && *b > 0.0 => {
                let weights = Weights::Scalar(*b);
                Inside::Absolute(L1 { weights })
            }
            _ if even.is_some() => Inside::Even,
            _ => return None,
        };
        Some(Self { inside, even, bounds })
    }

    /// Returns [`Penalty::pair_work`](super::Penalty::pair_work) of a pair without the bounds.
    pub(super) fn pair_work(&self) -> f64 {
        match (&self.inside, &self.even) {
            (Inside::Even, Some(even)) => even.pair_work(),
            _ => 1.0,
        }
    }

    /// Returns the global minimum of a pair, unless bounds that are left out are exceeded there.
    #[inline(always)]
    pub(super) fn circle<S: Simd>(&self, simd: S, pair: &CirclePair<'_>, scratch: &mut Scratch) -> Option<Best> {
        let (lower, upper) = self.bounds;
        let (xs, ys) = (S::as_simd_f64s(pair.x).0, S::as_simd_f64s(pair.y).0);
        let mut longest = simd.splat_f64s(0.0);
        for (&x, &y) in xs.iter().zip(ys) {
            let length = simd.mul_add_e_f64s(x, x, simd.mul_f64s(y, y));
            longest = simd.max_f64s(longest, length);
        }
        let longest = simd.reduce_max_f64s(longest);
        // Without bounds if they are out of reach.
        let bound = Some(upper.max(-lower)).filter(|bound| longest > bound * bound);
        let best = match (&self.inside, &self.even, bound) {
            (Inside::Nothing, _, None) => solve_form(simd, &NoPenalty, pair, scratch),
            (Inside::Absolute(l1), _, None) => solve_form(simd, l1, pair, scratch),
            (Inside::Count(l0), ..) => solve_form(simd, l0, pair, scratch),
            (_, even, bound) => {
                let bound = bound.unwrap_or(f64::INFINITY);
                even.as_ref()?.circle(simd, pair, bound, scratch)
            }
        };
        if self.even.is_some() && lower == -upper {
            return Some(best);
        }
        let v = best.turn.matrix();
        let mut allowed = true;
        for (&x, &y) in pair.x.iter().zip(pair.y) {
            for [u, v] in v {
                let value = u * x + v * y;
                allowed &= value >= lower && value <= upper;
            }
        }
        allowed.then_some(best)
    }
}
