//! Independent tasks on worker threads, while the calling thread polls the monitor.
//!
//! The monitor (Ctrl-C, callbacks) can only be polled on the calling thread, which therefore runs no task.
//! The result of a task does not depend on its worker. A panic of a task is resumed on the calling thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};

use crate::limits::{Clock, Control, POLL};
use crate::threads::locked;

/// Runs tasks 0..count on `workers` threads and returns the results in order of index. `watch` is called
/// every few hundredths of a second, and with every result in order of index, and may stop the clock.
/// Tasks that have not begun when the clock expires are dropped.
pub(crate) fn run<T: Send>(
    count: usize,
    workers: usize,
    clock: &Clock,
    body: impl Fn(usize) -> T + Sync,
    mut watch: impl FnMut(Option<&T>) -> Control,
) -> Vec<Option<T>> {
    let none = (0..count).map(|_| None).collect();
    complete(none, workers, clock, body, |arrival| watch(arrival.map(|(_, value, _)| value)))
}

/// Runs the tasks that have no result yet, as [`run`]. `watch` also gets the index of a result, and whether the clock
/// had time left when its task ended, so that nothing cut the task short. It gets no result after a stop.
pub(crate) fn complete<T: Send>(
    mut results: Vec<Option<T>>,
    workers: usize,
    clock: &Clock,
    body: impl Fn(usize) -> T + Sync,
    mut watch: impl FnMut(Option<(usize, &T, bool)>) -> Control,
) -> Vec<Option<T>> {
    let missing: Vec<usize> = (0..results.len()).filter(|&k| results[k].is_none()).collect();
    let arrived: Vec<_> = results.iter().map(|_| Mutex::new(None)).collect();
    let task = |index: usize| *locked(&arrived[index]) = Some(body(index));
    let mut wholes = vec![true; results.len()];
    let (mut next, mut stopped) = (0, false);
    let mut poll = |ended: Option<(usize, bool)>| {
        let mut control = watch(None);
        if let Some((index, whole)) = ended {
            results[index] = locked(&arrived[index]).take();
            wholes[index] = whole;
        }
        while let Some(Some(value)) = results.get(next)
            && control == Control::Continue
            && !stopped
        {
            control = watch(Some((next, value, wholes[next])));
            next += 1;
        }
        stopped |= control == Control::Stop;
        control
    };
    work(&missing, workers, clock, &task, &mut poll);
    results
}

/// Calls `task` for the indices on worker threads, and `poll` with every index that has ended, and whether the
/// clock had time left then. Compiled once, not for every type of result.
fn work(
    indices: &[usize],
    workers: usize,
    clock: &Clock,
    task: &(dyn Fn(usize) + Sync),
    poll: &mut dyn FnMut(Option<(usize, bool)>) -> Control,
) {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..workers.max(1).min(indices.len()) {
            let (sender, next) = (sender.clone(), &next);
            threads.push(scope.spawn(move || {
                while let Some(&index) = indices.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if clock.expired() {
                        break;
                    }
                    task(index);
                    if sender.send((index, !clock.expired())).is_err() {
                        break;
                    }
                }
            }));
        }
        drop(sender);
        if poll(None) == Control::Stop {
            clock.stop();
        }
        loop {
            let control = match receiver.recv_timeout(POLL) {
                Ok(ended) => poll(Some(ended)),
                Err(mpsc::RecvTimeoutError::Timeout) => poll(None),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            };
            if control == Control::Stop {
                clock.stop();
            }
        }
        for thread in threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

/// Returns a seed that is unrelated to those of neighbouring arguments.
pub(crate) fn decorrelated(seed: u64, index: u64) -> u64 {
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(index.wrapping_mul(0xd1b5_4a32_d192_ed03))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use std::time::Instant;

    /// A result stops the tasks; one that came before it and one that comes after it are not handed on.
    #[test]
    fn no_result_follows_a_stop() {
        for workers in 1..=3 {
            let clock = Clock::new(Instant::now(), None);
            let mut seen = Vec::new();
            let body = |k: usize| std::thread::sleep(Duration::from_millis([40, 0, 80][k]));
            complete(vec![None; 3], workers, &clock, body, |arrival| match arrival {
                Some((index, ..)) => {
                    seen.push(index);
                    Control::Stop
                }
                None => Control::Continue,
            });
            assert_eq!(seen, [0], "{workers}");
        }
    }
}
