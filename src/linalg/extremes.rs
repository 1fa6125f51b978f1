//! A few eigenvectors of a dense symmetric matrix: tridiagonal form, bisection, inverse iteration.
//!
//! A = QTQᵀ with a tridiagonal T takes 4n³/3 flops, half of all those of a decomposition with small constants. The
//! wanted eigenvalues of T come from Sturm counts (Golub and Van Loan, Matrix Computations, section 8.4), the
//! eigenvectors from inverse iteration with orthogonalisation where eigenvalues are close, as in LAPACK's `dstein`.

use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::evd::tridiag::{tridiag_in_place, tridiag_in_place_scratch};
use faer::linalg::householder;
use faer::linalg::qr::no_pivoting::factor::recommended_block_size;
use faer::{Conj, Mat, MatRef, Par, Spec};
use ndarray::{Array1, Array2, ArrayView2};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{at_unit_size, from_faer, product, square, symmetric_eigen};
use crate::simd::LANES;

/// Part of the eigenvectors up to which they are computed one by one.
const FEW: f64 = 0.25;

/// Least order of a matrix whose eigenvectors are computed one by one.
const LEAST: usize = 100;

/// Distance of eigenvalues, relative to ‖T‖, up to which the vectors of inverse iteration are orthogonalised.
const CLOSE: f64 = 1e-3;

/// Steps of inverse iteration; each divides the other eigenvectors by their distance over the rounding of T.
const ITERATIONS: usize = 3;

/// Largest residual ‖AX − XΛ‖_F of the vectors, relative to ‖A‖_F; else all eigenvectors are computed.
const RESIDUAL: f64 = 1e-11;

/// Returns eigenvectors for the `low` smallest eigenvalues, ascending, then for the `high` largest ones, descending,
/// and these eigenvalues; NaN as [`symmetric_eigen`].
pub(crate) fn extreme_eigen(a: ArrayView2<'_, f64>, (low, high): (usize, usize)) -> (Array1<f64>, Array2<f64>) {
    let n = a.nrows();
    let chosen: Vec<usize> = (0..low).chain((n - high..n).rev()).collect();
    let finite = a.iter().all(|v| v.is_finite());
    if n >= LEAST && chosen.len() as f64 <= FEW * n as f64 && finite {
        let ((values, vectors), size) = at_unit_size(a, |a| few(a, &chosen));
        let residual = product(a, vectors.view()) - &vectors * &(&values * size);
        let whole = a.iter().map(|v| v * v).sum::<f64>();
        let gram = product(vectors.t(), vectors.view()) - Array2::<f64>::eye(chosen.len());
        if square(&residual) <= RESIDUAL * RESIDUAL * whole && square(&gram) <= RESIDUAL * RESIDUAL {
            return (values * size, vectors);
        }
    }
    let (values, vectors) = symmetric_eigen(a);
    let values = Array1::from_iter(chosen.iter().map(|&k| values[k]));
    (values, vectors.select(ndarray::Axis(1), &chosen))
}

/// Returns the eigenvalues of the given ranks and their vectors.
fn few(a: MatRef<'_, f64>, ranks: &[usize]) -> (Array1<f64>, Array2<f64>) {
    let n = a.nrows();
    let block = recommended_block_size::<f64>(n, n);
    let mut t = Mat::<f64>::zeros(n, n);
    t.copy_from_triangular_lower(a);
    let mut reflections = Mat::<f64>::zeros(block, n - 1);
    let mut memory = MemBuffer::new(StackReq::any_of(&[
        tridiag_in_place_scratch::<f64>(n, Par::Seq, Spec::default()),
        householder::apply_block_householder_sequence_on_the_left_in_place_scratch::<f64>(n - 1, block, ranks.len()),
    ]));
    let stack = MemStack::new(&mut memory);
    tridiag_in_place(t.as_mut(), reflections.as_mut(), Par::Seq, stack, Spec::default());
    let tridiagonal = Tridiagonal {
        diagonal: (0..n).map(|i| t[(i, i)]).collect(),
        beside: (0..n - 1).map(|i| t[(i + 1, i)]).collect(),
    };
    let values = tridiagonal.eigenvalues(ranks);
    let mut vectors = tridiagonal.eigenvectors(&values);
    householder::apply_block_householder_sequence_on_the_left_in_place_with_conj(
        t.as_ref().submatrix(1, 0, n - 1, n - 1),
        reflections.as_ref(),
        Conj::No,
        vectors.as_mut().subrows_mut(1, n - 1),
        Par::Seq,
        stack,
    );
    (values.into(), from_faer(vectors.as_ref()))
}

/// A symmetric tridiagonal matrix T.
struct Tridiagonal {
    diagonal: Vec<f64>,
    beside: Vec<f64>,
}

impl Tridiagonal {
    /// Returns the bounds of Gershgorin's discs.
    fn bounds(&self) -> (f64, f64) {
        let n = self.diagonal.len();
        let reach = |i: usize| {
            let before = if i > 0 { self.beside[i - 1].abs() } else { 0.0 };
            let after = if i + 1 < n { self.beside[i].abs() } else { 0.0 };
            before + after
        };
        let low = (0..n).fold(f64::INFINITY, |m, i| m.min(self.diagonal[i] - reach(i)));
        let high = (0..n).fold(f64::NEG_INFINITY, |m, i| m.max(self.diagonal[i] + reach(i)));
        (low, high)
    }

    /// Returns the number of eigenvalues below each shift.
    fn counts(&self, shifts: &[f64; LANES], squares: &[f64], tiny: f64) -> [usize; LANES] {
        let mut counts = [0.0; LANES];
        let mut pivots = [1.0; LANES];
        for (&d, &square) in self.diagonal.iter().zip(squares) {
            for lane in 0..LANES {
                let pivot = d - shifts[lane] - square / pivots[lane];
                let pivot = if pivot.abs() < tiny { -tiny } else { pivot };
                counts[lane] += if pivot < 0.0 { 1.0 } else { 0.0 };
                pivots[lane] = pivot;
            }
        }
        counts.map(|count| count as usize)
    }

    /// Returns the eigenvalues of the given ranks, in ascending order from 0, by bisection.
    fn eigenvalues(&self, ranks: &[usize]) -> Vec<f64> {
        let (low, high) = self.bounds();
        let size = low.abs().max(high.abs());
        let tiny = f64::MIN_POSITIVE.max(f64::EPSILON * f64::EPSILON * size);
        // The square before the first row is 0.
        let squares: Vec<f64> = std::iter::once(0.0).chain(self.beside.iter().map(|v| v * v)).collect();
        let margin = f64::EPSILON * size * self.diagonal.len() as f64;
        let mut values = Vec::with_capacity(ranks.len());
        for ranks in ranks.chunks(LANES) {
            let (mut from, mut to) = ([low - margin; LANES], [high + margin; LANES]);
            while (0..LANES).any(|k| to[k] - from[k] > f64::EPSILON * size) {
                let middle: [f64; LANES] = std::array::from_fn(|k| 0.5 * (from[k] + to[k]));
                if (0..LANES).all(|k| middle[k] <= from[k] || middle[k] >= to[k]) {
                    break;
                }
                let counts = self.counts(&middle, &squares, tiny);
                for k in 0..LANES {
                    let rank = ranks[k.min(ranks.len() - 1)];
                    if counts[k] > rank {
                        to[k] = middle[k];
                    } else {
                        from[k] = middle[k];
                    }
                }
            }
            values.extend((0..ranks.len()).map(|k| 0.5 * (from[k] + to[k])));
        }
        values
    }

    /// Returns eigenvectors for the given eigenvalues.
    fn eigenvectors(&self, values: &[f64]) -> Mat<f64> {
        let n = self.diagonal.len();
        let (low, high) = self.bounds();
        let size = low.abs().max(high.abs()).max(f64::MIN_POSITIVE);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0x696e_7665);
        let mut vectors = Mat::<f64>::zeros(n, values.len());
        for (k, &value) in values.iter().enumerate() {
            // Shifts of equal eigenvalues differ by rounding, so that the vectors do.
            let equal = (values[..k].iter()).filter(|v| (*v - value).abs() <= f64::EPSILON * size);
            let shift = value + 4.0 * f64::EPSILON * size * equal.count() as f64;
            let factor = Factor::new(self, shift, f64::EPSILON * size);
            let close: Vec<usize> = (0..k).filter(|&other| (values[other] - value).abs() <= CLOSE * size).collect();
            let mut x: Vec<f64> = (0..n).map(|_| rng.random_range(-1.0..1.0)).collect();
            for _ in 0..ITERATIONS {
                factor.solve(&mut x);
                let largest = x.iter().fold(0.0f64, |m, v| m.max(v.abs()));
                x.iter_mut().for_each(|v| *v /= largest);
                for _ in 0..2 {
                    for &other in &close {
                        let y = vectors.col_as_slice(other);
                        let overlap = super::dot(&x, y);
                        x.iter_mut().zip(y).for_each(|(x, y)| *x -= overlap * y);
                    }
                }
                let length = super::dot(&x, &x).sqrt();
                x.iter_mut().for_each(|v| *v /= length);
            }
            vectors.col_as_slice_mut(k).copy_from_slice(&x);
        }
        vectors
    }
}

/// LU factors of T − λI with row exchanges: U has two diagonals above the main one.
struct Factor {
    /// Rows of U: the entries at and right of the diagonal.
    upper: Vec<[f64; 3]>,
    /// Multiplier of each row, and whether it was exchanged with the next one.
    lower: Vec<(f64, bool)>,
}

impl Factor {
    /// Factors T − λI; zero pivots are replaced by `tiny`.
    fn new(t: &Tridiagonal, shift: f64, tiny: f64) -> Self {
        let n = t.diagonal.len();
        let (mut upper, mut lower) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let at = |i: usize| t.beside.get(i).copied().unwrap_or(0.0);
        let mut row = [t.diagonal[0] - shift, at(0), 0.0];
        for i in 0..n {
            if i + 1 == n {
                upper.push([nonzero(row[0], tiny), 0.0, 0.0]);
                break;
            }
            let next = [at(i), t.diagonal[i + 1] - shift, at(i + 1)];
            let exchanged = next[0].abs() > row[0].abs();
            let (pivot, other) = if exchanged { (next, row) } else { (row, next) };
            let pivot = [nonzero(pivot[0], tiny), pivot[1], pivot[2]];
            let multiplier = other[0] / pivot[0];
            upper.push(pivot);
            lower.push((multiplier, exchanged));
            row = [other[1] - multiplier * pivot[1], other[2] - multiplier * pivot[2], 0.0];
        }
        Self { upper, lower }
    }

    /// Overwrites x with (T − λI)⁻¹x.
    fn solve(&self, x: &mut [f64]) {
        let n = x.len();
        for (i, &(multiplier, exchanged)) in self.lower.iter().enumerate() {
            if exchanged {
                x.swap(i, i + 1);
            }
            x[i + 1] -= multiplier * x[i];
        }
        let (mut after, mut second) = (0.0, 0.0);
        for i in (0..n).rev() {
            let [pivot, one, two] = self.upper[i];
            let value = (x[i] - one * after - two * second) / pivot;
            x[i] = value;
            (second, after) = (after, value);
        }
    }
}

fn nonzero(v: f64, tiny: f64) -> f64 {
    match v.abs() < tiny {
        true => tiny,
        false => v,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::symmetric_eigen;
    use crate::start::random;

    /// Spectra with gaps, clusters, equal eigenvalues, and matrices that are diagonal or of low rank.
    fn matrices(n: usize) -> Vec<Array2<f64>> {
        let q = random(n, n, 1);
        let with = |value: &dyn Fn(usize) -> f64| {
            let scaled = &q * &Array1::from_shape_fn(n, value);
            let c = scaled.dot(&q.t());
            (&c + &c.t()) * 0.5
        };
        vec![
            with(&|k| k as f64),
            with(&|k| 0.9f64.powi(k as i32)),
            with(&|k| if k < 12 { -1.0 } else { 1.0 + k as f64 * 1e-12 }),
            with(&|k| f64::from(k < 7)),
            Array2::from_diag(&Array1::from_shape_fn(n, |k| (k % 5) as f64)),
            Array2::zeros((n, n)),
            Array2::eye(n) * 1e80,
        ]
    }

    #[test]
    fn a_few_eigenvectors_are_those_of_the_decomposition() {
        for n in [100, 101, 160] {
            for (case, c) in matrices(n).into_iter().enumerate() {
                let (all, _) = symmetric_eigen(c.view());
                let size = all[0].abs().max(all[n - 1].abs());
                for (low, high) in [(1, 0), (9, 0), (0, 9), (7, 8), (20, 5)] {
                    let (values, x) = extreme_eigen(c.view(), (low, high));
                    let ranks = (0..low).chain((n - high..n).rev());
                    for (found, rank) in values.iter().zip(ranks) {
                        assert!((found - all[rank]).abs() <= 1e-13 * size, "{case} {n} {rank}");
                    }
                    let residual = c.dot(&x) - &x * &values;
                    assert!(square(&residual).sqrt() <= 1e-12 * size * n as f64, "{case} {n}");
                    let gram = x.t().dot(&x) - Array2::<f64>::eye(low + high);
                    assert!(square(&gram).sqrt() <= 1e-11, "{case} {n}");
                }
            }
        }
    }
}
