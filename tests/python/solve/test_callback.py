"""`callback`: the `Progress` it sees, what it returns and raises."""

from __future__ import annotations

import numpy as np
import pytest

import orthobcd as ob
from orthobcd.hyperbolic import HyperbolicStructuralProbeProblem


def raising(error: BaseException):
    def callback(*_: object) -> None:
        raise error

    return callback


A = np.random.default_rng(0).standard_normal((12, 8))
C = -A.T @ A
J = [1, 1, 1, 1, -1, -1, -1, -1]
PROBLEM = ob.StiefelProblem(ob.Quadratic(C), ob.L1(0.5), 3)


class Closed(Exception):
    """Takes no attributes."""

    def __setattr__(self, name: str, value: object) -> None:
        raise TypeError("no attributes here")


SOLVES = {
    "OBCD": lambda call: ob.solve(PROBLEM, "random", solver=ob.OBCD(), callback=call),
    "Auto": lambda call: ob.solve(PROBLEM, callback=call),
    "Path": lambda call: ob.solve(PROBLEM, solver=ob.Continuation(), callback=call),
    "JOBCD": lambda call: ob.solve(ob.HyperbolicEigenvalueProblem(A, J), "random", callback=call),
    "sum": lambda call: ob.solve(HyperbolicStructuralProbeProblem(A, J), callback=call),
    "count": lambda call: ob.solve(
        ob.StiefelProblem(ob.Quadratic(C), ob.Cardinality(12), 3), callback=call
    ),
    "rows": lambda call: ob.solve(
        ob.StiefelProblem(ob.Quadratic(C), ob.RowSparse(1.0), 3), callback=call
    ),
}


@pytest.mark.parametrize("name", SOLVES)
def test_what_a_callback_raises_comes_out(name):
    for kind in (KeyboardInterrupt, SystemExit, ValueError):
        error = kind("mine")
        with pytest.raises(kind) as caught:
            SOLVES[name](raising(error))
        assert caught.value is error
        assert error.result.feasibility < 1e-10
    closed = Closed("mine")
    with pytest.raises(Closed) as caught_closed:
        SOLVES[name](raising(closed))
    assert caught_closed.value is closed


WIDE = ob.SparsePCAProblem(np.random.default_rng(0).standard_normal((60, 120)), 8, ob.L1(0.5))


def test_callback_true_stops():
    calls = []

    def stop_at_third(progress: ob.Progress) -> bool:
        calls.append(progress)
        return len(calls) == 3

    result = ob.solve(WIDE, "random", callback=stop_at_third, tol=0.0)
    assert result.status is ob.Status.INTERRUPTED
    assert not result.converged
    assert len(calls) == 3
    assert result.objective <= calls[-1].objective
    assert result.feasibility < 1e-12


def test_callback_sees_a_descending_feasible_solve():
    seen: list[ob.Progress] = []
    result = ob.solve(WIDE, "random", callback=seen.append, max_sweeps=5)
    assert seen[0].n_iterations == 0
    objectives = [p.objective for p in seen]
    assert objectives == sorted(objectives, reverse=True)
    for progress in seen:
        assert progress.x.shape == (120, 8)
        assert np.linalg.norm(progress.x.T @ progress.x - np.eye(8)) < 1e-12
    # Copies, not views of the running state.
    assert not np.array_equal(seen[0].x, result.x)
    seen[0].x[:] = 0.0


def test_callback_returning_none_goes_on():
    calls = []
    result = ob.solve(
        WIDE, "random", callback=calls.append, solver=ob.OBCD(), tol=0.0, max_sweeps=3
    )
    assert result.status is ob.Status.MAX_SWEEPS
    assert result.n_sweeps == 3
    assert len(calls) >= 3
