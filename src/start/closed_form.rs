//! Minimisers of a quadratic form over {XᵀX = I} from one decomposition.
//!
//! Without a linear term f = ½ tr(C·XDXᵀ), and XDXᵀ has the eigenvalues of D and n − r zeros. By von
//! Neumann's trace inequality f is least if the eigenvalues of XDXᵀ in descending order meet eigenvectors of
//! C in ascending order of its eigenvalues. With D = W diag(μ) Wᵀ, X = Σ_k u_k w_kᵀ. For positive μ_k in
//! descending order the u_k are eigenvectors of the smallest eigenvalues of C in ascending order, for
//! negative μ_k eigenvectors of the largest ones, and for μ_k = 0 any other orthonormal vectors.
//!
//! With a linear term L the minimiser is known if the quadratic part is constant, for C = cI and for square X
//! with D = I: the polar factor of −L.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, concatenate, s};

use super::random;
use super::spectral::{self, DENSE};
use crate::linalg::{self, krylov, multiple_of_identity, nearest_rotation, polar_factor, product, symmetric};
use crate::manifold::polar;
use crate::numerics;
use crate::objective::{GoOn, QuadraticForm, eigen_work, gradient_work, pass_work};
use crate::threads::Threads;

/// Largest number of products in place of a decomposition.
const PRODUCTS: usize = 400;

/// Least number of columns of a block beyond the wanted number.
const MORE: usize = 2;

/// The number of columns of a block is a multiple of this number.
const LANES: usize = 4;

/// Largest number of entries of the basis.
const ENTRIES: usize = 40_000_000;

/// Largest inner product of eigenvectors of the two ends of a spectrum.
const OVERLAP: f64 = 1e-6;

/// Returns the rows of the closed-form optimum for large λ: the r rows with the largest −C_ii. Rows that differ by
/// rounding, as all rows of standardised data do, come in their own order, whatever the processor.
pub(crate) fn top_rows(diagonal: &[f64], r: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..diagonal.len()).collect();
    order.sort_by(|&a, &b| diagonal[a].total_cmp(&diagonal[b]));
    let tie = numerics::GAIN * diagonal.iter().fold(0.0f64, |size, v| size.max(v.abs()));
    for equal in order.chunk_by_mut(|&a, &b| diagonal[b] - diagonal[a] <= tie) {
        equal.sort_unstable();
    }
    order.truncate(r);
    order
}

/// Returns a minimiser over the n×r matrices with orthonormal columns, or over the rotations among them, and
/// its work in multiply-adds. None if no minimiser is known, if it is not found within `work` and n exceeds
/// [`DENSE`], or if `go_on` returns false.
pub(crate) fn closed_form(
    form: &dyn QuadraticForm,
    r: usize,
    rotations: bool,
    work: f64,
    go_on: GoOn<'_>,
) -> Option<(Array2<f64>, f64)> {
    let n = form.order();
    if let Some(linear) = form.linear() {
        let square = r == n && form.metric().is_none();
        let constant = square || form.dense().and_then(multiple_of_identity).is_some();
        let x = constant.then(|| match rotations {
            true => nearest_rotation((-&linear).view()),
            false if 2 * r <= n => polar(&-&linear),
            false => polar_factor((-&linear).view()),
        });
        return x.map(|x| (x, (n * r * r) as f64 + eigen_work(r)));
    }
    let (weights, turn) = match form.metric() {
        None => (vec![1.0; r], Array2::eye(r)),
        Some(metric) => {
            let (values, vectors) = linalg::symmetric_eigen(metric);
            (values.to_vec(), vectors)
        }
    };
    let count = |sign: f64| weights.iter().filter(|&&w| sign * w > 0.0).count();
    let (low, high) = (count(1.0), count(-1.0));
    let (found, work) = eigenvectors(form, (low, high), work, go_on)?;
    // Eigenvalues of D ascend: negative ones, zeros, positive ones.
    let mut order: Vec<usize> = (0..low).map(|k| r - 1 - k).chain(0..high).collect();
    order.extend(high..r - low);
    let mut basis = completed(found, r);
    let assemble = |basis: &Array2<f64>| match form.metric() {
        None => basis.clone(),
        Some(_) => basis.dot(&turn.select(Axis(1), &order).t()),
    };
    let x = assemble(&basis);
    if !rotations || linalg::determinant(x.view()) > 0.0 {
        return Some((x, work));
    }
    basis.column_mut(0).mapv_inplace(|v| -v);
    Some((assemble(&basis), work))
}

/// Returns orthonormal vectors, given in ascending order of their eigenvalues of C, rotated to meet the
/// eigenvectors of D in descending order.
pub(crate) fn matched(basis: &Array2<f64>, metric: Option<ArrayView2<'_, f64>>) -> Array2<f64> {
    match metric {
        None => basis.clone(),
        Some(metric) => {
            let (_, vectors) = linalg::symmetric_eigen(metric);
            basis.dot(&vectors.slice(s![.., ..;-1]).t())
        }
    }
}

/// Returns eigenvectors of C for its `low` smallest eigenvalues, ascending, then for its `high` largest ones,
/// descending, and the work.
fn eigenvectors(
    form: &dyn QuadraticForm,
    (low, high): (usize, usize),
    work: f64,
    go_on: GoOn<'_>,
) -> Option<(Array2<f64>, f64)> {
    let n = form.order();
    let forming = match form.dense() {
        Some(_) => 0.0,
        None => n as f64 * form.product_work(),
    };
    let samples = samples_work(form, (low, high));
    let all = (eigen_work(n) + forming).min(samples.unwrap_or(f64::INFINITY));
    let affordable = all <= work || n <= DENSE;
    // Products cost less than the decomposition, if few of them suffice.
    if let Some(found) = by_products(form, (low, high), if affordable { all } else { work }, go_on) {
        return Some(found);
    }
    if !affordable {
        return None;
    }
    let x = match samples {
        Some(cost) if cost == all => by_samples(form, (low, high), go_on)?,
        _ => chosen(linalg::symmetric_eigen(form.whole(go_on)?.view()), (low, high)).1,
    };
    let finite = go_on() && x.iter().all(|v| v.is_finite());
    finite.then(|| (polar(&x), all))
}

/// Returns the `low` smallest eigenvalues of a decomposition, ascending, then the `high` largest ones, descending, and
/// their vectors.
fn chosen((values, vectors): (Array1<f64>, Array2<f64>), (low, high): (usize, usize)) -> (Array1<f64>, Array2<f64>) {
    let n = values.len();
    let chosen: Vec<usize> = (0..low).chain((n - high..n).rev()).collect();
    (values.select(Axis(0), &chosen), vectors.select(Axis(1), &chosen))
}

/// Returns the work of [`by_samples`]; None if C is not s·AᵀA with few samples.
fn samples_work(form: &dyn QuadraticForm, (low, high): (usize, usize)) -> Option<f64> {
    let n = form.order();
    let (scale, m) = form.data()?;
    let null = if scale < 0.0 { high } else { low };
    let forming = m as f64 * form.product_work().min((2 * n * m) as f64);
    (m < n && null <= n - m).then_some(eigen_work(m) + forming)
}

/// Returns the eigenvectors for C = s·AᵀA with few samples, from those of s·AAᵀ. Vectors orthogonal to all right singular
/// vectors of A have the eigenvalue 0.
fn by_samples(form: &dyn QuadraticForm, (low, high): (usize, usize), go_on: GoOn<'_>) -> Option<Array2<f64>> {
    let (scale, m) = form.data()?;
    let (wanted, null) = if scale < 0.0 { (low, high) } else { (high, low) };
    let count = if null == 0 && (1..=m).contains(&wanted) { wanted } else { m };
    let gram = form.outer_while(Array2::eye(m).view(), go_on)?;
    let ends = if scale < 0.0 { (count, 0) } else { (0, count) };
    let (values, vectors) = chosen(linalg::symmetric_eigen(symmetric(&gram).view()), ends);
    let known = polar(&right_vectors(form, values.view(), vectors.view())?);
    let zero = wanted.max(known.ncols());
    let basis = completed(known, zero + null);
    let (first, second) = if scale < 0.0 { (0, zero) } else { (zero, 0) };
    let parts = [basis.slice(s![.., first..first + low]), basis.slice(s![.., second..second + high])];
    concatenate(Axis(1), &parts).ok()
}

/// Returns eigenvectors of C = s·AᵀA from eigenvectors of s·AAᵀ in descending order of the magnitude of their
/// eigenvalues; fewer if the others are rounding.
fn right_vectors(
    form: &dyn QuadraticForm,
    values: ArrayView1<'_, f64>,
    vectors: ArrayView2<'_, f64>,
) -> Option<Array2<f64>> {
    let least = numerics::ROUNDING * vectors.nrows() as f64 * values[0].abs();
    let rank = values.iter().take_while(|v| v.abs() > least).count();
    let mut images = form.lifted(vectors.slice(s![.., ..rank]))?;
    for mut image in images.axis_iter_mut(Axis(1)) {
        let length = image.dot(&image).sqrt();
        image /= length;
    }
    Some(images)
}

/// Returns the same from products with C, or with the smaller AAᵀ for C = s·AᵀA; None if `work` does not suffice.
fn by_products(
    form: &dyn QuadraticForm,
    (low, high): (usize, usize),
    work: f64,
    go_on: GoOn<'_>,
) -> Option<(Array2<f64>, f64)> {
    let mut found = Array2::zeros((form.order(), 0));
    let mut spent = 0.0;
    for (count, sign) in [(low, 1.0), (high, -1.0)] {
        if count > 0 {
            let (x, cost) = one_end(form, count, sign, work - spent, go_on)?;
            spent += cost;
            found = concatenate(Axis(1), &[found.view(), x.view()]).ok()?;
        }
    }
    // The ends of a spectrum of few eigenvalues can overlap.
    let gram = product(found.t(), found.view());
    let apart = (&gram - &Array2::<f64>::eye(low + high)).iter().all(|v| v.abs() <= OVERLAP);
    apart.then(|| (polar(&found), spent))
}

/// Returns the eigenvectors of the `count` smallest eigenvalues of ±C, ascending, and the work.
fn one_end(
    form: &dyn QuadraticForm,
    count: usize,
    sign: f64,
    work: f64,
    go_on: GoOn<'_>,
) -> Option<(Array2<f64>, f64)> {
    let (n, width) = (form.order(), (count + MORE).next_multiple_of(LANES));
    let signed = |image: Option<Array2<f64>>| image.map(|image| image * sign);
    let samples = form.data().filter(|&(scale, m)| scale * sign < 0.0 && m < n);
    let (by_samples, order) = (samples.is_some(), samples.map_or(n, |(_, m)| m));
    if 2 * spectral::PRODUCTS * width > order || spectral::PRODUCTS * width * order > ENTRIES {
        return None;
    }
    let each = gradient_work(form, width) + pass_work(order * width) * (4 * spectral::PRODUCTS * width) as f64;
    let most = ((work / each) as usize).min(PRODUCTS);
    let threads = Threads::serial();
    let apply = |x: ArrayView2<'_, f64>| match by_samples {
        true => signed(form.outer_while(x, go_on)),
        false => signed(form.apply_while(x, &threads, go_on)),
    };
    let wanted = krylov::Wanted { count, width, blocks: spectral::PRODUCTS, most, residual: numerics::HALF };
    let found = krylov::smallest(order, &wanted, &apply, go_on).filter(|found| found.converged)?;
    let spent = most as f64 * each;
    if !by_samples {
        return Some((found.vectors, spent));
    }
    let x = right_vectors(form, found.values.view(), found.vectors.view())?;
    Some((completed(x, count), spent))
}

/// Returns the orthonormal columns extended to `count` columns.
fn completed(basis: Array2<f64>, count: usize) -> Array2<f64> {
    let (n, have) = basis.dim();
    if have >= count {
        return basis;
    }
    let more = random(n, count - have, 0x6261_7369);
    let all = concatenate![Axis(1), basis, more];
    linalg::orthonormal_factor(all.view())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::{DenseColumns, GramQuadratic, Quadratic};
    use crate::threads::Threads;

    fn symmetric(n: usize, seed: u64) -> Array2<f64> {
        let a = random(n, n, seed) * 3.0;
        &a + &a.t()
    }

    fn value(form: &dyn QuadraticForm, x: &Array2<f64>) -> f64 {
        let gap = &x.t().dot(x) - &Array2::<f64>::eye(x.ncols());
        assert!(gap.iter().all(|v| v.abs() < 1e-13), "{gap}");
        form.value(x.view(), &Threads::serial())
    }

    /// Returns ½ Σ λ_k μ_k, the eigenvalues of C ascending and those of D, padded by zeros, descending.
    fn least(c: &Array2<f64>, d: &Array2<f64>) -> f64 {
        let (values, _) = linalg::symmetric_eigen(c.view());
        let (weights, _) = linalg::symmetric_eigen(d.view());
        let mut weights = weights.to_vec();
        weights.resize(c.nrows(), 0.0);
        weights.sort_by(|a, b| b.total_cmp(a));
        0.5 * values.iter().zip(weights).map(|(c, d)| c * d).sum::<f64>()
    }

    #[test]
    fn it_has_the_least_value_for_every_inertia_of_both_factors() {
        for (n, r) in [(2, 1), (2, 2), (5, 3), (12, 5), (30, 30)] {
            for shift in [-5.0, 0.0, 5.0] {
                let c = symmetric(n, 1) + Array2::<f64>::eye(n) * shift;
                let zero = Array2::from_shape_fn((r, r), |(i, j)| f64::from(i == j && i > r / 2));
                for d in [Array2::eye(r), symmetric(r, 2), symmetric(r, 3) * 1e-3, zero] {
                    let form = Quadratic::new(c.clone(), None, Some(d.clone())).unwrap();
                    for rotations in [false, r == n] {
                        let (x, _) = closed_form(&form, r, rotations, f64::INFINITY, &|| true).unwrap();
                        let found = value(&form, &x);
                        let size = c.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
                        assert!((found - least(&c, &d)).abs() <= 1e-13 * size * n as f64, "{n} {r}");
                        assert!(!rotations || linalg::determinant(x.view()) > 0.0);
                    }
                }
            }
        }
    }

    #[test]
    fn data_of_few_rows_give_the_same_value_as_their_moments() {
        for (m, n, r) in [(1, 3, 2), (4, 9, 3), (4, 9, 7), (20, 33, 12), (9, 4, 3)] {
            for (scale, rank) in [(-1.0, m), (2.0, m), (-1.0, usize::div_ceil(m, 2))] {
                let rank = rank.min(n);
                let left = Array2::from_shape_fn((m, rank), |(i, j)| ((3 * i + 5 * j) % 7) as f64 - 2.5);
                let a = left.dot(&random(n, rank, 4).t());
                let data = GramQuadratic::new(DenseColumns::new(a.view()).unwrap(), scale, None).unwrap();
                let c = a.t().dot(&a) * scale;
                let stored = Quadratic::new(c.clone(), None, None).unwrap().with_factor(scale, a.t().to_owned());
                for form in [&data as &dyn QuadraticForm, &stored] {
                    let (x, _) = closed_form(form, r, false, f64::INFINITY, &|| true).unwrap();
                    let (found, expected) = (value(form, &x), least(&c, &Array2::eye(r)));
                    let size = c.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
                    assert!((found - expected).abs() <= 1e-12 * size * n as f64, "{m} {n} {r} {found} {expected}");
                }
            }
        }
    }

    #[test]
    fn a_constant_quadratic_part_leaves_the_polar_factor() {
        for (n, r) in [(5, 2), (4, 4)] {
            let linear = random(n, n, 5).slice(s![.., ..r]).to_owned() * 2.0;
            let c = if r == n { symmetric(n, 6) } else { Array2::eye(n) * 3.0 };
            let form = Quadratic::new(c.clone(), Some(linear.clone()), None).unwrap();
            let (x, _) = closed_form(&form, r, false, 0.0, &|| true).unwrap();
            let trace = if r == n { c.diag().sum() } else { 3.0 * r as f64 };
            let expected = 0.5 * trace - linalg::svd(linear.view()).1.sum();
            assert!((value(&form, &x) - expected).abs() < 1e-12);
            let other = Quadratic::new(symmetric(n, 7), Some(linear), None).unwrap();
            let known = closed_form(&other, r, false, f64::INFINITY, &|| true).is_some();
            assert_eq!(known, r == n);
        }
    }
}
