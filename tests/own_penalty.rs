//! A penalty of one's own: pieces and levels, and everything else follows.

use ndarray::Array2;
use orthobcd::penalty::{Exact, Penalty};
use orthobcd::{Auto, Options, Problem, Quadratic, Signature, Threads, Unwatched};
use orthobcd::{certify, minimize_auto};

/// Huber's function of width 1/4 on the even rows, a price of 2 beyond ±1/3 on the odd ones.
#[derive(Clone, Copy)]
struct Own;

impl Penalty for Own {
    type Kernel = Exact;

    fn piece(&self, row: usize, _column: usize, value: f64) -> [f64; 3] {
        match row % 2 {
            0 if value < -0.25 => [-0.125, -1.0, 0.0],
            0 if value < 0.25 => [0.0, 0.0, 4.0],
            0 => [-0.125, 1.0, 0.0],
            _ if (-1.0 / 3.0..1.0 / 3.0).contains(&value) => [0.0; 3],
            _ => [2.0, 0.0, 0.0],
        }
    }

    fn levels(&self) -> &[f64] {
        &[-1.0 / 3.0, -0.25, 0.25, 1.0 / 3.0]
    }
}

#[test]
fn a_penalty_of_ones_own_is_solved_searched_and_certified() {
    let data = Array2::from_shape_fn((30, 8), |(i, j)| ((i * (j + 2)) % 11) as f64 / 11.0 - 0.5);
    let smooth = Quadratic::from_data(data.view()).unwrap();
    let signature = Signature::stiefel(8);
    let problem = Problem::new(&smooth, &Own, &signature, 2).unwrap();
    let auto = Auto::default().with_options(Options::default().with_max_sweeps(400));
    let threads = Threads::serial();
    let solution = minimize_auto(&problem, None, &auto, &threads, &mut Unwatched).unwrap();
    let x = &solution.solution.x;
    let certificate = certify(&problem, x.view(), &threads).unwrap();
    assert!(certificate.feasibility < 1e-12, "{certificate:?}");
    assert!(certificate.block2_gap < 1e-9, "{certificate:?}");
    // Entries rest on the edge of the jump, exactly.
    assert!(x.iter().any(|v| v.abs() == 1.0 / 3.0), "{x}");
}
