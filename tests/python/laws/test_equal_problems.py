"""One problem in two spellings has one result: the same bits, on a grid of sizes and forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse as scipy_sparse

import orthobcd as ob

SIZES = [(2, 1), (3, 3), (7, 2), (20, 4), (65, 5)]
WORK = 2e-5
"""Work of a search, for every row."""


def moments(n: int, seed: int = 0) -> np.ndarray:
    a = np.random.default_rng(seed).standard_normal((n + 3, n))
    c = a.T @ a
    return -0.5 * (c + c.T)


def assert_same(first: Any, second: Any, solver: Any, **limits: Any) -> None:
    one, other = (ob.solve(given, solver=solver, **limits) for given in (first, second))
    assert np.array_equal(one.x, other.x)
    assert (one.objective, one.status) == (other.objective, other.status)
    assert one.n_iterations == other.n_iterations


def penalties(n: int, r: int, size: float) -> list[tuple[Any, Any]]:
    full = np.full((n, r), size)
    zero, inf = (0.0, 0.0, 0.0), (np.inf, 0.0, 0.0)
    kink = ob.PiecewiseQuadratic([0.0], [(0.0, -size, 0.0), (0.0, size, 0.0)])
    half = ob.L1(size / 2)
    return [
        (ob.L0(size), ob.L0(full)),
        (ob.L1(size), ob.L1(full)),
        (ob.L0(size) + ob.L1(size), ob.L0(full) + ob.L1(full)),
        (ob.L0(size) + ob.NonNegative(), ob.L0(full) + ob.NonNegative()),
        (ob.L0(size), ob.L0(size / 2) + ob.L0(full / 2)),
        (ob.L1(size), half + half),
        (ob.L1(size), kink),
        (ob.L1(size), ob.L1(size) + ob.L0(0.0)),
        (ob.NonNegative(), ob.Box(0.0, np.inf)),
        (ob.NonNegative(), ob.PiecewiseQuadratic([0.0], [inf, zero])),
        (ob.NoPenalty(), ob.Box(-np.inf, np.inf)),
        (ob.NoPenalty(), ob.PiecewiseQuadratic([-0.3, 0.2], [zero, zero, zero])),
        (ob.NoPenalty(), ob.L1(0.0)),
        (ob.NoPenalty(), ob.L0(0.0 * full)),
    ]


@pytest.mark.parametrize(("n", "r"), SIZES)
def test_penalties(n, r):
    C = moments(n)
    smooth = ob.Quadratic(C)
    size = 0.1 * float(np.abs(np.diag(C)).max())
    for first, second in penalties(n, r, size):
        given = [ob.StiefelProblem(smooth, h, r) for h in (first, second)]
        assert_same(*given, ob.OBCD(), max_sweeps=30)
        assert_same(*given, ob.Auto(), max_work=n * WORK)
        x = ob.solve(given[0], max_work=n * WORK).x
        certificates = [ob.certify(one, x) for one in given]
        assert certificates[0].block2_gap == certificates[1].block2_gap
        assert certificates[0].optimum == certificates[1].optimum


@pytest.mark.parametrize(("n", "r"), SIZES)
@pytest.mark.parametrize("penalty", [ob.NoPenalty(), ob.L0(1.0), ob.L1(1.0)], ids=repr)
def test_objectives(n, r, penalty):
    C, L = moments(n), np.random.default_rng(1).standard_normal((n, r))
    zero, eye = np.zeros((n, r)), np.eye(r)
    for first, second in [
        (ob.Quadratic(C), ob.Quadratic(C, D=eye)),
        (ob.Quadratic(C), ob.Quadratic(C, zero)),
        (ob.Quadratic(C), ob.Quadratic(C, -zero, eye)),
        (ob.Quadratic(3.7 * C), ob.Quadratic(C, D=3.7 * eye)),
        (ob.Quadratic(-0.3 * C, L), ob.Quadratic(C, L, -0.3 * eye)),
    ]:
        given = [ob.StiefelProblem(smooth, penalty, r) for smooth in (first, second)]
        assert_same(*given, ob.OBCD(), max_sweeps=30)
        assert_same(*given, ob.OBCD(side="both"), max_sweeps=10)
        assert_same(*given, ob.Auto(), max_work=n * WORK)
    signs = np.where(np.arange(n) % 2 == 0, 1, -1)
    mixed = [ob.JOrthogonalProblem(ob.Quadratic(-C, D=d), signs, penalty, r) for d in (None, eye)]
    assert_same(*mixed, ob.JOBCD(), max_sweeps=5)


@pytest.mark.parametrize("sparse", [False, True])
def test_means_of_zero(sparse, rng):
    data = rng.standard_normal((9, 14))
    if sparse:
        data = scipy_sparse.csc_array(np.where(data > 0.3, data, 0.0))
    for penalty in [ob.NoPenalty(), ob.L0(1.0)]:
        given = [
            ob.StiefelProblem(ob.GramQuadratic(data, -1.0, mean), penalty, 3)
            for mean in (None, np.zeros(14))
        ]
        assert_same(*given, ob.OBCD(), max_sweeps=30)
        assert_same(*given, ob.Auto(), max_work=14 * WORK)


@pytest.mark.parametrize(("n", "r"), SIZES)
def test_limits_that_are_none(n, r):
    C, L = moments(n), np.random.default_rng(1).standard_normal((n, r))
    nothing = [
        ob.Cardinality(n * r),
        ob.Cardinality([n] * r),
        ob.RowSparse(count=n),
        ob.RowSparse(0.0),
    ]
    for smooth in [ob.Quadratic(C), ob.Quadratic(C, L)]:
        free = ob.StiefelProblem(smooth, ob.NoPenalty(), r)
        for limit in nothing:
            limited = ob.StiefelProblem(smooth, limit, r)
            assert_same(free, limited, None, max_work=n * WORK)
            x = ob.solve(limited, max_work=n * WORK).x
            assert ob.certify(limited, x).optimum == ob.certify(free, x).optimum
    positive = ob.StiefelProblem(ob.Quadratic(C), ob.NonNegative(), r)
    limited = ob.StiefelProblem(ob.Quadratic(C), ob.Cardinality(n * r, nonnegative=True), r)
    assert_same(positive, limited, None, max_work=n * WORK)
    optimum = 0.5 * float(np.linalg.eigvalsh(C)[:r].sum())
    for limit in nothing:
        result = ob.solve(ob.StiefelProblem(ob.Quadratic(C), limit, r))
        assert result.converged
        assert abs(result.objective - optimum) <= 1e-14 * n * abs(optimum)


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize(("n", "r"), [(4, 2), (7, 3), (20, 4), (65, 5)])
def test_limits_in_another_order(n, r, nonnegative, rng):
    """Columns that differ in their limits alone can be exchanged."""
    smooth = ob.Quadratic(moments(n))
    for factor in (0.3, 1.0, 2.0):
        counts = np.array([max(1, int(factor * n / 2.0 ** (t + 1))) for t in range(r)]).clip(1, n)
        points, values = [], []
        for order in (np.arange(r), np.arange(r)[::-1], rng.permutation(r)):
            given = counts[order]
            limit = ob.Cardinality(given.tolist(), nonnegative=nonnegative)
            result = ob.solve(ob.StiefelProblem(smooth, limit, r), max_work=n * WORK)
            assert ((result.x != 0).sum(0) <= given).all()
            points.append(result.x[:, np.argsort(-given, kind="stable")])
            values.append(result.objective)
        assert all(np.array_equal(points[0], point) for point in points)
        assert np.ptp(values) <= 1e-13 * abs(values[0])


def test_limits_of_columns_that_differ(rng):
    """With weights, a linear term or given zeros, a limit belongs to its column."""
    n, r = 12, 3
    C = moments(n)
    limit = ob.Cardinality([1, 2, 5])
    linear = ob.Quadratic(C, rng.standard_normal((n, r)))
    weighted = ob.Quadratic(C, D=np.diag([1.0, 2.0, 3.0]))
    zeros = ob.Cardinality([1, 2, 5], exclude=[(), (), (0,)])
    plain = ob.Quadratic(C)
    for smooth, given in [(linear, limit), (weighted, limit), (plain, zeros), (plain, limit)]:
        x = ob.solve(ob.StiefelProblem(smooth, given, r), max_work=n * WORK).x
        assert ((x != 0).sum(0) <= [1, 2, 5]).all()
        assert given is limit or x[0, 2] == 0


def test_limits_that_are_some(rng):
    """One entry or row fewer, or an excluded row, is a limit."""
    C, (n, r) = moments(7), (7, 2)
    C += 0.1 * rng.standard_normal() * np.ones((n, n))
    for limit in [
        ob.Cardinality(n * r - 1),
        ob.Cardinality([n, n - 1]),
        ob.Cardinality(n * r, exclude=[3]),
        ob.RowSparse(count=n - 1),
        ob.RowSparse(1e-9),
    ]:
        x = ob.solve(ob.StiefelProblem(ob.Quadratic(C), limit, r), max_work=n * WORK).x
        full = np.count_nonzero(x) == n * r
        assert full == (isinstance(limit, ob.RowSparse) and limit.count is None)


def test_shapes_are_still_checked():
    smooth = ob.Quadratic(moments(5), D=np.eye(2))
    with pytest.raises(ValueError, match="n_components must be 2"):
        ob.StiefelProblem(smooth, ob.NoPenalty(), 3)
    with pytest.raises(ValueError, match=r"lam must be a number or have shape \(5, 2\)"):
        ob.StiefelProblem(smooth, ob.L0(np.ones((4, 2))), 2)
    for other in [ob.Quadratic(moments(5), np.zeros((5, 2))), smooth]:
        problem = ob.StiefelProblem(other, ob.L0(np.ones((5, 2))), 2)
        assert np.isfinite(ob.certify(problem, np.eye(5, 2), bound=True).lower_bound)
