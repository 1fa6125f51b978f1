//! Exchanges of single entries for ℓ0, by values and gradients alone.
//!
//! Where X rests on its support, R = ∇f(X) − XΛ vanishes there. To first order an entry (i, k) that joins the
//! support gains R_ik²/(2κ), κ the curvature along it, and one that leaves it loses ½κX_ik²: those of the largest
//! |R| are tried first to join, those of the smallest |X| first to leave, and pairs of both within a row or a
//! column in the order of |X|/|R|. A trial goes back to {XᵀX = I, its support} and descends there; the first that
//! lowers F is taken. At a point that no exchange lowers, some random ones are made, and all is repeated from
//! there: an iterated local search (Lourenço, Martin and Stützle, Handbook of Metaheuristics, 2003).

use ndarray::{Array2, Zip};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::oracle::Oracle;
use super::profile::{Kind, Profile};
use super::{Heuristic, Prior, Task, tangent};
use crate::budget::Pace;
use crate::manifold::normals;

/// Steps of a trial, and of one that they bring within the price of an entry of the best point.
const SHORT: usize = 10;
const LONG: usize = 150;

/// Exchanges of each kind that are tried at a point, and entries that pairs are made of, at most.
const LISTED: usize = 400;
const JOINING: usize = 60;

/// Decrease, relative to the price of an entry, from which an exchange has helped.
const HELPS: f64 = 1e-6;

/// How far an entry is moved to see the curvature along it, and the largest that joins the support.
const PROBE: (f64, f64) = (1e-4, 0.1);
const LARGEST: f64 = 0.5;

/// Random exchanges at most, and how often they are drawn again where no feasible point is near.
const MOST: f64 = 5.0;
const DRAWS: usize = 20;

/// Row and column.
type Entry = (usize, usize);

/// Entries that join the support and leave it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Exchange {
    joins: Option<Entry>,
    leaves: Option<Entry>,
}

/// X, at rest on its support.
#[derive(Clone)]
struct Rest {
    x: Array2<f64>,
    /// F.
    objective: f64,
    gradient: Array2<f64>,
    lambda: Array2<f64>,
    /// ∇f(X) − XΛ.
    pull: Array2<f64>,
}

/// The local search of one run; λ: the price of an entry.
struct Local<'a, 'b> {
    oracle: &'a Oracle<'b>,
    lambda: f64,
    pace: Pace<'a>,
}

impl Rest {
    /// The nonzeros in ascending order of their magnitudes, and the zeros in descending order of the pulls on them.
    fn entries(&self) -> (Vec<Entry>, Vec<Entry>) {
        let (mut inside, mut outside) = (Vec::new(), Vec::new());
        for (at, &x) in self.x.indexed_iter() {
            if x != 0.0 {
                inside.push(at);
            } else if self.pull[at] != 0.0 {
                outside.push(at);
            }
        }
        inside.sort_by(|&a, &b| self.x[a].abs().total_cmp(&self.x[b].abs()));
        outside.sort_by(|&a, &b| self.pull[b].abs().total_cmp(&self.pull[a].abs()));
        inside.truncate(LISTED);
        outside.truncate(LISTED);
        (inside, outside)
    }

    /// Pairs within a row or a column, those first that promise most.
    fn pairs(&self, inside: &[Entry], outside: &[Entry]) -> Vec<Exchange> {
        let mut pairs: Vec<(f64, Exchange)> = Vec::new();
        for &joins in outside.iter().take(JOINING) {
            let near = |at: &&Entry| at.0 == joins.0 || at.1 == joins.1;
            pairs.extend(inside.iter().filter(near).map(|&leaves| {
                let ratio = self.x[leaves].abs() / self.pull[joins].abs();
                let [joins, leaves] = [joins, leaves].map(Some);
                (ratio, Exchange { joins, leaves })
            }));
        }
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        pairs.truncate(LISTED);
        pairs.into_iter().map(|(_, pair)| pair).collect()
    }

    /// What is tried here, all kinds in turn.
    fn exchanges(&self) -> Vec<Exchange> {
        let (inside, outside) = self.entries();
        let pairs = self.pairs(&inside, &outside);
        let longest = inside.len().max(outside.len()).max(pairs.len());
        let mut all = Vec::new();
        for k in 0..longest {
            all.extend(inside.get(k).map(|&at| Exchange {
                leaves: Some(at),
                joins: None,
            }));
            all.extend(outside.get(k).map(|&at| Exchange {
                joins: Some(at),
                leaves: None,
            }));
            all.extend(pairs.get(k));
        }
        all
    }
}

impl Local<'_, '_> {
    fn is_over(&self) -> bool {
        self.pace.progress() >= 1.0
    }

    /// Where at most `limit` steps from a feasible X lead, with F there.
    fn descend(&self, x: Array2<f64>, limit: usize) -> (Array2<f64>, f64) {
        let descent = tangent::descend(self.oracle, x, limit, self.pace.rest());
        (descent.x, descent.objective)
    }

    /// X as a point at rest; None if the time is up.
    fn rest(&self, (x, objective): (Array2<f64>, f64)) -> Option<Rest> {
        let (_, gradient) = self.oracle.value_and_gradient(&x);
        if self.oracle.manifold.refuses(&x, 2) || !objective.is_finite() {
            return None;
        }
        let lambda = self.oracle.manifold.multiplier(&x, &gradient);
        let mut pull = normals(&x, self.oracle.manifold.signature).dot(&lambda);
        Zip::from(&mut pull)
            .and(&gradient)
            .for_each(|p, &g| *p = g - *p);
        Some(Rest {
            x,
            objective,
            gradient,
            lambda,
            pull,
        })
    }

    /// The entry that joins the support: a Newton step along it, the curvature from the gradients at two points.
    fn joining(&self, at: &Rest, entry: Entry) -> f64 {
        let pull = at.pull[entry];
        let length = (pull.abs() / self.oracle.lipschitz).clamp(PROBE.0, PROBE.1);
        let mut moved = at.x.clone();
        moved[entry] = -pull.signum() * length;
        let (_, there) = self.oracle.value_and_gradient(&moved);
        let along = (there[entry] - at.gradient[entry]) / moved[entry];
        let curvature = along - at.lambda[[entry.1, entry.1]];
        let size = match curvature > 0.0 {
            true => (pull.abs() / curvature).min(LARGEST),
            false => LARGEST,
        };
        -pull.signum() * size
    }

    /// The feasible point after some exchanges, if there is one nearby.
    fn exchanged(&self, at: &Rest, exchanges: &[Exchange]) -> Option<Array2<f64>> {
        let mut x = at.x.clone();
        for exchange in exchanges {
            if let Some(entry) = exchange.leaves {
                x[entry] = 0.0;
            }
            if let Some(entry) = exchange.joins {
                x[entry] = self.joining(at, entry);
            }
        }
        self.oracle.manifold.restore(&x)
    }

    /// Where an exchange leads if that is lower.
    fn tried(&self, at: &Rest, exchange: Exchange) -> Option<Rest> {
        let x = self.exchanged(at, &[exchange])?;
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
        self.rest(end)
    }

    /// Exchanges until none of those that are tried lowers F.
    fn improve(&self, mut at: Rest) -> Rest {
        let mut exchanges = at.exchanges();
        let (mut next, mut failed) = (0, 0);
        while failed < exchanges.len() && !self.is_over() {
            let exchange = exchanges[next % exchanges.len()];
            next += 1;
            match self.tried(&at, exchange) {
                Some(lower) => {
                    at = lower;
                    exchanges = at.exchanges();
                    failed = 0;
                }
                None => failed += 1,
            }
        }
        at
    }

    /// Some random exchanges of what is nearest to leave for what is nearest to join, at rest again.
    fn disturbed(&self, at: &Rest, heat: f64, rng: &mut Xoshiro256PlusPlus) -> Option<Rest> {
        let (inside, outside) = at.entries();
        let near = inside.len().min(outside.len());
        for _ in 0..DRAWS {
            if near == 0 || self.is_over() {
                break;
            }
            let count = rng.random_range(1..=1 + (MOST * heat) as usize);
            let exchanges: Vec<Exchange> = (0..count)
                .map(|_| Exchange {
                    joins: Some(outside[rng.random_range(0..near)]),
                    leaves: Some(inside[rng.random_range(0..near)]),
                })
                .collect();
            if let Some(x) = self.exchanged(at, &exchanges) {
                return self.rest(self.descend(x, LONG));
            }
        }
        None
    }
}

/// Exchanges of single entries of the best point.
pub(super) struct Exchanged;

impl Heuristic for Exchanged {
    fn name(&self) -> &'static str {
        "exchange"
    }

    /// On disjoint supports [`supports`](super::supports) does the same with C.
    fn fits(&self, profile: &Profile, improve: bool) -> Option<Prior> {
        let fits = profile.kind == Kind::Count && !profile.mixed && !profile.trace_form;
        (improve && fits).then(|| Prior::new(1.0, 100.0))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let lambda = task.problem().penalty.count().filter(|&v| v > 0.0)?;
        let local = Local {
            oracle: task.oracle,
            lambda,
            pace: task.pace,
        };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(task.seed);
        let begun = local.descend(task.from?.clone(), LONG);
        let mut best = local.improve(local.rest(begun)?);
        while !local.is_over() {
            let Some(disturbed) = local.disturbed(&best, task.heat, &mut rng) else {
                break;
            };
            let found = local.improve(disturbed);
            if found.objective < best.objective {
                best = found;
            }
        }
        Some(best.x)
    }
}
