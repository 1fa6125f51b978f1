"""A search is one sequence of jobs, which limits only cut: prefix, replay, ends, threads."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import orthobcd as ob

SIZES = [(2, 1), (3, 3), (6, 2), (17, 4), (40, 5), (90, 12)]
WIDE = [(700, 3), (2500, 2)]
PENALTIES: dict[str, Callable[[float], ob.Penalty]] = {
    "smooth": lambda scale: ob.NoPenalty(),
    "l0": lambda scale: ob.L0(0.1 * scale),
    "l0 dense": lambda scale: ob.L0(0.002 * scale),
    "l1": lambda scale: ob.L1(0.1 * scale),
    "l1 dense": lambda scale: ob.L1(0.002 * scale),
    "X >= 0": lambda scale: ob.NonNegative(),
    "mcp": lambda scale: ob.MCP(0.05 * scale, 3.0),
    "box": lambda scale: ob.Box(-0.6, 0.8),
}
LIMITS: dict[str, Callable[[int, int], ob.Penalty]] = {
    "columns": lambda n, r: ob.Cardinality([max(1, n // (3 * r))] * r),
    "total": lambda n, r: ob.Cardinality(max(r, n // 2)),
    "overlapping": lambda n, r: ob.Cardinality(max(r, 2 * n * r // 3)),
    "nonnegative": lambda n, r: ob.Cardinality(max(r, n // 2)) + ob.NonNegative(),
    "rows": lambda n, r: ob.RowSparse(count=max(r, n // 3)),
}
FORMS = ["stored", "data", "sparse", "linear", "function", "mixed", "rotation"]


def problem(
    form: str, kind: str, n: int, r: int
) -> ob.StiefelProblem | ob.JOrthogonalProblem | None:
    """The problem of a cell; None if there is none."""
    random = np.random.default_rng([n, r, len(kind)])
    A = random.standard_normal((max(3, n // 2), n)) * np.exp(-np.arange(n) / n)
    scale = float(np.max(np.sum(A**2, axis=0)))
    penalty = PENALTIES[kind](scale)
    C = -(A.T @ A)
    if form == "mixed":
        if n == 2 or kind in ("X >= 0", "box") or r == n:
            return None
        signature = np.where(np.arange(n) % 3 == 1, -1, 1)
        return ob.JOrthogonalProblem(ob.Quadratic(-C + np.eye(n)), signature, penalty, r)
    if form == "function":
        smooth: ob.Smooth = ob.SmoothFunction(
            lambda x: (-0.25 * float(np.sum((A @ x) ** 4)), -(A.T @ (A @ x) ** 3)), n, r
        )
    elif form == "linear":
        smooth = ob.Quadratic(C, linear=0.3 * scale * random.standard_normal((n, r)))
    elif form == "data":
        smooth = ob.GramQuadratic(A)
    elif form == "sparse":
        smooth = ob.GramQuadratic(sp.csr_array(np.where(np.abs(A) > 0.5, A, 0.0)))
    else:
        smooth = ob.Quadratic(C)
    if form == "rotation":
        return ob.StiefelProblem(smooth, penalty, n, determinant=1) if n <= 6 else None
    return ob.StiefelProblem(smooth, penalty, r)


CELLS = [
    (form, kind, n, r)
    for form, kind, (n, r) in itertools.product(FORMS, PENALTIES, SIZES)
    if problem(form, kind, n, r) is not None
] + [(form, kind, n, r) for form in ("data", "sparse") for kind in PENALTIES for n, r in WIDE]


def solved(cell: ob.StiefelProblem | ob.JOrthogonalProblem, **limits: Any) -> ob.Result:
    return ob.solve(cell, solver=ob.Auto(), **limits)


def runs(result: ob.Result) -> list[tuple[str, bool, float, float]]:
    assert result.search is not None
    return [(run.heuristic, run.improve, run.work, run.objective) for run in result.search.runs]


@pytest.mark.covering(2)
@pytest.mark.parametrize(("form", "kind", "n", "r"), CELLS)
def test_more_work_goes_on_where_less_ended(form: str, kind: str, n: int, r: int) -> None:
    """The runs of a smaller limit are the first ones of a larger limit, and F is never higher."""
    cell = problem(form, kind, n, r)
    found = [solved(cell, max_work=work, seed=3) for work in (0.0, 1e-3, 4e-3, 0.011, 0.04)]
    for less, more in itertools.pairwise(found):
        assert more.objective <= less.objective
        assert runs(more)[: len(runs(less))] == runs(less)
        assert less.work <= more.work <= 0.04 + 1e-9
    last = found[-1]
    again = solved(cell, max_work=last.work, seed=3, n_threads=2)
    assert (again.x == last.x).all()
    assert (again.objective, again.work) == (last.objective, last.work)


@pytest.mark.covering
@pytest.mark.parametrize(("form", "kind", "n", "r"), CELLS[::5])
@pytest.mark.parametrize("after", [1, 3])
def test_a_stopped_search_is_repeated_by_its_work(
    form: str, kind: str, n: int, r: int, after: int
) -> None:
    """`max_work=result.work` has the bits of a search that a callback or a clock ended."""
    cell = problem(form, kind, n, r)
    count = 0

    def stop(progress: object) -> bool:
        nonlocal count
        count += 1
        return count > after

    for limit in ({"callback": stop, "n_threads": 1 + after % 3}, {"max_time": 0.02 * after}):
        cut = solved(cell, max_work=0.05, seed=1, **limit)
        again = solved(cell, max_work=cut.work, seed=1)
        assert (again.x == cut.x).all(), limit
        assert again.work == cut.work
        assert runs(again) == runs(cut)


@pytest.mark.covering
@pytest.mark.parametrize("kind", LIMITS)
@pytest.mark.parametrize(("n", "r"), [*SIZES, *WIDE])
@pytest.mark.parametrize("form", ["stored", "data", "sparse"])
def test_a_search_under_a_limit_is_a_sequence(form: str, kind: str, n: int, r: int) -> None:
    """Work limits and clocks cut it, among the first points too: prefix and replay."""
    smooth = problem(form, "smooth", n, r)
    assert isinstance(smooth, ob.StiefelProblem)
    cell = ob.StiefelProblem(smooth.smooth, LIMITS[kind](n, r), r)
    before = math.inf
    for work in (0.0, 1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 0.01):
        found = ob.solve(cell, max_work=work, seed=2, n_threads=2)
        assert found.objective <= before
        before = found.objective
    for seconds in (1e-4, 2e-3, 0.01, 0.03, 0.1):
        cut = ob.solve(cell, max_time=seconds, seed=2)
        again = ob.solve(cell, max_work=cut.work, seed=2, n_threads=2)
        assert (again.x == cut.x).all(), seconds
        assert again.work == cut.work


@pytest.mark.parametrize("kind", PENALTIES)
def test_an_endless_search_uses_its_limit(kind: str) -> None:
    """Without an end of its own a search goes on until its limit, unless the optimum is known."""
    cell = problem("data", kind, 40, 5)
    work = 0.06
    result = solved(cell, max_work=work, effort=math.inf)
    if result.status is ob.Status.CONVERGED:
        assert result.search is not None
        assert result.search.profile["optimum"] == pytest.approx(result.objective, rel=1e-9)
    else:
        assert result.status is ob.Status.MAX_WORK
        assert result.objective <= solved(cell, max_work=work / 2, effort=math.inf).objective
