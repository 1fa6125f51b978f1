//! Probability that an entity is a candidate, and the weight of a candidate that corrects for it.
//!
//! The candidates of a triple are its own two entities, those of the other b − 1 triples of its batch, and k
//! drawn ones of all N. An entity outside of the triple, held by m of the M training triples, is a candidate
//! with `p = 1 − (1 − k/N)·C(M−1−m, b−1)/C(M−1, b−1)`, and `Σ f(e)/p_e` over the candidates estimates the sum
//! over all entities without bias (Horvitz and Thompson, JASA 1952). Uncorrected, a frequent entity is pushed
//! away from nearly every triple and a rare one from few, which biases the ranking. With k ≥ N all p are 1.

use super::embedding::Triple;

/// Number of training triples that hold each entity.
pub(super) struct Counts {
    held: Vec<usize>,
    triples: usize,
}

impl Counts {
    pub(super) fn new(triples: &[Triple], entities: usize) -> Self {
        let mut held = vec![0; entities];
        for &[h, _, t] in triples {
            held[h] += 1;
            if t != h {
                held[t] += 1;
            }
        }
        Self { held, triples: triples.len() }
    }

    /// Returns 1/p of every entity, for batches of `batch` triples and `drawn` other entities. O(N + max m).
    pub(super) fn weights(&self, batch: usize, drawn: usize) -> Vec<f64> {
        let missed = 1.0 - drawn as f64 / self.held.len() as f64;
        let most = self.held.iter().copied().max().unwrap_or(0);
        let others = self.triples.saturating_sub(1);
        // The quotient of the binomials for m + 1 follows from the one for m.
        let mut absent = 1.0;
        let mut of_count = Vec::with_capacity(most + 1);
        for m in 0..=most {
            of_count.push(1.0 / (1.0 - missed * absent));
            let rest = others.saturating_sub(m);
            absent *= if rest < batch { 0.0 } else { 1.0 - (batch - 1) as f64 / rest as f64 };
        }
        self.held.iter().map(|&m| of_count[m]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the share of all batches of two more triples and draws of two entities with each candidate.
    fn counted(others: &[Triple], entities: usize) -> Vec<f64> {
        let pairs = |n: usize| (0..n).flat_map(move |i| (0..i).map(move |j| [i, j]));
        let (mut held, mut all) = (vec![0.0; entities], 0.0);
        for batch in pairs(others.len()) {
            for drawn in pairs(entities) {
                let mut there = vec![false; entities];
                for e in batch.iter().flat_map(|&i| [others[i][0], others[i][2]]) {
                    there[e] = true;
                }
                drawn.iter().for_each(|&e| there[e] = true);
                all += 1.0;
                for (sum, there) in held.iter_mut().zip(there) {
                    *sum += f64::from(u8::from(there));
                }
            }
        }
        held.into_iter().map(|sum| sum / all).collect()
    }

    #[test]
    fn weights_are_the_inverse_probabilities() {
        // Entities 0 and 1 are in the first triple, 5 is in none, 2 in all others but one, 6 in a loop.
        let triples = [[0, 0, 1], [2, 0, 3], [3, 1, 2], [2, 0, 4], [6, 0, 6], [4, 0, 2]];
        let weights = Counts::new(&triples, 7).weights(3, 2);
        let probabilities = counted(&triples[1..], 7);
        for e in 2..7 {
            let gap = 1.0 / weights[e] - probabilities[e];
            assert!(gap.abs() <= 1e-15, "{e}: {gap:e}");
        }
    }

    #[test]
    fn what_is_always_a_candidate_counts_once() {
        let triples = [[0, 0, 1], [1, 0, 2], [2, 0, 0]];
        for (batch, drawn) in [(1, 4), (2, 4), (3, 4)] {
            assert_eq!(Counts::new(&triples, 4).weights(batch, drawn), [1.0; 4]);
        }
        // A batch of all triples, and one entity in none of them.
        let weights = Counts::new(&triples, 4).weights(3, 1);
        assert_eq!(weights, [1.0, 1.0, 1.0, 4.0]);
        let alone = Counts::new(&triples[..1], 3).weights(1, 1);
        assert!((alone[2] - 3.0).abs() <= 1e-14, "{alone:?}");
    }
}
