//! Inner product, double projection and geodesic distance.
//!
//! Write `x = (s, t)`, s the coordinates of sign +1 and t those of sign −1. The double projection (Law and
//! Stam, NeurIPS 2020) takes any x with t ≠ 0 to the pseudo-hyperboloid,
//!
//! ```text
//! φ(s, t) = (s, √(ρ² + ‖s‖²)·t/‖t‖),
//! ```
//!
//! and has the inverse `(s, t) ↦ (s, t/‖t‖)` on {‖t‖ = 1}. With `z = |⟨x, y⟩|/ρ²` the distance is
//! `d = ρ arccosh z` for z ≥ 1 and `ρ arccos z` for z < 1, so that
//! `∂d/∂⟨x, y⟩ = ± sign⟨x, y⟩ / (ρ√|z² − 1|)`, + for z ≥ 1.
//!
//! The slope is infinite at z = 1 and jumps at z = 0. Within [`DISTANCE_EPSILON`] of z = 1 distance and
//! slope are zero, within it of z = 0 the slope is zero; elsewhere both are exact to rounding.
//!
//! Far out z − 1 cancels: ⟨x, y⟩ is a difference of terms of the size ‖x‖‖y‖. There z − 1 is computed from the
//! polar coordinates x = ρ(ŝ sinh R, t̂ cosh R) of x and y, whose digits do not depend on R,
//!
//! ```text
//! z − 1 = 2 sinh²((R − R′)/2) + ½ sinh R sinh R′ ‖ŝ − ŝ′‖² − ½ cosh R cosh R′ ‖t̂ − t̂′‖².
//! ```
//!
//! Arrays are zero or have their largest magnitude within 1e-100 … 1e100, and ρ is within 1e-50 … 1e50: z then
//! neither overflows nor vanishes.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Zip};

use crate::internal::{Rows, START_TOLERANCE, check_size, largest, slice_of};
use crate::objective::DATA;
use crate::{Error, Result, Signature};

/// |z − 1| up to which a distance and its slope count as zero, and z up to which the slope does.
pub(crate) const DISTANCE_EPSILON: f64 = 1e-8;

/// Bounds of the largest magnitude of an array, if it is not zero.
const SIZES: (f64, f64) = (1e-100, 1e100);

/// Part of ‖x‖‖y‖ below which ρ²|z − 1| comes from the polar coordinates of x and y: ⟨x, y⟩ gives it fewer than 7
/// digits.
const CANCELLED: f64 = 1e7 * f64::EPSILON;

/// Square of a norm below which it may have lost digits to underflow.
const UNDERFLOW: f64 = 1e-280;

/// The pseudo-hyperboloid `{x : ⟨x, x⟩ = −ρ²}`.
#[derive(Debug, Clone)]
pub struct Pseudohyperboloid {
    signs: Array1<f64>,
    positive: Array1<f64>,
    radius: f64,
}

/// Norms from the double projection of one row, for its derivative.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Radii {
    /// ‖t‖ of the projection, √(ρ² + ‖s‖²).
    pub(crate) projected: f64,
    /// ‖t‖ before the projection.
    pub(crate) time: f64,
}

impl Pseudohyperboloid {
    /// Creates the pseudo-hyperboloid of a signature with at least one −1.
    ///
    /// # Errors
    /// If no sign is −1, or ρ is not within 1e-50 … 1e50.
    pub fn new(signature: &Signature, radius: f64) -> Result<Self> {
        if signature.signs().iter().all(|&s| s > 0) {
            return Err(Error::invalid("signature", "must hold at least one -1"));
        }
        let (low, high) = DATA;
        if !(low..=high).contains(&radius) {
            return Err(Error::invalid("radius", format!("must be between {low:e} and {high:e}, got {radius:e}")));
        }
        let signs: Array1<f64> = signature.signs().iter().map(|&s| f64::from(s)).collect();
        Ok(Self { positive: signs.mapv(|s| f64::from(u8::from(s > 0.0))), signs, radius })
    }

    /// Returns the number of coordinates n.
    pub fn dim(&self) -> usize {
        self.signs.len()
    }

    /// Returns ρ.
    pub fn radius(&self) -> f64 {
        self.radius
    }

    /// Returns the diagonal of J.
    pub fn signs(&self) -> ArrayView1<'_, f64> {
        self.signs.view()
    }

    /// Returns ⟨x, y⟩ = xᵀJy.
    #[inline]
    pub fn inner(&self, x: ArrayView1<'_, f64>, y: ArrayView1<'_, f64>) -> f64 {
        Zip::from(x).and(y).and(&self.signs).fold(0.0, |sum, &x, &y, &sign| sum + sign * x * y)
    }

    /// Returns (d, ∂d/∂⟨x, y⟩) from `inner` = ⟨x, y⟩, with the guards of the module.
    #[inline]
    pub fn distance_of(&self, inner: f64) -> (f64, f64) {
        let (d, slope) = unit_distance(inner / (self.radius * self.radius));
        (self.radius * d, slope / self.radius)
    }

    /// Returns (d, ∂d/∂⟨x, y⟩) of two points of the pseudo-hyperboloid and their `inner` = ⟨x, y⟩, to the digits of
    /// their polar coordinates however far out they are.
    pub fn distance_between(&self, x: ArrayView1<'_, f64>, y: ArrayView1<'_, f64>, inner: f64) -> (f64, f64) {
        let unit = self.radius * self.radius;
        let size = x.dot(&x).sqrt() * y.dot(&y).sqrt();
        let above = (inner.abs() - unit).abs();
        if !(above.max(DISTANCE_EPSILON * unit) <= CANCELLED * size) {
            return self.distance_of(inner);
        }
        let (excess, side) = self.excess(x, y);
        // z is the magnitude of 1 + excess.
        let (above, sign) = match excess >= -1.0 {
            true => (excess, -side),
            false => (-2.0 - excess, side),
        };
        let (d, slope) = unit_distance_above(above, sign);
        (self.radius * d, slope / self.radius)
    }

    /// Returns −⟨x, σy⟩/ρ² − 1 from the polar coordinates of x and y, and the sign σ of t·t′.
    fn excess(&self, x: ArrayView1<'_, f64>, y: ArrayView1<'_, f64>) -> (f64, f64) {
        let norms = |v: ArrayView1<'_, f64>| {
            let parts = Zip::from(v)
                .and(&self.positive)
                .fold([0.0; 2], |[s, t], &v, &p| [s + p * v * v, t + (1.0 - p) * v * v]);
            parts.map(f64::sqrt)
        };
        let ([s, t], [s_other, t_other]) = (norms(x), norms(y));
        let together = Zip::from(x).and(y).and(&self.positive).fold(0.0, |sum, &x, &y, &p| sum + (1.0 - p) * x * y);
        let sign = if together < 0.0 { -1.0 } else { 1.0 };
        let part = |a: f64, norm: f64| if norm > 0.0 { a / norm } else { 0.0 };
        let [apart_s, apart_t] =
            Zip::from(x).and(y).and(&self.positive).fold([0.0; 2], |[apart_s, apart_t], &x, &y, &p| {
                let of_s = part(x, s) - sign * part(y, s_other);
                let of_t = part(x, t) - sign * part(y, t_other);
                [apart_s + p * of_s * of_s, apart_t + (1.0 - p) * of_t * of_t]
            });
        let (sinh, sinh_other) = (s / self.radius, s_other / self.radius);
        let between = (0.5 * (sinh.asinh() - sinh_other.asinh())).sinh();
        let excess = 2.0 * between * between + 0.5 * sinh * sinh_other * apart_s
            - 0.5 * sinh.hypot(1.0) * sinh_other.hypot(1.0) * apart_t;
        (excess, sign)
    }

    /// Writes φ(x) to `out`; returns the norms for its derivative.
    #[inline]
    pub(crate) fn project(&self, x: &[f64], out: &mut [f64]) -> Radii {
        let (mut space, mut time) = (0.0, 0.0);
        for (&x, &positive) in x.iter().zip(&self.positive) {
            space += positive * x * x;
            time += (1.0 - positive) * x * x;
        }
        let radii = Radii {
            projected: (self.radius * self.radius + space).sqrt(),
            time: if time > UNDERFLOW { time.sqrt() } else { self.scaled_time(x) },
        };
        if radii.time > 0.0 {
            let stretch = radii.projected / radii.time;
            for ((out, &x), &positive) in out.iter_mut().zip(x).zip(&self.positive) {
                *out = x * (positive + (1.0 - positive) * stretch);
            }
        } else {
            // No direction to keep: φ uses the first time axis, and has no derivative along t.
            let mut left = radii.projected;
            for ((out, &x), &positive) in out.iter_mut().zip(x).zip(&self.positive) {
                *out = x * positive;
                if positive == 0.0 {
                    *out = std::mem::replace(&mut left, 0.0);
                }
            }
        }
        radii
    }

    /// Returns ‖t‖ of a row whose squares underflow.
    #[cold]
    fn scaled_time(&self, x: &[f64]) -> f64 {
        let time = || x.iter().zip(&self.positive).map(|(&x, &p)| (1.0 - p) * x);
        let largest = time().fold(0.0f64, |most, v| most.max(v.abs()));
        match largest > 0.0 {
            true => largest * time().map(|v| (v / largest).powi(2)).sum::<f64>().sqrt(),
            false => 0.0,
        }
    }

    /// Replaces the cotangent g by ∂φ(x)ᵀg, from x and φ(x).
    #[inline]
    pub(crate) fn pull_back(&self, x: &[f64], point: &[f64], radii: Radii, cotangent: &mut [f64]) {
        // ⟨G_t, û⟩ with û = t/‖t‖, the direction that φ keeps.
        let mut along = 0.0;
        for ((&g, &y), &positive) in cotangent.iter().zip(point).zip(&self.positive) {
            along += (1.0 - positive) * g * y;
        }
        along /= radii.projected;
        let (space, stretch, inward) = if radii.time > 0.0 {
            let stretch = radii.projected / radii.time;
            (along / radii.projected, stretch, along * stretch / radii.projected)
        } else {
            (along / radii.projected, 0.0, 0.0)
        };
        for (((g, &x), &y), &positive) in cotangent.iter_mut().zip(x).zip(point).zip(&self.positive) {
            let ahead = *g + space * x;
            let behind = stretch * *g - inward * y;
            *g = positive * ahead + (1.0 - positive) * behind;
        }
    }

    /// Returns φ of every row.
    ///
    /// # Errors
    /// If X does not have n columns or a row has no time part (t = 0), where φ is not defined.
    pub fn double_projection(&self, x: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.check_points("X", x)?;
        let mut out = Rows::zeros(x.dim());
        for (i, x) in x.outer_iter().enumerate() {
            if self.project(&slice_of(x), out.row_slice_mut(i)).time == 0.0 {
                return Err(Error::invalid(
                    "X",
                    format!("must have a nonzero coordinate of sign -1 in every row; row {i} has none"),
                ));
            }
        }
        Ok(out.into_array())
    }

    /// Returns the gradient with respect to X of a function of φ(X) whose gradient at φ(X) is `cotangent`.
    ///
    /// # Errors
    /// As [`Pseudohyperboloid::double_projection`], or if the shapes differ.
    pub fn double_projection_gradient(
        &self,
        x: ArrayView2<'_, f64>,
        cotangent: ArrayView2<'_, f64>,
    ) -> Result<Array2<f64>> {
        same_shape("cotangent", x, cotangent)?;
        check_size("cotangent", largest(cotangent), (0.0, SIZES.1))?;
        let point = self.double_projection(x)?;
        let mut out = Rows::from(cotangent.to_owned());
        let mut again = vec![0.0; self.dim()];
        for (i, (x, point)) in x.outer_iter().zip(point.outer_iter()).enumerate() {
            let (x, point) = (slice_of(x), slice_of(point));
            let radii = self.project(&x, &mut again);
            self.pull_back(&x, &point, radii, out.row_slice_mut(i));
        }
        Ok(out.into_array())
    }

    /// Returns the inverse of φ on points with ‖t‖ = 1: (s, t/‖t‖) of every row.
    ///
    /// # Errors
    /// If Y does not have n columns or a row is not on the pseudo-hyperboloid, up to 1e-8 relatively.
    pub fn inverse_double_projection(&self, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.check_points("Y", y)?;
        let mut out = y.to_owned();
        for (i, mut row) in out.outer_iter_mut().enumerate() {
            let square = self.inner(row.view(), row.view());
            let size = row.dot(&row);
            let square_radius = self.radius * self.radius;
            if !((square + square_radius).abs() <= START_TOLERANCE * size.max(square_radius)) {
                return Err(Error::invalid(
                    "Y",
                    format!(
                        "must lie on the pseudo-hyperboloid, <y, y> = -radius²; row {i} has \
                         <y, y> = {square:e}"
                    ),
                ));
            }
            let time: f64 = Zip::from(&row).and(&self.positive).fold(0.0, |sum, &y, &p| sum + (1.0 - p) * y * y).sqrt();
            Zip::from(&mut row).and(&self.positive).for_each(|y, &p| *y *= p + (1.0 - p) / time);
        }
        Ok(out)
    }

    /// Returns ⟨x_i, y_i⟩ of the rows of two arrays of equal shape.
    ///
    /// # Errors
    /// If the shapes do not fit.
    pub fn inner_rows(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array1<f64>> {
        same_shape("Y", x, y)?;
        self.check_points("X", x)?;
        self.check_points("Y", y)?;
        Ok(x.outer_iter().zip(y.outer_iter()).map(|(x, y)| self.inner(x, y)).collect())
    }

    /// Returns ⟨x_i, y_j⟩ of all pairs of rows.
    ///
    /// # Errors
    /// If an array does not have n columns.
    pub fn inner_pairs(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        self.check_points("X", x)?;
        self.check_points("Y", y)?;
        Ok((&x * &self.signs).dot(&y.t()))
    }

    /// Returns d(x_i, y_i) and its gradients with respect to x_i and y_i.
    ///
    /// # Errors
    /// If the shapes do not fit.
    pub fn distance_gradient(
        &self,
        x: ArrayView2<'_, f64>,
        y: ArrayView2<'_, f64>,
    ) -> Result<(Array1<f64>, Array2<f64>, Array2<f64>)> {
        let inner = self.inner_rows(x, y)?;
        let (mut gx, mut gy) = (&y * &self.signs, &x * &self.signs);
        let mut distances = Array1::zeros(inner.len());
        for (i, &g) in inner.iter().enumerate() {
            let (d, slope) = self.distance_between(x.row(i), y.row(i), g);
            distances[i] = d;
            gx.row_mut(i).mapv_inplace(|v| v * slope);
            gy.row_mut(i).mapv_inplace(|v| v * slope);
        }
        Ok((distances, gx, gy))
    }

    /// Returns d(x_i, y_j) of all pairs of rows.
    ///
    /// # Errors
    /// As [`Pseudohyperboloid::inner_pairs`].
    pub fn distances(&self, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        let mut distances = self.inner_pairs(x, y)?;
        for (x, mut row) in x.outer_iter().zip(distances.outer_iter_mut()) {
            for (y, d) in y.outer_iter().zip(&mut row) {
                *d = self.distance_between(x, y, *d).0;
            }
        }
        Ok(distances)
    }

    /// Checks the number of columns and the size of an array of points.
    fn check_points(&self, name: &'static str, x: ArrayView2<'_, f64>) -> Result<()> {
        if x.ncols() == self.dim() {
            return check_size(name, largest(x), SIZES);
        }
        Err(Error::invalid(name, format!("must have {} columns, got shape {:?}", self.dim(), x.dim())))
    }
}

fn same_shape(name: &'static str, x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Result<()> {
    if x.dim() == y.dim() {
        return Ok(());
    }
    Err(Error::invalid(name, format!("must have shape {:?}, got {:?}", x.dim(), y.dim())))
}

/// Returns [`Pseudohyperboloid::distance_of`] for ρ = 1.
#[inline(always)]
pub(crate) fn unit_distance(inner: f64) -> (f64, f64) {
    unit_distance_above(inner.abs() - 1.0, inner.signum())
}

/// Returns the distance and slope from z − 1 and the sign of ⟨x, y⟩, for ρ = 1.
#[inline(always)]
fn unit_distance_above(above: f64, sign: f64) -> (f64, f64) {
    let z = above + 1.0;
    if above.abs() <= DISTANCE_EPSILON {
        return (0.0, 0.0);
    }
    // Two roots, as the product overflows before z does.
    let root = above.abs().sqrt() * (z + 1.0).sqrt();
    if above > 0.0 {
        // arccosh z = log(z + √(z² − 1)), accurate near 1.
        ((above + root).ln_1p(), sign / root)
    } else if z <= DISTANCE_EPSILON {
        (z.acos(), 0.0)
    } else {
        (z.acos(), -sign / root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn space() -> Pseudohyperboloid {
        Pseudohyperboloid::new(&Signature::new(&[1, -1, 1, -1]).unwrap(), 1.3).unwrap()
    }

    #[test]
    fn projection_lands_on_the_surface_and_has_its_inverse() {
        let space = space();
        let x = array![[0.3, -1.2, 2.0, 0.4], [1e6, 1e-3, -2.0, 0.0]];
        let y = space.double_projection(x.view()).unwrap();
        for row in y.outer_iter() {
            let gap = space.inner(row, row) + 1.69;
            assert!(gap.abs() <= 1e-14 * row.dot(&row));
        }
        let back = space.inverse_double_projection(y.view()).unwrap();
        let again = space.double_projection(back.view()).unwrap();
        for (a, b) in y.iter().zip(&again) {
            assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0));
        }
        assert!(space.double_projection(array![[1.0, 0.0, 1.0, 0.0]].view()).is_err());
        assert!(space.inverse_double_projection(x.view()).is_err());
    }

    #[test]
    fn guards_hold_on_both_sides() {
        let space = Pseudohyperboloid::new(&Signature::new(&[1, -1]).unwrap(), 1.0).unwrap();
        let at = |g: f64| space.distance_of(g);
        assert_eq!(at(1.0 + 0.9e-8), (0.0, 0.0));
        assert_eq!(at(-1.0 + 0.9e-8), (0.0, 0.0));
        for t in [1.1e-8, 1e-6, 0.3] {
            let (d, slope) = at(-1.0 - t);
            assert!((d.cosh() - 1.0 - t).abs() <= 1e-15);
            assert!((slope + 1.0 / (t * (2.0 + t)).sqrt()).abs() <= 1e-7 * slope.abs());
            let (d, slope) = at(1.0 - t);
            assert!((d.cos() - 1.0 + t).abs() <= 1e-15 && slope < 0.0);
        }
        assert_eq!(at(0.9e-8).1, 0.0);
        assert!(at(1.1e-8).1 < -0.99);
        assert!((at(0.0).0 - std::f64::consts::FRAC_PI_2).abs() < 1e-15);
    }

    /// Points (R, u, v) = ρ(u sinh R, v cosh R), their distances computed in closed form from R.
    #[test]
    fn distances_keep_their_digits_far_out() {
        for (signs, radius) in [([1, 1, -1, -1], 1.0), ([-1, 1, -1, 1], 0.3)] {
            let space = Pseudohyperboloid::new(&Signature::new(&signs).unwrap(), radius).unwrap();
            let point = |r: f64, flip: f64| {
                let (mut s, mut t) = ([0.6, 0.8].into_iter(), [0.28, -0.96].into_iter());
                let entry = |&sign: &i8| match sign > 0 {
                    true => flip * radius * s.next().unwrap() * r.sinh(),
                    false => flip * radius * t.next().unwrap() * r.cosh(),
                };
                Array2::from_shape_vec((1, 4), signs.iter().map(entry).collect()).unwrap()
            };
            for far in [0.0, 3.0, 8.0, 10.0, 12.0, 15.0, 18.0, 40.0, 200.0] {
                for apart in [0.0, 2e-4, 0.1, 1.0, 7.0] {
                    // Rounding of a direction moves points apart by 1e-16 exp R.
                    if far > 18.0 && apart > 0.0 {
                        continue;
                    }
                    for flip in [1.0, -1.0] {
                        let (x, y) = (point(far, 1.0), point(far + apart, flip));
                        let (d, gx, _) = space.distance_gradient(x.view(), y.view()).unwrap();
                        let wanted = radius * apart;
                        assert!((d[0] - wanted).abs() <= 1e-7 * wanted, "{far} {apart} {flip} {}", d[0]);
                        assert_eq!(gx.iter().all(|&v| v == 0.0), apart == 0.0);
                        let all = space.distances(x.view(), y.view()).unwrap();
                        assert!((all[[0, 0]] - d[0]).abs() <= 1e-7 * d[0]);
                    }
                }
                // The same time and the opposite place.
                let mut back = point(far, 1.0);
                let places = back.iter_mut().zip(&signs).filter(|(_, sign)| **sign > 0);
                places.for_each(|(v, _)| *v = -*v);
                let d = space.distance_gradient(point(far, 1.0).view(), back.view()).unwrap().0[0];
                assert!((d - 2.0 * radius * far).abs() <= 1e-12 * radius * far.max(1e-3), "{far}");
            }
        }
    }

    #[test]
    fn sizes_beyond_the_range_are_refused_at_every_door() {
        let space = space();
        let good = array![[0.3, -1.2, 2.0, 0.4]];
        for size in [1e-162, 1e-101, 1e101, 1e160, f64::NAN, f64::INFINITY] {
            let bad = &good * size;
            let (x, y) = (good.view(), bad.view());
            let refused = [
                space.double_projection(y).is_err(),
                space.double_projection_gradient(y, x).is_err(),
                space.inverse_double_projection(y).is_err(),
                space.inner_rows(x, y).is_err(),
                space.inner_rows(y, x).is_err(),
                space.inner_pairs(y, x).is_err(),
                space.distances(x, y).is_err(),
                space.distance_gradient(y, x).is_err(),
                space.double_projection_gradient(x, y).is_err() || size < 1.0,
                Pseudohyperboloid::new(&Signature::new(&[1, -1]).unwrap(), size).is_err(),
            ];
            assert_eq!(refused, [true; 10], "{size}");
        }
        let thin = array![[1.0, 3e-170, 0.0, 4e-170]];
        let y = space.double_projection(thin.view()).unwrap();
        let length = 2.69f64.sqrt();
        for (found, wanted) in y.iter().zip([1.0, 0.6 * length, 0.0, 0.8 * length]) {
            assert!((found - wanted).abs() < 1e-15);
        }
    }

    #[test]
    fn gradients_agree_with_differences() {
        let space = space();
        let x = array![[0.3, -1.2, 2.0, 0.4], [0.5, 0.6, -0.1, 2.0]];
        let y = array![[1.3, 0.7, -0.4, 0.9], [0.1, -0.8, 0.2, 0.3]];
        let v = array![[0.2, -0.5, 1.1, 0.3], [-0.7, 0.4, 0.6, -1.0]];
        let (_, gx, _) = space.distance_gradient(x.view(), y.view()).unwrap();
        let pulled = space.double_projection_gradient(x.view(), v.view()).unwrap();
        let h = 1e-6;
        for i in 0..2 {
            for k in 0..4 {
                let shifted = |by: f64| {
                    let mut x = x.clone();
                    x[[i, k]] += by;
                    let d = space.distance_gradient(x.view(), y.view()).unwrap().0[i];
                    (d, (space.double_projection(x.view()).unwrap() * &v).sum())
                };
                let (up, down) = (shifted(h), shifted(-h));
                assert!((gx[[i, k]] - (up.0 - down.0) / (2.0 * h)).abs() < 1e-8);
                assert!((pulled[[i, k]] - (up.1 - down.1) / (2.0 * h)).abs() < 1e-8);
            }
        }
    }
}
