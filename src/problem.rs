//! Problem of a solve: f, h, J and the number of columns.

mod function;
mod limit;

use ndarray::{Array2, ArrayView2};

use crate::error::{Error, Result};
use crate::linalg;
use crate::manifold;
use crate::objective::{Evaluated, Objective, QuadraticForm, Tracker};
use crate::penalty::Penalty;
use crate::rows::slice_of;
use crate::signature::Signature;
use crate::threads::Threads;

pub use limit::{Cardinality, Limit, RowSparsity, Sparsity};

/// Problem min f(X) + h(X) subject to XᵀJX = X₀ᵀJX₀, checked when it is made.
#[derive(Clone, Copy)]
pub struct Problem<'a> {
    /// Smooth part f.
    pub(crate) smooth: &'a dyn Objective,
    /// Penalty h.
    pub(crate) penalty: &'a Penalty,
    /// Signature J.
    pub(crate) signature: &'a Signature,
    /// Number of columns r.
    pub(crate) components: usize,
    /// True if det X = 1 is required as well.
    pub(crate) rotations: bool,
    /// Limit on the support of X.
    pub(crate) limit: Option<&'a Limit>,
}

impl<'a> Problem<'a> {
    /// Creates the problem of f, h, J and r.
    ///
    /// # Errors
    /// If n < 2, r is not in 1..=n, or the signature, penalty or data have other dimensions; or if the
    /// environment variable `ORTHOBCD_SIMD` is wrong.
    pub fn new(
        smooth: &'a dyn Objective,
        penalty: &'a Penalty,
        signature: &'a Signature,
        components: usize,
    ) -> Result<Self> {
        crate::simd::instructions()?;
        let (n, r) = (smooth.rows(), components);
        if n < 2 {
            return Err(Error::invalid("smooth", format!("must have at least 2 rows, got {n}")));
        }
        if r == 0 || r > n {
            return Err(Error::invalid("n_components", format!("must be between 1 and n = {n}, got {r}")));
        }
        if let Some(columns) = smooth.columns()
            && columns != r
        {
            return Err(Error::invalid(
                "n_components",
                format!("must be {columns}, as the objective's data has; got {r}"),
            ));
        }
        if signature.len() != n {
            return Err(Error::invalid("signature", format!("must have {n} entries, got {}", signature.len())));
        }
        penalty.check(n, r)?;
        Ok(Self { smooth, penalty, signature, components, rotations: false, limit: None })
    }

    /// Returns the problem over rotations alone: XᵀX = I and det X = 1, the group SO(n). Pairs of rows are
    /// rotated and not reflected.
    ///
    /// # Errors
    /// If X is not square or the signature not all +1.
    ///
    /// ```
    /// use ndarray::{Array2, array};
    /// use orthobcd::{Options, Problem, Quadratic, Signature, Threads, Unwatched, minimize, penalty::Penalty};
    ///
    /// // The rotation nearest to a reflection, by ⟨X, −B⟩.
    /// let linear = array![[-2.0, 0.0], [0.0, 1.0]];
    /// let smooth = Quadratic::new(Array2::zeros((2, 2)), Some(linear), None)?;
    /// let signature = Signature::stiefel(2);
    /// let problem = Problem::new(&smooth, &Penalty::NONE, &signature, 2)?.rotations_only()?;
    /// let solution = minimize(
    ///     &problem, array![[0.0, 1.0], [-1.0, 0.0]],
    ///     &Options::default(), &Threads::serial(), &mut Unwatched,
    /// )?;
    /// assert!((solution.objective + 1.0).abs() < 1e-12);
    /// # Ok::<(), orthobcd::Error>(())
    /// ```
    pub fn rotations_only(self) -> Result<Self> {
        let (n, r) = (self.smooth.rows(), self.components);
        if r != n || !self.signature.is_definite() || self.signature.sign(0) < 0.0 {
            let message = "must be none unless X is square and XᵀX = I";
            return Err(Error::invalid("determinant", message));
        }
        Ok(Self { rotations: true, ..self })
    }

    /// Returns the problem with a limit on the support of X. [`minimize_auto`](crate::minimize_auto) solves it.
    ///
    /// # Errors
    /// If f is not quadratic (for a limit on rows, not ½ tr(XᵀCX)), the signature is not all +1, h ≠ 0, or det X = 1 is
    /// required; or if the number of rows is not between r and n, or their penalty is negative or not finite. Limits on
    /// entries are checked when the problem is solved.
    ///
    /// ```
    /// use ndarray::Array2;
    /// use orthobcd::penalty::Penalty;
    /// use orthobcd::{
    ///     Auto, Cardinality, Limit, Options, Problem, Quadratic, Signature, Sparsity, Threads, Unwatched, minimize_auto,
    /// };
    ///
    /// let a = Array2::from_shape_fn((50, 8), |(i, j)| ((i * (j + 3)) % 17) as f64 - 8.0);
    /// let smooth = Quadratic::from_data(a.view())?;
    /// let signature = Signature::stiefel(8);
    /// let limit = Limit::Entries(Sparsity::new(Cardinality::Columns(vec![3, 2])));
    /// let problem = Problem::new(&smooth, &Penalty::NONE, &signature, 2)?.with_limit(&limit)?;
    /// let auto = Auto::default().with_options(Options::default().with_max_work(10_000_000));
    /// let found = minimize_auto(&problem, None, &auto, &Threads::serial(), &mut Unwatched)?;
    /// assert!(found.solution.x.column(1).iter().filter(|&&v| v != 0.0).count() <= 2);
    /// assert!(found.solution.feasibility < 1e-12);
    /// # Ok::<(), orthobcd::Error>(())
    /// ```
    pub fn with_limit(self, limit: &'a Limit) -> Result<Self> {
        let (form, r) = (self.quadratic()?, self.components);
        let invalid = |name, message: String| Err(Error::invalid(name, message));
        if !self.signature.is_definite() || self.signature.sign(0) < 0.0 {
            return invalid("signature", "must be all +1".to_owned());
        }
        let none = "must be none where nonzeros or rows are counted";
        if !self.penalty.is_none() {
            return invalid("penalty", none.to_owned());
        }
        if self.rotations {
            return invalid("determinant", none.to_owned());
        }
        if let Limit::Rows(rows) = limit {
            let n = form.order();
            if !form.is_trace_form() {
                let message = "must be ½ tr(XᵀCX) where rows are counted";
                return invalid("smooth", message.to_owned());
            }
            match *rows {
                RowSparsity::Count(count) if !(r..=n).contains(&count) => {
                    let message = format!("must be between r = {r} and n = {n}, got {count}");
                    return invalid("count", message);
                }
                RowSparsity::Penalty(lambda) if !(lambda.is_finite() && lambda >= 0.0) => {
                    let message = format!("must be finite and nonnegative, got {lambda}");
                    return invalid("lam", message);
                }
                _ => {}
            }
        }
        Ok(Self { limit: Some(limit), ..self })
    }

    /// Returns the limit on the support of X.
    pub fn limit(&self) -> Option<&'a Limit> {
        self.limit
    }

    /// Checks that there is no limit on the support of X.
    pub(crate) fn check_unlimited(&self) -> Result<()> {
        match self.limit {
            None => Ok(()),
            Some(_) => Err(Error::invalid("limit", "must be none here; minimize_auto keeps limits")),
        }
    }

    /// Returns the distance of X from the domain of h and, under a limit with X ≥ 0, from X ≥ 0.
    pub(crate) fn infeasibility(&self, x: ArrayView2<'_, f64>) -> f64 {
        let signed = self.limit.is_some_and(Limit::nonnegative);
        let penalty = if signed { &Penalty::NONNEGATIVE } else { self.penalty };
        penalty.infeasibility(x)
    }

    /// Returns h(X), with the penalty for rows of a [limit](Self::with_limit).
    pub(crate) fn penalty_value(&self, x: ArrayView2<'_, f64>) -> f64 {
        let rows = self.limit.map_or(0.0, |limit| limit.penalty(x));
        self.penalty.value(x) + rows
    }

    /// Returns f.
    pub fn smooth(&self) -> &'a dyn Objective {
        self.smooth
    }

    /// Returns h.
    pub fn penalty(&self) -> &'a Penalty {
        self.penalty
    }

    /// Returns J.
    pub fn signature(&self) -> &'a Signature {
        self.signature
    }

    /// Returns whether det X = 1 as well, see [`rotations_only`](Self::rotations_only).
    pub fn is_of_rotations(&self) -> bool {
        self.rotations
    }

    /// Returns the number of columns r.
    pub fn components(&self) -> usize {
        self.components
    }

    /// Returns f as a quadratic form.
    ///
    /// # Errors
    /// If f is not quadratic.
    pub(crate) fn quadratic(&self) -> Result<&'a dyn QuadraticForm> {
        self.smooth
            .quadratic()
            .ok_or_else(|| Error::invalid("smooth", "must be quadratic, and say so by Objective::quadratic"))
    }

    /// Returns a tracker of f from `x` on.
    pub(crate) fn tracker(&self, x: ArrayView2<'_, f64>, threads: &Threads) -> Box<dyn Tracker + 'a> {
        match self.smooth.quadratic() {
            Some(form) => form.tracker(x, threads),
            None => Box::new(Evaluated::new(self.smooth, x, threads)),
        }
    }

    /// Checks a start and, if f is not quadratic, [f at the start](Self::check_function).
    ///
    /// # Errors
    /// As [`check_point`](Self::check_point) and [`check_function`](Self::check_function).
    pub(crate) fn check_start(&self, x0: ArrayView2<'_, f64>) -> Result<()> {
        self.check_point(x0)?;
        if self.smooth.quadratic().is_some() {
            return Ok(());
        }
        let (x, threads) = (x0.to_owned(), Threads::serial());
        let mut gradient = Array2::zeros(x.dim());
        let value = self.smooth.value_and_gradient(x.view(), gradient.view_mut(), &threads);
        self.check_function(&x, (value, &gradient), &threads)
    }

    /// Returns a start, checked; for mixed signs and square X [repaired](manifold::j_orthogonal).
    ///
    /// # Errors
    /// As [`check_point`](Self::check_point), or if a square `x0` is not J-orthogonal.
    pub(crate) fn given_start(&self, x0: Array2<f64>) -> Result<Array2<f64>> {
        self.check_point(x0.view())?;
        if self.signature.is_definite() || x0.nrows() != x0.ncols() {
            return Ok(x0);
        }
        manifold::j_orthogonal("x0", x0, self.signature)
    }

    /// Checks that a matrix is n×r and finite; `name` is its name in errors.
    pub(crate) fn check_matrix(&self, name: &'static str, x: ArrayView2<'_, f64>) -> Result<()> {
        let (n, r) = (self.smooth.rows(), self.components);
        if x.dim() != (n, r) {
            return Err(Error::invalid(name, format!("must have shape ({n}, {r}), got {:?}", x.dim())));
        }
        match x.iter().all(|v| v.is_finite()) {
            true => Ok(()),
            false => Err(Error::invalid(name, "must be finite")),
        }
    }

    /// Checks a point to start from.
    ///
    /// # Errors
    /// If `x0` is not n×r, not finite, or outside the domain of the penalty (negative under X ≥ 0).
    pub(crate) fn check_point(&self, x0: ArrayView2<'_, f64>) -> Result<()> {
        self.check_matrix("x0", x0)?;
        let outside = self.penalty.infeasibility(x0);
        if outside > 0.0 {
            return Err(Error::invalid(
                "x0",
                format!("must be feasible for the penalty, it is off by {outside:.3e}; pass a start that is"),
            ));
        }
        if !self.holds(x0) {
            let message = "must have determinant +1; pass a rotation";
            return Err(Error::invalid("x0", message));
        }
        Ok(())
    }

    /// Returns whether an orthogonal X has the required determinant.
    pub(crate) fn holds(&self, x: ArrayView2<'_, f64>) -> bool {
        !self.rotations || linalg::determinant(x) > 0.0
    }

    /// Returns X if it has the required determinant, else [`mirrored`](Self::mirrored).
    pub(crate) fn oriented(&self, x: Array2<f64>, threads: &Threads) -> Array2<f64> {
        match self.holds(x.view()) {
            true => x,
            false => self.mirrored(x, threads),
        }
    }

    /// Returns a neighbour of a square X of the other determinant. It negates the column that costs least to first
    /// order or, if h allows none, swaps the two rows that cost least.
    pub(crate) fn mirrored(&self, mut x: Array2<f64>, threads: &Threads) -> Array2<f64> {
        let n = x.nrows();
        let pull = self.smooth.gradient(x.view(), threads);
        let mut best = (f64::INFINITY, 0);
        for k in 0..n {
            let slope = pull.column(k).dot(&x.column(k));
            x.column_mut(k).mapv_inplace(|v| -v);
            let cost = self.penalty.value(x.view()) - 2.0 * slope;
            let allowed = self.penalty.infeasibility(x.view()) == 0.0;
            x.column_mut(k).mapv_inplace(|v| -v);
            if allowed && cost < best.0 {
                best = (cost, k);
            }
        }
        if best.0 < f64::INFINITY {
            x.column_mut(best.1).mapv_inplace(|v| -v);
            return x;
        }
        let products = pull.dot(&x.t());
        let cost = |i: usize, j: usize| {
            let [x, y] = [i, j].map(|row| slice_of(x.row(row)).into_owned());
            let penalties = self.penalty.change(i, &x, &y) + self.penalty.change(j, &y, &x);
            let [own, cross] =
                [[(i, i), (j, j)], [(i, j), (j, i)]].map(|[a, b]| products[[a.0, a.1]] + products[[b.0, b.1]]);
            cross - own + penalties
        };
        let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
        let cheaper = |a: &(usize, usize), b: &(usize, usize)| cost(a.0, a.1).total_cmp(&cost(b.0, b.1));
        if let Some((i, j)) = pairs.min_by(cheaper) {
            for k in 0..n {
                x.swap([i, k], [j, k]);
            }
        }
        x
    }

    /// Returns F at X; NaN if X is not n×r.
    pub fn objective(&self, x: ArrayView2<'_, f64>, threads: &Threads) -> f64 {
        if x.dim() != (self.smooth.rows(), self.components) {
            return f64::NAN;
        }
        self.smooth.value(x, threads) + self.penalty_value(x)
    }

    /// Returns c of the multiple cJ nearest to C: the mean of J_ii C_ii; 0 if f is not quadratic.
    pub(crate) fn shift(&self) -> f64 {
        let Some(form) = self.smooth.quadratic() else {
            return 0.0;
        };
        let diagonal = form.diagonal();
        let trace: f64 = diagonal.iter().enumerate().map(|(i, &c)| self.signature.sign(i) * c).sum();
        trace / diagonal.len() as f64
    }

    /// Returns the part of f that is the same wherever XᵀJX = `k`; 0 if f is not quadratic. C + cJ instead of
    /// C adds ½c⟨K, D⟩ to f at every feasible X. The part is this term for c = mean J_ii C_ii, which makes
    /// cJ nearest to C.
    pub fn constant(&self, k: ArrayView2<'_, f64>) -> f64 {
        let weight = match self.smooth.quadratic().and_then(QuadraticForm::metric) {
            None => k.diag().sum(),
            Some(metric) => (&metric * &k).sum(),
        };
        0.5 * self.shift() * weight
    }

    /// Returns the magnitude of F to which tolerances are relative: |f − constant| + |h|, with
    /// [`constant`](Self::constant) of the XᵀJX of the point. It scales with F, and is the same for C + cJ.
    /// It is at least the rounding of the constant, so that rounding of a constant f does not count.
    pub fn magnitude(&self, smooth_value: f64, penalty_value: f64, constant: f64) -> f64 {
        let size = (smooth_value - constant).abs() + penalty_value.abs();
        size.max(f64::EPSILON * constant.abs())
    }
}
