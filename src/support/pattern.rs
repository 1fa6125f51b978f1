//! Sparsity patterns: sparse columns, choices of rows, and the gain of one more entry.
//!
//! A unit column v with λ = vᵀCv, and a row e outside its support with d = eᵀCe and ρ = eᵀCv, span a 2×2
//! eigenproblem [[λ, ρ], [ρ, d]]. With g = ½(d − λ), its smaller eigenvalue is λ − 2·gain, gain = ½(√(ρ² +
//! g²) − g), which is computed without cancellation as ½ρ²/(√(ρ² + g²) + g). The eigenvector is v + entry·e.
//! Adding an entry to the support of v lowers ½vᵀCv by at least the gain.

use ndarray::{Array2, ArrayView1, ArrayView2};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

/// Cost of an operation outside of matrix products, in multiply-adds of these.
pub(crate) const SCALAR: f64 = 16.0;

/// Probability that a random row is one of those of large gradient or leverage.
const NEAR: f64 = 0.7;

/// Range of the share of the entries or rows that a perturbation keeps.
pub(crate) const KEPT: (f64, f64) = (0.3, 0.9);

/// One column: its support (ascending), its entries there, and its part of f.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) rows: Vec<usize>,
    pub(crate) values: Vec<f64>,
    pub(crate) value: f64,
}

impl Part {
    /// Creates a part from the nonzeros of a column.
    pub(crate) fn of(column: ArrayView1<'_, f64>) -> Self {
        let nonzeros = column.iter().enumerate().filter(|(_, v)| **v != 0.0);
        let (rows, values) = nonzeros.map(|(i, &v)| (i, v)).unzip();
        Self { rows, values, value: 0.0 }
    }

    pub(crate) fn unit(row: usize) -> Self {
        Self { rows: vec![row], values: vec![1.0], value: 0.0 }
    }

    /// Returns the rows of the support with their values.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.rows.iter().copied().zip(self.values.iter().copied())
    }

    /// Returns entry i, if it belongs to the support.
    pub(crate) fn entry(&self, i: usize) -> Option<f64> {
        self.rows.binary_search(&i).ok().map(|a| self.values[a])
    }

    pub(crate) fn insert(&mut self, i: usize, value: f64) {
        if let Err(a) = self.rows.binary_search(&i) {
            self.rows.insert(a, i);
            self.values.insert(a, value);
        }
    }

    pub(crate) fn remove(&mut self, i: usize) {
        if let Ok(a) = self.rows.binary_search(&i) {
            self.rows.remove(a);
            self.values.remove(a);
        }
    }

    /// Returns the inner product with a dense vector.
    pub(crate) fn along(&self, y: &[f64]) -> f64 {
        self.entries().map(|(i, v)| v * y[i]).sum()
    }

    /// Scales the column to unit norm; returns whether it is not zero.
    pub(crate) fn normalise(&mut self) -> bool {
        let norm = self.values.iter().map(|v| v * v).sum::<f64>().sqrt();
        if norm > 0.0 {
            self.values.iter_mut().for_each(|v| *v /= norm);
        }
        norm > 0.0
    }
}

/// Returns the matrix of sparse columns, n×r.
pub(crate) fn dense(n: usize, parts: &[Part]) -> Array2<f64> {
    let mut x = Array2::zeros((n, parts.len()));
    for (t, part) in parts.iter().enumerate() {
        part.entries().for_each(|(i, v)| x[[i, t]] = v);
    }
    x
}

/// Returns the n×r matrix with these rows, all others being zero.
pub(crate) fn on_rows(n: usize, rows: &[usize], values: ArrayView2<'_, f64>) -> Array2<f64> {
    let mut x = Array2::zeros((n, values.ncols()));
    for (&i, row) in rows.iter().zip(values.outer_iter()) {
        x.row_mut(i).assign(&row);
    }
    x
}

/// Returns a random row, more often one of those `near`.
pub(crate) fn random_row(random: &mut impl Rng, near: &[usize], n: usize) -> usize {
    match random.random_bool(NEAR) && !near.is_empty() {
        true => near[random.random_range(0..near.len())],
        false => random.random_range(0..n),
    }
}

/// Returns a random number of swaps for a perturbation of `count` entries or rows.
pub(crate) fn swaps(random: &mut impl Rng, count: usize) -> usize {
    random.random_range(2..=(count / 4).clamp(2, 12))
}

/// Returns the indices of the nonzero rows.
pub(crate) fn nonzero_rows(x: ArrayView2<'_, f64>) -> Vec<usize> {
    let rows = x.outer_iter().enumerate();
    rows.filter(|(_, row)| row.iter().any(|&v| v != 0.0)).map(|(i, _)| i).collect()
}

/// Returns the squared norms of the rows.
pub(crate) fn row_squares(x: &Array2<f64>) -> Vec<f64> {
    x.outer_iter().map(|row| row.dot(&row)).collect()
}

/// Returns the `count` rows of largest norm, largest first.
pub(crate) fn largest_rows(x: &Array2<f64>, count: usize) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..x.nrows()).collect();
    keep_largest(&mut rows, &row_squares(x), count);
    rows
}

/// Keeps the `most` rows of largest weight, largest first.
pub(crate) fn keep_largest(rows: &mut Vec<usize>, weights: &[f64], most: usize) {
    let larger = |&a: &usize, &b: &usize| weights[b].total_cmp(&weights[a]).then(a.cmp(&b));
    if most < rows.len() {
        rows.select_nth_unstable_by(most, larger);
        rows.truncate(most);
    }
    rows.sort_unstable_by(larger);
}

/// Returns the `most` indices below n of largest positive size with their sizes, largest first; ties in their order.
/// `size(i, least)` may return anything that is not above `least` for a size that is not above it.
pub(crate) fn largest(n: usize, most: usize, size: impl Fn(usize, f64) -> f64) -> Vec<(f64, usize)> {
    let (mut kept, mut least): (Vec<(f64, usize)>, f64) = (Vec::new(), 0.0);
    let capacity = 2 * most + 64;
    for i in 0..n {
        let size = size(i, least);
        if size > least {
            kept.push((size, i));
            if kept.len() == capacity {
                keep_best(&mut kept, most);
                least = kept.last().map_or(f64::INFINITY, |last| last.0);
            }
        }
    }
    keep_best(&mut kept, most);
    kept
}

/// Keeps the `most` entries of largest value, largest first; ties in the order of their keys.
pub(crate) fn keep_best<K: Ord>(list: &mut Vec<(f64, K)>, most: usize) {
    let better = |a: &(f64, K), b: &(f64, K)| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1));
    if most < list.len() {
        list.select_nth_unstable_by(most, better);
        list.truncate(most);
    }
    list.sort_unstable_by(better);
}

/// Returns λ of a unit column after its entry v is dropped and the rest is normalised: `image` is (Cv) there,
/// and d the diagonal entry.
pub(crate) fn without(lambda: f64, v: f64, image: f64, d: f64) -> f64 {
    (lambda - 2.0 * v * image + d * v * v) / (1.0 - v * v).max(f64::EPSILON)
}

/// Returns the decrease of the minimum of ½vᵀCv if e is added.
pub(crate) fn gain(lambda: f64, rho: f64, d: f64) -> f64 {
    let half = 0.5 * (d - lambda);
    let square = rho * rho;
    let root = (square + half * half).sqrt();
    if half > 0.0 { 0.5 * square / (root + half) } else { 0.5 * (root - half) }
}

/// Returns the entry of e, relative to v, at the minimum after e is added.
pub(crate) fn entry(lambda: f64, rho: f64, d: f64) -> f64 {
    -rho / (2.0 * gain(lambda, rho, d) + d - lambda)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::symmetric_eigen;
    use ndarray::array;

    #[test]
    fn the_gain_and_the_entry_are_those_of_the_smaller_eigenvalue() {
        for (lambda, rho, d) in [(-2.0, 0.7, 1.0), (1.0, -0.3, -2.0), (0.5, 1e-4, 0.5)] {
            let matrix = array![[lambda, rho], [rho, d]];
            let (values, vectors) = symmetric_eigen(matrix.view());
            let lowest = lambda - 2.0 * gain(lambda, rho, d);
            assert!((lowest - values[0]).abs() < 1e-14);
            let expected = vectors[[1, 0]] / vectors[[0, 0]];
            let found = entry(lambda, rho, d);
            assert!((found - expected).abs() < 1e-10 * expected.abs());
        }
    }

    /// Where d is far above λ, the gain is about ½ρ²/(d − λ).
    #[test]
    fn a_small_gain_keeps_its_digits() {
        for rho in [1e-3, 1e-6, 1e-9, 1e-12] {
            let expected = 0.5 * rho * rho / 3.0 * (1.0 - rho * rho / 9.0);
            assert!((gain(-2.0, rho, 1.0) - expected).abs() < 1e-11 * expected);
        }
        assert_eq!(gain(1.0, 0.0, 1.0), 0.0);
    }
}
