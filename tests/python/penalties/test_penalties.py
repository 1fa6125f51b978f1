"""Separable penalties: values, sums, exact pairs on both constraints, starts, bad input.

`L0`, `L1`, `MCP`, `SCAD`, `CappedL1`, `Box`, `NonNegative` and `PiecewiseQuadratic`.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import orthobcd as ob

N, R = 9, 3
SIGNATURE = [1, 1, 1, 1, 1, -1, -1, -1, 1]
WEIGHTS = np.random.default_rng(5).uniform(0.1, 1.5, (N, R))
INF = float("inf")

SPREAD = np.kron(np.eye(R), np.ones((3, 1))) / np.sqrt(3.0)
"""Orthonormal, nonnegative, no entry above 0.6."""


def capped(x):
    return 1.2 * np.minimum(np.abs(x), 0.3)


def mcp(x):
    size = np.abs(x)
    return np.where(size <= 0.5, size - size**2, 0.25)


def scad(x):
    size = np.abs(x)
    bend = (2 * 2.5 * 0.2 * size - size**2 - 0.04) / 3.0
    return np.where(size <= 0.2, 0.2 * size, np.where(size <= 0.5, bend, 0.5 * 3.5 * 0.04))


def huber(x):
    return np.where(np.abs(x) <= 0.2, 2.5 * x**2, np.abs(x) - 0.1)


def within(x, lower, upper):
    return np.where((x >= lower) & (x <= upper), 0.0, INF)


PENALTIES = {
    "l0 entrywise": (ob.L0(WEIGHTS), lambda x: WEIGHTS * (x != 0.0)),
    "capped l1": (ob.CappedL1(1.2, 0.3), capped),
    "mcp": (ob.MCP(1.0, 0.5), mcp),
    "scad": (ob.SCAD(0.2, 2.5), scad),
    "box": (ob.Box(-1.0, 0.8), lambda x: within(x, -1.0, 0.8)),
    "huber": (
        ob.PiecewiseQuadratic([-0.2, 0.2], [(-0.1, -1, 0), (0, 0, 5), (-0.1, 1, 0)]),
        huber,
    ),
    "l1 + box": (
        ob.L1(0.5) + ob.Box(-0.9, 1.0),
        lambda x: 0.5 * np.abs(x) + within(x, -0.9, 1.0),
    ),
    "l1 entrywise + l0": (
        ob.L1(WEIGHTS) + ob.L0(0.3),
        lambda x: WEIGHTS * np.abs(x) + 0.3 * (x != 0.0),
    ),
    "l1 + nonnegative": (
        ob.L1(0.8) + ob.NonNegative(),
        lambda x: 0.8 * np.abs(x) + within(x, 0.0, INF),
    ),
    "nonnegative + l0": (
        ob.NonNegative() + ob.L0(0.4),
        lambda x: 0.4 * (x != 0.0) + within(x, 0.0, INF),
    ),
    "mcp + l0 entrywise + box": (
        ob.MCP(1.0, 0.5) + ob.L0(WEIGHTS) + ob.Box(-INF, 1.0),
        lambda x: mcp(x) + WEIGHTS * (x != 0.0) + within(x, -INF, 1.0),
    ),
}


names = pytest.mark.parametrize("name", PENALTIES)


def quadratic(n: int = N) -> ob.Quadratic:
    B = np.random.default_rng(1).standard_normal((n, n))
    return ob.Quadratic(-B @ B.T / n, linear=np.random.default_rng(2).standard_normal((n, R)) / 3)


def value(problem, phi, x) -> float:
    smooth = problem.smooth
    f = 0.5 * np.sum(x * (smooth.C @ x))
    if smooth.linear is not None:
        f += np.sum(smooth.linear * x)
    return float(f + np.sum(phi(x)))


def least_of_pairs(problem, phi, x) -> float:
    """The lowest F over a grid of rotations and reflections of every pair of rows."""
    angles = np.linspace(0.0, 2.0 * np.pi, 121)[1:]
    least = INF
    for i, j in itertools.combinations(range(len(x)), 2):
        for c, s, sign in zip(
            np.tile(np.cos(angles), 2),
            np.tile(np.sin(angles), 2),
            np.repeat([1, -1], 120),
            strict=True,
        ):
            moved = x.copy()
            moved[i], moved[j] = c * x[i] + s * x[j], sign * (c * x[j] - s * x[i])
            least = min(least, value(problem, phi, moved))
    return least


@names
def test_on_the_stiefel_manifold(name):
    penalty, phi = PENALTIES[name]
    problem = ob.StiefelProblem(quadratic(), penalty, R)
    for solver in (ob.OBCD(), ob.OBCD(working_set="tiled", update="gauss-seidel")):
        x0 = SPREAD if name == "box" else None
        result = ob.solve(problem, x0, solver=solver, max_sweeps=300)
        assert np.linalg.norm(result.x.T @ result.x - np.eye(R)) < 1e-12
        assert result.feasibility < 1e-12
        assert np.all(np.diff(result.history["objective"]) <= 0.0)
        assert result.penalty_value == pytest.approx(np.sum(phi(result.x)), rel=1e-12, abs=1e-13)
        assert result.objective == pytest.approx(value(problem, phi, result.x), rel=1e-12)
    assert result.objective <= least_of_pairs(problem, phi, result.x) + 1e-7
    certificate = ob.certify(problem, result.x)
    assert certificate.block2_gap < 1e-7
    assert certificate.penalty_value == pytest.approx(result.penalty_value, abs=1e-13)


@names
def test_with_a_mixed_signature(name):
    penalty, phi = PENALTIES[name]
    C = quadratic().C + 3.0 * np.eye(N)
    problem = ob.JOrthogonalProblem(ob.Quadratic(C), SIGNATURE, penalty, R)
    x0 = None
    if name == "box":
        x0 = SPREAD
    for solver in (ob.JOBCD(), ob.Auto()):
        limits = {"max_sweeps": 50} if isinstance(solver, ob.JOBCD) else {"max_work": 0.05}
        result = ob.solve(problem, x0, solver=solver, **limits)
        assert result.feasibility < 1e-12 * max(1.0, np.linalg.norm(result.x) ** 2)
        assert np.all(np.diff(result.history["objective"]) <= 0.0)
        assert result.objective == pytest.approx(value(problem, phi, result.x), rel=1e-10)


@pytest.mark.parametrize("seed", range(40))
def test_breakpoints_that_coincide_up_to_rounding_are_one(seed):
    """ℓ0 by its own kernel and by that of any pieces, on columns whose slopes nearly agree."""
    rng = np.random.default_rng(seed)
    r = int(rng.integers(1, 6))
    n = 2 + r
    directions = np.append(rng.uniform(0.0, 0.5 * np.pi, 2), 0.0)
    angles = rng.choice(directions, r) + 0.5 * np.pi * rng.integers(4, size=r)
    pair = rng.uniform(0.1, 1.0, r) * np.array([np.cos(angles), np.sin(angles)])
    # Zeros are exact or rounding errors; all entries have errors of a few units in the last place.
    pair[(np.abs(pair) < 1e-15) & (rng.random(pair.shape) < 0.5)] = 0.0
    pair *= 1.0 + rng.integers(-2, 3, pair.shape) * np.finfo(float).eps / 2
    x = np.zeros((n, r))
    x[:2] = pair
    C = np.zeros((n, n))
    C[:2, :2] = 1e-3 * rng.standard_normal((2, 2))
    gaps = []
    for lam in (1.0, np.ones((n, r))):
        problem = ob.StiefelProblem(ob.Quadratic(C + C.T), ob.L0(lam), r)
        gaps.append(ob.certify(problem, x).block2_gap)
    assert gaps[0] == pytest.approx(gaps[1], abs=1e-9)


@pytest.mark.parametrize("tiny", [1e-17, -3e-17, 1e-300])
def test_an_entry_that_is_rounding_does_not_cost(tiny):
    """At a point that rests but for it, whatever its row."""
    for lam in (1.0, np.ones((5, 2))):
        problem = ob.StiefelProblem(ob.Quadratic(-np.diag([5.0, 4.0, 1, 1, 1])), ob.L0(lam), 2)
        for row in range(1, 5):
            x = np.eye(5, 2)
            x[row, 0] = tiny
            assert ob.certify(problem, x).block2_gap == pytest.approx(1.0, abs=1e-12)
            result = ob.solve(problem, x, solver=ob.OBCD())
            assert result.converged
            assert result.n_nonzero == 2


@names
def test_the_search_is_not_worse_than_one_descent(name):
    penalty, phi = PENALTIES[name]
    x0 = None
    if name == "box":
        x0 = SPREAD
    problem = ob.StiefelProblem(quadratic(), penalty, R)
    descent = ob.solve(problem, x0, solver=ob.OBCD(), max_sweeps=300)
    result = ob.solve(problem, descent.x, max_work=0.01)
    assert result.feasibility < 1e-12
    assert result.objective <= descent.objective
    assert result.objective == pytest.approx(value(problem, phi, result.x), rel=1e-10)


@pytest.mark.slow
def test_any_smooth_function():
    target = np.random.default_rng(8).standard_normal((N, R))

    def near(x):
        return float(np.sum((x - target) ** 4)), 4.0 * (x - target) ** 3

    for name, (penalty, phi) in PENALTIES.items():
        x0 = None
        if name == "box":
            x0 = SPREAD
        elif "box" in name:
            x0 = "identity"
        problem = ob.StiefelProblem(ob.SmoothFunction(near, N, R), penalty, R)
        result = ob.solve(problem, x0, max_sweeps=100)
        assert result.feasibility < 1e-12
        assert np.isfinite(phi(result.x)).all()
        assert np.all(np.diff(result.history["objective"]) <= 0.0)


def test_continuation_goes_through_multiples():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, N))
    for penalty in (ob.MCP(2.0, 0.2), ob.SCAD(0.5), ob.CappedL1(4.0, 0.3), ob.L0(3.0 * WEIGHTS)):
        problem = ob.SparsePCAProblem(A, R, penalty)
        result = ob.solve(problem, solver=ob.Continuation(lams=[4.0, 2.0]))
        assert [point.lam for point in result.path] == [4.0, 2.0, 1.0]
        assert result.objective == result.path[-1].objective
        by_default = ob.solve(problem, solver=ob.Continuation())
        assert by_default.path[-1].lam == 1.0
    with pytest.raises(ValueError, match="draws entries to zero"):
        ob.solve(ob.SparsePCAProblem(A, R, ob.Box(-1, 1)), solver=ob.Continuation())


def test_constraints_that_say_nothing_and_the_same_in_other_words():
    x = np.linalg.qr(np.random.default_rng(3).standard_normal((N, R)))[0]
    pieces = ob.PiecewiseQuadratic
    for first, second, point in (
        (ob.L1(0.3), ob.L1(0.3) + ob.Box(-2.0, 2.0), x),
        (ob.L1(0.3), ob.L1(np.full((N, R), 0.1)) + ob.L1(0.2), x),
        (ob.L0(0.3), ob.L0(np.full((N, R), 0.3)), x),
        (ob.L0(0.3), ob.L0(0.1) + ob.L0(np.full((N, R), 0.2)), x),
        (ob.L1(0.3), pieces([0.0], [(0, -0.3, 0), (0, 0.3, 0)]), x),
        (ob.NoPenalty(), pieces([], [(0, 0, 0)]), x),
        (ob.NonNegative(), ob.Box(0.0, INF), SPREAD),
        (ob.NonNegative(), ob.NonNegative() + ob.Box(-1.0, INF), SPREAD),
    ):
        seen = []
        for penalty in (first, second):
            problem = ob.StiefelProblem(quadratic(), penalty, R)
            certificate = ob.certify(problem, point)
            seen.append((certificate.objective, certificate.block2_gap, certificate.criticality))
        assert seen[0] == pytest.approx(seen[1], rel=1e-9), (first, second)


def test_sums():
    h = ob.L1(0.1) + ob.NonNegative() + ob.Box(-1, 1)
    assert isinstance(h, ob.penalties.Sum)
    assert repr(h) == "L1(lam=0.1) + NonNegative() + Box(lower=-1.0, upper=1.0)"
    assert [type(term).__name__ for term in h.terms] == ["L1", "NonNegative", "Box"]
    assert (ob.NoPenalty() + ob.L1(0.1)).lam == 0.1
    assert ob.NoPenalty() + ob.NoPenalty() == ob.NoPenalty()
    assert sum([ob.L0(0.1), ob.L1(0.1)], ob.NoPenalty()).terms[1].lam == 0.1
    assert h.nonnegative
    assert not (ob.L1(0.1) + ob.Box(-1, 1)).nonnegative
    assert ob.CappedL1(1.0, 2.0) == ob.CappedL1(1, 2)
    for wrong in (
        lambda: ob.Cardinality(3) + ob.L1(0.1),
        lambda: ob.L0(0.1) + ob.Cardinality(3),
        lambda: h + ob.Cardinality(3),
        lambda: ob.Cardinality(3) + ob.Cardinality(2),
    ):
        with pytest.raises(TypeError, match="Cardinality adds to NonNegative only"):
            wrong()
    with pytest.raises(TypeError, match="unsupported operand"):
        ob.L1(0.1) + 0.1
    with pytest.raises(ValueError, match="none in common"):
        ob.Box(1, 2) + ob.Box(-1, 0)
    with pytest.raises(TypeError, match="terms must be separable"):
        ob.penalties.Sum(ob.L1(0.1), "l0")


GAP = ob.PiecewiseQuadratic(
    [-0.9, -0.1, 0.2, 0.8], [(INF, 0, 0), (0, 0, 0), (INF, 0, 0), (0, 1, 0), (INF, 0, 0)]
)
"""Allows -0.9 to -0.1, and 0.2 to 0.8 with the penalty x; no entry can be 0."""


@pytest.mark.parametrize("solver", [None, ob.OBCD(), ob.OBCD(update="jacobi")])
@pytest.mark.parametrize(
    ("h", "allowed"),
    [
        (ob.Box(-0.4, 0.9), lambda x: (x >= -0.4) & (x <= 0.9)),
        (ob.L0(0.01) + ob.Box(-0.25, 0.3), lambda x: (x >= -0.25) & (x <= 0.3)),
        (GAP, lambda x: ((x >= -0.9) & (x <= -0.1)) | ((x >= 0.2) & (x <= 0.8))),
    ],
)
def test_a_start_is_moved_into_the_domain(h, allowed, solver):
    """Neither random points nor unit vectors lie in these."""
    problem = ob.StiefelProblem(quadratic(24), h, 3)
    for seed in range(5):
        limits = {"max_work": 1e-3} if solver is None else {"max_sweeps": 2}
        result = ob.solve(problem, solver=solver, seed=seed, **limits)
        assert allowed(result.x).all()
        assert result.feasibility < 1e-13
        assert np.isfinite(result.history["objective"]).all()


@pytest.mark.parametrize("h", [ob.L1(0.05) + ob.Box(-0.4, 0.9), ob.L0(0.01) + ob.Box(-0.3, 0.3)])
def test_a_search_within_a_box_has_more_than_its_start(h):
    """What heuristics return is moved into the box."""
    problem = ob.StiefelProblem(ob.Quadratic(quadratic(24).C), h, 4)
    found = ob.solve(problem, max_work=0.05)
    assert len(found.search.runs) > 3
    assert found.x.min() >= h.terms[1].lower
    assert found.x.max() <= h.terms[1].upper
    path = ob.solve(problem, solver=ob.Continuation(), max_sweeps=20)
    assert path.x.min() >= h.terms[1].lower
    assert path.feasibility < 1e-12


def test_starts():
    bounded = ob.Box(-0.5, 0.5)
    C = quadratic(8).C
    for penalty in (bounded, bounded + ob.L1(0.1)):
        problem = ob.StiefelProblem(ob.Quadratic(C), penalty, 2)
        x0 = np.ones((8, 2)) / np.sqrt(8)
        x0[4:, 1] *= -1.0
        for solver in (None, ob.OBCD()):
            limits = {"max_work": 0.01} if solver is None else {}
            result = ob.solve(problem, x0, solver=solver, **limits)
            assert result.feasibility < 1e-12
            assert np.abs(result.x).max() <= 0.5
            assert result.objective < result.history["objective"][0]
        with pytest.raises(ValueError, match="x0 must be feasible for the penalty"):
            ob.solve(problem, np.eye(8, 2))
    C = np.diag(np.arange(8.0))
    impossible = ob.StiefelProblem(ob.Quadratic(C), ob.Box(-0.3, 0.3), 2)
    for solver in (None, ob.OBCD()):
        with pytest.raises(ValueError, match=r"x0 must be feasible .* pass a start"):
            ob.solve(impossible, solver=solver)
    h = ob.L1(0.1) + ob.NonNegative()
    for problem in (
        ob.StiefelProblem(quadratic(), h, R),
        ob.JOrthogonalProblem(quadratic(), SIGNATURE, h, R),
    ):
        assert ob.solve(problem, max_work=0.02).x.min() >= 0.0
    problem = ob.StiefelProblem(quadratic(), h, R)
    for start in ("random", "spectral", "partition"):
        result = ob.solve(problem, start, solver=ob.OBCD(), max_sweeps=3)
        assert result.x.min() >= 0.0
    with pytest.raises(ValueError, match="x0 must be nonnegative"):
        ob.solve(problem, -np.eye(N, R))


BAD = {
    "capped lam": ("lam", lambda: ob.CappedL1(-1.0, 1.0)),
    "capped threshold": ("threshold", lambda: ob.CappedL1(1.0, 0.0)),
    "capped NaN": ("threshold", lambda: ob.CappedL1(1.0, np.nan)),
    "mcp lam": ("lam", lambda: ob.MCP(0.0, 1.0)),
    "mcp gamma": ("gamma", lambda: ob.MCP(1.0, -1.0)),
    "scad a": ("a", lambda: ob.SCAD(1.0, 2.0)),
    "scad large": ("lam", lambda: ob.SCAD(1e121)),
    "capped product": ("lam", lambda: ob.CappedL1(1e80, 1e60)),
    "mcp product": ("lam", lambda: ob.MCP(1e80, 3.0)),
    "mcp quotient": ("lam", lambda: ob.MCP(1.0, 1e-121)),
    "scad product": ("lam", lambda: ob.SCAD(1e70)),
    "box empty": ("lower", lambda: ob.Box(1.0, 1.0)),
    "box NaN": ("upper", lambda: ob.Box(0.0, np.nan)),
    "breakpoints descend": ("breakpoints", lambda: ob.PiecewiseQuadratic([1, 0], np.zeros((3, 3)))),
    "breakpoints infinite": ("breakpoints", lambda: ob.PiecewiseQuadratic([INF], np.zeros((2, 3)))),
    "pieces too few": ("pieces", lambda: ob.PiecewiseQuadratic([0.0], np.zeros((1, 3)))),
    "pieces shape": ("pieces", lambda: ob.PiecewiseQuadratic([0.0], np.zeros((2, 2)))),
    "pieces infinite": ("pieces", lambda: ob.PiecewiseQuadratic([0.0], [(INF, 0, 0)] * 2)),
    "pieces half infinite": ("pieces", lambda: ob.PiecewiseQuadratic([], [(INF, 1, 0)])),
    "weights shape": ("lam", lambda: ob.StiefelProblem(quadratic(), ob.L0(WEIGHTS[:, :2]), R)),
    "sum shape": (
        "lam",
        lambda: ob.StiefelProblem(quadratic(), ob.MCP(1, 1) + ob.L1(WEIGHTS[:, :2]), R),
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_values_name_the_argument(case):
    argument, make = BAD[case]
    with pytest.raises(ValueError, match=rf"^{argument} "):
        make()


def test_bad_types():
    for wrong in (
        lambda: ob.MCP("large", 1.0),
        lambda: ob.Box(None, 1.0),
        lambda: ob.CappedL1(True, 1.0),
    ):
        with pytest.raises(TypeError, match="must be a real number"):
            wrong()
    with pytest.raises(TypeError, match="penalty must be separable"):
        ob.StiefelProblem(quadratic(), "l1", R)


def test_entrywise_weights(rng):
    """Equal entrywise weights are the scalar weight; a huge one keeps its entry zero."""
    A = rng.standard_normal((20, 10))
    x0 = np.linalg.qr(rng.standard_normal((10, 3)))[0]
    solver = ob.OBCD(working_set="cyclic")
    one = ob.SparsePCAProblem(A, 3, ob.L1(0.7))
    each = ob.SparsePCAProblem(A, 3, ob.L1(np.full((10, 3), 0.7)))
    for x in (x0, ob.solve(one, x0, solver=solver).x, ob.solve(each, x0, solver=solver).x):
        at, same = ob.certify(one, x), ob.certify(each, x)
        assert same.objective == pytest.approx(at.objective, rel=1e-12)
        assert same.block2_gap == pytest.approx(at.block2_gap, rel=1e-9, abs=1e-10)
        assert same.criticality == pytest.approx(at.criticality, rel=1e-9)
    weights = rng.random((10, 3))
    weights[2, 1] = 1e4
    result = ob.solve(ob.SparsePCAProblem(A, 3, ob.L1(weights)), "identity", solver=solver)
    assert result.x[2, 1] == 0.0
    assert result.penalty_value == pytest.approx(float(np.sum(weights * np.abs(result.x))))
