//! Feasible starting points: on the Stiefel manifold, and J-orthogonal ones.

mod assignment;
mod closed_form;
mod cs;
mod pencil;
mod spectral;

use ndarray::{Array1, Array2, ArrayView2, Axis};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::error::{Error, Result};
use crate::linalg;
use crate::manifold;
pub use crate::manifold::START_TOLERANCE;
use crate::signature::Signature;

pub(crate) use assignment::assignment;
pub(crate) use closed_form::{closed_form, matched, top_rows};
pub use cs::{HyperbolicCs, hyperbolic_cs, random_j_orthogonal};
pub(crate) use pencil::pencil_minimiser;
pub use spectral::spectral;
pub(crate) use spectral::{DENSE, is_spectrum_exact, rough_spectral, rough_work, spectral_while, spectral_within};

/// Returns the first r columns of the identity; columns beyond the n-th are zero.
pub fn identity(n: usize, r: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, r), |(i, k)| if i == k { 1.0 } else { 0.0 })
}

/// Returns a uniformly distributed point of the Stiefel manifold with min(n, r) columns: the orthonormal
/// factor of a Gaussian matrix.
pub fn random(n: usize, r: usize, seed: u64) -> Array2<f64> {
    let r = r.min(n);
    linalg::orthonormal_factor(linalg::normal((n, r), seed).view())
}

/// Returns a random partition of the rows into r groups, X(G_k, k) = 1/√|G_k|: feasible and
/// nonnegative. If r > n, the last groups are empty and their columns zero.
pub fn partition(n: usize, r: usize, seed: u64) -> Array2<f64> {
    // The first r rows go to different groups, so that no group is empty.
    labelled(n, r, seed, |t, rng| match t < r {
        true => t,
        false => rng.random_range(0..r),
    })
}

/// Returns [`partition`], or, if that is not `allowed` (as under an upper bound on the entries), groups of
/// nearly equal size.
pub(crate) fn partition_within(
    (n, r): (usize, usize),
    seed: u64,
    allowed: impl Fn(ArrayView2<'_, f64>) -> bool,
) -> Array2<f64> {
    let x = partition(n, r, seed);
    match allowed(x.view()) {
        true => x,
        false => labelled(n, r, seed, |t, _| t % r),
    }
}

/// Assigns the t-th row of a random order to the group `label(t)`.
fn labelled(n: usize, r: usize, seed: u64, label: impl Fn(usize, &mut Xoshiro256PlusPlus) -> usize) -> Array2<f64> {
    let mut x = Array2::zeros((n, r));
    if r == 0 {
        return x;
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut rows: Vec<usize> = (0..n).collect();
    rows.shuffle(&mut rng);
    let labels: Vec<usize> = (0..n).map(|t| label(t, &mut rng)).collect();
    let mut counts = vec![0usize; r];
    for &label in &labels {
        counts[label] += 1;
    }
    for (&row, &label) in rows.iter().zip(&labels) {
        x[[row, label]] = 1.0 / (counts[label] as f64).sqrt();
    }
    x
}

/// Returns a nonnegative point near a given one. Every row is assigned to its column of largest entry
/// (columns are first signed by their larger half), every column is normalised, and an empty column takes the
/// row with its largest entry. If r > n no such point exists, and columns stay zero.
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

/// Gives every empty column of a matrix with at most one nonzero per row the row of largest weight(i, k)
/// whose removal empties no other column, and normalises the columns.
pub(crate) fn complete_partition(x: &mut Array2<f64>, weight: impl Fn(usize, usize) -> f64) {
    let (n, r) = x.dim();
    for k in 0..r {
        if x.column(k).iter().any(|&v| v > 0.0) {
            continue;
        }
        let sizes: Vec<usize> =
            x.axis_iter(Axis(1)).map(|column| column.iter().filter(|v| **v > 0.0).count()).collect();
        let candidate = (0..n)
            .filter(|&i| (0..r).all(|l| x[[i, l]] == 0.0 || sizes[l] > 1))
            .max_by(|&a, &b| weight(a, k).total_cmp(&weight(b, k)));
        if let Some(i) = candidate {
            x.row_mut(i).fill(0.0);
            x[[i, k]] = 1.0;
        }
    }
    // By rows, as columns are not contiguous; in two steps, as squares overflow before the entries do.
    let (mut largest, mut squares) = (Array1::<f64>::zeros(r), Array1::<f64>::zeros(r));
    x.outer_iter().for_each(|row| largest.zip_mut_with(&row, |m, v| *m = m.max(v.abs())));
    largest.mapv_inplace(|m| if m > 0.0 { m } else { 1.0 });
    for mut row in x.outer_iter_mut() {
        row /= &largest;
        squares.zip_mut_with(&row, |sum, v| *sum += v * v);
    }
    let norms = squares.mapv(|sum| if sum > 0.0 { sum.sqrt() } else { 1.0 });
    x.outer_iter_mut().for_each(|mut row| row /= &norms);
}

/// Checks a given start and corrects it to rounding.
///
/// With `project`, a start that is not feasible is replaced by its polar factor (or, if `nonnegative`,
/// rounded to a partition).
///
/// # Errors
/// If the start has no column or more columns than rows, is not finite, is not of full rank, or is not
/// feasible without `project`.
pub fn given(x0: &Array2<f64>, nonnegative: bool, project: bool) -> Result<Array2<f64>> {
    let r = x0.ncols();
    if r == 0 || r > x0.nrows() {
        return Err(Error::invalid(
            "x0",
            format!("must have at least one column and as many rows, got shape {:?}", x0.dim()),
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
                "must be nonnegative; pass project_x0=True to round it to a feasible point".to_owned()
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
        return Err(Error::invalid("x0", "must have full column rank to be projected"));
    }
    Ok(linalg::polar_factor(x0.view()))
}

#[cfg(test)]
pub(crate) use assignment::permutations;
