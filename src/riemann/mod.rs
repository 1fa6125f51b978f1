//! Methods that move all rows at once, shared by the movers of the [solver](crate::solver), the
//! [heuristics](crate::heuristic) and the search under a limit on nonzeros.
//!
//! A method owns its iterate and its step lengths. The caller evaluates f and ∇f, counts the work and decides
//! when to stop.
//!
//! | module | method | source |
//! |---|---|---|
//! | `gradient` | gradient descent of Barzilai–Borwein length for a smooth function | Wen and Yin 2013; Zhang and Hager 2004 |
//! | `tangent` | the proximal-gradient step on the tangent space | Chen, Ma, So and Zhang 2020 |
//! | `proximal` | descent by these steps, of Barzilai–Borwein length | the same |
//! | `newton` | damped Newton's method for a multiplier | |
//! | `trust` | conjugate gradients within a trust region | Absil, Baker and Gallivan 2007 |
//! | `admm` | annealed ADMM | Boyd et al. 2011 |

pub(crate) mod admm;
pub(crate) mod gradient;
mod newton;
pub(crate) mod proximal;
mod tangent;
pub(crate) mod trust;

pub(crate) use newton::damped_newton;
pub(crate) use tangent::{Tangent, tangent_work};
