//! Values, counts and history of a solve.

use std::time::Instant;

use ndarray::Array2;

use super::outcome::{Record, Solution, Status};
use crate::pair::Recession;

/// F, the counts, and the history of a solve.
#[derive(Debug)]
pub struct Ledger {
    pub(crate) objective: f64,
    pub(super) magnitude: f64,
    tol: f64,
    /// Pairs in a sweep.
    pub(super) sweep: u64,
    pub(crate) visited: u64,
    pub(crate) updates: u64,
    /// Pair visits added so that a sweep of columns counts as a full sweep.
    credit: u64,
    /// Work done, see [`Options::max_work`](super::Options::max_work); for a finite sum, component gradients.
    pub(crate) work: f64,
    /// The decrease of F in the current pass, and the counts at its start.
    gained: f64,
    began: (u64, u64),
    pub(crate) recession: Option<Recession>,
    pub(crate) history: Vec<Record>,
    pub(super) started: Instant,
}

impl Ledger {
    /// The ledger of a solve that begins now, with sweeps of `sweep` pairs.
    pub(crate) fn new(sweep: u64, tol: f64) -> Self {
        Self {
            objective: f64::INFINITY,
            magnitude: 0.0,
            tol,
            sweep,
            visited: 0,
            updates: 0,
            credit: 0,
            work: 0.0,
            gained: 0.0,
            began: (0, 0),
            recession: None,
            history: Vec::new(),
            started: Instant::now(),
        }
    }

    /// F at the point.
    pub fn objective(&self) -> f64 {
        self.objective
    }

    /// The decrease that counts as zero: `tol` times the [magnitude](crate::Problem::magnitude) of F, with
    /// `tol` at least the rounding of F.
    pub fn threshold(&self) -> f64 {
        self.tol.max(f64::EPSILON) * self.magnitude
    }

    /// The relative tolerance of [`threshold`](Self::threshold).
    pub(super) fn tol(&self) -> f64 {
        self.tol
    }

    /// Counts pairs that were solved or proved stationary, and the work in multiply-adds of a matrix product.
    pub fn visit(&mut self, pairs: u64, work: f64) {
        self.visited += pairs;
        self.work += work;
    }

    /// Adds the change of F by accepted moves. The gain of a pass is the sum of these, as the difference of
    /// two evaluations is lost in the rounding of a large constant.
    pub(super) fn lower(&mut self, change: f64, updates: u64) {
        self.objective += change;
        self.gained += change;
        self.updates += updates;
    }

    /// Counts a pass over `pairs` pairs as a sweep.
    pub(super) fn credit_sweep(&mut self, pairs: u64) {
        self.credit += self.sweep.saturating_sub(pairs);
    }

    /// Returns the number of sweeps.
    pub(super) fn sweeps(&self) -> u64 {
        (self.visited + self.credit) / self.sweep
    }

    /// Returns whether this pass has visited a sweep of pairs.
    pub(super) fn has_swept(&self) -> bool {
        self.visited + self.credit >= self.began.0 + self.sweep
    }

    /// Ends the pass; returns its decrease of F, and whether anything moved.
    pub(super) fn end_pass(&mut self) -> (f64, bool) {
        let moved = self.updates > self.began.1;
        self.began = (self.visited + self.credit, self.updates);
        (-std::mem::take(&mut self.gained), moved)
    }

    pub(super) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Returns the result of a solve that ends at `x`, with f and h there.
    pub(crate) fn close(
        mut self,
        status: Status,
        x: Array2<f64>,
        (smooth_value, penalty_value): (f64, f64),
        feasibility: f64,
    ) -> Solution {
        let objective = smooth_value + penalty_value;
        let seconds = self.seconds();
        if self.history.len() > 1
            && (self.history.last()).is_some_and(|r| r.iterations == self.visited)
        {
            self.history.pop();
        }
        // Tracked values agree with fresh ones to rounding. Values below the final one are raised to it, so
        // that the history is nonincreasing and ends there.
        for record in &mut self.history {
            record.objective = record.objective.max(objective);
        }
        self.history.push(Record {
            seconds,
            objective,
            feasibility,
            iterations: self.visited,
        });
        Solution {
            objective,
            smooth_value,
            penalty_value,
            feasibility,
            status,
            iterations: self.visited,
            sweeps: self.sweeps(),
            updates: self.updates,
            seconds,
            work: self.work,
            history: self.history,
            recession: self.recession,
            x,
        }
    }
}
