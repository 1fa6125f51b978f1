//! Bounds of entries and of rapidities are reached exactly and never exceeded.

use orthobcd::pair::{CirclePair, HyperbolaPair, LightModel, Scratch, Trig};
use orthobcd::penalty::{Penalty, solve_on_circle, solve_on_hyperbola};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::common::normal;

/// An entry may vanish exactly at a bound of the rapidity, and not beyond.
#[test]
fn entries_vanish_at_a_bound_and_not_beyond() {
    let mut scratch = Scratch::new(1);
    // The smaller entry vanishes at u² = |x − y|/|x + y|, here 4 or 1/4.
    for (row, zero) in [([2.5, -1.5], 2.0f64), ([2.5, 1.5], 0.5), ([-1.5, 2.5], 2.0)] {
        let mut solved = |penalty: &Penalty, range: (f64, f64)| {
            let (x, y) = ([row[0]], [row[1]]);
            let light = LightModel::default();
            let pair = HyperbolaPair { range, ..HyperbolaPair::new((0, 1), &x, &y, &light, Some(1.0)) };
            let best = solve_on_hyperbola(penalty, &pair, &mut scratch);
            (best.value, best.boost.u, scratch.vanishing.clone())
        };
        let (lower, upper) = (zero.min(1.0), zero.max(1.0));
        let reached = (-1.0, zero, vec![0]);
        for range in [(lower, upper), (lower / 2.0, upper * 2.0)] {
            for (l0, l1) in
                [(Penalty::l0(1.0), Penalty::l1(0.5)), (Penalty::l0(1.0).general(), Penalty::l1(0.5).general())]
            {
                assert_eq!(solved(&l0, range), reached);
                // ℓ1 is continuous: at the end of the range the entry may be zero up to rounding.
                let (value, u, zeros) = solved(&l1, range);
                assert_eq!((value, u), (-1.0, zero));
                assert!(range.0 == lower || zeros == [0]);
            }
        }
        let short = match zero > 1.0 {
            true => (0.5, zero.next_down()),
            false => (zero.next_up(), 2.0),
        };
        assert_eq!(solved(&Penalty::l0(1.0), short), (0.0, 1.0, Vec::new()));
        assert!(solved(&Penalty::l1(0.5), short).2.is_empty());
    }
}

/// With X ≥ 0 the boosts of two rows end where an entry vanishes, or at the bound if this comes
/// first.
#[test]
fn nonnegative_rows_end_at_their_first_zero() {
    let mut scratch = Scratch::new(2);
    let (x, y) = ([2.5, 3.0], [1.5, 1.0]);
    // F rises with u, so that u falls to the first zero of an entry, at 1/√2, or to the bound.
    let light = LightModel { gz: [[2.0, 0.0], [0.0, 0.0]], ..LightModel::default() };
    let first = 0.5f64.sqrt();
    for (bound, u, zeros) in [(0.6, first, vec![1]), (first, first, vec![1]), (0.8, 0.8, vec![])] {
        let pair =
            HyperbolaPair { range: (bound, 1.0 / bound), ..HyperbolaPair::new((0, 1), &x, &y, &light, Some(1.0)) };
        let best = solve_on_hyperbola(&Penalty::NONNEGATIVE, &pair, &mut scratch);
        assert_eq!((best.boost.u, best.boost.signs), (u, [1.0, 1.0]));
        assert_eq!(scratch.vanishing, zeros, "{bound}");
    }
}

/// Entries on a bound are there exactly: after `settle` no entry exceeds a bound by rounding.
#[test]
fn entries_on_a_bound_are_exact() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
    let mut scratch = Scratch::new(2);
    let (bounds, mut on) = (Penalty::interval(-0.75, 0.75).unwrap(), [0, 0]);
    for _ in 0..400 {
        // One column, before or behind a short one, is longer than its bounds.
        let long = rng.random_range(0..2);
        let (mut x, mut y) = ([0.0, 0.0], [0.1, 0.1]);
        (x[long], y[long]) = (rng.random_range(0.6..0.75), rng.random_range(0.6..0.75));
        let mut draw = || normal(&mut rng);
        let [rotation, reflection] = [(); 2].map(|()| Trig { a: draw(), b: draw(), p: draw(), q: draw() });
        let pair = CirclePair { rows: (0, 1), x: &x, y: &y, rotation, reflection: Some(reflection) };
        let v = solve_on_circle(&bounds, &pair, &mut scratch).turn.matrix();
        let row = |i: usize| [0, 1].map(|k| v[i][0] * x[k] + v[i][1] * y[k]);
        let (mut new_x, mut new_y) = (row(0), row(1));
        scratch.settle(&mut new_x, &mut new_y);
        for entry in new_x.iter().chain(&new_y) {
            assert!(entry.abs() <= 0.75, "{entry:e}");
            on[long] += usize::from(entry.abs() == 0.75);
        }
    }
    assert!(on[0] > 20 && on[1] > 20, "{on:?}");
}

/// Columns of two equal entries have positive entries after boosts of equal signs alone.
#[test]
fn equal_entries_stay_positive() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let (mut scratch, mut moved) = (Scratch::new(2), 0);
    for trial in 0..200 {
        // The other column is larger in the first or in the second row.
        let (mut x, mut y) = ([0.5, 0.25], [0.5, 1.0]);
        if trial % 2 == 0 {
            std::mem::swap(&mut x, &mut y);
        }
        let mut draw = || 3.0 * normal(&mut rng);
        let light = LightModel { gz: [[draw(), draw()], [draw(), draw()]], proximal: 1.0, ..LightModel::default() };
        let pair = HyperbolaPair::new((0, 1), &x, &y, &light, Some(2.0));
        let boost = solve_on_hyperbola(&Penalty::NONNEGATIVE, &pair, &mut scratch).boost;
        let (mut new_x, mut new_y) = ([0.0; 2], [0.0; 2]);
        boost.apply(&x, &y, &mut new_x, &mut new_y);
        assert!(new_x.iter().chain(&new_y).all(|&v| v > -1e-14), "{boost:?}");
        moved += usize::from(boost.u != 1.0);
    }
    assert!(moved > 100, "{moved}");
}
