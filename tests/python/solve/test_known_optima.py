"""`solve` of a `StiefelProblem` or `SparsePCAProblem` with a known optimum, and of pencils."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.sparse

import orthobcd as ob

FREE = ob.NoPenalty()


def symmetric(n, seed=0):
    a = np.random.default_rng(seed).standard_normal((n, n))
    return a + a.T


def weighted(values, mu):
    """min ½ tr(XᵀCXD) over XᵀX = I from the eigenvalues of C and D (von Neumann)."""
    low, high = np.sort(mu[mu > 0])[::-1], np.sort(mu[mu < 0])
    values = np.sort(values)
    return 0.5 * float(values[: low.size] @ low + values[::-1][: high.size] @ high)


def is_answered(result, value, size, strategy="spectral"):
    """The solve ended at the known value by the decomposition alone."""
    assert result.status is ob.Status.CONVERGED
    # The first point of a search is the answer for some diagonal matrices.
    assert result.search.strategy in (strategy, "first point")
    assert result.n_sweeps == 0
    assert abs(result.objective - value) <= 1e-11 * size
    assert result.feasibility <= 1e-12 * max(1.0, float(np.vdot(result.x, result.x)))


@pytest.mark.parametrize("n", [3, 60, 130, 450, pytest.param(1300, marks=pytest.mark.long)])
@pytest.mark.parametrize("r", [1, 4, 30])
def test_stored_c(n, r):
    if r > n:
        return
    C = symmetric(n, n)
    values = np.linalg.eigvalsh(C)
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((r, r)))[0]
    mus = [np.ones(r), np.linspace(2.0, 0.0, r), np.linspace(-1.0, 2.0, r), np.full(r, -1.0)]
    for mu in mus[: 2 if n > 1000 else 4]:
        for D in (np.diag(mu), turn * mu @ turn.T):
            D = 0.5 * (D + D.T)
            f = ob.Quadratic(C, D=None if (mu == 1.0).all() else D)
            result = ob.solve(ob.StiefelProblem(f, FREE, r), n_threads=1)
            is_answered(result, weighted(values, mu), r * np.abs(values).max())


@pytest.mark.covering
@pytest.mark.parametrize(
    ("m", "n"),
    [
        *((300, 20), (20, 300), (60, 900), (700, 450), (1500, 1300), (30, 30)),
        pytest.param(1300, 1500, marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("center", [False, True])
def test_data(m, n, storage, center):
    rng = np.random.default_rng(m + n)
    A = rng.standard_normal((m, n)) + 0.3
    if storage == "sparse":
        A[rng.random((m, n)) > 0.05] = 0.0
    centred = A - A.mean(axis=0) if center else A
    squares = np.linalg.svd(centred, compute_uv=False) ** 2
    given = scipy.sparse.csr_matrix(A) if storage == "sparse" else A
    for r in (1, 5, 15):
        value = -0.5 * squares[:r].sum()
        result = ob.solve(ob.SparsePCAProblem(given, r, FREE, center=center), n_threads=1)
        is_answered(result, value, squares[0])
        mean = A.mean(axis=0) if center else None
        f = ob.GramQuadratic(given, -1.0, mean)
        is_answered(ob.solve(ob.StiefelProblem(f, FREE, r), n_threads=1), value, squares[0])


@pytest.mark.parametrize(("n", "r"), [(2, 2), (30, 3), (30, 30), (200, 100), (500, 20)])
def test_linear_terms(n, r):
    L = np.random.default_rng(n).standard_normal((n, r))
    singular = np.linalg.svd(L, compute_uv=False)
    for C, constant in ((np.zeros((n, n)), 0.0), (-3.0 * np.eye(n), -1.5 * r)):
        problem = ob.StiefelProblem(ob.Quadratic(C, linear=L), FREE, r)
        value = constant - singular.sum()
        is_answered(ob.solve(problem, n_threads=1), value, abs(value))
    if n == r:
        C = symmetric(n)
        for determinant in (None, 1):
            last = 1.0 if determinant is None else -np.sign(np.linalg.det(L)) * (-1.0) ** (n + 1)
            value = 0.5 * np.trace(C) - singular[:-1].sum() - last * singular[-1]
            f = ob.Quadratic(C, linear=L)
            result = ob.solve(ob.StiefelProblem(f, FREE, n, determinant=determinant), n_threads=1)
            is_answered(result, value, np.abs(C).sum())


def pencil_value(C, J, K, w):
    """min tr(W XᵀCX) over XᵀJX = diag(K): the smallest eigenvalues of each type, by weight."""
    values = 1.0 / scipy.linalg.eigh(np.diag(J.astype(float)), C)[0]
    total = 0.0
    for sign in (1, -1):
        sizes = np.sort(np.abs(values[values * sign > 0]))
        weights = np.sort(w[sign == K])[::-1]
        total += float(sizes[: weights.size] @ weights)
    return total


@pytest.mark.parametrize("n", [2, 9, 60, 210])
@pytest.mark.parametrize("seed", [0, 1])
def test_definite_pencils(n, seed):
    rng = np.random.default_rng(seed)
    J = np.where(rng.random(n) < 0.4, -1, 1).astype(np.int8)
    J[:2] = 1, -1
    A = rng.standard_normal((2 * n, n))
    C = A.T @ A
    ones = np.ones(n)
    eigen = ob.HyperbolicEigenvalueProblem(A, J)
    result = ob.solve(eigen, n_threads=1)
    value = pencil_value(C, J, J, ones)
    is_answered(result, value, value, "pencil")
    assert np.allclose(np.sort(np.abs(result.hyperbolic.eigenvalues)).sum(), value)
    wide = A[: n // 2]
    ridged = ob.HyperbolicEigenvalueProblem(scipy.sparse.csr_matrix(wide), J, ridge=1.0)
    value = pencil_value(wide.T @ wide + np.eye(n), J, J, ones)
    is_answered(ob.solve(ridged, n_threads=1), value, value, "pencil")
    for r in {1, (n + 1) // 2, n}:
        for w in (np.ones(r), np.linspace(2.0, 0.0, r) + (r == 1)):
            f = ob.Quadratic(2.0 * C, D=np.diag(w))
            problem = ob.JOrthogonalProblem(f, J, n_components=r)
            value = pencil_value(C, J, J[:r], w)
            is_answered(ob.solve(problem, n_threads=1), value, value, "pencil")
            # The value does not depend on the start.
            if r == n:
                result = ob.solve(problem, "random", n_threads=1, seed=seed)
                is_answered(result, value, value, "pencil")
    principal = int((J > 0).sum()) // 2
    pca = ob.hyperbolic.HyperbolicPCAProblem(C, J, n_principal=principal)
    w = np.where(J > 0, 1.0, 0.0)
    w[np.flatnonzero(J > 0)[:principal]] = 0.0
    value = pencil_value(J[:, None] * C * J, J, J, w)
    is_answered(ob.solve(pca, n_threads=1), value, max(value, np.trace(C)), "pencil")


def test_ill_conditioned_pencils_are_polished():
    """Where rounding of C spoils the smallest eigenvalues, the J-Jacobi method goes on."""
    n = 12
    J = np.resize([1, -1, 1], n).astype(np.int8)
    rng = np.random.default_rng(3)
    for condition in (1e2, 1e6, 1e9):
        A = rng.standard_normal((n, n)) * condition ** -np.linspace(0.0, 0.5, n)
        result = ob.solve(ob.HyperbolicEigenvalueProblem(A, J), n_threads=1)
        slow = ob.solve(ob.HyperbolicEigenvalueProblem(A, J), n_threads=1, solver=ob.JOBCD())
        assert result.status is ob.Status.CONVERGED
        assert result.objective <= slow.objective * (1.0 + 1e-9)
        assert result.feasibility <= 1e-12 * float(np.vdot(result.x, result.x))


def test_limits_and_given_solvers_keep_their_ways():
    C = symmetric(40) + 30.0 * np.eye(40)
    J = np.resize([1, -1], 40)
    problem = ob.JOrthogonalProblem(ob.Quadratic(C), J)
    assert ob.solve(problem, max_sweeps=0).n_sweeps == 0
    assert ob.solve(problem, solver=ob.JOBCD()).search is None
    indefinite = ob.JOrthogonalProblem(ob.Quadratic(symmetric(6)), [1, 1, 1, -1, -1, -1])
    assert ob.solve(indefinite, max_sweeps=50).search is None
