//! What a solve reports is so at any scale: `Converged` means that no pair is left, results are
//! equivariant under scaling of F and unchanged by a multiple of the identity, the proximal term
//! gives the decrease that it promises, and the greedy rules choose what their definitions say.

use ndarray::Array2;
use orthobcd::certificate::row_gap;
use orthobcd::objective::Moved;
use orthobcd::penalty::Penalty;
use orthobcd::start::random_j_orthogonal;
use orthobcd::{
    Curvature, Objective, Options, Problem, Quadratic, QuadraticForm, Side, Signature, Solution, Status, Threads,
    Unwatched, Update, WorkingSet, certify, linalg, minimize, start,
};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::common::observed::{Observed, Observer, assign};

fn gauss(seed: u64, m: usize, n: usize) -> Array2<f64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    Array2::from_shape_fn((m, n), |_| StandardNormal.sample(&mut rng))
}

/// C of an indefinite problem, or of PCA.
fn matrix(n: usize, seed: u64) -> Array2<f64> {
    let a = gauss(seed, n, n);
    let c = if seed.is_multiple_of(2) { -a.t().dot(&a) } else { &a + &a.t() };
    (&c + &c.t()) * 0.5
}

fn solve(smooth: &dyn Objective, penalty: &Penalty, x0: Array2<f64>, options: &Options) -> Solution {
    let signature = Signature::stiefel(smooth.rows());
    let problem = Problem::new(smooth, penalty, &signature, x0.ncols()).unwrap();
    minimize(&problem, x0, options, &Threads::serial(), &mut Unwatched).unwrap()
}

/// (what the best pair can still gain, that relative to the tolerance) after convergence.
fn rests(smooth: &Quadratic, penalty: &Penalty, x0: Array2<f64>, options: &Options) {
    let signature = Signature::stiefel(x0.nrows());
    let problem = Problem::new(smooth, penalty, &signature, x0.ncols()).unwrap();
    let threads = Threads::serial();
    let solution = solve(smooth, penalty, x0, options);
    assert_eq!(solution.status, Status::Converged, "{options:?}");
    let certificate = certify(&problem, solution.x.view(), &threads).unwrap();
    assert!(
        certificate.block2_gap <= options.tol * certificate.magnitude,
        "{options:?}: {:e} of {:e}",
        certificate.block2_gap,
        certificate.magnitude
    );
}

/// All penalties on one small instance.
fn all_rest(seed: u64, options: &Options) {
    let n = 6 + (seed % 5) as usize;
    let r = 1 + (seed % 3) as usize;
    let linear = seed.is_multiple_of(3).then(|| gauss(seed + 1, n, r));
    let smooth = Quadratic::new(matrix(n, seed), linear, None).unwrap();
    let random = || start::random(n, r, seed);
    rests(&smooth, &Penalty::NONE, random(), options);
    rests(&smooth, &Penalty::l0(0.7), random(), options);
    rests(&smooth, &Penalty::l1(0.7), random(), options);
    rests(&smooth, &Penalty::NONNEGATIVE, start::partition(n, r, seed), options);
}

#[test]
fn converged_after_sampled_rules_means_that_no_pair_is_left() {
    for working_set in [WorkingSet::Random, WorkingSet::WssSv, WorkingSet::WssOr] {
        for seed in 0..200 {
            let options = Options::default().with_working_set(working_set.clone()).with_seed(seed);
            all_rest(seed, &options);
        }
    }
}

#[test]
fn converged_after_any_other_option_means_that_no_pair_is_left() {
    let default = Options::default();
    let options = [
        default.clone(),
        default.clone().with_working_set(WorkingSet::Cyclic),
        default.clone().with_update(Update::Jacobi),
        default.clone().with_working_set(WorkingSet::Cyclic).with_block_size(4),
        default.clone().with_working_set(WorkingSet::Random).with_block_size(4),
        default.clone().with_working_set(WorkingSet::WssOr).with_block_size(3).with_scored_pairs(usize::MAX),
        default.clone().with_curvature(Curvature::Scalar),
        default.clone().with_proximal(0.5),
        default.with_tol(1e-4).with_tile(4),
    ];
    for options in &options {
        for seed in 0..24 {
            let options = options.clone().with_seed(seed);
            all_rest(seed, &options);
        }
    }
}

#[test]
fn converged_with_mixed_signs_means_that_no_pair_is_left() {
    for (update, working_set, side) in [
        (Update::GaussSeidel, WorkingSet::Tiled, Side::Rows),
        (Update::GaussSeidel, WorkingSet::Tiled, Side::Both),
        (Update::GaussSeidel, WorkingSet::Random, Side::Rows),
        (Update::GaussSeidel, WorkingSet::Random, Side::Both),
        (Update::Jacobi, WorkingSet::Tiled, Side::Rows),
    ] {
        for seed in 0..10 {
            let n = 6;
            let signs: Vec<i8> = (0..n).map(|i| if i % 3 == 0 { -1 } else { 1 }).collect();
            let signature = Signature::new(&signs).unwrap();
            let a = gauss(seed, 2 * n, n);
            let c = a.t().dot(&a);
            let smooth = Quadratic::new((&c + &c.t()) * 0.5, None, None).unwrap();
            let x0 = random_j_orthogonal(&signature, 0.4, seed).unwrap();
            let options = Options::default()
                .with_update(update)
                .with_working_set(working_set.clone())
                .with_side(side)
                .with_seed(seed);
            fn check(
                smooth: &Quadratic,
                penalty: &Penalty,
                signature: &Signature,
                x0: &Array2<f64>,
                options: &Options,
            ) {
                let problem = Problem::new(smooth, penalty, signature, x0.ncols()).unwrap();
                let threads = Threads::serial();
                let solution = minimize(&problem, x0.clone(), options, &threads, &mut Unwatched).unwrap();
                assert_eq!(solution.status, Status::Converged);
                let rows = row_gap(&problem, solution.x.view(), &threads).decrease;
                let certificate = certify(&problem, solution.x.view(), &threads).unwrap();
                let gap = if options.side == Side::Rows { rows } else { certificate.block2_gap };
                assert!(
                    gap <= options.tol * certificate.magnitude,
                    "{options:?}: {gap:e} of {:e}",
                    certificate.magnitude
                );
            }
            check(&smooth, &Penalty::NONE, &signature, &x0, &options);
            check(&smooth, &Penalty::l1(0.5), &signature, &x0, &options);
            check(&smooth, &Penalty::l0(0.5), &signature, &x0, &options);
        }
    }
}

/// The rules, each for a few sweeps.
fn rules() -> Vec<Options> {
    let few = Options::default().with_max_sweeps(4);
    let mut rules: Vec<Options> =
        [WorkingSet::Tiled, WorkingSet::Cyclic, WorkingSet::Random, WorkingSet::WssSv, WorkingSet::WssOr]
            .into_iter()
            .map(|working_set| {
                let rule = few.clone().with_working_set(working_set);
                match rule.working_set {
                    // The work of about forty pairs: rounding decides the order of the scores of pairs that rest later.
                    WorkingSet::WssSv | WorkingSet::WssOr => rule.with_max_work(150_000),
                    _ => rule.with_max_sweeps(2),
                }
            })
            .collect();
    rules.push(few.clone().with_update(Update::Jacobi));
    rules.push(few.clone().with_curvature(Curvature::Scalar));
    rules.push(few.clone().with_side(Side::Both));
    rules.push(few.with_proximal(0.1).with_tile(8));
    rules
}

/// The supports of the columns in some order: exchanging columns changes neither f nor h. Rounding
/// may decide whether an entry that ℓ1 puts at its kink is 0 or of its own size.
fn pattern(x: &Array2<f64>) -> Vec<Vec<bool>> {
    let mut columns: Vec<Vec<bool>> =
        (x.columns().into_iter()).map(|column| column.iter().map(|&v: &f64| v.abs() > 1e-7).collect()).collect();
    columns.sort();
    columns
}

/// F·`factor` and F itself end at the same X: bit for bit for powers of two, else on the same
/// support with the scaled objective.
fn equivariant(
    c: &Array2<f64>,
    penalty: impl Fn(f64) -> Penalty,
    x0: &Array2<f64>,
    options: &Options,
    wrong: &mut Vec<String>,
) {
    let quadratic = |factor: f64| Quadratic::new(c * factor, None, None).unwrap();
    let expected = solve(&quadratic(1.0), &penalty(1.0), x0.clone(), options);
    for exponent in [-60, 60] {
        let factor = 2f64.powi(exponent);
        let found = solve(&quadratic(factor), &penalty(factor), x0.clone(), options);
        assert_eq!(found.x, expected.x, "2^{exponent}, {options:?}");
        assert_eq!(found.objective, expected.objective * factor);
        assert_eq!(found.status, expected.status);
    }
    let n = x0.nrows() as f64;
    let norm = c.iter().map(|v| v * v).sum::<f64>().sqrt();
    for (factor, shift) in [(1e-8, 0.0), (1e8, 0.0), (1.0, 1e6 * norm / n)] {
        let matrix = c * factor + Array2::<f64>::eye(x0.nrows()) * shift;
        let smooth = Quadratic::new(matrix, None, None).unwrap();
        let found = solve(&smooth, &penalty(factor), x0.clone(), options);
        let constant = 0.5 * shift * x0.ncols() as f64;
        let size = norm * factor + constant;
        let error = (found.objective - constant) - expected.objective * factor;
        let same = pattern(&found.x) == pattern(&expected.x);
        if !(error.abs() <= 1e-9 * size && same) {
            wrong.push(format!(
                "{:?} {factor:e}, {shift:e}, {:?} {:?} {:?} {:?}: error {:e}, same support: {same}, {:e}",
                penalty(factor),
                options.working_set,
                options.update,
                options.curvature,
                options.side,
                error / size,
                (&found.x - &expected.x).iter().fold(0.0f64, |m, v| m.max(v.abs()))
            ));
        }
    }
}

#[test]
fn results_scale_with_f_and_ignore_multiples_of_the_identity() {
    let (n, r) = (24, 4);
    let wrong = &mut Vec::new();
    for seed in 0..4 {
        let c = matrix(n, seed);
        for options in &rules() {
            let random = start::random(n, r, seed);
            equivariant(&c, |_| Penalty::NONE, &random, options, wrong);
            equivariant(&c, |s| Penalty::l0(2.0 * s), &random, options, wrong);
            equivariant(&c, |s| Penalty::l1(2.0 * s), &random, options, wrong);
            let weights = gauss(seed + 9, n, r).mapv(|v: f64| v.abs());
            let entrywise = |s: f64| Penalty::l1(&weights * s);
            equivariant(&c, entrywise, &random, options, wrong);
            let parts = start::partition(n, r, seed);
            equivariant(&c, |_| Penalty::NONNEGATIVE, &parts, options, wrong);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_tiny_problem_is_solved_like_a_large_one() {
    let a = gauss(0, 30, 8);
    let c = -a.t().dot(&a);
    let c = (&c + &c.t()) * 0.5;
    let value = |factor: f64| {
        let smooth = Quadratic::new(&c * factor, None, None).unwrap();
        let penalty = Penalty::l0(factor);
        let x0 = start::random(8, 3, 0);
        solve(&smooth, &penalty, x0, &Options::default()).objective / factor
    };
    let expected = value(1.0);
    for exponent in [-27, -7, 27] {
        assert_eq!(value(2f64.powi(exponent)), expected);
    }
}

#[test]
fn mixed_signs_scale_with_f() {
    let n = 8;
    let signs: Vec<i8> = (0..n).map(|i| if i % 2 == 0 { 1 } else { -1 }).collect();
    let signature = Signature::new(&signs).unwrap();
    for seed in 0..4 {
        let a = gauss(seed, 2 * n, n);
        let c = a.t().dot(&a);
        let c = (&c + &c.t()) * 0.5;
        let x0 = random_j_orthogonal(&signature, 0.4, seed).unwrap();
        for (update, side, working_set) in [
            (Update::GaussSeidel, Side::Rows, WorkingSet::Tiled),
            (Update::GaussSeidel, Side::Both, WorkingSet::Tiled),
            (Update::GaussSeidel, Side::Rows, WorkingSet::Random),
            (Update::Jacobi, Side::Rows, WorkingSet::Tiled),
        ] {
            let options = Options::default()
                .with_update(update)
                .with_side(side)
                .with_working_set(working_set)
                .with_seed(seed)
                .with_max_sweeps(4);
            for penalised in [false, true] {
                let run = |factor: f64| {
                    let smooth = Quadratic::new(&c * factor, None, None).unwrap();
                    let l1 = Penalty::l1(0.5 * factor);
                    let threads = Threads::serial();
                    let parts = (&smooth, &signature, x0.clone());
                    fn end(
                        (smooth, signature, x0): (&Quadratic, &Signature, Array2<f64>),
                        penalty: &Penalty,
                        options: &Options,
                        threads: &Threads,
                    ) -> Solution {
                        let problem = Problem::new(smooth, penalty, signature, x0.ncols()).unwrap();
                        minimize(&problem, x0, options, threads, &mut Unwatched).unwrap()
                    }
                    if penalised {
                        end(parts, &l1, &options, &threads)
                    } else {
                        end(parts, &Penalty::NONE, &options, &threads)
                    }
                };
                let expected = run(1.0);
                for exponent in [-60, 60] {
                    let factor = 2f64.powi(exponent);
                    let found = run(factor);
                    assert_eq!(found.x, expected.x, "2^{exponent}, {options:?}");
                    assert_eq!(found.objective, expected.objective * factor);
                }
                for factor in [1e-8, 1e8] {
                    let found = run(factor);
                    let error = found.objective - factor * expected.objective;
                    assert!(error.abs() <= 1e-8 * factor * expected.objective.abs());
                    assert_eq!(pattern(&found.x), pattern(&expected.x));
                }
            }
        }
    }
}

/// A block and X when it was filled, and X after it.
struct Seen {
    rows: Vec<usize>,
    x: Array2<f64>,
    after: Array2<f64>,
}

impl Observer for Vec<Seen> {
    fn filled(&mut self, rows: &[usize], x: &Array2<f64>) {
        self.push(Seen { rows: rows.to_vec(), x: x.clone(), after: x.clone() });
    }

    fn moved(&mut self, moved: &Moved<'_>, _x: &Array2<f64>) {
        if let Some(seen) = self.last_mut() {
            assign(moved, &mut seen.after);
        }
    }
}

fn spied(c: Array2<f64>, penalty: &Penalty, x0: Array2<f64>, options: &Options) -> (Quadratic<'static>, Vec<Seen>) {
    let smooth = Observed::new(Quadratic::new(c, None, None).unwrap(), Vec::new());
    solve(&smooth, penalty, x0, options);
    smooth.into_parts()
}

/// Theorem 4.2(a) with the weight relative to the curvature of f, for every move of a solve:
/// F(X) − F(X⁺) ≥ ακ/2 ‖V − I‖² ≥ ακ/2 ‖X⁺ − X‖².
#[test]
fn the_proximal_term_gives_the_decrease_that_it_promises() {
    fn check(c: &Array2<f64>, penalty: &Penalty, x0: Array2<f64>, seed: u64) -> usize {
        let alpha = 0.2;
        let options = Options::default()
            .with_working_set(WorkingSet::Random)
            .with_proximal(alpha)
            .with_max_sweeps(2)
            .with_tol(0.0)
            .with_seed(seed);
        let (smooth, seen) = spied(c.clone(), penalty, x0, &options);
        let threads = Threads::serial();
        let value = |x: &Array2<f64>| smooth.value(x.view(), &threads) + penalty.value(x.view());
        let (values, _) = linalg::symmetric_eigen(c.view());
        let kappa = 0.5 * (values[values.len() - 1] - values[0]);
        assert!((smooth.spread() - kappa).abs() <= 1e-10 * kappa);
        let mut moves = 0;
        for step in &seen {
            let moved = (&step.after - &step.x).iter().map(|v| v * v).sum::<f64>();
            let decrease = value(&step.x) - value(&step.after);
            assert!(decrease >= 0.5 * alpha * kappa * moved - 1e-12 * kappa, "{decrease:e} for {moved:e}");
            moves += usize::from(moved > 0.0);
        }
        moves
    }
    let (n, r) = (10, 3);
    let mut moves = 0;
    for seed in 0..10 {
        for factor in [1e-8, 1.0, 1e8] {
            let c = matrix(n, seed) * factor;
            let random = || start::random(n, r, seed);
            moves += check(&c, &Penalty::NONE, random(), seed);
            let l0 = Penalty::l0(factor);
            moves += check(&c, &l0, random(), seed);
            moves += check(&c, &Penalty::l1(factor), random(), seed);
            moves += check(&c, &Penalty::NONNEGATIVE, start::partition(n, r, seed), seed);
        }
    }
    assert!(moves > 1000, "{moves}");
}

/// The rows that the definitions choose from the remaining pairs, which are in decreasing |S|: disjoint pairs,
/// the last row of an odd k from the next pair.
fn chosen(left: &mut Vec<(usize, usize)>, k: usize) -> Vec<usize> {
    let mut rows: Vec<usize> = Vec::new();
    while rows.len() < k && !left.is_empty() {
        let (i, j) = left.remove(0);
        if !rows.contains(&i) && !rows.contains(&j) {
            rows.push(i);
            rows.extend((rows.len() < k).then_some(j));
        }
    }
    rows.sort_unstable();
    rows
}

/// All pairs in decreasing order of score; none where rounding would decide.
fn ranked(score: impl Fn(usize, usize) -> f64, n: usize) -> Option<Vec<(usize, usize)>> {
    let mut pairs: Vec<(f64, usize, usize)> =
        (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).map(|(i, j)| (score(i, j), i, j)).collect();
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    let apart = pairs.windows(2).all(|w| w[0].0 - w[1].0 > 1e-9 * pairs[0].0);
    apart.then(|| pairs.into_iter().map(|(_, i, j)| (i, j)).collect())
}

#[test]
fn greedy_rules_choose_what_their_definitions_say() {
    fn check(
        (working_set, alpha): (&WorkingSet, f64),
        k: usize,
        seed: u64,
        penalty: &Penalty,
        subgradient: impl Fn(f64) -> f64,
    ) -> (usize, usize) {
        let (n, r) = (9, 3);
        let c = matrix(n, seed);
        let options = // The proximal term goes once a sweep settles.
Options::default().with_working_set(working_set.clone()).with_block_size(k).with_scored_pairs(usize::MAX).with_proximal(alpha).with_max_sweeps(if alpha > 0.0 { 1 } else { 12 }).with_tol(0.0).with_seed(seed);
        let (smooth, seen) = spied(c.clone(), penalty, start::random(n, r, seed), &options);
        let (values, _) = linalg::symmetric_eigen(c.view());
        let lipschitz = values[n - 1];
        let alpha = options.proximal * smooth.spread();
        let (mut checked, mut followed) = (0, 0);
        let threads = Threads::serial();
        let value = |x: &Array2<f64>| smooth.value(x.view(), &threads) + penalty.value(x.view());
        // The remaining pairs, if they are known, and whether the choice begins afresh.
        let (mut left, mut afresh) = (None, true);
        for step in &seen {
            // The choice begins afresh after a verification, which has all rows.
            if step.rows.len() != k {
                (left, afresh) = (None, true);
                continue;
            }
            let gamma = c.dot(&step.x) + step.x.mapv(&subgradient);
            let skew = step.x.dot(&gamma.t()) - gamma.dot(&step.x.t());
            let t = (&gamma - &(&step.x * lipschitz)).dot(&step.x.t()) - Array2::<f64>::eye(n) * alpha;
            let score = |i: usize, j: usize| {
                if *working_set == WorkingSet::WssSv {
                    return skew[[i, j]].abs();
                }
                let block = ndarray::array![[t[[i, i]], t[[i, j]]], [t[[j, i]], t[[j, j]]]];
                let (_, singular, _) = linalg::svd(block.view());
                (singular.sum() + t[[i, i]] + t[[j, j]]).abs()
            };
            let mut rows = step.rows.clone();
            rows.sort_unstable();
            let mut fresh = ranked(score, n);
            let first = fresh.as_mut().map(|pairs| chosen(pairs, k));
            let next = left.as_mut().map(|pairs: &mut Vec<_>| chosen(pairs, k));
            match next {
                // While nothing moves, the choice goes on where the last one ended.
                Some(next) if !afresh && rows == next => followed += 1,
                // The last rows of the list are filled up at random.
                Some(next) if !afresh && !next.is_empty() && next.len() < k => {
                    assert!(next.iter().all(|row| rows.contains(row)));
                }
                // Otherwise, and where another pass begins, it begins afresh; none where rounding would decide.
                Some(_) | None if afresh || left.is_some() => {
                    if let Some(first) = first {
                        assert_eq!(rows, first, "{working_set:?}, k = {k}");
                        checked += 1;
                    }
                    left = fresh;
                }
                _ => {}
            }
            let (before, after) = (value(&step.x), value(&step.after));
            afresh = before - after > 1e-9 * before.abs();
            if !afresh && step.x != step.after {
                left = None;
            }
        }
        (checked, followed)
    }
    for working_set in [WorkingSet::WssSv, WorkingSet::WssOr] {
        for k in 2..=5 {
            let (mut checked, mut followed) = (0, 0);
            for seed in 0..6 {
                let rule = (&working_set, if seed < 3 { 0.0 } else { 0.1 });
                let sign = |v: f64| if v < 0.0 { -0.4 } else { 0.4 };
                for (afresh, next) in [
                    check(rule, k, seed, &Penalty::NONE, |_| 0.0),
                    check(rule, k, seed, &Penalty::l0(0.3), |_| 0.0),
                    check(rule, k, seed, &Penalty::l1(0.4), sign),
                ] {
                    (checked, followed) = (checked + afresh, followed + next);
                }
            }
            assert!(checked > 30 && followed > 5, "{checked}, {followed}");
        }
    }
}

/// What a rule of single pairs returns is its own: after a verification too, single pairs move.
#[test]
fn rules_of_single_pairs_move_single_pairs_until_convergence() {
    for rule in [WorkingSet::Random, WorkingSet::WssSv, WorkingSet::WssOr] {
        for curvature in [Curvature::Exact, Curvature::Scalar] {
            let mut passes = 0;
            for seed in 0..6 {
                let n = 12;
                let options =
                    Options::default().with_working_set(rule.clone()).with_curvature(curvature).with_seed(seed);
                for penalty in [Penalty::NONE, Penalty::l0(0.7), Penalty::l1(0.7)] {
                    let x0 = start::random(n, 3, seed);
                    let (_, seen) = spied(matrix(n, seed), &penalty, x0, &options);
                    passes += seen.iter().filter(|step| step.rows.len() > 2).count();
                    let moves = seen.iter().filter(|step| step.after != step.x);
                    assert!(moves.into_iter().all(|step| step.rows.len() == 2));
                }
            }
            assert!(passes > 0, "no verification was seen");
        }
    }
}
