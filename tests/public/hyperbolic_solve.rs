//! Whole solves with a mixed signature.

use ndarray::{Array1, Array2, s};
use orthobcd::certificate::{column_gap, row_gap, stationarity};
use orthobcd::penalty::Penalty;
use orthobcd::start::{hyperbolic_cs, random_j_orthogonal};
use orthobcd::{
    MIXED_REPAIR_THRESHOLD, Objective, Options, Problem, Quadratic, Side, Signature, Solution, Status, Threads,
    Unwatched, Update, WorkingSet, constraint, drift, linalg, minimize,
};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::common::normal;

fn gauss(seed: u64, m: usize, n: usize) -> Array2<f64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    Array2::from_shape_fn((m, n), |_| normal(&mut rng))
}

fn signature(n: usize, p: usize) -> Signature {
    let signs: Vec<i8> = (0..n).map(|i| if i < p { 1 } else { -1 }).collect();
    Signature::new(&signs).unwrap()
}

/// Signs in any order.
fn shuffled(n: usize, seed: u64) -> Signature {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut signs: Vec<i8> = (0..n).map(|_| if rng.random_bool(0.5) { 1 } else { -1 }).collect();
    (signs[0], signs[n - 1]) = (-1, 1);
    Signature::new(&signs).unwrap()
}

/// 2 AᵀA, so that f = tr(XᵀAᵀAX).
fn twice_gram(a: &Array2<f64>) -> Array2<f64> {
    let c = a.t().dot(a) * 2.0;
    (&c + &c.t()) * 0.5
}

/// Σ|eig(J M)| for positive definite M: the eigenvalues of LᵀJL, M = LLᵀ.
fn infimum(m: &Array2<f64>, signature: &Signature) -> f64 {
    let (values, vectors) = linalg::symmetric_eigen(m.view());
    let root = vectors.dot(&Array2::from_diag(&values.mapv(|v| v.max(0.0).sqrt())));
    let mut jl = root.clone();
    for (mut row, &sign) in jl.outer_iter_mut().zip(signature.signs()) {
        row *= f64::from(sign);
    }
    let pencil = root.t().dot(&jl);
    let (eigenvalues, _) = linalg::symmetric_eigen(((&pencil + &pencil.t()) * 0.5).view());
    eigenvalues.iter().map(|v| v.abs()).sum()
}

fn solve(
    smooth: &dyn Objective,
    penalty: &Penalty,
    signature: &Signature,
    x0: &Array2<f64>,
    options: &Options,
) -> Solution {
    let problem = Problem::new(smooth, penalty, signature, x0.ncols()).unwrap();
    minimize(&problem, x0.clone(), options, &Threads::serial(), &mut Unwatched).unwrap()
}

fn norm2(a: &Array2<f64>) -> f64 {
    a.iter().map(|v| v * v).sum()
}

fn assert_monotone(solution: &Solution) {
    let values: Vec<f64> = solution.history.iter().map(|r| r.objective).collect();
    assert!(values.windows(2).all(|w| w[1] <= w[0]), "{values:?}");
}

#[test]
fn columns_reach_the_infimum() {
    for (n, seed) in [(2, 1), (7, 2), (33, 3), (64, 4), (97, 5)] {
        let signature = shuffled(n, seed);
        let c = twice_gram(&gauss(seed, n + 5, n));
        let smooth = Quadratic::new(c.clone(), None, None).unwrap();
        let x0 = random_j_orthogonal(&signature, 0.5, seed).unwrap();
        let optimum = 0.5 * infimum(&c, &signature);
        for side in [Side::Columns, Side::Both] {
            let options = Options::default().with_side(side);
            let solution = solve(&smooth, &Penalty::NONE, &signature, &x0, &options);
            assert_eq!(solution.status, Status::Converged);
            assert!((solution.objective / optimum - 1.0).abs() < 1e-11, "{n} {side:?}");
            assert!(solution.feasibility <= 1e-13 * norm2(&solution.x));
            assert_monotone(&solution);
            assert!(solution.sweeps <= 20);
            // First-order critical, and no pair of either kind gains anything.
            let problem = Problem::new(&smooth, &Penalty::NONE, &signature, n).unwrap();
            let threads = Threads::serial();
            let gradient = smooth.gradient(solution.x.view(), &threads);
            let residual = stationarity(solution.x.view(), gradient.view(), &signature);
            assert!(residual <= 1e-9 * norm2(&gradient).sqrt() * norm2(&solution.x), "{residual}");
            assert!(stationarity(x0.view(), smooth.gradient(x0.view(), &threads).view(), &signature) > 1e-3);
            assert!(row_gap(&problem, solution.x.view(), &threads).decrease <= 1e-10 * optimum);
            assert!(column_gap(&problem, &solution.x, &threads).unwrap().decrease <= 1e-10 * optimum);
            assert!(row_gap(&problem, x0.view(), &threads).decrease > 1e-3 * optimum);
        }
    }
}

#[test]
fn rows_alone_are_monotone_and_converge() {
    for (working_set, n) in [(WorkingSet::Tiled, 21), (WorkingSet::Cyclic, 8), (WorkingSet::Random, 9)] {
        let signature = shuffled(n, 7);
        let c = twice_gram(&gauss(11, 3 * n, n));
        let smooth = Quadratic::new(c.clone(), None, None).unwrap();
        let x0 = random_j_orthogonal(&signature, 0.5, 2).unwrap();
        let options = Options::default().with_working_set(working_set).with_proximal(0.0).with_tol(1e-14).with_tile(6);
        let solution = solve(&smooth, &Penalty::NONE, &signature, &x0, &options);
        assert_eq!(solution.status, Status::Converged);
        assert_monotone(&solution);
        assert!(solution.objective / (0.5 * infimum(&c, &signature)) - 1.0 < 1e-8);
    }
}

#[test]
fn indefinite_stiefel_keeps_its_constraint() {
    let signature = shuffled(12, 3);
    let smooth = Quadratic::new(twice_gram(&gauss(4, 30, 12)), None, None).unwrap();
    let square = random_j_orthogonal(&signature, 0.4, 5).unwrap();
    let x0 = square.slice(s![.., ..5]).to_owned();
    let k = constraint(x0.view(), &signature);
    // Any n×r start, with XᵀJX of any value.
    let skew = x0.dot(&(gauss(6, 5, 5) + Array2::<f64>::eye(5)));
    for start in [x0, skew] {
        for side in [Side::Rows, Side::Both] {
            let options = Options::default().with_side(side);
            let solution = solve(&smooth, &Penalty::NONE, &signature, &start, &options);
            let kept = constraint(start.view(), &signature);
            let gap = drift(solution.x.view(), &signature, kept.view());
            assert!(gap <= 1e-12 * norm2(&solution.x), "{gap}");
            assert_monotone(&solution);
            assert!(solution.objective < solution.history[0].objective);
        }
    }
    assert_eq!(k.dim(), (5, 5));
}

#[test]
fn penalties_are_kept_and_lowered() {
    let n = 12;
    let signature = shuffled(n, 9);
    let smooth = Quadratic::new(twice_gram(&gauss(8, 20, n)), None, None).unwrap();
    let x0 = random_j_orthogonal(&signature, 0.4, 6).unwrap();
    fn check(smooth: &Quadratic, signature: &Signature, x0: &Array2<f64>, penalty: &Penalty) {
        for side in [Side::Rows, Side::Both, Side::Columns] {
            let options = Options::default().with_side(side).with_max_sweeps(60);
            let solution = solve(smooth, penalty, signature, x0, &options);
            assert_monotone(&solution);
            assert!(solution.objective < solution.history[0].objective);
            assert!(solution.feasibility <= 1e-12 * norm2(&solution.x), "{}", solution.feasibility);
        }
    }
    check(&smooth, &signature, &x0, &Penalty::l1(3.0));
    check(&smooth, &signature, &x0, &Penalty::l0(5.0));
    let weights = gauss(10, n, n).mapv(f64::abs);
    check(&smooth, &signature, &x0, &Penalty::l1(weights));
    // From the identity the nonnegative problem has somewhere to go only with a linear term.
    let linear = -gauss(12, n, n).mapv(f64::abs) * 30.0;
    let pulled = Quadratic::new(smooth.matrix().to_owned(), Some(linear), None).unwrap();
    let options = Options::default().with_max_sweeps(50);
    let solution = solve(&pulled, &Penalty::NONNEGATIVE, &signature, &Array2::eye(n), &options);
    assert!(solution.x.iter().all(|&v| v >= 0.0));
    assert_monotone(&solution);
}

#[test]
fn a_definite_signature_is_the_stiefel_path() {
    let (n, r) = (17, 17);
    let smooth = Quadratic::new(-twice_gram(&gauss(3, 25, n)), Some(gauss(4, n, r)), None).unwrap();
    let x0 = linalg::orthonormal_factor(gauss(5, n, r).view());
    for update in [Update::GaussSeidel, Update::Jacobi] {
        let options = Options::default().with_update(update).with_max_sweeps(5);
        let stiefel = solve(&smooth, &Penalty::l1(0.7), &Signature::stiefel(n), &x0, &options);
        let given = Signature::new(&[1i8; 17]).unwrap();
        let solution = solve(&smooth, &Penalty::l1(0.7), &given, &x0, &options);
        assert_eq!(stiefel.x, solution.x);
        assert_eq!(stiefel.objective.to_bits(), solution.objective.to_bits());
    }
}

#[test]
fn column_rotations_leave_the_variance_alone_and_sparsify() {
    let (n, r) = (40, 6);
    let c = -twice_gram(&gauss(13, 60, n));
    let smooth = Quadratic::new(c.clone(), None, None).unwrap();
    let x0 = orthobcd::start::spectral(&smooth, r, &Threads::serial());
    let signature = Signature::stiefel(n);
    let penalty = Penalty::l1(2.0);
    let columns = Options::default().with_side(Side::Columns);
    let solution = solve(&smooth, &penalty, &signature, &x0, &columns);
    assert_eq!(solution.status, Status::Converged);
    let f0 = smooth.value(x0.view(), &Threads::serial());
    assert!((solution.smooth_value / f0 - 1.0).abs() < 1e-12);
    assert!(solution.penalty_value < 0.97 * penalty.value(x0.view()));
    assert!(solution.feasibility < 1e-12);
    assert_monotone(&solution);
    // Rows have something to gain where columns have not.
    let both = Options::default().with_tol(1e-9).with_side(Side::Both);
    let both = solve(&smooth, &penalty, &signature, &solution.x, &both);
    assert_monotone(&both);
    assert!(both.objective < solution.objective);
}

#[test]
fn columns_refuse_what_they_cannot_move() {
    let (n, r) = (6, 3);
    let d = Array2::from_shape_fn((r, r), |(i, j)| if i == j { 2.0 } else { 0.5 });
    let smooth = Quadratic::new(twice_gram(&gauss(1, 9, n)), None, Some(d)).unwrap();
    let (penalty, signature) = (Penalty::l1(1.0), Signature::stiefel(n));
    let problem = Problem::new(&smooth, &penalty, &signature, r).unwrap();
    let x0: Array2<f64> = Array2::eye(n).slice_move(s![.., ..r]);
    let run = |side| {
        let options = Options::default().with_side(side);
        minimize(&problem, x0.clone(), &options, &Threads::serial(), &mut Unwatched)
    };
    assert!(run(Side::Columns).unwrap_err().to_string().starts_with("side"));
    assert_eq!(run(Side::Both).unwrap().x, run(Side::Rows).unwrap().x);
}

#[test]
fn the_papers_problem_is_recognised_as_unbounded() {
    let n = 20;
    let signature = signature(n, 12);
    let smooth = Quadratic::new(-twice_gram(&gauss(2, 30, n)), None, None).unwrap();
    let x0 = random_j_orthogonal(&signature, 0.5, 1).unwrap();
    for side in [Side::Rows, Side::Columns, Side::Both] {
        for update in [Update::GaussSeidel, Update::Jacobi] {
            let options = Options::default().with_side(side).with_update(update);
            let solution = solve(&smooth, &Penalty::NONE, &signature, &x0, &options);
            assert_eq!(solution.status, Status::Unbounded);
            let recession = solution.recession.unwrap();
            let (i, j) = recession.pair;
            assert_ne!(signature.sign(i), signature.sign(j));
            assert!(solution.iterations <= 100, "{side:?} {}", solution.iterations);
            assert!(solution.feasibility <= 1e-13 * norm2(&solution.x));
            assert!(solution.objective.is_finite());
        }
        let options = Options::default().with_side(side).with_rapidity_bound(0.05).with_max_sweeps(3);
        let solution = solve(&smooth, &Penalty::NONE, &signature, &x0, &options);
        assert_eq!(solution.status, Status::MaxSweeps);
        assert_monotone(&solution);
        assert!(solution.objective < solution.history[0].objective);
        assert!(solution.feasibility <= 1e-10 * norm2(&solution.x));
        let options = options.with_max_sweeps(None);
        let far = solve(&smooth, &Penalty::NONE, &signature, &x0, &options);
        assert_eq!(far.status, Status::Unbounded);
        assert_monotone(&far);
        assert!(far.objective < 1e3 * solution.objective);
    }
}

#[test]
fn an_infimum_that_is_not_attained_is_approached() {
    // tr(XᵀMX) with a lightlike kernel: M = vvᵀ, v = (1, 1); 2u → 0 along the boosts.
    let small = Signature::new(&[1, -1]).unwrap();
    let v = Array1::from(vec![1.0, 1.0]);
    let c = Array2::from_shape_fn((2, 2), |(i, j)| 2.0 * v[i] * v[j]);
    let smooth = Quadratic::new(c, None, None).unwrap();
    for side in [Side::Columns, Side::Both] {
        let options = Options::default().with_proximal(0.0).with_side(side);
        let solution = solve(&smooth, &Penalty::NONE, &small, &Array2::eye(2), &options);
        assert_monotone(&solution);
        assert_eq!(solution.history[0].objective, 2.0);
        // As far as iterates go, and no farther.
        assert!(solution.objective < 1e-6, "{}", solution.objective);
        assert!(norm2(&solution.x) / 2.0 <= 1.001 * orthobcd::DIVERGENCE);
    }
}

#[test]
fn jacobi_is_monotone_and_the_same_on_two_threads() {
    let n = 130;
    let signature = shuffled(n, 5);
    let c = twice_gram(&gauss(6, 200, n));
    let smooth = Quadratic::new(c, None, None).unwrap();
    let x0 = random_j_orthogonal(&signature, 0.5, 3).unwrap();
    let problem = Problem::new(&smooth, &Penalty::NONE, &signature, n).unwrap();
    let run = |threads: usize, side: Side, update: Update| {
        let options = Options::default().with_update(update).with_side(side).with_max_sweeps(if side == Side::Rows {
            1
        } else {
            4
        });
        let threads = Threads::new(Some(threads)).unwrap();
        minimize(&problem, x0.clone(), &options, &threads, &mut Unwatched).unwrap()
    };
    for (side, update) in [(Side::Rows, Update::Jacobi), (Side::Columns, Update::GaussSeidel)] {
        let (one, two) = (run(1, side, update), run(2, side, update));
        assert_eq!(one.x, two.x);
        assert_monotone(&one);
        assert!(one.objective < one.history[0].objective);
    }
}

#[test]
fn an_odd_row_rests_in_jacobi() {
    let signature = shuffled(9, 2);
    let smooth = Quadratic::new(twice_gram(&gauss(7, 20, 9)), None, None).unwrap();
    let x0 = random_j_orthogonal(&signature, 0.5, 3).unwrap();
    let options = Options::default().with_update(Update::Jacobi).with_max_sweeps(200);
    let solution = solve(&smooth, &Penalty::NONE, &signature, &x0, &options);
    assert_monotone(&solution);
    assert!(solution.feasibility <= 1e-13 * norm2(&solution.x));
}

#[test]
fn blocks_of_mixed_rows_are_not_turned_orthogonally() {
    let n = 10;
    let signature = shuffled(n, 6);
    let smooth = Quadratic::new(twice_gram(&gauss(9, 20, n)), None, None).unwrap();
    let x0 = random_j_orthogonal(&signature, 0.5, 3).unwrap();
    let options = Options::default().with_working_set(WorkingSet::Random).with_block_size(4).with_max_sweeps(20);
    let solution = solve(&smooth, &Penalty::NONE, &signature, &x0, &options);
    assert!(solution.feasibility <= 1e-13 * norm2(&solution.x));
    assert_monotone(&solution);
}

#[test]
fn cs_decomposition_round_trips() {
    for (n, p) in [(1, 1), (2, 1), (5, 0), (5, 5), (9, 6), (9, 2), (20, 10), (31, 4)] {
        for scale in [0.0, 0.5, 2.0] {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(n as u64);
            let mut signs: Vec<i8> = (0..n).map(|i| if i < p { 1 } else { -1 }).collect();
            for i in (1..n).rev() {
                signs.swap(i, rng.random_range(0..=i));
            }
            let signature = Signature::new(&signs).unwrap();
            let x = random_j_orthogonal(&signature, scale, 17).unwrap();
            let size = norm2(&x);
            let j = Array2::from_diag(&signs.iter().map(|&s| f64::from(s)).collect::<Array1<f64>>());
            assert!(drift(x.view(), &signature, j.view()) <= 1e-14 * size);
            let cs = hyperbolic_cs(x.view(), &signature).unwrap();
            let back = cs.compose(&signature).unwrap();
            assert!(norm2(&(&back - &x)).sqrt() <= 1e-12 * size.sqrt(), "{n} {p} {scale}");
            for u in [&cs.u1, &cs.u2, &cs.v1, &cs.v2] {
                let gap = u.t().dot(u) - Array2::<f64>::eye(u.ncols());
                assert!(norm2(&gap).sqrt() < 1e-13);
            }
            for (c, s) in cs.c.iter().zip(&cs.s) {
                assert!((c * c - s * s - 1.0).abs() < 1e-13 * c * c && *s >= 0.0);
            }
            assert_eq!(cs.c.len(), p.min(n - p));
        }
    }
    let signature = signature(4, 2);
    let off: Array2<f64> = Array2::eye(4) * 1.1;
    assert!(hyperbolic_cs(off.view(), &signature).unwrap_err().to_string().starts_with('X'));
    assert!(random_j_orthogonal(&signature, -1.0, 0).is_err());
}

#[test]
fn drift_is_repaired_from_both_sides_of_the_threshold() {
    let n = 12;
    let signature = shuffled(n, 4);
    let smooth = Quadratic::new(twice_gram(&gauss(3, 20, n)), None, None).unwrap();
    let exact = random_j_orthogonal(&signature, 0.5, 3).unwrap();
    let j = constraint(Array2::<f64>::eye(n).view(), &signature);
    for (error, repaired) in [(1e-10, true), (1e-18, false)] {
        let x0 = &exact + &(gauss(4, n, n) * error);
        let before = drift(x0.view(), &signature, j.view());
        let options = Options::default().with_max_time(0.0);
        let solution = solve(&smooth, &Penalty::NONE, &signature, &x0, &options);
        let after = drift(solution.x.view(), &signature, j.view());
        if repaired {
            assert!(before > MIXED_REPAIR_THRESHOLD * norm2(&x0));
            // Repaired, or refused because it would have raised the objective.
            assert!(after < 1e-3 * before || solution.x == x0, "{before} {after}");
        } else {
            assert!(before <= MIXED_REPAIR_THRESHOLD * norm2(&x0));
            assert_eq!(solution.x, x0);
        }
    }
}
