//! CSDM: gradient steps on the factors of the hyperbolic CS decomposition of R, scaled as by Adagrad.

use std::ops::Range;

use ndarray::{Array1, Array2, s};

use crate::Signature;
use crate::internal::cayley;
use crate::start::HyperbolicCs;

/// Factors of R and the sums of squares of their slopes so far.
pub(super) struct Factors {
    /// U₁, U₂, V₁, V₂.
    pub(super) outer: [Array2<f64>; 4],
    rapidity: Array1<f64>,
    sums: [Array2<f64>; 4],
    sum_rapidity: Array1<f64>,
}

/// Returns the number of floats in the factors and their sums.
pub(super) fn memory_length(p: usize, q: usize) -> usize {
    2 * (2 * (p * p + q * q) + p.min(q))
}

impl Factors {
    /// Returns the factors of R = I, with sums of 0.
    pub(super) fn identity(p: usize, q: usize) -> Self {
        let square = |n| Array2::zeros((n, n));
        Self {
            outer: [p, q, p, q].map(Array2::eye),
            rapidity: Array1::zeros(p.min(q)),
            sums: [p, q, p, q].map(square),
            sum_rapidity: Array1::zeros(p.min(q)),
        }
    }

    /// Returns all numbers, in the order of the memory.
    fn numbers(&mut self) -> impl Iterator<Item = &mut f64> {
        (self.outer.iter_mut().flatten())
            .chain(&mut self.rapidity)
            .chain(self.sums.iter_mut().flatten())
            .chain(&mut self.sum_rapidity)
    }

    fn read(p: usize, q: usize, memory: &Array1<f64>) -> Self {
        let mut factors = Self::identity(p, q);
        for (number, &kept) in factors.numbers().zip(memory) {
            *number = kept;
        }
        factors
    }

    /// Writes all numbers to the memory of a relation.
    pub(super) fn write(&mut self, memory: &mut Array1<f64>) {
        for (kept, &mut number) in memory.iter_mut().zip(self.numbers()) {
            *kept = number;
        }
    }

    /// Returns the slopes of f along the rotations of each outer factor and along the rapidities, `g` the
    /// gradient with the rows and columns of positive sign first.
    fn slopes(&self, g: &Array2<f64>, givens: bool) -> ([Array2<f64>; 4], Array1<f64>) {
        let [u1, u2, v1, v2] = &self.outer;
        let (p, n) = (u1.nrows(), g.nrows());
        let image = diagonal(u1, u2).t().dot(g).dot(&diagonal(v1, v2));
        let (c, s) = (self.rapidity.mapv(f64::cosh), self.rapidity.mapv(f64::sinh));
        let mut middle = Array2::<f64>::eye(n);
        for i in 0..c.len() {
            middle[[i, i]] = c[i];
            middle[[p + i, p + i]] = c[i];
            middle[[i, p + i]] = s[i];
            middle[[p + i, i]] = s[i];
        }
        let skew = |m: Array2<f64>| &m - &m.t();
        let left = skew(image.dot(&middle.t()));
        let right = skew(image.t().dot(&middle));
        let block = |m: &Array2<f64>, rows: Range<usize>| {
            let mut block = m.slice(s![rows.clone(), rows]).to_owned();
            for ((i, j), slope) in block.indexed_iter_mut() {
                if givens && i / 2 != j / 2 {
                    *slope = 0.0;
                }
            }
            block
        };
        let along = Array1::from_shape_fn(c.len(), |i| {
            (image[[i, i]] + image[[p + i, p + i]]) * s[i] + (image[[i, p + i]] + image[[p + i, i]]) * c[i]
        });
        let outer = [block(&left, 0..p), block(&left, p..n), block(&right, 0..p), block(&right, p..n)];
        (outer, along)
    }

    /// Does one step of Adagrad against the slopes.
    fn descend(&mut self, (outer, along): &([Array2<f64>; 4], Array1<f64>), step: f64) {
        let scaled = |slope: f64, sum: f64| match sum > 0.0 {
            true => -step * slope / sum.sqrt(),
            false => 0.0,
        };
        for ((factor, sums), slopes) in self.outer.iter_mut().zip(&mut self.sums).zip(outer) {
            sums.zip_mut_with(slopes, |sum, &slope| *sum += slope * slope);
            let mut turn = slopes.clone();
            turn.zip_mut_with(sums, |slope, &sum| *slope = scaled(*slope, sum));
            *factor = factor.dot(&cayley(turn.view()));
        }
        self.sum_rapidity.zip_mut_with(along, |sum, &slope| *sum += slope * slope);
        for ((rapidity, &slope), &sum) in (self.rapidity.iter_mut().zip(along)).zip(&self.sum_rapidity) {
            *rapidity += scaled(slope, sum);
        }
    }
}

/// Moves the factors in the memory of a relation by one step against the gradient, and returns the new R;
/// None, and no step, if entries of R overflow or the factors do not fit the signature.
pub(super) fn step(
    memory: &mut Array1<f64>,
    gradient: &Array2<f64>,
    signature: &Signature,
    (step, givens): (f64, bool),
) -> Option<Array2<f64>> {
    let (p, q) = signature.counts();
    let order = signature.order();
    let sorted = Array2::from_shape_fn((p + q, p + q), |(i, j)| gradient[[order[i], order[j]]]);
    let mut factors = Factors::read(p, q, memory);
    let slopes = factors.slopes(&sorted, givens);
    factors.descend(&slopes, step);
    let [u1, u2, v1, v2] = factors.outer.clone();
    let composed =
        HyperbolicCs { c: factors.rapidity.mapv(f64::cosh), s: factors.rapidity.mapv(f64::sinh), u1, u2, v1, v2 };
    let moved = composed.compose(signature).ok()?;
    moved.iter().all(|v| v.is_finite()).then(|| {
        factors.write(memory);
        moved
    })
}

/// Returns the matrix with the diagonal blocks a and b.
pub(super) fn diagonal(a: &Array2<f64>, b: &Array2<f64>) -> Array2<f64> {
    let (p, q) = (a.nrows(), b.nrows());
    let mut out = Array2::zeros((p + q, p + q));
    out.slice_mut(s![..p, ..p]).assign(a);
    out.slice_mut(s![p.., p..]).assign(b);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_to_entries_that_overflow_is_not_made() {
        let signature = Signature::new(&[1, 1, -1]).unwrap();
        let mut memory = Array1::zeros(memory_length(2, 1));
        Factors::identity(2, 1).write(&mut memory);
        let gradient = Array2::from_shape_fn((3, 3), |(i, j)| (i + 2 * j) as f64);
        let moved = step(&mut memory, &gradient, &signature, (0.1, false)).unwrap();
        assert!(moved != Array2::<f64>::eye(3));
        let before = memory.clone();
        assert!(step(&mut memory, &gradient, &signature, (1e4, false)).is_none());
        assert_eq!(memory, before);
    }
}
