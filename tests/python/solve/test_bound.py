"""Lower bounds against enumeration of the supports, and checks of the arguments of `certify`."""

from __future__ import annotations

import importlib.util
import itertools
import signal
import sys
import threading
import time

import numpy as np
import pytest

import orthobcd as ob

from ..conftest import ROOT

SCRIPT = ROOT / "benchmarks" / "scripts" / "bounds_cases.py"
spec = importlib.util.spec_from_file_location("bounds_cases", SCRIPT)
cases = importlib.util.module_from_spec(spec)
sys.modules["bounds_cases"] = cases
spec.loader.exec_module(cases)

ROUNDING = 1e-12
"""Largest excess of a bound over a feasible point's objective, relative to the objective."""


def ky_fan(a, r):
    return np.linalg.eigvalsh(a)[-r:].sum()


def sparse_maximum(b, k):
    """max uᵀBu over unit vectors with k nonzeros, by enumeration."""
    supports = itertools.combinations(range(len(b)), k)
    return max(np.linalg.eigvalsh(b[np.ix_(s, s)])[-1] for s in supports)


def columns_problem(seed=0, n=6, counts=(2, 3)):
    A = np.random.default_rng(seed).standard_normal((n, n))
    return ob.StiefelProblem(ob.Quadratic(-(A @ A.T)), ob.Cardinality(counts), len(counts))


def some_point(problem):
    return np.eye(*problem.shape)


@pytest.mark.parametrize("seed", range(120))
def test_no_feasible_point_is_below(seed):
    case = cases.make(seed, most_rows=7)
    certificate = ob.certify(case.problem, case.x, bound=True, max_time=0.1)
    size = max(1.0, abs(case.objective))
    assert certificate.objective == pytest.approx(case.objective, rel=1e-9, abs=1e-300)
    assert certificate.lower_bound <= case.objective + ROUNDING * size
    if case.exact and not isinstance(case.problem.penalty, ob.L0):
        assert certificate.gap <= 1e-5


@pytest.mark.parametrize("seed", range(6))
def test_any_multiplier_bounds(seed):
    case = cases.make(6 * seed + 1, most_rows=7)
    problem, counts = case.problem, case.problem.penalty.count
    C, r = -problem.smooth.C, problem.n_components
    bound = ob.certify(problem, case.x, bound=True, max_time=0.05).bound
    rng = np.random.default_rng(seed)
    for size in (0.0, 1e-9, 1e-3, 0.3, 10.0):
        noise = rng.standard_normal(C.shape) * size * np.abs(C).max()
        multiplier = bound.multiplier + noise + noise.T
        least = sum(sparse_maximum(C - multiplier, k) for k in counts)
        value = -0.5 * (ky_fan(multiplier, r) + least)
        assert value <= case.objective + ROUNDING * max(1.0, abs(case.objective))
        if size == 0.0 and bound.method == "lagrangian":
            assert value >= bound.value - 1e-9 * abs(bound.value)


def test_the_relaxation_can_be_checked_by_hand():
    A = np.random.default_rng(3).standard_normal((30, 20))
    problem = ob.SparsePCAProblem(A, 3, ob.L0(2.0))
    found = ob.certify(problem, some_point(problem), bound=True).bound
    assert found.method == "fantope"
    C = A.T @ A
    assert np.abs(C - found.multiplier).max() <= 4.0 * (1 + 1e-12)
    value = -0.5 * ky_fan(found.multiplier, 3)
    assert value - 1e-6 * abs(value) <= found.value <= value * (1 - 1e-15)


@pytest.mark.parametrize("count", [4, 6, (2, 2), (3, 2)])
def test_proved_optimal_by_branch_and_bound(count):
    """Disjoint strong blocks with weak couplings: the best supports are known."""
    rng = np.random.default_rng(1)
    C = 0.01 * rng.standard_normal((10, 10))
    C = C + C.T
    for block in (range(3), range(4, 7)):
        C[np.ix_(block, block)] += 1.0
    points = cases.disjoint(C, 2, [10, 10] if isinstance(count, int) else list(count), signs=True)
    total = count if isinstance(count, int) else sum(count)
    best = max(
        (x for x in points if np.count_nonzero(x) <= total), key=lambda x: np.sum(x * (C @ x))
    )
    problem = ob.StiefelProblem(ob.Quadratic(-C), ob.Cardinality(count), 2)
    if not isinstance(count, int):
        best = best[:, np.argsort(-np.count_nonzero(best, axis=0), kind="stable")]
    certificate = ob.certify(problem, best, bound=True)
    assert -1e-12 <= certificate.gap <= 1.01e-6


@pytest.mark.long
def test_pitprops_are_proved_optimal(data_dir):
    R = np.load(data_dir / "pitprops.npz")["R"]
    x = np.zeros((13, 2))
    for t, rows in enumerate(([0, 1, 7, 8, 9], [3, 4, 5, 6, 12])):
        x[:, t] = cases.leading(R, rows)[1]
    problem = ob.StiefelProblem(ob.Quadratic(-R), ob.Cardinality([5, 5]), 2)
    certificate = ob.certify(problem, x, bound=True, max_time=60)
    assert certificate.gap <= 1.01e-6
    assert certificate.bound_method == "branch-and-bound"


@pytest.mark.slow
def test_history_rises_and_ends_at_the_bound():
    problem = columns_problem(n=5, counts=(2, 2))
    found = ob.certify(problem, some_point(problem), bound=True).bound
    assert (np.diff(found.history["bound"]) > 0).all()
    assert (np.diff(found.history["seconds"]) >= 0).all()
    assert found.history["bound"][-1] == found.value


@pytest.mark.slow
def test_same_bits_for_any_number_of_threads():
    problem = columns_problem(n=6, counts=(2, 2))
    one, two = (
        ob.certify(problem, some_point(problem), bound=True, n_threads=k).bound for k in (1, 2)
    )
    assert one.value == two.value
    assert one.n_nodes == two.n_nodes
    assert np.array_equal(one.multiplier, two.multiplier)


def scaled(problem, factor, shift=0.0):
    """F times a factor, with a multiple of the identity added to C."""
    C = factor * (problem.smooth.C + shift * np.eye(len(problem.smooth.C)))
    h = problem.penalty
    if isinstance(h, (ob.L0, ob.L1)) or (isinstance(h, ob.RowSparse) and h.lam is not None):
        h = type(h)(factor * h.lam)
    return ob.StiefelProblem(ob.Quadratic(C), h, problem.n_components)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_a_gap_has_no_scale(seed):
    case = cases.make(seed, most_rows=5)
    plain = ob.certify(case.problem, case.x, bound=True, gap_tol=3e-3)
    assert plain.gap == (plain.objective - plain.lower_bound) / plain.magnitude
    for exponent in (-180, -40, 40, 180):
        problem = scaled(case.problem, 2.0**exponent)
        other = ob.certify(problem, case.x, bound=True, gap_tol=3e-3)
        assert other.gap == plain.gap
        assert other.lower_bound == 2.0**exponent * plain.lower_bound
        assert other.bound.n_nodes == plain.bound.n_nodes


@pytest.mark.parametrize(
    "penalty", [ob.L0(0.5), ob.NonNegative(), ob.Cardinality(5), ob.RowSparse(0.3)]
)
def test_a_proof_has_no_scale(penalty):
    """A point is not proved by F being small."""
    plain = ob.StiefelProblem(columns_problem().smooth, penalty, 2)
    best = ob.solve(plain, max_work=0.1).objective
    for exponent in (-60, 0, 60):
        problem = scaled(plain, 2.0**exponent)
        result = ob.solve(problem, gap_tol=0.05, max_work=0.1)
        if result.status is ob.Status.PROVED:
            assert result.gap <= 0.05
        lower = result.objective - 0.05 * ob.certify(problem, result.x).magnitude
        assert (result.status is ob.Status.PROVED) == (result.lower_bound >= lower)
        assert result.lower_bound <= 2.0**exponent * best * (1 - ROUNDING)


@pytest.mark.slow
def test_a_gap_does_not_change_with_a_multiple_of_the_identity():
    problem = columns_problem(n=5, counts=(2, 2))
    x = some_point(problem)
    shifted = (scaled(problem, 1.0, shift) for shift in (-3.0, 1e3))
    plain, *others = (ob.certify(p, x, bound=True).gap for p in (problem, *shifted))
    np.testing.assert_allclose(others, plain, rtol=1e-5)


def test_a_constant_objective_is_proved():
    """Square X: F is the same everywhere, and its magnitude is rounding."""
    for seed in range(10):
        A = np.random.default_rng(seed).standard_normal((5, 5))
        problem = ob.StiefelProblem(ob.Quadratic(A + A.T), ob.NoPenalty(), 5)
        assert abs(ob.certify(problem, np.eye(5), bound=True).gap) <= 1e-6


def nonnegative_optimum(C, counts):
    """Nonnegative columns have disjoint supports, and each is an eigenvector of its block."""
    n = len(C)

    def single(rows):
        values, vectors = np.linalg.eigh(C[np.ix_(rows, rows)])
        same = [v for v, u in zip(values, vectors.T, strict=True) if (u > 0).all() or (u < 0).all()]
        return max(same, default=-np.inf)

    value = {
        s: single(list(s)) for k in range(1, n + 1) for s in itertools.combinations(range(n), k)
    }

    def best(rest, counts, total):
        if not counts:
            return 0.0
        allowed = (s for s in value if len(s) <= min(counts[0], total) and set(s) <= rest)
        later = len(counts) - 1
        return max(
            (
                value[s] + best(rest - set(s), counts[1:], total - len(s))
                for s in allowed
                if total - len(s) >= later and len(rest) - len(s) >= later
            ),
            default=-np.inf,
        )

    limits = [n] * 2 if isinstance(counts, int) else list(counts)
    return -0.5 * best(frozenset(range(n)), limits, counts if isinstance(counts, int) else n)


@pytest.mark.parametrize("seed", range(12))
def test_a_bound_sees_that_entries_are_nonnegative(seed):
    rng = np.random.default_rng(seed)
    n, counts = 5, [(2, 3), 4, (3, 3), 5][seed % 4]
    A = rng.standard_normal((n, n))
    C = A @ A.T if seed % 3 else A + A.T
    if seed % 2:
        # Entries of C between the two groups are negative: mixed signs would gain, X ≥ 0 does not.
        C = np.abs(C) * np.where(np.add.outer(np.arange(n) % 2, np.arange(n) % 2) == 1, -1.0, 1.0)
    optimum = nonnegative_optimum(C, counts)
    few = ob.Cardinality(counts)
    problems = [ob.StiefelProblem(ob.Quadratic(-C), h, 2) for h in (few + ob.NonNegative(), few)]
    x = ob.solve(problems[0], max_work=0.05).x
    signed, free = (ob.certify(problem, x, bound=True) for problem in problems)
    size = np.abs(C).max()
    assert signed.lower_bound <= optimum + ROUNDING * size
    assert signed.lower_bound >= free.lower_bound - 1e-6 * size
    if seed % 2:
        # The bound from C⁺ is tight without mixed signs: the found point is proved optimal.
        assert signed.gap <= 1e-4 < free.gap
        assert signed.objective == pytest.approx(optimum, rel=1e-6)
    proved_here = ob.solve(problems[0], gap_tol=1e-4, max_work=0.3)
    assert proved_here.lower_bound <= optimum + ROUNDING * size
    assert (proved_here.status is ob.Status.PROVED) == (proved_here.gap <= 1e-4)


@pytest.mark.slow
def test_a_gap_that_is_small_enough_ends_the_search():
    problem = columns_problem(n=5, counts=(2, 2))
    loose = ob.certify(problem, some_point(problem), bound=True, gap_tol=1e3).bound
    assert len(loose.history["bound"]) <= 2
    assert loose.value <= ob.certify(problem, some_point(problem), bound=True).lower_bound


@pytest.mark.parametrize("how", ["max_time", "Ctrl-C"])
def test_a_limit_leaves_a_bound(how):
    A = np.random.default_rng(0).standard_normal((60, 60))
    problem = ob.StiefelProblem(ob.Quadratic(-A @ A.T), ob.Cardinality([10, 10]), 2)
    timer = threading.Timer(1.0, signal.raise_signal, [signal.SIGINT])
    if how == "Ctrl-C":
        timer.start()
    start, most = time.perf_counter(), 0.0 if how == "max_time" else 300
    found = ob.certify(problem, some_point(problem), bound=True, max_time=most)
    assert time.perf_counter() - start < (30 if how == "max_time" else 250)
    assert np.isfinite(found.lower_bound)
    if how == "Ctrl-C":
        timer.join()


def proved(problem, **how):
    result = ob.solve(problem, seed=1, **how)
    size = abs(result.objective)
    certificate = ob.certify(problem, result.x, bound=True, max_time=0.1)
    assert certificate.objective == pytest.approx(result.objective, abs=1e-9 * size)
    assert result.gap == pytest.approx(
        (result.objective - result.lower_bound) / certificate.magnitude
    )
    assert certificate.lower_bound <= result.objective + ROUNDING * size
    assert result.lower_bound <= result.objective + ROUNDING * size
    assert (np.diff(result.history["objective"]) <= 0).all()
    assert (np.diff(result.history["seconds"]) >= 0).all()
    return result


@pytest.mark.slow
@pytest.mark.parametrize(
    ("penalty", "gap_tol"),
    [
        (ob.Cardinality([2, 3]), 1e-6),
        (ob.Cardinality(5), 1e-4),
        (ob.RowSparse(count=4), 1e-6),
        (ob.RowSparse(0.3), 1e-6),
        (ob.L0(0.5), 0.3),
        (ob.NoPenalty(), 1e-9),
    ],
)
def test_a_solve_ends_when_its_point_is_proved(penalty, gap_tol):
    problem = ob.StiefelProblem(columns_problem().smooth, penalty, 2)
    for limit in ({"max_work": 1.0}, {"max_time": 60.0}, {}):
        result = proved(problem, gap_tol=gap_tol, **limit)
        assert result.status is ob.Status.PROVED
        assert result.gap <= gap_tol
        assert result.seconds < 30
    assert ob.solve(problem, max_work=0.01).gap is None


@pytest.mark.slow
def test_what_is_not_proved_says_so(tmp_path):
    problem = columns_problem(n=30, counts=(8, 8))
    result = proved(problem, gap_tol=0.0, max_work=0.2)
    assert result.status is ob.Status.MAX_WORK
    assert result.gap > 0
    assert result.work < 1.0
    result.save(tmp_path / "result.npz")
    read = ob.Result.load(tmp_path / "result.npz")
    assert (read.lower_bound, read.bound_method) == (result.lower_bound, result.bound_method)
    assert np.array_equal(read.features_excluded, result.features_excluded)
    assert proved(problem, gap_tol=0.0, max_time=0.3).status is ob.Status.MAX_TIME
    aimed = proved(problem, gap_tol=0.0, max_work=1.0, target=result.objective)
    assert aimed.status is ob.Status.TARGET
    stopped = proved(problem, gap_tol=0.0, max_work=50.0, callback=lambda progress: True)
    assert stopped.status is ob.Status.INTERRUPTED
    begun = ob.solve(problem, result.x, gap_tol=0.0, max_work=0.01)
    assert begun.objective <= result.objective + ROUNDING * abs(result.objective)


@pytest.mark.slow
def test_a_proof_by_counted_work_is_the_same_on_any_number_of_threads():
    problem = columns_problem(n=12, counts=(4, 4))
    one, two = (ob.solve(problem, gap_tol=1e-5, max_work=0.1, n_threads=k, seed=3) for k in (1, 2))
    assert np.array_equal(one.x, two.x)
    assert (one.lower_bound, one.status, one.work) == (two.lower_bound, two.status, two.work)
    assert np.array_equal(one.features_excluded, two.features_excluded)


@pytest.mark.slow
def test_features_left_out_are_in_no_point_as_good():
    """A strong block and weak rows: what uses one of those is below the best on the block."""
    left_out = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        C = 0.3 * rng.standard_normal((9, 9))
        C = C + C.T
        C[:5, :5] += 1.0
        problem = ob.StiefelProblem(ob.Quadratic(-C), ob.Cardinality([3, 2]), 2)
        result = ob.solve(problem, max_work=0.01)
        found = ob.certify(problem, result.x, bound=True, gap_tol=1e-3).bound
        value = -2.0 * result.objective
        top = {
            s: np.linalg.eigvalsh(C[np.ix_(s, s)])[-1]
            for k in problem.penalty.count
            for s in itertools.combinations(range(9), k)
        }
        apart = [
            (a, b)
            for a, b in itertools.product(top, repeat=2)
            if (len(a), len(b)) == problem.penalty.count and not {*a} & {*b}
        ]
        for row in found.features_excluded:
            left_out += 1
            assert not result.x[row].any()
            assert max(top[a] + top[b] for a, b in apart if row in a + b) < value
    assert left_out > 0


@pytest.mark.parametrize(
    ("penalty", "name"),
    [
        *((ob.L0(np.arange(1.0, 15.0).reshape(7, 2)), "weighted L0"), (ob.MCP(0.1, 3.0), "MCP")),
        *((ob.SCAD(0.1, 3.0), "SCAD"), (ob.Box(-1.0, 1.0), "Box")),
    ],
)
def test_penalties_without_a_bound_are_named(penalty, name):
    problem = ob.StiefelProblem(ob.Quadratic(-np.eye(7)), penalty, 2)
    assert ob.certify(problem, np.eye(7)[:, :2]).bound is None
    with pytest.raises(TypeError, match=f"for a penalty other than .* got a {name}$"):
        ob.certify(problem, np.eye(7)[:, :2], bound=True)


def test_the_certificate_of_a_stranger():
    problem = columns_problem(n=7, counts=(3, 3))
    C = -problem.smooth.C
    thresholded = np.linalg.eigh(C)[1][:, -2:]
    for t in range(2):
        thresholded[np.argsort(np.abs(thresholded[:, t]))[:-3], t] = 0.0
    with pytest.raises(ValueError, match="x must be feasible"):
        ob.certify(problem, thresholded / np.linalg.norm(thresholded, axis=0), bound=True)
    with pytest.raises(ValueError, match="x must be feasible"):
        ob.certify(problem, np.linalg.eigh(C)[1][:, -2:], bound=True)
    plain = ob.certify(problem, np.linalg.eigh(C)[1][:, -2:])
    assert plain.objective == np.inf
    assert np.isnan(plain.gap)
    # Each row keeps only its larger entry: columns with disjoint supports are orthogonal.
    apart = np.where(np.abs(thresholded) < np.abs(thresholded[:, ::-1]), 0.0, thresholded)
    repaired = ob.certify(problem, apart / np.linalg.norm(apart, axis=0), bound=True, max_time=0.3)
    assert repaired.feasibility < 1e-12
    assert 0 < repaired.gap < np.inf
    peer = np.eye(7)[:, :2]
    certificate = ob.certify(problem, peer, bound=True, max_time=0.3)
    assert certificate.objective == pytest.approx(-0.5 * (C[0, 0] + C[1, 1]))
    assert certificate.gap > 0
    assert np.isnan(certificate.block2_gap)
    assert np.isnan(certificate.criticality)


def best_rows(C, r, count):
    """The best r columns on so many shared rows, by enumeration."""
    supports = [list(s) for s in itertools.combinations(range(len(C)), count)]
    rows = max(supports, key=lambda s: ky_fan(C[np.ix_(s, s)], r))
    x = np.zeros((len(C), r))
    x[rows] = np.linalg.eigh(C[np.ix_(rows, rows)])[1][:, -r:]
    return x


@pytest.mark.parametrize("seed", range(40))
def test_bounds_on_few_rows_are_the_optima(seed):
    rng = np.random.default_rng(seed)
    r = 1 + seed % 3
    n = int(rng.integers(r + 1, 10))
    A = rng.standard_normal((n, n)) * rng.lognormal(size=n)
    C = (A @ A.T if seed % 2 else A + A.T) * 10.0 ** rng.integers(-3, 4)
    points = {k: best_rows(C, r, k) for k in range(r, n + 1)}
    values = {k: -0.5 * np.sum(x * (C @ x)) for k, x in points.items()}
    lam = float(0.2 * rng.random() * np.abs(C).max())
    penalized = min(points, key=lambda k: values[k] + lam * k)
    count = int(rng.integers(r, n + 1))
    for penalty, at, cost in (
        (ob.RowSparse(count=count), count, 0.0),
        (ob.RowSparse(lam), penalized, lam * penalized),
    ):
        problem = ob.StiefelProblem(ob.Quadratic(-C), penalty, r)
        certificate = ob.certify(problem, points[at], bound=True)
        optimum = values[at] + cost
        size = max(1.0, abs(optimum))
        assert certificate.objective == pytest.approx(optimum, rel=1e-9, abs=1e-300)
        assert certificate.lower_bound <= optimum + ROUNDING * size
        assert certificate.gap <= 1.01e-6
        worse = ob.certify(problem, np.eye(n, r), bound=True)
        assert worse.lower_bound <= optimum + ROUNDING * size


def test_too_many_rows_have_no_gap():
    problem = ob.StiefelProblem(ob.Quadratic(np.eye(5)), ob.RowSparse(count=2), 2)
    x = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 2)))[0]
    assert ob.certify(problem, x).objective == np.inf
    with pytest.raises(ValueError, match="x must be feasible"):
        ob.certify(problem, x, bound=True)


def test_bounds_at_the_door():
    C = np.diag([1.0, 2.0, 3.0])
    x = np.eye(3)[:, :2]
    smooth = ob.Quadratic(C)
    linear = ob.StiefelProblem(ob.Quadratic(C, linear=np.ones((3, 2))), ob.L0(1.0), 2)
    with pytest.raises(ValueError, match="bound must be False"):
        ob.certify(linear, x, bound=True)
    free = ob.SmoothFunction(lambda x: (0.0, np.zeros_like(x)), 3)
    with pytest.raises(TypeError, match="bound must be False"):
        ob.certify(ob.StiefelProblem(free, ob.NoPenalty(), 2), x, bound=True)
    mixed = ob.JOrthogonalProblem(smooth, [1, 1, -1])
    with pytest.raises(ValueError, match="bound must be False"):
        ob.certify(mixed, np.eye(3), bound=True)
    for other in (linear, ob.StiefelProblem(free, ob.NoPenalty(), 2), mixed):
        with pytest.raises((TypeError, ValueError), match="gap_tol must be None"):
            ob.solve(other, gap_tol=0.1)
    with pytest.raises(TypeError, match="gap_tol must be None for a OBCD"):
        ob.solve(ob.StiefelProblem(smooth, ob.L0(1.0), 2), gap_tol=0.1, solver=ob.OBCD())
    with pytest.raises(ValueError, match="gap_tol"):
        ob.solve(ob.StiefelProblem(smooth, ob.L0(1.0), 2), gap_tol=-0.1)
    for wrong in ({"bound": 1}, {"gap_tol": -1.0}, {"max_time": -1.0}):
        with pytest.raises((TypeError, ValueError), match=next(iter(wrong))):
            ob.certify(ob.StiefelProblem(smooth, ob.L0(1.0), 2), x, **wrong)


@pytest.mark.parametrize("penalty", ["l0", "l1"])
@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_a_fit_without_a_penalty_is_proved(penalty, size):
    A = size * np.random.default_rng(0).standard_normal((40, 4))
    pca = ob.SparsePCA(2, penalty=penalty, alpha=0.0, certify=True, random_state=0).fit(A)
    top = np.linalg.svd(A - A.mean(axis=0), compute_uv=False)[:2]
    assert pca.lower_bound_ == pytest.approx(-0.5 * np.sum(top**2), rel=1e-9)
    assert pca.objective_ == pytest.approx(pca.lower_bound_, rel=1e-9)
    assert pca.gap_ < 1e-9
    # The penalty is at least its weight times two, so no value is below that of the axes plus this.
    penalised = ob.SparsePCA(2, penalty=penalty, alpha=0.5, certify=True, random_state=0).fit(A)
    least = pca.objective_ + 2.0 * penalised.alpha_
    assert least * (1.0 + 1e-9) < penalised.lower_bound_ <= penalised.objective_ + 1e-9 * size**2


@pytest.mark.parametrize("how", [{"n_nonzero": 4}, {"alpha": 0.3}, {"penalty": "l1", "alpha": 0.5}])
def test_the_gap_of_a_fit(how):
    A = np.random.default_rng(0).standard_normal((40, 7))
    pca = ob.SparsePCA(2, certify=True, max_time=0.4, random_state=0, **how).fit(A)
    assert 0.0 <= pca.gap_ + 1e-12 < 0.5
    assert ob.SparsePCA(2, max_time=0.05, random_state=0, **how).fit(A).gap_ is None
