//! Results of the core as dicts of Python; the keys are the fields of the package's classes.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arguments::Core;
use orthobcd::certificate::{Bound as LowerBound, Certificate};
use orthobcd::heuristic::Profile;
use orthobcd::pair::Recession;
use orthobcd::search::{PathPoint, Run};
use orthobcd::{Record, Solution, WORK_UNIT};

/// Lets the value in a type become a dict: of its own fields, and of `key: expression` for other keys.
macro_rules! dict {
    (@ $field:expr) => { $field };
    (@ $field:expr, $read:expr) => { $read };
    ($type:ty, |$value:ident, $py:ident| { $($key:ident $(: $read:expr)?,)+ }) => {
        impl<'py> IntoPyObject<'py> for $type {
            type Target = PyDict;
            type Output = Bound<'py, PyDict>;
            type Error = PyErr;

            fn into_pyobject(self, $py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let ($value, out) = (self.0, PyDict::new($py));
                $(out.set_item(stringify!($key), dict!(@ $value.$key $(, $read)?))?;)+
                Ok(out)
            }
        }
    };
}

/// Fields that a method adds to those of its solution.
// One is made for each solve, so that its size does not matter.
#[allow(clippy::large_enum_variant)]
#[derive(IntoPyObject)]
pub(super) enum More {
    Path { path: Vec<Core<PathPoint>> },
    Search { strategy: String, search: Search, bound: Option<Core<LowerBound>> },
    Sum { n_epochs: u64, evaluations: Vec<u64> },
}

/// Fields of an `orthobcd.Search`, except its strategy.
#[derive(IntoPyObject)]
pub(super) struct Search {
    pub(super) runs: Vec<Core<Run>>,
    pub(super) profile: Option<Core<Profile>>,
}

dict!(Core<Solution>, |solution, py| {
    objective, smooth_value, penalty_value, feasibility, seconds,
    status: solution.status.name(),
    recession: solution.recession.map(Core),
    n_iterations: solution.iterations,
    n_sweeps: solution.sweeps,
    n_updates: solution.updates,
    work: Some(solution.work / WORK_UNIT).filter(|work| work.is_finite()),
    history: History(solution.history),
    x: solution.x.into_pyarray(py),
});

/// Columns of a history.
struct History(Vec<Record>);

dict!(History, |history, py| {
    seconds: PyArray1::from_iter(py, history.iter().map(|r| r.seconds)),
    objective: PyArray1::from_iter(py, history.iter().map(|r| r.objective)),
    feasibility: PyArray1::from_iter(py, history.iter().map(|r| r.feasibility)),
    n_iterations: PyArray1::from_iter(py, history.iter().map(|r| r.iterations as i64)),
});

dict!(Core<Recession>, |recession, _py| {
    pair,
    kind: if recession.columns { "columns" } else { "rows" },
    signs: (recession.signs[0], recession.signs[1]),
    direction: if recession.upwards { 1 } else { -1 },
});

dict!(Core<PathPoint>, |point, py| {
    objective, explained_variance, feasibility,
    status: point.status.name(),
    lam: point.lambda,
    n_nonzero: point.nonzeros,
    x: point.x.into_pyarray(py),
});

dict!(Core<Run>, |run, _py| { heuristic, improve, seconds, work: run.work / WORK_UNIT, objective, gain, });

dict!(Core<Profile>, |profile, _py| {
    mixed, quadratic, penalty_share, flatness, optimum,
    n_rows: profile.rows,
    n_components: profile.components,
    penalty: format!("{:?}", profile.kind).to_lowercase(),
    dense: profile.is_dense(),
    whole_matrix: profile.whole,
    n_rows_chosen: profile.chosen,
    step_work: profile.step / WORK_UNIT,
});

dict!(Core<Certificate>, |found, _py| {
    objective, smooth_value, penalty_value, magnitude, feasibility, stationarity, criticality, optimum,
    block2_gap, block2_pair, block2_measure,
    block2_kind: found.block2_pair.map(|_| if found.block2_columns { "columns" } else { "rows" }),
    n_pairs: found.pairs,
    n_pairs_proved: found.proved_pairs,
});

dict!(Core<LowerBound>, |bound, py| {
    value, gap,
    method: bound.method.name(),
    n_nodes: bound.nodes,
    multiplier: bound.multiplier.map(|multiplier| multiplier.into_pyarray(py)),
    features_excluded: PyArray1::from_iter(py, bound.excluded.iter().map(|&i| i as i64)),
    history: BoundHistory(bound.history),
});

/// Columns of the history of a bound.
struct BoundHistory(Vec<(f64, f64)>);

dict!(BoundHistory, |history, py| {
    seconds: PyArray1::from_iter(py, history.iter().map(|point| point.0)),
    bound: PyArray1::from_iter(py, history.iter().map(|point| point.1)),
});
