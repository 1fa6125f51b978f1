//! Check of the memory of a call: its maximum is reserved once and released at once. Too little memory is
//! thus a `MemoryError` before the computation begins, not the end of the process during it.

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

use orthobcd::Threads;
use orthobcd::bindings::MOST_LEFT;

/// Number of arrays of the size of X in a solve: the incumbent, gradients, starts and the points of heuristics. Twice
/// the measured peak.
const COPIES: f64 = 20.0;

/// Number of arrays of the size of X in each thread of a solve. Twice the measured peak.
const COPIES_PER_THREAD: f64 = 10.0;

/// Largest order of a matrix of eigenvectors, or of a submatrix of C, that is counted.
const DENSE_ORDER: f64 = 1500.0;

/// Number of matrices of eigenvectors and submatrices of C, also in a lower bound.
pub(super) const DENSE_ARRAYS: f64 = 4.0;

/// Bytes of address space of a thread: its stack, and what the C library reserves for its allocations.
const THREAD: f64 = 72e6;

/// Memory that f keeps, in numbers, its description, and the number of rows of products with f's data.
pub(super) struct Stored {
    pub(super) numbers: f64,
    pub(super) name: String,
    pub(super) rows: f64,
}

/// Checks that the memory of a solve for X of this shape can be allocated.
///
/// # Errors
/// A `MemoryError` that states the memory needed.
pub(super) fn reserve(stored: &Stored, (n, r): (usize, usize), n_threads: Option<usize>) -> PyResult<()> {
    let threads = n_threads.unwrap_or_else(Threads::available) as f64;
    let (n, r) = (n as f64, r as f64);
    let dense = n.min(DENSE_ORDER);
    let copies = (COPIES + COPIES_PER_THREAD * threads) * (n + stored.rows) * r;
    let chosen = (0.5 * n).min(MOST_LEFT as f64);
    let numbers = stored.numbers + copies + DENSE_ARRAYS * dense * dense + chosen * chosen;
    reserve_bytes(bytes(numbers) + THREAD * (threads + 1.0), || {
        format!(
            "{} for {}, {} for points of shape ({n}, {r})",
            text(bytes(stored.numbers)),
            stored.name,
            text(bytes(copies)),
        )
    })
}

/// Checks that this number of floats can be allocated now.
///
/// # Errors
/// A `MemoryError` that states the memory needed, and its purpose.
pub(super) fn reserve_numbers(numbers: f64, what: impl FnOnce() -> String) -> PyResult<()> {
    reserve_bytes(bytes(numbers), what)
}

/// Returns the bytes of floats.
fn bytes(numbers: f64) -> f64 {
    numbers * size_of::<f64>() as f64
}

fn reserve_bytes(bytes: f64, what: impl FnOnce() -> String) -> PyResult<()> {
    let mut probe: Vec<u8> = Vec::new();
    // The cast turns a float beyond all integers into the largest one, which cannot be reserved.
    match probe.try_reserve_exact(bytes as usize) {
        Ok(()) => Ok(()),
        Err(_) => Err(PyMemoryError::new_err(format!(
            "this call needs about {} of memory ({}), which cannot be reserved",
            text(bytes),
            what()
        ))),
    }
}

fn text(bytes: f64) -> String {
    if bytes < 1e9 { format!("{:.0} MB", bytes / 1e6) } else { format!("{:.1} GB", bytes / 1e9) }
}
