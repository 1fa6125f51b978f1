//! A node of the [`tree`](super::tree): the Lagrangian of Σ u_tu_tᵀ ⪯ I for classes of columns that are alike.
//!
//! New vectors are asked for until none that is easily found is missing, then the sparse maxima; again at a smaller barrier
//! until the node is closed, solved or known well enough to be split.
//!
//! At a root, rows are left out that no point as good as the known one uses. With row i in column t the sum is
//! at most that of the bound with the maximum of column t replaced by that over the supports with i; and of
//! u = (s, cv) with u_i = s the value is at most `s²B_ii + 2sc b + c²φ`, φ the bound of k − 1 rows, b the norm of the k − 1
//! largest other entries of row i of B = C − Λ: the larger eigenvalue of a 2×2 matrix.

use ndarray::Array2;

use super::master::{Centre, Known, Master};
use super::maximum::{Allowed, Candidate, Effort, sparse_maximum};
use super::relaxation::{ky_fan_above, largest_sum};
use crate::budget::GoOn;
use crate::threads::Threads;

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

/// The part of these nodes that the first sparse maximum after a new centre may look at; every further one twice as many.
const FIRST_EFFORT: f64 = 1.0 / 64.0;

/// Part of what is open that a sparse maximum may miss.
const MISSED: f64 = 0.25;

/// A node that cannot be closed is split, if it can be, as soon as it is known to this part of what it lacks; a root, whose
/// bound all nodes have, later.
const SPLIT_EARLY: f64 = 0.5;
const ROOT_SPLIT: f64 = 0.1;

/// A node's own gap below which its relaxation is solved, relative to its value.
const SOLVED: f64 = 1e-9;

/// Columns that are alike.
#[derive(Debug, Clone)]
pub(super) struct Class {
    pub(super) columns: usize,
    pub(super) allowed: Allowed,
}

/// A node that waits to be solved.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) bound: f64,
    pub(super) age: usize,
    pub(super) classes: Vec<Class>,
    pub(super) known: Vec<Known>,
    /// Whether nothing is decided.
    pub(super) root: bool,
    pub(super) left: Option<Left>,
}

/// Where work on a node was left off: the weight of the barrier, and what gave the bound.
#[derive(Clone)]
pub(super) struct Left {
    pub(super) barrier: f64,
    pub(super) dual: Option<Dual>,
}

/// What gives a bound: Λ, and the sparse maximum of every class there.
#[derive(Clone)]
pub(super) struct Dual {
    lambda: Array2<f64>,
    maxima: Vec<f64>,
}

/// What a node came to.
pub(super) struct Solved {
    pub(super) bound: f64,
    /// That of the bound, in terms of C + σI; none where the bound is the parent's.
    pub(super) dual: Option<Dual>,
    pub(super) master: Master,
    /// Its classes, without the rows that are left out.
    pub(super) classes: Vec<Class>,
    /// The weight of the barrier where the work ended before the node did.
    pub(super) cut: Option<f64>,
    /// Multiply-adds.
    pub(super) work: f64,
}

/// How far to go.
#[derive(Clone, Copy)]
pub(super) struct Reach<'a> {
    /// Σ u_tᵀCu_t at the known point.
    pub(super) value: f64,
    /// Nodes with a bound up to this are closed.
    pub(super) closed: f64,
    /// Most nodes, and multiply-adds.
    pub(super) nodes: usize,
    pub(super) work: f64,
    pub(super) threads: &'a Threads,
    pub(super) go_on: GoOn<'a>,
}

/// C + σI, with r columns.
pub(super) struct Shifted {
    c: Array2<f64>,
    pub(super) r: usize,
    rounding: f64,
}

/// Work on a node.
struct Attempt {
    master: Master,
    barrier: f64,
    bound: f64,
    dual: Option<Dual>,
    easy: bool,
    /// The part of the most nodes that the next sparse maximum may look at.
    part: f64,
    /// Multiply-adds of the sparse maxima.
    spent: f64,
}

/// How a round ended.
#[derive(PartialEq)]
enum Round {
    /// Another one may help.
    Open,
    /// The node is closed, solved or known well enough.
    Done,
    /// The time is up or the work is done.
    Cut,
}

/// The sparse maxima at a centre.
struct Maxima {
    /// The bound.
    above: f64,
    /// Of every class, the maximum and the vectors that were found.
    maxima: Vec<f64>,
    found: Vec<Vec<Candidate>>,
    work: f64,
}

impl Shifted {
    pub(super) fn new(c: Array2<f64>, r: usize) -> Self {
        Self {
            rounding: sum_rounding(&c, r),
            c,
            r,
        }
    }

    /// The bound of a node; `tell` hears of every better one and its Λ.
    pub(super) fn solve(
        &self,
        node: &Node,
        reach: &Reach<'_>,
        tell: &mut dyn FnMut(f64, &Array2<f64>),
    ) -> Solved {
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
        for _ in 0..ROUNDS {
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

    /// A sparse maximum to a part of the `rest`, after so much work.
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

    /// A centre, the maxima there, and the new vectors.
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
            effort.nodes = EASY_NODES;
        } else {
            effort.nodes = (attempt.part * effort.nodes as f64).ceil() as usize;
            attempt.part = (2.0 * attempt.part).min(1.0);
        }
        let found = self.maxima(node, master, &centre, (effort, reach.closed));
        attempt.spent += found.work;
        if found.above < attempt.bound {
            attempt.bound = found.above;
            tell(attempt.bound, &centre.lambda);
            attempt.dual = Some(Dual {
                lambda: centre.lambda.clone(),
                maxima: found.maxima,
            });
        }
        let rest = attempt.bound - value;
        let part = if node.root { ROOT_SPLIT } else { SPLIT_EARLY };
        // The bound of the parent can be near without anything being known of this node's own.
        let known = value > reach.closed && found.above - value <= part * (value - reach.closed);
        let divisible = node.classes.iter().any(|c| !c.allowed.is_single());
        if attempt.bound <= reach.closed || rest <= SOLVED * value || (known && divisible) {
            return Round::Done;
        }
        let before = master.known.len();
        for (class, found) in found.found.iter().enumerate() {
            let least = if attempt.easy { effort.tolerance } else { 0.0 };
            for new in found
                .iter()
                .filter(|new| new.value > centre.multipliers[class] + least)
            {
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

    /// Leaves out the rows of a class that no point at the known value uses, `gap` below the bound; the work done.
    fn screen(&self, classes: &mut [Class], dual: &Dual, gap: f64, effort: &Effort<'_>) -> f64 {
        let b = &self.c - &dual.lambda;
        let mut work = 0.0;
        for (class, above) in classes.iter_mut().zip(&dual.maxima) {
            let least = above - gap;
            let fewer = Allowed {
                size: class.allowed.size - 1,
                ..class.allowed.clone()
            };
            let most = if fewer.size > 0 {
                let effort = Effort {
                    work: effort.work - work,
                    ..*effort
                };
                let found = sparse_maximum((&b, 1), &fewer, &[], &effort);
                work += found.work;
                found.above
            } else {
                f64::NEG_INFINITY
            };
            let ulp = 4.0 * f64::EPSILON * (class.allowed.size + 4) as f64;
            let all = class.allowed.free.clone();
            class.allowed.free.retain(|&i| {
                let row = b.row(i);
                let mut squares: Vec<f64> = (all.iter().filter(|&&j| j != i))
                    .map(|&j| row[j] * row[j])
                    .collect();
                let around = largest_sum(&mut squares, fewer.size) * (1.0 + ulp);
                let least = least - ulp * (least.abs() + above.abs() + row[i].abs());
                // Whether the larger eigenvalue is `least` or more.
                least <= row[i].max(most) || (least - row[i]) * (least - most) <= around
            });
        }
        work
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
        (effort, closed): (Effort<'_>, f64),
    ) -> Maxima {
        let b = &self.c - &centre.lambda;
        let rounding = self.rounding + sum_rounding(&centre.lambda, self.r);
        let mut above = ky_fan_above(&centre.lambda, self.r) + rounding;
        // What each column may be above its multiplier for the node to be closed all the same.
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
                enough: if spare > 0.0 {
                    centre.multipliers[class] + spare
                } else {
                    f64::NEG_INFINITY
                },
                work: effort.work - work,
                ..effort
            };
            let found = sparse_maximum((&b, 1), &alike.allowed, &warm, &effort);
            above += alike.columns as f64 * found.above;
            work += found.work;
            maxima.push(found.above);
            all.push(found.found);
        }
        Maxima {
            above,
            maxima,
            found: all,
            work,
        }
    }
}

/// What rounding can add to the sum of r eigenvalues of C − Λ, to r of Λ and to their sum, for each of the two matrices:
/// their entries are a sum and a difference, so an ulp of each.
fn sum_rounding(a: &Array2<f64>, r: usize) -> f64 {
    8.0 * r as f64 * f64::EPSILON * crate::linalg::square(a).sqrt()
}
