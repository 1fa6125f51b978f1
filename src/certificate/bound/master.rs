//! The Lagrangian of Σ u_tu_tᵀ ⪯ I over the sparse vectors known so far.
//!
//! Columns come in classes, one for every kind of sparse vector that is allowed, with r_c of them each. Over weights w ≥ 0 of known vectors
//!
//! ```text
//! max Σ_j w_j u_jᵀCu_j   subject to   Σ_j w_j u_ju_jᵀ ⪯ I,   Σ_{j in c} w_j ≤ r_c
//! ```
//!
//! is followed along its central path: with a barrier of weight μ on S = I − Σ w u uᵀ, on w and on the slack
//! s_c, the multipliers are Λ = μS⁻¹ ≻ 0 and φ_c = μ/s_c. New vectors with uᵀ(C − Λ)u > φ_c are asked for at these
//! centred multipliers, which move far less from one request to the next than the optimal ones of the known
//! vectors (Gondzio, González-Brevis and Munari 2013). Newton's method in w; a step costs O(J²k + J³ + n³) for J vectors.

use ndarray::Array2;

use super::maximum::Candidate;
use crate::budget::GoOn;
use crate::linalg::Cholesky;

/// Newton steps at most, and the squared decrement that is small enough.
const NEWTON: usize = 100;
const CENTRED: f64 = 0.01;

/// Most known vectors; beyond it those of least weight are forgotten.
const KNOWN: usize = 360;

/// Share of the way to the boundary that a step may go.
const INSIDE: f64 = 0.95;

/// A known vector of a class.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) class: usize,
    pub(super) rows: Vec<usize>,
    pub(super) entries: Vec<f64>,
    /// uᵀCu.
    pub(super) value: f64,
    pub(super) weight: f64,
}

/// The problem over the known vectors.
#[derive(Debug, Clone)]
pub(super) struct Master {
    /// r_c.
    pub(super) classes: Vec<f64>,
    pub(super) known: Vec<Known>,
    /// Multiply-adds so far.
    pub(super) work: f64,
    n: usize,
}

/// A point of the central path.
pub(super) struct Centre {
    /// Λ.
    pub(super) lambda: Array2<f64>,
    /// φ_c.
    pub(super) multipliers: Vec<f64>,
}

/// What the barrier is made of at some weights.
struct Barrier {
    value: f64,
    inverse: Array2<f64>,
    slacks: Vec<f64>,
}

impl Master {
    pub(super) fn new(n: usize, classes: Vec<f64>, known: Vec<Known>) -> Self {
        Self {
            classes,
            known,
            work: 0.0,
            n,
        }
    }

    /// Σ w uᵀCu.
    pub(super) fn value(&self) -> f64 {
        self.known.iter().map(|u| u.weight * u.value).sum()
    }

    /// Adds a vector with a small weight, unless a near copy is known.
    pub(super) fn add(
        &mut self,
        c: &Array2<f64>,
        class: usize,
        new: &Candidate,
        centre: &Centre,
        mu: f64,
    ) {
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
        // Both constraints that the vector uses stay inside, and its own barrier balances what it gains.
        let room = 0.2 * (mu / level.max(f64::MIN_POSITIVE)).min(self.classes[class]);
        self.known.push(Known {
            class,
            rows: new.rows.clone(),
            entries: new.entries.clone(),
            value,
            weight: room,
        });
        if self.barrier(&self.weights(), mu).is_none() {
            self.known.pop();
        }
    }

    /// Forgets the vectors of least weight if there are too many.
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

    /// The barrier at weights w; None outside of the constraints.
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
        Some(Barrier {
            value: value + mu * (logs + log_determinant),
            inverse,
            slacks,
        })
    }

    /// Moves the weights to the central path at μ, or as near to it as there is time; None if even the present ones are outside.
    pub(super) fn centre(&mut self, mu: f64, go_on: GoOn<'_>) -> Option<Centre> {
        let mut w = self.weights();
        let mut at = self.barrier(&w, mu)?;
        let (rows, vectors) = (self.n as f64, w.len() as f64);
        for _ in 0..NEWTON {
            if !go_on() {
                break;
            }
            self.work += 2.0 * rows.powi(3) + rows * vectors * vectors + vectors.powi(3) / 3.0;
            let Some((step, decrement)) = self.newton(&w, &at, mu) else {
                break;
            };
            // Relative changes; the first bound keeps w > 0.
            let least = step.iter().fold(0.0, |m: f64, &v| m.min(v));
            let mut length = if least < 0.0 {
                (INSIDE / -least).min(1.0)
            } else {
                1.0
            };
            let next = loop {
                let trial: Vec<f64> = w
                    .iter()
                    .zip(&step)
                    .map(|(w, d)| w * (1.0 + length * d))
                    .collect();
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
        Some(Centre {
            lambda: at.inverse.mapv(|v| mu * v),
            multipliers: at.slacks.iter().map(|s| mu / s).collect(),
        })
    }

    /// Newton's step relative to w, and the squared decrement.
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
                let q: f64 = u
                    .rows
                    .iter()
                    .zip(&u.entries)
                    .map(|(&row, a)| a * image[row])
                    .sum();
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

/// uᵀAu.
pub(super) fn quadratic(a: &Array2<f64>, rows: &[usize], entries: &[f64]) -> f64 {
    let mut sum = 0.0;
    for (&i, u) in rows.iter().zip(entries) {
        let image: f64 = rows.iter().zip(entries).map(|(&j, v)| a[[i, j]] * v).sum();
        sum += u * image;
    }
    sum
}
