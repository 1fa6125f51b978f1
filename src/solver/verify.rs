//! What [`Status::Converged`](super::Status::Converged) stands for: all pairs of the side that moves
//! were solved to global optimality, with the exact curvature and no proximal term, and none of
//! them can lower F by more than the tolerance.
//!
//! A sweep that settles is not enough for that: it may not visit all pairs (random and greedy rows,
//! larger blocks) or not see what they can do (Jacobi rounds, the scalar curvature, a proximal
//! term), and what it moves last may open something for the pairs before. Once a sweep settles, the
//! proximal term is dropped and
//!
//! * a **look** solves all pairs and moves none; if none can lower F by more than the tolerance,
//!   the solve has converged, at exactly the X it looked at;
//! * as soon as a look finds more, a **clearing** pass of tiles takes what all pairs have to give,
//!   and the rule goes on (or, if that was less than the tolerance, another look follows).
//!
//! A sweep over all pairs that moved nothing is a look by itself.

use super::{Options, State, Update};
use crate::block::Curvature;
use crate::penalty::Penalty;
use crate::working_set::{Schedule, TileOrder, WorkingSet};

/// What the sweep under way is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Stage {
    /// The rule that was asked for.
    #[default]
    Own,
    /// All pairs are solved and none is moved.
    Look,
    /// All pairs are solved and moved.
    Clear,
}

/// Where a solve stands on the way to convergence.
pub(super) struct Verification {
    pub(super) stage: Stage,
    /// The passes over all pairs.
    pub(super) schedule: Schedule,
    tile: usize,
    order: TileOrder,
    /// Whether a sweep of the own rule solves all pairs as a look does.
    exhaustive: bool,
}

impl Verification {
    pub(super) fn new(n: usize, options: &Options, order: TileOrder) -> Self {
        let pairs = match options.working_set {
            WorkingSet::Tiled => true,
            WorkingSet::Cyclic => options.block_size == 2,
            WorkingSet::Random | WorkingSet::WssSv | WorkingSet::WssOr => false,
        };
        Self {
            stage: Stage::Own,
            schedule: Schedule::new(WorkingSet::Tiled, n, 2, options.tile, order),
            tile: options.tile,
            order,
            exhaustive: pairs
                && options.update == Update::GaussSeidel
                && options.curvature == Curvature::Exact,
        }
    }
}

impl<P: Penalty> State<'_, P> {
    /// Whether rows move tile by tile at the moment.
    pub(super) fn tiled(&self) -> bool {
        self.verification.stage != Stage::Own
            || self.options.working_set == WorkingSet::Tiled
                && self.options.update == Update::GaussSeidel
    }

    /// The curvature that pairs see at the moment.
    pub(super) fn curvature(&self) -> Curvature {
        if self.verification.stage == Stage::Own {
            self.options.curvature
        } else {
            Curvature::Exact
        }
    }

    /// Begins a sweep for another purpose.
    pub(super) fn enter(&mut self, stage: Stage) {
        let verification = &mut self.verification;
        verification.stage = stage;
        if stage == Stage::Own {
            self.turn.begin();
        } else {
            verification.schedule = Schedule::new(
                WorkingSet::Tiled,
                self.x.nrows(),
                2,
                verification.tile,
                verification.order,
            );
        }
        self.gained = [0.0; 2];
        self.block_current = false;
        self.block.freeze(stage == Stage::Look);
    }

    /// Draws the conclusion from a full sweep that lowered F by `decrease` and moved something or
    /// not; returns whether the solve has converged.
    pub(super) fn conclude(&mut self, decrease: f64, moved: bool, threshold: f64) -> bool {
        self.end_column_pairs();
        match self.verification.stage {
            // A look that finds something does not come to its end.
            Stage::Look if self.turn.columns || !self.moves_column_pairs() => true,
            Stage::Look => {
                self.turn.columns = true;
                false
            }
            Stage::Clear => {
                self.enter(if decrease > threshold {
                    Stage::Own
                } else {
                    Stage::Look
                });
                false
            }
            Stage::Own => {
                if !self.turn.end_of_sweep(decrease, threshold) || self.polishes() {
                    return false;
                }
                if !self.options.verify {
                    return true;
                }
                let proximal = self.alpha > 0.0;
                self.alpha = 0.0;
                let pairs = self.moves_column_pairs();
                if self.turn.columns_alone() {
                    if !pairs || !proximal && !moved {
                        return true;
                    }
                    self.enter(Stage::Look);
                    return false;
                }
                if self.verification.exhaustive && !proximal && !moved && !pairs {
                    return true;
                }
                self.turn.columns = false;
                self.enter(Stage::Look);
                false
            }
        }
    }
}
