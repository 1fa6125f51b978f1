//! Descents by moves.
//!
//! The [candidates](super::candidates) with the largest estimates are tried by solving on the new supports:
//! many together at first, half as many after every failure, and one by one in the end.

use super::candidates::{CandidateMove, ColumnEstimates, Move, State, SupportMover, TRANSFERS};
use super::model::SparsePoint;
use super::rules::Rules;
use crate::numerics;
use crate::problem::Cardinality;

/// Most moves tried one by one before a point counts as stationary.
pub(super) const TRIALS: usize = 24;

/// Part of the missing or surplus entries or rows that is added or dropped at once.
pub(super) const AT_ONCE: usize = 6;

impl SupportMover<'_> {
    /// Returns the point after a move; None if no feasible point is near, or if f is not expected to fall
    /// below the `goal`.
    fn trial(
        &self,
        columns: &[ColumnEstimates],
        point: &SparsePoint,
        change: &Move,
        goal: Option<f64>,
    ) -> Option<SparsePoint> {
        let mut next = point.clone();
        let added = change.adds.iter().map(|add| add.1);
        let columns_of = change.drops.iter().map(|drop| drop.1).chain(added);
        let mut touched: Vec<usize> = columns_of.flat_map(|t| point.group(t)).collect();
        touched.sort_unstable();
        touched.dedup();
        for &(i, t) in &change.adds {
            let first = self.first(columns, (i, t));
            next.parts[t].insert(i, first);
        }
        for &(i, t) in &change.drops {
            next.parts[t].remove(i);
            if next.parts[t].rows.is_empty() {
                return None;
            }
            if let [value] = &mut next.parts[t].values[..] {
                *value = 1.0;
            }
        }
        self.model.optimised(next, &touched, goal, self.work)
    }

    /// Adds entries while the cardinality allows them and they lower f, until the work reaches `spent`.
    pub(crate) fn fill(&self, state: &mut State, spent: f64) {
        let rules = &self.model.rules;
        while !self.is_late() && self.work.spent() < spent {
            let counts = state.point.counts();
            if (0..counts.len()).all(|t| rules.remaining(&counts, t) == 0) {
                return;
            }
            let columns = self.columns(state);
            let mut adds: Vec<(f64, usize, usize)> = (columns.iter().enumerate())
                .filter(|&(t, _)| rules.remaining(&counts, t) > 0)
                .flat_map(|(t, column)| column.adds.iter().map(move |&(gain, j)| (gain, j, t)))
                .collect();
            adds.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.2, a.1).cmp(&(b.2, b.1))));
            let mut many = Move::default();
            let mut after = counts.clone();
            let total = matches!(rules.cardinality, Cardinality::Total(_));
            let spread = if total { rules.remaining(&counts, 0).div_ceil(AT_ONCE) } else { usize::MAX };
            for &(_, j, t) in &adds {
                let most = rules.remaining(&counts, t).div_ceil(AT_ONCE);
                let fits = after[t] - counts[t] < most && many.adds.len() < spread;
                if fits && many.adds.iter().all(|add| add.0 != j) {
                    many.adds.push((j, t));
                    after[t] += 1;
                }
            }
            let single = |&(_, j, t): &(f64, usize, usize)| Move { adds: vec![(j, t)], ..Move::default() };
            let value = state.point.value();
            let least = numerics::GAIN * self.model.scale;
            let better = |change: &Move| {
                let next = self.trial(&columns, &state.point, change, None)?;
                let more = next.counts().iter().sum::<usize>() > counts.iter().sum();
                (more && next.value() < value - least).then_some(next)
            };
            let next = better(&many).or_else(|| adds.iter().take(TRANSFERS).map(single).find_map(|m| better(&m)));
            match next {
                Some(next) => self.replace(state, next),
                None => return,
            }
        }
    }

    /// Drops the entries of smallest loss until the cardinality is satisfied; None if that leaves no feasible
    /// point.
    pub(crate) fn shrunk(&self, point: SparsePoint) -> Option<State> {
        let rules = &self.model.rules;
        let mut state = self.state(point);
        loop {
            let counts = state.point.counts();
            let surplus = |t: usize| match &rules.cardinality {
                Cardinality::Columns(most) => counts[t].saturating_sub(most[t]),
                Cardinality::Total(most) => counts.iter().sum::<usize>().saturating_sub(*most),
            };
            if (0..counts.len()).all(|t| surplus(t) == 0) {
                return Some(state);
            }
            let columns = self.columns(&state);
            let mut drops: Vec<(f64, usize, usize)> = Vec::new();
            for (t, column) in columns.iter().enumerate() {
                let most = surplus(t).div_ceil(AT_ONCE).min(counts[t] - 1);
                drops.extend(column.drops.iter().take(most).map(|&(loss, i)| (loss, i, t)));
            }
            drops.sort_by(|a, b| a.0.total_cmp(&b.0));
            if matches!(rules.cardinality, Cardinality::Total(_)) {
                drops.truncate(surplus(0).div_ceil(AT_ONCE));
            }
            let next = loop {
                let change = Move { drops: drops.iter().map(|&(_, i, t)| (i, t)).collect(), ..Move::default() };
                match self.trial(&columns, &state.point, &change, None) {
                    Some(next) => break next,
                    None if drops.len() <= 1 || self.is_late() => return None,
                    None => drops.truncate(drops.len() / 2),
                }
            };
            self.replace(&mut state, next);
        }
    }

    /// Makes the best moves, at most `width` together, that lower f below `goal`; returns false if none does.
    pub(crate) fn step(&self, state: &mut State, goal: f64, width: &mut usize) -> bool {
        let counts = state.point.counts();
        let mut columns = self.columns(state);
        let moves = self.moves(&mut columns, state);
        let lower = |next: Option<SparsePoint>| next.filter(|next| next.value() < goal);
        let mut found = None;
        while *width > 1 && found.is_none() && !self.is_late() {
            let batch = compatible(&moves, *width, &self.model.rules, &counts);
            if batch.drops.len() > 1 {
                found = lower(self.trial(&columns, &state.point, &batch, Some(goal)));
            }
            if found.is_none() {
                *width /= 2;
            }
        }
        for change in moves.iter().take(TRIALS) {
            if found.is_some() || self.is_late() {
                break;
            }
            let mut single = Move::default();
            change.append_to(&mut single);
            found = lower(self.trial(&columns, &state.point, &single, Some(goal)));
        }
        found.map(|next| self.replace(state, next)).is_some()
    }
}

/// Combines at most `width` of the best moves that have no rows in common, have a positive estimate and
/// together satisfy the cardinality.
fn compatible(moves: &[CandidateMove], width: usize, rules: &Rules, counts: &[usize]) -> Move {
    let mut batch = Move::default();
    let mut combined = 0;
    for change in moves.iter().take_while(|change| change.estimate > 0.0) {
        if combined == width {
            break;
        }
        let mut next = batch.clone();
        if change.append_to(&mut next) && keeps(&next, rules, counts) {
            (batch, combined) = (next, combined + 1);
        }
    }
    batch
}

/// Returns whether a move keeps columns with `counts` nonzeros within the cardinality.
fn keeps(change: &Move, rules: &Rules, counts: &[usize]) -> bool {
    let (mut more, mut fewer) = (vec![0; counts.len()], vec![0; counts.len()]);
    change.adds.iter().for_each(|add| more[add.1] += 1);
    change.drops.iter().for_each(|drop| fewer[drop.1] += 1);
    match rules.cardinality {
        Cardinality::Total(_) => change.adds.len() <= change.drops.len() + rules.remaining(counts, 0),
        Cardinality::Columns(_) => (0..counts.len()).all(|t| more[t] <= fewer[t] + rules.remaining(counts, t)),
    }
}
