//! Resumable search for a lower bound: the relaxation first, then branch and bound.

use std::ops::RangeInclusive;
use std::time::Instant;

use ndarray::Array2;

use super::maximum::{Allowed, Effort, LOOK, sparse_maximum};
use super::node::Reach;
use super::relaxation::{Admm, EIGEN, Entries, STEP, ky_fan_above};
use super::tree::{self, Tree};
use super::{Bound, BoundOptions, GAP, Method, Restriction, of_eigenvalues};
use crate::error::{Error, Result};
use crate::internal::{Clock, WORK_UNIT, numerics};
use crate::objective::QuadraticForm;
use crate::problem::Cardinality;
use crate::threads::Threads;

/// Largest n at which the matrix C is formed.
pub(crate) const FORMED_ROWS: usize = 2048;

/// Largest number of ADMM steps.
const STEPS: usize = 1000;

/// Largest n for branch and bound.
const BRANCHED_ROWS: usize = 512;

/// Largest number of ways to share the nonzeros among the columns for branch and bound.
const SHARES: usize = 64;

/// Nodes (least, most, c) of the tree: at most `most` under a limit, else c/n³ between `least` and `most`.
const NODES: (f64, f64, f64) = (8.0, 20_000.0, 1e7);

/// Nodes of the search for a block of rows, as in `NODES`.
const ROW_NODES: (f64, f64, f64) = (50.0, 200_000.0, 1e9);

/// Nodes charged in addition for each search for a block of rows.
const FIRST_NODE: usize = 8;

/// Limits of a search on time and work.
pub(in crate::certificate) struct SearchLimits<'a> {
    pub(in crate::certificate) clock: &'a Clock,
    pub(in crate::certificate) threads: &'a Threads,
    /// Largest number of multiply-adds since the search began.
    pub(in crate::certificate) work: f64,
    /// Whether time or work is limited; without limits the number of nodes is.
    pub(in crate::certificate) limited: bool,
}

/// State of a search for a bound.
pub(in crate::certificate) struct Search<'a> {
    form: &'a dyn QuadraticForm,
    r: usize,
    restriction: &'a Restriction,
    started: Instant,
    /// C, once it is formed.
    c: Option<Array2<f64>>,
    relaxation: Option<Admm>,
    tree: Option<Tree>,
    /// True once the relaxation, and the whole search, has ended.
    relaxed: bool,
    pub(in crate::certificate) over: bool,
    /// Multiply-adds.
    pub(in crate::certificate) work: f64,
    /// Seconds of the last ADMM step, if there was one.
    step_seconds: Option<f64>,
    /// Least magnitude of F to which gaps are relative.
    resolved: f64,
    objective: f64,
    goal: f64,
    pub(in crate::certificate) best: Bound,
}

impl<'a> Search<'a> {
    pub(in crate::certificate) fn new(
        form: &'a dyn QuadraticForm,
        r: usize,
        restriction: &'a Restriction,
    ) -> Result<Self> {
        let n = form.order();
        if !form.is_trace_form() {
            return Err(Error::invalid("smooth", "must have no linear term and no column metric to be bounded"));
        }
        if r == 0 || r > n {
            return Err(Error::invalid("n_components", format!("must be between 1 and n = {n}, got {r}")));
        }
        restriction.check(n, r)?;
        let started = Instant::now();
        let (low, high) = form.bounds();
        let mut best = of_eigenvalues(form, r, restriction);
        best.history.push((started.elapsed().as_secs_f64(), best.value));
        Ok(Self {
            form,
            r,
            restriction,
            started,
            c: None,
            relaxation: None,
            tree: None,
            relaxed: false,
            over: n > FORMED_ROWS,
            work: 0.0,
            step_seconds: None,
            // At a smaller magnitude of F, a gap of `GAP` would be rounding.
            resolved: GAP * 0.5 * r as f64 * low.abs().max(high.abs()),
            objective: f64::INFINITY,
            goal: f64::INFINITY,
            best,
        })
    }

    /// Returns the bound at which the search may end: the computed gap is then at most `gap_tol`.
    pub(in crate::certificate) fn goal(&self, options: &BoundOptions) -> f64 {
        let rounding = numerics::ULPS;
        let size = options.magnitude.max(self.resolved);
        options.objective - (options.gap_tol - rounding).max(0.0) * size
    }

    /// Returns the bound with its gap.
    pub(in crate::certificate) fn finish(self, options: &BoundOptions) -> Bound {
        let difference = options.objective - self.best.value;
        let size = options.magnitude.max(self.resolved);
        let gap = if difference == 0.0 { 0.0 } else { difference / size };
        Bound { gap, ..self.best }
    }

    /// Continues the search within the limits.
    pub(in crate::certificate) fn advance(&mut self, options: &BoundOptions, limits: &SearchLimits<'_>) {
        (self.objective, self.goal) = (options.objective, self.goal(options));
        if self.over {
            return;
        }
        let form = self.form;
        let formed = || form.whole(&|| !limits.clock.expired()).map(|m| m.mapv(|v| -v));
        let formed = self.c.take().or_else(formed);
        let Some(c) = formed else { return };
        if !self.relaxed {
            self.relax(&c, limits);
        }
        if self.relaxed && !self.ended(limits) {
            self.branch(&c, limits);
        }
        self.c = Some(c);
    }

    /// Returns whether the search has reached its goal or a limit.
    fn ended(&self, limits: &SearchLimits<'_>) -> bool {
        self.best.value >= self.goal || limits.clock.expired() || self.work >= limits.work
    }

    /// Records a bound if it is better than the best one.
    fn improve(&mut self, value: f64, method: Method, multiplier: Option<Array2<f64>>) {
        if value > self.best.value {
            self.best.value = value;
            self.best.method = method;
            self.best.multiplier = multiplier.or(self.best.multiplier.take());
            let seconds = self.started.elapsed().as_secs_f64();
            self.best.history.push((seconds, value));
        }
    }

    /// Runs the relaxation to the Fantope.
    fn relax(&mut self, c: &Array2<f64>, limits: &SearchLimits<'_>) {
        let (entries, constant) = self.restriction.relaxed(c.nrows(), self.r);
        let own = |twice: f64| 0.5 * (constant - twice);
        let cube = (c.nrows() as f64).powi(3);
        // No step begins that would probably exceed the time limit.
        let late = |step_seconds: Option<f64>| {
            let seconds = step_seconds.unwrap_or(STEP * cube / WORK_UNIT);
            limits.clock.left().is_some_and(|left| left < seconds)
        };
        let mut admm = match self.relaxation.take() {
            Some(admm) => admm,
            None if late(None) => return,
            None => {
                let admm = Admm::new(c, self.r, entries);
                self.evaluate(c, &admm, constant);
                admm
            }
        };
        let mut best = self.best.value;
        self.relaxed = entries == Entries::Free;
        while !self.relaxed && !self.ended(limits) && !late(self.step_seconds) {
            let before = Instant::now();
            admm.step(c);
            self.work += STEP * cube;
            let converged = admm.has_converged(c, GAP);
            if admm.steps().is_multiple_of(LOOK) || converged {
                let value = own(admm.bound(c));
                self.work += EIGEN * cube;
                if value > best {
                    best = value;
                    self.evaluate(c, &admm, constant);
                }
            }
            self.relaxed = converged || admm.steps() >= STEPS;
            self.step_seconds = Some(before.elapsed().as_secs_f64());
        }
        self.relaxation = Some(admm);
    }

    /// Runs branch and bound if n is small.
    fn branch(&mut self, c: &Array2<f64>, limits: &SearchLimits<'_>) {
        let n = c.nrows();
        if n > BRANCHED_ROWS {
            self.over = true;
            return;
        }
        match *self.restriction {
            Restriction::Rows(count) => {
                self.branch_rows(c, count.min(n)..=count.min(n), 0.0, limits);
            }
            Restriction::RowPenalty(lambda) => {
                self.branch_rows(c, self.r..=n, 2.0 * lambda, limits);
            }
            _ => self.branch_columns(c, limits),
        }
    }

    /// Bounds F by the largest sum of r eigenvalues of a block of C, less `penalty` per row, over the numbers
    /// of rows in `counts`.
    ///
    /// A block with more rows has no smaller sum. A number of rows is skipped if its penalty is at least the
    /// gain of all rows over the goal.
    fn branch_rows(&mut self, c: &Array2<f64>, counts: RangeInclusive<usize>, penalty: f64, limits: &SearchLimits<'_>) {
        let (n, r) = (c.nrows(), self.r);
        let most = ky_fan_above(c, r);
        let goal = -2.0 * self.goal;
        let go_on = || !limits.clock.expired();
        let mut largest = goal;
        let mut left = nodes(ROW_NODES, n, limits);
        for count in counts {
            let paid = penalty * count as f64;
            if most - paid <= goal || left == 0 || !go_on() || self.work >= limits.work {
                // Every larger number of rows has a larger penalty.
                largest = largest.max(most - paid);
                break;
            }
            let allowed = Allowed { size: count, required: Vec::new(), free: (0..n).collect() };
            let effort = Effort {
                tolerance: 0.0,
                enough: goal + paid,
                nodes: left,
                work: limits.work - self.work,
                go_on: &go_on,
            };
            let found = sparse_maximum((c, r), &allowed, &[], &effort);
            left = left.saturating_sub(found.nodes + FIRST_NODE);
            self.best.nodes += found.nodes;
            self.work += found.work;
            largest = largest.max(found.above - paid);
        }
        self.over = go_on() && self.work < limits.work;
        self.improve(-0.5 * largest, Method::BranchAndBound, None);
    }

    /// Runs the tree if the ways to share the nonzeros among the columns are few.
    fn branch_columns(&mut self, c: &Array2<f64>, limits: &SearchLimits<'_>) {
        let (n, r) = (c.nrows(), self.r);
        let planted = self.tree.take().or_else(|| {
            let shares = match self.restriction.cardinality()? {
                Cardinality::Total(count) => tree::shares((*count).min(n * r), r, n, SHARES),
                Cardinality::Columns(counts) => {
                    let mut counts = counts.clone();
                    counts.sort_unstable_by(|a, b| b.cmp(a));
                    Some(vec![counts])
                }
            };
            let bounding = self.restriction.bounding(c);
            Some(Tree::new(&bounding, r, &shares?, -2.0 * self.best.value))
        });
        let Some(mut tree) = planted else {
            self.over = true;
            return;
        };
        let go_on = || !limits.clock.expired();
        let reach = Reach {
            value: -2.0 * self.objective,
            closed: -2.0 * self.goal,
            nodes: nodes(NODES, n, limits),
            work: limits.work - self.work,
            threads: limits.threads,
            go_on: &go_on,
        };
        let work = tree.run(&reach, |news| {
            self.best.nodes = news.nodes;
            let method = match news.multiplier {
                Some(_) => Method::Lagrangian,
                None => Method::BranchAndBound,
            };
            self.improve(-0.5 * news.above, method, news.multiplier);
            !self.ended(limits)
        });
        self.work += work;
        self.best.excluded = tree.excluded();
        // No work in spite of time and work left means that the limit on nodes is reached.
        self.over = tree.is_over() || (work == 0.0 && !self.ended(limits));
        self.tree = Some(tree);
    }

    /// Evaluates the bound of U, rounded outwards.
    fn evaluate(&mut self, c: &Array2<f64>, admm: &Admm, constant: f64) {
        let lambda = c - admm.multiplier();
        let u = c - &lambda;
        // The subtractions are exact to an ulp of either matrix.
        let ulp = 2.0 * f64::EPSILON * lambda.iter().chain(&u).fold(0.0, |m: f64, v| m.max(v.abs()));
        let own = self.restriction.relaxed(c.nrows(), self.r).0.conjugate_above(&u, self.r, ulp);
        self.work += EIGEN * (c.nrows() as f64).powi(3);
        let value = 0.5 * (constant - (ky_fan_above(&lambda, self.r) + own));
        self.improve(value, Method::Fantope, Some(lambda));
    }
}

/// Returns the largest number of nodes of a search over n rows.
fn nodes((fewest, most, work): (f64, f64, f64), n: usize, limits: &SearchLimits<'_>) -> usize {
    match limits.limited {
        true => most as usize,
        false => (work / (n as f64).powi(3)).clamp(fewest, most) as usize,
    }
}

#[cfg(test)]
mod tests;
