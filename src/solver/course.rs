//! Who moves next, and when the solve has converged.
//!
//! [`Status::Converged`](super::Status::Converged) stands for: all pairs of the side that moves were solved to global
//! optimality, with the exact curvature and no proximal term, and none of them can lower F by more than the
//! tolerance. A pass that settles is not enough for that: it may not visit all pairs (random and greedy rows,
//! larger blocks) or not see what they can do (Jacobi rounds, the scalar curvature, a proximal term), and what it
//! moves last may open something for the pairs before. Once a pass settles, the proximal term is dropped and
//!
//! * a **look** solves all pairs and moves none; if none can lower F by more than the tolerance,
//!   the solve has converged, at exactly the X it looked at;
//! * as soon as a look finds more, a **clearing** pass of tiles takes what all pairs have to give,
//!   and the mover goes on (or, if that was less than the tolerance, another look follows).
//!
//! A pass over all pairs that moved nothing is a look by itself.

use super::columns::Columns;
use super::descent::Descent;
use super::jacobi::Jacobi;
use super::ledger::Ledger;
use super::mover::Mover;
use super::options::{Options, Side, Update};
use super::point::Point;
use super::proximal::Proximal;
use super::rows::Rows;
use super::smooth::Smooth;
use crate::block::Curvature;
use crate::objective::QuadraticForm;
use crate::pair::Recession;
use crate::working_set::WorkingSet;

/// A side is visited every time unless its last sweep gained less than this share of the other's;
const SMALL_SHARE: f64 = 0.1;

/// then only every so many sweeps.
const SELDOM: u32 = 8;

/// Tangent steps follow a pass that lowered F by at most this share of its magnitude: where h has kinks, passes over pairs
/// converge slowly from there, or to points that are not critical.
const SLOW: f64 = 1e-3;

/// What the pass under way is for.
enum Stage {
    /// The mover that was asked for.
    Own,
    /// Tangent steps from where passes over all pairs gain little.
    Finish(Box<Proximal>),
    /// All pairs are solved and none is moved.
    Look(Box<Rows>),
    /// All pairs are solved and moved.
    Clear(Box<dyn Mover>),
}

/// The movers of a solve.
pub(super) struct Course<'m> {
    own: Own<'m>,
    columns: Option<Columns>,
    stage: Stage,
    turn: Turn,
    options: &'m Options,
}

/// The mover that was asked for.
enum Own<'m> {
    Rows(Box<Rows>),
    Jacobi(Jacobi),
    Smooth(Box<Smooth>),
    Descent(Box<Descent>),
    Given(&'m mut dyn Mover),
}

impl Own<'_> {
    fn mover(&mut self) -> &mut dyn Mover {
        match self {
            Self::Rows(rows) => &mut **rows,
            Self::Jacobi(jacobi) => jacobi,
            Self::Smooth(smooth) => &mut **smooth,
            Self::Descent(descent) => &mut **descent,
            Self::Given(mover) => &mut **mover,
        }
    }
}

/// The smallest L that is known to majorise f by L/2 ‖ΔX‖², negative where f is concave enough,
/// so that C + cI changes no step. (The papers take the spectral norm, which is that or more.)
fn majoriser(point: &Point<'_>, form: &dyn QuadraticForm) -> f64 {
    if point.problem.signature.is_definite() && form.metric().is_none() {
        form.bounds().1
    } else {
        form.hessian_bounds().1
    }
}

impl<'m> Course<'m> {
    /// The movers that the options ask for.
    pub(super) fn new(
        point: &Point<'_>,
        options: &'m Options,
        mut columns: Option<Columns>,
    ) -> Self {
        let Some(form) = point.form else {
            return Self::alone(
                Own::Descent(Box::new(Descent::new(point, options))),
                options,
            );
        };
        if columns.is_none()
            && let Some(smooth) = Smooth::of_form(point, options)
        {
            return Self::alone(Own::Smooth(Box::new(smooth)), options);
        }
        let proximal = if options.proximal > 0.0 {
            options.proximal * form.spread()
        } else {
            0.0
        };
        if let Some(pairs) = columns.as_mut().and_then(Columns::pairs) {
            pairs.proximal = proximal;
        }
        let own = if options.update == Update::Jacobi {
            let upper = if options.adaptive {
                form.hessian_bounds().1
            } else {
                majoriser(point, form)
            };
            Own::Jacobi(Jacobi::new(point, options, proximal, upper))
        } else {
            let lipschitz = if options.working_set == WorkingSet::WssOr {
                majoriser(point, form)
            } else {
                0.0
            };
            Own::Rows(Box::new(Rows::new(point, options, proximal, lipschitz)))
        };
        Self {
            own,
            turn: Turn::new(options.side, columns.as_ref(), point.x.nrows()),
            columns,
            stage: Stage::Own,
            options,
        }
    }

    /// A mover of rows, or of anything.
    pub(super) fn of(mover: &'m mut dyn Mover, options: &'m Options) -> Self {
        Self::alone(Own::Given(mover), options)
    }

    fn alone(own: Own<'m>, options: &'m Options) -> Self {
        Self {
            own,
            turn: Turn::new(Side::Rows, None, 0),
            columns: None,
            stage: Stage::Own,
            options,
        }
    }

    /// Looks for a pair of rows along which the model that is used is unbounded below, moving nothing.
    pub(super) fn probe(
        &mut self,
        point: &mut Point<'_>,
        ledger: &mut Ledger,
    ) -> Option<Recession> {
        let exact = point.form.is_some() && self.options.curvature == Curvature::Exact;
        if !exact || point.problem.signature.is_definite() || self.options.rapidity_bound.is_some()
        {
            return None;
        }
        match &mut self.own {
            Own::Rows(rows) => rows.probe(point, ledger),
            _ => Rows::all_pairs(point, self.options, true).probe(point, ledger),
        }
    }

    /// Who moves next.
    pub(super) fn mover(&mut self) -> &mut dyn Mover {
        match (&mut self.columns, &mut self.stage) {
            (Some(columns), _) if self.turn.columns => columns.mover(),
            (_, Stage::Own) => self.own.mover(),
            (_, Stage::Finish(proximal)) => &mut **proximal,
            (_, Stage::Look(rows)) => &mut **rows,
            (_, Stage::Clear(mover)) => &mut **mover,
        }
    }

    fn moves_column_pairs(&mut self) -> bool {
        self.columns.as_mut().is_some_and(|c| c.pairs().is_some())
    }

    /// Begins a pass for another purpose.
    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        if let Some(pairs) = self.columns.as_mut().and_then(Columns::pairs) {
            pairs.frozen = matches!(self.stage, Stage::Look(_));
        }
        if matches!(self.stage, Stage::Own) {
            self.turn.begin();
            self.own.mover().begin();
        }
    }

    fn look(&mut self, point: &Point<'_>) {
        self.enter(if point.form.is_some() {
            Stage::Look(Box::new(Rows::all_pairs(point, self.options, true)))
        } else {
            Stage::Clear(Box::new(Descent::new(point, self.options)))
        });
    }

    /// Goes on from a look that found a pair.
    pub(super) fn found(&mut self, point: &Point<'_>) {
        if self.turn.columns {
            self.enter(Stage::Own);
        } else {
            let rows = Rows::all_pairs(point, self.options, false);
            self.enter(Stage::Clear(Box::new(rows)));
        }
    }

    /// Draws the conclusion from a pass that lowered F by `decrease` and `moved` something or not; returns whether
    /// the solve has converged.
    pub(super) fn settles(
        &mut self,
        (decrease, moved): (f64, bool),
        ledger: &Ledger,
        point: &Point<'_>,
    ) -> bool {
        let threshold = ledger.threshold();
        let converged = self.conclude((decrease, moved), ledger, point);
        if !converged && matches!(self.stage, Stage::Own) && !self.turn.columns {
            self.own.mover().again(decrease, threshold);
        }
        converged
    }

    fn conclude(
        &mut self,
        (decrease, moved): (f64, bool),
        ledger: &Ledger,
        point: &Point<'_>,
    ) -> bool {
        let threshold = ledger.threshold();
        let pairs = self.moves_column_pairs();
        match &self.stage {
            Stage::Finish(proximal) => {
                if proximal.rests() {
                    self.look(point);
                }
                false
            }
            // A look that finds something does not come to its end.
            Stage::Look(_) if self.turn.columns || !pairs => true,
            Stage::Look(_) => {
                self.turn_to_columns(true);
                false
            }
            Stage::Clear(_) => {
                if decrease > threshold {
                    self.enter(Stage::Own);
                } else if point.form.is_none() {
                    return self.mover().is_exhaustive();
                } else {
                    self.look(point);
                }
                false
            }
            Stage::Own => {
                let columns = self.turn.columns;
                let settled = self.turn.end_of_pass(decrease, threshold);
                if self.turn.columns != columns {
                    self.turn_to_columns(self.turn.columns);
                }
                if !settled || self.mover().polishes() {
                    if !settled && decrease <= SLOW * ledger.magnitude {
                        self.finish(point);
                    }
                    return false;
                }
                !self.options.verify || self.verifies(moved, pairs, point)
            }
        }
    }

    /// Begins tangent steps where tiles move and these have something to take.
    fn finish(&mut self, point: &Point<'_>) {
        let tiled = self.options.working_set == WorkingSet::Tiled;
        if tiled
            && self.columns.is_none()
            && matches!(self.own, Own::Rows(_))
            && let Some(proximal) = Proximal::new(point)
        {
            self.enter(Stage::Finish(Box::new(proximal)));
        }
    }

    /// Whether a settled pass that `moved` something or not has verified convergence itself; otherwise a look begins.
    fn verifies(&mut self, moved: bool, pairs: bool, point: &Point<'_>) -> bool {
        if matches!(self.own, Own::Descent(_)) {
            return true;
        }
        let mut proximal = self.own.mover().drop_proximal();
        if let Some(columns) = &mut self.columns {
            proximal |= columns.mover().drop_proximal();
        }
        let exact = !proximal && !moved;
        let alone = self.turn.columns_alone();
        if alone && (!pairs || exact) {
            return true;
        }
        if !alone && !pairs && exact && self.own.mover().is_exhaustive() {
            return true;
        }
        if !alone {
            self.turn.columns = false;
        }
        self.look(point);
        false
    }

    /// Gives the turn to the columns, or back to the rows.
    fn turn_to_columns(&mut self, columns: bool) {
        self.turn.columns = columns;
        if let (true, Some(mover)) = (columns, &mut self.columns) {
            mover.mover().begin();
        } else {
            self.own.mover().begin();
        }
    }
}

/// Which side moves next, and what each gained.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// Whether columns are moving.
    columns: bool,
    alternate: bool,
    gain: [f64; 2],
    waited: u32,
}

impl Turn {
    fn new(side: Side, columns: Option<&Columns>, rows: usize) -> Self {
        let alone = columns.is_none_or(|c| side == Side::Columns || c.suffice(rows));
        Self {
            columns: columns.is_some_and(|c| alone || matches!(c, Columns::Trace(_))),
            alternate: !alone,
            gain: [f64::INFINITY; 2],
            waited: 0,
        }
    }

    /// Whether rows never move.
    fn columns_alone(&self) -> bool {
        self.columns && !self.alternate
    }

    /// Lets no side count as settled.
    fn begin(&mut self) {
        self.gain = [f64::INFINITY; 2];
        self.waited = 0;
    }

    /// Takes the gain of the sweep that ended; returns whether no side gains any more.
    fn end_of_pass(&mut self, decrease: f64, threshold: f64) -> bool {
        let here = usize::from(self.columns);
        self.gain[here] = decrease;
        if !self.alternate {
            return decrease <= threshold;
        }
        let there = 1 - here;
        if decrease <= threshold {
            if self.gain[there] <= threshold {
                return true;
            }
        } else {
            // What this side changed may have opened something on the other.
            let small = self.gain[there] < SMALL_SHARE * decrease;
            if small && self.waited < SELDOM {
                self.waited += 1;
                if self.gain[there] <= threshold {
                    self.gain[there] = 2.0 * threshold.max(f64::MIN_POSITIVE);
                }
                return false;
            }
        }
        self.waited = 0;
        self.columns = !self.columns;
        false
    }
}
