//! What two points and the values and gradients there say of f: its curvature, and whether they fit together.

use ndarray::Array2;

use crate::linalg::{inner, square};

/// For a gradient of Lipschitz constant M, `|f(Y) − f(X) − ½⟨∇f(X) + ∇f(Y), Y − X⟩| ≤ ½M‖Y − X‖²`. So many trials in a
/// row beyond this multiple of it, M being the largest secant met, and of the rounding of f, are a contradiction.
const STRIKES: u32 = 5;
const EXCESS: f64 = 100.0;

/// The secants of a solve.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Secants {
    /// The largest ‖ΔG‖/‖ΔX‖ met, a lower bound of the Lipschitz constant.
    pub(super) largest: f64,
    /// The latest.
    pub(super) latest: f64,
    strikes: u32,
}

impl Secants {
    /// Takes over a move by which f changed by `change` and its gradient from `before` to `after`; returns whether
    /// values and gradients contradict each other.
    pub(super) fn contradict(
        &mut self,
        moved: &Array2<f64>,
        change: f64,
        (before, after): (&Array2<f64>, &Array2<f64>),
        noise: f64,
    ) -> bool {
        let step2 = square(moved);
        let secant = (square(&(after - before)) / step2).sqrt();
        if secant.is_finite() {
            (self.largest, self.latest) = (self.largest.max(secant), secant);
        }
        let off = (change - 0.5 * (inner(before, moved) + inner(after, moved))).abs();
        if off > EXCESS * (self.largest * step2).max(noise) {
            self.strikes += 1;
        } else {
            self.strikes = 0;
        }
        self.strikes >= STRIKES
    }
}
