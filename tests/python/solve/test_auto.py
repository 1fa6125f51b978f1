"""`Auto`, the default solver: starts, perturbation, escape, reproducibility."""

import math

import numpy as np
import pytest

import orthobcd as ob

A = np.random.default_rng(0).standard_normal((50, 40)) * np.linspace(1, 3, 40)
PENALTIES = [ob.L0(20.0), ob.L0(1.0), ob.L1(5.0), ob.NonNegative(), ob.NoPenalty()]


def pca(penalty, r=4):
    return ob.StiefelProblem(ob.Quadratic(-A.T @ A), penalty, r)


@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_default_is_feasible_reproducible_and_better_than_one_descent(penalty):
    problem = pca(penalty)
    result = ob.solve(problem, seed=3)
    again = ob.solve(problem, seed=3, n_threads=1)
    assert (result.x == again.x).all()
    assert result.converged
    assert result.feasibility < 1e-12
    assert (np.diff(result.history["objective"]) <= 0).all()
    assert result.history["objective"][-1] == result.objective
    assert result.search.strategy
    assert min(run.objective for run in result.search.runs) >= result.objective - 1e-9
    plain = ob.solve(problem, solver=ob.OBCD())
    # The search has several starts; a single descent may be as good or slightly better.
    assert result.objective <= plain.objective + 1e-3 * abs(plain.objective)
    certificate = ob.certify(problem, result.x)
    assert certificate.block2_gap <= 1e-6 * abs(result.objective)


@pytest.mark.parametrize("r", [2, 4])
def test_an_incumbent_that_polishing_lowers_by_rounding_alone_rests(r):
    for seed in range(20):
        assert ob.solve(pca(ob.NonNegative(), r), seed=seed).converged, seed


def test_a_given_start_is_the_first():
    problem = pca(ob.L0(5.0))
    x0 = np.linalg.qr(np.random.default_rng(0).standard_normal((40, 4)))[0]
    result = ob.solve(problem, x0)
    assert result.search.runs[0].objective >= result.objective
    assert "given" in {run.heuristic for run in result.search.runs}
    assert result.history["objective"][0] == pytest.approx(
        -0.5 * np.sum((A @ x0) ** 2) + 5.0 * x0.size
    )
    chosen = ob.solve(problem, solver=ob.Auto(makers=["dense"]), max_work=0.05)
    assert {run.heuristic for run in chosen.search.runs} <= {"dense", "polish"}


@pytest.mark.parametrize(
    "limit", [ob.Cardinality(20), ob.Cardinality([5] * 4), ob.RowSparse(count=9)]
)
def test_makers_under_a_limit(limit):
    """Chains begin at the starts of the chosen makers, after the points that need no search."""
    problem = pca(limit)
    rows = isinstance(limit, ob.RowSparse)
    every = ["opening", "rows"] if rows else ["opening", "splitting", "grown"]
    for chosen in [[every[0]], [every[-1]], every]:
        solver = ob.Auto(makers=chosen)
        found = [ob.solve(problem, solver=solver, max_work=work) for work in (0.002, 0.02, 0.05)]
        assert all(run.heuristic in {"opening", *chosen} for run in found[-1].search.runs)
        values = [result.objective for result in found]
        assert values == sorted(values, reverse=True)
    x0 = np.eye(40, 4)
    result = ob.solve(problem, x0, solver=ob.Auto(makers=["given"]), max_work=0.02)
    assert {run.heuristic for run in result.search.runs} <= {"opening", "given"}
    for makers in (["given"], ["path"]):  # no chains
        result = ob.solve(problem, solver=ob.Auto(makers=makers))
        assert result.converged
        assert not result.search.runs


def test_dense_l1_begins_with_the_two_highest_priors():
    data = A * np.where(np.arange(40) == 0, 50.0, 1.0)  # one direction above all others
    problem = ob.SparsePCAProblem(data, 4, ob.L1(0.5))
    result = ob.solve(problem, max_work=0.1, effort=math.inf)
    assert result.search.profile["dense"]
    scratch = [r.heuristic for r in result.search.runs if not r.improve and r.heuristic != "polish"]
    assert set(scratch[:2]) == {"varimax", "spectral"}  # they need no steps
    assert set(scratch[2:4]) == {"smoothed", "splitting"}


def test_bad_input_names_the_argument():
    with pytest.raises(ValueError, match="makers must be one of"):
        ob.Auto(makers=["luck"])
    with pytest.raises(ValueError, match="makers must not be empty"):
        ob.Auto(makers=[])
    with pytest.raises(TypeError, match="makers must be a sequence"):
        ob.Auto(makers="path")
    with pytest.raises(TypeError, match="solver must be an Auto, Continuation or OBCD"):
        ob.solve(pca(ob.L0(1.0)), solver="auto")


PIECES = ob.PiecewiseQuadratic(
    [-0.5, 0.2, 0.6], [(0.1, -0.5, 0.0), (0.0, 0.0, 1.0), (0.05, 0.3, 0.0), (0.0, 0.6, 0.4)]
)


@pytest.mark.parametrize("seed", [6, 9, 10, 20, 44, 53, 71, 85, 93])
def test_a_search_without_limits_is_no_worse_than_a_plain_descent(seed):
    """Small problems of every kind, some of which heuristics alone leave above it."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 14))
    r = int(rng.integers(1, min(n, 5)))
    C = rng.standard_normal((n, n))
    linear = rng.standard_normal((n, r)) if rng.random() < 0.5 else None
    lam = float(rng.choice([0.05, 0.3, 1.0]))
    smooth = ob.Quadratic(C + C.T, linear)
    for penalty in (
        ob.L1(lam),
        ob.L0(lam),
        ob.NonNegative(),
        ob.L0(lam) + ob.NonNegative(),
        ob.L1(lam) + ob.NonNegative(),
        ob.MCP(lam, 2.0),
        ob.Box(0.0, 1.0),
        PIECES,
    ):
        problem = ob.StiefelProblem(smooth, penalty, r)
        plain = ob.solve(problem, solver=ob.OBCD(), seed=seed)
        found = ob.solve(problem, seed=seed, n_threads=1)
        size = abs(plain.smooth_value) + abs(plain.penalty_value)
        assert found.objective <= plain.objective + 1e-10 * size, repr(penalty)


def test_runs_that_come_to_nothing_are_counted():
    """Partitions of three rows into three groups have entries that this box does not allow."""
    n, r = 9, 3
    calls = []

    def f(x):
        calls.append(1)
        return float(np.sum(x**4)), 4.0 * x**3

    x0 = np.kron(np.eye(r), np.full((n // r, 1), (n // r) ** -0.5))
    problem = ob.StiefelProblem(ob.SmoothFunction(f, n), ob.Box(0.0, 0.9), r)
    ob.solve(problem, x0, solver=ob.Auto(), max_work=1e-4)
    # A value costs n²r multiply-adds; a work unit has 1e10 of them.
    assert len(calls) * n * n * r <= 2e6


def test_a_default_partition_fits_its_box():
    n, r = 14, 3
    smooth = ob.Quadratic(-(A.T @ A)[:n, :n])
    even = (n // r) ** -0.5  # the largest entry of groups of as equal size as can be
    for seed in range(50):
        for upper in (0.9, even):
            problem = ob.StiefelProblem(smooth, ob.Box(0.0, upper), r)
            result = ob.solve(problem, solver=ob.OBCD(), max_sweeps=0, seed=seed)
            assert result.x.max() <= upper
            assert result.feasibility < 1e-14
        tight = ob.StiefelProblem(smooth, ob.Box(0.0, 0.99 * even), r)
        with pytest.raises(ValueError, match="x0"):
            ob.solve(tight, solver=ob.OBCD(), max_sweeps=0, seed=seed)
    found = ob.solve(ob.StiefelProblem(smooth, ob.Box(0.0, even), r), max_work=1e-3)
    assert found.feasibility < 1e-12
