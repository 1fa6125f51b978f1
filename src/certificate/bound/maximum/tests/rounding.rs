//! Tests of the margins by which bounds are rounded outwards, and of the effort of a search.

use super::*;

const ULP: f64 = f64::EPSILON;

/// Returns a node of all rows without U, whose bound for fewer rows is `fewer`.
fn plain(n: usize, fewer: f64) -> Node {
    let rows: Vec<usize> = (0..n).collect();
    let admm = Admm::new(&Array2::zeros((n, n)), 1, Entries::Within(1.0));
    Node {
        bound: f64::INFINITY,
        required: Vec::new(),
        free: rows.clone(),
        relaxed: Arc::new(Relaxed { rows, admm, largest: fewer }),
    }
}

/// A row at the threshold (floor − B_ii)(floor − φ) = b² stays where floor, φ, B_ii and b² are off
/// by 3 ulp each, b² by that for each of the k rows. Beyond twice the margin it is left out.
#[test]
fn rows_near_the_threshold_stay() {
    for (own, fewer, floor, size) in [
        (99.0f64, 99.0f64, 100.0f64, 2),
        (-99.0, -99.0, -98.0, 2),
        (99.0, -1.0, 100.0, 2),
        (-1.0, 99.0, 100.0, 2),
        (0.0, 0.0, 1.0, 64),
    ] {
        let (k, square) = (size as f64, (floor - own) * (floor - fewer));
        let margin = 4.0 * ULP * (floor.abs() + own.abs() + fewer.abs());
        for (part, stays) in [(0.0, true), (0.75, true), (2.0, false)] {
            for (up, down) in [(part, 0.0), (0.0, part), (part, part)] {
                if !stays && (up, down) != (part, part) {
                    continue;
                }
                let entry = f64::sqrt(square * (1.0 - down * 4.0 * ULP * k));
                let mut b = Array2::zeros((3, 3));
                b[[0, 0]] = own;
                (b[[0, 1]], b[[1, 0]]) = (entry, entry);
                // Of two rows, one is the row itself.
                b[[0, 2]] = if size == 2 { 0.5 * entry } else { 0.0 };
                let search = branching(&b, 1, size, &WHOLE);
                let kept = search.useful(&plain(3, fewer), floor + up * margin);
                assert_eq!(kept.contains(&0), stays, "{own} {fewer} {up} {down}");
            }
        }
    }
}

/// The bound of a node is a proved sum of eigenvalues and g(U), more by 2 ulp of both and k² ulp of
/// g(U).
#[test]
fn bounds_of_nodes_are_rounded_up() {
    let n = 8;
    for seed in 0..6 {
        let b = indefinite(n, seed);
        for (r, size, required) in [(1, 6, vec![]), (2, 6, vec![]), (1, 5, vec![2]), (1, 3, vec![])] {
            for steps in [0, 10, 20] {
                let mut search = branching(&b, r, size, &WHOLE);
                let node = relaxed(&mut search, &required, steps);
                let admm = &node.relaxed.admm;
                let dual = &b - admm.multiplier();
                let computed = ky_fan(&dual, r);
                let proved = node.relaxed.largest;
                assert!(proved > computed && proved == largest_above(&dual, r, computed));
                let fixed: Vec<bool> = (0..n).map(|row| required.contains(&row)).collect();
                let framed = admm.framed(size, &fixed) * (r as f64).sqrt();
                let own = admm.conjugate().min(framed);
                let both = proved.abs() + own;
                let margin = ULP * ((size * size) as f64 * own + 2.0 * both);
                let off = node.bound - proved - own;
                assert!((off - margin).abs() <= 1.5 * ULP * both, "{seed} {size} {steps}");
            }
        }
    }
}

/// With one node to do, the root has ten steps of the relaxation; otherwise 80.
#[test]
fn a_search_of_one_node_takes_ten_steps() {
    let n = 12;
    for seed in 0..4 {
        for r in 1..=2 {
            let b = indefinite(n, seed);
            let allowed = Allowed { size: 3, required: Vec::new(), free: (0..n).collect() };
            let cube = (n as f64).powi(3);
            for (nodes, steps) in [(1, LOOK), (2, ROOT_STEPS)] {
                let effort = Effort { nodes, ..WHOLE };
                let work = sparse_maximum((&b, r), &allowed, &[], &effort).work / cube;
                let least = STEP * steps as f64;
                // Looks at the bound, supports of three rows, and for the second node ten more
                // steps.
                let most = 1.2 * least + 20.0 * EIGEN;
                assert!(work >= least && work <= most, "{seed} {r} {nodes} {work}");
            }
        }
    }
}

/// Returns the supports of truncated power steps: the rows where BU + U|Λ| + |diag B|U has the
/// largest norm, U the leading eigenvectors on the support before, until the support contains the
/// next one.
fn power_steps(b: &Array2<f64>, r: usize, allowed: &Allowed, first: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![first.to_vec()];
    for _ in 1..POWER_STEPS {
        let support = &all[all.len() - 1];
        let part = b.select(ndarray::Axis(0), support);
        let (values, vectors) = symmetric_eigen(part.select(ndarray::Axis(1), support).view());
        let mut image = Array2::<f64>::zeros((b.nrows(), r));
        for t in 0..r {
            let l = values.len() - 1 - t;
            let mut u = Array1::<f64>::zeros(b.nrows());
            for (&i, v) in support.iter().zip(vectors.column(l)) {
                u[i] = *v;
            }
            let shifts = b.diag().mapv(f64::abs) + values[l].abs();
            image.column_mut(t).assign(&(b.dot(&u) + &shifts * &u));
        }
        let size = |i: usize| image.row(i).dot(&image.row(i));
        let mut free = allowed.free.clone();
        free.sort_by(|&i, &j| size(j).total_cmp(&size(i)));
        free.truncate(allowed.size - allowed.required.len());
        let next = [&allowed.required[..], &free].concat();
        if next.iter().all(|i| support.contains(i)) {
            break;
        }
        all.push(next);
    }
    all
}

#[test]
fn power_steps_take_the_largest_rows() {
    let n = 9;
    let mut steps = 0;
    for seed in 0..40 {
        let b = indefinite(n, seed);
        for (r, required) in [(1, vec![]), (1, vec![4]), (2, vec![]), (2, vec![1])] {
            let free = (0..n).filter(|i| !required.contains(i)).collect();
            let allowed = Allowed { size: 4, required, free };
            let first = [&allowed.required[..], &allowed.free[..4 - allowed.required.len()]];
            let first = first.concat();
            let all = power_steps(&b, r, &allowed, &first);
            let mut search = branching(&b, r, 4, &WHOLE);
            search.polish(first, &allowed);
            let mut sets: Vec<usize> = all.iter().map(|rows| all_of(rows)).collect();
            sets.sort_unstable();
            sets.dedup();
            if sets.len() <= RETURNED {
                let mut found: Vec<usize> = search.found.iter().map(|c| all_of(&c.rows)).collect();
                found.sort_unstable();
                assert_eq!(found, sets, "{seed} {r}");
                steps += sets.len() - 1;
            }
        }
    }
    assert!(steps > 100, "{steps}");
}

/// The root leaves out rows that are useless, if r = 1 and the search has nodes, work and time
/// left.
#[test]
fn a_root_leaves_out_useless_rows() {
    let n = 8;
    let allowed = Allowed { size: 3, required: Vec::new(), free: (0..n).collect() };
    let (mut all, mut some, mut none) = (0, 0, 0);
    for seed in 0..24 {
        let size = if seed % 2 == 0 { 4.0 } else { 0.0 };
        let planted = |i: usize, j: usize| if i < 4 && j < 4 { size } else { 0.0 };
        let b = Array2::from_shape_fn((n, n), |(i, j)| planted(i, j)) + indefinite(n, seed);
        let run = |r: usize, effort: &Effort<'_>| {
            let mut search = branching(&b, r, 3, effort);
            let free = search.root(&allowed).map_or(0, |node| node.free.len());
            (free, search.nodes)
        };
        for effort in [Effort { nodes: 1, ..WHOLE }, Effort { work: 0.0, ..WHOLE }] {
            assert_eq!(run(1, &effort), (n, 1));
        }
        assert_eq!(run(2, &WHOLE), (n, 1));
        let mut search = branching(&b, 1, 3, &WHOLE);
        let node = relaxed(&mut search, &[], ROOT_STEPS);
        search.polish(node.free[..3].to_vec(), &allowed);
        let useful = search.useful(&node, search.floor()).len();
        let left = match useful {
            0..=3 => (0, 1),
            4..8 => (useful, 2),
            _ => (n, 1),
        };
        assert_eq!(run(1, &WHOLE), left, "{seed}");
        all += usize::from(useful == n);
        some += usize::from(left.1 == 2);
        none += usize::from(left.0 == 0);
    }
    assert!(all > 2 && some > 2 && none > 2, "{all} {some} {none}");
}

/// A node of one support evaluates the support, and has no relaxation.
#[test]
fn single_supports_are_evaluated() {
    let n = 6;
    let b = indefinite(n, 4);
    let mut search = branching(&b, 1, 3, &WHOLE);
    let node = relaxed(&mut search, &[2], 10);
    for (free, rows) in [([0, 5], [0, 2, 5]), ([1, 4], [1, 2, 4])] {
        let mut search = branching(&b, 1, 3, &WHOLE);
        let child = search.on(&node, free.to_vec(), (LOOK, f64::NEG_INFINITY));
        assert!(child.is_none() && search.nodes == 0);
        assert_eq!(search.found[0].rows, rows);
        let allowed = Allowed { size: 3, required: vec![2], free: free.to_vec() };
        let found = sparse_maximum((&b, 1), &allowed, &[], &WHOLE);
        assert_eq!((found.nodes, found.found.len()), (0, 1));
    }
}

/// A node is closed without a relaxation if the bound of its rows or of its eigenvalues is low
/// enough.
#[test]
fn either_quick_bound_closes_a_node() {
    let n = 8;
    let (mut by_rows, mut by_eigen) = (0, 0);
    for seed in 0..30 {
        let b = indefinite(n, seed);
        let mut search = branching(&b, 1, 2, &WHOLE);
        let node = relaxed(&mut search, &[], 10);
        let free = node.free[1..].to_vec();
        let rows = search.by_rows(&[], &free);
        let eigen = search.by_eigen(&[], &free, f64::NEG_INFINITY);
        let (floor, nodes) = (0.5 * (rows + eigen), search.nodes);
        assert!(search.on(&node, free.clone(), (LOOK, floor)).is_none());
        assert_eq!(search.nodes, nodes);
        search.on(&node, free, (LOOK, rows.min(eigen) - 1e-6));
        assert_eq!(search.nodes, nodes + 1);
        by_rows += usize::from(rows < floor);
        by_eigen += usize::from(eigen < floor);
    }
    assert!(by_rows > 2 && by_eigen > 2, "{by_rows} {by_eigen}");
}
