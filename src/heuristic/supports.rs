//! Components with disjoint supports, by simulated annealing over single rows.
//!
//! With disjoint supports the columns are orthogonal, so every column is a unit vector on its own rows.
//! (Nonnegative PCA always has this form, sparse PCA nearly so if λ is large.) The state is an owner for
//! every row, an unnormalised vector u_k for every column, and its image P u_k, P = −C. Dropping a row from
//! column k or adding one to column l changes the value `½ u_kᵀP u_k/‖u_k‖²` by a formula in five numbers
//! (the 2×2 Rayleigh quotient on span{u, e_i}). A proposal therefore costs O(1), and an accepted one two
//! updates of length n. Proposals are accepted by the Metropolis rule while the temperature falls
//! geometrically; a greedy descent follows.

use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::covariance::Covariance;
use super::oracle::Oracle;
use super::profile::{Kind, Profile};
use super::{Heuristic, LEAST, LIKELY, POSSIBLE, Prior, Task, UNLIKELY};
use crate::continuation::top_diagonal;
use crate::limits::MethodLimit;
use crate::support;

/// Proposals between updates of the progress, and between checks of the clock.
const BATCH: usize = 4096;
const BETWEEN_CHECKS: usize = 256;

/// Accepted moves, per row, between exact evaluations of the images.
const REFRESH: usize = 64;

/// Change of a greedy move, relative to the largest diagonal entry, that counts as rounding, and relative
/// decrease of F after which greedy passes end.
const ROUNDING: f64 = 1e-14;
const LAST: f64 = 1e-9;

/// Work of a proposal, per column and in all, in multiply-adds.
const PER_COLUMN: usize = 10;
const PER_PROPOSAL: usize = 280;

/// First and last temperature, in units of the mean value per row. For an improvement the first temperature
/// is `WARM` of it, down to `COOLEST` times that for heat 0.
const TEMPERATURE: (f64, f64) = (0.4, 0.025);
const WARM: f64 = 0.6;
const COOLEST: f64 = 0.25;

/// Annealed disjoint supports.
pub(super) struct Supports;

impl Heuristic for Supports {
    fn name(&self) -> &'static str {
        "supports"
    }

    fn fits(&self, profile: &Profile, improve: bool) -> Option<Prior> {
        let success = match (profile.kind, profile.is_dense()) {
            (Kind::Nonnegative, _) | (Kind::Count, false) => LIKELY,
            (Kind::Count, true) if improve => UNLIKELY,
            _ => POSSIBLE,
        };
        (profile.whole && profile.is_disjoint()).then(|| Prior::new(success, LEAST))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let (first, last) = TEMPERATURE;
        let form = task.oracle.form?;
        let (x, first) = match task.from {
            Some(best) => {
                let heat = first * WARM * COOLEST.powf(1.0 - task.heat);
                (best.clone(), heat)
            }
            None if task.profile.kind == Kind::Count && task.run == 0 => {
                (top_diagonal(form, task.oracle.columns()), first)
            }
            None => (task.known.basis.rotated.clone(), first),
        };
        let p = task.known.covariance.as_ref()?;
        Some(anneal(
            task.oracle,
            p,
            &x,
            (first, last),
            task.seed,
            task.limit,
        ))
    }
}

/// Owners, vectors and images.
struct Assignment<'a> {
    p: &'a Covariance<'a>,
    n: usize,
    r: usize,
    lambda: f64,
    nonnegative: bool,
    /// Changes below this are rounding.
    least: f64,
    owner: Vec<usize>,
    u: Vec<f64>,
    image: Vec<f64>,
    norm2: Vec<f64>,
    quotient: Vec<f64>,
    size: Vec<usize>,
    moves: usize,
    /// Work not yet charged.
    work: usize,
}

/// A proposed move of one row.
struct RowMove {
    row: usize,
    from: usize,
    to: usize,
    entry: f64,
    change: f64,
}

impl<'a> Assignment<'a> {
    fn new(p: &'a Covariance<'a>, x: &Array2<f64>, lambda: f64, nonnegative: bool) -> Self {
        let (n, r) = x.dim();
        let mut state = Self {
            p,
            n,
            r,
            lambda,
            nonnegative,
            least: ROUNDING * p.diagonal().iter().fold(0.0f64, |m, v| m.max(v.abs())),
            owner: vec![r; n],
            u: vec![0.0; n],
            image: vec![0.0; n * r],
            norm2: vec![0.0; r],
            quotient: vec![0.0; r],
            size: vec![0; r],
            moves: 0,
            work: 0,
        };
        for (i, row) in x.outer_iter().enumerate() {
            let (mut best, mut largest) = (r, 0.0);
            for (k, &v) in row.iter().enumerate() {
                let v = if nonnegative { v } else { v.abs() };
                if v > largest {
                    (best, largest) = (k, v);
                }
            }
            if best < r {
                state.owner[i] = best;
                state.u[i] = row[best];
                state.size[best] += 1;
            }
        }
        // An empty column takes the row of largest diagonal among the free rows and those of columns with
        // other rows.
        for k in 0..r {
            if state.size[k] == 0 {
                let candidate = (0..n)
                    .filter(|&i| state.owner[i] == r || state.size[state.owner[i]] > 1)
                    .max_by(|&a, &b| p.diagonal()[a].total_cmp(&p.diagonal()[b]));
                if let Some(i) = candidate {
                    if state.owner[i] < r {
                        state.size[state.owner[i]] -= 1;
                    }
                    state.owner[i] = k;
                    state.u[i] = 1.0;
                    state.size[k] = 1;
                }
            }
        }
        state.refresh();
        state
    }

    /// Normalises the vectors and recomputes their images.
    fn refresh(&mut self) {
        let (n, r) = (self.n, self.r);
        self.work += 2 * n * n;
        self.norm2.fill(0.0);
        for i in 0..n {
            if self.owner[i] < r {
                self.norm2[self.owner[i]] += self.u[i] * self.u[i];
            }
        }
        self.image.fill(0.0);
        for i in 0..n {
            let k = self.owner[i];
            if k < r {
                self.u[i] /= self.norm2[k].sqrt();
                if self.u[i] != 0.0 {
                    let image = &mut self.image[k * n..(k + 1) * n];
                    self.p.add(i, self.u[i], image);
                }
            }
        }
        self.norm2.fill(1.0);
        self.quotient.fill(0.0);
        for i in 0..n {
            let k = self.owner[i];
            if k < r {
                self.quotient[k] += self.u[i] * self.image[k * n + i];
            }
        }
        self.moves = 0;
    }

    fn value(&self) -> f64 {
        let total: f64 = self
            .quotient
            .iter()
            .zip(&self.norm2)
            .map(|(q, s)| q / s)
            .sum();
        let members: usize = self.size.iter().sum();
        self.lambda * members as f64 - 0.5 * total
    }

    /// Returns the move of row `i` to column `to` (r: to none), with the change of F; None if the move is
    /// impossible.
    #[inline]
    fn propose(&self, i: usize, to: usize) -> Option<RowMove> {
        let (n, r) = (self.n, self.r);
        let from = self.owner[i];
        let d = self.p.diagonal()[i];
        let mut change = 0.0;
        // Column `from` without the row: vᵀPv, ‖v‖², and (P v)_i of the rest.
        let (mut quotient, mut norm2, mut cross) = (0.0, 1.0, 0.0);
        if from < r {
            if self.size[from] <= 1 {
                return None;
            }
            let u = self.u[i];
            let image = self.image[from * n + i];
            norm2 = self.norm2[from] - u * u;
            if !(norm2 > 1e-9 * self.norm2[from]) {
                return None;
            }
            quotient = self.quotient[from] - 2.0 * u * image + u * u * d;
            cross = image - u * d;
            change +=
                0.5 * (self.quotient[from] / self.norm2[from] - quotient / norm2) - self.lambda;
        }
        let mut entry = 0.0;
        if to < r {
            if to != from {
                quotient = self.quotient[to];
                norm2 = self.norm2[to];
                cross = self.image[to * n + i];
            }
            // Largest eigenvalue of [[mu, b], [b, d]].
            let mu = quotient / norm2;
            let b = cross / norm2.sqrt();
            change += self.lambda;
            if b > 0.0 || (b != 0.0 && !self.nonnegative) {
                let relative = support::entry(-mu, -b, -d);
                if !(relative.abs() < 1e6) {
                    return None;
                }
                entry = relative * norm2.sqrt();
                change -= support::gain(-mu, -b, -d);
            }
        }
        Some(RowMove {
            row: i,
            from,
            to,
            entry,
            change,
        })
    }

    fn accept(&mut self, step: &RowMove) {
        let (n, r, i) = (self.n, self.r, step.row);
        self.work += 8 * n;
        let d = self.p.diagonal()[i];
        let mut shift = |k: usize, entry: f64, sign: f64| {
            let image = &mut self.image[k * n..(k + 1) * n];
            self.quotient[k] += sign * 2.0 * entry * image[i] + entry * entry * d;
            self.norm2[k] += sign * entry * entry;
            if entry != 0.0 {
                self.p.add(i, sign * entry, image);
            }
        };
        if step.from < r && step.from == step.to {
            // One update for the difference.
            let old = self.u[i];
            let delta = step.entry - old;
            let image = &mut self.image[step.to * n..(step.to + 1) * n];
            self.quotient[step.to] += 2.0 * delta * image[i] + delta * delta * d;
            self.norm2[step.to] += step.entry * step.entry - old * old;
            self.p.add(i, delta, image);
        } else {
            if step.from < r {
                shift(step.from, self.u[i], -1.0);
                self.size[step.from] -= 1;
            }
            if step.to < r {
                shift(step.to, step.entry, 1.0);
                self.size[step.to] += 1;
            }
        }
        self.owner[i] = step.to;
        self.u[i] = step.entry;
        self.moves += 1;
        if self.moves >= REFRESH * n {
            self.refresh();
        }
    }

    /// Returns the column, other than the owner, that row `i` is most strongly coupled to.
    fn best_column(&self, i: usize) -> usize {
        let (mut best, mut largest) = (self.r, f64::NEG_INFINITY);
        for k in 0..self.r {
            if k == self.owner[i] {
                continue;
            }
            let b = self.image[k * self.n + i];
            let b = if self.nonnegative { b } else { b.abs() };
            if b * b.abs() > largest * self.norm2[k] {
                (best, largest) = (k, b * b.abs() / self.norm2[k]);
            }
        }
        best
    }

    fn charge(&mut self, limit: MethodLimit<'_>) {
        limit.work.spend(std::mem::take(&mut self.work) as f64);
    }

    /// Makes improving moves only, all rows against all columns, until none is left.
    fn greedy(&mut self, limit: MethodLimit<'_>) {
        const ROUNDS: usize = 60;
        for _ in 0..ROUNDS {
            let before = self.value();
            for i in 0..self.n {
                if i % BETWEEN_CHECKS == 0 {
                    self.work += BETWEEN_CHECKS * (self.r + 1) * PER_PROPOSAL;
                    self.charge(limit);
                    if limit.work.expired() {
                        return;
                    }
                }
                let mut best: Option<RowMove> = None;
                let last = if self.lambda > 0.0 {
                    self.r
                } else {
                    self.r - 1
                };
                for to in 0..=last {
                    if let Some(step) = self.propose(i, to)
                        && step.change < best.as_ref().map_or(-self.least, |b| b.change)
                    {
                        best = Some(step);
                    }
                }
                if let Some(step) = best {
                    self.accept(&step);
                }
            }
            self.refresh();
            let after = self.value();
            if !(before - after > LAST * after.abs()) || limit.progress() >= 1.0 {
                break;
            }
        }
    }

    fn matrix(&self) -> Array2<f64> {
        let mut x = Array2::zeros((self.n, self.r));
        for i in 0..self.n {
            if self.owner[i] < self.r {
                x[[i, self.owner[i]]] = self.u[i];
            }
        }
        x
    }
}

/// Proposes another owner for a random row, and accepts by the Metropolis rule at temperature `heat`.
fn metropolis(state: &mut Assignment<'_>, heat: f64, lambda: f64, rng: &mut Xoshiro256PlusPlus) {
    let (n, r) = (state.n, state.r);
    let i = rng.random_range(0..n);
    let from = state.owner[i];
    let draw: f64 = rng.random();
    let to = if from < r && draw < 0.15 {
        from
    } else if from < r && lambda > 0.0 && draw < 0.4 {
        r
    } else if draw < 0.7 {
        state.best_column(i)
    } else {
        rng.random_range(0..r)
    };
    if from == r && to == r {
        return;
    }
    let Some(trial) = state.propose(i, to) else {
        return;
    };
    let accepted = if to == from {
        trial.change < -1e-3 * heat
    } else {
        trial.change < 0.0 || rng.random::<f64>() < (-trial.change / heat).exp()
    };
    if accepted {
        state.accept(&trial);
    }
}

/// Anneals from `x`; returns a feasible point with disjoint supports.
fn anneal(
    oracle: &Oracle<'_>,
    p: &Covariance<'_>,
    x: &Array2<f64>,
    temperature: (f64, f64),
    seed: u64,
    limit: MethodLimit<'_>,
) -> Array2<f64> {
    let penalty = oracle.problem.penalty;
    // Penalty of an arbitrarily small nonzero entry.
    let lambda = penalty.entry(0, 0, f64::MIN_POSITIVE) - penalty.entry(0, 0, 0.0);
    let nonnegative = penalty.nonnegative();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut state = Assignment::new(p, x, lambda, nonnegative);
    state.greedy(limit);
    let members = state.size.iter().sum::<usize>().max(1);
    let total: f64 = state.quotient.iter().sum();
    // Mean net gain of a row.
    let unit = (0.5 * total.abs() / members as f64 - lambda).max(0.2 * lambda);
    let unit = if lambda > 0.0 { unit.min(lambda) } else { unit };
    let r = state.r;
    let mut best = (state.value(), state.owner.clone(), state.u.clone());
    loop {
        let ratio = limit.progress();
        if ratio >= 1.0 {
            break;
        }
        let heat = unit * temperature.0 * (temperature.1 / temperature.0).powf(ratio);
        state.work += BATCH * (PER_PROPOSAL + PER_COLUMN * r);
        state.charge(limit);
        for proposal in 0..BATCH {
            if proposal % BETWEEN_CHECKS == 0 && limit.work.expired() {
                break;
            }
            metropolis(&mut state, heat, lambda, &mut rng);
        }
        if ratio > 0.7 {
            let value = state.value();
            if value < best.0 {
                best = (value, state.owner.clone(), state.u.clone());
            }
        }
    }
    state.refresh();
    state.greedy(limit);
    if best.0 < state.value() {
        let mut sizes = vec![0; r];
        best.1
            .iter()
            .filter(|&&k| k < r)
            .for_each(|&k| sizes[k] += 1);
        (state.owner, state.u, state.size) = (best.1, best.2, sizes);
        state.refresh();
        state.greedy(limit);
    }
    state.matrix()
}
