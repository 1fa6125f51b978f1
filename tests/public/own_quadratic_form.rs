//! f = ½⟨X, (diag(d) + uuᵀ) X⟩ as a quadratic form, at O(n) a column.

use ndarray::{Array1, Array2, ArrayView2, Axis};
use orthobcd::objective::{GoOn, QuadraticForm, Spectrum};
use orthobcd::penalty::Penalty;
use orthobcd::{Options, Problem, Quadratic, Signature, Threads, Unwatched, minimize, start};

struct DiagonalPlusRankOne(Array1<f64>, Array1<f64>, Spectrum);

impl QuadraticForm for DiagonalPlusRankOne {
    fn order(&self) -> usize {
        self.0.len()
    }

    fn apply_while(&self, x: ArrayView2<f64>, _: &Threads, _: GoOn) -> Option<Array2<f64>> {
        let (d, u) = (self.0.view(), self.1.view().insert_axis(Axis(1)));
        Some(&d.insert_axis(Axis(1)) * &x + &u.dot(&u.t().dot(&x)))
    }

    fn diagonal(&self) -> Vec<f64> {
        (&self.0 + &(&self.1 * &self.1)).to_vec()
    }

    fn cache(&self) -> &Spectrum {
        &self.2
    }
}

#[test]
fn is_solved_like_the_same_stored() {
    let (n, components, threads) = (30, 3, Threads::serial());
    let entries = |step: f64| Array1::from_shape_fn(n, |i| (step * i as f64).sin());
    let form = DiagonalPlusRankOne(entries(1.7), entries(0.9), Spectrum::default());
    let c = form.apply(Array2::eye(n).view(), &threads);
    let stored = Quadratic::new((&c + &c.t()) * 0.5, None, None).unwrap();
    let solve = |smooth: &dyn QuadraticForm| {
        let (penalty, signature) = (&Penalty::l1(0.05), &Signature::stiefel(n));
        #[rustfmt::skip]
        let problem = Problem::new(smooth, penalty, signature, components).unwrap();
        let x0 = start::random(n, components, 1);
        minimize(&problem, x0, &Options::default(), &threads, &mut Unwatched).unwrap()
    };
    let (own, expected) = (solve(&form), solve(&stored));
    assert!(own.feasibility < 1e-12 && own.objective < own.history[0].objective);
    assert!((own.objective - expected.objective).abs() <= 1e-6 * expected.objective.abs());
}
