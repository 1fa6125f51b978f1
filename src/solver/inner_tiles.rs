//! The sweep of a large block in inner tiles, of which some are swept side by side.
//!
//! The Jacobi update sweeps each inner tile in the same way, with blocks of k rows for its tiles and all blocks of a
//! round at once: perfect matchings of the rows of the tile if k = 2.
//!
//! The block holds C and the gradient of its rows, so that they stay current while all other rows wait. When all inner
//! tiles have been swept, the moves of the block are committed like those of any block.
//!
//! Inner tiles P, Q, … without a common row are copies of rows of the block. Each is swept exactly, as if the others
//! did not move. F then changes by the sum of the changes that the sweeps predict and of `⟨ΔX_P, C_PQ ΔX_Q D⟩` over all
//! pairs of tiles. As the gradient after all moves is `G_P + Σ_Q C_PQ ΔX_Q D` in the rows of P, with the gradient G_P
//! after the moves of P alone, which the tile keeps, that sum is half of the [interactions](Tile::interaction) of all
//! tiles.

use std::ops::Range;
use std::slice;

use super::block_visit::{BlockSolver, BlockVisit};
use crate::block::{Block, GOOD_SHARE, Outcome, PairOptions, Pairs};
use crate::problem::Problem;
use crate::threads::Threads;
use crate::tournament::group_rounds;
use crate::working_set::InnerTiles;

/// Data that all tiles of a sweep share.
#[derive(Clone, Copy)]
pub(super) struct Context<'a, 't> {
    pub(super) solver: BlockSolver,
    /// The rows k of a block of the Jacobi update: a tile is then swept in rounds, and all blocks of a round move at once.
    pub(super) jacobi: Option<usize>,
    pub(super) problem: &'a Problem<'a>,
    pub(super) options: PairOptions<'a>,
    pub(super) threads: &'t Threads,
}

/// An inner tile.
#[derive(Clone)]
pub(super) struct Tile {
    pub(super) visit: BlockVisit,
    /// The positions in the block of the lead, and of the other rows.
    lead: Range<usize>,
    rest: Range<usize>,
    /// The rounds of blocks in which the Jacobi update sweeps the tile.
    rounds: Option<Box<InnerSweep>>,
}

impl Tile {
    /// A tile of no rows, made like `block`.
    fn new(block: Block) -> Self {
        Self { visit: BlockVisit::new(block), lead: 0..0, rest: 0..0, rounds: None }
    }

    /// Copies the rows from the block as it is now, and sweeps them.
    fn sweep(&mut self, block: &Block, growth_limit: f64, context: Context<'_, '_>) {
        let (lead, rest) = (self.lead.clone(), self.rest.clone());
        self.visit.block.load_part(block, lead, rest);
        self.visit.block.set_growth_limit(growth_limit);
        match context.jacobi {
            Some(k) if self.visit.block.len() > k => self.sweep_in_rounds(k, context),
            _ => (context.solver).sweep(&mut self.visit, context.problem, context.options),
        }
    }

    /// Sweeps the rows in rounds of blocks of k rows, on this thread.
    fn sweep_in_rounds(&mut self, k: usize, context: Context<'_, '_>) {
        let BlockVisit { block, outcome, .. } = &mut self.visit;
        *outcome = Outcome::default();
        let new = || Box::new(InnerSweep::new(block.clone()));
        let rounds = self.rounds.get_or_insert_with(new);
        let tiles = InnerTiles { half: k.div_ceil(2), together: usize::MAX };
        let threads = Threads::serial();
        let context = Context { jacobi: None, threads: &threads, ..context };
        rounds.begin(block.lead, block.len() - block.lead, tiles);
        while !rounds.is_done() {
            let (parts, undone) = rounds.step(block, context);
            for part in &*parts {
                match undone {
                    true => outcome.undone += part.visit.outcome.visited,
                    false => outcome.absorb(part.visit.outcome),
                }
            }
            if let [part] = parts
                && part.visit.is_cut_short()
            {
                block.end_like(&part.visit.block);
                rounds.end();
            }
        }
    }

    /// Returns the rows that moved: their positions in this tile and in the block.
    fn moved(&self) -> impl Iterator<Item = (usize, usize)> {
        let positions = self.lead.clone().chain(self.rest.clone());
        (positions.enumerate()).filter(|&(k, _)| self.visit.block.has_moved(k))
    }

    /// Returns `⟨G − G_P, ΔX⟩` over the rows that moved, for the gradient G of the block after the moves of all tiles and
    /// G_P after those of this tile alone.
    fn interaction(&self, block: &Block) -> f64 {
        let own = &self.visit.block;
        let mut sum = 0.0;
        for (k, position) in self.moved() {
            let change = block.gradient_row(position).iter().zip(own.gradient_row(k));
            let step = own.row(k).iter().zip(own.old_row(k));
            for ((new, known), (x, old)) in change.zip(step) {
                sum += (new - known) * (x - old);
            }
        }
        sum
    }
}

/// Moves the rows of the block that moved in the tiles, which have no row in common.
fn follow(tiles: &[Tile], block: &mut Block, options: PairOptions<'_>, threads: &Threads) {
    let rows: Vec<(usize, &[f64])> = (tiles.iter())
        .flat_map(|tile| {
            let row = |(k, position)| (position, tile.visit.block.row(k));
            tile.moved().map(row)
        })
        .collect();
    if !rows.is_empty() {
        block.move_rows(&rows, options.metric, threads);
    }
}

/// Sweeps one tile, and moves the rows of the block.
fn alone(tile: &mut Tile, block: &mut Block, context: Context<'_, '_>) {
    tile.sweep(block, block.growth_limit(), context);
    block.set_growth_limit(tile.visit.block.growth_limit());
    if !context.solver.frozen {
        follow(slice::from_ref(tile), block, context.options, context.threads);
    }
}

/// Sweeps tiles side by side, each as if the others did not move, and moves the rows of the block. Returns false, with
/// everything as before, if F would fall by less than the share [`GOOD_SHARE`] of the decrease that the sweeps predict: they are
/// then swept again, half as many at once.
fn side_by_side(tiles: &mut [Tile], block: &mut Block, context: Context<'_, '_>) -> bool {
    let (options, threads) = (context.options, context.threads);
    // The boosts of all tiles stay within the bound.
    let growth_limit = block.growth_limit() / tiles.len() as f64;
    let before = &*block;
    threads.for_chunks(tiles, 1, usize::MAX, |_, tile| {
        tile[0].sweep(before, growth_limit, context);
    });
    if context.solver.frozen {
        return true;
    }
    if tiles.iter().any(|tile| tile.visit.is_cut_short()) {
        return false;
    }
    let change = |tiles: &[Tile]| -> f64 { tiles.iter().map(|t| t.visit.outcome.change).sum() };
    let promised = change(tiles);
    follow(tiles, block, options, threads);
    for tile in &mut *tiles {
        let interaction = tile.interaction(block);
        tile.visit.outcome.change += 0.5 * interaction;
    }
    if !(change(tiles) <= GOOD_SHARE * promised) {
        tiles.iter_mut().for_each(|tile| tile.visit.block.undo());
        follow(tiles, block, options, threads);
        return false;
    }
    let left = tiles.iter().map(|tile| tile.visit.block.growth_limit());
    block.set_growth_limit(left.sum());
    true
}

/// The sweep of a block in inner tiles.
#[derive(Clone)]
pub(super) struct InnerSweep {
    /// As many as have been swept side by side.
    tiles: Vec<Tile>,
    /// The positions of the rows of the tiles to come, by rounds; the last round, and in it the last tile, first.
    remaining: Vec<Vec<[Range<usize>; 2]>>,
    /// Most tiles that are swept side by side: half as many after tiles that had to be undone, twice as many when a block
    /// begins.
    together: usize,
}

impl InnerSweep {
    /// A sweep that is done; tiles are made like `block`.
    pub(super) fn new(block: Block) -> Self {
        Self { tiles: vec![Tile::new(block)], remaining: Vec::new(), together: usize::MAX }
    }

    /// Returns whether all tiles have been swept.
    pub(super) fn is_done(&self) -> bool {
        self.remaining.is_empty()
    }

    /// Leaves out the tiles to come.
    pub(super) fn end(&mut self) {
        self.remaining.clear();
    }

    /// Begins the sweep of a block whose lead has `lead` rows, with `rest` other rows.
    pub(super) fn begin(&mut self, lead: usize, rest: usize, tiles: InnerTiles) {
        let (InnerTiles { half, together }, rows) = (tiles, lead + rest);
        let groups = |from: usize, to: usize| (from..to).step_by(half).map(move |start| start..to.min(start + half));
        let (leads, rests): (Vec<_>, Vec<_>) = (groups(0, lead).collect(), groups(lead, rows).collect());
        let others = if rests.is_empty() { &leads } else { &rests };
        let met = |&(first, second): &(usize, usize)| {
            let alone = rests.is_empty() && first == second;
            let second = if alone { 0..0 } else { others[second].clone() };
            [leads[first].clone(), second]
        };
        let rounds = group_rounds(leads.len(), rests.len());
        let laid = |round: &Vec<_>| round.iter().rev().map(met).collect();
        self.remaining = rounds.iter().rev().map(laid).collect();
        self.together = self.together.saturating_mul(2).min(together);
    }

    /// Sweeps the next tiles, side by side if F falls as their models predict, and moves the rows of the block. Returns
    /// the tiles, and whether they come again, as nothing moved.
    pub(super) fn step(&mut self, block: &mut Block, context: Context<'_, '_>) -> (&mut [Tile], bool) {
        let mut round = self.remaining.pop().unwrap_or_default();
        let next = round.split_off(round.len().saturating_sub(self.together));
        while self.tiles.len() < next.len() {
            self.tiles.push(self.tiles[0].clone());
        }
        let tiles = &mut self.tiles[..next.len()];
        for (tile, [lead, rest]) in tiles.iter_mut().zip(next.iter().rev().cloned()) {
            let pairs = if rest.is_empty() { Pairs::All } else { Pairs::Cross };
            tile.visit.chosen.pairs = Some(pairs);
            (tile.lead, tile.rest) = (lead, rest);
        }
        let undone = match &mut *tiles {
            [tile] => {
                alone(tile, block, context);
                false
            }
            tiles => !side_by_side(tiles, block, context),
        };
        if undone {
            self.together = tiles.len() / 2;
            round.extend(next);
        }
        if !round.is_empty() {
            self.remaining.push(round);
        }
        (tiles, undone)
    }
}

#[cfg(test)]
mod tests;
