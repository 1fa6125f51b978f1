//! Finite sums: gradients, the PAGE estimator, and the variance-reduced method.

use ndarray::{Array1, Array2};
use orthobcd::finite_sum::{FiniteSum, FiniteSumOptions, Logistic, Page, SampledGram, minimize_finite_sum};
use orthobcd::penalty::Penalty;
use orthobcd::start::random_j_orthogonal;
use orthobcd::{Signature, Status, Threads, Unwatched};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::common::normal;

fn gauss(rng: &mut Xoshiro256PlusPlus, m: usize, n: usize) -> Array2<f64> {
    Array2::from_shape_fn((m, n), |_| normal(rng))
}

fn norm2(a: &Array2<f64>) -> f64 {
    a.iter().map(|v| v * v).sum()
}

fn mixed(n: usize, p: usize) -> Signature {
    let signs: Vec<i8> = (0..n).map(|i| if i < p { 1 } else { -1 }).collect();
    Signature::new(&signs).unwrap()
}

fn members(n: usize, samples: usize, seed: u64) -> Vec<Box<dyn FiniteSum>> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let labels = Array1::from_shape_fn(samples, |_| if rng.random_bool(0.5) { 1.0 } else { -1.0 });
    vec![
        Box::new(SampledGram::new(gauss(&mut rng, samples, n), 2.0).unwrap()),
        Box::new(Logistic::new(gauss(&mut rng, samples, n), gauss(&mut rng, samples, n), labels).unwrap()),
    ]
}

/// All subsets of 0..n of the given size.
fn subsets(n: usize, size: usize) -> Vec<Vec<usize>> {
    (0u32..1 << n)
        .filter(|m| m.count_ones() as usize == size)
        .map(|m| (0..n).filter(|i| m >> i & 1 == 1).collect())
        .collect()
}

#[test]
fn gradients_are_those_of_the_value() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    for sum in members(5, 12, 2) {
        let x = gauss(&mut rng, 5, 5);
        let all: Vec<usize> = (0..12).collect();
        let gradient = sum.batch_gradient(x.view(), &all);
        let direction = gauss(&mut rng, 5, 5);
        let h = 1e-5;
        let ahead = sum.value((&x + &(&direction * h)).view(), &Threads::serial());
        let behind = sum.value((&x - &(&direction * h)).view(), &Threads::serial());
        let slope = (&gradient * &direction).sum();
        assert!(((ahead - behind) / (2.0 * h) - slope).abs() < 1e-6 * (1.0 + slope.abs()));
        // The mean of the components' gradients is the gradient.
        let mean =
            all.iter().fold(Array2::<f64>::zeros((5, 5)), |acc, &i| acc + sum.batch_gradient(x.view(), &[i]) / 12.0);
        assert!(norm2(&(&mean - &gradient)) < 1e-24 * norm2(&gradient));
    }
}

#[test]
fn curvature_bounds_the_hessian() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    for sum in members(6, 40, 4) {
        let all: Vec<usize> = (0..40).collect();
        for scale in [0.01, 0.3, 3.0] {
            for _ in 0..50 {
                let x = gauss(&mut rng, 6, 6) * scale;
                let step = gauss(&mut rng, 6, 6) * scale;
                let gradient = sum.batch_gradient(x.view(), &all);
                let bound = sum.value(x.view(), &Threads::serial())
                    + (&gradient * &step).sum()
                    + 0.5 * sum.curvature() * norm2(&step);
                assert!(sum.value((&x + &step).view(), &Threads::serial()) <= bound * (1.0 + 1e-12) + 1e-12);
            }
        }
    }
}

#[test]
fn mean_square_curvature_bounds_the_components() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(33);
    for sum in members(6, 40, 4) {
        for _ in 0..50 {
            let (x, y) = (gauss(&mut rng, 6, 6), gauss(&mut rng, 6, 6));
            let mean = (0..40)
                .map(|i| norm2(&(sum.batch_gradient(x.view(), &[i]) - sum.batch_gradient(y.view(), &[i]))))
                .sum::<f64>()
                / 40.0;
            let bound = sum.mean_square_curvature().powi(2) * norm2(&(&x - &y));
            assert!(mean <= bound * (1.0 + 1e-12));
        }
    }
}

#[test]
fn conditional_mean_is_exact() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let all: Vec<usize> = (0..6).collect();
    for sum in members(4, 6, 6) {
        let (before, now) = (gauss(&mut rng, 4, 4), gauss(&mut rng, 4, 4));
        let truth = sum.batch_gradient(now.view(), &all);
        let truth_before = sum.batch_gradient(before.view(), &all);
        // An estimate with an error, which the correction must carry over unchanged on average.
        let error = gauss(&mut rng, 4, 4);
        for size in 1..=5 {
            let choices = subsets(6, size);
            let count = choices.len() as f64;
            let mut mean = Array2::<f64>::zeros((4, 4));
            let mut full = Array2::<f64>::zeros((4, 4));
            for batch in &choices {
                let mut page = Page::new(6, None, Some(size), None).unwrap();
                page.gradient = &truth_before + &error;
                page.correct(&*sum, now.view(), before.view(), batch);
                assert_eq!(page.evaluations, 2 * size as u64);
                mean += &(page.gradient / count);
                full += &(sum.batch_gradient(now.view(), batch) / count);
            }
            let scale = norm2(&truth) + norm2(&truth_before);
            assert!(norm2(&(&mean - &truth - &error)) < 1e-26 * scale);
            assert!(norm2(&(&full - &truth)) < 1e-26 * scale);
        }
    }
}

/// Lemma 4.5 of the JOBCD paper without replacement:
/// u⁺ = p·(N−b)/(b(N−1))·σ² + (1−p)(u + (N−b′)/(b′(N−1))·mean‖δ_i − δ̄‖²), δ_i = ∇f_i(x) − ∇f_i(x⁻).
#[test]
fn variance_recursion_holds() {
    const N: usize = 30;
    let all: Vec<usize> = (0..N).collect();
    for sum in members(4, N, 7) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(8);
        let points: Vec<Array2<f64>> = (0..4).map(|_| gauss(&mut rng, 4, 4)).collect();
        let (b, small, p) = (10, 4, 0.3);
        let spread = |g: &dyn Fn(usize) -> Array2<f64>| {
            let parts: Vec<Array2<f64>> = all.iter().map(|&i| g(i)).collect();
            let mean = parts.iter().fold(Array2::<f64>::zeros((4, 4)), |a, g| a + g) / N as f64;
            parts.iter().map(|g| norm2(&(g - &mean))).sum::<f64>() / N as f64
        };
        let factor = |size: usize| (N - size) as f64 / (size as f64 * (N - 1) as f64);
        let at = |x: &Array2<f64>, i: usize| sum.batch_gradient(x.view(), &[i]);
        let mut expected = vec![factor(b) * spread(&|i| at(&points[0], i))];
        for t in 1..points.len() {
            let sigma2 = spread(&|i| at(&points[t], i));
            let delta2 = spread(&|i| at(&points[t], i) - at(&points[t - 1], i));
            expected.push(p * factor(b) * sigma2 + (1.0 - p) * (expected[t - 1] + factor(small) * delta2));
        }
        let trials = 20_000;
        let mut measured = vec![0.0; points.len()];
        for _ in 0..trials {
            let mut page = Page::new(N, Some(b), Some(small), Some(p)).unwrap();
            for t in 0..points.len() {
                let previous = t.checked_sub(1).map(|k| points[k].view());
                page.update(&*sum, points[t].view(), previous, &mut rng);
                let truth = sum.batch_gradient(points[t].view(), &all);
                measured[t] += norm2(&(&page.gradient - &truth)) / f64::from(trials);
            }
        }
        for (m, e) in measured.iter().zip(&expected) {
            assert!((m / e - 1.0).abs() < 0.05, "{measured:?} {expected:?}");
        }
    }
}

#[test]
fn full_batches_are_monotone_and_feasible() {
    let signature = mixed(9, 5);
    for sum in members(9, 50, 9) {
        let x0 = random_j_orthogonal(&signature, 0.5, 3).unwrap();
        let options =
            FiniteSumOptions::default().with_probability(1.0).with_check_every(1).with_max_evaluations(50 * 300);
        let run =
            minimize_finite_sum(&*sum, &Penalty::NONE, &signature, x0, &options, &Threads::serial(), &mut Unwatched)
                .unwrap();
        let solution = run.solution;
        let values: Vec<f64> = solution.history.iter().map(|r| r.objective).collect();
        assert!(values.windows(2).all(|w| w[1] <= w[0] * (1.0 + 1e-14)));
        assert!(values[values.len() - 1] < 0.9 * values[0], "{values:?}");
        assert!(solution.feasibility < 1e-13 * norm2(&solution.x));
        assert_eq!(solution.work, 50.0 * run.iterations as f64);
    }
}

#[test]
fn drift_is_repaired_with_a_penalty_too() {
    let signature = mixed(9, 5);
    for sum in members(9, 50, 9) {
        let run = minimize_finite_sum(
            &*sum,
            &Penalty::l1(0.1),
            &signature,
            random_j_orthogonal(&signature, 0.5, 3).unwrap(),
            &FiniteSumOptions::default().with_max_evaluations(50 * 4000),
            &Threads::serial(),
            &mut Unwatched,
        )
        .unwrap();
        assert!(run.iterations > 8000);
        let solution = run.solution;
        println!("drift {:e}", solution.feasibility / norm2(&solution.x));
        assert!(solution.feasibility < 1e-15 * norm2(&solution.x));
        assert_eq!(run.evaluations.len(), solution.history.len());
        assert!(run.evaluations.is_sorted());
        assert_eq!(*run.evaluations.last().unwrap() as f64, solution.work);
    }
}

#[test]
fn variance_reduction_saves_component_gradients() {
    let (n, samples) = (20, 20_000);
    let signature = mixed(n, 10);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    let sum = SampledGram::new(gauss(&mut rng, samples, n), 2.0).unwrap();
    let x0 = random_j_orthogonal(&signature, 0.5, 1).unwrap();
    let full = FiniteSumOptions::default()
        .with_probability(1.0)
        .with_check_every(1)
        .with_max_evaluations(100 * samples as u64);
    let solve = |options: &FiniteSumOptions| {
        minimize_finite_sum(&sum, &Penalty::NONE, &signature, x0.clone(), options, &Threads::serial(), &mut Unwatched)
            .unwrap()
            .solution
    };
    let reference = solve(&full);
    let reduced = solve(
        &FiniteSumOptions::default()
            .with_probability(None)
            .with_check_every(10)
            .with_target(reference.objective)
            .with_max_evaluations(100 * samples as u64),
    );
    println!(
        "J-JOBCD {} in {} gradients, VR {} in {}",
        reference.objective, reference.work, reduced.objective, reduced.work
    );
    assert_eq!(reduced.status, Status::Target);
    assert!(4.0 * reduced.work <= reference.work);
    // The same seed gives the same bits.
    let again = solve(
        &FiniteSumOptions::default()
            .with_check_every(10)
            .with_target(reference.objective)
            .with_max_evaluations(100 * samples as u64),
    );
    assert_eq!(again.x, reduced.x);
}

#[test]
fn bad_input_is_named() {
    let sum = &members(4, 6, 1)[0];
    let signature = mixed(4, 2);
    let run = |options: FiniteSumOptions| {
        minimize_finite_sum(
            &**sum,
            &Penalty::NONE,
            &signature,
            Array2::eye(4),
            &options,
            &Threads::serial(),
            &mut Unwatched,
        )
        .unwrap_err()
        .to_string()
    };
    let default = FiniteSumOptions::default;
    assert!(run(default().with_batch(7)).contains("batch_size"));
    assert!(run(default().with_small_batch(0)).contains("small_batch_size"));
    assert!(run(default().with_probability(0.0)).contains("probability"));
    assert!(run(default().with_proximal(-1.0)).contains("proximal"));
}
