//! Squared distances, exponentials and logarithms of many numbers at once, without branches, for vectors of
//! any length.
//!
//! The operations are the same for every vector length, and so are the bits. The logarithm is that of
//! FreeBSD's `e_log.c`, the arctangent that of Cephes; both are exact to about one unit in the last place.

use pulp::{Simd, WithSimd};

use super::geometry::DISTANCE_EPSILON;
use crate::internal::simd::LANES;

/// Exponent below which an exponential counts as zero.
const LEAST_EXPONENT: f64 = -708.0;

/// Leading bits of log 2, whose product with an exponent is exact.
const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;

/// log 2 less [`LN2_HIGH`].
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// 2⁵²: added, it leaves an integer in the low bits of a number.
const INTEGER: f64 = 4_503_599_627_370_496.0;

/// 1.5·2⁵²: as [`INTEGER`], also for negative numbers.
const ROUNDED: f64 = 6_755_399_441_055_744.0;

/// Returns log x of a normal x ≥ ½.
#[inline(always)]
fn logarithm(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = f64::from_bits((bits >> 52) | INTEGER.to_bits()) - (INTEGER + 1023.0);
    let mantissa = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) | 0x3ff0_0000_0000_0000);
    let large = mantissa > std::f64::consts::SQRT_2;
    let mantissa = if large { 0.5 * mantissa } else { mantissa };
    let exponent = if large { exponent + 1.0 } else { exponent };
    let f = mantissa - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let series = [
        1.479_819_860_511_658_6e-1,
        1.531_383_769_920_937_3e-1,
        1.818_357_216_161_805e-1,
        2.222_219_843_214_978_4e-1,
        2.857_142_874_366_239e-1,
        3.999_999_999_940_942e-1,
        6.666_666_666_666_735e-1,
    ];
    let r = z * horner(z, &series);
    let half = 0.5 * f * f;
    exponent * LN2_HIGH - ((half - (s * (half + r) + exponent * LN2_LOW)) - f)
}

/// Returns log(1 + y), y ≥ 0.
#[inline(always)]
fn logarithm_1p(y: f64) -> f64 {
    let x = 1.0 + y;
    // Part of y that rounding of the sum has lost.
    let lost = y - (x - 1.0);
    logarithm(x) + lost / x
}

/// Returns arctan t, 0 ≤ t ≤ 1.
#[inline(always)]
fn arctangent(t: f64) -> f64 {
    let upper = t > 0.66;
    let x = if upper { (t - 1.0) / (t + 1.0) } else { t };
    let base = if upper { std::f64::consts::FRAC_PI_4 } else { 0.0 };
    let z = x * x;
    let above = [
        -8.750_608_600_031_904e-1,
        -1.615_753_718_733_365e1,
        -7.500_855_792_314_705e1,
        -1.228_866_684_490_136_1e2,
        -6.485_021_904_942_025e1,
    ];
    let below = [
        1.0,
        2.485_846_490_142_306_3e1,
        1.650_270_098_316_988_5e2,
        4.328_810_604_912_902_6e2,
        4.853_903_996_359_137e2,
        1.945_506_571_482_614e2,
    ];
    base + (x * (z * horner(z, &above) / horner(z, &below)) + x)
}

/// Evaluates a polynomial, highest coefficient first.
#[inline(always)]
fn horner<const K: usize>(x: f64, coefficients: &[f64; K]) -> f64 {
    let mut sum = coefficients[0];
    for &c in &coefficients[1..] {
        sum = sum * x + c;
    }
    sum
}

/// Returns eˣ, x ≤ 0; zero below [`LEAST_EXPONENT`].
#[inline(always)]
fn exponential(x: f64) -> f64 {
    let tiny = x < LEAST_EXPONENT;
    let x = if tiny { LEAST_EXPONENT } else { x };
    let shifted = x * std::f64::consts::LOG2_E + ROUNDED;
    let k = shifted - ROUNDED;
    let r = (x - k * LN2_HIGH) - k * LN2_LOW;
    // 1/13!, 1/12!, …, 1.
    let series = [
        1.605_904_383_682_161_5e-10,
        2.087_675_698_786_81e-9,
        2.505_210_838_544_172e-8,
        2.755_731_922_398_589e-7,
        2.755_731_922_398_589_3e-6,
        2.480_158_730_158_73e-5,
        1.984_126_984_126_984e-4,
        1.388_888_888_888_889e-3,
        8.333_333_333_333_333e-3,
        4.166_666_666_666_666_4e-2,
        1.666_666_666_666_666_6e-1,
        0.5,
        1.0,
        1.0,
    ];
    // k in the exponent; the integer in `shifted` is k up to a multiple of 2¹².
    let power = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1.0f64.to_bits()));
    let value = horner(r, &series) * power;
    if tiny { 0.0 } else { value }
}

/// Returns (u², ∂u²/∂z) for the distance u of inner product z = ⟨x, y⟩ at radius 1, with the guards of
/// [`super::Pseudohyperboloid`].
#[inline(always)]
fn square_and_slope(inner: f64) -> (f64, f64) {
    let z = inner.abs();
    let above = z - 1.0;
    let root = (above.abs() * (z + 1.0)).sqrt();
    let outside = above > 0.0;
    // arccosh z = log(z + √(z² − 1)), arccos z = 2 arctan √((1 − z)/(1 + z)).
    let far = logarithm_1p(if outside { above + root } else { 0.0 });
    let near = 2.0 * arctangent(if outside { 0.0 } else { root / (1.0 + z) });
    let u = if outside { far } else { near };
    let slope = 2.0 * u / root;
    let slope = if outside == (inner > 0.0) { slope } else { -slope };
    let coincide = above.abs() <= DISTANCE_EPSILON;
    let flat = coincide | (z <= DISTANCE_EPSILON);
    (if coincide { 0.0 } else { u * u }, if flat { 0.0 } else { slope })
}

/// Kernel that replaces inner products by bias − d²: scores without their common terms.
pub(super) struct Scores<'a> {
    pub(super) inner: &'a mut [f64],
    pub(super) biases: &'a [f64],
    pub(super) radius: f64,
}

impl WithSimd for Scores<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let square = self.radius * self.radius;
        let inverse = 1.0 / square;
        for (x, &bias) in self.inner.iter_mut().zip(self.biases) {
            *x = bias - square * square_and_slope(*x * inverse).0;
        }
    }
}

/// Loss of the scores x of one query: the true candidate has the score x₊.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Measure {
    /// ½ softplus(−x₊) + c Σ w softplus(x).
    Logistic(f64),
    /// log Σ w eˣ − x₊, with the true one in the sum.
    Softmax,
}

/// Kernel of one query against all candidates: inner products in, derivatives out.
pub(super) struct Query<'a> {
    /// Inner products before, ∂L/∂x after.
    pub(super) scores: &'a mut [f64],
    /// ∂L/∂⟨·,·⟩, output.
    pub(super) factors: &'a mut [f64],
    pub(super) biases: &'a [f64],
    /// w: number of entities that each candidate stands for.
    pub(super) weights: &'a [f64],
    /// Added to every score.
    pub(super) offset: f64,
    /// The true candidate.
    pub(super) target: usize,
    /// The given entity. Target and given entity are always candidates and have the weight 1.
    pub(super) given: usize,
    pub(super) radius: f64,
    pub(super) measure: Measure,
    /// Factor of the measure in L.
    pub(super) weight: f64,
}

impl WithSimd for Query<'_> {
    /// (L, Σ ∂L/∂x).
    type Output = (f64, f64);

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> (f64, f64) {
        let (scores, target, given) = (self.scores, self.target, self.given);
        let (weights, weight) = (self.weights, self.weight);
        let square = self.radius * self.radius;
        let inverse = 1.0 / square;
        let parts = scores.iter_mut().zip(&mut *self.factors).zip(self.biases);
        for ((x, factor), &bias) in parts {
            let (value, slope) = square_and_slope(*x * inverse);
            *x = self.offset + bias - square * value;
            *factor = slope;
        }
        let (own, other) = (scores[target], scores[given]);
        let loss = match self.measure {
            Measure::Logistic(share) => {
                // Target and given entity have terms of their own.
                scores[target] = f64::NEG_INFINITY;
                scores[given] = f64::NEG_INFINITY;
                let mut loss = sigmoids(scores, weights, weight * share);
                let mut single = |slot: usize, x: f64, sign: f64, c: f64| {
                    let x = &mut [sign * x];
                    loss += sigmoids(x, &[1.0], c);
                    scores[slot] = sign * x[0];
                };
                if given != target {
                    single(given, other, 1.0, weight * share);
                }
                single(target, own, -1.0, 0.5 * weight);
                loss
            }
            Measure::Softmax => {
                let top = lanes(scores, f64::NEG_INFINITY, |a, b| if b > a { b } else { a });
                for (x, &w) in scores.iter_mut().zip(weights) {
                    *x = w * exponential(*x - top);
                }
                scores[given] = exponential(other - top);
                scores[target] = exponential(own - top);
                let sum = lanes(scores, 0.0, |a, b| a + b);
                let scale = weight / sum;
                scores.iter_mut().for_each(|x| *x *= scale);
                scores[target] -= weight;
                weight * (top - own + sum.ln())
            }
        };
        for (factor, &d) in self.factors.iter_mut().zip(&*scores) {
            *factor *= -d;
        }
        (loss, lanes(scores, 0.0, |a, b| a + b))
    }
}

/// Replaces the scores by c·w·σ(x) and returns c·Σ w softplus(x).
#[inline(always)]
fn sigmoids(scores: &mut [f64], weights: &[f64], c: f64) -> f64 {
    let mut sums = [0.0; LANES];
    for (piece, weights) in scores.chunks_mut(LANES).zip(weights.chunks(LANES)) {
        for ((x, &w), sum) in piece.iter_mut().zip(weights).zip(&mut sums) {
            let e = exponential(-x.abs());
            let positive = *x > 0.0;
            *sum += w * ((if positive { *x } else { 0.0 }) + logarithm_1p(e));
            *x = c * w * (if positive { 1.0 } else { e }) / (1.0 + e);
        }
    }
    c * sums.iter().sum::<f64>()
}

/// Folds all numbers in eight lanes, as the compiler may not reorder a single one.
#[inline(always)]
fn lanes(x: &[f64], first: f64, take: impl Fn(f64, f64) -> f64) -> f64 {
    let mut lanes = [first; LANES];
    let pieces = x.chunks_exact(LANES);
    let rest = pieces.remainder();
    for piece in pieces {
        for k in 0..LANES {
            lanes[k] = take(lanes[k], piece[k]);
        }
    }
    lanes.iter().chain(rest).fold(first, |a, &b| take(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ultrahyperbolic::geometry::unit_distance;

    fn close(a: f64, b: f64, what: f64) {
        assert!((a - b).abs() <= 4e-16 * b.abs(), "{a:e} {b:e} at {what:e}");
    }

    #[test]
    fn elementary_functions_are_exact_to_rounding() {
        let mut y = 1e-18;
        while y < 1e300 {
            close(logarithm_1p(y), y.ln_1p(), y);
            close(logarithm(1.0 + y), (1.0 + y).ln(), y);
            if y <= 1.0 {
                close(arctangent(y), y.atan(), y);
            }
            if y < 700.0 {
                close(exponential(-y), (-y).exp(), y);
            }
            y *= 1.0137;
        }
        assert_eq!((exponential(0.0), exponential(f64::NEG_INFINITY)), (1.0, 0.0));
        assert_eq!((logarithm_1p(0.0), arctangent(0.0)), (0.0, 0.0));
    }

    #[test]
    fn squares_and_slopes_are_those_of_the_distance() {
        let mut all = vec![0.0, 1.0, 1.0 + 0.9e-8, 1.0 - 0.9e-8, 0.9e-8, 1.1e-8];
        for k in 0..300 {
            all.extend([0.003 * f64::from(k), 1.0 + 0.07f64.powi(k / 30), 1.07f64.powi(k)]);
            all.push(1.0 - 0.07f64.powi(k / 30));
        }
        for z in all.into_iter().flat_map(|z| [z, -z]) {
            let (d, slope) = unit_distance(z);
            let (square, twice) = square_and_slope(z);
            assert!((square - d * d).abs() <= 2e-15 * d * d, "{z:e}");
            assert!((twice - 2.0 * d * slope).abs() <= 2e-15 * twice.abs(), "{z:e}");
        }
    }
}
