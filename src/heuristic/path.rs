//! Path of decreasing λ, from the closed-form optimum of a large λ or from random rows.

use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::oracle::ClockMonitor;
use super::profile::{Kind, Profile};
use super::{Heuristic, Prior, Task};
use crate::continuation::{Stages, follow_path};
use crate::solver::Options;
use crate::threads::Threads;

/// Least and largest further factor by which a path from a given point raises its first λ.
pub(crate) const RAISE: (f64, f64) = (1.5, 3.0);

/// Tolerance of the last stage; the search polishes the result.
const TOLERANCE: f64 = 1e-7;

/// The path from the optimum of a large λ, or from random rows.
pub(super) struct Path {
    pub(super) random: bool,
}

/// Returns distinct random rows of the identity as columns.
fn random_rows(n: usize, r: usize, seed: u64) -> Array2<f64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut rows: Vec<usize> = (0..n).collect();
    let mut x = Array2::zeros((n, r));
    for k in 0..r {
        let other = rng.random_range(k..n);
        rows.swap(k, other);
        x[[rows[k], k]] = 1.0;
    }
    x
}

impl Heuristic for Path {
    fn name(&self) -> &'static str {
        if self.random { "sparse" } else { "path" }
    }

    fn fits(&self, profile: &Profile, improve: bool) -> Option<Prior> {
        let success = match (profile.is_dense(), profile.kind) {
            (true, _) => 0.3,
            (false, Kind::Count) => 0.7,
            (false, _) => 0.5,
        };
        let success = if self.random { 0.5 * success } else { success };
        // Every stage visits the pairs of rows.
        let pairs = (profile.rows * profile.rows * profile.components) as f64;
        let least = 20.0 * pairs / profile.step.max(1.0);
        (!profile.mixed && profile.has_strength && !(improve && self.random))
            .then(|| Prior::new(success, least))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let (n, r) = task.known.basis.rotated.dim();
        let lambda = task.problem().penalty.strength()?;
        let raise = RAISE.0 * RAISE.1.powf(task.heat);
        let lams = [lambda * raise, lambda * raise.sqrt(), lambda];
        let x0 = match task.from {
            Some(best) => Some(best.clone()),
            None => self.random.then(|| {
                let rows = random_rows(n, r, task.seed);
                task.problem().oriented(rows, &Threads::serial())
            }),
        };
        let stages = Stages {
            lams: task.from.map(|_| &lams[..]),
            ..Stages::default()
        };
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
            x0,
            &stages,
            &options,
            &Threads::serial(),
            &mut ClockMonitor(clock),
        )
        .ok()?;
        task.oracle.work.spend(path.solution.work);
        Some(path.solution.x)
    }
}
