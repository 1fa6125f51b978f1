"""`hyperbolic_qr`, `hyperbolic_cs`, `indefinite_polar` and `indefinite_least_squares`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg as sl

import orthobcd as ob
from orthobcd.hyperbolic.factorizations import BREAKDOWN_TOLERANCE

from ..reference import signs


def random_signs(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.choice([1, -1], n)


def drift(X: np.ndarray, j: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(X.T @ (j[:, None] * X) - np.diag(expected)).max() / np.sum(X * X))


def test_qr_of_any_matrix():
    rng = np.random.default_rng(0)
    for trial in range(1000):
        n = int(rng.integers(2, 12))
        r = int(rng.integers(1, n + 1))
        j = random_signs(rng, n)
        A = rng.standard_normal((n, r))
        if trial % 3 and abs(j.sum()) < n:
            # Columns that are nearly lightlike.
            ratio = np.linalg.norm(A[j > 0], axis=0) / np.linalg.norm(A[j < 0], axis=0)
            near = ratio * (1.0 + 10.0 ** rng.uniform(-9, -1, r))
            A[j < 0] *= np.where(rng.random(r) < 0.5, near, 1.0)
        A = A * 10.0 ** rng.uniform(-3, 3, r)
        Q, R, found = ob.hyperbolic.hyperbolic_qr(A, j)
        assert drift(Q, j, found) < 4e-15
        assert np.linalg.norm(Q @ R - A) < 1e-13 * np.linalg.norm(Q) * np.linalg.norm(R)
        assert (np.diag(R) > 0.0).all()
        assert not np.tril(R, -1).any()
        # Sylvester's law: the numbers of signs are those of the eigenvalues of AᵀJA by sign.
        unit = A / np.linalg.norm(A, axis=0)
        values = np.linalg.eigvalsh(unit.T @ (j[:, None] * unit))
        assert np.count_nonzero(found > 0) == np.count_nonzero(values > 0.0)


def test_qr_with_one_sign_is_qr():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((7, 4))
    plain, upper = np.linalg.qr(A)
    flip = np.sign(np.diag(upper))
    for sign in (1, -1):
        Q, R, found = ob.hyperbolic.hyperbolic_qr(A, np.full(7, sign))
        assert np.allclose(Q, plain * flip, atol=1e-14)
        assert np.allclose(R, upper * flip[:, None], atol=1e-13)
        assert (found == sign).all()


def test_qr_is_a_start():
    rng = np.random.default_rng(2)
    j = np.array([1, -1, 1, 1, -1, 1])
    A = rng.standard_normal((6, 3))
    Q, _, _ = ob.hyperbolic.hyperbolic_qr(A, j)
    C = rng.standard_normal((9, 6))
    result = ob.solve(ob.JOrthogonalProblem(ob.Quadratic(C.T @ C), j, n_components=3), Q)
    assert result.objective <= result.history["objective"][0]
    assert np.abs(result.x.T @ (j[:, None] * result.x) - Q.T @ (j[:, None] * Q)).max() < 1e-11


def lightlike(size: float) -> np.ndarray:
    """First column (c, s) with c² − s² = size, of norm 1."""
    angle = 0.5 * np.arccos(size)
    return np.array([[np.cos(angle), 0.3], [np.sin(angle), 1.0]])


def test_qr_breaks_down_at_its_threshold():
    j = [1, -1]
    Q, R, _ = ob.hyperbolic.hyperbolic_qr(lightlike(2.0 * BREAKDOWN_TOLERANCE), j)
    assert np.sum(Q * Q) > 1e9
    assert drift(Q, np.array(j), np.array(j)) < 1e-14
    with pytest.raises(ValueError, match=r"A has no hyperbolic QR.*first 1 columns"):
        ob.hyperbolic.hyperbolic_qr(lightlike(0.5 * BREAKDOWN_TOLERANCE), j)
    for size in np.geomspace(1e-9, 0.5, 30):
        A = lightlike(size)
        Q, R, _ = ob.hyperbolic.hyperbolic_qr(A, j)
        assert drift(Q, np.array(j), np.array(j)) < 1e-14
        assert np.linalg.norm(Q @ R - A) < 1e-13 * np.linalg.norm(Q) * np.linalg.norm(R)
    with pytest.raises(ValueError, match="first 2 columns"):
        ob.hyperbolic.hyperbolic_qr([[1.0, 2.0], [2.0, 4.0], [0.0, 0.0]], [1, 1, -1])


def test_least_squares_is_the_minimum():
    rng = np.random.default_rng(3)
    solved = 0
    for _ in range(200):
        n, r = 9, int(rng.integers(1, 5))
        j = np.r_[np.ones(6), -np.ones(3)]
        A = rng.standard_normal((n, r)) * np.r_[np.full(6, 3.0), np.ones(3)][:, None]
        b = rng.standard_normal((n, 2))
        M = A.T @ (j[:, None] * A)
        if np.linalg.eigvalsh(M)[0] <= 0.0:
            continue
        solved += 1
        x = ob.hyperbolic.indefinite_least_squares(A, b, j)
        expected = np.linalg.solve(M, A.T @ (j[:, None] * b))
        assert np.allclose(x, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
        slope = A.T @ (j[:, None] * (b - A @ x))
        assert np.abs(slope).max() < 1e-12 * np.linalg.norm(A) ** 2 * np.abs(x).max()
        assert np.allclose(
            ob.hyperbolic.indefinite_least_squares(A, b[:, 0], j), x[:, 0], atol=1e-13
        )
        residual = b - A @ x
        worse = b - A @ (x + rng.standard_normal(x.shape))
        value = np.sum(j[:, None] * residual**2, axis=0)
        assert (np.sum(j[:, None] * worse**2, axis=0) > value).all()
    assert solved > 50
    A, b = rng.standard_normal((8, 3)), rng.standard_normal(8)
    plain = np.linalg.lstsq(A, b, rcond=None)[0]
    assert np.allclose(ob.hyperbolic.indefinite_least_squares(A, b, np.ones(8)), plain, atol=1e-13)


def test_least_squares_without_a_minimum():
    A = np.array([[1.0], [2.0]])
    with pytest.raises(ValueError, match=r"A must make.*not positive definite"):
        ob.hyperbolic.indefinite_least_squares(A, [1.0, 1.0], [1, -1])
    with pytest.raises(ValueError, match=r"A must make.*singular"):
        ob.hyperbolic.indefinite_least_squares([[1.0], [1.0]], [1.0, 1.0], [1, -1])
    with pytest.raises(ValueError, match="b must have 2 rows"):
        ob.hyperbolic.indefinite_least_squares(A, [1.0, 1.0, 1.0], [1, 1])


def test_polar_factors_come_back():
    """A = QS of a J-orthogonal Q and S = exp(H), JH symmetric, which has exactly one such pair."""
    rng = np.random.default_rng(4)
    for seed in range(100):
        n = int(rng.integers(1, 9))
        j = random_signs(rng, n)
        Q0 = ob.hyperbolic.random_j_orthogonal(j, 0.8, seed=seed)
        B = rng.standard_normal((n, n))
        H = j[:, None] * (B + B.T)
        H *= 0.5 / np.linalg.norm(H, 2)
        # (I + H)² has its spectrum in the right half plane.
        S0 = (np.eye(n) + H) @ (np.eye(n) + H) * 10.0 ** rng.uniform(-40, 40)
        Q, S = ob.hyperbolic.indefinite_polar(Q0 @ S0, j)
        assert drift(Q, j, j) < 1e-14
        assert np.allclose(j[:, None] * S, (j[:, None] * S).T, rtol=0, atol=1e-14 * np.abs(S).max())
        size = np.linalg.norm(Q0) ** 2
        assert np.linalg.norm(Q - Q0) < 1e-11 * size
        assert np.linalg.norm(S - S0) < 1e-11 * size * np.linalg.norm(S0)


def test_polar_with_one_sign_is_the_polar_decomposition():
    A = np.random.default_rng(5).standard_normal((5, 5))
    U, values, Vt = np.linalg.svd(A)
    for sign in (1, -1):
        Q, S = ob.hyperbolic.indefinite_polar(A, np.full(5, sign))
        assert np.allclose(Q, U @ Vt, atol=1e-13)
        assert np.allclose(S, Vt.T * values @ Vt, atol=1e-13)


def test_polar_where_there_is_none():
    with pytest.raises(ValueError, match="closed negative real axis"):
        ob.hyperbolic.indefinite_polar([[0.0, 1.0], [1.0, 0.0]], [1, -1])
    with pytest.raises(ValueError, match="closed negative real axis"):
        ob.hyperbolic.indefinite_polar([[1.0, 2.0], [2.0, 4.0]], [1, -1])
    # JAᵀJA has the eigenvalues −exp(±iδ): from both sides of the threshold of δ.
    for size, exists in ((100.0, True), (0.01, False)):
        angle = 0.5 * np.pi - 0.5 * size * BREAKDOWN_TOLERANCE
        A = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        if exists:
            Q, S = ob.hyperbolic.indefinite_polar(A, [1, -1])
            assert drift(Q, np.array([1, -1]), np.array([1, -1])) < 1e-12
            assert np.allclose(Q @ S, A, atol=1e-6)
        else:
            with pytest.raises(ValueError, match="no indefinite polar"):
                ob.hyperbolic.indefinite_polar(A, [1, -1])


@pytest.mark.parametrize("condition", [1e1, 1e5, 1e6, 1e9, 1e12, 1e15])
@pytest.mark.parametrize("n", [2, 3, 7])
def test_polar_factors_exist_at_any_condition(condition, n):
    """A = QS with S the square of a J-symmetric matrix whose eigenvalues have the condition."""
    rng = np.random.default_rng(n)
    for _ in range(5):
        j = random_signs(rng, n).astype(float)
        sizes = condition ** -np.linspace(0.0, 1.0, n)
        right = np.linalg.qr(rng.standard_normal((n, n)))[0]
        for S0, Q0 in (
            (np.diag(sizes), ob.hyperbolic.random_j_orthogonal(j, 0.5, seed=n)),
            (right * sizes @ right.T, np.linalg.qr(rng.standard_normal((n, n)))[0]),
        ):
            of = j if S0[0, 1] == 0.0 else np.ones(n)
            A = Q0 @ S0
            if condition > 1e14:  # singular or not, as rounding falls
                try:
                    Q, S = ob.hyperbolic.indefinite_polar(A, of)
                except ValueError:
                    continue
            else:
                Q, S = ob.hyperbolic.indefinite_polar(A, of)
            assert drift(Q, of, of) < 1e-13
            assert np.linalg.norm(Q @ S - A) < 1e-12 * np.vdot(Q, Q)
            assert (np.linalg.eigvals(S).real > 0.0).all()
            # Rounding of A moves Q by ε times the condition.
            assert np.linalg.norm(Q - Q0) < 1e-14 * condition * np.vdot(Q0, Q0) + 1e-13


@pytest.mark.parametrize("function", [ob.hyperbolic.hyperbolic_qr, ob.hyperbolic.indefinite_polar])
def test_bad_input_names_the_argument(function):
    with pytest.raises(ValueError, match="A must not have more columns"):
        function(np.ones((2, 3)), [1, -1])
    with pytest.raises(ValueError, match="signature must have 2 entries"):
        function(np.eye(2), [1, -1, 1])
    with pytest.raises(ValueError, match="A must be finite"):
        function(np.full((2, 2), np.nan), [1, -1])
    with pytest.raises(TypeError, match="A must be"):
        function("no", [1, -1])
    if function is ob.hyperbolic.indefinite_polar:
        with pytest.raises(ValueError, match="A must be square"):
            function(np.ones((3, 2)), [1, -1, 1])


@pytest.mark.parametrize(("n", "p"), [(6, 3), (9, 2), (9, 7), (5, 5)])
def test_cs_round_trip(n, p):
    j = np.random.default_rng(n).permutation(signs(n, p))
    X = ob.hyperbolic.random_j_orthogonal(j, 0.7, seed=2)
    assert np.linalg.norm(X.T @ (j[:, None] * X) - np.diag(j)) < 1e-13 * np.linalg.norm(X) ** 2
    u1, u2, c, s, v1, v2 = ob.hyperbolic.hyperbolic_cs(X, j)
    k, big = min(p, n - p), max(p, n - p)
    S = np.eye(n)
    i = np.arange(k)
    S[i, i] = S[p + i, p + i] = c
    S[i, p + i] = S[p + i, i] = s
    assert big == n - k
    order = np.r_[np.flatnonzero(j > 0), np.flatnonzero(j < 0)]
    back = sl.block_diag(u1, u2) @ S @ sl.block_diag(v1, v2).T
    assert np.abs(back - X[np.ix_(order, order)]).max() < 1e-12 * np.linalg.norm(X)
