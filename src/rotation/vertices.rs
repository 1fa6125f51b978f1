//! Moves between vertices, where r(r − 1)/2 entries of VR vanish, as in the simplex method.

use ndarray::Array2;

use super::{Entry, LEAST, ROUNDING, Search, Turned, lower, pairs_of};
use crate::linalg::{self, product, square};
use crate::manifold::polar;

/// Largest number of Newton steps to a vertex, and of moves between vertices.
const NEWTON: usize = 8;
const MOVES: usize = 500;

/// Largest number r(r − 1)/2 of entries that vanish at a vertex: the order of the equations of a move.
pub(super) const LARGEST: usize = 400;

/// Largest number of neighbours of the lowest vertex from which a start descends.
const NEIGHBOURS: usize = 200;

/// A multiplier may exceed 1 by this much at a local minimum.
const SLACK: f64 = 1e-9;

/// Point where r(r − 1)/2 entries vanish, and these entries.
struct Vertex {
    point: Turned,
    zeros: Vec<Entry>,
}

/// Direction from a vertex in which one zero is given up and the others stay.
struct Edge {
    given_up: usize,
    skew: Array2<f64>,
    /// Kinks in ascending order of their length.
    kinks: Vec<Kink>,
}

/// Point of an edge where an entry vanishes: the slope of the ℓ1 norm rises by `rise`.
struct Kink {
    length: f64,
    rise: f64,
    entry: Entry,
}

/// Returns the rates of the entries `at` for each pair of columns: turning columns p and q by ω changes
/// column q by ω x_p and column p by −ω x_q.
fn slopes(x: &Array2<f64>, at: &[Entry], pairs: &[(usize, usize)]) -> Array2<f64> {
    Array2::from_shape_fn((at.len(), pairs.len()), |(equation, pair)| {
        let ((i, j), (p, q)) = (at[equation], pairs[pair]);
        if j == q {
            x[[i, p]]
        } else if j == p {
            -x[[i, q]]
        } else {
            0.0
        }
    })
}

fn skew_of(angles: &Array2<f64>, pairs: &[(usize, usize)], r: usize) -> Array2<f64> {
    let mut skew = Array2::zeros((r, r));
    for (&(p, q), &angle) in pairs.iter().zip(angles) {
        (skew[[p, q]], skew[[q, p]]) = (angle, -angle);
    }
    skew
}

fn sign(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x.signum() }
}

impl Search<'_> {
    /// Returns the end of moves from vertex to vertex of lower ℓ1 norm, from the vertex nearest to `point`;
    /// or `point` if that is lower.
    pub(super) fn over_vertices(&self, point: Turned) -> Turned {
        match self.nearest(&point) {
            Some(vertex) => self.lower_of(point, &self.downhill(vertex, None)),
            None => point,
        }
    }

    /// Returns a point, or a vertex if that is lower.
    fn lower_of(&self, point: Turned, vertex: &Vertex) -> Turned {
        let rotation = vertex.point.rotation.clone();
        lower(point, Turned::new(self.v, rotation, self.criterion))
    }

    /// Returns the lowest vertex found from neighbours of the vertex nearest to `point`; or `point` if lower.
    ///
    /// In the first descent the entry that vanishes at the neighbour stays zero, so as not to lead back.
    pub(super) fn beside(&self, point: Turned) -> Turned {
        let Some(mut here) = self.nearest(&point) else {
            return point;
        };
        let pairs = pairs_of(here.point.rotation.nrows());
        let (mut tried, mut next) = (0, 0);
        while tried < NEIGHBOURS && next < 2 * here.zeros.len() && (self.go_on)() {
            let (given_up, way) = (next / 2, if next % 2 == 0 { 1.0 } else { -1.0 });
            (tried, next) = (tried + 1, next + 1);
            let slopes = slopes(&here.point.x, &here.zeros, &pairs);
            let edge = self.edge(&here, &slopes, given_up, way);
            let Some(beside) = self.along(&here, &edge, 0) else {
                continue;
            };
            let end = self.downhill(beside, Some(edge.kinks[0].entry));
            let end = self.downhill(end, None);
            if end.point.value < here.point.value * (1.0 - LEAST) {
                (here, next) = (end, 0);
            }
        }
        self.lower_of(point, &here)
    }

    /// Returns the vertex nearest to `point`: the r(r − 1)/2 entries vanish that are smallest relative to the
    /// norms of their rows. These zeros determine the rotation.
    fn nearest(&self, point: &Turned) -> Option<Vertex> {
        let (n, r) = point.x.dim();
        let count = r * (r - 1) / 2;
        if count == 0 || count > LARGEST {
            return None;
        }
        let floor = ROUNDING * self.size;
        let mut zeros: Vec<Entry> = (0..n)
            .filter(|&i| self.norms[i] > floor)
            .flat_map(|i| (0..r).map(move |k| (i, k)))
            .collect();
        let size = |&at: &Entry| point.x[at].abs() / self.norms[at.0];
        if count < zeros.len() {
            zeros.select_nth_unstable_by(count - 1, |a, b| size(a).total_cmp(&size(b)));
            zeros.truncate(count);
        }
        self.vertex(point.rotation.clone(), zeros)
    }

    /// Returns the end of moves to neighbours of lower ℓ1 norm; the zero `kept` is not given up.
    fn downhill(&self, mut here: Vertex, kept: Option<Entry>) -> Vertex {
        for _ in 0..MOVES {
            if !(self.go_on)() {
                break;
            }
            match self.neighbour(&here, kept) {
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
    fn neighbour(&self, here: &Vertex, kept: Option<Entry>) -> Option<Vertex> {
        let x = &here.point.x;
        let pairs = pairs_of(x.ncols());
        let slopes = slopes(x, &here.zeros, &pairs);
        let along = product(x.t(), x.mapv(sign).view());
        let gradient = Array2::from_shape_fn((pairs.len(), 1), |(k, _)| {
            let (p, q) = pairs[k];
            along[[q, p]] - along[[p, q]]
        });
        let multipliers = linalg::solved(slopes.t(), gradient.view());
        let (given_up, &multiplier) = (multipliers.iter().enumerate())
            .filter(|(k, _)| kept != Some(here.zeros[*k]))
            .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
        if !(multiplier.abs() > 1.0 + SLACK) {
            return None;
        }
        let edge = self.edge(here, &slopes, given_up, multiplier.signum());
        let mut slope = 1.0 - multiplier.abs();
        let last = edge.kinks.iter().position(|kink| {
            slope += kink.rise;
            slope >= 0.0
        })?;
        // Edges are curved: if the kink at the minimum of the tangent fails, the first one may succeed.
        [last, 0].into_iter().find_map(|k| {
            let next = self.along(here, &edge, k)?;
            (next.point.value < here.point.value * (1.0 - f64::EPSILON)).then_some(next)
        })
    }

    /// Returns the edge along which the zero `given_up` gets the sign `way`.
    fn edge(&self, here: &Vertex, slopes: &Array2<f64>, given_up: usize, way: f64) -> Edge {
        let x = &here.point.x;
        let pairs = pairs_of(x.ncols());
        let mut rates = Array2::zeros((pairs.len(), 1));
        rates[[given_up, 0]] = way;
        let angles = linalg::solved(slopes.view(), rates.view());
        let skew = skew_of(&angles, &pairs, x.ncols());
        let change = product(x.view(), skew.view());
        let mut kinks: Vec<Kink> = (x.indexed_iter())
            .filter_map(|(entry, &x)| {
                let length = -x / change[entry];
                let rise = 2.0 * change[entry].abs();
                let ahead = x != 0.0 && length > 0.0 && length.is_finite();
                ahead.then_some(Kink {
                    length,
                    rise,
                    entry,
                })
            })
            .collect();
        kinks.sort_unstable_by(|a, b| a.length.total_cmp(&b.length));
        Edge {
            given_up,
            skew,
            kinks,
        }
    }

    /// Returns the vertex at a kink of an edge.
    fn along(&self, here: &Vertex, edge: &Edge, kink: usize) -> Option<Vertex> {
        let kink = edge.kinks.get(kink)?;
        let mut zeros = here.zeros.clone();
        zeros[edge.given_up] = kink.entry;
        let turn = linalg::cayley((&edge.skew * kink.length).view());
        self.vertex(product(here.point.rotation.view(), turn.view()), zeros)
    }

    /// Returns the vertex next to the given rotation where these entries vanish, by Newton's method.
    fn vertex(&self, mut rotation: Array2<f64>, zeros: Vec<Entry>) -> Option<Vertex> {
        let r = rotation.nrows();
        let pairs = pairs_of(r);
        if zeros.len() < pairs.len() {
            return None;
        }
        for _ in 0..NEWTON {
            let mut x = product(self.v.view(), rotation.view());
            let wanted = Array2::from_shape_fn((zeros.len(), 1), |(k, _)| -x[zeros[k]]);
            let angles = linalg::solved(slopes(&x, &zeros, &pairs).view(), wanted.view());
            let size = square(&angles).sqrt();
            if !(size <= 1.0) {
                return None;
            }
            if size <= f64::EPSILON * (r * r) as f64 {
                zeros.iter().for_each(|&at| x[at] = 0.0);
                let value = x.iter().map(|v| v.abs()).sum();
                let point = Turned { x, rotation, value };
                return Some(Vertex { point, zeros });
            }
            let turn = linalg::cayley(skew_of(&angles, &pairs, r).view());
            rotation = polar(&product(rotation.view(), turn.view()));
        }
        None
    }
}
