//! Minimisers of ½ tr(XᵀCXW) over XᵀJX = diag(±1) for C ≻ 0 and W = diag(w) ⪰ 0, from one decomposition.
//!
//! With C = LLᵀ the eigenvectors LᵀJL y = λy give JCx = λx for x = JLy/√|λ|, and xᵀJx = sign λ, xᵀCx = |λ|. The
//! columns of each sign take the eigenvectors of their sign with the smallest |λ|, in the order of descending weights
//! (Kovač-Striko and Veselić, Linear Algebra Appl. 216, 1995).

use ndarray::{Array2, ArrayView2, Axis};

use crate::linalg::{Cholesky, product, symmetric_eigen};
use crate::manifold::{constraint, drift, project_dense, signed, signs_of};
use crate::numerics;
use crate::objective::{GoOn, QuadraticForm, eigen_work};
use crate::signature::Signature;

/// Returns a minimiser X with XᵀJX = `k`, the distance ‖XᵀJX − K‖, and its work. None if f is no such form, `k` is not diag(±1), C is not
/// positive definite to rounding, the work exceeds `work`, or `go_on` returns false.
pub(crate) fn pencil_minimiser(
    form: &dyn QuadraticForm,
    signature: &Signature,
    k: ArrayView2<'_, f64>,
    work: f64,
    go_on: GoOn<'_>,
) -> Option<(Array2<f64>, f64, f64)> {
    let (n, r) = (form.order(), k.ncols());
    let (signs, weights) = (signs_of(k)?, form.trace_weights(r)?);
    // The decomposition, Cholesky's factor, the pencil and the columns of X.
    let cost = eigen_work(n) + 2.0 * (n as f64).powi(3);
    if cost > work {
        return None;
    }
    let lower = Cholesky::new(form.whole(go_on)?.view())?.factor();
    let images = signed(lower.view(), signature);
    let pencil = constraint(lower.view(), signature);
    let (values, vectors) = symmetric_eigen(pencil.view());
    if !go_on() || values.iter().any(|v| !(v.abs() > 0.0)) {
        return None;
    }
    let negative = values.iter().filter(|v| **v < 0.0).count();
    let mut chosen = vec![0; r];
    for sign in [1.0, -1.0] {
        let mut columns: Vec<usize> = (0..r).filter(|&k| signs[k] == sign).collect();
        columns.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]).then(a.cmp(&b)));
        for (rank, column) in columns.into_iter().enumerate() {
            // Eigenvalues ascend, and so do their magnitudes away from the change of sign.
            let index = match sign > 0.0 {
                true => negative + rank,
                false => negative.checked_sub(rank + 1)?,
            };
            chosen[column] = (index < n).then_some(index)?;
        }
    }
    let mut x = product(images.view(), vectors.select(Axis(1), &chosen).view());
    for (mut column, &index) in x.axis_iter_mut(Axis(1)).zip(&chosen) {
        column /= values[index].abs().sqrt();
    }
    let size = x.iter().map(|v| v * v).sum::<f64>();
    let mut distance = drift(x.view(), signature, k);
    if distance > numerics::ULPS * size {
        x = project_dense(&x, signature, k);
        distance = drift(x.view(), signature, k);
    }
    (go_on() && x.iter().all(|v| v.is_finite())).then_some((x, distance, cost))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::{square, symmetric};
    use crate::objective::{Objective, Quadratic};
    use crate::start::random;
    use crate::threads::Threads;
    use ndarray::{Array1, s};

    /// All numbers of columns, weights with ties and zeros, orders of the signs, and conditions of C.
    #[test]
    fn eigenvectors_of_the_pencil_attain_the_sum_of_the_eigenvalues() {
        let n = 9;
        let threads = Threads::serial();
        for condition in [1.0f64, 1e3, 1e8] {
            let q = random(n, n, 3);
            let spectrum = Array1::from_shape_fn(n, |k| condition.powf(-(k as f64) / (n - 1) as f64));
            let c = symmetric(&(&q * &spectrum).dot(&q.t()));
            for signs in [[1, -1, 1, -1, 1, 1, -1, 1, 1], [-1, -1, -1, -1, -1, -1, -1, 1, -1]] {
                let signature = Signature::new(&signs).unwrap();
                let jc = signed(c.view(), &signature);
                let root = Cholesky::new(c.view()).unwrap().factor();
                let pencil = root.t().dot(&signed(root.view(), &signature));
                let (values, _) = symmetric_eigen(symmetric(&pencil).view());
                for r in [1, 4, n] {
                    for metric in
                        [None, Some(Array1::from_shape_fn(r, |k| (k / 2 % 3) as f64 + f64::from(u8::from(r == 1))))]
                    {
                        let w = metric.clone().unwrap_or_else(|| Array1::ones(r));
                        let metric = metric.map(|w| Array2::from_diag(&w));
                        let Ok(f) = Quadratic::new(c.clone(), None, metric) else {
                            continue;
                        };
                        let k = signature.matrix().slice(s![..r, ..r]).to_owned();
                        let (x, _, _) = pencil_minimiser(&f, &signature, k.view(), f64::INFINITY, &|| true).unwrap();
                        let size = square(&x);
                        assert!(drift(x.view(), &signature, k.view()) <= 1e-13 * size.max(1.0));
                        let mut best = 0.0;
                        for sign in [1.0, -1.0] {
                            let mut of_sign: Vec<f64> = values.iter().map(|v| v * sign).filter(|v| *v > 0.0).collect();
                            of_sign.sort_by(f64::total_cmp);
                            let mut weights: Vec<f64> =
                                (0..r).filter(|&k| f64::from(signs[k]) == sign).map(|k| w[k]).collect();
                            weights.sort_by(|a, b| b.total_cmp(a));
                            best += of_sign.iter().zip(&weights).map(|(v, w)| v * w).sum::<f64>();
                        }
                        let value = 2.0 * f.value(x.view(), &threads);
                        assert!((value - best).abs() <= 1e-9 * best.max(1e-9), "{r} {value} {best}");
                        // Eigenvectors: JCx = xΛ.
                        let lambda = x.t().dot(&c.dot(&x)).dot(&k);
                        let off = jc.dot(&x) - x.dot(&lambda);
                        assert!(square(&off).sqrt() <= 1e-11 * size, "{r} {condition}");
                    }
                }
            }
        }
        let singular = Quadratic::new(Array2::zeros((3, 3)), None, None).unwrap();
        let signature = Signature::new(&[1, -1, 1]).unwrap();
        let k = signature.matrix();
        let found = pencil_minimiser(&singular, &signature, k.view(), f64::INFINITY, &|| true);
        assert!(found.is_none());
    }
}
