//! Branch and bound on which row may be nonzero in which column.
//!
//! A node holds classes of columns that are alike: how many they are, how many rows each may use, which it uses, which it may
//! use. Its bound is the Lagrangian of Σ u_tu_tᵀ ⪯ I (see [`master`](super::master)) with the sparse maxima of
//! [`maximum`](super::maximum). A split takes a class and a row: either one of its columns uses the row, and is a class by
//! itself from then on, or none does. So no two nodes hold the same supports in another order.
//!
//! C is shifted to C + σI with σ so large that no column is better left out: the relaxation has Σ w ≤ r_c.

use std::collections::BinaryHeap;

use ndarray::Array2;

use super::master::{Centre, Known, Master};
use super::maximum::{Allowed, Candidate, Effort, sparse_maximum};
use super::relaxation::{ROUNDING, ky_fan};
use crate::linalg::symmetric_eigenvalues;
use crate::threads::Threads;

/// Nodes that are worked on at a time; fixed, so that the result does not depend on the number of threads.
const TOGETHER: usize = 4;

/// Requests for new vectors at a node, and vectors begun with of a support.
const ROUNDS: usize = 150;
const WARM: usize = 24;

/// Nodes of a sparse maximum: the last number over n³, between the other two; and where only vectors are sought.
const INNER_NODES: (f64, f64, f64) = (50.0, 20_000.0, 2e9);
const EASY_NODES: usize = 1;

/// Weight of the barrier at first and later, relative to what is open and the number of its terms.
const FIRST_BARRIER: f64 = 0.01;
const BARRIER: f64 = 0.1;

/// What the weight falls to at a time, at least.
const FALL: f64 = 0.1;

/// Part of what is open that a sparse maximum may miss.
const MISSED: f64 = 0.25;

/// A node that cannot be closed is split, if it can be, as soon as it is known to this part of what it lacks.
const SPLIT_EARLY: f64 = 0.5;

/// A node's own gap below which its relaxation is solved, relative to its value.
const SOLVED: f64 = 1e-9;

/// Columns that are alike.
#[derive(Debug, Clone)]
struct Class {
    columns: usize,
    allowed: Allowed,
}

#[derive(Clone)]
struct Node {
    bound: f64,
    age: usize,
    classes: Vec<Class>,
    known: Vec<Known>,
}

/// Nodes by bound, the oldest first among equals.
struct Ranked(Node);

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_bound = self.0.bound.total_cmp(&other.0.bound);
        by_bound.then(other.0.age.cmp(&self.0.age))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

/// What a node came to.
struct Solved {
    bound: f64,
    /// Λ of that bound, in terms of C without shift.
    multiplier: Option<Array2<f64>>,
    known: Vec<Known>,
    /// Class and row to split; none where nothing is left to be split.
    split: Option<(usize, usize)>,
}

/// The search.
pub(super) struct Tree<'a> {
    /// C + σI.
    c: Array2<f64>,
    sigma: f64,
    r: usize,
    /// Nodes with a bound up to this, σ included, are closed.
    closed: f64,
    rounding: f64,
    threads: &'a Threads,
    go_on: &'a (dyn Fn() -> bool + Sync),
}

/// News of the search: an upper bound on Σ u_tᵀCu_t, its Λ if it is that of one node, and the nodes so far.
pub(super) struct News {
    pub(super) above: f64,
    pub(super) multiplier: Option<Array2<f64>>,
    pub(super) nodes: usize,
}

impl<'a> Tree<'a> {
    /// A search that is over when no X has Σ u_tᵀCu_t above `closed`.
    pub(super) fn new(
        c: &Array2<f64>,
        r: usize,
        closed: f64,
        threads: &'a Threads,
        go_on: &'a (dyn Fn() -> bool + Sync),
    ) -> Self {
        let n = c.nrows();
        let values = symmetric_eigenvalues(c.view());
        let (low, high) = (values[0], values[n - 1]);
        let sigma = (high - low) + (-low).max(0.0);
        let c = c + &(Array2::<f64>::eye(n) * sigma);
        let size = crate::linalg::square(&c).sqrt();
        Self {
            rounding: ROUNDING * n as f64 * r as f64 * f64::EPSILON * size,
            closed: closed + sigma * r as f64,
            c,
            sigma,
            r,
            threads,
            go_on,
        }
    }

    /// Searches from one root for every way to share the nonzeros among the columns: lists of r numbers, descending.
    pub(super) fn run(
        &self,
        shares: &[Vec<usize>],
        above: f64,
        nodes: usize,
        mut tell: impl FnMut(News) -> bool,
    ) {
        let mut open = BinaryHeap::new();
        let mut age = 0;
        for share in shares {
            open.push(Ranked(Node {
                bound: above + self.sigma * self.r as f64,
                age,
                classes: self.classes(share),
                known: Vec::new(),
            }));
            age += 1;
        }
        // The largest bound of what needs no more work, or cannot be worked on.
        let mut done = f64::NEG_INFINITY;
        while !open.is_empty() && age < nodes.max(2 * shares.len()) && (self.go_on)() {
            let taken: Vec<Node> = (0..TOGETHER)
                .filter_map(|_| open.pop().map(|n| n.0))
                .collect();
            let solved = if age == 1 {
                vec![self.solve(&taken[0], &mut |solved| {
                    tell(News {
                        above: solved.bound - self.sigma * self.r as f64,
                        multiplier: solved.multiplier.clone(),
                        nodes: 1,
                    });
                })]
            } else {
                (self.threads).map(taken.len(), |k| self.solve(&taken[k], &mut |_| {}))
            };
            for (node, solved) in taken.iter().zip(solved) {
                match solved.split {
                    Some((class, row)) if solved.bound > self.closed => {
                        for child in self.children(node, &solved, class, row) {
                            open.push(Ranked(Node { age, ..child }));
                            age += 1;
                        }
                    }
                    _ => done = done.max(solved.bound.max(self.closed)),
                }
            }
            let largest = open.peek().map_or(done, |top| done.max(top.0.bound));
            let news = News {
                above: largest - self.sigma * self.r as f64,
                multiplier: None,
                nodes: age,
            };
            if !tell(news) {
                return;
            }
        }
    }

    /// Equal numbers are a class.
    fn classes(&self, share: &[usize]) -> Vec<Class> {
        let all: Vec<usize> = (0..self.c.nrows()).collect();
        share
            .chunk_by(|a, b| a == b)
            .map(|equal| Class {
                columns: equal.len(),
                allowed: Allowed {
                    size: equal[0].min(all.len()),
                    required: Vec::new(),
                    free: all.clone(),
                },
            })
            .collect()
    }

    /// The bound of a node: new vectors until none that is easily found is missing, then the sparse maxima; again at a
    /// smaller barrier until the node is closed, solved or known well enough to be split.
    fn solve(&self, node: &Node, tell: &mut dyn FnMut(&Solved)) -> Solved {
        let n = self.c.nrows();
        let mut best = Solved {
            bound: node.bound,
            multiplier: None,
            known: Vec::new(),
            split: None,
        };
        let divisible = node.classes.iter().any(|c| !c.allowed.is_single());
        let classes = node.classes.iter().map(|c| c.columns as f64).collect();
        let mut master = Master::new(n, classes, self.begin(node));
        let mut mu = FIRST_BARRIER * node.bound / (n + master.known.len()) as f64;
        let (fewest, most, work) = INNER_NODES;
        let inner = (work / (n as f64).powi(3)).clamp(fewest, most) as usize;
        let mut easy = true;
        for _ in 0..ROUNDS {
            let Some(centre) = (self.go_on)().then(|| master.centre(mu)).flatten() else {
                break;
            };
            let value = master.value();
            let rest = (best.bound - value).max(SOLVED * value);
            let tolerance = MISSED * rest / self.r as f64;
            let effort = Effort {
                tolerance,
                enough: f64::NEG_INFINITY,
                nodes: if easy { EASY_NODES } else { inner },
                go_on: self.go_on,
            };
            let (above, found) = self.maxima(node, &master, &centre, effort);
            if above < best.bound {
                best.bound = above;
                let shift = Array2::<f64>::eye(n) * self.sigma;
                best.multiplier = Some(&centre.lambda - &shift);
                tell(&best);
            }
            let rest = best.bound - value;
            let known = value > self.closed && rest <= SPLIT_EARLY * (value - self.closed);
            if best.bound <= self.closed || rest <= SOLVED * value || (known && divisible) {
                break;
            }
            let before = master.known.len();
            for (class, found) in found.iter().enumerate() {
                let least = centre.prices[class] + if easy { tolerance } else { 0.0 };
                for new in found.iter().filter(|new| new.value > least) {
                    master.add(&self.c, class, new, &centre, mu);
                }
            }
            let grown = master.known.len() > before;
            master.forget();
            if !easy {
                let next = BARRIER * rest / (n + master.known.len()) as f64;
                mu = next.clamp(FALL * mu, mu);
            }
            easy = !easy || grown;
        }
        best.split = self.split(node, &master);
        best.known = master.known;
        best
    }

    /// The vectors that a node begins with: its own, and every row alone.
    fn begin(&self, node: &Node) -> Vec<Known> {
        let mut known = node.known.clone();
        for (class, alike) in node.classes.iter().enumerate() {
            let rows: Vec<usize> = (0..self.c.nrows())
                .filter(|&i| alike.allowed.fits(&[i]))
                .collect();
            let share = 0.25
                * (alike.columns as f64 / rows.len() as f64).min(1.0 / node.classes.len() as f64);
            for i in rows {
                if !known.iter().any(|u| u.class == class && u.rows == [i]) {
                    known.push(Known {
                        class,
                        rows: vec![i],
                        entries: vec![1.0],
                        value: self.c[[i, i]],
                        weight: share,
                    });
                }
            }
        }
        known
    }

    /// The bound at Λ, and for every class the vectors that were found.
    fn maxima(
        &self,
        node: &Node,
        master: &Master,
        centre: &Centre,
        effort: Effort<'_>,
    ) -> (f64, Vec<Vec<Candidate>>) {
        let b = &self.c - &centre.lambda;
        let mut above = ky_fan(&centre.lambda, self.r);
        // What each column may be above its price for the node to be closed all the same.
        let priced: f64 = (node.classes.iter().zip(&centre.prices))
            .map(|(class, price)| class.columns as f64 * price)
            .sum();
        let spare = (self.closed - above - priced - 2.0 * self.rounding) / self.r as f64;
        let mut all = Vec::with_capacity(node.classes.len());
        for (class, alike) in node.classes.iter().enumerate() {
            let mut own: Vec<&Known> = master.known.iter().filter(|u| u.class == class).collect();
            own.sort_by(|a, b| b.weight.total_cmp(&a.weight));
            let mut warm: Vec<Vec<usize>> = Vec::new();
            for u in own {
                if warm.len() < WARM && u.rows.len() > 1 && !warm.contains(&u.rows) {
                    warm.push(u.rows.clone());
                }
            }
            let effort = Effort {
                enough: if spare > 0.0 {
                    centre.prices[class] + spare
                } else {
                    f64::NEG_INFINITY
                },
                ..effort
            };
            let found = sparse_maximum((&b, 1), &alike.allowed, &warm, &effort);
            above += alike.columns as f64 * found.above;
            all.push(found.found);
        }
        let size = crate::linalg::square(&centre.lambda).sqrt();
        let rounding = ROUNDING * (b.nrows() * self.r) as f64 * f64::EPSILON * size;
        (above + self.rounding + rounding, all)
    }

    /// The row whose use by a class is least decided, weighed by what it holds; a row that splits a class where all are decided.
    fn split(&self, node: &Node, master: &Master) -> Option<(usize, usize)> {
        let mut best: Option<(f64, (usize, usize))> = None;
        for (class, alike) in node.classes.iter().enumerate() {
            if alike.allowed.is_single() {
                continue;
            }
            for &row in &alike.allowed.free {
                let (mut used, mut held) = (0.0, 0.0);
                for u in master.known.iter().filter(|u| u.class == class) {
                    if let Some(at) = u.rows.iter().position(|&i| i == row) {
                        used += u.weight;
                        held += u.weight * u.entries[at] * u.entries[at];
                    }
                }
                let open = (used - used.round()).abs() + 1e-3;
                let score = open * held;
                if best.is_none_or(|(most, _)| score > most) {
                    best = Some((score, (class, row)));
                }
            }
        }
        best.map(|(_, at)| at)
    }

    /// One column of the class uses the row, or none does.
    fn children(&self, node: &Node, solved: &Solved, class: usize, row: usize) -> Vec<Node> {
        let alike = &node.classes[class];
        let mut without = node.classes.clone();
        without[class].allowed.free.retain(|&i| i != row);
        let mut with = node.classes.clone();
        let mut one = Class {
            columns: 1,
            allowed: without[class].allowed.clone(),
        };
        one.allowed.required.push(row);
        one.allowed.required.sort_unstable();
        let own = if alike.columns == 1 {
            with[class] = one;
            class
        } else {
            with[class].columns -= 1;
            with.push(one);
            with.len() - 1
        };
        [(with, own), (without, class)]
            .into_iter()
            .map(|(classes, own)| {
                let share = |to: usize| classes[to].columns as f64 / alike.columns as f64;
                let mut known = Vec::new();
                for u in &solved.known {
                    let homes = if u.class == class && own != class {
                        vec![class, own]
                    } else {
                        vec![u.class]
                    };
                    for home in homes {
                        if classes[home].allowed.fits(&u.rows) {
                            let part = if u.class == class { share(home) } else { 1.0 };
                            known.push(Known {
                                class: home,
                                weight: u.weight * part,
                                ..u.clone()
                            });
                        }
                    }
                }
                Node {
                    bound: solved.bound,
                    age: 0,
                    classes,
                    known,
                }
            })
            .collect()
    }
}

/// All ways to write `total` as a sum of r numbers from 1 to n, descending; none if there are more than `most`.
pub(super) fn shares(total: usize, r: usize, n: usize, most: usize) -> Option<Vec<Vec<usize>>> {
    let mut all = vec![Vec::new()];
    for t in 0..r {
        let mut next = Vec::new();
        for part in &all {
            let used: usize = part.iter().sum();
            let left = r - t - 1;
            let largest = part.last().copied().unwrap_or(n).min(n);
            for k in 1..=largest {
                let rest = (total).checked_sub(used + k);
                if rest.is_some_and(|rest| rest >= left && rest <= left * k) {
                    next.push([&part[..], &[k]].concat());
                }
            }
        }
        all = next;
        if all.len() > most {
            return None;
        }
    }
    Some(all)
}
