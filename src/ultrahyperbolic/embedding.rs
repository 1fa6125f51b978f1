//! UltraE: embedding of a knowledge graph on the pseudo-hyperboloid, with a J-orthogonal map per relation.
//!
//! A triple (h, r, t) has the score `x = −d(R_r E_h, E_t)² + b_h + c_t + δ` with points E = φ(Z), Z free, a
//! bias of every entity as head and another as tail, and a margin δ. The candidates of a batch are its own
//! entities and k drawn ones. All are scored as the tail and as the head of every triple, and the loss is the
//! mean over the triples of the [`Loss`] of both places. An entity that is a candidate with probability p has
//! the weight w = 1/p (1 for those of the triple itself). Sums over the candidates then estimate those over
//! all N entities without bias (Horvitz and Thompson 1952; for a softmax Bengio and Senécal 2008).
//!
//! Entities and biases follow Adam (of the entities that the batch touches, each with its own step
//! count), relation matrices [`RelationUpdate`]. With `u = JR_r E_h` and `w = R_rᵀJE_t` all scores are those
//! of two matrix products. With `a = ∂L/∂u` and `b = ∂L/∂w` the rest of the gradient is
//! `∂L/∂E_h = RᵀJa`, `∂L/∂E_t = JRb`, `∂L/∂R_r = JaE_hᵀ + JE_tbᵀ`.
//!
//! The slope of d² is that of [`Pseudohyperboloid`], guards included. Results do not depend on the number of
//! threads.

use std::collections::HashMap;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, s};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::distances::Scores;
use super::geometry::Pseudohyperboloid;
use super::relations::{Relation, RelationUpdate, check_update};
use crate::internal::{Rows, simd, slice_of};
use crate::objective::GoOn;
use crate::{Error, Result, Signature, Threads};

/// Largest number of triples ranked at a time.
const MOST_QUERIES: usize = 16;

/// Largest number of scores kept at once for each place.
const MOST_SCORES: usize = 1 << 20;

/// (head, relation, tail).
pub type Triple = [usize; 3];

/// Learned state of an embedding: `width = 3n + 7` numbers per entity, and a matrix per relation.
///
/// The row of an entity is (z, its first moments, its second moments), each n long, then (b, c), their
/// first and their second moments, and the number of its Adam steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// Rows of the entities.
    pub entities: Array2<f64>,
    /// Relation matrices.
    pub relations: Vec<Relation>,
}

/// Loss of a triple of score x₊ and its negatives of scores x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// softplus(−x₊) + (k/2N) Σ w softplus(x) over the candidates for each place but the true one.
    Logistic,
    /// log Σ w eˣ − x₊ over the candidates, of the tail plus of the head.
    Softmax,
}

/// Options of the training of an [`Embedding`].
#[derive(Debug, Clone, PartialEq)]
pub struct TrainOptions {
    /// Margin δ.
    pub margin: f64,
    /// Triples per batch.
    pub batch_size: usize,
    /// Number k of different entities drawn per batch. They and all entities of the batch are the
    /// candidates for both places of every triple.
    pub negatives: usize,
    /// Loss of a triple.
    pub loss: Loss,
    /// Adam's step length in epoch 0.
    pub learning_rate: f64,
    /// Factor of the step length from epoch to epoch, in (0, 1].
    pub rate_decay: f64,
    /// Adam's decay β₂ of the second moments, in (0, 1).
    pub moment_decay: f64,
    /// After a step of length η the biases and the coordinates of positive sign of z are multiplied by
    /// 1 − η·`weight_decay`, which must be positive.
    pub weight_decay: f64,
    /// Update of the relation matrices.
    pub update: RelationUpdate,
    /// Seed of all random choices; an epoch depends on the seed, its number and the state before it alone.
    pub seed: u64,
}

/// Model: its options and its space.
#[derive(Debug, Clone)]
pub struct UltraE {
    pub(super) space: Pseudohyperboloid,
    pub(super) signature: Signature,
    pub(super) options: TrainOptions,
}

/// Known triples, which are left out of a ranking.
#[derive(Debug, Clone, Default)]
pub struct KnownTriples {
    tails: HashMap<(usize, usize), Vec<usize>>,
    heads: HashMap<(usize, usize), Vec<usize>>,
}

impl KnownTriples {
    /// Collects all known triples.
    pub fn new(triples: &[Triple]) -> Self {
        let mut known = Self::default();
        for &[h, r, t] in triples {
            known.tails.entry((h, r)).or_default().push(t);
            known.heads.entry((t, r)).or_default().push(h);
        }
        known
    }
}

impl Embedding {
    /// Returns random points: every coordinate of z normal with standard deviation `scale`, biases zero,
    /// every R a random rotation of the rows of either sign by angles of about `angle` (the identity if 0).
    pub fn random(
        entities: usize,
        relations: usize,
        signature: &Signature,
        scale: f64,
        (angle, update): (f64, RelationUpdate),
        seed: u64,
    ) -> Self {
        let n = signature.len();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut rows = Array2::zeros((entities, width(n)));
        for z in rows.slice_mut(s![.., ..n]) {
            let normal: f64 = StandardNormal.sample(&mut rng);
            *z = scale * normal;
        }
        let mut relation = |_| {
            if angle == 0.0 {
                return Relation::identity(signature, update);
            }
            Relation::random(signature, update, angle, &mut rng)
        };
        Self { entities: rows, relations: (0..relations).map(&mut relation).collect() }
    }
}

/// Returns the number of floats per entity.
pub(super) fn width(n: usize) -> usize {
    3 * n + 7
}

impl UltraE {
    /// Creates the model on the pseudo-hyperboloid of radius ρ.
    ///
    /// # Errors
    /// If an option is not positive and finite, or the signature has no −1.
    pub fn new(signature: &Signature, radius: f64, options: TrainOptions) -> Result<Self> {
        for (name, value) in [
            ("margin", options.margin.abs() + 1.0),
            ("learning_rate", options.learning_rate),
            ("rate_decay", options.rate_decay),
            ("batch_size", options.batch_size as f64),
            ("n_negatives", options.negatives as f64),
        ] {
            if !(value.is_finite() && value > 0.0) {
                return Err(Error::invalid(name, "must be positive and finite"));
            }
        }
        if options.rate_decay > 1.0 {
            return Err(Error::invalid("rate_decay", "must be at most 1"));
        }
        if !(options.moment_decay > 0.0 && options.moment_decay < 1.0) {
            return Err(Error::invalid("moment_decay", "must be between 0 and 1"));
        }
        let shrunk = options.learning_rate * options.weight_decay;
        if !(options.weight_decay >= 0.0 && shrunk < 1.0) {
            return Err(Error::invalid("weight_decay", "must be at least 0 and below 1/learning_rate"));
        }
        check_update(options.update)?;
        Ok(Self { space: Pseudohyperboloid::new(signature, radius)?, signature: signature.clone(), options })
    }

    /// Checks that an embedding and triples belong to this model.
    ///
    /// # Errors
    /// If a shape does not fit or an index is out of range.
    pub fn check(&self, state: &Embedding, triples: &[Triple]) -> Result<()> {
        let n = self.space.dim();
        let memory = Relation::memory_length(&self.signature, self.options.update);
        if state.entities.ncols() != width(n)
            || state.relations.iter().any(|r| r.matrix.dim() != (n, n) || r.memory.len() != memory)
        {
            return Err(Error::invalid("state", "does not fit the model"));
        }
        let (entities, relations) = (state.entities.nrows(), state.relations.len());
        for (i, &[h, r, t]) in triples.iter().enumerate() {
            if h >= entities || t >= entities || r >= relations {
                return Err(Error::invalid(
                    "triples",
                    format!(
                        "must hold entities below {entities} and relations below {relations}; \
                         triple {i} is ({h}, {r}, {t})"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Returns E = φ(Z).
    pub(super) fn points(&self, state: &Embedding) -> Rows {
        let n = self.space.dim();
        let mut points = Rows::zeros((state.entities.nrows(), n));
        for (i, row) in state.entities.outer_iter().enumerate() {
            self.space.project(&slice_of(row)[..n], points.row_slice_mut(i));
        }
        points
    }

    pub(super) fn biases(&self, state: &Embedding, entity: usize) -> (f64, f64) {
        let at = 3 * self.space.dim();
        (state.entities[[entity, at]], state.entities[[entity, at + 1]])
    }

    /// Returns JRE_h and RᵀJE_t.
    pub(super) fn images(
        &self,
        matrix: ArrayView2<'_, f64>,
        head: ArrayView1<'_, f64>,
        tail: ArrayView1<'_, f64>,
    ) -> (Array1<f64>, Array1<f64>) {
        let signs = self.space.signs();
        (matrix.dot(&head) * signs, matrix.t().dot(&(&tail * &signs)))
    }

    /// Returns the scores of triples, or None if `go_on` ends the computation.
    ///
    /// # Errors
    /// If the state or the triples do not fit the model.
    pub fn scores(
        &self,
        state: &Embedding,
        triples: &[Triple],
        threads: &Threads,
        go_on: GoOn<'_>,
    ) -> Result<Option<Vec<f64>>> {
        self.check(state, triples)?;
        let points = self.points(state);
        let score = |i: usize| {
            let [h, r, t] = triples[i];
            let matrix = state.relations[r].matrix.view();
            let (u, _) = self.images(matrix, points.row(h), points.row(t));
            let d = self.space.distance_of(u.dot(&points.row(t))).0;
            self.options.margin + self.biases(state, h).0 + self.biases(state, t).1 - d * d
        };
        let scores = threads.map(triples.len(), |i| go_on().then(|| score(i)));
        Ok(scores.into_iter().collect())
    }

    /// Returns the ranks (of the head, of the tail) of every triple among all entities in that place, without
    /// the other known ones; equal scores count half (mean rank). The best rank is 1. None if `go_on` ends the
    /// computation.
    ///
    /// # Errors
    /// If the state or the triples do not fit the model.
    pub fn ranks(
        &self,
        state: &Embedding,
        triples: &[Triple],
        known: &KnownTriples,
        threads: &Threads,
        go_on: GoOn<'_>,
    ) -> Result<Option<Vec<[f64; 2]>>> {
        self.check(state, triples)?;
        let points = self.points(state);
        let entities = points.nrows();
        let count = (MOST_SCORES / entities).clamp(1, MOST_QUERIES);
        let pieces = threads.map(triples.len().div_ceil(count), |k| {
            let triples = &triples[k * count..triples.len().min((k + 1) * count)];
            go_on().then(|| self.ranks_of(state, triples, known, &points))
        });
        let pieces: Option<Vec<_>> = pieces.into_iter().collect();
        Ok(pieces.map(|pieces| pieces.into_iter().flatten().collect()))
    }

    fn ranks_of(&self, state: &Embedding, triples: &[Triple], known: &KnownTriples, points: &Rows) -> Vec<[f64; 2]> {
        let n = self.space.dim();
        let mut vectors = Array2::zeros((2 * triples.len(), n));
        for (i, &[h, r, t]) in triples.iter().enumerate() {
            let matrix = state.relations[r].matrix.view();
            let (u, w) = self.images(matrix, points.row(h), points.row(t));
            vectors.row_mut(2 * i).assign(&w);
            vectors.row_mut(2 * i + 1).assign(&u);
        }
        let mut scores = Rows::from(vectors.dot(&points.t()));
        let biases = [0, 1].map(|place| state.entities.column(3 * n + place).to_vec());
        let mut rank = |i: usize, place: usize, own: usize, others: Option<&Vec<usize>>| {
            let inner = scores.row_slice_mut(2 * i + place);
            let (biases, radius) = (&biases[place], self.space.radius());
            simd::arch().dispatch(Scores { inner, biases, radius });
            let scores = scores.row_slice_mut(2 * i + place);
            rank(scores, own, others)
        };
        let place = |(i, &[h, r, t]): (usize, &Triple)| {
            [rank(i, 0, h, known.heads.get(&(t, r))), rank(i, 1, t, known.tails.get(&(h, r)))]
        };
        triples.iter().enumerate().map(place).collect()
    }
}

/// Returns the rank of entity `own` by its score, `others` left out; equal scores count half.
fn rank(scores: &mut [f64], own: usize, others: Option<&Vec<usize>>) -> f64 {
    let target = scores[own];
    for &e in others.into_iter().flatten() {
        scores[e] = f64::NEG_INFINITY;
    }
    scores[own] = f64::NEG_INFINITY;
    let better = scores.iter().filter(|&&x| x > target).count();
    let equal = scores.iter().filter(|&&x| x == target).count();
    1.0 + better as f64 + 0.5 * equal as f64
}
