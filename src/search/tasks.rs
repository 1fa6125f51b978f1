//! Tasks of a search: workers run them, and their results count in their order. A limit on time or work, or Ctrl-C,
//! cuts the search after a whole task.

use std::sync::atomic::{AtomicU64, Ordering};

use super::incumbent::Incumbent;
use crate::limits::TaskWork;
use crate::pool;
use crate::solver::Control;

/// Tasks that may run side by side.
pub(super) struct Tasks<T> {
    /// Results that are known already, with the work that counts for them.
    pub(super) known: Vec<Option<(T, f64)>>,
    pub(super) workers: usize,
    /// Work of each.
    pub(super) slice: f64,
    /// Part of their work that counts.
    pub(super) part: f64,
    /// Work that counts for all of them, after which a task is over.
    pub(super) most: f64,
}

impl<T: Send> Tasks<T> {
    pub(super) fn new(count: usize, workers: usize) -> Self {
        Self {
            known: (0..count).map(|_| None).collect(),
            workers,
            slice: f64::INFINITY,
            part: 1.0,
            most: f64::INFINITY,
        }
    }

    /// Runs the tasks, and hands their results with their work to `take` in their order, until a limit cuts one. Its
    /// result and those after it are dropped. Returns the results that were taken.
    pub(super) fn run(
        self,
        incumbent: &mut Incumbent<'_>,
        task: impl Fn(usize, &TaskWork<'_>) -> T + Sync,
        mut take: impl FnMut(&mut Incumbent<'_>, usize, &(T, f64)) -> Control,
    ) -> Vec<T> {
        let (part, clock, end) = (self.part, incumbent.clock, incumbent.end().min(self.most));
        let done: Vec<AtomicU64> = self.known.iter().map(|_| AtomicU64::new(0)).collect();
        let mut taken = 0;
        let results = pool::complete(
            self.known,
            self.workers,
            clock,
            |k| {
                // A task is over as soon as those before it have used the limit.
                let before: f64 = done[..k].iter().map(|work| work.load(Ordering::Relaxed) as f64).sum();
                let work = TaskWork::ending(clock, self.slice, (end - before) / part);
                let result = task(k, &work);
                let counted = counted(part, &work);
                done[k].store(counted as u64, Ordering::Relaxed);
                (result, counted)
            },
            |arrival| {
                let Some((k, ran, whole)) = arrival else {
                    return incumbent.poll();
                };
                if incumbent.status.is_some() || !whole || !incumbent.charge(ran.1) {
                    return Control::Stop;
                }
                taken = k + 1;
                let control = take(incumbent, k, ran);
                incumbent.prove();
                control
            },
        );
        results.into_iter().take(taken).flatten().map(|ran| ran.0).collect()
    }
}

/// Returns the `part` of the work of a task that counts. A part counts at least 2, so that a limit of the work up to the task
/// repeats it and nothing else; a whole task without work changes nothing.
pub(super) fn counted(part: f64, work: &TaskWork<'_>) -> f64 {
    match part == 1.0 {
        true => work.spent(),
        false => (part * work.spent()).ceil().max(2.0),
    }
}

/// Runs one task on a worker thread; None if a limit cut it.
pub(super) fn run_one<T: Send>(
    incumbent: &mut Incumbent<'_>,
    part: f64,
    task: impl Fn(&TaskWork<'_>) -> Option<T> + Sync,
) -> Option<T> {
    let tasks = Tasks { part, ..Tasks::new(1, 1) };
    let made = tasks.run(incumbent, |_, work| task(work), |_, _, _| Control::Continue);
    made.into_iter().flatten().next()
}
