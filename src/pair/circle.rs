//! `a cosθ + b sinθ + p cos2θ + q sin2θ` on the circle: values, changes and all local minima.
//!
//! With v = (cosθ, sinθ) this is `gᵀv + vᵀHv`, H = [[p, q], [q, −p]], eigenvalues ±ρ. A stationary
//! point solves (H + μI) v = −g/2, |v| = 1, which is a quartic in the multiplier μ. In the
//! eigenbasis, with t = μ − ρ,
//!
//! ```text
//! v₋ = −g₋/(2t),   v₊ = −g₊/(2(t + 2ρ)),   v₋² + v₊² = 1.
//! ```
//!
//! The global minimum belongs to the largest root (t ≥ 0), and there is at most one more local
//! minimum, at the largest root in (−2ρ, 0) (Martínez, SIAM J. Optim. 4, 1994). Both roots are
//! reached monotonically by Newton's method in t itself, so no root is spurious, nothing is
//! squared, and a double root (the hard case g₋ = 0) is not special: v₋ then follows from |v| = 1.
//!
//! Accuracy: the value at the returned global minimum exceeds the true minimum by at most a few ε
//! times |a| + |b| + |p| + |q| (tests hold it to 1e-14), at any scale from 1e-150 to 1e150.

use crate::numerics;

/// The function `a cosθ + b sinθ + p cos2θ + q sin2θ`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Trig {
    /// Coefficient of cosθ.
    pub a: f64,
    /// Coefficient of sinθ.
    pub b: f64,
    /// Coefficient of cos2θ.
    pub p: f64,
    /// Coefficient of sin2θ.
    pub q: f64,
}

/// The local minima of a [`Trig`] as (cosθ, sinθ); the first is global.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Minima {
    points: [(f64, f64); 2],
    len: usize,
}

impl Minima {
    /// Returns the local minima, the global one first.
    #[inline(always)]
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points[..self.len]
    }
}

impl Trig {
    /// Returns the value at (cosθ, sinθ) = (c, s).
    #[inline(always)]
    pub fn value(&self, c: f64, s: f64) -> f64 {
        self.a * c + self.b * s + self.p * (c - s) * (c + s) + 2.0 * self.q * c * s
    }

    /// Returns the value at (c, s) less the value at θ = 0, accurate for small angles.
    #[inline(always)]
    pub fn change(&self, c: f64, s: f64) -> f64 {
        let c1 = if c > 0.0 { -s * s / (1.0 + c) } else { c - 1.0 };
        self.a * c1 + s * (self.b + 2.0 * (self.q * c - self.p * s))
    }

    /// Returns the derivative with respect to θ at (c, s).
    #[inline(always)]
    pub fn slope(&self, c: f64, s: f64) -> f64 {
        self.b * c - self.a * s + 2.0 * (self.q * (c - s) * (c + s) - 2.0 * self.p * c * s)
    }

    /// Returns the sum of the magnitudes of the coefficients: a bound on the absolute value.
    #[inline(always)]
    pub fn magnitude(&self) -> f64 {
        self.a.abs() + self.b.abs() + self.p.abs() + self.q.abs()
    }

    /// Returns a lower bound, the sum of the minima of both harmonics (two square roots).
    #[inline(always)]
    pub fn lower_bound(&self) -> f64 {
        -(self.a * self.a + self.b * self.b).sqrt() - (self.p * self.p + self.q * self.q).sqrt()
    }

    /// Returns g with g(θ) = f(θ + quarter·π/2), which is f from the start of that quadrant.
    #[inline(always)]
    pub fn quadrant(&self, quarter: usize) -> Self {
        let (a, b) = match quarter & 3 {
            0 => (self.a, self.b),
            1 => (self.b, -self.a),
            2 => (-self.a, -self.b),
            _ => (-self.b, self.a),
        };
        let sign = if quarter & 1 == 0 { 1.0 } else { -1.0 };
        Self { a, b, p: sign * self.p, q: sign * self.q }
    }

    /// Returns a global minimum as (cosθ, sinθ).
    #[inline(always)]
    pub fn global_minimum(&self) -> (f64, f64) {
        self.solve(false).points[0]
    }

    /// Returns all local minima: one or two.
    #[inline(always)]
    pub fn minima(&self) -> Minima {
        self.solve(true)
    }

    #[inline(always)]
    fn solve(&self, all: bool) -> Minima {
        let scale = self.a.abs().max(self.b.abs()).max(self.p.abs()).max(self.q.abs());
        if scale == 0.0 || !scale.is_finite() {
            return Minima { points: [(1.0, 0.0); 2], len: 1 };
        }
        let inv = 1.0 / scale;
        if !inv.is_finite() {
            // Subnormal scale: bring the coefficients up first.
            let up = 2f64.powi(600);
            let raised = Self { a: self.a * up, b: self.b * up, p: self.p * up, q: self.q * up };
            return raised.solve_scaled(all, 1.0 / (scale * up));
        }
        self.solve_scaled(all, inv)
    }

    /// Returns the minima for coefficients of size one after multiplication by `inv`. One function, inlined
    /// into every kernel: the two roots share their coordinates.
    #[inline(always)]
    fn solve_scaled(&self, all: bool, inv: f64) -> Minima {
        let (a, b, p, q) = (self.a * inv, self.b * inv, self.p * inv, self.q * inv);
        let rho = (p * p + q * q).sqrt();
        if rho < 1e-150 {
            let length = (a * a + b * b).sqrt();
            let point = if length == 0.0 { (1.0, 0.0) } else { (-a / length, -b / length) };
            return Minima { points: [point; 2], len: 1 };
        }
        // Eigenvector (cf, sf) of +ρ, by the half-angle formula that does not cancel.
        let cos2 = p / rho;
        let (cf, sf) = if cos2 >= 0.0 {
            let cf = (0.5 * (1.0 + cos2)).sqrt();
            (cf, 0.5 * (q / rho) / cf)
        } else {
            let sf = (0.5 * (1.0 - cos2)).sqrt();
            (0.5 * (q / rho) / sf, sf)
        };
        let plus = a * cf + b * sf;
        let minus = b * cf - a * sf;
        let back = |v_plus: f64, v_minus: f64| {
            let (c, s) = (v_plus * cf - v_minus * sf, v_plus * sf + v_minus * cf);
            let length = (c * c + s * s).sqrt();
            (c / length, s / length)
        };
        let (gm, gp) = (0.5 * minus.abs(), 0.5 * plus.abs());
        let rho2 = 2.0 * rho;
        if gm <= f64::MIN_POSITIVE {
            // Hard case: v₋ is free in sign; two equal minima unless v₊ fills the circle.
            let v_plus = -plus / (2.0 * rho2);
            if v_plus.abs() >= 1.0 {
                return Minima { points: [back(-plus.signum(), 0.0); 2], len: 1 };
            }
            let v_minus = (1.0 - v_plus * v_plus).sqrt();
            return Minima { points: [back(v_plus, -v_minus), back(v_plus, v_minus)], len: if all { 2 } else { 1 } };
        }
        // Largest root: Newton on 1/|v| − 1 from the left of the root, where it is monotone.
        let mut t = gm.max(gp - rho2);
        let mut v_minus = gm / t;
        let mut v_plus = gp / (t + rho2);
        for _ in 0..numerics::STEPS {
            let square = v_minus * v_minus + v_plus * v_plus;
            let slope = v_minus * v_minus / t + v_plus * v_plus / (t + rho2);
            let step = square * (square.sqrt() - 1.0) / slope;
            if !(step.abs() > numerics::ULPS * t) {
                break;
            }
            t += step;
            v_minus = gm / t;
            v_plus = gp / (t + rho2);
        }
        let signed = |v: f64, g: f64| if g > 0.0 { -v } else { v };
        let global = back(signed(v_plus, plus), signed(v_minus, minus));
        if !all || gm >= rho2 {
            return Minima { points: [global; 2], len: 1 };
        }
        // Second root: τ = −t in (0, 2ρ); φ(τ) = (gm/τ)² + (gp/(2ρ − τ))² − 1 is convex and
        // nonnegative at τ = gm, so Newton from there climbs to the root if there is one.
        let mut tau = gm;
        for _ in 0..numerics::STEPS {
            let (u, w) = (gm / tau, gp / (rho2 - tau));
            let phi = u * u + w * w - 1.0;
            let slope = 2.0 * (w * w / (rho2 - tau) - u * u / tau);
            if slope >= 0.0 {
                return Minima { points: [global; 2], len: 1 };
            }
            let step = -phi / slope;
            if !(step > numerics::ULPS * tau) {
                break;
            }
            tau += step;
            if tau >= rho2 {
                return Minima { points: [global; 2], len: 1 };
            }
        }
        let local = back(signed(gp / (rho2 - tau), plus), -signed(gm / tau, minus));
        Minima { points: [global, local], len: 2 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grid_minimum(f: &Trig, n: usize) -> f64 {
        (0..n)
            .map(|i| {
                let t = i as f64 * std::f64::consts::TAU / n as f64;
                f.value(t.cos(), t.sin())
            })
            .fold(f64::INFINITY, f64::min)
    }

    fn curvature(f: &Trig, c: f64, s: f64) -> f64 {
        -f.a * c - f.b * s - 4.0 * (f.p * (c - s) * (c + s) + 2.0 * f.q * c * s)
    }

    fn check(f: &Trig) {
        let minima = f.minima();
        let scale = f.magnitude();
        let (c, s) = minima.points()[0];
        assert!((c.hypot(s) - 1.0).abs() < 1e-15);
        assert!(f.value(c, s) <= grid_minimum(f, 2000) + 1e-14 * scale, "{f:?}");
        assert!(f.lower_bound() <= f.value(c, s) + 1e-14 * scale);
        for &(c, s) in minima.points() {
            // At a nearly double root the slope is small but the angle is not sharp.
            assert!(f.slope(c, s).abs() <= 1e-11 * scale, "{f:?} {c} {s}");
            assert!(curvature(f, c, s) >= -1e-7 * scale, "{f:?} {c} {s}");
        }
        // Every strict local minimum of a fine grid is one of the points.
        let n = 4096;
        let at = |i: usize| {
            let t = (i % n) as f64 * std::f64::consts::TAU / n as f64;
            (f.value(t.cos(), t.sin()), t)
        };
        for i in 0..n {
            let (v, t) = at(i);
            let (left, right) = (at(i + n - 1).0, at(i + 1).0);
            if v < left - 1e-9 * scale && v < right - 1e-9 * scale {
                let near = minima
                    .points()
                    .iter()
                    .any(|&(c, s)| (t.cos() - c).hypot(t.sin() - s) < 3.0 * std::f64::consts::TAU / n as f64);
                assert!(near, "{f:?} misses the local minimum near {t}: {minima:?}");
            }
        }
    }

    fn coefficient() -> impl Strategy<Value = f64> {
        prop_oneof![
            4 => -1.0..1.0f64,
            1 => Just(0.0),
            1 => prop_oneof![Just(1.0), Just(-1.0), Just(0.5)],
            1 => (-1.0..1.0f64).prop_map(|x| x * 1e-9),
            1 => (-1.0..1.0f64).prop_map(|x| x * 1e-17),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn minima_are_all_and_global(a in coefficient(), b in coefficient(), p in coefficient(), q in coefficient()) {
            check(&Trig { a, b, p, q });
        }

        #[test]
        fn nearly_double_roots(theta in 0.0..std::f64::consts::TAU, rho in 0.1..1.0f64, gap in -1e-6..1e-6f64) {
            // g₊ = ±4ρ(1 + gap), g₋ tiny: the two minima merge.
            let (c, s) = (theta.cos(), theta.sin());
            let (p, q) = (rho * (c * c - s * s), 2.0 * rho * c * s);
            for minus in [0.0, 1e-12, 1e-6] {
                let plus = 4.0 * rho * (1.0 + gap);
                check(&Trig { a: plus * c - minus * s, b: plus * s + minus * c, p, q });
            }
        }

        #[test]
        fn any_scale(a in -1.0..1.0f64, b in -1.0..1.0f64, p in -1.0..1.0f64, q in -1.0..1.0f64, e in -150i32..150) {
            let scale = 10f64.powi(e);
            let f = Trig { a, b, p, q };
            let g = Trig { a: a * scale, b: b * scale, p: p * scale, q: q * scale };
            let (c, s) = g.global_minimum();
            let (c0, s0) = f.global_minimum();
            prop_assert!(f.value(c, s) <= f.value(c0, s0) + 1e-14);
        }

        #[test]
        fn subnormal_scale(a in -9i64..9, b in -9i64..9, p in -9i64..9, q in -9i64..9) {
            let scaled = |unit: f64| {
                let [a, b, p, q] = [a, b, p, q].map(|k| k as f64 * unit);
                Trig { a, b, p, q }
            };
            let (small, f) = (scaled(2f64.powi(-1050)), scaled(1.0));
            let (points, expected) = (small.minima(), f.minima());
            prop_assert_eq!(points.points().len(), expected.points().len());
            let gap = |(c, s): (f64, f64), (c0, s0): (f64, f64)| (f.value(c, s) - f.value(c0, s0)).abs();
            prop_assert!(gap(points.points()[0], expected.points()[0]) < 1e-13);
        }

        #[test]
        fn change_is_value_difference(a in -1.0..1.0f64, b in -1.0..1.0f64, p in -1.0..1.0f64, q in -1.0..1.0f64, t in -3.0..3.0f64) {
            let f = Trig { a, b, p, q };
            let (c, s) = (t.cos(), t.sin());
            prop_assert!((f.change(c, s) - (f.value(c, s) - f.value(1.0, 0.0))).abs() < 4e-15);
        }

        #[test]
        fn quadrant_shifts_the_angle(a in -1.0..1.0f64, b in -1.0..1.0f64, p in -1.0..1.0f64, q in -1.0..1.0f64, t in 0.0..1.6f64, k in 0usize..4) {
            let f = Trig { a, b, p, q };
            let angle = t + k as f64 * std::f64::consts::FRAC_PI_2;
            let shifted = f.quadrant(k).value(t.cos(), t.sin());
            prop_assert!((shifted - f.value(angle.cos(), angle.sin())).abs() < 1e-14);
        }
    }
}
