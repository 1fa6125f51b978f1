//! Rules that choose the next rows (OBCD paper, section on working sets).
//!
//! | rule | rows |
//! |---|---|
//! | [`WorkingSet::Random`] | uniform over all sets of k rows |
//! | [`WorkingSet::Cyclic`] | all C(n, k) sets of k rows in lexicographic order, repeatedly |
//! | [`WorkingSet::WssSv`] | largest violation `|S_ij|`, S = XΓᵀ − ΓXᵀ |
//! | [`WorkingSet::WssOr`] | largest guaranteed decrease under the scalar bound L_f |
//! | [`WorkingSet::Tiled`] | all pairs, tile by tile, in random order of the rows |
//! | [`WorkingSet::Own`] | what a function of the caller chooses |
//!
//! The greedy rules, WssSv and WssOr, score the pairs of one random row with p random partners, or all pairs, and
//! take the pair with the largest score. A score is of first order: with ℓ0 or ℓ1 that pair may be unable to
//! move, and would be chosen for ever. While nothing moves, the other pairs of the sample follow in decreasing
//! order of score. A row whose pairs all have score 0 gets its turn as any other, with a random partner.
//!
//! Tiles have up to 32 times the rows of a group, and are swept in inner tiles of two groups.
//!
//! Two zero rows cannot move (V·0 = 0). The tiled rule never visits tiles of zero rows; the skipped pairs count
//! as visited, as the identity is their best move.

use ndarray::ArrayView2;
use rand::seq::{SliceRandom, index};
use rand::{Rng, RngExt};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::tournament::{self, Pairs};

mod rule;

pub use rule::{Rule, View};

/// A rule for choosing rows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum WorkingSet {
    /// Uniformly random rows.
    Random,
    /// Lexicographic order.
    Cyclic,
    /// Maximal violation of stationarity.
    WssSv,
    /// Maximal guaranteed decrease.
    WssOr,
    /// All pairs, tile by tile.
    #[default]
    Tiled,
    /// A rule of the caller's own.
    #[serde(skip)]
    Own(Rule),
}

impl std::str::FromStr for WorkingSet {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "random" => Ok(Self::Random),
            "cyclic" => Ok(Self::Cyclic),
            "wss-sv" => Ok(Self::WssSv),
            "wss-or" => Ok(Self::WssOr),
            "tiled" => Ok(Self::Tiled),
            _ => Err(Error::invalid(
                "working_set",
                format!("must be one of random, cyclic, wss-sv, wss-or, tiled; got {name:?}"),
            )),
        }
    }
}

/// Most sets of rows in a cycle of the cyclic rule for k > 2; more would take hours.
pub(crate) const MAX_CYCLE: u64 = 10_000_000;

/// Returns C(n, k), the number of sets of `k` of `n` rows; None if it exceeds [`MAX_CYCLE`].
pub(crate) fn blocks(n: usize, k: usize) -> Option<u64> {
    let mut count = 1u64;
    for t in 0..k.min(n - k) as u64 {
        count = count.checked_mul(n as u64 - t)? / (t + 1);
        if count > MAX_CYCLE {
            return None;
        }
    }
    Some(count)
}

/// Default number of partners of a random row that a greedy rule scores, at most n − 1: the table in
/// `benchmarks/results/greedy-rules.md`. (The papers state p = min(n, 200) random pairs, whose sweeps can stop making
/// progress.)
pub(crate) const SCORED_PAIRS: usize = 20;

/// Scores of pairs at the current point, for the greedy rules.
pub(crate) trait Scores {
    /// Returns all subgradient rows Γ, n×r, computed once for this point; later products use them.
    fn subgradients(&mut self) -> ArrayView2<'_, f64>;

    /// Returns, for rows (i, j) with subgradient rows Γ: (Γ_i·x_i, Γ_i·x_j, Γ_j·x_i, Γ_j·x_j) and (x_i·x_i,
    /// x_i·x_j, x_j·x_j).
    fn products(&mut self, i: usize, j: usize) -> ([f64; 4], [f64; 3]);
}

/// Returns the score `|S_ij|` of the rule WSS-SV: S = XΓᵀ − ΓXᵀ.
pub fn violation(gamma: [f64; 4]) -> f64 {
    (gamma[2] - gamma[1]).abs()
}

/// Returns the score of the rule WSS-OR: the decrease `‖T_BB‖_* + tr T_BB` of the scalar model with T = (Γ −
/// L X)Xᵀ − αI, in closed form; L·I majorises the Hessian.
pub fn guaranteed_decrease(gamma: [f64; 4], gram: [f64; 3], lipschitz: f64, proximal: f64) -> f64 {
    let t00 = gamma[0] - lipschitz * gram[0] - proximal;
    let t01 = gamma[1] - lipschitz * gram[1];
    let t10 = gamma[2] - lipschitz * gram[1];
    let t11 = gamma[3] - lipschitz * gram[2] - proximal;
    let (c1, c2, c3, c4) = (t00 + t11, t01 - t10, t11 - t00, t01 + t10);
    c1 + c1.hypot(c2).max(c3.hypot(c4))
}

/// The next rows to visit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Visit {
    /// Lead rows.
    pub(crate) lead: Vec<usize>,
    /// The other rows.
    pub(crate) rest: Vec<usize>,
    /// Which of their pairs to visit.
    pub(crate) pairs: Option<Pairs>,
    /// Pairs proved stationary, which count as visited with this visit.
    pub(crate) skipped: u64,
    /// True if the rows are those of the last visit.
    pub(crate) again: bool,
    /// True if F has fallen by more than the tolerance since the last visit: set by the caller.
    pub(crate) moved: bool,
    /// How the rows are swept, if not as one block.
    pub(crate) inner: Option<InnerTiles>,
}

/// The inner tiles of a tile of many rows: the rows of the tile are kept current among themselves, and all others
/// follow when the tile has been swept. Some inner tiles without a common row are swept side by side, so that several
/// threads share the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InnerTiles {
    /// Rows of a group; a tile has two.
    pub(crate) half: usize,
    /// The number of tiles that are swept side by side.
    pub(crate) together: usize,
}

impl Visit {
    /// The visit of one pair.
    pub(crate) fn of_pair(i: usize, j: usize) -> Self {
        Self { lead: vec![i], rest: vec![j], pairs: Some(Pairs::Cross), ..Self::default() }
    }
}

/// Up to this number of nonzero rows form one block in passes without zero rows.
const SUPPORT_BLOCK: usize = 384;

/// Number of groups of rows for each inner tile of a set that is swept at once. A tile has two groups, so one set has about
/// an eighth of the rows.
const GROUPS_PER_TILE: usize = 16;

/// Most inner tiles of a tile that have no row in common: at 64 rows each, C of a tile takes 8 MB.
const INNER_TILES: usize = 16;

/// The state of a working-set rule.
#[derive(Debug)]
pub(crate) struct Schedule {
    rule: WorkingSet,
    n: usize,
    size: usize,
    tile: usize,
    /// Number of partners of a row that a greedy rule scores, or of pairs if it scores all of them.
    scored: usize,
    /// The next rows of the cyclic rule.
    cycle: Vec<usize>,
    /// The remaining pairs of the sample of a greedy rule, the next one last.
    ranked: Vec<(usize, usize)>,
    tiles: Tiles,
}

/// The pairs that a finished pass of the tiled rule has visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// All pairs.
    Full,
    /// The pairs of rows that were nonzero at the start of the pass.
    Support,
}

#[derive(Debug, Default)]
struct Tiles {
    groups: Vec<Vec<usize>>,
    /// Number of rows that were nonzero at the start of the pass.
    support: usize,
    /// True if this pass, and the next one, skip the zero rows.
    support_only: bool,
    next_support_only: bool,
    ended: Option<Pass>,
    /// Number of groups with nonzero rows.
    active: usize,
    /// The next round of this sweep, and the remaining tiles of the round before, last first. (A whole sweep
    /// has n²/tile² tiles.)
    round: usize,
    order: Vec<(usize, usize)>,
    skipped: u64,
    inner: Option<InnerTiles>,
}

impl Tiles {
    /// Returns whether the next visit repeats the whole support.
    fn repeats(&self) -> bool {
        self.next_support_only && self.ended == Some(Pass::Support) && self.groups.len() == 1
    }

    /// Lists the tiles of the next nonempty round, once the last round is done: in a tournament every row moves once in
    /// every round, so no row waits for a whole sweep.
    fn lay_round(&mut self) {
        let (active, all) = (self.active, self.groups.len());
        while self.order.is_empty() && self.round < 1 + tournament::rounds(all) {
            match self.round {
                0 => self.order.extend((0..active).map(|group| (group, group))),
                round => {
                    let meetings = tournament::meetings(all, round - 1);
                    let met = meetings.filter(|&(first, second)| first < active && second < all);
                    self.order.extend(met);
                }
            }
            self.round += 1;
        }
        self.order.reverse();
    }
}

impl Schedule {
    /// The rule for n rows, sets of `size` rows, and inner tiles of `tile` rows.
    pub(crate) fn new(rule: WorkingSet, n: usize, size: usize, tile: usize) -> Self {
        Self {
            rule,
            n,
            size,
            tile,
            scored: SCORED_PAIRS.min(n),
            cycle: (0..size).collect(),
            ranked: Vec::new(),
            tiles: Tiles::default(),
        }
    }

    /// Sets the number of partners of a random row that a greedy rule scores; from n(n−1)/2 on it scores all
    /// pairs.
    pub(crate) fn scoring(mut self, pairs: Option<usize>) -> Self {
        self.scored = pairs.unwrap_or(self.scored);
        self
    }

    /// Returns the pass of the tiled rule that ended with the last visit.
    pub(crate) fn ended(&self) -> Option<Pass> {
        self.tiles.ended
    }

    /// Rows of a group of an inner tile.
    fn half(&self) -> usize {
        self.tile.div_ceil(2)
    }

    /// The inner tiles of a tile that is swept as one.
    pub(crate) fn one_tile(&self) -> InnerTiles {
        InnerTiles { half: self.half(), together: 1 }
    }

    /// Number of rows n.
    pub(crate) fn rows(&self) -> usize {
        self.n
    }

    /// Number of rows that were nonzero when the tiled pass began.
    pub(crate) fn support(&self) -> usize {
        self.tiles.support
    }

    /// Makes the next tiled pass skip the zero rows.
    pub(crate) fn restrict_to_support(&mut self) {
        self.tiles.next_support_only = true;
    }

    /// Computes the next rows; returns false if a rule of the caller's own has none.
    pub(crate) fn next(
        &mut self,
        visit: &mut Visit,
        x: ArrayView2<'_, f64>,
        rng: &mut Xoshiro256PlusPlus,
        scores: &mut dyn Scores,
        lipschitz: f64,
        proximal: f64,
    ) -> bool {
        if self.rule == WorkingSet::Tiled && self.tiles.repeats() {
            self.tiles.next_support_only = false;
            visit.again = true;
            return true;
        }
        visit.again = false;
        visit.lead.clear();
        visit.rest.clear();
        visit.skipped = 0;
        visit.pairs = Some(Pairs::All);
        visit.inner = None;
        match &self.rule {
            WorkingSet::Random => sample(self.n, self.size, rng, &mut visit.lead),
            WorkingSet::Cyclic => self.cyclic(visit),
            WorkingSet::WssSv => self.greedy(visit, rng, scores, |g, _| violation(g)),
            WorkingSet::WssOr => {
                self.greedy(visit, rng, scores, |g, z| guaranteed_decrease(g, z, lipschitz, proximal).abs())
            }
            WorkingSet::Tiled => self.tiled(visit, x, rng),
            WorkingSet::Own(rule) => {
                let size = self.size;
                if !rule.next(View { x, size, scores }, &mut visit.lead) {
                    return false;
                }
            }
        }
        if visit.rest.is_empty() && visit.lead.len() == 2 {
            visit.rest.push(visit.lead[1]);
            visit.lead.truncate(1);
            visit.pairs = Some(Pairs::Cross);
        }
        true
    }

    fn cyclic(&mut self, visit: &mut Visit) {
        visit.lead.extend_from_slice(&self.cycle);
        let (n, k) = (self.n, self.size);
        // Advance the last row that can advance and place the rows behind it next to it; the first set
        // follows the last one.
        let last = (0..k).rev().find(|&t| self.cycle[t] < n - k + t);
        let (from, row) = last.map_or((0, 0), |t| (t, self.cycle[t] + 1));
        for (next, row) in self.cycle[from..].iter_mut().zip(row..) {
            *next = row;
        }
    }

    /// Takes disjoint pairs in decreasing order of score; an odd k takes one row of the last pair. While F
    /// does not fall the scores stay as they are, so the next pairs of the same sample follow.
    fn greedy(
        &mut self,
        visit: &mut Visit,
        rng: &mut Xoshiro256PlusPlus,
        scores: &mut dyn Scores,
        score: impl Fn([f64; 4], [f64; 3]) -> f64,
    ) {
        if std::mem::take(&mut visit.moved) || self.ranked.is_empty() {
            self.rank(rng, scores, score);
        }
        while visit.lead.len() < self.size {
            let Some((i, j)) = self.ranked.pop() else {
                break;
            };
            if visit.lead.contains(&i) || visit.lead.contains(&j) {
                continue;
            }
            visit.lead.push(i);
            if visit.lead.len() < self.size {
                visit.lead.push(j);
            }
        }
        // If the sampled pairs contain too few disjoint ones, fill up at random.
        while visit.lead.len() < self.size {
            let row = rng.random_range(0..self.n);
            if !visit.lead.contains(&row) {
                visit.lead.push(row);
            }
        }
    }

    /// Scores pairs, and lists them in increasing order of score: all pairs, or those of ⌈k/2⌉ random rows with
    /// `scored` random partners each.
    fn rank(
        &mut self,
        rng: &mut Xoshiro256PlusPlus,
        scores: &mut dyn Scores,
        score: impl Fn([f64; 4], [f64; 3]) -> f64,
    ) {
        let n = self.n;
        let all = self.scored >= n * (n - 1) / 2;
        if all {
            scores.subgradients();
        }
        let mut value = |i: usize, j: usize| {
            let (gamma, gram) = scores.products(i.min(j), i.max(j));
            (score(gamma, gram), (i.min(j), i.max(j)))
        };
        let mut scored: Vec<(f64, (usize, usize))> = Vec::new();
        if all {
            scored.extend((0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).map(|(i, j)| value(i, j)));
        } else {
            for i in index::sample(rng, n, self.size.div_ceil(2)) {
                let partners = index::sample(rng, n - 1, self.scored.min(n - 1));
                scored.extend(partners.into_iter().map(|j| value(i, j + usize::from(j >= i))));
            }
        }
        // Pairs of equal score keep their random order.
        scored.sort_by(|l, r| r.0.total_cmp(&l.0));
        self.ranked.clear();
        self.ranked.extend(scored.into_iter().rev().map(|(_, pair)| pair));
    }

    /// Forms groups of half a tile; a tile is two groups. The nonzero rows form the first groups, so a sweep
    /// costs (nonzero rows) × n pairs.
    fn tiled(&mut self, visit: &mut Visit, x: ArrayView2<'_, f64>, rng: &mut Xoshiro256PlusPlus) {
        if self.tiles.order.is_empty() {
            self.lay_tiles(x, rng);
        }
        let tiles = &mut self.tiles;
        tiles.ended = None;
        let (first, second) = tiles.order.pop().unwrap_or((0, 0));
        visit.lead.extend_from_slice(&tiles.groups[first]);
        if first == second {
            if visit.lead.len() == 1 {
                visit.pairs = None;
            }
        } else {
            visit.rest.extend_from_slice(&tiles.groups[second]);
            visit.pairs = Some(Pairs::Cross);
        }
        let rows = visit.lead.len() + visit.rest.len();
        visit.inner = tiles.inner.filter(|_| rows > self.tile);
        if tiles.order.is_empty() {
            tiles.lay_round();
        }
        if tiles.order.is_empty() {
            visit.skipped = tiles.skipped;
            tiles.ended = Some(if tiles.support_only { Pass::Support } else { Pass::Full });
        }
    }

    /// Forms the groups and tiles of the next sweep.
    fn lay_tiles(&mut self, x: ArrayView2<'_, f64>, rng: &mut Xoshiro256PlusPlus) {
        let half = self.half();
        let tiles = &mut self.tiles;
        let (mut active, mut zero): (Vec<usize>, Vec<usize>) =
            (0..self.n).partition(|&i| x.row(i).iter().any(|&v| v != 0.0));
        tiles.support = active.len();
        tiles.support_only = std::mem::take(&mut tiles.next_support_only);
        if tiles.support_only {
            zero.clear();
        }
        tiles.skipped = (zero.len() * zero.len().saturating_sub(1) / 2) as u64;
        active.shuffle(rng);
        zero.shuffle(rng);
        let small_groups = active.len().div_ceil(half) + zero.len().div_ceil(half);
        // A power of two fits most numbers of threads.
        let share = (small_groups + GROUPS_PER_TILE / 2) / GROUPS_PER_TILE;
        let together = share.checked_ilog2().map_or(1, |exponent| 1 << exponent);
        let whole = tiles.support_only && active.len() <= SUPPORT_BLOCK;
        tiles.inner = (!whole).then_some(InnerTiles { half, together: together.min(INNER_TILES) });
        // All rows form one tile if they fit.
        let (rows, most) = (active.len() + zero.len(), INNER_TILES * half);
        let most = if whole || rows <= 2 * most { rows } else { most };
        let grouped = |rows: &[usize]| -> Vec<Vec<usize>> {
            let count = rows.len().div_ceil(most.max(1)).max(1);
            let size = rows.len().div_ceil(count).max(1);
            rows.chunks(size).map(<[usize]>::to_vec).collect()
        };
        let zero = grouped(&zero);
        tiles.groups = grouped(&active);
        tiles.active = tiles.groups.len();
        tiles.groups.extend(zero);
        tiles.round = 0;
        tiles.lay_round();
    }
}

/// Returns a uniform pair i < j.
pub(crate) fn random_pair<R: Rng>(n: usize, rng: &mut R) -> (usize, usize) {
    let i = rng.random_range(0..n);
    let j = rng.random_range(0..n - 1);
    let j = if j >= i { j + 1 } else { j };
    (i.min(j), i.max(j))
}

/// Appends `k` distinct rows of 0..n, uniform, ascending (Floyd's algorithm).
fn sample<R: Rng>(n: usize, k: usize, rng: &mut R, out: &mut Vec<usize>) {
    if k == 2 {
        let (i, j) = random_pair(n, rng);
        out.extend([i, j]);
        return;
    }
    for last in n - k..n {
        let row = rng.random_range(0..=last);
        out.push(if out.contains(&row) { last } else { row });
    }
    out.sort_unstable();
}

#[cfg(test)]
mod tests;
