//! First points from a few products, before anything else is computed: truncated power iterations for ℓ0, and
//! rows that belong to rays for X ≥ 0.

use std::sync::OnceLock;

use ndarray::{Array2, s};

use crate::heuristic::{Kind, Profile};
use crate::limits::TaskWork;
use crate::objective::QuadraticForm;
use crate::problem::{Cardinality, Problem, Sparsity};
use crate::support::{Axes, ColumnModel, Powers, Rules, STAGES, rays};
use crate::threads::Threads;

/// Name that reports give to points by rays.
pub(super) const RAYS: &str = "rays";

/// Returns the name of the method and its point, for X ≥ 0 from another `point` if there is one; the axes are kept. None if
/// there is none for the problem, or the task expired.
pub(super) fn first_point<'a>(
    problem: &Problem<'_>,
    (form, profile, axes): (&'a dyn QuadraticForm, &Profile, &OnceLock<Option<Axes<'a>>>),
    point: Option<&Array2<f64>>,
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
        Kind::Count => Some(("powers", powers(problem, (form, axes()?), work)?)),
        Kind::Nonnegative if !problem.penalty.sparsifies() => {
            let axes = axes()?;
            let from = point.map_or(axes.vectors.slice(s![.., ..problem.components]), |x| x.view());
            Some((RAYS, rays(form, from, axes.spectrum.1.max(0.0), work)?))
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
