//! Tests of a proof: which points are proved by a bound.

use std::time::Instant;

use ndarray::{Array1, Array2};

use super::*;
use crate::objective::Quadratic;
use crate::penalty::Penalty;
use crate::signature::Signature;

/// Runs `check` with the proof of a gap for r columns of a diagonal C.
fn with_prover(
    values: [f64; 3],
    (r, restriction, gap_tol): (usize, &Restriction, f64),
    check: impl FnOnce(Prover<'_>),
) {
    let smooth = Quadratic::new(Array2::from_diag(&Array1::from(values.to_vec())), None, None).unwrap();
    let signature = Signature::stiefel(3);
    let problem = Problem::new(&smooth, &Penalty::NONE, &signature, r).unwrap();
    check(Prover::new(&problem, restriction, gap_tol, &Threads::serial()).unwrap());
}

/// With r = 1 and h = 0 the bound is half the least eigenvalue from the start.
#[test]
fn a_point_is_proved_from_both_sides_of_the_gap() {
    let constant: f64 = 0.5 * (-4.0 - 2.0 + 3.0) / 3.0;
    for (gap_tol, value, proved) in
        [(1e-12, -2.0, true), (1e-12, -1.999, false), (1e-3, -1.9987, true), (1e-3, -1.9983, false)]
    {
        with_prover([-4.0, -2.0, 3.0], (1, &Restriction::Free, gap_tol), |prover| {
            let magnitude = (value - constant).abs();
            assert_eq!(prover.proves(value, magnitude), proved, "{gap_tol} {value}");
            let bound = prover.finish(value, magnitude);
            assert!(bound.value <= -2.0 && bound.value > -2.0 - 1e-13);
            assert!((bound.gap - (value + 2.0) / magnitude).abs() < 1e-12);
        });
    }
}

/// The bound of F = f + h is relative to the magnitude of both parts.
#[test]
fn gaps_are_relative_to_the_magnitude() {
    for (value, magnitude) in [(-0.75, 1.75), (2.0, 2.5), (2.5, 3.0)] {
        with_prover([-4.0, -2.0, 3.0], (1, &Restriction::Free, 0.0), |prover| {
            assert!(!prover.proves(value, magnitude));
            assert!((prover.finish(value, magnitude).gap * magnitude - (value + 2.0)).abs() < 1e-12);
        });
    }
}

/// An F equal to the bound is proved without a tolerance, with a gap of 0.
#[test]
fn a_bound_is_met_at_its_value() {
    for restriction in [Restriction::Free, Restriction::Absolute(0.5), Restriction::RowPenalty(0.25)] {
        with_prover([-4.0, -2.0, 3.0], (1, &restriction, 0.0), |prover| {
            let value = prover.bound.best.value;
            assert!(prover.proves(value, 1.0) && prover.work() == 0.0);
            assert_eq!(prover.finish(value, 1.0).gap, 0.0);
        });
    }
}

/// Two columns: the sum of the two least eigenvalues needs a decomposition. A proof is raised no further than needed.
#[test]
fn a_bound_is_raised_until_it_proves_the_point() {
    with_prover([-4.0, -2.0, 3.0], (2, &Restriction::Free, 1e-9), |mut prover| {
        let clock = Clock::new(Instant::now(), None);
        assert!(!prover.proves(-3.0, 3.0));
        prover.advance((f64::INFINITY, -3.0, 3.0), false, &clock);
        assert!(prover.proves(-3.0, 3.0));
        let work = prover.work();
        prover.advance((f64::INFINITY, -3.0, 3.0), false, &clock);
        assert_eq!(prover.work(), work);
        assert!(!prover.proves(-2.5, 3.0));
    });
}

#[test]
fn wrong_arguments_are_named() {
    let smooth = Quadratic::new(Array2::eye(3), None, None).unwrap();
    let signature = Signature::stiefel(3);
    let problem = Problem::new(&smooth, &Penalty::NONE, &signature, 2).unwrap();
    let message = |restriction: &Restriction, gap_tol: f64| {
        let made = Prover::new(&problem, restriction, gap_tol, &Threads::serial());
        made.err().map_or(String::new(), |error| error.to_string())
    };
    assert_eq!(message(&Restriction::Free, 0.0), "");
    for gap_tol in [-1e-300, f64::NAN] {
        assert!(message(&Restriction::Free, gap_tol).contains("gap_tol"));
    }
    assert!(message(&Restriction::Rows(1), 0.0).contains("count"));
}
