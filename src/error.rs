//! Errors of the input. Numerical outcomes are a [`Status`](crate::Status), not an error.

use thiserror::Error;

/// Bad input, found before any work is done.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument has a value that is not allowed.
    #[error("{name} {message}")]
    InvalidArgument {
        /// The argument, as the caller knows it.
        name: &'static str,
        /// End of the sentence: allowed values and the given one.
        message: String,
    },
}

impl Error {
    /// Returns an [`Error::InvalidArgument`]: `message` completes the sentence "`name` …".
    pub fn invalid(name: &'static str, message: impl Into<String>) -> Self {
        Self::InvalidArgument { name, message: message.into() }
    }
}

/// Largest coefficient (an entry of C, of C times one of D, of a linear term, a weight of a penalty)
/// that is accepted: products of two stay far from overflow.
pub const LARGEST: f64 = 1e120;

/// Least size of the largest coefficient of an objective, unless all are 0: products of two stay far
/// from underflow.
pub const SMALLEST: f64 = 1e-120;

/// [`std::result::Result`] with this crate's [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;
