//! Points that heuristics return: checked for feasibility, and polished by alternating exact pairs and
//! tangent steps.

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::checkpoint::nonzeros;
use crate::error::Error;
use crate::heuristic::{ClockMonitor, Oracle, TANGENT_STEPS, tangent};
use crate::linalg::square;
use crate::manifold::{drift, project_onto_pattern};
use crate::numerics;
use crate::pair::Recession;
use crate::solver::{Options, Solution, Status, into_domain, minimize};
use crate::start;
use crate::threads::Threads;

/// A feasible point and its origin. [`Candidate::new`] checks that all entries are finite and that the point
/// is feasible to rounding, and evaluates F anew. Only sound candidates are written to a checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Candidate {
    #[serde(with = "nonzeros")]
    pub(super) x: Array2<f64>,
    pub(super) objective: f64,
    pub(super) smooth: f64,
    pub(super) penalty: f64,
    pub(super) feasibility: f64,
    pub(super) name: String,
    pub(super) iterations: u64,
    pub(super) updates: u64,
    /// True if neither exact pairs nor tangent steps lower F any further.
    pub(super) stationary: bool,
    /// True if the noise of f hides whether F can be lowered.
    #[serde(skip)]
    pub(super) noisy: bool,
    /// Status of a descent that cannot converge, and the pair along which F falls without bound.
    #[serde(skip)]
    pub(super) failed: Option<(Status, Option<Recession>)>,
    /// Error in the objective found by a descent.
    #[serde(skip)]
    pub(super) error: Option<Error>,
}

impl Candidate {
    /// Checks the point of a heuristic; None if the point is infeasible or not finite, or if the time ran out
    /// during the check.
    pub(super) fn new(oracle: &Oracle<'_>, x: Array2<f64>, name: String) -> Option<Self> {
        let problem = oracle.problem;
        let (x, feasibility) = feasible(oracle, x)?;
        let x = problem.oriented(x, &oracle.serial);
        let smooth = oracle.smooth_value(&x)?;
        let penalty = problem.penalty.value(x.view());
        let objective = smooth + penalty;
        let values = (smooth, penalty, feasibility);
        objective.is_finite().then(|| Self::valued(x, values, name))
    }

    /// Creates a point with f, h and its infeasibility.
    pub(super) fn valued(x: Array2<f64>, (smooth, penalty, feasibility): (f64, f64, f64), name: String) -> Self {
        Self {
            objective: smooth + penalty,
            smooth,
            penalty,
            feasibility,
            x,
            name,
            iterations: 0,
            updates: 0,
            stationary: false,
            noisy: false,
            failed: None,
            error: None,
        }
    }

    /// Returns true unless a descent of the point failed. Failed points are not recorded.
    pub(super) fn is_sound(&self) -> bool {
        self.failed.is_none() && self.error.is_none()
    }

    /// Adds the counts of a descent, and takes its point if F is no higher.
    pub(super) fn take(&mut self, solution: &Solution) {
        self.iterations += solution.iterations;
        self.updates += solution.updates;
        if solution.objective <= self.objective {
            self.x.clone_from(&solution.x);
            self.objective = solution.objective;
            self.smooth = solution.smooth_value;
            self.penalty = solution.penalty_value;
            self.feasibility = solution.feasibility;
        }
    }

    /// Takes the point of another candidate if its F is lower.
    fn take_lower(&mut self, other: Self) {
        if other.objective < self.objective {
            *self = Self {
                name: std::mem::take(&mut self.name),
                iterations: self.iterations,
                updates: self.updates,
                ..other
            };
        }
    }
}

/// The result of a job, its work and its time.
#[derive(Serialize, Deserialize)]
pub(super) struct JobResult {
    pub(super) candidate: Candidate,
    pub(super) work: f64,
    pub(super) seconds: f64,
}

/// The result of a job, if it has one, and its work.
pub(super) type Ran = (Option<JobResult>, f64);

/// Returns the point, corrected at most once, and its infeasibility; None if the point cannot be accepted.
fn feasible(oracle: &Oracle<'_>, x: Array2<f64>) -> Option<(Array2<f64>, f64)> {
    let (problem, manifold) = (oracle.problem, &oracle.manifold);
    let finite = |x: &Array2<f64>| x.iter().all(|v| v.is_finite());
    let nonnegative = problem.penalty.nonnegative();
    let negative = |x: &Array2<f64>| nonnegative && x.iter().any(|&v| v < 0.0);
    // Nonnegative orthonormal columns share no row; gradient steps leave rounding errors there.
    let shared = |x: &Array2<f64>| {
        let crowded = |row: ndarray::ArrayView1<'_, f64>| row.iter().filter(|v| **v != 0.0).count() > 1;
        nonnegative && x.outer_iter().any(crowded)
    };
    if !finite(&x) || manifold.refuses(&x, 2) {
        return None;
    }
    let definite = problem.signature.is_definite();
    let x = if definite && (negative(&x) || shared(&x)) { start::round_to_partition(x.view()) } else { x };
    let gap = |x: &Array2<f64>| drift(x.view(), manifold.signature, manifold.k.view());
    let scale = if definite { 1.0 } else { square(&x).max(1.0) };
    let (x, drifted) = match gap(&x) {
        drifted if drifted <= numerics::DRIFT * scale => (x, drifted),
        drifted => {
            let corrected =
                manifold.restore(&x).unwrap_or_else(|| project_onto_pattern(&x, manifold.signature, manifold.k.view()));
            let after = gap(&corrected);
            if after < drifted && finite(&corrected) && !negative(&corrected) {
                (corrected, after)
            } else {
                (x, drifted)
            }
        }
    };
    let (x, drifted) = match definite && !nonnegative && problem.penalty.infeasibility(x.view()) > 0.0 {
        true => {
            let (options, watch) = (oracle.limited(&Options::default()), &mut ClockMonitor(oracle.work.clock));
            let (x, work) = into_domain(problem, x, &options, &oracle.serial, watch);
            oracle.work.spend(work);
            let drifted = gap(&x);
            (x, drifted)
        }
        false => (x, drifted),
    };
    let feasibility = drifted + problem.penalty.infeasibility(x.view());
    (feasibility <= numerics::FEASIBLE * scale).then_some((x, feasibility))
}

/// Returns whether a tangent step fits in the remaining work; with tens of thousands of rows one step takes
/// seconds.
fn affordable(oracle: &Oracle<'_>) -> bool {
    tangent::step_work(oracle.rows(), oracle.columns()) <= oracle.work.left()
}

/// Alternates exact pairs and tangent steps until neither lowers F. Pairs come first if the signature is
/// mixed or `plain` is set; with `plain`, these pairs descend until all pairs are verified.
pub(super) fn polish(
    oracle: &Oracle<'_>,
    options: &Options,
    from: Candidate,
    sweeps: Option<u64>,
    plain: bool,
) -> Candidate {
    /// Largest number of rounds of tangent steps and exact pairs.
    const ROUNDS: usize = 12;
    let problem = oracle.problem;
    let mut best = from;
    let mut done = 0;
    // A verification costs a sweep even if no pair moves, so it waits until nothing else lowers F.
    let mut verify = plain;
    for round in 0..ROUNDS {
        let before = best.objective;
        let mut rest = false;
        let definite = problem.signature.is_definite();
        if (round > 0 || definite && !plain) && (!definite || affordable(oracle)) {
            let x = best.x.clone();
            let descent = tangent::descend(oracle, x, TANGENT_STEPS, oracle.limit(1.0));
            rest = descent.stalled;
            if descent.objective < best.objective
                && let Some(lower) = Candidate::new(oracle, descent.x, String::new())
            {
                best.take_lower(lower);
            }
        }
        let options =
            Options { max_sweeps: sweeps.map(|limit| limit.saturating_sub(done)), verify, ..oracle.limited(options) };
        let serial = Threads::serial();
        let watch = &mut ClockMonitor(oracle.work.clock);
        let solution = match minimize(problem, best.x.clone(), &options, &serial, watch) {
            Ok(solution) => solution,
            Err(error) => {
                best.error = Some(error);
                break;
            }
        };
        oracle.end_if_cut(solution.status);
        done += solution.sweeps;
        oracle.work.spend(solution.work);
        best.take(&solution);
        if matches!(solution.status, Status::Unbounded | Status::Diverged | Status::Contradiction) {
            best.failed = Some((solution.status, solution.recession));
        }
        if solution.status == Status::Noise {
            (best.stationary, best.noisy) = (true, true);
        }
        if !matches!(solution.status, Status::Converged | Status::Target) {
            break;
        }
        let size = oracle.magnitude(best.smooth, best.penalty);
        if rest && before - best.objective <= options.tol * size {
            if verify {
                best.stationary = rest;
                break;
            }
            verify = true;
        }
    }
    best
}
