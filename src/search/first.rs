//! First points from a few products, before anything else is computed: truncated power iterations for ℓ0, and
//! rows that belong to rays for X ≥ 0.

use std::sync::OnceLock;

use ndarray::{Array2, s};

use crate::heuristic::{Kind, Profile};
use crate::limits::TaskWork;
use crate::manifold::{varimax_while, varimax_work};
use crate::objective::QuadraticForm;
use crate::problem::{Cardinality, Problem, Sparsity};
use crate::support::{Axes, ColumnModel, Powers, Rules, STAGES, rays};
use crate::threads::Threads;

/// Returns the name of the method and its point; the axes are kept. For X ≥ 0 it begins at another `point` if there is one,
/// or at the axes, `turned` by varimax. None if there is none for the problem, or the task expired.
pub(super) fn first_point<'a>(
    problem: &Problem<'_>,
    (form, profile, axes): (&'a dyn QuadraticForm, &Profile, &OnceLock<Option<Axes<'a>>>),
    (turned, point): (bool, Option<&Array2<f64>>),
    threads: &Threads,
    work: &TaskWork<'_>,
) -> Option<(&'static str, Array2<f64>)> {
    if profile.mixed || profile.rotations || !form.is_trace_form() {
        return None;
    }
    let rough = profile.kind == Kind::Nonnegative;
    let leading = || Axes::leading(form, (problem.components, rough), threads, work);
    let axes = || axes.get_or_init(leading).as_ref();
    match profile.kind {
        Kind::Count if !turned => Some(("powers", powers(problem, (form, axes()?), work)?)),
        Kind::Nonnegative if !problem.penalty.sparsifies() => {
            let axes = axes()?;
            let leading = axes.vectors.slice(s![.., ..problem.components]);
            let from = match point {
                Some(point) => point.clone(),
                None if turned => {
                    work.spend(varimax_work(form.order(), problem.components));
                    varimax_while(leading, &|| !work.expired())
                }
                None => leading.to_owned(),
            };
            Some(("rays", rays(form, from.view(), axes.spectrum.1.max(0.0), work)?))
        }
        _ => None,
    }
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
