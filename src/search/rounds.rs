//! Rounds: heuristics run concurrently, on all rows or on the screened rows.

use ndarray::Array2;

use super::candidate::{Candidate, JobResult, polish};
use super::compact::Compact;
use super::incumbent::Incumbent;
use super::options::Auto;
use super::tasks::{Tasks, run_one};
use crate::heuristic::{Basis, Heuristic, Known, Oracle, Prepared, Profile, Task};
use crate::limits::{Clock, TaskWork};
use crate::objective::QuadraticForm;
use crate::problem::Problem;
use crate::report::Run;
use crate::solver::{Control, Options};
use crate::threads::Threads;

/// Relative distance from the incumbent within which an improvement is polished.
pub(super) const PROMISING: f64 = 1e-2;

/// Work charged for every run, for starting its thread and calling the monitor. With few rows this is most of
/// a run.
const RUN: f64 = 5e5;

/// Relative decrease of F after which rows are screened again.
const NEW_ROWS: f64 = 1e-3;

/// Share of a run for the heuristic if its point is then polished or completed.
const HEURISTIC: f64 = 0.7;

/// Bytes for cached columns of a C that is not stored: all columns up to n = 4096.
pub(super) const COLUMNS: usize = 8 * 4096 * 4096;

/// A problem on all rows or on the screened rows, with its cached data.
pub(super) struct Space<'a> {
    pub(super) oracle: Oracle<'a>,
    pub(super) known: Known<'a>,
    pub(super) profile: Profile,
}

/// One run of a round.
#[derive(Debug, Clone)]
pub(super) struct Job {
    /// Name of the heuristic, or of the origin of a point that is used unchanged.
    pub(super) name: String,
    /// Index of the heuristic; None: the start itself is the point.
    pub(super) heuristic: Option<usize>,
    pub(super) restricted: bool,
    pub(super) improve: bool,
    pub(super) polished: bool,
    /// True if the job polishes the point of another job.
    pub(super) polishes: bool,
    /// True if exact pairs descend from the point first.
    pub(super) plain: bool,
    /// Number of earlier restarts of the heuristic.
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
            restricted: false,
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
            restricted: self.restricted,
            seconds: found.seconds,
            work: found.work,
            objective: found.candidate.objective,
            gain: (before - found.candidate.objective).max(0.0),
        }
    }
}

/// The data shared by the rounds of a search: the problem, its screening, and the work done so far.
pub(super) struct Rounds<'a> {
    pub(super) problem: &'a Problem<'a>,
    pub(super) heuristics: &'a [Box<dyn Heuristic>],
    /// Names of the heuristics that the caller chose.
    pub(super) makers: &'a Option<Vec<String>>,
    pub(super) options: &'a Options,
    pub(super) clock: &'a Clock,
    pub(super) threads: &'a Threads,
    pub(super) whole: Space<'a>,
    pub(super) compact: Option<Compact>,
    /// Profile and basis of the screened rows.
    chosen: Option<(Profile, Basis)>,
    /// F at the point where the rows were screened.
    base: f64,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(
        problem: &'a Problem<'a>,
        heuristics: &'a [Box<dyn Heuristic>],
        auto: &'a Auto,
        (clock, threads): (&'a Clock, &'a Threads),
        (oracle, known, profile): Prepared<'a>,
    ) -> Self {
        Self {
            problem,
            heuristics,
            makers: &auto.makers,
            options: &auto.options,
            clock,
            threads,
            whole: Space { oracle, known, profile },
            compact: None,
            chosen: None,
            base: f64::INFINITY,
        }
    }

    /// Screens the rows at X with F = `value`, unless the screened rows are complete or F has hardly changed.
    pub(super) fn choose(&mut self, x: &Array2<f64>, value: f64, incumbent: &mut Incumbent<'_>) {
        let least = NEW_ROWS * incumbent.size();
        let Some(form) = self.problem.smooth.quadratic() else {
            return;
        };
        if self.is_complete() || value >= self.base - least || incumbent.status.is_some() {
            return;
        }
        self.base = value;
        let (whole, problem, threads) = (&self.whole, self.problem, self.threads);
        let made = run_one(incumbent, 1.0, |work| {
            let oracle = whole.oracle.during(work, threads);
            let go_on = || !work.expired();
            let compact = Compact::new((problem, form), &oracle, &whole.profile, x, &go_on)?;
            let small = compact.problem(problem.components);
            let form: &dyn QuadraticForm = compact.form();
            let (_, known, profile) = Known::definite((&small, form), (None, None), usize::MAX, threads, work)?;
            let basis = known.basis;
            Some((compact, (profile, basis)))
        });
        if let Some((compact, chosen)) = made {
            self.whole.profile.chosen = Some(compact.rows.len());
            (self.compact, self.chosen) = (Some(compact), Some(chosen));
        }
    }

    /// Returns whether rows are screened.
    pub(super) fn is_screened(&self) -> bool {
        self.compact.is_some()
    }

    /// Returns whether rows are screened and no other row can matter.
    pub(super) fn is_complete(&self) -> bool {
        (self.compact.as_ref()).is_some_and(|compact| compact.complete)
    }

    /// Returns the profile of all rows or of the screened rows.
    pub(super) fn profile(&self, restricted: bool) -> &Profile {
        match (restricted, &self.chosen) {
            (true, Some((profile, _))) => profile,
            _ => &self.whole.profile,
        }
    }

    /// Runs the jobs, each with `slice` of work, and takes their results in order; those after a limit are dropped.
    pub(super) fn run(
        &mut self,
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
        let preparation = TaskWork::new(self.clock, f64::INFINITY);
        let small = self.compact.as_ref().map(|c| c.problem(self.problem.components));
        let needed = jobs.iter().any(|job| job.restricted);
        let space = match (&small, &self.compact, &self.chosen) {
            (Some(small), Some(compact), Some((profile, basis))) if needed => {
                let eye = Array2::eye(self.problem.components);
                let form: &dyn QuadraticForm = compact.form();
                let oracle = Oracle::new((small, form), eye, basis.spectrum, &preparation);
                Some(Space { known: Known::again(&oracle, basis, profile), oracle, profile: profile.clone() })
            }
            _ => None,
        };
        let mut names: Vec<&str> = jobs.iter().map(|job| job.label(self.heuristics)).collect();
        names.dedup();
        incumbent.monitor.working(&names.join(", "));
        let (this, space) = (&*self, &space);
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
                let spaces = (space.as_ref(), &threads);
                let candidate = threads.install(|| this.job(&jobs[k], spaces, from[k], least, work));
                work.spend(RUN);
                candidate.map(|candidate| JobResult { candidate, work: work.spent(), seconds: this.clock.seconds() })
            },
            |incumbent, k, ran| {
                if !recorded[k] {
                    incumbent.keep_result(k, ran);
                }
                match &ran.0 {
                    Some(found) => incumbent.accept(&found.candidate, jobs[k].report(this.heuristics, found, before)),
                    None => Control::Continue,
                }
            },
        )
    }

    /// Runs one job; the point is returned on all rows. Products may be divided among `threads`.
    fn job(
        &self,
        job: &Job,
        (small, threads): (Option<&Space<'_>>, &Threads),
        from: &Array2<f64>,
        polish_below: f64,
        work: &TaskWork<'_>,
    ) -> Option<Candidate> {
        let whole = self.whole.oracle.during(work, threads);
        let restricted = match (job.restricted, &self.compact, small) {
            (true, Some(compact), Some(space)) => Some((compact, space)),
            _ => None,
        };
        let Some((compact, space)) = restricted else {
            return self.point(job, &self.whole, &whole, from, polish_below);
        };
        let oracle = space.oracle.during(work, threads);
        let from = compact.restrict(from);
        let candidate = self.point(job, space, &oracle, &from, f64::INFINITY)?;
        let lifted = compact.lift(&whole, &candidate.x);
        let mut lifted = Candidate::new(&whole, lifted, candidate.name)?;
        (lifted.iterations, lifted.updates) = (candidate.iterations, candidate.updates);
        Some(lifted)
    }

    /// Runs one job in one space; points with F above `polish_below` are not polished.
    fn point(
        &self,
        job: &Job,
        space: &Space<'_>,
        oracle: &Oracle<'_>,
        from: &Array2<f64>,
        polish_below: f64,
    ) -> Option<Candidate> {
        let x = match job.heuristic {
            None => from.clone(),
            Some(k) => self.heuristics[k].run(&Task {
                oracle,
                known: &space.known,
                profile: &space.profile,
                from: job.improve.then_some(from),
                heat: job.heat,
                run: job.run,
                seed: job.seed,
                sweeps: job.sweeps,
                limit: oracle.limit(if job.polished || job.restricted { HEURISTIC } else { 1.0 }),
            })?,
        };
        let name = match job.improve && job.heuristic.is_some() {
            true => format!("{} again", job.name),
            false => job.name.clone(),
        };
        let candidate = Candidate::new(oracle, x, name)?;
        Some(match job.plain || job.polished && candidate.objective <= polish_below {
            true => polish(oracle, self.options, candidate, job.sweeps, job.plain),
            false => candidate,
        })
    }
}
