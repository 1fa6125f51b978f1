//! Maximises the sum of the r largest eigenvalues of B_S over supports S of at most k rows, by branch and
//! bound. B is symmetric, maybe indefinite. For r = 1 this is max uᵀBu over unit u with at most k nonzeros.
//!
//! A node is a set of required rows, which S contains, and a set of free rows, which S may contain. Three
//! bounds on the sum of the r largest eigenvalues of B_S:
//!
//! * rows: the sum of the r largest `B_ii + Σ_j |B_ij|` over the required rows and the largest free ones: B_S
//!   is at most the diagonal matrix of these sums;
//! * eigenvalues λ_l and vectors v_l of B on the node's rows: `Σ λ_l a_l` for the best a ≤ 1, Σ a = r, with
//!   a_l at most the sum of v_l² over the required and the largest free rows (Cauchy-Schwarz on ‖v_lᵀX‖²);
//! * the [relaxation](super::relaxation) `Σ_top-r λ(B − U) + g(U)`, continued from the parent's iterate. With
//!   P = XXᵀ and ‖P‖_F = √r, ⟨U, P⟩ ≤ √r‖U_SS‖_F. So g is √r times the smaller of k max|U_ij| and the root of
//!   the largest sum of squares of U over k rows with k entries each, the required ones among both.
//!
//! Best node first: the largest open bound is one on the maximum. A node is split by the free row with the
//! largest diagonal entry of the relaxation's solution: one child forbids the row, the other requires it. For
//! r = 1 the root leaves out rows that no support better than the best known one can contain.

use std::sync::Arc;

use ndarray::Array2;

use super::open::Open;
use super::relaxation::{Admm, EIGEN, Entries, STEP, eigen_error, ky_fan, ky_fan_above, largest_above, largest_sum};
use crate::internal::numerics;
use crate::linalg::symmetric_eigen;

/// Supports of a search: at most `size` rows, all required rows and any free ones.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Allowed {
    /// Largest number of rows k.
    pub(super) size: usize,
    /// Rows that the support contains, ascending.
    pub(super) required: Vec<usize>,
    /// Other rows that the support may contain, ascending.
    pub(super) free: Vec<usize>,
}

impl Allowed {
    /// Returns whether an allowed support contains these rows.
    pub(super) fn fits(&self, rows: &[usize]) -> bool {
        let mut others = 0;
        rows.iter().all(|row| {
            let required = self.required.binary_search(row).is_ok();
            others += usize::from(!required);
            required || self.free.binary_search(row).is_ok()
        }) && self.required.len() + others <= self.size
    }

    /// Returns whether one allowed support contains all the others.
    pub(super) fn is_single(&self) -> bool {
        self.required.len() + self.free.len() <= self.size || self.required.len() == self.size
    }
}

/// Support and its value.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) rows: Vec<usize>,
    /// Leading unit eigenvector of B on the rows.
    pub(super) entries: Vec<f64>,
    /// Sum of the r largest eigenvalues of B on the rows, uᵀBu for r = 1; rounded up.
    pub(super) value: f64,
}

/// Result of a search for the maximum.
pub(super) struct Maximum {
    /// Upper bound on the value of every allowed support.
    pub(super) above: f64,
    /// Number of nodes.
    pub(super) nodes: usize,
    /// Multiply-adds.
    pub(super) work: f64,
    /// Vectors on different supports, best first.
    pub(super) found: Vec<Candidate>,
}

/// Tolerance and limits of a search for the maximum.
#[derive(Clone, Copy)]
pub(super) struct Effort<'a> {
    /// Amount by which the bound may exceed the best value found.
    pub(super) tolerance: f64,
    /// Bound that is low enough to end the search.
    pub(super) enough: f64,
    /// Largest number of nodes.
    pub(super) nodes: usize,
    /// Largest number of multiply-adds.
    pub(super) work: f64,
    pub(super) go_on: &'a (dyn Fn() -> bool + Sync),
}

/// Largest number of vectors that a search returns.
const RETURNED: usize = 8;

/// ADMM steps at the root.
const ROOT_STEPS: usize = 80;

/// ADMM steps between two evaluations of the bound, and at nodes other than the root.
pub(super) const LOOK: usize = 10;

/// Number of supports from which truncated power steps begin.
const POLISHED: usize = 4;

/// Largest number of truncated power steps from each support.
const POWER_STEPS: usize = 20;

struct Node {
    bound: f64,
    required: Vec<usize>,
    /// Free rows, by descending diagonal entry of the relaxation's solution.
    free: Vec<usize>,
    relaxed: Arc<Relaxed>,
}

/// Relaxation on some rows.
struct Relaxed {
    rows: Vec<usize>,
    admm: Admm,
    /// Σ_top-r λ(B − U) on the rows.
    largest: f64,
}

/// Computes the maximum over the allowed supports of at least r rows, starting with those in `warm`.
pub(super) fn sparse_maximum(
    (b, r): (&Array2<f64>, usize),
    allowed: &Allowed,
    warm: &[Vec<usize>],
    effort: &Effort<'_>,
) -> Maximum {
    let mut search = Branching { b, r, size: allowed.size, effort, found: Vec::new(), nodes: 0, work: 0.0 };
    for rows in warm {
        search.offer(rows);
    }
    let mut open = Open::new();
    search.root(allowed).into_iter().for_each(|root| open.push(root.bound, root));
    let mut above = f64::NEG_INFINITY;
    while let Some(node) = open.pop() {
        let floor = search.floor();
        if node.bound <= floor || search.nodes >= effort.nodes || search.ended() {
            above = node.bound;
            break;
        }
        for child in [search.without(&node, floor), search.with(&node, floor)].into_iter().flatten() {
            open.push(child.bound, child);
        }
    }
    let floor = match allowed.is_single() {
        true => search.found.first().map_or(above, |only| only.value),
        false => search.floor(),
    };
    Maximum { above: above.max(floor), nodes: search.nodes, work: search.work, found: search.found }
}

struct Branching<'a> {
    b: &'a Array2<f64>,
    r: usize,
    size: usize,
    effort: &'a Effort<'a>,
    found: Vec<Candidate>,
    nodes: usize,
    work: f64,
}

impl Branching<'_> {
    /// Returns the bound at or below which a node is closed.
    fn floor(&self) -> f64 {
        let best = self.found.first().map_or(f64::NEG_INFINITY, |c| c.value);
        (best + self.effort.tolerance).max(self.effort.enough)
    }

    /// Returns whether the work limit is reached or `go_on` ends the search.
    fn ended(&self) -> bool {
        self.work >= self.effort.work || !(self.effort.go_on)()
    }

    fn block(&self, rows: &[usize]) -> Array2<f64> {
        Array2::from_shape_fn((rows.len(), rows.len()), |(i, j)| self.b[[rows[i], rows[j]]])
    }

    /// Evaluates a support and keeps it if it is among the best.
    fn offer(&mut self, rows: &[usize]) {
        let mut rows = rows.to_vec();
        rows.sort_unstable();
        if rows.len() < self.r || self.found.iter().any(|c| c.rows == rows) {
            return;
        }
        let block = self.block(&rows);
        let (_, vectors) = symmetric_eigen(block.view());
        let last = rows.len() - 1;
        let value = ky_fan_above(&block, self.r);
        self.work += 2.0 * EIGEN * (rows.len() as f64).powi(3);
        let place = self.found.partition_point(|c| c.value >= value);
        let entries = vectors.column(last).to_vec();
        self.found.insert(place, Candidate { rows, entries, value });
        self.found.truncate(RETURNED);
    }

    /// Improves a support by truncated power steps (Yuan and Zhang 2013).
    fn polish(&mut self, mut support: Vec<usize>, allowed: &Allowed) {
        let q = self.size - allowed.required.len();
        for _ in 0..POWER_STEPS {
            self.offer(&support);
            let (values, vectors) = symmetric_eigen(self.block(&support).view());
            let gain = |&i: &usize| {
                let at = support.iter().position(|&j| j == i);
                let row = self.b.row(i);
                let leading = (0..support.len()).rev().take(self.r);
                leading.fold(0.0f64, |size, t| {
                    let u = vectors.column(t);
                    let rho: f64 = support.iter().zip(u).map(|(&j, u)| row[j] * u).sum();
                    let own = at.map_or(0.0, |at| u[at]);
                    // The power step of B + cI with c large enough for the values to rise.
                    size.hypot(rho + (values[t].abs() + row[i].abs()) * own)
                })
            };
            let mut free: Vec<(f64, usize)> = allowed.free.iter().map(|i| (gain(i), *i)).collect();
            free.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let next: Vec<usize> = (allowed.required.iter().copied()).chain(free.iter().take(q).map(|f| f.1)).collect();
            if next.iter().all(|i| support.contains(i)) {
                return;
            }
            support = next;
        }
    }

    /// Returns the root node, or None if only one support is left.
    fn root(&mut self, allowed: &Allowed) -> Option<Node> {
        let (required, free) = (&allowed.required, &allowed.free);
        let q = self.size - required.len();
        if q == 0 || free.len() <= q {
            let rows = if q == 0 { required.clone() } else { [&required[..], free].concat() };
            self.offer(&rows);
            return None;
        }
        let rows = [&required[..], free].concat();
        let block = self.block(&rows);
        let radius = self.size as f64 * (self.r as f64).sqrt();
        let admm = Admm::new(&block, self.r, Entries::Within(radius));
        let steps = if self.effort.nodes > 1 { ROOT_STEPS } else { LOOK };
        let mut node = self.relax(required.clone(), rows, block, admm, (steps, f64::NEG_INFINITY))?;
        let begin: Vec<Vec<usize>> = (self.found.iter().take(POLISHED))
            .map(|known| known.rows.clone())
            .chain([[&required[..], &node.free[..q]].concat()])
            .collect();
        for support in begin {
            self.polish(support, allowed);
        }
        if self.effort.nodes > 1 && self.r == 1 && !self.ended() {
            let kept = self.useful(&node, self.floor());
            if kept.len() < node.free.len() {
                node = self.on(&node, kept, (LOOK, f64::NEG_INFINITY))?;
            }
        }
        Some(node)
    }

    /// Returns the free rows that a support with a value above `floor` may contain.
    ///
    /// For r = 1 and u = (s, cv), u_i = s, the value is at most `s²B_ii + 2sc b + c²φ`: an eigenvalue of a
    /// 2×2 matrix. φ bounds it for k − 1 rows; b is the norm of the k − 1 largest other entries of row i.
    fn useful(&self, node: &Node, floor: f64) -> Vec<usize> {
        let (admm, k) = (&node.relaxed.admm, self.size as f64);
        let fewer = node.relaxed.largest + admm.conjugate() * (k - 1.0) / k;
        let mut squares = Vec::new();
        let mut useless = |i: usize| {
            let row = self.b.row(i);
            squares.clear();
            squares.extend(node.relaxed.rows.iter().filter(|&&j| j != i).map(|&j| row[j] * row[j]));
            let b = largest_sum(&mut squares, self.size - 1);
            let ulp = numerics::ULPS;
            let floor = floor - ulp * (floor.abs() + fewer.abs() + row[i].abs());
            let b = b * (1.0 + ulp * k);
            floor > fewer.max(row[i]) && (floor - row[i]) * (floor - fewer) >= b
        };
        node.free.iter().copied().filter(|&i| !useless(i)).collect()
    }

    /// Returns the node with fewer free rows, or None if it is closed.
    fn on(&mut self, node: &Node, free: Vec<usize>, (steps, floor): (usize, f64)) -> Option<Node> {
        let required = node.required.clone();
        let old = &node.relaxed;
        if free.len() + required.len() <= self.size {
            self.offer(&[&required[..], &free[..]].concat());
            return None;
        }
        if self.by_rows(&required, &free) <= floor || self.by_eigen(&required, &free, floor) <= floor {
            return None;
        }
        let kept: Vec<usize> = (0..old.rows.len())
            .filter(|&at| required.contains(&old.rows[at]) || free.contains(&old.rows[at]))
            .collect();
        let rows: Vec<usize> = kept.iter().map(|&at| old.rows[at]).collect();
        let (block, admm) = (self.block(&rows), old.admm.restricted(&kept));
        let child = self.relax(required, rows, block, admm, (steps, floor))?;
        Some(Node { bound: child.bound.min(node.bound), ..child })
    }

    /// Returns the bound Σ λ_l a_l of the module's description, rounded up if it is at most `floor`.
    fn by_eigen(&mut self, required: &[usize], free: &[usize], floor: f64) -> f64 {
        let rows = [required, free].concat();
        let block = self.block(&rows);
        let (values, vectors) = symmetric_eigen(block.view());
        self.work += EIGEN * (rows.len() as f64).powi(3);
        let (s, q) = (required.len(), self.size - required.len());
        let mut weights = vec![0.0; free.len()];
        let (mut left, mut bound) = (self.r as f64, 0.0);
        for l in (0..rows.len()).rev() {
            let v = vectors.column(l);
            for (w, f) in weights.iter_mut().zip(s..) {
                *w = v[f] * v[f];
            }
            let fixed: f64 = (0..s).map(|i| v[i] * v[i]).sum();
            let a = (fixed + largest_sum(&mut weights, q)).min(left.min(1.0));
            bound += values[l] * a;
            left -= a;
            if left <= 0.0 {
                break;
            }
        }
        if bound <= floor {
            // Twice the error: the eigenvectors in a_l are inexact too.
            bound += 2.0 * self.r as f64 * eigen_error(&block, &values, &vectors);
        }
        bound
    }

    /// Returns the node after some steps of the relaxation, or None if its bound is at most `floor`.
    fn relax(
        &mut self,
        required: Vec<usize>,
        rows: Vec<usize>,
        block: Array2<f64>,
        mut admm: Admm,
        (steps, floor): (usize, f64),
    ) -> Option<Node> {
        self.nodes += 1;
        let fixed: Vec<bool> = rows.iter().map(|row| required.contains(row)).collect();
        let cube = (rows.len() as f64).powi(3);
        let ulp = f64::EPSILON;
        let mut step = 0;
        let (bound, largest) = loop {
            let last = step == steps || self.ended();
            if last || step % LOOK == 0 {
                let dual = &block - admm.multiplier();
                let framed = admm.framed(self.size, &fixed) * (self.r as f64).sqrt();
                let own = admm.conjugate().min(framed) * (1.0 + ulp * (self.size * self.size) as f64);
                let above = |largest: f64| largest + own + 2.0 * ulp * (largest.abs() + own);
                let mut largest = ky_fan(&dual, self.r);
                self.work += EIGEN * cube;
                if last || above(largest) <= floor {
                    largest = largest_above(&dual, self.r, largest);
                }
                let bound = above(largest);
                if bound <= floor {
                    return None;
                }
                if last {
                    break (bound, largest);
                }
            }
            admm.step(&block);
            self.work += STEP * cube;
            step += 1;
        };
        let solution = admm.solution();
        let mut order: Vec<(f64, usize)> = (rows.iter().enumerate())
            .filter(|(_, row)| !required.contains(row))
            .map(|(at, &row)| (solution[[at, at]], row))
            .collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let free: Vec<usize> = order.into_iter().map(|o| o.1).collect();
        self.offer(&[&required[..], &free[..self.size - required.len()]].concat());
        Some(Node { bound, required, free, relaxed: Arc::new(Relaxed { rows, admm, largest }) })
    }

    /// Returns the child that forbids the first free row, or None if it is closed.
    fn without(&mut self, node: &Node, floor: f64) -> Option<Node> {
        self.on(node, node.free[1..].to_vec(), (LOOK, floor))
    }

    /// Returns the child that requires the first free row, or None if it is closed.
    fn with(&mut self, node: &Node, floor: f64) -> Option<Node> {
        let required = [&node.required[..], &node.free[..1]].concat();
        let free = node.free[1..].to_vec();
        if required.len() == self.size {
            self.offer(&required);
            return None;
        }
        self.nodes += 1;
        let bound = node.bound.min(self.by_rows(&required, &free));
        (bound > floor).then(|| Node { bound, required, free, relaxed: node.relaxed.clone() })
    }

    /// Returns the sum of the r largest B_ii + Σ_j |B_ij| over the required rows and the largest free ones.
    fn by_rows(&self, required: &[usize], free: &[usize]) -> f64 {
        let q = self.size - required.len();
        let mut sizes = Vec::with_capacity(free.len());
        let rounding = f64::EPSILON * (self.size + self.r + 2) as f64;
        let mut radius = |i: usize, others: usize| {
            let row = self.b.row(i);
            sizes.clear();
            sizes.extend(free.iter().filter(|&&j| j != i).map(|&j| row[j].abs()));
            let fixed: f64 = required.iter().filter(|&&j| j != i).map(|&j| row[j].abs()).sum();
            let around = fixed + largest_sum(&mut sizes, others);
            row[i] + around + rounding * (row[i].abs() + around)
        };
        let ends = required.iter().map(|&i| radius(i, q));
        let mut ends: Vec<f64> = ends.collect();
        ends.extend(free.iter().map(|&i| radius(i, q - 1)));
        largest_sum(&mut ends, self.r)
    }
}

#[cfg(test)]
mod tests;
