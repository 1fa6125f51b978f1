//! What is solved: f, h, J and the number of columns.

use ndarray::ArrayView2;

use crate::error::{Error, Result};
use crate::objective::{Evaluated, Objective, QuadraticForm, Tracker};
use crate::penalty::Penalty;
use crate::signature::Signature;
use crate::threads::Threads;

/// min f(X) + h(X) subject to XᵀJX = X₀ᵀJX₀, checked when it is made.
#[derive(Clone, Copy)]
pub struct Problem<'a, P: Penalty> {
    /// f.
    pub(crate) smooth: &'a dyn Objective,
    /// h.
    pub(crate) penalty: &'a P,
    /// J.
    pub(crate) signature: &'a Signature,
    /// Number of columns r.
    pub(crate) components: usize,
}

impl<'a, P: Penalty> Problem<'a, P> {
    /// The problem of f, h, J and r.
    ///
    /// # Errors
    /// If n < 2, r is not in 1..=n, or the signature, penalty or data have other dimensions; or if the
    /// environment variable `ORTHOBCD_SIMD` is wrong.
    pub fn new(
        smooth: &'a dyn Objective,
        penalty: &'a P,
        signature: &'a Signature,
        components: usize,
    ) -> Result<Self> {
        crate::simd::instructions()?;
        let (n, r) = (smooth.rows(), components);
        if n < 2 {
            return Err(Error::invalid(
                "smooth",
                format!("must have at least 2 rows, got {n}"),
            ));
        }
        if r == 0 || r > n {
            return Err(Error::invalid(
                "n_components",
                format!("must be between 1 and n = {n}, got {r}"),
            ));
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
            return Err(Error::invalid(
                "signature",
                format!("must have {n} entries, got {}", signature.len()),
            ));
        }
        penalty.check(n, r)?;
        Ok(Self {
            smooth,
            penalty,
            signature,
            components,
        })
    }

    /// f.
    pub fn smooth(&self) -> &'a dyn Objective {
        self.smooth
    }

    /// h.
    pub fn penalty(&self) -> &'a P {
        self.penalty
    }

    /// J.
    pub fn signature(&self) -> &'a Signature {
        self.signature
    }

    /// The number of columns r.
    pub fn components(&self) -> usize {
        self.components
    }

    /// f as the quadratic form that it has to be here.
    ///
    /// # Errors
    /// If it is none.
    pub(crate) fn quadratic(&self) -> Result<&'a dyn QuadraticForm> {
        self.smooth.quadratic().ok_or_else(|| {
            Error::invalid(
                "smooth",
                "must be quadratic, and say so by Objective::quadratic",
            )
        })
    }

    /// What follows f from `x` on.
    pub(crate) fn tracker(
        &self,
        x: ArrayView2<'_, f64>,
        threads: &Threads,
    ) -> Box<dyn Tracker + 'a> {
        match self.smooth.quadratic() {
            Some(form) => form.tracker(x, threads),
            None => Box::new(Evaluated::new(self.smooth, x, threads)),
        }
    }

    /// Checks a start.
    ///
    /// # Errors
    /// If it is not n×r, not finite, or outside the domain of the penalty (negative under X ≥ 0).
    pub(crate) fn check_start(&self, x0: ArrayView2<'_, f64>) -> Result<()> {
        let (n, r) = (self.smooth.rows(), self.components);
        if x0.dim() != (n, r) {
            return Err(Error::invalid(
                "x0",
                format!("must have shape ({n}, {r}), got {:?}", x0.dim()),
            ));
        }
        if x0.iter().any(|v| !v.is_finite()) {
            return Err(Error::invalid("x0", "must be finite"));
        }
        let outside = self.penalty.infeasibility(x0);
        if outside > 0.0 {
            return Err(Error::invalid(
                "x0",
                format!(
                    "must be feasible for the penalty, it is off by {outside:.3e}; pass a start that is"
                ),
            ));
        }
        Ok(())
    }

    /// F at X; NaN for an X that is not n×r.
    pub fn objective(&self, x: ArrayView2<'_, f64>, threads: &Threads) -> f64 {
        if x.dim() != (self.smooth.rows(), self.components) {
            return f64::NAN;
        }
        self.smooth.value(x, threads) + self.penalty.value(x)
    }

    /// The part of f that is the same wherever XᵀJX = `k`: C + cJ instead of C adds ½c⟨K, D⟩ to f all
    /// over the constraint, and this is that for c = mean J_ii C_ii, the multiple of J nearest to C. 0 for an f
    /// that is not quadratic.
    pub fn constant(&self, k: ArrayView2<'_, f64>) -> f64 {
        let Some(form) = self.smooth.quadratic() else {
            return 0.0;
        };
        let diagonal = form.diagonal();
        let trace: f64 = diagonal
            .iter()
            .enumerate()
            .map(|(i, &c)| self.signature.sign(i) * c)
            .sum();
        let weight = match form.metric() {
            None => k.diag().sum(),
            Some(metric) => (&metric * &k).sum(),
        };
        0.5 * (trace / diagonal.len() as f64) * weight
    }

    /// The size of F that tolerances are relative to: |f − constant| + |h|, with
    /// [`constant`](Self::constant) of the XᵀJX of the point. It scales with F, and does not change
    /// with C + cJ.
    pub fn magnitude(&self, smooth_value: f64, penalty_value: f64, constant: f64) -> f64 {
        (smooth_value - constant).abs() + penalty_value.abs()
    }
}
