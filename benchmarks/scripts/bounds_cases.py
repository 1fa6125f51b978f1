"""Small problems with feasible points as good as enumeration of the supports makes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import orthobcd as ob

Matrix = NDArray[np.float64]

KINDS = ("total", "columns", "L0", "L1", "NonNegative", "NoPenalty")
"""Kinds of h."""


@dataclass(frozen=True)
class Case:
    """A problem, and its best feasible point of those tried."""

    problem: ob.StiefelProblem
    x: Matrix
    objective: float
    exact: bool
    """True if the point is known to be optimal."""


def objective(problem: ob.StiefelProblem, x: Matrix) -> float:
    """F at a feasible x, in plain NumPy."""
    h = problem.penalty
    value = 0.5 * float(np.sum(x * (problem.smooth.C @ x)))
    if isinstance(h, ob.L0):
        return value + h.lam * np.count_nonzero(x)
    if isinstance(h, ob.L1):
        return value + float(np.sum(h.lam * np.abs(x)))
    return value


def leading(C: Matrix, rows: list[int], signs: bool = True) -> tuple[float, Matrix]:
    """Leading eigenvalue and vector of a block of C; with signs=False its magnitudes and value."""
    value, vectors = np.linalg.eigh(C[np.ix_(rows, rows)])
    x = np.zeros(len(C))
    x[rows] = vectors[:, -1] if signs else np.abs(vectors[:, -1])
    return (value[-1] if signs else float(x @ C @ x)), x


def disjoint(C: Matrix, r: int, limits: list[int], signs: bool) -> list[Matrix]:
    """For every number of nonzeros in all, the best columns on disjoint supports."""
    n = len(C)
    rows = [[i for i in range(n) if mask >> i & 1] for mask in range(1 << n)]
    single = [leading(C, at, signs) if at else (-np.inf, np.zeros(n)) for at in rows]
    best = {0: (0.0, ())}
    for limit in limits:
        following: dict[int, tuple[float, tuple[int, ...]]] = {}
        for used, (value, chosen) in best.items():
            rest = ((1 << n) - 1) & ~used
            mask = rest
            while mask:
                if len(rows[mask]) <= limit:
                    total = value + single[mask][0]
                    if total > following.get(used | mask, (-np.inf,))[0]:
                        following[used | mask] = (total, (*chosen, mask))
                mask = (mask - 1) & rest
        best = following
    points: dict[int, tuple[float, Matrix]] = {}
    for used, (value, chosen) in best.items():
        count = len(rows[used])
        if value > points.get(count, (-np.inf,))[0]:
            points[count] = value, np.stack([single[mask][1] for mask in chosen], axis=1)
    return [x for _, x in points.values()]


def overlapping(C: Matrix, sizes: list[int], rng: np.random.Generator) -> Matrix | None:
    """Columns on random supports; each in turn is the best column orthogonal to the others."""
    n, r = len(C), len(sizes)
    supports = [rng.choice(n, size=k, replace=False) for k in sizes]
    x = np.zeros((n, r))
    for _sweep in range(6):
        for t, rows in enumerate(supports):
            others = np.delete(x, t, axis=1)[rows]
            left, values, _ = np.linalg.svd(others, full_matrices=True)
            rank = int(np.count_nonzero(values > 1e-9))
            if (values[:rank] < 1e-3).any() or rank == len(rows):
                return None
            free = left[:, rank:]
            _, vectors = np.linalg.eigh(free.T @ C[np.ix_(rows, rows)] @ free)
            x[:, t] = 0.0
            x[rows, t] = free @ vectors[:, -1]
    return x if np.linalg.norm(x.T @ x - np.eye(r)) < 1e-11 else None


def make(seed: int, most_rows: int = 9) -> Case:
    """A random problem of n ≤ 9 rows and r ≤ 3 columns."""
    rng = np.random.default_rng(seed)
    r = int(rng.integers(1, 4))
    n = int(rng.integers(max(3, r), most_rows + 1))
    kind = KINDS[seed % len(KINDS)]
    A = rng.standard_normal((n, n)) * rng.lognormal(size=n)
    C = A @ A.T if rng.random() < 0.5 else A + A.T
    C = C * 10.0 ** rng.integers(-3, 4)
    size = float(np.abs(C).max())
    limits, total, lam = [n] * r, n * r, float(0.3 * rng.random() * size)
    h: ob.penalties.Penalty = ob.NoPenalty()
    if kind == "total":
        total = int(rng.integers(r, min(n * r, 4 * r) + 1))
        h = ob.Cardinality(total)
    elif kind == "columns":
        limits = [int(k) for k in rng.integers(1, n + 1, size=r)]
        h = ob.Cardinality(limits)
    elif kind == "L0":
        h = ob.L0(lam)
    elif kind == "L1":
        h = ob.L1(lam if rng.random() < 0.5 else lam * rng.random((n, r)))
    elif kind == "NonNegative":
        h = ob.NonNegative()
    problem = ob.StiefelProblem(ob.Quadratic(-C), h, r)
    points = disjoint(C, r, limits, signs=kind != "NonNegative")
    points = [x for x in points if np.count_nonzero(x) <= total]
    if kind == "NoPenalty":
        points.append(np.linalg.eigh(C)[1][:, -r:])
    if kind != "NonNegative":
        for _ in range(20):
            sizes = [int(rng.integers(1, k + 1)) for k in limits]
            x = overlapping(C, sizes, rng)
            if x is not None and np.count_nonzero(x) <= total:
                points.append(x)
    if not points:
        # Supports of one row each satisfy every limit.
        points = [np.eye(n)[:, :r]]
    values = [objective(problem, x) for x in points]
    best = int(np.argmin(values))
    exact = kind == "NoPenalty" or (r == 1 and kind in ("total", "columns", "L0"))
    return Case(problem, points[best], values[best], exact)
