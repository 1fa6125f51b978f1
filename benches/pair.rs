//! The kernels and one whole sweep: `cargo bench`. Sizes are in the names, seeds are fixed.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use ndarray::Array2;
use orthobcd::pair::{CirclePair, Scratch, Trig};
use orthobcd::penalty::Penalty;
use orthobcd::penalty::solve_on_circle;
use orthobcd::{Options, Problem, Quadratic, Signature, Threads, Unwatched, WorkingSet, minimize, start};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Instances per measurement, so that branches cannot be learnt.
const INSTANCES: usize = 256;

fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
    StandardNormal.sample(rng)
}

fn trig(rng: &mut Xoshiro256PlusPlus) -> Trig {
    Trig { a: normal(rng), b: normal(rng), p: normal(rng), q: normal(rng) }
}

fn quartic(c: &mut Criterion) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let functions: Vec<Trig> = (0..INSTANCES).map(|_| trig(&mut rng)).collect();
    let mut group = c.benchmark_group("quartic");
    let mut next = 0;
    group.bench_function("global_minimum", |b| {
        b.iter(|| {
            next = (next + 1) % INSTANCES;
            black_box(functions[next]).global_minimum()
        });
    });
    group.bench_function("minima", |b| {
        b.iter(|| {
            next = (next + 1) % INSTANCES;
            black_box(functions[next]).minima()
        });
    });
    group.finish();
}

fn pair_of(c: &mut Criterion, name: &str, make: impl Fn(usize) -> Penalty) {
    let mut group = c.benchmark_group(format!("pair/{name}"));
    for r in [1, 5, 20, 100] {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        let penalty = make(r);
        let instances: Vec<_> = (0..INSTANCES)
            .map(|_| {
                let row = |rng: &mut Xoshiro256PlusPlus| -> Vec<f64> {
                    (0..r)
                        .map(|_| {
                            let v = normal(rng) / (r as f64).sqrt();
                            if name.ends_with("nonnegative") { v.abs() } else { v }
                        })
                        .collect()
                };
                (row(&mut rng), row(&mut rng), trig(&mut rng), trig(&mut rng))
            })
            .collect();
        let mut scratch = Scratch::new(r);
        let mut next = 0;
        group.bench_function(BenchmarkId::from_parameter(r), |b| {
            b.iter(|| {
                next = (next + 1) % INSTANCES;
                let (x, y, rotation, reflection) = &instances[next];
                let pair = CirclePair { rows: (0, 1), x, y, rotation: *rotation, reflection: Some(*reflection) };
                solve_on_circle(&penalty, black_box(&pair), &mut scratch)
            });
        });
    }
    group.finish();
}

fn pairs(c: &mut Criterion) {
    pair_of(c, "none", |_| Penalty::NONE);
    pair_of(c, "l0", |_| Penalty::l0(0.1));
    pair_of(c, "l1", |_| Penalty::l1(0.1));
    pair_of(c, "l1-weighted", |r| {
        Penalty::l1(Array2::from_shape_fn((2, r), |(i, k)| 0.1 + 0.01 * ((i + k) % 7) as f64))
    });
    pair_of(c, "nonnegative", |_| Penalty::NONNEGATIVE);
    // Levels at the size of the entries, 1/√r, where every column crosses them.
    let size = |r: usize| 1.0 / (r as f64).sqrt();
    pair_of(c, "capped-l1", |r| Penalty::capped_l1(0.1, size(r)).unwrap());
    pair_of(c, "mcp", |r| Penalty::mcp(0.1, 10.0 * size(r)).unwrap());
    pair_of(c, "scad", |r| Penalty::scad(size(r) / 3.0, 3.7).unwrap());
    pair_of(c, "l1+nonnegative", |_| {
        let l1 = Penalty::l1(0.1);
        l1.plus(&Penalty::NONNEGATIVE).unwrap()
    });
}

fn sweep_of(c: &mut Criterion, name: &str, penalty: &Penalty, nonnegative: bool) {
    let (n, r) = (400, 20);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let data = Array2::from_shape_fn((200, n), |_| normal(&mut rng));
    let Ok(smooth) = Quadratic::from_data(data.view()) else {
        return;
    };
    let signature = Signature::stiefel(n);
    let problem = Problem::new(&smooth, penalty, &signature, r).unwrap();
    let x0 = if nonnegative { start::partition(n, r, 0) } else { start::random(n, r, 0) };
    let mut group = c.benchmark_group("sweep");
    group.sample_size(10);
    for (rule, working_set) in [("tiled", WorkingSet::Tiled), ("random", WorkingSet::Random)] {
        let options = Options::default().with_working_set(working_set).with_max_sweeps(1);
        group.bench_function(format!("{name}/{rule}/n={n}/r={r}"), |b| {
            b.iter_batched(
                || x0.clone(),
                |x0| minimize(&problem, x0, &options, &Threads::serial(), &mut Unwatched),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

fn sweeps(c: &mut Criterion) {
    sweep_of(c, "none", &Penalty::NONE, false);
    sweep_of(c, "l0", &Penalty::l0(1.0), false);
    sweep_of(c, "l1", &Penalty::l1(1.0), false);
    sweep_of(c, "nonnegative", &Penalty::NONNEGATIVE, true);
}

criterion_group!(benches, quartic, pairs, sweeps);
criterion_main!(benches);
