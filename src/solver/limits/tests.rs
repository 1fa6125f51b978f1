//! Tests of the limits of a solve at their values.

use std::time::Duration;

use super::*;

fn ledger(visited: u64, work: f64) -> Ledger {
    let mut ledger = Ledger::new(10, 0.0);
    ledger.objective = 2.0;
    ledger.visit(visited, work);
    ledger
}

#[test]
fn a_limit_ends_a_solve_when_it_is_reached() {
    let of = |limits: Limits| limits.reached(&ledger(20, 7.0));
    let base = Limits::default;
    assert_eq!(of(base()), None);
    for (value, reached) in [(1.9, false), (2.0, true), (2.1, true)] {
        let target = Limits { target: Some(value), ..base() };
        assert_eq!(of(target), reached.then_some(Status::Target));
    }
    for (limit, reached) in [(6, true), (7, true), (8, false)] {
        let work = Limits { work: Some(limit), ..base() };
        assert_eq!(of(work), reached.then_some(Status::MaxWork));
        let evaluations = Limits { evaluations: Some(limit), ..base() };
        assert_eq!(of(evaluations), reached.then_some(Status::MaxSweeps));
    }
    for (limit, reached) in [(19, true), (20, true), (21, false)] {
        let visits = Limits { visits: Some(limit), ..base() };
        assert_eq!(of(visits), reached.then_some(Status::MaxSweeps));
    }
    for (limit, reached) in [(1, true), (2, true), (3, false)] {
        let sweeps = Limits { sweeps: Some(limit), ..base() };
        assert_eq!(sweeps.sweeps_reached(&ledger(20, 7.0)), reached);
    }
    for (seconds, status) in [(0.0, Some(Status::MaxTime)), (1000.0, None)] {
        let time = || Limits { time: Some(seconds), ..base() };
        assert_eq!((of(time()), time().reached_at_once(&ledger(0, 0.0))), (status, status));
    }
    let none = Limits { sweeps: Some(0), ..base() };
    assert_eq!(none.reached_at_once(&ledger(0, 0.0)), Some(Status::MaxSweeps));
}

#[test]
fn the_largest_used_share_is_that_of_any_limit() {
    let used = ledger(20, 7.0);
    let base = Limits::default;
    assert_eq!(base().spent(&used), 0.0);
    assert_eq!(Limits { work: Some(70), ..base() }.spent(&used), 0.1);
    assert_eq!(Limits { evaluations: Some(14), ..base() }.spent(&used), 0.5);
    assert_eq!(Limits { visits: Some(80), ..base() }.spent(&used), 0.25);
    let all = Limits { work: Some(70), visits: Some(80), evaluations: Some(35), time: Some(1e9), ..base() };
    assert_eq!(all.spent(&used), 0.25);
}

#[test]
fn a_solve_ends_while_the_last_evaluation_has_time() {
    let limits = Limits { time: Some(1000.0), ..Limits::default() };
    for (seconds, count) in [(0, 3), (300, 3), (400, 2), (600, 1), (1000, 0), (2000, 0)] {
        let mut ledger = ledger(0, 0.0);
        ledger.evaluation = Duration::from_secs(seconds);
        for evaluations in 1..=3 {
            let allowed = limits.allows_evaluations(&ledger, evaluations);
            assert_eq!(allowed, evaluations <= count, "{seconds} {evaluations}");
            assert!(Limits::default().allows_evaluations(&ledger, evaluations));
        }
        let ended = (count == 0).then_some(Status::MaxTime);
        assert_eq!(limits.reached(&ledger), ended);
        assert_eq!(limits.reached_at_once(&ledger), ended);
    }
}
