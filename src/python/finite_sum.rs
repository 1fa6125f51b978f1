//! Finite sums: the variance-reduced solve.

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use super::hyperbolic::{set_recession, signature_of};
use super::input::{AnyPenalty, Limits, side as side_of};
use super::ultrahyperbolic::PyStructuralProbe;
use super::watch::Watch;
use super::{Returned, solution_dict, with_penalty};
use crate::finite_sum::{
    CurvatureRule, FiniteSum, FiniteSumOptions, Logistic, SampledGram, minimize_finite_sum,
};
use crate::{Error, Result, Solution, Threads};

/// A [`LogisticLoss`](Logistic), the rows of a Gram objective with its scale, or a structural probe.
#[derive(FromPyObject)]
pub(super) enum AnySum<'py> {
    Logistic {
        #[pyo3(attribute("A"))]
        a: PyReadonlyArray2<'py, f64>,
        #[pyo3(attribute("B"))]
        b: PyReadonlyArray2<'py, f64>,
        #[pyo3(attribute("labels"))]
        labels: PyReadonlyArray1<'py, f64>,
    },
    Gram(PyReadonlyArray2<'py, f64>, f64),
    Probe(PyRef<'py, PyStructuralProbe>),
}

/// (rule, step).
type Rule = (String, f64);

fn curvature_rule((name, step): Rule) -> Result<CurvatureRule> {
    match name.as_str() {
        "bound" => Ok(CurvatureRule::Bound),
        "adaptive" => Ok(CurvatureRule::Adaptive),
        "accumulated" => Ok(CurvatureRule::Accumulated { step }),
        other => Err(Error::invalid(
            "curvature",
            format!("must be one of bound, adaptive, accumulated; got {other:?}"),
        )),
    }
}

/// (batch, small_batch, probability, theta, rapidity_bound, max_passes, rule, matchings, side).
type SumOptions = (
    Option<usize>,
    Option<usize>,
    Option<f64>,
    f64,
    Option<f64>,
    Option<u64>,
    Rule,
    usize,
    String,
);

/// Variance-reduced Jacobi block coordinate descent on a finite sum.
#[pyfunction]
#[pyo3(signature = (sum, penalty, signature, x0, options, limits, seed, n_threads, callback))]
#[allow(clippy::too_many_arguments)]
pub(super) fn solve_finite_sum<'py>(
    py: Python<'py>,
    sum: AnySum<'py>,
    penalty: AnyPenalty,
    signature: PyReadonlyArray1<'py, i8>,
    x0: PyReadonlyArray2<'py, f64>,
    options: SumOptions,
    limits: Limits,
    seed: u64,
    n_threads: Option<usize>,
    callback: Option<Py<PyAny>>,
) -> PyResult<Returned<'py>> {
    let threads = Threads::new(n_threads)?;
    let sum: Box<dyn FiniteSum> = match sum {
        AnySum::Logistic { a, b, labels } => Box::new(Logistic::new(
            a.as_array().to_owned(),
            b.as_array().to_owned(),
            labels.as_array().to_owned(),
        )?),
        AnySum::Gram(a, scale) => Box::new(SampledGram::new(a.as_array().to_owned(), scale)?),
        AnySum::Probe(probe) => Box::new(probe.0.with_threads(threads.clone())),
    };
    let signature = signature_of(&signature)?;
    let x0 = x0.as_array().to_owned();
    let (batch, small_batch, probability, theta, rapidity_bound, max_passes, rule, matchings, side) =
        options;
    let components = sum.components() as u64;
    let options = FiniteSumOptions {
        batch,
        small_batch,
        probability,
        proximal: theta,
        curvature: None,
        rule: curvature_rule(rule)?,
        matchings,
        side: side_of(&side)?,
        rapidity_bound,
        max_evaluations: max_passes.map(|passes| passes.saturating_mul(components)),
        max_time: limits.0,
        target: limits.3,
        look: None,
        tol: limits.2.unwrap_or(1e-10),
        seed,
    };
    let mut watch = Watch::new(callback);
    let solved = with_penalty!(&penalty, penalty => py.detach(|| {
        minimize_finite_sum(&*sum, penalty, &signature, x0, &options, &threads, &mut watch)
    }))?;
    let evaluations: Vec<i64> = solved.history.iter().map(|(_, e)| *e as i64).collect();
    let recession = solved.recession;
    let out = solution_dict(
        py,
        Solution {
            x: solved.x,
            objective: solved.objective,
            smooth_value: solved.smooth_value,
            penalty_value: solved.penalty_value,
            feasibility: solved.feasibility,
            status: solved.status,
            iterations: solved.visited,
            sweeps: solved.evaluations / components,
            updates: solved.updates,
            seconds: solved.seconds,
            history: solved
                .history
                .into_iter()
                .map(|(record, _)| record)
                .collect(),
            recession,
        },
    )?;
    set_recession(&out, recession)?;
    out.set_item("evaluations", PyArray1::from_vec(py, evaluations))?;
    Ok((out, watch.into_error()))
}
