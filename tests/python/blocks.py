"""Blocks of k rows and pairs of mixed sign in plain NumPy, the reference of the theory tests.

The model of a block B of rows with Z = X_B is, up to h(Z), the change

    K(V) = ⟨V − I, G_B Zᵀ⟩ + ½ tr(C_BB E ZZᵀ Eᵀ) + α/2 ‖E‖² + h(VZ),   E = V − I,

for f = ½⟨X, CX⟩ + ⟨L, X⟩ (OBCD paper, eq. 10 with the exact Q of eq. 8).
"""

from __future__ import annotations

import itertools

import numpy as np

from . import reference


def norm2(a: np.ndarray) -> float:
    return float(np.sum(a * a))


def gradient(C: np.ndarray, L: np.ndarray, X: np.ndarray) -> np.ndarray:
    return C @ X + L


def objective(C: np.ndarray, L: np.ndarray, X: np.ndarray, kind: str, lam: float) -> float:
    f = 0.5 * np.sum(X * (C @ X)) + np.sum(L * X)
    return float(f + reference.penalty_value(kind, lam, X.ravel()))


def moved(X: np.ndarray, B: list[int], V: np.ndarray) -> np.ndarray:
    """X + U_B (V − I) U_Bᵀ X."""
    X = X.copy()
    X[B] = V @ X[B]
    return X


def changes(
    V: np.ndarray, C: np.ndarray, L: np.ndarray, X: np.ndarray, B: list[int], alpha: float
) -> np.ndarray:
    """The smooth part of K for every V of an array (m, k, k)."""
    Z, G = X[B], gradient(C, L, X)[B]
    E = V - np.eye(len(B))
    value = np.einsum("mij,ij->m", E, G @ Z.T) + 0.5 * alpha * np.einsum("mij,mij->m", E, E)
    return value + 0.5 * np.einsum("ij,mjk,kl,mil->m", C[np.ix_(B, B)], E, Z @ Z.T, E)


def orthogonal(rng: np.random.Generator, k: int) -> np.ndarray:
    """Uniformly distributed, of either determinant."""
    Q, R = np.linalg.qr(rng.standard_normal((k, k)))
    return Q * np.sign(np.diag(R))


def block_search(
    C: np.ndarray,
    L: np.ndarray,
    X: np.ndarray,
    B: list[int],
    alpha: float,
    lam: float = 0.0,
) -> tuple[float, np.ndarray]:
    """The best found (K(V) − K(I), V) over the orthogonal k × k matrices, h = λ‖·‖₁.

    Random and signed permutation matrices, the best of them refined by random turns that become
    smaller and smaller. V = I wins ties up to 1e-12.
    """
    k, rng = len(B), np.random.default_rng(0)
    norm = np.abs(X[B]).sum()

    def values(V: np.ndarray) -> np.ndarray:
        penalty = np.abs(V @ X[B]).sum(axis=(1, 2)) - norm
        return changes(V, C, L, X, B, alpha) + lam * penalty

    signed = [
        np.eye(k)[list(p)] * s
        for p in itertools.permutations(range(k))
        for s in itertools.product((1.0, -1.0), repeat=k)
    ]
    V = np.array([*signed, *(orthogonal(rng, k) for _ in range(200))])
    V = V[np.argsort(values(V))[:8]]
    for size in np.geomspace(1.0, 1e-8, 60):
        turn = rng.standard_normal((len(V), 25, k, k)) * size
        turn = 0.5 * (turn - turn.swapaxes(-1, -2))
        cayley = np.linalg.solve(np.eye(k) + turn, np.eye(k) - turn)
        near = np.concatenate([V[:, None], cayley @ V[:, None]], axis=1)
        at = values(near.reshape(-1, k, k)).reshape(len(V), -1)
        V = near[np.arange(len(V)), np.argmin(at, axis=1)]
    at = values(V)
    best = int(np.argmin(at))
    return (0.0, np.eye(k)) if at[best] >= -1e-12 else (float(at[best]), V[best])


def block_measure(
    C: np.ndarray, L: np.ndarray, X: np.ndarray, k: int, alpha: float, lam: float = 0.0
) -> float:
    """Definition 4.1 by search: the mean of dist(I, argmin K)² over all C(n, k) blocks.

    Of several minimisers the one that is found counts.
    """
    blocks = itertools.combinations(range(len(X)), k)
    found = [block_search(C, L, X, list(B), alpha, lam)[1] for B in blocks]
    return float(np.mean([np.sum((V - np.eye(k)) ** 2) for V in found]))


def scalar_pair(P: np.ndarray, weight: float, opposite: bool) -> np.ndarray:
    """argmin ½ weight ‖V‖² + ⟨V, P⟩ over VᵀJV = J, J = ±I or of opposite signs.

    On the hyperbola, V = diag(s₁, s₂)·[[cosh μ, sinh μ], [sinh μ, cosh μ]], the value is
    weight·cosh 2μ + a cosh μ + b sinh μ, and e^μ a root of a quartic.
    """
    if not opposite:
        U, _, Vt = np.linalg.svd(P)
        return -U @ Vt
    best, found = np.inf, np.eye(2)
    for signs in itertools.product((1.0, -1.0), repeat=2):
        a = signs[0] * P[0, 0] + signs[1] * P[1, 1]
        b = signs[0] * P[0, 1] + signs[1] * P[1, 0]
        roots = np.roots([2 * weight, a + b, 0.0, b - a, -2 * weight])
        for u in roots[(np.abs(roots.imag) < 1e-9 * np.abs(roots)) & (roots.real > 0)].real:
            c, s = 0.5 * (u + 1 / u), 0.5 * (u - 1 / u)
            value = weight * (2 * c * c - 1) + a * c + b * s
            if value < best:
                best, found = value, np.array(signs)[:, None] * np.array([[c, s], [s, c]])
    return found
