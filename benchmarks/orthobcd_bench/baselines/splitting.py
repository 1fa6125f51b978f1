"""The ADMM and penalty methods that the papers compare with: LADMM, SPM, SOC-ADMM, RADMM.

The papers give no formulas; the updates are reconstructed from the works cited in each function.
Penalty parameters are given in units of the Lipschitz constant L of ∇f. The defaults are those of
`orthobcd_bench.baselines.settings`, tuned on a row that is not reported. A method begins a
thousandth away from the given start, and begins again farther away if it stays at the start.

The linearisation of a concave f (every PCA problem) at X is an upper bound, so that linearised X
steps need no proximal term besides β. Such a step is faster than the textbook step 1/(L + β),
which is used for other f.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

from orthobcd import Problem, Quadratic, Result
from orthobcd._internal.checks import FloatArray

from .geometry import polar, tangent
from .recorder import Recorder, from_random
from .settings import LADMM_BETA, RADMM, SOC_BETA, SPM_RANGE

DENSE_SOLVE_LIMIT = 2500
"""SOC-ADMM factorises C + 2βI up to this n and takes linearised steps beyond it."""

TRIAL_SHARE = 0.2
"""Share of the time for trials of values of β in LADMM."""

AGAIN = 3.0
"""Distance from the start of a new run of a method that stays there: an almost random point."""

PATIENCE = 100
"""Iterations after which a method that is still at its start begins again.

For a large β the proximal map keeps the sparse copy of unit vectors unchanged. SOC-ADMM needs
β > ½ L, and every method needs a large β for a large λ.
"""

DIVERGED_NORM = 1e6
"""Size of the scaled dual, in the units of X, at which a run ends as diverged."""

State = tuple[FloatArray, ...]
"""The orthonormal copy, the sparse copy, further copies, and the scaled duals last."""


def ladmm(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
) -> Result:
    """Linearised ADMM on X = Y with X orthonormal and Y carrying the penalty.

    ``X ← polar(X − η(∇f(X) + β(X − Y + U)))``, ``Y ← prox_{h/β}(X + U)``, ``U ← U + X − Y`` with
    the scaled dual U. Short trials of `LADMM_BETA`, a fifth and a twenty-fifth of it choose β/L,
    because ‖C‖ can be far above the curvature along the later components. After a trial that ends
    at the start, the next trial begins farther away.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`; any penalty, a random start.

    References
    ----------
    He and Yuan 2012 (linearised ADMM); Lai and Osher 2014 (splitting of orthogonality).
    """
    recorder = from_random(problem, x0, max_time, seed)
    oracle = recorder.oracle
    usual = LADMM_BETA[type(oracle.penalty).__name__]
    trials = [usual * factor for factor in (1.0, 0.2, 0.04)]
    began = recorder.progress

    def phase(trial: float, state: State, until: float = 1.0) -> State:
        weight = max(trial * oracle.lipschitz, oracle.survival_weight)
        step = 1.0 / (weight + (0.0 if oracle.is_concave else oracle.lipschitz))

        def update(x: FloatArray, y: FloatArray, dual: FloatArray) -> State:
            x = polar(x - step * (oracle.gradient(x) + weight * (x - y + dual)))
            y = oracle.proximal(x + dual, 1.0 / weight)
            return x, y, dual + x - y

        return _iterate(recorder, update, begin, state, until)

    def begin(x: FloatArray) -> State:
        return x, x, np.zeros_like(x)

    chosen, best = trials[0], np.inf
    state = first = begin(recorder.nudged_start())
    for number, trial in enumerate(trials):
        share = TRIAL_SHARE * (number + 1) / len(trials)
        reached = phase(trial, first, began + (1.0 - began) * share)
        value = recorder.submit(reached[0], sparse=reached[1], thorough=False)
        if recorder.is_at_start(reached[0]):
            first = begin(recorder.nudged_start(AGAIN))
        elif value < best:
            best, chosen, state = value, trial, reached
    return _result(recorder, "LADMM", phase(chosen, state))


def spm(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
) -> Result:
    """Smoothing (quadratic) penalty method: LADMM without multiplier, β growing.

    ``X ← polar(X − η(∇f(X) + β(X − Y)))``, ``Y ← prox_{h/β}(X)``: alternating minimisation of
    f plus the Moreau envelope of h. β grows geometrically with the clock, by `SPM_RANGE`.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`; any penalty, a random start.

    References
    ----------
    Lai, Yu and coauthors' penalty splitting (PSM) with the alternation of Lu and Zhang 2013.
    """
    recorder = from_random(problem, x0, max_time, seed)
    oracle = recorder.oracle
    low, high = SPM_RANGE[type(oracle.penalty).__name__]
    high = max(high, 10.0 * oracle.survival_weight / oracle.lipschitz)
    extra = 0.0 if oracle.is_concave else oracle.lipschitz

    def update(x: FloatArray, y: FloatArray) -> State:
        beta = oracle.lipschitz * low * (high / low) ** min(1.0, recorder.progress / 0.95)
        x = polar(x - (oracle.gradient(x) + beta * (x - y)) / (beta + extra))
        return x, oracle.proximal(x, 1.0 / beta)

    return _result(recorder, "SPM", _iterate(recorder, update, lambda x: (x, x)))


def soc_admm(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
) -> Result:
    """Lai and Osher's ADMM with three copies of X, one of them orthonormal.

    X is unconstrained and minimises ``f(X) + β/2‖X − Q + P‖² + β/2‖X − R + B‖²`` exactly (one
    Cholesky factor of C + 2βI), ``Q = prox_{h/β}(X + P)``, ``R = polar(X + B)``, with the scaled
    duals P and B. R is the orthonormal copy.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`; any penalty, a random start.

    References
    ----------
    Lai and Osher 2014, "A splitting method for orthogonality constrained problems".
    """
    recorder = from_random(problem, x0, max_time, seed)
    oracle = recorder.oracle
    weight = max(SOC_BETA[type(oracle.penalty).__name__] * oracle.lipschitz, oracle.survival_weight)
    smooth = oracle.smooth
    factor = None
    linear: FloatArray | float = 0.0
    if isinstance(smooth, Quadratic) and smooth.D is None and oracle.n <= DENSE_SOLVE_LIMIT:
        factor = scipy.linalg.cho_factor(smooth.C + 2.0 * weight * np.eye(oracle.n))
        linear = 0.0 if smooth.linear is None else smooth.linear

    def update(r: FloatArray, q: FloatArray, x: FloatArray, p: FloatArray, b: FloatArray) -> State:
        target = weight * ((q - p) + (r - b))
        if factor is not None:
            x = scipy.linalg.cho_solve(factor, target - linear)
        else:
            pull = oracle.gradient(x) + 2.0 * weight * x - target
            x = x - pull / (2.0 * weight + oracle.lipschitz)
        q = oracle.proximal(x + p, 1.0 / weight)
        r = polar(x + b)
        return r, q, x, p + x - q, b + x - r

    def begin(x: FloatArray) -> State:
        return x, x, x, np.zeros_like(x), np.zeros_like(x)

    return _result(recorder, "SOC-ADMM", _iterate(recorder, update, begin))


def radmm(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
) -> Result:
    """Riemannian ADMM on a Moreau-smoothed penalty.

    One Riemannian gradient step on the augmented Lagrangian, then
    ``z = prox_{(γ + 1/ρ) h}(X + U)``, ``Y = (z + γρ(X + U))/(1 + γρ)``, ``U ← U + X − Y`` with the
    scaled dual U.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`; any penalty (the theory asks for a convex one), a random
        start.

    References
    ----------
    Li, Ma and Srivastava 2022, "A Riemannian alternating direction method of multipliers".
    """
    recorder = from_random(problem, x0, max_time, seed)
    oracle = recorder.oracle
    rho, gamma, step = RADMM[type(oracle.penalty).__name__]
    lipschitz = oracle.lipschitz
    weight = max(lipschitz * rho, oracle.survival_weight)
    smoothing, length = gamma / lipschitz, step / (lipschitz + weight)
    blend = smoothing * weight

    def update(x: FloatArray, z: FloatArray, y: FloatArray, dual: FloatArray) -> State:
        pull = oracle.gradient(x) + weight * (x - y + dual)
        x = polar(x - length * tangent(x, pull))
        z = oracle.proximal(x + dual, smoothing + 1.0 / weight)
        y = (z + blend * (x + dual)) / (1.0 + blend)
        return x, z, y, dual + x - y

    def begin(x: FloatArray) -> State:
        return x, x, x, np.zeros_like(x)

    return _result(recorder, "RADMM", _iterate(recorder, update, begin))


def _iterate(
    recorder: Recorder,
    update: Callable[..., State],
    begin: Callable[[FloatArray], State],
    state: State | None = None,
    until: float = 1.0,
) -> State:
    """Updates from ``state`` or a nudged start until a share of the time is used, or divergence.

    A method that stays at its start for `PATIENCE` iterations begins again `AGAIN` away from it.
    """
    if state is None:
        state = begin(recorder.nudged_start())
    before = recorder.n_iterations
    while recorder.progress < until and not _diverged(state):
        if not recorder.step(state[0], sparse=state[1]):
            break
        state = update(*state)
        if recorder.n_iterations - before == PATIENCE and recorder.is_at_start(state[0]):
            state = begin(recorder.nudged_start(AGAIN))
    return state


def _diverged(state: State) -> bool:
    return not float(np.linalg.norm(state[-1])) < DIVERGED_NORM


def _result(recorder: Recorder, method: str, state: State) -> Result:
    x, sparse = state[:2]
    return recorder.result(
        x,
        method=method,
        sparse=sparse,
        diverged=_diverged(state),
    )
