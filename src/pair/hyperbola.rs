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

use crate::numerics;

/// Largest |μ| searched: cosh 2μ, and with it the objective, overflows beyond about 355.
pub(crate) const MAX_RAPIDITY: f64 = 350.0;

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
    /// Returns the minima in ascending order.
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

/// Returns the range of u that is searched.
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

    /// Returns the sum of the magnitudes of the terms at u.
    #[inline(always)]
    pub fn magnitude(&self, u: f64) -> f64 {
        let v = 1.0 / u;
        (self.a_plus * u).abs() + (self.a_minus * v).abs() + (self.p_plus * u * u).abs() + (self.p_minus * v * v).abs()
    }

    /// dψ/dμ.
    #[inline(always)]
    pub fn slope(&self, u: f64) -> f64 {
        let v = 1.0 / u;
        (self.a_plus * u - self.a_minus * v) + 2.0 * (self.p_plus * u * u - self.p_minus * v * v)
    }

    /// Returns a lower bound over all u > 0, cheap and not sharp; −∞ if p± < 0, or if p± = 0 and a± < 0.
    #[inline(always)]
    pub fn lower_bound(&self) -> f64 {
        // With a negative quadratic coefficient ψ may be unbounded; the solver decides.
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
        let (up, down) = (half(self.a_plus, self.p_plus), half(self.a_minus, self.p_minus));
        if up == 0.0 && down == 0.0 {
            return 2.0 * ((self.a_plus * self.a_minus).sqrt() + (self.p_plus * self.p_minus).sqrt());
        }
        up + down
    }

    /// Returns true only if ψ has at most one stationary point, which then is its minimum.
    #[inline(always)]
    fn is_simple(&self) -> bool {
        self.p_plus >= 0.0 && self.p_minus >= 0.0 && (self.a_plus >= 0.0 || self.a_minus >= 0.0)
    }

    /// Returns all local minima with lo < u < hi.
    #[inline(always)]
    pub fn minima(&self, lo: f64, hi: f64) -> BoostMinima {
        let mut out = BoostMinima { points: [1.0; 2], len: 0 };
        let scale = self.a_plus.abs().max(self.a_minus.abs()).max(self.p_plus.abs()).max(self.p_minus.abs());
        // Two steps: a subnormal scale does not overflow. Without a scale no comparison holds.
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

    /// Adds the root of the slope between lo and hi, where the quartic is monotone, if the slope rises.
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

    /// Returns the root of the quartic's derivative between lo and hi, where this derivative is monotone.
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

/// Returns the root between lo and hi of a function with `sign(lo) < 0 < sign(hi)`. The root is bracketed
/// from u = 1 outwards. Then Newton's method runs on `newton` = (value, derivative), with geometric bisection
/// if a step leaves the bracket or exceeds half of the previous one.
#[inline(always)]
fn root(sign: impl Fn(f64) -> f64, newton: impl Fn(f64) -> (f64, f64), mut lo: f64, mut hi: f64) -> f64 {
    let mut u = if lo < 1.0 && hi > 1.0 { 1.0 } else { (lo * hi).sqrt() };
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
    u = if lo.max(0.5) < hi.min(2.0) && lo <= 1.0 && hi >= 1.0 { 1.0 } else { u };
    if !(u > lo && u < hi) {
        u = (lo * hi).sqrt();
    }
    let mut previous = hi - lo;
    for _ in 0..numerics::STEPS {
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
        if previous <= 0.5 * numerics::ULPS * u || hi / lo - 1.0 <= 0.5 * numerics::ULPS {
            break;
        }
    }
    u
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_slopes_and_bounds_are_those_of_the_terms() {
        let numbers = [-3.0, -0.5, 0.0, 0.25, 2.0];
        let points: Vec<f64> = (-160..=160).map(|k| (f64::from(k) / 40.0).exp()).collect();
        for index in 0..numbers.len().pow(4) {
            let [a_plus, a_minus, p_plus, p_minus] = [1, 5, 25, 125].map(|k| numbers[index / k % 5]);
            let f = Hyp { a_plus, a_minus, p_plus, p_minus };
            let bound = f.lower_bound();
            let mut least = f64::INFINITY;
            for &u in &points {
                let terms = [a_plus * u, a_minus / u, p_plus * u * u, p_minus / (u * u)];
                let (value, magnitude) = (terms.iter().sum::<f64>(), f.magnitude(u));
                let sizes: f64 = terms.iter().map(|term| term.abs()).sum();
                assert!((magnitude - sizes).abs() <= 1e-14 * sizes);
                assert!((f.value(u) - value).abs() <= 1e-14 * magnitude);
                let rounding = 1e-14 * (magnitude + f.magnitude(1.0));
                assert!((f.change(u) - (value - f.value(1.0))).abs() <= rounding);
                let slope = terms[0] - terms[1] + 2.0 * (terms[2] - terms[3]);
                assert!((f.slope(u) - slope).abs() <= 1e-14 * magnitude);
                assert!(bound <= value + 1e-14 * magnitude, "{f:?} at {u}");
                least = least.min(value);
            }
            // Bounds are finite if quadratic terms dominate negative linear ones, and sharp for even ψ.
            let held = |a: f64, p: f64| p > 0.0 || (p == 0.0 && a >= 0.0);
            assert_eq!(bound.is_finite(), held(a_plus, p_plus) && held(a_minus, p_minus), "{f:?}");
            if a_plus == a_minus && p_plus == p_minus && a_plus >= 0.0 && p_plus >= 0.0 {
                assert!((bound - least).abs() <= 1e-12 * least);
            }
        }
    }
}
