//! Tests of clocks and shares, without waiting: seconds of an earlier process move the clock.

use super::*;

fn counted() -> Clock {
    Clock::new(Instant::now(), None)
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
    let (work, strict) = (TaskWork::new(&clock, 100.0), TaskWork::ending(&clock, 100.0, 100.0));
    work.spend(30.0);
    assert_eq!((work.spent(), work.left()), (30.0, 70.0));
    // A task is overdue at twice its share, a strict one past its end.
    for (spent, overdue, over) in
        [(99.0, false, false), (100.0, false, false), (101.0, false, true), (199.0, false, true), (200.0, true, true)]
    {
        work.spend(spent - work.spent());
        strict.spend(spent - strict.spent());
        assert_eq!((work.expired(), work.overdue()), (false, overdue), "{spent}");
        assert_eq!((strict.expired(), strict.overdue()), (over, over), "{spent}");
    }
    assert_eq!(work.left(), 0.0);
    let whole = TaskWork::new(&clock, 100.0);
    let found = whole.part(40.0, |part| {
        part.spend(25.0);
        assert_eq!(part.left(), 15.0);
        7
    });
    assert_eq!((found, whole.spent()), (7, 25.0));
    // The end of a task is that of its parts.
    let ending = TaskWork::ending(&clock, 100.0, 30.0);
    ending.part(1000.0, |part| {
        part.spend(29.0);
        assert!(!part.expired() && part.left() == 971.0);
        part.spend(1.0);
        assert!(!part.expired());
        part.spend(1.0);
        assert!(part.expired());
    });
    assert!(ending.expired() && ending.left() == 69.0);
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
