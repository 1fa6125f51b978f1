//! How many nonzero entries X may have: a constraint that is not separable.

/// ‖X‖₀ ≤ K in all, or ‖x_t‖₀ ≤ k_t for every column x_t.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cardinality {
    /// K.
    Total(usize),
    /// k_1, …, k_r.
    Columns(Vec<usize>),
}
