//! Column moves: by the J-Jacobi method if f is a trace, otherwise pair by pair like the rows of Xᵀ.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2};

use super::column_jacobi::ColumnJacobi;
use super::column_pairs::ColumnPairs;
use super::ledger::Ledger;
use super::mover::{Mover, Step};
use super::options::{Options, Side};
use super::point::Point;
use super::rows::pair_work;
use crate::error::{Error, Result};
use crate::linalg;
use crate::manifold;
use crate::numerics;
use crate::objective::QuadraticForm;
use crate::penalty::Penalty;
use crate::problem::Problem;
use crate::threads::Threads;

/// Most further sweeps for a diagonal B after the objective has converged. (On the kernel of a singular
/// matrix the quotients are rounding noise that never gets small.)
const POLISH: u32 = 5;

/// Method that moves columns.
#[derive(Debug, Clone)]
pub(crate) enum ColumnMethod {
    /// J-Jacobi with weights w.
    Trace(Vec<f64>),
    /// Pair solves on Xᵀ under the penalty of Xᵀ.
    Pairs(Penalty),
}

/// Returns the method that moves columns and the diagonal of `k` = XᵀJX; the error is the reason why columns cannot
/// move.
pub(crate) fn column_method(
    (problem, form): (&Problem<'_>, &dyn QuadraticForm),
    k: ArrayView2<'_, f64>,
) -> std::result::Result<(ColumnMethod, Vec<f64>), &'static str> {
    let Some(signs) = manifold::signs_of(k) else {
        return Err("moves only rows here: columns move only where XᵀJX is diag(±1)");
    };
    if problem.penalty.is_none()
        && let Some(weights) = form.trace_weights(problem.components)
    {
        return Ok((ColumnMethod::Trace(weights), signs));
    }
    if form.metric().is_some() {
        return Err("moves only rows here: columns move with D = I, or without a penalty and linear term \
             for a diagonal D ≥ 0");
    }
    Ok((ColumnMethod::Pairs(problem.penalty.transposed()), signs))
}

/// The mover of columns.
pub(super) enum ColumnMover {
    Trace(Box<Trace>),
    Pairs(Box<ColumnPairs>),
}

impl ColumnMover {
    /// Returns the mover if the options ask for it and the problem allows it.
    pub(super) fn new(point: &Point<'_>, options: &Options) -> Result<Option<Self>> {
        let side = options.side;
        if side == Side::Rows {
            return Ok(None);
        }
        let found = match point.form {
            Some(form) => column_method((point.problem, form), point.constraint()),
            None => Err("moves only rows here: columns move only where f is quadratic"),
        };
        let (method, signs) = match found {
            Ok(found) => found,
            Err(_) if side == Side::Both => return Ok(None),
            Err(reason) => return Err(Error::invalid("side", reason)),
        };
        let alike = |values: &[f64]| values.windows(2).all(|p| p[0] == p[1]);
        let bound = options.rapidity_bound;
        Ok(match method {
            // Rotations do not change the objective.
            ColumnMethod::Trace(weights) if side == Side::Both && alike(&weights) && alike(&signs) => None,
            ColumnMethod::Trace(weights) => Some(Self::Trace(Box::new(Trace::new(weights, signs, bound)))),
            ColumnMethod::Pairs(penalty) => Some(Self::Pairs(Box::new(ColumnPairs::new(penalty, signs, bound)))),
        })
    }

    /// Returns whether a critical point of the columns is one of the rows, so that rows need not move.
    pub(super) fn suffice(&self, rows: usize) -> bool {
        matches!(self, Self::Trace(trace) if trace.signs.len() == rows)
    }

    /// Returns the mover by pairs. (The J-Jacobi method needs no verification: it ends with the eigenvalues
    /// to rounding.)
    pub(super) fn pairs(&mut self) -> Option<&mut ColumnPairs> {
        match self {
            Self::Pairs(pairs) => Some(pairs),
            Self::Trace(_) => None,
        }
    }

    pub(super) fn mover(&mut self) -> &mut dyn Mover {
        match self {
            Self::Trace(trace) => &mut **trace,
            Self::Pairs(pairs) => &mut **pairs,
        }
    }
}

/// The J-Jacobi method, one round of a sweep per step.
pub(super) struct Trace {
    weights: Vec<f64>,
    signs: Vec<f64>,
    rapidity_bound: Option<f64>,
    sweep: Option<ColumnJacobi>,
    /// Largest quotient met in this sweep.
    off: f64,
    polished: u32,
}

impl Trace {
    fn new(weights: Vec<f64>, signs: Vec<f64>, rapidity_bound: Option<f64>) -> Self {
        Self { weights, signs, rapidity_bound, sweep: None, off: 0.0, polished: 0 }
    }
}

impl Mover for Trace {
    fn step(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
        let Some(form) = point.form else {
            return Step::Pass;
        };
        let mut jacobi = self.sweep.take().unwrap_or_else(|| {
            self.off = 0.0;
            ColumnJacobi::new(
                point.x.view(),
                trace_matrix(form, &point.x, point.threads),
                self.signs.clone(),
                self.weights.clone(),
                self.rapidity_bound,
                form.diagonal_size(),
            )
        });
        let round = jacobi.step(point.threads);
        ledger.visit(round.visited, round.visited as f64 * pair_work(point));
        if round.updates > 0 {
            point.replace(jacobi.x());
            // Every round of columns can enlarge X by orders of magnitude.
            if point.diverges() {
                return Step::Diverged;
            }
            ledger.lower(round.change, round.updates);
        }
        self.off = self.off.max(round.off);
        if let Some(recession) = round.recession {
            return Step::Unbounded(recession);
        }
        if round.last {
            let r = point.x.ncols() as u64;
            ledger.credit_sweep(r * (r - 1) / 2);
            return Step::Pass;
        }
        self.sweep = Some(jacobi);
        Step::Within
    }

    fn polishes(&mut self) -> bool {
        // Convergence is quadratic: B is then diagonal to rounding.
        if self.off <= numerics::HALF || self.polished >= POLISH {
            return false;
        }
        self.polished += 1;
        true
    }
}

/// Returns the diagonal of XᵀCX, and whether the columns of X with XᵀJX = `k` = diag(±1) are eigenvectors of JC to
/// rounding: XᵀCX is diagonal as after the last sweep of the J-Jacobi method, and CX lies in the span of JX.
pub(crate) fn eigenvalues_of(
    (problem, form): (&Problem<'_>, &dyn QuadraticForm),
    x: &Array2<f64>,
    k: ArrayView2<'_, f64>,
    threads: &Threads,
) -> (Array1<f64>, bool) {
    let image = form.apply(x.view(), threads);
    let b = linalg::symmetric_product(x.view(), image.view());
    let values = b.diag().to_owned();
    let diagonal =
        b.indexed_iter().all(|((i, j), &v)| i == j || v.abs() <= numerics::HALF * (b[[i, i]] * b[[j, j]]).abs().sqrt());
    if !diagonal || x.is_square() {
        return (values, diagonal);
    }
    let signed = manifold::signed(x.view(), problem.signature);
    let rest = &image - &(signed * &(&values * &k.diag()));
    let pairs = rest.columns().into_iter().zip(image.columns());
    let small = |(rest, image): (ArrayView1<'_, f64>, ArrayView1<'_, f64>)| {
        rest.dot(&rest) <= numerics::HALF * image.dot(&image)
    };
    let found = pairs.into_iter().all(small);
    (values, found)
}

/// Returns XᵀCX.
pub(crate) fn trace_matrix(form: &dyn QuadraticForm, x: &Array2<f64>, threads: &Threads) -> Array2<f64> {
    let b = x.t().dot(&form.apply(x.view(), threads));
    (&b + &b.t()) * 0.5
}
