"""Nonnegative orthonormal matrices: alternating partition and an EP4Orth+-style exact penalty.

A point of ``{XᵀX = I, X ≥ 0}`` has at most one nonzero a row: rows are partitioned among
columns, and for the given partition each column is a nonnegative unit vector on its rows.
"""

from __future__ import annotations

import numpy as np

from orthobcd import Problem, Result
from orthobcd._internal.checks import FloatArray

from .oracle import Oracle, oracle_of
from .recorder import Recorder
from .scoring import partition_point, round_to_partition
from .settings import EP4ORTH_SIGMA
from .starts import varimax_spectral
from .steps import BarzilaiBorwein, Reference

STAGES = 30
"""Number of values of σ of EP4Orth+."""

STAGES_SHARE = 0.85
"""Share of the time for these values; then the rounded point is polished."""

Owners = np.ndarray[tuple[int], np.dtype[np.intp]]


def polish_partition(oracle: Oracle, x: FloatArray, recorder: Recorder) -> FloatArray:
    """Improve a partition-like point until neither columns nor owners change.

    Columns: nonnegative power steps on the rows that each column owns (`_settle`). Owners: the
    change of the objective by moving a row to another column is estimated to second order for all
    rows and columns at once (`_move_gains`). The moves of largest estimated gain are tried
    together, then half of them, down to one, and kept if the converged columns are better.
    """
    x, value, gradient = _settle(oracle, x, recorder, 1e-8)
    while not recorder.out_of_time:
        gains, target = _move_gains(oracle, x, gradient)
        order = np.argsort(-gains, kind="stable")
        count = int(np.count_nonzero(gains > 0.0))
        owner = np.argmax(x, axis=1)
        improved = False
        while count >= 1 and not recorder.out_of_time:
            turned = owner.copy()
            turned[order[:count]] = target[order[:count]]
            start = _power_step(x, gradient, turned)
            trial, trial_value, trial_gradient = _settle(oracle, start, recorder, 1e-7)
            if trial_value < value - 1e-10 * abs(value):
                x, value, gradient = trial, trial_value, trial_gradient
                improved = True
                break
            count //= 4
        if not improved:
            break
    return x


def _settle(
    oracle: Oracle, x: FloatArray, recorder: Recorder, tolerance: float
) -> tuple[FloatArray, float, FloatArray]:
    """Power steps of the columns, with fixed owners, until the objective converges.

    ``x_k ← normalise(max(−∇f_k, 0))`` on the rows of column k never raises a concave f. If a step
    raises another f, adding L x_k shortens the step.
    """
    value, gradient = oracle.value_and_gradient(x)
    shift = 0.0
    owner = np.argmax(x, axis=1)
    while not recorder.out_of_time:
        trial = _power_step(x, gradient, owner, shift)
        trial_value, trial_gradient = oracle.value_and_gradient(trial)
        if trial_value > value + 1e-12 * abs(value):
            if shift > 0.0:
                break
            shift = oracle.lipschitz
            continue
        gained = value - trial_value
        x, value, gradient = trial, trial_value, trial_gradient
        owner = np.argmax(x, axis=1)
        recorder.step(x)
        if gained <= tolerance * abs(value):
            break
    return x, value, gradient


def _move_gains(oracle: Oracle, x: FloatArray, gradient: FloatArray) -> tuple[FloatArray, Owners]:
    """For each row the best other column and the estimated fall of f when the row moves there.

    Without its row i, column k of eigenvalue v_k keeps the value
    (v_k − 2 x_ik g_ik + d_i x_ik²)/(1 − x_ik²), with g = −∇f and d the diagonal of −C. With row i
    its value is the leading eigenvalue of the 2 × 2 compression to span(x_k, e_i), if g_ik > 0.
    Both are exact for f = ½⟨X, C X⟩ if the other entries are only rescaled.
    """
    rows = np.arange(oracle.n)
    diagonal = -oracle.diagonal[:, np.newaxis]
    pull = -gradient
    values = np.einsum("ij,ij->j", x, pull)
    owner = np.argmax(x, axis=1)
    entry, own_pull = x[rows, owner], pull[rows, owner]
    rest = 1.0 - entry * entry
    without = values[owner] - 2.0 * entry * own_pull + diagonal[:, 0] * entry * entry
    loss = np.where(rest > 1e-9, values[owner] - without / np.maximum(rest, 1e-9), np.inf)
    half = 0.5 * (diagonal - values)
    joining = np.where(pull > 0.0, half + np.sqrt(half * half + pull * pull), 0.0)
    joining[rows, owner] = -np.inf
    target = np.argmax(joining, axis=1)
    return 0.5 * (joining[rows, target] - loss), target


def _power_step(
    x: FloatArray, gradient: FloatArray, owner: Owners, shift: float = 0.0
) -> FloatArray:
    """One projected power step of every column on the rows that the column owns."""
    return partition_point(shift * x - gradient, owner)


def keep_improving(oracle: Oracle, x: FloatArray, recorder: Recorder, seed: int) -> FloatArray:
    """Perturb and polish the partition in turn until the time limit; the best point is kept.

    A perturbation moves a random share of the rows (1 to 10 %). Each row moves to the column of
    the largest −∇f among the columns that do not own the row.
    """
    rng = np.random.default_rng(seed)
    value = oracle.smooth_value(x)
    while not recorder.out_of_time:
        gradient = oracle.gradient(x)
        owner = np.argmax(x, axis=1)
        asking = -gradient
        asking[np.arange(oracle.n), owner] = -np.inf
        moved = rng.random(oracle.n) < 10.0 ** rng.uniform(-2.0, -1.0)
        owner = np.where(moved, np.argmax(asking, axis=1), owner)
        trial = polish_partition(oracle, _power_step(x, gradient, owner), recorder)
        trial_value = oracle.smooth_value(trial)
        if trial_value < value:
            x, value = trial, trial_value
    return x


def alternating_partition(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
) -> Result:
    """Alternate between columns and owners of a partition, from the spectral solution.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`; X ≥ 0, the varimax-rotated spectral start, rounded.
        The time after the first local optimum is for perturbations, whose seed is ``seed``.

    References
    ----------
    The structure (orthogonal nonnegative = partition) is that of Yuan and Oja 2005 and of
    orthogonal NMF; the moves between columns are ours.
    """
    oracle = nonnegative_oracle(problem)
    recorder = Recorder(oracle, x0, _turned_varimax, max_time=max_time, seed=seed)
    x = polish_partition(oracle, round_to_partition(oracle, recorder.x0).x, recorder)
    recorder.submit(x)
    x = keep_improving(oracle, x, recorder, seed)
    return recorder.result(x, method="alternating partition")


def ep4orth(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
) -> Result:
    """Exact penalty in the manner of EP4Orth+, then rounding and polishing.

    Columns are kept nonnegative and of unit norm. The penalty for orthogonality is
    ``σ(‖X v‖² − 1)`` with v = (1, …, 1)/√r, nonnegative for such X and zero exactly where
    XᵀX = I. σ grows geometrically with the clock; each stage runs projected gradient steps with
    Barzilai–Borwein lengths and a nonmonotone line search.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`; X ≥ 0, the varimax-rotated spectral start. The seed is
        that of the perturbations at the end.

    References
    ----------
    Jiang, Meng, Wen and Chen 2022, "An exact penalty approach for optimization with
    nonnegative orthogonality constraints".
    """
    oracle = nonnegative_oracle(problem)
    recorder = Recorder(oracle, x0, _turned_varimax, max_time=max_time, seed=seed)
    x = _unit_nonnegative(recorder.x0)
    first, last = (oracle.r * oracle.lipschitz * value for value in EP4ORTH_SIGMA)
    lengths = BarzilaiBorwein(1.0 / oracle.lipschitz)
    began = recorder.progress
    for stage in range(STAGES):
        sigma = first * (last / first) ** (stage / (STAGES - 1)) / oracle.r

        def penalised(z: FloatArray, sigma: float = sigma) -> tuple[float, FloatArray]:
            value, gradient = oracle.value_and_gradient(z)
            total = np.sum(z, axis=1)
            value += sigma * (float(total @ total) - oracle.r)
            return value, gradient + (2.0 * sigma) * total[:, np.newaxis]

        value, gradient = penalised(x)
        reference = Reference(value)
        lengths.restart()
        deadline = began + (1.0 - began) * STAGES_SHARE * (stage + 1) / STAGES
        while recorder.progress < deadline:
            length = lengths.length
            for _ in range(20):
                trial = _unit_nonnegative(x - length * gradient)
                trial_value, trial_gradient = penalised(trial)
                moved = trial - x
                squared = float(np.vdot(moved, moved))
                accepted = reference.accepts(trial_value, squared / length)
                if accepted:
                    break
                length *= 0.4
            if not accepted or squared <= 1e-16:
                lengths.length = max(length, 1e-3 / oracle.lipschitz)
                break
            lengths.update(moved, trial_gradient - gradient)
            reference.update(trial_value)
            x, gradient = trial, trial_gradient
            recorder.step(x)
    x = polish_partition(oracle, round_to_partition(oracle, x).x, recorder)
    x = keep_improving(oracle, x, recorder, seed)
    return recorder.result(
        x,
        method="EP4Orth+",
    )


def _unit_nonnegative(z: FloatArray) -> FloatArray:
    """Columns clipped at 0 and scaled to unit norm; an all-negative column keeps its largest."""
    clipped = np.maximum(z, 0.0)
    norms = np.linalg.norm(clipped, axis=0)
    for column in np.flatnonzero(norms <= 1e-14):
        clipped[int(np.argmax(z[:, column])), column] = 1.0
        norms[column] = 1.0
    unit: FloatArray = clipped / norms
    return unit


def nonnegative_oracle(problem: Problem) -> Oracle:
    """The oracle of a problem with X ≥ 0.

    Raises
    ------
    ValueError
        For any other penalty.
    """
    oracle = oracle_of(problem)
    if not oracle.is_nonnegative:
        raise ValueError("problem must have the penalty NonNegative")
    return oracle


def _turned_varimax(oracle: Oracle) -> FloatArray:
    return turned_positive(varimax_spectral(oracle))


def turned_positive(x: FloatArray) -> FloatArray:
    """Columns with their signs chosen so that the large entries are positive."""
    return x * np.where(np.sum(x**3, axis=0) < 0.0, -1.0, 1.0)
