//! Blocks: groups of columns on common rows, each with the principal axes on its rows.
//!
//! If supports must overlap, single entries cannot be added: two columns that share one row are not
//! orthogonal. Blocks stay feasible if two of them take the rows of both. The best X on a block of a rows and
//! p columns has the p lowest eigenvectors of C there, with `a·p − p(p−1)/2` nonzeros after a rotation.

use ndarray::{Array1, Array2, Axis, s};

use super::model::{ColumnModel, SparsePoint};
use super::rules::Rules;
use crate::limits::TaskWork;
use crate::linalg::{orthonormal_factor, symmetric_eigen};
use crate::objective::eigen_work;
use crate::problem::Cardinality;

/// Most rows of C that are formed to merge blocks.
const FORMED: usize = 1024;

/// Rows, columns and contribution to f of a block.
struct Block {
    rows: Vec<usize>,
    columns: Vec<usize>,
    value: f64,
}

impl Block {
    fn entries(&self) -> usize {
        let width = self.columns.len();
        self.rows.len() * width - width * (width - 1) / 2
    }
}

/// Two blocks that may be merged, the result, its additional nonzeros, and the decrease of f per nonzero.
struct Merge {
    pair: (usize, usize),
    merged: Block,
    more: usize,
    rate: f64,
}

/// The rules, and C on the rows in use; `places` maps rows to indices of this C.
struct Merger<'a> {
    rules: &'a Rules,
    c: Array2<f64>,
    places: Vec<usize>,
    work: &'a TaskWork<'a>,
}

impl Merger<'_> {
    /// Returns the eigenvalues and eigenvectors of C on some rows, ascending.
    fn axes(&self, rows: &[usize]) -> (Array1<f64>, Array2<f64>) {
        self.work.spend(eigen_work(rows.len()));
        let own: Vec<usize> = rows.iter().map(|&i| self.places[i]).collect();
        symmetric_eigen(self.c.select(Axis(0), &own).select(Axis(1), &own).view())
    }

    fn block(&self, rows: Vec<usize>, columns: Vec<usize>) -> Block {
        let values = self.axes(&rows).0;
        Block { value: 0.5 * values.iter().take(columns.len()).sum::<f64>(), rows, columns }
    }

    /// Returns the merge of blocks `first` and `second`; None if the rules do not admit it.
    fn merge(&self, blocks: &[Option<Block>], first: usize, second: usize) -> Option<Merge> {
        let (a, b) = (blocks[first].as_ref()?, blocks[second].as_ref()?);
        let rows = [&a.rows[..], &b.rows[..]].concat();
        let columns = [&a.columns[..], &b.columns[..]].concat();
        let admits = |&t: &usize| rows.iter().all(|&i| self.rules.admits(i, t));
        if !columns.iter().all(admits) || !self.holds(rows.len(), &columns) {
            return None;
        }
        let merged = self.block(rows, columns);
        let more = merged.entries() - a.entries() - b.entries();
        let rate = (a.value + b.value - merged.value) / more as f64;
        (rate > 0.0).then_some(Merge { pair: (first, second), merged, more, rate })
    }

    /// Returns whether the limits of single columns admit a block of this number of rows.
    fn holds(&self, rows: usize, columns: &[usize]) -> bool {
        match &self.rules.cardinality {
            Cardinality::Total(_) => true,
            Cardinality::Columns(_) => rows_within(self.rules, &ordered(self.rules, columns), true) >= rows,
        }
    }
}

/// Returns the rows of some columns together, ascending.
fn union(point: &SparsePoint, columns: &[usize]) -> Vec<usize> {
    let rows = columns.iter().flat_map(|&t| point.parts[t].rows.clone());
    let mut rows: Vec<usize> = rows.collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// Merges blocks while the cardinality allows it, beginning with groups of columns of a point that share
/// rows. The merge with the largest decrease of f per nonzero comes first. Returns X with the principal axes
/// of every block. None if there are rules for single entries, f ≠ ½ tr(XᵀCX), C would exceed [`FORMED`]
/// rows, or the task expires before all pairs of the first blocks are compared.
pub(crate) fn merged(model: &ColumnModel<'_>, point: &SparsePoint, work: &TaskWork<'_>) -> Option<Array2<f64>> {
    let (rules, n) = (&model.rules, model.order());
    if rules.binds() || !model.form.is_trace_form() {
        return None;
    }
    let all: Vec<usize> = (0..point.parts.len()).collect();
    let used = union(point, &all);
    if used.len() > FORMED {
        return None;
    }
    let mut places = vec![0; n];
    used.iter().enumerate().for_each(|(place, &i)| places[i] = place);
    let c = model.form.principal(&used, &|| !work.expired())?;
    let merger = Merger { rules, c, places, work };
    let mut blocks: Vec<Option<Block>> = Vec::new();
    for t in 0..point.parts.len() {
        let columns = point.group(t);
        if columns[0] == t {
            let rows = union(point, &columns);
            if !merger.holds(rows.len(), &columns) {
                return None;
            }
            blocks.push(Some(merger.block(rows, columns)));
        }
    }
    let entries = |block: &Option<Block>| block.as_ref().map_or(0, Block::entries);
    let mut total: usize = blocks.iter().map(entries).sum();
    let most = match rules.cardinality {
        Cardinality::Total(most) => most,
        Cardinality::Columns(_) => usize::MAX,
    };
    let mut merges: Vec<Merge> = Vec::new();
    for second in 0..blocks.len() {
        merges.extend((0..second).filter_map(|first| merger.merge(&blocks, first, second)));
        if work.expired() {
            return None;
        }
    }
    while !work.expired() {
        let fitting = (0..merges.len()).filter(|&k| total + merges[k].more <= most);
        let Some(best) = fitting.max_by(|&a, &b| merges[a].rate.total_cmp(&merges[b].rate)) else {
            break;
        };
        let Merge { pair, merged, more, .. } = merges.swap_remove(best);
        total += more;
        (blocks[pair.0], blocks[pair.1]) = (None, None);
        merges.retain(|merge| {
            let gone = |k: usize| k == pair.0 || k == pair.1;
            !gone(merge.pair.0) && !gone(merge.pair.1)
        });
        blocks.push(Some(merged));
        let last = blocks.len() - 1;
        merges.extend((0..last).filter_map(|first| merger.merge(&blocks, first, last)));
    }
    let mut x = Array2::zeros((n, point.parts.len()));
    for block in blocks.iter().flatten() {
        let columns = ordered(rules, &block.columns);
        let axes = merger.axes(&block.rows).1;
        let axes = triangular(&axes.slice(s![.., ..columns.len()]).to_owned());
        for (&i, row) in block.rows.iter().zip(axes.outer_iter()) {
            columns.iter().zip(row).for_each(|(&t, &v)| x[[i, t]] = v);
        }
    }
    rules.keep(&x).then_some(x)
}

/// Returns columns by descending limit.
pub(super) fn ordered(rules: &Rules, columns: &[usize]) -> Vec<usize> {
    let mut order = columns.to_vec();
    if let Cardinality::Columns(counts) = &rules.cardinality {
        order.sort_by(|&s, &t| counts[t].cmp(&counts[s]).then(s.cmp(&t)));
    }
    order
}

/// Returns all columns by descending limit.
pub(super) fn columns_by_count(rules: &Rules, r: usize) -> Vec<usize> {
    ordered(rules, &(0..r).collect::<Vec<_>>())
}

/// Returns the largest number of dense rows of X; with `free`, after a rotation that makes entries zero.
pub(super) fn rows_within(rules: &Rules, order: &[usize], free: bool) -> usize {
    let r = order.len();
    let zeros = usize::from(free);
    match &rules.cardinality {
        Cardinality::Total(total) => (total + zeros * (r * (r - 1) / 2)) / r,
        Cardinality::Columns(counts) => {
            (order.iter().enumerate()).map(|(place, &t)| counts[t] + zeros * place).min().unwrap_or(0)
        }
    }
}

/// Returns a basis of the same span whose column t has t zeros.
pub(super) fn triangular(axes: &Array2<f64>) -> Array2<f64> {
    let r = axes.ncols();
    let top = axes.slice(s![..r, ..]);
    // The top rows are LQᵀ, with Q the orthonormal factor of their transpose.
    let mut turned = axes.dot(&orthonormal_factor(top.t()));
    for t in 0..r {
        for i in 0..t {
            turned[[i, t]] = 0.0;
        }
    }
    turned
}
