//! Search under a limit on nonzero rows, or with a penalty λ for each nonzero row.

use ndarray::{Array2, s};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::limited::{Limited, searched};
use super::powered::on_rows;
use crate::continuation::top_diagonal;
use crate::error::Result;
use crate::limits::TaskWork;
use crate::problem::RowSparsity;
use crate::report::AutoSolution;
use crate::search::chains::SearchSpace;
use crate::search::incumbent::Watched;
use crate::start::{self, is_spectrum_exact};
use crate::support::{self, Axes, Directions, RowModel, RowSet, STAGES, largest_rows};

/// Name of a start that is not a point without search.
pub(super) const NAME: &str = "rows";

/// Number of points from which chains start.
const OPENINGS: usize = 6;

/// The kind of a perturbation.
#[derive(Debug, Clone, Copy)]
enum Perturbation {
    /// Random rows in place of some.
    Swaps,
    /// Truncated power iterations with new columns; each further column is half as likely.
    Renewal,
}

/// Share of renewals in the work of perturbations.
const NEW_COLUMNS: f64 = 0.75;

/// Blocks of successive axes, and of random mixtures of axes, from which truncated power iterations start.
const BLOCKS: (usize, usize) = (6, 24);

/// Random mixtures of axes, the best point of which begins a chain.
const MIXTURES: u64 = 8;

/// Minimises f under a limit on nonzero rows, or with a penalty for each, from the rows of `x0`. X is exactly optimal
/// for its rows, up to a rotation of its columns, which are eigenvectors of C on these rows.
pub(super) fn minimized(
    limited: &Limited<'_>,
    sparsity: RowSparsity,
    x0: Option<Array2<f64>>,
    watched: Watched<'_>,
) -> Result<AutoSolution> {
    let (form, threads) = (limited.form, limited.threads);
    let (n, r) = (form.order(), limited.problem.components);
    let given = x0.as_ref().map(|x0| support::nonzero_rows(x0.view()));
    let within = |rows: &Vec<usize>| !matches!(sparsity, RowSparsity::Count(count) if rows.len() > count);
    let first = std::iter::once(top_diagonal(form, r)).chain(x0.filter(|_| given.as_ref().is_some_and(within)));
    let truncated = |y: &Array2<f64>| Some(on_rows(sparsity.about(r).min(n), y));
    let prepared = |work: &TaskWork<'_>| {
        let axes = Axes::leading(form, (r, false), threads, work)?;
        let scaled = axes.scaled(form, work)?;
        let directions = axes.exact.unwrap_or_else(|| Directions::scaled(scaled.clone(), work));
        Some(RowSets {
            model: RowModel::new(form, r, sparsity, axes.spectrum, work)?,
            basis: axes.vectors.slice(s![.., ..r]).to_owned(),
            // No curvature of f is negative if all of them vanish.
            axes: if scaled.iter().all(|&v| v == 0.0) { axes.vectors } else { scaled },
            directions,
            given: given.clone(),
            opening: Vec::new(),
        })
    };
    searched(limited, first.collect(), truncated, prepared, watched)
}

/// The search space of sets of rows.
struct RowSets<'a> {
    model: RowModel<'a>,
    /// r leading axes, and all that are known, scaled as in the data.
    basis: Array2<f64>,
    axes: Array2<f64>,
    directions: Directions<'a>,
    given: Option<Vec<usize>>,
    /// Points from which the first chains start.
    opening: Vec<RowSet>,
}

impl RowSets<'_> {
    /// Returns the `count` rows of largest leverage.
    fn leading(&self, count: usize) -> Vec<usize> {
        largest_rows(&self.basis, count.min(self.basis.nrows()))
    }

    /// Returns the point of truncated block power iterations from a block of successive axes, or from random mixtures.
    fn block(&self, block: usize, work: &TaskWork<'_>) -> Option<RowSet> {
        let (p, r) = (self.axes.ncols(), self.basis.ncols());
        if block >= BLOCKS.0 {
            return self.mixed(block as u64, work);
        }
        let (from, to) = (block * r, (block + 1) * r);
        let x = (to <= p).then(|| self.axes.slice(s![.., from..to]).to_owned())?;
        self.model.powered(&x, work)
    }

    /// Returns `count` random mixtures of axes, as many as are known at most.
    fn mixtures(&self, count: usize, seed: u64, work: &TaskWork<'_>) -> Array2<f64> {
        work.spend((self.axes.len() * count) as f64);
        self.axes.dot(&start::random(self.axes.ncols(), count, seed))
    }

    /// Returns the point of truncated block power iterations from r mixtures of axes; None if no more than r are known, or
    /// the time ran out.
    fn mixed(&self, seed: u64, work: &TaskWork<'_>) -> Option<RowSet> {
        let r = self.basis.ncols();
        let mixed = (self.axes.ncols() > r && !work.expired()).then(|| self.mixtures(r, seed, work))?;
        self.model.powered(&mixed, work)
    }
}

impl SearchSpace for RowSets<'_> {
    type State = RowSet;
    type Point = RowSet;
    type Kind = Perturbation;

    const POINTS: usize = 3 + STAGES.len() + BLOCKS.0 + BLOCKS.1;

    /// Returns the principal axes if a penalty allows all rows, the best points on the rows of largest leverage, and
    /// of largest variance, and the points of truncated power iterations for columns on disjoint rows, and for blocks.
    fn point(&self, number: usize, work: &TaskWork<'_>) -> Option<RowSet> {
        match number {
            0 => self.model.limit().is_none().then(|| self.model.point_of(self.basis.view(), work)).flatten(),
            1 => self.model.best_count(work, |count, _| self.model.solved(self.leading(count), work)),
            2 => {
                let variances = self.model.variances();
                self.model.best_count(work, |count, _| self.model.solved(largest_rows(&variances, count), work))
            }
            3 => self.model.of_columns(&self.directions, STAGES[0], work),
            _ => match (number - 4).checked_sub(BLOCKS.0 + BLOCKS.1) {
                None => self.block(number - 4, work),
                Some(longer) => self.model.of_columns(&self.directions, STAGES[1 + longer], work),
            },
        }
    }

    fn matrix(&self, point: &RowSet) -> Array2<f64> {
        self.dense(point)
    }

    fn begin_from(&mut self, mut points: Vec<RowSet>) {
        points.sort_by(|a, b| a.value.total_cmp(&b.value));
        points.dedup_by(|a, b| a.rows == b.rows);
        points.truncate(OPENINGS);
        self.opening = points;
    }

    fn bound(&self, value: f64) -> f64 {
        let (n, r) = self.basis.dim();
        let spectral = match self.model.limit() {
            Some(count) if count == n => value,
            _ if is_spectrum_exact(n) => self.model.smooth_value(&self.basis),
            _ => f64::NEG_INFINITY,
        };
        spectral + self.model.price() * r as f64
    }

    fn choice(&self) -> (usize, usize) {
        (self.model.about(), self.basis.nrows())
    }

    fn product_work(&self) -> f64 {
        self.model.product_work()
    }

    fn start(&self, number: usize, seed: u64, work: &TaskWork<'_>) -> Option<RowSet> {
        let (n, r) = self.basis.dim();
        let number = match (&self.given, number) {
            (Some(given), 0) => return self.model.fitted(self.model.solved(given.clone(), work)?, work),
            (Some(_), number) => number - 1,
            (None, number) => number,
        };
        if let Some(first_point) = self.opening.get(number) {
            return self.model.fitted(first_point.clone(), work);
        }
        let number = number - self.opening.len();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let count = match self.model.limit() {
            Some(count) => count,
            None if number < 2 => r,
            None => random.random_range(r..=(8 * r).min(n)),
        };
        let rows = match number {
            // Forward selection from the largest variances; backward selection from surplus rows.
            0 => largest_rows(&self.model.variances(), r),
            1 => self.leading(2 * count),
            _ => {
                let mixed = (0..MIXTURES).filter_map(|k| self.mixed(seed.wrapping_add(k), work));
                if let Some(powered) = mixed.min_by(|a, b| a.value.total_cmp(&b.value)) {
                    return self.model.fitted(powered, work);
                }
                let mut rows = self.leading(4 * count);
                rows.shuffle(&mut random);
                rows.truncate(r);
                rows
            }
        };
        self.model.fitted(self.model.solved(rows, work)?, work)
    }

    fn perturbations(&self) -> Vec<(Perturbation, f64, f64)> {
        vec![(Perturbation::Swaps, 1.0 - NEW_COLUMNS, 0.0), (Perturbation::Renewal, NEW_COLUMNS, 0.0)]
    }

    fn perturbed(&self, state: &RowSet, (kind, seed): (Perturbation, u64), work: &TaskWork<'_>) -> Option<RowSet> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        match kind {
            Perturbation::Renewal => {
                let most = self.basis.ncols() as u32;
                let count = 1 + random.random::<u64>().trailing_zeros().min(most - 1) as usize;
                let columns = self.mixtures(count, random.random(), work);
                self.model.renewed(state, &columns, &mut random, work)
            }
            Perturbation::Swaps => self.model.swapped(state, &self.leading(4 * state.rows.len()), &mut random, work),
        }
    }

    fn support(&self, state: &RowSet) -> Vec<usize> {
        state.rows.clone()
    }

    fn step(&self, state: &mut RowSet, goal: f64, _: &mut usize, work: &TaskWork<'_>) -> bool {
        self.model.step(state, goal, work)
    }

    fn name(&self, number: usize) -> &'static str {
        match number.checked_sub(usize::from(self.given.is_some())) {
            None => "given",
            Some(number) if number < self.opening.len() => "opening",
            Some(_) => NAME,
        }
    }

    fn value(&self, state: &RowSet) -> f64 {
        state.value
    }

    fn dense(&self, state: &RowSet) -> Array2<f64> {
        self.model.dense(state)
    }

    fn scale(&self) -> f64 {
        self.model.scale()
    }
}
