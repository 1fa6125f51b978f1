//! Bandit: selects heuristics by their gain per unit of work.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::arms::Arm;

/// Factor by which earlier results are discounted.
const MEMORY: f64 = 0.7;

/// Probability of choosing a random heuristic.
const CURIOSITY: f64 = 0.25;

/// Credit of an arm.
#[derive(Debug, Clone)]
struct Credit {
    heuristic: usize,
    /// Discounted sum of rewards, each from 0 to 1, and of the work, in units of the work per run.
    reward: f64,
    slices: f64,
}

/// The bandit over the improvement heuristics.
#[derive(Debug, Default)]
pub(super) struct Select {
    credits: Vec<Credit>,
    /// Gain that gets the reward ½.
    typical: f64,
}

impl Select {
    /// Returns the credit of an arm; at first its prior is the reward of one run.
    fn credit(&mut self, arm: &Arm) -> &mut Credit {
        let at = self.credits.iter().position(|credit| credit.heuristic == arm.heuristic);
        let at = at.unwrap_or_else(|| {
            self.credits.push(Credit { heuristic: arm.heuristic, reward: arm.prior.success, slices: 1.0 });
            self.credits.len() - 1
        });
        &mut self.credits[at]
    }

    /// Selects `width` arms: mostly the best, some at random.
    pub(super) fn choose(&mut self, arms: &[Arm], width: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<usize> {
        let rates: Vec<f64> = (arms.iter())
            .map(|arm| {
                let credit = self.credit(arm);
                credit.reward / credit.slices
            })
            .collect();
        let mut order: Vec<usize> = (0..arms.len()).collect();
        order.sort_by(|&a, &b| rates[b].total_cmp(&rates[a]).then(a.cmp(&b)));
        let best = rates[order[0]];
        let good = order.iter().filter(|&&k| rates[k] > 0.5 * best).count();
        (0..width)
            .map(|w| match rng.random::<f64>() < CURIOSITY {
                true => rng.random_range(0..arms.len()),
                false => order[w % good.max(1)],
            })
            .collect()
    }

    /// Records a run that took `slices` times the work per run.
    pub(super) fn note(&mut self, arm: &Arm, gain: f64, slices: f64) {
        let reward = if gain > 0.0 { gain / (gain + self.typical) } else { 0.0 };
        let credit = self.credit(arm);
        credit.reward = MEMORY * credit.reward + reward;
        credit.slices = MEMORY * credit.slices + slices.max(0.05);
    }

    /// Ends a round with the given largest gain.
    pub(super) fn end_round(&mut self, gain: f64) {
        self.typical = MEMORY * self.typical + (1.0 - MEMORY) * gain;
    }
}
