"""`value`: F at a point, as a result without a solve."""

from __future__ import annotations

import numpy as np
import pytest

import orthobcd as ob

N, R = 12, 3
A = np.random.default_rng(5).standard_normal((30, N))
SMOOTH = {
    "stored": ob.Quadratic(A.T @ A, linear=np.arange(N * R).reshape(N, R) / 10.0),
    "data": ob.GramQuadratic(A),
    "function": ob.SmoothFunction(lambda X: (float((X**4).sum()), 4.0 * X**3), N, R),
}
PENALTIES = {
    "none": ob.NoPenalty(),
    "l0": ob.L0(0.5),
    "l1": ob.L1(0.5),
    "signs": ob.NonNegative(),
    "mcp": ob.MCP(0.5, 3.0),
    "entries": ob.Cardinality(8),
    "columns": ob.Cardinality([3, 2, 4]),
    "signed entries": ob.Cardinality(8, nonnegative=True),
    "rows": ob.RowSparse(count=5),
    "row penalty": ob.RowSparse(lam=0.5),
}
CASES = [
    (smooth, penalty)
    for smooth in SMOOTH
    for penalty in PENALTIES
    # Limits need a quadratic f, and rows one of the subspace alone.
    if (penalty in ("none", "l0", "l1", "signs", "mcp") or smooth != "function")
    and not ("row" in penalty and smooth == "stored")
]


@pytest.mark.parametrize(("smooth", "penalty"), CASES)
def test_it_is_what_a_solve_and_a_certificate_say(smooth, penalty):
    problem = ob.StiefelProblem(SMOOTH[smooth], PENALTIES[penalty], R)
    result = ob.solve(problem, max_work=0.003)
    at = ob.value(problem, result.x)
    certificate = ob.certify(problem, result.x)
    size = max(1.0, abs(result.objective))
    for name in ("objective", "smooth_value", "penalty_value"):
        assert abs(getattr(at, name) - getattr(result, name)) <= 1e-12 * size
        assert abs(getattr(at, name) - getattr(certificate, name)) <= 1e-12 * size
    assert at.feasibility < 1e-11
    assert np.array_equal(at.x, result.x)
    assert at.n_iterations == at.n_sweeps == at.n_updates == at.work == 0
    assert at.status is ob.Status.MAX_SWEEPS
    assert not at.converged


@pytest.mark.parametrize("penalty", ["entries", "columns", "signed entries", "rows"])
def test_a_violated_limit_costs_infinitely_much(penalty):
    problem = ob.StiefelProblem(SMOOTH["data"], PENALTIES[penalty], R)
    dense = np.linalg.qr(np.random.default_rng(0).standard_normal((N, R)))[0]
    at = ob.value(problem, dense)
    assert at.objective == at.penalty_value == np.inf
    assert at.smooth_value == ob.value(problem.with_penalty(ob.NoPenalty()), dense).objective
    assert (at.feasibility > 0.1) == (penalty == "signed entries")


def test_a_point_need_not_be_feasible():
    problem = ob.StiefelProblem(SMOOTH["data"], ob.L0(2.0), R)
    twice = 2.0 * np.eye(N)[:, :R]
    at = ob.value(problem, twice)
    assert at.feasibility == pytest.approx(3.0 * np.sqrt(R))
    assert at.objective == pytest.approx(-0.5 * np.sum((A @ twice) ** 2) + 2.0 * R)


def test_mixed_signs():
    problem = ob.JOrthogonalProblem(ob.Quadratic(A.T @ A), np.repeat([1, -1], N // 2))
    x = np.eye(N)
    at = ob.value(problem, x)
    assert at.objective == pytest.approx(0.5 * np.trace(A.T @ A))
    assert at.feasibility == 0.0


@pytest.mark.parametrize(
    "bad", [np.eye(N), np.full((N, R), np.nan), np.eye(N)[:, :R].tolist()[:-1], "text", None]
)
def test_a_wrong_point_is_named(bad):
    problem = ob.StiefelProblem(SMOOTH["data"], ob.NoPenalty(), R)
    with pytest.raises((TypeError, ValueError), match="x must"):
        ob.value(problem, bad)
