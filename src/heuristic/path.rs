//! Path of decreasing λ from the closed-form optimum of a large λ.

use ndarray::Array2;

use super::oracle::ClockMonitor;
use super::profile::Profile;
use super::{Heuristic, LEAST, POSSIBLE, Prior, Task, UNLIKELY};
use crate::continuation::{Stages, follow_path};
use crate::solver::Options;
use crate::threads::Threads;

/// Least and largest further factor by which a path from a given point raises its first λ.
const RAISE: (f64, f64) = (1.5, 3.0);

/// Tolerance of the last stage; the search polishes the result.
const TOLERANCE: f64 = 1e-7;

/// Evaluations of f at the start and the end of a stage.
const EVALUATIONS: f64 = 5.0;

/// The path from the optimum of a large λ.
pub(super) struct Path;

impl Heuristic for Path {
    fn name(&self) -> &'static str {
        "path"
    }

    fn fits(&self, profile: &Profile, _: bool) -> Option<Prior> {
        let success = if profile.is_dense() { UNLIKELY } else { POSSIBLE };
        // Every stage visits the pairs of rows.
        let pairs = (profile.rows * profile.rows * profile.components) as f64;
        let least = LEAST * pairs / profile.step.max(1.0);
        (!profile.mixed && profile.has_strength).then(|| Prior::new(success, least))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let lambda = task.problem().penalty.strength()?;
        let raise = RAISE.0 * RAISE.1.powf(task.heat);
        let lams = [lambda * raise, lambda * raise.sqrt(), lambda];
        let stages = Stages { lams: task.from.map(|_| &lams[..]), ..Stages::default() };
        let options = Options {
            tol: TOLERANCE,
            verify: false,
            seed: task.seed,
            max_sweeps: task.sweeps,
            ..task.oracle.limited(&Options::default())
        };
        let clock = task.oracle.work.clock;
        let path = follow_path(
            task.problem(),
            task.from.cloned(),
            &stages,
            &options,
            &Threads::serial(),
            &mut ClockMonitor(clock),
        )
        .ok()?;
        task.oracle.end_if_cut(path.solution.status);
        let values = EVALUATIONS * path.path.len() as f64 * task.oracle.product_work();
        task.oracle.work.spend(path.solution.work + values);
        Some(path.solution.x)
    }
}
