//! Which heuristic comes next: by what it has gained per unit of work.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

/// How fast old results are forgotten.
const MEMORY: f64 = 0.7;

/// How often another heuristic than the best one is tried.
const CURIOSITY: f64 = 0.25;

/// What one way of changing the best point has brought.
#[derive(Debug, Clone)]
struct Record {
    /// Rewards from 0 to 1, and the slices they took.
    reward: f64,
    slices: f64,
}

/// The bandit over the ways to change the best point.
#[derive(Debug)]
pub(super) struct Select {
    records: Vec<Record>,
    /// The size of a gain that counts half.
    typical: f64,
}

impl Select {
    /// One way for each hope.
    pub(super) fn new(hopes: &[f64]) -> Self {
        let records = hopes.iter().map(|&hope| Record {
            reward: hope,
            slices: 1.0,
        });
        Self {
            records: records.collect(),
            typical: 0.0,
        }
    }

    fn rate(&self, k: usize) -> f64 {
        self.records[k].reward / self.records[k].slices
    }

    /// The ways of one round: the most promising ones, now and then any.
    pub(super) fn choose(&self, width: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<usize> {
        let count = self.records.len();
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

    /// Takes note of a run that took so many slices.
    pub(super) fn note(&mut self, k: usize, gain: f64, slices: f64) {
        let reward = if gain > 0.0 {
            gain / (gain + self.typical)
        } else {
            0.0
        };
        let record = &mut self.records[k];
        record.reward = MEMORY * record.reward + reward;
        record.slices = MEMORY * record.slices + slices.max(0.05);
    }

    /// Ends a round, whose largest gain was so much.
    pub(super) fn end_round(&mut self, gain: f64) {
        self.typical = MEMORY * self.typical + (1.0 - MEMORY) * gain;
    }
}
