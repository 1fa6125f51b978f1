//! X ≥ 0 by alternation: orthonormal nonnegative columns are unit vectors on the rows they own.
//!
//! Columns: `x_k <- normalise(max(−∇f_k, 0))` on the rows of column k, which never raises a concave f.
//! Owners: the fall of f by giving a row to another column is estimated for all rows and columns at
//! once; the most promising moves are made together, then fewer, and kept if the settled columns are
//! better. At rest, a random share of the rows goes to their second choice and all is repeated
//! from there: many rows move at once, which single moves ([`supports`](super::supports)) do not do.

use ndarray::{Array1, Array2, Axis};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::clock::Pace;
use super::oracle::Oracle;
use crate::penalty::Penalty;
use crate::start;

/// Relative gain of a power step below which the columns have settled.
const SETTLED: f64 = 1e-7;

/// Relative gain that new owners must bring.
const BETTER: f64 = 1e-10;

/// Smallest and largest share of the rows that a perturbation moves.
const MOVED: (f64, f64) = (0.01, 0.1);

/// Of 1 − x², below which a row is all that its column has.
const ALONE: f64 = 1e-9;

/// A partition with settled or unsettled columns.
#[derive(Clone)]
struct Point {
    x: Array2<f64>,
    owner: Vec<usize>,
    value: f64,
    gradient: Array2<f64>,
}

struct Alternation<'a, 'b, P: Penalty> {
    oracle: &'a Oracle<'b, P>,
    /// Diagonal of −C.
    diagonal: Vec<f64>,
    pace: Pace<'a>,
    rounds: usize,
}

impl<P: Penalty> Alternation<'_, '_, P> {
    fn over(&self) -> bool {
        self.pace.progress(self.rounds) >= 1.0
    }

    fn point(&self, x: Array2<f64>) -> Point {
        let (value, gradient) = self.oracle.value_and_gradient(&x);
        let owner = x
            .outer_iter()
            .map(|row| largest(row.iter().copied()))
            .collect();
        Point {
            x,
            owner,
            value,
            gradient,
        }
    }

    /// Power steps of the columns until f settles.
    fn settle(&self, mut point: Point) -> Point {
        let mut shift = 0.0;
        while !self.over() {
            let trial = self.point(power_step(&point, &point.owner, shift));
            if trial.value > point.value + 1e-12 * point.value.abs() {
                if shift > 0.0 {
                    break;
                }
                // f is not concave: the steps are shortened.
                shift = self.oracle.lipschitz;
                continue;
            }
            let gained = point.value - trial.value;
            point = trial;
            if gained <= SETTLED * point.value.abs() {
                break;
            }
        }
        point
    }

    /// For every row the best other column, and by how much f is expected to fall.
    ///
    /// Column k without its row i keeps (v − 2 x g + d x²)/(1 − x²), with v its eigenvalue, g = −∇f and d
    /// the diagonal of −C; with row i it has the leading eigenvalue of the 2×2 compression to
    /// span(x_k, e_i).
    fn moves(&self, point: &Point) -> Vec<(f64, usize)> {
        let pull = point.gradient.mapv(|v| -v);
        let values: Array1<f64> = (&point.x * &pull).sum_axis(Axis(0));
        (0..point.owner.len())
            .map(|i| {
                let (own, d) = (point.owner[i], self.diagonal[i]);
                let (entry, rest) = (point.x[[i, own]], 1.0 - point.x[[i, own]].powi(2));
                if rest <= ALONE {
                    return (f64::NEG_INFINITY, own);
                }
                let without = values[own] - 2.0 * entry * pull[[i, own]] + d * entry * entry;
                let loss = values[own] - without / rest;
                let joining = |k: usize| {
                    if k == own {
                        return f64::NEG_INFINITY;
                    }
                    let (half, g) = (0.5 * (d - values[k]), pull[[i, k]]);
                    if g > 0.0 { half + half.hypot(g) } else { 0.0 }
                };
                let to = largest((0..values.len()).map(joining));
                (0.5 * (joining(to) - loss), to)
            })
            .collect()
    }

    /// Alternates until neither columns nor owners change.
    fn descend(&self, point: Point) -> Point {
        let mut best = self.settle(point);
        'rounds: while !self.over() {
            let moves = self.moves(&best);
            let mut order: Vec<usize> = (0..moves.len()).filter(|&i| moves[i].0 > 0.0).collect();
            order.sort_by(|&a, &b| moves[b].0.total_cmp(&moves[a].0).then(a.cmp(&b)));
            while !order.is_empty() && !self.over() {
                let mut owner = best.owner.clone();
                for &i in &order {
                    owner[i] = moves[i].1;
                }
                let trial = self.settle(self.point(power_step(&best, &owner, 0.0)));
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

/// Index of the largest value, the first of equal ones.
fn largest(values: impl Iterator<Item = f64>) -> usize {
    values
        .enumerate()
        .fold((0, f64::NEG_INFINITY), |best, (k, v)| {
            if v > best.1 { (k, v) } else { best }
        })
        .0
}

/// One projected power step of every column on the rows that `owner` gives it. A column that is left
/// empty takes the row it pulls most at, from a column that keeps others.
fn power_step(point: &Point, owner: &[usize], shift: f64) -> Array2<f64> {
    let pull = &point.x * shift - &point.gradient;
    let mut x = Array2::<f64>::zeros(pull.dim());
    for (i, &k) in owner.iter().enumerate() {
        x[[i, k]] = pull[[i, k]].max(0.0);
    }
    start::complete_partition(&mut x, |i, k| pull[[i, k]]);
    x
}

/// Alternation from x, then perturbed and repeated while there is time; x has one owner per row.
pub(super) fn improve<P: Penalty>(
    oracle: &Oracle<'_, P>,
    x: &Array2<f64>,
    seed: u64,
    pace: Pace<'_>,
) -> Array2<f64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let diagonal = oracle.problem.smooth.diagonal();
    let mut alternation = Alternation {
        oracle,
        diagonal: diagonal.iter().map(|v| -v).collect(),
        pace,
        rounds: 0,
    };
    let mut best = alternation.descend(alternation.point(x.clone()));
    while !alternation.over() {
        let draw: f64 = rng.random();
        let share = MOVED.0 * (MOVED.1 / MOVED.0).powf(draw);
        let mut owner = best.owner.clone();
        for (i, owner) in owner.iter_mut().enumerate() {
            if rng.random::<f64>() < share {
                let own = *owner;
                *owner = largest(
                    best.gradient
                        .row(i)
                        .iter()
                        .enumerate()
                        .map(|(k, g)| if k == own { f64::NEG_INFINITY } else { -g }),
                );
            }
        }
        let start = alternation.point(power_step(&best, &owner, 0.0));
        let trial = alternation.descend(start);
        if trial.value < best.value {
            best = trial;
        }
        alternation.rounds += 1;
    }
    best.x
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::penalty::NonNegative;
    use crate::signature::Signature;
    use crate::smooth::Quadratic;
    use crate::solver::Problem;
    use crate::strategy::clock::Clock;
    use std::time::Instant;

    /// Three groups of rows that vary together.
    #[test]
    fn finds_the_groups() {
        let truth = Array2::from_shape_fn((12, 3), |(i, k)| if i % 3 == k { 0.5 } else { 0.0 });
        let noise = start::random(12, 12, 5);
        let c = -truth.dot(&truth.t()) - 0.01 * (&noise + &noise.t());
        let smooth = Quadratic::new(c, None, None).unwrap();
        let signature = Signature::stiefel(12);
        let problem = Problem {
            smooth: &smooth,
            penalty: &NonNegative,
            signature: &signature,
            components: 3,
        };
        let oracle = Oracle::new(&problem, Array2::eye(3), (-1.1, 0.1));
        let clock = Clock::new(Instant::now(), None);
        for seed in 0..5 {
            let x0 = start::partition(12, 3, seed);
            let x = improve(&oracle, &x0, seed, clock.pace(None, 20));
            assert!(oracle.objective(&x) <= oracle.objective(&x0), "{seed}");
            for i in 0..12 {
                let same: Vec<f64> = (0..3).map(|k| x[[i, k]] * x[[i % 3, k]]).collect();
                assert!(same.iter().sum::<f64>() > 0.1, "{seed} {i} {x}");
            }
        }
    }
}
