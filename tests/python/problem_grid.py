"""Problems of many sizes and kinds, and points in closed form ("simple points").

No search may end above the best simple point; ten lines of NumPy compute each. No rule of a search
is chosen on these problems.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

KINDS = ("noise", "factors", "counts", "duplicates", "constants", "deficient", "sparse", "float32")


@dataclass(frozen=True)
class Case:
    """Data of a kind and size, and a number of components."""

    kind: str
    m: int
    n: int
    r: int

    def __str__(self) -> str:
        return f"{self.kind}-{self.m}x{self.n}-{self.r}"

    def data(self) -> Any:
        """The data, m × n."""
        rng = np.random.default_rng((self.m, self.n, self.r))
        m, n = self.m, self.n
        A = rng.standard_normal((m, n))
        if self.kind == "factors":
            loadings = rng.standard_normal((3, n)) * (rng.random((3, n)) < 0.3)
            return 3.0 * rng.standard_normal((m, 3)) @ loadings + A
        if self.kind == "counts":
            return rng.poisson(rng.gamma(0.3, 3.0, n), (m, n)).astype(np.float64)
        if self.kind == "duplicates":
            A[:, n // 2 :] = A[:, : n - n // 2]
        elif self.kind == "constants":
            A[:, ::3] = 2.5
        elif self.kind == "deficient":
            rank = max(1, min(m, n) // 3)
            A = A[:, :rank] @ rng.standard_normal((rank, n))
        elif self.kind == "sparse":
            return scipy.sparse.csr_array(A * (rng.random((m, n)) < 0.1))
        elif self.kind == "float32":
            return A.astype(np.float32) + np.float32(10.0)
        return A

    def centred(self) -> np.ndarray:
        """The data in double precision, its means subtracted."""
        A = self.data()
        A = A.toarray() if scipy.sparse.issparse(A) else A.astype(np.float64)
        return A - A.mean(axis=0)


def explained(A: np.ndarray, X: np.ndarray) -> float:
    """``‖AX‖²``."""
    return float(np.sum((A @ X) ** 2))


def principal(A: np.ndarray, r: int) -> np.ndarray:
    """The r principal axes of A, n × r; completed where A has fewer."""
    _, _, axes = scipy.linalg.svd(A, full_matrices=min(A.shape) < r)
    return np.ascontiguousarray(axes[:r].T)


def on_rows(A: np.ndarray, rows: np.ndarray, r: int) -> np.ndarray:
    """The principal axes of some features."""
    X = np.zeros((A.shape[1], r))
    X[rows] = principal(A[:, rows], r)
    return X


def on_support(X: np.ndarray, support: np.ndarray) -> np.ndarray | None:
    """Orthonormal columns within a support near X, or None: alternating projections."""
    X = np.where(support, X, 0.0)
    for _ in range(300):
        if not np.all(np.linalg.norm(X, axis=0) > 1e-8):
            return None
        u, s, v = np.linalg.svd(X, full_matrices=False)
        if np.abs(s - 1.0).max() < 1e-9:
            return X
        X = np.where(support, u @ v, 0.0)
    return None


def largest(X: np.ndarray, count: int) -> np.ndarray:
    """Where the ``count`` largest magnitudes of each column are."""
    order = np.argsort(-np.abs(X), axis=0, kind="stable")
    support = np.zeros(X.shape, dtype=bool)
    np.put_along_axis(support, order[:count], True, axis=0)
    return support


def one_sign(axis: np.ndarray) -> np.ndarray:
    """The positive part of an axis, with the sign of its larger half."""
    return np.maximum(axis * (1.0 if np.sum(axis * np.abs(axis)) >= 0.0 else -1.0), 0.0)


def disjoint(A: np.ndarray, r: int, count: int, nonnegative: bool = False) -> np.ndarray:
    """One column after the other: ``count`` features of the leading axis of those that are left."""
    n = A.shape[1]
    free = np.ones(n, dtype=bool)
    X = np.zeros((n, r))
    for t in range(r):
        rows = np.flatnonzero(free)
        most = min(count, len(rows) - (r - t - 1))
        axis = principal(A[:, rows], 1)[:, 0]
        size = one_sign(axis) if nonnegative else np.abs(axis)
        chosen = rows[np.argsort(-size, kind="stable")[:most]]
        axis = principal(A[:, chosen], 1)[:, 0]
        axis = one_sign(axis) if nonnegative else axis
        X[chosen, t] = axis / np.linalg.norm(axis)
        free[chosen] = False
    return X


def powers(A: np.ndarray, counts: list[int], nonnegative: bool = False) -> float:
    """Variance explained by truncated power iterations (Yuan and Zhang, JMLR 14, 2013).

    Columns with ``counts`` nonzeros on features of their own are made one after the other, from 30
    leading axes of the features that are left, and then each again; none is solved exactly.
    """
    supports: list[np.ndarray] = [np.array([], dtype=int)] * len(counts)
    values = np.zeros(len(counts))
    for _ in range(3):
        for t, count in enumerate(counts):
            free = np.ones(A.shape[1], dtype=bool)
            free[np.concatenate([rows for s, rows in enumerate(supports) if s != t])] = False
            B = A * free
            for x in np.linalg.svd(B, full_matrices=False)[2][:30]:
                for sign in (1.0, -1.0) if nonnegative else (1.0,):
                    value, rows = climbed(B, sign * x, count, nonnegative)
                    if value > values[t]:
                        values[t], supports[t] = value, rows
    return float(np.sum(values))


def climbed(
    B: np.ndarray, x: np.ndarray, count: int, nonnegative: bool
) -> tuple[float, np.ndarray]:
    """``‖Bx‖²`` and support at the end of power iterations truncated to ``count`` entries."""
    value, rows = 0.0, np.array([], dtype=int)
    for _ in range(100):
        size = np.maximum(x, 0.0) if nonnegative else np.abs(x)
        kept = np.argsort(-size, kind="stable")[:count]
        v = np.maximum(x[kept], 0.0) if nonnegative else x[kept]
        norm = np.linalg.norm(v)
        if norm == 0.0:
            break
        image = B[:, kept] @ (v / norm)
        reached = float(image @ image)
        if reached <= value * (1.0 + 1e-9):
            break
        value, rows, x = reached, kept[v != 0.0], B.T @ image
    return value, rows


def block_powers(A: np.ndarray, r: int, count: int) -> float:
    """Variance explained by r axes on ``count`` features, by power iterations of whole blocks.

    They begin at 30 random mixtures of 30 leading axes and keep the features with the largest rows.
    """
    axes = np.linalg.svd(A, full_matrices=False)[2][:30]
    rng = np.random.default_rng(0)
    best = 0.0
    for _ in range(30):
        value, mixture = 0.0, axes.T @ rng.standard_normal((len(axes), r))
        for X in islice(block_iterates(A, mixture, count), 100):
            reached = explained(A, X)
            if reached <= value * (1.0 + 1e-9):
                break
            value = reached
        best = max(best, value)
    return best


def block_iterates(A: np.ndarray, Y: np.ndarray, count: int) -> Iterator[np.ndarray]:
    """The axes X of the ``count`` features with the largest rows of Y, then of ``AᵀAX``, ..."""
    while True:
        X = on_rows(A, np.argsort(-np.sum(Y**2, axis=1), kind="stable")[:count], Y.shape[1])
        yield X
        Y = A.T @ (A @ X)


def selection(A: np.ndarray, r: int) -> np.ndarray:
    """The r features of largest variance."""
    X = np.zeros((A.shape[1], r))
    X[np.argsort(-np.sum(A**2, axis=0), kind="stable")[:r], np.arange(r)] = 1.0
    return X


def by_count(A: np.ndarray, r: int, count: int) -> Iterator[np.ndarray]:
    """Points with at most ``count`` nonzeros."""
    yield selection(A, r)
    axes, each = principal(A, r), count // r
    yield from by_rows(A, r, each, axes)
    near = on_support(axes, largest(axes, each))
    if near is not None:
        yield near
    yield disjoint(A, r, each)


def by_rows(
    A: np.ndarray, r: int, count: int, axes: np.ndarray | None = None
) -> Iterator[np.ndarray]:
    """Points with at most ``count`` nonzero rows."""
    yield selection(A, r)
    if count >= r:
        axes = principal(A, r) if axes is None else axes
        for weight in (np.sum(axes**2, axis=1), np.sum(A**2, axis=0)):
            yield on_rows(A, np.argsort(-weight, kind="stable")[:count], r)


def by_features(A: np.ndarray, r: int, count: int) -> Iterator[np.ndarray]:
    """Points with at most ``count`` nonzero rows, also of columns made one by one or in a block."""
    axes = principal(A, r)
    yield from by_rows(A, r, count, axes)
    if count >= r:
        own = disjoint(A, r, count // r)
        yield on_rows(A, np.flatnonzero(own.any(axis=1)), r)
        yield from islice(block_iterates(A, axes * np.linalg.norm(A @ axes, axis=0), count), 10)


def nonnegative(A: np.ndarray, r: int) -> Iterator[np.ndarray]:
    """Points without negative entries."""
    yield selection(A, r)
    for count in {1, max(1, A.shape[1] // r), A.shape[1]}:
        yield disjoint(A, r, count, nonnegative=True)


def penalised(A: np.ndarray, r: int) -> Iterator[np.ndarray]:
    """Points of many degrees of sparsity."""
    n = A.shape[1]
    for count in sorted({r, 2 * r, 5 * r, n * r // 8, n * r // 2, n * r}):
        if r <= count <= n * r:
            yield from by_count(A, r, count)
