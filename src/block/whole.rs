//! All rows of a block at once, where there is no penalty.

use ndarray::Array2;

use super::{Block, Curvature, Outcome, PairOptions};
use crate::linalg;
use crate::numerics::TIE;

impl Block {
    /// One step for the whole block without a penalty: V minimises the linear part exactly, by a
    /// singular value decomposition (OBCD paper, section on k > 2), after the row curvature has been
    /// bounded by its largest eigenvalue; exact when that is a multiple of the identity. Of rotations alone
    /// it is the nearest one.
    ///
    /// The step is taken if it lowers f, proximal term included.
    pub fn turn_all(&mut self, options: PairOptions<'_>) -> Outcome {
        let (b, r, stride) = (self.len(), self.r, self.stride);
        let rows = |data: &[f64]| Array2::from_shape_fn((b, r), |(k, l)| data[k * stride + l]);
        let (z, g) = (rows(&self.x), rows(&self.gradient));
        let m = Array2::from_shape_fn((b, b), |(k, l)| self.curvature[k * b + l]);
        let zd = options.metric.map_or_else(|| z.clone(), |d| z.dot(&d));
        let s = zd.dot(&z.t());
        let gz = g.dot(&z.t());
        let largest = |a: &Array2<f64>| {
            let (values, _) = linalg::symmetric_eigen(a.view());
            (values[0], values[b - 1])
        };
        let ((m_low, m_high), (s_low, s_high)) = (largest(&m), largest(&s));
        let c = options.shift * self.mixed.sign(self.rows[0]);
        let bound = (m_low - c).abs().max((m_high - c).abs()) * s_low.abs().max(s_high.abs());
        // Bounding M by its largest eigenvalue needs S ⪰ 0; otherwise the scalar bound is used.
        let mut linear = if options.curvature == Curvature::Exact && s_low >= -TIE * s_high.abs() {
            &gz - &(m_high * &s)
        } else {
            let mut linear = &gz - &(c * &s);
            linear.diag_mut().mapv_inplace(|v| v - bound);
            linear
        };
        linear.diag_mut().mapv_inplace(|v| v - options.proximal);
        let v = if self.rotations {
            linalg::nearest_rotation((-linear).view())
        } else {
            -linalg::polar_factor(linear.view())
        };
        let mut e = v.clone();
        e.diag_mut().mapv_inplace(|v| v - 1.0);
        let (first, second) = (&e * &gz, &e.dot(&s).dot(&e.t()) * &m);
        let change = first.sum() + 0.5 * second.sum();
        let proximal = 0.5 * options.proximal * e.iter().map(|v| v * v).sum::<f64>();
        // V is known to rounding, so that next to I what it changes is rounding of GZᵀ.
        let terms = first.iter().chain(&second).chain(&gz);
        let size = terms.map(|v| v.abs()).sum::<f64>();
        let mut outcome = Outcome { visited: (b * (b - 1) / 2) as u64, ..Outcome::default() };
        if !(change + proximal < -TIE * size) {
            return outcome;
        }
        let turned = v.dot(&z);
        let mut step = &turned - &z;
        if let Some(metric) = options.metric {
            step = step.dot(&metric);
        }
        let gradient = g + m.dot(&step);
        for k in 0..b {
            for l in 0..r {
                self.x[k * stride + l] = turned[[k, l]];
                self.gradient[k * stride + l] = gradient[[k, l]];
            }
            self.moved[k] = true;
            self.zero[k] = turned.row(k).iter().all(|&v| v == 0.0);
        }
        outcome.change = change;
        outcome.updates = 1;
        outcome
    }
}

#[cfg(test)]
mod tests;
