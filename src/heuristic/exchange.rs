//! Swaps of single entries for ℓ0, by values and gradients of f alone.
//!
//! If X is stationary on its support, R = ∇f(X) − XΛ vanishes there. To first order, adding entry (i, k) to
//! the support gains R_ik²/(2κ), with κ the curvature along the entry, and dropping it loses ½κX_ik². Adds
//! are tried in descending order of |R|, drops in ascending order of |X|, and swaps within a row or a column
//! in ascending order of |X|/|R|. A trial is projected onto {XᵀX = I} with its support and descends there;
//! the first trial that lowers F is accepted. If none does, random swaps perturb the point: an iterated local
//! search (Lourenço, Martin and Stützle, Handbook of Metaheuristics, 2003).

use ndarray::{Array2, Zip};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::oracle::Oracle;
use super::profile::{Kind, Profile};
use super::{Heuristic, LEAST, LIKELY, Prior, Task, tangent};
use crate::limits::MethodLimit;
use crate::manifold::normals;

/// Steps of a trial.
const SHORT: usize = 10;

/// Steps of a trial whose F then exceeds that of the present point by at most λ.
const LONG: usize = 150;

/// Most adds, drops and swaps tried at a point.
const LISTED: usize = 400;

/// Most added entries in swaps.
const ADDED: usize = 60;

/// Decrease, relative to λ, from which a trial is accepted.
const HELPS: f64 = 1e-6;

/// Smallest and largest displacement of an entry that measures the curvature along it.
const PROBE: (f64, f64) = (1e-4, 0.1);

/// Largest magnitude of an added entry.
const LARGEST: f64 = 0.5;

/// Most random swaps of a perturbation minus one.
const MOST: f64 = 5.0;

/// Number of draws of a perturbation if no feasible point is near.
const DRAWS: usize = 20;

/// Row and column.
type Entry = (usize, usize);

/// A move: an entry that is added to the support, one that is dropped, or both.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Swap {
    add: Option<Entry>,
    drop: Option<Entry>,
}

/// X, stationary on its support.
#[derive(Clone)]
struct Stationary {
    x: Array2<f64>,
    /// F.
    objective: f64,
    gradient: Array2<f64>,
    lambda: Array2<f64>,
    /// The residual R = ∇f(X) − XΛ.
    residual: Array2<f64>,
}

/// The local search of one run.
struct SwapSearch<'a, 'b> {
    oracle: &'a Oracle<'b>,
    lambda: f64,
    limit: MethodLimit<'a>,
}

impl Stationary {
    /// Returns the nonzeros in ascending order of magnitude, and the zeros in descending order of |R|.
    fn entries(&self) -> (Vec<Entry>, Vec<Entry>) {
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        for (at, &x) in self.x.indexed_iter() {
            if x != 0.0 {
                inside.push(at);
            } else if self.residual[at] != 0.0 {
                outside.push(at);
            }
        }
        inside.sort_by(|&a, &b| self.x[a].abs().total_cmp(&self.x[b].abs()));
        outside.sort_by(|&a, &b| self.residual[b].abs().total_cmp(&self.residual[a].abs()));
        inside.truncate(LISTED);
        outside.truncate(LISTED);
        (inside, outside)
    }

    /// Returns the swaps within a row or a column, those with the largest estimated gain first.
    fn pairs(&self, inside: &[Entry], outside: &[Entry]) -> Vec<Swap> {
        let mut pairs: Vec<(f64, Swap)> = Vec::new();
        for &add in outside.iter().take(ADDED) {
            let near = |at: &&Entry| at.0 == add.0 || at.1 == add.1;
            pairs.extend(inside.iter().filter(near).map(|&drop| {
                let ratio = self.x[drop].abs() / self.residual[add].abs();
                let [add, drop] = [add, drop].map(Some);
                (ratio, Swap { add, drop })
            }));
        }
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        pairs.truncate(LISTED);
        pairs.into_iter().map(|(_, pair)| pair).collect()
    }

    /// Returns the moves to try: drops, adds and swaps in turn.
    fn moves(&self) -> Vec<Swap> {
        let (inside, outside) = self.entries();
        let pairs = self.pairs(&inside, &outside);
        let longest = inside.len().max(outside.len()).max(pairs.len());
        let mut all = Vec::new();
        for k in 0..longest {
            all.extend(inside.get(k).map(|&at| Swap { drop: Some(at), add: None }));
            all.extend(outside.get(k).map(|&at| Swap { add: Some(at), drop: None }));
            all.extend(pairs.get(k));
        }
        all
    }
}

impl SwapSearch<'_, '_> {
    fn is_over(&self) -> bool {
        self.limit.progress() >= 1.0
    }

    /// Makes at most `most` steps from a feasible X; returns the point and F.
    fn descend(&self, x: Array2<f64>, most: usize) -> (Array2<f64>, f64) {
        let descent = tangent::descend(self.oracle, x, most, self.limit.rest());
        (descent.x, descent.objective)
    }

    /// Computes gradient, multipliers and residual of a stationary X; None if the time is up.
    fn stationary(&self, (x, objective): (Array2<f64>, f64)) -> Option<Stationary> {
        let (_, gradient) = self.oracle.value_and_gradient(&x);
        if self.oracle.manifold.refuses(&x, 2) || !objective.is_finite() {
            return None;
        }
        let lambda = self.oracle.manifold.multiplier(&x, &gradient);
        let mut residual = normals(&x, self.oracle.manifold.signature).dot(&lambda);
        Zip::from(&mut residual).and(&gradient).for_each(|p, &g| *p = g - *p);
        Some(Stationary { x, objective, gradient, lambda, residual })
    }

    /// Returns the value of an added entry: a Newton step with the curvature from gradients at two points.
    fn added_value(&self, at: &Stationary, entry: Entry) -> f64 {
        let residual = at.residual[entry];
        let length = (residual.abs() / self.oracle.lipschitz).clamp(PROBE.0, PROBE.1);
        let mut moved = at.x.clone();
        moved[entry] = -residual.signum() * length;
        let (_, there) = self.oracle.value_and_gradient(&moved);
        let along = (there[entry] - at.gradient[entry]) / moved[entry];
        let curvature = along - at.lambda[[entry.1, entry.1]];
        let size = match curvature > 0.0 {
            true => (residual.abs() / curvature).min(LARGEST),
            false => LARGEST,
        };
        -residual.signum() * size
    }

    /// Returns a feasible point near the point after some moves, if there is one.
    fn swapped(&self, at: &Stationary, moves: &[Swap]) -> Option<Array2<f64>> {
        let mut x = at.x.clone();
        for swap in moves {
            if let Some(entry) = swap.drop {
                x[entry] = 0.0;
            }
            if let Some(entry) = swap.add {
                x[entry] = self.added_value(at, entry);
            }
        }
        self.oracle.manifold.restore(&x)
    }

    /// Returns the end of the descent after a move, if it is lower.
    fn tried(&self, at: &Stationary, swap: Swap) -> Option<Stationary> {
        let x = self.swapped(at, &[swap])?;
        let mut end = self.descend(x, SHORT);
        if !(end.1 <= at.objective + self.lambda) {
            return None;
        }
        if end.1 >= at.objective - HELPS * self.lambda {
            end = self.descend(end.0, LONG);
        }
        if !(end.1 < at.objective - HELPS * self.lambda) {
            return None;
        }
        self.stationary(end)
    }

    /// Moves until no tried move lowers F.
    fn improve(&self, mut at: Stationary) -> Stationary {
        let mut moves = at.moves();
        let (mut next, mut failed) = (0, 0);
        while failed < moves.len() && !self.is_over() {
            let swap = moves[next % moves.len()];
            next += 1;
            match self.tried(&at, swap) {
                Some(lower) => {
                    at = lower;
                    moves = at.moves();
                    failed = 0;
                }
                None => failed += 1,
            }
        }
        at
    }

    /// Makes random swaps between the smallest nonzeros and the zeros with the largest |R|, and descends.
    fn perturbed(&self, at: &Stationary, heat: f64, rng: &mut Xoshiro256PlusPlus) -> Option<Stationary> {
        let (inside, outside) = at.entries();
        let near = inside.len().min(outside.len());
        for _ in 0..DRAWS {
            if near == 0 || self.is_over() {
                break;
            }
            let count = rng.random_range(1..=1 + (MOST * heat) as usize);
            let moves: Vec<Swap> = (0..count)
                .map(|_| Swap {
                    add: Some(outside[rng.random_range(0..near)]),
                    drop: Some(inside[rng.random_range(0..near)]),
                })
                .collect();
            if let Some(x) = self.swapped(at, &moves) {
                return self.stationary(self.descend(x, LONG));
            }
        }
        None
    }
}

/// Swaps of single entries of the incumbent.
pub(super) struct Exchanged;

impl Heuristic for Exchanged {
    fn name(&self) -> &'static str {
        "exchange"
    }

    /// For disjoint supports, [`supports`](super::supports) does the same with C.
    fn fits(&self, profile: &Profile, improve: bool) -> Option<Prior> {
        let fits = profile.kind == Kind::Count && !profile.mixed && !profile.trace_form;
        (improve && fits).then(|| Prior::new(LIKELY, LEAST))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let lambda = task.problem().penalty.count().filter(|&v| v > 0.0)?;
        let local = SwapSearch { oracle: task.oracle, lambda, limit: task.limit };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(task.seed);
        let begun = local.descend(task.from?.clone(), LONG);
        let mut best = local.improve(local.stationary(begun)?);
        while !local.is_over() {
            let Some(perturbed) = local.perturbed(&best, task.heat, &mut rng) else {
                break;
            };
            let found = local.improve(perturbed);
            if found.objective < best.objective {
                best = found;
            }
        }
        Some(best.x)
    }
}
