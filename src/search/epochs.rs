//! The sequence of a search without a limit on nonzeros: epochs, whose work doubles.
//!
//! In the first, all heuristics make new starts. In each later one descents by exact pairs come first, then new starts of the
//! heuristics that reached the lowest F so far, then rounds of improvements.

use std::iter;

use ndarray::{Array2, ArrayView2};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::answer;
use super::arms::{self, Arm, STRETCH};
use super::candidate::{Candidate, JobResult};
use super::decrease::{Decrease, FADING};
use super::incumbent::Incumbent;
use super::policy::POLICY;
use super::rounds::{Job, RUN, Rounds};
use super::select::Select;
use super::sequence::Sequence;
use crate::heuristic::Kind;
use crate::numerics;
use crate::pool::decorrelated;
use crate::solver::{Status, WORK_UNIT, solution_work};
use crate::start;

/// Multiple of the least work of a heuristic for a first start where h favours no zeros.
const AMPLE: f64 = 4.0;

/// Multiple of the least work for a first start whose iterations are costly.
const EARLY: f64 = 0.125;

/// Least number of arms of an epoch.
const FEW: usize = 2;

/// Epochs in which makers share the new starts. A later epoch has one maker, in turn the one that reached the lowest F and the
/// one with the shortest runs, so that its run is as long as all earlier ones together.
const TOGETHER: u32 = 3;

/// Factor by which the expected gain of longer runs fades with every run.
const FADING_GAIN: f64 = 0.5;

/// Doublings of its run for which a maker waits at most, however far it is behind.
const LONGEST_WAIT: f64 = 10.0;

/// A start is repeated if its slice grows by at least this factor; otherwise another start follows.
const LONGER: f64 = 1.3;

/// Rounds of improvements without a decrease of F after which an epoch ends, and a search on whose point different starts
/// agree.
const IDLE_ROUNDS: usize = 2;

/// A descent by exact pairs alone comes as soon as this number of sweeps takes at most half of a later epoch.
const DESCENT_SWEEPS: f64 = 20.0;

/// Part of a work unit that allows a descent by exact pairs at the end of a search.
const DESCENT_UNITS: f64 = 0.2;

/// Mixed signatures: first slice of the descent from the given start, as a part of a work unit.
const MIXED_SLICE: f64 = 0.01;

/// Mixed signatures: number of starts.
const MIXED_STARTS: f64 = 4.0;

/// Mixed signatures: largest product of the number of starts and n²r for an effort of 1.
const MIXED_WORK: f64 = 64e3;

/// What the runs of a heuristic led to.
#[derive(Clone, Copy)]
struct Reached {
    /// Number of the present start; a start that more work does not improve is followed by another one.
    start: usize,
    /// Slice of the last run.
    slice: f64,
    /// Doublings of the slice by the last run.
    doublings: f64,
    /// The lowest F.
    objective: f64,
}

impl Reached {
    /// Before the first run.
    const NOTHING: Self = Self { start: 0, slice: 0.0, doublings: 0.0, objective: f64::INFINITY };
}

/// A search after its preparation.
pub(super) struct Epochs<'s, 'a> {
    rounds: Rounds<'s>,
    incumbent: &'s mut Incumbent<'a>,
    /// The point from which the search began.
    first: Array2<f64>,
    /// Work of a default search.
    unit: f64,
    /// By heuristic.
    reached: Vec<Reached>,
    /// Number of every start of a maker, and F of its point.
    starts: Vec<(usize, f64)>,
    /// Number of jobs, and of improvements since the last decrease of F.
    jobs: u64,
    idle: usize,
    /// What polishing a new point can bring.
    decrease: Decrease,
    /// What a run of twice the work can bring below the lowest point of its maker.
    longer: Decrease,
    select: Select,
    /// Number of descents by exact pairs alone.
    descents: u64,
    rng: Xoshiro256PlusPlus,
    /// Number of the next epoch, and its work.
    epoch: u32,
    length: f64,
}

impl<'s, 'a> Epochs<'s, 'a> {
    /// Begins a search: with the points that need no iterations, or the descent from the given start.
    pub(super) fn begun(rounds: Rounds<'s>, incumbent: &'s mut Incumbent<'a>, unit: f64) -> Self {
        let mut search = Self {
            first: incumbent.best.x.clone(),
            unit,
            reached: vec![Reached::NOTHING; rounds.heuristics.len()],
            starts: Vec::new(),
            jobs: 0,
            idle: 0,
            decrease: Decrease::UNKNOWN,
            longer: Decrease::UNKNOWN,
            select: Select::default(),
            descents: 0,
            rng: Xoshiro256PlusPlus::seed_from_u64(rounds.options.seed),
            epoch: 0,
            length: 0.0,
            rounds,
            incumbent,
        };
        let mixed = search.rounds.profile.mixed;
        if search.rounds.makers.is_none() && !mixed {
            search.free_points();
        }
        search.length = match mixed {
            true => search.descend_given(),
            false => search.first_length(),
        };
        search
    }

    /// Makes the points that need no iterations.
    fn free_points(&mut self) {
        let free = arms::free(&self.rounds).into_iter();
        let named = |k: usize| Job { heuristic: Some(k), ..Job::taken(self.rounds.heuristics[k].name(), false, false) };
        let jobs: Vec<Job> = free.map(named).collect();
        let from = self.first.clone();
        let froms = vec![&from; jobs.len()];
        let slice = POLICY.first * self.unit;
        self.rounds.run(self.incumbent, &jobs, &froms, slice);
    }

    /// With a mixed signature: descends from the given start, in slices of doubling work, until the point rests; returns
    /// the work of an epoch.
    fn descend_given(&mut self) -> f64 {
        let begun = self.incumbent.spent;
        let mut slice = MIXED_SLICE * WORK_UNIT;
        let mut name = "given";
        while !self.is_over() && !self.incumbent.best.stationary {
            let from = self.incumbent.best.x.clone();
            let job = Job { sweeps: self.sweeps_left(), ..Job::taken(name, true, name != "given") };
            let found = self.rounds.run(self.incumbent, &[job], &[&from], slice);
            if found.iter().all(Option::is_none) {
                break;
            }
            name = "polish";
            slice *= 2.0;
        }
        let spent = self.incumbent.spent - begun;
        4.0 * POLICY.lanes as f64 * spent.max(MIXED_SLICE * WORK_UNIT)
    }

    /// Returns the work of the first epoch, in which the heuristic of the least needs gets what it needs. Others have as
    /// much.
    fn first_length(&self) -> f64 {
        let arms = arms::starting(&self.rounds);
        let needs = arms.iter().map(|arm| arm.need(&self.rounds));
        let profile = &self.rounds.profile;
        let cheap = profile.quadratic && !profile.is_costly();
        let ample = match cheap {
            true if self.is_smooth() => AMPLE,
            // First results come early where iterations are costly, or their seconds are not known.
            false if profile.is_sparse() => EARLY,
            _ => 1.0,
        };
        let slice = ample * needs.fold(f64::INFINITY, f64::min);
        let need = slice * arms.len() as f64 / POLICY.raw;
        (POLICY.first * self.unit).max(need.min(self.unit / 4.0))
    }

    /// Returns the work after which the search ends by itself.
    fn own(&self) -> f64 {
        match self.rounds.profile.mixed {
            true => f64::INFINITY,
            false => self.rounds.options.effort * self.unit,
        }
    }

    /// Returns whether h favours no zeros.
    fn is_smooth(&self) -> bool {
        matches!(self.rounds.profile.kind, Kind::Smooth | Kind::Other)
    }

    /// Returns the number of starts with a mixed signature and an effort of 1.
    fn mixed_starts(&self) -> f64 {
        let profile = &self.rounds.profile;
        let size = (profile.rows * profile.rows * profile.components) as f64;
        (MIXED_WORK / size).floor().clamp(1.0, MIXED_STARTS)
    }

    /// Returns whether enough different starts led to the incumbent, and improvements have found nothing since. The first
    /// starts of all makers count as one. Where optima are sparse, makers can agree on a point that is not the best.
    fn agrees(&self) -> bool {
        if !self.is_smooth() {
            return false;
        }
        let level = self.incumbent.best.objective + self.rounds.options.tol * self.incumbent.size();
        let agreeing = || self.starts.iter().filter(|start| start.1 <= level);
        let first = usize::from(agreeing().any(|start| start.0 == 0));
        let others = agreeing().filter(|start| start.0 > 0).count();
        (first + others) as f64 >= self.rounds.options.effort * POLICY.agreement as f64
            && (self.idle >= IDLE_ROUNDS || !self.improves())
            && self.incumbent.best.stationary
    }

    /// Runs an epoch of `length` work.
    fn epoch(&mut self, epoch: u32, length: f64) {
        let mut rounds = (0, 0.0);
        let starts = POLICY.starts[match self.rounds.profile.kind {
            _ if !self.rounds.profile.quadratic => 0,
            Kind::Nonnegative => 1,
            _ => 2,
        }];
        if epoch > 0 {
            rounds = self.affordable((1.0 - starts) * length);
            // A limit may cut the long run of a maker that follows.
            self.descend(length);
        }
        let share = if rounds.0 == 0 { 1.0 } else { starts };
        let before = self.incumbent.best.objective;
        self.start(epoch, share * length);
        self.improve(rounds);
        if self.incumbent.best.objective < before {
            self.settle(POLICY.polish * length);
        }
    }

    /// Returns whether makers improve the incumbent; a limit on sweeps excludes it.
    fn improves(&self) -> bool {
        self.rounds.options.max_sweeps.is_none() && !arms::improving(&self.rounds, f64::INFINITY).is_empty()
    }

    /// Returns the number of rounds of improvements that `work` allows, and the slice of one improvement.
    fn affordable(&self, work: f64) -> (usize, f64) {
        let profile = &self.rounds.profile;
        if !self.improves() {
            return (0, 0.0);
        }
        let each = work / POLICY.lanes as f64;
        let least = match profile.mixed {
            true => 0.0,
            false => {
                let size = profile.rows * profile.rows * profile.components;
                let arms = arms::improving(&self.rounds, f64::INFINITY);
                let need = arms.first().map_or(0.0, |arm| arm.need(&self.rounds));
                (need / STRETCH).max(POLICY.improvement * size as f64)
            }
        };
        let slice = (each / POLICY.rounds as f64).max(least);
        ((each / slice) as usize, slice)
    }

    /// Returns the arms of the new starts of an epoch of which one may take `slice`, best first.
    fn candidates(&self, epoch: u32, slice: f64) -> Vec<Arm> {
        let mut arms = arms::starting(&self.rounds);
        let reached = |arm: &Arm| self.reached[arm.heuristic];
        arms.sort_by(|a, b| reached(a).objective.total_cmp(&reached(b).objective));
        if epoch >= TOGETHER && !self.is_smooth() && !self.rounds.profile.mixed {
            let all: Vec<Reached> = arms.iter().map(reached).collect();
            return turn(&all, self.longer, epoch, slice).map(|k| arms[k]).into_iter().collect();
        }
        let count = arms.len().checked_shr(epoch).unwrap_or(0).max(FEW);
        arms.truncate(count);
        arms
    }

    /// Returns the arms of the new starts of an epoch that has `work` for these.
    fn arms_within(&self, epoch: u32, work: f64) -> Vec<Arm> {
        let mut arms = self.candidates(epoch, POLICY.raw * work);
        if self.rounds.profile.mixed {
            let left = self.mixed_starts() - 1.0 - self.jobs as f64;
            let most = match self.rounds.options.effort > 1.0 {
                true => POLICY.lanes,
                false => (left as usize).min(POLICY.lanes),
            };
            arms = arms.first().map_or(Vec::new(), |arm| vec![*arm; most]);
        }
        arms
    }

    /// Returns the start of the caller if the first epoch takes it.
    fn given(&self, epoch: u32) -> Option<Array2<f64>> {
        let wanted = match &self.rounds.makers {
            Some(makers) => makers.iter().any(|maker| maker == "given"),
            None => !self.rounds.profile.mixed,
        };
        let given = self.rounds.known.given.as_ref();
        given.filter(|_| epoch == 0 && wanted).cloned()
    }

    /// Runs the new starts of an epoch, with `work` for all of them and for polishing their best points.
    fn start(&mut self, epoch: u32, work: f64) {
        let arms = self.arms_within(epoch, work);
        let profile = &self.rounds.profile;
        let each = self.is_smooth() || profile.mixed || !profile.quadratic;
        let given = self.given(epoch);
        let offset = usize::from(given.is_some());
        let share = if each { 1.0 } else { POLICY.raw };
        let slice = share * work / (offset + arms.len()).max(1) as f64;
        let mut jobs: Vec<Job> = Vec::new();
        if given.is_some() {
            let polished = each || self.rounds.makers.is_some();
            jobs.push(Job::taken("given", polished, false));
        }
        for arm in &arms {
            let start = self.number(arm, slice);
            jobs.push(self.job(*arm, start, each));
        }
        self.limit_sweeps(&mut jobs);
        let from = given.unwrap_or_else(|| self.first.clone());
        let froms = vec![&from; jobs.len()];
        let found = self.rounds.run(self.incumbent, &jobs, &froms, slice);
        let made = jobs.iter().zip(&found).skip(offset);
        for (job, found) in made.filter_map(|(job, found)| Some((job, found.as_ref()?))) {
            self.reach(job, found.candidate.objective);
        }
        if !each {
            self.polish_best(found.into_iter().flatten().collect(), (1.0 - POLICY.raw) * work);
        }
    }

    /// Polishes the best of the points of new starts that this can be expected to bring below the incumbent.
    fn polish_best(&mut self, mut found: Vec<JobResult>, work: f64) {
        found.sort_by(|a, b| a.candidate.objective.total_cmp(&b.candidate.objective));
        let goal = self.incumbent.best.objective;
        let points: Vec<Candidate> = (found.into_iter())
            .take(POLICY.polished)
            .map(|found| found.candidate)
            .filter(|point| self.decrease.reaches(point.objective, goal))
            .collect();
        let found = self.polish(&points, work);
        for (point, found) in points.iter().zip(&found) {
            if let Some(found) = found {
                self.decrease.note(point.objective - found.candidate.objective, FADING);
            }
        }
    }

    /// Returns the number of the next start of an arm, which gets `slice` of work.
    fn number(&mut self, arm: &Arm, slice: f64) -> usize {
        let own = &mut self.reached[arm.heuristic];
        own.start += usize::from(slice < LONGER * own.slice);
        own.doublings = (slice / own.slice).log2();
        own.slice = slice;
        own.start
    }

    /// Records what a start led to.
    fn reach(&mut self, job: &Job, objective: f64) {
        let Some(heuristic) = job.heuristic else {
            return;
        };
        self.starts.push((job.run, objective));
        let least = numerics::GAIN * self.incumbent.size();
        let own = &mut self.reached[heuristic];
        if own.objective.is_finite() {
            let gain = (own.objective - objective).max(0.0);
            self.longer.note(gain / own.doublings.max(1.0), FADING_GAIN);
        }
        match objective < own.objective - least {
            true => own.objective = objective,
            false => own.start += 1,
        }
    }

    fn job(&mut self, arm: Arm, start: usize, polished: bool) -> Job {
        self.jobs += 1;
        let stream = (arm.heuristic as u64) << 32 | start as u64;
        Job {
            heuristic: Some(arm.heuristic),
            run: start,
            heat: self.rng.random(),
            seed: decorrelated(self.rounds.options.seed, stream),
            ..Job::taken(self.rounds.heuristics[arm.heuristic].name(), polished, false)
        }
    }

    /// Runs rounds of improvements, each of which gets `slice` of work, and more while they gain much.
    fn improve(&mut self, (rounds, slice): (usize, f64)) {
        let (mut made, mut vain, mut gains) = (0, 0, false);
        while made < rounds || gains {
            if self.has_ended() || vain == IDLE_ROUNDS {
                return;
            }
            made += 1;
            let best = self.incumbent.best.clone();
            let arms = arms::improving(&self.rounds, slice);
            if arms.is_empty() {
                return;
            }
            let chosen = self.select.choose(&arms, POLICY.lanes, &mut self.rng);
            let jobs: Vec<Job> = chosen
                .iter()
                .map(|&k| {
                    let job = self.job(arms[k], 0, true);
                    Job { improve: true, seed: decorrelated(self.rounds.options.seed, self.jobs), ..job }
                })
                .collect();
            let froms = vec![&best.x; jobs.len()];
            let found = self.rounds.run(self.incumbent, &jobs, &froms, slice);
            let least = numerics::GAIN * self.incumbent.size();
            let mut largest = 0.0f64;
            for (&k, found) in chosen.iter().zip(&found) {
                let Some(found) = found else { continue };
                // Where h favours no zeros, most improvements are new starts.
                self.starts.push((usize::MAX, found.candidate.objective));
                let gain = best.objective - found.candidate.objective;
                let gain = if gain > least { gain } else { 0.0 };
                self.select.note(&arms[k], gain, found.work / slice);
                largest = largest.max(gain);
            }
            self.select.end_round(largest);
            self.idle = if largest > 0.0 { 0 } else { self.idle + 1 };
            vain = if largest > 0.0 { 0 } else { vain + 1 };
            gains = largest > POLICY.gain * self.incumbent.size();
        }
    }

    /// Polishes an incumbent that does not rest. It does if the polished point rests and is lower by no more than rounding.
    fn settle(&mut self, work: f64) {
        if self.is_over() || self.incumbent.best.stationary {
            return;
        }
        let best = [self.incumbent.best.clone()];
        let found = self.polish(&best, work);
        let least = numerics::GAIN * self.incumbent.size();
        if let [Some(JobResult { candidate, .. })] = &found[..]
            && candidate.stationary
            && candidate.objective >= best[0].objective - least
        {
            self.incumbent.best.stationary = true;
            self.incumbent.best.noisy = candidate.noisy;
        }
    }

    /// Polishes points, together with `work`; returns the results.
    fn polish(&mut self, points: &[Candidate], work: f64) -> Vec<Option<JobResult>> {
        if points.is_empty() || self.is_over() {
            return Vec::new();
        }
        let mut jobs: Vec<Job> = points.iter().map(|point| Job::taken(&point.name, true, true)).collect();
        self.limit_sweeps(&mut jobs);
        let froms: Vec<&Array2<f64>> = points.iter().map(|point| &point.x).collect();
        let slice = work / jobs.len() as f64;
        self.rounds.run(self.incumbent, &jobs, &froms, slice)
    }

    /// Descends by exact pairs alone, once half of `work` allows it, so that no search ends above such a descent. Where
    /// descents are cheap, later epochs have more of them, from random starts.
    fn descend(&mut self, work: f64) {
        let problem = self.rounds.problem;
        let (n, r) = (problem.smooth.rows(), problem.components);
        let each = RUN + DESCENT_SWEEPS * (n * (n - 1) / 2) as f64 * solution_work(problem.penalty, r);
        let limited = self.rounds.makers.is_some() || self.rounds.options.max_sweeps.is_some();
        if limited || self.rounds.profile.mixed || self.is_over() {
            return;
        }
        let count = match self.descents {
            0 => u64::from(2.0 * each <= work),
            _ if problem.smooth.quadratic().is_none() => 0,
            _ => (POLICY.polish * work / each) as u64,
        };
        if self.descents > 0 && count < POLICY.lanes as u64 {
            return;
        }
        let starts: Vec<Array2<f64>> = (0..count).map(|k| self.descent_start(self.descents + k)).collect();
        self.descents += count;
        let jobs = vec![Job { plain: true, ..Job::taken("descent", true, false) }; starts.len()];
        let froms: Vec<&Array2<f64>> = starts.iter().collect();
        self.rounds.run(self.incumbent, &jobs, &froms, 0.5 * work / (count.max(1)) as f64);
    }

    /// Returns a start of a descent. The first one for a quadratic form is a partition if X ≥ 0 and the identity otherwise,
    /// later ones are random; the first point of the search replaces a start that h forbids.
    fn descent_start(&self, number: u64) -> Array2<f64> {
        let problem = self.rounds.problem;
        let (n, r) = (problem.smooth.rows(), problem.components);
        let seed = decorrelated(self.rounds.options.seed, number);
        let allowed = |x: ArrayView2<'_, f64>| problem.check_point(x).is_ok();
        let own = self.rounds.known.given.is_none() && problem.smooth.quadratic().is_some();
        let start = match number {
            _ if problem.penalty.nonnegative() => start::partition_within((n, r), seed, allowed),
            0 => start::identity(n, r),
            _ => start::random(n, r, seed),
        };
        match (own || number > 0) && allowed(start.view()) {
            true => self.rounds.on_all_rows(start),
            false => self.first.clone(),
        }
    }

    /// Divides the sweeps that are left among jobs; if fewer are left, the first jobs have one each.
    fn limit_sweeps(&self, jobs: &mut [Job]) {
        let (sweeps, count) = (self.sweeps_left(), jobs.len() as u64);
        for (k, job) in (0..).zip(jobs) {
            job.sweeps = sweeps.map(|left| (left / (count + 2)).max(u64::from(k < left)));
        }
    }

    /// Returns the sweeps left until their limit is reached.
    fn sweeps_left(&self) -> Option<u64> {
        let n = self.first.nrows() as u64;
        let made = self.incumbent.iterations.div_ceil(n * (n - 1) / 2);
        let limit = self.rounds.options.max_sweeps;
        limit.map(|limit| limit.saturating_sub(made))
    }
}

impl<'a> Sequence<'a> for Epochs<'_, 'a> {
    fn incumbent(&mut self) -> &mut Incumbent<'a> {
        self.incumbent
    }

    fn advance(&mut self) -> bool {
        let (mixed, begun) = (self.rounds.profile.mixed, self.incumbent.spent);
        let left = self.own() - begun;
        let length = self.length.min(left);
        self.epoch(self.epoch, length);
        self.epoch += 1;
        self.length = if mixed { length } else { 2.0 * length };
        // An epoch without work means that no maker fits, or that none can begin with the work that is left.
        self.incumbent.spent > begun || !mixed && length < left
    }

    fn optimum(&self) -> f64 {
        let gap = numerics::GAIN * self.incumbent.size();
        self.rounds.profile.optimum.map_or(f64::NEG_INFINITY, |optimum| optimum + gap)
    }

    fn is_swept(&self) -> bool {
        self.sweeps_left() == Some(0)
    }

    fn idle_work(&self) -> f64 {
        match self.rounds.profile.mixed {
            true => f64::INFINITY,
            false => POLICY.idle * self.unit,
        }
    }

    fn is_done(&self) -> bool {
        if self.rounds.profile.mixed {
            return self.jobs as f64 + 1.0 >= self.rounds.options.effort * self.mixed_starts();
        }
        // An epoch of little work brings nothing.
        self.incumbent.spent >= self.own() - POLICY.first * self.unit || self.agrees()
    }

    fn finish(&mut self) {
        if self.descents == 0 {
            self.descend(DESCENT_UNITS * WORK_UNIT);
        }
        self.settle(POLICY.last * self.unit.min(WORK_UNIT));
        if !self.is_over() && self.rounds.reduced.is_some() {
            self.incumbent.best.stationary = false;
            answer::descend(self.incumbent, self.unit, POLICY.last * WORK_UNIT, false, self.rounds.threads);
        }
        if !self.is_over() {
            let best = &self.incumbent.best;
            self.incumbent.status = Some(match (best.stationary, best.noisy) {
                (true, true) => Status::Noise,
                (true, false) => Status::Converged,
                // The polish ran out of work.
                _ => Status::MaxWork,
            });
        }
    }
}

/// Returns which maker a later epoch with runs of `slice` belongs to, of makers by their lowest F: in turn the best and the one
/// with the shortest runs. A maker is left out while its run is too short to come as low as the best, if each doubling gains
/// what `longer` expects, but not for ever.
fn turn(makers: &[Reached], longer: Decrease, epoch: u32, slice: f64) -> Option<usize> {
    let best = makers.first()?.objective;
    let needed = |own: &Reached| own.slice * longer.times(own.objective - best).min(LONGEST_WAIT).exp2();
    let later = (1..makers.len()).filter(|&k| !(needed(&makers[k]) > slice));
    match epoch.is_multiple_of(2) {
        true => iter::once(0).chain(later).min_by(|&a, &b| makers[a].slice.total_cmp(&makers[b].slice)),
        false => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maker(objective: f64, slice: f64) -> Reached {
        Reached { objective, slice, ..Reached::NOTHING }
    }

    /// The longest runs of makers after forty epochs, whose runs double; one of maker k brings it lower by `gains[k]`.
    fn longest(gains: &[f64]) -> Vec<f64> {
        let mut makers: Vec<Reached> = (0..gains.len()).map(|k| maker(k as f64, 1.0)).collect();
        let mut longer = Decrease::UNKNOWN;
        for epoch in TOGETHER..TOGETHER + 40 {
            let mut order: Vec<usize> = (0..gains.len()).collect();
            order.sort_by(|&a, &b| makers[a].objective.total_cmp(&makers[b].objective));
            let sorted: Vec<Reached> = order.iter().map(|&k| makers[k]).collect();
            let slice = f64::from(epoch).exp2();
            let k = order[turn(&sorted, longer, epoch, slice).unwrap()];
            longer.note(gains[k], FADING_GAIN);
            makers[k] = maker(makers[k].objective - gains[k], slice);
        }
        makers.iter().map(|maker| maker.slice).collect()
    }

    #[test]
    fn an_epoch_belongs_to_the_best_maker_or_to_the_one_of_the_shortest_runs() {
        assert_eq!(turn(&[], Decrease::UNKNOWN, 4, 1.0), None);
        let makers = [maker(-3.0, 4.0), maker(-2.0, 2.0), maker(f64::INFINITY, 0.0)];
        assert_eq!(turn(&makers, Decrease::UNKNOWN, 5, 8.0), Some(0));
        assert_eq!(turn(&makers, Decrease::UNKNOWN, 4, 8.0), Some(2));
        // A maker waits for a run in which it can come as low as the best: two doublings here.
        let mut longer = Decrease::UNKNOWN;
        longer.note(0.25, FADING_GAIN);
        assert_eq!(longer.times(1.0), 2.0);
        assert_eq!(turn(&makers[..2], longer, 4, 7.9), Some(0));
        assert_eq!(turn(&makers[..2], longer, 4, 8.0), Some(1));
        assert_eq!(turn(&makers[..2], longer, 5, 8.0), Some(0));
        // Without gains it waits long, and with equal F not at all.
        longer = Decrease::UNKNOWN;
        longer.note(0.0, FADING_GAIN);
        assert_eq!(turn(&makers[..2], longer, 4, 2.0 * 1023.0), Some(0));
        assert_eq!(turn(&makers[..2], longer, 4, 2.0 * 1024.0), Some(1));
        assert_eq!(turn(&[maker(-3.0, 4.0), maker(-3.0, 2.0)], longer, 4, 8.0), Some(1));
    }

    #[test]
    fn no_maker_is_forgotten() {
        for gains in [&[0.0, 0.0][..], &[0.0; 4], &[1e-3, 0.0, 1e-3], &[0.0, 2.0, 0.0]] {
            let longest = longest(gains);
            let most = longest.iter().fold(0.0, |most: f64, &run| most.max(run));
            let wait = (LONGEST_WAIT + 2.0 * gains.len() as f64).exp2();
            assert!(longest.iter().all(|&run| run * wait >= most), "{gains:?} {longest:?}");
        }
    }
}
