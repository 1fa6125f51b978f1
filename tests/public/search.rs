//! The search through the public interface: makers, heuristics of one's own, counted work, invariances.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::common;
use ndarray::{Array2, Axis};
use orthobcd::heuristic::{Heuristic, Prior, Profile, Task, registry};
use orthobcd::penalty::Penalty;
use orthobcd::search::minimize_with;
use orthobcd::{
    Auto, AutoSolution, DenseColumns, GramQuadratic, Objective, Options, Problem, Quadratic, Signature, Status,
    Threads, Unwatched, certify, minimize_auto, start,
};

/// Rows in random order as unit vectors, or those of the best point with one exchanged.
struct Selection;

impl Heuristic for Selection {
    fn name(&self) -> &'static str {
        "selection"
    }

    fn fits(&self, profile: &Profile, _improve: bool) -> Option<Prior> {
        (!profile.mixed).then(|| Prior::new(0.5, 0.0))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let (n, r) = task.rotated().dim();
        let mut x = task.from.cloned().unwrap_or_else(|| start::identity(n, r));
        let row = (task.seed % n as u64) as usize;
        let column = x.column(0).to_owned();
        for (i, v) in column.iter().enumerate() {
            x[[(i + row) % n, 0]] = *v;
        }
        Some(task.polar(&x))
    }
}

/// Correlated features, some of much more variance than others.
fn data(m: usize, n: usize, seed: u64) -> Array2<f64> {
    let mut a = start::random(n, m.min(n), seed).reversed_axes() * 4.0;
    for (j, mut column) in a.columns_mut().into_iter().enumerate() {
        column *= 1.0 / (1.0 + (j % 40) as f64);
    }
    a.mapv(common::given)
}

fn solve(smooth: &dyn Objective, penalty: &Penalty, r: usize, auto: &Auto, threads: usize) -> AutoSolution {
    let signature = Signature::stiefel(smooth.rows());
    let problem = Problem::new(smooth, penalty, &signature, r).unwrap();
    let threads = Threads::new(Some(threads)).unwrap();
    minimize_auto(&problem, None, auto, &threads, &mut Unwatched).unwrap()
}

fn counted(work: u64) -> Auto {
    Auto::default().with_options(Options::default().with_max_work(work))
}

#[test]
fn a_heuristic_of_ones_own_takes_part() {
    let smooth = Quadratic::from_data(data(20, 24, 1).view()).unwrap();
    let signature = Signature::stiefel(24);
    let penalty = Penalty::l0(0.05);
    let problem = Problem::new(&smooth, &penalty, &signature, 3).unwrap();
    let mut heuristics = registry();
    heuristics.push(Box::new(Selection));
    let answer = minimize_with(&problem, None, &heuristics, &Auto::default(), &Threads::serial(), &mut Unwatched);
    let answer = answer.unwrap();
    assert!(answer.runs.iter().any(|run| run.heuristic == "selection" && !run.improve));
    assert!(answer.solution.feasibility < 1e-12);
    let alone: Vec<Box<dyn Heuristic>> = vec![Box::new(Selection)];
    let alone = minimize_with(&problem, None, &alone, &Auto::default(), &Threads::serial(), &mut Unwatched);
    assert!(answer.solution.objective <= alone.unwrap().solution.objective + 1e-9);
}

/// Nearer to the leading eigenvectors the longer it runs.
struct Slow;

impl Heuristic for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn fits(&self, _: &Profile, improve: bool) -> Option<Prior> {
        (!improve).then(|| Prior::new(1.0, 0.0))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let rotated = task.rotated().to_owned();
        let mut steps = 0.0;
        while task.progress() < 1.0 {
            task.value_and_gradient(&rotated);
            steps += 1.0;
        }
        let away = Array2::from_shape_fn(rotated.dim(), |(i, k)| ((7 * i + 3 * k) as f64).sin());
        Some(task.polar(&(rotated + away / (1.0 + steps))))
    }
}

/// The point where it begins, or the first rows.
struct Idle;

impl Heuristic for Idle {
    fn name(&self) -> &'static str {
        "idle"
    }

    fn fits(&self, _: &Profile, _: bool) -> Option<Prior> {
        Some(Prior::new(0.5, 0.0))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let (n, r) = task.rotated().dim();
        Some(task.from.cloned().unwrap_or_else(|| start::identity(n, r)))
    }
}

/// A start that more work improves is repeated with more work; one that does not change makes way for other starts.
#[test]
fn what_gains_from_more_work_gets_more() {
    let smooth = Quadratic::from_data(data(40, 48, 1).view()).unwrap();
    let signature = Signature::stiefel(48);
    let penalty = Penalty::l0(1e-9);
    let problem = Problem::new(&smooth, &penalty, &signature, 3).unwrap();
    let heuristics: Vec<Box<dyn Heuristic>> = vec![Box::new(Slow), Box::new(Idle)];
    let auto = counted(2_000_000_000);
    let threads = Threads::serial();
    let answer = minimize_with(&problem, None, &heuristics, &auto, &threads, &mut Unwatched);
    let answer = answer.unwrap();
    let slow = answer.runs.iter().filter(|run| run.heuristic == "slow");
    let work: Vec<f64> = slow.map(|run| run.work).collect();
    // The first run is that of the points that need no steps; the last has what the limit leaves.
    assert!(work.len() > 5, "{work:?}");
    assert!(work[1..work.len() - 1].windows(2).all(|w| w[1] >= w[0]), "{work:?}");
    assert!(work[work.len() - 1] > 2.0 * work[1], "{work:?}");
}

/// Takes all the time there is, and comes to nothing.
struct Endless;

/// Seconds of a search beside it.
const SHORT: f64 = 0.5;

impl Heuristic for Endless {
    fn name(&self) -> &'static str {
        "endless"
    }

    fn fits(&self, _: &Profile, improve: bool) -> Option<Prior> {
        (!improve).then(|| Prior::new(1.0, 1.0))
    }

    fn run(&self, _: &Task<'_>) -> Option<Array2<f64>> {
        std::thread::sleep(std::time::Duration::from_secs_f64(2.0 * SHORT));
        None
    }
}

#[test]
fn a_point_that_needs_no_steps_is_found_before_anything_else() {
    let smooth = Quadratic::from_data(data(20, 24, 2).view()).unwrap();
    let signature = Signature::stiefel(24);
    let penalty = Penalty::l0(1e-9);
    let problem = Problem::new(&smooth, &penalty, &signature, 3).unwrap();
    let varimax = registry().into_iter().filter(|h| h.name() == "varimax");
    let mut heuristics: Vec<Box<dyn Heuristic>> = vec![Box::new(Endless)];
    heuristics.extend(varimax);
    let auto = Auto::default().with_options(Options::default().with_max_time(SHORT));
    let threads = Threads::serial();
    let answer = minimize_with(&problem, None, &heuristics, &auto, &threads, &mut Unwatched);
    let answer = answer.unwrap();
    let names: Vec<&str> = answer.runs.iter().map(|run| run.heuristic.as_str()).collect();
    assert_eq!(names, ["powers", "varimax"]);
    assert_eq!(answer.strategy, "varimax");
    assert!(answer.solution.objective < answer.solution.history[0].objective);
}

/// Only the makers that the caller names run, from new starts and from the incumbent.
#[test]
fn named_makers_run_alone() {
    let smooth = Quadratic::from_data(data(20, 24, 2).view()).unwrap();
    let named = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        counted(200_000_000).with_makers(names)
    };
    let count = [Penalty::l0(0.05), Penalty::l0(1e-4)];
    let any = [Penalty::l0(0.05), Penalty::l0(1e-4), Penalty::l1(1e-3)];
    let cases = [
        (&["varimax", "path"][..], &any[..]),
        (&["splitting", "varimax", "smoothed"], &any),
        (&["forward"], &count[..1]),
        (&["supports", "splitting"], &count),
    ];
    for (makers, penalty) in cases.into_iter().flat_map(|(makers, all)| all.iter().map(move |one| (makers, one))) {
        let answer = solve(&smooth, penalty, 3, &named(makers), 2);
        let own = |run: &&orthobcd::search::Run| run.heuristic != "polish";
        let runs: Vec<_> = answer.runs.iter().filter(own).collect();
        assert!(runs.iter().all(|run| makers.contains(&&*run.heuristic)), "{makers:?}");
        for maker in makers {
            assert!(runs.iter().any(|run| run.heuristic == *maker), "{maker}");
        }
        let profile = answer.profile.unwrap();
        assert_eq!((profile.rows, profile.components), (24, 3));
        // The rest is what the runs begin with: a rough basis, and bounds on the spectrum.
        let runs: f64 = answer.runs.iter().map(|run| run.work).sum();
        assert!(0.0 < runs && runs < answer.solution.work);
    }
    let signature = Signature::stiefel(24);
    let problem = Problem::new(&smooth, &Penalty::NONNEGATIVE, &signature, 3).unwrap();
    let auto = named(&["luck"]);
    let refused = minimize_auto(&problem, None, &auto, &Threads::serial(), &mut Unwatched);
    assert!(refused.unwrap_err().to_string().contains("luck"));
}

/// The runs of a smaller limit are the first ones of a larger limit, and F is never higher.
#[test]
fn a_limit_cuts_the_sequence() {
    let smooth = Quadratic::from_data(data(30, 40, 2).view()).unwrap();
    for penalty in [Penalty::l0(0.05), Penalty::l1(0.05), Penalty::NONNEGATIVE] {
        let mut before: Option<AutoSolution> = None;
        for work in [1_000_000, 10_000_000, 40_000_000, 160_000_000] {
            let answer = solve(&smooth, &penalty, 3, &counted(work), 1);
            if let Some(before) = &before {
                assert!(answer.solution.objective <= before.solution.objective);
                for (a, b) in before.runs.iter().zip(&answer.runs) {
                    assert_eq!((&a.heuristic, a.objective), (&b.heuristic, b.objective));
                }
            }
            before = Some(answer);
        }
        let last = before.unwrap();
        let again = solve(&smooth, &penalty, 3, &counted(last.solution.work as u64), 3);
        assert_eq!(again.solution.x, last.solution.x);
        assert_eq!(again.solution.work, last.solution.work);
    }
}

/// The same bits with one thread and with two, beside threads that keep every core busy.
#[test]
fn counted_work_gives_the_same_bits_whatever_the_load() {
    let smooth = Quadratic::from_data(data(30, 60, 3).view()).unwrap();
    fn check(smooth: &Quadratic, penalty: &Penalty) {
        let quiet = solve(smooth, penalty, 4, &counted(300_000_000), 1);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let busy = solve(smooth, penalty, 4, &counted(300_000_000), 2);
            stop.store(true, Ordering::Relaxed);
            assert_eq!(quiet.solution.x, busy.solution.x);
            assert_eq!(quiet.solution.work, busy.solution.work);
            assert_eq!(quiet.runs.len(), busy.runs.len());
        });
        assert!(quiet.solution.feasibility < 1e-12);
    }
    check(&smooth, &Penalty::l0(0.01));
    check(&smooth, &Penalty::l1(0.02));
    check(&smooth, &Penalty::NONNEGATIVE);
}

/// What decides here is far from rounding: the search of the problem with its rows in another order, or with cI added
/// to C, is the same step by step, for heuristics that draw nothing.
#[test]
fn the_order_of_the_rows_and_a_constant_do_not_matter() {
    let c = Quadratic::from_data(data(20, 24, 4).view()).unwrap().matrix().to_owned();
    let order: Vec<usize> = (0..24).map(|i| (7 * i + 3) % 24).collect();
    let mut shifted = c.clone();
    shifted.diag_mut().mapv_inplace(|v| v + 2.0);
    let permuted = c.select(Axis(0), &order).select(Axis(1), &order);
    let names = ["path", "varimax"].map(str::to_owned).to_vec();
    let auto = counted(20_000_000).with_makers(names);
    let run = |c: &Array2<f64>| {
        let smooth = Quadratic::new(c.clone(), None, None).unwrap();
        solve(&smooth, &Penalty::l0(0.3), 3, &auto, 1)
    };
    let plain = run(&c);
    let size = plain.solution.objective.abs();
    let support = |x: &Array2<f64>| x.mapv(|v| v != 0.0);
    for (other, constant, order) in [(run(&shifted), 3.0, None), (run(&permuted), 0.0, Some(&order))] {
        for (a, b) in plain.runs.iter().zip(&other.runs) {
            assert_eq!(a.heuristic, b.heuristic);
            assert!((a.objective + constant - b.objective).abs() <= 1e-9 * size, "{} {a:?} {b:?}", a.heuristic);
        }
        let moved = match order {
            Some(order) => plain.solution.x.select(Axis(0), order),
            None => plain.solution.x.clone(),
        };
        // Columns may come in another order.
        let rows = |x: &Array2<f64>| support(x).map_axis(Axis(1), |row| row.iter().filter(|v| **v).count());
        assert_eq!(rows(&moved), rows(&other.solution.x));
    }
}

/// Rows that cannot matter are left out, and nothing is lost: the certificate is that of the whole problem.
#[test]
fn thousands_of_rows_are_searched_on_those_that_matter() {
    let (m, n, r) = (20, 2500, 3);
    let a = data(m, n, 5);
    let largest = a.columns().into_iter().map(|c| c.dot(&c)).fold(0.0f64, f64::max);
    let gram = GramQuadratic::new(DenseColumns::new(a.view()).unwrap(), -1.0, None).unwrap();
    let penalty = Penalty::l0(0.05 * largest);
    let answer = solve(&gram, &penalty, r, &counted(2_000_000_000), 2);
    let profile = answer.profile.unwrap();
    let chosen = profile.chosen.expect("some rows are chosen");
    assert!(chosen < n / 2);
    assert!(answer.solution.feasibility < 1e-12);
    let signature = Signature::stiefel(n);
    let problem = Problem::new(&gram, &penalty, &signature, r).unwrap();
    let value = problem.objective(answer.solution.x.view(), &Threads::serial());
    assert!((value - answer.solution.objective).abs() <= 1e-9 * value.abs());
    let certificate = certify(&problem, answer.solution.x.view(), &Threads::serial()).unwrap();
    assert!(certificate.block2_gap <= 1e-6 * certificate.magnitude, "{}", certificate.block2_gap);
    assert!(matches!(answer.solution.status, Status::MaxWork | Status::Converged));
    // X ≥ 0 is completed on all rows.
    let answer = solve(&gram, &Penalty::NONNEGATIVE, r, &counted(2_000_000_000), 2);
    assert!(answer.solution.x.iter().all(|&v| v >= 0.0));
    assert!(answer.solution.feasibility < 1e-12);
    assert_eq!(answer.profile.unwrap().rows, n);
}
