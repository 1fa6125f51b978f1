//! The PAGE estimator of a gradient.

use ndarray::{Array2, ArrayView2};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::FiniteSum;
use crate::error::{Error, Result};

/// The PAGE estimate of ∇f.
#[derive(Debug, Clone)]
pub struct Page {
    batch: usize,
    pub(super) small_batch: usize,
    probability: f64,
    order: Vec<usize>,
    /// The estimate.
    pub gradient: Array2<f64>,
    /// Component gradients evaluated so far.
    pub evaluations: u64,
    /// True if the estimate already is the gradient at the next point.
    pub(super) known: bool,
}

impl Page {
    /// Creates an estimator for N components; the first call of [`Page::update`] takes a full batch.
    ///
    /// # Errors
    /// If a batch size is not in 1..=N or the probability not in (0, 1].
    pub fn new(
        components: usize,
        batch: Option<usize>,
        small_batch: Option<usize>,
        probability: Option<f64>,
    ) -> Result<Self> {
        let batch = batch.unwrap_or(components);
        let root = (components as f64).sqrt().ceil() as usize;
        let small_batch = small_batch.unwrap_or(root.min(components));
        for (name, size) in [("batch_size", batch), ("small_batch_size", small_batch)] {
            if size == 0 || size > components {
                return Err(Error::invalid(name, format!("must be between 1 and N = {components}, got {size}")));
            }
        }
        let probability = probability.unwrap_or(small_batch as f64 / (batch as f64 + small_batch as f64));
        if !(probability > 0.0 && probability <= 1.0) {
            return Err(Error::invalid("probability", format!("must be above 0 and at most 1, got {probability}")));
        }
        Ok(Self {
            batch,
            small_batch,
            probability,
            order: (0..components).collect(),
            gradient: Array2::zeros((0, 0)),
            evaluations: 0,
            known: false,
        })
    }

    /// Returns the probability p of a full estimate.
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// Makes every estimate the exact gradient.
    pub(super) fn make_exact(&mut self) {
        self.batch = self.order.len();
        self.probability = 1.0;
    }

    /// Returns whether every estimate is the exact gradient.
    pub(super) fn is_exact(&self) -> bool {
        self.batch == self.order.len() && self.probability == 1.0
    }

    /// Returns a uniformly random subset of `size` components, without replacement.
    fn sample(&mut self, size: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<usize> {
        let n = self.order.len();
        if size == n {
            return (0..n).collect();
        }
        for i in 0..size {
            let j = rng.random_range(i..n);
            self.order.swap(i, j);
        }
        let mut chosen = self.order[..size].to_vec();
        chosen.sort_unstable();
        chosen
    }

    /// Updates the estimate to the point `x`, given the previous point (`None` at the start).
    pub fn update(
        &mut self,
        sum: &dyn FiniteSum,
        x: ArrayView2<'_, f64>,
        previous: Option<ArrayView2<'_, f64>>,
        rng: &mut Xoshiro256PlusPlus,
    ) {
        if std::mem::take(&mut self.known) {
            self.evaluations += self.order.len() as u64;
            return;
        }
        let full = rng.random::<f64>() < self.probability;
        match previous {
            Some(previous) if !full => {
                let batch = self.sample(self.small_batch, rng);
                self.correct(sum, x, previous, &batch);
            }
            _ => {
                let batch = self.sample(self.batch, rng);
                self.evaluations += batch.len() as u64;
                self.gradient = sum.batch_gradient(x, &batch);
            }
        }
    }

    /// Corrects the estimate with a given batch to `G̃ + (1/b′)Σ[∇f_i(x) − ∇f_i(previous)]`; does nothing
    /// before the first [`Page::update`].
    pub fn correct(
        &mut self,
        sum: &dyn FiniteSum,
        x: ArrayView2<'_, f64>,
        previous: ArrayView2<'_, f64>,
        batch: &[usize],
    ) {
        if self.gradient.dim() != x.dim() {
            return;
        }
        self.evaluations += 2 * batch.len() as u64;
        self.gradient += &sum.batch_gradient(x, batch);
        self.gradient -= &sum.batch_gradient(previous, batch);
    }
}
