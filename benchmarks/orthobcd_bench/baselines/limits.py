"""Components of at most k nonzeros on disjoint supports: truncated power and forward selection.

References
----------
Yuan and Zhang 2013, "Truncated power method for sparse eigenvalue problems"; d'Aspremont, Bach and
El Ghaoui 2008, "Optimal solutions for sparse principal component analysis" (PathSPCA).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

from orthobcd import Cardinality, GramQuadratic, Problem, Result
from orthobcd._internal.checks import FloatArray

from .oracle import Oracle, oracle_of
from .recorder import Recorder
from .settings import FORWARD_SEEDS, POWER_STARTS
from .starts import top_diagonal
from .supports import covariance

Mask = NDArray[np.bool_]

STEPS = 40
"""Most steps of a truncated power iteration."""

GAIN = 1e-9
"""Relative gain of explained variance below which iterations end."""


@dataclass
class _Component:
    """Unit values on rows, with ‖A x‖² and A x."""

    rows: NDArray[np.intp]
    values: FloatArray
    variance: float
    image: FloatArray


class _Data:
    """Products with the centred data A; with the root of −C if C is stored."""

    def __init__(self, oracle: Oracle) -> None:
        smooth = oracle.smooth
        self.matrix: Any
        self.mean: FloatArray | None = None
        self.squares = -oracle.diagonal
        if isinstance(smooth, GramQuadratic) and smooth.scale < 0.0:
            self.matrix, self.mean = smooth.A, smooth.mean
            self.squares = self.squares / -smooth.scale
        elif oracle.is_concave:
            values, vectors = scipy.linalg.eigh(covariance(oracle))
            self.matrix = (np.sqrt(np.maximum(values, 0.0)) * vectors).T
        else:
            raise TypeError("problem must be a SparsePCAProblem")

    def pull(self, image: FloatArray) -> FloatArray:
        """Aᵀ u."""
        pulled: FloatArray = self.matrix.T @ image
        return pulled if self.mean is None else pulled - self.mean * np.sum(image)

    def columns(self, rows: NDArray[np.intp]) -> FloatArray:
        """Columns of A, dense."""
        chosen = self.matrix[:, rows]
        chosen = chosen.toarray() if scipy.sparse.issparse(chosen) else np.asarray(chosen)
        return chosen if self.mean is None else chosen - self.mean[rows]

    def leading(self, rows: NDArray[np.intp]) -> _Component:
        """The best component on these rows."""
        columns = self.columns(rows)
        if len(rows) <= len(columns):
            values = scipy.linalg.eigh(columns.T @ columns)[1][:, -1]
        else:
            values = columns.T @ scipy.linalg.eigh(columns @ columns.T)[1][:, -1]
            values = values / max(float(np.linalg.norm(values)), np.finfo(float).tiny)
        image = columns @ values
        return _Component(rows, values, float(image @ image), image)

    def directions(self, free: Mask, count: int) -> list[FloatArray]:
        """Images A v of the leading axes v of the free columns, largest variance first."""
        columns = self.columns(np.flatnonzero(free))
        if columns.shape[0] <= columns.shape[1]:
            images = scipy.linalg.eigh(columns @ columns.T)[1]
        else:
            images = columns @ scipy.linalg.eigh(columns.T @ columns)[1]
        return list(images.T[::-1][:count])


def _truncated(
    data: _Data, recorder: Recorder, k: int, free: Mask, image: FloatArray
) -> _Component | None:
    """The component that truncated power iterations from A v end in."""
    best: _Component | None = None
    for _ in range(STEPS):
        pulled = np.where(free, np.abs(data.pull(image)), -1.0)
        chosen = np.sort(np.argpartition(-pulled, k - 1)[:k])
        found = data.leading(chosen)
        recorder.n_iterations += 1
        if best is not None and found.variance <= best.variance * (1.0 + GAIN):
            break
        best, image = found, found.image
        if recorder.out_of_time:
            break
    return best


def _forward(data: _Data, recorder: Recorder, k: int, free: Mask, row: int) -> _Component | None:
    """The component that grows from one row, by the row of the largest gain at a time."""
    free = free.copy()
    found = data.leading(np.array([row]))
    while len(found.rows) < k and not recorder.out_of_time:
        free[found.rows] = False
        # The larger eigenvalue of the 2 × 2 matrix of x and a further row.
        half = 0.5 * (data.squares - found.variance)
        gains = np.where(free, half + np.hypot(half, data.pull(found.image)), -1.0)
        found = data.leading(np.append(found.rows, int(np.argmax(gains))))
        recorder.n_iterations += 1
    return found


def _from_axes(
    data: _Data, recorder: Recorder, k: int, free: Mask, present: _Component | None
) -> Iterator[_Component | None]:
    """Truncated power iterations from leading axes of the free features, and from the present."""
    images = data.directions(free, POWER_STARTS)
    for image in images if present is None else [*images, present.image]:
        yield _truncated(data, recorder, k, free, image)
        if recorder.out_of_time:
            return


def _from_features(
    data: _Data, recorder: Recorder, k: int, free: Mask, present: _Component | None
) -> Iterator[_Component | None]:
    """Forward selections from the free features of the largest variance."""
    rows = np.flatnonzero(free)
    for row in rows[np.argsort(-data.squares[rows], kind="stable")[:FORWARD_SEEDS]]:
        yield _forward(data, recorder, k, free, int(row))


Made = Callable[[_Data, Recorder, int, Mask, "_Component | None"], Iterator["_Component | None"]]


def _in_turn(
    problem: Problem, x0: FloatArray | None, max_time: float, seed: int, name: str, made: Made
) -> Result:
    """Makes one component after the other, then each again while the variance rises."""
    oracle = oracle_of(problem)
    if not isinstance(oracle.penalty, Cardinality):
        raise ValueError("penalty must be a Cardinality, which limits the nonzeros of each column")
    counts = np.broadcast_to(np.asarray(oracle.penalty.count), (oracle.r,))
    if np.ndim(oracle.penalty.count) == 0 or counts.sum() > oracle.n:
        raise ValueError("count must have a number for each column, of at most n entries together")
    recorder = Recorder(oracle, x0, top_diagonal, max_time=max_time, seed=seed)
    data = _Data(oracle)
    parts: list[_Component | None] = [None] * oracle.r
    variance, converged = -np.inf, False
    while not (converged or recorder.out_of_time):
        for t in range(oracle.r):
            free = np.ones(oracle.n, dtype=bool)
            for s, part in enumerate(parts):
                if s != t and part is not None:
                    free[part.rows] = False
            found = made(data, recorder, int(counts[t]), free, parts[t])
            candidates = [one for one in (parts[t], *found) if one is not None]
            parts[t] = max(candidates, key=lambda one: one.variance, default=None)
            if recorder.out_of_time:
                break
            if all(part is not None for part in parts):
                recorder.step(_matrix(oracle, parts, data))
        total = sum(part.variance for part in parts if part is not None)
        converged = total <= variance * (1.0 + GAIN)
        variance = total
    return recorder.result(_matrix(oracle, parts, data), method=name, converged=converged)


def _matrix(oracle: Oracle, parts: list[_Component | None], data: _Data) -> FloatArray:
    """X; a component that is missing takes the free row of the largest variance."""
    x = np.zeros((oracle.n, oracle.r))
    for t, part in enumerate(parts):
        if part is not None:
            x[part.rows, t] = part.values
    for t in [t for t, part in enumerate(parts) if part is None]:
        x[np.argmax(np.where(x.any(axis=1), -1.0, data.squares)), t] = 1.0
    return x


def truncated_power(
    problem: Problem, x0: FloatArray | None = None, *, max_time: float = 10.0, seed: int = 0
) -> Result:
    """Truncated power iterations from the leading axes of the free features.

    A step takes the k largest entries of Aᵀ(A x) among the features of no other component, and the
    leading eigenvector on these. Each component is made from `POWER_STARTS` axes, and again from
    these and its present values, until a pass brings nothing.

    Parameters
    ----------
    problem, x0, max_time, seed
        As in `orthobcd_bench.baselines`; a `Cardinality` with a number for each column. ``x0`` is
        only scored, and the seed has no effect.
    """
    return _in_turn(problem, x0, max_time, seed, "truncated power", _from_axes)


def forward_limited(
    problem: Problem, x0: FloatArray | None = None, *, max_time: float = 10.0, seed: int = 0
) -> Result:
    """Forward selection of k features a component, from the features of the largest variance.

    Parameters
    ----------
    problem, x0, max_time, seed
        As for `truncated_power`. Each component grows from `FORWARD_SEEDS` features.
    """
    return _in_turn(problem, x0, max_time, seed, "forward", _from_features)
