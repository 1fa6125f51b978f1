//! The pair problem on the hyperbola: two rows of opposite sign move by a boost.
//!
//! With k± = (1, ±1), u = e^μ and D = diag(σ₁, σ₂), every V with VᵀJ_BV = J_B is
//!
//! ```text
//! V = D [[cosh μ, sinh μ], [sinh μ, cosh μ]] = ½ (u w₊k₊ᵀ + u⁻¹ w₋k₋ᵀ),   w± = (σ₁, ±σ₂)
//! ```
//!
//! once: the four choices of D are the four components. In the light-cone coordinates z± = x ± y of
//! the two rows the smooth part is
//!
//! ```text
//! ψ(u) = a₊u + a₋/u + p₊u² + p₋/u² + const,
//! a± = ½ w±ᵀ(G Zᵀ − M S)k±,   p± = ⅛ (w±ᵀM w±)(k±ᵀS k±),   k±ᵀS k± = z±ᵀD z±,
//! ```
//!
//! each coefficient formed directly (forming p and q of `p cosh 2μ + q sinh 2μ` first would lose p − q
//! or p + q to cancellation for nearly lightlike rows). Stationary points are the positive roots of
//! `2p₊u⁴ + a₊u³ − a₋u − 2p₋`: nothing is squared, no root is spurious.
//!
//! Accuracy: a root is bracketed by evaluated signs until the bracket closes to rounding, so it is
//! an exact root of a quartic whose coefficients differ by a few ε, relatively, each; the value
//! there exceeds the minimum by a few ε times the sum of the magnitudes of the four terms (tests
//! hold it to 1e-13). Rapidities |μ| up to [`MAX_RAPIDITY`] are searched, beyond which cosh 2μ
//! overflows.

use super::Sym2;

/// Largest |μ| searched: cosh 2μ, and so the objective, is not a double beyond about 355.
pub const MAX_RAPIDITY: f64 = 350.0;

/// A coefficient of ψ that is negative by less than this, relative to the terms it was added up
/// from, counts as zero: it is rounding of M and no proof that the pair is unbounded.
pub const RECESSION_TOLERANCE: f64 = 1e-12;

/// Newton or bisection steps, at most, for one root.
const MAX_STEPS: usize = 200;

/// Relative step at which a root has converged.
const ROOT_STOP: f64 = 2.0 * f64::EPSILON;

/// `ψ(u) = a₊u + a₋/u + p₊u² + p₋/u²`, u > 0.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Hyp {
    /// Coefficient of u: (a + b)/2 of `a cosh μ + b sinh μ`.
    pub a_plus: f64,
    /// Coefficient of 1/u: (a − b)/2.
    pub a_minus: f64,
    /// Coefficient of u²: (p + q)/2 of `p cosh 2μ + q sinh 2μ`.
    pub p_plus: f64,
    /// Coefficient of 1/u²: (p − q)/2.
    pub p_minus: f64,
}

/// Local minima of a [`Hyp`], at most two, as values of u.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoostMinima {
    points: [f64; 2],
    len: usize,
}

impl BoostMinima {
    /// The minima in ascending order.
    #[inline(always)]
    pub fn points(&self) -> &[f64] {
        &self.points[..self.len]
    }

    fn push(&mut self, u: f64) {
        if self.len < 2 {
            self.points[self.len] = u;
            self.len += 1;
        }
    }
}

/// The range of u that is searched.
pub fn full_range() -> (f64, f64) {
    ((-MAX_RAPIDITY).exp(), MAX_RAPIDITY.exp())
}

impl Hyp {
    /// ψ(u).
    #[inline(always)]
    pub fn value(&self, u: f64) -> f64 {
        let v = 1.0 / u;
        (self.a_plus * u + self.a_minus * v) + (self.p_plus * u * u + self.p_minus * v * v)
    }

    /// ψ(u) − ψ(1), accurate for small rapidities.
    #[inline(always)]
    pub fn change(&self, u: f64) -> f64 {
        let v = 1.0 / u;
        let d = u - 1.0;
        // 1/u − 1 = −d/u;  u² − 1 = d(u + 1);  1/u² − 1 = −d(u + 1)/u².
        d * ((self.a_plus - self.a_minus * v) + (u + 1.0) * (self.p_plus - self.p_minus * v * v))
    }

    /// Sum of the magnitudes of the terms at u.
    #[inline(always)]
    pub fn magnitude(&self, u: f64) -> f64 {
        let v = 1.0 / u;
        (self.a_plus * u).abs()
            + (self.a_minus * v).abs()
            + (self.p_plus * u * u).abs()
            + (self.p_minus * v * v).abs()
    }

    /// dψ/dμ.
    #[inline(always)]
    pub fn slope(&self, u: f64) -> f64 {
        let v = 1.0 / u;
        (self.a_plus * u - self.a_minus * v) + 2.0 * (self.p_plus * u * u - self.p_minus * v * v)
    }

    /// A lower bound over all u > 0, cheap and not sharp; −∞ if a quadratic coefficient is not
    /// positive where it has to be.
    #[inline(always)]
    pub fn lower_bound(&self) -> f64 {
        // Quadratic coefficients that are not positive are left to the solver.
        if !(self.p_plus >= 0.0 && self.p_minus >= 0.0) {
            return f64::NEG_INFINITY;
        }
        let half = |a: f64, p: f64| {
            if a >= 0.0 {
                0.0
            } else if p > 0.0 {
                -0.25 * a * a / p
            } else {
                f64::NEG_INFINITY
            }
        };
        let (up, down) = (
            half(self.a_plus, self.p_plus),
            half(self.a_minus, self.p_minus),
        );
        if up == 0.0 && down == 0.0 {
            return 2.0
                * ((self.a_plus * self.a_minus).sqrt() + (self.p_plus * self.p_minus).sqrt());
        }
        up + down
    }

    /// Whether ψ has a single stationary point for sure: it then is its minimum.
    #[inline(always)]
    fn is_simple(&self) -> bool {
        self.p_plus >= 0.0 && self.p_minus >= 0.0 && (self.a_plus >= 0.0 || self.a_minus >= 0.0)
    }

    /// All local minima with lo < u < hi.
    #[inline(always)]
    pub fn minima(&self, lo: f64, hi: f64) -> BoostMinima {
        let mut out = BoostMinima {
            points: [1.0; 2],
            len: 0,
        };
        let scale = self
            .a_plus
            .abs()
            .max(self.a_minus.abs())
            .max(self.p_plus.abs())
            .max(self.p_minus.abs());
        if scale == 0.0 || !scale.is_finite() {
            return out;
        }
        // Two steps, so that a subnormal scale does not overflow.
        let half = 1.0 / scale.sqrt();
        let f = Self {
            a_plus: self.a_plus * half * half,
            a_minus: self.a_minus * half * half,
            p_plus: self.p_plus * half * half,
            p_minus: self.p_minus * half * half,
        };
        if f.is_simple() {
            f.push_rising(&mut out, lo, hi);
            return out;
        }
        // The quartic's monotone pieces end at roots of its derivative 8p₊u³ + 3a₊u² − a₋, whose
        // own monotone pieces end at u = −a₊/(4p₊).
        let bend = -f.a_plus / (4.0 * f.p_plus);
        let mut cuts = [lo, hi, hi, hi];
        let mut count = 1;
        let mut from = lo;
        for to in [bend, hi] {
            if !(to > from && to <= hi) {
                continue;
            }
            if let Some(u) = f.turning_point(from, to) {
                cuts[count] = u;
                count += 1;
            }
            from = to;
        }
        cuts[count] = hi;
        for piece in cuts[..=count].windows(2) {
            f.push_rising(&mut out, piece[0], piece[1]);
        }
        out
    }

    /// The root of the slope between lo and hi, on which the quartic is monotone, if it rises there.
    #[inline(always)]
    fn push_rising(&self, out: &mut BoostMinima, lo: f64, hi: f64) {
        if !(self.slope(lo) < 0.0 && self.slope(hi) > 0.0) {
            return;
        }
        let quartic = |u: f64| {
            let (u2, c) = (u * u, 2.0 * self.p_plus);
            (
                u2 * u * (c * u + self.a_plus) - self.a_minus * u - 2.0 * self.p_minus,
                u2 * (4.0 * c * u + 3.0 * self.a_plus) - self.a_minus,
            )
        };
        out.push(root(|u| self.slope(u), quartic, lo, hi));
    }

    /// The root of the quartic's derivative between lo and hi, on which it is monotone.
    #[inline(always)]
    fn turning_point(&self, lo: f64, hi: f64) -> Option<f64> {
        // Divided by u, so that nothing overflows.
        let cubic = |u: f64| 8.0 * self.p_plus * u * u + 3.0 * self.a_plus * u - self.a_minus / u;
        let (at_lo, at_hi) = (cubic(lo), cubic(hi));
        if !(at_lo * at_hi.signum() < 0.0) {
            return None;
        }
        let sign = at_hi.signum();
        let newton = |u: f64| {
            (
                sign * (u * u * (8.0 * self.p_plus * u + 3.0 * self.a_plus) - self.a_minus),
                sign * u * (24.0 * self.p_plus * u + 6.0 * self.a_plus),
            )
        };
        Some(root(|u| sign * cubic(u), newton, lo, hi))
    }
}

/// The root between lo and hi of a function with `sign(lo) < 0 < sign(hi)`: bracketed from u = 1
/// outwards, then Newton's method on `newton` = (value, derivative), with geometric bisection
/// whenever a step leaves the bracket or does not halve.
#[inline(always)]
fn root(
    sign: impl Fn(f64) -> f64,
    newton: impl Fn(f64) -> (f64, f64),
    mut lo: f64,
    mut hi: f64,
) -> f64 {
    let mut u = if lo < 1.0 && hi > 1.0 {
        1.0
    } else {
        (lo * hi).sqrt()
    };
    // The nearest sign change, by doubling steps.
    let mut factor = 2.0;
    let below = sign(u);
    if below == 0.0 {
        return u;
    }
    let mut probe = u;
    if below < 0.0 {
        lo = u;
        loop {
            probe *= factor;
            if !(probe < hi) {
                break;
            }
            if sign(probe) >= 0.0 {
                hi = probe;
                break;
            }
            lo = probe;
            factor *= factor;
        }
    } else {
        hi = u;
        loop {
            probe /= factor;
            if !(probe > lo) {
                break;
            }
            if sign(probe) <= 0.0 {
                lo = probe;
                break;
            }
            hi = probe;
            factor *= factor;
        }
    }
    u = if lo.max(0.5) < hi.min(2.0) && lo <= 1.0 && hi >= 1.0 {
        1.0
    } else {
        u
    };
    if !(u > lo && u < hi) {
        u = (lo * hi).sqrt();
    }
    let mut previous = hi - lo;
    for _ in 0..MAX_STEPS {
        let here = sign(u);
        if here < 0.0 {
            lo = u;
        } else if here > 0.0 {
            hi = u;
        } else {
            break;
        }
        let (value, derivative) = newton(u);
        let step = value / derivative;
        let newton_point = u - step;
        let good = newton_point > lo && newton_point < hi && step.abs() <= 0.5 * previous;
        let next = if good { newton_point } else { (lo * hi).sqrt() };
        previous = (next - u).abs();
        u = next;
        if previous <= ROOT_STOP * u || hi / lo - 1.0 <= ROOT_STOP {
            break;
        }
    }
    u
}

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
    pub const IDENTITY: Self = Self {
        u: 1.0,
        signs: [1.0, 1.0],
    };

    /// The rapidity μ.
    pub fn rapidity(self) -> f64 {
        self.u.ln()
    }

    /// (cosh μ − 1, sinh μ), accurate for small μ.
    #[inline(always)]
    fn small(self) -> (f64, f64) {
        let d = self.u - 1.0;
        (0.5 * d * d / self.u, 0.5 * d * (1.0 + 1.0 / self.u))
    }

    /// The matrix itself.
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

    /// V applied to the rows (x, y), into (new_x, new_y); −0.0 becomes 0.0.
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

/// How ψ behaves as u → ∞ (or u → 0), without the proximal term.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tail {
    quadratic: f64,
    linear: f64,
    linear_size: f64,
}

impl Tail {
    /// Whether ψ plus a penalty growing like `slope`·u falls without bound.
    #[inline(always)]
    pub fn falls(&self, slope: f64) -> bool {
        self.quadratic < 0.0
            || (self.quadratic == 0.0
                && self.linear + slope < -RECESSION_TOLERANCE * (self.linear_size + slope.abs()))
    }
}

/// One of the four components: D and ψ on it.
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
    /// gradient rows times z₊ and z₋: `gz[i] = (g_i·z₊, g_i·z₋)`.
    pub gz: [[f64; 2]; 2],
    /// Row side of the curvature.
    pub m: Sym2,
    /// `S k±`: `t[i] = (x_i D z₊, x_i D z₋)`.
    pub t: [[f64; 2]; 2],
    /// `(z₊ D z₊, z₋ D z₋)`.
    pub s: [f64; 2],
    /// What `s` was added up from, in magnitude: a value this times [`RECESSION_TOLERANCE`] below zero
    /// is rounding.
    pub s_size: [f64; 2],
    /// Proximal weight α ≥ 0.
    pub alpha: f64,
}

/// The four components of a hyperbola.
pub const SIGNS: [[f64; 2]; 4] = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]];

impl LightModel {
    /// ψ on the component of `signs`, up to one constant common to all four.
    #[inline(always)]
    pub fn branch(&self, signs: [f64; 2]) -> Branch {
        let mut branch = Branch {
            signs,
            ..Branch::default()
        };
        let mixed = signs[0] * signs[1];
        let m_size = self.m.d0.abs() + self.m.d1.abs() + 2.0 * self.m.o.abs();
        let mut a = [0.0; 2];
        let mut p = [0.0; 2];
        for k in 0..2 {
            let orientation = if k == 0 { 1.0 } else { -1.0 };
            let w = [signs[0], orientation * signs[1]];
            // w±ᵀ M: then products with S k±.
            let wm = [
                w[0] * self.m.d0 + w[1] * self.m.o,
                w[0] * self.m.o + w[1] * self.m.d1,
            ];
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
                linear_size: 0.5
                    * (g0.abs() + g1.abs() + m_size * (self.t[0][k].abs() + self.t[1][k].abs())),
            };
        }
        let trace = 0.5 * self.alpha * (signs[0] + signs[1]);
        branch.f = Hyp {
            a_plus: a[0] - trace,
            a_minus: a[1] - trace,
            p_plus: p[0] + 0.5 * self.alpha,
            p_minus: p[1] + 0.5 * self.alpha,
        };
        branch
    }

    /// The same pair under the scalar bound `ς/2 ‖E‖²`: M = ςI, S = I.
    #[inline(always)]
    pub fn scalar(&self, bound: f64) -> Self {
        Self {
            m: Sym2::scalar(bound),
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
        let free = Self {
            alpha: 0.0,
            ..*self
        };
        let base = free.branch([1.0, 1.0]).f;
        if boost.signs == [1.0, 1.0] {
            return (
                base.change(boost.u),
                base.magnitude(boost.u) + base.magnitude(1.0),
            );
        }
        let f = free.branch(boost.signs).f;
        (
            f.value(boost.u) - base.value(1.0),
            f.magnitude(boost.u) + base.magnitude(1.0),
        )
    }
}

/// A pair problem on the hyperbola as a penalty sees it.
#[derive(Debug, Clone, Copy)]
pub struct HyperbolaPair<'a> {
    /// Global indices of the two rows (for entrywise weights).
    pub rows: (usize, usize),
    /// First row, length r.
    pub x: &'a [f64],
    /// Second row, length r.
    pub y: &'a [f64],
    /// The four components; the first is that of the identity.
    pub branches: [Branch; 4],
    /// Smallest and largest u allowed.
    pub range: (f64, f64),
    /// Whether |μ| is bounded, so that nothing can be unbounded.
    pub bounded: bool,
}

impl<'a> HyperbolaPair<'a> {
    /// The pair problem of a model, with |μ| at most `rapidity_bound` if there is one.
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

    /// Value of component `branch` at u, relative to the identity, without the penalty.
    #[inline(always)]
    pub fn relative(&self, branch: usize, u: f64) -> f64 {
        let f = &self.branches[branch].f;
        if branch == 0 {
            f.change(u)
        } else {
            f.value(u) - self.branches[0].f.value(1.0)
        }
    }

    /// The direction u → ∞ (`true`) or u → 0 of a component along which ψ plus a penalty of the
    /// given tail slopes falls without bound.
    #[inline(always)]
    pub fn recession(&self, branch: usize, slopes: [f64; 2]) -> Option<bool> {
        if self.bounded {
            return None;
        }
        let tails = &self.branches[branch].tails;
        if tails[0].falls(slopes[0]) {
            Some(true)
        } else if tails[1].falls(slopes[1]) {
            Some(false)
        } else {
            None
        }
    }
}

/// A direction along which a pair problem is unbounded below.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recession {
    /// Global indices of the two rows, or of the two columns.
    pub pair: (usize, usize),
    /// Whether the pair is of columns.
    pub columns: bool,
    /// (σ₁, σ₂) of the component.
    pub signs: [f64; 2],
    /// Whether the rapidity goes to +∞ (to −∞ otherwise).
    pub upwards: bool,
}

/// The best candidate found so far; the identity, with value zero, until something is better.
#[derive(Debug, Clone, Copy)]
pub struct BestBoost {
    /// Value of the best candidate, relative to the identity's.
    pub value: f64,
    /// The candidate.
    pub boost: Boost,
    /// Whether some entries vanish there: the index of the breakpoint (meaning is the penalty's).
    pub breakpoint: Option<usize>,
    /// A component and direction (u → ∞ if true) along which the problem is unbounded.
    pub unbounded: Option<([f64; 2], bool)>,
}

impl BestBoost {
    /// The identity.
    pub const IDENTITY: Self = Self {
        value: 0.0,
        boost: Boost::IDENTITY,
        breakpoint: None,
        unbounded: None,
    };

    /// The answer for an unbounded problem.
    pub fn unbounded(signs: [f64; 2], upwards: bool) -> Self {
        Self {
            unbounded: Some((signs, upwards)),
            ..Self::IDENTITY
        }
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
