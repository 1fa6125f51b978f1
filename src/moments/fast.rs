//! Sums in double precision of samples less a shift, the means of the first block.

use std::ops::Range;

use faer::MatRef;
use ndarray::Array2;

use super::triangle::{self, Strip};
use super::{BLOCK_ROWS, Block, Read, deviations};
use crate::Threads;

/// Rows whose sums one thread forms; fixed, so that results do not depend on the number of threads.
const CHUNK: usize = 256;

/// Weight, means and second moments about the means.
#[derive(Debug, Clone)]
pub(super) struct Fast {
    pub(super) weight: f64,
    /// The means of the first block.
    shift: Vec<f64>,
    /// The means of all samples less `shift`.
    offset: Vec<f64>,
    /// `Σ_i w_i (x_i − mean)(x_i − mean)ᵀ`; no strip before the first sample.
    strips: Vec<Strip>,
}

impl Fast {
    pub(super) fn new(n: usize) -> Self {
        Self {
            weight: 0.0,
            shift: vec![0.0; n],
            offset: vec![0.0; n],
            strips: Vec::new(),
        }
    }

    /// Samples of this weight with these means, and their second moments about them.
    pub(super) fn of(weight: f64, mean: Vec<f64>, strips: Vec<Strip>) -> Self {
        Self {
            weight,
            offset: vec![0.0; mean.len()],
            shift: mean,
            strips,
        }
    }

    pub(super) fn add(&mut self, block: Block, threads: &Threads) {
        let n = self.shift.len();
        let (mut rows, weights) = (block.entries, block.weights);
        let weight = weights
            .as_ref()
            .map_or(block.rows as f64, |w| w.iter().sum());
        if weight == 0.0 {
            return;
        }
        let weights = weights.as_deref();
        if self.weight == 0.0 {
            self.shift = means(&mut rows, &vec![0.0; n], weights, weight, threads);
            self.offset.fill(0.0);
        }
        let mean = means(&mut rows, &self.shift, weights, weight, threads);
        subtract(&mut rows, &mean, weights, threads);
        let whole = self.weight + weight;
        let step: Vec<f64> = mean.iter().zip(&self.offset).map(|(m, o)| m - o).collect();
        // The step between the means is one more sample.
        let pull = (self.weight * (weight / whole)).sqrt();
        if pull > 0.0 {
            rows.extend(step.iter().map(|s| pull * s));
        }
        self.add_products(&rows, threads);
        for (offset, step) in self.offset.iter_mut().zip(&step) {
            *offset += step * (weight / whole);
        }
        self.weight = whole;
    }

    fn add_products(&mut self, rows: &[f64], threads: &Threads) {
        let n = self.shift.len();
        let count = rows.len() / n;
        let rows = MatRef::from_row_major_slice(rows, count, n);
        if self.strips.is_empty() {
            self.strips = triangle::zeros(n);
        }
        let work = count * n * n / 2;
        triangle::change(&mut self.strips, work, threads, |own, sums| {
            triangle::add_square(sums, rows, own);
        });
    }

    pub(super) fn merge(&mut self, other: &Self, threads: &Threads) {
        if other.weight == 0.0 {
            return;
        }
        if self.weight == 0.0 {
            *self = other.clone();
            return;
        }
        let n = self.shift.len();
        let whole = self.weight + other.weight;
        let step: Vec<f64> = (0..n)
            .map(|i| (other.shift[i] - self.shift[i]) + (other.offset[i] - self.offset[i]))
            .collect();
        let pull = self.weight * (other.weight / whole);
        let others = &other.strips;
        let height = self.strips[0].rows.len();
        triangle::change(&mut self.strips, n * n, threads, |own, sums| {
            let more = others[own.start / height].entries.chunks(n - own.start);
            for ((sums, more), i) in sums.chunks_mut(n - own.start).zip(more).zip(own.clone()) {
                let factor = pull * step[i];
                for ((sum, more), step) in sums.iter_mut().zip(more).zip(&step[own.start..]) {
                    *sum += more + factor * step;
                }
            }
        });
        for (offset, step) in self.offset.iter_mut().zip(&step) {
            *offset += step * (other.weight / whole);
        }
        self.weight = whole;
    }

    pub(super) fn read(&mut self, center: bool, scale: bool, keep: bool) -> Read {
        let n = self.shift.len();
        let weight = self.weight;
        let mean: Vec<f64> = self
            .shift
            .iter()
            .zip(&self.offset)
            .map(|(s, o)| s + o)
            .collect();
        let deviation = scale.then(|| {
            let variances = triangle::diagonal(&self.strips, n);
            let squares: Vec<f64> = variances
                .iter()
                .zip(&mean)
                .map(|(v, m)| v + weight * (m * m))
                .collect();
            deviations(&variances, &squares, weight)
        });
        let mut negative = Array2::zeros((n, n));
        let about_zero = |rows: &Range<usize>, sums: &[f64]| -> Vec<f64> {
            let width = n - rows.start;
            let row = |(i, sums): (usize, &[f64])| {
                let factor = weight * mean[rows.start + i];
                let pairs = sums.iter().zip(&mean[rows.start..]);
                pairs.map(|(s, m)| s + factor * m).collect::<Vec<f64>>()
            };
            sums.chunks(width).enumerate().flat_map(row).collect()
        };
        for strip in &mut self.strips {
            let (rows, width) = (strip.rows.clone(), strip.width(n));
            let scaled = deviation.as_deref();
            if center {
                triangle::write_negative(&mut negative, rows, (&strip.entries, width), scaled);
            } else {
                let block = about_zero(&rows, &strip.entries);
                triangle::write_negative(&mut negative, rows, (&block, width), scaled);
            }
            if !keep {
                strip.entries = Default::default();
            }
        }
        Read {
            mean: scaled(mean, deviation.as_deref()),
            negative,
            deviation,
        }
    }

    /// Weight, vectors and triangles, as in [`State`](super::State).
    pub(super) fn parts(&self) -> (f64, Vec<Vec<f64>>, Vec<Vec<f64>>) {
        let vectors = vec![self.shift.clone(), self.offset.clone()];
        if self.strips.is_empty() {
            return (self.weight, vectors, Vec::new());
        }
        let triangle = triangle::packed(&self.strips, self.shift.len());
        (self.weight, vectors, vec![triangle])
    }

    /// The sums of these parts; None if they do not fit together.
    pub(super) fn from_parts(
        n: usize,
        weight: f64,
        vectors: &[Vec<f64>],
        triangles: &[Vec<f64>],
    ) -> Option<Self> {
        let [shift, offset] = vectors else {
            return None;
        };
        let strips = match triangles {
            [] if weight == 0.0 => Vec::new(),
            [triangle] if weight > 0.0 => triangle::unpacked(n, triangle)?,
            _ => return None,
        };
        (shift.len() == n && offset.len() == n).then(|| Self {
            weight,
            shift: shift.clone(),
            offset: offset.clone(),
            strips,
        })
    }
}

/// Means divided by the deviations, if there are some.
pub(super) fn scaled(mut mean: Vec<f64>, deviation: Option<&[f64]>) -> Vec<f64> {
    for (mean, deviation) in mean.iter_mut().zip(deviation.unwrap_or_default()) {
        *mean /= deviation;
    }
    mean
}

/// Subtracts `shift` from all rows and returns the means of the result.
fn means(
    rows: &mut [f64],
    shift: &[f64],
    weights: Option<&[f64]>,
    weight: f64,
    threads: &Threads,
) -> Vec<f64> {
    let n = shift.len();
    let mut parts: Vec<(&mut [f64], Vec<f64>)> = rows
        .chunks_mut(CHUNK * n)
        .map(|part| (part, vec![0.0; n]))
        .collect();
    threads.for_chunks(&mut parts, 1, BLOCK_ROWS * n, |k, part| {
        for (rows, sums) in part {
            for (i, row) in rows.chunks_exact_mut(n).enumerate() {
                let times = weights.map_or(1.0, |w| w[k * CHUNK + i]);
                for ((x, s), sum) in row.iter_mut().zip(shift).zip(sums.iter_mut()) {
                    *x -= s;
                    *sum += times * *x;
                }
            }
        }
    });
    let mut mean = vec![0.0; n];
    for (_, sums) in &parts {
        mean.iter_mut()
            .zip(sums)
            .for_each(|(mean, sum)| *mean += sum);
    }
    mean.iter_mut().for_each(|mean| *mean /= weight);
    mean
}

/// Subtracts the means from all rows and multiplies these by the roots of their weights.
fn subtract(rows: &mut [f64], mean: &[f64], weights: Option<&[f64]>, threads: &Threads) {
    let n = mean.len();
    let work = rows.len();
    threads.for_chunks(rows, CHUNK * n, work, |k, part| {
        for (i, row) in part.chunks_exact_mut(n).enumerate() {
            let root = weights.map_or(1.0, |w| w[k * CHUNK + i].sqrt());
            for (x, mean) in row.iter_mut().zip(mean) {
                *x = (*x - mean) * root;
            }
        }
    });
}
