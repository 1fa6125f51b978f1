//! One pair of rows along its rotation or boost, known by its slope alone.
//!
//! The model of a pair is `½ K (E₁₂ ∓ E₂₁) + w/2 ‖E‖²`, E = V − I, − for rotations and + for boosts: K is the
//! slope along the rotation or boost at V = I, and no move is as good as about K/(2w). A rotation by θ makes it
//! `K sin θ + 2w(1 − cos θ)`, least at `tan θ = −K/2w`, a boost of rapidity μ `K sinh μ + 2w(cosh² μ − cosh μ)`, least where
//! `2 sinh |μ| − tanh |μ| = |K|/2w`. Reflections are never better. It costs O(n).

use ndarray::{Array2, Zip, s};

use crate::signature::Signature;

/// Largest |μ| of one move unless another bound is given.
pub(crate) const RAPIDITY_BOUND: f64 = 1.0;

/// Pairs of rows of these signs.
pub(crate) struct SlopePairs {
    signature: Signature,
    /// Largest |μ| of a move.
    rapidity_bound: f64,
}

impl SlopePairs {
    /// Creates the pairs of rows of these signs, with |μ| of a move at most `rapidity_bound`.
    pub(crate) fn new(signature: &Signature, rapidity_bound: f64) -> Self {
        Self { signature: signature.clone(), rapidity_bound }
    }

    /// Moves rows i and j of `x` to the global minimum for slope K and weight w > 0; returns whether they moved. A
    /// slope of NaN moves no rows.
    pub(crate) fn turn(&self, x: &mut Array2<f64>, [i, j]: [usize; 2], slope: f64, weight: f64) -> bool {
        let equal = self.signature.sign(i) == self.signature.sign(j);
        let (cosine, sine) = if equal {
            let size = slope.hypot(2.0 * weight);
            (2.0 * weight / size, -slope / size)
        } else {
            let rapidity = rapidity(slope.abs() / (2.0 * weight), self.rapidity_bound);
            (rapidity.cosh(), -slope.signum() * rapidity.sinh())
        };
        if sine == 0.0 || sine.is_nan() {
            return false;
        }
        let other = if equal { -sine } else { sine };
        let (mut upper, mut lower) = x.multi_slice_mut((s![i, ..], s![j, ..]));
        Zip::from(&mut upper).and(&mut lower).for_each(|x, y| {
            let (old_x, old_y) = (*x, *y);
            *x = cosine * old_x + sine * old_y;
            *y = other * old_x + cosine * old_y;
        });
        true
    }
}

/// μ ≥ 0 of `2 sinh μ − tanh μ = ratio`, or `bound` if that is less. The left side is increasing and convex, so that
/// Newton's method from a point above falls to the root.
fn rapidity(ratio: f64, bound: f64) -> f64 {
    let excess = |mu: f64| 2.0 * mu.sinh() - mu.tanh() - ratio;
    if excess(bound) <= 0.0 {
        return bound;
    }
    let mut mu = ratio.asinh().min(bound);
    loop {
        let next = mu - excess(mu) / (2.0 * mu.cosh() - mu.cosh().powi(-2));
        if next >= mu || next.is_nan() {
            return mu;
        }
        mu = next.max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATIOS: [f64; 9] = [1e-300, 1e-12, 1e-3, 0.1, 0.7, 1.0, 1.8, 20.0, 1e9];

    /// K sin θ + 2w(1 − cos θ) for all V of the circle, K sinh μ + w/2‖V − I‖² for those of the hyperbola.
    fn model(v: [[f64; 2]; 2], sign: f64, slope: f64, weight: f64) -> f64 {
        let e = [[v[0][0] - 1.0, v[0][1]], [v[1][0], v[1][1] - 1.0]];
        let square: f64 = e.iter().flatten().map(|e| e * e).sum();
        0.5 * slope * (e[0][1] - sign * e[1][0]) + 0.5 * weight * square
    }

    fn moved(signs: &[i8; 2], slope: f64, weight: f64, bound: f64) -> [[f64; 2]; 2] {
        let pairs = SlopePairs::new(&Signature::new(signs).unwrap(), bound);
        let mut x = Array2::eye(2);
        assert_eq!(pairs.turn(&mut x, [0, 1], slope, weight), slope != 0.0);
        [[x[[0, 0]], x[[0, 1]]], [x[[1, 0]], x[[1, 1]]]]
    }

    #[test]
    fn no_move_is_better() {
        for (ratio, slope_sign) in RATIOS.iter().flat_map(|&r| [(r, 1.0), (r, -1.0)]) {
            let (weight, slope) = (0.7, slope_sign * ratio * 1.4);
            let rotated = moved(&[1, 1], slope, weight, 1.0);
            let boosted = moved(&[-1, 1], slope, weight, 1.0);
            let best = [model(rotated, 1.0, slope, weight), model(boosted, -1.0, slope, weight)];
            assert!(best[0] <= 0.0 && best[1] <= 0.0, "{ratio}");
            let slack = 1e-14 * weight.max(slope.abs());
            for k in -500..=500 {
                let mu = f64::from(k) / 500.0;
                let theta = mu * std::f64::consts::PI;
                for (first, second) in [(1.0, 1.0), (-1.0, 1.0), (1.0, -1.0), (-1.0, -1.0)] {
                    let (c, s) = (theta.cos(), theta.sin());
                    let v = [[first * c, first * s], [-second * s, second * c]];
                    assert!(model(v, 1.0, slope, weight) >= best[0] - slack, "{ratio} {k}");
                    let (c, s) = (mu.cosh(), mu.sinh());
                    let v = [[first * c, first * s], [second * s, second * c]];
                    assert!(model(v, -1.0, slope, weight) >= best[1] - slack, "{ratio} {k}");
                }
            }
        }
        assert_eq!(moved(&[1, -1], 0.0, 1.0, 1.0), [[1.0, 0.0], [0.0, 1.0]]);
    }

    #[test]
    fn a_boost_solves_its_equation_up_to_the_bound() {
        for ratio in RATIOS {
            let mu = rapidity(ratio, 1e3);
            let gap = 2.0 * mu.sinh() - mu.tanh() - ratio;
            assert!(gap.abs() <= 1e-14 * ratio, "{ratio}: {gap:e}");
            let bound = 0.5 * mu;
            assert_eq!(rapidity(ratio, bound), bound);
            assert_eq!(rapidity(ratio, 2.0 * mu), mu);
        }
    }
}
