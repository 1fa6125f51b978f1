//! Training of an embedding: the gradient of a batch, and an epoch of steps.

use std::ops::Range;

use ndarray::{Array2, ArrayView1, ArrayView2, Axis, s};
use rand::seq::{SliceRandom, index};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::candidates::{Derivatives, Queries};
use super::distances::Measure;
use super::embedding::{Embedding, Loss, Triple, UltraE, width};
use super::relations::RelationUpdate;
use super::sampling::Counts;
use crate::internal::{PIECE, Rows};
use crate::{Control, Error, Monitor, Result, Threads};

/// Cost of an Adam step per number, in multiply-adds.
const STEP_WORK: usize = 30;

/// Batch with its triples by relation.
struct Batch {
    /// Relations of the batch, each with the range of its triples.
    relations: Vec<(usize, Range<usize>)>,
    /// Entities of the batch and the drawn ones, ascending.
    candidates: Vec<usize>,
    /// Points of the candidates.
    points: Rows,
    /// Number of entities that each candidate stands for.
    weights: Vec<f64>,
    /// Heads and tails of the triples, as positions among the candidates.
    ends: [Vec<usize>; 2],
    /// Points of the heads and of the tails.
    rows: [Rows; 2],
}

/// All training triples, and the number of triples that hold each entity.
struct Training<'a> {
    triples: &'a [Triple],
    counts: Counts,
}

/// Derivatives of the loss of a batch with respect to the points and biases of the candidates, and to
/// the images, which give those with respect to the relations.
struct Pass {
    loss: f64,
    /// A row per candidate: ∂L/∂E, ∂L/∂b, ∂L/∂c.
    entities: Rows,
    /// ∂L/∂u and ∂L/∂w of every triple.
    images: [Rows; 2],
}

/// Returns the rows of `points` at `places`.
fn gathered(points: &Rows, places: &[usize]) -> Rows {
    let mut rows = Rows::zeros((places.len(), points.ncols()));
    for (i, &place) in places.iter().enumerate() {
        rows.row_slice_mut(i).copy_from_slice(points.row_slice(place));
    }
    rows
}

impl Batch {
    /// Creates a batch; `weights` are those of all entities.
    fn new(mut triples: Vec<Triple>, drawn: &[usize], weights: &[f64], points: &Rows) -> Self {
        // Stable: triples of a relation stay in the order in which they were drawn.
        triples.sort_by_key(|triple| triple[1]);
        let mut relations: Vec<(usize, Range<usize>)> = Vec::new();
        for (i, &[_, r, _]) in triples.iter().enumerate() {
            match relations.last_mut() {
                Some((last, range)) if *last == r => range.end = i + 1,
                _ => relations.push((r, i..i + 1)),
            }
        }
        let mut candidates: Vec<usize> = triples.iter().flat_map(|&[h, _, t]| [h, t]).collect();
        candidates.extend(drawn);
        candidates.sort_unstable();
        candidates.dedup();
        let slot = |e: usize| candidates.partition_point(|&other| other < e);
        let ends = [0, 2].map(|place| triples.iter().map(|t| slot(t[place])).collect::<Vec<_>>());
        let points = gathered(points, &candidates);
        Self {
            relations,
            rows: ends.each_ref().map(|ends| gathered(&points, ends)),
            weights: candidates.iter().map(|&e| weights[e]).collect(),
            candidates,
            points,
            ends,
        }
    }

    fn len(&self) -> usize {
        self.ends[0].len()
    }

    /// Returns the matrices of the relations of the batch.
    fn matrices<'a>(&self, state: &'a Embedding) -> Vec<ArrayView2<'a, f64>> {
        let matrix = |(r, _): &(usize, _)| state.relations[*r].matrix.view();
        self.relations.iter().map(matrix).collect()
    }

    /// Returns ∂L/∂R of the relation at `range`: Σ J a E_hᵀ + JE_t bᵀ.
    fn relation_gradient(&self, range: &Range<usize>, images: &[Rows; 2], signs: ArrayView1<'_, f64>) -> Array2<f64> {
        let cut = |rows: &Rows| rows.slice(s![range.clone(), ..]).to_owned();
        let [heads, tails] = self.rows.each_ref().map(cut);
        let [a, b] = images.each_ref().map(cut);
        (a.t().dot(&heads) + tails.t().dot(&b)) * signs.insert_axis(Axis(1))
    }
}

impl UltraE {
    /// Draws different entities as candidates, all of them if there are no more.
    fn draw(&self, entities: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<usize> {
        index::sample(rng, entities, self.options.negatives.min(entities)).into_vec()
    }

    /// Returns JRx and RᵀJy of the rows x, y of a batch, R the matrices of its relations.
    fn images_of_batch(&self, matrices: &[ArrayView2<'_, f64>], batch: &Batch, rows: [&Rows; 2]) -> [Rows; 2] {
        let signs = self.space.signs();
        let mut images = rows.map(|rows| Rows::zeros(rows.dim()));
        for ((_, range), matrix) in batch.relations.iter().zip(matrices) {
            let range = s![range.clone(), ..];
            let [x, y] = rows.map(|rows| rows.slice(range));
            let [u, w] = &mut images;
            u.view_mut().slice_mut(range).assign(&(x.dot(&matrix.t()) * signs));
            w.view_mut().slice_mut(range).assign(&(&y * &signs).dot(matrix));
        }
        images
    }

    /// Computes the loss of a batch and its derivatives with respect to points, biases and images.
    fn pass(&self, state: &Embedding, matrices: &[ArrayView2<'_, f64>], batch: &Batch, threads: &Threads) -> Pass {
        let n = self.space.dim();
        let biases = [0, 1].map(|place| {
            let column = state.entities.column(3 * n + place);
            batch.candidates.iter().map(|&e| column[e]).collect::<Vec<_>>()
        });
        let share = self.options.negatives as f64 / (2 * state.entities.nrows()) as f64;
        let [heads, tails] = batch.rows.each_ref();
        let vectors = self.images_of_batch(matrices, batch, [heads, tails]);
        // The vectors of place 0 have the head given, those of place 1 the tail.
        let sides = [0, 1].map(|given| {
            let (ends, open) = (&batch.ends[given], 1 - given);
            let offsets = ends.iter().map(|&k| self.options.margin + biases[given][k]);
            let queries = Queries {
                vectors: &vectors[given],
                targets: &batch.ends[open],
                given: ends,
                offsets: offsets.collect(),
                points: batch.points.view(),
                biases: biases[open].clone(),
                weights: &batch.weights,
                radius: self.space.radius(),
                measure: match self.options.loss {
                    Loss::Logistic => Measure::Logistic(share),
                    Loss::Softmax => Measure::Softmax,
                },
                weight: 1.0 / batch.len() as f64,
            };
            queries.derivatives(threads)
        });
        self.gathered(matrices, batch, sides)
    }

    /// Adds up the derivatives of both places (the head given, the tail given).
    fn gathered(&self, matrices: &[ArrayView2<'_, f64>], batch: &Batch, sides: [Derivatives; 2]) -> Pass {
        let n = self.space.dim();
        let mut sums = Rows::zeros((batch.candidates.len(), n + 2));
        let mut add = |slot: usize, vector: &[f64], place: usize, bias: f64| {
            let row = sums.row_slice_mut(slot);
            row.iter_mut().zip(vector).for_each(|(sum, &x)| *sum += x);
            row[n + place] += bias;
        };
        for (given, side) in sides.iter().enumerate() {
            for (slot, &bias) in side.biases.iter().enumerate() {
                add(slot, side.candidates.row_slice(slot), 1 - given, bias);
            }
        }
        let loss = sides[0].loss + sides[1].loss;
        let [(a, heads), (b, tails)] = sides.map(|side| (side.queries, side.offsets));
        // ∂L/∂E_t = JRb and ∂L/∂E_h = RᵀJa are images too.
        let [back, forth] = self.images_of_batch(matrices, batch, [&b, &a]);
        for i in 0..batch.len() {
            add(batch.ends[0][i], forth.row_slice(i), 0, heads[i]);
            add(batch.ends[1][i], back.row_slice(i), 1, tails[i]);
        }
        Pass { loss, entities: sums, images: [a, b] }
    }

    /// Replaces ∂L/∂E by ∂L/∂z.
    fn pull_back(&self, z: &[f64], gradient: &mut [f64]) {
        let mut point = vec![0.0; z.len()];
        let radii = self.space.project(z, &mut point);
        self.space.pull_back(z, &point, radii, gradient);
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
        // The factor keeps the random numbers of seed s apart from those of seed s + 1.
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(
            (self.options.seed ^ 0x756c_7472_6165).wrapping_add(epoch.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        );
        let mut order: Vec<usize> = (0..triples.len()).collect();
        order.shuffle(&mut rng);
        let mut rows: Vec<usize> = (0..n).collect();
        let mut points = self.points(state);
        let decay = self.options.rate_decay.powf(epoch as f64);
        let rate = self.options.learning_rate * decay;
        let training = Training { triples, counts: Counts::new(triples, points.nrows()) };
        let mut weights = (0, Vec::new());
        let mut total = 0.0;
        for chosen in order.chunks(self.options.batch_size) {
            if monitor.poll() == Control::Stop {
                return Ok(None);
            }
            let triples: Vec<Triple> = chosen.iter().map(|&i| triples[i]).collect();
            let drawn = self.draw(points.nrows(), &mut rng);
            if weights.0 != triples.len() {
                weights = (triples.len(), training.counts.weights(triples.len(), drawn.len()));
            }
            let batch = Batch::new(triples, &drawn, &weights.1, &points);
            let pass = self.pass(state, &batch.matrices(state), &batch, threads);
            total += pass.loss * batch.len() as f64;
            if self.options.update != RelationUpdate::Frozen {
                let random = (&mut rows[..], &mut rng);
                self.move_relations(state, &batch, &pass, &training, random, threads);
            }
            self.move_entities((state, &mut points), &batch, &pass, rate, threads);
        }
        for relation in &mut state.relations {
            relation.repair(&self.signature);
        }
        Ok(Some(total / triples.len() as f64))
    }

    fn move_relations(
        &self,
        state: &mut Embedding,
        batch: &Batch,
        pass: &Pass,
        training: &Training<'_>,
        (rows, rng): (&mut [usize], &mut Xoshiro256PlusPlus),
        threads: &Threads,
    ) {
        let update = self.options.update;
        let relations = &state.relations;
        let page = matches!(update, RelationUpdate::PageJobcd { .. });
        let chance = batch.len() as f64 / (training.triples.len() + batch.len()) as f64;
        let fresh = |(r, _): &(usize, _)| relations[*r].is_fresh();
        let gradients = if page && (rng.random::<f64>() < chance || batch.relations.iter().any(fresh)) {
            let gradients = self.full_gradients(state, training, rng, threads);
            let gradients = gradients.into_iter().map(|(r, gradient)| (r, gradient, None));
            gradients.collect::<Vec<_>>()
        } else {
            let before = page.then(|| {
                let last = |(r, _): &(usize, _)| relations[*r].previous();
                let matrices: Vec<_> = batch.relations.iter().map(last).collect();
                self.pass(state, &matrices, batch, threads)
            });
            let gradients = batch.relations.iter().map(|(r, range)| {
                let gradient = |pass: &Pass| batch.relation_gradient(range, &pass.images, self.space.signs());
                (*r, gradient(pass), before.as_ref().map(gradient))
            });
            gradients.collect()
        };
        let mut order = || {
            rows.shuffle(rng);
            rows.to_vec()
        };
        let orders: Vec<Vec<usize>> = gradients.iter().map(|_| order()).collect();
        let moved = threads.map(orders.len(), |k| {
            let (r, gradient, before) = &gradients[k];
            let mut relation = relations[*r].clone();
            let order = &orders[k];
            relation.step(gradient, before.as_ref(), &self.signature, update, order);
            relation
        });
        for ((r, ..), relation) in gradients.iter().zip(moved) {
            state.relations[*r] = relation;
        }
    }

    /// Returns ∂L/∂R of every relation, averaged over all training triples.
    fn full_gradients(
        &self,
        state: &Embedding,
        training: &Training<'_>,
        rng: &mut Xoshiro256PlusPlus,
        threads: &Threads,
    ) -> Vec<(usize, Array2<f64>)> {
        let points = self.points(state);
        let mut sums: Vec<Option<Array2<f64>>> = vec![None; state.relations.len()];
        for triples in training.triples.chunks(self.options.batch_size) {
            let drawn = self.draw(points.nrows(), rng);
            let weights = training.counts.weights(triples.len(), drawn.len());
            let batch = Batch::new(triples.to_vec(), &drawn, &weights, &points);
            let pass = self.pass(state, &batch.matrices(state), &batch, threads);
            let share = batch.len() as f64 / training.triples.len() as f64;
            for (r, range) in &batch.relations {
                let part = batch.relation_gradient(range, &pass.images, self.space.signs()) * share;
                match &mut sums[*r] {
                    Some(sum) => *sum += &part,
                    sum => *sum = Some(part),
                }
            }
        }
        let sums = sums.into_iter().enumerate();
        sums.filter_map(|(r, sum)| sum.map(|sum| (r, sum))).collect()
    }

    /// Does an Adam step of length `rate` for the entities of a batch, with decoupled weight decay
    /// (Loshchilov and Hutter 2019). Coordinates of negative sign do not decay: only their direction matters.
    fn move_entities(
        &self,
        (state, points): (&mut Embedding, &mut Rows),
        batch: &Batch,
        pass: &Pass,
        rate: f64,
        threads: &Threads,
    ) {
        let n = self.space.dim();
        let width = width(n);
        let mut entities = Rows::from(std::mem::take(&mut state.entities));
        // The rows of the candidates, each followed by its gradient, which the new point replaces.
        let mut moved = Rows::zeros((batch.candidates.len(), width + n + 2));
        for (k, &e) in batch.candidates.iter().enumerate() {
            let (row, gradient) = moved.row_slice_mut(k).split_at_mut(width);
            row.copy_from_slice(entities.row_slice(e));
            gradient.copy_from_slice(pass.entities.row_slice(k));
        }
        let chunk = PIECE * (width + n + 2);
        let work = batch.candidates.len() * n * STEP_WORK;
        let keep = 1.0 - rate * self.options.weight_decay;
        let kept = self.space.signs().mapv(|s| if s > 0.0 { keep } else { 1.0 });
        threads.for_chunks(moved.entries_mut(), chunk, work, |_, rows| {
            for row in rows.chunks_mut(width + n + 2) {
                let (row, gradient) = row.split_at_mut(width);
                self.pull_back(&row[..n], &mut gradient[..n]);
                adam(row, gradient, rate, self.options.moment_decay);
                row[..n].iter_mut().zip(&kept).for_each(|(z, k)| *z *= k);
                row[3 * n..3 * n + 2].iter_mut().for_each(|b| *b *= keep);
                self.space.project(&row[..n], &mut gradient[..n]);
            }
        });
        for (k, &e) in batch.candidates.iter().enumerate() {
            let (row, point) = moved.row_slice(k).split_at(width);
            entities.row_slice_mut(e).copy_from_slice(row);
            points.row_slice_mut(e).copy_from_slice(&point[..n]);
        }
        state.entities = entities.into_array();
    }
}

/// Does one step of Adam (Kingma and Ba, ICLR 2015) of the row of an entity, from ∂L/∂z, ∂L/∂b and ∂L/∂c.
fn adam(row: &mut [f64], gradient: &[f64], rate: f64, beta2: f64) {
    let n = gradient.len() - 2;
    let (beta1, epsilon): (f64, f64) = (0.9, 1e-8);
    let (steps, row) = row.split_last_mut().expect("a row of an entity");
    *steps += 1.0;
    let correction = (1.0 - beta2.powf(*steps)).sqrt();
    let length = rate * correction / (1.0 - beta1.powf(*steps));
    let small = epsilon * correction;
    let step = |part: &mut [f64], gradient: &[f64]| {
        let (values, moments) = part.split_at_mut(gradient.len());
        let (first, second) = moments.split_at_mut(gradient.len());
        for (((x, m), v), &g) in values.iter_mut().zip(first).zip(second).zip(gradient) {
            *m = beta1 * *m + (1.0 - beta1) * g;
            *v = beta2 * *v + (1.0 - beta2) * g * g;
            *x -= length * *m / (v.sqrt() + small);
        }
    };
    let (point, biases) = row.split_at_mut(3 * n);
    step(point, &gradient[..n]);
    step(biases, &gradient[n..]);
}

#[cfg(test)]
mod tests;
