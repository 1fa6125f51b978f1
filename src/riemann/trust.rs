//! Trust-region model: ½⟨η, H[η]⟩ + ⟨g, η⟩ within ‖η‖ ≤ Δ, H the Hessian and g the gradient on the tangent
//! space, lowered by truncated conjugate gradients (Steihaug, SIAM J. Numer. Anal. 20, 1983; Absil, Baker and
//! Gallivan, Found. Comput. Math. 7, 2007). An iteration takes one product with H, which the caller computes.

use ndarray::Array2;

use crate::linalg::{inner, square};

/// η, H\[η\], the residual g + H\[η\] and the next direction.
pub(crate) struct Truncated {
    pub(crate) step: Array2<f64>,
    pub(crate) direction: Array2<f64>,
    /// True if η is on the boundary ‖η‖ = Δ.
    pub(crate) bounded: bool,
    pub(crate) iterations: usize,
    image: Array2<f64>,
    residual: Array2<f64>,
    goal: f64,
}

impl Truncated {
    /// Creates the model at a gradient; conjugate gradients end at a residual of norm `goal`.
    pub(crate) fn new(gradient: &Array2<f64>, goal: f64) -> Self {
        Self {
            step: Array2::zeros(gradient.dim()),
            direction: -gradient,
            bounded: false,
            iterations: 0,
            image: Array2::zeros(gradient.dim()),
            residual: gradient.clone(),
            goal,
        }
    }

    /// Makes an iteration within the radius, given H\[direction\]; returns whether it is the last.
    pub(crate) fn advance(&mut self, product: &Array2<f64>, radius: f64) -> bool {
        let curvature = inner(&self.direction, product);
        let before = square(&self.residual);
        let [own, cross, ahead] = [square(&self.step), inner(&self.step, &self.direction), square(&self.direction)];
        let mut length = before / curvature;
        let reach = own + length * (2.0 * cross + length * ahead);
        self.bounded = !(curvature > 0.0) || !(reach < radius * radius);
        if self.bounded {
            let left = (radius * radius - own).max(0.0);
            length = left / (cross + (cross * cross + ahead * left).sqrt());
        }
        self.step.scaled_add(length, &self.direction);
        self.image.scaled_add(length, product);
        self.residual.scaled_add(length, product);
        self.iterations += 1;
        let rest = square(&self.residual);
        self.direction *= rest / before;
        self.direction -= &self.residual;
        self.bounded || rest.sqrt() <= self.goal
    }

    /// Returns the decrease of the model by η.
    pub(crate) fn decrease(&self, gradient: &Array2<f64>) -> f64 {
        -inner(gradient, &self.step) - 0.5 * inner(&self.step, &self.image)
    }

    /// Returns the radius after a step whose decrease was `ratio` times that of the model, at most `most`.
    pub(crate) fn radius(&self, radius: f64, ratio: f64, most: f64) -> f64 {
        // Nocedal and Wright, Numerical Optimization, 2006, algorithm 4.1.
        if !(ratio >= 0.25) {
            0.25 * square(&self.step).sqrt()
        } else if ratio > 0.75 && self.bounded {
            (2.0 * radius).min(most)
        } else {
            radius
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    /// On ½ηᵀHη + gᵀη two iterations reach the minimiser, and a small radius truncates η.
    #[test]
    fn conjugate_gradients_solve_the_model_or_stop_at_the_radius() {
        let (h, g) = (array![[4.0, 1.0], [1.0, 3.0]], array![[1.0], [2.0]]);
        let solve = |radius: f64| {
            let mut model = Truncated::new(&g, 1e-12);
            while !model.advance(&h.dot(&model.direction), radius) {}
            model
        };
        let whole = solve(10.0);
        assert!((&h.dot(&whole.step) + &g).iter().all(|v| v.abs() < 1e-12));
        assert!(!whole.bounded && whole.iterations == 2);
        let cut = solve(0.1);
        assert!((square(&cut.step).sqrt() - 0.1).abs() < 1e-15 && cut.bounded);
        assert!(0.0 < cut.decrease(&g) && cut.decrease(&g) < whole.decrease(&g));
        assert_eq!(cut.radius(0.1, 0.9, 1.0), 0.2);
        assert!((cut.radius(0.1, 0.1, 1.0) - 0.025).abs() < 1e-15);
    }

    #[test]
    fn a_direction_of_negative_curvature_ends_at_the_radius() {
        let mut model = Truncated::new(&array![[1.0], [0.0]], 1e-12);
        let product = -&model.direction;
        assert!(model.advance(&product, 0.5));
        assert!((square(&model.step).sqrt() - 0.5).abs() < 1e-15);
    }
}
