//! Tests of known optima: the threshold of λ from both sides, and the value against all signed selections.

use ndarray::{Array1, array};

use super::*;
use crate::objective::{DenseColumns, GramQuadratic, Objective, Quadratic};
use crate::penalty::Penalty;
use crate::signature::Signature;
use crate::start::permutations;

/// Returns the known optimum of ½⟨X, CX⟩ + h.
fn known(smooth: &dyn Objective, penalty: &Penalty, r: usize) -> Option<f64> {
    known_while(smooth, penalty, r, &|| true)
}

fn known_while(smooth: &dyn Objective, penalty: &Penalty, r: usize, go_on: GoOn<'_>) -> Option<f64> {
    let signature = Signature::stiefel(smooth.rows());
    let problem = Problem::new(smooth, penalty, &signature, r).unwrap();
    known_optimum(&problem, f64::INFINITY, &Threads::serial(), go_on).map(|(optimum, _)| optimum)
}

/// Returns a diagonal C with one more entry `coupling` between two rows.
fn coupled(diagonal: &[f64], (i, j): (usize, usize), coupling: f64) -> Quadratic<'static> {
    let mut c = Array2::from_diag(&Array1::from(diagonal.to_vec()));
    (c[[i, j]], c[[j, i]]) = (coupling, coupling);
    Quadratic::new(c, None, None).unwrap()
}

#[test]
fn rows_are_chosen_by_their_diagonal() {
    let diagonal = [-1.0, -3.0, 2.0, -3.0];
    for (r, rows) in [(1, &[1][..]), (2, &[1, 3]), (3, &[1, 3, 0]), (4, &[1, 3, 0, 2])] {
        assert_eq!(top_rows(&diagonal, r), rows);
    }
}

/// A tie is decided by the rows, not by the last bits; a difference above rounding is none. At every scale.
#[test]
fn rows_that_differ_by_rounding_come_in_their_order() {
    for scale in [1e-200, 1.0, 1e200] {
        for shift in [-3.0, -1.0, 0.0, 1.0, 3.0] {
            let noisy = |k: usize| -scale * (1.0 + shift * (k % 3) as f64 * f64::EPSILON);
            let diagonal: Vec<f64> = (0..7).map(noisy).collect();
            assert_eq!(top_rows(&diagonal, 4), [0, 1, 2, 3]);
            let mut larger = diagonal.clone();
            larger[5] *= 1.0 + 1e-9;
            assert_eq!(top_rows(&larger, 3), [5, 0, 1]);
        }
    }
}

/// The count has the optimum λr + ½ Σ_top-r C_ii from λ = μ/2 on.
#[test]
fn counted_optima_are_known_from_half_the_coupling_on() {
    let diagonal = [-10.0, 0.0, 1.0, -4.0, 0.0];
    for coupling in [2.0, -2.0] {
        // Between rows without one of the chosen, with one, and between both.
        for at in [(1, 2), (1, 4), (2, 3), (0, 4), (0, 3)] {
            for lambda in [0.5, 0.999, 1.0, 1.001, 3.0] {
                let smooth = coupled(&diagonal, at, coupling);
                for (r, sum) in [(1, -10.0), (2, -14.0)] {
                    let value = (lambda >= 1.0).then_some(lambda * r as f64 + 0.5 * sum);
                    let found = known(&smooth, &Penalty::l0(lambda), r);
                    assert_eq!(found, value, "{at:?} {lambda} {r}");
                }
            }
        }
    }
}

/// The threshold is the same where C has negative eigenvalues alone, or positive ones.
#[test]
fn counted_optima_do_not_depend_on_the_sign_of_c() {
    for diagonal in [[-10.0; 4], [10.0; 4]] {
        for (lambda, proved) in [(0.999, false), (1.0, true)] {
            let smooth = coupled(&diagonal, (1, 2), 2.0);
            let value = proved.then_some(lambda + 0.5 * diagonal[0]);
            assert_eq!(known(&smooth, &Penalty::l0(lambda), 1), value);
        }
    }
}

/// ℓ1 has this optimum while the coupling is at most 2λ/(T + 1), with T = 1 + (P_(1) − P_(r))/(2λ) ≤ √n where
/// the largest eigenvalue of P = −C is a diagonal entry.
#[test]
fn absolute_optima_are_known_from_their_threshold_on() {
    let diagonal = [-10.0, -4.0, 0.0, 0.0];
    for (r, lambda) in [(1, 3.0), (1, 0.5), (2, 4.0), (2, 2.9), (2, 8.0)] {
        let spread = if r == 1 { 0.0 } else { 6.0 };
        let reach = f64::min(1.0 + spread / (2.0 * lambda), 2.0);
        let limit = 2.0 * lambda / (reach + 1.0);
        for (share, proved) in [(0.99, true), (1.01, false), (1.5, false), (0.1, true)] {
            let smooth = coupled(&diagonal, (2, 3), share * limit);
            let sum: f64 = diagonal[..r].iter().sum();
            match known(&smooth, &Penalty::l1(lambda), r) {
                Some(found) => {
                    assert!(proved, "{r} {lambda} {share}");
                    assert!((found - (lambda * r as f64 + 0.5 * sum)).abs() < 1e-14);
                }
                None => assert!(!proved, "{r} {lambda} {share}"),
            }
        }
    }
    // No column has more than T = 1 without spread: the coupling may reach λ.
    for (coupling, proved) in [(0.749999, true), (0.750001, false)] {
        let smooth = coupled(&diagonal, (2, 3), coupling);
        assert_eq!(known(&smooth, &Penalty::l1(0.75), 1).is_some(), proved);
    }
}

/// Wherever an optimum is said to be known, no unit vector of a grid has a lower F.
#[test]
fn known_optima_are_below_a_grid() {
    let threads = Threads::serial();
    let (mut yes, mut no) = (0, 0);
    for seed in 0..30 {
        let a = crate::start::random(3, 3, seed) * (0.5 + (seed % 3) as f64);
        let smooth = Quadratic::new(&a + &a.t() - Array2::<f64>::eye(3), None, None).unwrap();
        for lambda in [0.1, 0.4, 1.0, 2.0] {
            for penalty in [Penalty::l0(lambda), Penalty::l1(lambda)] {
                let Some(optimum) = known(&smooth, &penalty, 1) else {
                    no += 1;
                    continue;
                };
                yes += 1;
                let signature = Signature::stiefel(3);
                let problem = Problem::new(&smooth, &penalty, &signature, 1).unwrap();
                let mut least = f64::INFINITY;
                for first in 0..24 {
                    for second in 0..48 {
                        let (t, p) = (f64::from(first) * 7.5, f64::from(second) * 7.5);
                        let (s, c) = t.to_radians().sin_cos();
                        let (u, v) = p.to_radians().sin_cos();
                        let x = array![[s * v], [s * u], [c]];
                        let x = x.mapv(|v| if v.abs() < 1e-12 { 0.0 } else { v });
                        least = least.min(problem.objective(x.view(), &threads));
                    }
                }
                assert!(least >= optimum - 1e-12 && least <= optimum + 1e-12, "{seed} {lambda}");
            }
        }
    }
    assert!(yes > 20 && no > 20, "{yes} {no}");
}

/// The same matrix as AᵀA, whose columns are products.
#[test]
fn data_have_the_optimum_of_their_matrix() {
    let a = array![[2.0, 0.0, 0.0, 0.5], [0.0, 1.5, 0.25, 0.0], [0.0, 0.0, 1.0, 0.0]];
    let columns = DenseColumns::new(a.view()).unwrap();
    let data = GramQuadratic::new(columns, -1.0, None).unwrap();
    let dense = Quadratic::new(-a.t().dot(&a), None, None).unwrap();
    assert!(data.quadratic().unwrap().dense().is_none());
    let (mut yes, mut no) = (0, 0);
    for r in 1..=3 {
        for lambda in [0.1, 0.3, 0.45, 0.55, 1.1, 2.5] {
            for penalty in [Penalty::l0(lambda), Penalty::l1(lambda)] {
                let (found, same) = (known(&data, &penalty, r), known(&dense, &penalty, r));
                match (found, same) {
                    (Some(found), Some(same)) => assert!((found - same).abs() < 1e-12),
                    _ => assert_eq!(found, same, "{r} {lambda}"),
                }
                yes += usize::from(found.is_some());
                no += usize::from(found.is_none());
            }
        }
    }
    assert!(yes > 5 && no > 5);
    let entry = |rows: &[usize]| {
        let form = data.quadratic().unwrap();
        largest_off_diagonal(form, rows, &Threads::serial(), &|| true).unwrap()
    };
    for (rows, largest) in [(&[0][..], 1.0), (&[1], 0.375), (&[2], 0.375), (&[1, 3], 1.0)] {
        assert!((entry(rows) - largest).abs() < 1e-14);
    }
}

#[test]
fn a_square_nonnegative_x_is_the_best_permutation() {
    for n in 2..=5 {
        let weights = Array2::from_shape_fn((n, n), |(i, k)| ((3 * i + 5 * k) % 7) as f64 * 0.3);
        let a = crate::start::random(n, n, 3) * 4.0;
        let c = &a + &a.t();
        let linear = crate::start::random(n, n, 4) * 2.0;
        let metric = Array2::from_diag(&Array1::from_shape_fn(n, |k| k as f64 - 1.0));
        let weighted = |penalty: Penalty| penalty.plus(&Penalty::NONNEGATIVE).unwrap();
        for penalty in [
            Penalty::NONNEGATIVE,
            weighted(Penalty::l1(weights.clone())),
            weighted(Penalty::l0(weights.clone())),
            weighted(Penalty::interval(-1.0, 1.0).unwrap()),
        ] {
            for (linear, metric) in
                [(Some(&linear), None), (None, Some(&metric)), (Some(&linear), Some(&metric)), (None, None)]
            {
                let smooth = Quadratic::new(c.clone(), linear.cloned(), metric.cloned()).unwrap();
                let value = |x: &Array2<f64>| smooth.value(x.view(), &Threads::serial()) + penalty.value(x.view());
                let of = |columns: &Vec<usize>| {
                    let entry = |(i, k)| f64::from(u8::from(columns[i] == k));
                    value(&Array2::from_shape_fn((n, n), entry))
                };
                let least = permutations(n).iter().map(of).fold(f64::INFINITY, f64::min);
                let found = known(&smooth, &penalty, n).unwrap();
                assert!((found - least).abs() <= 1e-12 * (1.0 + least.abs()), "{n} {penalty:?}");
            }
        }
        // A permutation is none of a problem with fewer columns, with a bound below 1 or with couplings.
        let smooth = Quadratic::new(c.clone(), None, None).unwrap();
        let half = weighted(Penalty::interval(-0.5, 0.5).unwrap());
        assert!(known(&smooth, &half, n).is_none());
        assert!(known(&smooth, &Penalty::NONNEGATIVE, n - 1).is_none());
        let coupled = Quadratic::new(c.clone(), None, Some(c.clone())).unwrap();
        assert!(known(&coupled, &Penalty::NONNEGATIVE, n).is_none());
    }
}

/// A weight of zero, a linear term, or an end before the search has none.
#[test]
fn an_optimum_is_not_known_without_its_conditions() {
    let smooth = coupled(&[-10.0, 0.0, 1.0], (1, 2), 0.5);
    let l0 = Penalty::l0(1.0);
    assert!(known(&smooth, &l0, 1).is_some());
    assert!(known_while(&smooth, &l0, 1, &|| false).is_none());
    assert!(known(&smooth, &Penalty::NONNEGATIVE, 1).is_none());
    let uncoupled = coupled(&[-10.0, 0.0, 1.0], (1, 2), 0.0);
    assert!(known(&uncoupled, &Penalty::l0(0.0), 1).is_none());
    let c = smooth.matrix().to_owned();
    let linear = Quadratic::new(c.clone(), Some(array![[0.1], [0.0], [0.0]]), None).unwrap();
    assert!(known(&linear, &l0, 1).is_none());
    let metric = Quadratic::new(c, None, Some(array![[1.0, 0.0], [0.0, 2.0]])).unwrap();
    assert!(known(&metric, &l0, 2).is_none());
    // The work of an assignment is at most the limit.
    let signature = Signature::stiefel(3);
    let problem = Problem::new(&smooth, &Penalty::NONNEGATIVE, &signature, 3).unwrap();
    let within = |work| known_optimum(&problem, work, &Threads::serial(), &|| true);
    let (_, spent) = within(f64::INFINITY).unwrap();
    assert!(spent > 0.0 && within(spent).is_some() && within(0.99 * spent).is_none());
    // Without a penalty: half the sum of the r least eigenvalues.
    for r in 1..=3 {
        let values = crate::linalg::symmetric_eigenvalues(smooth.matrix());
        let sum: f64 = values.iter().take(r).sum();
        let found = known(&smooth, &Penalty::NONE, r).unwrap();
        assert!((found - 0.5 * sum).abs() < 1e-12);
    }
}

/// All entries are searched up to 4096 rows, where the diagonal alone is no proof.
#[test]
fn entries_are_searched_up_to_a_number_of_rows() {
    for (n, searched) in [(SEARCHED_ROWS, true), (SEARCHED_ROWS + 1, false)] {
        let mut at = Array2::zeros((n, 2));
        (at[[0, 0]], at[[1, 1]]) = (4.0, 4.0);
        let columns = DenseColumns::from_transposed(at).unwrap();
        let data = GramQuadratic::new(columns, -1.0, None).unwrap();
        let value = searched.then_some(0.5 - 8.0);
        assert_eq!(known(&data, &Penalty::l0(0.5), 1), value, "{n}");
    }
}
