//! Sums without rounding before the last bits, in two doubles each, of exact products (`product.rs`).
//!
//! The entries of a column are divided by a power of two that bounds them. The product of two such numbers is
//! a multiple of 2⁻⁴², with exact sums, plus a remainder up to 2⁻⁴³, with sums rounded in double precision.
//! Columns of numbers of 22 bits have no remainder: one multiply-add suffices for their products.
//!
//! Columns far from 0 are summed about a number of few bits near their middle, whose products are exact.

use std::ops::Range;
use std::sync::Arc;

use pulp::{Simd, WithSimd};
use serde::{Deserialize, Serialize};

use super::fast::Fast;
use super::pair::{Pair, exponent, power, two_product};
use super::product::{ANCHOR, DEPTH as ROWS, Factor, PANEL, add_product, panels};
use super::triangle::{self, Strip};
use super::{Block, Read, Summary};
use crate::internal::simd;
use crate::threads::Threads;

/// Panels of columns of a strip whose sums are formed at once; both kinds of sums take 0.4 MB.
const PANELS: usize = 12;

/// Adding and subtracting this rounds to a multiple of 2⁻²¹: products of such numbers are multiples of 2⁻⁴².
const TO_SHORT: f64 = 1.5 * (1u64 << 31) as f64;

/// A column is summed about its middle if the middle exceeds its range by this factor: differences are exact.
const FAR: f64 = 4.0;

/// Least exponent of the unit of a column; columns of smaller entries keep this unit.
const LEAST_EXPONENT: i32 = -900;

/// Sums over the samples z.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Exact {
    /// `Σ_i w_i (z_i, 1)`.
    totals: Vec<Pair>,
    /// `Σ_i w_i z_i z_iᵀ`, and the low parts; empty before the first sample.
    pub(super) high: Vec<Strip>,
    pub(super) low: Vec<Strip>,
}

/// A panel of a factor, each column divided by its unit; a zero panel has no rows.
#[derive(Debug, Default)]
struct Panel {
    rows: Vec<Row>,
    /// Rounding errors of the products with the weights; empty if all are zero.
    rest: Vec<Row>,
    /// The least power of two above every entry, for every column.
    units: Row,
    /// The sum of every column.
    sums: [Pair; PANEL],
    /// True if all entries are multiples of 2⁻²¹.
    short: bool,
}

/// A row of a panel.
type Row = [f64; PANEL];

/// Numbers t about which samples are summed, and `Σ_i w_i (z_i − t/2)`.
struct Middle {
    of: Vec<f64>,
    totals: Vec<Pair>,
}

impl Exact {
    pub(super) fn new(n: usize) -> Self {
        Self { totals: vec![Pair::default(); n + 1], high: Vec::new(), low: Vec::new() }
    }

    fn features(&self) -> usize {
        self.totals.len() - 1
    }

    pub(super) fn is_empty(&self) -> bool {
        self.high.is_empty()
    }

    pub(super) fn weight(&self) -> f64 {
        self.totals[self.features()].high
    }

    pub(super) fn add(&mut self, block: &Block, threads: &Threads) {
        let n = self.features();
        if self.is_empty() {
            (self.high, self.low) = (triangle::zeros(n), triangle::zeros(n));
        }
        for (k, part) in block.entries.chunks(ROWS * n).enumerate() {
            let weights = block.weights.as_ref().map(|weights| &weights[k * ROWS..]);
            let of = middle(part, n);
            let left = factor(part, &of, None, threads);
            let right = weights.map(|weights| factor(part, &of, Some(weights), threads));
            let right = right.as_ref().unwrap_or(&left);
            let rows = part.len() / n;
            let weight = match weights {
                Some(weights) => weights[..rows].iter().fold(Pair::default(), |sum, &w| sum.plus(w)),
                None => Pair::default().plus(rows as f64),
            };
            let sums = right.iter().flat_map(|panel| panel.sums);
            let totals: Vec<Pair> = sums.zip(&of).map(|(sum, &t)| sum + weight * (0.5 * t)).collect();
            for ((own, total), &t) in self.totals.iter_mut().zip(&totals).zip(&of) {
                *own = *own + *total + weight * (0.5 * t);
            }
            self.totals[n] = self.totals[n] + weight;
            self.add_products(&left, right, &Middle { of, totals }, threads);
        }
    }

    /// Adds `LᵀR`, with the correction from sums about `middle` to sums about 0.
    fn add_products(&mut self, left: &[Panel], right: &[Panel], middle: &Middle, threads: &Threads) {
        let n = self.features();
        let mut both: Vec<_> = self.high.iter_mut().zip(&mut self.low).collect();
        threads.for_chunks(&mut both, 1, ROWS * n * n / 2, |_, strips| {
            let mut sums = Sums::default();
            let unit = |of: &[Panel], column: usize| of[column / PANEL].units[column % PANEL];
            for (high, low) in strips {
                let (rows, width) = (high.rows.clone(), high.width(n));
                let (high, low) = (Arc::make_mut(&mut high.entries), Arc::make_mut(&mut low.entries));
                for start in (rows.start..n).step_by(PANELS * PANEL) {
                    let columns = start..n.min(start + PANELS * PANEL);
                    let own = panels(&rows);
                    sums.form(&left[own.clone()], &right[panels(&columns)], start / PANEL - own.start);
                    simd::arch().dispatch(Accumulate {
                        sums: &sums,
                        middle,
                        rows: (rows.clone(), rows.clone().map(|i| unit(left, i)).collect()),
                        columns: (columns.clone(), columns.map(|j| unit(right, j)).collect()),
                        high,
                        low,
                        width,
                        first: start - rows.start,
                    });
                }
            }
        });
    }

    pub(super) fn merge(&mut self, other: &Self, threads: &Threads) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            *self = other.clone();
            return;
        }
        for (total, more) in self.totals.iter_mut().zip(&other.totals) {
            *total = *total + *more;
        }
        let work = self.features().pow(2);
        let others = other.high.iter().zip(&other.low);
        let mut all: Vec<_> = self.high.iter_mut().zip(&mut self.low).zip(others).collect();
        threads.for_chunks(&mut all, 1, work, |_, strips| {
            for ((high, low), (more_high, more_low)) in strips {
                let (high, low) = (Arc::make_mut(&mut high.entries), Arc::make_mut(&mut low.entries));
                let own = high.iter_mut().zip(low);
                let others = more_high.entries.iter().zip(&*more_low.entries);
                for ((high, low), (&more_high, &more_low)) in own.zip(others) {
                    add_to(high, low, Pair { high: more_high, low: more_low });
                }
            }
        });
    }

    /// Returns the sums of the same samples in double precision.
    pub(super) fn to_fast(&self) -> Fast {
        let means = self.means();
        let strips = self.high.iter().zip(&self.low);
        let strips = strips.map(|(high, low)| centred_strip(high, low, &means, &self.totals)).collect();
        Fast::of(self.weight(), self.mean(), strips)
    }

    fn means(&self) -> Vec<Pair> {
        let n = self.features();
        let (weight, rest_of_weight) = (self.totals[n].high, self.totals[n].low);
        let mean = |total: &Pair| {
            let high = total.high / weight;
            // Remainder of the division.
            let left = two_product(high, weight);
            let rest = total.low - high * rest_of_weight;
            Pair { high, low: ((total.high - left.high) - left.low + rest) / weight }
        };
        self.totals[..n].iter().map(mean).collect()
    }

    fn mean(&self) -> Vec<f64> {
        let (weight, totals) = (self.weight(), &self.totals[..self.features()]);
        totals.iter().map(|t| (t.high + t.low) / weight).collect()
    }

    pub(super) fn read(&mut self, center: bool, scale: bool, keep: bool) -> Read {
        let (n, means) = (self.features(), self.means());
        let totals = &self.totals;
        let (weight, mean) = (self.weight(), self.mean());
        let squares = triangle::diagonal(&self.high, n);
        let low = triangle::diagonal(&self.low, n);
        let variances: Vec<f64> = (0..n)
            .map(|i| {
                let square = Pair { high: squares[i], low: low[i] };
                centred(square, means[i], totals[i])
            })
            .collect();
        let sums = self.high.iter_mut().zip(&mut self.low).map(|(high, low)| {
            let read = match center {
                true => centred_strip(high, low, &means, totals),
                false => high.clone(),
            };
            if !keep {
                (high.entries, low.entries) = Default::default();
            }
            read
        });
        Summary { weight, mean, variances, squares }.read(center, scale, sums)
    }

    /// Returns whether the sums are those of n features.
    pub(super) fn is_consistent(&self, n: usize) -> bool {
        self.totals.len() == n + 1
            && self.totals.iter().all(|total| total.high.is_finite() && total.low.is_finite())
            && self.weight() >= 0.0
            && [&self.high, &self.low].iter().all(|strips| triangle::are_strips(strips, n))
            && self.high.len() == self.low.len()
    }
}

impl Middle {
    /// Adds the correction from sums about the middle to sums about 0 to row `row`.
    #[inline(always)]
    fn accumulate(&self, high: &mut [f64], low: &mut [f64], row: usize, columns: Range<usize>) {
        let (of, total) = (self.of[row], self.totals[row]);
        let (others, totals) = (&self.of[columns.clone()], &self.totals[columns]);
        if of == 0.0 && others.iter().all(|&t| t == 0.0) {
            return;
        }
        let pairs = high.iter_mut().zip(low.iter_mut());
        for (((high, low), &other), &other_total) in pairs.zip(others).zip(totals) {
            add_to(high, low, other_total * of + total * other);
        }
    }
}

/// Sums of products for a range of rows and of columns, row by row, and their low parts.
#[derive(Default)]
struct Sums {
    width: usize,
    high: Vec<f64>,
    low: Vec<f64>,
}

impl Sums {
    fn form(&mut self, left: &[Panel], right: &[Panel], diagonal: usize) {
        let width = right.len() * PANEL;
        self.width = width;
        let (high, low) = (&mut self.high, &mut self.low);
        for sums in [&mut *high, &mut *low] {
            sums.clear();
            sums.resize(left.len() * PANEL * width, 0.0);
        }
        let (rows, columns) = (factors(left, |p| &p.rows), factors(right, |p| &p.rows));
        let short = left.iter().chain(right).all(|panel| panel.short);
        let rest = (!short).then_some(low.as_mut_slice());
        add_product((high, rest), width, &rows, &columns, diagonal);
        add_product((low, None), width, &rows, &factors(right, |p| &p.rest), diagonal);
    }

    /// Adds row `k` to sums, for factors with the units `unit` and `units`.
    #[inline(always)]
    fn accumulate(&self, high: &mut [f64], low: &mut [f64], k: usize, unit: f64, units: &[f64]) {
        let range = k * self.width..(k + 1) * self.width;
        let more = self.high[range.clone()].iter().zip(&self.low[range]);
        let pairs = high.iter_mut().zip(low.iter_mut());
        for (((high, low), scale), (more_high, more_low)) in pairs.zip(units).zip(more) {
            let more = Pair { high: more_high * unit * scale, low: more_low * unit * scale };
            add_to(high, low, more);
        }
    }
}

fn factors(panels: &[Panel], of: fn(&Panel) -> &Vec<Row>) -> Vec<Factor<'_>> {
    let there = |panel| Some(of(panel).as_slice()).filter(|rows| !rows.is_empty());
    panels.iter().map(there).collect()
}

/// Adds a piece of a product to sums.
struct Accumulate<'a> {
    sums: &'a Sums,
    middle: &'a Middle,
    /// Rows and columns with their units.
    rows: (Range<usize>, Vec<f64>),
    columns: (Range<usize>, Vec<f64>),
    /// Target sums, with rows of length `width`; `first` is the position of the first column in a row.
    high: &'a mut [f64],
    low: &'a mut [f64],
    width: usize,
    first: usize,
}

impl WithSimd for Accumulate<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let ((rows, own), (columns, units)) = (self.rows, self.columns);
        let high = self.high.chunks_mut(self.width);
        let low = self.low.chunks_mut(self.width);
        for (k, (high, low)) in high.zip(low).take(rows.len()).enumerate() {
            let (high, low) = (&mut high[self.first..], &mut low[self.first..]);
            self.sums.accumulate(high, low, k, own[k], &units);
            self.middle.accumulate(high, low, rows.start + k, columns.clone());
        }
    }
}

#[inline(always)]
fn add_to(high: &mut f64, low: &mut f64, more: Pair) {
    let total = Pair { high: *high, low: *low } + more;
    (*high, *low) = (total.high, total.low);
}

/// Returns numbers of few bits near the middle of columns that are far from 0, and 0 for other columns.
fn middle(rows: &[f64], n: usize) -> Vec<f64> {
    let mut ends = vec![(f64::INFINITY, f64::NEG_INFINITY); n];
    for row in rows.chunks_exact(n) {
        for ((least, most), &x) in ends.iter_mut().zip(row) {
            (*least, *most) = (least.min(x), most.max(x));
        }
    }
    let middle = |(least, most): (f64, f64)| {
        let range = most - least;
        let (middle, unit) = (least + 0.5 * range, power(exponent(range)));
        if range == 0.0 {
            least
        } else if middle.abs() >= FAR * unit {
            (middle / unit).round() * unit
        } else {
            0.0
        }
    };
    ends.into_iter().map(middle).collect()
}

/// Returns the rows minus `of`, times the weights if there are any.
fn factor(rows: &[f64], of: &[f64], weights: Option<&[f64]>, threads: &Threads) -> Vec<Panel> {
    let n = of.len();
    let mut panels = Vec::new();
    panels.resize_with(n.div_ceil(PANEL), Panel::default);
    threads.for_chunks(&mut panels, 1, rows.len(), |k, panels| {
        let columns = k * PANEL..n.min((k + 1) * PANEL);
        for panel in panels {
            panel.rows = (rows.chunks_exact(n))
                .map(|row| {
                    let mut out = [0.0; PANEL];
                    let entries = row[columns.clone()].iter().zip(&of[columns.clone()]);
                    let pairs = out.iter_mut().zip(entries);
                    pairs.for_each(|(out, (x, t))| *out = x - t);
                    out
                })
                .collect();
            simd::arch().dispatch(Divide { panel, weights });
        }
    });
    panels
}

/// Multiplies the rows of a panel by weights, and divides the columns by their units.
struct Divide<'a> {
    panel: &'a mut Panel,
    weights: Option<&'a [f64]>,
}

impl WithSimd for Divide<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Panel { rows, rest, units, sums, short } = self.panel;
        if let Some(weights) = self.weights {
            rest.resize(rows.len(), [0.0; PANEL]);
            for ((row, rest), &w) in rows.iter_mut().zip(&mut *rest).zip(weights) {
                for (x, rest) in row.iter_mut().zip(rest) {
                    let product = two_product(*x, w);
                    (*x, *rest) = (product.high, product.low);
                }
            }
        }
        let mut largest = [0.0f64; PANEL];
        for row in &*rows {
            for (most, x) in largest.iter_mut().zip(row) {
                *most = most.max(x.abs());
            }
        }
        let exponents = largest.map(|x| exponent(x).max(LEAST_EXPONENT));
        *units = exponents.map(power);
        let factors = exponents.map(|e| power(-e));
        let (mut high, mut low) = ([ANCHOR; PANEL], [0.0; PANEL]);
        let (mut more_bits, mut rounded) = ([0.0; PANEL], [0.0; PANEL]);
        // Indices let the compiler make vectors of all columns.
        #[allow(clippy::needless_range_loop)]
        for row in &mut *rows {
            for j in 0..PANEL {
                let x = row[j] * factors[j];
                let sum = high[j] + x;
                low[j] += x - (sum - high[j]);
                more_bits[j] += (x - ((x + TO_SHORT) - TO_SHORT)).abs();
                (row[j], high[j]) = (x, sum);
            }
        }
        #[allow(clippy::needless_range_loop)]
        for row in &mut *rest {
            for j in 0..PANEL {
                row[j] *= factors[j];
                low[j] += row[j];
                rounded[j] += row[j].abs();
            }
        }
        *sums = std::array::from_fn(|j| {
            let sum = Pair::default().plus((high[j] - ANCHOR) * units[j]);
            sum.plus(low[j] * units[j])
        });
        let [is_short, is_whole] = [more_bits, rounded].map(|sizes| sizes == [0.0; PANEL]);
        *short = is_short && is_whole;
        if is_whole {
            rest.clear();
        }
        if largest == [0.0; PANEL] {
            rows.clear();
        }
    }
}

/// Returns `Σ x_a x_b − mean_a Σ x_b`.
fn centred(sum: Pair, mean: Pair, total: Pair) -> f64 {
    let outer = two_product(mean.high, total.high);
    let low = outer.low + mean.high * total.low + mean.low * total.high;
    sum.plus(-outer.high).plus(-low).high
}

/// Returns a strip of the second moments about the means.
fn centred_strip(high: &Strip, low: &Strip, means: &[Pair], totals: &[Pair]) -> Strip {
    let (n, start) = (means.len(), high.rows.start);
    let (mut strip, width) = (triangle::zero(high.rows.clone(), n), high.width(n));
    let rows = Arc::make_mut(&mut strip.entries).chunks_mut(width);
    for (i, row) in high.rows.clone().zip(rows) {
        for j in i..n {
            let at = (i - start) * width + (j - start);
            let sum = Pair { high: high.entries[at], low: low.entries[at] };
            row[j - start] = centred(sum, means[i], totals[j]);
        }
    }
    strip
}
