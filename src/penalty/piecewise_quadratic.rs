//! Any price of an entry made of quadratic pieces, and the sum of such prices.

use ndarray::{Array2, ArrayView2, Axis};

use pulp::Simd;

use super::even::Even;
use super::prices::{OUTSIDE, Prices};
use super::{
    Exact, Kernel, L0, L1, NonNegative, Penalty, Weights, derived, exact, jump, nonnegative,
};
use crate::error::{Error, Result};
use crate::objective::LARGEST;
use crate::pair::{Best, BestBoost, CirclePair, HyperbolaPair, Piece, Scratch};

/// h(X) = Σ φ(X_ij), φ(x) = a + b x + ½ c x² with its own (a, b, c) between every two breakpoints, perhaps with
/// weights that differ from entry to entry.
///
/// Where two pieces disagree at their breakpoint the lower value counts, a count of nonzeros
/// apart. A piece of infinite price is a constraint.
#[derive(Debug, Clone, PartialEq)]
pub struct PiecewiseQuadratic {
    breakpoints: Vec<f64>,
    /// What all entries cost.
    prices: Prices,
    /// What an entry costs times its weight, finite.
    weighted: Vec<(Array2<f64>, Prices)>,
    form: Form,
}

/// How pairs on the circle are solved.
#[derive(Debug, Clone, PartialEq)]
enum Form {
    /// Continuous prices of |x|.
    Even(Even),
    /// X ≥ 0, with this slope and this jump at 0.
    Nonnegative(f64, f64),
    /// Prices of |x| that jump up from 0 and are linear beyond.
    Jump,
    /// All others.
    Any,
}

impl Form {
    fn of(breakpoints: &[f64], prices: &Prices, weighted: &[(Array2<f64>, Prices)]) -> Self {
        let units = weighted.iter().map(|(_, unit)| unit);
        let mut all = std::iter::once(prices).chain(units);
        let plain = weighted.is_empty();
        match Even::new(breakpoints, &prices.pieces, &prices.at).filter(|_| plain) {
            Some(even) => return Self::Even(even),
            None if *breakpoints == [0.0] && all.all(Prices::jump_up) => return Self::Jump,
            None if !plain => return Self::Any,
            None => {}
        }
        match (breakpoints, &prices.pieces[..], &prices.at[..]) {
            ([0.0], [OUTSIDE, [a, b, _]], [at]) if a.is_finite() => Self::Nonnegative(*b, a - at),
            _ => Self::Any,
        }
    }
}

/// [`Penalty::pair_work`] of prices that jump up from 0, measured at r = 20.
const JUMP_WORK: f64 = 2.0;

/// A penalty with a type of its own.
#[cfg(feature = "python")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum BuiltIn {
    /// [`NoPenalty`](super::NoPenalty).
    None,
    /// [`L0`] with this λ.
    L0(f64),
    /// [`L1`] with this weight.
    L1(f64),
    /// [`NonNegative`].
    NonNegative,
}

impl PiecewiseQuadratic {
    /// Breakpoints in ascending order, and (a, b, c) of the piece before the first, of those between, and of
    /// the one after the last; (∞, 0, 0) where x is not allowed.
    ///
    /// # Errors
    /// If the breakpoints do not ascend, there is not one piece more than there are breakpoints, a number is
    /// too large or not one, or every piece is infinite.
    pub fn new(breakpoints: Vec<f64>, pieces: Vec<Piece>) -> Result<Self> {
        let fits = |v: f64| v.abs() <= LARGEST;
        if !breakpoints.iter().all(|&v| fits(v)) || !breakpoints.is_sorted_by(|a, b| a < b) {
            return Err(Error::invalid(
                "breakpoints",
                format!("must be finite and ascend, got {breakpoints:?}"),
            ));
        }
        if pieces.len() != breakpoints.len() + 1 {
            return Err(Error::invalid(
                "pieces",
                format!(
                    "must be {}, one more than breakpoints, got {}",
                    breakpoints.len() + 1,
                    pieces.len()
                ),
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
        let prices = Prices::new(&breakpoints, pieces);
        Ok(Self::made(breakpoints, prices, Vec::new()))
    }

    fn made(
        mut breakpoints: Vec<f64>,
        mut prices: Prices,
        mut weighted: Vec<(Array2<f64>, Prices)>,
    ) -> Self {
        // Where nothing changes there is no breakpoint.
        for k in (0..breakpoints.len()).rev() {
            let level = breakpoints[k];
            let units = weighted.iter_mut().map(|(_, unit)| unit);
            let mut all: Vec<&mut Prices> = std::iter::once(&mut prices).chain(units).collect();
            if all.iter().all(|prices| prices.is_idle(k, level)) {
                breakpoints.remove(k);
                all.iter_mut().for_each(|prices| prices.remove(k));
            }
        }
        let form = Form::of(&breakpoints, &prices, &weighted);
        Self {
            breakpoints,
            prices,
            weighted,
            form,
        }
    }

    /// h₁ + h₂: pieces add up between the breakpoints of both.
    ///
    /// # Errors
    /// If no interval is allowed by both.
    pub fn plus(&self, other: &Self) -> Result<Self> {
        let mut breakpoints = [&self.breakpoints[..], &other.breakpoints].concat();
        breakpoints.sort_by(f64::total_cmp);
        breakpoints.dedup();
        let refined = |h: &Self| {
            let weighted = (h.weighted.iter())
                .map(|(w, unit)| (w.clone(), unit.refined(&h.breakpoints, &breakpoints)));
            let weighted: Vec<_> = weighted.collect();
            (h.prices.refined(&h.breakpoints, &breakpoints), weighted)
        };
        let (mut prices, mut weighted) = refined(self);
        let (more, also) = refined(other);
        prices.add(&more);
        weighted.extend(also);
        if prices.pieces.iter().all(|piece| *piece == OUTSIDE) {
            return Err(Error::invalid(
                "penalty",
                "must allow an interval: the two terms have none in common",
            ));
        }
        Ok(Self::made(breakpoints, prices, weighted))
    }

    /// Σ φ(X_ij), or Σ w_ij φ(X_ij) for weights w ≥ 0, of one piece below 0, a price at 0, and one piece above.
    fn at_zero(pieces: [Piece; 2], at: f64, weights: Option<Array2<f64>>) -> Self {
        let (breakpoints, unit) = (
            vec![0.0],
            Prices {
                pieces: pieces.to_vec(),
                at: vec![at],
            },
        );
        match weights {
            None => Self::made(breakpoints, unit, Vec::new()),
            Some(weights) => {
                let nothing = Prices::new(&breakpoints, vec![[0.0; 3]; 2]);
                Self::made(breakpoints, nothing, vec![(weights, unit)])
            }
        }
    }

    fn absolute(lambda: f64, weights: Option<Array2<f64>>) -> Self {
        Self::at_zero([[0.0, -lambda, 0.0], [0.0, lambda, 0.0]], 0.0, weights)
    }

    fn count(lambda: f64, weights: Option<Array2<f64>>) -> Self {
        Self::at_zero([[lambda, 0.0, 0.0]; 2], 0.0, weights)
    }

    /// Σ w_ij \[X_ij ≠ 0\] for n×r weights w ≥ 0.
    pub fn weighted_count(weights: Array2<f64>) -> Self {
        Self::count(1.0, Some(weights))
    }

    /// Symmetric prices: from 0 to `knots`[0], between the knots, and beyond the last one.
    fn symmetric(knots: &[f64], right: &[Piece]) -> Result<Self> {
        let mirrored = |&[a, b, c]: &Piece| [a, -b, c];
        let left = knots.iter().rev().map(|v| -v);
        Self::new(
            left.chain([0.0]).chain(knots.iter().copied()).collect(),
            (right.iter().rev().map(mirrored))
                .chain(right.iter().copied())
                .collect(),
        )
    }

    /// Capped ℓ1, φ(x) = λ min(|x|, τ), τ = `threshold` > 0 (T. Zhang, JMLR 11, 2010).
    ///
    /// # Errors
    /// If λ is negative, the threshold is not positive, or either is too large.
    pub fn capped_l1(lambda: f64, threshold: f64) -> Result<Self> {
        super::check_weight(lambda)?;
        above("threshold", threshold, 0.0)?;
        let cap = [lambda * threshold, 0.0, 0.0];
        Self::symmetric(&[threshold], &[[0.0, lambda, 0.0], cap])
    }

    /// The minimax concave penalty, φ(x) = λ|x| − x²/(2γ) for |x| ≤ γλ and ½γλ² beyond, γ = `gamma` > 0
    /// (C.-H. Zhang, Ann. Statist. 38, 2010, eq. 2.1).
    ///
    /// # Errors
    /// If λ is not positive or γ is not, or either is too large.
    pub fn mcp(lambda: f64, gamma: f64) -> Result<Self> {
        above("lam", lambda, 0.0)?;
        above("gamma", gamma, 0.0)?;
        let cap = [0.5 * gamma * lambda * lambda, 0.0, 0.0];
        Self::symmetric(&[gamma * lambda], &[[0.0, lambda, -1.0 / gamma], cap])
    }

    /// Smoothly clipped absolute deviation: φ(x) = λ|x| for |x| ≤ λ, (2aλ|x| − x² − λ²)/(2(a − 1)) for
    /// λ < |x| ≤ aλ, and ½(a + 1)λ² beyond, a > 2 (Fan and Li, J. Amer. Statist. Assoc. 96, 2001, eq. 2.7).
    ///
    /// # Errors
    /// If λ is not positive, a is not above 2, or either is too large.
    pub fn scad(lambda: f64, a: f64) -> Result<Self> {
        above("lam", lambda, 0.0)?;
        above("a", a, 2.0)?;
        let bend = [
            -0.5 * lambda * lambda / (a - 1.0),
            a * lambda / (a - 1.0),
            -1.0 / (a - 1.0),
        ];
        let cap = [0.5 * (a + 1.0) * lambda * lambda, 0.0, 0.0];
        Self::symmetric(&[lambda, a * lambda], &[[0.0, lambda, 0.0], bend, cap])
    }

    /// The constraint `lower` ≤ x ≤ `upper`, each of them perhaps infinite: φ = 0 there, +∞ elsewhere.
    ///
    /// # Errors
    /// If lower is not below upper, or one is finite and too large.
    pub fn interval(lower: f64, upper: f64) -> Result<Self> {
        for (name, end) in [("lower", lower), ("upper", upper)] {
            if end.is_nan() || (end.is_finite() && end.abs() > LARGEST) {
                return Err(Error::invalid(
                    name,
                    format!("must be infinite or at most {LARGEST:e} in magnitude, got {end}"),
                ));
            }
        }
        if !(lower < upper) {
            return Err(Error::invalid(
                "lower",
                format!("must be below upper = {upper}, got {lower}"),
            ));
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

    /// The allowed value nearest to `value`.
    fn nearest(&self, value: f64) -> f64 {
        let price = |v: f64| self.prices.entry(&self.breakpoints, self.above(v), v);
        if price(value) < f64::INFINITY {
            return value;
        }
        let allowed = |level: &&f64| price(**level) < f64::INFINITY;
        let levels = self.breakpoints.iter().filter(allowed);
        let nearer = |a: &&f64, b: &&f64| (**a - value).abs().total_cmp(&(**b - value).abs());
        levels.min_by(nearer).map_or(value, |&level| level)
    }

    /// How many breakpoints `value` is not below.
    fn above(&self, value: f64) -> usize {
        self.breakpoints.partition_point(|&level| level <= value)
    }

    /// What an entry of mean weight costs.
    fn mean(&self) -> Self {
        let mut prices = self.prices.clone();
        for (weights, unit) in &self.weighted {
            let mut unit = unit.clone();
            unit.scale(weights.mean().unwrap_or(0.0));
            prices.add(&unit);
        }
        Self::made(self.breakpoints.clone(), prices, Vec::new())
    }

    /// The same with other weights.
    fn reweighted(&self, change: impl Fn(&Array2<f64>) -> Array2<f64>) -> Self {
        let weighted = (self.weighted.iter()).map(|(w, unit)| (change(w), unit.clone()));
        Self {
            weighted: weighted.collect(),
            ..self.clone()
        }
    }

    /// Of prices that jump up from 0: by how much, and the slope beyond.
    #[inline(always)]
    fn jump_and_slope(&self, row: usize, column: usize) -> (f64, f64) {
        let own = |prices: &Prices| {
            let [a, b, _] = prices.pieces[1];
            (a - prices.at[0], b)
        };
        let (mut jump, mut slope) = own(&self.prices);
        for (weights, unit) in &self.weighted {
            let (weight, (a, b)) = (weights[[row, column]], own(unit));
            (jump, slope) = (jump + weight * a, slope + weight * b);
        }
        (jump, slope)
    }

    /// The penalty of its own type that h is, if there is one.
    #[cfg(feature = "python")]
    pub(crate) fn built_in(&self) -> Option<BuiltIn> {
        if !self.weighted.is_empty() {
            return None;
        }
        match (
            &self.breakpoints[..],
            &self.prices.pieces[..],
            &self.prices.at[..],
        ) {
            ([], [[0.0, 0.0, 0.0]], _) => Some(BuiltIn::None),
            ([0.0], [[a, 0.0, 0.0], [b, 0.0, 0.0]], [0.0])
                if a == b && *a > 0.0 && a.is_finite() =>
            {
                Some(BuiltIn::L0(*a))
            }
            ([0.0], [[0.0, a, 0.0], [0.0, b, 0.0]], [0.0]) if *a == -*b && *b > 0.0 => {
                Some(BuiltIn::L1(*b))
            }
            ([0.0], [OUTSIDE, [0.0, 0.0, 0.0]], [0.0]) => Some(BuiltIn::NonNegative),
            _ => None,
        }
    }

    /// Whether h is a constraint somewhere.
    fn constrains(&self) -> bool {
        self.prices.pieces.contains(&OUTSIDE)
    }
}

impl From<&L0> for PiecewiseQuadratic {
    fn from(penalty: &L0) -> Self {
        Self::count(penalty.lambda, None)
    }
}

impl From<&L1> for PiecewiseQuadratic {
    fn from(penalty: &L1) -> Self {
        match &penalty.weights {
            Weights::Scalar(lambda) => Self::absolute(*lambda, None),
            Weights::Entrywise(weights) => Self::absolute(1.0, Some(weights.clone())),
        }
    }
}

impl From<&NonNegative> for PiecewiseQuadratic {
    fn from(_: &NonNegative) -> Self {
        Self::at_zero([OUTSIDE, [0.0; 3]], 0.0, None)
    }
}

/// Checks a parameter that has to be above a bound.
fn above(name: &'static str, value: f64, bound: f64) -> Result<()> {
    if value > bound && value <= LARGEST {
        return Ok(());
    }
    Err(Error::invalid(
        name,
        format!("must be above {bound} and at most {LARGEST:e}, got {value}"),
    ))
}

impl Penalty for PiecewiseQuadratic {
    type Kernel = Self;

    fn piece(&self, row: usize, column: usize, value: f64) -> Piece {
        let above = self.above(value);
        let mut piece = self.prices.pieces[above];
        for (weights, unit) in &self.weighted {
            let weight = weights[[row, column]];
            piece = [0, 1, 2].map(|k| piece[k] + weight * unit.pieces[above][k]);
        }
        piece
    }

    fn levels(&self) -> &[f64] {
        &self.breakpoints
    }

    fn entry(&self, row: usize, column: usize, value: f64) -> f64 {
        let above = self.above(value);
        let own = self.prices.entry(&self.breakpoints, above, value);
        let weighted = self.weighted.iter().map(|(weights, unit)| {
            weights[[row, column]] * unit.entry(&self.breakpoints, above, value)
        });
        own + weighted.sum::<f64>()
    }

    /// The best of the levels and of the stationary points inside the pieces.
    fn proximal(&self, row: usize, column: usize, value: f64, step: f64) -> f64 {
        let mut best = (f64::INFINITY, value);
        let mut offer = |price: f64, u: f64| {
            let total = price + 0.5 * (u - value) * (u - value) / step;
            if total < best.0 {
                best = (total, u);
            }
        };
        let mut from = f64::NEG_INFINITY;
        for (k, piece) in self.prices.pieces.iter().enumerate() {
            let (mut piece, mut at) = (*piece, self.prices.at.get(k).copied());
            for (weights, unit) in &self.weighted {
                let weight = weights[[row, column]];
                piece = [0, 1, 2].map(|l| piece[l] + weight * unit.pieces[k][l]);
                at = at.map(|price| price + weight * unit.at[k]);
            }
            let to = self.breakpoints.get(k).copied().unwrap_or(f64::INFINITY);
            let [a, b, c] = piece;
            let u = (value - step * b) / (1.0 + step * c);
            if a.is_finite() && 1.0 + step * c > 0.0 && u > from && u < to {
                offer(derived::at(piece, u), u);
            }
            if let Some(price) = at {
                offer(price, to);
            }
            from = to;
        }
        best.1
    }

    fn check(&self, n: usize, r: usize) -> Result<()> {
        (self.weighted.iter()).try_for_each(|(weights, _)| super::check_weights(weights, n, r))
    }

    fn on_rows(&self, rows: &[usize]) -> Option<Self> {
        Some(self.reweighted(|weights| weights.select(Axis(0), rows)))
    }

    fn transposed(&self) -> Option<Self> {
        Some(self.reweighted(|weights| weights.t().as_standard_layout().into_owned()))
    }

    fn tidy(&self, row: &mut [f64]) {
        if self.constrains() {
            for value in row {
                *value = self.nearest(*value);
            }
        }
    }

    fn infeasibility(&self, x: ArrayView2<'_, f64>) -> f64 {
        let squares = x.iter().map(|&v| (v - self.nearest(v)).powi(2));
        squares.sum::<f64>().sqrt()
    }

    fn squared_distance(&self) -> Option<Self> {
        let is_allowed =
            |v: f64| self.prices.entry(&self.breakpoints, self.above(v), v) < f64::INFINITY;
        let mut levels = self.breakpoints.clone();
        levels.retain(|&level| is_allowed(level));
        let middles = levels.windows(2).map(|ends| 0.5 * (ends[0] + ends[1]));
        let gaps: Vec<f64> = middles.filter(|&middle| !is_allowed(middle)).collect();
        levels.extend(gaps);
        levels.sort_by(f64::total_cmp);
        let within = levels.windows(2).map(|ends| 0.5 * (ends[0] + ends[1]));
        let (first, last) = (*levels.first()?, *levels.last()?);
        let places = std::iter::once(first - 1.0)
            .chain(within)
            .chain([last + 1.0]);
        let piece = |place: f64| match is_allowed(place) {
            true => [0.0; 3],
            false => {
                let nearest = self.nearest(place);
                [nearest * nearest, -2.0 * nearest, 2.0]
            }
        };
        let pieces = places.map(piece).collect();
        self.constrains()
            .then(|| Self::new(levels, pieces).ok())
            .flatten()
    }

    fn pair_work(&self) -> f64 {
        match &self.form {
            Form::Even(even) => even.pair_work(),
            Form::Nonnegative(..) => 1.0,
            Form::Jump => JUMP_WORK,
            Form::Any => exact::pair_work(&self.breakpoints),
        }
    }

    /// That of an entry of mean weight.
    fn sparsifies(&self) -> bool {
        let (low, high) = derived::subdifferential(&self.mean(), 0, 0, 0.0);
        low < 0.0 && high > 0.0
    }

    /// Whether 0 and values above it are allowed, and none below.
    fn nonnegative(&self) -> bool {
        let zero = self.breakpoints.iter().position(|&level| level == 0.0);
        zero.is_some_and(|k| {
            let below = &self.prices.pieces[..=k];
            self.prices.at[k] < f64::INFINITY && below.iter().all(|piece| *piece == OUTSIDE)
        })
    }

    /// A path runs through multiples of h.
    fn strength(&self) -> Option<f64> {
        self.sparsifies().then_some(1.0)
    }

    fn scaled(&self, factor: f64) -> Option<Self> {
        if !self.sparsifies() {
            return None;
        }
        let mut prices = self.prices.clone();
        prices.scale(factor);
        let weighted = self.reweighted(|weights| weights * factor).weighted;
        Some(Self::made(self.breakpoints.clone(), prices, weighted))
    }

    fn largest_strength(&self, gain: f64) -> f64 {
        let mean = self.mean();
        let price = mean.entry(0, 0, 1.0) - mean.entry(0, 0, 0.0);
        if price > 0.0 && price.is_finite() {
            gain / price
        } else {
            gain
        }
    }
}

impl Kernel<Self> for PiecewiseQuadratic {
    #[inline(always)]
    fn hyperbola(penalty: &Self, pair: &HyperbolaPair<'_>, scratch: &mut Scratch) -> BestBoost {
        Exact::hyperbola(penalty, pair, scratch)
    }

    #[inline(always)]
    fn circle<S: Simd>(
        penalty: &Self,
        simd: S,
        pair: &CirclePair<'_>,
        scratch: &mut Scratch,
    ) -> Best {
        match &penalty.form {
            Form::Even(even) => even.circle(simd, pair, scratch),
            &Form::Nonnegative(slope, jump) => nonnegative::circle(pair, (slope, jump), scratch),
            Form::Jump => {
                let weights = |row, column| penalty.jump_and_slope(row, column);
                jump::circle(weights, simd, pair, scratch)
            }
            Form::Any => Exact::circle(penalty, simd, pair, scratch),
        }
    }
}
