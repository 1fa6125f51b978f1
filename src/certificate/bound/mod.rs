//! Lower bounds on F over all orthonormal X: how far a point can be from optimal.
//!
//! With f = ½⟨X, MX⟩ and C = −M, F is −½ times `Σ_t u_tᵀCu_t` less twice the penalty, u_t the columns of X. For any symmetric Λ
//!
//! ```text
//! Σ_t u_tᵀ C u_t = ⟨Λ, XXᵀ⟩ + Σ_t u_tᵀ(C − Λ)u_t ≤ Σ_top-r λ(Λ) + Σ_t max { uᵀ(C − Λ)u : ‖u‖ = 1, ‖u‖₀ ≤ k_t }
//! ```
//!
//! (Ky Fan), so every Λ, together with any upper bound on the sparse maxima, is a bound that holds; for Λ ⪰ 0 it
//! is the Lagrangian of Σ u_tu_tᵀ ⪯ I, whose multiplier Λ then is. Three methods, one after the other:
//!
//! * [`relaxation`]: an upper bound on the second sum in closed form, for every penalty and n up to a few thousand;
//! * for a number of nonzeros the sparse maxima themselves by branch and bound ([`maximum`]), and Λ by the [`master`];
//! * the same at the nodes of a [`tree`] on which row may be nonzero in which column, which ends with a proof where n is small.
//!
//! Of a number of nonzero rows, or a price for each, F is least on the leading eigenvectors of a block of C: after the
//! relaxation [`maximum`] looks for the block.
//!
//! What is returned is rounded outwards: sums of eigenvalues by the residuals of their decomposition in the first
//! method, by a multiple of the unit roundoff times n and the norms of C and Λ in the others. It holds
//! for C as the objective forms it.

mod master;
mod maximum;
mod relaxation;
mod tree;

use std::ops::RangeInclusive;
use std::time::Instant;

use ndarray::Array2;

use crate::budget::Clock;
use crate::cardinality::Cardinality;
use crate::error::{Error, Result};
use crate::objective::QuadraticForm;
use crate::penalty::Penalty;
use crate::pool;
use crate::solver::Monitor;
use crate::threads::Threads;
use maximum::{Allowed, Effort, sparse_maximum};
use relaxation::{Admm, Entries, ROUNDING, ky_fan, ky_fan_above};
use tree::Tree;

/// Up to this n the matrix C is formed.
const FORMED_ROWS: usize = 2048;

/// Steps of the relaxation between two evaluations of its bound, and at most.
const EVALUATED: usize = 10;
const STEPS: usize = 1000;

/// The relaxation ends when both residuals, relative to Y and C, are below this.
const AT_REST: f64 = 1e-6;

/// Up to this n, and this many ways to share the nonzeros among the columns, supports are branched on.
const BRANCHED_ROWS: usize = 512;
const SHARES: usize = 64;

/// Nodes of the tree, at most; without a time limit the last number over n³, but the first of these.
const NODES: (f64, f64, f64) = (8.0, 20_000.0, 1e7);

/// Nodes of the search for a block of rows, as those of the tree, and what the first one of a search costs more.
const ROW_NODES: (f64, f64, f64) = (50.0, 200_000.0, 1e9);
const FIRST_NODE: usize = 8;

/// What h asks of the entries of X.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Restriction {
    /// Nothing: h = 0, or is only known to be nonnegative.
    Free,
    /// h = λ‖X‖₀.
    Count(f64),
    /// h ≥ λ‖X‖₁.
    Absolute(f64),
    /// X ≥ 0.
    Nonnegative,
    /// A number of nonzeros, at most.
    Cardinality(Cardinality),
    /// A number of nonzero rows, at most.
    Rows(usize),
    /// h is this times the number of nonzero rows.
    RowPrice(f64),
}

impl Restriction {
    /// That of a penalty; None where nothing is known of h.
    pub fn of<P: Penalty>(penalty: &P) -> Option<Self> {
        if let Some(lambda) = penalty.count() {
            return Some(Self::Count(lambda));
        }
        if let Some(lambda) = penalty.absolute() {
            return Some(Self::Absolute(lambda));
        }
        if penalty.nonnegative() {
            return Some(Self::Nonnegative);
        }
        P::SMOOTH.then_some(Self::Free)
    }

    /// Checks it against an n×r matrix.
    fn check(&self, n: usize, r: usize) -> Result<()> {
        let bad = |message: String| Err(Error::invalid("count", message));
        match self {
            Self::Cardinality(Cardinality::Total(count)) | Self::Rows(count) if *count < r => {
                bad(format!("must be at least r = {r}, got {count}"))
            }
            Self::Cardinality(Cardinality::Columns(counts)) if counts.len() != r => {
                bad(format!("must have {r} entries, got {}", counts.len()))
            }
            Self::Cardinality(Cardinality::Columns(counts))
                if counts.iter().any(|k| !(1..=n).contains(k)) =>
            {
                bad(format!("must be between 1 and n = {n} in every column"))
            }
            _ => Ok(()),
        }
    }

    /// What the relaxation makes of it, and a constant to add to twice the bound on F.
    fn relaxed(&self, n: usize, r: usize) -> (Entries, f64) {
        match self {
            Self::Free => (Entries::Free, 0.0),
            Self::Count(lambda) => (Entries::Priced(2.0 * lambda), 0.0),
            Self::Absolute(lambda) => {
                let root = (n as f64).sqrt();
                let price = 2.0 * lambda / (root + 1.0);
                (Entries::Priced(price), price * root * r as f64)
            }
            Self::Nonnegative => (Entries::Nonnegative, 0.0),
            Self::Cardinality(Cardinality::Total(count)) => {
                (Entries::Within((*count).min(n * r) as f64), 0.0)
            }
            Self::Cardinality(Cardinality::Columns(counts)) => {
                (Entries::Within(counts.iter().sum::<usize>() as f64), 0.0)
            }
            // ‖P‖₁ ≤ k‖P‖_F = k√r on k rows.
            Self::Rows(count) => {
                let radius = (*count).min(n) as f64 * (r as f64).sqrt();
                (Entries::Within(radius), 0.0)
            }
            Self::RowPrice(lambda) => (Entries::Priced(2.0 * lambda / (r as f64).sqrt()), 0.0),
        }
    }
}

/// How a bound was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// The r largest eigenvalues of C alone.
    Eigenvalues,
    /// The relaxation to 0 ⪯ P ⪯ I, tr P = r.
    Fantope,
    /// The sparse maxima at one Λ, bounded by branch and bound.
    Lagrangian,
    /// Branch and bound on which row may be nonzero in which column.
    BranchAndBound,
}

impl Method {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eigenvalues => "eigenvalues",
            Self::Fantope => "fantope",
            Self::Lagrangian => "lagrangian",
            Self::BranchAndBound => "branch-and-bound",
        }
    }
}

/// A lower bound on F over all X with XᵀX = I.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Bound {
    /// No feasible X has a smaller F.
    pub value: f64,
    /// How it was found.
    pub method: Method,
    /// Λ, n×n, of the best bound in closed form; none where C was not formed.
    pub multiplier: Option<Array2<f64>>,
    /// Nodes of the branch and bound.
    pub nodes: usize,
    /// Seconds and bound, whenever it rose.
    pub history: Vec<(f64, f64)>,
}

/// When to stop looking for a better bound.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct BoundOptions {
    /// F at the point whose gap is wanted: the bound cannot pass it by more than rounding, so the search ends near it.
    pub objective: f64,
    /// The search ends when `objective − bound ≤ gap_tol · max(1, |objective|)`.
    pub gap_tol: f64,
    /// Seconds; without them the work is counted, and the result the same every time.
    pub max_time: Option<f64>,
}

impl BoundOptions {
    /// A gap of 1e-6, no time limit.
    pub fn new(objective: f64) -> Self {
        Self {
            objective,
            gap_tol: 1e-6,
            max_time: None,
        }
    }

    fn check(&self) -> Result<()> {
        if !self.objective.is_finite() {
            return Err(Error::invalid("objective", "must be finite"));
        }
        if !(self.gap_tol >= 0.0) {
            return Err(Error::invalid("gap_tol", "must be at least 0"));
        }
        if self.max_time.is_some_and(|limit| !(limit >= 0.0)) {
            return Err(Error::invalid("max_time", "must be at least 0"));
        }
        Ok(())
    }

    /// Where the search may end.
    fn goal(&self) -> f64 {
        self.objective - self.gap_tol * self.objective.abs().max(1.0)
    }
}

/// A lower bound on `form` + h over the n×r matrices with XᵀX = I.
///
/// The monitor is polled every few hundredths of a second; when it stops the search, or the time is up, the best bound so
/// far is returned, in the worst case that of the eigenvalues.
///
/// # Errors
/// If the form has a linear term or a column metric, r is not in 1..=n, or the restriction or an option does not fit.
///
/// ```
/// use ndarray::array;
/// use orthobcd::certificate::{BoundOptions, Restriction, lower_bound};
/// use orthobcd::{Quadratic, Threads, Unwatched};
///
/// let smooth = Quadratic::new(array![[-3.0, 0.5], [0.5, -1.0]], None, None)?;
/// let (price, options) = (Restriction::Count(0.2), BoundOptions::new(-1.3));
/// let bound = lower_bound(&smooth, 1, &price, &options, &Threads::serial(), &mut Unwatched)?;
/// assert!(bound.value <= -1.3 && bound.value > -1.31);
/// # Ok::<(), orthobcd::Error>(())
/// ```
pub fn lower_bound(
    form: &dyn QuadraticForm,
    r: usize,
    restriction: &Restriction,
    options: &BoundOptions,
    threads: &Threads,
    monitor: &mut dyn Monitor,
) -> Result<Bound> {
    let n = form.order();
    if !form.is_trace_form() {
        return Err(Error::invalid(
            "smooth",
            "must have no linear term and no column metric to be bounded",
        ));
    }
    if r == 0 || r > n {
        return Err(Error::invalid(
            "n_components",
            format!("must be between 1 and n = {n}, got {r}"),
        ));
    }
    restriction.check(n, r)?;
    options.check()?;
    let clock = Clock::new(Instant::now(), options.max_time);
    let found = pool::run(
        1,
        1,
        &clock,
        |_| Search::new(form, r, restriction, options, (&clock, threads)).run(),
        |_| monitor.poll(),
    );
    let found = found.into_iter().flatten().next();
    Ok(found.unwrap_or_else(|| of_eigenvalues(form, r, restriction)))
}

/// The bound that needs no matrix: all r eigenvalues at most the largest, by Lanczos' method.
fn of_eigenvalues(form: &dyn QuadraticForm, r: usize, restriction: &Restriction) -> Bound {
    let constant = restriction.relaxed(form.order(), r).1;
    Bound {
        value: 0.5 * (r as f64 * form.bounds().0 + constant),
        method: Method::Eigenvalues,
        multiplier: None,
        nodes: 0,
        history: Vec::new(),
    }
}

/// One search for a bound.
struct Search<'a> {
    form: &'a dyn QuadraticForm,
    r: usize,
    restriction: &'a Restriction,
    goal: f64,
    clock: &'a Clock,
    threads: &'a Threads,
    best: Bound,
}

impl<'a> Search<'a> {
    fn new(
        form: &'a dyn QuadraticForm,
        r: usize,
        restriction: &'a Restriction,
        options: &BoundOptions,
        (clock, threads): (&'a Clock, &'a Threads),
    ) -> Self {
        let mut best = of_eigenvalues(form, r, restriction);
        best.history.push((clock.seconds(), best.value));
        Self {
            form,
            r,
            restriction,
            goal: options.goal(),
            clock,
            threads,
            best,
        }
    }

    fn run(mut self) -> Bound {
        let n = self.form.order();
        if n <= FORMED_ROWS
            && let Some(m) = self.matrix()
        {
            let c = m.mapv(|v| -v);
            self.relax(&c);
            self.branch(&c);
        }
        self.best
    }

    /// M.
    fn matrix(&self) -> Option<Array2<f64>> {
        let rows: Vec<usize> = (0..self.form.order()).collect();
        match self.form.dense() {
            Some(m) => Some(m.to_owned()),
            None => self.form.principal(&rows, &|| !self.clock.expired()),
        }
    }

    /// Whether the search is over.
    fn ended(&self) -> bool {
        self.best.value >= self.goal || self.clock.expired()
    }

    /// Takes over a bound if it is better.
    fn improve(&mut self, value: f64, method: Method, multiplier: Option<Array2<f64>>) {
        if value > self.best.value {
            self.best.value = value;
            self.best.method = method;
            self.best.multiplier = multiplier.or(self.best.multiplier.take());
            self.best.history.push((self.clock.seconds(), value));
        }
    }

    /// The relaxation to the Fantope.
    fn relax(&mut self, c: &Array2<f64>) {
        let (entries, constant) = self.restriction.relaxed(c.nrows(), self.r);
        let own = |twice: f64| 0.5 * (constant - twice);
        let mut admm = Admm::new(c, self.r, entries);
        self.evaluate(c, &admm, constant);
        let mut best = self.best.value;
        for step in 1..=STEPS {
            if self.ended() || entries == Entries::Free {
                return;
            }
            admm.step(c);
            let rests = admm.rests(c, AT_REST);
            if step % EVALUATED == 0 || rests {
                let value = own(admm.bound(c));
                if value > best {
                    best = value;
                    self.evaluate(c, &admm, constant);
                }
            }
            if rests {
                return;
            }
        }
    }

    /// Branch and bound, where n is small.
    fn branch(&mut self, c: &Array2<f64>) {
        let n = c.nrows();
        if n > BRANCHED_ROWS || self.ended() {
            return;
        }
        match *self.restriction {
            Restriction::Rows(count) => self.branch_rows(c, count.min(n)..=count.min(n), 0.0),
            Restriction::RowPrice(lambda) => self.branch_rows(c, self.r..=n, 2.0 * lambda),
            _ => self.branch_columns(c),
        }
    }

    /// The largest sums of r eigenvalues of a block of so many rows, less a price for each row.
    ///
    /// A block with more rows has no smaller sum, so a number of rows whose price takes what all rows gain over the goal is
    /// not looked at.
    fn branch_rows(&mut self, c: &Array2<f64>, counts: RangeInclusive<usize>, price: f64) {
        let (n, r) = (c.nrows(), self.r);
        let size = crate::linalg::square(c).sqrt();
        let rounding = ROUNDING * (n * r) as f64 * f64::EPSILON * size;
        let most = ky_fan(c, r) + rounding;
        let goal = -2.0 * self.goal;
        let clock = self.clock;
        let go_on = move || !clock.expired();
        let mut largest = goal;
        let (fewest, most_nodes, work) = ROW_NODES;
        let mut left = match clock.limit() {
            Some(_) => most_nodes,
            None => (work / (n as f64).powi(3)).clamp(fewest, most_nodes),
        } as usize;
        for count in counts {
            let paid = price * count as f64;
            if most - paid <= goal || left == 0 || clock.expired() {
                // All larger numbers pay more.
                largest = largest.max(most - paid);
                break;
            }
            let allowed = Allowed {
                size: count,
                required: Vec::new(),
                free: (0..n).collect(),
            };
            let effort = Effort {
                tolerance: 0.0,
                enough: goal + paid - rounding,
                nodes: left,
                go_on: &go_on,
            };
            let found = sparse_maximum((c, r), &allowed, &[], &effort);
            left = left.saturating_sub(found.nodes + FIRST_NODE);
            self.best.nodes += found.nodes;
            largest = largest.max(found.above + rounding - paid);
        }
        self.improve(-0.5 * largest, Method::BranchAndBound, None);
    }

    /// The tree, where the ways to share the nonzeros among the columns are few.
    fn branch_columns(&mut self, c: &Array2<f64>) {
        let (n, r) = (c.nrows(), self.r);
        let shares = match self.restriction {
            Restriction::Cardinality(Cardinality::Total(count)) => {
                tree::shares((*count).min(n * r), r, n, SHARES)
            }
            Restriction::Cardinality(Cardinality::Columns(counts)) => {
                let mut counts = counts.clone();
                counts.sort_unstable_by(|a, b| b.cmp(a));
                Some(vec![counts])
            }
            _ => None,
        };
        let Some(shares) = shares else {
            return;
        };
        let (clock, threads) = (self.clock, self.threads);
        let go_on = move || !clock.expired();
        let tree = Tree::new(c, r, -2.0 * self.goal, threads, &go_on);
        let (fewest, most, work) = NODES;
        let counted = (work / (n as f64).powi(3)).clamp(fewest, most);
        let nodes = if clock.limit().is_some() {
            most
        } else {
            counted
        } as usize;
        tree.run(&shares, -2.0 * self.best.value, nodes, |news| {
            self.best.nodes = news.nodes;
            let method = match news.multiplier {
                Some(_) => Method::Lagrangian,
                None => Method::BranchAndBound,
            };
            self.improve(-0.5 * news.above, method, news.multiplier);
            !self.ended()
        });
    }

    /// The bound of U, rounded outwards.
    fn evaluate(&mut self, c: &Array2<f64>, admm: &Admm, constant: f64) {
        let lambda = c - admm.multiplier();
        let u = c - &lambda;
        // The subtractions are exact to an ulp of either matrix.
        let ulp = 2.0
            * f64::EPSILON
            * lambda
                .iter()
                .chain(&u)
                .fold(0.0, |m: f64, v| m.max(v.abs()));
        let own = self
            .restriction
            .relaxed(c.nrows(), self.r)
            .0
            .conjugate_above(&u, self.r, ulp);
        let value = 0.5 * (constant - (ky_fan_above(&lambda, self.r) + own));
        self.improve(value, Method::Fantope, Some(lambda));
    }
}

#[cfg(test)]
mod tests;
