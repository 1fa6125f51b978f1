//! Gradient descent with Barzilai–Borwein step lengths for a smooth function on the manifold (Wen and Yin,
//! Math. Program. 142, 2013), with the nonmonotone line search of Zhang and Hager (SIAM J. Optim. 14, 2004).
//!
//! A trial is X − tG, with G the tangent part of the gradient. The caller retracts it to the manifold and
//! evaluates the function there. A trial is accepted if the function is below a mean of earlier values, so
//! the function may rise between steps.

use ndarray::Array2;

use crate::linalg::{inner, square};

/// Weight of earlier values in the reference of the line search.
const MEMORY: f64 = 0.85;

/// The decrease that a line search asks for, as a share of the step length times the slope.
pub(super) const ARMIJO: f64 = 1e-4;

/// A step moves X by at most this multiple of its norm.
pub(crate) const LONGEST: f64 = 2.0;

/// Step lengths ‖ΔX‖²/|⟨ΔX, ΔG⟩| and |⟨ΔX, ΔG⟩|/‖ΔG‖² in turn (Barzilai and Borwein, IMA J. Numer. Anal. 8,
/// 1988).
#[derive(Default)]
pub(crate) struct Lengths {
    odd: bool,
}

impl Lengths {
    /// Returns the next length after X moved by ΔX and its gradient changed by ΔG, if it is finite.
    pub(crate) fn next(&mut self, moved: &Array2<f64>, turned: &Array2<f64>) -> Option<f64> {
        let along = inner(moved, turned).abs();
        self.odd = !self.odd;
        let length = match self.odd {
            true => square(moved) / along,
            false => along / square(turned),
        };
        length.is_finite().then_some(length)
    }
}

/// A point, the function and the tangent part of its gradient there, and the state of the line search.
pub(crate) struct GradientDescent {
    pub(crate) x: Array2<f64>,
    pub(crate) value: f64,
    pub(crate) direction: Array2<f64>,
    /// ‖G‖².
    pub(crate) norm2: f64,
    /// t.
    pub(crate) length: f64,
    reference: f64,
    mass: f64,
    lengths: Lengths,
}

impl GradientDescent {
    pub(crate) fn new(x: Array2<f64>, value: f64, direction: Array2<f64>, length: f64) -> Self {
        Self {
            norm2: square(&direction),
            x,
            value,
            direction,
            length,
            reference: value,
            mass: 1.0,
            lengths: Lengths::default(),
        }
    }

    /// Returns X − tG.
    pub(crate) fn trial(&self) -> Array2<f64> {
        let mut trial = self.x.clone();
        trial.scaled_add(-self.length, &self.direction);
        trial
    }

    /// Returns whether a trial with this value is accepted.
    pub(crate) fn accepts(&self, value: f64) -> bool {
        value <= self.reference - ARMIJO * self.length * self.norm2
    }

    /// Moves to x, with the value and the tangent part of the gradient there.
    pub(crate) fn accept(&mut self, x: Array2<f64>, value: f64, direction: Array2<f64>) {
        let proposal = (self.lengths).next(&(&x - &self.x), &(&direction - &self.direction));
        let mass = MEMORY * self.mass + 1.0;
        self.reference = (MEMORY * self.mass * self.reference + value) / mass;
        self.mass = mass;
        self.norm2 = square(&direction);
        if let Some(length) = proposal {
            self.length = length.min(LONGEST * (square(&x) / self.norm2).sqrt());
        }
        (self.x, self.value, self.direction) = (x, value, direction);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifold::{polar, tangent};
    use crate::start;
    use ndarray::{Array1, Axis};

    #[test]
    fn the_descent_reaches_the_lowest_eigenvalues() {
        let (n, r) = (20, 3);
        let diagonal = Array1::from_shape_fn(n, |i| (i + 1) as f64).insert_axis(Axis(1));
        let evaluate = |x: &Array2<f64>| (0.5 * inner(x, &(x * &diagonal)), x * &diagonal);
        let x = start::random(n, r, 2);
        let (value, gradient) = evaluate(&x);
        let mut descent = GradientDescent::new(x.clone(), value, tangent(&x, &gradient), 0.05);
        for _ in 0..500 {
            let x = polar(&descent.trial());
            let (value, gradient) = evaluate(&x);
            if descent.accepts(value) {
                let direction = tangent(&x, &gradient);
                descent.accept(x, value, direction);
            } else {
                descent.length *= 0.3;
            }
        }
        assert!((descent.value - 3.0).abs() < 1e-9, "{}", descent.value);
    }
}
