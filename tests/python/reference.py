"""The papers' method in plain NumPy, literal and slow: the reference of the tests.

Equation and section numbers are those of "A Block Coordinate Descent Method for Nonsmooth
Composite Optimization under Orthogonality Constraints". The module has two independent solvers of
the pair problem:

* `grid_pair` scans a dense grid of angles on both branches and refines the best cells;
* `breakpoint_pair` is the papers' breakpoint search with quartics in t = tan θ, corrected
  (breakpoints at −x/y, every column kept; the printed version has the sign reversed).
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

PENALTIES = ("none", "l0", "l1", "nonnegative")


def signs(n: int, p: int) -> np.ndarray:
    """A signature: p times +1, then −1."""
    return np.repeat([1, -1], [p, n - p])


def penalty_value(kind: str, lam: float, x: np.ndarray) -> np.ndarray:
    """h summed over the last axis."""
    if kind == "l0":
        return lam * np.count_nonzero(x, axis=-1)
    if kind == "l1":
        return lam * np.abs(x).sum(axis=-1)
    if kind == "nonnegative":
        return np.where((x < 0.0).any(axis=-1), np.inf, 0.0)
    return np.zeros(x.shape[:-1])


KINDS = dict(zip(("NoPenalty", "L0", "L1", "NonNegative"), PENALTIES, strict=True))


def kind_of(penalty: Any) -> tuple[str, Any]:
    """The kind and the weight of a penalty of the package."""
    return KINDS[type(penalty).__name__], getattr(penalty, "lam", 0.0)


def value(problem: Any, x: np.ndarray, zero: float = 0.0) -> np.ndarray:
    """F at a point or at each of several, from the definition; entries up to ``zero`` are 0."""
    smooth, entries = problem.smooth, (-2, -1)
    if hasattr(smooth, "A"):
        f = 0.5 * smooth.scale * np.sum(np.asarray(smooth.A @ x) ** 2, axis=entries)
    else:
        f = 0.5 * np.sum(x * (smooth.C @ (x if smooth.D is None else x @ smooth.D)), axis=entries)
        f = f if smooth.linear is None else f + np.sum(smooth.linear * x, axis=entries)
    x = np.where(np.abs(x) > zero, x, 0.0)
    return f + penalty_value(*kind_of(problem.penalty), x.reshape(*x.shape[:-2], -1))


def branch(theta: float, reflect: bool) -> np.ndarray:
    """V = [[c, s], [−s, c]], or [[−c, s], [s, c]] (section 3.3)."""
    c, s = np.cos(theta), np.sin(theta)
    return np.array([[-c, s], [s, c]]) if reflect else np.array([[c, s], [-s, c]])


def grid_pair(
    Z: np.ndarray,
    G: np.ndarray,
    M: np.ndarray,
    S: np.ndarray,
    kind: str,
    lam: float,
    points: int = 4001,
    own: bool = False,
) -> tuple[float, np.ndarray]:
    """The best V of a dense grid on both branches, its best cells refined.

    Entries within 1e-12 of zero count as zero, with ``own`` within the rounding of the two rows, so
    that the isolated breakpoints of ℓ0 and of the nonnegativity constraint are met; they are added
    to the grid.
    """
    size = float(np.abs(Z).sum(axis=0).max())
    zero = 4 * np.finfo(float).eps * size if own else 1e-12 * max(1.0, float(np.abs(Z).max()))

    def values(thetas: np.ndarray, reflect: bool) -> np.ndarray:
        c, s = np.cos(thetas), np.sin(thetas)
        V = np.array([[-c, s], [s, c]]) if reflect else np.array([[c, s], [-s, c]])
        E = V - np.eye(2)[:, :, None]
        GZ = G @ Z.T
        smooth = np.einsum("ijt,ij->t", E, GZ)
        smooth += 0.5 * np.einsum("ij,jkt,kl,ilt->t", M, E, S, E)
        new = np.einsum("ijt,jk->tik", V, Z)
        new[np.abs(new) <= zero] = 0.0
        return smooth + penalty_value(kind, lam, new.reshape(len(thetas), -1))

    best = (np.inf, np.eye(2))
    breakpoints = np.arctan2(-Z[0], Z[1])
    special = np.concatenate([breakpoints + k * np.pi / 2 for k in range(4)])
    special = np.concatenate([special, -special, np.arange(4) * np.pi / 2])
    for reflect in (False, True):
        thetas = np.sort(np.concatenate([np.linspace(-np.pi, np.pi, points), special]))
        value = values(thetas, reflect)
        for index in np.argsort(value)[:8]:
            lo, hi = thetas[max(index - 1, 0)], thetas[min(index + 1, len(thetas) - 1)]
            center = thetas[index]
            if value[index] < best[0]:
                best = (float(value[index]), branch(center, reflect))
            for _ in range(12):
                local = np.linspace(lo, hi, 41)
                at = values(local, reflect)
                k = int(np.argmin(at))
                if at[k] < best[0]:
                    best = (float(at[k]), branch(local[k], reflect))
                lo, hi = local[max(k - 1, 0)], local[min(k + 1, 40)]
    return best


def _roots(coefficients: list[float]) -> np.ndarray:
    """Real parts of the nearly real roots, leading zeros dropped."""
    c = np.trim_zeros(np.asarray(coefficients, dtype=float), "f")
    if len(c) < 2:
        return np.zeros(0)
    roots = np.roots(c)
    return roots[np.abs(roots.imag) < 1e-5 * (1.0 + np.abs(roots))].real


def breakpoint_pair(
    Z: np.ndarray, G: np.ndarray, Q: np.ndarray, alpha: float, kind: str, lam: float
) -> tuple[float, np.ndarray]:
    """min ½‖V‖²_Q + ⟨V, P⟩ + h(VZ), P = GZᵀ − mat(Q vec I) − αI, over orthogonal V (section 3.3).

    Q is 4×4 and vec stacks columns. Returns the value of that expression and the V.
    """
    P = G @ Z.T - (Q @ np.eye(2).ravel(order="F")).reshape(2, 2, order="F") - alpha * np.eye(2)
    best = (np.inf, np.eye(2))

    def offer(V: np.ndarray, vanishing: int | None = None) -> None:
        nonlocal best
        new = V @ Z
        if vanishing is not None:
            k = vanishing
            row = int(np.argmin(np.abs(new[:, k])))
            new[row, k] = 0.0
        if kind == "nonnegative":
            new[np.abs(new) < 1e-13] = 0.0
        v = V.ravel(order="F")
        value = 0.5 * v @ Q @ v + np.sum(V * P) + float(penalty_value(kind, lam, new.ravel()))
        if value < best[0]:
            best = (float(value), V)

    offer(np.eye(2))
    for reflect in (False, True):
        sign = -1.0 if reflect else 1.0
        a = P[1, 1] + sign * P[0, 0]
        b = P[0, 1] - sign * P[1, 0]
        c = 0.5 * (Q[0, 0] + Q[3, 3]) + sign * Q[0, 3]
        d = -Q[0, 1] + sign * Q[0, 2] - sign * Q[1, 3] + Q[2, 3]
        e = 0.5 * (Q[1, 1] + Q[2, 2]) - sign * Q[1, 2]
        w = c - e
        x = np.concatenate([sign * Z[0], Z[1]])
        y = np.concatenate([Z[1], -sign * Z[0]])
        for half in (1.0, -1.0):
            for theta in (0.0, np.pi / 2, -np.pi / 2, np.pi):
                offer(branch(theta, reflect))
            finite = y != 0.0
            points = -x[finite] / y[finite]
            for t, column in zip(points, np.flatnonzero(finite) % Z.shape[1], strict=True):
                offer(_at(half, t, reflect), int(column))
            edges = np.concatenate([[-np.inf], np.sort(points), [np.inf]])
            arcs = itertools.pairwise(edges) if kind == "l1" else [(-np.inf, np.inf)]
            for lo, hi in arcs:
                o = np.zeros_like(x)
                if kind == "l1":
                    t = 0.0 if np.isinf(lo) and np.isinf(hi) else _inside(lo, hi)
                    o = lam * np.sign(half * (x + t * y))
                A, E = half * (a + o @ x), half * (b + o @ y)
                quartic = [
                    d * d - A * A,
                    4 * w * d + 2 * A * E,
                    4 * w * w - 2 * d * d - A * A - E * E,
                    2 * A * E - 4 * w * d,
                    d * d - E * E,
                ]
                candidates = list(_roots(quartic)) + ([E / A] if A != 0.0 else [])
                for t in candidates:
                    offer(_at(half, t, reflect))
    return best


def _inside(lo: float, hi: float) -> float:
    if np.isinf(lo):
        return hi - 1.0
    if np.isinf(hi):
        return lo + 1.0
    return 0.5 * (lo + hi)


def _at(half: float, t: float, reflect: bool) -> np.ndarray:
    length = np.hypot(1.0, t)
    c, s = half / length, half * t / length
    return np.array([[-c, s], [s, c]]) if reflect else np.array([[c, s], [-s, c]])


def exact_curvature(Z: np.ndarray, C: np.ndarray, B: list[int]) -> np.ndarray:
    """Q of eq. 8 for f = ½⟨X, CX⟩: ZZᵀ ⊗ C_BB."""
    return np.kron(Z @ Z.T, C[np.ix_(B, B)])


def stationary_gap(problem: Any, X: np.ndarray) -> float:
    """The largest decrease of F that a single pair can make, by the dense grid."""
    n, (kind, lam), C, linear = (
        len(X),
        kind_of(problem.penalty),
        problem.smooth.C,
        problem.smooth.linear,
    )
    G = C @ X if linear is None else C @ X + linear
    worst = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            B = [i, j]
            Z = X[B]
            best, _ = grid_pair(Z, G[B], C[np.ix_(B, B)], Z @ Z.T, kind, lam, points=721)
            worst = max(worst, float(penalty_value(kind, lam, Z.ravel())) - best)
    return worst
