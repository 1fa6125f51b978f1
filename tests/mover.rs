//! A way of moving of one's own: random rotations of two rows, kept when F falls.

use orthobcd::penalty::{L1, Penalty};
use orthobcd::{
    Ledger, Mover, Options, Point, Problem, Quadratic, Signature, Status, Step, Threads, Unwatched,
    certificate, minimize_by, start,
};

/// Turns one pair of rows after the other by angles of its own.
struct Turns {
    pair: (usize, usize),
    angle: f64,
}

impl<P: Penalty> Mover<P> for Turns {
    fn step(&mut self, point: &mut Point<'_, P>, ledger: &mut Ledger) -> Step {
        let ((i, j), n) = (self.pair, point.x().nrows());
        self.angle = (self.angle * 7.31 + 1.0) % std::f64::consts::TAU;
        let (s, c) = self.angle.sin_cos();
        let mut x = point.x().to_owned();
        let (a, b) = (x.row(i).to_owned(), x.row(j).to_owned());
        x.row_mut(i).assign(&(&a * c + &b * s));
        x.row_mut(j).assign(&(&b * c - &a * s));
        point.try_move(x, ledger);
        ledger.visit(1, (n * n) as f64);
        self.pair = match (i, j) {
            (i, j) if j + 1 < n => (i, j + 1),
            (i, _) if i + 2 < n => (i + 1, i + 2),
            _ => (0, 1),
        };
        if self.pair == (0, 1) {
            Step::Pass
        } else {
            Step::Done
        }
    }
}

#[test]
fn what_a_mover_leaves_the_loop_reports_bounds_and_verifies() {
    let data = start::random(12, 9, 3) * 4.0;
    let smooth = Quadratic::from_data(data.view()).unwrap();
    let (penalty, signature) = (L1::new(0.2), Signature::stiefel(9));
    let problem = Problem::new(&smooth, &penalty, &signature, 3).unwrap();
    let turns = || Turns {
        pair: (0, 1),
        angle: 0.3,
    };
    let solve = |options: &Options| {
        let x0 = start::random(9, 3, 1);
        let serial = Threads::serial();
        minimize_by(&problem, x0, &mut turns(), options, &serial, &mut Unwatched).unwrap()
    };
    let few = solve(&Options::default().with_max_sweeps(3));
    assert_eq!((few.status, few.sweeps), (Status::MaxSweeps, 3));
    let solution = solve(&Options::default());
    assert_eq!(solution.status, Status::Converged);
    assert!(solution.objective < few.objective && few.objective < few.history[0].objective);
    for s in [&few, &solution] {
        assert!(s.feasibility < 1e-13 && s.updates > 0);
        assert!(
            s.history
                .windows(2)
                .all(|h| h[1].objective <= h[0].objective)
        );
    }
    let gap = certificate::row_gap(&problem, solution.x.view(), &Threads::serial());
    assert!(gap.decrease <= 1e-10 * solution.objective.abs());
}
