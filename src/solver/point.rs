//! The iterate, and the quantities that are updated with it.

use std::time::{Duration, Instant};

use ndarray::{Array2, ArrayView2};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::domain::Domain;
use super::ledger::Ledger;
use crate::error::Result;
use crate::linalg::inner;
use crate::manifold::normals;
use crate::objective::{Evaluated, Moved, QuadraticForm, Tracker};
use crate::pair::{Boost, Recession};
use crate::pool::decorrelated;
use crate::problem::Problem;
use crate::threads::Threads;

fn is_finite(value: f64, gradient: &Array2<f64>) -> bool {
    value.is_finite() && gradient.iter().all(|v| v.is_finite())
}

/// Number of rapidities tried along a direction in which F falls without bound.
const DOUBLINGS: u32 = 6;

/// X, its domain, and the tracker of f.
pub struct Point<'a> {
    pub(super) problem: &'a Problem<'a>,
    /// f, if it is quadratic.
    pub(super) form: Option<&'a dyn QuadraticForm>,
    pub(super) threads: &'a Threads,
    seed: u64,
    pub(super) rng: Xoshiro256PlusPlus,
    pub(super) x: Array2<f64>,
    pub(super) domain: Domain<'a>,
    /// The shift c of C − cJ, and its effect on f on the constraint, see [`Problem::constant`].
    shift: f64,
    pub(super) constant: f64,
    pub(super) tracker: Box<dyn Tracker + 'a>,
    /// True if the tracker has followed moves since it was evaluated.
    updated: bool,
    /// True if X moved without the tracker.
    stale: bool,
    /// True if the tracker holds only values of a quadratic form.
    adopted: bool,
    /// True if X has not moved since its last [`checkpoint`](Self::checkpoint).
    checked: bool,
    /// Counts events that invalidate copies of rows of X and of the gradient, except moves of blocks.
    pub(super) version: u64,
    /// The last point of a mixed signature that was within bounds.
    good: Option<Array2<f64>>,
    /// The amount by which ‖X‖² may grow within bounds.
    pub(super) growth_limit: f64,
    /// Duration of the evaluation of f and of the constraint at the start.
    pub(super) evaluation: Duration,
}

impl<'a> Point<'a> {
    pub(super) fn new(problem: &'a Problem<'a>, x0: Array2<f64>, seed: u64, threads: &'a Threads) -> Result<Self> {
        let begun = Instant::now();
        let x = x0.as_standard_layout().into_owned();
        let domain = Domain::new(problem, &x);
        let tracker = problem.tracker(x.view(), threads);
        let evaluation = begun.elapsed();
        let form = problem.smooth.quadratic();
        if form.is_none() {
            let there = (tracker.value(x.view()), &tracker.gradient(threads));
            problem.check_function(&x, there, threads)?;
        }
        Ok(Self {
            problem,
            form,
            threads,
            seed,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            tracker,
            shift: problem.shift(),
            constant: problem.constant(domain.k.view()),
            updated: false,
            stale: false,
            adopted: false,
            checked: false,
            version: 0,
            growth_limit: domain.growth_limit(&x),
            evaluation,
            domain,
            good: (!problem.signature.is_definite()).then(|| x.clone()),
            x,
        })
    }

    /// Moves to `x`, with everything but the constraint as at the start of a solve.
    pub(super) fn begin_again(&mut self, x: Array2<f64>, segment: u64) {
        self.rng = Xoshiro256PlusPlus::seed_from_u64(decorrelated(self.seed, segment));
        self.tracker = self.problem.tracker(x.view(), self.threads);
        (self.updated, self.stale, self.adopted, self.checked) = (false, false, false, false);
        self.version = 0;
        self.growth_limit = self.domain.growth_limit(&x);
        self.good = self.good.take().map(|_| x.clone());
        self.x = x;
    }

    /// X, n×r.
    pub fn x(&self) -> ArrayView2<'_, f64> {
        self.x.view()
    }

    pub(super) fn into_x(self) -> Array2<f64> {
        self.x
    }

    /// The problem that is minimised.
    pub fn problem(&self) -> &'a Problem<'a> {
        self.problem
    }

    /// The constraint matrix XᵀJX, r×r.
    pub fn constraint(&self) -> ArrayView2<'_, f64> {
        self.domain.k.view()
    }

    /// ∇f(X), n×r.
    pub fn gradient(&mut self) -> Array2<f64> {
        self.refresh_if_stale();
        self.tracker.gradient(self.threads)
    }

    /// Returns ‖XᵀJX − K‖_F plus the distance from the penalty's domain.
    pub fn feasibility(&self) -> f64 {
        self.domain.distance(self.x.view())
    }

    /// Moves to `x`, which must keep XᵀJX, if F falls by more than its rounding; returns whether it does.
    pub fn try_move(&mut self, x: Array2<f64>, ledger: &mut Ledger) -> bool {
        if !self.problem.holds(x.view()) {
            return false;
        }
        let change = self.problem.objective(x.view(), self.threads) - ledger.objective;
        if !(change < -f64::EPSILON * ledger.magnitude) {
            return false;
        }
        self.replace(x);
        ledger.lower(change, 1);
        true
    }

    /// Moves along a direction in which F falls without bound, to the first of the rapidities 1, 2, 4, … that
    /// lowers F; returns the direction from there.
    pub(super) fn follow_recession(&mut self, recession: Recession, ledger: &mut Ledger) -> Recession {
        let Recession { pair: (i, j), columns, signs, upwards } = recession;
        for doublings in 0..DOUBLINGS {
            let rapidity = f64::from(1u32 << doublings);
            let u = if upwards { rapidity } else { -rapidity }.exp();
            let mut x = self.x.clone();
            let mut rows = if columns { x.view_mut().reversed_axes() } else { x.view_mut() };
            let [first, second] = [i, j].map(|k| rows.row(k).to_vec());
            let (mut new_first, mut new_second) = (first.clone(), second.clone());
            Boost { u, signs }.apply(&first, &second, &mut new_first, &mut new_second);
            for (k, new) in [(i, new_first), (j, new_second)] {
                rows.row_mut(k).iter_mut().zip(new).for_each(|(x, new)| *x = new);
            }
            let allowed = self.problem.penalty.infeasibility(x.view()) == 0.0;
            if !self.domain.is_bounded(&x) {
                break;
            }
            if allowed && self.try_move(x, ledger) {
                // From D H(μ)X, D H(ν) D continues in the same direction.
                return Recession { signs: [1.0; 2], upwards: upwards == (signs[0] == signs[1]), ..recession };
            }
        }
        recession
    }

    /// Moves to `x`; the tracker is evaluated when it is needed.
    pub(super) fn replace(&mut self, x: Array2<f64>) {
        self.x = x;
        (self.stale, self.checked) = (true, false);
    }

    /// Returns the shift c of C − cJ, or of C − cI if all signs are equal.
    pub(super) fn shift_of_signs(&self) -> f64 {
        let signature = self.problem.signature;
        match signature.is_definite() {
            true => signature.sign(0) * self.shift,
            false => self.shift,
        }
    }

    /// Returns cJVD, which is normal at V = X.
    fn shifted(&self, v: &Array2<f64>) -> Array2<f64> {
        let image = normals(v, self.problem.signature).into_owned() * self.shift;
        match self.form.and_then(QuadraticForm::metric) {
            Some(metric) => image.dot(&metric),
            None => image,
        }
    }

    /// Returns f and its gradient with C − cJ in place of C, from the gradient of f: f less its
    /// [constant](Problem::constant) and ∇f less a normal part. They do not depend on a multiple of J in C.
    fn relative(&self, x: &Array2<f64>, gradient: Array2<f64>) -> (f64, Array2<f64>) {
        let gradient = gradient - self.shifted(x);
        let linear = self.form.and_then(QuadraticForm::linear);
        let slope = linear.map_or(0.0, |linear| (&linear * x).sum());
        (0.5 * (inner(&gradient, x) + slope), gradient)
    }

    /// Returns f and ∇f at X; for a quadratic form, those with C − cJ in place of C.
    pub(super) fn evaluated(&self) -> (f64, Array2<f64>) {
        let gradient = self.tracker.gradient(self.threads);
        match self.form {
            Some(_) => self.relative(&self.x, gradient),
            None => (self.tracker.value(self.x.view()), gradient),
        }
    }

    /// Returns the same at `x`; None if they are not finite.
    pub(super) fn try_evaluate(&self, x: &Array2<f64>) -> Option<(f64, Array2<f64>)> {
        let smooth = self.problem.smooth;
        let (value, gradient) = match self.form {
            Some(_) => self.relative(x, smooth.gradient(x.view(), self.threads)),
            None => {
                let mut gradient = Array2::zeros(x.dim());
                let value = smooth.value_and_gradient(x.view(), gradient.view_mut(), self.threads);
                (value, gradient)
            }
        };
        is_finite(value, &gradient).then_some((value, gradient))
    }

    /// Returns the product of the Hessian of f at `x` with `v`, if f provides it; for a quadratic form with C
    /// − cJ in place of C.
    pub(super) fn hessian_product(&self, x: &Array2<f64>, v: &Array2<f64>) -> Option<Array2<f64>> {
        let smooth = self.problem.smooth;
        let product = smooth.hessian_product(x.view(), v.view(), self.threads)?;
        Some(match self.form {
            Some(_) => product - self.shifted(v),
            None => product,
        })
    }

    /// Moves to `x`, where f has been [evaluated](Self::try_evaluate). Blocks of a quadratic form cannot be
    /// filled until [`follow`](Self::follow).
    pub(super) fn adopt(&mut self, x: Array2<f64>, (value, gradient): (f64, Array2<f64>)) {
        let evaluated = match self.form {
            Some(_) => (value + self.constant, gradient + self.shifted(&x)),
            None => (value, gradient),
        };
        let tracker = Evaluated::of(self.problem.smooth, x.clone(), evaluated);
        self.tracker = Box::new(tracker);
        self.adopted = self.form.is_some();
        (self.stale, self.updated, self.checked) = (false, false, false);
        self.version += 1;
        self.x = x;
    }

    /// Restores the tracker of a quadratic form after [`adopt`](Self::adopt).
    pub(super) fn follow(&mut self) {
        if std::mem::take(&mut self.adopted) {
            self.tracker = self.problem.tracker(self.x.view(), self.threads);
            (self.stale, self.updated) = (false, false);
            self.version += 1;
        }
    }

    /// Takes over the rows that moved.
    pub(super) fn commit(&mut self, moved: Moved<'_>) {
        self.place(&moved);
        self.tracker.commit(moved, self.threads);
        (self.stale, self.updated) = (false, true);
    }

    /// Moves the rows of a part of a block whose moves are [committed](Self::commit) later.
    pub(super) fn place(&mut self, moved: &Moved<'_>) {
        for k in 0..moved.len() {
            let target = self.x.row_mut(moved.row(k));
            (target.into_iter().zip(moved.x(k))).for_each(|(x, &new)| *x = new);
        }
        (self.stale, self.checked) = (true, false);
    }

    /// Evaluates the tracker if X moved without it.
    pub(super) fn refresh_if_stale(&mut self) {
        if self.stale {
            self.refresh();
            self.version += 1;
        }
    }

    /// Evaluates the tracker anew, which removes the rounding of its updates.
    pub(super) fn refresh(&mut self) {
        self.tracker.refresh(self.x.view(), self.threads);
        (self.stale, self.updated) = (false, false);
    }

    /// Returns f and h at X.
    pub(super) fn values(&self) -> (f64, f64) {
        let x = self.x.view();
        (self.tracker.value(x), self.problem.penalty.value(x))
    }

    /// Writes F and its magnitude into the ledger.
    pub(super) fn evaluate(&self, ledger: &mut Ledger) {
        let (smooth, penalty) = self.values();
        ledger.objective = smooth + penalty;
        let magnitude = self.problem.magnitude(smooth, penalty, self.constant);
        ledger.resize(magnitude, self.constant);
    }

    /// Evaluates everything anew and repairs the drift of the constraint, unless the repair raises the
    /// reported F by more than the drift explains: a decrease due to drift is not one.
    pub(super) fn checkpoint(&mut self, ledger: &mut Ledger) {
        if std::mem::replace(&mut self.checked, true) {
            return;
        }
        if self.stale || self.updated {
            self.refresh();
        }
        self.evaluate(ledger);
        let Some(drift) = self.domain.drift(&self.x) else {
            return;
        };
        let (smooth, penalty) = self.values();
        let reported = ledger.history.last();
        let ceiling = reported.map_or(ledger.objective, |r| r.objective) + drift * (smooth.abs() + penalty.abs());
        let repaired = self.domain.repaired(&self.x);
        let tracker = self.problem.tracker(repaired.view(), self.threads);
        let value = tracker.value(repaired.view()) + self.problem.penalty.value(repaired.view());
        if value <= ceiling {
            self.tracker = tracker;
            self.adopted = false;
            self.x = repaired;
            self.version += 1;
            self.evaluate(ledger);
        }
    }

    /// Returns whether ‖X‖² has left the bounds, and then restores the last point within bounds; otherwise
    /// records X as that point.
    pub(super) fn diverges(&mut self) -> bool {
        let Some(good) = &mut self.good else {
            return false;
        };
        let bounded = self.domain.is_bounded(&self.x);
        if bounded {
            good.assign(&self.x);
        } else {
            self.x.assign(good);
            // The tracker still belongs to the diverged point.
            (self.stale, self.checked) = (true, false);
        }
        self.growth_limit = self.domain.growth_limit(&self.x);
        !bounded
    }
}
