use super::*;
use crate::start::random_j_orthogonal;
use crate::ultrahyperbolic::TrainOptions;
use crate::{Signature, Unwatched, start};

/// The gradient of the loss of a batch.
struct Gradient {
    loss: f64,
    /// ∂L/∂z of every entity.
    entities: Array2<f64>,
    /// ∂L/∂b and ∂L/∂c of every entity.
    biases: Array2<f64>,
    /// ∂L/∂R of every relation.
    relations: Vec<Array2<f64>>,
}

fn gradient(model: &UltraE, state: &Embedding, triples: &[Triple], drawn: &[usize], training: &[Triple]) -> Gradient {
    let (entities, n) = (state.entities.nrows(), model.space.dim());
    let weights = Counts::new(training, entities).weights(triples.len(), drawn.len());
    let batch = Batch::new(triples.to_vec(), drawn, &weights, &model.points(state));
    let pass = model.pass(state, &batch.matrices(state), &batch, &Threads::serial());
    let mut out = Gradient {
        loss: pass.loss,
        entities: Array2::zeros((entities, n)),
        biases: Array2::zeros((entities, 2)),
        relations: vec![Array2::zeros((n, n)); state.relations.len()],
    };
    for (k, &e) in batch.candidates.iter().enumerate() {
        let mut row = pass.entities.row(k).to_vec();
        model.pull_back(&state.entities.slice(s![e, ..n]).to_vec(), &mut row[..n]);
        let row = ArrayView1::from(&row);
        out.entities.row_mut(e).assign(&row.slice(s![..n]));
        out.biases.row_mut(e).assign(&row.slice(s![n..]));
    }
    for (r, range) in &batch.relations {
        out.relations[*r] = batch.relation_gradient(range, &pass.images, model.space.signs());
    }
    out
}

fn options(loss: Loss) -> TrainOptions {
    TrainOptions {
        margin: 1.0,
        batch_size: 24,
        negatives: 7,
        loss,
        learning_rate: 0.03,
        rate_decay: 0.5,
        moment_decay: 0.6,
        weight_decay: 4.0,
        update: RelationUpdate::Frozen,
        seed: 3,
    }
}

/// A model of 12 entities and 2 relations, with a state, and i → i + 1 and i → −i in a cycle.
fn trained(options: TrainOptions) -> (UltraE, Embedding, Vec<Triple>) {
    let signature = Signature::new(&[1, -1, 1, 1, -1, 1]).unwrap();
    let mut state = Embedding::random(12, 2, &signature, 0.8, (0.0, options.update), 2);
    for (k, relation) in state.relations.iter_mut().enumerate() {
        relation.matrix = random_j_orthogonal(&signature, 0.4, k as u64).unwrap();
    }
    let triples = (0..12).flat_map(|i| [[i, 0, (i + 1) % 12], [i, 1, (12 - i) % 12]]).collect();
    (UltraE::new(&signature, 0.9, options).unwrap(), state, triples)
}

#[test]
fn gradients_are_those_of_the_loss() {
    for loss in [Loss::Logistic, Loss::Softmax] {
        let (model, state, training) = trained(options(loss));
        let of = |state: &Embedding| gradient(&model, state, &training[..9], &[10, 3, 11, 7], &training);
        let found = of(&state);
        let close = |change: &dyn Fn(&mut Embedding, f64), slope: f64| {
            let at = |h: f64| {
                let mut moved = state.clone();
                change(&mut moved, h);
                of(&moved).loss
            };
            let difference = (at(1e-6) - at(-1e-6)) / 2e-6;
            assert!((difference - slope).abs() <= 1e-6 * slope.abs().max(1e-2), "{difference} {slope}");
        };
        let direction = start::random(12, 6, 4);
        let along = |columns: Range<usize>, direction: &Array2<f64>| {
            let (columns, direction) = (columns, direction.clone());
            move |state: &mut Embedding, h: f64| {
                state.entities.slice_mut(s![.., columns.clone()]).scaled_add(h, &direction);
            }
        };
        close(&along(0..6, &direction), (&found.entities * &direction).sum());
        let biases = start::random(12, 2, 5);
        close(&along(18..20, &biases), (&found.biases * &biases).sum());
        let turn = start::random(6, 6, 6);
        for r in 0..2 {
            let change = |state: &mut Embedding, h: f64| state.relations[r].matrix.scaled_add(h, &turn);
            close(&change, (&found.relations[r] * &turn).sum());
        }
    }
}

/// log(1 + eˣ).
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

#[test]
fn the_loss_is_that_of_the_scores() {
    for loss in [Loss::Logistic, Loss::Softmax] {
        let (model, state, training) = trained(options(loss));
        let (triples, drawn) = (&training[..5], [10, 3, 11, 7]);
        let weights = Counts::new(&training, 12).weights(triples.len(), drawn.len());
        let held = |e: &usize| drawn.contains(e) || triples.iter().any(|t| t[0] == *e || t[2] == *e);
        let mut total = 0.0;
        for triple in triples {
            for place in [0, 2] {
                let others: Vec<Triple> = (0..12)
                    .map(|e| {
                        let mut other = *triple;
                        other[place] = e;
                        other
                    })
                    .collect();
                let scores = model.scores(&state, &others, &Threads::serial(), &|| true).unwrap().unwrap();
                let weight = |e: usize| if e == triple[0] || e == triple[2] { 1.0 } else { weights[e] };
                let of_true = scores[triple[place]];
                let sum = |term: &dyn Fn(usize) -> f64| (0..12).filter(held).map(term).sum::<f64>();
                total += match loss {
                    Loss::Softmax => sum(&|e| weight(e) * scores[e].exp()).ln() - of_true,
                    Loss::Logistic => {
                        let rest = sum(&|e| weight(e) * softplus(scores[e])) - softplus(of_true);
                        0.5 * softplus(-of_true) + 7.0 / 24.0 * rest
                    }
                };
            }
        }
        let found = gradient(&model, &state, triples, &drawn, &training).loss;
        assert!((found - total / 5.0).abs() <= 1e-12 * found, "{found} {}", total / 5.0);
    }
}

/// An epoch is one batch of all triples and all entities, without random draws.
#[test]
fn steps_are_those_of_adam_with_decoupled_decay() {
    let (model, mut state, triples) = trained(TrainOptions { negatives: 12, ..options(Loss::Logistic) });
    let all: Vec<usize> = (0..12).collect();
    let columns: Vec<usize> = (0..6).chain([18, 19]).collect();
    let mut wanted = state.clone();
    let (mut first, mut second) = (Array2::<f64>::zeros((12, 8)), Array2::<f64>::zeros((12, 8)));
    for epoch in 0..3u32 {
        let found = gradient(&model, &wanted, &triples, &all, &triples);
        let slopes = ndarray::concatenate![Axis(1), found.entities, found.biases];
        first = first * 0.9 + &slopes * 0.1;
        second = second * 0.6 + &slopes * &slopes * 0.4;
        let (powers, rate) =
            ([0.9f64, 0.6].map(|beta| 1.0 - beta.powi(epoch as i32 + 1)), 0.03 * 0.5f64.powi(epoch as i32));
        for ((i, k), m) in first.indexed_iter() {
            let at = &mut wanted.entities[[i, columns[k]]];
            *at -= rate * (m / powers[0]) / ((second[[i, k]] / powers[1]).sqrt() + 1e-8);
            if k >= 6 || model.signature.sign(k) > 0.0 {
                *at *= 1.0 - 4.0 * rate;
            }
        }
        model.epoch(&mut state, &triples, u64::from(epoch), &Threads::serial(), &mut Unwatched).unwrap();
        for &k in &columns {
            let gap = &state.entities.column(k) - &wanted.entities.column(k);
            assert!(gap.iter().all(|v| v.abs() <= 1e-9), "{epoch} {k}: {gap}");
        }
    }
}
