//! One J-orthogonal matrix per relation, updated by gradients.
//!
//! J-JOBCD moves the rows of R by one random perfect matching per gradient, every pair to the global minimum
//! of `⟨E, G_B Zᵀ⟩ + L/2‖E Z‖²` with the accumulated curvature `L = κ√Σ_t‖G_t‖²` (the documentation compares
//! it with a constant L). Alternatively every pair has a curvature of its own, from the slopes along its
//! rotation or boost (Adagrad, in the coordinates of the Lie algebra). A pair then costs O(n), and a steep
//! pair does not slow down the others. VR-J-JOBCD puts the estimate of PAGE (Li, Bao, Zhang and Richtárik,
//! ICML 2021) in place of G: `D_t = G(R_t) + D_{t−1} − G(R_{t−1})`, both gradients of the same batch, and with
//! probability b′/(N + b′) the gradient of all N training triples, b′ the size of a batch. That gradient is out
//! of date as soon as the entities move. As a control R stays at its start.

use ndarray::{Array1, Array2, ArrayView2, s};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::block::PairOptions;
use crate::internal::{Majoriser, Matchings, RAPIDITY_BOUND, SlopePairs, cayley, tournament};
use crate::penalty::Penalty;
use crate::{Error, Result, Signature, Threads, project_dense};

/// Update of the relation matrices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RelationUpdate {
    /// No update.
    Frozen,
    /// J-JOBCD.
    Jobcd {
        /// κ of the curvature κ√Σ‖G‖².
        curvature: f64,
        /// Disjoint matchings per gradient, one after the other.
        matchings: usize,
    },
    /// J-JOBCD, every pair with a curvature of its own, from the slopes along its rotation or boost.
    PairJobcd {
        /// First angle or rapidity of a pair.
        step: f64,
        /// Disjoint matchings per gradient.
        matchings: usize,
    },
    /// J-JOBCD along the estimate of PAGE, which restarts from the gradient of all training triples.
    PageJobcd {
        /// κ of the curvature κ√Σ‖D‖².
        curvature: f64,
        /// Disjoint matchings per gradient, one after the other.
        matchings: usize,
    },
}

/// Matrix of one relation, and the memory of its update.
#[derive(Debug, Clone, PartialEq)]
pub struct Relation {
    /// R, J-orthogonal.
    pub matrix: Array2<f64>,
    /// J-JOBCD: Σ‖G‖², one number; with PAGE the last point and the last D follow. With a curvature per pair:
    /// the sum of squares of the slopes along each pair, n² numbers.
    pub memory: Array1<f64>,
}

impl Relation {
    /// Returns R = I with the first memory of its update.
    pub fn identity(signature: &Signature, update: RelationUpdate) -> Self {
        Self::at(Array2::eye(signature.len()), signature, update)
    }

    /// Returns R = `matrix` with the first memory of its update.
    fn at(matrix: Array2<f64>, signature: &Signature, update: RelationUpdate) -> Self {
        let mut memory = Array1::zeros(Self::memory_length(signature, update));
        if matches!(update, RelationUpdate::PageJobcd { .. }) {
            memory.slice_mut(s![1..=matrix.len()]).assign(&matrix.flatten());
        }
        Self { matrix, memory }
    }

    /// Returns a random rotation R of the rows of either sign: the Cayley transforms of skew matrices of
    /// normal entries, whose eigenvalues have the root mean square `angle`.
    pub(super) fn random(
        signature: &Signature,
        update: RelationUpdate,
        angle: f64,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Self {
        let (p, q) = signature.counts();
        let order = signature.order();
        let mut matrix = Array2::zeros((p + q, p + q));
        for own in [&order[..p], &order[p..]] {
            let n = own.len();
            let scale = angle / (n.max(2) as f64 - 1.0).sqrt();
            let mut skew = Array2::zeros((n, n));
            for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))) {
                let normal: f64 = StandardNormal.sample(rng);
                skew[[i, j]] = scale * normal;
                skew[[j, i]] = -scale * normal;
            }
            for ((i, j), &entry) in cayley(skew.view()).indexed_iter() {
                matrix[[own[i], own[j]]] = entry;
            }
        }
        Self::at(matrix, signature, update)
    }

    /// Returns the length of the memory that an update needs.
    pub fn memory_length(signature: &Signature, update: RelationUpdate) -> usize {
        let square = signature.len() * signature.len();
        match update {
            RelationUpdate::Frozen => 0,
            RelationUpdate::Jobcd { .. } => 1,
            RelationUpdate::PairJobcd { .. } => square,
            RelationUpdate::PageJobcd { .. } => 1 + 2 * square,
        }
    }

    /// Returns R before the last step, at which PAGE needs the gradient too.
    pub(crate) fn previous(&self) -> ArrayView2<'_, f64> {
        let n = self.matrix.nrows();
        let last = self.memory.slice(s![1..=n * n]);
        last.into_shape_with_order((n, n)).expect("n² numbers")
    }

    /// Returns whether the recursion of PAGE has yet to begin.
    pub(crate) fn is_fresh(&self) -> bool {
        self.memory[0] == 0.0
    }

    /// Does one step against the gradient, with the rows of R matched as in `order`. `before` is the gradient
    /// at the previous point, for PAGE; without it the recursion restarts.
    pub(crate) fn step(
        &mut self,
        gradient: &Array2<f64>,
        before: Option<&Array2<f64>>,
        signature: &Signature,
        update: RelationUpdate,
        order: &[usize],
    ) {
        match update {
            RelationUpdate::Frozen => {}
            RelationUpdate::Jobcd { curvature, matchings } => {
                self.turn(gradient, signature, curvature, (order, matchings))
            }
            RelationUpdate::PairJobcd { step, matchings } => {
                self.turn_pairs(gradient, signature, step, (order, matchings));
            }
            RelationUpdate::PageJobcd { curvature, matchings } => {
                let estimate = self.estimate(gradient, before);
                self.turn(&estimate, signature, curvature, (order, matchings));
            }
        }
    }

    /// Returns D_t = G + D_{t−1} − G_before, or G without `before`; stores D_t and R.
    fn estimate(&mut self, gradient: &Array2<f64>, before: Option<&Array2<f64>>) -> Array2<f64> {
        let squares = gradient.len();
        let (last, old) = (1..=squares, 1 + squares..);
        let mut estimate = gradient.clone();
        if let Some(before) = before {
            let rest = estimate.iter_mut().zip(before);
            for ((d, &g), &old) in rest.zip(self.memory.slice(s![old.clone()])) {
                *d += old - g;
            }
        }
        self.memory.slice_mut(s![last]).assign(&self.matrix.flatten());
        self.memory.slice_mut(s![old]).assign(&estimate.flatten());
        estimate
    }

    /// Moves R by matchings of a tournament on the majoriser of curvature κ√Σ‖G‖².
    fn turn(
        &mut self,
        gradient: &Array2<f64>,
        signature: &Signature,
        curvature: f64,
        (order, matchings): (&[usize], usize),
    ) {
        self.memory[0] += gradient.iter().map(|g| g * g).sum::<f64>();
        let bound = curvature * self.memory[0].sqrt();
        if !(bound > 0.0) {
            return;
        }
        let anchor = self.matrix.clone();
        let model = Majoriser::new(anchor.view(), gradient.view(), bound);
        let mut work = Matchings::new(anchor.dim(), signature, Some(RAPIDITY_BOUND));
        for round in 0..matchings.min(tournament::rounds(order.len())) {
            let pairs = tournament::matching(order, round);
            let (x, exact) = (self.matrix.view(), PairOptions::default());
            work.solve(x, &pairs, &model, &Penalty::NONE, exact, &Threads::serial());
            work.write(&mut self.matrix);
        }
    }

    /// Moves R by matchings of a tournament on the slopes K_ij at the first R. The pair (i, j) minimises
    /// `K_ij t + √(Σ K_ij²)/(4·step) ‖V − I‖²`, t the angle or rapidity, the sum over its own visits so far.
    fn turn_pairs(
        &mut self,
        gradient: &Array2<f64>,
        signature: &Signature,
        step: f64,
        (order, matchings): (&[usize], usize),
    ) {
        let n = order.len();
        let start = self.matrix.clone();
        let moves = SlopePairs::new(signature, RAPIDITY_BOUND);
        for round in 0..matchings.min(tournament::rounds(n)) {
            for [i, j] in tournament::matching(order, round) {
                let sign = signature.sign(i) * signature.sign(j);
                let slope = gradient.row(i).dot(&start.row(j)) - sign * gradient.row(j).dot(&start.row(i));
                let sum = &mut self.memory[i * n + j];
                *sum += slope * slope;
                if *sum > 0.0 {
                    let weight = sum.sqrt() / (2.0 * step);
                    moves.turn(&mut self.matrix, [i, j], slope, weight);
                }
            }
        }
    }

    /// Removes the drift of RᵀJR.
    pub(crate) fn repair(&mut self, signature: &Signature) {
        let k = signature.matrix();
        self.matrix = project_dense(&self.matrix, signature, k.view());
    }
}

/// Checks the options of an update.
pub(crate) fn check_update(update: RelationUpdate) -> Result<()> {
    let (name, value) = match update {
        RelationUpdate::Frozen => return Ok(()),
        RelationUpdate::Jobcd { curvature, .. } | RelationUpdate::PageJobcd { curvature, .. } => {
            ("relation_curvature", curvature)
        }
        RelationUpdate::PairJobcd { step, .. } => ("relation_step", step),
    };
    if value.is_finite() && value > 0.0 {
        return Ok(());
    }
    Err(Error::invalid(name, format!("must be positive, got {value}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;
    use rand::SeedableRng;

    /// Returns R after steps along these gradients, all pairs each time.
    fn moved(gradients: &[Array2<f64>], step: f64) -> Relation {
        let signature = Signature::new(&[1, -1, 1]).unwrap();
        let update = RelationUpdate::PairJobcd { step, matchings: 9 };
        let mut relation = Relation::identity(&signature, update);
        for gradient in gradients {
            relation.step(gradient, None, &signature, update, &[2, 0, 1]);
        }
        relation
    }

    #[test]
    fn a_first_angle_is_the_step_and_the_scale_of_the_gradient_does_not_matter() {
        let mut rotation = Array2::zeros((3, 3));
        rotation[[0, 2]] = -3.0;
        let r = moved(&[rotation], 0.25).matrix;
        // The slope is that of a rotation by θ, and tan θ is the minimiser.
        assert!((r[[0, 2]] / r[[0, 0]] - 0.25).abs() < 1e-12, "{r}");
        let mut boost = Array2::zeros((3, 3));
        boost[[1, 2]] = 5.0;
        let r = moved(&[boost], 0.01).matrix;
        assert!((r[[1, 2]] / r[[1, 1]] + 0.01).abs() < 1e-4, "{r}");

        let gradients = [
            array![[1.0, 2.0, -1.0], [0.5, 0.0, 4.0], [-2.0, 1.0, 3.0]],
            array![[0.0, -1.0, 1.0], [2.5, 1.0, 0.0], [1.0, 0.0, -3.0]],
        ];
        let once = moved(&gradients, 0.1);
        let scaled = moved(&gradients.map(|g| g * 1024.0), 0.1);
        assert_eq!(once.matrix, scaled.matrix);
        let j = Array2::from_diag(&array![1.0, -1.0, 1.0]);
        let gap = once.matrix.t().dot(&j).dot(&once.matrix) - &j;
        assert!(gap.iter().all(|v| v.abs() < 1e-14), "{gap}");
    }

    #[test]
    fn a_random_start_is_a_rotation_that_every_update_goes_on_from() {
        let signature = Signature::new(&[1, -1, 1, -1, 1]).unwrap();
        let j = signature.matrix();
        for update in [
            RelationUpdate::PairJobcd { step: 0.1, matchings: 9 },
            RelationUpdate::PageJobcd { curvature: 0.3, matchings: 9 },
        ] {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
            let start = Relation::random(&signature, update, 1.0, &mut rng);
            let (r, close) = (&start.matrix, |a: Array2<f64>, b: &Array2<f64>| (a - b).iter().all(|v| v.abs() < 1e-14));
            assert!(close(r.t().dot(r), &Array2::eye(5)));
            assert!(close(r.t().dot(&j).dot(r), &j));
            assert_ne!(*r, Relation::random(&signature, update, 1.0, &mut rng).matrix);
            let still = Relation::random(&signature, update, 0.0, &mut rng);
            assert_eq!(still, Relation::identity(&signature, update));
            let mut moved = start.clone();
            let flat = Array2::zeros((5, 5));
            moved.step(&flat, Some(&flat), &signature, update, &[2, 0, 1, 4, 3]);
            assert!(close(moved.matrix, r), "{update:?}");
            if let RelationUpdate::PageJobcd { .. } = update {
                assert_eq!(start.previous(), *r);
            }
        }
    }

    /// D = G where the recursion begins, then D_t = G(R_t) + D_{t−1} − G(R_{t−1}).
    #[test]
    fn the_estimate_follows_its_recursion() {
        let signature = Signature::new(&[1, -1, 1]).unwrap();
        let gradients = [1.0, -2.0, 5.0].map(|v| Array2::from_elem((3, 3), v));
        let [full, now, before] = &gradients;
        let update = RelationUpdate::PageJobcd { curvature: 0.3, matchings: 1 };
        let mut relation = Relation::identity(&signature, update);
        let kept = |relation: &Relation| relation.memory[1 + 9];
        assert!(relation.is_fresh());
        relation.step(full, None, &signature, update, &[2, 0, 1]);
        assert_eq!((kept(&relation), relation.is_fresh()), (1.0, false));
        relation.step(now, Some(before), &signature, update, &[0, 1, 2]);
        assert_eq!(kept(&relation), -2.0 + (1.0 - 5.0));
        relation.step(full, None, &signature, update, &[2, 0, 1]);
        assert_eq!(kept(&relation), 1.0);
    }

    #[test]
    fn the_curvature_of_a_pair_is_that_of_its_own_slopes() {
        let entry = |at: [usize; 2], value: f64| {
            let mut gradient = Array2::zeros((3, 3));
            gradient[at] = value;
            gradient
        };
        // A steep pair does not slow another one down.
        let alone = moved(&[entry([0, 1], 1.0)], 0.1).memory;
        let both = moved(&[entry([0, 2], 100.0), entry([0, 1], 1.0)], 0.1).memory;
        assert_eq!(alone[1], 1.0);
        assert!(both[2] >= 1e4 && both[1] < 2.0, "{both}");
    }
}
