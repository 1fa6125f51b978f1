"""Starts, zeros, targets and results of every penalty; `test_properties.py` has the other laws."""

from __future__ import annotations

import numpy as np
import pytest

import orthobcd as ob

from .. import reference

N, R = 14, 3
PENALTIES = {
    "none": ob.NoPenalty(),
    "l0": ob.L0(3.0),
    "l1": ob.L1(1.0),
    "nonnegative": ob.NonNegative(),
}


def data(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((20, N))


def smooth():
    return ob.Quadratic(-data().T @ data())


def check_invariants(result: ob.Result, problem: ob.StiefelProblem) -> None:
    x = result.x
    assert x.shape == (N, R)
    assert np.linalg.norm(x.T @ x - np.eye(R)) < 1e-12
    assert result.feasibility < 1e-12
    if isinstance(problem.penalty, ob.NonNegative):
        assert x.min() >= 0.0
    scale = abs(result.smooth_value) + abs(result.penalty_value) + 1e-300
    assert abs(result.objective - reference.value(problem, x)) < 1e-11 * scale
    assert result.objective == pytest.approx(result.smooth_value + result.penalty_value)
    history = result.history
    assert np.all(np.diff(history["objective"]) <= 0.0)
    assert np.all(np.diff(history["n_iterations"]) >= 0)
    assert np.all(np.diff(history["seconds"]) >= 0.0)
    assert history["objective"][-1] == result.objective
    assert history["n_iterations"][-1] == result.n_iterations
    assert history["feasibility"].max() < 1e-12


@pytest.mark.parametrize("penalty", ["l0", "l1", "nonnegative"])
def test_zeros_are_exact(penalty):
    problem = ob.StiefelProblem(smooth(), PENALTIES[penalty], R)
    start = "partition" if penalty == "nonnegative" else "random"
    x = ob.solve(problem, start, max_sweeps=50).x
    assert np.count_nonzero(x == 0.0) >= 8
    if penalty == "l0":
        nonzero = np.abs(x[x != 0.0])
        assert nonzero.min() > 1e-6, "an entry is zero or it is not; nothing is left in between"


@pytest.mark.parametrize("start", ["identity", "random", "spectral", "partition"])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_every_start_is_feasible(start, penalty):
    objective = smooth()
    problem = ob.StiefelProblem(objective, PENALTIES[penalty], R)
    result = ob.solve(problem, start, max_sweeps=0)
    assert result.status is ob.Status.MAX_SWEEPS
    check_invariants(result, problem)
    assert result.n_updates == 0


def test_user_start_is_used(rng):
    objective = smooth()
    x0 = np.linalg.qr(rng.standard_normal((N, R)))[0]
    problem = ob.StiefelProblem(objective, ob.NoPenalty(), R)
    result = ob.solve(problem, x0, max_sweeps=0)
    np.testing.assert_allclose(result.x, x0, atol=1e-14)
    warm = ob.solve(problem, ob.solve(problem, x0).x)
    assert warm.objective <= ob.solve(problem, x0).objective + 1e-12 * abs(warm.objective)


def test_the_result_is_a_fresh_array():
    x0 = np.eye(N)[:, :R].copy()
    problem = ob.StiefelProblem(smooth(), ob.L0(3.0), R)
    result = ob.solve(problem, x0, max_sweeps=2)
    assert not np.shares_memory(result.x, x0)
    assert np.array_equal(x0, np.eye(N)[:, :R])
    result.x[0, 0] = 5.0


def test_target_stops():
    problem = ob.StiefelProblem(smooth(), ob.NoPenalty(), R)
    best = ob.solve(problem).objective
    target = 0.9 * best
    for solver in (ob.OBCD(working_set="random"), None):
        result = ob.solve(problem, solver=solver, target=target)
        assert result.status is ob.Status.TARGET
        assert best - 1e-9 * abs(best) <= result.objective <= target
