//! Boosts of two rows of opposite sign, and the pair problem as a function of the boost: a [`Hyp`] on each of
//! the four components.

use serde::{Deserialize, Serialize};

use super::Sym2;
use super::hyperbola::{Hyp, MAX_RAPIDITY};

/// A negative coefficient of ψ up to this, relative to the magnitudes of its terms, counts as zero: rounding
/// of M does not prove that the pair is unbounded.
pub const RECESSION_TOLERANCE: f64 = 1e-12;

/// A matrix V = diag(σ₁, σ₂)·[[cosh μ, sinh μ], [sinh μ, cosh μ]], u = e^μ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Boost {
    /// e^μ.
    pub u: f64,
    /// (σ₁, σ₂).
    pub signs: [f64; 2],
}

/// Below this max(u, 1/u), new rows are formed as x + (V − I)x, beyond it from x ± y.
const SMALL_BOOST: f64 = 2.0;

impl Boost {
    /// The identity.
    pub const IDENTITY: Self = Self { u: 1.0, signs: [1.0, 1.0] };

    /// Returns the rapidity μ.
    pub fn rapidity(self) -> f64 {
        self.u.ln()
    }

    /// (cosh μ − 1, sinh μ), accurate for small μ.
    #[inline(always)]
    fn small(self) -> (f64, f64) {
        let d = self.u - 1.0;
        (0.5 * d * d / self.u, 0.5 * d * (1.0 + 1.0 / self.u))
    }

    /// Returns the matrix V.
    pub fn matrix(self) -> [[f64; 2]; 2] {
        let v = 1.0 / self.u;
        let (c, s) = (0.5 * (self.u + v), self.small().1);
        let [first, second] = self.signs;
        [[first * c, first * s], [second * s, second * c]]
    }

    /// V − I, accurate for small rapidities.
    #[inline(always)]
    pub fn minus_identity(self) -> [[f64; 2]; 2] {
        let (c1, s) = self.small();
        let c = 1.0 + c1;
        let diagonal = |sign: f64| if sign > 0.0 { c1 } else { -c - 1.0 };
        let [first, second] = self.signs;
        [[diagonal(first), first * s], [second * s, diagonal(second)]]
    }

    /// Writes V times the rows (x, y) to (new_x, new_y); −0.0 becomes 0.0.
    #[inline(always)]
    pub fn apply(self, x: &[f64], y: &[f64], new_x: &mut [f64], new_y: &mut [f64]) {
        let [first, second] = self.signs;
        let v = 1.0 / self.u;
        let rows = new_x.iter_mut().zip(new_y.iter_mut()).zip(x).zip(y);
        if self.u.max(v) < SMALL_BOOST {
            let (c1, s) = self.small();
            for (((nx, ny), &x), &y) in rows {
                *nx = first * (x + (c1 * x + s * y)) + 0.0;
                *ny = second * (y + (c1 * y + s * x)) + 0.0;
            }
        } else {
            for (((nx, ny), &x), &y) in rows {
                let (up, down) = (0.5 * self.u * (x + y), 0.5 * v * (x - y));
                *nx = first * (up + down) + 0.0;
                *ny = second * (up - down) + 0.0;
            }
        }
    }
}

/// Leading terms of ψ for u → ∞ (or u → 0), without the proximal term.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tail {
    quadratic: f64,
    linear: f64,
    linear_size: f64,
}

impl Tail {
    /// Returns whether ψ plus a penalty growing like `slope`·u + `curvature`·u² falls without bound.
    #[inline(always)]
    pub(crate) fn falls(&self, slope: f64, curvature: f64) -> bool {
        let quadratic = self.quadratic + curvature;
        let rounding = RECESSION_TOLERANCE * (self.quadratic.abs() + curvature.abs());
        quadratic < -rounding
            || (quadratic.abs() <= rounding
                && self.linear + slope < -RECESSION_TOLERANCE * (self.linear_size + slope.abs()))
    }
}

/// One of the four components: its D and ψ.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Branch {
    /// (σ₁, σ₂).
    pub signs: [f64; 2],
    /// ψ, proximal term included.
    pub f: Hyp,
    /// Behaviour for u → ∞ and u → 0.
    pub tails: [Tail; 2],
}

/// The smooth part of a pair problem in light-cone coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LightModel {
    /// Gradient rows times z₊ and z₋: `gz[i] = (g_i·z₊, g_i·z₋)`.
    pub gz: [[f64; 2]; 2],
    /// Row side of the curvature.
    pub m: Sym2,
    /// `S k±`: `t[i] = (x_i D z₊, x_i D z₋)`.
    pub t: [[f64; 2]; 2],
    /// `(z₊ D z₊, z₋ D z₋)`.
    pub s: [f64; 2],
    /// Sums of the magnitudes of the terms of `s`; a value below zero by at most [`RECESSION_TOLERANCE`]
    /// times this sum is rounding.
    pub s_size: [f64; 2],
    /// Proximal weight α ≥ 0.
    pub proximal: f64,
}

/// Signs (σ₁, σ₂) of the four components of a hyperbola.
pub const SIGNS: [[f64; 2]; 4] = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]];

impl LightModel {
    /// Returns ψ on the component of `signs`, up to one constant common to all four.
    #[inline(always)]
    pub fn branch(&self, signs: [f64; 2]) -> Branch {
        let mut branch = Branch { signs, ..Branch::default() };
        let mixed = signs[0] * signs[1];
        let m_size = self.m.d0.abs() + self.m.d1.abs() + 2.0 * self.m.o.abs();
        let mut a = [0.0; 2];
        let mut p = [0.0; 2];
        for k in 0..2 {
            let orientation = if k == 0 { 1.0 } else { -1.0 };
            let w = [signs[0], orientation * signs[1]];
            // w±ᵀ M: then products with S k±.
            let wm = [w[0] * self.m.d0 + w[1] * self.m.o, w[0] * self.m.o + w[1] * self.m.d1];
            let (g0, g1) = (w[0] * self.gz[0][k], w[1] * self.gz[1][k]);
            let (c0, c1) = (wm[0] * self.t[0][k], wm[1] * self.t[1][k]);
            a[k] = 0.5 * ((g0 + g1) - (c0 + c1));
            let m = self.m.d0 + self.m.d1 + 2.0 * orientation * mixed * self.m.o;
            p[k] = 0.125 * m * self.s[k];
            let p_size = 0.125 * m_size * self.s[k].abs().max(self.s_size[k]);
            if p[k] < 0.0 && p[k] >= -RECESSION_TOLERANCE * p_size {
                p[k] = 0.0;
            }
            branch.tails[k] = Tail {
                quadratic: p[k],
                linear: a[k],
                linear_size: 0.5 * (g0.abs() + g1.abs() + m_size * (self.t[0][k].abs() + self.t[1][k].abs())),
            };
        }
        let trace = 0.5 * self.proximal * (signs[0] + signs[1]);
        branch.f = Hyp {
            a_plus: a[0] - trace,
            a_minus: a[1] - trace,
            p_plus: p[0] + 0.5 * self.proximal,
            p_minus: p[1] + 0.5 * self.proximal,
        };
        branch
    }

    /// Returns the pair with S = `s` under the scalar bound `ς/2 ‖E‖²`, ς = ‖S‖·‖M − cJ‖, cJ = diag(`shift`,
    /// −`shift`); see [`PairModel::scalar`](super::PairModel::scalar).
    #[inline(always)]
    pub fn scalar(&self, s: Sym2, shift: f64) -> Self {
        let c = shift;
        let m = Sym2 { d0: self.m.d0 - c, d1: self.m.d1 + c, o: self.m.o };
        let ([first, second], [upper, lower]) = (self.gz, self.t);
        Self {
            gz: [
                [first[0] - c * upper[0], first[1] - c * upper[1]],
                [second[0] + c * lower[0], second[1] + c * lower[1]],
            ],
            m: Sym2::scalar(s.spectral_norm() * m.spectral_norm()),
            t: [[1.0, 1.0], [1.0, -1.0]],
            s: [2.0, 2.0],
            s_size: [2.0, 2.0],
            ..*self
        }
    }

    /// `(Δ, magnitude)`: the change of the smooth part for a boost, without the proximal term, and
    /// the sum of the magnitudes of its terms. Accurate for large rapidities.
    #[inline(always)]
    pub fn change(&self, boost: Boost) -> (f64, f64) {
        let free = Self { proximal: 0.0, ..*self };
        let base = free.branch([1.0, 1.0]).f;
        if boost.signs == [1.0, 1.0] {
            return (base.change(boost.u), base.magnitude(boost.u) + base.magnitude(1.0));
        }
        let f = free.branch(boost.signs).f;
        (f.value(boost.u) - base.value(1.0), f.magnitude(boost.u) + base.magnitude(1.0))
    }
}

/// A pair problem on the hyperbola: two rows, and the smooth part on the four components.
#[derive(Debug, Clone, Copy)]
pub struct HyperbolaPair<'a> {
    /// Global indices of the two rows (for entrywise weights).
    pub rows: (usize, usize),
    /// First row, length r.
    pub x: &'a [f64],
    /// Second row, length r.
    pub y: &'a [f64],
    /// The four components; the first contains the identity.
    pub branches: [Branch; 4],
    /// Smallest and largest u allowed.
    pub range: (f64, f64),
    /// True if |μ| is bounded; the problem then is bounded below.
    pub bounded: bool,
}

impl<'a> HyperbolaPair<'a> {
    /// Creates the pair problem of a model, with |μ| at most `rapidity_bound` if there is one.
    #[inline(always)]
    pub fn new(
        rows: (usize, usize),
        x: &'a [f64],
        y: &'a [f64],
        model: &LightModel,
        rapidity_bound: Option<f64>,
    ) -> Self {
        let limit = rapidity_bound.map_or(MAX_RAPIDITY, |b| b.min(MAX_RAPIDITY));
        Self {
            rows,
            x,
            y,
            branches: SIGNS.map(|signs| model.branch(signs)),
            range: ((-limit).exp(), limit.exp()),
            bounded: rapidity_bound.is_some(),
        }
    }

    /// Returns the value of component `branch` at u, relative to the identity, without the penalty.
    #[inline(always)]
    pub fn relative(&self, branch: usize, u: f64) -> f64 {
        let f = &self.branches[branch].f;
        if branch == 0 { f.change(u) } else { f.value(u) - self.branches[0].f.value(1.0) }
    }

    /// Returns the direction u → ∞ (`true`) or u → 0 of a component along which ψ plus a penalty of the given
    /// tail slopes falls without bound, if there is one.
    #[inline(always)]
    pub fn recession(&self, branch: usize, slopes: [f64; 2]) -> Option<bool> {
        if self.bounded {
            return None;
        }
        let tails = &self.branches[branch].tails;
        if tails[0].falls(slopes[0], 0.0) {
            Some(true)
        } else if tails[1].falls(slopes[1], 0.0) {
            Some(false)
        } else {
            None
        }
    }
}

/// A direction along which a pair problem is unbounded below.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Recession {
    /// Global indices of the two rows, or of the two columns.
    pub pair: (usize, usize),
    /// True for a pair of columns.
    pub columns: bool,
    /// (σ₁, σ₂) of the component.
    pub signs: [f64; 2],
    /// True if the rapidity goes to +∞, false if to −∞.
    pub upwards: bool,
}

/// The best candidate so far, at first the identity with value zero.
#[derive(Debug, Clone, Copy)]
pub struct BestBoost {
    /// Value of the best candidate, relative to the identity's.
    pub value: f64,
    /// The candidate.
    pub boost: Boost,
    /// Index of the breakpoint at which entries vanish, in the numbering of the penalty's solver.
    pub breakpoint: Option<usize>,
    /// A component and direction (u → ∞ if true) along which the problem is unbounded.
    pub unbounded: Option<([f64; 2], bool)>,
}

impl BestBoost {
    /// The identity.
    pub const IDENTITY: Self = Self { value: 0.0, boost: Boost::IDENTITY, breakpoint: None, unbounded: None };

    /// Returns the result for an unbounded problem.
    pub fn unbounded(signs: [f64; 2], upwards: bool) -> Self {
        Self { unbounded: Some((signs, upwards)), ..Self::IDENTITY }
    }

    /// Takes the candidate if it is strictly better.
    #[inline(always)]
    pub fn offer(&mut self, value: f64, u: f64, signs: [f64; 2], breakpoint: Option<usize>) {
        if value < self.value {
            self.value = value;
            self.boost = Boost { u, signs };
            self.breakpoint = breakpoint;
        }
    }
}
