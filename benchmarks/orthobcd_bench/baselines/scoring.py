"""Fair scores for points that are not feasible.

ADMM and penalty methods return an X that is orthonormal but only nearly sparse or nonnegative, or
the reverse. Two scores are reported for X:

* *at the projection*, as the papers do: the polar factor of X, entries up to 1e-6 counted as
  zeros, a negative part ignored;
* *at the best truly feasible point*: the lowest objective over the points of
  ``{XᵀX = I, X = 0 outside a support}`` that thresholding X gives. For X ≥ 0 they are the
  partition-like points (one nonzero a row) that rounding gives. The point is exact: orthonormal
  to rounding, zeros stored as zeros. Methods are ranked by this score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.optimize

from orthobcd import L0, L1, Cardinality
from orthobcd._internal.checks import FloatArray

from .geometry import orthonormality_error, polar, project_on_support
from .oracle import COUNT_TOLERANCE, Oracle

FEASIBLE = 1e-9
"""Largest constraint violation of a feasible point."""


@dataclass(frozen=True)
class FeasiblePoint:
    """A feasible point and its objective."""

    x: FloatArray
    objective: float


def infeasibility(oracle: Oracle, x: FloatArray) -> float:
    """``‖XᵀX − I‖_F``, plus ``‖min(X, 0)‖_F`` for X ≥ 0 and the norm beyond a limit's entries."""
    violation = orthonormality_error(x)
    if isinstance(oracle.penalty, Cardinality):
        violation += float(np.linalg.norm(x - x * _largest(x, oracle.penalty)))
    if oracle.is_nonnegative:
        violation += float(np.linalg.norm(np.minimum(x, 0.0)))
    return violation


def score_at_projection(oracle: Oracle, x: FloatArray) -> float:
    """Objective of the polar factor of x, counted as the papers count (feasible with a limit)."""
    if isinstance(oracle.penalty, Cardinality):
        return best_feasible(oracle, x).objective
    return oracle.objective(polar(x), COUNT_TOLERANCE)


SURROGATE_WEIGHT = 1000.0
"""Weight of the negative part in the second paper's surrogate objective."""


def surrogate(oracle: Oracle, x: FloatArray) -> float:
    """``f(P) + 1000‖min(0, P)‖_F`` for the polar factor P of x (second paper, section G.3).

    The minimum of the surrogate may be below that of X ≥ 0. An entry ε beside an entry a of its
    row needs an entry of about −aε elsewhere: f gains ε times its slope, and the penalty is 1000aε.
    """
    nearest = polar(x)
    outside = float(np.linalg.norm(np.minimum(nearest, 0.0)))
    return oracle.smooth_value(nearest) + SURROGATE_WEIGHT * outside


def best_feasible(
    oracle: Oracle, x: FloatArray, *, thorough: bool = True, sparse: FloatArray | None = None
) -> FeasiblePoint:
    """The best truly feasible point that thresholding or rounding of x gives.

    Parameters
    ----------
    oracle : Oracle
        The problem.
    x : ndarray of shape (n, r)
        Any point.
    thorough : bool, default True
        Try all thresholds; otherwise two of them, or three for ℓ0.
    sparse : ndarray of shape (n, r), optional
        A second copy of the variable, as ADMM methods have, whose zeros suggest a support.
    """
    if oracle.is_nonnegative:
        return round_to_partition(oracle, x)
    if isinstance(oracle.penalty, Cardinality):
        if infeasibility(oracle, x) > FEASIBLE:
            closest = polar(x)
            cut = project_on_support(closest, _largest(closest, oracle.penalty))
            x = _one_entry_each(closest) if cut is None else cut
        return FeasiblePoint(x, oracle.objective(x))
    closest = polar(x)
    best = FeasiblePoint(closest, oracle.objective(closest))
    if not isinstance(oracle.penalty, (L0, L1)):
        return best
    single = _one_entry_each(closest)
    objective = oracle.objective(single)
    if objective < best.objective:
        best = FeasiblePoint(single, objective)
    for mask in _supports(oracle, closest, sparse, thorough):
        point = project_on_support(closest, mask)
        if point is None:
            continue
        objective = oracle.objective(point)
        if objective < best.objective:
            best = FeasiblePoint(point, objective)
    return best


def _largest(x: FloatArray, limit: Cardinality) -> FloatArray:
    """1 at the largest entries of each column, as many as the limit has for it, and 0 elsewhere."""
    mask = np.zeros_like(x)
    for t, count in enumerate(np.broadcast_to(np.asarray(limit.count), (x.shape[1],))):
        mask[np.argsort(-np.abs(x[:, t]), kind="stable")[: int(count)], t] = 1.0
    return mask


def _one_entry_each(x: FloatArray) -> FloatArray:
    """Signed unit vectors at distinct rows with the largest total magnitude in x."""
    rows, columns = scipy.optimize.linear_sum_assignment(-np.abs(x))
    single = np.zeros_like(x)
    single[rows, columns] = np.where(x[rows, columns] < 0.0, -1.0, 1.0)
    return single


def _supports(
    oracle: Oracle, x: FloatArray, sparse: FloatArray | None, thorough: bool
) -> list[FloatArray]:
    """0/1 masks of candidate supports, from the zeros of ``sparse`` and from thresholds of x."""
    magnitude = np.abs(x)
    masks: list[FloatArray] = []
    if sparse is not None:
        masks.append((sparse != 0.0).astype(np.float64))
    thresholds = [1e-6, 1e-4, 1e-3, 1e-2]
    if isinstance(oracle.penalty, L0):
        # dropping an entry of size t saves λ and costs about ½ (|c_ii| + spectral scale) t²
        natural = float(np.sqrt(2.0 * oracle.penalty.lam / oracle.lipschitz))
        thresholds += [natural, 1.4 * natural, 0.5 * natural] if thorough else [natural]
    if not thorough:
        thresholds = thresholds[1:2] + thresholds[3:]
    seen: set[int] = {x.size}
    for threshold in thresholds:
        mask = magnitude > threshold
        count = int(np.count_nonzero(mask))
        if count not in seen and threshold < 1.0:
            seen.add(count)
            masks.append(mask.astype(np.float64))
    return masks


def round_to_partition(oracle: Oracle, x: FloatArray) -> FeasiblePoint:
    """The better of two partition-like points near x for ``X ≥ 0``.

    Each row keeps only its largest positive entry, as St(n, r) ∩ {X ≥ 0} has at most one nonzero a
    row, and columns are scaled to unit norm. The other point weights the entries of a row by the
    gradient of f. An empty column takes the row of its largest entry of x, from a column that has
    other rows.
    """
    candidates = [x, np.maximum(x, 0.0) * np.maximum(-oracle.gradient(np.maximum(x, 0.0)), 0.0)]
    best: FeasiblePoint | None = None
    for weights in candidates:
        point = partition_point(x, np.argmax(weights, axis=1))
        objective = oracle.objective(point)
        if best is None or objective < best.objective:
            best = FeasiblePoint(point, objective)
    assert best is not None
    return best


def partition_point(x: FloatArray, owner: np.ndarray[tuple[int], np.dtype[np.intp]]) -> FloatArray:
    """Unit columns with the positive entries of x where ``owner`` (n,) gives the row to them."""
    n, r = x.shape
    kept = np.zeros((n, r))
    rows = np.arange(n)
    kept[rows, owner] = np.maximum(x[rows, owner], 0.0)
    norms = np.linalg.norm(kept, axis=0)
    for column in np.flatnonzero(norms <= 1e-12):
        filled = np.count_nonzero(kept, axis=0)
        holder = np.argmax(kept, axis=1)
        free = (filled[holder] > 1) | (np.max(kept, axis=1) <= 0.0)
        row = int(np.argmax(np.where(free, x[:, column], -np.inf)))
        kept[row, :] = 0.0
        kept[row, column] = 1.0
        norms = np.linalg.norm(kept, axis=0)
    unit: FloatArray = kept / norms
    return unit
