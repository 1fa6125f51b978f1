//! Search under a limit on the number of nonzeros.

use std::cmp::Reverse;

use ndarray::{Array2, Axis, s};

use super::limited::{Limited, searched};
use super::powered::on_own_rows;
use super::starts::{self, Maker, Material, Perturbation};
use crate::error::Result;
use crate::limits::TaskWork;
use crate::manifold::varimax_work;
use crate::objective::QuadraticForm;
use crate::problem::{Cardinality, Sparsity};
use crate::report::AutoSolution;
use crate::search::chains::{FIRST_ROUND, SearchSpace};
use crate::search::incumbent::Watched;
use crate::search::stationary::StationarySupports;
use crate::start::is_spectrum_exact;
use crate::support::opening::{self, Opening};
use crate::support::{Axes, ColumnModel, Directions, Powers, Rules, STAGES, State, SupportMover, weights};
use crate::threads::Threads;

/// Number of smaller limits whose points are also used: the limit rounded down, its half and its quarter.
const SMALLER: u32 = 3;

/// Products with C of a point of truncated power iterations, at least, beyond which a quick point comes first.
const QUICK: f64 = 300.0;

/// A first point.
#[derive(Clone, Copy)]
enum First {
    /// A [kind](opening) for the limit (0) or a smaller one.
    Opening(usize, usize),
    /// Truncated powers of a stage.
    Powers(usize),
}

/// The first points, in the order of their cost. Those for smaller limits are shared by similar limits, and a doubled limit
/// has those of its half. Only the limit rounded down and its half have points by ADMM.
const FIRST: [First; 19] = {
    use First::{Opening, Powers};
    use opening::{ADMM, LARGEST, MERGED, PRINCIPAL, TRUNCATED};
    [
        Opening(PRINCIPAL, 0),
        Opening(LARGEST, 0),
        Opening(LARGEST, 1),
        Opening(LARGEST, 2),
        Opening(LARGEST, 3),
        Opening(TRUNCATED, 0),
        Opening(TRUNCATED, 1),
        Opening(TRUNCATED, 2),
        Opening(TRUNCATED, 3),
        Powers(0),
        Opening(MERGED, 0),
        Powers(1),
        Opening(ADMM, 0),
        Opening(ADMM, 1),
        Opening(ADMM, 2),
        Opening(PRINCIPAL, 1),
        Opening(PRINCIPAL, 2),
        Opening(PRINCIPAL, 3),
        Powers(2),
    ]
};

/// Work of the moves from a first point that is the lowest so far.
const IMPROVEMENT: f64 = 1e8;

/// Number of best points without search from which chains start.
const OPENINGS: usize = 5;

/// Most columns of a stored C for which the lower bound on f is computed.
const BOUNDED: usize = 1500;

/// Largest total cardinality that the lower bound on f distributes over the columns.
const SHARED: usize = 400;

/// Minimises f under a limit on nonzero entries, from `x0` truncated to it.
///
/// # Errors
/// If D is not diagonal, or no matrix with orthonormal columns satisfies the `sparsity`.
pub(super) fn minimized(
    limited: &Limited<'_>,
    sparsity: &Sparsity,
    x0: Option<Array2<f64>>,
    watched: Watched<'_>,
) -> Result<AutoSolution> {
    let (form, threads) = (limited.form, limited.threads);
    let weights = weights(form, limited.problem.components)?;
    let (mut rules, selection) = Rules::checked(sparsity, &gains(form, &weights))?;
    let order = ColumnOrder::of(&mut rules, &weights, form.linear().is_some());
    let x0 = x0.map(|x0| order.sorted(&x0));
    let first = vec![order.given(&selected(form, &selection, &rules, x0.as_ref()))];
    let truncated = |y: &Array2<f64>| on_own_rows(&rules, &order.sorted(y)).map(|x| order.given(&x));
    let prepared = |work: &TaskWork<'_>| {
        let own = (weights.clone(), selection.clone());
        EntrySets::new(form, (rules.clone(), order.clone()), own, x0.clone(), threads, work)
    };
    searched(limited, first, truncated, prepared, watched)
}

/// The order of the columns in a search: columns that can be exchanged come by descending limits, so that the order of equal
/// problems does not matter.
#[derive(Clone)]
struct ColumnOrder {
    /// The given column of each sorted one, and the inverse.
    sorted: Vec<usize>,
    given: Vec<usize>,
}

impl ColumnOrder {
    /// Sorts the limits of the rules.
    fn of(rules: &mut Rules, weights: &[f64], linear: bool) -> Self {
        let mut sorted: Vec<usize> = (0..weights.len()).collect();
        if let Some(limits) = rules.exchangeable(weights, linear) {
            sorted.sort_by_key(|&t| Reverse(limits[t]));
            rules.cardinality = Cardinality::Columns(sorted.iter().map(|&t| limits[t]).collect());
        }
        let mut given = sorted.clone();
        sorted.iter().enumerate().for_each(|(place, &t)| given[t] = place);
        Self { sorted, given }
    }

    fn sorted(&self, x: &Array2<f64>) -> Array2<f64> {
        x.select(Axis(1), &self.sorted)
    }

    fn given(&self, x: &Array2<f64>) -> Array2<f64> {
        x.select(Axis(1), &self.given)
    }
}

/// Returns the gain of each row as the only nonzero of each column, scaled to 0..1, r×n.
fn gains(form: &dyn QuadraticForm, weights: &[f64]) -> Array2<f64> {
    let (diagonal, linear) = (form.diagonal(), form.linear());
    let mut gains = Array2::from_shape_fn((weights.len(), diagonal.len()), |(t, i)| {
        -0.5 * weights[t] * diagonal[i] - linear.map_or(0.0, |l| l[[i, t]])
    });
    let least = gains.iter().fold(f64::INFINITY, |m, &v| m.min(v));
    let spread = gains.iter().fold(0.0f64, |m, &v| m.max(v - least));
    let unit = if spread > 0.0 { spread } else { 1.0 };
    gains.mapv_inplace(|v| (v - least) / unit);
    gains
}

/// Returns the selection, or the given start if it is no worse and satisfies the rules.
fn selected(form: &dyn QuadraticForm, selection: &[usize], rules: &Rules, x0: Option<&Array2<f64>>) -> Array2<f64> {
    let mut x = Array2::zeros((form.order(), selection.len()));
    for (t, &i) in selection.iter().enumerate() {
        x[[i, t]] = 1.0;
    }
    let serial = Threads::serial();
    match x0 {
        Some(x0) if rules.keep(x0) && form.value(x0.view(), &serial) <= form.value(x.view(), &serial) => x0.clone(),
        _ => x,
    }
}

/// Returns a lower bound of f, if one is available, else −∞. Let `b_k` be the largest sum of the k largest
/// magnitudes of a row of C, with its diagonal entry among them. The bounds are `−½ Σ_t b_{k_t}`, by
/// Gershgorin's theorem, and −½ times the sum of the largest eigenvalues of −C.
fn bound(model: &ColumnModel<'_>, material: &Material) -> f64 {
    let n = model.order();
    let plain = model.form.is_trace_form();
    if !plain || n > BOUNDED || !model.is_whole() {
        return f64::NEG_INFINITY;
    }
    let spectral = match is_spectrum_exact(n) {
        true => model.form.value(material.basis.view(), &Threads::serial()),
        false => f64::NEG_INFINITY,
    };
    let r = material.selection.len();
    let most = match &model.rules.cardinality {
        Cardinality::Total(total) => (total + 1 - r).min(n),
        Cardinality::Columns(counts) => counts.iter().copied().max().unwrap_or(1),
    };
    // b_1, b_2, …
    let mut sums = vec![f64::NEG_INFINITY; most];
    let mut row = Vec::with_capacity(n);
    for i in 0..n {
        row.clear();
        model.gathered(i, (0..n).filter(|&j| j != i), &mut row);
        row.iter_mut().for_each(|v| *v = v.abs());
        row.sort_by(|a, b| b.total_cmp(a));
        let mut sum = -model.diagonal[i];
        for (k, best) in sums.iter_mut().enumerate() {
            sum += if k > 0 { row[k - 1] } else { 0.0 };
            *best = best.max(sum);
        }
    }
    let sparse = match &model.rules.cardinality {
        Cardinality::Columns(counts) => counts.iter().map(|&k| sums[k - 1]).sum(),
        Cardinality::Total(total) if *total <= SHARED => {
            // Distributes the total optimally over the columns, one after the other.
            let mut best = vec![f64::NEG_INFINITY; total + 1];
            best[0] = 0.0;
            for _ in 0..r {
                best = (0..=*total)
                    .map(|k| {
                        let shares = (1..=k.min(most)).map(|own| sums[own - 1] + best[k - own]);
                        shares.fold(f64::NEG_INFINITY, f64::max)
                    })
                    .collect();
            }
            best.into_iter().fold(f64::NEG_INFINITY, f64::max)
        }
        Cardinality::Total(_) => f64::INFINITY,
    };
    spectral.max(-0.5 * sparse)
}

/// The search space of points given by their entries.
struct EntrySets<'a> {
    model: ColumnModel<'a>,
    order: ColumnOrder,
    material: Material,
    /// Models for the limit rounded down, and for halves and quarters of it.
    smaller: Vec<ColumnModel<'a>>,
    /// The model for a limit of n nonzeros, within which supports can be disjoint; only if they must overlap.
    disjoint: Option<ColumnModel<'a>>,
    directions: Directions<'a>,
}

impl<'a> EntrySets<'a> {
    /// Prepares the search space; None if the time ran out.
    fn new(
        form: &'a dyn QuadraticForm,
        (rules, order): (Rules, ColumnOrder),
        (weights, selection): (Vec<f64>, Vec<usize>),
        given: Option<Array2<f64>>,
        threads: &Threads,
        work: &TaskWork<'_>,
    ) -> Option<Self> {
        let (n, r) = (form.order(), selection.len());
        let go_on = || !work.expired();
        let axes = Axes::leading(form, (r, false), threads, work)?;
        work.spend(varimax_work(n, r));
        let most = (4 * rules.cardinality.total() + 20).min(n);
        let model = ColumnModel::new(form, rules, weights, axes.spectrum, work)?;
        let basis = axes.vectors.slice(s![.., ..r]).to_owned();
        Some(Self {
            directions: axes.directions(form, work)?,
            material: Material::new(selection, basis, given, (most, model.is_dense()), &go_on),
            smaller: (0..SMALLER).filter_map(|halvings| Some(model.with(model.rules.smaller(halvings)?))).collect(),
            disjoint: model.is_dense().then(|| model.disjoint()).flatten(),
            model,
            order,
        })
    }

    fn opening<'s>(&'s self, model: &'s ColumnModel<'a>, work: &'s TaskWork<'s>) -> Opening<'s> {
        let Material { basis, rotated, .. } = &self.material;
        Opening { model, basis, rotated, directions: &self.directions, work }
    }

    fn maker<'s>(&'s self, seed: u64, work: &'s TaskWork<'s>) -> Maker<'s> {
        Maker::new(self.mover(work), (&self.material, &self.directions), seed)
    }

    /// Returns the point of a kind for the limit (0) or a smaller one; None if another point is the same.
    fn opened(&self, limit: usize, kind: usize, work: &TaskWork<'_>) -> Option<Array2<f64>> {
        let model = match limit.checked_sub(1) {
            None => &self.model,
            Some(limit) => self.smaller.get(limit)?,
        };
        let known = limit == 1 && model.rules.cardinality == self.model.rules.cardinality;
        let wanted = match kind {
            opening::ADMM => limit == 1 || limit == 2 || limit == 0 && self.smaller.is_empty(),
            _ => !known,
        };
        wanted.then(|| self.opening(model, work).point(kind)).flatten()
    }

    /// Returns a point of truncated power iterations, on disjoint supports if those of the limit must overlap.
    fn powered(&self, stage: (usize, usize), work: &TaskWork<'_>) -> Option<Array2<f64>> {
        let model = match self.model.is_dense() {
            true => self.disjoint.as_ref()?,
            false => &self.model,
        };
        let powers = Powers { model, work, price: 0.0 };
        let x = powers.point(&self.directions, stage)?.dense(model.order());
        self.model.rules.keep(&x).then_some(x)
    }

    fn mover<'s>(&'s self, work: &'s TaskWork<'s>) -> SupportMover<'s> {
        SupportMover { model: &self.model, work }
    }
}

impl SearchSpace for EntrySets<'_> {
    type State = State;
    type Point = Array2<f64>;
    type Kind = Perturbation;

    const POINTS: usize = FIRST.len();

    fn point(&self, number: usize, work: &TaskWork<'_>) -> Option<Array2<f64>> {
        match FIRST[number] {
            First::Opening(kind, limit) => self.opened(limit, kind, work),
            // A small problem has no need of a quick point.
            First::Powers(0) if QUICK * self.product_work() < FIRST_ROUND => None,
            First::Powers(stage) => self.powered(STAGES[stage], work),
        }
    }

    fn matrix(&self, point: &Array2<f64>) -> Array2<f64> {
        self.order.given(point)
    }

    fn improved(&self, x: &Array2<f64>, work: &TaskWork<'_>) -> Option<Array2<f64>> {
        let point = self.model.point_of(x, work)?;
        if self.model.is_costly(&point) {
            return None;
        }
        let mover = self.mover(work);
        let mut state = mover.state(point);
        mover.fill(&mut state, f64::INFINITY);
        self.descend(&mut state, &mut StationarySupports::default(), work.spent() + IMPROVEMENT, work);
        Some(state.point.dense(self.model.order()))
    }

    fn begin_from(&mut self, points: Vec<Array2<f64>>) {
        let value = |x: &Array2<f64>| self.model.form.value(x.view(), &Threads::serial());
        let mut valued: Vec<_> = points.into_iter().map(|x| (value(&x), x)).collect();
        valued.sort_by(|a, b| a.0.total_cmp(&b.0));
        valued.dedup_by(|a, b| a.0 == b.0);
        valued.truncate(OPENINGS);
        self.material.points = valued.into_iter().map(|point| point.1).collect();
    }

    fn bound(&self, value: f64) -> f64 {
        let (model, r) = (&self.model, self.material.selection.len());
        match opening::admits_all_rows(model.form, &model.rules, r) {
            true => value,
            false => bound(model, &self.material),
        }
    }

    fn choice(&self) -> (usize, usize) {
        let (n, r) = (self.model.order(), self.material.selection.len());
        let rules = &self.model.rules;
        (rules.cardinality.total().min(rules.most()), n * r)
    }

    fn product_work(&self) -> f64 {
        let model = &self.model;
        model.product_work(model.rules.cardinality.total().div_ceil(model.weights.len()))
    }

    fn start(&self, number: usize, seed: u64, work: &TaskWork<'_>) -> Option<State> {
        self.maker(seed, work).start(self.material.kind(number))
    }

    fn perturbations(&self) -> Vec<(Perturbation, f64, f64)> {
        starts::perturbations(&self.model)
    }

    fn perturbed(&self, state: &State, (kind, seed): (Perturbation, u64), work: &TaskWork<'_>) -> Option<State> {
        self.maker(seed, work).perturbed(state, kind)
    }

    fn support(&self, state: &State) -> Vec<usize> {
        state.point.places(self.model.order())
    }

    fn width(&self, state: &State) -> Option<usize> {
        let count: usize = state.point.counts().iter().sum();
        (!self.model.is_costly(&state.point)).then(|| (count / 8).max(1))
    }

    fn fill(&self, state: &mut State, spent: f64, work: &TaskWork<'_>) {
        self.mover(work).fill(state, spent);
    }

    fn step(&self, state: &mut State, goal: f64, width: &mut usize, work: &TaskWork<'_>) -> bool {
        self.mover(work).step(state, goal, width)
    }

    fn name(&self, number: usize) -> &'static str {
        self.material.kind(number).name()
    }

    fn value(&self, state: &State) -> f64 {
        state.point.value()
    }

    fn dense(&self, state: &State) -> Array2<f64> {
        self.order.given(&state.point.dense(self.model.order()))
    }

    fn scale(&self) -> f64 {
        self.model.scale
    }
}
