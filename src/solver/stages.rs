//! The mover of the next pass, and the verification of convergence.
//!
//! [`Status::Converged`](super::Status::Converged) means that all pairs of the side that moves were solved to
//! global optimality, with the exact curvature and no proximal term, and that none of them can lower F by
//! more than the tolerance. A pass that lowers F by less than the tolerance does not imply this: it may skip
//! pairs (random and greedy rows, larger blocks), use a weaker model (the scalar curvature, a proximal term), or
//! enable moves of earlier pairs by later ones. After such a pass the proximal term is dropped, and
//!
//! * a **verification** solves all pairs and moves none. If none can lower F by more than the tolerance, the
//!   solve has converged, at exactly the X that was verified.
//! * If the verification finds a pair, a **clearing** pass moves pairs: chosen by the rule of the options if it
//!   solves single pairs, otherwise all pairs, tile by tile. The requested mover then continues, or, if the
//!   decrease was below the tolerance, another verification follows.
//!
//! A pass over all pairs that moves nothing is itself a verification.

use super::columns::ColumnMover;
use super::descent::Alone;
use super::descents::Descents;
use super::ledger::Ledger;
use super::mover::Mover;
use super::options::{Options, Side, Update};
use super::point::Point;
use super::proximal::Proximal;
use super::rows::RowMover;
use super::smooth::Smooth;
use crate::block::Curvature;
use crate::working_set::WorkingSet;

/// Tangent steps follow a pass that lowered F by at most this share of its magnitude. If h has kinks, passes
/// over pairs then converge slowly, or to points that are not critical.
const SLOW: f64 = 1e-3;

/// The purpose of the current pass.
enum Stage {
    /// The mover requested by the options.
    Own,
    /// Tangent steps after passes over all pairs that gain little.
    Finish(Alone),
    /// All pairs are solved and none is moved.
    Verify(Box<RowMover>),
    /// Pairs are solved exactly and moved.
    Clear(Box<dyn Mover>),
}

/// The movers of a solve.
pub(super) struct MoverStages<'m> {
    /// The mover requested by the options or the caller.
    own: &'m mut (dyn Mover + 'm),
    /// True if `own` moves tiles of a quadratic form, so that tangent steps may follow.
    tiled: bool,
    /// True if `own` verifies its passes itself.
    verifies: bool,
    columns: Option<ColumnMover>,
    stage: Stage,
    side_schedule: SideSchedule,
    options: &'m Options,
}

/// Returns the smallest known L such that L/2 ‖ΔX‖² majorises f, which the scores of WSS-OR need; 0 for other rules. L is
/// negative if f is concave enough, so that C + cI gives the same scores. (The papers use the spectral norm, which is no
/// smaller.)
fn lipschitz_of_rule(point: &Point<'_>, options: &Options) -> f64 {
    match (point.form, &options.working_set) {
        (Some(form), WorkingSet::WssOr) if form.metric().is_none() => form.bounds().1,
        (Some(form), WorkingSet::WssOr) => form.hessian_bounds().1,
        _ => 0.0,
    }
}

impl<'m> MoverStages<'m> {
    /// The movers for the options; `slot` keeps the mover that they request.
    pub(super) fn new(
        point: &Point<'_>,
        options: &'m Options,
        mut columns: Option<ColumnMover>,
        slot: &'m mut Option<Box<dyn Mover>>,
    ) -> Self {
        let Some(form) = point.form else {
            let own = &mut **slot.insert(Box::new(Descents::new(point, options)));
            return Self { verifies: true, ..Self::of(own, options) };
        };
        if columns.is_none()
            && let Some(smooth) = Smooth::of_form(point, options)
        {
            return Self::of(&mut **slot.insert(Box::new(Alone::new(smooth))), options);
        }
        let proximal = if options.proximal > 0.0 { options.proximal * form.spread() } else { 0.0 };
        if let Some(pairs) = columns.as_mut().and_then(ColumnMover::pairs) {
            pairs.proximal = proximal;
        }
        let lipschitz = lipschitz_of_rule(point, options);
        let own = Box::new(RowMover::new(point, options, proximal, lipschitz));
        Self {
            own: &mut **slot.insert(own),
            verifies: false,
            tiled: columns.is_none() && (options.update == Update::Jacobi || options.working_set == WorkingSet::Tiled),
            side_schedule: SideSchedule::new(options.side, columns.as_ref(), point.x.nrows()),
            columns,
            stage: Stage::Own,
            options,
        }
    }

    /// The movers for a solve whose rows move by `own` alone.
    pub(super) fn of(own: &'m mut (dyn Mover + 'm), options: &'m Options) -> Self {
        Self {
            own,
            tiled: false,
            verifies: false,
            side_schedule: SideSchedule::new(Side::Rows, None, 0),
            columns: None,
            stage: Stage::Own,
            options,
        }
    }

    /// Returns whether a pair along which F is unbounded below ends the solve before anything moves.
    pub(super) fn stops_at_recession(&self, point: &Point<'_>) -> bool {
        let exact = point.form.is_some() && self.options.curvature == Curvature::Exact;
        exact && self.options.rapidity_bound.is_none()
    }

    /// Returns the mover of the next step.
    pub(super) fn mover(&mut self) -> &mut dyn Mover {
        match (&mut self.columns, &mut self.stage) {
            (Some(columns), _) if self.side_schedule.columns => columns.mover(),
            (_, Stage::Own) => self.own,
            (_, Stage::Finish(steps)) => steps,
            (_, Stage::Verify(rows)) => &mut **rows,
            (_, Stage::Clear(mover)) => &mut **mover,
        }
    }

    fn moves_column_pairs(&mut self) -> bool {
        self.columns.as_mut().is_some_and(|c| c.pairs().is_some())
    }

    /// Begins a pass of another stage.
    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        if let Some(pairs) = self.columns.as_mut().and_then(ColumnMover::pairs) {
            pairs.frozen = matches!(self.stage, Stage::Verify(_));
        }
        if matches!(self.stage, Stage::Own) {
            self.side_schedule.begin();
            self.own.begin();
        }
    }

    fn verify(&mut self, point: &Point<'_>) {
        self.enter(if point.form.is_some() {
            Stage::Verify(Box::new(RowMover::all_pairs(point, self.options, true)))
        } else {
            Stage::Clear(Box::new(Descents::new(point, self.options)))
        });
    }

    /// Continues after a verification that found a pair.
    pub(super) fn found(&mut self, point: &Point<'_>) {
        if self.side_schedule.columns {
            self.enter(Stage::Own);
        } else {
            let lipschitz = lipschitz_of_rule(point, self.options);
            let rows = RowMover::clearing(point, self.options, lipschitz);
            self.enter(Stage::Clear(Box::new(rows)));
        }
    }

    /// Processes the end of a pass that lowered F by `decrease`, `moved` telling whether anything moved;
    /// returns whether the solve has converged.
    pub(super) fn has_converged(&mut self, (decrease, moved): (f64, bool), ledger: &Ledger, point: &Point<'_>) -> bool {
        let threshold = ledger.threshold();
        let converged = self.conclude((decrease, moved), ledger, point);
        if !converged && matches!(self.stage, Stage::Own) && !self.side_schedule.columns {
            self.own.again(decrease, threshold);
        }
        converged
    }

    fn conclude(&mut self, (decrease, moved): (f64, bool), ledger: &Ledger, point: &Point<'_>) -> bool {
        let threshold = ledger.threshold();
        let pairs = self.moves_column_pairs();
        match &self.stage {
            Stage::Finish(steps) => {
                if steps.converged {
                    self.verify(point);
                }
                false
            }
            // A verification that finds a pair ends before this point.
            Stage::Verify(_) if self.side_schedule.columns || !pairs => true,
            Stage::Verify(_) => {
                self.turn_to_columns(true);
                false
            }
            Stage::Clear(_) => {
                if decrease > threshold {
                    self.enter(Stage::Own);
                } else if point.form.is_none() {
                    return self.mover().is_exhaustive();
                } else {
                    self.verify(point);
                }
                false
            }
            Stage::Own => {
                let columns = self.side_schedule.columns;
                let converged = self.side_schedule.end_of_pass(decrease, threshold);
                if self.side_schedule.columns != columns {
                    self.turn_to_columns(self.side_schedule.columns);
                }
                if !converged || self.mover().polishes() {
                    if !converged && decrease <= SLOW * ledger.magnitude {
                        self.finish(point);
                    }
                    return false;
                }
                !self.options.verify || self.verifies(moved, pairs, point)
            }
        }
    }

    /// Begins tangent steps if tiles move and tangent steps apply to the problem.
    fn finish(&mut self, point: &Point<'_>) {
        if self.tiled
            && let Some(proximal) = Proximal::new(point)
        {
            self.enter(Stage::Finish(Alone::new(proximal)));
        }
    }

    /// Returns whether a converged pass, `moved` telling whether anything moved, has itself verified
    /// convergence; otherwise begins a verification.
    fn verifies(&mut self, moved: bool, pairs: bool, point: &Point<'_>) -> bool {
        if self.verifies {
            return true;
        }
        let mut proximal = self.own.drop_proximal();
        if let Some(columns) = &mut self.columns {
            proximal |= columns.mover().drop_proximal();
        }
        let exact = !proximal && !moved;
        let alone = self.side_schedule.columns_alone();
        if alone && (!pairs || exact) {
            return true;
        }
        if !alone && !pairs && exact && self.own.is_exhaustive() {
            return true;
        }
        if !alone {
            self.side_schedule.columns = false;
        }
        self.verify(point);
        false
    }

    /// Switches to the columns, or back to the rows.
    fn turn_to_columns(&mut self, columns: bool) {
        self.side_schedule.columns = columns;
        if let (true, Some(mover)) = (columns, &mut self.columns) {
            mover.mover().begin();
        } else {
            self.own.begin();
        }
    }
}

/// The side that moves next, and the gain of each side: rows and columns alternate.
#[derive(Debug, Clone, Copy)]
struct SideSchedule {
    /// True if columns are moving.
    columns: bool,
    alternate: bool,
    gain: [f64; 2],
}

impl SideSchedule {
    fn new(side: Side, columns: Option<&ColumnMover>, rows: usize) -> Self {
        let alone = columns.is_none_or(|c| side == Side::Columns || c.suffice(rows));
        Self {
            columns: columns.is_some_and(|c| alone || matches!(c, ColumnMover::Trace(_))),
            alternate: !alone,
            gain: [f64::INFINITY; 2],
        }
    }

    /// Returns whether rows never move.
    fn columns_alone(&self) -> bool {
        self.columns && !self.alternate
    }

    /// Resets the gains, so that no side counts as converged.
    fn begin(&mut self) {
        self.gain = [f64::INFINITY; 2];
    }

    /// Records the gain of the sweep that ended; returns whether neither side gains any more.
    fn end_of_pass(&mut self, decrease: f64, threshold: f64) -> bool {
        self.gain[usize::from(self.columns)] = decrease;
        let converged = match self.alternate {
            true => self.gain.iter().all(|&gain| gain <= threshold),
            false => decrease <= threshold,
        };
        self.columns ^= self.alternate && !converged;
        converged
    }
}
