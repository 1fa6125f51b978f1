//! Damped Newton's method for the multiplier Λ of a constraint: steps are halved until the residual falls.

use ndarray::Array2;

/// Takes at most `steps` steps from Λ = `lambda`, each halved at most `halvings` times, and returns the last
/// evaluation. `evaluate` returns the state at Λ and the residual; `direction` returns the step from a state,
/// or None at the end. `is_over` is called before each evaluation of a step.
pub(crate) fn damped_newton<S>(
    lambda: &mut Array2<f64>,
    (steps, halvings): (usize, usize),
    evaluate: impl Fn(&Array2<f64>) -> (S, f64),
    direction: impl Fn(&S, f64) -> Option<Array2<f64>>,
    is_over: impl Fn() -> bool,
) -> (S, f64) {
    let (mut state, mut residual) = evaluate(lambda);
    'steps: for _ in 0..steps {
        let Some(newton) = direction(&state, residual) else {
            break;
        };
        let mut length = 1.0;
        for _ in 0..halvings {
            if is_over() {
                break 'steps;
            }
            let trial = &*lambda + &(&newton * length);
            let (next, lower) = evaluate(&trial);
            if lower < residual {
                (*lambda, state, residual) = (trial, next, lower);
                continue 'steps;
            }
            length *= 0.5;
        }
        break;
    }
    (state, residual)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    /// Newton's method for atan λ = 0 diverges from λ = 2 without damping.
    #[test]
    fn steps_are_halved_until_the_residual_falls() {
        let evaluate = |at: &Array2<f64>| (at[[0, 0]], at[[0, 0]].atan().abs());
        let direction = |&at: &f64, residual: f64| (residual > 1e-12).then(|| array![[-at.atan() * (1.0 + at * at)]]);
        let mut lambda = array![[2.0]];
        let (_, residual) = damped_newton(&mut lambda, (20, 8), evaluate, direction, || false);
        assert!(residual <= 1e-12 && lambda[[0, 0]].abs() <= 1e-12);
        let mut lambda = array![[2.0]];
        let (at, residual) = damped_newton(&mut lambda, (20, 1), evaluate, direction, || false);
        assert_eq!((at, residual), (2.0, 2f64.atan()), "no full step is accepted");
        assert_eq!(lambda[[0, 0]], 2.0);
    }
}
