"""GPower with deflation, and the simplest competitor: PCA, then a threshold.

References
----------
Journée, Nesterov, Richtárik and Sepulchre 2010, "Generalized power method for sparse principal
component analysis" (single-unit ℓ0 and ℓ1); Mackey 2008 for deflation.
"""

from __future__ import annotations

import numpy as np

from orthobcd import L0, L1, Problem, Result
from orthobcd._internal.checks import FloatArray

from .oracle import Oracle, oracle_of
from .recorder import Recorder
from .settings import GPOWER_STARTS
from .starts import principal_components, top_diagonal
from .supports import covariance


def gpower(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
) -> Result:
    """Single-unit generalised power method, one component after another, with deflation.

    For each component the thresholded power iteration ``x ← T(Σ_k x)/‖·‖`` runs on the deflated
    covariance ``Σ_k = (I − XXᵀ)Σ(I − XXᵀ)``, from `GPOWER_STARTS` unit vectors at once: those of
    the largest remaining variances. The best result becomes the component. At the end all
    components are projected onto {XᵀX = I, support}. T keeps the entries whose removal would cost
    more than λ (ℓ0: g²/(2v) > λ with v = xᵀΣ_k x) or soft-thresholds by λ (ℓ1). Further passes vary
    the scale of the thresholds until the time limit.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`; ℓ0 or ℓ1 with one weight and f = ½⟨X, C X⟩. ``x0`` is
        only scored. The seed is that of the threshold scales after the first pass.
    """
    oracle = oracle_of(problem)
    penalty = oracle.penalty
    if not isinstance(penalty, (L0, L1)) or np.ndim(penalty.lam) > 0:
        raise ValueError("GPower needs an L0 or L1 penalty with one weight")
    recorder = Recorder(oracle, x0, top_diagonal, max_time=max_time, seed=seed)
    sigma = covariance(oracle)
    rng = np.random.default_rng(seed)
    scale, disjoint = 1.0, False
    x = recorder.x0
    best = np.inf
    while not recorder.out_of_time:
        trial = _one_pass(oracle, sigma, recorder, scale, disjoint)
        if trial is None:
            break
        value = recorder.submit(trial)
        if value < best:
            x, best = trial, value
        disjoint = not disjoint
        scale = float(np.exp(rng.normal(0.0, 0.5)))
    return recorder.result(x, method="GPower")


def _one_pass(
    oracle: Oracle,
    sigma: FloatArray,
    recorder: Recorder,
    scale: float,
    disjoint: bool,
) -> FloatArray | None:
    """r components by deflation, or None when time runs out before the last."""
    penalty = oracle.penalty
    assert isinstance(penalty, (L0, L1))
    weight = scale * float(penalty.lam)
    is_l0 = isinstance(penalty, L0)
    x = np.zeros((oracle.n, 0))
    for index in range(oracle.r):
        if recorder.out_of_time:
            return None
        taken = np.any(x != 0.0, axis=1)

        def deflate(z: FloatArray, taken: np.ndarray = taken, x: FloatArray = x) -> FloatArray:
            if disjoint:
                return np.where(taken[:, np.newaxis], 0.0, z)
            return z - x @ (x.T @ z)

        leverage = np.sum(x * x, axis=1)
        variances = np.diag(sigma) * (1.0 - np.minimum(leverage, 1.0))
        if disjoint:
            variances = np.where(taken, -np.inf, variances)
        rows = np.argsort(-variances, kind="stable")[:GPOWER_STARTS]
        units = np.zeros((oracle.n, rows.size))
        units[rows, np.arange(rows.size)] = 1.0
        previous = np.full(rows.size, np.inf)
        for _ in range(100):
            image = deflate(sigma @ deflate(units))
            values = np.einsum("ij,ij->j", units, image)
            if is_l0:
                cut = np.sqrt(2.0 * weight * np.maximum(values, 1e-300))
                kept = np.where(np.abs(image) > cut, image, 0.0)
                cost = -0.5 * values + weight * np.count_nonzero(units, axis=0)
            else:
                kept = image - np.clip(image, -weight, weight)
                cost = -0.5 * values + weight * np.sum(np.abs(units), axis=0)
            norms = np.linalg.norm(kept, axis=0)
            alive = norms > 0.0
            units = np.where(alive, kept / np.where(alive, norms, 1.0), units)
            recorder.n_iterations += 1
            if np.all(cost >= previous - 1e-9 * np.abs(cost)) or recorder.out_of_time:
                break
            previous = np.minimum(cost, previous)
        column = units[:, [int(np.argmin(cost))]]
        x = np.concatenate([x, column], axis=1)
        if np.linalg.matrix_rank(x) <= index:
            column = np.zeros((oracle.n, 1))
            column[rows[0], 0] = 1.0
            x = np.concatenate([x[:, :index], column], axis=1)
    return x


def pca_threshold(
    problem: Problem,
    x0: FloatArray | None = None,
    *,
    max_time: float = 10.0,
    seed: int = 0,
) -> Result:
    """Principal components, with small entries dropped and projected to feasibility.

    Parameters
    ----------
    problem : StiefelProblem, SparsePCAProblem or NonnegativePCAProblem
        Any penalty.
    x0 : ndarray of shape (n, r), optional
        Only scored as the start.
    max_time, seed
        As in every baseline; the method solves one eigenvalue problem.
    """
    oracle = oracle_of(problem)
    recorder = Recorder(oracle, x0, principal_components, max_time=max_time, seed=seed)
    x = recorder.x0 if x0 is None else principal_components(oracle)
    recorder.n_iterations = 1
    return recorder.result(x, method="PCA-then-threshold", converged=True)
