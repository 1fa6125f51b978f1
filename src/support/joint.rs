//! Columns that share rows, on given supports: min Σ ½x_tᵀB_t x_t + l_tᵀx_t over orthonormal columns with
//! these supports.
//!
//! Newton's method within a [trust region](crate::riemann::trust) on the manifold of the pattern; the
//! retraction to {XᵀX = I} is [Newton's method](crate::manifold::newton) along the normals. Only pairs of
//! columns that share rows give constraints. A step costs a product with every B_t, and the normal equations
//! of the c constraints, O(c Σ overlaps + c³).

use ndarray::{Array2, ArrayView2};

use super::pattern::SCALAR;
use crate::limits::TaskWork;
use crate::linalg::{Cholesky, dot};
use crate::manifold::newton;
use crate::numerics;
use crate::riemann::trust;

/// Norm of the Riemannian gradient, relative to the scale of f, at which a point is stationary; the error of
/// f is of the order of its square.
const STATIONARY: f64 = 1e-9;

/// Most Newton steps of a retraction.
const RETRACTION: usize = 12;

/// Factor on the last decrease: a trial is unpromising if a decrease of this size would not reach the goal.
const HOPE: f64 = 4.0;

/// Largest entry-wise violation of XᵀX = I that counts as rounding.
const FEASIBLE: f64 = 1e-15;

/// First and largest radius of the trust region.
const RADIUS: (f64, f64) = (0.5, 2.0);

/// Cost of a multiply-add of an inner product, relative to one of a matrix product.
const DOT: f64 = 3.0;

/// Work of the calls and allocations of a step, which dominate with few entries.
const STEP: f64 = 2e3;

/// Damping of the normal equations, relative to their diagonal. They are singular if columns vanish in their
/// shared rows.
const DAMPING: f64 = 1e-13;

/// One column: its quadratic form by rows, and its linear term.
pub(crate) struct ColumnForm {
    pub(crate) rows: Vec<usize>,
    pub(crate) matrix: Vec<f64>,
    pub(crate) linear: Vec<f64>,
}

impl ColumnForm {
    /// Returns ½vᵀBv + lᵀv.
    pub(crate) fn value(&self, v: &[f64]) -> f64 {
        let k = v.len();
        let quadratic: f64 = (0..k).map(|a| v[a] * dot(&self.matrix[a * k..(a + 1) * k], v)).sum();
        0.5 * quadratic + dot(&self.linear, v)
    }

    /// Computes Bv.
    pub(crate) fn product(&self, v: &[f64], target: &mut [f64]) {
        let k = v.len();
        for (a, t) in target.iter_mut().enumerate() {
            *t = dot(&self.matrix[a * k..(a + 1) * k], v);
        }
    }
}

/// A group of columns connected by shared rows.
///
/// A constraint is ⟨x_s, x_t⟩ = δ_st for columns that share rows. Constraint a is given by the index pairs
/// `places[from[a]..from[a + 1]]` of the shared entries in the vector of all entries, and by its columns
/// `ends[a]`. The norm constraints (s = t) come first.
pub(crate) struct Joint<'a> {
    blocks: &'a [ColumnForm],
    work: &'a TaskWork<'a>,
    offsets: Vec<usize>,
    from: Vec<usize>,
    ends: Vec<(usize, usize)>,
    places: Vec<(usize, usize)>,
    /// Scale of f, to which gradients are relative.
    scale: f64,
    size: usize,
}

/// The normal equations at a point: the gradients of the constraints, as values at their index pairs, and
/// their factored Gram matrix.
struct Normal {
    values: Vec<(f64, f64)>,
    factor: Cholesky,
    multipliers: Vec<f64>,
}

impl<'a> Joint<'a> {
    pub(crate) fn new(blocks: &'a [ColumnForm], scale: f64, work: &'a TaskWork<'a>) -> Self {
        let mut offsets = vec![0];
        for block in blocks {
            offsets.push(offsets[offsets.len() - 1] + block.rows.len());
        }
        let (mut from, mut ends) = (vec![0], Vec::new());
        let mut places = Vec::new();
        let r = blocks.len();
        let apart = (0..r).flat_map(|t| (0..t).map(move |s| (s, t)));
        for (s, t) in (0..r).map(|t| (t, t)).chain(apart) {
            let shared = common(&blocks[s].rows, &blocks[t].rows);
            places.extend(shared.map(|(a, b)| (offsets[s] + a, offsets[t] + b)));
            if places.len() > from[from.len() - 1] {
                from.push(places.len());
                ends.push((s, t));
            }
        }
        Self { blocks, work, size: offsets[r], offsets, from, ends, places, scale }
    }

    /// Charges the assembly and factorization of the normal equations.
    fn spend_normal(&self) {
        let (c, r) = (self.constraints(), self.blocks.len());
        let meeting = self.places.len() * (2 * c).div_ceil(r);
        self.work.spend(STEP + DOT * (c * c * c / 6) as f64 + SCALAR * (meeting + self.size) as f64);
    }

    /// Charges a product with every B_t and a projection.
    fn spend_product(&self) {
        let products: usize = self.blocks.iter().map(|b| b.matrix.len()).sum();
        let c = self.constraints();
        let scalar = 4 * self.places.len() + 8 * self.size;
        self.work.spend(STEP + DOT * (products + c * c) as f64 + SCALAR * scalar as f64);
    }

    fn constraints(&self) -> usize {
        self.from.len() - 1
    }

    /// Returns the index pairs of constraint a, and whether it is a norm constraint.
    fn constraint(&self, a: usize) -> (&[(usize, usize)], bool) {
        (&self.places[self.from[a]..self.from[a + 1]], a < self.blocks.len())
    }

    fn value(&self, x: &[f64]) -> f64 {
        let part = |t: usize| &x[self.offsets[t]..self.offsets[t + 1]];
        (0..self.blocks.len()).map(|t| self.blocks[t].value(part(t))).sum()
    }

    /// Computes Bx, all columns.
    fn product(&self, x: &[f64], image: &mut [f64]) {
        for (t, block) in self.blocks.iter().enumerate() {
            let range = self.offsets[t]..self.offsets[t + 1];
            block.product(&x[range.clone()], &mut image[range]);
        }
    }

    /// Returns the entries of XᵀX − I, halved on the diagonal, and the largest magnitude.
    fn violation(&self, x: &[f64]) -> (Vec<f64>, f64) {
        let of = |a: usize| {
            let (places, norm) = self.constraint(a);
            let product: f64 = places.iter().map(|&(i, j)| x[i] * x[j]).sum();
            if norm { 0.5 * (product - 1.0) } else { product }
        };
        let violation: Vec<f64> = (0..self.constraints()).map(of).collect();
        let largest = violation.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        (violation, largest)
    }

    /// Computes `sum −= Σ_a λ_a ∇c_a` at x.
    fn subtract(&self, x: &[f64], multipliers: &[f64], sum: &mut [f64]) {
        for (a, &lambda) in multipliers.iter().enumerate() {
            let (places, norm) = self.constraint(a);
            for &(i, j) in places {
                sum[j] -= lambda * x[i];
                if !norm {
                    sum[i] -= lambda * x[j];
                }
            }
        }
    }

    fn normal(&self, x: &[f64]) -> Option<Normal> {
        self.spend_normal();
        let c = self.constraints();
        let mut values = Vec::with_capacity(self.places.len());
        for a in 0..c {
            let (places, norm) = self.constraint(a);
            values.extend(places.iter().map(|&(i, j)| (if norm { 0.0 } else { x[j] }, x[i])));
        }
        let mut factor = vec![0.0; c * c];
        let mut dense = vec![0.0; self.size];
        let pairs = |a: usize| {
            let range = self.from[a]..self.from[a + 1];
            self.places[range.clone()].iter().zip(&values[range])
        };
        for a in 0..c {
            for (&(i, j), &(v, w)) in pairs(a) {
                dense[i] += v;
                dense[j] += w;
            }
            let meets = |b: &usize| {
                let (s, t) = self.ends[a];
                let (u, v) = self.ends[*b];
                s == u || s == v || t == u || t == v
            };
            for b in (0..=a).filter(meets) {
                let products = pairs(b).map(|(&(i, j), &(v, w))| v * dense[i] + w * dense[j]);
                factor[a * c + b] = products.sum();
            }
            for (&(i, j), _) in pairs(a) {
                (dense[i], dense[j]) = (0.0, 0.0);
            }
        }
        let damping = DAMPING * (0..c).fold(0.0f64, |m, a| m.max(factor[a * c + a]));
        (0..c).for_each(|a| factor[a * c + a] += damping);
        Some(Normal {
            values,
            factor: Cholesky::new(ArrayView2::from_shape((c, c), &factor).ok()?)?,
            multipliers: vec![0.0; c],
        })
    }

    /// Projects a vector onto the tangent space; `normal` keeps the multipliers of the removed part.
    fn project(&self, normal: &mut Normal, vector: &mut [f64]) {
        for a in 0..self.constraints() {
            let range = self.from[a]..self.from[a + 1];
            let pairs = self.places[range.clone()].iter().zip(&normal.values[range]);
            normal.multipliers[a] = pairs.map(|(&(i, j), &(v, w))| v * vector[i] + w * vector[j]).sum();
        }
        normal.factor.solve(&mut normal.multipliers);
        for (a, &lambda) in normal.multipliers.iter().enumerate() {
            for k in self.from[a]..self.from[a + 1] {
                let ((i, j), (v, w)) = (self.places[k], normal.values[k]);
                vector[i] -= lambda * v;
                vector[j] -= lambda * w;
            }
        }
    }

    /// Returns the point of the manifold near x, by Newton's method along the normals.
    fn retracted(&self, x: Vec<f64>) -> Option<Vec<f64>> {
        let corrected = |x: &Vec<f64>, violation: &Vec<f64>, gap: f64| {
            // Farther away a step need not come nearer.
            if !(gap < 1.0) || self.work.expired() {
                return None;
            }
            let (mut multipliers, mut next) = (violation.clone(), x.clone());
            self.normal(x)?.factor.solve(&mut multipliers);
            self.subtract(x, &multipliers, &mut next);
            Some(next)
        };
        let (x, gap) = newton(x, RETRACTION, FEASIBLE, |x| self.violation(x), corrected);
        (gap <= numerics::DRIFT).then_some(x)
    }

    /// Returns a stationary point of f from `x` (near the manifold), and f there. None if the manifold is not
    /// reached, or, with a `goal`, if f is not expected to fall below it. If the task expires, the last point
    /// is returned.
    pub(crate) fn minimised(&self, x: Vec<f64>, goal: Option<f64>) -> Option<(Vec<f64>, f64)> {
        let mut x = self.retracted(x)?;
        let mut value = self.value(&x);
        let mut radius = RADIUS.0;
        let mut gradient = vec![0.0; self.size];
        for _ in 0..numerics::STEPS {
            if self.work.expired() {
                break;
            }
            let mut normal = self.normal(&x)?;
            self.spend_product();
            self.product(&x, &mut gradient);
            for (t, block) in self.blocks.iter().enumerate() {
                let part = &mut gradient[self.offsets[t]..self.offsets[t + 1]];
                part.iter_mut().zip(&block.linear).for_each(|(g, l)| *g += l);
            }
            self.project(&mut normal, &mut gradient);
            let norm = dot(&gradient, &gradient).sqrt();
            if !(norm > STATIONARY * self.scale) {
                break;
            }
            let direction = self.direction(&mut normal, &gradient, radius)?;
            let model = direction.decrease(&as_column(&gradient)?);
            let moved = direction.step.iter().zip(&x).map(|(m, x)| m + x).collect();
            let trial = self.retracted(moved).map(|next| (self.value(&next), next));
            let gain = trial.as_ref().map_or(f64::NEG_INFINITY, |trial| value - trial.0);
            let ratio = gain / model.max(f64::MIN_POSITIVE);
            radius = direction.radius(radius, ratio, RADIUS.1);
            if let (true, Some((lower, next))) = (gain > 0.0, trial) {
                (x, value) = (next, lower);
                if goal.is_some_and(|goal| value - HOPE * gain > goal) {
                    return None;
                }
            } else if model <= numerics::ROUNDING * self.scale || radius < 1e-10 {
                break;
            }
        }
        Some((x, value))
    }

    /// Returns the model of f after conjugate gradients within the radius.
    fn direction(&self, normal: &mut Normal, gradient: &[f64], radius: f64) -> Option<trust::Truncated> {
        let multipliers = normal.multipliers.clone();
        let start = dot(gradient, gradient).sqrt();
        // The tolerance gives quadratic convergence.
        let goal = start * (start / self.scale).min(0.1);
        let mut model = trust::Truncated::new(&as_column(gradient)?, goal);
        for _ in 0..numerics::STEPS.min(self.size + 2) {
            if self.work.expired() {
                break;
            }
            self.spend_product();
            let direction = model.direction.as_slice()?;
            let mut bent = vec![0.0; self.size];
            self.product(direction, &mut bent);
            self.subtract(direction, &multipliers, &mut bent);
            self.project(normal, &mut bent);
            if model.advance(&as_column(&bent)?, radius) {
                break;
            }
        }
        Some(model)
    }
}

/// Returns a vector as a matrix of one column.
fn as_column(v: &[f64]) -> Option<Array2<f64>> {
    Array2::from_shape_vec((v.len(), 1), v.to_vec()).ok()
}

/// Returns the positions of common entries of two ascending lists.
pub(crate) fn common<'r>(a: &'r [usize], b: &'r [usize]) -> impl Iterator<Item = (usize, usize)> + 'r {
    let (mut i, mut j) = (0, 0);
    std::iter::from_fn(move || {
        while i < a.len() && j < b.len() {
            match a[i].cmp(&b[j]) {
                std::cmp::Ordering::Less => i += 1,
                std::cmp::Ordering::Greater => j += 1,
                std::cmp::Ordering::Equal => {
                    (i, j) = (i + 1, j + 1);
                    return Some((i - 1, j - 1));
                }
            }
        }
        None
    })
}
