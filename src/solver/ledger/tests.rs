//! Tests of counts, passes, segments and the history of a solve.

use ndarray::Array2;

use super::*;

fn record(iterations: u64, objective: f64) -> Record {
    Record { seconds: 0.0, objective, feasibility: 0.0, iterations }
}

#[test]
fn passes_add_up_their_decreases() {
    let mut ledger = Ledger::new(10, 1e-6);
    ledger.objective = 5.0;
    ledger.lower(-1.0, 2);
    ledger.lower(-0.5, 1);
    assert_eq!((ledger.objective(), ledger.updates), (3.5, 3));
    assert_eq!(ledger.end_pass(), (1.5, true));
    assert_eq!(ledger.end_pass(), (0.0, false));
}

#[test]
fn the_threshold_is_relative_to_f_and_at_least_its_rounding() {
    let mut ledger = Ledger::new(10, 1e-6);
    ledger.resize(8.0, 0.0);
    assert_eq!(ledger.threshold(), 8e-6);
    ledger.resize(8.0, -1e20);
    assert_eq!(ledger.threshold(), 1e20 * f64::EPSILON);
    let mut least = Ledger::new(10, 0.0);
    least.resize(8.0, 0.0);
    assert_eq!(least.threshold(), 8.0 * f64::EPSILON);
}

#[test]
fn sweeps_are_counted_by_pairs() {
    let mut ledger = Ledger::new(10, 0.0);
    ledger.visit(25, 7.0);
    assert_eq!((ledger.sweeps(), ledger.work, ledger.has_swept()), (2, 7.0, true));
    ledger.end_pass();
    ledger.visit(4, 1.0);
    assert!(!ledger.has_swept());
    // Columns: a pass over 4 pairs counts as a sweep of 10.
    ledger.credit_sweep(4);
    assert_eq!((ledger.sweeps(), ledger.has_swept()), (3, true));
    ledger.end_pass();
    ledger.visit(9, 1.0);
    assert!(!ledger.has_swept());
    ledger.visit(1, 1.0);
    assert_eq!((ledger.sweeps(), ledger.has_swept()), (4, true));
}

#[test]
fn segments_end_after_their_passes_and_their_work() {
    let mut ledger = Ledger::new(10, 0.0);
    for segment in 0..2 {
        for _ in 0..SEGMENT_PASSES {
            assert!(!ledger.ends_segment());
            ledger.visit(3, SEGMENT_WORK);
            ledger.end_pass();
        }
        assert!(ledger.ends_segment());
        assert_eq!(ledger.segment, segment);
        ledger.begin_segment();
    }
    // Passes of no work end no segment, and the least work does.
    for _ in 0..2 * SEGMENT_PASSES {
        ledger.end_pass();
        assert!(!ledger.ends_segment());
    }
    ledger.visit(3, SEGMENT_WORK);
    assert!(ledger.ends_segment());
}

#[test]
fn a_resumed_solve_has_the_counts_of_its_segment() {
    let mut ledger = Ledger::new(10, 0.0);
    ledger.visit(25, 7.0);
    ledger.credit_sweep(4);
    ledger.lower(-1.0, 3);
    ledger.history.push(record(25, 1.0));
    ledger.begin_segment();
    let mut counts = ledger.counts();
    counts.seconds = 100.0;
    let mut resumed = Ledger::new(10, 0.0);
    resumed.resume(counts);
    assert_eq!((resumed.visited, resumed.updates, resumed.work), (25, 3, 7.0));
    assert_eq!((resumed.segment, resumed.sweeps(), resumed.history.len()), (1, 3, 1));
    assert!(!resumed.has_swept());
    assert!((100.0..150.0).contains(&resumed.seconds()));
    resumed.visit(10, 0.0);
    assert!(resumed.has_swept());
    assert!(resumed.end_pass().0 == 0.0);
}

#[test]
fn the_history_ends_at_the_result_and_never_rises() {
    let close = |rows: &[(u64, f64)], visited: u64| {
        let mut ledger = Ledger::new(10, 0.0);
        ledger.visit(visited, 1.0);
        ledger.history = rows.iter().map(|&(i, f)| record(i, f)).collect();
        let solution = ledger.close(Status::Converged, Array2::eye(2), (1.0, 2.0), 0.5);
        assert_eq!((solution.objective, solution.feasibility), (3.0, 0.5));
        let history = solution.history.iter();
        history.map(|r| (r.iterations, r.objective)).collect::<Vec<_>>()
    };
    // A value below the last one is raised; the row of the last visit is replaced, but not the first row.
    assert_eq!(close(&[(0, 9.0), (5, 2.9)], 8), [(0, 9.0), (5, 3.0), (8, 3.0)]);
    assert_eq!(close(&[(0, 9.0), (8, 4.0)], 8), [(0, 9.0), (8, 3.0)]);
    assert_eq!(close(&[(0, 9.0)], 0), [(0, 9.0), (0, 3.0)]);
    assert_eq!(close(&[], 4), [(4, 3.0)]);
}
