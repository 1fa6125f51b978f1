"""`Continuation`: a solve along a path of λ."""

import numpy as np
import pytest

import orthobcd as ob

A = np.random.default_rng(0).standard_normal((40, 30)) * np.linspace(1, 3, 30)


@pytest.mark.parametrize("penalty", [ob.L0(1.0), ob.L1(1.0), ob.L1(np.full((30, 3), 2.0))])
def test_path_falls_to_the_problem(penalty):
    problem = ob.SparsePCAProblem(A, 3, penalty)
    result = ob.solve(problem, solver=ob.Continuation())
    lams = [point.lam for point in result.path]
    assert lams == sorted(lams, reverse=True)
    assert result.path[0].n_nonzero <= 6
    assert result.path[-1].objective == result.objective
    assert (result.path[-1].x == result.x).all()
    for point in result.path:
        assert np.abs(point.x.T @ point.x - np.eye(3)).max() < 1e-12
        variance = np.sum((A @ point.x) ** 2) / np.sum(A**2)
        assert point.explained_variance == pytest.approx(variance, rel=1e-10)
        assert point.n_nonzero == np.count_nonzero(point.x)
    assert result.converged
    assert result.feasibility < 1e-12
    assert (np.diff(result.history["objective"]) <= 0).all()
    again = ob.solve(problem, solver=ob.Continuation(), n_threads=1)
    assert (again.x == result.x).all()


def test_increasing_order_and_given_values():
    problem = ob.SparsePCAProblem(A, 3, ob.L0(2.0))
    result = ob.solve(problem, solver=ob.Continuation(lams=[0.01, 0.5, 5.0]))
    assert [point.lam for point in result.path] == [0.01, 0.5, 5.0, 2.0]
    assert result.path[0].n_nonzero >= result.path[2].n_nonzero
    scores = result.path[1]
    expected = -0.5 * np.sum((A @ scores.x) ** 2) + 0.5 * scores.n_nonzero
    assert scores.objective == pytest.approx(expected, rel=1e-12)


def test_limits():
    problem = ob.SparsePCAProblem(A, 3, ob.L0(0.1))
    result = ob.solve(problem, solver=ob.Continuation(), max_time=0.0)
    assert result.status is ob.Status.MAX_TIME
    assert result.feasibility < 1e-12
    value = -0.5 * np.sum((A @ result.x) ** 2) + 0.1 * result.n_nonzero
    assert result.objective == pytest.approx(value, rel=1e-12)
    result = ob.solve(problem, solver=ob.Continuation(), max_sweeps=2)
    assert result.status is ob.Status.MAX_SWEEPS


def test_bad_input_names_the_argument():
    with pytest.raises(ValueError, match="ratio must be"):
        ob.Continuation(ratio=1.0)
    with pytest.raises(ValueError, match="lams must"):
        ob.Continuation(lams=[])
    with pytest.raises(ValueError, match="lams must be nonnegative"):
        ob.Continuation(lams=[1.0, -1.0])
    with pytest.raises(TypeError, match="solver must be an OBCD"):
        ob.Continuation(solver="tiled")
    with pytest.raises(ValueError, match="Continuation needs a penalty that draws"):
        ob.solve(ob.NonnegativePCAProblem(A, 3), solver=ob.Continuation())
