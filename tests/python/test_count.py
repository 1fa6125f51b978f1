"""An exact number of nonzeros."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import orthobcd as ob

A = np.random.default_rng(3).standard_normal((60, 15)) @ np.diag(np.linspace(0.5, 2.0, 15))
PROBLEM = ob.SparsePCAProblem(A, 4, ob.L0(2.0))
START = ob.solve(PROBLEM, solver=ob.Continuation(), n_threads=1)


@pytest.mark.parametrize("count", [4, 7, 20, 33, 50])
def test_exactly_that_many(count):
    result = ob.minimize_at_count(PROBLEM, START.x, count)
    x = result.x
    assert result.n_nonzero == np.count_nonzero(x) == count
    assert np.linalg.norm(x.T @ x - np.eye(4)) < 1e-12
    assert result.feasibility < 1e-12
    assert result.smooth_value == pytest.approx(-0.5 * np.sum((A @ x) ** 2))
    assert result.objective == pytest.approx(result.smooth_value + 2.0 * count)
    assert np.all(np.diff(result.history["objective"]) <= 0.0)
    assert result.history["objective"][-1] == result.objective
    assert result.converged


def test_no_worse_than_the_penalised_point():
    result = ob.minimize_at_count(PROBLEM, START.x, START.n_nonzero)
    assert result.objective <= START.objective + 1e-9 * abs(START.objective)
    again = ob.minimize_at_count(PROBLEM, START.x, START.n_nonzero)
    np.testing.assert_array_equal(result.x, again.x)


def test_more_nonzeros_explain_more():
    values = [ob.minimize_at_count(PROBLEM, START.x, c).smooth_value for c in (8, 16, 32, 48)]
    assert np.all(np.diff(values) < 0.0)


def test_one_component_against_every_support():
    """The largest sparse eigenvalue: found in nearly every draw, exceeded in none."""
    found = 0
    for seed in range(10):
        data = np.random.default_rng(seed).standard_normal((20, 9))
        gram = data.T @ data
        best = max(
            np.linalg.eigvalsh(gram[np.ix_(rows, rows)])[-1] for rows in combinations(range(9), 4)
        )
        problem = ob.SparsePCAProblem(data, 1, ob.L0(0.0))
        start = ob.solve(problem, "spectral", solver=ob.OBCD()).x
        value = -2.0 * ob.minimize_at_count(problem, start, 4).smooth_value
        assert value <= best * (1.0 + 1e-12)
        found += value >= best * (1.0 - 1e-9)
    assert found >= 8


def test_sparse_data_are_the_same_problem():
    """Where two exchanges end is decided by last bits; what they end at is not."""
    sparse = pytest.importorskip("scipy.sparse")
    data = np.where(np.abs(A) > 1.0, A, 0.0)
    both = [
        ob.StiefelProblem(ob.GramQuadratic(form), ob.L0(1.0), 4)
        for form in (data, sparse.csc_array(data))
    ]
    for problem in both:
        result = ob.minimize_at_count(problem, START.x, 20)
        x = result.x
        assert result.converged
        assert result.n_nonzero == np.count_nonzero(x) == 20
        assert result.feasibility < 1e-12
        value = -0.5 * np.sum((data @ x) ** 2)
        assert result.smooth_value == pytest.approx(value, rel=1e-12)
        for other in both:
            certificate = ob.certify(other, x)
            assert certificate.smooth_value == pytest.approx(value, rel=1e-12)
            # Stationary among the points of this support.
            assert certificate.criticality < 1e-5 * abs(value)


def test_limits_and_callback():
    stopped = ob.minimize_at_count(PROBLEM, START.x, 20, callback=lambda progress: True)
    assert stopped.status is ob.Status.INTERRUPTED
    assert stopped.n_nonzero == 20
    assert ob.minimize_at_count(PROBLEM, START.x, 20, max_time=0.0) is None

    def fails(progress: ob.Progress) -> None:
        raise RuntimeError("from the callback")

    with pytest.raises(RuntimeError, match="from the callback") as caught:
        ob.minimize_at_count(PROBLEM, START.x, 20, callback=fails)
    assert caught.value.result.n_nonzero == 20


@pytest.mark.parametrize(
    ("error", "name", "call"),
    [
        (ValueError, "n_nonzero", lambda: ob.minimize_at_count(PROBLEM, START.x, 3)),
        (ValueError, "n_nonzero", lambda: ob.minimize_at_count(PROBLEM, START.x, 61)),
        (TypeError, "n_nonzero", lambda: ob.minimize_at_count(PROBLEM, START.x, 20.0)),
        (ValueError, "x0", lambda: ob.minimize_at_count(PROBLEM, 2.0 * START.x, 20)),
        (ValueError, "x0", lambda: ob.minimize_at_count(PROBLEM, START.x[:, :2], 20)),
        (TypeError, "x0", lambda: ob.minimize_at_count(PROBLEM, "identity", 20)),
        (ValueError, "max_time", lambda: ob.minimize_at_count(PROBLEM, START.x, 20, max_time=-1)),
        (ValueError, "tol", lambda: ob.minimize_at_count(PROBLEM, START.x, 20, tol=-1.0)),
        (
            TypeError,
            "penalty",
            lambda: ob.minimize_at_count(ob.SparsePCAProblem(A, 4, ob.L1(1.0)), START.x, 20),
        ),
        (
            TypeError,
            "problem",
            lambda: ob.minimize_at_count(ob.NonnegativePCAProblem(A, 4), START.x, 20),
        ),
    ],
)
def test_refused(error, name, call):
    with pytest.raises(error, match=rf"\b{name}\b"):
        call()
