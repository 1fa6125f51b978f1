"""The papers' method in plain NumPy, literal and slow: the reference of the tests.

Equation and section numbers are those of "A Block Coordinate Descent Method for Nonsmooth
Composite Optimization under Orthogonality Constraints". `grid_pair` solves the pair problem: it
scans a dense grid of angles on both branches and refines the best cells.
"""

from __future__ import annotations

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
