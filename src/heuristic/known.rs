//! Properties of a problem that are computed once, before heuristics run.

use ndarray::{Array2, Axis, s};

use super::oracle::Oracle;
use super::profile::{Kind, Profile};
use super::tangent;
use crate::certificate::known_optimum;
use crate::limits::TaskWork;
use crate::linalg::{square, symmetric, symmetric_eigen};
use crate::manifold::{varimax_while, varimax_work};
use crate::objective::{QuadraticForm, bounds_work, step_work};
use crate::penalty::Penalty;
use crate::problem::Problem;
use crate::signature::Signature;
use crate::start;
use crate::support::{Axes, Covariance};
use crate::threads::Threads;

/// Most steps to a critical point of a nonquadratic f.
const CRITICAL_STEPS: usize = 200;

/// Relative change of f below which a rotation leaves f unchanged.
const INVARIANT: f64 = 1e-6;

/// Distances, relative to ‖X‖, between the points whose gradients estimate a Lipschitz constant.
const APART: [f64; 3] = [1e-3, 1e-1, 1.0];

/// Returns a Lipschitz constant of ∇f: the one that f provides, or the largest secant slope along the
/// gradient at X; None if the time is up or a number is not finite.
fn slope(oracle: &Oracle<'_>, x: &Array2<f64>, gradient: &Array2<f64>) -> Option<f64> {
    if let Some(known) = oracle.problem.smooth.lipschitz() {
        return Some(known);
    }
    let (size, steepest) = (square(x).sqrt(), square(gradient).sqrt());
    let mut largest = steepest / size;
    for apart in APART {
        let mut trial = x.clone();
        trial.scaled_add(-apart * size / steepest.max(f64::MIN_POSITIVE), gradient);
        let (_, there) = oracle.value_and_gradient(&trial);
        let moved = square(&(&trial - x)).sqrt();
        let secant = square(&(&there - gradient)).sqrt() / moved;
        if secant.is_finite() {
            largest = largest.max(secant);
        }
    }
    let found = !oracle.work.expired() && largest.is_finite();
    found.then(|| largest.max(f64::MIN_POSITIVE))
}

/// Leading eigenvectors of −C.
pub(crate) struct Basis {
    /// Orthonormal eigenvectors of the r smallest eigenvalues of C; empty for a mixed J.
    pub(crate) spectral: Array2<f64>,
    /// `spectral`, rotated by varimax.
    pub(crate) rotated: Array2<f64>,
}

/// Data computed once per search and read by every heuristic.
pub(crate) struct Known<'a> {
    pub(crate) basis: Basis,
    /// C by columns, if supports are disjoint.
    pub(crate) covariance: Option<Covariance<'a>>,
    /// The start passed by the caller.
    pub(crate) given: Option<Array2<f64>>,
    /// The signs of XᵀJX if this is diag(±1) and J is mixed.
    pub(crate) columns: Option<Signature>,
}

fn kind(penalty: &Penalty) -> Kind {
    match () {
        () if penalty.count().is_some() => Kind::Count,
        () if penalty.nonnegative() => Kind::Nonnegative,
        () if penalty.is_none() => Kind::Smooth,
        () if penalty.sparsifies() => Kind::Sparse,
        () => Kind::Other,
    }
}

/// Flips the columns so that their third moments are positive.
fn turn_positive(x: &mut Array2<f64>) {
    for mut column in x.axis_iter_mut(Axis(1)) {
        if column.iter().map(|v| v * v * v).sum::<f64>() < 0.0 {
            column.mapv_inplace(|v| -v);
        }
    }
}

/// Returns the profile known without any computation.
pub(crate) fn profile(problem: &Problem<'_>) -> Profile {
    let form = problem.smooth.quadratic();
    let trace_form = form.is_some_and(QuadraticForm::is_trace_form);
    Profile {
        rows: problem.smooth.rows(),
        components: problem.components,
        mixed: !problem.signature.is_definite(),
        kind: kind(problem.penalty),
        has_strength: problem.penalty.strength().is_some(),
        rotations: problem.rotations,
        quadratic: form.is_some(),
        trace_form,
        columns: false,
        whole: false,
        penalty_share: f64::INFINITY,
        flatness: 0.0,
        step: step_work(problem.smooth, problem.components),
        chosen: None,
        optimum: None,
    }
}

/// The oracle of a problem, its cached data and its profile.
pub(crate) type Prepared<'a> = (Oracle<'a>, Known<'a>, Profile);

impl<'a> Known<'a> {
    /// Prepares a problem with J = I, from its leading axes if they are known; `bytes`: memory for columns of C. None if the time is up or a number is
    /// not finite.
    pub(crate) fn definite(
        (problem, form): (&'a Problem<'a>, &'a dyn QuadraticForm),
        (given, axes): (Option<Array2<f64>>, Option<&Axes<'_>>),
        bytes: usize,
        threads: &Threads,
        work: &'a TaskWork<'a>,
    ) -> Option<Prepared<'a>> {
        let r = problem.components;
        let go_on = || !work.expired();
        work.spend(bounds_work(form) + varimax_work(form.order(), r));
        let (spectral, spectrum) = match axes {
            Some(axes) => (axes.vectors.slice(s![.., ..r]).to_owned(), axes.spectrum),
            None => {
                work.spend(start::rough_work(form, r));
                start::rough_spectral(form, r, threads, &go_on)?
            }
        };
        let oracle = Oracle::new((problem, form), Array2::eye(r), spectrum, work);
        if !(oracle.lipschitz.is_finite() && spectral.iter().all(|v| v.is_finite())) {
            return None;
        }
        let mut rotated = varimax_while(spectral.view(), &go_on);
        let mut profile = profile(problem);
        if profile.kind == Kind::Nonnegative {
            turn_positive(&mut rotated);
        }
        let covariance = match profile.is_disjoint() {
            true => Covariance::within(form, oracle.shift(), bytes, work),
            false => None,
        };
        let (value, gradient) = oracle.value_and_gradient(&rotated);
        let (seen, _) = symmetric_eigen(symmetric(&rotated.t().dot(&gradient)).view());
        profile.columns = covariance.is_some();
        profile.whole = covariance.as_ref().is_some_and(Covariance::is_whole);
        profile.penalty_share = problem.penalty.value(rotated.view()) / value.abs().max(f64::MIN_POSITIVE);
        profile.flatness = seen[r - 1] / seen[0].min(-f64::MIN_POSITIVE);
        if let Some((optimum, spent)) = known_optimum(problem, work.left(), threads, &go_on) {
            work.spend(spent);
            profile.optimum = Some(optimum);
        }
        // The pair sweeps also need the spectrum, and cannot interrupt its computation.
        form.spectrum(&go_on)?;
        let known = Self { basis: Basis { spectral, rotated }, covariance, given, columns: None };
        (value.is_finite() && go_on()).then_some((oracle, known, profile))
    }

    /// Prepares a problem with a mixed J; x0 defines the constraint XᵀJX = `k`.
    pub(crate) fn mixed(
        (problem, form): (&'a Problem<'a>, &'a dyn QuadraticForm),
        x0: Array2<f64>,
        k: Array2<f64>,
        work: &'a TaskWork<'a>,
    ) -> Option<Prepared<'a>> {
        let spectrum = form.spectrum(&|| !work.expired())?;
        let known = Self::without_basis(x0, &k);
        let oracle = Oracle::new((problem, form), k, spectrum, work);
        Some((oracle, known, profile(problem)))
    }

    /// Cached data for a mixed J.
    fn without_basis(x0: Array2<f64>, k: &Array2<f64>) -> Self {
        let signs: Vec<i8> = k.diag().iter().map(|&v| v as i8).collect();
        let is_diagonal = *k == Array2::from_diag(&k.diag()) && k.diag().iter().all(|v| v.abs() == 1.0);
        Self {
            basis: Basis { spectral: Array2::zeros((0, 0)), rotated: Array2::zeros((0, 0)) },
            covariance: None,
            given: Some(x0),
            columns: is_diagonal.then(|| Signature::new(&signs).ok()).flatten(),
        }
    }

    /// Prepares a nonquadratic f, from a feasible `first` with XᵀJX = `k`.
    ///
    /// A critical point of f replaces the eigenvectors. This point is rotated by varimax if the rotation
    /// leaves f unchanged.
    pub(crate) fn evaluated(
        problem: &'a Problem<'a>,
        (first, given): (&Array2<f64>, Option<Array2<f64>>),
        k: Array2<f64>,
        work: &'a TaskWork<'a>,
    ) -> Option<Prepared<'a>> {
        let go_on = || !work.expired();
        let mut profile = profile(problem);
        let rough = Oracle::evaluated(problem, k.clone(), 1.0, work);
        let (value, gradient) = rough.value_and_gradient(first);
        let lipschitz = slope(&rough, first, &gradient)?;
        let oracle = Oracle::evaluated(problem, k.clone(), lipschitz, work);
        if profile.mixed {
            let known = Self::without_basis(first.clone(), &k);
            return go_on().then_some((oracle, known, profile));
        }
        let free = Problem { penalty: &Penalty::NONE, ..*problem };
        let smooth = Oracle::evaluated(&free, k, lipschitz, work);
        let descent = tangent::descend(&smooth, first.clone(), CRITICAL_STEPS, work.limit(1.0));
        let (spectral, lowest) = (descent.x, descent.objective);
        let mut rotated = varimax_while(spectral.view(), &go_on);
        let (turned, _) = smooth.value_and_gradient(&rotated);
        if !((turned - lowest).abs() <= INVARIANT * (value - lowest).abs()) {
            rotated = spectral.clone();
        }
        if profile.kind == Kind::Nonnegative {
            turn_positive(&mut rotated);
        }
        profile.penalty_share = problem.penalty.value(rotated.view()) / (value - lowest).abs().max(f64::MIN_POSITIVE);
        let known = Self { basis: Basis { spectral, rotated }, covariance: None, given, columns: None };
        (lowest.is_finite() && go_on()).then_some((oracle, known, profile))
    }
}
