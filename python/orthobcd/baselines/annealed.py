"""Annealed LADMM: linearised splitting whose penalty parameter grows while it runs.

The updates are those of `orthobcd.baselines.splitting.ladmm`; β grows geometrically with the
clock from a value at which the sparse copy Y is free to change its support to one at which X
and Y agree. It starts at the varimax-rotated spectral solution and ends by projecting onto
``{XᵀX = I, support of Y}``, or, for X ≥ 0, by rounding to a partition and alternating between
columns and owners. For concave f (PCA) the linearised X step needs no proximal term of its own.
"""

from __future__ import annotations

import numpy as np

from .._checks import FloatArray
from ..problems import L0, L1, Problem
from ..result import Result
from .geometry import polar
from .nonnegative import polish_partition
from .oracle import oracle_of
from .recorder import Recorder
from .scoring import round_to_partition
from .starts import varimax_spectral


def annealed_ladmm(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
    first_beta: float | None = None,
    last_beta: float | None = None,
    inertia: float = 0.0,
    share: float = 0.95,
) -> Result:
    """LADMM with a geometrically growing penalty parameter.

    Parameters
    ----------
    problem : StiefelProblem, SparsePCAProblem or NonnegativePCAProblem
        Any penalty.
    x0 : ndarray of shape (n, r), optional
        Start; the varimax-rotated spectral solution by default, with the signs of its columns
        turned towards positive sums for X ≥ 0.
    max_time : float, default 10.0
        Seconds; β follows the clock.
    seed : int, default 0
        Not used: the method is deterministic up to the clock.
    first_beta, last_beta : float, optional
        Range of β, in units of L. Defaults in `beta_range`.
    inertia : float, default 0.0
        Proximal weight added to β in the X step, in units of L; 0 suits concave f.
    share : float, default 0.95
        Share of the time over which β grows.

    Returns
    -------
    Result
        ``extra["split"]`` is the final ‖X − Y‖_F.
    """
    oracle = oracle_of(problem)
    recorder = Recorder(oracle, x0, varimax_spectral, max_time=max_time, seed=seed)
    x = recorder.x0
    if oracle.is_nonnegative:
        x = x * np.where(np.sum(x**3, axis=0) < 0.0, -1.0, 1.0)
    lipschitz = oracle.lipschitz
    low, high = beta_range(oracle.penalty)
    low = (low if first_beta is None else first_beta) * lipschitz
    high = (high if last_beta is None else last_beta) * lipschitz
    y = x.copy()
    multiplier = np.zeros_like(x)
    began = recorder.progress
    while True:
        ratio = min(1.0, (recorder.progress - began) / max(share * (1.0 - began), 1e-9))
        beta = low * (high / low) ** ratio
        step = 1.0 / (beta + inertia * lipschitz)
        x = polar(x - step * (oracle.gradient(x) + multiplier + beta * (x - y)))
        y = oracle.proximal(x + multiplier / beta, 1.0 / beta)
        multiplier = multiplier + beta * (x - y)
        if not recorder.step(x, sparse=y) or ratio >= 1.0:
            break
    if oracle.is_nonnegative:
        rounded = round_to_partition(oracle, x)
        x = polish_partition(oracle, rounded.x, recorder)
        y = x
    return recorder.result(
        x,
        method="annealed LADMM",
        sparse=y,
        split=float(np.linalg.norm(x - y)),
    )


def beta_range(penalty: object) -> tuple[float, float]:
    """Default first and last β in units of the Lipschitz constant L."""
    if isinstance(penalty, L0):
        return 0.05, 3.0
    if isinstance(penalty, L1):
        return 0.05, 3.0
    return 0.05, 3.0
