//! Sums in double precision of samples minus a shift, the means of the first block.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::product::{PANEL, Panels, add_product, panels};
use super::triangle::{self, Strip};
use super::{Block, Read, Summary, are_finite};
use crate::internal::CHUNK_ROWS;
use crate::threads::Threads;

/// Weight, means and second moments about the means.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Fast {
    pub(super) weight: f64,
    /// The means of the first block.
    shift: Vec<f64>,
    /// The means of all samples minus `shift`.
    offset: Vec<f64>,
    /// `Σ_i w_i (x_i − mean)(x_i − mean)ᵀ`; empty before the first sample.
    pub(super) strips: Vec<Strip>,
}

impl Fast {
    pub(super) fn new(n: usize) -> Self {
        Self { weight: 0.0, shift: vec![0.0; n], offset: vec![0.0; n], strips: Vec::new() }
    }

    /// Creates the sums from weight, means and second moments about the means.
    pub(super) fn of(weight: f64, mean: Vec<f64>, strips: Vec<Strip>) -> Self {
        Self { weight, offset: vec![0.0; mean.len()], shift: mean, strips }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.strips.is_empty()
    }

    pub(super) fn add(&mut self, block: &Block, threads: &Threads) {
        let n = self.shift.len();
        let weights = block.weights.as_deref();
        let weight = weights.map_or(block.rows as f64, |w| w.iter().sum());
        if weight == 0.0 {
            return;
        }
        if self.weight == 0.0 {
            self.shift = means(block, &vec![0.0; n], weight, threads);
            self.offset.fill(0.0);
        }
        let mean = means(block, &self.shift, weight, threads);
        let whole = self.weight + weight;
        let step: Vec<f64> = mean.iter().zip(&self.offset).map(|(m, o)| m - o).collect();
        // The step between the means counts as one more sample.
        let pull = (self.weight * (weight / whole)).sqrt();
        let last: Vec<f64> = step.iter().map(|s| pull * s).collect();
        let centred = self.centred(block, &mean, &last, threads);
        if self.is_empty() {
            self.strips = triangle::zeros(n);
        }
        let all: Vec<_> = panels(&(0..n)).map(|p| Some(centred.panel(p))).collect();
        triangle::change(&mut self.strips, block.rows * n * n / 2, threads, |own, sums| {
            let (own, from) = (panels(own), panels(own).start);
            add_product((sums, None), (all.len() - from) * PANEL, &all[own], &all[from..], 0);
        });
        for (offset, step) in self.offset.iter_mut().zip(&step) {
            *offset += step * (weight / whole);
        }
        self.weight = whole;
    }

    /// Returns the rows minus shift and mean, times the roots of their weights, followed by the row `last`.
    fn centred(&self, block: &Block, mean: &[f64], last: &[f64], threads: &Threads) -> Panels {
        let n = mean.len();
        let roots: Option<Vec<f64>> = block.weights.as_ref().map(|weights| weights.iter().map(|w| w.sqrt()).collect());
        let mut out = Panels::zeros(block.rows + 1, n);
        out.fill(threads, |panel, out| {
            let columns = panel * PANEL..n.min((panel + 1) * PANEL);
            let (shift, mean) = (&self.shift[columns.clone()], &mean[columns.clone()]);
            let rows = block.entries.chunks_exact(n);
            for (i, (out, row)) in out.iter_mut().zip(rows).enumerate() {
                let entries = row[columns.clone()].iter().zip(shift).zip(mean);
                for (out, ((x, shift), mean)) in out.iter_mut().zip(entries) {
                    *out = (x - shift) - mean;
                }
                if let Some(roots) = &roots {
                    out.iter_mut().for_each(|out| *out *= roots[i]);
                }
            }
            out[block.rows][..columns.len()].copy_from_slice(&last[columns]);
        });
        out
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
        let step: Vec<f64> =
            (0..n).map(|i| (other.shift[i] - self.shift[i]) + (other.offset[i] - self.offset[i])).collect();
        let pull = self.weight * (other.weight / whole);
        let mut pairs: Vec<_> = self.strips.iter_mut().zip(&other.strips).collect();
        threads.for_chunks(&mut pairs, 1, n * n, |_, pairs| {
            for (own, more) in pairs {
                let (rows, width) = (own.rows.clone(), own.width(n));
                let sums = Arc::make_mut(&mut own.entries).chunks_mut(width);
                for ((sums, more), i) in sums.zip(more.entries.chunks(width)).zip(rows.clone()) {
                    let factor = pull * step[i];
                    for ((sum, more), step) in sums.iter_mut().zip(more).zip(&step[rows.start..]) {
                        *sum += more + factor * step;
                    }
                }
            }
        });
        for (offset, step) in self.offset.iter_mut().zip(&step) {
            *offset += step * (other.weight / whole);
        }
        self.weight = whole;
    }

    pub(super) fn read(&mut self, center: bool, scale: bool, keep: bool) -> Read {
        let (n, weight) = (self.shift.len(), self.weight);
        let mean: Vec<f64> = self.shift.iter().zip(&self.offset).map(|(s, o)| s + o).collect();
        let variances = triangle::diagonal(&self.strips, n);
        let squares = variances.iter().zip(&mean).map(|(v, m)| v + weight * (m * m)).collect();
        let about_zero = |strip: &mut Strip| {
            let (rows, width) = (strip.rows.clone(), strip.width(n));
            for (sums, i) in Arc::make_mut(&mut strip.entries).chunks_mut(width).zip(rows.clone()) {
                let factor = weight * mean[i];
                let pairs = sums.iter_mut().zip(&mean[rows.start..]);
                pairs.for_each(|(sum, mean)| *sum += factor * mean);
            }
        };
        let sums = self.strips.iter_mut().map(|strip| {
            let mut read = strip.clone();
            if !keep {
                strip.entries = Default::default();
            }
            if !center {
                about_zero(&mut read);
            }
            read
        });
        Summary { weight, mean: mean.clone(), variances, squares }.read(center, scale, sums)
    }

    /// Returns whether the sums are those of n features.
    pub(super) fn is_consistent(&self, n: usize) -> bool {
        [&self.shift, &self.offset].iter().all(|v| v.len() == n && are_finite(v))
            && self.weight.is_finite()
            && self.weight >= 0.0
            && self.is_empty() == (self.weight == 0.0)
            && triangle::are_strips(&self.strips, n)
    }
}

/// Returns the means of all rows minus `shift`.
fn means(block: &Block, shift: &[f64], weight: f64, threads: &Threads) -> Vec<f64> {
    let n = shift.len();
    let weights = block.weights.as_deref();
    let mut parts = vec![vec![0.0; n]; block.rows.div_ceil(CHUNK_ROWS)];
    threads.for_chunks(&mut parts, 1, block.entries.len(), |k, parts| {
        let rows = block.entries.chunks_exact(n).enumerate().skip(k * CHUNK_ROWS);
        for (i, row) in rows.take(CHUNK_ROWS) {
            let times = weights.map_or(1.0, |w| w[i]);
            for ((sum, x), shift) in parts[0].iter_mut().zip(row).zip(shift) {
                *sum += times * (x - shift);
            }
        }
    });
    let mut mean = vec![0.0; n];
    for sums in &parts {
        mean.iter_mut().zip(sums).for_each(|(mean, sum)| *mean += sum);
    }
    mean.iter_mut().for_each(|mean| *mean /= weight);
    mean
}
