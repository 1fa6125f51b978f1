//! Products over the nonzero entries of a matrix.

use ndarray::{Array2, Axis};

use crate::linalg::product;

/// Work of a multiply-add over single entries, in multiply-adds of a product of whole matrices.
const SCATTERED: usize = 8;

/// The map Λ → NᵀD, D = W ∘ (NΛ), of symmetric r×r matrices, up to transposition. It uses whole products, or
/// the nonzeros of every row if N and W are so sparse that this costs less.
pub(crate) struct PatternProducts<'x> {
    normals: &'x Array2<f64>,
    weights: &'x Array2<f64>,
    rows: Option<(Nonzeros, Nonzeros)>,
    work: usize,
}

/// The nonzeros of a matrix, row by row.
struct Nonzeros {
    starts: Vec<usize>,
    entries: Vec<(usize, f64)>,
}

impl Nonzeros {
    fn new(x: &Array2<f64>) -> Self {
        let (mut starts, mut entries) = (vec![0], Vec::new());
        for row in x.axis_iter(Axis(0)) {
            let nonzero = row.iter().copied().enumerate().filter(|&(_, v)| v != 0.0);
            entries.extend(nonzero);
            starts.push(entries.len());
        }
        Self { starts, entries }
    }

    fn row(&self, i: usize) -> &[(usize, f64)] {
        &self.entries[self.starts[i]..self.starts[i + 1]]
    }
}

fn nonzeros(row: ndarray::ArrayView1<'_, f64>) -> usize {
    row.iter().filter(|&&v| v != 0.0).count()
}

/// Work of an application besides its products, in multiply-adds of whole matrices per entry of Λ: sums and
/// passes of the conjugate gradients (784 × 100, five entries in a row: 80 of the 140 µs of a step).
const PASSES: usize = 40;

/// Returns the multiply-adds of an application by whole products.
fn whole_work(n: usize, r: usize) -> usize {
    2 * n * r * (r + 2) + PASSES * r * r
}

impl<'x> PatternProducts<'x> {
    /// Creates the map from N and W, n×r.
    pub(crate) fn new(normals: &'x Array2<f64>, weights: &'x Array2<f64>) -> Self {
        let (n, r) = normals.dim();
        let pairs = (normals.axis_iter(Axis(0)).zip(weights.axis_iter(Axis(0))))
            .map(|(normals, weights)| nonzeros(normals) * nonzeros(weights));
        let scattered = SCATTERED * pairs.sum::<usize>();
        let few = scattered < n * r * r;
        Self {
            normals,
            weights,
            rows: few.then(|| (Nonzeros::new(normals), Nonzeros::new(weights))),
            work: if few { 2 * (scattered + n) + PASSES * r * r } else { whole_work(n, r) },
        }
    }

    /// Returns the number of applications that cost as much as `whole` applications by whole products.
    pub(crate) fn affordable(&self, whole: usize) -> usize {
        let (n, r) = self.normals.dim();
        whole * whole_work(n, r) / self.work
    }

    /// Returns the work of an application, in multiply-adds of whole matrices.
    pub(crate) fn work(&self) -> usize {
        self.work
    }

    /// Returns NᵀD or its transpose, r×r, for a symmetric Λ.
    pub(crate) fn apply(&self, lambda: &Array2<f64>) -> Array2<f64> {
        let Some((normals, weights)) = &self.rows else {
            let mut lifted = product(self.normals.view(), lambda.view());
            lifted *= self.weights;
            return product(self.normals.t(), lifted.view());
        };
        let r = lambda.ncols();
        let mut image = Array2::zeros((r, r));
        let (lambda, out) = (lambda.as_standard_layout(), image.as_slice_mut());
        let (Some(lambda), Some(out)) = (lambda.as_slice(), out) else {
            return image;
        };
        for i in 0..self.normals.nrows() {
            for &(k, weight) in weights.row(i) {
                let row = k * r..(k + 1) * r;
                let (lambda, out) = (&lambda[row.clone()], &mut out[row]);
                let lifted: f64 = normals.row(i).iter().map(|&(l, v)| v * lambda[l]).sum();
                for &(l, v) in normals.row(i) {
                    out[l] += v * weight * lifted;
                }
            }
        }
        image
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{square, symmetric};
    use crate::start;

    #[test]
    fn rows_and_whole_products_agree() {
        for (seed, least) in [(0, 0.25), (1, 0.12), (2, 0.0)] {
            let normals = start::random(40, 8, seed).mapv(|v| if v.abs() < least { 0.0 } else { v });
            let weights = normals.mapv(|v| if v == 0.0 { 0.0 } else { 0.5 + v.abs() });
            let lambda = symmetric(&start::random(8, 8, seed));
            let products = PatternProducts::new(&normals, &weights);
            assert_eq!(products.affordable(10) > 10, seed == 0);
            assert!(products.affordable(10) >= 10);
            let mut lifted = normals.dot(&lambda);
            lifted *= &weights;
            let expected = symmetric(&normals.t().dot(&lifted));
            let error = square(&(symmetric(&products.apply(&lambda)) - &expected)).sqrt();
            assert!(error <= 1e-15 * square(&expected).sqrt().max(1.0), "{seed}: {error}");
        }
    }
}
