//! Feasible starting points: on the Stiefel manifold, and J-orthogonal ones.

mod cs;

use ndarray::{Array2, ArrayView2, Axis, s};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::error::{Error, Result};
use crate::linalg;
use crate::manifold;
use crate::objective::{GoOn, QuadraticForm};
use crate::signature::Signature;
use crate::threads::Threads;

pub use cs::{HyperbolicCs, hyperbolic_cs, random_j_orthogonal};

/// Up to this n the spectral start decomposes C itself; beyond it, block power iterations are used.
const DENSE_SPECTRUM: usize = 512;

/// Block power iterations, at most and at least.
const POWER_ITERATIONS: usize = 300;
const LEAST_ITERATIONS: usize = 20;

/// Multiply-adds after which they end as well, and what one of a QR decomposition costs.
const POWER_WORK: f64 = 1e10;
const TALL: f64 = 10.0;

/// Relative change of the Ritz sum at which they stop.
const POWER_TOLERANCE: f64 = 1e-10;

/// The first r columns of the identity; those beyond the n-th are zero.
pub fn identity(n: usize, r: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, r), |(i, k)| if i == k { 1.0 } else { 0.0 })
}

/// Uniformly distributed on the Stiefel manifold: the orthonormal factor of a Gaussian matrix. It
/// has min(n, r) columns.
pub fn random(n: usize, r: usize, seed: u64) -> Array2<f64> {
    let r = r.min(n);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let gauss = Array2::from_shape_fn((n, r), |_| StandardNormal.sample(&mut rng));
    linalg::orthonormal_factor(gauss.view())
}

/// A random partition of the rows into r groups, X(G_k, k) = 1/√|G_k| (SPEC erratum 3): feasible and
/// nonnegative. Of r > n groups the last ones are empty, their columns zero.
pub fn partition(n: usize, r: usize, seed: u64) -> Array2<f64> {
    if r == 0 {
        return Array2::zeros((n, 0));
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut rows: Vec<usize> = (0..n).collect();
    rows.shuffle(&mut rng);
    // One row each, the others at random, so that no group is empty.
    let labels: Vec<usize> = (0..n)
        .map(|t| if t < r { t } else { rng.random_range(0..r) })
        .collect();
    let mut counts = vec![0usize; r];
    for &label in &labels {
        counts[label] += 1;
    }
    let mut x = Array2::zeros((n, r));
    for (&row, &label) in rows.iter().zip(&labels) {
        x[[row, label]] = 1.0 / (counts[label] as f64).sqrt();
    }
    x
}

/// The minimiser of the quadratic part over the Stiefel manifold: eigenvectors of the r smallest
/// eigenvalues of C. An objective that is only linear gives its exact minimiser, the polar factor
/// of −linear. It has min(n, r) columns.
pub fn spectral(form: &dyn QuadraticForm, r: usize, threads: &Threads) -> Array2<f64> {
    spectral_while(form, r, threads, &|| true).unwrap_or_else(|| identity(form.order(), r))
}

/// The same, given up (None) if `go_on` says no on the way.
pub(crate) fn spectral_while(
    form: &dyn QuadraticForm,
    r: usize,
    threads: &Threads,
    go_on: GoOn<'_>,
) -> Option<Array2<f64>> {
    let n = form.order();
    let r = r.min(n);
    let (low, high) = form.spectrum(go_on)?;
    if low == 0.0 && high == 0.0 {
        return Some(match form.linear() {
            Some(linear) => linalg::polar_factor((-&linear).view()),
            None => identity(n, r),
        });
    }
    if n <= DENSE_SPECTRUM {
        let c = form.apply_while(Array2::eye(n).view(), threads, go_on)?;
        let (_, vectors) = linalg::symmetric_eigen(c.view());
        return Some(vectors.slice(s![.., ..r]).to_owned());
    }
    // Smallest eigenvalues of C: largest of shift − C, which is positive semidefinite.
    let shift = high;
    let width = (r + (r / 2).max(8)).min(n);
    let mut basis = random(n, width, 0x7370_6563);
    let mut previous = f64::NEG_INFINITY;
    let mut vectors = basis.clone();
    let each = width as f64 * (form.product_work() + TALL * (n * width) as f64);
    let iterations = ((POWER_WORK / each) as usize).clamp(LEAST_ITERATIONS, POWER_ITERATIONS);
    for _ in 0..iterations {
        let mut image = form.apply_while(basis.view(), threads, go_on)?;
        image.mapv_inplace(|v| -v);
        image.scaled_add(shift, &basis);
        let small = basis.t().dot(&image);
        let small = (&small + &small.t()) * 0.5;
        let (values, rotation) = linalg::symmetric_eigen(small.view());
        let top: f64 = values.iter().rev().take(r).sum();
        let order = rotation.slice(s![.., ..;-1]);
        vectors = basis.dot(&order);
        if (top - previous).abs() <= POWER_TOLERANCE * top.abs() {
            break;
        }
        previous = top;
        basis = linalg::orthonormal_factor(image.view());
    }
    Some(linalg::orthonormal_factor(vectors.slice(s![.., ..r])))
}

/// A nonnegative point near a given one: every row goes to the component in which it is largest
/// (columns signed by their larger half first), every column is normalised, and an empty column
/// takes the row that fits it best. There is none for r > n, where columns stay zero.
pub fn round_to_partition(x: ArrayView2<'_, f64>) -> Array2<f64> {
    let (n, r) = x.dim();
    let mut signed = x.to_owned();
    for mut column in signed.axis_iter_mut(Axis(1)) {
        let positive: f64 = column.iter().filter(|v| **v > 0.0).map(|v| v * v).sum();
        let negative: f64 = column.iter().filter(|v| **v < 0.0).map(|v| v * v).sum();
        if negative > positive {
            column.mapv_inplace(|v| -v);
        }
    }
    let mut out = Array2::<f64>::zeros((n, r));
    for (i, row) in signed.outer_iter().enumerate() {
        let best = (0..r).max_by(|&a, &b| row[a].total_cmp(&row[b]));
        if let Some(best) = best
            && row[best] > 0.0
        {
            out[[i, best]] = row[best];
        }
    }
    complete_partition(&mut out, |i, k| signed[[i, k]].abs());
    out
}

/// Gives every empty column of a matrix with at most one nonzero a row the row of largest weight(i, k)
/// whose removal empties no other column, and normalises the columns.
pub(crate) fn complete_partition(x: &mut Array2<f64>, weight: impl Fn(usize, usize) -> f64) {
    let (n, r) = x.dim();
    for k in 0..r {
        if x.column(k).iter().any(|&v| v > 0.0) {
            continue;
        }
        let sizes: Vec<usize> = x
            .axis_iter(Axis(1))
            .map(|column| column.iter().filter(|v| **v > 0.0).count())
            .collect();
        let candidate = (0..n)
            .filter(|&i| (0..r).all(|l| x[[i, l]] == 0.0 || sizes[l] > 1))
            .max_by(|&a, &b| weight(a, k).total_cmp(&weight(b, k)));
        if let Some(i) = candidate {
            x.row_mut(i).fill(0.0);
            x[[i, k]] = 1.0;
        }
    }
    for mut column in x.axis_iter_mut(Axis(1)) {
        // In two steps: squares overflow before the entries do.
        let largest = column.fold(0.0f64, |m, v| m.max(v.abs()));
        if largest > 0.0 {
            column.mapv_inplace(|v| v / largest);
            let norm = column.dot(&column).sqrt();
            column.mapv_inplace(|v| v / norm);
        }
    }
}

/// Distance ‖X₀ᵀX₀ − I‖_F, relative to √r, up to which a given start counts as feasible; the
/// difference is then corrected without touching its zeros.
pub const START_TOLERANCE: f64 = manifold::START_TOLERANCE;

/// A given start: checked, and corrected to rounding.
///
/// With `project`, any matrix of full column rank is replaced by its polar factor (by a rounding
/// to a partition when `nonnegative`).
///
/// # Errors
/// If it has no column or more columns than rows, is not finite, not of full rank, or not feasible and not to be projected.
pub fn given(x0: &Array2<f64>, nonnegative: bool, project: bool) -> Result<Array2<f64>> {
    let r = x0.ncols();
    if r == 0 || r > x0.nrows() {
        return Err(Error::invalid(
            "x0",
            format!(
                "must have at least one column and as many rows, got shape {:?}",
                x0.dim()
            ),
        ));
    }
    if x0.iter().any(|v| !v.is_finite()) {
        return Err(Error::invalid("x0", "must be finite"));
    }
    let signature = Signature::stiefel(x0.nrows());
    let eye = Array2::eye(r);
    let gap = manifold::drift(x0.view(), &signature, eye.view());
    let negative = nonnegative && x0.iter().any(|&v| v < 0.0);
    if gap <= START_TOLERANCE * (r as f64).sqrt() && !negative {
        return Ok(if gap <= manifold::REPAIR_THRESHOLD {
            x0.clone()
        } else {
            manifold::project_onto_pattern(x0, &signature, eye.view())
        });
    }
    if !project {
        return Err(Error::invalid(
            "x0",
            if negative {
                "must be nonnegative; pass project_x0=True to round it to a feasible point"
                    .to_owned()
            } else {
                format!(
                    "must have orthonormal columns, ‖XᵀX − I‖_F is {gap:.3e}; pass project_x0=True \
                     to use the nearest feasible point"
                )
            },
        ));
    }
    if nonnegative {
        return Ok(round_to_partition(x0.view()));
    }
    let (_, singular, _) = linalg::svd(x0.view());
    if !(singular[r - 1] > f64::EPSILON * singular[0]) {
        return Err(Error::invalid(
            "x0",
            "must have full column rank to be projected",
        ));
    }
    Ok(linalg::polar_factor(x0.view()))
}
