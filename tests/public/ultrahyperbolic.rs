//! The structural probe and UltraE from Rust: invariants, gradients, independence of threads.

use ndarray::{Array2, ArrayView2};
use orthobcd::finite_sum::{CurvatureRule, FiniteSum, FiniteSumOptions, minimize_finite_sum};
use orthobcd::penalty::Penalty;
use orthobcd::start::random_j_orthogonal;
use orthobcd::ultrahyperbolic::{
    Embedding, Loss, Pseudohyperboloid, RelationUpdate, StructuralProbe, Targets, TrainOptions, UltraE,
};
use orthobcd::{Objective, Side, Signature, Status, Threads, Unwatched};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::common::normal;

fn gauss(m: usize, n: usize, seed: u64) -> Array2<f64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    Array2::from_shape_fn((m, n), |_| normal(&mut rng))
}

fn signature(n: usize) -> Signature {
    let signs: Vec<i8> = (0..n).map(|i| if i % 3 == 1 { -1 } else { 1 }).collect();
    Signature::new(&signs).unwrap()
}

fn probe(m: usize, n: usize, threads: Threads) -> StructuralProbe {
    let space = Pseudohyperboloid::new(&signature(n), 1.1).unwrap();
    let data = gauss(m, n, 5);
    StructuralProbe::new(data, Targets::Euclidean, space, 0.5, threads).unwrap()
}

fn evaluated(probe: &StructuralProbe, x: &Array2<f64>) -> (f64, Array2<f64>) {
    let mut gradient = Array2::zeros(x.dim());
    let value = probe.value_and_gradient(x.view(), gradient.view_mut(), &Threads::serial());
    (value, gradient)
}

fn drift(x: ArrayView2<'_, f64>, signature: &Signature) -> f64 {
    let n = x.nrows();
    let mut jx = x.to_owned();
    for i in 0..n {
        jx.row_mut(i).mapv_inplace(|v| v * signature.sign(i));
    }
    let mut gap = x.t().dot(&jx);
    for i in 0..n {
        gap[[i, i]] -= signature.sign(i);
    }
    gap.iter().map(|v| v * v).sum::<f64>().sqrt()
}

#[test]
fn probe_gradients_are_those_of_the_value() {
    // Few pairs, so that none is within a step of the cusp at z = 1.
    let probe = probe(20, 6, Threads::serial());
    let x = &Array2::eye(6) + &(0.2 * gauss(6, 6, 1));
    let (value, gradient) = evaluated(&probe, &x);
    assert!((value - probe.value(x.view(), &Threads::serial())).abs() <= 1e-14 * value);
    let direction = gauss(6, 6, 2);
    let at = |h: f64| probe.value((&x + &(h * &direction)).view(), &Threads::serial());
    let slope = (at(1e-6) - at(-1e-6)) / 2e-6;
    let inner = (&gradient * &direction).sum();
    assert!((slope - inner).abs() <= 1e-6 * inner.abs().max(1.0));
}

#[test]
fn sampled_probe_gradients_have_the_right_mean() {
    let probe = probe(140, 5, Threads::serial());
    let x = &Array2::eye(5) + &(0.2 * gauss(5, 5, 3));
    let (_, gradient) = evaluated(&probe, &x);
    let size = gradient.iter().map(|v| v * v).sum::<f64>().sqrt();
    // One row at a time, and in batches that cross a block.
    for batch in [1usize, 20] {
        let mut mean = Array2::<f64>::zeros((5, 5));
        for from in (0..140).step_by(batch) {
            let rows: Vec<usize> = (from..from + batch).collect();
            mean += &(probe.batch_gradient(x.view(), &rows) * (batch as f64 / 140.0));
        }
        let gap = (&mean - &gradient).iter().map(|v| v * v).sum::<f64>();
        assert!(gap.sqrt() <= 1e-12 * size, "batches of {batch}");
    }
}

#[test]
fn probe_does_not_depend_on_threads() {
    let x = &Array2::eye(6) + &(0.2 * gauss(6, 6, 1));
    let one = evaluated(&probe(700, 6, Threads::serial()), &x);
    let two = evaluated(&probe(700, 6, Threads::new(Some(2)).unwrap()), &x);
    assert_eq!(one, two);
}

fn options(rule: CurvatureRule, side: Side, probability: Option<f64>) -> FiniteSumOptions {
    FiniteSumOptions::default()
        .with_rule(rule)
        .with_side(side)
        .with_probability(probability)
        .with_matchings(3)
        .with_max_evaluations(60 * 200)
}

#[test]
fn every_rule_and_side_descends_and_stays_feasible() {
    let (n, m) = (7, 60);
    let probe = probe(m, n, Threads::serial());
    let signature = signature(n);
    let start = random_j_orthogonal(&signature, 0.3, 1).unwrap();
    let first = probe.value(start.view(), &Threads::serial());
    let accumulated = CurvatureRule::Accumulated { step: 0.1 };
    for side in [Side::Rows, Side::Columns, Side::Both] {
        for (rule, probability) in [(accumulated, Some(1.0)), (accumulated, None), (CurvatureRule::Adaptive, Some(1.0))]
        {
            let options = options(rule, side, probability);
            let solved = minimize_finite_sum(
                &probe,
                &Penalty::NONE,
                &signature,
                start.clone(),
                &options,
                &Threads::serial(),
                &mut Unwatched,
            )
            .unwrap()
            .solution;
            let case = format!("{side:?}, {rule:?}, {probability:?}");
            assert_eq!(solved.status, Status::MaxSweeps, "{case}");
            assert!(solved.objective < 0.98 * first, "{case}: {}", solved.objective);
            let again = probe.value(solved.x.view(), &Threads::serial());
            assert!((again - solved.objective).abs() <= 1e-12 * again, "{case}");
            let size = solved.x.iter().map(|v| v * v).sum::<f64>();
            assert!(drift(solved.x.view(), &signature) <= 1e-12 * size, "{case}");
            assert!(solved.updates > 0 && solved.updates <= solved.iterations, "{case}");
            for pair in solved.history.windows(2) {
                assert!(pair[1].objective <= pair[0].objective, "{case}");
            }
        }
    }
}

#[test]
fn a_step_that_is_too_long_is_shortened() {
    let probe = probe(60, 7, Threads::serial());
    let signature = signature(7);
    let start = random_j_orthogonal(&signature, 0.3, 1).unwrap();
    let first = probe.value(start.view(), &Threads::serial());
    let rule = CurvatureRule::Accumulated { step: 1e3 };
    let solved = minimize_finite_sum(
        &probe,
        &Penalty::NONE,
        &signature,
        start,
        &options(rule, Side::Both, Some(1.0)),
        &Threads::serial(),
        &mut Unwatched,
    )
    .unwrap();
    assert!(solved.solution.objective < 0.98 * first);
}

#[test]
fn what_a_rule_cannot_do_is_refused() {
    let probe = probe(60, 6, Threads::serial());
    let signature = signature(6);
    let accumulated = CurvatureRule::Accumulated { step: 0.1 };
    let solve = |options: &FiniteSumOptions, x0: Array2<f64>| {
        minimize_finite_sum(&probe, &Penalty::NONE, &signature, x0, options, &Threads::serial(), &mut Unwatched)
            .map(|_| ())
    };
    let eye = || Array2::eye(6);
    for (rule, probability) in [
        (CurvatureRule::Bound, Some(1.0)),
        (CurvatureRule::Adaptive, None),
        (CurvatureRule::Accumulated { step: 0.0 }, Some(1.0)),
    ] {
        assert!(solve(&options(rule, Side::Rows, probability), eye()).is_err());
    }
    // Columns keep XᵀJX only where it is J.
    assert!(solve(&options(accumulated, Side::Both, Some(1.0)), 2.0 * eye()).is_err());
    let mut none = options(accumulated, Side::Rows, Some(1.0));
    none.matchings = 0;
    assert!(solve(&none, eye()).is_err());
    let penalised = minimize_finite_sum(
        &probe,
        &Penalty::l1(0.1),
        &signature,
        eye(),
        &options(accumulated, Side::Rows, Some(1.0)),
        &Threads::serial(),
        &mut Unwatched,
    );
    assert!(penalised.is_err());
}

fn options_of(update: RelationUpdate, loss: Loss) -> TrainOptions {
    TrainOptions {
        margin: 1.0,
        batch_size: 16,
        negatives: 7,
        loss,
        learning_rate: 0.05,
        rate_decay: 0.9,
        moment_decay: 0.999,
        weight_decay: 0.0,
        update,
        seed: 3,
    }
}

fn model(update: RelationUpdate, loss: Loss) -> (UltraE, Signature) {
    let signature = signature(6);
    let options = options_of(update, loss);
    (UltraE::new(&signature, 0.9, options).unwrap(), signature)
}

#[test]
fn ultra_e_refuses_decays_that_turn_points_round() {
    let signature = signature(6);
    let made = |moment_decay: f64, weight_decay: f64| {
        let options = TrainOptions { moment_decay, weight_decay, ..options_of(RelationUpdate::Frozen, Loss::Softmax) };
        UltraE::new(&signature, 0.9, options)
    };
    assert!(made(1e-9, 0.0).is_ok() && made(0.999, 19.9).is_ok());
    for (moments, weights, name) in [
        (0.0, 0.0, "moment_decay"),
        (1.0, 0.0, "moment_decay"),
        (f64::NAN, 0.0, "moment_decay"),
        (0.9, -1.0, "weight_decay"),
        (0.9, 20.0, "weight_decay"),
        (0.9, f64::NAN, "weight_decay"),
    ] {
        let error = made(moments, weights).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}

/// i → i + 1 and i → −i in a cycle.
fn cycle(entities: usize) -> Vec<[usize; 3]> {
    (0..entities).flat_map(|i| [[i, 0, (i + 1) % entities], [i, 1, (entities - i) % entities]]).collect()
}

#[test]
fn ultra_e_learns_with_every_update_and_any_number_of_threads() {
    let triples = cycle(30);
    for update in [
        RelationUpdate::Frozen,
        RelationUpdate::Jobcd { curvature: 0.14, matchings: 1 },
        RelationUpdate::Jobcd { curvature: 0.5, matchings: 5 },
        RelationUpdate::PairJobcd { step: 0.1, matchings: 2 },
        RelationUpdate::PageJobcd { curvature: 0.14, matchings: 1 },
    ] {
        for angle in [0.0, 1.0] {
            learns(angle, update, &triples);
        }
    }
}

fn learns(angle: f64, update: RelationUpdate, triples: &[[usize; 3]]) {
    let (model, signature) = model(update, Loss::Logistic);
    let mut states = Vec::new();
    for threads in [Threads::serial(), Threads::new(Some(2)).unwrap()] {
        let mut state = Embedding::random(30, 2, &signature, 0.3, (angle, update), 1);
        let mut losses = Vec::new();
        for epoch in 0..12 {
            let loss = model.epoch(&mut state, triples, epoch, &threads, &mut Unwatched).unwrap();
            losses.push(loss.unwrap());
        }
        assert!(losses[11] < 0.7 * losses[0], "{update:?}: {losses:?}");
        for relation in &state.relations {
            let size = relation.matrix.iter().map(|v| v * v).sum::<f64>();
            assert!(drift(relation.matrix.view(), &signature) <= 1e-12 * size);
        }
        states.push(state);
    }
    assert_eq!(states[0], states[1], "{update:?}");
}
