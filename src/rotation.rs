//! Sparse rotation of loadings: the orthogonal R (r × r) that minimises h(VR) for given V (n × r), h the ℓ1
//! norm or the number of nonzeros. Span and total variance of VR are those of V for all norms of its columns.
//!
//! From each start, and from perturbations of the lowest point so far, three methods follow each other:
//!
//! * gradient descent on O(r) for the smooth function `Σ √(x² + ε²)` (for nonzeros `Σ x²/(x² + ε²)`) with
//!   decreasing ε (Jennrich 2006 uses such functions for rotation);
//! * moves between vertices, where r(r − 1)/2 entries vanish, as in the simplex method;
//! * exact sweeps over pairs of columns, each rotated to the global minimum of h.
//!
//! Pairs alone can end where no pair lowers h but a rotation of more columns does, because h has kinks. A
//! gradient costs two products of n × r with r × r, and a move between vertices a few linear equations of
//! order r(r − 1)/2. A sweep costs r²/2 pairs of O(n log n) each.

mod vertices;

use ndarray::{Array2, ArrayView2};
use pulp::{Simd, WithSimd};

use crate::block::Block;
use crate::error::{Error, Result};
use crate::internal::numerics;
use crate::internal::simd::LANES;
use crate::internal::{ColumnSweep, GradientDescent, polar, product, square, tangent, varimax_rotation};
use crate::linalg;
use crate::objective::GoOn;
use crate::pair::Scratch;
use crate::penalty::Penalty;
use crate::start;
use crate::threads::Threads;

/// First and least ε of a descent from a start, relative to the root mean square of the entries of V.
const WIDTHS: (f64, f64) = (1.0, 3e-4);

/// First and least ε of a descent from a perturbed local minimum, relative to the root mean square of V.
const NARROW: (f64, f64) = (0.1, 3e-4);

/// Least ε if no vertex is searched for.
const FINE: f64 = 1e-6;

/// Ratio of consecutive ε.
const RATIO: f64 = 0.2;

/// Largest number of gradient steps for each ε.
const STEPS: usize = 40;

/// A descent for one ε ends when the tangent part of the gradient is at most this share of ‖V‖‖φ'‖.
const FLAT: f64 = 1e-4;

/// Relative decrease of h below which a sweep is the last.
const LEAST: f64 = 1e-9;

/// Least and largest number of perturbations of each start's local minimum up to `FEW` columns. They suffice for the
/// best of ten starts to reach the values of a subgradient method on 28 of the 30 matrices of
/// `benchmarks/scripts/rotation.py`.
const TRIALS: (usize, usize) = (40, 160);

/// Number of entries of V that all perturbations together visit in a pass.
const VISITED: usize = 200_000;

/// Largest number of columns with `TRIALS` perturbations.
const FEW: usize = 12;

/// Number of perturbations for more than `FEW` columns, where a move between vertices costs as much as a descent.
const TRIALS_OF_MANY: usize = 2;

/// Root mean square angles of perturbations of all columns, in turn.
const ANGLES: [f64; 4] = [0.3, 0.03, 0.1, 0.01];

/// Numbers of columns, in turn, that every second perturbation rotates at random instead of all columns.
const CHOSEN: [usize; 3] = [3, 4, 2];

/// First ε after a perturbation by an angle, relative to the angle; a larger ε would undo the perturbation.
const FOLLOWED: f64 = 0.35;

/// Criterion h that a rotation minimises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Criterion {
    /// The sum of magnitudes.
    L1,
    /// The number of nonzeros.
    L0,
}

impl Criterion {
    fn penalty(self) -> Penalty {
        match self {
            Self::L1 => Penalty::l1(1.0),
            Self::L0 => Penalty::l0(1.0),
        }
    }

    /// Returns the smooth function of width ε at x, and its derivative.
    #[inline(always)]
    fn smooth(self, x: f64, width: f64) -> (f64, f64) {
        match self {
            Self::L1 => {
                let square = x * x + width * width;
                let inverse = inverse_root(square);
                (square * inverse, x * inverse)
            }
            Self::L0 => {
                let (square, floor) = (x * x, width * width);
                let sum = square + floor;
                (square / sum, 2.0 * x * (floor / sum) / sum)
            }
        }
    }
}

/// Returns 1/√x for a positive normal x, up to a few units of the last place, by Newton's method: in vectors it
/// takes half of the time of a root and a division.
#[inline(always)]
fn inverse_root(x: f64) -> f64 {
    // Half of the bits of x, subtracted from a number, give a relative error of 3 %, which each Newton step squares.
    let mut root = f64::from_bits(0x5fe6_eb50_c7b5_37a9 - (x.to_bits() >> 1));
    for _ in 0..4 {
        root *= 1.5 - 0.5 * x * root * root;
    }
    root
}

/// The entries that are replaced by the derivative of the smooth function of width ε. The output is the sum of the
/// function and the sum of squares of the derivative.
struct SmoothSlopes<'a> {
    criterion: Criterion,
    width: f64,
    x: &'a mut [f64],
}

impl SmoothSlopes<'_> {
    #[inline(always)]
    fn over(self, criterion: Criterion) -> (f64, f64) {
        let mut sums = [[0.0; LANES]; 2];
        let mut chunks = self.x.chunks_exact_mut(LANES);
        for chunk in &mut chunks {
            add_slopes(criterion, self.width, &mut chunk[..LANES], &mut sums);
        }
        add_slopes(criterion, self.width, chunks.into_remainder(), &mut sums);
        (sums[0].iter().sum(), sums[1].iter().sum())
    }
}

impl WithSimd for SmoothSlopes<'_> {
    type Output = (f64, f64);

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> (f64, f64) {
        // Each criterion has a loop of its own.
        match self.criterion {
            Criterion::L1 => self.over(Criterion::L1),
            Criterion::L0 => self.over(Criterion::L0),
        }
    }
}

/// Replaces at most `LANES` entries and adds to their sums.
#[inline(always)]
fn add_slopes(criterion: Criterion, width: f64, x: &mut [f64], sums: &mut [[f64; LANES]; 2]) {
    for (k, entry) in x.iter_mut().enumerate() {
        let (own, slope) = criterion.smooth(*entry, width);
        sums[0][k] += own;
        sums[1][k] += slope * slope;
        *entry = slope;
    }
}

/// Returns the ℓ1 norm of X.
fn sum_of_magnitudes(x: &Array2<f64>) -> f64 {
    let mut sums = [0.0; LANES];
    for chunk in x.as_slice().unwrap_or_default().chunks(LANES) {
        for (sum, entry) in sums.iter_mut().zip(chunk) {
            *sum += entry.abs();
        }
    }
    sums.iter().sum()
}

/// Loadings after a rotation.
#[derive(Debug, Clone)]
pub struct Rotation {
    /// VR, with exact zeros.
    pub loadings: Array2<f64>,
    /// Orthogonal matrix R.
    pub rotation: Array2<f64>,
    /// h(VR).
    pub value: f64,
    /// h at the end of each start that was finished, in their order.
    pub ends: Vec<f64>,
}

/// Returns the best rotation of V (n × r) from `starts` starts: V as given, the varimax rotation, and random
/// rotations. If `go_on` ends the search, the best point so far is returned; its h is never above that of V.
///
/// # Errors
/// If V is empty, has fewer rows than columns or an entry that is not finite, or there is no start.
///
/// ```
/// use ndarray::array;
/// use orthobcd::{Criterion, Threads, rotate_loadings};
///
/// // Two sparse columns, rotated by 45°.
/// let v = array![[1.0, 1.0], [1.0, 1.0], [2.0, -2.0]];
/// let found = rotate_loadings(v.view(), Criterion::L0, 3, 0, &Threads::serial(), &|| true)?;
/// assert_eq!(found.value, 3.0);
/// assert!((v.dot(&found.rotation) - found.loadings).iter().all(|e| e.abs() < 1e-14));
/// # Ok::<(), orthobcd::Error>(())
/// ```
pub fn rotate_loadings(
    v: ArrayView2<'_, f64>,
    criterion: Criterion,
    starts: usize,
    seed: u64,
    threads: &Threads,
    go_on: GoOn<'_>,
) -> Result<Rotation> {
    let (n, r) = v.dim();
    if r == 0 || n < r {
        let text = format!("must have at least one column and at least as many rows, got {n} × {r}");
        return Err(Error::invalid("loadings", text));
    }
    if v.iter().any(|value| !value.is_finite()) {
        return Err(Error::invalid("loadings", "must be finite"));
    }
    if starts == 0 {
        return Err(Error::invalid("starts", "must be at least 1"));
    }
    let size = v.iter().fold(0.0_f64, |size, value| size.max(value.abs()));
    if size == 0.0 {
        return Ok(Rotation { loadings: v.to_owned(), rotation: Array2::eye(r), value: 0.0, ends: vec![0.0; starts] });
    }
    // Scaling by a power of two is exact.
    let unit = size.log2().floor().exp2();
    let scaled = v.mapv(|value| value / unit);
    let given = Turned::new(&scaled, Array2::eye(r), criterion);
    let search = Search {
        v: &scaled,
        norms: scaled.rows().into_iter().map(|row| row.dot(&row).sqrt()).collect(),
        criterion,
        size: square(&scaled).sqrt(),
        go_on,
    };
    let ends = threads.map(starts, |k| {
        go_on().then(|| {
            let own = seed.wrapping_add(k as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let start = match k {
                0 => Array2::eye(r),
                1 => varimax_rotation(scaled.view(), go_on),
                _ => start::random(r, r, own),
            };
            search.from(start, own.wrapping_add(1))
        })
    });
    let ends: Vec<Turned> = ends.into_iter().flatten().collect();
    let values = ends.iter().map(|end| end.value).collect::<Vec<f64>>();
    let best = ends.into_iter().fold(given, lower);
    let scale = match criterion {
        Criterion::L1 => unit,
        Criterion::L0 => 1.0,
    };
    Ok(Rotation {
        loadings: best.x * unit,
        rotation: best.rotation,
        value: best.value * scale,
        ends: values.into_iter().map(|value| value * scale).collect(),
    })
}

/// Rotated loadings X = VR with the rotation R and h(X).
#[derive(Clone)]
struct Turned {
    x: Array2<f64>,
    rotation: Array2<f64>,
    value: f64,
}

impl Turned {
    /// Computes VR for an orthogonal R, with zeros for entries of the size of rounding.
    fn new(v: &Array2<f64>, rotation: Array2<f64>, criterion: Criterion) -> Self {
        let mut x = product(v.view(), rotation.view());
        for mut row in x.rows_mut() {
            let floor = numerics::CONVERGED * row.dot(&row).sqrt();
            row.mapv_inplace(|value| if value.abs() <= floor { 0.0 } else { value });
        }
        let value = criterion.penalty().value(x.view());
        Self { x, rotation, value }
    }
}

/// Row and column of an entry of X.
type Entry = (usize, usize);

/// Returns the point with the lower value, the first of equals.
fn lower(first: Turned, second: Turned) -> Turned {
    if second.value < first.value { second } else { first }
}

/// Returns the pairs p < q of r columns.
fn pairs_of(r: usize) -> Vec<(usize, usize)> {
    (0..r).flat_map(|p| (p + 1..r).map(move |q| (p, q))).collect()
}

/// Returns a random rotation of r columns, and the first ε of the descent after it.
fn perturbation(r: usize, trial: usize, seed: u64) -> (Array2<f64>, f64) {
    if trial.is_multiple_of(2) {
        let noise = start::random(r, r, seed);
        let angle = ANGLES[trial / 2 % ANGLES.len()];
        // The difference has eigenvalues of root mean square √2.
        let skew = (&noise - &noise.t()) * (angle / 2.0_f64.sqrt());
        return (linalg::cayley(skew.view()), NARROW.0.min(FOLLOWED * angle));
    }
    let order = start::random(r, 1, seed);
    let mut columns: Vec<usize> = (0..r).collect();
    columns.sort_unstable_by(|&a, &b| order[[a, 0]].total_cmp(&order[[b, 0]]));
    columns.truncate(CHOSEN[trial / 2 % CHOSEN.len()]);
    let small = start::random(columns.len(), columns.len(), seed);
    let mut turn = Array2::eye(r);
    for ((i, j), &value) in small.indexed_iter() {
        turn[[columns[i], columns[j]]] = value;
    }
    (turn, NARROW.0)
}

struct Search<'a> {
    v: &'a Array2<f64>,
    /// Norms of the rows of V, and of VR for every R.
    norms: Vec<f64>,
    criterion: Criterion,
    /// ‖V‖_F.
    size: f64,
    go_on: GoOn<'a>,
}

impl Search<'_> {
    /// Returns the lowest local minimum from the rotation `start` and from perturbations of the lowest one.
    fn from(&self, start: Array2<f64>, seed: u64) -> Turned {
        let given = Turned::new(self.v, start, self.criterion);
        let end = self.settled(&given.rotation, WIDTHS);
        let mut best = lower(given, end);
        let (n, r) = self.v.dim();
        let trials = match r <= FEW {
            true => (VISITED / (n * r)).clamp(TRIALS.0, TRIALS.1),
            false => TRIALS_OF_MANY,
        };
        for trial in 0..trials {
            if !(self.go_on)() {
                break;
            }
            let (turn, width) = perturbation(r, trial, seed.wrapping_add(trial as u64));
            let rotation = product(best.rotation.view(), turn.view());
            best = lower(best, self.settled(&rotation, (width, NARROW.1)));
        }
        best
    }

    /// Returns the local minimum that descents, vertices and pairs of columns reach from a rotation.
    fn settled(&self, start: &Array2<f64>, widths: (f64, f64)) -> Turned {
        let order = start.nrows() * (start.nrows() - 1) / 2;
        let least = match order > vertices::LARGEST {
            true => FINE,
            false => widths.1,
        };
        let widths = (widths.0, least);
        if self.criterion == Criterion::L0 {
            let first = self.swept(self.over_vertices(self.descended(start, Criterion::L1, widths)));
            let second = self.swept(self.descended(start, Criterion::L0, widths));
            return self.swept(lower(first, second));
        }
        let end = self.over_vertices(self.descended(start, Criterion::L1, widths));
        let value = end.value;
        let end = self.swept(end);
        if end.value < value { self.over_vertices(end) } else { end }
    }

    /// Returns the end of gradient descents for decreasing ε.
    fn descended(&self, start: &Array2<f64>, criterion: Criterion, widths: (f64, f64)) -> Turned {
        let typical = self.size / (self.v.len() as f64).sqrt();
        let (mut width, least) = (widths.0 * typical, widths.1 * typical);
        let mut rotation = start.clone();
        while width >= least && width > 0.0 && (self.go_on)() {
            rotation = self.descent(rotation, criterion, width);
            width *= RATIO;
        }
        Turned::new(self.v, rotation, self.criterion)
    }

    /// Returns the end of a descent for one ε.
    fn descent(&self, start: Array2<f64>, criterion: Criterion, width: f64) -> Array2<f64> {
        let evaluate = |rotation: &Array2<f64>| {
            let mut x = product(self.v.view(), rotation.view());
            let entries = x.as_slice_mut().unwrap_or_default();
            let (value, squares) =
                crate::internal::simd::arch().dispatch(SmoothSlopes { criterion, width, x: entries });
            let gradient = product(self.v.t(), x.view());
            (value, tangent(rotation, &gradient), squares.sqrt())
        };
        let (value, direction, mut slopes) = evaluate(&start);
        let length = width / self.size.max(width);
        let mut descent = GradientDescent::new(start, value, direction, length);
        for _ in 0..STEPS {
            if descent.norm2.sqrt() <= FLAT * self.size * slopes || !(self.go_on)() {
                break;
            }
            let rotation = polar(&descent.trial());
            let (value, direction, steep) = evaluate(&rotation);
            if descent.accepts(value) {
                descent.accept(rotation, value, direction);
                slopes = steep;
            } else {
                descent.length *= 0.3;
            }
        }
        descent.x
    }

    /// Returns the end of exact sweeps over pairs of columns.
    fn swept(&self, point: Turned) -> Turned {
        let (n, r) = point.x.dim();
        let all: Vec<usize> = (0..r).collect();
        let pairs = pairs_of(r);
        let penalty = self.criterion.penalty();
        let mut block = Block::new(n);
        block.load(point.x.t(), &all, &[]);
        // A pair rotates its gradient rows too: here the columns of R.
        for k in 0..r {
            let row = &mut block.gradient_row_mut(k)[..r];
            row.iter_mut().zip(point.rotation.column(k)).for_each(|(t, &v)| *t = v);
        }
        let mut scratch = Scratch::new(n);
        let mut value = point.value;
        'sweeps: for _ in 0..numerics::STEPS {
            let mut change = 0.0;
            for part in pairs.chunks((ColumnSweep::ENTRIES / n).max(1)) {
                if !(self.go_on)() {
                    break 'sweeps;
                }
                let sweep = ColumnSweep {
                    scratch: &mut scratch,
                    block: &mut block,
                    linear: &[],
                    penalty: &penalty,
                    scale: 0.0,
                    proximal: 0.0,
                    pairs: part,
                };
                change += sweep.run().change;
            }
            value += change;
            if !(-change > LEAST * value) {
                break;
            }
        }
        let moved = Array2::from_shape_fn((r, r), |(i, k)| block.gradient_row(k)[i]);
        let mut end = Turned::new(self.v, polar(&moved), self.criterion);
        // Zeros of the pair solver are exact.
        for (k, mut column) in end.x.columns_mut().into_iter().enumerate() {
            for (entry, &own) in column.iter_mut().zip(block.row(k)) {
                if own == 0.0 {
                    *entry = 0.0;
                }
            }
        }
        end.value = penalty.value(end.x.view());
        if end.value <= point.value { end } else { point }
    }
}
