"""Lemmas of the JOBCD paper's appendices on small instances."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.linalg import expm

import orthobcd as ob

from ..blocks import moved, scalar_pair

pytestmark = pytest.mark.long

J = np.diag([1.0, -1.0, 1.0, -1.0])

N = 4
"""Rows, and components of the finite sums."""

MATCHINGS = [[[0, 1], [2, 3]], [[0, 2], [1, 3]], [[0, 3], [1, 2]]]
PAIRS = [list(B) for B in itertools.combinations(range(N), 2)]
THETA = 0.1


def norm(a: np.ndarray) -> float:
    return float(np.linalg.norm(a))


class Sum:
    """f_i = ½ tr(XᵀC_iX) + Σ log cosh X_kl, each with a gradient of the constant L."""

    def __init__(self, seed: int) -> None:
        A = np.random.default_rng(seed).standard_normal((N, N, N))
        self.C = A @ A.swapaxes(1, 2) / N
        self.L = max(np.linalg.norm(C, 2) for C in self.C) + 1.0

    def gradient(self, X: np.ndarray, batch: tuple[int, ...] = tuple(range(N))) -> np.ndarray:
        return self.C[list(batch)].mean(axis=0) @ X + np.tanh(X)


def residual(G: np.ndarray, X: np.ndarray) -> np.ndarray:
    """W = GXᵀ − JXGᵀJ: zero where X is critical, and ∇_J f(X) = W JXJ."""
    return G @ X.T - J @ X @ G.T @ J


def turn(G: np.ndarray, X: np.ndarray, B: list[int], weight: float) -> np.ndarray:
    """V of the pair B for the gradient G and Q + θI = weight·I."""
    P = G[B] @ X[B].T - weight * np.eye(2)
    return scalar_pair(P, weight, bool(J[B[0], B[0]] != J[B[1], B[1]]))


def at(W: np.ndarray, B: list[int]) -> float:
    return norm(W[np.ix_(B, B)])


def test_lemma_2_4_the_pairs_of_a_matching_do_not_depend_on_each_other():
    """P of a pair has its own rows of X and of the gradient: the order of the moves is free."""
    rng = np.random.default_rng(0)
    for seed in range(10):
        X, G = ob.hyperbolic.random_j_orthogonal(np.diag(J), 0.5, seed), rng.standard_normal((N, N))
        for matching in MATCHINGS:
            together = X.copy()
            for B in matching:
                together[B] = turn(G, X, B, 3.0) @ X[B]
            for order in itertools.permutations(matching):
                Y = X
                for B in order:
                    Y = moved(Y, B, turn(G, Y, B, 3.0))
                np.testing.assert_allclose(Y, together, rtol=1e-12, atol=1e-13)


def test_lemma_a3_the_tangent_space():
    """{Y : XᵀJY + YᵀJX = 0} has the dimension n(n − 1)/2, and holds the directions of curves."""
    rng = np.random.default_rng(2)
    for seed in range(10):
        X = ob.hyperbolic.random_j_orthogonal(np.diag(J), 0.5, seed)
        condition = [X.T @ J @ Y + Y.T @ J @ X for Y in np.eye(N * N).reshape(-1, N, N)]
        assert N * N - np.linalg.matrix_rank(np.reshape(condition, (N * N, -1))) == N * (N - 1) // 2
        skew = rng.standard_normal((N, N))
        skew = skew - skew.T
        Y, t = X @ J @ skew, 1e-5
        assert norm(X.T @ J @ Y + Y.T @ J @ X) < 1e-12 * norm(X) ** 2 * norm(skew)
        ahead, behind = X @ expm(t * J @ skew), X @ expm(-t * J @ skew)
        assert norm(ahead.T @ J @ ahead - J) < 1e-12 * norm(X) ** 2
        assert norm((ahead - behind) / (2 * t) - Y) < 1e-7 * norm(X) * norm(skew) ** 3


def test_lemmas_e1_and_e2_one_iteration_of_vr_j_jobcd():
    """All matchings, batches of two of four components and both cases of the estimate."""
    p, n = 2 / (N + 2), N
    batches = list(itertools.combinations(range(N), 2))
    for seed in range(6):
        f, rng = Sum(seed), np.random.default_rng(seed)
        X = ob.hyperbolic.random_j_orthogonal(np.diag(J), 0.4, seed)
        for error in (0.0, 0.3, 3.0):
            estimate = f.gradient(X) + error * rng.standard_normal((N, N)) / N
            root = norm(estimate - f.gradient(X))
            gaps, lengths, residuals, angles = [], [], [], []
            sizes, steep, long = [norm(X)], [norm(estimate)], [1.0]
            for matching in MATCHINGS:
                turns = [turn(estimate, X, B, f.L + THETA) for B in matching]
                Y = X
                for B, V in zip(matching, turns, strict=True):
                    Y = moved(Y, B, V)
                angles.append(sum(norm(V - np.eye(2)) for V in turns))
                lengths.append(norm(Y - X))
                sizes.append(norm(Y))
                long.extend(norm(V) for V in turns)
                corrected = [
                    estimate + f.gradient(Y, batch) - f.gradient(X, batch) for batch in batches
                ]
                steep.extend(norm(G) for G in [f.gradient(Y), *corrected])

                def mean(value, there=Y, corrected=corrected, f=f):
                    rest = np.mean([value(G) for G in corrected])
                    return p * value(f.gradient(there)) + (1 - p) * rest

                gaps.append(mean(lambda G, estimate=estimate: norm(G - estimate)))
                residuals.append(
                    mean(
                        lambda G, Y=Y: np.mean(
                            [sum(at(residual(G, Y), B) for B in other) for other in MATCHINGS]
                        )
                    )
                )
            assert np.mean(gaps) <= (p * root + f.L * np.mean(lengths)) * (1 + 1e-12)
            x, g, v = max(sizes), max(steep), max(long)
            phi = (3 * x + v * x) * g + (1 + v**2) * THETA
            phi += (1 + v**2 + n / 2 * (x**2 + v**2 * x**2)) * f.L
            assert np.mean(residuals) <= phi * np.mean(angles) + n * p * root / 2 * (x + v**2 * x)


def test_lemma_e6_one_iteration_of_gs_jobcd():
    for seed in range(20):
        f = Sum(seed)
        X = ob.hyperbolic.random_j_orthogonal(np.diag(J), 0.4, seed)
        turns = [turn(f.gradient(X), X, B, f.L + THETA) for B in PAIRS]
        ends = [moved(X, B, V) for B, V in zip(PAIRS, turns, strict=True)]
        x, v = max(map(norm, [X, *ends])), max(map(norm, turns))
        g = max(norm(f.gradient(Y)) for Y in [X, *ends])
        phi = (3 * x + v * x) * g + (1 + x**2 + v**2 + v**2 * x**2) * f.L + (1 + v**2) * THETA
        left = np.mean([at(residual(f.gradient(Y), Y), B) for Y in ends for B in PAIRS])
        assert left <= phi * np.mean([norm(V - np.eye(2)) for V in turns])


def test_lemmas_e3_and_e7_need_second_moments():
    """W has one pair: matchings without it have a residual of zero, and first moments are small."""
    X, G = np.eye(N), np.zeros((N, N))
    G[0, 1] = 1.0
    W = residual(G, X)
    whole, gamma = norm(W @ J @ X @ J), norm(X) * np.sqrt(len(PAIRS))
    # E.3 is stated for the matching of the iteration, E.7 for the mean over all pairs.
    assert sum(at(W, B) for B in MATCHINGS[1]) == 0.0 < whole
    assert whole > gamma * np.mean([at(W, B) for B in PAIRS]) * 1.2
    for seed in range(20):
        X = ob.hyperbolic.random_j_orthogonal(np.diag(J), 0.5, seed)
        f = Sum(seed)
        G = f.gradient(X)
        estimate = G + 0.1 * np.random.default_rng(seed).standard_normal((N, N))
        gamma, whole = norm(X) * np.sqrt(len(PAIRS)), norm(residual(G, X) @ J @ X @ J)
        squares = np.mean([at(residual(G, X), B) ** 2 for B in PAIRS])
        assert whole <= gamma * np.sqrt(squares) * (1 + 1e-12)
        matched = [sum(at(residual(estimate, X), B) ** 2 for B in M) for M in MATCHINGS]
        bound = gamma * np.sqrt(np.mean(matched)) + 2 * norm(X) ** 2 * norm(estimate - G)
        assert whole <= bound * (1 + 1e-12)


def test_lemma_e8_powers_of_a_sum():
    for c in (1e-3, 0.3, 0.5, 1.0, 1.7, 3.0, 9.0):
        for a, b in itertools.product((0.0, 1e-9, 0.2, 1.0, 5.0), repeat=2):
            assert (a + b) ** c <= 2 ** abs(c - 1) * (a**c + b**c) * (1 + 1e-12)
