"""Competitors under a limit on the nonzeros of each component.

Truncated power iterations and forward selection make one component after the other on features that
no other component uses, so that components are orthonormal, and then each again in turn while the
objective falls.

References
----------
Yuan and Zhang 2013, "Truncated power method for sparse eigenvalue problems", JMLR 14, Algorithm 1;
d'Aspremont, Bach and El Ghaoui 2008, "Optimal solutions for sparse principal component analysis"
(PathSPCA, one component).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from orthobcd._internal.checks import FloatArray

__all__ = ["Covariance", "forward_selection", "truncated_power"]

SAME = 1e-9
"""Relative difference of two values below which they are equal."""

STARTS = 30
"""Leading axes from which power iterations start, and rows from which a component grows."""

STEPS = 40
PASSES = 2

Column = tuple[float, np.ndarray, FloatArray]
"""vᵀPv, the rows of v, and v on these rows."""


class Covariance:
    """P = AᵀA, from A of shape (m, n), or P of shape (n, n) itself if ``of_data`` is false."""

    def __init__(self, values: FloatArray, *, of_data: bool = True) -> None:
        self.values, self.of_data, self.n = values, of_data, values.shape[1]
        self.diagonal = np.sum(values**2, axis=0) if of_data else np.diag(values).copy()

    def product(self, rows: np.ndarray, vector: FloatArray) -> FloatArray:
        """P v."""
        image: FloatArray = self.values[:, rows] @ vector
        if self.of_data:
            image = self.values.T @ image
        return image

    def leading(self, rows: np.ndarray) -> Column:
        """The leading eigenpair of P on some rows."""
        part = self.values[:, rows]
        if self.of_data and len(rows) > len(part):
            values, left = np.linalg.eigh(part @ part.T)
            vector = part.T @ left[:, -1]
            return float(values[-1]), rows, vector / np.linalg.norm(vector)
        values, vectors = np.linalg.eigh(part.T @ part if self.of_data else part[rows])
        return float(values[-1]), rows, vectors[:, -1]

    def axes(self, free: np.ndarray, count: int) -> list[FloatArray]:
        """P v for the leading eigenvectors v of P on the free rows."""
        own = self.values * free
        vectors = np.linalg.eigh(own @ own.T if self.of_data else own * free[:, np.newaxis])[1]
        found = range(1, min(count, len(vectors), int(free.sum())) + 1)
        return [self.values.T @ vectors[:, -k] for k in found]


def _powered(p: Covariance, k: int, free: np.ndarray, pull: FloatArray) -> Column:
    """The end of truncated power iterations from P v."""
    best: Column = (0.0, np.zeros(0, int), np.zeros(0))
    for _ in range(STEPS):
        size = np.where(free, np.abs(pull), -1.0)
        found = p.leading(np.argpartition(-size, k - 1)[:k])
        if found[0] <= best[0] * (1 + SAME):
            break
        best = found
        pull = p.product(best[1], best[2])
    return best


def _grown(p: Covariance, k: int, free: np.ndarray, row: int) -> Column:
    """k rows, each with the largest eigenvalue of P on the span of the column and the row."""
    rows, vector, value = np.array([row]), np.ones(1), float(p.diagonal[row])
    while len(rows) < k:
        coupling = p.product(rows, vector)
        half = 0.5 * (value - p.diagonal)
        top = p.diagonal + half + np.sqrt(half**2 + coupling**2)
        top[~free] = -np.inf
        top[rows] = -np.inf
        value, rows, vector = p.leading(np.append(rows, np.argmax(top)))
    return value, rows, vector


def _in_turn(
    p: Covariance,
    counts: Sequence[int],
    candidates: Callable[[np.ndarray, int, Column], list[Column]],
) -> FloatArray:
    """X (n, r): the best candidate for each component in turn, on the rows that others leave."""
    none: Column = (0.0, np.zeros(0, int), np.zeros(0))
    columns = [none] * len(counts)
    for turn in range(1 + PASSES):
        before = sum(column[0] for column in columns)
        for t, k in enumerate(counts):
            free = np.ones(p.n, dtype=bool)
            for s, column in enumerate(columns):
                if s != t:
                    free[column[1]] = False
            found = max(candidates(free, k, columns[t]), key=lambda column: column[0])
            if found[0] > columns[t][0]:
                columns[t] = found
        if turn and sum(column[0] for column in columns) <= before * (1 + SAME):
            break
    x = np.zeros((p.n, len(counts)))
    for t, (_, rows, values) in enumerate(columns):
        x[rows, t] = values
    return x


def truncated_power(p: Covariance, counts: Sequence[int], starts: int = STARTS) -> FloatArray:
    """Truncated power iterations from the leading axes of the free rows; X of shape (n, r)."""

    def candidates(free: np.ndarray, k: int, own: Column) -> list[Column]:
        pulls = p.axes(free, starts)
        if len(own[1]):
            pulls.append(p.product(own[1], own[2]))
        return [_powered(p, k, free, pull) for pull in pulls]

    return _in_turn(p, counts, candidates)


def forward_selection(p: Covariance, counts: Sequence[int], starts: int = STARTS) -> FloatArray:
    """Forward selection from the free rows of largest variance; X of shape (n, r)."""

    def candidates(free: np.ndarray, k: int, own: Column) -> list[Column]:
        order = np.argsort(np.where(free, -p.diagonal, np.inf), kind="stable")
        return [_grown(p, k, free, int(row)) for row in order[: min(starts, int(free.sum()))]]

    return _in_turn(p, counts, candidates)
