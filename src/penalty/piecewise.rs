//! The pair problem for any piecewise linear penalty, straight from its definition.
//!
//! Breakpoints are the angles at which an entry crosses a level; between two of them h is
//! `A cosθ + B sinθ + const`, so the smooth part plus h is a [`Trig`] whose minima are known. Every arc of both
//! branches is solved: O(r²) per pair, exact, and the yardstick of the faster kernels.

use super::Penalty;
use crate::pair::{Best, CirclePair, Scratch, Trig};

/// Entries of one column after the turn.
#[inline(always)]
fn entries(c: f64, s: f64, reflect: bool, x: f64, y: f64) -> (f64, f64) {
    let w = c * y - s * x;
    (c * x + s * y, if reflect { -w } else { w })
}

pub(super) fn circle<P: Penalty>(
    penalty: &P,
    pair: &CirclePair<'_>,
    scratch: &mut Scratch,
) -> Best {
    scratch.vanishing.clear();
    let (i, j) = pair.rows;
    // A column with two zeros keeps them, and its price (this leaves the padding out, too).
    let columns = || {
        pair.x
            .iter()
            .zip(pair.y)
            .enumerate()
            .filter(|(_, (x, y))| **x != 0.0 || **y != 0.0)
    };
    let identity = pair.rotation.a
        + pair.rotation.p
        + columns()
            .map(|(k, (&x, &y))| penalty.entry(i, k, x) + penalty.entry(j, k, y))
            .sum::<f64>();
    let mut best = Best::IDENTITY;
    let mut chosen: Vec<u32> = Vec::new();
    for (f, reflect) in [(pair.rotation, false), (pair.reflection, true)] {
        // (angle, column, level is zero)
        let mut breakpoints: Vec<(f64, usize, bool)> = Vec::new();
        for (k, (&x, &y)) in columns() {
            // First entry c·x + s·y, second ±(c·y − s·x): c·α + s·β = level.
            let second = if reflect { (-y, x) } else { (y, -x) };
            for (alpha, beta) in [(x, y), second] {
                let length = alpha.hypot(beta);
                for &level in penalty.levels() {
                    if length > 0.0 && level.abs() <= length {
                        let middle = beta.atan2(alpha);
                        let half = (level / length).acos();
                        for angle in [middle - half, middle + half] {
                            let turned = angle.rem_euclid(std::f64::consts::TAU);
                            breakpoints.push((turned, k, level == 0.0));
                        }
                    }
                }
            }
        }
        breakpoints.sort_unstable_by(|l, r| l.0.total_cmp(&r.0));
        // Values at the breakpoints, with every entry that vanishes there exactly zero.
        let near = 16.0 * f64::EPSILON;
        for &(angle, ..) in &breakpoints {
            let (s, c) = angle.sin_cos();
            let vanishing: Vec<u32> = breakpoints
                .iter()
                .filter(|b| {
                    // Angles are on a circle: 0 and 2π are one.
                    let gap = (b.0 - angle).abs();
                    b.2 && gap.min(std::f64::consts::TAU - gap) <= near * 4.0
                })
                .map(|b| b.1 as u32)
                .collect();
            let mut value = f.value(c, s) - identity;
            for (k, (&x, &y)) in columns() {
                let (mut u, mut w) = entries(c, s, reflect, x, y);
                if vanishing.contains(&(k as u32)) {
                    if u.abs() < w.abs() {
                        u = 0.0;
                    } else {
                        w = 0.0;
                    }
                }
                value += penalty.entry(i, k, u) + penalty.entry(j, k, w);
            }
            if value < best.value {
                best.offer(value, c, s, reflect, Some(0));
                chosen = vanishing;
            }
        }
        // Arcs: the slopes at the middle hold on the whole arc.
        let count = breakpoints.len().max(1);
        for m in 0..count {
            let (from, to) = match breakpoints.len() {
                0 => (0.0, std::f64::consts::TAU),
                len if m + 1 == len => (breakpoints[m].0, breakpoints[0].0 + std::f64::consts::TAU),
                _ => (breakpoints[m].0, breakpoints[m + 1].0),
            };
            let (s, c) = (0.5 * (from + to)).sin_cos();
            let (mut arc, mut offset) = (f, 0.0);
            for (k, (&x, &y)) in columns() {
                let (u, w) = entries(c, s, reflect, x, y);
                let sign = if reflect { -1.0 } else { 1.0 };
                let (du, dw) = (penalty.slope(i, k, u), penalty.slope(j, k, w));
                arc.a += du * x + sign * dw * y;
                arc.b += du * y - sign * dw * x;
                offset += penalty.entry(i, k, u) - du * u + penalty.entry(j, k, w) - dw * w;
            }
            if !offset.is_finite() {
                continue;
            }
            for &(c, s) in arc.minima().points() {
                let angle = s.atan2(c).rem_euclid(std::f64::consts::TAU);
                let inside = [angle, angle + std::f64::consts::TAU]
                    .iter()
                    .any(|&t| t > from && t < to);
                // Without breakpoints the one arc is the whole circle, its ends included.
                if inside || breakpoints.is_empty() {
                    let value = Trig::value(&arc, c, s) + offset - identity;
                    if value < best.value {
                        best.offer(value, c, s, reflect, None);
                        chosen.clear();
                    }
                }
            }
        }
    }
    scratch.vanishing.extend_from_slice(&chosen);
    best
}
