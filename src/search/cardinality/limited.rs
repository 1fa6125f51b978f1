//! The search under a limit: first points, then [chains](crate::search::chains).

use ndarray::Array2;

use super::powered::powered;
use crate::error::Result;
use crate::limits::{Clock, TaskWork};
use crate::objective::{QuadraticForm, default_work};
use crate::problem::Problem;
use crate::report::AutoSolution;
use crate::search::chains::{ChainSearch, IDLE_WORK, SearchSpace};
use crate::search::incumbent::{Incumbent, Watched};
use crate::search::options::Auto;
use crate::search::sequence::Sequence;
use crate::search::tasks::{Tasks, counted, run_one};
use crate::solver::{Options, Status};
use crate::threads::Threads;

/// Name of a point that needs no search.
const OPENING: &str = "opening";

/// Number of starts among which those of chosen makers are.
const STARTS: usize = 1 << 10;

/// Least and largest work of a search with an effort of 1, in multiply-adds.
const WORK: (f64, f64) = (1.5e10, 2.5e10);

/// Part of its work that a step before the first round counts, so that small work limits have the first points.
const FIRST_PART: f64 = 1.0 / 256.0;

/// Input of [`searched`] for both kinds of limits.
pub(super) struct Limited<'a> {
    pub(super) clock: &'a Clock,
    pub(super) problem: &'a Problem<'a>,
    pub(super) form: &'a dyn QuadraticForm,
    pub(super) auto: &'a Auto,
    pub(super) threads: &'a Threads,
}

/// Searches the space that `prepared` returns: from the first points, those of a truncated power method,
/// whose steps end in the point near Y that `truncated` returns, and the points that need no search.
///
/// `first` are feasible points that need no work; the first one has a nonzero for each column.
pub(super) fn searched<W: SearchSpace + Send>(
    limited: &Limited<'_>,
    first: Vec<Array2<f64>>,
    truncated: impl Fn(&Array2<f64>) -> Option<Array2<f64>>,
    prepared: impl Fn(&TaskWork<'_>) -> Option<W> + Sync,
    (prover, monitor): Watched<'_>,
) -> Result<AutoSolution> {
    let (options, threads) = (&limited.auto.options, limited.threads);
    let clock = limited.clock;
    let mut points = first.into_iter();
    let first = points.next().unwrap_or_default();
    let own = own(options, limited.form, limited.problem.components);
    let mut incumbent =
        Incumbent::new(limited.problem, limited.auto, clock, first.clone(), prover, monitor).ending_at(own);
    for point in points {
        incumbent.accept_lower(point, 0.0, OPENING);
    }
    if options.max_sweeps == Some(0) {
        incumbent.status.get_or_insert(Status::MaxSweeps);
    }
    if incumbent.status.is_some() || incumbent.is_spent() {
        return incumbent.end_with(Status::MaxWork);
    }
    // The first point comes whatever the limits are.
    let work = TaskWork::new(clock, f64::INFINITY);
    let best = powered(limited.problem, first, threads, &work, truncated);
    incumbent.accept_lower(best, 0.0, OPENING);
    incumbent.spent += counted(FIRST_PART, &work);
    if incumbent.is_over() {
        return incumbent.finish();
    }
    let Some(mut space) = run_one(&mut incumbent, FIRST_PART, prepared) else {
        return incumbent.end_with(Status::MaxTime);
    };
    let mut points = Vec::new();
    // The points take as much work as a whole search at most.
    let tasks = Tasks { part: FIRST_PART, most: FIRST_PART * own, ..Tasks::new(W::POINTS, threads.count()) };
    tasks.run(
        &mut incumbent,
        |k, work| (!work.expired()).then(|| space.point(k, work)).flatten(),
        |incumbent, _, (point, _)| {
            if let Some(point) = point {
                points.extend(accepted(&space, point, incumbent));
            }
            incumbent.poll()
        },
    );
    if incumbent.is_over() {
        return incumbent.finish();
    }
    // The search ends by itself after less work where the first points took much.
    let whole = incumbent.spent / FIRST_PART;
    incumbent.own = (incumbent.own - whole).max(incumbent.spent + options.effort * IDLE_WORK);
    space.begin_from(points);
    let makers = limited.auto.makers.iter().flatten();
    let makers: Vec<&str> = makers.map(String::as_str).collect();
    let chosen: Vec<usize> = (0..STARTS).filter(|&number| makers.contains(&space.name(number))).collect();
    if chosen.is_empty() && !makers.is_empty() {
        return incumbent.end_with(Status::Converged);
    }
    let search = ChainSearch { bound: space.bound(incumbent.best.objective), space, options, chosen, threads };
    search.begun(&mut incumbent).run();
    incumbent.finish()
}

/// Accepts a point that needs no search, and where it is the lowest so far, with as many nonzeros as the limit allows and
/// after a few moves; returns both.
fn accepted<W: SearchSpace>(space: &W, point: &W::Point, incumbent: &mut Incumbent<'_>) -> Vec<W::Point> {
    let mut points = vec![point.clone()];
    if incumbent.accept_lower(space.matrix(point), 0.0, OPENING) {
        let work = TaskWork::ending(incumbent.clock, f64::INFINITY, incumbent.end() / FIRST_PART);
        let improved = space.improved(point, &work);
        // What the clock cut does not count, nor what comes after it.
        if !incumbent.clock.expired() && incumbent.charge(counted(FIRST_PART, &work)) {
            if let Some(improved) = improved {
                incumbent.accept_lower(space.matrix(&improved), 0.0, OPENING);
                points.push(improved);
            }
        } else {
            incumbent.is_over();
        }
    }
    points
}

/// Returns the work after which a search ends by itself.
fn own(options: &Options, form: &dyn QuadraticForm, r: usize) -> f64 {
    options.effort * default_work(form, r).clamp(WORK.0, WORK.1)
}
