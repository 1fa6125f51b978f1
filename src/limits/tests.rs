//! Tests of clocks and shares, without waiting: seconds of an earlier process move the clock.

use super::*;

fn counted() -> Clock {
    Clock::new(Instant::now(), None)
}

#[test]
fn a_clock_counts_work_unless_it_has_a_limit_in_seconds() {
    let seconds = Clock::new(Instant::now(), Some(1000.0));
    assert!(counted().counts() && !seconds.counts());
    assert_eq!((counted().limit(), seconds.limit()), (None, Some(1000.0)));
    assert_eq!((counted().rate(), seconds.rate()), (1.0, RATE));
    assert_eq!((counted().units(3e10), seconds.units(3e10)), (3e10, 3.0));
    seconds.set_counts(true);
    assert!(seconds.counts());
    assert_eq!(counted().left(), None);
}

#[test]
fn a_clock_goes_on_from_an_earlier_process() {
    let clock = Clock::new(Instant::now(), Some(1000.0));
    clock.advance_to(400.0);
    assert!((400.0..450.0).contains(&clock.seconds()));
    assert!((550.0..=600.0).contains(&clock.left().unwrap()));
    // It never goes back, and a second call adds what is missing.
    clock.advance_to(100.0);
    assert!((400.0..450.0).contains(&clock.seconds()));
    clock.advance_to(500.0);
    assert!((500.0..550.0).contains(&clock.seconds()));
    assert!(!clock.expired());
    clock.advance_to(1000.0);
    assert!(clock.expired() && !clock.stopped());
    assert_eq!(clock.left(), Some(0.0));
    let stopped = counted();
    assert!(!stopped.stopped() && !stopped.expired());
    stopped.stop();
    assert!(stopped.stopped() && stopped.expired());
}

#[test]
fn a_task_spends_its_share() {
    let clock = counted();
    let (work, strict) = (
        TaskWork::new(&clock, 100.0),
        TaskWork::strict(&clock, 100.0),
    );
    work.spend(30.0);
    assert_eq!(
        (work.spent(), work.left(), work.left_work()),
        (30.0, 70.0, 70.0)
    );
    assert_eq!((work.units(10.0), work.units(1000.0)), (10.0, 70.0));
    // A task is overdue at twice its share, a strict one at its end.
    for (spent, overdue, over) in [
        (99.0, false, false),
        (100.0, false, true),
        (199.0, false, true),
        (200.0, true, true),
    ] {
        work.spend(spent - work.spent());
        strict.spend(spent - strict.spent());
        assert_eq!(
            (work.expired(), work.overdue()),
            (false, overdue),
            "{spent}"
        );
        assert_eq!(
            (strict.expired(), strict.overdue()),
            (over, over),
            "{spent}"
        );
    }
    assert_eq!(work.left(), 0.0);
    let whole = TaskWork::new(&clock, 100.0);
    let found = whole.part(40.0, |part| {
        part.spend(25.0);
        assert_eq!(part.left(), 15.0);
        7
    });
    assert_eq!((found, whole.spent()), (7, 25.0));
}

#[test]
fn a_task_in_seconds_begins_now() {
    let clock = Clock::new(Instant::now(), Some(1000.0));
    clock.advance_to(100.0);
    let work = TaskWork::new(&clock, 50.0);
    assert!((25.0..=50.0).contains(&work.left()));
    assert!((25.0 * RATE..=50.0 * RATE).contains(&work.left_work()));
    assert!(!work.overdue());
    clock.advance_to(175.0);
    assert!(!work.overdue() && work.left() == 0.0);
    clock.advance_to(201.0);
    assert!(work.overdue() && !work.expired());
}

#[test]
fn counted_work_also_ends_with_the_time_for_it() {
    let clock = Clock::with_unit(Instant::now(), Some(10_000.0), true);
    let units = 1e6;
    let (paced, free) = (
        TaskWork::new(&clock, units).within(1000.0),
        TaskWork::new(&clock, units),
    );
    let used = |work: &TaskWork<'_>| work.now() / units;
    assert_eq!((used(&paced), used(&free)), (0.0, 0.0));
    // Up to half of the time, only work counts.
    clock.advance_to(480.0);
    paced.spend(0.3 * units);
    assert_eq!(used(&paced), 0.3);
    // From then on the time counts if more of it is used than of the work.
    clock.advance_to(600.0);
    assert_eq!(used(&paced), 0.3);
    clock.advance_to(750.0);
    assert!((0.45..0.6).contains(&used(&paced)));
    clock.advance_to(1010.0);
    assert!(used(&paced) > 1.0 && paced.left() == 0.0 && !paced.overdue() && !paced.expired());
    assert_eq!((used(&free), free.left()), (0.0, units));
    // A part of a task counts its own work, and seconds are not counted twice.
    paced.part(100.0, |part| assert_eq!(part.left(), 100.0));
    let seconds = Clock::new(Instant::now(), Some(10_000.0));
    let work = TaskWork::new(&seconds, 100.0).within(10.0);
    seconds.advance_to(50.0);
    assert!((25.0..75.0).contains(&work.left()));
    // Without a time limit, or without a limit on work, nothing changes.
    assert_eq!(
        used(&TaskWork::new(&counted(), units).within(f64::INFINITY)),
        0.0
    );
    let endless = TaskWork::new(&clock, f64::INFINITY).within(0.0);
    assert_eq!((endless.now(), endless.left()), (0.0, f64::INFINITY));
}

#[test]
fn progress_is_the_used_part_of_a_limit() {
    let clock = counted();
    let work = TaskWork::new(&clock, 100.0);
    work.spend(20.0);
    // From 20 to 60.
    let half = work.limit(0.5);
    assert_eq!(half.progress(), 0.0);
    work.spend(10.0);
    assert_eq!(half.progress(), 0.25);
    // From 20 to 40, from 30 to 60, and from 30 to 40.
    assert_eq!(half.first(0.5).progress(), 0.5);
    assert_eq!(half.rest().progress(), 0.0);
    assert_eq!(half.up_to(0.5).progress(), 0.0);
    work.spend(5.0);
    assert_eq!(half.first(0.5).progress(), 0.75);
    let rest = half.rest();
    work.spend(5.0);
    assert_eq!(rest.progress(), 0.2);
    assert_eq!(half.progress(), 0.5);
    work.spend(60.0);
    assert_eq!(half.progress(), 1.0);
    let stopped = work.limit(0.5);
    clock.stop();
    assert_eq!(stopped.progress(), 1.0);
}
