//! The end of every pair solve: entries that are known become exact, the rows feasible, and F must fall.

use super::dot;
use crate::numerics::TIE;
use crate::pair::Scratch;
use crate::penalty::{Form, Penalty, each_form};
use crate::simd::LANES;
use pulp::Simd;

/// A move of two rows as a pair solver proposes it.
pub(super) struct Proposal<'a> {
    /// Global indices.
    pub(super) rows: (usize, usize),
    /// The rows as they are, r entries each.
    pub(super) old: [&'a [f64]; 2],
    /// The new rows, padded.
    pub(super) new: [&'a mut [f64]; 2],
    /// V − I.
    pub(super) e: [[f64; 2]; 2],
    /// Change of f, and the sum of the magnitudes of its terms.
    pub(super) smooth: (f64, f64),
}

impl Proposal<'_> {
    /// Makes the new rows exact and measures them: the change of F, none if it could be rounding.
    #[inline(always)]
    pub(super) fn settle(self, penalty: &Penalty, scratch: &Scratch, proximal: f64) -> Option<f64> {
        let [new_x, new_y] = self.new;
        scratch.settle(new_x, new_y);
        let [x, y] = self.old;
        let (new_x, new_y) = (&mut new_x[..x.len()], &mut new_y[..y.len()]);
        let [(hx, hx_size), (hy, hy_size)] = each_form!(penalty, form => {
            form.tidy(new_x);
            form.tidy(new_y);
            [
                form.change(self.rows.0, x, new_x),
                form.change(self.rows.1, y, new_y),
            ]
        });
        let change = self.smooth.0 + (hx + hy);
        let size = self.smooth.1 + hx_size + hy_size;
        let proximal = 0.5 * proximal * squares(self.e);
        (change + proximal < -TIE * size && change.is_finite()).then_some(change)
    }
}

#[inline(always)]
fn squares(e: [[f64; 2]; 2]) -> f64 {
    e[0][0] * e[0][0] + e[0][1] * e[0][1] + e[1][0] * e[1][0] + e[1][1] * e[1][1]
}

/// dist(I, argmin)² of two rows whose best move is I + `e`.
#[inline(always)]
pub(super) fn distance<S: Simd>(simd: S, e: [[f64; 2]; 2], x: &[f64], y: &[f64]) -> f64 {
    let gram = [dot(simd, x, x), dot(simd, y, y), dot(simd, x, y)];
    let Some(h) = mirror(gram, x.len()) else {
        return squares(e);
    };
    let v = [[1.0 + e[0][0], e[0][1]], [e[1][0], 1.0 + e[1][1]]];
    let other = |i: usize, j: usize| v[i][0] * h[0][j] + v[i][1] * h[1][j] - if i == j { 1.0 } else { 0.0 };
    squares(e).min(squares([[other(0, 0), other(0, 1)], [other(1, 0), other(1, 1)]]))
}

/// The reflection that leaves two parallel rows where they are: with V also VH is a best move.
#[inline(always)]
fn mirror([xx, yy, xy]: [f64; 3], columns: usize) -> Option<[[f64; 2]; 2]> {
    let rounding = (columns + LANES) as f64 * f64::EPSILON;
    if xx * yy - xy * xy > rounding * (xx * yy) {
        return None;
    }
    let (a, b) = (xx.sqrt(), yy.sqrt().copysign(xy));
    let size = a.hypot(b);
    let (c, s) = (a / size, b / size);
    // 2uuᵀ − I for the direction u = (c, s) of the rows.
    let (cosine, sine) = ((c - s) * (c + s), 2.0 * c * s);
    Some([[cosine, sine], [sine, -cosine]])
}
