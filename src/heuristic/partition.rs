//! X ≥ 0 by alternation: nonnegative orthonormal columns are unit vectors on disjoint sets of rows.
//!
//! Columns: `x_k <- normalise(max(−∇f_k, 0))` on the rows of column k, which never raises a concave f.
//! Owners: the decrease of f by moving a row to another column is estimated for all rows and columns. The
//! moves with a positive estimate are made together, then a quarter of them, and so on, until the converged
//! columns lower f. If nothing does, a random share of the rows moves to the second-best column, or a column
//! is dissolved and another one split, and the alternation repeats. Many rows move at once, unlike in
//! [`supports`](super::supports). Slightly worse points are accepted for a while.

use ndarray::{Array1, Array2, Axis};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::oracle::Oracle;
use super::profile::{Kind, Profile};
use super::{Heuristic, LEAST, LIKELY, Prior, Task};
use crate::limits::MethodLimit;
use crate::linalg::inner;
use crate::numerics;
use crate::rows::change;
use crate::start;
use crate::support::{self, Covariance, argmax, owners, power_step};

/// Relative decrease of f in a power step below which the columns have converged.
const CONVERGED: f64 = 1e-7;

/// Passes over X charged with a product.
const PASSES: usize = 80;

/// Work of an entry in a pass or in a column of C, in multiply-adds.
const ENTRY: usize = 5;

/// Relative decrease from which new owners are accepted.
const BETTER: f64 = 1e-10;

/// Smallest and largest share of the rows that a perturbation moves.
const MOVED: (f64, f64) = (0.01, 0.1);

/// Share of the perturbations that dissolve one column and split another.
const REGROUPED: f64 = 0.5;

/// Probability of one more perturbation before the next descent.
const MORE: f64 = 0.3;

/// Relative loss up to which (times a random number) a worse point is accepted.
const WORSE: f64 = 1e-3;

/// Number of failures after which the search returns to the best point.
const PATIENCE: usize = 20;

/// Bound on 1 − x² below which a row is the only one of its column.
const ALONE: f64 = 1e-9;

/// A partition: X, the owner of each row, and f with its gradient.
#[derive(Clone)]
struct PartitionPoint {
    x: Array2<f64>,
    owner: Vec<usize>,
    value: f64,
    gradient: Array2<f64>,
}

struct Alternation<'a, 'b> {
    oracle: &'a Oracle<'b>,
    covariance: Option<&'a Covariance<'a>>,
    /// Diagonal of P.
    diagonal: Vec<f64>,
    limit: MethodLimit<'a>,
}

impl<'a, 'b> Alternation<'a, 'b> {
    fn new(oracle: &'a Oracle<'b>, covariance: Option<&'a Covariance<'a>>, limit: MethodLimit<'a>) -> Self {
        Self { oracle, covariance, diagonal: oracle.diagonal().iter().map(|v| -v).collect(), limit }
    }

    fn over(&self) -> bool {
        self.limit.progress() >= 1.0
    }

    /// Charges the work of `passes` passes over X.
    fn charge(&self, point: &Array2<f64>, passes: usize) {
        self.limit.work.spend((ENTRY * passes * point.len()) as f64);
    }

    fn point(&self, x: Array2<f64>) -> PartitionPoint {
        let owner = owners(&x);
        let (value, gradient) = match self.covariance {
            Some(p) if p.is_whole() => {
                self.charge(&x, PASSES);
                let work = ENTRY * p.order() * p.order();
                self.limit.work.spend(work as f64);
                sparse_value_and_gradient(p, &x, &owner)
            }
            _ => self.oracle.value_and_gradient(&x),
        };
        PartitionPoint { x, owner, value, gradient }
    }

    /// Makes power steps of the columns until f converges.
    fn converge(&self, mut point: PartitionPoint) -> PartitionPoint {
        let mut shift = 0.0;
        while !self.over() {
            let pull = &point.x * shift - &point.gradient;
            let trial = self.point(power_step(&pull, &point.owner));
            if !(trial.value <= point.value + numerics::GAIN * point.value.abs()) {
                if shift > 0.0 {
                    break;
                }
                // f is not concave: a shift shortens the steps.
                shift = self.oracle.lipschitz;
                continue;
            }
            let gained = point.value - trial.value;
            point = trial;
            if !(gained > CONVERGED * point.value.abs()) {
                break;
            }
        }
        point
    }

    /// Returns the best other column of every row, and the estimated decrease of f.
    ///
    /// Column k without its row i keeps (v − 2 x g + d x²)/(1 − x²), with v its eigenvalue, g = −∇f and d the
    /// diagonal of −C. With row i its value is the leading eigenvalue of the 2×2 compression to span(x_k,
    /// e_i).
    fn moves(&self, point: &PartitionPoint) -> Vec<(f64, usize)> {
        let pull = point.gradient.mapv(|v| -v);
        let values: Array1<f64> = (&point.x * &pull).sum_axis(Axis(0));
        (0..point.owner.len())
            .map(|i| {
                let (own, d) = (point.owner[i], self.diagonal[i]);
                let (entry, rest) = (point.x[[i, own]], 1.0 - point.x[[i, own]].powi(2));
                if rest <= ALONE {
                    return (f64::NEG_INFINITY, own);
                }
                let loss = values[own] - support::without(values[own], entry, pull[[i, own]], d);
                let gain_of = |k: usize| {
                    if k == own {
                        return f64::NEG_INFINITY;
                    }
                    match pull[[i, k]] {
                        pull if pull > 0.0 => 2.0 * support::gain(-values[k], pull, -d),
                        _ => 0.0,
                    }
                };
                let to = argmax((0..values.len()).map(gain_of));
                (0.5 * (gain_of(to) - loss), to)
            })
            .collect()
    }

    /// Applies one or more random perturbations.
    fn perturbed(&self, point: &PartitionPoint, rng: &mut Xoshiro256PlusPlus) -> PartitionPoint {
        let mut point = point.clone();
        loop {
            let regroup = point.x.ncols() > 1 && rng.random::<f64>() < REGROUPED;
            let x = if regroup { self.regrouped(&point, rng) } else { reassigned(&point, rng) };
            point = self.point(x);
            if rng.random::<f64>() >= MORE {
                return point;
            }
        }
    }

    /// Dissolves a random column, giving its rows to their second-best columns, and splits another column in
    /// two: the rows most correlated with a random one of them, and the others.
    fn regrouped(&self, point: &PartitionPoint, rng: &mut Xoshiro256PlusPlus) -> Array2<f64> {
        let (n, r) = point.x.dim();
        let dissolved = rng.random_range(0..r);
        let split = (dissolved + rng.random_range(1..r)) % r;
        let rows: Vec<usize> = (0..n).filter(|&i| point.x[[i, split]] > 0.0).collect();
        if rows.is_empty() {
            // Only if X has NaN entries.
            return point.x.clone();
        }
        let chosen = rows[rng.random_range(0..rows.len())];
        let pulled = match self.covariance {
            Some(p) => {
                self.limit.work.spend(p.first_use());
                let mut pulled = Array1::zeros(n);
                change(pulled.view_mut(), |pulled| p.add(chosen, 1.0, pulled));
                pulled
            }
            None => {
                let mut unit = Array2::zeros((n, r));
                unit[[chosen, split]] = 1.0;
                let (_, gradient) = self.oracle.value_and_gradient(&unit);
                -&gradient.column(split)
            }
        };
        let like = pulled.mapv(|v| v.max(0.0));
        let norm = rows.iter().map(|&i| like[i] * like[i]).sum::<f64>().sqrt();
        let mut pull = -&point.gradient;
        let mut owner = point.owner.clone();
        for i in 0..n {
            if point.owner[i] == dissolved {
                owner[i] = second_choice(point, i);
            } else if point.owner[i] == split && like[i] > norm * point.x[[i, split]] {
                (owner[i], pull[[i, dissolved]]) = (dissolved, like[i]);
            }
        }
        power_step(&pull, &owner)
    }

    /// Alternates until neither columns nor owners change.
    fn descend(&self, point: PartitionPoint) -> PartitionPoint {
        let mut best = self.converge(point);
        'rounds: while !self.over() {
            self.charge(&best.x, PASSES);
            let moves = self.moves(&best);
            let mut order: Vec<usize> = (0..moves.len()).filter(|&i| moves[i].0 > 0.0).collect();
            order.sort_by(|&a, &b| moves[b].0.total_cmp(&moves[a].0).then(a.cmp(&b)));
            while !order.is_empty() && !self.over() {
                let mut owner = best.owner.clone();
                for &i in &order {
                    owner[i] = moves[i].1;
                }
                let trial = self.converge(self.point(power_step(&-&best.gradient, &owner)));
                if trial.value < best.value - BETTER * best.value.abs() {
                    best = trial;
                    continue 'rounds;
                }
                order.truncate(order.len() / 4);
            }
            break;
        }
        best
    }
}

/// Returns f = −½⟨X, P X⟩ and its gradient if each row has at most one nonzero: n² multiply-adds, not n² r.
fn sparse_value_and_gradient(p: &Covariance<'_>, x: &Array2<f64>, owner: &[usize]) -> (f64, Array2<f64>) {
    let mut gradient = Array2::<f64>::zeros((x.ncols(), x.nrows()));
    for (i, &k) in owner.iter().enumerate() {
        if x[[i, k]] != 0.0 {
            change(gradient.row_mut(k), |row| p.add(i, -x[[i, k]], row));
        }
    }
    let gradient = gradient.reversed_axes().as_standard_layout().into_owned();
    (0.5 * inner(&gradient, x), gradient)
}

/// Returns the column with the most negative gradient at row i, other than its owner.
fn second_choice(point: &PartitionPoint, i: usize) -> usize {
    let own = point.owner[i];
    let pulls = point.gradient.row(i);
    let pulls = pulls.iter().enumerate();
    argmax(pulls.map(|(k, g)| if k == own { f64::NEG_INFINITY } else { -g }))
}

/// Gives a random share of the rows to their second-best columns.
fn reassigned(point: &PartitionPoint, rng: &mut Xoshiro256PlusPlus) -> Array2<f64> {
    let share = MOVED.0 * (MOVED.1 / MOVED.0).powf(rng.random());
    let owner: Vec<usize> = (0..point.owner.len())
        .map(|i| if rng.random::<f64>() < share { second_choice(point, i) } else { point.owner[i] })
        .collect();
    power_step(&-&point.gradient, &owner)
}

/// Alternates from x, whose rows have one owner each, until no change lowers f.
pub(crate) fn alternated(
    oracle: &Oracle<'_>,
    covariance: Option<&Covariance<'_>>,
    x: &Array2<f64>,
    limit: MethodLimit<'_>,
) -> Array2<f64> {
    let alternation = Alternation::new(oracle, covariance, limit);
    alternation.descend(alternation.point(x.clone())).x
}

/// Alternates from x, then perturbs and repeats while time is left.
fn improve(
    oracle: &Oracle<'_>,
    covariance: Option<&Covariance<'_>>,
    x: &Array2<f64>,
    seed: u64,
    limit: MethodLimit<'_>,
) -> Array2<f64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let alternation = Alternation::new(oracle, covariance, limit);
    let mut best = alternation.descend(alternation.point(x.clone()));
    let mut current = best.clone();
    let mut failed = 0;
    while !alternation.over() {
        let trial = alternation.descend(alternation.perturbed(&current, &mut rng));
        if trial.value < best.value {
            best = trial.clone();
            failed = 0;
        } else {
            failed += 1;
        }
        if trial.value < current.value + WORSE * rng.random::<f64>() * best.value.abs() {
            current = trial;
        }
        if failed > PATIENCE {
            current = best.clone();
            failed = 0;
        }
    }
    best.x
}

/// Returns a start: of a quadratic form by [rays](support::rays), first from the rotated axes, then from random rotations of
/// the axes.
fn new_start(task: &Task<'_>) -> Option<Array2<f64>> {
    let (oracle, basis) = (task.oracle, &task.known.basis);
    let (n, r) = basis.rotated.dim();
    let first = task.run == 0;
    match oracle.form.filter(|form| form.is_trace_form()) {
        Some(form) if first => support::rays(form, basis.rotated.view(), oracle.shift(), oracle.work),
        Some(form) => {
            let turned = basis.spectral.dot(&start::random(r, r, task.seed));
            support::rays(form, turned.view(), oracle.shift(), oracle.work)
        }
        None if first => Some(start::round_to_partition(basis.rotated.view())),
        None => Some(start::partition(n, r, task.seed)),
    }
}

/// Alternation of columns and owners of a partition, with perturbations; without X ≥ 0, a random partition.
pub(super) struct Partition;

impl Heuristic for Partition {
    fn name(&self) -> &'static str {
        "partition"
    }

    fn fits(&self, profile: &Profile, _: bool) -> Option<Prior> {
        let success = match profile.kind {
            Kind::Nonnegative => LIKELY,
            _ => 0.0,
        };
        (!profile.mixed).then(|| Prior::new(success, LEAST))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let (n, r) = task.known.basis.rotated.dim();
        if task.profile.kind != Kind::Nonnegative {
            return Some(start::partition(n, r, task.seed));
        }
        let x = match task.from {
            Some(best) => best.clone(),
            None => new_start(task)?,
        };
        let covariance = task.known.covariance.as_ref();
        Some(improve(task.oracle, covariance, &x, task.seed, task.limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{Clock, TaskWork};
    use crate::objective::Quadratic;
    use crate::penalty::Penalty;
    use crate::problem::Problem;
    use crate::signature::Signature;
    use std::time::Instant;

    /// C of three groups of correlated rows.
    fn three_groups() -> Array2<f64> {
        let truth = Array2::from_shape_fn((12, 3), |(i, k)| if i % 3 == k { 0.5 } else { 0.0 });
        let noise = start::random(12, 12, 5);
        -truth.dot(&truth.t()) - 0.01 * (&noise + &noise.t())
    }

    /// Runs a test on X ≥ 0 with three columns and C = −P.
    fn with_oracle(p: &Array2<f64>, bounds: (f64, f64), test: impl Fn(&Oracle<'_>, &Covariance<'_>)) {
        let smooth = Quadratic::new(-p, None, None).unwrap();
        let signature = Signature::stiefel(p.nrows());
        let problem = Problem {
            smooth: &smooth,
            penalty: &Penalty::NONNEGATIVE,
            signature: &signature,
            components: 3,
            rotations: false,
            limit: None,
        };
        let clock = Clock::new(Instant::now(), None);
        let work = TaskWork::new(&clock, 1e9);
        let oracle = Oracle::new((&problem, &smooth), Array2::eye(3), bounds, &work);
        let covariance = Covariance::within(&smooth, oracle.shift(), 0, &work);
        test(&oracle, &covariance.unwrap());
    }

    #[test]
    fn finds_the_groups() {
        let p = -three_groups();
        with_oracle(&p, (-1.1, 0.1), |oracle, p| {
            for (seed, covariance) in (0..10).zip([None, Some(p)].into_iter().cycle()) {
                let x0 = start::partition(12, 3, seed);
                let x = improve(oracle, covariance, &x0, seed, oracle.limit(0.02));
                assert!(oracle.objective(&x) <= oracle.objective(&x0), "{seed}");
                for i in 0..12 {
                    let same: Vec<f64> = (0..3).map(|k| x[[i, k]] * x[[i % 3, k]]).collect();
                    assert!(same.iter().sum::<f64>() > 0.1, "{seed} {i} {x}");
                }
            }
        });
    }

    #[test]
    fn value_and_gradient_of_a_partition() {
        let p = -three_groups();
        let x = start::partition(12, 3, 1);
        with_oracle(&p, (-1.1, 0.0), |_, covariance| {
            let (value, gradient) = sparse_value_and_gradient(covariance, &x, &owners(&x));
            let expected = -p.dot(&x);
            assert!((&gradient - &expected).iter().all(|v| v.abs() < 1e-15));
            assert!((value - 0.5 * inner(&expected, &x)).abs() < 1e-15);
        });
    }

    /// Two groups share one column and one group has two: no single move lowers f, but dissolving and
    /// splitting columns does.
    #[test]
    fn regrouping_mends_what_single_rows_cannot() {
        let p = Array2::from_shape_fn((12, 12), |(i, j)| match (i % 3 == j % 3, i == j) {
            (_, true) => 1.0,
            (true, _) => 0.9,
            _ => 0.0,
        });
        let mut x = Array2::<f64>::zeros((12, 3));
        for i in 0..12 {
            let column = match (i % 3, i < 6) {
                (2, first) => 1 + usize::from(first),
                _ => 0,
            };
            x[[i, column]] = 1.0;
        }
        start::complete_partition(&mut x, |_, _| 0.0);
        with_oracle(&p, (-4.0, 0.0), |oracle, _| {
            let alternation = Alternation::new(oracle, None, oracle.limit(1.0));
            let optimum = -0.5 * 3.0 * (1.0 + 3.0 * 0.9);
            let alone = alternation.descend(alternation.point(x.clone()));
            assert!(alone.value > optimum + 0.5, "{}", alone.value);
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(0);
            let best = (0..50)
                .map(|_| alternation.descend(alternation.point(alternation.regrouped(&alone, &mut rng))))
                .map(|point| point.value)
                .fold(f64::INFINITY, f64::min);
            assert!((best - optimum).abs() < 1e-6, "{best} {optimum}");
        });
    }
}
