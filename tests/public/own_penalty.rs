//! A penalty of one's own: pieces as data, with weights that choose which entries they belong to.

use ndarray::Array2;
use orthobcd::penalty::Penalty;
use orthobcd::{Auto, Options, Problem, Quadratic, Signature, Threads, Unwatched};
use orthobcd::{certify, minimize, minimize_auto};

/// Huber's function of width 1/4 on the even rows, a penalty of 2 beyond ±1/3 on the odd ones.
fn own((n, r): (usize, usize)) -> orthobcd::Result<Penalty> {
    let tails = [[-0.125, -1.0, 0.0], [-0.125, 1.0, 0.0]];
    let huber = Penalty::pieces(vec![-0.25, 0.25], vec![tails[0], [0.0, 0.0, 4.0], tails[1]])?;
    let beyond = [2.0, 0.0, 0.0];
    let capped = Penalty::pieces(vec![-1.0 / 3.0, 1.0 / 3.0], vec![beyond, [0.0; 3], beyond])?;
    let odd = Array2::from_shape_fn((n, r), |(i, _)| (i % 2) as f64);
    huber.weighted(&(1.0 - &odd))?.plus(&capped.weighted(&odd)?)
}

#[test]
fn a_penalty_of_ones_own_is_solved_searched_and_certified() {
    let data = Array2::from_shape_fn((30, 8), |(i, j)| ((i * (j + 2)) % 11) as f64 / 11.0 - 0.5);
    let smooth = Quadratic::from_data(data.view()).unwrap();
    let signature = Signature::stiefel(8);
    let penalty = own((8, 2)).unwrap();
    let problem = Problem::new(&smooth, &penalty, &signature, 2).unwrap();
    let options = Options::default();
    let auto = Auto::default().with_options(options.clone().with_max_sweeps(400));
    let threads = Threads::serial();
    let found = minimize_auto(&problem, None, &auto, &threads, &mut Unwatched).unwrap();
    let solution = minimize(&problem, found.solution.x, &options, &threads, &mut Unwatched).unwrap();
    let x = &solution.x;
    let certificate = certify(&problem, x.view(), &threads).unwrap();
    assert!(certificate.feasibility < 1e-12, "{certificate:?}");
    assert!(certificate.block2_gap < 1e-9, "{certificate:?}");
    // Entries rest on the edge of the jump, exactly.
    assert!(x.iter().any(|v| v.abs() == 1.0 / 3.0), "{x}");
}
