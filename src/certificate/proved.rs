//! A lower bound on F that a search raises beside its own rounds, until the two values meet.

use super::bound::{Bound, BoundOptions, Restriction, Search, SearchLimits};
use crate::error::Result;
use crate::limits::Clock;
use crate::problem::Problem;
use crate::threads::Threads;

/// A lower bound on F, and the gap at which a point is proved.
pub struct Prover<'a> {
    bound: Search<'a>,
    gap_tol: f64,
    threads: Threads,
    /// How the bound was raised so far.
    raises: Vec<Raise>,
}

/// The work up to which a bound is raised, and F and its magnitude at the point that it shall prove.
pub(crate) type Raise = (f64, f64, f64);

impl<'a> Prover<'a> {
    /// Creates the proof of a point of `problem` whose F less the bound is at most `gap_tol` times the
    /// [magnitude](Problem::magnitude) of F. The bound holds for all X with the given restriction, and does not depend on the
    /// number of threads.
    ///
    /// # Errors
    /// If f is not a quadratic form or [`lower_bound`](super::lower_bound) rejects it, or `gap_tol` is negative or not a
    /// number.
    pub fn new(problem: &Problem<'a>, restriction: &'a Restriction, gap_tol: f64, threads: &Threads) -> Result<Self> {
        BoundOptions { gap_tol, ..BoundOptions::new(0.0, 0.0) }.check()?;
        let bound = Search::new(problem.quadratic()?, problem.components, restriction)?;
        Ok(Self { bound, gap_tol, threads: threads.clone(), raises: Vec::new() })
    }

    /// Returns the bound, with the gap of a point of the given F and magnitude.
    pub(crate) fn finish(self, objective: f64, magnitude: f64) -> Bound {
        let options = self.options(objective, magnitude);
        self.bound.finish(&options)
    }

    /// Returns the options of a bound that proves a point of the given F and magnitude.
    fn options(&self, objective: f64, magnitude: f64) -> BoundOptions {
        BoundOptions { gap_tol: self.gap_tol, ..BoundOptions::new(objective, magnitude) }
    }

    /// Returns the work so far.
    pub(crate) fn work(&self) -> f64 {
        self.bound.work
    }

    /// Returns whether a point of the given F and magnitude is proved.
    pub(crate) fn proves(&self, objective: f64, magnitude: f64) -> bool {
        self.bound.best.value >= self.bound.goal(&self.options(objective, magnitude))
    }

    /// Raises the bound until a point is proved, its work reaches a limit, or the clock expires; `limited`: the solve has a
    /// limit on time or work.
    pub(crate) fn advance(&mut self, (work, objective, magnitude): Raise, limited: bool, clock: &Clock) {
        self.raises.push((work, objective, magnitude));
        let options = self.options(objective, magnitude);
        self.bound.advance(&options, &SearchLimits { clock, threads: &self.threads, work, limited });
    }

    /// Returns how the bound was raised so far; the same again gives the same bound.
    pub(crate) fn raises(&self) -> &[Raise] {
        &self.raises
    }
}

#[cfg(test)]
mod tests;
