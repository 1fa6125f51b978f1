//! Any penalty of entries made of quadratic pieces, and the sum of such penalties.

use ndarray::{Array2, ArrayView2, ArrayViewMut2, Zip};

use pulp::Simd;

use super::bounded::Bounded;
use super::entry_penalty::{EntryPenalty, OUTSIDE};
use super::even::Even;
use super::{AnyForm, Form, L0, L1, NoPenalty, NonNegative, Weights, derived, exact, jump, nonnegative};
use crate::error::{Error, LARGEST, Result};
use crate::pair::{Best, BestBoost, CirclePair, HyperbolaPair, Piece, Scratch};

/// h(X) = Σ φ_ij(X_ij), φ = a + b x + ½ c x² between every two breakpoints, optionally with weights.
///
/// If two pieces disagree at a breakpoint, the lower value counts. With an ℓ0 term the value at 0 can be
/// below both pieces. An infinite piece is a constraint.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PiecewiseQuadratic {
    breakpoints: Vec<f64>,
    /// Penalty of every entry, without weight.
    phi: EntryPenalty,
    /// Weights of the entries, and the finite penalty that they multiply.
    weighted: Vec<(Array2<f64>, EntryPenalty)>,
    solver: Solver,
}

/// Pair solver on the circle.
#[derive(Debug, Clone, PartialEq)]
enum Solver {
    /// Continuous functions of |x|.
    Even(Even),
    /// X ≥ 0, with this slope and this jump at 0.
    Nonnegative(f64, f64),
    /// Functions of |x| that jump up from 0 and are linear beyond.
    Jump,
    /// Fast forms with bounds on either side of 0.
    Bounded(Bounded),
    /// All others.
    Any,
}

impl Solver {
    fn of(breakpoints: &[f64], phi: &EntryPenalty, weighted: &[(Array2<f64>, EntryPenalty)]) -> Self {
        let units = weighted.iter().map(|(_, unit)| unit);
        let mut all = std::iter::once(phi).chain(units);
        let plain = weighted.is_empty();
        match Even::new(breakpoints, &phi.pieces, &phi.at).filter(|_| plain) {
            Some(even) => return Self::Even(even),
            None if *breakpoints == [0.0] && all.all(EntryPenalty::jump_up) => return Self::Jump,
            None if !plain => return Self::Any,
            None => {}
        }
        if let Some(bounded) = Bounded::new(breakpoints, phi) {
            return Self::Bounded(bounded);
        }
        match (breakpoints, &phi.pieces[..], &phi.at[..]) {
            ([0.0], [OUTSIDE, [a, b, _]], [at]) if a.is_finite() => Self::Nonnegative(*b, a - at),
            _ => Self::Any,
        }
    }
}

/// [`Penalty::pair_work`](super::Penalty::pair_work) of penalties that jump up from 0, measured at r = 20.
const JUMP_WORK: f64 = 1.2;

impl PiecewiseQuadratic {
    /// See [`Penalty::pieces`](super::Penalty::pieces).
    pub(super) fn new(breakpoints: Vec<f64>, pieces: Vec<Piece>) -> Result<Self> {
        let fits = |v: f64| v.abs() <= LARGEST;
        if !breakpoints.iter().all(|&v| fits(v)) || !breakpoints.is_sorted_by(|a, b| a < b) {
            return Err(Error::invalid("breakpoints", format!("must be finite and ascend, got {breakpoints:?}")));
        }
        if pieces.len() != breakpoints.len() + 1 {
            return Err(Error::invalid(
                "pieces",
                format!("must be {}, one more than breakpoints, got {}", breakpoints.len() + 1, pieces.len()),
            ));
        }
        for piece in &pieces {
            if *piece != OUTSIDE && !piece.iter().all(|&v| fits(v)) {
                return Err(Error::invalid(
                    "pieces",
                    format!("must be of numbers up to {LARGEST:e}, or (inf, 0, 0); got {piece:?}"),
                ));
            }
        }
        if pieces.iter().all(|piece| *piece == OUTSIDE) {
            return Err(Error::invalid("pieces", "must not all be infinite"));
        }
        let phi = EntryPenalty::new(&breakpoints, pieces);
        Ok(Self::made(breakpoints, phi, Vec::new()))
    }

    fn made(mut breakpoints: Vec<f64>, mut phi: EntryPenalty, mut weighted: Vec<(Array2<f64>, EntryPenalty)>) -> Self {
        // Removes breakpoints at which no penalty changes.
        for k in (0..breakpoints.len()).rev() {
            let level = breakpoints[k];
            let units = weighted.iter_mut().map(|(_, unit)| unit);
            let mut all: Vec<&mut EntryPenalty> = std::iter::once(&mut phi).chain(units).collect();
            if all.iter().all(|phi| phi.is_idle(k, level)) {
                breakpoints.remove(k);
                all.iter_mut().for_each(|phi| phi.remove(k));
            }
        }
        let solver = Solver::of(&breakpoints, &phi, &weighted);
        Self { breakpoints, phi, weighted, solver }
    }

    /// See [`Penalty::plus`](super::Penalty::plus).
    pub(super) fn plus(&self, other: &Self) -> Result<Self> {
        let mut breakpoints = [&self.breakpoints[..], &other.breakpoints].concat();
        breakpoints.sort_by(f64::total_cmp);
        breakpoints.dedup();
        let refined = |h: &Self| {
            let weighted = (h.weighted.iter()).map(|(w, unit)| (w.clone(), unit.refined(&h.breakpoints, &breakpoints)));
            let weighted: Vec<_> = weighted.collect();
            (h.phi.refined(&h.breakpoints, &breakpoints), weighted)
        };
        let (mut phi, mut weighted) = refined(self);
        let (more, also) = refined(other);
        phi.add(&more);
        weighted.extend(also);
        if phi.pieces.iter().all(|piece| *piece == OUTSIDE) {
            return Err(Error::invalid("penalty", "must allow an interval: the two terms have none in common"));
        }
        Ok(Self::made(breakpoints, phi, weighted))
    }

    /// Σ φ(X_ij), or Σ w_ij φ(X_ij) for weights w ≥ 0, of a piece below 0, a value at 0, and a piece above.
    fn at_zero(pieces: [Piece; 2], at: f64, weights: Option<Array2<f64>>) -> Self {
        let (breakpoints, unit) = (vec![0.0], EntryPenalty { pieces: pieces.to_vec(), at: vec![at] });
        match weights {
            None => Self::made(breakpoints, unit, Vec::new()),
            Some(weights) => {
                let nothing = EntryPenalty::new(&breakpoints, vec![[0.0; 3]; 2]);
                Self::made(breakpoints, nothing, vec![(weights, unit)])
            }
        }
    }

    /// h = 0.
    pub(super) fn nothing() -> Self {
        let phi = EntryPenalty::new(&[], vec![[0.0; 3]]);
        Self::made(Vec::new(), phi, Vec::new())
    }

    /// X ≥ 0.
    pub(super) fn nonnegative() -> Self {
        Self::at_zero([OUTSIDE, [0.0; 3]], 0.0, None)
    }

    /// λ Σ w_ij |X_ij|.
    pub(super) fn absolute(lambda: f64, weights: Option<Array2<f64>>) -> Self {
        Self::at_zero([[0.0, -lambda, 0.0], [0.0, lambda, 0.0]], 0.0, weights)
    }

    /// λ Σ w_ij \[X_ij ≠ 0\].
    pub(super) fn count(lambda: f64, weights: Option<Array2<f64>>) -> Self {
        Self::at_zero([[lambda, 0.0, 0.0]; 2], 0.0, weights)
    }

    /// See [`Penalty::interval`](super::Penalty::interval).
    pub(super) fn interval(lower: f64, upper: f64) -> Result<Self> {
        for (name, end) in [("lower", lower), ("upper", upper)] {
            if end.is_nan() || (end.is_finite() && end.abs() > LARGEST) {
                return Err(Error::invalid(
                    name,
                    format!("must be infinite or at most {LARGEST:e} in magnitude, got {end}"),
                ));
            }
        }
        if !(lower < upper) {
            return Err(Error::invalid("lower", format!("must be below upper = {upper}, got {lower}")));
        }
        let (mut breakpoints, mut pieces) = (Vec::new(), vec![[0.0; 3]]);
        if lower.is_finite() {
            breakpoints.push(lower);
            pieces.insert(0, OUTSIDE);
        }
        if upper.is_finite() {
            breakpoints.push(upper);
            pieces.push(OUTSIDE);
        }
        Self::new(breakpoints, pieces)
    }

    /// Returns the allowed value nearest to `value`.
    fn nearest(&self, value: f64) -> f64 {
        let penalty = |v: f64| self.phi.entry(&self.breakpoints, self.above(v), v);
        if penalty(value) < f64::INFINITY {
            return value;
        }
        let allowed = |level: &&f64| penalty(**level) < f64::INFINITY;
        let levels = self.breakpoints.iter().filter(allowed);
        let nearer = |a: &&f64, b: &&f64| (**a - value).abs().total_cmp(&(**b - value).abs());
        levels.min_by(nearer).map_or(value, |&level| level)
    }

    /// Returns the number of breakpoints up to `value`.
    fn above(&self, value: f64) -> usize {
        self.breakpoints.partition_point(|&level| level <= value)
    }

    /// Returns the penalty of an entry of mean weight.
    fn mean(&self) -> Self {
        let mut phi = self.phi.clone();
        for (weights, unit) in &self.weighted {
            let mut unit = unit.clone();
            unit.scale(weights.mean().unwrap_or(0.0));
            phi.add(&unit);
        }
        Self::made(self.breakpoints.clone(), phi, Vec::new())
    }

    /// Returns the penalty with its weights mapped by `change`.
    pub(super) fn reweighted(&self, change: impl Fn(&Array2<f64>) -> Array2<f64>) -> Self {
        let weighted = (self.weighted.iter()).map(|(w, unit)| (change(w), unit.clone()));
        Self { weighted: weighted.collect(), ..self.clone() }
    }

    /// Returns the jump at 0 and the slope beyond, for penalties solved by [`Solver::Jump`].
    #[inline(always)]
    fn jump_and_slope(&self, row: usize, column: usize) -> (f64, f64) {
        let own = |phi: &EntryPenalty| {
            let [a, b, _] = phi.pieces[1];
            (a - phi.at[0], b)
        };
        let (mut jump, mut slope) = own(&self.phi);
        for (weights, unit) in &self.weighted {
            let (weight, (a, b)) = (weights[[row, column]], own(unit));
            (jump, slope) = (jump + weight * a, slope + weight * b);
        }
        (jump, slope)
    }

    /// Returns the simplest form of h.
    pub(super) fn recognised(self) -> AnyForm {
        let phi = (&self.phi.pieces[..], &self.phi.at[..]);
        match (&self.breakpoints[..], phi) {
            _ if !self.weighted.is_empty() => AnyForm::Pieces(self),
            ([], ([[0.0, 0.0, 0.0]], _)) => AnyForm::None(NoPenalty),
            ([0.0], ([[a, 0.0, 0.0], [b, 0.0, 0.0]], [0.0])) if a == b && *a > 0.0 && a.is_finite() => {
                AnyForm::L0(L0 { lambda: *a })
            }
            ([0.0], ([[0.0, a, 0.0], [0.0, b, 0.0]], [0.0])) if *a == -*b && *b > 0.0 => {
                AnyForm::L1(L1 { weights: Weights::Scalar(*b) })
            }
            ([0.0], ([OUTSIDE, [0.0, 0.0, 0.0]], [0.0])) => AnyForm::NonNegative(NonNegative),
            _ => AnyForm::Pieces(self),
        }
    }

    /// Returns the penalty with the pair solver for arbitrary pieces.
    pub(super) fn general(self) -> Self {
        Self { solver: Solver::Any, ..self }
    }

    /// See [`Penalty::weighted`](super::Penalty::weighted).
    pub(super) fn weighted(&self, weights: &Array2<f64>) -> Result<Self> {
        if self.constrains() {
            return Err(Error::invalid("penalty", "must be finite to be weighted"));
        }
        if self.weighted.iter().any(|(own, _)| own.dim() != weights.dim()) {
            let message = "must have the shape of the weights that the penalty has already";
            return Err(Error::invalid("weights", message));
        }
        let nothing = EntryPenalty::new(&self.breakpoints, vec![[0.0; 3]; self.phi.pieces.len()]);
        let mut weighted = self.reweighted(|own| own * weights).weighted;
        if self.phi != nothing {
            weighted.push((weights.clone(), self.phi.clone()));
        }
        Ok(Self::made(self.breakpoints.clone(), nothing, weighted))
    }

    /// Checks that the weights fit an n×r matrix.
    pub(super) fn check(&self, n: usize, r: usize) -> Result<()> {
        (self.weighted.iter()).try_for_each(|(weights, _)| super::check_weights(weights, n, r))
    }

    /// Returns the distance of X from the domain of h.
    pub(super) fn infeasibility(&self, x: ArrayView2<'_, f64>) -> f64 {
        let squares = x.iter().map(|&v| (v - self.nearest(v)).powi(2));
        squares.sum::<f64>().sqrt()
    }

    /// Returns the squared distance from the domain of h as a penalty, if h is a constraint.
    pub(super) fn squared_distance(&self) -> Option<Self> {
        let is_allowed = |v: f64| self.phi.entry(&self.breakpoints, self.above(v), v) < f64::INFINITY;
        let mut levels = self.breakpoints.clone();
        levels.retain(|&level| is_allowed(level));
        let middles = levels.windows(2).map(|ends| 0.5 * (ends[0] + ends[1]));
        let gaps: Vec<f64> = middles.filter(|&middle| !is_allowed(middle)).collect();
        levels.extend(gaps);
        levels.sort_by(f64::total_cmp);
        let within = levels.windows(2).map(|ends| 0.5 * (ends[0] + ends[1]));
        let (first, last) = (*levels.first()?, *levels.last()?);
        let places = std::iter::once(first - 1.0).chain(within).chain([last + 1.0]);
        let piece = |place: f64| match is_allowed(place) {
            true => [0.0; 3],
            false => {
                let nearest = self.nearest(place);
                [nearest * nearest, -2.0 * nearest, 2.0]
            }
        };
        let pieces = places.map(piece).collect();
        self.constrains().then(|| Self::new(levels, pieces).ok()).flatten()
    }

    /// See [`Penalty::pair_work`](super::Penalty::pair_work).
    pub(super) fn pair_work(&self) -> f64 {
        match &self.solver {
            Solver::Even(even) => even.pair_work(),
            Solver::Nonnegative(..) => 1.0,
            Solver::Jump => JUMP_WORK,
            Solver::Bounded(bounded) => bounded.pair_work(),
            Solver::Any => exact::pair_work(&self.breakpoints),
        }
    }

    /// Returns whether 0 lies inside the subdifferential at 0 of an entry of mean weight.
    pub(super) fn sparsifies(&self) -> bool {
        let (low, high) = derived::subdifferential(&self.mean(), 0, 0, 0.0);
        low < 0.0 && high > 0.0
    }

    /// Returns whether 0 is allowed and no value below 0 is.
    pub(super) fn is_nonnegative(&self) -> bool {
        let zero = self.breakpoints.iter().position(|&level| level == 0.0);
        zero.is_some_and(|k| {
            let below = &self.phi.pieces[..=k];
            self.phi.at[k] < f64::INFINITY && below.iter().all(|piece| *piece == OUTSIDE)
        })
    }

    /// Creates the penalty `factor · h`.
    pub(super) fn scaled(&self, factor: f64) -> Self {
        let mut phi = self.phi.clone();
        phi.scale(factor);
        let weighted = self.reweighted(|weights| weights * factor).weighted;
        Self::made(self.breakpoints.clone(), phi, weighted)
    }

    /// See [`Penalty::largest_strength`](super::Penalty::largest_strength).
    pub(super) fn largest_strength(&self, gain: f64) -> f64 {
        let mean = self.mean();
        let penalty = mean.entry(0, 0, 1.0) - mean.entry(0, 0, 0.0);
        if penalty > 0.0 && penalty.is_finite() { gain / penalty } else { gain }
    }

    /// Returns whether a piece of h is infinite.
    fn constrains(&self) -> bool {
        self.phi.pieces.contains(&OUTSIDE)
    }
}

impl Form for PiecewiseQuadratic {
    fn piece(&self, row: usize, column: usize, value: f64) -> Piece {
        let above = self.above(value);
        let mut piece = self.phi.pieces[above];
        for (weights, unit) in &self.weighted {
            let weight = weights[[row, column]];
            piece = [0, 1, 2].map(|k| piece[k] + weight * unit.pieces[above][k]);
        }
        piece
    }

    fn breakpoints(&self) -> &[f64] {
        &self.breakpoints
    }

    fn entry(&self, row: usize, column: usize, value: f64) -> f64 {
        let above = self.above(value);
        let own = self.phi.entry(&self.breakpoints, above, value);
        let weighted = self
            .weighted
            .iter()
            .map(|(weights, unit)| weights[[row, column]] * unit.entry(&self.breakpoints, above, value));
        own + weighted.sum::<f64>()
    }

    /// Compares the breakpoints and the stationary points inside the pieces.
    fn proximal(&self, row: usize, column: usize, value: f64, step: f64) -> f64 {
        let mut best = (f64::INFINITY, value);
        let mut offer = |penalty: f64, u: f64| {
            let total = penalty + 0.5 * (u - value) * (u - value) / step;
            if total < best.0 {
                best = (total, u);
            }
        };
        let mut from = f64::NEG_INFINITY;
        for (k, piece) in self.phi.pieces.iter().enumerate() {
            let (mut piece, mut at) = (*piece, self.phi.at.get(k).copied());
            for (weights, unit) in &self.weighted {
                let weight = weights[[row, column]];
                piece = [0, 1, 2].map(|l| piece[l] + weight * unit.pieces[k][l]);
                at = at.map(|penalty| penalty + weight * unit.at[k]);
            }
            let to = self.breakpoints.get(k).copied().unwrap_or(f64::INFINITY);
            let [a, b, c] = piece;
            let u = (value - step * b) / (1.0 + step * c);
            if a.is_finite() && 1.0 + step * c > 0.0 && u > from && u < to {
                offer(derived::at(piece, u), u);
            }
            if let Some(penalty) = at {
                offer(penalty, to);
            }
            from = to;
        }
        best.1
    }

    fn tidy(&self, row: &mut [f64]) {
        if self.constrains() {
            for value in row {
                *value = self.nearest(*value);
            }
        }
    }

    fn proximal_near(&self, (row, column): (usize, usize), x: f64, value: f64, step: f64) -> (f64, f64) {
        let whole = (f64::NEG_INFINITY, f64::INFINITY);
        let stays = || derived::subdifferential(self, row, column, x) == whole;
        if self.breakpoints.contains(&x) && stays() {
            return (x, 0.0);
        }
        let u = self.proximal(row, column, value, step);
        if self.breakpoints.contains(&u) {
            return (u, 0.0);
        }
        let [_, _, c] = self.piece(row, column, u);
        (u, 1.0 / (1.0 + step * c))
    }

    /// Returns the Moreau envelope with the step at which the proximal map takes entries of size `epsilon` to
    /// zero, or half of the way: ε²/(2 (h(ε) − h(0))).
    fn smoothed(&self, x: ArrayView2<'_, f64>, epsilon: f64, mut gradient: ArrayViewMut2<'_, f64>) -> f64 {
        let mut sum = 0.0;
        Zip::indexed(&mut gradient).and(x).for_each(|(i, k), g, &x| {
            let rise = [-epsilon, epsilon]
                .map(|v| self.entry(i, k, v) - self.entry(i, k, 0.0))
                .into_iter()
                .filter(|v| v.is_finite())
                .fold(0.0, f64::max);
            let step = 0.5 * epsilon * epsilon / rise;
            // A penalty that is flat at zero has no such step; ε takes its place.
            let step = if step.is_finite() { step } else { epsilon };
            let u = self.proximal(i, k, x, step);
            *g += (x - u) / step;
            sum += self.entry(i, k, u) + 0.5 * (x - u) * (x - u) / step;
        });
        sum
    }

    #[inline(always)]
    fn hyperbola(&self, pair: &HyperbolaPair<'_>, scratch: &mut Scratch) -> BestBoost {
        exact::hyperbola(self, pair, scratch)
    }

    #[inline(always)]
    fn circle<S: Simd>(&self, simd: S, pair: &CirclePair<'_>, scratch: &mut Scratch) -> Best {
        match &self.solver {
            Solver::Even(even) => even.circle(simd, pair, f64::INFINITY, scratch),
            &Solver::Nonnegative(slope, jump) => nonnegative::circle(pair, (slope, jump), scratch),
            Solver::Jump => {
                let weights = |row, column| self.jump_and_slope(row, column);
                jump::circle(weights, simd, pair, scratch)
            }
            Solver::Bounded(bounded) => match bounded.circle(simd, pair, scratch) {
                Some(best) => best,
                None => exact::circle(self, pair, scratch),
            },
            Solver::Any => exact::circle(self, pair, scratch),
        }
    }
}
