//! Tests of the relaxation's parts against their definitions on small matrices.

use super::*;
use crate::start;

fn symmetric_matrix(n: usize, seed: u64) -> Array2<f64> {
    let a = start::random(n, n, seed) * &Array1::linspace(1.0, 4.0, n);
    &a + &a.t()
}

/// Returns P = XXᵀ of a random X.
fn projection(n: usize, r: usize, seed: u64) -> Array2<f64> {
    let x = start::random(n, r, seed);
    x.dot(&x.t())
}

const ALL: [Entries; 6] = [
    Entries::Free,
    Entries::Within(1.5),
    Entries::Within(100.0),
    Entries::Penalized(0.7),
    Entries::Nonnegative,
    Entries::NonnegativeWithin(1.5),
];

/// Returns g(P).
fn g(entries: Entries, p: &Array2<f64>) -> f64 {
    let size: f64 = p.iter().map(|v| v.abs()).sum();
    let negative = p.iter().any(|&v| v < 0.0);
    let allowed = match entries {
        Entries::Free | Entries::Penalized(_) => true,
        Entries::Within(radius) => size <= radius * (1.0 + 1e-12),
        Entries::Nonnegative => !negative,
        Entries::NonnegativeWithin(radius) => !negative && size <= radius * (1.0 + 1e-12),
    };
    match entries {
        _ if !allowed => f64::INFINITY,
        Entries::Penalized(penalty) => penalty * size,
        _ => 0.0,
    }
}

#[test]
fn sums_of_the_largest_are_those_of_sorting() {
    for count in 0..=6 {
        let values: [f64; 5] = [0.3, -2.0, 1.5, 1.5, -0.1];
        let mut sorted = values;
        sorted.sort_by(|a, b| b.total_cmp(a));
        let sum: f64 = sorted.iter().take(count).sum();
        assert!((largest_sum(&mut values.clone(), count) - sum).abs() < 1e-15);
    }
    let a = Array2::from_shape_vec((2, 2), vec![-3.0, 0.5, 0.5, 2.0]).unwrap();
    assert_eq!((highest(&a), largest(&a)), (2.0, 3.0));
    assert_eq!((highest(&-&a.mapv(f64::abs)), norm(&a)), (0.0, 13.5f64.sqrt()));
}

#[test]
fn a_threshold_leaves_the_radius() {
    for seed in 0..10 {
        let v = symmetric_matrix(4, seed);
        let size: f64 = v.iter().map(|v| v.abs()).sum();
        for radius in [0.0, 0.1, 1.0, 0.5 * size, 0.99 * size] {
            let t = threshold(&v, radius);
            let left: f64 = v.iter().map(|v| (v.abs() - t).max(0.0)).sum();
            assert!((left - radius).abs() < 1e-12 * size, "{left} {radius}");
        }
        assert_eq!(threshold(&v, size), 0.0);
        assert_eq!(threshold(&v, 2.0 * size), 0.0);
    }
}

/// The proximal point of V has a lower g(Y) + σ/2‖Y − V‖² than its neighbours and than random points.
#[test]
fn proximal_points_are_minima() {
    for seed in 0..6 {
        let v = symmetric_matrix(3, seed);
        for entries in ALL {
            for sigma in [0.5, 2.0] {
                let value = |y: &Array2<f64>| g(entries, y) + 0.5 * sigma * crate::linalg::square(&(y - &v));
                let y = entries.proximal(&v, sigma);
                let least = value(&y);
                assert!(least.is_finite(), "{entries:?}");
                for k in 0..60 {
                    let d = symmetric_matrix(3, 100 + k);
                    let size = [1e-3, 0.03, 0.3][k as usize % 3];
                    let mut near = entries.proximal(&(&y + &(&d * size)), sigma);
                    if k % 2 == 0 {
                        near = &y * (1.0 - size);
                    }
                    assert!(value(&near) >= least - 1e-12, "{entries:?}");
                    assert!(value(&(&y + &(&d * size))) >= least - 1e-12, "{entries:?}");
                }
            }
        }
    }
}

/// g*(U), rounded up, is at least ⟨U, P⟩ − g(P) for P with ‖P‖₁ ≤ nr, and near it for the worst such P.
#[test]
fn conjugates_are_above_every_point() {
    let (n, r) = (3, 2);
    for seed in 0..10 {
        let u = symmetric_matrix(n, seed);
        for entries in ALL {
            let above = entries.conjugate_above(&u, r, 0.0);
            let most = match entries {
                Entries::Within(radius) | Entries::NonnegativeWithin(radius) => radius,
                _ => (n * r) as f64,
            };
            let mut best = 0.0f64;
            for at in 0..n * n {
                for sign in [1.0, -1.0] {
                    let mut p = Array2::zeros((n, n));
                    p[[at / n, at % n]] = sign * most;
                    best = best.max((&u * &p).sum() - g(entries, &p));
                }
            }
            assert!((above - best).abs() < 1e-12 * (1.0 + best), "{entries:?}");
            // An error of every entry counts as often as ‖P‖₁.
            let off = entries.conjugate_above(&u, r, 0.25) - above;
            let own = if entries == Entries::Free { 0.0 } else { 0.25 };
            assert!((off - own * most).abs() < 1e-12, "{entries:?}");
            let exact = match entries {
                Entries::Within(_) | Entries::NonnegativeWithin(_) => best,
                _ => 0.0,
            };
            assert!((entries.conjugate(&u) - exact).abs() < 1e-12);
        }
    }
}

/// The nearest P has 0 ⪯ P ⪯ I and tr P = r, and ⟨A − P, Q − P⟩ ≤ 0 for every other such Q.
#[test]
fn projections_onto_the_fantope_are_nearest() {
    for seed in 0..12 {
        let n = 2 + (seed % 5) as usize;
        for scale in [0.1, 1.0, 10.0] {
            let a = symmetric_matrix(n, seed) * scale;
            for r in 1..=n.min(3) {
                let p = onto_fantope(&a, r);
                assert!((p.diag().sum() - r as f64).abs() < 1e-12 * (1.0 + scale));
                let values = symmetric_eigenvalues(p.view());
                assert!(values.iter().all(|v| (-1e-13..=1.0 + 1e-13).contains(v)));
                for k in 0..10 {
                    let q = projection(n, r, 50 + k);
                    let off = ((&a - &p) * (&q - &p)).sum();
                    assert!(off < 1e-11 * (1.0 + scale), "{seed} {off}");
                }
            }
        }
    }
    // The only P of n columns is I, also where the shift of the eigenvalues is 0.
    assert_eq!(onto_fantope(&Array2::eye(3), 3), Array2::<f64>::eye(3));
    // Multiples of the identity: every eigenvalue has the same share.
    for theta in [-2.0, 0.0, 0.25, 3.0] {
        let p = onto_fantope(&(Array2::<f64>::eye(4) * theta), 1);
        let off = p - Array2::<f64>::eye(4) * 0.25;
        assert!(off.iter().all(|v| v.abs() < 1e-14));
    }
}

/// The bound on the error of a decomposition covers a decomposition that is off by a known amount, and is
/// not much larger than this amount.
#[test]
fn errors_of_decompositions_are_covered() {
    for seed in 0..10 {
        let n = 2 + (seed % 4) as usize;
        let a = symmetric_matrix(n, seed);
        let size = norm(&a);
        let (values, vectors) = symmetric_eigen(a.view());
        let exact = eigen_error(&a, &values, &vectors);
        assert!(exact > 0.0 && exact < 1e-12 * size, "{exact}");
        // At least 4n ulp of √n times the sizes, for the rounding of the residuals themselves.
        let largest = values.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        let rounding = 4.0 * (n as f64).powf(1.5) * f64::EPSILON * (size + largest);
        assert!(exact >= rounding * (1.0 - 1e-12) && exact < 3.0 * rounding);
        for off in [1e-6, 1e-3, 0.1] {
            let wrong = values.mapv(|v| v - off);
            let found = eigen_error(&a, &wrong, &vectors);
            let residual = off * (n as f64).sqrt();
            assert!((found - residual).abs() < 1e-9, "{found} {residual}");
            // Longer vectors: V(1 + t) has the defect 2t + t² in every direction.
            let long = &vectors * (1.0 + off);
            let found = eigen_error(&a, &values, &long);
            let stretch = off * (2.0 + off);
            let defect = stretch * (n as f64).sqrt() * largest;
            assert!((found - (stretch * size + defect)).abs() < 1e-9 * (1.0 + size));
        }
        for r in 1..=n {
            let sum = ky_fan(&a, r);
            assert!((sum - values.iter().rev().take(r).sum::<f64>()).abs() < 1e-13 * size);
            let above = ky_fan_above(&a, r);
            assert!(above >= sum + 0.9 * r as f64 * exact && above <= sum + 2.0 * r as f64 * exact);
        }
    }
}

/// Bounds of single eigenvalues exceed the computed value by the rounding of a factorization of n rows.
#[test]
fn factorizations_bound_the_largest_eigenvalue() {
    for seed in 0..30 {
        let n = 1 + (seed % 9) as usize;
        let a = symmetric_matrix(n, seed);
        let (size, rows) = (norm(&a), n as f64);
        let exact = ky_fan(&a, 1);
        let above = largest_above(&a, 1, exact);
        let gamma = (rows + 2.0) * f64::EPSILON;
        // At least the shift of θ and the rounding of A; at most this with the widest shift.
        let (shift, trace) = (gamma * rows * (exact.abs() + size), rows * (exact.abs() + size));
        let least = shift + f64::EPSILON * size;
        let most = 16.0 * shift + 2.5 * gamma * trace + f64::EPSILON * size;
        let off = above - exact;
        assert!(off >= 0.9 * least && off <= 1.1 * most, "{seed} {off} {least}");
        // A factorization proves any value that is large enough.
        let more = exact + 0.1 * size;
        let off = largest_above(&a, 1, more) - more;
        assert!(off >= 0.5 * least && off < 1e-12 * size, "{seed} {off}");
        // A value that no shift repairs is replaced by the eigenvalues.
        let far = largest_above(&a, 1, exact - 0.1 * size);
        assert!(far > ky_fan_above(&a, 1) && far <= exact + 1e-12 * size);
        for r in 2..=n {
            let (sum, difference) = (ky_fan_above(&a, r), r as f64 * f64::EPSILON * size);
            let more = largest_above(&a, r, 0.0) - sum;
            assert!(more >= 0.5 * difference && more <= 2.0 * difference + 4.0 * f64::EPSILON * sum.abs());
        }
    }
}

/// Returns the state with a random symmetric U.
fn state(n: usize, r: usize, entries: Entries, seed: u64) -> Admm {
    let mut admm = Admm::new(&symmetric_matrix(n, seed), r, entries);
    admm.u = symmetric_matrix(n, seed + 1);
    admm
}

#[test]
fn framed_sums_are_those_of_enumeration() {
    for seed in 0..12 {
        let (n, k) = (5, 2 + (seed % 3) as usize);
        let admm = state(n, 1, Entries::Within(1.0), seed);
        for fixed in [vec![], vec![1], vec![0, 3]] {
            if fixed.len() > k {
                continue;
            }
            let with_fixed = |rows: usize| fixed.iter().all(|&i| rows >> i & 1 == 1);
            let of = |rows: usize| (0..n).filter(move |i| rows >> i & 1 == 1);
            let sets = || (0..1usize << n).filter(|&s| s.count_ones() as usize == k && with_fixed(s));
            // For each of k rows the best k entries, among them those of the fixed rows and the diagonal.
            let row = |i: usize| -> f64 {
                let sum = |s: usize| of(s).map(|j| admm.u[[i, j]].powi(2)).sum::<f64>();
                sets().filter(|s| s >> i & 1 == 1).map(sum).fold(0.0, f64::max)
            };
            let best = sets().map(|s| of(s).map(row).sum::<f64>()).fold(0.0, f64::max);
            let flags: Vec<bool> = (0..n).map(|i| fixed.contains(&i)).collect();
            let found = admm.framed(k, &flags);
            assert!((found - best.sqrt()).abs() < 1e-12, "{seed} {fixed:?}");
        }
    }
}

#[test]
fn the_bound_of_u_is_above_every_allowed_projection() {
    let (n, r) = (5, 2);
    for seed in 0..5 {
        let c = symmetric_matrix(n, seed);
        for radius in [2.0, 4.0] {
            let admm = state(n, r, Entries::Within(radius), seed + 20);
            let u = admm.multiplier();
            let sum = ky_fan(&(&c - u), r) + radius * largest(u);
            assert!((admm.bound(&c) - sum).abs() < 1e-12);
            assert_eq!(admm.conjugate(), radius * largest(u));
        }
    }
}

#[test]
fn a_part_of_the_rows_keeps_their_entries() {
    let mut admm = state(6, 2, Entries::Within(3.0), 4);
    let c = symmetric_matrix(6, 4);
    admm.step(&c);
    let kept = [1, 3, 4];
    let part = admm.restricted(&kept);
    for (i, &at) in kept.iter().enumerate() {
        for (j, &to) in kept.iter().enumerate() {
            assert_eq!(part.u[[i, j]], admm.u[[at, to]]);
            assert_eq!(part.y[[i, j]], admm.y[[at, to]]);
        }
    }
    assert_eq!((part.sigma, part.steps, part.r), (admm.sigma, 1, 2));
}

/// σ = ‖C‖_F/√n at first, and C of 0 has a σ too; Y is r/n times the identity.
#[test]
fn the_first_state_has_the_scale_of_c() {
    let c = symmetric_matrix(4, 2);
    for (c, sigma) in [(c.clone(), norm(&c) / 2.0), (Array2::zeros((4, 4)), 1.0)] {
        let admm = Admm::new(&c, 3, Entries::Free);
        assert!((admm.sigma - sigma).abs() < 1e-14);
        assert!((admm.solution() - Array2::<f64>::eye(4) * 0.75).iter().all(|v| *v == 0.0));
        assert_eq!(admm.steps(), 0);
        assert!(!admm.has_converged(&c, 1e300));
    }
}

/// A step is that of the formulas of over-relaxed ADMM, with both residuals.
#[test]
fn a_step_is_that_of_admm() {
    let (n, r) = (4, 2);
    for seed in 0..6 {
        let c = symmetric_matrix(n, seed);
        for entries in ALL {
            let mut admm = Admm::new(&c, r, entries);
            for _ in 0..3 {
                admm.step(&c);
            }
            let before = admm.clone();
            admm.step(&c);
            let sigma = before.sigma;
            let p = onto_fantope(&((&c - &before.u) / sigma + &before.y), r);
            let relaxed = &p * 1.6 - &before.y * 0.6;
            let y = entries.proximal(&(&relaxed + &(&before.u / sigma)), sigma);
            let u = &before.u + &((&relaxed - &y) * sigma);
            assert!((&admm.y - &y).iter().all(|v| v.abs() < 1e-12), "{entries:?}");
            assert!((&admm.u - &u).iter().all(|v| v.abs() < 1e-12 * sigma), "{entries:?}");
            assert_eq!(admm.steps(), 4);
            let (primal, dual) = (norm(&(&p - &y)), sigma * norm(&(&y - &before.y)));
            assert!((admm.residuals.0 - primal).abs() < 1e-12);
            assert!((admm.residuals.1 - dual).abs() < 1e-12 * sigma);
            let (one, other) = admm.relative(&c);
            assert!((one - primal / norm(&y)).abs() < 1e-11);
            assert!((other - dual / norm(&c)).abs() < 1e-11);
            let larger = one.max(other);
            assert!(admm.has_converged(&c, larger) && !admm.has_converged(&c, larger * 0.999));
        }
    }
}

/// σ grows by 1.5 where the first residual is more than three times the second, and falls in the opposite
/// case.
#[test]
fn residuals_are_balanced() {
    let c = symmetric_matrix(3, 1);
    let mut admm = Admm::new(&c, 1, Entries::Free);
    let (y, size) = (norm(&admm.y), norm(&c));
    for (primal, dual, factor) in [(6.2, 2.0, 1.5), (5.8, 2.0, 1.0), (2.0, 5.8, 1.0), (2.0, 6.2, 1.0 / 1.5)] {
        admm.residuals = (primal * y, dual * size);
        let before = admm.sigma;
        admm.balance(&c);
        assert!((admm.sigma / before - factor).abs() < 1e-14);
    }
    // At three times the other residual neither counts as larger.
    let unit = Array2::from_diag(&ndarray::array![1.0, 0.0, 0.0]);
    admm.y.assign(&unit);
    for residuals in [(6.0, 2.0), (2.0, 6.0)] {
        admm.residuals = residuals;
        let before = admm.sigma;
        admm.balance(&unit);
        assert_eq!(admm.sigma, before);
    }
    // Every tenth step looks at the residuals.
    let mut admm = Admm::new(&c, 1, Entries::Penalized(0.3));
    for step in 1..=40 {
        let before = admm.sigma;
        admm.step(&c);
        assert!(step % 10 == 0 || admm.sigma == before);
    }
}
