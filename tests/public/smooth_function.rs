//! An f that is not quadratic: monotone, feasible, critical at the end, on both constraints and with penalties.

use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, Axis, Zip};
use orthobcd::certificate::criticality;
use orthobcd::penalty::Penalty;
use orthobcd::{
    Mover, Objective, Options, Point, Problem, Quadratic, Signature, Solution, Status, Step, Threads, Unwatched,
    certify, minimize, minimize_by, start,
};

/// What f is, given as X ↦ (f, ∇f), and a Lipschitz constant.
struct Function<F> {
    rows: usize,
    lipschitz: Option<f64>,
    evaluate: F,
}

impl<F: Fn(ArrayView2<f64>) -> (f64, Array2<f64>) + Send + Sync> Objective for Function<F> {
    fn rows(&self) -> usize {
        self.rows
    }

    fn value_and_gradient(&self, x: ArrayView2<f64>, mut gradient: ArrayViewMut2<f64>, _: &Threads) -> f64 {
        let (value, slope) = (self.evaluate)(x);
        gradient.assign(&slope);
        value
    }

    fn lipschitz(&self) -> Option<f64> {
        self.lipschitz
    }
}

fn of(
    rows: usize,
    evaluate: impl Fn(ArrayView2<f64>) -> (f64, Array2<f64>) + Send + Sync + 'static,
) -> Box<dyn Objective> {
    Box::new(Function { rows, lipschitz: None, evaluate })
}

/// Rosenbrock's function of the entries one after the other, of valley `steep`.
fn rosenbrock(n: usize, steep: f64) -> Box<dyn Objective> {
    of(n, move |x| {
        let entries: Vec<f64> = x.iter().copied().collect();
        let mut slope = vec![0.0; entries.len()];
        let mut value = 0.0;
        for k in 0..entries.len() - 1 {
            let (a, b) = (entries[k], entries[k + 1]);
            let (valley, away) = (b - a * a, 1.0 - a);
            value += steep * valley * valley + away * away;
            slope[k] -= 4.0 * steep * a * valley + 2.0 * away;
            slope[k + 1] += 2.0 * steep * valley;
        }
        (value, Array2::from_shape_vec(x.dim(), slope).unwrap())
    })
}

/// Softmax regression with n features and r classes.
fn logistic(n: usize, r: usize) -> Box<dyn Objective> {
    let data = start::random(n * 6, n, 3) * 8.0;
    of(n, move |x| {
        let logits = data.dot(&x);
        let samples = data.nrows() as f64;
        let (mut value, mut rest) = (0.0, Array2::zeros(logits.dim()));
        for (i, row) in logits.outer_iter().enumerate() {
            let top = row.fold(f64::MIN, |m, &v| m.max(v));
            let total: f64 = row.iter().map(|v| (v - top).exp()).sum();
            let class = (7 * i + i / 5) % r;
            value += top + total.ln() - row[class];
            for (k, &v) in row.iter().enumerate() {
                rest[[i, k]] = (v - top).exp() / total - f64::from(u8::from(k == class));
            }
        }
        (value / samples, data.t().dot(&rest) / samples)
    })
}

/// −¼‖AX‖₄⁴.
fn fourth(n: usize) -> Box<dyn Objective> {
    let a = start::random(n, n, 5) * 1.5;
    of(n, move |x| {
        let y = a.dot(&x);
        let cubes = y.mapv(|v| v.powi(3));
        (-0.25 * (&cubes * &y).sum(), -a.t().dot(&cubes))
    })
}

/// ½ tr XᵀTX + ¼ ρᵀT⁻¹ρ, ρ = diag XXᵀ, T the second difference.
fn electronic(n: usize) -> Box<dyn Objective> {
    of(n, move |x| {
        let mut image = &x * 2.0;
        for i in 1..n {
            Zip::from(image.row_mut(i)).and(x.row(i - 1)).for_each(|y, &x| *y -= x);
            Zip::from(image.row_mut(i - 1)).and(x.row(i)).for_each(|y, &x| *y -= x);
        }
        let density: Array1<f64> = x.mapv(|v| v * v).sum_axis(Axis(1));
        let potential = poisson(&density);
        let value = 0.5 * (&x * &image).sum() + 0.25 * density.dot(&potential);
        image += &(&x * &potential.insert_axis(Axis(1)));
        (value, image)
    })
}

/// T⁻¹ρ.
fn poisson(density: &Array1<f64>) -> Array1<f64> {
    let n = density.len();
    let (mut pivot, mut rest) = (vec![2.0; n], density.clone());
    for i in 1..n {
        pivot[i] -= 1.0 / pivot[i - 1];
        rest[i] += rest[i - 1] / pivot[i - 1];
    }
    rest[n - 1] /= pivot[n - 1];
    for i in (0..n - 1).rev() {
        rest[i] = (rest[i] + rest[i + 1]) / pivot[i];
    }
    rest
}

fn all(n: usize, r: usize) -> [(&'static str, Box<dyn Objective>); 4] {
    [
        ("rosenbrock", rosenbrock(n, 10.0)),
        ("logistic", logistic(n, r)),
        ("fourth", fourth(n)),
        ("electronic", electronic(n)),
    ]
}

fn solve(
    (name, smooth): (&str, &dyn Objective),
    penalty: &Penalty,
    signature: &Signature,
    x0: &Array2<f64>,
    options: &Options,
) -> Solution {
    let problem = Problem::new(smooth, penalty, signature, x0.ncols()).unwrap();
    let threads = Threads::serial();
    let solution = minimize(&problem, x0.clone(), options, &threads, &mut Unwatched).unwrap();
    let falls = |pair: &[orthobcd::Record]| pair[1].objective <= pair[0].objective;
    assert!(solution.history.windows(2).all(falls), "{name}");
    let size = solution.x.iter().map(|v| v * v).sum::<f64>().max(1.0);
    assert!(solution.feasibility <= 1e-12 * size, "{name}");
    assert!(solution.objective < solution.history[0].objective, "{name}");
    solution
}

/// dist(0, ∂F) over the size of the gradient at the start.
fn relative(
    smooth: &dyn Objective,
    penalty: &Penalty,
    signature: &Signature,
    x: &Array2<f64>,
    x0: &Array2<f64>,
) -> f64 {
    let threads = Threads::serial();
    let gradient = smooth.gradient(x.view(), &threads);
    let first = smooth.gradient(x0.view(), &threads);
    let size = |a: &Array2<f64>| a.iter().map(|v| v * v).sum::<f64>().sqrt();
    criticality(penalty, x.view(), gradient.view(), signature) / size(&gradient).max(size(&first))
}

#[test]
fn smooth_problems_end_at_critical_points() {
    let (n, r) = (24, 4);
    let signature = Signature::stiefel(n);
    for (name, smooth) in all(n, r) {
        let x0 = start::random(n, r, 1);
        let options = Options::default().with_max_time(60.0);
        let solution = solve((name, &*smooth), &Penalty::NONE, &signature, &x0, &options);
        assert_eq!(solution.status, Status::Converged, "{name}");
        let left = relative(&*smooth, &Penalty::NONE, &signature, &solution.x, &x0);
        assert!(left <= 1e-6, "{name}: {left:e}");
    }
}

#[test]
fn and_j_orthogonal_ones() {
    let n = 12;
    let signs: Vec<i8> = (0..n).map(|i| if i % 3 == 0 { -1 } else { 1 }).collect();
    let signature = Signature::new(&signs).unwrap();
    // −¼‖AX‖₄⁴ is not bounded below there.
    let wells = of(n, |x| {
        let away = x.mapv(|v| v * v - 0.7);
        ((&away * &away).sum() * 0.25, &away * &x)
    });
    let objectives = [("rosenbrock", rosenbrock(n, 3.0)), ("electronic", electronic(n)), ("wells", wells)];
    for (name, smooth) in objectives {
        let x0 = start::random_j_orthogonal(&signature, 0.4, 2).unwrap();
        let options = Options::default().with_max_time(60.0);
        let solution = solve((name, &*smooth), &Penalty::NONE, &signature, &x0, &options);
        assert_eq!(solution.status, Status::Converged, "{name}");
        let left = relative(&*smooth, &Penalty::NONE, &signature, &solution.x, &x0);
        assert!(left <= 1e-6, "{name}: {left:e}");
    }
}

/// From `x0`, with a penalty: at the end no pair of the model with a constant that holds lowers F.
fn penalised(penalty: &Penalty, signature: &Signature, x0: &Array2<f64>) {
    for (name, smooth) in all(x0.nrows(), x0.ncols()) {
        if !signature.is_definite() && name != "electronic" && name != "rosenbrock" {
            continue;
        }
        let options = Options::default().with_max_time(60.0);
        let solution = solve((name, &*smooth), penalty, signature, x0, &options);
        assert_eq!(solution.status, Status::Converged, "{name}");
        let bounded = Function {
            rows: x0.nrows(),
            lipschitz: Some(1e6),
            evaluate: |x: ArrayView2<f64>| {
                let mut gradient = Array2::zeros(x.dim());
                let threads = Threads::serial();
                let value = smooth.value_and_gradient(x, gradient.view_mut(), &threads);
                (value, gradient)
            },
        };
        let problem = Problem::new(&bounded, penalty, signature, x0.ncols()).unwrap();
        let threads = Threads::serial();
        let certificate = certify(&problem, solution.x.view(), &threads).unwrap();
        assert!(certificate.block2_gap <= 1e-10 * certificate.magnitude, "{name}: {certificate:?}");
        assert!(certificate.criticality.is_finite());
    }
}

#[test]
fn every_penalty_is_taken() {
    let (n, r) = (16, 3);
    let (signature, x0) = (Signature::stiefel(n), start::random(n, r, 7));
    penalised(&Penalty::l1(0.05), &signature, &x0);
    penalised(&Penalty::l0(0.05), &signature, &x0);
    penalised(&Penalty::NONNEGATIVE, &signature, &start::partition(n, r, 1));
    let mixed = Signature::new(&[1, 1, -1, 1, -1, 1, 1, -1]).unwrap();
    let x0 = start::random_j_orthogonal(&mixed, 0.3, 4).unwrap();
    penalised(&Penalty::l1(0.05), &mixed, &x0);
    penalised(&Penalty::l0(0.05), &mixed, &x0);
}

#[test]
fn a_quadratic_ends_where_its_values_and_gradients_alone_do() {
    let n = 20;
    let base = start::random(n, n, 2);
    let spectrum = Array2::from_diag(&Array1::from_shape_fn(n, |i| 1.0 + i as f64));
    let stored = base.dot(&spectrum).dot(&base.t());
    let stored = (&stored + &stored.t()) * 0.5;
    let quadratic = Quadratic::new(stored.clone(), None, None).unwrap();
    let function = of(n, move |x| {
        let y = stored.dot(&x);
        (0.5 * (&x * &y).sum(), y)
    });
    let (signature, x0) = (Signature::stiefel(n), start::random(n, 3, 1));
    let options = Options::default();
    let own = solve(("function", &*function), &Penalty::NONE, &signature, &x0, &options);
    let exact = solve(("form", &quadratic), &Penalty::NONE, &signature, &x0, &options);
    assert_eq!(own.status, Status::Converged);
    assert!((own.objective - exact.objective).abs() <= 1e-8 * exact.objective.abs());
    assert!((own.objective - 3.0).abs() <= 1e-8);
}

#[test]
fn a_maximum_is_left_by_pairs() {
    let n = 10;
    let weights = start::random(n, 2, 4);
    let turned = weights.clone();
    let function = of(n, move |x| ((&turned * &x).sum(), turned.clone()));
    let signature = Signature::stiefel(n);
    let options = Options::default();
    let solution = solve(("linear", &*function), &Penalty::NONE, &signature, &weights, &options);
    assert_eq!(solution.status, Status::Converged);
    assert!((solution.objective + 2.0).abs() < 1e-8);
}

#[test]
fn a_wrong_gradient_is_a_status() {
    let n = 10;
    for (penalty, kind) in [(0.0, "steps"), (0.02, "pairs")] {
        let wrong = of(n, |x| {
            let cubes = x.mapv(|v| v.powi(3));
            let mut slope = &cubes - 0.2;
            slope[[3, 1]] *= -1.5;
            (0.25 * (&cubes * &x).sum() - 0.2 * x.sum(), slope)
        });
        let (signature, x0) = (Signature::stiefel(n), start::random(n, 2, 1));
        let (threads, options) = (Threads::serial(), Options::default().with_max_time(30.0));
        let solved = if penalty > 0.0 {
            let h = Penalty::l1(penalty);
            let problem = Problem::new(&*wrong, &h, &signature, 2).unwrap();
            minimize(&problem, x0, &options, &threads, &mut Unwatched)
        } else {
            let problem = Problem::new(&*wrong, &Penalty::NONE, &signature, 2).unwrap();
            minimize(&problem, x0, &options, &threads, &mut Unwatched)
        };
        let solution = solved.unwrap();
        assert_eq!(solution.status, Status::Contradiction, "{kind}");
        assert!(solution.feasibility < 1e-12, "{kind}");
        assert!(solution.objective <= solution.history[0].objective, "{kind}");
    }
}

#[test]
fn noise_in_the_values_ends_with_the_lowest_one() {
    let n = 10;
    for (size, weight) in [(1e-9, 0.0), (1e-6, 0.0), (1e-9, 0.02), (1e-6, 0.02)] {
        let noisy = of(n, move |x| {
            let cubes = x.mapv(|v| v.powi(3));
            let value = 0.25 * (&cubes * &x).sum() - 0.2 * x.sum();
            // Digits that no step can predict.
            let noise = (1e9 * value).sin() * (1e7 * x[[0, 0]]).cos();
            (value + size * noise, &cubes - 0.2)
        });
        let (signature, x0) = (Signature::stiefel(n), start::random(n, 2, 1));
        let h = Penalty::l1(weight);
        let problem = Problem::new(&*noisy, &h, &signature, 2).unwrap();
        let (threads, options) = (Threads::serial(), Options::default().with_max_time(30.0));
        let solution = minimize(&problem, x0, &options, &threads, &mut Unwatched).unwrap();
        assert!(matches!(solution.status, Status::Noise | Status::Converged), "{size} {weight}: {:?}", solution.status);
        assert!(solution.feasibility < 1e-12);
    }
}

#[test]
fn values_that_are_not_finite() {
    let n = 6;
    let broken = of(n, |x| (f64::NAN, x.to_owned()));
    let problem_signature = Signature::stiefel(n);
    let problem = Problem::new(&*broken, &Penalty::NONE, &problem_signature, 2).unwrap();
    let (threads, options) = (Threads::serial(), Options::default());
    let x0 = start::random(n, 2, 1);
    let solved = minimize(&problem, x0, &options, &threads, &mut Unwatched);
    assert!(solved.unwrap_err().to_string().contains("finite"));
    // Off its domain f is NaN: the step is shorter there.
    let barrier = of(n, |x| {
        let room = x.mapv(|v| 0.9 - v);
        let value = -room.mapv(f64::ln).sum() - x.row(0).sum();
        let mut slope = room.mapv(|v| 1.0 / v);
        slope.row_mut(0).mapv_inplace(|v| v - 1.0);
        (value, slope)
    });
    let x0 = Array2::from_shape_fn((n, 2), |(i, k)| if (i < 3) == (k == 0) { (1.0f64 / 3.0).sqrt() } else { 0.0 });
    let solution = solve(("barrier", &*barrier), &Penalty::NONE, &problem_signature, &x0, &options);
    assert_eq!(solution.status, Status::Converged);
}

/// A mover that does nothing.
struct Idle;

impl Mover for Idle {
    fn step(&mut self, _: &mut Point<'_>, ledger: &mut orthobcd::Ledger) -> Step {
        ledger.visit(1, 1.0);
        Step::Pass
    }
}

#[test]
fn a_mover_of_ones_own_is_verified() {
    let (n, r) = (12, 2);
    let (signature, x0) = (Signature::stiefel(n), start::random(n, r, 1));
    let smooth = logistic(n, r);
    let penalty = Penalty::l1(0.01);
    let problem = Problem::new(&*smooth, &penalty, &signature, r).unwrap();
    let (threads, options) = (Threads::serial(), Options::default().with_max_time(60.0));
    let solution = minimize_by(&problem, x0, &mut Idle, &options, &threads, &mut Unwatched).unwrap();
    assert_eq!(solution.status, Status::Converged);
    assert!(solution.objective < solution.history[0].objective);
}

#[test]
fn limits_and_seeds_hold() {
    let (n, r) = (24, 3);
    let (signature, x0) = (Signature::stiefel(n), start::random(n, r, 1));
    let smooth = fourth(n);
    let run = |options: &Options| solve(("fourth", &*smooth), &Penalty::l1(0.01), &signature, &x0, options);
    let few = run(&Options::default().with_max_sweeps(3));
    assert!(few.status == Status::MaxSweeps && few.sweeps <= 4);
    let work = Options::default().with_max_work(100_000);
    let (one, two) = (run(&work), run(&work));
    assert!(one.status == Status::MaxWork && one.x == two.x);
    let goal = Options::default().with_target(0.5 * (few.objective + few.history[0].objective));
    assert_eq!(run(&goal).status, Status::Target);
}
