//! Bandit: selects heuristics by their gain per unit of work.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Factor by which earlier results are discounted.
const MEMORY: f64 = 0.7;

/// Probability of choosing a random heuristic.
const CURIOSITY: f64 = 0.25;

/// Credit of a heuristic.
#[derive(Debug, Clone)]
struct Credit {
    /// Discounted sum of rewards, each from 0 to 1, and of the work, in units of the work per run.
    reward: f64,
    slices: f64,
}

/// The bandit over the improvement heuristics.
#[derive(Debug)]
pub(super) struct Select {
    credits: Vec<Credit>,
    /// Gain that gets the reward ½.
    typical: f64,
}

impl Select {
    /// Starts every heuristic with its prior as the reward of one run.
    pub(super) fn new(priors: &[f64]) -> Self {
        let credits = priors.iter().map(|&prior| Credit {
            reward: prior,
            slices: 1.0,
        });
        Self {
            credits: credits.collect(),
            typical: 0.0,
        }
    }

    fn rate(&self, k: usize) -> f64 {
        self.credits[k].reward / self.credits[k].slices
    }

    /// Selects `width` heuristics: mostly the best, some at random.
    pub(super) fn choose(&self, width: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<usize> {
        let count = self.credits.len();
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|&a, &b| self.rate(b).total_cmp(&self.rate(a)).then(a.cmp(&b)));
        let best = self.rate(order[0]);
        let good = order.iter().filter(|&&k| self.rate(k) > 0.5 * best).count();
        (0..width)
            .map(|w| match rng.random::<f64>() < CURIOSITY {
                true => rng.random_range(0..count),
                false => order[w % good.max(1)],
            })
            .collect()
    }

    /// Records a run that took `slices` times the work per run.
    pub(super) fn note(&mut self, k: usize, gain: f64, slices: f64) {
        let reward = if gain > 0.0 {
            gain / (gain + self.typical)
        } else {
            0.0
        };
        let credit = &mut self.credits[k];
        credit.reward = MEMORY * credit.reward + reward;
        credit.slices = MEMORY * credit.slices + slices.max(0.05);
    }

    /// Ends a round with the given largest gain.
    pub(super) fn end_round(&mut self, gain: f64) {
        self.typical = MEMORY * self.typical + (1.0 - MEMORY) * gain;
    }
}
