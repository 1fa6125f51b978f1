//! Sums without rounding before the last bits: entries are cut into integers of few bits whose products sum exactly in double
//! precision (Ozaki, Ogita, Oishi and Rump 2012), and sums are kept in two doubles.
//!
//! An entry y is `(2²²·a + b + c)·2^(e−43)`, where 2ᵉ bounds its column, a and b are integers of 22 bits and |c| ≤ ½. The
//! product of two entries is then, in units of the product of their units,
//! `2⁴⁴·aa' + 2²²·(ab' + ba') + bb' + (gc' + cg')` with `g = 2²²·a + b + c/2`. The first three sums are exact, and
//! `ab' + ba' = (a + b)(a' + b') − aa' − bb'` (Karatsuba) costs one product instead of two. The last sum is below 2⁻⁴³ of the
//! first, and is rounded at 2⁻⁹⁶ of that. So numbers of 22 bits take one product of one triangle, those of 44 bits take 3 and
//! all others 5.
//!
//! Columns that are far from 0 are summed about a number of few bits in their middle, with which products are exact.

use std::ops::Range;
use std::sync::Arc;

use ndarray::Array2;
use pulp::{Simd, WithSimd};

use super::fast::{Fast, scaled};
use super::product::{Factor, PANEL, add_product, panels};
use super::triangle::{self, Strip};
use super::{Block, Read, deviations};
use crate::{Threads, simd};

/// Bits of an integer: a column has entries below 2²¹ of the first, and 2²² is the unit of the first in that of the second.
const BITS: i32 = 22;

/// Rows that are multiplied at once: sums of 512 products of numbers up to 2²² have at most 53 bits.
const ROWS: usize = 512;

/// Panels of columns of a strip whose sums are formed at once: with four kinds of sums they take 0.8 MB.
const PANELS: usize = 12;

/// Adding and subtracting this rounds a number below 2⁵¹ to an integer.
const TO_INTEGER: f64 = 1.5 * (1u64 << 52) as f64;

/// A column is summed about its middle if this is so many times its range: then the differences are exact.
const FAR: f64 = 4.0;

/// Least exponent of the largest entry of a column; of smaller entries the first bits are zero.
const LEAST_EXPONENT: i32 = -900;

/// Cuts a double into two of 26 bits (Dekker).
const SPLITTER: f64 = (1u64 << 27) as f64 + 1.0;

/// The sum of two numbers, the second of the size of the rounding of the first.
#[derive(Debug, Clone, Copy, Default)]
struct Pair {
    high: f64,
    low: f64,
}

impl Pair {
    #[inline(always)]
    fn plus(self, other: f64) -> Self {
        let total = two_sum(self.high, other);
        two_sum(total.high, total.low + self.low)
    }
}

impl std::ops::Add for Pair {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.plus(other.high).plus(other.low)
    }
}

impl std::ops::Mul<f64> for Pair {
    type Output = Self;

    #[inline(always)]
    fn mul(self, factor: f64) -> Self {
        let high = two_product(self.high, factor);
        two_sum(high.high, high.low + self.low * factor)
    }
}

/// a + b and its rounding error (Knuth).
#[inline(always)]
fn two_sum(a: f64, b: f64) -> Pair {
    let high = a + b;
    let shown = high - a;
    Pair {
        high,
        low: (a - (high - shown)) + (b - shown),
    }
}

/// a · b and its rounding error (Dekker).
#[inline(always)]
fn two_product(a: f64, b: f64) -> Pair {
    let halves = |x: f64| {
        let high = SPLITTER * x - (SPLITTER * x - x);
        (high, x - high)
    };
    let high = a * b;
    let ((a1, a2), (b1, b2)) = (halves(a), halves(b));
    Pair {
        high,
        low: ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2,
    }
}

/// Sums over the samples z.
#[derive(Debug, Clone)]
pub(super) struct Exact {
    /// `Σ_i w_i (z_i, 1)`.
    totals: Vec<Pair>,
    /// `Σ_i w_i z_i z_iᵀ`, and the low parts; no strip before the first sample.
    high: Vec<Strip>,
    low: Vec<Strip>,
}

/// The panels of one factor.
type Sliced = Vec<Slices>;

/// A panel of one factor in slices, row by row. Slices that are zero are empty.
#[derive(Debug, Default)]
struct Slices {
    /// a, b, a + b, c, and g if it was asked for.
    first: Vec<Row>,
    second: Vec<Row>,
    both: Vec<Row>,
    rest: Vec<Row>,
    whole: Vec<Row>,
    /// `2^(e − 43)` of every column.
    units: Row,
    /// The sum of every column.
    sums: [Pair; PANEL],
}

/// A row of a panel.
type Row = [f64; PANEL];

/// What sums are about: numbers t, and `Σ_i w_i (z_i − t/2)`.
struct Middle {
    of: Vec<f64>,
    totals: Vec<Pair>,
}

impl Exact {
    pub(super) fn new(n: usize) -> Self {
        Self {
            totals: vec![Pair::default(); n + 1],
            high: Vec::new(),
            low: Vec::new(),
        }
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
        let (mut left, mut right) = (sliced(n), block.weights.as_ref().map(|_| sliced(n)));
        for (k, part) in block.entries.chunks(ROWS * n).enumerate() {
            let weights = block.weights.as_ref().map(|weights| &weights[k * ROWS..]);
            let of = middle(part, n);
            cut(&mut left, part, &of, None, threads);
            let mut weight = Pair::default().plus((part.len() / n) as f64);
            if let (Some(right), Some(weights)) = (&mut right, weights) {
                cut(right, part, &of, Some(weights), threads);
                let own = weights.iter().take(part.len() / n);
                weight = own.fold(Pair::default(), |sum, &w| sum.plus(w));
            }
            let factors = [Some(&mut left), right.as_mut()];
            if factors
                .iter()
                .flatten()
                .any(|sliced| sliced.iter().any(|s| !s.rest.is_empty()))
            {
                factors
                    .into_iter()
                    .flatten()
                    .for_each(|sliced| complete(sliced, threads));
            }
            let right = right.as_ref().unwrap_or(&left);
            let sums = right.iter().flat_map(|slices| slices.sums);
            let totals: Vec<Pair> = sums
                .zip(&of)
                .map(|(sum, &t)| sum + weight * (0.5 * t))
                .collect();
            for ((own, total), &t) in self.totals.iter_mut().zip(&totals).zip(&of) {
                *own = *own + *total + weight * (0.5 * t);
            }
            self.totals[n] = self.totals[n] + weight;
            self.add_products(&left, right, &Middle { of, totals }, threads);
        }
    }

    /// Adds `LᵀR` and what moves it from `middle` to 0.
    fn add_products(
        &mut self,
        left: &[Slices],
        right: &[Slices],
        middle: &Middle,
        threads: &Threads,
    ) {
        let n = self.features();
        let mut both: Vec<_> = self.high.iter_mut().zip(&mut self.low).collect();
        threads.for_chunks(&mut both, 1, ROWS * n * n / 2, |_, strips| {
            let mut sums = Sums::default();
            let unit = |of: &[Slices], column: usize| of[column / PANEL].units[column % PANEL];
            for (high, low) in strips {
                let (rows, width) = (high.rows.clone(), high.width(n));
                let (high, low) = (
                    Arc::make_mut(&mut high.entries),
                    Arc::make_mut(&mut low.entries),
                );
                for start in (rows.start..n).step_by(PANELS * PANEL) {
                    let columns = start..n.min(start + PANELS * PANEL);
                    let own = panels(&rows);
                    sums.form(
                        &left[own.clone()],
                        &right[panels(&columns)],
                        start / PANEL - own.start,
                    );
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
        let mut all: Vec<_> = self
            .high
            .iter_mut()
            .zip(&mut self.low)
            .zip(others)
            .collect();
        threads.for_chunks(&mut all, 1, work, |_, strips| {
            for ((high, low), (more_high, more_low)) in strips {
                let (high, low) = (
                    Arc::make_mut(&mut high.entries),
                    Arc::make_mut(&mut low.entries),
                );
                let own = high.iter_mut().zip(low);
                let others = more_high.entries.iter().zip(&*more_low.entries);
                for ((high, low), (&more_high, &more_low)) in own.zip(others) {
                    add_to(
                        high,
                        low,
                        Pair {
                            high: more_high,
                            low: more_low,
                        },
                    );
                }
            }
        });
    }

    /// The same samples, to which others can be added sooner.
    pub(super) fn to_fast(&self) -> Fast {
        let (n, means) = (self.features(), self.means());
        let mut packed = Vec::with_capacity(n * (n + 1) / 2);
        for (high, low) in self.high.iter().zip(&self.low) {
            for i in high.rows.clone() {
                packed.extend(centred_row(high, low, i, &means, &self.totals));
            }
        }
        let strips = triangle::unpacked(n, &self.covered(), &packed).expect("a row for each row");
        Fast::of(self.weight(), self.mean(), strips)
    }

    fn means(&self) -> Vec<Pair> {
        let n = self.features();
        let (weight, rest_of_weight) = (self.totals[n].high, self.totals[n].low);
        let mean = |total: &Pair| {
            let high = total.high / weight;
            // What division leaves of the means.
            let left = two_product(high, weight);
            let rest = total.low - high * rest_of_weight;
            Pair {
                high,
                low: ((total.high - left.high) - left.low + rest) / weight,
            }
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
        let deviation = scale.then(|| {
            let squares = triangle::diagonal(&self.high, n);
            let low = triangle::diagonal(&self.low, n);
            let variances: Vec<f64> = (0..n)
                .map(|i| {
                    let square = Pair {
                        high: squares[i],
                        low: low[i],
                    };
                    centred(square, means[i], totals[i])
                })
                .collect();
            deviations(&variances, &squares, weight)
        });
        let mut negative = Array2::zeros((n, n));
        for (high, low) in self.high.iter_mut().zip(&mut self.low) {
            let (rows, width) = (high.rows.clone(), high.width(n));
            let block = if center {
                let mut block = vec![0.0; rows.len() * width];
                for (k, i) in rows.clone().enumerate() {
                    let row = centred_row(high, low, i, &means, totals);
                    block[k * width + k..][..row.len()].copy_from_slice(&row);
                }
                Arc::new(block)
            } else {
                high.entries.clone()
            };
            let scaled = deviation.as_deref();
            triangle::write_negative(&mut negative, rows, (&block, width), scaled);
            if !keep {
                (high.entries, low.entries) = Default::default();
            }
        }
        Read {
            mean: scaled(mean, deviation.as_deref()),
            negative,
            deviation,
        }
    }

    /// Rows of the triangle that are here.
    pub(super) fn covered(&self) -> Range<usize> {
        triangle::covered(&self.high)
    }

    /// The same samples with the rows of the triangle in `rows` only.
    pub(super) fn within(&self, rows: &Range<usize>) -> Self {
        let [high, low] = [&self.high, &self.low].map(|strips| triangle::within(strips, rows));
        Self {
            totals: self.totals.clone(),
            high,
            low,
        }
    }

    /// Appends the rows of the triangle of `other`, of the same samples.
    pub(super) fn append(&mut self, other: &Self) {
        self.high.extend_from_slice(&other.high);
        self.low.extend_from_slice(&other.low);
    }

    /// Totals and triangles, as in [`State`](super::State).
    pub(super) fn parts(&self) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
        let (high, low) = self.totals.iter().map(|t| (t.high, t.low)).unzip();
        let packed = |strips: &Vec<Strip>| triangle::packed(strips, self.features());
        let triangles = match self.is_empty() {
            true => Vec::new(),
            false => [&self.high, &self.low].map(packed).into(),
        };
        (vec![high, low], triangles)
    }

    /// The sums of these parts; None if they do not fit together.
    pub(super) fn from_parts(
        n: usize,
        totals: &[Vec<f64>],
        rows: &Range<usize>,
        triangles: &[Vec<f64>],
    ) -> Option<Self> {
        let [high_totals, low_totals] = totals else {
            return None;
        };
        let [high, low] = match triangles {
            [] => [Vec::new(), Vec::new()],
            [high, low] => [
                triangle::unpacked(n, rows, high)?,
                triangle::unpacked(n, rows, low)?,
            ],
            _ => return None,
        };
        let fit = [high_totals, low_totals].iter().all(|t| t.len() == n + 1);
        let totals = high_totals.iter().zip(low_totals);
        let totals = totals.map(|(&high, &low)| Pair { high, low }).collect();
        Some(Self { totals, high, low }).filter(|sums| fit && sums.weight() >= 0.0)
    }
}

impl Middle {
    /// Adds, to row `row` of sums about the middle, what makes them sums about 0.
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

/// Sums of products for some rows and columns, row by row: `aᵀa'`, `(a + b)ᵀ(a' + b')`, `bᵀb'`, and `gᵀc' + cᵀg'`.
#[derive(Default)]
struct Sums {
    width: usize,
    first: Vec<f64>,
    both: Vec<f64>,
    second: Vec<f64>,
    rest: Vec<f64>,
    /// Whether a second slice of a factor is not zero.
    mixed: bool,
}

impl Sums {
    fn form(&mut self, left: &[Slices], right: &[Slices], diagonal: usize) {
        let width = right.len() * PANEL;
        self.width = width;
        for sums in [
            &mut self.first,
            &mut self.both,
            &mut self.second,
            &mut self.rest,
        ] {
            sums.clear();
            sums.resize(left.len() * PANEL * width, 0.0);
        }
        let add = |sums: &mut Vec<f64>, of: [fn(&Slices) -> &Vec<Row>; 2]| {
            let [left, right] = [(left, of[0]), (right, of[1])].map(|(slices, of)| {
                let factor = |slices| Some(of(slices).as_slice()).filter(|rows| !rows.is_empty());
                slices.iter().map(factor).collect::<Vec<Factor<'_>>>()
            });
            let there = [&left, &right]
                .iter()
                .all(|of| of.iter().any(Option::is_some));
            if there {
                add_product(sums, width, &left, &right, diagonal);
            }
        };
        add(&mut self.first, [|s| &s.first; 2]);
        self.mixed = left
            .iter()
            .chain(right)
            .any(|slices| !slices.second.is_empty());
        if self.mixed {
            add(&mut self.both, [Slices::sum; 2]);
            add(&mut self.second, [|s| &s.second; 2]);
            add(&mut self.rest, [|s| &s.whole, |s| &s.rest]);
            add(&mut self.rest, [|s| &s.rest, |s| &s.whole]);
        }
    }

    /// Adds row `k` to sums, for factors with the unit `unit` and `units`.
    #[inline(always)]
    fn accumulate(&self, high: &mut [f64], low: &mut [f64], k: usize, unit: f64, units: &[f64]) {
        let range = k * self.width..(k + 1) * self.width;
        let (square, step) = (power(2 * BITS) * unit, power(BITS) * unit);
        let pairs = high.iter_mut().zip(low.iter_mut()).zip(units);
        let pairs = pairs.zip(&self.first[range.clone()]);
        if !self.mixed {
            for (((high, low), scale), first) in pairs {
                let total = Pair {
                    high: *high,
                    low: *low,
                }
                .plus(first * square * scale);
                (*high, *low) = (total.high, total.low);
            }
            return;
        }
        let others = self.both[range.clone()]
            .iter()
            .zip(&self.second[range.clone()])
            .zip(&self.rest[range.clone()]);
        for ((((high, low), scale), first), ((both, second), rest)) in pairs.zip(others) {
            let total = Pair {
                high: *high,
                low: *low,
            }
            .plus(first * square * scale)
            .plus((both - first - second) * step * scale)
            .plus((second + rest) * unit * scale);
            (*high, *low) = (total.high, total.low);
        }
    }
}

/// Adds a piece of a product to sums.
struct Accumulate<'a> {
    sums: &'a Sums,
    middle: &'a Middle,
    /// Rows and columns with their units.
    rows: (Range<usize>, Vec<f64>),
    columns: (Range<usize>, Vec<f64>),
    /// Rows of this length, and where the first column is in them.
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
            self.middle
                .accumulate(high, low, rows.start + k, columns.clone());
        }
    }
}

#[inline(always)]
fn add_to(high: &mut f64, low: &mut f64, more: Pair) {
    let total = Pair {
        high: *high,
        low: *low,
    } + more;
    (*high, *low) = (total.high, total.low);
}

fn sliced(n: usize) -> Sliced {
    (0..n.div_ceil(PANEL)).map(|_| Slices::default()).collect()
}

/// Numbers of few bits in the middle of columns that are far from 0, and 0 for others.
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

/// Cuts the rows less `of`, times the weights if there are some.
fn cut(
    sliced: &mut [Slices],
    rows: &[f64],
    of: &[f64],
    weights: Option<&[f64]>,
    threads: &Threads,
) {
    let n = of.len();
    threads.for_chunks(sliced, 1, rows.len(), |panel, slices| {
        let columns = panel * PANEL..n.min((panel + 1) * PANEL);
        for slices in slices {
            slices.first.clear();
            slices.first.extend(rows.chunks_exact(n).map(|row| {
                let mut out = [0.0; PANEL];
                let entries = row[columns.clone()].iter().zip(&of[columns.clone()]);
                let pairs = out.iter_mut().zip(entries);
                pairs.for_each(|(out, (x, t))| *out = x - t);
                out
            }));
            simd::arch().dispatch(Cut { slices, weights });
        }
    });
}

/// Forms g.
fn complete(sliced: &mut [Slices], threads: &Threads) {
    let more = power(BITS);
    threads.for_chunks(sliced, 1, usize::MAX, |_, slices| {
        for slices in slices {
            let scaled = slices.first.iter().map(|a| a.map(|a| a * more));
            slices.whole.clear();
            slices.whole.extend(scaled);
            for (slice, factor) in [(&slices.second, 1.0), (&slices.rest, 0.5)] {
                for (whole, row) in slices.whole.iter_mut().zip(slice) {
                    for (whole, x) in whole.iter_mut().zip(row) {
                        *whole += factor * x;
                    }
                }
            }
        }
    });
}

impl Slices {
    /// a + b.
    fn sum(&self) -> &Vec<Row> {
        if self.second.is_empty() {
            &self.first
        } else {
            &self.both
        }
    }
}

/// Cuts numbers, which are in the place of the first slice.
struct Cut<'a> {
    slices: &'a mut Slices,
    weights: Option<&'a [f64]>,
}

impl WithSimd for Cut<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Slices {
            first,
            second,
            both,
            rest,
            whole,
            units,
            sums,
        } = self.slices;
        for slice in [&mut *second, &mut *both, &mut *rest, &mut *whole] {
            slice.clear();
        }
        second.resize(first.len(), [0.0; PANEL]);
        rest.resize(first.len(), [0.0; PANEL]);
        // The rest begins as what the products with the weights leave.
        let weights = self.weights.unwrap_or_default();
        for ((row, rest), &w) in first.iter_mut().zip(&mut *rest).zip(weights) {
            for (x, rest) in row.iter_mut().zip(rest) {
                let product = two_product(*x, w);
                (*x, *rest) = (product.high, product.low);
            }
        }
        let mut largest = [0.0f64; PANEL];
        for row in &*first {
            for (most, x) in largest.iter_mut().zip(row) {
                *most = most.max(x.abs());
            }
        }
        let exponents = largest.map(|x| exponent(x).max(LEAST_EXPONENT));
        *units = exponents.map(|e| power(e + 1 - 2 * BITS));
        let (factors, more) = (exponents.map(|e| power(BITS - 1 - e)), power(BITS));
        let (mut totals, mut sizes) = ([[0.0; PANEL]; 3], [[0.0; PANEL]; 2]);
        let others = second.iter_mut().zip(&mut *rest);
        for (first, (second, rest)) in first.iter_mut().zip(others) {
            // By index: the compiler makes vectors of all columns.
            #[allow(clippy::needless_range_loop)]
            for j in 0..PANEL {
                let x = first[j] * factors[j];
                first[j] = (x + TO_INTEGER) - TO_INTEGER;
                let left = two_sum(x - first[j], rest[j] * factors[j]);
                second[j] = (left.high * more + TO_INTEGER) - TO_INTEGER;
                rest[j] = (left.high * more - second[j]) + left.low * more;
                totals[0][j] += first[j];
                totals[1][j] += second[j];
                totals[2][j] += rest[j];
                sizes[0][j] += second[j].abs();
                sizes[1][j] += rest[j].abs();
            }
        }
        *sums = std::array::from_fn(|j| {
            let sum = Pair::default().plus(totals[0][j] * more * units[j]);
            sum.plus(totals[1][j] * units[j])
                .plus(totals[2][j] * units[j])
        });
        let [has_second, has_rest] = sizes.map(|sizes| sizes.iter().any(|&size| size > 0.0));
        if !has_rest {
            rest.clear();
        }
        if !has_second && !has_rest {
            second.clear();
        }
        let pairs = first.iter().zip(&*second);
        both.extend(pairs.map(|(a, b)| std::array::from_fn::<_, PANEL, _>(|j| a[j] + b[j])));
    }
}

/// `Σ x_a x_b − mean_a Σ x_b`.
fn centred(sum: Pair, mean: Pair, total: Pair) -> f64 {
    let outer = two_product(mean.high, total.high);
    let low = outer.low + mean.high * total.low + mean.low * total.high;
    sum.plus(-outer.high).plus(-low).high
}

/// Row `i` of the second moments about the means, from the diagonal entry on.
fn centred_row(high: &Strip, low: &Strip, i: usize, means: &[Pair], totals: &[Pair]) -> Vec<f64> {
    let (n, start) = (means.len(), high.rows.start);
    let at = (i - start) * high.width(n);
    (i..n)
        .map(|j| {
            let place = at + (j - start);
            let sum = Pair {
                high: high.entries[place],
                low: low.entries[place],
            };
            centred(sum, means[i], totals[j])
        })
        .collect()
}

/// The least e with |x| < 2ᵉ, for a normal number; that of the smallest normal one for a smaller one, and 0 for 0.
#[inline(always)]
fn exponent(x: f64) -> i32 {
    if x == 0.0 {
        return 0;
    }
    let biased = (x.to_bits() >> 52) & 0x7ff;
    biased.max(1) as i32 - 1022
}

/// 2ᵉ, at least the smallest normal number.
#[inline(always)]
fn power(e: i32) -> f64 {
    f64::from_bits(((e + 1023).clamp(1, 2046) as u64) << 52)
}
