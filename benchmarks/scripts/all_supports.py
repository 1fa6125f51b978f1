"""Limits per component against every choice of supports, on small random matrices.

Run with ``python scripts/all_supports.py [--first SEED] [--instances N] [--max-work W]``: n from 6
to 10, r = 2 or 3, limits of 2 to 4. A bound from the leading eigenvalues on one, two and all
supports excludes choices of supports that cannot be better than our solution. SLSQP solves the
other choices from random starts, independently of our solution. Instances with more than `MOST`
such choices are counted as skipped.
"""

from __future__ import annotations

import argparse
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import minimize

import orthobcd as ob

Support = tuple[int, ...]

MOST = 2500
"""Largest number of choices of supports that are solved."""

STARTS = 6
"""Random starts of each choice of supports."""

BETTER = 1e-6
"""Relative difference of objectives above which one counts as better."""


def instance(seed: int) -> tuple[np.ndarray, list[int]]:
    """A covariance (seed even) or correlation matrix, and limits."""
    rng = np.random.default_rng(seed)
    n, r = int(rng.integers(6, 11)), int(rng.integers(2, 4))
    limits = sorted(rng.integers(2, 5, size=r).tolist(), reverse=True)
    data = rng.standard_normal((int(rng.integers(6, 30)), n))
    matrix = data.T @ data
    if seed % 2:
        scale = 1.0 / np.sqrt(np.diag(matrix))
        matrix = scale[:, None] * matrix * scale
    return matrix, limits


def on_supports(matrix: np.ndarray, supports: list[Support], rng: np.random.Generator) -> float:
    """The largest tr(XᵀCX) found for columns with these supports."""
    ends = np.cumsum([0, *map(len, supports)])
    blocks = np.zeros((ends[-1], ends[-1]))
    for t, rows in enumerate(supports):
        blocks[ends[t] : ends[t + 1], ends[t] : ends[t + 1]] = matrix[np.ix_(rows, rows)]
    shared: list[tuple[float, np.ndarray]] = []
    for t, rows in enumerate(supports):
        for s in range(t + 1):
            both = [
                (ends[s] + supports[s].index(i), ends[t] + a)
                for a, i in enumerate(rows)
                if i in supports[s]
            ]
            if both:
                shared.append((float(s == t), np.array(both)))

    def gap(x: np.ndarray) -> np.ndarray:
        return np.array([x[p[:, 0]] @ x[p[:, 1]] - one for one, p in shared])

    def slopes(x: np.ndarray) -> np.ndarray:
        out = np.zeros((len(shared), x.size))
        for row, (_, p) in zip(out, shared, strict=True):
            row[p[:, 1]] += x[p[:, 0]]
            row[p[:, 0]] += x[p[:, 1]]
        return out

    best = -np.inf
    for _ in range(STARTS):
        x0 = rng.standard_normal(int(ends[-1]))
        for t in range(len(supports)):
            x0[ends[t] : ends[t + 1]] /= np.linalg.norm(x0[ends[t] : ends[t + 1]])
        found: Any = minimize(
            lambda x: -0.5 * x @ blocks @ x,
            x0,
            jac=lambda x: -blocks @ x,
            constraints=[{"type": "eq", "fun": gap, "jac": slopes}],
            method="SLSQP",
            options={"maxiter": 200, "ftol": 1e-12},
        )
        if np.abs(gap(found.x)).max() < 1e-8:
            best = max(best, -2.0 * float(found.fun))
    return best


def hopeful(
    matrix: np.ndarray, limits: list[int], goal: float
) -> list[tuple[float, list[Support]]]:
    """The choices of supports whose bound is above a goal, with the bound."""
    n, r = len(matrix), len(limits)

    @cache
    def top(rows: Support, q: int) -> float:
        return float(np.linalg.eigvalsh(matrix[np.ix_(rows, rows)])[-q:].sum())

    lists = [
        sorted(((top(rows, 1), rows) for rows in combinations(range(n), k)), reverse=True)
        for k in limits
    ]
    most = [supports[0][0] for supports in lists]
    kept: list[tuple[float, list[Support]]] = []

    def union(rows: list[Support]) -> Support:
        return tuple(sorted(set().union(*map(set, rows))))

    def bound(chosen: list[tuple[float, Support]]) -> float:
        values, rows = [value for value, _ in chosen], [rows for _, rows in chosen]
        least = min(sum(values), top(union(rows), r))
        for a, b in combinations(range(r), 2):
            pair = top(union([rows[a], rows[b]]), 2)
            least = min(least, pair + sum(values) - values[a] - values[b])
        return least

    def grow(chosen: list[tuple[float, Support]], value: float, first: int) -> None:
        t = len(chosen)
        if t == r:
            above = bound(chosen)
            if above > goal:
                kept.append((above, [rows for _, rows in chosen]))
            return
        for index in range(first if t and limits[t] == limits[t - 1] else 0, len(lists[t])):
            here = lists[t][index]
            if value + here[0] + sum(most[t + 1 :]) <= goal:
                return
            grow([*chosen, here], value + here[0], index)

    grow([], 0.0, 0)
    return sorted(kept, reverse=True)


def main() -> None:
    """Print every instance whose optimum was not found, and their number."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--instances", type=int, default=100)
    parser.add_argument("--max-work", type=float, default=None)
    options = parser.parse_args()
    missed, skipped = [], []
    for seed in range(options.first, options.first + options.instances):
        matrix, limits = instance(seed)
        problem = ob.StiefelProblem(ob.Quadratic(-matrix), ob.Cardinality(limits), len(limits))
        found = -2.0 * ob.solve(problem, max_work=options.max_work, n_threads=1).objective
        choices = hopeful(matrix, limits, found * (1.0 + BETTER))
        if len(choices) > MOST:
            skipped.append(seed)
            continue
        rng = np.random.default_rng(seed)
        best = found
        for above, supports in choices:
            if above > best * (1.0 + BETTER):
                best = max(best, on_supports(matrix, supports, rng))
        if best > found * (1.0 + BETTER):
            missed.append(seed)
            print(f"seed {seed}: {found:.9g}, of all supports {best:.9g}", flush=True)
    solved = options.instances - len(skipped)
    print(f"{solved - len(missed)} of {solved} optimal; skipped {len(skipped)}; missed {missed}")


if __name__ == "__main__":
    main()
