//! Rows that a search leaves out, as no optimum needs them.
//!
//! For ℓ0 and C ⪯ 0, a row with −½C_ii ≤ λ can be dropped if it has one nonzero, in a column with other
//! nonzeros. Dropping the row and normalising the column keeps X orthonormal, raises f by at most −½C_ii and
//! lowers h by λ. (The argument does not cover a row shared by several columns.) The remaining rows are often
//! few, and the search sees these alone. At its end the incumbent descends on all rows.

use ndarray::{Array2, Axis};

use super::candidate::Candidate;
use crate::limits::TaskWork;
use crate::objective::{Quadratic, QuadraticForm, gradient_work};
use crate::penalty::Penalty;
use crate::problem::Problem;
use crate::signature::Signature;
use crate::support;
use crate::threads::Threads;

/// Number of rows from which a problem is reduced.
const MANY: usize = 2048;

/// Largest number of rows that are left. A product with C of 4096 rows takes as long as one with data of some ten million
/// entries, and C takes 128 MiB.
pub(crate) const MOST: usize = 4096;

/// Cost of forming an entry of C, beside its inner product, in multiply-adds.
const FORMED: f64 = 16.0;

/// f and h on the rows that may matter.
pub(super) struct Reduced {
    /// Ascending.
    pub(super) rows: Vec<usize>,
    smooth: Quadratic<'static>,
    penalty: Penalty,
    signature: Signature,
}

impl Reduced {
    /// Leaves out the rows that cannot matter, except for those of X; None if more than half of the rows are left, or
    /// more than [`MOST`].
    pub(super) fn new(
        (problem, form): (&Problem<'_>, &dyn QuadraticForm),
        x: &Array2<f64>,
        work: &TaskWork<'_>,
    ) -> Option<Self> {
        let (n, r) = x.dim();
        let plain = form.is_trace_form() && problem.signature.is_definite() && !problem.rotations;
        let lambda = problem.penalty.count().filter(|_| plain && n >= MANY)?;
        let go_on = || !work.expired();
        let high = form.spectrum(&go_on)?.1;
        let worth: Vec<f64> = form.diagonal().iter().map(|c| 0.5 * (high - c)).collect();
        let used: Vec<bool> = x.outer_iter().map(|row| row.iter().any(|&v| v != 0.0)).collect();
        let mut rows: Vec<usize> = (0..n).collect();
        rows.sort_by(|&a, &b| used[b].cmp(&used[a]).then(worth[b].total_cmp(&worth[a])).then(a.cmp(&b)));
        let matter = (0..n).filter(|&i| used[i] || worth[i] > lambda).count().max(4 * r);
        if matter > MOST || 2 * matter > n {
            return None;
        }
        rows.truncate(matter);
        rows.sort_unstable();
        let inner = match form.dense() {
            Some(_) => 0.0,
            None => form.product_work() / (2.0 * n as f64),
        };
        work.spend((matter * matter) as f64 * (FORMED + inner));
        let mut smooth = Quadratic::new(form.principal(&rows, &go_on)?, None, None).ok()?;
        if let Some((scale, at)) = form.factor() {
            let formed = gradient_work(&smooth, r);
            let factored = (smooth.clone()).with_factor(scale, at.select(Axis(0), &rows));
            if gradient_work(&factored, r) < formed {
                smooth = factored;
            }
        }
        Some(Self { smooth, penalty: problem.penalty.on_rows(&rows), signature: Signature::stiefel(matter), rows })
    }

    pub(super) fn problem(&self, components: usize) -> Problem<'_> {
        Problem {
            smooth: &self.smooth,
            penalty: &self.penalty,
            signature: &self.signature,
            components,
            rotations: false,
            limit: None,
        }
    }

    /// Returns the rows of X that are left.
    pub(super) fn restrict(&self, x: &Array2<f64>) -> Array2<f64> {
        x.select(Axis(0), &self.rows)
    }

    /// Returns a point of the given problem, all other rows being zero.
    pub(super) fn lift(&self, problem: &Problem<'_>, point: Candidate, work: &TaskWork<'_>) -> Candidate {
        let x = support::on_rows(problem.smooth.rows(), &self.rows, point.x.view());
        work.spend(gradient_work(problem.smooth, problem.components));
        let smooth = problem.smooth.value(x.view(), &Threads::serial());
        let values = (smooth, problem.penalty.value(x.view()), point.feasibility);
        let (iterations, updates, stationary) = (point.iterations, point.updates, point.stationary);
        Candidate { iterations, updates, stationary, ..Candidate::valued(x, values, point.name) }
    }
}
