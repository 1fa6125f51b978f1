//! Penalties with bounds, `lower` ≤ x ≤ `upper` with `lower` < 0 < `upper`: a pair is solved without the bounds
//! first.
//!
//! A global minimum without the bounds is also one with them if its entries satisfy them. Otherwise the general
//! solver follows. Bounds seldom bind in a pair, and h without the bounds has a faster solver.

use pulp::Simd;

use super::entry_penalty::{EntryPenalty, OUTSIDE};
use super::even::Even;
use super::{Form, L1, NoPenalty, Weights};
use crate::pair::{Best, CirclePair, Scratch};

/// A penalty with bounds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bounded {
    inside: Inside,
    bounds: (f64, f64),
}

/// h without its bounds.
#[derive(Debug, Clone, PartialEq)]
enum Inside {
    Nothing,
    Absolute(L1),
    Even(Even),
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
            if from == 0 {
                f64::NEG_INFINITY
            } else {
                breakpoints[0]
            },
            if to == pieces.len() {
                f64::INFINITY
            } else {
                breakpoints[to - 1]
            },
        );
        let is_bounded = inner.len() < pieces.len() && bounds.0 < 0.0 && bounds.1 > 0.0;
        if !is_bounded || inner.contains(&OUTSIDE) {
            return None;
        }
        let inside = match (levels, inner, at) {
            ([], [[0.0, 0.0, 0.0]], _) => Inside::Nothing,
            ([0.0], [[0.0, a, 0.0], [0.0, b, 0.0]], [0.0]) if *a == -*b && *b > 0.0 => {
                let weights = Weights::Scalar(*b);
                Inside::Absolute(L1 { weights })
            }
            _ => Inside::Even(Even::new(levels, inner, at)?),
        };
        Some(Self { inside, bounds })
    }

    /// Returns [`Penalty::pair_work`](super::Penalty::pair_work) of a pair without the bounds.
    pub(super) fn pair_work(&self) -> f64 {
        match &self.inside {
            Inside::Nothing | Inside::Absolute(_) => 1.0,
            Inside::Even(even) => even.pair_work(),
        }
    }

    /// Returns the global minimum of a pair without the bounds, if the minimum satisfies them.
    #[inline(always)]
    pub(super) fn circle<S: Simd>(
        &self,
        simd: S,
        pair: &CirclePair<'_>,
        scratch: &mut Scratch,
    ) -> Option<Best> {
        let best = match &self.inside {
            Inside::Nothing => NoPenalty.circle(simd, pair, scratch),
            Inside::Absolute(l1) => l1.circle(simd, pair, scratch),
            Inside::Even(even) => even.circle(simd, pair, scratch),
        };
        let v = best.turn.matrix();
        let mut allowed = true;
        for (&x, &y) in pair.x.iter().zip(pair.y) {
            for [u, v] in v {
                let value = u * x + v * y;
                allowed &= value >= self.bounds.0 && value <= self.bounds.1;
            }
        }
        allowed.then_some(best)
    }
}
