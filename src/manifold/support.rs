//! Projection onto {XᵀJX = K, X zero outside a support}, from far away.

use ndarray::{Array2, Axis};

use super::geometry::Manifold;
use super::repair::{gap, masked, pattern_step};
use super::stiefel::{NEAR, polar};
use crate::linalg::product;

fn has_empty_column(x: &Array2<f64>) -> bool {
    x.axis_iter(Axis(1)).any(|column| column.iter().all(|&v| v == 0.0))
}

/// Alternating projections before the Levenberg–Marquardt method, where the drift is larger than `NEAR`.
const ALTERNATIONS: usize = 3;

/// Largest number of rounds of [`project_near_support`].
const ROUNDS: usize = 20;

/// Product of two columns, relative to the largest product, above which the columns conflict.
const CONFLICT: f64 = 0.3;

/// First damping of the Levenberg–Marquardt method.
const DAMPING: f64 = 1e-2;

/// Most steps of the Levenberg–Marquardt method.
const STEPS: usize = 20;

/// Most conjugate gradients per step of the Levenberg–Marquardt method.
const GRADIENTS: usize = 30;

/// A step is slow if it leaves more than this part of the drift.
const SLOW: f64 = 0.9;

/// A step is slow below a drift of `CLOSE` if it leaves more than this part of the drift.
const SLOW_CLOSE: f64 = 0.2;

/// Drift below which `SLOW_CLOSE` decides which steps are slow.
const CLOSE: f64 = 1e-3;

/// The method ends after this number of slow steps in a row, for example if two columns share one row.
const SLOW_STEPS: usize = 2;

/// Drift from which Newton's method finishes.
const FINISHED: f64 = 1e-7;

/// Returns a point of {XᵀX = I, X zero where `support` is zero} near x; None if the Levenberg–Marquardt
/// method does not converge to such a point.
pub(crate) fn project_on_support(
    manifold: &Manifold<'_>,
    x: &Array2<f64>,
    support: &Array2<f64>,
) -> Option<Array2<f64>> {
    let few = |small: &Manifold<'_>, [x, support]: [Array2<f64>; 2]| settled(small, begun(small, &x, &support)).ok();
    manifold
        .on_few_rows(support, [x, support], few)
        .unwrap_or_else(|| settled(manifold, begun(manifold, x, support)).ok())
}

/// Returns X on the support, after alternating projections if it is far from orthonormal.
fn begun(manifold: &Manifold<'_>, x: &Array2<f64>, support: &Array2<f64>) -> Array2<f64> {
    let mut current = masked(x.clone(), support);
    for _ in 0..ALTERNATIONS {
        let drift = gap(&current, manifold.signature, manifold.k.view()).1;
        let late = || manifold.refuses(x, 6) || manifold.overdue();
        if drift <= NEAR || !drift.is_finite() || has_empty_column(&current) || late() {
            break;
        }
        current = masked(polar(&current), support);
    }
    current
}

/// Returns a feasible point near x with its pattern, or, as an error, the last point of the iteration.
///
/// The method decreases ½‖XᵀX − I‖² on the pattern. Unlike Newton's method it converges from far away, and
/// ends at a stationary point if there is no feasible point nearby (Moré, Lect. Notes Math. 630, 1978).
fn settled(manifold: &Manifold<'_>, mut x: Array2<f64>) -> Result<Array2<f64>, Array2<f64>> {
    if has_empty_column(&x) {
        return Err(x);
    }
    let gap_of = |x: &Array2<f64>| gap(x, manifold.signature, manifold.k.view());
    let (mut error, mut drift) = gap_of(&x);
    let (mut damping, mut slow) = (DAMPING, 0);
    for _ in 0..STEPS {
        let late = || manifold.refuses(&x, 6) || manifold.overdue();
        if drift <= FINISHED || !drift.is_finite() || slow == SLOW_STEPS || late() {
            break;
        }
        let late = |work| manifold.late(work) || manifold.overdue();
        let next = &x + &pattern_step(&x, &x, (&error, damping), GRADIENTS, late);
        let (after, left) = gap_of(&next);
        let most = if drift > CLOSE { SLOW } else { SLOW_CLOSE };
        slow = if left > most * drift { slow + 1 } else { 0 };
        damping *= match left / drift {
            ratio if ratio < 0.5 => 0.2,
            ratio if ratio < 0.8 => 1.0,
            ratio if ratio < 1.0 => 2.0,
            _ => 4.0,
        };
        if left < drift {
            (x, error, drift) = (next, after, left);
        }
    }
    let near = drift <= FINISHED && !has_empty_column(&x);
    let restored = near.then(|| manifold.restore_unless(&x, &|| manifold.overdue()));
    restored.flatten().ok_or(x)
}

/// Like [`project_on_support`], but on a part of the support if there is no point on the whole. Where the
/// Levenberg–Marquardt method stops, every two columns with a large product lose the smallest entry on their
/// common rows. After [`ROUNDS`] rounds, or if the task is overdue, every row keeps its largest entry only.
/// None if a column has no entries or loses all of them.
pub(crate) fn project_near_support(
    manifold: &Manifold<'_>,
    x: &Array2<f64>,
    support: &Array2<f64>,
) -> Option<Array2<f64>> {
    let few = |small: &Manifold<'_>, [x, support]: [Array2<f64>; 2]| project_near_support(small, &x, &support);
    if let Some(found) = manifold.on_few_rows(support, [x, support], few) {
        return found;
    }
    let mut current = begun(manifold, x, support);
    for _ in 0..ROUNDS {
        current = match settled(manifold, current) {
            Ok(projected) => return Some(projected),
            Err(current) => current,
        };
        if has_empty_column(&current) || current.iter().any(|v| !v.is_finite()) {
            return None;
        }
        if manifold.overdue() || !drop_conflicts(&mut current) {
            break;
        }
    }
    disjoint(masked(x.clone(), support))
}

/// Drops the smallest entry on the common rows of every two conflicting columns; returns false if none.
fn drop_conflicts(x: &mut Array2<f64>) -> bool {
    let gram = product(x.t(), x.view());
    let pairs = || (0..gram.ncols()).flat_map(|a| (0..a).map(move |b| (a, b)));
    let worst = pairs().fold(0.0f64, |m, pair| m.max(gram[pair].abs()));
    let mut dropped = false;
    for (a, b) in pairs().filter(|&pair| gram[pair].abs() > CONFLICT * worst) {
        let common = (0..x.nrows()).filter(|&i| x[[i, a]] != 0.0 && x[[i, b]] != 0.0);
        let entries = common.flat_map(|i| [(i, a), (i, b)]);
        if let Some(entry) = entries.min_by(|&p, &q| x[p].abs().total_cmp(&x[q].abs())) {
            x[entry] = 0.0;
            dropped = true;
        }
    }
    dropped
}

/// Returns X with only the largest entry of every row, in unit columns; None if a column is empty.
fn disjoint(mut x: Array2<f64>) -> Option<Array2<f64>> {
    for mut row in x.outer_iter_mut() {
        let largest = row.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        let owner = row.iter().position(|v| v.abs() == largest);
        let zeros = row.iter_mut().enumerate();
        zeros.filter(|&(k, _)| Some(k) != owner).for_each(|(_, v)| *v = 0.0);
    }
    for mut column in x.columns_mut() {
        let length = column.dot(&column).sqrt();
        if !(length > 0.0) {
            return None;
        }
        column /= length;
    }
    Some(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{Clock, TaskWork};
    use crate::manifold::drift;
    use crate::signature::Signature;
    use crate::start;
    use ndarray::array;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use std::time::Instant;

    fn orthonormality(x: &Array2<f64>) -> f64 {
        let signature = Signature::stiefel(x.nrows());
        drift(x.view(), &signature, Array2::eye(x.ncols()).view())
    }

    #[test]
    fn a_support_that_holds_no_point_nearby_loses_entries() {
        let signature = Signature::stiefel(30);
        let manifold = Manifold::new(&signature, Array2::eye(10), None);
        let mut lost = 0;
        for seed in 0..20 {
            let q = start::random(30, 10, seed);
            let y = q.mapv(|v| if v.abs() < 0.25 { 0.0 } else { v });
            if has_empty_column(&y) {
                continue;
            }
            lost += usize::from(project_on_support(&manifold, &q, &y).is_none());
            let x = project_near_support(&manifold, &q, &y).unwrap();
            assert!(orthonormality(&x) < 1e-11, "{seed}");
            assert_eq!(x, masked(x.clone(), &y), "{seed}");
        }
        assert!(lost > 5, "{lost}");
    }

    #[test]
    fn a_support_that_holds_a_point_is_kept() {
        let signature = Signature::stiefel(30);
        let manifold = Manifold::new(&signature, Array2::eye(4), None);
        let q = start::random(30, 4, 3);
        let y = q.mapv(|v| if v.abs() < 0.1 { 0.0 } else { v });
        let x = project_near_support(&manifold, &q, &y).unwrap();
        assert!(orthonormality(&x) < 1e-12);
        assert!(x.iter().zip(&y).all(|(x, y)| (*x == 0.0) == (*y == 0.0)));
        assert_eq!(project_on_support(&manifold, &q, &y), Some(x));
    }

    #[test]
    fn most_supports_of_columns_that_share_few_rows_are_kept() {
        let (n, r) = (120, 20);
        let signature = Signature::stiefel(n);
        let manifold = Manifold::new(&signature, Array2::eye(r), None);
        let mut kept = 0;
        for seed in 0..10 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            // Rotations of pairs of rows let supports grow and keep the columns orthonormal.
            let mut q = Array2::eye(n).slice(ndarray::s![.., ..r]).to_owned();
            for _ in 0..110 {
                let (i, j) = (rng.random_range(0..n), rng.random_range(0..n));
                let (sin, cos) = rng.random_range(0.1..1.4f64).sin_cos();
                if i != j {
                    let (a, b) = (q.row(i).to_owned(), q.row(j).to_owned());
                    q.row_mut(i).assign(&(&a * cos + &b * sin));
                    q.row_mut(j).assign(&(&b * cos - &a * sin));
                }
            }
            let noisy = q.mapv(|v| v * (1.0 + rng.random_range(-0.02..0.02)));
            let x = project_near_support(&manifold, &noisy, &q).unwrap();
            assert!(orthonormality(&x) < 1e-12, "{seed}");
            assert_eq!(x, masked(x.clone(), &q), "{seed}");
            kept += usize::from(x.iter().zip(&q).all(|(x, q)| (*x == 0.0) == (*q == 0.0)));
        }
        assert!(kept >= 5, "{kept}");
    }

    /// Neighbouring columns share one row, where an entry must vanish; projections converge to that slowly.
    #[test]
    fn a_pattern_without_points_is_given_up_soon() {
        let (n, r) = (90, 6);
        let signature = Signature::stiefel(n);
        let clock = Clock::new(Instant::now(), None);
        let work = TaskWork::new(&clock, f64::INFINITY);
        let manifold = Manifold::new(&signature, Array2::eye(r), Some(&work));
        // Column k has the rows 15k to 15k + 15; the last row is shared with column k + 1.
        let y = Array2::from_shape_fn((n, r), |(i, k)| {
            let place = i as f64 - 15.0 * k as f64;
            f64::from(u8::from((0.0..=15.0).contains(&place))) * 0.25
        });
        assert!(project_on_support(&manifold, &y, &y).is_none());
        // With a try at every step where the gap is small: 1074 products with an r×r matrix.
        let products = work.spent() / (n * r * r) as f64;
        assert!(products < 900.0, "{products}");
    }

    #[test]
    fn a_task_that_is_overdue_ends_with_disjoint_columns() {
        let signature = Signature::stiefel(40);
        let clock = Clock::new(Instant::now(), None);
        let q = start::random(40, 8, 3);
        let nonzeros = |x: &Array2<f64>| x.iter().filter(|v| **v != 0.0).count();
        for (units, late) in [(1e-3, true), (1e9, false)] {
            let work = TaskWork::new(&clock, units);
            work.spend(1.0);
            let manifold = Manifold::new(&signature, Array2::eye(8), Some(&work));
            let x = project_near_support(&manifold, &(1.1 * &q), &q).unwrap();
            assert!(orthonormality(&x) < 1e-14);
            assert_eq!(nonzeros(&x), if late { 40 } else { 320 });
        }
    }

    #[test]
    fn an_empty_column_has_no_point() {
        let y = array![[1.0, 0.0], [0.0, 0.0]];
        let signature = Signature::stiefel(2);
        let manifold = Manifold::new(&signature, Array2::eye(2), None);
        assert_eq!(project_near_support(&manifold, &y, &y), None);
    }
}
