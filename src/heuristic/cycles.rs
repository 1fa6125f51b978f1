//! Even permutations of rows, for det X = 1.
//!
//! A swap of two rows changes the sign of the determinant, so no pair of rows can improve a square X ≥ 0 with
//! determinant 1, which is a permutation matrix. Cycles of three rows and products of two swaps keep the
//! determinant of every X. The descent makes the first of these moves that lowers F, until none does; random
//! cycles then perturb the point, and the descent repeats.

use ndarray::Array2;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::oracle::Oracle;
use super::profile::{Kind, Profile};
use super::{Heuristic, LEAST, LIKELY, Prior, Task, UNLIKELY};
use crate::limits::MethodLimit;
use crate::numerics;

/// Largest number of random cycles of a perturbation.
const ROTATIONS: usize = 3;

/// Number of descents without improvement after which the search ends.
const IDLE: usize = 30;

/// Returns X with row `to[k]` in the place of row `from[k]`.
fn moved(x: &Array2<f64>, from: &[usize], to: &[usize]) -> Array2<f64> {
    let mut out = x.clone();
    for (&i, &j) in from.iter().zip(to) {
        out.row_mut(i).assign(&x.row(j));
    }
    out
}

struct PermutationSearch<'a, 'b> {
    oracle: &'a Oracle<'b>,
    limit: MethodLimit<'a>,
}

impl PermutationSearch<'_, '_> {
    fn is_over(&self) -> bool {
        self.limit.progress() >= 1.0
    }

    /// Returns the first lower point among the cycles of three rows and the products of two swaps.
    fn lower(&self, x: &Array2<f64>, value: f64) -> Option<(Array2<f64>, f64)> {
        let n = x.nrows();
        let least = value - numerics::GAIN * value.abs();
        let tried = |from: &[usize], to: &[usize]| {
            let trial = moved(x, from, to);
            let value = self.oracle.objective(&trial);
            (value < least).then_some((trial, value))
        };
        let pairs = || (0..n).flat_map(move |a| (a + 1..n).map(move |b| (a, b)));
        for (a, b) in pairs() {
            for c in b + 1..n {
                if self.is_over() {
                    return None;
                }
                let turns = [[b, c, a], [c, a, b]];
                let found = turns.iter().find_map(|to| tried(&[a, b, c], to));
                if found.is_some() {
                    return found;
                }
            }
        }
        for (a, b) in pairs() {
            for (c, d) in pairs().filter(|&(c, d)| c > a && c != b && d != b) {
                if self.is_over() {
                    return None;
                }
                let found = tried(&[a, b, c, d], &[b, a, d, c]);
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    fn descend(&self, x: Array2<f64>) -> (Array2<f64>, f64) {
        let value = self.oracle.objective(&x);
        let mut at = (x, value);
        while let Some(lower) = self.lower(&at.0, at.1) {
            at = lower;
        }
        at
    }
}

/// Even permutations of the rows of the incumbent.
pub(super) struct Cycles;

impl Heuristic for Cycles {
    fn name(&self) -> &'static str {
        "cycles"
    }

    fn fits(&self, profile: &Profile, improve: bool) -> Option<Prior> {
        let success = match profile.kind {
            Kind::Nonnegative => LIKELY,
            Kind::Smooth => 0.0,
            _ => UNLIKELY,
        };
        (improve && profile.rotations && profile.rows > 2).then(|| Prior::new(success, LEAST))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let local = PermutationSearch { oracle: task.oracle, limit: task.limit };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(task.seed);
        let mut best = local.descend(task.from?.clone());
        let mut rows: Vec<usize> = (0..best.0.nrows()).collect();
        let mut idle = 0;
        while idle < IDLE && !local.is_over() {
            let mut x = best.0.clone();
            for _ in 0..rng.random_range(1..=ROTATIONS) {
                rows.shuffle(&mut rng);
                x = moved(&x, &[rows[0], rows[1], rows[2]], &[rows[1], rows[2], rows[0]]);
            }
            let found = local.descend(x);
            idle += 1;
            if found.1 < best.1 {
                (best, idle) = (found, 0);
            }
        }
        Some(best.0)
    }
}
