//! Solves that are killed and resumed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::checkpoint::Checkpoint;
use crate::penalty::Penalty;
use crate::signature::Signature;
use crate::solver::{Record, Unwatched, Update};
use crate::{Quadratic, start};

/// Dies at its `left`-th record; the file is written at every segment.
struct Dying {
    file: Checkpoint,
    left: usize,
}

impl Monitor for Dying {
    fn record(&mut self, _: &Record, _: ndarray::ArrayView2<'_, f64>) -> Control {
        self.left = self.left.saturating_sub(1);
        match self.left {
            0 => std::panic::panic_any("killed"),
            _ => Control::Continue,
        }
    }

    fn checkpoint(&mut self) -> Option<&mut Checkpoint> {
        Some(&mut self.file)
    }
}

/// Descents over all kinds of movers, killed at several passes, end as they do without interruption.
#[test]
fn killed_descents_end_alike() {
    let (n, r) = (24, 3);
    let c = start::random(n, n, 1);
    let smooth = Quadratic::new(&c + &c.t(), None, None).unwrap();
    let threads = Threads::serial();
    let (l1, none) = (Penalty::l1(0.05), Penalty::NONE);
    let boost = [vec![1; n - 4], vec![-1; 4]].concat();
    let mixed = Signature::new(&boost).unwrap();
    let definite = Signature::stiefel(n);
    let jacobi = Options::default().with_update(Update::Jacobi);
    let random = Options::default().with_working_set(WorkingSet::Random);
    let path = std::env::temp_dir().join(format!("orthobcd-descent-{}", std::process::id()));
    let (mut killed, mut resumed) = (0, 0);
    for (penalty, signature, options) in [
        (&l1, &definite, Options::default()),
        (&l1, &definite, jacobi),
        (&l1, &definite, random),
        (&none, &definite, Options::default()),
        (&l1, &mixed, Options::default()),
    ] {
        let problem = Problem::new(&smooth, penalty, signature, r).unwrap();
        let options = options.with_tol(1e-13).with_max_sweeps(60);
        let x0 = match signature.is_definite() {
            true => start::random(n, r, 2),
            false => start::identity(n, r),
        };
        let whole = minimize(&problem, x0.clone(), &options, &threads, &mut Unwatched).unwrap();
        for moment in [3, 7, 12, 17] {
            for (call, left) in [moment, usize::MAX, usize::MAX].into_iter().enumerate() {
                let mut file = Checkpoint::open(&path, 0.0).unwrap();
                file.begin(&problem, &[("seed", 0)], &threads).unwrap();
                let mut dying = Dying { file, left };
                let solve = || minimize(&problem, x0.clone(), &options, &threads, &mut dying);
                let Ok(found) = catch_unwind(AssertUnwindSafe(solve)) else {
                    killed += 1;
                    continue;
                };
                let found = found.unwrap();
                assert_eq!(found.x, whole.x);
                assert_eq!(found.objective.to_bits(), whole.objective.to_bits());
                assert_eq!((found.updates, found.work), (whole.updates, whole.work));
                assert!(found.feasibility < 1e-12);
                let records = left - dying.left;
                match call {
                    0 => {}
                    1 => resumed += usize::from(records < whole.history.len()),
                    _ => assert_eq!(records, 0),
                }
            }
            std::fs::remove_file(&path).unwrap();
        }
    }
    assert!(killed > 5 && resumed > 0, "{killed} killed, {resumed} resumed");
}

/// Options are checked before anything is computed from them.
#[test]
fn blocks_of_more_rows_than_there_are_are_refused() {
    let smooth = Quadratic::new(ndarray::Array2::eye(3), None, None).unwrap();
    let (penalty, signature) = (Penalty::l1(0.1), Signature::stiefel(3));
    let problem = Problem::new(&smooth, &penalty, &signature, 2).unwrap();
    for rule in [WorkingSet::Cyclic, WorkingSet::Random, WorkingSet::Tiled] {
        for update in [Update::GaussSeidel, Update::Jacobi] {
            let options = Options::default().with_working_set(rule.clone()).with_update(update);
            let solve = |block_size: usize| {
                let options = options.clone().with_block_size(block_size).with_max_sweeps(1);
                let x0 = start::identity(3, 2);
                minimize(&problem, x0, &options, &Threads::serial(), &mut Unwatched)
            };
            assert!(solve(3).is_ok());
            assert!(solve(4).is_err());
        }
    }
}
