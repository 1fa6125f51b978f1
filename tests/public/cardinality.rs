//! A limit on nonzeros, or on rows: feasible, monotone, no worse than what is known, the optimum where it can be
//! enumerated.

use ndarray::{Array2, s};
use orthobcd::penalty::Penalty;
use orthobcd::{
    Auto, Cardinality, Control, DenseColumns, Error, GramQuadratic, Limit, Monitor, NEGLIGIBLE, Objective, Options,
    Problem, Quadratic, Record, RowSparsity, Signature, Solution, Sparsity, Status, Threads, Unwatched, certify,
    linalg, minimize_auto, start,
};

const QUICK: u64 = 100_000_000;

/// m samples of n correlated features of different size.
fn data(m: usize, n: usize, seed: u64) -> Array2<f64> {
    let size = 3 * m.max(n);
    let a = start::random(size, size, seed) * (size as f64).sqrt();
    let mixing = start::random(n, n, seed + 1) + Array2::<f64>::eye(n);
    let mut a = a.slice(s![..m, ..n]).dot(&mixing);
    for (j, mut column) in a.columns_mut().into_iter().enumerate() {
        column *= 0.5 + (j % 5) as f64 / 3.0;
    }
    a
}

fn covariance(n: usize, seed: u64) -> Quadratic<'static> {
    Quadratic::from_data(data(2 * n, n, seed).view()).unwrap()
}

fn solve_from(
    smooth: &dyn Objective,
    r: usize,
    sparsity: &Sparsity,
    x0: Option<Array2<f64>>,
    options: &Options,
    threads: usize,
) -> Result<Solution, Error> {
    let signature = Signature::stiefel(smooth.rows());
    let limit = Limit::Entries(sparsity.clone());
    let problem = Problem::new(smooth, &Penalty::NONE, &signature, r)?.with_limit(&limit)?;
    let threads = Threads::new(Some(threads))?;
    let auto = Auto::default().with_options(options.clone());
    Ok(minimize_auto(&problem, x0, &auto, &threads, &mut Unwatched)?.solution)
}

fn solve(smooth: &dyn Objective, r: usize, sparsity: &Sparsity, work: u64) -> Solution {
    let options = Options::default().with_max_work(work);
    solve_from(smooth, r, sparsity, None, &options, 1).unwrap()
}

fn counts(x: &Array2<f64>) -> Vec<usize> {
    let count = |column: ndarray::ArrayView1<'_, f64>| column.iter().filter(|&&v| v != 0.0).count();
    x.columns().into_iter().map(count).collect()
}

/// Feasible, within the limit, monotone, and without entries that only look like nonzeros.
fn check(solution: &Solution, sparsity: &Sparsity, smooth: &dyn Objective) {
    let x = &solution.x;
    let found = counts(x);
    match &sparsity.cardinality {
        Cardinality::Total(total) => assert!(found.iter().sum::<usize>() <= *total, "{found:?}"),
        Cardinality::Columns(most) => {
            assert!(found.iter().zip(most).all(|(a, b)| a <= b), "{found:?}")
        }
    }
    let gap = &x.t().dot(x) - &Array2::<f64>::eye(x.ncols());
    assert!(gap.iter().all(|v| v.abs() < 1e-13), "{gap}");
    assert!(solution.feasibility < 1e-12);
    assert!(sparsity.exclude.iter().all(|&entry| x[entry] == 0.0));
    if sparsity.nonnegative {
        assert!(x.iter().all(|&v| v >= 0.0));
    }
    if sparsity.include.is_empty() {
        for column in x.columns() {
            let largest = column.iter().fold(0.0f64, |m, v| m.max(v.abs()));
            assert!(column.iter().all(|v| *v == 0.0 || v.abs() > NEGLIGIBLE * largest));
        }
    }
    assert!(solution.history.windows(2).all(|rows| rows[1].objective <= rows[0].objective));
    let value = smooth.value(x.view(), &Threads::serial());
    assert!((value - solution.objective).abs() <= 1e-12 * value.abs());
}

/// The subsets of 0..n of size k.
fn subsets(n: usize, k: usize) -> Vec<Vec<usize>> {
    (0..1u32 << n)
        .filter(|bits| bits.count_ones() as usize == k)
        .map(|bits| (0..n).filter(|i| bits >> i & 1 == 1).collect())
        .collect()
}

/// Half the sum of the r smallest eigenvalues of C on some rows.
fn smallest(c: ndarray::ArrayView2<'_, f64>, rows: &[usize], r: usize) -> f64 {
    let part = Array2::from_shape_fn((rows.len(), rows.len()), |(a, b)| c[[rows[a], rows[b]]]);
    0.5 * linalg::symmetric_eigen(part.view()).0.iter().take(r).sum::<f64>()
}

#[test]
fn one_component_is_the_best_of_all_supports() {
    for seed in 0..10 {
        let smooth = covariance(10, seed);
        let all = subsets(10, 4);
        let best = all.iter().map(|rows| smallest(smooth.matrix(), rows, 1)).fold(f64::INFINITY, f64::min);
        let sparsity = Sparsity::new(Cardinality::Columns(vec![4]));
        let found = solve(&smooth, 1, &sparsity, QUICK);
        check(&found, &sparsity, &smooth);
        assert!((found.objective - best).abs() <= 1e-12 * best.abs(), "{seed}");
    }
}

/// Disjoint supports are solved exactly by eigenvalues, so the best pair of them is a bound that must be reached.
#[test]
fn no_worse_than_the_best_disjoint_supports() {
    for seed in 0..6 {
        let smooth = covariance(9, 100 + seed);
        let (first, second) = (subsets(9, 3), subsets(9, 2));
        let mut best = f64::INFINITY;
        for a in &first {
            let one = smallest(smooth.matrix(), a, 1);
            for b in second.iter().filter(|b| b.iter().all(|i| !a.contains(i))) {
                best = best.min(one + smallest(smooth.matrix(), b, 1));
            }
        }
        let sparsity = Sparsity::new(Cardinality::Columns(vec![3, 2]));
        let found = solve(&smooth, 2, &sparsity, QUICK);
        check(&found, &sparsity, &smooth);
        assert!(found.objective <= best + 1e-12 * best.abs(), "{seed}");
        // A total of as many can only be better.
        let total = solve(&smooth, 2, &Sparsity::new(Cardinality::Total(5)), QUICK);
        assert!(total.objective <= found.objective + 1e-12 * best.abs(), "{seed}");
    }
}

#[test]
fn limits_signs_and_rules_are_kept() {
    let n = 14;
    let smooth = covariance(n, 7);
    let zero: Vec<(usize, usize)> = (0..4).map(|i| (i, 0)).chain([(9, 2)]).collect();
    for cardinality in [Cardinality::Total(3), Cardinality::Total(11), Cardinality::Columns(vec![5, 1, 3])] {
        for nonnegative in [false, true] {
            for include in [vec![], vec![(12, 0)]] {
                let sparsity = Sparsity::new(cardinality.clone())
                    .with_nonnegative(nonnegative)
                    .with_exclude(zero.clone())
                    .with_include(include);
                for work in [0, 1, 30_000_000] {
                    check(&solve(&smooth, 3, &sparsity, work), &sparsity, &smooth);
                }
            }
        }
    }
}

#[test]
fn included_rows_are_in_the_support() {
    let smooth = covariance(12, 3);
    let free = solve(&smooth, 2, &Sparsity::new(Cardinality::Columns(vec![3, 3])), QUICK);
    let out: Vec<usize> = (0..12).filter(|&i| free.x.row(i).iter().all(|&v| v == 0.0)).collect();
    let sparsity = Sparsity::new(Cardinality::Columns(vec![3, 3])).with_include(vec![(out[0], 0), (out[1], 1)]);
    let found = solve(&smooth, 2, &sparsity, QUICK);
    check(&found, &sparsity, &smooth);
    assert!(found.x[[out[0], 0]] != 0.0 && found.x[[out[1], 1]] != 0.0);
    assert!(found.objective >= free.objective);
}

#[test]
fn more_work_is_never_worse_and_threads_change_no_bit() {
    let smooth = covariance(30, 11);
    for cardinality in [Cardinality::Total(17), Cardinality::Columns(vec![4, 4, 4, 4])] {
        let sparsity = Sparsity::new(cardinality);
        let mut last = f64::INFINITY;
        for work in [3_000_000, 9_000_000, 27_000_000, 81_000_000, 243_000_000, 729_000_000] {
            let found = solve(&smooth, 4, &sparsity, work);
            check(&found, &sparsity, &smooth);
            assert!(found.objective <= last);
            last = found.objective;
        }
        let options = Options::default().with_max_work(QUICK);
        let [one, two] = [1, 3].map(|t| solve_from(&smooth, 4, &sparsity, None, &options, t).unwrap());
        assert_eq!(one.x, two.x);
    }
}

#[test]
fn no_worse_than_the_start() {
    let smooth = covariance(16, 5);
    let sparsity = Sparsity::new(Cardinality::Total(9));
    let good = solve(&smooth, 3, &sparsity, QUICK);
    for work in [0, 1_000_000] {
        let options = Options::default().with_max_work(work);
        let again = solve_from(&smooth, 3, &sparsity, Some(good.x.clone()), &options, 1).unwrap();
        assert!(again.objective <= good.objective);
        // A start beyond the limit is cut to it.
        let dense = start::random(16, 3, 1);
        let cut = solve_from(&smooth, 3, &sparsity, Some(dense), &options, 1).unwrap();
        check(&cut, &sparsity, &smooth);
    }
}

/// A correlation matrix of groups of (nearly) the same feature: the bound tr ≤ Σ k_t is attained.
#[test]
fn groups_of_collinear_features_are_found() {
    let n = 60;
    let factors = data(100, 12, 2);
    let noise = data(100, n, 3);
    for (size, tolerance) in [(0.0, 1e-12), (1e-4, 1e-6)] {
        let a = Array2::from_shape_fn((100, n), |(i, j)| factors[[i, (7 * j) % 12]] + size * noise[[i, j]]);
        let norms = a.map_axis(ndarray::Axis(0), |column| column.dot(&column).sqrt());
        let smooth = Quadratic::from_data((&a / &norms).view()).unwrap();
        for cardinality in [Cardinality::Total(15), Cardinality::Columns(vec![5; 3])] {
            let sparsity = Sparsity::new(cardinality);
            let found = solve(&smooth, 3, &sparsity, QUICK);
            check(&found, &sparsity, &smooth);
            assert!(-2.0 * found.objective >= 15.0 * (1.0 - tolerance), "{}", found.objective);
        }
    }
}

/// f need not be PCA: a linear term and weights of the columns; and data without a matrix C.
#[test]
fn other_quadratics() {
    let (n, r) = (12, 3);
    let c = covariance(n, 4).matrix().to_owned();
    let linear = start::random(n, r, 8) * 3.0;
    let weights = Array2::from_diag(&ndarray::array![3.0, 2.0, 1.0]);
    let sparsity = Sparsity::new(Cardinality::Columns(vec![4, 3, 2]));
    for linear in [None, Some(linear)] {
        let smooth = Quadratic::new(c.clone(), linear, Some(weights.clone())).unwrap();
        check(&solve(&smooth, r, &sparsity, QUICK), &sparsity, &smooth);
    }
    let mut coupled = weights;
    coupled[[0, 1]] = 1.0;
    coupled[[1, 0]] = 1.0;
    let smooth = Quadratic::new(c, None, Some(coupled)).unwrap();
    let refused = solve_from(&smooth, r, &sparsity, None, &Options::default(), 1);
    assert!(refused.unwrap_err().to_string().contains('D'));

    let n = 1500;
    let a = data(20, n, 6);
    let smooth = GramQuadratic::new(DenseColumns::new(a.view()).unwrap(), -1.0, None).unwrap();
    let found = solve(&smooth, r, &sparsity, QUICK);
    check(&found, &sparsity, &smooth);
    let none = solve(&smooth, r, &sparsity, 0);
    assert!(found.objective < none.objective);
}

/// Matrices of one value, of zeros and of any size: no rule depends on the scale of f.
#[test]
fn constant_and_large_matrices() {
    for (value, scale) in [(0.0, 1.0), (1.0, 1.0), (1.0, 1e90), (1.0, 1e-90)] {
        let c = Array2::from_elem((7, 7), -value * scale);
        let smooth = Quadratic::new(c, None, None).unwrap();
        for nonnegative in [false, true] {
            let sparsity = Sparsity::new(Cardinality::Columns(vec![3, 1, 2])).with_nonnegative(nonnegative);
            check(&solve(&smooth, 3, &sparsity, 10_000_000), &sparsity, &smooth);
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let smooth = covariance(5, 1);
    let columns = |counts: &[usize]| Sparsity::new(Cardinality::Columns(counts.to_vec()));
    let all = |rows: std::ops::Range<usize>, t: usize| rows.map(|i| (i, t)).collect::<Vec<_>>();
    let cases = [
        ("cardinality", Sparsity::new(Cardinality::Total(1))),
        ("cardinality", Sparsity::new(Cardinality::Total(11))),
        ("cardinality", columns(&[1])),
        ("cardinality", columns(&[0, 1])),
        ("cardinality", columns(&[6, 1])),
        ("exclude", columns(&[1, 1]).with_exclude(vec![(5, 0)])),
        ("include", columns(&[1, 1]).with_include(vec![(0, 2)])),
        ("include", columns(&[1, 1]).with_include(vec![(0, 0), (1, 0)])),
        ("include", columns(&[1, 1]).with_include(vec![(0, 0)]).with_exclude(vec![(0, 0)])),
        ("include", columns(&[2, 2]).with_nonnegative(true).with_include(vec![(0, 0), (0, 1)])),
        // No row is left for column 1; two columns have one row between them; the same by what is included.
        ("cardinality", columns(&[2, 2]).with_exclude(all(0..5, 1))),
        ("cardinality", columns(&[2, 2]).with_exclude([all(1..5, 0), all(1..5, 1)].concat())),
        ("cardinality", columns(&[1, 1]).with_include(vec![(0, 0), (0, 1)])),
        ("cardinality", Sparsity::new(Cardinality::Total(2)).with_include(vec![(0, 0), (0, 1)])),
    ];
    for (name, sparsity) in cases {
        let refused = solve_from(&smooth, 2, &sparsity, None, &Options::default().with_max_work(0), 1);
        let message = refused.unwrap_err().to_string();
        assert!(message.contains(name), "{message}, {sparsity:?}");
    }
    let fine = columns(&[2, 2]);
    let twice = start::identity(5, 2) * 2.0;
    let options = Options::default();
    assert!(solve_from(&smooth, 2, &fine, Some(twice), &options, 1).is_err());
    assert!(solve_from(&smooth, 2, &fine, Some(start::identity(4, 2)), &options, 1).is_err());
    assert!(solve_from(&smooth, 2, &fine, None, &options.with_max_time(f64::NAN), 1).is_err());
    let mixed = Signature::new(&[1, 1, 1, -1, -1]).unwrap();
    let problem = Problem::new(&smooth, &Penalty::NONE, &mixed, 2).unwrap();
    assert!(problem.with_limit(&Limit::Entries(fine)).is_err());
}

/// Stops at the second record.
struct Impatient(usize);

impl Monitor for Impatient {
    fn record(&mut self, _: &Record, _: ndarray::ArrayView2<'_, f64>) -> Control {
        self.0 += 1;
        if self.0 > 1 { Control::Stop } else { Control::Continue }
    }
}

#[test]
fn limits_targets_and_monitors_end_a_search() {
    let smooth = covariance(20, 9);
    let sparsity = Sparsity::new(Cardinality::Columns(vec![4, 4, 4]));
    let none = Options::default().with_max_time(0.0);
    let ended = solve_from(&smooth, 3, &sparsity, None, &none, 1).unwrap();
    check(&ended, &sparsity, &smooth);
    assert_eq!(ended.status, Status::MaxTime);
    let target = Options::default().with_target(0.999 * solve(&smooth, 3, &sparsity, QUICK).objective);
    let reached = solve_from(&smooth, 3, &sparsity, None, &target, 1).unwrap();
    assert_eq!(reached.status, Status::Target);
    assert!(reached.objective <= target.target.unwrap());
    let signature = Signature::stiefel(20);
    let limit = Limit::Entries(sparsity.clone());
    let problem = Problem::new(&smooth, &Penalty::NONE, &signature, 3).unwrap();
    let problem = problem.with_limit(&limit).unwrap();
    let threads = Threads::serial();
    let stopped = minimize_auto(&problem, None, &Auto::default(), &threads, &mut Impatient(0));
    let stopped = stopped.unwrap().solution;
    check(&stopped, &sparsity, &smooth);
    assert_eq!(stopped.status, Status::Interrupted);
}

#[test]
fn a_certificate_under_a_limit_looks_at_no_pair() {
    let smooth = covariance(12, 3);
    let signature = Signature::stiefel(12);
    let threads = Threads::serial();
    for limit in [Limit::Entries(Sparsity::new(Cardinality::Total(6))), Limit::Rows(RowSparsity::Count(4))] {
        let problem = Problem::new(&smooth, &Penalty::NONE, &signature, 3).unwrap();
        let problem = problem.with_limit(&limit).unwrap();
        let found = minimize_auto(&problem, None, &Auto::default(), &threads, &mut Unwatched);
        let found = found.unwrap().solution;
        let certificate = certify(&problem, found.x.view(), &threads).unwrap();
        assert_eq!((certificate.pairs, certificate.optimum), (0, None));
        assert!(certificate.block2_gap.is_nan());
        assert_eq!(certificate.objective, found.objective);
    }
}

fn solve_rows(smooth: &Quadratic, r: usize, sparsity: RowSparsity, work: u64) -> Solution {
    let signature = Signature::stiefel(smooth.rows());
    let limit = Limit::Rows(sparsity);
    let problem = Problem::new(smooth, &Penalty::NONE, &signature, r).unwrap();
    let problem = problem.with_limit(&limit).unwrap();
    let auto = Auto::default().with_options(Options::default().with_max_work(work));
    let threads = Threads::serial();
    minimize_auto(&problem, None, &auto, &threads, &mut Unwatched).unwrap().solution
}

fn rows_of(x: &Array2<f64>) -> usize {
    x.outer_iter().filter(|row| row.iter().any(|&v| v != 0.0)).count()
}

#[test]
fn rows_are_the_best_of_all_sets() {
    for seed in 0..5 {
        let (n, r) = (10, 3);
        let smooth = covariance(n, 40 + seed);
        let lambda = 0.05 * smooth.matrix()[[4, 4]].abs();
        let mut least = f64::INFINITY;
        for k in r..=n {
            let all = subsets(n, k);
            let best = all.iter().map(|rows| smallest(smooth.matrix(), rows, r)).fold(f64::INFINITY, f64::min);
            least = least.min(best + lambda * k as f64);
            let found = solve_rows(&smooth, r, RowSparsity::Count(k), 30_000_000);
            assert!((found.objective - best).abs() <= 1e-12 * best.abs(), "{seed}, {k}");
            assert!(rows_of(&found.x) <= k && found.feasibility < 1e-12);
        }
        let found = solve_rows(&smooth, r, RowSparsity::Penalty(lambda), 60_000_000);
        assert!((found.objective - least).abs() <= 1e-12 * least.abs(), "{seed}");
        let penalty = lambda * rows_of(&found.x) as f64;
        assert!((found.penalty_value - penalty).abs() <= 1e-12 * penalty);
        assert!((found.objective - found.smooth_value - penalty).abs() <= 1e-12 * penalty);
    }
}

#[test]
fn rows_with_more_work_are_never_worse() {
    let smooth = covariance(60, 77);
    let mut last = f64::INFINITY;
    for work in [0, 1_000_000, 10_000_000, 100_000_000, 300_000_000] {
        let found = solve_rows(&smooth, 4, RowSparsity::Count(17), work);
        assert!(found.objective <= last && rows_of(&found.x) <= 17);
        last = found.objective;
    }
    let signature = Signature::stiefel(60);
    let problem = Problem::new(&smooth, &Penalty::NONE, &signature, 4).unwrap();
    for sparsity in
        [RowSparsity::Count(3), RowSparsity::Count(61), RowSparsity::Penalty(-1.0), RowSparsity::Penalty(f64::NAN)]
    {
        assert!(problem.with_limit(&Limit::Rows(sparsity)).is_err());
    }
}
