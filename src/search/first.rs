//! First points from a few products, before anything else is computed: truncated power iterations for ℓ0, and
//! rows that belong to rays for X ≥ 0.

use ndarray::{Array2, s};

use crate::heuristic::{Kind, Profile};
use crate::limits::TaskWork;
use crate::manifold::{varimax_while, varimax_work};
use crate::objective::QuadraticForm;
use crate::problem::{Cardinality, Problem, Sparsity};
use crate::support::{Axes, ColumnModel, Powers, Rules, STAGES, rays};

/// Returns whether a problem has first points.
pub(super) fn fits(problem: &Problem<'_>, form: &dyn QuadraticForm, profile: &Profile) -> bool {
    let kind = match profile.kind {
        Kind::Count => true,
        Kind::Nonnegative => !problem.penalty.sparsifies(),
        _ => false,
    };
    kind && !profile.mixed && !profile.rotations && form.is_trace_form()
}

/// Returns the name of the method and its point. For X ≥ 0 it begins at another `point` if there is one, or at the axes,
/// `turned` by varimax. None if there is none, or the task expired.
pub(super) fn first_point(
    problem: &Problem<'_>,
    (form, axes): (&dyn QuadraticForm, &Axes<'_>),
    (turned, point): (bool, Option<&Array2<f64>>),
    work: &TaskWork<'_>,
) -> Option<(&'static str, Array2<f64>)> {
    if problem.penalty.count().is_some() {
        return (!turned).then(|| powers(problem, (form, axes), work)).flatten().map(|x| ("powers", x));
    }
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
