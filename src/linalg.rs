//! Dense factorizations, from `faer`, in `ndarray` terms; and the few matrix products we need.

use faer::linalg::matmul::matmul;
use faer::linalg::solvers::{DenseSolveCore, Llt, PartialPivLu, Solve};
use faer::{Accum, Mat, MatMut, MatRef, Par};
use ndarray::{Array1, Array2, ArrayView2, s};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::rows::{PANEL, PIECE, Rows, slice_of};

pub(crate) mod krylov;

/// Returns a matrix of normal numbers.
pub(crate) fn normal(dim: (usize, usize), seed: u64) -> Array2<f64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    Array2::from_shape_fn(dim, |_| StandardNormal.sample(&mut rng))
}

/// Returns the result of `body` on A as a matrix of `faer`: in place if A is stored by rows or by columns
/// without gaps, otherwise as a copy.
fn in_faer<T>(a: ArrayView2<'_, f64>, body: impl FnOnce(MatRef<'_, f64>) -> T) -> T {
    let (rows, columns) = a.dim();
    if let Some(entries) = a.to_slice() {
        body(MatRef::from_row_major_slice(entries, rows, columns))
    } else if let Some(entries) = a.reversed_axes().to_slice() {
        body(MatRef::from_column_major_slice(entries, rows, columns))
    } else {
        body(Mat::from_fn(rows, columns, |i, j| a[[i, j]]).as_ref())
    }
}

fn from_faer(a: MatRef<'_, f64>) -> Array2<f64> {
    let (rows, columns) = a.shape();
    let mut out = Rows::zeros((rows, columns));
    if a.row_stride() == 1 {
        let entries = out.entries_mut();
        for j in (0..columns).step_by(PIECE) {
            let block: Vec<&[f64]> = (j..columns.min(j + PIECE))
                .map(|k| a.col(k).try_as_col_major().expect("columns without gaps").as_slice())
                .collect();
            for i in 0..rows {
                let target = &mut entries[i * columns + j..][..block.len()];
                target.iter_mut().zip(&block).for_each(|(t, column)| *t = column[i]);
            }
        }
        return out.into_array();
    }
    MatMut::from_row_major_slice_mut(out.entries_mut(), rows, columns).copy_from(a);
    out.into_array()
}

/// The inner product of two vectors.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Eight running sums: the compiler may not reorder one.
    let mut sums = [0.0; 8];
    let (heads, tails) = (a.chunks_exact(8), b.chunks_exact(8));
    let rests = heads.remainder().iter().zip(tails.remainder());
    let rest: f64 = rests.map(|(a, b)| a * b).sum();
    for (a, b) in heads.zip(tails) {
        for k in 0..8 {
            sums[k] += a[k] * b[k];
        }
    }
    rest + sums.iter().sum::<f64>()
}

/// ⟨A, B⟩.
pub(crate) fn inner(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    match (a.as_slice(), b.as_slice()) {
        (Some(a), Some(b)) => dot(a, b),
        _ => a.iter().zip(b).map(|(a, b)| a * b).sum(),
    }
}

/// ‖A‖².
pub(crate) fn square(a: &Array2<f64>) -> f64 {
    inner(a, a)
}

/// A B. For tall, thin factors several times as fast as `ndarray`'s product.
pub(crate) fn product(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>) -> Array2<f64> {
    let (rows, columns) = (a.nrows(), b.ncols());
    let mut out = Rows::zeros((rows, columns));
    add_product(a, b, out.entries_mut());
    out.into_array()
}

/// Returns XᵀY, which must be symmetric. Of many columns only the panels on and above the diagonal are computed.
pub(crate) fn symmetric_product(x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Array2<f64> {
    let r = x.ncols();
    if r <= PANEL {
        return x.t().dot(&y);
    }
    let mut whole = Array2::zeros((r, r));
    for from in (0..r).step_by(PANEL) {
        let rows = s![.., from..r.min(from + PANEL)];
        let panel = product(x.slice(rows).t(), y.slice(s![.., from..]));
        let height = panel.nrows();
        let mut below = whole.slice_mut(s![from.., from..from + height]);
        below.assign(&panel.t());
        let mut beside = whole.slice_mut(s![from..from + height, from + height..]);
        beside.assign(&panel.slice(s![.., height..]));
    }
    whole
}

/// Adds A B to the last columns of `target`, whose rows stand one after the other.
pub(crate) fn add_product(a: ArrayView2<'_, f64>, b: ArrayView2<'_, f64>, target: &mut [f64]) {
    if target.is_empty() {
        return;
    }
    let columns = target.len() / a.nrows();
    let target = MatMut::from_row_major_slice_mut(target, a.nrows(), columns);
    let target = target.subcols_mut(columns - b.ncols(), b.ncols());
    in_faer(a, |a| {
        in_faer(b, |b| matmul(target, Accum::Add, a, b, 1.0, Par::Seq));
    });
}

/// The number c if A = cI.
pub(crate) fn multiple_of_identity(a: ArrayView2<'_, f64>) -> Option<f64> {
    let multiple = *a.get((0, 0))?;
    // Magnitudes by their bits, in loops without branches.
    let is_zero = |part: &[f64]| part.iter().fold(0, |bits, v| bits | v.abs().to_bits()) == 0;
    let scalar = a.outer_iter().enumerate().all(|(i, row)| {
        let row = slice_of(row);
        let (before, after) = row.split_at(i.min(row.len()));
        after.first() == Some(&multiple) && is_zero(before) && is_zero(&after[1..])
    });
    scalar.then_some(multiple)
}

/// (A + Aᵀ)/2.
pub(crate) fn symmetric(a: &Array2<f64>) -> Array2<f64> {
    (a + &a.t()) * 0.5
}

/// The solution D of `operator(D) = target`, for a symmetric positive semidefinite operator, by
/// conjugate gradients (Hestenes and Stiefel 1952): at most `steps` of them, until the residual
/// has fallen by the factor `tolerance` or nothing is left to rounding.
pub(crate) fn conjugate_gradients(
    operator: impl Fn(&Array2<f64>) -> Array2<f64>,
    target: &Array2<f64>,
    steps: usize,
    tolerance: f64,
) -> Array2<f64> {
    let mut solution = Array2::zeros(target.dim());
    let mut rest = target.clone();
    let mut direction = rest.clone();
    let mut rho = square(&rest);
    let goal = tolerance * tolerance * rho;
    for _ in 0..steps {
        if rho <= goal {
            break;
        }
        let image = operator(&direction);
        let curvature = inner(&direction, &image);
        if !(curvature > 1e-15 * square(&direction)) {
            break;
        }
        let length = rho / curvature;
        solution.scaled_add(length, &direction);
        rest.scaled_add(-length, &image);
        let next = square(&rest);
        direction = &rest + &(direction * (next / rho));
        rho = next;
    }
    solution
}

/// Returns the result of `body` on A divided by the power of two of its largest magnitude, and that power.
/// `faer` decides by fixed thresholds: it would decompose a matrix of size 1e-18 to four digits, and 2ᵏA to
/// other bits than A.
fn at_unit_size<T>(a: ArrayView2<'_, f64>, body: impl FnOnce(MatRef<'_, f64>) -> T) -> (T, f64) {
    let largest = a.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    // The bits of the exponent alone.
    let power = f64::from_bits(largest.to_bits() & (0x7ff << 52));
    if power == 1.0 || !largest.is_normal() {
        return (in_faer(a, body), 1.0);
    }
    let scaled = a.mapv(|v| v / power);
    (in_faer(scaled.view(), body), power)
}

/// Eigenvalues (ascending) and eigenvectors (columns) of a symmetric matrix.
///
/// NaN of a matrix that is not square or not finite, or whose decomposition fails to converge (not
/// seen for finite input).
pub fn symmetric_eigen(a: ArrayView2<'_, f64>) -> (Array1<f64>, Array2<f64>) {
    let n = a.nrows();
    let usable = a.is_square() && !a.is_empty() && a.iter().all(|v| v.is_finite());
    let body = |a: MatRef<'_, f64>| a.self_adjoint_eigen(faer::Side::Lower);
    match usable.then(|| at_unit_size(a, body)) {
        Some((Ok(eigen), size)) => (Array1::from_shape_fn(n, |i| size * eigen.S()[i]), from_faer(eigen.U())),
        _ => (Array1::from_elem(n, f64::NAN), Array2::from_elem((n, n), f64::NAN)),
    }
}

/// Eigenvalues alone, ascending; NaN as [`symmetric_eigen`] has them.
pub(crate) fn symmetric_eigenvalues(a: ArrayView2<'_, f64>) -> Array1<f64> {
    let usable = a.is_square() && !a.is_empty() && a.iter().all(|v| v.is_finite());
    let body = |a: MatRef<'_, f64>| a.self_adjoint_eigenvalues(faer::Side::Lower);
    match usable.then(|| at_unit_size(a, body)) {
        Some((Ok(values), size)) => Array1::from_vec(values) * size,
        _ => Array1::from_elem(a.nrows(), f64::NAN),
    }
}

/// Cholesky's factor of a symmetric positive definite matrix, of which the lower triangle is read.
pub(crate) struct Cholesky(Llt<f64>);

impl Cholesky {
    /// Returns the factor; None if the matrix is not positive definite, or not finite.
    pub(crate) fn new(a: ArrayView2<'_, f64>) -> Option<Self> {
        in_faer(a, |a| a.llt(faer::Side::Lower)).ok().map(Self)
    }

    /// L with A = LLᵀ.
    pub(crate) fn factor(&self) -> Array2<f64> {
        from_faer(self.0.L())
    }

    /// Overwrites b with A⁻¹b.
    pub(crate) fn solve(&self, b: &mut [f64]) {
        let rows = b.len();
        (self.0).solve_in_place(MatMut::from_column_major_slice_mut(b, rows, 1));
    }

    /// A⁻¹ and log det A; None if these are not finite.
    pub(crate) fn inverse(&self) -> Option<(Array2<f64>, f64)> {
        let diagonal = (0..self.0.L().nrows()).map(|i| self.0.L()[(i, i)].ln());
        let log_determinant = 2.0 * diagonal.sum::<f64>();
        let inverse = from_faer(self.0.inverse().as_ref());
        log_determinant.is_finite().then_some((inverse, log_determinant))
    }
}

/// Thin singular value decomposition `A = U diag(s) Vᵀ`, s descending; NaN of a matrix that is not
/// finite.
pub fn svd(a: ArrayView2<'_, f64>) -> (Array2<f64>, Array1<f64>, Array2<f64>) {
    let k = a.nrows().min(a.ncols());
    let finite = a.iter().all(|v| v.is_finite());
    match finite.then(|| at_unit_size(a, |a| a.thin_svd())) {
        Some((Ok(svd), size)) => {
            (from_faer(svd.U()), Array1::from_shape_fn(k, |i| size * svd.S()[i]), from_faer(svd.V()))
        }
        _ => (
            Array2::from_elem((a.nrows(), k), f64::NAN),
            Array1::from_elem(k, f64::NAN),
            Array2::from_elem((a.ncols(), k), f64::NAN),
        ),
    }
}

/// The orthonormal factor of a thin QR decomposition, with the diagonal of R positive, so that it
/// is unique.
pub fn orthonormal_factor(a: ArrayView2<'_, f64>) -> Array2<f64> {
    let qr = in_faer(a, |a| a.qr());
    let mut q = from_faer(qr.compute_thin_Q().as_ref());
    let r = qr.thin_R();
    for k in 0..q.ncols() {
        if r[(k, k)] < 0.0 {
            q.column_mut(k).mapv_inplace(|v| -v);
        }
    }
    q
}

/// The nearest matrix with orthonormal columns: the polar factor U Vᵀ.
pub fn polar_factor(a: ArrayView2<'_, f64>) -> Array2<f64> {
    let (u, _, v) = svd(a);
    u.dot(&v.t())
}

/// The nearest rotation to a square matrix: U diag(1, …, 1, det UVᵀ) Vᵀ (Kabsch, Acta Cryst. A 32, 1976).
pub(crate) fn nearest_rotation(a: ArrayView2<'_, f64>) -> Array2<f64> {
    let (mut u, _, v) = svd(a);
    let last = u.ncols() - 1;
    if determinant(u.view()) * determinant(v.view()) < 0.0 {
        u.column_mut(last).mapv_inplace(|v| -v);
    }
    u.dot(&v.t())
}

/// det A; NaN of a matrix that is not square or not finite.
pub(crate) fn determinant(a: ArrayView2<'_, f64>) -> f64 {
    let usable = a.is_square() && !a.is_empty() && a.iter().all(|v| v.is_finite());
    if usable { in_faer(a, |a| a.determinant()) } else { f64::NAN }
}

/// A square orthogonal matrix whose first columns are the given orthonormal ones (of more columns
/// than rows, the first ones).
pub fn complete_basis(a: ArrayView2<'_, f64>) -> Array2<f64> {
    let (n, k) = (a.nrows(), a.ncols().min(a.nrows()));
    let a = a.slice(s![.., ..k]);
    let qr = in_faer(a, |a| a.qr());
    let full = qr.compute_Q();
    let mut q = from_faer(full.as_ref());
    // The span of the first k columns is that of a; take a itself there.
    q.slice_mut(s![.., ..k]).assign(&a);
    debug_assert_eq!(q.dim(), (n, n));
    q
}

/// The Cayley transform `(I − K/2)⁻¹(I + K/2)`: orthogonal for skew-symmetric K.
pub(crate) fn cayley(k: ArrayView2<'_, f64>) -> Array2<f64> {
    let half = in_faer(k, |k| k * faer::Scale(0.5));
    let identity = Mat::<f64>::identity(k.nrows(), k.nrows());
    let solved = (&identity - &half).partial_piv_lu().solve(&identity + &half);
    from_faer(solved.as_ref())
}

/// LU decomposition of a square matrix; solutions are not finite if the matrix is singular.
pub(crate) struct Lu(PartialPivLu<f64>);

impl Lu {
    pub(crate) fn new(a: ArrayView2<'_, f64>) -> Self {
        Self(in_faer(a, |a| a.partial_piv_lu()))
    }

    /// Overwrites b with A⁻¹b.
    pub(crate) fn solve(&self, b: &mut [f64]) {
        let rows = b.len();
        (self.0).solve_in_place(MatMut::from_column_major_slice_mut(b, rows, 1));
    }

    /// Overwrites b with A⁻ᵀb.
    pub(crate) fn solve_transposed(&self, b: &mut [f64]) {
        let rows = b.len();
        (self.0).solve_transpose_in_place(MatMut::from_column_major_slice_mut(b, rows, 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start::random;

    /// Sizes on both sides of those from which `faer` works in blocks.
    #[test]
    fn decompositions_of_scaled_matrices_are_scaled_decompositions() {
        for n in [1, 2, 17, 80, 300] {
            let a = random(n, n, 1) * 1.7;
            let c = &a + &a.t();
            let (values, vectors) = symmetric_eigen(c.view());
            let (u, singular, v) = svd(a.view());
            for exponent in [-300, -60, -1, 1, 41, 300] {
                let factor = 2f64.powi(exponent);
                let (scaled, same) = symmetric_eigen((&c * factor).view());
                assert_eq!((scaled, same), (&values * factor, vectors.clone()), "{n} {exponent}");
                let alone = symmetric_eigenvalues((&c * factor).view());
                assert_eq!(alone, symmetric_eigenvalues(c.view()) * factor);
                let scaled = svd((&a * factor).view());
                assert_eq!(scaled, (u.clone(), &singular * factor, v.clone()));
            }
            let rebuilt = (&vectors * &values).dot(&vectors.t());
            assert!((&rebuilt - &c).iter().all(|v| v.abs() < 1e-13 * n as f64));
        }
        let zero = Array2::<f64>::zeros((3, 3));
        assert_eq!(symmetric_eigen(zero.view()).0, Array1::<f64>::zeros(3));
    }
}
