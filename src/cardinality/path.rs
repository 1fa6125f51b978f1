//! A path of exact pair descents with a penalty on nonzeros in place of the limit.
//!
//! With h(X) = Σ_t λ_t ‖x_t‖₀ the pair solver changes supports and values together, and every iterate is
//! feasible, however columns overlap. The multipliers λ_t fall until the number of nonzeros exceeds the
//! limit. Bisection then finds the smallest multipliers that keep the limit.

use ndarray::Array2;

use crate::heuristic::ClockMonitor;
use crate::limits::TaskWork;
use crate::penalty::Penalty;
use crate::problem::Problem;
use crate::signature::Signature;
use crate::solver::{Options, minimize};
use crate::support::{Cardinality, State, SupportMover};
use crate::threads::Threads;

/// Factor between multipliers, most stages, and the share of a limit at which a path ends.
const RATIO: f64 = 0.6;
const STAGES: usize = 60;
const ENOUGH: f64 = 0.99;

/// Ratio of the multipliers that exceed and keep a limit at which bisection ends.
const NARROW: f64 = 0.97;

/// Relative decrease of a sweep at which a stage ends, and most sweeps of a stage.
const TOLERANCE: f64 = 1e-5;
const SWEEPS: u64 = 20;

/// Largest work of a path, in multiply-adds. A path that ends there is continued from its best point.
const WORK: f64 = 1e9;

/// Share of the entries of a point whose loss is below its multiplier.
const QUANTILE: f64 = 0.05;

/// The multiplier of a limit, of one column or of all.
#[derive(Clone, Copy)]
struct Multiplier {
    value: f64,
    /// The largest value that exceeded the limit, and the smallest that kept it.
    exceeds: f64,
    keeps: f64,
}

impl Multiplier {
    /// Records the used share of the limit; returns whether the share is sufficient or the bracket is narrow.
    fn note(&mut self, share: f64) -> bool {
        match share <= 1.0 {
            true => self.keeps = self.keeps.min(self.value),
            false => {
                self.exceeds = self.exceeds.max(self.value);
                // The other multipliers have changed since this value kept the limit.
                if self.exceeds >= self.keeps {
                    self.keeps = f64::INFINITY;
                }
            }
        }
        let (exceeds, keeps) = (self.exceeds, self.keeps);
        let is_narrow = exceeds >= NARROW * keeps;
        self.value = match (exceeds > 0.0, keeps.is_finite()) {
            (true, true) if is_narrow => keeps,
            (true, true) => (exceeds * keeps).sqrt(),
            (true, false) => exceeds / RATIO,
            (false, _) => keeps * RATIO,
        };
        is_narrow || (ENOUGH..=1.0).contains(&share)
    }
}

impl SupportMover<'_> {
    /// Returns the largest decrease of f by one more nonzero, and the `QUANTILE` of losses, if larger.
    pub(super) fn multipliers(&self, state: &State) -> (f64, f64) {
        let columns = self.columns(state);
        let gains = columns.iter().filter_map(|column| column.adds.first());
        let gain = gains.fold(0.0, |most: f64, add| most.max(add.0));
        let drops = columns.iter().flat_map(|column| &column.drops);
        let mut losses: Vec<f64> = drops.map(|drop| drop.0).collect();
        let at = (QUANTILE * losses.len() as f64) as usize;
        let loss = match losses.is_empty() {
            true => 0.0,
            false => *losses.select_nth_unstable_by(at, f64::total_cmp).1,
        };
        (gain, loss.max(gain))
    }

    /// Returns the best X within the cardinality of a path from a point, whose first multiplier is `first`;
    /// None if there is none.
    pub(super) fn path(&self, x: Array2<f64>, first: f64) -> Option<Array2<f64>> {
        (self.work).part(self.work.units(WORK), |work| {
            self.path_within(x, first, work)
        })
    }

    fn path_within(
        &self,
        mut x: Array2<f64>,
        first: f64,
        work: &TaskWork<'_>,
    ) -> Option<Array2<f64>> {
        let (model, r) = (self.model, self.model.weights.len());
        let signature = Signature::stiefel(model.order());
        let limits = match model.rules.cardinality {
            Cardinality::Columns(_) => r,
            Cardinality::Total(_) => 1,
        };
        let multiplier = Multiplier {
            value: first,
            exceeds: 0.0,
            keeps: f64::INFINITY,
        };
        let mut multipliers = vec![multiplier; limits];
        let mut best: Option<(f64, Array2<f64>)> = None;
        for _ in 0..STAGES {
            let values: Vec<f64> = (0..r).map(|t| multipliers[t % limits].value).collect();
            if work.expired() || !values.iter().all(|v| *v > 0.0 && v.is_finite()) {
                break;
            }
            let penalty = self.penalty(&values)?;
            let options = Options {
                tol: TOLERANCE,
                verify: false,
                max_sweeps: Some(SWEEPS),
                ..Options::default().within(work)
            };
            let monitor = &mut ClockMonitor(work.clock);
            let serial = &Threads::serial();
            let solved = Problem::new(model.form, &penalty, &signature, r)
                .and_then(|problem| minimize(&problem, x.clone(), &options, serial, monitor));
            // Multipliers can become too small for the pair solvers.
            let Ok(solution) = solved else {
                break;
            };
            work.spend(solution.work);
            let shares = self.shares(&solution.x);
            let within = shares.iter().all(|&share| share <= 1.0);
            let (value, last) = (solution.smooth_value, solution.x);
            if within {
                x.clone_from(&last);
                if best.as_ref().is_none_or(|best| value < best.0) {
                    best = Some((value, last));
                }
            }
            let notes = multipliers.iter_mut().zip(&shares);
            let enough = notes.map(|(multiplier, &share)| multiplier.note(share));
            if enough.fold(true, |all, one| all & one) && best.is_some() {
                break;
            }
        }
        best.map(|best| best.1)
    }

    /// Returns whether a point uses at least a share of the cardinality.
    pub(super) fn is_used(&self, state: &State, share: f64) -> bool {
        let used = state.point.counts().iter().sum::<usize>() as f64;
        used >= share * self.model.rules.cardinality.total() as f64
    }

    /// Returns h for multipliers: excluded entries cost more than f can gain, included ones nothing.
    fn penalty(&self, multipliers: &[f64]) -> Option<Penalty> {
        let (model, rules) = (self.model, &self.model.rules);
        let r = multipliers.len();
        let same = multipliers.iter().all(|&v| v == multipliers[0]);
        let free = rules.included.iter().all(Vec::is_empty);
        let count = match same && free && rules.excluded.is_none() {
            true => Penalty::l0(multipliers[0]),
            false => {
                let forbidden = 4.0 * r as f64 * model.scale;
                let weight = |(i, t)| match rules.allows(i, t) {
                    true if rules.holds(i, t) => 0.0,
                    true => multipliers[t],
                    false => forbidden,
                };
                Penalty::l0(Array2::from_shape_fn((model.order(), r), weight))
            }
        };
        match rules.nonnegative {
            true => Penalty::NONNEGATIVE.plus(&count).ok(),
            false => Some(count),
        }
    }

    /// Returns the shares of the limits that X uses: of every column, or of the total.
    fn shares(&self, x: &Array2<f64>) -> Vec<f64> {
        let used = self.model.rules.used(x);
        match &self.model.rules.cardinality {
            Cardinality::Columns(counts) => (used.iter().zip(counts))
                .map(|(&used, &count)| used as f64 / count as f64)
                .collect(),
            Cardinality::Total(total) => {
                vec![used.iter().sum::<usize>() as f64 / *total as f64]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Clock;
    use crate::objective::Quadratic;
    use crate::support::{ColumnModel, Rules, Sparsity};
    use std::time::Instant;

    /// No nonzero brings gain, so multipliers fall until a penalty refuses them.
    #[test]
    fn a_path_to_multipliers_that_are_too_small_has_a_point_and_is_charged() {
        let (n, r, size) = (6, 2, 1e-113);
        let smooth = Quadratic::new(Array2::eye(n) * -size, None, None).unwrap();
        let clock = Clock::new(Instant::now(), None);
        let work = TaskWork::new(&clock, f64::INFINITY);
        let sparsity = Sparsity::new(Cardinality::Columns(vec![4; r]));
        let (rules, _) = Rules::checked(&sparsity, &Array2::ones((r, n))).unwrap();
        let spectrum = (-size, -size);
        let model = ColumnModel::new(&smooth, rules, vec![1.0; r], spectrum, &work).unwrap();
        let mover = SupportMover {
            model: &model,
            work: &work,
        };
        let before = work.spent();
        let x = Array2::from_shape_fn((n, r), |(i, t)| f64::from(u8::from(i == t)));
        let found = mover.path(x, 1e-3 * size);
        assert!(found.is_some_and(|x| model.rules.keep(&x)));
        assert!(work.spent() > before);
    }

    fn multiplier(value: f64) -> Multiplier {
        Multiplier {
            value,
            exceeds: 0.0,
            keeps: f64::INFINITY,
        }
    }

    #[test]
    fn a_bracket_becomes_narrow_around_the_smallest_value_that_keeps_the_limit() {
        for threshold in [1e-9, 0.3, 1.0, 7.0, 1e12] {
            for factor in [1e-3, 0.5, 1.0, 40.0] {
                let mut one = multiplier(factor * threshold);
                let share = |value: f64| if value >= threshold { 0.5 } else { 2.0 };
                let notes = (0..STAGES).position(|_| one.note(share(one.value)));
                assert!(notes.is_some(), "{threshold}, {factor}");
                assert!(one.exceeds < threshold && threshold <= one.keeps);
                assert!(one.exceeds >= NARROW * one.keeps);
                // A narrow bracket stays where the limit is kept,
                assert_eq!(one.value, one.keeps);
                assert!(one.note(0.5) && one.value == one.keeps);
                // and opens again where another multiplier changed that.
                let before = one.value;
                assert!(!one.note(2.0) && one.value > before);
            }
        }
    }

    #[test]
    fn a_limit_that_is_used_is_enough() {
        assert!(multiplier(1.0).note(1.0));
        assert!(multiplier(1.0).note(ENOUGH));
        assert!(!multiplier(1.0).note(0.98 * ENOUGH));
        assert!(!multiplier(1.0).note(1.01));
    }
}
