//! Points with few nonzeros that need no iterations: [openings](crate::support::opening) for several limits.

use ndarray::Array2;

use super::profile::{Kind, Profile};
use super::{Heuristic, LEAST, Prior, Task};
use crate::limits::TaskWork;
use crate::problem::{Cardinality, Sparsity};
use crate::support::opening::{self, LARGEST};
use crate::support::{Axes, ColumnModel, Powers, Rules, STAGES, weights};

/// Factor between one number of nonzeros and the next.
const FACTOR: usize = 2;

/// Work, in multiply-adds, after which no further number of nonzeros is tried.
const WORK: f64 = 2e8;

/// The best opening over a ladder of numbers of nonzeros.
pub(super) struct Opening;

impl Heuristic for Opening {
    fn name(&self) -> &'static str {
        "opening"
    }

    fn fits(&self, profile: &Profile, improve: bool) -> Option<Prior> {
        let fits = profile.quadratic && profile.is_sparse() && !profile.mixed && !improve;
        // Few nonzeros seldom help if solutions are dense.
        let dense = profile.kind == Kind::Sparse && profile.is_dense();
        let least = match dense && profile.is_costly() {
            true => LEAST,
            false => 0.0,
        };
        fits.then(|| Prior::new(0.0, least))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let oracle = task.oracle;
        oracle.work.part(WORK, |work| best_point(task, work))
    }
}

/// Returns the best point of all numbers of nonzeros.
fn best_point(task: &Task<'_>, work: &TaskWork<'_>) -> Option<Array2<f64>> {
    let (oracle, basis) = (task.oracle, &task.known.basis);
    let (n, r) = basis.spectral.dim();
    let rules = |count| Rules::new(&Sparsity::new(Cardinality::Total(count)), n, r).ok();
    let form = oracle.form?;
    let weights = weights(form, r).ok()?;
    let mut model = ColumnModel::new(form, rules(r)?, weights, basis.spectrum, work)?;
    let axes = Axes { vectors: basis.spectral.clone(), spectrum: basis.spectrum, exact: None };
    let directions = axes.directions(form, work)?;
    let mut best: Option<(f64, Array2<f64>)> = None;
    let mut is_lower = |x: Array2<f64>| {
        let value = oracle.objective(&x);
        let lower = best.as_ref().is_none_or(|best| value < best.0);
        if lower {
            best = Some((value, x));
        }
        lower
    };
    let (mut count, mut chosen) = (r, r);
    while count <= n * r && !work.expired() {
        model.rules = rules(count)?;
        for rotated in [&basis.rotated, &basis.spectral] {
            let opening = opening::Opening { model: &model, rotated, directions: &directions, work };
            if opening.point(LARGEST).is_some_and(&mut is_lower) {
                chosen = count;
            }
        }
        count *= FACTOR;
    }
    // Truncated powers take more work, for one number of nonzeros only.
    model.rules = rules(chosen.min(n))?;
    let powers = Powers { model: &model, work, price: 0.0 };
    if let Some(point) = powers.point(&directions, STAGES[0]) {
        is_lower(point.dense(n));
    }
    best.map(|best| best.1)
}
