"""Reports of a search, counted work, makers."""

from __future__ import annotations

import itertools
import math
from typing import get_args

import numpy as np
import pytest

import orthobcd as ob
from orthobcd import _core

A = np.random.default_rng(3).standard_normal((40, 60)) * np.linspace(1.0, 3.0, 60)
PENALTIES = [ob.L0(20.0), ob.L1(5.0), ob.NonNegative(), ob.NoPenalty()]
NAMES = {*get_args(ob.solvers.Maker)} - {"given"}


def problem(penalty: ob.Penalty) -> ob.StiefelProblem:
    return ob.StiefelProblem(ob.Quadratic(-A.T @ A), penalty, 5)


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_runs_tell_how_the_point_came_about(penalty):
    result = ob.solve(problem(penalty), max_work=0.05)
    assert result.search is not None
    runs = result.search.runs
    assert min(run.objective for run in runs) == result.objective
    # The remaining work is the common preparation of the runs.
    assert 0.0 < sum(run.work for run in runs) <= result.work
    assert all(run.gain >= 0.0 and run.work >= 0.0 for run in runs)
    assert all(0.0 <= run.seconds <= result.seconds for run in runs)
    known = {*NAMES, "polish", "descent", "given", "powers", "rays"}
    assert {run.heuristic for run in runs} <= known
    profile = result.search.profile
    assert (profile["n_rows"], profile["n_components"]) == (60, 5)
    assert profile["n_rows_chosen"] is None
    assert not profile["mixed"]


def test_only_a_search_has_a_report(tmp_path):
    plain = ob.solve(problem(ob.L0(20.0)), solver=ob.OBCD())
    assert plain.search is None
    assert plain.work is not None
    assert plain.work > 0.0
    result = ob.solve(problem(ob.L0(20.0)), max_work=0.02)
    result.save(tmp_path / "result.npz")
    assert ob.Result.load(tmp_path / "result.npz").search == result.search


@pytest.mark.parametrize(("n", "m", "r"), [(3000, 40, 10), (2000, 300, 20), (1000, 100, 20)])
def test_little_work_is_not_exceeded_where_one_step_is_a_slice(n, m, r):
    """A slice that a first descent uses up leaves no room for others; before, 64 of them began."""
    random = np.random.default_rng(0)
    data = random.standard_normal((m, n)) * np.exp(-np.arange(m) / 10)[:, None]
    penalty = ob.L1(0.01 * np.max(np.sum(data**2, axis=0)))
    result = ob.solve(ob.SparsePCAProblem(data, r, penalty), max_work=0.1)
    # The common preparation is not limited, so that only the work of the runs is compared.
    assert result.search is not None
    assert sum(run.work for run in result.search.runs) <= 2.0 * 0.1


def test_the_names_are_those_of_the_core():
    assert {*_core.makers()} == {*NAMES, "given"}


def changed(problem: ob.StiefelProblem, x0: np.ndarray, heuristic: str) -> ob.Result:
    """A search from the start by one maker of improvements alone."""
    return ob.solve(
        problem, x0, solver=ob.Auto(makers=["given", heuristic]), max_work=0.4, effort=math.inf
    )


@pytest.mark.parametrize("seed", range(4))
def test_exchanges_find_the_best_support(seed):
    n, lam = 8, 0.3
    rng = np.random.default_rng(seed)
    C = (lambda a: a + a.T)(rng.standard_normal((n, n)))
    smooth = ob.SmoothFunction(lambda x: (0.5 * float(np.vdot(x, C @ x)), C @ x), n, 1)
    supports = (s for k in range(1, n + 1) for s in itertools.combinations(range(n), k))
    values = [0.5 * np.linalg.eigvalsh(C[np.ix_(s, s)])[0] + lam * len(s) for s in supports]
    # The start is the worst row; a pair alone may not leave it, as a second entry costs lam.
    x0 = np.eye(n)[:, [int(np.argmax(np.diag(C)))]]
    result = changed(ob.StiefelProblem(smooth, ob.L0(lam), 1), x0, "exchange")
    assert "exchange" in {run.heuristic for run in result.search.runs}
    assert result.objective == pytest.approx(min(values), abs=1e-9)
    assert result.feasibility < 1e-12


LINEAR = np.random.default_rng(4).standard_normal((6, 2))
KINDS = {
    "trace form": ob.SparsePCAProblem(LINEAR.T, 2, ob.L0(0.1)),
    "linear": ob.StiefelProblem(ob.Quadratic(-np.ones((6, 6)), linear=LINEAR), ob.L0(0.1), 2),
    "nonnegative": ob.NonnegativePCAProblem(LINEAR.T, 2),
    "mixed": ob.HyperbolicEigenvalueProblem(np.eye(6), [1, 1, -1, 1, -1, 1]),
    "function": ob.StiefelProblem(
        ob.SmoothFunction(lambda x: (float(np.vdot(LINEAR, x)), LINEAR), 6, 2), ob.L1(0.1), 2
    ),
}


@pytest.mark.parametrize("limits", [{"max_sweeps": 3}, {"max_sweeps": 3, "tol": 0.0}, {}], ids=str)
@pytest.mark.parametrize("maker", sorted(NAMES - {"given"}))
@pytest.mark.parametrize("kind", KINDS)
def test_every_maker_alone_ends_by_itself(kind, maker, limits):
    """Also one that improves only, where a limit on sweeps excludes improvements."""
    result = ob.solve(KINDS[kind], solver=ob.Auto(makers=[maker]), **limits)
    assert result.status not in (ob.Status.MAX_TIME, ob.Status.INTERRUPTED)
    assert result.feasibility < 1e-9


def test_exchanges_leave_quadratic_trace_forms_to_others():
    runs = ob.solve(problem(ob.L0(20.0)), max_work=0.05).search.runs
    assert "exchange" not in {run.heuristic for run in runs}


@pytest.mark.parametrize("penalty", [ob.NoPenalty(), ob.L1(1e-3), ob.L0(1e-3)], ids=repr)
def test_renewed_columns_find_other_directions(penalty):
    # -sum w_i <q_i, x_k>^4 / 4 is least at the q_i of the r largest weights; others are local.
    n, r = 9, 2
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((n, n)))[0]
    weights = np.linspace(1.0, 2.0, n)[:, None]

    def f(x: np.ndarray) -> tuple[float, np.ndarray]:
        y = Q.T @ x
        return -0.25 * float(np.sum(weights * y**4)), -(Q @ (weights * y**3))

    smooth = ob.SmoothFunction(f, n, r)
    result = changed(ob.StiefelProblem(smooth, penalty, r), Q[:, :r], "renewed")
    assert result.search.profile["quadratic"] is False
    least = -0.25 * weights[-r:].sum()
    most = 1e-3 * n * r  # largest h, and largest change of the optimum by h
    assert least - 1e-9 <= result.objective <= least + most


def test_work_is_limited():
    for solver in (ob.OBCD(), ob.Continuation()):
        short = ob.solve(problem(ob.L0(20.0)), solver=solver, max_work=1e-5)
        assert short.status is ob.Status.MAX_WORK
        assert short.feasibility < 1e-12
    loss = ob.LogisticLoss(np.eye(6), np.eye(6)[:, :3], np.ones(6))
    terms = ob.FiniteSum(lambda x, _: (float(np.sum(x)), np.ones_like(x)), 5, 6, 2, lipschitz=1.0)
    for sum_of_terms in (
        ob.JOrthogonalProblem(loss, [1, 1, 1, -1, -1, -1]),
        ob.StiefelProblem(terms, ob.NoPenalty(), 2),
    ):
        with pytest.raises(ValueError, match="max_work must be None for VRJOBCD"):
            ob.solve(sum_of_terms, max_work=1.0)


def test_the_live_line_names_heuristics(capfd):
    ob.solve(problem(ob.L0(20.0)), max_work=0.2, verbose=True)
    shown = capfd.readouterr().err
    assert any(name in shown for name in NAMES)
