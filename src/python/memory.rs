//! Memory is asked for at the door: what a call needs at most is reserved once and given back, so that too little is a
//! `MemoryError` before anything is computed, not the end of the process on the way.

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

use crate::Threads;
use crate::search::MOST_CHOSEN;

/// Bytes of a number.
const NUMBER: f64 = 8.0;

/// Copies of X and of what is as large that a solve holds, and those of each thread: the incumbent, gradients, starts
/// and the last steps of quasi-Newton methods. Peaks were measured at half of this.
const COPIES: f64 = 20.0;
const COPIES_PER_THREAD: f64 = 10.0;

/// Eigenvectors and submatrices of C: the order that is counted for one at most, and how many of them are counted.
const DENSE_ORDER: f64 = 1500.0;
const DENSE_ARRAYS: f64 = 4.0;

/// Address space that a thread takes: its stack, and what the C library sets aside for its allocations.
const THREAD: f64 = 72e6;

/// What f keeps for itself, in numbers, and what it is called; with rows that products with it have.
pub(super) struct Stored {
    pub(super) numbers: f64,
    pub(super) name: String,
    pub(super) rows: f64,
}

/// Makes sure that a solve for X of this shape can have the memory that it needs.
///
/// # Errors
/// A `MemoryError` that says how much that is.
pub(super) fn reserve(
    stored: &Stored,
    (n, r): (usize, usize),
    n_threads: Option<usize>,
) -> PyResult<()> {
    let threads = n_threads.unwrap_or_else(Threads::available) as f64;
    let (n, r) = (n as f64, r as f64);
    let dense = n.min(DENSE_ORDER);
    let copies = (COPIES + COPIES_PER_THREAD * threads) * (n + stored.rows) * r;
    let chosen = (0.5 * n).min(MOST_CHOSEN as f64);
    let numbers = stored.numbers + copies + DENSE_ARRAYS * dense * dense + chosen * chosen;
    let bytes = NUMBER * numbers + THREAD * (threads + 1.0);
    reserve_bytes(bytes, || {
        format!(
            "{} for {}, {} for points of shape ({n}, {r})",
            text(NUMBER * stored.numbers),
            stored.name,
            text(NUMBER * copies),
        )
    })
}

/// Makes sure that so many numbers can be allocated now.
///
/// # Errors
/// A `MemoryError` that says how much that is, and what for.
pub(super) fn reserve_numbers(numbers: f64, what: impl FnOnce() -> String) -> PyResult<()> {
    reserve_bytes(NUMBER * numbers, what)
}

fn reserve_bytes(bytes: f64, what: impl FnOnce() -> String) -> PyResult<()> {
    let mut probe: Vec<u8> = Vec::new();
    // A float beyond all integers becomes the largest one, which no reservation can have.
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
    if bytes < 1e9 {
        format!("{:.0} MB", bytes / 1e6)
    } else {
        format!("{:.1} GB", bytes / 1e9)
    }
}
