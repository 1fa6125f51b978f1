//! The signature J = diag(±1) whose quadratic form XᵀJX every move keeps.
//!
//! All +1 is the Stiefel manifold (XᵀX fixed). With mixed signs two rows of equal sign move by a
//! rotation or reflection, two rows of opposite sign by a hyperbolic rotation.

use ndarray::{Array1, Array2};

use crate::error::{Error, Result};

/// A pattern of n signs, in any order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    signs: Vec<i8>,
    definite: bool,
}

impl Signature {
    /// The signature of the Stiefel manifold: n times +1.
    pub fn stiefel(n: usize) -> Self {
        Self { signs: vec![1; n], definite: true }
    }

    /// A signature from its signs.
    ///
    /// # Errors
    /// If `signs` is empty or holds anything but +1 and −1.
    pub fn new(signs: &[i8]) -> Result<Self> {
        if signs.is_empty() {
            return Err(Error::invalid("signature", "must not be empty"));
        }
        if let Some(bad) = signs.iter().find(|&&s| s != 1 && s != -1) {
            return Err(Error::invalid("signature", format!("must hold only +1 and -1, got {bad}")));
        }
        Ok(Self { signs: signs.to_vec(), definite: signs.iter().all(|&s| s == signs[0]) })
    }

    /// Number of rows n.
    pub fn len(&self) -> usize {
        self.signs.len()
    }

    /// Returns whether there are no rows; never true of a signature made by [`Signature::new`].
    pub fn is_empty(&self) -> bool {
        self.signs.is_empty()
    }

    /// Returns whether all signs are equal, so that XᵀJX = ±XᵀX.
    pub fn is_definite(&self) -> bool {
        self.definite
    }

    /// The sign of row `i` as ±1.0; +1 beyond the last row.
    pub fn sign(&self, i: usize) -> f64 {
        f64::from(self.signs.get(i).copied().unwrap_or(1))
    }

    /// J as a matrix.
    pub fn matrix(&self) -> Array2<f64> {
        Array2::from_diag(&Array1::from_iter(self.signs.iter().map(|&s| f64::from(s))))
    }

    /// Indices of the positive signs, then of the negative ones.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by_key(|&i| self.signs[i] < 0);
        order
    }

    /// The numbers of positive and of negative signs.
    pub fn counts(&self) -> (usize, usize) {
        let positive = self.signs.iter().filter(|&&s| s > 0).count();
        (positive, self.len() - positive)
    }

    /// All signs.
    pub fn signs(&self) -> &[i8] {
        &self.signs
    }
}
