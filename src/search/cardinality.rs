//! A given number of nonzeros: min f(X) over {XᵀX = I, ‖X‖₀ = count}.
//!
//! The ℓ0 *penalty* meets only the counts on the lower convex hull of f against ‖X‖₀; between them
//! the *constraint* has points that no λ reaches. From a point with about the right number, entries
//! are dropped or added until it is exact, then exchanged:
//!
//! * dropping `x_ik` costs about `t²(c_ii − λ_k)/(2(1 − t²))`, `t = x_ik`, `λ_k = ⟨x_k, C x_k⟩`;
//! * adding entry (i, k) gains about half of what the smaller eigenvalue of
//!   `[[λ_k, ρ], [ρ, c_ii]]` lies below `λ_k`, with ρ the entry of the Riemannian gradient.
//!
//! Both estimates are those of a single component at rest; they only rank the candidates. Every trial
//! is brought back to the manifold on its support (alternating projections and Newton's method), f is
//! minimised there by tangent steps, and it is kept only if f is lower. Trials exchange many
//! entries at first, half as many after every failure, and end with pairs one by one.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Instant;

use ndarray::{Array2, ArrayView2};

use crate::budget::{Clock, Meter};
use crate::error::{Error, Result};
use crate::heuristic::{Oracle, tangent};
use crate::linalg::symmetric;
use crate::manifold::{drift, project_on_support};
use crate::objective::QuadraticForm;
use crate::penalty::{L0, Penalty};
use crate::pool;
use crate::problem::Problem;
use crate::signature::Signature;
use crate::solver::{Control, Monitor, Options, Record, Solution, Status};
use crate::start::START_TOLERANCE;
use crate::threads::Threads;

/// Tangent steps of a trial, after how many it must be promising, and steps of the returned point.
const TRIAL_STEPS: usize = 40;
const PROBE_STEPS: usize = 8;
const FINAL_STEPS: usize = 2000;

/// Share of the surplus (or of the missing entries) that goes at once.
const AT_ONCE: usize = 4;

/// Single exchanges tried in a row without gain before the point is at rest: the best so many drops,
/// each with the best so many additions.
const DROPS: usize = 6;
const ADDITIONS: usize = 6;

/// Single additions tried when one is needed to reach the count.
const FORCED_ADDITIONS: usize = 200;

/// Least gain of an exchange, relative to |f| less its constant: smaller ones are many and change nothing that matters.
const LEAST_GAIN: f64 = 1e-6;

/// Most accepted exchanges.
const EXCHANGES: usize = 1000;

/// Most work without a time limit, see [`Meter`].
const WORK: f64 = 2e10;

/// Largest first value of an added entry.
const FIRST_VALUE: f64 = 0.3;

/// An entry of X.
type Entry = (usize, usize);

/// A feasible point and f there.
struct Point {
    x: Array2<f64>,
    value: f64,
}

/// Candidates for dropping and adding, best first, each with its estimated change of f and, for an
/// addition, its first value.
struct Candidates {
    drops: Vec<(f64, Entry)>,
    additions: Vec<(f64, f64, Entry)>,
}

/// Minimises f over the matrices with orthonormal columns and exactly `count` nonzero entries, from
/// `x0`, which may have another number.
///
/// The penalty only prices the returned point: its objective is `f + λ·count`. Without a time limit
/// the result depends on the arguments alone. The status is [`Status::Converged`] when no exchange
/// that was tried lowers f by 1e-6 of the part of it that is not constant, and [`Status::MaxSweeps`] when the
/// work that is done without a time limit (some ten seconds) did not reach that; None when no point with
/// that many nonzeros was found near `x0`, or not in time.
///
/// # Errors
/// If the problem, the options or `x0` are not valid, the signature is not all +1, `x0` does not have
/// orthonormal columns, or `count` is not between r and n·r.
pub fn minimize_at_count(
    problem: &Problem<'_, L0>,
    x0: ArrayView2<'_, f64>,
    count: usize,
    options: &Options,
    monitor: &mut dyn Monitor,
) -> Result<Option<Solution>> {
    let clock = Clock::limited(Instant::now(), options.max_time, options.max_work);
    let form = check(problem, x0, count, options)?;
    let r = problem.components;
    let free = L0 { lambda: 0.0 };
    let unpriced = Problem {
        smooth: problem.smooth,
        penalty: &free,
        signature: problem.signature,
        components: r,
    };
    let work = options.max_work.map_or(WORK, |limit| limit as f64);
    let meter = Meter::new(&clock, work);
    let price = problem.penalty.lambda * count as f64;
    let constant = problem.constant(Array2::eye(r).view());
    let news = Mutex::new(Vec::new());
    let mut history: Vec<Record> = Vec::new();
    let mut interrupted = false;
    // The search runs beside the calling thread, which alone can ask the monitor.
    let found = pool::run(
        1,
        1,
        &clock,
        |_| {
            let go_on = || !meter.expired();
            let spectrum = form.spectrum(&go_on)?;
            let search = Search {
                oracle: Oracle::new((&unpriced, form), Array2::eye(r), spectrum, &meter),
                constant,
                price,
                tolerance: options.tol,
                news: &news,
            };
            let mut point = search.at_count(x0.to_owned(), count)?;
            let status = search.exchange(&mut point);
            Some((point.x, status))
        },
        |_| {
            let mut control = monitor.poll();
            let rows = news.lock().map(|mut rows| std::mem::take(&mut *rows));
            for (record, x) in rows.unwrap_or_default() {
                let record: Record = record;
                history.push(record);
                if !interrupted && monitor.record(&record, ArrayView2::from(&x)) == Control::Stop {
                    control = Control::Stop;
                }
            }
            interrupted |= control == Control::Stop;
            control
        },
    );
    let Some((x, status)) = found.into_iter().flatten().flatten().next() else {
        return Ok(None);
    };
    let status = match interrupted {
        true => Status::Interrupted,
        false => status,
    };
    Ok(Some(priced(
        problem,
        x,
        status,
        history,
        (clock.seconds(), meter.spent()),
    )))
}

/// The point and its history, which cannot have been lower on the way.
fn priced(
    problem: &Problem<'_, L0>,
    x: Array2<f64>,
    status: Status,
    mut history: Vec<Record>,
    (seconds, work): (f64, f64),
) -> Solution {
    let smooth_value = problem.smooth.value(x.view(), &Threads::serial());
    let penalty_value = problem.penalty.value(x.view());
    let feasibility = feasibility(x.view());
    let last = Record {
        seconds,
        objective: smooth_value + penalty_value,
        feasibility,
        iterations: 0,
    };
    for record in &mut history {
        record.objective = record.objective.max(last.objective);
    }
    history.push(last);
    Solution {
        x,
        objective: last.objective,
        smooth_value,
        penalty_value,
        feasibility,
        status,
        iterations: 0,
        sweeps: 0,
        updates: 0,
        seconds,
        work,
        history,
        recession: None,
    }
}

fn check<'a>(
    problem: &Problem<'a, L0>,
    x0: ArrayView2<'_, f64>,
    count: usize,
    options: &Options,
) -> Result<&'a dyn QuadraticForm> {
    let form = problem.quadratic()?;
    let (n, r) = (form.order(), problem.components);
    options.check(n)?;
    if !problem.signature.is_definite() || problem.signature.sign(0) < 0.0 {
        return Err(Error::invalid("signature", "must be all +1"));
    }
    problem.check_start(x0)?;
    let gap = feasibility(x0);
    if !(gap <= START_TOLERANCE * (r as f64).sqrt()) {
        return Err(Error::invalid(
            "x0",
            format!("must have orthonormal columns, ‖XᵀX − I‖_F is {gap:.3e}"),
        ));
    }
    if !(r..=n * r).contains(&count) {
        return Err(Error::invalid(
            "n_nonzero",
            format!("must be between {r} and {}, got {count}", n * r),
        ));
    }
    Ok(form)
}

fn feasibility(x: ArrayView2<'_, f64>) -> f64 {
    let eye = Array2::eye(x.ncols());
    drift(x, &Signature::stiefel(x.nrows()), eye.view())
}

fn nonzeros(x: &Array2<f64>) -> usize {
    x.iter().filter(|&&v| v != 0.0).count()
}

struct Search<'a> {
    oracle: Oracle<'a, L0>,
    /// What f is all over the constraint.
    constant: f64,
    price: f64,
    tolerance: f64,
    /// Points on the way, for the calling thread.
    news: &'a Mutex<Vec<(Record, Array2<f64>)>>,
}

impl Search<'_> {
    fn descended(&self, x: Array2<f64>, steps: usize) -> Point {
        let descent = tangent::descend(&self.oracle, x, steps, self.oracle.pace(1.0));
        Point {
            x: descent.x,
            value: descent.objective,
        }
    }

    fn candidates(&self, x: &Array2<f64>) -> Candidates {
        let (_, gradient) = self.oracle.value_and_gradient(x);
        let diagonal = self.oracle.diagonal();
        let multiplier = symmetric(&x.t().dot(&gradient));
        let residual = &gradient - &x.dot(&multiplier);
        let mut drops = Vec::new();
        let mut additions = Vec::new();
        for ((i, k), &value) in x.indexed_iter() {
            let gap = 0.5 * (diagonal[i] - multiplier[[k, k]]);
            if value != 0.0 {
                let square = value * value;
                drops.push((gap * square / (1.0 - square).max(f64::EPSILON), (i, k)));
            } else {
                let rho = residual[[i, k]];
                let gain = rho.hypot(gap) - gap;
                if gain > 0.0 {
                    let angle = 0.5 * rho.abs().atan2(gap);
                    let first = angle.sin().clamp(1e-6, FIRST_VALUE);
                    additions.push((0.5 * gain, -first.copysign(rho), (i, k)));
                }
            }
        }
        drops.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        additions.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.cmp(&b.2)));
        Candidates { drops, additions }
    }

    /// x without and with the given entries, back on the manifold and descended from; given up early
    /// if a second probe as good as the first would not bring f to `worth`.
    fn trial(
        &self,
        x: &Array2<f64>,
        drops: &[(f64, Entry)],
        additions: &[(f64, f64, Entry)],
        worth: f64,
    ) -> Option<Point> {
        let count = nonzeros(x) + additions.len() - drops.len();
        let mut moved = x.clone();
        for &(_, entry) in drops {
            moved[entry] = 0.0;
        }
        for &(_, value, entry) in additions {
            moved[entry] = value;
        }
        let projected = project_on_support(&self.oracle.manifold, &moved, &moved)?;
        let before = self.oracle.objective(&projected);
        let probe = self.descended(projected, PROBE_STEPS);
        // Not a number when the time is up.
        if !(2.0 * probe.value - before <= worth) {
            return None;
        }
        let point = self.descended(probe.x, TRIAL_STEPS - PROBE_STEPS);
        (nonzeros(&point.x) == count).then_some(point)
    }

    /// Drops or adds entries until there are `count`.
    fn at_count(&self, x: Array2<f64>, count: usize) -> Option<Point> {
        let mut point = Point {
            value: f64::INFINITY,
            x: project_on_support(&self.oracle.manifold, &x, &x)?,
        };
        loop {
            let now = nonzeros(&point.x);
            if now == count {
                if point.value == f64::INFINITY {
                    point = self.descended(point.x, TRIAL_STEPS);
                }
                return point.value.is_finite().then_some(point);
            }
            if self.ended().is_some() {
                return None;
            }
            let candidates = self.candidates(&point.x);
            let wanted = now.abs_diff(count).div_ceil(AT_ONCE);
            let next = if now > count {
                self.shrunk(&point.x, &candidates, wanted)
            } else {
                let additions = &candidates.additions;
                self.trial(
                    &point.x,
                    &[],
                    &additions[..wanted.min(additions.len())],
                    f64::INFINITY,
                )
                .filter(|next| nonzeros(&next.x) > now)
                .or_else(|| {
                    let mut few = additions.iter().take(FORCED_ADDITIONS);
                    few.find_map(|one| self.trial(&point.x, &[], &[*one], f64::INFINITY))
                })
            };
            point = next?;
        }
    }

    /// x without `wanted` of its cheapest entries, or without one if they cannot all go.
    fn shrunk(&self, x: &Array2<f64>, candidates: &Candidates, wanted: usize) -> Option<Point> {
        // A column keeps its largest entry.
        let keep: HashSet<Entry> = (0..x.ncols())
            .filter_map(|k| {
                let column = x.column(k);
                (0..x.nrows())
                    .max_by(|&i, &j| column[i].abs().total_cmp(&column[j].abs()))
                    .map(|i| (i, k))
            })
            .collect();
        let free: Vec<(f64, Entry)> = candidates
            .drops
            .iter()
            .filter(|(_, entry)| !keep.contains(entry))
            .copied()
            .collect();
        let mut size = wanted.min(free.len());
        while size > 0 {
            if let Some(point) = self.trial(x, &free[..size], &[], f64::INFINITY) {
                return Some(point);
            }
            if size == 1 {
                return free[1..]
                    .iter()
                    .find_map(|one| self.trial(x, &[*one], &[], f64::INFINITY));
            }
            size /= 2;
        }
        None
    }

    /// Exchanges entries while that lowers f.
    fn exchange(&self, point: &mut Point) -> Status {
        self.record(point);
        let mut width = (nonzeros(&point.x) / 8).max(1);
        for _ in 0..EXCHANGES {
            let candidates = self.candidates(&point.x);
            let better = loop {
                let found = if width > 1 {
                    self.exchanged(point, &candidates, width)
                } else {
                    self.single(point, &candidates)
                };
                if let Some(ended) = self.ended() {
                    return ended;
                }
                if found.is_some() || width == 1 {
                    break found;
                }
                width /= 2;
            };
            let Some(better) = better else { break };
            *point = better;
            self.record(point);
        }
        let last = self.descended(point.x.clone(), FINAL_STEPS);
        if last.value < point.value && nonzeros(&last.x) == nonzeros(&point.x) {
            *point = last;
        }
        self.ended().unwrap_or(Status::Converged)
    }

    /// Whether the time or the work is spent.
    fn ended(&self) -> Option<Status> {
        if self.oracle.meter.expired() {
            return Some(Status::MaxTime);
        }
        (self.oracle.meter.clock.counts() && self.oracle.meter.left() == 0.0)
            .then_some(Status::MaxSweeps)
    }

    fn improves(&self, trial: Option<Point>, point: &Point) -> Option<Point> {
        let least = self.tolerance.max(LEAST_GAIN) * (point.value - self.constant).abs();
        trial.filter(|trial| trial.value < point.value - least)
    }

    fn exchanged(&self, point: &Point, candidates: &Candidates, width: usize) -> Option<Point> {
        let pairs = candidates
            .drops
            .iter()
            .zip(&candidates.additions)
            .take(width)
            .take_while(|(drop, addition)| addition.0 > drop.0)
            .count();
        if pairs == 0 {
            return None;
        }
        let trial = self.trial(
            &point.x,
            &candidates.drops[..pairs],
            &candidates.additions[..pairs],
            point.value,
        );
        self.improves(trial, point)
    }

    /// The first single exchange that lowers f.
    fn single(&self, point: &Point, candidates: &Candidates) -> Option<Point> {
        let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
        for (a, drop) in candidates.drops.iter().take(DROPS).enumerate() {
            for (b, addition) in candidates.additions.iter().take(ADDITIONS).enumerate() {
                pairs.push((addition.0 - drop.0, a, b));
            }
        }
        pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (_, a, b) in pairs {
            let trial = self.trial(
                &point.x,
                &candidates.drops[a..=a],
                &candidates.additions[b..=b],
                point.value,
            );
            let better = self.improves(trial, point);
            if better.is_some() || self.ended().is_some() {
                return better;
            }
        }
        None
    }

    fn record(&self, point: &Point) {
        let record = Record {
            seconds: self.oracle.meter.clock.seconds(),
            objective: point.value + self.price,
            feasibility: feasibility(point.x.view()),
            iterations: 0,
        };
        if let Ok(mut news) = self.news.lock() {
            news.push((record, point.x.clone()));
        }
    }
}
