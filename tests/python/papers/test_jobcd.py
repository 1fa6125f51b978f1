"""Claims of the JOBCD paper on small instances, in plain NumPy and with the package."""

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
MATCHINGS = [[[0, 1], [2, 3]], [[0, 2], [1, 3]], [[0, 3], [1, 2]]]
Gradient = Callable[[np.ndarray], np.ndarray]


def drift(X: np.ndarray, signs: np.ndarray) -> float:
    return float(np.abs(X.T @ (signs[:, None] * X) - np.diag(signs)).max()) / norm2(X)


def boost(rng: np.random.Generator, opposite: bool) -> np.ndarray:
    """A random V with VᵀJ_BV = J_B."""
    if not opposite:
        return orthogonal(rng, 2)
    c, s = np.cosh(mu := rng.standard_normal()), np.sinh(mu)
    return rng.choice([1.0, -1.0], 2)[:, None] * np.array([[c, s], [s, c]])


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


def test_lemma_2_1_moves_keep_the_constraint_and_are_bounded():
    rng = np.random.default_rng(0)
    for seed in range(50):
        X = ob.hyperbolic.random_j_orthogonal(J4, 0.7, seed=seed)
        B = sorted(rng.choice(4, 2, replace=False).tolist())
        V = boost(rng, bool(J4[B[0]] != J4[B[1]]))
        Y, E = moved(X, B, V), V - np.eye(2)
        assert drift(Y, J4) < 1e-13 * norm2(V)
        assert norm2(Y - X) <= norm2(X) * norm2(E) * (1 + 1e-12)
        # (c), and the bound ς = ‖Q‖ of eq. 4, which is of size 4.
        H = definite(rng, 16)
        lift = np.kron(X[B].T, np.eye(4)[:, B])
        Q, e = lift.T @ H @ lift, E.ravel(order="F")
        delta = (Y - X).ravel(order="F")
        assert delta @ H @ delta == pytest.approx(e @ Q @ e)
        assert e @ Q @ e <= np.linalg.norm(Q, 2) * norm2(E) * (1 + 1e-12)
        assert np.linalg.norm(Q, 2) <= np.linalg.norm(H, 2) * block_size(X, B) * (1 + 1e-12)


def test_lemma_2_3_the_coefficients_on_the_hyperbola():
    """Section B.1 prints the mixed coefficient of the second form with the other sign."""
    rng = np.random.default_rng(1)
    for _ in range(100):
        Q, P = rng.standard_normal((4, 4)), rng.standard_normal((2, 2))
        Q = Q + Q.T
        mu = rng.standard_normal()
        c, s = np.cosh(mu), np.sinh(mu)
        for first in (1.0, -1.0):
            V = np.array([[first * c, first * s], [s, c]])
            v = V.ravel(order="F")
            a, b = P[1, 1] + first * P[0, 0], P[1, 0] + first * P[0, 1]
            cc = 0.5 * (Q[0, 0] + Q[3, 3]) + first * Q[0, 3]
            ss = 0.5 * (Q[1, 1] + Q[2, 2]) + first * Q[1, 2]
            cs = first * (Q[0, 1] + Q[2, 3]) + Q[0, 2] + Q[1, 3]
            value = 0.5 * v @ Q @ v + np.sum(V * P)
            assert value == pytest.approx(a * c + b * s + cc * c * c + cs * c * s + ss * s * s)
            wrong = a * c + b * s + cc * c * c - cs * c * s + ss * s * s
            assert abs(wrong - value) == pytest.approx(abs(2 * cs * c * s))
        weight = 0.5 + rng.random()
        V = scalar_pair(P, weight, True)
        best = weight * norm2(V) / 2 + np.sum(V * P)
        for trial in (boost(rng, True) for _ in range(50)):
            assert weight * norm2(trial) / 2 + np.sum(trial * P) >= best - 1e-9 * abs(best)


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


@pytest.mark.parametrize("theta", [0.1, 5.0])
def test_theorem_4_6_expected_measure_of_gs_jobcd(theta):
    """f − f⁺ ≥ θ/2 ‖V − I‖² (28) and its mean over all sequences of pairs, exactly."""
    rng = np.random.default_rng(4)
    value, gradient, size = smooth(definite(rng, 3))
    X0 = ob.hyperbolic.random_j_orthogonal(J3, 1.5, seed=2)
    level, measures = [X0], []
    for _ in range(4):
        after, squares = [], []
        for X in level:
            for B in map(list, itertools.combinations(range(3), 2)):
                V = step(gradient(X), X, J3, B, size * block_size(X, B) + theta)
                after.append(moved(X, B, V))
                squares.append(norm2(V - np.eye(2)))
                decrease = value(X) - value(after[-1])
                assert decrease >= 0.5 * theta * squares[-1] - 1e-12 * value(X)
                assert drift(after[-1], J3) < 1e-14
        measures.append(np.mean(squares))
        level = after
    bound = 2.0 / theta * (value(X0) - np.mean([value(X) for X in level]))
    assert 0.0 < sum(measures) <= bound
    assert min(measures) <= bound / len(measures)


def test_the_curvature_of_a_pair_is_not_bounded_by_that_of_f():
    """Eq. 4 allows ς ≤ L_f; without ‖Z‖² the step is too long and f rises."""
    rng = np.random.default_rng(5)
    C = definite(rng, 4)
    value, gradient, size = smooth(C)
    risen = {"printed": 0, "scaled": 0}
    for seed in range(40):
        X = ob.hyperbolic.random_j_orthogonal(J4, 1.5, seed=seed)
        for B in map(list, itertools.combinations(range(4), 2)):
            for name, weight in (("printed", size), ("scaled", size * block_size(X, B))):
                Y = moved(X, B, step(gradient(X), X, J4, B, weight + 1e-6))
                risen[name] += value(Y) > value(X) * (1 + 1e-12)
    assert risen["scaled"] == 0
    assert risen["printed"] > 10


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


def test_theorem_4_11b_a_degenerate_minimum_on_the_hyperbola():
    """f = ½‖X‖² − 2 tr X is 8 sinh⁴(μ/2) − 3 on the boosts: σ = ¾ and ‖Xᵗ − I‖ ~ t^−½."""
    signs, mu, distances, length = np.array([1.0, -1.0]), 0.3, [], 0.0
    X = np.array([[np.cosh(mu), np.sinh(mu)], [np.sinh(mu), np.cosh(mu)]])
    for _ in range(2000):
        distances.append(np.linalg.norm(X - np.eye(2)))
        V = step(X - 2.0 * np.eye(2), X, signs, [0, 1], block_size(X, [0, 1]) + 1.0)
        length += np.linalg.norm(V @ X - X)
        X = V @ X
    rate = np.log(distances[1999] / distances[249]) / np.log(8.0)
    assert rate == pytest.approx(-0.5, abs=0.03)
    # Theorem 4.9: the length is still finite, that of the path from μ to 0.
    way = np.trapezoid(np.sqrt(2.0 * np.cosh(2.0 * (t := np.linspace(0.0, mu, 1001)))), t)
    assert 0.8 * way < length < way * (1 + 1e-6)


def test_lemma_2_5_all_pairs_of_a_matching():
    rng = np.random.default_rng(7)
    worst = 0.0
    for seed in range(300):
        X = ob.hyperbolic.random_j_orthogonal(J4, 0.6, seed=seed)
        pairs = MATCHINGS[seed % 3]
        V = [boost(rng, bool(J4[i] != J4[j])) for i, j in pairs]
        Y = X
        for B, move in zip(pairs, V, strict=True):
            Y = moved(Y, B, move)
        parts = [moved(X, B, move) - X for B, move in zip(pairs, V, strict=True)]
        size = sum(norm2(move - np.eye(2)) for move in V)
        assert norm2(Y - X) == pytest.approx(sum(map(norm2, parts)))
        assert norm2(Y - X) <= norm2(X) * size * (1 + 1e-12)
        # (c): L_f‖Z‖² is a bound; the largest norm of a block is none, as it omits cross terms.
        h = rng.standard_normal(4)
        H = np.outer(h, h)
        blocks = max(block_size(X, B) * norm2(h[B]) for B in pairs)
        whole = norm2(h) * max(block_size(X, B) for B in pairs)
        left = np.sum((Y - X) * (H @ (Y - X)))
        worst = max(worst, left / (blocks * size))
        assert left <= whole * size * (1 + 1e-12)
        # (d), for any estimate of the gradient.
        error = rng.standard_normal((4, 4))
        inner = sum(
            np.sum((move - np.eye(2)) * (error[B] @ X[B].T))
            for B, move in zip(pairs, V, strict=True)
        )
        assert 2.0 * inner <= norm2(X) * size + norm2(error)
    assert worst > 1.05


def page(
    forms: np.ndarray, X0: np.ndarray, theta: float, size: float, steps: int
) -> tuple[list[float], list[tuple[float, np.ndarray]], float]:
    """VR-J-JOBCD with f = ¼ Σ ½ tr(XᵀC_iX), b = N = 4, b′ = 2, p = ⅓: all outcomes, weighted.

    Returns E Σ‖V_i − I‖² at every step, the last points with their probabilities, max ‖X‖_F. The
    estimates have no bias: their mean is that of the gradients.
    """
    states = [(1.0, X0, X0, forms.mean(axis=0) @ X0)]
    measures, reach = [], np.linalg.norm(X0)
    for t in range(steps):
        after, measure, bias = [], 0.0, np.zeros((4, 4))
        for weight, X, old, G in states:
            estimates = [(weight / 3.0, forms.mean(axis=0) @ X)]
            for pair in itertools.combinations(range(4), 2):
                D = forms[list(pair)].mean(axis=0)
                estimates.append((weight / 9.0, G + D @ (X - old)))
            for chance, estimate in estimates if t else [(weight, G)]:
                bias += chance * (estimate - estimates[0][1])
                for pairs in MATCHINGS:
                    sigma = size * max(block_size(X, B) for B in pairs)
                    Y = X
                    for B in pairs:
                        V = step(estimate, X, J4, B, sigma + theta)
                        Y = moved(Y, B, V)
                        measure += chance / 3.0 * norm2(V - np.eye(2))
                    reach = max(reach, np.linalg.norm(Y))
                    after.append((chance / 3.0, Y, X, estimate))
        assert np.abs(bias).max() < 1e-13
        states = after
        measures.append(measure)
    return measures, [(weight, X) for weight, X, _, _ in states], float(reach)


def test_theorem_4_7_expected_measure_of_vr_j_jobcd():
    """Under the condition θ > X̄²(1 + L_f²), which the theorem leaves out; the mean is exact."""
    rng = np.random.default_rng(8)
    forms = np.array([definite(rng, 4) for _ in range(4)]) / 3.0
    size = max(np.linalg.norm(form, 2) for form in forms)
    X0 = ob.hyperbolic.random_j_orthogonal(J4, 0.5, seed=3)
    theta = 10.0 * norm2(X0) * (1.0 + size**2)
    measures, ends, reach = page(forms, X0, theta, size, 3)
    assert sum(weight for weight, _ in ends) == pytest.approx(1.0)
    surplus = 0.5 * (theta - reach**2 * (1.0 + size**2))
    assert surplus > 0.0
    C = forms.mean(axis=0)
    end = sum(weight * 0.5 * np.sum(X * (C @ X)) for weight, X in ends)
    decrease = 0.5 * np.sum(X0 * (C @ X0)) - end
    assert 0.3 * decrease < surplus * sum(measures) <= decrease


def vr_j_jobcd(forms: np.ndarray, X: np.ndarray, theta: float, steps: int, seed: int):
    """The points of one run of VR-J-JOBCD, b′ = √N."""
    rng = np.random.default_rng(seed)
    N, C = len(forms), forms.mean(axis=0)
    small = int(np.sqrt(N))
    size = max(np.linalg.norm(form, 2) for form in forms)
    G, points = C @ X, [X]
    for t in range(steps):
        full, batch = rng.random() < small / (N + small), rng.random(N).argsort()[:small]
        if full:
            G = C @ X
        elif t:
            G = G + forms[batch].mean(axis=0) @ (X - points[-2])
        pairs = MATCHINGS[np.random.default_rng([seed, t]).integers(3)]
        sigma = size * max(block_size(X, B) for B in pairs)
        Y = X
        for B in pairs:
            Y = moved(Y, B, step(G, X, J4, B, sigma + theta))
        X = Y
        points.append(X)
    return points


def test_theorems_4_10_and_4_12_finite_length_and_linear_rate_of_vr_j_jobcd():
    rng = np.random.default_rng(9)
    forms = np.array([definite(rng, 4) for _ in range(16)])
    C = forms.mean(axis=0)
    optimum = 0.5 * np.abs(np.linalg.eigvals(J4[:, None] * C)).sum()
    points = vr_j_jobcd(forms, ob.hyperbolic.random_j_orthogonal(J4, 0.5, seed=4), 0.1, 400, 0)
    gaps = np.array([0.5 * np.sum(X * (C @ X)) / optimum - 1.0 for X in points[::20]])
    gaps = gaps[gaps > 1e-12]
    assert len(gaps) >= 5
    rates = np.diff(np.log(gaps))[:-1]
    assert (rates < -1.0).all()
    assert rates.min() > 5.0 * rates.max()
    lengths = [np.linalg.norm(b - a) for a, b in itertools.pairwise(points)]
    assert sum(lengths[200:]) < 1e-3 * sum(lengths[:200])


def test_the_gain_of_theorems_4_10_and_4_12_in_n_is_not_there():
    """Equal components: the iterates are the same for every N, so no bound falls as N^−¼."""
    form = definite(np.random.default_rng(10), 4)
    X = ob.hyperbolic.random_j_orthogonal(J4, 0.5, seed=5)
    one, many = (vr_j_jobcd(np.array([form] * N), X, 0.1, 60, 0) for N in (1, 256))
    assert max(np.abs(a - b).max() for a, b in zip(one, many, strict=True)) < 1e-11
    assert sum(np.linalg.norm(b - a) for a, b in itertools.pairwise(one)) > 0.1
