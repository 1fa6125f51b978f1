//! Tests of single rounds at a node: their limits, their ends, and how they alternate.

use super::super::super::master::quadratic;
use super::*;

/// Returns the state of a node before its first round.
fn attempt(shifted: &Shifted, at: &Node, barrier: f64, easy: bool) -> Attempt {
    let classes = at.classes.iter().map(|c| c.columns as f64).collect();
    Attempt {
        master: Master::new(N, classes, shifted.begin(at)),
        barrier,
        bound: at.bound,
        dual: None,
        easy,
        part: FIRST_EFFORT,
        spent: 0.0,
    }
}

/// Returns Σ w uᵀCu over the first `count` vectors.
fn value_of(attempt: &Attempt, count: usize) -> f64 {
    let first = attempt.master.known.iter().take(count);
    first.map(|u| u.weight * u.value).sum()
}

/// The first barrier weight is a hundredth of the bound, shared by n + J terms; a cut node keeps
/// its own.
#[test]
fn barriers_begin_relative_to_the_bound() {
    let threads = Threads::serial();
    let shifted = Shifted::new(indefinite(3) + Array2::<f64>::eye(N) * 12.0, 2);
    let mut at = node(vec![class(2, allowed(2, &[]))]);
    let never = Reach { go_on: &|| false, ..reach(&threads, 0.0, 0.0) };
    for bound in [50.0, 80.0] {
        at.bound = bound;
        let terms = (N + shifted.begin(&at).len()) as f64;
        let cut = shifted.solve(&at, &never, &mut |_, _| {}).cut.unwrap();
        assert!((cut - 0.01 * bound / terms).abs() < 1e-15 * bound);
    }
    let (barrier, dual) = (0.125, None);
    at.left = Some(Left { barrier, dual });
    let cut = shifted.solve(&at, &never, &mut |_, _| {}).cut;
    assert_eq!(cut, Some(0.125));
}

/// A round is cut where the work of the maxima and of the centre reaches its limit, or the clock
/// has ended.
#[test]
fn rounds_are_cut_at_their_limits() {
    let threads = Threads::serial();
    let shifted = Shifted::new(indefinite(3) + Array2::<f64>::eye(N) * 12.0, 2);
    let at = node(vec![class(2, allowed(2, &[]))]);
    let run = |spent: f64, work: f64, time: bool| {
        let limits = Reach { work, go_on: &|| time, ..reach(&threads, 0.0, 0.0) };
        let mut state = attempt(&shifted, &at, 0.1, true);
        state.spent = spent;
        let cut = shifted.round(&at, &mut state, &limits, &mut |_, _| {}) == Round::Cut;
        (cut, state.master.work)
    };
    let (cut, own) = run(0.0, f64::INFINITY, true);
    assert!(!cut && own > 0.0);
    assert!(run(0.0, f64::INFINITY, false).0);
    for spent in [0.0, 0.5 * own, 3.0 * own] {
        for (more, cut) in [(-0.1 * own, true), (0.0, true), (0.1 * own, false)] {
            assert_eq!(run(spent, spent + own + more, true), (cut, own), "{spent}");
        }
    }
}

/// A node is known well enough if its own gap is at most a share of the way from its value to
/// `closed`.
#[test]
fn nodes_are_split_once_their_gap_is_small() {
    let threads = Threads::serial();
    let (mut done, mut open) = (0, 0);
    for seed in 0..4 {
        let c = indefinite(seed) + Array2::<f64>::eye(N) * 12.0;
        let (bound, shifted) = (ky_fan(&c, 2) + 1.0, Shifted::new(c, 2));
        for (rows, divisible) in [(&[][..], true), (&[0, 3], false)] {
            for (barrier, root) in [1.0, 0.3, 0.1, 0.03].into_iter().flat_map(|b| [(b, false), (b, true)]) {
                let mut at = node(vec![class(2, allowed(2, rows))]);
                (at.bound, at.root) = (bound, root);
                for closed in [-30.0, 0.0, 20.0, 30.0] {
                    let mut state = attempt(&shifted, &at, barrier, true);
                    let count = state.master.known.len();
                    let limits = reach(&threads, 0.0, closed);
                    let round = shifted.round(&at, &mut state, &limits, &mut |_, _| {});
                    if state.bound == bound {
                        continue;
                    }
                    let value = value_of(&state, count);
                    let share = if root { ROOT_SPLIT } else { SPLIT_EARLY };
                    let near = state.bound - value <= share * (value - closed);
                    let known = divisible && value > closed && near;
                    let end = known || state.bound <= closed;
                    assert_eq!(round == Round::Done, end, "{seed} {barrier} {closed}");
                    done += usize::from(end);
                    open += usize::from(!end);
                }
            }
        }
    }
    assert!(done > 20 && open > 20, "{done} {open}");
}

/// Quick searches go on while they find new vectors; a full search follows, with twice the share of
/// nodes of the one before, and then a smaller barrier: a tenth of the gap per term, but at least a
/// tenth of itself.
#[test]
fn quick_rounds_alternate_with_full_ones() {
    let threads = Threads::serial();
    let mut counts = [0; 3];
    for seed in 0..4 {
        let c = indefinite(seed) + Array2::<f64>::eye(N) * 12.0;
        let shifted = Shifted::new(c.clone(), 2);
        let mut at = node(vec![class(1, allowed(2, &[])), class(1, allowed(3, &[1]))]);
        at.bound = ky_fan(&c, 2) + 1.0;
        let limits = reach(&threads, 0.0, at.bound - 4.0);
        for first in [10.0, 0.1] {
            let mut state = attempt(&shifted, &at, first, true);
            for _ in 0..60 {
                let before = state.master.known.len();
                let (easy, part, barrier, bound) = (state.easy, state.part, state.barrier, state.bound);
                let centre = state.master.clone().centre(barrier, &|| true).unwrap();
                let round = shifted.round(&at, &mut state, &limits, &mut |_, _| {});
                let rest = state.bound - value_of(&state, before);
                assert!(state.bound <= bound && rest > -1e-9);
                if round == Round::Done {
                    break;
                }
                let new = &state.master.known[before..];
                assert_eq!(state.easy, !easy || !new.is_empty());
                for u in new {
                    let gain = u.value - quadratic(&centre.lambda, &u.rows, &u.entries) - centre.multipliers[u.class];
                    let least = if easy { 0.125 * (bound - value_of(&state, before)) } else { 0.0 };
                    assert!(gain > least - 1e-9, "{seed} {gain} {least}");
                }
                let terms = (N + state.master.known.len()) as f64;
                let aim = (0.1 * rest / terms).clamp(0.1 * barrier, barrier);
                let (next, lower) = if easy { (part, barrier) } else { ((2.0 * part).min(1.0), aim) };
                assert_eq!(state.part, next);
                assert!((state.barrier - lower).abs() < 1e-12 * barrier, "{seed}");
                counts[0] += usize::from(easy);
                counts[1] += usize::from(!easy);
                counts[2] += usize::from(aim > 0.1 * barrier && aim < barrier);
            }
        }
    }
    assert!(counts.iter().all(|&count| count > 3), "{counts:?}");
}

/// A search begins with the known supports of at least two rows; later classes have the work that
/// earlier ones leave.
#[test]
fn maxima_begin_with_known_supports_and_share_the_work() {
    let c = indefinite(2) + Array2::<f64>::eye(N) * 9.0;
    let shifted = Shifted::new(c.clone(), 2);
    let at = node(vec![class(1, allowed(3, &[])), class(1, allowed(3, &[]))]);
    let mut master = Master::new(N, vec![1.0, 1.0], shifted.begin(&at));
    for (class, rows) in [(0, [0, 3]), (1, [2, 5])] {
        master.known.push(Known { class, rows: rows.to_vec(), entries: vec![0.6, 0.8], value: 1.0, weight: 1e-3 });
    }
    let centre = master.centre(0.2, &|| true).unwrap();
    let run = |work: f64| {
        let effort = Effort { work, ..exact_effort() };
        shifted.maxima(&at, &master, &centre, (effort, f64::NEG_INFINITY))
    };
    let none = run(0.0);
    for (class, rows) in [(0, [0, 3]), (1, [2, 5])] {
        // Supports of one row are in all others, and no search begins with them.
        let found = &none.found[class];
        assert!(found.iter().any(|u| u.rows == rows) && found.iter().all(|u| u.rows.len() > 1));
        assert!(!none.found[1 - class].iter().any(|u| u.rows == rows));
    }
    let whole = run(f64::INFINITY);
    // Both classes have the same maximum, and almost the same work.
    assert!(none.work < 0.3 * whole.work, "{} {}", none.work, whole.work);
    let half = run(0.5 * whole.work);
    assert!(half.work < 0.75 * whole.work, "{} {}", half.work, whole.work);

    let dual = Dual { lambda: centre.lambda.clone(), maxima: whole.maxima };
    let screened = |work: f64| {
        let effort = Effort { work, ..exact_effort() };
        shifted.screen(&mut at.classes.clone(), &dual, 0.5, &effort)
    };
    let (least, most) = (screened(0.0), screened(f64::INFINITY));
    assert!(least < 0.3 * most, "{least} {most}");
    assert!(screened(0.5 * most) < 0.75 * most);
}

/// A node is solved at a gap of 1e-9 of its value.
#[test]
fn nodes_are_solved_at_a_small_gap() {
    let threads = Threads::serial();
    for seed in 0..4 {
        let c = indefinite(seed) + Array2::<f64>::eye(N) * 12.0;
        let shifted = Shifted::new(c, 1);
        let at = node(vec![class(1, allowed(2, &[]))]);
        for barrier in [0.1, 1e-3] {
            for (part, solved) in [(0.5, true), (2.0, false)] {
                let mut state = attempt(&shifted, &at, barrier, true);
                let mut centred = state.master.clone();
                centred.centre(barrier, &|| true).unwrap();
                let value = centred.value();
                state.bound = value * (1.0 + part * 1e-9);
                let limits = reach(&threads, 0.0, value);
                let round = shifted.round(&at, &mut state, &limits, &mut |_, _| {});
                assert_eq!(round == Round::Done, solved, "{seed} {barrier} {part}");
            }
        }
    }
}
