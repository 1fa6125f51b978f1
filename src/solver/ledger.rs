//! Values, counts and history of a solve.

use std::time::{Duration, Instant};

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::outcome::{Record, Solution, Status};
use crate::limits::WORK_UNIT;
use crate::pair::Recession;

/// Least passes of a segment. A solve is resumed at the beginning of a segment, where movers begin anew and find their
/// step sizes again. Segments are long, so that this costs little; in unit tests they are short.
const SEGMENT_PASSES: u64 = if cfg!(test) { 4 } else { 300 };

/// Least work of a segment.
const SEGMENT_WORK: f64 = if cfg!(test) { 1.0 } else { 10.0 * WORK_UNIT };

/// F, the counts, and the history of a solve.
#[derive(Debug)]
pub struct Ledger {
    pub(crate) objective: f64,
    pub(super) magnitude: f64,
    /// The rounding of the constant part of f.
    rounding: f64,
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
    /// Number of the segment, the work at its beginning, and the passes that it has made.
    pub(super) segment: u64,
    segment_work: f64,
    segment_passes: u64,
    pub(crate) recession: Option<Recession>,
    pub(crate) history: Vec<Record>,
    pub(super) started: Instant,
    /// Duration of an evaluation of everything at a point; 0 if it is not known.
    pub(super) evaluation: Duration,
}

/// The counts and the history of a solve at the beginning of a segment.
#[derive(Serialize, Deserialize)]
pub(super) struct Counts {
    segment: u64,
    visited: u64,
    updates: u64,
    credit: u64,
    work: f64,
    seconds: f64,
    history: Vec<Record>,
}

impl Ledger {
    /// The ledger of a solve that begins now, with sweeps of `sweep` pairs.
    pub(crate) fn new(sweep: u64, tol: f64) -> Self {
        Self {
            objective: f64::INFINITY,
            magnitude: 0.0,
            rounding: 0.0,
            tol,
            sweep,
            visited: 0,
            updates: 0,
            credit: 0,
            work: 0.0,
            gained: 0.0,
            began: (0, 0),
            segment: 0,
            segment_work: 0.0,
            segment_passes: 0,
            recession: None,
            history: Vec::new(),
            started: Instant::now(),
            evaluation: Duration::ZERO,
        }
    }

    /// F at the point.
    pub fn objective(&self) -> f64 {
        self.objective
    }

    /// The decrease that counts as zero: `tol` times the [magnitude](crate::Problem::magnitude) of F, with
    /// `tol` at least the rounding of F, and at least the rounding of the [constant part](crate::Problem::constant) of f.
    pub fn threshold(&self) -> f64 {
        (self.tol.max(f64::EPSILON) * self.magnitude).max(self.rounding)
    }

    /// Takes note of the size of F and of the constant part of f.
    pub(super) fn resize(&mut self, magnitude: f64, constant: f64) {
        self.magnitude = magnitude;
        self.rounding = f64::EPSILON * constant.abs();
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
        self.segment_passes += 1;
        (-std::mem::take(&mut self.gained), moved)
    }

    /// Returns whether a segment ends with the pass that has ended.
    pub(super) fn ends_segment(&self) -> bool {
        self.segment_passes >= SEGMENT_PASSES && self.work - self.segment_work >= SEGMENT_WORK
    }

    /// Begins the next segment, as if the solve began at its point.
    pub(super) fn begin_segment(&mut self) {
        self.segment += 1;
        self.segment_work = self.work;
        self.segment_passes = 0;
    }

    /// Returns the counts from which a solve resumes at the beginning of this segment.
    pub(super) fn counts(&self) -> Counts {
        Counts {
            segment: self.segment,
            visited: self.visited,
            updates: self.updates,
            credit: self.credit,
            work: self.work,
            seconds: self.seconds(),
            history: self.history.clone(),
        }
    }

    /// Continues from the beginning of a segment.
    pub(super) fn resume(&mut self, counts: Counts) {
        let earlier = Duration::try_from_secs_f64(counts.seconds).unwrap_or_default();
        self.started = (self.started.checked_sub(earlier)).unwrap_or(self.started);
        self.segment = counts.segment;
        (self.visited, self.updates, self.credit) = (counts.visited, counts.updates, counts.credit);
        (self.work, self.segment_work) = (counts.work, counts.work);
        self.began = (self.visited + self.credit, self.updates);
        self.history = counts.history;
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
        if self.history.len() > 1 && (self.history.last()).is_some_and(|r| r.iterations == self.visited) {
            self.history.pop();
        }
        // Tracked values agree with fresh ones to rounding. Values below the final one are raised to it, so
        // that the history is nonincreasing and ends there.
        for record in &mut self.history {
            record.objective = record.objective.max(objective);
        }
        self.history.push(Record { seconds, objective, feasibility, iterations: self.visited });
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

#[cfg(test)]
mod tests;
