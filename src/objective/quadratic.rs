//! `½⟨X, C X D⟩ + ⟨linear, X⟩` with a stored dense symmetric C.

use ndarray::{Array2, ArrayView2, ArrayViewMut1, CowArray, Ix2, s};

use super::{GoOn, LARGEST, QuadraticForm, SparseVector, Spectrum, check_coefficients, check_data, largest};
use crate::error::{Error, Result};
use crate::linalg::{add_product, multiple_of_identity};
use crate::rows::{PIECE, Rows};
use crate::threads::{CHUNK_ROWS, Threads};

/// `½⟨X, C X D⟩ + ⟨linear, X⟩`.
#[derive(Debug, Clone)]
pub struct Quadratic<'a> {
    /// C, stored by rows.
    c: CowArray<'a, f64, Ix2>,
    linear: Option<Array2<f64>>,
    metric: Option<Array2<f64>>,
    /// Number of columns of the linear term or the metric as passed by the caller.
    columns: Option<usize>,
    spectrum: Spectrum,
    factor: Option<(f64, Array2<f64>)>,
    /// c of C = cI, whose products need no matrix.
    multiple: Option<f64>,
}

impl<'a> Quadratic<'a> {
    /// Creates the objective from C (n×n, symmetric; a view is not copied if it is contiguous), an optional
    /// linear term (n×r) and an optional column metric D (r×r, symmetric; default identity).
    ///
    /// A linear term of zeros is dropped, and D = cI is multiplied into C: the objective then has the same
    /// bits as one built from cC without these.
    ///
    /// # Errors
    /// If a shape does not fit, an entry is not finite, C or D is not exactly symmetric, or the largest
    /// coefficient is neither 0 nor in [`SMALLEST`](super::SMALLEST) … [`LARGEST`].
    pub fn new(
        c: impl Into<CowArray<'a, f64, Ix2>>,
        linear: Option<Array2<f64>>,
        metric: Option<Array2<f64>>,
    ) -> Result<Self> {
        let c: CowArray<'a, f64, Ix2> = c.into();
        check_symmetric("C", c.view())?;
        if let Some(linear) = &linear
            && (linear.nrows() != c.nrows() || linear.ncols() == 0)
        {
            return Err(Error::invalid(
                "linear",
                format!("must have {} rows, got shape {:?}", c.nrows(), linear.dim()),
            ));
        }
        if let Some(metric) = &metric {
            check_symmetric("D", metric.view())?;
            if let Some(linear) = &linear
                && linear.ncols() != metric.nrows()
            {
                return Err(Error::invalid("D", format!("must have {} rows to match linear", linear.ncols())));
            }
        }
        let size = |name, a: Option<ArrayView2<'_, f64>>, missing| match a {
            None => Ok(missing),
            Some(a) => match largest(a) {
                size if size.is_nan() => Err(Error::invalid(name, "must be finite")),
                size if size > LARGEST => check_coefficients(name, size).map(|()| size),
                size => Ok(size),
            },
        };
        let (d, l) = (
            size("D", metric.as_ref().map(|a| a.view()), 1.0)?,
            size("linear", linear.as_ref().map(|a| a.view()), 0.0)?,
        );
        let product = size("C", Some(c.view()), 0.0)? * d;
        check_coefficients(if l > product { "linear" } else { "C" }, product.max(l))?;
        let columns = linear.as_ref().or(metric.as_ref()).map(Array2::ncols);
        let (c, metric) = match metric.as_ref().and_then(|d| multiple_of_identity(d.view())) {
            Some(multiple) => (CowArray::from(c.mapv(|v| v * multiple)), None),
            None => (c, metric),
        };
        // A symmetric matrix stored by columns is one stored by rows.
        let c = match c.t().is_standard_layout() {
            true => c.reversed_axes(),
            false if c.is_standard_layout() => c,
            false => Rows::copied(c.view()).into_array().into(),
        };
        let linear = linear.filter(|l| l.iter().any(|&v| v != 0.0));
        let standard = |a: Array2<f64>| Rows::from(a).into_array();
        Ok(Self {
            linear: linear.map(standard),
            metric: metric.map(standard),
            columns,
            spectrum: Spectrum::default(),
            factor: None,
            multiple: multiple_of_identity(c.view()),
            c,
        })
    }

    /// Creates the objective of PCA, `−½‖A X‖²`, with C = −AᵀA formed.
    ///
    /// # Errors
    /// If A is empty, not finite, or its largest magnitude is neither 0 nor in 1e-50 … 1e50.
    pub fn from_data(a: ArrayView2<'_, f64>) -> Result<Self> {
        if a.is_empty() {
            return Err(Error::invalid("A", "must not be empty"));
        }
        check_data("A", &a.as_standard_layout())?;
        let mut c = -a.t().dot(&a);
        for i in 0..c.nrows() {
            for j in 0..i {
                c[[i, j]] = c[[j, i]];
            }
        }
        Self::new(c, None, None)
    }

    /// Stores the factor Aᵀ (n×m) of C = `scale`·AᵀA, to be returned by [`factor`](QuadraticForm::factor).
    pub(crate) fn with_factor(mut self, scale: f64, at: Array2<f64>) -> Self {
        self.factor = Some((scale, Rows::from(at).into_array()));
        self
    }

    /// C.
    pub fn matrix(&self) -> ArrayView2<'_, f64> {
        self.c.view()
    }
}

fn check_symmetric(name: &'static str, a: ArrayView2<'_, f64>) -> Result<()> {
    if a.nrows() != a.ncols() || a.is_empty() {
        return Err(Error::invalid(name, format!("must be square and not empty, got shape {:?}", a.dim())));
    }
    if a.iter().any(|v| !v.is_finite()) {
        return Err(Error::invalid(name, "must be finite"));
    }
    if !is_symmetric(a) {
        return Err(Error::invalid(name, "must be exactly symmetric"));
    }
    Ok(())
}

/// Returns whether `a` is exactly symmetric, comparing square pieces that fit into the cache.
fn is_symmetric(a: ArrayView2<'_, f64>) -> bool {
    let n = a.nrows();
    let piece = |at: usize| at..n.min(at + PIECE);
    (0..n).step_by(PIECE).all(|i| {
        (i..n).step_by(PIECE).all(|j| {
            let (upper, lower) = (a.slice(s![piece(i), piece(j)]), a.slice(s![piece(j), piece(i)]));
            upper == lower.t()
        })
    })
}

impl QuadraticForm for Quadratic<'_> {
    fn order(&self) -> usize {
        self.c.nrows()
    }

    fn fixed_columns(&self) -> Option<usize> {
        self.columns
    }

    fn apply_while(&self, x: ArrayView2<'_, f64>, threads: &Threads, go_on: GoOn<'_>) -> Option<Array2<f64>> {
        if let Some(multiple) = self.multiple {
            return go_on().then(|| &x * multiple);
        }
        let (mut y, r) = (Rows::zeros(x.dim()), x.ncols());
        let work = self.c.len() * r;
        threads.for_chunks(y.entries_mut(), CHUNK_ROWS * r, work, |piece, target| {
            if go_on() {
                let from = piece * CHUNK_ROWS;
                let c = self.c.slice(s![from..from + target.len() / r, ..]);
                add_product(c, x, target);
            }
        });
        go_on().then(|| y.into_array())
    }

    fn diagonal(&self) -> Vec<f64> {
        self.c.diag().to_vec()
    }

    fn cache(&self) -> &Spectrum {
        &self.spectrum
    }

    fn metric(&self) -> Option<ArrayView2<'_, f64>> {
        self.metric.as_ref().map(|d| d.view())
    }

    fn linear(&self) -> Option<ArrayView2<'_, f64>> {
        self.linear.as_ref().map(|l| l.view())
    }

    fn dense(&self) -> Option<ArrayView2<'_, f64>> {
        Some(self.c.view())
    }

    fn factor(&self) -> Option<(f64, ArrayView2<'_, f64>)> {
        let factor = self.factor.as_ref();
        factor.map(|(scale, at)| (*scale, at.view()))
    }

    fn add_products(&self, vectors: &[SparseVector<'_>], targets: &mut [&mut [f64]]) {
        for ((rows, values), target) in vectors.iter().zip(targets) {
            for (&i, &v) in rows.iter().zip(*values) {
                ArrayViewMut1::from(&mut **target).scaled_add(v, &self.c.row(i));
            }
        }
    }

    fn entry(&self, i: usize, j: usize) -> f64 {
        self.c[[i, j]]
    }
}
