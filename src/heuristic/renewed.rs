//! Random columns in place of some columns of the incumbent, for a nonquadratic f.
//!
//! Such an f may have separate optima for each column: with −‖AX‖₄⁴ every column is near one of many
//! directions, and no small step leads from one direction to another. Random directions orthogonal to the
//! kept columns replace the others, all columns descend, and the best result is kept: iterated local search.

use ndarray::{Array2, Axis};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::profile::{Kind, Profile};
use super::sharpen::TANGENT_STEPS;
use super::{Heuristic, LEAST_STAGED, POSSIBLE, Prior, Task, smoothed, tangent};
use crate::linalg::orthonormal_factor;

/// Largest share of the columns that is replaced.
const SHARE: f64 = 0.5;

/// Returns X with `count` random columns replaced by random directions orthogonal to the others.
fn renewed(x: &Array2<f64>, count: usize, rng: &mut Xoshiro256PlusPlus) -> Array2<f64> {
    let (n, r) = x.dim();
    let mut order: Vec<usize> = (0..r).collect();
    order.shuffle(rng);
    // A QR decomposition keeps the leading columns.
    let mut turned = x.select(Axis(1), &order);
    for k in r - count.min(r)..r {
        for i in 0..n {
            turned[[i, k]] = StandardNormal.sample(rng);
        }
    }
    let basis = orthonormal_factor(turned.view());
    let mut out = x.clone();
    for (k, &column) in order.iter().enumerate().skip(r - count.min(r)) {
        out.column_mut(column).assign(&basis.column(k));
    }
    out
}

/// Random columns in place of some.
pub(super) struct Renewed;

impl Heuristic for Renewed {
    fn name(&self) -> &'static str {
        "renewed"
    }

    fn fits(&self, profile: &Profile, improve: bool) -> Option<Prior> {
        let fits = !profile.quadratic && !profile.mixed && profile.kind != Kind::Nonnegative;
        (improve && fits).then(|| Prior::new(POSSIBLE, LEAST_STAGED))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let best = task.from?;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(task.seed);
        let most = ((SHARE * task.heat * best.ncols() as f64) as usize).max(1);
        if task.profile.kind == Kind::Count {
            let x = renewed(best, rng.random_range(1..=most), &mut rng);
            return Some(smoothed::descended(task, x, 1.0));
        }
        let mut lowest = (f64::INFINITY, best.clone());
        while task.limit.progress() < 1.0 {
            let x = renewed(&lowest.1, rng.random_range(1..=most), &mut rng);
            let end = tangent::descend(task.oracle, x, TANGENT_STEPS, task.limit.rest());
            if end.objective < lowest.0 {
                lowest = (end.objective, end.x);
            }
        }
        Some(lowest.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start;

    /// The kept columns are unchanged bit for bit, and X stays orthonormal, also if all columns are new or X
    /// is square.
    #[test]
    fn some_columns_are_new() {
        for (n, r) in [(9, 4), (5, 5), (3, 1)] {
            for count in 1..=r {
                let mut rng = Xoshiro256PlusPlus::seed_from_u64(count as u64);
                let x = start::random(n, r, 3);
                let y = renewed(&x, count, &mut rng);
                let gap = y.t().dot(&y) - Array2::<f64>::eye(r);
                assert!(gap.iter().all(|v| v.abs() < 1e-14), "{n} {r} {count}");
                let kept = (0..r).filter(|&k| x.column(k) == y.column(k)).count();
                assert_eq!(kept, r - count, "{n} {r} {count}");
            }
        }
    }
}
