//! Components with disjoint supports, by [annealing and growth](crate::support::Disjoint).

use ndarray::Array2;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::profile::{Kind, Profile};
use super::{Heuristic, LEAST, LIKELY, POSSIBLE, Prior, Task, UNLIKELY};
use crate::continuation::top_diagonal;
use crate::support::{Disjoint, TEMPERATURE};

/// First temperature of an improvement of heat 1, in units of that of a restart.
const WARM: f64 = 0.6;

/// First temperature of an improvement of heat 0, in units of that of heat 1.
const COOLEST: f64 = 0.25;

/// Returns columns without rows, with the penalty of an arbitrarily small nonzero.
fn begun<'a>(task: &'a Task<'_>) -> Option<Disjoint<'a>> {
    let (oracle, penalty) = (task.oracle, task.problem().penalty);
    let price = penalty.entry(0, 0, f64::MIN_POSITIVE) - penalty.entry(0, 0, 0.0);
    let p = task.known.covariance.as_ref()?;
    let rules = (price, penalty.nonnegative());
    let r = oracle.columns();
    Some(Disjoint::empty(p, r, rules, oracle.convexity, task.limit))
}

/// Annealed disjoint supports.
pub(super) struct Supports;

impl Heuristic for Supports {
    fn name(&self) -> &'static str {
        "supports"
    }

    fn fits(&self, profile: &Profile, improve: bool) -> Option<Prior> {
        let success = match (profile.kind, profile.is_dense()) {
            (Kind::Nonnegative, _) | (Kind::Count, false) => LIKELY,
            (Kind::Count, true) if improve => UNLIKELY,
            _ => POSSIBLE,
        };
        (profile.whole && profile.is_disjoint()).then(|| Prior::new(success, LEAST))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let (first, last) = TEMPERATURE;
        let (x, first) = match task.from {
            Some(best) => {
                let heat = first * WARM * COOLEST.powf(1.0 - task.heat);
                (best.clone(), heat)
            }
            None if task.profile.kind == Kind::Count && task.run == 0 => {
                let form = task.oracle.form?;
                (top_diagonal(form, task.oracle.columns()), first)
            }
            None => (task.known.basis.rotated.clone(), first),
        };
        let mut state = begun(task)?;
        state.set(&x);
        state.anneal((first, last), &mut Xoshiro256PlusPlus::seed_from_u64(task.seed));
        Some(state.matrix(false))
    }
}

/// Forward selection with disjoint supports; columns are emptied and grown again.
pub(super) struct Forward;

impl Heuristic for Forward {
    fn name(&self) -> &'static str {
        "forward"
    }

    fn fits(&self, profile: &Profile, _: bool) -> Option<Prior> {
        let success = if profile.is_dense() { 0.0 } else { LIKELY };
        let fits = profile.columns && profile.kind == Kind::Count;
        fits.then(|| Prior::new(success, LEAST))
    }

    fn run(&self, task: &Task<'_>) -> Option<Array2<f64>> {
        let covariance = task.known.covariance.as_ref()?;
        // With many nonzeros, the columns of C would take more than the remaining work.
        let nonzeros = |x: &Array2<f64>| x.iter().filter(|v| **v != 0.0).count();
        let rows = task.from.map_or(0, nonzeros);
        if rows as f64 * covariance.first_use() > task.oracle.work.left() {
            return None;
        }
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(task.seed);
        let mut state = begun(task)?;
        match task.from {
            Some(x) => {
                state.set(x);
                state.complete_all();
            }
            None => state.grow_all(),
        }
        while state.goes_on() {
            state.regrow(&mut rng);
        }
        Some(state.matrix(true))
    }
}
