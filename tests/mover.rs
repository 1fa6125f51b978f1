//! A way of moving of one's own: rotations of two rows by angles from a list, kept when F falls.

use orthobcd::penalty::{L1, Penalty};
use orthobcd::{Ledger, Mover, Options, Point, Problem, Quadratic, Signature, Status, Step};
use orthobcd::{Threads, Unwatched, certificate, minimize_by, start};

/// The pairs that have been turned.
struct Turns(usize);

impl<P: Penalty> Mover<P> for Turns {
    fn step(&mut self, point: &mut Point<'_, P>, ledger: &mut Ledger) -> Step {
        let n = point.x().nrows();
        let (i, j) = (self.0 / n % n, self.0 % n);
        self.0 += 1;
        if i < j {
            let (s, c) = (7.31 * self.0 as f64).sin_cos();
            let mut x = point.x().to_owned();
            let (a, b) = (x.row(i).to_owned(), x.row(j).to_owned());
            x.row_mut(i).assign(&(&a * c + &b * s));
            x.row_mut(j).assign(&(&b * c - &a * s));
            point.try_move(x, ledger);
            ledger.visit(1, (n * n) as f64);
        }
        let ended = self.0.is_multiple_of(n * n);
        if ended { Step::Pass } else { Step::Done }
    }
}

#[test]
fn what_a_mover_leaves_the_loop_bounds_reports_and_verifies() {
    let smooth = Quadratic::from_data((start::random(12, 9, 3) * 4.0).view()).unwrap();
    let (penalty, signature) = (L1::new(0.2), Signature::stiefel(9));
    let problem = Problem::new(&smooth, &penalty, &signature, 3).unwrap();
    let (serial, x0) = (Threads::serial(), start::random(9, 3, 1));
    let solve = |options| {
        let mut turns = Turns(0);
        minimize_by(
            &problem,
            x0.clone(),
            &mut turns,
            &options,
            &serial,
            &mut Unwatched,
        )
        .unwrap()
    };
    let few = solve(Options::default().with_max_sweeps(3));
    let solution = solve(Options::default());
    assert_eq!((few.status, few.sweeps), (Status::MaxSweeps, 3));
    assert_eq!(solution.status, Status::Converged);
    assert!(solution.objective < few.objective && few.objective < few.history[0].objective);
    assert!(few.feasibility.max(solution.feasibility) < 1e-13 && few.updates > 0);
    assert!(
        solution
            .history
            .is_sorted_by(|a, b| a.objective >= b.objective)
    );
    let gap = certificate::row_gap(&problem, solution.x.view(), &serial);
    assert!(gap.decrease <= 1e-10 * solution.objective.abs());
}
