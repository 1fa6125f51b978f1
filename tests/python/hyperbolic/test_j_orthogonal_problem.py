"""Problems of mixed signature, against NumPy and SciPy.

`JOrthogonalProblem`, `HyperbolicPCAProblem`, `HyperbolicEigenvalueProblem`; their solver `JOBCD`.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import linalg as sl

import orthobcd as ob

from .. import reference
from ..reference import signs


def test_max_is_unbounded_and_says_where():
    A = np.random.default_rng(0).standard_normal((50, 20))
    problem = ob.HyperbolicEigenvalueProblem(A, signs(20, 12), sense="max")
    for side in ("rows", "columns", "both"):
        result = ob.solve(problem, "random", solver=ob.JOBCD(side=side))
        assert result.status is ob.Status.UNBOUNDED
        assert result.n_iterations <= 100
        assert np.isfinite(result.objective)
        i, k = result.hyperbolic.recession["pair"]
        assert problem.signature[i] != problem.signature[k]
    bounded = ob.solve(
        problem, "random", solver=ob.JOBCD(side="rows", rapidity_bound=0.1), max_sweeps=2
    )
    assert bounded.status is ob.Status.MAX_SWEEPS
    followed = ob.solve(problem, "random", solver=ob.JOBCD(side="rows", rapidity_bound=0.1))
    assert followed.status is ob.Status.UNBOUNDED
    assert followed.objective < 1e3 * bounded.objective < 0.0
    for result in (bounded, followed):
        assert (np.diff(result.history["objective"]) <= 0).all()


SOLVERS = [
    ob.JOBCD(side=side, update=update, working_set=working_set)
    for side in ("rows", "columns", "both")
    for update in ("gauss-seidel", "jacobi")
    for working_set in ("tiled", "random", "cyclic")
    if update == "gauss-seidel" or (side != "columns" and working_set == "tiled")
]


@pytest.mark.parametrize("n", [3, 4, 7])
@pytest.mark.parametrize("seed", range(3))
def test_eigenvalues_are_those_of_the_pencil_whoever_moves(n, seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((2 * n, n))
    j = rng.permutation(signs(n, 1 + seed % (n - 1)))
    for problem in (
        ob.HyperbolicEigenvalueProblem(A, j),
        ob.hyperbolic.HyperbolicPCAProblem(A.T @ A, j, int((j > 0).sum()) - 1),
    ):
        pencil = np.sort(sl.eigvals(j[:, None] * problem.matrix).real)
        solvers = [*SOLVERS, ob.VRJOBCD(full_gradient=True)]
        if isinstance(problem, ob.hyperbolic.HyperbolicPCAProblem):
            solvers = SOLVERS
        for solver in solvers:
            result = ob.solve(problem, "random", solver=solver, max_time=5, seed=seed, tol=1e-14)
            if not result.converged:
                continue
            np.testing.assert_allclose(
                np.sort(result.hyperbolic.eigenvalues), pencil, atol=1e-4 * np.abs(pencil).max()
            )
            x, values = result.hyperbolic.eigenvectors, result.hyperbolic.eigenvalues
            off = problem.matrix @ x - j[:, None] * x * values
            assert np.linalg.norm(off) <= 1e-4 * np.linalg.norm(problem.matrix @ x)
            drift = np.linalg.norm(x.T @ (j[:, None] * x) - np.diag(j))
            assert drift <= 1e-12 * np.sum(x**2)
            value = 0.5 * np.sum(x * (problem.smooth.C @ x * problem.weights))
            assert value == pytest.approx(result.objective, rel=1e-12)


def moved_along(x, recession, rapidity):
    """X moved along a direction that a result names."""
    i, k = recession["pair"]
    mu = recession["direction"] * rapidity
    move = np.diag(recession["signs"]) @ [[np.cosh(mu), np.sinh(mu)], [np.sinh(mu), np.cosh(mu)]]
    out = x.copy()
    if recession["kind"] == "rows":
        out[[i, k]] = move @ x[[i, k]]
    else:
        out[:, [i, k]] = x[:, [i, k]] @ move.T
    return out


def test_where_there_is_no_minimum_the_best_point_and_a_way_down_are_returned():
    """Every side and update, from random starts: F falls along the direction that is named."""
    ended = {ob.Status.UNBOUNDED: 0, ob.Status.DIVERGED: 0}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 9))
        r = n if seed % 2 else int(rng.integers(2, n + 1))
        j = signs(n, max(1, n // 2))
        C = rng.standard_normal((n, n)) + rng.choice([0.0, 1.0, 2.0]) * np.eye(n)
        linear = rng.standard_normal((n, r)) if seed % 3 == 0 else None
        smooth = ob.Quadratic(C + C.T, linear)
        for penalty in (ob.NoPenalty(), ob.L1(0.3), ob.L0(0.3)):
            problem = ob.JOrthogonalProblem(smooth, j, penalty, r)

            for solver, curvature in itertools.product(SOLVERS, ("exact", "scalar")):
                how = replace(solver, curvature=curvature)
                try:
                    result = ob.solve(problem, "random", solver=how, max_sweeps=50, seed=seed)
                except ValueError:
                    # The Jacobi update does not move columns.
                    continue
                if result.status not in ended:
                    continue
                ended[result.status] += 1
                x, history = result.x, result.history["objective"]
                assert result.objective == history.min()
                assert reference.value(problem, x) == pytest.approx(result.objective, rel=1e-6)
                k = ob.hyperbolic.random_j_orthogonal(j, 0.5, seed)[:, :r]
                size = np.sum(x**2)
                drift = np.linalg.norm(x.T @ (j[:, None] * x) - k.T @ (j[:, None] * k))
                assert drift <= 1e-12 * max(1.0, size)
                assert size <= 1.01e8 * max(n, np.sum(k**2))
                if result.status is ob.Status.UNBOUNDED:
                    assert result.objective < history[0]
                    way = result.hyperbolic.recession
                    ends = [moved_along(x, way, rapidity) for rapidity in (12.0, 13.0)]
                    near, far = (reference.value(problem, end) for end in ends)
                    assert far < near < result.objective
    assert min(ended.values()) > 20


@pytest.mark.parametrize("bound", [None, 0.1, 1e-2])
@pytest.mark.parametrize("p", [1, 10, 19])
def test_bounded_steps_on_the_papers_problem_have_one_verdict(bound, p):
    """Every method that takes a first step follows −∞ to the bounds, and stays within them."""
    A = np.random.default_rng(p).standard_normal((20, 20))
    problem = ob.HyperbolicEigenvalueProblem(A, signs(20, p), sense="max")
    pairs = ("random", "cyclic", "tiled")
    solvers: list[ob.JOBCD | ob.VRJOBCD] = [
        *(ob.JOBCD(side="rows", working_set=rule, curvature="scalar") for rule in pairs),
        ob.JOBCD(update="jacobi", curvature="scalar"),
        ob.VRJOBCD(full_gradient=True),
        ob.VRJOBCD(),
    ]
    for solver in solvers:
        result = ob.solve(problem, "random", solver=replace(solver, rapidity_bound=bound))
        assert result.status is ob.Status.UNBOUNDED, solver
        start = result.history["objective"][0]
        assert result.objective == pytest.approx(-(np.linalg.norm(A @ result.x) ** 2), rel=1e-9)
        assert result.objective < 1e4 * start < 0.0, solver
        x0 = ob.hyperbolic.random_j_orthogonal(problem.signature, 0.5, 0)
        assert np.sum(result.x**2) <= 1.01e8 * np.sum(x0**2)
        i, k = result.hyperbolic.recession["pair"]
        assert problem.signature[i] != problem.signature[k]


def test_definite_signature_equals_stiefel_bit_for_bit():
    rng = np.random.default_rng(3)
    G = rng.standard_normal((30, 12))
    smooth = ob.Quadratic(-G.T @ G, linear=rng.standard_normal((12, 12)))
    for penalty in (ob.NoPenalty(), ob.L1(0.5)):
        one = ob.solve(ob.StiefelProblem(smooth, penalty, 12), "random", max_sweeps=5, seed=3)
        two = ob.solve(
            ob.JOrthogonalProblem(smooth, np.ones(12), penalty), "random", max_sweeps=5, seed=3
        )
        assert (one.x == two.x).all()
        assert one.objective == two.objective


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        *((bad, ValueError) for bad in ([True, True], [1, 2], [1.0, 0.5], [0, -1], [[1, -1]], [])),
        *((bad, ValueError) for bad in ([1, -1, 1], [1, 0, -1], [1, 2, -1])),
        (["+", "-"], TypeError),
    ],
)
def test_a_signature_is_of_ones_of_either_sign(bad, error):
    for make in (
        lambda signs: ob.HyperbolicEigenvalueProblem(np.eye(2), signs),
        lambda signs: ob.JOrthogonalProblem(ob.Quadratic(np.eye(2)), signs),
    ):
        assert make([1.0, -1.0]).signature.tolist() == [1, -1]
        with pytest.raises(error, match="signature"):
            make(bad)


def test_bad_starts_and_options():
    problem = ob.HyperbolicEigenvalueProblem(np.eye(4), signs(4, 2))
    with pytest.raises(ValueError, match="x0"):
        ob.solve(problem, 1.1 * np.eye(4))
    with pytest.raises(ValueError, match="x0"):
        ob.solve(problem, "spectral")
    with pytest.raises(ValueError, match="x0"):
        ob.solve(problem, np.eye(4)[:, :2])
    with pytest.raises(ValueError, match="rapidity_bound"):
        ob.JOBCD(rapidity_bound=0.0)
    with pytest.raises(ValueError, match="sense"):
        ob.HyperbolicEigenvalueProblem(np.eye(4), signs(4, 2), sense="least")
    with pytest.raises(TypeError, match="solver"):
        ob.solve(problem, solver=ob.OBCD())
    # For odd n a Jacobi matching leaves one row out.
    odd = ob.HyperbolicEigenvalueProblem(np.eye(5), signs(5, 2))
    result = ob.solve(odd, "random", solver=ob.JOBCD(update="jacobi"), max_sweeps=5)
    assert result.objective <= result.history["objective"][0]
