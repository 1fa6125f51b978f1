//! Moves between vertices, where r(r − 1)/2 entries of VR vanish, as in the simplex method.
//!
//! A move costs two LU decompositions of order r(r − 1)/2 and three products of n × r with r × r.

use ndarray::{Array2, ArrayView2};

use super::{Entry, Search, Turned, lower, sum_of_magnitudes};
use crate::internal::numerics;
use crate::internal::{Lu, polar, product};
use crate::linalg;

/// Largest number of Newton steps to a vertex.
const NEWTON: usize = 12;

/// Largest number of moves between vertices.
const MOVES: usize = 500;

/// Ratio of the lengths of consecutive Newton steps above which the equations are decomposed again.
const SLOW: f64 = 0.1;

/// Largest number r(r − 1)/2 of entries that vanish at a vertex: the order of the equations of a move.
pub(super) const LARGEST: usize = 400;

/// A multiplier may exceed 1 by this much at a local minimum.
const SLACK: f64 = 1e-9;

/// Number of kinks that are sorted at once.
const SORTED: usize = 16;

/// Point where r(r − 1)/2 entries vanish, these entries, and the equations of the directions there.
struct Vertex {
    point: Turned,
    zeros: Vec<Entry>,
    equations: Lu,
}

/// Direction from a vertex in which one zero is given up and the others stay.
struct Edge {
    given_up: usize,
    skew: Array2<f64>,
    /// Kinks in no particular order.
    kinks: Vec<Kink>,
}

/// Point of an edge where an entry vanishes: the slope of the ℓ1 norm rises by `rise`.
#[derive(Clone, Copy, Default)]
struct Kink {
    length: f64,
    rise: f64,
    /// Position of the entry in the rows of X, one after the other.
    place: usize,
}

impl Kink {
    /// Returns the entry of X with r columns.
    fn entry(self, r: usize) -> Entry {
        (self.place / r, self.place % r)
    }
}

/// Returns the position of the columns p < q among the pairs of r columns.
fn pair_index(p: usize, q: usize, r: usize) -> usize {
    p * (2 * r - p - 1) / 2 + q - p - 1
}

/// Returns the rates of the entries `at` of X for each pair of columns: turning columns p and q by ω changes
/// column q by ω x_p and column p by −ω x_q. `row` returns a row of X.
fn slopes(r: usize, at: &[Entry], row: impl Fn(usize, usize) -> f64) -> Array2<f64> {
    let mut slopes = Array2::zeros((at.len(), r * (r - 1) / 2));
    for (equation, &(i, j)) in at.iter().enumerate() {
        for k in 0..j {
            slopes[[equation, pair_index(k, j, r)]] = row(i, k);
        }
        for k in j + 1..r {
            slopes[[equation, pair_index(j, k, r)]] = -row(i, k);
        }
    }
    slopes
}

/// Returns the skew-symmetric matrix of the angles of all pairs of columns.
fn skew_of(angles: &[f64], r: usize) -> Array2<f64> {
    let mut skew = Array2::zeros((r, r));
    let mut angles = angles.iter();
    for p in 0..r {
        for (q, &angle) in (p + 1..r).zip(&mut angles) {
            (skew[[p, q]], skew[[q, p]]) = (angle, -angle);
        }
    }
    skew
}

/// Returns the Euclidean norm.
fn length(x: &[f64]) -> f64 {
    linalg::dot(x, x).sqrt()
}

fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

/// Returns the first kink, in the order of their lengths, at which a slope is not negative any more.
fn turning(mut kinks: &mut [Kink], mut slope: f64) -> Option<Kink> {
    let by_length = |a: &Kink, b: &Kink| a.length.total_cmp(&b.length);
    while kinks.len() > SORTED {
        let half = kinks.len() / 2;
        kinks.select_nth_unstable_by(half, by_length);
        let (near, far) = kinks.split_at_mut(half);
        let rise: f64 = near.iter().map(|kink| kink.rise).sum();
        if slope + rise >= 0.0 {
            kinks = near;
        } else {
            slope += rise;
            kinks = far;
        }
    }
    kinks.sort_unstable_by(by_length);
    kinks.iter().copied().find(|kink| {
        slope += kink.rise;
        slope >= 0.0
    })
}

impl Edge {
    fn first(&self) -> Option<Kink> {
        let kinks = self.kinks.iter().copied();
        kinks.min_by(|a, b| a.length.total_cmp(&b.length))
    }
}

impl Search<'_> {
    /// Returns the end of moves from vertex to vertex of lower ℓ1 norm, from the vertex nearest to `point`;
    /// or `point` if that is lower.
    pub(super) fn over_vertices(&self, point: Turned) -> Turned {
        match self.nearest(&point) {
            Some(vertex) => {
                let rotation = self.downhill(vertex).point.rotation;
                lower(point, Turned::new(self.v, rotation, self.criterion))
            }
            None => point,
        }
    }

    /// Returns the vertex nearest to `point`: the r(r − 1)/2 entries vanish that are smallest relative to the
    /// norms of their rows. These zeros determine the rotation.
    fn nearest(&self, point: &Turned) -> Option<Vertex> {
        let (n, r) = point.x.dim();
        let count = r * (r - 1) / 2;
        if count == 0 || count > LARGEST {
            return None;
        }
        let floor = numerics::CONVERGED * self.size;
        let mut zeros: Vec<(f64, Entry)> = (0..n)
            .filter(|&i| self.norms[i] > floor)
            .flat_map(|i| (0..r).map(move |k| (point.x[[i, k]].abs() / self.norms[i], (i, k))))
            .collect();
        if count < zeros.len() {
            zeros.select_nth_unstable_by(count - 1, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            zeros.truncate(count);
            zeros.sort_unstable_by_key(|zero| zero.1);
        }
        let zeros = zeros.into_iter().map(|(_, entry)| entry).collect();
        self.vertex(point.rotation.clone(), zeros)
    }

    /// Returns the end of moves to neighbours of lower ℓ1 norm.
    fn downhill(&self, mut here: Vertex) -> Vertex {
        for _ in 0..MOVES {
            if !(self.go_on)() {
                break;
            }
            match self.neighbour(&here) {
                Some(next) => here = next,
                None => break,
            }
        }
        here
    }

    /// Returns a vertex of lower ℓ1 norm beside `here`; None at a local minimum.
    ///
    /// A vertex is a local minimum if multipliers λ in [−1, 1] of its zeros make the gradient vanish.
    /// Otherwise a zero with |λ| > 1 is given up, and the entry that stops the descent along the edge becomes
    /// zero instead, as in the simplex method.
    fn neighbour(&self, here: &Vertex) -> Option<Vertex> {
        let x = &here.point.x;
        let r = x.ncols();
        let along = product(x.t(), x.mapv(sign).view());
        let mut multipliers: Vec<f64> =
            (0..r).flat_map(|p| (p + 1..r).map(move |q| (p, q))).map(|(p, q)| along[[q, p]] - along[[p, q]]).collect();
        here.equations.solve_transposed(&mut multipliers);
        let largest = multipliers.iter().enumerate().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
        let (given_up, &multiplier) = largest?;
        if !(multiplier.abs() > 1.0 + SLACK) {
            return None;
        }
        let mut edge = self.edge(here, given_up, multiplier.signum());
        let last = turning(&mut edge.kinks, 1.0 - multiplier.abs())?;
        // Edges are curved: if the kink at the minimum of the tangent fails, the first one may succeed.
        let better = |kink| {
            let next = self.along(here, &edge, kink)?;
            (next.point.value < here.point.value * (1.0 - f64::EPSILON)).then_some(next)
        };
        better(last).or_else(|| better(edge.first()?))
    }

    /// Returns the edge along which the zero `given_up` gets the sign `way`.
    fn edge(&self, here: &Vertex, given_up: usize, way: f64) -> Edge {
        let x = &here.point.x;
        let r = x.ncols();
        let mut angles = vec![0.0; here.zeros.len()];
        angles[given_up] = way;
        here.equations.solve(&mut angles);
        let skew = skew_of(&angles, r);
        let change = product(x.view(), skew.view());
        // Without branches: half of the entries move away from zero.
        let mut kinks = vec![Kink::default(); x.len() + 1];
        let mut count = 0;
        for (place, (&x, &change)) in x.iter().zip(&change).enumerate() {
            let length = -x / change;
            let rise = 2.0 * change.abs();
            kinks[count] = Kink { length, rise, place };
            count += usize::from(length > 0.0 && length.is_finite());
        }
        kinks.truncate(count);
        Edge { given_up, skew, kinks }
    }

    /// Returns the vertex at a kink of an edge.
    fn along(&self, here: &Vertex, edge: &Edge, kink: Kink) -> Option<Vertex> {
        let mut zeros = here.zeros.clone();
        zeros[edge.given_up] = kink.entry(self.v.ncols());
        let turn = linalg::cayley((&edge.skew * kink.length).view());
        self.vertex(product(here.point.rotation.view(), turn.view()), zeros)
    }

    /// Returns the vertex next to the given rotation where these entries vanish, by Newton's method. Its
    /// equations are kept as long as the steps shrink fast.
    fn vertex(&self, mut rotation: Array2<f64>, zeros: Vec<Entry>) -> Option<Vertex> {
        let r = rotation.nrows();
        if zeros.len() < r * (r - 1) / 2 {
            return None;
        }
        let mut equations = self.equations(&rotation, &zeros);
        let mut before = f64::INFINITY;
        for _ in 0..NEWTON {
            let mut angles = self.angles(&equations, &rotation, &zeros);
            if length(&angles) > SLOW * before {
                equations = self.equations(&rotation, &zeros);
                angles = self.angles(&equations, &rotation, &zeros);
            }
            let size = length(&angles);
            if !(size <= 1.0) {
                return None;
            }
            before = size;
            if size <= f64::EPSILON * (r * r) as f64 {
                let mut x = product(self.v.view(), rotation.view());
                zeros.iter().for_each(|&at| x[at] = 0.0);
                let value = sum_of_magnitudes(&x);
                let equations = Lu::new(slopes(r, &zeros, |i, k| x[[i, k]]).view());
                return Some(Vertex { point: Turned { x, rotation, value }, zeros, equations });
            }
            let turn = linalg::cayley(skew_of(&angles, r).view());
            rotation = polar(&product(rotation.view(), turn.view()));
        }
        None
    }

    /// Returns the angles of a Newton step towards the zeros.
    fn angles(&self, equations: &Lu, rotation: &Array2<f64>, zeros: &[Entry]) -> Vec<f64> {
        let values = zeros.iter();
        let mut angles: Vec<f64> = values.map(|&(i, k)| -self.v.row(i).dot(&rotation.column(k))).collect();
        equations.solve(&mut angles);
        angles
    }

    /// Returns the equations of the directions at a rotation.
    fn equations(&self, rotation: &Array2<f64>, zeros: &[Entry]) -> Lu {
        let v: ArrayView2<'_, f64> = self.v.view();
        let entry = |i: usize, k: usize| v.row(i).dot(&rotation.column(k));
        Lu::new(slopes(rotation.nrows(), zeros, entry).view())
    }
}
