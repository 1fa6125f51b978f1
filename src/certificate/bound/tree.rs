//! Branch and bound on which row may be nonzero in which column.
//!
//! A node holds classes of columns: for each the number of columns, which rows they may use, and how many.
//! Its bound is the Lagrangian of Σ u_tu_tᵀ ⪯ I (see [`master`](super::master)) with the sparse maxima of
//! [`maximum`](super::maximum). A split takes a class and a row: in one child a column of the class uses the
//! row and is a class by itself, in the other none does. So few supports recur with permuted columns.
//!
//! C is shifted to C + σI, σ so large that leaving out a column lowers the sum: the relaxation has Σ w ≤ r_c.

use ndarray::Array2;

use super::master::{Known, Master};
use super::maximum::Allowed;
use super::node::{Class, Left, Node, Reach, Shifted, Solved};
use super::open::Open;
use crate::internal::{numerics, symmetric_eigenvalues};

/// Number of nodes solved at a time; fixed, so that the result does not depend on the number of threads.
const TOGETHER: usize = 4;

/// Search over a tree of nodes.
pub(super) struct Tree {
    shifted: Shifted,
    sigma: f64,
    open: Open<Node>,
    /// Largest bound of the nodes that are closed or cannot be split.
    done: f64,
    /// Number of nodes so far.
    nodes: usize,
    /// Number of unsolved roots, and whether each row may be used according to a solved root.
    roots: usize,
    used: Vec<bool>,
}

/// Progress of the search: an upper bound on Σ u_tᵀCu_t, its Λ if one node gave it, and the number of nodes.
pub(super) struct News {
    pub(super) above: f64,
    pub(super) multiplier: Option<Array2<f64>>,
    pub(super) nodes: usize,
}

impl Tree {
    /// Creates the search from one root for every way to share the nonzeros among the columns: lists of r
    /// descending numbers. No X has a sum larger than `above`.
    pub(super) fn new(c: &Array2<f64>, r: usize, shares: &[Vec<usize>], above: f64) -> Self {
        let n = c.nrows();
        let values = symmetric_eigenvalues(c.view());
        let (low, high) = (values[0], values[n - 1]);
        let sigma = (high - low) + (-low).max(0.0);
        let c = c + &(Array2::<f64>::eye(n) * sigma);
        let mut tree = Self {
            shifted: Shifted::new(c, r),
            sigma,
            open: Open::new(),
            done: f64::NEG_INFINITY,
            nodes: shares.len(),
            roots: shares.len(),
            used: vec![false; n],
        };
        let bound = above + sigma * r as f64;
        for share in shares {
            let classes = tree.classes(share);
            tree.open.push(bound, Node { bound, classes, known: Vec::new(), root: true, left: None });
        }
        tree
    }

    /// Returns whether no node is open.
    pub(super) fn is_over(&self) -> bool {
        self.open.len() == 0
    }

    /// Returns the rows that no point as good as the known one uses; none before all roots are solved.
    pub(super) fn excluded(&self) -> Vec<usize> {
        let all = 0..self.used.len();
        all.filter(|&i| self.roots == 0 && !self.used[i]).collect()
    }

    /// Continues the search within the limits; returns the multiply-adds done.
    pub(super) fn run(&mut self, reach: &Reach<'_>, mut tell: impl FnMut(News) -> bool) -> f64 {
        let shift = self.sigma * self.shifted.r as f64;
        let reach = Reach {
            value: reach.value + shift,
            // The margin for rounding keeps a closed bound, less the shift, at most `reach.closed`.
            closed: reach.closed + shift - numerics::ULPS * (reach.closed.abs() + shift),
            ..*reach
        };
        let (mut work, roots) = (0.0, self.roots);
        while !self.is_over() && self.nodes < reach.nodes.max(2 * roots) && work < reach.work && (reach.go_on)() {
            let taken: Vec<Node> = (0..TOGETHER).filter_map(|_| self.open.pop()).collect();
            let each = Reach { work: (reach.work - work) / taken.len() as f64, ..reach };
            let this = &*self;
            let solved = if this.nodes == 1 {
                vec![this.shifted.solve(&taken[0], &each, &mut |bound, lambda| {
                    let eye = Array2::<f64>::eye(lambda.nrows());
                    tell(News { above: bound - shift, multiplier: Some(lambda - &(eye * this.sigma)), nodes: 1 });
                })]
            } else {
                let solve = |k: usize| this.shifted.solve(&taken[k], &each, &mut |_, _| {});
                reach.threads.map(taken.len(), solve)
            };
            for (node, solved) in taken.into_iter().zip(solved) {
                work += solved.work;
                self.settle(node, solved, &reach);
            }
            let largest = self.open.first().map_or(self.done, |(bound, _)| self.done.max(*bound));
            let news = News { above: largest - shift, multiplier: None, nodes: self.nodes };
            if !tell(news) {
                break;
            }
        }
        work
    }

    /// Replaces a node by its children, or puts it back if a limit ended the work on it.
    fn settle(&mut self, node: Node, solved: Solved, reach: &Reach<'_>) {
        if let Some(barrier) = solved.cut
            && solved.bound > reach.closed
        {
            let left = Some(Left { barrier, dual: solved.dual });
            self.open.push(solved.bound, Node { bound: solved.bound, known: solved.master.known, left, ..node });
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
                    self.open.push(child.bound, child);
                    self.nodes += 1;
                }
            }
            _ => self.done = self.done.max(solved.bound.max(reach.closed)),
        }
    }

    /// Returns the classes of a share: one for each run of equal numbers.
    fn classes(&self, share: &[usize]) -> Vec<Class> {
        let all: Vec<usize> = (0..self.used.len()).collect();
        share
            .chunk_by(|a, b| a == b)
            .map(|equal| Class {
                columns: equal.len(),
                allowed: Allowed { size: equal[0].min(all.len()), required: Vec::new(), free: all.clone() },
            })
            .collect()
    }

    /// Returns two children: one column of the class uses the row, or none does.
    fn children(solved: &Solved, class: usize, row: usize) -> Vec<Node> {
        let alike = &solved.classes[class];
        let mut without = solved.classes.clone();
        without[class].allowed.free.retain(|&i| i != row);
        let mut with = solved.classes.clone();
        let mut one = Class { columns: 1, allowed: without[class].allowed.clone() };
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
                    let homes = if u.class == class && own != class { vec![class, own] } else { vec![u.class] };
                    for home in homes {
                        if classes[home].allowed.fits(&u.rows) {
                            let part = if u.class == class { share(home) } else { 1.0 };
                            known.push(Known { class: home, weight: u.weight * part, ..u.clone() });
                        }
                    }
                }
                Node { bound: solved.bound, classes, known, root: false, left: None }
            })
            .collect()
    }
}

/// Returns the class and row to split by: the row whose use is least decided, weighted by its squares.
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

/// Returns all ways to write `total` as a sum of r descending numbers from 1 to n; none if more than `most`.
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

#[cfg(test)]
mod tests;
