//! Whole solves and kernels against what they should be compared with, side by side in one run:
//!
//! 1. the ℓ1 pair solver against evaluating h from scratch at every breakpoint, and its growth in r;
//! 2. tiled sweeps against plain pairs with the same kernel, and against the arithmetic floor: the
//!    flops of the in-tile gradient update over the peak of a matrix product;
//! 3. tile sizes;
//! 4. the pair solvers of all penalties against that of ℓ1.
//!
//! `cargo bench --bench ratios [-- name ...]`; every figure is the median of rounds in which the
//! competitors take turns, with the smallest and largest.

use std::hint::black_box;
use std::time::Instant;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, s};
use orthobcd::pair::{CirclePair, PairModel, Scratch, Sym2};
use orthobcd::penalty::{Penalty, solve_each_on_circle};
use orthobcd::{Options, Problem, Quadratic, Signature, Threads, Unwatched, WorkingSet, minimize, start};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

const ROUNDS: usize = 7;

/// Passes over the instances of a kernel per timing.
const PASSES: usize = 10;

/// Median, minimum and maximum.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    format!("{:8.2} [{:.2}, {:.2}]", values[values.len() / 2], values[0], values[values.len() - 1])
}

fn ratios(over: &[f64], under: &[f64]) -> Vec<f64> {
    over.iter().zip(under).map(|(a, b)| a / b).collect()
}

fn gaussian(rows: usize, columns: usize, seed: u64) -> Array2<f64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    Array2::from_shape_fn((rows, columns), |_| StandardNormal.sample(&mut rng))
}

struct Instance {
    x: Vec<f64>,
    y: Vec<f64>,
    model: PairModel,
}

/// Dense Gaussian rows with a curvature like that of a PCA problem.
fn instances(r: usize, count: usize) -> Vec<Instance> {
    let padded = r.div_ceil(8) * 8;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(r as u64);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    (0..count)
        .map(|_| {
            let mut row = || -> Vec<f64> { (0..padded).map(|k| if k < r { normal() } else { 0.0 }).collect() };
            let (x, y) = (row(), row());
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let s = Sym2 { d0: dot(&x, &x), d1: dot(&y, &y), o: dot(&x, &y) };
            let size = (r as f64).sqrt();
            let pull = -3.0 * r as f64;
            let gz = [[pull + size * normal(), size * normal()], [size * normal(), pull + size * normal()]];
            let m = Sym2 { d0: -1.0 - normal().abs(), d1: -1.0, o: 0.3 * normal() };
            let model = PairModel { gz, m, s, proximal: 1e-5 };
            Instance { x, y, model }
        })
        .collect()
}

/// Solves all, in one loop of vector code.
fn solve(penalty: &Penalty, instances: &[Instance], scratch: &mut Scratch) -> f64 {
    let pairs = instances.iter().map(|instance| {
        let (rotation, reflection) = instance.model.branches();
        CirclePair { rows: (0, 1), x: &instance.x, y: &instance.y, rotation, reflection: Some(reflection) }
    });
    let mut sum = 0.0;
    solve_each_on_circle(penalty, pairs, scratch, |best| sum += best.value);
    sum
}

/// The papers' search without running sums: h from scratch at every breakpoint of both branches.
/// (It even leaves the quartics of the arcs out.)
fn from_scratch(lambda: f64, instance: &Instance, r: usize) -> f64 {
    let (rotation, reflection) = instance.model.branches();
    let (x, y) = (&instance.x[..r], &instance.y[..r]);
    let h = |c: f64, s: f64| x.iter().zip(y).map(|(x, y)| (c * x + s * y).abs() + (c * y - s * x).abs()).sum::<f64>();
    let mut best = f64::INFINITY;
    for f in [rotation, reflection] {
        for (x, y) in x.iter().zip(y) {
            let length = (x * x + y * y).sqrt();
            let (c, s) = (x / length, y / length);
            for (c, s) in [(c, s), (-s, c), (-c, -s), (s, -c)] {
                best = best.min(f.value(c, s) + lambda * h(c, s));
            }
        }
    }
    best
}

fn kernel() {
    println!("\n1. l1 pair solve, all entries nonzero (ns)");
    let arch = pulp::Arch::new();
    let lambda = 1.0;
    let penalty = Penalty::l1(lambda);
    let sizes = [1, 5, 20, 100, 200];
    let sets: Vec<_> = sizes.iter().map(|&r| instances(r, 256)).collect();
    let mut ours = vec![Vec::new(); sizes.len()];
    let mut naive = vec![Vec::new(); sizes.len()];
    for _ in 0..5 * ROUNDS {
        for (k, (&r, set)) in sizes.iter().zip(&sets).enumerate() {
            let mut scratch = Scratch::new(r.div_ceil(8) * 8);
            // Several passes: a solve calls the kernel millions of times, with warm predictors.
            let begun = Instant::now();
            for _ in 0..PASSES {
                black_box(solve(&penalty, set, &mut scratch));
            }
            ours[k].push(begun.elapsed().as_secs_f64() * 1e9 / (PASSES * set.len()) as f64);
            let begun = Instant::now();
            let few = if r > 20 { 32 } else { set.len() };
            black_box(
                arch.dispatch(|| set[..few].iter().map(|instance| from_scratch(lambda, instance, r)).sum::<f64>()),
            );
            naive[k].push(begun.elapsed().as_secs_f64() * 1e9 / few as f64);
        }
    }
    for (k, r) in sizes.iter().enumerate() {
        println!(
            "   r = {r:4}: ours {}   from scratch {}   ratio {}",
            spread(ours[k].clone()),
            spread(naive[k].clone()),
            spread(ratios(&naive[k], &ours[k]))
        );
    }
    println!("   growth from r = 20 to r = 200: {}", spread(ratios(&ours[4], &ours[2])));
}

/// Seconds per pair visited.
fn per_pair(smooth: &Quadratic, penalty: &Penalty, r: usize, options: &Options, threads: &Threads) -> f64 {
    let n = smooth.matrix().nrows();
    // Without a penalty, all signs being equal, gradient steps would take the place of sweeps.
    let mut signs = vec![1; n];
    signs[n - 1] = if *penalty == Penalty::NONE { -1 } else { 1 };
    let signature = Signature::new(&signs).unwrap();
    let problem = Problem::new(smooth, penalty, &signature, r).unwrap();
    let mut x0 = Array2::zeros((n, r));
    x0.slice_mut(s![..n - 1, ..]).assign(&start::random(n - 1, r, 1));
    let solution = minimize(&problem, x0, options, threads, &mut Unwatched).expect("valid input");
    let first = solution.history[0].seconds;
    (solution.seconds - first) / solution.iterations as f64
}

fn options(working_set: WorkingSet, seconds: f64) -> Options {
    Options::default().with_working_set(working_set).with_max_time(seconds).with_tol(0.0)
}

/// Peak of a matrix product of the same library, in flops per second.
fn peak() -> f64 {
    let n = 384;
    let (a, b) = (gaussian(n, n, 1), gaussian(n, n, 2));
    let mut c = Array2::zeros((n, n));
    let mut best = 0.0f64;
    for _ in 0..10 {
        let begun = Instant::now();
        general_mat_mul(1.0, &a, &b, 0.0, &mut c);
        best = best.max(2.0 * (n * n * n) as f64 / begun.elapsed().as_secs_f64());
        black_box(&c);
    }
    best
}

fn tiles() {
    let (threads, r) = (Threads::serial(), 20);
    for (n, seconds) in [(1000, 0.5), (5000, 2.0)] {
        println!("\n2. dense X, n = {n}, r = {r}, one thread (microseconds per pair visited)");
        let smooth = Quadratic::from_data(gaussian(n / 2, n, 3).view()).expect("valid data");
        // With signs of both kinds a concave f is unbounded below.
        let convex = Quadratic::new(-&smooth.matrix(), None, None).expect("valid data");
        let (tiled, plain) = (options(WorkingSet::Tiled, seconds), options(WorkingSet::Random, seconds));
        let mut figures = vec![Vec::new(); 5];
        for _ in 0..ROUNDS {
            let l1 = Penalty::l1(10.0);
            figures[0].push(1e6 * per_pair(&convex, &Penalty::NONE, r, &tiled, &threads));
            figures[1].push(1e6 * per_pair(&convex, &Penalty::NONE, r, &plain, &threads));
            figures[2].push(1e6 * per_pair(&smooth, &l1, r, &tiled, &threads));
            figures[3].push(1e6 * per_pair(&smooth, &l1, r, &plain, &threads));
            figures[4].push(1e6 * (4 * tiled.tile * r) as f64 / peak());
        }
        let show = |name: &str, values: &[f64]| println!("   {name:34} {}", spread(values.to_vec()));
        show("no penalty, tiled", &figures[0]);
        show("no penalty, plain pairs", &figures[1]);
        show("   ratio", &ratios(&figures[1], &figures[0]));
        show("l1, tiled", &figures[2]);
        show("l1, plain pairs", &figures[3]);
        show("   ratio", &ratios(&figures[3], &figures[2]));
        show("arithmetic floor of a tile's pair", &figures[4]);
        show("no penalty, tiled / floor", &ratios(&figures[0], &figures[4]));
    }
}

fn sizes() {
    let (n, r) = (1000, 20);
    println!("\n3. tile sizes, n = {n}, r = {r}, one thread (microseconds per pair visited)");
    let smooth = Quadratic::from_data(gaussian(n / 2, n, 3).view()).expect("valid data");
    let convex = Quadratic::new(-&smooth.matrix(), None, None).expect("valid data");
    let sizes = [16, 32, 48, 64, 96, 128, 192];
    let mut none = vec![Vec::new(); sizes.len()];
    let mut l1 = vec![Vec::new(); sizes.len()];
    for _ in 0..ROUNDS {
        for (k, &tile) in sizes.iter().enumerate() {
            let options = options(WorkingSet::Tiled, 0.3).with_tile(tile);
            let threads = Threads::serial();
            none[k].push(1e6 * per_pair(&convex, &Penalty::NONE, r, &options, &threads));
            l1[k].push(1e6 * per_pair(&smooth, &Penalty::l1(10.0), r, &options, &threads));
        }
    }
    for (k, tile) in sizes.iter().enumerate() {
        println!("   tile {tile:4}: no penalty {}   l1 {}", spread(none[k].clone()), spread(l1[k].clone()));
    }
}

/// Nanoseconds of a pair.
fn timed(penalty: &Penalty, set: &[Instance], scratch: &mut Scratch) -> f64 {
    let begun = Instant::now();
    for _ in 0..PASSES {
        black_box(solve(penalty, set, scratch));
    }
    begun.elapsed().as_secs_f64() * 1e9 / (PASSES * set.len()) as f64
}

fn penalties() {
    println!("\n4. pair solves at r = 20, levels at the size of the entries, over l1");
    let set = instances(20, 256);
    let mut positive = instances(20, 256);
    for row in positive.iter_mut().flat_map(|i| [&mut i.x, &mut i.y]) {
        row.iter_mut().for_each(|v| *v = v.abs());
    }
    let l1 = Penalty::l1(1.0);
    let weights = Array2::from_shape_fn((2, 20), |(i, k)| 0.9 + 0.01 * ((i + k) % 7) as f64);
    let made = [
        ("l0", Ok(Penalty::l0(1.0)), &set),
        ("l1, weights", Ok(Penalty::l1(weights)), &set),
        ("capped l1", Penalty::capped_l1(1.0, 1.0), &set),
        ("MCP", Penalty::mcp(1.0, 1.0), &set),
        ("SCAD", Penalty::scad(1.0 / 3.0, 3.7), &set),
        ("l1 + X >= 0", l1.plus(&Penalty::NONNEGATIVE), &positive),
        ("l1 + bounds", l1.plus(&Penalty::interval(-9.0, 9.0).expect("an interval")), &set),
    ];
    let mut scratch = Scratch::new(24);
    for (name, penalty, set) in made {
        let penalty = penalty.expect("a penalty");
        let (mut ours, mut base) = (Vec::new(), Vec::new());
        for _ in 0..5 * ROUNDS {
            ours.push(timed(&penalty, set, &mut scratch));
            base.push(timed(&l1, set, &mut scratch));
        }
        println!("   {name:12} {}, over l1 {}", spread(ours.clone()), spread(ratios(&ours, &base)));
    }
}

fn main() {
    let names: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    let wanted = |name: &str| names.is_empty() || names.iter().any(|n| n == name);
    println!("median [smallest, largest] of {ROUNDS} rounds, competitors in turn");
    for (name, bench) in [("kernel", kernel as fn()), ("penalties", penalties), ("tiles", tiles), ("sizes", sizes)] {
        if wanted(name) {
            bench();
        }
    }
}
