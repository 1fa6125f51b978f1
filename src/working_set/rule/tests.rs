use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::WorkingSet;
use super::*;
use crate::objective::Objective;
use crate::penalty::Penalty;
use crate::{Options, Problem, Quadratic, Signature, Solution, Status, Threads, Unwatched};
use crate::{certify, minimize, start};

/// The result of a rule on an indefinite quadratic form, and what the best pair can still gain, relative to F.
fn solved(n: usize, penalty: &Penalty, k: usize, rule: Rule) -> (Solution, f64) {
    let a = start::random(n, n, 1);
    let smooth = Quadratic::new(&a + &a.t(), None, None).unwrap();
    let (signature, threads) = (Signature::stiefel(n), Threads::serial());
    let problem = Problem::new(&smooth, penalty, &signature, 3).unwrap();
    let options = Options::default().with_working_set(WorkingSet::Own(rule)).with_block_size(k);
    let x0 = start::random(n, 3, 0);
    let before = smooth.value(x0.view(), &threads) + penalty.value(x0.view());
    let solution = minimize(&problem, x0, &options, &threads, &mut Unwatched).unwrap();
    assert!(solution.objective < before && solution.feasibility < 1e-12);
    let certificate = certify(&problem, solution.x.view(), &threads).unwrap();
    (solution, certificate.block2_gap / certificate.magnitude)
}

/// A rule that always returns the same rows, and one that leaves out a row.
#[test]
fn a_solve_that_has_converged_has_no_pair_left_whatever_the_rule_chooses() {
    for n in [4, 7, 12] {
        for k in [2, 3] {
            for fixed in [true, false] {
                for penalty in [Penalty::NONE, Penalty::l0(0.3), Penalty::l1(0.3)] {
                    let calls = AtomicUsize::new(0);
                    let rule = Rule::new(move |view| {
                        assert_eq!((view.size(), view.x().nrows()), (k, n));
                        assert_eq!(view.subgradient().dim(), view.x().dim());
                        let first = if fixed { 0 } else { calls.fetch_add(1, Ordering::Relaxed) };
                        Some((0..k).rev().map(|i| (first + i) % (n - 1)).collect())
                    });
                    let (solution, left) = solved(n, &penalty, k, rule);
                    assert_eq!(solution.status, Status::Converged);
                    assert!(left <= 1e-10, "{left:e}");
                }
            }
        }
    }
}

#[test]
fn a_rule_without_rows_or_with_wrong_ones_ends_the_solve_with_its_point() {
    let n = 9;
    let wrong = [vec![], vec![1], vec![2, 2], vec![0, n], vec![0, 1, 2]];
    for last in wrong.into_iter().map(Some).chain([None]) {
        let calls = AtomicUsize::new(0);
        let rule = Rule::new(move |_| match calls.fetch_add(1, Ordering::Relaxed) {
            call @ ..20 => Some(vec![call % n, (call + 3) % n]),
            _ => last.clone(),
        });
        let (solution, _) = solved(n, &Penalty::l1(0.3), 2, rule);
        assert_eq!(solution.status, Status::Interrupted);
    }
}
