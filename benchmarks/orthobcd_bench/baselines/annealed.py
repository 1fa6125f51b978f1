"""Annealed LADMM: linearised ADMM whose penalty parameter β grows during the run.

The updates are those of `orthobcd_bench.baselines.splitting.ladmm`. β grows geometrically with the
clock, from a value at which the sparse copy Y can change its support to one at which X and Y agree.
A run starts at the varimax-rotated spectral solution and ends with a projection onto
``{XᵀX = I, support of Y}``. For X ≥ 0 it ends with rounding to a partition and alternating between
columns and owners. For concave f (PCA) the linearised X step needs no proximal term of its own.
"""

from __future__ import annotations

import numpy as np

from orthobcd import L0, L1, Problem, Result
from orthobcd._internal.checks import FloatArray

from .geometry import polar, symmetric_part
from .nonnegative import keep_improving, polish_partition, turned_positive
from .oracle import Oracle, oracle_of
from .recorder import Recorder
from .scoring import round_to_partition
from .starts import varimax_spectral


def annealed_ladmm(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
) -> Result:
    """LADMM with a geometrically growing penalty parameter.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`; any penalty, the varimax-rotated spectral start, for
        X ≥ 0 with the signs of its columns turned towards positive sums. The seed is not used.

    """
    oracle = oracle_of(problem)
    recorder = Recorder(oracle, x0, varimax_spectral, max_time=max_time, seed=seed)
    x = recorder.x0
    if oracle.is_nonnegative:
        x = turned_positive(x)
    low, high = beta_range(oracle, recorder.x0)
    # For X ≥ 0 the partition is perturbed and polished in the remaining time.
    share = 0.8 if oracle.is_nonnegative else 0.95
    y = x.copy()
    multiplier = np.zeros_like(x)
    began = recorder.progress
    ratio = 0.0
    while ratio < 1.0 and recorder.step(x, sparse=y):
        ratio = min(1.0, (recorder.progress - began) / max(share * (1.0 - began), 1e-9))
        beta = low * (high / low) ** ratio
        x = polar(x - (oracle.gradient(x) + multiplier + beta * (x - y)) / beta)
        y = oracle.proximal(x + multiplier / beta, 1.0 / beta)
        multiplier = multiplier + beta * (x - y)
    if oracle.is_nonnegative:
        rounded = round_to_partition(oracle, x)
        x = polish_partition(oracle, rounded.x, recorder)
        x = keep_improving(oracle, x, recorder, seed)
        y = x
    return recorder.result(
        x,
        method="annealed LADMM",
        sparse=y,
    )


def beta_range(oracle: Oracle, x: FloatArray) -> tuple[float, float]:
    """Default first and last β.

    The first β is relative to the curvature along the r-th component: the smallest eigenvalue of
    −Xᵀ∇f(X) at the spectral start. This curvature can be far below L: on MNIST it is L/65.
    """
    seen = np.linalg.eigvalsh(symmetric_part(-x.T @ oracle.gradient(x)))
    floor = 4.0 * oracle.survival_weight
    level = min(max(float(seen[0]), 1e-4 * oracle.lipschitz), oracle.lipschitz)
    if isinstance(oracle.penalty, L0):
        return 0.06 * level, max(1.0 * oracle.lipschitz, floor)
    if isinstance(oracle.penalty, L1):
        return 0.05 * level, max(3.0 * oracle.lipschitz, floor)
    return 0.5 * level, 0.6 * oracle.lipschitz
