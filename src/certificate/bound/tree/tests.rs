//! Tests of the tree's parts: shares, classes, the choice of a row and the children of a node.

use ndarray::array;

use super::*;
use crate::threads::Threads;

#[test]
fn shares_are_all_descending_sums() {
    for r in 1..=3 {
        for n in 1..=4usize {
            for total in r..=n * r {
                let mut all = Vec::new();
                for code in 0..n.pow(r as u32) {
                    let digit = |t: u32| code / n.pow(t) % n + 1;
                    let list: Vec<usize> = (0..r as u32).map(digit).collect();
                    let descending = list.windows(2).all(|w| w[0] >= w[1]);
                    if descending && list.iter().sum::<usize>() == total {
                        all.push(list);
                    }
                }
                let mut found = shares(total, r, n, all.len()).unwrap();
                found.sort_unstable();
                all.sort_unstable();
                assert_eq!(found, all, "{total} {r} {n}");
                assert!(shares(total, r, n, all.len() - 1).is_none());
            }
        }
    }
}

fn tree() -> Tree {
    let c = array![[3.0, 1.0, 0.0, 0.5], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, -2.0, 1.0], [0.5, 0.0, 1.0, 0.0]];
    Tree::new(&c, 3, &[vec![3, 1, 1], vec![2, 2, 1]], 7.0)
}

#[test]
fn roots_hold_a_class_for_each_number() {
    let mut tree = tree();
    let values = symmetric_eigenvalues(
        array![[3.0, 1.0, 0.0, 0.5], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, -2.0, 1.0], [0.5, 0.0, 1.0, 0.0]].view(),
    );
    // The shift is the spread, and more if the least eigenvalue is negative.
    assert!((tree.sigma - (values[3] - 2.0 * values[0])).abs() < 1e-12);
    assert_eq!((tree.nodes, tree.roots, tree.is_over()), (2, 2, false));
    for sizes in [[(1, 3), (2, 1)], [(2, 2), (1, 1)]] {
        let root = tree.open.pop().unwrap();
        assert!(root.root && (root.bound - (7.0 + 3.0 * tree.sigma)).abs() < 1e-12);
        let found: Vec<(usize, usize)> = root.classes.iter().map(|c| (c.columns, c.allowed.size)).collect();
        assert_eq!(found, sizes);
        assert!(root.classes.iter().all(|c| c.allowed.free == [0, 1, 2, 3]));
    }
    assert!(tree.is_over());
    // A positive definite C is shifted by its spread, and rows without a column cannot be more than n.
    let tree = Tree::new(&array![[5.0, 0.0], [0.0, 2.0]], 1, &[vec![3]], 5.0);
    assert!((tree.sigma - 3.0).abs() < 1e-14);
    assert_eq!(tree.open.first().unwrap().1.classes[0].allowed.size, 2);
}

fn known(class: usize, rows: &[usize], entries: &[f64], weight: f64) -> Known {
    Known { class, rows: rows.to_vec(), entries: entries.to_vec(), value: 1.0, weight }
}

fn solved(columns: [usize; 2], vectors: Vec<Known>) -> Solved {
    let class = |columns: usize, size: usize, required: &[usize]| Class {
        columns,
        allowed: Allowed {
            size,
            required: required.to_vec(),
            free: (0..4).filter(|i| !required.contains(i)).collect(),
        },
    };
    let classes = columns.iter().map(|&c| c as f64).collect();
    Solved {
        bound: 5.0,
        dual: None,
        master: Master::new(4, classes, vectors),
        classes: vec![class(columns[0], 2, &[2]), class(columns[1], 2, &[])],
        cut: None,
        work: 1.0,
    }
}

/// A split leaves every support to one child, and shares the weights by the columns.
#[test]
fn children_share_columns_and_weights() {
    let vectors = || {
        vec![
            known(1, &[0, 1], &[0.6, 0.8], 0.3),
            known(1, &[1, 3], &[0.6, 0.8], 0.2),
            known(1, &[0], &[1.0], 0.1),
            known(0, &[0, 2], &[0.6, 0.8], 0.4),
            known(0, &[2], &[1.0], 0.5),
        ]
    };
    for columns in [1usize, 3] {
        let children = Tree::children(&solved([2, columns], vectors()), 1, 0);
        let [with, without] = &children[..] else { panic!("two children") };
        for child in &children {
            assert_eq!((child.bound, child.root, child.left.is_none()), (5.0, false, true));
            let all: usize = child.classes.iter().map(|c| c.columns).sum();
            assert_eq!(all, 2 + columns);
            assert_eq!(child.classes[0].allowed.required, [2]);
            // The other class keeps its vectors and weights.
            let other: Vec<f64> = child.known.iter().filter(|u| u.class == 0).map(|u| u.weight).collect();
            assert_eq!(other, [0.4, 0.5]);
            for u in &child.known {
                assert!(child.classes[u.class].allowed.fits(&u.rows));
            }
        }
        assert_eq!(without.classes[1].allowed.free, [1, 2, 3]);
        assert_eq!(without.classes[1].columns, columns);
        let left: Vec<f64> = without.known.iter().filter(|u| u.class == 1).map(|u| u.weight).collect();
        assert_eq!(left, [0.2]);
        let own = if columns == 1 { 1 } else { 2 };
        assert_eq!(with.classes.len(), own + 1);
        let one = &with.classes[own];
        assert_eq!((one.columns, &one.allowed.required[..]), (1, &[0][..]));
        assert_eq!(one.allowed.free, [1, 2, 3]);
        assert_eq!(one.allowed.size, 2);
        let mine: Vec<(Vec<usize>, f64)> = (with.known.iter())
            .filter(|u| u.class == own)
            .map(|u| (u.rows.clone(), u.weight * columns as f64))
            .collect();
        assert_eq!(mine.len(), 2);
        assert!((mine[0].1 - 0.3).abs() < 1e-15 && (mine[1].1 - 0.1).abs() < 1e-15);
        if columns > 1 {
            assert_eq!((with.classes[1].columns, &with.classes[1].allowed.free[..]), (2, &[0, 1, 2, 3][..]));
            let rest: f64 = with.known.iter().filter(|u| u.class == 1).map(|u| u.weight).sum();
            assert!((rest - 0.6 * 2.0 / 3.0).abs() < 1e-15);
        }
    }
}

/// The row of the split has the largest product of the squares that it holds and the distance of its use from
/// an integer, plus 1e-3.
#[test]
fn the_least_decided_row_is_split() {
    let of = |vectors: Vec<Known>| {
        let solved = solved([1, 1], vectors);
        split(&solved.classes, &solved.master)
    };
    // Row 1 of class 1 is used by half, row 0 by all.
    let used = |weight: f64| vec![known(1, &[0], &[1.0], 1.0), known(1, &[1], &[1.0], weight)];
    assert_eq!(of(used(0.5)), Some((1, 1)));
    assert_eq!(of(used(0.0)), Some((1, 0)));
    // Equal uses: the larger square decides, also a negative entry's, and that of the other class.
    let two = |a: f64, b: f64| vec![known(1, &[1, 3], &[a, b], 0.5)];
    assert_eq!(of(two(0.6, -0.8)), Some((1, 3)));
    assert_eq!(of(two(0.8, 0.6)), Some((1, 1)));
    // Of rows that are equal, the first.
    assert_eq!(of(used(1.0)), Some((1, 0)));
    // Many small vectors of one row count together, for use and squares.
    let many =
        vec![known(1, &[0], &[1.0], 0.35), known(1, &[1, 2], &[0.8, 0.6], 0.3), known(1, &[1, 3], &[0.8, 0.6], 0.3)];
    assert_eq!(of(many), Some((1, 1)));
    let both = vec![known(0, &[3, 2], &[0.8, 0.6], 0.5), known(1, &[1], &[1.0], 0.25)];
    assert_eq!(of(both), Some((0, 3)));
    // A use of 2 is decided.
    let more = vec![known(1, &[0], &[1.0], 1.5), known(1, &[0, 1], &[1.0, 0.0], 0.5), known(1, &[3], &[1.0], 0.5)];
    assert_eq!(of(more), Some((1, 3)));
    // No row is left where the required ones are all.
    let mut none = solved([1, 1], Vec::new());
    none.classes[0].allowed.size = 1;
    none.classes[1].allowed.free = vec![1];
    assert_eq!(split(&none.classes, &none.master), None);
}

/// Settled nodes: closed, split, put back if cut; rows count as used once all roots are solved.
#[test]
fn nodes_are_closed_split_or_put_back() {
    let threads = Threads::serial();
    let reach = Reach { value: 4.0, closed: 4.5, nodes: 100, work: f64::INFINITY, threads: &threads, go_on: &|| true };
    let vectors = || vec![known(1, &[1], &[1.0], 0.5)];
    for (bound, cut, open, done) in [
        (5.0, None, 2, f64::NEG_INFINITY),
        (4.5, None, 0, 4.5),
        (4.0, None, 0, 4.5),
        (3.0, None, 0, 4.5),
        (5.0, Some(0.1), 1, f64::NEG_INFINITY),
        (4.5, Some(0.1), 0, 4.5),
    ] {
        let mut tree = Tree::new(&Array2::eye(4), 2, &[vec![2, 2]], 9.0);
        let root = tree.open.pop().unwrap();
        let mut solved = solved([1, 1], vectors());
        (solved.bound, solved.cut) = (bound, cut);
        let nodes = tree.nodes;
        tree.settle(root, solved, &reach);
        assert_eq!((tree.open.len(), tree.done), (open, done), "{bound} {cut:?}");
        let back = open == 1;
        assert_eq!(tree.roots, usize::from(back));
        assert_eq!(tree.nodes, nodes + if open == 2 { 2 } else { 0 });
        assert_eq!(tree.excluded().len(), if back || bound >= 4.0 { 0 } else { 4 });
        if back {
            let node = &tree.open.first().unwrap().1;
            assert!(node.root && node.bound == 5.0 && node.left.is_some());
        }
    }
    // Without a row to split, the bound of the node remains.
    let mut tree = Tree::new(&Array2::eye(4), 2, &[vec![2, 2]], 9.0);
    let root = tree.open.pop().unwrap();
    let mut none = solved([1, 1], Vec::new());
    (none.classes[0].allowed.size, none.classes[1].allowed.size) = (1, 4);
    tree.settle(root, none, &reach);
    assert_eq!((tree.open.len(), tree.done), (0, 5.0));
    // Rows that a root has left out are excluded, if the other root has left them out too.
    let mut tree = Tree::new(&Array2::eye(4), 2, &[vec![3, 1], vec![2, 2]], 9.0);
    for rows in [[1, 3], [1, 2]] {
        let root = tree.open.pop().unwrap();
        let mut found = solved([1, 1], Vec::new());
        found.bound = 4.2;
        for class in &mut found.classes {
            class.allowed.free = rows.to_vec();
        }
        assert!(tree.excluded().is_empty());
        tree.settle(root, found, &reach);
    }
    assert_eq!(tree.excluded(), [0]);
}

/// Returns Σ_t max u_tᵀBu_t over the supports of at most k_t rows, by enumeration.
fn maxima(b: &Array2<f64>, counts: &[usize]) -> f64 {
    let largest = |count: usize| {
        (1..1usize << b.nrows())
            .filter(|s| s.count_ones() as usize <= count)
            .map(|s| {
                let rows: Vec<usize> = (0..b.nrows()).filter(|i| s >> i & 1 == 1).collect();
                let block = Array2::from_shape_fn((rows.len(), rows.len()), |(i, j)| b[[rows[i], rows[j]]]);
                let values = symmetric_eigenvalues(block.view());
                values[values.len() - 1]
            })
            .fold(f64::NEG_INFINITY, f64::max)
    };
    counts.iter().map(|&count| largest(count)).sum()
}

/// Returns a matrix of n rows whose sum for k = (1, 1) is that of the two largest diagonal entries.
fn matrix(n: usize, seed: u64) -> Array2<f64> {
    let a = crate::start::random(n, n, seed) * &ndarray::Array1::linspace(0.5, 3.0, n);
    &a + &a.t()
}

/// The bounds of a run never rise above `closed`, are valid, come with Λ from the root alone, and end at
/// most at `closed`.
#[test]
fn runs_end_with_a_closed_bound() {
    let threads = Threads::serial();
    for seed in 0..12 {
        let (n, counts) = (4, [1, 1]);
        let c = matrix(n, seed);
        let mut sorted = c.diag().to_vec();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let exact = sorted[0] + sorted[1];
        let values = symmetric_eigenvalues(c.view());
        let above = values[n - 1] + values[n - 2];
        for part in [0.0, 1e-3, 0.4] {
            let closed = exact + part * (above - exact) + 1e-9;
            let reach =
                Reach { value: exact, closed, nodes: 1000, work: f64::INFINITY, threads: &threads, go_on: &|| true };
            let mut tree = Tree::new(&c, 2, &[counts.to_vec()], above);
            let (mut told, mut nodes) = (vec![above + 1e-9], 0);
            let work = tree.run(&reach, |news| {
                assert!(news.above >= exact - 1e-9 && news.nodes >= nodes, "{seed}");
                // Closed nodes count as `closed`.
                let most = told[told.len() - 1].max(closed);
                assert!(news.above <= most + 1e-12, "{seed}");
                told.push(news.above);
                nodes = news.nodes;
                if let Some(lambda) = news.multiplier {
                    assert_eq!(nodes, 1);
                    let values = symmetric_eigenvalues(lambda.view());
                    let sum = values[n - 1] + values[n - 2] + maxima(&(&c - &lambda), &counts);
                    assert!(news.above >= sum - 1e-9);
                }
                true
            });
            assert!(tree.is_over() && work > 0.0);
            assert!(told[told.len() - 1] <= closed, "{seed} {part}");
            // A run that is over has nothing to do.
            assert_eq!(tree.run(&reach, |_| true), 0.0);
        }
    }
}

/// A run ends at its limit on nodes, on work or on time, or when it is told to, and then continues.
#[test]
fn runs_keep_their_limits() {
    let threads = Threads::serial();
    let c = matrix(6, 3);
    let shares = [vec![3, 2]];
    let above = {
        let values = symmetric_eigenvalues(c.view());
        values[5] + values[4]
    };
    let reach = Reach { value: 0.0, closed: 0.0, nodes: 12, work: f64::INFINITY, threads: &threads, go_on: &|| true };
    let fresh = || Tree::new(&c, 2, &shares, above);
    let mut whole = fresh();
    let work = whole.run(&reach, |_| true);
    // Four nodes at a time have two children each.
    assert!(!whole.is_over() && (12..12 + 8).contains(&whole.nodes), "{}", whole.nodes);
    for nodes in [12, whole.nodes] {
        assert_eq!(whole.run(&Reach { nodes, ..reach }, |_| true), 0.0);
    }
    let mut short = fresh();
    let none = Reach { work: 0.0, ..reach };
    assert_eq!((short.run(&none, |_| true), short.nodes), (0.0, 1));
    let never = Reach { go_on: &|| false, ..reach };
    assert_eq!((short.run(&never, |_| true), short.nodes), (0.0, 1));
    let part = Reach { work: 0.3 * work, ..reach };
    let spent = short.run(&part, |_| true);
    assert!(spent >= 0.3 * work && spent < work, "{spent} {work}");
    let mut told = 0;
    let mut stopped = fresh();
    stopped.run(&reach, |news| {
        told += usize::from(news.multiplier.is_none());
        told < 2
    });
    assert!(told == 2 && stopped.nodes < whole.nodes);
    // At least two nodes for each root are solved, whatever the limit.
    let few = Reach { nodes: 0, ..reach };
    let mut roots = Tree::new(&c, 2, &[vec![3, 2], vec![4, 1], vec![2, 2]], above);
    roots.run(&few, |_| true);
    assert!(roots.roots == 0 && roots.nodes >= 6, "{} {}", roots.roots, roots.nodes);
}
