//! Starts of descents, and perturbations.
//!
//! Starts are: eigenvectors, rotated by varimax and [truncated](crate::support::cut) by ADMM; and columns made one after the other by
//! [truncated power iterations](crate::support::Powers), on rows of no other column or orthogonally to them. A
//! perturbation makes some columns again, swaps entries at random, or runs ADMM from the point.

use ndarray::Array2;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::manifold::{perturbed, varimax_while};
use crate::objective::{GoOn, gradient_work};
use crate::problem::Cardinality;
use crate::support::cut::{Cut, LEAST_STEPS, STEPS};
use crate::support::opening::largest_of;
use crate::support::{self, ColumnModel, Directions, Part, Powers, SCALAR, SparsePoint, State, SupportMover};

/// The kind of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartKind {
    Given,
    /// ADMM from the axes rotated by varimax, for few iterations if it is the first one.
    Splitting {
        first: bool,
    },
    /// A point of [`Material::points`].
    Opening(usize),
    Grown,
}

/// Names of kinds that are not those of [heuristics](crate::heuristic) too.
pub(super) const NAMES: [&str; 2] = [StartKind::Opening(0).name(), StartKind::Grown.name()];

impl StartKind {
    /// Returns the name of the kind in a report.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Splitting { .. } => "splitting",
            Self::Opening(_) => "opening",
            Self::Grown => "grown",
        }
    }
}

/// The first starts: points that need no search, best first, among starts of other kinds.
const FIRST: [StartKind; 8] = [
    StartKind::Opening(0),
    StartKind::Grown,
    StartKind::Opening(1),
    StartKind::Splitting { first: true },
    StartKind::Grown,
    StartKind::Opening(2),
    StartKind::Opening(3),
    StartKind::Opening(4),
];

/// One of this number of further starts is by ADMM, the others are grown.
const SPLITTINGS: usize = 3;

/// The data from which starts are made.
pub(super) struct Material {
    /// Rows, one for each column, that make a feasible point.
    pub(super) selection: Vec<usize>,
    /// Eigenvectors of C for its smallest eigenvalues, n×r.
    pub(super) basis: Array2<f64>,
    /// The basis, rotated by varimax.
    pub(super) rotated: Array2<f64>,
    /// Feasible points from which the first chains start.
    pub(super) points: Vec<Array2<f64>>,
    /// The start passed by the caller.
    pub(super) given: Option<Array2<f64>>,
    /// Rows with large entries in the eigenvectors.
    pub(super) pool: Vec<usize>,
    /// True if supports must overlap.
    dense: bool,
}

impl Material {
    pub(super) fn new(
        selection: Vec<usize>,
        basis: Array2<f64>,
        given: Option<Array2<f64>>,
        (most, dense): (usize, bool),
        go_on: GoOn<'_>,
    ) -> Self {
        Self {
            selection,
            pool: support::largest_rows(&basis, most),
            rotated: varimax_while(basis.view(), go_on),
            points: Vec::new(),
            basis,
            given,
            dense,
        }
    }

    /// Returns the kind of start `number`: a given start, the best kinds, then grown ones and ADMM in turn.
    pub(super) fn kind(&self, number: usize) -> StartKind {
        let Some(index) = number.checked_sub(usize::from(self.given.is_some())) else {
            return StartKind::Given;
        };
        let mut first = FIRST.iter().copied().filter(|kind| match kind {
            StartKind::Opening(point) => *point < self.points.len(),
            _ => true,
        });
        let strong = first.clone().count();
        // ADMM is the best start where supports must overlap.
        let index = match index {
            1 if self.dense => 3.min(strong - 1),
            3 if self.dense => 1,
            _ => index,
        };
        first.nth(index).unwrap_or(match (index - index.min(strong)) % SPLITTINGS {
            1 => StartKind::Splitting { first: false },
            _ => StartKind::Grown,
        })
    }
}

/// Steps of the truncated power method on shared rows.
const POWER_STEPS: usize = 15;

/// Largest number of doublings of the steps of ADMM: most runs are short, and some long.
const DOUBLINGS: u32 = 4;

/// The kind of a perturbation.
#[derive(Debug, Clone, Copy)]
pub(super) enum Perturbation {
    /// One to three columns are made again.
    Renewal,
    /// Some entries are replaced by random ones.
    Swaps,
    Splitting,
}

/// Share of new columns in the work of new columns and swaps.
const REGROWN: f64 = 0.5;

/// Share of the work of perturbations by ADMM from the best point.
const ADMM_SHARE: f64 = 0.1;

/// Share of the work of perturbations by ADMM from the best point of a dense problem.
const DENSE_ADMM_SHARE: f64 = 0.5;

/// Size of the random rotation before ADMM.
const ROTATION: f64 = 0.1;

/// A given start with at most this multiple of the cardinality is reduced by drops; a denser one is
/// truncated.
const SURPLUS: usize = 2;

/// Returns the share of each kind of perturbation in the work of a chain, and the work of others before it.
pub(super) fn perturbations(model: &ColumnModel<'_>) -> Vec<(Perturbation, f64, f64)> {
    let admm = match model.is_dense() {
        true => DENSE_ADMM_SHARE,
        false => ADMM_SHARE,
    };
    let cheap = 1.0 - admm;
    let costly = LEAST_STEPS * gradient_work(model.form, model.weights.len());
    vec![
        (Perturbation::Renewal, REGROWN * cheap, 0.0),
        (Perturbation::Swaps, (1.0 - REGROWN) * cheap, 0.0),
        (Perturbation::Splitting, admm, costly),
    ]
}

/// Maker of starts and perturbations, with its own random numbers.
pub(super) struct Maker<'a> {
    pub(super) mover: SupportMover<'a>,
    material: &'a Material,
    directions: &'a Directions<'a>,
    random: Xoshiro256PlusPlus,
}

impl<'a> Maker<'a> {
    pub(super) fn new(
        mover: SupportMover<'a>,
        (material, directions): (&'a Material, &'a Directions<'a>),
        seed: u64,
    ) -> Self {
        Self { mover, material, directions, random: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    fn cut(&self) -> Cut<'_> {
        Cut { model: self.mover.model, work: self.mover.work }
    }

    fn columns(&self) -> usize {
        self.material.selection.len()
    }

    /// Returns the point with one row for each column.
    fn selection(&self) -> Option<SparsePoint> {
        let (model, work) = (self.mover.model, self.mover.work);
        let mut parts: Vec<Part> = self.material.selection.iter().map(|&i| Part::unit(i)).collect();
        for (t, part) in parts.iter_mut().enumerate() {
            let row = part.rows[0];
            part.value = 0.5 * model.weights[t] * model.diagonal[row] + model.slope(row, t);
            model.rules.included[t].iter().for_each(|&i| part.insert(i, 0.0));
        }
        let point = SparsePoint { parts };
        if model.rules.included.iter().all(Vec::is_empty) {
            return Some(point);
        }
        let all: Vec<usize> = (0..self.columns()).collect();
        model.optimised(point.clone(), &all, None, work).or(Some(point))
    }

    /// Returns a start.
    pub(super) fn start(&mut self, kind: StartKind) -> Option<State> {
        let material = self.material;
        let rotated = &material.rotated;
        let point = match kind {
            StartKind::Given => return self.given(material.given.as_ref()?),
            StartKind::Splitting { first: true } => {
                let admm = self.cut().by_admm(|| rotated.clone(), 0.0, LEAST_STEPS);
                admm.or_else(|| self.grown())
            }
            StartKind::Splitting { first: false } => {
                let (seed, raise) = (self.random.random(), self.random.random());
                let steps = self.length();
                let turned = || perturbed(rotated, ROTATION, seed);
                let admm = self.cut().by_admm(turned, raise, steps);
                admm.or_else(|| self.grown())
            }
            StartKind::Opening(number) => {
                let model = self.mover.model;
                let point = model.point_of(&material.points[number], self.mover.work);
                point.map(|point| self.cut().optimised(point))
            }
            StartKind::Grown => self.grown(),
        };
        Some(self.mover.state(point.or_else(|| self.selection())?))
    }

    /// Returns the number of steps of ADMM: each doubled number is half as likely.
    fn length(&mut self) -> f64 {
        let doublings = self.random.random::<u64>().trailing_zeros().min(DOUBLINGS);
        STEPS * f64::from(1u32 << doublings)
    }

    /// Returns a given start, truncated to the cardinality.
    fn given(&mut self, x: &Array2<f64>) -> Option<State> {
        let rules = &self.mover.model.rules;
        let total = rules.cardinality.total();
        let mut cut = x.clone();
        cut.indexed_iter_mut().filter(|((i, t), _)| !rules.admits(*i, *t)).for_each(|(_, v)| *v = 0.0);
        if cut.iter().filter(|&&v| v != 0.0).count() <= SURPLUS * total {
            let mut parts: Vec<Part> = cut.columns().into_iter().map(Part::of).collect();
            for (part, rows) in parts.iter_mut().zip(&rules.included) {
                rows.iter().for_each(|&i| part.insert(i, 0.0));
            }
            if parts.iter().all(|part| !part.rows.is_empty()) {
                let all: Vec<usize> = (0..parts.len()).collect();
                let optimised = self.mover.model.optimised(SparsePoint { parts }, &all, None, self.mover.work);
                if let Some(state) = optimised.and_then(|point| self.mover.shrunk(point)) {
                    return Some(state);
                }
            }
        }
        let near = self.cut().feasible(self.cut().largest(&cut));
        let point = near.or_else(|| self.selection())?;
        Some(self.mover.state(point))
    }

    /// Grows every column anew, one after the other.
    fn grown(&mut self) -> Option<SparsePoint> {
        let mut point = self.selection()?;
        let mut order: Vec<usize> = (0..self.columns()).collect();
        order.shuffle(&mut self.random);
        for (k, &t) in order.iter().enumerate() {
            let count = match &self.mover.model.rules.cardinality {
                Cardinality::Columns(counts) => counts[t],
                Cardinality::Total(total) => {
                    // Roughly equal shares for the remaining columns.
                    let used: usize = order[..k].iter().map(|&s| point.parts[s].rows.len()).sum();
                    let (left, later) = (total.saturating_sub(used), order.len() - k - 1);
                    let factor = match later {
                        0 => 1.0,
                        _ => self.random.random_range(0.5..1.5),
                    };
                    let share = factor * left as f64 / (later + 1) as f64;
                    (share as usize).clamp(1, left.saturating_sub(later).max(1))
                }
            };
            if let Some(next) = self.regrown(&point, t, count) {
                point = next;
            }
        }
        Some(self.within(point)?.point)
    }

    /// Reduces the point to the cardinality.
    fn within(&self, point: SparsePoint) -> Option<State> {
        self.mover.shrunk(point)
    }

    /// Replaces column t by the best of some runs of truncated power iterations, with at most `count` entries:
    /// on rows of no other column, or orthogonally to the other columns.
    fn regrown(&mut self, point: &SparsePoint, t: usize, count: usize) -> Option<SparsePoint> {
        let (model, work) = (self.mover.model, self.mover.work);
        if self.mover.is_late() {
            return None;
        }
        // Half by the point, which shows how many columns share rows in good ones, and half by chance.
        let shares = 0.5 * (0.5 + point.sharing() as f64 / point.parts.len() as f64);
        let mut next = point.clone();
        if model.rules.joins(1) && self.random.random_bool(shares) {
            next.parts[t] = self.truncated(point, t, count)?;
            let mut touched = point.group(t);
            touched.extend(next.group(t));
            touched.sort_unstable();
            touched.dedup();
            return model.optimised(next, &touched, None, work);
        }
        let free = model.rules.unshared(&point.parts, t);
        let from = self.directions(&point.parts[t], t, &free);
        next.parts[t] = Powers { model, work, price: 0.0 }.column(t, count, &free, from)?;
        Some(next)
    }

    /// Returns random directions for column t: a mixture of leading ones, a column of C, and the column itself without
    /// some of its entries.
    fn directions(&mut self, part: &Part, t: usize, free: &[bool]) -> Vec<Vec<f64>> {
        let (model, work) = (self.mover.model, self.mover.work);
        let powers = Powers { model, work, price: 0.0 };
        let p = self.directions.len();
        let mixture = Array2::from_shape_fn((p, 1), |_| StandardNormal.sample(&mut self.random));
        let mut directions = vec![self.directions.mixture(&mixture, work)];
        let mut parts = Vec::new();
        let material = self.material;
        parts.extend(self.row(|i| free[i], &material.pool).map(Part::unit));
        let mut own = part.clone();
        let share = self.random.random_range(support::KEPT.0..support::KEPT.1);
        for &i in &part.rows {
            if !self.random.random_bool(share) {
                own.remove(i);
            }
        }
        parts.extend(own.normalise().then_some(own));
        let pairs: Vec<(usize, &Part)> = parts.iter().map(|part| (t, part)).collect();
        let gradients = model.gradients_of(&pairs, work);
        let ascents = parts.iter().zip(gradients);
        directions.extend(ascents.map(|(part, gradient)| powers.ascent(t, part, gradient)));
        directions
    }

    /// Returns a random row that column t may have.
    fn row(&mut self, admitted: impl Fn(usize) -> bool, near: &[usize]) -> Option<usize> {
        let n = self.mover.model.order();
        (0..30).find_map(|_| {
            let i = support::random_row(&mut self.random, near, n);
            admitted(i).then_some(i)
        })
    }

    /// Runs the truncated power method orthogonally to the other columns, from a random combination of
    /// eigenvectors.
    fn truncated(&mut self, point: &SparsePoint, t: usize, count: usize) -> Option<Part> {
        let (model, work) = (self.mover.model, self.mover.work);
        let mixture: Array2<f64> =
            Array2::from_shape_fn((self.columns(), 1), |_| StandardNormal.sample(&mut self.random));
        let mut y: Vec<f64> = self.material.basis.dot(&mixture).into_raw_vec_and_offset().0;
        let open = model.rules.open(&point.parts, t);
        let mut part = Part::default();
        for _ in 0..POWER_STEPS {
            work.spend(SCALAR * (10 * y.len()) as f64);
            for (_, other) in point.parts.iter().enumerate().filter(|(s, _)| *s != t) {
                let along = other.along(&y);
                other.entries().for_each(|(i, v)| y[i] -= along * v);
            }
            let mut next = largest_of(&model.rules, t, count, |i| y[i], |i| open[i]);
            if !next.normalise() || self.mover.is_late() {
                return None;
            }
            let unchanged = next.rows == part.rows;
            part = next;
            if unchanged {
                break;
            }
            let gradient = model.gradient(&part, t, work);
            y = gradient.iter().map(|g| -g).collect();
            let entries = part.entries();
            entries.for_each(|(i, v)| y[i] += model.shift(t) * v);
        }
        Some(part)
    }

    /// Returns a perturbed point, by the given kind of perturbation; None if it failed.
    pub(super) fn perturbed(&mut self, state: &State, kind: Perturbation) -> Option<State> {
        let costly = self.mover.model.is_costly(&state.point);
        let perturbed = match if costly { Perturbation::Splitting } else { kind } {
            Perturbation::Renewal => {
                let r = self.columns();
                let mut order: Vec<usize> = (0..r).collect();
                order.shuffle(&mut self.random);
                order.truncate(self.random.random_range(1..=r.min(3)));
                self.replaced(&state.point, &order)
            }
            Perturbation::Swaps => self.swapped(state),
            Perturbation::Splitting => {
                let (size, seed) = (ROTATION * self.random.random::<f64>(), self.random.random());
                let dense = || state.point.dense(self.mover.model.order());
                let steps = self.length();
                self.cut()
                    .by_admm(|| perturbed(&dense(), size, seed), 1.0, steps)
                    .or_else(|| (!costly).then(|| self.swapped(state)).flatten())
            }
        };
        self.within(perturbed?)
    }

    /// Grows some columns anew, or swaps two columns with different limits.
    fn replaced(&mut self, point: &SparsePoint, order: &[usize]) -> Option<SparsePoint> {
        let mut point = point.clone();
        let counts = point.counts();
        let rules = &self.mover.model.rules;
        let fits = |from: usize, to: usize| {
            let rows = &point.parts[from].rows;
            rules.included[to].is_empty() && rows.iter().all(|&i| rules.admits(i, to))
        };
        if let ([s, t, ..], Cardinality::Columns(most)) = (order, &rules.cardinality)
            && most[*s] != most[*t]
            && fits(*s, *t)
            && fits(*t, *s)
            && self.random.random_bool(0.5)
        {
            point.parts.swap(*s, *t);
            let all: Vec<usize> = (0..counts.len()).collect();
            return self.mover.model.optimised(point, &all, None, self.mover.work);
        }
        let mut remaining: usize = order.iter().map(|&t| counts[t]).sum();
        for (k, &t) in order.iter().enumerate() {
            let later = order.len() - k - 1;
            let count = match &self.mover.model.rules.cardinality {
                Cardinality::Columns(most) => most[t],
                Cardinality::Total(_) if later == 0 => remaining,
                Cardinality::Total(_) => {
                    let about = counts[t] as f64 * self.random.random_range(0.6..1.5);
                    (about.round() as usize).clamp(1, remaining.saturating_sub(later).max(1))
                }
            };
            remaining = remaining.saturating_sub(count);
            point = self.regrown(&point, t, count)?;
        }
        Some(point)
    }

    /// Replaces some entries by random rows, which are dropped from the columns that have them.
    fn swapped(&mut self, state: &State) -> Option<SparsePoint> {
        let (model, work) = (self.mover.model, self.mover.work);
        let mut point = state.point.clone();
        let total: usize = point.counts().iter().sum();
        let times = support::swaps(&mut self.random, total);
        // If true, rows may be shared from now on.
        let overlap = self.random.random_bool(0.5);
        let mut touched: Vec<usize> = Vec::new();
        for _ in 0..times {
            let t = self.random.random_range(0..point.parts.len());
            let near = self.mover.near(state, t);
            let out: Vec<usize> = (point.parts[t].rows.iter().copied()).filter(|&i| !model.rules.holds(i, t)).collect();
            let taken = &point.parts[t].rows.clone();
            let found = self.row(|i| model.rules.admits(i, t) && taken.binary_search(&i).is_err(), &near);
            let (Some(&gone), Some(row)) = (out.choose(&mut self.random), found) else {
                continue;
            };
            let owners: Vec<usize> =
                (0..point.parts.len()).filter(|&s| s != t && point.parts[s].entry(row).is_some()).collect();
            if owners.iter().any(|&s| point.parts[s].rows.len() == 1 || model.rules.holds(row, s)) {
                continue;
            }
            touched.extend(point.group(t));
            let joins = model.rules.joins(owners.len());
            for s in owners {
                let shared = joins && (overlap || point.meet(s, t));
                if !shared {
                    touched.extend(point.group(s));
                    point.parts[s].remove(row);
                }
            }
            let size = 1.0 / (point.parts[t].rows.len() as f64).sqrt();
            let sign = if model.rules.nonnegative || self.random.random_bool(0.5) { size } else { -size };
            point.parts[t].insert(row, sign);
            point.parts[t].remove(gone);
        }
        touched.sort_unstable();
        touched.dedup();
        if !touched.iter().all(|&t| point.parts[t].normalise()) {
            return None;
        }
        model.optimised(point, &touched, None, work)
    }
}
