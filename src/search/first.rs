//! First points from a few products, before anything else is computed: truncated power iterations for ℓ0, and
//! rows that belong to rays for X ≥ 0.

use std::sync::OnceLock;

use ndarray::{Array2, Axis, s};

use crate::heuristic::{Kind, Profile};
use crate::limits::TaskWork;
use crate::objective::{QuadraticForm, gradient_work};
use crate::problem::{Cardinality, Problem, Sparsity};
use crate::support::{Axes, ColumnModel, Powers, Rules, STAGES, rays};
use crate::threads::Threads;

/// Returns the name of the method and its point; the axes are kept. None if there is none for the problem, or the task
/// expired.
pub(super) fn first_point<'a>(
    problem: &Problem<'_>,
    (form, profile, axes): (&'a dyn QuadraticForm, &Profile, &OnceLock<Option<Axes<'a>>>),
    threads: &Threads,
    work: &TaskWork<'_>,
) -> Option<(&'static str, Array2<f64>)> {
    if profile.mixed || profile.rotations || !form.is_trace_form() {
        return None;
    }
    let leading = || Axes::leading(form, problem.components, threads, work);
    let axes = || axes.get_or_init(leading).as_ref();
    match profile.kind {
        Kind::Count => Some(("powers", powers(problem, (form, axes()?), work)?)),
        Kind::Nonnegative if !problem.penalty.sparsifies() => {
            let r = problem.components;
            let axes = axes()?.vectors.slice(s![.., ..r]).to_owned();
            work.spend(gradient_work(form, r));
            let image = form.apply_while(axes.view(), threads, &|| !work.expired())?;
            Some(("rays", rays(form, outward(image), work)?))
        }
        _ => None,
    }
}

/// Returns the columns of −C V, for leading axes V, with the signs of their heavier parts.
fn outward(mut y: Array2<f64>) -> Array2<f64> {
    for mut column in y.axis_iter_mut(Axis(1)) {
        let heavier: f64 = column.iter().map(|v| v * v.abs()).sum();
        let norm = column.dot(&column).sqrt().max(f64::MIN_POSITIVE);
        column *= heavier.signum() / norm.sqrt();
    }
    y
}

/// Returns a point of truncated power iterations with the penalty of a nonzero.
fn powers(
    problem: &Problem<'_>,
    (form, axes): (&dyn QuadraticForm, &Axes<'_>),
    work: &TaskWork<'_>,
) -> Option<Array2<f64>> {
    let (n, r) = (form.order(), problem.components);
    let price = problem.penalty.count()?;
    let sparsity = Sparsity::new(Cardinality::Total(n * r)).with_nonnegative(problem.penalty.nonnegative());
    let rules = Rules::new(&sparsity, n, r).ok()?;
    let model = ColumnModel::new(form, rules, vec![1.0; r], axes.spectrum, work)?;
    let directions = axes.directions(form, work)?;
    let powers = Powers { model: &model, work, price };
    Some(powers.point(&directions, STAGES[0])?.dense(n))
}
