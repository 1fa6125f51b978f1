"""Claims of the JOBCD paper on small instances, that the package is checked by."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import orthobcd as ob

from ..blocks import moved, norm2, orthogonal, scalar_pair

pytestmark = pytest.mark.long

J3 = np.array([1.0, 1.0, -1.0])
J4 = np.array([1.0, -1.0, 1.0, -1.0])
Gradient = Callable[[np.ndarray], np.ndarray]


def drift(X: np.ndarray, signs: np.ndarray) -> float:
    return float(np.abs(X.T @ (signs[:, None] * X) - np.diag(signs)).max()) / norm2(X)


def definite(rng: np.random.Generator, n: int) -> np.ndarray:
    A = rng.standard_normal((n + 3, n))
    return A.T @ A / n


def smooth(C: np.ndarray) -> tuple[Callable[[np.ndarray], float], Gradient, float]:
    """f = ½ tr(XᵀCX) + Σ log cosh X_ij, its gradient and L_f."""

    def value(X: np.ndarray) -> float:
        return float(0.5 * np.sum(X * (C @ X)) + np.sum(np.logaddexp(X, -X)))

    return value, lambda X: C @ X + np.tanh(X), float(np.linalg.norm(C, 2)) + 1.0


def step(
    G: np.ndarray, X: np.ndarray, signs: np.ndarray, B: list[int], weight: float
) -> np.ndarray:
    """V of the pair B with the gradient (estimate) G and Q + θI = weight·I (section 2)."""
    P = G[B] @ X[B].T - weight * np.eye(2)
    return scalar_pair(P, weight, bool(signs[B[0]] != signs[B[1]]))


def block_size(X: np.ndarray, B: list[int]) -> float:
    return float(np.linalg.norm(X[B], 2)) ** 2


def test_lemma_3_1_three_forms_of_the_first_order_condition():
    rng = np.random.default_rng(2)
    for seed in range(20):
        X = ob.hyperbolic.random_j_orthogonal(J4, 0.6, seed=seed)
        J = np.diag(J4)
        symmetric = rng.standard_normal((4, 4))
        symmetric = symmetric + symmetric.T
        for multiplier in (symmetric, rng.standard_normal((4, 4))):
            G = J @ X @ multiplier
            critical = multiplier is symmetric
            size = np.linalg.norm(G) * norm2(X)
            residual = np.linalg.norm(G - J @ X @ G.T @ X @ J)
            assert (residual < 1e-12 * size) == critical
            W = X @ G.T @ J
            assert (np.linalg.norm(W - W.T) < 1e-12 * size) == critical
            assert np.allclose(J @ X.T @ G, multiplier, atol=1e-12 * size)
            # ∇_J f is not tangent (Lemma E.4), but half of it bounds the distance (Lemma E.5).
            problem = ob.JOrthogonalProblem(ob.Quadratic(np.zeros((4, 4)), linear=G), J4)
            certificate = ob.certify(problem, X)
            assert certificate.stationarity == pytest.approx(residual, abs=1e-12 * size)
            assert certificate.criticality <= 0.5 * residual + 1e-12 * size
            if not critical:
                R = G - J @ X @ G.T @ X @ J
                assert np.linalg.norm(X.T @ J @ R + R.T @ J @ X) > 1e-3 * residual


def test_theorem_3_3_points_at_rest_are_critical_and_not_conversely():
    rng = np.random.default_rng(3)
    _, gradient, size = smooth(definite(rng, 3))
    X = ob.hyperbolic.random_j_orthogonal(J3, 0.5, seed=1)
    pairs = [list(B) for B in itertools.combinations(range(3), 2)]
    before = np.linalg.norm(gradient(X) - (J3[:, None] * X) @ gradient(X).T @ X * J3)
    for _ in range(400):
        for B in pairs:
            X = moved(X, B, step(gradient(X), X, J3, B, size * block_size(X, B) + 1e-3))
    moves = [step(gradient(X), X, J3, B, size * block_size(X, B) + 1e-3) for B in pairs]
    assert max(norm2(V - np.eye(2)) for V in moves) < 1e-14
    G = gradient(X)
    assert np.linalg.norm(G - (J3[:, None] * X) @ G.T @ X * J3) < 1e-5 * before
    # The identity is critical for a diagonal quadratic form; a swap of two rows is better.
    form = ob.Quadratic(np.diag([1.0, 2.0, 3.0]), D=np.diag([1.0, 2.0, 1.0]))
    certificate = ob.certify(ob.JOrthogonalProblem(form, J3), np.eye(3))
    assert certificate.stationarity == 0.0
    assert certificate.block2_gap == pytest.approx(0.5)


@pytest.mark.parametrize("theta", [0.0, 0.1])
@pytest.mark.parametrize("signs", [(1, -1, 1, 1, -1), (1, 1, 1, 1, 1)], ids=["mixed", "definite"])
def test_the_papers_step_for_a_general_f(signs, theta):
    """GS-JOBCD with the gradient at the current point and ς = L_f‖Z‖², pair by pair."""
    n, signs = len(signs), np.array(signs, float)
    value, gradient, size = smooth(definite(np.random.default_rng(7), n))
    f = ob.SmoothFunction(lambda x: (value(x), gradient(x)), n, n, lipschitz=size)
    options = {"working_set": "cyclic", "curvature": "scalar", "proximal": theta}
    solver: ob.OBCD | ob.JOBCD = ob.JOBCD(side="rows", **options)
    if (signs > 0).all():
        solver = ob.OBCD(**options)
        X = orthogonal(np.random.default_rng(1), n)
        problem = ob.StiefelProblem(f, ob.NoPenalty(), n)
    else:
        X = ob.hyperbolic.random_j_orthogonal(signs, 0.7, seed=1)
        problem = ob.JOrthogonalProblem(f, signs.astype(int))
    result = ob.solve(problem, X, solver=solver, max_sweeps=3, tol=0.0)
    expected = X
    for _ in range(3):
        for B in map(list, itertools.combinations(range(n), 2)):
            weight = size * (block_size(expected, B) + theta)
            V = step(gradient(expected), expected, signs, B, weight)
            expected = moved(expected, B, V)
    assert result.n_sweeps == 3
    assert value(expected) < value(X) - 1e-2
    assert np.allclose(result.x, expected, rtol=0.0, atol=1e-9)
    assert drift(result.x, signs) < 1e-14
    assert (np.diff(result.history["objective"]) <= 0.0).all()


@pytest.mark.parametrize("rule", ["random", "cyclic"])
@pytest.mark.parametrize("curvature", ["exact", "scalar"])
@pytest.mark.parametrize("given", [True, False], ids=["lipschitz", "learnt"])
@pytest.mark.parametrize("penalty", [ob.NoPenalty(), ob.L1(0.3)], ids=repr)
def test_single_pairs_of_a_general_f_come_to_rest(rule, curvature, given, penalty):
    value, gradient, size = smooth(definite(np.random.default_rng(8), 4))
    lipschitz = size if given else None
    f = ob.SmoothFunction(lambda x: (value(x), gradient(x)), 4, 4, lipschitz=lipschitz)
    problem = ob.JOrthogonalProblem(f, J4.astype(int), penalty)
    X = ob.hyperbolic.random_j_orthogonal(J4, 0.7, seed=1)
    solver = ob.JOBCD(side="rows", working_set=rule, curvature=curvature)
    result = ob.solve(problem, X, solver=solver, max_sweeps=3000)
    assert result.converged
    assert drift(result.x, J4) < 1e-14
    assert (np.diff(result.history["objective"]) <= 0.0).all()
    known = ob.JOrthogonalProblem(
        ob.SmoothFunction(lambda x: (value(x), gradient(x)), 4, 4, lipschitz=size),
        J4.astype(int),
        penalty,
    )
    certificate = ob.certify(known, result.x)
    assert certificate.block2_gap <= 1e-8 * certificate.magnitude
    if isinstance(penalty, ob.NoPenalty):
        assert certificate.criticality <= 1e-5 * np.linalg.norm(gradient(result.x))


@pytest.mark.parametrize("columns", [5, 2])
def test_the_scalar_curvature_of_a_quadratic_form(columns):
    """Eq. 4 for C − cJ, ς = ‖C_BB − cJ_B‖‖Z‖², for pairs of equal and of opposite signs."""
    rng = np.random.default_rng(9)
    signs = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    C = rng.standard_normal((5, 5))
    C, L = C + C.T, rng.standard_normal((5, columns))
    X = ob.hyperbolic.random_j_orthogonal(signs, 0.5, seed=2)[:, :columns]
    problem = ob.JOrthogonalProblem(ob.Quadratic(C, L), signs.astype(int), n_components=columns)
    solver = ob.JOBCD(side="rows", working_set="cyclic", curvature="scalar", proximal=0.0)
    result = ob.solve(problem, X, solver=solver, max_sweeps=1, tol=0.0)
    C = C - (signs @ np.diag(C) / 5) * np.diag(signs)
    expected = X
    for B in map(list, itertools.combinations(range(5), 2)):
        weight = np.linalg.norm(C[np.ix_(B, B)], 2) * block_size(expected, B)
        expected = moved(expected, B, step(C @ expected + L, expected, signs, B, weight))
    assert result.objective < result.history["objective"][0] - 1e-2
    assert np.allclose(result.x, expected, rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("update", ["gauss-seidel", "jacobi"])
def test_the_scalar_curvature_follows_a_pair_that_has_no_minimum(update):
    """The exact model says so at the first pair; the scalar one has a minimum everywhere."""
    C = np.diag([1.0, -3.0, 1.0, -3.0])
    problem = ob.JOrthogonalProblem(ob.Quadratic(C), J4.astype(int))
    X = ob.hyperbolic.random_j_orthogonal(J4, 0.3, seed=3)

    def solve(curvature):
        solver = ob.JOBCD(side="rows", update=update, curvature=curvature)
        return ob.solve(problem, X, solver=solver, max_sweeps=5)

    assert solve("exact").status is ob.Status.UNBOUNDED
    result = solve("scalar")
    assert result.status in (ob.Status.MAX_SWEEPS, ob.Status.DIVERGED)
    assert result.objective < result.history["objective"][0] - 1.0
    assert drift(result.x, J4) < 1e-12
    assert (np.diff(result.history["objective"]) <= 0.0).all()


def test_theorems_4_9_and_4_11a_rows_converge_linearly():
    """tr(XᵀAX) with distinct eigenvalues of the pencil: σ = ½."""
    rng = np.random.default_rng(6)
    problem = ob.HyperbolicEigenvalueProblem(rng.standard_normal((9, 4)), J4)
    X = ob.hyperbolic.random_j_orthogonal(J4, 0.5, seed=1)
    optimum = ob.certify(problem, X).optimum
    gaps, lengths = [], []
    for _ in range(60):
        solver = ob.JOBCD(side="rows", working_set="cyclic", proximal=0.0)
        result = ob.solve(problem, X, solver=solver, max_sweeps=1, tol=0.0)
        lengths.append(np.linalg.norm(result.x - X))
        X = result.x
        gaps.append(result.objective / optimum - 1.0)
    seen = np.log([gap for gap in gaps if gap > 1e-13])
    assert len(seen) > 10
    tail = np.diff(seen[3:])
    assert (tail < -0.05).all()
    assert tail.min() > 3.0 * tail.max()
    assert sum(lengths[len(seen) :]) < 1e-5 * sum(lengths)
