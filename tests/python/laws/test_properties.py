"""Laws that hold for every problem, on examples that hypothesis chooses and shrinks."""

from __future__ import annotations

import itertools
from dataclasses import fields, replace
from typing import Any

import hypothesis
import numpy as np
import pytest

import orthobcd as ob

from .. import reference
from ..promises import outcome
from ..strategies import LAYOUTS, SPARSE_LAYOUTS, Case, cases, layouts

FIXED = hypothesis.settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
"""The same examples in every run."""


@hypothesis.settings(FIXED, max_examples=200)
@hypothesis.given(cases())
def test_a_solve_is_feasible_monotone_and_not_above_its_start(case):
    answer = outcome(lambda: case)
    hypothesis.assume(answer["refused"] is None)
    assert answer["failures"] == []


def made(case: Case) -> Any:
    """The problem of a case, unless its scales are refused."""
    try:
        problem = case.problem()
        ob.solve(problem, solver=ob.OBCD(), max_sweeps=0)
        return problem
    except ValueError:
        hypothesis.reject()


def relaid(part: Any, change: Any) -> Any:
    """The same objective or penalty from arrays of another layout."""
    arrays = {field.name: getattr(part, field.name) for field in fields(part)}
    changed = {k: change(v) for k, v in arrays.items() if getattr(v, "ndim", 0) == 2}
    return replace(part, **changed)


@pytest.mark.slow
@hypothesis.settings(FIXED, max_examples=100)
@hypothesis.given(cases("quadratic", "gram"), layouts())
def test_equal_problems_in_other_layouts_have_equal_results(case, layout):
    problem = made(case)
    sparse = hasattr(getattr(problem.smooth, "A", None), "tocsr")
    change = (SPARSE_LAYOUTS if sparse else LAYOUTS)[layout[sparse]]
    smooth, penalty = relaid(problem.smooth, change), relaid(problem.penalty, LAYOUTS[layout[0]])
    other = ob.StiefelProblem(smooth, penalty, case.r)
    for solver in (ob.OBCD(), None):
        one, two = (ob.solve(p, solver=solver, max_sweeps=4) for p in (problem, other))
        np.testing.assert_array_equal(one.x, two.x)
        assert (one.objective, one.status) == (two.objective, two.status)


@pytest.mark.slow
@hypothesis.settings(FIXED, max_examples=60)
@hypothesis.given(cases("quadratic"))
def test_the_gap_of_a_certificate_is_the_gain_of_a_pair(case):
    problem = made(case)
    hypothesis.assume(np.ndim(getattr(problem.penalty, "lam", 0.0)) == 0)
    start = "partition" if isinstance(problem.penalty, ob.NonNegative) else "random"
    x = ob.solve(problem, start, solver=ob.OBCD(), max_sweeps=case.n % 3).x
    certificate = ob.certify(problem, x)
    kind, lam = reference.kind_of(problem.penalty)
    C, D = problem.smooth.C, problem.smooth.D
    D = np.eye(case.r) if D is None else D
    G = C @ x @ D + (0.0 if problem.smooth.linear is None else problem.smooth.linear)
    size = float(np.abs(C).max() * np.abs(D).max() + np.abs(G).max() + lam) or 1.0

    def gain(pair: tuple[int, int], points: int, own: bool = True) -> float:
        Z, S = x[list(pair)], x[list(pair)] @ D @ x[list(pair)].T
        M = C[np.ix_(pair, pair)] / size
        best, _ = reference.grid_pair(Z, G[list(pair)] / size, M, S, kind, lam / size, points, own)
        return float(reference.penalty_value(kind, lam / size, Z.ravel())) - best

    gap = certificate.block2_gap / size
    assert gap >= 0.0
    # Entries that vanish up to the rounding of XᵀX, but not of their rows, may count or not.
    if gap > 0.0:
        least = gap * (1.0 - 1e-6) - 1e-9
        assert gain(certificate.block2_pair, 4001) <= gap * (1.0 + 1e-6) + 1e-9
        assert gain(certificate.block2_pair, 4001, own=False) >= least
    pairs = list(itertools.combinations(range(case.n), 2))
    for pair in pairs[:: len(pairs) // 6 + 1]:
        assert gain(pair, 181) <= gap + 1e-9
