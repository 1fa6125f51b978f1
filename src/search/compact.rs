//! Screening: the problem restricted to some rows, all others being zero.
//!
//! For ℓ0 and C ⪯ 0, a row with −½C_ii ≤ λ can be dropped if it has one nonzero, in a column with other
//! nonzeros. Dropping the row and normalising the column keeps X orthonormal, raises f by at most −½C_ii and
//! lowers h by λ. (The argument does not cover a row shared by several columns.) The remaining rows are often
//! few, and no optimum is lost.
//!
//! For X ≥ 0 the screened rows are those with the largest gradient entries. Results are completed on all rows, and the
//! rows are then screened again.

use ndarray::{Array2, Axis};

use crate::heuristic::{Kind, Oracle, Profile, alternated_partition};
use crate::objective::{GoOn, Quadratic, QuadraticForm, gradient_work};
use crate::penalty::Penalty;
use crate::problem::Problem;
use crate::signature::Signature;
use crate::support;

/// Number of rows from which the problem is screened.
const MANY: usize = 2048;

/// Largest number of screened rows if no other row can matter. A product with C of 4096 rows takes as long as one with
/// data of some ten million entries, and C takes 128 MiB.
pub(crate) const MOST: usize = 4096;

/// Default number of screened rows if other rows can matter.
const SOME: usize = 2048;

/// Cost of forming an entry of C, beside its inner product, in multiply-adds.
const FORMED: f64 = 16.0;

/// f and h restricted to the screened rows.
pub(super) struct Compact {
    /// Ascending.
    pub(super) rows: Vec<usize>,
    /// True if no other row can matter.
    pub(super) complete: bool,
    order: usize,
    smooth: Quadratic<'static>,
    penalty: Penalty,
    signature: Signature,
}

impl Compact {
    /// Screens the rows at X; None if the restricted problem is not smaller.
    pub(super) fn new(
        (problem, form): (&Problem<'_>, &dyn QuadraticForm),
        oracle: &Oracle<'_>,
        profile: &Profile,
        x: &Array2<f64>,
        go_on: GoOn<'_>,
    ) -> Option<Self> {
        let (n, r) = x.dim();
        let offered = profile.trace_form && !profile.mixed;
        if n < MANY || !offered {
            return None;
        }
        let lambda = problem.penalty.count();
        let high = form.spectrum(go_on)?.1;
        let worth = |c: &f64| 0.5 * (high - c);
        let diagonal = form.diagonal();
        let paying = lambda.map(|lambda| diagonal.iter().filter(|c| worth(c) > lambda).count());
        let complete = paying.is_some_and(|count| count <= MOST && 2 * count <= n);
        if !complete && (profile.whole || profile.kind != Kind::Nonnegative) {
            return None;
        }
        let mut score: Vec<f64> = match complete {
            true => diagonal.iter().map(worth).collect(),
            // Largest gradient entry of each row.
            false => {
                let (_, gradient) = oracle.value_and_gradient(x);
                let largest = |row: ndarray::ArrayView1<'_, f64>| row.iter().fold(0.0f64, |m, v| m.max(v.abs()));
                gradient.outer_iter().map(largest).collect()
            }
        };
        // A sparse point with a penalty keeps its rows.
        let nonzero = |row: ndarray::ArrayView1<'_, f64>| row.iter().any(|&v| v != 0.0);
        let used = x.outer_iter().filter(|row| nonzero(*row)).count();
        let used = if 2 * used <= n { used } else { 0 };
        if used > 0 && complete {
            for (score, row) in score.iter_mut().zip(x.outer_iter()) {
                *score = if nonzero(row) { f64::MAX } else { *score };
            }
        }
        let mut rows: Vec<usize> = (0..n).collect();
        rows.sort_by(|&a, &b| score[b].total_cmp(&score[a]).then(a.cmp(&b)));
        let count = match complete {
            true => paying.unwrap_or(0).max(used).max(4 * r),
            false => SOME.max(2 * used).min(MOST),
        };
        if used > MOST || 2 * count > n {
            return None;
        }
        rows.truncate(count);
        rows.sort_unstable();
        let entries = (rows.len() * rows.len()) as f64;
        let inner = match form.dense() {
            Some(_) => 0.0,
            None => form.product_work() / (2.0 * n as f64),
        };
        let each = FORMED + inner;
        oracle.work.spend(entries * each);
        let mut smooth = Quadratic::new(form.principal(&rows, go_on)?, None, None).ok()?;
        if let Some((scale, at)) = form.factor() {
            let work = gradient_work(&smooth, r);
            let factored = (smooth.clone()).with_factor(scale, at.select(Axis(0), &rows));
            if gradient_work(&factored, r) < work {
                smooth = factored;
            }
        }
        Some(Self {
            order: n,
            complete,
            smooth,
            penalty: problem.penalty.on_rows(&rows),
            signature: Signature::stiefel(rows.len()),
            rows,
        })
    }

    pub(super) fn form(&self) -> &Quadratic<'static> {
        &self.smooth
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

    /// Restricts X to the screened rows.
    pub(super) fn restrict(&self, x: &Array2<f64>) -> Array2<f64> {
        x.select(Axis(0), &self.rows)
    }

    /// Extends Y by zeros to all rows, and adds rows that lower F.
    pub(super) fn lift(&self, oracle: &Oracle<'_>, y: &Array2<f64>) -> Array2<f64> {
        let x = support::on_rows(self.order, &self.rows, y.view());
        match self.complete {
            true => x,
            false => alternated_partition(oracle, None, &owned(oracle, x), oracle.limit(1.0)),
        }
    }
}

/// Scales the columns to unit norm.
fn normalise(x: &mut Array2<f64>) {
    for mut column in x.columns_mut() {
        let norm = column.dot(&column).sqrt();
        column /= norm;
    }
}

/// Assigns the zero rows of X ≥ 0 to the columns with the largest entry after a power step.
fn owned(oracle: &Oracle<'_>, x: Array2<f64>) -> Array2<f64> {
    let (_, gradient) = oracle.value_and_gradient(&x);
    let quotients = (&gradient * &x).sum_axis(Axis(0));
    let mut x = x;
    for (mut row, gradient) in x.outer_iter_mut().zip(gradient.outer_iter()) {
        if row.iter().all(|&v| v == 0.0) {
            let entry = |k: usize| gradient[k] / quotients[k].min(-f64::MIN_POSITIVE);
            let best = (0..row.len()).max_by(|&a, &b| entry(a).total_cmp(&entry(b)));
            if let Some(k) = best.filter(|&k| entry(k) > 0.0 && entry(k).is_finite()) {
                row[k] = entry(k);
            }
        }
    }
    normalise(&mut x);
    x
}
