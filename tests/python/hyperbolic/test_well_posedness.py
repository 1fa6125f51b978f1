"""`well_posedness` and `WellPosedness`: whether a minimum exists, and solves without one."""

import numpy as np
import pytest

import orthobcd as ob
from orthobcd.hyperbolic import well_posedness
from orthobcd.hyperbolic.posedness import decided

from ..reference import signs


def test_well_posedness():
    j = signs(4, 2)
    assert well_posedness(np.eye(4), j).attained
    # The kernel of diag(1, 1, 1, 0) is definite, that of diag(1, 0, 0, 1) is not singular either;
    # (1, 0, 1, 0) is lightlike.
    assert well_posedness(np.diag([1.0, 1.0, 1.0, 0.0]), j).attained
    assert well_posedness(np.diag([1.0, 0.0, 0.0, 1.0]), j).attained
    v = np.array([1.0, 0.0, 1.0, 0.0])
    posed = well_posedness(2.0 * np.eye(4) - np.outer(v, v), j)
    assert posed.finite
    assert not posed.attained
    assert well_posedness(2.0 * np.eye(4) - np.outer(v, v) + posed.ridge * np.eye(4), j).attained
    # The matrix is indefinite, but M − λJ is positive semidefinite for some λ.
    assert well_posedness(np.diag([3.0, 3.0, -1.0, -1.0]), j).finite
    never = well_posedness(np.diag([-1.0, 1.0, -1.0, 1.0]), j)
    assert not never.finite
    assert well_posedness(np.diag([-1.0, 1.0, -1.0, 1.0]) + never.ridge * np.eye(4), j).attained


@pytest.mark.parametrize("side", ["rows", "columns", "both"])
def test_an_infimum_that_is_not_attained_is_said(side):
    # F → 0 along the boosts.
    problem = ob.HyperbolicEigenvalueProblem(np.ones((1, 2)), [1, -1])
    result = ob.solve(problem, solver=ob.JOBCD(side=side))
    assert result.status is ob.Status.DIVERGED
    assert not result.hyperbolic.well_posedness.attained
    assert result.history["objective"][0] == 2.0
    assert 0.0 < result.objective < 1e-6
    assert result.feasibility <= 1e-12 * np.sum(result.x**2)
    assert ob.certify(problem, np.eye(2)).block2_gap == pytest.approx(2.0)


def test_an_infimum_of_minus_infinity_has_one_status():
    """Whatever the class of the problem."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 7))
        j = signs(n, 2)
        A = rng.standard_normal((3, n))
        ridge = -np.linalg.eigvalsh(A.T @ A)[-1] - 0.1
        eigen = ob.HyperbolicEigenvalueProblem(A, j, ridge=ridge)
        assert not well_posedness(eigen.matrix, j).finite
        moments = j[:, None] * eigen.matrix * j
        for problem in (
            eigen,
            ob.JOrthogonalProblem(eigen.smooth, j),
            ob.HyperbolicEigenvalueProblem(A, j, sense="max"),
            ob.hyperbolic.HyperbolicPCAProblem(moments, j, 1),
        ):
            for side in ("rows", "columns", "both"):
                result = ob.solve(problem, "random", solver=ob.JOBCD(side=side), seed=seed)
                assert result.status is ob.Status.UNBOUNDED
                assert result.objective <= result.history["objective"][0]
    nothing = ob.solve(ob.hyperbolic.HyperbolicPCAProblem(-np.eye(3), [1, 1, -1], 2))
    assert nothing.objective == 0.0


@pytest.mark.parametrize("diagonal", [(2, 1, 1), (1, 1, 0), (1, -1, 2), (1, 2, -1), (0, -1, 2)])
def test_well_posedness_takes_the_decompositions_that_are_allowed(diagonal):
    """None if one of them is refused; a positive definite matrix needs none."""
    M, signs = np.diag(np.array(diagonal, dtype=float)), np.array([1.0, 1.0, -1.0])

    def decide(most: float) -> tuple[ob.hyperbolic.WellPosedness | None, int]:
        works: list[float] = []

        def allowed(work: float) -> bool:
            works.append(work)
            return len(works) <= most

        return decided(M, signs, allowed), len(works)

    posed, count = decide(np.inf)
    assert posed == well_posedness(M, signs)
    assert (count == 0) == (min(diagonal) > 0)
    assert decide(count)[0] == posed
    for most in sorted({0, count // 2, count - 1} - {-1, count}):
        assert decide(most) == (None, most + 1)
