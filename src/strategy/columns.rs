//! Sparsifying rotations: two columns of X turn by the angle that is globally best for h.
//!
//! `X(:, {k, l}) ← X(:, {k, l}) Vᵀ` keeps XᵀX = I, and f = ½⟨X, C X⟩ as well, so the pair problem is h
//! alone as a function of one angle: the same problem as for two rows, of length n. It is solved
//! exactly by the penalty's own pair solver. O(n log n) a pair.

use ndarray::{Array2, s};
use pulp::{Arch, Simd, WithSimd};

use super::oracle::Oracle;
use crate::pair::{CirclePair, LANES, Scratch, TIE, Trig};
use crate::penalty::{Form, Penalty, Weights};

/// Whether columns may turn: f must not notice, and h must treat rows and columns alike.
pub(super) fn applies<P: Penalty>(oracle: &Oracle<'_, P>) -> bool {
    oracle.is_plain_quadratic()
        && oracle.columns() > 1
        && matches!(
            oracle.problem.penalty.form(),
            Form::Count(_) | Form::Absolute(Weights::Scalar(_))
        )
}

/// Sweeps over all pairs of columns until none turns, `limit` times at most; returns the change of
/// h. X must be one for which [`applies`] holds.
pub(super) fn sweep<P: Penalty>(oracle: &Oracle<'_, P>, x: &mut Array2<f64>, limit: usize) -> f64 {
    Arch::new().dispatch(Sweep { oracle, x, limit })
}

struct Sweep<'a, 'b, P: Penalty> {
    oracle: &'a Oracle<'b, P>,
    x: &'a mut Array2<f64>,
    limit: usize,
}

impl<P: Penalty> WithSimd for Sweep<'_, '_, P> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        turn_columns(simd, self.oracle, self.x, self.limit)
    }
}

#[inline(always)]
fn turn_columns<S: Simd, P: Penalty>(
    simd: S,
    oracle: &Oracle<'_, P>,
    x: &mut Array2<f64>,
    limit: usize,
) -> f64 {
    let (n, r) = x.dim();
    let penalty = oracle.problem.penalty;
    // Columns as rows, padded: pair solvers take whole vectors.
    let mut turned = Array2::zeros((r, n.div_ceil(LANES) * LANES));
    turned.slice_mut(s![.., ..n]).assign(&x.t());
    let mut scratch = Scratch::new(n);
    let mut total = 0.0;
    for _ in 0..limit {
        let before = total;
        for k in 0..r {
            for l in k + 1..r {
                let (a, b) = (turned.row(k).to_vec(), turned.row(l).to_vec());
                let best = penalty.circle(
                    simd,
                    &CirclePair {
                        rows: (0, 1),
                        x: &a,
                        y: &b,
                        rotation: Trig::default(),
                        reflection: Trig::default(),
                    },
                    &mut scratch,
                );
                if !(best.value < 0.0) {
                    continue;
                }
                let v = best.turn.matrix();
                let mut new_a: Vec<f64> = a
                    .iter()
                    .zip(&b)
                    .map(|(x, y)| v[0][0] * x + v[0][1] * y)
                    .collect();
                let mut new_b: Vec<f64> = a
                    .iter()
                    .zip(&b)
                    .map(|(x, y)| v[1][0] * x + v[1][1] * y)
                    .collect();
                for &i in &scratch.vanishing {
                    let i = i as usize;
                    if new_a[i].abs() < new_b[i].abs() {
                        new_a[i] = 0.0;
                    } else {
                        new_b[i] = 0.0;
                    }
                }
                let (da, sa) = penalty.change(0, &a, &new_a);
                let (db, sb) = penalty.change(1, &b, &new_b);
                if da + db < -TIE * (sa + sb) {
                    turned
                        .row_mut(k)
                        .iter_mut()
                        .zip(&new_a)
                        .for_each(|(t, &v)| *t = v);
                    turned
                        .row_mut(l)
                        .iter_mut()
                        .zip(&new_b)
                        .for_each(|(t, &v)| *t = v);
                    total += da + db;
                }
            }
        }
        if !(before - total > 1e-9 * penalty.value(turned.view()).abs()) {
            break;
        }
    }
    x.assign(&turned.slice(s![.., ..n]).t());
    total
}
