//! The pair solver on the circle against a dense grid that knows nothing but the definition, and
//! the fast kernels against the generic piecewise solver.
//!
//! The grid has 20,000 angles per branch (2,000 for penalties of several pieces), every angle at which an entry meets a
//! level, and golden-section searches around the best cells of each branch. Instances are random and
//! adversarial: near-double roots, equal and nearly equal slopes, zero columns, one-sided zeros,
//! r = 1, zero curvature, scales from 1e-120 to 1e120.

use std::f64::consts::{FRAC_PI_2, TAU};

use ndarray::Array2;
use orthobcd::pair::{Best, CirclePair, PairModel, Scratch, Sym2, Trig, Turn};
use orthobcd::penalty::{Penalty, solve_on_circle};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::common::{instances, normal};

const INSTANCES: usize = 3_000;
const ANGLES: usize = 20_000;
const FEWER_ANGLES: usize = 2_000;
/// Cells of the grid, each lower than its neighbours, that are searched.
const CELLS: usize = 6;
const TOLERANCE: f64 = 1e-12;

struct Instance {
    x: Vec<f64>,
    y: Vec<f64>,
    rotation: Trig,
    reflection: Trig,
}

impl Instance {
    fn pair(&self) -> CirclePair<'_> {
        CirclePair { rows: (0, 1), x: &self.x, y: &self.y, rotation: self.rotation, reflection: Some(self.reflection) }
    }
}

fn pick<T: Copy>(rng: &mut Xoshiro256PlusPlus, from: &[T]) -> T {
    from[rng.random_range(0..from.len())]
}

/// Columns of every awkward kind, at one common scale; slopes that differ by rounding if `close`.
fn columns(rng: &mut Xoshiro256PlusPlus, nonnegative: bool, close: bool) -> (Vec<f64>, Vec<f64>) {
    let r = pick(rng, &[1, 1, 2, 3, 5, 8]);
    let scale = pick(rng, &[1.0, 1.0, 1.0, 1e-120, 1e120, 1e-9]);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for _ in 0..r {
        let mut column = (normal(rng), normal(rng));
        match rng.random_range(0..12) {
            0 => column.0 = 0.0,
            1 => column.1 = 0.0,
            2 => column = (0.0, 0.0),
            3 => column.1 = column.0,
            4 => column.0 *= 1e-9,
            5 if close => column.1 *= 1e-17,
            6 | 7 if !x.is_empty() => {
                // The slope of an earlier column, exactly: scaled by a power of two, perhaps turned.
                let k = rng.random_range(0..x.len());
                let factor = 2f64.powi(rng.random_range(-3..4));
                column = if rng.random() {
                    (factor * x[k] / scale, factor * y[k] / scale)
                } else {
                    (-factor * y[k] / scale, factor * x[k] / scale)
                };
            }
            8 if close && !x.is_empty() => {
                // Nearly the slope of an earlier one.
                let k = rng.random_range(0..x.len());
                let gap = pick(rng, &[1e-15, 1e-14, 1e-12, 1e-8]);
                column = (x[k] / scale, y[k] / scale * (1.0 + gap));
            }
            _ => {}
        }
        if nonnegative {
            column = (column.0.abs(), column.1.abs());
        }
        x.push(column.0 * scale);
        y.push(column.1 * scale);
    }
    (x, y)
}

/// The smooth part of one branch at unit scale: generic, without curvature, without a linear part,
/// or with two local minima about to merge.
fn smooth(rng: &mut Xoshiro256PlusPlus) -> Trig {
    let (a, b, p, q) = (normal(rng), normal(rng), normal(rng), normal(rng));
    match rng.random_range(0..8) {
        0 => Trig { a, b, p: 0.0, q: 0.0 },
        1 => Trig { a: 0.0, b: 0.0, p, q },
        2 => Trig { a, b: 0.0, p, q: 0.0 },
        3 => {
            let (s, c) = rng.random_range(0.0..TAU).sin_cos();
            let rho = rng.random_range(0.1..1.0);
            let plus = 4.0 * rho * (1.0 + pick(rng, &[0.0, 1e-14, 1e-10, 1e-6, -1e-14, -1e-8]));
            let minus = pick(rng, &[0.0, 1e-15, 1e-12, 1e-7]);
            Trig { a: plus * c - minus * s, b: plus * s + minus * c, p: rho * (c * c - s * s), q: 2.0 * rho * c * s }
        }
        4 => Trig { a, b, p: p * 1e-13, q: q * 1e-13 },
        5 => Trig { a: a * 1e-13, b: b * 1e-13, p, q },
        _ => Trig { a, b, p, q },
    }
}

fn scaled(f: Trig, scale: f64) -> Trig {
    Trig { a: f.a * scale, b: f.b * scale, p: f.p * scale, q: f.q * scale }
}

fn instance(rng: &mut Xoshiro256PlusPlus, nonnegative: bool, close: bool) -> Instance {
    let (x, y) = columns(rng, nonnegative, close);
    let objective = pick(rng, &[1.0, 1.0, 1.0, 1e-120, 1e120, 1e-30, 1e30]);
    let mut rotation = scaled(smooth(rng), objective);
    let mut reflection = scaled(smooth(rng), objective);
    if rng.random_range(0..4) == 0 {
        // Branches of one and the same minimum.
        reflection = rotation;
    }
    if x.iter().chain(&y).all(|&v| v == 0.0) {
        // Two zero rows: GZᵀ and S vanish, and nothing can move.
        (rotation, reflection) = (Trig::default(), Trig::default());
    }
    Instance { x, y, rotation, reflection }
}

/// Entries of column k after the turn, from the matrices themselves.
fn turned(c: f64, s: f64, reflect: bool, x: f64, y: f64) -> (f64, f64) {
    let second = -s * x + c * y;
    (c * x + s * y, if reflect { -second } else { second })
}

/// Smooth part plus h at one angle; entries of the columns in `vanishing` that are the smaller of
/// their column count as exact zeros.
fn value_at(penalty: &Penalty, instance: &Instance, c: f64, s: f64, reflect: bool, vanishing: &[usize]) -> f64 {
    let f = if reflect { instance.reflection } else { instance.rotation };
    let mut value = f.a * c + f.b * s + f.p * (c * c - s * s) + 2.0 * f.q * s * c;
    for (k, (&x, &y)) in instance.x.iter().zip(&instance.y).enumerate() {
        let (mut u, mut w) = turned(c, s, reflect, x, y);
        if vanishing.contains(&k) {
            if u.abs() < w.abs() {
                u = 0.0;
            } else {
                w = 0.0;
            }
        }
        value += penalty.entry(0, k, u) + penalty.entry(1, k, w);
    }
    value
}

/// Angles of the grid and space for its values, shared by all instances.
struct Grid {
    c: Vec<f64>,
    s: Vec<f64>,
    values: Vec<f64>,
}

impl Grid {
    fn new(angles: usize) -> Self {
        // Off the axes, so that no entry vanishes by accident; those angles are added exactly.
        let angle = |i: usize| (i as f64 + 0.3) * TAU / angles as f64;
        Self {
            c: (0..angles).map(|i| angle(i).cos()).collect(),
            s: (0..angles).map(|i| angle(i).sin()).collect(),
            values: vec![0.0; angles],
        }
    }

    /// The smallest value anywhere, identity included.
    fn minimum(&mut self, penalty: &Penalty, instance: &Instance) -> f64 {
        let mut least = identity_value(penalty, instance);
        let angles = self.values.len();
        let step = TAU / angles as f64;
        for (reflect, f) in [(false, instance.rotation), (true, instance.reflection)] {
            for ((v, &c), &s) in self.values.iter_mut().zip(&self.c).zip(&self.s) {
                *v = f.a * c + f.b * s + f.p * (c * c - s * s) + 2.0 * f.q * s * c;
            }
            for (k, (&x, &y)) in instance.x.iter().zip(&instance.y).enumerate() {
                for ((v, &c), &s) in self.values.iter_mut().zip(&self.c).zip(&self.s) {
                    let (u, w) = turned(c, s, reflect, x, y);
                    *v += penalty.entry(0, k, u) + penalty.entry(1, k, w);
                }
            }
            let values = &self.values;
            let lower = |&i: &usize| {
                let (before, after) = ((i + angles - 1) % angles, (i + 1) % angles);
                values[i].is_finite() && values[i] <= values[before] && values[i] <= values[after]
            };
            let mut cells: Vec<usize> = (0..angles).filter(lower).collect();
            cells.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
            for &cell in cells.iter().take(CELLS) {
                let center = self.s[cell].atan2(self.c[cell]);
                least = least.min(values[cell]);
                least = least.min(golden(center - step, center + step, |t| {
                    value_at(penalty, instance, t.cos(), t.sin(), reflect, &[])
                }));
            }
            least = least.min(special(penalty, instance, reflect));
        }
        least
    }
}

fn identity_value(penalty: &Penalty, instance: &Instance) -> f64 {
    value_at(penalty, instance, 1.0, 0.0, false, &[])
}

/// The smallest value at the angles where an entry vanishes and on the axes. Columns whose slope is
/// the same or perpendicular, exactly, vanish together.
fn special(penalty: &Penalty, instance: &Instance, reflect: bool) -> f64 {
    let mut least = f64::INFINITY;
    let axes = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)];
    for (c, s) in axes {
        least = least.min(value_at(penalty, instance, c, s, reflect, &[]));
    }
    for (&x, &y) in instance.x.iter().zip(&instance.y) {
        least = least.min(at_levels(penalty, instance, (x, y), reflect));
        let size = x.abs().max(y.abs());
        if x == 0.0 || y == 0.0 || size == 0.0 {
            continue;
        }
        let (u, v) = (x / size, y / size);
        let length = u.hypot(v);
        let vanishing: Vec<usize> = (0..instance.x.len())
            .filter(|&k| {
                let (p, q) = (instance.x[k] / size, instance.y[k] / size);
                (p != 0.0 || q != 0.0) && (p * v == q * u || p * u == -(q * v))
            })
            .collect();
        for (c, s) in [(u, v), (-v, u), (-u, -v), (v, -u)] {
            let (c, s) = (c / length, s / length);
            least = least.min(value_at(penalty, instance, c, s, reflect, &vanishing));
        }
    }
    least
}

/// The smallest value at the angles where an entry of one column meets a level other than 0, with every entry
/// on the level that it is next to.
fn at_levels(penalty: &Penalty, instance: &Instance, (x, y): (f64, f64), reflect: bool) -> f64 {
    let mut least = f64::INFINITY;
    let second = if reflect { (-y, x) } else { (y, -x) };
    for (alpha, beta) in [(x, y), second] {
        for &level in penalty.breakpoints().iter().filter(|v| **v != 0.0) {
            let length = alpha.hypot(beta);
            if level.abs() > length || length == 0.0 {
                continue;
            }
            let (middle, half) = (beta.atan2(alpha), (level / length).acos());
            for angle in [middle - half, middle + half] {
                let (s, c) = angle.sin_cos();
                let f = if reflect { instance.reflection } else { instance.rotation };
                let mut value = f.value(c, s);
                for (k, (&x, &y)) in instance.x.iter().zip(&instance.y).enumerate() {
                    let (u, w) = turned(c, s, reflect, x, y);
                    // One that is as large as it gets is next to a level over some width: not counted.
                    for (row, v, slope) in [(0, u, w), (1, w, u)] {
                        let size = x.abs() + y.abs();
                        let near = |l: &&f64| (v - **l).abs() <= 1e-15 * size && slope.abs() > 1e-4 * size;
                        let v = penalty.breakpoints().iter().find(near).copied().unwrap_or(v);
                        value += penalty.entry(row, k, v);
                    }
                }
                least = least.min(value);
            }
        }
    }
    least
}

/// The smallest value met by a golden-section search.
fn golden(mut lo: f64, mut hi: f64, f: impl Fn(f64) -> f64) -> f64 {
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    let (mut p, mut q) = (hi - ratio * (hi - lo), lo + ratio * (hi - lo));
    let (mut fp, mut fq) = (f(p), f(q));
    let mut least = fp.min(fq);
    for _ in 0..40 {
        if fp <= fq {
            (hi, q, fq) = (q, p, fp);
            p = hi - ratio * (hi - lo);
            fp = f(p);
        } else {
            (lo, p, fp) = (p, q, fq);
            q = lo + ratio * (hi - lo);
            fq = f(q);
        }
        least = least.min(fp).min(fq);
    }
    least
}

/// Magnitude of everything that is added up.
fn scale(penalty: &Penalty, instance: &Instance) -> f64 {
    let mut scale = instance.rotation.magnitude() + instance.reflection.magnitude();
    for (k, (&x, &y)) in instance.x.iter().zip(&instance.y).enumerate() {
        let size = x.abs() + y.abs();
        for row in [0, 1] {
            let pieces = penalty.breakpoints().iter().chain([&f64::NEG_INFINITY]);
            let penalty = pieces.map(|&level| {
                let [a, b, c] = penalty.piece(row, k, level);
                a.abs() + b.abs() * size + 0.5 * c.abs() * size * size
            });
            scale += penalty.filter(|penalty| penalty.is_finite()).fold(0.0, f64::max);
        }
    }
    scale
}

/// What the solver claims is true, and the entries it says vanish do.
fn verify(penalty: &Penalty, instance: &Instance, best: &Best, scratch: &Scratch) -> f64 {
    let turn = best.turn;
    assert!((turn.c.hypot(turn.s) - 1.0).abs() < 4.0 * f64::EPSILON);
    // The entries that are exact at a breakpoint are so up to rounding already.
    let rows = instance.x.iter().zip(&instance.y);
    let (raw_x, raw_y): (Vec<f64>, Vec<f64>) = rows.map(|(&x, &y)| turned(turn.c, turn.s, turn.reflect, x, y)).unzip();
    let (mut new_x, mut new_y) = (raw_x.clone(), raw_y.clone());
    scratch.settle(&mut new_x, &mut new_y);
    for k in 0..new_x.len() {
        // An entry is zero if it is rounding beside the largest column.
        let columns = instance.x.iter().zip(&instance.y);
        let rounding = 1e-14 * columns.map(|(x, y)| x.abs() + y.abs()).fold(0.0, f64::max);
        assert!(
            (new_x[k] - raw_x[k]).abs() <= rounding && (new_y[k] - raw_y[k]).abs() <= rounding,
            "column {k} of {:?} {:?} is not on its level: {} {}",
            instance.x,
            instance.y,
            raw_x[k],
            raw_y[k]
        );
    }
    // A penalty that is a constraint repairs the rounding of the other entries itself.
    let mut tidied = [Vec::new(), Vec::new()];
    let mut value = {
        let f = if turn.reflect { instance.reflection } else { instance.rotation };
        f.value(turn.c, turn.s)
    };
    for (k, (&x, &y)) in instance.x.iter().zip(&instance.y).enumerate() {
        let (u, w) = (new_x[k], new_y[k]);
        let rounding = 1e-14 * (x.abs() + y.abs());
        let (raw_u, raw_w) = (u, w);
        tidied[0] = vec![u];
        tidied[1] = vec![w];
        penalty.tidy(&mut tidied[0]);
        penalty.tidy(&mut tidied[1]);
        assert!(
            (tidied[0][0] - raw_u).abs() <= rounding && (tidied[1][0] - raw_w).abs() <= rounding,
            "column {k} of {:?} {:?} is not feasible after {turn:?}: {raw_u:e} {raw_w:e}",
            instance.x,
            instance.y
        );
        value += penalty.entry(0, k, tidied[0][0]) + penalty.entry(1, k, tidied[1][0]);
    }
    value
}

fn against_grid(seed: u64, nonnegative: bool, mut make: impl FnMut(&mut Xoshiro256PlusPlus, &Instance) -> Penalty) {
    against_grid_on(seed, INSTANCES, ANGLES, |rng| {
        let instance = instance(rng, nonnegative, true);
        let penalty = make(rng, &instance);
        (instance, penalty)
    });
}

fn against_grid_on(
    seed: u64,
    usual: usize,
    angles: usize,
    mut draw: impl FnMut(&mut Xoshiro256PlusPlus) -> (Instance, Penalty),
) {
    let (instances, every) = instances(usual);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut grid = Grid::new(angles);
    let mut scratch = Scratch::new(8);
    let mut moved = 0;
    for trial in 0..instances {
        let (instance, penalty) = draw(&mut rng);
        let best = solve_on_circle(&penalty, &instance.pair(), &mut scratch);
        let scale = scale(&penalty, &instance);
        let base = identity_value(&penalty, &instance);
        assert!(best.value <= 0.0);
        let claimed = base + best.value;
        let actual = verify(&penalty, &instance, &best, &scratch);
        // What it gets may be better: a turn may put an entry onto a level that it was not counted on.
        assert!(
            actual - claimed <= TOLERANCE * scale,
            "trial {trial}: claims {claimed:e}, is {actual:e}: {best:?} {:?} {:?} {:?} {:?}",
            instance.x,
            instance.y,
            instance.rotation,
            instance.reflection
        );
        let compared = trial % every == 0;
        let least = if compared { grid.minimum(&penalty, &instance) } else { base };
        assert!(
            actual <= least + TOLERANCE * scale,
            "trial {trial}: {actual:e} against {least:e} of the grid (scale {scale:e}): {best:?} \
             {:?} {:?} {:?} {:?}",
            instance.x,
            instance.y,
            instance.rotation,
            instance.reflection
        );
        moved += usize::from(best.value < 0.0);
    }
    assert!(moved > instances / 3, "most instances have something to gain: {moved}");
}

/// A weight comparable with the smooth part, whatever the scales are.
fn weight(rng: &mut Xoshiro256PlusPlus, instance: &Instance, per_size: bool) -> f64 {
    let smooth = instance.rotation.magnitude();
    let size = instance.x.iter().chain(&instance.y).fold(0.0f64, |m, v| m.max(v.abs()));
    let share = pick(rng, &[0.0, 0.03, 0.3, 0.3, 1.0, 3.0]);
    if per_size && size > 0.0 { share * smooth / size } else { share * smooth }
}

#[test]
fn no_penalty_against_grid() {
    against_grid(1, false, |_, _| Penalty::NONE);
}

#[test]
fn l0_against_grid() {
    against_grid(2, false, |rng, instance| Penalty::l0(weight(rng, instance, false)));
}

#[test]
fn l1_against_grid() {
    against_grid(3, false, |rng, instance| Penalty::l1(weight(rng, instance, true)));
}

#[test]
fn weighted_l1_against_grid() {
    against_grid(4, false, |rng, instance| {
        let top = weight(rng, instance, true);
        let weights = Array2::from_shape_fn((2, instance.x.len()), |_| top * pick(rng, &[0.0, 0.2, 0.7, 1.0]));
        Penalty::l1(weights)
    });
}

#[test]
fn nonnegative_against_grid() {
    against_grid(5, true, |_, _| Penalty::NONNEGATIVE);
}

/// Unit sizes: products with the square of an entry stay in range.
fn unit_instance(rng: &mut Xoshiro256PlusPlus, nonnegative: bool, close: bool) -> Instance {
    let (mut x, mut y) = columns(rng, nonnegative, close);
    let size = x.iter().chain(&y).fold(0.0f64, |m, v| m.max(v.abs()));
    if size > 0.0 {
        let unit = size.log2().floor().exp2();
        x.iter_mut().chain(&mut y).for_each(|v| *v /= unit);
    }
    let zero = size == 0.0;
    let mut branch = || if zero { Trig::default() } else { smooth(rng) };
    Instance { rotation: branch(), reflection: branch(), x, y }
}

/// A value that an entry may take or takes now.
fn knot(rng: &mut Xoshiro256PlusPlus, instance: &Instance) -> f64 {
    match rng.random_range(0..4) {
        0 => pick(rng, &instance.x),
        1 => pick(rng, &instance.y),
        2 => 0.0,
        _ => normal(rng),
    }
}

/// Random pieces, jumps up and down at every breakpoint, some pieces infinite; the identity is feasible.
fn pieces(rng: &mut Xoshiro256PlusPlus, instance: &Instance) -> Penalty {
    loop {
        let mut breakpoints: Vec<f64> = (0..rng.random_range(0..5)).map(|_| knot(rng, instance)).collect();
        // Beyond the largest value of an entry lies a piece that only rounding reaches, and near it angles are
        // known to half the digits; see `interval`.
        breakpoints.retain(|level: &f64| {
            let mut columns = instance.x.iter().zip(&instance.y);
            columns.all(|(x, y)| (x.hypot(*y) - level.abs()).abs() > 1e-3 * x.hypot(*y))
        });
        breakpoints.sort_by(f64::total_cmp);
        breakpoints.dedup();
        let pieces = (0..=breakpoints.len()).map(|_| match rng.random_range(0..6) {
            0 => [f64::INFINITY, 0.0, 0.0],
            1 => [normal(rng), 0.0, 0.0],
            2 => [0.0, normal(rng), 0.0],
            _ => [normal(rng), normal(rng), normal(rng)],
        });
        let pieces = pieces.collect();
        if let Ok(penalty) = Penalty::pieces(breakpoints, pieces)
            && identity_value(&penalty, instance).is_finite()
        {
            return penalty;
        }
    }
}

/// An interval that holds all entries, some of them perhaps on its ends.
fn interval(rng: &mut Xoshiro256PlusPlus, instance: &Instance) -> Penalty {
    let entries = || instance.x.iter().chain(&instance.y);
    let lower = entries().fold(0.0f64, |m, v| m.min(*v));
    let upper = entries().fold(0.0f64, |m, v| m.max(*v));
    let slack = pick(rng, &[0.0, 0.1, 1.0]);
    Penalty::interval(lower - slack, upper + slack.max(1e-3)).unwrap()
}

fn pieces_against_grid(
    seed: u64,
    (nonnegative, close): (bool, bool),
    mut make: impl FnMut(&mut Xoshiro256PlusPlus, &Instance) -> Penalty,
) {
    against_grid_on(seed, INSTANCES, FEWER_ANGLES, |rng| {
        let instance = unit_instance(rng, nonnegative, close);
        let penalty = make(rng, &instance);
        (instance, penalty)
    });
}

/// A level that entries meet: often that of an entry as it is, or the largest that one gets to be, up to rounding.
fn level(rng: &mut Xoshiro256PlusPlus, instance: &Instance) -> f64 {
    let k = rng.random_range(0..instance.x.len());
    let (x, y) = (instance.x[k], instance.y[k]);
    let size = match rng.random_range(0..6) {
        0 => x.abs(),
        1 => y.abs(),
        2 => x.hypot(y) * (1.0 + pick(rng, &[0.0, 1e-15, -1e-15, 1e-9, -1e-9])),
        _ => rng.random_range(0.1..2.0),
    };
    if size > 1e-3 { size } else { 0.5 }
}

fn capped(rng: &mut Xoshiro256PlusPlus, instance: &Instance) -> Penalty {
    let lambda = pick(rng, &[0.0, 0.03, 0.3, 1.0, 3.0]);
    Penalty::capped_l1(lambda, level(rng, instance)).unwrap()
}

fn mcp(rng: &mut Xoshiro256PlusPlus, instance: &Instance) -> Penalty {
    let lambda = pick(rng, &[0.03, 0.3, 1.0, 3.0]);
    Penalty::mcp(lambda, level(rng, instance) / lambda).unwrap()
}

fn scad(rng: &mut Xoshiro256PlusPlus, instance: &Instance) -> Penalty {
    let a = pick(rng, &[2.0 + 1e-9, 2.5, 3.7, 30.0]);
    Penalty::scad(level(rng, instance) / pick(rng, &[1.0, a]), a).unwrap()
}

/// Even, with kinks and bends up and down.
fn even(rng: &mut Xoshiro256PlusPlus, instance: &Instance) -> Penalty {
    let mut knots: Vec<f64> = (0..rng.random_range(0..4)).map(|_| level(rng, instance)).collect();
    knots.sort_by(f64::total_cmp);
    knots.dedup_by(|l, r| *l - *r < 1e-3);
    let slope = pick(rng, &[0.0, 0.5, -0.5]);
    // Without bends it may be concave, as capped ℓ1, or have a kink up, which no other penalty with
    // a name has.
    let bend = pick(rng, &[0.0, 1.0, 1.0]);
    let mut right = vec![[0.0, slope, bend * normal(rng)]];
    for &t in &knots {
        let [a, b, c] = right[right.len() - 1];
        let (p, q) = (normal(rng), bend * normal(rng));
        right.push([a + t * (b - p) + 0.5 * t * t * (c - q), p, q]);
    }
    let mirrored = right.iter().rev().map(|&[a, b, c]| [a, -b, c]);
    let levels = knots.iter().rev().map(|t| -t).chain([0.0]).chain(knots.clone());
    let pieces = mirrored.chain(right.clone());
    Penalty::pieces(levels.collect(), pieces.collect()).unwrap()
}

#[test]
fn capped_l1_against_grid() {
    pieces_against_grid(34, (false, true), capped);
}

#[test]
fn mcp_against_grid() {
    pieces_against_grid(35, (false, true), mcp);
}

#[test]
fn scad_against_grid() {
    pieces_against_grid(36, (false, true), scad);
}

#[test]
fn even_penalties_against_grid() {
    pieces_against_grid(37, (false, true), even);
}

#[test]
fn interval_against_grid() {
    pieces_against_grid(38, (false, true), interval);
}

/// Sums as pieces: with X ≥ 0, and with entrywise weights.
#[test]
fn nonnegative_sums_against_grid() {
    pieces_against_grid(39, (true, true), |rng, _| {
        let lambda = pick(rng, &[0.0, 0.03, 0.3, 1.0, 3.0]);
        let penalty = match rng.random() {
            true => Penalty::l1(lambda),
            false => Penalty::l0(lambda),
        };
        penalty.plus(&Penalty::NONNEGATIVE).unwrap()
    });
}

#[test]
fn entrywise_sums_against_grid() {
    pieces_against_grid(40, (false, true), |rng, instance| {
        let mut weights = || {
            let size = pick(rng, &[0.1, 1.0]);
            Array2::from_shape_fn((2, instance.x.len()), |_| size * pick(rng, &[0.0, 0.3, 1.0]))
        };
        let counted = Penalty::l0(weights());
        let weighted = Penalty::l1(weights());
        let sum = counted.plus(&weighted).unwrap();
        match rng.random_range(0..3) {
            0 => sum,
            1 => sum.plus(&scad(rng, instance)).unwrap(),
            _ => sum.plus(&interval(rng, instance)).unwrap(),
        }
    });
}

#[test]
fn piecewise_quadratic_against_grid() {
    // Where penalties jump, entries that differ by rounding are told apart by one of the two only.
    pieces_against_grid(31, (false, false), pieces);
}

#[test]
fn sums_against_grid() {
    // Where penalties jump, entries that differ by rounding are told apart by one of the two only.
    pieces_against_grid(33, (false, false), |rng, instance| {
        let inner = Penalty::l0(0.1).plus(&pieces(rng, instance)).unwrap();
        inner.plus(&Penalty::l1(0.3)).unwrap()
    });
}

/// A sum of pieces is the sum of the terms, at its breakpoints too.
#[test]
fn a_sum_of_pieces_is_the_sum_of_the_terms() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(23);
    for _ in 0..2_000 {
        let instance = unit_instance(&mut rng, false, true);
        let (first, second) = (pieces(&mut rng, &instance), pieces(&mut rng, &instance));
        let first = first.plus(&Penalty::l0(0.3)).unwrap();
        let Ok(sum) = first.plus(&second) else {
            continue;
        };
        let random: Vec<f64> = (0..5).map(|_| normal(&mut rng)).collect();
        let levels = sum.breakpoints().iter().chain(&random);
        for &v in levels {
            for v in [v, v.next_up(), v.next_down()] {
                let apart = first.entry(0, 0, v) + second.entry(0, 0, v);
                let entry = sum.entry(0, 0, v);
                assert!(
                    entry == apart || (entry - apart).abs() <= 1e-14 * (1.0 + apart.abs()),
                    "{first:?} {second:?} at {v}: {entry} and {apart}"
                );
            }
        }
    }
}

fn against_generic(seed: u64, make: impl FnMut(&mut Xoshiro256PlusPlus, &Instance) -> Penalty) {
    against_generic_on(seed, |_, _| (), make);
}

/// On instances that `change` changes.
fn against_generic_on(
    seed: u64,
    change: impl Fn(&mut Xoshiro256PlusPlus, &mut Instance),
    mut make: impl FnMut(&mut Xoshiro256PlusPlus, &Instance) -> Penalty,
) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut scratch = Scratch::new(8);
    for trial in 0..5_000 {
        // Slopes that differ by rounding may count as equal in one and not in the other.
        let mut instance = instance(&mut rng, false, false);
        change(&mut rng, &mut instance);
        let penalty = make(&mut rng, &instance);
        let fast = solve_on_circle(&penalty, &instance.pair(), &mut scratch);
        let slow = solve_on_circle(&penalty.general(), &instance.pair(), &mut scratch);
        let scale = scale(&penalty, &instance);
        assert!(
            (fast.value - slow.value).abs() <= TOLERANCE * scale,
            "trial {trial}: kernel {fast:?}, generic {slow:?}: {:?} {:?} {:?} {:?}",
            instance.x,
            instance.y,
            instance.rotation,
            instance.reflection
        );
    }
}

#[test]
fn kernels_agree_with_the_generic_solver() {
    against_generic(11, |_, _| Penalty::NONE);
    against_generic(12, |rng, instance| Penalty::l0(weight(rng, instance, false)));
    against_generic(13, |rng, instance| Penalty::l1(weight(rng, instance, true)));
    against_generic(14, |rng, instance| {
        let top = weight(rng, instance, true);
        Penalty::l1(Array2::from_shape_fn((2, instance.x.len()), |_| top * rng.random::<f64>()))
    });
}

/// An entry that is zero up to rounding costs nothing where it becomes zero, be it at the identity.
#[test]
fn entries_that_are_zero_up_to_rounding_vanish() {
    let with_tiny = |rng: &mut Xoshiro256PlusPlus, instance: &mut Instance| {
        let rows = instance.x.iter_mut().zip(&mut instance.y);
        for (x, y) in rows {
            let tiny = pick(rng, &[1e-17, -1e-17, 1e-16, 1e-100]);
            match rng.random_range(0..4) {
                0 => *x = *y * tiny,
                1 => *y = *x * tiny,
                _ => {}
            }
        }
    };
    against_generic_on(21, with_tiny, |rng, instance| Penalty::l0(weight(rng, instance, false)));
}

/// Entries of a large and a small column, one perpendicular to the other up to the rounding of the large one, vanish
/// together, and beyond it they do not. The small column comes before and after the large one, on both sides of an axis.
#[test]
fn entries_that_are_zero_up_to_the_rounding_of_the_pair_vanish_together() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(45);
    let mut scratch = Scratch::new(8);
    for trial in 0..6_000 {
        let (size, angle) = (10f64.powf(rng.random_range(-7.0..0.0)), rng.random_range(0.0..TAU));
        // In units of the tolerance of ℓ0; angles of other penalties are less exact.
        let off = pick(&mut rng, &[0.0, 0.3, 0.4, 20.0, 50.0]) * pick(&mut rng, &[-1.0, 1.0]);
        let other = angle + f64::from(trial % 4) * TAU / 4.0 + off * 8.0 * f64::EPSILON / size;
        let mut columns = [(angle.cos(), angle.sin()), (size * other.cos(), size * other.sin())];
        if trial % 8 > 3 {
            columns.reverse();
        }
        let mut x = vec![columns[0].0, columns[1].0];
        let mut y = vec![columns[0].1, columns[1].1];
        x.resize(8, 0.0);
        y.resize(8, 0.0);
        let zero = Trig::default();
        let pair = CirclePair { rows: (0, 1), x: &x, y: &y, rotation: zero, reflection: Some(zero) };
        let weights = Array2::from_elem((2, 8), 1.0);
        let penalties =
            [Penalty::l0(1.0), Penalty::l0(weights.clone()), Penalty::l0(1.0).plus(&Penalty::l1(1e-9)).unwrap()];
        let general = penalties.clone().map(|penalty| penalty.general());
        for (kind, penalty) in penalties.iter().chain(&general).enumerate() {
            let best = solve_on_circle(penalty, &pair, &mut scratch);
            let (mut x, mut y) = (x.clone(), y.clone());
            for (x, y) in x.iter_mut().zip(&mut y) {
                (*x, *y) = turned(best.turn.c, best.turn.s, best.turn.reflect, *x, *y);
            }
            scratch.settle(&mut x, &mut y);
            let zeros = (0..2).map(|k| usize::from(x[k] == 0.0) + usize::from(y[k] == 0.0)).sum::<usize>();
            let expected = if off.abs() < 1.0 { 2 } else { 1 };
            assert_eq!(zeros, expected, "{kind}: size {size:e}, angle {angle}, {off} tolerances, {best:?}");
            assert!((best.value + zeros as f64).abs() < 1e-8);
        }
    }
}

#[test]
fn even_kernels_agree_with_the_generic_solver() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(15);
    let mut scratch = Scratch::new(40);
    for trial in 0..4_000 {
        let mut instance = unit_instance(&mut rng, false, true);
        if trial % 4 == 0 {
            // More breakpoints than are sorted by rank.
            let mut row = || (0..40).map(|_| normal(&mut rng)).collect();
            (instance.x, instance.y) = (row(), row());
        }
        let penalty = match trial % 3 {
            0 => even(&mut rng, &instance),
            1 => scad(&mut rng, &instance),
            _ => mcp(&mut rng, &instance),
        };
        let fast = solve_on_circle(&penalty, &instance.pair(), &mut scratch);
        let slow = solve_on_circle(&penalty.general(), &instance.pair(), &mut scratch);
        let scale = scale(&penalty, &instance);
        assert!(
            (fast.value - slow.value).abs() <= TOLERANCE * scale,
            "trial {trial}: kernel {fast:?}, generic {slow:?}: {penalty:?}"
        );
    }
}

/// Penalties that jump up from 0 and are linear beyond, of one weight and of entrywise ones.
#[test]
fn jump_kernels_agree_with_the_generic_solver() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(41);
    let mut scratch = Scratch::new(40);
    for trial in 0..4_000 {
        let mut instance = unit_instance(&mut rng, false, trial % 2 == 0);
        if trial % 4 == 1 {
            // More breakpoints than are sorted by rank.
            let mut row = || (0..40).map(|_| normal(&mut rng)).collect();
            (instance.x, instance.y) = (row(), row());
        }
        let mut weights = || {
            let size = pick(&mut rng, &[0.03, 0.3, 3.0]);
            let shares = if trial % 3 == 0 { [1.0; 3] } else { [0.0, 0.4, 1.0] };
            Array2::from_shape_fn((2, instance.x.len()), |_| size * pick(&mut rng, &shares))
        };
        let counted = Penalty::l0(weights());
        let slopes = Penalty::l1(weights());
        let penalty = match trial % 5 {
            0 => counted,
            _ => counted.plus(&slopes).unwrap(),
        };
        let fast = solve_on_circle(&penalty, &instance.pair(), &mut scratch);
        let slow = solve_on_circle(&penalty.general(), &instance.pair(), &mut scratch);
        let scale = scale(&penalty, &instance);
        assert!(
            (fast.value - slow.value).abs() <= TOLERANCE * scale,
            "trial {trial}: kernel {fast:?}, generic {slow:?}: {penalty:?} {:?} {:?}",
            instance.x,
            instance.y
        );
    }
}

/// Rows of up to a hundred entries, with equal slopes and zeros, at several scales.
#[test]
fn kernels_agree_with_the_generic_solver_on_long_rows() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(44);
    let mut scratch = Scratch::new(104);
    for trial in 0..3_000 {
        let mut instance = unit_instance(&mut rng, false, false);
        for _ in 0..pick(&mut rng, &[0, 3, 25]) {
            let more = unit_instance(&mut rng, false, false);
            instance.x.extend(more.x);
            instance.y.extend(more.y);
        }
        let size = pick(&mut rng, &[1.0, 2f64.powi(-300), 2f64.powi(300)]);
        for v in instance.x.iter_mut().chain(&mut instance.y) {
            *v *= size;
        }
        let penalty = match trial % 3 {
            0 => Penalty::l0(weight(&mut rng, &instance, false)),
            1 => Penalty::l1(weight(&mut rng, &instance, true)),
            _ => {
                let top = weight(&mut rng, &instance, true);
                let shares = [0.0, 0.4, 0.4, 1.0];
                Penalty::l1(Array2::from_shape_fn((2, instance.x.len()), |_| top * pick(&mut rng, &shares)))
            }
        };
        let fast = solve_on_circle(&penalty, &instance.pair(), &mut scratch);
        let actual = verify(&penalty, &instance, &fast, &scratch);
        let slow = solve_on_circle(&penalty.general(), &instance.pair(), &mut scratch);
        let scale = scale(&penalty, &instance);
        let claimed = identity_value(&penalty, &instance) + fast.value;
        assert!(
            (fast.value - slow.value).abs() <= TOLERANCE * scale && actual - claimed <= TOLERANCE * scale,
            "trial {trial}: kernel {fast:?}, generic {slow:?}, {actual}: {penalty:?} {:?} {:?}",
            instance.x,
            instance.y
        );
    }
}

/// Bounds, which entries or columns often just reach, around every form.
#[test]
fn bounded_kernels_agree_with_the_generic_solver() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(43);
    let mut scratch = Scratch::new(104);
    let mut held = 0;
    for trial in 0..6_000 {
        let mut instance = unit_instance(&mut rng, false, false);
        if trial % 4 == 0 {
            let r = pick(&mut rng, &[20, 40, 100]);
            let mut row = || (0..r).map(|_| normal(&mut rng)).collect();
            (instance.x, instance.y) = (row(), row());
        }
        let entries = instance.x.iter().chain(&instance.y);
        let largest = entries.fold(0.0f64, |m, v| m.max(v.abs())).max(0.1);
        let bound = largest * pick(&mut rng, &[1.0, 1.0, 1.0 + 1e-15, 1.01, 1.2, 1.4, 3.0]);
        let mut lengths = (instance.x.iter().zip(&instance.y)).map(|(x, y)| x.hypot(*y) / bound);
        if lengths.any(|length| (length - 1.0).abs() < 1e-6 && length != 1.0) {
            // Angles are known to half the digits.
            continue;
        }
        let lambda = pick(&mut rng, &[0.03, 0.3, 3.0]);
        let inside = match trial % 6 {
            0 => Penalty::NONE,
            1 => Penalty::l1(lambda),
            2 => Penalty::l0(lambda),
            3 => mcp(&mut rng, &instance),
            4 => scad(&mut rng, &instance),
            _ => even(&mut rng, &instance),
        };
        // Bounds on both sides, equal or not, or on one side alone.
        let infinity = f64::INFINITY;
        let (lower, upper) = match rng.random_range(0..6) {
            0 => (-infinity, bound),
            1 => (-bound, infinity),
            2 => (-1.5 * bound, bound),
            _ => (-bound, bound),
        };
        // Every other one of the penalties with one bound falls on the other side.
        let falling = Penalty::pieces(vec![0.5], vec![[0.0; 3], [0.5 * lambda, -lambda, 0.0]]);
        let inside = match trial % 12 == 6 && upper > bound {
            true => falling.unwrap(),
            false => inside,
        };
        let penalty = inside.plus(&Penalty::interval(lower, upper).unwrap()).unwrap();
        let fast = solve_on_circle(&penalty, &instance.pair(), &mut scratch);
        let actual = verify(&penalty, &instance, &fast, &scratch);
        let free = solve_on_circle(&inside, &instance.pair(), &mut scratch);
        let slow = solve_on_circle(&penalty.general(), &instance.pair(), &mut scratch);
        let scale = scale(&penalty, &instance);
        let claimed = identity_value(&penalty, &instance) + fast.value;
        assert!(
            (fast.value - slow.value).abs() <= TOLERANCE * scale && (actual - claimed).abs() <= TOLERANCE * scale,
            "trial {trial}: kernel {fast:?}, generic {slow:?}, {actual}: {penalty:?} {:?} {:?}",
            instance.x,
            instance.y
        );
        held += usize::from(fast.value > free.value + TOLERANCE * scale);
    }
    assert!(held > 1_000, "bounds often hold a pair back: {held}");
}

/// The scalar model of C + cI with the shift c is that of C, and lies above the exact one for every shift.
#[test]
fn the_scalar_model_does_not_depend_on_a_multiple_of_the_signature() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(42);
    for _ in 0..1_000 {
        let mut draw = || normal(&mut rng);
        let s = Sym2 { d0: 1.0 + draw().abs(), d1: 1.0 + draw().abs(), o: 0.3 * draw().tanh() };
        let m = Sym2 { d0: draw(), d1: draw(), o: draw() };
        let gz = [[draw(), draw()], [draw(), draw()]];
        let c = 50.0 * draw();
        let model = PairModel { gz, m, s, proximal: 0.1 };
        let shifted = PairModel {
            gz: [[gz[0][0] + c * s.d0, gz[0][1] + c * s.o], [gz[1][0] + c * s.o, gz[1][1] + c * s.d1]],
            m: Sym2 { d0: m.d0 + c, d1: m.d1 + c, ..m },
            ..model
        };
        let first = draw();
        let (one, other) = (model.scalar(first), shifted.scalar(first + c));
        let (one, other) = (one.branches(), other.branches());
        for (f, g) in [(one.0, other.0), (one.1, other.1)] {
            let gap = (f.a - g.a).abs() + (f.b - g.b).abs() + (f.p - g.p).abs() + (f.q - g.q).abs();
            assert!(gap <= 1e-12 * (1.0 + c.abs()), "{gap:e}");
        }
        // It lies above the exact model, and touches it at the identity.
        for reflect in [false, true] {
            for k in 0..64 {
                let angle = f64::from(k) * TAU / 64.0;
                let turn = Turn { c: angle.cos(), s: angle.sin(), reflect };
                let e = turn.minus_identity();
                let bound = shifted.scalar(first).change(e).0;
                assert!(bound >= shifted.change(e).0 - 1e-12 * (1.0 + c.abs()));
            }
        }
    }
}

#[test]
fn branches_are_the_definition() {
    // Δf(V) = ⟨E, GZᵀ⟩ + ½ tr(M E S Eᵀ) + α/2 ‖E‖², E = V − I, from the matrices.
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(21);
    for _ in 0..5_000 {
        let model = PairModel {
            gz: [[normal(&mut rng), normal(&mut rng)], [normal(&mut rng), normal(&mut rng)]],
            m: Sym2 { d0: normal(&mut rng), d1: normal(&mut rng), o: normal(&mut rng) },
            s: Sym2 { d0: normal(&mut rng), d1: normal(&mut rng), o: normal(&mut rng) },
            proximal: rng.random(),
        };
        let full = |v: [[f64; 2]; 2]| {
            let e = [[v[0][0] - 1.0, v[0][1]], [v[1][0], v[1][1] - 1.0]];
            let m = [[model.m.d0, model.m.o], [model.m.o, model.m.d1]];
            let s = [[model.s.d0, model.s.o], [model.s.o, model.s.d1]];
            let mut value = 0.0;
            for i in 0..2 {
                for j in 0..2 {
                    value += e[i][j] * model.gz[i][j] + 0.5 * model.proximal * e[i][j] * e[i][j];
                    for k in 0..2 {
                        for l in 0..2 {
                            value += 0.5 * m[i][j] * e[j][k] * s[k][l] * e[i][l];
                        }
                    }
                }
            }
            value
        };
        let (rotation, reflection) = model.branches();
        let identity = rotation.value(1.0, 0.0);
        let theta = rng.random_range(0.0..TAU);
        let (s, c) = theta.sin_cos();
        let rotated = full([[c, s], [-s, c]]);
        let reflected = full([[c, s], [s, -c]]);
        assert!((rotation.value(c, s) - identity - rotated).abs() < 1e-13);
        assert!((reflection.value(c, s) - identity - reflected).abs() < 1e-13);
        let e = [[c - 1.0, s], [-s, c - 1.0]];
        let proximal = model.proximal * ((c - 1.0) * (c - 1.0) + s * s);
        let (change, size) = model.change(e);
        assert!((change + proximal - rotated).abs() < 1e-13);
        // Terms of one sign are as large together as their sum.
        assert!(size >= change.abs() * (1.0 - 1e-15));
        let absolute = |a: Sym2| Sym2 { d0: a.d0.abs(), d1: a.d1.abs(), o: a.o.abs() };
        let positive = PairModel {
            gz: model.gz.map(|row| row.map(f64::abs)),
            m: absolute(model.m),
            s: absolute(model.s),
            ..model
        };
        let (change, size) = positive.change(e.map(|row| row.map(f64::abs)));
        assert!((size - change).abs() <= 1e-14 * size, "{size} of {change}");
    }
}

#[test]
fn quarter_turns_only_permute() {
    // A pair whose smooth part is constant gains nothing under any penalty that ignores signs.
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(22);
    let mut scratch = Scratch::new(4);
    for _ in 0..1_000 {
        let angle = FRAC_PI_2 * f64::from(rng.random_range(0u32..4));
        let instance = Instance {
            x: vec![angle.cos().round(), 0.0],
            y: vec![angle.sin().round(), 0.0],
            rotation: Trig::default(),
            reflection: Trig::default(),
        };
        let best = solve_on_circle(&Penalty::l0(1.0), &instance.pair(), &mut scratch);
        assert_eq!(best.value, 0.0);
        let best = solve_on_circle(&Penalty::l1(1.0), &instance.pair(), &mut scratch);
        assert!(best.value.abs() < 1e-15);
    }
}
