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

use super::master::{Known, Master};
use super::maximum::{Allowed, Rank, Ranked};
use super::node::{Class, Left, Node, Reach, Shifted, Solved};
use crate::linalg::symmetric_eigenvalues;

/// Nodes that are worked on at a time; fixed, so that the result does not depend on the number of threads.
const TOGETHER: usize = 4;

impl Rank for Node {
    fn rank(&self) -> (f64, usize) {
        (self.bound, self.age)
    }
}

/// The search.
pub(super) struct Tree {
    shifted: Shifted,
    sigma: f64,
    open: BinaryHeap<Ranked<Node>>,
    /// The largest bound of what needs no more work, or cannot be worked on.
    done: f64,
    /// Nodes so far.
    age: usize,
    /// Roots that are not solved, and the rows that any of the others may use.
    roots: usize,
    used: Vec<bool>,
}

/// News of the search: an upper bound on Σ u_tᵀCu_t, its Λ if it is that of one node, and the nodes so far.
pub(super) struct News {
    pub(super) above: f64,
    pub(super) multiplier: Option<Array2<f64>>,
    pub(super) nodes: usize,
}

impl Tree {
    /// From one root for every way to share the nonzeros among the columns: lists of r numbers, descending. No X has a
    /// sum larger than `above`.
    pub(super) fn new(c: &Array2<f64>, r: usize, shares: &[Vec<usize>], above: f64) -> Self {
        let n = c.nrows();
        let values = symmetric_eigenvalues(c.view());
        let (low, high) = (values[0], values[n - 1]);
        let sigma = (high - low) + (-low).max(0.0);
        let c = c + &(Array2::<f64>::eye(n) * sigma);
        let mut tree = Self {
            shifted: Shifted::new(c, r),
            sigma,
            open: BinaryHeap::new(),
            done: f64::NEG_INFINITY,
            age: shares.len(),
            roots: shares.len(),
            used: vec![false; n],
        };
        for (age, share) in shares.iter().enumerate() {
            tree.open.push(Ranked(Node {
                bound: above + sigma * r as f64,
                age,
                classes: tree.classes(share),
                known: Vec::new(),
                root: true,
                left: None,
            }));
        }
        tree
    }

    /// Whether nothing is left to be searched.
    pub(super) fn is_over(&self) -> bool {
        self.open.is_empty()
    }

    /// Rows that no point uses whose sum is at least the value that was known.
    pub(super) fn excluded(&self) -> Vec<usize> {
        let all = 0..self.used.len();
        all.filter(|&i| self.roots == 0 && !self.used[i]).collect()
    }

    /// Searches on; the work done.
    pub(super) fn run(&mut self, reach: &Reach<'_>, mut tell: impl FnMut(News) -> bool) -> f64 {
        let shift = self.sigma * self.shifted.r as f64;
        let reach = Reach {
            value: reach.value + shift,
            // What is told is less the shift again, and no more than asked for.
            closed: reach.closed + shift - 4.0 * f64::EPSILON * (reach.closed.abs() + shift),
            ..*reach
        };
        let (mut work, roots) = (0.0, self.roots);
        while !self.is_over()
            && self.age < reach.nodes.max(2 * roots)
            && work < reach.work
            && (reach.go_on)()
        {
            let taken: Vec<Node> = (0..TOGETHER)
                .filter_map(|_| self.open.pop().map(|n| n.0))
                .collect();
            let each = Reach {
                work: (reach.work - work) / taken.len() as f64,
                ..reach
            };
            let this = &*self;
            let solved = if this.age == 1 {
                vec![this.shifted.solve(&taken[0], &each, &mut |bound, lambda| {
                    let eye = Array2::<f64>::eye(lambda.nrows());
                    tell(News {
                        above: bound - shift,
                        multiplier: Some(lambda - &(eye * this.sigma)),
                        nodes: 1,
                    });
                })]
            } else {
                let solve = |k: usize| this.shifted.solve(&taken[k], &each, &mut |_, _| {});
                reach.threads.map(taken.len(), solve)
            };
            for (node, solved) in taken.into_iter().zip(solved) {
                work += solved.work;
                self.settle(node, solved, &reach);
            }
            let largest = self
                .open
                .peek()
                .map_or(self.done, |top| self.done.max(top.0.bound));
            let news = News {
                above: largest - shift,
                multiplier: None,
                nodes: self.age,
            };
            if !tell(news) {
                break;
            }
        }
        work
    }

    /// Puts a node's children in its place, or itself where the work on it was cut short.
    fn settle(&mut self, node: Node, solved: Solved, reach: &Reach<'_>) {
        if let Some(barrier) = solved.cut
            && solved.bound > reach.closed
        {
            self.open.push(Ranked(Node {
                bound: solved.bound,
                known: solved.master.known,
                left: Some(Left {
                    barrier,
                    dual: solved.dual,
                }),
                ..node
            }));
            return;
        }
        if node.root {
            self.roots -= 1;
            if solved.bound >= reach.value {
                for class in &solved.classes {
                    class.allowed.free.iter().for_each(|&i| self.used[i] = true);
                }
            }
        }
        match split(&solved.classes, &solved.master) {
            Some((class, row)) if solved.bound > reach.closed => {
                for child in Self::children(&solved, class, row) {
                    self.open.push(Ranked(Node {
                        age: self.age,
                        ..child
                    }));
                    self.age += 1;
                }
            }
            _ => self.done = self.done.max(solved.bound.max(reach.closed)),
        }
    }

    /// Equal numbers are a class.
    fn classes(&self, share: &[usize]) -> Vec<Class> {
        let all: Vec<usize> = (0..self.used.len()).collect();
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

    /// One column of the class uses the row, or none does.
    fn children(solved: &Solved, class: usize, row: usize) -> Vec<Node> {
        let alike = &solved.classes[class];
        let mut without = solved.classes.clone();
        without[class].allowed.free.retain(|&i| i != row);
        let mut with = solved.classes.clone();
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
                for u in &solved.master.known {
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
                    root: false,
                    left: None,
                }
            })
            .collect()
    }
}

/// The row whose use by a class is least decided, weighed by what it holds; a row that splits a class where all are decided.
fn split(classes: &[Class], master: &Master) -> Option<(usize, usize)> {
    let mut best: Option<(f64, (usize, usize))> = None;
    for (class, alike) in classes.iter().enumerate() {
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
