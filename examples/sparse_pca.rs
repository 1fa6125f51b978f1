//! Sparse PCA with exactly orthonormal components: `cargo run --release --example sparse_pca`.

use ndarray::Array2;
use orthobcd::penalty::Penalty;
use orthobcd::{Options, Problem, Quadratic, Signature, Threads, Unwatched, minimize, start};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};

fn main() -> orthobcd::Result<()> {
    let (samples, features, components) = (200, 60, 3);
    // Three hidden factors, each of its own twenty features, and noise.
    let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(0);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let factors = Array2::from_shape_fn((samples, components), |_| 3.0 * normal());
    let data = Array2::from_shape_fn((samples, features), |(i, j)| factors[[i, j / 20]] + normal());

    let smooth = Quadratic::from_data(data.view())?; // f(X) = -½‖A X‖²
    let penalty = Penalty::l0(20.0); // h(X) = 20 · nonzeros
    let signature = Signature::stiefel(features);
    let problem = Problem::new(&smooth, &penalty, &signature, components)?;
    let x0 = start::spectral(&smooth, components, &Threads::serial());
    let options = Options::default();
    let solution = minimize(&problem, x0, &options, &Threads::serial(), &mut Unwatched)?;

    println!("objective    {:.4}", solution.objective);
    println!("nonzeros     {} of {}", solution.penalty_value / 20.0, features * components);
    println!("‖XᵀX − I‖_F  {:.1e}", solution.feasibility);
    println!("status       {:?} after {} sweeps", solution.status, solution.sweeps);
    Ok(())
}
