//! Whatever a public function is given, it answers: with an error, or with what its documentation says.

use ndarray::{Array1, Array2, array};
use orthobcd::finite_sum::{FiniteSumOptions, Logistic, SampledGram, minimize_finite_sum};
use orthobcd::penalty::Penalty;
use orthobcd::search::{top_diagonal, varimax};
use orthobcd::ultrahyperbolic::{Pseudohyperboloid, StructuralProbe, Targets};
use orthobcd::{
    Auto, DenseColumns, Factor, GramQuadratic, Objective, Options, Problem, Quadratic, QuadraticForm, Signature,
    SparseColumns, Threads, Unwatched, basis_factorization, certificate, certify, connecting_factorization, constraint,
    drift, linalg, minimize, minimize_auto, project_onto_pattern, start,
};

fn matrix(n: usize, r: usize, seed: u64) -> Array2<f64> {
    // Entries of a square orthogonal matrix: as good as any.
    start::random(n.max(r), n.max(r), seed).slice(ndarray::s![..n, ..r]).to_owned()
}

fn symmetric(n: usize) -> Array2<f64> {
    let a = matrix(n, n, 3);
    &a + &a.t()
}

#[test]
fn broken_sparse_columns_are_refused() {
    let build = |samples, starts: &[usize], indices: &[u32], values: &[f64]| {
        SparseColumns::new(samples, starts.to_vec(), indices.to_vec(), values.to_vec())
    };
    assert!(build(4, &[0, 1, 2, 3], &[0, 1, 3], &[1.0; 3]).is_ok());
    for (samples, starts, indices, values) in [
        (4, vec![0, 9, 2, 3], vec![0, 1, 3], vec![1.0; 3]),
        (4, vec![0, 2, 1, 3], vec![0, 1, 3], vec![1.0; 3]),
        (4, vec![1, 1, 2, 3], vec![0, 1, 3], vec![1.0; 3]),
        (4, vec![0, 1, 2, 2], vec![0, 1, 3], vec![1.0; 3]),
        (4, vec![0], vec![], vec![]),
        (4, vec![], vec![], vec![]),
        (3, vec![0, 1, 2, 3], vec![0, 1, 3], vec![1.0; 3]),
        (0, vec![0, 0], vec![], vec![]),
        (usize::MAX, vec![0, 1], vec![0], vec![1.0]),
        (u32::MAX as usize, vec![0, 1], vec![0], vec![1.0]),
        // Out of order, and twice.
        (4, vec![0, 3, 3, 3], vec![1, 0, 3], vec![1.0; 3]),
        (4, vec![0, 3, 3, 3], vec![0, 0, 3], vec![1.0; 3]),
        (4, vec![0, 1, 2, 3], vec![0, 1, 3], vec![1.0; 2]),
        (4, vec![0, 1, 2, 3], vec![0, 1, 3], vec![f64::NAN; 3]),
        (4, vec![0, 1, 2, 3], vec![0, 1, 3], vec![1e160; 3]),
        (4, vec![0, 1, 2, 3], vec![0, 1, 3], vec![1e-160; 3]),
    ] {
        let answer = build(samples, &starts, &indices, &values);
        assert!(answer.is_err(), "{samples} {starts:?} {indices:?} {values:?}");
    }
}

#[test]
fn one_entry_that_differs_from_its_mirror_image_is_seen() {
    // Squares of 64 rows and columns are compared: within one, across two, in the last and incomplete one.
    let n = 130;
    let c = symmetric(n);
    assert!(Quadratic::new(c.view(), None, None).is_ok());
    for (i, j) in [(0, 1), (1, 0), (63, 64), (64, 63), (5, 129), (129, 5), (128, 129), (129, 128)] {
        let mut c = c.clone();
        c[[i, j]] += 1e-15;
        assert!(Quadratic::new(c, None, None).is_err(), "{i} {j}");
    }
}

#[test]
fn sizes_whose_products_overflow_or_vanish_are_refused() {
    let c = symmetric(5);
    let linear = matrix(5, 2, 1);
    for size in [1e-300, 1e-130, 1e130, 1e300, f64::INFINITY, f64::NAN] {
        assert!(Quadratic::new(&c * size, None, None).is_err(), "C {size}");
        assert!(Quadratic::from_data(linear.mapv(|v| v * size).view()).is_err(), "A {size}");
        assert!(DenseColumns::new(linear.mapv(|v| v * size).view()).is_err(), "A {size}");
        let raw = DenseColumns::from_transposed(linear.mapv(|v| v * size));
        assert!(raw.is_err(), "A {size}");
        let data = DenseColumns::new(linear.view()).unwrap();
        assert!(GramQuadratic::new(data, size, None).is_err(), "scale {size}");
    }
    for size in [1e130, 1e300, f64::INFINITY, f64::NAN] {
        let scaled = linear.mapv(|v| v * size);
        assert!(Quadratic::new(c.clone(), Some(scaled), None).is_err(), "linear {size}");
        let metric = Array2::eye(2) * size;
        assert!(Quadratic::new(c.clone(), None, Some(metric)).is_err(), "D {size}");
        let smooth = Quadratic::new(c.clone(), None, None).unwrap();
        let signature = Signature::stiefel(5);
        let weighed = |penalty| Problem::new(&smooth, &penalty, &signature, 2).is_err();
        let mut weights = Array2::ones((5, 2));
        weights[[3, 1]] = size;
        assert!(weighed(Penalty::l1(size)));
        assert!(weighed(Penalty::l1(weights.clone())));
        assert!(weighed(Penalty::l0(size)));
        assert!(weighed(Penalty::l0(weights)));
    }
    // Products of weights that small are lost, and slow.
    let (smooth, signature) = (Quadratic::new(c.clone(), None, None).unwrap(), Signature::stiefel(5));
    for (lambda, allowed) in [(0.0, true), (1e-120, true), (9e-121, false), (1e-320, false)] {
        let penalty = Penalty::l0(lambda);
        assert_eq!(Problem::new(&smooth, &penalty, &signature, 2).is_ok(), allowed);
    }
    // What is documented is accepted, and valued.
    let x = start::random(5, 2, 0);
    for size in [0.0, 1e-119, 1.0, 1e119] {
        let smooth = Quadratic::new(&c * size, None, None).unwrap();
        let value = smooth.value(x.view(), &Threads::serial());
        assert!(value.is_finite() && (value != 0.0) == (size != 0.0));
    }
    for size in [0.0, 1e-49, 1.0, 1e49] {
        let scaled = linear.mapv(|v| v * size);
        let data = DenseColumns::new(scaled.view()).unwrap();
        let smooth = GramQuadratic::new(data, -1.0, None).unwrap();
        let value = smooth.value(matrix(2, 2, 0).view(), &Threads::serial());
        assert!(value.is_finite() && (value != 0.0) == (size != 0.0));
    }
    // Together they leave the range, each of them alone does not.
    let metric = Array2::eye(2) * 1e80;
    assert!(Quadratic::new(&c * 1e80, None, Some(metric)).is_err());
}

#[test]
fn starts_of_every_shape() {
    let threads = Threads::serial();
    let smooth = Quadratic::new(symmetric(3), None, None).unwrap();
    for n in 0..4 {
        for r in 0..6 {
            assert_eq!(start::identity(n, r).dim(), (n, r));
            assert_eq!(start::random(n, r, 1).dim(), (n, r.min(n)));
            let x = start::partition(n, r, 1);
            assert_eq!(x.dim(), (n, r));
            assert!(x.iter().all(|v| v.is_finite()));
            let rounded = start::round_to_partition(matrix(n, r, 2).view());
            assert!(rounded.iter().all(|v| v.is_finite() && *v >= 0.0));
            for project in [false, true] {
                for nonnegative in [false, true] {
                    let answer = start::given(&matrix(n, r, 2), nonnegative, project);
                    let shaped = (1..=n).contains(&r);
                    let expected = shaped && (project || is_feasible(n, r, nonnegative));
                    assert_eq!(answer.is_ok(), expected, "{n} {r} {nonnegative} {project}");
                }
            }
        }
    }
    for r in 0..6 {
        assert_eq!(start::spectral(&smooth, r, &threads).dim(), (3, r.min(3)));
        assert_eq!(top_diagonal(&smooth, r).dim(), (3, r));
    }
    assert!(start::given(&Array2::from_elem((3, 2), f64::NAN), false, true).is_err());
}

/// Whether the test's own matrix happens to be feasible.
fn is_feasible(n: usize, r: usize, nonnegative: bool) -> bool {
    let x = matrix(n, r, 2);
    let gap = drift(x.view(), &Signature::stiefel(n), Array2::eye(r).view());
    gap <= start::START_TOLERANCE * (r as f64).sqrt() && !(nonnegative && x.iter().any(|v| *v < 0.0))
}

#[test]
fn shapes_that_do_not_fit_are_answered() {
    let empty = Signature::stiefel(0);
    assert_eq!(empty.sign(0), 1.0);
    let signature = Signature::new(&[1, -1, 1]).unwrap();
    for n in 0..5 {
        for r in 0..5 {
            let x = matrix(n, r, 4);
            for signature in [&empty, &signature, &Signature::stiefel(n)] {
                assert_eq!(constraint(x.view(), signature).dim(), (r, r));
                let wrong = Array2::eye(r + 1);
                assert!(drift(x.view(), signature, wrong.view()).is_infinite());
                assert_eq!(project_onto_pattern(&x, signature, wrong.view()), x);
                certificate::stationarity(x.view(), x.view(), signature);
                assert!(certificate::stationarity(x.view(), wrong.view(), signature).is_nan());
                assert!(certificate::criticality(&Penalty::NONE, x.view(), wrong.view(), signature).is_nan());
                let answer = start::hyperbolic_cs(x.view(), signature);
                assert!(answer.is_err() || (n, r) == (signature.len(), signature.len()));
            }
            linalg::svd(x.view());
            linalg::polar_factor(x.view());
            linalg::orthonormal_factor(x.view());
            assert_eq!(linalg::complete_basis(x.view()).dim(), (n, n));
            let (values, _) = linalg::symmetric_eigen(x.view());
            assert_eq!(values.len(), n);
            varimax(x.view());
            assert_eq!(basis_factorization(x.view()).is_ok(), n == r && n >= 2);
            let _ = connecting_factorization(x.view(), x.view());
            let _ = connecting_factorization(x.view(), matrix(n, r + 1, 0).view());
            let mut moved = x.clone();
            Factor { i: 1, j: 7, v: [[0.0, 1.0], [1.0, 0.0]] }.apply(&mut moved);
            assert_eq!(moved, x);
        }
    }
    let nan = Array2::from_elem((3, 3), f64::NAN);
    assert!(linalg::symmetric_eigen(nan.view()).0.iter().all(|v| v.is_nan()));
    assert!(linalg::svd(nan.view()).1.iter().all(|v| v.is_nan()));
    linalg::orthonormal_factor(nan.view());
    linalg::complete_basis(nan.view());
    assert!(basis_factorization(nan.view()).is_err());
    assert!(connecting_factorization(nan.view(), nan.view()).is_err());
    assert!(start::hyperbolic_cs(nan.view(), &signature).is_err());
    let x = start::random_j_orthogonal(&signature, 0.5, 1).unwrap();
    let mut factors = start::hyperbolic_cs(x.view(), &signature).unwrap();
    factors.s = Array1::zeros(3);
    assert!(factors.compose(&signature).is_err());
    factors.v2 = Array2::zeros((0, 2));
    assert!(factors.compose(&signature).is_err());
}

fn with(penalty: &Penalty, signature: &Signature, components: usize, check: impl Fn(&Problem<'_>)) {
    let smooth = Quadratic::new(symmetric(4), None, None).unwrap();
    check(&Problem::new(&smooth, penalty, signature, components).unwrap());
}

#[test]
fn solves_refuse_bad_starts() {
    let threads = Threads::serial();
    let options = Options::default();
    let flat = Signature::stiefel(4);
    let nan = Array2::from_elem((4, 2), f64::NAN);
    with(&Penalty::NONNEGATIVE, &flat, 2, |problem| {
        for x0 in [-start::identity(4, 2), nan.clone(), matrix(3, 2, 0), matrix(4, 3, 0)] {
            let solved = minimize(problem, x0.clone(), &options, &threads, &mut Unwatched);
            assert!(solved.is_err(), "{x0}");
            let auto = Auto::default();
            let solved = minimize_auto(problem, Some(x0.clone()), &auto, &threads, &mut Unwatched);
            assert!(solved.is_err(), "{x0}");
            assert!(x0.dim() == (4, 2) || problem.objective(x0.view(), &threads).is_nan());
            assert!(x0.dim() == (4, 2) || certify(problem, x0.view(), &threads).is_err());
            let gap = certificate::row_gap(problem, x0.view(), &threads);
            assert!(x0.dim() == (4, 2) || gap.decrease.is_nan());
            assert!(x0.dim() == (4, 2) || certificate::column_gap(problem, &x0, &threads).is_none());
        }
    });
    let smooth = Quadratic::new(symmetric(4), None, None).unwrap();
    for r in [0, 5] {
        assert!(Problem::new(&smooth, &Penalty::l0(1.0), &flat, r).is_err());
    }
}

#[test]
fn sums_over_data_rows() {
    let huge = matrix(6, 3, 1).mapv(|v| v * 1e160);
    let labels = Array1::ones(6);
    assert!(SampledGram::new(huge.clone(), 1.0).is_err());
    assert!(SampledGram::new(matrix(6, 3, 1), f64::NAN).is_err());
    assert!(Logistic::new(huge.clone(), matrix(6, 2, 2), labels.clone()).is_err());
    assert!(Logistic::new(matrix(6, 3, 1), huge, labels.clone()).is_err());
    let big = |a: Array2<f64>| a.mapv(|v| v * 1e49);
    // Each of them is fine, their products are not.
    assert!(Logistic::new(big(matrix(6, 3, 1)), big(matrix(6, 3, 2)), labels).is_err());
    let sum = SampledGram::new(matrix(6, 3, 1), 1.0).unwrap();
    let negative = -start::identity(3, 2);
    let signature = Signature::stiefel(3);
    let options = FiniteSumOptions::default();
    let threads = Threads::serial();
    let solved =
        minimize_finite_sum(&sum, &Penalty::NONNEGATIVE, &signature, negative, &options, &threads, &mut Unwatched);
    assert!(solved.is_err());
}

#[test]
fn the_probe() {
    let space = Pseudohyperboloid::new(&Signature::new(&[1, -1]).unwrap(), 1.0).unwrap();
    let d = array![[1.0, 2.0], [0.5, -1.0], [2.0, 0.3]];
    let build = |d: Array2<f64>, targets| {
        let threads = Threads::serial();
        StructuralProbe::new(d, targets, space.clone(), 1.0, threads)
    };
    assert!(build(d.mapv(|v| v * 1e160), Targets::Euclidean).is_err());
    assert!(build(d.clone(), Targets::Matrix(Array2::from_elem((3, 3), 1e160))).is_err());
    let probe = build(d, Targets::Euclidean).unwrap();
    for shape in [(0, 0), (2, 1), (3, 3)] {
        let x = Array2::zeros(shape);
        let mut gradient = Array2::zeros(x.dim());
        assert!(probe.value_and_gradient(x.view(), gradient.view_mut(), &Threads::serial()).is_nan());
        assert!(probe.mean_distances(x.view()).0.is_nan());
    }
}

/// Centred in so many digits that nothing is lost.
fn centred(a: &Array2<f64>) -> Array2<f64> {
    let mut out = a.clone();
    for mut column in out.columns_mut() {
        let m = column.len() as f64;
        let mean = column.sum() / m;
        column.mapv_inplace(|v| v - mean);
        let rest = column.sum() / m;
        column.mapv_inplace(|v| v - rest);
    }
    out
}

#[test]
fn large_means_cancel_nothing() {
    let threads = Threads::serial();
    let (m, n) = (20, 6);
    let mut a = matrix(m, n, 9).mapv(|v| 4.0 * v);
    for ((i, j), v) in a.indexed_iter_mut() {
        // Column j keeps a share of its entries; the first two are far from zero.
        if j >= 2 && (i * 7 + j * 3) % 6 < j {
            *v = 0.0;
        }
        if j < 2 {
            *v += 1e8;
        }
    }
    let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for column in a.columns() {
        for (i, &v) in column.iter().enumerate().filter(|(_, v)| **v != 0.0) {
            indices.push(i as u32);
            values.push(v);
        }
        starts.push(values.len());
    }
    let mean = a.mean_axis(ndarray::Axis(0)).unwrap();
    let exact = centred(&a);
    // The means are rounded to 1e-8, which counts twice over: 1e-16.
    let dense = DenseColumns::new(a.view()).unwrap();
    let sparse = SparseColumns::new(m, starts, indices, values).unwrap();
    for smooth in [
        GramQuadratic::new(dense, -1.0, Some(mean.clone())).unwrap(),
        GramQuadratic::new(sparse, -1.0, Some(mean)).unwrap(),
    ] {
        let c = -exact.t().dot(&exact);
        let size = c.diag().iter().fold(0.0f64, |s, v| s.max(v.abs()));
        for (k, value) in smooth.diagonal().iter().enumerate() {
            assert!((value - c[[k, k]]).abs() < 1e-12 * size);
        }
        let whole = smooth.apply(Array2::eye(n).view(), &threads);
        assert!((&whole - &c).iter().all(|v| v.abs() < 1e-7 * size), "{whole} {c}");
        let x = start::random(n, 3, 5);
        let value = -0.5 * exact.dot(&x).iter().map(|v| v * v).sum::<f64>();
        assert!((smooth.value(x.view(), &threads) - value).abs() < 1e-12 * value.abs());
        let solution = {
            let (penalty, signature) = (Penalty::l1(0.5), Signature::stiefel(n));
            let problem = Problem::new(&smooth, &penalty, &signature, 3).unwrap();
            minimize(&problem, x, &Options::default(), &threads, &mut Unwatched).unwrap()
        };
        let value = -0.5 * exact.dot(&solution.x).iter().map(|v| v * v).sum::<f64>();
        assert!((solution.smooth_value - value).abs() < 1e-12 * value.abs());
        assert!(solution.history.windows(2).all(|w| w[1].objective <= w[0].objective));
    }
}
