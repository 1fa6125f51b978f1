//! Tiles that are swept side by side: what they change together, and that threads change nothing.

use std::cell::Cell;

use ndarray::Array2;

use super::*;
use crate::block::Curvature;
use crate::penalty::Penalty;
use crate::rows::slice_of;
use crate::signature::Signature;
use crate::solver::{Options, Point, Unwatched, Update, minimize};
use crate::start;
use crate::threads::Threads;
use crate::{Problem, Quadratic};

const ROWS: usize = 128;
const COLUMNS: usize = 3;

/// A symmetric matrix of normal entries.
fn symmetric(n: usize, seed: u64) -> Array2<f64> {
    let c = start::random(n, n, seed);
    &c + &c.t()
}

fn signatures() -> [Signature; 2] {
    let signs = [vec![1; ROWS - 6], vec![-1; 6]].concat();
    [Signature::stiefel(ROWS), Signature::new(&signs).unwrap()]
}

/// A point that satisfies the constraint, with few zero rows.
fn point(signature: &Signature) -> Array2<f64> {
    let mut x = Array2::zeros((ROWS, COLUMNS));
    let positive: Vec<usize> = (0..ROWS).filter(|&i| signature.sign(i) > 0.0).collect();
    let some = start::random(positive.len(), COLUMNS, 7);
    for (&row, values) in positive.iter().zip(some.outer_iter()) {
        x.row_mut(row).assign(&values);
    }
    x
}

const SOLVER: BlockSolver =
    BlockSolver { curvature: Curvature::Exact, proximal: 0.0, small_block: false, frozen: false };

fn context<'a>(point: &Point<'a>) -> Context<'a, 'a> {
    Context {
        solver: SOLVER,
        jacobi: None,
        problem: point.problem,
        options: SOLVER.options(point),
        threads: point.threads,
    }
}

/// A block of 32 rows and four tiles of 4 + 4 of them, for all pairs across.
fn tiles(point: &mut Point<'_>) -> (Block, Vec<Tile>) {
    let mut block = Block::new(COLUMNS);
    block.set_signature(point.problem.signature, None);
    let tile = Tile::new(block.clone());
    let rows = |from: usize| -> Vec<usize> { (0..4).flat_map(|k| 30 * k + from..30 * k + from + 4).collect() };
    block.load(point.x.view(), &rows(0), &rows(20));
    point.tracker.fill(block.model());
    block.set_growth_limit(point.growth_limit);
    let tiles = (0..4).map(|k| {
        let mut tile = tile.clone();
        (tile.lead, tile.rest) = (4 * k..4 * k + 4, 16 + 4 * k..20 + 4 * k);
        tile.visit.chosen.pairs = Some(Pairs::Cross);
        tile
    });
    (block, tiles.collect())
}

fn problems(check: impl Fn(&Problem<'_>, Array2<f64>)) {
    let metric = symmetric(COLUMNS, 3);
    let metric = &metric.dot(&metric) + &Array2::<f64>::eye(COLUMNS);
    let linear = start::random(ROWS, COLUMNS, 4);
    for penalty in [Penalty::NONE, Penalty::l1(0.05), Penalty::l0(0.02), Penalty::mcp(0.05, 3.0).unwrap()] {
        for signature in signatures() {
            for (metric, linear) in [(None, None), (Some(&metric), Some(&linear))] {
                let c = symmetric(ROWS, 1) + Array2::from_diag(&ndarray::Array1::from_elem(ROWS, 4.0));
                let smooth = Quadratic::new(c, linear.cloned(), metric.cloned()).unwrap();
                let problem = Problem::new(&smooth, &penalty, &signature, COLUMNS).unwrap();
                check(&problem, point(&signature));
            }
        }
    }
}

#[test]
fn changes_and_interactions_add_up_to_the_change_of_f() {
    let threads = Threads::serial();
    let kept = Cell::new(0);
    problems(|problem, x| {
        let mut point = Point::new(problem, x.clone(), 0, &threads).unwrap();
        let before = problem.objective(x.view(), &threads);
        let (mut block, mut tiles) = tiles(&mut point);
        let kept_together = side_by_side(&mut tiles, &mut block, context(&point));
        if kept_together {
            kept.set(kept.get() + 1);
            assert!(tiles.iter().all(|tile| tile.visit.outcome.visited == 16));
        } else {
            assert!((0..32).all(|k| slice_of(x.row(block.rows[k])) == block.row(k)));
            for tile in &mut tiles {
                alone(tile, &mut block, context(&point));
            }
        }
        let change: f64 = tiles.iter().map(|tile| tile.visit.outcome.change).sum();
        point.commit(block.moved());
        let after = problem.objective(point.x.view(), &threads);
        assert!(change < 0.0 && point.feasibility() < 1e-13);
        assert!((after - before - change).abs() < 1e-12 * (1.0 + before.abs()));
        // The block knows its gradient as the tracker does.
        let gradient = point.gradient();
        for (k, &row) in block.rows.iter().enumerate() {
            for (g, known) in gradient.row(row).iter().zip(block.gradient_row(k)) {
                assert!((g - known).abs() < 1e-11 * (1.0 + g.abs()));
            }
        }
    });
    assert!(kept.get() > 0);
}

/// A square of every column sum, so that tiles which do not know of each other all correct the same sum; and orthonormal
/// columns with a sum that the turn of a few rows can cancel.
fn sums() -> (Quadratic<'static>, Array2<f64>) {
    let ones = Quadratic::new(Array2::from_elem((ROWS, ROWS), 1.0), None, None).unwrap();
    let x = Array2::from_shape_fn((ROWS, COLUMNS), |(i, k)| match (i % 30, i / 30) {
        (row, 0..4) if row == k => 0.5,
        _ => 0.0,
    });
    (ones, x)
}

#[test]
fn tiles_that_do_not_fit_together_are_undone() {
    let threads = Threads::serial();
    let (ones, x) = sums();
    let signature = Signature::stiefel(ROWS);
    let problem = Problem::new(&ones, &Penalty::NONE, &signature, COLUMNS).unwrap();
    let mut point = Point::new(&problem, x.clone(), 0, &threads).unwrap();
    let (mut block, mut tiles) = tiles(&mut point);
    let gradient: Vec<Vec<f64>> = (0..32).map(|k| block.gradient_row(k).to_vec()).collect();
    assert!(!side_by_side(&mut tiles, &mut block, context(&point)));
    for (k, gradient) in gradient.iter().enumerate() {
        assert_eq!(slice_of(x.row(block.rows[k])), block.row(k));
        let known = block.gradient_row(k).iter().zip(gradient);
        assert!(known.map(|(a, b)| (a - b).abs()).all(|v| v < 1e-13));
    }
    let before = problem.objective(x.view(), &threads);
    for tile in &mut tiles {
        alone(tile, &mut block, context(&point));
    }
    let change: f64 = tiles.iter().map(|tile| tile.visit.outcome.change).sum();
    point.commit(block.moved());
    let after = problem.objective(point.x.view(), &threads);
    assert!(change < 0.0 && (after - before - change).abs() < 1e-13 * before);
}

/// Tiles that are undone come again, fewer at once; every pair is visited once, and more tiles at once are tried in the
/// next block.
#[test]
fn undone_tiles_are_swept_again_half_as_many_at_once() {
    let threads = Threads::serial();
    let (ones, x) = sums();
    let signature = Signature::stiefel(ROWS);
    let problem = Problem::new(&ones, &Penalty::NONE, &signature, COLUMNS).unwrap();
    let mut point = Point::new(&problem, x, 0, &threads).unwrap();
    let mut block = Block::new(COLUMNS);
    let (lead, rest): (Vec<_>, Vec<_>) = (0..ROWS).partition(|&i| i < ROWS / 2);
    block.load(point.x.view(), &lead, &rest);
    point.tracker.fill(block.model());
    let mut sweep = InnerSweep::new(Block::new(COLUMNS));
    for (half, together) in [(1, 64), (2, 8), (16, 4)] {
        let (mut seen, mut halved) = (vec![0; ROWS * ROWS], 0);
        sweep.begin(ROWS / 2, ROWS / 2, InnerTiles { half, together });
        while !sweep.is_done() {
            let at_once = sweep.together;
            let (tiles, undone) = sweep.step(&mut block, context(&point));
            let count = tiles.len();
            if !undone {
                for tile in &*tiles {
                    for (i, j) in (tile.lead.clone()).flat_map(|i| tile.rest.clone().map(move |j| (i, j))) {
                        seen[i * ROWS + j] += 1;
                    }
                }
            }
            halved += usize::from(undone);
            assert_eq!(sweep.together, if undone { count / 2 } else { at_once });
        }
        let across = |k: usize| usize::from(k / ROWS < ROWS / 2 && k % ROWS >= ROWS / 2);
        assert!((0..ROWS * ROWS).all(|k| seen[k] == across(k)));
        assert!(halved > 0 || half > 1);
        let (before, more) = (sweep.together, 64);
        sweep.begin(ROWS / 2, ROWS / 2, InnerTiles { half, together: more });
        assert_eq!(sweep.together, 2 * before);
    }
}

#[test]
fn threads_change_no_bit_and_f_never_rises() {
    problems(|problem, x0| {
        // Tiles of 4 rows: four of them side by side; and pairs, and blocks of 4 rows, that all move at once.
        let tiles = Options::default().with_tile(4);
        let jacobi = Options::default().with_update(Update::Jacobi);
        let wide = jacobi.clone().with_block_size(4);
        for options in [tiles, jacobi, wide] {
            let options = options.with_max_sweeps(3).with_seed(1);
            threads_change_nothing(problem, &x0, &options);
        }
    });
}

/// Checks that F never rises, and that the number of threads changes no bit.
fn threads_change_nothing(problem: &Problem<'_>, x0: &Array2<f64>, options: &Options) {
    let solve = |count: usize| {
        let threads = Threads::new(Some(count)).unwrap();
        minimize(problem, x0.clone(), options, &threads, &mut Unwatched).unwrap()
    };
    let one = solve(1);
    let objectives: Vec<f64> = one.history.iter().map(|record| record.objective).collect();
    let size = objectives[0].abs() + one.objective.abs();
    assert!(objectives.windows(2).all(|w| w[1] <= w[0] + 1e-13 * size));
    assert!(one.feasibility < 1e-11);
    let fresh = problem.objective(one.x.view(), &Threads::serial());
    assert!((one.objective - fresh).abs() <= 1e-12 * size);
    for count in [2, 3, 5] {
        let several = solve(count);
        assert_eq!(several.x, one.x);
        assert_eq!(several.objective.to_bits(), one.objective.to_bits());
    }
}

/// Prints the share of pairs whose moves beside others were kept, by form of f and penalty. For a concave f nearly all are:
/// moves that fit together by their gradients lower F by even more together.
#[test]
fn most_moves_side_by_side_are_kept_if_f_is_concave() {
    let (n, r, threads) = (512, 8, Threads::serial());
    let data = symmetric(n, 5);
    let gram = data.dot(&data);
    let one = Array2::from_elem((n, n), 1.0);
    let forms = [("concave", -&gram), ("convex", gram), ("indefinite", symmetric(n, 1)), ("convex, rank one", one)];
    let penalties = [("none", Penalty::NONE), ("l1", Penalty::l1(0.05)), ("l0", Penalty::l0(0.004))];
    let rounds = [("tiles of 64 rows", None), ("pairs in them", Some(2))];
    let signature = Signature::stiefel(n);
    for (form, c) in &forms {
        let smooth = Quadratic::new(c.clone(), None, None).unwrap();
        for ((penalty_name, penalty), (name, jacobi)) in penalties.iter().flat_map(|p| rounds.map(|round| (p, round))) {
            let problem = Problem::new(&smooth, penalty, &signature, r).unwrap();
            let mut point = Point::new(&problem, start::random(n, r, 2), 0, &threads).unwrap();
            let (mut block, mut sweep) = (Block::new(r), InnerSweep::new(Block::new(r)));
            let (mut kept, mut undone) = (0, 0);
            for lead in [0..n / 2, n / 2..n] {
                let lead: Vec<usize> = lead.collect();
                block.load(point.x.view(), &lead, &[]);
                point.tracker.fill(block.model());
                let tiles = InnerTiles { half: 32, together: 4 };
                sweep.begin(lead.len(), 0, tiles);
                while !sweep.is_done() {
                    let context = Context { jacobi, ..context(&point) };
                    let (tiles, again) = sweep.step(&mut block, context);
                    for outcome in tiles.iter().map(|tile| tile.visit.outcome) {
                        undone += outcome.undone;
                        *(if again { &mut undone } else { &mut kept }) += outcome.visited;
                    }
                }
                point.commit(block.moved());
            }
            let share = kept as f64 / (kept + undone) as f64;
            println!("{form}, {penalty_name}, {name}: {share:.3}");
            assert_eq!(kept as usize, n / 2 * (n / 2 - 1));
            assert!(share > 0.9 || *form != "concave", "{penalty_name}, {name}");
        }
    }
}
