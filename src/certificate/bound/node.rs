//! A node of the [`tree`](super::tree): the Lagrangian of Σ u_tu_tᵀ ⪯ I for classes of equal columns.
//!
//! Quick searches add new vectors until they find none, then full sparse maxima follow. This repeats at a
//! smaller barrier until the node is closed, solved or known well enough to be split.
//!
//! A root leaves out rows that no point as good as the known one uses. If column t uses row i, the sum is at
//! most the bound with the maximum of column t replaced by that over the supports with i. For u = (s, cv),
//! u_i = s, this is at most `s²B_ii + 2sc b + c²φ`, an eigenvalue of a 2×2 matrix. φ is the bound for k − 1
//! rows, and b the norm of the k − 1 largest other entries of row i of B = C − Λ.

use ndarray::Array2;

use super::master::{Centre, Known, Master};
use super::maximum::{Allowed, Candidate, Effort, sparse_maximum};
use super::relaxation::{ky_fan_above, largest_sum};
use crate::internal::{numerics, square};
use crate::objective::GoOn;
use crate::threads::Threads;

/// Largest number of known supports from which a sparse maximum starts.
const WARM: usize = 24;

/// Nodes of a full sparse maximum (least, most, c): c/n³ between `least` and `most`.
const INNER_NODES: (f64, f64, f64) = (50.0, 20_000.0, 2e9);

/// First barrier weight per barrier term, relative to the bound.
const FIRST_BARRIER: f64 = 0.01;

/// Later barrier weight per barrier term, relative to the gap.
const BARRIER: f64 = 0.1;

/// Least ratio of two successive barrier weights.
const FALL: f64 = 0.1;

/// Share of the nodes of `INNER_NODES` for the first full sparse maxima of a tree node; it doubles each time, up to 1.
const FIRST_EFFORT: f64 = 1.0 / 64.0;

/// Share of the gap that the sparse maxima may miss.
const MISSED: f64 = 0.25;

/// Largest own gap at which a node is split, as a share of the difference between the node's value and `closed`.
const SPLIT_EARLY: f64 = 0.5;

/// The same for a root: smaller, because all nodes inherit the bound of the root.
const ROOT_SPLIT: f64 = 0.1;

/// Gap of a node, relative to its value, at which its relaxation is solved.
const SOLVED: f64 = 1e-9;

/// Columns with the same allowed supports.
#[derive(Debug, Clone)]
pub(super) struct Class {
    pub(super) columns: usize,
    pub(super) allowed: Allowed,
}

/// Open node of the tree.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) bound: f64,
    pub(super) classes: Vec<Class>,
    pub(super) known: Vec<Known>,
    /// True for a root: no row is decided.
    pub(super) root: bool,
    pub(super) left: Option<Left>,
}

/// State of unfinished work on a node: the barrier weight, and the dual of the bound.
#[derive(Clone)]
pub(super) struct Left {
    pub(super) barrier: f64,
    pub(super) dual: Option<Dual>,
}

/// Dual point of a bound: Λ, and the sparse maximum of every class at Λ.
#[derive(Clone)]
pub(super) struct Dual {
    lambda: Array2<f64>,
    maxima: Vec<f64>,
}

/// Result of the work on a node.
pub(super) struct Solved {
    pub(super) bound: f64,
    /// Dual point of the bound, in terms of C + σI; none if the bound is the parent's.
    pub(super) dual: Option<Dual>,
    pub(super) master: Master,
    /// Classes of the node, without the rows that are left out.
    pub(super) classes: Vec<Class>,
    /// Barrier weight if a limit ended the work on the node.
    pub(super) cut: Option<f64>,
    /// Multiply-adds.
    pub(super) work: f64,
}

/// Thresholds and limits of the work on nodes.
#[derive(Clone, Copy)]
pub(super) struct Reach<'a> {
    /// Σ u_tᵀCu_t at the known point.
    pub(super) value: f64,
    /// Nodes with a bound up to this are closed.
    pub(super) closed: f64,
    /// Largest numbers of nodes and of multiply-adds.
    pub(super) nodes: usize,
    pub(super) work: f64,
    pub(super) threads: &'a Threads,
    pub(super) go_on: GoOn<'a>,
}

/// Matrix C + σI, and the number r of columns.
pub(super) struct Shifted {
    c: Array2<f64>,
    pub(super) r: usize,
    rounding: f64,
}

/// State of the work on a node.
struct Attempt {
    master: Master,
    barrier: f64,
    bound: f64,
    dual: Option<Dual>,
    easy: bool,
    /// Share of the largest number of nodes for the next full sparse maximum.
    part: f64,
    /// Multiply-adds of the sparse maxima.
    spent: f64,
}

/// Outcome of a round.
#[derive(PartialEq)]
enum Round {
    /// Another round may help.
    Open,
    /// The node is closed, solved or known well enough.
    Done,
    /// The time or work limit is reached.
    Cut,
}

/// Sparse maxima at a centre.
struct Maxima {
    /// Upper bound of the node.
    above: f64,
    /// Maximum and found vectors of every class.
    maxima: Vec<f64>,
    found: Vec<Vec<Candidate>>,
    work: f64,
}

impl Shifted {
    pub(super) fn new(c: Array2<f64>, r: usize) -> Self {
        Self { rounding: sum_rounding(&c, r), c, r }
    }

    /// Computes the bound of a node; `tell` receives every better bound and its Λ.
    pub(super) fn solve(&self, node: &Node, reach: &Reach<'_>, tell: &mut dyn FnMut(f64, &Array2<f64>)) -> Solved {
        let n = self.c.nrows();
        let classes = node.classes.iter().map(|c| c.columns as f64).collect();
        let master = Master::new(n, classes, self.begin(node));
        let first = FIRST_BARRIER * node.bound / (n + master.known.len()) as f64;
        let left = node.left.clone();
        let mut attempt = Attempt {
            barrier: left.as_ref().map_or(first, |left| left.barrier),
            dual: left.and_then(|left| left.dual),
            master,
            bound: node.bound,
            easy: true,
            part: FIRST_EFFORT,
            spent: 0.0,
        };
        let mut round = Round::Open;
        for _ in 0..numerics::STEPS {
            round = self.round(node, &mut attempt, reach, tell);
            if round != Round::Open {
                break;
            }
        }
        let (cut, mut work) = (round == Round::Cut, attempt.spent + attempt.master.work);
        let mut classes = node.classes.clone();
        if let (true, false, Some(dual)) = (node.root, cut, &attempt.dual) {
            let gap = attempt.bound - reach.value;
            let effort = self.effort(gap.max(SOLVED * attempt.bound), reach, work);
            work += self.screen(&mut classes, dual, gap, &effort);
        }
        Solved {
            bound: attempt.bound,
            dual: attempt.dual,
            master: attempt.master,
            classes,
            cut: cut.then_some(attempt.barrier),
            work,
        }
    }

    /// Returns the limits of a sparse maximum for the gap `rest`, after `work` multiply-adds.
    fn effort<'a>(&self, rest: f64, reach: &Reach<'a>, work: f64) -> Effort<'a> {
        let (fewest, most, inner) = INNER_NODES;
        let nodes = inner / (self.c.nrows() as f64).powi(3);
        Effort {
            tolerance: MISSED * rest / self.r as f64,
            enough: f64::NEG_INFINITY,
            nodes: nodes.clamp(fewest, most) as usize,
            work: reach.work - work,
            go_on: reach.go_on,
        }
    }

    /// Does a round: centres the weights, computes the sparse maxima there, and adds the new vectors.
    fn round(
        &self,
        node: &Node,
        attempt: &mut Attempt,
        reach: &Reach<'_>,
        tell: &mut dyn FnMut(f64, &Array2<f64>),
    ) -> Round {
        let master = &mut attempt.master;
        let centre = master.centre(attempt.barrier, reach.go_on);
        let work = attempt.spent + master.work;
        if work >= reach.work || !(reach.go_on)() {
            return Round::Cut;
        }
        let Some(centre) = centre else {
            return Round::Done;
        };
        let value = master.value();
        let mut effort = self.effort((attempt.bound - value).max(SOLVED * value), reach, work);
        if attempt.easy {
            effort.nodes = 1;
        } else {
            effort.nodes = (attempt.part * effort.nodes as f64).ceil() as usize;
            attempt.part = (2.0 * attempt.part).min(1.0);
        }
        let found = self.maxima(node, master, &centre, (effort, reach.closed));
        attempt.spent += found.work;
        if found.above < attempt.bound {
            attempt.bound = found.above;
            tell(attempt.bound, &centre.lambda);
            attempt.dual = Some(Dual { lambda: centre.lambda.clone(), maxima: found.maxima });
        }
        let rest = attempt.bound - value;
        let part = if node.root { ROOT_SPLIT } else { SPLIT_EARLY };
        // The node's own bound counts: the parent's can be near before this node is known.
        let known = value > reach.closed && found.above - value <= part * (value - reach.closed);
        let divisible = node.classes.iter().any(|c| !c.allowed.is_single());
        if attempt.bound <= reach.closed || rest <= SOLVED * value || (known && divisible) {
            return Round::Done;
        }
        let before = master.known.len();
        for (class, found) in found.found.iter().enumerate() {
            let least = if attempt.easy { effort.tolerance } else { 0.0 };
            for new in found.iter().filter(|new| new.value > centre.multipliers[class] + least) {
                master.add(&self.c, class, new, &centre, attempt.barrier);
            }
        }
        let grown = master.known.len() > before;
        master.forget();
        if !attempt.easy {
            let next = BARRIER * rest / (self.c.nrows() + master.known.len()) as f64;
            attempt.barrier = next.clamp(FALL * attempt.barrier, attempt.barrier);
        }
        attempt.easy = !attempt.easy || grown;
        Round::Open
    }

    /// Leaves out rows that no point at the known value, `gap` below the bound, uses; returns the work.
    fn screen(&self, classes: &mut [Class], dual: &Dual, gap: f64, effort: &Effort<'_>) -> f64 {
        let b = &self.c - &dual.lambda;
        let mut work = 0.0;
        for (class, above) in classes.iter_mut().zip(&dual.maxima) {
            let least = above - gap;
            let fewer = Allowed { size: class.allowed.size - 1, ..class.allowed.clone() };
            let effort = Effort { work: effort.work - work, ..*effort };
            let found = sparse_maximum((&b, 1), &fewer, &[], &effort);
            work += found.work;
            let most = found.above;
            let ulp = numerics::ULPS * (class.allowed.size + 4) as f64;
            let all = class.allowed.free.clone();
            class.allowed.free.retain(|&i| {
                let row = b.row(i);
                let mut squares: Vec<f64> = (all.iter().filter(|&&j| j != i)).map(|&j| row[j] * row[j]).collect();
                let around = largest_sum(&mut squares, fewer.size) * (1.0 + ulp);
                let least = least - ulp * (least.abs() + above.abs() + row[i].abs());
                // Row i stays if the larger eigenvalue is at least `least`.
                least <= row[i].max(most) || (least - row[i]) * (least - most) <= around
            });
        }
        work
    }

    /// Returns the first vectors of a node: the known ones, and a unit vector for every row.
    fn begin(&self, node: &Node) -> Vec<Known> {
        let mut known = node.known.clone();
        for (class, alike) in node.classes.iter().enumerate() {
            let rows: Vec<usize> = (0..self.c.nrows()).filter(|&i| alike.allowed.fits(&[i])).collect();
            let share = 0.25 * (alike.columns as f64 / rows.len() as f64).min(1.0 / node.classes.len() as f64);
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

    /// Computes the bound at Λ, and the vectors found for every class.
    fn maxima(&self, node: &Node, master: &Master, centre: &Centre, (effort, closed): (Effort<'_>, f64)) -> Maxima {
        let b = &self.c - &centre.lambda;
        let rounding = self.rounding + sum_rounding(&centre.lambda, self.r);
        let mut above = ky_fan_above(&centre.lambda, self.r) + rounding;
        // Excess over its multiplier that each column may have if the node is to be closed.
        let columns: f64 = (node.classes.iter().zip(&centre.multipliers))
            .map(|(class, multiplier)| class.columns as f64 * multiplier)
            .sum();
        let spare = (closed - above - columns - rounding) / self.r as f64;
        let (mut maxima, mut all, mut work) = (Vec::new(), Vec::new(), 0.0);
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
                enough: if spare > 0.0 { centre.multipliers[class] + spare } else { f64::NEG_INFINITY },
                work: effort.work - work,
                ..effort
            };
            let found = sparse_maximum((&b, 1), &alike.allowed, &warm, &effort);
            above += alike.columns as f64 * found.above;
            work += found.work;
            maxima.push(found.above);
            all.push(found.found);
        }
        Maxima { above, maxima, found: all, work }
    }
}

/// Returns the rounding that A (C or Λ) can add to the sums of r eigenvalues of C − Λ and of Λ, and their
/// total. The entries of A are a sum or a difference, so an ulp of each.
fn sum_rounding(a: &Array2<f64>, r: usize) -> f64 {
    r as f64 * numerics::TIE * square(a).sqrt()
}

#[cfg(test)]
mod tests;
