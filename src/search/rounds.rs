//! Rounds: heuristics run concurrently.

use ndarray::Array2;

use super::candidate::{Candidate, JobResult, polish};
use super::incumbent::Incumbent;
use super::options::Auto;
use super::reduced::Reduced;
use super::tasks::Tasks;
use crate::heuristic::{Heuristic, Known, Oracle, Prepared, Profile, Task};
use crate::limits::{Clock, TaskWork};
use crate::problem::Problem;
use crate::report::Run;
use crate::solver::{Control, Options};
use crate::support;
use crate::threads::Threads;

/// Relative distance from the incumbent within which an improvement is polished.
const PROMISING: f64 = 1e-2;

/// Work charged for every run, for starting its thread and calling the monitor. With few rows this is most of
/// a run.
pub(super) const RUN: f64 = 5e5;

/// Share of a run for the heuristic if its point is then polished.
const HEURISTIC: f64 = 0.7;

/// Bytes for cached columns of a C that is not stored: all columns up to n = 4096.
pub(super) const COLUMNS: usize = 8 * 4096 * 4096;

/// One run of a round.
#[derive(Debug, Clone)]
pub(super) struct Job {
    /// Name of the heuristic, or of the origin of a point that is used unchanged.
    pub(super) name: String,
    /// Index of the heuristic; None: the start itself is the point.
    pub(super) heuristic: Option<usize>,
    pub(super) improve: bool,
    pub(super) polished: bool,
    /// True if the job polishes the point of another job.
    pub(super) polishes: bool,
    /// True if exact pairs descend from the point first.
    pub(super) plain: bool,
    /// Number of the start of the heuristic.
    pub(super) run: usize,
    pub(super) heat: f64,
    pub(super) seed: u64,
    /// Most sweeps of its descents.
    pub(super) sweeps: Option<u64>,
}

impl Job {
    /// Creates a job that uses the start itself as the point.
    pub(super) fn taken(name: &str, polished: bool, polishes: bool) -> Self {
        Self {
            name: name.to_owned(),
            polishes,
            plain: false,
            heuristic: None,
            improve: false,
            polished,
            run: 0,
            heat: 0.0,
            seed: 0,
            sweeps: None,
        }
    }

    /// Returns the name used in reports.
    fn label(&self, heuristics: &[Box<dyn Heuristic>]) -> &'static str {
        match self.heuristic {
            Some(k) => heuristics[k].name(),
            None if self.polishes => "polish",
            None if self.plain => "descent",
            None => "given",
        }
    }

    /// Returns the report of a run from a point of the objective `before`.
    fn report(&self, heuristics: &[Box<dyn Heuristic>], found: &JobResult, before: f64) -> Run {
        Run {
            heuristic: self.label(heuristics).to_owned(),
            improve: self.improve,
            seconds: found.seconds,
            work: found.work,
            objective: found.candidate.objective,
            gain: (before - found.candidate.objective).max(0.0),
        }
    }
}

/// The data shared by the rounds of a search.
pub(super) struct Rounds<'a> {
    /// The given problem, and the one that is searched on the rows that are left.
    given: &'a Problem<'a>,
    pub(super) problem: &'a Problem<'a>,
    pub(super) reduced: Option<&'a Reduced>,
    pub(super) heuristics: &'a [Box<dyn Heuristic>],
    /// Names of the heuristics that the caller chose.
    pub(super) makers: &'a Option<Vec<String>>,
    pub(super) options: &'a Options,
    pub(super) clock: &'a Clock,
    pub(super) threads: &'a Threads,
    oracle: Oracle<'a>,
    pub(super) known: Known<'a>,
    pub(super) profile: Profile,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(
        (given, problem, reduced): (&'a Problem<'a>, &'a Problem<'a>, Option<&'a Reduced>),
        heuristics: &'a [Box<dyn Heuristic>],
        auto: &'a Auto,
        (clock, threads): (&'a Clock, &'a Threads),
        (oracle, known, profile): Prepared<'a>,
    ) -> Self {
        Self {
            given,
            problem,
            reduced,
            heuristics,
            makers: &auto.makers,
            options: &auto.options,
            clock,
            threads,
            oracle,
            known,
            profile,
        }
    }

    /// Returns a point of the given problem, the rows that are left out being zero.
    pub(super) fn on_all_rows(&self, x: Array2<f64>) -> Array2<f64> {
        match self.reduced {
            Some(reduced) => support::on_rows(self.given.smooth.rows(), &reduced.rows, x.view()),
            None => x,
        }
    }

    /// Runs the jobs, each with `slice` of work, and takes their results in order; those after a limit are dropped.
    pub(super) fn run(
        &self,
        incumbent: &mut Incumbent<'_>,
        jobs: &[Job],
        from: &[&Array2<f64>],
        slice: f64,
    ) -> Vec<Option<JobResult>> {
        if jobs.is_empty() || incumbent.status.is_some() {
            return Vec::new();
        }
        let before = incumbent.best.objective;
        let least = before + PROMISING * incumbent.size();
        let mut names: Vec<&str> = jobs.iter().map(|job| job.label(self.heuristics)).collect();
        names.dedup();
        incumbent.monitor.working(&names.join(", "));
        // A job that runs alone uses all threads for its products.
        let (workers, threads) = match jobs.len() > 1 && !self.problem.smooth.is_serial() {
            true => (self.threads.count(), Threads::serial()),
            false => (1, self.threads.clone()),
        };
        let known = incumbent.recorded(&format!("{jobs:?}"), jobs.len());
        let recorded: Vec<bool> = known.iter().map(Option::is_some).collect();
        let tasks = Tasks { known, slice, ..Tasks::new(0, workers) };
        tasks.run(
            incumbent,
            |k, work| {
                let candidate = threads.install(|| self.job(&jobs[k], &threads, from[k], least, work));
                work.spend(RUN);
                candidate.map(|candidate| JobResult { candidate, work: work.spent(), seconds: self.clock.seconds() })
            },
            |incumbent, k, ran| {
                if !recorded[k] {
                    incumbent.keep_result(k, ran);
                }
                match &ran.0 {
                    Some(found) => incumbent.accept(&found.candidate, jobs[k].report(self.heuristics, found, before)),
                    None => Control::Continue,
                }
            },
        )
    }

    /// Runs one job; the point is returned on all rows. Points with F above `polish_below` are not polished. Products may be
    /// divided among `threads`.
    fn job(
        &self,
        job: &Job,
        threads: &Threads,
        from: &Array2<f64>,
        polish_below: f64,
        work: &TaskWork<'_>,
    ) -> Option<Candidate> {
        let oracle = &self.oracle.during(work, threads);
        let restricted = self.reduced.map(|reduced| reduced.restrict(from));
        let from = restricted.as_ref().unwrap_or(from);
        let x = match job.heuristic {
            None => from.clone(),
            Some(k) => self.heuristics[k].run(&Task {
                oracle,
                known: &self.known,
                profile: &self.profile,
                from: job.improve.then_some(from),
                heat: job.heat,
                run: job.run,
                seed: job.seed,
                sweeps: job.sweeps,
                limit: oracle.limit(if job.polished { HEURISTIC } else { 1.0 }),
            })?,
        };
        let name = match job.improve && job.heuristic.is_some() {
            true => format!("{} again", job.name),
            false => job.name.clone(),
        };
        let candidate = Candidate::new(oracle, x, name)?;
        let candidate = match job.plain || job.polished && candidate.objective <= polish_below {
            true => polish(oracle, self.options, candidate, job.sweeps, job.plain),
            false => candidate,
        };
        Some(match self.reduced {
            Some(reduced) => reduced.lift(self.given, candidate, work),
            None => candidate,
        })
    }
}
