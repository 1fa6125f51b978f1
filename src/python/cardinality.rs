//! Solves with a limit on the nonzeros, or with few nonzero rows.

use std::sync::Arc;

use ndarray::Array2;
use pyo3::prelude::*;

use super::bound::{few, quadratic, reserve_bound, set_bound};
use super::checkpoint::Lent;
use super::guard::{guarded, released};
use super::input::{AnySmooth, Count, RowSparse, Run};
use super::memory::reserve;
use super::smooth::Trouble;
use super::strategy::auto_dict;
use super::watch::Watch;
use super::{Returned, StartPoint};
use crate::certificate::{Restriction, minimize_proved};
use crate::penalty::Penalty;
use crate::search::AutoSolution;
use crate::{
    Cardinality, Error, Monitor, Options, Problem, Result, RowSparsity, Signature, Sparsity,
    Threads, minimize_at_cardinality, minimize_row_sparse,
};

/// Rows for all columns alike, or for each column.
#[derive(FromPyObject)]
enum Chosen {
    All(Vec<usize>),
    Each(Vec<Vec<usize>>),
}

impl Chosen {
    /// Returns the entries in a matrix with r columns.
    fn entries(self, r: usize) -> Vec<(usize, usize)> {
        let each = match self {
            Self::All(rows) => vec![rows; r],
            Self::Each(each) => each,
        };
        let columns = each.into_iter().enumerate();
        columns
            .flat_map(|(t, rows)| rows.into_iter().map(move |i| (i, t)))
            .collect()
    }
}

/// `orthobcd.Cardinality`.
#[derive(FromPyObject)]
struct AnyCardinality {
    count: Count,
    nonnegative: bool,
    include: Chosen,
    exclude: Chosen,
}

/// A problem with an `orthobcd.Cardinality`.
#[derive(FromPyObject)]
pub(super) struct CardinalityProblem<'py> {
    smooth: AnySmooth<'py>,
    penalty: AnyCardinality,
    shape: (usize, usize),
}

/// Searches within a limit on the nonzeros.
#[pyfunction]
#[pyo3(signature = (problem, x0, project_x0, _solver, run, callback))]
pub(super) fn solve_cardinality<'py>(
    py: Python<'py>,
    problem: CardinalityProblem<'py>,
    x0: Option<StartPoint<'py>>,
    project_x0: bool,
    _solver: Option<Py<PyAny>>,
    run: Run,
    callback: Option<Py<PyAny>>,
) -> PyResult<Returned<'py>> {
    let (cardinality, r) = (problem.penalty, problem.shape.1);
    let restriction = few(cardinality.count.clone(), cardinality.nonnegative);
    let count: Cardinality = cardinality.count.into();
    let sparsity = Sparsity::new(count)
        .with_nonnegative(cardinality.nonnegative)
        .with_include(cardinality.include.entries(r))
        .with_exclude(cardinality.exclude.entries(r));
    let start = (x0, cardinality.nonnegative, project_x0);
    let whole = (&problem.smooth, problem.shape, restriction);
    solved(
        py,
        whole,
        start,
        &run,
        callback,
        |problem, x0, zero, options, threads, watch| {
            let sparsity = sparsity.clone().without_rows(zero, r);
            minimize_at_cardinality(problem, &sparsity, x0, options, threads, watch)
        },
    )
}

/// Runs a search for f without penalty, from `start`: x0, whether it is nonnegative, and whether projected.
fn solved<'py>(
    py: Python<'py>,
    (smooth, (n, r), restriction): (&AnySmooth<'py>, (usize, usize), Restriction),
    (x0, nonnegative, project): (Option<StartPoint<'py>>, bool, bool),
    run: &Run,
    callback: Option<Py<PyAny>>,
    search: impl Fn(
        &Problem<'_>,
        Option<Array2<f64>>,
        &[usize],
        &Options,
        &Threads,
        &mut dyn Monitor,
    ) -> Result<AutoSolution>
    + Sync,
) -> PyResult<Returned<'py>> {
    reserve(&smooth.stored(), (n, r), run.n_threads)?;
    let smooth = guarded(|| smooth.build(&Arc::new(Trouble::default())))?;
    if run.gap_tol.is_some() {
        reserve_bound(quadratic(&*smooth)?)?;
    }
    let threads = run.threads()?;
    let signature = Signature::stiefel(n);
    let problem = Problem::new(&*smooth, &Penalty::NONE, &signature, r)?;
    let file = Lent::begun(py, &problem, run.saved(), &threads)?;
    let mut watch = Watch::new(callback, 0.0).writing(file);
    let whole = (&*smooth, r, &threads);
    let x0 = x0
        .map(|x0| guarded(|| x0.point(py, whole, nonnegative, project, run, &mut watch)))
        .transpose()?;
    let (options, gap_tol) = (run.options(), run.gap_tol);
    let mut watch = watch.after(run.door());
    let (answer, bound) = released(py, || {
        let Some(gap_tol) = gap_tol else {
            let found = search(&problem, x0, &[], &options, &threads, &mut watch)?;
            return Ok((found, None));
        };
        let mut runs = Vec::new();
        let mut strategy = String::new();
        let (found, bound) = minimize_proved(
            (quadratic(&*smooth)?, r),
            &restriction,
            gap_tol,
            &options,
            &threads,
            &mut watch,
            |from, zero, options, watch| {
                let from = from.or_else(|| x0.clone());
                let found = search(&problem, from, zero, options, &threads, watch)?;
                runs.extend(found.runs);
                strategy = found.strategy;
                Ok(found.solution)
            },
        )?;
        Ok::<_, Error>((AutoSolution::new(found, strategy, runs), Some(bound)))
    })??;
    let out = auto_dict(py, answer, run)?;
    set_bound(&out, bound)?;
    Ok((out, watch.into_error()))
}

/// A problem with an `orthobcd.RowSparse`.
#[derive(FromPyObject)]
pub(super) struct RowProblem<'py> {
    smooth: AnySmooth<'py>,
    penalty: RowSparse,
    shape: (usize, usize),
}

/// Searches over sets of nonzero rows.
#[pyfunction]
#[pyo3(signature = (problem, x0, project_x0, _solver, run, callback))]
pub(super) fn solve_row_sparse<'py>(
    py: Python<'py>,
    problem: RowProblem<'py>,
    x0: Option<StartPoint<'py>>,
    project_x0: bool,
    _solver: Option<Py<PyAny>>,
    run: Run,
    callback: Option<Py<PyAny>>,
) -> PyResult<Returned<'py>> {
    let sparsity = match (problem.penalty.count, problem.penalty.lam) {
        (Some(count), None) => RowSparsity::Count(count),
        (None, Some(lam)) => RowSparsity::Penalty(lam),
        _ => return Err(Error::invalid("lam", "must be given, or count, not both").into()),
    };
    let whole = (
        &problem.smooth,
        problem.shape,
        Restriction::from(&problem.penalty),
    );
    let start = (x0, false, project_x0);
    solved(
        py,
        whole,
        start,
        &run,
        callback,
        |problem, x0, _, options, threads, watch| {
            minimize_row_sparse(problem, sparsity, x0, options, threads, watch)
        },
    )
}
