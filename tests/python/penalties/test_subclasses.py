"""Subclasses of penalties (`Separable`), objectives, problems and solvers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import orthobcd as ob

from ..estimators.test_penalty import PENALTIES, data

SIGNS = [1, 1, 1, -1]


def subclass(thing: type) -> type:
    return type(f"My{thing.__name__}", (thing,), {})


def like(made):
    """The same value of a subclass."""
    own = subclass(type(made))
    other = own.__new__(own)
    vars(other).update(vars(made))
    return other


@pytest.mark.parametrize("kind", PENALTIES)
def test_a_subclass_of_a_penalty_is_that_penalty(kind):
    X, made = data(), PENALTIES[kind]()
    one, other = (
        ob.solve(ob.SparsePCAProblem(X, 3, penalty), max_work=0.01)
        for penalty in (made, like(made))
    )
    np.testing.assert_array_equal(one.x, other.x)
    assert one.objective == other.objective


def test_a_subclass_may_compute_its_fields_and_have_others():
    class Share(ob.L1):
        def __init__(self, share):
            super().__init__(10.0 * share)
            object.__setattr__(self, "share", share)

    @dataclass(frozen=True, repr=False)
    class Named(ob.MCP):
        name: str = "ours"

    class Hinge(ob.Separable):
        """A penalty of its own, by pieces."""

        breakpoints = (0.0,)
        pieces = ((0.0, -2.0, 0.0), (0.0, 0.5, 0.0))

    X = data()
    for mine, same in (
        (Share(0.3), ob.L1(3.0)),
        (Named(3, 2), ob.MCP(3.0, 2.0)),
        (Hinge(), ob.PiecewiseQuadratic(Hinge.breakpoints, Hinge.pieces)),
        (Share(0.3) + Hinge(), ob.L1(3.0) + Hinge()),
    ):
        x = np.linalg.qr(np.linspace(-1.0, 1.0, 8 * 3).reshape(8, 3) ** 3 + np.eye(8, 3))[0]
        first, second = (ob.certify(ob.SparsePCAProblem(X, 3, h), x) for h in (mine, same))
        assert first.penalty_value == second.penalty_value > 0.0
        one, other = (ob.SparsePCA(2, penalty=h, random_state=0).fit(X) for h in (mine, same))
        np.testing.assert_array_equal(one.components_, other.components_)
    assert Named(3, 2).name == "ours"


class Empty(ob.Separable):
    """A penalty without pieces."""


class Falling(ob.Separable):
    """A penalty whose breakpoints fall."""

    breakpoints = (1.0, 0.0)
    pieces = ((0.0, 0.0, 0.0),) * 3


@pytest.mark.parametrize(
    ("penalty", "error", "match"),
    [
        (Empty, TypeError, "Empty must have breakpoints and pieces"),
        (Falling, ValueError, "breakpoints must"),
        (lambda: ob.L1(1.0) + Empty(), TypeError, "Empty must have breakpoints and pieces"),
        (lambda: 3.0, TypeError, "penalty"),
    ],
)
@pytest.mark.parametrize(
    "door",
    [
        lambda h: ob.StiefelProblem(ob.Quadratic(np.eye(4)), h, 2),
        lambda h: ob.StiefelProblem(ob.GramQuadratic(np.eye(4)), h, 2),
        lambda h: ob.SparsePCAProblem(data(), 2, h),
        lambda h: ob.SparsePCAProblem(data(), 2, ob.L0(1.0)).with_penalty(h),
        lambda h: ob.JOrthogonalProblem(ob.Quadratic(np.eye(4)), SIGNS, h),
        lambda h: ob.SparsePCA(2, penalty=h).fit(data()),
    ],
)
def test_every_door_refuses_a_penalty_that_cannot_be_read(door, penalty, error, match):
    with pytest.raises(error, match=match):
        door(penalty())


@pytest.mark.parametrize(
    "made",
    [
        lambda C: ob.StiefelProblem(like(ob.Quadratic(C)), ob.L1(0.1), 2),
        lambda C: ob.StiefelProblem(like(ob.GramQuadratic(C)), ob.L1(0.1), 2),
        lambda C: ob.StiefelProblem(
            like(ob.SmoothFunction(lambda x: (float(np.sum(x * (C @ x))), 2.0 * C @ x), 4, 2)),
            ob.NoPenalty(),
            2,
        ),
        lambda C: like(ob.StiefelProblem(ob.Quadratic(C), ob.L0(0.1), 2)),
        lambda C: like(ob.SparsePCAProblem(C, 2, ob.L0(0.1))),
        lambda C: like(ob.NonnegativePCAProblem(C, 2)),
        lambda C: like(ob.HyperbolicEigenvalueProblem(C, SIGNS)),
        lambda C: like(ob.JOrthogonalProblem(like(ob.Quadratic(C)), SIGNS)),
    ],
)
def test_subclasses_of_objectives_and_problems_work(made):
    C = np.random.default_rng(1).standard_normal((4, 4))
    result = ob.solve(made(C @ C.T), max_work=0.01)
    assert np.isfinite(result.objective)
    assert result.feasibility < 1e-8


@pytest.mark.parametrize("solver", [ob.OBCD(), ob.Auto(), ob.Continuation()])
def test_subclasses_of_solvers_work(solver):
    problem = ob.SparsePCAProblem(data(), 2, ob.L1(3.0))
    one, other = (ob.solve(problem, solver=s, max_work=0.01) for s in (solver, like(solver)))
    np.testing.assert_array_equal(one.x, other.x)
