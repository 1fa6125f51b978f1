//! How an array is stored is no part of its value: Fortran order, gaps and reversed axes give the same bits.

use ndarray::{Array1, Array2, Axis, s};
use orthobcd::penalty::Penalty;
use orthobcd::ultrahyperbolic::{
    Embedding, Loss, Pseudohyperboloid, RelationUpdate, StructuralProbe, Targets, TrainOptions, UltraE,
};
use orthobcd::{
    Auto, Data, DenseColumns, GramQuadratic, Objective, Options, Problem, Quadratic, Signature, SparseColumns, Threads,
    Unwatched, Update, WorkingSet, certify, minimize, minimize_auto, start,
};

/// The same matrix in other layouts: by columns, both axes reversed, every second entry of a larger one.
fn layouts(a: &Array2<f64>) -> Vec<Array2<f64>> {
    let (m, n) = a.dim();
    let fortran = a.t().as_standard_layout().into_owned().reversed_axes();
    let mut reversed = a.slice(s![..;-1, ..;-1]).as_standard_layout().into_owned();
    reversed.invert_axis(Axis(0));
    reversed.invert_axis(Axis(1));
    let mut gaps = Array2::from_elem((2 * m, 2 * n), f64::NAN);
    gaps.slice_mut(s![..;2, ..;2]).assign(a);
    let gaps = gaps.slice_move(s![..;2, ..;2]);
    let all = vec![fortran, reversed, gaps];
    for other in &all {
        assert_eq!(other, a);
        assert!(!other.is_standard_layout());
    }
    all
}

fn symmetric(n: usize, seed: u64) -> Array2<f64> {
    let a = start::random(n, n, seed) * 3.0;
    &a + &a.t()
}

fn csc(a: &Array2<f64>) -> SparseColumns {
    let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for column in a.columns() {
        for (i, &v) in column.iter().enumerate().filter(|(_, v)| v.abs() > 0.1) {
            indices.push(i as u32);
            values.push(v);
        }
        starts.push(values.len());
    }
    SparseColumns::new(a.nrows(), starts, indices, values).unwrap()
}

/// Where every update ends from x0, what the default solver finds, and what the certificate says.
fn answers(smooth: &dyn Objective, penalty: &Penalty, x0: &Array2<f64>) -> Vec<Array2<f64>> {
    let signature = Signature::stiefel(x0.nrows());
    let problem = Problem::new(smooth, penalty, &signature, x0.ncols()).unwrap();
    let threads = Threads::serial();
    let mut out = Vec::new();
    for (update, working_set) in [
        (Update::GaussSeidel, WorkingSet::Tiled),
        (Update::GaussSeidel, WorkingSet::Cyclic),
        (Update::Jacobi, WorkingSet::Random),
    ] {
        let options = Options::default().with_update(update).with_working_set(working_set).with_max_sweeps(5);
        let solution = minimize(&problem, x0.clone(), &options, &threads, &mut Unwatched).unwrap();
        let certificate = certify(&problem, x0.view(), &threads).unwrap();
        out.push(Array2::from_elem((1, 3), solution.objective + certificate.block2_gap + certificate.criticality));
        out.push(solution.x);
    }
    let auto = Auto::default().with_options(Options::default().with_max_sweeps(10));
    let best = minimize_auto(&problem, Some(x0.clone()), &auto, &threads, &mut Unwatched).unwrap();
    out.push(best.solution.x);
    out
}

#[test]
fn quadratics_weights_and_starts() {
    let (n, r) = (12, 3);
    let (c, linear, metric) = (symmetric(n, 1), start::random(n, r, 2), symmetric(r, 3));
    let (weights, x0) = (start::random(n, r, 4).mapv(f64::abs), start::random(n, r, 5));
    let run = |c: &Array2<f64>, l: &Array2<f64>, d: &Array2<f64>, w: &Array2<f64>, x0| {
        let smooth = Quadratic::new(c.clone(), Some(l.clone()), Some(d.clone())).unwrap();
        answers(&smooth, &Penalty::l1(w.clone()), x0)
    };
    let expected = run(&c, &linear, &metric, &weights, &x0);
    let others = [&c, &linear, &metric, &weights, &x0].map(layouts);
    for k in 0..others[0].len() {
        let [c, l, d, w, x0] = others.each_ref().map(|all| &all[k]);
        assert_eq!(run(c, l, d, w, x0), expected);
    }
}

#[test]
fn data_and_means() {
    let (m, n, r) = (9, 11, 2);
    let a = start::random(n, m, 1).reversed_axes() * 4.0;
    let a = a.as_standard_layout().into_owned();
    let mean = a.mean_axis(Axis(0)).unwrap();
    let mut reversed = mean.slice(s![..;-1]).to_owned();
    reversed.invert_axis(Axis(0));
    let x0 = start::random(n, r, 5);
    fn run(data: impl Data, mean: &Array1<f64>, x0: &Array2<f64>) -> Vec<Array2<f64>> {
        let smooth = GramQuadratic::new(data, -1.0, Some(mean.clone())).unwrap();
        answers(&smooth, &Penalty::NONE, x0)
    }
    let dense = run(DenseColumns::new(a.view()).unwrap(), &mean, &x0);
    let stored = run(DenseColumns::from_transposed(a.t().to_owned()).unwrap(), &mean, &x0);
    let sparse = run(csc(&a), &mean, &x0);
    assert_eq!(stored, dense);
    let cut = ndarray::concatenate![Axis(0), a.t(), a.t()].slice_move(s![n.., ..]);
    assert_eq!(run(DenseColumns::from_transposed(cut).unwrap(), &mean, &x0), dense);
    for (a, x0) in layouts(&a).iter().zip(&layouts(&x0)) {
        assert_eq!(run(DenseColumns::new(a.view()).unwrap(), &reversed, x0), dense);
        assert_eq!(run(csc(a), &reversed, x0), sparse);
    }
}

#[test]
fn the_pseudo_hyperboloid() {
    let n = 5;
    let signature = Signature::new(&[1, -1, 1, 1, -1]).unwrap();
    let space = Pseudohyperboloid::new(&signature, 0.9).unwrap();
    let (d, g) = (symmetric(n, 1), symmetric(n, 2));
    let x = &Array2::eye(n) + &(0.1 * symmetric(n, 3));
    let probe = |d: &Array2<f64>| {
        let (targets, threads) = (Targets::Euclidean, Threads::serial());
        StructuralProbe::new(d.clone(), targets, space.clone(), 0.5, threads).unwrap()
    };
    let run = |d: &Array2<f64>, g: &Array2<f64>, x: &Array2<f64>| {
        let mut gradient = Array2::zeros(x.dim());
        let value = probe(d).value_and_gradient(x.view(), gradient.view_mut(), &Threads::serial());
        (
            space.double_projection(d.view()).unwrap(),
            space.double_projection_gradient(d.view(), g.view()).unwrap(),
            value,
            gradient,
        )
    };
    let expected = run(&d, &g, &x);
    for ((d, g), x) in layouts(&d).iter().zip(&layouts(&g)).zip(&layouts(&x)) {
        assert_eq!(run(d, g, x), expected);
    }
}

#[test]
fn embeddings() {
    let signature = Signature::new(&[1, -1, 1, 1, -1]).unwrap();
    let triples: Vec<[usize; 3]> = (0..10).map(|i| [i, i % 2, (i + 1) % 10]).collect();
    let jobcd = RelationUpdate::Jobcd { curvature: 1.0, matchings: 2 };
    for update in [jobcd, RelationUpdate::PairJobcd { step: 0.1, matchings: 2 }] {
        let options = TrainOptions {
            margin: 1.0,
            batch_size: 4,
            negatives: 5,
            loss: Loss::Softmax,
            learning_rate: 0.05,
            rate_decay: 1.0,
            moment_decay: 0.999,
            weight_decay: 0.0,
            update,
            seed: 3,
        };
        let model = UltraE::new(&signature, 0.9, options).unwrap();
        let threads = Threads::serial();
        let run = |mut state: Embedding| {
            let mut numbers = Vec::new();
            for epoch in 0..2 {
                let loss = model.epoch(&mut state, &triples, epoch, &threads, &mut Unwatched);
                numbers.extend(loss.unwrap());
            }
            numbers.extend(model.scores(&state, &triples, &threads, &|| true).unwrap().unwrap());
            numbers.extend(state.relations.iter().flat_map(|r| r.matrix.clone()));
            numbers.extend(state.entities);
            numbers
        };
        let given = Embedding::random(10, 2, &signature, 0.5, (1.0, update), 1);
        let expected = run(given.clone());
        for entities in layouts(&given.entities) {
            let relations = given.relations.clone();
            assert_eq!(run(Embedding { entities, relations }), expected, "{update:?}");
        }
    }
}
