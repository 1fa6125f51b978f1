//! Crossings of levels by entries along the circle and the hyperbola, and quadratics of an entry as terms of
//! the smooth part.
//!
//! Every entry of the two rows is `α g₁ + β g₂` with (g₁, g₂) = (cosθ, sinθ) on the circle and (u, 1/u) on
//! the hyperbola. Its `a + b x + ½ c x²` is again a [`Trig`] or [`Hyp`], up to a constant.

use std::f64::consts::{PI, TAU};

use super::{Hyp, Trig};
use crate::numerics;

/// The coefficients (a, b, c) of `a + b x + ½ c x²`.
pub type Piece = [f64; 3];

/// An entry `α g₁ + β g₂` as a function along the curve.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moving {
    pub(crate) alpha: f64,
    pub(crate) beta: f64,
    /// Index of the row (for entrywise data), column, and true for the second row of the pair.
    pub(crate) row: usize,
    pub(crate) column: usize,
    pub(crate) second: bool,
    /// Number of levels below the entry.
    pub(crate) above: usize,
}

/// A point of the curve where an entry meets a level.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crossing {
    pub(crate) at: f64,
    pub(crate) entry: usize,
    pub(crate) level: f64,
    /// Distance up to which the entry is on the level, see [`Sizes::reach`].
    pub(crate) reach: f64,
    /// +1 if the entry rises above the level, −1 if the entry falls below, 0 for a touch.
    pub(crate) step: i8,
}

/// Entries of two rows, and their crossings of the levels.
#[derive(Debug, Clone, Default)]
pub(crate) struct Crossings {
    pub(crate) entries: Vec<Moving>,
    pub(crate) points: Vec<Crossing>,
    /// The crossings that reach a point.
    pub(crate) met: Vec<Crossing>,
    /// The largest reach.
    pub(crate) widest: f64,
}

impl Crossings {
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.points.clear();
        self.widest = 0.0;
    }

    pub(crate) fn sort(&mut self) {
        self.points.sort_unstable_by(|l, r| l.at.total_cmp(&r.at));
    }

    /// Adds an entry and its crossings of the ascending `levels`.
    pub(crate) fn push<C: Curve>(&mut self, mut moving: Moving, levels: &[f64], reach: f64) {
        self.widest = self.widest.max(reach);
        let path = C::path(moving.alpha, moving.beta);
        for &level in levels {
            let (above, crossings) = C::crossings(path, level);
            moving.above += usize::from(above);
            for (at, step) in crossings.into_iter().flatten() {
                self.points.push(Crossing { at, entry: self.entries.len(), level, reach, step });
            }
        }
        self.entries.push(moving);
    }
}

/// The smooth part along a curve plus the pieces of the entries.
pub(crate) trait Curve: Copy {
    /// A point of the curve.
    type Point: Copy;

    /// Data of an entry from which its crossings are computed.
    type Path: Copy;

    fn path(alpha: f64, beta: f64) -> Self::Path;

    /// Returns whether an entry starts above a level, and its crossings with their [steps](Crossing::step).
    fn crossings(path: Self::Path, level: f64) -> (bool, [Option<(f64, i8)>; 2]);

    /// Returns the distance of two parameters; points at most [`numerics::TIE`] apart are equal.
    fn distance(first: f64, second: f64) -> f64;

    fn point(at: f64) -> Self::Point;

    /// Adds `sign` times a finite piece of an entry.
    fn add(&mut self, sign: f64, piece: Piece, entry: &Moving);

    fn value(&self, point: Self::Point) -> f64;

    /// Returns a lower bound of the values between two parameters.
    fn lower_bound(&self, from: f64, to: f64) -> f64;

    /// Returns the local minima between two parameters.
    fn minima(&self, from: f64, to: f64) -> [Option<Self::Point>; 2];
}

/// A function on the circle; the parameter is the angle in [`ON_CIRCLE`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct OnCircle {
    pub(crate) f: Trig,
    pub(crate) constant: f64,
}

/// Computed angles are equal up to this multiple of [`numerics::TIE`].
pub(crate) const SAME_ANGLE: f64 = 4.0;

/// The range of angles, which starts just before 0 so that angles that are 0 up to rounding stay together.
pub(crate) const ON_CIRCLE: (f64, f64) = (-2.0 * SAME_ANGLE * numerics::TIE, TAU - 2.0 * SAME_ANGLE * numerics::TIE);

/// Returns the angle in [`ON_CIRCLE`].
fn wrapped(angle: f64) -> f64 {
    let angle = angle.rem_euclid(TAU);
    if angle >= ON_CIRCLE.1 { angle - TAU } else { angle }
}

impl Curve for OnCircle {
    type Point = (f64, f64);

    /// The largest value, and its angle.
    type Path = (f64, f64);

    fn path(alpha: f64, beta: f64) -> (f64, f64) {
        (alpha.hypot(beta), beta.atan2(alpha))
    }

    fn crossings((length, middle): (f64, f64), level: f64) -> (bool, [Option<(f64, i8)>; 2]) {
        // A level equal to the largest magnitude of the entry, up to rounding, is touched.
        if level.abs() >= length * (1.0 - numerics::ULPS) {
            let touches = level.abs() <= length * (1.0 + numerics::ULPS);
            let turn = if level < 0.0 { PI } else { 0.0 };
            let point = touches.then(|| (wrapped(middle + turn), 0));
            return (level < 0.0, [point, None]);
        }
        let half = (level / length).acos();
        let (up, down) = (wrapped(middle - half), wrapped(middle + half));
        (up > down, [Some((up, 1)), Some((down, -1))])
    }

    fn distance(first: f64, second: f64) -> f64 {
        let difference = (first - second).abs();
        difference.min(TAU - difference) / SAME_ANGLE
    }

    fn point(at: f64) -> (f64, f64) {
        let (s, c) = at.sin_cos();
        (c, s)
    }

    fn add(&mut self, sign: f64, [a, b, c]: Piece, entry: &Moving) {
        let (alpha, beta) = (entry.alpha, entry.beta);
        self.constant += sign * a;
        self.f.a += sign * b * alpha;
        self.f.b += sign * b * beta;
        if c != 0.0 {
            self.constant += 0.25 * sign * c * (alpha * alpha + beta * beta);
            self.f.p += 0.25 * sign * c * (alpha - beta) * (alpha + beta);
            self.f.q += 0.5 * sign * c * alpha * beta;
        }
    }

    fn value(&self, (c, s): (f64, f64)) -> f64 {
        self.f.value(c, s) + self.constant
    }

    /// The larger of the global bound and the lower end less the largest second derivative times width²/8.
    fn lower_bound(&self, from: f64, to: f64) -> f64 {
        let Trig { a, b, p, q } = self.f;
        let bend = (a * a + b * b).sqrt() + 4.0 * (p * p + q * q).sqrt();
        let ends = self.value(Self::point(from)).min(self.value(Self::point(to)));
        let near = ends - 0.125 * bend * (to - from) * (to - from);
        near.max(self.f.lower_bound() + self.constant)
    }

    fn minima(&self, from: f64, to: f64) -> [Option<(f64, f64)>; 2] {
        let minima = self.f.minima();
        let inside = |k: usize| {
            let &(c, s) = minima.points().get(k)?;
            let angle = wrapped(s.atan2(c));
            (angle >= from && angle < to).then_some((c, s))
        };
        [inside(0), inside(1)]
    }
}

/// A function on one component of the hyperbola; the parameter is u.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OnHyperbola {
    pub(crate) f: Hyp,
    pub(crate) constant: f64,
}

impl Curve for OnHyperbola {
    type Point = f64;

    /// α and β.
    type Path = (f64, f64);

    fn path(alpha: f64, beta: f64) -> (f64, f64) {
        (alpha, beta)
    }

    fn crossings((alpha, beta): (f64, f64), level: f64) -> (bool, [Option<(f64, i8)>; 2]) {
        // For u → 0 the entry is β/u, or αu where β = 0.
        let above = match beta == 0.0 {
            false => beta > 0.0,
            true => level < 0.0 || (level == 0.0 && alpha > 0.0),
        };
        let valid = |u: f64| u > 0.0 && u.is_finite();
        let only = |u: f64, step: i8| (above, [valid(u).then_some((u, step)), None]);
        if level == 0.0 {
            if alpha == 0.0 || !(beta / alpha < 0.0) {
                return (above, [None; 2]);
            }
            return only((-beta / alpha).sqrt(), if alpha > 0.0 { 1 } else { -1 });
        }
        // α u² − level·u + β = 0, in the form that does not cancel.
        let half = 0.5 * level;
        let square = half * half - alpha * beta;
        if !(square >= 0.0) {
            return (above, [None; 2]);
        }
        let sum = half + half.signum() * square.sqrt();
        let (first, second) = (sum / alpha, beta / sum);
        match (valid(first), valid(second)) {
            (true, true) => {
                let (near, far) = (first.min(second), first.max(second));
                let step = if alpha > 0.0 { -1 } else { 1 };
                if near == far {
                    return only(near, 0);
                }
                (above, [Some((near, step)), Some((far, -step))])
            }
            (true, false) => only(first, if level > 0.0 { 1 } else { -1 }),
            (false, true) => only(second, if level > 0.0 { -1 } else { 1 }),
            (false, false) => (above, [None; 2]),
        }
    }

    fn distance(first: f64, second: f64) -> f64 {
        (first - second).abs() / first
    }

    fn point(at: f64) -> f64 {
        at
    }

    fn add(&mut self, sign: f64, [a, b, c]: Piece, entry: &Moving) {
        let (alpha, beta) = (entry.alpha, entry.beta);
        self.constant += sign * (a + c * alpha * beta);
        self.f.a_plus += sign * b * alpha;
        self.f.a_minus += sign * b * beta;
        self.f.p_plus += 0.5 * sign * c * alpha * alpha;
        self.f.p_minus += 0.5 * sign * c * beta * beta;
    }

    fn value(&self, u: f64) -> f64 {
        self.f.value(u) + self.constant
    }

    fn lower_bound(&self, _: f64, _: f64) -> f64 {
        self.f.lower_bound() + self.constant
    }

    fn minima(&self, from: f64, to: f64) -> [Option<f64>; 2] {
        let minima = self.f.minima(from, to);
        [0, 1].map(|k| minima.points().get(k).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COEFFICIENTS: [f64; 7] = [-2.0, -0.75, -0.1, 0.0, 0.3, 1.0, 1.5];
    const LEVELS: [f64; 7] = [-3.0, -1.0, -0.25, 0.0, 0.1, 1.0, 2.5];

    /// Checks, along the curve, that entries lie above a level by their crossings exactly if by their values.
    fn follows<C: Curve>(points: &[f64], entry: impl Fn(f64, f64, f64) -> f64) {
        for (alpha, beta) in COEFFICIENTS.iter().flat_map(|&a| COEFFICIENTS.map(|b| (a, b))) {
            for level in LEVELS {
                let (start, crossings) = C::crossings(C::path(alpha, beta), level);
                let met: Vec<_> = crossings.into_iter().flatten().collect();
                for &(at, _) in &met {
                    assert!((entry(alpha, beta, at) - level).abs() < 1e-12);
                }
                for &at in points {
                    let passed = met.iter().filter(|&&(crossing, _)| crossing <= at);
                    let above = i8::from(start) + passed.map(|&(_, step)| step).sum::<i8>();
                    let distance = entry(alpha, beta, at) - level;
                    if distance.abs() > 1e-9 {
                        let expected = i8::from(distance > 0.0);
                        assert_eq!(above, expected, "{alpha} {beta} {level}: {met:?} at {at}");
                    }
                }
            }
        }
    }

    #[test]
    fn crossings_on_the_circle() {
        let (from, to) = ON_CIRCLE;
        assert!(from < 0.0 && from > -1e-12 && to - from == TAU);
        let points: Vec<f64> = (0..500).map(|k| from + (to - from) * f64::from(k) / 500.0).collect();
        follows::<OnCircle>(&points, |alpha, beta, t| alpha * t.cos() + beta * t.sin());
        for level in [1.3, -1.3f64] {
            let crossings = |factor: f64| OnCircle::crossings((1.3, 0.5), level * factor);
            let touched = if level > 0.0 { 0.5 } else { 0.5 + PI };
            for factor in [1.0, 1.0 + 0.5 * numerics::ULPS, 1.0 - 0.5 * numerics::ULPS] {
                let (above, [point, none]) = crossings(factor);
                assert!(above == (level < 0.0) && none.is_none());
                let (at, step) = point.unwrap();
                assert!((at - touched).abs() < 1e-15 && step == 0);
            }
            assert_eq!(crossings(1.0 + 2.0 * numerics::ULPS), (level < 0.0, [None; 2]));
            assert!(crossings(1.0 - 2.0 * numerics::ULPS).1.iter().all(Option::is_some));
        }
    }

    #[test]
    fn crossings_on_the_hyperbola() {
        let points: Vec<f64> = (-300..=300).map(|k| (f64::from(k) / 20.0).exp()).collect();
        follows::<OnHyperbola>(&points, |alpha, beta, u| alpha * u + beta / u);
    }

    #[test]
    fn quadratics_of_an_entry_are_added() {
        let piece = [0.3, -1.1, 0.7];
        let (mut circle, mut hyperbola) =
            (OnCircle { f: Trig::default(), constant: 0.0 }, OnHyperbola { f: Hyp::default(), constant: 0.0 });
        let entry = Moving { alpha: 0.8, beta: -1.7, row: 0, column: 0, second: false, above: 0 };
        circle.add(1.0, piece, &entry);
        hyperbola.add(1.0, piece, &entry);
        let [a, b, c] = piece;
        let penalty = |x: f64| a + b * x + 0.5 * c * x * x;
        for k in -20..20 {
            let t = 0.3 * f64::from(k);
            let (cos, sin) = OnCircle::point(t);
            let x = entry.alpha * cos + entry.beta * sin;
            assert!((circle.value((cos, sin)) - penalty(x)).abs() < 1e-14);
            let u = t.exp();
            let x = entry.alpha * u + entry.beta / u;
            assert!((hyperbola.value(u) - penalty(x)).abs() < 1e-14 * (1.0 + x * x));
            // The bound over an interval is a lower bound, and close on a short interval.
            let (low, here) = (circle.lower_bound(t, t + 0.01), circle.value((cos, sin)));
            assert!(low <= here && low > here - 0.1);
            assert!(hyperbola.lower_bound(u, 2.0 * u) <= hyperbola.value(u) + 1e-12);
        }
        circle.add(-1.0, piece, &entry);
        hyperbola.add(-1.0, piece, &entry);
        assert_eq!((circle.f, hyperbola.f), (Trig::default(), Hyp::default()));
        assert!(circle.constant.abs() < 1e-15 && hyperbola.constant.abs() < 1e-15);
    }
}
