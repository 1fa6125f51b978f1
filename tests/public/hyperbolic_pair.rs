//! The pair solver on the hyperbola against a refined dense grid in μ, all components, all
//! penalties, random and adversarial instances.

use ndarray::Array2;
use orthobcd::pair::{
    BestBoost, Boost, Hyp, HyperbolaPair, LightModel, PairModel, RECESSION_TOLERANCE, SIGNS, Scratch, Sym2,
};
use orthobcd::penalty::{Penalty, solve_on_hyperbola};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::common::{dot, instances, light, normal};

/// Instances per penalty and component.
const INSTANCES: usize = 3_000;

/// Excess over the reference, relative to the sum of magnitudes, that is rounding.
const TOLERANCE: f64 = 1e-12;

#[derive(Clone)]
struct Instance {
    x: Vec<f64>,
    y: Vec<f64>,
    g: [Vec<f64>; 2],
    m: Sym2,
    proximal: f64,
}

/// Random instances; every third or so is adversarial: nearly lightlike rows, p ± q → 0, minima at
/// rapidities up to 15, shared breakpoints, zero entries, zero gradients.
fn instance(rng: &mut Xoshiro256PlusPlus, nonnegative: bool) -> Instance {
    let r = rng.random_range(1..7usize);
    let mut x: Vec<f64> = (0..r).map(|_| normal(rng)).collect();
    let mut y: Vec<f64> = (0..r).map(|_| normal(rng)).collect();
    let mut g = [(); 2].map(|()| (0..r).map(|_| 3.0 * normal(rng)).collect::<Vec<f64>>());
    // M = BBᵀ + small.
    let b: Vec<f64> = (0..4).map(|_| normal(rng)).collect();
    let mut m = Sym2 {
        d0: b[0] * b[0] + b[1] * b[1] + 1e-3,
        d1: b[2] * b[2] + b[3] * b[3] + 1e-3,
        o: b[0] * b[2] + b[1] * b[3],
    };
    let mut proximal = if rng.random_bool(0.5) { 0.0 } else { 1e-5 };
    match rng.random_range(0..10u32) {
        0 => {
            // Nearly lightlike rows.
            let sign = if rng.random_bool(0.5) { 1.0 } else { -1.0 };
            let small = 10f64.powf(rng.random_range(-12.0..-1.0));
            for (x, y) in x.iter().zip(y.iter_mut()) {
                *y = sign * x + small * *y;
            }
        }
        1 => {
            // M nearly singular along (1, ±1): p + q or p − q → 0.
            let sign = if rng.random_bool(0.5) { 1.0 } else { -1.0 };
            let small = 10f64.powf(rng.random_range(-9.0..-1.0));
            m = Sym2 { d0: 1.0 + small, d1: 1.0 + small, o: sign };
        }
        2 => {
            // A minimum far out: boost an ordinary instance away.
            let mu: f64 = rng.random_range(-15.0..15.0);
            let (u, v) = (mu.exp(), (-mu).exp());
            for (x, y) in x.iter_mut().zip(y.iter_mut()) {
                let (p, q) = (0.5 * u * (*x + *y), 0.5 * v * (*x - *y));
                (*x, *y) = (p + q, p - q);
            }
        }
        3 => {
            // Shared breakpoints and zeros.
            let (a, b) = (normal(rng), normal(rng));
            for k in 0..r {
                if rng.random_bool(0.6) {
                    let t = normal(rng);
                    (x[k], y[k]) = match rng.random_range(0..4u32) {
                        0 => (0.0, t),
                        1 => (t, 0.0),
                        2 => (a * t, b * t),
                        _ => (b * t, a * t),
                    };
                }
            }
        }
        4 => {
            g = [vec![0.0; r], vec![0.0; r]];
        }
        5 => {
            // Three stationary points: strong opposing gradients.
            for k in 0..r {
                g[0][k] = -20.0 * x[k];
                g[1][k] = -20.0 * y[k];
            }
            proximal = 0.0;
        }
        _ => {}
    }
    if nonnegative {
        x.iter_mut().chain(y.iter_mut()).for_each(|v| *v = v.abs());
    }
    Instance { x, y, g, m, proximal }
}

impl Instance {
    fn light(&self) -> LightModel {
        light([&self.x, &self.y], &self.g, self.m, self.proximal)
    }

    /// (value, magnitude) of the surrogate at V = D H(μ), straight from the new rows.
    fn value(&self, penalty: &Penalty, u: f64, signs: [f64; 2], zeros: &[u32]) -> (f64, f64) {
        let (mut value, mut size) = (0.0, 0.0);
        let mut h = 0.0;
        for k in 0..self.x.len() {
            let (x, y) = (self.x[k], self.y[k]);
            let (up, down) = (0.5 * u * (x + y), 0.5 * (x - y) / u);
            let mut new = [signs[0] * (up + down), signs[1] * (up - down)];
            let scale = up.abs() + down.abs();
            if zeros.contains(&(k as u32)) {
                let smaller = usize::from(new[1].abs() < new[0].abs());
                assert!(new[smaller].abs() <= 1e-13 * scale, "{new:?}");
                new[smaller] = 0.0;
            }
            let d = [new[0] - x, new[1] - y];
            let terms = [
                self.g[0][k] * d[0],
                self.g[1][k] * d[1],
                0.5 * self.m.d0 * d[0] * d[0] + 0.5 * self.m.d1 * d[1] * d[1] + self.m.o * d[0] * d[1],
            ];
            value += terms.iter().sum::<f64>();
            size += (scale + x.abs() + y.abs())
                * (self.g[0][k].abs()
                    + self.g[1][k].abs()
                    + (scale + x.abs() + y.abs()) * (self.m.d0.abs() + self.m.d1.abs()));
            h += penalty.entry(0, k, new[0]) - penalty.entry(0, k, x);
            h += penalty.entry(1, k, new[1]) - penalty.entry(1, k, y);
            if h.is_finite() {
                size += penalty.entry(0, k, x).abs() + penalty.entry(1, k, y).abs();
            }
        }
        let e = Boost { u, signs }.minus_identity();
        value += 0.5 * self.proximal * e.iter().flatten().map(|v| v * v).sum::<f64>();
        (value + h, size)
    }

    fn solve(&self, penalty: &Penalty, scratch: &mut Scratch) -> BestBoost {
        let pair = HyperbolaPair::new((0, 1), &self.x, &self.y, &self.light(), None);
        solve_on_hyperbola(penalty, &pair, scratch)
    }

    /// The instance with zeros in both rows of some columns, in every fifth `trial`.
    fn with_zero_columns(mut self, trial: usize) -> Self {
        if trial.is_multiple_of(5) {
            for k in (1..self.x.len()).filter(|k| (trial / 5).is_multiple_of(2) || k % 2 == 1) {
                (self.x[k], self.y[k]) = (0.0, 0.0);
            }
        }
        self
    }

    /// The instance whose F at V is this one's F at DV, D = diag(signs), up to a constant, the proximal
    /// term and what a penalty makes of signs: its minimum lies in another component.
    ///
    /// `⟨DV, GZᵀ⟩ + ½tr(M(DV − I)S(DV − I)ᵀ)` has the matrix DMD and the gradient `DG + DMD(I − D)Z`.
    fn turned(&self, signs: [f64; 2]) -> Self {
        let m = Sym2 { o: self.m.o * signs[0] * signs[1], ..self.m };
        let rows = [[m.d0, m.o], [m.o, m.d1]];
        let g = [0, 1].map(|row: usize| {
            (0..self.x.len())
                .map(|k| {
                    signs[row] * self.g[row][k]
                        + rows[row][0] * (1.0 - signs[0]) * self.x[k]
                        + rows[row][1] * (1.0 - signs[1]) * self.y[k]
                })
                .collect()
        });
        Self { g, m, ..self.clone() }
    }

    /// The least value on a dense grid of all four components, refined locally, at the breakpoints
    /// (with the entry zero) and at the identity.
    fn reference(&self, penalty: &Penalty) -> f64 {
        let mut best = 0.0f64;
        const N: i32 = 160;
        const REACH: f64 = 16.0;
        let step = 2.0 * REACH / f64::from(N);
        for signs in SIGNS {
            let at = |mu: f64| self.value(penalty, mu.exp(), signs, &[]).0;
            let grid: Vec<f64> = (0..=N).map(|i| at(-REACH + step * f64::from(i))).collect();
            for i in 0..grid.len() {
                best = best.min(grid[i]);
                let left = if i == 0 { f64::INFINITY } else { grid[i - 1] };
                let right = grid.get(i + 1).copied().unwrap_or(f64::INFINITY);
                // Only what could beat the best by refinement is refined.
                if grid[i] <= left && grid[i] <= right && grid[i].is_finite() {
                    let centre = -REACH + step * i as f64;
                    let (mut a, mut b) = (centre - step, centre + step);
                    for _ in 0..40 {
                        let (c, d) = (a + 0.381_966 * (b - a), a + 0.618_034 * (b - a));
                        if at(c) < at(d) { b = d } else { a = c }
                    }
                    best = best.min(at(0.5 * (a + b)));
                }
            }
            for k in 0..self.x.len() {
                let (p, m) = (self.x[k] + self.y[k], self.x[k] - self.y[k]);
                if p == 0.0 || m == 0.0 {
                    continue;
                }
                let u = (m / p).abs().sqrt();
                let zeros: Vec<u32> = (0..self.x.len())
                    .filter(|&l| {
                        let (p, m) = (self.x[l] + self.y[l], self.x[l] - self.y[l]);
                        p != 0.0 && ((m / p).abs().sqrt() / u - 1.0).abs() < 1e-15
                    })
                    .map(|l| l as u32)
                    .collect();
                best = best.min(self.value(penalty, u, signs, &zeros).0);
            }
        }
        best
    }
}

fn check(name: &str, nonnegative: bool, draw: impl Fn(&mut Xoshiro256PlusPlus) -> Penalty) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(name.len() as u64);
    let mut scratch = Scratch::new(8);
    let (mut worst, mut moved, mut furthest) = (0.0f64, 0, 0.0f64);
    let mut components = [0usize; 4];
    let mut base = (instance(&mut rng, nonnegative), draw(&mut rng));
    // Of every instance, what turning makes of it for each component, until each has won often enough
    // (20 % more instances than components do: the proximal term pulls some back to the identity's).
    let (count, every) = instances(48 * INSTANCES / 10);
    for trial in 0..count {
        if trial % 4 == 0 {
            let case = instance(&mut rng, nonnegative).with_zero_columns(trial / 4);
            base = (case, draw(&mut rng));
        }
        let case = base.0.turned(SIGNS[trial % 4]);
        let penalty = &base.1;
        let best = case.solve(penalty, &mut scratch);
        assert!(best.unbounded.is_none(), "{name} {trial}: false alarm");
        let zeros = scratch.vanishing.clone();
        let (value, size) = case.value(penalty, best.boost.u, best.boost.signs, &zeros);
        let compared = (trial / 4).is_multiple_of(every);
        let reference = if compared { case.reference(penalty) } else { 0.0 };
        assert!(value.is_finite(), "{name} {trial}: infeasible {best:?}");
        // What the solver says is what it gets, or better: an entry that vanishes by rounding is not counted on.
        assert!(
            value - best.value <= 1e-11 * size,
            "{name} {trial}: claims {} gets {value}, size {size:e}",
            best.value
        );
        let excess = (value - reference) / size;
        assert!(excess <= TOLERANCE, "{name} {trial}: {value} against {reference}, size {size:e}, {best:?}");
        worst = worst.max(excess);
        moved += usize::from(value < 0.0);
        furthest = furthest.max(best.boost.rapidity().abs());
        components[SIGNS.iter().position(|s| *s == best.boost.signs).unwrap()] += 1;
        if !compared {
            continue;
        }
        let generic = case.solve(&penalty.general(), &mut scratch);
        assert!(
            (generic.value - best.value).abs() <= 1e-11 * size,
            "{name} {trial}: kernel {} generic {}",
            best.value,
            generic.value
        );
    }
    println!("{name}: worst {worst:.1e}, moved {moved}, |μ| up to {furthest:.1}, components {components:?}");
    assert!(moved > INSTANCES);
    assert!(furthest > 14.0);
    // X ≥ 0 leaves (−,−) out of reach, and the mixed ones but for rows with zeros.
    assert!(nonnegative || components.iter().all(|&c| c >= INSTANCES), "{components:?}");
}

#[test]
fn no_penalty_is_global() {
    check("none", false, |_| Penalty::NONE);
}

#[test]
fn l0_is_global() {
    check("l0", false, |rng| Penalty::l0(10f64.powf(rng.random_range(-3.0..3.0))));
}

#[test]
fn l1_is_global() {
    check("l1", false, |rng| Penalty::l1(10f64.powf(rng.random_range(-3.0..2.0))));
}

#[test]
fn weighted_l1_is_global() {
    check("weights", false, |rng| {
        Penalty::l1(Array2::from_shape_fn(
            (2, 6),
            |_| {
                if rng.random_bool(0.2) { 0.0 } else { rng.random_range(0.0..5.0) }
            },
        ))
    });
}

#[test]
fn nonnegative_is_global() {
    check("nonneg", true, |_| Penalty::NONNEGATIVE);
}

/// The value at u with every entry on the level that it is next to, and the magnitude of its terms.
fn settled(case: &Instance, penalty: &Penalty, u: f64, signs: [f64; 2]) -> (f64, f64) {
    let (mut value, mut size) = case.value(&Penalty::NONE, u, signs, &[]);
    for k in 0..case.x.len() {
        let (up, down) = (0.5 * u * (case.x[k] + case.y[k]), 0.5 * (case.x[k] - case.y[k]) / u);
        let reach = up.abs() + down.abs() + case.x[k].abs() + case.y[k].abs();
        let new = [signs[0] * (up + down), signs[1] * (up - down)];
        for (row, (now, new)) in [case.x[k], case.y[k]].into_iter().zip(new).enumerate() {
            let near = |l: &&f64| (new - **l).abs() <= 1e-14 * reach;
            let new = penalty.breakpoints().iter().find(near).copied().unwrap_or(new);
            value += penalty.entry(row, k, new) - penalty.entry(row, k, now);
            let pieces = penalty.breakpoints().iter().chain([&f64::NEG_INFINITY]);
            let penalties = pieces.map(|&level| {
                let [a, b, c] = penalty.piece(row, k, level);
                a.abs() + b.abs() * reach + 0.5 * c.abs() * reach * reach
            });
            size += penalties.filter(|v| v.is_finite()).fold(0.0, f64::max);
        }
    }
    (value, size)
}

/// The least value at the points where an entry meets a level.
fn at_levels(case: &Instance, penalty: &Penalty) -> f64 {
    let mut least = f64::INFINITY;
    for signs in SIGNS {
        for k in 0..case.x.len() {
            let (p, m) = (0.5 * (case.x[k] + case.y[k]), 0.5 * (case.x[k] - case.y[k]));
            for (alpha, beta) in [(signs[0] * p, signs[0] * m), (signs[1] * p, -signs[1] * m)] {
                for &level in penalty.breakpoints() {
                    let root = (level * level - 4.0 * alpha * beta).sqrt();
                    for u in [(level + root) / (2.0 * alpha), (level - root) / (2.0 * alpha)] {
                        if u > 1e-7 && u < 1e7 {
                            let value = settled(case, penalty, u, signs).0;
                            if value.is_finite() {
                                least = least.min(value);
                            }
                        }
                    }
                }
            }
        }
    }
    least
}

/// Random pieces that do not fall without bound, jumps at every breakpoint, some pieces infinite; the
/// identity is feasible.
fn pieces(rng: &mut Xoshiro256PlusPlus, case: &Instance) -> Penalty {
    loop {
        let mut breakpoints: Vec<f64> = (0..rng.random_range(0..5))
            .map(|_| match rng.random_range(0..5) {
                0 => case.x[rng.random_range(0..case.x.len())],
                1 => case.y[rng.random_range(0..case.y.len())],
                2 => 0.0,
                _ => 2.0 * normal(rng),
            })
            .collect();
        breakpoints.sort_by(f64::total_cmp);
        breakpoints.dedup();
        let count = breakpoints.len();
        let pieces = (0..=count).map(|k| match rng.random_range(0..6) {
            0 => [f64::INFINITY, 0.0, 0.0],
            1 => [normal(rng), 0.0, 0.0],
            _ if k == 0 || k == count => [normal(rng), normal(rng), normal(rng).abs()],
            _ => [normal(rng), normal(rng), normal(rng)],
        });
        let pieces = pieces.collect();
        if let Ok(penalty) = Penalty::pieces(breakpoints, pieces)
            && settled(case, &penalty, 1.0, [1.0, 1.0]).0.is_finite()
        {
            return penalty;
        }
    }
}

fn check_pieces(seed: u64, nonnegative: bool, draw: impl Fn(&mut Xoshiro256PlusPlus, &Instance) -> Penalty) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut scratch = Scratch::new(8);
    let mut moved = 0;
    for trial in 0..INSTANCES {
        let case = instance(&mut rng, nonnegative).with_zero_columns(trial / 4);
        let case = match nonnegative {
            true => case,
            false => case.turned(SIGNS[trial % 4]),
        };
        let penalty = draw(&mut rng, &case);
        let best = case.solve(&penalty, &mut scratch);
        assert!(best.unbounded.is_none(), "{trial}: false alarm");
        let (value, size) = settled(&case, &penalty, best.boost.u, best.boost.signs);
        let reference = case.reference(&penalty).min(at_levels(&case, &penalty));
        // What it gets may be better: entries that are next to a level count as being there.
        assert!(value - best.value <= 1e-11 * size, "{trial}: claims {} gets {value}, size {size:e}", best.value);
        assert!(value - reference <= TOLERANCE * size, "{trial}: {value} against {reference}, size {size:e}, {best:?}");
        moved += usize::from(value < 0.0);
    }
    assert!(moved > INSTANCES / 2);
}

#[test]
fn piecewise_quadratic_is_global() {
    check_pieces(41, false, pieces);
    check_pieces(42, false, |rng, case| {
        let inner = Penalty::l0(0.3).plus(&pieces(rng, case)).unwrap();
        inner.plus(&Penalty::l1(0.2)).unwrap()
    });
}

/// Where an entry is, or anywhere.
fn level(rng: &mut Xoshiro256PlusPlus, case: &Instance) -> f64 {
    let k = rng.random_range(0..case.x.len());
    let size = match rng.random_range(0..4) {
        0 => case.x[k].abs(),
        1 => case.y[k].abs(),
        _ => rng.random_range(0.1..2.0),
    };
    if size > 1e-3 { size } else { 0.5 }
}

#[test]
fn capped_l1_is_global() {
    check_pieces(43, false, |rng, case| {
        let lambda = rng.random_range(0.0..3.0);
        Penalty::capped_l1(lambda, level(rng, case)).unwrap()
    });
}

#[test]
fn mcp_is_global() {
    check_pieces(45, false, |rng, case| {
        let lambda = rng.random_range(0.1..3.0);
        Penalty::mcp(lambda, level(rng, case) / lambda).unwrap()
    });
}

#[test]
fn scad_is_global() {
    check_pieces(46, false, |rng, case| {
        let a = rng.random_range(2.1..5.0);
        Penalty::scad(level(rng, case) / a, a).unwrap()
    });
}

#[test]
fn interval_is_global() {
    check_pieces(47, false, |rng, case| {
        let mut slack = || [0.0, 0.1, 1.0][rng.random_range(0..3)];
        let (below, above) = (slack(), slack());
        let entries = || case.x.iter().chain(&case.y);
        let lower = entries().fold(0.0f64, |m, v| m.min(*v)) - below;
        // Entries on both ends leave single points, which rounding may hide.
        let above = if below == 0.0 { 0.1 } else { above };
        let upper = entries().fold(1e-3f64, |m, v| m.max(*v)) + above;
        Penalty::interval(lower, upper).unwrap()
    });
}

#[test]
fn nonnegative_sums_are_global() {
    check_pieces(48, true, |rng, _| {
        let lambda = rng.random_range(0.0..3.0);
        let penalty = match rng.random() {
            true => Penalty::l1(lambda),
            false => Penalty::l0(lambda),
        };
        penalty.plus(&Penalty::NONNEGATIVE).unwrap()
    });
}

#[test]
fn entrywise_sums_are_global() {
    check_pieces(49, false, |rng, case| {
        let mut weights = || Array2::from_shape_fn((2, case.x.len()), |_| [0.0, 0.3, 1.0][rng.random_range(0..3)]);
        let counted = Penalty::l0(weights());
        let weighted = Penalty::l1(weights());
        counted.plus(&weighted).unwrap()
    });
}

/// A concave tail falls faster than a flat smooth part grows.
#[test]
fn concave_tails_are_recognised_as_unbounded() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(44);
    let mut scratch = Scratch::new(8);
    for _ in 0..INSTANCES / 10 {
        let case = instance(&mut rng, false);
        let steep = 10.0 * (case.m.d0 + case.m.d1);
        let tail = [0.0, 0.0, -steep];
        let falling = Penalty::pieces(vec![-1.0, 1.0], vec![tail, [0.0; 3], tail]);
        assert!(case.solve(&falling.unwrap(), &mut scratch).unbounded.is_some());
    }
}

/// Unbounded iff w±ᵀM w±·|z±|² < 0 for some component, or = 0 with a falling linear part.
#[test]
fn unbounded_instances_are_recognised() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut scratch = Scratch::new(8);
    let mut counts = [0usize; 2];
    for _ in 0..5 * INSTANCES {
        let mut case = instance(&mut rng, false);
        // Any inertia.
        case.m = Sym2 { d0: normal(&mut rng) + 1.0, d1: normal(&mut rng) + 1.0, o: 0.5 * normal(&mut rng) };
        let bounded = case.m.d0 + case.m.d1 > 2.0 * case.m.o.abs();
        for unbounded in [
            case.solve(&Penalty::NONE, &mut scratch).unbounded,
            case.solve(&Penalty::l0(1.0), &mut scratch).unbounded,
            case.solve(&Penalty::l1(1.0), &mut scratch).unbounded,
            case.solve(&Penalty::l1(1.0).general(), &mut scratch).unbounded,
        ] {
            assert_eq!(unbounded.is_none(), bounded, "{:?}", case.m);
            if let Some((signs, upwards)) = unbounded {
                // f + h does fall along the direction it names, whatever the proximal term.
                let case = Instance { proximal: 0.0, ..case.clone() };
                let far = |mu: f64| {
                    let u = if upwards { mu.exp() } else { (-mu).exp() };
                    case.value(&Penalty::l1(1.0), u, signs, &[]).0
                };
                assert!(
                    far(150.0) < -1e3 && far(160.0) < far(150.0),
                    "{} {} {signs:?} {upwards} {:?} {:?} {:?}",
                    far(150.0),
                    far(160.0),
                    case.m,
                    case.x,
                    case.y
                );
            }
        }
        counts[usize::from(bounded)] += 1;
    }
    assert!(counts.iter().all(|&c| c > INSTANCES), "{counts:?}");
}

#[test]
fn flat_directions_follow_the_linear_part() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(8);
    let mut scratch = Scratch::new(8);
    let mut seen = [0usize; 2];
    for _ in 0..INSTANCES {
        let mut case = instance(&mut rng, false);
        case.proximal = 0.0;
        // w₊ᵀM w₊ = 0 exactly on (+,+) and (−,−): slopes of opposite sign there, so one of them falls.
        case.m = Sym2 { d0: 1.0, d1: 1.0, o: -1.0 };
        let plus: Vec<f64> = case.x.iter().zip(&case.y).map(|(x, y)| x + y).collect();
        let slope = dot(&case.g[0], &plus) + dot(&case.g[1], &plus);
        let size: f64 = case.g.iter().flatten().map(|v| v.abs()).sum::<f64>();
        let none = case.solve(&Penalty::NONE, &mut scratch).unbounded;
        if slope.abs() > 1e-6 * size {
            assert!(none.is_some());
            // An ℓ1 penalty steeper than the slope makes it bounded, a flatter one does not.
            let norm: f64 = plus.iter().map(|v| v.abs()).sum();
            // (−,+) and (+,−): u → 0 has w₋ᵀMw₋ = 0 as well, with slope (g₁ − g₂)·z₋.
            let minus: Vec<f64> = case.x.iter().zip(&case.y).map(|(x, y)| x - y).collect();
            let other = dot(&case.g[0], &minus) + dot(&case.g[1], &minus);
            let norm_minus: f64 = minus.iter().map(|v| v.abs()).sum();
            let steep = (0.5 * slope.abs() / norm).max(0.5 * other.abs() / norm_minus);
            let above = Penalty::l1(1.01 * steep);
            assert!(case.solve(&above, &mut scratch).unbounded.is_none());
            let below = Penalty::l1(0.99 * steep);
            assert!(case.solve(&below, &mut scratch).unbounded.is_some());
            assert!(case.solve(&below.general(), &mut scratch).unbounded.is_some());
            seen[0] += 1;
        } else if case.g.iter().flatten().all(|&v| v == 0.0) {
            assert!(none.is_none());
            seen[1] += 1;
        }
    }
    assert!(seen[0] > INSTANCES / 10 && seen[1] > INSTANCES / 100, "{seen:?}");
}

#[test]
fn recession_tolerance_from_both_sides() {
    let mut scratch = Scratch::new(1);
    let with = |defect: f64| Instance {
        x: vec![1.0],
        y: vec![0.5],
        g: [vec![0.0], vec![0.0]],
        m: Sym2 { d0: 1.0, d1: 1.0, o: 1.0 + 2.0 * defect },
        proximal: 0.0,
    };
    // (1, −1)ᵀM(1, −1) = −4·defect, against 4 in magnitude.
    assert!(with(0.5 * RECESSION_TOLERANCE).solve(&Penalty::NONE, &mut scratch).unbounded.is_none());
    assert!(with(2.0 * RECESSION_TOLERANCE).solve(&Penalty::NONE, &mut scratch).unbounded.is_some());
    // Along (1, 1)ᵀM(1, 1) = 0 the linear part decides, here ¾(g₁ + g₂), against ¾(|g₁| + |g₂|) in
    // magnitude.
    let linear = |defect: f64| {
        let mut case = with(0.0);
        case.m.o = -1.0;
        case.g = [vec![1e6], vec![-1e6 * (1.0 + 2.0 * defect)]];
        case
    };
    for sign in [1.0, -1.0] {
        let mut falls = |share: f64| {
            let case = linear(sign * share * RECESSION_TOLERANCE);
            let best = case.solve(&Penalty::NONE, &mut scratch);
            best.unbounded.is_some()
        };
        assert!(!falls(0.5) && falls(2.0));
    }
    // The proximal term does not hide it: f itself is unbounded.
    let mut case = with(2.0 * RECESSION_TOLERANCE);
    case.proximal = 1.0;
    assert!(case.solve(&Penalty::NONE, &mut scratch).unbounded.is_some());
}

#[test]
fn rapidity_bound_is_kept_and_best_within_it() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
    let mut scratch = Scratch::new(8);
    for _ in 0..INSTANCES / 4 {
        let mut case = instance(&mut rng, false);
        if rng.random_bool(0.5) {
            case.m = Sym2 { d0: -1.0, d1: normal(&mut rng), o: normal(&mut rng) };
        }
        let bound = rng.random_range(0.01..2.0);
        let light = case.light();
        let pair = HyperbolaPair::new((0, 1), &case.x, &case.y, &light, Some(bound));
        let l1 = Penalty::l1(0.7);
        let best = solve_on_hyperbola(&l1, &pair, &mut scratch);
        assert!(best.unbounded.is_none());
        assert!(best.boost.rapidity().abs() <= bound * (1.0 + 1e-12));
        let generic = solve_on_hyperbola(&l1.general(), &pair, &mut scratch);
        let size = case.value(&l1, bound.exp(), [1.0, 1.0], &[]).1 + case.value(&l1, (-bound).exp(), [1.0, 1.0], &[]).1;
        assert!((best.value - generic.value).abs() <= 1e-12 * size, "{best:?} {generic:?} {bound}");
        for signs in SIGNS {
            for i in 0..=200 {
                let mu = bound * (f64::from(i) / 100.0 - 1.0);
                assert!(best.value <= case.value(&l1, mu.exp(), signs, &[]).0 + 1e-11 * size);
            }
        }
    }
}

/// Every stationary point that rises is found, at any scale and any rapidity.
#[test]
fn minima_of_a_quartic_with_known_roots() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(10);
    for trial in 0..INSTANCES {
        // 2p₊(u − r₁)(u − r₂)(u − r₃)(u + s) with the u² coefficient zero fixes s.
        let reach = if trial % 2 == 0 { 1.0 } else { 15.0 };
        let mut roots: Vec<f64> = (0..3).map(|_| (reach * rng.random_range(-1.0..1.0f64)).exp()).collect();
        roots.sort_by(f64::total_cmp);
        let (e1, e2, e3) = (
            roots[0] + roots[1] + roots[2],
            roots[0] * roots[1] + roots[0] * roots[2] + roots[1] * roots[2],
            roots[0] * roots[1] * roots[2],
        );
        let s = e2 / e1;
        // u⁴ + (s − e1)u³ + (e2 − s·e1)u² + (s·e2 − e3)u − s·e3
        let scale = 10f64.powf(rng.random_range(-100.0..100.0));
        let f = Hyp {
            p_plus: 0.5 * scale,
            a_plus: (s - e1) * scale,
            a_minus: (e3 - s * e2) * scale,
            p_minus: 0.5 * s * e3 * scale,
        };
        let (lo, hi) = orthobcd::pair::full_range();
        let minima = f.minima(lo, hi);
        let best = minima.points().iter().map(|&u| f.value(u)).fold(f64::INFINITY, f64::min);
        for &u in &[roots[0], roots[2]] {
            assert!(best <= f.value(u) + 1e-13 * f.magnitude(u), "{roots:?} {minima:?}");
        }
        for &u in minima.points() {
            assert!(f.slope(u).abs() <= 1e-13 * f.magnitude(u) * 4.0, "{roots:?} {minima:?}");
        }
        if roots[1] / roots[0] > 1.01 && roots[2] / roots[1] > 1.01 && reach == 1.0 {
            assert_eq!(minima.points().len(), 2);
            assert!((minima.points()[0] / roots[0] - 1.0).abs() < 1e-8);
            assert!((minima.points()[1] / roots[2] - 1.0).abs() < 1e-8);
        }
    }
}

#[test]
fn two_forms_of_the_change_agree() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    let mut shifts = Xoshiro256PlusPlus::seed_from_u64(12);
    for _ in 0..INSTANCES {
        let case = instance(&mut rng, false);
        let model = PairModel {
            gz: [
                [dot(&case.g[0], &case.x), dot(&case.g[0], &case.y)],
                [dot(&case.g[1], &case.x), dot(&case.g[1], &case.y)],
            ],
            m: case.m,
            s: Sym2 { d0: dot(&case.x, &case.x), d1: dot(&case.y, &case.y), o: dot(&case.x, &case.y) },
            proximal: 0.0,
        };
        let boost = Boost { u: rng.random_range(-3.0..3.0f64).exp(), signs: SIGNS[rng.random_range(0..4usize)] };
        // The scalar bound, too: GZᵀ − cJS in place of GZᵀ, and a multiple of the identity in place of M.
        let (s, c) = (model.s, normal(&mut shifts));
        let free = LightModel { proximal: 0.0, ..case.light() };
        let m = Sym2 { d0: case.m.d0 - c, d1: case.m.d1 + c, o: case.m.o };
        let scalar = PairModel {
            gz: [
                [model.gz[0][0] - c * s.d0, model.gz[0][1] - c * s.o],
                [model.gz[1][0] + c * s.o, model.gz[1][1] + c * s.d1],
            ],
            m: Sym2::scalar(s.spectral_norm() * m.spectral_norm()),
            s: Sym2::scalar(1.0),
            proximal: 0.0,
        };
        // The scalar bound has the rounding of the differences GZᵀ − cJS, too.
        let e = boost.minus_identity();
        let moved: f64 = e.iter().flatten().map(|v| v.abs()).sum();
        let subtracted = c.abs() * (s.d0 + s.d1 + 2.0 * s.o.abs()) * moved;
        let pairs = [(model, free, 1e-14, 0.0), (scalar, free.scalar(s, c), 4e-14, subtracted)];
        for (pair, light, relative, lost) in pairs {
            let (direct, size) = pair.change(e);
            let (cone, cone_size) = light.change(boost);
            let tolerance = relative * (size + cone_size + lost);
            assert!((direct - cone).abs() <= tolerance, "{direct} {cone} {size:e} {cone_size:e}");
        }
    }
}

#[test]
fn a_boost_is_its_matrix() {
    // The last three columns have a zero in the first row, the second row or both, some at u = 2
    // alone.
    let x = [1.0, -2.0, 0.0, 0.5, -1.5, 2.5, 0.0];
    let y = [0.25, -2.0, 3.0, -0.5, 2.5, -1.5, 0.0];
    let exponents = (-400..=400).map(|k| f64::from(k) / 50.0);
    // What is computed in one of two ways is so from both sides of where they meet.
    let met = [0.5f64, 2.0].map(|u| [u.next_down(), u, u.next_up()]);
    for u in exponents.map(f64::exp).chain(met.into_iter().flatten()) {
        for signs in SIGNS {
            let boost = Boost { u, signs };
            let (v, e) = (boost.matrix(), boost.minus_identity());
            let (c, s) = (0.5 * (u + 1.0 / u), 0.5 * (u - 1.0 / u));
            let expected = [[signs[0] * c, signs[0] * s], [signs[1] * s, signs[1] * c]];
            let (mut new_x, mut new_y) = ([f64::NAN; 7], [f64::NAN; 7]);
            boost.apply(&x, &y, &mut new_x, &mut new_y);
            for i in 0..2 {
                for k in 0..2 {
                    assert!((v[i][k] - expected[i][k]).abs() <= 1e-15 * c);
                    let identity = f64::from(u8::from(i == k));
                    assert!((e[i][k] + identity - v[i][k]).abs() <= 1e-15 * c);
                }
                for k in 0..7 {
                    let row = expected[i][0] * x[k] + expected[i][1] * y[k];
                    let new = [new_x[k], new_y[k]][i];
                    assert!((new - row).abs() <= 1e-14 * c, "{boost:?}: {new} for {row}");
                    assert!(new != 0.0 || new.is_sign_positive());
                }
            }
            assert!((boost.rapidity() - u.ln()).abs() <= 1e-15 * u.ln().abs());
        }
    }
    // Small boosts lose no digits.
    for mu in [1e-3, 1e-9, 1e-15] {
        let small = Boost { u: 1.0 + mu, signs: [1.0, 1.0] };
        let (u, [[c1, s], _]) = (small.u - 1.0, small.minus_identity());
        assert!((s - 0.5 * (u + u / (1.0 + u))).abs() <= 1e-15 * u);
        assert!((c1 - 0.5 * u * u / (1.0 + u)).abs() <= 1e-15 * u * u);
    }
}
