//! Alternates a search for a point with a search for a lower bound, until the two values meet.

use std::time::Instant;

use ndarray::Array2;

use super::bound::{Bound, BoundOptions, Restriction, Search, SearchLimits};
use crate::continuation::Relay;
use crate::error::Result;
use crate::limits::Clock;
use crate::objective::QuadraticForm;
use crate::pool;
use crate::solver::{Monitor, Options, Record, Solution, Status};
use crate::threads::Threads;

/// Share of the limits on time and work for each search in the first round; it doubles in each later round.
const FIRST: f64 = 1.0 / 32.0;

/// Minimises by `search` until its point is proved: F less a lower bound is at most `gap_tol` times the
/// [magnitude](crate::Problem::magnitude) of F.
///
/// Each round calls `search` with the incumbent (none in the first round), the rows that every point as good
/// has [zero](Bound::excluded), and options. These hold a share of the limits on time and work, a seed of the
/// round, and as target the largest F that would be proved. The round then spends an equal share on the
/// search of [`lower_bound`](super::lower_bound), which continues from round to round. Without limits each
/// search runs once, to its end. The result is the incumbent with the history of all rounds, and the bound.
/// Its status is [`Status::Proved`], or the reason why the search ended without a proof. Without a time limit
/// the result depends on the arguments alone if that of `search` does.
///
/// # Errors
/// If `lower_bound` rejects the problem, `gap_tol` is negative or not a number, or `search` fails.
///
/// ```
/// use ndarray::array;
/// use orthobcd::certificate::{Restriction, minimize_proved};
/// use orthobcd::penalty::Penalty;
/// use orthobcd::{
///     Auto, Cardinality, Limit, Options, Problem, Quadratic, Signature, Sparsity, Status, Threads, Unwatched, minimize_auto,
/// };
///
/// let smooth = Quadratic::new(array![[-3.0, 0.5, 0.1], [0.5, -2.0, 0.0], [0.1, 0.0, -1.0]], None, None)?;
/// let signature = Signature::stiefel(3);
/// let limit = Limit::Entries(Sparsity::new(Cardinality::Total(2)));
/// let problem = Problem::new(&smooth, &Penalty::NONE, &signature, 1)?.with_limit(&limit)?;
/// let restriction = Restriction::of(&problem).expect("a limit");
/// let (options, threads) = (Options::default().with_max_work(10_000_000_000), Threads::serial());
/// let (found, bound) = minimize_proved((&smooth, 1), &restriction, 1e-3, &options, &threads, &mut Unwatched, |x0, _, options, monitor| {
///     let auto = Auto::default().with_options(options.clone());
///     Ok(minimize_auto(&problem, x0, &auto, &threads, monitor)?.solution)
/// })?;
/// assert_eq!(found.status, Status::Proved);
/// assert!(bound.gap <= 1e-3 && found.objective >= bound.value);
/// # Ok::<(), orthobcd::Error>(())
/// ```
pub fn minimize_proved(
    (form, r): (&dyn QuadraticForm, usize),
    restriction: &Restriction,
    gap_tol: f64,
    options: &Options,
    threads: &Threads,
    monitor: &mut dyn Monitor,
    mut search: impl FnMut(Option<Array2<f64>>, &[usize], &Options, &mut dyn Monitor) -> Result<Solution>,
) -> Result<(Solution, Bound)> {
    let goal = BoundOptions { gap_tol, ..BoundOptions::new(0.0, 0.0) };
    goal.check()?;
    let diagonal = form.diagonal();
    let mut proof = Proof {
        options,
        goal,
        started: Instant::now(),
        constant: 0.5 * (diagonal.iter().sum::<f64>() / diagonal.len() as f64) * r as f64,
        bound: Search::new(form, r, restriction)?,
        threads,
        monitor,
    };
    let limited = options.max_time.is_some() || options.max_work.is_some();
    let (mut share, mut round) = (FIRST, 0);
    let mut best = proof.seek(None, (share, round), &mut search)?;
    while !proof.is_over(&best) {
        proof.prove(&mut best, share);
        if proof.is_over(&best) || !limited || share >= 1.0 {
            break;
        }
        (share, round) = (2.0 * share, round + 1);
        best = proof.seek(Some(best), (share, round), &mut search)?;
    }
    Ok(proof.finish(best))
}

/// State of both searches between two rounds.
struct Proof<'a> {
    options: &'a Options,
    /// The options of the bound, with the incumbent's F.
    goal: BoundOptions,
    started: Instant,
    /// The part of f that is constant on the constraint.
    constant: f64,
    bound: Search<'a>,
    threads: &'a Threads,
    monitor: &'a mut dyn Monitor,
}

impl Proof<'_> {
    /// Runs `search` from the incumbent, within the share of this round; returns the new incumbent.
    fn seek(
        &mut self,
        best: Option<Solution>,
        (share, round): (f64, u64),
        search: &mut impl FnMut(Option<Array2<f64>>, &[usize], &Options, &mut dyn Monitor) -> Result<Solution>,
    ) -> Result<Solution> {
        let (max_time, max_work) = self.left(best.as_ref(), share, 0.5);
        let options = Options {
            max_time,
            max_work,
            target: Some(self.target()),
            seed: match round {
                0 => self.options.seed,
                _ => pool::decorrelated(self.options.seed, round),
            },
            ..self.options.clone()
        };
        let seconds = self.started.elapsed().as_secs_f64();
        let mut relay = Relay {
            monitor: &mut *self.monitor,
            seconds,
            iterations: best.as_ref().map_or(0, |best| best.iterations),
            most: best.as_ref().map_or(f64::INFINITY, |best| best.objective),
            stopped: false,
        };
        let from = best.as_ref().map(|best| best.x.clone());
        let found = search(from, &self.bound.best.excluded, &options, &mut relay)?;
        let best = match best {
            Some(best) => joined(best, found, seconds),
            None => found,
        };
        self.goal.objective = best.objective;
        self.goal.magnitude = (best.smooth_value - self.constant).abs() + best.penalty_value.abs();
        Ok(best)
    }

    /// Continues the search for a bound, within the share of this round.
    fn prove(&mut self, best: &mut Solution, share: f64) {
        let (max_time, max_work) = self.left(Some(best), share, 1.0);
        let clock = Clock::new(Instant::now(), max_time);
        let limits = SearchLimits {
            clock: &clock,
            threads: self.threads,
            work: max_work.map_or(f64::INFINITY, |work| self.bound.work + work as f64),
        };
        let mut relay =
            Relay { monitor: &mut *self.monitor, seconds: 0.0, iterations: 0, most: f64::INFINITY, stopped: false };
        self.bound.advance_watched(&self.goal, &limits, &mut relay);
        if relay.stopped {
            best.status = Status::Interrupted;
        }
    }

    /// Returns a `share` of the limits on seconds and work, but at most the part `most` of the rest.
    fn left(&self, best: Option<&Solution>, share: f64, most: f64) -> (Option<f64>, Option<u64>) {
        let part = |limit: f64, spent: f64| (share * limit).min(most * (limit - spent)).max(0.0);
        let work = self.bound.work + best.map_or(0.0, |best| best.work);
        let seconds = self.started.elapsed().as_secs_f64();
        let (time, most_work) = (self.options.max_time, self.options.max_work);
        (time.map(|limit| part(limit, seconds)), most_work.map(|limit| part(limit as f64, work) as u64))
    }

    /// Returns whether the target is reached, or no further round can improve the incumbent or the bound.
    fn is_over(&self, best: &Solution) -> bool {
        let ended = matches!(best.status, Status::Interrupted | Status::Unbounded);
        let settled = self.bound.over && best.status == Status::Converged;
        ended || settled || self.is_proved() || self.is_aimed()
    }

    /// Returns the F at which a search may end: the target of the options, or the largest F that is proved.
    fn target(&self) -> f64 {
        // The magnitude of F is at least |F − constant|.
        let (tol, lower) = (self.goal.gap_tol, self.bound.best.value - self.constant);
        let proved = match lower {
            lower if lower < 0.0 => lower / (1.0 + tol),
            _ if tol < 1.0 => lower / (1.0 - tol),
            _ => f64::INFINITY,
        } + self.constant;
        self.options.target.map_or(proved, |target| target.max(proved))
    }

    fn is_proved(&self) -> bool {
        self.bound.best.value >= self.bound.goal(&self.goal)
    }

    fn is_aimed(&self) -> bool {
        (self.options.target).is_some_and(|target| self.goal.objective <= target)
    }

    /// Returns the status of the limit that ended both searches.
    fn limit_given(&self) -> Status {
        match (self.options.max_time, self.options.max_work, self.options.max_sweeps) {
            (Some(_), None, None) => Status::MaxTime,
            (_, None, Some(_)) => Status::MaxSweeps,
            _ => Status::MaxWork,
        }
    }

    /// Returns the incumbent, with the reason why the solve ended as status, and the bound.
    fn finish(self, mut best: Solution) -> (Solution, Bound) {
        let seconds = self.started.elapsed().as_secs_f64();
        best.status = match best.status {
            Status::Interrupted | Status::Unbounded => best.status,
            _ if self.is_aimed() => Status::Target,
            _ if self.is_proved() => Status::Proved,
            _ if self.options.max_time.is_some_and(|limit| seconds >= limit) => Status::MaxTime,
            // The status is that of a limit of the last round, not of the options.
            Status::MaxTime | Status::MaxSweeps | Status::MaxWork | Status::Target => self.limit_given(),
            status => status,
        };
        best.work += self.bound.work;
        best.seconds = seconds;
        if let Some(&last) = best.history.last() {
            best.history.push(Record { seconds, ..last });
        }
        (best, self.bound.finish(&self.goal))
    }
}

/// Returns the better of two solutions, with the history and the effort of both; `found` began at `seconds`.
fn joined(best: Solution, found: Solution, seconds: f64) -> Solution {
    let mut history = best.history;
    for row in &found.history {
        if history.last().is_none_or(|last| row.objective < last.objective) {
            history.push(Record {
                seconds: row.seconds + seconds,
                iterations: row.iterations + best.iterations,
                ..*row
            });
        }
    }
    let (status, recession) = (found.status, found.recession);
    let (iterations, sweeps) = (best.iterations + found.iterations, best.sweeps + found.sweeps);
    let (updates, work) = (best.updates + found.updates, best.work + found.work);
    let better = if found.objective < best.objective { found } else { Solution { history: Vec::new(), ..best } };
    Solution { status, recession, iterations, sweeps, updates, work, history, ..better }
}

#[cfg(test)]
mod tests;
