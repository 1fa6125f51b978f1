"""Convergence as the OBCD papers claim it: expectations over all sequences of pairs, and rates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import orthobcd as ob

from ..blocks import gradient, moved, norm2, objective, orthogonal, pair_step

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


def constants(C: np.ndarray, L: np.ndarray, alpha: float) -> tuple[float, float]:
    """(φ, γ²) of Lemma 4.4 for k = 2 and h = 0; l_f is a bound of ‖∇f‖ on the manifold."""
    size = float(np.linalg.norm(C, 2))
    n = len(C)
    return 4.0 * (size + np.linalg.norm(L, 2) + size) + 2.0 * alpha, n * (n - 1) / 2


def tree(C, L, X, alpha, kind, lam, steps):
    """All points after t random pairs, and all ‖V − I‖² of the step from them, t = 0, …, steps."""
    level = [X]
    for _ in range(steps + 1):
        after, squares = [], []
        for point in level:
            for B in itertools.combinations(range(len(X)), 2):
                V = pair_step(C, L, point, list(B), alpha, kind, lam)
                new = moved(point, list(B), V)
                after.append(np.where(np.abs(new) < 1e-13, 0.0, new))
                squares.append(norm2(V - np.eye(2)))
        yield level, squares
        level = after
    yield level, []


@pytest.mark.parametrize(("kind", "lam"), [("none", 0.0), ("l0", 0.4), ("l1", 0.4)])
def test_theorem_4_2b_expected_measure_of_random_pairs(kind, lam):
    """Σ E[measure(Xᵗ)] ≤ (2/α)(F⁰ − E[F]): the expectation is exact, over all 3⁵ sequences."""
    C, L, X = instance(1, 3, 2)
    for alpha in (0.05, 2.0):
        *steps, (ends, _) = tree(C, L, X, alpha, kind, lam, 3)
        # The mean over the pairs of ‖V − I‖² is the measure of Definition 4.1 of the point.
        measures = [np.mean(squares) for _, squares in steps]
        end = np.mean([objective(C, L, point, kind, lam) for point in ends])
        bound = 2.0 / alpha * (objective(C, L, X, kind, lam) - end)
        assert 0.0 < sum(measures) <= bound * (1.0 + 1e-9)
        assert min(measures) <= bound / len(measures)


def test_theorem_4_2c_cyclic_pairs():
    """The proof sums the measure along a moving iterate; on these instances the claim holds.

    The weight α is large, so that the moves are small and the bound is within a factor of 6.
    """
    pairs = [list(B) for B in itertools.combinations(range(4), 2)]
    for seed in range(4):
        C, L, X = instance(seed, 4, 2)
        alpha, measures, values = 100.0, [], []
        for t in range(24):
            values.append(objective(C, L, X, "none", 0.0))
            moves = [pair_step(C, L, X, B, alpha) for B in pairs]
            measures.append(np.mean([norm2(V - np.eye(2)) for V in moves]))
            X = moved(X, pairs[t % 6], moves[t % 6])
        assert (np.diff(values) <= 1e-12).all()
        for T in range(len(pairs) + 1, 24):
            bound = 2.0 / alpha * (values[0] - values[T]) / (T - len(pairs))
            assert min(measures[:T]) <= bound
        assert min(measures) > bound / 6.0


def test_lemma_4_4_and_theorem_4_6_residuals_of_smooth_problems():
    alpha = 30.0
    for seed in range(3):
        C, L, X = instance(seed, 3, 2)
        phi, gamma2 = constants(C, L, alpha)
        *steps, (ends, _) = tree(C, L, X, alpha, "none", 0.0, 3)
        residuals = []
        for (level, squares), (after, _) in itertools.pairwise([*steps, (ends, [])]):
            del level
            blocks = [
                norm2(violation(C, L, point)[np.ix_(B, B)])
                for point in after
                for B in itertools.combinations(range(3), 2)
            ]
            # (a), with first and with second moments.
            assert np.mean(np.sqrt(blocks)) <= phi * np.mean(np.sqrt(squares))
            assert np.mean(blocks) <= phi**2 * np.mean(squares)
            # (b) with second moments.
            residuals.append(np.mean([distance(C, L, point) ** 2 for point in after]))
            assert residuals[-1] <= gamma2 * np.mean(blocks) * (1.0 + 1e-12)
        start = objective(C, L, X, "none", 0.0)
        decrease = start - np.mean([objective(C, L, point, "none", 0.0) for point in ends])
        bound = gamma2 * phi**2 * 2.0 / alpha * decrease / len(residuals)
        # The bound of Theorem 4.6 holds and is not trivial here.
        assert 1e-3 * bound < min(residuals) <= bound


def test_lemma_4_4b_is_false_with_first_moments():
    """S has one pair: ‖S‖ is √C(n, 2) times more than γ E‖S_BB‖."""
    n = 5
    C, L, X = np.zeros((n, n)), np.zeros((n, n)), np.eye(n)
    L[0, 1] = 1.0
    pairs = list(itertools.combinations(range(n), 2))
    blocks = [np.linalg.norm(violation(C, L, X)[np.ix_(B, B)]) for B in pairs]
    gamma = np.sqrt(len(pairs))
    assert distance(C, L, X) == pytest.approx(gamma * gamma * np.mean(blocks))
    assert distance(C, L, X) == pytest.approx(gamma * np.sqrt(np.mean(np.square(blocks))))


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


DEGENERATE = (np.diag([2.0, -2.0]), np.array([[-4.0], [0.0]]))
"""f(x) = x₁² − x₂² − 4x₁, on the circle −3 + 8 sin⁴(θ/2): σ = ¾ at θ = 0."""


def proximal_sequence(alpha: float, theta: float, steps: int) -> np.ndarray:
    """θᵗ of pair steps with the weight α of ½‖V − I‖²."""
    C, L = DEGENERATE
    X, angles = np.array([[np.cos(theta)], [np.sin(theta)]]), [theta]
    for _ in range(steps):
        X = moved(X, [0, 1], pair_step(C, L, X, [0, 1], alpha))
        angles.append(np.arctan2(X[1, 0], X[0, 0]))
    return np.array(angles)


def test_theorem_4_11c_a_degenerate_minimum_is_approached_like_a_root_of_t():
    """σ = ¾: ‖Xᵗ − X^∞‖ = O(t^−(1−σ)/(2σ−1)) = O(t^−½), and no faster."""
    angles = proximal_sequence(1.0, 0.8, 800)
    distances = 2.0 * np.sin(0.5 * np.abs(angles))
    slope = np.log(distances[800] / distances[100]) / np.log(8.0)
    assert slope == pytest.approx(-0.5, abs=0.02)
    # The Łojasiewicz inequality holds with this exponent and with no smaller one.
    gap = 8.0 * np.sin(0.5 * angles) ** 4
    slopes = 16.0 * np.sin(0.5 * angles) ** 3 * np.cos(0.5 * angles)
    ratio = slopes / gap**0.75
    assert ratio.max() / ratio.min() < 1.3
    ratio = slopes / gap**0.6
    assert ratio[0] / ratio[-1] > 3.0


def test_theorem_4_10_finite_length():
    """(e⁺)² ≤ κ e (φ − φ⁺) and dᵗ ≤ eᵗ + 2κφᵗ, with a desingularising function that is known.

    One pair, so that γ = 1 and nothing is random; with the moves ‖V − I‖ = √2 ‖X⁺ − X‖.
    """
    alpha, start = 1.0, 0.8
    angles = proximal_sequence(alpha, start, 400)
    e = np.append(np.nan, 2.0 * np.sqrt(2.0) * np.sin(0.5 * np.abs(np.diff(angles))))
    # c·¼ s^−¾·dist(0, ∂F) ≥ 1 on the way: dist = 16 sin³ cos, F − F* = 8 sin⁴ of θ/2.
    c = 8.0**0.75 / (4.0 * np.cos(0.5 * start))
    varphi = c * (8.0 * np.sin(0.5 * angles) ** 4) ** 0.25
    C, L = DEGENERATE
    phi, _ = constants(C, L, alpha)
    kappa = 2.0 * phi / alpha
    t = np.arange(1, 400)
    assert (e[t + 1] ** 2 <= kappa * e[t] * (varphi[t] - varphi[t + 1])).all()
    lengths = np.cumsum(e[:0:-1])[::-1]
    assert (lengths[1:] <= e[1:-1] + 2.0 * kappa * varphi[1:-1]).all()
    # The length is that of the path, finite although the rate is only t^−½.
    assert lengths[0] <= np.sqrt(2.0) * start
    assert lengths[0] >= np.sqrt(2.0) * 0.8 * start


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


def test_theorem_d2_the_greedy_pair_descends_by_its_score():
    rng = np.random.default_rng(7)
    for seed in range(50):
        C, L, X = instance(seed, 5, 2)
        alpha, size = float(rng.random()), float(np.linalg.norm(C, 2))
        G = gradient(C, L, X)
        T = (G - size * X) @ X.T - alpha * np.eye(5)
        scores = {}
        for i, j in itertools.combinations(range(5), 2):
            c1, c2 = T[i, i] + T[j, j], T[i, j] - T[j, i]
            c3, c4 = T[j, j] - T[i, i], T[i, j] + T[j, i]
            scores[i, j] = -c1 - max(np.hypot(c1, c2), np.hypot(c3, c4))
            block = T[np.ix_([i, j], [i, j])]
            nuclear = np.linalg.svd(block)[1].sum()
            assert scores[i, j] == pytest.approx(-nuclear - np.trace(block))
        best = max(scores, key=lambda pair: abs(scores[pair]))
        assert distance(C, L, X) > 1e-3
        assert scores[best] < 0.0
        after = moved(X, list(best), pair_step(C, L, X, list(best), alpha))
        change = objective(C, L, after, "none", 0.0) - objective(C, L, X, "none", 0.0)
        assert change <= scores[best] + 1e-10
