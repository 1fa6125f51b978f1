//! The Lagrangian of Σ u_tu_tᵀ ⪯ I over the sparse vectors known so far.
//!
//! Class c holds r_c columns with the same allowed supports. The problem in weights w ≥ 0 of known vectors
//!
//! ```text
//! max Σ_j w_j u_jᵀCu_j   subject to   Σ_j w_j u_ju_jᵀ ⪯ I,   Σ_{j in c} w_j ≤ r_c
//! ```
//!
//! is solved along its central path. With a barrier of weight μ on S = I − Σ w u uᵀ, on w and on the slack
//! s_c, the multipliers are Λ = μS⁻¹ ≻ 0 and φ_c = μ/s_c. They define the new vectors: uᵀ(C − Λ)u > φ_c.
//! These centred multipliers move far less from one request to the next than the optimal ones of the known
//! vectors (Gondzio, González-Brevis and Munari 2013). A Newton step costs O(J²k + J³ + n³) for J vectors.

use ndarray::Array2;

use super::maximum::Candidate;
use crate::internal::{Cholesky, numerics};
use crate::objective::GoOn;

/// Squared Newton decrement at which the weights count as centred.
const CENTRED: f64 = 0.01;

/// Largest number of known vectors; above it, about two thirds remain, those of largest weight.
const KNOWN: usize = 360;

/// Largest step, as a share of the way to the boundary w = 0.
const INSIDE: f64 = 0.95;

/// Known sparse vector of a class.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) class: usize,
    pub(super) rows: Vec<usize>,
    pub(super) entries: Vec<f64>,
    /// uᵀCu.
    pub(super) value: f64,
    pub(super) weight: f64,
}

/// Problem in the weights of the known vectors.
#[derive(Debug, Clone)]
pub(super) struct Master {
    /// Number of columns r_c of each class.
    pub(super) classes: Vec<f64>,
    pub(super) known: Vec<Known>,
    /// Multiply-adds so far.
    pub(super) work: f64,
    n: usize,
}

/// Point of the central path.
pub(super) struct Centre {
    /// Λ.
    pub(super) lambda: Array2<f64>,
    /// φ_c.
    pub(super) multipliers: Vec<f64>,
}

/// Barrier at given weights: its value, S⁻¹ and the slacks s_c.
struct Barrier {
    value: f64,
    inverse: Array2<f64>,
    slacks: Vec<f64>,
}

impl Master {
    pub(super) fn new(n: usize, classes: Vec<f64>, known: Vec<Known>) -> Self {
        Self { classes, known, work: 0.0, n }
    }

    /// Returns Σ w uᵀCu.
    pub(super) fn value(&self) -> f64 {
        self.known.iter().map(|u| u.weight * u.value).sum()
    }

    /// Adds a vector with a small weight, unless a near copy is known.
    pub(super) fn add(&mut self, c: &Array2<f64>, class: usize, new: &Candidate, centre: &Centre, mu: f64) {
        let same = |u: &&Known| u.class == class && u.rows == new.rows;
        let near = |u: &Known| {
            let inner: f64 = u.entries.iter().zip(&new.entries).map(|(a, b)| a * b).sum();
            1.0 - inner.abs() < 1e-9
        };
        if self.known.iter().filter(same).any(near) {
            return;
        }
        let value = quadratic(c, &new.rows, &new.entries);
        let level = quadratic(&centre.lambda, &new.rows, &new.entries) + centre.multipliers[class];
        // Well inside both constraints: S − w u uᵀ ≻ 0 if w uᵀΛu < μ, and s_c > w if w φ_c < μ.
        let weight = 0.2 * (mu / level.max(f64::MIN_POSITIVE)).min(self.classes[class]);
        self.known.push(Known { class, rows: new.rows.clone(), entries: new.entries.clone(), value, weight });
        if self.barrier(&self.weights(), mu).is_none() {
            self.known.pop();
        }
    }

    /// Removes the vectors of least weight if more than `KNOWN` are known.
    pub(super) fn forget(&mut self) {
        if self.known.len() > KNOWN {
            let mut sizes: Vec<f64> = self.known.iter().map(|u| u.weight).collect();
            sizes.sort_by(|a, b| b.total_cmp(a));
            let least = sizes[KNOWN * 2 / 3];
            self.known.retain(|u| u.weight >= least);
        }
    }

    fn weights(&self) -> Vec<f64> {
        self.known.iter().map(|u| u.weight).collect()
    }

    /// Returns the barrier at weights w, or None if w violates a constraint.
    fn barrier(&self, w: &[f64], mu: f64) -> Option<Barrier> {
        let mut s = Array2::eye(self.n);
        let mut slacks = self.classes.clone();
        let (mut value, mut logs) = (0.0, 0.0);
        for (u, &w) in self.known.iter().zip(w) {
            if w <= 0.0 {
                return None;
            }
            logs += w.ln();
            value += w * u.value;
            slacks[u.class] -= w;
            for (&i, a) in u.rows.iter().zip(&u.entries) {
                for (&j, b) in u.rows.iter().zip(&u.entries) {
                    s[[i, j]] -= w * a * b;
                }
            }
        }
        if slacks.iter().any(|&s| s <= 0.0) {
            return None;
        }
        logs += slacks.iter().map(|s| s.ln()).sum::<f64>();
        let (inverse, log_determinant) = Cholesky::new(s.view())?.inverse()?;
        Some(Barrier { value: value + mu * (logs + log_determinant), inverse, slacks })
    }

    /// Moves the weights to the central path at μ while `go_on` allows; None if they are infeasible at first.
    pub(super) fn centre(&mut self, mu: f64, go_on: GoOn<'_>) -> Option<Centre> {
        let mut w = self.weights();
        let mut at = self.barrier(&w, mu)?;
        let (rows, vectors) = (self.n as f64, w.len() as f64);
        for _ in 0..numerics::STEPS {
            if !go_on() {
                break;
            }
            self.work += 2.0 * rows.powi(3) + rows * vectors * vectors + vectors.powi(3) / 3.0;
            let Some((step, decrement)) = self.newton(&w, &at, mu) else {
                break;
            };
            // The step is relative to w; the bound on its length keeps w > 0.
            let least = step.iter().fold(0.0, |m: f64, &v| m.min(v));
            let mut length = if least < 0.0 { (INSIDE / -least).min(1.0) } else { 1.0 };
            let next = loop {
                let trial: Vec<f64> = w.iter().zip(&step).map(|(w, d)| w * (1.0 + length * d)).collect();
                match self.barrier(&trial, mu) {
                    _ if !go_on() => break None,
                    Some(next) if next.value >= at.value + 1e-4 * length * mu * decrement => {
                        break Some((trial, next));
                    }
                    _ if length < 1e-8 => break None,
                    _ => length *= 0.5,
                }
            };
            let Some((trial, next)) = next else { break };
            (w, at) = (trial, next);
            if decrement < CENTRED {
                break;
            }
        }
        for (u, w) in self.known.iter_mut().zip(&w) {
            u.weight = *w;
        }
        Some(Centre { lambda: at.inverse.mapv(|v| mu * v), multipliers: at.slacks.iter().map(|s| mu / s).collect() })
    }

    /// Returns Newton's step relative to w and the squared decrement, or None if the Hessian is not definite.
    fn newton(&self, w: &[f64], at: &Barrier, mu: f64) -> Option<(Vec<f64>, f64)> {
        let count = self.known.len();
        let images: Vec<Vec<f64>> = (self.known.iter())
            .map(|u| {
                let mut image = vec![0.0; self.n];
                for (&i, a) in u.rows.iter().zip(&u.entries) {
                    let row = at.inverse.row(i);
                    image.iter_mut().zip(row).for_each(|(t, v)| *t += a * v);
                }
                image
            })
            .collect();
        let mut hessian = Array2::zeros((count, count));
        let mut gradient = vec![0.0; count];
        for (i, u) in self.known.iter().enumerate() {
            for (j, image) in images.iter().enumerate().take(i + 1) {
                let q: f64 = u.rows.iter().zip(&u.entries).map(|(&row, a)| a * image[row]).sum();
                let mut h = q * q;
                if i == j {
                    let multiplier = mu / at.slacks[u.class];
                    gradient[i] = w[i] * (u.value - mu * q - multiplier) / mu + 1.0;
                }
                if u.class == self.known[j].class {
                    h += at.slacks[u.class].powi(-2);
                }
                h *= w[i] * w[j];
                hessian[[i, j]] = h + f64::from(i == j);
                hessian[[j, i]] = hessian[[i, j]];
            }
        }
        let mut step = gradient.clone();
        Cholesky::new(hessian.view())?.solve(&mut step);
        let decrement = step.iter().zip(&gradient).map(|(a, b)| a * b).sum();
        Some((step, decrement))
    }
}

/// Returns uᵀAu for the u with these nonzero rows and entries.
pub(super) fn quadratic(a: &Array2<f64>, rows: &[usize], entries: &[f64]) -> f64 {
    let mut sum = 0.0;
    for (&i, u) in rows.iter().zip(entries) {
        let image: f64 = rows.iter().zip(entries).map(|(&j, v)| a[[i, j]] * v).sum();
        sum += u * image;
    }
    sum
}

#[cfg(test)]
mod tests;
