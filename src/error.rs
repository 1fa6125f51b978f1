//! What can be wrong with the input. Numerical outcomes are a [`Status`](crate::Status), not an error.

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
        /// What is allowed and what was given.
        message: String,
    },
}

impl Error {
    /// An [`Error::InvalidArgument`]: `message` completes the sentence "`name` …".
    pub fn invalid(name: &'static str, message: impl Into<String>) -> Self {
        Self::InvalidArgument {
            name,
            message: message.into(),
        }
    }
}

/// [`std::result::Result`] with this crate's [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;
