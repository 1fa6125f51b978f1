//! The pair problem: two rows of X move by one 2×2 matrix V, chosen globally.
//!
//! With Z the two rows (2×r), G the two gradient rows, E = V − I and the curvature given by two
//! symmetric 2×2 matrices M and S, the smooth part changes by
//!
//! ```text
//! Δf(V) = ⟨E, G Zᵀ⟩ + ½ tr(M E S Eᵀ)                 (OBCD paper, eq. 8: M = C_BB, S = Z D Zᵀ)
//! ```
//!
//! and a proximal term `α/2 ‖E‖²` may be added (eq. 10). On the circle both branches of the
//! orthogonal group, `[[c, s], [−s, c]]` and `[[c, s], [s, −c]]`, turn this into a
//! [`Trig`] of one angle. Rows of opposite sign move on a hyperbola: [`Hyp`] of one rapidity.

mod boost;
mod breakpoints;
mod circle;
mod curve;
mod hyperbola;

use pulp::Simd;

pub use boost::{BestBoost, Boost, HyperbolaPair, LightModel, RECESSION_TOLERANCE, Recession, SIGNS};
pub(crate) use breakpoints::{Arc, Arcs, Breakpoints};
pub use circle::Trig;
pub use curve::Piece;
pub(crate) use curve::{Crossing, Crossings, Curve, Moving, ON_CIRCLE, OnCircle, OnHyperbola, SAME_ANGLE};
pub(crate) use hyperbola::MAX_RAPIDITY;
pub use hyperbola::{Hyp, full_range};

use crate::numerics;

/// Sizes of the columns of two rows, which moves on the circle keep. An entry counts as zero if it is rounding beside
/// the largest column. Where entries of several columns vanish together, the angle of a small column is as inexact as a
/// large column makes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes<'a> {
    x: &'a [f64],
    y: &'a [f64],
    largest: f64,
}

impl<'a> Sizes<'a> {
    /// `x` and `y` are whole vectors.
    #[inline(always)]
    pub(crate) fn new<S: Simd>(simd: S, x: &'a [f64], y: &'a [f64]) -> Self {
        let (xs, ys) = (S::as_simd_f64s(x).0, S::as_simd_f64s(y).0);
        let mut largest = simd.splat_f64s(0.0);
        for (&x, &y) in xs.iter().zip(ys) {
            let size = simd.add_f64s(simd.abs_f64s(x), simd.abs_f64s(y));
            largest = simd.max_f64s(largest, size);
        }
        Self { x, y, largest: simd.reduce_max_f64s(largest) }
    }

    #[inline(always)]
    fn size(&self, column: usize) -> f64 {
        self.x[column].abs() + self.y[column].abs()
    }

    /// Returns whether a column is smaller than a part of the largest one.
    #[inline(always)]
    pub(crate) fn is_below(&self, (x, y): (f64, f64), part: f64) -> bool {
        x.abs() + y.abs() < part * self.largest
    }

    /// Returns whether an entry is not zero, but rounding.
    #[inline(always)]
    pub(crate) fn is_rounding(&self, entry: f64) -> bool {
        (entry != 0.0) & (entry.abs() <= numerics::TIE * self.largest)
    }

    /// Returns whether an entry still counts as zero at some distance from the breakpoint of its column; slots repeat after
    /// the columns.
    #[inline(always)]
    pub(crate) fn reaches(&self, slot: usize, distance: f64) -> bool {
        let column = slot.checked_sub(self.x.len()).unwrap_or(slot);
        distance * self.size(column) <= numerics::TIE * self.largest
    }

    /// Returns up to which distance [`reaches`](Self::reaches) holds.
    pub(crate) fn reach(&self, column: usize) -> f64 {
        numerics::TIE * self.largest / self.size(column)
    }
}

/// A symmetric 2×2 matrix `[[d0, o], [o, d1]]`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sym2 {
    /// First diagonal entry.
    pub d0: f64,
    /// Second diagonal entry.
    pub d1: f64,
    /// Off-diagonal entry.
    pub o: f64,
}

impl Sym2 {
    /// Returns a multiple of the identity.
    pub fn scalar(value: f64) -> Self {
        Self { d0: value, d1: value, o: 0.0 }
    }

    /// Spectral norm.
    pub fn spectral_norm(self) -> f64 {
        let mean = 0.5 * (self.d0 + self.d1);
        mean.abs() + (0.5 * (self.d0 - self.d1)).hypot(self.o)
    }
}

/// The smooth part of a pair problem.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PairModel {
    /// G Zᵀ, row by row.
    pub gz: [[f64; 2]; 2],
    /// Row side of the curvature.
    pub m: Sym2,
    /// Column side of the curvature.
    pub s: Sym2,
    /// Proximal weight α ≥ 0.
    pub proximal: f64,
}

impl PairModel {
    /// Returns the model under the scalar bound `ς/2 ‖E‖²` (OBCD paper, eq. 9), ς = ‖S‖·‖M − cI‖, c =
    /// `shift`.
    ///
    /// On the circle, M − cI in place of M changes the smooth part by a constant if GZᵀ becomes GZᵀ − cS.
    #[inline(always)]
    pub fn scalar(&self, shift: f64) -> Self {
        let (s, c, [first, second]) = (self.s, shift, self.gz);
        let m = Sym2 { d0: self.m.d0 - c, d1: self.m.d1 - c, o: self.m.o };
        Self {
            gz: [[first[0] - c * s.d0, first[1] - c * s.o], [second[0] - c * s.o, second[1] - c * s.d1]],
            m: Sym2::scalar(s.spectral_norm() * m.spectral_norm()),
            s: Sym2::scalar(1.0),
            proximal: self.proximal,
        }
    }

    /// Returns L = G Zᵀ − M S, the linear part if the quadratic part is written in V instead of V − I.
    #[inline(always)]
    fn linear(&self) -> [[f64; 2]; 2] {
        let (m, s) = (self.m, self.s);
        [
            [self.gz[0][0] - (m.d0 * s.d0 + m.o * s.o), self.gz[0][1] - (m.d0 * s.o + m.o * s.d1)],
            [self.gz[1][0] - (m.o * s.d0 + m.d1 * s.o), self.gz[1][1] - (m.o * s.o + m.d1 * s.d1)],
        ]
    }

    /// Returns the smooth part on rotations `[[c, s], [−s, c]]` and on reflections `[[c, s], [s, −c]]`, up to
    /// a common constant.
    #[inline(always)]
    pub fn branches(&self) -> (Trig, Trig) {
        let l = self.linear();
        let m = 0.5 * (self.m.d0 - self.m.d1);
        let u = 0.5 * (self.s.d0 - self.s.d1);
        let (w, v) = (self.m.o, self.s.o);
        (
            Trig {
                a: l[0][0] + l[1][1] - 2.0 * self.proximal,
                b: l[0][1] - l[1][0],
                p: m * u + w * v,
                q: m * v - w * u,
            },
            Trig { a: l[0][0] - l[1][1], b: l[0][1] + l[1][0], p: m * u - w * v, q: m * v + w * u },
        )
    }

    /// `(Δ, magnitude)`: the change of the smooth part for V − I = `e`, without the proximal term,
    /// and the sum of the magnitudes of its terms.
    #[inline(always)]
    pub fn change(&self, e: [[f64; 2]; 2]) -> (f64, f64) {
        let t = [e[0][0] * self.gz[0][0], e[0][1] * self.gz[0][1], e[1][0] * self.gz[1][0], e[1][1] * self.gz[1][1]];
        // E S Eᵀ, then its inner product with M.
        let s = self.s;
        let es = [
            [e[0][0] * s.d0 + e[0][1] * s.o, e[0][0] * s.o + e[0][1] * s.d1],
            [e[1][0] * s.d0 + e[1][1] * s.o, e[1][0] * s.o + e[1][1] * s.d1],
        ];
        let k00 = es[0][0] * e[0][0] + es[0][1] * e[0][1];
        let k01 = es[0][0] * e[1][0] + es[0][1] * e[1][1];
        let k11 = es[1][0] * e[1][0] + es[1][1] * e[1][1];
        let quadratic = 0.5 * (self.m.d0 * k00 + self.m.d1 * k11) + self.m.o * k01;
        let size = 0.5 * (self.m.d0.abs() * k00.abs() + self.m.d1.abs() * k11.abs()) + self.m.o.abs() * k01.abs();
        ((t[0] + t[3]) + (t[1] + t[2]) + quadratic, t[0].abs() + t[1].abs() + t[2].abs() + t[3].abs() + size)
    }
}

/// An orthogonal 2×2 matrix: `[[c, s], [−s, c]]`, or `[[c, s], [s, −c]]` when `reflect`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn {
    /// Cosine.
    pub c: f64,
    /// Sine.
    pub s: f64,
    /// True for a reflection.
    pub reflect: bool,
}

impl Turn {
    /// The identity.
    pub const IDENTITY: Self = Self { c: 1.0, s: 0.0, reflect: false };

    /// Returns the matrix V.
    #[inline(always)]
    pub fn matrix(self) -> [[f64; 2]; 2] {
        let sigma = if self.reflect { -1.0 } else { 1.0 };
        [[self.c, self.s], [-sigma * self.s, sigma * self.c]]
    }

    /// V − I, accurate for small angles.
    #[inline(always)]
    pub fn minus_identity(self) -> [[f64; 2]; 2] {
        let c1 = if self.c > 0.0 { -self.s * self.s / (1.0 + self.c) } else { self.c - 1.0 };
        if self.reflect { [[c1, self.s], [self.s, -self.c - 1.0]] } else { [[c1, self.s], [-self.s, c1]] }
    }
}

/// A pair problem on the circle: two rows, and the smooth part on both branches.
#[derive(Debug, Clone, Copy)]
pub struct CirclePair<'a> {
    /// Global indices of the two rows (for entrywise weights).
    pub rows: (usize, usize),
    /// First row: r entries, padded with zeros to a multiple of [`ROW_MULTIPLE`].
    pub x: &'a [f64],
    /// Second row, of the same length.
    pub y: &'a [f64],
    /// Smooth part on rotations.
    pub rotation: Trig,
    /// Smooth part on reflections, with the same constant; None if only rotations are allowed.
    pub reflection: Option<Trig>,
}

/// Divisor of the row length of a [`CirclePair`], so that rows are whole vectors.
pub const ROW_MULTIPLE: usize = crate::simd::LANES;

/// The best candidate so far, at first the identity with value zero.
///
/// Values are relative to the identity.
#[derive(Debug, Clone, Copy)]
pub struct Best {
    /// Value of the best candidate, relative to the identity's.
    pub value: f64,
    /// The candidate.
    pub turn: Turn,
    /// Index of the breakpoint at which entries vanish, in the numbering of the penalty's solver.
    pub breakpoint: Option<usize>,
}

impl Best {
    /// The identity.
    pub const IDENTITY: Self = Self { value: 0.0, turn: Turn::IDENTITY, breakpoint: None };

    /// Takes the candidate if it is strictly better.
    #[inline(always)]
    pub fn offer(&mut self, value: f64, c: f64, s: f64, reflect: bool, breakpoint: Option<usize>) {
        if value < self.value {
            *self = Self { value, turn: Turn { c, s, reflect }, breakpoint };
        }
    }
}

/// Work space of pair solvers: allocated once for a given r, never in the loop.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    /// Columns whose smaller entry is zero at the chosen breakpoint.
    pub vanishing: Vec<u32>,
    /// Breakpoints and arcs.
    pub(crate) breakpoints: Breakpoints,
    /// Other exact entries at the chosen breakpoint: column, true for the second row, value.
    pub(crate) pinned: Vec<(usize, bool, f64)>,
    /// Entries and the levels they cross.
    pub(crate) crossings: Crossings,
    /// On the hyperbola: (u at which an entry vanishes, column).
    pub(crate) order: Vec<(f64, u32)>,
    /// On the hyperbola: jumps of the coefficients of u and 1/u where an entry vanishes, by column.
    pub(crate) jumps: Vec<[f64; 2]>,
}

impl Scratch {
    /// Creates the workspace for rows of length `r`.
    pub fn new(r: usize) -> Self {
        let capacity = 2 * r + 16;
        Self {
            vanishing: Vec::with_capacity(capacity),
            breakpoints: Breakpoints::with_capacity(capacity),
            ..Self::default()
        }
    }

    /// Clears the exact entries of the last pair.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.vanishing.clear();
        self.pinned.clear();
    }

    /// Sets the entries of the new rows that are exact at the chosen breakpoint.
    #[inline(always)]
    pub fn settle(&self, x: &mut [f64], y: &mut [f64]) {
        for &k in &self.vanishing {
            let k = k as usize;
            if x[k].abs() < y[k].abs() {
                x[k] = 0.0;
            } else {
                y[k] = 0.0;
            }
        }
        for &(k, second, value) in &self.pinned {
            (if second { &mut *y } else { &mut *x })[k] = value;
        }
    }
}
