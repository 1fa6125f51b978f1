"""Nonnegative orthonormal matrices: alternating partition and an EP4Orth+-style exact penalty.

A point of ``{XᵀX = I, X ≥ 0}`` has at most one nonzero a row: rows are partitioned among
columns, and for the given partition each column is a nonnegative unit vector on its rows.
"""

from __future__ import annotations

import numpy as np

from .._checks import FloatArray
from ..problems import Problem
from ..result import Result
from .geometry import polar
from .oracle import Oracle, oracle_of
from .recorder import Recorder
from .scoring import partition_point, round_to_partition
from .starts import varimax_spectral


def polish_partition(
    oracle: Oracle, x: FloatArray, recorder: Recorder, *, tolerance: float = 1e-9
) -> FloatArray:
    """Improve a partition-like point until neither columns nor owners change.

    Columns: ``x_k ← normalise(max(−∇f_k + σ x_k, 0))`` on the rows that column k owns, a step of
    the nonnegative power method (ascent for concave f with σ = 0; a shift σ = L otherwise).
    Owners: every row goes to the column whose gradient asks for it most; the change is kept
    when it lowers the objective.
    """
    value, gradient = oracle.value_and_gradient(x)
    shift = 0.0
    while not recorder.out_of_time:
        owner = np.argmax(x, axis=1)
        trial = _power_step(x, gradient, owner, shift)
        trial_value, trial_gradient = oracle.value_and_gradient(trial)
        if trial_value > value + 1e-12 * abs(value):
            if shift > 0.0:
                break
            shift = oracle.lipschitz
            continue
        gained = value - trial_value
        x, value, gradient = trial, trial_value, trial_gradient
        recorder.step(x)
        if gained <= tolerance * abs(value):
            turned = np.argmax(-gradient + shift * x, axis=1)
            trial = _power_step(x, gradient, turned, shift)
            trial_value, trial_gradient = oracle.value_and_gradient(trial)
            if trial_value >= value - tolerance * abs(value):
                break
            x, value, gradient = trial, trial_value, trial_gradient
    return x


def _power_step(
    x: FloatArray,
    gradient: FloatArray,
    owner: np.ndarray[tuple[int], np.dtype[np.intp]],
    shift: float,
) -> FloatArray:
    """One projected power step of every column on the rows it owns."""
    return partition_point(-gradient + shift * x, owner)
