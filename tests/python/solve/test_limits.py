"""Limits of a solve: a search that ends by itself ends alike, and `Status` names the limit."""

from __future__ import annotations

import inspect
import json
import math
import time
from typing import Any

import numpy as np
import pytest

import orthobcd as ob
from orthobcd.cli import main

RNG = np.random.default_rng(3)
A = RNG.standard_normal((40, 12)) * np.linspace(1.0, 2.0, 12)
SIGNS = [1] * 7 + [-1] * 5

FAR = 600.0
"""Seconds, or units of work, that no solve of these tests needs."""


def away(x: np.ndarray) -> tuple[float, np.ndarray]:
    """``¼ Σ (x² − a)²`` with a gradient step that many points stop at."""
    gap = x**2 - np.linspace(0.1, 0.6, x.shape[0])[:, None]
    return 0.25 * float(np.sum(gap**2)), gap * x


def pca(penalty: Any, r: int = 3) -> Any:
    return ob.SparsePCAProblem(A, r, penalty)


def mixed(penalty: Any) -> Any:
    return ob.JOrthogonalProblem(ob.Quadratic(A.T @ A), SIGNS, penalty, 3)


FUNCTION = ob.SmoothFunction(away, 12)

SEARCHES: dict[str, Any] = {
    "l0": lambda: pca(ob.L0(8.0)),
    "l1": lambda: pca(ob.L1(4.0)),
    "mcp": lambda: pca(ob.MCP(2.0, 3.0)),
    "nonnegative": lambda: pca(ob.NonNegative()),
    "box": lambda: pca(ob.Box(-0.5, 0.5)),
    "none": lambda: pca(ob.NoPenalty()),
    "linear": lambda: ob.StiefelProblem(
        ob.Quadratic(A.T @ A, linear=RNG.standard_normal((12, 3))), ob.L1(0.5), 3
    ),
    "entries": lambda: pca(ob.Cardinality(9)),
    "columns": lambda: pca(ob.Cardinality([5, 3, 2])),
    "rows": lambda: pca(ob.RowSparse(count=6)),
    "row penalty": lambda: pca(ob.RowSparse(lam=6.0)),
    "function": lambda: ob.StiefelProblem(FUNCTION, ob.L1(0.02), 3),
    "function l0": lambda: ob.StiefelProblem(FUNCTION, ob.L0(0.005), 3),
    "plain function": lambda: ob.StiefelProblem(FUNCTION, ob.NoPenalty(), 3),
    "mixed": lambda: mixed(ob.L1(0.5)),
    "mixed l0": lambda: mixed(ob.L0(0.5)),
    "mixed function": lambda: ob.JOrthogonalProblem(FUNCTION, SIGNS, ob.L1(0.1), 3),
}


def assert_same(one: ob.Result, other: ob.Result) -> None:
    assert one.status is other.status
    assert one.x.tobytes() == other.x.tobytes()
    assert one.work == other.work


@pytest.mark.parametrize("name", SEARCHES)
def test_a_limit_that_is_not_reached_changes_nothing(name):
    problem = SEARCHES[name]()
    for effort in (1.0, 0.3):
        free = ob.solve(problem, effort=effort, n_threads=1)
        for limits in ({"max_time": FAR}, {"max_work": FAR}, {"max_time": FAR, "max_work": FAR}):
            assert_same(ob.solve(problem, effort=effort, n_threads=2, **limits), free)


@pytest.mark.parametrize(
    "name", ["l0", "l1", "nonnegative", "entries", "rows", "function", "mixed"]
)
def test_effort_scales_the_work_of_a_search(name):
    problem = SEARCHES[name]()
    found = [ob.solve(problem, effort=effort, n_threads=1) for effort in (0.1, 1.0, 4.0)]
    work = [result.work for result in found]
    assert work == sorted(work)
    assert all(result.feasibility < 1e-11 for result in found)
    if name in ("entries", "rows"):
        values = [result.objective for result in found]
        assert values == sorted(values, reverse=True)


ESTIMATORS = {
    "sparse": lambda **how: ob.SparsePCA(2, scale=True, random_state=0, **how),
    "counted": lambda **how: ob.SparsePCA(2, n_nonzero=6, random_state=0, **how),
    "l1": lambda **how: ob.SparsePCA(2, penalty="l1", alpha=0.2, random_state=0, **how),
    "nonnegative": lambda **how: ob.NonnegativePCA(2, random_state=0, **how),
    "clusters": lambda **how: ob.OrthogonalNMF(2, random_state=0, **how),
    "chosen": lambda **how: ob.SparsePCACV(2, n_alphas=3, cv=2, random_state=0, **how),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_take_effort_and_a_limit(name):
    make, data = ESTIMATORS[name], np.abs(A)
    free = make().fit(data)
    for limit in ("max_time", "max_work"):
        limited = make(**{limit: FAR}).fit(data)
        assert_same(free.result_, limited.result_)
        np.testing.assert_array_equal(free.components_, limited.components_)
        with pytest.raises(ValueError, match=rf"^{limit} "):
            make(**{limit: -0.1}).fit(data)
    work = 0.5 * free.result_.work
    one, two = (make(max_work=work, n_jobs=threads).fit(data).result_ for threads in (1, 2))
    assert one.work <= 1.25 * work + 1e-4
    assert_same(one, two)
    assert make(effort=0.1).fit(data).result_.work <= free.result_.work
    assert free.get_params()["effort"] == 1.0
    with pytest.raises(ValueError, match="effort must be finite"):
        make(effort=math.inf).fit(data)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, -math.inf])
def test_effort_is_checked(wrong):
    with pytest.raises(ValueError, match="effort"):
        ob.solve(SEARCHES["l0"](), effort=wrong)
    with pytest.raises(TypeError, match="effort"):
        ob.solve(SEARCHES["l0"](), effort="much")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SEARCHES)
def test_an_endless_search_needs_a_limit(name):
    for limits in ({}, {"max_sweeps": 3}, {"target": -1.0}):
        with pytest.raises(ValueError, match="effort must be finite without max_time and max_work"):
            ob.solve(SEARCHES[name](), effort=math.inf, **limits)


SOLVES: dict[str, Any] = {
    **{name: (problem, None) for name, problem in SEARCHES.items()},
    "obcd": (lambda: pca(ob.L0(8.0)), ob.OBCD()),
    "obcd pairs": (lambda: pca(ob.L1(4.0)), ob.OBCD(working_set="random")),
    "obcd jacobi": (lambda: pca(ob.L1(4.0)), ob.OBCD(update="jacobi")),
    "obcd columns": (lambda: pca(ob.L1(4.0)), ob.OBCD(side="both")),
    "obcd function": (lambda: ob.StiefelProblem(FUNCTION, ob.L1(0.02), 3), ob.OBCD()),
    "continuation": (lambda: pca(ob.L0(8.0)), ob.Continuation()),
    "jobcd": (lambda: mixed(ob.NoPenalty()), ob.JOBCD()),
    "jobcd l1": (lambda: mixed(ob.L1(0.5)), ob.JOBCD()),
    "vrjobcd": (
        lambda: ob.HyperbolicEigenvalueProblem(A, SIGNS),
        ob.VRJOBCD(full_gradient=True),
    ),
}

SMALL = {"max_time": 1e-4, "max_sweeps": 1, "max_work": 1e-5, "target": None, "callback": None}
LARGE = {"max_time": FAR, "max_sweeps": 10**6, "max_work": FAR, "target": -1e300}

NAMES = {
    "max_time": ob.Status.MAX_TIME,
    "max_sweeps": ob.Status.MAX_SWEEPS,
    "max_work": ob.Status.MAX_WORK,
}


@pytest.mark.parametrize("name", SOLVES)
@pytest.mark.parametrize("large", LARGE)
@pytest.mark.parametrize("small", NAMES)
def test_a_status_names_the_limit_that_ended_the_solve(name, small, large):
    """For every pair of limits, one that is reached and one that is not."""
    make, solver = SOLVES[name]
    if small == large or (isinstance(solver, ob.VRJOBCD) and "max_work" in (small, large)):
        pytest.skip("the same limit, or one that the solver does not have")
    problem = make()
    own = (NAMES[small], ob.Status.CONVERGED, ob.Status.DIVERGED)
    ended = ob.solve(problem, solver=solver, **{small: SMALL[small], large: LARGE[large]})
    assert ended.status in own
    if small != "max_time" and large != "max_sweeps" and ended.status is NAMES[small]:
        alone = ob.solve(problem, solver=solver, **{small: SMALL[small]})
        assert alone.status is ended.status
        assert alone.x.tobytes() == ended.x.tobytes()


SOLVERS: dict[str, Any] = {
    "default": None,
    "auto": ob.Auto(),
    "two makers": ob.Auto(makers=["splitting", "path"]),
    "obcd": ob.OBCD(),
    "obcd random": ob.OBCD(working_set="random"),
    "obcd columns": ob.OBCD(side="both"),
    "continuation": ob.Continuation(),
    "jobcd": ob.JOBCD(),
    "jobcd columns": ob.JOBCD(side="columns"),
    "jobcd rows": ob.JOBCD(side="rows"),
    "jobcd jacobi": ob.JOBCD(update="jacobi"),
    "vrjobcd": ob.VRJOBCD(full_gradient=True),
}


def small_problem(kind: str, n: int, r: int, signs: list[int]) -> Any:
    rng = np.random.default_rng(n)
    data = rng.standard_normal((8, n))
    linear = rng.standard_normal((n, r)) if kind == "linear" else None
    f = ob.SmoothFunction(away, n) if kind == "function" else ob.Quadratic(data.T @ data, linear)
    h = {"l0": ob.L0(0.5), "none": ob.NoPenalty()}.get(kind, ob.L1(0.1))
    if min(signs) < 0:
        return ob.JOrthogonalProblem(f, signs, h, r)
    return ob.StiefelProblem(f, ob.Cardinality(r) if kind == "count" else h, r)


@pytest.mark.parametrize("kind", ["none", "l1", "l0", "linear", "function", "count"])
@pytest.mark.parametrize("name", SOLVERS)
def test_no_solver_makes_more_sweeps_than_its_limit(name, kind):
    """Few rows, where one sweep is few pairs, and every start of a search is one more descent."""
    solver, solved = SOLVERS[name], 0
    refused: list[str] = []
    for n, r in ((2, 1), (2, 2), (3, 1), (3, 3), (5, 2)):
        for signs in ([1] * n, [1] + [-1] * (n - 1), [-1] + [1] * (n - 1)):
            for most in range(4):
                try:
                    problem = small_problem(kind, n, r, signs)
                    result = ob.solve(problem, solver=solver, max_sweeps=most)
                except (TypeError, ValueError) as error:
                    refused.append(str(error))  # the solver is for other problems
                    continue
                solved += 1
                assert result.n_sweeps <= most
                assert most > 0 or result.n_updates == 0
                if most == 0 and result.status is not ob.Status.CONVERGED:
                    assert result.status is ob.Status.MAX_SWEEPS
    assert not any("sweeps" in message for message in refused)
    if not solved:
        pytest.skip("the solver is for other problems")


def test_random_state_is_the_seed():
    problem = SEARCHES["l0"]()
    assert_same(ob.solve(problem, random_state=5), ob.solve(problem, seed=5))
    for make in (np.random.RandomState, np.random.default_rng):
        one, other = (ob.solve(problem, random_state=make(3)) for _ in range(2))
        assert_same(one, other)
        assert one.seed == other.seed
    with pytest.raises(ValueError, match="seed must not be given beside random_state"):
        ob.solve(problem, seed=1, random_state=1)
    for wrong in (-1, 2**64):
        with pytest.raises(ValueError, match="random_state"):
            ob.solve(problem, random_state=wrong)
    with pytest.raises(TypeError, match="random_state"):
        ob.solve(problem, random_state="mine")


def test_one_default_of_threads():
    """One thread; None and −1 are all cores, with the same result."""
    given = (ob.solve, ob.certify, ob.regularization_path, ob.rotate_loadings)
    assert {inspect.signature(function).parameters["n_threads"].default for function in given} == {
        1
    }
    problem = SEARCHES["l1"]()
    first = ob.solve(problem)
    for count in (1, 2, None, -1):
        assert_same(ob.solve(problem, n_threads=count), first)
    for wrong in (0, -2):
        with pytest.raises(ValueError, match="n_threads"):
            ob.solve(problem, n_threads=wrong)
    with pytest.raises(TypeError, match="n_threads"):
        ob.solve(problem, n_threads=True)


@pytest.mark.parametrize("options", [["--effort", "0.5"], ["--effort", "inf", "--max-time", "0.3"]])
def test_the_command_takes_effort(options, tmp_path):
    table, report = tmp_path / "data.csv", tmp_path / "report.json"
    np.savetxt(table, A, delimiter=",", header=",".join(f"x{k}" for k in range(12)), comments="")
    command = ["sparse-pca", str(table), "-r", "2", "--report", str(report), *options]
    assert main(command) == 0
    assert json.loads(report.read_text())["settings"]["effort"] in (0.5, math.inf, "inf", None)


def test_an_endless_command_needs_a_limit(tmp_path, capsys):
    table = tmp_path / "data.csv"
    np.savetxt(table, A, delimiter=",", header=",".join(f"x{k}" for k in range(12)), comments="")
    assert main(["sparse-pca", str(table), "--effort", "inf"]) == 2
    assert "effort must be finite" in capsys.readouterr().err


@pytest.mark.covering
@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("share", [0.5, 0.9, 1.0, 2.0])
def test_a_search_keeps_its_limit_on_work(name, share):
    """But for the last step of a run; a limit of twice the work changes nothing."""
    problem = SEARCHES[name]()
    free = ob.solve(problem)
    limited = ob.solve(problem, max_work=share * free.work)
    assert limited.work <= 1.25 * share * free.work + 1e-4
    if share == 2.0 and name not in ("box", "mixed", "mixed l0"):
        assert_same(limited, free)


@pytest.mark.parametrize("penalty", [ob.NoPenalty(), ob.L1(0.02), ob.L0(0.005)], ids=repr)
@pytest.mark.parametrize("solver", [None, ob.OBCD(), ob.OBCD(working_set="random")], ids=repr)
@pytest.mark.parametrize("n", [4, 12])
def test_a_unit_is_about_ten_thousand_calls(penalty, solver, n):
    calls = []

    def counted(x: np.ndarray) -> tuple[float, np.ndarray]:
        calls.append(1)
        return away(x)

    problem = ob.StiefelProblem(ob.SmoothFunction(counted, n), penalty, 2)
    result = ob.solve(problem, solver=solver)
    # The first and the last point are evaluated beside the work of a search.
    assert len(calls) <= 1.25e4 * result.work + 100
    assert solver is not None or len(calls) <= 7000


WIDE = ob.SparsePCAProblem(np.random.default_rng(0).standard_normal((60, 120)), 8, ob.L1(0.5))


@pytest.mark.timing
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_choice_of_a_weight_keeps_its_time_limit(rng, n_jobs):
    X = rng.standard_normal((300, 200))
    for limit in (0.3, 1.0):
        # This call imports scikit-learn, before the clock starts.
        chosen = ob.SparsePCACV(5, max_time=limit, random_state=0, n_jobs=n_jobs)
        begun = time.perf_counter()
        chosen.fit(X)
        assert time.perf_counter() - begun <= 1.05 * limit + 0.1
        # Every weight has a score, and the last fit has a result.
        assert np.isfinite(chosen.scores_).all()
        assert chosen.result_.feasibility < 1e-12


@pytest.mark.timing
def test_a_time_limit_counts_from_the_call():
    # 256 MB, of which a solve makes no copy.
    data = np.random.default_rng(0).standard_normal((2000, 16_000))
    problem = ob.SparsePCAProblem(data, 3, ob.L1(2000.0))
    seconds = []
    for _ in range(3):
        begun = time.perf_counter()
        ob.solve(problem, max_time=0.0, n_threads=1)
        seconds.append(time.perf_counter() - begun)
    assert min(seconds) < 0.1, seconds


def test_time_out():
    for solver, limit in ((ob.OBCD(proximal=0.0), 0.1), (None, 0.05)):
        result = ob.solve(WIDE, "random", max_time=limit, tol=0.0, solver=solver)
        assert result.status is ob.Status.MAX_TIME
        # A descent ends when the time left is less than that of one more evaluation.
        assert result.seconds >= 0.9 * limit
        assert result.feasibility < 1e-12
        assert result.objective < result.history["objective"][0]
    none = ob.solve(WIDE, "random", max_time=0.0)
    assert none.status is ob.Status.MAX_TIME
    assert none.feasibility < 1e-12


KINDS = [ob.L1(0.05), ob.L0(0.05), ob.CappedL1(0.05, 0.2), ob.MCP(0.05, 3.0), ob.NonNegative()]


@pytest.mark.timing
@pytest.mark.parametrize("nap", [0.001, 0.003])
@pytest.mark.parametrize("penalty", KINDS, ids=str)
def test_restarts_are_kept_if_they_are_slower_than_their_work_says(rng, penalty, nap):
    """Each evaluation takes longer than thousands of small products: time ends the restarts."""
    n = 30
    B = rng.standard_normal((50, n))
    C = -B.T @ B / 50

    def slow(X: np.ndarray) -> tuple[float, np.ndarray]:
        time.sleep(nap)
        G = C @ X
        return float(np.vdot(X, G)) / 2, G

    problem = ob.StiefelProblem(ob.SmoothFunction(slow, n), penalty, 3)
    result = ob.solve(problem, max_time=2.0, seed=0)
    assert result.search is not None
    free = {"given", "polish", "descent", "spectral", "varimax"}
    restarts = [r for r in result.search.runs if r.heuristic not in free]
    assert restarts
    assert all(result.objective <= r.objective for r in restarts)
