//! Solves that are killed and continue from their checkpoints.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::normal;
use ndarray::Array2;
use orthobcd::heuristic::{Heuristic, Prior, Profile, Task};
use orthobcd::penalty::Penalty;
use orthobcd::search::minimize_with;
use orthobcd::{
    Auto, Cardinality, Checkpoint, Control, Error, Limit, Monitor, Options, Problem, Quadratic, Result, RowSparsity,
    Signature, Solution, Sparsity, Stages, Threads, Unwatched, follow_path, minimize_auto, start,
};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// A monitor with a checkpoint that dies at its `polls`-th poll, or stops there.
struct Dying {
    file: Checkpoint,
    polls: usize,
    stops: bool,
}

impl Monitor for Dying {
    fn poll(&mut self) -> Control {
        self.polls = self.polls.saturating_sub(1);
        match (self.polls, self.stops) {
            (0, true) => Control::Stop,
            (0, false) => std::panic::panic_any("killed"),
            _ => Control::Continue,
        }
    }

    fn checkpoint(&mut self) -> Option<&mut Checkpoint> {
        Some(&mut self.file)
    }
}

/// A file of a test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("orthobcd-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("solve.checkpoint")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

type Solve<'a> = &'a dyn Fn(&mut dyn Monitor, &Threads) -> Result<Solution>;

/// Solves with a checkpoint; None if that was killed.
fn continued(
    solve: Solve<'_>,
    problem: &Problem<'_>,
    (path, threads): (&Path, usize),
    (polls, stops): (usize, bool),
) -> Option<Solution> {
    let threads = Threads::new(Some(threads)).unwrap();
    let mut file = Checkpoint::open(path, 0.0).unwrap();
    file.begin(problem, &[("seed", 0)], &threads).unwrap();
    let mut dying = Dying { file, polls, stops };
    let solved = catch_unwind(AssertUnwindSafe(|| solve(&mut dying, &threads)));
    solved.ok().map(|solution| solution.unwrap())
}

/// Kills a solve at several moments; each time it ends as it does without interruption.
fn ends_alike(name: &str, problem: &Problem<'_>, solve: Solve<'_>) {
    let begun = Instant::now();
    let whole = solve(&mut Unwatched, &Threads::serial()).unwrap();
    let (taken, mut least) = (begun.elapsed(), Duration::MAX);
    let scratch = Scratch::new(name);
    let path = scratch.file();
    let mut killed = 0;
    for (moment, stops) in [(1, false), (2, false), (4, true), (7, false), (12, false), (20, true)] {
        let ended = continued(solve, problem, (&path, 1 + moment % 2), (moment, stops));
        killed += usize::from(ended.is_none());
        let resumed = continued(solve, problem, (&path, 2), (usize::MAX, false)).unwrap();
        assert_eq!(resumed.x, whole.x, "{name} at {moment}");
        assert_eq!(resumed.objective.to_bits(), whole.objective.to_bits());
        assert_eq!(resumed.status, whole.status);
        assert_eq!(resumed.work, whole.work, "{name} at {moment}");
        assert_eq!(resumed.updates, whole.updates);
        // The file has the results now: nothing is solved again.
        let begun = Instant::now();
        let again = continued(solve, problem, (&path, 1), (usize::MAX, false)).unwrap();
        least = least.min(begun.elapsed());
        assert_eq!(again.x, whole.x);
        fs::remove_file(&path).unwrap();
    }
    assert!(2 * least < taken, "{name}: {least:?} of {taken:?}");
    assert!(killed > 0, "{name} was never killed");
}

fn data(seed: u64) -> Array2<f64> {
    let rng = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
    Array2::from_shape_fn((30, 40), |_| normal(rng))
}

#[test]
fn a_search_ends_alike() {
    let smooth = Quadratic::from_data(data(1).view()).unwrap();
    let signature = Signature::stiefel(40);
    let penalties = [
        ("l1", Penalty::l1(3.0)),
        ("l0", Penalty::l0(4.0)),
        ("nonnegative", Penalty::NONNEGATIVE),
        ("none", Penalty::NONE),
    ];
    for (name, penalty) in &penalties {
        let problem = Problem::new(&smooth, penalty, &signature, 4).unwrap();
        let auto = Auto::default().with_options(Options::default().with_max_work(1_000_000_000));
        let solve = |monitor: &mut dyn Monitor, threads: &Threads| {
            minimize_auto(&problem, None, &auto, threads, monitor).map(|found| found.solution)
        };
        if *name == "none" {
            // One decomposition: there is no time to kill it.
            let scratch = Scratch::new(name);
            let found = continued(&solve, &problem, (&scratch.file(), 1), (usize::MAX, false));
            assert!(found.is_some());
        } else {
            ends_alike(name, &problem, &solve);
        }
    }
}

/// A heuristic that counts its runs.
struct Counted(AtomicUsize);

impl Heuristic for &'static Counted {
    fn name(&self) -> &'static str {
        "counted"
    }

    fn fits(&self, _: &Profile, _: bool) -> Option<Prior> {
        Some(Prior::new(1.0, 1.0))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Some(task.polar(&start::random(40, 4, task.seed)))
    }
}

#[test]
fn recorded_runs_are_not_repeated() {
    static RUNS: Counted = Counted(AtomicUsize::new(0));
    let smooth = Quadratic::from_data(data(7).view()).unwrap();
    let (penalty, signature) = (Penalty::l1(3.0), Signature::stiefel(40));
    let problem = Problem::new(&smooth, &penalty, &signature, 4).unwrap();
    let auto = Auto::default().with_options(Options::default().with_max_work(1_000_000_000));
    let heuristics: [Box<dyn Heuristic>; 1] = [Box::new(&RUNS)];
    let solve = |monitor: &mut dyn Monitor, threads: &Threads| {
        let found = minimize_with(&problem, None, &heuristics, &auto, threads, monitor);
        found.map(|found| found.solution)
    };
    let whole = solve(&mut Unwatched, &Threads::serial()).unwrap();
    let most = RUNS.0.swap(0, Ordering::Relaxed);
    let scratch = Scratch::new("counted");
    for moment in [8, 16, usize::MAX] {
        let found = continued(&solve, &problem, (&scratch.file(), 1), (moment, false));
        assert!(found.is_none_or(|found| found.x == whole.x));
    }
    assert!(RUNS.0.swap(0, Ordering::Relaxed) >= most);
    let again = continued(&solve, &problem, (&scratch.file(), 1), (usize::MAX, false));
    assert_eq!(again.unwrap().x, whole.x);
    assert_eq!(RUNS.0.load(Ordering::Relaxed), 0);
}

#[test]
fn limits_and_paths_end_alike() {
    let smooth = Quadratic::from_data(data(2).view()).unwrap();
    let signature = Signature::stiefel(40);
    let options = Options::default().with_max_work(2_000_000_000);
    let problem = Problem::new(&smooth, &Penalty::NONE, &signature, 4).unwrap();
    let auto = Auto::default().with_options(options.clone());
    let entries = Limit::Entries(Sparsity::new(Cardinality::Total(30)));
    let rows = Limit::Rows(RowSparsity::Count(9));
    for (name, limit) in [("entries", entries), ("rows", rows)] {
        let problem = problem.with_limit(&limit).unwrap();
        ends_alike(name, &problem, &|monitor, threads| {
            minimize_auto(&problem, None, &auto, threads, monitor).map(|found| found.solution)
        });
    }
    let penalty = Penalty::l1(1.0);
    let problem = Problem::new(&smooth, &penalty, &signature, 4).unwrap();
    let solve = |monitor: &mut dyn Monitor, threads: &Threads| {
        let path = follow_path(&problem, None, &Stages::default(), &options, threads, monitor);
        path.map(|path| path.solution)
    };
    let scratch = Scratch::new("path");
    let whole = solve(&mut Unwatched, &Threads::serial()).unwrap();
    for _ in 0..2 {
        let found = continued(&solve, &problem, (&scratch.file(), 1), (usize::MAX, false));
        assert_eq!(found.unwrap().x, whole.x);
    }
}

#[test]
fn an_interrupted_search_keeps_its_point_and_its_time() {
    const LIMIT: f64 = 2.0;
    let smooth = Quadratic::from_data(data(3).view()).unwrap();
    let (penalty, signature) = (Penalty::l1(3.0), Signature::stiefel(40));
    let problem = Problem::new(&smooth, &penalty, &signature, 4).unwrap();
    for work in [None, Some(50_000_000_000)] {
        let options = Options::default().with_max_time(LIMIT).with_max_work(work).with_effort(f64::INFINITY);
        let auto = Auto::default().with_options(options);
        let solve = |monitor: &mut dyn Monitor, threads: &Threads| {
            minimize_auto(&problem, None, &auto, threads, monitor).map(|found| found.solution)
        };
        let scratch = Scratch::new(&format!("kept-{}", work.is_some()));
        let path = scratch.file();
        let first = continued(&solve, &problem, (&path, 2), (60, true)).unwrap();
        assert!(first.seconds < LIMIT);
        let second = continued(&solve, &problem, (&path, 2), (2, true)).unwrap();
        assert!(second.objective <= first.objective);
        let begun = Instant::now();
        let last = continued(&solve, &problem, (&path, 2), (usize::MAX, false)).unwrap();
        assert!(last.objective <= first.objective);
        assert!(last.seconds >= first.seconds);
        assert!(begun.elapsed().as_secs_f64() <= last.seconds + 0.1);
    }
}

#[test]
fn files_of_other_solves_and_damaged_ones_are_refused() {
    let (a, other) = (data(4), data(5));
    let smooth = Quadratic::from_data(a.view()).unwrap();
    let mut changed = a.clone();
    changed[[3, 5]] += 1e-3;
    let (penalty, signature) = (Penalty::l1(3.0), Signature::stiefel(40));
    let threads = Threads::serial();
    let scratch = Scratch::new("refused");
    let path = scratch.file();
    let begin = |smooth: &Quadratic, penalty: &Penalty, r: usize, seed: usize| {
        let problem = Problem::new(smooth, penalty, &signature, r).unwrap();
        let settings = [("penalty", penalty.value(Array2::ones((40, r)).view())), ("seed", seed as f64)];
        Checkpoint::open(&path, 60.0)?.begin(&problem, &settings, &threads)
    };
    begin(&smooth, &penalty, 4, 0).unwrap();
    begin(&smooth, &penalty, 4, 0).unwrap();
    let said = |begun: Result<()>| match begun {
        Err(Error::InvalidArgument { name, message }) => {
            assert_eq!(name, "checkpoint");
            message
        }
        _ => panic!("not refused"),
    };
    for data in [&changed, &other] {
        let smooth = Quadratic::from_data(data.view()).unwrap();
        assert!(said(begin(&smooth, &penalty, 4, 0)).contains("is of other data"));
    }
    assert!(said(begin(&smooth, &penalty, 3, 0)).contains("of shape (40, 4); this one has shape (40, 3)"));
    assert!(said(begin(&smooth, &penalty, 4, 1)).contains("another seed: 0; this one has 1"));
    assert!(said(begin(&smooth, &Penalty::l1(2.0), 4, 0)).contains("another penalty"));
    let bytes = fs::read(&path).unwrap();
    for at in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&path, &damaged).unwrap();
        let message = said(begin(&smooth, &penalty, 4, 0));
        assert!(message.contains("is damaged") || message.contains("no checkpoint"), "{message}");
        fs::write(&path, &bytes[..at]).unwrap();
        said(begin(&smooth, &penalty, 4, 0));
    }
    fs::write(&path, [&bytes[..], &[0]].concat()).unwrap();
    assert!(said(begin(&smooth, &penalty, 4, 0)).contains("is damaged"));
}

#[test]
fn leftovers_go_and_a_full_disk_is_no_error() {
    let smooth = Quadratic::from_data(data(6).view()).unwrap();
    let (penalty, signature) = (Penalty::l1(3.0), Signature::stiefel(40));
    let problem = Problem::new(&smooth, &penalty, &signature, 4).unwrap();
    let threads = Threads::serial();
    let scratch = Scratch::new("leftovers");
    let part = scratch.0.join(".solve.checkpoint.part");
    fs::write(&part, "half").unwrap();
    let mut file = Checkpoint::open(scratch.file(), 60.0).unwrap();
    file.begin(&problem, &[("seed", 0)], &threads).unwrap();
    assert!(!part.exists() && scratch.file().exists());
    assert_eq!(file.failure(), None);
    let missing = scratch.0.join("no folder").join("solve.checkpoint");
    let mut file = Checkpoint::open(missing, 60.0).unwrap();
    file.begin(&problem, &[("seed", 0)], &threads).unwrap();
    assert!(file.failure().unwrap().contains("cannot be written"));
    assert_eq!(file.failure(), None);
    assert!(Checkpoint::open(scratch.file(), -1.0).is_err());
    assert!(Checkpoint::open(&scratch.0, 1.0).is_err());
}
