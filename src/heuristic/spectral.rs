//! Points of negligible cost: eigenvectors, rotated eigenvectors, and random points.

use ndarray::Array2;

use super::profile::{Kind, Profile};
use super::sharpen::TANGENT_STEPS;
use super::{Heuristic, LEAST, POSSIBLE, Prior, Task, tangent};
use crate::linalg::polar_factor;
use crate::objective::QuadraticForm;
use crate::start;

/// Eigenvectors of C, or the polar factor of the linear term.
pub(super) struct Spectral;

impl Heuristic for Spectral {
    fn name(&self) -> &'static str {
        "spectral"
    }

    fn fits(&self, profile: &Profile, improve: bool) -> Option<Prior> {
        (!profile.mixed && !improve).then(|| Prior::new(0.0, 0.0))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        Some(match task.oracle.form.and_then(QuadraticForm::linear) {
            // Exact if the quadratic part is constant on the manifold (Procrustes).
            Some(linear) => polar_factor((-&linear).view()),
            None => task.known.basis.spectral.clone(),
        })
    }
}

/// The eigenvectors, rotated by varimax.
pub(super) struct Varimax;

impl Heuristic for Varimax {
    fn name(&self) -> &'static str {
        "varimax"
    }

    fn fits(&self, profile: &Profile, improve: bool) -> Option<Prior> {
        (!profile.mixed && !improve).then(|| Prior::new(0.0, 0.0))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        Some(task.known.basis.rotated.clone())
    }
}

/// A random point, followed by a descent unless X ≥ 0 or h favours zeros.
pub(super) struct Dense;

impl Heuristic for Dense {
    fn name(&self) -> &'static str {
        "dense"
    }

    fn fits(&self, profile: &Profile, _: bool) -> Option<Prior> {
        let success = match profile.kind {
            Kind::Smooth | Kind::Other => POSSIBLE,
            _ => 0.0,
        };
        (!profile.mixed).then(|| Prior::new(success, LEAST))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let (n, r) = task.known.basis.rotated.dim();
        let x = start::random(n, r, task.seed);
        match task.profile.kind {
            Kind::Smooth | Kind::Other => Some(tangent::descend(task.oracle, x, TANGENT_STEPS, task.limit).x),
            _ => Some(x),
        }
    }
}
