"""The splitting and penalty methods that the papers compare with: LADMM, SPM, SOC-ADMM, RADMM.

The papers name them without formulas; the updates are reconstructed from the works cited in
each function. Penalty parameters are given in units of the Lipschitz constant L of ∇f, and the
defaults are those of `orthobcd.baselines.settings`, tuned on a row that is not reported. They begin
a thousandth away from the given start, and again farther away if that holds them.

Where f is concave (every PCA problem) its linearisation at X is an upper bound, so the
linearised X steps need no proximal term besides β: that is faster than the textbook step
1/(L + β), which is used otherwise.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from .._checks import FloatArray
from ..problems import Problem, Quadratic
from ..result import Result
from .geometry import polar, tangent
from .recorder import Recorder, from_random
from .settings import LADMM_BETA, RADMM, SOC_BETA, SPM_RANGE

DENSE_SOLVE_LIMIT = 2500
"""SOC-ADMM factorises C + 2βI up to this n and takes linearised steps beyond it."""

TRIAL_SHARE = 0.2
"""Share of the time in which LADMM tries its values of β."""

AGAIN = 3.0
"""A method that its start holds begins again this far away from it, from an almost random point."""

PATIENCE = 100
"""Iterations after which SOC-ADMM and RADMM, still at their start, begin again.

A large β (SOC-ADMM needs β > ½ L, and a large λ any method) has a threshold that holds the sparse
copy of unit vectors where it is. LADMM does the same after each trial of β.
"""

DIVERGED_NORM = 1e6
"""A run ends as diverged when its dual variable is this large."""


def ladmm(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
    beta: float | None = None,
) -> Result:
    """Linearised ADMM on X = Y with X orthonormal and Y carrying the penalty.

    ``X ← polar(X − η(∇f(X) + W + β(X − Y)))``, ``Y ← prox_{h/β}(X + W/β)``, ``W ← W + β(X − Y)``.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd.baselines`; any penalty, a random start.
    beta : float, optional
        Penalty parameter in units of L. By default `LADMM_BETA` and a fifth and a
        twenty-fifth of it are tried for a short while each and the best goes on: ‖C‖ can be
        far above the curvature that the later components see. A trial that ends at the start
        makes the next begin farther away.

    References
    ----------
    He and Yuan 2012 (linearised ADMM); Lai and Osher 2014 (splitting of orthogonality).
    """
    recorder = from_random(problem, x0, max_time, seed)
    oracle = recorder.oracle
    usual = LADMM_BETA[type(oracle.penalty).__name__]
    trials = [usual * factor for factor in (1.0, 0.2, 0.04)] if beta is None else [beta]
    best = np.inf
    chosen = trials[0]
    begin = recorder.nudged_start()
    state = (begin, begin, np.zeros_like(begin))
    began = recorder.progress
    for number, trial in enumerate(trials if len(trials) > 1 else []):
        until = began + (1.0 - began) * TRIAL_SHARE * (number + 1) / len(trials)
        reached = _ladmm_phase(recorder, trial, (begin, begin, np.zeros_like(begin)), until)
        value = recorder.submit(reached[0], sparse=reached[1], thorough=False)
        if recorder.is_at_start(reached[0]):
            begin = recorder.nudged_start(AGAIN)
        elif value < best:
            best, chosen, state = value, trial, reached
    x, y, _ = _ladmm_phase(recorder, chosen, state, 1.0)
    return recorder.result(x, method="LADMM", sparse=y, beta=chosen, split=_distance(x, y))


def _ladmm_phase(
    recorder: Recorder,
    beta: float,
    state: tuple[FloatArray, FloatArray, FloatArray],
    until: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """LADMM at one β until a share of the time is used: X, Y and the multiplier."""
    oracle = recorder.oracle
    weight = max(beta * oracle.lipschitz, oracle.survival_weight)
    step = 1.0 / (weight + (0.0 if oracle.is_concave else oracle.lipschitz))
    x, y, multiplier = state
    while recorder.progress < until:
        x = polar(x - step * (oracle.gradient(x) + multiplier + weight * (x - y)))
        y = oracle.proximal(x + multiplier / weight, 1.0 / weight)
        multiplier = multiplier + weight * (x - y)
        recorder.step(x, sparse=y)
    return x, y, multiplier


def spm(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
    beta_range: tuple[float, float] | None = None,
) -> Result:
    """Smoothing (quadratic) penalty method: LADMM without multiplier, β growing.

    ``X ← polar(X − η(∇f(X) + β(X − Y)))``, ``Y ← prox_{h/β}(X)``, which minimises
    f plus the Moreau envelope of h; β grows geometrically with the clock.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd.baselines`; any penalty, a random start.
    beta_range : (float, float), optional
        First and last β in units of L; `SPM_RANGE` by default.

    References
    ----------
    Lai, Yu and coauthors' penalty splitting (PSM) with the alternation of Lu and Zhang 2013.
    """
    recorder = from_random(problem, x0, max_time, seed)
    oracle = recorder.oracle
    low, high = beta_range or SPM_RANGE[type(oracle.penalty).__name__]
    high = max(high, 10.0 * oracle.survival_weight / oracle.lipschitz)
    extra = 0.0 if oracle.is_concave else oracle.lipschitz
    x = y = recorder.nudged_start()
    while True:
        beta = oracle.lipschitz * low * (high / low) ** min(1.0, recorder.progress / 0.95)
        x = polar(x - (oracle.gradient(x) + beta * (x - y)) / (beta + extra))
        y = oracle.proximal(x, 1.0 / beta)
        if not recorder.step(x, sparse=y):
            break
    return recorder.result(x, method="SPM", sparse=y, split=_distance(x, y))


def soc_admm(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
    beta: float | None = None,
) -> Result:
    """Splitting of orthogonality constraints with three copies (Lai and Osher).

    X is unconstrained and minimises ``f(X) + β/2‖X − Q + P‖² + β/2‖X − R + B‖²`` exactly (one
    Cholesky factor of C + 2βI), ``Q = prox_{h/β}(X + P)``, ``R = polar(X + B)``, with the scaled
    duals P and B. R is the orthonormal copy.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd.baselines`; any penalty, a random start.
    beta : float, optional
        In units of L, above ½; `SOC_BETA` by default.

    References
    ----------
    Lai and Osher 2014, "A splitting method for orthogonality constrained problems".
    """
    recorder = from_random(problem, x0, max_time, seed)
    oracle = recorder.oracle
    if beta is None:
        beta = SOC_BETA[type(oracle.penalty).__name__]
    weight = max(beta * oracle.lipschitz, oracle.survival_weight)
    smooth = oracle.smooth
    factor = None
    linear: FloatArray | float = 0.0
    if isinstance(smooth, Quadratic) and smooth.D is None and oracle.n <= DENSE_SOLVE_LIMIT:
        factor = scipy.linalg.cho_factor(smooth.C + 2.0 * weight * np.eye(oracle.n))
        linear = 0.0 if smooth.linear is None else smooth.linear
    x = q = r = recorder.nudged_start()
    p, b = np.zeros_like(x), np.zeros_like(x)
    while True:
        target = weight * ((q - p) + (r - b))
        if factor is not None:
            x = scipy.linalg.cho_solve(factor, target - linear)
        else:
            pull = oracle.gradient(x) + 2.0 * weight * x - target
            x = x - pull / (2.0 * weight + oracle.lipschitz)
        q = oracle.proximal(x + p, 1.0 / weight)
        r = polar(x + b)
        p = p + x - q
        b = b + x - r
        if recorder.n_iterations == PATIENCE and recorder.is_at_start(r):
            x = q = r = recorder.nudged_start(AGAIN)
            p, b = np.zeros_like(x), np.zeros_like(x)
        diverged = not float(np.linalg.norm(b)) < DIVERGED_NORM
        if diverged or not recorder.step(r, sparse=q):
            break
    return recorder.result(r, method="SOC-ADMM", sparse=q, diverged=diverged, split=_distance(r, q))


def radmm(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
    rho: float | None = None,
    gamma: float | None = None,
    step: float | None = None,
) -> Result:
    """Riemannian ADMM on a Moreau-smoothed penalty.

    One Riemannian gradient step on the augmented Lagrangian, then
    ``z = prox_{(γ + 1/ρ) h}(X + Λ/ρ)``, ``Y = (z + γ(Λ + ρX))/(1 + γρ)``, ``Λ ← Λ + ρ(X − Y)``.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd.baselines`; any penalty (the theory asks for a convex one), a random start.
    rho, gamma, step : float, optional
        ρ in units of L, γ and the gradient step in units of 1/L; `RADMM` by default.

    References
    ----------
    Li, Ma and Srivastava 2022, "A Riemannian alternating direction method of multipliers".
    """
    recorder = from_random(problem, x0, max_time, seed)
    oracle = recorder.oracle
    defaults = RADMM[type(oracle.penalty).__name__]
    lipschitz = oracle.lipschitz
    weight = lipschitz * (defaults[0] if rho is None else rho)
    weight = max(weight, oracle.survival_weight)
    smoothing = (defaults[1] if gamma is None else gamma) / lipschitz
    length = (defaults[2] if step is None else step) / (lipschitz + weight)
    x = y = z = recorder.nudged_start()
    multiplier = np.zeros_like(x)
    while True:
        pull = oracle.gradient(x) + multiplier + weight * (x - y)
        x = polar(x - length * tangent(x, pull))
        z = oracle.proximal(x + multiplier / weight, smoothing + 1.0 / weight)
        y = (z + smoothing * (multiplier + weight * x)) / (1.0 + smoothing * weight)
        multiplier = multiplier + weight * (x - y)
        if recorder.n_iterations == PATIENCE and recorder.is_at_start(x):
            x = y = z = recorder.nudged_start(AGAIN)
            multiplier = np.zeros_like(x)
        if not recorder.step(x, sparse=z):
            break
    return recorder.result(x, method="RADMM", sparse=z, split=_distance(x, z))


def _distance(x: FloatArray, y: FloatArray) -> float:
    return float(np.linalg.norm(x - y))
