//! Even permutations of rows, where det X = 1.
//!
//! Exchanging two rows turns the determinant round, so no pair of rows can move a square X ≥ 0 of determinant 1, a
//! permutation. Cycles of three rows and products of two exchanges keep it, whatever X is: the first of them that
//! lowers F is made, until there is none; then some random cycles are, and all is repeated from there.

use ndarray::Array2;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::oracle::Oracle;
use super::profile::{Kind, Profile};
use super::{Heuristic, Prior, Task};
use crate::budget::Pace;

/// Relative decrease that counts.
const GAIN: f64 = 1e-12;

/// Random cycles between two descents, at most, and how many descents in a row may find nothing better.
const ROTATIONS: usize = 3;
const IDLE: usize = 30;

/// X with row `to[k]` where row `from[k]` was.
fn moved(x: &Array2<f64>, from: &[usize], to: &[usize]) -> Array2<f64> {
    let mut out = x.clone();
    for (&i, &j) in from.iter().zip(to) {
        out.row_mut(i).assign(&x.row(j));
    }
    out
}

/// The descent over even permutations.
struct Local<'a, 'b> {
    oracle: &'a Oracle<'b>,
    pace: Pace<'a>,
}

impl Local<'_, '_> {
    fn is_over(&self) -> bool {
        self.pace.progress() >= 1.0
    }

    /// The first lower point among the cycles of three rows and the pairs of exchanges.
    fn lower(&self, x: &Array2<f64>, value: f64) -> Option<(Array2<f64>, f64)> {
        let n = x.nrows();
        let least = value - GAIN * value.abs();
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

/// Cycles of rows of the best point.
pub(super) struct Cycles;

impl Heuristic for Cycles {
    fn name(&self) -> &'static str {
        "cycles"
    }

    fn fits(&self, profile: &Profile, improve: bool) -> Option<Prior> {
        let hope = match profile.kind {
            Kind::Nonnegative => 1.0,
            Kind::Smooth => 0.0,
            _ => 0.3,
        };
        (improve && profile.rotations && profile.rows > 2).then(|| Prior::new(hope, 30.0))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let local = Local {
            oracle: task.oracle,
            pace: task.pace,
        };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(task.seed);
        let mut best = local.descend(task.from?.clone());
        let mut rows: Vec<usize> = (0..best.0.nrows()).collect();
        let mut idle = 0;
        while idle < IDLE && !local.is_over() {
            let mut x = best.0.clone();
            for _ in 0..rng.random_range(1..=ROTATIONS) {
                rows.shuffle(&mut rng);
                x = moved(
                    &x,
                    &[rows[0], rows[1], rows[2]],
                    &[rows[1], rows[2], rows[0]],
                );
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
