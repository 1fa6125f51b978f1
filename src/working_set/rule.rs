//! Rules of one's own.

use std::fmt;
use std::sync::Arc;

use ndarray::ArrayView2;

use super::Scores;

/// The present point as a [`Rule`] sees it.
pub struct View<'a> {
    pub(super) x: ArrayView2<'a, f64>,
    pub(super) size: usize,
    pub(super) scores: &'a mut dyn Scores,
}

impl View<'_> {
    /// Returns X, n×r.
    pub fn x(&self) -> ArrayView2<'_, f64> {
        self.x
    }

    /// Returns a subgradient of F at X, n×r. The first call at a point computes all of its rows.
    pub fn subgradient(&mut self) -> ArrayView2<'_, f64> {
        self.scores.subgradients()
    }

    /// Returns k, the number of rows to choose.
    pub fn size(&self) -> usize {
        self.size
    }
}

/// A rule of one's own, which chooses the k rows that move next: the variant [`Own`](super::WorkingSet::Own) of the
/// rules. Two rules are equal if one is a clone of the other.
///
/// A sweep is n(n−1)/2 visits to pairs. Whatever the rule chooses, a solve that has converged has verified all pairs.
///
/// ```
/// use orthobcd::working_set::{Rule, WorkingSet};
/// use orthobcd::{Options, Problem, Quadratic, Signature, Status, Threads, Unwatched, minimize, start};
/// use orthobcd::penalty::Penalty;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// // Neighbours, one after the other; the first row follows the last one.
/// let next = AtomicUsize::new(0);
/// let rule = Rule::new(move |view| {
///     let n = view.x().nrows();
///     let i = next.fetch_add(1, Ordering::Relaxed) % n;
///     Some(vec![i, (i + 1) % n])
/// });
///
/// let a = start::random(40, 12, 1);
/// let smooth = Quadratic::from_data(a.view())?;
/// let (penalty, signature) = (Penalty::l1(0.01), Signature::stiefel(12));
/// let problem = Problem::new(&smooth, &penalty, &signature, 3)?;
/// let options = Options::default().with_working_set(WorkingSet::Own(rule));
/// let x0 = start::random(12, 3, 0);
/// let solution = minimize(&problem, x0, &options, &Threads::serial(), &mut Unwatched)?;
/// assert_eq!(solution.status, Status::Converged);
/// # Ok::<(), orthobcd::Error>(())
/// ```
#[derive(Clone)]
pub struct Rule(Arc<Choose>);

type Choose = dyn Fn(&mut View<'_>) -> Option<Vec<usize>> + Send + Sync;

impl Rule {
    /// Creates a rule from a function that returns k different rows. If it returns None, or anything but k different
    /// rows of X, the solve ends with [`Status::Interrupted`](crate::Status::Interrupted) and its point so far.
    pub fn new(choose: impl Fn(&mut View<'_>) -> Option<Vec<usize>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(choose))
    }

    /// Writes the next rows, ascending; returns whether there are any.
    pub(super) fn next(&self, mut view: View<'_>, rows: &mut Vec<usize>) -> bool {
        let (n, k) = (view.x.nrows(), view.size);
        *rows = (self.0)(&mut view).unwrap_or_default();
        rows.sort_unstable();
        rows.len() == k && rows.windows(2).all(|two| two[0] < two[1]) && rows[k - 1] < n
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rule")
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Rule {}

#[cfg(test)]
mod tests;
