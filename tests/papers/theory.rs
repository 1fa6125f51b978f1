//! What the papers prove, checked: sufficient decrease (Theorem 4.2a), Lemmas 2.1 and 2.2, the
//! 2×2 examples of appendix C.1 (with the corrections of the appendix's text), the closed form of
//! WSS-OR, and that neither the Jacobi update nor a million updates ever ascend or drift.

use std::f64::consts::TAU;

use ndarray::{Array2, ArrayView1, ArrayView2, Axis, array, s};
use orthobcd::objective::Moved;
use orthobcd::pair::{CirclePair, PairModel, Scratch, Sym2};
use orthobcd::penalty::Penalty;
use orthobcd::penalty::solve_on_circle;
use orthobcd::working_set::{guaranteed_decrease, violation};
use orthobcd::{
    Control, DenseColumns, GramQuadratic, Monitor, Objective, Options, Problem, Quadratic, QuadraticForm, Record,
    Signature, Solution, Threads, Unwatched, Update, WorkingSet, linalg, minimize, start,
};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::common::normal;
use crate::common::observed::{Observed, Observer, assign};

fn gauss(rng: &mut Xoshiro256PlusPlus, m: usize, n: usize) -> Array2<f64> {
    Array2::from_shape_fn((m, n), |_| normal(rng))
}

fn norm(a: &Array2<f64>) -> f64 {
    a.iter().map(|v| v * v).sum::<f64>().sqrt()
}

fn rows(x: &Array2<f64>, i: usize, j: usize) -> Array2<f64> {
    ndarray::stack![ndarray::Axis(0), x.row(i), x.row(j)]
}

fn sym(a: &Array2<f64>) -> Sym2 {
    Sym2 { d0: a[[0, 0]], d1: a[[1, 1]], o: a[[0, 1]] }
}

/// X with two rows replaced.
fn with_rows(x: &Array2<f64>, i: usize, j: usize, z: &Array2<f64>) -> Array2<f64> {
    let mut out = x.clone();
    out.row_mut(i).assign(&z.row(0));
    out.row_mut(j).assign(&z.row(1));
    out
}

/// The pair problem of rows (i, j) with curvature `m`, `s`: solved, applied; (X⁺, V).
fn step(
    penalty: &Penalty,
    x: &Array2<f64>,
    gradient: &Array2<f64>,
    (i, j): (usize, usize),
    (m, s): (Sym2, Sym2),
    alpha: f64,
) -> (Array2<f64>, Array2<f64>) {
    let z = rows(x, i, j);
    let gz = rows(gradient, i, j).dot(&z.t());
    let model = PairModel { gz: [[gz[[0, 0]], gz[[0, 1]]], [gz[[1, 0]], gz[[1, 1]]]], m, s, proximal: alpha };
    let (rotation, reflection) = model.branches();
    let mut scratch = Scratch::new(x.ncols());
    let best = solve_on_circle(
        penalty,
        &CirclePair {
            rows: (i, j),
            x: z.row(0).as_slice().unwrap(),
            y: z.row(1).as_slice().unwrap(),
            rotation,
            reflection: Some(reflection),
        },
        &mut scratch,
    );
    let v = best.turn.matrix();
    let v = array![[v[0][0], v[0][1]], [v[1][0], v[1][1]]];
    let mut new = v.dot(&z);
    for &k in &scratch.vanishing {
        let k = k as usize;
        let row = usize::from(new[[0, k]].abs() >= new[[1, k]].abs());
        new[[row, k]] = 0.0;
    }
    for mut row in new.outer_iter_mut() {
        penalty.tidy(row.as_slice_mut().unwrap());
    }
    (with_rows(x, i, j, &new), v)
}

fn sufficient_decrease(penalty: &Penalty, nonnegative: bool) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let threads = Threads::serial();
    let (n, r) = (9, 3);
    for trial in 0..400 {
        let b = gauss(&mut rng, n, n);
        // Indefinite, concave and convex curvature in turn.
        let c = match trial % 3 {
            0 => &b + &b.t(),
            1 => -b.t().dot(&b),
            _ => b.t().dot(&b),
        };
        let c = (&c + &c.t()) * 0.5;
        let smooth = Quadratic::new(c.clone(), Some(gauss(&mut rng, n, r)), None).unwrap();
        let mut x = if nonnegative { start::partition(n, r, trial) } else { start::random(n, r, trial) };
        let (low, high) = smooth.hessian_bounds();
        let lipschitz = high.max(-low);
        let value = |x: &Array2<f64>| smooth.value(x.view(), &threads) + penalty.value(x.view());
        for alpha in [0.0, 1e-5, 0.3, 20.0] {
            for curvature in 0..3 {
                let i = rng.random_range(0..n - 1);
                let j = rng.random_range(i + 1..n);
                let z = rows(&x, i, j);
                let block = array![[c[[i, i]], c[[i, j]]], [c[[j, i]], c[[j, j]]]];
                let (m, s) = (sym(&block), sym(&z.dot(&z.t())));
                let q = match curvature {
                    0 => (m, s),
                    1 => (Sym2::scalar(m.spectral_norm() * s.spectral_norm()), Sym2::scalar(1.0)),
                    _ => (Sym2::scalar(lipschitz), Sym2::scalar(1.0)),
                };
                let gradient = smooth.gradient(x.view(), &threads);
                let (next, v) = step(penalty, &x, &gradient, (i, j), q, alpha);
                let decrease = value(&x) - value(&next);
                let moved = norm(&(&v - &Array2::<f64>::eye(2)));
                let distance = norm(&(&next - &x));
                let rounding = 1e-12 * (value(&x).abs() + lipschitz + 1.0);
                assert!(
                    decrease >= 0.5 * alpha * moved * moved - rounding,
                    "alpha {alpha}, curvature {curvature}: decrease {decrease:e}, ‖V − I‖ {moved:e}"
                );
                assert!(moved >= distance - 1e-12);
                x = next;
            }
        }
        let drift = norm(&(x.t().dot(&x) - Array2::<f64>::eye(r)));
        assert!(drift < 1e-13, "{drift:e}");
        assert!(!nonnegative || x.iter().all(|&v| v >= 0.0));
    }
}

#[test]
fn theorem_4_2a_sufficient_decrease() {
    sufficient_decrease(&Penalty::NONE, false);
    sufficient_decrease(&Penalty::l0(0.4), false);
    sufficient_decrease(&Penalty::l1(0.4), false);
    sufficient_decrease(&Penalty::NONNEGATIVE, true);
}

/// A random orthogonal 2×2 matrix of either branch.
fn orthogonal(rng: &mut Xoshiro256PlusPlus) -> Array2<f64> {
    let (s, c) = rng.random_range(0.0..TAU).sin_cos();
    let sign = if rng.random() { 1.0 } else { -1.0 };
    array![[c, s], [-sign * s, sign * c]]
}

#[test]
fn lemma_2_1_moving_two_rows_keeps_the_gram_matrix() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    for _ in 0..500 {
        // Any X, orthonormal or not.
        let x = gauss(&mut rng, 7, 3);
        let v = orthogonal(&mut rng);
        let next = with_rows(&x, 1, 4, &v.dot(&rows(&x, 1, 4)));
        assert!(norm(&(next.t().dot(&next) - x.t().dot(&x))) < 1e-13 * norm(&x).powi(2));
    }
}

#[test]
fn lemma_2_2_distances_in_terms_of_v() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let (n, r) = (6, 3);
    let eye = Array2::<f64>::eye(2);
    for trial in 0..500 {
        let x = start::random(n, r, trial);
        let (i, j) = (1, 4);
        let z = rows(&x, i, j);
        let v = orthogonal(&mut rng);
        let next = with_rows(&x, i, j, &v.dot(&z));
        let delta = &next - &x;
        let e = &v - &eye;
        // (a) with H = D ⊗ C: ½‖X⁺ − X‖²_H = ½ tr(C_BB E (Z D Zᵀ) Eᵀ).
        let c = gauss(&mut rng, n, n);
        let c = &c + &c.t();
        let d = gauss(&mut rng, r, r);
        let d = &d + &d.t();
        let left = 0.5 * (&delta * &c.dot(&delta).dot(&d)).sum();
        let block = array![[c[[i, i]], c[[i, j]]], [c[[j, i]], c[[j, j]]]];
        let zdz = z.dot(&d).dot(&z.t());
        let right = 0.5 * (&block.dot(&e).dot(&zdz) * &e).sum();
        assert!((left - right).abs() < 1e-12 * (1.0 + left.abs()));
        // The crate's model says the same.
        let model = PairModel { m: sym(&block), s: sym(&zdz), ..PairModel::default() };
        let change = model.change([[e[[0, 0]], e[[0, 1]]], [e[[1, 0]], e[[1, 1]]]]);
        assert!((change.0 - right).abs() < 1e-12 * (1.0 + change.1));
        // (b) ½‖X⁺ − X‖² = ⟨I − V, ZZᵀ⟩.
        let half = 0.5 * norm(&delta).powi(2);
        assert!((half - ((&eye - &v) * z.dot(&z.t())).sum()).abs() < 1e-13);
        // (c) ½‖X⁺ − X‖² ≤ ½‖V − I‖² = ⟨I, I − V⟩.
        let bound = 0.5 * norm(&e).powi(2);
        assert!(half <= bound + 1e-14);
        assert!((bound - (2.0 - v[[0, 0]] - v[[1, 1]])).abs() < 1e-14);
    }
}

/// ‖V − A‖² + λ‖V‖₁ on the 2×2 orthogonal matrices, up to the constant ‖A‖² + 2.
fn solve_2x2(a: &Array2<f64>, lambda: f64, x0: Array2<f64>, alpha: f64) -> Solution {
    let smooth = Quadratic::new(Array2::zeros((2, 2)), Some(a * -2.0), None).unwrap();
    let penalty = Penalty::l1(lambda);
    let signature = Signature::stiefel(2);
    let problem = Problem::new(&smooth, &penalty, &signature, 2).unwrap();
    let options = Options::default().with_proximal(alpha).with_tol(0.0);
    minimize(&problem, x0, &options, &Threads::serial(), &mut Unwatched).unwrap()
}

fn value_2x2(v: &Array2<f64>, a: &Array2<f64>, lambda: f64) -> f64 {
    norm(&(v - a)).powi(2) + lambda * v.iter().map(|x| x.abs()).sum::<f64>()
}

/// (minimum over rotations, minimum over reflections, number of strict local minima) on a grid.
fn scan_2x2(a: &Array2<f64>, lambda: f64) -> (f64, f64, usize) {
    let n = 100_000;
    let mut least = [f64::INFINITY; 2];
    let mut minima = 0;
    for (branch, rotation) in [true, false].into_iter().enumerate() {
        let values: Vec<f64> = (0..n)
            .map(|i| {
                let (s, c) = (i as f64 * TAU / n as f64).sin_cos();
                let v = if rotation { array![[c, s], [-s, c]] } else { array![[-c, s], [s, c]] };
                value_2x2(&v, a, lambda)
            })
            .collect();
        for i in 0..n {
            least[branch] = least[branch].min(values[i]);
            let (left, right) = (values[(i + n - 1) % n], values[(i + 1) % n]);
            minima += usize::from(values[i] < left && values[i] <= right);
        }
    }
    (least[0], least[1], minima)
}

#[test]
fn appendix_c1_example_a_needs_the_reflection() {
    let a = array![[1.0, 0.0], [-1.0, -1.0]];
    let (rotation, reflection, _) = scan_2x2(&a, 0.0);
    assert!(reflection < rotation - 1.0, "{reflection} {rotation}");
    // From every start, rotations included, one pair solve reaches the global optimum: A has a
    // unique block-2 stationary point when α is small.
    for k in 0..64 {
        let (s, c) = (f64::from(k) * TAU / 64.0 + 0.01).sin_cos();
        for x0 in [array![[c, s], [-s, c]], array![[-c, s], [s, c]]] {
            for alpha in [0.0, 1e-5, 1.0] {
                let solution = solve_2x2(&a, 0.0, x0.clone(), alpha);
                let value = value_2x2(&solution.x, &a, 0.0);
                assert!((value - reflection).abs() < 1e-8, "{value} {reflection}");
            }
        }
    }
}

#[test]
fn appendix_c1_example_b_has_its_minimum_at_the_identity() {
    let b = array![[1.0, 0.0], [1.0, 2.0]];
    let (rotation, reflection, minima) = scan_2x2(&b, 5.0);
    assert!((rotation - 12.0).abs() < 1e-9 && (reflection - 16.0).abs() < 1e-9);
    assert_eq!(minima, 8, "4 on each branch, and as many maxima: 16 critical points");
    for k in 0..64 {
        let (s, c) = (f64::from(k) * TAU / 64.0 + 0.01).sin_cos();
        for x0 in [array![[c, s], [-s, c]], array![[-c, s], [s, c]]] {
            let solution = solve_2x2(&b, 5.0, x0, 1e-5);
            assert!(norm(&(&solution.x - &Array2::<f64>::eye(2))) < 1e-14);
            assert_eq!((solution.x[[0, 1]], solution.x[[1, 0]]), (0.0, 0.0));
        }
    }
}

#[test]
fn wss_or_is_the_nuclear_norm() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    for trial in 0..2_000 {
        let (n, r) = (6, 3);
        let x = start::random(n, r, trial);
        let gamma = gauss(&mut rng, n, r);
        let (lipschitz, alpha) = (rng.random_range(0.0..5.0), rng.random_range(0.0..0.1));
        let (i, j) = (rng.random_range(0..3), rng.random_range(3..6));
        let (z, g) = (rows(&x, i, j), rows(&gamma, i, j));
        let t = (&g - &(&z * lipschitz)).dot(&z.t()) - Array2::<f64>::eye(2) * alpha;
        let (_, singular, _) = linalg::svd(t.view());
        let expected = singular.sum() + t[[0, 0]] + t[[1, 1]];
        let gz = g.dot(&z.t());
        let products = [gz[[0, 0]], gz[[0, 1]], gz[[1, 0]], gz[[1, 1]]];
        let gram = z.dot(&z.t());
        let score = guaranteed_decrease(products, [gram[[0, 0]], gram[[0, 1]], gram[[1, 1]]], lipschitz, alpha);
        assert!((score - expected).abs() < 1e-12 * (1.0 + expected.abs()));
        // WSS-SV: S = XΓᵀ − ΓXᵀ.
        let skew = x.row(i).dot(&gamma.row(j)) - gamma.row(i).dot(&x.row(j));
        assert!((violation(products) - skew.abs()).abs() < 1e-13);
        // Appendix D.2: without a penalty a pair step lowers the scalar model by at least the score.
        let trace_min = -singular.sum() - (t[[0, 0]] + t[[1, 1]]);
        assert!(trace_min <= 1e-12);
    }
}

/// Checks every row of the history as it comes: feasible, never rising, and the tracked objective
/// equal to a fresh one.
struct Auditor<'a> {
    problem: &'a Problem<'a>,
    last: f64,
    rows: usize,
    worst_drift: f64,
    worst_error: f64,
    nonnegative: bool,
    /// L_f: what F is right relative to where f itself vanishes.
    curvature: f64,
}

impl<'a> Auditor<'a> {
    fn new(problem: &'a Problem<'a>, nonnegative: bool) -> Self {
        let (low, high) = problem.smooth().quadratic().unwrap().hessian_bounds();
        Self {
            curvature: high.max(-low),
            problem,
            last: f64::INFINITY,
            rows: 0,
            worst_drift: 0.0,
            worst_error: 0.0,
            nonnegative,
        }
    }
}

impl Monitor for Auditor<'_> {
    fn record(&mut self, record: &Record, x: ArrayView2<'_, f64>) -> Control {
        let drift = norm(&(x.t().dot(&x) - Array2::<f64>::eye(x.ncols())));
        let fresh = self.problem.objective(x, &Threads::serial());
        let size = self.problem.smooth().value(x, &Threads::serial()).abs()
            + self.problem.penalty().value(x).abs()
            + self.curvature;
        self.worst_drift = self.worst_drift.max(drift);
        self.worst_error = self.worst_error.max((fresh - record.objective).abs() / size);
        assert!(record.objective <= self.last, "the objective rose");
        assert!(!self.nonnegative || x.iter().all(|&v| v >= 0.0));
        self.last = record.objective;
        self.rows += 1;
        Control::Continue
    }
}

fn audit(smooth: &dyn Objective, penalty: &Penalty, x0: Array2<f64>, options: &Options, nonnegative: bool) -> Solution {
    let signature = Signature::stiefel(smooth.rows());
    let problem = Problem::new(smooth, penalty, &signature, x0.ncols()).unwrap();
    let mut auditor = Auditor::new(&problem, nonnegative);
    let solution = minimize(&problem, x0, options, &Threads::serial(), &mut auditor).unwrap();
    // How many rows are reported on the way depends on the clock; the start always is, and the end is looked at here.
    assert!(auditor.rows >= 1);
    let end = problem.objective(solution.x.view(), &Threads::serial());
    assert!((end - solution.objective).abs() <= 1e-9 * (end.abs() + auditor.curvature));
    assert!(solution.history.is_sorted_by(|a, b| a.objective >= b.objective));
    assert!(auditor.worst_drift <= 1e-12, "{:e}", auditor.worst_drift);
    assert!(auditor.worst_error <= 1e-9, "{:e}", auditor.worst_error);
    assert!(solution.feasibility <= 1e-12);
    let history = &solution.history;
    assert!(history.windows(2).all(|w| w[1].objective <= w[0].objective));
    solution
}

#[test]
fn jacobi_never_ascends() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
    for (seed, n) in [(0, 40), (1, 41)] {
        let b = gauss(&mut rng, n, n);
        // Rank one is where a bound taken from single pairs fails worst.
        let one = gauss(&mut rng, n, 1);
        let concave = -b.t().dot(&b);
        let concave = (&concave + &concave.t()) * 0.5;
        let convex = one.dot(&one.t()) * 10.0;
        let indefinite = &b + &b.t();
        for c in [concave, convex, indefinite] {
            let smooth = Quadratic::new(c, None, None).unwrap();
            for curvature in [orthobcd::Curvature::Exact, orthobcd::Curvature::Scalar] {
                let options = Options::default()
                    .with_update(Update::Jacobi)
                    .with_curvature(curvature)
                    .with_max_sweeps(20)
                    .with_tol(0.0)
                    .with_seed(seed);
                let random = || start::random(n, 4, seed);
                audit(&smooth, &Penalty::NONE, random(), &options, false);
                audit(&smooth, &Penalty::l0(0.5), random(), &options, false);
                audit(&smooth, &Penalty::l1(0.5), random(), &options, false);
                let parts = start::partition(n, 4, seed);
                audit(&smooth, &Penalty::NONNEGATIVE, parts, &options, true);
            }
        }
    }
}

#[test]
fn a_million_updates_do_not_drift() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let (n, r) = (1000, 20);
    let a = gauss(&mut rng, 200, n);
    let quadratic = Quadratic::from_data(a.view()).unwrap();
    let million = |working_set| Options::default().with_working_set(working_set).with_max_sweeps(3).with_tol(0.0);
    let penalty = Penalty::l1(0.2);
    let x0 = start::random(n, r, 0);
    let solution = audit(&quadratic, &penalty, x0.clone(), &million(WorkingSet::Tiled), false);
    assert!(solution.iterations >= 1_000_000 && solution.updates > 100_000);
    let gram = GramQuadratic::new(DenseColumns::new(a.slice(s![..50, ..])).unwrap(), -1.0, None).unwrap();
    let solution = audit(&gram, &penalty, x0, &million(WorkingSet::Tiled), false);
    assert!(solution.iterations >= 1_000_000 && solution.updates > 100_000);
    let parts = start::partition(n, r, 0);
    let options = million(WorkingSet::Random);
    let solution = audit(&quadratic, &Penalty::NONNEGATIVE, parts, &options, true);
    assert!(solution.iterations >= 1_000_000);
}

/// Its own books of F = h − ½‖A X‖²: after every move that the solver commits, F and XᵀX are followed from A
/// and the rows alone, and asserted on.
struct Witness<'a> {
    a: Array2<f64>,
    penalty: &'a Penalty,
    nonnegative: bool,
    w: Array2<f64>,
    gram: Array2<f64>,
    h: f64,
    last: f64,
    moves: u64,
}

impl Witness<'_> {
    fn objective(&self) -> f64 {
        self.h - 0.5 * self.w.iter().map(|v| v * v).sum::<f64>()
    }
}

impl Observer for Witness<'_> {
    fn placed(&mut self, x: &Array2<f64>) {
        self.w = self.a.dot(x);
        self.gram = x.t().dot(x);
        self.h = self.penalty.value(x.view());
        self.last = self.objective();
    }

    fn moved(&mut self, moved: &Moved<'_>, x: &Array2<f64>) {
        let Self { w, gram, .. } = self;
        for (k, step) in moved.delta().outer_iter().enumerate() {
            let i = moved.row(k);
            let (old, new) = (x.row(i), ArrayView1::from(moved.x(k)));
            let delta = &new - &old;
            assert_eq!(delta, step, "row {i}");
            assert!(!self.nonnegative || new.iter().all(|&v| v >= 0.0));
            let value = |row: ArrayView1<'_, f64>| self.penalty.value(row.insert_axis(Axis(0)));
            self.h += value(new) - value(old);
            for (mut row, (&n, &o)) in gram.outer_iter_mut().zip(new.iter().zip(&old)) {
                row.scaled_add(n, &new);
                row.scaled_add(-o, &old);
            }
            for (mut row, &a) in w.outer_iter_mut().zip(self.a.column(i)) {
                row.scaled_add(a, &delta);
            }
        }
        let objective = self.objective();
        let size = self.h.abs() + (objective - self.h).abs();
        assert!(objective <= self.last + 1e-13 * size, "{objective} after {}", self.last);
        self.last = objective;
        let drift =
            (self.gram.indexed_iter()).map(|((i, j), &g)| (g - f64::from(u8::from(i == j))).powi(2)).sum::<f64>();
        assert!(drift <= 1e-24, "{drift:e}");
        self.moves += 1;
        if self.moves.is_multiple_of(1000) {
            // The books drift as well: kept by themselves they would not be a witness for long.
            let mut x = x.clone();
            assign(moved, &mut x);
            self.placed(&x);
        }
    }
}

fn witnessed_million(penalty: &Penalty, x0: Array2<f64>, nonnegative: bool, moves: u64) {
    let n = x0.nrows();
    let a = gauss(&mut Xoshiro256PlusPlus::seed_from_u64(9), 25, n);
    let data = DenseColumns::from_transposed(a.t().to_owned()).unwrap();
    let smooth = GramQuadratic::new(data, -1.0, None).unwrap();
    let witness = Witness {
        a,
        penalty,
        nonnegative,
        w: Array2::zeros((0, 0)),
        gram: Array2::zeros((0, 0)),
        h: 0.0,
        last: 0.0,
        moves: 0,
    };
    let observed = Observed::new(smooth, witness);
    let options = Options::default().with_working_set(WorkingSet::Random).with_max_sweeps(3).with_tol(0.0);
    let solution = audit(&observed, penalty, x0, &options, nonnegative);
    assert!(solution.iterations >= 1_000_000);
    assert_eq!(solution.updates, observed.into_parts().1.moves);
    assert!(solution.updates >= moves, "{}", solution.updates);
}

#[test]
fn each_of_a_million_updates_descends() {
    let x0 = start::random(1000, 20, 0);
    witnessed_million(&Penalty::NONE, x0.clone(), false, 500_000);
    witnessed_million(&Penalty::l0(0.2), x0, false, 5_000);
}

#[test]
fn each_of_a_million_updates_descends_in_l1_and_nonnegative() {
    let (n, r) = (1000, 20);
    witnessed_million(&Penalty::l1(0.2), start::random(n, r, 0), false, 100_000);
    witnessed_million(&Penalty::NONNEGATIVE, start::partition(n, r, 0), true, 1_000);
}

#[test]
fn every_single_update_descends() {
    // Fresh evaluation after every visit, at a size where that is cheap.
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(8);
    let (n, r) = (30, 4);
    let a = gauss(&mut rng, 20, n);
    let smooth = Quadratic::from_data(a.view()).unwrap();
    let threads = Threads::serial();
    for lambda in [0.0, 0.5, 3.0] {
        let penalty = Penalty::l1(lambda);
        let mut x = start::random(n, r, 1);
        let c = smooth.matrix().to_owned();
        let value = |x: &Array2<f64>| smooth.value(x.view(), &threads) + penalty.value(x.view());
        let mut last = value(&x);
        let mut updates = 0;
        for _ in 0..20_000 {
            let i = rng.random_range(0..n - 1);
            let j = rng.random_range(i + 1..n);
            let gradient = smooth.gradient(x.view(), &threads);
            let z = rows(&x, i, j);
            let block = array![[c[[i, i]], c[[i, j]]], [c[[j, i]], c[[j, j]]]];
            let q = (sym(&block), sym(&z.dot(&z.t())));
            let (next, _) = step(&penalty, &x, &gradient, (i, j), q, 1e-5);
            let now = value(&next);
            assert!(now <= last + 1e-12 * (1.0 + last.abs()), "{now} after {last}");
            updates += usize::from(next != x);
            (x, last) = (next, now);
        }
        assert!(updates > 100);
    }
}
