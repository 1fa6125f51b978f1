//! How an embedding is trained: the gradient of a batch, and an epoch of steps.

use ndarray::{Array1, Array2, ArrayView1, s};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::embedding::{Embedding, Triple, UltraE, width};
use super::relations::RelationUpdate;
use crate::linalg::dot;
use crate::rows::{Rows, slice_of};
use crate::{Control, Error, Monitor, Result, Threads};

/// Adam's decay of the first and second moment, and its ε (Kingma and Ba, ICLR 2015).
const ADAM: (f64, f64, f64) = (0.9, 0.999, 1e-8);

/// Triples per parallel piece, entities per parallel piece.
const CHUNK_TRIPLES: usize = 8;
const CHUNK_ENTITIES: usize = 64;

/// Cost of one score in multiply-adds, besides the inner product: logarithms and exponentials.
const SCORE_WORK: usize = 300;

/// Vectors kept per triple: u, w, RᵀJa, JRb, Ja, b.
const VECTORS: usize = 6;

/// The gradient of the loss of one batch.
#[derive(Debug, Clone)]
pub struct BatchGradient {
    /// L.
    pub loss: f64,
    /// ∂L/∂z of every entity.
    pub entities: Array2<f64>,
    /// ∂L/∂b and ∂L/∂c of every entity.
    pub biases: Array2<f64>,
    /// ∂L/∂R of every relation.
    pub relations: Vec<Array2<f64>>,
}

/// One vector times a factor that an entity's gradient consists of, and what its biases get.
#[derive(Debug, Clone, Copy)]
struct Share {
    entity: usize,
    vector: usize,
    factor: f64,
    head: f64,
    tail: f64,
}

/// What the first pass over a batch leaves behind.
struct Forward {
    loss: f64,
    vectors: Rows,
    shares: Vec<Share>,
}

/// One triple's part of it.
#[derive(Default)]
struct Scored {
    loss: f64,
    vectors: Vec<f64>,
    shares: Vec<Share>,
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// σ(x).
fn sigmoid(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    if x >= 0.0 {
        1.0 / (1.0 + e)
    } else {
        e / (1.0 + e)
    }
}

fn add_scaled(target: &mut [f64], factor: f64, x: &[f64]) {
    for (t, &x) in target.iter_mut().zip(x) {
        *t += factor * x;
    }
}

impl UltraE {
    /// The negatives of a batch: for every triple the replacing tails, then the replacing heads.
    fn draw(&self, count: usize, entities: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<usize> {
        (0..count * self.options.negatives)
            .map(|_| rng.random_range(0..entities))
            .collect()
    }

    /// Scores of a triple and its negatives, and all that their gradient consists of.
    #[allow(clippy::too_many_arguments)]
    fn score(
        &self,
        state: &Embedding,
        points: &Rows,
        [h, r, t]: Triple,
        negatives: &[usize],
        weight: f64,
        first_vector: usize,
    ) -> Scored {
        let n = self.space.dim();
        let (tails, heads) = negatives.split_at(negatives.len().div_ceil(2));
        let matrix = state.relations[r].matrix.view();
        let (u, w) = self.images(matrix, points.row(h), points.row(t));
        let (u, w) = (&*slice_of(u.view()), &*slice_of(w.view()));
        let (head_bias, tail_bias) = (self.biases(state, h).0, self.biases(state, t).1);
        let mut out = Scored {
            shares: Vec::with_capacity(negatives.len() + 3),
            ..Scored::default()
        };
        let (mut a, mut b) = (vec![0.0; n], vec![0.0; n]);
        let (mut head_slope, mut tail_slope) = (0.0, 0.0);
        let point = |e: usize| points.row_slice(e);
        let share = |entity: usize, vector: usize, factor: f64, [head, tail]: [f64; 2]| Share {
            entity,
            vector: first_vector + vector,
            factor,
            head,
            tail,
        };
        for (k, &e) in std::iter::once(&t).chain(tails).enumerate() {
            let (square, slope) = self.squared(dot(u, point(e)));
            let x = self.options.margin + head_bias + self.biases(state, e).1 - square;
            let dx = if k == 0 {
                out.loss += softplus(-x);
                -weight * sigmoid(-x)
            } else {
                out.loss += softplus(x);
                weight * sigmoid(x)
            };
            let factor = -dx * slope;
            add_scaled(&mut a, factor, point(e));
            head_slope += dx;
            out.shares.push(share(e, 0, factor, [0.0, dx]));
        }
        for &e in heads {
            let (square, slope) = self.squared(dot(w, point(e)));
            let x = self.options.margin + self.biases(state, e).0 + tail_bias - square;
            out.loss += softplus(x);
            let dx = weight * sigmoid(x);
            let factor = -dx * slope;
            add_scaled(&mut b, factor, point(e));
            tail_slope += dx;
            out.shares.push(share(e, 1, factor, [dx, 0.0]));
        }
        out.shares.push(share(h, 2, 1.0, [head_slope, 0.0]));
        out.shares.push(share(t, 3, 1.0, [0.0, tail_slope]));
        let (a, b) = (ArrayView1::from(&a), ArrayView1::from(&b));
        let (back, forth) = self.images(matrix, b, a);
        let signed = &a * &self.space.signs();
        out.vectors.reserve(VECTORS * n);
        out.vectors.extend_from_slice(u);
        out.vectors.extend_from_slice(w);
        // RᵀJa, JRb, Ja, b.
        out.vectors.extend(forth);
        out.vectors.extend(back);
        out.vectors.extend(signed);
        out.vectors.extend(b);
        out
    }

    /// The first pass over a batch.
    fn forward(
        &self,
        state: &Embedding,
        points: &Rows,
        batch: &[Triple],
        negatives: &[usize],
        threads: &Threads,
    ) -> Forward {
        let (n, k) = (self.space.dim(), self.options.negatives);
        let weight = 1.0 / batch.len() as f64;
        let mut scored: Vec<Scored> = (0..batch.len()).map(|_| Scored::default()).collect();
        let work = batch.len() * (k + 1) * (4 * n + SCORE_WORK);
        threads.for_chunks(&mut scored, CHUNK_TRIPLES, work, |piece, scored| {
            for (i, out) in scored.iter_mut().enumerate() {
                let i = piece * CHUNK_TRIPLES + i;
                let drawn = &negatives[i * k..(i + 1) * k];
                *out = self.score(state, points, batch[i], drawn, weight, VECTORS * i);
            }
        });
        let mut vectors = Vec::with_capacity(batch.len() * VECTORS * n);
        let mut shares = Vec::with_capacity(batch.len() * (k + 3));
        let mut loss = 0.0;
        for part in scored {
            loss += weight * part.loss;
            vectors.extend(part.vectors);
            shares.extend(part.shares);
        }
        // Stable: an entity's shares are added up in the order of the batch.
        shares.sort_by_key(|share| share.entity);
        Forward {
            loss,
            vectors: Rows::from_entries(vectors, n),
            shares,
        }
    }

    /// The gradient with respect to z and the biases of the entity that the shares belong to.
    fn entity_gradient(&self, z: &[f64], vectors: &Rows, shares: &[Share]) -> (Vec<f64>, [f64; 2]) {
        let n = z.len();
        let (mut gradient, mut biases) = (vec![0.0; n], [0.0; 2]);
        for share in shares {
            add_scaled(&mut gradient, share.factor, vectors.row_slice(share.vector));
            biases[0] += share.head;
            biases[1] += share.tail;
        }
        let mut point = vec![0.0; n];
        let radii = self.space.project(z, &mut point);
        self.space.pull_back(z, &point, radii, &mut gradient);
        (gradient, biases)
    }

    /// ∂L/∂R of a relation from the triples `members` of the batch.
    fn relation_gradient(
        &self,
        points: &Rows,
        batch: &[Triple],
        members: &[usize],
        vectors: &Rows,
    ) -> Array2<f64> {
        let n = self.space.dim();
        let signs = self.space.signs();
        let mut left = Array2::zeros((2 * members.len(), n));
        let mut right = Array2::zeros((2 * members.len(), n));
        for (k, &i) in members.iter().enumerate() {
            let [h, _, t] = batch[i];
            left.row_mut(2 * k).assign(&vectors.row(VECTORS * i + 4));
            right.row_mut(2 * k).assign(&points.row(h));
            left.row_mut(2 * k + 1).assign(&(&points.row(t) * &signs));
            right
                .row_mut(2 * k + 1)
                .assign(&vectors.row(VECTORS * i + 5));
        }
        left.t().dot(&right)
    }

    /// The loss of a batch with the given negatives (k per triple) and its gradient.
    ///
    /// # Errors
    /// If the state, the triples or the negatives do not fit the model.
    pub fn gradient(
        &self,
        state: &Embedding,
        batch: &[Triple],
        negatives: &[usize],
        threads: &Threads,
    ) -> Result<BatchGradient> {
        self.check(state, batch)?;
        if batch.is_empty() || negatives.len() != batch.len() * self.options.negatives {
            return Err(Error::invalid(
                "negatives",
                format!(
                    "must have n_negatives = {} per triple",
                    self.options.negatives
                ),
            ));
        }
        if negatives.iter().any(|&e| e >= state.entities.nrows()) {
            return Err(Error::invalid("negatives", "must be entities"));
        }
        let n = self.space.dim();
        let points = self.points(state);
        let pass = self.forward(state, &points, batch, negatives, threads);
        let entities = state.entities.nrows();
        let mut out = BatchGradient {
            loss: pass.loss,
            entities: Array2::zeros((entities, n)),
            biases: Array2::zeros((entities, 2)),
            relations: vec![Array2::zeros((n, n)); state.relations.len()],
        };
        for shares in pass.shares.chunk_by(|a, b| a.entity == b.entity) {
            let e = shares[0].entity;
            let z = state.entities.slice(s![e, ..n]);
            let (gradient, biases) = self.entity_gradient(&slice_of(z), &pass.vectors, shares);
            out.entities.row_mut(e).assign(&Array1::from(gradient));
            out.biases.row_mut(e).assign(&Array1::from(biases.to_vec()));
        }
        for (r, members) in by_relation(batch) {
            out.relations[r] = self.relation_gradient(&points, batch, &members, &pass.vectors);
        }
        Ok(out)
    }

    /// Trains `state` for epoch number `epoch`; returns the mean loss of its batches, or `None` if the
    /// monitor stopped it (the state is then somewhere within the epoch).
    ///
    /// # Errors
    /// If the state or the triples do not fit the model.
    pub fn epoch(
        &self,
        state: &mut Embedding,
        triples: &[Triple],
        epoch: u64,
        threads: &Threads,
        monitor: &mut dyn Monitor,
    ) -> Result<Option<f64>> {
        self.check(state, triples)?;
        if triples.is_empty() {
            return Err(Error::invalid("triples", "must not be empty"));
        }
        let n = self.space.dim();
        // Multiplied, so that seeds s and epochs e do not meet those of s + 1.
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(
            (self.options.seed ^ 0x756c_7472_6165)
                .wrapping_add(epoch.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        );
        let mut order: Vec<usize> = (0..triples.len()).collect();
        order.shuffle(&mut rng);
        let mut rows: Vec<usize> = (0..n).collect();
        let mut points = self.points(state);
        let mut total = 0.0;
        for chosen in order.chunks(self.options.batch_size) {
            if monitor.poll() == Control::Stop {
                return Ok(None);
            }
            let batch: Vec<Triple> = chosen.iter().map(|&i| triples[i]).collect();
            let negatives = self.draw(batch.len(), state.entities.nrows(), &mut rng);
            let pass = self.forward(state, &points, &batch, &negatives, threads);
            total += pass.loss * batch.len() as f64;
            self.move_relations(state, &points, &batch, &pass, &mut rows, &mut rng, threads);
            self.move_entities(state, &mut points, &pass, threads);
        }
        for relation in &mut state.relations {
            relation.repair(&self.signature);
        }
        Ok(Some(total / triples.len() as f64))
    }

    #[allow(clippy::too_many_arguments)]
    fn move_relations(
        &self,
        state: &mut Embedding,
        points: &Rows,
        batch: &[Triple],
        pass: &Forward,
        rows: &mut [usize],
        rng: &mut Xoshiro256PlusPlus,
        threads: &Threads,
    ) {
        if self.options.update == RelationUpdate::Frozen {
            return;
        }
        let groups: Vec<(usize, Vec<usize>, Vec<usize>)> = by_relation(batch)
            .into_iter()
            .map(|(r, members)| {
                rows.shuffle(rng);
                (r, members, rows.to_vec())
            })
            .collect();
        let relations = &state.relations;
        let moved = threads.map(groups.len(), |k| {
            let (r, members, order) = &groups[k];
            let gradient = self.relation_gradient(points, batch, members, &pass.vectors);
            let mut relation = relations[*r].clone();
            relation.step(&gradient, &self.signature, self.options.update, order);
            relation
        });
        for ((r, _, _), relation) in groups.iter().zip(moved) {
            state.relations[*r] = relation;
        }
    }

    /// Adam for the entities of a batch.
    fn move_entities(
        &self,
        state: &mut Embedding,
        points: &mut Rows,
        pass: &Forward,
        threads: &Threads,
    ) {
        let n = self.space.dim();
        let width = width(n);
        let (beta1, beta2, epsilon) = ADAM;
        let rate = self.options.learning_rate;
        let work = pass.shares.len() * (n + SCORE_WORK);
        let mut entities = Rows::from(std::mem::take(&mut state.entities));
        let rows = entities.entries_mut();
        threads.for_chunks(rows, CHUNK_ENTITIES * width, work, |piece, rows| {
            let first = piece * CHUNK_ENTITIES;
            let end = first + rows.len() / width;
            let from = pass.shares.partition_point(|share| share.entity < first);
            let to = pass.shares.partition_point(|share| share.entity < end);
            for shares in pass.shares[from..to].chunk_by(|a, b| a.entity == b.entity) {
                let at = (shares[0].entity - first) * width;
                let row = &mut rows[at..at + width];
                let (gradient, biases) = self.entity_gradient(&row[..n], &pass.vectors, shares);
                row[width - 1] += 1.0;
                let steps = row[width - 1];
                let length = rate * (1.0 - beta2.powf(steps)).sqrt() / (1.0 - beta1.powf(steps));
                let small = epsilon * (1.0 - beta2.powf(steps)).sqrt();
                let mut step = |value: usize, first: usize, second: usize, g: f64| {
                    row[first] = beta1 * row[first] + (1.0 - beta1) * g;
                    row[second] = beta2 * row[second] + (1.0 - beta2) * g * g;
                    row[value] -= length * row[first] / (row[second].sqrt() + small);
                };
                for (k, &g) in gradient.iter().enumerate() {
                    step(k, n + k, 2 * n + k, g);
                }
                for (k, &g) in biases.iter().enumerate() {
                    step(3 * n + k, 3 * n + 2 + k, 3 * n + 4 + k, g);
                }
            }
        });
        let mut last = usize::MAX;
        for share in &pass.shares {
            if share.entity != last {
                last = share.entity;
                let z = &rows[last * width..last * width + n];
                self.space.project(z, points.row_slice_mut(last));
            }
        }
        state.entities = entities.into_array();
    }
}

/// The positions in the batch of every relation that it holds, by relation.
fn by_relation(batch: &[Triple]) -> Vec<(usize, Vec<usize>)> {
    let mut order: Vec<usize> = (0..batch.len()).collect();
    order.sort_by_key(|&i| batch[i][1]);
    order
        .chunk_by(|&i, &j| batch[i][1] == batch[j][1])
        .map(|members| (batch[members[0]][1], members.to_vec()))
        .collect()
}
