//! Sums without rounding: entries are cut into slices of few bits whose products sum exactly in double precision (Ozaki, Ogita,
//! Oishi and Rump 2012), and sums are kept in two doubles.
//!
//! With the integers `L_i` and `R_i` of slice i of the left and the right factor, level ℓ of the product is
//! `Σ_{i+j=ℓ} L_iᵀR_j`. Two of its terms cost one product instead of two (Karatsuba):
//! `L_iᵀR_j + L_jᵀR_i = (L_i + L_j)ᵀ(R_i + R_j) − L_iᵀR_i − L_jᵀR_j`. So s slices cost at most s(s+1)/2 products of one triangle.

use std::ops::Range;
use std::sync::Arc;

use faer::MatRef;
use ndarray::Array2;

use super::fast::{Fast, scaled};
use super::triangle::{self, Strip};
use super::{Block, Read, deviations};
use crate::Threads;

/// Bits of a slice.
const BITS: i32 = 21;

/// Slices of a number: 84 bits below the largest of its column.
const SLICES: usize = 4;

/// Levels of a product of two numbers; what is left out is below the last bit of a pair of doubles.
const LEVELS: usize = 5;

/// Rows that are multiplied at once. The first slice has integers up to 2²¹ and the others up to 2²⁰, so that a sum of two
/// slices has products up to 9/4·2⁴² and sums of 512 of these have less than 53 bits.
const ROWS: usize = 512;

/// Columns of a piece of a strip whose levels are formed at once.
const PANEL: usize = 512;

/// Adding and subtracting this rounds a number below 2⁵¹ to an integer.
const TO_INTEGER: f64 = 1.5 * (1u64 << 52) as f64;

/// Least exponent of the largest entry of a column; of smaller entries the first bits are zero.
const LEAST_EXPONENT: i32 = -900;

/// Cuts a double into two of 26 bits (Dekker).
const SPLITTER: f64 = (1u64 << 27) as f64 + 1.0;

/// A slice with at most this share of nonzero columns is multiplied by these alone.
const SPARSE: f64 = 0.75;

/// The sum of two numbers, the second of the size of the rounding of the first.
#[derive(Debug, Clone, Copy, Default)]
struct Pair {
    high: f64,
    low: f64,
}

impl Pair {
    fn plus(self, other: f64) -> Self {
        let total = two_sum(self.high, other);
        two_sum(total.high, total.low + self.low)
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

/// `Σ_i w_i z_i z_iᵀ` for the samples followed by a one, `z = (x, 1)`.
#[derive(Debug, Clone)]
pub(super) struct Exact {
    n: usize,
    /// The sums, and the low parts of them; no strip before the first sample.
    high: Vec<Strip>,
    low: Vec<Strip>,
}

/// Integers of [`BITS`] bits of all entries of a block: the columns that are not zero, row by row.
struct Slice {
    columns: Vec<usize>,
    entries: Vec<f64>,
    rows: usize,
    /// Whether all columns are there.
    full: bool,
}

impl Slice {
    /// Positions of the columns `range` among those that are not zero.
    fn within(&self, range: Range<usize>) -> Range<usize> {
        if self.full {
            return range;
        }
        let place = |column| self.columns.partition_point(|&c| c < column);
        place(range.start)..place(range.end)
    }

    fn view(&self) -> MatRef<'_, f64> {
        MatRef::from_row_major_slice(&self.entries, self.rows, self.columns.len())
    }

    fn plus(&self, other: &Self) -> Self {
        let pairs = self.entries.iter().zip(&other.entries);
        Self {
            columns: self.columns.clone(),
            entries: pairs.map(|(a, b)| a + b).collect(),
            ..*self
        }
    }
}

/// One factor of a product: slice k of an entry x of column c is an integer times `2^(e_c − (k + 1)·BITS)`.
struct Sliced {
    slices: Vec<Slice>,
    /// `2^e_c` for every column.
    scales: Vec<f64>,
}

impl Sliced {
    fn is_full(&self, i: usize) -> bool {
        self.slices.get(i).is_some_and(|slice| slice.full)
    }
}

/// Products that give levels: two slices of both factors, and their sums if one product is enough.
struct Cross {
    i: usize,
    j: usize,
    sums: Option<(Slice, Option<Slice>)>,
}

impl Exact {
    pub(super) fn new(n: usize) -> Self {
        Self {
            n,
            high: Vec::new(),
            low: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.high.is_empty()
    }

    pub(super) fn weight(&self) -> f64 {
        let last = |strip: &Strip| *strip.entries.last().expect("an entry");
        self.high.last().map_or(0.0, last)
    }

    pub(super) fn add(&mut self, block: Block, threads: &Threads) {
        let order = self.n + 1;
        if self.is_empty() {
            (self.high, self.low) = (triangle::zeros(order), triangle::zeros(order));
        }
        for (k, part) in block.entries.chunks(ROWS * self.n).enumerate() {
            let mut rows = Vec::with_capacity(part.len() / self.n * order);
            for row in part.chunks_exact(self.n) {
                rows.extend_from_slice(row);
                rows.push(1.0);
            }
            let right = block.weights.as_ref().map(|weights| {
                let each = rows.chunks_exact(order).zip(&weights[k * ROWS..]);
                let (high, low) = each
                    .flat_map(|(row, &w)| row.iter().map(move |&x| two_product(x, w)))
                    .map(|pair| (pair.high, pair.low))
                    .unzip();
                sliced(high, Some(low), order)
            });
            self.add_products(&sliced(rows, None, order), right.as_ref(), threads);
        }
    }

    /// Adds `LᵀR`, or `LᵀL` if `right` is None.
    fn add_products(&mut self, left: &Sliced, right: Option<&Sliced>, threads: &Threads) {
        let order = self.n + 1;
        let crosses = crosses(left, right);
        let right = right.unwrap_or(left);
        let work = left.slices[0].rows * order * order / 2;
        let mut both: Vec<_> = self.high.iter_mut().zip(&mut self.low).collect();
        threads.for_chunks(&mut both, 1, work, |_, strips| {
            let mut levels = Levels::default();
            for (high, low) in strips {
                let (own, width) = (high.rows.clone(), high.width(order));
                let (high, low) = (
                    Arc::make_mut(&mut high.entries),
                    Arc::make_mut(&mut low.entries),
                );
                for start in (own.start..order).step_by(PANEL) {
                    let columns = start..order.min(start + PANEL);
                    levels.form(left, right, &crosses, &own, &columns);
                    for (k, row) in own.clone().enumerate() {
                        let at = k * width + (start - own.start);
                        let range = at..at + columns.len();
                        let (high, low) = (&mut high[range.clone()], &mut low[range]);
                        let scales = &right.scales[columns.clone()];
                        levels.accumulate(high, low, k, left.scales[row], scales);
                    }
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
        let work = self.n * self.n;
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
                accumulate(high, low, &more_high.entries);
                accumulate(high, low, &more_low.entries);
            }
        });
    }

    /// The same samples, to which others can be added sooner.
    pub(super) fn to_fast(&self) -> Fast {
        let (n, totals, means) = (self.n, self.totals(), self.means());
        let mut packed = Vec::with_capacity(n * (n + 1) / 2);
        for (high, low) in self.high.iter().zip(&self.low) {
            for i in high.rows.start..high.rows.end.min(n) {
                packed.extend(centred_row(high, low, i, n, &means, &totals));
            }
        }
        let strips = triangle::unpacked(n, &packed).expect("a row for each feature");
        Fast::of(self.weight(), self.mean(), strips)
    }

    /// The sum of the samples followed by their weight.
    fn totals(&self) -> Vec<Pair> {
        let order = self.n + 1;
        let strips = self.high.iter().zip(&self.low);
        let last = |(high, low): (&Strip, &Strip)| -> Vec<Pair> {
            let width = high.width(order);
            let of = |strip: &Strip, i: usize| strip.entries[(i + 1) * width - 1];
            (0..high.rows.len())
                .map(|i| Pair {
                    high: of(high, i),
                    low: of(low, i),
                })
                .collect()
        };
        strips.flat_map(last).collect()
    }

    /// The means of the samples followed by a one.
    fn means(&self) -> Vec<Pair> {
        let (totals, weight) = (self.totals(), self.weight());
        let rest_of_weight = totals.last().map_or(0.0, |pair| pair.low);
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
        totals.iter().map(mean).collect()
    }

    fn mean(&self) -> Vec<f64> {
        let (totals, weight) = (self.totals(), self.weight());
        let totals = totals.iter().take(self.n);
        totals.map(|t| (t.high + t.low) / weight).collect()
    }

    pub(super) fn read(&mut self, center: bool, scale: bool, keep: bool) -> Read {
        let (n, order) = (self.n, self.n + 1);
        let (totals, means) = (self.totals(), self.means());
        let (weight, mean) = (self.weight(), self.mean());
        let deviation = scale.then(|| {
            let squares = triangle::diagonal(&self.high, order);
            let low = triangle::diagonal(&self.low, order);
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
            let rows = high.rows.start..high.rows.end.min(n);
            let width = high.width(order);
            let block = if center {
                let mut block = vec![0.0; rows.len() * width];
                for (k, i) in rows.clone().enumerate() {
                    let row = centred_row(high, low, i, n, &means, &totals);
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

    /// The triangles, as in [`State`](super::State).
    pub(super) fn parts(&self) -> Vec<Vec<f64>> {
        if self.is_empty() {
            return Vec::new();
        }
        let packed = |strips: &Vec<Strip>| triangle::packed(strips, self.n + 1);
        [&self.high, &self.low].map(packed).into()
    }

    /// The sums of these parts; None if they do not fit together.
    pub(super) fn from_parts(n: usize, triangles: &[Vec<f64>]) -> Option<Self> {
        let [high, low] = match triangles {
            [] => [Vec::new(), Vec::new()],
            [high, low] => [
                triangle::unpacked(n + 1, high)?,
                triangle::unpacked(n + 1, low)?,
            ],
            _ => return None,
        };
        Some(Self { n, high, low }).filter(|sums| sums.weight() >= 0.0)
    }
}

/// The products of different slices that have a level below [`LEVELS`].
fn crosses(left: &Sliced, right: Option<&Sliced>) -> Vec<Cross> {
    let other = right.unwrap_or(left);
    let count = left.slices.len().max(other.slices.len());
    let pairs = (0..count).flat_map(|i| (i + 1..count).map(move |j| (i, j)));
    let cross = |(i, j): (usize, usize)| {
        let full = [i, j].iter().all(|&k| left.is_full(k) && other.is_full(k));
        let sum = |of: &Sliced| of.slices[i].plus(&of.slices[j]);
        let sums = full.then(|| (sum(left), right.map(sum)));
        Cross { i, j, sums }
    };
    pairs.filter(|(i, j)| i + j < LEVELS).map(cross).collect()
}

/// The levels of a product for some rows and columns, row by row.
#[derive(Default)]
struct Levels {
    width: usize,
    levels: Vec<Vec<f64>>,
    squares: Vec<Vec<f64>>,
}

impl Levels {
    fn form(
        &mut self,
        left: &Sliced,
        right: &Sliced,
        crosses: &[Cross],
        own: &Range<usize>,
        columns: &Range<usize>,
    ) {
        let count = left.slices.len().max(right.slices.len());
        let size = own.len() * columns.len();
        self.width = columns.len();
        let zero = |of: &mut Vec<Vec<f64>>, count: usize| {
            of.resize_with(count, Vec::new);
            for sums in of {
                sums.clear();
                sums.resize(size, 0.0);
            }
        };
        zero(&mut self.levels, (2 * count - 1).min(LEVELS));
        zero(&mut self.squares, count);
        for (i, square) in self.squares.iter_mut().enumerate() {
            let used = 2 * i < LEVELS || crosses.iter().any(|c| c.j == i && c.sums.is_some());
            let own_slices = (left.slices.get(i), right.slices.get(i));
            if let ((Some(left), Some(right)), true) = (own_slices, used) {
                add_slices(square, left, right, own, columns);
                if 2 * i < LEVELS {
                    add(&mut self.levels[2 * i], square, 1.0);
                }
            }
        }
        for Cross { i, j, sums } in crosses {
            let level = &mut self.levels[i + j];
            if let Some((sum, other)) = sums {
                add_slices(level, sum, other.as_ref().unwrap_or(sum), own, columns);
                add(level, &self.squares[*i], -1.0);
                add(level, &self.squares[*j], -1.0);
                continue;
            }
            for (i, j) in [(*i, *j), (*j, *i)] {
                if let (Some(left), Some(right)) = (left.slices.get(i), right.slices.get(j)) {
                    add_slices(level, left, right, own, columns);
                }
            }
        }
    }

    /// Adds row `k` of all levels to sums, for factors with the scale `scale` and `scales`.
    fn accumulate(&self, high: &mut [f64], low: &mut [f64], k: usize, scale: f64, scales: &[f64]) {
        let range = k * self.width..(k + 1) * self.width;
        for (level, sums) in self.levels.iter().enumerate() {
            let unit = power(-BITS * (level as i32 + 2)) * scale;
            let pairs = high.iter_mut().zip(low.iter_mut());
            for (((high, low), sum), scale) in pairs.zip(&sums[range.clone()]).zip(scales) {
                let total = Pair {
                    high: *high,
                    low: *low,
                }
                .plus(sum * unit * scale);
                (*high, *low) = (total.high, total.low);
            }
        }
    }
}

/// Adds a multiple of integers to others.
fn add(sums: &mut [f64], more: &[f64], factor: f64) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum += factor * more;
    }
}

/// Adds `AᵀB` for two slices, its rows `rows` and its columns `columns`.
fn add_slices(
    sum: &mut [f64],
    left: &Slice,
    right: &Slice,
    rows: &Range<usize>,
    columns: &Range<usize>,
) {
    let (of_left, of_right) = (left.within(rows.clone()), right.within(columns.clone()));
    if of_left.is_empty() || of_right.is_empty() {
        return;
    }
    let (a, b) = (
        (left.view(), of_left.clone()),
        (right.view(), of_right.clone()),
    );
    let width = columns.len();
    if of_left.len() == rows.len() && of_right.len() == width {
        triangle::add_product(sum, a, b);
        return;
    }
    let mut product = vec![0.0; of_left.len() * of_right.len()];
    triangle::add_product(&mut product, a, b);
    let chosen = &right.columns[of_right];
    for (row, own) in left.columns[of_left]
        .iter()
        .zip(product.chunks(chosen.len()))
    {
        let row = &mut sum[(row - rows.start) * width..][..width];
        for (&column, value) in chosen.iter().zip(own) {
            row[column - columns.start] += value;
        }
    }
}

fn accumulate(high: &mut [f64], low: &mut [f64], more: &[f64]) {
    for ((high, low), &more) in high.iter_mut().zip(low).zip(more) {
        let sum = Pair {
            high: *high,
            low: *low,
        }
        .plus(more);
        (*high, *low) = (sum.high, sum.low);
    }
}

/// `Σ x_a x_b − mean_a Σ x_b`.
fn centred(sum: Pair, mean: Pair, total: Pair) -> f64 {
    let outer = two_product(mean.high, total.high);
    let low = outer.low + mean.high * total.low + mean.low * total.high;
    sum.plus(-outer.high).plus(-low).high
}

/// Row `i` of the second moments about the means, from the diagonal entry on.
fn centred_row(
    high: &Strip,
    low: &Strip,
    i: usize,
    n: usize,
    means: &[Pair],
    totals: &[Pair],
) -> Vec<f64> {
    let start = high.rows.start;
    let at = (i - start) * high.width(n + 1);
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

/// The slices of an array (`high + low`, row by row).
fn sliced(mut high: Vec<f64>, mut low: Option<Vec<f64>>, columns: usize) -> Sliced {
    let rows = high.len() / columns;
    let mut largest = vec![0.0f64; columns];
    for row in high.chunks_exact(columns) {
        for (largest, x) in largest.iter_mut().zip(row) {
            *largest = largest.max(x.abs());
        }
    }
    let exponents: Vec<i32> = largest
        .iter()
        .map(|&x| exponent(x).max(LEAST_EXPONENT))
        .collect();
    // Entries are divided by 2^e, and the part that is left is multiplied by 2^BITS before each slice.
    let mut factors: Vec<f64> = exponents.iter().map(|e| power(BITS - e)).collect();
    let mut parts = Vec::new();
    for _ in 0..SLICES {
        let mut part = vec![0.0; high.len()];
        let (mut any, mut left) = (vec![0u64; columns], vec![0u64; columns]);
        for (i, (row, part)) in high
            .chunks_exact_mut(columns)
            .zip(part.chunks_exact_mut(columns))
            .enumerate()
        {
            let entries = row.iter_mut().zip(part.iter_mut()).zip(&factors);
            for ((((x, part), factor), any), left) in entries.zip(&mut any).zip(&mut left) {
                let scaled = *x * factor;
                *part = (scaled + TO_INTEGER) - TO_INTEGER;
                *x = scaled - *part;
                *any |= part.to_bits() << 1;
                *left |= x.to_bits() << 1;
            }
            if let Some(low) = &mut low {
                let low = &mut low[i * columns..][..columns];
                let entries = row.iter_mut().zip(low).zip(&factors);
                for (((x, low), factor), left) in entries.zip(&mut left) {
                    let rest = two_sum(*x, *low * factor);
                    (*x, *low) = (rest.high, rest.low);
                    *left |= x.to_bits() << 1;
                }
            }
        }
        parts.push(slice_of(part, rows, &any));
        if left.iter().all(|&bits| bits == 0) {
            break;
        }
        factors.fill(power(BITS));
    }
    Sliced {
        slices: parts,
        scales: exponents.into_iter().map(power).collect(),
    }
}

/// The columns of `entries` for which `any` is not 0.
fn slice_of(entries: Vec<f64>, rows: usize, any: &[u64]) -> Slice {
    let width = any.len();
    let columns: Vec<usize> = (0..width).filter(|&j| any[j] != 0).collect();
    if columns.len() as f64 > SPARSE * width as f64 {
        return Slice {
            columns: (0..width).collect(),
            entries,
            rows,
            full: true,
        };
    }
    let chosen = |row: &[f64]| columns.iter().map(|&j| row[j]).collect::<Vec<f64>>();
    Slice {
        entries: entries.chunks_exact(width).flat_map(chosen).collect(),
        columns,
        rows,
        full: false,
    }
}

/// The least e with |x| < 2ᵉ, for a normal number; that of the smallest normal one for a smaller one, and 0 for 0.
fn exponent(x: f64) -> i32 {
    if x == 0.0 {
        return 0;
    }
    let biased = (x.to_bits() >> 52) & 0x7ff;
    biased.max(1) as i32 - 1022
}

/// 2ᵉ, at least the smallest normal number.
fn power(e: i32) -> f64 {
    f64::from_bits(((e + 1023).clamp(1, 2046) as u64) << 52)
}
