//! Finite sums: the variance-reduced solve.

use std::sync::{Arc, Mutex};

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use super::guard::released;
use super::hyperbolic::signature_of;
use super::input::{Run, choice, side as side_of};
use super::memory::{Stored, reserve};
use super::smooth::{Function, FunctionSum, Trouble};
use super::ultrahyperbolic::PyStructuralProbe;
use super::watch::Watch;
use super::{Returned, solution_dict};
use crate::finite_sum::{CurvatureRule, FiniteSum, FiniteSumOptions, Logistic, SampledGram, minimize_finite_sum};
use crate::penalty::Penalty;
use crate::{Options, Result};

/// A [`LogisticLoss`](Logistic), the rows of a Gram objective with its scale, a structural probe, or
/// `orthobcd.FiniteSum`.
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
    Function {
        #[pyo3(attribute("_evaluate"))]
        evaluate: Py<PyAny>,
        #[pyo3(attribute("n_terms"))]
        terms: usize,
        #[pyo3(attribute("n_rows"))]
        rows: usize,
        #[pyo3(attribute("n_columns"))]
        columns: Option<usize>,
        #[pyo3(attribute("lipschitz"))]
        lipschitz: Option<f64>,
    },
}

impl AnySum<'_> {
    /// Returns the memory that the sum will keep.
    fn stored(&self) -> Stored {
        let numbers = match self {
            Self::Logistic { a, b, .. } => a.len() + b.len(),
            Self::Gram(a, _) => a.len(),
            Self::Probe(_) | Self::Function { .. } => 0,
        };
        Stored { numbers: numbers as f64, name: "copies of the data".to_owned(), rows: 0.0 }
    }
}

/// `orthobcd.VRJOBCD`, its defaults filled in for the sum.
#[derive(FromPyObject)]
pub(super) struct SumOptions {
    batch_size: Option<usize>,
    small_batch_size: Option<usize>,
    full_gradient: bool,
    proximal: f64,
    rapidity_bound: Option<f64>,
    max_epochs: Option<u64>,
    step_rule: String,
    step: f64,
    matchings: usize,
    side: String,
}

impl SumOptions {
    fn options(&self, run: &Run, components: u64, rows: u64) -> Result<FiniteSumOptions> {
        let rules = [
            ("bound", CurvatureRule::Bound),
            ("adaptive", CurvatureRule::Adaptive),
            ("accumulated", CurvatureRule::Accumulated { step: self.step }),
        ];
        let sweep = rows * (rows - 1) / 2;
        Ok(FiniteSumOptions {
            batch: self.batch_size,
            small_batch: self.small_batch_size,
            probability: self.full_gradient.then_some(1.0),
            proximal: self.proximal,
            rule: choice("step_rule", &self.step_rule, &rules)?,
            matchings: self.matchings,
            side: side_of(&self.side)?,
            rapidity_bound: self.rapidity_bound,
            max_evaluations: self.max_epochs.map(|m| m.saturating_mul(components)),
            max_visits: run.max_sweeps.map(|m| m.saturating_mul(sweep)),
            max_time: run.time(),
            target: run.target,
            tol: run.tol.unwrap_or(Options::default().tol),
            seed: run.seed,
            ..FiniteSumOptions::default()
        })
    }
}

/// Runs variance-reduced Jacobi block coordinate descent on a finite sum.
#[pyfunction]
#[pyo3(signature = (sum, penalty, signature, x0, solver, run, callback))]
pub(super) fn solve_finite_sum<'py>(
    sum: AnySum<'py>,
    penalty: Penalty,
    signature: PyReadonlyArray1<'py, i8>,
    x0: PyReadonlyArray2<'py, f64>,
    solver: SumOptions,
    run: Run,
    callback: Option<Py<PyAny>>,
) -> PyResult<Returned<'py>> {
    let py = x0.py();
    let shape = (x0.shape()[0], x0.shape()[1]);
    reserve(&sum.stored(), shape, run.n_threads)?;
    let threads = run.threads()?;
    let trouble = Arc::new(Trouble::default());
    let sum: Box<dyn FiniteSum> = match sum {
        AnySum::Logistic { a, b, labels } => {
            Box::new(Logistic::new(a.as_array().to_owned(), b.as_array().to_owned(), labels.as_array().to_owned())?)
        }
        AnySum::Gram(a, scale) => Box::new(SampledGram::new(a.as_array().to_owned(), scale)?),
        AnySum::Probe(probe) => Box::new(probe.0.with_threads(threads.clone())),
        AnySum::Function { evaluate, terms, rows, columns, lipschitz } => Box::new(FunctionSum {
            function: Function {
                evaluate,
                product: None,
                rows,
                columns,
                lipschitz,
                curvature: None,
                turn: Mutex::new(()),
                trouble: trouble.clone(),
            },
            terms,
        }),
    };
    let signature = signature_of(&signature)?;
    let x0 = x0.as_array().to_owned();
    let (components, rows) = (sum.components() as u64, signature.len() as u64);
    let options = solver.options(&run, components, rows)?;
    let mut watch = Watch::new(callback, run.door());
    let solved = released(py, || minimize_finite_sum(&*sum, &penalty, &signature, x0, &options, &threads, &mut watch))?;
    let solved = solved.map_err(|error| trouble.take().unwrap_or_else(|| error.into()))?;
    let epochs = solved.solution.work as u64 / components;
    let out = solution_dict(py, solved.solution, run.door())?;
    // Work is counted in component gradients here.
    out.set_item("work", py.None())?;
    out.set_item("n_epochs", epochs)?;
    let evaluations = solved.evaluations.into_iter().map(|e| e as i64);
    out.set_item("evaluations", PyArray1::from_iter(py, evaluations))?;
    Ok((out, trouble.take().or_else(|| watch.into_error())))
}
