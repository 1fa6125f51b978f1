//! The pseudo-hyperboloid: distances, the structural probe, and graph embeddings.
//!
//! With a signature J of p signs +1 and q signs −1, `⟨x, y⟩ = xᵀJy`, and a radius ρ > 0, the
//! pseudo-hyperboloid is `{x : ⟨x, x⟩ = −ρ²}`: hyperbolic space for q = 1, a sphere for p = 0. Every
//! J-orthogonal matrix is an isometry of it.

mod candidates;
mod distances;
mod embedding;
mod geometry;
mod probe;
mod relations;
mod sampling;
mod training;

pub use embedding::{Embedding, KnownTriples, Loss, TrainOptions, Triple, UltraE};
pub use geometry::Pseudohyperboloid;
pub use probe::{StructuralProbe, Targets};
pub use relations::{Relation, RelationUpdate};
