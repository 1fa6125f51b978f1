//! The crate through its public interface. One program, because each has a copy of the crate's generic code to compile
//! and to link. `cargo test --release --test public auto::` runs one module.

mod common;

mod allocation;
mod auto;
mod borders;
mod cardinality;
mod checkpoint;
mod convergence;
mod door;
mod hyperbolic_finite_sum;
mod hyperbolic_pair;
mod hyperbolic_solve;
mod layout;
mod own_mover;
mod own_objective;
mod own_penalty;
mod own_quadratic_form;
mod pair;
mod pair_bounds;
mod pair_laws;
mod penalty_laws;
mod proof;
mod proximal;
mod rotations;
mod search;
mod smooth_function;
mod ultrahyperbolic;
