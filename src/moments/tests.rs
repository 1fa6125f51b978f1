use ndarray::{Array1, Array2, Axis, s};
use proptest::prelude::*;

use super::*;
use crate::start::random;

/// Least correlation of covariances whose last bit no order decides.
const LARGE: f64 = 1.0 / 16.0;

/// Errors of exact sums as parts of the variances: sums of remainders are rounded at 2⁻⁸⁶ of the ranges.
const REST: f64 = 1e-22;

/// Returns samples near `shift` whose deviations have very different sizes.
fn samples(m: usize, n: usize, seed: u64, shift: f64) -> Array2<f64> {
    let sizes = random(m.max(n), n, seed + 1000).mapv(|v| (20.0 * v).exp());
    let mut x = random(m.max(n), n, seed) * sizes + shift;
    x.slice_collapse(s![..m, ..]);
    x
}

fn of(parts: &[ArrayView2<'_, f64>], precision: Precision, threads: &Threads) -> Moments {
    let mut moments = Moments::new(parts[0].ncols(), precision);
    for part in parts {
        moments.add(part.view(), None, threads).unwrap();
    }
    moments
}

/// Returns −Σ (x − mean)(x − mean)ᵀ by definition, from differences that are exact for whole numbers.
fn plain(x: &Array2<f64>, center: bool) -> Array2<f64> {
    let mean = x.mean_axis(Axis(0)).unwrap();
    let zero = Array1::zeros(mean.len());
    let about = x - if center { &mean } else { &zero };
    -about.t().dot(&about)
}

#[test]
fn moments_are_those_of_the_definition() {
    let threads = Threads::serial();
    for precision in [Precision::Fast, Precision::Exact] {
        for (m, n) in [(1, 1), (3, 1), (2, 5), (40, 33), (2048, 3), (2049, 3), (300, 260)] {
            for (center, shift) in [(true, 0.0), (true, 1e6), (false, 3.0)] {
                let x = (random(m.max(n), n, 3) * 1024.0).round().slice(s![..m, ..]).to_owned() + shift;
                let got = of(&[x.view()], precision, &threads).read(center, false, true, &threads);
                let (got, wanted) = (got.unwrap(), plain(&x, center));
                let size = wanted.iter().fold(1.0f64, |a, v| a.max(v.abs()));
                let far = (&got.negative - &wanted).iter().any(|v| v.abs() > 1e-11 * size);
                assert!(!far, "{precision:?} {m} {n} {center} {shift}");
                assert_eq!(got.negative, got.negative.t());
            }
        }
    }
}

#[test]
fn neither_threads_nor_layout_change_a_bit() {
    let (one, two) = (Threads::serial(), Threads::new(Some(2)).unwrap());
    let x = samples(5000, 150, 1, 1.0);
    let by_columns = x.t().as_standard_layout().into_owned().reversed_axes();
    for precision in [Precision::Fast, Precision::Exact] {
        let wanted = of(&[x.view()], precision, &one).to_bytes();
        assert_eq!(of(&[x.view()], precision, &two).to_bytes(), wanted);
        assert_eq!(of(&[by_columns.view()], precision, &one).to_bytes(), wanted);
    }
}

#[test]
fn bytes_are_checked() {
    let threads = Threads::serial();
    let x = samples(2100, 4, 2, 0.0);
    let wrong = "state must be that of a Moments";
    for precision in [Precision::Fast, Precision::Exact] {
        let mut moments = of(&[x.view()], precision, &threads);
        let bytes = moments.to_bytes();
        let mut again = Moments::new(4, precision);
        again.restore(&bytes).unwrap();
        assert_eq!(again.to_bytes(), bytes);
        let mut refuses = |bytes: &[u8]| again.restore(bytes).unwrap_err().to_string() == wrong;
        assert!((0..bytes.len()).step_by(7).all(|end| refuses(&bytes[..end])));
        assert!(refuses(&[&bytes[..], &[0]].concat()));
        let more = |value: f64, weight: f64| {
            let mut moments = moments.clone();
            moments.add(Array2::from_elem((1, 4), value).view(), Some(&[weight]), &threads).unwrap();
            moments
        };
        let changed = |change: fn(&mut Moments)| {
            let mut moments = moments.clone();
            change(&mut moments);
            moments
        };
        let last = |moments: &mut Moments, change: fn(&mut Block)| {
            change(Arc::make_mut(moments.pending.last_mut().unwrap()));
        };
        let mut uneven = more(1.0, 2.0);
        last(&mut uneven, |block| block.weights = Some(vec![1.0; 2]));
        let mut short = more(1.0, 2.0);
        last(&mut short, |block| block.rows = 2);
        let mut full = moments.clone();
        full.pending.extend(vec![full.pending[0].clone(); 40]);
        full.rows += BLOCK_ROWS as u64;
        let spoilt = [
            changed(|moments| moments.n = 5),
            changed(|moments| moments.rows = 3),
            changed(|moments| match &mut moments.sums {
                Sums::Fast(sums) => sums.strips.extend_from_within(..),
                Sums::Exact(sums) => sums.high.extend_from_within(..),
            }),
            changed(|moments| match &mut moments.sums {
                Sums::Fast(sums) => drop(sums.strips.pop()),
                Sums::Exact(sums) => drop((sums.high.pop(), sums.low.pop())),
            }),
            changed(|moments| match &mut moments.sums {
                Sums::Fast(sums) => sums.weight = -1.0,
                Sums::Exact(sums) => *sums = Exact::new(5),
            }),
            changed(|moments| match &mut moments.sums {
                Sums::Fast(sums) => *sums = Fast::new(5),
                Sums::Exact(sums) => *sums = Exact::new(4),
            }),
            more(f64::NAN, 1.0),
            more(1.0, -1.0),
            more(1.0, f64::INFINITY),
            uneven,
            short,
            full,
        ];
        for (k, spoilt) in spoilt.iter().enumerate() {
            assert!(refuses(&spoilt.to_bytes()), "{k}");
        }
        let read = |m: &mut Moments| m.read(true, true, true, &threads).unwrap().negative;
        assert_eq!(read(&mut again), read(&mut moments));
    }
}

/// Compares the two sums of exact products with integers of 106 bits.
#[test]
fn exact_products_lose_nothing() {
    use super::product::{DEPTH, Factor, PANEL, add_product};
    const BITS: i32 = 53;
    let whole = |x: f64| (x * 2f64.powi(BITS)) as i128;
    for (m, left, right, diagonal) in [(1, 1, 1, 0), (7, 2, 5, 1), (DEPTH, 3, 4, 3)] {
        for size in [1.0, 40.0] {
            let n = (left + right) * PANEL;
            let sizes = random(m.max(n), n, 7).mapv(|v| (-size * v.abs()).exp());
            let x = random(m.max(n), n, 8).mapv(|v| (3.0 * v).tanh()) * sizes;
            // Multiples of 2⁻⁵³, which are integers for the comparison.
            let x = x.mapv(|v| (v * 2f64.powi(BITS)).trunc() / 2f64.powi(BITS));
            let panels: Vec<Vec<[f64; PANEL]>> = (0..left + right)
                .map(|p| (0..m).map(|i| std::array::from_fn(|j| x[[i, p * PANEL + j]])).collect())
                .collect();
            let factors: Vec<Factor<'_>> = panels.iter().map(|p| Some(p.as_slice())).collect();
            let width = right * PANEL;
            let mut sums = [(); 2].map(|()| vec![0.0; left * PANEL * width]);
            let [high, low] = &mut sums;
            let (own, others) = factors.split_at(left);
            add_product((high, Some(low)), width, own, others, diagonal);
            for i in 0..left * PANEL {
                for j in (i.saturating_sub(diagonal * PANEL))..width {
                    let column = left * PANEL + j;
                    let exact: i128 = (0..m).map(|k| whole(x[[k, i]]) * whole(x[[k, column]])).sum();
                    let (high, low) = (high[i * width + j], low[i * width + j]);
                    let grid = high * 2f64.powi(42);
                    assert_eq!(grid, grid.trunc());
                    let left_over = exact - ((grid as i128) << (2 * BITS - 42));
                    let error = left_over as f64 - low * 2f64.powi(2 * BITS);
                    assert!(error.abs() <= 2f64.powi(2 * BITS - 86), "{m} {i} {j}: {error}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Exact sums are the same for any order and blocks of rows, merged or not: in all bits for variances and
    /// covariances above [`LARGE`], and to one unit in the last place for others, whose rounding the order
    /// can decide. Fast sums agree to 1e-9.
    #[test]
    fn order_and_blocks_do_not_matter(
        m in 2usize..4500,
        n in 1usize..40,
        cuts in prop::collection::vec(0.0f64..1.0, 0..5),
        shift in prop::sample::select(vec![0.0, 100.0, 1e6]),
        seed in 0u64..1000,
    ) {
        let threads = Threads::serial();
        let x = samples(m, n, seed, shift);
        let backwards = x.slice(s![..;-1, ..]);
        let mut at: Vec<usize> = cuts.iter().map(|c| (c * m as f64) as usize).collect();
        at.extend([0, m]);
        at.sort_unstable();
        let parts: Vec<_> = at.windows(2).map(|w| backwards.slice(s![w[0]..w[1], ..])).collect();
        for precision in [Precision::Exact, Precision::Fast] {
            let read = |mut m: Moments| m.read(true, false, false, &threads).unwrap();
            let wanted = read(of(&[x.view()], precision, &threads));
            let added = read(of(&parts, precision, &threads));
            let mut merged = Moments::new(n, precision);
            for part in parts.iter().rev() {
                merged.merge(&of(&[part.view()], precision, &threads), &threads).unwrap();
            }
            prop_assert_eq!(merged.rows(), m as u64);
            for got in [added, read(merged)] {
                // If means are a million times the deviations, 106 bits do not determine the last bit.
                let sharp = precision == Precision::Exact && shift <= 100.0;
                if precision == Precision::Exact {
                    prop_assert_eq!(&got.mean, &wanted.mean);
                }
                for i in 0..n {
                    for j in 0..n {
                        let size = (wanted.negative[[i, i]] * wanted.negative[[j, j]]).sqrt();
                        let error = (got.negative[[i, j]] - wanted.negative[[i, j]]).abs();
                        let least = match precision {
                            Precision::Exact => f64::EPSILON,
                            Precision::Fast => 1e-9,
                        };
                        prop_assert!(error <= least * size, "{} of {}", error, size);
                        if sharp {
                            let entry = wanted.negative[[i, j]].abs();
                            let least = if entry >= LARGE * size { 0.0 } else { f64::EPSILON * entry + REST * size };
                            prop_assert!(error <= least, "{} of {}", error, entry);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn samples_are_returned_until_they_are_summed() {
    let threads = Threads::serial();
    for precision in [Precision::Fast, Precision::Exact] {
        for (m, more) in [(3, 0), (3, 4), (2000, 47), (2000, 48), (2048, 0), (3000, 5)] {
            let x = random(m + more, 3, 5);
            let weights: Vec<f64> = (0..more).map(|i| i as f64).collect();
            let mut moments = of(&[x.slice(s![..m, ..])], precision, &threads);
            let rest = x.slice(s![m.., ..]);
            moments.add(rest, Some(&weights), &threads).unwrap();
            let Some((rows, found)) = moments.buffered() else {
                assert!(m + more >= BLOCK_ROWS);
                continue;
            };
            assert!(m + more < BLOCK_ROWS);
            assert_eq!(rows, x);
            match found {
                Some(found) => assert_eq!(found, [vec![1.0; m], weights].concat()),
                None => assert_eq!(more, 0),
            }
            moments.read(true, false, true, &threads).unwrap();
            assert!(moments.buffered().is_none());
        }
    }
}
