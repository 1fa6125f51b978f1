//! Annealed ADMM: the linearised alternating direction method of multipliers (Boyd, Parikh, Chu, Peleato and
//! Eckstein, Found. Trends Mach. Learn. 3, 2011) for min f(X) + h(Y), X = Y orthonormal, with growing β.
//!
//! ```text
//! X <- polar(β Y + ζ X − ∇f(X) − W)      ζ: inertia, 0 for concave f
//! Y <- prox_{h/β}(X + W/β)
//! W <- W + β (X − Y)
//! ```
//!
//! β grows geometrically. At the first β the sparse copy Y is free to change its support, at the last β X and
//! Y agree. An iteration costs one gradient, one polar factor and one proximal map.

use ndarray::{Array1, Array2, Zip};

use crate::linalg::{square, symmetric, symmetric_eigen};

/// Factor by which the first β is raised for a result near the incumbent.
pub(crate) const RAISE: f64 = 6.0;

/// Least curvature of a component, in units of the Lipschitz constant.
const LEVEL: f64 = 1e-4;

/// Relative distance of X and Y at which they agree.
const AGREE: f64 = 1e-9;

/// Returns the curvatures of f along the components of X, ascending: the eigenvalues of −Xᵀ∇f(X), which can
/// be far below the Lipschitz constant.
pub(crate) fn curvatures(x: &Array2<f64>, gradient: &Array2<f64>, lipschitz: f64) -> Array1<f64> {
    let (seen, _) = symmetric_eigen(symmetric(&x.t().dot(gradient)).mapv(|v| -v).view());
    seen.mapv(|v| v.max(LEVEL * lipschitz).min(lipschitz))
}

/// The functions that define a problem for ADMM.
pub(crate) struct Terms<'a> {
    /// ∇f(X); None ends the method without a result.
    pub(crate) gradient: &'a mut dyn FnMut(&Array2<f64>) -> Option<Array2<f64>>,
    /// The polar factor.
    pub(crate) polar: &'a dyn Fn(&Array2<f64>) -> Array2<f64>,
    /// The proximal map of h times a step.
    pub(crate) proximal: &'a mut dyn FnMut(Array2<f64>, f64) -> Array2<f64>,
    /// ζ.
    pub(crate) inertia: f64,
}

/// Runs ADMM from an orthonormal X and returns the last X and Y. β grows from `first` to `last` while
/// `progress` goes from 0 to 1, where the method ends.
pub(crate) fn anneal(
    terms: Terms<'_>,
    x: Array2<f64>,
    (first, last): (f64, f64),
    mut progress: impl FnMut() -> f64,
) -> Option<(Array2<f64>, Array2<f64>)> {
    let (mut x, mut y) = (x.clone(), x);
    let mut multiplier = Array2::<f64>::zeros(x.dim());
    loop {
        let ratio = progress();
        let beta = first * (last / first).powf(ratio);
        let mut target = (terms.gradient)(&x)?;
        Zip::from(&mut target)
            .and(&multiplier)
            .and(&y)
            .and(&x)
            .for_each(|v, w, y, x| *v = beta * y + terms.inertia * x - *v - w);
        x = (terms.polar)(&target);
        y = (terms.proximal)(&x + &(&multiplier * beta.recip()), beta.recip());
        let gap = &x - &y;
        multiplier.scaled_add(beta, &gap);
        // A NaN gap also ends the method.
        if ratio >= 1.0 || !(square(&gap) > AGREE * AGREE * x.ncols() as f64) {
            return Some((x, y));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifold::polar;
    use crate::start;
    use ndarray::Axis;

    /// f = −½⟨X, CX⟩ with C diagonal, and h = λ‖X‖₀.
    #[test]
    fn the_sparse_copy_of_the_end_is_the_largest_rows() {
        let (n, r, lambda) = (12, 3, 0.1);
        let diagonal = Array1::from_shape_fn(n, |i| (n - i) as f64);
        let mut gradient = |x: &Array2<f64>| Some(-(x * &diagonal.view().insert_axis(Axis(1))));
        let x = start::random(n, r, 4);
        let lipschitz = n as f64;
        let first = 0.06 * curvatures(&x, &gradient(&x).unwrap(), lipschitz)[0];
        let kept = |step: f64| move |v: f64| if v * v > 2.0 * step * lambda { v } else { 0.0 };
        let terms =
            Terms { gradient: &mut gradient, polar: &polar, proximal: &mut |x, step| x.mapv(kept(step)), inertia: 0.0 };
        let mut done = 0;
        let progress = || {
            done += 1;
            f64::from(done - 1) / 200.0
        };
        let (x, y) = anneal(terms, x, (first, 1.2 * lipschitz), progress).unwrap();
        assert!((&x - &y).iter().all(|v| v.abs() < 1e-3));
        let gram = x.t().dot(&x) - Array2::<f64>::eye(r);
        assert!(gram.iter().all(|v| v.abs() < 1e-12));
        let rows = y.outer_iter().map(|row| row.iter().any(|&v| v != 0.0));
        assert_eq!(rows.filter(|&used| used).count(), r);
    }
}
