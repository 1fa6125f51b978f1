//! Interface of Python and the core: reads arguments, releases the GIL, polls signals and maps errors.

#![deny(unsafe_code)]

mod answer;
mod arguments;
mod bound;
mod checkpoint;
mod finite_sum;
mod guard;
mod hyperbolic;
mod input;
mod instance;
mod memory;
mod moments;
mod raised;
mod rotation;
mod smooth;
mod solve;
mod ultrahyperbolic;
mod watch;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    use super::raised::Outcome;
    use super::*;

    #[pymodule_export]
    const WORK_UNIT: f64 = orthobcd::WORK_UNIT;

    #[pymodule_export]
    use super::bound::certified_bound;

    #[pymodule_export]
    use super::solve::{certify, default_work, largest_lam, makers, solve, start_point, value};

    #[pymodule_export]
    use super::input::{implies_nonnegative, penalty_value};

    #[pymodule_export]
    use super::checkpoint::PyCheckpoint;

    #[pymodule_export]
    use super::moments::PyMoments;

    #[pymodule_export]
    use super::rotation::rotate_loadings;

    #[pymodule_export]
    use super::watch::Stop;

    #[pymodule_export]
    use super::hyperbolic::{basis_factorization, hyperbolic_cs, j_orthogonal_start, random_j_orthogonal};

    #[pymodule_export]
    use super::ultrahyperbolic::{
        PyPseudohyperboloid, PyStructuralProbe, ultra_e_epoch, ultra_e_init, ultra_e_ranks, ultra_e_scores,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> Outcome<()> {
        module.add("instructions", orthobcd::instructions()?)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("COEFFICIENTS", (orthobcd::objective::SMALLEST, orthobcd::objective::LARGEST))?;
        module.add("DATA", orthobcd::objective::DATA)?;
        Ok(module.add("CONSTANT", orthobcd::bindings::CONSTANT)?)
    }
}
