//! Rules for the support of X: which entries may be nonzero, and how many.

use ndarray::{Array2, ArrayView1};

use super::pattern::Part;
use crate::error::{Error, Result};
use crate::problem::{Cardinality, Sparsity};
use crate::start::assignment;

/// A [`Sparsity`] checked for n×r matrices.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// n.
    pub(crate) rows: usize,
    pub(crate) cardinality: Cardinality,
    pub(crate) nonnegative: bool,
    /// The entries that are zero, if there are any.
    pub(crate) excluded: Option<Array2<bool>>,
    /// The rows included in each column, ascending.
    pub(crate) included: Vec<Vec<usize>>,
    /// The rows included in as many columns as may have them, ascending.
    full: Vec<usize>,
}

/// Twice the number of values that a rounded cardinality can take between two powers of two.
const DIGITS: usize = 32;

/// Cost of an entry that is not included, in an assignment with gains of at most 1.
const OUTSIDE: f64 = 4.0;

/// Cost of a forbidden entry in the same assignment.
const FORBIDDEN: f64 = 1e9;

impl Rules {
    /// Checks the rules; returns them and a different row for each column, with the largest total `gain`
    /// (r×n, each in 0..=1).
    pub(crate) fn checked(sparsity: &Sparsity, gain: &Array2<f64>) -> Result<(Self, Vec<usize>)> {
        let (r, n) = gain.dim();
        let rules = Self::new(sparsity, n, r)?;
        let own = |t: usize, i: usize| rules.included[t].binary_search(&i).is_ok();
        let cost = Array2::from_shape_fn((r, n), |(t, i)| {
            let full = rules.column_limit(t).is_some_and(|k| rules.included[t].len() >= k);
            match own(t, i) {
                true => -gain[[t, i]],
                false if !rules.admits(i, t) || full => FORBIDDEN,
                false => OUTSIDE * r as f64 - gain[[t, i]],
            }
        });
        let rows = assignment(cost.view(), &|| true).unwrap_or_default();
        if rows.is_empty() || (0..r).any(|t| cost[[t, rows[t]]] >= FORBIDDEN) {
            return Err(Error::invalid(
                "cardinality",
                "leaves no pattern with orthonormal columns: every column needs a row of its own among those that it \
                 may have",
            ));
        }
        if let Cardinality::Total(total) = rules.cardinality {
            let least: usize = (0..r).map(|t| rules.included[t].len() + usize::from(!own(t, rows[t]))).sum();
            if total < least {
                return Err(Error::invalid(
                    "cardinality",
                    format!("must be at least {least} for what is included and r = {r} columns, got {total}"),
                ));
            }
        }
        Ok((rules, rows))
    }

    /// Checks the rules without looking for a feasible pattern.
    pub(crate) fn new(sparsity: &Sparsity, n: usize, r: usize) -> Result<Self> {
        let invalid = |message: String| Err(Error::invalid("cardinality", message));
        match &sparsity.cardinality {
            Cardinality::Total(total) if !(r..=n * r).contains(total) => {
                return invalid(format!("must be between r = {r} and {}, got {total}", n * r));
            }
            Cardinality::Columns(counts) if counts.len() != r => {
                return invalid(format!("must be one number for each of {r} columns, got {}", counts.len()));
            }
            Cardinality::Columns(counts) => {
                if let Some(bad) = counts.iter().find(|&k| !(1..=n).contains(k)) {
                    return invalid(format!("must be between 1 and n = {n} in every column, got {bad}"));
                }
            }
            Cardinality::Total(_) => {}
        }
        let mut excluded = None;
        for &(i, t) in &sparsity.exclude {
            check_entry("exclude", (i, t), (n, r))?;
            excluded.get_or_insert_with(|| Array2::from_elem((n, r), false))[[i, t]] = true;
        }
        let mut rules = Self {
            rows: n,
            cardinality: sparsity.cardinality.clone(),
            nonnegative: sparsity.nonnegative,
            excluded,
            included: vec![Vec::new(); r],
            full: Vec::new(),
        };
        let mut entries = sparsity.include.clone();
        entries.sort_unstable();
        entries.dedup();
        for &(i, t) in &entries {
            check_entry("include", (i, t), (n, r))?;
            if !rules.allows(i, t) {
                return Err(Error::invalid("include", format!("must not hold what exclude holds: ({i}, {t})")));
            }
            rules.included[t].push(i);
        }
        for row in entries.chunk_by(|a, b| a.0 == b.0) {
            let (i, count) = (row[0].0, row.len());
            if !rules.joins(count - 1) {
                return Err(Error::invalid("include", format!("must not hold row {i} {count} times where X ≥ 0")));
            }
            if !rules.joins(count) {
                rules.full.push(i);
            }
        }
        if let Cardinality::Columns(counts) = &sparsity.cardinality
            && let Some(t) = (0..r).find(|&t| rules.included[t].len() > counts[t])
        {
            return Err(Error::invalid(
                "include",
                format!("must hold at most {} rows of column {t}, got {}", counts[t], rules.included[t].len()),
            ));
        }
        Ok(rules)
    }

    /// Returns whether a column may have a row that this number of other columns have. Nonnegative columns that are
    /// orthogonal share no row.
    pub(crate) fn joins(&self, others: usize) -> bool {
        others == 0 || !self.nonnegative
    }

    /// Returns the largest number of entries that the rules for rows allow.
    pub(crate) fn most(&self) -> usize {
        self.rows * (0..self.included.len()).take_while(|&others| self.joins(others)).count()
    }

    /// Returns which rows column t may have beside the other columns of a point.
    pub(crate) fn open(&self, point: &[Part], t: usize) -> Vec<bool> {
        let mut others = vec![0; self.rows];
        for (_, part) in point.iter().enumerate().filter(|&(s, _)| s != t) {
            part.rows.iter().for_each(|&i| others[i] += 1);
        }
        others.iter().enumerate().map(|(i, &others)| self.joins(others) && self.admits(i, t)).collect()
    }

    /// Returns which rows column t may have if it shares none with other columns of a point.
    pub(crate) fn unshared(&self, point: &[Part], t: usize) -> Vec<bool> {
        let mut free: Vec<bool> = (0..self.rows).map(|i| self.admits(i, t)).collect();
        for (s, part) in point.iter().enumerate().filter(|&(s, _)| s != t) {
            // An entry that another column must have is taken also before that column is made.
            part.rows.iter().chain(&self.included[s]).for_each(|&i| free[i] = false);
        }
        free
    }

    /// Returns whether X ≥ 0 or entries of the support are prescribed; the principal axes are then not
    /// feasible.
    pub(crate) fn binds(&self) -> bool {
        self.nonnegative || self.included.iter().any(|rows| !rows.is_empty())
    }

    /// Returns the number of entries of every column that count: nonzeros and included ones.
    pub(crate) fn used(&self, x: &Array2<f64>) -> Vec<usize> {
        (x.columns().into_iter().zip(&self.included).enumerate())
            .map(|(t, (column, included))| {
                let other = |&(i, &v): &(usize, &f64)| v != 0.0 && !self.holds(i, t);
                included.len() + column.iter().enumerate().filter(other).count()
            })
            .collect()
    }

    /// Returns the rules with about the given fraction 1/2^`halvings` of the cardinality, rounded down to
    /// five binary digits; None if entries are included or a column would have no entry.
    pub(crate) fn smaller(&self, halvings: u32) -> Option<Self> {
        self.reduced(|count| {
            let count = count >> halvings;
            count - count % (count.next_power_of_two() / DIGITS).max(1)
        })
    }

    /// Returns the rules with reduced limits; None if entries are included or a column would have no entry.
    pub(crate) fn reduced(&self, reduce: impl Fn(usize) -> usize) -> Option<Self> {
        let cardinality = match &self.cardinality {
            Cardinality::Total(total) => Cardinality::Total(reduce(*total)),
            Cardinality::Columns(counts) => Cardinality::Columns(counts.iter().map(|&count| reduce(count)).collect()),
        };
        let least = match &cardinality {
            Cardinality::Total(total) => *total / self.included.len(),
            Cardinality::Columns(counts) => counts.iter().copied().min().unwrap_or(0),
        };
        let free = self.included.iter().all(Vec::is_empty);
        (free && least > 0).then(|| Self { cardinality, ..self.clone() })
    }

    /// Returns whether a matrix satisfies the cardinality, the sign and the zeros.
    pub(crate) fn keep(&self, x: &Array2<f64>) -> bool {
        let counts = self.used(x);
        let within = match &self.cardinality {
            Cardinality::Total(total) => counts.iter().sum::<usize>() <= *total,
            Cardinality::Columns(most) => counts.iter().zip(most).all(|(count, most)| count <= most),
        };
        let allowed =
            |((i, t), &v): ((usize, usize), &f64)| v == 0.0 || (v > 0.0 || !self.nonnegative) && self.admits(i, t);
        within && x.indexed_iter().all(allowed)
    }

    /// Returns whether entry (i, t) may be nonzero.
    pub(crate) fn allows(&self, i: usize, t: usize) -> bool {
        self.excluded.as_ref().is_none_or(|zero| !zero[[i, t]])
    }

    /// Returns whether row i may be added to column t.
    pub(crate) fn admits(&self, i: usize, t: usize) -> bool {
        self.allows(i, t) && (self.full.binary_search(&i).is_err() || self.holds(i, t))
    }

    /// Returns whether entry (i, t) is fixed to the support.
    pub(crate) fn holds(&self, i: usize, t: usize) -> bool {
        self.included[t].binary_search(&i).is_ok()
    }

    /// Returns what a truncation may keep of the entries of a column: all, or where X ≥ 0 those of the larger sign, as positive
    /// numbers.
    pub(crate) fn kept(&self, column: ArrayView1<'_, f64>) -> impl Fn(f64) -> f64 + use<> {
        let sign = column.iter().map(|v| v * v.abs()).sum::<f64>().signum();
        let nonnegative = self.nonnegative;
        move |v| if nonnegative { (sign * v).max(0.0) } else { v }
    }

    /// Returns the limit of column t, if each column has its own.
    pub(crate) fn column_limit(&self, t: usize) -> Option<usize> {
        match &self.cardinality {
            Cardinality::Total(_) => None,
            Cardinality::Columns(counts) => Some(counts[t]),
        }
    }

    /// Returns the limits of columns of equal `weights` without a linear term, for which nothing but their limits differs;
    /// None for other columns. Such columns can be exchanged.
    pub(crate) fn exchangeable(&self, weights: &[f64], linear: bool) -> Option<&[usize]> {
        let equal = weights.iter().all(|&weight| weight == weights[0]) && !linear;
        let free = self.excluded.is_none() && self.included.iter().all(Vec::is_empty);
        match &self.cardinality {
            Cardinality::Columns(counts) if equal && free => counts.iter().any(|k| *k != counts[0]).then_some(counts),
            _ => None,
        }
    }

    /// Returns the number of entries that column t may still add if the columns have `counts` entries.
    pub(crate) fn remaining(&self, counts: &[usize], t: usize) -> usize {
        match &self.cardinality {
            Cardinality::Total(total) => total.saturating_sub(counts.iter().sum()),
            Cardinality::Columns(most) => most[t].saturating_sub(counts[t]),
        }
    }
}

fn check_entry(name: &'static str, (i, t): (usize, usize), (n, r): (usize, usize)) -> Result<()> {
    if i < n && t < r {
        return Ok(());
    }
    Err(Error::invalid(name, format!("must hold entries of a matrix of shape ({n}, {r}), got ({i}, {t})")))
}
