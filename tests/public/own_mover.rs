//! A way of moving of one's own: rotations of two rows by angles from a list, kept when F falls.

use orthobcd::penalty::Penalty;
use orthobcd::*;

/// The pairs that have been turned.
struct Turns(usize);

impl Mover for Turns {
    fn step(&mut self, point: &mut Point<'_>, ledger: &mut Ledger) -> Step {
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
        match self.0.is_multiple_of(n * n) {
            true => Step::Pass,
            false => Step::Done,
        }
    }
}

#[test]
fn what_a_mover_leaves_the_loop_bounds_reports_and_verifies() {
    let smooth = Quadratic::from_data((start::random(12, 9, 3) * 4.0).view()).unwrap();
    let (penalty, signature) = (Penalty::l1(0.2), Signature::stiefel(9));
    let problem = Problem::new(&smooth, &penalty, &signature, 3).unwrap();
    let (one, x0) = (Threads::serial(), start::random(9, 3, 1));
    let (options, mut turns) = (Options::default(), Turns(0));
    let all = minimize_by(&problem, x0, &mut turns, &options, &one, &mut Unwatched).unwrap();
    assert_eq!(all.status, Status::Converged);
    assert!(all.objective < all.history[0].objective && all.feasibility < 1e-13);
    assert!(turns.0 >= 81 && all.updates > 0);
    let gap = certificate::row_gap(&problem, all.x.view(), &one);
    assert!(gap.decrease <= 1e-10 * all.objective.abs());
}
