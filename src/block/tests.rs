//! Tests of sweeps over a block against f itself: reported changes, gradients, and the ends of a sweep.

use ndarray::{Array1, Array2, s};

use super::*;
use crate::linalg;
use crate::signature::Signature;
use crate::start;
use crate::threads::Threads;

pub(super) const N: usize = 5;
pub(super) const R: usize = 3;

pub(super) fn symmetric(seed: u64, shift: f64) -> Array2<f64> {
    let a = Array2::from_shape_fn((N, N), |(i, j)| (((i * 7 + j * 11) as u64 + seed * 13) % 17) as f64 / 8.0 - 1.0);
    &a + &a.t() + Array2::<f64>::eye(N) * shift
}

pub(super) fn dense(rows: usize, columns: usize, seed: u64) -> Array2<f64> {
    Array2::from_shape_fn((rows, columns), |(i, j)| {
        ((((i * 5 + j * 3) as u64 + seed * 7) % 19) as f64 + 0.3 * i as f64) / 9.0 - 1.0
    })
}

/// ½⟨X, CX⟩ + ⟨L, X⟩ + λ‖X‖₁.
pub(super) fn value(c: &Array2<f64>, linear: &Array2<f64>, lambda: f64, x: &Array2<f64>) -> f64 {
    let size: f64 = x.iter().map(|v| v.abs()).sum();
    0.5 * (x * &c.dot(x)).sum() + (linear * x).sum() + lambda * size
}

pub(super) fn penalty(lambda: f64) -> Penalty {
    if lambda == 0.0 { Penalty::NONE } else { Penalty::l1(lambda) }
}

/// The matrix whose rows the block holds.
pub(super) fn held(block: &Block) -> Array2<f64> {
    Array2::from_shape_fn((block.len(), block.columns()), |(k, l)| block.row(k)[l])
}

pub(super) fn square(x: &Array2<f64>) -> f64 {
    linalg::inner(x, x)
}

/// A block with the columns of X, of these signs.
pub(super) fn columns_of(x: &Array2<f64>, c: &Array2<f64>, signs: &[i8]) -> Block {
    let mut block = Block::new(N);
    block.set_signature(&Signature::new(signs).unwrap(), None);
    let all: Vec<usize> = (0..x.ncols()).collect();
    block.load(x.t(), &[], &all);
    for (k, column) in c.dot(x).columns().into_iter().enumerate() {
        let target = block.gradient_row_mut(k).iter_mut();
        target.zip(column).for_each(|(t, &g)| *t = g);
    }
    block
}

/// One pass over pairs of columns of ½⟨X, CX⟩ + ⟨L, X⟩ + λ‖X‖₁.
pub(super) fn sweep_columns(
    block: &mut Block,
    c: &Array2<f64>,
    linear: &Array2<f64>,
    lambda: f64,
    pairs: &[(usize, usize)],
) -> Outcome {
    let stride = block.stride();
    let mut padded = vec![0.0; linear.ncols() * stride];
    for (k, column) in linear.columns().into_iter().enumerate() {
        column.iter().zip(&mut padded[k * stride..]).for_each(|(&l, t)| *t = l);
    }
    let sweep = ColumnSweep {
        block,
        linear: &padded,
        penalty: &penalty(lambda),
        scale: c.diag().iter().fold(0.0, |m: f64, v| m.max(v.abs())),
        proximal: 0.0,
        pairs,
        scratch: &mut Scratch::new(N),
    };
    sweep.run()
}

/// A block with some rows of X, for f = ½⟨X, CX⟩ + ⟨L, X⟩; all rows have these signs.
pub(super) fn rows_of(rows: &[usize], x: &Array2<f64>, c: &Array2<f64>, linear: &Array2<f64>, signs: &[i8]) -> Block {
    let mut block = Block::new(x.ncols());
    block.set_signature(&Signature::new(signs).unwrap(), None);
    block.load(x.view(), &[], rows);
    let gradient = c.dot(x) + linear;
    for (k, &row) in rows.iter().enumerate() {
        let target = block.gradient_row_mut(k).iter_mut();
        target.zip(gradient.row(row)).for_each(|(t, &g)| *t = g);
        for (l, &other) in rows.iter().enumerate() {
            block.curvature_mut()[k * rows.len() + l] = c[[row, other]];
        }
    }
    block
}

fn sweep_rows(block: &mut Block, options: PairOptions<'_>) -> Outcome {
    let scratch = &mut Scratch::new(block.columns());
    block.sweep(Pairs::All, &Penalty::NONE, options, scratch)
}

pub(super) const SIGNS: [i8; N] = [1, -1, -1, 1, 1];

/// A boost whose growth of ‖X‖² the limit allows is made and charged; another one ends the sweep.
#[test]
fn boosts_of_rows_and_columns_keep_the_limit_on_growth() {
    let mut grown = [0, 0];
    for seed in 0..40 {
        let (c, linear, x) = (symmetric(seed, 6.0), dense(N, R, seed), dense(N, R, seed + 3));
        let swept = |columns: bool, limit: f64, frozen: bool| {
            let mut block = match columns {
                true => columns_of(&x, &c, &SIGNS[..R]),
                false => rows_of(&[2, 3], &x, &c, &linear, &SIGNS),
            };
            let before = held(&block);
            block.set_growth_limit(limit);
            block.freeze(frozen);
            let outcome = match columns {
                true => sweep_columns(&mut block, &c, &linear, 0.0, &[(0, 2)]),
                false => sweep_rows(&mut block, PairOptions::default()),
            };
            (outcome, before, block)
        };
        for columns in [false, true] {
            let (free, before, block) = swept(columns, 1e6, false);
            let growth = 1e6 - block.growth_limit();
            assert_eq!((free.updates, block.has_left()), (1, false));
            let slack = 1e-8 * (1.0 + growth.abs());
            assert!((square(&held(&block)) - square(&before) - growth).abs() < slack, "{seed}");
            if growth < 1e-3 {
                continue;
            }
            grown[usize::from(columns)] += 1;
            let (none, before, block) = swept(columns, 0.999 * growth, false);
            assert_eq!((none.updates, block.has_left()), (0, true), "{seed}");
            assert_eq!((block.growth_limit(), held(&block)), (0.999 * growth, before));
            let (made, _, block) = swept(columns, 1.001 * growth, false);
            assert_eq!((made, block.has_left()), (free, false), "{seed}");
            // Pairs that are only looked at do not grow.
            let (seen, before, block) = swept(columns, 0.0, true);
            assert!(seen.largest > 0.0 && !block.has_left() && held(&block) == before);
        }
    }
    assert!(grown[0] > 4 && grown[1] > 4, "{grown:?}");
}

/// After an unbounded pair no other pair moves.
#[test]
fn a_sweep_ends_where_f_is_unbounded() {
    let (x, linear) = (dense(N, R, 1), dense(N, R, 2));
    let mut c = symmetric(1, 6.0);
    // Along the boosts of rows 0 and 1 the curvature is negative; rows 1 and 2 can be rotated.
    (c[[0, 0]], c[[1, 1]]) = (-9.0, -9.0);
    let mut block = rows_of(&[0, 1, 2], &x, &c, &linear, &SIGNS);
    let outcome = sweep_rows(&mut block, PairOptions::default());
    assert_eq!(block.recession().map(|found| found.pair), Some((0, 1)));
    assert_eq!((outcome.updates, held(&block)), (0, x.slice(s![..3, ..]).to_owned()));
    let mut alone = rows_of(&[1, 2], &x, &c, &linear, &SIGNS);
    assert_eq!(sweep_rows(&mut alone, PairOptions::default()).updates, 1);
    // A block ends like its part.
    let mut whole = rows_of(&[0, 1, 2], &x, &c, &linear, &SIGNS);
    whole.end_like(&block);
    assert_eq!(whole.recession(), block.recession());
    whole.end_like(&alone);
    assert!(whole.recession().is_none() && !whole.has_left());

    let linear = Array2::zeros((N, R));
    let mut block = columns_of(&x, &(-&c), &[1, -1, -1]);
    let c = symmetric(1, -9.0);
    for (k, column) in c.dot(&x).columns().into_iter().enumerate() {
        block.gradient_row_mut(k).copy_from_slice(&column.to_vec());
    }
    let outcome = sweep_columns(&mut block, &c, &linear, 0.3, &[(0, 1), (1, 2)]);
    assert_eq!(block.recession().map(|found| found.pair), Some((0, 1)));
    assert_eq!((outcome.updates, outcome.visited), (0, 1));
}

/// With C + tJ for C and shift c + t for c, steps with the scalar curvature are the same: XᵀJX is constant.
#[test]
fn a_multiple_of_the_signature_changes_no_scalar_step() {
    for seed in 0..20 {
        let (linear, x) = (dense(N, R, seed), dense(N, R, seed + 3));
        let j = Array1::from_iter(SIGNS.iter().map(|&s| f64::from(s)));
        for rows in [[0, 3], [1, 2], [0, 1], [2, 3]] {
            let swept = |t: f64| {
                let c = symmetric(seed, 6.0) + Array2::from_diag(&(t * &j));
                let mut block = rows_of(&rows, &x, &c, &linear, &SIGNS);
                let options = PairOptions { curvature: Curvature::Scalar, shift: 1.0 + t, ..PairOptions::default() };
                let outcome = sweep_rows(&mut block, options);
                (outcome.change, held(&block))
            };
            let (plain, shifted) = (swept(0.0), swept(2.0));
            assert!((plain.0 - shifted.0).abs() < 1e-9 * (1.0 + plain.0.abs()), "{seed} {rows:?}");
            assert!((&plain.1 - &shifted.1).iter().all(|v| v.abs() < 1e-6), "{seed} {rows:?}");
        }
    }
}

/// ‖A‖_*.
pub(super) fn nuclear(a: &Array2<f64>) -> f64 {
    let (values, _) = linalg::symmetric_eigen(a.t().dot(a).view());
    values.iter().map(|v| v.max(0.0).sqrt()).sum()
}

/// With C = αI the quadratic part is constant: V minimises ⟨V, LXᵀ⟩ + w/2‖V − I‖², by singular values.
#[test]
fn all_rows_at_once_are_turned_to_the_minimum_of_a_linear_function() {
    let rows: Vec<usize> = (0..N).collect();
    let c = Array2::eye(N) * 3.0;
    for (seed, proximal) in [(1, 0.0), (2, 0.0), (3, 0.7), (4, 5.0)] {
        let (linear, x) = (dense(N, N, seed), start::random(N, N, seed));
        for (curvature, shift) in [(Curvature::Exact, 0.0), (Curvature::Scalar, 3.0)] {
            let mut block = rows_of(&rows, &x, &c, &linear, &[1; N]);
            let options = PairOptions { curvature, shift, proximal, metric: None };
            let outcome = block.turn_all(options);
            assert_eq!((outcome.updates, outcome.visited), (1, 10));
            let v = held(&block).dot(&x.t());
            let identity = Array2::<f64>::eye(N);
            let own = 0.5 * proximal * square(&(&v - &identity));
            let product = linear.dot(&x.t());
            let least = proximal * N as f64 - nuclear(&(&product - &(proximal * &identity)));
            let decrease = least - product.diag().sum();
            assert!((outcome.change + own - decrease).abs() < 1e-8, "{seed} {curvature:?}");
            let gradient = c.dot(&held(&block)) + &linear;
            for (k, row) in gradient.rows().into_iter().enumerate() {
                assert!(block.has_moved(k));
                let kept = Array1::from(block.gradient_row(k).to_vec());
                assert!((&kept - &row).iter().all(|v| v.abs() < 1e-11));
            }
        }
    }
}

/// A turn of all rows lowers f by the reported change unless the point is stationary.
#[test]
fn turns_of_all_rows_descend_to_a_stationary_point() {
    let rows: Vec<usize> = (0..N).collect();
    for seed in 0..6 {
        let (c, linear) = (symmetric(seed, 0.5), dense(N, R, seed));
        for (curvature, shift) in [(Curvature::Exact, 0.0), (Curvature::Scalar, 0.5)] {
            let mut x = start::random(N, R, seed);
            let at = |x: &Array2<f64>| value(&c, &linear, 0.0, x);
            for turn in 0.. {
                assert!(turn < 20_000, "{seed} {curvature:?}");
                let mut block = rows_of(&rows, &x, &c, &linear, &[1; N]);
                let options = PairOptions { curvature, shift, ..PairOptions::default() };
                let outcome = block.turn_all(options);
                if outcome.updates == 0 {
                    break;
                }
                let new = held(&block);
                assert!((at(&new) - at(&x) - outcome.change).abs() < 1e-11);
                x = new;
            }
            let product = (c.dot(&x) + &linear).dot(&x.t());
            let skew = square(&(&product - &product.t())).sqrt();
            assert!(skew < 1e-5, "{seed} {curvature:?}: {skew:e}");
        }
    }
}

/// dist(I, argmin)² of a pair that is only looked at, from V, which is unique for rows that are not parallel. For
/// parallel rows a rotation and a reflection are best moves.
#[test]
fn the_distance_of_a_best_move_from_the_identity() {
    for seed in 0..20 {
        let (c, linear) = (symmetric(seed, 6.0), dense(N, R, seed));
        let mut x = dense(N, R, seed + 3);
        let parallel = seed % 2 == 1;
        if parallel {
            let row = x.row(0).to_owned();
            x.row_mut(1).assign(&(&row * (0.3 * seed as f64 - 2.0)));
        }
        let both = |frozen: bool| {
            let mut block = rows_of(&[0, 1], &x, &c, &linear, &[1; N]);
            block.freeze(frozen);
            (sweep_rows(&mut block, PairOptions::default()), held(&block))
        };
        let ((seen, _), (_, new)) = (both(true), both(false));
        let old = x.slice(s![..2, ..]).to_owned();
        let expected = if parallel {
            let cosine = (&old * &new).sum() / square(&old);
            (4.0 * (1.0 - cosine)).min(4.0)
        } else {
            // V = X'Xᵀ(XXᵀ)⁻¹ for the two rows.
            let gram = old.dot(&old.t());
            let det = gram[[0, 0]] * gram[[1, 1]] - gram[[0, 1]] * gram[[1, 0]];
            let inverse = Array2::from_shape_fn((2, 2), |(i, j)| {
                let sign = if i == j { 1.0 } else { -1.0 };
                sign * gram[[1 - j, 1 - i]] / det
            });
            square(&(new.dot(&old.t()).dot(&inverse) - Array2::<f64>::eye(2)))
        };
        assert!((seen.distance - expected).abs() < 1e-9, "{seed}: {} {expected}", seen.distance);
    }
}

#[test]
fn outcomes_add_up_and_keep_the_largest_decrease() {
    let one =
        Outcome { change: -1.0, largest: 0.7, best: Some((0, 1)), distance: 0.25, visited: 3, updates: 2, undone: 7 };
    let other = Outcome { largest: 0.9, best: Some((1, 2)), ..one };
    let sum =
        Outcome { change: -2.0, largest: 0.9, best: Some((1, 2)), distance: 0.5, visited: 6, updates: 4, undone: 14 };
    for (mut first, second) in [(one, other), (other, one)] {
        first.absorb(second);
        assert_eq!(first, sum);
    }
}

#[test]
fn a_block_says_what_it_holds() {
    let (c, linear, x) = (symmetric(1, 6.0), dense(N, R, 1), dense(N, R, 2));
    assert!(Block::new(R).is_empty());
    let mut block = rows_of(&[3, 1, 4], &x, &c, &linear, &[1; N]);
    assert!(!block.is_empty() && (0..3).all(|k| !block.has_moved(k)));
    for (k, row) in [3, 1, 4].into_iter().enumerate() {
        assert_eq!(block.row(k), x.row(row).to_vec());
        for (l, other) in [3, 1, 4].into_iter().enumerate() {
            assert_eq!(block.curvature(k, l), c[[row, other]]);
        }
    }
    assert_eq!(sweep_rows(&mut block, PairOptions::default()).visited, 3);
    let moved = (0..3).filter(|&k| block.has_moved(k)).count();
    assert!(moved >= 2);
    block.rebase();
    assert!((0..3).all(|k| !block.has_moved(k)));
}

/// Z D Zᵀ and Z D for a symmetric D.
#[test]
fn products_with_a_metric_are_those_of_matrices() {
    let d = symmetric(2, 4.0);
    let z = dense(2, N, 5);
    let (x, y) = (z.row(0).to_vec(), z.row(1).to_vec());
    let exact = z.dot(&d).dot(&z.t());
    let found = weighted(d.view(), &x, &y);
    for (a, b) in [(found.d0, exact[[0, 0]]), (found.d1, exact[[1, 1]]), (found.o, exact[[0, 1]])] {
        assert!((a - b).abs() < 1e-12);
    }
    let mut row = x;
    right_multiply(&mut row, d.view(), &mut Vec::new());
    let off = Array1::from(row) - z.dot(&d).row(0);
    assert!(off.iter().all(|v| v.abs() < 1e-12));
}

/// The pair that a sweep visits last has no better move after the sweep.
#[test]
fn the_last_pair_of_a_sweep_is_stationary() {
    for seed in 0..10 {
        let (c, linear) = (symmetric(seed, 6.0), dense(N, R, seed));
        let mut x = dense(N, R, seed + 3);
        let mut block = rows_of(&[0, 1, 2], &x, &c, &linear, &[1; N]);
        let outcome = sweep_rows(&mut block, PairOptions::default());
        assert!(outcome.updates > 0);
        x.slice_mut(s![..3, ..]).assign(&held(&block));
        let mut last = rows_of(&[1, 2], &x, &c, &linear, &[1; N]);
        let left = sweep_rows(&mut last, PairOptions::default());
        assert!(left.change > 1e-10 * outcome.change, "{seed}: {}", left.change);
    }
}

/// A step by a majoriser lowers f from every point that is not stationary, whatever the scalar and the size of X.
#[test]
fn every_turn_of_all_rows_is_a_descent() {
    let rows: Vec<usize> = (0..N).collect();
    for seed in 0..12 {
        for (size, shift, curvature, rotations) in [
            (1.0, 6.0, Curvature::Scalar, false),
            (1.0, -6.0, Curvature::Scalar, false),
            (4.0, 0.5, Curvature::Scalar, false),
            (0.25, 0.5, Curvature::Scalar, false),
            (1.0, 0.5, Curvature::Scalar, true),
            (1.0, 0.0, Curvature::Exact, true),
        ] {
            let (c, linear) = (symmetric(seed, 0.5), dense(N, R, seed));
            let mut x = start::random(N, R, seed) * size;
            for turn in 0..4 {
                let mut block = rows_of(&rows, &x, &c, &linear, &[1; N]);
                block.rotate_only(rotations);
                let options = PairOptions { curvature, shift, ..PairOptions::default() };
                let outcome = block.turn_all(options);
                assert_eq!(outcome.updates, 1, "{seed} {turn} {size} {shift} {curvature:?}");
                assert!(outcome.change < 0.0);
                x = held(&block);
            }
        }
    }
}

/// A matching reports the pair along which its model is unbounded: here one of negative curvature.
#[test]
fn a_matching_reports_an_unbounded_pair() {
    let (x, gradient) = (dense(N, R, 1), dense(N, R, 2));
    let signature = Signature::new(&SIGNS).unwrap();
    for (curvature, pair) in [(-9.0, Some((0, 1))), (9.0, None)] {
        let model = Majoriser::new(x.view(), gradient.view(), curvature);
        let mut matchings = Matchings::new(x.dim(), &signature, None);
        let (options, threads) = (PairOptions::default(), Threads::serial());
        let pairs = [[0, 1], [2, 3]];
        matchings.solve(x.view(), &pairs, &model, &penalty(0.0), options, &threads);
        assert_eq!(matchings.recession().map(|found| found.pair), pair);
    }
}

/// A sweep in units of powers of two makes the same moves: every threshold is relative.
#[test]
fn a_unit_changes_no_move_of_rows() {
    let mut filled = 0;
    for seed in 0..12 {
        let metric = symmetric(seed + 1, 9.0).slice(s![..R, ..R]).to_owned();
        let swept = |length: i32, value: i32, weighted: bool| {
            let (unit, size) = (2f64.powi(length), 2f64.powi(value));
            let c = symmetric(seed, 6.0) * (size / unit / unit);
            let (linear, mut x) = (dense(N, R, seed) * (size / unit), dense(N, R, seed + 3) * unit);
            x.row_mut(2).fill(0.0);
            let mut block = rows_of(&[0, 1, 2, 3, 4], &x, &c, &linear, &SIGNS);
            let options = PairOptions {
                proximal: 0.25 * size * (seed % 2) as f64,
                metric: weighted.then_some(metric.view()),
                ..PairOptions::default()
            };
            let penalty = penalty(0.5 * size / unit * (seed % 3) as f64);
            let mut outcome = Outcome::default();
            for _ in 0..4 {
                let scratch = &mut Scratch::new(R);
                let next = block.sweep(Pairs::All, &penalty, options, scratch);
                assert!(next.change <= 0.0 && (next.change < 0.0) == (next.updates > 0));
                outcome.absorb(next);
            }
            (outcome.change / size, outcome.updates, held(&block) / unit)
        };
        for weighted in [false, true] {
            let plain = swept(0, 0, weighted);
            filled += usize::from(plain.2.row(2).iter().any(|&v| v != 0.0));
            for (length, value) in [(30, -40), (-20, 60), (0, 90), (0, -90)] {
                assert_eq!(swept(length, value, weighted), plain, "{seed} {length} {value}");
            }
        }
    }
    assert!(filled > 8, "rows of zeros move, too: {filled}");
}

/// At a minimum of a pair another visit does not raise F by rounding.
#[test]
fn a_pair_that_is_solved_again_never_rises() {
    for seed in 0..150 {
        let (c, linear, x) = (symmetric(seed, 6.0), dense(N, R, seed), dense(N, R, seed + 3));
        for rows in [[0, 3], [0, 1]] {
            let mut block = rows_of(&rows, &x, &c, &linear, &SIGNS);
            let first = sweep_rows(&mut block, PairOptions::default()).change;
            for _ in 0..6 {
                let again = sweep_rows(&mut block, PairOptions::default());
                assert!(again.change <= 0.0 && again.change >= 1e-9 * first.min(-1.0), "{seed}");
                assert_eq!(again.change < 0.0, again.updates > 0);
            }
        }
        let (signs, all) = ([1; N], [0, 1, 2, 3, 4]);
        let mut block = rows_of(&all, &x, &c, &linear, &signs);
        for _ in 0..6 {
            let turned = block.turn_all(PairOptions::default());
            assert!(turned.change <= 0.0 && (turned.change < 0.0) == (turned.updates > 0));
        }
    }
}
