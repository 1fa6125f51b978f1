//! Finite sums: the variance-reduced solve.

use ndarray::Array2;
use pyo3::prelude::*;

use super::answer::More;
use super::arguments::{choice, side as side_of};
use super::guard::released;
use super::input::Run;
use super::instance::Instance;
use super::raised::Outcome;
use super::watch::Watch;
use orthobcd::finite_sum::{CurvatureRule, FiniteSumOptions, minimize_finite_sum};
use orthobcd::{Error, Options, Result, Solution};

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
        Ok((FiniteSumOptions::default().with_batch(self.batch_size).with_small_batch(self.small_batch_size))
            .with_probability(self.full_gradient.then_some(1.0))
            .with_proximal(self.proximal)
            .with_rule(choice("step_rule", &self.step_rule, &rules)?)
            .with_matchings(self.matchings)
            .with_side(side_of(&self.side)?)
            .with_rapidity_bound(self.rapidity_bound)
            .with_max_evaluations(self.max_epochs.map(|m| m.saturating_mul(components)))
            .with_max_visits(run.max_sweeps.map(|m| m.saturating_mul(sweep)))
            .with_max_time(run.time())
            .with_target(run.target)
            .with_tol(run.tol.unwrap_or(Options::default().tol))
            .with_seed(run.seed))
    }

    /// Runs the variance-reduced method on the sum of an instance.
    pub(super) fn solved(
        &self,
        py: Python<'_>,
        instance: &Instance<'_>,
        x0: Array2<f64>,
        run: &Run,
        watch: &mut Watch,
    ) -> Outcome<(Solution, More)> {
        let sum = instance.sum.as_ref().ok_or_else(|| Error::invalid("problem", "must be a finite sum"))?;
        let Instance { penalty, signature, threads, .. } = instance;
        let components = sum.components() as u64;
        let options = self.options(run, components, signature.len() as u64)?;
        let found = released(py, || minimize_finite_sum(&**sum, penalty, signature, x0, &options, threads, watch));
        let mut found = instance.answer(found)?;
        let n_epochs = found.solution.work as u64 / components;
        // The work of a sum is a number of component gradients.
        found.solution.work = f64::NAN;
        Ok((found.solution, More::Sum { n_epochs, evaluations: found.evaluations }))
    }
}
