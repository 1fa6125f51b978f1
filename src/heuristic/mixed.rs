//! Starts and perturbations for mixed signatures, where h causes many local optima.
//!
//! With ℓ1, exact pairs of rows and columns stall at kinks, at points that are not critical
//! (`docs/theory.md`). Alternating pairs and [tangent steps](super::tangent) end at critical points that no pair
//! improves, mostly at the same point from every start.

use ndarray::{Array2, Axis};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::profile::{Kind, Profile};
use super::{Heuristic, LIKELY, Prior, Task};
use crate::signature::Signature;
use crate::start::random_j_orthogonal;

/// Standard deviation of the rapidities of a start.
const START: f64 = 0.5;

/// Standard deviation of the rapidities of a perturbation.
const PERTURBATION: f64 = 0.3;

/// R X₀ for a random J-orthogonal R, which keeps X₀ᵀJX₀. For X ≥ 0, and for every second run with ℓ0, a
/// random permutation of the rows of equal sign instead, which keeps zeros.
pub(super) struct Random;

impl Heuristic for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn fits(&self, profile: &Profile, improve: bool) -> Option<Prior> {
        (profile.mixed && !improve).then(|| Prior::new(LIKELY, 0.0))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let x0 = task.known.given.as_ref()?;
        let signature = task.problem().signature;
        let kind = task.profile.kind;
        if kind == Kind::Nonnegative || (kind == Kind::Count && task.run.is_multiple_of(2)) {
            return Some(permuted(x0, signature, task.seed));
        }
        let factor = random_j_orthogonal(signature, START, task.seed);
        Some(factor.map_or_else(|_| x0.clone(), |factor| factor.dot(x0)))
    }
}

/// Permutes the rows of equal sign at random.
fn permuted(x0: &Array2<f64>, signature: &Signature, seed: u64) -> Array2<f64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let n = x0.nrows();
    let mut order: Vec<usize> = (0..n).collect();
    for sign in [1, -1] {
        let rows: Vec<usize> = (0..n).filter(|&i| signature.signs()[i] == sign).collect();
        let mut shuffled = rows.clone();
        shuffled.shuffle(&mut rng);
        for (&to, from) in rows.iter().zip(shuffled) {
            order[to] = from;
        }
    }
    x0.select(Axis(0), &order)
}

/// Perturbation of the incumbent: rotates or boosts one to three random pairs of rows or columns; for X ≥ 0
/// it swaps them.
pub(super) struct Perturb;

impl Heuristic for Perturb {
    fn name(&self) -> &'static str {
        "perturbation"
    }

    fn fits(&self, profile: &Profile, improve: bool) -> Option<Prior> {
        (profile.mixed && improve).then(|| Prior::new(LIKELY, 0.0))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(task.seed);
        let mut x = task.from?.clone();
        let exchange = task.profile.kind == Kind::Nonnegative;
        for _ in 0..rng.random_range(1..=3) {
            let side = match rng.random::<bool>() {
                true => task.known.columns.as_ref(),
                false => None,
            };
            let signature = side.unwrap_or(task.problem().signature);
            let n = signature.len();
            if n < 2 {
                continue;
            }
            let i = rng.random_range(0..n);
            let j = (i + rng.random_range(1..n)) % n;
            let normal: f64 = StandardNormal.sample(&mut rng);
            let v = match (signature.sign(i) == signature.sign(j), exchange) {
                (true, true) => [[0.0, 1.0], [1.0, 0.0]],
                (false, true) => continue,
                (true, false) => [[normal.cos(), normal.sin()], [-normal.sin(), normal.cos()]],
                (false, false) => {
                    let mu = PERTURBATION * normal;
                    [[mu.cosh(), mu.sinh()], [mu.sinh(), mu.cosh()]]
                }
            };
            let axis = Axis(usize::from(side.is_some()));
            let of = |i| x.index_axis(axis, i).to_owned();
            let (a, b) = (of(i), of(j));
            let mix = |v: [f64; 2]| &a * v[0] + &b * v[1];
            x.index_axis_mut(axis, i).assign(&mix(v[0]));
            x.index_axis_mut(axis, j).assign(&mix(v[1]));
        }
        Some(x)
    }
}
