"""Convergence as the OBCD papers claim it: critical points, finitely many steps, linear rates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import orthobcd as ob

from ..blocks import gradient, orthogonal

pytestmark = pytest.mark.long


def instance(seed: int, n: int, r: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    C = rng.standard_normal((n, n))
    return C + C.T, rng.standard_normal((n, r)), orthogonal(rng, n)[:, :r]


def violation(C: np.ndarray, L: np.ndarray, X: np.ndarray) -> np.ndarray:
    """S = XΓᵀ − ΓXᵀ for h = 0 (eq. 30)."""
    G = gradient(C, L, X)
    return X @ G.T - G @ X.T


def distance(C: np.ndarray, L: np.ndarray, X: np.ndarray) -> float:
    """dist(0, ∂_M F(X)) = ‖G − XGᵀX‖ of the papers, for h = 0."""
    G = gradient(C, L, X)
    return float(np.linalg.norm(G - X @ G.T @ X))


def test_theorem_4_11a_sharp_minima_are_reached_in_finitely_many_steps():
    """ℓ1 with a large weight: F grows linearly around signed unit rows (σ = 0)."""
    A = np.random.default_rng(3).standard_normal((10, 6))
    problem = ob.SparsePCAProblem(A, 2, ob.L1(60.0))
    for seed in range(5):
        result = ob.solve(problem, "random", solver=ob.OBCD(working_set="cyclic"), seed=seed)
        assert result.converged
        # The limit is reached exactly: other entries are exact zeros, and no further sweep moves X.
        assert np.count_nonzero(result.x) == 2
        again = ob.solve(problem, result.x, solver=ob.OBCD(working_set="cyclic"))
        assert (again.x == result.x).all()
        assert ob.certify(problem, result.x).block2_gap == 0.0


def test_theorem_4_11b_smooth_eigenvalue_problems_converge_linearly():
    """Distinct eigenvalues, σ = ½: log(F − F*) falls along a line, and so does log ‖X − X*‖."""
    rng = np.random.default_rng(4)
    Q = orthogonal(rng, 6)
    C = Q @ np.diag([1.0, 1.5, 2.2, 3.0, 3.5, 4.0]) @ Q.T
    C = 0.5 * (C + C.T)
    problem = ob.StiefelProblem(ob.Quadratic(C), ob.NoPenalty(), 1)
    X, gaps, distances = Q[:, [0]] + 0.5 * Q[:, [1]] + 0.3 * Q[:, [5]], [], []
    X /= np.linalg.norm(X)
    for _ in range(120):
        gaps.append(0.5 * float(X[:, 0] @ C @ X[:, 0]) - 0.5)
        distances.append(np.linalg.norm(X[:, 0] * np.sign(X[:, 0] @ Q[:, 0]) - Q[:, 0]))
        solver = ob.OBCD(working_set="cyclic", proximal=0.3)
        X = ob.solve(problem, X, solver=solver, max_sweeps=1, tol=0.0).x
    for values, floor in ((np.array(gaps), 1e-13), (np.array(distances), 1e-7)):
        seen = np.log(values[values > floor])
        assert len(seen) > 20
        tail = np.diff(seen[5:])
        # Linear convergence: every sweep gains about the same factor.
        assert (tail < -0.02).all()
        assert tail.min() > 2.0 * tail.max()


def test_lemma_d1_no_violation_means_critical_without_a_penalty():
    rng = np.random.default_rng(5)
    n, r = 6, 2
    Q = orthogonal(rng, n)
    C, L = Q @ np.diag(np.arange(1.0, n + 1)) @ Q.T, np.zeros((n, r))
    for X, critical in (
        (Q[:, [0, 3]] @ orthogonal(rng, r), True),
        (orthogonal(rng, n)[:, :r], False),
    ):
        S = violation(C, L, X)
        pairs = itertools.combinations(range(n), 2)
        largest = max(pairs, key=lambda pair: abs(S[pair]))
        assert (np.abs(S).max() < 1e-12) == (abs(S[largest]) < 1e-12) == critical
        assert (distance(C, L, X) < 1e-12) == critical
        problem = ob.StiefelProblem(ob.Quadratic(0.5 * (C + C.T)), ob.NoPenalty(), r)
        assert (ob.certify(problem, X).criticality < 1e-12) == critical


def test_lemma_d1_is_false_for_one_subgradient_of_l1():
    """Signed unit rows are optimal for a large λ, and sign(0) = +1 gives S ≠ 0 there."""
    A = np.random.default_rng(6).standard_normal((10, 6))
    problem = ob.SparsePCAProblem(A, 2, ob.L1(60.0))
    X = ob.solve(problem).x
    certificate = ob.certify(problem, X)
    assert certificate.is_optimal
    assert certificate.criticality < 1e-10
    G = -A.T @ (A @ X) + 60.0 * np.where(X < 0.0, -1.0, 1.0)
    assert np.abs(X @ G.T - G @ X.T).max() > 10.0
